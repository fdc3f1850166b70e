"""Checks of parameter values, with error messages."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np

from frictax.pytree import Pickled, readable
from frictax.text import brief, suggestion

from .declaration import Declaration, is_not_numeric, is_traced, rotational_unit
from .modelica_names import modelica_advice
from .paths import children


def check(model: Any) -> None:
    """Raise `ValueError` for the first parameter outside its domain, and for inconsistent values. A
    class checks the consistency of its values in a method ``check_rules()``. `eqx.tree_at` makes a
    changed model without these checks, so `simulate` and `fit` call this function first. Traced
    values (placeholders of JAX) cannot be checked and are skipped.
    """
    kind = type(model)
    can_turn = getattr(kind, "unit_of_owner", False) and not hasattr(model, "rotational")
    for name, child, declaration in children(model):
        if declaration is not None and not isinstance(child, eqx.Module):
            unit = functools.partial(_certain_unit, declaration.unit) if can_turn else None
            check_value(f"{kind.__name__}.{name}", child, declaration, unit)
        elif isinstance(child, eqx.Module | tuple):
            check(child)
    rules = getattr(kind, "check_rules", None)
    if rules is not None:
        rules(model)


def _certain_unit(unit: str) -> str:
    """Return `unit` if it also applies to rotation; otherwise "1", which is not printed."""
    return unit if rotational_unit(unit) == unit else "1"


@functools.cache
def _arguments(kind: type) -> tuple[str, ...]:
    """Return the names of a class's arguments; an empty tuple if it accepts any names."""
    given = inspect.signature(kind).parameters.values()
    return () if any(p.kind is p.VAR_KEYWORD for p in given) else tuple(p.name for p in given)


class CheckedModule(Pickled, eqx.Module):
    """A module whose parameters are checked when it is created."""

    def __new__(cls, *args: Any, **fields: Any) -> Any:
        known = _arguments(cls) if fields else ()
        for name in fields if known else ():
            if name not in known:
                instead = modelica_advice(name, known) or suggestion(name, known)
                raise TypeError(
                    f"`{cls.__name__}` has no parameter {name!r}.{instead} It has:"
                    f" {', '.join(known)}."
                )
        return super().__new__(cls)

    def __check_init__(self) -> None:
        check(self)

    def check_rules(self) -> None:
        """Raise `ValueError` for values that are inconsistent with each other."""

    def __repr__(self) -> str:
        return readable(self)


def check_value(
    name: str, value: Any, declaration: Declaration, unit: Callable[[], str] | None = None
) -> None:
    """Raise `ValueError` if `value` is outside its domain or does not have the declared number of
    axes. `unit`: a function that returns the unit for the message, or None for the declared unit.
    """
    if is_traced(value) or (value is None and declaration.optional):
        return
    kind = "a number" if declaration.ndim == 0 else "a list of numbers"
    try:
        no_number = value is None or isinstance(value, str | bool) or is_not_numeric(value)
        array = np.asarray(value) if no_number else np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.asarray(None)
    if array.dtype != float or np.ma.is_masked(value):
        remedy = "Give it a value" if value is None else "Convert it first"
        remedy = "Delete the masked entries" if np.ma.is_masked(value) else remedy
        raise ValueError(f"`{name}` must be {kind}, got {brief(value)}. {remedy}.")
    if array.ndim == 0 < declaration.ndim:
        raise ValueError(f"`{name}` must be {kind}, got {array:g}. Write [{array:g}].")
    if array.ndim != declaration.ndim:
        raise ValueError(
            f"`{name}` must be {kind}, got an array of shape {array.shape}. Many machines at once:"
            " `jax.vmap`."
        )
    if not declaration.domain.contains(array):
        printed = declaration.unit if unit is None else unit()
        printed = "" if printed == "1" else f" {printed}"
        shown = f"{float(array):g}" if array.ndim == 0 else np.array2string(array, threshold=12)
        shown += printed
        if array.size > 12:
            # Find the first entry that is wrong by itself, or in relation to the previous entry.
            for i in range(array.size):
                if not declaration.domain.contains(array[i : i + 1]):
                    shown = f"{array[i]:g}{printed} in row {i}, counted from 0"
                    break
                if not declaration.domain.contains(array[max(i - 1, 0) : i + 1]):
                    shown = f"{array[i]:g}{printed} after {array[i - 1]:g}{printed} in row {i}"
                    shown += ", counted from 0"
                    break
        remedies = {
            "peak": "Breakaway cannot lie below sliding friction.",
            "m": "A mass that is not moved by forces is written as `Fixed`.",
            "fn_max": "A brake cannot pull its linings apart: swap the sign of `f_normalized`.",
        }
        remedy = remedies.get(name.rsplit(".", 1)[-1], declaration.domain.remedy())
        if not np.all(np.isfinite(array)):
            remedy = "Look where it comes from: a missing value, or a division by 0."
        raise ValueError(
            f"`{name}` must be {declaration.domain.rule()}, got {shown}. {remedy}".rstrip()
        )
