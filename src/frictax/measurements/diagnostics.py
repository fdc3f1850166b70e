"""Notices on suspicious data in a record, each with a remedy."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from frictax.notice import Notice

from .units import POSITION_OF, RATE_OF, VELOCITY_OF, Unit, related_channel, split_channel

GAP = 5.0  # [median time steps; encoder steps for `Ticks`] longest interval that is not a gap.
# Ratio of a recorded output to the integral of its recorded rate -> mistake that explains it.
_SLIPS = {
    1e3: "a factor of 1000: m and mm, or s and ms",
    100.0: "a factor of 100: m and cm",
    180 / math.pi: "57.3: rad and deg",
    30 / math.pi: "9.55: rad/s and rpm",
    2 * math.pi: "2 pi: rad and rev",
}


def record_notices(record: Any) -> tuple[Notice, ...]:
    """Return all notices of a `Record`: on its times, its inputs, its outputs and their rates."""
    t, units, declared = record.t, record.units, record.declared
    found = [*_time(record, not record.turning_ticks)]
    for name in record.turning_ticks:
        step = {"step": quantum(record.outputs[name]) / units[name].si, "unit": units[name].name}
        found.append(Notice("record-ticks-turn", name, step))
    for name, ticks in record.ticks.items():
        if record.sd.get(name) is not None:
            continue
        step = {"step": ticks.step / units[name].si, "unit": units[name].name}
        found.append(Notice("record-ticks", name, step))
    for name, u in record.inputs.items():
        if np.all(u == u[0]):
            constant = {"value": u[0] / units[name].si, "unit": units[name].name}
            found.append(Notice("record-constant-input", name, constant))
        else:
            if record.hold_is_chosen and jumps_between_levels(u):
                between = "levels-held" if record.hold else "levels-joined"
                found.append(Notice(between, name, {"levels": np.unique(u).size}))
            then = "if the amplifier was at its limit there, the true input differs"
            found += _saturation("Input", name, t, u, units[name], then)
    for name, y in record.outputs.items():
        unit = units[name]
        then = "if this is the end of the sensor's range and not a hard stop, trim the record"
        found += _saturation("Output", name, t, y, unit, then)
        if name not in record.ticks:
            sd, smallest, reach = record.sd.get(name), quantum(y), float(np.ptp(y))
            steps, floor = round(reach / smallest) if smallest else 0, smallest / math.sqrt(12)
            least = math.inf if sd is None else float(np.min(sd))
            numbers = {"step": smallest / unit.si, "unit": unit.name, "least": floor / unit.si}
            if steps < 30 and y.size > 100:
                found.append(Notice("record-coarse", name, numbers | {"steps": steps}))
            elif least < 0.9 * floor and np.unique(y).size < 0.9 * y.size:
                numbers |= {"sd": least / unit.si}
                found.append(Notice("record-sd-too-small", name, numbers))
            if sd is not None and least > 2 * np.std(y):
                numbers = {"sd": least / unit.si, "unit": unit.name, "range": reach / unit.si}
                found.append(Notice("record-sd-too-large", name, numbers))
        found += _motion(name, t, y, unit, name in declared, record.glitches[name][0])
    return (*found, *_rates(t, record.outputs))


def gaps(t: np.ndarray) -> np.ndarray:
    """Return the indices of samples before a gap of more than five median time steps."""
    step = np.diff(t)
    return np.flatnonzero(step > GAP * np.median(step))


def _time(record: Any, is_clocked: bool) -> Iterator[Notice]:
    t, hold, driven = record.t, record.hold, bool(record.inputs)
    step, wide = np.diff(t), record.gaps if is_clocked else gaps(t)[:0]
    middle = float(np.median(step))
    declared = "time" in record.declared or bool(record.ticks) or not is_clocked
    lasts = {"step": middle, "length": t[-1] - t[0]}
    if wide.size:
        i = wide[np.argmax(step[wide])]
        count = "a gap" if wide.size == 1 else f"{wide.size} gaps, the longest"
        between = "the input's last value is held" if hold else "inputs are interpolated linearly"
        then = (
            f"where {between}: if the input differed from this, trim the record"
            if driven
            else "where nothing was recorded: check the clock"
        )
        numbers = {"gaps": count, "length": step[i], "time": t[i], "then": then}
        yield Notice("record-gaps", "", numbers)
    if middle > 0.5 and t.size > 100 and not declared:
        yield Notice("record-long-steps", "", lasts)
    if middle < 1e-6 and not declared:
        yield Notice("record-short-steps", "", lasts)
    if np.spacing(np.max(np.abs(t))) > 1e-5 * middle:
        yield Notice("record-begins-late", "", {"time": t[0]})


def _saturation(
    kind: str, name: str, t: np.ndarray, x: np.ndarray, unit: Unit, then: str
) -> Iterator[Notice]:
    """Yield a notice if `x` stays at an extreme value that it reaches or leaves at usual speed."""
    for extreme, word in ((x.max(), "largest"), (x.min(), "smallest")):
        at = np.concatenate([[False], x == extreme, [False]])
        runs = np.flatnonzero(np.diff(at.astype(int))).reshape(-1, 2).tolist()
        cut = [(a, b) for a, b in runs if b - a >= 5 and _arrives(x, a, b)]
        if cut:
            begin, end = max(cut, key=lambda run: run[1] - run[0])
            numbers = {"kind": kind, "extreme": word, "value": extreme / unit.si, "then": then}
            numbers |= {"unit": unit.name, "samples": end - begin}
            yield Notice("record-saturated", name, numbers | {"time": t[begin]})


def _arrives(x: np.ndarray, begin: int, end: int) -> bool:
    """Return whether `x` reaches its extreme at `begin`, or leaves it at `end`, at usual speed."""
    step = quantum(x)
    for width in (2, 4, 8, 16, 32, 64):
        if width > end - begin:
            return False
        moved = np.abs(x[width:] - x[:-width])
        moved = moved[moved > 0]
        # Do not test an input that switches between few values: it changes in few samples only.
        if moved.size < 0.3 * x.size:
            return False
        typical = float(np.median(moved))
        if typical >= 20 * step:
            return _at_speed(
                x[max(begin - 2 * width, 0) : begin][::-1], width, typical
            ) or _at_speed(x[end:], width, typical)
    return False


def _at_speed(x: np.ndarray, width: int, typical: float) -> bool:
    """Return whether `x` moves away from x[0] at usual speed, by `typical` in `width` samples."""
    if x.size < 2 * width:
        return False
    near, far = abs(x[width - 1] - x[0]), abs(x[2 * width - 1] - x[width])
    return bool(0.4 * typical <= near <= 20 * typical and near >= 0.6 * far)


def quantum(x: np.ndarray) -> float:
    """Return the smallest difference between two distinct values of `x`; 0 if all are equal."""
    levels = np.sort(x)
    step = np.diff(levels)
    step = step[step > 1e-9 * max(abs(levels[0]), abs(levels[-1]), levels[-1] - levels[0])]
    return float(step.min()) if step.size else 0.0


def _motion(
    name: str, t: np.ndarray, y: np.ndarray, unit: Unit, is_declared: bool, glitches: np.ndarray
) -> Iterator[Notice]:
    """Yield notices on motions that are too large for the default unit, and on angles that jump by
    a turn. Also yield a notice on single samples that are far from both neighbours.
    """
    reach, moved = float(np.ptp(y)), float(np.sum(np.abs(np.diff(y))))
    fastest = float(np.max(np.abs(y)))

    def unit_doubt(moves: str, other: str, whose: str) -> Notice:
        numbers = {"moves": moves, "other": other, "whose": whose, "unit": unit.si_name}
        return Notice("record-unit-doubted", name, numbers)

    if unit.si_name == "m" and reach > 50.0 and not is_declared:
        yield unit_doubt(f"moves over {reach:.4g} m", "mm", "millimetres")
    if unit.si_name == "m/s" and fastest > 100.0 and not is_declared:
        yield unit_doubt(f"reaches {fastest:.4g} m/s", "mm/s", "millimetres a second")
    # A motion back and forth over many turns is unusual, so its unit may not be rad. A rotor that
    # turns in one direction often makes many turns.
    if (
        unit.si_name == "rad"
        and reach > 20.0
        and abs(y[-1] - y[0]) < 0.5 * reach
        and moved > 1.2 * reach
        and not is_declared
    ):
        turns = reach / (2 * math.pi)
        yield unit_doubt(
            f"moves back and forth over {reach:.4g} rad ({turns:.3g} turns)", "deg", "degrees"
        )
    step = np.diff(y)
    jump = np.abs(step)
    wrapped = np.flatnonzero(np.abs(jump - 2 * math.pi) < 0.05 * 2 * math.pi)
    if unit.si_name == "rad" and wrapped.size and np.median(jump) < 1.0:
        yield Notice("record-wrapped", name, {"time": float(t[wrapped[0]])})
    usual = float(np.quantile(jump, 0.99))
    both = np.minimum(jump[:-1], jump[1:])
    lone = np.flatnonzero((step[:-1] * step[1:] < 0) & (both > 10 * usual) & (both > 0.1 * reach))
    lone = lone + 1 if y.size > 100 else lone[:0]
    # Add glitches only for positions and velocities, because a real force may be a short pulse.
    if split_channel(name)[1] in (*VELOCITY_OF, *POSITION_OF):
        lone = np.union1d(lone, glitches)
    named = 20  # largest number of times listed in a notice
    if lone.size:
        i, *others = lone.tolist()
        count = "one sample" if lone.size == 1 else f"{lone.size} samples"
        more = "".join(f", {t[k]:.6g} s" for k in others[:named])
        more += f" and {len(others) - named} other times" * (len(others) > named)
        numbers = {"count": count, "value": y[i] / unit.si, "unit": unit.name, "time": t[i]}
        numbers["more"] = more
        yield Notice("record-lone-samples", name, numbers)


def _rates(t: np.ndarray, outputs: Mapping[str, np.ndarray]) -> Iterator[Notice]:
    """Yield a notice for each output that is not the integral of its recorded rate."""
    for name, y in outputs.items():
        other = related_channel(name, RATE_OF)
        if other is None or other not in outputs:
            continue
        part, rate = name.rpartition(".")[0] or f"joint {split_channel(name)[0]}", outputs[other]
        integral = np.concatenate([[0.0], np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(t))])
        # Compare changes over a fiftieth of the record, in which noise, delay and drift are small.
        marks = np.linspace(0, t.size - 1, min(51, t.size)).astype(int)
        seen, due = np.diff(y[marks]), np.diff(integral[marks])
        if not np.any(seen) or not np.any(due):
            continue
        likeness = float(seen @ due / np.sqrt((seen @ seen) * (due @ due)))
        slope = float(seen @ due / (due @ due))
        if abs(likeness) < 0.7:
            numbers = {"other": other, "correlation": likeness, "part": part}
            yield Notice("record-rate-unlike", name, numbers)
        elif slope < 0:
            yield Notice("record-rate-against", name, {"other": other, "times": slope})
        elif not 0.8 <= slope <= 1.25:
            off, slip = min(
                (abs(abs(math.log(slope)) - math.log(factor)), slip)
                for factor, slip in _SLIPS.items()
            )
            slip = f" ({slip})" if off < 0.1 else ""
            yield Notice("record-rate-size", name, {"other": other, "times": slope, "slip": slip})


def jumps_between_levels(u: np.ndarray) -> bool:
    """Return whether `u` has at most 5 distinct values and changes in under 20 % of its samples."""
    changes = np.flatnonzero(np.diff(u))
    if not 0 < changes.size < 0.2 * u.size:
        return False
    # Each value of the input occurs right before a change or in the last sample.
    return np.unique(np.append(u[changes], u[-1])).size <= 5


def are_held(inputs: Iterable[np.ndarray]) -> bool:
    """Return the default of `hold`: True if each input that changes jumps between few values.
    Linear interpolation would start each jump one sampling interval too early.

    >>> relay = np.repeat([1.0, -1.0, 1.0], 10)
    >>> are_held([relay]), are_held([np.sin(np.arange(30))]), are_held([np.ones(30)])
    (True, False, False)
    """
    moving = [u for u in inputs if u.size and np.any(u != u[0])]
    return bool(moving) and all(map(jumps_between_levels, moving))
