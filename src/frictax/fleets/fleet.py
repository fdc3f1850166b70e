"""Fit thousands of records, each by itself: `fx.fleet`."""

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from frictax.annotations import ArrayLike, Checked
from frictax.arguments import whole
from frictax.fitting import FitOptions
from frictax.fitting.fit_many import values_of_each
from frictax.fitting.options import (
    DEFAULTS,
    FleetFitOptions,
    check_names,
    is_given,
    lists_options,
)
from frictax.interrupts import processors
from frictax.measurements import Record
from frictax.mechanism import Machine
from frictax.progress import Work, watched

from .cluster import on_cluster
from .live import LiveReport
from .parts import Parts
from .plan import Plan, planned
from .result import Fleet
from .sources import Source, about_each, in_folder, in_memory, in_table
from .table import joined
from .task import Chunk, Task
from .workers import here, in_processes

Limits = Mapping[str, tuple[float | None, float | None]] | None
NAMES = {
    "record": "record_id",
    "machine": "machine_id",
    "date": "date",
    "temperature": "temperature",
}


class FleetOptions(FleetFitOptions, total=False):
    """The options of `fleet`: those of its fits, and those of the run."""

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
    """The options of a fleet's run with their defaults; see `fleet` for their meaning."""

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
            whole("`jobs`", self.jobs, 1, "Leave it out for one a processor.")


_RUN: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(RunOptions)}


@lists_options(FleetOptions, {**DEFAULTS, **_RUN})
def fleet(
    problem: Checked[Machine | str | Path],
    records: Checked[Sequence[Record] | str | Path],
    **options: Unpack[FleetOptions],
) -> Fleet:
    """Fit one machine to each of thousands of records, on all processors or a cluster. The values
    and intervals are those of `fit`.

    One compiled program fits 64 records at a time. If the lengths of the records differ much, they
    are filled up to a few lengths with samples of weight 0. A record that cannot be read or fitted
    is a row with its reason and does not stop the run.

    **Arguments:**

    - `problem`: a machine; or a problem file (or its folder). Its first fitted record says how
      files are read, and its [fit] how they are fitted.
    - `records`: a list; or, with a problem file, a folder with a file for each record, or one long
      Parquet table with a column that names the record of each row.
    - `out`: the Parquet file of the table. Rows are stored beside it chunk by chunk, so that
      `resume` continues an interrupted run to the same table. `overwrite` replaces an earlier
      table.
    - `jobs`: the number of processes, by default one a processor; 1 is this process alone. A script
      with more processes must be importable: put the call below ``if __name__ == "__main__":``.
    - `cluster`: a client of Dask, or the address of its scheduler, whose workers do the work (the
      extra ``cluster``). They must find the same files under the same paths.
    - `about`: data about the records, a table or its file with a row a record: `record` (its name,
      or that of its file), `machine`, `date`, `temperature`, and other columns.
    - `values`: path -> one number for each record, which its machine has; with a problem file, path
      -> a column of `about`.
    - `free`, `tied`, `log_scale`, `objective`, `bounds`, `instruments`, `method`, `loss`, `level`:
      as in `fit`, if `problem` is a machine.
    - `report`: an HTML page on the fleet as by `write_fleet_report`, updated while the fleet is
      fitted; an open browser reloads it. `limits` for its verdicts: of a parameter (lower, upper),
      None if there is no limit.
    - `allow_code`: as in `frictax identify`. `progress`: as in `fit`.

    **Returns:** a `Fleet`.

    **Raises:** `ValueError`, `FileExistsError` and `FileNotFoundError` with one sentence, before
    the first fit.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 2.0, 201)
    >>> def block(F_Coulomb: float) -> fx.Mechanism:
    ...     return fx.Mechanism(
    ...         mass=fx.Mass(m=1.0),
    ...         friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=F_Coulomb)),
    ...         drive=fx.Force("mass", 2.0),
    ...     )
    >>> rng, records = np.random.default_rng(0), []
    >>> for i in range(3):
    ...     v = fx.simulate(block(1.0 + 0.1 * i), t)["mass"].v + 0.01 * rng.standard_normal(201)
    ...     records.append(fx.Record(t, outputs={"mass.v": v}, name=f"axis {i}"))
    >>> done = fx.fleet(block(0.8), records, free="friction.f_pos.F_Coulomb", jobs=1)
    >>> done
    Fleet(3 records, 3 fitted: friction.f_pos.F_Coulomb)
    >>> done.table[["record", "friction.f_pos.F_Coulomb", "converged"]].round(2)
       record  friction.f_pos.F_Coulomb  converged
    0  axis 0                       1.0       True
    1  axis 1                       1.1       True
    2  axis 2                       1.2       True
    """
    check_names(fleet, options)
    asked: dict[str, Any] = {**options}
    run = RunOptions(**{name: x for name, x in asked.items() if name in _RUN})
    given = {name: x for name, x in asked.items() if name not in _RUN and is_given(x)}
    progress = FitOptions(**given).progress
    given.pop("progress", None)
    with watched(progress, "Fitting a fleet") as work:
        work("Looking at the records")
        plan, title, limits = _plan(problem, records, run, given)
        run = dataclasses.replace(run, limits=limits if run.limits is None else run.limits)
        live = None
        if run.report is not None:
            replace = run.overwrite or run.resume
            live = LiveReport(Path(run.report), plan, title, run.limits, replace=replace)
        if run.out is None and (run.resume or run.overwrite):
            raise ValueError("`resume` and `overwrite` are about the file `out`. Name it, too.")
        parts = None if run.out is None else Parts(Path(run.out))
        with contextlib.nullcontext() if parts is None else parts.held():
            done = set[int]()
            if parts is not None:
                how = {"resume": run.resume, "overwrite": run.overwrite}
                done = parts.begin(plan.digest, len(plan.chunks), **how)
            table = _fitted_table(plan, parts, done, run, title, live, work)
        return Fleet(table)


