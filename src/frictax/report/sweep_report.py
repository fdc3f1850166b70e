"""Write the report of a fitted sweep as one self-contained HTML file."""

from collections.abc import Callable, Iterable, Sequence
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
    downloads,
    page,
    parameters_section,
    pictures,
    reproduction_section,
    write_page,
)
from .sliders import sliders
from .style import MODES
from .sweep_figure import bars_in_words, comparisons, draw_sweep, noise_of_rows
from .trajectory_figure import draw_trajectory


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

    An existing report of frictax is replaced only when the new report is complete. Any other
    existing file is kept, and an exception is raised. Sliders change the fitted law linearly, as in
    a page of `write_machine_report` that cannot simulate.

    **Arguments:**

    - `comparison`: a result of `compare`, or a list of such results (one for each direction).
    - `simulation`: a simulation with the fitted friction, or a figure. A simulation is drawn with
      its modes. If the sweep measures a rotation, units are rad and N.m.
    - `title`; `notes`: paragraphs below the title; `command`: command that reproduces the report.
    - `overwrite`: whether an existing report may be replaced.

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
    """Return the HTML text of the page that `write_sweep_report` writes."""
    made, moving = comparisons(comparison), sliders(found)
    formulas = sweep_text.formulas(found)
    parameters = [
        (*row, sweep_text.meaning_of(e.path))
        for row, e in zip(found_rows(found), shown_estimates(found), strict=True)
    ]
    alt = (
        "Measured points with the fitted law, its confidence band and the residuals. Bars:"
        f" {bars_in_words(found)}."
    )
    what = "torque" if found.sweep.rotational else "force"
    caption = f"Band: pointwise {100 * found.level:g} % confidence interval of the curve. "
    if np.any(found.sweep.direction < 0):
        caption += f"For v < 0 the {what} is multiplied by −1. "
    caption += f"Below: measured minus fitted {what}."
    caption += " Thin lines: the other laws that were compared." if made else ""
    drawn = _pictures(draw_sweep, found, made)
    laws: list[tuple[str, Any]] = []
    for one in made:
        head, rows = one.as_table(" [{}]", 3, "chosen", unknown="")
        several = len(made) > 1 or not one.sweep.both_directions
        says = sweep_text.directions_of(one.sweep) if several else ""
        looks = ["keep", "n", "n", "n", "n", "n", ""]
        table = Rows(head, rows, looks, "cards", chosen=one.best.name, caption=says)
        laws += [("table", table), ("text", one.reason)]
    # With autocorrelated errors, the prediction of a row also leaves out its neighbours.
    apart = " and its neighbours" if any(one.autocorrelation > 0.3 for one in made) else ""
    note = (
        "rms: root mean square of the residuals; left out: rms error of each row, predicted by a"
        f" fit without this row{apart}; AICc and BIC: smaller is better, and differences below 2"
        " are not significant."
    )
    sweep, force = found.sweep, found.shown_force
    # Print forces with so many decimals that two digits of the noise are visible.
    size = float(np.median(noise_of_rows(found))) / force.si
    digits = int(np.clip(1 - np.floor(np.log10(size)), 0, 8)) if 0 < size < np.inf else 4
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
    printed: tuple[str, Any] = ("table", Rows(head, rows, ["n", "n", "n", "n", ""], "close"))
    if found.n > sweep_text.MOST_ROWS:
        printed = ("text", f"{sweep.name} has {found.n} rows, too many to print here.")
    sections = [
        Section("measured", "Measurements", [("terms", sweep_text.describe_sweep(sweep, force))]),
        Section("picture", "Measured and fitted", [("picture", (drawn, alt, caption))]),
        parameters_section(
            found,
            parameters,
            "meaning",
            sweep_text.describe_quality(found),
            derived_rows(found, derived),
            formulas=formulas,
            notices=found.warnings,
        ),
        Section("fit", "Measured and fitted, with sliders", moving.blocks()),
        *([Section("comparison", "Comparison of laws", [*laws, ("lead", note)])] if made else []),
        *_simulation(simulation, found),
        *correlation_section(found),
        Section("modelica", "Modelica", [("code", found.to_modelica())]),
        Section("rows", "Rows of the sweep", [printed]),
        Section("downloads", "Downloads", [("files", downloads(found, fit_json(found), {}))]),
        reproduction_section(
            command,
            f"Made with {versions_in_words(str.capitalize)}.",
            python=sweep_text.python_text(found),
        ),
    ]
    lead = f"{type(found.law).__name__} friction from {found.n} measured rows"
    lead += "; each direction has a separate law" if len(formulas) > 1 else ""
    unknown = found.identifiability.unknown
    lead += f". Not identifiable: {', '.join(unknown)}." if unknown else "."
    return page(
        title or f"Friction of {found.sweep.name}",
        lead,
        sections,
        notes=notes,
        plots=moving.figures,
        moving=moving,
        footer="".join(f"{sentence} " for sentence in found.intervals_in_words()),
    )


def _pictures(draw: Callable[..., Figure], *given: Any, **how: Any) -> dict[str, str]:
    """Return the picture of `given` by `draw`, for a screen and for a phone."""
    wide, narrow = 7.5, 4.2  # [inch] widths of the picture
    return pictures(draw(*given, width=wide, **how), draw(*given, width=narrow, **how))


def _simulation(simulation: Trajectory | Figure | None, found: FitResult) -> list[Section]:
    if simulation is None:
        return []
    title = "Simulated motion with this friction"
    if isinstance(simulation, Figure):
        says = "A simulated motion."
        return [Section("motion", title, [("picture", (pictures(simulation), says, says))])]
    drawn = _pictures(draw_trajectory, simulation, rotational=found.sweep.rotational)
    events, count = simulation.events, int(simulation.events.count)
    rows = [
        (
            f"{float(events.time[i]):.6f}",
            events.names[int(events.part[i])],
            *(MODES[Mode(int(m[i]))][0] for m in (events.mode_before, events.mode_after)),
        )
        for i in range(min(count, 12))  # at most twelve mode changes in the table
    ]
    alt = (
        "A simulated motion: positions, velocities, friction, and whether the contact sticks or"
        " slides."
    )
    caption = (
        f"Simulated from {float(simulation.ts[0]):g} to {float(simulation.ts[-1]):g} s with"
        f" {count} mode changes, each located in time. Dashed: the breakaway force ±f0_max; thin:"
        " the drive."
    )
    blocks: list[tuple[str, Any]] = [("picture", (drawn, alt, caption))]
    if rows:
        looks = ["n", "keep", "keep", "keep"]
        blocks.append(("table", Rows(["time [s]", "part", "from", "to"], rows, looks)))
    if count > len(rows):
        blocks.append(("lead", f"The first {len(rows)} of {count} mode changes."))
    return [Section("motion", title, blocks)]
