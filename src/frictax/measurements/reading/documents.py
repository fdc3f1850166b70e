"""Workbooks and JSON logs as the text of a CSV file, which the reader of text files then reads."""

import csv
import datetime
import io
import json
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

_WORKBOOKS = {b"PK\x03\x04": ".xlsx", b"\xd0\xcf\x11\xe0": ".xls"}  # how workbooks begin
_JSON = (".json", ".jsonl", ".ndjson")
_LARGEST = 400_000_000  # bytes of a workbook's sheets, unpacked
_FEW = 200  # columns that a nested list of a JSON log may become


def document_as_csv(path: Path, raw: bytes) -> tuple[bytes, str, int] | None:
    """The CSV text of a workbook or of a JSON log; what its rows are called, and the number of the
    first line; None for every other file.

    **Raises:** `ValueError` with one sentence where it holds no table that can be read;
    `ImportError` where the package that reads workbooks is missing.
    """
    if raw[:4] in _WORKBOOKS:
        return _csv(_sheet(path, raw)), "row", 1
    if path.suffix.lower() in _JSON:
        return _csv(_log(path, raw)), "entry", 0
    return None


def _csv(rows: Iterable[Sequence[Any]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_text(cell) for cell in row] for row in rows)
    return out.getvalue().encode("utf-8", "replace")


def _text(cell: Any) -> str:
    """A cell as a CSV file has it; a line end within a text would be a line of its own."""
    if isinstance(cell, datetime.datetime | datetime.date | datetime.time):
        return cell.isoformat()
    return "" if cell is None else " ".join(str(cell).split())


def _sheet(path: Path, raw: bytes) -> list[list[Any]]:
    """The rows of the first sheet of a workbook that holds two rows or more."""
    save = "Save its sheet as CSV (UTF-8)"
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
        if size <= _LARGEST:
            book = openpyxl.load_workbook(io.BytesIO(raw), read_only=True, data_only=True)
            for sheet in book.worksheets:
                rows = [list(row) for row in sheet.iter_rows(values_only=True)]
                if sum(any(cell is not None for cell in row) for row in rows) > 1:
                    wide = max(_width(row) for row in rows)
                    return [(row + [None] * wide)[:wide] for row in rows]
    except Exception:  # zipfile, openpyxl and the parser of XML have errors of many kinds
        raise ValueError(
            f"{path.name} is a workbook, not text, and no .xlsx that can be read. {save}."
        ) from None
    if size > _LARGEST:
        raise ValueError(
            f"{path.name} is a workbook, not text, of {size / 1e6:.0f} MB when unpacked, more than"
            f" the {_LARGEST / 1e6:.0f} MB that are read. {save}."
        )
    raise ValueError(f"{path.name} is a workbook, not text, without rows. {save}.")


def _width(row: Sequence[Any]) -> int:
    """How many cells a row has up to the last that is not empty."""
    return max((i + 1 for i, cell in enumerate(row) if cell is not None), default=0)


def _log(path: Path, raw: bytes) -> list[list[Any]]:
    """The names and the rows of a JSON log."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} is not JSON in UTF-8. Save it as UTF-8.") from None
    entries = _entries(path, text)
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


def _entries(path: Path, text: str) -> list[Any]:
    """The entries of a log: objects, and None for a line that is broken."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        lines = [line for line in text.splitlines() if line.strip()]
        found = [_object(line) for line in lines]
        if sum(entry is not None for entry in found) > len(lines) / 2:
            return found
        line = getattr(error, "lineno", 1)
        raise ValueError(
            f"{path.name} is not JSON that can be read: line {line} is wrong. Write a list of"
            " objects, or one object a line."
        ) from None
    return _table_in(content) or []


def _object(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _table_in(content: Any) -> list[Any] | None:
    """The longest list of objects, or the columns of one length as such a list."""
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
    """Every number and text of an entry, under its names joined by points."""
    for name, value in entry.items():
        key = f"{above}{name}"
        if isinstance(value, dict):
            yield from _flat(value, f"{key}.")
        elif isinstance(value, list) and len(value) <= _FEW:
            yield from _flat({f"[{i}]": x for i, x in enumerate(value)}, key)
        elif not isinstance(value, list):
            yield key, value
