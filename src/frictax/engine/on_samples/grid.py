"""The times of the steps of a run on samples."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from frictax.parameters.constant import constant

from ..options import OnSamples


def at_samples(options: OnSamples, samples: int) -> Any:
    """At the ends of which steps the samples lie."""
    if options.finer:
        return np.concatenate([[0], np.cumsum(options.steps(samples))])
    return slice(0, (samples - 1) * options.substeps + 1, options.substeps)


def fine_grid(t0, ts, options: OnSamples) -> tuple[Array, Array]:
    """The times at which steps begin and end, and for each step the time [s] within which two times
    are one: drives may miss samples by a rounding. The steps are those between samples, and a last
    one of no length, for what happens at the run's end.
    """
    times = jnp.concatenate([jnp.asarray(t0, ts.dtype)[None], jax.lax.stop_gradient(ts)[1:]])
    if options.finer:
        steps = options.steps(ts.shape[0])
        before, first = (
            np.repeat(a, steps) for a in (np.arange(steps.size), np.cumsum(steps) - steps)
        )
        share = ((np.arange(before.size) - first) / steps[before]).astype(times.dtype)
        times = jnp.concatenate([times[before] + jnp.diff(times)[before] * share, times[-1:]])
    elif options.substeps > 1 and ts.shape[0] > 1:
        share = (jnp.arange(options.substeps) / options.substeps).astype(times.dtype)
        times = jnp.concatenate(
            [(times[:-1, None] + jnp.diff(times)[:, None] * share).reshape(-1), times[-1:]]
        )
    lengths = constant(jnp.diff(times))
    slacks = jnp.minimum(
        1e-9 * lengths + 4 * jnp.finfo(times.dtype).eps * jnp.abs(constant(times[1:])),
        0.1 * lengths,
    )
    last = slacks[-1:] if ts.shape[0] > 1 else jnp.zeros_like(times)
    return jnp.concatenate([times, times[-1:]]), jnp.concatenate([slacks, last])
