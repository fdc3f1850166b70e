"""The two pictures: a measured sweep with its fit, a motion with its modes."""

from frictax.report.sweep_figure import draw_sweep as draw_sweep
from frictax.report.trajectory_figure import draw_trajectory as draw_trajectory
