"""The drift of a fleet as it was found: tables, words, and when more would be told."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from frictax.annotations import DataFrame
from frictax.notice import Notice
from frictax.summary import Summarised, Summary
from frictax.text import amount, figures, shown, suggestion

from . import frames
from .trends import Fitted, Lines, solve

LEAST = 3  # dates of a machine that is judged
_MOST = 20_000  # records that a date is sought in
_SHOWN = 8


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Drift(Summarised):
    """Slopes of the machines of a fleet, per year (365.25 days). Print it.

    - `slopes`: a row for each machine and number: `slope` with `standard_error`, `lower`, `upper`
      [SI/yr; 1/yr of a number in `log`], `chance` that a machine without drift shows as much,
      `drifts`: told from 0 with the false alarms of all machines and numbers together controlled;
      `value` at `middle`, the middle of its dates; `first`, `last`, `count` of records;
      `temperature_coefficient` of its own [SI/K], NaN where the fleet's is used.
    - `fleet`: a row for each number: mean `slope` of the population of machines with
      `standard_error`, `lower`, `upper`; `slope_spread` between machines; `temperature_coefficient`
      [SI/K] with `temperature_error`; `scatter`: standard deviation from record to record beyond
      their errors, as far as it forgets; `slow_scatter`: as far as it remembers, for `memory`
      [days].
    - `rate`: share of false alarms among the machines that are called drifting; `left_out`;
      `notices`.

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
    fits: Mapping[str, Fitted]
    typical: DataFrame

    @property
    def drifting(self) -> DataFrame:
        """The rows of `slopes` that are called drifting, the surest first."""
        return frames.flagged(self.slopes, "drifts")

    def to_pandas(self) -> DataFrame:
        """`slopes`."""
        return self.slopes

    def told(self, name: str, size: float, *, power: float = 0.8) -> DataFrame:
        """When a drift of this size would be told, by machine.

        Records go on as often and as exact as those that there are (their median step and error),
        at temperatures that do not follow the date; the machine is taken as the only one that
        drifts, so that its chance has to fall below `rate` over the number of lines that are
        judged.

        **Arguments:** `size` of the drift [SI/yr; 1/yr of a number in `log`]; `power`: the chance
        with which it is to be told by then.

        **Returns:** a row for each machine: `date`, `years` from its first record on and `records`
        by then; NaT and NaN where 20000 do not do.

        **Example:** at `drift`.
        """
        import pandas as pd
        from scipy.special import ndtri

        if name not in self.names:
            raise KeyError(f"There is no drift of {name!r}.{suggestion(name, self.names)}")
        if not size:
            raise ValueError("`size` is 0, and a drift of 0 is never told. Give one in SI a year.")
        if not 0 < power < 1:
            raise ValueError(f"`power` must lie between 0 and 1, got {power!r}. Write 0.8.")
        fit = self.fits[name]
        need = -ndtri(self.rate / (2 * len(self.slopes))) + ndtri(power)

        @functools.cache
        def count(step: float, error: float) -> int:
            return _first_count(lambda n: abs(size) / _slope_error(n, step, error, fit) >= need)

        some = frames.of_number(self.typical, name)
        rows = []
        for row in frames.lines(some):
            n = count(float(f"{row.step:.2g}"), float(f"{row.error:.2g}"))
            years = (n - 1) * row.step if n <= _MOST else np.nan
            found = n <= _MOST
            date = (row.first + pd.Timedelta(days=365.25 * years)).round("D") if found else pd.NaT
            rows.append((row.machine, date, years, n if n <= _MOST else np.nan))
        return pd.DataFrame(rows, columns=["machine", "date", "years", "records"])

    def unit(self, name: str) -> tuple[str, float]:
        """How a slope of this number is printed: its unit, and what one of that is."""
        if name in self.log:
            return "%", 0.01
        return self.units[name], 1.0

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Head and rows of the table that is printed."""
        head = ("number", "mean drift", "unit", "std. error", f"{100 * self.level:g} % interval")
        head += ("between machines", "per kelvin", "scatter", "drifting")
        rows = []
        for row in frames.lines(self.fleet.reset_index()):
            unit, one = self.unit(row.number)
            ends = row.lower / one, row.upper / one
            fixed = (f"{unit}/yr", 1.0) if one != 1.0 else None
            cells = shown(row.slope / one, row.standard_error / one, f"{unit}/yr", ends, fixed)
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
                    str(int(frames.of_number(self.slopes, row.number)["drifts"].sum())),
                )
            )
        return head, rows

    def amount(self, name: str, value: float) -> str:
        """A change of a number in its unit, or in % where it is relative."""
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
        """Which machines drift, in words."""
        drifting = self.drifting
        out = [
            f"{len(drifting)} of {len(self.slopes)} lines drift; of those called so, at most"
            f" {100 * self.rate:g} % are false alarms on average (Benjamini and Hochberg)"
            + (":" if len(drifting) else ".")
        ]
        for row in frames.lines(drifting, _SHOWN):
            by = f"{self.amount(row.number, row.slope)}/yr"
            error = self.amount(row.number, row.standard_error)
            out.append(f"  {row.machine}: {row.number} by {by} ± {error} (p = {row.chance:.1g})")
        if len(drifting) > _SHOWN:
            out.append(f"  and {len(drifting) - _SHOWN} more, see `drifting`")
        return out

    def _summary(self) -> Summary:
        notices = [str(notice) for notice in self.notices]
        sentences = ["", *self.sentences]
        return Summary(self.title, self.rows(), "lrlrlrrrr", sentences, notices, above=[""])


def _slope_error(n: int, step: float, error: float, fit: Fitted) -> float:
    """Of a line through n records at equal steps, with the scatter of this fleet."""
    t = step * (np.arange(n) - (n - 1) / 2)
    lines = Lines(t, np.zeros(n), np.full(n, error), None, np.array([0]), np.array([False]))
    made = solve(lines, fit.white, fit.slow, fit.memory)
    return float(np.sqrt(made.covariance[0, 1, 1]))


def _first_count(enough: Any) -> int:
    """The least number of records that is enough, by doubling and halving."""
    high = LEAST
    while not enough(high):
        high *= 2
        if high > _MOST:
            return high
    low = max(high // 2, LEAST - 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _day(date: Any) -> str:
    return f"{date:%Y-%m-%d}"
