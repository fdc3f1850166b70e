"""Noise of a channel, estimated from the channel itself: standard deviation, autocorrelation time,
ticks with noisy times, and glitches.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from .diagnostics import GAP, quantum

_WIDTHS = (5, 9, 17, 33, 65)  # [samples] widths of the windows in which cubics are fitted
_SMOOTHED = (5, 201)  # [ticks] smallest and largest width of the smoothing window
_NEIGHBOURS = np.array([-3, -2, -1, 1, 2, 3])


def noise_of(x: Float[np.ndarray, " n"], enough: float = np.inf) -> float:
    """Return the standard deviation of the noise of evenly sampled `x`, in its unit; nan for fewer
    than 20 samples.

    Cubics are fitted in short windows, and the median of their residuals is the estimate. The
    motion of a machine is smooth from sample to sample except at a few kinks, and noise is not
    smooth. The windows become wider while the residuals grow no faster than autocorrelated noise.
    If the width doubles, residuals of a random walk grow by 2**0.5, the error of a cubic by 2**4.
    The result is at least the rounding error of the sensor, 1/12**0.5 of its step. It is too large
    if five samples of the motion are not a cubic, and too small if a filter has smoothed the
    errors. The windows stop growing when the result reaches `enough`.

    >>> t = np.linspace(0.0, 1.0, 1001)
    >>> noise = np.random.default_rng(0).standard_normal(1001)
    >>> round(noise_of(np.sin(9.0 * t) + 0.01 * noise), 3)
    0.01
    """
    n = x.size
    if n < 20:
        return float("nan")
    left = 0.0
    for width in [w for w in _WIDTHS if w == _WIDTHS[0] or 8 * w <= n]:
        # More than 200 windows do not improve the median.
        wider = _beside_cubics(x, width, most=200)
        # If the window width doubles, residuals due to motion grow by more than 2.5, and residuals
        # due to noise by less.
        if left and wider > 2.5 * left:
            break
        left = max(left, wider)
        if left >= enough:
            return left
    return max(left, quantum(x) / np.sqrt(12.0))


def noise_of_output(record: Any, name: str, enough: float = np.inf) -> float:
    """Return the standard deviation of the noise of an output of a `Record`: its `sd`, or the
    estimate of `noise_of`; for ticks, the standard deviation of their times [s].
    """
    sd = record.sd.get(name)
    if sd is not None:
        return float(np.sqrt(np.mean(np.square(sd))))
    return (
        record.ticks[name].noise if name in record.ticks else noise_of(record.outputs[name], enough)
    )


def white_noise_of(x: Float[np.ndarray, " n"]) -> float:
    """Return the standard deviation of the white part of the noise of `x`: the residuals of cubics
    in the shortest windows, to which the motion hardly contributes.
    """
    if x.size < 20:
        return float("nan")
    return max(_beside_cubics(x, _WIDTHS[0], x.size), quantum(x) / np.sqrt(12.0))


def white_share(correlation: Any) -> Any:
    """Return the expected square of `white_noise_of` for first-order noise with variance 1.

    The squared residual of a cubic on five samples x is ((1, -4, 6, -4, 1) x)**2 / 70. The noise is
    e[i] = c*e[i-1] + w[i] with white w and the `correlation` c of neighbours.
    """
    c = correlation
    return 1.0 + (-56.0 * c + 28.0 * c**2 - 8.0 * c**3 + c**4) / 35.0


def cutoff_of(t: Float[np.ndarray, " n"], x: Float[np.ndarray, " n"], derivative: int) -> float:
    """Return the low-pass cutoff [Hz] for the most accurate n-th `derivative` of `x`; infinite
    without noise.

    A filter passes noise below its cutoff f and removes motion above it. Both errors are sums over
    the power spectrum of x with the weight f**(2 * derivative). The result minimises the passed
    noise plus a third of the removed motion. The noise is assumed to be white. `t` [s] increases;
    `x` has any unit.

    >>> t = np.linspace(0.0, 4.0, 2001)
    >>> noise = 0.01 * np.random.default_rng(0).standard_normal(2001)
    >>> 3.0 < cutoff_of(t, np.sin(20.0 * t) + noise, 1) < 6.0  # a sine of 3.2 Hz
    True
    """
    n, span = x.size, float(t[-1] - t[0])
    noise = white_noise_of(x)
    if not noise > 0:
        return np.inf
    even = np.interp(np.linspace(t[0], t[-1], n), t, x)
    # The Fourier transform treats the signal as periodic. A jump from its end to its beginning
    # would count as motion.
    even -= np.linspace(even[0], even[-1], n)
    window = np.hanning(n)
    power = np.abs(np.fft.rfft((even - even.mean()) * window)) ** 2 / np.sum(window**2)
    f = np.arange(power.size) * (n - 1) / (n * span)
    motion = 3.0  # [noise power] motion that the filter may remove; `without_rounding` restores it
    gain = np.cumsum(((1.0 + motion) * noise**2 - power) * f ** (2 * derivative))
    # The cutoff is high enough that the record contains at least four of its periods.
    return float(max(f[int(np.argmin(gain))], 4.0 / span))


def _beside_cubics(x: Float[np.ndarray, " n"], width: int, most: int) -> float:
    """Return the median standard deviation of the residuals of cubics in at most `most` windows."""
    indices, beyond_cubic = _stretches(x.size, width, most)
    stretches = x[indices]
    # The offset of a window is removed first, because a large offset causes rounding errors.
    left = (stretches - stretches[:, :1]) @ beyond_cubic
    squares = np.sort(np.einsum("ij,ij->i", left, left))
    half = squares.size // 2
    freedom = width - 4
    # The median of chi-square is computed by the formula of Wilson and Hilferty.
    middle = (squares[half] + squares[-half - 1]) / 2
    return float(np.sqrt(middle / (freedom * (1.0 - 2.0 / (9.0 * freedom)) ** 3)))


@functools.lru_cache(maxsize=8)
def _stretches(
    n: int, width: int, most: int
) -> tuple[Int[np.ndarray, "k w"], Float[np.ndarray, "w w"]]:
    """Return the indices of at most `most` windows, and the matrix that subtracts the best cubic
    from the samples of a window. The windows are evenly spaced and overlap by at most half.
    """
    first = np.linspace(0, n - width, min(n // width * 2 - 1, most)).astype(int)
    basis = np.linalg.qr(np.linspace(-1.0, 1.0, width)[:, None] ** np.arange(4))[0]
    return first[:, None] + np.arange(width), np.eye(width) - basis @ basis.T


def integrated_autocorrelation_time(r: Float[np.ndarray, " n"]) -> float:
    """Return the integrated autocorrelation time [samples], at least 1: 1 + 2 sum of the
    autocorrelations. This number of samples carries the information of one independent sample.

    >>> import numpy as np
    >>> slow = np.repeat(np.random.default_rng(0).standard_normal(2000), 10)
    >>> round(integrated_autocorrelation_time(slow))
    10
    """
    if r.size < 4 or not np.any(r):
        return 1.0
    size = 2 ** int(np.ceil(np.log2(2 * r.size)))
    spectrum = np.abs(np.fft.rfft(r, size)) ** 2
    rho = np.fft.irfft(spectrum)[: r.size]
    rho = rho / rho[0]
    pairs = rho[: r.size // 2 * 2].reshape(-1, 2).sum(axis=1)
    end = int(np.argmax(pairs <= 0)) if np.any(pairs <= 0) else pairs.size
    return max(2.0 * float(np.sum(np.minimum.accumulate(pairs[:end]))) - 1.0, 1.0) if end else 1.0


@dataclasses.dataclass(frozen=True, eq=False)
class Ticks:
    """A position with one sample per encoder step.

    - `step`: one step of the encoder [SI]; `counts` (n - 1,): number of steps between samples,
      more than one if ticks are lost.
    - `speed` (n,): the speed at each tick [SI], > 0 in either direction.
    - `noise`: the standard deviation of the times [s].
    """

    step: float
    counts: Int[np.ndarray, " m"]
    speed: Float[np.ndarray, " n"]
    noise: float


def find_ticks(t: Float[np.ndarray, " n"], x: Float[np.ndarray, " n"]) -> Ticks | None:
    """Return the ticks of a position `x` [SI] at the times `t` [s]; None if `x` is sampled by a
    clock.

    Positions of ticks differ by equal steps in one direction, at uneven times. A few ticks may be
    lost. Then a double step takes twice as long. If the encoder is sampled, the times are even.

    >>> n = np.arange(200)
    >>> times = 10.0 * np.log(1.0 + n / 100.0)  # a speed that decays
    >>> ticks = find_ticks(times, 0.5 * n)
    >>> ticks.step, ticks.speed[[0, 100]].round(2)
    (0.5, array([ 5., 10.]))
    >>> find_ticks(0.1 * n, 0.5 * n) is None
    True
    """
    if t.size < 20:  # Fewer ticks are not enough to estimate the noise of their times.
        return None
    moved, took = np.diff(x), np.diff(t)
    step = float(np.median(moved))
    if step == 0 or np.any(moved * step <= 0):
        return None
    counts = np.rint(moved / step).astype(int)
    equal = 0.01  # [encoder steps] largest deviation of a difference from a whole number of steps
    is_equal = np.abs(moved / step - counts) <= equal
    # At least half of the intervals must be one step long. In the other intervals ticks were lost.
    if not is_equal.all() or np.mean(counts == 1) < 0.5:
        return None
    periods = took / np.median(took)
    # Times that are evenly spaced to 1 % come from a clock, not from ticks.
    if np.all(np.abs(periods - np.rint(periods)) <= 0.01):
        return None
    lost = counts > 1
    beside = 7  # [ticks] length of the window in which a cubic is fitted; its residuals are noise
    if lost.any():
        from scipy.ndimage import median_filter

        # If a tick is lost, the interval with two steps takes twice as long as its neighbours.
        if np.median((took / median_filter(took, beside))[lost]) < 1.5:
            return None
    n = np.concatenate([[0], np.cumsum(counts)])
    # In each window the times are fitted by a cubic of the counts. The residuals are the noise of
    # the times.
    count, time = _windows(n, t, beside)
    basis = np.linalg.qr((count / np.ptp(count, axis=1)[:, None])[..., None] ** np.arange(4))[0]
    left = time - np.einsum("kwi,kvi,kv->kw", basis, basis, time)
    freedom = beside - 4
    # The median of chi-square is computed by the formula of Wilson and Hilferty.
    middle = np.median(np.sum(left**2, axis=1)) / (freedom * (1 - 2 / (9 * freedom)) ** 3)
    clock = quantum(np.diff(t))  # timer period, if the times are multiples of such a period
    beats = np.diff(t) / clock if clock else np.full(1, 0.5)
    is_counted = np.abs(beats - np.rint(beats)).max() < equal
    noise = max(float(np.sqrt(middle)), is_counted * clock / np.sqrt(12.0))
    period = float(np.quantile(took / counts, 0.1))
    # The window is so wide that the speed has this accuracy. A slope over `width` ticks has the
    # standard error noise * (12 / width**3)**0.5.
    accuracy = 0.02  # largest relative error of a speed
    width = int((12.0 * (noise / period / accuracy) ** 2) ** (1 / 3)) // 2 * 2 + 1
    width = min(int(np.clip(width, *_SMOOTHED)), (t.size - 1) // 2 * 2 + 1)
    # The time of one step at each tick is the slope of a parabola in a window around the tick. This
    # slope does not depend on the middle tick. Therefore the weight of a tick does not depend on
    # its own error.
    count, time = _windows(n, t, width)
    powers = count[..., None] ** np.arange(3)
    gram = np.einsum("kwi,kwj->kij", powers, powers)
    found = np.linalg.solve(gram, np.einsum("kwi,kw->ki", powers, time)[..., None])[..., 0]
    half = width // 2
    begin, end = (0, slice(None, half)), (-1, slice(half + 1, None))
    ends = [found[i, 1] + 2 * found[i, 2] * count[i, rows] for i, rows in (begin, end)]
    smooth, local = np.concatenate([ends[0], found[:, 1], ends[1]]), np.gradient(t, n)
    # With few ticks and much noise, a parabola may have a slope of the wrong sign. The local slope
    # replaces it.
    smooth = np.where(smooth > 0.2 * local, smooth, local)
    return Ticks(abs(step), counts, abs(step) / smooth, noise)


def lost_ticks(ticks: Mapping[str, Ticks]) -> Int[np.ndarray, " k"]:
    """Return the indices of samples that are followed by more than five steps in all outputs."""
    return np.flatnonzero(np.min([one.counts for one in ticks.values()], axis=0) > GAP)


def _windows(
    n: Int[np.ndarray, " n"], t: Float[np.ndarray, " n"], width: int
) -> tuple[Float[np.ndarray, "k w"], Float[np.ndarray, "k w"]]:
    """Return counts and times in all windows of `width` ticks, relative to the middle tick."""
    counts, times = (np.lib.stride_tricks.sliding_window_view(x, width) for x in (n, t))
    middle = slice(width // 2, width // 2 + 1)
    return (counts - counts[:, middle]).astype(float), times - times[:, middle]


def find_glitches(
    t: Float[np.ndarray, " n"], x: Float[np.ndarray, " n"]
) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Return the indices of the glitches of `x` and the values there interpolated from neighbours.

    A glitch is one sample far off the cubic through its six neighbours, which lie close to this
    cubic. A kink or a step is not a glitch, since its neighbours do not lie on one cubic.
    """
    none = np.zeros(0, int), np.zeros(0)
    if t.size < 100:
        return none
    line = x[:-2] + (x[2:] - x[:-2]) * (t[1:-1] - t[:-2]) / (t[2:] - t[:-2])
    off = np.abs(x[1:-1] - line)
    noise = max(float(np.median(off)) / 0.6745 / np.sqrt(1.5), quantum(x) / np.sqrt(12.0))
    if not noise > 0:
        return none
    # Samples that deviate by more than 4 times the noise from the line through both neighbours are
    # tested further.
    at = np.flatnonzero(off > 4.0 * noise) + 1
    at = at[(at >= 3) & (at < t.size - 3)]
    beside = at[:, None] + _NEIGHBOURS
    s = t[beside] - t[at, None]
    powers = (s / np.ptp(s, axis=1)[:, None])[..., None] ** np.arange(4)
    pseudo = np.linalg.pinv(powers) if at.size else np.zeros((0, 4, 6))
    shown = np.einsum("kiw,kw->ki", pseudo, x[beside])
    left = x[beside] - np.einsum("kwi,ki->kw", powers, shown)
    error = noise * np.sqrt(1.0 + np.sum(pseudo[:, 0] ** 2, axis=1))
    # A glitch deviates by more than 8 standard errors from the cubic through its six neighbours,
    # while the neighbours are close to this cubic.
    far = np.abs(x[at] - shown[:, 0]) > 8.0 * error
    far &= np.sqrt(np.sum(left**2, axis=1) / 2.0) < 3.0 * noise
    # If more than 5 % of the samples deviate so much, they are not glitches but a motion, such as
    # pulses.
    return (at[far], shown[far, 0]) if 0 < far.sum() <= 0.05 * t.size else none


def without_glitches(record: Any) -> dict[str, Float[np.ndarray, " n"]]:
    """Return the outputs of a `Record`, with glitches interpolated from their neighbours."""
    out = {}
    for name, x in record.outputs.items():
        at, shown = record.glitches[name]
        out[name] = x.copy()
        out[name][at] = shown
    return out
