"""Where the records of a fleet are: in memory, in the files of a folder, or in one long table."""

import dataclasses
import functools
import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from frictax.files.unpacked import check_parquet
from frictax.measurements import Record
from frictax.measurements.reading.columns import text_of
from frictax.text import suggestion

from .table import needs_pyarrow

SUFFIXES = (".csv", ".txt", ".parquet", ".mat")
ABOUT = ("machine", "date", "temperature")
_AT_ONCE = 1 << 20  # bytes of a text file that are counted at a time

# from a source and what it is called to its record, by a problem file
Reader = Callable[["FileSource | TableSource"], Record]


@dataclasses.dataclass(frozen=True, eq=False)
class InMemory:
    """A record that is there; `name` in the table of the fleet."""

    name: str
    record: Record

    @property
    def size(self) -> int:
        """How many samples there are, about."""
        return self.record.n

    def told(self) -> tuple[Any, ...]:
        """What shows whether it has changed."""
        import hashlib

        digest = hashlib.blake2b(digest_size=16)
        record = self.record
        for x in (record.t, *record.inputs.values(), *record.outputs.values()):
            digest.update(np.ascontiguousarray(x).tobytes())
        return (*record.inputs, *record.outputs, digest.hexdigest())


@dataclasses.dataclass(frozen=True)
class FileSource:
    """A record in a file of its own."""

    name: str
    path: Path
    size: int

    def told(self) -> tuple[Any, ...]:
        stat = self.path.stat()
        return self.path.name, stat.st_size, stat.st_mtime_ns


@dataclasses.dataclass(frozen=True)
class TableSource:
    """A record in the rows from `first` to before `first + size` of a long Parquet table, whose
    column `key` names it.
    """

    name: str
    path: Path
    first: int
    size: int
    key: str

    def told(self) -> tuple[Any, ...]:
        return self.first, self.size


Source = InMemory | FileSource | TableSource


def in_memory(records: Sequence[Any]) -> list[InMemory]:
    """Records under their names; those without one, or with one that stood before, by number."""
    strangers = [type(r).__name__ for r in records if not isinstance(r, Record)]
    if strangers or not records:
        raise ValueError(
            "`records` must be a folder, a Parquet table or a list of `Record`s, got"
            f" {'a list with a ' + strangers[0] if strangers else 'an empty list'}."
        )
    taken: set[str] = set()
    out = []
    for i, record in enumerate(records):
        name = record.name if record.name and record.name not in taken else f"record {i + 1}"
        taken.add(name)
        out.append(InMemory(name, record))
    return out


def in_folder(folder: Path) -> list[FileSource]:
    """The files of a folder that hold records, in the order of their names, numbers by size."""
    paths = [p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and p.is_file()]
    paths.sort(key=lambda p: _natural(p.name))
    if not paths:
        raise ValueError(
            f"The folder {folder} holds no record. Files are known by their endings:"
            f" {', '.join(SUFFIXES)}."
        )
    stems = [p.stem for p in paths]
    if _repeats(stems):
        raise ValueError(
            f"The folder {folder} has two files called {_twice(stems)!r} but for their endings."
            " Rename one: a record is known by its file's name."
        )
    return [FileSource(p.stem, p, _rows_of(p)) for p in paths]


def in_table(path: Path, column: str) -> list[TableSource]:
    """The records of a long Parquet table, whose rows stand together; `column` names each."""
    needs_pyarrow()
    import pyarrow.parquet as parquet  # pyright: ignore[reportMissingImports]

    file = parquet.ParquetFile(path)
    names = file.schema_arrow.names
    if column not in names:
        raise ValueError(
            f"{path.name} has no column {column!r} that says which record a row belongs"
            f" to.{suggestion(column, names)} Name it as fleet.record in the problem file; there"
            f" are: {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}."
        )
    begins, keys, rows = list[int](), list[str](), 0
    for group in range(file.num_row_groups):  # by codes: the names of all rows may fill a memory
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
    if _repeats(keys):
        raise ValueError(
            f"The rows of record {_twice(keys)!r} of {path.name} do not stand together. Sort the"
            f" table by {column!r} and time."
        )
    sizes = np.diff([*begins, rows])
    return [
        TableSource(key, path, int(first), int(size), column)
        for key, first, size in zip(keys, begins, sizes, strict=True)
    ]


def frame_of(source: TableSource) -> Any:
    """The rows of one record of a long table, as a `DataFrame`: only the groups of rows that hold
    them are read.
    """
    import pyarrow as pa  # pyright: ignore[reportMissingImports]

    stamp = source.path.stat().st_mtime_ns
    counts = _counts(source.path, stamp)
    ends = np.cumsum(counts)
    groups = np.flatnonzero((ends > source.first) & (ends - counts < source.first + source.size))
    rows = pa.concat_tables([_group(source.path, stamp, int(g)) for g in groups])
    first = source.first - int(ends[groups[0]] - counts[groups[0]])
    return rows.slice(first, source.size).drop_columns([source.key]).to_pandas()


@functools.lru_cache(maxsize=4)
def _counts(path: Path, stamp: int) -> np.ndarray:
    """How many rows each group has."""
    import pyarrow.parquet as parquet  # pyright: ignore[reportMissingImports]

    told = parquet.ParquetFile(path).metadata
    return np.asarray([told.row_group(i).num_rows for i in range(told.num_row_groups)])


