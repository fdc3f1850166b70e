"""A batch of runs on samples: the same machine with different numbers. A "lane" is one run.

`march_lanes` divides the batch into blocks. A `Block` computes steps without events for all its
runs together, and a step with events for one run at a time. `Plan` contains the array sizes.
"""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.parameters.arrays import constant, row_at

from ..options import OnSamples, room
from ..result import Result
from ..reused import Reused
from ..stepping import entries, stack_entries
from .bookkeeping import Log, at_samples, empty_log, fine_grid, write_row, write_rows
from .control import PARTS, PartLog, judged_states
from .march import (
    Progress,
    Rows,
    add_whole_steps,
    begin_run,
    clear_unused_rows,
    divided_step,
    extend_ranges,
    inverse_scales_of_run,
    is_within_tolerance,
    summarize_run,
    whole_step,
)


class LaneResults(eqx.Module):
    """The results of a batch of runs. The first axis of each array is the run. The last axis of a
    tangent is the direction of differentiation ("seed"). Arrays that were not requested are None.
    """

    ys: Array | None
    d_ys: Array | None
    modes: Array | None
    log: Log
    d_t1: Array | None
    count: Array
    parts: PartLog | None  # recorded only for reverse-mode differentiation
    end: Any  # result code, number of steps, relative error, and largest number of parts of a step


