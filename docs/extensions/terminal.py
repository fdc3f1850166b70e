"""``{commands}``: the command line's own help, as Typer writes it for a page."""

from typing import Any

import click
import typer.main
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer.cli import get_docs_for_click

from frictax.cli import app as frictax_app


class Commands(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        command = typer.main.get_command(frictax_app)
        with click.Context(command, info_name="frictax") as context:
            text = get_docs_for_click(obj=command, ctx=context, indent=1, name="frictax")
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
