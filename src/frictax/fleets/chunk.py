"""The one function of a fleet: from what is asked and some records to rows of a table."""

import functools
import time
from pathlib import Path
from typing import Any

import numpy as np

from frictax.fitting import FitOptions
from frictax.fitting.fit_many import MISTAKES, fit_each
from frictax.fitting.result.fit_result import FitResult
from frictax.measurements import Record
from frictax.measurements.record import changed
from frictax.parameters import replace

from .sources import FileSource, InMemory, Source, TableSource, frame_of
from .table import failed_row, row_of, table_of
from .task import Chunk, Task


def fitted_chunk(task: Task, chunk: Chunk) -> Any:
    """A `DataFrame` with a row for each record of `chunk`, in order: see `Fleet.table`.

    It reads what the chunk names, writes nothing, and depends on nothing else: each process, on any
    machine that finds the same files, gives the same numbers. A record that cannot be read or
    fitted is a row with its `reason`.
    """
    began = time.perf_counter()
    machine, options, read = _ready(task)
    rows: list[Any] = [None] * len(chunk.sources)
    models, records, places = [], [], []
    for i, source in enumerate(chunk.sources):
        try:
            own = {path: values[i] for path, values in chunk.values.items()}
            models.append(replace(machine, own) if own else machine)
            records.append(_record(source, read))
            places.append(i)
        except MISTAKES as why:
            del models[len(records) :]
            rows[i] = failed_row(source.name, _sentence(why))
    made = fit_each(models, records, options, length=task.length) if records else []
    for i, record, found in zip(places, records, made, strict=True):
        rows[i] = _row(record, found)
    each = (time.perf_counter() - began) / max(len(rows), 1)
    return table_of([{**row, "seconds": each} for row in rows], chunk.about)


def _row(record: Record, found: FitResult | Exception) -> dict[str, Any]:
    if isinstance(found, Exception):
        return failed_row(record.name, _sentence(found), record.n)
    try:
        return row_of(record, found)
    except (*MISTAKES, np.linalg.LinAlgError) as why:  # of its errors
        return failed_row(record.name, _sentence(why), record.n)


def _record(source: Source, read: Any) -> Record:
    if isinstance(source, InMemory):
        return changed(source.record, name=source.name)
    assert read is not None
    if isinstance(source, FileSource):
        return read(source.name, source.path)
    assert isinstance(source, TableSource)
    return read(source.name, frame_of(source))


def _ready(task: Task) -> tuple[Any, FitOptions, Any]:
    """The machine, the options of its fits, and how files are read."""
    if task.problem is None:
        return task.machine, FitOptions(**task.settings), None
    stamp = task.problem.stat().st_mtime_ns
    return _of_file(task.problem, task.label, task.allow_code, stamp)


@functools.lru_cache(maxsize=4)
def _of_file(
    problem: Path, label: str, allow_code: bool, stamp: int
) -> tuple[Any, FitOptions, Any]:
    from frictax.problems import read
    from frictax.problems.problem import record_reader

    asked = read(problem, allow_code=allow_code)
    return asked.machine, asked.options(), record_reader(asked, label)


def _sentence(why: Exception) -> str:
    if isinstance(why, OSError) and why.strerror:
        return f"{Path(why.filename).name if why.filename else 'A file'}: {why.strerror.lower()}."
    return " ".join(str(why.args[0] if why.args else type(why).__name__).split())
