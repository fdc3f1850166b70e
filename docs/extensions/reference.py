"""``{names}``: the entries of public names in the reference, by the rooms that define them.

Each line of the block is a room, such as ``frictax.laws``, or a single dotted name. The public
names of a room are those in the package's stub, so a new name gets an entry automatically.
"""

import inspect
import re
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from public_names import POINTER, expand, look_up, missing
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def first_sentence(thing: Any) -> str:
    text = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.:])\s", text)[0].rstrip(".:") if text else ""


def _in_order(names: list[str]) -> list[str]:
    """Sort functions by name, then classes by name."""
    return sorted(names, key=lambda name: (inspect.isclass(look_up(name)), name.lower()))


class Names(SphinxDirective):
    """A table of names with their first sentences, and an entry for each."""

    has_content = True
    # `members`: names of classes, or "all", whose methods and properties have entries too.
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
        # Methods whose code is in a room above come from a base class without an entry.
        options = "   :members:\n   :inherited-members: Module, AbstractHybridSystem\n"
        options = options if members and kind == "class" else ""
        module = name.rpartition(".")[0]
        return f".. py:currentmodule:: {module}\n\n.. auto{kind}:: {name}\n{options}\n"


MADE = (  # modules of classes that only functions build
    "frictax.analysis.residuals.",
    "frictax.fitting.result.",
    "frictax.cycles.",
    "frictax.linearization",
    "frictax.trajectory",
)


def _signature(app, what, name, thing, options, signature, returned) -> Any:
    """Replace ``<factory>`` in signatures, because docstrings have the default.

    Classes that only functions build do not get a signature.
    """
    by_function = type(thing) is type and POINTER.search(inspect.getdoc(thing) or "")
    if inspect.isclass(thing) and (by_function or thing.__module__.startswith(MADE)):
        return "", None
    return (signature.replace("<factory>", "...") if signature else signature), returned


def _bars(app, what, name, thing, options, lines: list[str]) -> None:
    """Escape bars in docstrings: |v| is a magnitude instead of a substitution."""
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
