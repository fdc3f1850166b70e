"""Build the `DesignProblem` from the arguments of `design`, and draw uncertain machines."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.analysis import Posterior
from frictax.annotations import ArrayLike, Checked
from frictax.arguments import check_count, is_finite_number
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
from frictax.fitting.problem.initial_state import named_paths
from frictax.fitting.problem.setup import signal_field, variable_at
from frictax.fitting.result.units import unit_of
from frictax.measurements import Record
from frictax.mechanism import AbstractHybridSystem, Force, Mechanism, PositionController, Torque
from frictax.mechanism.bodies import AbstractBody
from frictax.mechanism.layout import is_rotational
from frictax.parameters import Parameter, check, on_edge_unasked, parameters, select
from frictax.progress import Progress
from frictax.text import suggestion

from .information import MachineUnderTest, check_instruments, checked_setup, delayed_channels
from .limits import Limits, Margins
from .problem import CRITERIA, Criterion, DesignProblem, VariableLimit, is_position_controller
from .shapes import AbstractShape, FourierSeries, Staircase

Over = float | Mapping[str, float] | FitResult | Posterior


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
    """The options of `design` and their default values; the docstring of `design` explains them."""

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
            check_count(f"`design`: `{name}`", getattr(self, name), 1)
        if self.criterion not in CRITERIA:
            raise ValueError(
                f"`design`: `criterion` must be one of {', '.join(CRITERIA)}, got"
                f" {self.criterion!r}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class DesignRequest(DesignSettings):
    """All arguments of `design`: machine, outputs, duration, rate, limits, and the options."""

    machine: Any
    outputs: Mapping[str, float]
    duration: float
    rate: float
    limits: Limits

    @property
    def times(self) -> np.ndarray:
        """Times of the samples [s]."""
        for name, unit in (("duration", "s"), ("rate", "Hz")):
            value = getattr(self, name)
            if not is_finite_number(value) or value <= 0:
                raise ValueError(
                    f"`design`: `{name}` must be a number > 0 [{unit}], got {value!r}."
                )
        count = int(round(self.duration * self.rate))
        if not 20 <= count <= 1_000_000:
            raise ValueError(
                f"`design`: `duration` times `rate` must give 20 to 1 000 000 samples, got {count}."
            )
        return np.linspace(0.0, count / self.rate, count + 1)

    @property
    def band(self) -> tuple[float, float]:
        """Frequency band [Hz], by default from 1/duration to min(32/duration, 0.2*rate)."""
        low = 1.0 / self.duration
        band = self.limits.band or (low, min(2**5 * low, 0.2 * self.rate))
        if band[1] > 0.5 * self.rate:
            raise ValueError(
                f"`Limits.band` must end below half of `rate`, {0.5 * self.rate:g} Hz, got"
                f" {band[1]:g} Hz."
            )
        return band


def build_problem(request: DesignRequest) -> DesignProblem:
    """Build the `DesignProblem` of a request.

    **Raises:** `ValueError` if the arguments are invalid.
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
    t = request.times
    drive, body = _drive_and_body(machine, request)
    band, shape = request.band, request.shape or FourierSeries()
    if isinstance(shape, Staircase) and not is_position_controller(machine, drive):
        raise ValueError(
            f"`Staircase` is for the reference of a position, and {drive!r} is a force. Give the"
            " machine a `PositionController`, or take FourierSeries() or Ramps()."
        )
    under_test, free = _machine_under_test(request, machine, t, drive)
    x = np.asarray(under_test.values())
    sizes = [np.size(p.value) for p in free]
    names = tuple(
        f"{p.path}[{i}]" if np.ndim(p.value) else p.path
        for p, size in zip(free, sizes, strict=True)
        for i in range(size)
    )
    counted_as_1 = _error_sizes(names, x, request.size or {})
    limits, centre, scale, bounded = _limits_and_scale(
        under_test, drive, body, request.limits, band
    )
    restarts = np.zeros(0)
    if isinstance(objective, Windows):
        restarts = np.arange(t[0] + objective.length, t[-1] - 1e-9, objective.length)
    return DesignProblem(
        machine=machine,
        under_test=under_test,
        names=names,
        units=tuple(np.repeat([unit_of({}, machine)(p) for p in free], sizes).tolist()),
        lower=np.repeat([float(p.declaration.domain.bound()) for p in free], sizes),
        drive=drive,
        body=body,
        centre=centre,
        scale=scale,
        bounded=bounded,
        shape=shape,
        band=band,
        basis=shape.basis(t, band),
        weight=_output_weights(request),
        restarts=restarts,
        size=counted_as_1,
        wanted=_wanted_indices(request.wanted, names),
        known=prior_information(machine, names, counted_as_1, request.after, request.priors, x),
        criterion=request.criterion,
        limits=limits,
        margins=request.margins or Margins(),
        engine=request.engine or OnSamples(),
    )


