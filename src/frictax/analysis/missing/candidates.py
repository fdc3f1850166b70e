"""The catalogue of candidate terms, and the machine that contains them with coefficient 0."""

import dataclasses
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.contacts import MassWithStopAndFriction
from frictax.contacts.contact import AbstractByLaws
from frictax.fitting import FitResult
from frictax.fitting.problem.setup import Setup
from frictax.fitting.problem.ties import Tie, apply_ties
from frictax.laws import AbstractLaw
from frictax.measurements import Record
from frictax.mechanism import Mechanism
from frictax.mechanism.forces import AbstractSource
from frictax.mechanism.layout import BODIES, coordinates_of, turns_about
from frictax.mechanism.user_machines import AbstractAxis
from frictax.parameters import Number, Numbers, Values, get, parameters, replace
from frictax.signals import Drive, as_signal

# Widths of two Stribeck dips, as shares of the highest speed. Their sums approximate other widths.
WIDTHS = 0.05, 0.2
# Terms of a friction law: name -> function of the module (jax.numpy or numpy), the speed v >= 0 and
# the highest speed vmax. All terms are smooth also slightly below v = 0.
OF_LAW: dict[str, Callable[[Any, Any, Any], Any]] = {
    "viscous": lambda xp, v, vmax: v,
    "drag": lambda xp, v, vmax: v * v,
    "Stribeck, narrow": lambda xp, v, vmax: xp.exp(-v / (WIDTHS[0] * vmax)),
    "Stribeck, wide": lambda xp, v, vmax: xp.exp(-v / (WIDTHS[1] * vmax)),
    "bend": lambda xp, v, vmax: xp.arctan(v / (0.3 * vmax)),
}
# The term "other way" adds friction in forward motion and removes friction in backward motion. The
# terms in `OF_LAW` are the same in both directions.
OTHER_WAY = "other way"
LAW_TERMS = (*OF_LAW, OTHER_WAY)
# The candidate "Stribeck" consists of these terms, with one coefficient for each term.
DIP = ("Stribeck, narrow", "Stribeck, wide")

# Forces: name -> function of the array module, the time t since the middle of the recorded times,
# the position s from the middle of the travel, and the speed v. Friction forces are 0 at rest.
OF_FORCE: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "offset": lambda xp, t, s, v: xp.ones_like(v),
    "spring": lambda xp, t, s, v: -s,
    "cubic spring": lambda xp, t, s, v: -(s**3),
    "offset drifts": lambda xp, t, s, v: t,
    "friction drifts": lambda xp, t, s, v: -xp.sign(v) * t,
    "friction over position": lambda xp, t, s, v: -xp.sign(v) * s,
    "friction over distance": lambda xp, t, s, v: -xp.sign(v) * xp.abs(s),
}


def force_of(term: str, xp: Any, t: Any, s: Any, v: Any, vmax: Any) -> Any:
    """Return the force of `term` on a body, with coefficient 1. `LAW_TERMS` are friction terms."""
    if term == OTHER_WAY:
        return -xp.abs(xp.sign(v))
    if term in OF_LAW:
        return -xp.sign(v) * OF_LAW[term](xp, xp.abs(v), vmax)
    return OF_FORCE[term](xp, t, s, v)


class WithTerms(AbstractLaw):
    """A friction law plus the sum of `c` (k,) times `terms`, which are names of `LAW_TERMS`. `way`:
    direction of motion, 1 forward or -1 backward; the term "other way" has the value `way`.
    """

    base: AbstractLaw
    c: Float[Numbers, " k"]
    vmax: Number
    terms: tuple[str, ...] = eqx.field(static=True)
    way: int = eqx.field(static=True)

    def _more(self, v: Values | float) -> Any:
        shapes = (
            self.way * jnp.ones_like(v) if term == OTHER_WAY else OF_LAW[term](jnp, v, self.vmax)
            for term in self.terms
        )
        return sum((c * shape for c, shape in zip(self.c, shapes, strict=True)), jnp.zeros(()))

    def __call__(self, v: Values | float) -> Values:
        return self.base(v) + self._more(jnp.asarray(v))

    @property
    def f0(self) -> Number:
        return self.base.f0 + self._more(jnp.zeros(()))

    @property
    def breaks(self) -> Float[Numbers, " n"]:
        return self.base.breaks

    @property
    def is_smooth(self) -> bool:
        return self.base.is_smooth

    def on_piece(self, v: Number, piece: Any) -> Number:
        return self.base.on_piece(v, piece) + self._more(v)


