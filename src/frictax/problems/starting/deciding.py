"""Make a draft from a file and a user's options, which override guesses."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from .draft import DRIVEN, Draft, first_draft, machine_of
from .roles import by_speeds, guess_columns, named_column, role_of, seconds
from .sizes import drive_brakes, has_gravity

# The machine to which a constant belongs.
_MACHINE_OF = {
    "ratio": "gear",
    "radius": "brake",
    "kp": "servo",
    "kv": "servo",
    "mgl": "pendulum",
    "mass": "coastdown",
}


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of a user: `machine`, `rate` [Hz], columns by role, constants by name; which rows
    are read, by the values `where` or by the `part` of a file whose clock starts again.
    """

    machine: str | None = None
    rate: float | None = None
    columns: Mapping[str, str] = dataclasses.field(default_factory=dict)
    constants: Mapping[str, float] = dataclasses.field(default_factory=dict)
    where: Mapping[str, str] = dataclasses.field(default_factory=dict)
    part: int | None = None


def draft_of(file: Path, options: Options) -> Draft:
    """The draft of a file, as options and numbers decide it.

    **Raises:** `FileNotFoundError`; `ValueError` with one sentence for options that cannot be, that
    contradict each other, or that are named and not used.
    """
    draft = first_draft(file, options.rate, dict(options.where), options.part)
    draft = dataclasses.replace(draft, constants=dict(options.constants))
    machine = options.machine
    if machine is None:
        machine = next((m for c, m in _MACHINE_OF.items() if c in options.constants), None)
    if machine is not None:
        draft = of_machine(draft, machine)
    if "torque_constant" in options.constants:
        draft = _with_a_current(draft)
    draft = with_columns(draft, options.columns)
    if machine is None:
        draft = by_numbers(draft)
    return draft


def of_machine(draft: Draft, machine: str) -> Draft:
    """The draft of another machine: units that were guessed are those of its kind of motion."""
    other = dataclasses.replace(draft, machine=machine, sure=True)
    if not other.turns:
        other = dataclasses.replace(other, columns=guess_columns(draft.shape, True, draft.rate))
    return other


def with_columns(draft: Draft, named: Mapping[str, str]) -> Draft:
    """The draft with columns as the user names them; a column has one role."""
    columns, by = dict(draft.columns), dict[int, str]()
    for role, text in named.items():
        chosen = named_column(role, text, draft.shape, columns.get(role), draft.turns)
        if (other := by.setdefault(chosen.number, role)) != role:
            raise ValueError(
                f"{chosen.label} is named both as --{other} and as --{role}. Leave out one of them."
            )
        columns = {r: c for r, c in columns.items() if c.number != chosen.number or r in named}
        columns[role] = chosen
    if "force" in named and "current" not in named:
        columns.pop("current", None)
    if "velocity" in named and "position" not in named:
        columns.pop("position", None)
    t = seconds(draft.shape, columns.get("time"), draft.rate)
    columns = by_speeds(columns, draft.shape, t)
    draft = dataclasses.replace(draft, columns=columns)
    if named and not draft.sure:
        machine, sure = machine_of(columns, draft.shape, draft.rate)
        draft = dataclasses.replace(draft, machine=machine, sure=sure)
    return draft


def by_numbers(draft: Draft) -> Draft:
    """The draft whose machine the numbers correct: an arm where a rotor would lack gravity."""
    if draft.machine != "rotor" or draft.lacking() is not None:
        return draft
    return dataclasses.replace(draft, machine="arm") if has_gravity(draft) else draft


def with_signs(draft: Draft) -> Draft:
    """The draft of a record whose drive takes energy from a machine, with its sign turned round."""
    if draft.machine not in DRIVEN or draft.lacking() is not None or draft.unknown_counts():
        return draft
    return dataclasses.replace(draft, reversed=drive_brakes(draft))


def _with_a_current(draft: Draft) -> Draft:
    """The draft with a nameless force taken for a current, since a torque constant is given."""
    force = draft.columns.get("force")
    if force is None or role_of(draft.shape, force.number - 1) is not None:
        return draft
    why = f"Only its numbers say that {force.label} is the current."
    current = dataclasses.replace(force, role="current", unit="A", doubt=why)
    columns = {role: c for role, c in draft.columns.items() if role != "force"}
    return dataclasses.replace(draft, columns={**columns, "current": current})
