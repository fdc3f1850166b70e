"""End-of-line test: decide which records of a fleet are within limits (`verdicts`, `Verdicts`)."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from frictax.annotations import Checked, DataFrame
from frictax.summary import Summarised, Summary
from frictax.text import amount, figures

from ..table import Fleet
from .estimates import (
    PRINTED_ROWS,
    FleetEstimates,
    check_probability,
    estimate_names,
    exclusion_reasons,
    read_estimates,
    record_names,
    table_of_fleet,
    table_rows,
)

PASS, FAIL, UNDECIDED = "pass", "fail", "cannot tell"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Verdicts(Summarised):
    """The verdict on each record of a fleet. `print` shows a table.

    - `table`: a row for each record, in the order of the fleet. `verdict` is "pass", "fail" or
      "cannot tell"; ``NAME``: the verdict on the parameter ``NAME``; `why`: the reason if the
      verdict is not "pass", such as a parameter and its limit, or missing estimates.
    - `numbers`: a row for each parameter: limits `lower` and `upper` [SI], and the counts of
      "pass", "fail" and "cannot tell". `guard`: guard band [SI], the median over the records of
      half the width of the interval. `guard_share`: twice `guard` divided by (upper - lower).
      `capability`: width (upper - lower) divided by four median standard errors (measurement
      capability index of JCGM 106). `guard_share` and `capability` are NaN with only one limit.
    - `level`: confidence level of the intervals.

    **Example:** at `verdicts`.
    """

    table: DataFrame
    numbers: DataFrame
    units: Mapping[str, str]
    level: float

    @property
    def counts(self) -> dict[str, int]:
        """Number of records for each verdict."""
        found = list(self.table["verdict"])
        return {word: found.count(word) for word in (PASS, FAIL, UNDECIDED)}

    def to_pandas(self) -> DataFrame:
        """Return `table`."""
        return self.table

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the head and the rows of the printed table; the last row is for all parameters."""
        head = (
            "number",
            "limits",
            PASS,
            FAIL,
            UNDECIDED,
            "guard band",
            "of the width",
            "capability",
        )
        rows = []
        for row in self.numbers.reset_index().to_dict("records"):
            unit = self.units[row["number"]]
            ends = [
                amount(row[end], unit) if np.isfinite(row[end]) else ""
                for end in ("lower", "upper")
            ]
            low, high = ends
            limits = f"{low} or more" if low else f"{high} or less"
            limits = f"{low} to {high}" if low and high else limits
            rows.append(
                (
                    row["number"],
                    limits,
                    *(str(row[word]) for word in (PASS, FAIL, UNDECIDED)),
                    amount(row["guard"], unit),
                    _figures_or_empty(100 * row["guard_share"], " %"),
                    _figures_or_empty(row["capability"]),
                )
            )
        counts = self.counts
        rows.append(
            ("all", "", *(str(counts[word]) for word in (PASS, FAIL, UNDECIDED)), "", "", "")
        )
        return head, rows

    @property
    def title(self) -> str:
        counts = self.counts
        return (
            f"{len(self.table)} records: {counts[PASS]} pass, {counts[FAIL]} fail,"
            f" {counts[UNDECIDED]} undecided"
        )

    @property
    def sentences(self) -> list[str]:
        """Sentences about the error probabilities and the records that fail."""
        share, q = 100 * (1 - self.level) / 2, len(self.numbers)
        most = min(q * share, 100.0)
        out = [
            f"Pass: the whole {100 * self.level:g} % interval is within the limits. Fail: it is"
            f" beyond one limit. At most {share:.3g} % of the records beyond a limit pass. At most"
            f" {most:.3g} % of the records within all limits fail."
        ]
        failed = self.table[self.table["verdict"] == FAIL]
        out += [f"  {row.record} fails: {row.why}" for row in table_rows(failed, PRINTED_ROWS)]
        if len(failed) > PRINTED_ROWS:
            out.append(f"  and {len(failed) - PRINTED_ROWS} more, see `table`")
        return out

    def _summary(self) -> Summary:
        return Summary(self.title, self.rows(), "llrrrrrr", ["", *self.sentences], above=[""])


