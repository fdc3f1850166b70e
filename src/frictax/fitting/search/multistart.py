"""Search for the least cost of a `Problem`, from one start or many. The search can be interrupted
and reports its progress.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.interrupts import may_keep
from frictax.notice import Notice
from frictax.progress import SILENT, Work

from ..problem.objectives import AbstractSimulation, Steady
from ..problem.problem import Problem, residuals_and_jacobian
from . import edges
from .certificate import certify
from .halving import halved
from .levenberg_marquardt import Descent, begin
from .rounds import by_rounds
from .run import Run, begun
from .strayed import brought_back

_ROUNDS = 100  # of a fit at the noise scale that the fit before left
_WIDE = 1e100  # a noise beside which every residual is small


class Extent(NamedTuple):
    """How far a search looks: from how many starts, how far apart, and which; how many rounds
    follow at most where the end is above the noise.
    """

    starts: int = 1
    spread: float = 0.0
    seed: int = 0
    rounds: int = 0


_ONE_SEARCH = Extent()


class Searched(NamedTuple):
    """The best descent, with the steps of all that led to it, the costs at the ends of all starts,
    the noise scale, whether a key stopped the search, what is to be said of the way, and how many
    rounds followed the first search.
    """

    state: Descent
    costs: Float[np.ndarray, " s"]
    noise: float
    interrupted: bool
    told: tuple[Notice, ...]
    rounds: int = 0


def search(
    problem: Problem,
    method: Any,
    extent: Extent = _ONE_SEARCH,
    say: Work = SILENT,
    also: Sequence[np.ndarray] = (),
    first: Any = 0.0,
) -> Searched:
    """From the problem's own start, or from the coordinates `first` in its place, from the values
    in `also`, and from draws about the former. Where the end of a free run is above the noise,
    rounds follow: `by_rounds`.
    """
    starts, spread, seed, most = extent
    x0 = np.asarray(problem.x0)
    draws = np.zeros((starts, x0.size))
    if starts > 1:
        draws[1:] = (
            np.random.default_rng(seed).standard_normal((starts, x0.size))[1:] * problem.spans()
        )
    weights = [np.asarray(p.weight) for p in problem.prepared]
    measured = [np.asarray(p.measured) for p in problem.prepared]
    dof = max(int(np.sum(problem.weights() > 0)) - x0.size, 1)
    floor = (
        1e-20 * sum(float(np.sum((w * m) ** 2)) for w, m in zip(weights, measured, strict=True))
        + 1e-300
    )
    run = Run(problem, method, dof, floor, say)
    points = [first + spread * draw for draw in draws]
    points[1:1] = [np.asarray(problem.coordinates(x)) for x in also]
    rows, spans = problem.rows(), problem.spans()
    states = [begin(z, rows, spans) for z in points]
    noise = _first_noise(problem)
    state, costs = halved(run, states, noise)
    before, made = float(state.cost), 0
    try:
        first_end = state
        known = certify(problem, np.asarray(state.residuals)) if most else None
        if not run.interrupted:
            state = brought_back(run, state, noise)
        state, noise = _with_noise(run, state, noise)
        if most and state is not first_end:
            known = certify(problem, np.asarray(state.residuals))
        if known is not None and known.matters and not run.interrupted:
            state, made = by_rounds(run, state, most, seed, noise)
            if problem.priors:
                state, noise = _with_noise(run, state, noise)
        if not run.interrupted:
            state = _over_edges(run, state, noise)
    except KeyboardInterrupt:  # before such a search had got anywhere
        if not may_keep():
            raise
        run.interrupted = True
    costs = np.where(costs == before, float(state.cost), costs)
    state = dataclasses.replace(state, steps=np.array(run.steps, np.int32))
    noise = 1.0 if problem.noise_known else noise
    return Searched(state, costs, noise, run.interrupted, tuple(run.told), made)


def _with_noise(run: Run, state: Descent, noise: float) -> tuple[Descent, float]:
    """The end of searches at the noise scale that the end before has, and that scale, where a
    robust loss or priors depend on it.
    """
    problem, method = run.problem, run.method
    if (problem.loss.rounds == 1 and not problem.priors) or problem.noise_known:
        return state, noise
    for k in range(_ROUNDS):
        if run.interrupted or not np.isfinite(state.cost):
            break
        last, noise = noise, _noise(problem, state, int(run.dof), first=k == 0)
        if k > 0 and abs(noise - last) <= min(1e-4, method.tolerance) * noise:
            break
        state = run.one(begun(problem, np.asarray(state.z)), noise)
    return state, noise


def carried_on(run: Run, state: Descent) -> tuple[Descent, list[Notice]]:
    """The better of the end `state` of a search and of those from beyond the edges about it, at
    noise 1; what is to be said of the way.
    """
    return _over_edges(run, state, 1.0), run.told


def _first_noise(problem: Problem) -> float:
    """The noise scale that a search begins with: least squares, where the weights of the data
    say nothing of their size.
    """
    relative = isinstance(problem.objective, Steady) and not problem.noise_known
    return _WIDE if relative and problem.loss.rounds > 1 else 1.0


def _over_edges(run: Run, state: Descent, noise: float) -> Descent:
    """The better of `state` and where searches beyond the edges about it end."""
    if not (
        isinstance(run.problem.objective, AbstractSimulation)
        and run.is_newton
        and edges.may_gain(run.problem, state)
    ):
        return state
    end = edges.over_edges(run.problem, state, noise, float(run.dof), run.advanced, run.say)
    run.interrupted = end.interrupted
    run.steps += end.steps
    run.told += end.told
    return end.state


def _noise(problem: Problem, state: Descent, dof: int, first: bool) -> float:
    """The noise scale at the end of a search: from squares, or Huber's proposal 2 begun at the
    median.
    """
    r = np.asarray(residuals_and_jacobian(problem, state.x)[0])
    counted = problem.weights() > 0
    r = r[: counted.size][counted]
    if problem.loss.rounds == 1:
        return float(np.sqrt(r @ r / dof))
    scale = float(np.median(np.abs(r)) / 0.6745)
    for _ in range(1 if first else 50):
        score = np.asarray(problem.loss.score(jnp.asarray(r / scale)))
        new = scale * float(np.sqrt(score @ score / (dof * problem.loss.consistency())))
        if abs(new - scale) < 1e-8 * scale:
            break
        scale = scale if first else new
    return scale
