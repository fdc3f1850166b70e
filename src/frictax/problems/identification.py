"""Simulate or identify the machine of a problem file, or design an experiment for this machine."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import frictax as fx
from frictax.analysis import Guarded
from frictax.analysis.examination import examine_fit
from frictax.analysis.replay.free_run import Motion, Preview, free_run, preview
from frictax.annotations import Checked
from frictax.fitting.checks import check_precision
from frictax.fitting.problem.setup import channel_unit
from frictax.interrupts import Workers, result_of
from frictax.laws import as_law
from frictax.measurements.record import replace_fields
from frictax.notice import Notice
from frictax.progress import Progress, Work, show_progress

from .building import LAWS, build, build_each, call_checked
from .checking import check, derive, law_class, law_entries, shared_settings, without_stopping
from .problem import Problem, read


def simulate(problem: Problem) -> list[Preview]:
    """Simulate the machine of a problem with its start values and the inputs of each record.

    If the objective of the file is a `ClosedLoop`, the simulation includes its controller.

    **Raises:** `ProblemError` for a sweep, which cannot be simulated, and for channels that the
    machine does not have.
    """
    if isinstance(problem.data, fx.Sweep):
        raise problem.place.below("sweep").error(
            "is a table of steady speeds, which cannot be simulated. `frictax identify --check`"
            " prints what it identifies."
        )
    settings = problem.settings()
    asked = settings["objective"]
    objective = asked if isinstance(asked, fx.ClosedLoop) else fx.FreeRun(measured_start=True)
    out = list[Preview]()
    for label, record in problem.data.items():
        place = problem.place.below("records", label)
        given = {"label": label, "instruments": settings["instruments"]}
        given |= {"engine": settings["engine"]}
        run = call_checked(
            lambda record=record, given=given: preview(problem.machine, record, objective, **given),
            place,
        )
        out.append(run)
    return out


def preview_page(problem: Problem, made: Iterable[Preview], command: str | None = None) -> str:
    """Return the HTML page that compares the records with the simulations `made`."""
    from frictax.report.machine_report import preview_text

    content = problem.content
    title = f"{content.title}: before any fit"
    texts: Any = {"title": title, "notes": content.notes, "command": command}
    return preview_text(made, **texts, machine=problem.machine)


SHAPES = ["FourierSeries", "Multisine", "CubicSpline", "Staircase", "Ramps", "Chirp"]
_OBJECTIVES = ["FreeRun", "Windows", "ClosedLoop"]
# keys of the table [design] that become arguments of `design` without a change
_AS_IN_DESIGN = "drive wanted criterion memory over machines size hold starts steps seed".split()


def design_experiment(problem: Problem, *, progress: bool | Progress = False) -> fx.Design:
    """Design an excitation of the machine with its start values, by the table [design] of the file.

    By default, noise, duration and sampling rate are taken from the first record, and the free
    parameters from the table [fit].

    **Raises:** `ProblemError` for a design that is not possible.
    """
    place = problem.place.below("design")
    entry = problem.content.design
    if isinstance(problem.data, fx.Sweep):
        raise place.error("is for a machine with records, and this problem has a [sweep].")
    if entry is None:
        raise problem.place.error(
            "has no [design], which gives the limits of the machine. Write, say, [design] with"
            " limits = { force = 3.0, travel = 0.2, band = [0.1, 5.0] }."
        )
    for key in ("tied", "own"):
        if getattr(problem.content.fit, key):
            raise problem.place.below("fit", key).error(
                "is not used with [design], which `design` does not have as an option. Leave it out"
                " of the file that has the [design]."
            )
    record = next(iter(problem.data.values()), None)
    outputs = dict(entry.outputs)
    if not outputs and record is not None:
        # The noise level of a sensor whose standard deviation varies is the rms of its values.
        told = {name: np.asarray(sd) for name, sd in record.sd.items() if sd is not None}
        outputs = {name: float(np.sqrt(np.nanmean(sd**2))) for name, sd in told.items()}
    if not outputs:
        raise place.below("outputs").error(
            "must say how large the noise of each sensor is, in SI, since no record says so. Write"
            ' outputs = { "mass.v" = 0.002 }.'
        )
    limits = call_checked(lambda: fx.Limits(**entry.limits.model_dump()), place.below("limits"))
    margins = entry.margins
    options: dict[str, Any] = {name: getattr(entry, name) for name in _AS_IN_DESIGN}
    for name in ("duration", "rate"):
        given = getattr(entry, name)
        options[name] = _of_record(record, name, place) if given is None else given
    options |= {
        "limits": limits,
        "free": problem.content.fit.free if entry.free is None else entry.free,
        "shape": build(entry.shape, SHAPES, place.below("shape")),
        "objective": build(entry.objective, _OBJECTIVES, place.below("objective")),
        "instruments": problem.settings()["instruments"],
        "priors": build_each(problem.content.fit.priors, ["Normal"], place.below("priors")),
        "margins": call_checked(
            lambda: None if margins is None else fx.Margins(**margins.model_dump()),
            place.below("margins"),
        ),
        "progress": progress,
    }
    return call_checked(lambda: fx.design(problem.machine, outputs, **options), place)


def _of_record(record: Any, name: str, place: Any) -> float:
    """Return the attribute `name`, "duration" or "rate", of the first record."""
    if record is None:
        raise place.below(name).error("must be given, since there is no record to take it from.")
    return float(getattr(record, name))


@dataclasses.dataclass(frozen=True, eq=False)
class Score:
    """The deviations of the fitted machine from a record that was not fitted.

    - `label`: label of the record; `objective`: the objective of the comparison; `rms`: output ->
      root mean square of the residuals [SI]; `units`: output -> SI unit.
    - `run`: for a free run, its sensitivities and the range of residuals that noise explains; a
      `Validation` if the initial state was fitted to this record; None for other objectives.
    """

    label: str
    objective: Any
    rms: Mapping[str, float]
    units: Mapping[str, str]
    run: Any | None

    @property
    def by(self) -> str:
        """Name of the objective for reports, such as "free run" or "windows of 0.5 s"."""
        if self.run is not None:
            return getattr(self.run, "by", "free run")
        length = getattr(self.objective, "length", None)
        return f"windows of {length:g} s" if length else type(self.objective).__name__


@dataclasses.dataclass(frozen=True, eq=False)
class Identification:
    """The results of a problem.

    - `found`: the fit of the chosen structure; `comparison`: the comparison of structures, or for a
      sweep a list with the comparison of laws in each direction.
    - `uncertainty`: standard errors by the noise model of the file; `profiles`: path -> profile
      likelihood; `scores`: deviations from the validation records.
    - `derived`: the quantities in the table [derived], or the usual quantities of the machine.
    - `study`, `motions`, `notices`, `outlook`, `missing`: see `Examination`. `notices` also names
      the profiles, scores and derived quantities that could not be computed.
    """

    problem: Problem
    found: Any
    comparison: Any
    uncertainty: Any
    profiles: Mapping[str, Any]
    study: Any
    scores: tuple[Score, ...]
    motions: Mapping[str, Motion]
    notices: tuple[Notice, ...] = ()
    outlook: Any = None
    missing: Any = None
    derived: tuple[fx.Estimate, ...] = ()


def identify(
    path: str | Path,
    *,
    allow_code: bool = False,
    tolerance: float | None = None,
    progress: Checked[bool | Progress] = False,
) -> Identification:
    """Identify the machine of a problem file. `write_results` writes the results.

    **Arguments:** `path`: the file or its folder; `allow_code`: whether functions in Python files
    of that folder may run; `tolerance` replaces `fit.tolerance` of the file; `progress`: as in
    `fit`.

    **Raises:** `ProblemError`, and the errors that `fit` raises.
    """
    check_precision()
    with show_progress(progress, "Identifying") as work:
        work("Reading")
        problem = read(path, allow_code=allow_code, tolerance=tolerance)
        check(problem)
        if isinstance(problem.data, fx.Sweep):
            return _of_sweep(problem, work)
        return _of_records(problem, work)


def _of_records(problem: Problem, work: Work) -> Identification:
    content, records = problem.content, problem.fitted_records
    asked = content.uncertainty.profiles
    # The weights are the relative durations of the stages for the progress line.
    fit_stage = "Comparing structures" if problem.structures else "Fitting"
    weights = {fit_stage: 6.0, " errors": 1.0, " rest": 4.0}
    parts = work.parts(weights | {f"Profile of {name}": 1.0 for name in asked})
    fitting = parts[fit_stage]
    fitting("compiling", 0.0)
    if problem.structures:
        structures = {content.compare.given: shared_settings(problem)[1], **problem.structures}
        comparison = call_checked(
            lambda: fx.compare(records, structures, **problem.criterion(), progress=fitting),
            problem.place,
        )
        found = comparison.best.found
    else:
        settings, comparison = problem.settings(), None
        found = call_checked(
            lambda: fx.fit(problem.machine, records, **settings, progress=fitting), problem.place
        )
    fitting.end()
    parts[" errors"]("Computing errors", 0.0)
    by = problem.errors() or Guarded()
    uncertainty = call_checked(lambda: found.uncertainty(by), problem.place.below("uncertainty"))
    profiles, scores, notices = {}, list[Score](), list[Notice]()
    here = problem.place.below("uncertainty", "profiles")
    parts[" errors"].end()
    for name in asked:
        tell = parts[f"Profile of {name}"]
        if name in found.names:  # The chosen structure may lack this parameter.
            with without_stopping(notices):
                profiles[name] = call_checked(
                    lambda name=name, tell=tell: found.profile(name, by=uncertainty, progress=tell),
                    here,
                )
        tell("done", 1.0)
    rest = parts[" rest"]
    rest("Studying, validating, simulating", 0.0)
    labels = content.validation.records
    scored = [(label, objective) for label in labels for objective in problem.scores()]
    scored += [(label, None) for label in labels if content.validation.own_start]
    with Workers() as pool:
        # Start the longest calculations first.
        judged = [pool.submit(_score, problem, found, uncertainty, *one) for one in scored]
        seen = examine_fit(found, pool, rest)
        for job in judged:
            with without_stopping(notices):
                scores.append(result_of(job))
    here = problem.place.below("derived")
    derived = derive(content.derived, found, uncertainty, here, notices)
    fitted = problem, found, comparison, uncertainty, profiles
    more: dict[str, Any] = vars(seen) | {"notices": (*seen.notices, *notices)}
    return Identification(*fitted, scores=tuple(scores), derived=derived, **more)


def _score(problem: Problem, found: Any, uncertainty: Any, label: str, objective: Any) -> Score:
    """Return the `Score` of record `label`. Without `objective`, fit the initial state first."""
    assert isinstance(problem.data, Mapping)
    record = problem.data[label]
    place = problem.place.below("validation")
    if objective is None:
        named = replace_fields(record, name=label)
        made = call_checked(lambda: found.validate(named), place)
        return Score(label, fx.FreeRun(), made.rms, made.units, made)
    if isinstance(objective, fx.FreeRun):
        drawn = problem.content.uncertainty.model_dump(include={"draws", "seed"})
        given = {"errors": uncertainty, "objective": objective, **drawn}
        run = call_checked(lambda: free_run(found, record, **given), place)
        return Score(label, objective, run.rms, run.units, run)
    rms = call_checked(lambda: found.score(record, objective), place)
    units = {name: channel_unit(found.model, record, name) for name in rms}
    return Score(label, objective, rms, units, None)


def forward_law(problem: Problem) -> Any:
    """Return the law for v > 0 of a problem with a sweep, with start values. If the file requests a
    comparison of laws, return the law `Stribeck`.
    """
    assert isinstance(problem.data, fx.Sweep)
    if law_entries(problem)["f_pos"] == "compare":
        return fx.starting_law(fx.Stribeck, problem.data)
    return _law(problem, "f_pos", problem.data)


def _law(problem: Problem, way: str, data: fx.Sweep) -> Any:
    """Return the law for v > 0 (`way` = "f_pos") or v < 0 ("f_neg"). The law's start values are in
    the file or are estimated from `data`.
    """
    entry, place = law_entries(problem)[way], problem.place.below("law", way)
    return (
        fx.starting_law(law_class(entry, place), data)
        if isinstance(entry, str)
        else as_law(build(entry, LAWS, place))
    )


def _of_sweep(problem: Problem, work: Work) -> Identification:
    sweep, place = problem.data, problem.place
    assert isinstance(sweep, fx.Sweep)
    settings, laws = problem.settings(), law_entries(problem)
    each = laws["f_neg"] is not None
    parts = {"f_pos": sweep}
    if each:
        here = place.below("law", "f_neg")
        parts = {
            "f_pos": call_checked(sweep.positive, here, values=True),
            "f_neg": call_checked(sweep.negative, here, values=True),
        }
    comparisons, chosen = [], {}
    for way, data in parts.items():
        if laws[way] == "compare":
            work("Comparing laws")
            how = {"offset": laws["offset"], "loss": settings["loss"]}
            made = call_checked(lambda data=data, how=how: fx.compare(data, **how), place)
            comparisons.append(made)
            chosen[way] = made.best.found.law
        else:
            chosen[way] = _law(problem, way, data)
    work("Fitting")
    options: dict[str, Any] = {key: laws[key] for key in ("peak", "offset")}
    options |= {key: settings[key] for key in ("free", "tied", "log_scale", "loss", "level")}
    options["f_neg"] = chosen.get("f_neg")
    found = call_checked(lambda: fx.fit(chosen["f_pos"], sweep, **options), place)
    notices = list[Notice]()
    made = derive(problem.content.derived, found, None, place.below("derived"), notices)
    fitted = problem, found, comparisons, None, {}, None, (), {}, tuple(notices)
    return Identification(*fitted, derived=made)
