"""Convert workbooks and JSON logs to CSV text for the reader of text files."""

import csv
import datetime
import io
import json
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

_WORKBOOKS = {b"PK\x03\x04": ".xlsx", b"\xd0\xcf\x11\xe0": ".xls"}  # first bytes of workbooks
_JSON = (".json", ".jsonl", ".ndjson")


def document_as_csv(path: Path, raw: bytes) -> tuple[bytes, str, int] | None:
    """Return the CSV text of a workbook or of a JSON log, the name of its rows in messages, and the
    number of its first line; None for other files.

    **Raises:** `ValueError` with one sentence if it does not contain a readable table;
    `ImportError` if the package that reads workbooks is missing.
    """
    if raw[:4] in _WORKBOOKS:
        return _csv(_sheet(path, raw)), "row", 1
    if path.suffix.lower() in _JSON:
        return _csv(_log(path, raw)), "entry", 0
    return None


def _csv(rows: Iterable[Sequence[Any]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [
            (
                cell.isoformat()
                if isinstance(cell, datetime.datetime | datetime.date | datetime.time)
                else ("" if cell is None else " ".join(str(cell).split()))
            )
            for cell in row
        ]
        for row in rows
    )
    return out.getvalue().encode("utf-8", "replace")


def _sheet(path: Path, raw: bytes) -> list[list[Any]]:
    """Return the rows of the first sheet with two rows or more."""
    save, largest = "Save its sheet as CSV (UTF-8)", 400_000_000  # [bytes] when unpacked
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
    except Exception:  # zipfile, openpyxl and the XML parser raise many kinds of errors
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
    """Return the names and the rows of a JSON log."""
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
                entry = None  # a broken line
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
    """Return the longest list of objects. Columns of one length become such a list."""
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
    """Yield the numbers and texts of an entry, with names joined by points."""
    for name, value in entry.items():
        key = f"{above}{name}"
        if isinstance(value, dict):
            yield from _flat(value, f"{key}.")
        elif isinstance(value, list) and len(value) <= 200:  # Longer lists are not columns.
            yield from _flat({f"[{i}]": x for i, x in enumerate(value)}, key)
        elif not isinstance(value, list):
            yield key, value
