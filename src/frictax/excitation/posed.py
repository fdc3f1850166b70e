"""From what a user asks of an experiment to its `Plan`."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frictax.contacts import MassWithStopAndFriction
from frictax.engine import OnSamples
from frictax.fitting import (
    AbstractObjective,
    AbstractPrior,
    ClosedLoop,
    FitResult,
    FreeRun,
    Instrument,
    Windows,
)
from frictax.fitting.posing import sensors
from frictax.fitting.problem.initial_state import named_paths
from frictax.fitting.problem.setup import Setup, signal_field, variable_at
from frictax.fitting.result.units import unit_of
from frictax.mechanism import (
    AbstractHybridSystem,
    Force,
    Mechanism,
    PositionController,
    Torque,
)
from frictax.mechanism.bodies import AbstractBody
from frictax.mechanism.layout import is_rotational
from frictax.parameters import Parameter, check, on_edge_unasked, select
from frictax.text import suggestion

from .criteria import CRITERIA
from .informed import UnderTest
from .limits import Limits, Margins
from .machines import known_before
from .plan import Asked, Plan
from .shapes import AbstractShape, FourierSeries, Staircase

_OCTAVES = 5  # from the lowest frequency to the highest, where no band is given


@dataclasses.dataclass(frozen=True)
class Posed:
    """A `Plan`, and what a table says of it: names and units of its parameters, their lower bounds;
    the unit of the drive; the body that is limited.
    """

    plan: Plan
    names: tuple[str, ...]
    units: tuple[str, ...]
    lower: np.ndarray
    unit: str
    body: str
    machine: Any


def posed(
    machine: Any,
    outputs: Mapping[str, float],
    duration: float,
    rate: float,
    limits: Limits,
    *,
    drive: str | None,
    free: Any,
    wanted: Any,
    shape: AbstractShape | None,
    criterion: Any,
    objective: AbstractObjective | None,
    inputs: Mapping[str, Any],
    instruments: Mapping[str, Instrument],
    memory: Mapping[str, float],
    after: FitResult | None,
    priors: Sequence[AbstractPrior],
    size: Mapping[str, float],
    margins: Margins,
    hold: bool,
    engine: OnSamples | None,
) -> Posed:
    """The plan; raises `ValueError` for what cannot be one."""
    objective = FreeRun() if objective is None else objective
    if not isinstance(objective, FreeRun | ClosedLoop | Windows):
        raise ValueError(
            "`design`: `objective` must be FreeRun(), Windows(...) or ClosedLoop(...), got"
            f" {objective!r}."
        )
    if not isinstance(machine, Mechanism | AbstractHybridSystem):
        raise ValueError(
            "`design` needs a `Mechanism` or a hybrid system of your own, got a"
            f" {type(machine).__name__}."
        )
    machine = objective.machine(machine)
    check(machine)
    t = _times(duration, rate)
    drive = _drive(machine, drive, limits)
    controlled = _is_controlled(machine, drive)
    band = limits.band or (1.0 / duration, min(2.0**_OCTAVES / duration, 0.2 * rate))
    if band[1] > 0.5 * rate:
        raise ValueError(
            f"`Limits.band` must end below half of `rate`, {0.5 * rate:g} Hz, got {band[1]:g} Hz."
        )
    shape = FourierSeries() if shape is None else shape
    if isinstance(shape, Staircase) and not controlled:
        raise ValueError(
            f"`Staircase` is for the reference of a position, and {drive!r} is a force. Give the"
            " machine a `PositionController`, or take FourierSeries() or Ramps()."
        )
    _check_numbers("outputs", outputs, "the standard deviation of its noise")
    setup = Setup(
        machine,
        sensors("inputs", (drive, *inputs), instruments),
        sensors("outputs", tuple(outputs), instruments),
    )
    chosen = _chosen(setup, free)
    paths = tuple(p.path for p in chosen)
    under_test = UnderTest(
        setup,
        t,
        {name: jnp.asarray(u, dtype=float) for name, u in inputs.items()}
        | {drive: jnp.zeros(t.size)},
        paths,
        tuple(outputs),
        hold,
    )
    _check_variables(under_test, tuple(outputs))
    x = np.asarray(under_test.values())
    names = tuple(name for p in chosen for name in _entries(p))
    sizes = _sizes(names, x, size)
    body = _body(machine, drive, limits)
    asked, centre, scale, bounded = _limited(under_test, drive, controlled, body, limits, band)
    known = known_before(names, sizes, after, priors, x)
    weight = [rate / sd**2 * _independent(memory, name, rate) for name, sd in outputs.items()]
    restarts = np.zeros(0)
    if isinstance(objective, Windows):
        restarts = np.arange(t[0] + objective.length, t[-1] - 1e-9, objective.length)
    if criterion not in CRITERIA:
        raise ValueError(
            f"`design`: `criterion` must be one of {', '.join(CRITERIA)}, got {criterion!r}."
        )
    plan = Plan(
        under_test,
        drive,
        centre,
        scale,
        bounded,
        shape,
        band,
        shape.basis(t, band),
        np.asarray(weight),
        restarts,
        sizes,
        _wanted(wanted, names),
        known,
        criterion,
        asked,
        margins,
        OnSamples() if engine is None else engine,
    )
    lower = np.concatenate(
        [np.full(np.size(p.value), p.declaration.domain.bound(), dtype=float) for p in chosen]
    )
    units = tuple(u for p in chosen for u in _units(machine, p))
    turns = (
        isinstance(machine, Mechanism) and body in machine.names and is_rotational(machine[body])
    )
    unit = ("rad" if turns else "m") if controlled else ("N.m" if turns else "N")
    return Posed(plan, names, units, lower, unit, body, machine)


def _times(duration: Any, rate: Any) -> np.ndarray:
    for name, value, unit in (("duration", duration, "s"), ("rate", rate, "Hz")):
        if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
            raise ValueError(f"`design`: `{name}` must be a number > 0 [{unit}], got {value!r}.")
    count = int(round(duration * rate))
    if not 20 <= count <= 1_000_000:
        raise ValueError(
            f"`design`: `duration` times `rate` must give 20 to 1 000 000 samples, got {count}."
        )
    return np.linspace(0.0, count / rate, count + 1)


def _drive(machine: Any, drive: str | None, limits: Limits) -> str:
    """The part that is excited."""
    if not isinstance(machine, Mechanism):
        if drive is None:
            raise ValueError(
                "`design`: `drive` must name what excites a machine of your own, as its `args` do:"
                ' drive="motor".'
            )
        return drive
    usual = [
        [name for name, part in machine.named_parts() if isinstance(part, kind)]
        for kind in (PositionController, Force | Torque)
    ]
    if drive is None:
        found = usual[0] or usual[1]
        if len(found) != 1:
            told = f"it has {', '.join(found)}" if found else "it has none"
            raise ValueError(
                f"`design`: `drive` must name the part that excites the machine; {told}. Write"
                ' drive="drive", say.'
            )
        (drive,) = found
    machine[drive.partition(".")[0]]  # raises for a name that no part has
    signal_field(machine, drive)
    return drive


def _is_controlled(machine: Any, drive: str) -> bool:
    return isinstance(machine, Mechanism) and isinstance(
        machine[drive.partition(".")[0]], PositionController
    )


def _body(machine: Any, drive: str, limits: Limits) -> str:
    """The body whose motion is limited; "" for the first of a machine of one's own."""
    if not isinstance(machine, Mechanism):
        return ""
    if limits.body is not None:
        machine[limits.body]
        return limits.body
    return getattr(machine[drive.partition(".")[0]], "body", "").partition(".")[0]


