"""The search for the least sum of squares of a `Problem`: from one start or many, interruptible,
telling how far it is.
"""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from frictax.interrupts import Workers, may_keep, result_of
from frictax.notice import Notice
from frictax.programs import jitted, kept
from frictax.progress import SILENT, Work

from ..problem.objectives import AbstractSimulation, PreparedRecord, Steady
from ..problem.problem import Problem, residuals_and_jacobian
from . import edges
from .levenberg_marquardt import Descent, begin, descend
from .methods import AbstractMethod, LevenbergMarquardt, Optax

_RUNGS = (3, 7, 15)  # steps of each of many starts after which a quarter goes on
_FIRST = 3  # steps of the first call, unless all steps are short
_SHORT = 50_000  # residuals that are worked out in well below a second
_USUAL = 30  # steps that a search takes
_SEARCH = 0.9  # of the work: what follows it takes the rest
_TURNS = 10  # each in coordinates made anew
_MISSED = 0.03  # of the spread of a free run: a misfit that may be that of another least one
_STAGE = 10  # steps at most for a part of each record
_ROUNDS = 100  # of a fit at the noise scale that the fit before left
_WIDE = 1e100  # a noise beside which every residual is small
# times as far from its bound, or as near, as at its start: a value may have strayed there
_FAR = 1e3
BACK = (0.0, 2.0)  # coordinates beyond their start that strayed values are put back to


class Searched(NamedTuple):
    """The best descent, with the steps of all that led to it, the costs at the ends of all starts,
    the noise scale, whether a key stopped the search, and what is to be said of the way.
    """

    state: Descent
    costs: Float[np.ndarray, " s"]
    noise: float
    interrupted: bool
    told: tuple[Notice, ...]


def search(
    problem: Problem,
    method: Any,
    starts: int,
    spread: float,
    seed: int,
    say: Work = SILENT,
    also: Sequence[np.ndarray] = (),
    first: Any = 0.0,
) -> Searched:
    """From the problem's own start, or from the coordinates `first` in its place, from the values
    in `also`, and from draws about the former.
    """
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
    run = _Run(problem, method, dof, floor, say)
    points = [first + spread * draw for draw in draws]
    points[1:1] = [np.asarray(problem.coordinates(x)) for x in also]
    states = [begun(problem, z) for z in points]
    noise = run.noise()
    state, costs = run.many(states, noise)
    before = float(state.cost)
    try:
        for again in (run.by_stages, run.brought_back):
            state = state if run.interrupted else again(state, noise)
        # both depend on the noise, which depends on the fit
        if (problem.loss.rounds > 1 or problem.priors) and not problem.noise_known:
            for k in range(_ROUNDS):
                if run.interrupted or not np.isfinite(costs).any():
                    break
                last, noise = noise, _noise(problem, state, dof, first=k == 0)
                if k > 0 and abs(noise - last) <= min(1e-4, method.tolerance) * noise:
                    break
                state = run.one(begun(problem, np.asarray(state.z)), noise)
        if not run.interrupted:
            state = run.over_edges(state, noise)
    except KeyboardInterrupt:  # before such a search had got anywhere
        if not may_keep():
            raise
        run.interrupted = True
    costs = np.where(costs == before, float(state.cost), costs)
    state = dataclasses.replace(state, steps=np.array(run.steps, np.int32))
    noise = 1.0 if problem.noise_known else noise
    return Searched(state, costs, noise, run.interrupted, tuple(run.told))


def begun(problem: Problem, z: Any) -> Descent:
    """A search at the coordinates `z`.

    The first steps may be as long as values are large.
    """
    return begin(z, problem.rows(), problem.spans())


def advanced(
    problem: Problem, method: Any, state: Descent, until: int, noise: Any, dof: Any
) -> Descent:
    """A search from `state` to its end or step `until`, by the program that is compiled for the fit
    of `problem`, whatever its weights.
    """
    return _Run(problem, method, dof, 1e-300).advanced(state, until, noise)


def carried_on(
    problem: Problem, method: Any, state: Descent, dof: Any
) -> tuple[Descent, list[Notice]]:
    """The better of the end `state` of a search and of those by stages and from beyond the edges
    about it; what is to be said of the way.
    """
    run = _Run(problem, method, dof, 1e-300)
    return run.over_edges(run.by_stages(state, 1.0), 1.0), run.told


