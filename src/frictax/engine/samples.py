"""The loop over the samples of a record."""

from typing import Any

import equinox as eqx
import equinox.internal as eqxi  # unvmap_any: a loop must go on while any lane of a vmap needs it, and its counter stays one number
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from frictax.engine.options import OnSamples
from frictax.engine.phase import Slope, first_to_fall, hold, slope_of
from frictax.engine.result import CHATTER, Result
from frictax.engine.root import Bracket
from frictax.engine.stepping import advance, every
from frictax.mechanism.system import DEADLINE, END

_LOCATED = 1e-7  # of a step: how near an event is found before the Newton step
_LOOKS = 8  # places in a step at which a dip is looked for


class Retrace(eqx.Module):
    """What reverse mode needs of an event beside the `Log`: where its piece began, where its end was found, and the state after it."""

    t0: Float[Array, "..."]
    y0: Float[Array, "... n"]
    found: Float[Array, "..."]
    y1: Float[Array, "... n"]
    step: Int[Array, "..."]


class Log(eqx.Module):
    """What happened inside steps: time, cause and modes of each event; `retrace` is None where only forward mode is asked for."""

    t1: Float[Array, "..."]
    fired: Int[Array, "..."]
    before: Int[Array, "... m"]
    after: Int[Array, "... m"]
    retrace: Retrace | None


class Piece(eqx.Module):
    """A piece of a step, in one mode: from `t` and `y` to the step's end or to the deadline before."""

    t: Float[Array, ""]
    y: Float[Array, " n"]
    mode: Int[Array, " m"]


def march(model: Any, t0: Any, y0: Any, mode0: Any, ts: Any, options: OnSamples) -> Any:
    """The whole run: floats that may be differentiated forward, whole numbers, and what reverse mode goes over again.

    All lanes of a `jax.vmap` march together from sample to sample. A step without event is a few lines of one tight loop; the first lane
    with an event takes all of them through `_eventful`.
    """
    system, args = model
    grid = fine_grid(t0, ts, options.substeps)
    steps, n, m = grid.shape[0] - 1, y0.shape[0], mode0.shape[0]
    ys = jnp.zeros((steps + 1, n), y0.dtype).at[0].set(y0)
    modes = jnp.zeros((steps + 1, m), jnp.int32).at[0].set(mode0)
    log = _empty(options, y0, mode0)

    def quiet(carry: Any) -> Any:
        j, y, mode, _, alive, ys, modes = carry
        t, end = _read(grid, j), _read(grid, j + 1)
        h, slack = end - t, slack_of(t, end)
        mode1 = system.tick(t + slack, mode, args)
        y1 = advance(options.solver, lambda t, y: system.flow(t, y, mode1, args), t, end, y)
        margins = lambda t, y: system.guard(t, y, mode1, args)  # noqa: E731
        g, g1 = margins(t, y), margins(end, y1)
        # Of a margin that is convex over the step, the tangent at its start lies below. Half a step of Euler's tells the tangent and, as
        # the second stage of most solvers, costs next to nothing.
        tangent = g + 2.5 * (margins(t + 0.5 * h, y + 0.5 * h * system.flow(t, y, mode1, args)) - g)
        calm = every((g > 0) & (g1 > 0) & ~((tangent < g) & (tangent <= 0))) & every(jnp.isfinite(y1))
        calm = calm & (system.deadline(mode1, args) >= end - slack)
        stop = eqxi.unvmap_any(alive & ~calm)
        ys, modes = _written(ys, j + 1, y1), _written(modes, j + 1, mode1)
        return jnp.where(stop, j, j + 1), jnp.where(stop, y, y1), jnp.where(stop, mode, mode1), stop, alive, ys, modes

    def body(carry: Any) -> Any:
        j, y, mode, alive, ys, modes, log, count, result = carry
        first = (j, y, mode, jnp.array(False), alive, ys, modes)
        j, y, mode, stop, _, ys, modes = jax.lax.while_loop(lambda c: (c[0] < steps) & ~c[3], quiet, first)

        def eventful(state: Any) -> Any:
            return _eventful(system, args, options, grid, j, alive, *state)

        y, mode, log, count, result = jax.lax.cond(stop, eventful, lambda state: state, (y, mode, log, count, result))
        k = jnp.minimum(j + 1, steps)
        ys = ys.at[k].set(jnp.where(stop, y, ys[k]))
        modes = modes.at[k].set(jnp.where(stop, mode, modes[k]))
        return jnp.where(stop, j + 1, j), y, mode, result == Result.successful, ys, modes, log, count, result

    zero = jnp.array(0, jnp.int32)
    carry = (zero, y0, mode0, jnp.array(True), ys, modes, log, zero, Result.successful)
    _, _, _, _, ys, modes, log, count, result = jax.lax.while_loop(lambda c: c[0] < steps, body, carry)
    floats = (ys[:: options.substeps], log.t1)
    return floats, (modes[:: options.substeps], log.fired, log.before, log.after, count, result, jnp.array(steps)), (ys, modes, log, count)


