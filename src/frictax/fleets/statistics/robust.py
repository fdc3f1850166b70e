"""Robust fit of a population: mean, spreads (covariances) and outliers, from estimates of records.

Estimates are transformed to the unconstrained scale by the delta method. The transformation is
linearised at the conditional mode of each record and iterated to convergence (Lindstrom and Bates,
Biometrics 46, 1990). With a linearisation at the estimate itself, values that are low by chance
would get relative errors that are too large, and too little weight.

The search starts from medians, median deviations and rank correlations, so one outlier does not
hide another. Estimates whose distance from the mean exceeds the 99 % quantile (99.9 % in a small
fleet) are then excluded from the likelihood. A consistency factor multiplies the squared deviations
of the remaining estimates. Fit and exclusion are repeated until the set of excluded estimates does
not change. This method is the reweighting of Rousseeuw and Van Zomeren (JASA 85, 1990) with the
factor of Croux and Haesbroeck (Journal of Multivariate Analysis 71, 1999). The distances from the
mean have the distributions of Cerioli (JASA 105, 2010), one for excluded estimates, and another one
for all other estimates.

Mahalanobis distances use the sum of the spread and the error covariance of each record. Squared
distances have a chi-squared distribution in a large fleet of long records. In a small fleet, or if
error covariances have few degrees of freedom, squared distances have Hotelling's T2 distribution,
with Satterthwaite's degrees of freedom. Each estimate is compared with the mean of other estimates.
"""

import dataclasses

import numpy as np

from .reml import Estimates, Likelihood, evaluate_likelihood, maximize_likelihood, multiply

# Standard deviation of a normal distribution divided by its median absolute deviation
MAD_FACTOR = 1.4826


@dataclasses.dataclass(frozen=True, eq=False)
class RawEstimates:
    """Estimates z (n, p) of p parameters from n records [SI], sorted by machine; NaN if missing.

    - `covariance` (n, p, p): error covariance of each record; `freedom` (n,): degrees of freedom of
      this covariance.
    - `log` (p,): mask of the parameters whose logarithm is normally distributed. For parameters in
      `log`, z is the distance from the lower bound.
    - `start` (m,): index of the first record of each machine.
    """

    z: np.ndarray
    covariance: np.ndarray
    log: np.ndarray
    start: np.ndarray
    freedom: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """Mask of the existing estimates (n, p)."""
        return np.isfinite(self.z)

    def unconstrained_start(self) -> np.ndarray:
        """Return the first values of u (n, p), the estimates on the unconstrained scale. For the
        logarithm, half the standard error of an estimate replaces a smaller or negative estimate.
        """
        error = np.sqrt(np.einsum("nii->ni", self.covariance))
        with np.errstate(invalid="ignore"):
            rough = np.where(self.log, np.log(np.fmax(self.z, 0.5 * error)), self.z)
        return np.where(self.known, rough, np.nanmedian(rough, axis=0))

    def linearize(
        self,
        u: np.ndarray,
        scale: np.ndarray,
        T: np.ndarray | None = None,
        before: Estimates | None = None,
    ) -> Estimates:
        """Transform estimates to the unconstrained scale by the delta method, linearised at `u`.

        **Arguments:** `u` (n, p): point of the linearisation; `T`: error covariance of `u`; `scale`
        (p,): approximate standard deviation between records on this scale; `before`: `Estimates`
        whose outlier marks are copied. Half the variance in `T` is added to a logarithm, which
        corrects the mean to second order in the errors.
        """
        slope = np.where(self.log, np.exp(np.where(self.log, u, 0.0)), 1.0)
        moved = np.where(self.known, self.z / slope - 1.0, 0.0)
        # On a logarithmic scale the linearised estimate differs by at most 3 from `u` (factor 20).
        y = np.where(self.log, u + np.clip(moved, -3.0, 3.0), self.z)
        C = np.nan_to_num(self.covariance) / slope[:, :, None] / slope[:, None, :]
        C = np.where(self.known[:, :, None] & self.known[:, None, :], C, 0.0)
        # A parameter that a record does not identify gets a standard error of 1e6 times `scale`.
        unknown = np.where(self.known, 0.0, (1e6 * scale) ** 2)
        C += unknown[:, :, None] * np.eye(scale.size)
        y = np.where(self.known, y, u)
        if T is not None and before is not None:
            y = y + np.where(self.log & self.known, 0.5 * np.einsum("nii->ni", T), 0.0)
            return dataclasses.replace(before, y=y, C=C)
        return Estimates(y, C, self.start, np.ones(len(y)), np.ones(self.start.size))

    def with_even_weights(
        self, estimates: Estimates, u: np.ndarray, scale: np.ndarray
    ) -> Estimates:
        """Return `estimates` with error covariances that do not depend on the values of parameters
        in `log`. With equal absolute errors, large values have small relative errors. Without this
        correction, large values have large weights in the likelihood, and the mean is biased.
        """
        C, out = estimates.C, np.ones(u.shape)
        for k in np.flatnonzero(self.log):
            known = self.known[:, k]
            off = np.clip(u[:, k] - np.median(u[known, k]), -3 * scale[k], 3 * scale[k])
            x = off[known] - off[known].mean()
            # With fewer than 100 records, the dependence of errors on values is too uncertain.
            if known.sum() >= 100 and x.any():
                slope = 0.5 * float(x @ np.log(C[known, k, k])) / float(x @ x)
                out[:, k] = np.where(known, np.exp(-np.clip(slope, -2.0, 2.0) * off), 1.0)
        return dataclasses.replace(estimates, C=C * out[:, :, None] * out[:, None, :])


