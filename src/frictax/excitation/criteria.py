"""How good an experiment is, in one number."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from frictax.parameters.arrays import constant

Criterion = Literal["E", "minimax", "A", "D"]
CRITERIA: tuple[Criterion, ...] = ("E", "minimax", "A", "D")
_SHARP = 8.0  # the power of the mean that stands for the largest


def criterion_of(kind: Criterion, covariance: Float[Array, "p p"]) -> Float[Array, ""]:
    """The logarithm of the size of relative errors with this covariance: that of the worst
    combination (E), of the worst parameter (minimax), the root of the mean square (A), the mean of
    the logarithms along the principal axes (D).
    """
    if kind == "D":
        return 0.5 * jnp.linalg.slogdet(covariance)[1] / covariance.shape[0]
    if kind == "E":
        return 0.5 * jnp.log(jnp.linalg.eigvalsh(covariance)[-1])
    variance = jnp.diag(covariance)
    if kind == "A":
        return 0.5 * jnp.log(jnp.mean(variance))
    largest = constant(jnp.max(variance))  # any scale gives the same value and derivative
    return 0.5 * (jnp.log(largest) + jnp.log(jnp.sum((variance / largest) ** _SHARP)) / _SHARP)
