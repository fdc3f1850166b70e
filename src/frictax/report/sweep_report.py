"""The report of a fitted sweep: one self-contained HTML file."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from frictax.analysis import Comparison
from frictax.contacts import Mode
from frictax.fitting import Estimate, FitResult
from frictax.fitting.result.text import found_rows, shown_estimates
from frictax.trajectory import Trajectory

from . import sweep_text
from .json_text import fit_json, versions_in_words
from .page import (
    Rows,
    Section,
    correlation_section,
    derived_rows,
    page,
    parameters_section,
    pictures,
    reproduction_section,
    write_page,
)
from .sliders import sliders
from .style import MODES
from .sweep_figure import bars_in_words, comparisons, draw_sweep, noise_of_rows
from .sweep_text import MOST_ROWS, python_text
from .tables import downloads
from .trajectory_figure import draw_trajectory

_MOST_EVENTS = 12  # mode changes in the table of a simulation
_WIDE, _NARROW = 7.5, 4.2  # [inch] width of a picture for a page, for a phone


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

    A former report of frictax is replaced in one step once the new report is complete. Any other
    file is kept and causes an error. Sliders move the fitted law as in `write_machine_report`.

    **Arguments:**

    - `comparison`: the result of `compare`, or several of these (one for each direction).
    - `simulation`: a run with this friction, or a figure. A run is drawn with its modes, in rad and
      N.m if the sweep is of a rotation.
    - `title`; `notes`: paragraphs below it; `command`: the command line that makes the report
      again.
    - `overwrite`: whether a former report may be replaced.

    **Returns:** the path of the report.

    **Raises:** `OSError` (`FileNotFoundError`, `FileExistsError`, ...) with one sentence if the
    report cannot be written.
    """

    def text() -> str:
        return sweep_report_text(found, comparison, simulation, title, notes, command=command)

    return write_page(path, text, overwrite=overwrite)


def sweep_report_text(
    found: FitResult,
    comparison: Comparison | Sequence[Comparison] | None = None,
    simulation: Trajectory | Figure | None = None,
    title: str | None = None,
    notes: Iterable[str] = (),
    *,
    command: str | None = None,
    derived: Iterable[Estimate] | None = None,
) -> str:
    """Return the page that `write_sweep_report` writes."""
    made = comparisons(comparison)
    moving = sliders(found)
    parameters = [
        (*row, sweep_text.meaning_of(e.path))
        for row, e in zip(found_rows(found), shown_estimates(found), strict=True)
    ]
    alt = (
        "Measured points with the fitted law, its confidence band and the residuals. Bars:"
        f" {bars_in_words(found)}."
    )
    measured = sweep_text.describe_sweep(found.sweep, found.shown_force)
    drawn = pictures(*(draw_sweep(found, made, width=w) for w in (_WIDE, _NARROW)))
    sections = [
        Section("measured", "Measurements", [("terms", measured)]),
        Section(
            "picture", "Measured and fitted", [("picture", (drawn, alt, _caption(found, made)))]
        ),
        parameters_section(
            found,
            parameters,
            "meaning",
            sweep_text.describe_quality(found),
            derived_rows(found, derived),
            formulas=sweep_text.formulas(found),
            notices=found.warnings,
        ),
        Section("fit", "Measured and fitted, with sliders", moving.blocks()),
        *_comparisons(made),
        *([] if simulation is None else [_simulation(simulation, found)]),
        *correlation_section(found),
        Section("modelica", "Modelica", [("code", found.to_modelica())]),
        _rows(found),
        Section("downloads", "Downloads", [("files", downloads(found, fit_json(found), {}))]),
        reproduction_section(
            command, f"Made with {versions_in_words(str.capitalize)}.", python=python_text(found)
        ),
    ]
    return page(
        title or f"Friction of {found.sweep.name}",
        _lead(found),
        sections,
        notes=notes,
        plots=moving.figures,
        moving=moving.data,
        footer="".join(f"{sentence} " for sentence in found.intervals_in_words()),
    )


def _lead(found: FitResult) -> str:
    ways = "each direction has a law of its own" if len(sweep_text.formulas(found)) > 1 else ""
    kind = type(found.law).__name__
    text = f"{kind} friction from {found.n} measured rows" + (f"; {ways}" if ways else "")
    unknown = found.identifiability.unknown
    return text + (f". Not identifiable: {', '.join(unknown)}." if unknown else ".")


