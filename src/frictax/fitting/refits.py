"""A fit again, from where it ended: with other weights of the samples, or with some numbers held."""

from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.fitting.descent import begin, descend
from frictax.fitting.problem import Problem, SteadyPlan

if TYPE_CHECKING:
    from frictax.fitting.found_machine import FoundMachine

_TOLERANCE, _STEPS = 1e-4, 60


class Samples:
    """Which sample of its record each residual belongs to, for all residuals in their order.

    `record`, `sample`: numbers, one for each residual; `counted`: whether it has a weight; `sizes`: how many samples each record has.
    """

    def __init__(self, problem: Problem) -> None:
        records, samples, counted, sizes = [], [], [], []
        for i, plan in enumerate(problem.plans):
            weight = np.asarray(plan.weight)
            if isinstance(plan, SteadyPlan):
                at, size = np.arange(weight.size), weight.size
            else:
                rows = np.arange(weight.shape[0]) if plan.rows is None else np.asarray(plan.rows)
                at, size = np.broadcast_to(rows[..., None], weight.shape), int(rows.max()) + 1
            records.append(np.full(weight.size, i))
            samples.append(np.ravel(at))
            counted.append(np.ravel(weight) > 0)
            sizes.append(size)
        self.record, self.sample, self.counted = (np.concatenate(x) for x in (records, samples, counted))
        self.sizes = tuple(sizes)

    def of(self, values: list[np.ndarray]) -> Float[np.ndarray, " m"]:
        """From a number for each sample of each record to one for each residual."""
        out = np.zeros(self.record.size)
        for i, x in enumerate(values):
            mine = self.record == i
            out[mine] = x[self.sample[mine]]
        return out


def refitted(found: "FoundMachine", counts: Float[np.ndarray, "k m"]) -> tuple[Float[np.ndarray, "k q"], np.ndarray]:
    """All fitted numbers of k fits, in each of which residual j counts `counts` times; and whether each came to an end."""
    problem, dof = found.problem, np.float64(found.dof)
    noise = np.float64(found.noise_scale if problem.loss.rounds > 1 or problem.priors else 1.0)
    x, ok = _weighed(problem, found.z, counts, noise, dof)
    return np.asarray(x), np.asarray(ok)


@eqx.filter_jit
def _weighed(problem: Problem, z: Any, counts: Any, noise: Any, dof: Any) -> tuple[Array, Array]:
    shapes = [np.shape(p.weight) for p in problem.plans]
    ends = np.cumsum([int(np.prod(s)) for s in shapes])

    def one(count: Array) -> tuple[Array, Array]:
        roots = [jnp.reshape(x, s) for x, s in zip(jnp.split(jnp.sqrt(count), ends[:-1]), shapes, strict=True)]
        new = [jnp.asarray(p.weight) * root for p, root in zip(problem.plans, roots, strict=True)]
        mine = eqx.tree_at(lambda p: [plan.weight for plan in p.plans], problem, new)
        end = descend(lambda z: mine.evaluate(z, noise), begin(z, problem.rows()), _STEPS, _TOLERANCE, dof, 1e-300)
        return mine.physical(end.z), jnp.asarray(end.settled)

    return jax.lax.map(one, jnp.asarray(counts))


@eqx.filter_jit
def held(problem: Problem, z: Any, which: Any, values: Any, noise: Any, dof: Any) -> tuple[Array, Array, Array]:
    """The least cost with the numbers `which` (bool, one for each coordinate) held at `values`: coordinates, cost, and all numbers."""

    def evaluate(z: Array) -> tuple[Array, Array]:
        return problem.evaluate(z, noise, (which, values))

    end = descend(evaluate, begin(z, problem.rows()), _STEPS, _TOLERANCE, dof, 1e-300)
    return jnp.asarray(end.z), jnp.asarray(end.cost), jnp.where(which, values, problem.physical(end.z))
