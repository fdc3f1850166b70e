"""`frictax identify`: a problem file in, a report on the table; `frictax table`: all of them at a
glance.
"""

import contextlib
from pathlib import Path
from typing import Annotated, Any

import typer

from frictax.text import aligned, amount

from .options import FIT, OUT, AllowCode, Overwrite, Problem, Tolerance, option
from .working import DATA_FAILED, INTERRUPTED, command_line, end, plain_errors, progress, show


def identify(
    problem: Problem,
    out: Annotated[
        Path | None,
        option(
            OUT,
            "--out",
            metavar="FOLDER",
            help="Where results go, made if need be; the problem's own folder unless given.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    allow_code: AllowCode = False,
    check: Annotated[
        bool,
        option(
            FIT,
            "--check",
            help=(
                "Read the problem and its data, say what would be done and what they can tell, and"
                " stop."
            ),
        ),
    ] = False,
    tolerance: Tolerance = None,
) -> None:
    """Identify the machine that a problem file describes: fit, errors, structures, residuals,
    validation, report.

    Writes `result.json`, `parameters.toml`, `report.html` and the fit itself, `result.fit`, which
    `fx.load_fit` reads; all of them or none.
    """
    if check and (out is not None or overwrite):
        unused = "--overwrite" if out is None else "--out"
        end(f"{unused} is not used: --check writes no files. Leave out one of the two.")
    with plain_errors(options=False), progress() as doing:
        doing("Reading")
        from frictax.files.targets import made_folder
        from frictax.problems import (
            check as check_problem,
            check_results,
            claimed,
            identify as run,
            read,
            result_files,
            write_results,
        )

        if check:
            asked = read(problem, allow_code=allow_code, tolerance=tolerance)
            check_problem(asked)
            doing("Asking what the data can tell")
            said = [*_outline(asked), _outlook(asked)]
        else:
            with contextlib.ExitStack() as held:
                if out is not None:
                    held.enter_context(made_folder(out))
                targets = check_results(problem, out, overwrite=overwrite)
                held.enter_context(claimed(targets["result.json"].parent))
                try:
                    made = run(problem, allow_code=allow_code, tolerance=tolerance, progress=doing)
                    doing("Writing")
                    write_results(
                        result_files(made, command_line.get()), targets, overwrite=overwrite
                    )
                except KeyboardInterrupt:
                    end("Interrupted: nothing was written.", INTERRUPTED)
            said = [*_said(made), "\n".join(map(_written, targets.values()))]
    show(*said)
    if not check and not made.found.converged:
        end(
            "The fit did not converge: its numbers are not the answer. See the report.", DATA_FAILED
        )


def _written(path: Path) -> str:
    more = " (the fit itself: fx.load_fit, frictax report)" if path.suffix == ".fit" else ""
    return f"Written: {path}{more}"


def estimates_table(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder above those of the machines.")
    ] = Path("identification"),
    write: Annotated[
        bool, option(OUT, "--write", help="Put the table into FOLDER/README.md, between its marks.")
    ] = False,
) -> None:
    """The table of all identified machines: law, parameters with intervals, what is left,
    validation; from their result.json.
    """
    from frictax.problems import overview, write_overview

    with plain_errors(options=False):
        if write:
            typer.echo(f"Written: {write_overview(folder)}")
        else:
            typer.echo(overview(folder))


def _outline(problem: Any) -> list[str]:
    """What a problem asks for."""
    import frictax as fx

    content = problem.content
    if isinstance(problem.data, fx.Sweep):
        return [
            f"{content.title}\n{problem.data.n} rows of a sweep,"
            f" {content.law.f_pos if content.law else 'laws compared'}"
        ]
    lines = [content.title]
    for label, record in problem.data.items():
        lines.append(f"{'fit' if label in problem.fitted else 'not fitted'}  {record!r}")
    lines += [
        f"! {notice.of_record(label)}"
        for label, record in problem.data.items()
        for notice in record.notices
    ]
    lines.append(f"free: {', '.join(content.fit.free or ['all that can be'])}")
    if problem.structures:
        lines.append(f"structures: as given, {', '.join(problem.structures)}")
    return ["\n".join(lines)]


def _outlook(problem: Any) -> str:
    """What the data can tell of what is free, asked before a fit that is believed."""
    import frictax as fx

    if isinstance(problem.data, fx.Sweep):
        from frictax.problems.identification import asked_law

        return str(fx.outlook(asked_law(problem), problem.data))
    asked, settings = (
        ("free", "own", "tied", "priors", "instruments", "objective"),
        problem.settings(),
    )
    settings = {key: settings[key] for key in asked}
    try:
        return str(fx.outlook(problem.machine, problem.fitted, **settings))
    except ValueError as why:
        return f"! {why}"


def _derived(made: Any) -> list[str]:
    """What follows from the numbers, as a table."""
    head = ("derived", "value", "unit", "std. error", f"{100 * made.found.level:g} % interval")
    rows = [e.cells for e in made.derived]
    return ["\n".join(aligned(head, rows))] if rows else []


def _said(made: Any) -> list[Any]:
    """The results as text."""
    comparisons = made.comparison if isinstance(made.comparison, list) else [made.comparison]
    out: list[Any] = [str(c) for c in comparisons if c is not None]
    if made.uncertainty is None:
        return [*out, str(made.found), *_derived(made)]
    out += [str(made.found), str(made.uncertainty), *_derived(made)]
    if made.profiles:
        out.append("\n".join(str(p) for p in made.profiles.values()))
    out += [str(made.study)] if made.study is not None else []
    out += [f"! {notice}" for notice in made.notices]
    for score in made.scores:
        left = (f"rms of {name} {amount(x, score.units[name])}" for name, x in score.rms.items())
        plain = f"{score.label}: {score.by}, {', '.join(left)}"
        out.append(plain if score.run is None else str(score.run))
    return out
