"""Rows of pandas' tables, whose types no type checker knows."""

from collections.abc import Iterator
from typing import Any

from frictax.annotations import DataFrame

from ..result import Fleet


def table_of(fleet: DataFrame | Fleet) -> DataFrame:
    """The table of a fleet, or what is one."""
    return fleet.table if isinstance(fleet, Fleet) else fleet


def lines(frame: Any, most: int | None = None) -> Iterator[Any]:
    """The first rows, as tuples with names."""
    return (frame if most is None else frame.head(most)).itertuples()


def flagged(frame: Any, column: str) -> Any:
    """The rows where this column is true, the least chance first."""
    return frame[frame[column]].sort_values("chance", kind="stable")


def of_number(frame: Any, name: str) -> Any:
    """The rows of a number."""
    return frame[frame["number"] == name]
