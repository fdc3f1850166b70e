"""The searches of many fits of one kind, some at a time in a compiled call."""

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
from .problem.problem import Problem
from .problem.read_starts import without_rounding
from .problem.simulations import FreeRun
from .search.compiled import in_turned_coordinates
from .search.levenberg_marquardt import Descent, descend
from .search.methods import LevenbergMarquardt
from .search.multistart import carried_on
from .search.run import Run, begun
from .search.strayed import BACK, put_back

_TOGETHER = 32  # fits of one call
_RISEN = 1.05  # times the sum of squares: more is left with starts that were to be better
_TAIL = 1e-3  # of the usual step: samples that fill up a record, so that nothing happens in them

Length = Callable[[int], int]


def searched(
    problems: Sequence[Problem],
    method: LevenbergMarquardt,
    work: Work,
    length: Length | None = None,
) -> tuple[list[Problem], list[Descent], list[list[Notice]]]:
    """The problems of one record each, with the starts of windows as they were read in the end;
    where the search of each ends, as `search` would; and what is to be said of its way.

    `length`: to how many samples a record of so many is filled up, so that records of
    different lengths share a program; only of free runs.
    """
    is_steady = problems[0].is_steady
    names = {" fits": 2.0, " edges": 1.0 * (not is_steady)}
    parts = work.parts(names)
    filled = [_filled(p, length) for p in problems] if length else list(problems)
    ends = _together(filled, method, parts[" fits"])
    again = [without_rounding(p, np.asarray(e.x)) for p, e in zip(filled, ends, strict=True)]
    moved = [i for i, (a, b) in enumerate(zip(again, filled, strict=True)) if a is not b]
    if moved:
        begin = [np.asarray(ends[i].z) for i in moved]
        more = _together([again[i] for i in moved], method, parts[" fits"], begin)
        for i, end in zip(moved, more, strict=True):
            # a machine whose kinks are not the record's mends nothing
            if float(end.cost) < _RISEN * float(ends[i].cost):
                steps = np.asarray(ends[i].steps + end.steps, np.int32)
                ends[i] = dataclasses.replace(end, steps=steps)
                filled[i] = again[i]
    told: list[list[Notice]] = [[] for _ in problems]
    if not is_steady:
        done = itertools.count(1)

        def on(problem: Problem, end: Descent) -> tuple[Descent, list[Notice]]:
            dof = max(int(np.sum(problem.weights() > 0)) - problem.x0.size, 1)
            made = carried_on(_OneOfMany(problem, method, dof, 1e-300), end)
            parts[" edges"].count(next(done), len(problems), "fits looked at")
            return made

        with Workers() as pool:
            made = pool.map(on, filled, ends)
        ends, told = [end for end, _ in made], [said for _, said in made]
    if length is None:
        return filled, ends, told
    return list(problems), [_cut(*one) for one in zip(problems, filled, ends, strict=True)], told


def _filled(problem: Problem, length: Length) -> Problem:
    """Its record filled up with samples that weigh nothing, close after its last one, under the
    inputs at its end.
    """
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
    step = _TAIL * float(np.median(np.diff(t)))
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
    """The end of a search with `filled`, as of `problem`."""
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
    """Where the searches end, from each problem's own start or the coordinates `starts`; those of
    one kind some at a time in a compiled call.
    """
    kinds: dict[Any, list[int]] = {}
    flat = [jax.tree.flatten(one) for one in problems]
    for i, (leaves, structure) in enumerate(flat):
        told = tuple(np.shape(x) if _is_array(x) else _plain(x) for x in leaves)
        kinds.setdefault((structure, told), []).append(i)
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
    """Of problems that differ in numbers alone, which stand among their `leaves`, from the
    coordinates `begin`.
    """
    count, first = len(problems), problems[0]
    weights, measured = (
        [np.ravel(np.asarray(getattr(p.prepared[0], name))) for p in problems]
        for name in ("weight", "measured")
    )
    rows = np.asarray([np.sum(w > 0) for w in weights])
    squares = [np.sum((w * y) ** 2) for w, y in zip(weights, measured, strict=True)]
    floors = 1e-20 * np.asarray(squares) + 1e-300
    dof = np.maximum(rows - first.x0.size, 1.0)

    def fitted(starts: Float[np.ndarray, "k p"], tell: Callable[[int], None]) -> Descent:
        def some(at: int) -> Descent:
            mine = slice(at, at + _TOGETHER)
            states = [begun(*one) for one in zip(problems[mine], starts[mine], strict=True)]
            how = states, method.max_steps, dof[mine], floors[mine]
            end = _called(first, leaves[mine], method, *how)
            tell(len(states))
            return end

        with Workers() as pool:
            ends = pool.map(some, range(0, count, _TOGETHER))
        return jax.tree.map(lambda *parts: np.concatenate(parts), *ends)

    ends = fitted(begin, tell)
    # as in one fit: next to its bound a value acts so little that no search leads back
    for back in BACK:
        z = [put_back(p, _of(ends, i), back) for i, p in enumerate(problems)]
        if all(one is None for one in z):
            break
        at = [np.asarray(ends.z)[i] if one is None else one for i, one in enumerate(z)]
        again = fitted(np.stack(at), lambda more: None)
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
    """A Python number is none: such an exponent says which law it is, and costs no power."""
    return isinstance(x, np.ndarray | np.generic | jax.Array)


def _plain(x: Any) -> Any:
    return x if isinstance(x, bool | int | float) else id(x)


def _of(ends: Descent, i: int) -> Descent:
    return jax.tree.map(lambda a: np.asarray(a[i]), ends)


class _OneOfMany(Run):
    """A search of one of many problems, by the program of them all."""

    def advanced(self, state: Descent, until: int, noise: Any) -> Descent:
        assert noise == 1.0  # as of them all
        leaves, dof, floor = jax.tree.leaves(self.problem), self.dof, self.floor
        how = [state], until, np.array([dof]), np.array([floor])
        return _of(_called(self.problem, [leaves], self.method, *how), 0)


def _called(
    first: Problem,
    leaves: Sequence[list[Any]],
    method: LevenbergMarquardt,
    states: Sequence[Descent],
    until: int,
    dof: Float[np.ndarray, " k"],
    floors: Float[np.ndarray, " k"],
) -> Descent:
    """Searches from `states` to step `until`, of `_TOGETHER` problems at most that differ from the
    `first` in the numbers among their `leaves` alone, by one program for any number of them.
    """
    count = len(states)
    mine = np.minimum(np.arange(_TOGETHER), count - 1)  # those beyond the last one do not begin
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
    """The leaves of where searches from `states` are at step `limits`; of laws, whose search is one
    call, those of their ends by a `method`.

    One after the other: in step, all would take the most steps of any.
    """

    def one(at) -> Descent:
        arrays, state, limit, dof, floor = at
        problem = eqx.combine(arrays, static)
        if method is not None:
            end = in_turned_coordinates(problem, state.z, 1.0, method, dof, floor)
        else:
            evaluate = functools.partial(problem.evaluate_with_kind, noise=1.0)
            end = descend(evaluate, state, limit, tolerance, dof, floor)
        x, slope = problem.physical(end.z), problem.values_and_slopes(end.seen)[1]
        return dataclasses.replace(end, x=x, slope=slope)

    return tuple(jax.tree.leaves(jax.lax.map(one, (arrays, states, limits, dof, floors))))
