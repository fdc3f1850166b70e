"""One search, in calls between which it can be interrupted and reports its progress."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from frictax.engine import OnSamples
from frictax.interrupts import may_keep
from frictax.notice import Notice
from frictax.progress import SILENT, Work

from ..problem.objectives import AbstractSimulation
from ..problem.problem import Problem
from .compiled import by_newton, side_by_side, turned_jit
from .levenberg_marquardt import Descent, begin
from .methods import LevenbergMarquardt

SEARCH = 0.9  # share of the search in the work of a fit
LANES = 16  # number of searches that step together in one call
_FIRST = 3  # least number of steps of the first call
_SHORT = 50_000  # number of residuals that are computed in far less than a second
_ROOM = 2**26  # [bytes] largest size of the Jacobians of one call


def begun(problem: Problem, z: Any) -> Descent:
    """Return a search that begins at the coordinates `z`.

    Its first steps are at most as long as the values.
    """
    return begin(z, problem.rows(), problem.spans())


def advance_search(
    problem: Problem, method: Any, state: Descent, until: int, noise: Any, dof: Any
) -> Descent:
    """Return the search from `state` at its end or at step `until`. The program is compiled once
    for the fit of `problem`, for all weights.
    """
    return Run(problem, method, dof, 1e-300).advance(state, until, noise)


class Run:
    """Searches of one problem, with their number of steps, their notices, and if a key stopped
    them.
    """

    def __init__(
        self, problem: Problem, method: Any, dof: Any, floor: float, say: Work = SILENT
    ) -> None:
        self.problem, self.method, self.say = problem, method, say
        self.dof, self.floor = np.float64(dof), np.float64(floor)
        self.steps, self.interrupted = 0, False
        self.notices: list[Notice] = []

    @property
    def is_newton(self) -> bool:
        return isinstance(self.method, LevenbergMarquardt)

    @property
    def most(self) -> int:
        """The largest number of steps of a search."""
        return self.method.max_steps if self.is_newton else 1

    @property
    def in_one(self) -> bool:
        """True if a search is one call for any number of steps."""
        return self.problem.is_steady or not self.is_newton

    @property
    def has_lanes(self) -> bool:
        """True if `together` is faster than separate searches and its Jacobians fit into memory."""
        numbers = LANES * self.problem.rows() * self.problem.x0.size
        return (
            not self.in_one
            and isinstance(self.problem.objective, AbstractSimulation)
            and isinstance(self.problem.engine, OnSamples)
            and 8 * numbers <= _ROOM
        )

    def one(self, state: Descent, noise: float) -> Descent:
        """Search from one start. After a key, return the state so far if its cost is finite."""
        pace = _Pace(self.method, self.say)
        try:
            for now in self.in_parts(state, self.most, noise):
                state = now
                pace.tell(state)
        except KeyboardInterrupt:
            if not may_keep() or not np.isfinite(state.cost):
                raise
            self.interrupted = True
        self.steps += int(state.steps)
        return state

    def in_parts(self, state: Descent, until: int, noise: Any) -> Iterator[Descent]:
        """Yield the states of a search up to its end or step `until`. The calls are so short that a
        key loses little and that the progress can be reported.
        """
        steps = int(state.steps)
        chunk = _FIRST if self.say else max(_FIRST, _SHORT // self.problem.rows())
        chunk = until if self.in_one else chunk
        while steps < until:
            before, began = steps, time.perf_counter()
            steps = min(steps + chunk, until)
            state = self.advance(state, steps, noise)
            yield state
            if bool(state.done):
                break
            each = (time.perf_counter() - began) / (steps - before)
            chunk = int(np.clip((0.2 if self.say else 0.5) / max(each, 1e-6), 1, 1000))

    def to(self, state: Descent, until: int, noise: Any) -> Descent:
        """Return the last state of `in_parts`."""
        for now in self.in_parts(state, until, noise):
            state = now
        return state

    def together(self, states: Sequence[Descent], until: int, noise: Any) -> list[Descent]:
        """Continue at most `LANES` searches from `states` to step `until` in one call.

        They are the lanes of one run: see `frictax.engine.on_samples.lanes`.
        """
        filled = [*states, *[states[-1]] * (LANES - len(states))]
        many = jax.tree.map(lambda *leaves: np.stack(leaves), *filled)
        ends = [np.asarray(x) for x in side_by_side(self.problem, many, *self._how(until, noise))]
        structure = jax.tree.structure(states[0])
        return [
            jax.tree.unflatten(structure, [np.asarray(x[k]) for x in ends])
            for k in range(len(states))
        ]

    def advance(self, state: Descent, until: int, noise: Any) -> Descent:
        if self.in_one:
            scale = np.float64(noise)
            end = turned_jit(self.problem, state.z, scale, self.method, self.dof, self.floor)
            return jax.tree.map(np.asarray, end)
        end = by_newton(self.problem, state, *self._how(until, noise))
        # Access to single numbers is faster in NumPy arrays than in JAX arrays.
        return jax.tree.unflatten(jax.tree.structure(state), [np.asarray(x) for x in end])

    def _how(self, until: int, noise: Any) -> tuple[Any, ...]:
        tolerance = np.float64(self.method.tolerance)
        return np.int32(until), np.float64(noise), tolerance, self.dof, self.floor


class _Pace:
    """Progress of a search, reported in lines. The remaining time is extrapolated from the
    decrease of the distance to convergence between the last two lines.
    """

    def __init__(self, method: Any, say: Work) -> None:
        self.method, self.say = method, say
        self.began, self.last, self.at = time.perf_counter(), np.inf, 0.0

    def tell(self, state: Descent) -> None:
        if not self.say:
            return
        now, seconds = float(state.distance), time.perf_counter() - self.began
        left = share = None
        if np.isfinite(self.last) and 0 < now < self.last:
            rate = (seconds - self.at) / np.log(self.last / now)
            left = rate * np.log(max(now / self.method.tolerance, 1.0))
            share = SEARCH * seconds / (seconds + left)
        self.last, self.at = now, seconds
        self.say(
            f"step {int(state.steps)}: cost {float(state.cost):.6g}, {now:.2g} standard errors to"
            f" go, {seconds:.1f} s",
            share,
            left,
        )
