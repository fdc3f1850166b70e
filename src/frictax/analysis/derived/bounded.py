"""Draws of fitted parameters within their bounds, for derived quantities."""

from statistics import NormalDist
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import truncnorm

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import bounds, upper_bounds
from frictax.fitting.result.spread import CovarianceEstimate
from frictax.parameters import LogScale

# `_DRAWS`: number of draws; `_LEAST`: smallest number of draws within bounds that is accepted.
_DRAWS, _LEAST = 4000, 400


def is_near_bound(found: FitResult, spread: CovarianceEstimate) -> Bool[np.ndarray, " q"]:
    """Return a mask of the parameters at a bound or within three standard errors of a bound."""
    unknowns = found.problem.unknowns
    error = np.sqrt(np.maximum(np.diag(spread.covariance), 0.0))
    away = np.fmin(found.x - bounds(unknowns), upper_bounds(unknowns) - found.x)
    return ~found.active | ((away < 3.0 * error) & ~_has_log_scale(found))


def is_on_bound(found: FitResult) -> Bool[np.ndarray, " q"]:
    """Return a mask of the parameters at their lower bound that do not have a standard error."""
    x, low = np.asarray(found.x, float), bounds(found.problem.unknowns)
    start = np.abs(np.asarray(found.problem.x0) - low)
    # A parameter is at its bound if its distance from the bound is at most 1 % of its value or of
    # the distance between start value and bound.
    return ~found.active & (x - low <= 0.01 * np.maximum(np.abs(x), start))


def draws_within_bounds(
    found: FitResult,
    spread: CovarianceEstimate,
    gradient: Float[np.ndarray, " q"],
    by: Any,
    hardly: bool,
) -> Float[np.ndarray, "n q"] | None:
    """Return draws (n, q) of all fitted parameters [SI] within their bounds, for a derived quantity
    with the derivatives `gradient` by these parameters. Return None if too few draws are valid.

    `hardly`: True if the quantity depends on a parameter at its bound, where the derivatives of the
    residuals may be 0. With `hardly`, return None if this parameter's profile has an infinite end.

    - The parameter near its bound that changes the quantity most is drawn from its profile
      likelihood. The profile contains refitted other parameters for each value of this parameter.
    - Random errors (Student's t, covariance of `spread`) are added to the other parameters.
    - For each further parameter at a bound, the distance d from the bound has the density exp(-(g d
      + s d^2/2)). The numbers g and s are the first and second derivatives, with respect to d, of
      half the linearised misfit after a fit of the other parameters. Both derivatives are divided
      by (variance in `spread`)/(variance for white residuals).
    """
    rng = np.random.default_rng(0)
    unknowns, on, x = found.problem.unknowns, found.active.copy(), np.asarray(found.x, float)
    low, high = bounds(unknowns), upper_bounds(unknowns)
    white = np.diag(found.full_covariance)[on]
    covariance = spread.covariance * np.outer(on, on)
    wider = float(np.median(np.diag(covariance)[on] / white)) if on.any() else 1.0
    # `moved` marks the m parameters at a bound whose total effect on the residuals exceeds 1 % of
    # the noise. `follow` (k, m): derivatives of the k other parameters by these m parameters.
    j, noise = found.full_jacobian, found.noise_scale * np.sqrt(wider)
    far = np.maximum(np.abs(x), np.abs(x - np.asarray(found.problem.x0)))
    moved = ~on & (np.linalg.norm(j, axis=0) * far > 0.01 * found.noise_scale)
    sizes = np.linalg.norm(j[:, on], axis=0)
    inverse = np.linalg.pinv(j[:, on] / sizes) if on.any() else np.zeros((0, len(j)))
    follow = -(inverse @ j[:, moved]) / sizes[:, None]
    rest = (j[:, moved] + j[:, on] @ follow) / noise
    r = np.zeros(len(j))
    r[: len(found.full_residuals)] = found.full_residuals
    slope, curvature = rest.T @ r / noise, rest.T @ rest
    profiled = _profile_near_bound(found, spread, gradient, moved, wider, by)
    if hardly and (profiled is None or found.active[profiled[0]]):
        return None
    if profiled is not None:
        k, at, likely, others = profiled
        keep = np.flatnonzero(moved) != k
        moved[k] = False
        follow, slope, curvature = follow[:, keep], slope[keep], curvature[np.ix_(keep, keep)]
        if covariance[k, k] > 0:  # Make the covariance conditional on parameter k.
            covariance = covariance - np.outer(covariance[k], covariance[k]) / covariance[k, k]
            covariance[k] = covariance[:, k] = 0.0
    variances, turn = np.linalg.eigh(covariance)
    root = turn * np.sqrt(np.maximum(variances, 0.0))
    dof = float(spread.dof((gradient * on)[None])[0])
    by_factors, kept = _has_log_scale(found), list[np.ndarray]()
    for _ in range(20):  # Draws beyond a bound are replaced by new draws.
        step = np.zeros((_DRAWS, x.size))
        ends = low[moved] - x[moved], high[moved] - x[moved]
        # A Gibbs sampler with 30 sweeps draws the distances of parameters from their bounds.
        away = np.zeros((_DRAWS, slope.size))
        for _ in range(30 if slope.size > 1 else 1):
            for i in np.flatnonzero(np.diag(curvature) > 0):
                own = curvature[i, i]
                mean = away[:, i] - (slope[i] + away @ curvature[i]) / own
                a, b = ((end[i] - mean) * np.sqrt(own) for end in ends)
                away[:, i] = truncnorm.rvs(a, b, mean, 1.0 / np.sqrt(own), random_state=rng)
        step[:, moved] = away
        heavy = np.sqrt(dof / rng.chisquare(dof, (_DRAWS, 1))) if 0 < dof < np.inf else np.ones(1)
        step[:, found.active] += step[:, moved] @ follow.T
        step += heavy * (rng.standard_normal((_DRAWS, x.size)) @ root.T)
        middle = x
        if profiled is not None:  # Draw parameter k with the density exp(-(likelihood ratio)/2).
            grid = np.linspace(at[0], at[-1], 2001)
            density = np.exp(-0.5 * np.interp(grid, at, likely) ** 2)
            area = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
            drawn = np.interp(rng.uniform(0.0, area[-1], _DRAWS), area, grid)
            middle = np.stack([np.interp(drawn, at, column) for column in others.T], axis=1)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            drawn = np.where(by_factors, middle * np.exp(step / middle), middle + step)
        kept.append(drawn[np.all((drawn >= low) & (drawn <= high), axis=1)])
        if sum(map(len, kept)) >= _DRAWS:
            break
    out = np.concatenate(kept)[:_DRAWS]
    return out if len(out) >= _LEAST else None


