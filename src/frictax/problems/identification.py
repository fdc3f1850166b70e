"""From a problem file to the identified machine, and what it is worth."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import frictax as fx
from frictax.analysis import Guarded
from frictax.analysis.examination import examine_fit
from frictax.analysis.replay.free_run import free_run
from frictax.analysis.replay.motion import Motion
from frictax.annotations import Checked
from frictax.fitting.problem.setup import channel_unit
from frictax.interrupts import Workers, results_of
from frictax.laws import as_law
from frictax.measurements.record import replace_fields
from frictax.notice import Notice
from frictax.progress import Progress, Work, watched

from .building import LAWS, build, checked, computed
from .checking import check, kind_of_law, laws_asked, shared_settings
from .deriving import derive
from .problem import Problem
from .reading import read

_WEIGHTS = {"fit": 6.0, "errors": 1.0, "profile": 1.0, "rest": 4.0}  # of long work, about


@dataclasses.dataclass(frozen=True, eq=False)
class Score:
    """How the fitted machine fares on a record that was not fitted.

    - `label` of the record; `objective`; `rms`: output -> root mean square of what is left [SI];
      `units`.
    - `run`: for a free run, sensitivities and the range that chance allows; for a start of the
      record's own, the `Validation`.
    """

    label: str
    objective: Any
    rms: Mapping[str, float]
    units: Mapping[str, str]
    run: Any | None

    @property
    def by(self) -> str:
        """The objective in words."""
        if self.run is not None:
            return getattr(self.run, "by", "free run")
        length = getattr(self.objective, "length", None)
        return f"windows of {length:g} s" if length else type(self.objective).__name__


@dataclasses.dataclass(frozen=True, eq=False)
class Identification:
    """What came of a problem.

    - `found`: the fit, of the structure that was chosen; `comparison`: that choice, for sweeps one
      for each direction.
    - `uncertainty`: errors by the account that the problem names; `profiles` by path; `scores` of
      validation records.
    - `derived`: what the file asks for under [derived], or else common quantities.
    - `study`, `motions`, `notices`, `outlook`, `missing`: as of an `Examination`.
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
    """Identify the machine that a problem file describes; nothing is written, see `write_results`.

    **Arguments:** `path` of the file or its folder; `allow_code`: whether functions that it names
    may be called; `tolerance` takes the place of `fit.tolerance`; `progress` as in `fit`.

    **Raises:** `ProblemError` and what `fit` raises.
    """
    with watched(progress, "Identifying") as work:
        work("Reading")
        problem = read(path, allow_code=allow_code, tolerance=tolerance)
        check(problem)
        if isinstance(problem.data, fx.Sweep):
            return _of_sweep(problem, work)
        return _of_records(problem, work)


def _of_records(problem: Problem, work: Work) -> Identification:
    content, records = problem.content, problem.fitted
    asked = content.uncertainty.profiles
    names = {"fit": "Comparing structures" if problem.structures else "Fitting"}
    names |= {"errors": " errors", "rest": " rest"}
    weights = {names[key]: _WEIGHTS[key] for key in names}
    parts = work.parts(weights | {f"Profile of {name}": _WEIGHTS["profile"] for name in asked})
    fitting = parts[names["fit"]]
    fitting("compiling", 0.0)
    if problem.structures:
        structures = {content.compare.given: shared_settings(problem)[1], **problem.structures}
        comparison = computed(
            lambda: fx.compare(records, structures, **problem.criterion(), progress=fitting),
            problem.place,
        )
        found = comparison.best.found
    else:
        settings = problem.settings()
        comparison, found = (
            None,
            computed(
                lambda: fx.fit(problem.machine, records, **settings, progress=fitting),
                problem.place,
            ),
        )
    fitting.end()
    parts[" errors"]("Finding errors", 0.0)
    by = problem.errors() or Guarded()
    uncertainty = computed(lambda: found.uncertainty(by), problem.place.below("uncertainty"))
    profiles = {}
    here = problem.place.below("uncertainty", "profiles")
    parts[" errors"].end()
    for name in asked:
        tell = parts[f"Profile of {name}"]
        if name in found.names:  # the structure that was chosen may not have it
            profiles[name] = computed(
                lambda name=name, tell=tell: found.profile(name, by=uncertainty, progress=tell),
                here,
            )
        tell("done", 1.0)
    rest = parts[" rest"]
    rest("Studying, validating, simulating", 0.0)
    scored = [
        (label, objective) for label in content.validation.records for objective in problem.scores()
    ]
    with Workers() as pool:
        # the longest first
        judged = [pool.submit(_score, problem, found, uncertainty, *one) for one in scored]
        if content.validation.own_start:
            judged += [
                pool.submit(_own_start, problem, found, label)
                for label in content.validation.records
            ]
        seen = examine_fit(found, pool, rest)
        scores = tuple(results_of(judged))
    return Identification(
        problem,
        found,
        comparison,
        uncertainty,
        profiles,
        seen.study,
        scores,
        seen.motions,
        seen.notices,
        seen.outlook,
        seen.missing,
        derive(content.derived, found, uncertainty, problem.place.below("derived")),
    )


