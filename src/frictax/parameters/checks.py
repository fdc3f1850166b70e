"""Checks of parameter values, with error messages."""

import dataclasses
import functools
import inspect
from typing import Any

import equinox as eqx
import numpy as np

from frictax.pytree import Pickled, readable
from frictax.text import brief, suggestion

from .declaration import Declaration, is_traced, rotational_unit
from .modelica_names import modelica_advice
from .paths import children


def check(model: Any) -> None:
    """Raise `ValueError` for the first parameter outside its domain, and for inconsistent values. A
    class checks the consistency of its values in a method ``check_rules()``. `eqx.tree_at` makes a
    changed model without these checks, so `simulate` and `fit` call this function first. Traced
    values cannot be checked and are skipped.
    """
    for name, child, declaration in children(model):
        if isinstance(child, eqx.Module):
            check(child)
        elif declaration is not None:
            unit = declaration.unit
            can_turn = getattr(model, "unit_of_owner", False) and not hasattr(model, "rotational")
            if can_turn and rotational_unit(unit) != unit:
                unit = "1"  # is not printed
            shown = dataclasses.replace(declaration, unit=unit)
            check_value(f"{type(model).__name__}.{name}", child, shown)
    rules = getattr(type(model), "check_rules", None)
    if rules is not None:
        rules(model)


@functools.cache
def _arguments(kind: type) -> tuple[str, ...]:
    """Return the names of the arguments of a class; empty for a class that accepts any names."""
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


def check_value(name: str, value: Any, declaration: Declaration) -> None:
    """Raise `ValueError` if `value` is outside its domain, or not as declared (number, vector)."""
    if is_traced(value) or (value is None and declaration.optional):
        return
    kind = "a number" if declaration.ndim == 0 else "a list of numbers"
    try:
        no_number = value is None or isinstance(value, str | bool)
        array = np.asarray(value) if no_number else np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.asarray(None)
    if array.dtype != float:
        raise ValueError(
            f"`{name}` must be {kind}, got {brief(value)}."
            f" {'Give it a value' if value is None else 'Convert it first'}."
        )
    if array.ndim == 0 < declaration.ndim:
        raise ValueError(f"`{name}` must be {kind}, got {array:g}. Write [{array:g}].")
    if array.ndim != declaration.ndim:
        raise ValueError(
            f"`{name}` must be {kind}, got an array of shape {array.shape}. Many machines at once:"
            " `jax.vmap`."
        )
    if not declaration.domain.contains(array):
        unit = "" if declaration.unit == "1" else f" {declaration.unit}"
        if array.ndim == 0:
            shown = f"{float(array):g}{unit}"
        elif array.size <= 12:
            shown = np.array2string(array) + unit
        else:
            shown = np.array2string(array, threshold=12) + unit
            # Find the first entry that is wrong by itself, or in relation to the previous entry.
            for i in range(array.size):
                if not declaration.domain.contains(array[i : i + 1]):
                    shown = f"{array[i]:g}{unit} in row {i}, counted from 0"
                    break
                if not declaration.domain.contains(array[max(i - 1, 0) : i + 1]):
                    shown = f"{array[i]:g}{unit} after {array[i - 1]:g}{unit} in row {i}"
                    shown += ", counted from 0"
                    break
        remedies = {
            "peak": "Breakaway cannot lie below sliding friction.",
            "m": "A mass that is not moved by forces is written as `Fixed`.",
            "fn_max": "A brake cannot pull its linings apart: swap the sign of `f_normalized`"
            " instead.",
        }
        remedy = remedies.get(name.rsplit(".", 1)[-1], declaration.domain.remedy())
        if not np.all(np.isfinite(array)):
            remedy = "Look where it comes from: a missing value, or a division by 0."
        raise ValueError(
            f"`{name}` must be {declaration.domain.rule()}, got {shown}. {remedy}".rstrip()
        )
