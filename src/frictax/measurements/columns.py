"""Columns of numbers from a text file, or one sentence on what is wrong with it."""

import codecs
import contextlib
import csv
import dataclasses
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from frictax.text import CONTROL, suggestion

_ERRORS = ("#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")  # of spreadsheets
_DATE = re.compile(r"\d[-/.]\d{1,2}[-/.]\d|\d:\d\d")
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # how .xlsx, .ods and .xls begin
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before that of UTF-16, with which it begins
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_UNPRINTED = re.compile(rf"(?![\r\f\v]){CONTROL.pattern}")  # signs that no text has
Decimal = Literal[".", ","]


@dataclasses.dataclass(frozen=True)
class Columns:
    """The cells of a file: header, rows of text, and each row's line in the file (for messages)."""

    path: Path
    header: list[str]
    rows: list[list[str]]
    lines: list[int]
    decimal: str

    def position(self, name: str | int, role: str) -> int:
        """Where the column called `name` stands, or numbered so, the first being 1; a `ValueError`
        names the nearest and all.
        """
        if isinstance(name, int) and 1 <= name <= len(self.header):
            return name - 1
        if name in self.header:
            return self.header.index(name)
        raise missing_column(self.path.name, name, role, self.header)

    def numbers(
        self, name: str | int, role: str, *, empty: float | None = None, gaps: bool = False
    ) -> np.ndarray:
        """The column as finite floats; an empty cell is `empty` if that is given, and with `gaps` a
        number that is missing is NaN.
        """
        j = self.position(name, role)
        return np.array(
            [
                self._number(row[j], line, name, empty, gaps)
                for row, line in zip(self.rows, self.lines, strict=True)
            ]
        )

    def flags(self, name: str | int, role: str) -> np.ndarray:
        """The column as true or false: 1/0, true/false, yes/no; empty is false."""
        j = self.position(name, role)
        words = dict.fromkeys(("1", "true", "yes"), True)
        words |= dict.fromkeys(("0", "false", "no", ""), False)
        out = []
        for row, line in zip(self.rows, self.lines, strict=True):
            cell = row[j].strip().lower()
            cell = cell[:-2] if cell.endswith(".0") else cell
            if cell not in words:
                raise ValueError(
                    f"{self.path.name}, line {line}: column {name!r} must hold 1 or 0, true or"
                    f" false, got {row[j]!r}."
                )
            out.append(words[cell])
        return np.array(out, dtype=bool)

    def where(self, conditions: Mapping[str, Any]) -> "Columns":
        """The rows whose cells equal the given values, as numbers where both are numbers."""
        keep = np.ones(len(self.rows), dtype=bool)
        for name, wanted in conditions.items():
            j = self.position(name, "where")
            cells = [row[j].strip() for row in self.rows]
            hit = np.array([_equal(cell, wanted) for cell in cells], dtype=bool)
            if not hit.any():
                seen = sorted(set(cells))
                shown = ", ".join(seen[:8]) + (", ..." if len(seen) > 8 else "")
                raise ValueError(
                    f"{self.path.name} has no row where {name} = {wanted}. Column {name!r} holds:"
                    f" {shown}."
                )
            keep &= hit
        if not keep.any():
            asked = " and ".join(f"{name} = {value}" for name, value in conditions.items())
            raise ValueError(
                f"{self.path.name} has no row where {asked}, though each holds alone. Ask for fewer"
                " at once."
            )
        chosen = np.flatnonzero(keep)
        return dataclasses.replace(
            self, rows=[self.rows[i] for i in chosen], lines=[self.lines[i] for i in chosen]
        )

    def _number(
        self, cell: str, line: int, name: str | int, empty: float | None, gaps: bool
    ) -> float:
        text, what = cell.strip(), f"{self.path.name}, line {line}: column {name!r}"
        if not text and empty is not None:
            return empty
        if is_missing(text):
            if gaps:
                return math.nan
            raise ValueError(f"{what} has no number ({cell!r}). Delete the row or fill it.")
        if self.decimal != "." and "." in text:
            raise ValueError(
                f"{what} has a point in {cell!r}, but the"
                f" decimal sign is {self.decimal!r}. Write numbers without a sign between"
                " thousands, or correct `decimal`."
            )
        try:
            if "_" in text:  # which Python would read
                raise ValueError
            value = float(text.replace(self.decimal, ".") if self.decimal != "." else text)
        except ValueError:
            hint = ""
            if "," in text and "." in text and self.decimal == ".":
                hint = " Write numbers without a sign between thousands."
            elif "," in text and self.decimal == ".":
                hint = ' Write decimal="," for decimal commas.'
            elif _DATE.search(text):
                hint = (
                    " Read dates with `pandas.read_csv(..., parse_dates=[...])` and hand over the"
                    " table."
                )
            elif line == self.lines[0] and not any(map(_is_number, self.rows[0])):
                hint = (
                    " If this line holds units, begin it with # and declare them where you name the"
                    " column."
                )
            raise ValueError(
                f"{what} must hold a number, got {cell!r}.{hint or ' Correct the cell.'}"
            ) from None
        if not math.isfinite(value):
            raise ValueError(f"{what} must be finite, got {cell!r}. Delete the row.")
        return value


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no number."""
    text = cell.strip()
    return text.lower() in {"", "nan", "na", "n/a", "null", "none", "-"} or text.startswith(_ERRORS)


def is_date(cell: str) -> bool:
    """Whether a cell holds a date or a time of day.

    >>> [is_date(cell) for cell in ("2024-01-31 10:00:00.005", "31.1.2024", "10:30", "0.5", "a:1")]
    [True, True, True, False, False]
    """
    return not cell.strip("0123456789 -/.,:TZ+") and _DATE.search(cell) is not None


def read_columns(
    path: str | Path,
    *,
    delimiter: str = ",",
    decimal: str = ".",
    skip: int = 0,
    header: bool = True,
) -> Columns:
    """The cells of a text file with a header line; lines that begin with ``#`` are comments.

    **Arguments:** `delimiter`, a character, a space for any number of spaces and tabs; `skip`: how
    many lines stand before the header; `header`: whether there is one, else columns are called by
    their numbers, ``"1"`` the first.

    **Raises:** `FileNotFoundError` or `ValueError` with one sentence on what to do.
    """
    path = existing_file(path, ".csv")
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise ValueError(
            f"`delimiter` must be one character, got {delimiter!r}. Read other files with"
            " `pandas.read_csv(..., sep=...)` and hand over the table."
        )
    if decimal not in (".", ","):
        raise ValueError(f"`decimal` must be '.' or ',', got {decimal!r}. Leave it out for points.")
    text = text_of(path)
    if not isinstance(skip, int) or isinstance(skip, bool) or skip < 0:
        raise ValueError(
            f"`skip` must be a number of lines, 0 or more, got {skip!r}. Count the lines before"
            " that of the column names."
        )
    kept = [
        (i, line)
        for i, line in enumerate(text.splitlines(), start=1)
        if i > skip and line.strip() and not is_comment(line)
    ]
    if not kept:
        after = f" after the {skip} lines that are skipped" if skip else ""
        raise ValueError(f"{path.name} is empty{after}. It must begin with a line of column names.")
    table = [_cells(path, line, number, delimiter) for number, line in kept]
    lines = [i for i, _ in kept]
    if header:
        names, rows, lines = table[0], table[1:], lines[1:]
    else:
        names, rows = [str(i + 1) for i in range(len(table[0]))], table
    _check_shape(path, names, rows, lines, delimiter, header)
    return Columns(path, names, rows, lines, decimal)


def text_of(path: Path) -> str:
    """The text of a file: in UTF-8, in UTF-16 or UTF-32 where its first bytes say so (as a
    spreadsheet's "Unicode text"), else in the code page of Windows for western Europe (as its "CSV"
    is there).

    **Raises:** `ValueError` for what is no text.
    """
    raw = path.read_bytes()
    if raw.startswith(_WORKBOOKS):
        raise ValueError(f"{path.name} is a workbook, not text. Save its sheet as CSV (UTF-8).")
    marked = next((code for mark, code in _MARKS.items() if raw.startswith(mark)), None)
    for code in ("utf-8", "cp1252") if marked is None else (marked,):
        with contextlib.suppress(UnicodeDecodeError):
            text = raw.decode(code)
            if odd := _UNPRINTED.search(text):
                line = text.count("\n", 0, odd.start()) + 1
                raise ValueError(
                    f"{path.name} is not a text file: line {line} holds the sign {odd[0]!r}. Delete"
                    " what is no text, or save it as CSV (UTF-8)."
                )
            return text
    raise ValueError(f"{path.name} is not a text file that can be read. Save it as CSV (UTF-8).")


def is_comment(line: str) -> bool:
    """Whether a line begins with #, and not with what a spreadsheet writes for a value that it does
    not have.
    """
    return line.lstrip().startswith("#") and not line.lstrip().startswith(_ERRORS)


def existing_file(path: str | Path, suffix: str) -> Path:
    """The file at `path`; where there is none, a sentence with the nearest name, or the files of a
    folder that end in `suffix`.
    """
    if not isinstance(path, str | Path) or not str(path).strip():
        raise ValueError(
            f"The file to read must be named by its path, got {path!r}. Write 'run{suffix}', say."
        )
    path = Path(path)
    if not _exists(path):
        there = [p.name for p in path.parent.glob("*")] if path.parent.is_dir() else []
        hint = suggestion(path.name, there) or " Check the folder you run from."
        raise FileNotFoundError(f"There is no file {path}.{hint}")
    if path.is_dir():
        files = sorted(p.name for p in path.glob(f"*{suffix}"))
        hint = f" It holds {', '.join(files[:5])}." if files else f" It holds no {suffix} file."
        raise ValueError(f"{path} is a folder, not a file: name the file.{hint}")
    return path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def missing_column(source: str, name: Any, role: str, header: Sequence[str]) -> ValueError:
    """The error for a column that `source` does not have: it names the nearest and all."""
    hint = suggestion(name, header, 0.5)
    return ValueError(
        f"{source} has no column {name!r} for {role}.{hint} It has: {', '.join(header)}."
    )


def _cells(path: Path, line: str, number: int, delimiter: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, strict=True))]
    except csv.Error as error:
        raise ValueError(
            f"{path.name}, line {number} cannot be split into cells ({error}). Look for a quotation"
            " mark without its partner."
        ) from None


def _check_shape(
    path: Path,
    header: list[str],
    rows: list[list[str]],
    lines: list[int],
    delimiter: str,
    named: bool,
) -> None:
    if len(header) == 1 and named:
        for other, name in ((",", ","), (";", ";"), ("\t", r"\t"), ("|", "|")):
            if other != delimiter and other in header[0]:
                raise ValueError(
                    f'{path.name} seems to be separated by "{name}", not "{delimiter}". Give'
                    f' delimiter="{name}".'
                )
        if len(header[0].split()) > 1 and all(
            len(row) == 1 and len(row[0].split()) == len(header[0].split()) for row in rows
        ):
            raise ValueError(f'{path.name} seems to be separated by spaces. Give delimiter=" ".')
    if named and all(_is_number(cell) for cell in header):
        raise ValueError(
            f"{path.name} must begin with a line of column names, got the numbers"
            f" {', '.join(header[:4])}. Add one, or give header=False and name columns by their"
            " numbers, the first being 1."
        )
    repeated = sorted(name for name, count in Counter(header).items() if count > 1)
    if repeated:
        raise ValueError(f"{path.name} has two columns called {repeated[0]!r}. Rename one.")
    if not rows:
        raise ValueError(f"{path.name} has column names but no rows. Check how it was exported.")
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(header):
            raise ValueError(
                f"{path.name}, line {line} has {len(row)} cells where the"
                f" {'header names' if named else 'first line has'} {len(header)}. Correct the line"
                f"{_preamble(header, row, named)}."
            )


def _preamble(header: list[str], row: list[str], named: bool) -> str:
    """The remedy where a file may begin with lines about the record."""
    if named and len(header) < 3 and len(row) > len(header):
        return ", or give the number of lines before that of the column names as skip=..."
    return ""


def _equal(cell: str, wanted) -> bool:
    if _is_number(cell) and _is_number(str(wanted)):
        return float(cell) == float(wanted)
    return cell == str(wanted).strip()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
