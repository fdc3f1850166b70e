"""Further results that a report shows: residual study, motions, outlook, missing terms."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from frictax.fitting import FitResult, FreeRun
from frictax.interrupts import Workers, result_of
from frictax.measurements import Record
from frictax.notice import Notice
from frictax.progress import SILENT, Work

from .missing.table import Missing
from .planning.outlook import Outlook, outlook_of
from .replay.free_run import Motion, motion
from .residuals.study import ResidualStudy

# Codes of the notices which report that the residuals contain more than noise.
_NOT_NOISE = {"term-missing", "residuals-unexplained", "remembers", "residuals-too-large"}
_NOT_NOISE |= {"misfit-above-noise", "search-above-noise"}


@dataclasses.dataclass(frozen=True, eq=False)
class Examination:
    """The results that a report shows in addition to the fit.

    - `study` of the residuals; `outlook`: accuracy expected at the start values. A study or outlook
      that fails has the value None. `motions`: record -> free run to compare with the record.
    - `missing`: table of missing terms; None unless a notice reports residuals above the noise.
    """

    study: ResidualStudy | None
    motions: Mapping[str, Motion]
    outlook: Outlook | None
    notices: tuple[Notice, ...]
    missing: Missing | None = None


def examine_fit(found: FitResult, pool: Workers, work: Work = SILENT) -> Examination:
    """Return the further results (`Examination`) of `found`, computed in the threads of `pool`."""
    objective = found.problem.objective
    free = objective if isinstance(objective, FreeRun) else None
    records = [label for label, record in found.records.items() if isinstance(record, Record)]
    left = any(notice.code in _NOT_NOISE for notice in found.notices)
    done, total = itertools.count(1), len(records) + 2 + left

    def run_counted(function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        finally:
            work.count(next(done), total, "studies, motions, outlooks")

    runs = {label: pool.submit(run_counted, motion, found, label, free) for label in records}
    study = pool.submit(run_counted, found.residual_study)
    expected = pool.submit(run_counted, outlook_of, found)
    lacking = pool.submit(run_counted, found.missing) if left else None
    motions = {label: result_of(job) for label, job in runs.items()}
    # The residual study fails if the machine moves in too few samples. The outlook fails if the
    # simulation with the start values fails. The fit remains valid, and a notice is given.
    studied, not_studied = _unless_refused(study, "residuals-not-studied")
    before, not_expected = _unless_refused(expected, "outlook-not-asked")
    said = *not_studied, *not_expected
    return Examination(studied, motions, before, said, result_of(lacking) if lacking else None)


def _unless_refused(job: Future[Any], code: str) -> tuple[Any, tuple[Notice, ...]]:
    """Return a job's result and no notice; if the job raised `ValueError`, None and a notice."""
    try:
        return result_of(job), ()
    except ValueError as why:
        return None, (Notice(code, "", {"why": str(why)}),)
