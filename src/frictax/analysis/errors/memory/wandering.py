"""A sensor whose zero wanders, so little that white noise hides each of its steps."""

import dataclasses
import functools

import numpy as np
from jaxtyping import Float

from .series import Model, Series, chosen, lagged

_WAVES = 32  # of a walk, the slowest: the others are small
# Of a walk at the end, in units of the residuals: much larger ones would show in these.
SIZES = np.geomspace(0.02, 5.0, 24)
_FEWEST = 16  # rows
_ROUNDS = 3
# Where less than this share of the squares is new in each row, white noise of that much is put in
# instead of the usual: what tames smooth residuals must not be taken for a walk.
_SMOOTH, _FLOOR = 0.01, 1e-6
_COSTS = 1.0  # by Akaike's criterion: a variance that may be 0 counts as half a number


@dataclasses.dataclass(frozen=True)
class Walk:
    """The variance of one `step` of a random walk beside noise, from row to row of a series, and
    the standard deviation of what is known of it, both in squares of weighted residuals; `gain`: by
    how much -2 log likelihood is better with it.
    """

    step: float
    spread: float
    gain: float = np.inf

    def covariances(self, series: Series) -> tuple[np.ndarray, list[np.ndarray], float]:
        """What the walk does to the estimates, as of `Series`."""
        columns = np.concatenate([x for _, x in series.parts]) * series.each
        steps = np.cumsum(columns[::-1], axis=0)  # each moves all samples after it
        size = steps.T @ steps
        return self.step * size, [self.spread * size], np.inf


def wandering(
    series: Series,
    moved: Float[np.ndarray, " c"],
    taken: Float[np.ndarray, "c c"],
    others: Float[np.ndarray, "c c"],
) -> Walk | None:
    """The walk beside the noise of `series`, which is then fitted anew, or `None` where noise alone
    explains its residuals as well.

    A walk whose steps are small has the spectrum of white noise but for the slowest waves. These
    are few, so that an autoregression of many numbers is no better to Schwarz's criterion than
    none, and yet they are what slow numbers (a constant force, a start) are read from. Restricted
    likelihood over the sizes of the walk, beside white noise and in turns beside the autoregression
    of what it leaves, against the likelihood of the autoregression alone.

    **Arguments:** `moved`, `taken`: the estimates and their covariance as in `Series.fit`;
    `others`: what all that is not this series tells of the estimates.

    **Source:** local level: A. C. Harvey, *Forecasting, Structural Time Series Models and the
    Kalman Filter* (1989), chapter 2; waves of a walk: the Karhunen-Loève expansion.
    """
    if series.rows < _FEWEST:
        return None
    usual = series.model
    about = _About(series, moved, others)
    best = _Beside(about, about.white)
    alone = best.alone
    if usual.phi.size:
        if usual.noise < _SMOOTH * about.square:
            series.fit(moved, taken, _FLOOR)
        same = _Beside(about, series.model)
        series.model, alone = usual, same.alone
        best = min(best, same, key=lambda one: one.score)
    if best.score > alone - _COSTS:
        return None
    for _ in range(_ROUNDS):
        other = _Beside(about, about.of(best.rest))
        if other.score >= best.score:
            break
        best = other
    series.model = dataclasses.replace(best.model, noise=best.model.noise * best.noise)
    return best.walk(alone)


class _About:
    """A series about the estimates `moved`, and the waves of a walk on it."""

    def __init__(self, series: Series, moved: np.ndarray, others: np.ndarray) -> None:
        y = np.concatenate([y for y, _ in series.parts])
        x = np.concatenate([x for _, x in series.parts])
        self.both = np.column_stack([y - x @ moved, x])
        self.others, self.most = others, len(series.gram) - 1
        ends = np.cumsum([0, *(len(y) for y, _ in series.parts)])
        self.parts = [slice(i, j) for i, j in zip(ends[:-1], ends[1:], strict=True)]
        self.waves = _waves(len(y))
        self.square = max(float(np.mean(self.both[:, 0] ** 2)), 1e-200)
        self.white = Model(np.zeros(0), self.square, np.zeros((0, 0)))
        self.steps = self.square / len(y) * SIZES**2

    def of(self, rest: Float[np.ndarray, " n"]) -> Model:
        """The autoregression of `rest`; none where no stretch is long enough."""
        long = [rest[p] for p in self.parts if p.stop - p.start > self.most + 1]
        if not long:
            return self.white
        sums = sum(lagged(one[:, None], self.most)[..., 0, 0] for one in long)
        return chosen(np.asarray(sums), sum(len(one) - self.most for one in long), _FLOOR)


