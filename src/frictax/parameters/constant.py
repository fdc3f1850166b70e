"""Values that derivatives do not pass."""

from typing import Any

import equinox as eqx
import jax


def constant(tree: Any) -> Any:
    """`tree` with its arrays as constants to differentiation."""
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, tree)
