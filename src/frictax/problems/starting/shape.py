"""How a text file is laid out, told from its lines: what separates cells, which decimal sign, what
stands before the numbers.
"""

import collections
import csv
import dataclasses
from pathlib import Path

import numpy as np

from frictax.measurements.columns import (
    existing_file,
    is_comment,
    is_date,
    is_missing,
    read_columns,
    text_of,
)
from frictax.measurements.units import named_in, spelled

_DELIMITERS = (",", ";", "\t", "|", " ")  # the likelier first
_LINES = 400  # that are looked at


@dataclasses.dataclass(frozen=True, eq=False)
class Shape:
    """How a text file is laid out, and what it holds.

    - `delimiter`, `decimal`, `skip`, `header`: as `Record.from_csv` and `Sweep.from_csv` take them.
    - `names` of the columns, "" where the file does not tell; `units`, None where it does not.
    - `values` (rows, columns), NaN where a number is missing.
    - `dated`: the columns, the first being 0, that hold dates or times of day, which are not read.

    With `header` False columns are read by number, and `names` may be told all the same: from a
    comment, or where a line of units follows that of the names.
    """

    delimiter: str
    decimal: str
    skip: int
    header: bool
    names: tuple[str, ...]
    units: tuple[str | None, ...]
    values: np.ndarray
    dated: tuple[int, ...] = ()


def shape_of(path: str | Path) -> Shape:
    """How the text file at `path` is laid out.

    **Raises:** `FileNotFoundError`, or `ValueError` where it holds no table of numbers.
    """
    path = existing_file(path, ".csv")
    lines = text_of(path).splitlines()
    delimiter, decimal, width, first = _separated(path, lines)
    names, units, header, skip = _above(lines[:first], delimiter, width)
    skip = skip if header else _needed(lines, first)
    table = read_columns(path, delimiter=delimiter, decimal=decimal, skip=skip, header=header)
    columns = [
        table.numbers(i + 1, f"column {i + 1}", gaps=True)
        if any(_is_number(row[i], decimal) for row in table.rows[:50]) or _all_missing(table, i)
        else np.full(len(table.rows), np.nan)
        for i in range(width)
    ]
    values = np.stack(columns, axis=1)
    dated = tuple(i for i in range(width) if is_date(table.rows[0][i]))
    return Shape(delimiter, decimal, skip, header, names, units, values, dated)


def _all_missing(table, i: int) -> bool:
    return all(is_missing(row[i]) for row in table.rows)


def _separated(path: Path, lines: list[str]) -> tuple[str, str, int, int]:
    """Delimiter, decimal sign, number of columns, and the first line of numbers.

    Of all pairs of signs the one under which most lines are numbers, and as many as in their
    neighbours; of equal ones that with more columns.
    """
    best, found = (0, 0), None
    looked = [i for i, line in enumerate(lines) if line.strip()][:_LINES]
    for delimiter in _DELIMITERS:
        for decimal in ".,":
            if delimiter == decimal:
                continue
            width_of = {i: _numbers_in(lines[i], delimiter, decimal) for i in looked}
            counts = collections.Counter(w for w in width_of.values() if w)
            if not counts:
                continue
            width, many = max(counts.items(), key=lambda item: (item[1], item[0]))
            if (many, width) > best:
                best = many, width
                found = delimiter, decimal, width, next(i for i in looked if width_of[i] == width)
    if found is None or best[0] < 2:
        raise ValueError(
            f"{path.name} holds no lines of numbers that are separated by a comma, a semicolon, a"
            " tab, a bar or spaces. Save it as CSV."
        )
    return found


def _numbers_in(line: str, delimiter: str, decimal: str) -> int:
    """How many cells a line has if some hold numbers and none holds text but dates; else 0."""
    if is_comment(line):
        return 0
    cells = _split(line, delimiter)
    numbers = sum(_is_number(cell, decimal) for cell in cells)
    whole = numbers + sum(is_missing(cell) or is_date(cell) for cell in cells) == len(cells)
    return len(cells) if whole and numbers else 0


def _above(
    above: list[str], delimiter: str, width: int
) -> tuple[tuple[str, ...], tuple[str | None, ...], bool, int]:
    """Names and units of the columns, whether the reader finds the names in one line just above the
    numbers, and how many lines stand before that.
    """
    untold: tuple[str | None, ...] = (None,) * width
    written = [i for i, line in enumerate(above) if line.strip()]
    tail = [(i, _cells(above[i], delimiter)) for i in written[-2:]]
    tail = [(i, cells) for i, cells in tail if len(cells) == width]
    if not tail or tail[-1][0] != written[-1]:
        return ("",) * width, untold, False, 0
    line, cells = tail[-1]
    commented = is_comment(above[line])
    if _are_units(cells) and len(tail) == 2:
        return tuple(tail[0][1]), tuple(map(_unit, cells)), False, 0
    units = tuple(map(_unit_in, cells))
    if commented or len(set(cells)) < width:
        return tuple(cells), units, False, 0
    before = [above[i] for i in written if i < line]
    return tuple(cells), units, True, line if any(not is_comment(text) for text in before) else 0


def _needed(lines: list[str], first: int) -> int:
    """How many lines must be skipped so that the first one read is `first`."""
    text = [line for line in lines[:first] if line.strip() and not is_comment(line)]
    return first if text else 0


def _cells(line: str, delimiter: str) -> list[str]:
    return _split(line.lstrip().removeprefix("#"), delimiter)


def _split(line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]
    except (csv.Error, StopIteration):
        return []


def _are_units(cells: list[str]) -> bool:
    """Whether a line says the units of the columns: each cell one, or nothing."""
    return any(map(_unit, cells)) and all(_unit(cell) or not cell.strip("[]()- ") for cell in cells)


def _unit(cell: str) -> str | None:
    """The unit that a cell names, in brackets or alone."""
    return named_in(f"[{cell.strip().strip('[]()')}]")


def _unit_in(name: str) -> str | None:
    """The unit that a column's name tells: in brackets, or after its last sign.

    >>> [_unit_in(name) for name in ("t [ms]", "angle/deg", "speed_rpm", "Zeit, s", "i_m", "F")]
    ['ms', 'deg', 'rpm', 's', None, None]
    """
    said = named_in(name)
    if said is not None:
        return said
    for sign in ("/", ",", "_", " ", ":"):
        before, found, after = (
            name.strip().partition(sign) if sign == "/" else (name.strip().rpartition(sign))
        )
        if found and before.strip() and (unit := _unit(after)) is not None:
            # a single small letter after an underscore is an index, as in i_m
            return unit if sign in "/," or len(spelled(after)) > 1 or unit in "AVN" else None
    return None


def _is_number(text: str, decimal: str) -> bool:
    text = text.strip()
    if decimal == "," and "." in text or "_" in text:
        return False
    try:
        return bool(np.isfinite(float(text.replace(decimal, "."))))
    except ValueError:
        return False
