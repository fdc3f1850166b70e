"""The loop over the samples of a run, and the division of steps whose error is too large."""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

# Under jax.vmap, a loop for a batch of runs continues until all runs have ended.
from frictax.jax_internals import unvmap_any
from frictax.parameters import Integer, Modes, Number, State
from frictax.parameters.arrays import constant, row_at

from ..implicit import keeps_bounds, take_step
from ..options import OnSamples, room
from ..result import CHATTER, NONFINITE, Result
from ..reused import Reused
from ..stepping import all_of, entries, inverse_scales, select, stack_entries
from ..system import END
from .bookkeeping import Log, Retrace, at_samples, empty_log, fine_grid, write_row
from .control import (
    PARTS,
    Control,
    Judgement,
    PartLog,
    inverse_scales_of_part,
    is_controlled,
    judge_by_halves,
    judge_part,
    judged_states,
    part_tolerance,
    step_with_differences,
    times_of_part,
    update_control,
    widen_ranges,
)
from .events import (
    Attempt,
    Piece,
    compute_if,
    cross_inside,
    search_end,
    state_at_fixed_time,
    stays_up,
)


class Progress(eqx.Module):
    """State of a run between two samples.

    - `y`, `mode`: state and mode; for a batch of runs, each is a list with an array for each entry.
    - `count`: number of events so far; `log`: the `Log` of these events; `result`: a `Result`.
    - `control`: state of the error control; None without error control. `parts`: the `PartLog` of
      the divided steps; None without reverse-mode differentiation.
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
    """Return the results of a whole run: floats (differentiable in forward mode), whole numbers,
    and, if `keeps` is True, data for reverse mode.

    `nought` is a zero with a derivative. `march` adds it to each number that will have a
    derivative. Without this sum, JAX traces each loop several times to find these numbers.

    Under `jax.vmap` all runs go from sample to sample together, in a short loop for steps without
    events. If any of the runs has an event or a large error, all runs execute `divided_step`.
    """
    system = Reused(model)
    grid, slacks = fine_grid(t0, ts, options)
    steps, n, m = grid.shape[0] - 1, y0.shape[0], mode0.shape[0]
    y0 = y0 + nought
    # Unneeded values are written to an unused last row of each array and of the log. This is
    # cheaper than reading an old row and writing it back.
    ys = jnp.concatenate([y0[None], jnp.zeros((steps + 1, n), y0.dtype) + nought])
    modes = jnp.concatenate([mode0[None], jnp.zeros((steps + 1, m), jnp.int32)])
    begin = begin_run(system, options, y0, mode0, steps, keeps)
    moving = lambda a: a + nought if jnp.issubdtype(a.dtype, jnp.floating) else a  # noqa: E731
    begin = dataclasses.replace(begin, log=jax.tree.map(moving, begin.log))
    start = judged_states(system, y0)

    def quiet(carry) -> Any:
        # The loop carries the entries of the state as scalars. XLA can then remove the vectors that
        # are stacked from the scalars and immediately unstacked. The loop also carries the state
        # before the step, so that the next step does not wait for the error test.
        j, here, _, _, inverse, alive, ys, modes = carry
        y_entries, mode_entries, error = here
        y1, mode1, calm, own_error = whole_step(
            system,
            options,
            (row_at(grid, j), row_at(grid, j + 1), row_at(slacks, j)),
            stack_entries(y_entries, y0),
            stack_entries(mode_entries, mode0),
            inverse,
        )
        stop = unvmap_any(alive & ~(calm & is_within_tolerance(options, own_error)))
        ys, modes = write_row(ys, j + 1, y1), write_row(modes, j, mode1)
        reached = entries(y1), entries(mode1), error + own_error
        return j + 1, reached, here, stop, inverse, alive, ys, modes

    def body(carry) -> Any:
        begin, now, ys, modes = carry
        alive = now.result == Result.successful
        divides = now.control is not None and unvmap_any(alive & (now.control.width < PARTS))
        here = entries(now.y), entries(now.mode), jnp.zeros((), y0.dtype)
        inverse = inverse_scales_of_run(now.control, judged_states(system, now.y))
        first = (begin, here, here, jnp.asarray(divides), inverse, alive, ys, modes)
        j, here, before, stop, _, _, ys, modes = jax.lax.while_loop(
            lambda c: (c[0] < steps) & ~c[3], quiet, first
        )
        # If an event or a large error stopped the loop, its last step is undone.
        is_undone = stop & (j > begin)
        j = jnp.where(is_undone, j - 1, j)
        y, mode, error = select(is_undone, before, here)
        judged = judged_states(system, stack_entries(y, y0))
        now = add_whole_steps(now, (error, inverse), judged, start)
        now = dataclasses.replace(now, y=stack_entries(y, y0), mode=stack_entries(mode, mode0))

        def divide(now: Progress) -> Any:
            step = grid[j], grid[j + 1], slacks[j], j
            return divided_step(system, options, step, alive, (nought, start), Rows(0, 0, 0), now)

        (y_now, mode_now), now = jax.lax.cond(
            stop, divide, lambda now: ((now.y, now.mode), now), now
        )
        # Without a call of `divide`, the values are written to the unused last rows of the arrays.
        here, there = (jnp.where(stop, i, steps + 1) for i in (j, j + 1))
        ys = write_row(write_row(ys, here, y_now), there, now.y)
        return jnp.where(stop, j + 1, j), now, ys, write_row(modes, here, mode_now)

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
    """Return the `Progress` of a run at its start."""
    judged = judged_states(system, y0)
    control = Control.start(judged) if is_controlled(options) else None
    count, log = jnp.array(0, jnp.int32), empty_log(options, y0, mode0, keeps)
    parts = PartLog.empty(options, steps) if keeps else None
    return Progress(y0, mode0, count, Result.successful, control, log, parts)


def extend_ranges(now: Progress, farthest: list[Any]) -> Progress:
    """Enlarge each state's range in the run `now` to at least its distance `farthest`."""
    if now.control is None:
        return now
    ranges = [jnp.maximum(a, b) for a, b in zip(now.control.ranges, farthest, strict=True)]
    return dataclasses.replace(now, control=dataclasses.replace(now.control, ranges=ranges))