@dataclasses.dataclass(frozen=True)
class Plan:
    """Sizes and types of the arrays of a block of runs."""

    options: OnSamples
    lanes: int  # number of runs in this block, which is a part of the batch
    steps: int
    tile: int  # number of steps whose samples are written to the result together
    y: Array  # the state of one run
    mode: Array  # the mode of one run
    seeds: int | None  # number of tangents of each run; None without derivatives
    keeps: bool  # whether the steps are recorded for reverse-mode differentiation
    shows: tuple[bool, bool]  # whether states and modes at the samples are returned

    @classmethod
    def for_run(
        cls, options, lanes: int, steps: int, y0, mode0, seeds, keeps: bool, shows
    ) -> "Plan":
        y, mode = y0[0], mode0[0]
        row = lanes * (y.shape[0] * y.dtype.itemsize * (1 + (seeds or 0)) + 4 * mode.shape[0])
        # A block collects up to 256 KiB of samples before it writes them to the result.
        most = min(max(2**18 // max(row, 1), 4), 64, steps)
        # The last tile may extend beyond the run. Choose its length for the fewest unused steps.
        tile = min(range(most, most // 2, -1), key=lambda w: -steps % w)
        return cls(options, lanes, steps, tile, y, mode, seeds, keeps, shows)

    @property
    def tiles(self) -> int:
        return -(-self.steps // self.tile)

    @property
    def beyond(self) -> int:
        """The number of unused steps in the last group of steps ("tile")."""
        return self.tiles * self.tile - self.steps

    @property
    def rows(self) -> int:
        """The number of rows of a run's log. Unneeded entries are written to the last row."""
        return room(self.options) + 1

    def room(self, lanes: int) -> LaneResults:
        rows = self.tiles * self.tile
        of = lambda like, *ahead: jnp.zeros((lanes, *ahead, *like.shape), like.dtype)  # noqa: E731
        nothing = lambda x: jnp.zeros((*x.shape, self.seeds), x.dtype)  # noqa: E731
        has_ys, has_modes = self.shows
        ys = of(self.y, rows)
        log = jax.tree.map(lambda a: of(a[:-1]), self.log())
        return LaneResults(
            ys if has_ys else None,
            None if self.seeds is None else nothing(ys),
            of(self.mode, rows) if has_modes else None,
            log,
            None if self.seeds is None else nothing(log.t1),
            jnp.zeros(lanes, jnp.int32),
            jax.tree.map(of, PartLog.empty(self.options, self.steps)) if self.keeps else None,
            (
                jax.tree.map(lambda a: jnp.full(lanes, a), Result.successful),
                jnp.zeros(lanes, jnp.int32),
                jnp.zeros(lanes, self.y.dtype),
                jnp.zeros(lanes, jnp.int32),
            ),
        )

    def log(self) -> Log:
        return empty_log(self.options, self.y, self.mode, self.keeps)

    def collect(self, made: LaneResults, lanes: int, samples: int) -> Any:
        made = jax.tree.map(lambda a: a[:lanes], made)
        kept = at_samples(self.options, samples)
        log = made.log
        ys, modes = (None if a is None else a[:, kept] for a in (made.ys, made.modes))
        whole = (modes, log.fired, log.before, log.after, made.count, *made.end)
        floats = ys, log.t1
        if self.seeds is not None:
            assert made.d_ys is not None
            return floats, (made.d_ys[:, kept], made.d_t1), whole
        if not self.keeps:
            return floats, whole, None

        def full(a: Any) -> Array:
            """Return the rows of all steps, followed by two unused rows, as in `march`."""
            return jnp.pad(a[:, : self.steps], [(0, 0), (0, 2), *[(0, 0)] * (a.ndim - 2)])

        return floats, whole, (full(made.ys), full(made.modes), log, made.count, made.parts)


class Since(eqx.Module):
    """Errors of each run of a block, summed over the steps since the run's last divided step.

    - `error`: the sum of the relative errors; `inverse`: 1 over the error scale of each state.
    - `farthest`: the largest distance of each error-controlled state from its start value so far.

    The sums of a run are not reset at the divided steps of other runs. Therefore a run in a batch
    gives the same results as a single run.
    """

    error: Array
    inverse: list[Array]
    farthest: list[Array]


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of runs of a batch.

    - `moved`, `rest`: the differentiated part and the constant part of the model. Each part is a
      pair: arrays that differ between runs (runs as last axis), and arrays that all runs share.
    - `rest_by_lane`: the arrays of `rest` that differ between runs, with the runs as first axis. An
      event reads whole tables of one run, and reads them faster if they are contiguous in memory.
    - `slacks` [s] (steps,) or (steps, lanes): time tolerance of each step, see `fine_grid`.
    """

    plan: Plan
    moved: Any
    rest: Any
    rest_by_lane: Any
    slacks: Array

    def run(self, y0, d_y0, mode0, grid, d_grid, d_moved, first, made: LaneResults) -> LaneResults:
        """Simulate this block, and write its results to `made` from run number `first` on."""
        plan, seeds = self.plan, self.plan.seeds
        begun, start = self.begin(y0, mode0)
        judged = self.judged_entries(_entries(y0))
        since = Since(
            jnp.zeros(plan.lanes, plan.y.dtype),
            inverse_scales_of_run(begun.control, judged),
            [jnp.zeros_like(x) for x in judged],
        )
        log = begun.log
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
            over = functools.partial(self.over, begin, whole, start)
            nought = jnp.zeros((), plan.y.dtype)
            y, t1 = floats
            at = self.moved, y, t1, nought, cut(grid)
            if along is None:
                (*floats, ys), (whole, modes) = over(*at)
                d_ys = None
            else:
                along = d_moved, *along, jnp.zeros(seeds, nought.dtype)
                along = along if d_grid is None else (*along, cut(d_grid, 1))
                # The first axis of all tangents is the direction of differentiation.
                going, still = at[: len(along)], at[len(along) :]
                push = lambda along: jax.jvp(  # noqa: E731
                    lambda *going: over(*going, *still), going, along, has_aux=True
                )
                (*floats, ys), (*along, d_ys), (whole, modes) = jax.vmap(
                    push, out_axes=(None, 0, None)
                )(along)
            put = lambda rows, tile, *axes: (  # noqa: E731
                None
                if rows is None
                else write_rows(rows, jnp.transpose(tile, axes), (first, begin))
            )
            made = dataclasses.replace(
                made,
                ys=put(made.ys, ys, 2, 0, 1),
                d_ys=put(made.d_ys, d_ys, 3, 1, 2, 0),
                modes=put(made.modes, modes, 2, 0, 1),
            )
            return tuple(floats), None if along is None else tuple(along), whole, made

        carry = floats, along, (begun, since), made
        (y, t1), along, (whole, since), made = jax.lax.fori_loop(0, plan.tiles, tile, carry)
        whole = extend_ranges(self.add(whole, since, constant(y), start), since.farthest)
        log = eqx.tree_at(lambda log: log.t1, whole.log, t1)
        lane = lambda a: a.reshape(plan.lanes, plan.rows, *a.shape[1:])[:, :-1]  # noqa: E731
        log = jax.tree.map(lane, log)
        if whole.control is not None:
            log = jax.vmap(clear_unused_rows)(log, whole.count)

        def put(old, new) -> Any:
            return jax.tree.map(lambda a, b: write_rows(a, b, (first,)), old, new)

        ends = jax.vmap(
            lambda now, y: summarize_run(now, y, plan.steps, plan.y.dtype), in_axes=(0, 0)
        )
        brief = dataclasses.replace(whole, log=None, parts=None, mode=None)
        parts = whole.parts
        if parts is not None:
            parts = jax.tree.map(lambda a: a.reshape(plan.lanes, -1), parts)
        made = dataclasses.replace(
            made,
            log=put(made.log, log),
            count=put(made.count, whole.count),
            parts=put(made.parts, parts),
            end=put(made.end, ends(brief, self.judged_entries(y))),
        )
        if along is not None:
            d_t1 = jax.vmap(lane)(along[1])
            made = dataclasses.replace(made, d_t1=put(made.d_t1, jnp.moveaxis(d_t1, 0, -1)))
        return made

    def begin(self, y0, mode0) -> tuple[Progress, Any]:
        """Return the `Progress` of all runs at the start, without states, and the start states."""
        plan = self.plan
        now = begin_run(
            self.first_system(), plan.options, plan.y, plan.mode, plan.steps, plan.keeps
        )
        each = lambda a: jnp.tile(a, (plan.lanes,) + (1,) * a.ndim)  # noqa: E731
        rows = lambda a: jnp.tile(a, (plan.lanes,) + (1,) * (a.ndim - 1))  # noqa: E731
        control, count, result = jax.tree.map(each, (now.control, now.count, now.result))
        log, parts = jax.tree.map(rows, (now.log, now.parts))
        return Progress(None, _entries(mode0), count, result, control, log, parts), constant(
            _entries(y0)
        )

    def first_system(self) -> Reused:
        """Return the system of the first run of the block."""
        (across, same), (_, rest) = self.moved, self.rest
        own = (
            jax.tree.map(lambda a: a[..., 0], across),
            jax.tree.map(lambda a: a[0], self.rest_by_lane),
        )
        return _system(own, (same, rest))

    def judged_entries(self, y: list[Array]) -> list[Array]:
        """Return the error-controlled entries of `y`, which have the runs as first axis."""
        count = self.first_system().judged_states()
        y = constant(y)
        if len(y) == 1 and y[0].ndim > 1:
            return [y[0][:, :count]]
        return y[:count]

    def add(self, now: Progress, since: Since, y: list[Array], start: list[Array]) -> Progress:
        """Add the errors in `since` to the runs `now`. `y`, `start`: current and start states."""
        error, inverse = since.error, since.inverse
        error = error if not inverse or inverse[0].ndim == 1 else error[:, None]
        return add_whole_steps(
            now, (error, inverse), self.judged_entries(y), self.judged_entries(start)
        )

    def over(self, begin, so_far: tuple[Progress, Since], start, moved, y, t1, nought, grid) -> Any:
        """Take the steps of a tile (group of steps). `begin`: first step; `nought`: see `march`."""
        plan, options, lanes = self.plan, self.plan.options, self.plan.lanes
        whole, since = so_far
        log = eqx.tree_at(lambda log: log.t1, whole.log, t1)
        timed = grid.ndim > 1
        size = jnp.minimum(plan.tile, plan.steps - begin)
        ys = jnp.zeros((plan.tile, *plan.y.shape, lanes), plan.y.dtype) + nought
        modes = None
        if plan.shows[1]:
            modes = jnp.zeros((plan.tile, *plan.mode.shape, lanes), plan.mode.dtype)

        def step_at(j) -> Any:
            return row_at(grid, j), row_at(grid, j + 1), row_at(self.slacks, begin + j)

        def one(own, same, y, mode, inverse, step) -> Any:
            y, mode, calm, error = whole_step(
                _system(own, same),
                options,
                step,
                stack_entries(y, plan.y),
                stack_entries(mode, plan.mode),
                inverse,
            )
            return (entries(y), entries(mode)), calm, error

        (across, same), (more, rest) = moved, self.rest
        in_axes = (-1, None, 0, 0, 0, 0 if timed else None)
        all_lanes = jax.vmap(one, in_axes=in_axes)

        def quiet(carry) -> Any:
            j, now, error, inverse, _, (alive, whole_steps), ys, modes = carry
            y, mode = now
            new, calm, own_error = all_lanes(
                (across, more), (same, rest), y, mode, inverse, step_at(j)
            )
            ys = write_row(ys, j, stack_lanes(y, plan.y, lanes))
            if modes is not None:
                modes = write_row(modes, j, stack_lanes(new[1], plan.mode, lanes))
            good = is_within_tolerance(options, own_error)
            todo = alive & ~(calm & good & whole_steps)
            now = _where(todo, now, new)
            error = jnp.where(todo, error, error + own_error)
            j = jnp.where(jnp.any(todo), j, j + 1)
            return j, now, error, inverse, todo, (alive, whole_steps), ys, modes

        def body(carry) -> Any:
            j, now, since, ys, modes = carry
            alive, nobody = now.result == Result.successful, jnp.zeros(lanes, bool)
            whole_steps = ~nobody if now.control is None else now.control.width == PARTS
            first = (j, (now.y, now.mode), since.error, since.inverse, nobody)
            j, (y, mode), error, _, todo, _, ys, modes = jax.lax.while_loop(
                lambda c: (c[0] < size) & ~jnp.any(c[4]),
                quiet,
                (*first, (alive, whole_steps), ys, modes),
            )
            since, stops = dataclasses.replace(since, error=error), todo
            control = _where(stops, self.add(now, since, y, start).control, now.control)
            now = dataclasses.replace(now, y=y, mode=mode, control=control)
            here = jnp.minimum(j, plan.tile - 1)
            step = step_at(here)

            def event(carry) -> Any:
                todo, now, ys, modes = carry
                i = jnp.argmax(todo).astype(jnp.int32)
                at = lambda tree: jax.tree.map(lambda a: row_at(a, i), tree)  # noqa: E731
                own = jax.tree.map(
                    lambda a: jax.lax.dynamic_index_in_dim(
                        a, i, -1, keepdims=False, allow_negative_indices=False
                    ),
                    across,
                )
                system = _system((own, at(self.rest_by_lane)), (same, rest))
                lane = Progress(
                    stack_entries(at(now.y), plan.y),
                    stack_entries(at(now.mode), plan.mode),
                    at(now.count),
                    at(now.result),
                    at(now.control),
                    now.log,
                    now.parts,
                )
                rows = Rows(
                    i * plan.rows,
                    i * (plan.steps + 1),
                    0 if now.parts is None else i * (now.parts.ends.shape[0] // lanes),
                )
                (y_now, mode_now), lane = divided_step(
                    system,
                    options,
                    (*(at(step) if timed else step), begin + here),
                    jnp.array(True),
                    (nought, judged_states(system, stack_entries(at(start), plan.y))),
                    rows,
                    lane,
                )

                def put(old, new) -> Any:
                    return jax.tree.map(lambda a, b: write_row(a, i, b), old, new)

                def show(rows, new) -> Any:
                    return (
                        None if rows is None else write_rows(rows, new[None, :, None], (here, 0, i))
                    )

                now = Progress(
                    put(now.y, entries(lane.y)),
                    put(now.mode, entries(lane.mode)),
                    put(now.count, lane.count),
                    put(now.result, lane.result),
                    put(now.control, lane.control),
                    lane.log,
                    lane.parts,
                )
                todo = write_row(todo, i, jnp.array(False))
                return todo, now, show(ys, y_now), show(modes, mode_now)

            _, now, ys, modes = jax.lax.while_loop(
                lambda c: jnp.any(c[0]), event, (todo, now, ys, modes)
            )
            inverse = inverse_scales_of_run(now.control, self.judged_entries(now.y))
            renewed = Since(jnp.zeros_like(error), inverse, since.farthest)
            since = _where(stops, renewed, since)
            return jnp.where(jnp.any(stops), j + 1, j), now, since, ys, modes

        now = dataclasses.replace(whole, y=y, log=log)
        first = (jnp.array(0, jnp.int32), now, since, ys, modes)
        _, now, since, ys, modes = jax.lax.while_loop(lambda c: c[0] < size, body, first)
        # Rows of the tile after the end of the run contain 0; the ranges do not include these rows.
        is_run = (jnp.arange(plan.tile) < size)[:, None, None]
        away = jnp.abs(constant(ys) - stack_lanes(start, plan.y, lanes))
        farthest = self.judged_entries(_entries(jnp.max(jnp.where(is_run, away, 0.0), axis=0).T))
        farthest = [jnp.maximum(a, b) for a, b in zip(since.farthest, farthest, strict=True)]
        since = dataclasses.replace(since, farthest=farthest)
        return (now.y, now.log.t1, ys), ((dataclasses.replace(now, y=None), since), modes)


def _system(own, same) -> Reused:
    """Return the system of one run. `own`: arrays of the model for this run only; `same`: arrays
    that all runs share. Each argument is a pair: arrays with derivatives, and all other arrays."""
    moved, rest = (eqx.combine(*parts) for parts in zip(own, same, strict=True))
    return Reused(eqx.combine(moved, rest))


def _where(these: Array, new: Any, old: Any) -> Any:
    """Return `new` for runs (first axis) with flag True in `these`, and otherwise `old`."""
    broad = lambda like: jnp.reshape(these, (-1,) + (1,) * (like.ndim - 1))  # noqa: E731
    return jax.tree.map(lambda a, b: jnp.where(broad(a), a, b), new, old)


def _entries(x: Array) -> list[Array]:
    return jax.vmap(entries)(x)


def stack_lanes(parts: list[Array], like: Array, lanes: int) -> Array:
    """Stack the state entries of all runs to an array (n, lanes). `like` (n,): state of one run."""
    if not parts:
        return jnp.zeros((0, lanes), like.dtype)
    return jnp.stack(parts) if len(parts) == like.shape[0] else parts[0].T


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
    """Return the results of `march` for a batch of runs ("lanes"), with the runs as first axis.

    - `own`: the differentiated and the constant part of the model, t0, y0, mode0 and ts. An array
      whose flag in the tree `many` is True has the runs as first axis, see `partition_lanes`.
    - `along`: tangents (derivatives along a direction) of the differentiated part, of t0 (or None)
      and of y0. The first axis of each tangent is the direction ("seed"). With `along`, the results
      are floats, their tangents (directions as last axis), and whole numbers.
    - `shows`: two flags for returning states and modes; None replaces results that are not
      returned.

    All runs of a block go from sample to sample together: each number is a vector with an entry for
    each run. A branch in such a program is executed for all runs. Therefore a step with an event is
    computed for one run at a time. The samples of a few steps are collected in a small array
    (tile), which is then written to the result.
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
    (moved, rest), (same_moved, same_rest) = partition_lanes((moved, rest), (is_moved, is_rest))
    d_moved, d_same = partition_lanes(d_moved, is_moved)
    y0, mode0 = each(y0, is_y0), each(mode0, is_mode0)
    if along is not None and not is_y0:
        d_y0 = jnp.broadcast_to(d_y0[:, None], (seeds, lanes, *d_y0.shape[1:]))
    clock, d_clock = ((grid, slacks), d_grid) if timed else (None, None)

    blocks = -(-lanes // 64)  # A block has at most 64 runs.
    size = -(-lanes // blocks)
    plan = Plan.for_run(options, size, grid.shape[-1] - 1, y0, mode0, seeds, keeps, shows)

    def split(tree, axis: int) -> Any:
        """Divide the runs along `axis` into blocks. Copies of the last run fill the last block."""

        def in_blocks(a: Array) -> Array:
            more = blocks * size - a.shape[axis]
            if more:
                last = jax.lax.slice_in_dim(a, -1, None, axis=axis)
                a = jnp.concatenate([a, jnp.repeat(last, more, axis)], axis)
            return a.reshape(*a.shape[:axis], blocks, size, *a.shape[axis + 1 :])

        return jax.tree.map(in_blocks, tree)

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
        # With the batch axis as last axis, the numbers that a step reads are adjacent in memory.
        moved, rest, clock = last((moved, rest, clock), 0)
        d_moved, d_clock = last((d_moved, d_clock), 1)
        times, slack = (grid, slacks) if clock is None else clock
        d_times = d_grid if d_clock is None else d_clock
        slack = _pad_steps(plan.beyond, slack, 0)
        now = Block(plan, (moved, same_moved), (rest, same_rest), rest_by_lane, slack)
        times, d_times = _pad_steps(plan.beyond, times, 0), _pad_steps(plan.beyond, d_times, 1)
        return now.run(y0, d_y0, mode0, times, d_times, (d_moved, d_same), b * size, made)

    made = plan.room(blocks * size)
    made = block(jnp.int32(0), made) if blocks == 1 else jax.lax.fori_loop(0, blocks, block, made)
    return plan.collect(made, lanes, times[1].shape[-1])


def partition_lanes(tree, many) -> tuple[Any, Any]:
    """Return two trees: arrays with a batch axis (flag True in `many`), and all other arrays."""
    is_none = lambda x: x is None  # noqa: E731
    pick = lambda keep: jax.tree.map(  # noqa: E731
        lambda x, is_many: x if bool(is_many) is keep else None, tree, many, is_leaf=is_none
    )
    return pick(True), pick(False)


def _pad_steps(rows: int, a: Any, axis: int) -> Any:
    """Append `rows` rows of zeros to `a` along `axis`. Return None if `a` is missing."""
    if a is None:
        return None
    return jnp.pad(a, [(0, rows if k == axis else 0) for k in range(a.ndim)])