class _Beside:
    """Restricted likelihood of walks of all sizes beside the noise of a `model`.

    `score`: of the best, -2 log of it, and what its coefficients cost by Schwarz's criterion;
    `alone`: that of the model without a walk; `noise`: how much smaller its noise is.
    """

    def __init__(self, about: _About, model: Model) -> None:
        self.about, self.model, n = about, model, len(about.both)
        both, shape = self._whitened()
        waves, turn, size = self._waves(both)
        y, x, of_y, of_x = both[:, 0], both[:, 1:], waves[:, 0], waves[:, 1:]
        told = about.others + x.T @ x
        self._steps = np.concatenate([[0.0], about.steps])
        ratio = self._steps[:, None] * size
        share = ratio / (1.0 + ratio)  # of each wave that is the walk's
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
        """The best one, beside a score of `alone` without."""
        likely = np.exp(-0.5 * (self._value - self.score))[1:]
        steps = (self._steps * self._rest)[1:]
        mean = likely @ steps / np.sum(likely)
        spread = np.sqrt(likely @ (steps - mean) ** 2 / np.sum(likely))
        return Walk(float(steps[self._k - 1]), float(spread), alone - self.score)

    @property
    def rest(self) -> Float[np.ndarray, " n"]:
        """The series without its estimates and its walk."""
        both, waves = self.about.both, self.about.waves
        return both[:, 0] - both[:, 1:] @ self._moved - waves.sines @ (self._turn @ self._taken)

    def _whitened(self) -> tuple[np.ndarray, float]:
        """Residuals and columns whitened, and the log of the determinant of the noise."""
        about, phi, noise = self.about, self.model.phi, self.model.noise
        if not phi.size:
            return about.both / np.sqrt(noise), len(about.both) * np.log(noise)
        out, shape = np.empty_like(about.both), 0.0
        for part in about.parts:
            mine, q = about.both[part], min(phi.size, part.stop - part.start)
            out[part][:q] = mine[:q] / np.sqrt(about.square)  # they have no lags
            lags = (c * mine[q - i : len(mine) - i] for i, c in enumerate([1.0, *-phi]))
            out[part][q:] = sum(lags) / np.sqrt(noise) if len(mine) > q else 0.0
            shape += q * np.log(about.square) + (len(mine) - q) * np.log(noise)
        return out, float(shape)

    def _waves(self, both: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """How much residuals and columns have of the waves of a walk of steps of variance 1, once
        these are whitened and turned until they are orthogonal; the sines of each; its square.
        """
        about, phi, noise = self.about, self.model.phi, self.model.noise
        waves = about.waves
        if not phi.size:
            same = np.sqrt(noise) * np.eye(waves.size.size)
            return waves.sines.T @ both, same, waves.size / noise
        # of a sine an autoregression makes another, and a cosine
        lags = np.arange(phi.size + 1)[:, None] * waves.phase
        lead = np.sqrt(waves.size / noise)
        c, s = (lead * ([1.0, *-phi] @ f(lags)) for f in (np.cos, np.sin))
        first = [np.arange(p.start, p.stop)[: phi.size] for p in about.parts]
        left_out = np.concatenate(first)  # rows that have no lags, where a walk is small
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
    """The slowest waves of a random walk that begins at 0: `sines` of norm 1, `cosines` a quarter
    of a period ahead, their `phase` from row to row, the `size` of their variances, and products.
    """

    sines: Float[np.ndarray, "n w"]
    cosines: Float[np.ndarray, "n w"]
    phase: Float[np.ndarray, " w"]
    size: Float[np.ndarray, " w"]
    ss: Float[np.ndarray, "w w"]
    sc: Float[np.ndarray, "w w"]
    cc: Float[np.ndarray, "w w"]


def slowest_waves(n: int) -> Float[np.ndarray, "n w"]:
    """The slowest waves of a random walk of so many steps of variance 1, each with its size."""
    waves = _waves(n)
    return waves.sines * np.sqrt(waves.size)


@functools.lru_cache(maxsize=8)
def _waves(n: int) -> _Waves:
    phase = (2.0 * np.arange(1, min(_WAVES, n // 4) + 1) - 1.0) * np.pi / (2.0 * n + 1.0)
    s, c = (f(np.arange(1, n + 1)[:, None] * phase) for f in (np.sin, np.cos))
    norm = np.linalg.norm(s, axis=0)
    s, c = s / norm, c / norm
    return _Waves(s, c, phase, 0.25 / np.sin(phase / 2.0) ** 2, s.T @ s, s.T @ c, c.T @ c)
