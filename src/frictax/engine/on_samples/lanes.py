"""The loop over the samples of many runs at once: the same machine with other numbers."""

import dataclasses
import functools
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
from .log import Log, empty_log, placed, written
from .march import eventful_step, quiet_step

BLOCK = 128  # lanes
_TILE = 2**18  # bytes of samples that are kept before they are written where they belong


def march_lanes(
    lanes: int, own, many, options: OnSamples, *, keeps: bool = False, along: Any = None
) -> Any:
    """`march` of so many lanes: `own` (what moves of the model, the rest of it, t0, y0, mode0, ts)
    with a first axis of lanes where the tree `many` is true (see `parted`). Whatever is returned
    has lanes first.

    With `along`, tangents of what moves, of t0 (or None) and of y0, each with a first axis of
    seeds: what is returned is floats, their tangents, seeds last, and whole numbers.

    Lanes go in blocks from sample to sample together, each array of lanes a vector. A lane in whose
    step something happens keeps the others waiting while it goes through the step of a single run,
    with its branches: a branch for all lanes would be taken by each. Samples are kept in a small
    tile, lanes last, and go from there to where they are returned.
    """
    moved, rest, t0, y0, mode0, ts = own
    is_moved, is_rest, is_t0, is_y0, is_mode0, is_ts = many
    d_moved, d_t0, d_y0 = (None, None, None) if along is None else along
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
    plan = _Plan.of(options, size, grid.shape[-1] - 1, y0, mode0, seeds, keeps)
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
        # Of what is a row of numbers for each lane, a step reads one number a lane: these lie
        # together.
        (moved, rest, clock), (d_moved, d_clock) = (
            last((moved, rest, clock), 0),
            last((d_moved, d_clock), 1),
        )
        times, slack = (grid, slacks) if clock is None else clock
        d_times = d_grid if d_clock is None else d_clock
        now = _Lanes(plan, (moved, same_moved), (rest, same_rest), _longer(plan.beyond, slack, 0))
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


def _longer(rows: int, a: Array | None, axis: int) -> Array | None:
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


class _Made(eqx.Module):
    """What is returned, or will be: lanes first, seeds last; None where there are no tangents."""

    ys: Array
    d_ys: Array | None
    modes: Array
    log: Log
    d_t1: Array | None
    count: Array
    result: Any


