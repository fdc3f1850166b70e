"""Find the layout of a text file: separators, decimal sign, header, and contents of each column."""

import collections
import csv
import dataclasses
import io
import re
from fractions import Fraction
from pathlib import Path

import numpy as np

from frictax.measurements.clocks import epoch_unit
from frictax.measurements.reading.cells import (
    is_code,
    is_date,
    is_grouped,
    is_missing,
    number_with_unit,
    read_number,
)
from frictax.measurements.reading.columns import existing_file, is_comment, text_file
from frictax.measurements.reading.tables import Table, csv_table
from frictax.measurements.units import TIME, named_in

from .evidence import time_units

_DELIMITERS = (",", ";", "\t", "|", " ")  # The most likely delimiter is first.
# Word for a unit that oscilloscopes and loggers write in a separate cell -> unit.
_WORDS = {
    **dict.fromkeys(("second", "seconds", "sekunde", "sekunden", "secs"), "s"),
    **dict.fromkeys(("millisecond", "milliseconds", "msec"), "ms"),
    **dict.fromkeys(("microsecond", "microseconds", "usec"), "us"),
    **dict.fromkeys(("nanosecond", "nanoseconds", "nsec"), "ns"),
    **dict.fromkeys(("volt", "volts"), "V"),
    **dict.fromkeys(("ampere", "amperes", "amp", "amps"), "A"),
    **dict.fromkeys(("degree", "degrees", "grad"), "deg"),
    **dict.fromkeys(("radian", "radians"), "rad"),
    **dict.fromkeys(("newton",), "N"),
    **dict.fromkeys(("u/min", "umdr/min"), "rpm"),
}
_CAN = re.compile(r"\s*\(?\d+\.\d+\)?\s+\S*can\d*\s+[0-9A-Fa-f]+", re.IGNORECASE)
_NANOSECONDS = ("nsec", "nsecs", "nanosec", "nanosecs", "nanoseconds", "nanosecond")
_UNIT_LABELS = ("unit", "units", "einheit", "einheiten")
_SECONDS = ("sec", "secs", "seconds", "second")


@dataclasses.dataclass(frozen=True, eq=False)
class Shape:
    """The layout and the contents of a text file.

    - `delimiter`, `decimal`, `skip`, `header`: arguments of `Record.from_csv` and `Sweep.from_csv`.
    - `names`: names of the columns, "" if unknown; `units`: units of the columns, None if unknown.
      A file can state a unit in the name, in a line below the names, or behind each number.
    - `values` (rows, columns), NaN where a number is missing. Dates, times of day and times since
      1970 are replaced by the time since the first row of the first clock (in [s] for dates).
    - `kinds`: content of each column, one of "numbers", "dates", "codes" (0x1F) and "words". Codes
      and words are not read as numbers.
    - `broken`: number of lines with a wrong number of cells, which are left out, plus number of
      cells without a number in columns of numbers.
    - `nanoseconds`: column of whole seconds -> column of the nanoseconds to add.
    - `rate` [Hz]: sampling rate that a line above the numbers states, or None.
    - `notes`: sentences on how the file was interpreted.
    - `wraps`: column -> range, for columns whose jumps at the end of the range were removed.

    If `header` is False, columns are read by number. The names may still be found in a comment or
    in a line above a line of units.
    """

    delimiter: str
    decimal: str
    skip: int
    header: bool
    names: tuple[str, ...]
    units: tuple[str | None, ...]
    values: np.ndarray
    kinds: tuple[str, ...] = ()
    broken: int = 0
    nanoseconds: dict[int, int] = dataclasses.field(default_factory=dict)
    rate: float | None = None
    notes: tuple[str, ...] = ()
    wraps: dict[int, float] = dataclasses.field(default_factory=dict)


