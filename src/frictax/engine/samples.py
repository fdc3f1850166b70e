"""The loop over the samples of a record."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx

# unvmap_any: a loop must go on while any lane of a vmap needs it, and its counter stays one number
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from frictax.parameters import Integer, Modes, Number, State, Values
from frictax.parameters.constant import constant
from frictax.parameters.shapes import row_at

from .bracket import Bracket
from .margins import Slope, first_to_fall
from .options import OnSamples, room
from .result import CHATTER, NONFINITE, Result
from .reused import Reused
from .stepping import advance, entries, every, select, some, together
from .system import DEADLINE, END

_LOCATED = 1e-7  # of a step: how near an event is found before the Newton step
_LOOKS = 8  # places in a step at which a dip is looked for


class Retrace(eqx.Module):
    """What reverse mode needs of an event beside the `Log`: where its piece began, where its end
    was found, and the state after it.
    """

    t0: Values
    y0: Float[Array, "... n"]
    found: Values
    y1: Float[Array, "... n"]
    step: Int[Array, "..."]


class Log(eqx.Module):
    """What happened inside steps: time, cause and modes of each event; `retrace` is None where only
    forward mode is asked for.
    """

    t1: Values
    fired: Int[Array, "..."]
    before: Int[Array, "... m"]
    after: Int[Array, "... m"]
    retrace: Retrace | None


class Piece(eqx.Module):
    """A piece of a step, in one mode: from `t` and `y` to the step's end or to the
    deadline before.
    """

    t: Number
    y: State
    mode: Modes


def march(
    model, t0, y0, mode0, ts, options: OnSamples, nought: Any = 0.0, *, keeps: bool = True
) -> Any:
    """The whole run: floats that may be differentiated forward, whole numbers, and what reverse
    mode goes over again.

    That is kept if `keeps`. `nought` is 0 with some derivative: added to all that will have one, it
    spares JAX tracing each loop until it has found out.

    All lanes of a `jax.vmap` march together from sample to sample. A step without event is a few
    lines of one tight loop; the first lane with an event takes all of them through `eventful_step`.
    """
    system = Reused(model)
    grid, slacks = fine_grid(t0, ts, options)
    steps, n, m = grid.shape[0] - 1, y0.shape[0], mode0.shape[0]
    y0 = y0 + nought
    # The last row of each, and of the log, takes what is not to be kept: choosing the row costs
    # less than reading what stands there.
    ys = jnp.concatenate([y0[None], jnp.zeros((steps + 1, n), y0.dtype) + nought])
    modes = jnp.concatenate([mode0[None], jnp.zeros((steps + 1, m), jnp.int32)])
    log = jax.tree.map(
        lambda a: a + nought if jnp.issubdtype(a.dtype, jnp.floating) else a,
        empty_log(options, y0, mode0, keeps),
    )

    def quiet(carry) -> Any:
        # Entry by entry: XLA sees through a stack that is taken apart again, and not through
        # arithmetic with it or a loop around it.
        j, y_entries, mode_entries, _, alive, ys, modes = carry
        y, mode = together(y_entries, y0), together(mode_entries, mode0)
        y1, mode1, calm = quiet_step(
            system, options, (row_at(grid, j), row_at(grid, j + 1), row_at(slacks, j)), y, mode
        )
        stop = eqxi.unvmap_any(alive & ~calm)
        ys, modes = written(ys, j + 1, y1), written(modes, j, mode1)

        def goes_on(olds, news):
            return [jnp.where(stop, a, b) for a, b in zip(olds, entries(news), strict=True)]

        y_entries, mode_entries = goes_on(y_entries, y1), goes_on(mode_entries, mode1)
        return jnp.where(stop, j, j + 1), y_entries, mode_entries, stop, alive, ys, modes

    def body(carry) -> Any:
        j, y, mode, alive, ys, modes, log, count, result = carry
        first = (j, entries(y), entries(mode), jnp.array(False), alive, ys, modes)
        j, y, mode, stop, _, ys, modes = jax.lax.while_loop(
            lambda c: (c[0] < steps) & ~c[3], quiet, first
        )
        y, mode = together(y, y0), together(mode, mode0)

        def eventful(state) -> Any:
            step = grid[j], grid[j + 1], slacks[j], j
            return eventful_step(system, options, step, alive, nought, 0, *state[2:])

        now = (y, mode, y, mode, log, count, result)
        y_now, mode_now, y, mode, log, count, result = jax.lax.cond(
            stop, eventful, lambda state: state, now
        )
        # at the end of the run nothing has stopped it
        here, there = (jnp.where(stop, i, steps + 1) for i in (j, j + 1))
        ys, modes = written(written(ys, here, y_now), there, y), written(modes, here, mode_now)
        return (
            jnp.where(stop, j + 1, j),
            y,
            mode,
            result == Result.successful,
            ys,
            modes,
            log,
            count,
            result,
        )

    zero = jnp.array(0, jnp.int32)
    carry = (zero, y0, mode0, jnp.array(True), ys, modes, log, zero, Result.successful)
    _, _, _, _, ys, modes, log, count, result = jax.lax.while_loop(
        lambda c: c[0] < steps, body, carry
    )
    kept = at_samples(options, ts.shape[0])
    log = jax.tree.map(lambda rows: rows[:-1], log)
    whole = (modes[kept], log.fired, log.before, log.after, count, result, 0 * count + (steps - 1))
    return (ys[kept], log.t1), whole, (ys, modes, log, count) if keeps else None


def quiet_step(system: Reused, options: OnSamples, step, y, mode) -> tuple[Any, Any, Any]:
    """The step from a sample to the next as if nothing happened in it: state and mode after it, and
    whether nothing did.
    """
    t, end, slack = step
    h, still = end - t, constant(system)
    mode1 = system.tick(t + slack, mode)
    rate = system.flow(t, y, mode1)
    y1 = advance(options.solver, lambda t, y: system.flow(t, y, mode1), t, end, y, rate)
    guard = lambda *at: still.guard(*constant(at), mode1)  # noqa: E731
    calm = every(jnp.isfinite(y1)) & _stays_up(
        guard(t, y), guard(t + 0.5 * h, y + 0.5 * h * rate), guard(end, y1)
    )
    return y1, mode1, calm & (system.deadline(mode1) >= end - slack)


def _stays_up(start, middle, end) -> Bool[Array, ""]:
    """Whether margins that are convex, or do not turn, are > 0 all the way: by those at the start
    and the end of a piece, and half a step of Euler's on.

    Of a margin that is convex, the tangent at its start lies below. Half a step of Euler's tells
    the tangent and, as the second stage of most solvers, costs next to nothing.
    """
    up = jnp.array(True)
    for a, b, m in zip(entries(start), entries(end), entries(middle), strict=True):
        tangent = a + 2.5 * (m - a)
        # Of a margin that is infinite, the tangent is NaN; one that is NaN itself is not up.
        up = up & every(jnp.ravel((a > 0) & (b > 0) & ~((tangent < a) & (tangent <= 0))))
    return up


def eventful_step(
    system: Reused,
    options: OnSamples,
    step,
    alive,
    nought,
    first_row,
    y,
    mode,
    log: Log,
    count,
    result,
) -> Any:
    """The step from a sample to the next, piece by piece between its events: state and mode after
    those at the sample, and at the end.

    The events' entries stand in the `log` from `first_row` on.
    """
    t, end, slack, j = step
    begin = t
    size, m = room(options), mode.shape[0]

    def over(now: Piece, found, cause, active) -> tuple[Any, ...]:
        *at, after, fired, status = cross_inside(
            system, options, now, found, cause, None, end, active
        )
        return *at, after, fired.astype(cause.dtype), status.astype(jnp.int32)

    def body(carry) -> Any:
        piece, (y_now, mode_now), active, idle, log, count, result = carry
        t, y = piece.t, piece.y
        mode = system.tick(t + slack, piece.mode)
        mode_now = jnp.where(active & (constant(t) <= begin + slack), mode, mode_now)
        now = Piece(t, y, mode)
        found, cause = _search(system, options, now, end, slack, active)
        t1, y1, after, fired, status = jax.lax.cond(
            cause == END,
            lambda: _to_the_end(system, options, now, end, cause),
            lambda: over(now, found, cause, active),
        )
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
            t1, fired, mode, after, None if log.retrace is None else Retrace(t, y, found, y1, j)
        )
        told = active & ~done & (result == Result.successful)
        row = first_row + jnp.where(told, count, size)
        log = jax.tree.map(lambda rows, new: written(rows, row, new.astype(rows.dtype)), log, entry)
        count = jnp.where(told, count + 1, count)
        at_sample = active & ~done & (constant(t1) <= begin + slack) & (result == Result.successful)
        y_now = jnp.where(at_sample, as_of(system, t1, y1, system.tick(t1 + slack, after)), y_now)
        piece = select(active, following, piece)
        return (
            piece,
            (y_now, mode_now),
            active & ~done & (result == Result.successful),
            idle,
            log,
            count,
            result,
        )

    first = (Piece(t + nought, y, mode), (y, mode), alive, jnp.array(0), log, count, result)
    piece, now, _, _, log, count, result = jax.lax.while_loop(
        lambda c: eqxi.unvmap_any(c[2]), body, first
    )
    return (
        *now,
        jnp.where(result == Result.successful, piece.y, jnp.nan),
        piece.mode,
        log,
        count,
        result,
    )


def _to_the_end(system: Reused, options: OnSamples, now: Piece, end, cause) -> tuple[Any, ...]:
    """As `cross_inside` of a piece that the step ends."""
    y = _state(system, options, now, end)
    status = jnp.where(jnp.all(jnp.isfinite(y)), 0, NONFINITE).astype(jnp.int32)
    return end + 0.0 * now.t, y, now.mode, cause, status


def as_of(system: Reused, t, y, mode) -> Any:
    """The state at the time that `t` is, whichever way derivatives move the event at `t` that led
    to `y` and `mode`.
    """
    return y + constant(system).flow(*constant((t, y)), mode) * (constant(t) - t)


class _Look(eqx.Module):
    """A search inside a piece: the least margin at places already looked at (0 the start, `_LOOKS`
    the end), and the bracket of a fall; `at_once`: some margin is down at the start.
    """

    place: Integer
    values: Float[Array, " k"]
    bracket: Bracket
    at_once: Bool[Array, ""]
    fell: Bool[Array, ""]
    done: Bool[Array, ""]


def _search(system: Reused, options: OnSamples, now: Piece, end, slack, active) -> tuple[Any, Any]:
    """Where the piece ends, and whether at a margin (1), at a deadline (`DEADLINE`) or at the end
    of the step (`END`).

    Looked at is the end first; unless `_stays_up`, the places between, then where the parabola
    through the lowest three is least: a margin may fall and rise again inside a piece. A margin
    that is NaN has fallen. Nothing here is differentiated.
    """
    now, end = constant((now, end))
    system, t = constant(system), now.t
    deadline = system.deadline(now.mode).astype(t.dtype)
    stop = jnp.where(deadline < end - slack, jnp.maximum(deadline, t), end)
    passed = deadline <= t + slack

    def ends() -> tuple[Any, Any, Any]:
        h, rate = stop - t, system.flow(t, now.y, now.mode)
        g0, g1 = (
            system.guard(x, y, now.mode)
            for x, y in ((t, now.y), (stop, _state(system, options, now, stop)))
        )
        middle = system.guard(t + 0.5 * h, now.y + 0.5 * h * rate, now.mode)
        return jnp.min(g0), jnp.min(g1), _stays_up(g0, middle, g1)

    f0, f1, up = _only(active, ends, (t, t, jnp.array(False)))
    expired = ~(f0 > 0) | jnp.isnan(deadline)
    width = (stop - t) / _LOOKS
    finest = 4 * jnp.finfo(t.dtype).eps * jnp.abs(end)

    def aim(s: _Look) -> tuple[Any, Any]:
        """Where to look next, and the place before it."""
        low = jnp.clip(jnp.argmin(s.values[1:-1]) + 1, 1, _LOOKS - 1)
        left, middle, right = s.values[low - 1], s.values[low], s.values[low + 1]
        bend = left - 2 * middle + right
        turn = low + jnp.where(
            bend > 0,
            jnp.clip(0.5 * (left - right) / jnp.where(bend > 0, bend, 1.0), -0.99, 0.99),
            0.0,
        )
        between = s.place < _LOOKS
        at = jnp.where(between, s.place, turn)
        before = jnp.where(between, s.place - 1, jnp.floor(turn).astype(s.place.dtype))
        return jnp.where(s.fell, s.bracket.guess(_LOCATED), t + at * width), before

    def look(s: _Look) -> _Look:
        x, before = _only(~s.done, lambda: aim(s), (t, s.place))
        f = _only(
            ~s.done, lambda: jnp.min(system.guard(x, _state(system, options, now, x), now.mode)), f0
        )
        down = ~s.fell & ~(f > 0)
        begun = Bracket.start(t + before * width, x, s.values[before], f)
        choose = lambda a, b, c: jnp.where(s.fell, a, jnp.where(down, b, c))  # noqa: E731
        bracket = jax.tree.map(choose, s.bracket.narrowed(x, f), begun, s.bracket)
        values = written(s.values, s.place, jnp.where(s.fell, row_at(s.values, s.place), f))
        fell = s.fell | down
        done = jnp.where(fell, located(bracket), s.place >= _LOOKS)
        return _Look(s.place + 1, values, bracket, s.at_once, fell, done | (s.place > 100))

    def located(bracket: Bracket) -> Bool[Array, ""]:
        return bracket.is_shorter_than(_LOCATED) | (bracket.high - bracket.low <= finest)

    values = jnp.full(_LOOKS + 1, jnp.inf, t.dtype).at[0].set(f0).at[_LOOKS].set(f1)
    fell, bracket = ~(f1 > 0), Bracket.start(t, stop, f0, f1)
    idle = ~active | passed | expired | up | (fell & located(bracket))
    first = _Look(jnp.array(1), values, bracket, expired, fell, idle)

    end_ = jax.lax.while_loop(
        lambda s: eqxi.unvmap_any(~s.done), lambda s: select(s.done, s, look(s)), first
    )

    def ending() -> tuple[Any, Any]:
        # As the loop was told: a margin at 0, computed anew by another part of the program, may
        # round to the other side.
        at_once, fell = end_.at_once, end_.fell
        found = jnp.where(at_once, t, jnp.where(fell, end_.bracket.end(), stop))
        return found, jnp.where(
            passed, DEADLINE, jnp.where(fell | at_once, 1, jnp.where(stop < end, DEADLINE, END))
        )

    return _only(active, ending, (t, end_.place))


def cross_inside(
    system: Reused, options: OnSamples, now: Piece, found, cause, fired, end, needed=True
) -> tuple[Any, ...]:
    """From the start of a piece over its end: the exact time by one Newton step, the state there,
    the jump. This is differentiated.

    Of the step's end as a function of its length, both value and derivative are the solver's own,
    so that derivatives are those of the samples that are computed, whatever the step size. The root
    is found so nearly that from there on the end moves along its tangent. `cause` is `_search`'s,
    or None where the margin that `fired` is known. Returns time, state, mode, what fired, and 0, 1
    for no consistent mode or `NONFINITE`.
    """
    t, found = now.t, constant(found)
    margins = jax.eval_shape(system.guard, t, now.y, now.mode)
    none = jnp.zeros(margins.shape, margins.dtype)
    slope, y = _only(
        needed, lambda: _ends(system, options, now, found), (Slope(now.y, none, none), now.y)
    )
    if fired is None:
        # A piece shorter than an event is located to may end where it began, with all its margins
        # still up.
        first = first_to_fall(
            constant(slope), (found <= constant(t)) & some(constant(slope.g) <= 0)
        )
        fired = jnp.where(cause > 0, first, cause)

    def moved() -> Any:
        i = jnp.maximum(fired, 0)
        g, rate = (
            jnp.sum(jnp.where(jnp.arange(x.shape[0]) == i, x, 0.0)) for x in (slope.g, slope.rate)
        )
        falling = rate < 0
        step = -g / jnp.where(falling, rate, 1.0)
        # The value of the step is bounded by the accuracy of the root; its derivative is not.
        most = 1e3 * _LOCATED * (end - t)
        # A margin of a system that jumps, as at a pole, is not 0 where its sign changed; what is
        # nearest to falling is another, far off.
        lost = falling & (found > t) & (jnp.abs(constant(step)) > 10 * (end - t))
        # A margin that was down before the piece began, by a switch or another event, ends it where
        # it began.
        within = falling & (constant(step) >= jnp.where(found <= t, -most, -jnp.inf))
        step = step + constant(
            jnp.clip(step, jnp.maximum(-most, t - found), jnp.minimum(most, end - found)) - step
        )
        deadline = system.deadline(now.mode).astype(t.dtype)
        known = jnp.where(fired == DEADLINE, found + deadline - constant(deadline), end)
        # Late in a run a time is too coarse for where the state moves to: that goes by the step
        # itself.
        step = jnp.where(
            fired >= 0,
            jnp.where(within, step, jnp.where(found <= t, t - constant(t), 0.0)),
            known - found,
        )
        broken = jnp.any(jnp.isnan(slope.g)) | jnp.isnan(deadline)
        return found + step, y + slope.speed * step, lost, broken

    time, state, lost, broken = _only(needed, moved, (t, y, jnp.array(False), jnp.array(False)))
    at = time, state, now.mode, fired
    after, mode, status = _only(needed, lambda: system.jump(*at), jax.eval_shape(system.jump, *at))
    jumped = fired >= DEADLINE
    status = jnp.where(jumped, jnp.where(lost & (fired >= 0), 1, status), 0)
    status = jnp.where(broken, NONFINITE, status)
    return time, jnp.where(jumped, after, state), jnp.where(jumped, mode, now.mode), fired, status


def _ends(system: Reused, options: OnSamples, now: Piece, s) -> tuple[Slope, Any]:
    """Of the piece's end at time `s`: rates, which are not differentiated, margins and state, which
    are.
    """

    def end(system: Reused, now: Piece, s) -> tuple[Any, Any]:
        y = _state(system, options, now, s)
        return system.guard(s, y, now.mode), y

    still, piece = constant((system, now))
    _, (rate, speed) = jax.jvp(lambda s: end(still, piece, s), (s,), (jnp.ones_like(s),))
    g, y = end(system, now, s)
    return Slope(speed, g, rate), y


def _state(system: Reused, options: OnSamples, now: Piece, s) -> Any:
    """The state at time `s` of the piece."""
    return advance(options.solver, lambda t, y: system.flow(t, y, now.mode), now.t, s, now.y)


def _only(needed, compute: Callable[[], Any], like) -> Any:
    """What `compute` returns where it is `needed`, else zeros of the shapes and types of `like`.

    Its reason is not the time saved: XLA does not write the inside of a branch out again for every
    number that is made from its results. Without it, the program of an event is twice as long, and
    so is the time in which LLVM compiles it.
    """
    return jax.lax.cond(
        needed, compute, lambda: jax.tree.map(lambda x: jnp.zeros(jnp.shape(x), x.dtype), like)
    )


@jax.custom_jvp
def written(rows: Array, j, row: Array) -> Array:
    """`rows` with row j replaced, in place inside a loop."""
    return _writer(0)(rows, j, row)


@written.defjvp
def _written_jvp(at, along) -> Any:
    (rows, j, row), (d_rows, _, d_row) = at, along
    return written(rows, j, row), d_rows if d_rows.dtype == jax.dtypes.float0 else _writer(0)(
        d_rows, j, d_row
    )


@functools.cache
def _writer(axis: int) -> Callable:
    """`written` along `axis`.

    Under `jax.vmap` it stays one update of a slice, where JAX's own makes a scatter, to XLA a loop.
    """

    def plain(rows, j, row):
        return jax.lax.dynamic_update_index_in_dim(rows, row, j, axis, allow_negative_indices=False)

    write = jax.custom_batching.custom_vmap(plain)

    @write.def_vmap
    def of_lanes(size: int, many, rows, j, row) -> tuple[Array, bool]:
        if not any(many):
            return plain(rows, j, row), False
        if many[1]:
            return jax.vmap(plain, in_axes=[0 if is_many else None for is_many in many])(
                rows, j, row
            ), True
        rows, row = (
            x if is_many else jnp.broadcast_to(x, (size, *x.shape))
            for x, is_many in ((rows, many[0]), (row, many[2]))
        )
        return _writer(axis + 1)(rows, j, row), True

    return write


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


def empty_log(options: OnSamples, y, mode, keeps: bool) -> Log:
    size = room(options) + 1
    number, whole = jnp.zeros(size, y.dtype), jnp.zeros(size, jnp.int32)
    states, modes = jnp.zeros((size, *y.shape), y.dtype), jnp.zeros((size, *mode.shape), jnp.int32)
    retrace = Retrace(number, states, number, states, whole - 1) if keeps else None
    return Log(jnp.full_like(number, jnp.inf), whole, modes, modes, retrace)


def shapes_of(options: OnSamples, y0, mode0, ts, *, record: bool) -> Any:
    """What `march` gives back, as shapes and types: it need not be traced to know them."""
    number, whole = (
        functools.partial(jax.ShapeDtypeStruct, dtype=dtype) for dtype in (y0.dtype, jnp.int32)
    )
    n, m, samples, events = *y0.shape, *mode0.shape, ts.shape[0], room(options)
    steps = (
        options.steps(samples).sum() + 1 if options.finer else (samples - 1) * options.substeps + 1
    )
    ending = jax.tree.map(lambda x: whole(()), Result.successful)
    ints = (
        whole((samples, m)),
        whole((events,)),
        whole((events, m)),
        whole((events, m)),
        whole(()),
        ending,
        whole(()),
    )
    floats = number((samples, n)), number((events,))
    if not record:
        return floats, ints, None
    trace = Retrace(
        number((events,)),
        number((events, n)),
        number((events,)),
        number((events, n)),
        whole((events,)),
    )
    log = Log(number((events,)), *ints[1:4], trace)
    return floats, ints, (number((steps + 2, n)), whole((steps + 2, m)), log, whole(()))
