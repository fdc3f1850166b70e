"""`drift` fits lines over time and temperature to each machine of a fleet and returns a `Drift`."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from frictax.annotations import DataFrame
from frictax.notice import Notice
from frictax.summary import Summarised, Summary
from frictax.text import amount, figures, format_estimate, suggestion

from ..table import Fleet
from .estimates import (
    PRINTED_ROWS,
    FleetEstimates,
    check_probability,
    flagged_rows,
    parameter_rows,
    read_estimates,
    table_of_fleet,
    table_rows,
)
from .reml import Estimates, maximize_likelihood
from .trends import Lines, LinesFit, fit_lines_robustly, solve_lines

YEAR = 365.25 * 86400.0  # [s] mean length of a year
FEWEST_DATES = 3  # smallest number of dates for which a line has a standard error


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Drift(Summarised):
    """The change of the parameters of each machine per year (365.25 days): the slopes of lines that
    are fitted to the machine's estimates over time. `print` shows a table.

    - `slopes`: a row for each machine and parameter. `slope`: change per year, with
      `standard_error` and interval `lower` to `upper` [SI/yr; 1/yr for a parameter in `log`];
      `chance`: p value of the hypothesis that the slope is 0; `drifts`: true if the drift is
      significant at the false discovery rate `rate`. `value`: value of the line at `middle`, the
      mean date of the records; `first`, `last`: first and last date; `count`: number of records.
      `temperature_coefficient`: the machine's own coefficient [SI/K], NaN for the common one.
    - `fleet`: a row for each parameter. `slope`: mean slope of the machines, with `standard_error`
      and interval `lower` to `upper`; `slope_spread`: standard deviation of the slopes between
      machines; `temperature_coefficient` [SI/K]: common to all machines, with standard error
      `temperature_error`. Estimates can scatter more than their standard errors predict. Of this
      additional scatter, `scatter` is the standard deviation of the white part, and `slow_scatter`
      of the autocorrelated part with the correlation time `memory` [days].
    - `rate`: expected fraction of false alarms among the lines that are reported as drifting;
      `left_out`: number of records without estimates by reason; `notices`: warnings on the fit.

    **Example:** at `drift`.
    """

    names: tuple[str, ...]
    units: Mapping[str, str]
    log: tuple[str, ...]
    slopes: DataFrame
    fleet: DataFrame
    reference_temperature: float
    rate: float
    level: float
    left_out: Mapping[str, int]
    notices: tuple[Notice, ...]
    fits: Mapping[str, LinesFit]
    typical: DataFrame

    @property
    def drifting(self) -> DataFrame:
        """The rows of `slopes` whose drift is significant, sorted by rising p value."""
        return flagged_rows(self.slopes, "drifts")

    def to_pandas(self) -> DataFrame:
        """Return `slopes`."""
        return self.slopes

    def told(self, name: str, size: float, *, power: float = 0.8) -> DataFrame:
        """Return for each machine the date at which its records suffice to detect a drift `size`.

        Assumptions: Further records have the median time interval and the typical standard error of
        the existing records. The temperatures of further records are not correlated with the date.
        No other machine drifts, so the p value must be below `rate` / (number of lines), with one
        line for each machine and parameter.

        **Arguments:** `name`: the parameter; `size`: the drift [SI/yr; 1/yr for a parameter in
        `log`]; `power`: probability that the drift is detected at this date.

        **Returns:** a row for each machine with `date`, `years` since the machine's first record,
        and the necessary number of `records`. NaT and NaN if 20000 records are not enough. A date
        after the year 2261 is NaT, because pandas cannot represent it.

        **Example:** at `drift`.
        """
        import pandas as pd
        from scipy.special import ndtri

        if name not in self.names:
            raise KeyError(f"There is no drift of {name!r}.{suggestion(name, self.names)}")
        if not size:
            raise ValueError(
                "`size` is 0, which is never detected. Give a drift in SI units a year."
            )
        check_probability("power", power, "Write 0.8.")
        fit = self.fits[name]
        need = -ndtri(self.rate / (2 * len(self.slopes))) + ndtri(power)

        most = 20_000  # largest number of records for each machine that this search tries

        def enough(n: int, step: float, error: float) -> bool:
            """Return True if n records of a machine, taken every `step` years, each with standard
            error `error`, suffice to detect the slope.
            """
            t = step * (np.arange(n) - (n - 1) / 2)
            lines = Lines(t, np.zeros(n), np.full(n, error), None, np.array([0]), np.array([False]))
            fitted = solve_lines(lines, fit.white, fit.slow, fit.memory)
            return bool(abs(size) / np.sqrt(fitted.covariance[0, 1, 1]) >= need)

        @functools.cache
        def count(step: float, error: float) -> int:
            """Return the smallest sufficient number of records, found by doubling and bisection."""
            high = FEWEST_DATES
            while not enough(high, step, error):
                if high >= most:
                    return most + 1
                high = min(2 * high, most)
            low = max(high // 2, FEWEST_DATES - 1)
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if enough(middle, step, error) else (middle, high)
            return high

        some = parameter_rows(self.typical, name)
        rows = []
        for row in table_rows(some):
            n = count(float(f"{row.step:.2g}"), float(f"{row.error:.2g}"))
            found = n <= most
            years = (n - 1) * row.step if found else np.nan
            days, date = 365.25 * years, pd.NaT
            if days < (pd.Timestamp.max - row.first).days:
                date = (row.first + pd.Timedelta(days=days)).round("D")
            rows.append((row.machine, date, years, n if found else np.nan))
        return pd.DataFrame(rows, columns=["machine", "date", "years", "records"])

    def unit(self, name: str) -> tuple[str, float]:
        """Return the printed unit of changes of parameter `name`, and its SI value (0.01 for %)."""
        if name in self.log:
            return "%", 0.01
        return self.units[name], 1.0

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the head and the rows of the printed table."""
        head = ("number", "mean drift", "unit", "std. error", f"{100 * self.level:g} % interval")
        head += ("between machines", "per kelvin", "scatter", "drifting")
        rows = []
        for row in table_rows(self.fleet.reset_index()):
            unit, one = self.unit(row.number)
            ends = row.lower / one, row.upper / one
            fixed = (f"{unit}/yr", 1.0) if one != 1.0 else None
            cells = format_estimate(
                row.slope / one, row.standard_error / one, f"{unit}/yr", ends, fixed
            )
            by_T = ""
            if np.isfinite(row.temperature_coefficient):
                by_T = f"{self.amount(row.number, row.temperature_coefficient)}/K"
            scatter = float(np.hypot(row.scatter, row.slow_scatter))
            rows.append(
                (
                    row.number,
                    cells.value,
                    cells.unit,
                    cells.error,
                    cells.interval,
                    f"{self.amount(row.number, row.slope_spread)}/yr",
                    by_T,
                    self.amount(row.number, scatter),
                    str(int(parameter_rows(self.slopes, row.number)["drifts"].sum())),
                )
            )
        return head, rows

    def amount(self, name: str, value: float) -> str:
        """Return a change of parameter `name` as text, in its unit or (in `log`) in percent."""
        unit, one = self.unit(name)
        return f"{figures(value / one, 3)} %" if one != 1.0 else amount(value, unit)

    @property
    def title(self) -> str:
        return (
            f"Drift of {self.slopes['machine'].nunique()} machines,"
            f" {_day(self.slopes['first'].min())} to {_day(self.slopes['last'].max())}"
        )

    @property
    def sentences(self) -> list[str]:
        """Sentences about the machines that drift."""
        drifting = self.drifting
        out = [
            f"{len(drifting)} of {len(self.slopes)} lines drift; of these, at most"
            f" {100 * self.rate:g} % are false alarms on average (Benjamini and Hochberg)"
            + (":" if len(drifting) else ".")
        ]
        for row in table_rows(drifting, PRINTED_ROWS):
            by = f"{self.amount(row.number, row.slope)}/yr"
            error = self.amount(row.number, row.standard_error)
            out.append(f"  {row.machine}: {row.number} by {by} ± {error} (p = {row.chance:.1g})")
        if len(drifting) > PRINTED_ROWS:
            out.append(f"  and {len(drifting) - PRINTED_ROWS} more, see `drifting`")
        return out

    def _summary(self) -> Summary:
        notices = [str(notice) for notice in self.notices]
        sentences = ["", *self.sentences]
        return Summary(self.title, self.rows(), "lrlrlrrrr", sentences, notices, above=[""])