@dataclasses.dataclass(frozen=True, eq=False)
class OutlierTests:
    """Squared Mahalanobis distances and p values; NaN if a test is not possible.

    - `squared`, `chance` (n,): squared distance of each record from the population mean, and the p
      value of this distance.
    - `machine` (m,): p value of the distance of each machine's mean from the population mean.
    - `within` (n,): p value of each record's distance from the other records of its machine.
    """

    squared: np.ndarray
    chance: np.ndarray
    machine: np.ndarray
    within: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class PopulationFit:
    """A fitted population on the unconstrained scale, with records sorted by machine.

    - `between`, `within` (p, p): covariances between machines and between records of one machine;
      `likelihood`: likelihood of `estimates`; `converged`: true if the last search converged.
    - `u` (n, p), `T` (n, p, p): empirical Bayes estimates of the records and their covariances;
      `machine_u` (m, p), `machine_T` (m, p, p): estimates of the machines and their covariances.
    - `tests`: distances and p values of records and machines.
    """

    between: np.ndarray
    within: np.ndarray | None
    likelihood: Likelihood
    estimates: Estimates
    u: np.ndarray
    T: np.ndarray
    machine_u: np.ndarray
    machine_T: np.ndarray
    tests: OutlierTests
    converged: bool


def fit_robust_population(raw: RawEstimates) -> PopulationFit:
    """Fit a population to `raw` estimates; find outliers and exclude them from the fit."""
    u = raw.unconstrained_start()
    scale = np.maximum(_robust_deviation(u), 1e-9 * np.abs(np.median(u, axis=0)) + 1e-100)
    estimates = raw.linearize(u, scale)
    # The start values of the spreads follow from medians and rank correlations.
    noise = np.nanmedian(np.where(raw.known, np.einsum("nii->ni", estimates.C), np.nan), axis=0)
    total, within = _robust_deviation(u) ** 2, None
    correlation = np.eye(u.shape[1])
    if u.shape[1] > 1 and len(u) > 2:
        # Rank correlation (Spearman), converted to a positive definite normal correlation.
        ranks = np.argsort(np.argsort(u, axis=0), axis=0).astype(float)
        roots, vectors = np.linalg.eigh(2 * np.sin(np.pi / 6 * np.corrcoef(ranks.T)))
        r = (vectors * np.maximum(roots, 0.05)) @ vectors.T
        correlation = r / np.sqrt(np.diag(r))[:, None] / np.sqrt(np.diag(r))
    if raw.start.size < len(u):
        counts = np.diff([*raw.start, len(u)])
        middles = np.stack(
            [np.median(u[a : a + k], axis=0) for a, k in zip(raw.start, counts, strict=True)]
        )
        several = (counts > 1)[estimates.machine]
        unbiased = np.sqrt(counts / np.maximum(counts - 1, 1))[estimates.machine]
        inner = ((u - middles[estimates.machine]) * unbiased[:, None])[several]
        spread = np.median(np.abs(inner), axis=0) ** 2 * MAD_FACTOR**2
        within = np.diag(np.maximum(spread - noise, 0.1 * spread + 1e-4 * total))
        total = np.maximum(total - np.diag(within), 0.1 * total)
    deviation = np.sqrt(np.maximum(total - noise, 0.1 * total))
    between = correlation * deviation[:, None] * deviation
    likelihood = evaluate_likelihood(estimates, between, within, np.median(u, axis=0))
    weighted = estimates
    threshold = outlier_threshold(raw.start.size)
    factor = consistency_factor(int(np.median(raw.known.sum(1))), threshold)
    for turn in range(25):
        tests = outlier_tests(estimates, between, within, likelihood, raw.known, raw.freedom)
        counted, machines = (
            np.where(p < threshold, 0.0, 1.0) for p in (tests.within, tests.machine)
        )
        same = (
            turn > 0
            and np.all(counted == estimates.counted)
            and np.all(machines == estimates.counted_machines)
        )
        sets = {"counted": counted, "counted_machines": machines, "consistency": (factor, factor)}
        estimates, before = dataclasses.replace(estimates, **sets), (between, within)
        weighted = dataclasses.replace(weighted, **sets)
        # At first, four iterations are enough, because the set of outliers may still change. With
        # spreads that are not yet at the maximum, a small fleet can alternate between two sets.
        steps = 4 if turn < 4 else 200
        between, within, likelihood, converged = maximize_likelihood(weighted, *before, steps)
        u, T, *_ = empirical_bayes(estimates, between, within, likelihood.mean)
        estimates = raw.linearize(u, scale, T, estimates)
        weighted = raw.with_even_weights(estimates, u, scale)
        likelihood = evaluate_likelihood(estimates, between, within, likelihood.mean)
        if same and converged:
            # The loop ends if the covariances change by less than `most` in this iteration.
            moved = False
            for old, new in zip(before, (between, within), strict=True):
                if old is not None and new is not None:
                    size = np.sqrt(np.outer(np.diag(new), np.diag(new)))
                    most = 1e-3 * size + 1e-6 * np.outer(scale, scale)
                    moved = moved or bool(np.any(np.abs(old - new) > most))
            if not moved:
                break
    between, within, fitted, converged = maximize_likelihood(weighted, between, within)
    at = evaluate_likelihood(estimates, between, within, fitted.mean)
    tests = outlier_tests(estimates, between, within, at, raw.known, raw.freedom)
    values = empirical_bayes(estimates, between, within, at.mean)
    return PopulationFit(between, within, fitted, weighted, *values, tests, converged)