def _machine_under_test(
    request: DesignRequest, machine: Any, t: np.ndarray, drive: str
) -> tuple[MachineUnderTest, list[Parameter]]:
    """Return the `MachineUnderTest` (machine, instruments and inputs), and its free parameters."""
    given = request.outputs
    if not isinstance(given, Mapping) or not given:
        raise ValueError(
            "`design`: `outputs` must be a dict of variable -> the standard deviation of its noise,"
            f' got {given!r}. Write {{"mass.v": 2e-3}}.'
        )
    inputs = {name: jnp.asarray(u, dtype=float) for name, u in (request.inputs or {}).items()}
    if drive in inputs:
        raise ValueError(
            f"`design`: `inputs` must name other driven parts, got {drive!r}, whose input is"
            " designed. Leave it out."
        )
    inputs = {drive: jnp.zeros(t.size), **inputs}
    instruments, outputs = request.instruments or {}, tuple(given)
    setup = checked_setup("design", machine, t, inputs, given, instruments)
    free, named = select(setup, request.free), named_paths(request.free)
    fields = [  # paths of the signals that the inputs replace
        f"{name.partition('.')[0]}.{signal_field(machine, name)}."
        for name in (inputs if isinstance(machine, Mechanism) else ())
    ]
    idle = [p for p in free if p.path.startswith(tuple(fields))]
    for p in idle:
        if p.path in named:
            raise ValueError(
                f"`design`: `free` names {p.path!r}, which has no effect, because an input replaces"
                " this signal. Leave it out."
            )
    edge = [*on_edge_unasked(free, named), *idle]
    free = [p for p in free if p not in edge]
    if not free:
        raise ValueError(
            "`design` has no parameters to identify: name some in `free`, such as free=['mass.m',"
            " 'friction.f_pos']."
        )
    paths = tuple(p.path for p in free)
    late = delayed_channels(instruments, paths)
    under_test = MachineUnderTest(setup, t, inputs, paths, outputs, request.hold, late)
    check_instruments("design", under_test, instruments)
    system, begins = under_test.system(under_test.values()), jnp.zeros(())
    for name in outputs:
        try:
            jax.eval_shape(lambda n=name: variable_at(system, n, begins, *system.start(begins)))
        except (AttributeError, KeyError, ValueError) as why:
            known = system.states()
            raise ValueError(
                f"`design`: `outputs` names {name!r}, which is no variable of the"
                f" machine.{suggestion(name, known)} Among others it has: {', '.join(known)}."
            ) from why
    return under_test, free


def _drive_and_body(machine: Any, request: DesignRequest) -> tuple[str, str]:
    """Return the names of the excited part and of the body whose motion is limited. The excited
    part is by default the only controller or the only force. For a hybrid system of the user, the
    body is "", and its first two states are position and speed.
    """
    drive, limits = request.drive, request.limits
    if not isinstance(machine, Mechanism):
        if drive is None:
            raise ValueError(
                "`design`: `drive` must name what excites a machine of your own, as its `args` do:"
                ' drive="motor".'
            )
        if limits.body is not None:
            raise ValueError(
                "`Limits.body` names a body of a `Mechanism`. In a machine of your own, the limits"
                f" apply to its first two states. Leave out body={limits.body!r}."
            )
        return drive, ""
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
    part = machine[drive.partition(".")[0]]  # This raises an error for an unknown part.
    signal_field(machine, drive)
    if limits.body is not None:
        machine[limits.body]
        return drive, limits.body
    return drive, getattr(part, "body", "").partition(".")[0]


