"""Many fits of one model to as many measurements of one experiment."""

import dataclasses
import itertools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.annotations import ArrayLike, Checked
from frictax.engine import OnSamples
from frictax.interrupts import Workers, as_part
from frictax.laws import AbstractLaw
from frictax.measurements import Record, Sweep
from frictax.mechanism import Machine
from frictax.programs import kept
from frictax.progress import Progress, Work, watched

from .checks import check_arguments
from .fit import refuse
from .fit_data import Search, usual_method
from .many_data import numbers, records_of
from .posing import fit_engine, pose, pose_sweep
from .problem.losses import AbstractLoss, Squares
from .problem.objectives import AbstractObjective, FreeRun, Windows
from .problem.problem import Problem, bounds
from .problem.read_starts import without_rounding
from .problem.steady import SteadyFriction
from .problem.ties import Tied
from .result.answer import answer
from .result.estimates import Replicates
from .result.fit_result import FitResult
from .search.levenberg_marquardt import Descent, descend
from .search.methods import AbstractMethod, LevenbergMarquardt
from .search.multistart import (
    BACK,
    begun,
    beyond_edges,
    in_turned_coordinates,
    put_back,
    search,
)
from .steady_model import assembled

_TOGETHER = 32  # fits of one call


def fit_many(
    model: AbstractLaw | type[AbstractLaw] | SteadyFriction | Machine,
    data: Checked[Sweep | Record | Sequence[Record]],
    measured: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    free: str | Iterable[str] | None = None,
    tied: Tied | None = None,
    method: AbstractMethod | None = None,
    loss: AbstractLoss | None = None,
    level: float = 0.95,
    objective: AbstractObjective | None = None,
    engine: OnSamples | None = None,
    progress: Checked[bool | Progress] = False,
) -> Replicates:
    """Fit one model to many measurements, each by itself: records of many machines, or measurements
    (or draws) of one experiment.

    By least squares and Levenberg-Marquardt 32 at a time in one compiled call, on each processor;
    by other ways one after the other. How many they are compiles nothing anew, nor do other
    numbers; records of another length do.

    **Arguments:**

    - `model`: a law or `SteadyFriction`, for records a machine, whose values are every fit's start.
    - `data`: records with the same channels, each with inputs and times of its own; or the sweep or
      record at whose rows, or under whose inputs, everything was `measured`: its own forces or
      outputs are not looked at.
    - `measured`: for a sweep forces (k, n) [N or N.m]; for a record output -> (k, n) in SI, or (k,
      n) where it has one output; for many records nothing.
    - `free`, `tied`, `method`, `loss`, `level`, `progress`: as in `fit`; `objective`, `engine`: for
      records only.

    **Returns:** `Replicates`: values of all k fits, as `fit` would give them, for bootstrap and
    coverage; intervals by the account of a single fit, when they are asked for.

    **Raises:** `ValueError` for measurements of another shape, and for records whose channels
    differ.

    How widely 200 repeats of one sweep would scatter, and what one fit says of it:

    >>> import frictax as fx, numpy as np
    >>> v = np.linspace(0.5, 8.0, 16)
    >>> law = fx.Coulomb(F_Coulomb=6.0, F_prop=0.2)
    >>> noise = 0.05 * np.random.default_rng(0).standard_normal((200, 16))
    >>> f = 6.0 + 0.2 * v
    >>> sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    >>> many = fx.fit_many(law, sweep, f + noise)
    >>> many.names, many.values.shape
    (('F_Coulomb', 'F_prop'), (200, 2))
    >>> np.std(many.values, axis=0).round(3), np.mean(many.standard_errors, axis=0).round(3)
    (array([0.026, 0.005]), array([0.032, 0.006]))
    """
    with watched(progress, "Fitting many") as work:
        # raises for what they cannot be
        Search(method, loss, level, 1, 0.0, 0, work)
        how = method, loss, level, objective, engine, work
        return _fitted(model, data, measured, free, tied, *how)


