"""Shapes of excitations: curves between about -1 and 1 as functions of a parameter vector."""

import abc
import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.arguments import check_count
from frictax.parameters import Numbers

Band = tuple[float, float]
Times = Float[np.ndarray, " n"]
Basis = Float[np.ndarray, "n b"]
_REST = 0.05  # fraction of the duration during which a curve rises from 0, or falls to 0 at its end


@dataclasses.dataclass(frozen=True)
class AbstractShape(abc.ABC):
    """A family of excitations that begin and end at rest, with the value 0.

    **Example:** `FourierSeries`.
    """

    @abc.abstractmethod
    def draw(self, t: Times, band: Band, draws: np.random.Generator) -> Float[np.ndarray, " c"]:
        """Return the parameter vector of a random excitation."""

    @abc.abstractmethod
    def basis(self, t: Times, band: Band) -> Basis:
        """Return the basis, a matrix from which `curve` computes each excitation of the family."""

    def curve(self, basis: Basis, c: Float[Numbers, " c"]) -> Float[Numbers, " n"]:
        """Return the curve for the parameters `c`, between about -1 and 1 (exactly if `bounded`).

        By default, the curve is linear in `c`. For a NumPy array `c` the result is a NumPy array,
        because compiling takes longer than evaluating many curves.
        """
        return namespace(c).asarray(basis) @ c

    def resized(self, c: Float[np.ndarray, " c"], factor: float) -> Float[np.ndarray, " c"]:
        """Return the parameters for `factor` times the curve of `c`."""
        return factor * c

    @property
    def bounded(self) -> bool:
        """True if the curve always lies between -1 and 1."""
        return False


@dataclasses.dataclass(frozen=True)
class FourierSeries(AbstractShape):
    """Sines and cosines of all multiples of 1/duration within the band, each with its own
    amplitude: the usual excitation of robots.

    **Source:** J. Swevers, C. Ganseman, D. B. Tükel, J. De Schutter, H. Van Brussel, IEEE
    Transactions on Robotics and Automation 13(5), 1997.

    >>> import frictax as fx, numpy as np
    >>> fx.FourierSeries().basis(np.linspace(0.0, 10.0, 101), (0.1, 0.5)).shape
    (101, 10)
    """

    def basis(self, t: Times, band: Band) -> Basis:
        k, angle = _harmonics(t, band)
        waves = np.concatenate([np.sin(angle) / k, np.cos(angle) / k], axis=1)
        return waves * _fade(t)[:, None] / np.sqrt(np.sum(1.0 / k**2))

    def draw(self, t: Times, band: Band, draws: np.random.Generator) -> Float[np.ndarray, " c"]:
        return 1.5 * draws.standard_normal(2 * _harmonics(t, band)[0].size)


@dataclasses.dataclass(frozen=True)
class Multisine(AbstractShape):
    """Sines of all multiples of 1/duration within the band, with equal amplitudes and different
    phases: a flat spectrum.

    >>> import frictax as fx, numpy as np
    >>> t, draws = np.linspace(0.0, 10.0, 101), np.random.default_rng(0)
    >>> fx.Multisine().draw(t, (0.1, 0.5), draws).shape  # five phases and a size
    (6,)
    """

    def basis(self, t: Times, band: Band) -> Basis:
        k, angle = _harmonics(t, band)
        waves = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
        return waves * _fade(t)[:, None] * np.sqrt(2.0 / k.size)

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
    """A cubic spline with one knot in every half period of the highest frequency.

    >>> import frictax as fx, numpy as np
    >>> fx.CubicSpline().basis(np.linspace(0.0, 10.0, 101), (0.1, 0.5)).shape
    (101, 9)
    """

    def basis(self, t: Times, band: Band) -> Basis:
        from scipy.interpolate import CubicSpline as spline

        knots = np.linspace(t[0], t[-1], _points(t, band))
        inner = np.eye(knots.size)[:, 1:-1]
        return spline(knots, inner, bc_type="clamped")(t) * _fade(t)[:, None]

    def draw(self, t: Times, band: Band, draws: np.random.Generator) -> Float[np.ndarray, " c"]:
        return 1.2 * draws.standard_normal(_points(t, band) - 2)


@dataclasses.dataclass(frozen=True)
class Staircase(AbstractShape):
    """Pairs of strokes, forward and backward, each pair with its own speed. Such strokes are the
    usual way to measure friction over speed. Only a position reference can have this shape.

    **Arguments:** `speeds`: number of speeds; `turn`: duration of a reversal [s], by default a
    quarter of the period of the highest frequency in the `band` of the limits.

    >>> import frictax as fx
    >>> fx.Staircase(speeds=4, turn=0.2).bounded
    True
    """

    speeds: int = 6
    turn: float | None = None

    def __post_init__(self) -> None:
        check_count("`Staircase.speeds`", self.speeds, 1, "Leave it out for the usual.")
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
        return _scaled_heights(c, self.speeds, factor)

    def curve(self, basis: Basis, c: Float[Numbers, " c"]) -> Float[Numbers, " n"]:
        xp = namespace(c)
        lasts, widths = _normalized_shares(c[: self.speeds]), xp.tanh(c[self.speeds :])
        times = xp.cumsum(xp.repeat(lasts, 4)) / 4
        heights = xp.ravel(widths[:, None] * np.array([1.0, 0.0, -1.0, 0.0]))
        return _smooth_polyline(basis, times, heights)

    @property
    def bounded(self) -> bool:
        return True


