"""What a fit compares with a record, and from where."""

import abc
import dataclasses
import functools
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from frictax.engine import OnSamples, Result
from frictax.engine.options import Engine
from frictax.measurements import Record
from frictax.measurements.filters import smooth
from frictax.measurements.units import POSITION_OF, VELOCITY_OF
from frictax.mechanism import Mechanism, PositionController
from frictax.mechanism.mechanism import Machine
from frictax.parameters import Numbers, get
from frictax.parameters.constant import constant
from frictax.pytree import pytree_dataclass, static

from .sensors import perfect
from .setup import Course, Setup, driven, simulated, state_names

# of a record's rate: a filter that still passes something, and takes something away
LARGEST_CUTOFF = 0.45


Predicted = Float[Array, "*w k c"]


@pytree_dataclass
class PreparedRecord:
    """A record as arrays, ready for its objective.

    - `t` (n,), `inputs`; `rows`: numbers of the samples of each window (w, k), or None for the
      record in one piece.
    - `measured`, `weight` (..., c): what the predictions are compared with, and 1/sd; 0 leaves a
      value out.
    - `known`: states over the record, as smoothed sensors have them, with derivatives where the
      objective needs these.
    - `start`: which states a run or each window starts from, with what the sensors have of them
      there.
    - `goes_on` (w,): whether a window begins where the one before has ended, instead.
    - `finer`: of a run in one piece, how its steps are divided over gaps.
    """

    t: Float[Numbers, " n"]
    inputs: dict[str, Numbers]
    measured: Float[Numbers, "*w k c"]
    weight: Float[Numbers, "*w k c"]
    start: dict[str, Numbers]
    known: dict[str, Numbers]
    rows: Int[Numbers, "w k"] | None
    goes_on: Bool[Numbers, " w"] | None
    names: tuple[str, ...] = static()
    hold: bool = static()
    finer: tuple[tuple[int, int], ...] = static()

    def predicted(
        self,
        setup: Setup,
        objective: "AbstractObjective",
        engine: Engine | None,
        delayed: frozenset[str],
    ) -> Predicted:
        """What stands against `measured`."""
        return objective.predict(setup, self, engine, delayed)

    def samples(self) -> Int[np.ndarray, "*w k c"]:
        """The number of the record's sample that each value belongs to."""
        rows = np.arange(np.shape(self.weight)[0]) if self.rows is None else np.asarray(self.rows)
        return np.broadcast_to(rows[..., None], np.shape(self.weight))


Model = TypeVar("Model", bound=eqx.Module)


class AbstractObjective(abc.ABC):
    """How the parameters of a machine are judged by a record."""

    @abc.abstractmethod
    def prepare(self, machine: Machine, record: Record) -> PreparedRecord:
        """What can be made ready before the search; raises `ValueError` where the record does not
        hold what is needed.
        """

    @abc.abstractmethod
    def predict(
        self, setup: Setup, prepared: PreparedRecord, engine: Engine | None, delayed: frozenset[str]
    ) -> Predicted:
        """What stands against `prepared.measured`; not finite where a run failed.

        To be compiled and differentiated.
        """

    def result(
        self, setup: Setup, prepared: PreparedRecord, engine: Engine | None, delayed: frozenset[str]
    ) -> PyTree:
        """How the run of `predict` ends; of several, the first that fails."""
        return Result.successful

    def machine(self, model: Model) -> Model:
        """The machine that is simulated in place of `model`."""
        return model

    def fits_starts(self) -> bool:
        """Whether the search moves what `PreparedRecord.start` holds, an entry for each window."""
        return False

    def drives(self) -> tuple[str, ...]:
        """The drives in whose place it puts controllers, so that the record's inputs under their
        names are references.
        """
        return ()

    def in_units_of_outputs(self) -> bool:
        """Whether residuals are those of the record's outputs, weighed by their standard
        deviations.
        """
        return True


class AbstractSimulation(AbstractObjective):
    """An objective that simulates."""

    @abc.abstractmethod
    def runs(
        self, setup: Setup, prepared: PreparedRecord, engine: Engine | None, delayed: frozenset[str]
    ) -> tuple[Array, Course]:
        """What `predict` gives, and how each run went."""

    def predict(self, *asked: Any) -> Predicted:
        return self.runs(*asked)[0]

    def result(self, *asked: Any) -> PyTree:
        results = self.runs(*asked)[1].result
        first = jnp.argmax(jnp.ravel(results != Result.successful))
        return jax.tree.map(lambda a: jnp.ravel(a)[first], results)


