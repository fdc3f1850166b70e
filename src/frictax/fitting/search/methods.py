"""Ways to make the sum of squares small. All see the same residuals in the same coordinates."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

Residuals = Callable[[Float[Array, " p"]], Float[Array, " n"]]


class Minimum(eqx.Module):
    """Where a method stopped, after how many steps, and whether it met its tolerance."""

    at: Float[Array, " p"]
    steps: Int[Array, ""]
    converged: Bool[Array, ""]


class AbstractMethod(eqx.Module):
    """Finds the least sum of squares of `residuals`, near `start`."""

    @abc.abstractmethod
    def minimise(self, residuals: Residuals, start: Float[Array, " p"]) -> Minimum:
        """To be compiled: no host callback, no exception. The coordinates are scaled so that 1 is one standard error."""


class LevenbergMarquardt(AbstractMethod):
    """Gauss-Newton steps, damped where they fail. The method of choice.

    optimistix's own rejects steps for ever when it is started at an optimum, where rounding hides every improvement
    (500 steps and no success on the shipped sweep); hence this one, which then looks at the gradient.

    **Arguments:** `tolerance` on a step and on the gradient, in standard errors of the parameters; `max_steps` of a round.
    A fit has at least two rounds, each in the coordinates of the last one's end, and ten (`Huber`: 100) at most.

    **Source:** K. Madsen, H. B. Nielsen, O. Tingleff, *Methods for Non-Linear Least Squares Problems*, 2nd ed. (2004),
    algorithm 3.16.
    """

    tolerance: float = eqx.field(static=True, default=1e-8)
    max_steps: int = eqx.field(static=True, default=500)

    def __check_init__(self) -> None:
        _check_method(self, "max_steps", self.max_steps, self.tolerance)

    def minimise(self, residuals: Residuals, start: Float[Array, " p"]) -> Minimum:
        def advance(carry: Any) -> Any:
            u, cost, hessian, gradient, damping, growth, step, _ = carry
            move = -jnp.linalg.solve(hessian + damping * jnp.eye(u.size), gradient)
            # u + move is looked at with its Jacobian, so that the residuals stand in the program once
            trial_cost, trial_hessian, trial_gradient = _expand(residuals, u + move)
            promised = -gradient @ move - 0.5 * move @ hessian @ move
            ratio = (cost - trial_cost) / jnp.maximum(promised, jnp.finfo(cost.dtype).tiny)
            better = (ratio > 0) & jnp.isfinite(trial_cost)
            damping = damping * jnp.where(better, jnp.maximum(1 / 3, 1 - (2 * ratio - 1) ** 3), growth)
            growth = jnp.where(better, 2.0, 2.0 * growth)
            old, new = (u, cost, hessian, gradient), (u + move, trial_cost, trial_hessian, trial_gradient)
            u, cost, hessian, gradient = (jnp.where(better, b, a) for a, b in zip(old, new, strict=True))
            small = jnp.linalg.norm(move) <= self.tolerance * (1 + jnp.linalg.norm(u))
            return u, cost, hessian, gradient, damping, growth, step + 1, small | (jnp.linalg.norm(gradient) <= self.tolerance)

        first = (start, *_expand(residuals, start), jnp.asarray(1e-3), jnp.asarray(2.0), jnp.zeros((), int), jnp.asarray(False))
        last = jax.lax.while_loop(lambda carry: ~carry[-1] & (carry[-2] < self.max_steps), advance, first)
        return Minimum(last[0], last[-2], last[-1] & (jnp.linalg.norm(last[3]) <= 100 * self.tolerance))


def _expand(residuals: Residuals, u: Array) -> tuple[Array, Array, Array]:
    """Half the sum of squares, its Gauss-Newton Hessian and its gradient."""

    def twice(u: Array) -> tuple[Array, Array]:
        r = residuals(u)
        return r, r

    jacobian, r = jax.jacfwd(twice, has_aux=True)(u)
    return 0.5 * r @ r, jacobian.T @ jacobian, jacobian.T @ r


class Optax(AbstractMethod):
    """Any optax transformation, on half the sum of squares.

    **Arguments:**

    - `transformation`: L-BFGS with its line search unless given; ``optax.adam(0.1)`` works too, in some thousand steps.
    - `steps` of a round at most; `tolerance` on the gradient's norm.

    >>> import optax
    >>> method = Optax(optax.adam(0.1), steps=5000)
    """

    transformation: Any = eqx.field(static=True, default=None)
    steps: int = eqx.field(static=True, default=2000)
    tolerance: float = eqx.field(static=True, default=1e-7)

    def __check_init__(self) -> None:
        if self.transformation is not None and not hasattr(self.transformation, "update"):
            raise ValueError(
                f"`Optax.transformation` must be an optax transformation, got {self.transformation!r}. Write optax.adam(0.1), say."
            )
        _check_method(self, "steps", self.steps, self.tolerance)

    def minimise(self, residuals: Residuals, start: Float[Array, " p"]) -> Minimum:
        import optax

        rule = optax.with_extra_args_support(optax.lbfgs() if self.transformation is None else self.transformation)

        def objective(u: Array) -> Array:
            return 0.5 * jnp.sum(residuals(u) ** 2)

        def going(carry: Any) -> Array:
            _, _, gradient, step = carry
            return (step < self.steps) & (jnp.linalg.norm(gradient) > self.tolerance)

        def advance(carry: Any) -> Any:
            u, state, gradient, step = carry
            updates, state = rule.update(gradient, state, u, value=objective(u), grad=gradient, value_fn=objective)
            u = optax.apply_updates(u, updates)
            return u, state, jax.grad(objective)(u), step + 1

        first = (start, rule.init(start), jax.grad(objective)(start), jnp.asarray(0))
        u, _, gradient, step = jax.lax.while_loop(going, advance, first)
        return Minimum(u, step, jnp.linalg.norm(gradient) <= self.tolerance)


def _check_method(method: AbstractMethod, field: str, steps: int, tolerance: float) -> None:
    name = type(method).__name__
    if steps < 1:
        raise ValueError(f"`{name}.{field}` must be >= 1, got {steps}. 500 is enough for most sweeps.")
    if not tolerance > 1e-13:
        raise ValueError(f"`{name}.tolerance` must be > 1e-13, got {tolerance}: 64 bit numbers cannot meet less. Write 1e-8.")
