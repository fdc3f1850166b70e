"""What may be missing in a machine on its rig: the catalogue, and the setup that holds it all."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.contacts import MassWithStopAndFriction
from frictax.contacts.contact import AbstractByLaws
from frictax.fitting import FitResult
from frictax.fitting.problem.setup import Setup
from frictax.measurements import Record
from frictax.mechanism import Mechanism
from frictax.mechanism.forces import AbstractSource
from frictax.mechanism.layout import BODIES, coordinates_of, turns_about
from frictax.mechanism.user_machines import AbstractAxis
from frictax.parameters import get, parameters, replace
from frictax.parameters.declaration import Declaration

from .terms import (
    DIP,
    OF_FORCE,
    OTHER_WAY,
    WIDTHS,
    MoreFriction,
    Shapes,
    push,
    pushed_axis,
    rubbed_mass,
)

_NAMES = {
    "viscous": "viscous friction",
    "drag": "drag over v^2",
    "Stribeck": "Stribeck friction",
    **{
        x: f"Stribeck friction ({100 * w:g} % of the highest speed)"
        for x, w in zip(DIP, WIDTHS, strict=True)
    },
    "bend": "bend of friction over speed",
    OTHER_WAY: "friction that differs by direction",
    "offset": "constant force",
    "offset drifts": "force that drifts",
    "friction drifts": "friction that drifts",
    "friction over position": "friction over position",
    "friction over distance": "friction over distance from the middle",
}
# Terms that only brake, and the number of a law that is the same term.
_BRAKES = {"viscous": "F_prop", "drag": "", "Stribeck": "F_Stribeck"}
_AT_BOUND = 1e-9  # [SI] rounding of a coefficient at its bound
_PEAK = 5.0  # at most: beyond, a slope at 1 that hardly anything breaks away by says nothing
_BEARING = ("viscous", "drag")  # of a body without friction of its own
# How friction departs that has no cause of its own.
_GENERIC = ("bend", "friction drifts", "friction over position", "friction over distance")
_OF_LAW = ("viscous", "drag", "Stribeck", "bend", OTHER_WAY)  # in the order of plainness
_OF_STOPS = "law"  # of a mass between stops
_OFF_AXIS = "axis"  # what a machine of one's own pushes itself by
SMOOTH = "smooth course of the inputs between their samples"
_SMOOTHEST = 1.5  # times what `bend_of` bends them: three samples tell a curve's bend roughly


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A term that may be missing.

    - `name`: what it is called; `kind`: "law", "force", "wave", "held", "compliance" or "bends" (of
      the inputs between samples); `of`: the path of the law, body, parameter or channel; `term`:
      which of the kind's; `unit` of its coefficient; `size`: how many columns it has; `least`,
      `most`: how far its coefficient may go. Friction brakes, so `least` of viscous friction, of
      drag and of a dip is minus the value that the machine has of them.
    """

    name: str
    kind: str
    of: str
    term: str
    unit: str
    size: int = 1
    least: float = -np.inf
    most: float = np.inf

    @property
    def terms(self) -> tuple[str, ...]:
        """What its columns are of."""
        return DIP if self.term == "Stribeck" else (self.term,)

    @property
    def numbers(self) -> int:
        """How many numbers it brings."""
        return 3 if self.kind == "wave" else self.size

    def is_possible(self, c: Float[np.ndarray, " k"]) -> bool:
        """Return whether the coefficients `c` are within the bounds of the candidate."""
        return bool(self.least - _AT_BOUND <= np.sum(c) <= self.most + _AT_BOUND)

    @property
    def rank(self) -> int:
        """The plainer the less: how candidates that a record cannot tell apart are ordered."""
        if self.term in ("gain", "offset", "drift", "delay") and self.kind == "held":
            return 1
        if self.kind == "held" or "spring" in self.term:
            return 2
        return int(self.kind == "compliance" or self.term in _GENERIC)


