"""Fit straight lines over time to the estimates of many machines with a common scatter variance.

The estimate of record i of machine j is x_ij = a_j + b_j t_ij + c_j T_ij + w_ij + r_ij + e_ij. Here
t is the time, and T is the temperature. Machine j has the intercept a_j and the slope b_j. The
temperature coefficient c_j is common to all machines (c_j = c) or separate for machine j. The
errors e_ij have known standard deviations. The scatter between records has a white part w ~ N(0,
white) and an autocorrelated part r. The variance of r is `slow`, and its autocorrelation over the
time difference dt is exp(-dt / memory). `white`, `slow` and `memory` are common to the fleet and
are estimated by restricted maximum likelihood. Without r, autocorrelated scatter looks like drift.
"""

import dataclasses
from typing import Any

import numpy as np

from .reml import multiply
from .robust import MAD_FACTOR


@dataclasses.dataclass(frozen=True, eq=False)
class Lines:
    """Estimates of one parameter, sorted by machine and then by date.

    - `t` (n,): time since the mean date of the machine [years]; `x`, `error` (n,): estimates and
      their standard errors; `T` (n,): temperatures minus a reference temperature [K], or None.
    - `start` (m,): index of the first record of each machine; `own` (m,): mask of the machines with
      a separate temperature coefficient.
    """

    t: np.ndarray
    x: np.ndarray
    error: np.ndarray
    T: np.ndarray | None
    start: np.ndarray
    own: np.ndarray

    @property
    def machine(self) -> np.ndarray:
        return np.repeat(np.arange(self.start.size), np.diff([*self.start, self.t.size]))


@dataclasses.dataclass(frozen=True, eq=False)
class LinesFit:
    """The fitted lines of one parameter for all machines.

    - `a`, `b` (m,): value at t = 0 and slope of each line. `covariance` (m, q, q): covariance of
      the q parameters of each machine for a given common temperature coefficient. `by_c` (m, q):
      derivatives of the q parameters with respect to the common coefficient, times -1.
    - `own_c` (m,): separate temperature coefficient of each machine, NaN if the common coefficient
      is used. `c`, `c_error`: common coefficient and its standard error, NaN without temperatures.
    - `white`, `slow`: variances of the white and of the autocorrelated scatter between records;
      `memory`: correlation time in the unit of t.
    - `dof`: degrees of freedom of the residuals; `loglik`: the restricted log likelihood.
    """

    a: np.ndarray
    b: np.ndarray
    covariance: np.ndarray
    by_c: np.ndarray
    own_c: np.ndarray
    c: float
    c_error: float
    white: float
    slow: float
    memory: float
    dof: int
    loglik: float


def solve_lines(lines: Lines, white: float, slow: float, memory: float) -> LinesFit:
    """Fit the lines by weighted least squares for given variances and memory of the scatter."""
    k = lines.machine
    inverse, logdet = _precision(lines, white, slow, memory)
    own = lines.own[k] if lines.T is not None else np.zeros(len(k), bool)
    T = np.zeros_like(lines.t) if lines.T is None else lines.T
    columns = [np.ones_like(lines.t), lines.t, *([np.where(own, T, 0.0)] if own.any() else [])]
    q = len(columns)  # number of parameters of one machine
    # The last columns of X are the temperatures of machines with the common coefficient, and x.
    X = np.stack([*columns, np.where(own, 0.0, T), lines.x], axis=1)
    WX = inverse(X)
    gram = np.add.reduceat(X[:, :, None] * WX[:, None, :], lines.start, axis=0)
    N = gram[:, :q, :q].copy()
    if q == 3:
        # Machines without their own temperature coefficient do not have a third parameter.
        N[~lines.own, 2, 2] = 1.0
    inverted = np.linalg.inv(N)
    by_T, by_x = (multiply(inverted, gram[:, :q, q + j]) for j in (0, 1))
    shared = lines.T is not None and bool(np.any(~lines.own))
    info = float(np.sum(gram[:, q, q] - np.sum(gram[:, :q, q] * by_T, axis=1))) if shared else 0.0
    has_common = info > 1e-12 * max(float(gram[:, q, q].sum()), 1e-300)
    c = 0.0
    if has_common:
        c = float(np.sum(gram[:, q, q + 1] - np.sum(gram[:, :q, q] * by_x, axis=1))) / info
    line = by_x - c * by_T
    rest = lines.x - np.sum(X[:, :q] * line[k], axis=1) - c * X[:, q]
    squares = float(rest @ (WX[:, q + 1] - np.sum(WX[:, :q] * line[k], axis=1) - c * WX[:, q]))
    fitted_parameters = 2 * lines.start.size + int(np.sum(own[lines.start])) + has_common
    logs = logdet + np.sum(np.linalg.slogdet(N)[1]) + (np.log(info) if has_common else 0.0)
    return LinesFit(
        a=line[:, 0],
        b=line[:, 1],
        covariance=inverted,
        by_c=by_T,
        own_c=np.where(lines.own & (q == 3), line[:, -1], np.nan),
        c=c if has_common else np.nan,
        c_error=info**-0.5 if has_common else np.nan,
        white=white,
        slow=slow,
        memory=memory,
        dof=lines.t.size - fitted_parameters,
        loglik=-0.5 * (float(logs) + squares),
    )


