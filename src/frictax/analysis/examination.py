"""What belongs beside a fit to records in its report: residuals, motions, and what could be
expected.
"""

import dataclasses
import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from frictax.fitting import FitResult, FreeRun
from frictax.measurements import Record
from frictax.notice import Notice

from .missing.table import Missing
from .planning.outlook import Outlook, outlook_of
from .replay.motion import Motion, motion
from .residuals.study import ResidualStudy

# what is said of a fit that leaves more than noise
_NOT_NOISE = {"term-missing", "remembers", "misfit-above-noise", "residuals-too-large"}


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


def workers() -> ThreadPoolExecutor:
    """Threads, one a processor: most of the time goes into compiling, which leaves Python to
    others.
    """
    return ThreadPoolExecutor(os.cpu_count())


def examined(found: FitResult, pool: ThreadPoolExecutor) -> Examination:
    """What belongs beside `found`, by the threads of `pool`."""
    objective = found.problem.objective
    free = objective if isinstance(objective, FreeRun) else None
    records = [label for label, record in found.records.items() if isinstance(record, Record)]
    runs = {label: pool.submit(motion, found, label, free) for label in records}
    study, expected = pool.submit(found.residual_study), pool.submit(outlook_of, found)
    left = any(notice.code in _NOT_NOISE for notice in found.notices)
    lacking = pool.submit(found.missing) if left else None
    motions = {label: job.result() for label, job in runs.items()}
    # Too few samples that move, say, or no run from the start values: the fit stands all the same.
    studied, not_studied = _unless_refused(study, "residuals-not-studied")
    before, not_expected = _unless_refused(expected, "outlook-not-asked")
    said = *not_studied, *not_expected
    return Examination(studied, motions, before, said, lacking.result() if lacking else None)


def _unless_refused(job: Future[Any], code: str) -> tuple[Any, tuple[Notice, ...]]:
    """What a job found; or why it refused."""
    try:
        return job.result(), ()
    except ValueError as why:
        return None, (Notice(code, "", {"why": str(why)}),)