class Shapes(eqx.Module):
    """A force on one body: the sum of `c` times `terms` (see `force_of`), plus a ripple. The ripple
    is `wave` (2,) times cosine and sine of 2*pi*(position - `centre`)/`period`.
    """

    c: Float[Numbers, " k"]
    wave: Float[Numbers, "2"]
    period: Number
    centre: Number
    middle: Number
    vmax: Number
    terms: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, t: Any, s: Any, v: Any) -> Any:
        turn = 2 * jnp.pi * (s - self.centre) / self.period
        at = jnp, t - self.middle, s - self.centre, jnp.asarray(v), self.vmax
        parts = (c * force_of(term, *at) for c, term in zip(self.c, self.terms, strict=True))
        wave = self.wave[0] * jnp.cos(turn) + self.wave[1] * jnp.sin(turn)
        return sum(parts, wave)


def _clock(t: Any) -> Any:
    return t


class _Push(AbstractSource):
    """A part that applies the force or torque `shapes` to a flange. Its signal is the time."""

    shapes: Shapes
    clock: Drive = eqx.field(converter=as_signal, default=_clock)

    def signal_name(self) -> str:
        return "clock"

    def driven(self, value: Any, s: Number, v: Number) -> Number:
        return self.shapes(jnp.asarray(value), s, v)


class _Slide(_Push):
    rotational: ClassVar[bool] = False


class _Turn(_Push):
    rotational: ClassVar[bool] = True


def push(body: str, rotational: bool, shapes: Shapes) -> AbstractSource:
    """Return a part of a mechanism that applies the force or torque `shapes` to `body`."""
    return (_Turn if rotational else _Slide)(body, shapes)


def pushed_axis(axis: AbstractAxis, shapes: Shapes) -> AbstractAxis:
    """Return a user's machine with one degree of freedom, with `shapes` added to its load."""
    kind = type(axis)

    def load(self: Any, t: Any, y: Any, args: Any) -> Any:
        return kind.load(self, t, y, args) + self.more(t, y[0], y[1])

    return _with_more(axis, shapes, {"load": load})


class MoreFriction(eqx.Module):
    """The sum of `c` times the `terms` of `LAW_TERMS`. The method `on` adds this sum to a law."""

    c: Float[Numbers, " k"]
    vmax: Number
    terms: tuple[str, ...] = eqx.field(static=True)

    def on(self, base: AbstractLaw, way: int) -> WithTerms:
        """Return the law `base` plus the terms, for motion in the direction `way` (1 or -1)."""
        return WithTerms(base, self.c, self.vmax, self.terms, way)


def rubbed_mass(mass: MassWithStopAndFriction, more: MoreFriction) -> MassWithStopAndFriction:
    """Return a mass between mechanical stops with `more` added to its friction laws."""
    kind = type(mass)

    def law(self: Any, direction: int) -> AbstractLaw:
        return self.more.on(kind.law(self, direction), direction)

    return _with_more(mass, more, {"law": law})


_CLASSES: dict[type, type] = {}  # class of a part -> its derived class with more terms


def _with_more(part: Any, more: Any, methods: dict[str, Any]) -> Any:
    """Return `part` as an object of a derived class with other `methods` and the field `more`."""
    kind = type(part)
    if kind not in _CLASSES:
        fields = {**methods, "more": None, "__annotations__": {"more": Any}}
        _CLASSES[kind] = types.new_class(kind.__name__, (kind,), {}, lambda ns: ns.update(fields))
    new = object.__new__(_CLASSES[kind])
    for name, value in (*vars(part).items(), ("more", more)):
        object.__setattr__(new, name, value)
    return new


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
# Terms that only brake -> the field of a friction law with the same effect ("": no such field).
_BRAKES = {"viscous": "F_prop", "drag": "", "Stribeck": "F_Stribeck"}
_BEARING = ("viscous", "drag")  # terms that are tried on a body without a friction law.
# Terms that describe how friction deviates from a law, but do not name a physical cause.
_GENERIC = ("bend", "friction drifts", "friction over position", "friction over distance")
_OF_LAW = ("viscous", "drag", "Stribeck", "bend", OTHER_WAY)  # terms of laws, the simplest first
_OF_STOPS = "law"  # name of the friction law of a mass between mechanical stops
_OFF_AXIS = "axis"  # name of the body of a user's machine with one degree of freedom
SMOOTH = "smooth course of the inputs between their samples"


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A term that may be missing.

    - `name` in the table; `kind`: "law", "force", "wave" (ripple), "held" (a parameter that was not
      fitted), "compliance" or "bends" (curved inputs between samples); `of`: path of the law, body,
      parameter or channel on which the term acts; `term`: name of the term within its kind.
    - `unit` of the coefficients; `size`: number of coefficients; `least`, `most`: bounds of the sum
      of the coefficients. For viscous friction, drag and a Stribeck dip, `least` is minus the
      coefficient that the law already has. Then the total friction still brakes.
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
        """The term of each coefficient."""
        return DIP if self.term == "Stribeck" else (self.term,)

    @property
    def numbers(self) -> int:
        """The number of parameters that the term adds to the model."""
        return 3 if self.kind == "wave" else self.size

    def is_possible(self, c: Float[np.ndarray, " k"]) -> bool:
        """Return whether the coefficients `c` are within the bounds of the candidate."""
        rounding = 1e-9  # [unit of the coefficient] rounding error that is allowed beyond a bound
        return bool(self.least - rounding <= np.sum(c) <= self.most + rounding)

    @property
    def rank(self) -> int:
        """Rank from 0 (simplest) to 2, used to choose among candidates with equal effect."""
        if self.term in ("gain", "offset", "drift", "delay") and self.kind == "held":
            return 1
        if self.kind == "held" or "spring" in self.term:
            return 2
        return int(self.kind == "compliance" or self.term in _GENERIC)