class Ranges(eqx.Module):
    """What a record covers: of each body `centre` and `vmax`, of each friction `slip`, and the time
    in its `middle`.
    """

    centre: dict[str, Float[Array, ""]]
    vmax: dict[str, Float[Array, ""]]
    slip: dict[str, Float[Array, ""]]
    middle: Float[Array, ""]


def catalogue(found: FitResult) -> tuple[Candidate, ...]:
    """What is tried on the machine of a fit."""
    machine, problem = found.model, found.problem
    out: list[Candidate] = []
    held = any(isinstance(r, Record) and r.hold for r in found.records.values())
    if found.bends is not None and not held:
        out.append(Candidate(SMOOTH, "bends", "inputs", "bends", "1", 1, 0.0, _SMOOTHEST))
    fitted = {u.path for u in (*problem.unknowns, *problem.ties)}
    # A fitted value would be a new constant of the program that is compiled for the candidates.
    numbers = {
        p.path: np.inf if p.path in fitted else float(p.value)
        for p in parameters(machine)
        if not np.ndim(p.value)
    }
    for path, rotational in laws(machine).items():
        unit = "1" if _is_pressed(machine, path) else "N.m" if rotational else "N"
        law = path.removesuffix(f".{_OF_STOPS}")
        has = {term: numbers.get(f"{law}.{field}", 0.0) for term, field in _BRAKES.items()}
        out += [_of_law(term, path, unit, rotational, has.get(term, 0.0)) for term in _OF_LAW]
    for body, rotational in bodies(machine).items():
        unit = "N.m" if rotational else "N"
        more = () if _has_friction(machine, body) else _BEARING
        out += [
            dataclasses.replace(_of_law(term, body, unit, rotational), kind="force")
            for term in more
        ]
        out += [_of_force(term, body, unit, rotational) for term in OF_FORCE]
        out.append(Candidate(f"ripple on {body}", "wave", body, "ripple", unit, 2))
    laws_viscous = {f"{path.removesuffix('.' + _OF_STOPS)}.F_prop" for path in laws(machine)}
    unit_of = found.unit_of
    for p in parameters(problem.setup):
        if p.path in fitted or np.ndim(p.value) or p.path.endswith((".dtmax", ".fexp")):
            continue
        if p.path in laws_viscous:
            continue
        # where forces are balanced, and all of them are fitted, none at all would leave nothing
        is_gain = p.path.startswith("inputs.") and p.path.endswith(".gain")
        if is_gain and not problem.objective.in_units_of_outputs():
            continue
        out.append(_held(p.path, float(p.value), p.declaration, unit_of(p)))
    if isinstance(machine, Mechanism) and problem.objective.in_units_of_outputs():
        for name in _positions(machine, found):
            body = name.rpartition(".")[0]
            of, size = f"compliance at {body}", 1 + bool(drives_of(machine, body))
            unit = "rad/(N.m)" if bodies(machine)[body] else "m/N"
            out.append(Candidate(of, "compliance", name, "a", unit if size > 1 else "s2", size))
    return tuple(out)


def drives_of(machine: Mechanism, body: str) -> list[str]:
    """The channels of the forces that drives push `body` with."""
    return [
        f"{name}.{'tau' if getattr(part, 'rotational', False) else 'f'}"
        for name, part in machine.named_parts()
        if isinstance(part, AbstractSource)
        and part.signal_name() is not None
        and part.body.partition(".")[0] == body
    ]


def laws(machine: Any) -> dict[str, bool]:
    """The paths of the laws of motion forward, and whether it turns."""
    if isinstance(machine, Mechanism):
        return {
            f"{name}.{getattr(part, 'forward', _OF_STOPS)}": bool(turns_about(machine, name))
            for name, part in machine.named_parts()
            if isinstance(part, AbstractByLaws | MassWithStopAndFriction)
        }
    if isinstance(machine, AbstractAxis):
        return {"friction.f_pos": bodies(machine)[_OFF_AXIS]}
    return {}


