"""Many fits of one model to as many measurements of one experiment."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.annotations import ArrayLike, Checked
from frictax.engine import OnSamples
from frictax.executable_cache import jitted
from frictax.interrupts import Workers, as_part
from frictax.laws import AbstractLaw
from frictax.measurements import Record, Sweep
from frictax.measurements.record import changed
from frictax.mechanism import Machine
from frictax.progress import SILENT, Progress, Work, watched

from .checks import check_arguments
from .fit import refuse
from .fit_data import Search, usual_method
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
    data: Sweep | Record,
    measured: ArrayLike | Mapping[str, ArrayLike],
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
    """Fit one model to many measurements (or draws) of one experiment.

    At the rows of one sweep, or under the inputs of one record. By least squares and
    Levenberg-Marquardt all are fitted in one compiled call; by other ways one after the other.

    **Arguments:**

    - `model`: a law or `SteadyFriction`, for a record a machine, whose values are every fit's
      start.
    - `data`: the sweep or the record; its own forces or outputs are not looked at.
    - `measured`: for a sweep forces (k, n) [N or N.m]; for a record output -> (k, n) in SI, or (k,
      n) where it has one output.
    - `free`, `tied`, `method`, `loss`, `level`, `progress`: as in `fit`; `objective`, `engine`: for
      records only.

    **Returns:** `Replicates`: values of all k fits, as `fit` would give them, for bootstrap and
    coverage; intervals by the account of a single fit, when they are asked for.

    **Raises:** `ValueError` for measurements of another shape.

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
    data: Sweep | Record,
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
    if isinstance(data, Record):
        method = usual_method() if method is None else method
        problem, prepared = _of_record(
            model, data, measured, free, objective, engine, method, loss, tied
        )
    elif isinstance(data, Sweep):
        refuse({"objective": objective, "engine": engine}, "a record", "a sweep")
        method = LevenbergMarquardt() if method is None else method
        start = assembled(model, data, None, None, None)
        problem, _ = pose_sweep(start, data, free, (), loss, tied=tied)
        forces = _numbers(measured, data.n)
        if forces is None:
            raise ValueError(
                f"`measured` must have shape (k, {data.n}), one column for each row of the sweep,"
                f" got {np.shape(np.asarray(measured))}."
            )
        (prepared,) = problem.prepared
        prepared = [dataclasses.replace(prepared, measured=f[:, None]) for f in forces]
    else:
        raise ValueError(f"`fit_many` needs a `Sweep` or a `Record`, got {type(data).__name__}.")
    names = tuple(name for u in problem.unknowns for name in u.names)
    label = data.name or type(data).__name__

    def one_of(i: int) -> Problem:
        return dataclasses.replace(problem, prepared=(prepared[i],))

    def found(i: int, state: Any, costs: np.ndarray, noise: float) -> FitResult:
        return answer(model, one_of(i), {label: data}, state, costs, noise, method, level, [], 0.0)

    if isinstance(method, LevenbergMarquardt) and loss.rounds == 1:
        again = isinstance(problem.objective, Windows)
        parts = work.parts(
            {" fits": 2.0, " again": 2.0 * again, " edges": 1.0 * (not problem.is_steady)}
        )
        end = _together(problem, prepared, method, parts[" fits"])
        if again:
            for i, x in enumerate(np.asarray(end.x)):
                prepared[i] = without_rounding(one_of(i), x).prepared[0]
            end = _together(problem, prepared, method, parts[" again"])

        done = itertools.count(1)

        def beyond(i: int) -> Descent:
            one = jax.tree.map(lambda a: np.asarray(a[i]), end)
            if problem.is_steady:
                return one
            mine = one_of(i)
            dof = max(int(np.sum(mine.weights() > 0)) - mine.x0.size, 1)
            one = beyond_edges(mine, method, one, dof)
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


def _of_record(
    model,
    record: Record,
    outputs,
    free,
    objective: AbstractObjective | None,
    engine,
    method: AbstractMethod,
    loss: AbstractLoss,
    tied: Any,
) -> tuple[Problem, list[Any]]:
    """The problem, and its record with each of the measurements."""
    objective, records = FreeRun() if objective is None else objective, {record.name: record}
    check_arguments(model, records, objective, None, (), None, engine)
    how = (objective, (), {}, fit_engine(engine, method), loss)
    problem, _ = pose(model, records, free, (), *how, tied=tied)
    if objective.fits_starts():
        raise ValueError(
            "`fit_many` cannot find the starts of windows. Write Windows(...) without free_starts,"
            " or call `fit`."
        )
    machine = objective.machine(model)
    return problem, [
        objective.prepare(machine, changed(record, outputs=values))
        for values in _each(record, outputs)
    ]