def shape_of(path: str | Path) -> Shape:
    """Return the layout of the text file, workbook or JSON log at `path`.

    **Raises:** `FileNotFoundError`, or `ValueError` for a file without a table of numbers.
    """
    path = existing_file(path, ".csv")
    text = text_file(path)
    lines = _first_lines(text.raw)
    delimiter, decimal, width, first = _find_separators(path, lines, text.rows_are != "line")
    above = _read_head(lines[:first], split_cells(lines[first], delimiter), delimiter)
    skip = above.skip
    if not above.header:
        skip = first if any(line.strip() and not is_comment(line) for line in lines[:first]) else 0
    del text
    table = csv_table(path, delimiter, decimal, skip, above.header, drop=True)
    names, units, kinds = above.names, list(above.units), list[str]()
    values = np.full((table.read(0).size, width), np.nan)
    spoilt, notes = table.broken, list(table.notes)
    origins = dict[str, Fraction]()  # start of counting -> first time of the first clock [s]
    for j in range(width):
        cells = table.cells(j)
        if cells is None:
            kinds.append("numbers")
            values[:, j], unit, since = _times_from_first(table, j, units[j])
        elif cells.kind not in ("numbers", "dates") or not cells.few_wrong:
            kinds.append("codes" if cells.kind == "codes" else "words")
            continue
        else:
            kinds.append(cells.kind)
            unit, since = cells.unit, cells.since
            if cells.kind == "dates":
                values[:, j], units[j] = cells.values / np.timedelta64(1, "s"), "s"
            else:
                values[:, j] = cells.values
            if wrong := int(cells.wrong.sum()):
                spoilt += wrong
                i = int(np.argmax(cells.wrong))
                notes.append(
                    f"{wrong} cells of {names[j] or f'column {j + 1}'} hold no number, the first"
                    f" {str(table.read(j)[i])[:40]!r} in {table.row_of(i)}: their rows are left"
                    " out."
                )
        units[j] = units[j] or unit
        # Clocks of one record keep their common offset. A counter of 32 bits can look like a clock,
        # but then it begins more than a day [86 400 s] before or after the clock.
        if since is not None and abs(offset := since[1] - origins.setdefault(*since)) < 86_400:
            values[:, j] += float(offset / _seconds(units[j] or "s"))
    values[np.isinf(values)] = np.nan
    return Shape(
        delimiter, decimal, skip, above.header, names, tuple(units), values, tuple(kinds), spoilt,
        _nanosecond_columns(names), above.rate, tuple(notes),
    )  # fmt: skip


def _first_lines(raw: bytes) -> list[str]:
    """Return the lines of a text up to the 400th line that is not empty, to find the layout."""
    lines, written = list[str](), 0
    for line in io.BytesIO(raw):
        lines.append(line.decode("utf-8").rstrip("\r\n"))
        written += bool(lines[-1].strip())
        if written == 400:
            break
    return lines


def _times_from_first(
    table: Table, j: int, unit: str | None
) -> tuple[np.ndarray, str | None, tuple[str, Fraction] | None]:
    """Return the numbers of column j, None and None. For times since 1970, return the times since
    the first row, the unit that the numbers show, and the `since` of a `Clock`. The times since the
    first row keep all digits.
    """
    column = table.read(j)
    epoch = epoch_unit(column)
    if epoch is None or unit not in (None, "s", "ms", "us", "ns"):
        return column.astype(float), None, None
    column = column.astype(np.int64) if column.dtype.kind == "u" else column
    first = column[np.isfinite(column)][0]
    zero = Fraction(first.item()) * _seconds(unit or epoch)
    since = "1970" if unit in (None, epoch) else "0", zero
    values = (column - first).astype(float)
    # Numbers of the size of seconds since 1970 may count ms or us, which their steps show.
    return values, epoch if epoch != "s" or "s" in time_units(values) else None, since


def _seconds(unit: str) -> Fraction:
    """Return the exact length of a unit of time [s]."""
    return Fraction(str(TIME[unit].si))


def _nanosecond_columns(names: tuple[str, ...]) -> dict[int, int]:
    """Return a dict from each column of whole seconds to its column of nanoseconds, found by the
    last word of the names. The text before this word is the same for both columns.
    """
    plain = [name.strip().lower() for name in names]
    signs = [next((sign for sign in "._/ " if sign in name), " ") for name in plain]
    parts = [name.rpartition(sign)[::2] for name, sign in zip(plain, signs, strict=True)]
    return {
        i: j
        for j, (before, word) in enumerate(parts)
        if word in _NANOSECONDS
        for i, (other, last) in enumerate(parts)
        if other == before and last in _SECONDS
    }


