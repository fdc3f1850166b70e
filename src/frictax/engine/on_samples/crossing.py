"""From the start of a piece of a step over its end."""

from typing import Any

import jax
import jax.numpy as jnp

from frictax.parameters.constant import constant

from ..margins import Slope, first_to_fall
from ..options import OnSamples
from ..result import NONFINITE
from ..reused import Reused
from ..stepping import some
from ..system import DEADLINE
from .search import LOCATED, Piece, only, state_at


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
