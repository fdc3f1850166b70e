"""The noise of a channel, read from the channel itself, and how long a series remembers."""

import functools
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from .diagnostics import quantum

_WIDTHS = (5, 9, 17, 33, 65)  # samples of a stretch
_MOTION = 2.5  # times as much over a stretch twice as wide: motion, for no noise grows so fast
_STRETCHES = 200  # of each width; more tell no more of a median
_WORTH = 3.0  # times the noise: motion that a filter takes can be put back (`without_rounding`)
_PERIODS = 4.0  # in a record, at least, of what is left of it


def noise_of(x: Float[np.ndarray, " n"], enough: float = np.inf) -> float:
    """The standard deviation of the noise of `x`, evenly sampled, in its unit; nan of fewer than 20
    samples, which cannot tell.

    What cubics leave of short stretches, the median over the stretches: a machine moves smoothly
    from sample to sample, but for a few kinks, and noise does not. Stretches become wider as long
    as what is left grows no faster than noise that remembers its past (a random walk's grows by
    2**0.5 when the width doubles, a cubic's error of a motion by 2**4). Never less than steps of
    the sensor's resolution are worth, 1/12**0.5 of one. Of a motion sampled so coarsely that
    five samples are no cubic it is what that motion leaves, and too large; of errors that a filter
    has made smooth it is too small. Where it is `enough` or more, no more is found of it.

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
        wider = _beside_cubics(x, width, _STRETCHES)
        if left and wider > _MOTION * left:
            break
        left = max(left, wider)
        if left >= enough:
            return left
    return max(left, quantum(x) / np.sqrt(12.0))


def noise_of_output(record: Any, name: str, enough: float = np.inf) -> float:
    """The standard deviation of the noise of an output of a `Record`: that given by `sd`, else that
    which `noise_of` reads; of ticks that of their times [s].
    """
    sd = record.sd.get(name)
    if sd is not None:
        return float(np.sqrt(np.mean(np.square(sd))))
    return (
        record.ticks[name].noise if name in record.ticks else noise_of(record.outputs[name], enough)
    )


def white_noise_of(x: Float[np.ndarray, " n"]) -> float:
    """Likewise, of the noise that remembers nothing: what cubics leave of the shortest stretches,
    where motion hardly adds to it.
    """
    if x.size < 20:
        return float("nan")
    return max(_beside_cubics(x, _WIDTHS[0], x.size), quantum(x) / np.sqrt(12.0))


def cutoff_of(t: Float[np.ndarray, " n"], x: Float[np.ndarray, " n"], derivative: int) -> float:
    """The frequency above which `x` is noise more than motion [Hz], of which a filter leaves the
    best `derivative`; infinite where there is no noise.

    Up to a frequency f a filter lets noise through, and from there on it takes motion away: their
    squares are sums over the spectrum of x, weighed by f**2 for each derivative. Least together,
    motion counting a third, they are at f; the noise's own spectrum is taken as flat. `t` [s],
    increasing; `x` in any unit.

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
    even -= np.linspace(even[0], even[-1], n)  # a jump from end to beginning is no motion
    window = np.hanning(n)
    power = np.abs(np.fft.rfft((even - even.mean()) * window)) ** 2 / np.sum(window**2)
    f = np.arange(power.size) * (n - 1) / (n * span)
    gain = np.cumsum(((1.0 + _WORTH) * noise**2 - power) * f ** (2 * derivative))
    return float(max(f[int(np.argmin(gain))], _PERIODS / span))


def _beside_cubics(x: Float[np.ndarray, " n"], width: int, most: int) -> float:
    """The standard deviation of what cubics leave of stretches of so many samples, the median of
    `most` of them.
    """
    stretches = x[_stretches(x.size, width, most)]
    # a cubic has an offset of its own: one of the channel would leave rounding alone
    left = (stretches - stretches[:, :1]) @ _beyond_cubic(width)
    squares = np.sort(np.einsum("ij,ij->i", left, left))
    half = squares.size // 2
    freedom = width - 4
    # the median of chi-square after Wilson and Hilferty
    middle = (squares[half] + squares[-half - 1]) / 2
    return float(np.sqrt(middle / (freedom * (1.0 - 2.0 / (9.0 * freedom)) ** 3)))


@functools.lru_cache(maxsize=8)
def _stretches(n: int, width: int, most: int) -> Int[np.ndarray, "k w"]:
    """The samples of at most so many stretches, which overlap by half or stand apart evenly."""
    first = np.linspace(0, n - width, min(n // width * 2 - 1, most)).astype(int)
    return first[:, None] + np.arange(width)


@functools.cache
def _beyond_cubic(width: int) -> Float[np.ndarray, "k k"]:
    """What takes the best cubic away from `width` samples."""
    basis = np.linalg.qr(np.linspace(-1.0, 1.0, width)[:, None] ** np.arange(4))[0]
    return np.eye(width) - basis @ basis.T


def memory(r: Float[np.ndarray, " n"]) -> float:
    """1 + 2 sum of the autocorrelations, at least 1: how many samples tell as much as one
    independent one.

    >>> import numpy as np
    >>> slow = np.repeat(np.random.default_rng(0).standard_normal(2000), 10)
    >>> round(memory(slow))
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
