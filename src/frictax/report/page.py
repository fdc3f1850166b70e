"""The page of a report: one HTML file that needs nothing else, whatever was fitted."""

import base64
import dataclasses
import io
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from matplotlib.figure import Figure

import frictax
from frictax.analysis.derived.derived import common_estimates
from frictax.files.replacing import check_target, write_whole
from frictax.fitting import Estimate, FitResult

from .style import pinned

GENERATOR = "frictax"
_MARK = f'name="generator" content="{GENERATOR} '
_UNLESS_GIVEN = {
    "fit": None,
    "machine": None,
    "derived": [],
    "downloads": [],
    "moving": "null",
    "extra": {},
    "motions": [],
    "python": "",
    "again": "",
    "sources": None,
    "footer": "",
}


@dataclasses.dataclass(frozen=True)
class Section:
    """A section that no fit has: its title and what stands below, in order: `kind` and content.

    Kinds: "lead", "warning" and "heading" (text); "plots" (names and captions); "table" (a `Rows`);
    "correlation" (`correlation_cells`).
    """

    title: str
    blocks: Sequence[tuple[str, Any]]


@dataclasses.dataclass(frozen=True)
class Rows:
    """A table of a section: `looks` is the class of each column, "n" for numbers, "keep" for what
    is not broken; `kind` as of the page's tables; with `named` the first cell heads its row.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    looks: Sequence[str]
    kind: str = ""
    named: bool = False


def page(found: Any, sections: Iterable[str], *, notes: Iterable[str], **content: Any) -> str:
    """The text of a page with these sections; what each of them shows is in `content`.

    `found`: the fit, or None on a page without one; `extra` in `content`: `Section` by name.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("frictax.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("report.html.j2").render(
        generator=f"{GENERATOR} {frictax.__version__}",
        sections=list(sections),
        notes=[notes] if isinstance(notes, str) else list(notes),
        level="" if found is None else f"{100 * found.level:g} %",
        correlation=[] if found is None else correlation_cells(found.correlation, found.names),
        **(_UNLESS_GIVEN | content),
    )


def derived_rows(
    found: FitResult, derived: Iterable[Estimate] | None, by: Any = None
) -> list[tuple[str, ...]]:
    """The rows of what follows from the numbers: of common quantities where nothing is given."""
    return [e.cells for e in (common_estimates(found, by) if derived is None else derived)]


def write_page(path: str | Path, text: Callable[[], str], *, overwrite: bool) -> Path:
    """Write what `text` returns, which is asked for once it is known that it can be written."""
    target = check_report(path, overwrite=overwrite)
    write_whole(target, text(), replace=overwrite)
    return Path(path)


def check_report(path: str | Path, *, overwrite: bool = True) -> Path:
    """Where the report will be written, or an `OSError` in one sentence: for a check before the
    work.
    """
    target = check_target(path, "the report")
    if target.exists():
        if not overwrite:
            raise FileExistsError(
                f"{path} exists. Let it be overwritten, or name another file for the report."
            )
        with open(target, encoding="utf-8", errors="replace") as file:
            ours = _MARK in file.read(2000)
        if not ours:
            raise FileExistsError(
                f"{path} exists and is not a report of frictax. Name another file for the report,"
                " or move this one away."
            )
    return target


def correlation_cells(c: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """A correlation matrix as rows of coloured cells."""
    if len(c) < 2:
        return []

    def cell(r: float, own: bool) -> dict[str, str]:
        if own or not np.isfinite(r):
            return {"text": "1" if own else "", "colour": "transparent"}
        strength = round(0.45 * min(abs(r), 1.0) ** 2, 3)
        text = "0" if abs(r) < 0.005 else f"{r:+.2f}".replace("-", "−")
        return {"text": text, "colour": f"rgba({'0,114,178' if r > 0 else '213,94,0'},{strength})"}

    return [
        {"name": name, "cells": [cell(float(c[i, j]), i == j) for j in range(len(c))]}
        for i, name in enumerate(names)
    ]


def pictures(wide: Figure, narrow: Figure | None = None) -> dict[str, str]:
    """A figure for a page, and one for a phone, as addresses of data."""
    first = _as_address(wide)
    return {"wide": first, "narrow": first if narrow is None else _as_address(narrow)}


def _as_address(figure: Figure) -> str:
    """The picture itself as a data address: SVG, or PNG where curves have too many
    points for that.
    """
    # The same result gives the same file: no date, and names inside the SVG that do not change.
    with pinned(), warnings.catch_warnings():
        # a name in another script: shown as boxes
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        engine = figure.get_layout_engine()
        # laid out once, here: `savefig` would draw all of it once more for that
        if engine is not None:
            engine.execute(figure)
            figure.set_layout_engine("none")
        kind, data = "svg+xml", io.BytesIO()
        figure.savefig(data, format="svg", metadata={"Date": None})
        if data.tell() > 1_000_000:
            kind, data = "png", io.BytesIO()
            figure.savefig(data, format="png", dpi=200)
    return f"data:image/{kind};base64,{base64.b64encode(data.getvalue()).decode('ascii')}"
