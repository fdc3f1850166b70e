"""Straight lines over time through the records of many machines, with what they have in common.

x_ij = a_j + b_j t_ij + c_j T_ij + w_ij + r_ij + e_ij: intercept and slope of machine j, a
temperature coefficient of all machines (c_j = c) or of its own, e_ij of known standard error. What
differs from record to record beyond that is white, w ~ N(0, white), or remembers, r of variance
`slow` with the correlation exp(-|t - t'| / memory); these three numbers are one for the fleet, by
restricted maximum likelihood. A walk that remembers looks like drift to whoever takes it for white.
"""

import dataclasses
from typing import Any

import numpy as np

_SURE = 4.0  # twice the gain in likelihood that two more numbers (slow, memory) have to bring
_HINT = 0.5  # of that gain is to be seen in a coarse search before a fine one
_TINY = 1e-12
_CUT, _ROUNDS = 4.0, 6  # standard deviations off the others, beyond which a record does not count
_NOTHING = 1e5  # times the error of a record that does not count


@dataclasses.dataclass(frozen=True, eq=False)
class Lines:
    """Records of one number, machine by machine, by date within each.

    `t` (n,) about the machine's middle, `x`, `error` (n,); `T` (n,) or None; `start` (m,): the
    first record of each machine; `own` (m,): whether it has a temperature coefficient of its own.
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
class Fitted:
    """Lines as they were found.

    - `a`, `b` (m,): values at t = 0 and slopes; `covariance` (m, q, q) of each machine's numbers
      with the common temperature coefficient as known; `by_c` (m, q): how they fall with it.
    - `own_c` (m,): temperature coefficients, NaN where a machine has none of its own; `c` and
      `c_error` of all others, NaN without temperatures.
    - `white`, `slow`: variances of what differs from record to record; `memory` in the unit of t.
    - `dof`: degrees of freedom of what is left; `loglik`: the restricted log likelihood.
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


def solve(lines: Lines, white: float, slow: float, memory: float) -> Fitted:
    """The lines of least weighted squares at these variances, and their restricted likelihood."""
    k = lines.machine
    inverse, logdet = _weights(lines, white, slow, memory)
    own = lines.own[k] if lines.T is not None else np.zeros(len(k), bool)
    T = np.zeros_like(lines.t) if lines.T is None else lines.T
    columns = [np.ones_like(lines.t), lines.t, *([np.where(own, T, 0.0)] if own.any() else [])]
    q = len(columns)  # numbers of a machine; after them the temperature of all, and what is fitted
    X = np.stack([*columns, np.where(own, 0.0, T), lines.x], axis=1)
    WX = inverse(X)
    gram = np.add.reduceat(X[:, :, None] * WX[:, None, :], lines.start, axis=0)
    N = gram[:, :q, :q].copy()
    if q == 3:
        N[~lines.own, 2, 2] = 1.0  # no third number there
    inverted = np.linalg.inv(N)
    by_T, by_x = (_times(inverted, gram[:, :q, q + j]) for j in (0, 1))
    shared = lines.T is not None and bool(np.any(~lines.own))
    info = float(np.sum(gram[:, q, q] - np.sum(gram[:, :q, q] * by_T, axis=1))) if shared else 0.0
    told = info > _TINY * max(float(gram[:, q, q].sum()), 1e-300)
    c = 0.0
    if told:
        c = float(np.sum(gram[:, q, q + 1] - np.sum(gram[:, :q, q] * by_x, axis=1))) / info
    line = by_x - c * by_T
    rest = lines.x - np.sum(X[:, :q] * line[k], axis=1) - c * X[:, q]
    squares = float(rest @ (WX[:, q + 1] - np.sum(WX[:, :q] * line[k], axis=1) - c * WX[:, q]))
    numbers = 2 * lines.start.size + int(np.sum(own[lines.start])) + told
    logs = logdet + np.sum(np.linalg.slogdet(N)[1]) + (np.log(info) if told else 0.0)
    return Fitted(
        a=line[:, 0],
        b=line[:, 1],
        covariance=inverted,
        by_c=by_T,
        own_c=np.where(lines.own & (q == 3), line[:, -1], np.nan),
        c=c if told else np.nan,
        c_error=info**-0.5 if told else np.nan,
        white=white,
        slow=slow,
        memory=memory,
        dof=lines.t.size - numbers,
        loglik=-0.5 * (float(logs) + squares),
    )


def settle(lines: Lines) -> tuple[Lines, Fitted, np.ndarray]:
    """The lines with the records that lie off them set aside, and which these are.

    A record more than four standard deviations off what the others of its machine say does not
    count: it gets an error so large that it says nothing. The first such set is by medians, so that
    those off do not widen the scatter by which they are judged.
    """
    rough = solve(lines, float(np.median(lines.error**2)), 0.0, 1.0)
    z = _rest(lines, rough) / lines.error
    off = np.abs(z) > 1.5 * _CUT * max(1.4826 * float(np.median(np.abs(z))), 1.0)
    for _ in range(_ROUNDS):
        kept = dataclasses.replace(lines, error=np.where(off, _NOTHING * lines.error, lines.error))
        fitted = best(kept)
        fitted = dataclasses.replace(fitted, dof=fitted.dof - int(off.sum()))
        now = np.abs(_deviations(lines, kept, fitted)) > _CUT
        if np.all(now == off):
            break
        off = now
    return kept, fitted, off


