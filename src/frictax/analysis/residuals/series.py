"""Residuals for a residual study: forces that the model lacks, or residuals of the objective."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.fitting import FitResult, InverseDynamics
from frictax.fitting.problem.inverse_dynamics import heated_node
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.fitting.problem.readings import acting, allowed_cutoff, integral, prepared_record
from frictax.fitting.problem.setup import Named, Setup, channel_unit, driven, perfect, state_names
from frictax.measurements import Record
from frictax.measurements.filters import smooth
from frictax.mechanism import AbstractAxis, MechanicalSystem, Mechanism
from frictax.parameters import Numbers
from frictax.programs import interruptible_jit

from ..errors.linearization import Samples


@dataclasses.dataclass(frozen=True, eq=False)
class Series:
    """A residual over time, in the part of a record in which the machine moves.

    - `record`; `of`: the body on which a force is missing (if `is_force`), or the channel of the
      objective's residual; `unit` of this residual.
    - `t` [s], `e` [`unit`]: times and residual, (n,); `s`, `v`: position [m or rad] and velocity
      [m/s or rad/s] at these times, or None if the record does not contain them.
    - `place`: unit of the position, "m" or "rad"; `cutoff` [Hz] of the filter that was applied to
      `e`, inf without a filter; `in_time`: whether the samples are in order of time.
    """

    record: str
    of: str
    unit: str
    is_force: bool
    t: Float[np.ndarray, " n"]
    e: Float[np.ndarray, " n"]
    s: Float[np.ndarray, " n"] | None
    v: Float[np.ndarray, " n"] | None
    place: str
    cutoff: float
    in_time: bool = True

    @property
    def way(self) -> Float[np.ndarray, " n"]:
        """The direction of motion: 1, -1, or 0 at rest; 1 if the velocity is not recorded."""
        return np.ones(self.t.size) if self.v is None else np.sign(self.v)


def force_series(found: FitResult, label: str, cutoff: float | None) -> list[Series]:
    """Return the missing force on each body, m*a - (sum of forces), after a low-pass filter without
    phase shift. Samples within 1/cutoff of a standstill are left out, because the filter mixes the
    friction before and after the standstill. **Raises:** `ValueError` for an unknown force.
    """
    record, number = found.records[label], found.number(label)
    setup = found.problem.setup_at(jnp.asarray(found.x), number)
    cutoff = allowed_cutoff(record, cutoff)
    if isinstance(setup.machine, AbstractAxis):
        return [_axis_series(setup, record, label, cutoff)]
    if not isinstance(setup.machine, Mechanism):
        raise ValueError(f"a `{type(setup.machine).__name__}` does not say which force moves it")
    if node := heated_node(setup.machine):
        raise ValueError(f"the friction depends on the temperature of {node!r}, which changes")
    # Build a record of the position of each body. Fitted gains, offsets and delays of sensors are
    # removed. If only the speed is measured, the position is its integral.
    outputs = {name: _ideal_values(setup, record, name) for name in record.outputs}
    for i in MechanicalSystem(setup.machine).layout.bodies:
        body, part = setup.machine.names[i], setup.machine.parts[i]
        s, v = ("phi", "w") if part.rotational else ("s", "v")
        position, speed = f"{body}.{s}", f"{body}.{v}"
        if position in outputs:
            continue
        if speed not in outputs:
            raise ValueError(f"the record measures neither {position} nor {speed}")
        outputs[position] = float(getattr(part, s)) + integral(record.t, outputs[speed])
    seen = Record(record.t, record.inputs, outputs, hold=record.hold, name=record.name)
    objective = InverseDynamics(cutoff, v_min=0.0, at_samples=True)
    prepared = objective.prepare(setup.machine, seen)
    at_rest = {
        name: np.zeros_like(x) if name.endswith(".a") else x for name, x in prepared.known.items()
    }
    exact = Named.from_dict(dict.fromkeys(seen.outputs, perfect()))  # sensor errors are removed
    perfectly = dataclasses.replace(setup, outputs=exact)
    lacking = -np.asarray(_predict(objective, perfectly, prepared))
    prepared_at_rest = dataclasses.replace(prepared, known=at_rest)
    force = np.asarray(_predict(objective, perfectly, prepared_at_rest))
    out = []
    for c, name in enumerate(prepared.names):
        body = name.removeprefix("force on ")
        s, v = ("phi", "w") if f"{body}.phi" in prepared.known else ("s", "v")
        place = "rad" if s == "phi" else "m"
        x, speed = (np.asarray(prepared.known[f"{body}.{name}"]) for name in (s, v))
        e = lacking[:, c] + force[:, c] - _smooth_varying(record.t, force[:, c], cutoff)
        unit = "N.m" if place == "rad" else "N"
        series = Series(label, body, unit, True, record.t, e, x, speed, place, cutoff)
        out.append(_moving_part(series))
    return out


def channel_series(found: FitResult, label: str, cutoff: float | None) -> list[Series]:
    """Return a `Series` for each channel: residual of the objective, and motion of the body."""
    record, out = found.records[label], []
    cutoff = allowed_cutoff(record, cutoff)
    for name, at, e in left(found, label):
        body, dot, _ = name.removeprefix("force on ").rpartition(".")
        position = speed = None
        place = "m"
        for s, v, unit in (("s", "v", "m"), ("phi", "w", "rad")):
            of, rate = (
                None if x is None else smooth(record.t, x, cutoff)
                for x in (record.outputs.get(f"{body}{dot}{n}") for n in (s, v))
            )
            if of is not None or rate is not None:
                position, place = None if of is None else of.x[at], unit
                speed = rate.x[at] if rate is not None else of.v[at] if of is not None else None
        unit = channel_unit(found.model, record, name)
        series = Series(label, name, unit, False, record.t[at], e, position, speed, place, np.inf)
        out.append(_moving_part(series))
    return out


def sweep_series(found: FitResult, label: str) -> Series:
    """Return a sweep's residuals (measured - predicted) and velocities; `t` is the row index."""
    sweep = found.records[label]
    e = found.residuals[Samples(found.problem).record == found.number(label)]
    force, place = ("N.m", "rad") if sweep.rotational else ("N", "m")
    of = "the torque" if sweep.rotational else "the force"
    t = np.arange(sweep.n, dtype=float)
    return Series(label, of, force, False, t, e, None, sweep.velocity, place, np.inf, False)