def strayed(problem: Problem, x: Float[np.ndarray, "*k p"]) -> Bool[np.ndarray, "*k p"]:
    """Which values ended far nearer to their bound than they started, or far farther from it."""
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


def _first_periods(measured: Float[np.ndarray, "n c"], left: Float[np.ndarray, "n c"]) -> float:
    """How much of a record one and a half of its periods are; 1 where it does not swing, or the run
    does not miss it.
    """
    x = measured - np.mean(measured, axis=0)
    spread = np.std(x, axis=0)
    parts = [1.0]
    for swing, size, rest in zip(x.T, spread, left.T, strict=True):
        beyond = np.flatnonzero(np.abs(swing) > 0.5 * size)
        turns = beyond[1:][np.diff(np.sign(swing[beyond])) != 0]
        if turns.size > 5 and np.sqrt(np.mean(rest**2)) > _MISSED * size:
            parts.append(turns[3] / len(x))
    return min(parts)


class _Run:
    def __init__(
        self, problem: Problem, method: Any, dof: Any, floor: float, say: Work = SILENT
    ) -> None:
        self.problem, self.method, self.say = problem, method, say
        self.dof, self.floor = np.float64(dof), np.float64(floor)
        self.steps, self.interrupted = 0, False  # of all that was searched so far
        self.told: list[Notice] = []

    def one(self, state: Descent, noise: float) -> Descent:
        """From one start; what a key leaves of it, unless that is nothing."""
        pace = _Pace(self.method, self.say)
        try:
            for now in self.in_parts(state, self._most(), noise):
                state = now
                pace.tell(state)
        except KeyboardInterrupt:
            if not may_keep() or not np.isfinite(state.cost):
                raise
            self.interrupted = True
        self.steps += int(state.steps)
        return state

    def in_parts(self, state: Descent, until: int, noise: Any) -> Iterator[Descent]:
        """A search to its end or step `until`, in calls short enough that a key loses little and
        that it can be told how far it is.
        """
        steps = int(state.steps)
        chunk = _FIRST if self.say else max(_FIRST, _SHORT // self.problem.rows())
        chunk = until if self._in_one() else chunk
        while steps < until:
            before, began = steps, time.perf_counter()
            steps = min(steps + chunk, until)
            state = self.advanced(state, steps, noise)
            yield state
            if bool(state.done):
                break
            each = (time.perf_counter() - began) / (steps - before)
            chunk = int(np.clip((0.2 if self.say else 0.5) / max(each, 1e-6), 1, 1000))

    def noise(self) -> float:
        """The noise scale that a search begins with: least squares, where the weights of the data
        say nothing of their size.
        """
        relative = isinstance(self.problem.objective, Steady) and not self.problem.noise_known
        return _WIDE if relative and self.problem.loss.rounds > 1 else 1.0

    def by_stages(self, state: Descent, noise: float) -> Descent:
        """The better of `state` and the end of a search that sees one and a half periods of each
        free run first, then twice as much, and so on.

        Only where a run that swings is still missed by a share of its spread: from a start whose
        period is wrong, a long run has a least misfit for each period that it may be late, and one
        that hits stops for each hit that it may miss.
        """
        problem, parts, first = self.problem, [], 0
        if not (
            isinstance(problem.objective, AbstractSimulation)
            and isinstance(self.method, LevenbergMarquardt)
            and all(isinstance(p, PreparedRecord) and p.rows is None for p in problem.prepared)
        ):
            return state
        for prepared in problem.prepared:
            w = np.asarray(prepared.weight)
            left = np.asarray(state.residuals)[first : first + w.size].reshape(w.shape)
            first += w.size
            parts.append(_first_periods(w * np.asarray(prepared.measured), left))
        if not any(part < 1.0 for part in parts):
            return state
        shown = {"percent": 100 * min(parts), "stages": 1}
        z = np.zeros_like(np.asarray(state.z))
        near = dataclasses.replace(self.method, tolerance=0.1)
        while any(part < 1.0 for part in parts):
            weights = [
                np.where(np.arange(len(p.weight))[:, None] < part * len(p.weight), p.weight, 0.0)
                for p, part in zip(problem.prepared, parts, strict=True)
            ]
            seen = eqx.tree_at(lambda q: [p.weight for p in q.prepared], problem, weights)
            dof = max(sum(np.sum(w > 0) for w in weights) - z.size, 1)
            stage = _Run(seen, near, dof, 0.0)
            end = stage.advanced(begun(seen, z), _STAGE, noise)
            z, parts = np.asarray(end.z), [2.0 * part for part in parts]
            self.steps += int(end.steps)
            shown["stages"] += 1
        again = self.one(begun(problem, z), noise)
        if not float(again.cost) < float(state.cost) * (1 - 1e-6):
            return state
        self.told.append(Notice("search-by-stages", "", shown))
        return again

    def brought_back(self, state: Descent, noise: float) -> Descent:
        """The better of `state` and the end of a search from there with the values that strayed put
        back to where they began.

        Next to its bound a value acts so little that the search does not lead it back: a Stribeck
        force lost on the way stays lost. Where the data ask for none, this only tells so.
        """
        if not np.isfinite(state.cost) or not isinstance(self.method, LevenbergMarquardt):
            return state
        for back in BACK:
            z = put_back(self.problem, state, back)
            if self.interrupted or z is None:
                break
            again = self.one(begun(self.problem, z), noise)
            if float(again.cost) < float(state.cost) * (1 - 1e-6):
                state = again
        return state

    def over_edges(self, state: Descent, noise: float) -> Descent:
        """The better of `state` and where searches beyond the edges about it end."""
        if not (
            isinstance(self.problem.objective, AbstractSimulation)
            and isinstance(self.method, LevenbergMarquardt)
            and edges.may_gain(self.problem, state)
        ):
            return state
        end = edges.over_edges(self.problem, state, noise, float(self.dof), self.advanced, self.say)
        self.interrupted = end.interrupted
        self.steps += end.steps
        self.told += end.told
        return end.state

    def many(self, states: list[Descent], noise: float) -> tuple[Descent, np.ndarray]:
        """From one start, or from many, as many at a time as there are processors: after each of
        `_RUNGS` steps a quarter goes on, and the first: more starts are never worse than one.

        One after the other and not in one `vmap`: the starts need 6 to 100 steps each, and in step
        all would take the most.

        **Source:** K. Jamieson, A. Talwalkar, "Non-stochastic best arm identification and
        hyperparameter optimization", 2016 (successive halving).
        """
        if len(states) == 1:
            state = self.one(states[0], noise)
            return state, np.asarray([state.cost])
        halves = isinstance(self.method, LevenbergMarquardt) and not self.problem.is_steady
        rungs = [n for n in _RUNGS if halves and n < self._most()]
        live = list(range(len(states)))
        # The first by itself: it compiles.
        rungs = [*rungs, self._most()]
        states[0] = self._to(states[0], rungs[0], noise)
        shares = _shares(len(states), rungs)
        try:
            with Workers() as pool:
                for until, (first, last) in zip(rungs, shares, strict=True):
                    jobs = {
                        i: pool.submit(self._to, states[i], until, noise)
                        for i in live
                        if not bool(states[i].done) and int(states[i].steps) < until
                    }
                    for k, (i, job) in enumerate(jobs.items()):
                        states[i] = result_of(job)
                        self.say(
                            f"{k + 1} of {len(jobs)} starts: least cost"
                            f" {min(float(s.cost) for s in states):.6g}",
                            first + (last - first) * (k + 1) / len(jobs),
                        )
                    live = self._hopeful(states, live)
        except KeyboardInterrupt:
            if not may_keep():
                raise
            self.interrupted = True
        costs = np.asarray([float(s.cost) for s in states])
        best = states[int(np.argmin(np.where(np.isfinite(costs), costs, np.inf)))]
        self.steps += int(best.steps)
        return best, costs

    def _to(self, state: Descent, until: int, noise: Any) -> Descent:
        """The end of `in_parts`."""
        for now in self.in_parts(state, until, noise):
            state = now
        return state

    def _hopeful(self, states: list[Descent], live: list[int]) -> list[int]:
        """The best quarter of those, at least two, without those within a standard error of a
        better one; and the first.
        """
        kept: list[int] = []
        for i in sorted(live, key=lambda i: np.nan_to_num(float(states[i].cost), nan=np.inf)):
            enough = len(kept) >= max(2, -(-len(live) // 4))
            near = any(
                np.sum((np.asarray(s.jacobian) @ (np.asarray(states[i].z) - np.asarray(s.z))) ** 2)
                < 2.0 * float(s.cost) / self.dof
                for s in (states[k] for k in kept)
            )
            if i == 0 or not (enough or near):
                kept.append(i)
        return kept

    def _most(self) -> int:
        return self.method.max_steps if isinstance(self.method, LevenbergMarquardt) else 1

    def _in_one(self) -> bool:
        """Whether a search is one call, whatever its length."""
        return self.problem.is_steady or not isinstance(self.method, LevenbergMarquardt)

    def advanced(self, state: Descent, until: int, noise: Any) -> Descent:
        scale = np.float64(noise)
        if self._in_one():
            end = _turned_jit(self.problem, state.z, scale, self.method, self.dof, self.floor)
            return jax.tree.map(np.asarray, end)
        end = _by_newton(
            self.problem,
            state,
            np.int32(until),
            scale,
            np.float64(self.method.tolerance),
            self.dof,
            self.floor,
        )
        # As numpy's, whose numbers cost less to look at.
        return jax.tree.unflatten(jax.tree.structure(state), [np.asarray(x) for x in end])


class _Pace:
    """How fast a search goes: lines of progress. The time left is what the fall of the distance
    between the last two lines promises.
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
            share = _SEARCH * seconds / (seconds + left)
        self.last, self.at = now, seconds
        self.say(
            f"step {int(state.steps)}: cost {float(state.cost):.6g}, {now:.2g} standard errors to"
            f" go, {seconds:.1f} s",
            share,
            left,
        )


def _shares(starts: int, rungs: Sequence[int]) -> list[tuple[float, float]]:
    """Between which shares of the work each rung lies, if a quarter goes on after each, and what
    goes on is done after `_USUAL` steps.
    """
    work, before = [0.0], 0
    for until in rungs:
        work.append(work[-1] + starts * (max(min(until, _USUAL), before + 1) - before))
        starts, before = max(3, -(-starts // 4)), until
    ends = _SEARCH * np.asarray(work) / work[-1]
    return list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))


@kept
def _by_newton(
    problem: Problem, state: Descent, until, noise, tolerance, dof, floor
) -> tuple[Array, ...]:
    """The entries of the `Descent` that `state` leads to."""
    end = descend(
        lambda z: problem.evaluate_with_kind(z, noise), state, until, tolerance, dof, floor
    )
    return tuple(jax.tree.leaves(_with_values(problem, end)))


def in_turned_coordinates(
    problem: Problem, z: Any, noise: Any, method: AbstractMethod, dof: Any, floor: Any
) -> Descent:
    """In coordinates turned and scaled by the singular vectors of the Jacobian, so that 1 is about
    one standard error; each further round begins with the coordinates of the last one's end.

    For optax's transformations, and for laws, whose curves can bend so much that columns of one
    length are not enough.
    """

    def around(carry) -> Any:
        z, _, rounds, steps = carry
        r, jacobian = problem.evaluate(z, noise)
        level = jnp.sqrt(jnp.maximum(jnp.sum(r * r), floor) / dof)
        _, s, vt = jnp.linalg.svd(jacobian / level, full_matrices=False)
        # Directions that the data do not see are not blown up beyond 1e4.
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
            # Where rounding hides what a step gains, a hundred times the tolerance is near enough.
            near = jnp.asarray(end.settled) | (end.distance <= 100 * method.tolerance)
            at, converged, count = jnp.asarray(end.z), near, end.steps
        return z + turn @ at, jnp.asarray(converged), rounds + 1, steps + count

    def going(carry) -> Any:
        _, converged, rounds, _ = carry
        return (rounds < 2) | (~converged & (rounds < _TURNS))

    zero = jnp.zeros((), jnp.int32)
    z, converged, _, steps = jax.lax.while_loop(
        going, around, (jnp.asarray(z), jnp.asarray(False), zero, zero)
    )
    tolerance = 1e-8 if problem.is_steady else 1e-3
    most = method.max_steps if isinstance(method, LevenbergMarquardt) else 0
    end = descend(lambda z: problem.evaluate(z, noise), begun(problem, z), 1, tolerance, dof, floor)
    end = eqx.tree_at(
        lambda s: (s.steps, s.settled, s.done),
        end,
        (steps.astype(jnp.int32), converged | end.settled, steps < most),
    )
    return _with_values(problem, end)


_turned_jit = jitted(in_turned_coordinates)


def _with_values(problem: Problem, end: Descent) -> Descent:
    values = problem.physical(end.z), problem.values_and_slopes(end.seen)[1]
    return eqx.tree_at(lambda s: (s.x, s.slope), end, values)


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
