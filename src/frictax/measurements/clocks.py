"""Resample channels to the times of a record, and thin out inputs without changing the impulse."""

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from frictax.text import amount

from .diagnostics import gaps
from .reading.tables import Table


@dataclasses.dataclass(frozen=True)
class Clock:
    """A time column: `times` (n,), length of their unit in s (`size`), and name of the column.

    `since`: the start of counting ("1970", "midnight", or "0" for other numbers), and the exact
    time since then [s] at which `times` is 0.
    """

    times: np.ndarray
    size: float
    name: str
    since: tuple[str, Fraction] = ("0", Fraction(0))


@dataclasses.dataclass(frozen=True)
class Channel:
    """One recorded channel: `kind` is "inputs" or "outputs"; `sd` is one number, one for each
    sample, or None; `clock` is the channel's own clock, or None for the clock of the record.
    """

    name: str
    kind: str
    values: np.ndarray
    sd: Any
    clock: Clock | None


@dataclasses.dataclass
class Made:
    """All channels after resampling to the same times, in their recorded units."""

    t: np.ndarray
    place: Callable[[int], str]
    inputs: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    outputs: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    sd: dict[str, Any] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()


def resample_channels(
    table: Table, base: Clock, channels: list[Channel], *, hold: bool, drop: bool, own: bool
) -> Made:
    """Return the channels at the times of the clock `base`.

    With `drop`, rows with missing numbers are left out. `own`: True if a channel has its own clock.
    If `own` is True, a clock ignores rows in which its time and all of its channels are empty.
    """
    shared = [c for c in channels if c.clock is None]
    if not (drop or own):
        made = Made(base.times, table.place)
        for c in shared:
            getattr(made, c.kind)[c.name] = c.values
            if c.sd is not None:
                made.sd[c.name] = c.sd
        return made
    rows, notes = _rows(table, base, shared, drop, own)
    t = base.times[rows]
    resampled = dict[str, tuple[np.ndarray, Any]]()
    low, high, zeros = -np.inf, np.inf, dict([base.since])
    for c in channels:
        if c.clock is None:
            resampled[c.name] = c.values[rows], _at(c.sd, rows)
            there = np.isfinite(base.times) & np.isfinite(c.values)
            fine = rows[0] + np.flatnonzero(there[rows[0] : rows[-1] + 1])
            times, on = base.times[fine], np.searchsorted(fine, rows)
            # Linear interpolation over a few left-out samples of an input is good enough.
            few = 0 if hold else 0.1 * fine.size
            if c.kind == "inputs" and fine.size > rows.size + few and np.all(np.diff(times) > 0):
                thin = held_means if hold else nearest_line
                resampled[c.name] = thin(times, c.values[fine], on), None
                notes.append(
                    f"Input {c.name!r} of {table.source} has {fine.size - rows.size} samples in"
                    " rows that are left out. Its other values change as by `Record.decimate`, so"
                    " its impulse stays."
                )
            continue
        start, zero = c.clock.since
        after = zero - zeros.setdefault(start, zero)
        after -= 86400 * round(after / 86400) if start == "midnight" else 0
        clock = dataclasses.replace(c.clock, times=c.clock.times + float(after) / c.clock.size)
        moved = dataclasses.replace(c, clock=clock)
        resampled[c.name], times, more = _resample(table, moved, base.size * t, hold, drop)
        if start != base.since[0]:
            notes.append(
                f"The clock {clock.name!r} of {table.source} and the clock of the record do not"
                " count from one date. 0 s of both is taken as one time, and it is the first of"
                " dates. Give both clocks as dates or both as seconds if this is wrong."
            )
        notes += more
        low, high = max(low, times[0]), min(high, times[-1])
    inside = np.flatnonzero((base.size * t >= low) & (base.size * t <= high))
    if own and inside.size < t.size:
        if inside.size < 4:
            raise ValueError(
                f"The clocks of {table.source} have {inside.size} times of {base.name!r} in common:"
                f" it runs from {base.size * t[0]:g} s to {base.size * t[-1]:g} s, the others"
                f" together from {low:g} s to {high:g} s. Check which clock is whose, and its unit."
            )
        notes.append(
            f"The clocks of {table.source} have {base.size * t[inside[0]]:.6g} s to"
            f" {base.size * t[inside[-1]]:.6g} s in common: the {t.size - inside.size} samples"
            " outside are left out."
        )
    made = Made(t[inside], lambda i: table.place(int(rows[inside][i])), notes=tuple(notes))
    for c in channels:
        values, sd = resampled[c.name]
        getattr(made, c.kind)[c.name] = values[inside]
        if sd is not None:
            made.sd[c.name] = _at(sd, inside)
    return made


