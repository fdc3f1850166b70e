"""From a minimum to what a user reads: estimates with intervals, criteria, and sentences."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frictax.fitting.problem.losses import AbstractLoss
from frictax.fitting.problem.steady import SteadyFriction
from frictax.fitting.result.found import Estimate, Found, quantile
from frictax.fitting.result.identifiability import Knowledge, judge, weight_sentence
from frictax.fitting.search.estimation import Estimation, as_data, entries, lower_bounds, with_values
from frictax.fitting.search.methods import AbstractMethod
from frictax.measurements import units
from frictax.measurements.sweep import Sweep
from frictax.parameters import Parameter, parameters, rotational_unit


def answer(
    start: Any,
    data: Sweep,
    chosen: list[Parameter],
    done: Estimation,
    method: AbstractMethod,
    loss: AbstractLoss,
    level: float,
    notes: list[str],
) -> Found:
    """The `Found` of a minimum; `notes` are sentences on what was not fitted."""
    paths, named = tuple(p.path for p in chosen), entries(chosen)
    names, bounds = [name for _, name in named], lower_bounds(chosen)
    x, active = np.asarray(done.x).copy(), np.asarray(done.active)
    at_bound = _at_bound(start, data, paths, x, bounds, active)
    x[at_bound] = bounds[at_bound]
    fitted = with_values(start, paths, jnp.asarray(x))
    dof = int(done.dof)
    covariance = np.asarray(done.covariance)
    error = np.sqrt(np.where(active, np.diag(covariance), np.nan))
    spread = float(quantile(level, max(dof, 1), data.sigma_known))
    half = spread * error
    known = judge(fitted, data, names, done, loss, at_bound, bounds, half)
    estimates = []
    for i, (p, name) in enumerate(named):
        unit = rotational_unit(p.declaration.unit) if data.rotational else p.declaration.unit
        low, high = max(x[i] - half[i], bounds[i]), x[i] + half[i]
        if at_bound[i]:
            low = bounds[i]
        ends, nu = (float(low), float(high)), np.nan if np.isnan(error[i]) else np.inf if data.sigma_known else float(dof)
        estimates.append(Estimate(name, p.path, float(x[i]), float(error[i]), *ends, unit, known.knowledge[name], nu))
    warnings = [] if bool(done.converged) else [_not_converged(method, int(done.steps))]
    warnings += [*known.sentences, *notes]
    if isinstance(fitted, SteadyFriction) and fitted.f_neg is not None and fitted.offset is None and data.both_directions:
        shown = units.shown_force(data.force_unit, float(np.median(np.abs(data.force))))
        warnings.append(weight_sentence(fitted, shown.name, shown.si))
    if "offset" in paths and data.both_directions:
        warnings.append("offset is a payload's weight only if friction is the same in both directions, which this sweep cannot show.")
    weighted = -np.asarray(done.residuals)
    residuals = weighted if data.sigma is None else weighted * data.sigma
    aicc, bic = _criteria(data, weighted, loss, float(done.noise_scale), len(names))
    return Found(
        fitted, data, tuple(estimates), _fixed(fitted, data, paths), covariance, residuals, weighted, float(done.noise_scale), dof, level,
        spread, aicc, bic, bool(done.converged), int(done.steps), known, tuple(warnings), method, loss,
    )  # fmt: skip


def _at_bound(start: Any, data: Sweep, paths: tuple[str, ...], x: np.ndarray, bounds: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Which inactive entries lie at their bound: those that would act on the curve if the other inactive ones were there."""
    out = np.zeros(x.size, dtype=bool)
    arrays = as_data(data)
    for i in np.flatnonzero(~active & np.isfinite(bounds)):
        at = x.copy()
        others = ~active & np.isfinite(bounds) & (np.arange(x.size) != i)
        at[others] = bounds[others]
        tangent = np.zeros(x.size)
        tangent[i] = 1.0
        move = jax.jvp(lambda x: arrays.predict(with_values(start, paths, x)), (jnp.asarray(at),), (jnp.asarray(tangent),))[1]
        out[i] = bool(np.any(np.asarray(move) != 0))
    return out


def _fixed(model: Any, data: Sweep, paths: tuple[str, ...]) -> tuple[Estimate, ...]:
    out = []
    for p, name in entries([p for p in parameters(model) if p.path not in paths]):
        value = float(np.ravel(np.asarray(p.value))[int(name[len(p.path) + 1 : -1]) if name != p.path else 0])
        unit = rotational_unit(p.declaration.unit) if data.rotational else p.declaration.unit
        out.append(Estimate(name, p.path, value, float("nan"), float("nan"), float("nan"), unit, Knowledge.FIXED))
    return tuple(out)


def _criteria(data: Sweep, weighted: np.ndarray, loss: AbstractLoss, scale: float, p: int) -> tuple[float, float]:
    """AICc (N. Sugiura 1978; C. M. Hurvich, C.-L. Tsai, Biometrika 76, 1989) and BIC, from the normal likelihood; for
    another loss, from that loss at its noise scale (E. Ronchetti, Statistics & Probability Letters 3, 1985)."""
    n = data.n
    sigma = 0.0 if data.sigma is None else 2.0 * float(np.sum(np.log(data.sigma)))
    floor = 1e-12 * float(np.sqrt(np.mean((data.force / (1.0 if data.sigma is None else data.sigma)) ** 2)))
    k = p + 1
    if data.sigma_known:
        k, minus2log = p, 2.0 * float(jnp.sum(loss.rho(jnp.asarray(weighted)))) + n * np.log(2 * np.pi)
    elif loss.rounds == 1:
        minus2log = n * (np.log(2 * np.pi * max(float(np.mean(weighted**2)), floor**2)) + 1.0)
    else:
        s = max(scale, floor)
        minus2log = 2.0 * float(jnp.sum(loss.rho(jnp.asarray(weighted / s)))) + n * np.log(2 * np.pi * s**2)
    minus2log += sigma
    aicc = minus2log + 2 * k * n / (n - k - 1) if n > k + 1 else np.inf
    return float(aicc), float(minus2log + k * np.log(n))


def _not_converged(method: AbstractMethod, steps: int) -> str:
    return f"{type(method).__name__} stopped after {steps} steps without meeting its tolerance: allow more, or give a better start."
