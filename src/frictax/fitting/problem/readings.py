"""Functions that read quantities from a record: initial states, inputs as they act on the machine,
and outputs as sensors record them.
"""

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.engine import OnSamples
from frictax.engine.options import Engine
from frictax.measurements import Record
from frictax.measurements.filters import smooth
from frictax.measurements.noise import cutoff_of
from frictax.measurements.units import POSITION_OF, VELOCITY_OF, related_channel
from frictax.mechanism import Mechanism
from frictax.mechanism.mechanism import Machine
from frictax.parameters import Numbers, get, is_traced
from frictax.parameters.arrays import constant

from .objectives import PreparedRecord
from .setup import Setup, perfect, state_names

Prepared = TypeVar("Prepared")
# Highest cutoff frequency / sampling rate of a filter, just below the Nyquist limit of 0.5.
LARGEST_CUTOFF = 0.45
_BENT = re.compile(r"\.(f|tau)_z(\[\d+\])?$")


def allowed_cutoff(record: Record, cutoff: float | None = None) -> float:
    """Return the cutoff frequency [Hz] of a filter for the outputs of a record: `cutoff`, or the
    highest possible cutoff if that is lower. The default is 50 Hz, or four periods per record if
    the record is shorter than 80 ms.
    """
    cutoff = max(50.0, 4.0 / record.duration) if cutoff is None else cutoff
    # `smooth` uses the mean sampling rate, which gaps lower; `rate` is from the median time step.
    return min(cutoff, LARGEST_CUTOFF * min(record.rate, (record.n - 1) / record.duration))


def dividing(engine: Engine | None, prepared: PreparedRecord) -> Any:
    """Return `engine` with time steps of the usual length inside gaps between samples."""
    if not prepared.finer or not isinstance(engine, OnSamples):
        return engine
    return dataclasses.replace(engine, finer=prepared.finer)


def divide_gaps(prepared: Prepared, engine: Engine | None) -> Prepared:
    """Return `prepared` with `finer`, the number of usual time steps in each gap of the record, if
    the engine uses fixed time steps. Records with different gaps need separate compiled programs.
    """
    if (
        not isinstance(prepared, PreparedRecord)
        or prepared.rows is not None
        or not isinstance(engine, OnSamples)
        or (engine.tolerance is not None and engine.solver is None)
    ):
        return prepared
    return dataclasses.replace(prepared, finer=engine.over_gaps(np.asarray(prepared.t)).finer)


def acting(setup: Setup, prepared: PreparedRecord, delayed: frozenset[str]) -> dict[str, Array]:
    """Return a dict from input to its samples as they act on the machine (see `Instrument`)."""
    return {
        name: setup.inputs.at(name)(prepared.t, x, prepared.t[0], f"inputs.{name}" in delayed)
        for name, x in prepared.inputs.items()
    }


def apply_sensors(
    setup: Setup,
    names: tuple[str, ...],
    t: Numbers,
    values: Array,
    t0,
    delayed: frozenset[str],
    measured: Numbers,
) -> Array:
    """Return the outputs as the sensors record them. A delayed sensor also records motion from
    before or after the simulation. At such a sample, return the measured value, so that the
    residual is 0. If the delay exceeds a quarter of the record, return the first or last simulated
    value instead.
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
    """Return a dict from state to its value at the start of each run, corrected for sensors."""
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
    """Return the state `name` (from `prepared.known`) at samples `rows` without the effects of the
    sensor. `of`: the channel from which this state is read. `order`: 0 if the state is the channel,
    1 or 2 for its time derivative, -1 for its integral from the machine's initial value.
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
    """Return the channel that measures state `name`, and its order (see `invert_sensor`)."""
    if name in channels:
        return name, 0
    velocity = related_channel(name, VELOCITY_OF)
    return (
        (velocity, -1)
        if velocity is not None and velocity in channels
        else (related_channel(name, POSITION_OF) or name, 1)
    )


