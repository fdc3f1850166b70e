"""Find and read the records of a fleet: in memory, in files of a folder, or in a Parquet table."""

import contextlib
import dataclasses
import functools
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from frictax.files.unpacked import check_parquet
from frictax.measurements import Record
from frictax.measurements.reading.columns import text_of
from frictax.text import suggestion

from .table import check_pyarrow, read_dates

SUFFIXES = (".csv", ".txt", ".parquet", ".mat")
ABOUT = ("machine", "date", "temperature")


@dataclasses.dataclass(frozen=True, eq=False)
class MemorySource:
    """A record in memory. `name`: name of the record in the table of the fleet."""

    name: str
    record: Record

    @property
    def size(self) -> int:
        """Number of samples."""
        return self.record.n

    def fingerprint(self) -> tuple[Any, ...]:
        """Return values that change if samples, channels, units, `sd` or `hold` change."""
        import hashlib

        digest = hashlib.blake2b(digest_size=16)
        record = self.record
        arrays = record.t, *record.inputs.values(), *record.outputs.values(), *record.sd.values()
        for x in arrays:
            digest.update(np.ascontiguousarray(x).tobytes())
        declared = repr((record.units, list(record.sd), record.hold))
        return (*record.inputs, *record.outputs, declared, digest.hexdigest())


@dataclasses.dataclass(frozen=True)
class FileSource:
    """A record in a separate file. `size`: approximate number of samples, 0 if unknown."""

    name: str
    path: Path
    size: int

    def fingerprint(self) -> tuple[Any, ...]:
        stat = self.path.stat()
        return self.path.name, stat.st_size, stat.st_mtime_ns


@dataclasses.dataclass(frozen=True)
class TableSource:
    """A record in a long Parquet table that contains many records. The record has `size` rows and
    begins at row `first`. The column `key` contains the name of the record to which a row belongs.
    """

    name: str
    path: Path
    first: int
    size: int
    key: str

    def fingerprint(self) -> tuple[Any, ...]:
        stat = self.path.stat()
        return self.first, self.size, stat.st_size, stat.st_mtime_ns


Source = MemorySource | FileSource | TableSource


def sources_in_memory(records: Sequence[Any]) -> list[MemorySource]:
    """Return a source for each of the `records`. A record without a name, or with the name of an
    earlier record, is called "record N". N is its number in the list, or the next free number.
    """
    strangers = [type(r).__name__ for r in records if not isinstance(r, Record)]
    if strangers or not records:
        raise ValueError(
            "`records` must be a folder, a Parquet table or a list of `Record`s, got"
            f" {'a list with a ' + strangers[0] if strangers else 'an empty list'}."
        )
    taken: set[str] = set()
    out = []
    for i, record in enumerate(records):
        name, number = record.name, i + 1
        while not name or name in taken:
            name, number = f"record {number}", number + 1
        taken.add(name)
        out.append(MemorySource(name, record))
    return out


def sources_in_folder(folder: Path) -> list[FileSource]:
    """Return a source for each data file in a folder, sorted by name (run2 before run10)."""
    paths = [p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and p.is_file()]
    paths.sort(
        key=lambda p: [(int(x), "") if x.isdigit() else (0, x) for x in re.split(r"(\d+)", p.name)]
    )
    if not paths:
        raise ValueError(
            f"The folder {folder} holds no record. Files are known by their endings:"
            f" {', '.join(SUFFIXES)}."
        )
    stems = [p.stem for p in paths]
    if (duplicate := _first_duplicate(stems)) is not None:
        raise ValueError(
            f"The folder {folder} has two files called {duplicate!r} with different"
            " endings. Rename one: the name of the file names its record."
        )
    out = []
    for path in paths:
        suffix, size = path.suffix.lower(), 0  # The size is unknown until the file is read.
        if suffix == ".parquet":
            check_pyarrow()
            with contextlib.suppress(Exception):  # The error is reported when the record is read.
                size = _open_parquet(path).metadata.num_rows
        elif suffix != ".mat":
            with path.open("rb") as file:
                size = sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 20), b""))
        out.append(FileSource(path.stem, path, size))
    return out


def sources_in_table(path: Path, column: str) -> list[TableSource]:
    """Return a source for each record in a long Parquet table. `column`: the column that contains
    the name of the record to which each row belongs.
    """
    file = _open_parquet(path)
    names = file.schema_arrow.names
    if column not in names:
        raise ValueError(
            f"{path.name} has no column {column!r} that says which record a row belongs"
            f" to.{suggestion(column, names)} Name it as fleet.record in the problem file; there"
            f" are: {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}."
        )
    begins, keys, rows = list[int](), list[str](), 0
    # Read names as integer codes by row group (block of rows), because all names may not fit in
    # memory.
    for group in range(file.num_row_groups):
        coded = file.read_row_group(group, [column]).column(0).combine_chunks().dictionary_encode()
        codes, values = coded.indices.to_numpy(zero_copy_only=False), coded.dictionary.to_pylist()
        changes = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
        for at in changes[: len(codes)]:
            key = str(values[int(codes[at])])
            if not keys or keys[-1] != key:
                keys.append(key)
                begins.append(rows + int(at))
        rows += len(codes)
    if not rows:
        raise ValueError(f"{path.name} has no rows.")
    if (duplicate := _first_duplicate(keys)) is not None:
        raise ValueError(
            f"The rows of record {duplicate!r} of {path.name} are not consecutive."
            f" Sort the table by {column!r} and time."
        )
    sizes = np.diff([*begins, rows])
    return [
        TableSource(key, path, int(first), int(size), column)
        for key, first, size in zip(keys, begins, sizes, strict=True)
    ]


