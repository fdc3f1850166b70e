"""Locating an event inside a step."""

from typing import Any

import jax
import jax.numpy as jnp
import optimistix as optx


class Bracketed(optx.AbstractRootFinder):
    """The secant inside a bracket (Illinois rule), with bisection whenever three moves did not halve the bracket.

    It stops when the bracket is shorter than `rtol` times the step; the engine's Newton step then squares that error.
    Closeness to 0 is no criterion here: a margin that has just begun, such as the velocity after a breakaway, is close to 0 too.
    Optimistix's `Bisection` takes as long as a whole step of the solver, and its `Newton` may leave the bracket.

    **Source:** after T. J. Dekker, in B. Dejon, P. Henrici (eds.), Constructive Aspects of the Fundamental Theorem of Algebra, 1969.
    """

    rtol: float
    atol: float = 0.0
    norm: Any = optx.max_norm

    def init(self, fn: Any, y: Any, args: Any, options: Any, f_struct: Any, aux_struct: Any, tags: Any) -> Any:
        low, high = options["lower"], options["upper"]
        # The bracket, the values at its ends, which end was kept, its lengths before the last moves, and its length at the start.
        never = jnp.full_like(high - low, jnp.inf)
        return low, high, _value(fn, low, args)[0], _value(fn, high, args)[0], jnp.array(0), (never, never, never), high - low

    def step(self, fn: Any, y: Any, args: Any, options: Any, state: Any, tags: Any) -> Any:
        low, high, f_low, f_high, kept, (third, second, first), length = state
        secant = (low * f_high - high * f_low) / (f_high - f_low)
        # Kept off the ends, the secant closes the bracket also when it comes from one side only.
        off = 0.4 * self.rtol * length
        secant = jnp.clip(secant, low + off, high - off)
        use = jnp.isfinite(secant) & (high - low <= 0.5 * third)
        x = jnp.where(use, secant, 0.5 * (low + high))
        fx, aux = _value(fn, x, args)
        before = (fx > 0) != (f_high > 0)
        state = (
            jnp.where(before, x, low),
            jnp.where(before, high, x),
            # The Illinois rule: an end kept twice counts half.
            jnp.where(before, fx, jnp.where(kept == -1, 0.5 * f_low, f_low)),
            jnp.where(before, jnp.where(kept == 1, 0.5 * f_high, f_high), fx),
            jnp.where(before, 1, -1),
            (second, first, high - low),
            length,
        )
        return x, state, aux

    def terminate(self, fn: Any, y: Any, args: Any, options: Any, state: Any, tags: Any) -> Any:
        low, high, _, _, _, _, length = state
        return high - low <= self.rtol * length, optx.RESULTS.successful

    def postprocess(self, fn: Any, y: Any, aux: Any, args: Any, options: Any, state: Any, tags: Any, result: Any) -> Any:
        low, high, f_low, f_high = state[:4]
        # Of a margin that falls, the end that the secant closed in on. Of a quantity that rises, the end after the crossing: the phase that
        # begins there has the event behind it.
        return jnp.where((f_high <= 0) & (jnp.abs(f_low) < jnp.abs(f_high)), low, high), aux, {}


def _value(fn: Any, x: Any, args: Any) -> Any:
    """The condition that was met; diffrax returns all conditions, the others as 0."""
    conditions, aux = fn(x, args)
    return sum(jax.tree_util.tree_leaves(conditions)), aux
