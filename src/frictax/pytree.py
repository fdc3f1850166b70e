"""Dataclasses that are pytrees, without the slow field checks of equinox. `readable` prints a
pytree as text.
"""

import dataclasses
from typing import Any, TypeVar, dataclass_transform

import equinox as eqx
import jax
import numpy as np

from frictax.jax_internals import Tracer

T = TypeVar("T")


def static(*, default: Any = dataclasses.MISSING) -> Any:
    """Declare a field that is part of the pytree structure and does not contain arrays."""
    return dataclasses.field(default=default, metadata={"static": True})


@dataclass_transform(frozen_default=True, field_specifiers=(static,))
def pytree_dataclass(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass and a pytree. All fields that are not `static()` are its
    children. Objects of a class with only static fields are equal if their fields are equal.

    Use this decorator for objects that functions of a fit pass to each other. An `equinox.Module`
    checks every field, and wraps a method at each use. These checks and wrappers took a third of
    the time of a small fit. `jax.tree_util.register_dataclass` is not usable: it calls ``__init__``
    with placeholders of JAX, which fail the checks of arguments.
    """
    # Objects can be compared if `static()` declares all of their fields.
    comparable = all(
        isinstance(vars(cls).get(name), dataclasses.Field) for name in cls.__annotations__
    )
    made: Any = dataclasses.dataclass(frozen=True, eq=comparable, repr=False)(cls)
    made.__repr__ = lambda thing: eqx.tree_pformat(thing)  # The printed text omits default values.
    made.__getstate__, made.__setstate__ = Pickled.__getstate__, Pickled.__setstate__
    fields = dataclasses.fields(made)
    inside = tuple(f.name for f in fields if not f.metadata.get("static", False))
    fixed = tuple(f.name for f in fields if f.metadata.get("static", False))
    keys = tuple(jax.tree_util.GetAttrKey(name) for name in inside)

    def taken_apart(thing) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        has = vars(thing)
        return tuple(has[name] for name in inside), tuple(has[name] for name in fixed)

    def with_keys(thing) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        children, rest = taken_apart(thing)
        return tuple(zip(keys, children, strict=True)), rest

    def put_together(rest: tuple[Any, ...], children) -> Any:
        thing = object.__new__(made)
        vars(thing).update(zip(inside, children, strict=True))
        vars(thing).update(zip(fixed, rest, strict=True))
        return thing

    jax.tree_util.register_pytree_with_keys(made, with_keys, put_together, taken_apart)
    return made


class Pickled:
    """A dataclass whose printed text is the same after `pickle` as before. Printing omits a field
    whose value *is* the default object. After `pickle`, a copy of the default object is equal to
    it, but not identical. Therefore `pickle` omits a field with the default object, and unpickling
    sets this object again.
    """

    def __getstate__(self) -> dict[str, Any]:
        fields = dataclasses.fields(type(self))  # type: ignore[arg-type]
        usual = {field.name: field.default for field in fields}
        return {n: x for n, x in vars(self).items() if n not in usual or x is not usual[n]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for field in dataclasses.fields(type(self)):  # type: ignore[arg-type]
            if field.default is not dataclasses.MISSING:
                state.setdefault(field.name, field.default)
        vars(self).update(state)


def readable(thing: Any) -> str:
    """Return a pytree as text in the form of equinox. Numbers show their values, and arrays show
    their type and shape.

    >>> import jax.numpy as jnp
    >>> readable((jnp.float32(0.1), jnp.zeros(3, jnp.float32)))
    '(0.1, f32[3])'
    """

    def show_leaf(leaf: Any) -> Any:
        known = isinstance(leaf, jax.Array | np.ndarray) and not isinstance(leaf, Tracer)
        return _Number(np.asarray(leaf)[()]) if known and leaf.ndim == 0 else leaf

    return eqx.tree_pformat(jax.tree.map(show_leaf, thing))


class _Number:
    """A wrapper of a number that prints only its digits, without its type."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return str(self.value)
