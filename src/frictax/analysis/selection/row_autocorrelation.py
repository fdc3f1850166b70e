"""Criteria of a sweep with autocorrelated errors: ``e[i] = rho*e[i-1] + w[i]``, w white noise."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from jaxtyping import Float

from frictax.fitting import FitResult

_LARGEST = 0.98
# Twice the gain of log likelihood above which errors count as autocorrelated. Chance exceeds it in
# one of twenty sweeps with white noise.
_SURE = 2.7
_LITTLE = 0.3  # correlation of two rows below which they count as independent
_FEWEST = 10  # least degrees of freedom from which an autocorrelation is estimated


def autocorrelation_of(fits: Iterable[FitResult]) -> float:
    """Return the autocorrelation of the errors of neighbouring rows, from 0 to 0.98. It is 0 if
    white noise explains the sweep as well, or if there are too few rows.

    It is estimated by restricted maximum likelihood from the law with the least AICc for white
    noise, because a law that lacks a term has autocorrelated residuals. The result is the upper end
    of the 68 % interval: with too small a value a law with many parameters follows the errors.

    **Source:** H. D. Patterson, R. Thompson, Biometrika 58(3), 1971 (restricted likelihood).
    """
    from scipy.optimize import minimize_scalar

    found = min(fits, key=lambda one: one.aicc)
    r, J = _linearise(found)
    free = r.size - J.shape[1]
    if found.loss.rounds > 1 or found.problem.priors or free < _FEWEST:
        return 0.0

    minus2log = restricted_likelihood(r, J)
    best: Any = minimize_scalar(minus2log, bounds=(0.0, _LARGEST), method="bounded")
    if not minus2log(0.0) - best.fun > _SURE:
        return 0.0
    farther = np.linspace(best.x, _LARGEST, 100)
    return float(max(x for x in farther if minus2log(x) <= best.fun + 1.0))


def restricted_likelihood(
    r: Float[np.ndarray, " n"], J: Float[np.ndarray, "n p"]
) -> Callable[[float], float]:
    """Return a function of the autocorrelation: -2 times the log of the restricted likelihood of
    residuals `r` of a fit with the Jacobian `J`, up to a constant.
    """

    def minus2log(rho: float) -> float:
        a, b = whiten_rows(J, rho), whiten_rows(r, rho)
        q, triangle = np.linalg.qr(a)
        left, least = b - q @ (q.T @ b), np.finfo(float).tiny
        size = 2.0 * np.sum(np.log(np.maximum(np.abs(np.diag(triangle)), least)))
        free = r.size - J.shape[1]
        return float(free * np.log(max(left @ left, least)) - np.log(1.0 - rho**2) + size)

    return minus2log


def criteria_with(found: FitResult, rho: float) -> tuple[float, float]:
    """Return AICc and BIC of the fit for errors with this autocorrelation, which counts as one
    parameter.

    The law is fitted again by generalised least squares, to first order about the fit. This is
    exact for laws that are linear in their parameters.
    """
    if rho == 0.0:
        return found.aicc, found.bic
    sweep, (r, J) = found.sweep, _linearise(found)
    n = r.size
    a, b = whiten_rows(J, rho), whiten_rows(r, rho)
    left = b - a @ np.linalg.lstsq(a, b, rcond=None)[0]
    squares = max(float(left @ left), 1e-24 * float(np.sum((sweep.force * _weight(found)) ** 2)))
    misfit = squares if sweep.sigma_known else n * (np.log(squares / n) + 1.0)
    constant = n * np.log(2 * np.pi) - 2.0 * np.sum(np.log(_weight(found)))
    minus2log = misfit + constant - np.log(1.0 - rho**2)
    k = len(found.estimates) + 2 - sweep.sigma_known
    aicc = minus2log + 2 * k * n / (n - k - 1) if n > k + 1 else np.inf
    return float(aicc), float(minus2log + k * np.log(n))


def weights_left_out(n: int, rho: float) -> Float[np.ndarray, "n n"]:
    """Return for each row the weights of all rows in the fit that predicts it: 0 for the row itself
    and for neighbours whose errors are correlated with its own, else 1.
    """
    reach = int(np.ceil(np.log(_LITTLE) / np.log(rho))) if rho > _LITTLE else 0
    away = np.abs(np.arange(n)[:, None] - np.arange(n))
    return (away > min(reach, n // 8)).astype(float)


def _weight(found: FitResult) -> Float[np.ndarray, " n"]:
    sigma = found.sweep.sigma
    return np.broadcast_to(1.0 if sigma is None else 1.0 / sigma, found.n)


def _linearise(found: FitResult) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n p"]]:
    n = found.n
    return found.full_residuals[:n], found.full_jacobian[:n, found.active]


def whiten_rows(x: Float[np.ndarray, "n ..."], rho: float) -> Float[np.ndarray, "n ..."]:
    """Return the rows of `x` as combinations whose errors are independent."""
    first = np.sqrt(1.0 - rho**2) * x[:1]
    return np.concatenate([first, x[1:] - rho * x[:-1]])
