"""Errors of a fit to sweeps: whether rows are autocorrelated, in which order, or of unequal
variance.
"""

import dataclasses
import functools

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import fdtrc

from frictax.fitting.result.spread import CovarianceEstimate
from frictax.fitting.result.sweep_checks import outliers, residuals_without
from frictax.measurements import Sweep
from frictax.notice import Notice

from .autoregression import Autoregression
from .clusters import cluster_covariance
from .linearization import Linearization

_DRAWS = 199  # draws of white noise; probabilities in steps of 0.5 %
_SHORTEST = 6  # rows minus parameters below which an autocorrelation cannot be estimated
_CHANCE_AUTOCORRELATED = 0.1  # share of draws of white noise with as large an autocorrelation
# Share of draws of white noise with as large an error. It is large in favour of unequal variances,
# which a test among few rows hardly detects.
_CHANCE_UNEQUAL = 0.2
_CHANCE_REPLICATES = 0.05  # significance level of the F test of lack of fit
_EXACT = 1e-9  # [1] residuals over forces below which residuals are rounding errors
_FEWEST = 3  # replicates, that is rows beyond the first of their speed, for a test of lack of fit
# Autocorrelation of neighbouring rows that a sweep has to exclude. It is typical of a machine that
# warms up during the sweep.
_CORRELATION = 0.8
_CHANCE = 0.03  # probability of excluding this autocorrelation although it is the true one
_ERROR_DRAWS = 999  # draws of autocorrelated errors
_MANY = 100  # degrees of freedom above which an autocorrelation is always found or excluded
_WIDER = 1.2  # [printed widths] width from which a notice names an interval


def sweep_noise_models(linear: Linearization) -> list[tuple[CovarianceEstimate, np.ndarray]]:
    """Return the noise models that the rows support in addition to white noise, and for which
    parameters (p,) each one applies.

    - An autoregression of the rows, in the order of the table and in order of speed in each
      direction. If replicates are closer to each other than to other speeds, speed by speed.
    - Rows with unequal variances, for the parameters whose errors they increase by more than white
      noise usually does.
    """
    out = []
    is_long = np.sum(linear.counted) - np.sum(linear.acts) >= _SHORTEST
    for one in _in_order(linear):
        by_replicates = len(one.residuals) < len(linear.residuals)
        if by_replicates or (is_long and _is_autocorrelated(one)):
            errors = Autoregression().estimate(one)
            if by_replicates or errors.allows_autocorrelation:
                out.append((errors, np.ones(len(linear.acts), bool)))
    unequal = _find_unequal_variances(linear)
    if unequal.any() and not linear.found.problem.noise_known:
        rows = np.arange(len(linear.residuals))
        errors = cluster_covariance(linear, rows, "rows with unequal errors")
        out.append((dataclasses.replace(errors, allows_autocorrelation=False), unequal))
    return out


def is_exact(linear: Linearization) -> bool:
    """Return whether the residuals are rounding errors."""
    prepared = linear.found.problem.prepared
    forces = np.concatenate([np.ravel(p.weight * p.measured) for p in prepared])
    return bool(np.linalg.norm(linear.residuals) < _EXACT * np.linalg.norm(forces))


def _in_order(linear: Linearization) -> list[Linearization]:
    """Return the rows as series: in order of speed, and also in the order of the table if it is
    different.

    Outliers are removed, because two of them in neighbouring rows look like an autocorrelation.
    """
    found, record = linear.found, linear.samples.record
    linear = dataclasses.replace(linear, residuals=_without_outliers(linear))
    as_they_stand, by_speed, others = [], [], False
    for i, sweep in enumerate(found.records.values()):
        first, mine = int(np.argmax(record == i)), np.flatnonzero(linear.counted & (record == i))
        order = mine[_by_speed(sweep, mine - first)]
        cut = np.flatnonzero(np.diff(sweep.direction[order - first])) + 1
        as_they_stand.append((i, 1.0, [mine]))
        by_speed.append((i, 1.0, np.split(order, cut)))
        others |= any(np.any(np.abs(np.diff(part)) != 1) for part in by_speed[-1][2])
    of_speed = _average_replicates(linear, by_speed) or dataclasses.replace(
        linear, rows=tuple(by_speed)
    )
    stand = dataclasses.replace(
        linear, rows=tuple(as_they_stand), order="in the order of the table"
    )
    return [of_speed, stand] if others else [of_speed]


