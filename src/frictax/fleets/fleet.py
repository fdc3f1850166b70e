"""Thousands of records, each fitted by itself: `fx.fleet`."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from frictax.annotations import ArrayLike, Checked
from frictax.arguments import whole
from frictax.fitting import AbstractLoss, AbstractMethod, AbstractObjective, Instrument
from frictax.fitting.many_data import values_of_each
from frictax.fitting.problem.ties import Tied
from frictax.interrupts import processors
from frictax.measurements import Record
from frictax.mechanism import Machine
from frictax.progress import Progress, Work, watched

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


def fleet(
    problem: Checked[Machine | str | Path],
    records: Checked[Sequence[Record] | str | Path],
    *,
    out: str | Path | None = None,
    jobs: int | None = None,
    resume: Checked[bool] = False,
    overwrite: Checked[bool] = False,
    cluster: Any = None,
    about: Any = None,
    values: Checked[Mapping[str, ArrayLike]] | None = None,
    free: str | Iterable[str] | None = None,
    tied: Tied | None = None,
    log_scale: str | Iterable[str] = (),
    objective: AbstractObjective | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    instruments: Mapping[str, Instrument] | None = None,
    method: AbstractMethod | None = None,
    loss: AbstractLoss | None = None,
    level: float | None = None,
    report: str | Path | None = None,
    limits: Mapping[str, tuple[float | None, float | None]] | None = None,
    allow_code: Checked[bool] = False,
    progress: Checked[bool | Progress] = False,
) -> Fleet:
    """Fit one machine to each of thousands of records, with the numbers and intervals that `fit`
    would give each, on all processors or a cluster.

    Records are fitted 64 at a time by one compiled program; where lengths differ much, they are
    filled up to one of a few with samples that weigh nothing. A record that cannot be read or
    fitted is a row with its reason, and no lost run.

    **Arguments:**

    - `problem`: a machine; or a problem file (or its folder), whose first fitted record says how
      files are read, and whose [fit] how they are fitted.
    - `records`: a list; or, with a problem file, a folder with a file for each record, or one long
      Parquet table with a column that names the record of each row.
    - `out`: the Parquet file of the table. Rows are kept beside it chunk by chunk, so that
      `resume` goes on with what an interrupted run has left, to the same table. `overwrite`
      replaces what is there.
    - `jobs`: how many processes, as many as there are processors unless given; 1: this one.
      A script that asks for more must be importable: put the call below ``if __name__ ==
      "__main__":``.
    - `cluster`: a client of Dask, or the address of its scheduler, whose workers do the work (the
      extra ``cluster``); they must find the same files under the same paths.
    - `about`: what is known of the records, a table or its file with a row a record: `record` (its
      name, or its file's), `machine`, `date`, `temperature`, and what else is to be kept.
    - `values`: path -> one number for each record, that its machine has as its own; with a problem
      file, path -> a column of `about`.
    - `free`, `tied`, `log_scale`, `objective`, `bounds`, `instruments`, `method`, `loss`, `level`:
      as in `fit`, where a machine is given.
    - `report`: an HTML page on the fleet as by `write_fleet_report`, kept up to date while it is
      fitted: a browser that has it open loads it again by itself. `limits` for its verdicts: of a
      number (lower, upper), None where there is none.
    - `allow_code`: as in `frictax identify`. `progress`: as in `fit`.

    **Returns:** a `Fleet`.

    **Raises:** `ValueError`, `FileExistsError` and `FileNotFoundError` with one sentence, before
    anything is fitted.

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
    given: dict[str, Any] = {"free": free, "tied": tied, "log_scale": log_scale}
    given |= {"objective": objective, "bounds": bounds, "instruments": instruments}
    given |= {"method": method, "loss": loss, "level": level}
    if jobs is not None:
        whole("`jobs`", jobs, 1, "Leave it out for one a processor.")
    with watched(progress, "Fitting a fleet") as work:
        work("Looking at the records")
        plan, title, told = _planned(problem, records, about, values, given, allow_code)
        live, limits = None, told if limits is None else limits
        if report is not None:
            live = LiveReport(Path(report), plan, title, limits, replace=overwrite or resume)
        if out is None and (resume or overwrite):
            raise ValueError("`resume` and `overwrite` are about the file `out`. Name it, too.")
        parts = None if out is None else Parts(Path(out))
        with contextlib.nullcontext() if parts is None else parts.held():
            done = set[int]()
            if parts is not None:
                count = len(plan.chunks)
                done = parts.begin(plan.digest, count, resume=resume, overwrite=overwrite)
            jobs = min(processors() if jobs is None else jobs, max(len(plan.chunks) - len(done), 1))
            return _run(plan, parts, done, jobs, cluster, title, limits, live, work)


def chunks_of(
    problem: Checked[str | Path],
    records: Checked[str | Path],
    *,
    about: Any = None,
    allow_code: Checked[bool] = False,
) -> tuple[Task, Sequence[Chunk]]:
    """What `fitted_chunk` is called with, once for each chunk: for engines of one's own.

    **Arguments:** as of `fleet`.
    """
    plan, _, _ = _planned(problem, records, about, None, {}, allow_code)
    return plan.task, plan.chunks


def _run(
    plan: Plan,
    parts: Parts | None,
    done: set[int],
    jobs: int,
    cluster: Any,
    title: str,
    limits: Limits,
    live: LiveReport | None,
    work: Work,
) -> Fleet:
    kept: dict[int, Any] = dict.fromkeys(done)
    todo = [chunk for chunk in plan.chunks if chunk.number not in done]
    count, failed = len(plan.order) - sum(len(c.sources) for c in todo), 0

    def chunks() -> Iterable[tuple[Chunk, Any]]:
        if cluster is not None:
            return on_cluster(plan.task, todo, cluster)
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
    table = joined(frames, plan.order, title, plan.digest, limits)
    if parts is not None:
        parts.end(table)
    if live is not None:
        live.end(table)
    return Fleet(table)


def _ends(name: str, pair: tuple[float, float]) -> tuple[float | None, float | None]:
    """Limits as a problem file has them, infinite where there is none."""
    low, high = pair
    if not low < high:
        raise ValueError(
            f"fleet.limits of {name!r} must be [least, most], got [{low:g}, {high:g}]. Write -inf"
            " or inf where there is no limit."
        )
    return (low if np.isfinite(low) else None), (high if np.isfinite(high) else None)


def _planned(
    problem: Any, records: Any, about: Any, values: Any, given: Mapping[str, Any], allow_code: bool
) -> tuple[Plan, str, Limits]:
    """What is to be done, what it is called, and the limits that a problem file has."""
    if not isinstance(problem, str | Path):
        if isinstance(records, str | Path):
            raise ValueError(
                "A folder or a table of `records` needs a problem file that says which columns are"
                f" what, got a {type(problem).__name__}. Give the file, or a list of `Record`s."
            )
        settings = {name: x for name, x in given.items() if x is not None and x != ()}
        sources: Sequence[Source] = in_memory(records)
        known = about_each(sources, about, {**NAMES, "record": "record"})
        task = Task(machine=problem, settings=settings)
        each = values_of_each(problem, values, len(sources))
        return planned(task, sources, known, each), "Fleet", None
    asked = [name for name, x in given.items() if x is not None and x != ()]
    if asked:
        raise ValueError(
            f"`{asked[0]}` stands in the problem file, under [fit]. Leave it out here."
        )
    return _of_file(Path(problem), records, about, values, allow_code)


def _of_file(
    problem: Path, records: Any, about: Any, values: Any, allow_code: bool
) -> tuple[Plan, str, Limits]:
    from frictax.problems import read
    from frictax.problems.reading import find
    from frictax.problems.template import template_of

    file = find(problem)
    asked = read(file, allow_code=allow_code)
    label, entry = template_of(asked), asked.content.fleet
    names = {kind: getattr(entry, kind) for kind in NAMES}
    if about is None and entry.about is not None:
        about = file.parent / entry.about
    task = Task(problem=file.resolve(), label=label, allow_code=allow_code)
    if isinstance(records, str | Path):
        place = Path(records)
        if not place.exists():
            raise FileNotFoundError(f"There is no folder or table {place} of records.")
        sources = in_folder(place) if place.is_dir() else in_table(place, names["record"])
    else:
        sources = in_memory(records)
    known = about_each(sources, about, names)
    columns, given = {**entry.values, **({} if values is None else values)}, {}
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
