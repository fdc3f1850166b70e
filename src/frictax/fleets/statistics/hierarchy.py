"""Mean and spreads of a population of machines from estimates with known errors.

y_ij = mu + a_j + b_ij + e_ij: estimate i of machine j, with a_j ~ N(0, Omega) between machines,
b_ij ~ N(0, Psi) between records of one machine, and e_ij ~ N(0, C_ij) of known covariance. mu and
the spreads are by restricted maximum likelihood (Patterson and Thompson, Biometrika 58, 1971),
searched by scoring with the expected information over Cholesky factors, which keeps the spreads
positive semidefinite. Of one number and one record a machine this is the random-effects model of
meta-analysis (DerSimonian and Laird, Controlled Clinical Trials 7, 1986; Viechtbauer, Journal of
Educational and Behavioral Statistics 30, 2005).
"""

import dataclasses
import functools
from typing import Any

import numpy as np

_STEPS, _TOLERANCE = 60, 1e-7  # of a search; of the likelihood that a step may still gain
_LEAST = 1e-2  # of the largest information, by which any entry is damped at least
_MANY = 1000  # records tell the information well enough for a step


@dataclasses.dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates y (n, p) with covariances C (n, p, p), machines one after another.

    `start` (m,): the first of each machine. What does not count has a weight of 0: `kept` (n,) of
    records, `kept_machines` (m,) of machines. `grown`: by how much the squares of what is kept are
    to be raised, of records and of machines, for those left out were the largest.
    """

    y: np.ndarray
    C: np.ndarray
    start: np.ndarray
    kept: np.ndarray
    kept_machines: np.ndarray
    grown: tuple[float, float] = (1.0, 1.0)

    @functools.cached_property
    def machine(self) -> np.ndarray:
        return np.repeat(np.arange(self.start.size), np.diff([*self.start, len(self.y)]))

    def sums(self, x: np.ndarray) -> np.ndarray:
        """Sums of records over each machine."""
        return x if self.start.size == len(self.y) else np.add.reduceat(x, self.start, axis=0)


@dataclasses.dataclass(frozen=True, eq=False)
class Terms:
    """What the likelihood is made of at some spreads.

    - `A` (n, p, p): weights of records, 0 of those left out; `ybar`, `V` (m, ...): the mean of each
      machine and its covariance about the machine; `G` (m, p, p): weights of machines.
    - `mean`, `P`: mu and its covariance; `loglik`: the restricted log likelihood.
    """

    A: np.ndarray
    ybar: np.ndarray
    V: np.ndarray
    G: np.ndarray
    mean: np.ndarray
    P: np.ndarray
    loglik: float


def terms(
    of: Estimates,
    between: np.ndarray,
    within: np.ndarray | None,
    mean: np.ndarray | None = None,
) -> Terms:
    """The likelihood at these spreads; without `within`, each machine has one record. The `mean` is
    the best one unless given.
    """
    if within is None:
        A, V, ybar, logs = np.zeros((0, *between.shape)), of.C, of.y, 0.0
        some = of.kept
    else:
        total = within + of.C
        A = np.linalg.inv(total) * of.kept[:, None, None]
        W, count = of.sums(A), of.sums(of.kept)
        some = count > 0
        W = np.where(some[:, None, None], W, np.eye(len(between)))
        V = np.linalg.inv(W)
        ybar = _times(V, of.sums(_times(A, of.y)))
        e = of.y - ybar[of.machine]
        squares = of.grown[0] * np.sum(e * _times(A, e))
        logs = float(np.sum(np.linalg.slogdet(total)[1] * of.kept) + squares)
        logs += float(np.sum(np.linalg.slogdet(W)[1][some]))
    kept = some * of.kept_machines
    U = between + V
    G = np.linalg.inv(U) * kept[:, None, None]
    P = np.linalg.inv(G.sum(0))
    mean = P @ _times(G, ybar).sum(0) if mean is None else mean
    r = ybar - mean
    logs += float(np.sum(np.linalg.slogdet(U)[1] * kept) - np.linalg.slogdet(P)[1])
    logs += of.grown[1] * float(np.sum(r * _times(G, r)))
    return Terms(A, ybar, V, G, mean, P, -0.5 * logs)


def _times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (A @ x[:, :, None])[:, :, 0]


def slopes(of: Estimates, at: Terms, within: bool) -> list[np.ndarray]:
    """The derivatives of the likelihood by Omega and by Psi, as symmetric matrices."""
    g = _times(at.G, at.ybar - at.mean)
    c, b = of.grown
    by_machine = 0.5 * (b * g[:, :, None] * g[:, None, :] - at.G + at.G @ at.P @ at.G)
    out = [by_machine.sum(0)]
    if within:
        k = of.machine
        f = _times(at.A, of.y - at.ybar[k])
        inner = at.V @ by_machine @ at.V + 0.5 * at.V
        own = (at.A @ inner[k] @ at.A).sum(0) - 0.5 * at.A.sum(0)
        moved = _times(at.A, _times(at.V, g)[k])
        cross = b * f.T @ moved
        out.append(own + 0.5 * c * f.T @ f + 0.5 * (cross + cross.T))
    return out


def information(of: Estimates, at: Terms, within: bool, most: int | None = None) -> np.ndarray:
    """The expected information on Omega, and Psi after it, over `basis`.

    `most`: records that it may be reckoned from, one machine in so many: enough for a search.
    """
    E, m, n = basis(len(at.mean)), of.start.size, len(of.y)
    k, every = len(E), 1 if most is None else max(n // most, 1)
    I, end = np.zeros((k * (1 + within), k * (1 + within))), np.append(of.start[1:], n)
    taken = np.arange(0, m, every)
    I[:k, :k] = 0.5 * _pairs(at.G[taken], at.G[taken], E)
    for some in np.array_split(taken, 1 + n // every // 2000) if within else ():
        counts = end[some] - of.start[some]
        begin = np.cumsum(counts) - counts
        own = np.repeat(of.start[some] - begin, counts) + np.arange(counts.sum())
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
    """The sums over m of tr(X_ma Y_mb), as a matrix."""
    m, k, p, _ = X.shape
    first = X.swapaxes(0, 1).reshape(k, m * p * p)
    return first @ Y.swapaxes(-1, -2).swapaxes(0, 1).reshape(k, m * p * p).T


def _pairs(A: np.ndarray, B: np.ndarray, E: np.ndarray) -> np.ndarray:
    """The sum of tr(A E_a B E_b) over all A and B, for every two of the basis."""
    p = A.shape[-1]
    K = (A.reshape(-1, p * p).T @ B.reshape(-1, p * p)).reshape(p, p, p, p)
    return np.einsum("ijkl,ajk,bli->ab", K, E, E, optimize=True)


@functools.cache
def basis(p: int) -> np.ndarray:
    """Symmetric matrices (k, p, p) that span all: one for each entry of the lower triangle."""
    rows, columns = np.tril_indices(p)
    E = np.zeros((rows.size, p, p))
    E[np.arange(rows.size), rows, columns] = E[np.arange(rows.size), columns, rows] = 1.0
    return E


def search(
    of: Estimates, between: np.ndarray, within: np.ndarray | None, steps: int = _STEPS
) -> tuple[np.ndarray, np.ndarray | None, Terms, bool]:
    """The spreads of the greatest likelihood from here, and whether the search came to its end."""
    spreads = [between] if within is None else [between, within]
    factors = [_factor(s) for s in spreads]
    at, damp = terms(of, *_both(spreads)), 1e-3
    for _ in range(steps):
        g, J = _by_factors(slopes(of, at, within is not None), factors)
        I = J.T @ information(of, at, within is not None, _MANY) @ J
        gained = False
        while damp < 1e8:
            weight = I + np.diag(damp * _tame(I, spreads) + 1e-100)
            step = np.linalg.solve(weight, g)
            if 0.5 * step @ g < _TOLERANCE:
                return *_both(spreads), at, True
            tried = _moved(factors, step)
            trial = [L @ L.T for L in tried]
            new = terms(of, *_both(trial))
            if np.isfinite(new.loglik) and new.loglik > at.loglik:
                gained, damp = True, max(damp / 10, 1e-9)
                factors, spreads, at = tried, trial, new
                break
            damp *= 10
        if not gained:  # rounding is all that is left
            return *_both(spreads), at, True
    return *_both(spreads), at, False


def climbed(
    of: Estimates, between: np.ndarray, within: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None, Terms, bool]:
    """As `search`, by scipy's L-BFGS: slower, and not stopped where spreads are all but singular,
    as where the numbers of a machine move together.
    """
    from scipy.optimize import minimize

    spreads = [between] if within is None else [between, within]
    p = len(between)
    rows = np.tril_indices(p)
    sizes = np.sqrt(sum(np.diag(s) for s in spreads) + 1e-300)[rows[0]]

    def factors_of(z: np.ndarray) -> list[np.ndarray]:
        return _moved([np.zeros((p, p))] * len(spreads), z * np.tile(sizes, len(spreads)))

    def down(z: np.ndarray) -> tuple[float, np.ndarray]:
        factors = factors_of(z)
        at = terms(of, *_both([L @ L.T for L in factors]))
        g, _ = _by_factors(slopes(of, at, within is not None), factors)
        return -at.loglik, -g * np.tile(sizes, len(spreads))

    first = np.concatenate([_factor(s)[rows] / sizes for s in spreads])
    found: Any = minimize(down, first, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    best = _both([L @ L.T for L in factors_of(found.x)])
    return *best, terms(of, *best), bool(found.success)


def _tame(I: np.ndarray, spreads: list[np.ndarray]) -> np.ndarray:
    """What a step is damped by: each entry's information, and of one next to a singular spread,
    which has none, a share of the largest; else no damping would hold back its step.
    """
    sizes = sum((np.diag(s) for s in spreads), np.full(len(spreads[0]), 1e-200))[
        np.tril_indices(len(spreads[0]))[0]
    ]
    scaled = np.diag(I).reshape(len(spreads), -1) * sizes
    least = _LEAST * scaled.max(axis=1, keepdims=True)
    return np.ravel(np.maximum(scaled, least) / sizes)


def _both(spreads: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray | None]:
    return spreads[0], spreads[1] if len(spreads) > 1 else None


def _factor(S: np.ndarray) -> np.ndarray:
    """A lower triangle L with L L' = S, also of a matrix that is singular."""
    return np.linalg.cholesky(S + np.diag(1e-9 * np.diag(S) + 1e-100))


def _by_factors(by: list[np.ndarray], factors: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The slope by the entries of the factors, and the derivatives of the spreads' entries."""
    p = len(factors[0])
    rows, columns = np.tril_indices(p)
    k = rows.size
    g, J = np.zeros(k * len(factors)), np.zeros((k * len(factors), k * len(factors)))
    for b, (slope, L) in enumerate(zip(by, factors, strict=True)):
        g[b * k : (b + 1) * k] = 2 * (slope @ L)[rows, columns]
        dL = np.zeros((k, p, p))
        dL[np.arange(k), rows, columns] = 1.0
        dS = dL @ L.T
        dS = dS + dS.swapaxes(1, 2)
        J[b * k : (b + 1) * k, b * k : (b + 1) * k] = dS[:, rows, columns].T
    return g, J


def _moved(factors: list[np.ndarray], step: np.ndarray) -> list[np.ndarray]:
    p = len(factors[0])
    k = p * (p + 1) // 2
    out = []
    for b, L in enumerate(factors):
        new = L.copy()
        new[np.tril_indices(p)] += step[b * k : (b + 1) * k]
        out.append(new)
    return out
