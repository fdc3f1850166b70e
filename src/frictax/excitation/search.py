"""Search for the best excitation within limits: Adam from several starts, successive halving."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from frictax.interrupts import nested_work
from frictax.programs import interruptible_jit
from frictax.progress import Work

from .problem import DesignProblem

_PENALTY_WEIGHT = 5.0  # [criterion] weight of limits and margins at the end of a search


@dataclasses.dataclass
class Candidate:
    """The numbers `c` of an excitation, its `cost` at the full penalty, and its largest relative
    excess over a limit.
    """

    c: Float[np.ndarray, " k"]
    cost: float
    excess: float

    def is_better_than(self, other: "Candidate | None") -> bool:
        """Compare the limits first, then the costs."""
        if other is None:
            return True
        if (self.excess <= 0) != (other.excess <= 0):
            return self.excess <= 0
        return self.cost < other.cost if self.excess <= 0 else self.excess < other.excess


class Descent:
    """A search from one start by Adam.

    The cost has kinks where events appear and disappear, so second-order methods fail.
    """

    def __init__(
        self, problem: DesignProblem, machines: Sequence[np.ndarray], c: np.ndarray, steps: int
    ):
        self.problem, self.machines = problem, machines
        initialize, self.update = _adam(steps)
        self.c, self.state = jnp.asarray(c), initialize(jnp.asarray(c))
        self.best: Candidate | None = None
        self.lowest_cost = np.inf
        self.done, self.steps = 0, steps

    def step(self) -> None:
        """Evaluate the current excitation, and make a step."""
        # The weight of the penalty grows from a hundredth to its full value.
        weight = _PENALTY_WEIGHT * 0.01 ** (1.0 - self.done / self.steps)
        u = self.problem.compiled_excitation(self.c)
        cost, by_drive, excess, succeeded = mean_cost(self.problem, self.machines, u, weight)
        if succeeded:
            candidate = Candidate(np.asarray(self.c), cost, excess)
            self.lowest_cost = min(self.lowest_cost, cost)
            if candidate.is_better_than(self.best):
                self.best = candidate
            gradient = self.problem.pull_back(self.c, by_drive)
            self.c, self.state = self.update(gradient, self.state, self.c)
        elif self.best is not None:  # After a failed simulation, go half of the way back.
            self.c = 0.5 * (self.c + self.best.c)
        else:
            self.c = 0.7 * self.c
        self.done += 1


@functools.lru_cache(maxsize=8)
def _adam(steps: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the compiled initialisation and step of Adam for this number of steps."""
    # The numbers of an excitation are about 1, so the first learning rate is a tenth of them.
    schedule = optax.cosine_decay_schedule(0.1, steps, 0.05)
    adam = optax.chain(optax.clip_by_global_norm(5.0), optax.adam(schedule))

    def update(gradient: Any, state: Any, c: Any) -> Any:
        change, state = adam.update(gradient, state)
        return optax.apply_updates(c, change), state

    return interruptible_jit(adam.init), interruptible_jit(update)


def mean_cost(
    problem: DesignProblem, machines: Sequence[np.ndarray], u: Any, weight: float
) -> tuple[float, np.ndarray, float, bool]:
    """Average the cost of the drive u over the machines.

    **Returns:** the cost at the full penalty, its gradient by the drive at the given penalty
    weight, the largest excess over a limit, and whether all simulations succeeded.
    """
    cost, gradient, excess, succeeded = 0.0, np.zeros(np.shape(u)), -np.inf, True
    for x in machines:
        (value, (run, penalty)), by_drive = problem.cost_and_gradient(u, x, weight)
        full = float(value) + (_PENALTY_WEIGHT - weight) * float(penalty)
        by_drive = np.asarray(by_drive)
        cost += full / len(machines)
        gradient = gradient + by_drive / len(machines)
        excess = max(excess, run.excess)
        succeeded &= bool(np.isfinite(full)) and bool(np.all(np.isfinite(by_drive)))
        succeeded &= run.is_complete
    return cost, gradient, excess, succeeded


def search_excitation(
    problem: DesignProblem,
    machines: Sequence[np.ndarray],
    starts: int,
    steps: int,
    seed: int,
    work: Work,
) -> Candidate:
    """Search from `starts` starts for a quarter of the steps, continue the better half of them for
    a third, and half of these to the end.
    """
    draws = np.random.default_rng(seed)
    with nested_work():
        descents: list[Descent] = []
        for _ in range(3 * starts):
            drawn = problem.shape.draw(problem.t, problem.band, draws)
            c = _reduced_start(problem, machines[0], drawn)
            if c is not None:
                descents.append(Descent(problem, machines, c, steps))
                count = len(descents)
                work(f"{count} of {starts} starts", 0.1 * count / starts)
            if len(descents) == starts:
                break
        if not descents:
            raise ValueError(
                "`design` found no excitation under which the machine can be simulated: see whether"
                " `Limits` and the machine's values fit each other."
            )
        # pairs (number of searches, number of steps) of the stages
        first, second, half = steps // 4, steps // 3, (len(descents) + 1) // 2
        schedule = [(half, second), ((half + 1) // 2, steps - first - second)]
        schedule = [(len(descents), first), *schedule] if len(descents) > 1 else [(1, steps)]
        total, done = sum(kept * count for kept, count in schedule), 0
        for kept, count in schedule:
            descents = sorted(descents, key=lambda descent: descent.lowest_cost)[:kept]
            for descent in descents:
                for _ in range(count):
                    descent.step()
                    done += 1
                    work(f"{done} of {total} steps", 0.1 + 0.9 * done / total)
        best = None
        for descent in descents:
            if descent.best is not None and descent.best.is_better_than(best):
                best = descent.best
    assert best is not None
    return best


def _reduced_start(problem: DesignProblem, nominal: np.ndarray, c: np.ndarray) -> np.ndarray | None:
    """Reduce an excitation until it exceeds the limits by less than a factor of 11.

    Return None if the simulation fails, or if the experiment has no information: a machine at rest
    gives no gradient. The excitation is not reduced further, because large motions have many events
    and keep them when the search makes them smaller.
    """
    without = float(problem.compiled_criterion(np.zeros(problem.known.shape)))
    for _ in range(8):
        run = problem.run_once(problem.compiled_excitation(c), nominal)
        criterion = float(problem.compiled_criterion(run.information))
        if run.is_complete and np.isfinite(criterion) and run.excess < 10.0:
            return c if criterion < without - 1e-3 else None
        c = problem.shape.resized(c, 0.6)
    return None
