"""Which machines of a fleet drift: straight lines over time, temperature taken out."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from frictax.annotations import DataFrame
from frictax.notice import Notice
from frictax.text import suggestion

from ..result import Fleet
from . import frames
from .drift_result import LEAST, Drift
from .hierarchy import Estimates, search
from .numbers import Numbers, read
from .trends import Fitted, Lines, settle

YEAR = 365.25 * 86400.0  # [s]
_OWN, _MOVED = 6, 1.0  # records and temperature [K] beside the line for a coefficient of its own


def drift(
    table: DataFrame | Fleet,
    names: Iterable[str] | str | None = None,
    *,
    own_temperature: bool = False,
    log: Iterable[str] | str = (),
    rate: float = 0.05,
    level: float = 0.95,
) -> Drift:
    """Which machines change over time: x = a + b (t - t0) + c (T - T0), a line for each machine.

    By weighted least squares with the errors of the fits and what differs from record to record
    beyond them, one variance for the fleet by restricted maximum likelihood. Where what is left
    remembers (a temperature that nobody measured, a state of the lubricant), it is taken as a walk
    with exponentially falling correlation, one for the fleet, and slopes have the errors that go
    with it. A record more than four standard deviations off the others of its machine does not
    count. Intervals are by Student's t.

    Temperature and load move friction more than wear does (Bittencourt and Axelsson, report
    LiTH-ISY-R-3058, Linköping, 2013): without the column `temperature` a notice says so.
    Machines are called drifting by the procedure of Benjamini and Hochberg (Journal of the Royal
    Statistical Society B 57, 1995) over all machines and numbers.

    **Arguments:**

    - `table`: one row a record, as of `population`, with `machine`, `date` and, if it is known,
      `temperature` [degC]. Machines with fewer than three dates are not judged.
    - `names`: of numbers, all of them unless given.
    - `own_temperature`: whether a machine has a temperature coefficient c of its own where its
      records tell it (six, and temperatures that move by 1 K beside the date); else c is one for
      the fleet.
    - `log`: numbers whose relative change is meant, above their lower bound.
    - `rate`: of false alarms among those that are called drifting; `level` of intervals.

    **Returns:** a `Drift`; its `told(name, size)` says from when on a drift would be told.

    **Raises:** `KeyError` for a number that the table lacks, `ValueError` where no machine has
    three dates.

    Thirty axes, measured each month for two years, one of which wears:

    >>> import frictax as fx, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> axis, month = np.repeat(np.arange(30), 24), np.tile(np.arange(24), 30)
    >>> T = 25 + 8 * np.sin(month / 12 * 2 * np.pi) + rng.standard_normal(720)
    >>> F = 7.0 - 0.04 * (T - 25) + np.where(axis == 4, 0.03 * month, 0.0)
    >>> fleet = pd.DataFrame(
    ...     {
    ...         "machine": [f"axis {i}" for i in axis],
    ...         "date": pd.Timestamp("2024-01-01") + pd.to_timedelta(30.4 * month, "D"),
    ...         "temperature": T,
    ...         "friction.F_Coulomb": F + 0.1 * rng.standard_normal(720),
    ...         "friction.F_Coulomb.standard_error": 0.1,
    ...     }
    ... )
    >>> found = fx.drift(fleet)
    >>> found.drifting["machine"].tolist()
    ['axis 4']
    >>> row = found.fleet.loc["friction.F_Coulomb"]
    >>> print(f"{row.temperature_coefficient:.2f} N/K")
    -0.04 N/K
    >>> print(found.told("friction.F_Coulomb", 0.36).iloc[0])
    machine ...
    date    ...
    years   ...
    records ...
    Name: 0, dtype: object
    """
    table = frames.table_of(table)
    for what, value in (("rate", rate), ("level", level)):
        if not 0 < value < 1:
            raise ValueError(f"`{what}` must lie between 0 and 1, got {value!r}. Write 0.05.")
    numbers = read(table, names)
    relative = _relative(numbers, log)
    dated = np.isfinite(numbers.dates)
    if not dated.any():
        raise ValueError(
            "The table has no dates, and without them nothing drifts: give each record one, in the"
            " column `date`."
        )
    notices, T = [], numbers.temperature
    warm = bool(np.isfinite(T[dated]).any())
    if not warm:
        notices.append(Notice("drift-without-temperature"))
    elif lost := int(np.sum(dated & ~np.isfinite(T))):
        about = {"count": lost, "records": int(dated.sum())}
        notices.append(Notice("drift-temperature-missing", "", about))
    if lost := int(np.sum(~dated)) + sum(numbers.left_out.values()):
        about = {"count": lost, "records": numbers.n + sum(numbers.left_out.values())}
        notices.append(Notice("drift-left-out", "", about))
    usable = dated & np.isfinite(T) if warm else dated
    zero = float(np.mean(T[usable])) if warm else np.nan
    parts, fits, lost_in = [], {}, {}
    for k, name in enumerate(numbers.names):
        made = _lines(numbers, k, usable, zero, name in relative, own_temperature and warm)
        if made is None:
            continue
        lines, about = made
        lines, fits[name], off = settle(lines)
        if off.any():
            lost_in[name] = int(off.sum())
        parts.append(_slopes(name, lines, about, fits[name], level))
    if lost_in:
        about = {"count": sum(lost_in.values()), "names": ", ".join(lost_in)}
        notices.append(Notice("drift-records-off", "", about))
    if not parts:
        raise ValueError(
            f"No machine has numbers at {LEAST} dates or more: fit more records of each, and name"
            " their machine."
        )
    return _answer(numbers, relative, parts, fits, zero, rate, level, notices, usable)


def _answer(
    numbers: Numbers,
    relative: tuple[str, ...],
    parts: list[DataFrame],
    fits: dict[str, Fitted],
    zero: float,
    rate: float,
    level: float,
    notices: list[Notice],
    usable: np.ndarray,
) -> Drift:
    import pandas as pd

    slopes: Any = pd.concat(parts, ignore_index=True)
    slopes["drifts"] = _told_apart(slopes["chance"].to_numpy(), rate)
    judged = slopes["machine"].nunique()
    every = len(numbers.machines)
    if judged < every:
        notices.append(Notice("drift-too-few", "", {"machines": every - judged, "all": every}))
    for name, fit in fits.items():
        if fit.slow:
            notices.append(Notice("drift-remembers", name, {"days": fit.memory * 365.25}))
    fleet = pd.DataFrame([_mean(name, fit, level) for name, fit in fits.items()])
    typical = slopes[["machine", "number", "first", "step", "error"]]
    return Drift(
        names=tuple(fits),
        units=numbers.units,
        log=relative,
        slopes=slopes.drop(columns=["step", "error"]),
        fleet=fleet.set_index("number"),
        reference_temperature=zero,
        rate=rate,
        level=level,
        left_out=numbers.left_out,
        notices=tuple(notices),
        fits=fits,
        typical=typical,
    )


def _lines(
    numbers: Numbers, k: int, usable: np.ndarray, zero: float, relative: bool, own: bool
) -> tuple[Lines, dict[str, Any]] | None:
    """The records of a number, machine by machine and by date; None where no machine is judged."""
    rows = np.flatnonzero(usable & np.isfinite(numbers.values[:, k]))
    rows = rows[np.lexsort((numbers.dates[rows], numbers.machine[rows]))]
    days = np.floor(numbers.dates[rows] / 86400.0)
    machine = numbers.machine[rows]
    new = np.diff(machine, prepend=-1) != 0
    dates = np.bincount(machine, new | (np.diff(days, prepend=-np.inf) != 0))
    rows = rows[dates[machine] >= LEAST]
    if not rows.size:
        return None
    machine = numbers.machine[rows]
    start = np.flatnonzero(np.diff(machine, prepend=-1))
    count = np.diff(np.append(start, rows.size))
    years = numbers.dates[rows] / YEAR
    middle = np.add.reduceat(years, start) / count
    x, error = numbers.values[rows, k], numbers.errors[rows, k]
    if relative:
        above = x - float(numbers.lower[numbers.names[k]] or 0.0)
        typical = np.array([np.median(part) for part in np.split(above, start[1:])])
        at = np.repeat(np.maximum(typical, 1e-300), count)
        # about the machine's median: a value that came out low by chance has no larger error
        x, error = np.log(at) + (above - at) / at - 0.5 * ((above - at) / at) ** 2, error / at
    t = years - np.repeat(middle, count)
    T = None if np.isnan(zero) else numbers.temperature[rows] - zero
    alone = np.zeros(start.size, bool)
    if own and T is not None:
        alone = _tells_its_own(t, T, start, count)
    about = {
        "machine": [numbers.machines[j] for j in machine[start]],
        "first": np.minimum.reduceat(years, start),
        "last": np.maximum.reduceat(years, start),
        "middle": middle,
        "count": count,
    }
    return Lines(t, x, error, T, start, alone), about


def _tells_its_own(
    t: np.ndarray, T: np.ndarray, start: np.ndarray, count: np.ndarray
) -> np.ndarray:
    """Whether temperatures of a machine move beside the date, and often enough."""
    mean = np.repeat(np.add.reduceat(T, start) / count, count)
    slope = np.add.reduceat(t * T, start) / np.add.reduceat(t * t, start)
    rest = T - mean - np.repeat(slope, count) * t
    moved = np.sqrt(np.add.reduceat(rest**2, start) / count)
    all_of_it = np.sqrt(np.add.reduceat((T - mean) ** 2, start) / count)
    return (count >= _OWN) & (moved >= _MOVED) & (moved > 0.3 * all_of_it)


def _slopes(name: str, lines: Lines, about: dict[str, Any], fit: Fitted, level: float) -> DataFrame:
    import pandas as pd
    from scipy.special import stdtr, stdtrit

    by_c = 0.0 if np.isnan(fit.c_error) else (fit.by_c[:, 1] * fit.c_error) ** 2
    error = np.sqrt(fit.covariance[:, 1, 1] + by_c)
    dof = max(fit.dof, 1)
    half = float(stdtrit(dof, 0.5 + level / 2)) * error
    gaps = np.split(lines.t, lines.start[1:])
    errors = np.split(lines.error, lines.start[1:])
    return pd.DataFrame(
        {
            "machine": about["machine"],
            "number": name,
            "count": about["count"],
            **{end: _as_dates(about[end]) for end in ("first", "last", "middle")},
            "value": fit.a,
            "slope": fit.b,
            "standard_error": error,
            "lower": fit.b - half,
            "upper": fit.b + half,
            "chance": 2 * stdtr(dof, -np.abs(fit.b) / error),
            "temperature_coefficient": fit.own_c,
            "step": [max(float(np.median(np.diff(np.unique(t)))), 1 / 365.25) for t in gaps],
            "error": [_typical(e, fit.white + fit.slow) for e in errors],
        }
    )


def _typical(errors: np.ndarray, scatter: float) -> float:
    """The error of equal records that would weigh as much as these, beside this scatter."""
    told = errors[errors < 1e3 * np.median(errors)]
    return float(np.sqrt(max(1.0 / np.mean(1.0 / (told**2 + scatter)) - scatter, 0.0)))


def _mean(name: str, fit: Fitted, level: float) -> dict[str, Any]:
    """The population of slopes: mean, spread, and what the fleet has in common."""
    from scipy.special import stdtrit

    m = fit.b.size
    variance = fit.covariance[:, 1, 1]
    spread, mean, error = 0.0, float(fit.b[0]), float(np.sqrt(variance[0]))
    if m > 1:
        of = Estimates(
            fit.b[:, None], variance[:, None, None], np.arange(m), np.ones(m), np.ones(m)
        )
        first = np.array([[max(float(np.var(fit.b) - np.median(variance)), 0.1 * variance.min())]])
        between, _, at, _ = search(of, first, None)
        spread, mean = float(np.sqrt(between[0, 0])), float(at.mean[0])
        error = float(np.sqrt(at.P[0, 0]))
    if not np.isnan(fit.c_error):
        error = float(np.hypot(error, np.mean(fit.by_c[:, 1]) * fit.c_error))
    half = error * float(stdtrit(m - 1 if m > 1 else max(fit.dof, 1), 0.5 + level / 2))
    return {
        "number": name,
        "slope": mean,
        "standard_error": error,
        "lower": mean - half,
        "upper": mean + half,
        "slope_spread": spread,
        "temperature_coefficient": fit.c,
        "temperature_error": fit.c_error,
        "scatter": np.sqrt(fit.white),
        "slow_scatter": np.sqrt(fit.slow),
        "memory": fit.memory * 365.25 if fit.slow else np.nan,
    }


def _told_apart(chance: np.ndarray, rate: float) -> np.ndarray:
    """Those whose hypothesis of no drift falls by Benjamini and Hochberg."""
    order = np.argsort(chance)
    below = np.flatnonzero(chance[order] <= rate * np.arange(1, chance.size + 1) / chance.size)
    out = np.zeros(chance.size, bool)
    if below.size:
        out[order[: below[-1] + 1]] = True
    return out


def _relative(numbers: Numbers, log: Iterable[str] | str) -> tuple[str, ...]:
    asked = (log,) if isinstance(log, str) else tuple(log)
    for name in asked:
        if name not in numbers.names:
            near = suggestion(name, numbers.names)
            raise KeyError(f"`log`: there is no drift of {name!r} to be told.{near}")
        if numbers.lower[name] is None:
            raise ValueError(f"`log`: {name} has no lower bound to be relative to. Leave it out.")
    return asked


def _as_dates(years: np.ndarray) -> Any:
    import pandas as pd

    return pd.to_datetime(np.round(np.asarray(years) * YEAR), unit="s")