def _deviations(lines: Lines, kept: Lines, fitted: Fitted) -> np.ndarray:
    """How many standard deviations each record lies off what the others of its machine say; of
    those that do not count, off the line of the others.
    """
    inverse, _ = _weights(kept, fitted.white, fitted.slow, fitted.memory)
    own = kept.own[kept.machine]
    T = np.zeros_like(kept.t) if kept.T is None else kept.T
    X = np.stack([np.ones_like(kept.t), kept.t, np.where(own, T, 0.0)], axis=1)
    X = X[:, : fitted.covariance.shape[-1]]
    WX, C = inverse(X), fitted.covariance[kept.machine]
    rest = _rest(kept, fitted)
    precision = _diagonal(kept, fitted) - np.einsum("ni,nij,nj->n", WX, C, WX)
    z = inverse(rest[:, None])[:, 0] / np.sqrt(np.maximum(precision, 1e-300))
    variance = lines.error**2 + fitted.white + fitted.slow + np.einsum("ni,nij,nj->n", X, C, X)
    return np.where(kept.error == lines.error, z, rest / np.sqrt(variance))


def _rest(lines: Lines, fitted: Fitted) -> np.ndarray:
    k = lines.machine
    c = np.where(lines.own, np.nan_to_num(fitted.own_c), np.nan_to_num(fitted.c))[k]
    warm = 0.0 if lines.T is None else c * lines.T
    return lines.x - fitted.a[k] - fitted.b[k] * lines.t - warm


def best(lines: Lines) -> Fitted:
    """The lines at the variances of the greatest restricted likelihood; memory where the records
    show it.
    """
    from scipy.optimize import minimize, minimize_scalar

    rough = solve(lines, float(np.median(lines.error**2)), 0.0, 1.0)
    size = float(np.median(lines.error)) ** 2
    spread = max(float(np.median(_rest(lines, rough) ** 2)) / 0.45, size)

    def white(z: float) -> float:
        return -solve(lines, float(np.exp(z)), 0.0, 1.0).loglik

    ends = np.log(1e-4 * size), np.log(100 * spread)
    found: Any = minimize_scalar(white, bounds=ends, method="bounded", options={"xatol": 1e-3})
    plain = [solve(lines, 0.0, 0.0, 1.0), solve(lines, float(np.exp(found.x)), 0.0, 1.0)]
    plain = max(plain, key=lambda f: f.loglik)
    gaps = np.diff(lines.t)[np.diff(lines.machine) == 0]
    gaps = gaps[gaps > 0]
    if plain.dof < 10 or not gaps.size:
        return plain
    step, span = float(np.median(gaps)), float(np.max(_spans(lines)))

    def all_three(z: np.ndarray) -> float:
        if np.any(np.abs(z - middle) > reach):
            return np.inf
        return -solve(lines, *map(float, np.exp(z))).loglik

    low = np.log([1e-4 * size, 1e-4 * size, 0.2 * step])
    high = np.log([100 * spread, 100 * spread, max(span, 2 * step)])
    middle, reach = (low + high) / 2, (high - low) / 2 + 1e-9
    total = max(plain.white, 0.1 * size)
    tried = [
        np.clip(np.log([(1 - share) * total, share * total, memory]), low, high)
        for share in (0.05, 0.2, 0.6)
        for memory in (step, 3 * step, 0.3 * span)
    ]
    first = min(tried, key=all_three)
    if -all_three(first) < plain.loglik + _HINT:
        return plain
    simplex = np.clip(np.vstack([first, first + np.diag([1.0, 1.0, 0.7])]), low, high)
    ended = minimize(
        all_three,
        first,
        method="Nelder-Mead",
        options={"xatol": 0.02, "fatol": 0.01, "maxfev": 200, "initial_simplex": simplex},
    )
    slow = solve(lines, *map(float, np.exp(ended.x)))
    return slow if 2 * (slow.loglik - plain.loglik) > _SURE else plain


def _weights(lines: Lines, white: float, slow: float, memory: float) -> tuple[Any, float]:
    """What multiplies by the inverse of the records' covariance, and the log of its determinant.

    A walk of this memory has a tridiagonal precision, all machines in one band (Rue and Held,
    Gaussian Markov Random Fields, 2005): the work grows with the records alone.
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
    """The precision of walks, and of what is beside them, as a band; and their correlations from
    record to record.
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


def _diagonal(lines: Lines, fitted: Fitted) -> np.ndarray:
    """The diagonal of the inverse of the records' covariance, by pivots from both ends."""
    variance = lines.error**2 + fitted.white
    if fitted.slow == 0:
        return 1.0 / variance
    band, _ = _band(lines, variance, fitted.slow, fitted.memory)
    beside = np.append(band[0, 1:] ** 2, 0.0)
    ahead, behind = _pivots(band[1], beside[:-1]), _pivots(band[1][::-1], beside[:-1][::-1])[::-1]
    return 1.0 / variance - 1.0 / (ahead + behind - band[1]) / variance**2


def _pivots(diagonal: np.ndarray, beside: np.ndarray) -> np.ndarray:
    out, last = np.empty(diagonal.size), np.inf
    for i, (d, b) in enumerate(zip(diagonal.tolist(), [0.0, *beside.tolist()], strict=True)):
        out[i] = last = d - b / last
    return out


def _spans(lines: Lines) -> np.ndarray:
    return np.maximum.reduceat(lines.t, lines.start) - np.minimum.reduceat(lines.t, lines.start)


def _times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (A @ x[:, :, None])[:, :, 0]