def _limits_and_scale(
    under_test: MachineUnderTest, drive: str, body: str, limits: Limits, band: tuple[float, float]
) -> tuple[tuple[VariableLimit, ...], float, float, bool]:
    """Return the limits, and the fields `centre`, `scale` and `bounded` of the `DesignProblem`."""
    system, machine = under_test.system(under_test.values()), under_test.setup.machine
    quantities, moving = ("travel", "speed", "acceleration"), ()
    states, part = system.states(), drive.partition(".")[0]
    if body and isinstance(machine[body], AbstractBody | MassWithStopAndFriction):
        own = ("phi", "w", "a") if is_rotational(machine[body]) else ("s", "v", "a")
        moving = tuple(f"{body}.{name}" for name in own)
    elif not body and len(states) > 1:
        moving = states[0], states[1], f"der({states[1]})"
    variables = dict(zip(quantities, moving, strict=False))
    given = {w: limit for w in quantities if (limit := getattr(limits, w)) is not None}
    if given and not variables:
        raise ValueError(
            f"`Limits.body` must name a body that moves, got {body or 'none'!r}. Those of this"
            f" machine have the states: {', '.join(states) or 'none are named'}."
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
    if not {"travel", "speed"} & given.keys():
        raise ValueError(
            "`Limits` must limit `travel` or `speed` where a reference of position is designed."
        )
    if limits.force is not None:
        variable_limits.append(VariableLimit("force", f"{part}.f", limits.force))
    begins = jnp.asarray(under_test.t[0])
    y, mode = system.start(begins)
    place = lambda name: jax.value_and_grad(  # noqa: E731
        lambda y: variable_at(system, name, begins, y, mode)
    )(y)
    (centre, by_own), (_, by_limited) = place(f"{part}.s"), place(variables["travel"])
    # With a gear between both bodies, this is its ratio. Without a gear, it is 1.
    ratio = abs(float(by_own @ by_limited)) / max(float(by_own @ by_own), 1e-300) or 1.0
    if "travel" in given:
        return tuple(variable_limits), float(centre), 0.5 * given["travel"] / ratio, True
    scale = given["speed"] / (2 * np.pi * np.sqrt(band[0] * band[1])) / ratio
    return tuple(variable_limits), float(centre), scale, False


def _error_sizes(names: tuple[str, ...], x: np.ndarray, given: Mapping[str, float]) -> np.ndarray:
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(
            f"`size` names {unknown[0]!r}, which is not free.{suggestion(unknown[0], names)} Free"
            f" are: {', '.join(names)}."
        )
    sizes = [given.get(name, float(abs(v))) for name, v in zip(names, x, strict=True)]
    for name, size in zip(names, sizes, strict=True):
        if not (is_finite_number(size) and size > 0):
            raise ValueError(
                f"`design` judges errors relative to a size > 0, and that of {name!r} is {size!r}."
                f" Say in `size` how large an error of it counts as 1: size={{{name!r}: 0.1}}."
            )
    return np.asarray(sizes, dtype=float)


def _is_below(name: str, path: str) -> bool:
    """Return whether `name` is the parameter `path`, or belongs to the table or part `path`."""
    return name == path or name.startswith((f"{path}.", f"{path}["))


def _wanted_indices(wanted: Any, names: tuple[str, ...]) -> np.ndarray:
    if wanted is None:
        return np.arange(len(names))
    paths = [wanted] if isinstance(wanted, str) else list(wanted)
    rows = set[int]()
    for p in paths:
        below = {i for i, n in enumerate(names) if _is_below(n, p)}
        if not below:
            raise ValueError(
                f"`wanted` names {p!r}, which is not free.{suggestion(p, names)} Free are:"
                f" {', '.join(names)}."
            )
        rows |= below
    if not rows:
        raise ValueError("`wanted` must name at least one free parameter. Leave it out for all.")
    return np.asarray(sorted(rows))


def _output_weights(request: DesignRequest) -> np.ndarray:
    """Return the weight of each output: its information per second about a parameter, if the
    output's derivative with respect to this parameter is 1.

    For white noise the weight is rate/sd**2. For autocorrelated noise, rate/sd**2 is multiplied by
    (1 - rho)/(1 + rho), the fraction of independent samples; rho is the correlation of adjacent
    samples. This factor is exact for motions that are slow compared with the correlation time
    `memory` [s].
    """
    memory, weights = request.memory or {}, []
    for name in memory:
        if name not in request.outputs:
            raise ValueError(
                f"`design`: `memory` names {name!r}, which is not in"
                f" `outputs`.{suggestion(name, request.outputs)} Outputs are:"
                f" {', '.join(request.outputs)}."
            )
    for name, sd in request.outputs.items():
        time, share = memory.get(name, 0.0), 1.0
        if time != 0:
            if not (is_finite_number(time) and time > 0):
                raise ValueError(
                    f"`design`: `memory[{name!r}]` must be a time [s] > 0, got {time!r}. Leave it"
                    " out for white noise."
                )
            rho = np.exp(-1.0 / (request.rate * time))
            share = float((1.0 - rho) / (1.0 + rho))
        weights.append(request.rate / float(sd) ** 2 * share)
    return np.asarray(weights)


def draw_machines(
    over: Over | None,
    under_test: MachineUnderTest,
    names: tuple[str, ...],
    lower: Float[np.ndarray, " p"],
    count: int,
    seed: int,
) -> list[np.ndarray]:
    """Return the parameters x of the given machine, and of `count` machines drawn from `over`."""
    x = np.asarray(under_test.values())
    if over is None:
        return [x]
    draws = np.random.default_rng(seed)
    if isinstance(over, FitResult):
        mine, theirs = _common_indices(names, over.names)
        values = np.asarray([np.ravel(e.value)[0] for e in over.estimates])[theirs]
        root = np.linalg.cholesky(
            over.covariance[np.ix_(theirs, theirs)] + 1e-30 * np.eye(len(theirs))
        )
        drawn = values + draws.standard_normal((count, len(theirs))) @ root.T
    elif isinstance(over, Posterior):
        mine, theirs = _common_indices(names, over.names)
        rows = np.reshape(over.draws, (-1, len(over.names)))
        drawn = rows[draws.choice(len(rows), count, replace=len(rows) < count)][:, theirs]
    else:
        base = np.where(np.isfinite(lower) & (x > lower), np.nan_to_num(lower, neginf=0.0), 0.0)
        given = over if isinstance(over, Mapping) else dict.fromkeys(names, over)
        unknown = [p for p in given if not any(_is_below(n, p) for n in names)]
        if unknown:
            raise ValueError(
                f"`over` names {unknown[0]!r}, which is not free.{suggestion(unknown[0], names)}"
                f" Free are: {', '.join(names)}."
            )
        nearest = sorted(given.items(), key=lambda entry: -len(entry[0]))  # longest path first
        scatter = [next((s for p, s in nearest if _is_below(n, p)), 0.0) for n in names]
        bad = [s for s in scatter if not (np.isfinite(s) and 0 <= s < 3)]
        if bad:
            raise ValueError(
                f"`over` must be a relative scatter between 0 and 3, got {bad[0]!r}. Write 0.15 for"
                " machines that differ by 15 %."
            )
        spread = np.asarray(scatter, float) * draws.standard_normal((count, x.size))
        drawn = base + (x - base) * np.exp(spread)
        mine = list(range(x.size))
    out = [x]
    for row in drawn:
        other = x.copy()
        other[mine] = np.where(row > lower[mine], row, x[mine])
        out.append(other)
    return out


def prior_information(
    machine: Any, names: tuple[str, ...], size: np.ndarray, after: FitResult | None, priors: Any,
    x: np.ndarray,
) -> Float[np.ndarray, "p p"]:  # fmt: skip
    """Return the information of a fit `after` and of `priors` about the parameters / `size`."""
    known = np.zeros((len(names), len(names)))
    # The prior of a table's forces also needs the table's speeds, which are not free.
    fixed = {p.path: p.value for p in parameters(machine)}
    if after is not None:
        mine, theirs = _common_indices(names, after.names)
        covariance = after.covariance[np.ix_(theirs, theirs)]
        usable = np.all(np.isfinite(covariance), axis=0) & (np.diag(covariance) > 0)
        mine, covariance = np.asarray(mine)[usable], covariance[np.ix_(usable, usable)]
        known[np.ix_(mine, mine)] += np.linalg.inv(covariance)
    for prior in priors:
        own = [i for i, name in enumerate(names) if name.partition("[")[0] == prior.path]
        if not own:
            raise ValueError(
                f"`priors` names {prior.path!r}, which is not free. Free are: {', '.join(names)}."
            )

        rows = np.asarray(own)

        def residuals(x: jax.Array, prior: Any = prior, rows: np.ndarray = rows) -> jax.Array:
            values = x[rows]
            return prior.residuals(fixed | {prior.path: values[0] if len(rows) == 1 else values})

        J = np.asarray(jax.jacfwd(residuals)(jnp.asarray(x)))
        known += J.T @ J
    return known * np.outer(size, size)


def _common_indices(names: tuple[str, ...], others: tuple[str, ...]) -> tuple[list[int], list[int]]:
    both = [name for name in names if name in others]
    if not both:
        raise ValueError(
            f"`design` was given a fit of {', '.join(others)}, none of which is free here:"
            f" {', '.join(names)}. Name them in `free`."
        )
    return [names.index(n) for n in both], [others.index(n) for n in both]
