"""The search for an event as diffrax asks for it."""

from typing import Any

import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import PyTree

from .bracket import Bracket


class Bracketed(optx.AbstractRootFinder):
    """`Bracket` as a root finder for a `diffrax.Event`.

    It stops when the bracket is shorter than `rtol` times the step; the engine's Newton step then
    squares that error. Closeness to 0 is no criterion here: a margin that has just begun, such as
    the velocity after a breakaway, is close to 0 too. Optimistix's `Bisection` takes as long as a
    whole step of the solver, and its `Newton` may leave the bracket.
    """

    rtol: float
    atol: float = 0.0
    norm: Any = optx.max_norm

    def init(self, fn, y, args: PyTree, options, f_struct, aux_struct, tags) -> Any:
        low, high = options["lower"], options["upper"]
        # a loop: compiled once
        at_low, at_high = jax.lax.map(lambda x: _value(fn, x, args)[0], jnp.stack([low, high]))
        return Bracket.start(low, high, at_low, at_high)

    def step(self, fn, y, args: PyTree, options, state, tags) -> Any:
        x = state.guess(self.rtol)
        fx, aux = _value(fn, x, args)
        return x, state.narrowed(x, fx), aux

    def terminate(self, fn, y, args: PyTree, options, state, tags) -> Any:
        return state.is_shorter_than(self.rtol), optx.RESULTS.successful

    def postprocess(self, fn, y, aux, args: PyTree, options, state, tags, result) -> Any:
        return state.end(), aux, {}


def _value(fn, x, args: PyTree) -> Any:
    """The condition that was met; diffrax returns all conditions, the others as 0."""
    conditions, aux = fn(x, args)
    return sum(jax.tree.leaves(conditions)), aux
