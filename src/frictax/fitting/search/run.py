"""Searches of one problem: from one start, from many starts, and from values reset near a bound.
Compiled calls are short, so that Ctrl-C stops a search soon and progress is reported.
"""

import functools
import time
from collections.abc import Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from frictax.engine import OnSamples
from frictax.interrupts import Workers, may_keep, result_of
from frictax.notice import Notice
from frictax.programs import cached_jit, interruptible_jit
from frictax.progress import SILENT, Work

from ..problem.objectives import AbstractSimulation
from ..problem.problem import Problem
from .levenberg_marquardt import Descent, begin, descend, descend_together
from .methods import AbstractMethod, LevenbergMarquardt, Optax


@cached_jit
def by_newton(
    problem: Problem, state: Descent, until, noise, tolerance, dof, floor
) -> tuple[Array, ...]:
    """Search by Levenberg-Marquardt to step `until`; return the arrays of the final `Descent`."""
    end = descend(
        lambda z: problem.evaluate_with_kind(z, noise), state, until, tolerance, dof, floor
    )
    return tuple(jax.tree.leaves(with_values(problem, end)))


@cached_jit
def side_by_side(
    problem: Problem, states: Descent, until, noise, tolerance, dof, floor
) -> tuple[Array, ...]:
    """Continue the searches along the leading axis of `states`; evaluate their steps together."""
    evaluate = jax.vmap(lambda z: problem.evaluate_with_kind(z, noise))
    ends = descend_together(evaluate, states, until, tolerance, dof, floor)
    return tuple(jax.tree.leaves(jax.vmap(lambda end: with_values(problem, end))(ends)))


def in_turned_coordinates(
    problem: Problem, z: Any, noise: Any, method: AbstractMethod, dof: Any, floor: Any
) -> Descent:
    """Search in coordinates that are rotated and scaled by the singular vectors of the Jacobian. A
    length of 1 in these coordinates is about one standard error. Each round computes its
    coordinates from the Jacobian at the end of the previous round.

    This search is used for the method `Optax`, and for fits of laws. The residuals of a law can be
    so nonlinear that scaling the columns of the Jacobian to equal length does not suffice.
    """

    largest_rounds = 10  # of Levenberg-Marquardt; each round computes new coordinates

    def around(carry) -> Any:
        z, _, rounds, steps = carry
        r, jacobian = problem.evaluate(z, noise)
        level = jnp.sqrt(jnp.maximum(jnp.sum(r * r), floor) / dof)
        _, s, vt = jnp.linalg.svd(jacobian / level, full_matrices=False)
        # The scale of a direction without effect on the data is at most 1e4 times the smallest
        # scale.
        turn = vt.T / jnp.maximum(s, 1e-4 * s[0] + jnp.finfo(s.dtype).tiny)
        start = jnp.zeros(turn.shape[1])
        if isinstance(method, Optax):
            at, count, converged = method.minimise(
                lambda u: problem.misfit(z + turn @ u, noise) / level, start
            )
        else:
            assert isinstance(method, LevenbergMarquardt)

            def evaluate(u: Array) -> tuple[Array, Array]:
                r, jacobian = problem.evaluate(z + turn @ u, noise)
                return r, jacobian @ turn

            most, tolerance = method.max_steps, method.tolerance
            end = descend(
                evaluate,
                begin(start, r.size, 1e3),
                most,
                tolerance,
                dof,
                floor,
                ridge=1.0,
                patience=most,
                least=level,
            )
            # Rounding errors can hide a decrease of the cost, so a distance of 100 tolerances from
            # the minimum is accepted.
            near = jnp.asarray(end.settled) | (end.distance <= 100 * method.tolerance)
            at, converged, count = jnp.asarray(end.z), near, end.steps
        return z + turn @ at, jnp.asarray(converged), rounds + 1, steps + count

    def going(carry) -> Any:
        _, converged, rounds, _ = carry
        most = method.most_rounds if isinstance(method, Optax) else largest_rounds
        return ((rounds < 2) | ~converged) & (rounds < most)

    zero = jnp.zeros((), jnp.int32)
    z, converged, _, steps = jax.lax.while_loop(
        going, around, (jnp.asarray(z), jnp.asarray(False), zero, zero)
    )
    tolerance = 1e-8 if problem.is_steady else 1e-3
    most = method.max_steps if isinstance(method, LevenbergMarquardt) else 0
    evaluate = functools.partial(problem.evaluate, noise=noise)
    end = descend(evaluate, begun(problem, z), 1, tolerance, dof, floor)
    end = eqx.tree_at(
        lambda s: (s.steps, s.settled, s.done),
        end,
        (steps.astype(jnp.int32), converged | end.settled, steps < most),
    )
    return with_values(problem, end)


turned_jit = interruptible_jit(in_turned_coordinates)


def with_values(problem: Problem, end: Descent) -> Descent:
    """Return the final state `end` with its parameter values `x` and their derivatives `slope`."""
    values = problem.physical(end.z), problem.values_and_slopes(end.seen)[1]
    return eqx.tree_at(lambda s: (s.x, s.slope), end, values)


SEARCH = 0.9  # share of the search in the computing time of a fit, for the progress report
LANES = 16  # number of searches whose steps run in one call


def begun(problem: Problem, z: Any) -> Descent:
    """Return the state of a search that begins at the coordinates `z`. The first step is at most
    `problem.spans()` in each coordinate, about the size of the values.
    """
    return begin(z, problem.rows(), problem.spans())


def advance_search(
    problem: Problem, method: Any, state: Descent, until: int, noise: Any, dof: Any
) -> Descent:
    """Continue the search from `state` to its end or to step `until`. Problems that differ only in
    their weights share a compiled program.
    """
    return Run(problem, method, dof, 1e-300).advance(state, until, noise)


