"""How much better residuals with a memory are explained: both that memory and all coefficients by
maximum likelihood, without a candidate and with it.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int
from scipy.special import fdtrc

from ..errors.memory.autoregression import walks
from ..errors.memory.wandering import SIZES, slowest_waves
from .columns import Columns

_ROUNDS = 6
_ORDER = 12  # of the autoregression, at most
_RIDGE = 1e-13
DRAWN = np.geomspace(0.1, 1.5, 10)  # times the noise that is read from inputs
_SEEN = 1e-12  # of the largest eigenvalue of sums of lagged products

# For each channel of a record, the numbers of its residuals in the order of time, in stretches.
Stretches = list[list[Int[np.ndarray, " _"]]]


@dataclasses.dataclass(frozen=True, eq=False)
class _State:
    """The noise of a channel: its autoregression, the variance of what is new in it, that of the
    steps of the walk over it, and how many of the waves of that stand `above` the noise.
    """

    phi: Float[np.ndarray, " q"]
    noise: float
    ratio: float = 0.0
    above: float = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    """`size`: the sum over channels of n*log(variance of what is left); `effective`: how many
    independent samples there are; the `states` of their noise.
    """

    size: float
    effective: float
    states: list[_State]


class Likelihood:
    """Residuals of each channel as an autoregression of fixed order, about linear columns, and
    where they wander beside a random walk (`walks`), or else beside what `draws` (k, n) of noise of
    the inputs would do, as much of it as is likeliest.

    Conditional on the first samples of each stretch, so that sums of products of lagged columns are
    all that is needed: they are formed once for all candidates.
    """

    def __init__(
        self,
        columns: Columns,
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
        if draws is None:
            waves = _of_walks(left / size, columns.fitted, stretches)
        else:
            waves = (_of_draws(draws[:, np.concatenate(s)] / size) for s in stretches)
        made = (
            _Channel(table, channel, left / size, *of)
            for channel, of in zip(stretches, waves, strict=True)
        )
        self.channels = [one for one in made if one.count > 3 * one.order + 3]
        self.before: Fitted | None = None

    @property
    def wanders(self) -> bool:
        """Whether there is a walk beside the noise of any channel."""
        return any(one.waves for one in self.channels)

    def chance(self, at: list[int]) -> float:
        """That the columns `at` explain as much by chance.

        Where there is a walk the lesser of two, times 2: beside as much of it as without them, and
        beside what is left of it, which is then known from as many numbers as it has waves above
        the noise. How large the noise of inputs is has been read from them: of that the first.
        """
        if not self.channels:
            return 1.0
        if self.before is None:
            self.before = self.fitted([])
        after = self.fitted([1 + self.p + j for j in at])
        if not self.wanders:
            return self._chance(after, len(at), np.inf)
        same = self.fitted([1 + self.p + j for j in at], self.before.states)
        chance = self._chance(same, len(at), np.inf)
        if self.of_draws:
            return chance
        of_walk = self._chance(after, len(at), sum(s.above for s in self.before.states))
        return min(2.0 * min(of_walk, chance), 1.0)

    def _chance(self, after: Fitted, k: int, most: float) -> float:
        """Likewise, with at most so many degrees of freedom."""
        assert self.before is not None
        n = sum(one.count for one in self.channels)
        dof = max(min(after.effective - self.p - k, most), 2.0)
        gain = np.expm1(max(self.before.size - after.size, 0.0) / n)
        return float(fdtrc(k, dof, gain * max(n - self.p - k, 1) / k))

    def fitted(self, more: list[int], same: list[_State] | None = None) -> Fitted:
        """With the columns `more`, where it is likeliest over all coefficients; `same`: with its
        walks.
        """
        whole = [0, *range(1, 1 + self.p), *more]
        states = [one.begin for one in self.channels]
        steps = [None if same is None else s.ratio * s.noise for s in same or states]
        total = effective = 0.0
        for _ in range(_ROUNDS):  # the first without a memory
            a = np.zeros((len(whole), len(whole)))
            for one, state in zip(self.channels, states, strict=True):
                a += one.told(whole, state)
            ridge = _RIDGE * np.diag(np.diag(a[1:, 1:])) + 1e-300 * np.eye(len(whole) - 1)
            beta = np.linalg.lstsq(a[1:, 1:] + ridge, a[1:, 0], rcond=_SEEN)[0]
            v = np.concatenate([[1.0], -beta])
            fits = [
                one.fit(whole, v, state, step)
                for one, state, step in zip(self.channels, states, steps, strict=True)
            ]
            states = [state for state, _, _ in fits]
            total, effective = sum(x for _, x, _ in fits), sum(x for _, _, x in fits)
        return Fitted(float(total), float(effective), states)


class _Channel:
    """The sums of products of the lagged columns of one channel, and of the waves of its walk."""

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
        if step > 0:  # the order is that of what the walk leaves
            square = float(np.mean(rest**2))
            ratio = step / max(float(np.var(np.diff(rest))) / 2.0, _RIDGE * square)
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

    def told(self, whole: list[int], state: _State) -> Float[np.ndarray, "k k"]:
        """The products of the columns `whole`, whitened."""
        a, beside, own = self._whitened(whole, state.phi)
        if self.waves and state.ratio > 0:
            own = own + np.eye(len(self.waves)) / state.ratio
            a = a - beside @ np.linalg.solve(own, beside.T)
        return a / state.noise

    def fit(
        self, whole: list[int], v: np.ndarray, state: _State, step: float | None
    ) -> tuple[_State, float, float]:
        """The noise that fits the columns times `v`, where given with steps of the walk of that
        variance; n*log of its variance, and how many independent samples there are.
        """
        n, q, both = self.count, self.order, v
        if self.waves:  # the autoregression is that of what the walk leaves
            _, beside, own = self._whitened(whole, state.phi)
            of = state.ratio * (v @ beside)
            waves = np.linalg.solve(state.ratio * own + np.eye(len(self.waves)), of)
            both = np.concatenate([v, -waves])
        use = [*whole, *self.waves]
        part = self.gram[:, use][:, :, :, use]
        g = np.einsum("a,iajb,b->ij", both, part, both)
        phi = np.linalg.lstsq(g[1:, 1:], g[1:, 0], rcond=_SEEN)[0] if q else np.zeros(0)
        rest = max(float(g[0, 0] - phi @ g[1:, 0]) / n, 1e-300)
        share = _share(phi, rest, max(float(g[0, 0]) / n, 1e-300))
        if not self.waves:
            return _State(phi, rest), n * np.log(rest), n * share
        a, beside, own = self._whitened(whole, phi)
        sizes, turn = np.linalg.eigh(own)
        sizes, seen = np.maximum(sizes, 0.0), turn.T @ (v @ beside)
        ratios = np.append(0.0, self.steps) / rest if step is None else np.array([step / rest])
        weight = ratios[:, None] / (1.0 + ratios[:, None] * sizes)
        left = np.maximum(float(v @ a @ v) - weight @ seen**2, 1e-300) / n
        value = n * np.log(left) + np.sum(np.log1p(ratios[:, None] * sizes), axis=1)
        best = int(np.argmin(value))
        above = float(np.sum(weight[best] * sizes))
        state = _State(phi, float(left[best]), float(ratios[best]), above)
        return state, float(value[best]), n * share

    def _whitened(
        self, whole: list[int], phi: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The products of the columns `whole`, of these and the waves, and of the waves, all
        through the autoregression.
        """
        filt, use, k = np.concatenate([[1.0], -phi]), [*whole, *self.waves], len(whole)
        a = np.einsum("i,iajb,j->ab", filt, self.gram[:, use][:, :, :, use], filt)
        return a[:k, :k], a[:k, k:], a[k:, k:]


