"""Search many problems of equal structure together: one compiled call searches 32 of them."""

import dataclasses
import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int

from frictax.interrupts import Workers
from frictax.notice import Notice
from frictax.programs import cached_jit
from frictax.progress import Work

from .problem.objectives import PreparedRecord
from .problem.problem import NOISE_UPDATES, Problem
from .problem.simulations import LARGEST_RISE, FreeRun, without_rounding
from .search.levenberg_marquardt import Descent, descend
from .search.methods import LevenbergMarquardt
from .search.multistart import search_over_edges
from .search.run import BACK, Run, begun, in_turned_coordinates, reset_strayed, with_values

_TOGETHER = 32  # number of fits in one compiled call

Length = Callable[[int], int]


def search_together(
    problems: Sequence[Problem],
    method: LevenbergMarquardt,
    work: Work,
    length: Length | None = None,
) -> tuple[list[Problem], list[Descent], list[list[Notice]]]:
    """Minimise the cost of many problems, each with one record. Return the problems (with corrected
    initial states of windows), the final states of the searches, and notices.

    With the function `length` (free runs only), a record of n samples is padded to `length(n)`
    samples, so that records of different lengths share a compiled program.
    """
    is_steady = problems[0].is_steady
    parts = work.parts({" fits": 2.0, " edges": 1.0 * (not is_steady)})
    filled = [_fill(p, length) for p in problems] if length else list(problems)
    ends = _together(filled, method, parts[" fits"])

    def search_again(change: Callable[[Problem, np.ndarray], Problem], most: list[float]) -> None:
        """Search the changed problems again; keep result i if its cost is below `most[i]`."""
        again = [change(p, np.asarray(e.x)) for p, e in zip(filled, ends, strict=True)]
        moved = [i for i, (a, b) in enumerate(zip(again, filled, strict=True)) if a is not b]
        begin = [np.asarray(ends[i].z) for i in moved]
        more = _together([again[i] for i in moved], method, parts[" fits"], begin)
        for i, end in zip(moved, more, strict=True):
            if float(end.cost) < most[i]:
                steps = np.asarray(ends[i].steps + end.steps, np.int32)
                filled[i], ends[i] = again[i], dataclasses.replace(end, steps=steps)

    for _ in range(NOISE_UPDATES):
        search_again(Problem.with_noise_found, [np.inf] * len(ends))
    # Corrected initial states are worse if the model predicts kinks of the motion that the record
    # does not contain. If the cost rises by more than 5 %, the result of the first search is used.
    search_again(without_rounding, [LARGEST_RISE * float(e.cost) for e in ends])
    notices: list[list[Notice]] = [[] for _ in problems]
    if not is_steady:
        done = itertools.count(1)

        def on(problem: Problem, end: Descent) -> tuple[Descent, list[Notice]]:
            dof = max(int(np.sum(problem.weights() > 0)) - problem.x0.size, 1)
            run = _OneOfMany(problem, method, dof, 1e-300)
            made = search_over_edges(run, end, 1.0), run.notices
            parts[" edges"].count(next(done), len(problems), "fits looked at")
            return made

        with Workers() as pool:
            made = pool.map(on, filled, ends)
        ends, notices = [end for end, _ in made], [said for _, said in made]
    cut = [_cut(*one) for one in zip(problems, filled, ends, strict=True)]
    # A problem without added samples may have a new noise estimate or new initial states.
    every = zip(problems, filled, cut, ends, strict=True)
    return [q if a is b else p for p, q, a, b in every], cut, notices


