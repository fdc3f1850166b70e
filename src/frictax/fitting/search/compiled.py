"""The compiled programs of searches."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.programs import cached_jit, interruptible_jit

from ..problem.problem import Problem
from .levenberg_marquardt import Descent, begin, descend, descend_together
from .methods import AbstractMethod, LevenbergMarquardt, Optax

_TURNS = 10  # Largest number of rounds; each round has new coordinates.


@cached_jit
def by_newton(
    problem: Problem, state: Descent, until, noise, tolerance, dof, floor
) -> tuple[Array, ...]:
    """Return the arrays of the `Descent` after a search from `state`."""
    end = descend(
        lambda z: problem.evaluate_with_kind(z, noise), state, until, tolerance, dof, floor
    )
    return tuple(jax.tree.leaves(_with_values(problem, end)))


@cached_jit
def side_by_side(
    problem: Problem, states: Descent, until, noise, tolerance, dof, floor
) -> tuple[Array, ...]:
    """Return `by_newton` of several searches that step together; `states` has a leading axis."""
    evaluate = jax.vmap(lambda z: problem.evaluate_with_kind(z, noise))
    ends = descend_together(evaluate, states, until, tolerance, dof, floor)
    return tuple(jax.tree.leaves(jax.vmap(lambda end: _with_values(problem, end))(ends)))


def in_turned_coordinates(
    problem: Problem, z: Any, noise: Any, method: AbstractMethod, dof: Any, floor: Any
) -> Descent:
    """Search in coordinates rotated and scaled by the singular vectors of the Jacobian, so that 1
    is about one standard error. Each round takes its coordinates from the end of the previous one.

    This search is for optax's transformations, and for laws, whose residuals can be so nonlinear
    that columns scaled to the same length are not enough.
    """

    def around(carry) -> Any:
        z, _, rounds, steps = carry
        r, jacobian = problem.evaluate(z, noise)
        level = jnp.sqrt(jnp.maximum(jnp.sum(r * r), floor) / dof)
        _, s, vt = jnp.linalg.svd(jacobian / level, full_matrices=False)
        # The scale of directions without effect on the data is limited to 1e4.
        turn = vt.T / jnp.maximum(s, 1e-4 * s[0] + jnp.finfo(s.dtype).tiny)
        start = jnp.zeros(turn.shape[1])
        if isinstance(method, Optax):
            at, count, converged = method.minimise(
                lambda u: problem.misfit(z + turn @ u, noise) / level, start
            )
        else:
            assert isinstance(method, LevenbergMarquardt)

            def evaluate(u: Array) -> tuple[Array, Array]:
                r, jacobian = problem.evaluate(z + turn @ u, noise)
                return r, jacobian @ turn

            most, tolerance = method.max_steps, method.tolerance
            end = descend(
                evaluate,
                begin(start, r.size, 1e3),
                most,
                tolerance,
                dof,
                floor,
                ridge=1.0,
                patience=most,
                least=level,
            )
            # Rounding can hide the gain of a step, so a hundred times the tolerance is enough.
            near = jnp.asarray(end.settled) | (end.distance <= 100 * method.tolerance)
            at, converged, count = jnp.asarray(end.z), near, end.steps
        return z + turn @ at, jnp.asarray(converged), rounds + 1, steps + count

    def going(carry) -> Any:
        _, converged, rounds, _ = carry
        most = method.most_rounds if isinstance(method, Optax) else _TURNS
        return ((rounds < 2) | ~converged) & (rounds < most)

    zero = jnp.zeros((), jnp.int32)
    z, converged, _, steps = jax.lax.while_loop(
        going, around, (jnp.asarray(z), jnp.asarray(False), zero, zero)
    )
    tolerance = 1e-8 if problem.is_steady else 1e-3
    most = method.max_steps if isinstance(method, LevenbergMarquardt) else 0
    first = begin(z, problem.rows(), problem.spans())
    end = descend(lambda z: problem.evaluate(z, noise), first, 1, tolerance, dof, floor)
    end = eqx.tree_at(
        lambda s: (s.steps, s.settled, s.done),
        end,
        (steps.astype(jnp.int32), converged | end.settled, steps < most),
    )
    return _with_values(problem, end)


turned_jit = interruptible_jit(in_turned_coordinates)


def _with_values(problem: Problem, end: Descent) -> Descent:
    values = problem.physical(end.z), problem.values_and_slopes(end.seen)[1]
    return eqx.tree_at(lambda s: (s.x, s.slope), end, values)
