"""Where a piece of a step ends."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from frictax.jax_internals import unvmap_any
from frictax.parameters import Integer, Modes, Number, State
from frictax.parameters.arrays import constant, row_at

from ..events import Bracket, Slope, first_to_fall
from ..implicit import step
from ..options import OnSamples
from ..result import NONFINITE
from ..reused import Reused
from ..stepping import entries, every, select, some
from ..system import DEADLINE, END
from .bookkeeping import written

LOCATED = 1e-7  # of a step: how near an event is found before the Newton step
_LOOKS = 8  # places in a step at which a dip is looked for


class Piece(eqx.Module):
    """A piece of a step, in one mode: from `t` and `y` on, at most to `end`.

    `holds`: of a stiff system, whether the step to `end` keeps the bounds, which says how all steps
    in the piece are taken: were some of the one kind and some of the other, the state would jump
    between them and no event could be located there. None of any other system.
    """

    t: Number
    y: State
    mode: Modes
    end: Number
    holds: Bool[Array, "..."] | None


class Attempt(eqx.Module):
    """A piece that was taken as a whole by one step, before events were looked for.

    - `end`, `y`: time and state at its end; `rate`: at its start; `holds`: as of `Piece`.
    - `lowest`: the least margin at its start and at its end. `is_up`: whether `stays_up` finds that
      all margins stay above 0; `may_be_up`: whether they are above 0 at its three places.
    - `is_due`: whether its end is the deadline of the mode.
    - `error`: the estimated error of the step, a `Judgement`, None without error control.
    """

    end: Number
    y: State
    rate: Any
    lowest: tuple[Number, Number]
    is_up: Bool[Array, "..."]
    may_be_up: Bool[Array, "..."]
    is_due: Bool[Array, "..."]
    holds: Bool[Array, "..."] | None
    error: Any


def stays_up(start, middle, end) -> Bool[Array, ""]:
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


def search_end(
    system: Reused, options: OnSamples, now: Piece, attempt: Attempt, slack, active
) -> tuple[Any, Any]:
    """Where the piece ends, and whether at a margin (1), at a deadline (`DEADLINE`) or at the end
    of the step (`END`).

    Of the `attempt` the end is known. Unless `stays_up`, the places between are looked at, then
    where the parabola through the lowest three is least: a margin may fall and rise again inside a
    piece. A margin that is NaN has fallen. Nothing here is differentiated.
    """
    now, attempt = constant((now, attempt))
    system, t, stop = constant(system), now.t, now.end
    deadline = system.deadline(now.mode).astype(t.dtype)
    passed = deadline <= t + slack
    f0, f1 = attempt.lowest

    def before() -> Any:
        # Both tangents of a convex margin, the one at the end by half a step of Euler's back.
        half = 0.5 * (stop - t)
        back = attempt.y - half * system.flow(stop, attempt.y, now.mode)
        return every(system.guard(stop - half, back, now.mode) > 0)

    up = attempt.is_up | only(active & attempt.may_be_up & ~attempt.is_up, before, jnp.array(False))
    expired = ~(f0 > 0) | jnp.isnan(deadline)
    width = (stop - t) / _LOOKS
    finest = 4 * jnp.finfo(t.dtype).eps * jnp.abs(stop)

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
        return jnp.where(s.fell, s.bracket.guess(LOCATED), t + at * width), before

    def look(s: _Look) -> _Look:
        x, before = only(~s.done, lambda: aim(s), (t, s.place))
        f = only(
            ~s.done,
            lambda: jnp.min(
                system.guard(x, state_at(system, options, now, x, attempt.rate), now.mode)
            ),
            f0,
        )
        down = ~s.fell & ~(f > 0)
        begun = Bracket.start(t + before * width, x, s.values[before], f)
        choose = lambda a, b, c: jnp.where(s.fell, a, jnp.where(down, b, c))  # noqa: E731
        narrowed = s.bracket.narrowed(x, f)
        there = s.bracket.is_fall(x, f, LOCATED)
        low, high = (jnp.where(there, x, a) for a in (narrowed.low, narrowed.high))
        narrowed = dataclasses.replace(narrowed, low=low, high=high)
        bracket = jax.tree.map(choose, narrowed, begun, s.bracket)
        values = written(s.values, s.place, jnp.where(s.fell, row_at(s.values, s.place), f))
        fell = s.fell | down
        done = jnp.where(fell, located(bracket), s.place >= _LOOKS)
        return _Look(s.place + 1, values, bracket, s.at_once, fell, done | (s.place > 100))

    def located(bracket: Bracket) -> Bool[Array, ""]:
        return bracket.is_shorter_than(LOCATED) | (bracket.high - bracket.low <= finest)

    values = jnp.full(_LOOKS + 1, jnp.inf, t.dtype).at[0].set(f0).at[_LOOKS].set(f1)
    fell, bracket = ~(f1 > 0), Bracket.start(t, stop, f0, f1)
    idle = ~active | passed | expired | up | (fell & located(bracket))
    first = _Look(jnp.array(1), values, bracket, expired, fell, idle)

    last = jax.lax.while_loop(
        lambda s: unvmap_any(~s.done), lambda s: select(s.done, s, look(s)), first
    )

    def ending() -> tuple[Any, Any]:
        # As the loop was told: a margin at 0, computed anew by another part of the program, may
        # round to the other side.
        at_once, fell = last.at_once, last.fell
        found = jnp.where(at_once, t, jnp.where(fell, last.bracket.end(), stop))
        return found, jnp.where(
            passed, DEADLINE, jnp.where(fell | at_once, 1, jnp.where(attempt.is_due, DEADLINE, END))
        )

    return only(active, ending, (t, last.place))


def state_at(system: Reused, options: OnSamples, now: Piece, s, rate: Any = None) -> Any:
    """The state at time `s` of the piece; `rate` at its start, where it is known."""
    return step(system, options, now.mode, now.t, s, now.y, rate, holds=now.holds)


def only(needed, compute: Callable[[], Any], like) -> Any:
    """What `compute` returns where it is `needed`, else zeros of the shapes and types of `like`.

    Its reason is not the time saved: XLA does not write the inside of a branch out again for every
    number that is made from its results. Without it, the program of an event is twice as long, and
    so is the time in which LLVM compiles it.
    """
    return jax.lax.cond(
        needed, compute, lambda: jax.tree.map(lambda x: jnp.zeros(jnp.shape(x), x.dtype), like)
    )


def cross_inside(
    system: Reused, options: OnSamples, now: Piece, found, cause, fired, needed: Any = True
) -> tuple[Any, ...]:
    """From the start of a piece over its end: the exact time by one Newton step, the state there,
    the jump. This is differentiated.

    Of the step's end as a function of its length, both value and derivative are the solver's own,
    so that derivatives are those of the samples that are computed, whatever the step size. The root
    is found so nearly that from there on the end moves along its tangent. `cause` is that of
    `search_end`, or None where the margin that `fired` is known. Returns time, state, mode, what
    fired, and 0, 1 for no consistent mode or `NONFINITE`.
    """
    t, end, found = now.t, now.end, constant(found)
    margins = jax.eval_shape(system.guard, t, now.y, now.mode)
    none = jnp.zeros(margins.shape, margins.dtype)
    slope, y = only(
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
        most = 1e3 * LOCATED * (end - t)
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

    time, state, lost, broken = only(needed, moved, (t, y, jnp.array(False), jnp.array(False)))
    at = time, state, now.mode, fired
    after, mode, status = only(needed, lambda: system.jump(*at), jax.eval_shape(system.jump, *at))
    jumped = fired >= DEADLINE
    status = jnp.where(jumped, jnp.where(lost & (fired >= 0), 1, status), 0)
    status = jnp.where(broken, NONFINITE, status)
    return time, jnp.where(jumped, after, state), jnp.where(jumped, mode, now.mode), fired, status


def _ends(system: Reused, options: OnSamples, now: Piece, s) -> tuple[Slope, Any]:
    """Of the piece's end at time `s`: rates, which are not differentiated, margins and state, which
    are.
    """

    def end(system: Reused, now: Piece, s) -> tuple[Any, Any]:
        y = state_at(system, options, now, s)
        return system.guard(s, y, now.mode), y

    still, piece = constant((system, now))
    _, (rate, speed) = jax.jvp(lambda s: end(still, piece, s), (s,), (jnp.ones_like(s),))
    g, y = end(system, now, s)
    return Slope(speed, g, rate), y


def as_of(system: Reused, t, y, mode) -> Any:
    """The state at the time that `t` is, whichever way derivatives move the event at `t` that led
    to `y` and `mode`.
    """
    return y + constant(system).flow(*constant((t, y)), mode) * (constant(t) - t)
