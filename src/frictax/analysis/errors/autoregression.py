"""Errors where residuals of one run remember those before them."""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from frictax.fitting.problem.problem import Problem
from frictax.fitting.result.identifiability import listed
from frictax.fitting.result.spread import recalled
from frictax.notice import Notice
from frictax.pytree import pytree_dataclass

from .clusters import has_windows
from .linearized import AbstractLinearErrors, Linearized, LinearSpread

_ORDER = 20  # at most
_ENERGY = 0.98  # of what a residual does to the estimates lies below the frequency that is kept
_MOST_ROWS, _FEWEST_ROWS = 20_000, 300  # of a series, after averaging
_FLOOR = 1e-4  # of white noise, which tames residuals that are limited to a band
_UNTOLD = 1e-9  # of what white residuals would tell: what is taken as known of any direction
_ROUNDS, _SETTLED = 12, 3e-3
_PADDED = 8  # times, so that a resonance is not missed between two frequencies
_IN_TIME = ("s", "record", "Record longer, or repeat the run and take Jackknife")
_IN_ROWS = ("rows", "sweep", "Measure the sweep again, its speeds in another order")
_ROUGH, _WORTHLESS = (10.0, 4.0), (3.0, 2.0)  # memories in a record, and degrees of freedom


@pytree_dataclass
class Autoregression(AbstractLinearErrors):
    """Residuals of one run as noise with a memory: each a sum of those before it, times
    coefficients, and of white noise, r[i] = phi[1] r[i-1] + ... + phi[m] r[i-m] + e[i].

    One autoregression for each record and output, of an order up to 20 that Schwarz's criterion
    chooses, over samples averaged to what the estimates see; fitted by restricted maximum
    likelihood, for what a fit of parameters took from the residuals looks like a short memory.
    covariance = W' S W, with S the covariance of that noise and W = J inv(J'J); where the size of
    residuals goes with their weight in W it is larger by as much. Student's t with degrees of
    freedom from how well the coefficients are known.

    Right for an error that is alike all along the record, and lasts a tenth of it or less.

    **Source:** restricted likelihood: D. A. Harville, Journal of the American Statistical
    Association 72 (1977); for errors with a memory W.-K. Cheang, G. C. Reinsel, ibid. 95 (2000);
    degrees of freedom: M. G. Kenward, J. H. Roger, Biometrics 53 (1997).

    **Example:** all accounts side by side, at `FitResult.uncertainty`.
    """

    def check(self, problem: Problem) -> None:
        if has_windows(problem):
            raise ValueError(
                "`Autoregression` follows the residuals of a run, and windows begin anew. Take"
                " `Clustered()`."
            )

    def of(self, linear: Linearized) -> LinearSpread:
        root, unseen = linear.axes
        series = [_Series(linear, root, *one) for one in linear.series]
        alone = _independent_rows(linear, root)
        prior = linear.known @ root
        # A number may be told by samples alone that have no lags.
        least = _UNTOLD * np.eye(root.shape[1])
        _fit(series, (prior.T @ prior + least) / (linear.noise**2 or 1.0) + alone.information)
        parts = [*(one.covariances() for one in series), (alone.covariance, [], alone.rows)]
        size = sum((v for v, _, _ in parts), np.zeros((root.shape[1],) * 2))
        prior = prior @ root.T * linear.noise
        more = _swelling(series, len(root))
        unknown = linear.noise**2 * unseen.T @ unseen
        times = _memories(series)
        covariance = (root @ size @ root.T) * np.outer(more, more) + prior.T @ prior + unknown

        @recalled
        def dof(directions: np.ndarray) -> np.ndarray:
            of = directions @ root
            form = lambda v: np.einsum("mi,ij,mj->m", of, v, of)  # noqa: E731
            mine, spread = form(size), np.zeros(len(of))
            for v, slopes, rows in parts:
                spread += form(v) ** 2 * 2.0 / rows
                spread += sum((form(slope) ** 2 for slope in slopes), np.zeros(len(of)))
            said = np.sum((directions @ prior.T) ** 2, axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                nu = np.maximum(2.0 * mine**2 / spread - 1.0, _WORTHLESS[1])
                nu = np.where(times < _WORTHLESS[0], _WORTHLESS[1], nu)
                nu *= ((mine + said) / mine) ** 2
            return np.where(np.isfinite(nu), np.minimum(nu, 1e9), 1e9)

        remembers = any(one.phi.size for one in series)
        doubts = _doubts(linear, series, dof)
        return LinearSpread(covariance, dof, _says(linear, series), doubts, remembers)


class _Series:
    """The residuals of one output of one record, averaged to what the estimates see, and the
    autoregression that fits them.

    Columns are along `root`, where white residuals of size 1 would give errors of size 1.
    """

    def __init__(
        self,
        linear: Linearized,
        root: np.ndarray,
        record: int,
        step: float,
        stretches: list[np.ndarray],
    ) -> None:
        rows = np.concatenate(stretches)
        self.residuals, seen = linear.residuals[rows], linear.jacobian[rows] @ root
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
                self.gram += _lagged(both, most)
                self.count += len(y) - most
        self.phi, self.noise, self.told = np.zeros(0), 0.0, np.zeros((0, 0))

    def fit(self, moved: np.ndarray, taken: np.ndarray) -> Float[np.ndarray, "c c"]:
        """Fit the autoregression to the residuals of estimates `moved` from these, with `taken`
        their covariance put back. Gives the Gram matrix of residual and columns that it whitens.
        """
        v = np.concatenate([[1.0], -moved])
        weight = np.outer(v, v)
        weight[1:, 1:] += taken
        g = np.tensordot(self.gram, weight)
        g += (_FLOOR * np.trace(g) / len(g) + 1e-200) * np.eye(len(g))
        low = np.linalg.cholesky(g[1:, 1:])  # one factor holds the fits of all orders
        told = np.linalg.solve(low, g[1:, 0])
        rest = np.maximum(g[0, 0] - np.concatenate([[0.0], np.cumsum(told**2)]), 1e-200)
        orders, n = np.arange(len(rest)), max(self.count, 1)
        q = int(np.argmin(n * np.log(rest / n) + np.log(n) * (orders + 1)))
        self.phi = np.linalg.solve(low[:q, :q].T, told[:q])
        self.noise = float(rest[q] / max(n - q, 1))
        self.told = g[1 : q + 1, 1 : q + 1]  # of the coefficients
        a = np.concatenate([[1.0], -self.phi])
        whitened = np.einsum("i,j,ijab->ab", a, a, self.gram[: q + 1, : q + 1])
        # The first samples have no lags: they count as of noise alone, of its whole size.
        return whitened / self.noise + self.edge / max(g[0, 0] / n, 1e-200)

    def covariances(self) -> tuple[np.ndarray, list[np.ndarray], float]:
        """What the series does to the estimates: the covariance; how that changes by one standard
        deviation of the coefficients along each of their axes; and how many rows tell its size.
        """
        rows = float(max(self.rows - len(self.phi) - self.columns, 1))
        if not self.phi.size:  # white noise has no spectrum to weigh
            size = sum((x.T @ x for _, x in self.parts), np.zeros((self.columns,) * 2))
            return self.noise * self.each**2 * size, [], rows
        longest = max((len(y) for y, _ in self.parts), default=1)
        size = _PADDED << (longest - 1).bit_length()
        seen = [np.fft.rfft(x * self.each, size, axis=0) for _, x in self.parts]
        weight = np.full(size // 2 + 1, 2.0 / size)
        weight[[0, -1]] /= 2.0

        def at(phi: np.ndarray) -> np.ndarray:
            shape = np.abs(np.fft.rfft(np.concatenate([[1.0], -phi]), size)) ** 2
            w = (self.noise * weight / np.maximum(shape, 1e-10))[:, None]
            return sum((np.real(s.conj().T @ (w * s)) for s in seen), np.zeros((self.columns,) * 2))

        values, vectors = np.linalg.eigh(self.noise * np.linalg.inv(self.told))
        slopes = []
        for value, vector in zip(values, vectors.T, strict=True):
            step = 0.05 * np.sqrt(max(value, 0.0)) * vector
            slopes.append((at(self.phi + step) - at(self.phi - step)) / 0.1)
        return at(self.phi), slopes, rows

    @functools.cached_property
    def memory(self) -> float:
        """How long the residuals remember, to 1/e, at most the length of the record [s]; once they
        are fitted.
        """
        roots = np.abs(np.roots(np.concatenate([[1.0], -self.phi])))
        time = self.step / -np.log(np.clip(np.max(roots, initial=0.0), 1e-9, 1 - 1e-9))
        return min(float(time), self.length)


def _lagged(z: Float[np.ndarray, "n w"], most: int) -> Float[np.ndarray, "l l w w"]:
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


@dataclasses.dataclass(frozen=True, eq=False)
class _Independent:
    """What rows that do not depend on each other tell of the estimates."""

    information: Float[np.ndarray, "c c"]
    covariance: Float[np.ndarray, "c c"]
    rows: float


def _independent_rows(linear: Linearized, root: np.ndarray) -> _Independent:
    """Of the rows of sweeps: HC2 of MacKinnon and White, Journal of Econometrics 29 (1985)."""
    mine = linear.counted.copy()
    for _, _, stretches in linear.series:
        mine[np.concatenate(stretches)] = False
    seen, r = linear.jacobian[mine] @ root, linear.residuals[mine]
    share = np.minimum(np.sum(seen**2, axis=1), 0.99)
    scores = seen * (r / np.sqrt(1.0 - share))[:, None]
    size = max(float(np.mean(r**2)) if r.size else 1.0, 1e-200)
    return _Independent(seen.T @ seen / size, scores.T @ scores, float(max(r.size, 1)))


def _fit(series: list[_Series], information: np.ndarray) -> None:
    """Fit all autoregressions by restricted likelihood: what the estimates took from the residuals
    is put back, until their covariance settles. `information`: what else tells the estimates.
    """
    columns = len(information)
    taken, moved = np.zeros((columns, columns)), np.zeros(columns)
    for _ in range(_ROUNDS):
        told, pull = information, np.zeros(columns)
        for one in series:
            whitened = one.fit(moved, taken)
            told, pull = told + whitened[1:, 1:], pull + whitened[1:, 0]
        new = np.linalg.inv(told)
        moved, change = new @ pull, np.linalg.norm(new - taken)
        taken = new
        if change < _SETTLED * np.linalg.norm(new):
            break


def _highest_frequency(seen: Float[np.ndarray, "p n"]) -> float:
    """Below which so much of the energy of every row lies, in cycles a sample."""
    norms = np.linalg.norm(seen, axis=1)
    power = np.abs(np.fft.rfft(seen[norms > 0] / norms[norms > 0, None])) ** 2
    if not power.size:
        return 0.5
    share = np.cumsum(power, axis=1) / power.sum(axis=1, keepdims=True)
    return float((np.max(np.argmax(share >= _ENERGY, axis=1)) + 1) / seen.shape[1])


def _swelling(series: list[_Series], count: int) -> Float[np.ndarray, " p"]:
    """How many times larger the errors of the estimates, so many, are for residuals that are large
    where they count.
    """
    of_size = of_mean = np.zeros(count)
    for one in series:
        w, square = one.pull**2, one.residuals**2
        of_size, of_mean = of_size + w @ square, of_mean + square.mean() * w.sum(axis=1)
    ratio = np.divide(of_size, of_mean, out=np.ones_like(of_mean), where=of_mean > 0)
    return np.sqrt(np.maximum(ratio, 1.0))


def _memories(series: list[_Series]) -> float:
    """How many times as long as they remember the records are, in all."""
    least: dict[int, float] = {}
    for one in series:
        least[one.record] = min(least.get(one.record, np.inf), one.length / one.memory)
    return sum(least.values()) if least else np.inf


def _says(linear: Linearized, series: list[_Series]) -> str:
    if not series:
        return "rows that do not depend on each other"
    worst = min(series, key=lambda one: one.length / one.memory)
    unit, order = ("rows", f", {linear.order}") if linear.rows else ("s", "")
    if not any(one.phi.size for one in series):
        return f"residuals that remember nothing{order}"
    return (
        f"residuals remember {worst.memory:.2g} {unit} of {worst.length:.3g} {unit}{order}"
        f" (autoregression of order {worst.phi.size})"
    )


def _doubts(
    linear: Linearized, series: list[_Series], dof: Callable[[np.ndarray], np.ndarray]
) -> tuple[Notice, ...]:
    """Notices where the record is too short for what its residuals remember."""
    if not series:
        return ()
    names, times = linear.found.names, _memories(series)
    freedom = np.where(linear.told, dof(np.eye(len(names))), np.inf)
    worst = min(series, key=lambda one: one.length / one.memory)
    unit, of_what, remedy = _IN_ROWS if linear.rows else _IN_TIME
    numbers = {"memory": worst.memory, "length": worst.length, "times": times}
    numbers |= {"unit": unit, "of": of_what, "remedy": remedy}
    nothing = freedom <= _WORTHLESS[1]
    rough = ~nothing & linear.told & ((times < _ROUGH[0]) | (freedom < _ROUGH[1]))

    def of(which: np.ndarray) -> dict[str, float | str]:
        return {**numbers, "names": listed([names[i] for i in np.flatnonzero(which)])}

    out = [Notice("memory-as-long", "", of(nothing))] if nothing.any() else []
    return (*out, *([Notice("memory-long", "", of(rough))] if rough.any() else []))
