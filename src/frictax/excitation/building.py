"""Build the `DesignProblem` from the arguments of `design`."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

import jax
import jax.numpy as jnp
import numpy as np

from frictax.annotations import ArrayLike, Checked
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
from frictax.fitting.build_problem import sensors
from frictax.fitting.problem.initial_state import named_paths
from frictax.fitting.problem.setup import Setup, signal_field, variable_at
from frictax.fitting.result.units import unit_of
from frictax.measurements import Record
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
from frictax.progress import Progress
from frictax.text import suggestion

from .information import MachineUnderTest
from .limits import Limits, Margins
from .machines import Over, prior_information
from .problem import CRITERIA, Criterion, DesignProblem, VariableLimit, is_position_controller
from .shapes import AbstractShape, FourierSeries, Staircase


class DesignOptions(TypedDict, total=False):
    """The options of `design`, for type checkers and editors."""

    drive: str | None
    free: str | Iterable[str] | None
    wanted: str | Iterable[str] | None
    shape: AbstractShape | None
    criterion: Criterion
    objective: AbstractObjective | None
    inputs: Mapping[str, ArrayLike] | None
    instruments: Mapping[str, Instrument] | None
    memory: Mapping[str, float] | None
    over: Over | None
    machines: int
    after: FitResult | None
    beside: Record | None
    priors: Sequence[AbstractPrior]
    size: Mapping[str, float] | None
    margins: Margins | None
    hold: bool
    engine: OnSamples | None
    starts: int
    steps: int
    seed: int
    progress: bool | Progress


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class DesignSettings:
    """The options of `design` with their defaults; see there for their meaning."""

    drive: Checked[str | None] = None
    free: Checked[str | Iterable[str] | None] = None
    wanted: Checked[str | Iterable[str] | None] = None
    shape: Checked[AbstractShape | None] = None
    criterion: Checked[Criterion] = "E"
    objective: Checked[AbstractObjective | None] = None
    inputs: Checked[Mapping[str, ArrayLike] | None] = None
    instruments: Checked[Mapping[str, Instrument] | None] = None
    memory: Checked[Mapping[str, float] | None] = None
    over: Checked[Over | None] = None
    machines: Checked[int] = 6
    after: Checked[FitResult | None] = None
    beside: Checked[Record | None] = None
    priors: Checked[Sequence[AbstractPrior]] = ()
    size: Checked[Mapping[str, float] | None] = None
    margins: Checked[Margins | None] = None
    hold: Checked[bool] = False
    engine: Checked[OnSamples | None] = None
    starts: Checked[int] = 8
    steps: Checked[int] = 600
    seed: Checked[int] = 0
    progress: Checked[bool | Progress] = False

    def __post_init__(self) -> None:
        for name in ("machines", "starts", "steps"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"`design`: `{name}` must be a whole number >= 1, got {value!r}.")
        if self.criterion not in CRITERIA:
            raise ValueError(
                f"`design`: `criterion` must be one of {', '.join(CRITERIA)}, got"
                f" {self.criterion!r}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class DesignRequest(DesignSettings):
    """The arguments of `design`."""

    machine: Any
    outputs: Mapping[str, float]
    duration: float
    rate: float
    limits: Limits

    @property
    def band(self) -> tuple[float, float]:
        """The given band of frequencies [Hz], or five octaves from 1/duration on."""
        low = 1.0 / self.duration
        band = self.limits.band or (low, min(2**5 * low, 0.2 * self.rate))
        if band[1] > 0.5 * self.rate:
            raise ValueError(
                f"`Limits.band` must end below half of `rate`, {0.5 * self.rate:g} Hz, got"
                f" {band[1]:g} Hz."
            )
        return band


def build_problem(request: DesignRequest) -> DesignProblem:
    """Build the problem.

    **Raises:** `ValueError` if the arguments do not define a problem.
    """
    objective = FreeRun() if request.objective is None else request.objective
    if not isinstance(objective, FreeRun | ClosedLoop | Windows):
        raise ValueError(
            "`design`: `objective` must be FreeRun(), Windows(...) or ClosedLoop(...), got"
            f" {objective!r}."
        )
    if not isinstance(request.machine, Mechanism | AbstractHybridSystem):
        raise ValueError(
            "`design` needs a `Mechanism` or a hybrid system of your own, got a"
            f" {type(request.machine).__name__}."
        )
    machine = objective.machine(request.machine)
    check(machine)
    t = _times(request.duration, request.rate)
    drive = _drive_name(machine, request.drive)
    band, shape = request.band, request.shape or FourierSeries()
    if isinstance(shape, Staircase) and not is_position_controller(machine, drive):
        raise ValueError(
            f"`Staircase` is for the reference of a position, and {drive!r} is a force. Give the"
            " machine a `PositionController`, or take FourierSeries() or Ramps()."
        )
    _check_outputs(request.outputs)
    under_test, free = _machine_under_test(request, machine, t, drive)
    x = np.asarray(under_test.values())
    names = tuple(name for p in free for name in _entry_names(p))
    sizes = _sizes(names, x, request.size or {})
    body = _limited_body(machine, drive, request.limits)
    limits, centre, scale, bounded = _limits_and_scale(
        under_test, drive, body, request.limits, band
    )
    memory, rate = request.memory or {}, request.rate
    weight = [
        rate / sd**2 * _independent_share(memory, name, rate)
        for name, sd in request.outputs.items()
    ]
    restarts = np.zeros(0)
    if isinstance(objective, Windows):
        restarts = np.arange(t[0] + objective.length, t[-1] - 1e-9, objective.length)
    bounds = [np.full(np.size(p.value), p.declaration.domain.bound(), dtype=float) for p in free]
    return DesignProblem(
        machine=machine,
        under_test=under_test,
        names=names,
        units=tuple(unit_of({}, machine)(p) for p in free for _ in range(np.size(p.value))),
        lower=np.concatenate(bounds),
        drive=drive,
        unit=_drive_unit(machine, drive, body),
        body=body,
        centre=centre,
        scale=scale,
        bounded=bounded,
        shape=shape,
        band=band,
        basis=shape.basis(t, band),
        weight=np.asarray(weight),
        restarts=restarts,
        size=sizes,
        wanted=_wanted_indices(request.wanted, names),
        known=prior_information(names, sizes, request.after, request.priors, x),
        criterion=request.criterion,
        limits=limits,
        margins=request.margins or Margins(),
        engine=request.engine or OnSamples(),
    )


def _machine_under_test(
    request: DesignRequest, machine: Any, t: np.ndarray, drive: str
) -> tuple[MachineUnderTest, list[Parameter]]:
    """Return the machine with its instruments and inputs, and its free parameters."""
    inputs = {name: jnp.asarray(u, dtype=float) for name, u in (request.inputs or {}).items()}
    instruments = request.instruments or {}
    setup = Setup(
        machine,
        sensors("inputs", (drive, *inputs), instruments),
        sensors("outputs", tuple(request.outputs), instruments),
    )
    free = _free_parameters(setup, request.free)
    inputs |= {drive: jnp.zeros(t.size)}
    paths, outputs = tuple(p.path for p in free), tuple(request.outputs)
    under_test = MachineUnderTest(setup, t, inputs, paths, outputs, request.hold)
    _check_variables(under_test, outputs)
    return under_test, free


def _drive_unit(machine: Any, drive: str, body: str) -> str:
    rotational = (
        isinstance(machine, Mechanism) and body in machine.names and is_rotational(machine[body])
    )
    if is_position_controller(machine, drive):
        return "rad" if rotational else "m"
    return "N.m" if rotational else "N"


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


def _drive_name(machine: Any, drive: str | None) -> str:
    """Return the excited part: the given one, or the only controller, or the only force."""
    if not isinstance(machine, Mechanism):
        if drive is None:
            raise ValueError(
                "`design`: `drive` must name what excites a machine of your own, as its `args` do:"
                ' drive="motor".'
            )
        return drive
    if drive is None:
        parts = list(machine.named_parts())
        controllers = [name for name, part in parts if isinstance(part, PositionController)]
        forces = [name for name, part in parts if isinstance(part, Force | Torque)]
        found = controllers or forces
        if len(found) != 1:
            listed = f"it has {', '.join(found)}" if found else "it has none"
            raise ValueError(
                f"`design`: `drive` must name the part that excites the machine; {listed}. Write"
                ' drive="drive", say.'
            )
        (drive,) = found
    machine[drive.partition(".")[0]]  # raises an error for an unknown part
    signal_field(machine, drive)
    return drive


def _limited_body(machine: Any, drive: str, limits: Limits) -> str:
    """Return the name of the body whose motion is limited; "" for the first of another system."""
    if not isinstance(machine, Mechanism):
        return ""
    if limits.body is not None:
        machine[limits.body]
        return limits.body
    return getattr(machine[drive.partition(".")[0]], "body", "").partition(".")[0]


def _limits_and_scale(
    under_test: MachineUnderTest,
    drive: str,
    body: str,
    limits: Limits,
    band: tuple[float, float],
) -> tuple[tuple[VariableLimit, ...], float, float, bool]:
    """Return the limits on variables, and the centre, scale and boundedness of the drive."""
    system, machine = under_test.system(under_test.values()), under_test.setup.machine
    variables = _motion_variables(machine, system.states(), body)
    given = {
        "travel": limits.travel,
        "speed": limits.speed,
        "acceleration": limits.acceleration,
    }
    given = {what: limit for what, limit in given.items() if limit is not None}
    if given and not variables:
        raise ValueError(
            f"`Limits.body` must name a body that moves, got {body or 'none'!r}. Those of this"
            f" machine have the states: {', '.join(system.states()) or 'none are named'}."
        )
    variable_limits = [VariableLimit(what, variables[what], given[what]) for what in given]
    if not is_position_controller(machine, drive):
        if limits.force is None:
            raise ValueError(
                f"`Limits.force` must say how much {drive!r} may give either way: it is what is"
                " designed. Write fx.Limits(force=3.0, ...)."
            )
        force_limit = VariableLimit("force", drive, limits.force)
        return (*variable_limits, force_limit), 0.0, limits.force, True
    if limits.travel is None and limits.speed is None:
        raise ValueError(
            "`Limits` must limit `travel` or `speed` where a reference of position is designed."
        )
    if limits.force is not None:
        variable_limits.append(VariableLimit("force", f"{drive}.f", limits.force))
    begins = jnp.asarray(under_test.t[0])
    centre = float(variable_at(system, variables["travel"], begins, *system.start(begins)))
    if limits.travel is not None:
        return tuple(variable_limits), centre, 0.5 * limits.travel, True
    assert limits.speed is not None
    scale = limits.speed / (2 * np.pi * np.sqrt(band[0] * band[1]))
    return tuple(variable_limits), centre, scale, False


def _motion_variables(machine: Any, states: tuple[str, ...], body: str) -> dict[str, str]:
    """Return the names of position, speed and acceleration of the body, by the limit on each."""
    names: tuple[str, ...] = ()
    if body and isinstance(machine[body], AbstractBody | MassWithStopAndFriction):
        own = ("phi", "w", "a") if is_rotational(machine[body]) else ("s", "v", "a")
        names = tuple(f"{body}.{name}" for name in own)
    elif not body and len(states) > 1:
        names = states[0], states[1], f"der({states[1]})"
    return dict(zip(("travel", "speed", "acceleration"), names, strict=False))


def _free_parameters(setup: Setup, free: str | Iterable[str] | None) -> list[Parameter]:
    chosen = select(setup, free)
    edge = on_edge_unasked(chosen, named_paths(free))
    chosen = [p for p in chosen if p not in edge]
    if not chosen:
        raise ValueError(
            "`design` has no parameters to identify: name some in `free`, such as free=['mass.m',"
            " 'friction.f_pos']."
        )
    return chosen


def _entry_names(p: Parameter) -> list[str]:
    size = int(np.size(p.value))
    return [p.path] if np.shape(p.value) == () else [f"{p.path}[{i}]" for i in range(size)]


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


def _wanted_indices(wanted: Any, names: tuple[str, ...]) -> np.ndarray:
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


def _check_outputs(given: Any) -> None:
    if not isinstance(given, Mapping) or not given:
        raise ValueError(
            "`design`: `outputs` must be a dict of variable -> the standard deviation of its noise,"
            f' got {given!r}. Write {{"mass.v": 2e-3}}.'
        )
    for name, value in given.items():
        if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
            raise ValueError(
                f"`design`: `outputs[{name!r}]` must be the standard deviation of its noise, a"
                f" number > 0, got {value!r}."
            )


def _check_variables(under_test: MachineUnderTest, names: tuple[str, ...]) -> None:
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


def _independent_share(memory: Mapping[str, float], name: str, rate: float) -> float:
    """Return the effective number of independent samples for one sample of autocorrelated noise.

    The value is exact for motions that are slow compared with the correlation time `memory` [s].
    """
    time = memory.get(name, 0.0)
    if time == 0:
        return 1.0
    if not (isinstance(time, int | float) and np.isfinite(time) and time > 0):
        raise ValueError(
            f"`design`: `memory[{name!r}]` must be a time [s] > 0, got {time!r}. Leave it out for"
            " white noise."
        )
    rho = np.exp(-1.0 / (rate * time))
    return float((1.0 - rho) / (1.0 + rho))