def left(found: FitResult, label: str) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Return for each channel its name, the indices of its samples, and measured - predicted."""
    i = found.number(label)
    prepared, samples = found.problem.prepared[i], Samples(found.problem)
    assert isinstance(prepared, PreparedRecord)
    shape = np.shape(prepared.weight)
    at = samples.sample[samples.record == i].reshape(shape)
    apart = found.residuals[samples.record == i].reshape(shape)
    out = []
    for c, name in enumerate(prepared.names):
        counted = np.asarray(prepared.weight)[..., c] > 0
        out.append((name, at[..., c][counted], apart[..., c][counted]))
    return out


def _moving_part(whole: Series) -> Series:
    """Return the series without samples that a standstill or an end of the record affects through
    the filter. Also remove samples that add no information.
    """
    t, v, reach = whole.t, whole.v, 1.0 / whole.cutoff
    step = float(np.median(np.diff(t)))
    keep = np.ones(t.size, bool)
    edge = int(np.ceil(2 * reach / step)) if reach else 0
    if v is not None:
        slow = np.abs(v) < 0.01 * np.max(np.abs(v))
        slow |= np.concatenate([[False], np.sign(v[1:]) != np.sign(v[:-1])])
        near = int(np.ceil(reach / step))
        keep = np.convolve(slow, np.ones(2 * near + 1), "same")[: t.size] < 0.5 if near else ~slow
    keep[:edge] = keep[t.size - edge :] = False
    # Three samples per period of the cutoff frequency describe the filtered signal completely.
    # 12,000 samples are enough for a study.
    thin = max(int(reach / (3.0 * step)), int(np.ceil(t.size / 12_000)), 1)
    rows = np.flatnonzero(keep)[::thin]
    if rows.size < 40:
        raise ValueError(
            f"Record {whole.record!r} has only {rows.size} samples in which {whole.of!r} moves: too"
            " few to study. Record a longer motion."
        )
    samples = {name: getattr(whole, name) for name in ("t", "e", "s", "v")}
    return dataclasses.replace(
        whole, **{name: x if x is None else x[rows] for name, x in samples.items()}
    )


def _smooth_varying(t: np.ndarray, x: np.ndarray, cutoff: float) -> np.ndarray:
    return x if np.ptp(x) <= 1e-12 * np.max(np.abs(x), initial=1e-300) else smooth(t, x, cutoff).x


def _ideal_values(setup: Setup, record: Record, name: str) -> np.ndarray:
    """Return the values that an ideal sensor of channel `name` would have recorded."""
    sensor, t = setup.outputs.at(name), record.t
    x = (record.outputs[name] - float(sensor.offset) - float(sensor.drift) * (t - t[0])) / float(
        sensor.gain
    )
    return np.interp(t + float(sensor.delay), t, x) if float(sensor.delay) else x


@interruptible_jit
def _predict(objective: InverseDynamics, setup: Setup, prepared: PreparedRecord) -> Array:
    return objective.predict(
        setup, prepared, None, frozenset(f"inputs.{n}" for n in prepared.inputs)
    )


def _axis_series(setup: Setup, record: Record, label: str, cutoff: float) -> Series:
    """Return the missing force, inertia*a - load + friction, of a user's machine with one axis."""
    machine, names = setup.machine, state_names(setup.machine)
    s, v, more = names[0], names[1], names[2:]
    given = {name: _ideal_values(setup, record, name) for name in record.outputs}
    missing = [name for name in more if name not in given]
    if s not in given and v not in given or missing:
        raise ValueError(f"the record does not measure {(missing or [s])[0]}")
    x = (
        given[s]
        if s in given
        else float(machine.start(jnp.asarray(record.t[0]))[0][0]) + integral(record.t, given[v])
    )
    motion = smooth(record.t, x, cutoff)
    y = np.stack(
        [motion.x, motion.v, *(_smooth_varying(record.t, given[n], cutoff) for n in more)], axis=1
    )
    prepared = prepared_record(record, np.zeros((record.n, 1)), np.ones((record.n, 1)), {})
    inertia, net = (np.asarray(a) for a in _axis_forces(setup, prepared, y))
    e = inertia * motion.a - _smooth_varying(record.t, net, cutoff)
    body, _, last = s.rpartition(".")
    unit, place = ("N.m", "rad") if last == "phi" else ("N", "m")
    of = body or type(machine).__name__
    return _moving_part(
        Series(label, of, unit, True, record.t, e, motion.x, motion.v, place, cutoff)
    )


@interruptible_jit
def _axis_forces(
    setup: Setup, prepared: PreparedRecord, y: Float[Numbers, "n k"]
) -> tuple[Array, Array]:
    """Return inertia and load - friction at each sample; friction opposes the velocity."""
    machine = setup.machine
    system: Any = driven(
        machine,
        jnp.asarray(prepared.t),
        acting(setup, prepared, frozenset(f"inputs.{n}" for n in prepared.inputs)),
        prepared.hold,
    )

    def one(t: Array, y: Array) -> tuple[Array, Array]:
        mode = machine.begin(t, y)[1]
        # The axis gets the same `args` as in a simulation.
        args = None if system is machine else system._values(t, system.with_pieces(y, mode, t)[1])
        pressed = machine.pressing(t, y, args)
        if pressed is not None:
            mode = mode.at[1].set(jnp.where(pressed < 0, -1, 1))
        inertia = jnp.asarray(machine.inertia(t, y, args), dtype=float)
        return inertia, machine.load(t, y, args) - machine.friction_force(t, y, mode, args)

    return jax.vmap(one)(jnp.asarray(prepared.t), jnp.asarray(y))
