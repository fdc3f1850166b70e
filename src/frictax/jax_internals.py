"""The internals of JAX and equinox that frictax uses. No other file imports internals.

JAX changes its internals without notice. tests/test_jax_internals.py tests each internal function
that frictax uses. This file hides three differences between JAX 0.7.2 and 0.12:

- From JAX 0.8 on, a linearization rule gets `is_vjp` as its first argument. From JAX 0.11.1 on, the
  rule also returns residuals as a pytree, and its linear function gets these residuals.
- From JAX 0.12 on, a rule for dead code gets a flag for each argument.
- JAX 0.8 moved `enable_x64` from `jax.experimental` to `jax`.
"""

import contextlib
import importlib
import math
from collections.abc import Callable
from typing import Any, TypeVar

import jax
from equinox.internal import nondifferentiable as nondifferentiable, unvmap_any as unvmap_any
from jax._src import (
    compilation_cache as _compilation_cache,
    compiler as _compiler,
    config as _config,
    core as _core,
    xla_bridge as _xla_bridge,
)
from jax._src.interpreters.ad import primitive_linearizations as _linearizations
from jax.core import ShapedArray as ShapedArray, Tracer as Tracer
from jax.extend.core import JaxprEqn as JaxprEqn, Literal, Primitive
from jax.interpreters import ad as _ad, batching as _batching, mlir as _mlir, partial_eval as _pe
from jax.interpreters.ad import Zero as Zero, instantiate_zeros as instantiate_zeros

JaxLiteral = Literal
_Rule = TypeVar("_Rule", bound=Callable[..., Any])

# First version of JAX whose linearization rules return their residuals as a pytree.
_STRUCTURED_RESIDUALS = (0, 11, 1)
# Names of the JAX traces that apply a rule and then pass the operation to their parent trace.
_TRANSFORMING = ("JVPTrace", "BatchTrace", "LinearizeTrace")


class Operation(Primitive):
    """An operation of JAX that returns a list of arrays. Each method is a decorator that sets the
    operation's rule for one transformation. (JAX's class already has `def_impl` and
    `def_abstract_eval`.) A tangent is the derivative of an array along a direction. A cotangent is
    the derivative of a scalar result with respect to an array.
    """

    multiple_results = True

    def def_jvp(self, rule: _Rule) -> _Rule:
        """Set the forward rule: it maps arguments and tangents to values and their tangents."""
        _ad.primitive_jvps[self] = rule
        return rule

    def def_linearization(self, rule: _Rule) -> _Rule:
        """Set the rule for reverse mode. The arguments of the rule are a list of flags (which
        arguments have a tangent) and the arguments. The rule returns the values, a list of flags
        (which values have a tangent), residuals, and a function. This function maps residuals and
        tangents of arguments to tangents of values.
        """

        def linearize(*given, **params) -> Any:
            has_tangent, *arrays = given[1:] if isinstance(given[0], bool) else given
            values, moves, residuals, along = rule(has_tangent, *arrays, **params)
            if jax.__version_info__ < _STRUCTURED_RESIDUALS:
                return values, moves, residuals, along
            return values, moves, residuals, None, lambda kept, _, *tangents: along(kept, *tangents)

        _linearizations[self] = linearize
        return rule

    def def_transpose(self, rule: _Rule) -> _Rule:
        """Set the rule that maps cotangents of the values to cotangents of the arguments."""
        _ad.primitive_transposes[self] = rule
        return rule

    def def_batching(self, rule: _Rule) -> _Rule:
        """Set the rule for `jax.vmap`: it maps arguments and their axes to values and axes."""
        _batching.primitive_batchers[self] = rule
        return rule

    def def_dead_code(self, rule: _Rule) -> _Rule:
        """Set the rule that removes unused values. The rule's arguments are a list of flags (which
        values are used) and the operation's equation in a program. The rule returns a list of flags
        (which arguments are used) and the remaining equation, or None.
        """

        def eliminate(used: list[bool], *rest) -> Any:
            return rule(used, rest[-1])

        _pe.dce_rules[self] = eliminate
        return rule

    def def_lowering(self, function: Callable[..., Any], platform: str | None = None) -> None:
        """Compile the operation as `function`, on `platform` or (None) on all other platforms."""
        _mlir.register_lowering(
            self, _mlir.lower_fun(function, multiple_results=True), platform=platform
        )


def computes_at_once() -> bool:
    """Return whether JAX computes an operation now instead of tracing it for a program."""
    trace: Any = _core.trace_ctx.trace
    while not isinstance(trace, _core.EvalTrace):
        if type(trace).__name__ not in _TRANSFORMING:
            return False
        trace = trace.parent_trace
    return True


def has_backend() -> bool:
    """Return whether JAX has started a backend; this call does not start a backend."""
    return _xla_bridge.backends_are_initialized()


def replace_file_cache(cache: Callable[[str], Any]) -> None:
    """Let JAX store compiled programs in `cache(folder)`, which has the methods `get` and `put`."""
    _compilation_cache.get_file_cache = lambda folder: (cache(folder), folder)  # pyright: ignore


def without_compilation_cache() -> contextlib.AbstractContextManager[Any]:
    """Return a context in which JAX's own cache does not store programs of this thread."""
    return _config.persistent_cache_min_compile_time_secs(math.inf)


def enable_x64(on: bool) -> contextlib.AbstractContextManager[Any]:
    """Return a context in which this thread computes with 64 bits, or 32 if `on` is false."""
    there: Any = jax
    if not hasattr(jax, "enable_x64"):
        there = importlib.import_module("jax.experimental")
    return there.enable_x64(on)


def strip_locations(lowered: Any) -> None:
    """Remove the source locations from a lowered program."""
    from jaxlib.mlir.passmanager import PassManager

    module = lowered.compiler_ir()
    with module.context:
        PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)


def waits_for_compiler(frame: Any) -> bool:
    """Return whether the Python `frame` is the frame in which JAX waits for XLA."""
    return frame is not None and frame.f_globals.get("__name__") == _compiler.__name__


def without_dead_code(jaxpr: Any) -> Any:
    """Return `jaxpr` (a traced program) without the equations that no result needs."""
    return _pe.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars), instantiate=True)[0]


def depends_on_inputs(function: Callable[..., Any], *at: Any) -> bool:
    """Return whether a result of `function`, traced for the arguments `at`, depends on them."""
    jaxpr = jax.make_jaxpr(function)(*at).jaxpr
    return any(_pe.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))[1])


def expand_operation(eqn: Any) -> Any:
    """Return the program of an operation that consists of other operations, such as
    `jax.numpy.searchsorted`. JAX 0.12 stores these operations, and functions with their own
    derivatives, as objects. Return None for other operations, and for earlier versions of JAX.
    """
    operation = eqn.params.get("_prim")
    if operation is None:
        return None
    like = [jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in eqn.invars]
    return jax.make_jaxpr(operation.expand)(*jax.tree.unflatten(operation.in_tree, like))


def scan_counts(eqn: Any) -> tuple[int, int]:
    """Return how many arguments of a `jax.lax.scan` are constants and how many are its state."""
    parts = eqn.params.get("ft_in")
    if parts is None:  # before JAX 0.12
        return eqn.params["num_consts"], eqn.params["num_carry"]
    constants, state, _ = parts.unpack()
    return len(constants), len(state)