class OperatingRange(eqx.Module):
    """The range of motion in the records. `centre`, `vmax`: centre of the travel and highest speed
    of each body; `slip`: highest sliding speed of each law; `middle`: middle of all times [s].
    """

    centre: dict[str, Float[Array, ""]]
    vmax: dict[str, Float[Array, ""]]
    slip: dict[str, Float[Array, ""]]
    middle: Float[Array, ""]


def catalogue(found: FitResult) -> tuple[Candidate, ...]:
    """Return the candidate terms for the machine of a fit."""
    out: list[Candidate] = []
    is_held = any(isinstance(r, Record) and r.hold for r in found.records.values())
    if found.bends is not None and not is_held:
        # Coefficient 1 is the estimated interpolation error; up to 1.5, as the estimate is rough.
        out.append(Candidate(SMOOTH, "bends", "inputs", "bends", "1", 1, 0.0, 1.5))
    out += _law_candidates(found)
    machine, problem = found.model, found.problem
    rubbed = {contact_bodies(machine, path)[0] for path in laws_of(machine)}
    for body, rotational in bodies_of(machine).items():
        unit, place = ("N.m", "rad") if rotational else ("N", "m")
        for term in () if body in rubbed else _BEARING:
            out.append(dataclasses.replace(_of_law(term, body, unit, rotational), kind="force"))
        units = {"offset": unit, "cubic spring": f"{unit}/{place}3"}
        units |= dict.fromkeys(("offset drifts", "friction drifts"), f"{unit}/s")
        for term in OF_FORCE:
            unit_of_term = units.get(term, f"{unit}/{place}")
            out.append(Candidate(term_name(term, body), "force", body, term, unit_of_term))
        out.append(Candidate(f"ripple on {body}", "wave", body, "ripple", unit, 2))
    out += _parameter_candidates(found)
    if not (isinstance(machine, Mechanism) and problem.objective.in_units_of_outputs()):
        return tuple(out)
    # Candidates for a compliance between a body and its position sensor.
    recorded = {n for p in problem.prepared for n in p.names}
    for body, rotational in bodies_of(machine).items():
        position, _ = motion_of(machine, body)
        if position in recorded:
            size = 1 + bool(drives_of(machine, body))
            unit = ("rad/(N.m)" if rotational else "m/N") if size > 1 else "s2"
            out.append(Candidate(f"compliance at {body}", "compliance", position, "a", unit, size))
    return tuple(out)


def fitted_paths(found: FitResult) -> set[str]:
    return {u.path for u in (*found.problem.unknowns, *found.problem.ties)}


def _law_candidates(found: FitResult) -> Iterator[Candidate]:
    """Yield the candidate terms of each friction law of the machine."""
    machine, unknowns = found.model, found.problem.unknowns
    # Parameter values become bounds of candidates, and bounds are constants of a compiled program.
    # A fitted value changes: its bound is infinite, so that no new program is compiled. If a fitted
    # value is at its bound, a candidate must not act as a value beyond this bound.
    values = {p.path: float(p.value) for p in parameters(machine) if not np.ndim(p.value)}
    values |= dict.fromkeys(fitted_paths(found), np.inf)
    at_bound = {u.path: 0.0 for u in unknowns if not found.active[u.place].any()}
    values |= at_bound
    for path, rotational in laws_of(machine).items():
        pressed = isinstance(machine, Mechanism) and hasattr(machine[_part(path)], "f_normalized")
        unit = "1" if pressed else "N.m" if rotational else "N"
        law = path.removesuffix(f".{_OF_STOPS}")
        for term in _OF_LAW:
            has = values.get(f"{law}.{_BRAKES[term]}", 0.0) if term in _BRAKES else 0.0
            yield _of_law(term, path, unit, rotational, has)