@functools.lru_cache(maxsize=2)
def _group(path: Path, stamp: int, number: int) -> Any:
    """A group of rows, kept for the records that follow in it."""
    import pyarrow.parquet as parquet  # pyright: ignore[reportMissingImports]

    return parquet.ParquetFile(path).read_row_group(number)


def about_each(sources: Sequence[Source], about: Any, names: Mapping[str, str]) -> Any:
    """What is known of each record beside its channels, a `DataFrame` in their order: machine,
    date, temperature, and whatever else is given.

    **Arguments:** `about`: a table with a row a record, None for none; `names`: what the columns
    "record", "machine", "date" and "temperature" are called in it, or in a long table.
    """
    import pandas as pd

    if about is None:
        tables = [s for s in sources if isinstance(s, TableSource)]
        frame = _of_rows(tables, names) if tables else pd.DataFrame(index=range(len(sources)))
    else:
        frame = about if isinstance(about, pd.DataFrame) else _read(Path(about))
        key = names["record"] if names["record"] in frame.columns else "record"
        if key not in frame.columns:
            raise ValueError(
                f"The table about the records has no column {names['record']!r} that names them."
                f" It has: {', '.join(map(str, frame.columns))}."
            )
        names_of = [str(n) for n in frame[key]]
        keys = [Path(n).stem if n.endswith(SUFFIXES) else n for n in names_of]
        if _repeats(keys):
            raise ValueError(
                f"The table about the records names {_twice(keys)!r} twice."
                " Leave one row for each record."
            )
        frame = frame.drop(columns=key).set_axis(keys, axis=0)
        lost = [s.name for s in sources if s.name not in frame.index]
        if lost:
            raise ValueError(
                f"The table about the records has no row for {lost[0]!r}"
                f"{f' and {len(lost) - 1} others' if lost[1:] else ''}. Give one for each record."
            )
        frame = frame.loc[[s.name for s in sources]].reset_index(drop=True)
    return _usual(frame.rename(columns={names[k]: k for k in ABOUT if names[k] in frame.columns}))


def _usual(frame: Any) -> Any:
    """With the usual columns first, of the usual kinds."""
    import pandas as pd

    out = pd.DataFrame(index=frame.index)
    out["machine"] = frame["machine"].astype(str) if "machine" in frame else ""
    try:
        dates: Any = frame["date"] if "date" in frame else np.full(len(frame), None)
        out["date"] = pd.to_datetime(dates).astype("datetime64[us]")  # as Parquet keeps it
    except (ValueError, TypeError):
        raise ValueError(
            "The dates of the records are no dates that can be read: got"
            f" {frame['date'].iloc[0]!r}. Write them as 2026-05-31 or 2026-05-31 14:00."
        ) from None
    try:
        given = frame["temperature"] if "temperature" in frame else np.nan
        out["temperature"] = np.asarray(given, dtype=float) + np.zeros(len(frame))
    except (ValueError, TypeError):
        raise ValueError(
            "The temperatures of the records must be numbers, got"
            f" {frame['temperature'].iloc[0]!r}. Write degrees Celsius without a unit."
        ) from None
    return out.join(frame.drop(columns=[c for c in ABOUT if c in frame.columns]))


def _of_rows(sources: Sequence[TableSource], names: Mapping[str, str]) -> Any:
    """Of a long table: what the first row of each record says."""
    import pandas as pd
    import pyarrow as pa  # pyright: ignore[reportMissingImports]
    import pyarrow.parquet as parquet  # pyright: ignore[reportMissingImports]

    there = parquet.ParquetFile(sources[0].path).schema_arrow.names
    columns = [names[k] for k in ABOUT if names[k] in there]
    if not columns:
        return pd.DataFrame(index=range(len(sources)))
    file, first, parts = parquet.ParquetFile(sources[0].path), 0, []
    begins = np.asarray([s.first for s in sources])
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        mine = begins[(begins >= first) & (begins < first + rows)] - first
        if mine.size:
            parts.append(file.read_row_group(group, columns).take(mine))
        first += rows
    return pa.concat_tables(parts).to_pandas()


def _read(path: Path) -> Any:
    import pandas as pd

    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}, which is to tell about the records.")
    if path.suffix.lower() == ".parquet":
        check_parquet(path)
        return pd.read_parquet(path)
    return pd.read_csv(io.StringIO(text_of(path)))


def _rows_of(path: Path) -> int:
    """How many rows a file has, about; 0 where only reading it would tell."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        needs_pyarrow()
        import pyarrow.parquet as parquet  # pyright: ignore[reportMissingImports]

        try:
            return parquet.ParquetFile(path).metadata.num_rows
        except Exception:  # said of this record, when it is read
            return 0
    if suffix == ".mat":
        return 0
    with path.open("rb") as file:
        return sum(part.count(b"\n") for part in iter(lambda: file.read(_AT_ONCE), b""))


def _natural(name: str) -> list[Any]:
    """``run2`` before ``run10``."""
    return [(int(p), "") if p.isdigit() else (0, p) for p in re.split(r"(\d+)", name)]


def _repeats(names: Sequence[str]) -> bool:
    return len(set(names)) < len(names)


def _twice(names: Sequence[str]) -> str:
    """The first that was there before."""
    seen: set[str] = set()
    return next(n for n in names if n in seen or seen.add(n))
