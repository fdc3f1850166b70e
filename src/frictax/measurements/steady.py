"""Runs at steady speed, each averaged to one row of a sweep, or told why it is none."""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from frictax.text import suggestion

from .noise import integrated_autocorrelation_time
from .record import Record
from .units import Unit

SURE = 3.0  # standard errors of a drift that is no chance
_ALIKE = 0.02  # of the mean: a drift that matters to nobody
_JERKS = 0.5  # of the mean speed: scatter of a run that sticks and slips
_DEGREE = 7  # of the curve that is no noise
_FEWEST = 10  # independent samples of a mean whose error can be told


@dataclasses.dataclass(frozen=True)
class SteadyRun:
    """One run, averaged: mean `velocity` and `force` [SI], `error` of the mean force, and
    `unsteady`, why it is no steady run, "" where it is one.
    """

    name: str
    velocity: float
    force: float
    error: float
    unsteady: str


def steady_runs(
    records: Any, velocity: str, force: str, settle: Any
) -> tuple[list[SteadyRun], Unit, Unit]:
    """Each record averaged from `settle` [s] after its start, and the units of both channels.

    **Raises:** `ValueError` for what is no record of such a channel.
    """
    named = _named(records)
    if (
        not isinstance(settle, int | float | np.integer | np.floating)
        or isinstance(settle, bool)
        or not 0 <= settle < math.inf
    ):
        raise ValueError(
            f"`settle` must be a time >= 0 in seconds, got {settle!r}. It is left out at the start"
            " of each run."
        )
    out, units = list[SteadyRun](), list[tuple[Unit, Unit]]()
    for name, record in named.items():
        v, f = _channel(name, record, velocity), _channel(name, record, force)
        kept = record.t >= record.t[0] + settle
        if kept.sum() < 4:
            raise ValueError(
                f"Run {name!r} has {int(kept.sum())} samples after the {settle:g} s that it is"
                f" given to settle, of {record.duration:g} s. Give a smaller `settle`."
            )
        out.append(_averaged(name, record.t[kept], v[kept], f[kept]))
        units.append((record.units[velocity], record.units[force]))
    return out, *units[0]


def _averaged(
    name: str, t: Float[np.ndarray, " n"], v: Float[np.ndarray, " n"], f: Float[np.ndarray, " n"]
) -> SteadyRun:
    speed, force = float(np.mean(v)), float(np.mean(f))
    left = f - force
    independent = f.size / integrated_autocorrelation_time(left)
    error = float(np.std(f) / math.sqrt(max(independent - 1.0, 1.0)))
    reasons = []
    if np.std(v) > _JERKS * abs(speed):
        reasons.append(
            f"its speed scatters by {np.std(v) / max(abs(speed), 1e-300):.0%} of its mean, as of a"
            " motion that sticks and slips"
        )
    for what, x in (("speed", v), ("force", f)):
        drift, chance = _drift(t, x)
        if abs(drift) > SURE * chance and abs(drift) > _ALIKE * abs(np.mean(x)):
            reasons.append(
                f"its {what} drifts by {abs(drift) / max(abs(float(np.mean(x))), 1e-300):.0%} of"
                f" its mean, {abs(drift) / max(chance, 1e-300):.0f} standard errors"
            )
    if independent < _FEWEST and not reasons:
        reasons.append(
            f"its force is correlated for so long that it carries the information of"
            f" {independent:.0f} independent samples, fewer than {_FEWEST}"
        )
    return SteadyRun(name, speed, force, error, " and ".join(reasons))


def _drift(t: Float[np.ndarray, " n"], x: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """By how much the straight line through a run rises, and the standard error of that, which
    allows for memory: of what a polynomial of degree 7 leaves, or a run that settles would count as
    noise that remembers.
    """
    u = (t - np.mean(t)) / (t[-1] - t[0])
    rise = float(u @ x / (u @ u))
    degree = min(_DEGREE, x.size // 4)
    curve = np.polynomial.Chebyshev.fit(t, x, degree)
    left = x - curve(t)
    freedom = max(x.size / integrated_autocorrelation_time(left) - degree - 1.0, 1.0)
    return rise, float(np.std(left) / math.sqrt(np.mean(u**2) * freedom))


def _named(records: Any) -> dict[str, Record]:
    if isinstance(records, Record) or not isinstance(records, Iterable):
        raise ValueError(
            "`Sweep.from_records` needs the records of several runs, got a"
            f" {type(records).__name__}. Give a list of them, one for each speed."
        )
    if isinstance(records, Mapping):
        named = {str(name): record for name, record in records.items()}
    else:
        all_of_them = list(records)
        names = [getattr(record, "name", "") for record in all_of_them]
        named = {
            name if names.count(name) == 1 else f"{name} {i + 1}": record
            for i, (name, record) in enumerate(zip(names, all_of_them, strict=True))
        }
    for name, record in named.items():
        if not isinstance(record, Record):
            raise ValueError(
                f"`Sweep.from_records` needs `Record`s, got a {type(record).__name__} for {name!r}."
                " Read each run with `Record.from_csv`."
            )
    if not named:
        raise ValueError("`Sweep.from_records` needs the records of several runs, got none.")
    return named


def _channel(name: str, record: Record, channel: str) -> Float[np.ndarray, " n"]:
    channels = {**record.inputs, **record.outputs}
    if channel not in channels:
        raise ValueError(
            f"Run {name!r} has no channel {channel!r}.{suggestion(channel, channels, 0.5)} It has:"
            f" {', '.join(channels)}."
        )
    return channels[channel]
