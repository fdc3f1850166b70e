"""Types of arrays that many functions take, and their rows."""

from typing import Any

import jax
from jaxtyping import Array, Float, Int

Number = Float[Array, ""]
Integer = Int[Array, ""]
Values = Float[Array, "..."]
# Of a hybrid system.
State = Float[Array, " n"]
Modes = Int[Array, " m"]


def row_at(rows: Array, i: Any) -> Array:
    """rows[i] for an i that is known to lie inside."""
    return jax.lax.dynamic_index_in_dim(rows, i, keepdims=False, allow_negative_indices=False)
