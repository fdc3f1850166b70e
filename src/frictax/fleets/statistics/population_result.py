"""A population as it was found: numbers, tables and words."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from frictax.annotations import DataFrame
from frictax.notice import Notice
from frictax.summary import Summarised, Summary
from frictax.text import amount, shown, suggestion

from . import frames

_SHOWN = 8  # outliers that are printed


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Population(Summarised):
    """Mean and spreads of a fleet, and where each record stands in it. Print it.

    On the unconstrained scale, u = log(x - lower) for a number with a lower bound in `lower` and
    u = x for one with None there:

    - `mean` (p,) and `mean_covariance`: of the population; `between` (p, p): covariance between
      machines; `within`: between records of one machine, None where no machine has two.
    - `between_error`, `within_error` (p, p): standard errors of their entries.

    And of what was given:

    - `records`: a row for each record with numbers: shrunken value ``NAME`` with ``NAME.lower`` and
      ``NAME.upper`` [SI], `distance` (Mahalanobis), `chance` that a record of the population lies
      farther off, `outlier` (`chance` below `false_alarms`), `farthest`: the number that lies
      farthest off, by `z` standard deviations, `within_chance`: `chance` among the records of its
      machine. NaN where nothing can be said.
    - `covariance` (n, p, p): of the shrunken values, on the unconstrained scale.
    - `machines`: the same by machine, with the `count` of its records.
    - `left_out`: why records have no numbers, and how many; `notices`.

    **Example:** at `population`.
    """

    names: tuple[str, ...]
    units: Mapping[str, str]
    lower: Mapping[str, float | None]
    mean: np.ndarray
    mean_covariance: np.ndarray
    between: np.ndarray
    between_error: np.ndarray
    within: np.ndarray | None
    within_error: np.ndarray | None
    records: DataFrame
    covariance: np.ndarray
    machines: DataFrame
    left_out: Mapping[str, int]
    notices: tuple[Notice, ...]
    false_alarms: float
    level: float

    @property
    def outliers(self) -> DataFrame:
        """The rows of `records` that lie farther off than chance, the farthest first."""
        return frames.flagged(self.records, "outlier")

    @property
    def correlation(self) -> np.ndarray:
        """Between machines, on the unconstrained scale; 0 beside a number without spread."""
        return _correlation(self.between)

    def to_pandas(self) -> DataFrame:
        """One row a number: `median` of the population with `standard_error`, `lower`, `upper`
        [SI]; `spread` between machines and `repeat_spread` between records of one, as standard
        deviations, with `spread_lower` and `spread_upper`: relative to the distance from the bound
        where `scale` is "log", else SI.
        """
        import pandas as pd

        rows = []
        for k, name in enumerate(self.names):
            value, error, ends = self._median(k)
            spread, low, high = self.spread_of(self.between, self.between_error, k)
            repeat = np.nan if self.within is None else float(np.sqrt(self.within[k, k]))
            rows.append(
                {
                    "number": name,
                    "unit": self.units[name],
                    "scale": "identity" if self.lower[name] is None else "log",
                    "median": value,
                    "standard_error": error,
                    "lower": ends[0],
                    "upper": ends[1],
                    "spread": spread,
                    "spread_lower": low,
                    "spread_upper": high,
                    "repeat_spread": repeat,
                }
            )
        return pd.DataFrame(rows).set_index("number")

    def unconstrained(self, name: str, values: Any) -> np.ndarray:
        """Values of a number [SI] on the scale of `mean` and `between`."""
        bound = self.lower[self.names[self._index(name)]]
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.asarray(values, dtype=float)
            return x if bound is None else np.asarray(np.log(x - bound))

    def physical(self, name: str, u: Any) -> np.ndarray:
        """The other way: values [SI] of what is on that scale."""
        bound = self.lower[self.names[self._index(name)]]
        x = np.asarray(u, dtype=float)
        return x if bound is None else np.asarray(bound + np.exp(x))

    def density(self, name: str, values: Any) -> np.ndarray:
        """The population's density of a number at these values, in 1 over its SI unit: of what a
        record would give without errors.
        """
        k = self._index(name)
        x = np.asarray(values, dtype=float)
        variance = self.between[k, k] + (0.0 if self.within is None else self.within[k, k])
        bound = self.lower[name]
        u = self.unconstrained(name, x)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = 1.0 if bound is None else 1.0 / (x - bound)
            height = np.exp(-0.5 * (u - self.mean[k]) ** 2 / variance)
            out = height * slope / np.sqrt(2 * np.pi * variance)
        return np.where(np.isfinite(out), out, 0.0)

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise KeyError(f"The population has no number {name!r}.{suggestion(name, self.names)}")
        return self.names.index(name)

    def _median(self, k: int) -> tuple[float, float, tuple[float, float]]:
        from scipy.special import stdtrit

        error = float(np.sqrt(self.mean_covariance[k, k]))
        half = error * float(stdtrit(max(len(self.machines) - 1, 1), 0.5 + self.level / 2))
        value, low, high = (
            float(self.physical(self.names[k], self.mean[k] + x)) for x in (0.0, -half, half)
        )
        bound = self.lower[self.names[k]]
        return value, error if bound is None else error * (value - bound), (low, high)

    def spread_of(
        self, spread: np.ndarray, errors: np.ndarray, k: int
    ) -> tuple[float, float, float]:
        """A standard deviation and its interval, by the degrees of freedom that its error has."""
        from scipy.special import chdtri, ndtri

        variance, error = float(spread[k, k]), float(errors[k, k])
        if not variance > 1.645 * error:  # 0 is within reach
            return np.sqrt(variance), 0.0, np.sqrt(variance + ndtri(0.5 + self.level / 2) * error)
        dof = 2 * (variance / error) ** 2
        ends = (chdtri(dof, (1 + side * self.level) / 2) for side in (-1, 1))
        low, high = (float(np.sqrt(variance * dof / x)) for x in ends)
        return np.sqrt(variance), low, high

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Head and rows of the table that is printed."""
        level = f"{100 * self.level:g} %"
        head = ("number", "median", "unit", "std. error", f"{level} interval", "between machines")
        head += (f"{level} interval",) + (() if self.within is None else ("between repeats",))
        rows = []
        for k, name in enumerate(self.names):
            value, error, ends = self._median(k)
            row = shown(value, error, self.units[name], ends)
            spread, low, high = (
                self.spread_in_words(name, x)
                for x in self.spread_of(self.between, self.between_error, k)
            )
            cells = (name, row.value, row.unit, row.error, row.interval, spread, f"{low} to {high}")
            if self.within is not None:
                cells += (self.spread_in_words(name, float(np.sqrt(self.within[k, k]))),)
            rows.append(cells)
        return head, rows

    def spread_in_words(self, name: str, spread: float) -> str:
        """A standard deviation on the scale of a number, in % or its unit."""
        if self.lower[name] is None:
            return amount(spread, self.units[name])
        return f"{100 * spread:.3g} %"

    @property
    def title(self) -> str:
        lost = sum(self.left_out.values())
        left = f" ({lost} without estimates are left out)" if lost else ""
        records, machines = len(self.records), len(self.machines)
        if records == machines:
            return f"Population of {machines} machines{left}"
        return f"Population of {machines} machines with {records} records{left}"

    @property
    def scale_in_words(self) -> str:
        """Which numbers are normal in their logarithm, "" where none is."""
        above = [name for name in self.names if self.lower[name] is not None]
        if not above:
            return ""
        bounds = "its bound" if any(self.lower[name] for name in above) else "0"
        return (
            f"Normal in the logarithm (of what is above {bounds}): {', '.join(above)}; their"
            " spreads are relative."
        )

    @property
    def sentences(self) -> list[str]:
        """The scale, and the outliers in words."""
        out = [self.scale_in_words] if self.scale_in_words else []
        flagged, judged = self.outliers, self.records["chance"].notna().sum()
        expected = self.false_alarms * judged
        out.append(
            f"{len(flagged)} of {judged} records are outliers (chance below"
            f" {self.false_alarms:g}, by which {expected:.2g} would be called so in a fleet without"
            " any)" + (":" if len(flagged) else ".")
        )
        for row in frames.lines(flagged, _SHOWN):
            out.append(
                f"  {row.record}: p = {row.chance:.1g}, {row.farthest} by {row.z:+.1f} standard"
                " deviations"
            )
        if len(flagged) > _SHOWN:
            out.append(f"  and {len(flagged) - _SHOWN} more, see `outliers`")
        return out

    def _summary(self) -> Summary:
        head, rows = self.rows()
        notices = [str(notice) for notice in self.notices]
        sentences, sides = ["", *self.sentences], "lrlrlrlr"[: len(head)]
        return Summary(self.title, (head, rows), sides, sentences, notices, above=[""])


def _correlation(S: np.ndarray) -> np.ndarray:
    size = np.sqrt(np.diag(S))
    with np.errstate(divide="ignore", invalid="ignore"):
        r = S / size[:, None] / size
    r = np.where(np.isfinite(r), np.clip(r, -1.0, 1.0), 0.0)
    np.fill_diagonal(r, 1.0)
    return r
