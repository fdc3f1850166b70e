"""End of line: which records lie within limits, which do not, and of which that cannot be told."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from frictax.annotations import Checked, DataFrame
from frictax.summary import Summarised, Summary
from frictax.text import amount, figures

from ..result import Fleet
from . import frames
from .numbers import left_out, names_of, read, record_names

PASS, FAIL, UNTOLD = "pass", "fail", "cannot tell"
_SHOWN = 8


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Verdicts(Summarised):
    """What became of each record at its limits. Print it.

    - `table`: a row for each record of the fleet, in its order: `verdict` ("pass", "fail" or
      "cannot tell"), the same for each number, and `why`: which numbers and ends of limits, or why
      there are no numbers.
    - `numbers`: a row for each number: limits `lower` and `upper` [SI], how many "pass", "fail" and
      "cannot tell", and `guard`: half of an interval [SI] (median), by which limits are drawn in
      before a record passes; `guard_share`: both guard bands over the width of the limits;
      `capability`: that width over four standard errors (the measurement capability index of JCGM
      106). NaN where there is one limit only.
    - `level` of the intervals.

    **Example:** at `verdicts`.
    """

    table: DataFrame
    numbers: DataFrame
    units: Mapping[str, str]
    level: float

    @property
    def counts(self) -> dict[str, int]:
        """How many records pass, fail, and cannot be told."""
        found = list(self.table["verdict"])
        return {word: found.count(word) for word in (PASS, FAIL, UNTOLD)}

    def to_pandas(self) -> DataFrame:
        """`table`."""
        return self.table

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Head and rows of the table that is printed: one row a number, then all together."""
        head = ("number", "limits", PASS, FAIL, UNTOLD, "guard band", "of the width", "capability")
        rows = []
        for row in self.numbers.reset_index().to_dict("records"):
            unit = self.units[row["number"]]
            ends = [amount(row[end], unit) if np.isfinite(row[end]) else "" for end in _ENDS]
            limits = " to ".join(ends) if all(ends) else _one_sided(*ends)
            rows.append(
                (
                    row["number"],
                    limits,
                    *(str(row[word]) for word in (PASS, FAIL, UNTOLD)),
                    amount(row["guard"], unit),
                    _known(100 * row["guard_share"], " %"),
                    _known(row["capability"]),
                )
            )
        counts = self.counts
        rows.append(("all", "", *(str(counts[word]) for word in (PASS, FAIL, UNTOLD)), "", "", ""))
        return head, rows

    @property
    def title(self) -> str:
        counts = self.counts
        return (
            f"{len(self.table)} records: {counts[PASS]} pass, {counts[FAIL]} fail,"
            f" {counts[UNTOLD]} undecided"
        )

    @property
    def sentences(self) -> list[str]:
        """What the answers are worth, and which records fail."""
        share, q = 100 * (1 - self.level) / 2, len(self.numbers)
        most = min(q * share, 100.0)
        out = [
            f"Pass: the whole {100 * self.level:g} % interval lies within the limits; fail: all of"
            " it beyond one. A record with a number beyond its limit passes with at most"
            f" {share:.3g} %, one within all of them fails with at most {most:.3g} %."
        ]
        failed = self.table[self.table["verdict"] == FAIL]
        out += [f"  {row.record} fails: {row.why}" for row in frames.lines(failed, _SHOWN)]
        if len(failed) > _SHOWN:
            out.append(f"  and {len(failed) - _SHOWN} more, see `table`")
        return out

    def _summary(self) -> Summary:
        return Summary(self.title, self.rows(), "llrrrrrr", ["", *self.sentences], above=[""])


_ENDS = ("lower", "upper")


def verdicts(
    table: DataFrame | Fleet, limits: Mapping[str, Checked[Any]], *, level: float = 0.95
) -> Verdicts:
    """Which records of a fleet lie within limits: pass, fail, or cannot tell.

    A number passes where its whole interval lies within the limits, fails where all of it lies
    beyond one of them, and else its record cannot tell. A record fails with one of its numbers, and
    passes with all. So limits are drawn in by half of the interval before anything passes (a guard
    band, as by ISO 14253-1, but with Student's t and each record's own errors), and out by as much
    before anything fails.

    **Arguments:**

    - `table`: one row a record, as of `population`; records without numbers cannot tell.
    - `limits`: of each number (lower, upper) in SI, None where there is none.
    - `level`: of the intervals: a number beyond its limit passes with (1 - level) / 2 at most.

    **Returns:** a `Verdicts`.

    **Raises:** `KeyError` for a number that the table lacks, `ValueError` for limits that hold
    nothing.

    >>> import frictax as fx, pandas as pd
    >>> fleet = pd.DataFrame(
    ...     {
    ...         "record": ["a", "b", "c"],
    ...         "F": [7.0, 7.9, 9.0],
    ...         "F.standard_error": [0.1, 0.1, 0.2],
    ...     }
    ... )
    >>> found = fx.verdicts(fleet, {"F": (6.0, 8.0)})
    >>> found.table["verdict"].tolist()
    ['pass', 'cannot tell', 'fail']
    >>> print(found)
    3 records: 1 pass, 1 fail, 1 undecided
    ...
    """
    table = frames.table_of(table)
    if not 0 < level < 1:
        raise ValueError(f"`level` must lie between 0 and 1, got {level!r}. Write 0.95 for 95 %.")
    if not limits:
        raise ValueError("`limits` is empty: give a number (lower, upper), such as {'F': (6, 8)}.")
    names = names_of(table, list(limits))
    ends = {name: _pair(name, limits[name]) for name in names}
    given = read(table, names)
    each, halves = _each(given, ends, level)
    words = np.full((len(table), len(names)), UNTOLD, dtype=object)
    words[given.row] = each
    told = np.zeros(words.shape, bool)
    told[given.row] = np.isfinite(given.values)
    verdict = np.where(
        (words == FAIL).any(axis=1), FAIL, np.where((words == PASS).all(axis=1), PASS, UNTOLD)
    )
    return Verdicts(
        table=_table(table, names, words, verdict, _why(table, given, ends, words, told)),
        numbers=_numbers(names, ends, words, halves, given.errors),
        units=given.units,
        level=level,
    )


