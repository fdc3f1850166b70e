"""The parameters of a model, and the paths that name them."""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import equinox as eqx
from jaxtyping import Float

from frictax.text import suggestion

from .declaration import Declaration, as_array, declaration_of
from .domains import Numbers
from .modelica_names import modelica_advice


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a model: its path, owner, value and declaration."""

    path: str
    owner: str
    value: Any
    declaration: Declaration


def parameters(model: Any) -> list[Parameter]:
    """Return every parameter of `model`, in the order of its parts and fields.

    >>> import frictax as fx
    >>> [p.path for p in fx.parameters.parameters(fx.Coulomb(F_Coulomb=5.0, F_prop=1.0))]
    ['F_Coulomb', 'F_prop']
    """
    return list(_walk(model, ""))


def get(model: Any, path: str) -> Any:
    """Return the part, law or value at `path`: ``get(block, "friction.peak")``.

    >>> import frictax as fx
    >>> contact = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=5.0), peak=1.1)
    >>> float(fx.parameters.get(contact, "f_pos.F_Coulomb"))
    5.0
    """
    node = model
    for step in path.split("."):
        found = next(((child,) for name, child, _ in children(node) if name == step), None)
        if found is None:
            raise _unknown(model, path)
        (node,) = found
    return node


def select(model: Any, free: str | Iterable[str] | None = None) -> list[Parameter]:
    """Return the parameters that a fit may change.

    `free` contains paths of parameters, parts or laws. The path of a part or law selects all of its
    parameters that are declared with ``fit=True``. In a table, a fit changes the forces and not the
    speeds. Without `free`, select all parameters with ``fit=True``.

    Raise `KeyError` for a path that does not exist; the message suggests a similar path.

    >>> import frictax as fx
    >>> contact = fx.SupportFriction("mass", f_pos=[[0, 5.0], [1, 6.0]], peak=1.1)
    >>> [p.path for p in fx.parameters.select(contact, ["f_pos"])]
    ['f_pos.f']
    """
    everything = parameters(model)
    if free is None:
        return [p for p in everything if p.declaration.fit]
    chosen: dict[str, Parameter] = {}
    for path in [free] if isinstance(free, str) else free:
        exact = [p for p in everything if p.path == path]
        below = [p for p in everything if p.path.startswith(path + ".") and p.declaration.fit]
        if not exact and not below:
            raise _unknown(model, path)
        chosen.update({p.path: p for p in exact + below})
    return [p for p in everything if p.path in chosen]


def replace(model: Any, values: Mapping[str, Float[Numbers, "..."] | float]) -> Any:
    """Return a copy of `model` with new values of the parameters at the given paths:
    ``replace(block, {"friction.peak": 1.2})``.

    >>> import frictax as fx
    >>> contact = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=5.0), peak=1.1)
    >>> float(fx.parameters.replace(contact, {"peak": 1.3, "f_pos.F_Coulomb": 4.0}).breakaway())
    1.3
    """
    paths = list(values)
    for path in paths:
        get(model, path)
    if not paths:
        return model
    return eqx.tree_at(
        lambda m: [get(m, path) for path in paths],
        model,
        [as_array(values[path]) for path in paths],
        is_leaf=lambda x: x is None,
    )


class UnknownName(KeyError):
    """A `KeyError` for an unknown part or parameter, printed without quotes."""

    def __str__(self) -> str:
        return str(self.args[0])


def children(model: Any) -> Iterator[tuple[str, Any, Declaration | None]]:
    """Yield (name, value, declaration) for each field of a module, or each entry of a tuple, that
    may contain parameters. A field that is not a parameter has the declaration None.
    """
    if isinstance(model, tuple):
        yield from ((str(i), child, None) for i, child in enumerate(model))
        return
    # Get the methods from the class, because equinox creates a new module for each bound method.
    # Creating modules costs time, and this function runs often.
    own = getattr(type(model), "parameter_children", None)
    named = getattr(type(model), "named_parts", None)
    if own is not None:
        yield from own(model)
    elif named is not None:
        for name, child in named(model):
            yield name, child, None
    elif isinstance(model, eqx.Module):
        yield from field_children(model)


def field_children(model: eqx.Module) -> Iterator[tuple[str, Any, Declaration | None]]:
    """Yield (name, value, declaration) of each field of `model` that is not static."""
    has = vars(model)  # `vars` is faster than attribute access of an equinox module.
    for name, declaration in _fields(type(model)):
        yield name, has.get(name), declaration


@functools.cache
def _fields(kind) -> tuple[tuple[str, Declaration | None], ...]:
    """Return the fields of a class that are not static, with their declarations."""
    return tuple(
        (f.name, declaration_of(f))
        for f in dataclasses.fields(kind)
        if not f.metadata.get("static", False)
    )


def _walk(model, prefix: str) -> Iterator[Parameter]:
    for name, child, declaration in children(model):
        path = f"{prefix}{name}"
        if declaration is not None and not isinstance(child, eqx.Module):
            if child is not None:
                yield Parameter(path, type(model).__name__, child, declaration)
            continue
        if isinstance(child, eqx.Module | tuple):
            yield from _walk(child, path + ".")


def _unknown(model, path: str) -> KeyError:
    known = [p.path for p in parameters(model)]
    owner = getattr(type(model), "described_as", type(model).__name__)
    part, _, field = path.rpartition(".")
    here = [p.removeprefix(f"{part}.").partition(".")[0] for p in known if p.startswith(f"{part}.")]
    instead = (here and modelica_advice(field, here)) or suggestion(path, known)
    return UnknownName(
        f"There is no parameter {path!r} of this {owner}.{instead} It has: {', '.join(known)}."
    )
