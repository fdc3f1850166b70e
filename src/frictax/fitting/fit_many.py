"""Many fits of one machine to as many measurements of one experiment, in one compilation."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from frictax.fitting.problem.losses import AbstractLoss, Squares
from frictax.fitting.problem.objectives import AbstractObjective, FreeRun
from frictax.fitting.problem.problem import Problem, bounds
from frictax.fitting.record_fit import check_arguments, fit_engine, pose
from frictax.fitting.result.found import Replicates, quantile
from frictax.fitting.search.estimation import inverse_gram
from frictax.fitting.search.levenberg_marquardt import begin, descend
from frictax.fitting.search.methods import AbstractMethod, LevenbergMarquardt
from frictax.fitting.search.multistart import strayed
from frictax.measurements.record import Record


def fit_records_many(
    model: Any,
    record: Record,
    outputs: Any,
    *,
    free: str | Iterable[str] | None,
    objective: AbstractObjective | None,
    engine: Any,
    method: AbstractMethod | None,
    loss: AbstractLoss,
    level: float,
) -> Replicates:
    """`fit_many` of a machine to outputs measured, or drawn, under the inputs of one record; see there."""
    objective = FreeRun() if objective is None else objective
    method = LevenbergMarquardt(tolerance=1e-3, max_steps=200) if method is None else method
    check_arguments(model, {record.name: record}, objective, None, (), engine, method, 1)
    if not isinstance(method, LevenbergMarquardt) or not isinstance(loss, Squares):
        raise ValueError("`fit_many` of records knows `LevenbergMarquardt()` and `Squares()` only. Call `fit` for each record instead.")
    problem, _ = pose(model, {record.name: record}, free, (), objective, (), {}, fit_engine(engine, method), loss)
    if objective.fits_starts():
        raise ValueError("`fit_many` cannot find the starts of windows. Write Windows(...) without free_starts, or call `fit`.")
    machine = objective.machine(model)
    plans = [objective.plan(machine, _with_outputs(record, values)) for values in _each(record, outputs)]
    _, static = eqx.partition(plans[0], eqx.is_array)
    stacked = jax.tree_util.tree_map(lambda *x: np.stack(x), *(eqx.filter(p, eqx.is_array) for p in plans))
    lower = bounds(problem.unknowns)
    weights, measured = np.asarray(plans[0].weight), np.asarray(plans[0].measured)
    dof = max(int(np.sum(weights > 0)) - lower.size, 1)
    floor = np.float64(1e-20 * np.sum((weights * measured) ** 2) + 1e-300)
    start = np.zeros((len(plans), lower.size))
    x, sd, ok, z, cost = (np.asarray(a) for a in _all(problem, stacked, static, lower, method, dof, floor, start))
    away = strayed(problem, x) & np.isfinite(cost)[:, None]
    if away.any():  # as in one fit: a value next to its bound acts so little that the search does not lead it back
        again = [np.asarray(a) for a in _all(problem, stacked, static, lower, method, dof, floor, np.where(away, 0.0, z))]
        better = again[-1] < cost * (1 - 1e-6)
        x, sd, ok = (np.where(better if a.ndim == 1 else better[:, None], b, a) for a, b in zip((x, sd, ok), again[:3], strict=True))
    half = float(quantile(level, dof, False)) * sd
    low = np.maximum(x - half, np.where(np.isnan(half), np.nan, lower))
    return Replicates(tuple(name for u in problem.unknowns for name in u.names), x, sd, low, x + half, ok, level)


@eqx.filter_jit
def _all(
    problem: Problem, plans: Any, static: Any, lower: Any, method: LevenbergMarquardt, dof: int, floor: Any, starts: Any
) -> tuple[Array, ...]:
    """Values, standard errors, whether the tolerance was met, coordinates, and costs, from `starts`.

    One after the other: in step, all would take the most steps of any.
    """

    def one(at: Any) -> tuple[Array, ...]:
        plan, start = at
        mine = eqx.tree_at(lambda p: p.plans, problem, (eqx.combine(plan, static),))
        end = descend(lambda z: mine.evaluate(z, 1.0), begin(start, mine.rows()), method.max_steps, method.tolerance, dof, floor)
        x, slope = mine.physical(end.z), mine.values_and_slopes(end.seen)[1]
        jacobian = end.jacobian / jnp.where(slope == 0, 1.0, slope)
        norms, scale = jnp.linalg.norm(jacobian, axis=0), jnp.sqrt(2.0 * end.cost / dof)
        effect = jnp.where(jnp.isfinite(lower), (x - lower) * norms, jnp.inf) / np.sqrt(dof)
        active = (norms > 0) & (effect > 1e-3 * scale)
        covariance = scale**2 * inverse_gram(jacobian, norms, active)
        return (
            x,
            jnp.where(active, jnp.sqrt(jnp.diagonal(covariance)), jnp.nan),
            jnp.asarray(end.settled),
            jnp.asarray(end.z),
            jnp.asarray(end.cost),
        )

    return jax.lax.map(one, (plans, jnp.asarray(starts)))


def _each(record: Record, outputs: Any) -> list[dict[str, np.ndarray]]:
    """The measurements one by one: output -> (n,)."""
    names = list(record.outputs)
    given = outputs if isinstance(outputs, Mapping) else {names[0]: outputs} if len(names) == 1 else None
    if given is None or set(given) != set(names):
        raise ValueError(
            f"`measured` must hold every output of record {record.name!r}: write {{{', '.join(f'{n!r}: ...' for n in names)}}}, "
            f"each of shape (k, {record.n})."
        )
    try:
        arrays = {name: np.asarray(given[name], dtype=float) for name in names}
    except (TypeError, ValueError):
        raise ValueError(f"`measured` must be numbers of shape (k, {record.n}), a row a measurement. Stack them with numpy.") from None
    for name, x in arrays.items():
        if x.ndim != 2 or not x.size or x.shape[1] != record.n or x.shape[0] != len(arrays[names[0]]):
            raise ValueError(f"`measured` must have shape (k, {record.n}) for {name!r}, a row a measurement, got {x.shape}.")
    return [{name: x[i] for name, x in arrays.items()} for i in range(len(arrays[names[0]]))]


def _with_outputs(record: Record, outputs: dict[str, np.ndarray]) -> Record:
    fields = {f.name: getattr(record, f.name) for f in dataclasses.fields(Record)} | {"outputs": outputs}
    new = object.__new__(Record)
    for name, value in fields.items():
        object.__setattr__(new, name, value)
    return new
