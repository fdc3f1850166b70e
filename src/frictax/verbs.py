"""Methods of results, such as `found.report()` and `run.plot()`, whose code is in packages that
import the classes of the results.

The stub `verbs.pyi` declares the same methods for editors and type checkers.
"""

from .handover import Verb


class MechanismVerbs:
    plot = Verb("frictax.report.mechanism_figure:draw_mechanism")


class TrajectoryVerbs:
    plot = Verb("frictax.report.trajectory_figure:draw_trajectory")
    page = Verb("frictax.report.what_if:write_what_if")
    to_pandas = Verb("frictax.report.tables:to_pandas")
    to_xarray = Verb("frictax.report.tables:to_xarray")


class RecordVerbs:
    plot = Verb("frictax.report.record_figure:draw_record")
    to_pandas = Verb("frictax.report.tables:to_pandas")
    to_xarray = Verb("frictax.report.tables:to_xarray")


class SweepVerbs:
    to_pandas = Verb("frictax.report.tables:to_pandas")
    to_xarray = Verb("frictax.report.tables:to_xarray")


class FitResultVerbs:
    predict = Verb("frictax.analysis.friction_curve:predict")
    band = Verb("frictax.analysis.friction_curve:band")
    score = Verb("frictax.analysis.replay.validation:score")
    uncertainty = Verb("frictax.analysis.errors.uncertainty:uncertainty")
    step_error = Verb("frictax.fitting.result.step_error:step_error")
    free_run = Verb("frictax.analysis.replay.free_run:free_run")
    validate = Verb("frictax.analysis.replay.validation:validate")
    leave_records_out = Verb("frictax.analysis.replay.validation:leave_records_out")
    transfer = Verb("frictax.analysis.replay.validation:transfer")
    profile = Verb("frictax.analysis.errors.profiles:profile_of")
    derived = Verb("frictax.analysis.derived.derived:derive_from_fit")
    posterior = Verb("frictax.analysis.errors.posterior:posterior")
    residual_study = Verb("frictax.analysis.residuals.study:residual_study")
    missing = Verb("frictax.analysis.missing.missing:missing")
    report = Verb("frictax.report.machine_report:write_report")
    plot = Verb("frictax.report.machine_report:draw")
    save = Verb("frictax.report.saving.fit_file:save_fit")
    to_json = Verb("frictax.report.json_text:fit_json")
    to_mujoco = Verb("frictax.export.robots:to_mujoco")
    to_urdf = Verb("frictax.export.robots:to_urdf")
    to_modelica = Verb("frictax.export.modelica_machine:to_modelica")
    write_modelica = Verb("frictax.export.modelica_machine:write_identified")
    to_modelica_modifiers = Verb("frictax.export.modelica_machine:identified_modifiers")
    intervals_in_words = Verb("frictax.analysis.errors.uncertainty:in_words")


class MissingVerbs:
    structures = Verb("frictax.analysis.missing.structures:structures")


class DerivedVerbs:
    plot = Verb("frictax.report.analysis_figures:draw_posterior")


class PosteriorVerbs:
    derived = Verb("frictax.analysis.derived.derived:derive_from_draws")
    plot = Verb("frictax.report.analysis_figures:draw_posterior")
    save = Verb("frictax.report.saving.fit_file:save_posterior")
    to_arviz = Verb("frictax.report.tables:to_arviz")


class ResidualStudyVerbs:
    plot = Verb("frictax.report.analysis_figures:draw_residuals")


class StructureComparisonVerbs:
    plot = Verb("frictax.report.analysis_figures:draw_structures")


class DesignVerbs:
    check = Verb("frictax.excitation.check:check_design")
    plot = Verb("frictax.report.design_figure:draw_design")
    report = Verb("frictax.report.design_figure:write_design_report")