def fit_lines_robustly(lines: Lines) -> tuple[Lines, LinesFit, np.ndarray]:
    """Fit the lines without outliers. Return `lines` with the standard errors of outliers
    multiplied by 1e5, the fit, and a mask of outliers (n,). An outlier is more than four standard
    deviations from the line of the other records of its machine. Medians determine the first
    set of outliers, because outliers would increase a scatter that is estimated from all records.
    """
    rough = solve_lines(lines, float(np.median(lines.error**2)), 0.0, 1.0)
    z = _residuals(lines, rough) / lines.error
    most = 4.0  # [standard deviations] A larger deviation counts as an outlier.
    off = np.abs(z) > 1.5 * most * max(MAD_FACTOR * float(np.median(np.abs(z))), 1.0)
    for _ in range(6):
        kept = dataclasses.replace(lines, error=np.where(off, 1e5 * lines.error, lines.error))
        fitted = fit_lines(kept)
        fitted = dataclasses.replace(fitted, dof=fitted.dof - int(off.sum()))
        now = np.abs(_deviations(lines, kept, fitted)) > most
        if np.all(now == off):
            break
        off = now
    return kept, fitted, off


def _deviations(lines: Lines, kept: Lines, fitted: LinesFit) -> np.ndarray:
    """Return the distance of each estimate from the line of the other records of its machine, in
    standard deviations. The distance of an outlier is measured from the line of the fit without it.
    """
    inverse, _ = _precision(kept, fitted.white, fitted.slow, fitted.memory)
    own = kept.own[kept.machine]
    T = np.zeros_like(kept.t) if kept.T is None else kept.T
    X = np.stack([np.ones_like(kept.t), kept.t, np.where(own, T, 0.0)], axis=1)
    X = X[:, : fitted.covariance.shape[-1]]
    WX, C = inverse(X), fitted.covariance[kept.machine]
    rest = _residuals(kept, fitted)
    own_variance = kept.error**2 + fitted.white
    diagonal = 1.0 / own_variance  # diagonal of the inverse covariance of the estimates
    # The diagonal of the inverse follows from two eliminations, one forwards from the first record
    # and one backwards from the last record.
    if fitted.slow != 0:
        band, _ = _band(kept, own_variance, fitted.slow, fitted.memory)
        squares = band[0, 1:] ** 2
        ahead = _pivots(band[1], squares)
        behind = _pivots(band[1][::-1], squares[::-1])[::-1]
        diagonal -= 1.0 / (ahead + behind - band[1]) / own_variance**2
    precision = diagonal - np.einsum("ni,nij,nj->n", WX, C, WX)
    z = inverse(rest[:, None])[:, 0] / np.sqrt(np.maximum(precision, 1e-300))
    variance = lines.error**2 + fitted.white + fitted.slow + np.einsum("ni,nij,nj->n", X, C, X)
    return np.where(kept.error == lines.error, z, rest / np.sqrt(variance))


def _residuals(lines: Lines, fitted: LinesFit) -> np.ndarray:
    k = lines.machine
    c = np.where(lines.own, np.nan_to_num(fitted.own_c), np.nan_to_num(fitted.c))[k]
    warm = 0.0 if lines.T is None else c * lines.T
    return lines.x - fitted.a[k] - fitted.b[k] * lines.t - warm


