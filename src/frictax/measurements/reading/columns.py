"""Read the columns of text files, workbooks and JSON logs, or raise an error that names the wrong
line. Workbooks and JSON logs are converted to CSV first.

A file is read twice: first to count the cells of each line, then by pandas for its numbers. If a
cell of a column is not a plain number, the cells of this column are interpreted one by one.
"""

import codecs
import collections
import contextlib
import csv
import dataclasses
import datetime
import io
import json
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from frictax.text import CONTROL, suggestion

from .cells import ERRORS, MISSING, is_missing, read_number

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    # Test UTF-32 before UTF-16, because a byte order mark of UTF-32 begins with that of UTF-16.
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Control characters, which do not occur in a text file.
_UNPRINTED = re.compile(rf"(?![\r\f\v]){CONTROL.pattern}")
_UNPRINTED_BYTES = bytes([*range(9), *range(14, 32), 127])
_AT_ONCE = 1 << 22  # [bytes] size of the blocks in which lines are counted
_HEAD = 50  # number of first rows that decide which columns pandas reads as numbers.
# Texts that `Columns` lets pandas read as missing numbers. `read_cells` finds other spellings.
_NO_NUMBER = sorted(
    {*ERRORS, *MISSING, *(m.upper() for m in MISSING), "NaN", "Null", "None", "Nan"}
)
# First bytes of a workbook -> its file type
_WORKBOOKS = {b"PK\x03\x04": ".xlsx", b"\xd0\xcf\x11\xe0": ".xls"}
_JSON = (".json", ".jsonl", ".ndjson")
Decimal = Literal[".", ","]


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a text file.

    - `header`: names, which may repeat; `n`: number of rows; `first`: line number of the first row.
    - `skipped`: indices, from 0 at the first row, of lines that are not rows (blank, comment or
      broken); `broken`: number of a broken line -> its number of cells.
    - `rows_are`: the word for a row in messages: "line", "row" or "entry".
    """

    path: Path
    header: list[str]
    n: int
    first: int
    skipped: np.ndarray
    broken: dict[int, int]
    decimal: str
    rows_are: str
    _raw: bytes
    _is_file: bool
    _start: int
    _delimiter: str
    _read: dict[int, np.ndarray] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the columns that have a number or a missing number in one of the first rows."""
        every = list(range(len(self.header)))
        head = self._frame(every, dtype=str, na_filter=False, nrows=_HEAD)
        worth = [
            j
            for j in every
            if any(
                is_missing(cell) or not np.isnan(read_number(cell.strip(), self.decimal))
                for cell in head.iloc[:, j]
            )
        ]
        if not worth:
            return
        frame = self._frame(worth, na_values=_NO_NUMBER, keep_default_na=False)
        if len(frame) != self.n:
            raise ValueError(
                f"{self.path.name} cannot be split into lines of cells. Look for a quotation mark"
                " without its partner."
            )
        for j in worth:
            if frame[j].dtype.kind in "iuf":
                self._read[j] = frame.pop(j).to_numpy()

    def numbers(self, j: int) -> np.ndarray | None:
        """Return column j (from 0) if pandas reads numbers in all its cells; otherwise None."""
        return self._read.get(j)

    def texts(self, j: int) -> np.ndarray:
        """Return the cells of column j (from 0) as texts, unchanged from the file."""
        frame = self._frame([j], dtype=str, na_filter=False)
        return frame.iloc[:, 0].to_numpy(dtype=object)

    def place(self, row: int) -> str:
        """Return the place of a row in the file: "line 7"; the first line is 1."""
        before = self.skipped - np.arange(self.skipped.size)
        line = self.first + row + int(np.searchsorted(before, row, side="right"))
        return f"{self.rows_are} {line}"

    def _frame(self, columns: list[int], **options: Any) -> Any:
        """Return the columns as a `DataFrame`. If all lines after the header and all columns are
        used, pandas opens the file itself, which is faster.
        """
        import pandas as pd

        every = len(columns) == len(self.header)
        if self._is_file and every and not self.skipped.size:
            source: Any = str(self.path)
            options["skiprows"] = self.first - 1
        else:
            source = io.BytesIO(self._raw)
            source.seek(self._start)
            options |= {"skiprows": self.skipped.tolist() or None, "usecols": columns}
        if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
            # From pandas 3.1 on, this exact conversion of numbers is the default.
            options["float_precision"] = "round_trip"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            return pd.read_csv(
                source,
                sep=r"\s+" if self._delimiter == " " else self._delimiter,
                decimal=self.decimal,
                header=None,
                names=range(len(self.header)),
                index_col=False,
                encoding="utf-8",
                **options,
            )