@pytree_dataclass
class Steady(AbstractObjective):
    """Forces at steady speeds, read off a friction law: how a sweep judges it.

    Nothing is simulated.
    """

    def prepare(self, machine: Machine, record: Record) -> PreparedRecord:
        raise ValueError(
            f"`Steady` is for sweeps, and {record.name!r} is a record of a motion. Take `FreeRun()`"
            " or `Windows()`."
        )

    def predict(self, *asked: Any) -> Predicted:
        raise NotImplementedError

    def in_units_of_outputs(self) -> bool:
        return False


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
        measured, weight = _channels(record)
        known = _states(machine, record, self.cutoff) if self.measured_start else {}
        return prepared_record(
            record, measured, weight, {name: x[0] for name, x in known.items()}, known=known
        )

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
        return (
            _recorded(
                setup, prepared.names, prepared.t, values, prepared.t[0], delayed, prepared.measured
            ),
            course,
        )


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
    are read from; `free_starts`: whether the starts are found with the parameters, each from its
    own window, instead of being trusted. Then the first samples count too.

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
    cutoff: float = static(default=50.0)
    free_starts: bool = static(default=False)

    def __post_init__(self) -> None:
        check_positive(self, "length", "s")
        check_positive(self, "cutoff", "Hz")
        check_bool(self, "free_starts")

    def prepare(self, machine: Machine, record: Record) -> PreparedRecord:
        size = int(round(self.length * record.rate)) + 1
        count = (record.n - 1) // max(size - 1, 1)
        if size < 3 or count < 1:
            raise ValueError(
                f"`Windows.length` must hold at least 2 steps and fit in record {record.name!r}"
                f" ({record.duration:g} s at {record.rate:g} Hz), got {self.length:g} s. Give a"
                f" length between {2 / record.rate:g} and {record.duration:g} s."
            )
        rows = (size - 1) * np.arange(count)[:, None] + np.arange(size)
        measured, weight = (x[rows] for x in _channels(record))
        if not self.free_starts:
            weight[:, 0] = 0.0
        # what comes after a gap, over which a window is led by one step
        after = np.zeros(rows.shape, bool)
        for i, _ in OnSamples().over_gaps(record.t).finer:
            after |= (rows > i) & (rows[:, :1] <= i)
        weight[after] = 0.0
        known = _states(machine, record, self.cutoff)
        return prepared_record(
            record,
            measured,
            weight,
            {name: x[rows[:, 0]] for name, x in known.items()},
            rows,
            known,
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
                _recorded(setup, prepared.names, t, values, times[0], delayed, measured),
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


def dividing(engine: Engine | None, prepared: PreparedRecord) -> Any:
    """`engine` with steps no longer than usual where the record has a gap."""
    if not prepared.finer or not isinstance(engine, OnSamples):
        return engine
    return dataclasses.replace(engine, finer=prepared.finer)


def acting(setup: Setup, prepared: PreparedRecord, delayed: frozenset[str]) -> dict[str, Array]:
    """The inputs as they act on the machine."""
    return {
        name: setup.inputs.at(name)(prepared.t, x, prepared.t[0], f"inputs.{name}" in delayed)
        for name, x in prepared.inputs.items()
    }


def _recorded(
    setup: Setup,
    names: tuple[str, ...],
    t: Numbers,
    values: Array,
    t0,
    delayed: frozenset[str],
    measured: Numbers,
) -> Array:
    """The outputs as the sensors record them.

    What a delayed one shows of the time before the run or after it is what was measured, so that it
    does not count; of a delay of more than a quarter of the run, that of its first or last moment.
    """
    columns = []
    for i, name in enumerate(names):
        sensor, late = setup.outputs.at(name), f"outputs.{name}" in delayed
        shown = sensor(t, values[:, i], t0, late)
        if late:
            of = t - constant(sensor.delay)
            unknown = ((of < t[0]) | (of > t[-1])) & (
                jnp.abs(constant(sensor.delay)) <= 0.25 * (t[-1] - t[0])
            )
            shown = jnp.where(unknown & jnp.isfinite(shown), jnp.asarray(measured)[:, i], shown)
        columns.append(shown)
    return jnp.stack(columns, axis=1)


def measured_starts(
    setup: Setup, prepared: PreparedRecord, delayed: frozenset[str]
) -> dict[str, Array]:
    """The states in which the run or each window begins, without what sensors add to them."""
    rows = 0 if prepared.rows is None else prepared.rows[:, 0]
    return {
        name: invert_sensor(setup, prepared, name, *seen_in(name, prepared.names), rows, delayed)
        for name in prepared.start
    }


def invert_sensor(
    setup: Setup,
    prepared: PreparedRecord,
    name: str,
    of: str,
    order: int,
    rows: Any,
    delayed: frozenset[str],
) -> Array:
    """`prepared.known[name]` at the samples `rows`, read from channel `of` or its derivative of
    that `order`, without what its sensor adds; of order -1 its integral, from where the machine
    starts.
    """
    t, read = jnp.asarray(prepared.t), jnp.asarray(prepared.known[name])
    sensor, at = setup.outputs.at(of) if setup.outputs.has(of) else perfect(), t[rows]
    if f"outputs.{of}" in delayed:
        at = at + sensor.delay
        read = jnp.interp(at, t, read)
    else:
        read = read[rows]
    return jnp.asarray(sensor.invert(at, read, t[0], order)) + (
        get(setup.machine, name) if order < 0 else 0.0
    )


def seen_in(name: str, channels: Collection[str]) -> tuple[str, int]:
    """The channel that a state is read from, and as which derivative of it."""
    if name in channels:
        return name, 0
    velocity = sibling(name, VELOCITY_OF)
    return (
        (velocity, -1)
        if velocity is not None and velocity in channels
        else (sibling(name, POSITION_OF) or name, 1)
    )


def sibling(name: str, of: Mapping[str, str]) -> str | None:
    """The position of which the state `name` is the velocity, or the other way; None where it is
    none.
    """
    body, dot, variable = name.rpartition(".")
    return f"{body}{dot}{of[variable]}" if variable in of else None


def integral(t: Float[np.ndarray, " n"], x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Of `x` over time, from 0."""
    return np.concatenate([[0.0], np.cumsum(0.5 * (x[1:] + x[:-1]) * np.diff(t))])


def prepared_record(
    record: Record,
    measured: Any,
    weight: Any,
    start: Mapping[str, Any],
    rows: Any = None,
    known: Any = None,
    names: Any = None,
) -> PreparedRecord:
    array = lambda x: np.asarray(x, dtype=float)  # noqa: E731
    inputs: dict[str, Numbers] = {name: array(x) for name, x in record.inputs.items()}
    known = {name: array(x) for name, x in (known or {}).items()}
    start = {name: array(x) for name, x in start.items()}
    goes_on = None if rows is None else np.zeros(len(rows), bool)
    names = tuple(names or record.outputs)
    finer = _usual().over_gaps(record.t).finer if rows is None else ()
    return PreparedRecord(
        array(record.t),
        inputs,
        array(measured),
        array(weight),
        start,
        known,
        rows,
        goes_on,
        names,
        record.hold,
        finer,
    )


@functools.cache
def _usual() -> OnSamples:
    return OnSamples()


def _channels(record: Record) -> tuple[np.ndarray, np.ndarray]:
    """Measured values and their weights, a column a channel."""
    measured = np.stack(list(record.outputs.values()), axis=1)
    sd: list[Any] = [record.sd.get(name) for name in record.outputs]
    return measured, np.stack(
        [np.broadcast_to(1.0 / np.asarray(1.0 if s is None else s), record.n) for s in sd], axis=1
    )


def smoothed_state(record: Record, name: str, cutoff: float) -> Any:
    """The state `name` over the record, (n,), where that measures it or its position; else None."""
    cutoff = min(cutoff, LARGEST_CUTOFF * record.rate)
    for of, order in ((name, "x"), (sibling(name, POSITION_OF), "v")):
        if of in record.outputs:
            return getattr(smooth(record.t, record.outputs[of], cutoff), order)
    return None


def _states(machine: Machine, record: Record, cutoff: float) -> dict[str, np.ndarray]:
    """The states of the machine over the record, from the smoothed measurement."""
    names, out = state_names(machine), {}
    for name in names:
        of, rate = sibling(name, POSITION_OF), sibling(name, VELOCITY_OF)
        found = smoothed_state(record, name, cutoff)
        if found is not None:
            out[name] = found
        elif rate in record.outputs and isinstance(machine, Mechanism):
            out[name] = integral(record.t, smoothed_state(record, rate, cutoff))
        else:
            other = f" or {of or rate!r}" if of or rate else ""
            raise ValueError(
                f"Record {record.name!r} must measure {name!r}{other}, from which the runs start;"
                f" it measures {', '.join(record.outputs)}. Take `FreeRun()`, which starts from the"
                " model's own values."
            )
    if not names:
        raise ValueError(
            f"`{type(machine).__name__}` must say which variables its states are before runs can"
            " start from a measurement: write `states(self)`."
        )
    return out


def check_bool(objective: Any, field: str) -> None:
    value = getattr(objective, field)
    if not isinstance(value, bool):
        raise ValueError(
            f"`{type(objective).__name__}.{field}` must be True or False, got {value!r}. Leave it"
            " out for the usual."
        )


def check_positive(objective: Any, field: str, unit: str) -> None:
    value = getattr(objective, field)
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not (np.isfinite(value) and value > 0)
    ):
        raise ValueError(
            f"`{type(objective).__name__}.{field}` must be a number > 0 [{unit}], got {value!r}."
        )
