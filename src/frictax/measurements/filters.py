"""Velocity and acceleration from a measured position, without a shift in time.

A fit does not need measured derivatives. Velocity and acceleration serve to draw the friction curve
of a record, to find where the machine is at rest, and to estimate start values.
"""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from . import checks


@dataclasses.dataclass(frozen=True, eq=False)
class Smoothed:
    """A filtered channel `x` and its derivatives `v` [unit of `x` per s] and `a` [per s2]."""

    x: Float[np.ndarray, " n"]
    v: Float[np.ndarray, " n"]
    a: Float[np.ndarray, " n"]


def smooth(t: Any, x: Any, cutoff: float, order: int = 4) -> Smoothed:
    """Filter a channel by a Butterworth low-pass forward and backward, without a shift in time,
    then take central differences.

    The gain at frequency f is 1/(1 + (f/cutoff)^(2*order)) in `x` (one half at the cutoff). The
    differences over a time step dt lower the gain further, by the fraction (2*pi*f*dt)^2/6 in `v`
    and (2*pi*f*dt)^2/12 in `a`. Within about 1/cutoff [s] of the ends of the record, `v` and `a`
    are less accurate, because the filter uses only one side of the signal there.

    If the times are not uniform, cubic splines interpolate `x` to uniform times and back.

    **Arguments:** `t` (n,) [s], increasing; `x` (n,); `cutoff` [Hz], between 1/duration and half
    the sampling rate. Choose `cutoff` several times as high as the fastest motion of interest.
    `order`: order of the filter.

    **Returns:** a `Smoothed` at the same times.

    **Raises:** `ValueError` for times that do not increase, or a `cutoff` or `order` out of range.

    >>> import numpy as np
    >>> t = np.linspace(0.0, 2.0, 2001)

    >>> found = smooth(t, np.sin(2 * np.pi * t), cutoff=20.0)
    >>> found.v[1000].round(3), found.a[1250].round(2)  # 2 pi, -(2 pi)^2
    (np.float64(6.283), np.float64(-39.48))
    """
    times, values = checks.numbers("`smooth` t", t), checks.numbers("`smooth` x", x)
    checks.check_times(times, checks.row)
    checks.check_channel("`smooth` x", values, times, checks.row)
    step = float(times[-1] - times[0]) / (times.size - 1)
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or not 1 <= order <= 12:
        raise ValueError(
            f"`smooth` order must be a whole number from 1 to 12, got {order!r}. Leave it out"
            " for 4."
        )
    if (
        isinstance(cutoff, bool)
        or not isinstance(cutoff, int | float | np.integer | np.floating)
        or not np.isfinite(cutoff)
        or cutoff <= 0
    ):
        raise ValueError(
            f"`smooth` cutoff must be a frequency > 0 in hertz, got {cutoff!r}. Take several times"
            " the fastest motion's."
        )
    highest, lowest = 0.5 / step, 1.0 / float(times[-1] - times[0])
    if cutoff >= highest:
        raise ValueError(
            f"`smooth` cutoff must lie below half the sampling rate, {highest:.6g} Hz, got"
            f" {cutoff:g} Hz. Give a tenth of that or so."
        )
    if cutoff < lowest:
        raise ValueError(
            f"`smooth` cutoff must be at least 1/duration, {lowest:.4g} Hz, got {cutoff:g} Hz. Such"
            " a filter removes the whole motion."
        )

    from scipy.interpolate import CubicSpline
    from scipy.signal import butter, sosfiltfilt

    grid = times[0] + step * np.arange(times.size)
    uniform = bool(np.max(np.abs(times - grid)) <= 1e-3 * step)
    sections = butter(order, cutoff, fs=1.0 / step, output="sos")
    # The padding has the length of the impulse response, but at most the length of the record.
    reach = min(times.size - 1, max(12, round(8.0 / (cutoff * step))))
    even = values if uniform else CubicSpline(times, values)(grid)
    # k: samples in one period of the cutoff; cubics through k samples determine the end conditions
    trend, k = np.zeros_like(even), max(8, round(1.0 / (cutoff * step)))
    if order > 2 and even.size >= 2 * k:
        # Subtract the polynomial of degree 5 with the value, slope and curvature of the motion at
        # both ends. A filter of order 3 or more does not change this polynomial, because the gain
        # of the filter is flat to order 5. The remaining signal has no curvature at the ends, as
        # `sosfiltfilt` assumes when it pads the signal by reflection. Padding of a curved signal
        # makes the derivatives at the ends wrong.
        width, polynomial = (k - 1) / (times.size - 1), np.polynomial.polynomial
        cubics = [
            polynomial.polyfit(np.arange(k) / (k - 1), y, 3) for y in (even[:k], even[::-1][:k])
        ]
        left, right = (c[:3] * [1.0, 1.0 / width, 2.0 / width**2] for c in cubics)
        ends = [
            [1, 0, 0, 0, 0, 0],
            [0, 1, 0, 0, 0, 0],
            [0, 0, 2, 0, 0, 0],
            [1, 1, 1, 1, 1, 1],
            [0, 1, 2, 3, 4, 5],
            [0, 0, 2, 6, 12, 20],
        ]
        values_there = [*left, right[0], -right[1], right[2]]
        trend = polynomial.polyval(
            np.linspace(0.0, 1.0, times.size),
            np.linalg.solve(np.array(ends, dtype=float), values_there),
        )
    clean = trend + sosfiltfilt(sections, even - trend, padlen=reach)
    v = np.gradient(clean, step, edge_order=2)
    a = np.empty_like(clean)
    a[1:-1] = (clean[2:] - 2.0 * clean[1:-1] + clean[:-2]) / step**2
    a[0], a[-1] = 2.0 * a[1] - a[2], 2.0 * a[-2] - a[-3]
    return Smoothed(
        *((clean, v, a) if uniform else (CubicSpline(grid, y)(times) for y in (clean, v, a)))
    )