def read_columns(
    path: str | Path,
    *,
    delimiter: str = ",",
    decimal: str = ".",
    skip: int = 0,
    header: bool = True,
    drop: bool = False,
) -> Columns:
    """Read the columns of a text file with the options of `Record.from_csv`. Without a header,
    columns are named by their numbers, from ``"1"``. If `drop` is True, leave out lines with a
    wrong number of cells; otherwise raise an error.

    **Raises:** `FileNotFoundError` for a missing file; `ValueError` for a wrong option or content.
    """
    path = existing_file(path, ".csv")
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise ValueError(
            f"`delimiter` must be one character, got {delimiter!r}. Read other files with"
            " `pandas.read_csv(..., sep=...)` and hand over the table."
        )
    if decimal not in (".", ","):
        raise ValueError(f"`decimal` must be '.' or ',', got {decimal!r}. Leave it out for points.")
    text = text_file(path)
    raw, rows_are = text.raw, text.rows_are
    if text.rows_are != "line":
        delimiter, decimal = ",", "."
    if not isinstance(skip, int) or isinstance(skip, bool) or skip < 0:
        raise ValueError(
            f"`skip` must be a number of lines, 0 or more, got {skip!r}. Count the lines before"
            " that of the column names."
        )
    kept = _lines_kept(raw, skip)
    first = next(kept, None)
    if first is None:
        after = f" after the {skip} lines that are skipped" if skip else ""
        raise ValueError(f"{path.name} is empty{after}. It must begin with a line of column names.")
    number, start, line = first
    names = _cells(path, line, number, delimiter)
    if header:
        _check_names(
            path, names, delimiter, [line for _, line in zip(range(_HEAD), kept, strict=False)]
        )
        number, start, line = next(_lines_kept(raw, number), (number, len(raw), ""))
        if not line:
            raise ValueError(
                f"{path.name} has column names but no rows. Check how it was exported."
            )
        beside = _cells(path, line, number, delimiter)
        if len(beside) == len(names) + 1 and not beside[-1]:  # Each row ends with a separator.
            names.append("")
    else:
        names = [str(i + 1) for i in range(len(names))]
    found = _scan_lines(path, raw, start, delimiter, len(names), number)
    if found.broken and not drop:
        raise _broken_line(path, found, names, text, number, header)
    if not found.n:
        raise ValueError(
            f"{path.name} has no row of {len(names)} cells, as its"
            f" {'header names' if header else 'first line has'}. Check the delimiter."
        )
    skipped = np.array(sorted([*found.skipped, *found.broken]), dtype=int)
    return Columns(
        path, names, found.n, number + text.offset, skipped, found.broken, decimal, rows_are,
        raw, text.is_file, start, delimiter,
    )  # fmt: skip


@dataclasses.dataclass
class _Scan:
    """Number of rows `n`, blank and comment lines `skipped`, wrong line -> cell count `broken`."""

    n: int = 0
    skipped: list[int] = dataclasses.field(default_factory=list)
    broken: dict[int, int] = dataclasses.field(default_factory=dict)


def _scan_lines(
    path: Path, raw: bytes, start: int, delimiter: str, width: int, first: int
) -> _Scan:
    """Compare the number of cells of each line with `width`, from the byte `start` (in line
    `first`) on. For speed, check a block without quotation marks and comments as a whole.
    """
    out, at, line = _Scan(), start, 0
    plain = delimiter != " " and delimiter.isascii() and width > 1
    sign = delimiter.encode()
    others = bytes(set(range(256)) - {*sign, *b'\n"#', *_UNPRINTED_BYTES}) if plain else b""
    while at < len(raw):
        end = raw.find(b"\n", min(at + _AT_ONCE, len(raw))) + 1 or len(raw)
        part = raw[at:end]
        at = end
        if not part.endswith(b"\n"):
            part += b"\n"
        signs = part.translate(None, others) if plain else b""
        rows = len(signs) // width
        if plain and signs == (sign * (width - 1) + b"\n") * rows:
            out.n += rows
            line += rows
            continue
        _check_signs(path, part, first + line)
        for text in part.decode("utf-8").split("\n")[:-1]:
            line += 1
            if not text.strip() or is_comment(text):
                out.skipped.append(line - 1)
                continue
            if '"' in text:
                cells = len(_cells(path, text, first + line - 1, delimiter))
            else:
                cells = len(text.split()) if delimiter == " " else text.count(delimiter) + 1
            if cells == width:
                out.n += 1
            else:
                out.broken[line - 1] = cells
    return out