def _rows(
    table: Table, clock: Clock, channels: list[Channel], drop: bool, own: bool
) -> tuple[np.ndarray, list[str]]:
    """Return the rows with numbers in all columns of a clock, and notes on the omitted rows."""
    columns = {f"column {clock.name!r}": clock.times}
    columns |= {f"channel {c.name!r}": c.values for c in channels}
    columns |= {
        f"sd of {c.name!r}": c.sd
        for c in channels
        if isinstance(c.sd, np.ndarray) and np.ndim(c.sd) == 1
    }
    sizes = {label: np.size(values) for label, values in columns.items()}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{label} {size}" for label, size in sizes.items())
        raise ValueError(
            f"Channels of {table.source} on one clock must have as many samples as it, got {told}."
            " Give a channel its own clock as time=... of its `Column`."
        )
    missing = np.array([np.isnan(values) for values in columns.values()])
    none, some = missing.all(axis=0), missing.any(axis=0)
    partly = np.flatnonzero(some & ~none if own else some)
    if partly.size and not drop:
        i = int(partly[0])
        label = next(name for name, lacks in zip(columns, missing[:, i], strict=True) if lacks)
        raise ValueError(
            f"{table.source} has no number for {label} in {table.place(i)}, and"
            f" {partly.size - 1} more such rows. Give drop_missing=True to leave them out."
        )
    note = []
    if partly.size:
        note.append(
            f"{partly.size} of {some.size} rows of {table.source} have no number, the first"
            f" {table.place(int(partly[0]))}: they are left out."
        )
    rows = np.flatnonzero(~some)
    if rows.size < 2:
        raise ValueError(
            f"{table.source} has {rows.size} whole rows on the clock {clock.name!r}. Check which"
            " columns belong together."
        )
    return rows, note


def _resample(
    table: Table, channel: Channel, t: Float[np.ndarray, " n"], hold: bool, drop: bool
) -> tuple[tuple[np.ndarray, Any], np.ndarray, list[str]]:
    """Resample a channel with its own clock to the times `t` [s]. The impulse (integral over time)
    of an input stays the same; an output is interpolated linearly. Return the values and standard
    deviation at `t`, the times of the channel's clock [s], and notes.
    """
    assert channel.clock is not None
    kept, notes = _rows(table, channel.clock, [channel], drop, True)
    times, values = channel.clock.times[kept] * channel.clock.size, channel.values[kept]
    this = f"Channel {channel.name!r} on its clock {channel.clock.name!r} of {table.source}"
    step, at = float(np.median(np.diff(times))), float(np.median(np.diff(t)))
    if channel.kind == "outputs" and step > 1.01 * at:
        notes.append(
            f"{this} has a sample every {amount(step, 's')}, but the record has one every"
            f" {amount(at, 's')}. Values between its samples are interpolated, not measured. Take"
            " its clock as `time`."
        )
    wide = gaps(times)
    if wide.size:
        i = int(wide[np.argmax(np.diff(times)[wide])])
        notes.append(
            f"{this} has {wide.size} gaps, the longest of {times[i + 1] - times[i]:.3g} s at"
            f" {times[i]:.6g} s. It is interpolated linearly there. If this is wrong, trim the"
            " record."
        )
    back = np.flatnonzero(np.diff(times) <= 0)
    if back.size:
        i = int(back[0])
        raise ValueError(
            f"The clock {channel.clock.name!r} of {table.source} must increase, got"
            f" {times[i + 1]:.9g} s after {times[i]:.9g} s. Sort its rows, or cut where it starts"
            " again."
        )
    sd = _at(channel.sd, kept)
    if isinstance(sd, np.ndarray):
        sd = np.interp(t, times, sd)
    if channel.kind == "outputs":
        return (np.interp(t, times, values), sd), times, notes
    union = np.union1d(times, t)
    union = union[(union >= t[0]) & (union <= t[-1])]
    on = np.searchsorted(union, t)
    if not hold:
        return (nearest_line(union, np.interp(union, times, values), on), sd), times, notes
    last = np.clip(np.searchsorted(times, union, side="right") - 1, 0, None)
    return (held_means(union, values[last], on), sd), times, notes