def _eventful(
    system: Any, args: Any, options: OnSamples, grid: Any, j: Any, alive: Any, y: Any, mode: Any, log: Log, count: Any, result: Any
) -> Any:
    """The step from sample j to the next, piece by piece between its events."""
    t, end = grid[j], grid[j + 1]
    size, m = options.max_events, mode.shape[0]
    slack = slack_of(t, end)

    def body(carry: Any) -> Any:
        piece, active, idle, log, count, result = carry
        t, y = piece.t, piece.y
        mode = system.tick(t + slack, piece.mode, args)
        now = Piece(t, y, mode)
        found, fired = _search(system, args, options, now, end, slack, active)
        t1, y1, after, status = cross_inside(system, args, options, now, found, fired, end, slack)
        done = fired == END
        following = Piece(t1, y1, jnp.where(done, mode, after))
        idle = jnp.where(hold(t1 - t) <= slack, idle + 1, 0)
        for failed, how in (
            (~done & (count >= size), Result.too_many_events),
            (idle >= CHATTER + 2 * m, Result.chatter),
            (status != 0, Result.inconsistent),
            (~jnp.all(jnp.isfinite(y1)), Result.nonfinite),
        ):
            result = Result.where(active & failed & (result == Result.successful), how, result)
        entry = Log(t1, fired, mode, after, None if log.retrace is None else Retrace(t, y, found, y1, j))
        row = jnp.where(active & ~done & (result == Result.successful), count, size)
        log = jax.tree_util.tree_map(lambda a, v: a.at[row].set(v.astype(a.dtype), mode="drop"), log, entry)
        count = jnp.where(row < size, count + 1, count)
        piece = jax.tree_util.tree_map(lambda a, b: jnp.where(active, a, b), following, piece)
        return piece, active & ~done & (result == Result.successful), idle, log, count, result

    first = (Piece(t, y, mode), alive, jnp.array(0), log, count, result)
    piece, _, _, log, count, result = jax.lax.while_loop(lambda c: eqxi.unvmap_any(c[1]), body, first)
    return jnp.where(result == Result.successful, piece.y, jnp.nan), piece.mode, log, count, result


def _search(system: Any, args: Any, options: OnSamples, now: Piece, end: Any, slack: Any, active: Any) -> tuple[Any, Any]:
    """Where the piece ends and why: a margin's number, `DEADLINE`, or `END` at the end of the step. Nothing here is differentiated."""
    system, args, now, end = hold((system, args, now, end))
    t = now.t
    deadline = system.deadline(now.mode, args).astype(t.dtype)
    stop = jnp.where(deadline < end - slack, jnp.maximum(deadline, t), end)
    passed = deadline <= t + slack
    slope = slope_of(system, args, t, now.y, now.mode)
    expired = jnp.any(slope.g <= 0)

    def margins(s: Any) -> Any:
        return system.guard(s, _state(system, args, options, now, s), now.mode, args)

    least = lambda s: jnp.min(margins(s))  # noqa: E731
    last = margins(stop)
    fell = jnp.any(last <= 0)
    looked = active & ~passed & ~expired
    dips = looked & ~fell & jnp.any((slope.rate < 0) & (slope.g + 1.25 * (stop - t) * slope.rate <= 0))
    whole = (t, stop, jnp.min(slope.g), jnp.min(last), fell)
    look = lambda _: _look_for_dips(margins, t, stop, slope.g, last, fell, dips)  # noqa: E731
    low, high, f_low, f_high, fell = jax.lax.cond(eqxi.unvmap_any(dips), look, lambda _: whole, None)
    fell = fell & looked

    def narrow(carry: Any) -> Any:
        bracket, i = carry
        x = bracket.guess(_LOCATED)
        return bracket.narrowed(x, least(x)), i + 1

    going = lambda c: eqxi.unvmap_any(fell & ~c[0].is_shorter_than(_LOCATED)) & (c[1] < 80)  # noqa: E731
    bracket, _ = jax.lax.while_loop(going, narrow, (Bracket.start(low, high, f_low, f_high), jnp.array(0)))
    found = jnp.where(passed | expired, t, jnp.where(fell, bracket.end(), stop))
    there = _along(system, args, options, now, found)
    guard = first_to_fall(there, expired)
    fired = jnp.where((fell | expired) & ~passed, guard, jnp.where(passed | (stop < end), DEADLINE, END))
    return found, fired


