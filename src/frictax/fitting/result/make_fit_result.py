"""Make the result of a fit from the end of its search: estimates, covariance and notices."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from frictax.measurements.sweep import Sweep
from frictax.measurements.units import shown_force
from frictax.notice import Notice

from ..problem.problem import Problem, bounds, residuals_and_jacobian, upper_bounds
from ..problem.steady import SteadyFriction
from ..search.methods import AbstractMethod
from ..search.multistart import Searched
from .covariance import inverse_gram, robust_variance
from .fit_result import FitResult
from .identifiability import is_at_bound
from .notices import not_settled
from .steady_sentences import weight_or_friction


def make_fit_result(
    model: Any,
    problem: Problem,
    records: Mapping[str, Any],
    end: Searched,
    method: AbstractMethod,
    level: float,
    notes: list[Notice],
    seconds: float = 0.0,
) -> FitResult:
    """Return the result of a fit from the end of its search; `notes` are those of the problem."""
    state, noise = end.state, end.noise
    x, slope = np.array(state.x), np.asarray(state.slope)
    # The slope of a coordinate far beyond its bound can be too small for a division.
    if problem.loss.rounds == 1 and not problem.priors and np.all(np.abs(slope) > 1e-150):
        r = np.asarray(state.residuals)
        jacobian = np.asarray(state.jacobian) / slope
    else:
        r, jacobian = (np.array(a) for a in residuals_and_jacobian(problem, x))
    counted = problem.weights() > 0
    data, rows = counted.size, int(counted.sum())
    # Residuals of data are in their own unit, those of priors in units of the noise.
    jacobian = np.concatenate([jacobian[:data], noise * jacobian[data:]])
    lower, upper = bounds(problem.unknowns), upper_bounds(problem.unknowns)
    # Only J'J is used below. NumPy's types do not cover mode="r", hence `asarray`.
    triangle = np.asarray(np.linalg.qr(jacobian, mode="r"))
    norms = np.linalg.norm(triangle, axis=0)
    robust, squares = problem.loss.rounds > 1, float(np.sum(r[:data] ** 2))
    scale = np.sqrt(squares / max(rows - x.size, 1))
    scale = 1.0 if problem.noise_known else noise if robust else max(float(scale), 1e-300)
    # An entry is at its bound if moving there changes the prediction by less than a thousandth of
    # the noise.
    effect = np.fmin(x - lower, upper - x) * np.where(norms > 0, norms, 1.0) / np.sqrt(rows)
    active = (norms > 0) & (effect > 1e-3 * scale)
    dof = max(rows - int(active.sum()), 1)
    if robust:
        scaled = r[:data][counted] / scale
        variance = robust_variance(problem.loss, scaled, dof, problem.noise_known) * scale**2
    else:
        least = 1.0 if problem.objective.whitens() else 0.0
        variance = 1.0 if problem.noise_known else max(squares / dof, least)
        scale = float(np.sqrt(variance))
    covariance = variance * inverse_gram(triangle, norms, active)
    ends = np.where(upper - x < x - lower, upper, lower)
    left, before = np.abs(x - ends), np.abs(np.asarray(problem.x0) - ends)
    at_bound = ~active & is_at_bound(norms, left, before, 1e-3 * scale * np.sqrt(rows))
    x = np.where(at_bound, ends, x)
    if problem.is_steady and records:
        fitted = problem.setup_at(jnp.asarray(x), None).machine
        sweep = next(iter(records.values()))
        notes = [*notes, *_steady_notes(fitted, sweep, [u.path for u in problem.unknowns])]
    # The notice of an edge replaces that of a search that did not settle.
    if not state.settled and not any(n.code == "search-edge" for n in notes):
        notes = [not_settled(method, state, problem.objective), *notes]
    return FitResult(
        start=model,
        records=records,
        full_covariance=covariance,
        full_jacobian=jacobian,
        active=active,
        full_residuals=r[:data],
        rms=_rms(problem, list(records), r),
        noise_scale=scale,
        dof=dof,
        level=level,
        converged=bool(state.settled),
        iterations=int(state.steps),
        seconds=seconds,
        costs=end.costs,
        notes=tuple(notes),
        problem=problem,
        method=method,
        x=x,
        z=np.asarray(state.z),
    )


def _steady_notes(fitted, sweep: Sweep, names: list[str]) -> list[Notice]:
    """Return notices of a weight that the sweep cannot distinguish from friction."""
    if not sweep.both_directions:
        return []
    if isinstance(fitted, SteadyFriction) and fitted.f_neg is not None and fitted.offset is None:
        shown = shown_force(sweep.force_unit, float(np.median(np.abs(sweep.force))))
        return [weight_or_friction(fitted, shown.name, shown.si)]
    if "offset" in names:
        return [Notice("offset-if-symmetric", "offset")]
    return []


def _rms(problem: Problem, labels: list[str], r: np.ndarray) -> dict[str, dict[str, float]]:
    """Return the root mean square of the unweighted residuals of each output of each record."""
    out, first = {}, 0
    for label, prepared in zip(labels, problem.prepared, strict=bool(labels)):
        w = np.asarray(prepared.weight)
        mine = r[first : first + w.size].reshape(w.shape)
        first += w.size
        plain = np.divide(mine, w, out=np.zeros_like(mine), where=w > 0)
        for c, name in enumerate(prepared.names):
            if name in getattr(prepared, "tick_noise", ()):  # Residuals of ticks are times [s].
                plain[..., c] = mine[..., c]
        counts = [max(int(np.sum(w[..., c] > 0)), 1) for c in range(w.shape[-1])]
        out[label] = {
            n: float(np.sqrt(np.sum(plain[..., c] ** 2) / counts[c]))
            for c, n in enumerate(prepared.names)
        }
    return out