def _limited(
    under_test: UnderTest,
    drive: str,
    controlled: bool,
    body: str,
    limits: Limits,
    band: tuple[float, float],
) -> tuple[tuple[Asked, ...], float, float, bool]:
    """The limits on runs, and centre, scale and boundedness of the drive."""
    system = under_test.system(under_test.values())
    states, machine = system.states(), under_test.setup.machine
    position = speed = acceleration = None
    if body and isinstance(machine[body], AbstractBody | MassWithStopAndFriction):
        names = ("phi", "w", "a") if is_rotational(machine[body]) else ("s", "v", "a")
        position, speed, acceleration = (f"{body}.{name}" for name in names)
    elif not body and len(states) > 1:
        position, speed, acceleration = states[0], states[1], f"der({states[1]})"
    moved = limits.travel, limits.speed, limits.acceleration
    if position is None and any(x is not None for x in moved):
        raise ValueError(
            f"`Limits.body` must name a body that moves, got {body or 'none'!r}. Those of this"
            f" machine have the states: {', '.join(states) or 'none are named'}."
        )
    asked = [
        Asked(what, name, limit)
        for what, name, limit in zip(
            ("travel", "speed", "acceleration"), (position, speed, acceleration), moved, strict=True
        )
        if name is not None and limit is not None
    ]
    if not controlled:
        if limits.force is None:
            raise ValueError(
                f"`Limits.force` must say how much {drive!r} may give either way: it is what is"
                " designed. Write fx.Limits(force=3.0, ...)."
            )
        return (*asked, Asked("force", drive, limits.force)), 0.0, limits.force, True
    if limits.travel is None and limits.speed is None:
        raise ValueError(
            "`Limits` must limit `travel` or `speed` where a reference of position is designed."
        )
    if limits.force is not None:
        asked.append(Asked("force", f"{drive}.f", limits.force))
    assert position is not None
    begins = jnp.asarray(under_test.t[0])
    centre = float(variable_at(system, position, begins, *system.start(begins)))
    if limits.travel is not None:
        return tuple(asked), centre, 0.5 * limits.travel, True
    assert limits.speed is not None
    return tuple(asked), centre, limits.speed / (2 * np.pi * np.sqrt(band[0] * band[1])), False


