"""Objectives that simulate the whole record, or each of its windows. The initial states of windows
are corrected for the error of the filter that smooths the measured motion.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.engine import OnSamples
from frictax.engine.options import Engine
from frictax.measurements import Record
from frictax.measurements.filters import smooth
from frictax.measurements.noise import without_glitches
from frictax.measurements.record import replace_fields
from frictax.measurements.units import VELOCITY_OF, related_channel
from frictax.mechanism import Mechanism, PositionController
from frictax.mechanism.mechanism import Machine
from frictax.parameters import Numbers
from frictax.programs import cached_jit
from frictax.pytree import pytree_dataclass, static

from .objectives import AbstractSimulation, Model, PreparedRecord, check_bool, check_positive
from .problem import Problem
from .readings import (
    acting,
    allowed_cutoff,
    apply_sensors,
    channels,
    check_no_ticks,
    cutoffs_of,
    dividing,
    known_states,
    measured_starts,
    prepared_record,
    seen_in,
    starting_values,
)
from .setup import (
    Course,
    Named,
    Setup,
    check_no_bristle,
    driven,
    perfect,
    simulate_variables,
    state_names,
)


@pytree_dataclass
class FreeRun(AbstractSimulation):
    """An objective that simulates the whole record in one run from its inputs, without measured
    feedback.

    In a free run, small errors of forces add up to large errors of positions. Therefore a free run
    is the strictest test of a model, but the worst conditioned objective. Fit few parameters with a
    free run, or fit with `Windows` and validate the result with a free run.

    **Arguments:** `measured_start`: option to start bodies from the measured motion. By default,
    bodies start from the values of the model, which can be fitted with ``free=["mass.s",
    "mass.v"]``. `cutoff` [Hz]: cutoff of the low-pass filter of the measured motion. The default is
    50, or four periods per record if the record is shorter than 80 ms.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 2.0, 401)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 2.0),
    ... )
    >>> record = fx.Record(t, outputs={"mass.v": 0.3 + 0.75 * t + 0.01 * np.sin(50.0 * t)})
    >>> found = fx.fit(
    ...     block,
    ...     record,
    ...     free=["friction.f_pos.F_Coulomb"],
    ...     objective=fx.FreeRun(measured_start=True, cutoff=5.0),
    ... )
    >>> round(float(found.values["friction.f_pos.F_Coulomb"]), 2)
    1.25
    """

    measured_start: bool = static(default=False)
    cutoff: float | None = static(default=None)

    def __post_init__(self) -> None:
        if self.cutoff is not None:
            check_positive(self, "cutoff", "Hz")
        check_bool(self, "measured_start")

    def prepare(self, machine: Machine, record: Record) -> PreparedRecord:
        measured, weight = channels(record)
        known, cutoffs = dict[str, Any](), dict[str, float]()
        if self.measured_start:
            clean = replace_fields(record, outputs=without_glitches(record))
            cutoffs = cutoffs_of(clean, allowed_cutoff(record, self.cutoff))
            known = known_states(machine, clean, cutoffs)
        start = {name: x[0] for name, x in known.items()}
        prepared = prepared_record(record, measured, weight, start, known=known, cutoffs=cutoffs)
        states = [name for name in prepared.tick_noise if name in state_names(machine)]
        begins = starting_values(machine, record, states)
        floating = tuple(
            name
            for name in prepared.tick_noise
            if abs(begins.get(name, np.inf) - record.outputs[name][0])
            < 0.5 * record.ticks[name].step
        )
        return dataclasses.replace(prepared, floating=floating)

    def runs(
        self, setup: Setup, prepared: PreparedRecord, engine: Engine | None, delayed: frozenset[str]
    ) -> tuple[Array, Course]:
        system = driven(setup.machine, prepared.t, acting(setup, prepared, delayed), prepared.hold)
        values, course, _ = simulate_variables(
            system,
            prepared.t,
            prepared.names,
            dividing(engine, prepared),
            measured_starts(setup, prepared, delayed),
        )
        shown = apply_sensors(
            setup, prepared.names, prepared.t, values, prepared.t[0], delayed, prepared.measured
        )
        floats = np.array([name in prepared.floating for name in prepared.names])
        if floats.any():
            square = jnp.square(prepared.weight)
            offset = jnp.sum(square * (shown - prepared.measured), axis=0) / jnp.sum(square, axis=0)
            shown = shown - jnp.where(floats, offset, 0.0)
        return shown, course


@pytree_dataclass
class ClosedLoop(AbstractSimulation):
    """An objective like `FreeRun`, in which known controllers replace drives. The record's input of
    a replaced drive is the reference of the controller.

    The controller keeps the machine near the measured motion, so that errors do not accumulate. The
    simulated controller acts without delay. The delay of a real digital controller makes the
    estimated mass too small (see `PositionController`). Use `Windows` if this error is relevant.

    **Arguments:** `controllers`: drive -> `PositionController`; `measured_start` (True by default)
    and `cutoff` are as for `FreeRun`.

    A servo follows a slow sine. The lag of the servo depends on its friction:

    >>> import frictax as fx, jax.numpy as jnp, numpy as np
    >>> def servo(F, reference):
    ...     return fx.Mechanism(
    ...         mass=fx.Mass(m=1.0),
    ...         friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=F)),
    ...         drive=fx.PositionController("mass", reference, 20.0, 40.0),
    ...     )
    >>> t = np.linspace(0.0, 2.0, 401)
    >>> asked = np.sin(3.0 * t)

    >>> seen = fx.simulate(servo(5.0, fx.Sampled(t, asked)), t)["mass"].s
    >>> seen = np.asarray(seen) + 1e-4 * np.random.default_rng(0).standard_normal(401)
    >>> record = fx.Record(t, {"drive": asked}, {"mass.s": seen})
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 0.0),
    ... )
    >>> loop = fx.ClosedLoop({"drive": fx.PositionController("mass", 0.0, 20.0, 40.0)})
    >>> found = fx.fit(block, record, free=["friction.f_pos.F_Coulomb"], objective=loop)
    >>> round(float(found.values["friction.f_pos.F_Coulomb"]), 2)
    4.99
    """

    controllers: dict[str, PositionController]
    measured_start: bool = static(default=True)
    cutoff: float | None = static(default=None)

    def __post_init__(self) -> None:
        if self.cutoff is not None:
            check_positive(self, "cutoff", "Hz")
        check_bool(self, "measured_start")
        if not isinstance(self.controllers, Mapping):
            raise ValueError(
                "`ClosedLoop.controllers` must be a dict of drive -> controller, got a"
                f' {type(self.controllers).__name__}. Write ClosedLoop({{"drive":'
                " PositionController(...)})."
            )
        if not self.controllers:
            raise ValueError(
                "`ClosedLoop.controllers` must hold a controller, got none. Write"
                ' ClosedLoop({"drive": PositionController(...)}), or take `FreeRun()`.'
            )
        for name, part in self.controllers.items():
            if not isinstance(part, PositionController):
                raise ValueError(
                    f"`ClosedLoop.controllers` must hold controllers, got {part!r} for {name!r}."
                    " Write PositionController(...)."
                )

    def drives(self) -> tuple[str, ...]:
        return tuple(self.controllers)

    def machine(self, model: Model) -> Model | Mechanism:
        if not isinstance(model, Mechanism):
            raise ValueError(
                "`ClosedLoop` needs a `Mechanism`. Write the controller into a machine of your own,"
                " and use `FreeRun`."
            )
        for name in self.controllers:
            model[name]  # raises an error for an unknown part
        return Mechanism(**{**dict(model.named_parts()), **self.controllers})

    def prepare(self, machine: Machine, record: Record) -> PreparedRecord:
        if record.hold_is_chosen:
            record = replace_fields(record, hold=False)  # a reference is interpolated linearly
        if record.hold:
            raise ValueError(
                f"Record {record.name!r} holds its inputs between samples, and a reference that"
                " changes in steps causes force peaks in a controller without delay. Read it with"
                " hold=False for `ClosedLoop`."
            )
        return FreeRun(self.measured_start, self.cutoff).prepare(machine, record)

    def runs(self, *asked: Any) -> tuple[Array, Course]:
        return FreeRun(self.measured_start, self.cutoff).runs(*asked)


@pytree_dataclass
class Windows(AbstractSimulation):
    """An objective that simulates each window of the record separately (multiple shooting). A
    window starts from the smoothed measurement at its first sample.

    Windows are better conditioned than a free run, because errors accumulate only within a window.
    The filter rounds kinks of the motion, so the initial states have an error. The error is
    computed for the motion that the first search predicts, and a second search uses corrected
    initial states. The cost excludes the first sample of a window, samples after a gap, and samples
    of a delayed sensor that show the motion before the window. An error of an initial state affects
    the whole window. Therefore the intervals (noise model `Guarded`) use the scatter between
    windows.

    **Arguments:** `length`: length of a window [s]; `cutoff` [Hz]: cutoff of the zero-phase filter
    for the initial states. The default for each output is the frequency above which there is more
    noise than motion. This default cutoff minimises the error of the initial states. `free_starts`:
    option to estimate the initial states with the parameters, each from its own window. With
    `free_starts`, the first samples count too.

    **Source:** H. G. Bock, "Recent advances in parameter identification techniques for O.D.E.",
    1983 (multiple shooting).

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 2.0, 401)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 2.0),
    ... )
    >>> noise = 0.01 * np.random.default_rng(0).standard_normal(401)
    >>> record = fx.Record(t, outputs={"mass.v": 0.3 + 0.75 * t + noise})
    >>> found = fx.fit(
    ...     block,
    ...     record,
    ...     free=["friction.f_pos.F_Coulomb"],
    ...     objective=fx.Windows(length=0.25, free_starts=True),
    ... )
    >>> round(float(found.values["friction.f_pos.F_Coulomb"]), 2), found.x.size
    (1.25, 17)
    """

    length: float = static(default=0.5)
    cutoff: float | None = static(default=None)
    free_starts: bool = static(default=False)

    def __post_init__(self) -> None:
        check_positive(self, "length", "s")
        if self.cutoff is not None:
            check_positive(self, "cutoff", "Hz")
        check_bool(self, "free_starts")

    def prepare(self, machine: Machine, record: Record) -> PreparedRecord:
        check_no_bristle(machine, "Windows")
        check_no_ticks(record, "Windows")
        size = int(round(self.length * record.rate)) + 1
        count = (record.n - 1) // max(size - 1, 1)
        if size < 3 or count < 1:
            raise ValueError(
                f"`Windows.length` must hold at least 2 steps and fit in record {record.name!r}"
                f" ({record.duration:g} s at {record.rate:g} Hz), got {self.length:g} s. Give a"
                f" length between {2 / record.rate:g} and {record.duration:g} s."
            )
        rows = (size - 1) * np.arange(count)[:, None] + np.arange(size)
        measured, weight = (x[rows] for x in channels(record))
        if not self.free_starts:
            weight[:, 0] = 0.0
        # Samples after a gap get the weight 0, because the window crosses the gap in one step.
        after = np.zeros(rows.shape, bool)
        for i, _ in OnSamples().over_gaps(record.t).finer:
            after |= (rows > i) & (rows[:, :1] <= i)
        weight[after] = 0.0
        clean = replace_fields(record, outputs=without_glitches(record))
        cutoffs = cutoffs_of(clean, self.cutoff)
        known = known_states(machine, clean, cutoffs)
        return prepared_record(
            record,
            measured,
            weight,
            {name: x[rows[:, 0]] for name, x in known.items()},
            rows,
            known,
            cutoffs=cutoffs,
        )

    def runs(
        self, setup: Setup, prepared: PreparedRecord, engine: Any, delayed: frozenset[str]
    ) -> tuple[Array, Course]:
        given, times = acting(setup, prepared, delayed), jnp.asarray(prepared.t)

        def window(
            rows: Numbers, start: Mapping[str, Numbers], measured: Numbers
        ) -> tuple[Array, tuple[Array, Course]]:
            t = times[rows]
            system = driven(
                setup.machine, t, {name: x[rows] for name, x in given.items()}, prepared.hold
            )
            values, course, end = simulate_variables(system, t, prepared.names, engine, start)
            return end, (
                apply_sensors(setup, prepared.names, t, values, times[0], delayed, measured),
                course,
            )

        assert prepared.rows is not None
        assert prepared.goes_on is not None
        names, measured = state_names(setup.machine), jnp.asarray(prepared.measured)
        begins = {
            name: jnp.asarray(x)
            for name, x in (
                prepared.start if self.free_starts else measured_starts(setup, prepared, delayed)
            ).items()
        }
        if not in_turn():
            return jax.vmap(window)(prepared.rows, begins, measured)[1]

        def after(
            end: Array, at: tuple[Numbers, Any, Mapping[str, Numbers], Numbers]
        ) -> tuple[Array, tuple[Array, Course]]:
            rows, goes_on, start, measured = at
            end, out = window(
                rows,
                {name: jnp.where(goes_on, end[names.index(name)], x) for name, x in start.items()},
                measured,
            )
            return end[: len(names)], out

        # JAX traces the scan only once if the initial carry depends on all parameters.
        floats = jax.tree.leaves(eqx.filter(setup, eqx.is_inexact_array))
        nought = 0.0 * sum(
            (jnp.sum(jnp.where(jnp.isfinite(x), x, 0.0)) for x in floats), start=jnp.zeros(())
        )
        each = jnp.asarray(prepared.rows), jnp.asarray(prepared.goes_on), begins, measured
        return jax.lax.scan(after, jnp.zeros(len(names)) + nought, each)[1]

    def fits_starts(self) -> bool:
        return self.free_starts


def in_turn() -> bool:
    """Return True if windows are simulated one after the other. On a CPU this is 3 to 5 times as
    fast as simulating all windows at once.
    """
    return jax.default_backend() == "cpu"


# Largest factor by which corrected initial states of windows may increase the sum of squares. With
# a larger increase, the result of the first search is used.
LARGEST_RISE = 1.05


def without_rounding(problem: Problem, x: Float[np.ndarray, " p"]) -> Problem:
    """Return the problem with corrected initial states of its windows. Return `problem` itself if
    no initial state is read from a record, or if the simulation of a window fails.

    The filter rounds kinks at reversals, breakaways and steps of drives, and finite differences
    reduce the amplitude of fast motion. The resulting error of the initial states is systematic, so
    a comparison of windows does not show it. This error is computed for the motion that `problem`
    predicts at the values `x`, and subtracted from the initial states that were read from the
    record.
    """
    objective = problem.objective
    if not isinstance(objective, Windows) or objective.free_starts:
        return problem
    prepared = list(problem.prepared)
    names = state_names(problem.setup.machine)
    for i, one in enumerate(problem.prepared):
        if not isinstance(one, PreparedRecord):
            continue
        states = np.asarray(simulate_channels(problem, x, i, names)[0])
        if not np.isfinite(states).all():
            return problem
        setup, rows, known = problem.setup_at(jnp.asarray(x), i), one.rows, dict(one.known)
        assert rows is not None
        t = np.asarray(one.t)[: int(rows[-1, -1]) + 1]
        for name in names:
            of, order = seen_in(name, one.names)
            if order < 0 or of not in names:
                continue
            rate = related_channel(of, VELOCITY_OF)
            value = states[..., names.index(of)]
            slope = states[..., names.index(rate)] if rate in names else np.zeros_like(value)
            # Join the windows to one motion: add a cubic to each window, so that it begins with the
            # value and slope at the end of the previous window. The cubic and its slope are 0 at
            # the end of the window.
            times = np.asarray(one.t)[rows]
            length = times[:, -1:] - times[:, :1]
            u = (times - times[:, :1]) / length
            jump, turn = (np.zeros((len(times), 1)) for _ in range(2))
            jump[1:, 0], turn[1:, 0] = value[:-1, -1] - value[1:, 0], slope[:-1, -1] - slope[1:, 0]
            turn *= length
            value = value + (1 - u) ** 2 * (jump * (1 + 2 * u) + turn * u)
            slope = slope + (1 - u) * (turn * (1 - 3 * u) - 6 * jump * u) / length
            value, slope = (np.append(np.ravel(a[:, :-1]), a[-1, -1]) for a in (value, slope))
            read = smooth(t, value, float(one.cutoffs[of]))
            bias = read.v - slope if order else read.x - value
            if f"outputs.{of}" in problem.delayed:
                bias = np.interp(t - float(setup.outputs.at(of).delay), t, bias)
            left = np.array(known[name])
            left[: t.size] -= float(setup.outputs.at(of).gain) * bias
            known[name] = left
        start = {name: known[name][rows[:, 0]] for name in one.start}
        prepared[i] = eqx.tree_at(lambda p: (p.known, p.start), one, (known, start))
    return dataclasses.replace(problem, prepared=tuple(prepared))


@cached_jit
def simulate_channels(
    problem: Problem, x: Float[Numbers, " p"], i: int, names: tuple[str, ...]
) -> tuple[Float[Array, "*w k c"]]:
    """Return the variables `names` of the machine, without sensors, at the samples of record number
    i. Windows start from the measured states.
    """
    prepared, setup = problem.prepared[i], problem.setup_at(jnp.asarray(x), i)
    assert isinstance(prepared, PreparedRecord)
    objective = problem.objective
    if isinstance(objective, Windows):
        starts = measured_starts(setup, prepared, problem.delayed)
        prepared = dataclasses.replace(prepared, start=starts)
        objective = dataclasses.replace(objective, free_starts=True)
    nothing = np.zeros((*np.shape(prepared.weight)[:-1], len(names)))
    asked = dataclasses.replace(
        prepared, names=names, measured=nothing, weight=nothing, floating=()
    )
    setup = dataclasses.replace(setup, outputs=Named.from_dict(dict.fromkeys(names, perfect())))
    late = frozenset(n for n in problem.delayed if n.startswith("inputs."))
    return (objective.predict(setup, asked, problem.engine, late),)