def integral(t: Float[np.ndarray, " n"], x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the integral of `x` over time, from 0."""
    return np.concatenate([[0.0], np.cumsum(0.5 * (x[1:] + x[:-1]) * np.diff(t))])


def prepared_record(
    record: Record,
    measured: Any,
    weight: Any,
    start: Mapping[str, Any],
    rows: Any = None,
    known: Any = None,
    names: Any = None,
    cutoffs: Mapping[str, float] | None = None,
) -> PreparedRecord:
    array = lambda x: np.asarray(x, dtype=float)  # noqa: E731
    inputs: dict[str, Numbers] = {name: array(x) for name, x in record.inputs.items()}
    known = {name: array(x) for name, x in (known or {}).items()}
    start = {name: array(x) for name, x in start.items()}
    goes_on = None if rows is None else np.zeros(len(rows), bool)
    names = tuple(names or record.outputs)
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
        (),
        {name: array(f) for name, f in (cutoffs or {}).items()},
        tick_noise={name: array(sd) for name, sd in tick_noise(record).items()},
        outputs=tuple(record.outputs),
    )


def tick_noise(record: Record) -> dict[str, float]:
    """Return the standard deviation of the tick times [s] of each encoder output without `sd`."""
    return {name: one.noise for name, one in record.ticks.items() if record.sd.get(name) is None}


def starting_values(machine: Machine, record: Record, states: Sequence[str]) -> dict[str, float]:
    """Return the machine's initial values of some of its `states`; nan if JAX traces a value."""
    if isinstance(machine, Mechanism):
        start = {name: get(machine, name) for name in states}
    else:
        names, at = state_names(machine), machine.start(jnp.asarray(record.t[0]))[0]
        start = {name: at[names.index(name)] for name in states}
    return {n: np.nan if is_traced(x) else float(x) for n, x in start.items()}


def check_no_ticks(record: Record, objective: str) -> None:
    """Raise `ValueError` if an output has errors in time (ticks), which `objective` ignores."""
    for name in tick_noise(record):
        raise ValueError(
            f"`{objective}` needs outputs at the times of a clock: {name!r} of record"
            f" {record.name!r} has one sample for each step of a position. Take `FreeRun()`, or"
            f" give the sd of the position, sd={{{name!r}: ...}}, if the positions err."
        )


def channels(record: Record) -> tuple[np.ndarray, np.ndarray]:
    """Return the measured values and their weights (1/sd), one column for each output."""
    measured = np.stack(list(record.outputs.values()), axis=1)
    sd: list[Any] = [
        record.ticks[name].speed if name in tick_noise(record) else record.sd.get(name)
        for name in record.outputs
    ]
    return measured, np.stack(
        [np.broadcast_to(1.0 / np.asarray(1.0 if s is None else s), record.n) for s in sd], axis=1
    )


def cutoffs_of(record: Record, cutoff: float | None) -> dict[str, float]:
    """Return the cutoff frequency of the filter of each output [Hz]: `cutoff`, or the frequency
    above which there is less motion than noise. For a position output, the motion and the noise in
    the velocity are compared.
    """
    return {
        name: allowed_cutoff(
            record,
            cutoff or cutoff_of(record.t, x, int(related_channel(name, VELOCITY_OF) is not None)),
        )
        for name, x in record.outputs.items()
    }


def smoothed_state(record: Record, name: str, cutoffs: Mapping[str, float]) -> Any:
    """Return the state `name` at each sample (n,), from the output of the state or of the
    corresponding position. Return None if the record measures neither.
    """
    for of, order in ((name, "x"), (related_channel(name, POSITION_OF), "v")):
        if of in record.ticks:
            forward = np.sign(record.outputs[of][-1] - record.outputs[of][0])
            return record.outputs[of] if order == "x" else forward * record.ticks[of].speed
        if of in record.outputs:
            return getattr(smooth(record.t, record.outputs[of], cutoffs[of]), order)
    return None


def known_states(
    machine: Machine, record: Record, cutoffs: Mapping[str, float]
) -> dict[str, np.ndarray]:
    """Return the states of the machine at each sample, from the smoothed measurement. Bristle
    states are left out, because no record measures them.
    """
    names, out = state_names(machine), {}
    for name in names:
        if isinstance(machine, Mechanism) and _BENT.search(name):
            continue
        of, rate = related_channel(name, POSITION_OF), related_channel(name, VELOCITY_OF)
        found = smoothed_state(record, name, cutoffs)
        if found is not None:
            out[name] = found
        elif rate in record.outputs and isinstance(machine, Mechanism):
            out[name] = integral(record.t, smoothed_state(record, rate, cutoffs))
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
