"""Does a residual remember itself?"""

import numpy as np
from jaxtyping import Float

from .finding import Curve, Finding, amount, is_strong

_LAGS = 20  # of the test; more only lose power


def autocorrelation(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Of x about its mean, at lags 0 to n - 1; 1 at lag 0.

    >>> autocorrelation(np.array([1.0, -1.0, 1.0, -1.0])).round(2)
    array([ 1.  , -0.75,  0.5 , -0.25])
    """
    x = x - x.mean()
    spectrum = np.fft.rfft(x, 1 << (2 * x.size - 1).bit_length())
    products = np.fft.irfft(np.abs(spectrum) ** 2)[: x.size]
    return products / products[0] if products[0] > 0 else np.eye(1, x.size)[0]


def predictable(rho: Float[np.ndarray, " k"], order: int) -> float:
    """The share of the variance that the last `order` values tell of the next (Levinson and
    Durbin).
    """
    left, a = 1.0, np.zeros(0)
    for k in range(1, order + 1):
        new = (rho[k] - a @ rho[k - 1 : 0 : -1]) / left if k > 1 else rho[1]
        a = np.concatenate([a - new * a[::-1], [new]])
        left *= 1.0 - new**2
        if left <= 1e-12:
            break
    return float(1.0 - left)


def whiteness(
    record: str,
    of: str,
    t: Float[np.ndarray, " n"],
    e: Float[np.ndarray, " n"],
) -> Finding:
    """How long the residual of the fit's own objective remembers: n/(1 + 2*sum of autocorrelations)
    of its n samples are independent.

    The sum ends at the first lag beyond five times what it is then (Sokal's window). Ljung and
    Box's Q over 20 lags against chi-square says whether white noise would do as much.

    **Source:** G. M. Ljung, G. E. P. Box, Biometrika 65 (1978); A. D. Sokal, Monte Carlo methods in
    statistical mechanics (1997), sec. 3.
    """
    from scipy.stats import chi2

    n, step = e.size, float(np.median(np.diff(np.sort(t))))
    rho = autocorrelation(e)
    lags = min(_LAGS, n // 5)
    q = n * (n + 2) * float(np.sum(rho[1 : lags + 1] ** 2 / (n - np.arange(1, lags + 1))))
    p = float(chi2.sf(q, lags))
    sums = 1.0 + 2.0 * np.cumsum(rho[1:])
    inside = np.flatnonzero(np.arange(1, n) >= 5.0 * sums)
    times = max(float(sums[inside[0] if inside.size else -1]), 1e-3)
    independent = float(min(n / times, n))
    share = max(0.0, predictable(rho, lags) - lags / n)
    strong, lasts = is_strong(share, p), 0.5 * times * step
    reach = int(min(max(6 * times, 40), n - 1, 3000))
    band = 1.96 / np.sqrt(n)
    at = np.unique(np.linspace(0, reach, min(reach + 1, 600)).astype(int))
    curves = (
        Curve(step * np.array([0.0, reach]), np.full(2, band), None, 0, "band"),
        Curve(step * at, rho[at], None, 0, "line"),
    )
    if not strong:
        sentence = (
            f"Residuals of {of} are white as far as {n} samples tell (first autocorrelation"
            f" {rho[1]:.2f}, chance of as much {p:.2g})."
        )
    elif independent < 0.9 * n:
        sentence = (
            f"Residuals of {of} are autocorrelated over {amount(lasts, 's', 2)} (first"
            f" autocorrelation {rho[1]:.2f}). Therefore {n} samples count as"
            f" {independent:.0f} independent ones, and errors for white residuals are"
            f" {np.sqrt(n / independent):.2g} times too small. The printed errors allow for that."
        )
    else:
        sentence = (
            f"Residuals of {of} depend on their neighbours with changing sign (first"
            f" autocorrelation {rho[1]:.2f}), as after a filter."
        )
    numbers = {"first": float(rho[1]), "correlation time": lasts, "Q": q}
    numbers["independent samples"] = independent
    return Finding(
        "whiteness", record, of, sentence, strong, abs(float(rho[1])), 1.0 / np.sqrt(n), "1",
        share, p, numbers, curves, ("lag", "s"), ("autocorrelation", "1"),
    )  # fmt: skip
