"""The experiment that a problem file asks for."""

from typing import Any

import frictax as fx
from frictax.progress import Progress

from .building import build, computed, each_built
from .problem import Problem

SHAPES = ["FourierSeries", "Multisine", "CubicSpline", "Staircase", "Ramps", "Chirp"]
_OBJECTIVES = ["FreeRun", "Windows", "ClosedLoop"]


def designed(problem: Problem, *, progress: bool | Progress = False) -> fx.Design:
    """The excitation that the table [design] of a problem asks for, for its machine with its start
    values. What it leaves out is that of the first record: noise, duration and rate; and that of
    [fit]: what is free.

    **Raises:** `ProblemError` for what cannot be designed.
    """
    place = problem.place.below("design")
    entry = problem.content.design
    if isinstance(problem.data, fx.Sweep):
        raise place.error("is for a machine with records, and this problem has a [sweep].")
    if entry is None:
        raise problem.place.error(
            "has no [design], which says what the machine bears. Write, say, [design] with limits ="
            " { force = 3.0, travel = 0.2, band = [0.1, 5.0] }."
        )
    record = next(iter(problem.data.values()), None)
    outputs = dict(entry.outputs)
    if not outputs and record is not None:
        outputs = {name: float(sd) for name, sd in record.sd.items() if isinstance(sd, int | float)}
    if not outputs:
        raise place.below("outputs").error(
            "must say how large the noise of each sensor is, in SI, since no record says so. Write"
            ' outputs = { "mass.v" = 0.002 }.'
        )
    limits = computed(lambda: fx.Limits(**entry.limits.model_dump()), place.below("limits"))
    margins = None if entry.margins is None else entry.margins.model_dump()
    options: dict[str, Any] = {
        "duration": entry.duration or _of(record, "duration", place),
        "rate": entry.rate or _of(record, "rate", place),
        "limits": limits,
        "drive": entry.drive,
        "free": problem.content.fit.free if entry.free is None else entry.free,
        "wanted": entry.wanted,
        "shape": build(entry.shape, SHAPES, place.below("shape")),
        "criterion": entry.criterion,
        "objective": build(entry.objective, _OBJECTIVES, place.below("objective")),
        "instruments": problem.settings()["instruments"],
        "memory": entry.memory,
        "over": entry.over,
        "machines": entry.machines,
        "priors": each_built(problem.content.fit.priors, ["Normal"], place.below("priors")),
        "size": entry.size,
        "margins": computed(
            lambda: None if margins is None else fx.Margins(**margins), place.below("margins")
        ),
        "hold": entry.hold,
        "starts": entry.starts,
        "steps": entry.steps,
        "seed": entry.seed,
        "progress": progress,
    }
    return computed(lambda: fx.design(problem.machine, outputs, **options), place)


def _of(record: Any, name: str, place: Any) -> float:
    if record is None:
        raise place.below(name).error("must be given, since there is no record to take it from.")
    return float(getattr(record, name))
