"""Checks of arguments, with error messages that all have the same form."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, get_type_hints

import numpy as np

from .text import suggestion

_Function = TypeVar("_Function", bound=Callable[..., Any])


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


def check_names(function: Callable[..., Any], given: Iterable[str]) -> None:
    """Raise `TypeError` if a name in `given` is not an option of the function (`lists_options`)."""
    parameters = inspect.signature(function).parameters.values()
    known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    for name in given:
        if name not in known:
            raise TypeError(
                f"`{function.__name__}` has no option {name!r}.{suggestion(name, known)} It has:"
                f" {', '.join(known)}."
            )


def lists_options(options: type, defaults: Mapping[str, Any]) -> Callable[[_Function], _Function]:
    """Return a decorator for a function that takes `**options`. With it, `help` and
    `inspect.signature` list each option of the `TypedDict` with type and default, in the order of
    `defaults`.
    """

    def decorate(function: _Function) -> _Function:
        signature, kinds = inspect.signature(function), get_type_hints(options)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        by_name = inspect.Parameter.KEYWORD_ONLY
        listed = [
            inspect.Parameter(name, by_name, default=default, annotation=kinds[name])
            for name, default in defaults.items()
            if name in kinds
        ]
        function.__dict__["__signature__"] = signature.replace(parameters=[*own, *listed])
        return function

    return decorate
