"""Results as tables on a terminal. Names come from files, so all is text and never markup."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from frictax.analysis import Comparison
from frictax.fitting import FitResult, Knowledge
from frictax.fitting.result.text import found_rows
from frictax.report import words


def found_table(found: FitResult) -> Group:
    """Parameters with errors and intervals, how well the law fits, and warnings."""
    table = _table(f"{type(found.law).__name__} friction of {found.sweep.name}")
    for head in ("parameter", "value", "unit", "std. error"):
        table.add_column(
            head, justify="right" if head in ("value", "std. error") else "left", no_wrap=True
        )
    table.add_column(f"{100 * found.level:g} % interval")
    for row, estimate in zip(found_rows(found), (*found.estimates, *found.fixed), strict=True):
        doubtful = estimate.knowledge in (Knowledge.UNKNOWN, Knowledge.AT_BOUND, Knowledge.WEAK)
        table.add_row(*(Text(cell, style="yellow" if doubtful else "") for cell in row))
    return Group(
        table,
        Text(),
        *map(Text, words.formulas(found)),
        Text(words.quality(found)),
        *map(warning, found.warnings),
    )


def comparison_table(comparison: Comparison) -> Group:
    """Each law with its criteria; the one chosen stands out."""
    force = comparison.best.found.shown_force
    table = _table(f"Laws for {comparison.sweep.name}, {words.way(comparison.sweep)}")
    table.add_column("law", no_wrap=True)
    for head in ("numbers", f"rms\n{force.name}", f"left out\n{force.name}", "AICc", "BIC"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("")
    for row in comparison.rows:
        fit, best = row.found, row is comparison.best
        cells = (
            f"{fit.rms_force / force.si:.3g}",
            f"{row.left_out / force.si:.3g}",
            f"{fit.aicc:.1f}",
            f"{fit.bic:.1f}",
        )
        remark = "chosen" if best else row.remark
        table.add_row(
            *(
                Text(cell, style="bold" if best else "")
                for cell in (row.name, str(len(fit.estimates)), *cells, remark)
            )
        )
    return Group(table, Text(comparison.reason))


def warning(sentence: str) -> Text:
    """A sentence that belongs next to the numbers."""
    return Text.assemble(("! ", "bold yellow"), sentence)


def _table(title: str) -> Table:
    return Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
        header_style="dim",
        pad_edge=False,
    )
