"""Noise model of autocorrelated residuals: an autoregression, fitted by restricted likelihood, and
a random walk, which describes a drift of the sensor's zero.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from frictax.fitting.problem.problem import Problem
from frictax.fitting.result.identifiability import join_names
from frictax.fitting.result.spread import Memoized
from frictax.notice import Notice
from frictax.pytree import pytree_dataclass

from .clusters import has_windows
from .linearization import CovarianceEstimate, Linearization, LinearNoiseModel, inverse_root

_FLOOR = 1e-4  # [1] variance of white noise added to residuals, divided by their variance


@dataclasses.dataclass(frozen=True)
class AutoregressiveModel:
    """An autoregression r[i] = phi[0] r[i-1] + phi[1] r[i-2] + ... + e[i]. `noise`: variance of e;
    `information`: inverse of the covariance matrix of `phi`, multiplied by `noise`.
    """

    phi: Float[np.ndarray, " m"]
    noise: float
    information: Float[np.ndarray, "m m"]

    @classmethod
    def white(cls, variance: float) -> "AutoregressiveModel":
        return cls(np.zeros(0), variance, np.zeros((0, 0)))

    @functools.cached_property
    def rows(self) -> float:
        """The correlation time [rows], in which the autocorrelation decreases to 1/e."""
        roots = np.abs(np.roots(np.concatenate([[1.0], -self.phi])))
        return float(1.0 / -np.log(np.clip(np.max(roots, initial=0.0), 1e-9, 1 - 1e-9)))


def select_autoregression(
    g: Float[np.ndarray, "l l"], count: int, floor: float = _FLOOR
) -> AutoregressiveModel:
    """Return the autoregression of residuals r whose order is the best by Schwarz's criterion.
    `g[i, j]`: sum of r[t - i] r[t - j] over `count` samples t. `floor`: variance of the white noise
    that is added, divided by the variance of the residuals.
    """
    g = g + (floor * np.trace(g) / len(g) + 1e-200) * np.eye(len(g))
    # All orders use the same Cholesky factor, so each order needs only one triangular solve.
    low = np.linalg.cholesky(g[1:, 1:])
    along = np.linalg.solve(low, g[1:, 0])
    rest = np.maximum(g[0, 0] - np.concatenate([[0.0], np.cumsum(along**2)]), 1e-200)
    orders, n = np.arange(len(rest)), max(count, 1)
    q = int(np.argmin(n * np.log(rest / n) + np.log(n) * (orders + 1)))
    phi = np.linalg.solve(low[:q, :q].T, along[:q])
    return AutoregressiveModel(phi, float(rest[q] / max(n - q, 1)), g[1 : q + 1, 1 : q + 1])


class Series:
    """The residuals of one output of one record, and their autoregression. Successive residuals are
    averaged if the estimates depend on low frequencies only.

    `root`: parameter changes for which white residuals of variance 1 give independent errors of
    variance 1; `columns`: derivatives of the residuals along these changes. `stretches`: indices of
    the residuals in each section without a gap. `step`: time step [s]; 1 row for a sweep.
    """

    def __init__(
        self,
        residuals: Float[np.ndarray, " n"],
        columns: Float[np.ndarray, "n c"],
        root: Float[np.ndarray, "p c"],
        record: int,
        step: float,
        stretches: list[np.ndarray],
    ) -> None:
        rows = np.concatenate(stretches)
        self.residuals, seen = residuals[rows], columns[rows]
        self.pull = root @ seen.T  # (p, n) change of each estimate per unit of each residual.
        # To save time, `each` successive rows are averaged to one row (at most 20,000 rows).
        # Frequencies below `wide` [cycles/row] remain: 98 % of the energy in each row of `pull`.
        norms, wide = np.linalg.norm(self.pull, axis=1), 0.5
        power = np.abs(np.fft.rfft(self.pull[norms > 0] / norms[norms > 0, None])) ** 2
        if power.size:
            energy = np.cumsum(power, axis=1) / power.sum(axis=1, keepdims=True)
            wide = float((np.max(np.argmax(energy >= 0.98, axis=1)) + 1) / rows.size)
        size = max(rows.size // 300, 1)
        each = max(int(np.clip(1.0 / (6.0 * wide), 1, size)), -(-rows.size // 20_000))
        # The rows at the end of each section that do not fill an average are not used. Therefore
        # averages are shorter if gaps are frequent.
        least = -(-rows.size // 20_000)
        while each > least and sum(len(m) % each for m in stretches) > 0.02 * rows.size:
            each -= 1
        self.record, self.step, self.length = record, step * each, step * rows.size
        self.parts, end = [], 0
        for mine in stretches:
            first, count, end = end, len(mine) // each, end + len(mine)
            here = slice(first, first + count * each)
            if count:
                averaged = np.einsum("ijk->ik", seen[here].reshape(count, each, -1)) / each
                averages = self.residuals[here].reshape(count, each).mean(axis=1)
                self.parts.append((averages, averaged))
        self.each = each
        self.rows = sum(len(y) for y, _ in self.parts)
        self.columns = root.shape[1]
        most = max(min(20, self.rows // 8), 1)  # largest order of the autoregression
        if sum(max(len(y) - most, 0) for y, _ in self.parts) < 3 * most:
            middle = int(np.median([len(y) for y, _ in self.parts])) if self.parts else 1
            most = max(min(middle // 4, most), 1)
        width = self.columns + 1
        self.gram, self.count = np.zeros((most + 1, most + 1, width, width)), 0
        self.edge = np.zeros((width, width))
        for y, x in self.parts:
            both, begins = np.column_stack([y, x]), most if len(y) > most + 1 else len(y)
            self.edge += both[:begins].T @ both[:begins]
            if begins < len(y):
                self.gram += lagged_products(both, most)
                self.count += len(y) - most
        self.model = AutoregressiveModel.white(0.0)

    def fit_noise(
        self, moved: np.ndarray, taken: np.ndarray, floor: float = _FLOOR
    ) -> Float[np.ndarray, "c c"]:
        """Fit the autoregression to residuals - columns @ `moved`, where `moved` is a change of the
        estimates. Return the Gram matrix of the whitened residuals and columns. `taken`: covariance
        of the estimates; it restores the variance that the fit removed from the residuals.
        """
        v = np.concatenate([[1.0], -moved])
        weight = np.outer(v, v)
        weight[1:, 1:] += taken
        if not self.count:  # All sections are too short for an autoregression.
            square = max(float(np.sum(self.edge * weight)) / max(self.rows, 1), 1e-200)
            self.model = AutoregressiveModel.white(square)
            return self.edge / square
        g = np.tensordot(self.gram, weight)
        self.model = select_autoregression(g, self.count, floor)
        phi, q = self.model.phi, self.model.phi.size
        a = np.concatenate([[1.0], -phi])
        whitened = np.einsum("i,j,ijab->ab", a, a, self.gram[: q + 1, : q + 1])
        # The first samples of a section cannot be predicted, so they count as white noise.
        whole = (1.0 + floor) * g[0, 0] / max(self.count, 1)
        return whitened / self.model.noise + self.edge / max(whole, 1e-200)

    def covariances(self) -> tuple[np.ndarray, list[np.ndarray], float]:
        """Return the covariance of the estimates due to the noise of this series, its changes, and
        its degrees of freedom (rows minus coefficients and parameters). A change belongs to one
        standard deviation of the autoregression's coefficients along one axis of their covariance.
        """
        phi, noise = self.model.phi, self.model.noise
        rows = float(max(self.rows - len(phi) - self.columns, 1))
        if not phi.size:  # white noise does not need a spectrum
            size = sum((x.T @ x for _, x in self.parts), np.zeros((self.columns,) * 2))
            return noise * self.each**2 * size, [], rows
        longest = max((len(y) for y, _ in self.parts), default=1)
        # Zeros extend the series to at least 8 times its length, to resolve peaks of the spectrum.
        size = 8 << (longest - 1).bit_length()
        weight = np.full(size // 2 + 1, 2.0 * noise / size)
        weight[[0, -1]] /= 2.0
        columns = (np.ascontiguousarray(x.T) * self.each for _, x in self.parts)
        seen = [np.fft.rfft(x, size).view(float) for x in columns]

        values, vectors = np.linalg.eigh(noise * np.linalg.inv(self.model.information))
        steps = (0.05 * np.sqrt(np.maximum(values, 0.0)) * vectors).T
        phis = np.concatenate([phi[None], phi + steps, phi - steps])
        shapes = np.abs(np.fft.rfft(np.column_stack([np.ones(len(phis)), -phis]), size)) ** 2
        sums = np.zeros((len(phis), self.columns, self.columns))
        for out, w in zip(sums, np.repeat(weight / np.maximum(shapes, 1e-10), 2, 1), strict=True):
            for s in seen:  # Real and imaginary parts alternate in `s`; `w` repeats each weight.
                out += (s * w) @ s.T
        ups, downs = np.split(sums[1:], 2)
        return sums[0], list((ups - downs) / 0.1), rows

    @property
    def memory(self) -> float:
        """Correlation time [s; rows for a sweep], at most the length of the record or sweep."""
        return min(self.step * self.model.rows, self.length)


def lagged_products(z: Float[np.ndarray, "n w"], most: int) -> Float[np.ndarray, "l l w w"]:
    """Return an array: entry [i, j, a, b] is the sum over t >= `most` of z[t-i, a] z[t-j, b]."""
    count, width = len(z) - most, z.shape[1]
    back = np.lib.stride_tricks.sliding_window_view(z, (most + 1, width)).reshape(count, -1)
    out = np.empty((most + 1, most + 1, width, width))
    out[0] = (z[most:].T @ back).reshape(width, -1, width)[:, ::-1].transpose(1, 0, 2)
    out[1:, 0] = out[0, 1:].transpose(0, 2, 1)
    # The sums of products at lags i + 1, j + 1 begin and end one sample earlier than those at i, j.
    # Therefore one product is added at the beginning, and one is subtracted at the end.
    begins, ends = z[most - 1 :: -1], z[: -most - 1 : -1]
    more = np.einsum("ia,jb->ijab", begins, begins) - np.einsum("ia,jb->ijab", ends, ends)
    for i in range(most):
        np.add(out[i, :-1], more[i], out=out[i + 1, 1:])
    return out


# [1] Value that replaces `_FLOOR` for smooth residuals.
_SMOOTH_FLOOR = 1e-6
# Grid of the standard deviation of a random walk at the end of the record, divided by the standard
# deviation of the residuals. The grid ends at 5, because a larger walk gives larger residuals.
SIZES = np.geomspace(0.02, 5.0, 24)


@dataclasses.dataclass(frozen=True)
class Walk:
    """A random walk that is added to the noise of a series.

    `step`: variance of the change of the walk from row to row [weighted residual squared];
    `spread`: standard error of `step`; `gain` [1]: decrease of -2 log likelihood due to the walk.
    """

    step: float
    spread: float
    gain: float = np.inf

    def covariances(self, series: Series) -> tuple[np.ndarray, list[np.ndarray], float]:
        """Return the covariance due to the random walk, in the form of `Series.covariances`."""
        columns = np.concatenate([x for _, x in series.parts]) * series.each
        steps = np.cumsum(columns[::-1], axis=0)  # a step of the walk changes all later samples
        size = steps.T @ steps
        return self.step * size, [self.spread * size], np.inf


def random_walk_noise(
    series: Series,
    moved: Float[np.ndarray, " c"],
    taken: Float[np.ndarray, "c c"],
    others: Float[np.ndarray, "c c"],
) -> Walk | None:
    """Return the random walk in the noise of `series`, and refit the autoregression of the series.
    Return None if noise without a random walk explains the residuals equally well. `moved`,
    `taken`: as in `Series.fit_noise`; `others`: information matrix of the other series and priors.

    White noise hides a random walk with small steps, except for the slowest components of the walk.
    These components are too few for Schwarz's criterion to select an autoregression, but slow
    parameters (a constant force, an initial value) depend on them. Therefore the restricted
    likelihood is maximised over the variance of the random walk, and compared with the likelihood
    of an autoregression alone. The remaining noise is first assumed white, and then fitted by an
    autoregression.

    **Source:** local level: A. C. Harvey, *Forecasting, Structural Time Series Models and the
    Kalman Filter* (1989), chapter 2; components of a random walk: the Karhunen-Loève expansion.
    """
    if series.rows < 16:  # Fewer rows do not distinguish a random walk from noise.
        return None
    usual = series.model
    about = _CenteredSeries(series, moved, others)
    best = _WalkLikelihood(about, about.white)
    alone = best.alone
    if usual.phi.size:
        if usual.noise < 0.01 * about.square:  # With `_FLOOR`, smooth residuals look like a walk.
            series.fit_noise(moved, taken, _SMOOTH_FLOOR)
        same = _WalkLikelihood(about, series.model)
        series.model, alone = usual, same.alone
        best = min(best, same, key=lambda one: one.score)
    # The variance of the random walk may be at its bound 0. Therefore its penalty in Akaike's
    # criterion is half the penalty of a parameter.
    if best.score > alone - 1.0:
        return None
    for _ in range(3):  # The random walk and the remaining noise are estimated in turn.
        other = _WalkLikelihood(about, about.autoregression_of(best.rest))
        if other.score >= best.score:
            break
        best = other
    series.model = dataclasses.replace(best.model, noise=best.model.noise * best.noise)
    return best.walk(alone)


class _CenteredSeries:
    """Residuals of a series after a change `moved` of the estimates, and slow random walks."""

    def __init__(self, series: Series, moved: np.ndarray, others: np.ndarray) -> None:
        y = np.concatenate([y for y, _ in series.parts])
        x = np.concatenate([x for _, x in series.parts])
        self.both = np.column_stack([y - x @ moved, x])
        self.others, self.most = others, len(series.gram) - 1
        ends = np.cumsum([0, *(len(y) for y, _ in series.parts)])
        self.parts = [slice(i, j) for i, j in zip(ends[:-1], ends[1:], strict=True)]
        self.waves = _walk_waves(len(y))
        self.square = max(float(np.mean(self.both[:, 0] ** 2)), 1e-200)
        self.white = AutoregressiveModel.white(self.square)
        self.steps = self.square / len(y) * SIZES**2

    def autoregression_of(self, rest: Float[np.ndarray, " n"]) -> AutoregressiveModel:
        """Fit an autoregression to `rest`. If each section is too short, return white noise."""
        long = [rest[p] for p in self.parts if p.stop - p.start > self.most + 1]
        if not long:
            return self.white
        sums = sum(lagged_products(one[:, None], self.most)[..., 0, 0] for one in long)
        return select_autoregression(
            np.asarray(sums), sum(len(one) - self.most for one in long), _SMOOTH_FLOOR
        )


class _WalkLikelihood:
    """Restricted likelihood (REML) of the noise `model` plus random walks of several variances.

    `score`: the smallest -2 log likelihood on the grid, plus the penalty of Schwarz's criterion for
    the coefficients of `model`. `alone`: the score without a random walk. `noise`: variance of the
    noise besides the random walk, divided by the variance in `model`.
    """

    def __init__(self, about: _CenteredSeries, model: AutoregressiveModel) -> None:
        self.about, self.model, n = about, model, len(about.both)
        both, shape = self._whiten()
        waves, turn, size = self._waves(both)
        y, x, of_y, of_x = both[:, 0], both[:, 1:], waves[:, 0], waves[:, 1:]
        told = about.others + x.T @ x
        self._steps = np.concatenate([[0.0], about.steps])
        ratio = self._steps[:, None] * size
        share = ratio / (1.0 + ratio)  # share of the random walk in each component's variance
        gram = told - np.tensordot(share, of_x[:, :, None] * of_x[:, None, :], 1)
        pull = x.T @ y - share @ (of_x * of_y[:, None])
        moved = np.linalg.solve(gram, pull[..., None])[..., 0]
        rest = y @ y - share @ of_y**2 - np.sum(pull * moved, axis=1)
        rest = np.maximum(rest, 1e-12 * max(float(y @ y), 1e-200))
        value = shape + np.sum(np.log1p(ratio), axis=1) + np.linalg.slogdet(gram)[1]
        value += n * np.log(rest / n) + np.log(n) * model.phi.size
        self._rest, self._value, self._k = rest / n, value, 1 + int(np.argmin(value[1:]))
        self.alone, self.score = float(value[0]), float(value[self._k])
        self.noise = float(rest[self._k] / n)
        self._moved = moved[self._k]
        self._turn, self._taken = turn, share[self._k] * (of_y - of_x @ self._moved)

    def walk(self, alone: float) -> Walk:
        """Return the most likely random walk; `alone`: the score without a random walk."""
        likely = np.exp(-0.5 * (self._value - self.score))[1:]
        steps = (self._steps * self._rest)[1:]
        mean = likely @ steps / np.sum(likely)
        spread = np.sqrt(likely @ (steps - mean) ** 2 / np.sum(likely))
        return Walk(float(steps[self._k - 1]), float(spread), alone - self.score)

    @property
    def rest(self) -> Float[np.ndarray, " n"]:
        """The residuals minus the effect of the estimates and minus the random walk."""
        both, waves = self.about.both, self.about.waves
        return both[:, 0] - both[:, 1:] @ self._moved - waves.sines @ (self._turn @ self._taken)

    def _whiten(self) -> tuple[np.ndarray, float]:
        """Return whitened residuals and columns, and log(determinant of the noise covariance)."""
        about, phi, noise = self.about, self.model.phi, self.model.noise
        if not phi.size:
            return about.both / np.sqrt(noise), len(about.both) * np.log(noise)
        out, shape = np.empty_like(about.both), 0.0
        for part in about.parts:
            mine, q = about.both[part], min(phi.size, part.stop - part.start)
            # The first rows of a section cannot be predicted, so they are only scaled.
            out[part][:q] = mine[:q] / np.sqrt(about.square)
            lags = (c * mine[q - i : len(mine) - i] for i, c in enumerate([1.0, *-phi]))
            out[part][q:] = sum(lags) / np.sqrt(noise) if len(mine) > q else 0.0
            shape += q * np.log(about.square) + (len(mine) - q) * np.log(noise)
        return out, float(shape)

    def _waves(self, both: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whiten the slow components of a random walk with steps of variance 1, and make them
        orthogonal. Return the inner products with residuals and columns, the coefficients of the
        sine functions in each component, and the squared norm of each component.
        """
        about, phi, noise = self.about, self.model.phi, self.model.noise
        waves = about.waves
        if not phi.size:
            same = np.sqrt(noise) * np.eye(waves.size.size)
            return waves.sines.T @ both, same, waves.size / noise
        # Whitening by an autoregression turns a sine into a sum of a sine and a cosine.
        lags = np.arange(phi.size + 1)[:, None] * waves.phase
        lead = np.sqrt(waves.size / noise)
        c, s = (lead * ([1.0, *-phi] @ f(lags)) for f in (np.cos, np.sin))
        first = [np.arange(p.start, p.stop)[: phi.size] for p in about.parts]
        left_out = np.concatenate(first)  # the random walk is neglected in the first rows
        sines, cosines = waves.sines[left_out], waves.cosines[left_out]
        ss, sc, cc = (
            whole - one.T @ other
            for whole, one, other in (
                (waves.ss, sines, sines),
                (waves.sc, sines, cosines),
                (waves.cc, cosines, cosines),
            )
        )
        cross = c[:, None] * sc * s
        gram = c[:, None] * ss * c - cross - cross.T + s[:, None] * cc * s
        squares, turn = np.linalg.eigh(gram)
        squares = np.maximum(squares, 1e-14 * squares[-1])
        turn = turn / np.sqrt(squares)
        inside = both.copy()
        inside[left_out] = 0.0
        seen = c[:, None] * (waves.sines.T @ inside) - s[:, None] * (waves.cosines.T @ inside)
        return turn.T @ seen, np.sqrt(waves.size)[:, None] * turn, squares


