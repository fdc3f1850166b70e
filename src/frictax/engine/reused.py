"""A hybrid system whose methods JAX traces only once."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree


def model_of(system, args: PyTree) -> Any:
    """Return (system, args, unique object) for one call of `walk`.

    Data that a method reads may change between two calls of `walk`. Because of the unique object, a
    call does not use the traced methods of an earlier call.
    """
    return system, args, object()


def model_in_mode(model, mode) -> Any:
    """Return a model that is valid while `mode` lasts; its system is the result of `staying`."""
    system, args, walk = model
    return system.staying(mode, args), args, walk


def _combine_model(static, arrays) -> Any:
    leaves, structure = static
    return eqx.combine(arrays, jax.tree.unflatten(structure, leaves))


@functools.cache
def _compile_method(name: str) -> Callable[..., Any]:
    """Return a jitted function that calls the system's method `name`. The function has the method's
    name, so that this name appears in a traced program."""

    def call(static, arrays, *at) -> Any:
        system, args, _ = _combine_model(static, arrays)
        return getattr(system, name)(*at, args)

    call.__name__ = name
    return jax.jit(call, static_argnums=0)


def _method(name: str, traced: bool = True) -> Callable[..., Any]:
    """Return a method that calls the system's method `name`, compiled if `traced` is True."""

    def ask(self) -> Any:
        system, args, _ = _combine_model(self.static, self.arrays)
        return getattr(system, name)(args)

    return (
        (lambda self, *at: _compile_method(name)(self.static, self.arrays, *at)) if traced else ask
    )


class Reused(eqx.Module):
    """A hybrid system with its `args`. JAX traces each of its methods only once for each shape.

    An engine calls `flow` in a dozen places. Tracing `flow` in each of these places took longer
    than compiling the whole program. In the traced program each method is a function call, which
    XLA inlines.
    """

    arrays: Any
    # leaves that are not arrays, and the structure of the model
    static: Any = eqx.field(static=True)

    def __init__(self, model) -> None:
        self.arrays, rest = eqx.partition(
            model, lambda x: eqx.is_array(x) or isinstance(x, np.ndarray | np.generic)
        )
        leaves, structure = jax.tree.flatten(rest)
        self.static = (tuple(leaves), structure)

    is_smooth, is_stiff = _method("is_smooth", False), _method("is_stiff", False)
    judged_states, swings = _method("judged_states", False), _method("swings", False)
    flow, guard, jump, deadline, tick, longest_step_at = map(
        _method, ("flow", "guard", "jump", "deadline", "tick", "longest_step_at")
    )
    implicit_step, sound, safe_step = map(_method, ("implicit_step", "sound", "safe_step"))
    prepare_start = _method("prepare_start")
