"""Build and write the HTML page of a report, one self-contained file."""

import base64
import csv
import dataclasses
import gzip
import io
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

import frictax
from frictax.analysis.derived.derived import common_estimates
from frictax.analysis.replay.free_run import Motion
from frictax.files.replacing import check_target, write_whole
from frictax.fitting import Estimate, FitResult
from frictax.measurements import Record

from .cards import template
from .plotly_json import as_json, digits_of, script as plotly_script
from .style import reproducible_svg

GENERATOR = "frictax"


class PageOptions(TypedDict, total=False):
    command: str | None
    overwrite: bool


@dataclasses.dataclass(frozen=True)
class Rows:
    """A table of a section.

    - `looks`: the CSS class of each column: "n" for numbers, "keep" for text without line breaks,
      "soft" for remarks in grey, "" for other text.
    - `kind`: CSS class of the table: "cards" (rows become cards on a phone), "parameters", "close"
      or "". `named`: True if the first cell of each row is its heading; `chosen`: first cell of the
      row to highlight.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    looks: Sequence[str]
    kind: str = ""
    named: bool = False
    chosen: str | None = None
    caption: str = ""


@dataclasses.dataclass(frozen=True)
class Section:
    """A section of a page: its anchor, its title, and blocks, which are pairs (kind, content).

    | kind | content |
    |---|---|
    | "text", "lead", "warning", "formula", "heading", "code" | text |
    | "terms", "list" | pairs of a word and a text; texts |
    | "table", "correlation" | a `Rows`; a matrix by `correlation_cells` |
    | "plot", "plots" | name and caption of an interactive plot; a list of these pairs |
    | "picture" | result of `pictures`, alternative text, caption |
    | "pictures" | list of: image, alternative text, caption, whether the image is pale |
    | "schematic", "sliders", "files" | an image; a `Sliders`; the files to download |
    """

    id: str
    title: str
    blocks: Sequence[tuple[str, Any]]


def page(
    title: str,
    lead: str,
    sections: Iterable[Section],
    *,
    notes: Iterable[str],
    plots: Mapping[str, Any],
    moving: Any = None,
    footer: str = "",
) -> str:
    """Return the HTML text of a page.

    `notes`: paragraphs below `lead`; `plots`: name -> interactive figure; `moving`: the `Sliders`.
    """
    script = moving.script.encode() if moving is not None else b""
    return template("report.html.j2").render(
        generator=f"{GENERATOR} {frictax.__version__}",
        title=title,
        lead=lead,
        notes=[notes] if isinstance(notes, str) else list(notes),
        sections=list(sections),
        library=plotly_script() if plots else "",
        simulation=base64.b64encode(gzip.compress(script, 9, mtime=0)).decode() if script else "",
        plots=as_json(plots) if plots else "",
        moving="null" if moving is None else as_json(moving.data),
        footer=footer,
    )


def parameters_section(
    found: FitResult,
    rows: Sequence[Sequence[str]],
    last: str,
    quality: str,
    derived: Sequence[Sequence[str]],
    *,
    formulas: Iterable[str] = (),
    notices: Sequence[str] = (),
) -> Section:
    """Return the section on the estimates; `last`: heading of the last column of `rows`."""
    head = ["value", "unit", "std. error", f"{100 * found.level:g} % interval"]
    looks = ["keep", "n", "keep", "n", "keep", "soft"]
    blocks: list[tuple[str, Any]] = [("formula", line) for line in formulas]
    table = Rows(["parameter", *head, last], rows, looks, "parameters", named=True)
    blocks += [("table", table), ("text", quality)]
    if derived:
        blocks.append(("heading", "Derived quantities"))
        table = Rows(["quantity", *head], derived, looks[:-1], "parameters", named=True)
        blocks.append(("table", table))
    if notices:
        blocks += [("heading", "Notices"), *(("warning", text) for text in notices)]
    return Section("parameters", "Estimated parameters", blocks)


def correlation_section(found: FitResult) -> list[Section]:
    """Return a list with the section on correlations of estimates, or [] for one estimate."""
    if len(found.correlation) < 2:
        return []
    lead = "Near 1 or −1, the data identify a combination of two parameters better than each one."
    cells = correlation_cells(found.correlation, found.names)
    blocks = [("lead", lead), ("correlation", cells)]
    return [Section("correlation", "Correlation of the estimates", blocks)]


def reproduction_section(
    command: str | None,
    made_with: str,
    *,
    python: str = "",
    sources: Mapping[str, str] | None = None,
) -> Section:
    """Return the section on how to reproduce the page; `sources`: file -> SHA-256."""
    blocks: list[tuple[str, Any]] = []
    if command:
        blocks += [("text", "On the command line:")] if python else []
        blocks.append(("code", command))
    if python:
        blocks += [("text", "In Python:"), ("code", python)]
    blocks += [("text", made_with)] if made_with else []
    if sources:
        sums = [(name, Markup("<code>{}</code>").format(one)) for name, one in sources.items()]
        blocks.append(("table", Rows(["file", "SHA-256"], sums, ["keep", ""])))
    return Section("again", "Reproduce this page", blocks)


def derived_rows(
    found: FitResult, derived: Iterable[Estimate] | None, by: Any = None
) -> list[tuple[str, ...]]:
    """Return table rows of derived quantities, by default those of `common_estimates(found)`."""
    return [e.cells for e in (common_estimates(found, by) if derived is None else derived)]


def write_page(path: str | Path, text: Callable[[], str], *, overwrite: bool) -> Path:
    """Check that `path` can be written; only then compute the page by `text()` and write it."""
    target = check_report(path, overwrite=overwrite)
    write_whole(target, text(), replace=overwrite)
    return Path(path)


def check_report(path: str | Path, *, overwrite: bool = True) -> Path:
    """Return the path for the report, or raise an `OSError` if it cannot be written. Call this
    function before a long computation.
    """
    target = check_target(path, "the report")
    if target.exists():
        if not overwrite:
            raise FileExistsError(
                f"{path} exists. Let it be overwritten, or name another file for the report."
            )
        with open(target, encoding="utf-8", errors="replace") as file:
            ours = f'name="generator" content="{GENERATOR} ' in file.read(2000)
        if not ours:
            raise FileExistsError(
                f"{path} exists and is not a report of frictax. Name another file for the report,"
                " or move this one away."
            )
    return target


def downloads(found: FitResult, result: str, motions: Mapping[str, Motion]) -> list[dict[str, str]]:
    """Return the files to download from a page, in SI units: the result as JSON, and a CSV with
    measurement and prediction for each record or sweep.

    Long files are compressed. A CSV that is too large is not in the page; the text next to the link
    `result.json` names its record. `motions`: label of a record -> its free run.
    """
    out = [_file("result.json", "application/json", result, "the complete fit, SI units")]
    room, absent = 300_000, []  # `room` [bytes]: allowed size of all CSV files together
    for label, record in found.records.items():
        if isinstance(record, Record):
            if label not in motions:
                continue
            unit, simulated = record.units, motions[label].readings
            columns: dict[str, Any] = {"time [s]": record.t}
            columns |= {f"{name} [{unit[name].si_name}]": x for name, x in record.inputs.items()}
            for name, x in record.outputs.items():
                columns[f"{name} measured [{unit[name].si_name}]"] = x
                if name in simulated:
                    columns[f"{name} simulated [{unit[name].si_name}]"] = simulated[name]
            says = "measured, and the free run"
        else:
            columns = {
                f"velocity [{record.velocity_unit.si_name}]": record.velocity,
                f"measured [{record.force_unit.si_name}]": record.force,
                f"fitted [{record.force_unit.si_name}]": found.predicted(label)[:, 0],
            }
            says = "measured and fitted"
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        # Late times, and small motions at a large angle, need more than nine digits.
        digits = [digits_of(x, 9) for x in columns.values()]
        for row in zip(*columns.values(), strict=True):
            cells = zip(row, digits, strict=True)
            writer.writerow([f"{x:.{n}g}" if np.isfinite(x) else "" for x, n in cells])
        name = re.sub(r"[^\w.-]+", "_", label, flags=re.ASCII).strip("._") or "data"
        if any(one["name"].startswith(f"{name}.") for one in out):  # of another record
            name = f"{name}_{len(out)}"
        made = _file(f"{name}.csv", "text/csv", text.getvalue(), f"{label}: {says}, SI units")
        if len(made["address"]) > room:
            absent.append(label)
        else:
            room -= len(made["address"])
            out.append(made)
    if absent:
        out[0]["says"] += f". Too long for this page: {', '.join(absent)}"
    return out


def _file(name: str, kind: str, text: str, says: str) -> dict[str, str]:
    content = text.encode("utf-8", "replace")
    if len(content) > 120_000:  # [bytes] A longer file is compressed.
        name, kind = f"{name}.gz", "application/gzip"
        content = gzip.compress(content, 9, mtime=0)
    data = base64.b64encode(content).decode("ascii")
    return {"name": name, "address": f"data:{kind};base64,{data}", "says": says}


def correlation_cells(c: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return a correlation matrix as table rows: name, and cells with text and colour."""

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
    """Return a figure for a screen ("wide") and one for a phone ("narrow") as data URLs of SVG
    pictures. If the SVG is longer than 1 MB, the URL contains a PNG picture.
    """
    out = {}
    for name, figure in {"wide": wide, **({} if narrow is None else {"narrow": narrow})}.items():
        # Without a date and with reproducible element names, equal results give equal files.
        with reproducible_svg(), warnings.catch_warnings():
            # Missing characters are shown as boxes, so a warning is not needed.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            engine = figure.get_layout_engine()
            # Compute the layout before `savefig`, so that `savefig` draws the figure only once.
            if engine is not None:
                engine.execute(figure)
                figure.set_layout_engine("none")
            kind, data = "svg+xml", io.BytesIO()
            figure.savefig(data, format="svg", metadata={"Date": None})
            if data.tell() > 1_000_000:
                kind, data = "png", io.BytesIO()
                figure.savefig(data, format="png", dpi=200)
        out[name] = f"data:image/{kind};base64,{base64.b64encode(data.getvalue()).decode('ascii')}"
    return {"narrow": out["wide"], **out}