@dataclasses.dataclass(frozen=True, eq=False)
class TextFile:
    """The text of a file as UTF-8 bytes, `raw`. `rows_are`: word for a line in messages; `offset`:
    number added to line numbers in messages; `is_file`: True if `raw` equals the bytes of the file.
    """

    raw: bytes
    rows_are: str = "line"
    offset: int = 0
    is_file: bool = False


def text_file(path: Path) -> TextFile:
    """Return the text of a file in UTF-8, with line feeds as line ends. The file may be in UTF-8,
    in UTF-16 or UTF-32 with a byte order mark, or in the Windows code page 1252. A workbook and a
    JSON log are converted to CSV.

    **Raises:** `ValueError` for a file that is not text.
    """
    read = raw = path.read_bytes()
    if (document := document_as_csv(path, raw)) is not None:
        return TextFile(document[0], document[1], document[2] - 1)
    marked = next((code for mark, code in _MARKS.items() if raw.startswith(mark)), None)
    # Old programs mark the end of a file with the character 0x1a.
    if marked is None and raw.endswith(b"\x1a"):
        raw = raw.rstrip(b"\x1a")
    if marked is not None or not raw.isascii():
        for code in ("utf-8", "cp1252") if marked is None else (marked,):
            with contextlib.suppress(UnicodeDecodeError):
                text = raw.decode(code)
                if marked is not None or code == "cp1252":
                    _check_signs(path, text.encode("utf-8"))
                raw = raw if code == "utf-8" else text.encode("utf-8")
                break
        else:
            raise ValueError(
                f"{path.name} is not a text file that can be read. Save it as CSV (UTF-8)."
            )
    head = raw[:_AT_ONCE].removesuffix(b"\r")
    _check_signs(path, head)
    if b"\r" in head and head.count(b"\r") != head.count(b"\r\n"):
        raw = raw.replace(b"\r\r\n", b"\n").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    # Convert a first line such as "sep=;", which is for spreadsheet programs, to a comment.
    if raw[:5].lower() in (b"sep=,", b"sep=;", b"sep=\t", b"sep=|"):
        raw = b"#" + raw
    return TextFile(raw, is_file=raw is read and path.is_file())


def text_of(path: Path) -> str:
    """Return the text of a file as one `str`. See `text_file` for the encodings."""
    return text_file(path).raw.decode("utf-8")


def _check_signs(path: Path, raw: bytes, first: int = 1) -> None:
    """Raise an error for control characters in `raw`, a text that begins in line `first`."""
    if raw.isascii() and len(raw.translate(None, _UNPRINTED_BYTES)) == len(raw):
        return
    text = raw.decode("utf-8", "ignore")
    if (odd := _UNPRINTED.search(text)) is not None:
        line = first + text.count("\n", 0, odd.start())
        raise ValueError(
            f"{path.name} is not a text file: line {line} holds the sign {odd[0]!r}. Delete what is"
            " no text, or save it as CSV (UTF-8)."
        )


def _lines_kept(raw: bytes, skip: int) -> Iterator[tuple[int, int, str]]:
    """Yield the number, the position [bytes] and the text of each line after line `skip`. Blank
    lines and comments are left out.
    """
    at = 0
    for number in range(1, 1 << 62):
        if at >= len(raw):
            return
        end = raw.find(b"\n", at)
        end = len(raw) if end < 0 else end
        if number > skip:
            text = raw[at:end].decode("utf-8").rstrip("\r")
            if text.strip() and not is_comment(text):
                yield number, at, text
        at = end + 1


def is_comment(line: str) -> bool:
    """Return whether a line begins with #. Error values of spreadsheets (#N/A) are not comments."""
    return line.lstrip().startswith("#") and not line.lstrip().startswith(ERRORS)