def _fitted(
    model: Any,
    data: Any,
    measured: Any,
    free: Any,
    tied: Any,
    method: AbstractMethod | None,
    loss: AbstractLoss | None,
    level: float,
    objective: AbstractObjective | None,
    engine: OnSamples | None,
    work: Work,
) -> Replicates:
    loss = Squares() if loss is None else loss
    if isinstance(data, Sweep):
        refuse({"objective": objective, "engine": engine}, "a record", "a sweep")
        method = LevenbergMarquardt() if method is None else method
        start = assembled(model, data, None, None, None)
        problem, _ = pose_sweep(start, data, free, (), loss, tied=tied)
        forces = None if measured is None else numbers(measured, data.n)
        if forces is None:
            raise ValueError(
                f"`measured` must have shape (k, {data.n}), one column for each row of the sweep,"
                f" got {np.shape(np.asarray(measured))}."
            )
        (prepared,) = problem.prepared
        prepared = [dataclasses.replace(prepared, measured=f[:, None]) for f in forces]
        sources: list[Any] = [data] * len(prepared)
    else:
        method = usual_method() if method is None else method
        sources = records_of(data, measured)
        how = (objective, engine, method, loss, tied)
        problem, prepared = _of_records(model, sources, free, *how)
    names = tuple(name for u in problem.unknowns for name in u.names)

    def one_of(i: int) -> Problem:
        return dataclasses.replace(problem, prepared=(prepared[i],))

    def found(i: int, state: Any, costs: np.ndarray, noise: float) -> FitResult:
        label = sources[i].name or type(sources[i]).__name__
        return answer(
            model, one_of(i), {label: sources[i]}, state, costs, noise, method, level, [], 0.0
        )

    if isinstance(method, LevenbergMarquardt) and loss.rounds == 1:
        again = isinstance(problem.objective, Windows)
        parts = work.parts(
            {" fits": 2.0, " again": 2.0 * again, " edges": 1.0 * (not problem.is_steady)}
        )
        ends = _together(problem, prepared, method, parts[" fits"])
        if again:
            for i, end in enumerate(ends):
                prepared[i] = without_rounding(one_of(i), np.asarray(end.x)).prepared[0]
            ends = _together(problem, prepared, method, parts[" again"])

        done = itertools.count(1)

        def beyond(i: int) -> Descent:
            if problem.is_steady:
                return ends[i]
            mine = one_of(i)
            dof = max(int(np.sum(mine.weights() > 0)) - mine.x0.size, 1)
            one = beyond_edges(mine, method, ends[i], dof)
            parts[" edges"].count(next(done), len(prepared), "fits looked at")
            return one

        with Workers() as pool:
            ends = pool.map(beyond, range(len(prepared)))
        return Replicates(
            names,
            np.stack([e.x for e in ends]),
            np.asarray([bool(e.settled) for e in ends]),
            level,
            lambda: _errors(
                lambda i: found(i, ends[i], np.reshape(ends[i].cost, 1), 1.0), len(ends), level
            ),
        )
    fits = []
    for i in range(len(prepared)):
        with as_part():
            end = search(one_of(i), method, 1, 0.0, 0)
            prepared[i] = without_rounding(one_of(i), np.asarray(end.state.x)).prepared[0]
            if isinstance(problem.objective, Windows):
                end = search(one_of(i), method, 1, 0.0, 0, first=end.state.z)
        fits.append(found(i, end.state, end.costs, end.noise))
        work.count(i + 1, len(prepared), "fits")
    x, ok = np.asarray([f.x for f in fits]), np.asarray([f.converged for f in fits])
    return Replicates(names, x, ok, level, lambda: _errors(fits.__getitem__, len(fits), level))


def _errors(found: Callable[[int], FitResult], count: int, level: float) -> tuple[np.ndarray, ...]:
    """Standard errors and intervals by the usual account, of one fit after the other."""

    def one(i: int) -> list[tuple[float, float, float]]:
        mine = found(i)
        if not mine.of_sweep:
            return [(e.standard_error, e.lower, e.upper) for e in mine.estimates]
        # spared what a sweep cannot tell of a dip, which takes longer than the fit
        known = np.where(mine.active, 1.0, np.nan)
        half = known * mine.spread.half_width(level, np.eye(mine.x.size))
        sd = known * np.sqrt(np.diag(mine.covariance))
        low = np.where(mine.active, np.fmax(mine.x - half, bounds(mine.problem.unknowns)), np.nan)
        return list(zip(sd.tolist(), low.tolist(), (mine.x + half).tolist(), strict=True))

    with Workers() as pool:
        rows = np.asarray(pool.map(one, range(count)))
    return rows[..., 0], rows[..., 1], rows[..., 2]


def _of_records(
    model,
    records: list[Record],
    free,
    objective: AbstractObjective | None,
    engine,
    method: AbstractMethod,
    loss: AbstractLoss,
    tied: Any,
) -> tuple[Problem, list[Any]]:
    """The problem, and all records as they stand in it."""
    objective, first = FreeRun() if objective is None else objective, records[0]
    check_arguments(model, {first.name: first}, objective, None, (), None, engine)
    how = (objective, (), {}, fit_engine(engine, method), loss)
    problem, _ = pose(model, {first.name: first}, free, (), *how, tied=tied)
    if objective.fits_starts():
        raise ValueError(
            "`fit_many` cannot find the starts of windows. Write Windows(...) without free_starts,"
            " or call `fit`."
        )
    machine = objective.machine(model)
    return problem, [objective.prepare(machine, record) for record in records]


