"""Divide the records of a fleet into chunks (lists), fit a chunk, and store finished chunks."""

import contextlib
import dataclasses
import functools
import hashlib
import json
import pickle
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from frictax import __version__
from frictax.files.locks import hold_lock
from frictax.files.replacing import check_target, finish_interrupted, write_whole
from frictax.fitting import FitOptions
from frictax.fitting.fit_many import MISTAKES, fit_each
from frictax.measurements.record import replace_fields
from frictax.parameters import replace
from frictax.programs.key import Unknown, key_text

from .sources import FileSource, MemorySource, Source, read_rows
from .table import FORMAT, check_pyarrow, failed_row, row_of, table_of_rows

_CHUNK_SIZE = 64  # records fitted in one call, which takes 1 to 2 s if the records are short
_LENGTH_RATIO = 1.25  # ratio of successive padded lengths; padding adds at most 25 % of samples
_PLAN_FILE = "plan.json"


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """The machine of a fleet and the options of its fits, from a problem file or as two objects.

    - `problem`: the problem file; `label`: the record in this file whose table defines how data
      files are read.
    - `machine`, `settings`: the machine and the options of `fit`, used without a problem file.
    - `lengths`: numbers of samples to which records are extended (padded); empty for no padding.
    """

    problem: Path | None = None
    label: str = ""
    allow_code: bool = False
    machine: Any = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    lengths: tuple[int, ...] = ()

    def length(self, samples: int) -> int:
        """Return the padded length of a record with `samples` samples."""
        enough = [n for n in self.lengths if n >= samples]
        if not enough or enough[0] > _LENGTH_RATIO * samples + 1:
            return samples
        return enough[0]


@dataclasses.dataclass(frozen=True, eq=False)
class Chunk:
    """The records that one call fits. `about`: a `DataFrame` with one row for each record;
    `values`: dict from parameter path to the values of this parameter, one for each record.
    """

    number: int
    sources: Sequence[Source]
    about: Any
    values: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """The plan of a fleet. `order`: names of all records; `digest`: checksum of machine, options,
    data.
    """

    task: Task
    chunks: Sequence[Chunk]
    order: Sequence[str]
    digest: str


def plan_chunks(
    task: Task, sources: Sequence[Source], about: Any, values: Mapping[str, np.ndarray]
) -> Plan:
    """Divide records, sorted by padded length, into chunks, so that JAX compiles few programs."""
    sizes = [s.size for s in sources]
    task = dataclasses.replace(task, lengths=padded_lengths(sizes))
    by_length = sorted(range(len(sources)), key=lambda i: (-task.length(sizes[i]), i))
    chunks = []
    for number, first in enumerate(range(0, len(by_length), _CHUNK_SIZE)):
        mine = by_length[first : first + _CHUNK_SIZE]
        own_values = {path: x[mine] for path, x in values.items()}
        chunks.append(Chunk(number, [sources[i] for i in mine], about.iloc[mine], own_values))
    digest = hashlib.sha256(f"{__version__} {_CHUNK_SIZE} {task.lengths}\n".encode())
    if task.problem is not None:
        code = sorted(task.problem.parent.glob("*.py")) if task.allow_code else []
        content = b"".join(path.read_bytes() for path in (task.problem, *code))
        digest.update(content + task.label.encode())
    else:
        fits = task.machine, dict(task.settings)
        try:
            digest.update(key_text(fits, fixed=True).encode())
        except Unknown:
            # `key_text` does not support classes of the user, so hash the pickled objects instead.
            digest.update(pickle.dumps(fits))
    for source in sources:
        digest.update(repr((source.name, *source.fingerprint())).encode())
    digest.update(about.to_csv().encode())
    for path, x in values.items():
        digest.update(path.encode() + np.ascontiguousarray(x).tobytes())
    return Plan(task, chunks, [s.name for s in sources], digest.hexdigest())


