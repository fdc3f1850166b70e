"""Verbs that an object offers and a room above carries out: `found.report()` is written in
`report`, which knows what a fit is. And packages whose names are imported when they are used.
"""

import contextlib
import functools
import gc
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from frictax.interrupts import key_waits


class Verb:
    """A method whose function stands in a room above and takes the object first.

    The room below knows the function's name alone, as pandas knows its plotting backends, and
    imports it when the verb is used: imports point one way, and what is costly to import is loaded
    for those who ask for it.

    **Argument:** `target`, module and function, such as
    ``"frictax.report.record_figure:draw_record"``. Docstring and signature are the function's.

    >>> class Length(float):
    ...     in_words = Verb("frictax.text:amount")
    >>> Length(0.004).in_words("m")
    '4 mm'
    """

    def __init__(self, target: str) -> None:
        self.target = target

    def function(self) -> Callable[..., Any]:
        module, _, name = self.target.partition(":")
        with contextlib.nullcontext() if module in sys.modules else key_waits():
            return getattr(importlib.import_module(module), name)

    def __get__(self, thing: Any, owner: Any = None) -> Callable[..., Any]:
        return self.function() if thing is None else types.MethodType(self.function(), thing)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Python's garbage collection is off meanwhile: modules are no garbage, and looking through
    those of jax again and again takes as long as some of the imports.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def lazily(package: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names are imported when they are first used.

    **Argument:** its `globals()`. Which names it has, and where they are, is told by the stub
    ``__init__.pyi`` beside it, which type checkers read, too.
    """

    @functools.cache
    def homes() -> dict[str, str]:
        import ast
        from pathlib import Path

        stub = ast.parse(Path(package["__file__"]).with_suffix(".pyi").read_text(encoding="utf-8"))
        froms = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
        return {alias.name: str(node.module) for node in froms for alias in node.names}

    def find(name: str) -> Any:
        here = package["__name__"]
        if name.startswith("__") or name not in homes():
            raise AttributeError(f"module {here!r} has no attribute {name!r}")
        home = homes()[name]
        with _no_collection(), key_waits():
            of = importlib.import_module(f"{home}.{name}" if home == here else home)
        package[name] = of if home == here else getattr(of, name)
        return package[name]

    return find, lambda: sorted({*package, *homes()})
