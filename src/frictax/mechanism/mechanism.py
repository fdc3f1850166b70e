"""`Mechanism`, a machine of named parts, and `structure_only`, which replaces part names."""

import copy
import functools
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax

from frictax.annotations import Part
from frictax.engine.system import AbstractHybridSystem
from frictax.handover import Verb
from frictax.parameters import UnknownName
from frictax.pytree import readable
from frictax.text import suggestion
from frictax.verbs import MechanismVerbs

from .layout import PARTS, layout, mechanism_error


class Mechanism(MechanismVerbs, eqx.Module):
    """A machine that consists of parts. The user gives each part a name.

    A part is attached to a body by the body's name; ``"mass.flange_a"`` and ``"mass.flange_b"`` are
    the ends of a body. ``machine["mass"]`` returns the part "mass". Use this expression in
    `eqx.tree_at` to change the part.

    **Raises:** `ValueError` if a part refers to an unknown name, if an argument is not a part, and
    if parts do not fit together.

    >>> import frictax as fx
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=[[0, 15], [1, 6.4], [12, 17]], peak=1.1),
    ...     drive=fx.Force("mass", fx.Sine(amplitude=25.0, f=0.25)),
    ... )
    >>> block.names
    ('mass', 'friction', 'drive')
    >>> block
    Mechanism(
      mass=Mass(m=1.0, s=0.0, v=0.0, L=0.0),
      friction=SupportFriction(body='mass', f_pos=Table(v=f64[3], f=f64[3]), peak=1.1),
      drive=Force(
        body='mass',
        f=Sine(amplitude=25.0, f=0.25, phase=0.0, offset=0.0, startTime=0.0)
      )
    )
    """

    parts: tuple[Any, ...]
    # A tuple preserves the user's order of the parts; JAX sorts the keys of a dict.
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, /, *unnamed: Part, **parts: Part) -> None:
        if unnamed:
            raise mechanism_error(
                f"every part needs a name, got {unnamed[0]!r} without one. Write"
                " `mass=Mass(m=1.0)`."
            )
        self.parts = tuple(parts.values())
        self.names = tuple(parts)

    def __check_init__(self) -> None:
        for name, part in zip(self.names, self.parts, strict=True):
            if not name.isidentifier():
                raise mechanism_error(
                    f"a part's name must be a Python name, got {name!r}. Paths join"
                    " names by dots: 'mass.m'."
                )
            if not isinstance(part, PARTS):
                raise mechanism_error(
                    f"{name!r} must be a part such as `Mass`, `Spring`, `Force` or"
                    f" `SupportFriction`, got {part!r}. Signals and laws go inside a part."
                )
        layout(self)

    def __getitem__(self, name: str) -> Any:
        if name not in self.names:
            raise UnknownName(
                f"This mechanism has no part {name!r}.{suggestion(name, self.names)} It has:"
                f" {', '.join(self.names)}."
            )
        return self.parts[self.names.index(name)]

    def __repr__(self) -> str:
        parts = (f"{name}={readable(part)}" for name, part in self.named_parts())
        return "Mechanism(\n  " + ",\n".join(parts).replace("\n", "\n  ") + "\n)"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.names)

    def named_parts(self) -> Iterator[tuple[str, Any]]:
        """Return an iterator over (name, part), in the order of the user's arguments."""
        return zip(self.names, self.parts, strict=True)

    _repr_svg_ = Verb("frictax.report.mechanism_figure:mechanism_svg")


Machine = Mechanism | AbstractHybridSystem


def structure_only(mechanism: Mechanism) -> Mechanism:
    """Return a copy of `mechanism` whose parts are named "part0", "part1", ... Machines that differ
    only in part names then share compiled programs.

    If a user wrote the class of a part, return `mechanism` unchanged, because text fields of that
    class may not be names of parts.
    """
    own = (type(part).__module__.startswith("frictax.") for part in mechanism.parts)
    if type(mechanism) is not Mechanism or not all(own):
        return mechanism
    leaves, structure = jax.tree.flatten(mechanism)
    return jax.tree.unflatten(_number_names(structure), leaves)


@functools.lru_cache(maxsize=256)
def _number_names(structure: Any) -> Any:
    mechanism = jax.tree.unflatten(structure, [0.0] * structure.num_leaves)
    number = {name: f"part{i}" for i, name in enumerate(mechanism.names)}

    def rename(name: Any) -> Any:
        """Return the new name of a part or flange; for a tuple, a tuple of new names. Do not change
        other values.
        """
        if isinstance(name, tuple):
            return tuple(map(rename, name))
        if not isinstance(name, str):
            return name
        part, dot, end = name.partition(".")
        return f"{number[part]}{dot}{end}"

    parts = tuple(
        _copy_with(
            part, {name: rename(getattr(part, name)) for name in names_of_others(type(part))}
        )
        for part in mechanism.parts
    )
    return jax.tree.structure(
        _copy_with(mechanism, {"parts": parts, "names": tuple(number.values())})
    )


def names_of_others(part: type) -> tuple[str, ...]:
    """Return the names of the fields of the class `part` that contain names of other parts."""
    return tuple(name for name in _NAMES if name in getattr(part, "__dataclass_fields__", {}))


_NAMES = ("body", "support", "a", "b", "sun", "carrier", "ring", "sources")


def _copy_with(thing: Any, fields: dict[str, Any]) -> Any:
    """Return a copy of module `thing` with new `fields`; the checks of its class do not run."""
    other = copy.copy(thing)
    vars(other).update(fields)
    return other
