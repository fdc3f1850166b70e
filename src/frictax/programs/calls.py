"""Functions whose compiled programs are cached, together with the programs of their derivatives.

`cached_jit` finds a compiled program without tracing only if its arguments are numbers.
`jax.jacfwd`, `jax.grad` and `jax.vmap` replace the arguments by tracers (placeholders for numbers),
even outside of `jax.jit`. If an argument is a tracer, `cached_jit` traces the function again in
each call. Therefore `cached_primitive` makes a function an operation (primitive) of JAX, with rules
for `jax.jacfwd`, `jax.grad` and `jax.vmap`. Each transformed function has its own program in the
cache. Separate programs compute the values, the values with tangents (derivatives along a
direction), and the values with residuals (data saved for reverse mode). The program for the
backward pass computes cotangents (derivatives of a scalar result with respect to an array).
`jax.vmap` adds a batch axis to a program ("lanes" in `_TRANSFORMS`).
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frictax.jax_internals import (
    Operation,
    ShapedArray,
    Tracer,
    Zero,
    computes_at_once,
    instantiate_zeros,
)

from .executables import Programs, interruptible_jit
from .store import config_of

_NUMBERS = (jax.Array, np.ndarray, np.generic, Tracer)


@dataclasses.dataclass(frozen=True)
class _Call:
    """A function with its static arguments and the transformations applied to it. `made`: the
    applied transformations in order. Each transformation is a tuple: a key of `_TRANSFORMS`, such
    as "tangents", and arguments of the function with this key. `second`: error message for second
    derivatives; `outputs`: number of output arrays; `structure`: pytree structure of the arguments;
    `fixed`: all arguments, with None in place of each array.
    """

    function: Callable
    second: str
    outputs: int
    structure: Any
    fixed: tuple[Any, ...]
    types: tuple[type, ...]  # types of `fixed`, needed because 1 == True in Python
    made: tuple[tuple[Any, ...], ...] = ()

    def then(self, *what: Any) -> "_Call":
        return dataclasses.replace(self, made=(*self.made, what))

    def arguments(self, arrays) -> Any:
        left = iter(arrays)
        args = [next(left) if x is None else x for x in self.fixed]
        return jax.tree.unflatten(self.structure, args)

    def evaluate(self, *arrays) -> Any:
        return tuple(self.function(*self.arguments(arrays)))

    def transformed_function(self) -> Callable[..., Any]:
        """Return `function` after all transformations in `made`. It returns a tree of arrays."""
        function: Callable[..., Any] = self.evaluate
        for what, *how in self.made:
            function = _TRANSFORMS[what](function, *how)
        return function

    def flat(self) -> Callable[..., list[Any]]:
        transformed = self.transformed_function()
        return lambda *arrays: jax.tree.leaves(transformed(*arrays))


def cached_primitive(second: str, structure: Any) -> Callable[[Callable], Callable[..., Any]]:
    """Return a decorator that caches the programs of a function and of its derivatives. The
    decorated function returns a tree of arrays. `second`: the error message for second derivatives.
    `structure`: the structure of this tree, or a function that computes this structure from the
    arguments. Tracing also yields the structure, but takes longer than reading a program from the
    cache. Under `jax.jit`, or if an argument cannot be hashed, the decorated function does not use
    the cache but `eqx.filter_jit`.
    """

    def decorate(function: Callable) -> Callable[..., Any]:
        plain = interruptible_jit(function)
        flat = lambda *args: jax.tree.leaves(function(*args))  # noqa: E731
        flat.__module__, flat.__qualname__ = function.__module__, function.__qualname__

        @functools.wraps(function)
        def call(*args) -> Any:
            leaves, arguments = jax.tree.flatten(args)
            arrays = [x for x in leaves if isinstance(x, _NUMBERS)]
            fixed = tuple([None if isinstance(x, _NUMBERS) else x for x in leaves])
            made: Any = structure(*args) if callable(structure) else structure
            types = tuple(map(type, fixed))
            call = _Call(flat, second, made.num_leaves, arguments, fixed, types)
            try:
                hash(call)
            except TypeError:
                return plain(*args)
            if not _is_eager():
                return plain(*args)
            return jax.tree.unflatten(made, call_p.bind(*arrays, call=call))

        return call

    return decorate


def _is_eager() -> bool:
    """Return whether JAX computes numbers at once, instead of tracing a program."""
    if jax.device_count() > 1 or config_of("jax_disable_jit"):
        return False
    return computes_at_once()


# Each function below takes a function of arrays and returns its batched or differentiated form.


def _lanes(function: Callable, many: tuple[bool, ...], tangents_alone: bool) -> Callable:
    axes = tuple(0 if is_many else None for is_many in many)
    return jax.vmap(function, in_axes=axes, out_axes=(None, 0) if tangents_alone else 0)


def _tangents(function: Callable, moves: tuple[bool, ...]) -> Callable:
    """Return a function that computes values and tangents. The inputs of this function are all
    arguments, then the tangents of the arguments whose flag in `moves` is True. The results are all
    values and the tangents of the float values.
    """

    def both(*flat) -> Any:
        at, along = flat[: len(moves)], flat[len(moves) :]
        floats, d_floats, rest = jax.jvp(
            _function_of_moving(function, moves, at), _pick(at, moves), along, has_aux=True
        )
        return _merge(floats, rest), d_floats

    return both


def _forward_pass(function: Callable, moves: tuple[bool, ...]) -> Callable:
    """Return a function that computes the values, and the residuals (saved data) for reverse mode.
    The last residual is a random stamp that identifies the program. A backward pass can only read
    the residuals of its own forward pass.
    """

    def there(*at) -> Any:
        floats, back, rest = jax.vjp(
            _function_of_moving(function, moves, at), *_pick(at, moves), has_aux=True
        )
        needed, structure = jax.tree.flatten(back)
        stamp = np.random.default_rng().bytes(16)
        _backward_structures[stamp] = structure
        return _merge(floats, rest), (*needed, jnp.asarray(np.frombuffer(stamp, np.uint32)))

    return there


_backward_structures: dict[bytes, Any] = {}
_unreadable: set[bytes] = set()  # stamps of forward passes without a readable backward pass


class _UnreadableBackwardPass(Exception):
    """The error if the cache has a forward pass but not a readable backward pass."""


def _backward_pass(
    function: Callable, moves, needs: int, zeros: tuple[Any, ...], stamp: bytes
) -> Callable:
    """Return a function that computes the cotangents of the differentiated arguments. The inputs of
    this function are all arguments, the residuals, and the nonzero cotangents of float values.
    `zeros` contains for each float value shape and type if its cotangent is zero, and None if not.
    `needs`: number of residuals.
    """

    def back(*flat) -> Any:
        first = len(moves) + needs
        if stamp not in _backward_structures:
            raise _UnreadableBackwardPass
        way = jax.tree.unflatten(_backward_structures[stamp], flat[len(moves) : first - 1])
        return way(_fill_zeros(flat[first:], zeros))

    return back


def _backward_from_arguments(
    function: Callable, moves, needs: int, zeros: tuple[Any, ...]
) -> Callable:
    """Return a backward pass that computes the residuals again from the arguments."""

    def back(*flat) -> Any:
        at, given = flat[: len(moves)], flat[len(moves) + needs :]
        _, way, _ = jax.vjp(
            _function_of_moving(function, moves, at), *_pick(at, moves), has_aux=True
        )
        return way(_fill_zeros(given, zeros))

    return back


_TRANSFORMS = {
    "lanes": _lanes,
    "tangents": _tangents,
    "there": _forward_pass,
    "back": _backward_pass,
    "again": _backward_from_arguments,
}


def _function_of_moving(function: Callable, moves: tuple[bool, ...], at) -> Callable:
    """Return a function of the differentiated arguments only; `at` supplies the other arguments.
    The new function returns a tuple of all floats, and a list of all results with None for floats.
    """

    def floats_and_rest(*moving) -> Any:
        left = iter(moving)
        out = function(*[next(left) if m else x for m, x in zip(moves, at, strict=True)])
        floats = tuple(x for x in out if _is_float(x))
        return floats, [None if _is_float(x) else x for x in out]

    return floats_and_rest


def _is_float(x) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


def _pick(values: Sequence[Any], which: Sequence[bool]) -> tuple[Any, ...]:
    return tuple(x for x, picked in zip(values, which, strict=True) if picked)


def _merge(floats, rest) -> tuple[Any, ...]:
    left = iter(floats)
    return tuple(next(left) if x is None else x for x in rest)


def _fill_zeros(given: Sequence[Any], zeros: tuple[Any, ...]) -> tuple[Any, ...]:
    left = iter(given)
    return tuple(next(left) if like is None else jnp.zeros(*like) for like in zeros)


# The operation of JAX that runs a cached program, and the rules for its transformations.


call_p = Operation("frictax_call")
_programs = Programs()


@call_p.def_impl
def _compute(*arrays, call: _Call) -> list[Any]:
    made = call.made
    for i, (what, *how) in enumerate(made):
        if what == "back":
            moves, needs, zeros, _ = how
            stamp = np.asarray(arrays[len(moves) + needs - 1]).reshape(-1, 4)[0].tobytes()
            back = (*made[:i], (what, moves, needs, zeros, stamp), *made[i + 1 :])
            call = dataclasses.replace(call, made=back)
            known = stamp in _backward_structures or _programs.has(
                call.function, _key_parts(call, arrays)
            )
            if known and stamp not in _unreadable:
                try:
                    given = _key_parts(call, arrays)
                    return _programs.run(call, call.function, call.flat(), given, arrays)
                except _UnreadableBackwardPass:
                    _unreadable.add(stamp)
            again = (*made[:i], ("again", moves, needs, zeros), *made[i + 1 :])
            call = dataclasses.replace(call, made=again)
    return _programs.run(call, call.function, call.flat(), _key_parts(call, arrays), arrays)


def _key_parts(call: _Call, arrays) -> Any:
    """Return a tuple of all data that the program depends on, the input of `key_text`."""
    first = sum(x is None for x in call.fixed)
    return call.arguments(arrays[:first]), tuple(arrays[first:]), call.made


@call_p.def_batching
def _batch(arrays, dims, *, call: _Call) -> Any:
    arrays = [jnp.moveaxis(x, dim, 0) if dim else x for x, dim in zip(arrays, dims, strict=True)]
    many = tuple(dim is not None for dim in dims)
    what, *how = call.made[-1] if call.made else ("values",)
    alone = what == "tangents" and not any(many[: len(how[0])])
    out = call_p.bind(*arrays, call=call.then("lanes", many, alone))
    first = call.outputs if alone else 0
    return out, [None] * first + [0] * (len(out) - first)


def _moving(arrays, has_tangent: Sequence[bool]) -> tuple[bool, ...]:
    return tuple(t and _is_float(x) for x, t in zip(arrays, has_tangent, strict=True))


def _as_arrays(arrays) -> list[Any]:
    """Return `arrays`; convert Python numbers to arrays, so that JAX can differentiate them."""
    return [x if isinstance(x, _NUMBERS) else jnp.asarray(x) for x in arrays]


def _refuse_second(call: _Call) -> None:
    if any(what != "lanes" for what, *_ in call.made):
        raise RuntimeError(call.second)


@call_p.def_jvp
def _jvp(arrays, tangents, *, call: _Call) -> Any:
    _refuse_second(call)
    arrays = _as_arrays(arrays)
    moves = _moving(arrays, [type(d) is not Zero for d in tangents])
    along = _pick(tangents, moves)
    out = call_p.bind(*arrays, *along, call=call.then("tangents", moves))
    return out[: call.outputs], _with_zeros(out[: call.outputs], out[call.outputs :])


def _with_zeros(values, d_floats) -> list[Any]:
    left = iter(d_floats)
    return [next(left) if _is_float(x) else Zero(jax.typeof(x).to_tangent_aval()) for x in values]


@call_p.def_linearization
def _linearize(has_tangent, *arrays, call: _Call) -> Any:
    _refuse_second(call)
    arrays = _as_arrays(arrays)
    moves = _moving(arrays, has_tangent)
    out = call_p.bind(*arrays, call=call.then("there", moves))
    values, needed = out[: call.outputs], out[call.outputs :]
    floats = tuple((np.shape(x), str(x.dtype)) for x in values if _is_float(x))

    def along(needed, *tangents) -> list[Any]:
        moving = [instantiate_zeros(d) for d in _pick(tangents, moves)]
        how = {"call": call, "moves": moves, "needs": len(needed) - len(moves), "floats": floats}
        return _with_zeros(values, linear_p.bind(*needed, *moving, **how))

    return values, [_is_float(x) for x in values], [*arrays, *needed], along


# This operation computes the tangents of float results. Some of its inputs serve only JAX's reverse
# mode, which transposes the operation.
linear_p = Operation("frictax_linear")


def _tangents_along(*flat, call: _Call, moves, needs: int, floats) -> list[Any]:
    at, along = flat[: len(moves)], flat[len(moves) + needs :]
    tangents = call.then("tangents", moves)
    if _is_eager():
        return call_p.bind(*at, *along, call=tangents)[call.outputs :]
    return jax.tree.leaves(tangents.transformed_function()(*at, *along)[1])


linear_p.def_impl(_tangents_along)
linear_p.def_lowering(_tangents_along)


@linear_p.def_abstract_eval
def _shapes(*flat, call, moves, needs, floats) -> list[ShapedArray]:
    return [ShapedArray(shape, np.dtype(kind)) for shape, kind in floats]


@linear_p.def_batching
def _many_along(flat, dims, **how) -> Any:
    out = jax.vmap(lambda *flat: linear_p.impl(*flat, **how), in_axes=tuple(dims))(*flat)
    return out, [0] * len(out)


@linear_p.def_transpose
def _transpose(cotangents, *flat, call: _Call, moves, needs: int, floats) -> list[Any]:
    first = len(moves) + needs
    is_zero = [type(c) is Zero for c in cotangents]
    zeros = tuple(like if zero else None for zero, like in zip(is_zero, floats, strict=True))
    given = _pick(cotangents, [not zero for zero in is_zero])
    if not given:
        return [None] * len(flat)
    if _is_eager():
        back = call.then("back", moves, needs, zeros, b"")
        out = call_p.bind(*flat[:first], *given, call=back)
    else:
        again = call.then("again", moves, needs, zeros)
        out = jax.tree.leaves(again.transformed_function()(*flat[:first], *given))
    return [*[None] * first, *out]
