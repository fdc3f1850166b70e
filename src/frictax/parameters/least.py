"""Least and greatest values whose derivatives do not depend on rounding.

JAX's own derivatives of a maximum ask which argument equals the result. The compiler may compute
that argument twice and round it differently. Then no argument equals the result, and the derivative
is 0 or NaN.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from frictax.annotations import ScalarLike

from .shapes import Values


def least(x: Float[Array, "*shape n"]) -> Float[Array, "*shape"]:
    """Return the least entry along the last axis, with the derivative of that entry."""
    return jnp.take_along_axis(x, jnp.argmin(x, axis=-1, keepdims=True), axis=-1)[..., 0]


def larger(a: Values | ScalarLike, b: Values | ScalarLike) -> Values:
    """Return the larger of `a` and `b`, with its derivative (that of `b` where both are equal).

    As with `jnp.maximum`, the result is NaN where one of them is.
    """
    return jnp.where((a > b) | jnp.isnan(a), a, b)


def smaller(a: Values | ScalarLike, b: Values | ScalarLike) -> Values:
    """Return the smaller of `a` and `b`, with its derivative (that of `b` where both are equal).

    As with `jnp.minimum`, the result is NaN where one of them is.
    """
    return jnp.where((a < b) | jnp.isnan(a), a, b)