@dataclasses.dataclass(frozen=True)
class Ramps(AbstractShape):
    """Ramps between levels with a rest at each level, to identify the breakaway force.

    **Arguments:** `levels`: number of levels.

    >>> import frictax as fx
    >>> fx.Ramps(levels=3).bounded
    True
    """

    levels: int = 12

    def __post_init__(self) -> None:
        check_count("`Ramps.levels`", self.levels, 1, "Leave it out for the usual.")

    def basis(self, t: Times, band: Band) -> Basis:
        return _smoothing(t, 0.25 / band[1])

    def draw(self, t: Times, band: Band, draws: np.random.Generator) -> Float[np.ndarray, " c"]:
        return np.concatenate(
            [draws.standard_normal(2 * self.levels + 1), draws.normal(0, 1, self.levels)]
        )

    def resized(self, c: Float[np.ndarray, " c"], factor: float) -> Float[np.ndarray, " c"]:
        return _scaled_heights(c, 2 * self.levels + 1, factor)

    def curve(self, basis: Basis, c: Float[Numbers, " c"]) -> Float[Numbers, " n"]:
        count, xp = 2 * self.levels + 1, namespace(c)
        times = xp.cumsum(_normalized_shares(c[:count]))
        heights = xp.append(xp.repeat(xp.tanh(c[count:]), 2), 0.0)
        return _smooth_polyline(basis, times, heights)

    @property
    def bounded(self) -> bool:
        return True


@dataclasses.dataclass(frozen=True)
class Chirp(AbstractShape):
    """A sine whose frequency rises exponentially through the band.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 10.0, 1001)

    >>> curve = fx.Chirp().basis(t, (0.1, 2.0))[:, 0]
    >>> int(np.sum(np.diff(np.sign(curve[30:-30])) != 0))  # half periods
    11
    """

    def basis(self, t: Times, band: Band) -> Basis:
        share, ratio = (t - t[0]) / (t[-1] - t[0]), np.log(band[1] / band[0])
        turns = band[0] * (t[-1] - t[0]) * np.expm1(ratio * share) / ratio
        return (np.sin(2 * np.pi * turns) * _fade(t))[:, None]

    def draw(self, t: Times, band: Band, draws: np.random.Generator) -> Float[np.ndarray, " c"]:
        return draws.uniform(0.5, 2.0, 1)


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


def _fade(t: Times) -> np.ndarray:
    """Return a smooth window that rises from 0 to 1 at the start and falls to 0 at the end."""
    share = (t - t[0]) / (t[-1] - t[0])
    s = np.clip(np.minimum(share, 1.0 - share) / _REST, 0.0, 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s * s)


def _smoothing(t: Times, corner: float) -> np.ndarray:
    """Return two columns: the times as fractions of the duration, and the weights of a moving
    average that rounds each corner of a curve over the duration `corner` [s].
    """
    width = min(max(int(round(0.5 * corner / (t[1] - t[0]))), 1), t.size // 4)
    kernel = np.hanning(2 * width + 1)
    out = np.zeros((t.size, 2))
    out[:, 0] = (t - t[0]) / (t[-1] - t[0])
    out[: kernel.size, 1] = kernel[: t.size] / np.sum(kernel[: t.size])
    return out


def _smooth_polyline(basis: Basis, times: Numbers, heights: Numbers) -> Numbers:
    """Return a smoothed polyline that starts at 0 and has the `heights` at `times`. The `times` are
    fractions of the time between the rests at both ends.
    """
    share, xp = (basis[:, 0] - _REST) / (1.0 - 2.0 * _REST), namespace(times)
    zero = np.zeros(1)
    line = xp.interp(share, xp.append(zero, times), xp.append(zero, heights))
    kernel = basis[: int(np.flatnonzero(basis[:, 1])[-1]) + 2, 1]
    return xp.convolve(line, xp.asarray(kernel), mode="same")


def _normalized_shares(logarithms: Numbers) -> Numbers:
    """Return the exponentials of `logarithms`, scaled to the sum 1."""
    xp = namespace(logarithms)
    parts = xp.exp(logarithms - xp.max(logarithms))
    return parts / xp.sum(parts)


def namespace(x: Numbers) -> Any:
    """Return `numpy` if x is a NumPy array, otherwise `jax.numpy`."""
    return np if isinstance(x, np.ndarray) else jnp


def _scaled_heights(c: np.ndarray, first: int, factor: float) -> np.ndarray:
    """Return `c` for heights multiplied by `factor`; `c[first:]` are arctanh(height)."""
    heights = np.clip(factor * np.tanh(c[first:]), -0.999, 0.999)
    return np.concatenate([c[:first], np.arctanh(heights)])
