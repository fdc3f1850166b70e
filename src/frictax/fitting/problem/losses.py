"""Losses, which define the cost of a residual: least squares and Huber's loss."""

import abc
import math
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from frictax.pytree import Pickled

Residuals = Float[Array, " n"]


class AbstractLoss(Pickled, eqx.Module):
    """A loss function: the cost of residuals that are divided by the noise scale."""

    @abc.abstractmethod
    def rho(self, x: Residuals) -> Residuals:
        """Return the loss of each scaled residual x; near 0 the loss is x**2/2."""

    @abc.abstractmethod
    def score(self, x: Residuals) -> Residuals:
        """Return the derivative of `rho`."""

    @abc.abstractmethod
    def score_slope(self, x: Residuals) -> Residuals:
        """Return the second derivative of `rho`."""

    @abc.abstractmethod
    def consistency(self) -> float:
        """Return the mean of score**2 for standard normal noise. To estimate the noise scale
        correctly, the mean of the squared scores is divided by this number.
        """

    @abc.abstractmethod
    def root(self, x: Residuals) -> Residuals:
        """Return y with the sign of x and y**2/2 = rho(x). The search minimises the sum of y**2."""

    # Largest number of noise scale updates; 1 if the minimiser does not depend on the scale.
    rounds: eqx.AbstractClassVar[int]


class Squares(AbstractLoss):
    """Least squares, for noise without outliers.

    **Example:** at `Huber`.
    """

    rounds: ClassVar[int] = 1

    def rho(self, x: Residuals) -> Residuals:
        return 0.5 * x * x

    def score(self, x: Residuals) -> Residuals:
        return x

    def score_slope(self, x: Residuals) -> Residuals:
        return jnp.ones_like(x)

    def consistency(self) -> float:
        return 1.0

    def root(self, x: Residuals) -> Residuals:
        return x


class Huber(AbstractLoss):
    """A loss that is quadratic for residuals up to `delta` noise scales, and linear for larger
    residuals. An outlier has at most the influence of a residual of `delta` noise scales.

    Huber's "proposal 2" estimates the noise scale together with the parameters. The start value of
    the noise scale is the median of the absolute least-squares residuals, divided by 0.6745.

    **Arguments:** `delta` > 0; with 1.345 the efficiency for normal noise is 95 %.

    **Source:** P. J. Huber, E. M. Ronchetti, *Robust Statistics*, 2nd ed. (2009), sections 6.4, 7.6
    to 7.8.

    In this sweep the force of the third row is 3 N too high:

    >>> import frictax as fx, numpy as np
    >>> v = np.linspace(0.5, 8.0, 16)
    >>> f = 6.0 + 0.2 * v + 0.02 * np.cos(9.0 * v)

    >>> f[2] += 3.0
    >>> sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    >>> for loss in (fx.Squares(), fx.Huber()):
    ...     law = fx.fit(fx.Coulomb, sweep, loss=loss).law
    ...     print(f"{type(loss).__name__}: {law.F_Coulomb:.2f} N, {law.F_prop:.2f} N.s/m")
    Squares: 6.60 N, 0.10 N.s/m
    Huber: 6.00 N, 0.20 N.s/m
    """

    rounds: ClassVar[int] = 100
    delta: float = eqx.field(static=True, default=1.345)

    def __check_init__(self) -> None:
        if not isinstance(self.delta, int | float) or not self.delta > 0:
            raise ValueError(
                f"`Huber.delta` must be > 0, got {self.delta!r}. Write 1.345 for 95 % efficiency,"
                " or use `Squares()`."
            )

    def rho(self, x: Residuals) -> Residuals:
        size = jnp.abs(x)
        return jnp.where(size <= self.delta, 0.5 * x * x, self.delta * (size - 0.5 * self.delta))

    def score(self, x: Residuals) -> Residuals:
        return jnp.clip(x, -self.delta, self.delta)

    def score_slope(self, x: Residuals) -> Residuals:
        return jnp.where(jnp.abs(x) <= self.delta, 1.0, 0.0)

    def consistency(self) -> float:
        d = self.delta
        density, beyond = (
            math.exp(-0.5 * d * d) / math.sqrt(2 * math.pi),
            0.5 * math.erfc(d / math.sqrt(2)),
        )
        return 2.0 * (0.5 - beyond - d * density + d * d * beyond)

    def root(self, x: Residuals) -> Residuals:
        outside = jnp.abs(x) > self.delta
        # For |x| <= delta, the root below is not used, but JAX differentiates it. `delta` replaces
        # |x| there, because an infinite derivative gives nan.
        size = jnp.where(outside, jnp.abs(x), self.delta)
        return jnp.where(
            outside, jnp.sign(x) * jnp.sqrt(2.0 * self.delta * size - self.delta**2), x
        )
