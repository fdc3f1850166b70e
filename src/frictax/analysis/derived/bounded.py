"""Draws of fitted numbers that stay within their bounds, for quantities that follow from them."""

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import truncnorm

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import bounds, upper_bounds
from frictax.fitting.result.spread import Spread
from frictax.parameters import LogScale

_NEAR = 3.0  # [standard errors] of a bound from a number that is called near it
_DRAWS, _LEAST = 4000, 400
_BATCHES = 20  # of draws, until enough of them are within all bounds
_SWEEPS = 30  # of Gibbs' sampler over the numbers at their bounds


def is_near_bound(found: FitResult, spread: Spread) -> Bool[np.ndarray, " q"]:
    """Whether each fitted number lies at a bound or within three standard errors of one."""
    unknowns = found.problem.unknowns
    error = np.sqrt(np.maximum(np.diag(spread.covariance), 0.0))
    away = np.fmin(found.x - bounds(unknowns), upper_bounds(unknowns) - found.x)
    return ~found.active | ((away < _NEAR * error) & ~_by_factors(found))


def draws_within_bounds(
    found: FitResult, spread: Spread, dof: float
) -> Float[np.ndarray, "n q"] | None:
    """Draws of all fitted numbers: of Student's t with the covariance of `spread` about the fit,
    without those beyond a bound. None where hardly any is within all bounds.

    A number at its bound has a density from there on, exp(-(g d + s d^2/2)) of the distance d. The
    slope g and the curvature s are those of the linearised misfit at its least value over the
    other numbers. Where residuals are autocorrelated both are divided by what that does to the
    variances of the others.
    """
    rng = np.random.default_rng(0)
    unknowns, on, x = found.problem.unknowns, found.active, np.asarray(found.x, float)
    low, high = bounds(unknowns), upper_bounds(unknowns)
    covariance = spread.covariance[np.ix_(on, on)]
    white = np.diag(found.full_covariance)[on]
    wider = float(np.median(np.diag(covariance) / white)) if on.any() else 1.0
    root = _root(covariance)
    moved, follow, slope, curvature = _at_bounds(found, wider)
    by_factors, kept = _by_factors(found), list[np.ndarray]()
    for _ in range(_BATCHES):
        step = np.zeros((_DRAWS, x.size))
        step[:, moved] = _beyond(
            slope, curvature, low[moved] - x[moved], high[moved] - x[moved], rng
        )
        heavy = np.sqrt(dof / rng.chisquare(dof, (_DRAWS, 1))) if np.isfinite(dof) else 1.0
        step[:, on] = step[:, moved] @ follow.T + heavy * (
            rng.standard_normal((_DRAWS, root.shape[1])) @ root.T
        )
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            drawn = np.where(by_factors, x * np.exp(step / x), x + step)
        kept.append(drawn[np.all((drawn >= low) & (drawn <= high), axis=1)])
        if sum(map(len, kept)) >= _DRAWS:
            break
    out = np.concatenate(kept)[:_DRAWS]
    return out if len(out) >= _LEAST else None


def ends_about(value: float, draws: Float[np.ndarray, " n"], level: float) -> tuple[float, float]:
    """The interval of that level with `value` in it: the share of the draws below `value` is the
    share of the draws outside of the interval that are below it.
    """
    ordered = np.sort(draws[~np.isnan(draws)])
    below = (1.0 - level) * np.mean(ordered < value)
    at = np.array([below, below + level]) * (ordered.size - 1)
    low, high = ordered[int(np.floor(at[0]))], ordered[int(np.ceil(at[1]))]
    return float(min(low, value)), float(max(high, value))


def _by_factors(found: FitResult) -> Bool[np.ndarray, " q"]:
    return np.array(
        [u.declaration.domain == LogScale() for u in found.problem.unknowns for _ in range(u.size)],
        dtype=bool,
    )


def _root(covariance: Float[np.ndarray, "k k"]) -> Float[np.ndarray, "k k"]:
    w, v = np.linalg.eigh(covariance)
    return v * np.sqrt(np.maximum(w, 0.0))


def _at_bounds(found: FitResult, wider: float) -> tuple[np.ndarray, ...]:
    """Which numbers lie at a bound and act, how the others follow them (k, m), and slope (m,) and
    curvature (m, m) of half the misfit by them.
    """
    j, on = found.full_jacobian, found.active
    moved = ~on & (np.linalg.norm(j, axis=0) > 0)
    sizes = np.linalg.norm(j[:, on], axis=0)
    inverse = np.linalg.pinv(j[:, on] / sizes) if on.any() else np.zeros((0, len(j)))
    follow = -(inverse @ j[:, moved]) / sizes[:, None]
    rest = (j[:, moved] + j[:, on] @ follow) / (found.noise_scale * np.sqrt(wider))
    r = np.zeros(len(j))
    r[: len(found.full_residuals)] = found.full_residuals
    return moved, follow, rest.T @ r / (found.noise_scale * np.sqrt(wider)), rest.T @ rest


def _beyond(
    slope: Float[np.ndarray, " m"],
    curvature: Float[np.ndarray, "m m"],
    low: Float[np.ndarray, " m"],
    high: Float[np.ndarray, " m"],
    rng: np.random.Generator,
) -> Float[np.ndarray, "n m"]:
    """Draws of the distances from the bounds, by Gibbs' sampler."""
    out = np.zeros((_DRAWS, slope.size))
    for _ in range(_SWEEPS if slope.size > 1 else 1):
        for i, own in enumerate(np.diag(curvature)):
            if not own > 0:
                continue
            mean = out[:, i] - (slope[i] + out @ curvature[i]) / own
            a, b = (low[i] - mean) * np.sqrt(own), (high[i] - mean) * np.sqrt(own)
            out[:, i] = truncnorm.rvs(a, b, mean, 1.0 / np.sqrt(own), random_state=rng)
    return out
