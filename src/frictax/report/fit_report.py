"""The report and the picture of a fit: to the records of a machine, or to a sweep."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from frictax.analysis import Comparison, Profile, StructureComparison, Uncertainty
from frictax.analysis.replay.free_run import FreeRunScore
from frictax.analysis.replay.validation import Validation
from frictax.fitting import FitResult
from frictax.fitting.options import refuse
from frictax.trajectory import Trajectory

from .fit_figure import draw_fit
from .machine_report import write_machine_report
from .sweep_figure import draw_sweep
from .sweep_report import write_sweep_report


def write_report(
    found: FitResult,
    path: str | Path,
    comparison: Comparison | Sequence[Comparison] | StructureComparison | None = None,
    *,
    title: str | None = None,
    notes: Iterable[str] = (),
    simulation: Trajectory | Figure | None = None,
    uncertainty: Uncertainty | None = None,
    profiles: Iterable[Profile] = (),
    scores: Iterable[FreeRunScore | Validation] = (),
    command: str | None = None,
    overwrite: bool = True,
) -> Path:
    """Write a self-contained HTML report: see `write_sweep_report`, which takes a `simulation`, and
    `write_machine_report`, which takes `uncertainty`, `profiles` and `scores`.
    """
    of_machine = {"uncertainty": uncertainty, "profiles": profiles, "scores": scores}
    shared: Any = {"title": title, "notes": notes, "command": command, "overwrite": overwrite}
    of: Any = comparison
    if found.of_sweep:
        refuse(of_machine, "the records of a machine", "a law's sweep")
        return write_sweep_report(found, path, of, simulation, **shared)
    refuse({"simulation": simulation}, "a law's sweep", "a machine")
    return write_machine_report(found, path, of, **of_machine, **shared)


def draw(
    found: FitResult,
    label: str | None = None,
    *,
    comparison: Comparison | Sequence[Comparison] | None = None,
    width: float = 7.5,
) -> Figure:
    """Draw the data with what was fitted: of a sweep by `draw_sweep`, which takes a `comparison`,
    of record `label` by `draw_fit`.
    """
    if found.of_sweep:
        refuse({"label": label}, "the records of a machine", "a law's sweep")
        return draw_sweep(found, comparison, width=width)
    refuse({"comparison": comparison}, "a law's sweep", "a machine")
    return draw_fit(found, label, width=width)
