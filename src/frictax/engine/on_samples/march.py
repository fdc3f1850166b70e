"""The loop over the samples of a record, and the division of steps whose error is too large."""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

# A loop continues while any lane of a vmap needs it, and its counter stays one number.
from frictax.jax_internals import unvmap_any
from frictax.parameters import Integer, Modes, State
from frictax.parameters.constant import constant
from frictax.parameters.shapes import row_at

from ..implicit.stiff import keeps_bounds, step as stepped
from ..options import OnSamples, room
from ..result import CHATTER, NONFINITE, Result
from ..reused import Reused
from ..stepping import entries, every, inverse_scales, select, together
from ..system import END
from .control import (
    PARTS,
    Control,
    Judgement,
    PartLog,
    differences_of_piece,
    inverse_scales_of_part,
    is_controlled,
    judge_part,
    judged_states,
    part_tolerance,
    step_with_differences,
    times_of_part,
    update_control,
    widen_ranges,
)
from .crossing import as_of, cross_inside, to_the_end
from .grid import at_samples, fine_grid
from .log import Log, Retrace, empty_log, written
from .search import Piece, search_end, stays_up


class Progress(eqx.Module):
    """State of a run between two samples.

    - `y`, `mode`: state and mode, of many lanes entry by entry; `count`: events so far, in the
      `log`; `result`: a `Result`.
    - `control`: a `Control`, None for a run without error control; `log`: a `Log`; `parts`: a
      `PartLog` of the divided steps, None where reverse mode is not asked for.
    """

    y: Any
    mode: Any
    count: Int[Array, "..."]
    result: Any
    control: Any
    log: Any
    parts: Any


def march(
    model, t0, y0, mode0, ts, options: OnSamples, nought: Any = 0.0, *, keeps: bool = True
) -> Any:
    """The whole run: floats that may be differentiated forward, whole numbers, and what reverse
    mode goes over again.

    That is kept if `keeps`. `nought` is 0 with some derivative: added to all that will have one, it
    spares JAX tracing each loop until it has found out.

    All lanes of a `jax.vmap` march together from sample to sample. A step without event is a few
    lines of one tight loop. The first lane that has an event, or whose error is too large, takes
    all of them through `divided_step`.
    """
    system = Reused(model)
    grid, slacks = fine_grid(t0, ts, options)
    steps, n, m = grid.shape[0] - 1, y0.shape[0], mode0.shape[0]
    y0 = y0 + nought
    # The last row of each, and of the log, takes what is not to be kept: choosing the row costs
    # less than reading what stands there.
    ys = jnp.concatenate([y0[None], jnp.zeros((steps + 1, n), y0.dtype) + nought])
    modes = jnp.concatenate([mode0[None], jnp.zeros((steps + 1, m), jnp.int32)])
    begin = begin_run(system, options, y0, mode0, steps, keeps)
    moving = lambda a: a + nought if jnp.issubdtype(a.dtype, jnp.floating) else a  # noqa: E731
    begin = dataclasses.replace(begin, log=jax.tree.map(moving, begin.log))
    start = judged_states(system, y0)

    def quiet(carry) -> Any:
        # Entry by entry: XLA sees through a stack that is taken apart again, and not through
        # arithmetic with it or a loop around it. The loop carries the state before the step instead
        # of choosing between both states, so that the next step need not wait for the error test.
        j, here, _, _, inverse, alive, ys, modes = carry
        y_entries, mode_entries, (error, _) = here
        y1, mode1, calm, own_error = whole_step(
            system,
            options,
            (row_at(grid, j), row_at(grid, j + 1), row_at(slacks, j)),
            together(y_entries, y0),
            together(mode_entries, mode0),
            inverse,
        )
        stop = unvmap_any(alive & ~(calm & is_within_tolerance(options, own_error)))
        ys, modes = written(ys, j + 1, y1), written(modes, j, mode1)
        reached = entries(y1), entries(mode1), (error + own_error, own_error)
        return j + 1, reached, here, stop, inverse, alive, ys, modes

    def body(carry) -> Any:
        begin, now, ys, modes = carry
        alive = now.result == Result.successful
        divides = now.control is not None and unvmap_any(alive & (now.control.width < PARTS))
        nothing = jnp.zeros((), y0.dtype)
        here = entries(now.y), entries(now.mode), (nothing, nothing)
        inverse = inverse_scales_of_run(now.control, judged_states(system, now.y))
        first = (begin, here, here, jnp.asarray(divides), inverse, alive, ys, modes)
        j, here, before, stop, _, _, ys, modes = jax.lax.while_loop(
            lambda c: (c[0] < steps) & ~c[3], quiet, first
        )
        # The step that stopped the loop is undone. If its error is small, it has an event.
        is_undone = stop & (j > begin)
        has_event = is_undone & is_within_tolerance(options, here[2][1])
        j = jnp.where(is_undone, j - 1, j)
        y, mode, (error, _) = select(is_undone, before, here)
        judged = judged_states(system, together(y, y0))
        now = add_whole_steps(now, (error, inverse), judged, start)
        now = dataclasses.replace(now, y=together(y, y0), mode=together(mode, mode0))

        def divided(now: Progress) -> Any:
            step = grid[j], grid[j + 1], slacks[j], j
            rows = Rows(0, 0, 0)
            return divided_step(
                system, options, step, (alive, has_event), (nought, start), rows, now
            )

        (y_now, mode_now), now = jax.lax.cond(
            stop, divided, lambda now: ((now.y, now.mode), now), now
        )
        # at the end of the run nothing has stopped it
        here, there = (jnp.where(stop, i, steps + 1) for i in (j, j + 1))
        ys = written(written(ys, here, y_now), there, now.y)
        return jnp.where(stop, j + 1, j), now, ys, written(modes, here, mode_now)

    carry = (jnp.array(0, jnp.int32), begin, ys, modes)
    _, now, ys, modes = jax.lax.while_loop(lambda c: c[0] < steps, body, carry)
    kept = at_samples(options, ts.shape[0])
    log = jax.tree.map(lambda rows: rows[:-1], now.log)
    if now.control is not None:
        log = clear_unused_rows(log, now.count)
    farthest = jnp.max(jnp.abs(constant(ys[: steps + 1]) - constant(y0)), axis=0)
    now = extend_ranges(now, judged_states(system, farthest))
    end = summarize_run(now, judged_states(system, now.y), steps, y0.dtype)
    whole = (modes[kept], log.fired, log.before, log.after, now.count, *end)
    return (ys[kept], log.t1), whole, (ys, modes, log, now.count, now.parts) if keeps else None


