"""A hybrid system whose methods are traced once."""

import copy
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
        self._arrays, static = eqx.partition(model, eqx.is_array)

        def method(name: str) -> Any:
            @jax.jit
            def traced(arrays: Any, *at: Any) -> Any:
                system, args = eqx.combine(arrays, static)
                return getattr(system, name)(*at, args)

            return traced

        self._traced = {name: method(name) for name in _METHODS}

    def held(self) -> "Reused":
        """The same functions with the system's numbers as constants to differentiation."""
        other = copy.copy(self)
        other._arrays = jax.lax.stop_gradient(self._arrays)
        return other

    def flow(self, t: Any, y: Any, mode: Any) -> Any:
        return self._traced["flow"](self._arrays, t, y, mode)

    def guard(self, t: Any, y: Any, mode: Any) -> Any:
        return self._traced["guard"](self._arrays, t, y, mode)

    def jump(self, t: Any, y: Any, mode: Any, fired: Any) -> Any:
        return self._traced["jump"](self._arrays, t, y, mode, fired)

    def deadline(self, mode: Any) -> Any:
        return self._traced["deadline"](self._arrays, mode)

    def tick(self, t: Any, mode: Any) -> Any:
        return self._traced["tick"](self._arrays, t, mode)