def _look_for_dips(margins: Any, t: Any, stop: Any, g: Any, last: Any, fell: Any, dips: Any) -> Any:
    """A bracket of the first fall of a margin that may have fallen and risen again inside the piece."""
    share = jnp.arange(1, _LOOKS) / _LOOKS
    inner = jax.vmap(lambda a: margins(t + a * (stop - t)))(share.astype(t.dtype))
    values = jnp.concatenate([g[None], inner, last[None]])
    left, middle, right = values[:-2], values[1:-1], values[2:]
    bend = left - 2 * middle + right
    turns = jnp.isfinite(bend) & (bend > 0) & (middle <= left) & (middle <= right)
    bend = jnp.where(turns, bend, 1.0)
    lowest = jnp.where(turns, middle - (right - left) ** 2 / (8 * bend), middle)  # of the parabola through three values
    at = jnp.where(turns, jnp.clip(0.5 * (left - right) / bend, -1.0, 1.0), 0.0)
    deep = lowest <= 0
    row = jnp.argmax(jnp.any(deep, axis=1))
    column = jnp.argmax(deep[row])
    places = t + (stop - t) * (1 + row + jnp.stack([jnp.zeros_like(t), at[row, column]])) / _LOOKS
    low = t + (stop - t) * row / _LOOKS
    seen = jax.vmap(lambda s: jnp.min(margins(s)))(places)
    best = jnp.argmin(seen)
    dipped = dips & jnp.any(deep) & (seen[best] <= 0) & (jnp.min(values[row]) > 0)
    whole = (t, stop, jnp.min(g), jnp.min(last), fell)
    dip = (low, places[best], jnp.min(values[row]), seen[best], jnp.array(True))
    return jax.tree_util.tree_map(lambda a, b: jnp.where(dipped, a, b), dip, whole)


def cross_inside(system: Any, args: Any, options: OnSamples, now: Piece, found: Any, fired: Any, end: Any, slack: Any) -> Any:
    """From the start of a piece over its end: the exact time by one Newton step, the state there, the jump. This is differentiated.

    Of the step's end as a function of its length, both value and derivative are the solver's own, so that derivatives are those of the
    samples that are computed, whatever the step size.
    Returns time, state, mode, and 0 or 1 for no consistent mode.
    """
    t = now.t
    i = jnp.maximum(fired, 0)
    along = _along(system, args, options, now, hold(found))
    rate = hold(along.rate[i])
    falling = rate < 0
    step = -along.g[i] / jnp.where(falling, rate, 1.0)
    # The value of the step is bounded by the accuracy of the root; its derivative is not.
    most = 1e3 * _LOCATED * (end - t)
    low, high = jnp.maximum(-most, t - found), jnp.minimum(most, end - found)
    step = step + hold(jnp.clip(step, low, high) - step)
    deadline = system.deadline(now.mode, args).astype(t.dtype)
    known = jnp.where(fired == DEADLINE, hold(found) + deadline - hold(deadline), end)
    # A margin that was down before the piece began ends it where it began.
    moved = jnp.where(falling, step, jnp.where(found <= t, t - hold(t), 0.0))
    time = jnp.where(fired >= 0, hold(found) + moved, known)
    state = _state(system, args, options, now, time)
    after, mode, status = system.jump(time, state, now.mode, fired, args)
    jumped = fired >= DEADLINE
    return time, jnp.where(jumped, after, state), jnp.where(jumped, mode, now.mode), jnp.where(jumped, status, 0)


def _state(system: Any, args: Any, options: OnSamples, now: Piece, s: Any) -> Any:
    """The state at time `s` of the piece."""
    return advance(options.solver, lambda t, y: system.flow(t, y, now.mode, args), now.t, s, now.y)


def _along(system: Any, args: Any, options: OnSamples, now: Piece, s: Any) -> Any:
    """Margins and their rates at time `s` of the piece, along the solver's steps of every length."""

    def margins(s: Any) -> Any:
        y = _state(system, args, options, now, s)
        return system.guard(s, y, now.mode, args), y

    (g, _), (rate, speed) = jax.jvp(margins, (s,), (jnp.ones_like(s),))
    return Slope(speed, g, rate)


def _read(rows: Array, j: Any) -> Array:
    """rows[j] for a j that is known to lie inside."""
    return jax.lax.dynamic_index_in_dim(rows, j, keepdims=False, allow_negative_indices=False)


def _written(rows: Array, j: Any, row: Array) -> Array:
    """`rows` with row j replaced, in place inside a loop."""
    return jax.lax.dynamic_update_index_in_dim(rows, row, j, 0, allow_negative_indices=False)


def fine_grid(t0: Any, ts: Any, substeps: int) -> Any:
    """The times at which steps begin and end: the samples, with `substeps` - 1 more between each two."""
    times = jax.lax.stop_gradient(ts).at[0].set(t0)
    if substeps == 1 or ts.shape[0] == 1:
        return times
    share = jnp.arange(substeps) / substeps
    return jnp.concatenate([(times[:-1, None] + jnp.diff(times)[:, None] * share).reshape(-1), times[-1:]])


def slack_of(t: Any, end: Any) -> Any:
    """Times nearer than this [s] are one: a drive's samples may miss the record's by a rounding."""
    return hold(1e-9 * (end - t))


def _empty(options: OnSamples, y: Any, mode: Any) -> Log:
    size = options.max_events
    number, whole = jnp.zeros(size, y.dtype), jnp.zeros(size, jnp.int32)
    states, modes = jnp.zeros((size, *y.shape), y.dtype), jnp.zeros((size, *mode.shape), jnp.int32)
    retrace = Retrace(number, states, number, states, whole - 1) if options.adjoint is None else None
    return Log(jnp.full_like(number, jnp.inf), whole, modes, modes, retrace)
