"""The search for an excitation: first-order steps from several starts, the best within limits."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from frictax.interrupts import nested_work
from frictax.progress import Work

from .plan import Plan, Seen, ended_well

_RATE, _LONGEST = 0.1, 5.0  # of steps; of gradients
_STRICT = 5.0  # how much limits weigh at the end of a search
_LENIENT = 0.01  # of that when it begins
_DRAWS = 3  # of starts at most, for each that is asked for
_TELLS = 1e-3  # of the criterion: a start that is better than nothing
_SMALLER, _BEYOND = 8, 10.0  # times that one is made smaller; how far beyond a limit it may begin


@dataclasses.dataclass
class Best:
    """The numbers of an excitation, its cost, with limits at their full weight, and how far it is
    over one [1].
    """

    c: Float[np.ndarray, " k"]
    cost: float
    over: float

    def before(self, other: "Best | None") -> bool:
        """Whether it is better: first within limits, then by cost."""
        if other is None:
            return True
        if (self.over <= 0) != (other.over <= 0):
            return self.over <= 0
        return self.cost < other.cost if self.over <= 0 else self.over < other.over


class Ascent:
    """One way up, by Adam: sums over machines have kinks where events come and go, which methods of
    second order do not bear.
    """

    def __init__(self, plan: Plan, machines: Sequence[np.ndarray], c: np.ndarray, steps: int):
        self.plan, self.machines = plan, machines
        first, self.moved = _adam(steps)
        self.c, self.state = jnp.asarray(c), first(jnp.asarray(c))
        self.best: Best | None = None
        self.least = np.inf
        self.done, self.steps = 0, steps

    def step(self) -> None:
        """One step, and a look at where it begins."""
        strict = _STRICT * _LENIENT ** (1.0 - self.done / self.steps)
        u = self.plan.made(self.c)
        cost, along, over, sound = looked(self.plan, self.machines, u, strict)
        if sound:
            now = Best(np.asarray(self.c), cost, over)
            self.least = min(self.least, cost)
            if now.before(self.best):
                self.best = now
            self.c, self.state = self.moved(self.plan.back(self.c, along), self.state, self.c)
        elif self.best is not None:  # back half of the way from where a run failed
            self.c = 0.5 * (self.c + self.best.c)
        else:
            self.c = 0.7 * self.c
        self.done += 1


@functools.lru_cache(maxsize=8)
def _adam(steps: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """How a way of so many steps begins, and a step of it, compiled once for all ways."""
    schedule = optax.cosine_decay_schedule(_RATE, steps, 0.05)
    way = optax.chain(optax.clip_by_global_norm(_LONGEST), optax.adam(schedule))

    def moved(slope: Any, state: Any, c: Any) -> Any:
        change, state = way.update(slope, state)
        return optax.apply_updates(c, change), state

    return jax.jit(way.init), jax.jit(moved)


def looked(
    plan: Plan, machines: Sequence[np.ndarray], u: Any, strict: float
) -> tuple[float, np.ndarray, float, bool]:
    """The cost at full weight under the drive `u`, the slope by that at the weight `strict`, the
    excess, and whether all runs went well.
    """
    cost, slope, over, sound = 0.0, np.zeros(np.shape(u)), -np.inf, True
    for x in machines:
        (mine, (seen, beyond)), along = plan.slope(u, x, strict)
        whole, along = float(mine) + (_STRICT - strict) * float(beyond), np.asarray(along)
        cost += whole / len(machines)
        slope = slope + along / len(machines)
        over = max(over, excess(seen))
        sound &= bool(np.isfinite(whole)) and bool(np.all(np.isfinite(along)))
        sound &= ended_well(seen)
    return cost, slope, over, sound


def excess(seen: Seen) -> float:
    """By how much what a run asks is over its limits, as a share."""
    return float(np.max(np.asarray(seen.asked), initial=0.0)) - 1.0


def climbed(
    plan: Plan,
    machines: Sequence[np.ndarray],
    starts: int,
    steps: int,
    seed: int,
    work: Work,
) -> Best:
    """The best excitation that was found: from `starts` starts for a quarter of the steps, from the
    better half of them for a third, and from half of these to the end.
    """
    draws = np.random.default_rng(seed)
    with nested_work():
        ways: list[Ascent] = []
        for _ in range(_DRAWS * starts):
            c = _sized(plan, machines[0], plan.shape.draw(plan.t, plan.band, draws))
            if c is not None:
                ways.append(Ascent(plan, machines, c, steps))
                work(f"{len(ways)} of {starts} starts", 0.1 * len(ways) / starts)
            if len(ways) == starts:
                break
        if not ways:
            raise ValueError(
                "`design` found no excitation under which the machine can be simulated: see whether"
                " `Limits` and the machine's values fit each other."
            )
        rungs = _rungs(len(ways), steps)
        total, done = sum(kept * until for kept, until in rungs), 0
        for kept, until in rungs:
            ways = sorted(ways, key=lambda way: way.least)[:kept]
            for way in ways:
                for _ in range(until):
                    way.step()
                    done += 1
                    work(f"{done} of {total} steps", 0.1 + 0.9 * done / total)
        best = None
        for way in ways:
            if way.best is not None and way.best.before(best):
                best = way.best
    assert best is not None
    return best


def _sized(plan: Plan, nominal: np.ndarray, c: np.ndarray) -> np.ndarray | None:
    """A start made smaller until it is not hopelessly beyond the limits; None where its run fails,
    or tells nothing: from what stands still no slope leads away.

    Not smaller than that: what moves much meets many events, and keeps them when it shrinks.
    """
    nothing = float(plan.merit(np.zeros(plan.known.shape)))
    for _ in range(_SMALLER):
        seen = plan.seen(plan.made(c), nominal)
        told = float(plan.merit(seen.information))
        if ended_well(seen) and np.isfinite(told) and excess(seen) < _BEYOND:
            return c if told < nothing - _TELLS else None
        c = plan.shape.resized(c, 0.6)
    return None


def _rungs(ways: int, steps: int) -> list[tuple[int, int]]:
    """How many ways take how many steps, one group after the other."""
    if ways == 1:
        return [(1, steps)]
    first, second, half = steps // 4, steps // 3, (ways + 1) // 2
    return [(ways, first), (half, second), ((half + 1) // 2, steps - first - second)]
