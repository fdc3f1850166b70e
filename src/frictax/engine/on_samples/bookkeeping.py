"""Step times and event log of a run on samples, and functions that write array rows in a loop."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from frictax.parameters import Values
from frictax.parameters.arrays import constant

from ..options import OnSamples, room


def at_samples(options: OnSamples, samples: int) -> Any:
    """Return the index of each sample in the array of step times (see `fine_grid`)."""
    if options.finer:
        return np.concatenate([[0], np.cumsum(options.steps(samples))])
    return slice(0, (samples - 1) * options.substeps + 1, options.substeps)


def fine_grid(t0, ts, options: OnSamples) -> tuple[Array, Array]:
    """Return the times at which steps begin and end, and each step's time tolerance (slack) [s].

    Times that differ by less than the slack count as equal, because drive times and sampling times
    may differ by rounding errors. After the last sample there is one more step of zero length, for
    events at the end of the run.
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


class Retrace(eqx.Module):
    """Data of an event for reverse-mode differentiation, in addition to the `Log`. A "piece" is the
    part of a step between two successive events.

    - `t0`, `y0`: time and state at the start of the piece that the event ended.
    - `found`: the event time from the search, before the Newton step improves it. `end`: the time
      at which the piece ends if no event occurs earlier.
    - `y1`: the state after the event.
    - `step`: number of the step with the event; `u`: start of its part, in 1/`PARTS` of the step.
    """

    t0: Values
    y0: Float[Array, "... n"]
    found: Values
    end: Values
    y1: Float[Array, "... n"]
    step: Int[Array, "..."]
    u: Int[Array, "..."]


class Log(eqx.Module):
    """The events of a run: time `t1` [s], cause `fired`, modes `before` and `after` each event.
    `retrace`: data for reverse-mode differentiation, or None."""

    t1: Values
    fired: Int[Array, "..."]
    before: Int[Array, "... m"]
    after: Int[Array, "... m"]
    retrace: Retrace | None


def empty_log(options: OnSamples, y, mode, keeps: bool) -> Log:
    """Return an empty log for `max_events` events; if `keeps` is True, it contains a `Retrace`."""
    size = room(options) + 1
    number, whole = jnp.zeros(size, y.dtype), jnp.zeros(size, jnp.int32)
    states, modes = jnp.zeros((size, *y.shape), y.dtype), jnp.zeros((size, *mode.shape), jnp.int32)
    retrace = Retrace(number, states, number, number, states, whole - 1, whole) if keeps else None
    return Log(jnp.full_like(number, jnp.inf), whole, modes, modes, retrace)


def write_row(rows: Array, j, row: Array) -> Array:
    """Return `rows` with row j replaced by `row`. Inside a loop, XLA does not copy the array."""
    return write_rows(rows, row[None], (j,))


@jax.custom_jvp
def write_rows(rows: Array, part: Array, starts: tuple[Any, ...]) -> Array:
    """Return `rows` with one block replaced by `part`. Inside a loop, XLA does not copy the array.
    `starts`: first index of the block along each of the first axes."""
    return _row_writer(0)(rows, part, *starts)


@write_rows.defjvp
def _write_rows_jvp(at, along) -> Any:
    (rows, part, starts), (d_rows, d_part, _) = at, along
    whole = d_rows.dtype == jax.dtypes.float0
    return write_rows(rows, part, starts), d_rows if whole else _row_writer(0)(
        d_rows, d_part, *starts
    )


@functools.cache
def _row_writer(ahead: int) -> Callable:
    """Return a function like `write_rows`, for arrays with `ahead` more leading axes.

    Under `jax.vmap` the function becomes one update of an array slice. (JAX's own batching rule
    makes a scatter operation, which XLA computes in a loop.)
    """

    def plain(rows, part, *starts):
        nought = [jnp.int32(0)] * rows.ndim
        nought[ahead : ahead + len(starts)] = [jnp.asarray(i, jnp.int32) for i in starts]
        return jax.lax.dynamic_update_slice(rows, part, nought, allow_negative_indices=False)

    place = jax.custom_batching.custom_vmap(plain)

    @place.def_vmap
    def of_lanes(size: int, many, rows, part, *starts) -> tuple[Array, bool]:
        if not any(many):
            return plain(rows, part, *starts), False
        if any(many[2:]):
            axes = [0 if is_many else None for is_many in many]
            return jax.vmap(plain, in_axes=axes)(rows, part, *starts), True
        rows, part = (
            x if is_many else jnp.broadcast_to(x, (size, *x.shape))
            for x, is_many in ((rows, many[0]), (part, many[1]))
        )
        return _row_writer(ahead + 1)(rows, part, *starts), True

    return place
