"""Interpret the cells of a column that pandas does not read as numbers: numbers with units or
thousands separators, dates, times of day, hexadecimal codes, or words.
"""

import collections
import dataclasses
import functools
import re
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .. import units

# Error values that spreadsheet programs write into cells.
ERRORS = ("#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")
# Texts that mean a missing number if they are alone in a cell, in lower case.
MISSING = ("", "nan", "-nan", "na", "n/a", "null", "none", "<na>", "nil")
MISSING += ("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan", "-", "--", "---", "----", "?", "*")
_DATE = re.compile(r"\d[-/.]\d{1,2}[-/.]\d|\d:\d\d")
_DURATION = re.compile(r"(?:\d{1,4}:)?\d{1,2}:\d\d(?:\.\d*)?")
_NUMBER_UNIT = re.compile(r"([+-]?[\d.,]*\d[\d.,]*(?:[eE][+-]?\d+)?)\s*([^\d\s.,].*)")
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,16}|[0-9a-fA-F]{1,16}[hH]|16#[0-9a-fA-F_]{1,16}")
_BETWEEN = ".,' \u2019\u00a0\u202f"  # characters that may separate thousands.
# Formats of dates that are not ISO 8601. If day and month can be read in either order, the order
# with smaller time steps is chosen.
_DATES = tuple(
    f"{date} {clock}".strip()
    for date in ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y.%m.%d", "%d.%m.%y")
    for clock in ("%H:%M:%S.%f", "%H:%M:%S", "%H:%M", "%I:%M:%S.%f %p", "%I:%M:%S %p", "")
) + ("%Y-%m-%d_%H-%M-%S.%f", "%Y%m%d_%H%M%S", "%b %d %Y %H:%M:%S.%f", "%b %d, %Y %H:%M:%S.%f %p")
_MOST_BROKEN = 0.1  # largest fraction of unreadable cells in a column of numbers or of dates


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """The interpretation of a column of texts.

    - `kind`: "numbers", "dates" (dates, times of day or durations: `values` are timedelta64 since
      the first cell), "codes" (0x1F) or "words" (`values` are NaN).
    - `values`: NaN or NaT (no date) in cells without a value; `wrong`: True for a cell with an
      unexpected text, such as "ERR timeout". Empty cells and marks such as "n/a" are not wrong.
    - `unit`: the unit after each number, or None.
    - `note`: how the column was read, as the end of a sentence "Column x of y ...", or "".
    - `since`: for dates, the start of counting ("1970" or "midnight") and the first time [s].
    """

    kind: str
    values: np.ndarray
    wrong: np.ndarray
    unit: str | None = None
    note: str = ""
    since: tuple[str, Fraction] | None = None

    @property
    def few_wrong(self) -> bool:
        """True if at most 10 % of the cells are wrong, so that their rows can be left out."""
        return bool(np.sum(self.wrong) <= _MOST_BROKEN * self.wrong.size)


def is_missing(cell: str) -> bool:
    """Return whether a cell is empty or a usual text for a missing number."""
    text = cell.strip()
    return text.lower() in MISSING or text.startswith(ERRORS)


def is_date(cell: str) -> bool:
    """Return whether a cell is a date or a time of day.

    >>> [is_date(cell) for cell in ("2024-01-31 10:00:00.005", "31.1.2024", "10:30", "0.5", "a:1")]
    [True, True, True, False, False]
    """
    plain = re.sub(r"\b(?:[AP]M|UTC|GMT|[A-Z][a-z]{2})\b", "", cell)
    return not plain.strip("0123456789 -/.,:TZ+_") and _DATE.search(cell) is not None


def read_number(text: str, decimal: str) -> float:
    """Return the number in a cell with the decimal sign `decimal`; NaN without a finite number."""
    if "_" in text or (decimal != "." and "." in text):  # Refuse "1_000", which float() accepts.
        return np.nan
    try:
        value = float(text.replace(decimal, ".") if decimal != "." else text)
    except ValueError:
        return np.nan
    return value if np.isfinite(value) else np.nan


def read_cells(texts: Sequence[str], decimal: str) -> Cells:
    """Interpret the texts of a column as numbers, dates, codes or words.

    >>> read_cells(["0.1 sec", "0.2 sec"], ".").values, read_cells(["0.1 sec"], ".").unit
    (array([0.1, 0.2]), 's')
    >>> read_cells(["1.234,5", "20,5", "---"], ",").values
    array([1234.5,   20.5,    nan])
    >>> read_cells(["10:15:30.5", "10:15:31"], ".").values / np.timedelta64(1, "s")
    array([0. , 0.5])
    >>> [read_cells(x, ".").kind for x in (["TRUE", "FALSE"], ["0x1237"], ["joint1"])]
    ['words', 'codes', 'words']
    """
    cells = list(map(str.strip, texts))
    missing = np.array(list(map(is_missing, cells)), dtype=bool)
    values = np.array([read_number(cell, decimal) for cell in cells], dtype=float)
    wrong = np.isnan(values) & ~missing
    if not wrong.any():
        return Cells("numbers", values, wrong)
    at = np.flatnonzero(wrong)
    odd = [cells[i] for i in at]
    if (grouped := _with_thousands(odd, decimal)) is not None:
        values[at] = grouped
        return Cells("numbers", values, np.isnan(values) & ~missing, None, _THOUSANDS)
    if at.size <= 0.5 * (cells_there := np.sum(~missing)):
        return Cells("numbers", values, wrong)
    sizes, names = zip(*(number_with_unit(c, decimal) or (np.nan, None) for c in odd), strict=True)
    unit, many = collections.Counter(names).most_common(1)[0]
    if unit and many >= (1 - _MOST_BROKEN) * at.size and at.size == cells_there:
        values[at] = np.where([name == unit for name in names], sizes, np.nan)
        return Cells("numbers", values, np.isnan(values) & ~missing, unit)
    if is_date(odd[0]) and at.size == cells_there:
        times = np.full(len(cells), np.timedelta64("NaT", "ns"))
        times[at], since = _dates(odd)
        lost = np.isnat(times) & ~missing
        if lost.sum() <= _MOST_BROKEN * at.size:
            short = all(map(re.compile(r"(?:[01]?\d|2[0-3]):\d\d").fullmatch, odd))
            return Cells("dates", times, lost, None, _MINUTES if short else "", since)
    if all(map(is_code, odd)):
        values[at] = [
            float(int(c.strip("hH").removeprefix("16#").replace("_", ""), 16)) for c in odd
        ]
        return Cells("codes", values, np.zeros(len(cells), bool))
    return Cells("words", np.full(len(cells), np.nan), wrong)