def _together(
    problem: Problem, prepared: list[Any], method: LevenbergMarquardt, work: Work
) -> Descent:
    """Where the searches end, some of them in each compiled call."""
    _, static = eqx.partition(prepared[0], eqx.is_array)
    arrays = (eqx.filter(p, eqx.is_array) for p in prepared)
    stacked = jax.tree.map(lambda *x: np.stack(x), *arrays)
    weights, measured = np.asarray(prepared[0].weight), np.asarray(prepared[0].measured)
    rows = int(np.sum(weights > 0))
    floor = np.float64(1e-20 * np.sum((weights * measured) ** 2) + 1e-300)

    # as many in each call, so that one program does for all
    count = len(prepared)
    each = -(-count // -(-count // _TOGETHER))

    def fitted(starts: Float[np.ndarray, "k p"], work: Work) -> Descent:
        ends = []
        for first in range(0, count, each):
            some = np.minimum(np.arange(first, first + each), count - 1)
            mine = jax.tree.map(lambda a, some=some: a[some], (stacked, starts))
            end = _all(problem, mine[0], static, method, rows, floor, mine[1])
            ends.append(jax.tree.map(np.asarray, end))
            done = min(first + each, count)
            work.count(done, count, "fits")
        return jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *ends)

    ends = fitted(np.zeros((len(prepared), problem.x0.size)), work)
    # as in one fit: next to its bound a value acts so little that no search leads back
    for back in BACK:
        z = put_back(problem, ends, back)
        if z is None:
            break
        again = fitted(z, SILENT)
        better = again.cost < ends.cost * (1 - 1e-6)
        ends = jax.tree.map(
            lambda a, b, better=better: np.where(
                np.reshape(better, (-1, *(1,) * (a.ndim - 1))), b, a
            ),
            ends,
            again,
        )
    return ends


@jitted
def _all(
    problem: Problem, prepared, static, method: LevenbergMarquardt, rows: int, floor, starts
) -> Descent:
    """Ends, from `starts`.

    One after the other: in step, all would take the most steps of any.
    """
    expected = max(rows - problem.x0.size, 1)

    def one(at) -> Descent:
        prepared, start = at
        mine = eqx.tree_at(lambda p: p.prepared, problem, (eqx.combine(prepared, static),))
        if problem.is_steady:
            end = in_turned_coordinates(mine, start, 1.0, method, expected, floor)
        else:
            first, most, tolerance = begun(mine, start), method.max_steps, method.tolerance
            end = descend(
                lambda z: mine.evaluate_with_kind(z, 1.0), first, most, tolerance, expected, floor
            )
        x, slope = mine.physical(end.z), mine.values_and_slopes(end.seen)[1]
        return dataclasses.replace(end, x=x, slope=slope)

    return jax.lax.map(one, (prepared, jnp.asarray(starts)))


def _numbers(values, n: int) -> Float[np.ndarray, "k n"] | None:
    """The rows of numbers, or None for what are none of that length."""
    try:
        x = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        return None
    return x if x.ndim == 2 and x.size and x.shape[1] == n else None


def _each(record: Record, outputs) -> list[dict[str, np.ndarray]]:
    """The measurements one by one: output -> (n,)."""
    names = list(record.outputs)
    only = {names[0]: outputs} if len(names) == 1 else {}
    given = outputs if isinstance(outputs, Mapping) else only
    if set(given) != set(names):
        raise ValueError(
            f"`measured` must hold every output of record {record.name!r}: write"
            f" {{{', '.join(f'{n!r}: ...' for n in names)}}}, each of shape (k, {record.n})."
        )
    try:
        arrays = {name: np.asarray(given[name], dtype=float) for name in names}
    except (TypeError, ValueError):
        raise ValueError(
            f"`measured` must be numbers of shape (k, {record.n}), a row a measurement. Stack them"
            " with numpy."
        ) from None
    for name, x in arrays.items():
        if (
            x.ndim != 2
            or not x.size
            or x.shape[1] != record.n
            or x.shape[0] != len(arrays[names[0]])
        ):
            raise ValueError(
                f"`measured` must have shape (k, {record.n}) for {name!r}, a row a measurement, got"
                f" {x.shape}."
            )
    return [{name: x[i] for name, x in arrays.items()} for i in range(len(arrays[names[0]]))]
