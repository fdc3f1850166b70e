"""Where a piece of a step ends."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx

# unvmap_any: a loop must go on while any lane of a vmap needs it, and its counter stays one number
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from frictax.jax_internals import unvmap_any
from frictax.parameters import Integer, Modes, Number, State
from frictax.parameters.constant import constant
from frictax.parameters.shapes import row_at

from ..bracket import Bracket
from ..implicit.stiff import keeps_bounds, step
from ..options import OnSamples
from ..reused import Reused
from ..stepping import entries, every, select
from ..system import DEADLINE, END
from .log import written

LOCATED = 1e-7  # of a step: how near an event is found before the Newton step
_LOOKS = 8  # places in a step at which a dip is looked for


class Piece(eqx.Module):
    """A piece of a step, in one mode: from `t` and `y` to the step's end or to the
    deadline before.
    """

    t: Number
    y: State
    mode: Modes


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
    system: Reused, options: OnSamples, now: Piece, end, slack, active
) -> tuple[Any, Any]:
    """Where the piece ends, and whether at a margin (1), at a deadline (`DEADLINE`) or at the end
    of the step (`END`).

    Looked at is the end first; unless `stays_up`, the places between, then where the parabola
    through the lowest three is least: a margin may fall and rise again inside a piece. A margin
    that is NaN has fallen. Nothing here is differentiated.
    """
    now, end = constant((now, end))
    system, t = constant(system), now.t
    deadline = system.deadline(now.mode).astype(t.dtype)
    stop = jnp.where(deadline < end - slack, jnp.maximum(deadline, t), end)
    passed = deadline <= t + slack
    holds = piece_holds(system, options, now, end)

    def ends() -> tuple[Any, Any, Any, Any]:
        half, rate = 0.5 * (stop - t), system.flow(t, now.y, now.mode)
        y1 = state_at(system, options, now, stop, holds, rate)
        g0, g1 = (system.guard(x, y, now.mode) for x, y in ((t, now.y), (stop, y1)))
        middle = system.guard(t + half, now.y + half * rate, now.mode)

        def before() -> Any:
            # Both tangents of a convex margin, the one at the end by half a step of Euler's back.
            back = y1 - half * system.flow(stop, y1, now.mode)
            return every((middle > 0) & (system.guard(stop - half, back, now.mode) > 0))

        up = stays_up(g0, middle, g1)
        ends_up = every((g0 > 0) & (g1 > 0))
        up = jax.lax.cond(ends_up & ~up, before, lambda: up)
        return jnp.min(g0), jnp.min(g1), up, rate

    f0, f1, up, rate = only(active, ends, (t, t, jnp.array(False), now.y))
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
        return jnp.where(s.fell, s.bracket.guess(LOCATED), t + at * width), before

    def look(s: _Look) -> _Look:
        x, before = only(~s.done, lambda: aim(s), (t, s.place))
        f = only(
            ~s.done,
            lambda: jnp.min(
                system.guard(x, state_at(system, options, now, x, holds, rate), now.mode)
            ),
            f0,
        )
        down = ~s.fell & ~(f > 0)
        begun = Bracket.start(t + before * width, x, s.values[before], f)
        choose = lambda a, b, c: jnp.where(s.fell, a, jnp.where(down, b, c))  # noqa: E731
        narrowed = s.bracket.narrowed(x, f)
        there = s.bracket.is_fall(x, f, LOCATED)
        low, high = (jnp.where(there, x, end) for end in (narrowed.low, narrowed.high))
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

    end_ = jax.lax.while_loop(
        lambda s: unvmap_any(~s.done), lambda s: select(s.done, s, look(s)), first
    )

    def ending() -> tuple[Any, Any]:
        # As the loop was told: a margin at 0, computed anew by another part of the program, may
        # round to the other side.
        at_once, fell = end_.at_once, end_.fell
        found = jnp.where(at_once, t, jnp.where(fell, end_.bracket.end(), stop))
        return found, jnp.where(
            passed, DEADLINE, jnp.where(fell | at_once, 1, jnp.where(stop < end, DEADLINE, END))
        )

    return only(active, ending, (t, end_.place))


def state_at(
    system: Reused, options: OnSamples, now: Piece, s, holds: Any = None, rate: Any = None
) -> Any:
    """The state at time `s` of the piece; `holds` as of `piece_holds`, `rate` at its start, where
    it is known.
    """
    return step(system, options, now.mode, now.t, s, now.y, rate, holds=holds)


def piece_holds(system: Reused, options: OnSamples, now: Piece, end) -> Any:
    """Of a piece of a stiff system, whether the step to its `end` keeps the bounds, which says how
    all steps in it are taken: were some of the one kind and some of the other, the state would
    jump between them and no event could be located there. None of any other system.
    """
    return keeps_bounds(system, options, now.mode, now.t, end, now.y)


def only(needed, compute: Callable[[], Any], like) -> Any:
    """What `compute` returns where it is `needed`, else zeros of the shapes and types of `like`.

    Its reason is not the time saved: XLA does not write the inside of a branch out again for every
    number that is made from its results. Without it, the program of an event is twice as long, and
    so is the time in which LLVM compiles it.
    """
    return jax.lax.cond(
        needed, compute, lambda: jax.tree.map(lambda x: jnp.zeros(jnp.shape(x), x.dtype), like)
    )