def _of_walks(
    left: np.ndarray, fitted: np.ndarray, stretches: Stretches
) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """For each channel the waves of its walk, the variance of a step, and those that are tried."""
    for channel, walk in zip(stretches, walks(left, fitted, stretches), strict=True):
        n = sum(len(s) for s in channel)
        if walk is None:
            yield np.zeros((n, 0)), 0.0, np.zeros(0)
        else:
            square = float(np.mean(left[np.concatenate(channel)] ** 2))
            yield slowest_waves(n), walk.step, square / n * SIZES**2


def _of_draws(draws: Float[np.ndarray, "k n"]) -> tuple[np.ndarray, float, np.ndarray]:
    """Likewise of noise of the inputs, of which draws have the variance 1."""
    return draws.T / np.sqrt(max(len(draws), 1)), 1.0, DRAWN**2


def _share(phi: np.ndarray, noise: float, variance: float) -> float:
    """Of samples that are independent, where the residual is strongest: variance over the highest
    of its spectrum.
    """
    shape = np.abs(np.fft.rfft(np.concatenate([[1.0], -phi]), 1024)) ** 2
    return float(np.clip(variance * np.min(shape) / noise, 0.0, 1.0))


def highest_order(stretches: list[np.ndarray]) -> int:
    """Of the autoregressions that are tried on these."""
    return min(_ORDER, max(len(s) for s in stretches) // 8)


def autoregression(stretches: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """Coefficients, the order by Schwarz's criterion, and the standard deviation of what is
    left.
    """
    most = highest_order(stretches)
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
