"""Numbers that a problem file begins with: how fast the machine moves, and start values."""

import dataclasses

import numpy as np

from frictax.measurements.filters import smooth
from frictax.measurements.units import FORCE, POSITION, TIME, VELOCITY

from .draft import COASTING, Draft
from .roles import COUNTS, Chosen

_LEAST_SWING = 0.5  # rad: an arm that moves less shows no sine
_FEWEST_REVERSALS = 3
_MANY = 60_000  # samples: a fit of more takes minutes
_ENOUGH = 20_000  # samples that a decimated record keeps at least
_A_PERIOD = 100.0  # samples in a period of the fastest motion that it keeps at least
_KNOWN = {**TIME, **POSITION, **VELOCITY, **FORCE}


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Properties of a record, estimated from its numbers.

    - `rate`, `duration` [Hz, s]: of its samples, and of itself.
    - `fast`, `slow` [Hz]: below which nine tenths of the drive's power, or the motion's, lie, and
      below which a twentieth of the motion's does; white noise is left out.
    - `inertia`, `dry`, `viscous`, `gravity`, `offset`: least squares of Newton's law on the
      smoothed motion, none but the offset below a small share of what drives.
    - `cutoff` [Hz] of filters and `window` [s].
    """

    rate: float
    duration: float
    fast: float
    slow: float
    inertia: float
    dry: float
    viscous: float
    gravity: float
    offset: float

    @property
    def decimate(self) -> int:
        """Return n to keep every n-th sample: 1 unless a record of more than `_MANY` samples has a
        rate far above the motion.
        """
        if self.rate * self.duration < _MANY:
            return 1
        enough = max(_A_PERIOD * self.fast, _ENOUGH / self.duration)
        return max(round(self.rate / enough), 1)

    @property
    def cutoff(self) -> float:
        """Thirty times as fast as the motion, and an eighth of the sampling rate at most."""
        return _round(min(30.0 * self.fast, self.rate / self.decimate / 8.0))

    @property
    def window(self) -> float:
        """A third of the fastest period, so that errors of force do not add up; but a quarter of
        the slowest at least, and a tenth of the record at most.
        """
        long = max(0.33 / self.fast, 0.25 / self.slow)
        return _round(max(min(long, self.duration / 10.0), 12.0 * self.decimate / self.rate))


def sizes(draft: Draft) -> Sizes:
    """Return the properties of the draft's record."""
    t, seen, drive = series(draft)
    step = (t[-1] - t[0]) / (t.size - 1)
    rate, duration = 1.0 / step, float(t[-1] - t[0])
    is_position = "position" in draft.columns
    moved = seen if is_position else np.cumsum(seen) * step
    power = _power(np.gradient(moved, step), 2 if is_position else 0)
    pushed = drive is not None and np.ptp(drive) > 0
    driven = power if not pushed else _power(drive, 0)  # pyright: ignore
    fast = float(np.clip(_quantile(driven, 0.9) * rate, 2.0 / duration, rate / 30.0))
    slow = float(np.clip(_quantile(power, 0.05) * rate, 2.0 / duration, fast))
    inside = slice(t.size // 20, -max(t.size // 20, 1))
    motion = smooth(t, moved, min(10.0 * fast, rate / 8.0))
    s, v, a = motion.x[inside], motion.v[inside], motion.a[inside]
    u = None if drive is None else smooth(t, drive, min(10.0 * fast, rate / 3.0)).x[inside]
    numbers = _newton(draft, s, v, a, u, rate)
    return Sizes(rate, duration, fast, slow, *(float(_round(x)) for x in numbers))


def has_gravity(draft: Draft) -> bool:
    """Return whether the machine is an arm rather than a rotor: a torque over the sine of the angle
    explains most of what inertia, friction and an offset do not, and a parabola explains less.
    """
    position = draft.columns.get("position")
    if draft.drive is None or position is None or position.unit in COUNTS and not position.per_turn:
        return False
    t, s, u = series(draft)
    if u is None or np.ptp(s) < _LEAST_SWING:
        return False
    s, v, a, pushed = _smoothed(t, s, u, True)
    way = np.sign(v) * (np.abs(v) > 0.02 * np.max(np.abs(v)))
    if np.count_nonzero(np.diff(way[way != 0])) < _FEWEST_REVERSALS:
        return False
    plain = [a, way, v, np.ones(s.size)]

    def rest(*more: np.ndarray) -> float:
        matrix = np.stack([*plain, *more], axis=1)
        matrix = matrix / np.maximum(np.max(np.abs(matrix), axis=0), 1e-300)
        return float(
            np.sum((pushed - matrix @ np.linalg.lstsq(matrix, pushed, rcond=None)[0]) ** 2)
        )

    without, sine, parabola = rest(), rest(np.sin(s), np.cos(s)), rest(s, s * s)
    much = without > 1e-3 * np.sum((pushed - np.mean(pushed)) ** 2)
    return bool(much and sine < 0.3 * without and sine < parabola)


def _smoothed(
    t: np.ndarray, x: np.ndarray, u: np.ndarray, is_position: bool
) -> tuple[np.ndarray, ...]:
    """Return position, speed, acceleration and drive without the ends of the record, smoothed at
    five times the frequency of the motion; `is_position`: whether `x` was measured, and is not the
    integral of a speed.
    """
    rate = (t.size - 1) / float(t[-1] - t[0])
    power = _power(np.gradient(x, 1.0 / rate), 2 if is_position else 0)
    fast = float(np.clip(_quantile(power, 0.9) * rate, 2.0 / (t[-1] - t[0]), rate / 30.0))
    cutoff, ends = min(5.0 * fast, rate / 8.0), max(t.size // 20, 1)
    motion, drive = smooth(t, x, cutoff), smooth(t, u, cutoff).x
    return tuple(y[ends:-ends] for y in (motion.x, motion.v, motion.a, drive))


def drive_brakes(draft: Draft) -> bool:
    """Return whether the drive takes energy from the machine and accelerates it against its own
    sign: its sign, or that of the motion, is the other one.
    """
    t, s, u = series(dataclasses.replace(draft, reversed=False))
    if u is None or not np.ptp(u) > 0 or not np.ptp(s) > 0:
        return False
    is_position = "position" in draft.columns
    moved = s if is_position else np.cumsum(s) * (t[-1] - t[0]) / (t.size - 1)
    s, v, a, pushed = _smoothed(t, moved, u, is_position)
    turns = [np.sin(s), np.cos(s)]
    matrix = np.stack([a, np.sign(v), v, np.ones(v.size), *(turns if draft.turns else [])], axis=1)
    matrix /= np.maximum(np.max(np.abs(matrix), axis=0), 1e-300)
    numbers, left = np.linalg.lstsq(matrix, pushed, rcond=None)[:2]
    explained = left.size and left[0] < 0.2 * np.sum((pushed - np.mean(pushed)) ** 2)
    return bool(explained and numbers[0] < 0 and np.mean(pushed * v) < 0)


def _newton(
    draft: Draft,
    s: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    drive: np.ndarray | None,
    rate: float,
) -> tuple[float, float, float, float, float]:
    """Inertia, dry and viscous friction, torque of gravity, and the angle that hangs at phi = 0."""
    if draft.machine in COASTING:
        inertia = draft.constants.get(COASTING[draft.machine], 1.0)
        drop = max(float(np.abs(v[0]) - np.abs(v[-1])), 1e-3 * float(np.max(np.abs(v))))
        mean = inertia * drop * rate / max(v.size - 1, 1)
        return inertia, 0.5 * mean, 0.5 * mean / max(float(np.mean(np.abs(v))), 1e-30), 0.0, 0.0
    if draft.machine == "pendulum" and drive is None:
        return (*_of_decay(draft.constants.get("mgl", 1.0), s, rate), 0.0)
    if drive is None or draft.machine == "brake":
        return 1.0, 1.0, 0.0, 0.0, 0.0
    if draft.machine == "servo":  # by the force that the known controller must have given
        kp, kv = draft.constants.get("kp", 1.0), draft.constants.get("kv", 1.0)
        return _squares(kv * (kp * (drive - s) - v), s, v, a, None)
    hangs = {"pendulum": "down", "arm": "anywhere"}.get(draft.machine)
    return _squares(drive, s, v, a, hangs)


def _of_decay(gravity: float, s: np.ndarray, rate: float) -> tuple[float, float, float, float]:
    """By the period of an arm that swings freely, and by what it loses a swing: 4*dry/gravity."""
    swing = np.abs(np.fft.rfft((s - s[-1]) * np.hanning(s.size)))
    swing[0] = 0.0
    period = s.size / rate / max(int(np.argmax(swing)), 1)
    size = np.abs(s - np.mean(s[-max(s.size // 20, 1) :]))
    moving = np.flatnonzero(size > 0.1 * np.max(size))
    swings = max(moving[-1] / rate / period, 0.5)
    dry = gravity * np.max(size) / (4.0 * swings)
    return gravity * (period / (2 * np.pi)) ** 2, dry, 0.0, gravity


def _squares(
    u: np.ndarray, s: np.ndarray, v: np.ndarray, a: np.ndarray, hangs: str | None
) -> tuple[float, float, float, float, float]:
    """`hangs`: where an arm hangs at rest, "down" at the angle 0, or "anywhere"; None without
    gravity.
    """
    gravity = {"down": [np.sin(s)], "anywhere": [np.sin(s), np.cos(s)]}.get(hangs or "", [])
    columns = [a, np.sign(v), v, *gravity]
    scale = [max(float(np.sqrt(np.mean(c**2))), 1e-30) for c in columns]
    matrix = np.stack([c / x for c, x in zip(columns, scale, strict=True)], axis=1)
    found = np.linalg.lstsq(matrix, u, rcond=None)[0]
    size = max(float(np.sqrt(np.mean(u**2))), 1e-30)
    inertia, dry, viscous = (
        max(float(x), y * size) / z
        for x, y, z in zip(found, (0.1, 0.05, 0.0), scale, strict=False)  # shares of what drives
    )
    if hangs != "anywhere":
        down = max(float(found[3]), 0.1 * size) / scale[3] if gravity else 0.0
        return inertia, dry, viscous, down, 0.0
    sine, cosine = found[3] / scale[3], found[4] / scale[4]
    weight = max(float(np.hypot(sine, cosine)), 0.1 * size)
    return inertia, dry, viscous, weight, float(np.arctan2(cosine, sine))


def series(draft: Draft) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Times [s], motion and drive [SI] on an even grid."""
    out, drive = draft.output, draft.drive
    assert out is not None
    values, time = draft.shape.values, draft.columns.get("time")

    def of(column: Chosen) -> tuple[np.ndarray, np.ndarray]:
        y = values[:, column.number - 1]
        clock = column.clock or (None if time is None else time.number)
        if clock is None:
            assert draft.rate is not None
            t = np.arange(y.size) / draft.rate
        else:
            unit = draft.shape.units[clock - 1] if column.clock else None
            size = _KNOWN[unit or "s"].si if column.clock else _KNOWN[time.unit].si  # pyright: ignore
            t = size * values[:, clock - 1]
        whole = np.isfinite(t) & np.isfinite(y)
        return t[whole], y[whole] * _size(column, draft)

    t, y = of(out)
    if t.size < 8:
        raise ValueError(
            f"{draft.file.name} has {t.size} rows with both time and {out.label}. Check which"
            " columns these are."
        )
    even = np.linspace(t[0], t[-1], t.size)
    sign = -1.0 if draft.reversed else 1.0
    return (
        even, np.interp(even, t, y), None if drive is None else sign * np.interp(even, *of(drive))
    )  # fmt: skip


def _size(column: Chosen, draft: Draft) -> float:
    """What one of the column's unit is in SI."""
    if column.per_turn is not None:
        return 2 * np.pi / column.per_turn
    if column.factor is not None and column.role != "current":
        return column.factor * _KNOWN[column.unit].si
    if column.role == "current":
        return draft.gain
    return _KNOWN[column.unit].si if column.unit in _KNOWN else 1.0


def _power(x: np.ndarray, rise: int) -> np.ndarray:
    """The power of a signal by frequency, less that of white noise: noise whose power rises with
    the `rise`-th power of the frequency, estimated from the upper half of the frequencies.
    """
    power = np.abs(np.fft.rfft((x - np.mean(x)) * np.hanning(x.size))) ** 2
    # central differences of white noise have the gain sin(2 pi f)
    shape = np.sin(2 * np.pi * np.linspace(0.0, 0.5, power.size)) ** rise
    half = slice(power.size // 2, -max(power.size // 20, 1))
    floor = np.median(power[half]) / max(np.median(shape[half]), 1e-300) / np.log(2)
    return np.maximum(power - 3.0 * floor * shape, 0.0)


def _quantile(power: np.ndarray, share: float) -> float:
    """The frequency, in samples, below which that share of the power lies."""
    total = np.cumsum(power) / max(float(np.sum(power)), 1e-300)
    return 0.5 * float(np.searchsorted(total, share)) / max(power.size - 1, 1)


def _round(x: float) -> float:
    """To two digits."""
    return float(f"{x:.2g}")
