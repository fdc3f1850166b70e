"""What an excitation may look like: curves between -1 and 1 by a vector of numbers."""

import abc
import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.parameters import Numbers

Band = tuple[float, float]
Times = Float[np.ndarray, " n"]
Basis = Float[np.ndarray, "n b"]
_REST = 0.05  # of the duration, at either end: where the curve rises from rest and comes to rest


@dataclasses.dataclass(frozen=True)
class AbstractShape(abc.ABC):
    """A family of excitations, each of which begins and ends at rest at 0.

    **Example:** `FourierSeries`.
    """

    @abc.abstractmethod
    def draw(self, t: Times, band: Band, draws: np.random.Generator) -> Float[np.ndarray, " c"]:
        """The numbers of one of them, at random."""

    @abc.abstractmethod
    def basis(self, t: Times, band: Band) -> Basis:
        """What is made once for all of them."""

    @abc.abstractmethod
    def curve(self, basis: Basis, c: Float[Numbers, " c"]) -> Float[Numbers, " n"]:
        """The curve of the numbers `c`; of a range of about 1, and below it where it is bounded.

        In NumPy where these are: compiling takes longer than many a curve.
        """

    def resized(self, c: Float[np.ndarray, " c"], factor: float) -> Float[np.ndarray, " c"]:
        """The numbers of a curve that is so many times as large."""
        return factor * c

    @property
    def bounded(self) -> bool:
        """Whether the curve stays between -1 and 1 by itself."""
        return False


@dataclasses.dataclass(frozen=True)
class FourierSeries(AbstractShape):
    """Sines and cosines of all multiples of 1/duration within the band, each with an amplitude of
    its own, the usual excitation of robots.

    **Source:** J. Swevers, C. Ganseman, D. B. Tükel, J. De Schutter, H. Van Brussel, IEEE
    Transactions on Robotics and Automation 13(5), 1997.

    >>> import frictax as fx, numpy as np
    >>> fx.FourierSeries().basis(np.linspace(0.0, 10.0, 101), (0.1, 0.5)).shape
    (101, 10)
    """

    def basis(self, t: Times, band: Band) -> Basis:
        k, angle = _harmonics(t, band)
        waves = np.concatenate([np.sin(angle) / k, np.cos(angle) / k], axis=1)
        return waves * _at_rest(t)[:, None] / np.sqrt(np.sum(1.0 / k**2))

    def draw(self, t: Times, band: Band, draws: np.random.Generator) -> Float[np.ndarray, " c"]:
        return 1.5 * draws.standard_normal(2 * _harmonics(t, band)[0].size)

    def curve(self, basis: Basis, c: Float[Numbers, " c"]) -> Float[Numbers, " n"]:
        return namespace(c).asarray(basis) @ c


@dataclasses.dataclass(frozen=True)
class Multisine(AbstractShape):
    """Sines of all multiples of 1/duration within the band, of one amplitude, each with a phase of
    its own: a flat spectrum.

    >>> import frictax as fx, numpy as np
    >>> t, draws = np.linspace(0.0, 10.0, 101), np.random.default_rng(0)
    >>> fx.Multisine().draw(t, (0.1, 0.5), draws).shape  # five phases and a size
    (6,)
    """

    def basis(self, t: Times, band: Band) -> Basis:
        k, angle = _harmonics(t, band)
        waves = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
        return waves * _at_rest(t)[:, None] * np.sqrt(2.0 / k.size)

    def draw(self, t: Times, band: Band, draws: np.random.Generator) -> Float[np.ndarray, " c"]:
        return np.append(draws.uniform(0, 2 * np.pi, _harmonics(t, band)[0].size), 0.0)

    def resized(self, c: Float[np.ndarray, " c"], factor: float) -> Float[np.ndarray, " c"]:
        return np.append(c[:-1], c[-1] + np.log(factor))

    def curve(self, basis: Basis, c: Float[Numbers, " c"]) -> Float[Numbers, " n"]:
        phases, xp = c[:-1], namespace(c)
        waves = xp.concatenate([xp.cos(phases), xp.sin(phases)])
        return xp.exp(c[-1]) * (xp.asarray(basis) @ waves)