def begin_run(system: Reused, options: OnSamples, y0, mode0, steps: int, keeps: bool) -> Progress:
    """Return the progress of a run at its start."""
    control = Control.start(judged_states(system, y0)) if is_controlled(options) else None
    return Progress(
        y0,
        mode0,
        jnp.array(0, jnp.int32),
        Result.successful,
        control,
        empty_log(options, y0, mode0, keeps),
        PartLog.empty(options, steps) if keeps else None,
    )


def extend_ranges(now: Progress, farthest: list[Any]) -> Progress:
    """Return the run with ranges that are at least the distances `farthest` from the start."""
    if now.control is None:
        return now
    ranges = [jnp.maximum(a, b) for a, b in zip(now.control.ranges, farthest, strict=True)]
    return dataclasses.replace(now, control=dataclasses.replace(now.control, ranges=ranges))


def summarize_run(now: Progress, y: list[Any], steps: int, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """Return the result of a run that ended at the judged states `y`, the number of its steps and
    parts, its relative error, and the largest number of parts of a step.
    """
    taken = 0 * now.count + (steps - 1)
    if now.control is None:
        return now.result, taken, jnp.full((), jnp.nan, dtype), jnp.ones_like(now.count)
    error, is_inaccurate, finest = now.control.accuracy(y)
    result = Result.where(
        is_inaccurate & (now.result == Result.successful), Result.inaccurate, now.result
    )
    return result, taken + now.control.extra, constant(error), finest


def clear_unused_rows(log: Log, count) -> Log:
    """Return the log without the rows beyond `count`, which refused parts may have written."""
    is_used = jnp.arange(log.t1.shape[0]) < count
    return eqx.tree_at(
        lambda log: (log.t1, log.fired, log.before, log.after),
        log,
        (
            jnp.where(is_used, log.t1, jnp.inf),
            jnp.where(is_used, log.fired, 0),
            jnp.where(is_used[:, None], log.before, 0),
            jnp.where(is_used[:, None], log.after, 0),
        ),
    )


def inverse_scales_of_run(control: Control | None, y: list[Any]) -> list[Any]:
    """Return 1 over the error scales at the states `y`, for the whole steps that follow.

    Scales only grow, so old scales never accept a step that is too long.
    """
    return [] if control is None else inverse_scales(control.ranges, y)


def add_whole_steps(now: Progress, errors, y: list[Any], start: list[Any]) -> Progress:
    """Return the run after whole steps to the judged states `y`.

    `errors`: the sum of the relative errors of these steps, and 1 over their scales. The sum counts
    for each state.
    """
    if now.control is None:
        return now
    error, inverse = errors
    sums = [a + error / i for a, i in zip(now.control.errors, inverse, strict=True)]
    ranges = widen_ranges(now.control.ranges, y, start)
    return dataclasses.replace(
        now, control=dataclasses.replace(now.control, errors=sums, ranges=ranges)
    )


def whole_step(
    system: Reused, options: OnSamples, step, y, mode, inverse: list[Any]
) -> tuple[Any, Any, Any, Any]:
    """Take the step from a sample to the next as a whole. Return state and mode after it, whether
    it has no event, and its relative error.
    """
    y1, mode1, calm, differences = quiet_step(system, options, step, y, mode)
    if differences is None:
        return y1, mode1, calm, jnp.zeros((), y.dtype)
    return y1, mode1, calm, judge_part(differences, inverse).error


def is_within_tolerance(options: OnSamples, error) -> Any:
    """Return whether the relative error of a part is within the tolerance. NaN is not."""
    if not is_controlled(options):
        return jnp.array(True)
    return error <= part_tolerance(options, error.dtype)


def quiet_step(system: Reused, options: OnSamples, step, y, mode) -> tuple[Any, Any, Any, Any]:
    """Take a step or a part without looking for events. Return state and mode after it, whether it
    has no event, and the differences for its error (None without error control).
    """
    t, end, slack = step
    h, still = end - t, constant(system)
    mode1 = system.tick(t + slack, mode)
    rate = system.flow(t, y, mode1)
    if is_controlled(options):
        y1, differences = step_with_differences(system, options, mode1, t, end, y, rate)
    else:
        y1 = stepped(system, options, mode1, t, end, y, rate, sound=True)
        differences = None
    guard = lambda *at: still.guard(*constant(at), mode1)  # noqa: E731
    calm = every(jnp.isfinite(y1)) & stays_up(
        guard(t, y), guard(t + 0.5 * h, y + 0.5 * h * rate), guard(end, y1)
    )
    if (kept := keeps_bounds(system, options, mode1, t, end, y, y1)) is not None:
        calm = calm & kept
    return y1, mode1, calm & (system.deadline(mode1) >= end - slack), differences


class Rows(NamedTuple):
    """The first rows of a run in the log of events, and in the counts and the ends of its parts."""

    events: Any
    counts: Any
    ends: Any


class _InStep(eqx.Module):
    """State of a step between two of its parts.

    - `u`: position at which the next part begins, in units of 1/`PARTS`; `now`: the run there.
    - `shown`: state and mode at the sample, after the events there.
    - `active`: whether the step is not finished; `has_event`: whether the next part has an event.
    """

    u: Integer
    now: Progress
    shown: tuple[State, Modes]
    active: Any
    has_event: Any


def divided_step(
    system: Reused, options: OnSamples, step, lane, origin, rows: Rows, now: Progress
) -> tuple[tuple[Any, Any], Progress]:
    """Take the step from a sample to the next part by part. Return state and mode at the sample
    after the events there, and the run at the end of the step.

    A part whose error is above the tolerance is refused, and the next part is half as long.

    - `lane`: whether the run is alive; whether the whole step is known to have an event and a small
      error.
    - `origin`: 0 with some derivative, as in `march`; the judged states of the start.
    """
    t, end, _, j = step
    (alive, known), (nought, start) = lane, origin
    is_judged = now.control is not None
    tol = part_tolerance(options, now.y.dtype) if is_judged else 0.0
    if is_judged:
        # The last step of a run has no length.
        width = jnp.where(constant(end - t) > 0, now.control.width, PARTS)
        now = dataclasses.replace(now, control=dataclasses.replace(now.control, width=width))
    begun = now.control

    def part_of(c: _InStep) -> tuple[Any, Any, Any]:
        if c.now.control is None:
            return step[:3]
        return times_of_part(step[:3], c.u, c.now.control.width)

    def is_good(now: Progress, part: Judgement) -> Any:
        return is_within_tolerance(options, part.error) | (now.control.width <= 1)

    def after(c: _InStep, new: Progress, shown, accepted, refused, part: Judgement) -> _InStep:
        """Return the step after a part. If the part is accepted, the run is `new`."""
        old, control, parts = c.now, c.now.control, c.now.parts
        take = lambda name: select(accepted, getattr(new, name), getattr(old, name))  # noqa: E731
        result, u = take("result"), jnp.where(accepted, PARTS, c.u)
        if is_judged:
            u = jnp.where(accepted, c.u + control.width, c.u)
            if parts is not None:
                is_kept = accepted & (control.width < PARTS)
                row = rows.ends + jnp.where(is_kept, control.divided, options.max_steps)
                ends = written(parts.ends, row, u.astype(parts.ends.dtype))
                parts = dataclasses.replace(parts, ends=ends)
            control = update_control(control, c.u, accepted, refused, part, tol)
            if system.is_stiff():
                # Linearly implicit steps damp what they do not resolve.
                control = dataclasses.replace(control, unmet=c.now.control.unmet)
            is_out = accepted & (control.divided > options.max_steps)
            is_out = is_out & (result == Result.successful)
            result = Result.where(is_out, Result.max_steps_reached, result)
        return _InStep(
            u,
            Progress(take("y"), take("mode"), take("count"), result, control, new.log, parts),
            select(accepted, shown, c.shown),
            c.active & (u < PARTS) & (result == Result.successful),
            c.has_event & ~accepted & ~refused,
        )

    def quiet(c: _InStep) -> _InStep:
        """Take the next part if it has no event."""
        now = c.now
        y1, mode1, calm, differences = quiet_step(system, options, part_of(c), now.y, now.mode)
        at, to = judged_states(system, now.y), judged_states(system, y1)
        part = judge_part(differences, inverse_scales_of_part(now.control, at, to, start))
        good = is_good(now, part)
        new = dataclasses.replace(now, y=y1, mode=mode1)
        shown = c.shown[0], jnp.where(c.u == 0, mode1, c.shown[1])
        runs = c.active & ~c.has_event
        done = after(c, new, shown, runs & good & calm, runs & ~good, part)
        return dataclasses.replace(done, has_event=c.has_event | (runs & good & ~calm))

    def eventful(c: _InStep) -> _InStep:
        """Take the next part if it has an event."""
        runs = c.active & c.has_event
        new, shown, part = eventful_part(
            system, options, (*part_of(c), j, c.u), runs, (nought, start), rows.events, c
        )
        good = is_good(c.now, part) if is_judged else jnp.array(True)
        return after(c, new, shown, runs & good, runs & ~good, part)

    def next_parts(c: _InStep) -> _InStep:
        if not is_judged:
            return eventful(c)
        log = c.now.log  # a part without event does not change it
        c = eqx.tree_at(lambda c: c.now, c, dataclasses.replace(c.now, log=None))
        c = jax.lax.while_loop(lambda c: unvmap_any(c.active & ~c.has_event), quiet, c)
        c = eqx.tree_at(lambda c: c.now, c, dataclasses.replace(c.now, log=log))
        return jax.lax.cond(unvmap_any(c.active & c.has_event), eventful, lambda c: c, c)

    # Without error control the whole step is one part that may have an event.
    first = _InStep(
        jnp.array(0, jnp.int32),
        now,
        (now.y, now.mode),
        alive,
        alive & known & (now.control.width == PARTS) if is_judged else alive,
    )
    last = jax.lax.while_loop(lambda c: unvmap_any(c.active), next_parts, first)
    now = last.now
    # a factor whose derivative is NaN, too
    reached = jnp.where(now.result == Result.successful, 1.0, jnp.nan).astype(now.y.dtype)
    # The last step has no length: its sample is the run's end.
    shown = last.shown[0] * jnp.where(end > t, 1.0, reached), last.shown[1]
    control, parts = now.control, now.parts
    if is_judged:
        ranges = widen_ranges(control.ranges, judged_states(system, now.y), start)
        control = dataclasses.replace(control, ranges=ranges)
        if parts is not None:
            count = written(parts.count, rows.counts + j, control.divided - begun.divided)
            parts = dataclasses.replace(parts, count=count)
    return shown, dataclasses.replace(now, y=now.y * reached, control=control, parts=parts)


def eventful_part(
    system: Reused, options: OnSamples, part, alive, origin, first_row, c: _InStep
) -> tuple[Progress, Any, Judgement]:
    """Take a part of a step piece by piece between its events. Return the run after the part, state
    and mode at the sample after the events there, and the error of the part.

    Events are written to the log from `first_row` on.
    """
    begin, end, slack, j, u = part
    (nought, start), now = origin, c.now
    size, m = room(options), now.mode.shape[0]

    def over(now: Piece, found, cause, active) -> tuple[Any, ...]:
        *at, after, fired, status = cross_inside(
            system, options, now, found, cause, None, end, active
        )
        return *at, after, fired.astype(cause.dtype), status.astype(jnp.int32)

    def with_error(of: Judgement, t, t1, y, mode, active) -> Judgement:
        """Add the error of a piece to the error of the part."""
        if now.control is None:
            return of
        y_end, differences = differences_of_piece(constant(system), mode, *constant((t, t1, y)))
        at, to = judged_states(system, y), judged_states(system, y_end)
        piece = judge_part(differences, inverse_scales_of_part(now.control, at, to, start))
        whole = Judgement(
            jnp.maximum(of.error, piece.error),
            [a + b for a, b in zip(of.errors, piece.errors, strict=True)],
        )
        return select(active, whole, of)

    def body(carry) -> Any:
        piece, (y_now, mode_now), active, idle, log, count, result, error = carry
        t, y = piece.t, piece.y
        mode = system.tick(t + slack, piece.mode)
        is_first = (u == 0) & (constant(t) <= begin + slack)
        mode_now = jnp.where(active & is_first, mode, mode_now)
        now = Piece(t, y, mode)
        found, cause = search_end(system, options, now, end, slack, active)
        t1, y1, after, fired, status = jax.lax.cond(
            cause == END,
            lambda: to_the_end(system, options, now, end, cause),
            lambda: over(now, found, cause, active),
        )
        error = with_error(error, t, t1, y, mode, active)
        done = fired == END
        following = Piece(t1, y1, jnp.where(done, mode, after))
        idle = jnp.where(constant(t1 - t) <= slack, idle + 1, 0)
        for failed, how in (
            ((status == NONFINITE) | ~jnp.all(jnp.isfinite(y1)), Result.nonfinite),
            (~done & (count >= size), Result.too_many_events),
            (idle >= CHATTER + 2 * m, Result.chatter),
            (status != 0, Result.inconsistent),
        ):
            result = Result.where(active & failed & (result == Result.successful), how, result)
        entry = Log(
            t1, fired, mode, after, None if log.retrace is None else Retrace(t, y, found, y1, j, u)
        )
        told = active & ~done & (result == Result.successful)
        row = first_row + jnp.where(told, count, size)
        log = jax.tree.map(lambda rows, new: written(rows, row, new.astype(rows.dtype)), log, entry)
        count = jnp.where(told, count + 1, count)
        at_sample = (u == 0) & (constant(t1) <= begin + slack) & told
        y_now = jnp.where(at_sample, as_of(system, t1, y1, system.tick(t1 + slack, after)), y_now)
        piece = select(active, following, piece)
        goes_on = active & ~done & (result == Result.successful)
        return piece, (y_now, mode_now), goes_on, idle, log, count, result, error

    nothing = jnp.zeros((), now.y.dtype)
    error = Judgement(nothing, [jnp.zeros_like(x) for x in start])
    first = (
        Piece(begin + nought, now.y, now.mode),
        c.shown,
        alive,
        jnp.array(0),
        now.log,
        now.count,
        now.result,
        error,
    )
    piece, shown, _, _, log, count, result, error = jax.lax.while_loop(
        lambda c: unvmap_any(c[2]), body, first
    )
    return Progress(piece.y, piece.mode, count, result, now.control, log, now.parts), shown, error


def shapes_of(options: OnSamples, y0, mode0, ts, *, record: bool) -> Any:
    """What `march` gives back, as shapes and types: it need not be traced to know them."""

    def blank(y0, mode0) -> Any:
        samples = ts.shape[0]
        steps = (
            int(sum(options.steps(samples))) if options.finer else (samples - 1) * options.substeps
        )
        log = jax.tree.map(lambda rows: rows[:-1], empty_log(options, y0, mode0, record))
        rows = lambda k, like: jnp.zeros((k, *like.shape), like.dtype)  # noqa: E731
        one = jnp.array(0, jnp.int32)
        end = Result.successful, one, jnp.zeros((), y0.dtype), one
        told = log.fired, log.before, log.after, one, *end
        kept = None
        if record:
            parts = PartLog.empty(options, steps + 1)
            kept = (rows(steps + 3, y0), rows(steps + 3, mode0), log, one, parts)
        return (rows(samples, y0), log.t1), (rows(samples, mode0), *told), kept

    return jax.eval_shape(blank, y0, mode0)