def _parameter_candidates(found: FitResult) -> Iterator[Candidate]:
    """Yield a candidate for each parameter of machine and sensors that was not fitted."""
    problem, fitted = found.problem, fitted_paths(found)
    # `F_prop` is left out, because viscous friction is among the terms of the laws.
    viscous = {f"{path.removesuffix('.' + _OF_STOPS)}.F_prop" for path in laws_of(found.model)}
    for p in parameters(problem.setup):
        is_term = p.path in viscous or p.path.endswith((".dtmax", ".fexp"))
        if p.path in fitted or np.ndim(p.value) or is_term:
            continue
        # If the residuals are forces and all forces are fitted, an input gain of 0 makes the
        # residuals 0. Therefore input gains are left out.
        is_gain = p.path.startswith("inputs.") and p.path.endswith(".gain")
        if is_gain and not problem.objective.in_units_of_outputs():
            continue
        side, _, rest = p.path.partition(".")
        channel, _, what = rest.rpartition(".")
        name, value, domain = p.path, float(p.value), p.declaration.domain
        if side in ("inputs", "outputs") and what in ("gain", "offset", "drift", "delay"):
            name = f"{what} of {'input' if side == 'inputs' else 'sensor'} {channel}"
        last, most = p.path.rpartition(".")[2], domain.upper()
        # The derivative at `peak` = 1 is not valid for a `peak` (parameter of a law) above 5.
        if last == "peak":
            most = max(min(most, 5.0), value)
        ends = domain.bound() - value, most - value
        yield Candidate(name, "held", p.path, last, found.unit_of(p), 1, *ends)


def drives_of(machine: Mechanism, body: str) -> list[str]:
    """Return the channels of the motor drives' forces or torques that act on `body`."""
    return [
        f"{name}.{'tau' if getattr(part, 'rotational', False) else 'f'}"
        for name, part in machine.named_parts()
        if isinstance(part, AbstractSource)
        and part.signal_name() is not None
        and part.body.partition(".")[0] == body
    ]


def laws_of(machine: Any) -> dict[str, bool]:
    """Return a dict: path of each friction law for forward motion -> True for a rotation."""
    if isinstance(machine, Mechanism):
        return {
            f"{name}.{getattr(part, 'forward', _OF_STOPS)}": bool(turns_about(machine, name))
            for name, part in machine.named_parts()
            if isinstance(part, AbstractByLaws | MassWithStopAndFriction)
        }
    if isinstance(machine, AbstractAxis):
        return {"friction.f_pos": bodies_of(machine)[_OFF_AXIS]}
    return {}


def bodies_of(machine: Any) -> dict[str, bool]:
    """Return a dict: body -> whether it rotates. The body of an `AbstractAxis` is "axis"."""
    if isinstance(machine, Mechanism):
        return {n: bool(p.rotational) for n, p in machine.named_parts() if isinstance(p, BODIES)}
    if isinstance(machine, AbstractAxis):
        return {_OFF_AXIS: machine.states()[0].rpartition(".")[2] == "phi"}
    return {}


def motion_of(machine: Any, body: str) -> tuple[str, str]:
    """Return the channels of the position and speed of a body."""
    if isinstance(machine, Mechanism):
        s, v = coordinates_of(machine[body])
        return f"{body}.{s}", f"{body}.{v}"
    return machine.states()[0], machine.states()[1]


def contact_bodies(machine: Any, path: str) -> tuple[str, str | None]:
    """Return the two bodies between which the law at `path` acts. None means the housing."""
    if not isinstance(machine, Mechanism):
        return _OFF_AXIS, None
    part = machine[_part(path)]
    if isinstance(part, MassWithStopAndFriction):
        return _part(path), None
    ends = (None if e is None else e.partition(".")[0] for e in part.between())
    moving = bodies_of(machine)
    here, there = (e if e in moving else None for e in ends)
    return (there, None) if here is None and there is not None else (here or "", there)