def empirical_bayes(
    estimates: Estimates, between: np.ndarray, within: np.ndarray | None, mean: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return empirical Bayes estimates and their covariances, for records and then for machines."""
    at = evaluate_likelihood(estimates, between, within, mean)
    share = between @ np.linalg.inv(between + at.V)
    machine_u = at.mean + multiply(share, at.ybar - at.mean)
    machine_T = between - share @ between
    if within is None:
        return machine_u, machine_T, machine_u, machine_T
    own = within @ np.linalg.inv(within + estimates.C)
    k = estimates.machine
    rest = np.eye(len(within)) - own
    u = machine_u[k] + multiply(own, estimates.y - machine_u[k])
    return (
        u,
        within - own @ within + rest @ machine_T[k] @ rest.swapaxes(1, 2),
        machine_u,
        machine_T,
    )


def _robust_deviation(u: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each column, computed from the median absolute deviation. If
    this deviation is 0, return the ordinary standard deviation.
    """
    by_median = MAD_FACTOR * np.median(np.abs(u - np.median(u, axis=0)), axis=0)
    return np.where(by_median > 0, by_median, np.std(u, axis=0))


def outlier_tests(
    estimates: Estimates,
    between: np.ndarray,
    within: np.ndarray | None,
    at: Likelihood,
    seen: np.ndarray,
    freedom: np.ndarray,
) -> OutlierTests:
    """Compute the distances of records and machines from the population mean, and the p values of
    these distances. `seen` (n, p): mask of the existing estimates; `freedom` (n,): degrees of
    freedom of the error covariance of each record.
    """
    counted = np.any(at.G, axis=(1, 2))
    totals, away = between + at.V, at.ybar - at.mean
    machine_squared = _squared_distances(totals, away)
    machine_seen = np.logical_or.reduceat(seen, estimates.start)
    # R (m, p): inverse variances. `information` (p,): twice the information about a spread, without
    # the part that determines the mean.
    R = 1.0 / np.einsum("nii->ni", totals[counted])
    a, b, c = (np.sum(R**k, axis=0) for k in (1, 2, 3))
    information = np.maximum(b - 2.0 * c / a + (b / a) ** 2, 0.0)
    machine = chances(
        machine_squared,
        machine_seen.sum(1),
        _share(between, totals, machine_seen.sum(1)),
        _sample_sizes(totals, information, machine_seen),
        counted,
        # The error covariance of the mean of several records is treated as known.
        freedom if within is None else np.full(estimates.start.size, np.inf),
        _squared_distances(at.V, away),
    )
    if within is None:
        return OutlierTests(machine_squared, machine, machine, np.full(len(estimates.y), np.nan))
    known, spread = seen.sum(1), between + within
    squared = _squared_distances(spread + estimates.C, estimates.y - at.mean)
    share = _share(spread, spread + estimates.C, known)
    n = _sample_sizes(spread + estimates.C, information, seen)
    # A record has little influence on the covariances, so it counts as independent of them.
    apart = np.zeros(len(estimates.y))
    chance = chances(squared, known, share, n, apart, freedom)
    # Test each record against the mean of the other records of its machine. The tested record does
    # not influence this mean, and it hardly influences the spread of all machines.
    k, eye = estimates.machine, np.eye(len(within))
    others = estimates.machine_sums(estimates.counted)[k] - estimates.counted > 0
    W = np.linalg.inv(at.V)[k] - at.A
    V = np.linalg.inv(np.where(others[:, None, None], W, eye))
    weighted = (np.linalg.inv(at.V) @ at.ybar[:, :, None])[k, :, 0] - multiply(at.A, estimates.y)
    total = within + estimates.C + V
    squared_within = _squared_distances(total, estimates.y - multiply(V, weighted))
    spare = float(np.sum(np.maximum(estimates.machine_sums(estimates.counted) - 1, 0)))
    R = 1.0 / np.einsum("nii->ni", (within + estimates.C)[estimates.counted > 0])
    n = _sample_sizes(total, spare * np.mean(R**2, axis=0), seen)
    share = _share(within, total, known)
    inside = chances(squared_within, known, share, n, apart, freedom)
    return OutlierTests(squared, chance, machine, np.where(others, inside, np.nan))


def chances(
    squared: np.ndarray,
    known: np.ndarray,
    share: np.ndarray,
    n: np.ndarray,
    counted: np.ndarray,
    freedom: np.ndarray,
    most: np.ndarray | float = np.inf,
) -> np.ndarray:
    """Return the p values of the squared distances (n,).

    **Arguments:** `known` (n,): number of estimates in each distance; `share` (n,): variance
    between machines divided by the sum of this variance and the error variance; `n` (n,): sample
    size from which a sum of variances is known as accurately (see `_sample_sizes`); `counted` (n,):
    true if the spread was estimated from machines that include the tested machine; `freedom` (n,):
    degrees of freedom of the error variance; `most` (n,): squared distance without any spread.
    """
    from scipy.special import chdtrc, fdtrc

    p = known.astype(float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        n = np.minimum(n, 1e12)
        left = np.maximum(1.0 - n * squared / (n - 1) ** 2, 1e-3)
        deleted = (n / (n - 1)) * (n - 2) / (n - 1) * squared / left
        # Without the tested machine, the spread may be 0, but not less.
        deleted = np.minimum(deleted, most * n / (n - 1))
        away = np.where(counted, deleted, squared * n / (n + 1))
        spare = np.where(counted, n - 2, n - 1)  # degrees of freedom of the estimated spread
        dof = spare - p + 1
        F = away * dof / (p * spare)
        both = 1.0 / (1.0 / dof + (1.0 - share) ** 2 / freedom)
        chance = np.where(both > 1e7, chdtrc(p, p * F), fdtrc(p, both, F))
    return np.where((dof > 0) & (p > 0), chance, np.nan)


def _sample_sizes(total: np.ndarray, information: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return the sample size n (n,) whose sample variance is as accurate as a matrix in `total`.
    `total` (n, p, p): sums of an estimated spread and known error variances.

    A sample variance has n - 1 degrees of freedom. For one parameter, a variance has as many as its
    square times `information` (p,), twice the information about the spread. For several parameters
    in `seen` (n, p), the harmonic mean is used.
    """
    with np.errstate(divide="ignore"):
        rarity = 1.0 / (np.einsum("nii->ni", total) ** 2 * information)
    return 1.0 + seen.sum(1) / np.sum(np.where(seen, rarity, 0.0), axis=1)


def outlier_threshold(machines: int) -> float:
    """Return the p value below which an estimate is excluded from mean and spread. This limit is
    smaller in a small fleet, because a wrong exclusion does more harm than a missed outlier.
    """
    return 0.01 if machines >= 100 else 0.001


def consistency_factor(p: int, threshold: float) -> float:
    """Return the factor that corrects the mean square of p-dimensional normal estimates for the
    exclusion of estimates whose p value is below the threshold.
    """
    from scipy.special import chdtr, chdtri

    q = chdtri(p, threshold)
    return float(chdtr(p, q) / chdtr(p + 2, q))


def variance_factor(p: int, threshold: float) -> float:
    """Return the factor by which the exclusion of outliers increases the error variances of the
    entries of a spread matrix. This factor excludes the effect of the smaller number of estimates.
    """
    from scipy.special import chdtr, chdtri
    from scipy.stats import chi2

    q, c = chdtri(p, threshold), consistency_factor(p, threshold)
    F0, F2, F4 = (float(chdtr(p + k, q)) for k in (0, 2, 4))
    slope = F0 - q * float(chi2.pdf(q, p)) * (c * q / p - 1.0)
    return (c**2 * (p + 2) / p * F4 - 2 * c * F2 + F0) * F0 / slope**2 * p / 2


def _share(spread: np.ndarray, total: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the mean ratio of the covariances `spread` and `total` over the known parameters."""
    each = np.einsum("nij,ji->n", np.linalg.inv(total), spread)
    return np.clip(each / np.maximum(known, 1), 0.0, 1.0)


def _squared_distances(V: np.ndarray, r: np.ndarray) -> np.ndarray:
    return np.sum(r * np.linalg.solve(V, r[:, :, None])[:, :, 0], axis=1)
