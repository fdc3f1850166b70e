"""A hybrid system whose methods are traced once."""

import functools
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree


def model_of(system: Any, args: PyTree) -> Any:
    """A system and its `args` for one walk.

    Beyond that nothing is reused: a method may read what has changed in between.
    """
    return system, args, object()


class Reused(eqx.Module):
    """A `model_of`; its methods are functions that JAX traces once for each shape and then takes
    from its cache.

    An engine has the flow in a dozen places and more; tracing it anew in each took longer than
    compiling all of it. In the program they are calls, which XLA writes out.
    """

    arrays: Any
    static: Any = eqx.field(static=True)  # what is left of the model, as leaves and structure

    def __init__(self, model: Any) -> None:
        self.arrays, rest = eqx.partition(
            model, lambda x: eqx.is_array(x) or isinstance(x, np.ndarray | np.generic)
        )
        leaves, structure = jax.tree.flatten(rest)
        self.static = (tuple(leaves), structure)

    def flow(self, t: Any, y: Any, mode: Any) -> Any:
        return _called("flow", self.static, self.arrays, t, y, mode)

    def guard(self, t: Any, y: Any, mode: Any) -> Any:
        return _called("guard", self.static, self.arrays, t, y, mode)

    def jump(self, t: Any, y: Any, mode: Any, fired: Any) -> Any:
        return _called("jump", self.static, self.arrays, t, y, mode, fired)

    def deadline(self, mode: Any) -> Any:
        return _called("deadline", self.static, self.arrays, mode)

    def tick(self, t: Any, mode: Any) -> Any:
        return _called("tick", self.static, self.arrays, t, mode)

    def is_smooth(self) -> bool:
        leaves, structure = self.static
        system, args, _ = eqx.combine(self.arrays, jax.tree.unflatten(structure, leaves))
        return system.is_smooth(args)

    def longest_step(self, mode: Any, span: Any) -> Any:
        return _called("longest_step", self.static, self.arrays, mode, span)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _called(name: str, static: Any, arrays: Any, *at: Any) -> Any:
    leaves, structure = static
    system, args, _ = eqx.combine(arrays, jax.tree.unflatten(structure, leaves))
    return getattr(system, name)(*at, args)
