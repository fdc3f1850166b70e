"""Records of ticks: one sample for each step of a position. Times err, and positions do not."""

import dataclasses
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int

from .diagnostics import GAP, quantum

FEWEST = 20  # samples: no noise of times can be read from fewer
_EQUAL = 0.01  # of a step: how far a step of position is from a whole number of steps
_SINGLE = 0.5  # share of the intervals that have one step; the others have lost ticks
_EVEN = 0.01  # of the median interval: times as even as these come from a clock
_LOST = 1.5  # times the interval of one step: an interval of two steps takes twice as long
_ACCURATE = 0.02  # of a speed, for which the smoothing is wide enough
_WIDTHS = (5, 201)  # ticks: narrowest and widest smoothing
_BESIDE = 7  # ticks of a stretch, beside whose cubic the noise is read


@dataclasses.dataclass(frozen=True, eq=False)
class Ticks:
    """An output that has one sample for each step of a position.

    - `step` of the position [SI]; `counts` (n - 1,): the steps between samples, more than one where
      ticks are lost.
    - `speed` (n,): the speed at each tick [SI], > 0 in either direction.
    - `noise`: the standard deviation of the times [s].
    """

    step: float
    counts: Int[np.ndarray, " m"]
    speed: Float[np.ndarray, " n"]
    noise: float


def find_ticks(t: Float[np.ndarray, " n"], x: Float[np.ndarray, " n"]) -> Ticks | None:
    """Return the ticks of a position `x` [SI] at the times `t` [s]; None if `x` is sampled.

    Positions of ticks differ by equal steps in one direction, at uneven times. A few ticks may be
    lost. Then a double step takes twice as long, whereas a sampled encoder has even times.

    >>> n = np.arange(200)
    >>> times = 10.0 * np.log(1.0 + n / 100.0)  # a speed that decays
    >>> ticks = find_ticks(times, 0.5 * n)
    >>> ticks.step, ticks.speed[[0, 100]].round(2)
    (0.5, array([ 5., 10.]))
    >>> find_ticks(0.1 * n, 0.5 * n) is None
    True
    """
    if t.size < FEWEST:
        return None
    moved, took = np.diff(x), np.diff(t)
    step = float(np.median(moved))
    if step == 0 or np.any(moved * step <= 0):
        return None
    counts = np.rint(moved / step).astype(int)
    is_equal = np.abs(moved / step - counts) <= _EQUAL
    if not is_equal.all() or np.mean(counts == 1) < _SINGLE:
        return None
    periods = took / np.median(took)
    if np.all(np.abs(periods - np.rint(periods)) <= _EVEN):
        return None
    lost = counts > 1
    if lost.any():
        from scipy.ndimage import median_filter

        if np.median((took / median_filter(took, _BESIDE))[lost]) < _LOST:
            return None
    n = np.concatenate([[0], np.cumsum(counts)])
    noise = _noise_of_times(n, t)
    period = float(np.quantile(took / counts, 0.1))
    # The standard error of a slope over `width` ticks is noise * (12 / width**3)**0.5.
    width = int((12.0 * (noise / period / _ACCURATE) ** 2) ** (1 / 3)) // 2 * 2 + 1
    width = min(int(np.clip(width, *_WIDTHS)), (t.size - 1) // 2 * 2 + 1)
    return Ticks(abs(step), counts, abs(step) / _smooth_periods(n, t, width), noise)


def lost_ticks(ticks: Mapping[str, Ticks]) -> Int[np.ndarray, " k"]:
    """The samples after which every output has lost more than a few ticks."""
    return np.flatnonzero(np.min([one.counts for one in ticks.values()], axis=0) > GAP)


def _windows(
    n: Int[np.ndarray, " n"], t: Float[np.ndarray, " n"], width: int
) -> tuple[Float[np.ndarray, "k w"], Float[np.ndarray, "k w"]]:
    """Counts and times of all stretches of `width` ticks, from their middle ticks."""
    counts, times = (np.lib.stride_tricks.sliding_window_view(x, width) for x in (n, t))
    middle = slice(width // 2, width // 2 + 1)
    return (counts - counts[:, middle]).astype(float), times - times[:, middle]


def _noise_of_times(n: Int[np.ndarray, " n"], t: Float[np.ndarray, " n"]) -> float:
    """The standard deviation of the times [s] beside cubics of the counts, the median of all."""
    counts, times = _windows(n, t, _BESIDE)
    basis = np.linalg.qr((counts / np.ptp(counts, axis=1)[:, None])[..., None] ** np.arange(4))[0]
    left = times - np.einsum("kwi,kvi,kv->kw", basis, basis, times)
    freedom = _BESIDE - 4
    # the median of chi-square after Wilson and Hilferty
    middle = np.median(np.sum(left**2, axis=1)) / (freedom * (1 - 2 / (9 * freedom)) ** 3)
    clock = quantum(np.diff(t))  # of a timer that counts, the smallest difference of intervals
    beats = np.diff(t) / clock if clock else np.full(1, 0.5)
    is_counted = np.abs(beats - np.rint(beats)).max() < _EQUAL
    return max(float(np.sqrt(middle)), is_counted * clock / np.sqrt(12.0))


def _smooth_periods(
    n: Int[np.ndarray, " n"], t: Float[np.ndarray, " n"], width: int
) -> Float[np.ndarray, " n"]:
    """The time that one step takes at each tick [s], from parabolas through `width` ticks.

    A parabola's slope in the middle does not depend on the time of the middle tick. Therefore the
    weight of a tick does not depend on its error.
    """
    counts, times = _windows(n, t, width)
    powers = counts[..., None] ** np.arange(3)
    gram = np.einsum("kwi,kwj->kij", powers, powers)
    found = np.linalg.solve(gram, np.einsum("kwi,kw->ki", powers, times)[..., None])[..., 0]
    half = width // 2
    ends = [found[i, 1] + 2 * found[i, 2] * counts[i, rows] for i, rows in _ends(half)]
    periods = np.concatenate([ends[0], found[:, 1], ends[1]])
    local = np.gradient(t, n)
    # Where ticks are few for their noise a parabola may turn back.
    return np.where(periods > 0.2 * local, periods, local)


def _ends(half: int) -> tuple[tuple[int, slice], tuple[int, slice]]:
    return (0, slice(None, half)), (-1, slice(half + 1, None))
