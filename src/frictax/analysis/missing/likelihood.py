"""How much better residuals with a memory are explained: both that memory and all coefficients by
maximum likelihood, without a candidate and with it.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import fdtrc

from .columns import Columns

_ROUNDS = 6
_ORDER = 12  # of the autoregression, at most
_RIDGE = 1e-13
_SEEN = 1e-12  # of the largest eigenvalue of sums of lagged products

# For each channel of a record, the numbers of its residuals in the order of time, in stretches.
Stretches = list[list[Int[np.ndarray, " _"]]]


class Likelihood:
    """Residuals of each channel as an autoregression of fixed order, about linear columns.

    Conditional on the first samples of each stretch, so that sums of products of lagged columns are
    all that is needed: they are formed once for all candidates.
    """

    def __init__(
        self, columns: Columns, stretches: Stretches, left: Float[np.ndarray, " n"]
    ) -> None:
        self.p = columns.fitted.shape[1]
        table = np.column_stack([columns.residuals, columns.fitted, columns.tried])
        norms = np.linalg.norm(table, axis=0)
        table = table / np.where(norms > 0, norms, 1.0)
        table = np.where(np.isfinite(table), table, 0.0)
        self.grams, self.orders, self.counts = [], [], []
        for channel in stretches:
            q = autoregression([left[s] for s in channel])[0].size
            gram, count, width = 0.0, 0, table.shape[1]
            for s in channel:
                if len(s) > q + 1:
                    of = table[s]
                    lags = np.concatenate([of[q - i : len(s) - i] for i in range(q + 1)], axis=1)
                    gram, count = gram + lags.T @ lags, count + len(lags)
            if count > 3 * q + 3:
                self.grams.append(np.reshape(gram, (q + 1, width, q + 1, width)))
                self.orders.append(q)
                self.counts.append(count)
        self.before: float | None = None

    def chance(self, at: list[int]) -> float:
        """That the columns `at` explain as much by chance."""
        if not self.grams:
            return 1.0
        if self.before is None:
            self.before = self._log_size([])[0]
        size, effective = self._log_size([1 + self.p + j for j in at])
        n, k = sum(self.counts), len(at)
        dof = max(effective - self.p - k, 2.0)
        gain = np.expm1(max(self.before - size, 0.0) / n)
        return float(fdtrc(k, dof, gain * max(n - self.p - k, 1) / k))

    def _log_size(self, more: list[int]) -> tuple[float, float]:
        """The sum over channels of n*log(variance of what is left), least over all coefficients;
        and how many independent samples there are.
        """
        use = [*range(1, 1 + self.p), *more]
        whole = [0, *use]
        phis = [np.zeros(q) for q in self.orders]
        noises, effective = [1.0] * len(self.grams), 0.0
        for _ in range(_ROUNDS):  # the first without a memory
            a = np.zeros((len(whole), len(whole)))
            for gram, phi, noise in zip(self.grams, phis, noises, strict=True):
                filt = np.concatenate([[1.0], -phi])
                part = gram[:, whole][:, :, :, whole]
                a += np.einsum("i,iajb,j->ab", filt, part, filt) / noise
            ridge = _RIDGE * np.diag(np.diag(a[1:, 1:])) + 1e-300 * np.eye(len(use))
            beta = np.linalg.lstsq(a[1:, 1:] + ridge, a[1:, 0], rcond=_SEEN)[0]
            v = np.concatenate([[1.0], -beta])
            total, effective, noises_new = 0.0, 0.0, []
            for c, (gram, q, n) in enumerate(
                zip(self.grams, self.orders, self.counts, strict=True)
            ):
                g = np.einsum("a,iajb,b->ij", v, gram[:, whole][:, :, :, whole], v)
                phi = np.linalg.lstsq(g[1:, 1:], g[1:, 0], rcond=_SEEN)[0] if q else np.zeros(0)
                rest = max(float(g[0, 0] - phi @ g[1:, 0]) / n, 1e-300)
                phis[c] = phi
                noises_new.append(rest)
                total += n * np.log(rest)
                effective += n * _share(phi, rest, max(float(g[0, 0]) / n, 1e-300))
            noises = noises_new
        return total, effective


def _share(phi: np.ndarray, noise: float, variance: float) -> float:
    """Of samples that are independent, where the residual is strongest: variance over the highest
    of its spectrum.
    """
    shape = np.abs(np.fft.rfft(np.concatenate([[1.0], -phi]), 1024)) ** 2
    return float(np.clip(variance * np.min(shape) / noise, 0.0, 1.0))


def autoregression(stretches: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """Coefficients, the order by Schwarz's criterion, and the standard deviation of what is
    left.
    """
    longest = max(len(s) for s in stretches)
    most = max(min(_ORDER, longest // 8), 0)
    gram, n = np.zeros((most + 1, most + 1)), 0
    for s in stretches:
        if len(s) > 2 * most:
            lags = np.column_stack([s[most - j : len(s) - j] for j in range(most + 1)])
            gram, n = gram + lags.T @ lags, n + len(lags)
    best = np.inf, np.zeros(0), 1.0
    for q in range(most + 1):
        past = gram[1 : q + 1, 0]
        phi = np.linalg.lstsq(gram[1 : q + 1, 1 : q + 1], past, rcond=_SEEN)[0] if q else past
        size = max(float(gram[0, 0] - phi @ past) / n, 1e-300)
        bic = n * np.log(size) + q * np.log(n)
        if bic < best[0]:
            best = bic, phi, np.sqrt(size)
    return best[1], float(best[2])
