"""Likelihood-ratio tests of candidates with autoregressive noise, and the noise in windows."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int
from scipy.special import fdtrc

from ..errors.autoregression import (
    SIZES,
    AutoregressiveModel,
    lagged_products,
    random_walks,
    select_autoregression,
    slowest_waves,
)
from .sensitivities import Sensitivities

# Trial sizes of the input noise, divided by the size that is estimated from the inputs.
DRAWN = np.geomspace(0.1, 1.5, 10)
# A variance below this share of the mean square of the residuals is a rounding error.
_ROUNDING = 1e-12
_RCOND = 1e-12  # Eigenvalues below this share of the largest eigenvalue are rounding errors.

# For each channel of a record, a list with one array for each section without a gap. An array
# contains the indices of the section's residuals in order of time.
Stretches = list[list[Int[np.ndarray, " _"]]]


@dataclasses.dataclass(frozen=True, eq=False)
class _State:
    """The noise of a channel. `phi`, `noise`: coefficients of the autoregression, and variance of
    its prediction errors (innovations). `ratio`: variance of the increments of the random walk,
    divided by `noise`; `above`: effective number of the walk's slow components above the noise.
    """

    phi: Float[np.ndarray, " q"]
    noise: float
    ratio: float = 0.0
    above: float = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    """A maximum of the likelihood. `size`: -2 times the log likelihood, up to a constant;
    `effective`: number of independent samples; `states`: the fitted noise of each channel.
    """

    size: float
    effective: float
    states: list[_State]


class Likelihood:
    """The likelihood of the residuals. The model of the residuals is a linear combination of
    derivative columns plus autoregressive noise of a fixed order in each channel.

    If a channel drifts, a random walk is added (`random_walks`). If `draws` (k, n) of the effect of
    input noise on the residuals are given, this effect replaces the walk, and its size is fitted.

    The likelihood is conditional on the first samples of each section of the record. Therefore only
    sums of products of delayed columns are needed, which are computed once for all candidates.
    """

    def __init__(
        self,
        columns: Sensitivities,
        stretches: Stretches,
        left: Float[np.ndarray, " n"],
        draws: Float[np.ndarray, "k n"] | None = None,
    ) -> None:
        self.p, self.of_draws = columns.fitted.shape[1], draws is not None
        table = np.column_stack([columns.residuals, columns.fitted, columns.tried])
        norms = np.linalg.norm(table, axis=0)
        table = table / np.where(norms > 0, norms, 1.0)
        table = np.where(np.isfinite(table), table, 0.0)
        size = norms[0] if norms[0] > 0 else 1.0
        left, walks = left / size, [None] * len(stretches)
        if draws is None:
            walks = random_walks(left, columns.fitted, stretches)
        self.channels: list[_Channel] = []
        for channel, walk in zip(stretches, walks, strict=True):
            here = np.concatenate(channel)
            waves, step, steps = np.zeros((here.size, 0)), 0.0, np.zeros(0)
            if walk is not None:
                square = float(np.mean(left[here] ** 2))
                waves, step = slowest_waves(here.size), walk.step
                steps = square / here.size * SIZES**2
            elif draws is not None:  # The draws of input noise have variance 1.
                own = (draws[:, here] / size).T / np.sqrt(max(len(draws), 1))
                waves, step, steps = own, 1.0, DRAWN**2
            one = _Channel(table, channel, left, waves, step, steps)
            if one.count > 3 * one.order + 3:
                self.channels.append(one)
        self.before: Fitted | None = None

    @property
    def has_walk(self) -> bool:
        """True if a random walk, or the effect of input noise, is added to any channel."""
        return any(one.waves for one in self.channels)

    def p_value(self, at: list[int]) -> float:
        """Return the p value of the hypothesis that the candidate columns `at` have no effect.

        With a random walk, the result is twice the smaller of two p values. The first p value uses
        the variance of the random walk from the fit without the columns. For the second p value,
        this variance is fitted again. The degrees of freedom of the second test are at most the
        number of slow components above the noise. With input noise, only the first p value is used.
        """
        if not self.channels:
            return 1.0
        if self.before is None:
            self.before = self.maximize([])
        after = self.maximize([1 + self.p + j for j in at])
        if not self.has_walk:
            return self._p_value(after, len(at), np.inf)
        same = self.maximize([1 + self.p + j for j in at], self.before.states)
        p = self._p_value(same, len(at), np.inf)
        if self.of_draws:
            return p
        of_walk = self._p_value(after, len(at), sum(s.above for s in self.before.states))
        return min(2.0 * min(of_walk, p), 1.0)

    def _p_value(self, after: Fitted, k: int, most: float) -> float:
        """Return the p value of k columns in the fit `after`; `most`: limit of degrees of
        freedom."""
        assert self.before is not None
        n = sum(one.count for one in self.channels)
        dof = max(min(after.effective - self.p - k, most), 2.0)
        gain = np.expm1(max(self.before.size - after.size, 0.0) / n)
        return float(fdtrc(k, dof, gain * max(n - self.p - k, 1) / k))

    def maximize(self, more: list[int], same: list[_State] | None = None) -> Fitted:
        """Maximise the likelihood with columns `more`. `same`: noise whose random walk is kept."""
        whole = [0, *range(1, 1 + self.p), *more]
        states = [one.begin for one in self.channels]
        steps = [None if same is None else s.ratio * s.noise for s in same or states]
        total = effective = 0.0
        for _ in range(6):  # Each iteration fits first the coefficients, then the noise.
            a, rounding = np.zeros((len(whole), len(whole))), np.zeros(len(whole))
            for one, state in zip(self.channels, states, strict=True):
                a += one._whitened_products(whole, state)
                # The autoregressive filter can reduce a column to rounding errors. The size of
                # these errors is added to the diagonal of the normal equations.
                rounding += _ROUNDING * np.diag(one.gram[0, :, 0, :])[whole] / state.noise
            ridge = np.diag((1e-13 * np.abs(np.diag(a)) + rounding + 1e-300)[1:])
            beta = np.linalg.lstsq(a[1:, 1:] + ridge, a[1:, 0], rcond=_RCOND)[0]
            v = np.concatenate([[1.0], -beta])
            fits = [
                one.fit_noise(whole, v, state, step)
                for one, state, step in zip(self.channels, states, steps, strict=True)
            ]
            states = [state for state, _, _ in fits]
            total, effective = sum(x for _, x, _ in fits), sum(x for _, _, x in fits)
        return Fitted(float(total), float(effective), states)


class _Channel:
    """Sums of products of one channel's delayed columns, including slow waves of a random walk."""

    def __init__(
        self,
        table: np.ndarray,
        stretches: list[np.ndarray],
        left: np.ndarray,
        waves: np.ndarray,
        step: float,
        steps: np.ndarray,
    ) -> None:
        rest, ratio, self.steps = left[np.concatenate(stretches)], 0.0, steps
        # The order of the autoregression is chosen from the residuals without the random walk.
        if step > 0:
            square = float(np.mean(rest**2))
            ratio = step / max(float(np.var(np.diff(rest))) / 2.0, 1e-13 * square)
            gram = waves.T @ waves + np.eye(waves.shape[1]) / ratio
            rest = rest - waves @ np.linalg.solve(gram, waves.T @ rest)
        cuts = np.cumsum([len(s) for s in stretches])[:-1]
        self.order = q = autoregression(np.split(rest, cuts))[0].size
        self.begin = _State(np.zeros(q), 1.0, ratio)
        gram, self.count, width = 0.0, 0, table.shape[1] + waves.shape[1]
        for s, own in zip(stretches, np.split(waves, cuts), strict=True):
            if len(s) > q + 1:
                of = np.column_stack([table[s], own])
                lags = np.concatenate([of[q - i : len(s) - i] for i in range(q + 1)], axis=1)
                gram, self.count = gram + lags.T @ lags, self.count + len(lags)
        self.gram = np.zeros((q + 1, width, q + 1, width))
        if self.count:
            self.gram = np.reshape(gram, self.gram.shape)
        self.waves = list(range(table.shape[1], width))

    def _whitened_products(self, whole: list[int], state: _State) -> Float[np.ndarray, "k k"]:
        """Return the products (k, k) of the columns `whole`, divided by the covariance of noise."""
        a, beside, own = self._whiten(whole, state.phi)
        if self.waves and state.ratio > 0:
            own = own + np.eye(len(self.waves)) / state.ratio
            a = a - beside @ np.linalg.solve(own, beside.T)
        return a / state.noise

    def fit_noise(
        self, whole: list[int], v: np.ndarray, state: _State, step: float | None
    ) -> tuple[_State, float, float]:
        """Fit the noise of the residuals, which are the columns `whole` times `v`. Return the
        noise, -2 times its log likelihood (up to a constant), and the number of independent
        samples. `step`: variance of the increments of the random walk, or None to fit this
        variance.
        """
        n, q, both = self.count, self.order, v
        if self.waves:  # The random walk is subtracted before the fit of the autoregression.
            _, beside, own = self._whiten(whole, state.phi)
            of = state.ratio * (v @ beside)
            waves = np.linalg.solve(state.ratio * own + np.eye(len(self.waves)), of)
            both = np.concatenate([v, -waves])
        use = [*whole, *self.waves]
        part = self.gram[:, use][:, :, :, use]
        g = np.einsum("a,iajb,b->ij", both, part, both)
        phi = np.linalg.lstsq(g[1:, 1:], g[1:, 0], rcond=_RCOND)[0] if q else np.zeros(0)
        # If the columns explain a short record completely, the variance is that of rounding errors.
        least = max(_ROUNDING * float(self.gram[0, 0, 0, 0]) / n, 1e-300)
        rest = max(float(g[0, 0] - phi @ g[1:, 0]) / n, least)
        # The share of independent samples is the variance of the residuals, divided by the maximum
        # of their spectral density.
        shape = np.abs(np.fft.rfft(np.concatenate([[1.0], -phi]), 1024)) ** 2
        variance = max(float(g[0, 0]) / n, least)
        share = float(np.clip(variance * np.min(shape) / rest, 0.0, 1.0))
        if not self.waves:
            return _State(phi, rest), n * np.log(rest), n * share
        a, beside, own = self._whiten(whole, phi)
        sizes, turn = np.linalg.eigh(own)
        sizes, seen = np.maximum(sizes, 0.0), turn.T @ (v @ beside)
        ratios = np.append(0.0, self.steps) / rest if step is None else np.array([step / rest])
        weight = ratios[:, None] / (1.0 + ratios[:, None] * sizes)
        left = np.maximum((float(v @ a @ v) - weight @ seen**2) / n, least)
        value = n * np.log(left) + np.sum(np.log1p(ratios[:, None] * sizes), axis=1)
        best = int(np.argmin(value))
        above = float(np.sum(weight[best] * sizes))
        state = _State(phi, float(left[best]), float(ratios[best]), above)
        return state, float(value[best]), n * share

    def _whiten(
        self, whole: list[int], phi: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three matrices of products after the autoregressive filter: of columns `whole`, of
        these columns with the random walk's slow components, and of the slow components."""
        filt, use, k = np.concatenate([[1.0], -phi]), [*whole, *self.waves], len(whole)
        a = np.einsum("i,iajb,j->ab", filt, self.gram[:, use][:, :, :, use], filt)
        return a[:k, :k], a[:k, k:], a[k:, k:]


def highest_order(stretches: list[np.ndarray]) -> int:
    """Return the largest order that an autoregression of these sections of a record may have."""
    return min(12, max(len(s) for s in stretches) // 8)


def autoregression(stretches: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """Return the coefficients of an autoregression (`phi`) and the standard deviation of its
    innovations. Schwarz's criterion selects the order."""
    most = highest_order(stretches)
    gram, n = np.zeros((most + 1, most + 1)), 0
    for s in stretches:
        if len(s) > 2 * most:
            lags = np.column_stack([s[most - j : len(s) - j] for j in range(most + 1)])
            gram, n = gram + lags.T @ lags, n + len(lags)
    if not n:
        return np.zeros(0), 1.0
    model = select_autoregression(gram, n, _RCOND)
    return model.phi, float(np.sqrt(model.noise * (n - model.phi.size) / n))


# `_WINDOW_ROUNDS`: largest number of REML iterations on windows. `_SETTLED`: relative change of the
# noise variance at which the iterations end.
_WINDOW_ROUNDS, _SETTLED = 15, 1e-3


def window_autoregression(
    columns: Sensitivities, stretches: list[Int[np.ndarray, " _"]]
) -> AutoregressiveModel:
    """Return the autoregression of the residuals in the sections `stretches` by restricted
    likelihood (REML), with `noise` as variance of weighted residuals. Candidates are not included.

    A fitted initial state absorbs the slowest components of the residuals in its window. If the
    correlation time is half a window, the residuals look almost uncorrelated, and slow terms seem
    significant. REML restores the variance that fitted initial states and parameters absorb.

    **Source:** D. A. Harville, Journal of the American Statistical Association 72 (1977).
    """
    cuts = [np.flatnonzero(np.diff(columns.window[s])) + 1 for s in stretches]
    stretches = [x for s, cut in zip(stretches, cuts, strict=True) for x in np.split(s, cut)]
    most = highest_order(stretches)
    mine = [s for s in stretches if len(s) > 2 * most]
    if not most:
        square = float(np.mean(columns.residuals[np.concatenate(mine)] ** 2))
        return AutoregressiveModel.white(max(square, 1e-300))
    numbers = np.unique(np.concatenate([columns.window[s] for s in mine]))
    starts, fitted = columns.starts.shape[1], columns.fitted.shape[1]
    grams, edges, places = [], [], []
    for s in mine:
        z = np.column_stack([columns.residuals[s], columns.starts[s], columns.fitted[s]])
        grams.append(lagged_products(z, most))
        edges.append(z[:most].T @ z[:most])
        window = int(np.searchsorted(numbers, columns.window[s[0]]))
        own = starts * window + np.arange(starts)
        places.append(np.concatenate([own, starts * len(numbers) + np.arange(fitted)]))
    many, first = np.stack(grams), np.stack(edges)
    count = sum(len(s) - most for s in mine)
    size = starts * len(numbers) + fitted
    moved, taken, before = np.zeros(size), np.zeros((size, size)), 0.0
    for _ in range(_WINDOW_ROUNDS):
        v = np.stack([np.concatenate([[1.0], -moved[at]]) for at in places])
        weight = v[:, :, None] * v[:, None, :]
        weight[:, 1:, 1:] += np.stack([taken[np.ix_(at, at)] for at in places])
        sums = np.einsum("wijab,wab->ij", many, weight)
        # The residuals may be smooth. Therefore white noise of 1e-6 of their variance is added.
        model = select_autoregression(sums, count, 1e-6)
        if abs(model.noise - before) < _SETTLED * model.noise:
            break
        before = model.noise
        a = np.concatenate([[1.0], -model.phi])
        q = len(a)
        through = np.einsum("i,wijab,j->wab", a, many[:, :q, :q], a) / model.noise
        # The autoregression does not predict the first samples. These samples count as white noise.
        through += first * count / max(float(sums[0, 0]), 1e-200)
        told, pull = np.zeros((size, size)), np.zeros(size)
        for at, one in zip(places, through, strict=True):
            told[np.ix_(at, at)] += one[1:, 1:]
            pull[at] += one[1:, 0]
        square = np.diag(told)
        unit = np.sqrt(np.where(square > 0, square, 1.0))
        scale = np.outer(unit, unit)
        taken = np.linalg.pinv(told / scale, rcond=1e-7, hermitian=True) / scale
        moved = taken @ pull
    return model
