"""Derivatives of a run on samples, in forward and reverse mode."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from frictax.jax_internals import depends_on_inputs, nondifferentiable
from frictax.parameters import is_traced
from frictax.parameters.arrays import row_at

from ..implicit import keeps_bounds, take_step
from ..options import OnSamples
from ..result import SECOND, Result
from ..reused import Reused, model_in_mode
from ..tangents import (
    add_time_tangents,
    check_fixed_options,
    linear_map,
    nan_where,
    pull_known,
    split_moving,
    unknown_after_cut,
    zero_if_unused,
)
from . import operation
from .bookkeeping import at_samples, fine_grid, write_row
from .control import PARTS, is_controlled, times_of_part
from .events import Piece, cross_inside, state_at_fixed_time


@eqx.filter_custom_jvp
def run_samples(model, t0, t1, y0, mode0, ts, options: OnSamples) -> Any:
    floats, whole, _ = operation.value(None, model, t0, y0, mode0, ts, options, keeps=False)
    return floats, whole


@run_samples.def_jvp
def _run_samples_jvp(primals, tangents) -> Any:
    model, t0, _, y0, mode0, ts, options = primals
    d_model, d_t0, _, d_y0, _, d_ts, d_options = tangents
    check_fixed_options(options, d_options)
    # The Newton step that locates an event treats rates as constants, which is exact only for first
    # derivatives. A second derivative raises an error, because it would be wrong.
    model_, t0_, y0_, ts_ = nondifferentiable((model, t0, y0, ts), msg=SECOND)
    moved, rest, d_moved = split_moving(model_, d_model)
    d_y0 = jnp.zeros_like(y0) if d_y0 is None else d_y0

    # If the start time does not have a tangent, the step times are constants.
    at = moved, rest, t0_, y0_, mode0, ts_, options
    along = d_moved, d_y0, d_t0
    if options.adjoint is not None:
        floats, d_floats, whole = operation.push(*at, along)
        d_floats = _with_unknown_times(d_floats, *whole[4:6])
        d_ys, d_times = _nan_if_jump_moves(at, d_moved, floats, whole[0], d_floats)
        d_ys = add_time_tangents(model_, ts_, d_ts, floats[0], whole[0], d_ys, slice(1, None))
        return (floats, whole), ((d_ys, d_times), jax.tree.map(lambda _: None, whole))
    floats, whole, record = operation.value(*at, keeps=True)
    # JAX can transpose the tangents only if each of their entries is linear in an input tangent.
    # Therefore `nought`, a zero computed from an input tangent, is added to each entry.
    nought = 0.0 * jnp.sum(jax.tree.leaves((d_model, d_t0, d_y0, d_ts))[0])
    along = (d_moved, *[d if d is None else d + nought for d in along[1:]])
    nothing = jax.tree.map(lambda x: jnp.zeros_like(x) + nought, floats)
    # Forward mode repeats the whole run and does not read the recorded log. If a program uses only
    # the derivatives, JAX computes only the repeated run.
    push = lambda along: _with_unknown_times(*operation.push_alone(*at, along))  # noqa: E731
    back = _pull(moved, rest, (t0_, ts_), record, options, d_t0 is None)

    def pull(cotangents) -> Any:
        ys, times = floats
        unknown = unknown_after_cut(ys, times, _count_known_times(times, *whole[4:6]))
        return pull_known(back, unknown, cotangents)

    d_floats = linear_map(push, pull, along, nothing)
    d_ys, d_times = _nan_if_jump_moves(at, d_moved, floats, whole[0], d_floats)
    d_ys = add_time_tangents(model_, ts_, d_ts, floats[0], whole[0], d_ys, slice(1, None))
    return (floats, whole), ((d_ys, d_times), jax.tree.map(lambda _: None, whole))


_MOVING_JUMP = (
    "A run on samples (`OnSamples`) has no derivative by the `times` of a `Sampled` drive at which"
    " dy/dt jumps, as with `args['der(motor)']`. Take `Adaptive()`, or differentiate by everything"
    " else: by the drive's `values`, by the parameters, but not by the whole machine."
)


def _nan_if_jump_moves(at, d_moved, floats, modes, d_floats) -> Any:
    """Return the tangents `d_floats` of a run, or NaN if dy/dt jumps at a sample and the time of
    this jump has a tangent. If JAX computes numbers at once, raise `ValueError` instead of NaN.

    `tick` changes the segment of a drive at a sample without an event. Therefore the derivatives of
    a run omit a jump of dy/dt at the sample. (They are exact for a drive with a corner.)
    """
    moved, rest, t0, _, _, ts, options = at
    ys, modes = floats[0][:-1], modes[:-1]
    run = lambda moved: Reused(eqx.combine(moved, rest))  # noqa: E731
    ends = lambda moved: jax.vmap(run(moved).deadline)(modes).astype(ts.dtype)  # noqa: E731
    if modes.shape[0] == 0 or not depends_on_inputs(ends, moved):
        return d_floats
    t, d_t = jax.jvp(ends, (moved,), (d_moved,))
    system = run(moved)
    grid, slacks = fine_grid(t0, ts, options)
    slack = jnp.max(slacks)
    first = jnp.searchsorted(grid, t - slack)
    is_at_step = grid[jnp.minimum(first, grid.shape[0] - 1)] <= t + slack
    before = jax.vmap(system.flow)(t, ys, modes)
    ticked = jax.vmap(system.tick)(t + slack, modes)
    after = jax.vmap(system.flow)(t, ys, ticked)
    # If a switch at this time is left, all switches are one event, whose derivatives are known.
    only_tick = is_at_step & (jax.vmap(system.deadline)(ticked) > t + slack)
    is_known = only_tick[:, None] & jnp.isfinite(after)
    sizes = jnp.max(jnp.where(is_known, jnp.abs(after), 0.0), axis=0)
    differ = jnp.abs(after - before) > jnp.sqrt(jnp.finfo(ys.dtype).eps) * sizes
    jumps = jnp.any(is_known & differ, axis=1)
    if not is_traced(jumps) and jnp.any(jumps):
        raise ValueError(_MOVING_JUMP)

    def push(d_t) -> Any:
        lost = jnp.where(jnp.any(jumps & (d_t != 0)), jnp.nan, 0.0)
        return jax.tree.map(lambda d: jnp.zeros_like(d) + lost.astype(d.dtype), floats)

    def pull(cotangents) -> Any:
        used = [jnp.any(c != 0) for c in jax.tree.leaves(cotangents)]
        return jnp.where(jumps & jnp.any(jnp.stack(used)), jnp.nan, jnp.zeros_like(t))

    nothing = jax.tree.map(lambda d: jnp.zeros_like(d) + 0.0 * jnp.sum(d_t), floats)
    return jax.tree.map(jnp.add, d_floats, linear_map(push, pull, d_t, nothing))


def _count_known_times(times, count, result) -> Any:
    """Return how many event times have a derivative: all, or `count` if the run ended early."""
    return jnp.where(result == Result.successful, times.shape[0], count)


def _with_unknown_times(d_floats, count, result) -> Any:
    """Return the tangents of states and event times. After an early end of the run, the tangents of
    event times become NaN. The tangents of states are already NaN there, because `march` multiplies
    these states by NaN."""
    d_ys, d_times = d_floats
    unknown = jnp.arange(d_times.shape[0]) >= _count_known_times(d_times, count, result)
    return d_ys, nan_where(unknown, d_times)


def _pull(moved, rest, times, record, options: OnSamples, starts_fixed: bool) -> Any:
    """Return the function that computes the cotangents of the inputs from those of the outputs. A
    cotangent is the derivative of a scalar result with respect to an input or output. The function
    goes backward through the steps, their parts, and the pieces (intervals between events) of a
    part. If `starts_fixed`, None replaces the cotangent of the start time."""
    ys, modes, log, count, parts = record
    (t0, ts), trace = times, log.retrace
    grid, slacks = fine_grid(t0, ts, options)
    steps = grid.shape[0] - 1
    # `by_start` is the derivative of the step times with respect to the start time.
    along = (jnp.ones_like(grid[0]),)
    by_start = jax.jvp(lambda t0: fine_grid(t0, ts, options)[0], (grid[0],), along)[1]

    def amid(mode, moved) -> tuple[Any, Any]:
        """Return the model that is valid in `mode`, split into two parts: the entries of drive
        tables that are used in `mode`, and all other data.
        """
        model = eqx.combine(moved, rest)
        own = {id(leaf) for leaf in jax.tree.leaves(model)}
        is_read = lambda x: eqx.is_inexact_array(x) and id(x) not in own  # noqa: E731
        return eqx.partition(model_in_mode(model, mode), is_read)

    def tick(t, mode) -> Any:
        return Reused(eqx.combine(moved, rest)).tick(t, mode)

    def complete(mode, moved, read, t, y, end) -> Any:
        """Return the state at the end of a part, computed from the last event before this end."""
        system = Reused(eqx.combine(read, amid(mode, moved)[1]))
        return take_step(system, options, mode, t, end, y)

    def over(e, slack, moved, t, y) -> Any:
        """Return time and state after event e. The third result, for a sample at the event, is the
        state with derivatives at a fixed time."""
        system, mode, end = Reused(eqx.combine(moved, rest)), log.before[e], trace.end[e]
        holds = keeps_bounds(system, options, mode, t, end, y)
        piece = Piece(t, y, mode, end, holds)
        time, state = cross_inside(system, options, piece, trace.found[e], None, log.fired[e])[:2]
        return (
            time,
            state,
            state_at_fixed_time(system, time, state, system.tick(time + slack, log.after[e])),
        )

    def is_in(e, j, u) -> Any:
        """Return whether event e exists and is in the part of step j that begins at position u."""
        last = jnp.clip(e, 0, log.t1.shape[0] - 1)
        return (e >= 0) & (e < count) & (trace.step[last] == j) & (trace.u[last] == u)

    def times_of(j, u, width) -> tuple[Any, Any, Any]:
        return times_of_part((grid[j], grid[j + 1], slacks[j]), u, width)

    def piece_from(e, j, u, width, y, mode) -> tuple[Any, Any, Any]:
        """Return time, state and mode after event e, or at the start of the part if e is not in
        it."""
        begin, _, slack = times_of(j, u, width)
        here, last = is_in(e, j, u), jnp.maximum(e, 0)
        t = jnp.where(here, log.t1[last], begin)
        y = jnp.where(here, trace.y1[last], y)
        return t, y, tick(t + slack, jnp.where(here, log.after[last], mode))

    def extent(j, p, k) -> tuple[Any, Any]:
        """Return position and width of part k of step j. p: row of its first part in `PartLog`."""
        ends = parts.ends.astype(jnp.int32)
        u = jnp.where(k > 0, ends[jnp.maximum(p + k - 1, 0)], 0)
        return u, jnp.where(parts.count[j] > 0, ends[p + k] - u, PARTS)

    def starts(j, p, e, places) -> tuple[Any, Any]:
        """Return `places` with the states and modes at the starts of all parts of step j. p: row of
        the first part in the `PartLog`. e: number of the last event in the step.
        """
        first = jax.lax.while_loop(
            lambda e: (e >= 0) & (trace.step[jnp.maximum(e, 0)] == j), lambda e: e - 1, e
        )

        def forward(k, carry) -> Any:
            e, y, mode, (all_y, all_modes) = carry
            places = write_row(all_y, k, y), write_row(all_modes, k, mode)
            u, width = extent(j, p, k)
            e = jax.lax.while_loop(lambda e: is_in(e + 1, j, u), lambda e: e + 1, e)
            t, y, mode = piece_from(e, j, u, width, y, mode)
            y = complete(mode, moved, amid(mode, moved)[0], t, y, times_of(j, u, width)[1])
            return e, y, mode, places

        # The start of a step is a recorded sample. The loop computes the starts of later parts.
        most = jnp.where(parts.count[j] > 1, parts.count[j], 0)
        places = write_row(places[0], 0, ys[j]), write_row(places[1], 0, modes[j])
        return jax.lax.fori_loop(0, most, forward, (first, ys[j], modes[j], places))[3]

    def pull(cotangents) -> Any:
        c_ys, c_times = cotangents
        c_all = jnp.zeros_like(ys).at[at_samples(options, c_ys.shape[0])].set(c_ys)
        nothing = jax.tree.map(jnp.zeros_like, moved)
        # A step reads only a few entries of the tables of sampled drives. The loop collects the
        # cotangents of the table entries that each step reads. After the loop, these cotangents are
        # added to the cotangents of whole tables. A step without an event must not write a whole
        # table, otherwise the time would grow with the square of the number of samples.
        read = jax.eval_shape(lambda: amid(modes[0], moved)[0])
        used = {id(leaf) for leaf in jax.tree.leaves(amid(modes[0], moved)[1])}
        own, tables = eqx.partition(moved, jax.tree.map(lambda x: id(x) in used, moved))
        c_read = jax.tree.map(lambda x: jnp.zeros((steps, *x.shape), x.dtype), read)
        add = lambda a, b: jax.tree.map(jnp.add, a, b)  # noqa: E731
        most = PARTS if is_controlled(options) else 1
        places = tuple(jnp.zeros((most, *x.shape), x.dtype) for x in (ys[0], modes[0]))

        def body(i, carry) -> Any:
            c_y, c_t0, c_moved, e, p, c_read, ticked, places = carry
            j = steps - 1 - i
            p = p - parts.count[j]
            places = starts(j, p, e, places)

            def part(carry) -> Any:
                k, c_y, c_t0, c_moved, c_now, e, c_read, ticked = carry
                u, width = extent(j, p, k)
                begin, end, slack = times_of(j, u, width)
                shift_begin, shift_end, _ = times_of_part(
                    (by_start[j], by_start[j + 1], slack), u, width
                )
                y0, mode0 = row_at(places[0], k), row_at(places[1], k)
                t, y, mode = piece_from(e, j, u, width, y0, mode0)
                at = own, amid(mode, moved)[0], t, y

                def last_piece(own, *at, mode=mode) -> Any:
                    return complete(mode, eqx.combine(own, tables), *at)

                # If the run ended early, later states are NaN and unused, with cotangents of 0.
                if starts_fixed:
                    back = jax.vjp(lambda *at: last_piece(*at, end), *at)[1]
                    d_own, d_read, c_t, c_y = zero_if_unused(c_y, back(c_y))
                else:
                    back = jax.vjp(last_piece, *at, end)[1]
                    d_own, d_read, c_t, c_y, c_end = zero_if_unused(c_y, back(c_y))
                    c_t0 = c_t0 + shift_end * c_end
                is_last = k + 1 >= parts.count[j]
                ticked = write_row(ticked, j, jnp.where(is_last, mode, ticked[j]))
                # `c_read` is for the mode of the last part of the step. If a part has another mode,
                # its cotangents are added directly to `c_moved`.
                same = jnp.all(mode == ticked[j])
                c_read = jax.tree.map(
                    lambda rows, d: write_row(rows, j, rows[j] + jnp.where(same, d, 0.0)),
                    c_read,
                    d_read,
                )

                def read_elsewhere(carry) -> Any:
                    d_moved = jax.vjp(lambda moved: amid(mode, moved)[0], moved)[1](d_read)[0]
                    return jnp.array(False), add(carry[1], d_moved)

                # In contrast to `jax.lax.cond`, a loop does not copy the tables.
                _, c_moved = jax.lax.while_loop(
                    lambda carry: carry[0],
                    read_elsewhere,
                    (~same, eqx.apply_updates(c_moved, d_own)),
                )

                def event(carry) -> Any:
                    c_t, c_y, c_moved, c_now, e = carry
                    _, back = jax.vjp(
                        lambda *at: over(e, slack, *at), moved, trace.t0[e], trace.y0[e]
                    )
                    # If events occur at a sample, the sample is the state after the last event.
                    at_sample = (u == 0) & (log.t1[e] <= begin + slack)
                    given = c_t + c_times[e], c_y, jnp.where(at_sample, c_now, 0.0)
                    d_moved, c_t, c_y = zero_if_unused(given, back(given))
                    return c_t, c_y, add(c_moved, d_moved), jnp.where(at_sample, 0.0, c_now), e - 1

                c_t, c_y, c_moved, c_now, e = jax.lax.while_loop(
                    lambda c: is_in(c[-1], j, u), event, (c_t, c_y, c_moved, c_now, e)
                )
                return k - 1, c_y, c_t0 + shift_begin * c_t, c_moved, c_now, e, c_read, ticked

            last = jnp.maximum(parts.count[j] - 1, 0)
            first = (last, c_y, c_t0, c_moved, c_all[j], e, c_read, ticked)
            _, c_y, c_t0, c_moved, c_now, e, c_read, ticked = jax.lax.while_loop(
                lambda c: c[0] >= 0, part, first
            )
            return c_y + c_now, c_t0, c_moved, e, p, c_read, ticked, places

        total = jnp.sum(parts.count)
        first = (jnp.zeros_like(ys[0]), jnp.zeros_like(grid[0]), nothing, count - 1, total)
        c_y, c_t0, c_moved, _, _, c_read, ticked, _ = jax.lax.fori_loop(
            0, steps, body, (*first, c_read, modes[:steps], places)
        )
        whole = lambda moved: jax.vmap(lambda mode: amid(mode, moved)[0])(ticked)  # noqa: E731
        c_moved = add(c_moved, jax.vjp(whole, moved)[1](c_read)[0])
        return c_moved, c_y, None if starts_fixed else c_t0

    return pull