def _fill(problem: Problem, length: Length) -> Problem:
    """Return the problem with added samples, which have weight 0 and the last sample's inputs."""
    (one,) = problem.prepared
    if not (
        isinstance(problem.objective, FreeRun)
        and isinstance(one, PreparedRecord)
        and one.rows is None
        and not one.finer
    ):
        return problem
    n = len(one.t)
    more = length(n) - n
    if more <= 0:
        return problem
    t = np.asarray(one.t)
    # An added time step is a thousandth of the median step, so the state hardly changes in it.
    step = 1e-3 * float(np.median(np.diff(t)))
    tail = t[-1] + step * np.arange(1, more + 1)

    def on(x: Any) -> np.ndarray:
        x = np.asarray(x)
        return np.concatenate([x, np.repeat(x[-1:], more, axis=0)])

    weight = np.asarray(one.weight)
    filled = dataclasses.replace(
        one,
        t=np.concatenate([t, tail]),
        inputs={name: on(u) for name, u in one.inputs.items()},
        measured=on(one.measured),
        weight=np.concatenate([weight, np.zeros((more, *weight.shape[1:]))]),
        known={name: on(x) for name, x in one.known.items()},
    )
    return dataclasses.replace(problem, prepared=(filled,))


def _cut(problem: Problem, filled: Problem, end: Descent) -> Descent:
    """Return the search state `end` without the rows that `_fill` added to the problem."""
    rows, more = (sum(p.weight.size for p in q.prepared) for q in (problem, filled))
    if rows == more:
        return end

    def cut(x: Any) -> np.ndarray:
        return np.concatenate([np.asarray(x)[:rows], np.asarray(x)[more:]])

    return dataclasses.replace(end, residuals=cut(end.residuals), jacobian=cut(end.jacobian))


def _together(
    problems: Sequence[Problem],
    method: LevenbergMarquardt,
    work: Work,
    starts: Sequence[np.ndarray] | None = None,
) -> list[Descent]:
    """Search each problem from its start values, or from the coordinates in `starts`. Return the
    final states of the searches. Problems of equal structure and shapes share compiled calls.
    """
    kinds: dict[Any, list[int]] = {}
    flat = [jax.tree.flatten(one) for one in problems]
    for i, (leaves, structure) in enumerate(flat):
        key = tuple(
            np.shape(x) if _is_array(x) else x if isinstance(x, bool | int | float) else id(x)
            for x in leaves
        )
        kinds.setdefault((structure, key), []).append(i)
    ends: list[Any] = [None] * len(problems)
    done, lock = 0, threading.Lock()

    def tell(more: int) -> None:
        nonlocal done
        with lock:
            done += more
            work.count(done, len(problems), "fits")

    for places in kinds.values():
        mine = [problems[i] for i in places]
        begin = np.zeros((len(mine), mine[0].x0.size))
        begin = begin if starts is None else np.stack([starts[i] for i in places])
        columns, structure = jax.tree.flatten(
            _of_a_kind(mine, [flat[i][0] for i in places], begin, method, tell)
        )
        for k, i in enumerate(places):
            ends[i] = jax.tree.unflatten(structure, [np.asarray(column[k]) for column in columns])
    return ends


def _of_a_kind(
    problems: Sequence[Problem],
    leaves: Sequence[list[Any]],
    begin: Float[np.ndarray, "k p"],
    method: LevenbergMarquardt,
    tell: Callable[[int], None],
) -> Descent:
    """Search each problem from its row of `begin`; problems differ only in arrays of `leaves`."""
    count, first = len(problems), problems[0]
    weights, measured = (
        [np.ravel(np.asarray(getattr(p.prepared[0], name))) for p in problems]
        for name in ("weight", "measured")
    )
    rows = np.asarray([np.sum(w > 0) for w in weights])
    squares = [np.sum((w * y) ** 2) for w, y in zip(weights, measured, strict=True)]
    floors = 1e-20 * np.asarray(squares) + 1e-300
    dof = np.maximum(rows - first.x0.size, 1.0)

    def search_from(starts: Float[np.ndarray, "k p"], tell: Callable[[int], None]) -> Descent:
        def some(at: int) -> Descent:
            mine = slice(at, at + _TOGETHER)
            states = [begun(*one) for one in zip(problems[mine], starts[mine], strict=True)]
            how = states, method.max_steps, dof[mine], floors[mine]
            end = _call_program(first, leaves[mine], method, *how)
            tell(len(states))
            return end

        with Workers() as pool:
            ends = pool.map(some, range(0, count, _TOGETHER))
        return jax.tree.map(lambda *parts: np.concatenate(parts), *ends)

    ends = search_from(begin, tell)
    # A search hardly moves a value that is next to its bound, so the value is reset, and the search
    # is repeated.
    for back in BACK:
        z = [reset_strayed(p, _state_at(ends, i), back) for i, p in enumerate(problems)]
        if all(one is None for one in z):
            break
        at = [np.asarray(ends.z)[i] if one is None else one for i, one in enumerate(z)]
        again = search_from(np.stack(at), lambda more: None)
        better = again.cost < ends.cost * (1 - 1e-6)
        ends = jax.tree.map(
            lambda a, b, better=better: np.where(
                np.reshape(better, (-1, *(1,) * (a.ndim - 1))), b, a
            ),
            ends,
            again,
        )
    return ends


