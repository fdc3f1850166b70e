"""Compare the public names of the package with the entries of the reference.

The package's stub, `src/frictax/__init__.pyi`, has the public names of each room. The ``{names}``
blocks of the pages in docs/reference name the rooms, or single dotted names, that a page shows.
"""

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
POINTER = re.compile(r"\*\*Example:\*\* .*?`([\w.]+)`", re.DOTALL)  # to the entry that has it
BLOCK = re.compile(r"^```\{names\}\n(.*?)^```", re.MULTILINE | re.DOTALL)


def rooms() -> dict[str, list[str]]:
    """Room -> its public names, as the package's stub has them."""
    stub = ast.parse((ROOT / "src/frictax/__init__.pyi").read_text(encoding="utf-8"))
    return {
        node.module: [alias.asname or alias.name for alias in node.names]
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and node.module and node.module != "frictax"
    }


def _lines() -> list[str]:
    """Return the lines of all blocks in the reference."""
    return [
        line.strip()
        for page in sorted((ROOT / "docs" / "reference").glob("*.md"))
        for block in BLOCK.finditer(page.read_text(encoding="utf-8"))
        for line in block.group(1).splitlines()
        if line.strip() and not line.startswith(":")
    ]


def expand(lines: list[str]) -> list[str]:
    """Return the dotted names of the lines of a block. A room has its public names, except those
    that have a line of their own.
    """
    known, by_themselves = rooms(), set(_lines())
    found = []
    for line in lines:
        of_room = [
            name for x in known.get(line, ()) if (name := f"frictax.{x}") not in by_themselves
        ]
        found += of_room if line in known else [line]
    return found


def names_with_entry() -> list[str]:
    """Return all names that have an entry in the reference."""
    return expand(_lines())


def missing() -> list[str]:
    """Return a sentence for each room with names that lack an entry."""
    have = set(names_with_entry())
    return [
        f"{room} has public names and no entry in the reference ({', '.join(lost)}): write the "
        f"line '{room}' into a {{names}} block of a page in docs/reference."
        for room, names in rooms().items()
        if (lost := [name for name in names if f"frictax.{name}" not in have])
    ]


def look_up(name: str) -> Any:
    """Return the object of a dotted name."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part)
        return thing
    raise LookupError(f"The reference has an entry for {name}, and there is no such thing.")


def has_example(name: str) -> bool:
    """Return whether an entry, or the entry to which it refers, has an example that tests run."""
    text = inspect.getdoc(look_up(name)) or ""
    pointer = POINTER.search(text)
    return ">>>" in text or (
        pointer is not None
        and ">>>" in (inspect.getdoc(look_up(f"frictax.{pointer.group(1)}")) or "")
    )
