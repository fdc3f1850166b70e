"""The population's spreads without those that do not belong to it.

Estimates are taken to the unconstrained scale by their derivative at what the population makes of
each record, again and again until nothing moves (linearisation at the conditional mode: Lindstrom
and Bates, Biometrics 46, 1990): at the estimate itself, those that came out low by chance would
have large relative errors and count too little.

Outliers do not hide themselves: the search starts from medians, median deviations and rank
correlations; then what lies beyond the 99 % point of its distance (99.9 % in a fleet of few) is
left out of the likelihood, squares of the others are raised by what such a cut takes from a normal
population, and the set is drawn anew until it stays (reweighting as by Rousseeuw and Van Zomeren,
JASA 85, 1990, with the consistency factor of Croux and Haesbroeck, Journal of Multivariate Analysis
71, 1999, and the distributions of Cerioli, JASA 105, 2010, for those within and those left out).
"""

import dataclasses
from typing import Any

import numpy as np

from .distances import Tests, cut, distances, growth
from .hierarchy import Estimates, Terms, climbed, search, terms

_ROUNDS, _STEPS = 25, 4
_NOTHING = 1e6  # times the scale: the error of what a record does not tell
_MANY = 100  # records: fewer do not tell how errors go with the value, nor would it matter
_FARTHEST = 3.0  # in logarithms: how far a linearisation is trusted


@dataclasses.dataclass(frozen=True, eq=False)
class Given:
    """Estimates z (n, p), above their bounds where `log` (p,) says that their logarithm is the
    scale, with covariances (n, p, p); NaN what is not told.

    `start` (m,): the first record of each machine; `freedom` (n,) of the covariances.
    """

    z: np.ndarray
    covariance: np.ndarray
    log: np.ndarray
    start: np.ndarray
    freedom: np.ndarray

    @property
    def told(self) -> np.ndarray:
        return np.isfinite(self.z)

    @property
    def repeated(self) -> bool:
        return self.start.size < len(self.z)

    def first(self) -> np.ndarray:
        """Where the estimates lie, roughly: a logarithm needs something above the bound."""
        error = np.sqrt(np.einsum("nii->ni", self.covariance))
        with np.errstate(invalid="ignore"):
            rough = np.where(self.log, np.log(np.fmax(self.z, 0.5 * error)), self.z)
        return np.where(self.told, rough, np.nanmedian(rough, axis=0))

    def at(
        self,
        u: np.ndarray,
        scale: np.ndarray,
        T: np.ndarray | None = None,
        before: Estimates | None = None,
    ) -> Estimates:
        """Estimates and covariances on the unconstrained scale by the derivative at u, which has
        the covariance T; `scale` (p,): about the spread there.

        To second order in the errors: by `T / 2` a logarithm at u comes out too low.
        """
        slope = np.where(self.log, np.exp(np.where(self.log, u, 0.0)), 1.0)
        moved = np.where(self.told, self.z / slope - 1.0, 0.0)
        y = np.where(self.log, u + np.clip(moved, -_FARTHEST, _FARTHEST), self.z)
        C = np.nan_to_num(self.covariance) / slope[:, :, None] / slope[:, None, :]
        C = np.where(self.told[:, :, None] & self.told[:, None, :], C, 0.0)
        C += np.where(self.told, 0.0, (_NOTHING * scale) ** 2)[:, :, None] * np.eye(scale.size)
        y = np.where(self.told, y, u)
        if T is not None and before is not None:
            y = y + np.where(self.log & self.told, 0.5 * np.einsum("nii->ni", T), 0.0)
            return dataclasses.replace(before, y=y, C=C)
        return Estimates(y, C, self.start, np.ones(len(y)), np.ones(self.start.size))

    def even(self, of: Estimates, u: np.ndarray, scale: np.ndarray) -> Estimates:
        """The same for the likelihood. Relative errors go with the value, where absolute ones are
        equal, and weights would too: that share is taken out of them.
        """
        C, out = of.C, np.ones(u.shape)
        for k in np.flatnonzero(self.log):
            some = self.told[:, k]
            off = np.clip(u[:, k] - np.median(u[some, k]), -3 * scale[k], 3 * scale[k])
            x = off[some] - off[some].mean()
            if some.sum() >= _MANY and x.any():
                slope = 0.5 * float(x @ np.log(C[some, k, k])) / float(x @ x)
                out[:, k] = np.where(some, np.exp(-np.clip(slope, -2.0, 2.0) * off), 1.0)
        return dataclasses.replace(of, C=C * out[:, :, None] * out[:, None, :])


@dataclasses.dataclass(frozen=True, eq=False)
class Settled:
    """A population as it was found, on the unconstrained scale; records machine by machine.

    - `between`, `within` (p, p); `at`: the likelihood's terms, of the estimates `of`;
      `ended`: whether the search came to its end.
    - `u` (n, p), `T` (n, p, p): values with what the population says, and their covariance;
      `machine_u` (m, p), `machine_T`: the same of machines.
    - `tests`: how far records and machines lie off.
    """

    between: np.ndarray
    within: np.ndarray | None
    at: Terms
    of: Estimates
    u: np.ndarray
    T: np.ndarray
    machine_u: np.ndarray
    machine_T: np.ndarray
    tests: Tests
    ended: bool


