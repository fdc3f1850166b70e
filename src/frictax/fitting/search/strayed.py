"""Restart searches that moved a value so near to or far from its bound that it has no effect."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from ..problem.problem import Problem
from .levenberg_marquardt import Descent
from .run import Run, begun

# A value has strayed if its distance from its bound has changed by this factor since the start.
# With accurate steps a search for a Stribeck force ends at 700 times the start of `fexp`, where
# the cost is flat.
_FAR = 1e2
BACK = (0.0, 2.0)  # distances beyond the start, in coordinates, at which strayed values restart


def find_strayed(problem: Problem, x: Float[np.ndarray, "*k p"]) -> Bool[np.ndarray, "*k p"]:
    """Return a mask of the values that ended much nearer to their bound than they started, or much
    farther from it.
    """
    one_sided = np.broadcast_to(problem.one_sided(), x.shape)
    ratio = np.divide(x - problem.origin, problem.size, out=np.ones_like(x), where=one_sided)
    return (np.abs(ratio) < 1 / _FAR) | (np.abs(ratio) > _FAR)


def reset_strayed(problem: Problem, end: Any, back: float) -> Float[np.ndarray, "*k p"] | None:
    """Return the coordinates at the ends of searches, with each strayed value reset to `back`
    beyond its start, on the side opposite to its end; None if no value strayed.
    """
    z = np.asarray(end.z)
    away = find_strayed(problem, np.asarray(end.x)) & np.isfinite(np.asarray(end.cost))[..., None]
    return np.where(away, -back * np.sign(z), z) if away.any() else None


def restart_from_bounds(run: Run, state: Descent, noise: float) -> Descent:
    """Return the better of `state` and the ends of searches from `state` with its strayed values
    reset to their start.

    Next to its bound a value has so little effect that the search does not move it back. A Stribeck
    force that became 0 would stay 0, so the restart finds out if the data require one.
    """
    if not np.isfinite(state.cost) or not run.is_newton:
        return state
    for back in BACK:
        z = reset_strayed(run.problem, state, back)
        if run.interrupted or z is None:
            break
        again = run.one(begun(run.problem, z), noise)
        if float(again.cost) < float(state.cost) * (1 - 1e-6):
            state = again
    return state
