"""Average runs at steady speed to the rows of a sweep, and find the runs that are not steady."""

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

SURE = 3.0  # [standard errors] Least size of a significant drift.
_NEGLIGIBLE = 0.02  # [mean] A smaller drift is ignored, even if it is significant.
_JERKS = 0.5  # [mean speed] Least standard deviation of the speed in a run with stick-slip.
_DEGREE = 7  # Degree of the polynomial that is subtracted before the noise is estimated.
_FEWEST = 10  # Least number of independent samples for the error of a mean.


@dataclasses.dataclass(frozen=True)
class SteadyRun:
    """The averages of one run: `velocity` and `force` [SI], standard `error` of the mean force, and
    `unsteady`: why the run is not steady, or "".
    """

    name: str
    velocity: float
    force: float
    error: float
    unsteady: str


def steady_runs(
    records: Any, velocity: str, force: str, settle: Any
) -> tuple[list[SteadyRun], Unit, Unit]:
    """Average each record from `settle` [s] after its start. Return the units of both channels too.

    **Raises:** `ValueError` for anything else than a record with these channels.
    """
    named = _records_by_name(records)
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
        out.append(_average_run(name, record.t[kept], v[kept], f[kept]))
        units.append((record.units[velocity], record.units[force]))
    return out, *units[0]


def _average_run(
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
        if abs(drift) > SURE * chance and abs(drift) > _NEGLIGIBLE * abs(np.mean(x)):
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
    """Return the rise of the straight line through a run, and its standard error, which allows for
    autocorrelation. The noise is the residual of a polynomial of degree 7. Otherwise a run that
    still settles would count as autocorrelated noise.
    """
    u = (t - np.mean(t)) / (t[-1] - t[0])
    rise = float(u @ x / (u @ u))
    degree = min(_DEGREE, x.size // 4)
    curve = np.polynomial.Chebyshev.fit(t, x, degree)
    left = x - curve(t)
    freedom = max(x.size / integrated_autocorrelation_time(left) - degree - 1.0, 1.0)
    return rise, float(np.std(left) / math.sqrt(np.mean(u**2) * freedom))


def _records_by_name(records: Any) -> dict[str, Record]:
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