def fit_lines(lines: Lines) -> LinesFit:
    """Fit the lines with the scatter variances that maximise the restricted likelihood. The fit
    includes autocorrelated scatter only if this increases the likelihood significantly.
    """
    from scipy.optimize import minimize, minimize_scalar

    rough = solve_lines(lines, float(np.median(lines.error**2)), 0.0, 1.0)
    size = float(np.median(lines.error)) ** 2
    spread = max(float(np.median(_residuals(lines, rough) ** 2)) / 0.45, size)

    def white_cost(z: float) -> float:
        return -solve_lines(lines, float(np.exp(z)), 0.0, 1.0).loglik

    ends = np.log(1e-4 * size), np.log(100 * spread)
    found: Any = minimize_scalar(white_cost, bounds=ends, method="bounded", options={"xatol": 1e-3})
    plain = [
        solve_lines(lines, 0.0, 0.0, 1.0),
        solve_lines(lines, float(np.exp(found.x)), 0.0, 1.0),
    ]
    plain = max(plain, key=lambda f: f.loglik)
    gaps = np.diff(lines.t)[np.diff(lines.machine) == 0]
    gaps = gaps[gaps > 0]
    if plain.dof < 10 or not gaps.size:
        return plain
    step = float(np.median(gaps))
    spans = np.maximum.reduceat(lines.t, lines.start) - np.minimum.reduceat(lines.t, lines.start)
    span = float(np.max(spans))

    def slow_cost(z: np.ndarray) -> float:
        if np.any(np.abs(z - middle) > reach):
            return np.inf
        return -solve_lines(lines, *map(float, np.exp(z))).loglik

    low = np.log([1e-4 * size, 1e-4 * size, 0.2 * step])
    high = np.log([100 * spread, 100 * spread, max(span, 2 * step)])
    middle, reach = (low + high) / 2, (high - low) / 2 + 1e-9
    total = max(plain.white, 0.1 * size)
    tried = [
        np.clip(np.log([(1 - share) * total, share * total, memory]), low, high)
        for share in (0.05, 0.2, 0.6)
        for memory in (step, 3 * step, 0.3 * span)
    ]
    first = min(tried, key=slow_cost)
    if -slow_cost(first) < plain.loglik + 0.5:  # The coarse search does not find autocorrelation.
        return plain
    simplex = np.clip(np.vstack([first, first + np.diag([1.0, 1.0, 0.7])]), low, high)
    searched = minimize(
        slow_cost,
        first,
        method="Nelder-Mead",
        options={"xatol": 0.02, "fatol": 0.01, "maxfev": 200, "initial_simplex": simplex},
    )
    slow = solve_lines(lines, *map(float, np.exp(searched.x)))
    # The scatter counts as autocorrelated if twice the gain in log-likelihood exceeds 4.
    return slow if 2 * (slow.loglik - plain.loglik) > 4.0 else plain


def _precision(lines: Lines, white: float, slow: float, memory: float) -> tuple[Any, float]:
    """Return a function that multiplies a matrix by the inverse covariance of the estimates, and
    the log determinant of this covariance. The inverse covariance of the autocorrelated part is
    tridiagonal, and one band matrix contains all machines. Therefore the computing time is
    proportional to the number of records (Rue and Held, Gaussian Markov Random Fields, 2005).
    """
    variance = lines.error**2 + white
    if slow == 0:
        return lambda X: X / variance[:, None], float(np.sum(np.log(variance)))
    from scipy.linalg import cho_solve_banded, cholesky_banded

    band, rho = _band(lines, variance, slow, memory)
    factor = cholesky_banded(band)
    logdet = float(
        np.sum(np.log(variance))
        + 2 * np.sum(np.log(factor[1]))
        + lines.t.size * np.log(slow)
        + np.sum(np.log1p(-(rho**2)))
    )

    def inverse(X: np.ndarray) -> np.ndarray:
        scaled = X / variance[:, None]
        return scaled - cho_solve_banded((factor, False), scaled) / variance[:, None]

    return inverse, logdet


def _band(
    lines: Lines, variance: np.ndarray, slow: float, memory: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return a band matrix, the inverse covariance of the autocorrelated scatter plus 1 /
    `variance`. Return also the correlation (n - 1,) of this scatter between successive records.
    """
    gaps = np.diff(lines.t)
    joined = np.diff(lines.machine) == 0
    rho = np.where(joined, np.exp(-np.maximum(gaps, 1e-6 * memory) / memory), 0.0)
    one = 1.0 / (-np.expm1(2 * np.log(np.maximum(rho, 1e-300))) * slow)
    diagonal = np.full(lines.t.size, 1.0 / slow)
    diagonal[1:] += rho**2 * one
    diagonal[:-1] += rho**2 * one
    band = np.zeros((2, lines.t.size))
    band[1] = diagonal + 1.0 / variance
    band[0, 1:] = -rho * one
    return band, rho


def _pivots(diagonal: np.ndarray, off_diagonal: np.ndarray) -> np.ndarray:
    out, last = np.empty(diagonal.size), np.inf
    for i, (d, b) in enumerate(zip(diagonal.tolist(), [0.0, *off_diagonal.tolist()], strict=True)):
        out[i] = last = d - b / last
    return out
