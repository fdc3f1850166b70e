"""Test guesses about columns on the recorded numbers: derivatives, units, coasting."""

import numpy as np
from jaxtyping import Float

Samples = Float[np.ndarray, " n"]

_SAME_MOTION = 0.999  # smallest correlation between a position and the integral of its own speed
_TURNING = {"rad": 1.0, "deg": np.pi / 180.0, "rev": 2.0 * np.pi}  # [rad] size of an angle unit
_MOVING = {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "in": 0.0254}  # [m] size of each unit of a distance

# smallest and largest top speed of machines that turn (True) [rad/s] and that slide (False) [m/s]
_TOP_SPEEDS = {True: (0.05, 3000.0), False: (1e-3, 20.0)}
# Unit -> smallest range (largest minus smallest value) of a recorded motion in this unit.
_LEAST_RANGES = {"rad": 0.02, "deg": 7.0, "rev": 0.1, "m": 1e-3, "mm": 2.0, "cm": 0.2, "in": 0.1}
_LARGEST_RANGES = {"m": 20.0}  # [m] range of the longest axis or rail
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}  # [s] size of each unit of time
_RATES = (4.0, 2e6)  # [Hz] lowest and highest sampling rate of data loggers
_SLOW = (0.5, 3600.0)  # lowest rate [Hz] and longest duration [s] of slow records, such as of a GPS
_DURATIONS = (0.1, 1e4)  # [s] shortest and longest duration of a record

_COASTING = 0.05  # largest rise of a coasting machine's speed, relative to the range of this speed


def time_units(values: Samples) -> tuple[str, ...]:
    """Return the units in which `values` are plausible times of a record, by sampling rate and
    duration. The most likely unit is first.

    >>> import numpy as np
    >>> time_units(np.arange(4001) * 1e-3), time_units(np.arange(4001.0))
    (('s',), ('ms',))
    """
    x = values[np.isfinite(values)]
    steps = np.diff(x)
    steps = steps[steps > 0]
    if not steps.size:
        return ("s",)
    step = float(np.mean(steps))
    found = list[str]()
    for unit, size in _TIMES.items():
        rate, duration = 1.0 / (step * size), step * size * steps.size
        slowest, longest = _SLOW if duration <= _SLOW[1] else (_RATES[0], _DURATIONS[1])
        if slowest <= rate <= _RATES[1] and _DURATIONS[0] <= duration <= longest:
            found.append(unit)
    first = "s" if step < 0.2 else "ms" if step <= 100 else "us"
    if found and first not in found:
        first = found[0]
    return (first, *(unit for unit in found if unit != first)) if found else tuple(_TIMES)


def position_units(
    t: Samples | None, x: Samples, turns: bool, angle: bool = False
) -> tuple[str, ...]:
    """Return the units in which `x` is a plausible position, the most likely one first. If no unit
    is plausible, return all units. `t`: times [s], or None; `turns`: whether the motion is a
    rotation; `angle`: whether the column's name means an angle, whose unit cannot be rev.
    """
    wide = float(np.ptp(x)) if x.size else 0.0
    low, high = _TOP_SPEEDS[turns]
    top = None if t is None else top_speed(t, x)
    known = {**(_TURNING if turns else _MOVING)}
    if angle:
        known.pop("rev", None)
    found = [
        unit
        for unit, size in known.items()
        if _LEAST_RANGES[unit] <= wide <= _LARGEST_RANGES.get(unit, np.inf)
        and (top is None or low <= top * size <= high)
    ] or [*known]
    first = ("deg" if wide > 60 else "rad") if turns else ("mm" if wide > 5 else "m")
    if first not in found:
        first = found[0]
    return (first, *(unit for unit in found if unit != first))


def top_speed(t: Samples, x: Samples) -> float:
    """Return the 99th percentile of the speed of `x`. Differences over 1/300 of the record are
    used, because noise and encoder resolution hardly affect such differences.
    """
    lag = max(1, x.size // 300)
    if x.size <= lag + 1:
        return 0.0
    rates = np.abs(x[lag:] - x[:-lag]) / np.maximum(t[lag:] - t[:-lag], 1e-300)
    return float(np.percentile(rates, 99))


def is_speed_of(t: Samples, x: Samples, other: Samples) -> bool:
    """Return True if `other` is the derivative of `x`, up to a factor and an offset."""
    return speed_scale(t, x, other) is not None


def speed_scale(t: Samples, x: Samples, other: Samples) -> float | None:
    """Return the change of `x` divided by the change of the integral of `other`; None if `other` is
    not the speed of `x`. Integrals are compared, because noise hardly affects an integral.
    """
    whole = np.isfinite(t) & np.isfinite(x) & np.isfinite(other)
    t, x, other = t[whole], x[whole], other[whole]
    if t.size < 20 or not np.ptp(x) > 0 or not np.ptp(other) > 0:
        return None
    integral = np.concatenate([[0.0], np.cumsum(0.5 * (other[1:] + other[:-1]) * np.diff(t))])
    matrix = np.stack([integral, t - t[0], np.ones(t.size)], axis=1)
    size = np.maximum(np.max(np.abs(matrix), axis=0), 1e-300)
    rest, own = (
        np.asarray(y) - matrix[:, 1:] @ np.linalg.lstsq(matrix[:, 1:], y, rcond=None)[0]
        for y in (x, integral / size[0])
    )
    power = float(np.sqrt(np.sum(rest**2) * np.sum(own**2)))
    if not power > 0 or abs(float(rest @ own)) < _SAME_MOTION * power:
        return None
    return float(rest @ own / (own @ own) / size[0])


def coasts(v: Samples) -> bool:
    """Return True if the speed `v` decreases towards 0, and does not increase again except by
    noise.

    >>> import numpy as np
    >>> t = np.linspace(0.0, 60.0, 601)
    >>> coasts(27.0 * np.exp(-t / 60.0)), coasts(np.exp(-t / 20) * np.cos(t))
    (True, False)
    """
    if v.size < 20:
        return False
    width = max(v.size // 50, 1)
    even = v[: v.size // width * width].reshape(-1, width).mean(axis=1)
    even = even if abs(even.max()) >= abs(even.min()) else -even
    first = int(np.argmax(even))  # A record may begin before the drive is switched off.
    falls, wide = even[first:], float(np.ptp(even))
    again = float(np.max(falls - np.minimum.accumulate(falls)))
    return bool(
        wide > 0
        and first <= even.size // 10
        and even.min() > -_COASTING * wide
        and again <= _COASTING * wide
        and falls[0] - falls[-1] > 0.2 * falls[0]
    )


def swings_down(x: Samples) -> bool:
    """Return True if `x` oscillates about its final value with a decreasing amplitude, like a free
    pendulum.

    >>> import numpy as np
    >>> t = np.linspace(0.0, 20.0, 2001)
    >>> swings_down(np.exp(-t / 5.0) * np.cos(3.0 * t)), swings_down(np.cos(3.0 * t))
    (True, False)
    """
    if x.size < 40:
        return False
    rest = x - np.mean(x[-x.size // 5 :])
    sizes = [float(np.ptp(part)) for part in np.array_split(rest, 4)]
    falls = all(b < 1.02 * a for a, b in zip(sizes, sizes[1:], strict=False))
    large = rest[np.abs(rest) > 0.1 * np.max(np.abs(rest))]
    crossings = np.count_nonzero(np.diff(np.sign(large)))
    return bool(falls and sizes[-1] < 0.9 * sizes[0] and crossings >= 3)
