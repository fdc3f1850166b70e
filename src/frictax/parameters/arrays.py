"""Common array types, and minimum and maximum with reliable derivatives.

JAX's own derivative of a maximum tests which argument equals the result. The compiler may compute
that argument twice with different rounding. If no argument equals the result, the derivative is 0
or NaN. `least`, `larger` and `smaller` have derivatives that do not depend on rounding.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from frictax.annotations import ScalarLike

Number = Float[Array, ""]
Integer = Int[Array, ""]
Values = Float[Array, "..."]
# State vector (n,) and mode vector (m,) of a hybrid system.
State = Float[Array, " n"]
Modes = Int[Array, " m"]


def row_at(rows: Array, i: Any) -> Array:
    """Return rows[i] for an index i in the range 0 ... n - 1."""
    return jax.lax.dynamic_index_in_dim(rows, i, keepdims=False, allow_negative_indices=False)


def constant(tree: Any) -> Any:
    """Return `tree` with its arrays as constants, whose derivatives are 0."""
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, tree)


def least(x: Float[Array, "*shape n"]) -> Float[Array, "*shape"]:
    """Return the least entry along the last axis. The derivative is that of the least entry."""
    return jnp.take_along_axis(x, jnp.argmin(x, axis=-1, keepdims=True), axis=-1)[..., 0]


def larger(a: Values | ScalarLike, b: Values | ScalarLike) -> Values:
    """Return the larger of `a` and `b`, with the derivative of that argument (of `b` if both are
    equal). As with `jnp.maximum`, the result is NaN if `a` or `b` is NaN.
    """
    return jnp.where((a > b) | jnp.isnan(a), a, b)


def smaller(a: Values | ScalarLike, b: Values | ScalarLike) -> Values:
    """Return the smaller of `a` and `b`, with the derivative of that argument (of `b` if both are
    equal). As with `jnp.minimum`, the result is NaN if `a` or `b` is NaN.
    """
    return jnp.where((a < b) | jnp.isnan(a), a, b)