def existing_file(path: str | Path, suffix: str) -> Path:
    """Return `path` as a `Path` if it is a file. For a missing file, raise an error that names the
    most similar file. For a folder, the error lists its files that end in `suffix`.
    """
    if not isinstance(path, str | Path) or not str(path).strip():
        raise ValueError(
            f"The file to read must be named by its path, got {path!r}. Write 'run{suffix}', say."
        )
    path = Path(path)
    try:
        exists = path.exists()
    except (OSError, ValueError):  # The path is not a possible file name.
        exists = False
    if not exists:
        there = [p.name for p in path.parent.glob("*")] if path.parent.is_dir() else []
        hint = suggestion(path.name, there) or " Check the folder you run from."
        raise FileNotFoundError(f"There is no file {path}.{hint}")
    if path.is_dir():
        files = sorted(p.name for p in path.glob(f"*{suffix}"))
        hint = f" It holds {', '.join(files[:5])}." if files else f" It holds no {suffix} file."
        raise ValueError(f"{path} is a folder, not a file: name the file.{hint}")
    return path


def missing_column(source: str, name: Any, role: str, header: Sequence[str]) -> ValueError:
    """Return the error for a missing column: it names the most similar column and all columns."""
    hint = suggestion(name, header, 0.5)
    return ValueError(
        f"{source} has no column {name!r} for {role}.{hint} It has: {', '.join(header)}."
    )


def _cells(path: Path, line: str, number: int, delimiter: str) -> list[str]:
    spaces = delimiter == " "
    lines = [line.replace("\t", " ") if spaces else line]
    try:
        rows = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=spaces)
        cells = [cell.strip() for cell in next(rows)]
    except (csv.Error, StopIteration) as error:
        raise ValueError(
            f"{path.name}, line {number} cannot be split into cells ({error}). Look for a quotation"
            " mark without its partner."
        ) from None
    return [cell for cell in cells if cell] if spaces else cells


def _check_names(
    path: Path, header: list[str], delimiter: str, kept: list[tuple[int, int, str]]
) -> None:
    if len(header) == 1:
        for other, name in ((",", ","), (";", ";"), ("\t", r"\t"), ("|", "|")):
            if other != delimiter and other in header[0]:
                raise ValueError(
                    f'{path.name} seems to be separated by "{name}", not "{delimiter}". Give'
                    f' delimiter="{name}".'
                )
        words = len(header[0].split())
        if words > 1 and kept and all(len(text.split()) == words for _, _, text in kept):
            raise ValueError(f'{path.name} seems to be separated by spaces. Give delimiter=" ".')
    try:
        [float(cell) for cell in header]
    except ValueError:
        return
    raise ValueError(
        f"{path.name} must begin with a line of column names, got the numbers"
        f" {', '.join(header[:4])}. Add one, or give header=False and name columns by their"
        " numbers, the first being 1."
    )


def _broken_line(
    path: Path, found: _Scan, names: list[str], file: TextFile, first: int, named: bool
) -> ValueError:
    """Return the error for lines with a wrong number of cells."""
    line, cells = next(iter(found.broken.items()))
    many = len(found.broken)
    remedy = "Correct the line" if many == 1 else "Correct them"
    if found.n > 2 * many:
        remedy += ", or give drop_missing=True to leave broken lines out of a record"
    elif named and len(names) < 3 and cells > len(names):
        remedy += ", or give the number of lines before that of the column names as skip=..."
    return ValueError(
        f"{path.name}, {file.rows_are} {first + line + file.offset} has {cells} cells where the"
        f" {'header names' if named else 'first line has'} {len(names)}"
        f"{f', and {many - 1} more lines do not fit' if many > 1 else ''}. {remedy}."
    )


