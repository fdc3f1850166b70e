"""Values that a search leads far from where they began, to where nothing leads them back."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from ..problem.problem import Problem
from .levenberg_marquardt import Descent
from .run import Run, begun

# A value is strayed if its distance from its bound is this many times, or this fraction of, the one
# at its start. With accurate steps a search for a Stribeck force ends at 700 times the start of
# `fexp`, where the cost is flat.
_FAR = 1e2
BACK = (0.0, 2.0)  # coordinates beyond their start that strayed values are put back to


def strayed(problem: Problem, x: Float[np.ndarray, "*k p"]) -> Bool[np.ndarray, "*k p"]:
    """Return which values ended far nearer to their bound than they started, or far farther from
    it.
    """
    one_sided = np.broadcast_to(problem.one_sided(), x.shape)
    ratio = np.divide(x - problem.origin, problem.size, out=np.ones_like(x), where=one_sided)
    return (np.abs(ratio) < 1 / _FAR) | (np.abs(ratio) > _FAR)


def put_back(problem: Problem, end: Any, back: float) -> Float[np.ndarray, "*k p"] | None:
    """The ends of searches with the values that strayed `back` coordinates beyond their start, seen
    from where they went; None where none did.
    """
    z = np.asarray(end.z)
    away = strayed(problem, np.asarray(end.x)) & np.isfinite(np.asarray(end.cost))[..., None]
    return np.where(away, -back * np.sign(z), z) if away.any() else None


def brought_back(run: Run, state: Descent, noise: float) -> Descent:
    """The better of `state` and the end of a search from there with the values that strayed put
    back to where they began.

    Next to its bound a value acts so little that the search does not lead it back: a Stribeck
    force lost on the way stays lost. Where the data ask for none, this only tells so.
    """
    if not np.isfinite(state.cost) or not run.is_newton:
        return state
    for back in BACK:
        z = put_back(run.problem, state, back)
        if run.interrupted or z is None:
            break
        again = run.one(begun(run.problem, z), noise)
        if float(again.cost) < float(state.cost) * (1 - 1e-6):
            state = again
    return state