def summarize_run(now: Progress, y: list[Any], steps: int, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """Return the `Result`, the number of steps (each part counts as one), the relative error, and
    the largest number of parts of a step. `y`: the error-controlled states at the end of the run.
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
    """Reset the rows of the log from `count` on, which may contain events of refused parts."""
    is_used = jnp.arange(log.t1.shape[0]) < count
    rows = is_used[:, None]
    t1, fired = jnp.where(is_used, log.t1, jnp.inf), jnp.where(is_used, log.fired, 0)
    before, after = jnp.where(rows, log.before, 0), jnp.where(rows, log.after, 0)
    return dataclasses.replace(log, t1=t1, fired=fired, before=before, after=after)


def inverse_scales_of_run(control: Control | None, y: list[Any]) -> list[Any]:
    """Return 1 over the error scale of each state `y` for the next undivided steps.

    The range of a state only grows, so its scale before these steps is not too large later.
    """
    return [] if control is None else inverse_scales(control.ranges, y)


def add_whole_steps(now: Progress, errors, y: list[Any], start: list[Any]) -> Progress:
    """Add undivided steps, which end at the error-controlled states `y`, to errors and ranges.

    `errors`: the sum of the relative errors of these steps, and 1 over the error scales. The error
    of each state grows by this sum times the scale of the state.
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
    """Take the step from a sample to the next sample without division and without a search for
    events. Return state and mode after the step, whether no event occurs, and the relative error.
    """
    t, end, slack = step
    mode1 = system.tick(t + slack, mode)
    y1, _, differences, margins = step_with_margins(system, options, mode1, t, end, y)
    calm = all_of(jnp.isfinite(y1)) & stays_up(*margins)
    if (kept := keeps_bounds(system, options, mode1, t, end, y, y1)) is not None:
        calm = calm & kept
    calm = calm & (system.deadline(mode1) > latest_deadline(step))
    if differences is None:  # without error control
        return y1, mode1, calm, jnp.zeros((), y.dtype)
    return y1, mode1, calm, judge_part(differences, inverse).error


def latest_deadline(step) -> Any:
    """Return the time up to which a mode change at a known time belongs to a step, given by its
    start, end and slack [s]. The next step begins with a change at the step's end. The last step of
    a run, which has length 0, contains the changes at the end of the run.
    """
    t, end, slack = constant(step)
    return end + jnp.where(t < end, -slack, slack)


def is_within_tolerance(options: OnSamples, error) -> Any:
    """Return whether a relative error is within the tolerance (True without error control)."""
    if not is_controlled(options):
        return jnp.array(True)
    return error <= part_tolerance(options, error.dtype)


def step_with_margins(system: Reused, options: OnSamples, mode, t, end, y) -> tuple[Any, ...]:
    """Take one step in one mode. Return the state at `end`, dy/dt at the start, the two differences
    from which `judge_part` estimates the error, and the event functions at three points.

    The three points are: the start, after half a step of Euler's method, and the end.
    """
    h, still = end - t, constant(system)
    rate = system.flow(t, y, mode)
    if is_controlled(options):
        y1, differences = step_with_differences(system, options, mode, t, end, y, rate)
    else:
        y1 = take_step(system, options, mode, t, end, y, rate, holds=True)
        differences = None
    guard = lambda *at: still.guard(*constant(at), mode)  # noqa: E731
    margins = guard(t, y), guard(t + 0.5 * h, y + 0.5 * h * rate), guard(end, y1)
    return y1, rate, differences, margins


class Rows(NamedTuple):
    """The first row of a run in three arrays: the log of events, and `count` and `ends` of the
    `PartLog`. If the run does not share the arrays with other runs, all three are 0."""

    events: Any
    counts: Any
    ends: Any


class _Part(eqx.Module):
    """The part of a divided step that is being computed: its start, and its error so far.

    - `u`: start position in units of 1/`PARTS` of the step; `y`, `mode`, `count`, `shown`: the
      values of `Progress` and `_InStep` at the start, from which a refused part begins again.
    - `error`: the estimated error from the start to the last event in this part; `idle`: number of
      successive events at the same time.
    """

    u: Integer
    y: State
    mode: Modes
    count: Integer
    shown: tuple[State, Modes]
    error: Judgement
    idle: Integer


class _InStep(eqx.Module):
    """State of a divided step at the start of one of its pieces (intervals between events).

    - `t`: start time of the piece; `now`: the run at this time; `part`: the part with this piece.
    - `shown`: state and mode at the sample where the step begins, after events at this sample.
    - `active`: whether the step is unfinished; `has_event`: whether the piece, computed as
      `attempt`, may contain an event.
    """

    t: Number
    now: Progress
    part: _Part
    shown: tuple[State, Modes]
    active: Any
    has_event: Any
    attempt: Attempt


def divided_step(
    system: Reused, options: OnSamples, step, alive, origin, rows: Rows, now: Progress
) -> tuple[tuple[Any, Any], Progress]:
    """Take the step from a sample to the next sample. Divide the step into parts, and the parts at
    events. Return state and mode at the first sample (after its events), and `Progress` at the
    step's end.

    The rest of a part is first computed as one step. If its error is above the tolerance, the part
    begins again with half the width. If the rest of the part may contain an event, `search_end`
    locates the event, and the part continues after the event.

    - `alive`: False if the run has failed. `origin`: the zero `nought` of `march`, and the
      error-controlled states at the start of the run.
    """
    t, end, _, j = step
    nought, start = origin
    is_judged = now.control is not None
    tol = part_tolerance(options, now.y.dtype) if is_judged else 0.0
    if is_judged:
        # The grid ends with a step of length 0, which is not divided.
        width = jnp.where(constant(end - t) > 0, now.control.width, PARTS)
        now = dataclasses.replace(now, control=dataclasses.replace(now.control, width=width))
    begun = now.control
    no_error = Judgement(jnp.zeros((), now.y.dtype), [jnp.zeros_like(x) for x in start])

    def times_of(c: _InStep) -> tuple[Any, Any, Any]:
        if c.now.control is None:
            return step[:3]
        return times_of_part(step[:3], c.part.u, c.now.control.width)

    def part_from(u, now: Progress, shown) -> _Part:
        idle = jnp.array(0, jnp.int32)
        return _Part(u, now.y, now.mode, now.count, shown, no_error, idle)

    def end_part(c: _InStep, y, error: Judgement, accepted, refused) -> _InStep:
        """Return the `_InStep` after a part. If `accepted`, the part ends with the state `y`. If
        `refused`, the part begins again. If both flags are False, the part continues."""
        part, control, parts = c.part, c.now.control, c.now.parts
        begin, stop, _ = times_of(c)
        y = jnp.where(accepted, y, c.now.y)
        y, mode, count, shown = select(
            refused,
            (part.y, part.mode, part.count, part.shown),
            (y, c.now.mode, c.now.count, c.shown),
        )
        result, u = c.now.result, jnp.where(accepted, PARTS, part.u)
        if is_judged:
            u = jnp.where(accepted, part.u + control.width, part.u)
            if parts is not None:
                is_kept = accepted & (control.width < PARTS)
                row = rows.ends + jnp.where(is_kept, control.divided, options.max_steps)
                ends = write_row(parts.ends, row, u.astype(parts.ends.dtype))
                parts = dataclasses.replace(parts, ends=ends)
            control = update_control(control, part.u, accepted, refused, error, tol)
            if system.is_stiff():
                # Linearly implicit steps damp oscillations that they cannot resolve. Therefore a
                # missed tolerance at the smallest part does not make the run inaccurate.
                control = dataclasses.replace(control, unmet=c.now.control.unmet)
            is_out = accepted & (control.divided > options.max_steps)
            is_out = is_out & (result == Result.successful)
            result = Result.where(is_out, Result.max_steps_reached, result)
        now = Progress(y, mode, count, result, control, c.now.log, parts)
        ended = accepted | refused
        t = jnp.where(accepted, stop, jnp.where(refused, begin + nought, c.t))
        return dataclasses.replace(
            c,
            t=t,
            now=now,
            part=select(ended, part_from(u, now, shown), part),
            shown=shown,
            active=c.active & (u < PARTS) & (result == Result.successful),
        )

    def try_rest(c: _InStep) -> _InStep:
        """Compute the rest of the part as one step without events, and accept or refuse this
        step."""
        now, (begin, stop, slack) = c.now, times_of(c)
        runs = c.active & ~c.has_event

        def attempt_rest() -> tuple[Any, Attempt, Any]:
            mode, attempt, calm, differences = attempt_piece(
                system, options, c.t, stop, slack, now.y, now.mode
            )
            if is_judged:
                at, to = judged_states(system, now.y), judged_states(system, attempt.y)
                inverse = inverse_scales_of_part(now.control, at, to, start)
                error = judge_part(differences, inverse)

                def halves() -> Judgement:
                    y = two_halves(system, options, c.t, now.y, mode, attempt)
                    return judge_by_halves(system, to, judged_states(system, y), inverse)

                good = is_within_tolerance(options, error.error)
                error = jax.lax.cond(good, lambda: error, halves)
                attempt = dataclasses.replace(attempt, error=error)
            return mode, attempt, calm

        mode, attempt, calm = compute_if(runs, attempt_rest, (now.mode, c.attempt, runs))
        is_first = (c.part.u == 0) & (constant(c.t) <= begin + slack)
        shown = c.shown[0], jnp.where(is_first, mode, c.shown[1])
        error, good = c.part.error, jnp.array(True)
        if is_judged:
            error = error.with_piece(attempt.error, 1.0)
            good = is_within_tolerance(options, attempt.error.error) | (now.control.width <= 1)
        c = dataclasses.replace(
            c,
            now=dataclasses.replace(now, mode=jnp.where(runs, mode, now.mode)),
            shown=select(runs, shown, c.shown),
            has_event=c.has_event | (runs & good & ~calm),
            attempt=select(runs, attempt, c.attempt),
        )
        return end_part(c, attempt.y, error, runs & good & calm, runs & ~good)

    def take_event(c: _InStep) -> _InStep:
        """Search for an event in the computed `attempt`, and continue after this event."""
        runs, now, attempt = c.active & c.has_event, c.now, c.attempt
        (begin, _, slack), mode = times_of(c), now.mode
        size, m = room(options), mode.shape[0]
        piece = Piece(c.t, now.y, mode, attempt.end, attempt.holds)
        found, cause = search_end(system, options, piece, attempt, slack, runs)
        crossed = runs & (cause != END)
        t1, y1, after, fired, status = cross_inside(
            system, options, piece, found, cause, None, crossed
        )
        done = runs & (cause == END)  # without an event the part is complete
        y1 = jnp.where(cause == END, attempt.y, y1)
        status = jnp.where(crossed, status, 0).astype(jnp.int32)
        idle = jnp.where(constant(t1 - c.t) <= slack, c.part.idle + 1, 0)
        result = now.result
        for failed, how in (
            ((status == NONFINITE) | ~jnp.all(jnp.isfinite(y1)), Result.nonfinite),
            (~done & (now.count >= size), Result.too_many_events),
            (~done & (idle >= CHATTER + 2 * m), Result.chatter),
            (status != 0, Result.inconsistent),
        ):
            result = Result.where(runs & failed & (result == Result.successful), how, result)
        told = runs & ~done & (result == Result.successful)
        u = c.part.u
        retrace = None
        if now.log.retrace is not None:
            retrace = Retrace(c.t, now.y, found, attempt.end, y1, j, u)
        entry = Log(t1, fired.astype(jnp.int32), mode, after, retrace)
        row = rows.events + jnp.where(told, now.count, size)
        log = jax.tree.map(
            lambda rows, new: write_row(rows, row, new.astype(rows.dtype)), now.log, entry
        )
        at_sample = (u == 0) & (constant(t1) <= begin + slack) & told
        seen = state_at_fixed_time(system, t1, y1, system.tick(t1 + slack, after))
        shown = jnp.where(at_sample, seen, c.shown[0]), c.shown[1]
        goes_on = runs & ~done
        error = c.part.error
        if is_judged:
            share = constant((t1 - c.t) / jnp.maximum(attempt.end - c.t, jnp.finfo(t1.dtype).tiny))
            piece_error = error.with_piece(attempt.error, jnp.where(done, 1.0, share))
            error = select(runs, piece_error, error)
        now = dataclasses.replace(
            now,
            y=jnp.where(goes_on, y1, now.y),
            mode=jnp.where(goes_on, after, mode),
            count=jnp.where(told, now.count + 1, now.count),
            result=result,
            log=log,
        )
        c = dataclasses.replace(
            c,
            t=jnp.where(goes_on, t1, c.t),
            now=now,
            part=dataclasses.replace(c.part, error=error, idle=jnp.where(runs, idle, c.part.idle)),
            shown=shown,
            active=c.active & (result == Result.successful),
            has_event=c.has_event & ~runs,
        )
        done = done & (result == Result.successful)
        return end_part(c, y1, error, done, jnp.array(False))

    def next_pieces(c: _InStep) -> _InStep:
        log = c.now.log  # only an event changes the log
        c = eqx.tree_at(lambda c: c.now, c, dataclasses.replace(c.now, log=None))
        c = jax.lax.while_loop(lambda c: unvmap_any(c.active & ~c.has_event), try_rest, c)
        c = eqx.tree_at(lambda c: c.now, c, dataclasses.replace(c.now, log=log))
        return jax.lax.cond(unvmap_any(c.active & c.has_event), take_event, lambda c: c, c)

    shown, no = (now.y, now.mode), jnp.array(False)
    y, here = constant(now.y) + nought, constant(t)
    holds = no if system.is_stiff() and options.solver is None else None
    error = no_error if is_judged else None
    nothing = Attempt(here, y, constant(y), (here, here), no, no, no, holds, error)
    part = part_from(jnp.array(0, jnp.int32), now, shown)
    first = _InStep(t + nought, now, part, shown, alive, jnp.zeros_like(alive), nothing)
    last = jax.lax.while_loop(lambda c: unvmap_any(c.active), next_pieces, first)
    now = last.now
    # The states of a failed run are multiplied by NaN, so that values and derivatives are NaN.
    reached = jnp.where(now.result == Result.successful, 1.0, jnp.nan).astype(now.y.dtype)
    # The last step has length 0. The sample of this step, the end state, is NaN after a failed run.
    shown = last.shown[0] * jnp.where(end > t, 1.0, reached), last.shown[1]
    control, parts = now.control, now.parts
    if is_judged:
        ranges = widen_ranges(control.ranges, judged_states(system, now.y), start)
        control = dataclasses.replace(control, ranges=ranges)
        if parts is not None:
            count = write_row(parts.count, rows.counts + j, control.divided - begun.divided)
            parts = dataclasses.replace(parts, count=count)
    return shown, dataclasses.replace(now, y=now.y * reached, control=control, parts=parts)


def attempt_piece(
    system: Reused, options: OnSamples, t, end, slack, y, mode
) -> tuple[Any, Attempt, Any, Any]:
    """Take one step to `end`, or to the earlier deadline (known time of a mode change). Return the
    mode, the `Attempt`, whether the step reaches `end` without an event, and the two differences
    from which `judge_part` estimates the error."""
    mode = system.tick(t + slack, mode)
    deadline = constant(system.deadline(mode)).astype(t.dtype)
    latest = latest_deadline((t, end, slack))
    is_due = deadline <= latest
    stop = jnp.where(is_due, jnp.clip(deadline, constant(t), constant(end)), end)
    y1, rate, differences, margins = step_with_margins(system, options, mode, t, stop, y)
    calm = all_of(jnp.isfinite(y1)) & stays_up(*margins)
    holds = keeps_bounds(system, options, mode, t, stop, y, y1)
    if holds is not None:
        calm = calm & holds
        y1 = jax.lax.cond(holds, lambda: y1, lambda: system.safe_step(t, stop, y, mode))
        margins = *margins[:2], constant(system).guard(*constant((stop, y1)), mode)
    begin, middle, last = margins
    attempt = Attempt(
        end=constant(stop),
        y=y1,
        rate=constant(rate),
        lowest=(jnp.min(begin), jnp.min(last)),
        is_up=stays_up(*margins),
        may_be_up=all_of((begin > 0) & (middle > 0) & (last > 0)),
        is_due=is_due,
        holds=holds,
        error=None,
    )
    # If the deadline is NaN, this comparison is False, and `take_event` reports the failure.
    return mode, attempt, calm & (deadline > latest), differences


def two_halves(system: Reused, options: OnSamples, t, y, mode, attempt: Attempt) -> Any:
    """Return the state at the end of `attempt` from two half steps, without derivatives."""
    system, t, y = constant((system, t, y))
    middle = t + 0.5 * (attempt.end - t)

    def half(k, y) -> Any:
        begin, end = jnp.where(k == 0, t, middle), jnp.where(k == 0, middle, attempt.end)
        return take_step(system, options, mode, begin, end, y, holds=attempt.holds)

    return jax.lax.fori_loop(0, 2, half, y)


def shapes_of(options: OnSamples, y0, mode0, ts, *, record: bool) -> Any:
    """Return the shapes and types of the results of `march` without tracing `march`."""

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