def _find_separators(path: Path, lines: list[str], commas: bool) -> tuple[str, str, int, int]:
    """Return delimiter, decimal sign, number of columns, and index of the first line with numbers.

    The chosen delimiter and decimal sign give the most lines with numbers in the same columns. The
    weight of a line is the fraction of its cells that are numbers or dates. Of equally good pairs,
    the pair with more columns is chosen.
    """
    best, found = (0.0, 0), None
    looked = [i for i, line in enumerate(lines) if line.strip() and not is_comment(line)]
    text = "\n".join(map(lines.__getitem__, looked))
    there = [d for d in _DELIMITERS if d in text]
    for delimiter in "," if commas else (there or ","):
        for decimal in "." if commas else ".,":
            if delimiter == decimal:
                continue
            kinds = {i: _kinds(lines[i], delimiter, decimal) for i in looked}
            # Group the lines that have the same number of cells, and words in the same columns.
            keys = {i: re.sub("[^w]", ".", k) for i, k in kinds.items() if "n" in k or "g" in k}
            for key, many in collections.Counter(keys.values()).items():
                first = next(i for i in looked if keys.get(i) == key)
                like = kinds[first]
                numbers = like.count("n") + like.count("d") + 0.5 * like.count("g")
                score = many * (numbers / (len(like) - like.count("m"))), len(like)
                if score > best and many > 1:
                    first = _first_row_like(first, [(i, kinds[i]) for i in looked])
                    best, found = score, (delimiter, decimal, len(like), first)
    if found is not None:
        return found
    if sum(map(bool, map(_CAN.match, lines))) > 1:
        raise ValueError(
            f"{path.name} is a log of frames on a CAN bus, which are no numbers yet. Decode it"
            " first, by `cantools decode` with the bus's DBC file, say, and save CSV."
        )
    raise ValueError(
        f"{path.name} holds no lines of numbers that are separated by a comma, a semicolon, a"
        " tab, a bar or spaces. Save it as CSV."
    )


def _kinds(line: str, delimiter: str, decimal: str) -> str:
    """Return one letter for each cell of a line: n number, g number with thousands separators or a
    unit, d date, c code, m missing, w word.
    """
    kinds = ""
    for cell in split_cells(line, delimiter):
        if not np.isnan(read_number(cell, decimal)):
            kinds += "n"
        elif is_missing(cell):
            kinds += "m"
        elif is_date(cell):
            kinds += "d"
        elif is_grouped(cell, decimal) or number_with_unit(cell, decimal) is not None:
            kinds += "g"
        else:
            kinds += "c" if is_code(cell) else "w"
    return kinds


def _first_row_like(first: int, kinds: list[tuple[int, str]]) -> int:
    """Return the index of the first row of the table to which line `first` belongs. Lines above
    belong to this table if they have the same number of cells, and numbers or empty cells in the
    columns of numbers.
    """
    at = [i for i, _ in kinds].index(first)
    like = kinds[at][1]
    for i, other in reversed(kinds[:at]):
        numbers = [b in "ngdcm" for a, b in zip(like, other, strict=False) if a in "ngdc"]
        if len(other) != len(like) or not all(numbers) or not set(other) & set("ngd"):
            break
        first = i
    return first


@dataclasses.dataclass(frozen=True)
class _Above:
    """Names and units of the columns, and the sampling rate, from the lines above the numbers.

    - `header`: whether the names are in the line just above the numbers, where `csv_table` expects
      names; `skip`: number of lines before the line of names.
    """

    names: tuple[str, ...]
    units: tuple[str | None, ...]
    header: bool
    skip: int = 0
    rate: float | None = None


def _read_head(above: list[str], row: list[str], delimiter: str) -> _Above:
    """Return names, units and rate from the lines above the numbers. `row`: first row of cells."""
    width = len(row)
    written = [i for i, line in enumerate(above) if line.strip()]
    split = [split_cells(above[i].lstrip().removeprefix("#"), delimiter) for i in written]
    if (found := _names_of_pairs(split, width)) is not None:
        return found
    before, last = [None, None, *(_fit_to_width(cells, row) for cells in split[-2:])][-2:]
    if last is None:
        return _Above(("",) * width, (None,) * width, False)
    if before is not None:
        if (found := _names_above_increments(before, last)) is not None:
            return found
        # In a line of units, most cells are units or empty. An unknown unit is added to its name.
        unknown = [cell for cell in last if not _unit(cell) and cell.strip("[]()- ")]
        if any(map(_unit, last)) and len(unknown) < 0.4 * width and not any(map(_unit, before)):
            pairs = [*zip(before, last, strict=True)]
            units = tuple(_unit(cell) or _unit_in(name) for name, cell in pairs)
            names = (f"{name} [{cell}]" if cell in unknown else name for name, cell in pairs)
            return _Above(tuple(names), units, False)
    units = _labelled_units(split, width) or tuple(map(_unit_in, last))
    line = written[-1]
    if is_comment(above[line]) or len(set(last)) < width or len(split[-1]) != width:
        return _Above(tuple(last), units, False)
    is_table = all(is_comment(above[i]) for i in written[:-1])
    return _Above(tuple(last), units, True, 0 if is_table else line)


