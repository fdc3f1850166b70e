"""Create a draft of a problem from a data file. The user's options override guesses."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from .draft import DRIVEN, Draft, first_draft, machine_of
from .machines import drive_brakes, has_gravity
from .roles import Chosen, guess_columns, match_units, named_column, role_of, times_in_seconds

# Constant that the user gives -> the machine that needs this constant.
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
    """The options of `frictax init`. `rate` [Hz]; `columns`: role -> column; `constants`: name ->
    value; `where`: column -> value of the rows to read; `part`: number of the part to read, if the
    clock of the file starts again.
    """

    machine: str | None = None
    rate: float | None = None
    columns: Mapping[str, str] = dataclasses.field(default_factory=dict)
    constants: Mapping[str, float] = dataclasses.field(default_factory=dict)
    where: Mapping[str, str] = dataclasses.field(default_factory=dict)
    part: int | None = None


def draft_of(file: Path, options: Options) -> Draft:
    """Return the draft of a file, from its numbers and the options of the user.

    **Raises:** `FileNotFoundError`; `ValueError` for options that are wrong, contradict each other,
    or are not used.
    """
    draft = first_draft(file, options.rate, dict(options.where), options.part)
    draft = dataclasses.replace(draft, constants=dict(options.constants))
    named = dict(options.columns)
    if (time := named.pop("time", None)) is not None:
        draft = with_columns(draft, {"time": time})
    machine = options.machine
    if machine is None:
        machine = next((m for c, m in _MACHINE_OF.items() if c in options.constants), None)
    if machine is not None:
        draft = with_machine(draft, machine)
    if "torque_constant" in options.constants:
        # The user gives a torque constant, so the drive is a current, even if guessed as a force.
        force = draft.columns.get("force")
        if force is not None and role_of(draft.shape, force.number - 1) is None:
            why = f"Only its numbers indicate that {force.label} is the current."
            current = dataclasses.replace(force, role="current", unit="A", doubt=why)
            columns = {role: c for role, c in draft.columns.items() if role != "force"}
            draft = dataclasses.replace(draft, columns={**columns, "current": current})
    draft = with_columns(draft, named)
    if machine is None and draft.machine == "rotor" and draft.lacking() is None:
        # A rotor on which gravity acts is an arm.
        draft = dataclasses.replace(draft, machine="arm") if has_gravity(draft) else draft
    return draft


def with_machine(draft: Draft, machine: str) -> Draft:
    """Return the draft with another machine. For a motion along a line, guess the units again. For
    a gear, prefer the columns of the motor.
    """
    other = dataclasses.replace(draft, machine=machine, sure=True)
    if not other.turns or machine == "gear":
        return with_clock(other, other.rate, other.columns.get("time"))
    return other


def with_clock(draft: Draft, rate: float | None, time: Chosen | None = None) -> Draft:
    """Return the draft with the sampling rate [Hz] or the column of the time, and with columns that
    are guessed again with these times.
    """
    gear = draft.machine == "gear"
    columns = guess_columns(draft.shape, not draft.turns, rate, gear, time)
    return dataclasses.replace(draft, columns=columns, rate=rate)


def with_columns(draft: Draft, named: Mapping[str, str]) -> Draft:
    """Return the draft with the columns that the user names. A column has only one role. If the
    user names the time, columns are guessed again with these times.
    """
    if "time" in named:
        time = named_column("time", named["time"], draft.shape, None, draft.turns)
        draft = with_clock(draft, None, time)
    columns, by = dict(draft.columns), dict[int, str]()
    for role, text in named.items():
        chosen = named_column(role, text, draft.shape, columns.get("time"), draft.turns)
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
    t = times_in_seconds(draft.shape, columns.get("time"), draft.rate)
    columns = match_units(columns, draft.shape, t)
    draft = dataclasses.replace(draft, columns=columns)
    if named and not draft.sure:
        machine, sure = machine_of(columns, draft.shape, draft.rate)
        draft = dataclasses.replace(draft, machine=machine, sure=sure)
    return draft


def with_signs(draft: Draft) -> Draft:
    """Return the draft with a reversed drive if `drive_brakes` finds that its sign is wrong."""
    if draft.machine not in DRIVEN or draft.lacking() is not None or draft.unknown_counts():
        return draft
    return dataclasses.replace(draft, reversed=drive_brakes(draft))
