"""The loop over the samples of many runs at once: the same machine with other numbers."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.parameters.shapes import row_at

from ..options import OnSamples, room
from ..result import Result
from ..reused import Reused
from ..stepping import entries, together
from .grid import at_samples, fine_grid
from .log import Log, empty_log, written
from .march import eventful_step, quiet_step

BLOCK = 128


def march_lanes(
    lanes: int, own, many, options: OnSamples, nought: Any = 0.0, *, keeps: bool = True
) -> Any:
    """`march` of so many lanes: `own` (what moves of the model, the rest of it, t0, y0, mode0, ts)
    with a first axis of lanes where the tree `many` is true (see `parted`). Whatever is returned
    has lanes first.

    Lanes go in blocks from sample to sample together, each array of lanes a vector. A lane in whose
    step something happens keeps the others waiting while it goes through the step of a single run,
    with its branches: a branch for all lanes would be taken by each.
    """
    moved, rest, t0, y0, mode0, ts = own
    is_moved, is_rest, is_t0, is_y0, is_mode0, is_ts = many
    each = lambda x, is_many: x if is_many else jnp.broadcast_to(x, (lanes, *x.shape))  # noqa: E731
    differ, shared = parted(eqx.combine(moved, rest), eqx.combine(is_moved, is_rest))
    start = each(y0, is_y0), each(mode0, is_mode0)
    timed = is_t0 or is_ts
    times = (each(t0, is_t0), each(ts, is_ts)) if timed else (t0, ts)
    block = min(BLOCK, lanes)
    blocks = -(-lanes // block)

    def padded(a: Array) -> Array:
        a = jnp.concatenate([a, jnp.broadcast_to(a[-1:], (blocks * block - lanes, *a.shape[1:]))])
        return a.reshape(blocks, block, *a.shape[1:])

    def run(differ, start, own_times) -> Any:
        at = own_times if timed else times
        return _block(differ, shared, start[0], start[1], at, timed, options, nought, keeps)

    apart = (differ, start, times if timed else None)
    if blocks == 1:
        return run(*apart)
    made = jax.lax.map(lambda block: run(*block), jax.tree.map(padded, apart))
    return jax.tree.map(lambda a: a.reshape(blocks * block, *a.shape[2:])[:lanes], made)


def parted(tree, many) -> tuple[Any, Any]:
    """What of `tree` has lanes, and what has not: `many` is true, or false or None."""
    is_none = lambda x: x is None  # noqa: E731
    pick = lambda keep: jax.tree.map(  # noqa: E731
        lambda x, is_many: x if bool(is_many) is keep else None, tree, many, is_leaf=is_none
    )
    return pick(True), pick(False)


def _block(
    own, shared, y0, mode0, times, timed: bool, options: OnSamples, nought, keeps: bool
) -> Any:
    lanes, y_like, mode_like = y0.shape[0], y0[0], mode0[0]
    system_of = lambda own: Reused(eqx.combine(own, shared))  # noqa: E731
    # Of what is a row of numbers for each lane, a step reads one number a lane: these lie together.
    across = jax.tree.map(lambda a: jnp.moveaxis(a, 0, -1), own)
    grids = lambda t0, ts: fine_grid(t0, ts, options)  # noqa: E731
    grid, slacks = jax.vmap(grids, out_axes=-1)(*times) if timed else grids(*times)
    steps, n, m = grid.shape[0] - 1, y0.shape[1], mode0.shape[1]

    def step_at(j) -> Any:
        return row_at(grid, j), row_at(grid, j + 1), row_at(slacks, j)

    y0 = y0 + nought
    ys = jnp.concatenate([y0.T[None], jnp.zeros((steps + 1, n, lanes), y0.dtype) + nought])
    modes = jnp.concatenate([mode0.T[None], jnp.zeros((steps + 1, m, lanes), jnp.int32)])
    rows = room(options) + 1
    log = jax.tree.map(
        lambda a: (
            jnp.tile(a, (lanes,) + (1,) * (a.ndim - 1))
            + (nought if jnp.issubdtype(a.dtype, jnp.floating) else 0)
        ),
        empty_log(options, y_like, mode_like, keeps),
    )
    count = jnp.zeros(lanes, jnp.int32)
    result = jax.tree.map(lambda a: jnp.full(lanes, a), Result.successful)

    def one(own, y, mode, step) -> Any:
        y, mode, calm = quiet_step(
            system_of(own), options, step, together(y, y_like), together(mode, mode_like)
        )
        return entries(y), entries(mode), calm

    all_lanes = jax.vmap(one, in_axes=(-1, 0, 0, 0 if timed else None))

    def quiet(carry) -> Any:
        j, y, mode, _, alive, ys, modes = carry
        y1, mode1, calm = all_lanes(across, y, mode, step_at(j))
        todo = alive & ~calm
        y, mode = jax.tree.map(
            lambda a, b: jnp.where(jnp.reshape(todo, (-1,) + (1,) * (a.ndim - 1)), a, b),
            (y, mode),
            (y1, mode1),
        )
        ys, modes = written(ys, j + 1, stacked(y, y0)), written(modes, j, stacked(mode1, mode0))
        return jnp.where(jnp.any(todo), j, j + 1), y, mode, todo, alive, ys, modes

    def body(carry) -> Any:
        j, y, mode, alive, ys, modes, log, count, result = carry
        nobody = jnp.zeros(lanes, bool)
        j, y, mode, todo, _, ys, modes = jax.lax.while_loop(
            lambda c: (c[0] < steps) & ~jnp.any(c[3]),
            quiet,
            (j, y, mode, nobody, alive, ys, modes),
        )
        stopped = jnp.any(todo)
        here = jnp.minimum(j, steps - 1)
        step = step_at(here)

        def event(carry) -> Any:
            todo, y, mode, ys, modes, log, count, result = carry
            i = jnp.argmax(todo).astype(jnp.int32)
            at = lambda tree: jax.tree.map(lambda a: row_at(a, i), tree)  # noqa: E731
            y_now, mode_now, y1, mode1, log, count1, result1 = eventful_step(
                system_of(at(own)),
                options,
                (*(at(step) if timed else step), here),
                jnp.array(True),
                nought,
                i * rows,
                together(at(y), y_like),
                together(at(mode), mode_like),
                log,
                row_at(count, i),
                at(result),
            )
            put = lambda old, new: jax.tree.map(lambda a, b: written(a, i, b), old, new)  # noqa: E731
            ys = _put(ys, here, i, y_now)
            return (
                written(todo, i, jnp.array(False)),
                put(y, entries(y1)),
                put(mode, entries(mode1)),
                ys,
                _put(modes, here, i, mode_now),
                log,
                written(count, i, count1),
                put(result, result1),
            )

        _, y, mode, ys, modes, log, count, result = jax.lax.while_loop(
            lambda c: jnp.any(c[0]), event, (todo, y, mode, ys, modes, log, count, result)
        )
        ys = written(ys, jnp.where(stopped, j + 1, steps + 1), stacked(y, y0))
        j = jnp.where(stopped, j + 1, j)
        return j, y, mode, result == Result.successful, ys, modes, log, count, result

    carry = (
        jnp.array(0, jnp.int32),
        _entries(y0),
        _entries(mode0),
        jnp.ones(lanes, bool),
        ys,
        modes,
        log,
        count,
        result,
    )
    _, _, _, _, ys, modes, log, count, result = jax.lax.while_loop(
        lambda c: c[0] < steps, body, carry
    )
    kept = at_samples(options, times[1].shape[-1])
    first = lambda a: jnp.moveaxis(a, -1, 0)  # noqa: E731
    log: Log = jax.tree.map(lambda a: a.reshape(lanes, rows, *a.shape[1:])[:, :-1], log)
    ended = jnp.full(lanes, steps - 1, count.dtype)
    whole = (first(modes[kept]), log.fired, log.before, log.after, count, result, ended)
    record = (first(ys), first(modes), log, count) if keeps else None
    return (first(ys[kept]), log.t1), whole, record


def _entries(x: Array) -> list[Array]:
    return jax.vmap(entries)(x)


def stacked(parts: list[Array], like: Array) -> Array:
    """Entries of lanes as one array, lanes last; `like` (L, n)."""
    if like.shape[1] == 0:
        return like.T
    return jnp.stack(parts) if len(parts) == like.shape[1] else parts[0].T


@jax.custom_jvp
def _put(rows: Array, j, i, entry: Array) -> Array:
    """`rows` (T, n, L) with the entries of lane i at j replaced, in place inside a loop."""
    start = (j, jnp.zeros_like(j), i)
    return jax.lax.dynamic_update_slice(rows, entry[None, :, None], start)


@_put.defjvp
def _put_jvp(at, along) -> Any:
    (rows, j, i, entry), (d_rows, _, _, d_entry) = at, along
    whole = d_rows.dtype == jax.dtypes.float0
    return _put(rows, j, i, entry), d_rows if whole else _put(d_rows, j, i, d_entry)