def _is_array(x: Any) -> bool:
    """Return True if the leaf `x` of a pytree is an array. A Python number belongs to the structure
    of the pytree, because a law selects its formula by a Python exponent.
    """
    return isinstance(x, np.ndarray | np.generic | jax.Array)


def _state_at(ends: Descent, i: int) -> Descent:
    return jax.tree.map(lambda a: np.asarray(a[i]), ends)


class _OneOfMany(Run):
    """The search of one of many problems, by the compiled program that all problems share."""

    def advance(self, state: Descent, until: int, noise: Any) -> Descent:
        assert noise == 1.0  # the common program is compiled for the noise scale 1
        leaves, dof, floor = jax.tree.leaves(self.problem), self.dof, self.floor
        how = [state], until, np.array([dof]), np.array([floor])
        return _state_at(_call_program(self.problem, [leaves], self.method, *how), 0)


def _call_program(
    first: Problem,
    leaves: Sequence[list[Any]],
    method: LevenbergMarquardt,
    states: Sequence[Descent],
    until: int,
    dof: Float[np.ndarray, " k"],
    floors: Float[np.ndarray, " k"],
) -> Descent:
    """Search at most `_TOGETHER` problems from `states` to step `until`. One compiled program
    serves any number of problems that differ from `first` only in the arrays among their `leaves`.
    """
    count = len(states)
    mine = np.minimum(np.arange(_TOGETHER), count - 1)  # unused entries repeat the last problem
    numbers, static = eqx.partition(first, _is_array)
    stacked = [
        np.stack([leaves[i][k] for i in mine]) for k, x in enumerate(leaves[0]) if _is_array(x)
    ]
    arrays = jax.tree.unflatten(jax.tree.structure(numbers), stacked)
    begin = jax.tree.map(lambda *x: np.stack([x[i] for i in mine]), *states)
    limits = np.where(np.arange(_TOGETHER) < count, np.int32(until), np.int32(0))
    tolerance = np.float64(method.tolerance)
    whole = method if first.is_steady else None
    ends = _all(static, whole, tolerance, arrays, begin, limits, dof[mine], floors[mine])
    return jax.tree.unflatten(jax.tree.structure(begin), [np.asarray(x)[:count] for x in ends])


@cached_jit
def _all(
    static,
    method: LevenbergMarquardt | None,
    tolerance: Float[Array, ""],
    arrays,
    states: Descent,
    limits: Int[Array, " k"],
    dof: Float[Array, " k"],
    floors: Float[Array, " k"],
) -> tuple[Array, ...]:
    """Continue search k from `states[k]` to step number `limits[k]`. Return the arrays of the final
    states. In the fit of a law, `method` is given, and one call makes all steps of each search.

    The searches run one after the other. A vectorised batch is slower, because each search takes as
    many steps as the longest search.
    """

    def one(at) -> Descent:
        arrays, state, limit, dof, floor = at
        problem = eqx.combine(arrays, static)
        if method is not None:
            end = in_turned_coordinates(problem, state.z, 1.0, method, dof, floor)
        else:
            evaluate = functools.partial(problem.evaluate_with_kind, noise=1.0)
            end = descend(evaluate, state, limit, tolerance, dof, floor)
        return with_values(problem, end)

    return tuple(jax.tree.leaves(jax.lax.map(one, (arrays, states, limits, dof, floors))))
