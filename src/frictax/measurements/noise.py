"""Noise of a channel, estimated from the channel itself: standard deviation, autocorrelation time,
glitches, and noise of the times of ticks. A tick is a sample that an encoder step triggers.
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

    Cubic polynomials are fitted in short windows, and the median size of their residuals is the
    estimate. These fits separate noise from motion, because a motion is smooth from sample to
    sample except at a few kinks. The windows become wider as long as the residuals grow no faster
    than those of autocorrelated noise. If the width doubles, residuals of a random walk grow by a
    factor of 2**0.5, but residuals of a motion that is not a cubic by 2**4. The estimate is at
    least the rounding error of the sensor, 1/12**0.5 of its resolution. The estimate is too large
    if the motion is not a cubic over five samples, and too small if a filter has smoothed the
    noise. The search ends if the estimate reaches `enough`.

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
        # 200 windows are enough for an accurate median.
        wider = _beside_cubics(x, width, most=200)
        # If the window width doubles, only residuals of a motion grow by a factor above 2.5.
        if left and wider > 2.5 * left:
            break
        left = max(left, wider)
        if left >= enough:
            return left
    return max(left, quantum(x) / np.sqrt(12.0))


def noise_of_output(record: Any, name: str, enough: float = np.inf) -> float:
    """Return the standard deviation of the noise of a `Record`'s output: its `sd` or, if `sd` is
    missing, the noise of the tick times [s] or the estimate by `noise_of`.
    """
    sd = record.sd.get(name)
    if sd is not None:
        return float(np.sqrt(np.mean(np.square(sd))))
    return (
        record.ticks[name].noise if name in record.ticks else noise_of(record.outputs[name], enough)
    )


def white_noise_of(x: Float[np.ndarray, " n"]) -> float:
    """Return the standard deviation of the white part of the noise of `x`, from residuals of cubics
    in windows of five samples. Such residuals hardly contain motion. nan below 20 samples.
    """
    if x.size < 20:
        return float("nan")
    return max(_beside_cubics(x, _WIDTHS[0], x.size), quantum(x) / np.sqrt(12.0))


def white_share(correlation: Any) -> Any:
    """Return the expected square of `white_noise_of` for autocorrelated noise e[i] = c*e[i-1] +
    w[i] of variance 1. Here c is `correlation`, and w is white noise.

    The squared residuals of a cubic fit to five samples x sum to ((1, -4, 6, -4, 1) x)**2 / 70.
    """
    c = correlation
    return 1.0 + (-56.0 * c + 28.0 * c**2 - 8.0 * c**3 + c**4) / 35.0


def cutoff_of(t: Float[np.ndarray, " n"], x: Float[np.ndarray, " n"], derivative: int) -> float:
    """Return the cutoff [Hz] of the low-pass filter with the most accurate time derivative of `x`,
    of order `derivative`; infinite if `x` does not have noise.

    A filter passes noise below its cutoff and removes motion above its cutoff. Passed noise and
    removed motion are sums of the power at frequencies f with the weight f**(2 * derivative). The
    cutoff minimises three times the passed noise plus the removed motion, for white noise.

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
    # Subtract a straight line. The Fourier transform treats the signal as periodic, and the jump
    # from the last to the first sample would count as motion.
    even -= np.linspace(even[0], even[-1], n)
    window = np.hanning(n)
    power = np.abs(np.fft.rfft((even - even.mean()) * window)) ** 2 / np.sum(window**2)
    f = np.arange(power.size) * (n - 1) / (n * span)
    # Weight of passed noise. Removed motion has weight 1, because a fit corrects for this error.
    motion = 3.0
    gain = np.cumsum(((1.0 + motion) * noise**2 - power) * f ** (2 * derivative))
    # Choose a cutoff with at least four periods in the record.
    return float(max(f[int(np.argmin(gain))], 4.0 / span))


