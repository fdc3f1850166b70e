"""Chances of statistics under white noise, over several candidates, and whether noise is white."""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import chdtrc, fdtrc

_LOWEST = 8, 32, 128  # frequencies
_UNEVEN = 0.001
_BANDS = 1, 4, 16  # frequencies beside each other
_PEAK = 0.003  # of white noise, of each
_SLOW = 4  # waves over the record, half a period each
_TOLD = 1e-8  # of products of columns, each of which has the norm 1


def is_even(left: Float[np.ndarray, " n"], block: Int[np.ndarray, " n"]) -> bool:
    """Whether noise is spread evenly over low and high frequencies, and over blocks of time."""
    power = np.abs(np.fft.rfft(left - left.mean())) ** 2
    power = power[1:] / max(float(np.mean(power[1:])), 1e-300)
    low = [m for m in _LOWEST if 4 * m < len(power)]
    if any(chdtrc(2 * m, 2.0 * float(np.sum(power[:m]))) < _UNEVEN for m in low):
        return False
    groups = [left[block == b] for b in np.unique(block)]
    groups = [x for x in groups if len(x) > 2]
    if len(groups) < 2:
        return True
    dof = np.array([len(x) - 1.0 for x in groups])
    variance = np.array([max(float(np.var(x, ddof=1)), 1e-300) for x in groups])
    pooled = float(np.sum(dof * variance) / np.sum(dof))
    size = float(np.sum(dof) * np.log(pooled) - np.sum(dof * np.log(variance)))
    fix = 1.0 + (np.sum(1.0 / dof) - 1.0 / np.sum(dof)) / (3.0 * (len(groups) - 1))
    return bool(chdtrc(len(groups) - 1, size / fix) >= _UNEVEN)


def has_peak(left: Float[np.ndarray, " n"]) -> bool:
    """Whether a few frequencies beside each other have more than white noise gives to any: what a
    term does that shakes a machine by less than the noise, which its memory does not show.

    **Source:** R. A. Fisher, "Tests of significance in harmonic analysis", Proc. R. Soc. A 125
    (1929), by its bound.
    """
    power = np.abs(np.fft.rfft(left - left.mean())) ** 2
    power = power[1:] / max(float(np.mean(power[1:])), 1e-300)
    sums = np.append(0.0, np.cumsum(power))
    bands = (m for m in _BANDS if 4 * m < len(power))
    most = ((m, float(np.max(sums[m:] - sums[:-m]))) for m in bands)
    return any(len(power) * chdtrc(2 * m, 2.0 * x) < _PEAK for m, x in most)


def chance_of_waver(left: Float[np.ndarray, " n"], fitted: Float[np.ndarray, "n p"]) -> float:
    """That numbers with the columns `fitted` which change slowly over a run would explain as much
    of white noise: what a term does that a free decay passes on its way, or a sensor that drifts.

    **Source:** by scores as of J. Nyblom, "Testing for the constancy of parameters over time", JASA
    84 (1989).
    """
    n, p = fitted.shape
    slow = np.cos(np.pi * np.outer((np.arange(n) + 0.5) / n, np.arange(1, _SLOW + 1)))
    more = np.reshape(fitted[:, :, None] * slow[:, None, :], (n, -1))
    table = np.column_stack([fitted, left, more])
    table = table / np.maximum(np.linalg.norm(table, axis=0), 1e-300)
    gram = table.T @ table
    gram = gram - gram[:, :p] @ np.linalg.pinv(gram[:p, :p], _TOLD, hermitian=True) @ gram[:p]
    size, turn = np.linalg.eigh(gram[p + 1 :, p + 1 :])
    told = size > _TOLD
    k, dof = int(np.sum(told)), float(n - p - np.sum(told))
    if not k or dof < 1:
        return 1.0
    gain = float(np.sum((turn[:, told].T @ gram[p + 1 :, p]) ** 2 / size[told]))
    return chance_of(gain / max(float(gram[p, p]) - gain, 1e-300) * dof / k, k, dof)


def holm(chances: Float[np.ndarray, " m"], tries: Float[np.ndarray, " m"]) -> np.ndarray:
    """Chances of as good a one among all, each of so many `tries` (S. Holm, 1979)."""
    p, out, most = np.minimum(chances * tries, 1.0), np.ones(len(chances)), 0.0
    order = np.argsort(p)
    for i, j in enumerate(order):
        most = max(most, min((len(p) - i) * p[j], 1.0))
        out[j] = most
    return out


def chance_of(f: float, k: int, dof: float) -> float:
    """Of an F that large or larger, of k and dof degrees of freedom."""
    return float(fdtrc(k, max(dof, 1), max(f, 0.0)))