class Run:
    """Searches of one problem. The object counts steps, collects notices, and stores in
    `interrupted` whether Ctrl-C stopped a search.
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
        """True if one compiled call makes all steps of a search."""
        return self.problem.is_steady or not self.is_newton

    @property
    def has_lanes(self) -> bool:
        """True if `together()` is faster than separate searches and the Jacobians are small."""
        numbers = LANES * self.problem.rows() * self.problem.x0.size
        return (
            not self.in_one
            and isinstance(self.problem.objective, AbstractSimulation)
            and isinstance(self.problem.engine, OnSamples)
            and 8 * numbers <= 2**26  # [bytes] largest size of the Jacobians of one call
        )

    def one(self, state: Descent, noise: float) -> Descent:
        """Search from one start. After Ctrl-C, return the last state if its cost is finite."""
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
        """Yield the states of a search up to its end or step `until`. Compiled calls are short, so
        that Ctrl-C loses little work and progress is reported.
        """
        steps = int(state.steps)
        # Without a progress report, the first call computes about 50 000 residuals.
        least, residuals = 3, 50_000
        chunk = least if self.say else max(least, residuals // self.problem.rows())
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
        """Continue a search to its end or to step `until`, and return its last state."""
        for now in self.in_parts(state, until, noise):
            state = now
        return state

    def together(self, states: Sequence[Descent], until: int, noise: Any) -> list[Descent]:
        """Continue at most `LANES` searches from `states` to step `until` in one call. Their
        simulations run in parallel (see `frictax.engine.on_samples.lanes`).
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
        # Single numbers are read faster from NumPy arrays than from JAX arrays.
        return jax.tree.unflatten(jax.tree.structure(state), [np.asarray(x) for x in end])

    def _how(self, until: int, noise: Any) -> tuple[Any, ...]:
        tolerance = np.float64(self.method.tolerance)
        return np.int32(until), np.float64(noise), tolerance, self.dof, self.floor


class _Pace:
    """The progress reports of a search. The remaining time is extrapolated from the decrease of
    the distance to the minimum between the last two reports.
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
            f"step {int(state.steps)}: cost {float(state.cost):.6g}, {now:.2g} standard errors"
            f" from the end, {seconds:.1f} s",
            share,
            left,
        )


# Numbers of steps after which only the best quarter of many searches continues.
_RUNGS = (3, 7, 15)
# With at least `_MANY` starts and `_WORTH` residuals, compiling the program of `together` saves
# time.
_MANY, _WORTH = 2 * LANES, 100_000


def successive_halving(run: Run, states: list[Descent], noise: float) -> tuple[Descent, np.ndarray]:
    """Search from all `states`. Return the best final state, and the final costs of all searches.

    After each number of steps in `_RUNGS`, the best quarter of the searches continues. The search
    from the first start always continues, so that the result is never worse than that of a single
    search from this start. Each processor runs one search at a time. If there are many starts, one
    compiled call advances `LANES` searches, in a third of the time of separate calls.
    The last part of each search runs separately, because the number of steps to the end ranges from
    6 to 100.

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
    if not has_lanes:  # the first search runs alone, because it compiles the common program
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
    """Group the starts `going`; one compiled call continues the searches of one group."""
    if not has_lanes or 2 * len(going) < LANES:
        return [[i] for i in going]
    parts = np.array_split(going, -(-len(going) // LANES))
    return [part.tolist() for part in parts]


def _hopeful(run: Run, states: list[Descent], live: list[int]) -> list[int]:
    """Return the indices of the starts that continue: the first start, and the best quarter of
    `live` (at least two). Searches within one standard error of a better search do not continue.
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
    """Return the fractions of the total work at which the searches up to each number of steps in
    `rungs` begin and end. A search is assumed to end after 30 steps, a typical number.
    """
    work, before = [0.0], 0
    for until in rungs:
        work.append(work[-1] + starts * (max(min(until, 30), before + 1) - before))
        starts, before = max(3, -(-starts // 4)), until
    ends = SEARCH * np.asarray(work) / work[-1]
    return list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))


BACK = (0.0, 2.0)  # [coordinates] distances of restarted values from their start values


def find_strayed(problem: Problem, x: Float[np.ndarray, "*k p"]) -> Bool[np.ndarray, "*k p"]:
    """Return a mask of the values whose distance from their bound changed by a factor of more than
    100. For example, a search for a Stribeck force can end at 700 times the start value of `fexp`,
    where the cost is flat.
    """
    one_sided = np.broadcast_to(problem.one_sided(), x.shape)
    ratio = np.divide(x - problem.origin, problem.size, out=np.ones_like(x), where=one_sided)
    return (np.abs(ratio) < 1 / 1e2) | (np.abs(ratio) > 1e2)


def reset_strayed(problem: Problem, end: Any, back: float) -> Float[np.ndarray, "*k p"] | None:
    """Return the final coordinates of searches with strayed values (see `find_strayed`) reset to
    +-`back`, or None if no value strayed. A start value has the coordinate 0; the new coordinate
    has the opposite sign of the final coordinate.
    """
    z = np.asarray(end.z)
    away = find_strayed(problem, np.asarray(end.x)) & np.isfinite(np.asarray(end.cost))[..., None]
    return np.where(away, -back * np.sign(z), z) if away.any() else None


def restart_from_bounds(run: Run, state: Descent, noise: float) -> Descent:
    """Search again from `state` with its strayed values reset (see `reset_strayed`). Return the
    best final state, or `state` if no search finds a lower cost.

    Next to its bound, a value has so little effect that no search moves it back. For example, a
    Stribeck force that became 0 stays 0. The restart shows whether the data require this force.
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
