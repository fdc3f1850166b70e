"""A machine without the names of its parts: what its equations and compiled programs depend on."""

import copy
import functools
from typing import Any

import jax

from .mechanism import Mechanism


def unnamed(mechanism: Mechanism) -> Mechanism:
    """`mechanism` with its parts called by their numbers, "part0", "part1", so that machines that
    differ in names alone are of one structure and share their programs.

    It is `mechanism` itself where a part is of the user's own: what its text means is not known.
    """
    own = (type(part).__module__.startswith("frictax.") for part in mechanism.parts)
    if type(mechanism) is not Mechanism or not all(own):
        return mechanism
    leaves, structure = jax.tree.flatten(mechanism)
    return jax.tree.unflatten(_numbered(structure), leaves)


@functools.lru_cache(maxsize=256)
def _numbered(structure: Any) -> Any:
    mechanism = jax.tree.unflatten(structure, [0.0] * structure.num_leaves)
    number = {name: f"part{i}" for i, name in enumerate(mechanism.names)}

    def renamed(name: Any) -> Any:
        """A part's name, with the end of it that is meant; names; what else is no text."""
        if isinstance(name, tuple):
            return tuple(map(renamed, name))
        if not isinstance(name, str):
            return name
        part, dot, end = name.partition(".")
        return f"{number[part]}{dot}{end}"

    parts = tuple(
        _with(part, {name: renamed(getattr(part, name)) for name in names_of_others(type(part))})
        for part in mechanism.parts
    )
    return jax.tree.structure(_with(mechanism, {"parts": parts, "names": tuple(number.values())}))


def names_of_others(part: type) -> tuple[str, ...]:
    """The fields of a part that hold names of other parts."""
    return tuple(name for name in _NAMES if name in getattr(part, "__dataclass_fields__", {}))


_NAMES = ("body", "support", "a", "b", "sun", "carrier", "ring", "sources")


def _with(thing: Any, fields: dict[str, Any]) -> Any:
    """A copy with these fields; unlike `dataclasses.replace` it checks nothing."""
    other = copy.copy(thing)
    vars(other).update(fields)
    return other
