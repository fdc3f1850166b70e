"""The pictures: a measured motion, a fit to it and what that leaves, a measured sweep with its fit,
a simulated motion with its modes.
"""

from frictax.report.fit_figure import draw_fit as draw_fit
from frictax.report.record_figure import draw_record as draw_record
from frictax.report.residual_figure import draw_residuals as draw_residuals
from frictax.report.sweep_figure import draw_sweep as draw_sweep
from frictax.report.trajectory_figure import draw_trajectory as draw_trajectory