_THOUSANDS = "has a sign between thousands, which is read so"
_MINUTES = "has times of two numbers, which are read as minutes:seconds, not as hours:minutes"


def is_code(cell: str) -> bool:
    """Return whether a cell is a hexadecimal number: 0x1F, 1Fh, 16#1F."""
    return _HEX.fullmatch(cell) is not None


def is_grouped(cell: str, decimal: str) -> bool:
    """Return whether a cell has thousands separators."""
    return any(
        _thousands_pattern(sign, decimal).fullmatch(cell) for sign in _BETWEEN if sign != decimal
    )


@functools.cache
def _thousands_pattern(sign: str, decimal: str) -> re.Pattern[str]:
    between, point = re.escape(sign), re.escape(decimal)
    return re.compile(rf"[+-]?\d{{1,3}}(?:{between}\d{{3}})+(?:{point}\d*)?")


def _with_thousands(cells: list[str], decimal: str) -> np.ndarray | None:
    """Return the numbers in cells that share one thousands separator; None if a cell does not have
    the separator, or if the separator may be a decimal sign ("1,234").
    """
    for sign in _BETWEEN:
        if sign == decimal or sign not in cells[0]:
            continue
        if not all(map(_thousands_pattern(sign, decimal).fullmatch, cells)):
            return None
        sure = sign not in ".," or any(decimal in c or c.count(sign) > 1 for c in cells)
        plain = [c.replace(sign, "").replace(decimal, ".") for c in cells]
        return np.array(list(map(float, plain))) if sure else None
    return None


def number_with_unit(cell: str, decimal: str) -> tuple[float, str] | None:
    """Return the number and the unit of a cell such as "0.1 sec"; None without a known unit."""
    found = _NUMBER_UNIT.fullmatch(cell)
    unit = units.named_in(f"[{found[2]}]") if found else None
    if found is None or unit is None or np.isnan(number := read_number(found[1], decimal)):
        return None
    return number, unit


def first_date(date: np.datetime64) -> tuple[str, Fraction]:
    """Return "1970" and the exact time since then [s]."""
    whole = date.astype("datetime64[s]")
    parts = int((date - whole) / np.timedelta64(1, "ns"))
    return "1970", int(whole.astype(np.int64)) + Fraction(parts, 10**9)


def _dates(cells: list[str]) -> tuple[np.ndarray, tuple[str, Fraction]]:
    """Return the time since the first cell for cells with dates or durations (NaT for others), the
    start of counting ("1970" or "midnight") and the first time [s].
    """
    import pandas as pd

    texts = pd.Series(cells, dtype=object)
    texts = texts.str.replace(r"(:\d\d),(\d+)", r"\1.\2", regex=True)
    # In 10:15:30:250, the fourth part is milliseconds.
    texts = texts.str.replace(r"(:\d\d):(\d{3})$", r"\1.\2", regex=True)
    if all(map(_DURATION.fullmatch, texts)):
        short = texts.str.count(":") == 1
        # A duration with one colon consists of minutes and seconds.
        texts = texts.where(~short, "00:" + texts)
        times = pd.to_timedelta(texts, errors="coerce").to_numpy().astype("timedelta64[ns]")
        # If the time of day falls by more than 12 hours, midnight has passed.
        back = np.diff(times) < -np.timedelta64(12, "h")
        times[1:] += np.cumsum(back) * np.timedelta64(24, "h")
        first = next((time for time in times if not np.isnat(time)), np.timedelta64(0, "ns"))
        return times - first, ("midnight", Fraction(int(first.astype(np.int64)), 10**9))
    stamps = pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
    if stamps.isna().mean() > _MOST_BROKEN:
        # Choose the format that reads most dates; of equal formats, that with smallest time steps.
        best, stamps = (np.inf, np.inf), pd.Series(pd.NaT, index=texts.index)
        for form in _DATES:
            if pd.isna(pd.to_datetime(texts.iloc[0], format=form, errors="coerce")):
                continue
            tried = pd.to_datetime(texts, format=form, errors="coerce", utc=True)
            lost, span = int(tried.isna().sum()), tried.diff().abs().dt.total_seconds().sum()
            if (lost, float(span)) < best:
                best, stamps = (lost, float(span)), tried
    first = stamps.dropna().iloc[0] if stamps.notna().any() else pd.Timestamp(0)
    times = (stamps - (first if stamps.notna().any() else stamps)).to_numpy()
    return times.astype("timedelta64[ns]"), first_date(first.to_datetime64())
