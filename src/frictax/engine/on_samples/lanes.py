"""The loop over the samples of many runs at once: the same machine with other numbers."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..options import OnSamples
from .block import Block
from .grid import fine_grid
from .plan import Plan

BLOCK = 64  # lanes


def march_lanes(
    lanes: int,
    own,
    many,
    options: OnSamples,
    *,
    keeps: bool = False,
    along: Any = None,
    shows: tuple[bool, bool] = (True, True),
) -> Any:
    """`march` of so many lanes: `own` (what moves of the model, the rest of it, t0, y0, mode0, ts)
    with a first axis of lanes where the tree `many` is true (see `parted`). Whatever is returned
    has lanes first; states and modes at the samples are None where `shows` says so.

    With `along`, tangents of what moves, of t0 (or None) and of y0, each with a first axis of
    seeds: what is returned is floats, their tangents, seeds last, and whole numbers.

    Lanes go in blocks from sample to sample together, each array of lanes a vector. A lane in whose
    step something happens keeps the others waiting while it goes through the step of a single run,
    with its branches: a branch for all lanes would be taken by each. Samples are kept in a small
    tile, lanes last, and go from there to where they are returned.
    """
    moved, rest, t0, y0, mode0, ts = own
    is_moved, is_rest, is_t0, is_y0, is_mode0, is_ts = many
    tangents: Any = (None, None, None) if along is None else along
    d_moved, d_t0, d_y0 = tangents
    seeds = None if along is None else d_y0.shape[0]
    each = lambda x, is_many: x if is_many else jnp.broadcast_to(x, (lanes, *x.shape))  # noqa: E731
    timed = is_t0 or is_ts
    times = (each(t0, is_t0), each(ts, is_ts)) if timed else (t0, ts)

    def grid_of(t0) -> Any:
        grids = lambda t0, ts: fine_grid(t0, ts, options)  # noqa: E731
        return jax.vmap(grids)(t0, times[1]) if timed else grids(t0, ts)

    grid, slacks = grid_of(times[0])
    d_grid = None
    if d_t0 is not None:
        one = lambda d: jax.jvp(lambda t0: grid_of(t0)[0], (times[0],), (d,))[1]  # noqa: E731
        if timed and not is_t0:
            d_t0 = jnp.broadcast_to(d_t0[:, None], (seeds, lanes))
        d_grid = jax.vmap(one)(d_t0)

    last = lambda tree, axis: jax.tree.map(lambda a: jnp.moveaxis(a, axis, -1), tree)  # noqa: E731
    (moved, rest), (same_moved, same_rest) = parted((moved, rest), (is_moved, is_rest))
    d_moved, d_same = parted(d_moved, is_moved)
    y0, mode0 = each(y0, is_y0), each(mode0, is_mode0)
    if along is not None and not is_y0:
        d_y0 = jnp.broadcast_to(d_y0[:, None], (seeds, lanes, *d_y0.shape[1:]))
    clock, d_clock = ((grid, slacks), d_grid) if timed else (None, None)

    blocks = -(-lanes // BLOCK)
    size = -(-lanes // blocks)
    plan = Plan.of(options, size, grid.shape[-1] - 1, y0, mode0, seeds, keeps, shows)
    split = lambda tree, axis: jax.tree.map(  # noqa: E731
        lambda a: _in_blocks(a, axis, blocks, size), tree
    )
    apart, d_apart = split((moved, rest, y0, mode0, clock), 0), split((d_moved, d_y0, d_clock), 1)

    def block(b, made) -> Any:
        take = lambda tree, axis: jax.tree.map(  # noqa: E731
            lambda a: jax.lax.dynamic_index_in_dim(
                a, b, axis, keepdims=False, allow_negative_indices=False
            ),
            tree,
        )
        (moved, rest, y0, mode0, clock), (d_moved, d_y0, d_clock) = take(apart, 0), take(d_apart, 1)
        rest_by_lane = rest
        # Of what is a row of numbers for each lane, a step reads one number a lane: these lie
        # together.
        (moved, rest, clock), (d_moved, d_clock) = (
            last((moved, rest, clock), 0),
            last((d_moved, d_clock), 1),
        )
        times, slack = (grid, slacks) if clock is None else clock
        d_times = d_grid if d_clock is None else d_clock
        slack = _longer(plan.beyond, slack, 0)
        now = Block(plan, (moved, same_moved), (rest, same_rest), rest_by_lane, slack)
        return now.run(
            y0,
            d_y0,
            mode0,
            _longer(plan.beyond, times, 0),
            _longer(plan.beyond, d_times, 1),
            (d_moved, d_same),
            b * size,
            made,
        )

    made = plan.room(blocks * size)
    made = block(jnp.int32(0), made) if blocks == 1 else jax.lax.fori_loop(0, blocks, block, made)
    return plan.returned(made, lanes, times[1].shape[-1])


def parted(tree, many) -> tuple[Any, Any]:
    """What of `tree` has lanes, and what has not: `many` is true, or false or None."""
    is_none = lambda x: x is None  # noqa: E731
    pick = lambda keep: jax.tree.map(  # noqa: E731
        lambda x, is_many: x if bool(is_many) is keep else None, tree, many, is_leaf=is_none
    )
    return pick(True), pick(False)


def _longer(rows: int, a: Any, axis: int) -> Any:
    """With so many rows more along `axis`."""
    if a is None:
        return None
    return jnp.pad(a, [(0, rows if k == axis else 0) for k in range(a.ndim)])


def _in_blocks(a: Array, axis: int, blocks: int, size: int) -> Array:
    """Lanes along `axis` as blocks of lanes, filled up with the last one."""
    more = blocks * size - a.shape[axis]
    if more:
        last = jax.lax.slice_in_dim(a, -1, None, axis=axis)
        a = jnp.concatenate([a, jnp.repeat(last, more, axis)], axis)
    return a.reshape(*a.shape[:axis], blocks, size, *a.shape[axis + 1 :])