def padded_lengths(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the lengths to which records with these numbers of samples are padded, so that few
    programs are compiled. Return () if the records have at most 8 different lengths.
    """
    sizes = [n for n in sizes if n > 0]
    if len(set(sizes)) <= 8:  # Each length gets its own compiled program.
        return ()
    out = [max(sizes)]
    while out[-1] > min(sizes) and len(out) < 100:
        out.append(int(np.ceil(out[-1] / _LENGTH_RATIO)))
    used = {min(n for n in out if n >= size) for size in sizes}
    return tuple(sorted(used))


def fitted_chunk(task: Task, chunk: Chunk) -> Any:
    """Fit the records of `chunk`. Return a `DataFrame` with a row for each record; for its columns
    see `Fleet`. The results do not depend on the process in which this function runs. If a record
    cannot be read or fitted, its row contains the `reason`.
    """
    began = time.perf_counter()
    machine, options, read = task.machine, FitOptions(**task.settings), None
    if task.problem is not None:
        stamp = task.problem.stat().st_mtime_ns
        machine, options, read = _read_problem(task.problem, task.label, task.allow_code, stamp)
    rows: list[Any] = [None] * len(chunk.sources)
    models, records, places = [], [], []
    for i, source in enumerate(chunk.sources):
        try:
            own = {path: values[i] for path, values in chunk.values.items()}
            models.append(replace(machine, own) if own else machine)
            if isinstance(source, MemorySource):
                records.append(replace_fields(source.record, name=source.name))
            else:
                assert read is not None
                table = source.path if isinstance(source, FileSource) else read_rows(source)
                records.append(read(source.name, table))
            places.append(i)
        except MISTAKES as why:
            del models[len(records) :]
            rows[i] = failed_row(source.name, _sentence(why))
    fits = fit_each(models, records, options, length=task.length) if records else []
    for i, record, found in zip(places, records, fits, strict=True):
        if isinstance(found, Exception):
            why = found
        else:
            try:
                rows[i] = row_of(record, found)
                continue
            except (*MISTAKES, np.linalg.LinAlgError) as error:
                # The standard errors of this record cannot be computed.
                why = error
        rows[i] = failed_row(record.name, _sentence(why), record.n)
    seconds = (time.perf_counter() - began) / max(len(rows), 1)
    return table_of_rows([{**row, "seconds": seconds} for row in rows], chunk.about)


@functools.lru_cache(maxsize=4)
def _read_problem(
    problem: Path, label: str, allow_code: bool, stamp: int
) -> tuple[Any, FitOptions, Any]:
    """Return machine, fit options and record reader from a problem file that changed at `stamp`."""
    from frictax.problems import read
    from frictax.problems.problem import record_reader

    asked = read(problem, allow_code=allow_code)
    return asked.machine, asked.options(), record_reader(asked, label)


def _sentence(why: Exception) -> str:
    if isinstance(why, OSError) and why.strerror:
        return f"{Path(why.filename).name if why.filename else 'A file'}: {why.strerror.lower()}."
    return " ".join(str(why.args[0] if why.args else type(why).__name__).split())


@dataclasses.dataclass(frozen=True)
class PartsFolder:
    """The folder ``OUT.parts`` next to the table `out`, with a file for each finished chunk."""

    out: Path

    @property
    def folder(self) -> Path:
        return self.out.with_name(f"{self.out.name}.parts")

    def begin(self, digest: str, chunks: int, *, resume: bool, overwrite: bool) -> set[int]:
        """Create the folder, or reopen it with `resume`, and return the numbers of the finished
        chunks. Raise an error if the table or the folder exists and may not be replaced.
        """
        if self.out.exists() and not overwrite:
            raise FileExistsError(
                f"{self.out} exists. Give overwrite=True to replace it, or another file as `out`."
            )
        plan = self.folder / _PLAN_FILE
        if self.folder.exists() and not resume and not overwrite:
            raise FileExistsError(
                f"{self.folder} contains the results of an earlier run. Give resume=True to"
                " continue that run, or overwrite=True to start again."
            )
        finish_interrupted(self.out.resolve().parent)
        finish_interrupted(self.folder)
        if resume and plan.is_file():
            before = json.loads(plan.read_text(encoding="utf-8"))
            if before.get("format", 1) > FORMAT:
                raise ValueError(
                    f"{self.folder} is of format {before['format']}, and frictax {__version__}"
                    f" knows up to {FORMAT}. Continue with a newer frictax, or give overwrite=True"
                    " to start again."
                )
            if before["digest"] != digest:
                raise ValueError(
                    f"{self.folder} contains results for other records, another problem or another"
                    " version of frictax. Give overwrite=True to start again, or restore the"
                    " earlier files."
                )
            return {n for n in range(chunks) if self._file(n).is_file()}
        if self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir()
        write_whole(plan, json.dumps({"format": FORMAT, "digest": digest}), replace=True)
        return set()

    def write(self, number: int, frame: Any) -> None:
        """Write the rows of one chunk. The file is written completely or not at all."""
        write_whole(self._file(number), frame.to_parquet(), replace=True)

    def read(self, number: int) -> Any:
        """Return the rows of one finished chunk."""
        import pandas as pd

        return pd.read_parquet(self._file(number))

    def finish(self, table: Any) -> None:
        """Write the complete table and delete the folder."""
        write_whole(self.out.resolve(), table.to_parquet(index=False), replace=True)
        shutil.rmtree(self.folder)

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:06d}.parquet"

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the table `out` against other processes, on all hosts that use the same folder."""
        target = check_target(self.out, "the table of the fleet")
        check_pyarrow()
        lock = target.with_name(f".{target.name}.lock")
        with hold_lock(lock, str(self.out), "name another file as `out`"):
            yield
