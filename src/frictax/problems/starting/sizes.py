"""Numbers that a problem file begins with: how fast the machine moves, and start values."""

import dataclasses

import numpy as np

from frictax.measurements.filters import smooth
from frictax.measurements.units import FORCE, POSITION, TIME, VELOCITY

from .draft import Draft
from .roles import Chosen

_KNOWN = {**TIME, **POSITION, **VELOCITY, **FORCE}


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What the numbers of a record suggest.

    - `rate`, `duration`, `fast` [Hz, s, Hz]: of its samples, of itself, and below which nine tenths
      of the drive's, or the motion's, power lie.
    - `inertia`, `dry`, `viscous`, `gravity`: least squares of Newton's law on the smoothed motion,
      none below a small share of what drives.
    - `cutoff` [Hz] of filters and `window` [s].
    """

    rate: float
    duration: float
    fast: float
    inertia: float
    dry: float
    viscous: float
    gravity: float

    @property
    def cutoff(self) -> float:
        """Thirty times as fast as the motion, and an eighth of the sampling rate at most."""
        return _round(min(30.0 * self.fast, self.rate / 8.0))

    @property
    def window(self) -> float:
        """A third of the fastest period: not so long that errors of force add up, and a tenth of
        the record at most.
        """
        return _round(max(min(0.33 / self.fast, self.duration / 10.0), 12.0 / self.rate))


def sizes(draft: Draft) -> Sizes:
    """What the numbers of the draft's record suggest."""
    t, seen, drive = _series(draft)
    step = (t[-1] - t[0]) / (t.size - 1)
    rate, duration = 1.0 / step, float(t[-1] - t[0])
    moved = seen if draft.columns.get("position") else np.cumsum(seen) * step
    speed = np.gradient(moved, step)
    fast = _fast(drive if drive is not None and np.ptp(drive) > 0 else speed, rate)
    fast = float(np.clip(fast, 2.0 / duration, rate / 30.0))
    inside = slice(t.size // 20, -max(t.size // 20, 1))
    motion = smooth(t, moved, min(10.0 * fast, rate / 8.0))
    s, v, a = motion.x[inside], motion.v[inside], motion.a[inside]
    u = None if drive is None else smooth(t, drive, 10.0 * fast).x[inside]
    numbers = _newton(draft, s, v, a, u, rate)
    return Sizes(rate, duration, fast, *(float(_round(x)) for x in numbers))


def _newton(
    draft: Draft,
    s: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    drive: np.ndarray | None,
    rate: float,
) -> tuple[float, float, float, float]:
    """Inertia, dry and viscous friction, torque of gravity."""
    if draft.machine == "pendulum" and drive is None:
        return _of_decay(draft.constants.get("mgl", 1.0), s, rate)
    if drive is None or draft.machine == "brake":
        return 1.0, 1.0, 0.0, 0.0
    if draft.machine == "servo":  # by the force that the known controller must have given
        kp, kv = draft.constants.get("kp", 1.0), draft.constants.get("kv", 1.0)
        return _squares(kv * (kp * (drive - s) - v), s, v, a, False)
    return _squares(drive, s, v, a, draft.machine == "pendulum")


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
    u: np.ndarray, s: np.ndarray, v: np.ndarray, a: np.ndarray, hangs: bool
) -> tuple[float, float, float, float]:
    columns = [a, np.sign(v), v, *([np.sin(s)] if hangs else [])]
    scale = [max(float(np.sqrt(np.mean(c**2))), 1e-30) for c in columns]
    matrix = np.stack([c / x for c, x in zip(columns, scale, strict=True)], axis=1)
    found = np.linalg.lstsq(matrix, u, rcond=None)[0]
    size = max(float(np.sqrt(np.mean(u**2))), 1e-30)
    least = (0.1, 0.05, 0.0, 0.1)[: found.size]  # of the size of what drives
    shares = [max(float(x), y * size) for x, y in zip(found, least, strict=True)]
    inertia, dry, viscous, *gravity = (x / y for x, y in zip(shares, scale, strict=True))
    return inertia, dry, viscous, gravity[0] if hangs else 0.0


def _series(draft: Draft) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
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
    return even, np.interp(even, t, y), None if drive is None else np.interp(even, *of(drive))


def _size(column: Chosen, draft: Draft) -> float:
    """What one of the column's unit is in SI."""
    if column.per_turn is not None:
        return 2 * np.pi / column.per_turn
    if column.role == "current":
        return draft.gain
    return _KNOWN[column.unit].si if column.unit in _KNOWN else 1.0


def _fast(x: np.ndarray, rate: float) -> float:
    """Below which nine tenths of a signal's power lie [Hz]."""
    power = np.abs(np.fft.rfft((x - np.mean(x)) * np.hanning(x.size))) ** 2
    share = np.cumsum(power) / max(float(np.sum(power)), 1e-300)
    return float(np.fft.rfftfreq(x.size, 1.0 / rate)[np.searchsorted(share, 0.9)])


def _round(x: float) -> float:
    """To two digits."""
    return float(f"{x:.2g}")