def _open_parquet(path: Path) -> Any:
    check_pyarrow()
    import pyarrow.parquet as parquet  # pyright: ignore[reportMissingImports]

    return parquet.ParquetFile(path)


def read_rows(source: TableSource) -> Any:
    """Return the rows of one record of a long table. Read only row groups that contain its rows."""
    import pyarrow as pa  # pyright: ignore[reportMissingImports]

    stamp = source.path.stat().st_mtime_ns
    counts = _group_sizes(source.path, stamp)
    ends = np.cumsum(counts)
    groups = np.flatnonzero((ends > source.first) & (ends - counts < source.first + source.size))
    rows = pa.concat_tables([_row_group(source.path, stamp, int(g)) for g in groups])
    first = source.first - int(ends[groups[0]] - counts[groups[0]])
    return rows.slice(first, source.size).drop_columns([source.key]).to_pandas()


@functools.lru_cache(maxsize=4)
def _group_sizes(path: Path, stamp: int) -> np.ndarray:
    """Return the number of rows in each row group of a Parquet file that changed at `stamp`."""
    about = _open_parquet(path).metadata
    return np.asarray([about.row_group(i).num_rows for i in range(about.num_row_groups)])


@functools.lru_cache(maxsize=2)
def _row_group(path: Path, stamp: int, number: int) -> Any:
    """Read a row group. The result is cached because a group often also contains later records."""
    return _open_parquet(path).read_row_group(number)


def describe_records(sources: Sequence[Source], about: Any, names: Mapping[str, str]) -> Any:
    """Return a `DataFrame` with a row for each record. The columns are machine, date, temperature,
    and all further columns of `about` (a table or its file). `names`: dict from record, machine,
    date and temperature to the name of this column in `about` or in a long table.
    """
    import pandas as pd

    if about is None:
        tables = [s for s in sources if isinstance(s, TableSource)]
        frame = _first_rows(tables, names) if tables else pd.DataFrame(index=range(len(sources)))
    else:
        frame = about
        if not isinstance(about, pd.DataFrame):
            path = Path(about)
            if not path.is_file():
                raise FileNotFoundError(f"There is no file {path} with the data on the records.")
            if path.suffix.lower() == ".parquet":
                check_parquet(path)
                frame = pd.read_parquet(path)
            else:
                frame = pd.read_csv(io.StringIO(text_of(path)))
        key = names["record"] if names["record"] in frame.columns else "record"
        if key not in frame.columns:
            raise ValueError(
                f"The table about the records has no column {names['record']!r} that names them."
                f" It has: {', '.join(map(str, frame.columns))}."
            )
        names_of = [str(n) for n in frame[key]]
        keys = [Path(n).stem if n.endswith(SUFFIXES) else n for n in names_of]
        if (duplicate := _first_duplicate(keys)) is not None:
            raise ValueError(
                f"The table about the records names {duplicate!r} twice."
                " Leave one row for each record."
            )
        frame = frame.drop(columns=key).set_axis(keys, axis=0)
        missing = [s.name for s in sources if s.name not in frame.index]
        if missing:
            raise ValueError(
                f"The table about the records has no row for {missing[0]!r}"
                f"{f' and {len(missing) - 1} others' if missing[1:] else ''}."
                " Give one for each record."
            )
        frame = frame.loc[[s.name for s in sources]].reset_index(drop=True)
    return _standardize_columns(
        frame.rename(columns={names[k]: k for k in ABOUT if names[k] in frame.columns})
    )


def _standardize_columns(frame: Any) -> Any:
    """Return `frame` with the columns machine, date and temperature first, in standard types."""
    import pandas as pd

    out = pd.DataFrame(index=frame.index)
    out["machine"] = frame["machine"].astype(str) if "machine" in frame else ""
    out["date"] = read_dates(frame["date"] if "date" in frame else np.full(len(frame), None))
    try:
        given = frame["temperature"] if "temperature" in frame else pd.Series(np.nan, frame.index)
        out["temperature"] = given.to_numpy(dtype=float, na_value=np.nan)
    except (ValueError, TypeError):
        numbers: Any = pd.to_numeric(frame["temperature"], errors="coerce")
        wrong = frame["temperature"][numbers.isna() & frame["temperature"].notna()]
        raise ValueError(
            "The temperatures of the records must be numbers, got"
            f" {wrong.iloc[0]!r}. Write degrees Celsius without a unit."
        ) from None
    return out.join(frame.drop(columns=[c for c in ABOUT if c in frame.columns]))


def _first_rows(sources: Sequence[TableSource], names: Mapping[str, str]) -> Any:
    """Return machine, date and temperature from the first row of each record of a long table."""
    import pandas as pd
    import pyarrow as pa  # pyright: ignore[reportMissingImports]

    file, first, parts = _open_parquet(sources[0].path), 0, []
    there = file.schema_arrow.names
    columns = [names[k] for k in ABOUT if names[k] in there]
    if not columns:
        return pd.DataFrame(index=range(len(sources)))
    begins = np.asarray([s.first for s in sources])
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        mine = begins[(begins >= first) & (begins < first + rows)] - first
        if mine.size:
            parts.append(file.read_row_group(group, columns).take(mine))
        first += rows
    return pa.concat_tables(parts).to_pandas()


def _first_duplicate(names: Sequence[str]) -> str | None:
    """Return the first name that occurs more than once, or None."""
    return next((n for n, count in Counter(names).items() if count > 1), None)
