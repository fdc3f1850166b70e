"""Methods of results whose code is in other subpackages, for editors and type checkers."""

from frictax.analysis.derived.derived import (
    derive_from_draws as _of_draws,
    derive_from_fit as _derived,
)
from frictax.analysis.errors.posterior import posterior as _posterior
from frictax.analysis.errors.profiles import profile_of as _profile_of
from frictax.analysis.errors.uncertainty import in_words as _in_words, uncertainty as _uncertainty
from frictax.analysis.friction_curve import band as _band, predict as _predict
from frictax.analysis.missing.missing import missing as _missing
from frictax.analysis.missing.structures import structures as _structures
from frictax.analysis.replay.free_run import free_run as _free_run
from frictax.analysis.replay.validation import (
    leave_records_out as _leave_records_out,
    score as _score,
    transfer as _transfer,
    validate as _validate,
)
from frictax.analysis.residuals.study import residual_study as _residual_study
from frictax.excitation.check import check_design as _check_design
from frictax.export.modelica_machine import (
    identified_modifiers as _identified_modifiers,
    to_modelica as _to_modelica,
    write_identified as _write_identified,
)
from frictax.export.robots import to_mujoco as _to_mujoco, to_urdf as _to_urdf
from frictax.fitting.result.step_error import step_error as _step_error
from frictax.report.analysis_figures import (
    draw_posterior as _draw_posterior,
    draw_residuals as _draw_residuals,
    draw_structures as _draw_structures,
)
from frictax.report.design_figure import (
    draw_design as _draw_design,
    write_design_report as _write_design_report,
)
from frictax.report.json_text import fit_json as _fit_json
from frictax.report.machine_report import draw as _draw, write_report as _write_report
from frictax.report.mechanism_figure import draw_mechanism as _draw_mechanism
from frictax.report.record_figure import draw_record as _draw_record
from frictax.report.saving.fit_file import save_fit as _save_fit, save_posterior as _save_posterior
from frictax.report.tables import (
    to_arviz as _to_arviz,
    to_pandas as _to_pandas,
    to_xarray as _to_xarray,
)
from frictax.report.trajectory_figure import draw_trajectory as _draw_trajectory
from frictax.report.what_if import write_what_if as _write_what_if

class MechanismVerbs:
    plot = _draw_mechanism

class TrajectoryVerbs:
    plot = _draw_trajectory
    page = _write_what_if
    to_pandas = _to_pandas
    to_xarray = _to_xarray

class RecordVerbs:
    plot = _draw_record
    to_pandas = _to_pandas
    to_xarray = _to_xarray

class SweepVerbs:
    to_pandas = _to_pandas
    to_xarray = _to_xarray

class FitResultVerbs:
    predict = _predict
    band = _band
    score = _score
    uncertainty = _uncertainty
    step_error = _step_error
    free_run = _free_run
    validate = _validate
    leave_records_out = _leave_records_out
    transfer = _transfer
    profile = _profile_of
    derived = _derived
    posterior = _posterior
    residual_study = _residual_study
    missing = _missing
    report = _write_report
    plot = _draw
    save = _save_fit
    to_json = _fit_json
    to_mujoco = _to_mujoco
    to_urdf = _to_urdf
    to_modelica = _to_modelica
    write_modelica = _write_identified
    to_modelica_modifiers = _identified_modifiers
    intervals_in_words = _in_words

class MissingVerbs:
    structures = _structures

class DerivedVerbs:
    plot = _draw_posterior

class PosteriorVerbs:
    derived = _of_draws
    plot = _draw_posterior
    save = _save_posterior
    to_arviz = _to_arviz

class ResidualStudyVerbs:
    plot = _draw_residuals

class StructureComparisonVerbs:
    plot = _draw_structures

class DesignVerbs:
    check = _check_design
    plot = _draw_design
    report = _write_design_report
