"""Derivatives of a run on samples, in forward and reverse mode."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from frictax.jax_internals import nondifferentiable, unvmap_any

from ..implicit.stiff import step
from ..linear import linear, read_later, split
from ..options import OnSamples
from ..result import SECOND
from ..reused import Reused, staying
from ..stepping import select
from . import operation
from .crossing import as_of, cross_inside
from .grid import at_samples, fine_grid
from .log import written
from .search import Piece


@eqx.filter_custom_jvp
def run_samples(model, t0, t1, y0, mode0, ts, options: OnSamples) -> Any:
    floats, whole, _ = operation.value(None, model, t0, y0, mode0, ts, options, keeps=False)
    return floats, whole


@run_samples.def_jvp
def _run_samples_jvp(primals, tangents) -> Any:
    model, t0, _, y0, mode0, ts, options = primals
    d_model, d_t0, _, d_y0, _, d_ts, _ = tangents
    # What is constant in an event is first-order exact only; a second derivative of it would be
    # silently wrong.
    model_, t0_, y0_, ts_ = nondifferentiable((model, t0, y0, ts), msg=SECOND)
    moved, rest, d_moved = split(model_, d_model)
    d_y0 = jnp.zeros_like(y0) if d_y0 is None else d_y0

    # The times of the steps have no derivative unless the start has one: they are read in every
    # step.
    at = moved, rest, t0_, y0_, mode0, ts_, options
    along = d_moved, d_y0, d_t0
    if options.adjoint is not None:
        floats, d_floats, whole = operation.push(*at, along)
        d_ys = read_later(model_, ts_, d_ts, floats[0], whole[0], d_floats[0], slice(1, None))
        return (floats, whole), ((d_ys, d_floats[1]), jax.tree.map(lambda _: None, whole))
    floats, whole, record = operation.value(*at, keeps=True)
    # Transposition asks that every entry depend linearly on some tangent, also the zeros.
    nought = 0.0 * jnp.sum(jax.tree.leaves((d_model, d_t0, d_y0, d_ts))[0])
    along = (d_moved, *[d if d is None else d + nought for d in along[1:]])
    nothing = jax.tree.map(lambda x: jnp.zeros_like(x) + nought, floats)
    # Forward mode goes the whole way once more instead of along the log: where the values are not
    # asked for, this is all that is done.
    push = lambda along: operation.push_alone(*at, along)  # noqa: E731
    pull = _pull(moved, rest, *fine_grid(t0_, ts_, options), record, options, d_t0 is None)
    d_ys, d_times = linear(push, pull, along, nothing)
    d_ys = read_later(model_, ts_, d_ts, floats[0], whole[0], d_ys, slice(1, None))
    return (floats, whole), ((d_ys, d_times), jax.tree.map(lambda _: None, whole))


def _pull(moved, rest, grid, slacks, record, options: OnSamples, starts_fixed: bool) -> Any:
    """Cotangents of the inputs from cotangents of all outputs: over the steps from last to first.

    No time of the start's where it is fixed.
    """
    ys, modes, log, count = record
    steps, trace = grid.shape[0] - 1, log.retrace

    def amid(mode, moved) -> tuple[Any, Any]:
        """The model as long as `mode` lasts: what is read for that, and the rest."""
        model = eqx.combine(moved, rest)
        own = {id(leaf) for leaf in jax.tree.leaves(model)}
        is_read = lambda x: eqx.is_inexact_array(x) and id(x) not in own  # noqa: E731
        return eqx.partition(staying(model, mode), is_read)

    def complete(j, mode, moved, read, t, y) -> Any:
        """The last piece of step j, which no event ends."""
        system = Reused(eqx.combine(read, amid(mode, moved)[1]))
        return step(system, options, mode, t, grid[j + 1], y)

    def over(e, j, moved, t, y) -> Any:
        """The piece that event e ends, and the state after it at the sample that it may lie at."""
        system, piece = Reused(eqx.combine(moved, rest)), Piece(t, y, log.before[e])
        time, state = cross_inside(
            system, options, piece, trace.found[e], None, log.fired[e], grid[j + 1]
        )[:2]
        return time, state, as_of(system, time, state, system.tick(time + slacks[j], log.after[e]))

    def pull(cotangents) -> Any:
        c_ys, c_times = cotangents
        c_all = jnp.zeros_like(ys).at[at_samples(options, c_ys.shape[0])].set(c_ys)
        nothing = jax.tree.map(jnp.zeros_like, moved)
        # What steps read is put where it came from for all of them at once: in each of them it
        # would be a table that is all 0 but for a few entries.
        read = jax.eval_shape(lambda: amid(modes[0], moved)[0])
        c_read = jax.tree.map(lambda x: jnp.zeros((steps, *x.shape), x.dtype), read)
        add = lambda a, b: jax.tree.map(jnp.add, a, b)  # noqa: E731

        def body(i, carry) -> Any:
            _, c_y, c_moved, e, c_read, ticked = carry
            j = steps - 1 - i
            last = jnp.maximum(e, 0)
            here = (e >= 0) & (trace.step[last] == j)
            t, y = jnp.where(here, log.t1[last], grid[j]), jnp.where(here, trace.y1[last], ys[j])
            mode = jnp.where(here, log.after[last], modes[j])
            mode = Reused(eqx.combine(moved, rest)).tick(t + slacks[j], mode)
            at = moved, amid(mode, moved)[0], t, y
            d_moved, d_read, c_t, c_y = jax.vjp(lambda *p: complete(j, mode, *p), *at)[1](c_y)
            ticked = written(ticked, j, mode)
            c_read = jax.tree.map(lambda rows, d: written(rows, j, d), c_read, d_read)

            def event(carry) -> Any:
                c_t, c_y, c_moved, c_now, e, here = carry
                last = jnp.maximum(e, 0)
                _, back = jax.vjp(
                    lambda *p: over(last, j, *p), moved, trace.t0[last], trace.y0[last]
                )
                # The sample shows the state after the last event at it.
                at_sample = log.t1[last] <= grid[j] + slacks[j]
                d_moved, d_t, d_y = back(
                    (c_t + c_times[last], c_y, jnp.where(at_sample, c_now, 0.0))
                )
                c_after = jnp.where(at_sample, 0.0, c_now)
                new, old = (d_t, d_y, add(c_moved, d_moved), c_after), (c_t, c_y, c_moved, c_now)
                kept = select(here, new, old)
                e = jnp.where(here, e - 1, e)
                return *kept, e, (e >= 0) & (trace.step[jnp.maximum(e, 0)] == j)

            first = (c_t, c_y, add(c_moved, d_moved), c_all[j], e, here)
            c_t, c_y, c_moved, c_now, e, _ = jax.lax.while_loop(
                lambda c: unvmap_any(c[5]), event, first
            )
            return c_t, c_y + c_now, c_moved, e, c_read, ticked

        first = (jnp.zeros_like(grid[0]), jnp.zeros_like(ys[0]), nothing, count - 1)
        c_t, c_y, c_moved, _, c_read, ticked = jax.lax.fori_loop(
            0, steps, body, (*first, c_read, modes[:steps])
        )
        whole = lambda moved: jax.vmap(lambda mode: amid(mode, moved)[0])(ticked)  # noqa: E731
        c_moved = add(c_moved, jax.vjp(whole, moved)[1](c_read)[0])
        return c_moved, c_y, None if starts_fixed else c_t

    return pull