def augmented_setup(
    setup: Setup,
    tried: tuple[Candidate, ...],
    c: Float[Array, " k"],
    periods: Mapping[str, Any],
    ranges: OperatingRange,
    ties: Sequence[Tie] = (),
) -> Setup:
    """Return `setup` with all candidate terms except compliances. `c`: coefficients of `tried`;
    `ties`: rules of parameters that follow others."""
    values = {one: c[k : k + one.size] for one, k in zip(tried, first_columns(tried), strict=True)}
    held = {one.of: get(setup, one.of) + v[0] for one, v in values.items() if one.kind == "held"}
    setup = apply_ties(replace(setup, held), ties)
    machine, of_law = setup.machine, [one for one in values if one.kind == "law"]
    for path in dict.fromkeys(one.of for one in of_law):
        own = [one for one in of_law if one.of == path]
        coefficients = jnp.concatenate([values[one] for one in own])
        more = MoreFriction(coefficients, ranges.slip[path], sum((one.terms for one in own), ()))
        part_path, _, field = path.rpartition(".")
        part = get(machine, part_path)
        if field == _OF_STOPS:
            machine = with_part(machine, part_path, rubbed_mass(part, more))
            continue
        back = field.replace("_pos", "_neg")
        forward = getattr(part, field)
        backward = getattr(part, back) if getattr(part, back) is not None else forward
        part = with_fields(part, {field: more.on(forward, 1), back: more.on(backward, -1)})
        machine = with_part(machine, part_path, part)
    machine = _with_forces(machine, values, periods, ranges)
    return Setup(machine, setup.inputs, setup.outputs)


def _with_forces(
    machine: Any,
    values: Mapping[Candidate, Any],
    periods: Mapping[str, Any],
    ranges: OperatingRange,
) -> Any:
    pushes = {}
    for body, rotational in bodies_of(machine).items():
        own = [one for one in values if one.kind == "force" and one.of == body]
        wave = [one for one in values if one.kind == "wave" and one.of == body]
        if not own and not wave:
            continue
        shapes = Shapes(
            jnp.stack([values[one][0] for one in own]) if own else jnp.zeros(0),
            values[wave[0]] if wave else jnp.zeros(2),
            jnp.asarray(periods[body]),
            ranges.centre[body],
            ranges.middle,
            ranges.vmax[body],
            tuple(one.term for one in own),
        )
        if isinstance(machine, AbstractAxis):
            machine = pushed_axis(machine, shapes)
        else:
            pushes[f"lacking_{len(machine.names) + len(pushes)}"] = push(body, rotational, shapes)
    if pushes:
        assert isinstance(machine, Mechanism)
        machine = Mechanism(**dict(machine.named_parts()), **pushes)
    return machine


def fitted_instruments(found: FitResult) -> dict[str, Any]:
    """Return the instruments of all channels in a dict with keys such as ``"inputs.drive"``."""
    out: dict[str, Any] = {}
    for record in found.records.values():
        for side in ("inputs", "outputs"):
            known = getattr(found.problem.setup, side)
            names = [n for n in getattr(record, side) if known.has(n)]
            out |= {f"{side}.{n}": known.at(n) for n in names}
    return out


def first_columns(tried: tuple[Candidate, ...]) -> list[int]:
    """Return the index of the first coefficient of each candidate."""
    return np.concatenate([[0], np.cumsum([x.size for x in tried])])[:-1].astype(int).tolist()


def term_name(term: str, of: str) -> str:
    """Return the displayed name of a term. `of`: name of the law or body on which it acts."""
    return f"{_NAMES.get(term, term)} {'on' if term in OF_FORCE else 'of'} {of}"


def _of_law(term: str, path: str, unit: str, rotational: bool, has: float = 0.0) -> Candidate:
    """Return candidate `term` for the law at `path`; `has`: coefficient in the present law."""
    speed = "rad" if rotational else "m"
    of = "" if unit == "1" else f"{unit}."
    units = {"viscous": f"{of}s/{speed}", "drag": f"{of}s2/{speed}2"}
    name, size = term_name(term, path.partition(".")[0]), len(DIP) if term == "Stribeck" else 1
    least = -has if term in _BRAKES else -np.inf
    return Candidate(name, "law", path, term, units.get(term, unit), size, least)


def _part(path: str) -> str:
    return path.partition(".")[0]


def with_fields(part: Any, fields: Mapping[str, Any]) -> Any:
    """Return `part` with other `fields`, without checks, because JAX traces their values."""
    new = object.__new__(type(part))
    for field in dataclasses.fields(part):
        value = fields[field.name] if field.name in fields else getattr(part, field.name)
        object.__setattr__(new, field.name, value)
    return new


def with_part(machine: Any, path: str, part: Any) -> Any:
    """Return the machine with the part or field at `path` replaced, or with one more part."""
    if isinstance(machine, Mechanism):
        return Mechanism(**{**dict(machine.named_parts()), path: part})
    return with_fields(machine, {path: part})
