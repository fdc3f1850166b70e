"""A notice of sweeps whose rows are too few to exclude that their errors are autocorrelated."""

import numpy as np
from jaxtyping import Float

from frictax.fitting.result.spread import Spread
from frictax.notice import Notice

from .linearized import Linearized
from .sweeps import in_order

# The autocorrelation of neighbouring rows that a sweep has to exclude. That of a machine that warms
# up during the sweep is of this size.
_CORRELATION = 0.8
_CHANCE = 0.03  # of excluding this autocorrelation although it is the true one
_DRAWS = 999
_MANY = 100  # degrees of freedom from which an autocorrelation is always found or excluded
_WIDER = 1.2  # times as wide as printed: from there on an interval is named


def not_excluded(linear: Linearized, spread: Spread, remembers: bool) -> tuple[Notice, ...]:
    """Return a notice if the residuals do not exclude an autocorrelation of 0.8 at which the
    intervals of `spread` are too narrow. `remembers`: whether these allow for an autocorrelation.

    The test compares the sum of squares of generalised least squares at that autocorrelation with
    the sum of ordinary least squares. Its distribution, and the widths, are those of 999 draws of
    such errors. Therefore the chance of a wrong exclusion is 3 % for any number of rows.
    """
    found, wider = linear.found, np.zeros(len(linear.told))
    rows, told = int(np.sum(linear.counted)), linear.told
    if rows - np.sum(told) > _MANY:
        return ()
    half = spread.half_width(found.level, np.eye(len(told)))
    for one in in_order(linear):
        if one.residuals.any():
            half_with = _half_widths(one, found.level, found.problem.noise_known)
            wider = np.fmax(wider, np.divide(half_with, half, out=np.zeros_like(half), where=told))
    named = [i for i in np.flatnonzero(wider > _WIDER) if np.isfinite(wider[i])]
    if not named:
        return ()
    factors = ", ".join(f"{found.names[i]} {wider[i]:.2g} times" for i in named)
    assumed = "the autocorrelation that residuals show" if remembers else "independent rows"
    numbers = {"rows": rows, "assumed": assumed, "correlation": _CORRELATION, "wider": factors}
    return (Notice("autocorrelation-not-excluded", "", numbers),)


def _half_widths(one: Linearized, level: float, is_noise_known: bool) -> Float[np.ndarray, " p"]:
    """Return half of each interval for rows with the autocorrelation, 0 if it is excluded."""
    n = len(one.residuals)
    root = np.eye(n)
    for _, _, stretches in one.rows:
        for rows in stretches:
            lags = np.abs(np.subtract.outer(np.arange(len(rows)), np.arange(len(rows))))
            root[np.ix_(rows, rows)] = np.linalg.cholesky(_CORRELATION**lags)
    noise = np.random.default_rng(0).standard_normal((n, _DRAWS))
    errors = np.where(one.counted[:, None], np.column_stack([one.residuals, root @ noise]), 0.0)
    axes, _ = one.axes
    columns = one.jacobian @ axes
    ordinary = _left(columns, errors)
    general = _left(np.linalg.solve(root, columns), np.linalg.solve(root, errors))
    ratio = general / np.maximum(ordinary, 1e-300)
    if np.mean(ratio >= ratio[0] * (1 - 1e-9)) < _CHANCE:
        return np.zeros(len(one.told))
    moved = np.abs(axes @ (columns.T @ errors[:, 1:]))
    if is_noise_known:
        return np.quantile(moved, level, axis=1)
    size = np.sqrt(ordinary)
    return np.quantile(moved / np.maximum(size[1:], 1e-300), level, axis=1) * size[0]


def _left(
    columns: Float[np.ndarray, "n s"], y: Float[np.ndarray, "n k"]
) -> Float[np.ndarray, " k"]:
    """Return the sums of squares of the columns of `y` after a fit by `columns`."""
    basis, _ = np.linalg.qr(columns)
    return np.sum((y - basis @ (basis.T @ y)) ** 2, axis=0)
