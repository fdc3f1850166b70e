"""Objectives that simulate: the whole record in one run, or cut in windows."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from frictax.engine import OnSamples
from frictax.engine.options import Engine
from frictax.measurements import Record
from frictax.measurements.noise import without_glitches
from frictax.measurements.record import replace_fields
from frictax.mechanism import Mechanism, PositionController
from frictax.mechanism.mechanism import Machine
from frictax.parameters import Numbers
from frictax.pytree import pytree_dataclass, static

from .objectives import AbstractSimulation, Model, PreparedRecord, check_bool, check_positive
from .readings import (
    acting,
    channels,
    check_no_ticks,
    cutoffs_of,
    dividing,
    known_states,
    measured_starts,
    prepared_record,
    recorded,
    starting_values,
)
from .setup import Course, Setup, check_no_bristle, driven, simulated, state_names


@pytree_dataclass
class FreeRun(AbstractSimulation):
    """The whole record in one run under its inputs: nothing measured is fed back.

    The severest judge and, as a criterion to fit on, the worst conditioned: errors of force add up
    to errors of position. Fit few parameters on it, or take `Windows` and use the free run as a
    score.

    **Arguments:** `measured_start`: whether bodies start where the record says, after smoothing at
    `cutoff` [Hz]; else, as the model says (then positions and speeds at the start can be fitted:
    ``free=["mass.s", "mass.v"]``).

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
    cutoff: float = static(default=50.0)

    def __post_init__(self) -> None:
        check_positive(self, "cutoff", "Hz")
        check_bool(self, "measured_start")

    def prepare(self, machine: Machine, record: Record) -> PreparedRecord:
        measured, weight = channels(record)
        clean = (
            replace_fields(record, outputs=without_glitches(record))
            if self.measured_start
            else record
        )
        cutoffs = cutoffs_of(clean, self.cutoff) if self.measured_start else {}
        known = known_states(machine, clean, cutoffs) if self.measured_start else {}
        start = {name: x[0] for name, x in known.items()}
        prepared = prepared_record(record, measured, weight, start, known=known, cutoffs=cutoffs)
        begins = starting_values(machine, record, tuple(prepared.tick_noise))
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
        values, course, _ = simulated(
            system,
            prepared.t,
            prepared.names,
            dividing(engine, prepared),
            measured_starts(setup, prepared, delayed),
        )
        shown = recorded(
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
    """A free run with known controllers in the place of drives: the record's input under a drive's
    name is then its reference.

    The controller holds the machine near the measured motion, so that errors do not add up. It acts
    without delay: the delay of a digital one is put down to the machine, whose mass is found too
    small (see `PositionController`). Take `Windows` where that matters.

    **Arguments:** `controllers`: drive -> `PositionController`; `measured_start`, `cutoff` as for
    `FreeRun`.

    A servo follows a slow sine; how much friction it has shows in how far it lags:

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
    cutoff: float = static(default=50.0)

    def __post_init__(self) -> None:
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
            model[name]  # raises for a name that no part has
        return Mechanism(**{**dict(model.named_parts()), **self.controllers})

    def prepare(self, machine: Machine, record: Record) -> PreparedRecord:
        if record.hold_is_chosen:
            record = replace_fields(record, hold=False)  # a reference moves on between samples
        if record.hold:
            raise ValueError(
                f"Record {record.name!r} holds its inputs between samples, and a reference that"
                " moves in steps makes a controller without delay jerk. Read it with hold=False"
                " for `ClosedLoop`."
            )
        return FreeRun(self.measured_start, self.cutoff).prepare(machine, record)

    def runs(self, *asked: Any) -> tuple[Array, Course]:
        return FreeRun(self.measured_start, self.cutoff).runs(*asked)


@pytree_dataclass
class Windows(AbstractSimulation):
    """The record cut in windows, each a run of its own from the smoothed measurement; all are
    simulated in one program (multiple shooting).

    Well conditioned where a free run is not, and what is fitted is friction and not the sum of all
    errors since the start. A filter rounds kinks of a motion; so a second search begins where the
    first ends, with what the filter does to the motion found there taken off the starts. Of each
    window the first sample is not counted, since the run starts there, nor what a delayed sensor
    shows of the time before, nor what comes after a gap. Intervals compare windows (`Guarded`): an
    error of a start lasts for its window.

    **Arguments:** `length` of a window [s]; `cutoff` [Hz] of the zero-phase filter that the starts
    are read from (left out: of each output where it is noise more than motion, so that starts are
    off least by noise and by the filter together); `free_starts`: whether the starts are found with
    the parameters, each from its own window, instead of being trusted. Then the first samples count
    too.

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
        # what comes after a gap, over which a window is led by one step
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
            values, course, end = simulated(system, t, prepared.names, engine, start)
            return end, (
                recorded(setup, prepared.names, t, values, times[0], delayed, measured),
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

        # What is handed on has derivatives, and JAX is spared tracing all twice to find that out.
        floats = jax.tree.leaves(eqx.filter(setup, eqx.is_inexact_array))
        nought = 0.0 * sum(
            (jnp.sum(jnp.where(jnp.isfinite(x), x, 0.0)) for x in floats), start=jnp.zeros(())
        )
        each = jnp.asarray(prepared.rows), jnp.asarray(prepared.goes_on), begins, measured
        return jax.lax.scan(after, jnp.zeros(len(names)) + nought, each)[1]

    def fits_starts(self) -> bool:
        return self.free_starts


def in_turn() -> bool:
    """Whether windows are simulated one after the other: on a processor, 3 to 5 times as fast as
    side by side.
    """
    return jax.default_backend() == "cpu"
