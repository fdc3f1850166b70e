"""The report of a fitted sweep: one HTML file that needs nothing else."""

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

from . import words
from .interactive.downloads import downloads
from .interactive.plotly_json import as_json, script
from .interactive.slider_plots import sliders
from .machine_json import fit_json
from .page import derived_rows, page, pictures, write_page
from .python_text import MOST_ROWS, python_text
from .style import MODES
from .sweep_figure import bars_in_words, comparisons, draw_sweep, noise_of_rows
from .trajectory_figure import draw_trajectory
from .versions import in_words

_SECTIONS = (
    "measured picture parameters fit comparison simulation correlation modelica rows downloads"
    " again".split()
)
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
    any other file is left alone. Sliders move the fitted law as in `write_machine_report`.

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
    """What `write_sweep_report` writes."""
    made = comparisons(comparison)
    has = {
        "comparison": made,
        "simulation": simulation is not None,
        "correlation": len(found.x) > 1,
    }
    moving = sliders(found)
    return page(
        found,
        [name for name in _SECTIONS if has.get(name, True)],
        title=title or f"Friction of {found.sweep.name}",
        lead=_lead(found),
        notes=notes,
        measured=words.measured(found.sweep, found.shown_force),
        formulas=words.formulas(found),
        parameters=[
            (*row, words.meaning(e.path))
            for row, e in zip(found_rows(found), shown_estimates(found), strict=True)
        ],
        last="meaning",
        derived=derived_rows(found, derived),
        quality=words.quality(found),
        to_mind=found.warnings,
        sweep=pictures(*(draw_sweep(found, made, width=w) for w in (_WIDE, _NARROW))),
        sweep_alt=(
            "Measured points with the fitted law, its confidence band and the residuals. Bars:"
            f" {bars_in_words(found)}."
        ),
        sweep_caption=_caption(found, made),
        comparisons=[_comparison(one, len(made) > 1) for one in made],
        simulation=_simulation(simulation, found),
        modelica=found.to_modelica(),
        whole_model=False,
        rows_head=[
            f"velocity [{found.sweep.velocity_unit.name}]",
            *(f"{of} [{found.shown_force.name}]" for of in ("measured", "fitted", "residual")),
            "",
        ],
        rows=_rows(found),
        sweep_name=found.sweep.name,
        n=found.n,
        command=command,
        python=python_text(found),
        again=f"Made with {in_words(str.capitalize)}.",
        sources=None,
        fit=moving,
        moving=as_json(moving.data),
        downloads=downloads(found, fit_json(found), {}),
        library=script(),
        plots=as_json(moving.figures),
        footer="".join(f"{sentence} " for sentence in found.intervals_in_words()),
    )


def _lead(found: FitResult) -> str:
    ways = "each direction has a law of its own" if len(words.formulas(found)) > 1 else ""
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


def _comparison(one: Comparison, several: bool) -> dict[str, Any]:
    head, rows = one.as_table(" [{}]", 3, "chosen", unknown="")
    way = words.way(one.sweep)
    caption = way if several or not one.sweep.both_directions else ""
    named = {"chosen": one.best.name, "reason": one.reason}
    return {"caption": caption, "head": head, "rows": rows, **named}


def _simulation(simulation: Any, found: FitResult) -> dict[str, Any] | None:
    if simulation is None:
        return None
    if isinstance(simulation, Figure):
        says = dict.fromkeys(("alt", "caption"), "A simulated motion.")
        return {"pictures": pictures(simulation), **says, "events": [], "more": ""}
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


def _rows(found: FitResult) -> list[tuple[str, ...]]:
    sweep, force = found.sweep, found.shown_force
    if found.n > MOST_ROWS:
        return []
    # decimals that show the noise to two digits
    size = float(np.median(noise_of_rows(found))) / force.si
    known = np.isfinite(size) and size > 0
    digits = int(np.clip(1 - np.floor(np.log10(size)), 0, 8)) if known else 4
    return [
        (
            f"{sweep.velocity[i] / sweep.velocity_unit.si:.4g}",
            f"{sweep.force[i] / force.si:.{digits}f}",
            f"{(sweep.force[i] - found.residuals[i]) / force.si:.{digits}f}",
            f"{found.residuals[i] / force.si:+.{digits}f}",
            "motion began" if sweep.breakaway[i] else "",
        )
        for i in range(found.n)
    ]
