"""Runs whose steps are their own, beside each other."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def in_turn(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`function` of two trees of arrays, of which `jax.vmap` makes lanes one after another where
    the first tree differs between lanes: in step, all would take the most steps of any, and each
    branch that one takes. Where only the second one does, as the tangents of a Jacobian, lanes go
    together.

    On a CPU; elsewhere it is `function`. It is not to be differentiated.
    """
    if jax.default_backend() != "cpu":
        return function
    wrapped = jax.custom_batching.custom_vmap(function)

    @wrapped.def_vmap
    def lanes(size: int, many, still, along) -> Any:
        of_still, of_along = many
        axes = lambda many: jax.tree.map(lambda is_many: 0 if is_many else None, many)  # noqa: E731
        if not any(jax.tree.leaves(of_still)):
            one = jax.vmap(function, in_axes=(None, axes(of_along)))
            out = in_turn(one)(still, along)
        else:
            at = lambda tree, many, i: jax.tree.map(  # noqa: E731
                lambda x, is_many: x[i] if is_many else x, tree, many
            )
            out = jax.lax.map(
                lambda i: wrapped(at(still, of_still, i), at(along, of_along, i)), jnp.arange(size)
            )
        return out, jax.tree.map(lambda _: True, out)

    return wrapped
