"""Events inside a step: the search for an event, and the state after the event.

A "piece" of a step is the interval between two events, or between an event and a step's end.
"""

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
from ..implicit import take_step
from ..options import OnSamples
from ..result import NONFINITE
from ..reused import Reused
from ..stepping import all_of, any_of, entries, select
from ..system import DEADLINE, END
from .bookkeeping import write_row

LOCATED = 1e-7  # error of an event time before the Newton step, relative to the interval length


class Piece(eqx.Module):
    """A piece of a step (interval between events) in one mode. The piece begins at time `t` in
    state `y`, and ends at `end` or at an earlier event.

    `holds`: whether the linearly implicit step to `end` is valid; None if the system is not stiff.
    All steps in the piece use the method that `holds` selects. A change of method makes a small
    jump of the state, in which an event cannot be located.
    """

    t: Number
    y: State
    mode: Modes
    end: Number
    holds: Bool[Array, "..."] | None


class Attempt(eqx.Module):
    """A piece (interval between events) computed by one step, before the search for events in it.

    - `end`, `y`: time and state at the end. `rate`: dy/dt at the start. `holds`: see `Piece`.
    - `lowest`: smallest value of all event functions at the start, and at the end. `is_up`: whether
      `stays_up` shows that all event functions stay above 0. `may_be_up`: whether all event
      functions are above 0 at the three points that `stays_up` tests.
    - `is_due`: whether `end` is the deadline of the mode.
    - `error`: the estimated error of the step, a `Judgement`; None without error control.
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
    """Return whether event functions that are convex or monotonic stay positive during a step. The
    arguments are the event functions at its start, after half an Euler step, and at its end.

    A convex function lies above its tangent at the start. The tangent costs almost nothing, because
    most solvers compute half an Euler step as their second stage.
    """
    up = jnp.array(True)
    for a, b, m in zip(entries(start), entries(end), entries(middle), strict=True):
        tangent = a + 2.5 * (m - a)
        # The tangent of an infinite event function is NaN. The test of the tangent is negated, so
        # that NaN passes this test. An event function that is NaN fails the test a > 0.
        up = up & all_of(jnp.ravel((a > 0) & (b > 0) & ~((tangent < a) & (tangent <= 0))))
    return up


class _Look(eqx.Module):
    """The state of the search for an event between two times, the start and the end.

    - `place`: index of the next point to evaluate. `values`: smallest value of all event functions
      at each evaluated point, from the start to the end.
    - `fell`: whether an event function was found at or below 0; then `bracket` encloses its zero.
    - `at_once`: whether an event function is already negative at the start.
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
    """Return the end time of the piece, and its cause: 1 for an event function, `DEADLINE`, or
    `END` for the end of the step.

    The state at the end of the `attempt` is known. An event function may fall to 0 and rise again
    before the end. Therefore the event functions are also evaluated inside the step, except if a
    test shows that all stay above 0. The last evaluation is at the minimum of a parabola through
    the lowest value and its two neighbours. An event function that is NaN counts as fallen to 0.
    The result does not have derivatives.
    """
    now, attempt = constant((now, attempt))
    system, t, stop = constant(system), now.t, now.end
    deadline = system.deadline(now.mode).astype(t.dtype)
    passed = deadline <= t + slack
    f0, f1 = attempt.lowest

    def before() -> Any:
        # A convex event function lies above its tangents at both ends. If both tangents are
        # positive at the middle, the event function stays positive. Half an Euler step backward
        # gives the value of the end tangent at the middle.
        half = 0.5 * (stop - t)
        back = attempt.y - half * system.flow(stop, attempt.y, now.mode)
        return all_of(system.guard(stop - half, back, now.mode) > 0)

    up = attempt.is_up | compute_if(
        active & attempt.may_be_up & ~attempt.is_up, before, jnp.array(False)
    )
    expired = ~(f0 > 0) | jnp.isnan(deadline)
    places = 8  # number of subintervals, at whose ends the event functions are evaluated
    width = (stop - t) / places
    finest = 4 * jnp.finfo(t.dtype).eps * jnp.abs(stop)

    def aim(s: _Look) -> tuple[Any, Any]:
        """Return the time of the next evaluation, and the index of the point before this time."""
        low = jnp.clip(jnp.argmin(s.values[1:-1]) + 1, 1, places - 1)
        left, middle, right = s.values[low - 1], s.values[low], s.values[low + 1]
        bend = left - 2 * middle + right
        turn = low + jnp.where(
            bend > 0,
            jnp.clip(0.5 * (left - right) / jnp.where(bend > 0, bend, 1.0), -0.99, 0.99),
            0.0,
        )
        between = s.place < places
        at = jnp.where(between, s.place, turn)
        before = jnp.where(between, s.place - 1, jnp.floor(turn).astype(s.place.dtype))
        return jnp.where(s.fell, s.bracket.guess(LOCATED), t + at * width), before

    def look(s: _Look) -> _Look:
        x, before = compute_if(~s.done, lambda: aim(s), (t, s.place))
        f = compute_if(
            ~s.done,
            lambda: jnp.min(
                system.guard(x, state_at(system, options, now, x, attempt.rate), now.mode)
            ),
            f0,
        )
        down = ~s.fell & ~(f > 0)
        begun = Bracket.start(t + before * width, x, s.values[before], f)
        choose = lambda a, b, c: jnp.where(s.fell, a, jnp.where(down, b, c))  # noqa: E731
        narrowed = s.bracket.narrow(x, f)
        there = s.bracket.is_fall(x, f, LOCATED)
        low, high = (jnp.where(there, x, a) for a in (narrowed.low, narrowed.high))
        narrowed = dataclasses.replace(narrowed, low=low, high=high)
        bracket = jax.tree.map(choose, narrowed, begun, s.bracket)
        values = write_row(s.values, s.place, jnp.where(s.fell, row_at(s.values, s.place), f))
        fell = s.fell | down
        done = jnp.where(fell, is_located(bracket), s.place >= places)
        return _Look(s.place + 1, values, bracket, s.at_once, fell, done | (s.place > 100))

    def is_located(bracket: Bracket) -> Bool[Array, ""]:
        return bracket.is_shorter_than(LOCATED) | (bracket.high - bracket.low <= finest)

    values = jnp.full(places + 1, jnp.inf, t.dtype).at[0].set(f0).at[places].set(f1)
    fell, bracket = ~(f1 > 0), Bracket.start(t, stop, f0, f1)
    idle = ~active | passed | expired | up | (fell & is_located(bracket))
    first = _Look(jnp.array(1), values, bracket, expired, fell, idle)

    last = jax.lax.while_loop(
        lambda s: unvmap_any(~s.done), lambda s: select(s.done, s, look(s)), first
    )

    def ending() -> tuple[Any, Any]:
        # Do not evaluate the event functions again, because rounding may change their signs.
        at_once, fell = last.at_once, last.fell
        found = jnp.where(at_once, t, jnp.where(fell, last.bracket.end(), stop))
        return found, jnp.where(
            passed, DEADLINE, jnp.where(fell | at_once, 1, jnp.where(attempt.is_due, DEADLINE, END))
        )

    return compute_if(active, ending, (t, last.place))