def _without_outliers(linear: Linearization) -> Float[np.ndarray, " n"]:
    """Return residuals without outliers: those of the law that fits the other rows, 0 for
    outliers, scaled to the same sum of squares.
    """
    found, r, columns = linear.found, linear.residuals, linear.jacobian
    sweeps = list(found.records.values())
    off = outliers(sweeps, found.full_residuals[: len(r)], columns)
    if not off.any():
        return r
    others = np.where(off, 0.0, residuals_without(off, r, columns))
    return others * (np.linalg.norm(r) / max(np.linalg.norm(others), 1e-300))


def _by_speed(sweep: Sweep, rows: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    return np.lexsort((np.abs(sweep.velocity[rows]), sweep.direction[rows]))


def _average_replicates(
    linear: Linearization, series: list[tuple[int, float, list[np.ndarray]]]
) -> Linearization | None:
    """Return one row for each speed, the weighted mean of its replicates. Return None unless speeds
    differ by more than the replicates of one speed (F test of lack of fit).

    **Source:** N. R. Draper, H. Smith, *Applied Regression Analysis*, 3rd ed. (1998), section 2.1.
    """
    sweeps = list(linear.found.records.values())
    starts = np.concatenate([[0], np.cumsum([s.n for s in sweeps])])
    count, parts = np.zeros(len(linear.residuals), int), []
    last = -1
    for i, _, stretches in series:
        mine = []
        for rows in stretches:
            speed = sweeps[i].velocity[rows - starts[i]]
            number = last + 1 + np.concatenate([[0], np.cumsum(np.diff(speed) != 0)])
            count[rows], last = number, int(number[-1])
            mine.append(np.arange(number[0], last + 1))
        parts.append((i, 1.0, mine))
    counted = np.flatnonzero(linear.counted)
    size = np.bincount(count[counted], minlength=last + 1)
    n, m, p = counted.size, last + 1, int(np.sum(linear.acts))
    if n - m < _FEWEST or m - p < 1:
        return None
    both = np.column_stack([linear.jacobian, linear.residuals])[counted]
    sums = np.zeros((m, both.shape[1]))
    np.add.at(sums, count[counted], both)
    sums /= np.sqrt(size)[:, None]
    between = float(np.sum(sums[:, -1] ** 2))
    within = max(float(np.sum(both[:, -1] ** 2)) - between, 1e-300)
    if fdtrc(m - p, n - m, between / (m - p) / (within / (n - m))) > _CHANCE_REPLICATES:
        return None
    return dataclasses.replace(
        linear,
        jacobian=sums[:, :-1],
        residuals=sums[:, -1],
        counted=np.ones(m, bool),
        rows=tuple(parts),
        noise=float(np.sqrt(between / (m - p))),
        order="in order of speed, those of one speed as one",
    )


def _is_autocorrelated(linear: Linearization) -> bool:
    """Return whether neighbours are more similar than in most draws of white normal noise. With few
    rows, the criterion for the order of an autoregression alone is not reliable.
    """
    r = _with_white_draws(linear)
    pairs = [np.stack([part[1:], part[:-1]]) for _, _, parts in linear.rows for part in parts]
    after, before = np.concatenate(pairs, axis=1)
    likeness = np.sum(r[after] * r[before], axis=0) / np.maximum(np.sum(r**2, axis=0), 1e-300)
    return float(np.mean(likeness >= likeness[0] - 1e-12)) <= _CHANCE_AUTOCORRELATED


def _find_unequal_variances(linear: Linearization) -> Bool[np.ndarray, " p"]:
    """Return the parameters whose error by the squares of single residuals ("HC2") is larger than
    in most draws of white normal noise.
    """
    root, _ = linear.axes
    seen = linear.jacobian @ root
    left = 1.0 - np.sum(seen**2, axis=1)
    share = np.divide(1.0, left, out=np.zeros_like(left), where=left > 1e-6) * linear.counted
    weight = (seen @ root.T) ** 2 * share[:, None]
    squares = _with_white_draws(linear) ** 2
    ratio = weight.T @ (squares / np.maximum(squares.sum(axis=0), 1e-300))
    return np.mean(ratio >= ratio[:, :1] * (1 - 1e-9), axis=1) <= _CHANCE_UNEQUAL


def _with_white_draws(linear: Linearization) -> Float[np.ndarray, "n k"]:
    """Return the residuals, and next to them the residuals of the same fit to white normal
    noise.
    """
    root, _ = linear.axes
    basis, _ = np.linalg.qr(linear.jacobian @ root)
    noise = np.where(linear.counted[:, None], _noise(len(linear.residuals)), 0.0)
    return np.column_stack([linear.residuals, noise - basis @ (basis.T @ noise)])


@functools.lru_cache(maxsize=8)
def _noise(n: int) -> Float[np.ndarray, "n k"]:
    return np.random.default_rng(0).standard_normal((n, _DRAWS))


def autocorrelation_not_excluded(
    linear: Linearization, spread: CovarianceEstimate, allows: bool
) -> tuple[Notice, ...]:
    """Return a notice if the residuals do not exclude an autocorrelation of 0.8 at which the
    intervals of `spread` are too narrow. `allows`: whether `spread` allows for autocorrelation.

    The test compares the sum of squares of generalised least squares at that autocorrelation with
    the sum of ordinary least squares. Its distribution, and the widths, are those of 999 draws of
    such errors. Therefore the chance of a wrong exclusion is 3 % for any number of rows.
    """
    found, wider = linear.found, np.zeros(len(linear.acts))
    rows, told = int(np.sum(linear.counted)), linear.acts
    if rows - np.sum(told) > _MANY:
        return ()
    half = spread.half_width(found.level, np.eye(len(told)))
    for one in _in_order(linear):
        if one.residuals.any():
            half_with = _half_widths(one, found.level, found.problem.noise_known)
            wider = np.fmax(wider, np.divide(half_with, half, out=np.zeros_like(half), where=told))
    named = [i for i in np.flatnonzero(wider > _WIDER) if np.isfinite(wider[i])]
    if not named:
        return ()
    factors = ", ".join(f"{found.names[i]} {wider[i]:.2g} times" for i in named)
    assumed = "the autocorrelation that residuals show" if allows else "independent rows"
    numbers = {"rows": rows, "assumed": assumed, "correlation": _CORRELATION, "wider": factors}
    return (Notice("autocorrelation-not-excluded", "", numbers),)


def _half_widths(one: Linearization, level: float, is_noise_known: bool) -> Float[np.ndarray, " p"]:
    """Return half of each interval for rows with the autocorrelation, 0 if it is excluded."""
    n = len(one.residuals)
    root = np.eye(n)
    for _, _, stretches in one.rows:
        for rows in stretches:
            lags = np.abs(np.subtract.outer(np.arange(len(rows)), np.arange(len(rows))))
            root[np.ix_(rows, rows)] = np.linalg.cholesky(_CORRELATION**lags)
    noise = np.random.default_rng(0).standard_normal((n, _ERROR_DRAWS))
    errors = np.where(one.counted[:, None], np.column_stack([one.residuals, root @ noise]), 0.0)
    axes, _ = one.axes
    columns = one.jacobian @ axes
    ordinary = _residual_squares(columns, errors)
    general = _residual_squares(np.linalg.solve(root, columns), np.linalg.solve(root, errors))
    ratio = general / np.maximum(ordinary, 1e-300)
    if np.mean(ratio >= ratio[0] * (1 - 1e-9)) < _CHANCE:
        return np.zeros(len(one.acts))
    moved = np.abs(axes @ (columns.T @ errors[:, 1:]))
    if is_noise_known:
        return np.quantile(moved, level, axis=1)
    size = np.sqrt(ordinary)
    return np.quantile(moved / np.maximum(size[1:], 1e-300), level, axis=1) * size[0]


def _residual_squares(
    columns: Float[np.ndarray, "n s"], y: Float[np.ndarray, "n k"]
) -> Float[np.ndarray, " k"]:
    """Return the sums of squares of the columns of `y` after a fit by `columns`."""
    basis, _ = np.linalg.qr(columns)
    return np.sum((y - basis @ (basis.T @ y)) ** 2, axis=0)
