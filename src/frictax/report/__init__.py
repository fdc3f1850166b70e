"""Results as figures, as one HTML file and as JSON."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frictax.report.figures import (
        draw_fit as draw_fit,
        draw_record as draw_record,
        draw_residuals as draw_residuals,
        draw_sweep as draw_sweep,
        draw_trajectory as draw_trajectory,
    )
    from frictax.report.json_text import (
        comparison_json as comparison_json,
        found_json as found_json,
    )
    from frictax.report.machine_json import found_machine_json as found_machine_json
    from frictax.report.machine_report import write_machine_report as write_machine_report
    from frictax.report.posterior_figure import draw_posterior as draw_posterior
    from frictax.report.sweep_report import (
        check_report as check_report,
        write_sweep_report as write_sweep_report,
    )
    from frictax.report.terminal import (
        comparison_table as comparison_table,
        found_table as found_table,
    )

# matplotlib is costly to import: found when first used.
_LAZY = {
    "draw_fit": "frictax.report.figures",
    "draw_record": "frictax.report.figures",
    "draw_residuals": "frictax.report.figures",
    "draw_sweep": "frictax.report.figures",
    "draw_trajectory": "frictax.report.figures",
    "draw_posterior": "frictax.report.posterior_figure",
    "comparison_json": "frictax.report.json_text",
    "found_json": "frictax.report.json_text",
    "found_machine_json": "frictax.report.machine_json",
    "write_machine_report": "frictax.report.machine_report",
    "check_report": "frictax.report.sweep_report",
    "comparison_table": "frictax.report.terminal",
    "found_table": "frictax.report.terminal",
    "write_sweep_report": "frictax.report.sweep_report",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'frictax.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