@dataclasses.dataclass(frozen=True)
class _Plan:
    """Sizes, and of what types things are."""

    options: OnSamples
    lanes: int  # in a block
    steps: int
    tile: int
    y: Array  # as one lane has it
    mode: Array
    seeds: int | None
    keeps: bool

    @classmethod
    def of(cls, options, lanes: int, steps: int, y0, mode0, seeds, keeps: bool) -> "_Plan":
        y, mode = y0[0], mode0[0]
        row = lanes * (y.shape[0] * y.dtype.itemsize * (1 + (seeds or 0)) + 4 * mode.shape[0])
        most = min(max(_TILE // max(row, 1), 4), 64, steps)
        # the one that leaves the least over
        tile = min(range(most, most // 2, -1), key=lambda w: -steps % w)
        return cls(options, lanes, steps, tile, y, mode, seeds, keeps)

    @property
    def tiles(self) -> int:
        return -(-self.steps // self.tile)

    @property
    def beyond(self) -> int:
        """Steps that the last tile has more than there are."""
        return self.tiles * self.tile - self.steps

    @property
    def rows(self) -> int:
        """Of a lane's log: the last takes what is not to be kept."""
        return room(self.options) + 1

    def room(self, lanes: int) -> _Made:
        rows = self.tiles * self.tile
        of = lambda like, *ahead: jnp.zeros((lanes, *ahead, *like.shape), like.dtype)  # noqa: E731
        nothing = lambda x: jnp.zeros((*x.shape, self.seeds), x.dtype)  # noqa: E731
        ys = of(self.y, rows)
        log = jax.tree.map(lambda a: of(a[:-1]), self.log())
        return _Made(
            ys,
            None if self.seeds is None else nothing(ys),
            of(self.mode, rows),
            log,
            None if self.seeds is None else nothing(log.t1),
            jnp.zeros(lanes, jnp.int32),
            jax.tree.map(lambda a: jnp.full(lanes, a), Result.successful),
        )

    def log(self) -> Log:
        return empty_log(self.options, self.y, self.mode, self.keeps)

    def returned(self, made: _Made, lanes: int, samples: int) -> Any:
        made = jax.tree.map(lambda a: a[:lanes], made)
        kept = at_samples(self.options, samples)
        ended = jnp.full(lanes, self.steps - 1, made.count.dtype)
        log = made.log
        whole = (made.modes[:, kept], log.fired, log.before, log.after)
        whole = (*whole, made.count, made.result, ended)
        floats = made.ys[:, kept], log.t1
        if self.seeds is not None:
            assert made.d_ys is not None
            return floats, (made.d_ys[:, kept], made.d_t1), whole
        if not self.keeps:
            return floats, whole, None
        # as many rows as `march` has
        full = lambda a: _filled(a[:, : self.steps], self.steps + 2)  # noqa: E731
        return floats, whole, (full(made.ys), full(made.modes), log, made.count)


def _filled(a: Array, rows: int) -> Array:
    return jnp.concatenate(
        [a, jnp.zeros((a.shape[0], rows - a.shape[1], *a.shape[2:]), a.dtype)], 1
    )


@dataclasses.dataclass(frozen=True)
class _Lanes:
    """One block, with what moves of the model and the rest, each with lanes (last) and without."""

    plan: _Plan
    moved: Any
    rest: Any
    slacks: Array

    def run(self, y0, d_y0, mode0, grid, d_grid, d_moved, first, made: _Made) -> _Made:
        """The whole run, written to `made` from the lane `first` on."""
        plan, seeds = self.plan, self.plan.seeds
        log = jax.tree.map(lambda a: jnp.tile(a, (plan.lanes,) + (1,) * (a.ndim - 1)), plan.log())
        nobody = jnp.zeros(plan.lanes, jnp.int32)
        well = jax.tree.map(lambda a: jnp.full(plan.lanes, a), Result.successful)
        floats = _entries(y0), log.t1
        along = None
        if seeds is not None:
            along = jax.vmap(_entries)(d_y0), jnp.zeros((seeds, *log.t1.shape), log.t1.dtype)

        def tile(k, carry) -> Any:
            floats, along, whole, made = carry
            begin = k * plan.tile
            cut = lambda a, axis=0: jax.lax.dynamic_slice_in_dim(  # noqa: E731
                a, begin, plan.tile + 1, axis, allow_negative_indices=False
            )
            over = functools.partial(self.over, begin, whole)
            at = self.moved, *floats, cut(grid)
            if along is None:
                (*floats, ys), (whole, modes) = over(*at)
                d_ys = None
            else:
                along = d_moved, *along, *(() if d_grid is None else (cut(d_grid, 1),))
                still = at[len(along) :]
                pushed = (
                    lambda along: jax.jvp(  # noqa: E731
                        lambda *going: over(*going, *still), at[: len(along)], along, has_aux=True
                    )
                )
                (*floats, ys), (*along, d_ys), (whole, modes) = jax.vmap(
                    pushed, out_axes=(None, 0, None)
                )(along)
            put = lambda rows, tile, *axes: (  # noqa: E731
                None if tile is None else placed(rows, jnp.transpose(tile, axes), (first, begin))
            )
            made = dataclasses.replace(
                made,
                ys=put(made.ys, ys, 2, 0, 1),
                d_ys=put(made.d_ys, d_ys, 3, 1, 2, 0),
                modes=put(made.modes, modes, 2, 0, 1),
            )
            return tuple(floats), None if along is None else tuple(along), whole, made

        carry = floats, along, (_entries(mode0), log, nobody, well), made
        (_, t1), along, (_, log, count, result), made = jax.lax.fori_loop(
            0, plan.tiles, tile, carry
        )
        log = eqx.tree_at(lambda log: log.t1, log, t1)
        lane = lambda a: a.reshape(plan.lanes, plan.rows, *a.shape[1:])[:, :-1]  # noqa: E731
        put = lambda old, new: jax.tree.map(lambda a, b: placed(a, b, (first,)), old, new)  # noqa: E731
        made = dataclasses.replace(
            made,
            log=put(made.log, jax.tree.map(lane, log)),
            count=put(made.count, count),
            result=put(made.result, result),
        )
        if along is not None:
            d_t1 = jax.vmap(lane)(along[1])
            made = dataclasses.replace(made, d_t1=put(made.d_t1, jnp.moveaxis(d_t1, 0, -1)))
        return made

    def over(self, begin, whole, moved, y, t1, grid) -> Any:
        """The steps of a tile, from the step `begin` on."""
        plan, options, lanes = self.plan, self.plan.options, self.plan.lanes
        mode, log, count, result = whole
        log = eqx.tree_at(lambda log: log.t1, log, t1)
        timed = grid.ndim > 1
        # 0 with a derivative, see `march`
        nought = 0.0 * jnp.ravel(jax.tree.leaves((moved, y))[0])[0].astype(plan.y.dtype)
        nought = 0.0 if plan.seeds is None else nought
        size = jnp.minimum(plan.tile, plan.steps - begin)
        ys = jnp.zeros((plan.tile, *plan.y.shape, lanes), plan.y.dtype) + nought
        modes = jnp.zeros((plan.tile, *plan.mode.shape, lanes), plan.mode.dtype)

        def step_at(j) -> Any:
            return row_at(grid, j), row_at(grid, j + 1), row_at(self.slacks, begin + j)

        def one(own, same, y, mode, step) -> Any:
            system = _system(own, same)
            y, mode, calm = quiet_step(
                system, options, step, together(y, plan.y), together(mode, plan.mode)
            )
            return entries(y), entries(mode), calm

        (across, same), (more, rest) = moved, self.rest
        all_lanes = jax.vmap(one, in_axes=(-1, None, 0, 0, 0 if timed else None))

        def quiet(carry) -> Any:
            j, y, mode, _, alive, ys, modes = carry
            y1, mode1, calm = all_lanes((across, more), (same, rest), y, mode, step_at(j))
            ys, modes = written(ys, j, stacked(y)), written(modes, j, stacked(mode1))
            todo = alive & ~calm
            y, mode = jax.tree.map(
                lambda a, b: jnp.where(_first(todo, a), a, b), (y, mode), (y1, mode1)
            )
            return jnp.where(jnp.any(todo), j, j + 1), y, mode, todo, alive, ys, modes

        def body(carry) -> Any:
            j, y, mode, ys, modes, log, count, result = carry
            alive = result == Result.successful
            j, y, mode, todo, _, ys, modes = jax.lax.while_loop(
                lambda c: (c[0] < size) & ~jnp.any(c[3]),
                quiet,
                (j, y, mode, jnp.zeros(lanes, bool), alive, ys, modes),
            )
            here = jnp.minimum(j, plan.tile - 1)
            step = step_at(here)

            def event(carry) -> Any:
                todo, y, mode, ys, modes, log, count, result = carry
                i = jnp.argmax(todo).astype(jnp.int32)
                at = lambda tree: jax.tree.map(lambda a: row_at(a, i), tree)  # noqa: E731
                own = jax.tree.map(
                    lambda a: jax.lax.dynamic_index_in_dim(
                        a, i, -1, keepdims=False, allow_negative_indices=False
                    ),
                    (across, more),
                )
                y_now, mode_now, y1, mode1, log, count1, result1 = eventful_step(
                    _system(own, (same, rest)),
                    options,
                    (*(at(step) if timed else step), begin + here),
                    jnp.array(True),
                    nought,
                    i * plan.rows,
                    together(at(y), plan.y),
                    together(at(mode), plan.mode),
                    log,
                    row_at(count, i),
                    at(result),
                )
                put = lambda old, new: jax.tree.map(lambda a, b: written(a, i, b), old, new)  # noqa: E731
                show = lambda rows, new: placed(rows, new[None, :, None], (here, 0, i))  # noqa: E731
                return (
                    written(todo, i, jnp.array(False)),
                    put(y, entries(y1)),
                    put(mode, entries(mode1)),
                    show(ys, y_now),
                    show(modes, mode_now),
                    log,
                    written(count, i, count1),
                    put(result, result1),
                )

            stopped = jnp.any(todo)
            _, *after = jax.lax.while_loop(
                lambda c: jnp.any(c[0]), event, (todo, y, mode, ys, modes, log, count, result)
            )
            return jnp.where(stopped, j + 1, j), *after

        first = (jnp.array(0, jnp.int32), y, mode, ys, modes, log, count, result)
        _, y, mode, ys, modes, log, count, result = jax.lax.while_loop(
            lambda c: c[0] < size, body, first
        )
        return (y, log.t1, ys), ((mode, log, count, result), modes)


def _system(own, same) -> Reused:
    """Of one lane: what moves of it and the rest, its own and what it has like all others."""
    moved, rest = (eqx.combine(*parts) for parts in zip(own, same, strict=True))
    return Reused(eqx.combine(moved, rest))


def _first(todo: Array, like: Array) -> Array:
    return jnp.reshape(todo, (-1,) + (1,) * (like.ndim - 1))


def _entries(x: Array) -> list[Array]:
    return jax.vmap(entries)(x)


def stacked(parts: list[Array]) -> Array:
    """Entries of lanes as one array, lanes last; a long vector is one entry (L, n)."""
    return jnp.stack(parts) if parts and parts[0].ndim == 1 else parts[0].T