def state_at(system: Reused, options: OnSamples, now: Piece, s, rate: Any = None) -> Any:
    """Return the state at time `s` in the piece `now`. `rate`: dy/dt at the start, if known."""
    return take_step(system, options, now.mode, now.t, s, now.y, rate, holds=now.holds)


def compute_if(needed, compute: Callable[[], Any], like) -> Any:
    """Return the result of `compute` if `needed`, else zeros with the shapes and types of `like`.

    XLA may repeat a computation for each number that depends on its results, but it does not repeat
    a branch. The branch halves size and compile time of the code for an event.
    """
    return jax.lax.cond(
        needed, compute, lambda: jax.tree.map(lambda x: jnp.zeros(jnp.shape(x), x.dtype), like)
    )


def cross_inside(
    system: Reused, options: OnSamples, now: Piece, found, cause, fired, needed: Any = True
) -> tuple[Any, ...]:
    """Compute time, state and mode after the event at the end of a piece, with derivatives. One
    Newton step gives the exact time. Then `system.jump` gives state and mode after the event.

    The state at the event is the solver's result as a function of the step length. Therefore the
    derivatives of the computed samples are exact for any step length. The time `found` from the
    search is so accurate that one Newton step is sufficient.

    Pass either `cause` (from `search_end`) or `fired`; the other argument must be None. `fired`:
    index of the event function, `DEADLINE` or `END`. Return time, state, mode, `fired`, and a
    status. The status is 0 for success, 1 if no mode is consistent, or `NONFINITE`."""
    t, last, found = now.t, now.end, constant(found)
    margins = jax.eval_shape(system.guard, t, now.y, now.mode)
    none = jnp.zeros(margins.shape, margins.dtype)

    def end(system: Reused, now: Piece, s) -> tuple[Any, Any]:
        """Return the event functions and the state if the piece ends at time s."""
        y = state_at(system, options, now, s)
        return system.guard(s, y, now.mode), y

    def ends() -> tuple[Slope, Any]:
        still, piece = constant((system, now))  # The derivatives treat the rates as constants.
        along = (jnp.ones_like(found),)
        _, (rate, speed) = jax.jvp(lambda s: end(still, piece, s), (found,), along)
        g, y = end(system, now, found)
        return Slope(speed, g, rate), y

    slope, y = compute_if(needed, ends, (Slope(now.y, none, none), now.y))
    if fired is None:
        # In a very short interval the event may be at the start, where all event functions are
        # positive. `first_to_fall` then selects the event function that reaches 0 first.
        first = first_to_fall(
            constant(slope), (found <= constant(t)) & any_of(constant(slope.g) <= 0)
        )
        fired = jnp.where(cause > 0, first, cause)

    def move() -> Any:
        i = jnp.maximum(fired, 0)
        g, rate = (
            jnp.sum(jnp.where(jnp.arange(x.shape[0]) == i, x, 0.0)) for x in (slope.g, slope.rate)
        )
        falling = rate < 0
        step = -g / jnp.where(falling, rate, 1.0)
        # The value of the Newton step is limited to 1000 times `LOCATED`, its derivative is not.
        most = 1e3 * LOCATED * (last - t)
        # At a pole, an event function changes its sign without a zero. `first_to_fall` then selects
        # another event function, whose zero is far away.
        lost = falling & (found > t) & (jnp.abs(constant(step)) > 10 * (last - t))
        # If the event function is 0 before the interval, the event is at the interval's start.
        within = falling & (constant(step) >= jnp.where(found <= t, -most, -jnp.inf))
        step = step + constant(
            jnp.clip(step, jnp.maximum(-most, t - found), jnp.minimum(most, last - found)) - step
        )
        deadline = system.deadline(now.mode).astype(t.dtype)
        known = jnp.where(fired == DEADLINE, found + deadline - constant(deadline), last)
        # Late in a run, the difference of two large times has too few correct digits. Therefore the
        # state changes by rate times `step`, not by rate times a difference of times.
        step = jnp.where(
            fired >= 0,
            jnp.where(within, step, jnp.where(found <= t, t - constant(t), 0.0)),
            known - found,
        )
        broken = jnp.any(jnp.isnan(slope.g)) | jnp.isnan(deadline)
        return found + step, y + slope.speed * step, lost, broken

    time, state, lost, broken = compute_if(needed, move, (t, y, jnp.array(False), jnp.array(False)))
    at = time, state, now.mode, fired
    after, mode, status = compute_if(
        needed, lambda: system.jump(*at), jax.eval_shape(system.jump, *at)
    )
    jumped = fired >= DEADLINE
    status = jnp.where(jumped, jnp.where(lost & (fired >= 0), 1, status), 0)
    status = jnp.where(broken, NONFINITE, status)
    return time, jnp.where(jumped, after, state), jnp.where(jumped, mode, now.mode), fired, status


def state_at_fixed_time(system: Reused, t, y, mode) -> Any:
    """Return the state `y` after an event at time `t`, with its derivatives at a fixed time `t`.

    The function converts the derivative of the event time to a derivative of the state.
    """
    return y + constant(system).flow(*constant((t, y)), mode) * (constant(t) - t)