@dataclasses.dataclass(frozen=True)
class CubicSpline(AbstractShape):
    """A cubic spline through points half a period of the highest frequency apart.

    >>> import frictax as fx, numpy as np
    >>> fx.CubicSpline().basis(np.linspace(0.0, 10.0, 101), (0.1, 0.5)).shape
    (101, 9)
    """

    def basis(self, t: Times, band: Band) -> Basis:
        from scipy.interpolate import CubicSpline as spline

        knots = np.linspace(t[0], t[-1], _points(t, band))
        inner = np.eye(knots.size)[:, 1:-1]
        return spline(knots, inner, bc_type="clamped")(t) * _at_rest(t)[:, None]

    def draw(self, t: Times, band: Band, draws: np.random.Generator) -> Float[np.ndarray, " c"]:
        return 1.2 * draws.standard_normal(_points(t, band) - 2)

    def curve(self, basis: Basis, c: Float[Numbers, " c"]) -> Float[Numbers, " n"]:
        return namespace(c).asarray(basis) @ c


@dataclasses.dataclass(frozen=True)
class Staircase(AbstractShape):
    """Strokes to and fro, each at a speed of its own: the sweep of speeds by which friction is
    usually measured. For a reference of position.

    **Arguments:** `speeds`: how many; `turn`: how long it takes to turn round [s], a quarter of a
    period of the highest frequency unless given.

    >>> import frictax as fx
    >>> fx.Staircase(speeds=4, turn=0.2).bounded
    True
    """

    speeds: int = 6
    turn: float | None = None

    def __post_init__(self) -> None:
        _check_count(self, "speeds", 1)
        if self.turn is not None and not (np.isfinite(self.turn) and self.turn > 0):
            raise ValueError(
                f"`Staircase.turn` must be a time [s] > 0, got {self.turn!r}. Leave it out for the"
                " usual."
            )

    def basis(self, t: Times, band: Band) -> Basis:
        return _smoothing(t, 0.25 / band[1] if self.turn is None else self.turn)

    def draw(self, t: Times, band: Band, draws: np.random.Generator) -> Float[np.ndarray, " c"]:
        return np.concatenate([draws.standard_normal(self.speeds), draws.normal(1, 1, self.speeds)])

    def resized(self, c: Float[np.ndarray, " c"], factor: float) -> Float[np.ndarray, " c"]:
        return _lowered(c, self.speeds, factor)

    def curve(self, basis: Basis, c: Float[Numbers, " c"]) -> Float[Numbers, " n"]:
        xp = namespace(c)
        lasts, widths = _shares(c[: self.speeds]), xp.tanh(c[self.speeds :])
        times = xp.cumsum(xp.repeat(lasts, 4)) / 4
        heights = xp.ravel(widths[:, None] * np.array([1.0, 0.0, -1.0, 0.0]))
        return _joined(basis, times, heights)

    @property
    def bounded(self) -> bool:
        return True


@dataclasses.dataclass(frozen=True)
class Ramps(AbstractShape):
    """Ramps from level to level, with a rest on each: what shows where it breaks away.

    **Arguments:** `levels`: how many.

    >>> import frictax as fx
    >>> fx.Ramps(levels=3).bounded
    True
    """

    levels: int = 12

    def __post_init__(self) -> None:
        _check_count(self, "levels", 1)

    def basis(self, t: Times, band: Band) -> Basis:
        return _smoothing(t, 0.25 / band[1])

    def draw(self, t: Times, band: Band, draws: np.random.Generator) -> Float[np.ndarray, " c"]:
        return np.concatenate(
            [draws.standard_normal(2 * self.levels + 1), draws.normal(0, 1, self.levels)]
        )

    def resized(self, c: Float[np.ndarray, " c"], factor: float) -> Float[np.ndarray, " c"]:
        return _lowered(c, 2 * self.levels + 1, factor)

    def curve(self, basis: Basis, c: Float[Numbers, " c"]) -> Float[Numbers, " n"]:
        count, xp = 2 * self.levels + 1, namespace(c)
        times = xp.cumsum(_shares(c[:count]))
        heights = xp.append(xp.repeat(xp.tanh(c[count:]), 2), 0.0)
        return _joined(basis, times, heights)

    @property
    def bounded(self) -> bool:
        return True


