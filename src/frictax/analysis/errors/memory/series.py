"""The residuals of one output of one record, and the noise that they are taken for."""

import dataclasses
import functools

import numpy as np
from jaxtyping import Float

_ORDER = 20  # at most
_ENERGY = 0.98  # of what a residual does to the estimates lies below the frequency that is kept
_MOST_ROWS, _FEWEST_ROWS = 20_000, 300  # of a series, after averaging
_FLOOR = 1e-4  # of white noise, which tames residuals that are limited to a band
_PADDED = 8  # times, so that a resonance is not missed between two frequencies


@dataclasses.dataclass(frozen=True)
class Model:
    """Noise whose samples are those before them times `phi`, and what is new in each, of variance
    `noise`; `told`: what the data tell of `phi`, in units of `noise`.
    """

    phi: Float[np.ndarray, " m"]
    noise: float
    told: Float[np.ndarray, "m m"]

    @functools.cached_property
    def rows(self) -> float:
        """After how many of them little is left of the past (1/e)."""
        roots = np.abs(np.roots(np.concatenate([[1.0], -self.phi])))
        return float(1.0 / -np.log(np.clip(np.max(roots, initial=0.0), 1e-9, 1 - 1e-9)))


def chosen(g: Float[np.ndarray, "l l"], count: int, floor: float = _FLOOR) -> Model:
    """The autoregression of the order that Schwarz's criterion prefers, from the sums `g` of
    products of so many samples at two lags each; white noise of `floor` times them is put in.
    """
    g = g + (floor * np.trace(g) / len(g) + 1e-200) * np.eye(len(g))
    low = np.linalg.cholesky(g[1:, 1:])  # one factor holds the fits of all orders
    told = np.linalg.solve(low, g[1:, 0])
    rest = np.maximum(g[0, 0] - np.concatenate([[0.0], np.cumsum(told**2)]), 1e-200)
    orders, n = np.arange(len(rest)), max(count, 1)
    q = int(np.argmin(n * np.log(rest / n) + np.log(n) * (orders + 1)))
    phi = np.linalg.solve(low[:q, :q].T, told[:q])
    return Model(phi, float(rest[q] / max(n - q, 1)), g[1 : q + 1, 1 : q + 1])


class Series:
    """The residuals of one output of one record, averaged to what the estimates see, and the
    autoregression that fits them.

    Columns are along `root`, where white residuals of size 1 would give errors of size 1;
    `stretches`: the numbers of the rows, a stretch of neighbours each, a `step` of time apart.
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
        self.pull = root @ seen.T  # of each residual at the estimates
        size = max(rows.size // _FEWEST_ROWS, 1)
        wide = _highest_frequency(self.pull)
        each = max(int(np.clip(1.0 / (6.0 * wide), 1, size)), -(-rows.size // _MOST_ROWS))
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
        most = max(min(_ORDER, self.rows // 8), 1)
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
                self.gram += lagged(both, most)
                self.count += len(y) - most
        self.model = Model(np.zeros(0), 0.0, np.zeros((0, 0)))

    def fit(
        self, moved: np.ndarray, taken: np.ndarray, floor: float = _FLOOR
    ) -> Float[np.ndarray, "c c"]:
        """Fit the autoregression to the residuals of estimates `moved` from these, with `taken`
        their covariance put back. Gives the Gram matrix of residual and columns that it whitens.
        """
        v = np.concatenate([[1.0], -moved])
        weight = np.outer(v, v)
        weight[1:, 1:] += taken
        g = np.tensordot(self.gram, weight)
        self.model = chosen(g, self.count, floor)
        phi, q = self.model.phi, self.model.phi.size
        a = np.concatenate([[1.0], -phi])
        whitened = np.einsum("i,j,ijab->ab", a, a, self.gram[: q + 1, : q + 1])
        # The first samples have no lags: they count as of noise alone, of its whole size.
        whole = (1.0 + floor) * g[0, 0] / max(self.count, 1)
        return whitened / self.model.noise + self.edge / max(whole, 1e-200)

    def covariances(self) -> tuple[np.ndarray, list[np.ndarray], float]:
        """What the series does to the estimates: the covariance; how that changes by one standard
        deviation of the coefficients along each of their axes; and how many rows tell its size.
        """
        phi, noise = self.model.phi, self.model.noise
        rows = float(max(self.rows - len(phi) - self.columns, 1))
        if not phi.size:  # white noise has no spectrum to weigh
            size = sum((x.T @ x for _, x in self.parts), np.zeros((self.columns,) * 2))
            return noise * self.each**2 * size, [], rows
        longest = max((len(y) for y, _ in self.parts), default=1)
        size = _PADDED << (longest - 1).bit_length()
        weight = np.full(size // 2 + 1, 2.0 * noise / size)
        weight[[0, -1]] /= 2.0
        columns = (np.ascontiguousarray(x.T) * self.each for _, x in self.parts)
        seen = [np.fft.rfft(x, size).view(float) for x in columns]

        values, vectors = np.linalg.eigh(noise * np.linalg.inv(self.model.told))
        steps = (0.05 * np.sqrt(np.maximum(values, 0.0)) * vectors).T
        phis = np.concatenate([phi[None], phi + steps, phi - steps])
        shapes = np.abs(np.fft.rfft(np.column_stack([np.ones(len(phis)), -phis]), size)) ** 2
        sums = np.zeros((len(phis), self.columns, self.columns))
        for out, w in zip(sums, np.repeat(weight / np.maximum(shapes, 1e-10), 2, 1), strict=True):
            for s in seen:  # real and imaginary parts in turns
                out += (s * w) @ s.T
        ups, downs = np.split(sums[1:], 2)
        return sums[0], list((ups - downs) / 0.1), rows

    @property
    def memory(self) -> float:
        """How long the residuals remember, to 1/e, at most the length of the record [s]."""
        return min(self.step * self.model.rows, self.length)


def lagged(z: Float[np.ndarray, "n w"], most: int) -> Float[np.ndarray, "l l w w"]:
    """The sums over t >= `most` of z[t - i, a] z[t - j, b], at [i, j, a, b], up to lag `most`."""
    count, width = len(z) - most, z.shape[1]
    back = np.lib.stride_tricks.sliding_window_view(z, (most + 1, width)).reshape(count, -1)
    out = np.empty((most + 1, most + 1, width, width))
    out[0] = (z[most:].T @ back).reshape(width, -1, width)[:, ::-1].transpose(1, 0, 2)
    out[1:, 0] = out[0, 1:].transpose(0, 2, 1)
    # those of one lag more begin a sample earlier, and end one earlier
    begins, ends = z[most - 1 :: -1], z[: -most - 1 : -1]
    more = np.einsum("ia,jb->ijab", begins, begins) - np.einsum("ia,jb->ijab", ends, ends)
    for i in range(most):
        np.add(out[i, :-1], more[i], out=out[i + 1, 1:])
    return out


def _highest_frequency(seen: Float[np.ndarray, "p n"]) -> float:
    """Below which so much of the energy of every row lies, in cycles a sample."""
    norms = np.linalg.norm(seen, axis=1)
    power = np.abs(np.fft.rfft(seen[norms > 0] / norms[norms > 0, None])) ** 2
    if not power.size:
        return 0.5
    share = np.cumsum(power, axis=1) / power.sum(axis=1, keepdims=True)
    return float((np.max(np.argmax(share >= _ENERGY, axis=1)) + 1) / seen.shape[1])
