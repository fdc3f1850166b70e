"""Functions whose programs are kept, and those of their derivatives.

`kept` finds a compiled program without tracing where its arguments are numbers.
Under `jax.jacfwd`, `jax.grad` or `jax.vmap`, outside of any `jax.jit`, they are tracers, but what
is computed at last are numbers again: a function here is an operation of JAX's own, with a rule for
each of these, and what comes out at the bottom is looked up as a program of its own: the function's
values, values and tangents, values and what the way back needs, the way back, each for as many
lanes as `jax.vmap` asks for.
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

from .executables import Programs, jitted
from .store import config_of

_NUMBERS = (jax.Array, np.ndarray, np.generic, Tracer)


@dataclasses.dataclass(frozen=True)
class _Call:
    """A function with all of its arguments that are no arrays, and what is made of it.

    `made`, one after the other: ("lanes", which arguments have them, whether only tangents do),
    ("tangents", which arguments move), ("there", which move), ("back", ...), ("again", ...): see
    the functions below.
    """

    function: Callable
    second: str
    outputs: int
    structure: Any
    fixed: tuple[Any, ...]
    types: tuple[type, ...]  # 1 and True are equal
    made: tuple[tuple[Any, ...], ...] = ()

    def then(self, *what: Any) -> "_Call":
        return dataclasses.replace(self, made=(*self.made, what))

    def arguments(self, arrays) -> Any:
        left = iter(arrays)
        args = [next(left) if x is None else x for x in self.fixed]
        return jax.tree.unflatten(self.structure, args)

    def of(self, *arrays) -> Any:
        return tuple(self.function(*self.arguments(arrays)))

    def whole(self) -> Callable[..., Any]:
        """Of arrays, to a tree of arrays."""
        function: Callable[..., Any] = self.of
        for what, *how in self.made:
            function = _MADE[what](function, *how)
        return function

    def flat(self) -> Callable[..., list[Any]]:
        whole = self.whole()
        return lambda *arrays: jax.tree.leaves(whole(*arrays))


def kept_call(second: str, structure: Any) -> Callable[[Callable], Callable[..., Any]]:
    """Of a function that returns a tree of arrays one whose programs are kept, and those of its
    derivatives; `second` says why there are no second ones, `structure` is that tree's, or a
    function that tells it by the arguments: a trace would take longer than to find a program.

    Under `jax.jit`, and where something in the arguments cannot be hashed, it is `eqx.filter_jit`
    of it.
    """

    def decorated(function: Callable) -> Callable[..., Any]:
        plain = jitted(function)
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

    return decorated


def _is_eager() -> bool:
    """Whether numbers come out: nothing is traced for a program."""
    if jax.device_count() > 1 or config_of("jax_disable_jit"):
        return False
    return computes_at_once()


# -- what is made of a function of arrays


def _lanes(function: Callable, many: tuple[bool, ...], tangents_alone: bool) -> Callable:
    axes = tuple(0 if is_many else None for is_many in many)
    return jax.vmap(function, in_axes=axes, out_axes=(None, 0) if tangents_alone else 0)


def _tangents(function: Callable, moves: tuple[bool, ...]) -> Callable:
    """Of all arguments and the tangents of those that move: values, tangents of the floats."""

    def both(*flat) -> Any:
        at, along = flat[: len(moves)], flat[len(moves) :]
        floats, d_floats, rest = jax.jvp(
            _of_moving(function, moves, at), _picked(at, moves), along, has_aux=True
        )
        return _in_order(floats, rest), d_floats

    return both


def _there(function: Callable, moves: tuple[bool, ...]) -> Callable:
    """Values, and what the way back needs. The last of that is a stamp, for the way back of one
    program does not understand what another left.
    """

    def there(*at) -> Any:
        floats, back, rest = jax.vjp(
            _of_moving(function, moves, at), *_picked(at, moves), has_aux=True
        )
        needed, structure = jax.tree.flatten(back)
        stamp = np.random.default_rng().bytes(16)
        _ways_back[stamp] = structure
        return _in_order(floats, rest), (*needed, jnp.asarray(np.frombuffer(stamp, np.uint32)))

    return there


_ways_back: dict[bytes, Any] = {}
_lost: set[bytes] = set()  # ways there whose way back could not be read


class _UnknownWay(Exception):
    """The program of the way back cannot be read, and the one of the way there was."""


def _back(function: Callable, moves, needs: int, told: tuple[Any, ...], stamp: bytes) -> Callable:
    """Of all arguments, what the way back needs and cotangents of floats, the cotangents of what
    moves. `told`, of each float: None where its cotangent is given, else shape and type of zeros.
    """

    def back(*flat) -> Any:
        first = len(moves) + needs
        if stamp not in _ways_back:
            raise _UnknownWay
        way = jax.tree.unflatten(_ways_back[stamp], flat[len(moves) : first - 1])
        return way(_filled(flat[first:], told))

    return back


def _again(function: Callable, moves, needs: int, told: tuple[Any, ...]) -> Callable:
    """As `_back`, from the arguments alone."""

    def back(*flat) -> Any:
        at, given = flat[: len(moves)], flat[len(moves) + needs :]
        _, way, _ = jax.vjp(_of_moving(function, moves, at), *_picked(at, moves), has_aux=True)
        return way(_filled(given, told))

    return back


_MADE = {
    "lanes": _lanes,
    "tangents": _tangents,
    "there": _there,
    "back": _back,
    "again": _again,
}


def _of_moving(function: Callable, moves: tuple[bool, ...], at) -> Callable:
    """Of what moves: the floats, and apart from them all else, None where they stand."""

    def of(*moving) -> Any:
        left = iter(moving)
        out = function(*[next(left) if m else x for m, x in zip(moves, at, strict=True)])
        floats = tuple(x for x in out if _is_float(x))
        return floats, [None if _is_float(x) else x for x in out]

    return of


def _is_float(x) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


def _picked(values: Sequence[Any], which: Sequence[bool]) -> tuple[Any, ...]:
    return tuple(x for x, picked in zip(values, which, strict=True) if picked)


def _in_order(floats, rest) -> tuple[Any, ...]:
    left = iter(floats)
    return tuple(next(left) if x is None else x for x in rest)


def _filled(given: Sequence[Any], told: tuple[Any, ...]) -> tuple[Any, ...]:
    left = iter(given)
    return tuple(next(left) if like is None else jnp.zeros(*like) for like in told)


# -- the operation


call_p = Operation("frictax_call")
_programs = Programs()


@call_p.def_impl
def _computed(*arrays, call: _Call) -> list[Any]:
    made = call.made
    for i, (what, *how) in enumerate(made):
        if what == "back":
            moves, needs, told, _ = how
            stamp = np.asarray(arrays[len(moves) + needs - 1]).reshape(-1, 4)[0].tobytes()
            back = (*made[:i], (what, moves, needs, told, stamp), *made[i + 1 :])
            call = dataclasses.replace(call, made=back)
            known = stamp in _ways_back or _programs.has(call.function, _told(call, arrays))
            if known and stamp not in _lost:
                try:
                    given = _told(call, arrays)
                    return _programs.called(call, call.function, call.flat(), given, arrays)
                except _UnknownWay:
                    _lost.add(stamp)
            again = (*made[:i], ("again", moves, needs, told), *made[i + 1 :])
            call = dataclasses.replace(call, made=again)
    return _programs.called(call, call.function, call.flat(), _told(call, arrays), arrays)


def _told(call: _Call, arrays) -> Any:
    """All that the program depends on, as `key_text` reads it."""
    first = sum(x is None for x in call.fixed)
    return call.arguments(arrays[:first]), tuple(arrays[first:]), call.made


@call_p.def_batching
def _batched(arrays, dims, *, call: _Call) -> Any:
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
    """Also of a Python number, which is differentiated as it is."""
    return [x if isinstance(x, _NUMBERS) else jnp.asarray(x) for x in arrays]


def _refuse_second(call: _Call) -> None:
    if any(what != "lanes" for what, *_ in call.made):
        raise RuntimeError(call.second)


@call_p.def_jvp
def _pushed(arrays, tangents, *, call: _Call) -> Any:
    _refuse_second(call)
    arrays = _as_arrays(arrays)
    moves = _moving(arrays, [type(d) is not Zero for d in tangents])
    along = _picked(tangents, moves)
    out = call_p.bind(*arrays, *along, call=call.then("tangents", moves))
    return out[: call.outputs], _with_zeros(out[: call.outputs], out[call.outputs :])


def _with_zeros(values, d_floats) -> list[Any]:
    left = iter(d_floats)
    return [next(left) if _is_float(x) else Zero(jax.typeof(x).to_tangent_aval()) for x in values]


@call_p.def_linearization
def _linearized(has_tangent, *arrays, call: _Call) -> Any:
    _refuse_second(call)
    arrays = _as_arrays(arrays)
    moves = _moving(arrays, has_tangent)
    out = call_p.bind(*arrays, call=call.then("there", moves))
    values, needed = out[: call.outputs], out[call.outputs :]
    floats = tuple((np.shape(x), str(x.dtype)) for x in values if _is_float(x))

    def along(needed, *tangents) -> list[Any]:
        moving = [instantiate_zeros(d) for d in _picked(tangents, moves)]
        how = {"call": call, "moves": moves, "needs": len(needed) - len(moves), "floats": floats}
        return _with_zeros(values, linear_p.bind(*needed, *moving, **how))

    return values, [_is_float(x) for x in values], [*arrays, *needed], along


# Tangents of the floats by those of what moves, with all that its transpose needs.
linear_p = Operation("frictax_linear")


def _along(*flat, call: _Call, moves, needs: int, floats) -> list[Any]:
    at, along = flat[: len(moves)], flat[len(moves) + needs :]
    tangents = call.then("tangents", moves)
    if _is_eager():
        return call_p.bind(*at, *along, call=tangents)[call.outputs :]
    return jax.tree.leaves(tangents.whole()(*at, *along)[1])


linear_p.def_impl(_along)
linear_p.def_lowering(_along)


@linear_p.def_abstract_eval
def _shapes(*flat, call, moves, needs, floats) -> list[ShapedArray]:
    return [ShapedArray(shape, np.dtype(kind)) for shape, kind in floats]


@linear_p.def_batching
def _many_along(flat, dims, **how) -> Any:
    out = jax.vmap(lambda *flat: linear_p.impl(*flat, **how), in_axes=tuple(dims))(*flat)
    return out, [0] * len(out)


@linear_p.def_transpose
def _transposed(cotangents, *flat, call: _Call, moves, needs: int, floats) -> list[Any]:
    first = len(moves) + needs
    is_zero = [type(c) is Zero for c in cotangents]
    told = tuple(like if zero else None for zero, like in zip(is_zero, floats, strict=True))
    given = _picked(cotangents, [not zero for zero in is_zero])
    if not given:
        return [None] * len(flat)
    if _is_eager():
        back = call.then("back", moves, needs, told, b"")
        out = call_p.bind(*flat[:first], *given, call=back)
    else:
        again = call.then("again", moves, needs, told)
        out = jax.tree.leaves(again.whole()(*flat[:first], *given))
    return [*[None] * first, *out]