def drift(
    table: DataFrame | Fleet,
    names: Iterable[str] | str | None = None,
    *,
    own_temperature: bool = False,
    log: Iterable[str] | str = (),
    rate: float = 0.05,
    level: float = 0.95,
) -> Drift:
    """Find machines that change over time. For each machine and each parameter x, fit a line over
    the date t and the temperature T: x = a + b*(t - t0) + c*(T - T0).

    The lines are fitted by weighted least squares. The weights follow from the standard errors of
    the estimates and from an additional scatter between records. The variance of this scatter is
    common to the fleet and is estimated by restricted maximum likelihood. Residuals can be
    autocorrelated, for example because of an unmeasured temperature or the state of the lubricant.
    With autocorrelation, the correlation of two records decreases exponentially with the time
    between them, and slopes have larger standard errors. A record is excluded if it is more than
    four standard deviations from the line of the other records of its machine. Intervals use
    Student's t.

    Temperature and load change friction more than wear does (Bittencourt and Axelsson, report
    LiTH-ISY-R-3058, Linköping, 2013). Therefore a notice warns if the column `temperature` is
    missing. The procedure of Benjamini and Hochberg selects the significant drifts among all
    machines and parameters (Journal of the Royal Statistical Society B 57, 1995).

    **Arguments:**

    - `table`: one row for each record, as for `population`, with the columns `machine`, `date` and,
      if known, `temperature` [degC]. Machines with fewer than three dates are not tested.
    - `names`: names of the parameters; by default all.
    - `own_temperature`: true to fit a separate temperature coefficient c for each machine whose
      records identify c. A separate c requires six records, and temperatures that deviate by 1 K
      from a line over the date. All other machines have a common c.
    - `log`: parameters whose change is relative to their distance from the lower bound.
    - `rate`: expected fraction of false alarms among the reported drifts; `level`: confidence level
      of the intervals.

    **Returns:** a `Drift`. The method `told(name, size)` returns the date at which a drift can be
    detected.

    **Raises:** `KeyError` for a parameter that the table lacks, `ValueError` if no machine has
    three dates.

    Thirty axes were measured each month for two years, and one of them wears:

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
    import pandas as pd

    table = table_of_fleet(table)
    check_probability("rate", rate, "Write 0.05.")
    check_probability("level", level, "Write 0.95 for 95 %.")
    fleet = read_estimates(table, names)
    relative = (log,) if isinstance(log, str) else tuple(log)
    for name in relative:
        if name not in fleet.names:
            near = suggestion(name, fleet.names)
            raise KeyError(f"`log`: this table has no parameter {name!r}.{near}")
        if fleet.lower[name] is None:
            raise ValueError(f"`log`: {name} has no lower bound to be relative to. Leave it out.")
    dated = np.isfinite(fleet.dates)
    if not dated.any():
        raise ValueError(
            "The table has no dates, so a drift cannot be computed: give each record a date, in"
            " the column `date`."
        )
    T = fleet.temperature
    has_temperature = bool(np.isfinite(T[dated]).any())
    notices, failed = list[Notice](), sum(fleet.left_out.values())
    if not has_temperature:
        notices.append(Notice("drift-without-temperature"))
    elif count := int(np.sum(dated & ~np.isfinite(T))):
        about = {"count": count, "records": int(dated.sum())}
        notices.append(Notice("drift-temperature-missing", "", about))
    if count := int(np.sum(~dated)) + failed:
        notices.append(Notice("drift-left-out", "", {"count": count, "records": fleet.n + failed}))
    usable = dated & np.isfinite(T) if has_temperature else dated
    zero = float(np.mean(T[usable])) if has_temperature else np.nan
    parts, means, fits, outliers = [], [], {}, {}
    for k, name in enumerate(fleet.names):
        selected = _lines_of_parameter(fleet, k, usable, zero, name in relative, own_temperature)
        if selected is None:
            continue
        lines, about = selected
        lines, fits[name], off = fit_lines_robustly(lines)
        if off.any():
            outliers[name] = int(off.sum())
        part, row = _slopes_and_mean(name, lines, about, fits[name], level)
        parts.append(part)
        means.append(row)
    if outliers:
        about = {"count": sum(outliers.values()), "names": ", ".join(outliers)}
        notices.append(Notice("drift-records-off", "", about))
    if not parts:
        raise ValueError(
            f"No machine has numbers at {FEWEST_DATES} dates or more: fit more records of each,"
            " and name their machine."
        )
    slopes: Any = pd.concat(parts, ignore_index=True)
    # Method of Benjamini and Hochberg: report the k smallest of n p values. k is the largest number
    # for which the k-th smallest p value is at most k rate / n.
    chance = slopes["chance"].to_numpy()
    order, n = np.argsort(chance), chance.size
    below = np.flatnonzero(chance[order] <= rate * np.arange(1, n + 1) / n)
    slopes["drifts"] = np.isin(np.arange(n), order[: below[-1] + 1] if below.size else [])
    every = len(fleet.machines)
    if few := every - slopes["machine"].nunique():
        notices.append(Notice("drift-too-few", "", {"machines": few, "all": every}))
    for name, fit in fits.items():
        if fit.slow:
            notices.append(Notice("drift-remembers", name, {"days": fit.memory * 365.25}))
    typical = slopes[["machine", "number", "first", "step", "error"]]
    return Drift(
        names=tuple(fits),
        units=fleet.units,
        log=relative,
        slopes=slopes.drop(columns=["step", "error"]),
        fleet=pd.DataFrame(means).set_index("number"),
        reference_temperature=zero,
        rate=rate,
        level=level,
        left_out=fleet.left_out,
        notices=tuple(notices),
        fits=fits,
        typical=typical,
    )


def _lines_of_parameter(
    fleet: FleetEstimates, k: int, usable: np.ndarray, zero: float, relative: bool, own: bool
) -> tuple[Lines, dict[str, Any]] | None:
    """Return the estimates of parameter k as `Lines`, and a dict of arrays over the machines: name,
    first, last and mean date [years], and number of records. Return None if all have too few dates.
    """
    rows = np.flatnonzero(usable & np.isfinite(fleet.values[:, k]))
    rows = rows[np.lexsort((fleet.dates[rows], fleet.machine[rows]))]
    days = np.floor(fleet.dates[rows] / 86400.0)
    machine = fleet.machine[rows]
    new = np.diff(machine, prepend=-1) != 0
    dates = np.bincount(machine, new | (np.diff(days, prepend=-np.inf) != 0))
    rows = rows[dates[machine] >= FEWEST_DATES]
    if not rows.size:
        return None
    machine = fleet.machine[rows]
    start = np.flatnonzero(np.diff(machine, prepend=-1))
    count = np.diff(np.append(start, rows.size))
    years = fleet.dates[rows] / YEAR
    middle = np.add.reduceat(years, start) / count
    x, error = fleet.values[rows, k], fleet.errors[rows, k]
    if relative:
        above = x - float(fleet.lower[fleet.names[k]] or 0.0)
        typical = np.array([np.median(part) for part in np.split(above, start[1:])])
        at = np.repeat(np.maximum(typical, 1e-300), count)
        # Expand the logarithm about the median of the machine. With an expansion about each
        # estimate, values that are low by chance would get relative errors that are too large.
        x, error = np.log(at) + (above - at) / at - 0.5 * ((above - at) / at) ** 2, error / at
    t = years - np.repeat(middle, count)
    T = None if np.isnan(zero) else fleet.temperature[rows] - zero
    own_coefficient = np.zeros(start.size, bool)
    if own and T is not None:
        # A machine with six records gets its own temperature coefficient if the temperatures
        # deviate enough from a line over the date. The rms deviation of the temperatures from this
        # line must be at least 1 K, and more than 30 % of their rms deviation from the mean.
        off = T - np.repeat(np.add.reduceat(T, start) / count, count)
        slope = np.add.reduceat(t * T, start) / np.add.reduceat(t * t, start)
        rest = off - np.repeat(slope, count) * t
        variation = np.sqrt(np.add.reduceat(rest**2, start) / count)
        total = np.sqrt(np.add.reduceat(off**2, start) / count)
        own_coefficient = (count >= 6) & (variation >= 1.0) & (variation > 0.3 * total)
    about = {
        "machine": [fleet.machines[j] for j in machine[start]],
        "first": np.minimum.reduceat(years, start),
        "last": np.maximum.reduceat(years, start),
        "middle": middle,
        "count": count,
    }
    return Lines(t, x, error, T, start, own_coefficient), about


def _slopes_and_mean(
    name: str, lines: Lines, about: dict[str, Any], fit: LinesFit, level: float
) -> tuple[DataFrame, dict[str, Any]]:
    """Return the rows of one parameter in `Drift.slopes`, and its row in `Drift.fleet`."""
    import pandas as pd
    from scipy.special import stdtr, stdtrit

    by_c = 0.0 if np.isnan(fit.c_error) else (fit.by_c[:, 1] * fit.c_error) ** 2
    error = np.sqrt(fit.covariance[:, 1, 1] + by_c)
    dof = max(fit.dof, 1)
    half = float(stdtrit(dof, 0.5 + level / 2)) * error
    gaps = np.split(lines.t, lines.start[1:])
    typical, scatter = [], fit.white + fit.slow
    for errors in np.split(lines.error, lines.start[1:]):
        # With the typical standard error for all records, the total weight is unchanged. Outliers
        # are excluded; they have very large standard errors (see `fit_lines_robustly`).
        counted = errors[errors < 1e3 * np.median(errors)]
        square = 1.0 / np.mean(1.0 / (counted**2 + scatter)) - scatter
        typical.append(float(np.sqrt(max(square, 0.0))))
    slopes = {
        "machine": about["machine"],
        "number": name,
        "count": about["count"],
        **{
            end: pd.to_datetime(np.round(about[end] * YEAR), unit="s")
            for end in ("first", "last", "middle")
        },
        "value": fit.a,
        "slope": fit.b,
        "standard_error": error,
        "lower": fit.b - half,
        "upper": fit.b + half,
        "chance": 2 * stdtr(dof, -np.abs(fit.b) / error),
        "temperature_coefficient": fit.own_c,
        "step": [max(float(np.median(np.diff(np.unique(t)))), 1 / 365.25) for t in gaps],
        "error": typical,
    }

    m = fit.b.size
    variance = fit.covariance[:, 1, 1]
    spread, mean, mean_error = 0.0, float(fit.b[0]), float(np.sqrt(variance[0]))
    if m > 1:
        estimates = Estimates(
            fit.b[:, None], variance[:, None, None], np.arange(m), np.ones(m), np.ones(m)
        )
        first = np.array([[max(float(np.var(fit.b) - np.median(variance)), 0.1 * variance.min())]])
        between, _, at, _ = maximize_likelihood(estimates, first, None)
        spread, mean = float(np.sqrt(between[0, 0])), float(at.mean[0])
        mean_error = float(np.sqrt(at.P[0, 0]))
    if not np.isnan(fit.c_error):
        mean_error = float(np.hypot(mean_error, np.mean(fit.by_c[:, 1]) * fit.c_error))
    half = mean_error * float(stdtrit(m - 1 if m > 1 else max(fit.dof, 1), 0.5 + level / 2))
    row = {
        "number": name,
        "slope": mean,
        "standard_error": mean_error,
        "lower": mean - half,
        "upper": mean + half,
        "slope_spread": spread,
        "temperature_coefficient": fit.c,
        "temperature_error": fit.c_error,
        "scatter": np.sqrt(fit.white),
        "slow_scatter": np.sqrt(fit.slow),
        "memory": fit.memory * 365.25 if fit.slow else np.nan,
    }
    return pd.DataFrame(slopes), row


def _day(date: Any) -> str:
    return f"{date:%Y-%m-%d}"
