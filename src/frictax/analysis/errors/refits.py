"""A fit again, from where it ended: with other weights of the samples, or with some
numbers fixed.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.fitting import FitResult, LevenbergMarquardt
from frictax.fitting.problem.problem import Problem
from frictax.fitting.search.levenberg_marquardt import descend
from frictax.fitting.search.run import advanced, begun
from frictax.interrupts import Workers
from frictax.programs import cached_jit

_TOLERANCE, _STEPS = 1e-4, 60  # the first of profiles


class Samples:
    """Which sample of its record each residual belongs to, for all residuals in their order.

    `record`, `sample`: numbers, one for each residual; `counted`: whether it has a weight; `sizes`:
    how many samples each record has.
    """

    def __init__(self, problem: Problem) -> None:
        records, samples, counted, sizes = [], [], [], []
        for i, prepared in enumerate(problem.prepared):
            weight, at = np.asarray(prepared.weight), prepared.samples()
            records.append(np.full(weight.size, i))
            samples.append(np.ravel(at))
            counted.append(np.ravel(weight) > 0)
            sizes.append(int(at.max()) + 1)
        self.record, self.sample, self.counted = (
            np.concatenate(x) for x in (records, samples, counted)
        )
        self.sizes = tuple(sizes)

    def of(self, values: list[np.ndarray]) -> Float[np.ndarray, " _"]:
        """From a number for each sample of each record to one for each residual."""
        out = np.zeros(self.record.size)
        for i, x in enumerate(values):
            mine = self.record == i
            out[mine] = x[self.sample[mine]]
        return out


def reweighted(problem: Problem, times: np.ndarray) -> Problem:
    """The problem with the weight of each residual so many times as large."""
    parts, first = [], 0
    for prepared in problem.prepared:
        w = np.asarray(prepared.weight)
        parts.append(w * times[first : first + w.size].reshape(w.shape))
        first += w.size
    return eqx.tree_at(lambda p: [prepared.weight for prepared in p.prepared], problem, parts)


def searched(
    problem: Problem, method: Any, z: Any, steps: int, noise: Any = 1.0, dof: Any = 1.0
) -> Any:
    """The end of a search of that many steps from the coordinates z; the first evaluates them."""
    return advanced(problem, method, begun(problem, z), steps, noise, dof)


def method_of(found: FitResult) -> LevenbergMarquardt:
    """The method of a fit where that solves least squares, else one that does."""
    if isinstance(found.method, LevenbergMarquardt):
        return found.method
    return LevenbergMarquardt(tolerance=1e-3)


def refitted(
    found: FitResult, counts: Float[np.ndarray, "k m"], z: np.ndarray | None = None
) -> tuple[Float[np.ndarray, "k q"], np.ndarray]:
    """All fitted numbers of k fits, in each of which residual j counts `counts` times; and whether
    each came to an end.

    From the fit's end, or from the coordinates `z`, by the program that is compiled for the fit
    itself, as many at a time as there are processors.
    """
    problem = found.problem
    noise = float(found.noise_scale) if problem.loss.rounds > 1 or problem.priors else 1.0
    method = method_of(found)

    def one(count: np.ndarray) -> tuple[np.ndarray, bool]:
        mine = reweighted(problem, np.sqrt(count))
        end = searched(mine, method, found.z if z is None else z, _STEPS, noise, float(found.dof))
        return np.asarray(end.x), bool(end.settled)

    first = one(counts[0])  # by itself: it may compile
    with Workers() as pool:
        done = [first, *pool.map(one, counts[1:])]
    return np.stack([x for x, _ in done]), np.asarray([ok for _, ok in done])


@cached_jit
def least_cost_with(
    problem: Problem, z: Any, which: Any, values: Any, noise: Any, dof: Any
) -> tuple[Array, Array, Array]:
    """The least cost with the numbers `which` (bool, one for each coordinate) fixed at `values`:
    coordinates, cost, and all numbers.
    """

    def evaluate(z: Array) -> tuple[Array, Array]:
        return problem.evaluate(z, noise, (which, values))

    end = descend(evaluate, begun(problem, z), _STEPS, _TOLERANCE, dof, 1e-300)
    return (
        jnp.asarray(end.z),
        jnp.asarray(end.cost),
        jnp.where(which, values, problem.physical(end.z)),
    )
