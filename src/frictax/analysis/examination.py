"""What belongs beside a fit to records in its report: residuals, motions, and what could be
expected.
"""

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
from .planning.expected import Outlook
from .planning.outlook import outlook_of
from .replay.motion import Motion, motion
from .residuals.study import ResidualStudy

# what is said of a fit that leaves more than noise
_NOT_NOISE = {"term-missing", "residuals-unexplained", "remembers", "residuals-too-large"}
_NOT_NOISE |= {"misfit-above-noise", "search-above-noise"}


@dataclasses.dataclass(frozen=True, eq=False)
class Examination:
    """A fit looked at from all sides.

    - `study` of the residuals and `outlook`, what the records could be expected to tell at the
      values that the fit started from; None where that cannot be told, and `notices` says why.
    - `motions`: record -> the free run beside it.
    - `missing`: what the machine lacks; None where what is left is noise, or was not simulated.
    """

    study: ResidualStudy | None
    motions: Mapping[str, Motion]
    outlook: Outlook | None
    notices: tuple[Notice, ...]
    missing: Missing | None = None


def examined(found: FitResult, pool: Workers, work: Work = SILENT) -> Examination:
    """What belongs beside `found`, by the threads of `pool`."""
    objective = found.problem.objective
    free = objective if isinstance(objective, FreeRun) else None
    records = [label for label, record in found.records.items() if isinstance(record, Record)]
    left = any(notice.code in _NOT_NOISE for notice in found.notices)
    done, of = itertools.count(1), len(records) + 2 + left

    def told(function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        finally:
            work.count(next(done), of, "studies, motions, outlooks")

    runs = {label: pool.submit(told, motion, found, label, free) for label in records}
    study, expected = pool.submit(told, found.residual_study), pool.submit(told, outlook_of, found)
    lacking = pool.submit(told, found.missing) if left else None
    motions = {label: result_of(job) for label, job in runs.items()}
    # Too few samples that move, say, or no run from the start values: the fit stands all the same.
    studied, not_studied = _unless_refused(study, "residuals-not-studied")
    before, not_expected = _unless_refused(expected, "outlook-not-asked")
    said = *not_studied, *not_expected
    return Examination(studied, motions, before, said, result_of(lacking) if lacking else None)


def _unless_refused(job: Future[Any], code: str) -> tuple[Any, tuple[Notice, ...]]:
    """What a job found; or why it refused."""
    try:
        return result_of(job), ()
    except ValueError as why:
        return None, (Notice(code, "", {"why": str(why)}),)
