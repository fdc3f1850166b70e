"""Methods whose code is in another package, and packages whose names are imported at first use. For
example, the method `found.report()` is in the package `report`, which imports `found`'s class.
"""

import contextlib
import functools
import gc
import importlib
import sys
import textwrap
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from frictax.interrupts import defer_interrupt

IMPORT_TIME = time.time()  # [s] if a source file changes later, it may differ from running code

# Modules that do not need jax. For all other modules, jax is imported first, because its search for
# plugins in all installed packages takes six times as long inside a long chain of imports.
_WITHOUT_JAX = tuple(f"frictax.{room}" for room in ("measurements", "notice", "progress", "xla"))


class Verb:
    """A method whose code is a function of another package, with the object as first argument.

    The object stores only the name of the function, and imports the function when the method is
    used. Because of this late import, packages do not import each other in a circle, and slow
    modules are loaded only if needed.

    **Argument:** `target`, module and function, such as
    ``"frictax.report.record_figure:draw_record"``. The method has the docstring and signature of
    the function.

    >>> class Length(float):
    ...     in_words = Verb("frictax.text:amount")
    >>> Length(0.004).in_words("m")
    '4 mm'
    """

    def __init__(self, target: str) -> None:
        self.target = target

    def function(self) -> Callable[..., Any]:
        module, _, name = self.target.partition(":")
        with contextlib.nullcontext() if module in sys.modules else defer_interrupt():
            return getattr(importlib.import_module(module), name)

    def __get__(self, thing: Any, owner: Any = None) -> Callable[..., Any]:
        return self.function() if thing is None else types.MethodType(self.function(), thing)


class _Package(types.ModuleType):
    """A package whose docstring ends with the list of its public names, for `help`."""

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return self.__dict__["_described"]()


def names_by_room(package: dict[str, Any], homes: dict[str, str]) -> str:
    """Return as text the docstring's first paragraph and the public names of each subpackage.

    **Arguments:** `package`: the `globals()` of the package; `homes`: dict from name to module.
    """
    import ast

    here, rooms = package["__name__"], dict[str, list[str]]()
    for name, home in homes.items():
        room = home.removeprefix(here).strip(".").partition(".")[0]
        rooms.setdefault(room or name, []).append(name)
    folder, out = Path(package["__file__"]).parent, []
    for room, names in rooms.items():
        at = folder / room / "__init__.py"
        at = at if at.exists() else folder / f"{room}.py"
        said = ast.get_docstring(ast.parse(at.read_text(encoding="utf-8"))) if at.exists() else ""
        said = " ".join((said or "").partition("\n\n")[0].split()).rstrip(".")
        listed = textwrap.fill(
            ", ".join(names), 92, initial_indent="    ", subsequent_indent="    "
        )
        out.append(f"{textwrap.fill(f'{room}: {said}', 96)}\n{listed}")
    return "\n\n".join(out)


def lazily(package: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are imported at their first use.

    **Argument:** the package's `globals()`. The stub ``__init__.pyi`` of the package, which type
    checkers also use, lists its public names and their modules.
    """

    @functools.cache
    def homes() -> dict[str, str]:
        import ast

        stub = ast.parse(Path(package["__file__"]).with_suffix(".pyi").read_text(encoding="utf-8"))
        froms = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
        return {alias.name: str(node.module) for node in froms for alias in node.names}

    def find(name: str) -> Any:
        here = package["__name__"]
        if name.startswith("__") or name not in homes():
            raise AttributeError(f"module {here!r} has no attribute {name!r}")
        home, collects = homes()[name], gc.isenabled()
        # Imports create almost no garbage. Disable garbage collection, because its repeated search
        # of the objects of jax takes as long as some of the imports.
        gc.disable()
        try:
            with defer_interrupt():
                if home != here and not home.startswith(_WITHOUT_JAX):
                    importlib.import_module("jax.numpy")
                of = importlib.import_module(f"{home}.{name}" if home == here else home)
        finally:
            if collects:
                gc.enable()
        package[name] = of if home == here else getattr(of, name)
        return package[name]

    if "." not in package["__name__"]:
        said = package["__doc__"]
        package["_described"] = lambda: (
            f"{said}\nPublic names, by room (`help(fx.simulate)` describes one):\n\n"
            + names_by_room(package, homes())
        )
        sys.modules[package["__name__"]].__class__ = _Package
    return find, lambda: sorted({*package, *homes()})
