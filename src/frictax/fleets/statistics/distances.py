"""How far records and machines lie off their population, and how often chance alone does as much.

Mahalanobis distances with the spread and each record's own errors. Of a large fleet with records of
many samples they are chi-squared; of a small one, and of errors that are themselves hardly known,
Hotelling's T2 with the degrees of freedom by Satterthwaite. An estimate that counts for mean and
spread is measured from the others.
"""

import dataclasses

import numpy as np

from .hierarchy import Estimates, Terms

_CUTS, _FEW = (0.001, 0.01), 100  # of fewer machines, and of so many or more


@dataclasses.dataclass(frozen=True, eq=False)
class Tests:
    """`squared` (n,): squared distance of each record from the population; `chance` (n,): how often
    a record of the population is farther off; `machine` (m,): the same of machines; `within` (n,):
    of a record from the others of its machine. NaN where nothing can be said.
    """

    squared: np.ndarray
    chance: np.ndarray
    machine: np.ndarray
    within: np.ndarray


def distances(
    of: Estimates,
    between: np.ndarray,
    within: np.ndarray | None,
    at: Terms,
    told: np.ndarray,
    freedom: np.ndarray,
) -> Tests:
    """`told` (n,): how many numbers a record tells; `freedom` (n,) of its errors."""
    count = float(of.kept_machines.sum())
    machine_squared = _squared(between + at.V, at.ybar - at.mean)
    if within is None:
        share = _share(between, between + at.V, told)
        chance = chances(machine_squared, told, share, count, of.kept_machines, freedom)
        return Tests(machine_squared, chance, chance, np.full(len(of.y), np.nan))
    most = np.maximum.reduceat(told, of.start)
    many = np.full(of.start.size, np.inf)  # the errors of several records: as if known
    share = _share(between, between + at.V, most)
    machine = chances(machine_squared, most, share, count, of.kept_machines, many)
    spread = between + within
    squared = _squared(spread + of.C, of.y - at.mean)
    share = _share(spread, spread + of.C, told)
    # one of the records of a machine is little of what the spread was found from
    chance = chances(squared, told, share, count, np.zeros(len(of.y)), freedom)
    return Tests(squared, chance, machine, _within(of, within, at, told, freedom))


def _within(
    of: Estimates, within: np.ndarray, at: Terms, told: np.ndarray, freedom: np.ndarray
) -> np.ndarray:
    """How often a record is as far from the others of its machine as it is."""
    k, eye = of.machine, np.eye(len(within))
    others = of.sums(of.kept)[k] - of.kept > 0
    W = np.linalg.inv(at.V)[k] - at.A
    V = np.linalg.inv(np.where(others[:, None, None], W, eye))
    weighed = (np.linalg.inv(at.V) @ at.ybar[:, :, None])[k, :, 0] - _times(at.A, of.y)
    total = within + of.C + V
    squared = _squared(total, of.y - _times(V, weighed))
    spare = float(np.sum(np.maximum(of.sums(of.kept) - 1, 0)))
    # the others are left out by themselves: what is in the spread of all is little
    out = chances(squared, told, _share(within, total, told), spare + 1, np.zeros(len(k)), freedom)
    return np.where(others, out, np.nan)


def chances(
    squared: np.ndarray,
    told: np.ndarray,
    share: np.ndarray,
    count: float,
    counts: np.ndarray,
    freedom: np.ndarray,
) -> np.ndarray:
    """How often chance alone goes beyond these squared distances.

    **Arguments:** `told`: numbers that each tells; `share` (0 to 1) of the variance that is the
    spread, which was found from `count` of them, those with `counts` 1 among these; `freedom` of
    the rest.
    """
    from scipy.special import chdtrc, fdtrc

    p = told.astype(float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        n = 1.0 + (count - 1.0) / share**2  # as many as the whole variance would have been found by
        n = np.where(np.isfinite(n), np.minimum(n, 1e12), 1e12)
        inside = counts > 0
        left = np.maximum(1.0 - n * squared / (n - 1) ** 2, 1e-3)
        deleted = (n / (n - 1)) * (n - 2) / (n - 1) * squared / left
        away = np.where(inside, deleted, squared * n / (n + 1))
        spare = np.where(inside, n - 2, n - 1)  # of the spread
        dof = spare - p + 1
        F = away * dof / (p * spare)
        both = 1.0 / (1.0 / dof + (1.0 - share) ** 2 / freedom)
        chance = np.where(both > 1e7, chdtrc(p, p * F), fdtrc(p, both, F))
    return np.where((dof > 0) & (p > 0), chance, np.nan)


def cut(machines: int) -> float:
    """The chance beyond which an estimate is left out of the likelihood: of a few machines, what is
    left out by chance costs more than an outlier that is not told does.
    """
    return _CUTS[machines >= _FEW]


def growth(p: int, beyond: float) -> float:
    """By how much the mean square of a normal population in p dimensions is to be raised, where
    those beyond the cut were left out.
    """
    from scipy.special import chdtr, chdtri

    q = chdtri(p, beyond)
    return float(chdtr(p, q) / chdtr(p + 2, q))


def lost(p: int, beyond: float) -> float:
    """By how much the cut raises the variances of the spread's entries, beyond the number that is
    left out.
    """
    from scipy.special import chdtr, chdtri
    from scipy.stats import chi2

    q, c = chdtri(p, beyond), growth(p, beyond)
    F0, F2, F4 = (float(chdtr(p + k, q)) for k in (0, 2, 4))
    slope = F0 - q * float(chi2.pdf(q, p)) * (c * q / p - 1.0)
    return (c**2 * (p + 2) / p * F4 - 2 * c * F2 + F0) * F0 / slope**2 * p / 2


def _share(spread: np.ndarray, total: np.ndarray, told: np.ndarray) -> np.ndarray:
    """Which share of the variance is the spread; what is not told has none."""
    each = np.einsum("nij,ji->n", np.linalg.inv(total), spread)
    return np.clip(each / np.maximum(told, 1), 0.0, 1.0)


def _squared(V: np.ndarray, r: np.ndarray) -> np.ndarray:
    return np.sum(r * np.linalg.solve(V, r[:, :, None])[:, :, 0], axis=1)


def _times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (A @ x[:, :, None])[:, :, 0]
