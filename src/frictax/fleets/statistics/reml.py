"""Restricted maximum likelihood (REML) for a fleet, from estimates with known error covariances.

The estimate from record i of machine j is y_ij = mu + a_j + b_ij + e_ij. The machine deviates by
a_j ~ N(0, Omega), and the record by b_ij ~ N(0, Psi). The error is e_ij ~ N(0, C_ij) with known
C_ij. The mean mu and the spreads (covariances) Omega and Psi maximise the restricted likelihood
(Patterson and Thompson, Biometrika 58, 1971). The search varies Cholesky factors of the spreads, so
the spreads stay positive semidefinite. The expected information approximates the Hessian (Fisher
scoring). With one parameter and one record for each machine, the model is the random-effects model
of meta-analysis (DerSimonian and Laird, Controlled Clinical Trials 7, 1986; Viechtbauer, Journal of
Educational and Behavioral Statistics 30, 2005).
"""

import dataclasses
import functools
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates y (n, p) from n records and error covariances C (n, p, p), sorted by machine.

    - `start` (m,): index of the first record of each machine.
    - `counted` (n,), `counted_machines` (m,): weight of each record and of each machine; 0 for an
      outlier, otherwise 1.
    - `consistency`: factors on the squared deviations of records and of machines, which correct for
      excluded estimates that are not outliers.
    """

    y: np.ndarray
    C: np.ndarray
    start: np.ndarray
    counted: np.ndarray
    counted_machines: np.ndarray
    consistency: tuple[float, float] = (1.0, 1.0)

    @functools.cached_property
    def machine(self) -> np.ndarray:
        """Index of the machine to which each record belongs (n,)."""
        return np.repeat(np.arange(self.start.size), np.diff([*self.start, len(self.y)]))

    def machine_sums(self, x: np.ndarray) -> np.ndarray:
        """Return the sums of x (n, ...) over the records of each machine (m, ...)."""
        return x if self.start.size == len(self.y) else np.add.reduceat(x, self.start, axis=0)


@dataclasses.dataclass(frozen=True, eq=False)
class Likelihood:
    """The restricted likelihood for given Omega and Psi, and matrices for its derivatives.

    - `A` (n, p, p): inverse of Psi + C of each record, empty without Psi; `G` (m, p, p): inverse of
      Omega + V of each machine. `A` and `G` are 0 for outliers.
    - `ybar` (m, p): weighted mean of each machine's estimates; `V` (m, p, p): covariance of the
      error of this mean.
    - `mean`, `P`: mu and the covariance of its error; `loglik`: the restricted log likelihood.
    """

    A: np.ndarray
    ybar: np.ndarray
    V: np.ndarray
    G: np.ndarray
    mean: np.ndarray
    P: np.ndarray
    loglik: float


def evaluate_likelihood(
    estimates: Estimates,
    between: np.ndarray,
    within: np.ndarray | None = None,
    mean: np.ndarray | None = None,
) -> Likelihood:
    """Evaluate the restricted likelihood for the covariances `between` (Omega) and `within` (Psi).
    Omit `within` if each machine has one record. The default `mean` maximises the likelihood.
    """
    if within is None:
        A, V, ybar, logs = np.zeros((0, *between.shape)), estimates.C, estimates.y, 0.0
        present = estimates.counted
    else:
        total = within + estimates.C
        A = np.linalg.inv(total) * estimates.counted[:, None, None]
        W, count = estimates.machine_sums(A), estimates.machine_sums(estimates.counted)
        present = count > 0
        W = np.where(present[:, None, None], W, np.eye(len(between)))
        V = np.linalg.inv(W)
        ybar = multiply(V, estimates.machine_sums(multiply(A, estimates.y)))
        e = estimates.y - ybar[estimates.machine]
        squares = estimates.consistency[0] * np.sum(e * multiply(A, e))
        logs = float(np.sum(np.linalg.slogdet(total)[1] * estimates.counted) + squares)
        logs += float(np.sum(np.linalg.slogdet(W)[1][present]))
    counted = present * estimates.counted_machines
    U = between + V
    G = np.linalg.inv(U) * counted[:, None, None]
    P = np.linalg.inv(G.sum(0))
    mean = P @ multiply(G, ybar).sum(0) if mean is None else mean
    r = ybar - mean
    logs += float(np.sum(np.linalg.slogdet(U)[1] * counted) - np.linalg.slogdet(P)[1])
    logs += estimates.consistency[1] * float(np.sum(r * multiply(G, r)))
    return Likelihood(A, ybar, V, G, mean, P, -0.5 * logs)


def multiply(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the products A_i x_i (n, p) of the matrices A (n, p, q) and the vectors x (n, q)."""
    return (A @ x[:, :, None])[:, :, 0]


