"""The report and the picture of a fit, whatever was fitted."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from frictax.fitting import FitResult

from .fit_figure import draw_fit
from .machine_report import write_machine_report
from .sweep_figure import draw_sweep
from .sweep_report import write_sweep_report


def write_report(found: FitResult, path: str | Path, **extras: Any) -> Path:
    """Write a self-contained HTML report: see `write_sweep_report` and, for records,
    `write_machine_report` for its options.
    """
    return (write_sweep_report if found.of_sweep else write_machine_report)(found, path, **extras)


def draw(found: FitResult, label: str | None = None, **options: Any) -> Figure:
    """Draw the data with what was fitted: see `draw_sweep` and, for record `label`, `draw_fit`."""
    return draw_sweep(found, **options) if found.of_sweep else draw_fit(found, label, **options)
