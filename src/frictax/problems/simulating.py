"""The machine of a problem file beside its records, before any fit."""

from collections.abc import Iterable

import frictax as fx
from frictax.analysis.replay.motion import Preview, preview

from .building import computed
from .problem import Problem


def simulate(problem: Problem) -> list[Preview]:
    """Run the machine of a problem with its start values under the inputs of each of its records,
    in the closed loop of its objective where it has one.

    **Raises:** `ProblemError` for a sweep, of which nothing is simulated, and for channels that the
    machine does not have.
    """
    if isinstance(problem.data, fx.Sweep):
        raise problem.place.below("sweep").error(
            "is a table of steady speeds, of which nothing is simulated. Ask `frictax identify"
            " --check` what it can tell."
        )
    settings = problem.settings()
    asked = settings["objective"]
    objective = asked if isinstance(asked, fx.ClosedLoop) else fx.FreeRun(measured_start=True)
    out = list[Preview]()
    for label, record in problem.data.items():
        place = problem.place.below("records", label)
        given = {"label": label, "instruments": settings["instruments"]}
        given |= {"engine": settings["engine"]}
        run = computed(
            lambda record=record, given=given: preview(problem.machine, record, objective, **given),
            place,
        )
        out.append(run)
    return out


def preview_page(problem: Problem, made: Iterable[Preview], command: str | None = None) -> str:
    """The page of measured against simulated."""
    from frictax.report.machine_report import preview_text

    content = problem.content
    title = f"{content.title}: before any fit"
    return preview_text(made, title=title, notes=content.notes, command=command)