def bodies(machine: Any) -> dict[str, bool]:
    """The names of bodies, and whether they turn; of a machine of one's own with one degree of
    freedom "axis".
    """
    if isinstance(machine, Mechanism):
        return {n: bool(p.rotational) for n, p in machine.named_parts() if isinstance(p, BODIES)}
    if isinstance(machine, AbstractAxis):
        return {_OFF_AXIS: machine.states()[0].rpartition(".")[2] == "phi"}
    return {}


def motion_of(machine: Any, body: str) -> tuple[str, str]:
    """The channels that hold its position and speed."""
    if isinstance(machine, Mechanism):
        s, v = coordinates_of(machine[body])
        return f"{body}.{s}", f"{body}.{v}"
    return machine.states()[0], machine.states()[1]


def between(machine: Any, path: str) -> tuple[str, str | None]:
    """The bodies whose relative motion a law is of; None: the housing."""
    if not isinstance(machine, Mechanism):
        return _OFF_AXIS, None
    part = machine[_part(path)]
    if isinstance(part, MassWithStopAndFriction):
        return _part(path), None
    ends = (None if e is None else e.partition(".")[0] for e in part.between())
    moving = bodies(machine)
    here, there = (e if e in moving else None for e in ends)
    return (there, None) if here is None and there is not None else (here or "", there)


def augmented(
    setup: Setup,
    tried: tuple[Candidate, ...],
    c: Float[Array, " k"],
    periods: Mapping[str, Any],
    ranges: Ranges,
) -> Setup:
    """The setup with the coefficients `c` of all candidates in it; those of a compliance act on
    what is seen instead, and are left out.
    """
    at = dict(zip(tried, starts_of(tried), strict=True))
    mine = lambda kind: [x for x in tried if x.kind == kind]  # noqa: E731
    setup = replace(setup, {x.of: get(setup, x.of) + c[at[x]] for x in mine("held")})
    machine = setup.machine
    for path in dict.fromkeys(x.of for x in mine("law")):
        own = [x for x in mine("law") if x.of == path]
        values = jnp.concatenate([c[at[x] : at[x] + x.size] for x in own])
        more = MoreFriction(values, ranges.slip[path], sum((x.terms for x in own), ()))
        part_path, _, field = path.rpartition(".")
        part = get(machine, part_path)
        if field == _OF_STOPS:
            machine = _with_part(machine, part_path, rubbed_mass(part, more))
            continue
        back = field.replace("_pos", "_neg")
        forward = getattr(part, field)
        backward = getattr(part, back) if getattr(part, back) is not None else forward
        part = with_fields(part, {field: more.on(forward, 1), back: more.on(backward, -1)})
        machine = _with_part(machine, part_path, part)
    pushes = {}
    for body, rotational in bodies(machine).items():
        own = [x for x in mine("force") if x.of == body]
        wave = [x for x in mine("wave") if x.of == body]
        if not own and not wave:
            continue
        shapes = Shapes(
            jnp.stack([c[at[x]] for x in own]) if own else jnp.zeros(0),
            c[at[wave[0]] : at[wave[0]] + 2] if wave else jnp.zeros(2),
            jnp.asarray(periods[body]),
            ranges.centre[body],
            ranges.middle,
            ranges.vmax[body],
            tuple(x.term for x in own),
        )
        if isinstance(machine, AbstractAxis):
            machine = pushed_axis(machine, shapes)
        else:
            pushes[f"lacking_{len(machine.names) + len(pushes)}"] = push(body, rotational, shapes)
    if pushes:
        assert isinstance(machine, Mechanism)
        machine = Mechanism(**dict(machine.named_parts()), **pushes)
    return Setup(machine, setup.inputs, setup.outputs)


