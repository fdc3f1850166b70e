from frictax.report.analysis_figures import (
    draw_posterior as draw_posterior,
    draw_residuals as draw_residuals,
)
from frictax.report.json_text import (
    comparison_json as comparison_json,
    found_json as found_json,
    found_machine_json as found_machine_json,
)
from frictax.report.machine_report import write_machine_report as write_machine_report
from frictax.report.page import check_report as check_report
from frictax.report.record_figure import (
    draw_fit as draw_fit,
    draw_record as draw_record,
    draw_starts as draw_starts,
)
from frictax.report.sweep_figure import draw_sweep as draw_sweep
from frictax.report.sweep_report import write_sweep_report as write_sweep_report
from frictax.report.terminal import comparison_table as comparison_table, found_table as found_table
from frictax.report.trajectory_figure import draw_trajectory as draw_trajectory
