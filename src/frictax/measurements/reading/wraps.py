"""Counters and angles that wrap at the end of their range: find the range, and remove the jumps.

An encoder of 4096 counts, an angle from -180 to 180 deg, a 16-bit counter and a clock of 32 bits in
microseconds wrap. A square wave, a reset of a counter and lost samples are not wraps.
"""

import dataclasses
import math

import numpy as np
from jaxtyping import Float, Int

from ..diagnostics import quantum

_TURNS = (360.0, 2 * math.pi, 1.0, 2000 * math.pi)  # one turn in deg, rad, rev and mrad
_ROUND = (
    "100 200 400 500 800 1000 1600 1024 1200 1440 2000 2400 2500 2880 3000 3600 4000 5000 "
    "6000 7200 8000 10000 12000 14400 16000 20000 36000 40000 50000 80000 100000 360000 "
    "1000000"
)
USUAL_COUNTS = (*(2.0**k for k in range(4, 49)), *map(float, _ROUND.split()))
# Ranges of counters of microseconds whose values are written in seconds or milliseconds.
_CLOCKS = tuple(2.0**k * size for k in (16, 31, 32) for size in (1e-6, 1e-3))


@dataclasses.dataclass(frozen=True)
class Wrap:
    """The range of a column that wraps, in its unit, and indices of the samples after its jumps."""

    range: float
    samples: Int[np.ndarray, " k"]


def find_wrap(
    values: Float[np.ndarray, " n"], turn: float | None = None, rising: bool = False
) -> Wrap | None:
    """Return the range at which a column wraps (a `Wrap`); None if the column does not wrap.

    A jump is a change from one sample to the next of more than half of (largest - smallest value).
    At least 80 % of the jumps, minus the motion of samples nearby, must equal the range to 2 %. The
    range is a turn (360, 2 pi, 1) or a number of counts (a power of two or a round number). A count
    may have a size other than 1, as in a counter of 16 bits times 0.005 mm.

    `turn`: another possible range, such as the encoder counts of one turn; `rising`: True for a
    clock, for which each decrease is a jump. NaN are ignored.

    >>> import numpy as np
    >>> angle = np.linspace(0.0, 2000.0, 201)
    >>> find_wrap(angle % 360).range, find_wrap(angle // 1 % 256).range, find_wrap(angle)
    (360.0, 256.0, None)

    >>> print(find_wrap(np.sign(np.sin(angle))))
    None
    """
    values = np.asarray(values, dtype=float)
    there = np.flatnonzero(np.isfinite(values))
    x = values[there]
    if x.size < 8:
        return None
    step, extent = np.diff(x), float(np.ptp(x))
    # At most a quarter of the changes from sample to sample may be jumps.
    jumps = np.flatnonzero(step < 0 if rising else np.abs(step) > 0.5 * extent)
    if not 0 < jumps.size <= 0.25 * step.size:
        return None
    calm = np.abs(np.delete(step, jumps))
    if not np.max(calm) > 0:
        return None
    usual, motion = float(np.quantile(calm, 0.98)), _motion_at(step, jumps)
    sizes = np.abs(step[jumps] - motion)
    if np.all(x == np.round(x)):
        counts = USUAL_COUNTS
    elif rising:
        counts = _CLOCKS
    else:
        count = extent / round(extent / quantum(x))
        scaled = np.all(np.abs(x / count - np.round(x / count)) < 1e-2)
        counts = tuple(count * size for size in USUAL_COUNTS) if scaled else ()
    likely = (*([turn] if turn else []), *(() if rising else _TURNS), *counts)
    best = min(likely, key=lambda r: abs(r - float(np.median(sizes))), default=0.0)
    # Accept the range if 80 % of the jumps differ from it by at most 2 %, and the median by 0.4 %.
    near = np.abs(sizes - best) <= max(0.02 * best, 3.0 * usual)
    exact = abs(best - float(np.median(sizes))) <= max(0.004 * best, 2.0 * usual / jumps.size**0.5)
    if best < (2.0 if rising else 5.0) * usual or np.mean(near) < 0.8 or not exact:
        return None
    # The range begins at 0 or at minus half of its width. All numbers must be in this range, and
    # most jumps must go from one end of the range to the other.
    low, room, little = np.array([0.0, -0.5 * best]), max(3.0 * usual, 0.02 * best), 5e-3 * best
    high = low + best
    ends = np.sort([x[jumps], x[jumps + 1]], axis=0)[..., None]
    crosses = np.mean((ends[1] >= high - room) & (ends[0] <= low + room), axis=0) >= 0.8
    if not np.any((x.min() >= low - little) & (x.max() <= high + little) & crosses):
        return None
    if not rising:  # Before a jump down the signal must rise, and before a jump up it must fall.
        towards = -np.sign(step[jumps]) * _motion_at(step, jumps, 10)
        if not np.sum(towards) > 0.5 * np.sum(np.abs(towards)):
            return None
    return Wrap(best, there[jumps + 1])


def _motion_at(step: np.ndarray, jumps: np.ndarray, beside: int = 1) -> np.ndarray:
    """Return the mean change per sample near each jump, over `beside` changes before and after."""
    calm = np.delete(np.arange(step.size), jumps)
    if not calm.size:
        return np.zeros(jumps.size)
    after, sums = np.searchsorted(calm, jumps), np.concatenate([[0.0], np.cumsum(step[calm])])
    low, high = np.maximum(after - beside, 0), np.minimum(after + beside, calm.size)
    return (sums[high] - sums[low]) / (high - low)


def unwrap_column(
    values: Float[np.ndarray, " n"], range_: float, rising: bool = False
) -> Float[np.ndarray, " n"]:
    """Add multiples of `range_` to the values so that each change from sample to sample is as small
    as possible. For a clock (`rising`), no change becomes negative. NaN stay NaN.

    >>> unwrap_column(np.array([350.0, 355.0, 0.0, 5.0, 355.0]), 360.0)
    array([350., 355., 360., 365., 355.])
    """
    out = np.array(values, dtype=float)
    there = np.flatnonzero(np.isfinite(out))
    if rising:
        step = np.diff(out[there])
        turns = np.where(step >= 0, 0.0, -np.floor(step / range_))
        out[there[1:]] += range_ * np.cumsum(turns)
    else:
        out[there] = np.unwrap(out[there], period=range_)
    return out


def find_seams(values: Float[np.ndarray, " n"], range_: float) -> Int[np.ndarray, " k"]:
    """Return the indices of samples at which an unwrapped column still jumps, because of lost
    samples or a reset. A jump exceeds a quarter of the range and three times the changes nearby.
    """
    there = np.flatnonzero(np.isfinite(values))
    step = np.diff(np.asarray(values, dtype=float)[there])
    large = np.flatnonzero(np.abs(step) > 0.25 * range_)
    if not large.size:
        return large
    around = np.abs(_motion_at(step, large))
    return there[large[np.abs(step[large]) > 3.0 * around + 1e-3 * range_] + 1]
