"""Long free runs that swing, searched by their first periods first."""

import dataclasses

import equinox as eqx
import numpy as np
from jaxtyping import Float

from frictax.notice import Notice

from ..problem.objectives import AbstractSimulation, PreparedRecord
from .levenberg_marquardt import Descent
from .run import Run, begun

_MISSED = 0.03  # of the spread of a free run: a misfit that may be that of another least one
_STAGE = 10  # steps at most for a part of each record


def by_stages(run: Run, state: Descent, noise: float) -> Descent:
    """The better of `state` and the end of a search that sees one and a half periods of each
    free run first, then twice as much, and so on.

    Only where a run that swings is still missed by a share of its spread: from a start whose
    period is wrong, a long run has a least misfit for each period that it may be late, and one
    that hits stops for each hit that it may miss.
    """
    problem, parts, first = run.problem, [], 0
    if not (
        isinstance(problem.objective, AbstractSimulation)
        and run.is_newton
        and all(isinstance(p, PreparedRecord) and p.rows is None for p in problem.prepared)
    ):
        return state
    for prepared in problem.prepared:
        w = np.asarray(prepared.weight)
        left = np.asarray(state.residuals)[first : first + w.size].reshape(w.shape)
        first += w.size
        parts.append(_first_periods(w * np.asarray(prepared.measured), left))
    if not any(part < 1.0 for part in parts):
        return state
    shown = {"percent": 100 * min(parts), "stages": 1}
    z = np.zeros_like(np.asarray(state.z))
    near = dataclasses.replace(run.method, tolerance=0.1)
    while any(part < 1.0 for part in parts):
        weights = [
            np.where(np.arange(len(p.weight))[:, None] < part * len(p.weight), p.weight, 0.0)
            for p, part in zip(problem.prepared, parts, strict=True)
        ]
        seen = eqx.tree_at(lambda q: [p.weight for p in q.prepared], problem, weights)
        dof = max(sum(np.sum(w > 0) for w in weights) - z.size, 1)
        stage = type(run)(seen, near, dof, 0.0)
        end = stage.advanced(begun(seen, z), _STAGE, noise)
        z, parts = np.asarray(end.z), [2.0 * part for part in parts]
        run.steps += int(end.steps)
        shown["stages"] += 1
    again = run.one(begun(problem, z), noise)
    if not float(again.cost) < float(state.cost) * (1 - 1e-6):
        return state
    run.told.append(Notice("search-by-stages", "", shown))
    return again


def _first_periods(measured: Float[np.ndarray, "n c"], left: Float[np.ndarray, "n c"]) -> float:
    """How much of a record one and a half of its periods are; 1 where it does not swing, or the run
    does not miss it.
    """
    x = measured - np.mean(measured, axis=0)
    spread = np.std(x, axis=0)
    parts = [1.0]
    for swing, size, rest in zip(x.T, spread, left.T, strict=True):
        beyond = np.flatnonzero(np.abs(swing) > 0.5 * size)
        turns = beyond[1:][np.diff(np.sign(swing[beyond])) != 0]
        if turns.size > 5 and np.sqrt(np.mean(rest**2)) > _MISSED * size:
            parts.append(turns[3] / len(x))
    return min(parts)
