"""Successive halving: searches from many starts, of which only the best continue."""

from collections.abc import Sequence

import numpy as np

from frictax.interrupts import Workers, may_keep, result_of

from .levenberg_marquardt import Descent
from .run import LANES, SEARCH, Run

_RUNGS = (3, 7, 15)  # steps of each of many starts after which a quarter of them continues
_USUAL = 30  # typical number of steps of a search
# Least number of starts, and of their residuals, for which compiling another program pays off.
_MANY, _WORTH = 2 * LANES, 100_000


def successive_halving(run: Run, states: list[Descent], noise: float) -> tuple[Descent, np.ndarray]:
    """Return the best end of searches from `states`, and the costs at the ends of all.

    After each of `_RUNGS` steps a quarter of the starts continues, and always the first, so that
    more starts are never worse than one. As many searches run at once as there are processors. If
    there are many, `LANES` of them take their steps in one call until half of these are left, which
    takes a third of the time. They do not go to their ends together, because these take 6 to 100
    steps.

    **Source:** K. Jamieson, A. Talwalkar, "Non-stochastic best arm identification and
    hyperparameter optimization", 2016 (successive halving).
    """
    if len(states) == 1:
        state = run.one(states[0], noise)
        return state, np.asarray([state.cost])
    rungs = [n for n in _RUNGS if not run.in_one and n < run.most]
    live = list(range(len(states)))
    rungs = [*rungs, run.most]
    residuals = len(states) * run.problem.rows()
    has_lanes = len(states) >= _MANY and residuals >= _WORTH and len(rungs) > 1 and run.has_lanes
    if not has_lanes:  # The first search runs alone, because it compiles the program.
        states[0] = run.to(states[0], rungs[0], noise)

    def gone(some: list[int], until: int) -> list[Descent]:
        if len(some) == 1:
            return [run.to(states[some[0]], until, noise)]
        return run.together([states[i] for i in some], until, noise)

    try:
        with Workers() as pool:
            for until, (first, last) in zip(rungs, _shares(len(states), rungs), strict=True):
                going = [
                    i for i in live if not bool(states[i].done) and int(states[i].steps) < until
                ]
                groups = _groups(going, has_lanes and until < run.most)
                jobs = [pool.submit(gone, some, until) for some in groups]
                count = 0
                for some, job in zip(groups, jobs, strict=True):
                    for i, end in zip(some, result_of(job), strict=True):
                        states[i] = end
                    count += len(some)
                    run.say(
                        f"{count} of {len(going)} starts: least cost"
                        f" {min(float(s.cost) for s in states):.6g}",
                        first + (last - first) * count / len(going),
                    )
                live = _hopeful(run, states, live)
    except KeyboardInterrupt:
        if not may_keep() or not any(np.isfinite(s.cost) for s in states):
            raise
        run.interrupted = True
    costs = np.asarray([float(s.cost) for s in states])
    best = states[int(np.argmin(np.where(np.isfinite(costs), costs, np.inf)))]
    run.steps += int(best.steps)
    return best, costs


def _groups(going: list[int], has_lanes: bool) -> list[list[int]]:
    """Return the groups of starts that continue in one call."""
    if not has_lanes or 2 * len(going) < LANES:
        return [[i] for i in going]
    parts = np.array_split(going, -(-len(going) // LANES))
    return [part.tolist() for part in parts]


def _hopeful(run: Run, states: list[Descent], live: list[int]) -> list[int]:
    """Return the first start and the best quarter of the `live` ones, at least two of them. Starts
    within a standard error of a better one are left out.
    """
    kept: list[int] = []

    def is_near(i: int, k: int) -> bool:
        way = np.asarray(states[i].z) - np.asarray(states[k].z)
        gram = np.asarray(states[k].products)[:-1, :-1]
        return bool(way @ gram @ way < 2.0 * states[k].cost / run.dof)

    for i in sorted(live, key=lambda i: np.nan_to_num(float(states[i].cost), nan=np.inf)):
        enough = len(kept) >= max(2, -(-len(live) // 4))
        if i == 0 or not (enough or any(is_near(i, k) for k in kept)):
            kept.append(i)
    return kept


def _shares(starts: int, rungs: Sequence[int]) -> list[tuple[float, float]]:
    """Return the shares of the work at which each rung begins and ends. A quarter of the starts
    continues after each rung, and each search ends after `_USUAL` steps.
    """
    work, before = [0.0], 0
    for until in rungs:
        work.append(work[-1] + starts * (max(min(until, _USUAL), before + 1) - before))
        starts, before = max(3, -(-starts // 4)), until
    ends = SEARCH * np.asarray(work) / work[-1]
    return list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
