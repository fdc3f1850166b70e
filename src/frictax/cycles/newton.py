"""The state that returns to itself, by Newton's method on the return map."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from frictax.engine import Adaptive
from frictax.mechanism import Machine

from .returns import Place, Return, with_slopes

MOST = 40  # returns tried
GOOD = 1e-10  # of the sizes of the states: the search ends
ENOUGH = 1e-7  # the same: the cycle is one
_SHORTEST = 1e-4  # of a whole step


class Solution(eqx.Module):
    """A state `y` (n,) whose return misses it by `residual`, over the `scale` of each state; the
    return and its derivatives by `y`; how many returns were `tried`.
    """

    y: Float[Array, " n"]
    there: Return
    slopes: Return
    residual: Float[Array, ""]
    tried: Int[Array, ""]


def solved(
    machine: Machine,
    args: PyTree,
    y: Any,
    place: Place,
    scale: Any,
    engine: Adaptive,
    events: int = 0,
) -> Solution:
    """Newton's method from `y`, with steps made shorter where they do not help. Pure: it may be
    compiled and batched.

    The image of the map is where the event is, of fewer dimensions than the state: a stick forgets
    all but where it rests and what is integrated meanwhile. So the derivative has a low rank; but 1
    is none of its eigenvalues, except at a fold, and Newton's equations are regular.
    """

    def look(y: Any, tried: Any) -> Solution:
        there, slopes = with_slopes(machine, args, y, place, engine, events)
        missed = jnp.max(jnp.abs(there.y - y) / scale)
        missed = jnp.where(there.came & jnp.isfinite(missed), missed, jnp.inf)
        return Solution(y, there, slopes, missed, tried)

    def goes_on(carry: Any) -> Any:
        best, share, _ = carry
        begins = best.tried == 0
        return begins | (
            (best.residual > GOOD)
            & jnp.isfinite(best.residual)
            & (best.tried < MOST)
            & (share > _SHORTEST)
        )

    def step(carry: Any) -> Any:
        best, share, trial = carry
        new = look(trial, best.tried + 1)
        better = new.residual < best.residual
        best = jax.tree.map(lambda a, b: jnp.where(better, a, b), new, best)
        best = eqx.tree_at(lambda s: s.tried, best, new.tried)
        share = jnp.where(better, jnp.minimum(1.0, 4 * share), 0.25 * share)
        # What every return sets to the same, such as the speed at rest, is that from now on.
        set_by_event = jnp.all(best.slopes.y == 0, axis=1)
        move = share * towards(best.slopes.y, best.there.y - best.y, scale)
        trial = jnp.where(set_by_event, best.there.y, best.y + move)
        return best, share, trial

    shapes = jax.eval_shape(look, y, jnp.array(0))
    nothing = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    nothing = eqx.tree_at(lambda s: s.residual, nothing, jnp.full_like(nothing.residual, jnp.inf))
    return jax.lax.while_loop(goes_on, step, (nothing, jnp.ones_like(nothing.residual), y))[0]


def towards(by_state: Array, missed: Array, scale: Any) -> Array:
    """Newton's step of a return map whose derivative is `by_state` (n, n), where it misses by
    `missed` (n,) or, of several, (n, k); solved in units of `scale` (n,) of the states.
    """
    matrix = jnp.eye(len(scale)) - by_state * scale / scale[:, None]
    return (scale * jnp.linalg.solve(matrix, (missed.T / scale).T).T).T
