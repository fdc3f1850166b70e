"""The report of a fitted sweep: one HTML file that needs nothing else."""

import base64
import io
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import frictax
from frictax.analysis import Comparison
from frictax.contacts import Mode
from frictax.fitting import FitResult
from frictax.fitting.result.text import found_rows
from frictax.measurements import units
from frictax.report import words
from frictax.report.files import check_target, write_whole
from frictax.report.python_text import MOST_ROWS, python_text
from frictax.report.style import MODES
from frictax.report.sweep_figure import bars_in_words, comparisons, draw_sweep
from frictax.report.trajectory_figure import draw_trajectory
from frictax.report.versions import versions
from frictax.trajectory import Trajectory

GENERATOR = "frictax"
_MARK = f'name="generator" content="{GENERATOR} '
_MOST_EVENTS = 12
_WIDE, _NARROW = 7.5, 4.2  # inch: for a page, for a phone


def write_sweep_report(
    found: FitResult,
    path: str | Path,
    comparison: Comparison | Sequence[Comparison] | None = None,
    simulation: Trajectory | Figure | None = None,
    title: str | None = None,
    notes: Iterable[str] = (),
    *,
    command: str | None = None,
    overwrite: bool = True,
) -> Path:
    """Write one self-contained HTML file on a fitted sweep: for the screen, a phone and paper.

    A report that frictax wrote there before is replaced, in one step once the new one is complete;
    any other file is left alone.

    **Arguments:**

    - `comparison`: what `compare` returned, or several of these (one a direction).
    - `simulation`: a run with this friction, drawn with its modes; in rad and N.m where the sweep
      is of a rotation. Or a figure of it.
    - `title`; `notes`: paragraphs below it; `command`: the command line that makes the report
      again.
    - `overwrite`: whether a former report may be replaced.

    **Returns:** where the report is.

    **Raises:** `OSError` (`FileNotFoundError`, `FileExistsError`, ...) with one sentence where it
    cannot be written.
    """
    target = check_report(path, overwrite=overwrite)
    text = sweep_report_text(found, comparison, simulation, title, notes, command=command)
    write_whole(target, text, replace=overwrite)
    return Path(path)


def sweep_report_text(
    found: FitResult,
    comparison: Comparison | Sequence[Comparison] | None = None,
    simulation: Trajectory | Figure | None = None,
    title: str | None = None,
    notes: Iterable[str] = (),
    *,
    command: str | None = None,
) -> str:
    """What `write_sweep_report` writes."""
    made = comparisons(comparison)
    return _template().render(
        generator=f"{GENERATOR} {frictax.__version__}",
        title=title or f"Friction of {found.sweep.name}",
        lead=_lead(found),
        notes=[notes] if isinstance(notes, str) else list(notes),
        measured=words.measured(found.sweep, found.shown_force),
        formulas=words.formulas(found),
        level=f"{100 * found.level:g} %",
        parameters=_parameters(found),
        quality=words.quality(found),
        warnings=found.warnings,
        sweep=pictures(*(draw_sweep(found, made, width=w) for w in (_WIDE, _NARROW))),
        sweep_alt=(
            "Measured points with the fitted law, its confidence band and the residuals. Bars:"
            f" {bars_in_words(found)}."
        ),
        sweep_caption=_caption(found, made),
        comparisons=[_comparison(one, len(made) > 1) for one in made],
        simulation=_simulation(simulation, found),
        correlation=correlation_cells(found.correlation, found.names),
        modelica=found.to_modelica(),
        rows=_rows(found),
        units={"velocity": found.sweep.velocity_unit.name, "force": found.shown_force.name},
        sweep_name=found.sweep.name,
        n=found.n,
        command=command,
        python=python_text(found),
        versions=", ".join(
            f"{name.capitalize() if name == 'python' else name} {number}"
            for name, number in versions().items()
        ),
        quantile=f"{found.quantile:.3g}",
    )


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


def _template() -> Any:
    import jinja2

    loader = jinja2.PackageLoader("frictax.report")
    return jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined
    ).get_template("sweep.html.j2")


def _lead(found: FitResult) -> str:
    ways = "each direction has a law of its own" if len(words.formulas(found)) > 1 else ""
    kind = type(found.law).__name__
    text = f"{kind} friction from {found.n} measured rows" + (f"; {ways}" if ways else "")
    unknown = found.identifiability.unknown
    return text + (f". Not identifiable: {', '.join(unknown)}." if unknown else ".")


def _parameters(found: FitResult) -> list[dict[str, str]]:
    keys = ("name", "value", "unit", "error", "interval")
    rows = zip(found_rows(found), (*found.estimates, *found.fixed), strict=True)
    return [
        dict(zip(keys, row, strict=True)) | {"meaning": words.meaning(e.path)} for row, e in rows
    ]


