"""Search for the least cost of a `Problem`, from one start or many."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.interrupts import may_keep
from frictax.notice import Notice
from frictax.progress import SILENT, Work

from ..problem.objectives import AbstractSimulation
from ..problem.problem import Problem, residuals_and_jacobian
from . import edges
from .certificate import certify
from .levenberg_marquardt import Descent
from .rounds import by_rounds
from .run import Run, begun, restart_from_bounds, successive_halving


class Extent(NamedTuple):
    """The extent of a search: number of starts, their spread and random seed, and largest number of
    rounds. Rounds are further searches, which run if the residuals exceed the noise.
    """

    starts: int = 1
    spread: float = 0.0
    seed: int = 0
    rounds: int = 0


_ONE_SEARCH = Extent()


class Searched(NamedTuple):
    """The result of a search. `state`: the best state, with the number of steps of all searches
    that led to it; `costs`: final cost from each start; `noise`: noise scale; `rounds`: number of
    rounds that were run; `interrupted`: true after Ctrl-C.
    """

    state: Descent
    costs: Float[np.ndarray, " s"]
    noise: float
    interrupted: bool
    notices: tuple[Notice, ...]
    rounds: int = 0


def search(
    problem: Problem,
    method: Any,
    extent: Extent = _ONE_SEARCH,
    say: Work = SILENT,
    also: Sequence[np.ndarray] = (),
    first: Any = 0.0,
) -> Searched:
    """Search from the problem's start values (or the coordinates `first`), from the values in
    `also`, and from random points around the start. If the final residuals of a free run exceed the
    noise, search again in rounds (see `by_rounds`).
    """
    starts, spread, seed, most = extent
    x0 = np.asarray(problem.x0)
    draws = np.random.default_rng(seed).standard_normal((starts, x0.size)) * problem.spans()
    draws[0] = 0.0
    sums = [float(np.sum((np.asarray(p.weight) * p.measured) ** 2)) for p in problem.prepared]
    dof = max(int(np.sum(problem.weights() > 0)) - x0.size, 1)
    floor = 1e-20 * sum(sums) + 1e-300
    run = Run(problem, method, dof, floor, say)
    points = [first + spread * draw for draw in draws]
    points[1:1] = [np.asarray(problem.coordinates(x)) for x in also]
    states = [begun(problem, z) for z in points]
    # If the weights are only relative, the noise scale is unknown at first. The first noise scale
    # is then very large, so that a robust loss is quadratic.
    is_relative = problem.is_steady and not problem.noise_known
    noise = 1e100 if is_relative and problem.loss.rounds > 1 else 1.0
    state, costs = successive_halving(run, states, noise)
    before, made = float(state.cost), 0
    try:
        first_end = state
        known = certify(problem, np.asarray(state.residuals)) if most else None
        if not run.interrupted:
            state = restart_from_bounds(run, state, noise)
        state, noise = _with_noise(run, state, noise)
        if most and state is not first_end:
            known = certify(problem, np.asarray(state.residuals))
        if known is not None and known.matters and not run.interrupted:
            state, made = by_rounds(run, state, most, seed, noise)
            if problem.priors:
                state, noise = _with_noise(run, state, noise)
        if not run.interrupted:
            state = search_over_edges(run, state, noise)
    except KeyboardInterrupt:  # a later search was interrupted before its first result
        if not may_keep():
            raise
        run.interrupted = True
    costs = np.where(costs == before, float(state.cost), costs)
    state = dataclasses.replace(state, steps=np.array(run.steps, np.int32))
    noise = 1.0 if problem.noise_known else noise
    return Searched(state, costs, noise, run.interrupted, tuple(run.notices), made)


def _with_noise(run: Run, state: Descent, noise: float) -> tuple[Descent, float]:
    """Repeat the search with the noise scale estimated at its final point, until this scale
    converges. Only fits with a robust loss or with priors depend on the noise scale. Return the
    last state and the scale.
    """
    problem, method = run.problem, run.method
    if (problem.loss.rounds == 1 and not problem.priors) or problem.noise_known:
        return state, noise
    # `most`: largest number of updates of the noise scale; `counted`: mask of weights > 0.
    most, counted = 100, problem.weights() > 0
    least = float(np.sqrt(run.floor / run.dof))  # the noise scale of exact data
    for k in range(most):
        if run.interrupted or not np.isfinite(state.cost):
            break
        last, r = noise, np.asarray(residuals_and_jacobian(problem, state.x)[0])
        r, dof = r[: counted.size][counted], int(run.dof)
        if problem.loss.rounds == 1:
            noise = max(least, float(np.sqrt(r @ r / dof)))
        else:  # Huber's proposal 2 starts from a scale that the median determines.
            noise = max(least, float(np.median(np.abs(r)) / 0.6745))
            for _ in range(50 if k > 0 else 0):
                score = np.asarray(problem.loss.score(jnp.asarray(r / noise)))
                new = noise * float(np.sqrt(score @ score / (dof * problem.loss.consistency())))
                new = max(least, new)
                if abs(new - noise) < 1e-8 * noise:
                    break
                noise = new
        if k > 0 and abs(noise - last) <= min(1e-4, method.tolerance) * noise:
            break
        state = run.one(begun(problem, np.asarray(state.z)), noise)
    return state, noise


def search_over_edges(run: Run, state: Descent, noise: float) -> Descent:
    """Search beyond the discontinuities of the cost around `state`, and return the best state."""
    if not (
        isinstance(run.problem.objective, AbstractSimulation)
        and run.is_newton
        and edges.may_gain(run.problem, state)
    ):
        return state
    end = edges.over_edges(run.problem, state, noise, float(run.dof), run.advance, run.say)
    run.interrupted = end.interrupted
    run.steps += end.steps
    run.notices += end.notices
    return end.state
