"""Errors of free runs of the axis, and their spread over repeats of the motion."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import frictax as fx
from frictax.measurements.filters import smooth


@eqx.filter_jit
def _positions(
    machine: fx.Mechanism,
    ts: Array,
    force: Array,
    s: Array,
    v: Array,
    hold: bool,
    engine: fx.OnSamples,
) -> Array:
    driven = eqx.tree_at(lambda m: m["drive"].f, machine, fx.Sampled(ts, force, hold=hold))
    driven = eqx.tree_at(lambda m: (m["mass"].s, m["mass"].v), driven, (s, v))
    return fx.simulate(driven, ts, engine)["mass"].s


def free_run(
    machine: fx.Mechanism, record: fx.Record, more: Any = 0.0, engine: fx.OnSamples | None = None
) -> np.ndarray:
    """Return the position error [m] of a run without feedback, under the record's force plus `more`
    [N]. The run starts from the smoothed position and speed at the first sample.
    """
    start = smooth(record.t, record.outputs["mass.s"], 50.0)
    force = jnp.asarray(record.inputs["drive"] + more)
    engine = fx.OnSamples() if engine is None else engine
    path = _positions(
        machine,
        jnp.asarray(record.t),
        force,
        jnp.asarray(start.x[0]),
        jnp.asarray(start.v[0]),
        record.hold,
        engine,
    )
    return np.asarray(path) - record.outputs["mass.s"]


def rms(error: np.ndarray) -> float:
    """Return the root mean square [mm] of `error` [m]."""
    return 1e3 * float(np.sqrt(np.mean(np.square(error))))


class Spread(NamedTuple):
    """Estimates `values` (quarters of the record, parameters) of the parameters `names`, and
    position errors [m] of free runs with random parameters, `errors` (runs, samples).
    """

    names: tuple[str, ...]
    values: np.ndarray
    errors: np.ndarray

    @property
    def error_of_mean(self) -> np.ndarray:
        """Standard error of the mean over the quarters for each parameter, as by the jackknife."""
        return np.std(self.values, axis=0, ddof=1) / np.sqrt(len(self.values))

    @property
    def range(self) -> np.ndarray:
        """10, 50 and 90 % quantiles of the rms position error of the free runs [mm]."""
        return np.quantile([rms(e) for e in self.errors], [0.1, 0.5, 0.9])


def spread(
    found: fx.FoundMachine, record: fx.Record, scored: fx.Record, draws: int = 200
) -> Spread:
    """Fit each quarter of `record`, one cycle of its motion, on windows. Then simulate `draws` free
    runs of `scored` with random parameters.

    The random parameters have the mean of `found` and the covariance between the quarters. So these
    machines scatter like the cycles.
    """
    length = record.duration / 4
    parts = [record.trim(i * length, i * length + length - 0.5 / record.rate) for i in range(4)]
    names = found.names
    fits = [
        fx.fit(found.model, part, free=names, objective=fx.Windows(0.5, cutoff=50.0))
        for part in parts
    ]
    values = np.array([[f.values[n] for n in f.names] for f in fits])
    away = (values - values.mean(axis=0)) / np.sqrt(len(values) - 1)
    drawn = (
        np.array([found.values[n] for n in names])
        + np.random.default_rng(0).standard_normal((draws, len(values))) @ away
    )
    start = smooth(scored.t, scored.outputs["mass.s"], 50.0)
    ts, force = jnp.asarray(scored.t), jnp.asarray(scored.inputs["drive"])

    def one(x: Array) -> Array:
        machine = fx.parameters.replace(found.model, dict(zip(names, x, strict=True)))
        return _positions(
            machine,
            ts,
            force,
            jnp.asarray(start.x[0]),
            jnp.asarray(start.v[0]),
            scored.hold,
            fx.OnSamples(),
        )[::20]

    paths = jax.jit(lambda xs: jax.lax.map(one, xs))(jnp.asarray(drawn))
    return Spread(names, values, np.asarray(paths) - scored.outputs["mass.s"][::20])


def sensitivities(machine: fx.Mechanism, record: fx.Record) -> tuple[float, float]:
    """Return the rms change of the free run [mm] by 0.1 N more force, and by 1 % more friction."""
    laws = {
        f"friction.{way}.{term}" for way in ("f_pos", "f_neg") for term in ("F_Coulomb", "F_prop")
    }
    more = {p.path: 1.01 * p.value for p in fx.parameters.select(machine, sorted(laws))}
    here = free_run(machine, record)
    return rms(free_run(machine, record, 0.1) - here), rms(
        free_run(fx.parameters.replace(machine, more), record) - here
    )