def chunks_of(
    problem: Checked[str | Path],
    records: Checked[str | Path],
    *,
    about: Any = None,
    allow_code: Checked[bool] = False,
) -> tuple[Task, Sequence[Chunk]]:
    """Return the arguments of `fitted_chunk` for each chunk, for an engine of your own.

    **Arguments:** as of `fleet`.
    """
    run = RunOptions(about=about, allow_code=allow_code)
    plan, _, _ = _plan(problem, records, run, {})
    return plan.task, plan.chunks


def _fitted_table(
    plan: Plan,
    parts: Parts | None,
    done: set[int],
    run: RunOptions,
    title: str,
    live: LiveReport | None,
    work: Work,
) -> Any:
    """Fit the chunks that are not done and return the whole table."""
    kept: dict[int, Any] = dict.fromkeys(done)
    todo = [chunk for chunk in plan.chunks if chunk.number not in done]
    count, failed = len(plan.order) - sum(len(c.sources) for c in todo), 0

    jobs = min(processors() if run.jobs is None else run.jobs, max(len(todo), 1))

    def chunks() -> Iterable[tuple[Chunk, Any]]:
        if run.cluster is not None:
            return on_cluster(plan.task, todo, run.cluster)
        return here(plan.task, todo) if jobs == 1 else in_processes(plan.task, todo, jobs)

    def reread(number: int) -> Any:
        assert parts is not None
        return parts.read(number)

    def keep(chunk: Chunk, rows: Any) -> None:
        nonlocal count, failed
        kept[chunk.number] = rows
        if parts is not None:
            parts.keep(chunk.number, rows)
            kept[chunk.number] = None
        count, failed = count + len(rows), failed + int(np.sum(rows["reason"] != ""))
        if live is not None:
            live.tell(lambda: [f if f is not None else reread(n) for n, f in kept.items()])
        also = f" ({failed} without numbers)" if failed else ""
        work.count(count, len(plan.order), f"records{also}")

    for chunk, rows in chunks():
        keep(chunk, rows)
    numbers = [chunk.number for chunk in plan.chunks]
    frames = [kept[n] if parts is None else parts.read(n) for n in numbers]
    table = joined(frames, plan.order, title, plan.digest, run.limits)
    if parts is not None:
        parts.end(table)
    if live is not None:
        live.end(table)
    return table


def _ends(name: str, pair: tuple[float, float]) -> tuple[float | None, float | None]:
    """Return limits of a problem file; an infinite limit becomes None."""
    low, high = pair
    if not low < high:
        raise ValueError(
            f"fleet.limits of {name!r} must be [least, most], got [{low:g}, {high:g}]. Write -inf"
            " or inf where there is no limit."
        )
    return (low if np.isfinite(low) else None), (high if np.isfinite(high) else None)


def _plan(
    problem: Any, records: Any, run: RunOptions, given: Mapping[str, Any]
) -> tuple[Plan, str, Limits]:
    """Return the plan, the title and the limits of a problem file; `given`: options of the fits."""
    if not isinstance(problem, str | Path):
        if isinstance(records, str | Path):
            raise ValueError(
                "A folder or a table of `records` needs a problem file that says which columns are"
                f" what, got a {type(problem).__name__}. Give the file, or a list of `Record`s."
            )
        sources: Sequence[Source] = in_memory(records)
        known = about_each(sources, run.about, {**NAMES, "record": "record"})
        task = Task(machine=problem, settings=given)
        each = values_of_each(problem, run.values, len(sources))
        return planned(task, sources, known, each), "Fleet", None
    if given:
        raise ValueError(
            f"`{next(iter(given))}` stands in the problem file, under [fit]. Leave it out here."
        )
    return _plan_of_file(Path(problem), records, run)


def _plan_of_file(problem: Path, records: Any, run: RunOptions) -> tuple[Plan, str, Limits]:
    from frictax.problems import read
    from frictax.problems.problem import find, template_of

    file = find(problem)
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
        sources = in_folder(place) if place.is_dir() else in_table(place, names["record"])
    else:
        sources = in_memory(records)
    known = about_each(sources, about, names)
    columns, given = {**entry.values, **(run.values or {})}, {}
    for path, column in columns.items():
        if isinstance(column, str):
            if column not in known.columns:
                raise ValueError(
                    f"`values` gives {path!r} by the column {column!r}, which the table about the"
                    f" records does not have. It has: {', '.join(known.columns)}."
                )
            column = known[column].to_numpy()
        given[path] = column
    each = values_of_each(asked.machine, given, len(sources))
    limits = {name: _ends(name, pair) for name, pair in entry.limits.items()}
    return planned(task, sources, known, each), asked.content.title, limits or None