def _score(problem: Problem, found: Any, uncertainty: Any, label: str, objective: Any) -> Score:
    assert isinstance(problem.data, Mapping)
    record = problem.data[label]
    place = problem.place.below("validation")
    if isinstance(objective, fx.FreeRun):
        drawn = problem.content.uncertainty.model_dump(include={"draws", "seed"})
        given = {"errors": uncertainty, "objective": objective, **drawn}
        run = computed(lambda: free_run(found, record, **given), place)
        return Score(label, objective, run.rms, run.units, run)
    rms = computed(lambda: found.score(record, objective), place)
    units = {name: channel_unit(found.model, record, name) for name in rms}
    return Score(label, objective, rms, units, None)


def _own_start(problem: Problem, found: Any, label: str) -> Score:
    assert isinstance(problem.data, Mapping)
    record, place = (
        replace_fields(problem.data[label], name=label),
        problem.place.below("validation"),
    )
    made = computed(lambda: found.validate(record), place)
    return Score(label, fx.FreeRun(), made.rms, made.units, made)


def asked_law(problem: Problem) -> Any:
    """The forward law that a sweep's file asks for, with start values; where laws are compared, the
    richest of them.
    """
    assert isinstance(problem.data, fx.Sweep)
    if laws_asked(problem)["f_pos"] == "compare":
        return fx.starting_law(fx.Stribeck, problem.data)
    return _law(problem, "f_pos", problem.data)


def _law(problem: Problem, way: str, data: fx.Sweep) -> Any:
    """The law of the file for one direction: of a kind with start values from `data`, or as
    written.
    """
    entry, place = laws_asked(problem)[way], problem.place.below("law", way)
    return (
        fx.starting_law(kind_of_law(entry, place), data)
        if isinstance(entry, str)
        else as_law(build(entry, LAWS, place))
    )


def _of_sweep(problem: Problem, work: Work) -> Identification:
    sweep, place = problem.data, problem.place
    assert isinstance(sweep, fx.Sweep)
    settings, laws = problem.settings(), laws_asked(problem)
    each = laws["f_neg"] is not None
    parts = {"f_pos": sweep}
    if each:
        here = place.below("law", "f_neg")
        parts = {"f_pos": checked(sweep.positive, here), "f_neg": checked(sweep.negative, here)}
    comparisons, chosen = [], {}
    for way, data in parts.items():
        if laws[way] == "compare":
            work("Comparing laws")
            comparisons.append(
                computed(
                    lambda data=data: fx.compare(
                        data, offset=laws["offset"], loss=settings["loss"]
                    ),
                    place,
                )
            )
            chosen[way] = comparisons[-1].best.found.law
        else:
            chosen[way] = _law(problem, way, data)
    work("Fitting")
    options: dict[str, Any] = {key: laws[key] for key in ("peak", "offset")}
    options |= {key: settings[key] for key in ("free", "tied", "log_scale", "loss", "level")}
    options["f_neg"] = chosen.get("f_neg")
    found = computed(lambda: fx.fit(chosen["f_pos"], sweep, **options), place)
    made = derive(problem.content.derived, found, None, place.below("derived"))
    return Identification(problem, found, comparisons, None, {}, None, (), {}, derived=made)