@dataclasses.dataclass(frozen=True)
class _Waves:
    """The slowest components of a random walk that begins at 0; each component is a sine.

    `sines`: components scaled to norm 1; `cosines`: cosines of the same phases, divided by the same
    norms; `phase` [rad]: phase change from row to row; `size`: variance of each component for steps
    of variance 1; `ss`, `sc`, `cc`: matrices sines'sines, sines'cosines, cosines'cosines.
    """

    sines: Float[np.ndarray, "n w"]
    cosines: Float[np.ndarray, "n w"]
    phase: Float[np.ndarray, " w"]
    size: Float[np.ndarray, " w"]
    ss: Float[np.ndarray, "w w"]
    sc: Float[np.ndarray, "w w"]
    cc: Float[np.ndarray, "w w"]


def slowest_waves(n: int) -> Float[np.ndarray, "n w"]:
    """Return the slowest components of a random walk with `n` steps of variance 1, each component
    multiplied by its standard deviation.
    """
    waves = _walk_waves(n)
    return waves.sines * np.sqrt(waves.size)


@functools.lru_cache(maxsize=8)
def _walk_waves(n: int) -> _Waves:
    # 32 components are sufficient: each faster one has less than 1e-3 of the walk's variance.
    phase = (2.0 * np.arange(1, min(32, n // 4) + 1) - 1.0) * np.pi / (2.0 * n + 1.0)
    s, c = (f(np.arange(1, n + 1)[:, None] * phase) for f in (np.sin, np.cos))
    norm = np.linalg.norm(s, axis=0)
    s, c = s / norm, c / norm
    return _Waves(s, c, phase, 0.25 / np.sin(phase / 2.0) ** 2, s.T @ s, s.T @ c, c.T @ c)


# [1] addition to the diagonal of an information matrix; makes the matrix invertible and is small
# compared with its diagonal entries, which are 1 for white residuals of variance 1
_LEAST_INFORMATION = 1e-9
# REML ends after `_ROUNDS` iterations, or when the covariance changes by less than `_SETTLED` [1].
_ROUNDS, _SETTLED = 12, 3e-3
_IN_TIME = ("s", "record", "Record for longer, or repeat the run and use `Jackknife`")
_IN_ROWS = ("rows", "sweep", "Measure the sweep again with its speeds in another order")
# Limits of (length of the record / correlation time) and of the degrees of freedom. Standard errors
# are rough below a limit in `_ROUGH`, and useless below a limit in `_USELESS`.
_ROUGH, _USELESS = (10.0, 4.0), (3.0, 2.0)


@pytree_dataclass
class Autoregression(LinearNoiseModel):
    """Model of autoregressive residuals: r[i] = phi[1] r[i-1] + ... + phi[m] r[i-m] + e[i].

    There is one autoregression for each record and output. Schwarz's criterion selects its order,
    at most 20. If the estimates depend on low frequencies only, successive residuals are averaged
    first. The fit absorbs a part of the residuals, so their correlation seems shorter; restricted
    maximum likelihood corrects this effect. The covariance of the estimates is W' S W with W = J
    inv(J'J), the covariance S of the noise and the Jacobian J of the residuals. If residuals with a
    larger weight in W are larger than average, the covariance is increased accordingly. The degrees
    of freedom follow from the accuracy of the coefficients phi.

    In addition, the zero of the sensor may drift by a random walk. The random walk is included if
    Akaike's criterion of the restricted likelihood prefers it (`random_walk_noise`). All other
    errors must be stationary, with a correlation time of at most a tenth of the record.

    **Source:** restricted likelihood: D. A. Harville, Journal of the American Statistical
    Association 72 (1977); for autocorrelated errors W.-K. Cheang, G. C. Reinsel, ibid. 95 (2000);
    degrees of freedom: M. G. Kenward, J. H. Roger, Biometrics 53 (1997); the walk: A. C. Harvey,
    *Forecasting, Structural Time Series Models and the Kalman Filter* (1989), chapter 2.

    **Example:** `FitResult.uncertainty` compares all noise models.
    """

    def check(self, problem: Problem) -> None:
        if has_windows(problem):
            raise ValueError(
                "`Autoregression` follows the residuals of one run, and each window is a run of its"
                " own. Take `Clustered()`."
            )

    def estimate(self, linear: Linearization) -> CovarianceEstimate:
        root, unseen = linear.axes
        columns = linear.jacobian @ root
        series = [Series(linear.residuals, columns, root, *one) for one in linear.series]
        # Independent rows have the covariance HC2 (MacKinnon, White, J. of Econometrics 29, 1985).
        single = linear.counted.copy()
        for _, _, stretches in linear.series:
            single[np.concatenate(stretches)] = False
        seen, r = linear.jacobian[single] @ root, linear.residuals[single]
        leverage = np.minimum(np.sum(seen**2, axis=1), 0.99)
        scores = seen * (r / np.sqrt(1.0 - leverage))[:, None]
        square = max(float(np.mean(r**2)) if r.size else 1.0, 1e-200)
        prior = linear.priors @ root
        # If a parameter affects only the first samples, the autoregression gives no information on
        # this parameter. A small value is added, so that the information matrix can be inverted.
        least = _LEAST_INFORMATION * np.eye(root.shape[1])
        known = (prior.T @ prior + least) / (linear.noise**2 or 1.0) + seen.T @ seen / square
        walks = _fit_all(series, known, wander=not linear.rows)
        parts = [
            *(one.covariances() for one in series),
            (scores.T @ scores, [], float(max(r.size, 1))),
        ]
        parts += [w.covariances(one) for one, w in zip(series, walks, strict=True) if w]
        size = sum((v for v, _, _ in parts), np.zeros((root.shape[1],) * 2))
        prior = prior @ root.T * linear.noise
        # Increase an error if residuals with more effect on the estimate are larger than average.
        of_size = of_mean = np.zeros(len(root))
        for one in series:
            w, square = one.pull**2, one.residuals**2
            of_size, of_mean = of_size + w @ square, of_mean + square.mean() * w.sum(axis=1)
        ratio = np.divide(of_size, of_mean, out=np.ones_like(of_mean), where=of_mean > 0)
        factors = np.sqrt(np.maximum(ratio, 1.0))
        times = _record_over_correlation_time(series)
        covariance = (root @ size @ root.T) * np.outer(factors, factors)
        covariance = covariance + prior.T @ prior + linear.noise**2 * unseen.T @ unseen
        dof = Memoized(functools.partial(_degrees_of_freedom, root, size, parts, prior, times))
        is_coloured = any(one.model.phi.size for one in series) or any(walks)
        notices = _notices(linear, series, dof, walks)
        unit, order = ("rows", f", {linear.order}") if linear.rows else ("s", "")
        says = f"uncorrelated residuals{order}" if series else "independent rows"
        if any(one.model.phi.size for one in series):
            worst = min(series, key=lambda one: one.length / one.memory)
            says = (
                f"residuals correlated over {worst.memory:.2g} {unit} of {worst.length:.3g} {unit}"
                f"{order} (autoregression of order {worst.model.phi.size})"
            )
        ends = [np.sqrt(w.step * one.rows) for one, w in zip(series, walks, strict=True) if w]
        if ends:
            most = max(ends) / (linear.noise or 1.0)
            drift = f"(random walk, {most:.2g} times the noise at the end)"
            says = f"{says} and a drifting offset {drift}"
        return CovarianceEstimate(covariance, dof, says, notices, None, is_coloured)


def _degrees_of_freedom(
    root: Float[np.ndarray, "p s"],
    size: Float[np.ndarray, "s s"],
    parts: list[tuple[Any, ...]],
    prior: Float[np.ndarray, "k p"],
    times: float,
    directions: Float[np.ndarray, "m p"],
) -> Float[np.ndarray, " m"]:
    """Return the degrees of freedom for `directions`, linear combinations (m, p) of the estimates.

    `parts`: results of `covariances` of all series and random walks; `size`: the sum of the
    covariances in `parts`. `times`: length of the records divided by the correlation time.
    """
    along = directions @ root
    form = lambda v: np.einsum("mi,ij,mj->m", along, v, along)  # noqa: E731
    variance, uncertainty = form(size), np.zeros(len(along))
    for v, slopes, rows in parts:
        uncertainty += form(v) ** 2 * 2.0 / rows
        uncertainty += sum((form(slope) ** 2 for slope in slopes), np.zeros(len(along)))
    of_priors = np.sum((directions @ prior.T) ** 2, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        nu = np.maximum(2.0 * variance**2 / uncertainty - 1.0, _USELESS[1])
        nu = np.where(times < _USELESS[0], _USELESS[1], nu)
        nu *= ((variance + of_priors) / variance) ** 2
    return np.where(np.isfinite(nu), np.minimum(nu, 1e9), 1e9)


def _fit_all(series: list[Series], information: np.ndarray, *, wander: bool) -> list[Walk | None]:
    """Fit all autoregressions by restricted likelihood. Return the random walk of each series, or
    None for a series without a random walk. If `wander` is False, random walks are not tried.
    `information`: information matrix of the estimates from priors and from rows without a series.
    """
    columns = len(information)
    taken, moved = np.zeros((columns, columns)), np.zeros(columns)
    for _ in range(_ROUNDS):
        whitened = [one.fit_noise(moved, taken) for one in series]
        each = [one[1:, 1:] for one in whitened]
        whole = sum(each, information)
        pull = sum((one[1:, 0] for one in whitened), np.zeros(columns))
        new = np.linalg.inv(whole)
        moved, change = new @ pull, np.linalg.norm(new - taken)
        taken = new
        if change < _SETTLED * np.linalg.norm(new):
            break
    if not wander:
        return [None] * len(series)
    return [
        random_walk_noise(one, moved, taken, whole - mine)
        for one, mine in zip(series, each, strict=True)
    ]


def random_walks(
    residuals: Float[np.ndarray, " n"],
    jacobian: Float[np.ndarray, "n p"],
    channels: list[list[np.ndarray]],
) -> list[Walk | None]:
    """Return the random walk of each channel (one step per residual), or None for a channel without
    a walk. `channels`: indices of each channel's residuals, in sections without a gap.
    """
    root, _ = inverse_root(jacobian, jacobian[:0])
    columns = jacobian @ root
    series = [Series(residuals, columns, root, 0, 1.0, channel) for channel in channels]
    walks = _fit_all(series, _LEAST_INFORMATION * np.eye(root.shape[1]), wander=True)
    return [
        walk and dataclasses.replace(walk, step=walk.step / one.each)
        for one, walk in zip(series, walks, strict=True)
    ]


def _record_over_correlation_time(series: list[Series]) -> float:
    """Return the sum, over the records, of (length of a record)/(its longest correlation time)."""
    least: dict[int, float] = {}
    for one in series:
        least[one.record] = min(least.get(one.record, np.inf), one.length / one.memory)
    return sum(least.values()) if least else np.inf


def _notices(
    linear: Linearization,
    series: list[Series],
    dof: Callable[[np.ndarray], np.ndarray],
    walks: list[Walk | None],
) -> tuple[Notice, ...]:
    """Return notices if the record is too short for the correlation time of its residuals."""
    if not series:
        return ()
    names, times = linear.found.names, _record_over_correlation_time(series)
    freedom = np.where(linear.acts, dof(np.eye(len(names))), np.inf)
    worst = min(series, key=lambda one: one.length / one.memory)
    unit, of_what, remedy = _IN_ROWS if linear.rows else _IN_TIME
    numbers = {"memory": worst.memory, "length": worst.length, "times": times}
    numbers |= {"unit": unit, "of": of_what, "remedy": remedy}
    nothing = freedom <= _USELESS[1]
    rough = ~nothing & linear.acts & ((times < _ROUGH[0]) | (freedom < _ROUGH[1]))

    def with_names(which: np.ndarray) -> dict[str, float | str]:
        return {**numbers, "names": join_names([names[i] for i in np.flatnonzero(which)])}

    gains = [walk.gain for walk in walks if walk]
    if gains and times >= _ROUGH[0]:  # Only the size of the random walk is uncertain.
        little = nothing | rough
        # In 1 of 20 records of noise without a random walk, the gain is larger than 4.
        is_said = max(gains) >= 4.0 and little.any()
        return (Notice("zero-wanders", "", with_names(little)),) if is_said else ()
    out = [Notice("memory-as-long", "", with_names(nothing))] if nothing.any() else []
    return (*out, *([Notice("memory-long", "", with_names(rough))] if rough.any() else []))