def settle(given: Given) -> Settled:
    """The population of these estimates, whatever outliers are among them."""
    u = given.first()
    scale = np.maximum(_deviation(u), 1e-9 * np.abs(np.median(u, axis=0)) + 1e-100)
    of = given.at(u, scale)
    between, within, at = _first(given, of, u)
    told, ended, likely = given.told.sum(1), False, of
    beyond = cut(given.start.size)
    grown = growth(int(np.median(told)), beyond)
    for turn in range(_ROUNDS):
        seen = distances(of, between, within, at, told, given.freedom)
        kept, machines = (np.where(x < beyond, 0.0, 1.0) for x in (seen.within, seen.machine))
        same = turn > 0 and np.all(kept == of.kept) and np.all(machines == of.kept_machines)
        sets = {"kept": kept, "kept_machines": machines, "grown": (grown, grown)}
        of, was = dataclasses.replace(of, **sets), (between, within)
        between, within, at, ended = search(dataclasses.replace(likely, **sets), *was, _STEPS)
        u, T, *_ = posterior(of, between, within, at.mean)
        of = given.at(u, scale, T, of)
        likely = given.even(of, u, scale)
        at = terms(of, between, within, at.mean)
        if same and ended and _close(was, (between, within)):
            break
    between, within, fitted, ended = search(likely, between, within)
    if not ended:
        between, within, fitted, ended = climbed(likely, between, within)
    at = terms(of, between, within, fitted.mean)
    seen = distances(of, between, within, at, told, given.freedom)
    values = posterior(of, between, within, at.mean)
    return Settled(between, within, fitted, likely, *values, seen, ended)


def posterior(
    of: Estimates, between: np.ndarray, within: np.ndarray | None, mean: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What estimates and population together say of each record, and of each machine, with
    covariances.
    """
    at = terms(of, between, within, mean)
    share = between @ np.linalg.inv(between + at.V)
    machine_u = at.mean + _times(share, at.ybar - at.mean)
    machine_T = between - share @ between
    if within is None:
        return machine_u, machine_T, machine_u, machine_T
    own = within @ np.linalg.inv(within + of.C)
    k = of.machine
    rest = np.eye(len(within)) - own
    u = machine_u[k] + _times(own, of.y - machine_u[k])
    return (
        u,
        within - own @ within + rest @ machine_T[k] @ rest.swapaxes(1, 2),
        machine_u,
        machine_T,
    )


def _first(
    given: Given, of: Estimates, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None, Terms]:
    """Spreads by medians, which outliers hardly move."""
    noise = np.nanmedian(np.where(given.told, np.einsum("nii->ni", of.C), np.nan), axis=0)
    total, within = _deviation(u) ** 2, None
    together = _rank_correlation(u)
    if given.repeated:
        counts = np.diff([*of.start, len(u)])
        middles = np.stack(
            [np.median(u[a : a + k], axis=0) for a, k in zip(of.start, counts, strict=True)]
        )
        several = (counts > 1)[of.machine]
        inner = (u - middles[of.machine])[several] * np.sqrt(counts / np.maximum(counts - 1, 1))[
            of.machine
        ][several, None]
        spread = np.median(np.abs(inner), axis=0) ** 2 * _NORMAL**2
        within = np.diag(np.maximum(spread - noise, 0.1 * spread + 1e-4 * total))
        total = np.maximum(total - np.diag(within), 0.1 * total)
    size = np.sqrt(np.maximum(total - noise, 0.1 * total))
    between = together * size[:, None] * size
    return between, within, terms(of, between, within, np.median(u, axis=0))


_NORMAL = 1.4826  # standard deviations of a normal population in a median absolute deviation


def _deviation(u: np.ndarray) -> np.ndarray:
    """Standard deviations by the median; of what differs in fewer than half of all, by itself."""
    by_median = _NORMAL * np.median(np.abs(u - np.median(u, axis=0)), axis=0)
    return np.where(by_median > 0, by_median, np.std(u, axis=0))


def _rank_correlation(u: np.ndarray) -> np.ndarray:
    """Correlations by ranks (Spearman), as those of a normal population, positive definite."""
    n, p = u.shape
    if p == 1 or n < 3:
        return np.eye(p)
    ranks = np.argsort(np.argsort(u, axis=0), axis=0).astype(float)
    r = 2 * np.sin(np.pi / 6 * np.corrcoef(ranks.T))
    values, vectors = np.linalg.eigh(r)
    r = (vectors * np.maximum(values, 0.05)) @ vectors.T
    size = np.sqrt(np.diag(r))
    return r / size[:, None] / size


def _close(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    """Whether spreads differ by less than a thousandth of their size."""
    return all(
        np.all(np.abs(a - b) <= 1e-3 * np.sqrt(np.outer(np.diag(b), np.diag(b))) + 1e-100)
        for a, b in zip(one, other, strict=True)
        if a is not None
    )


def _times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (A @ x[:, :, None])[:, :, 0]