def _profile_near_bound(
    found: FitResult,
    spread: CovarianceEstimate,
    gradient: Float[np.ndarray, " q"],
    moved: Bool[np.ndarray, " q"],
    wider: float,
    by: Any,
) -> tuple[int, np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the profile of the parameter near its bound that changes the quantity most: its index,
    its sorted values (m,), the square root of the likelihood ratio (m,), and all parameters (m, q)
    at these values. Return None if the parameter does not have a profile with finite ends.
    """
    near = is_near_bound(found, spread) & found.shown & (found.active | moved | is_on_bound(found))
    norms = np.linalg.norm(found.full_jacobian, axis=0)
    alone = found.noise_scale * np.sqrt(wider) / np.where(moved, norms, np.inf)
    alone = np.where(is_on_bound(found) & ~moved, np.abs(found.x - found.problem.x0), alone)
    size = np.where(found.active, np.sqrt(np.maximum(np.diag(spread.covariance), 0.0)), alone)
    share = np.where(near, np.abs(gradient) * size, 0.0)
    if not np.max(share) > 0:
        return None
    place = int(np.argmax(share))
    name = [n for u in found.problem.unknowns for n in u.names][place]
    made = vars(found).setdefault("profiles_near_bounds", {})  # the fit caches its profiles
    if (name, by) not in made:
        try:
            made[name, by] = found.profile(name, by=by)
        except ValueError:  # The data do not identify the parameter.
            made[name, by] = None
    profile = made[name, by]
    if profile is None or not (np.isfinite(profile.lower) and np.isfinite(profile.upper)):
        return None
    # Scale the square root of the likelihood ratio to the normal quantile at the interval ends.
    usual = NormalDist().inv_cdf(profile.level if profile.one_sided else 0.5 + profile.level / 2)
    root = np.sqrt(np.maximum(profile.ratio, 0.0) / profile.threshold) * usual
    good = np.isfinite(root)
    values, root, others = profile.values[good], root[good], profile.others[good]
    values, first = np.unique(values, return_index=True)
    root, others = root[first], others[first]
    if values.size < 3:
        return None
    extent = 4.0  # [standard deviations] the profile is extended to this distance from the fit
    for end, near_end in ((0, 1), (-1, -2)):  # Extend the profile linearly at both ends.
        bound = (bounds(found.problem.unknowns), upper_bounds(found.problem.unknowns))[end][place]
        rise = (root[end] - root[near_end]) / (values[end] - values[near_end])
        if root[end] >= extent or rise * (1 if end else -1) <= 0:
            continue
        far = values[end] + (extent - root[end]) / rise
        far = max(far, bound) if end == 0 else min(far, bound)
        if far == values[end]:
            continue
        share = (far - values[end]) / (values[end] - values[near_end])
        at = 0 if end == 0 else values.size
        line = others[end] + share * (others[end] - others[near_end])
        root = np.insert(root, at, root[end] + rise * (far - values[end]))
        values, others = np.insert(values, at, far), np.insert(others, at, line, axis=0)
    return place, values, root, others


def ends_about(value: float, draws: Float[np.ndarray, " n"], level: float) -> tuple[float, float]:
    """Return an interval with the share `level` of the draws that contains `value`. The numbers of
    draws below and above the interval have the same ratio as those below and above `value`.
    """
    ordered = np.sort(draws[~np.isnan(draws)])
    below = (1.0 - level) * np.mean(ordered < value)
    at = np.array([below, below + level]) * (ordered.size - 1)
    low, high = ordered[int(np.floor(at[0]))], ordered[int(np.ceil(at[1]))]
    return float(min(low, value)), float(max(high, value))


def _has_log_scale(found: FitResult) -> Bool[np.ndarray, " q"]:
    return np.array(
        [u.declaration.domain == LogScale() for u in found.problem.unknowns for _ in range(u.size)],
        dtype=bool,
    )
