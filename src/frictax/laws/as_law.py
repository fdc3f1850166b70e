"""Conversion of a user's value (a law or an M x 2 table) to a law."""

from typing import Any

from .law import AbstractLaw
from .table import Table


def as_law(value: Any) -> Any:
    """Convert an M x 2 table of speeds and forces, such as Modelica's `f_pos`, to a `Table`. Return
    a law or None unchanged.
    """
    if value is None or isinstance(value, AbstractLaw):
        return value
    if isinstance(value, type):
        name = value.__name__
        raise ValueError(
            f"A friction characteristic must be a law, got the class {name}. Give it parameters:"
            f" {name}(...)."
        )
    if isinstance(value, int | float):
        raise ValueError(
            f"A friction characteristic must be a law or an M x 2 table, got the number {value}. "
            f"Write `Coulomb(F_Coulomb={value})` or [[0, {value}]]."
        )
    if callable(value):
        raise ValueError(
            "A friction characteristic must be a law or an M x 2 table, got a plain function. "
            "Derive a class from `frictax.AbstractLaw`, so that its parameters can be fitted."
        )
    return Table(value)