def _caption(found: FitResult, made: list[Comparison]) -> str:
    what = "torque" if found.sweep.rotational else "force"
    text = f"Band: where the curve lies with {100 * found.level:g} % confidence, point by point. "
    if np.any(found.sweep.direction < 0):
        text += f"The {what} is drawn against the motion, times −1 for v < 0. "
    text += f"Below: measured minus fitted {what}."
    return text + (" Thin lines: the other laws that were compared." if made else "")


def _comparisons(made: list[Comparison]) -> list[Section]:
    blocks: list[tuple[str, Any]] = []
    for one in made:
        head, rows = one.as_table(" [{}]", 3, "chosen", unknown="")
        caption = (
            sweep_text.directions_of(one.sweep)
            if len(made) > 1 or not one.sweep.both_directions
            else ""
        )
        looks = ["keep", "n", "n", "n", "n", "n", ""]
        table = Rows(head, rows, looks, "cards", chosen=one.best.name, caption=caption)
        blocks += [("table", table), ("text", one.reason)]
    note = (
        "rms: root mean square of the residuals; left out: rms error of each row, predicted by a"
        " fit to the others; AICc and BIC: smaller is better, and differences below 2 are not"
        " significant."
    )
    return [Section("comparison", "Comparison of laws", [*blocks, ("lead", note)])] if made else []


def _simulation(simulation: Trajectory | Figure, found: FitResult) -> Section:
    title = "A motion with this friction"
    if isinstance(simulation, Figure):
        says = "A simulated motion."
        return Section("simulation", title, [("picture", (pictures(simulation), says, says))])
    turning = found.sweep.rotational
    drawn = [draw_trajectory(simulation, rotational=turning, width=w) for w in (_WIDE, _NARROW)]
    events, count = simulation.events, int(simulation.events.count)
    rows = [
        (
            f"{float(events.time[i]):.6f}",
            events.names[int(events.part[i])],
            *(MODES[Mode(int(m[i]))][0] for m in (events.mode_before, events.mode_after)),
        )
        for i in range(min(count, _MOST_EVENTS))
    ]
    alt = (
        "A simulated motion: positions, velocities, friction, and whether the contact sticks or"
        " slides."
    )
    caption = (
        f"Simulated from {float(simulation.ts[0]):g} to {float(simulation.ts[-1]):g} s with {count}"
        " mode changes, each located in time. Dashed: the force ±f0_max that breaks the contact"
        " away; thin: the drive."
    )
    blocks: list[tuple[str, Any]] = [("picture", (pictures(*drawn), alt, caption))]
    if rows:
        looks = ["n", "keep", "keep", "keep"]
        blocks.append(("table", Rows(["time [s]", "part", "from", "to"], rows, looks)))
    if count > len(rows):
        blocks.append(("lead", f"The first {len(rows)} of {count} mode changes."))
    return Section("simulation", title, blocks)


def _rows(found: FitResult) -> Section:
    sweep, force = found.sweep, found.shown_force
    if found.n > MOST_ROWS:
        text = f"{sweep.name} has {found.n} rows, too many to print here."
        return Section("rows", "Rows of the sweep", [("text", text)])
    # The decimals show the noise to two digits.
    size = float(np.median(noise_of_rows(found))) / force.si
    known = np.isfinite(size) and size > 0
    digits = int(np.clip(1 - np.floor(np.log10(size)), 0, 8)) if known else 4
    rows = [
        (
            f"{sweep.velocity[i] / sweep.velocity_unit.si:.4g}",
            f"{sweep.force[i] / force.si:.{digits}f}",
            f"{(sweep.force[i] - found.residuals[i]) / force.si:.{digits}f}",
            f"{found.residuals[i] / force.si:+.{digits}f}",
            "motion began" if sweep.breakaway[i] else "",
        )
        for i in range(found.n)
    ]
    forces = [f"{name} [{force.name}]" for name in ("measured", "fitted", "residual")]
    head = [f"velocity [{sweep.velocity_unit.name}]", *forces, ""]
    table = Rows(head, rows, ["n", "n", "n", "n", ""], "close")
    return Section("rows", "Rows of the sweep", [("table", table)])
