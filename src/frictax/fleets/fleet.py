"""Fit thousands of records separately (`fx.fleet`), and update a report while the fits run."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from frictax.annotations import ArrayLike, Checked
from frictax.arguments import check_count, check_names, lists_options
from frictax.files.replacing import write_whole
from frictax.fitting import FitOptions
from frictax.fitting.fit_many import values_of_each
from frictax.fitting.options import DEFAULTS, FleetFitOptions, is_given
from frictax.measurements import Record
from frictax.mechanism import Machine
from frictax.progress import Work, show_progress

from .chunks import Chunk, PartsFolder, Plan, Task, plan_chunks
from .sources import (
    Source,
    describe_records,
    sources_in_folder,
    sources_in_memory,
    sources_in_table,
)
from .table import Fleet, join_chunks
from .workers import run_chunks

Limits = Mapping[str, tuple[float | None, float | None]] | None
NAMES = {
    "record": "record_id",
    "machine": "machine_id",
    "date": "date",
    "temperature": "temperature",
}  # default names of the table columns that describe records


class FleetOptions(FleetFitOptions, total=False):
    """The options of `fleet`: options of the fits, and options that define how the fits run."""

    out: str | Path | None
    jobs: int | None
    resume: bool
    overwrite: bool
    cluster: Any
    about: Any
    values: Mapping[str, ArrayLike] | None
    report: str | Path | None
    limits: Limits
    allow_code: bool


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class RunOptions:
    """Options that define how `fleet` runs the fits, with defaults. `fleet` describes them."""

    out: Checked[str | Path | None] = None
    jobs: Checked[int | None] = None
    resume: Checked[bool] = False
    overwrite: Checked[bool] = False
    cluster: Any = None
    about: Any = None
    values: Checked[Mapping[str, ArrayLike] | None] = None
    report: Checked[str | Path | None] = None
    limits: Checked[Limits] = None
    allow_code: Checked[bool] = False

    def __post_init__(self) -> None:
        if self.jobs is not None:
            check_count("`jobs`", self.jobs, 1, "Leave it out for one process per processor.")


_RUN: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(RunOptions)}


@lists_options(FleetOptions, {**_RUN, **DEFAULTS})
def fleet(
    problem: Checked[Machine | str | Path],
    records: Checked[Sequence[Record] | str | Path],
    **options: Unpack[FleetOptions],
) -> Fleet:
    """Fit one machine to each of thousands of records on all processors or a cluster.

    Estimates and intervals of each record are the same as those of `fit`. A process fits up to 64
    records in one call. If the records have more than 8 different lengths, samples of weight 0
    extend them to a few lengths. If a record cannot be read or fitted, its row contains the reason.

    **Arguments:**

    - `problem`: a machine; or a problem file (or its folder). In the problem file, the first fitted
      record defines how data files are read, and the table [fit] defines the options of the fits.
    - `records`: a list of records. With a problem file, also a folder with a file for each record,
      or one long Parquet table with a column of record names.
    - `out`: the Parquet file to which the table is written. During the run, finished rows are
      stored in the folder ``OUT.parts`` beside this file. After an interruption, `resume=True`
      completes the run. `overwrite=True` replaces an existing file.
    - `jobs`: number of processes, by default the number of processors. With 1, the fits run in the
      calling process. With more, each process imports the calling script. Therefore put the call
      in a script below ``if __name__ == "__main__":``.
    - `cluster`: a client of Dask, or the address of its scheduler. Install frictax with the extra
      ``cluster``. The workers of the cluster must find the same files under the same paths.
    - `about`: a table with a row for each record, or the file of that table. The table has the
      columns `record` (name of the record or of its file), `machine`, `date` and `temperature`. All
      further columns are copied to the table of results.
    - `values`: dict from parameter path to an array with the value of this parameter for each
      record. With a problem file, a column name of `about` can replace an array.
    - `free`, `tied`, `log_scale`, `objective`, `bounds`, `instruments`, `method`, `loss`, `level`:
      as in `fit`, if `problem` is a machine.
    - `report`: path of an HTML page, see `write_fleet_report`. The page is updated during the fits,
      and an open browser reloads it. `limits`: limits for the verdicts on this page: name of a
      parameter -> (lower, upper); None means no limit.
    - `allow_code`: as in `identify`. `progress`: as in `fit`.

    **Returns:** a `Fleet`.

    **Raises:** `ValueError`, `FileExistsError` and `FileNotFoundError`, before the first fit.

    >>> import frictax as fx, numpy as np
    >>> t, rng, records = np.linspace(0.0, 3.0, 301), np.random.default_rng(0), []
    >>> def block(F_Coulomb: float, force=0.0) -> fx.Mechanism:
    ...     return fx.Mechanism(
    ...         mass=fx.Mass(m=1.0),
    ...         friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=F_Coulomb)),
    ...         drive=fx.Force("mass", force),
    ...     )
    >>> for i in range(4):
    ...     force = 3.0 * np.sin(4.0 * t + i)
    ...     v = fx.simulate(block(1.0 + 0.1 * i, fx.Sampled(t, force)), t)["mass"].v
    ...     v = v + 0.01 * rng.standard_normal(301)
    ...     records.append(fx.Record(t, {"drive": force}, {"mass.v": v}, name=f"axis {i}"))
    >>> done = fx.fleet(block(0.8), records, free="friction.f_pos.F_Coulomb", jobs=1)
    >>> done
    Fleet(4 records, 4 fitted: friction.f_pos.F_Coulomb)
    >>> done.table[["record", "friction.f_pos.F_Coulomb", "converged"]].round(2)
       record  friction.f_pos.F_Coulomb  converged
    0  axis 0                       1.0       True
    1  axis 1                       1.1       True
    2  axis 2                       1.2       True
    3  axis 3                       1.3       True
    """
    check_names(fleet, options)
    given: dict[str, Any] = {**options}
    run = RunOptions(**{name: x for name, x in given.items() if name in _RUN})
    fits = {name: x for name, x in given.items() if name not in _RUN and is_given(x)}
    progress = FitOptions(**fits).progress
    fits.pop("progress", None)
    with show_progress(progress, "Fitting a fleet") as work:
        work("Reading the records")
        setting = _plan(problem, records, run, fits)
        if run.limits is not None:
            setting = dataclasses.replace(setting, limits=run.limits)
        live = None
        if run.report is not None:
            live = LiveReport(Path(run.report), setting, replace=run.overwrite or run.resume)
        if run.out is None and (run.resume or run.overwrite):
            raise ValueError("`resume` and `overwrite` are about the file `out`. Name it, too.")
        parts = None if run.out is None else PartsFolder(Path(run.out))
        with contextlib.nullcontext() if parts is None else parts.lock():
            done = set[int]()
            if parts is not None:
                how = {"resume": run.resume, "overwrite": run.overwrite}
                done = parts.begin(setting.plan.digest, len(setting.plan.chunks), **how)
            return _run(setting, parts, done, run, live, work)


def chunks_of(
    problem: Checked[str | Path],
    records: Checked[str | Path],
    *,
    about: Any = None,
    allow_code: Checked[bool] = False,
) -> tuple[Task, Sequence[Chunk]]:
    """Return the arguments of `fitted_chunk`: the task, and a list of chunks of records. Use this
    function for a cluster that `fleet` does not support. The arguments are those of `fleet`.
    """
    run = RunOptions(about=about, allow_code=allow_code)
    plan = _plan(problem, records, run, {}).plan
    return plan.task, plan.chunks


@dataclasses.dataclass(frozen=True)
class _Setting:
    """A planned fleet: the plan of its fits, its title, and the limits for verdicts."""

    plan: Plan
    title: str
    limits: Limits = None


def _run(
    setting: _Setting,
    parts: PartsFolder | None,
    done: set[int],
    run: RunOptions,
    live: "LiveReport | None",
    work: Work,
) -> Fleet:
    """Fit the chunks whose numbers are not in `done`, and return the table of all chunks."""
    plan = setting.plan
    # Dict from the number of a finished chunk to its rows, or to None if `parts` stores the rows.
    frames: dict[int, Any] = dict.fromkeys(done)
    todo = [chunk for chunk in plan.chunks if chunk.number not in done]

    def rows_of(number: int) -> Any:
        return frames[number] if parts is None else parts.read(number)

    count, failed = len(plan.order) - sum(len(c.sources) for c in todo), 0
    for chunk, rows in run_chunks(plan.task, todo, run.jobs, run.cluster):
        frames[chunk.number] = rows
        if parts is not None:
            parts.write(chunk.number, rows)
            frames[chunk.number] = None
        count, failed = count + len(rows), failed + int(np.sum(rows["reason"] != ""))
        if live is not None:
            live.update(lambda: [rows_of(n) for n in frames])
        without = f" ({failed} without numbers)" if failed else ""
        work.count(count, len(plan.order), f"records{without}")
    every = [rows_of(chunk.number) for chunk in plan.chunks]
    table = join_chunks(every, plan.order, setting.title, plan.digest, setting.limits)
    if parts is not None:
        parts.finish(table)
    if live is not None:
        live.finish(table)
    return Fleet(table)


def _plan(problem: Any, records: Any, run: RunOptions, given: Mapping[str, Any]) -> _Setting:
    """Divide the records into chunks. `problem`: a machine, or the path of a problem file."""
    if not isinstance(problem, str | Path):
        if isinstance(records, str | Path):
            raise ValueError(
                "A folder or a table of `records` needs a problem file that says which columns are"
                f" what, got a {type(problem).__name__}. Give the file, or a list of `Record`s."
            )
        sources: Sequence[Source] = sources_in_memory(records)
        described = describe_records(sources, run.about, {**NAMES, "record": "record"})
        each = values_of_each(problem, run.values, len(sources))
        task = Task(machine=problem, settings=given)
        return _Setting(plan_chunks(task, sources, described, each), "Fleet")
    if given:
        raise ValueError(
            f"`{next(iter(given))}` is set in the problem file, under [fit]. Leave it out here."
        )
    from frictax.problems import read
    from frictax.problems.problem import find, template_of

    file = find(Path(problem))
    asked = read(file, allow_code=run.allow_code)
    label, entry = template_of(asked), asked.content.fleet
    names = {kind: getattr(entry, kind) for kind in NAMES}
    about = run.about
    if about is None and entry.about is not None:
        about = file.parent / entry.about
    task = Task(problem=file.resolve(), label=label, allow_code=run.allow_code)
    if isinstance(records, str | Path):
        place = Path(records)
        if not place.exists():
            raise FileNotFoundError(f"There is no folder or table {place} of records.")
        sources = (
            sources_in_folder(place) if place.is_dir() else sources_in_table(place, names["record"])
        )
    else:
        sources = sources_in_memory(records)
    described = describe_records(sources, about, names)
    columns, given = {**entry.values, **(run.values or {})}, {}
    for path, column in columns.items():
        if isinstance(column, str):
            if column not in described.columns:
                raise ValueError(
                    f"`values` gives {path!r} by the column {column!r}, which the table about the"
                    f" records does not have. It has: {', '.join(described.columns)}."
                )
            column = described[column].to_numpy()
        given[path] = column
    each = values_of_each(asked.machine, given, len(sources))
    limits: dict[str, tuple[float | None, float | None]] = {}
    for name, (low, high) in entry.limits.items():
        if not low < high:
            raise ValueError(
                f"fleet.limits of {name!r} must be [least, most], got [{low:g}, {high:g}]. Write"
                " -inf or inf where there is no limit."
            )
        limits[name] = (low if np.isfinite(low) else None, high if np.isfinite(high) else None)
    plan = plan_chunks(task, sources, described, each)
    return _Setting(plan, asked.content.title, limits or None)


class LiveReport:
    """The report of a fleet, updated during the fits. `replace`: true to replace a report file."""

    def __init__(self, path: Path, setting: _Setting, *, replace: bool) -> None:
        from frictax.report.page import check_report

        check_report(path, overwrite=replace)
        self.path, self.setting = path, setting
        self.next = 0.0

    def update(self, frames: Callable[[], Sequence[Any]]) -> None:
        """Write the page with all finished rows, if the last update is not too recent."""
        if time.monotonic() < self.next:
            return
        began = time.monotonic()
        plan = self.setting.plan
        table = join_chunks(frames(), plan.order, self.setting.title, plan.digest)
        note = f"{len(table)} of {len(plan.order)} records so far."
        # This HTML tag makes the browser reload the page every 10 s.
        reload = '<head><meta http-equiv="refresh" content="10">'
        self._write(table, [note], lambda text: text.replace("<head>", reload, 1))
        took = time.monotonic() - began
        # [s] The pause is 20 times the writing time, so writing takes at most 5 % of the run.
        self.next = time.monotonic() + max(10.0, 20.0 * took)

    def finish(self, table: Any) -> None:
        """Write the final page with the rows of all records."""
        self._write(table, [], lambda text: text)

    def _write(self, table: Any, notes: list[str], change: Callable[[str], str]) -> None:
        if not table.attrs["frictax"]["names"]:  # No record has been fitted yet.
            return
        from .page.report import fleet_report_text  # Workers do not need the plotting libraries.

        limits, title = self.setting.limits, self.setting.title
        text = fleet_report_text(table, limits=limits, title=title, notes=notes)
        write_whole(self.path, change(text), replace=True)