def verdicts(
    table: DataFrame | Fleet, limits: Mapping[str, Checked[Any]], *, level: float = 0.95
) -> Verdicts:
    """Decide which records of a fleet are within limits. The verdict is "pass", "fail" or "cannot
    tell".

    A parameter passes if its whole interval is within the limits, and fails if the whole interval
    is beyond one limit. If a limit is inside the interval, the verdict is "cannot tell". A record
    fails if one parameter fails, and passes if all parameters pass. Therefore half the width of the
    interval is a guard band on both sides of a limit, as in ISO 14253-1. The width of the interval
    follows from Student's t and the standard error of each estimate.

    **Arguments:**

    - `table`: one row for each record, as for `population`. The verdict is "cannot tell" for
      records without estimates.
    - `limits`: dict from parameter name to (lower, upper) in SI units; None means no limit.
    - `level`: confidence level of the intervals. A parameter that is truly beyond its limit passes
      with a probability of at most (1 - level) / 2.

    **Returns:** a `Verdicts`.

    **Raises:** `KeyError` for a parameter that the table lacks, `ValueError` for empty limits.

    >>> import frictax as fx, pandas as pd
    >>> fleet = pd.DataFrame(
    ...     {"record": ["a", "b", "c"], "F": [7.0, 7.9, 9.0], "F.standard_error": [0.1, 0.1, 0.2]}
    ... )
    >>> found = fx.verdicts(fleet, {"F": (6.0, 8.0)})
    >>> found.table["verdict"].tolist()
    ['pass', 'cannot tell', 'fail']
    >>> print(found)
    3 records: 1 pass, 1 fail, 1 undecided
    ...
    """
    import pandas as pd
    from scipy.special import ndtri, stdtrit

    table = table_of_fleet(table)
    check_probability("level", level, "Write 0.95 for 95 %.")
    if not limits:
        raise ValueError("`limits` is empty: give a number (lower, upper), such as {'F': (6, 8)}.")
    names = estimate_names(table, list(limits))
    ends: dict[str, tuple[float, float]] = {}
    for name in names:
        try:
            lower, upper = limits[name]
        except (TypeError, ValueError):
            raise ValueError(
                f"`limits` of {name} must be a pair (lower, upper), got {limits[name]!r}. Write"
                " None for an end without a limit."
            ) from None
        low = -np.inf if lower is None else float(lower)
        high = np.inf if upper is None else float(upper)
        if not low < high or (np.isinf(low) and np.isinf(high)):
            raise ValueError(
                f"`limits` of {name} must have a lower limit below the upper limit, or one limit"
                f" only, got {limits[name]!r}."
            )
        ends[name] = low, high
    fleet = read_estimates(table, names)
    q, known = 0.5 + level / 2, np.isinf(fleet.freedom)
    half = np.where(known, ndtri(q), stdtrit(np.where(known, 1.0, fleet.freedom), q)) * fleet.errors
    low, high = np.array(list(ends.values())).T
    with np.errstate(invalid="ignore"):
        good = (fleet.values - half >= low) & (fleet.values + half <= high)
        bad = (fleet.values + half < low) | (fleet.values - half > high)
    words = np.full((len(table), len(names)), UNDECIDED, dtype=object)
    words[fleet.row] = np.where(good, PASS, np.where(bad, FAIL, UNDECIDED)).astype(object)
    verdict = np.where(
        (words == FAIL).any(axis=1), FAIL, np.where((words == PASS).all(axis=1), PASS, UNDECIDED)
    )
    columns = {"record": record_names(table)}
    if "machine" in table.columns:
        columns["machine"] = table["machine"].fillna("").astype(str).to_numpy(dtype=object)
    columns |= {"verdict": verdict.astype(object)}
    columns |= {name: words[:, k] for k, name in enumerate(names)}
    rows = []
    for k, (name, (low, high)) in enumerate(ends.items()):
        width, guard = high - low, _median(half[:, k])
        row: dict[str, Any] = {"number": name, "lower": low, "upper": high}
        row |= {word: int(np.sum(words[:, k] == word)) for word in (PASS, FAIL, UNDECIDED)}
        both = np.isfinite(width)
        row["guard"] = guard
        row["guard_share"] = 2 * guard / width if both else np.nan
        row["capability"] = width / (4 * _median(fleet.errors[:, k])) if both else np.nan
        rows.append(row)
    return Verdicts(
        table=pd.DataFrame({**columns, "why": _reasons(table, fleet, ends, words)}),
        numbers=pd.DataFrame(rows).set_index("number"),
        units=fleet.units,
        level=level,
    )


def _reasons(
    table: DataFrame,
    fleet: FleetEstimates,
    ends: Mapping[str, tuple[float, float]],
    words: np.ndarray,
) -> list[str]:
    """Return the reason why each record does not pass, or "" for a record that passes."""
    values = np.full(words.shape, np.nan)
    values[fleet.row] = fleet.values
    excluded, out = exclusion_reasons(table, np.isfinite(values)), []
    for i in range(len(words)):
        if excluded[i]:
            out.append(excluded[i])
            continue
        verdict, reasons = FAIL if FAIL in words[i] else UNDECIDED, []
        for k in np.flatnonzero(words[i] == verdict):
            name, x = fleet.names[k], values[i, k]
            if not np.isfinite(x):
                reasons.append(f"{name} has no estimate")
                continue
            (low, high), unit = ends[name], fleet.units[name]
            under = x < low or (x <= high and x - low < high - x)
            end, side = (low, "below") if under else (high, "above")
            lies = "lies" if verdict == FAIL else "may lie"
            reasons.append(f"{name} {amount(x, unit)} {lies} {side} {amount(end, unit)}")
        out.append("; ".join(reasons))
    return out


def _median(x: np.ndarray) -> float:
    known = x[np.isfinite(x)]
    return float(np.median(known)) if known.size else np.nan


def _figures_or_empty(x: float, unit: str = "") -> str:
    return f"{figures(x, 3)}{unit}" if np.isfinite(x) else ""
