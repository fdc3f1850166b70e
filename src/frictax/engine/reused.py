"""A hybrid system whose methods are traced once."""

from typing import Any

import equinox as eqx
import jax

_METHODS = ("flow", "guard", "jump", "deadline", "tick")


class Reused:
    """The methods of a system, with its `args`, as functions that JAX traces once for each shape and then takes from its cache.

    The loop over samples has the flow in thirteen places; tracing it anew in each took longer than compiling all of it. In the program
    they are calls, which XLA writes out.
    """

    def __init__(self, model: Any) -> None:
        arrays, static = eqx.partition(model, eqx.is_array)

        def method(name: str) -> Any:
            @jax.jit
            def traced(arrays: Any, *at: Any) -> Any:
                system, args = eqx.combine(arrays, static)
                return getattr(system, name)(*at, args)

            return lambda *at: traced(arrays, *at)

        self.flow, self.guard, self.jump, self.deadline, self.tick = (method(name) for name in _METHODS)
        self.model = model