def likelihood_gradient(estimates: Estimates, at: Likelihood, within: bool) -> list[np.ndarray]:
    """Return the derivatives of the log likelihood with respect to Omega and (if `within`) Psi."""
    g = multiply(at.G, at.ybar - at.mean)
    c, b = estimates.consistency
    by_machine = 0.5 * (b * g[:, :, None] * g[:, None, :] - at.G + at.G @ at.P @ at.G)
    out = [by_machine.sum(0)]
    if within:
        k = estimates.machine
        f = multiply(at.A, estimates.y - at.ybar[k])
        inner = at.V @ by_machine @ at.V + 0.5 * at.V
        own = (at.A @ inner[k] @ at.A).sum(0) - 0.5 * at.A.sum(0)
        cross = b * f.T @ multiply(at.A, multiply(at.V, g)[k])
        out.append(own + 0.5 * c * f.T @ f + 0.5 * (cross + cross.T))
    return out


def expected_information(
    estimates: Estimates, at: Likelihood, within: bool, most: int | None = None
) -> np.ndarray:
    """Return the expected information matrix for the lower triangles of Omega and Psi (see
    `symmetric_basis`). `most`: approximate number of records in the sum, taken from evenly
    spaced machines and scaled to all machines; None for all records.
    """
    E, m, n = symmetric_basis(len(at.mean)), estimates.start.size, len(estimates.y)
    k, every = len(E), 1 if most is None else max(n // most, 1)
    I, end = np.zeros((k * (1 + within), k * (1 + within))), np.append(estimates.start[1:], n)
    taken = np.arange(0, m, every)
    I[:k, :k] = 0.5 * _pairs(at.G[taken], at.G[taken], E)
    for some in np.array_split(taken, 1 + n // every // 2000) if within else ():
        counts = end[some] - estimates.start[some]
        begin = np.cumsum(counts) - counts
        own = np.repeat(estimates.start[some] - begin, counts) + np.arange(counts.sum())
        A, G, V = at.A[own], at.G[some], at.V[some]
        T, R = V - V @ G @ V, G @ V
        I[k:, k:] += 0.5 * _pairs(A, A, E) - _pairs(A @ np.repeat(T, counts, axis=0) @ A, A, E)
        H = np.add.reduceat(A[:, None] @ E @ A[:, None], begin, axis=0)
        TH, RER = T[:, None] @ H, R[:, None].swapaxes(-1, -2) @ E @ R[:, None]
        I[k:, k:] += 0.5 * _traces(TH, TH)
        I[:k, k:] += 0.5 * _traces(RER, H)
    if within:
        I[k:, :k] = I[:k, k:].T
    return I * m / taken.size


def _traces(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the sums of tr(X_ma Y_mb) over m, for all a and b."""
    m, k, p, _ = X.shape
    first = X.swapaxes(0, 1).reshape(k, m * p * p)
    return first @ Y.swapaxes(-1, -2).swapaxes(0, 1).reshape(k, m * p * p).T


def _pairs(A: np.ndarray, B: np.ndarray, E: np.ndarray) -> np.ndarray:
    """Return the sums of tr(A_n E_a B_n E_b) over n, for all a and b."""
    p = A.shape[-1]
    K = (A.reshape(-1, p * p).T @ B.reshape(-1, p * p)).reshape(p, p, p, p)
    return np.einsum("ijkl,ajk,bli->ab", K, E, E, optimize=True)


@functools.cache
def symmetric_basis(p: int) -> np.ndarray:
    """Return for each j <= i the symmetric matrix with 1 at (i, j) and (j, i), 0 elsewhere."""
    rows, columns = np.tril_indices(p)
    E = np.zeros((rows.size, p, p))
    E[np.arange(rows.size), rows, columns] = E[np.arange(rows.size), columns, rows] = 1.0
    return E


def maximize_likelihood(
    estimates: Estimates, between: np.ndarray, within: np.ndarray | None, steps: int = 200
) -> tuple[np.ndarray, np.ndarray | None, Likelihood, bool]:
    """Maximise the restricted likelihood over the spreads. The search starts at the covariances
    `between` and `within`. The variables of the search are the entries of the Cholesky factors,
    divided by about one standard error. At a spread of 0 the gradient is 0, so all spreads start
    above 0. Return Omega, Psi (or None), their likelihood, and True if the search converged.
    """
    from scipy.optimize import minimize

    start = [between] if within is None else [between, within]
    p = len(between)
    triangle = np.tril_indices(p)
    k = triangle[0].size
    noise = np.median(np.einsum("nii->ni", estimates.C), axis=0) + 1e-300
    deviations = np.sqrt(sum(np.diag(S) for S in start) + noise)[triangle[0]]
    counts = [estimates.counted_machines.sum(), estimates.counted.sum()][: len(start)]
    scales = np.concatenate([deviations / np.sqrt(max(count, 1.0)) for count in counts])
    several = within is not None

    def factors_of(z: np.ndarray) -> list[np.ndarray]:
        entries, out = z * scales, []
        for b in range(len(start)):
            L = np.zeros((p, p))
            L[triangle] = entries[b * k : (b + 1) * k]
            out.append(L)
        return out

    @functools.lru_cache(maxsize=1)
    def evaluate(key: tuple[float, ...]) -> tuple[list[np.ndarray], Likelihood, list[np.ndarray]]:
        factors = factors_of(np.array(key))
        at = evaluate_likelihood(estimates, *(L @ L.T for L in factors))
        return factors, at, likelihood_gradient(estimates, at, several)

    def value_and_gradient(z: np.ndarray) -> tuple[float, np.ndarray]:
        factors, at, slopes = evaluate(tuple(z))
        by_factors = [2 * (S @ L)[triangle] for S, L in zip(slopes, factors, strict=True)]
        value = -at.loglik if np.isfinite(at.loglik) else np.inf
        return value, -np.concatenate(by_factors) * scales

    def hessian(z: np.ndarray) -> np.ndarray:
        factors, at, slopes = evaluate(tuple(z))
        # J: derivatives of the lower triangle of L L' with respect to the lower triangle of L
        rows, columns = triangle
        J = np.zeros((k * len(factors), k * len(factors)))
        for b, L in enumerate(factors):
            dL = np.zeros((k, p, p))
            dL[np.arange(k), rows, columns] = 1.0
            dS = dL @ L.T
            dS = dS + dS.swapaxes(1, 2)
            J[b * k : (b + 1) * k, b * k : (b + 1) * k] = dS[:, rows, columns].T
        # For a step of the search, the information from about 1000 records is accurate enough.
        H = J.T @ expected_information(estimates, at, several, most=1000) @ J
        # The spread L L' is quadratic in L, which adds a second-order term to the Hessian.
        for b, S in enumerate(slopes):
            same = columns[:, None] == columns
            own = slice(b * k, (b + 1) * k)
            H[own, own] -= 2 * S[rows[:, None], rows] * same
        return H * scales[:, None] * scales

    first = [np.linalg.cholesky(S + np.diag(1e-6 * (np.diag(S) + noise)))[triangle] for S in start]
    radius = float(np.sqrt(max(counts)))
    found: Any = minimize(
        value_and_gradient,
        np.concatenate(first) / scales,
        jac=True,
        hess=hessian,
        method="trust-exact",
        options={
            # [1/standard error] With this gradient, the likelihood is within 1e-7 of its maximum.
            "gtol": 4e-4,
            "maxiter": steps,
            "initial_trust_radius": radius,
            "max_trust_radius": 100 * radius,
        },
    )
    best = [L @ L.T for L in factors_of(found.x)]
    for S in best:
        # Set variances that differ from 0 only by rounding errors to 0.
        negligible = np.diag(S) < 1e-12 * noise
        S[negligible], S[:, negligible] = 0.0, 0.0
    at = evaluate_likelihood(estimates, *best)
    # Status 1 of scipy means that the limit of iterations is reached. Any other status means
    # convergence to the tolerance or to rounding errors.
    return best[0], best[1] if several else None, at, found.status != 1


def variance_interval(
    y: np.ndarray, V: np.ndarray, level: float, consistency: float = 1.0, loss: float = 1.0
) -> tuple[float, float]:
    """Return the confidence interval of the variance between machines, with exact coverage. At its
    ends, Cochran's Q is a quantile of the chi-squared distribution (Viechtbauer, Statistics in
    Medicine 26, 2007). If `V` is negligible, this is the usual interval of a sample variance.

    **Arguments:** `y` (m,): estimates of the machines; `V` (m,): their error variances; `level`:
    confidence level; `consistency`: factor on the squared deviations; `loss`: factor by which the
    exclusion of outliers increases the variance of Q.
    """
    from scipy.optimize import brentq
    from scipy.special import chdtri

    dof = (y.size - 1) / loss
    if dof <= 0:
        return 0.0, np.inf
    largest = consistency / loss * float(np.sum((y - y.mean()) ** 2))

    def cochran(variance: float) -> float:
        w = 1.0 / (variance + V)
        return consistency / loss * float(w @ (y - w @ y / w.sum()) ** 2)

    ends = []
    for side in (-1, 1):
        q = float(chdtri(dof, (1 + side * level) / 2))
        # Q is below `largest` divided by the variance, so its root is below `largest / q`.
        found = cochran(0.0) > q
        root: Any = brentq(lambda x, q=q: cochran(x * largest / q) - q, 0.0, 1.0) if found else 0.0
        ends.append(root * largest / q)
    return ends[0], ends[1]