def _fit_to_width(cells: list[str], row: list[str]) -> list[str] | None:
    """Return as many cells as a `row` of numbers has, or None if the line has another number of
    cells. The line may lack an empty cell at its end, or have an additional empty cell there. R
    writes the numbers of rows into a first column without a name.
    """
    width = len(row)
    if len(cells) == width or (len(cells) == width + 1 and not cells[-1]):
        return cells[:width]
    if len(cells) != width - 1 or width <= 2:
        return None
    return [*cells, ""] if not row[-1] else ["", *cells] if row[0] in ("0", "1") else None


def _names_of_pairs(above: list[list[str]], width: int) -> _Above | None:
    """Return names and units in a file of TwinCAT's Scope, which writes pairs of label and value
    such as "Name  ActPos  Name  ActTorque". Return None for other files.
    """
    pairs = {
        cells[0]: cells[1::2]
        for cells in above
        if width % 2 == 0 and len(cells) == width and width > 2 and len(set(cells[::2])) == 1
    }
    if "Name" not in pairs:
        return None
    units = [_unit(cell) for cell in pairs.get("Unit", [""] * (width // 2))]
    clock = "ms" if any("[ms]" in label for label in pairs) else None
    names = [name for channel in pairs["Name"] for name in (f"time of {channel}", channel)]
    return _Above(tuple(names), tuple(u for unit in units for u in (clock, unit)), False)


def _names_above_increments(names: list[str], cells: list[str]) -> _Above | None:
    """Return names, units and rate in a file of a Rigol oscilloscope, which writes the time step
    below "Increment". Return None for other files.
    """
    small = [name.lower() for name in names]
    if "increment" not in small:
        return None
    step = read_number(cells[small.index("increment")], ".")
    if not step > 0:
        return None
    told = (
        "sample" if cell.lower() == "sequence" else name
        for name, cell in zip(names, cells, strict=True)
    )
    return _Above(tuple(told), tuple(map(_unit, cells)), False, rate=1.0 / step)


def _labelled_units(above: list[list[str]], width: int) -> tuple[str | None, ...] | None:
    """Return the units in a line with a label such as "unit" (LabVIEW, ControlDesk), or None."""
    labels = {cells[0].lower(): cells[1:] for cells in above if cells}
    if above[-1][0] == "X_Value" and "y_unit_label" in labels:
        clock = "s" if labels.get("x_dimension", ["Time"])[0] == "Time" else None
        units = [clock, *map(_unit, labels["y_unit_label"])]
    else:
        found = next((labels[w] for w in _UNIT_LABELS if len(labels.get(w, ())) == width - 1), None)
        if found is None or not any(map(_unit, found)):
            return None
        units = [None, *map(_unit, found)]
    return tuple((units + [None] * width)[:width])


def split_cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line without the spaces around them."""
    if delimiter == " " and '"' not in line:
        return line.split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]
    except (csv.Error, StopIteration):
        return []


def _unit(cell: str) -> str | None:
    """Return the unit in a cell that contains only a unit, with or without brackets, or None."""
    plain = cell.strip().strip("[]()")
    if "[" in plain or "(" in plain:  # a name with its unit
        return None
    return named_in(f"[{_WORDS.get(plain.lower(), plain)}]")


def _unit_in(name: str) -> str | None:
    """Return the unit in the name of a column, in brackets or after a separator; None without one.

    >>> [_unit_in(name) for name in ("t [ms]", "angle/deg", "speed_rpm", "Zeit, s", "i_m", "v_m_s")]
    ['ms', 'deg', 'rpm', 's', None, 'm/s']
    """
    name = name.strip()
    said = named_in(name) or (_unit(name) if "/" in name else None)
    if said is not None:
        return said
    *before, above, below = ("", "", *name.split("_"))  # as in omega_rad_s
    if any(before) and below in ("s", "s2", "min", "h") and _unit(f"{above}/{below}"):
        return _unit(f"{above}/{below}")
    for sign in (",", "_", " ", ":", "/"):  # "/" is last, because units contain this sign.
        before, found, after = name.partition(sign) if sign == "/" else name.rpartition(sign)
        unit = _unit(after) if found and before.strip() else None
        # A letter after "_", " " or ":" is an index, as in i_m, unless the letter is A, V or N.
        # "in" is not a unit there, as in torque_in.
        clear = after in ("A", "V", "N", "%", "°") or (len(after) > 1 and after != "in")
        if unit is not None and (sign in "/," or clear):
            return unit
    return None