def _beside_cubics(x: Float[np.ndarray, " n"], width: int, most: int) -> float:
    """Return the standard deviation of residuals of cubics, from the median of `most` windows."""
    indices, beyond_cubic = _stretches(x.size, width, most)
    stretches = x[indices]
    # Subtract the first sample of each window, because a large offset causes rounding errors.
    left = (stretches - stretches[:, :1]) @ beyond_cubic
    return _deviation_from_median(np.einsum("ij,ij->i", left, left), width - 4)


def _deviation_from_median(squares: Float[np.ndarray, " k"], freedom: int) -> float:
    """Return the standard deviation of noise from the median of `squares`. Each entry of `squares`
    is a sum of squares of the noise with `freedom` degrees of freedom.
    """
    squares, half = np.sort(squares), squares.size // 2
    middle = (squares[half] + squares[-half - 1]) / 2
    # The formula of Wilson and Hilferty approximates the median of the chi-square distribution.
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
    """Return the integrated autocorrelation time [samples] of `r`: 1 + 2*(sum of autocorrelations),
    at least 1. This number of samples counts as one independent sample.

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
    """A position with one sample (tick) per encoder step.

    - `step`: one step of the encoder [m or rad]; `counts` (n - 1,): number of encoder steps from
      each tick to the next, more than one if ticks are lost.
    - `speed` (n,): the absolute speed at each tick [m/s or rad/s], always > 0.
    - `noise`: the standard deviation of the errors of the tick times [s].
    """

    step: float
    counts: Int[np.ndarray, " m"]
    speed: Float[np.ndarray, " n"]
    noise: float


def find_ticks(t: Float[np.ndarray, " n"], x: Float[np.ndarray, " n"]) -> Ticks | None:
    """Return the ticks of a position `x` [SI] at the times `t` [s]. Return None if a clock
    determines when `x` is sampled, or if the motion changes its direction.

    Successive ticks differ by equal position steps in one direction, at uneven times. A few ticks
    may be lost: an interval of two steps lasts twice as long. A clock takes samples at even times.

    >>> n = np.arange(200)
    >>> times = 10.0 * np.log(1.0 + n / 100.0)  # a speed that grows

    >>> ticks = find_ticks(times, 0.5 * n)
    >>> ticks.step, ticks.speed[[0, 100]].round(2)
    (0.5, array([ 5., 10.]))
    >>> print(find_ticks(0.1 * n, 0.5 * n))
    None
    """
    if t.size < 20:  # smallest number of ticks that determines the noise of their times
        return None
    moved, took = np.diff(x), np.diff(t)
    step = float(np.median(moved))
    if step == 0 or np.any(moved * step <= 0):
        return None
    counts = np.rint(moved / step).astype(int)
    equal = 0.01  # [encoder steps] largest deviation of an interval from a whole number of steps
    is_equal = np.abs(moved / step - counts) <= equal
    # Longer intervals contain lost ticks. At least half of the intervals must be one step long.
    if not is_equal.all() or np.mean(counts == 1) < 0.5:
        return None
    periods = took / np.median(took)
    # Times that are evenly spaced to 1 % come from a clock, not from ticks.
    if np.all(np.abs(periods - np.rint(periods)) <= 0.01):
        return None
    lost = counts > 1
    beside = 7  # [ticks] length of the windows in which cubics are fitted to the times
    if lost.any():
        from scipy.ndimage import median_filter

        # An interval with a lost tick takes about twice as long as its neighbours.
        if np.median((took / median_filter(took, beside))[lost]) < 1.5:
            return None
    n = np.concatenate([[0], np.cumsum(counts)])
    # Fit the times in each window by a cubic of the counts. The residuals are noise of the times.
    count, time = _windows(n, t, beside)
    basis = np.linalg.qr((count / np.ptp(count, axis=1)[:, None])[..., None] ** np.arange(4))[0]
    left = time - np.einsum("kwi,kvi,kv->kw", basis, basis, time)
    deviation = _deviation_from_median(np.sum(left**2, axis=1), beside - 4)
    clock = quantum(np.diff(t))  # timer period, if the times are multiples of such a period
    beats = np.diff(t) / clock if clock else np.full(1, 0.5)
    is_counted = np.abs(beats - np.rint(beats)).max() < equal
    noise = max(deviation, is_counted * clock / np.sqrt(12.0))
    period = float(np.quantile(took / counts, 0.1))
    # A slope over `width` ticks has the standard error noise * (12 / width**3)**0.5. Choose `width`
    # so that the relative error of the speed is at most `accuracy`.
    accuracy = 0.02
    width = int((12.0 * (noise / period / accuracy) ** 2) ** (1 / 3)) // 2 * 2 + 1
    width = min(int(np.clip(width, *_SMOOTHED)), (t.size - 1) // 2 * 2 + 1)
    # The time per encoder step at a tick is the slope of a parabola that is fitted in a window
    # around the tick. The time of the middle tick does not affect the slope. Therefore the weight
    # of the tick in a fit does not depend on the error of its time.
    count, time = _windows(n, t, width)
    powers = count[..., None] ** np.arange(3)
    gram = np.einsum("kwi,kwj->kij", powers, powers)
    found = np.linalg.solve(gram, np.einsum("kwi,kw->ki", powers, time)[..., None])[..., 0]
    half = width // 2
    begin, end = (0, slice(None, half)), (-1, slice(half + 1, None))
    ends = [found[i, 1] + 2 * found[i, 2] * count[i, rows] for i, rows in (begin, end)]
    smooth, local = np.concatenate([ends[0], found[:, 1], ends[1]]), np.gradient(t, n)
    # With few ticks and much noise, the slope of a fitted parabola may be near 0 or have the wrong
    # sign. The slope between the two neighbouring ticks is then used instead.
    smooth = np.where(smooth > 0.2 * local, smooth, local)
    return Ticks(abs(step), counts, abs(step) / smooth, noise)


def lost_ticks(ticks: Mapping[str, Ticks]) -> Int[np.ndarray, " k"]:
    """Return the indices of samples with over 5 encoder steps to the next sample in all outputs."""
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
    """Return the indices of the glitches of `x`, and values interpolated from their neighbours.

    A glitch is one sample far from the cubic through its six neighbours, which are close to this
    cubic. A kink or a step is not a glitch, because its neighbours do not lie on one cubic.
    """
    none = np.zeros(0, int), np.zeros(0)
    if t.size < 100:
        return none
    line = x[:-2] + (x[2:] - x[:-2]) * (t[1:-1] - t[:-2]) / (t[2:] - t[:-2])
    off = np.abs(x[1:-1] - line)
    noise = max(float(np.median(off)) / 0.6745 / np.sqrt(1.5), quantum(x) / np.sqrt(12.0))
    if not noise > 0:
        return none
    # Test only samples more than 4 standard deviations of noise off the line through neighbours.
    at = np.flatnonzero(off > 4.0 * noise) + 1
    at = at[(at >= 3) & (at < t.size - 3)]
    beside = at[:, None] + _NEIGHBOURS
    s = t[beside] - t[at, None]
    powers = (s / np.ptp(s, axis=1)[:, None])[..., None] ** np.arange(4)
    pseudo = np.linalg.pinv(powers) if at.size else np.zeros((0, 4, 6))
    shown = np.einsum("kiw,kw->ki", pseudo, x[beside])
    left = x[beside] - np.einsum("kwi,ki->kw", powers, shown)
    error = noise * np.sqrt(1.0 + np.sum(pseudo[:, 0] ** 2, axis=1))
    # A glitch is more than 8 standard errors off the cubic through its six neighbours, and the
    # neighbours are close to the cubic.
    far = np.abs(x[at] - shown[:, 0]) > 8.0 * error
    far &= np.sqrt(np.sum(left**2, axis=1) / 2.0) < 3.0 * noise
    # If more than 5 % of the samples look like glitches, the motion itself consists of pulses.
    return (at[far], shown[far, 0]) if 0 < far.sum() <= 0.05 * t.size else none


def without_glitches(record: Any) -> dict[str, Float[np.ndarray, " n"]]:
    """Return the outputs of a `Record`, with glitches interpolated from their neighbours."""
    out = {}
    for name, x in record.outputs.items():
        at, shown = record.glitches[name]
        out[name] = x.copy()
        out[name][at] = shown
    return out
