"""Methods that minimise the sum of squares. All methods use the same residuals and coordinates."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from frictax.annotations import GradientTransformation
from frictax.parameters import Integer
from frictax.pytree import Pickled

_STEPS, _ROUNDS = 2000, 10  # defaults: largest number of steps in a round, and of rounds

Residuals = Callable[[Float[Array, " p"]], Float[Array, " n"]]


class AbstractMethod(Pickled, eqx.Module):
    """A method that minimises the sum of squares."""


class LevenbergMarquardt(AbstractMethod):
    """The default method, with Gauss-Newton steps within a trust region (see
    `frictax.fitting.search.levenberg_marquardt`).

    At an optimum, rounding errors hide every decrease of the cost. Therefore a method that only
    compares costs rejects all steps (optimistix rejects 500 steps on a sweep of `frictax.data`).
    This method also checks the gradient.

    **Arguments:** `tolerance`: largest length of the final step in standard errors; `max_steps`:
    largest number of steps. In a fit to records, the defaults are 1e-3 and 200.

    If the final residuals of a free run are not white noise, the fit searches again in rounds
    (`frictax.fitting.search.rounds`). The cost is discontinuous where an event appears or vanishes.
    If a search ends at or near a discontinuity, the search continues beyond the discontinuity
    (`frictax.fitting.search.edges`). This continuation has at most 4 rounds, each with 6 probe
    points for each parameter and 120 steps.

    **Source:** J. J. Moré, *Lecture Notes in Mathematics* 630, 1978.

    >>> import frictax as fx
    >>> v = [0.5, 1.0, 2.0, 4.0, 8.0]
    >>> f = [6.12, 6.19, 6.41, 6.78, 7.61]

    >>> sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    >>> start = fx.Coulomb(F_Coulomb=1.0, F_prop=1.0)
    >>> found = fx.fit(start, sweep, method=fx.LevenbergMarquardt(tolerance=1e-10))
    >>> found.converged, round(float(found.law.F_prop), 4)
    (True, 0.1997)
    """

    tolerance: float = eqx.field(static=True, default=1e-8)
    max_steps: int = eqx.field(static=True, default=500)

    def __check_init__(self) -> None:
        _check_method(self, "max_steps", self.max_steps, self.tolerance)


class Optax(AbstractMethod):
    """A method that minimises half the sum of squares by any optax transformation.

    **Arguments:**

    - `transformation`: the default is L-BFGS with its line search; ``optax.adam(0.1)`` works too,
      with some thousand steps.
    - `steps`: the largest number of steps of a round; `rounds`: the largest number of rounds. A
      round begins at the final point of the previous round and ends when the tolerance is met. The
      default is one round if `steps` is given, and ten rounds of 2000 steps otherwise.
    - `tolerance`: norm of the gradient at which the search ends.

    >>> import optax
    >>> method = Optax(optax.adam(0.1), steps=5000)
    """

    transformation: GradientTransformation | None = eqx.field(static=True, default=None)
    steps: int | None = eqx.field(static=True, default=None)
    tolerance: float = eqx.field(static=True, default=1e-7)
    rounds: int | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.transformation is not None and not hasattr(self.transformation, "update"):
            raise ValueError(
                "`Optax.transformation` must be an optax transformation, got"
                f" {self.transformation!r}. Write optax.adam(0.1), say."
            )
        _check_method(self, "steps", self.steps_of_round, self.tolerance)
        if self.rounds is not None and self.rounds < 1:
            raise ValueError(
                f"`Optax.rounds` must be >= 1, got {self.rounds}. Leave it out for one round."
            )

    @property
    def steps_of_round(self) -> int:
        return _STEPS if self.steps is None else self.steps

    @property
    def most_rounds(self) -> int:
        usual = _ROUNDS if self.steps is None else 1
        return usual if self.rounds is None else self.rounds

    def minimise(
        self, residuals: Residuals, start: Float[Array, " p"]
    ) -> tuple[Float[Array, " p"], Integer, Bool[Array, ""]]:
        """Return the final point of a round, the step count, and true if the round converged."""
        import optax

        rule = optax.with_extra_args_support(
            optax.lbfgs() if self.transformation is None else self.transformation
        )

        def objective(u: Array) -> Array:
            return 0.5 * jnp.sum(residuals(u) ** 2)

        def going(carry) -> Array:
            _, _, gradient, step = carry
            return (step < self.steps_of_round) & (jnp.linalg.norm(gradient) > self.tolerance)

        def advance(carry) -> Any:
            u, state, gradient, step = carry
            updates, state = rule.update(
                gradient, state, u, value=objective(u), grad=gradient, value_fn=objective
            )
            u = optax.apply_updates(u, updates)
            return u, state, jax.grad(objective)(u), step + 1

        first = (start, rule.init(start), jax.grad(objective)(start), jnp.asarray(0))
        u, _, gradient, step = jax.lax.while_loop(going, advance, first)
        return u, step, jnp.linalg.norm(gradient) <= self.tolerance


def _check_method(method: AbstractMethod, field: str, steps: int, tolerance: float) -> None:
    name = type(method).__name__
    if steps < 1:
        raise ValueError(
            f"`{name}.{field}` must be >= 1, got {steps}. 500 is enough for most sweeps."
        )
    if not tolerance > 1e-13:
        raise ValueError(
            f"`{name}.tolerance` must be > 1e-13, got {tolerance}: 64 bit numbers cannot meet less."
            " Write 1e-8."
        )
