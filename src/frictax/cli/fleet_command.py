"""`frictax fleet`: one problem file, thousands of records, a row for each."""

from pathlib import Path
from typing import Annotated

import typer

from .options import DATA, FIT, OUT, AllowCode, Overwrite, Problem, option
from .working import DATA_FAILED, INTERRUPTED, end, plain_errors, progress, show

_SHOWN = 5  # reasons of failed records


def fleet(
    problem: Problem,
    records: Annotated[
        Path,
        typer.Argument(
            metavar="RECORDS",
            help="A folder with a file for each record, or one long Parquet table.",
        ),
    ],
    out: Annotated[
        Path, option(OUT, "--out", metavar="FILE", help="The Parquet file of the table.")
    ] = Path("fleet.parquet"),
    about: Annotated[
        Path | None,
        option(
            DATA,
            "--about",
            metavar="FILE",
            help="A table with a row a record: record, machine, date, temperature, ...",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        option(FIT, "--jobs", metavar="N", help="Processes; one a processor unless given."),
    ] = None,
    cluster: Annotated[
        str | None,
        option(
            FIT,
            "--cluster",
            metavar="ADDRESS",
            help="Of a Dask scheduler, whose workers do the work in the place of processes here.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        option(
            OUT,
            "--report",
            metavar="FILE",
            help="An HTML page on the fleet, kept up to date while it is fitted.",
        ),
    ] = None,
    resume: Annotated[
        bool,
        option(OUT, "--resume", help="Continue an interrupted run."),
    ] = False,
    overwrite: Overwrite = False,
    allow_code: AllowCode = False,
) -> None:
    """Fit the machine of a problem file to each of thousands of records, and write a table with a
    row for each: values, errors, intervals, notices.

    The first fitted record of the problem says how files are read, its [fit] how they are fitted.
    """
    if jobs is not None and jobs < 1:
        end(f"--jobs must be at least 1, got {jobs}. Leave it out for one a processor.")
    if jobs is not None and cluster is not None:
        end("--jobs is not used: the workers of --cluster do the work. Leave out one of the two.")
    with plain_errors(options=False), progress() as doing:
        doing("Looking at the records")
        from frictax.fleets import fleet as run

        try:
            made = run(
                problem,
                records,
                out=out,
                about=about,
                jobs=jobs,
                cluster=cluster,
                report=report,
                resume=resume,
                overwrite=overwrite,
                allow_code=allow_code,
                progress=doing,
            )
        except FileExistsError as why:
            end(_as_options(str(why.args[0])), DATA_FAILED)
        except KeyboardInterrupt:
            kept = out.with_name(f"{out.name}.parts")
            more = " Give --resume to go on with it." if kept.exists() else ""
            end(f"Interrupted: what was done is kept in {kept}.{more}", INTERRUPTED)
    failed = made.failed
    said = [f"{made!r}", f"Written: {out}", *([f"Written: {report}"] if report else [])]
    for _, row in failed.head(_SHOWN).iterrows():
        said.append(f"! {row['record']}: {row['reason']}")
    if len(failed) > _SHOWN:
        said.append(f"! {len(failed) - _SHOWN} more without numbers: see the column `reason`.")
    show("\n".join(said))
    if len(failed) == len(made.table):
        end("No record could be fitted: see the reasons above.", DATA_FAILED)


def _as_options(sentence: str) -> str:
    """A sentence of the library with its arguments as options."""
    for name in ("resume", "overwrite"):
        sentence = sentence.replace(f"{name}=True", f"--{name}")
    return sentence.replace("as `out`", "with --out")
