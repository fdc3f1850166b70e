"""``{names}``: the entries of public names in the reference, by the rooms that define them.

Each line of the block is a room, as `src/frictax/__init__.pyi` imports from it (its public names
are found there, so that a new one has an entry without anybody's doing), or a single dotted name.
"""

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
POINTER = re.compile(r"\*\*Example:\*\* .*?`(\w+)`", re.DOTALL)  # to the entry that has it
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
    """The lines of all blocks in the reference."""
    return [
        line.strip()
        for page in sorted((ROOT / "docs" / "reference").glob("*.md"))
        for block in BLOCK.finditer(page.read_text(encoding="utf-8"))
        for line in block.group(1).splitlines()
        if line.strip() and not line.startswith(":")
    ]


def expand(lines: list[str]) -> list[str]:
    """The dotted names that the lines of a block stand for: a room is those of its names that no
    line has by itself.
    """
    known, by_themselves = rooms(), set(_lines())
    found = []
    for line in lines:
        of_room = [
            name for x in known.get(line, ()) if (name := f"frictax.{x}") not in by_themselves
        ]
        found += of_room if line in known else [line]
    return found


def listed() -> list[str]:
    """All names that pages of the reference have entries for."""
    return expand(_lines())


def missing() -> list[str]:
    """A sentence for each room without a place in the reference."""
    have = set(listed())
    return [
        f"{room} has public names and no entry in the reference ({', '.join(lost)}): write the "
        f"line '{room}' into a {{names}} block of a page in docs/reference."
        for room, names in rooms().items()
        if (lost := [name for name in names if f"frictax.{name}" not in have])
    ]


def look_up(name: str) -> Any:
    """What a dotted name stands for."""
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


def first_sentence(thing: Any) -> str:
    text = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.:])\s", text)[0].rstrip(".:") if text else ""


def _in_order(names: list[str]) -> list[str]:
    """What one calls first, then classes, by name."""
    return sorted(names, key=lambda name: (inspect.isclass(look_up(name)), name.lower()))


class Names(SphinxDirective):
    """A table of names with their first sentences, and an entry for each."""

    has_content = True
    # names, or "all": whose methods and properties have entries too
    option_spec = {"members": directives.unchanged, "written": directives.flag}

    def run(self) -> list[nodes.Node]:
        names = expand([line.strip() for line in self.content if line.strip()])
        if "written" not in self.options:
            names = _in_order(names)
        shown = self.options.get("members", "").split()
        rows = "".join(
            f"   * - :py:obj:`{name.rpartition('.')[2]} <{name}>`\n"
            f"     - {first_sentence(look_up(name))}\n"
            for name in names
        )
        entries = "".join(
            self._entry(name, "all" in shown or name.rpartition(".")[2] in shown) for name in names
        )
        head = ".. list-table::\n   :widths: 30 70\n   :class: names\n\n"
        text = f"````{{eval-rst}}\n{head}{rows}\n{entries}````"
        return self.parse_text_to_nodes(text)

    @staticmethod
    def _entry(name: str, members: bool) -> str:
        thing = look_up(name)
        kind = "class" if inspect.isclass(thing) else "function" if callable(thing) else "data"
        if kind == "class" and issubclass(thing, BaseException):
            kind = "exception"
        options = "   :members:\n" if members and kind == "class" else ""
        module = name.rpartition(".")[0]
        return f".. py:currentmodule:: {module}\n\n.. auto{kind}:: {name}\n{options}\n"


def _signature(app, what, name, thing, options, signature, returned) -> Any:
    """``<factory>`` says nothing to a reader: the docstring tells the default. And what$
    a function makes is not built by a reader.
    """
    if inspect.isclass(thing) and POINTER.search(inspect.getdoc(thing) or ""):
        return "", None
    return (signature.replace("<factory>", "...") if signature else signature), returned


def _bars(app, what, name, thing, options, lines: list[str]) -> None:
    """A bar in a docstring is a size, |v|, and no substitution."""
    lines[:] = [
        line if line.lstrip().startswith((">>>", "...")) else line.replace("|", r"\|")
        for line in lines
    ]


def _complete(app: Sphinx) -> None:
    if lost := missing():
        raise SystemExit("\n".join(lost))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("names", Names)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-process-docstring", _bars)
    app.connect("builder-inited", _complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
