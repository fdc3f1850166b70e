"""Checks of arguments with error messages of one form."""

import math
from typing import Any

import numpy as np


def check_count(what: str, value: Any, least: int, remedy: str = "") -> None:
    """Raise `ValueError` unless the value is a whole number >= `least`.

    >>> check_count("`fit_of`: `draws`", 2.5, 1, "200 are usual.")
    Traceback (most recent call last):
    ...
    ValueError: `fit_of`: `draws` must be a whole number >= 1, got 2.5. 200 are usual.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        rule = f"{what} must be a whole number >= {least}, got {value!r}."
        raise ValueError(f"{rule} {remedy}".rstrip())


def is_finite_number(value: Any) -> bool:
    """Return whether a value is one finite number: not a bool, and not too large for a float.

    >>> [is_finite_number(x) for x in (1, 0.5, True, "1", float("nan"), 10**400)]
    [True, True, False, False, False, False]
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
