"""Print results as tables on a terminal. Names from files are printed without markup."""

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from frictax.analysis import Comparison
from frictax.fitting import FitResult, Knowledge
from frictax.fitting.result.text import found_rows, shown_estimates

from . import sweep_text


def found_table(found: FitResult) -> Group:
    """Return a table of the parameters, the quality of the fit, and warnings."""
    table = _table(f"{type(found.law).__name__} friction of {found.sweep.name}")
    for head in ("parameter", "value", "unit", "std. error"):
        table.add_column(
            head, justify="right" if head in ("value", "std. error") else "left", no_wrap=True
        )
    table.add_column(f"{100 * found.level:g} % interval")
    for row, estimate in zip(found_rows(found), shown_estimates(found), strict=True):
        doubtful = estimate.knowledge in (Knowledge.UNKNOWN, Knowledge.AT_BOUND, Knowledge.WEAK)
        table.add_row(*(Text(cell, style="yellow" if doubtful else "") for cell in row))
    lines = [*sweep_text.formulas(found), sweep_text.describe_quality(found)]
    return Group(table, Text(), *map(Text, lines), *map(warning, found.warnings))


def comparison_table(comparison: Comparison) -> Group:
    """Return a table of all laws with their selection criteria; the chosen law is bold."""
    table = _table(
        f"Laws for {comparison.sweep.name}, {sweep_text.directions_of(comparison.sweep)}"
    )
    head, rows = comparison.as_table("\n{}", 3, "chosen")
    for i, word in enumerate(head):
        table.add_column(word, justify="right" if 0 < i < 6 else "left", no_wrap=i < 6)
    for cells in rows:
        bold = "bold" if cells[0] == comparison.best.name else ""
        table.add_row(*(Text(cell, style=bold) for cell in cells))
    return Group(table, Text(comparison.reason))


def warning(sentence: str) -> Text:
    """Return a warning that begins with an exclamation mark."""
    return Text.assemble(("! ", "bold yellow"), sentence)


def _table(title: str) -> Table:
    looks: dict[str, Any] = {"box": None, "padding": (0, 2, 0, 0), "header_style": "dim"}
    title_text = Text(title, style="bold")
    return Table(title=title_text, title_justify="left", pad_edge=False, **looks)