def _at(sd: Any, rows: np.ndarray) -> Any:
    return sd[rows] if isinstance(sd, np.ndarray) and sd.ndim else sd


# Unit -> number of units in 1 s. The years 2001 to 2096 are 1e9 s to 4e9 s after 1970.
_EPOCHS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def epoch_unit(times: np.ndarray) -> str | None:
    """Return the unit of times since 1970, found from their size; None for other times.

    >>> [epoch_unit(np.array([x])) for x in (1.7e18, 1.7e15, 1.7e12, 1.7e9, 12.5)]
    ['ns', 'us', 'ms', 's', None]
    """
    x = np.asarray(times, dtype=float)
    x = x[np.isfinite(x)]
    if not x.size:
        return None
    low, high = float(np.min(x)), float(np.max(x))
    return next(
        (unit for unit, size in _EPOCHS.items() if 1e9 * size <= low and high < 4e9 * size), None
    )


def mean_rate(times: np.ndarray) -> float:
    """Return the mean number of samples per unit of `times`, which may repeat. The rate is the
    slope of a fitted line, rounded to three digits if this changes it by less than 0.2 %.

    >>> mean_rate(0.002 * (np.arange(400) // 2))
    1000.0
    """
    x = times[np.isfinite(times)]
    away = x - x.mean()
    rate = float(away @ np.arange(x.size)) / float(away @ away)
    near = float(f"{rate:.3g}")
    return near if abs(near - rate) < 2e-3 * rate else rate


def held_means(
    t: Float[np.ndarray, " n"], u: Float[np.ndarray, " n"], kept: Int[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    """Return the mean of the held input `u` over each interval between kept samples (with indices
    `kept`). The impulse, the integral of `u` over time up to a kept time, does not change.

    >>> held_means(
    ...     np.array([0.0, 1.0, 2.0, 3.0, 4.0]),
    ...     np.array([1.0, 3.0, 5.0, 5.0, 7.0]),
    ...     np.array([0, 2, 4]),
    ... )
    array([2., 5., 7.])
    """
    impulse = np.concatenate([[0.0], np.cumsum(u[:-1] * np.diff(t))])
    return np.append(np.diff(impulse[kept]) / np.diff(t[kept]), u[kept[-1]])


def nearest_line(
    t: Float[np.ndarray, " n"], u: Float[np.ndarray, " n"], kept: Int[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    """Return input values at the kept times. Their linear interpolation is the least-squares fit
    over time to the linear interpolation of all samples.

    The integrals of the input u and of t*u over the record do not change. If u is linear between
    kept times, the result is exact. The integral of u up to a kept time can change: values that
    preserve it oscillate from sample to sample. The values u_k solve ∫h_j u = Σ_k ∫h_j h_k u_k.
    Function h_k is 1 at kept time k, 0 at the other kept times, and linear between them.

    >>> nearest_line(np.arange(5.0), 2 * np.arange(5.0), np.array([0, 2, 4])).round(12)
    array([0., 4., 8.])
    """
    from scipy.linalg import solve_banded

    nodes, t, u = t[kept], t[: kept[-1] + 1], u[: kept[-1] + 1]
    step, interval = np.diff(t), np.searchsorted(kept, np.arange(t.size - 1), side="right") - 1
    length = np.diff(nodes)

    def rising(times: np.ndarray) -> np.ndarray:
        return (times - nodes[interval]) / length[interval]

    # Simpson's rule integrates the product of two linear functions exactly.
    ends, middle = (rising(t[:-1]), rising(t[1:])), rising(0.5 * (t[:-1] + t[1:]))
    up = step / 6 * (ends[0] * u[:-1] + 4 * middle * 0.5 * (u[:-1] + u[1:]) + ends[1] * u[1:])
    all_ = step / 2 * (u[:-1] + u[1:])
    k = nodes.size
    load = np.bincount(interval + 1, up, k) + np.bincount(interval, all_ - up, k)
    bands = np.zeros((3, k))
    bands[0, 1:] = bands[2, :-1] = length / 6
    bands[1, :-1] += length / 3
    bands[1, 1:] += length / 3
    return solve_banded((1, 1), bands, load)