@dataclasses.dataclass(frozen=True)
class Chirp(AbstractShape):
    """A sine whose frequency rises through the band, each factor in the same time.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 10.0, 1001)
    >>> curve = fx.Chirp().basis(t, (0.1, 2.0))[:, 0]
    >>> int(np.sum(np.diff(np.sign(curve[30:-30])) != 0))  # half periods
    11
    """

    def basis(self, t: Times, band: Band) -> Basis:
        share, ratio = (t - t[0]) / (t[-1] - t[0]), np.log(band[1] / band[0])
        turns = band[0] * (t[-1] - t[0]) * np.expm1(ratio * share) / ratio
        return (np.sin(2 * np.pi * turns) * _at_rest(t))[:, None]

    def draw(self, t: Times, band: Band, draws: np.random.Generator) -> Float[np.ndarray, " c"]:
        return draws.uniform(0.5, 2.0, 1)

    def curve(self, basis: Basis, c: Float[Numbers, " c"]) -> Float[Numbers, " n"]:
        return namespace(c).asarray(basis) @ c


def _harmonics(t: Times, band: Band) -> tuple[np.ndarray, np.ndarray]:
    duration = t[-1] - t[0]
    k = np.arange(max(np.ceil(band[0] * duration - 1e-9), 1), band[1] * duration + 1e-9)
    if k.size == 0:
        raise ValueError(
            f"`Limits.band` must hold a multiple of 1/duration = {1 / duration:.3g} Hz, got"
            f" {band[0]:g} to {band[1]:g} Hz. Widen it, or let the experiment last longer."
        )
    return k, 2 * np.pi * np.outer((t - t[0]) / duration, k)


def _points(t: Times, band: Band) -> int:
    return max(int(2 * band[1] * (t[-1] - t[0])) + 1, 4)


def _at_rest(t: Times) -> np.ndarray:
    """1 but at the ends, where it rises from 0 and falls to 0 with two derivatives that are 0."""
    share = (t - t[0]) / (t[-1] - t[0])
    s = np.clip(np.minimum(share, 1.0 - share) / _REST, 0.0, 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s * s)


def _smoothing(t: Times, corner: float) -> np.ndarray:
    """Times as shares of the duration, and the weights by which neighbours are averaged, so that a
    corner lasts for `corner` [s].
    """
    width = min(max(int(round(0.5 * corner / (t[1] - t[0]))), 1), t.size // 4)
    kernel = np.hanning(2 * width + 1)
    out = np.zeros((t.size, 2))
    out[:, 0] = (t - t[0]) / (t[-1] - t[0])
    out[: kernel.size, 1] = kernel[: t.size] / np.sum(kernel[: t.size])
    return out


def _joined(basis: Basis, times: Numbers, heights: Numbers) -> Numbers:
    """Straight from 0 over heights at shares of the time, within what is left after the rests."""
    share, xp = (basis[:, 0] - _REST) / (1.0 - 2.0 * _REST), namespace(times)
    nought = np.zeros(1)
    line = xp.interp(share, xp.append(nought, times), xp.append(nought, heights))
    kernel = basis[: int(np.flatnonzero(basis[:, 1])[-1]) + 2, 1]
    return xp.convolve(line, xp.asarray(kernel), mode="same")


def _shares(logarithms: Numbers) -> Numbers:
    """Numbers > 0 of these logarithms but for a factor, by which they sum to 1."""
    xp = namespace(logarithms)
    parts = xp.exp(logarithms - xp.max(logarithms))
    return parts / xp.sum(parts)


def namespace(x: Numbers) -> Any:
    """The module of functions that take arrays such as `x`."""
    return np if isinstance(x, np.ndarray) else jnp


def _lowered(c: np.ndarray, first: int, factor: float) -> np.ndarray:
    """With the heights from number `first` on so many times as large."""
    heights = np.clip(factor * np.tanh(c[first:]), -0.999, 0.999)
    return np.concatenate([c[:first], np.arctanh(heights)])


def _check_count(shape: AbstractShape, field: str, least: int) -> None:
    value = getattr(shape, field)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(
            f"`{type(shape).__name__}.{field}` must be a whole number >= {least}, got {value!r}."
            " Leave it out for the usual."
        )