def _caption(found: FitResult, made: list[Comparison]) -> str:
    what = "torque" if found.sweep.rotational else "force"
    text = f"Band: where the curve lies with {100 * found.level:g} % confidence, point by point. "
    if np.any(found.sweep.direction < 0):
        text += f"The {what} is drawn against the motion, times −1 for v < 0. "
    return (
        text
        + f"Below: measured minus fitted {what}."
        + (" Thin lines: the other laws that were compared." if made else "")
    )


def _comparison(one: Comparison, several: bool) -> dict[str, Any]:
    force = one.best.found.shown_force
    rows = [
        {
            "name": row.name,
            "numbers": len(row.found.estimates),
            "rms": f"{row.found.rms_force / force.si:.3g}",
            "left_out": f"{row.left_out / force.si:.3g}" if np.isfinite(row.left_out) else "",
            "aicc": f"{row.found.aicc:.1f}",
            "bic": f"{row.found.bic:.1f}",
            "chosen": row is one.best,
            "remark": "chosen" if row is one.best else row.remark,
        }
        for row in one.rows
    ]
    way = words.way(one.sweep)
    return {
        "caption": way if several or not one.sweep.both_directions else "",
        "unit": force.name,
        "rows": rows,
        "reason": one.reason,
    }


def _simulation(simulation: Any, found: FitResult) -> dict[str, Any] | None:
    if simulation is None:
        return None
    if isinstance(simulation, Figure):
        return {
            "pictures": pictures(simulation),
            "alt": "A simulated motion.",
            "caption": "A simulated motion.",
            "events": [],
            "more": "",
        }
    turning = found.sweep.rotational
    drawn = [draw_trajectory(simulation, rotational=turning, width=w) for w in (_WIDE, _NARROW)]
    events, count = simulation.events, int(simulation.events.count)
    rows = [
        {
            "time": f"{float(events.time[i]):.6f}",
            "part": events.names[int(events.part[i])],
            "before": MODES[Mode(int(events.mode_before[i]))][0],
            "after": MODES[Mode(int(events.mode_after[i]))][0],
        }
        for i in range(min(count, _MOST_EVENTS))
    ]
    caption = (
        f"Simulated from {float(simulation.ts[0]):g} to {float(simulation.ts[-1]):g} s with {count}"
        " mode changes, each located in time. Dashed: the force ±f0_max that breaks the contact"
        " away; thin: the drive."
    )
    return {
        "pictures": pictures(*drawn),
        "alt": (
            "A simulated motion: positions, velocities, friction, and whether the contact sticks or"
            " slides."
        ),
        "caption": caption,
        "events": rows,
        "more": f"The first {len(rows)} of {count} mode changes." if count > len(rows) else "",
    }


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


def _rows(found: FitResult) -> list[dict[str, str]]:
    sweep, force = found.sweep, found.shown_force
    if found.n > MOST_ROWS:
        return []
    digits = _digits(
        (
            found.noise_scale
            if sweep.sigma is None
            else found.noise_scale * float(np.median(sweep.sigma))
        ),
        force,
    )
    return [
        {
            "velocity": f"{sweep.velocity[i] / sweep.velocity_unit.si:.4g}",
            "force": f"{sweep.force[i] / force.si:.{digits}f}",
            "fitted": f"{(sweep.force[i] - found.residuals[i]) / force.si:.{digits}f}",
            "residual": f"{found.residuals[i] / force.si:+.{digits}f}",
            "remark": "motion began" if sweep.breakaway[i] else "",
        }
        for i in range(found.n)
    ]


def _digits(noise: float, force: units.Unit) -> int:
    """Decimals that show the noise to two digits."""
    size = noise / force.si
    return int(np.clip(1 - np.floor(np.log10(size)), 0, 8)) if np.isfinite(size) and size > 0 else 4


def pictures(wide: Figure, narrow: Figure | None = None) -> dict[str, str]:
    """A figure for a page, and one for a phone, as addresses of data."""
    first = _as_address(wide)
    return {"wide": first, "narrow": first if narrow is None else _as_address(narrow)}


def _as_address(figure: Figure) -> str:
    """The picture itself as a data address: SVG, or PNG where curves have too many
    points for that.
    """
    # The same result gives the same file: no date, and names inside the SVG that do not change.
    with (
        matplotlib.rc_context({"svg.hashsalt": GENERATOR, "svg.fonttype": "path"}),
        warnings.catch_warnings(),
    ):
        # a name in another script: shown as boxes
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        engine = figure.get_layout_engine()
        # laid out once, here: `savefig` would draw all of it once more for that
        if engine is not None:
            engine.execute(figure)
            figure.set_layout_engine("none")
        svg = io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None})
        if svg.tell() <= 1_000_000:
            return "data:image/svg+xml;base64," + base64.b64encode(svg.getvalue()).decode("ascii")
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=200)
    return "data:image/png;base64," + base64.b64encode(png.getvalue()).decode("ascii")