def instruments_of(found: FitResult) -> dict[str, Any]:
    """The instrument of each channel of a fit's records, by ``"inputs.drive"`` and the like."""
    out: dict[str, Any] = {}
    for record in found.records.values():
        for side in ("inputs", "outputs"):
            known = getattr(found.problem.setup, side)
            names = [n for n in getattr(record, side) if known.has(n)]
            out |= {f"{side}.{n}": known.at(n) for n in names}
    return out


def starts_of(tried: tuple[Candidate, ...]) -> list[int]:
    """Where the columns of each candidate begin."""
    return np.concatenate([[0], np.cumsum([x.size for x in tried])])[:-1].astype(int).tolist()


def delayed(tried: tuple[Candidate, ...]) -> frozenset[str]:
    """The channels whose delay is tried."""
    return frozenset(
        x.of.removesuffix(".delay") for x in tried if x.kind == "held" and x.term == "delay"
    )


def named(term: str, of: str) -> str:
    """What a term of a law or force of `of` is called."""
    return f"{_NAMES.get(term, term)} {'on' if term in OF_FORCE else 'of'} {of}"


def _of_law(term: str, path: str, unit: str, rotational: bool, has: float = 0.0) -> Candidate:
    """A term of the law at `path`, which `has` so much of this term already."""
    speed = "rad" if rotational else "m"
    of = "" if unit == "1" else f"{unit}."
    units = {"viscous": f"{of}s/{speed}", "drag": f"{of}s2/{speed}2"}
    name, size = named(term, path.partition(".")[0]), len(DIP) if term == "Stribeck" else 1
    least = -has if term in _BRAKES else -np.inf
    return Candidate(name, "law", path, term, units.get(term, unit), size, least)


def _of_force(term: str, body: str, unit: str, rotational: bool) -> Candidate:
    place = "rad" if rotational else "m"
    units = {
        "spring": f"{unit}/{place}",
        "cubic spring": f"{unit}/{place}3",
        "offset drifts": f"{unit}/s",
        "friction drifts": f"{unit}/s",
        "friction over position": f"{unit}/{place}",
        "friction over distance": f"{unit}/{place}",
    }
    return Candidate(named(term, body), "force", body, term, units.get(term, unit))


def _held(path: str, value: float, declaration: Declaration, unit: str) -> Candidate:
    side, _, rest = path.partition(".")
    channel, _, what = rest.rpartition(".")
    name = path
    if side in ("inputs", "outputs") and what in ("gain", "offset", "drift", "delay"):
        name = f"{what} of {'input' if side == 'inputs' else 'sensor'} {channel}"
    domain, last = declaration.domain, path.rpartition(".")[2]
    most = min(domain.upper(), _PEAK) if last == "peak" else domain.upper()
    return Candidate(name, "held", path, last, unit, 1, domain.bound() - value, most - value)


def _positions(machine: Mechanism, found: FitResult) -> list[str]:
    """Channels that are positions of bodies and recorded."""
    seen = {n for p in found.problem.prepared for n in p.names}
    return [motion_of(machine, b)[0] for b in bodies(machine) if motion_of(machine, b)[0] in seen]


def _part(path: str) -> str:
    return path.partition(".")[0]


def _is_pressed(machine: Any, path: str) -> bool:
    return isinstance(machine, Mechanism) and hasattr(machine[_part(path)], "f_normalized")


def _has_friction(machine: Any, body: str) -> bool:
    return any(between(machine, path)[0] == body for path in laws(machine))


def with_fields(part: Any, fields: Mapping[str, Any]) -> Any:
    """`part` with other `fields`, unchecked: their values are traced."""
    new = object.__new__(type(part))
    for field in dataclasses.fields(part):
        value = fields[field.name] if field.name in fields else getattr(part, field.name)
        object.__setattr__(new, field.name, value)
    return new


def _with_part(machine: Any, path: str, part: Any) -> Any:
    if isinstance(machine, Mechanism):
        return Mechanism(**{**dict(machine.named_parts()), path: part})
    return with_fields(machine, {path: part})