def _chosen(setup: Setup, free: str | Iterable[str] | None) -> list[Parameter]:
    chosen = select(setup, free)
    edge = on_edge_unasked(chosen, named_paths(free))
    chosen = [p for p in chosen if p not in edge]
    if not chosen:
        raise ValueError(
            "`design` has nothing to find out: name parameters in `free`, such as free=['mass.m',"
            " 'friction.f_pos']."
        )
    return chosen


def _entries(p: Parameter) -> list[str]:
    size = int(np.size(p.value))
    return [p.path] if np.shape(p.value) == () else [f"{p.path}[{i}]" for i in range(size)]


def _units(machine: Any, p: Parameter) -> list[str]:
    return [unit_of({}, machine)(p)] * int(np.size(p.value))


def _sizes(names: tuple[str, ...], x: np.ndarray, given: Mapping[str, float]) -> np.ndarray:
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(
            f"`size` names {unknown[0]!r}, which is not free.{suggestion(unknown[0], names)} Free"
            f" are: {', '.join(names)}."
        )
    sizes = np.asarray([given.get(name, abs(v)) for name, v in zip(names, x, strict=True)])
    for name, size in zip(names, sizes, strict=True):
        if not (np.isfinite(size) and size > 0):
            raise ValueError(
                f"`design` judges relative errors, and {name!r} is {size:g}. Say in `size` how"
                f" large an error of it counts as 1: size={{{name!r}: 0.1}}."
            )
    return sizes


def _wanted(wanted: Any, names: tuple[str, ...]) -> np.ndarray:
    if wanted is None:
        return np.arange(len(names))
    paths = [wanted] if isinstance(wanted, str) else list(wanted)
    rows = [
        i
        for i, name in enumerate(names)
        if any(name == p or name.startswith((f"{p}.", f"{p}[")) for p in paths)
    ]
    for p in paths:
        if not any(n == p or n.startswith((f"{p}.", f"{p}[")) for n in names):
            raise ValueError(
                f"`wanted` names {p!r}, which is not free.{suggestion(p, names)} Free are:"
                f" {', '.join(names)}."
            )
    return np.asarray(rows)


def _check_numbers(what: str, given: Any, says: str) -> None:
    if not isinstance(given, Mapping) or not given:
        raise ValueError(
            f"`design`: `{what}` must be a dict of variable -> {says}, got {given!r}. Write"
            ' {"mass.v": 2e-3}.'
        )
    for name, value in given.items():
        if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
            raise ValueError(
                f"`design`: `{what}[{name!r}]` must be {says}, a number > 0, got {value!r}."
            )


def _check_variables(under_test: UnderTest, names: tuple[str, ...]) -> None:
    system = under_test.system(under_test.values())
    t = jnp.zeros(())
    for name in names:
        try:
            jax.eval_shape(lambda n=name: variable_at(system, n, t, *system.start(t)))
        except (AttributeError, KeyError, ValueError) as why:
            known = system.states()
            raise ValueError(
                f"`design`: `outputs` names {name!r}, which is no variable of the"
                f" machine.{suggestion(name, known)} Among others it has: {', '.join(known)}."
            ) from why


def _independent(memory: Mapping[str, float], name: str, rate: float) -> float:
    """How many samples that are independent one with noise of this memory stands for, to motions
    that are slow beside it.
    """
    lasts = memory.get(name, 0.0)
    if lasts == 0:
        return 1.0
    if not (isinstance(lasts, int | float) and np.isfinite(lasts) and lasts > 0):
        raise ValueError(
            f"`design`: `memory[{name!r}]` must be a time [s] > 0, got {lasts!r}. Leave it out for"
            " white noise."
        )
    rho = np.exp(-1.0 / (rate * lasts))
    return float((1.0 - rho) / (1.0 + rho))