def twice(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once."""
    return [name for name, many in collections.Counter(names).items() if many > 1]


def document_as_csv(path: Path, raw: bytes) -> tuple[bytes, str, int] | None:
    """Return the CSV text of a workbook or of a JSON log, the word for its rows in messages, and
    the number of its first row in messages. Return None for other files.

    **Raises:** `ValueError` if the file does not contain a readable table, or if the package that
    reads workbooks is missing.
    """
    if raw[:4] in _WORKBOOKS:
        rows, rows_are, first = _sheet(path, raw), "row", 1
    elif path.suffix.lower() in _JSON:
        rows, rows_are, first = _log(path, raw), "entry", 0
    else:
        return None
    dates, out = datetime.datetime | datetime.date | datetime.time, io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [
            cell.isoformat()
            if isinstance(cell, dates)
            else ("" if cell is None else " ".join(str(cell).split()))
            for cell in row
        ]
        for row in rows
    )
    return out.getvalue().encode("utf-8", "replace"), rows_are, first


def _sheet(path: Path, raw: bytes) -> list[list[Any]]:
    """Return the rows of the first sheet of a workbook that has at least two rows."""
    # `largest`: largest size [bytes] of a workbook after unpacking
    save, largest = "Save its sheet as CSV (UTF-8)", 400_000_000
    try:
        import openpyxl  # pyright: ignore[reportMissingImports, reportMissingModuleSource]
    except ImportError:
        raise ValueError(
            f"{path.name} is a workbook, not text. {save}, or install what reads workbooks: `pip"
            " install 'frictax[excel]'`."
        ) from None
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
        if size <= largest:
            book = openpyxl.load_workbook(io.BytesIO(raw), read_only=True, data_only=True)
            for sheet in book.worksheets:
                rows = [list(row) for row in sheet.iter_rows(values_only=True)]
                if sum(any(cell is not None for cell in row) for row in rows) > 1:
                    wide = max(
                        max((i + 1 for i, cell in enumerate(row) if cell is not None), default=0)
                        for row in rows
                    )
                    return [(row + [None] * wide)[:wide] for row in rows]
    except Exception:  # zipfile, openpyxl and the XML parser raise many types of errors.
        raise ValueError(
            f"{path.name} is a workbook, not text, and no .xlsx that can be read. {save}."
        ) from None
    if size > largest:
        raise ValueError(
            f"{path.name} is a workbook, not text, of {size / 1e6:.0f} MB when unpacked, more than"
            f" the {largest / 1e6:.0f} MB that are read. {save}."
        )
    raise ValueError(f"{path.name} is a workbook, not text, without rows. {save}.")


def _log(path: Path, raw: bytes) -> list[list[Any]]:
    """Return the rows of a JSON log; the first row contains the names of the columns."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} is not JSON in UTF-8. Save it as UTF-8.") from None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        entries, lines = list[Any](), [line for line in text.splitlines() if line.strip()]
        for line in lines:
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                entry = None  # The line is not valid JSON.
            entries.append(entry if isinstance(entry, dict) else None)
        if sum(entry is not None for entry in entries) <= len(lines) / 2:
            raise ValueError(
                f"{path.name} is not JSON that can be read: line {getattr(error, 'lineno', 1)} is"
                " wrong. Write a list of objects, or one object a line."
            ) from None
    else:
        entries = _table_in(content) or []
    flat = [{} if e is None else dict(_flat(e)) for e in entries]
    names = list(dict.fromkeys(name for entry in flat for name in entry))
    if not names:
        raise ValueError(
            f"{path.name} holds no list of entries with names and numbers. Write one object a line,"
            ' {"t": 0.0, "q": 1.0}, or save it as CSV.'
        )
    rows = (
        ["broken"] if given is None else [entry.get(name) for name in names]
        for given, entry in zip(entries, flat, strict=True)
    )
    return [names, *rows]


def _table_in(content: Any) -> list[Any] | None:
    """Return the longest table in the content of a JSON file, as a list of rows (dicts). A list of
    objects or lists is a table of rows. In an object, the longest lists are the columns of a table.
    """
    if isinstance(content, list):
        if content and all(isinstance(e, dict) for e in content):
            return content
        if content and all(isinstance(e, list) for e in content):
            return [{str(i + 1): x for i, x in enumerate(e)} for e in content]
        return None
    if not isinstance(content, dict):
        return None
    columns = {
        name: x
        for name, x in content.items()
        if isinstance(x, list) and x and not isinstance(x[0], dict | list)
    }
    longest = max(map(len, columns.values()), default=0)
    same = {name: x for name, x in columns.items() if len(x) == longest}
    below = [table for x in content.values() if (table := _table_in(x))]
    if longest > 1 and longest >= max(map(len, below), default=0):
        return [dict(zip(same, row, strict=True)) for row in zip(*same.values(), strict=True)]
    return max(below, key=len, default=None)


def _flat(entry: Any, above: str = "") -> Iterable[tuple[str, Any]]:
    """Yield name and value of each number or text in an entry; points join nested names."""
    for name, value in entry.items():
        key = f"{above}{name}"
        if isinstance(value, dict):
            yield from _flat(value, f"{key}.")
        elif isinstance(value, list) and len(value) <= 200:
            # A list of more than 200 values does not become columns and is left out.
            yield from _flat({f"[{i}]": x for i, x in enumerate(value)}, key)
        elif not isinstance(value, list):
            yield key, value