def _pair(name: str, pair: Any) -> tuple[float, float]:
    try:
        lower, upper = pair
    except (TypeError, ValueError):
        raise ValueError(
            f"`limits` of {name} must be a pair (lower, upper), got {pair!r}. Write None for an end"
            " without a limit."
        ) from None
    low = -np.inf if lower is None else float(lower)
    high = np.inf if upper is None else float(upper)
    if not low < high or (np.isinf(low) and np.isinf(high)):
        raise ValueError(
            f"`limits` of {name} hold nothing: the lower must lie below the upper, and one of them"
            f" be given, got {pair!r}."
        )
    return low, high


def _each(
    given: Any, ends: Mapping[str, tuple[float, float]], level: float
) -> tuple[np.ndarray, np.ndarray]:
    """The word for each record and number, and half of each interval."""
    from scipy.special import ndtri, stdtrit

    q = 0.5 + level / 2
    known = np.isinf(given.freedom)
    half = np.where(known, ndtri(q), stdtrit(np.where(known, 1.0, given.freedom), q))
    half = half * given.errors
    low, high = (np.array([pair[i] for pair in ends.values()]) for i in (0, 1))
    with np.errstate(invalid="ignore"):
        good = (given.values - half >= low) & (given.values + half <= high)
        bad = (given.values + half < low) | (given.values - half > high)
    return np.where(good, PASS, np.where(bad, FAIL, UNTOLD)).astype(object), half


def _why(
    table: DataFrame,
    given: Any,
    ends: Mapping[str, tuple[float, float]],
    words: np.ndarray,
    told: np.ndarray,
) -> list[str]:
    """Of each record what keeps it from passing, "" where nothing does."""
    values = np.full(words.shape, np.nan)
    values[given.row] = given.values
    nothing, out = left_out(table, told), []
    for i in range(len(words)):
        verdict = FAIL if FAIL in words[i] else UNTOLD
        parts = [] if nothing[i] else np.flatnonzero(words[i] == verdict)
        said = [
            _said(name, verdict, values[i, k], ends[name], given.units[name])
            for k in parts
            for name in [given.names[k]]
        ]
        out.append(nothing[i] or "; ".join(said))
    return out


def _said(name: str, verdict: str, x: float, ends: tuple[float, float], unit: str) -> str:
    """What keeps a number from passing."""
    if not np.isfinite(x):
        return f"{name} has no estimate"
    low, high = ends
    under = x < low or (x <= high and x - low < high - x)
    end, side = (low, "below") if under else (high, "above")
    lies = "lies" if verdict == FAIL else "may lie"
    return f"{name} {amount(x, unit)} {lies} {side} {amount(end, unit)}"


def _table(
    table: DataFrame, names: tuple[str, ...], words: np.ndarray, verdict: np.ndarray, why: Any
) -> DataFrame:
    import pandas as pd

    columns = {"record": record_names(table)}
    if "machine" in table.columns:
        columns["machine"] = table["machine"].fillna("").astype(str).to_numpy(dtype=object)
    columns |= {"verdict": verdict.astype(object)}
    columns |= {name: words[:, k] for k, name in enumerate(names)}
    return pd.DataFrame({**columns, "why": why})


def _numbers(
    names: tuple[str, ...],
    ends: Mapping[str, tuple[float, float]],
    words: np.ndarray,
    halves: np.ndarray,
    errors: np.ndarray,
) -> DataFrame:
    import pandas as pd

    rows = []
    for k, name in enumerate(names):
        low, high = ends[name]
        width, guard = high - low, _median(halves[:, k])
        row: dict[str, Any] = {"number": name, "lower": low, "upper": high}
        row |= {word: int(np.sum(words[:, k] == word)) for word in (PASS, FAIL, UNTOLD)}
        both = np.isfinite(width)
        row["guard"] = guard
        row["guard_share"] = 2 * guard / width if both else np.nan
        row["capability"] = width / (4 * _median(errors[:, k])) if both else np.nan
        rows.append(row)
    return pd.DataFrame(rows).set_index("number")


def _median(x: np.ndarray) -> float:
    told = x[np.isfinite(x)]
    return float(np.median(told)) if told.size else np.nan


def _one_sided(low: str, high: str) -> str:
    return f"{low} or more" if low else f"{high} or less"


def _known(x: float, unit: str = "") -> str:
    return f"{figures(x, 3)}{unit}" if np.isfinite(x) else ""
