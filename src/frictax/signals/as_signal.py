"""Conversion of a user's value (a number, a function or a signal) to a signal."""

from typing import Any

import equinox as eqx
import numpy as np

from .function import Function
from .signal import AbstractSignal
from .step import Constant


def as_signal(value: Any) -> Any:
    """Return a `Constant` for a number, a `Function` for a callable; return a signal unchanged."""
    if isinstance(value, AbstractSignal):
        return value
    if isinstance(value, type):
        name = value.__name__
        raise ValueError(
            f"A signal must be one of frictax's signals, got the class {name}. Make one of it:"
            f" {name}(...)."
        )
    if callable(value):
        return Function(value)  # pyright: ignore[reportArgumentType]
    if not eqx.is_array_like(value) or np.ndim(value) != 0:
        raise ValueError(
            "A signal must be one of frictax's signals, a function of time or one number, got"
            f" {value!r}. Write `Sampled(times, values)` for measured samples."
        )
    return Constant(value)
