"""Verbs that an object offers and a room above carries out: `found.report()` is written in
`report`, which knows what a fit is.
"""

import importlib
import types
from collections.abc import Callable
from typing import Any


class Verb:
    """A method whose function stands in a room above and takes the object first.

    The room below knows the function's name alone, as pandas knows its plotting backends, and
    imports it when the verb is used: imports point one way, and what is costly to import is loaded
    for those who ask for it.

    **Argument:** `target`, module and function, such as ``"frictax.report.figures:draw_record"``.
    Docstring and signature are the function's.

    >>> class Reading:
    ...     value = 3.0
    ...     relative_to = Verb("frictax.handover:_ratio")
    >>> Reading().relative_to(2.0)
    1.5
    """

    def __init__(self, target: str) -> None:
        self.target = target

    def function(self) -> Callable[..., Any]:
        module, _, name = self.target.partition(":")
        return getattr(importlib.import_module(module), name)

    def __get__(self, thing: Any, owner: Any = None) -> Callable[..., Any]:
        return self.function() if thing is None else types.MethodType(self.function(), thing)


def _ratio(thing: Any, other: float) -> float:
    """For the example above."""
    return thing.value / other