def _together(
    problem: Problem, prepared: list[Any], method: LevenbergMarquardt, work: Work
) -> list[Descent]:
    """Where the searches end; those of one kind some at a time in a compiled call."""
    kinds: dict[Any, list[int]] = {}
    for i, one in enumerate(prepared):
        leaves, structure = jax.tree.flatten(one)
        kinds.setdefault((structure, *map(np.shape, leaves)), []).append(i)
    ends: list[Any] = [None] * len(prepared)
    done, lock = 0, threading.Lock()

    def tell(more: int) -> None:
        nonlocal done
        with lock:
            done += more
            work.count(done, len(prepared), "fits")

    for places in kinds.values():
        some = _of_a_kind(problem, [prepared[i] for i in places], method, tell)
        for k, i in enumerate(places):
            ends[i] = jax.tree.map(lambda a, k=k: np.asarray(a[k]), some)
    return ends


def _of_a_kind(
    problem: Problem, prepared: list[Any], method: LevenbergMarquardt, tell: Callable[[int], None]
) -> Descent:
    """Of records of one length."""
    _, static = eqx.partition(prepared[0], eqx.is_array)
    arrays = (eqx.filter(p, eqx.is_array) for p in prepared)
    stacked = jax.tree.map(lambda *x: np.stack(x), *arrays)
    count, weighted = len(prepared), [np.asarray(p.weight) for p in prepared]
    rows = np.asarray([np.sum(w > 0) for w in weighted])
    squares = [
        np.sum((w * np.asarray(p.measured)) ** 2) for w, p in zip(weighted, prepared, strict=True)
    ]
    floors = 1e-20 * np.asarray(squares) + 1e-300
    structure = jax.tree.structure(begun(problem, np.zeros(problem.x0.size)))

    def fitted(starts: Float[np.ndarray, "k p"], tell: Callable[[int], None]) -> Descent:
        def some(first: int) -> Descent:
            # As many in each call, so that one program does for all; those beyond do not begin.
            at = np.arange(first, first + _TOGETHER)
            live, at = at < count, np.minimum(at, count - 1)
            mine = jax.tree.map(lambda a: a[at], (stacked, rows, floors, starts))
            end = _all(problem, static, method, *mine, live)
            tell(int(np.sum(live)))
            return jax.tree.unflatten(structure, [np.asarray(x)[live] for x in end])

        with Workers() as pool:
            ends = pool.map(some, range(0, count, _TOGETHER))
        return jax.tree.map(lambda *parts: np.concatenate(parts), *ends)

    ends = fitted(np.zeros((count, problem.x0.size)), tell)
    # as in one fit: next to its bound a value acts so little that no search leads back
    for back in BACK:
        z = put_back(problem, ends, back)
        if z is None:
            break
        again = fitted(z, lambda more: None)
        better = again.cost < ends.cost * (1 - 1e-6)
        ends = jax.tree.map(
            lambda a, b, better=better: np.where(
                np.reshape(better, (-1, *(1,) * (a.ndim - 1))), b, a
            ),
            ends,
            again,
        )
    return ends


@kept
def _all(
    problem: Problem, static, method: LevenbergMarquardt, prepared, rows, floors, starts, live
) -> tuple[Array, ...]:
    """The leaves of the ends, from `starts`, of those that are `live`.

    One after the other: in step, all would take the most steps of any.
    """

    def one(at) -> Descent:
        prepared, rows, floor, start, live = at
        mine = eqx.tree_at(lambda p: p.prepared, problem, (eqx.combine(prepared, static),))
        expected = jnp.maximum(rows - problem.x0.size, 1)
        if problem.is_steady:
            end = in_turned_coordinates(mine, start, 1.0, method, expected, floor)
        else:
            first, most = begun(mine, start), jnp.where(live, method.max_steps, 0)
            end = descend(
                lambda z: mine.evaluate_with_kind(z, 1.0),
                first,
                most,
                method.tolerance,
                expected,
                floor,
            )
        x, slope = mine.physical(end.z), mine.values_and_slopes(end.seen)[1]
        return dataclasses.replace(end, x=x, slope=slope)

    ends = jax.lax.map(one, (prepared, rows, floors, starts, live))
    return tuple(jax.tree.leaves(ends))
