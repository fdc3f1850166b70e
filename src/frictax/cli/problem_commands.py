"""Commands on problems and fits: `identify`, `simulate`, `design`, `report`, `fleet`, `table`."""

import contextlib
import dataclasses
from pathlib import Path
from typing import Any

import typer

from frictax.text import align_columns, amount

from .options import (
    DATA,
    FIT,
    OUT,
    allow_code_option,
    argument,
    option,
    overwrite_option,
    problem_argument,
    tolerance_option,
    with_options,
)
from .working import (
    DATA_FAILED,
    INTERRUPTED,
    command_line,
    end,
    plain_errors,
    progress,
    refuse_existing,
    say,
    show,
)

_SHOWN_FAILURES = 5  # number of failed records of a fleet for which the reason is printed


@dataclasses.dataclass(frozen=True)
class Identify:
    """The options of `frictax identify`."""

    problem: Path = problem_argument()
    out: Path | None = option(
        OUT, "FOLDER", "Folder for the results, created if needed; default: that of the problem."
    )
    overwrite: bool = overwrite_option()
    allow_code: bool = allow_code_option()
    check: bool = option(
        FIT,
        "",
        "Read the problem and its data, print the plan and the expected accuracy, and stop.",
        default=False,
    )
    tolerance: float | None = tolerance_option()


@with_options
def identify(options: Identify) -> None:
    """Identify the machine that a problem file describes: fit, standard errors, structures,
    residuals, validation, report.

    Writes `result.json`, `parameters.toml`, `report.html` and the fit itself, `result.fit`, which
    `fx.load_fit` reads. After an error, no file is written.
    """
    problem, out, overwrite = options.problem, options.out, options.overwrite
    how = {"allow_code": options.allow_code, "tolerance": options.tolerance}
    if options.check and (out is not None or overwrite):
        unused = "--overwrite" if out is None else "--out"
        end(f"{unused} is not used: --check writes no files. Leave out one of the two.")
    with plain_errors(options=False), progress() as doing:
        doing("Reading")
        from frictax.files.replacing import made_folder
        from frictax.problems import (
            check as check_problem,
            check_results,
            identify as run,
            lock_results,
            read,
            result_files,
            write_results,
        )

        if options.check:
            asked = read(problem, **how)
            check_problem(asked)
            doing("Computing the expected accuracy")
            said = _expectation(asked)
        else:
            with contextlib.ExitStack() as held:
                if out is not None:
                    held.enter_context(made_folder(out))
                targets = check_results(problem, out, overwrite=overwrite)
                held.enter_context(lock_results(targets["result.json"].parent))
                try:
                    made = run(problem, **how, progress=doing)
                    doing("Writing")
                    write_results(
                        result_files(made, command_line.get()), targets, overwrite=overwrite
                    )
                except KeyboardInterrupt:
                    end("Interrupted: nothing was written.", INTERRUPTED)
            more = {"result.fit": " (the saved fit, for fx.load_fit and frictax report)"}
            files = [f"Written: {path}{more.get(name, '')}" for name, path in targets.items()]
            said = [*_result_texts(made), "\n".join(files)]
    show(*said)
    if not options.check and not made.found.converged:
        end(
            "The fit did not converge, so its estimates are not valid. See the report.", DATA_FAILED
        )


@dataclasses.dataclass(frozen=True)
class Table:
    """The options of `frictax table`."""

    folder: Path = argument(
        "FOLDER", "The folder with the machines' folders.", default=Path("identification")
    )
    write: bool = option(
        OUT, "", "Write the table into FOLDER/README.md, between its two marks.", default=False
    )


@with_options
def estimates_table(options: Table) -> None:
    """Print a table of all identified machines from their result.json: law, parameters with
    intervals, residuals, validation.
    """
    from frictax.problems import overview, write_overview

    with plain_errors(options=False):
        if options.write:
            say(f"Written: {write_overview(options.folder)}")
        else:
            say(overview(options.folder))


def _expectation(problem: Any) -> list[str]:
    """Return a summary of a problem, and the expected accuracy of its free parameters."""
    import frictax as fx

    content = problem.content
    if isinstance(problem.data, fx.Sweep):
        from frictax.problems.identification import forward_law

        laws = content.law.f_pos if content.law else "laws compared"
        outline = f"{content.title}\n{problem.data.n} rows of a sweep, {laws}"
        return [outline, str(fx.outlook(forward_law(problem), problem.data))]
    lines = [content.title]
    for label, record in problem.data.items():
        lines.append(f"{'fit' if label in problem.fitted_records else 'not fitted'}  {record!r}")
    for label, record in problem.data.items():
        lines += [f"! {notice.of_record(label)}" for notice in record.notices]
    lines.append(f"free: {', '.join(content.fit.free or ['all that can be'])}")
    if problem.structures:
        lines.append(f"structures: as given, {', '.join(problem.structures)}")
    asked, settings = "free own tied priors instruments objective".split(), problem.settings()
    try:
        given = {key: settings[key] for key in asked}
        accuracy = str(fx.outlook(problem.machine, problem.fitted_records, **given))
    except ValueError as why:
        accuracy = f"! {why}"
    return ["\n".join(lines), accuracy]


def _derived_table(made: Any) -> list[str]:
    """Return the derived quantities as a table."""
    head = ("derived", "value", "unit", "std. error", f"{100 * made.found.level:g} % interval")
    rows = [e.cells for e in made.derived]
    return ["\n".join(align_columns(head, rows))] if rows else []


def _result_texts(made: Any) -> list[Any]:
    """Return the results as texts."""
    comparisons = made.comparison if isinstance(made.comparison, list) else [made.comparison]
    out: list[Any] = [str(c) for c in comparisons if c is not None]
    notices = [f"! {notice}" for notice in made.notices]
    if made.uncertainty is None:
        return [*out, str(made.found), *_derived_table(made), *notices]
    out += [str(made.found), str(made.uncertainty), *_derived_table(made)]
    if made.profiles:
        out.append("\n".join(str(p) for p in made.profiles.values()))
    out += [str(made.study)] if made.study is not None else []
    out += notices
    for score in made.scores:
        left = (f"rms of {name} {amount(x, score.units[name])}" for name, x in score.rms.items())
        plain = f"{score.label}: {score.by}, {', '.join(left)}"
        out.append(plain if score.run is None else str(score.run))
    return out


@dataclasses.dataclass(frozen=True)
class Simulate:
    """The options of `frictax simulate`."""

    problem: Path = problem_argument()
    out: Path | None = option(OUT, "FILE", "Default: simulation.html beside the problem.")
    overwrite: bool = overwrite_option()
    allow_code: bool = allow_code_option()
    tolerance: float | None = tolerance_option()


@with_options
def simulate(options: Simulate) -> None:
    """Simulate the machine of a problem file with its start values and the inputs of its records,
    before any fit.

    Prints final values, residuals, and how often each contact sticks and breaks away. Writes a page
    that compares measurement and simulation.
    """
    with plain_errors(options=False), progress() as doing:
        doing("Reading")
        from frictax.files.replacing import write_whole
        from frictax.problems import preview_page, read, simulate as run
        from frictax.problems.problem import find
        from frictax.report import check_report

        problem, overwrite = options.problem, options.overwrite
        target = options.out or find(problem).parent / "simulation.html"
        refuse_existing(target, overwrite)
        page = check_report(target)
        asked = read(problem, allow_code=options.allow_code, tolerance=options.tolerance)
        doing("Simulating")
        made = run(asked)
        doing("Writing")
        text = preview_page(asked, made, command_line.get())
        write_whole(page, text, replace=overwrite)
        said = [*map(str, made), f"Written: {target}"]
    show("\n".join(said[:-1]), said[-1])
    if not all(one.motion.complete for one in made):
        end("A simulation ended before the end of its record: see above.", DATA_FAILED)
    if not all(one.motion.successful for one in made):
        end("A simulation is inaccurate: see above.", DATA_FAILED)


@dataclasses.dataclass(frozen=True)
class DesignRun:
    """The options of `frictax design`."""

    problem: Path = problem_argument()
    out: Path = option(
        OUT, "FILE", "CSV file for the drive input over time.", default=Path("excitation.csv")
    )
    report: Path | None = option(OUT, "FILE", "An HTML page about the designed experiment.")
    check: int | None = option(
        FIT, "N", "Simulate and fit N records of the design, to check the predicted errors."
    )
    overwrite: bool = overwrite_option()
    allow_code: bool = allow_code_option()


@with_options
def design(options: DesignRun) -> None:
    """Design an excitation for the machine of a problem file, within the limits of its section
    [design].

    Prints the expected standard errors for the designed record, and for a chirp and a staircase of
    speeds. Writes the input of the drive over time as a table.
    """
    out, report, check = options.out, options.report, options.check
    overwrite = options.overwrite
    if check is not None and check < 10:
        raise typer.BadParameter(f"--check must be at least 10 records, got {check}.")
    with plain_errors(options=False), progress() as doing:
        doing("Reading")
        from frictax.files.replacing import check_target, write_whole
        from frictax.problems import design_experiment, read
        from frictax.report import check_report

        target = check_target(out, "the table")
        refuse_existing(out, overwrite)
        if report is not None:
            if check_report(report, overwrite=overwrite) == target:
                end(f"--out and --report both name {out}. Give each a file of its own.")
        asked = read(options.problem, allow_code=options.allow_code)
        try:
            made = design_experiment(asked, progress=doing)
            tried, refused = None, ""
            try:
                tried = None if check is None else made.check(check, progress=doing)
            except ValueError as why:
                refused = str(why)
        except KeyboardInterrupt:
            end("Interrupted: nothing was written.", INTERRUPTED)
        doing("Writing")
        write_whole(target, made.csv_text(), replace=overwrite)
        said = [str(made), *([] if tried is None else [str(tried)]), f"Written: {out}"]
        if report is not None:
            title, command = f"{asked.content.title}: an experiment", command_line.get()
            made.report(report, title=title, command=command, check=tried, overwrite=overwrite)
            said.append(f"Written: {report}")
    show("\n".join(said))
    if refused:
        end(f"The design is written, but not checked: {refused}")


@dataclasses.dataclass(frozen=True)
class Report:
    """The options of `frictax report`."""

    fit: Path = argument("FIT", "The saved fit, such as motor/result.fit.")
    out: Path | None = option(OUT, "FILE", "The HTML page. Default: FIT with the suffix .html.")
    overwrite: bool = overwrite_option()


@with_options
def report(options: Report) -> None:
    """Print a saved fit (`result.fit` of `frictax identify`, or `found.save(...)`) and write its
    report, without a new fit. The table of a fleet (`fleet.parquet`) can be given instead of a fit.
    """
    with plain_errors(options=False), progress() as doing:
        doing("Reading")
        from frictax.fleets import Fleet
        from frictax.fleets.page.report import write_fleet_report
        from frictax.report import check_report
        from frictax.report.saving import load_fit

        fit, overwrite = options.fit, options.overwrite
        is_fleet = fit.suffix.lower() == ".parquet"
        found = Fleet.read(fit) if is_fleet else load_fit(fit)
        target = options.out or fit.with_suffix(".html")
        refuse_existing(target, overwrite)
        check_report(target)
        doing("Studying, simulating, writing")
        if isinstance(found, Fleet):
            write_fleet_report(found, target, command=command_line.get(), overwrite=overwrite)
        else:
            found.report(target, command=command_line.get(), overwrite=overwrite)
    show(str(found), f"Written: {target}")


@dataclasses.dataclass(frozen=True)
class FleetRun:
    """The options of `frictax fleet`."""

    problem: Path = problem_argument()
    records: Path = argument(
        "RECORDS", "A folder with a file for each record, or one long Parquet table."
    )
    out: Path = option(OUT, "FILE", "The Parquet file of the table.", default=Path("fleet.parquet"))
    about: Path | None = option(
        DATA, "FILE", "A table with one row per record: record, machine, date, temperature, ..."
    )
    jobs: int | None = option(FIT, "N", "Number of processes. Default: one per processor.")
    cluster: str | None = option(
        FIT,
        "ADDRESS",
        "Address of a Dask scheduler, whose workers fit the records instead of local processes.",
    )
    report: Path | None = option(
        OUT, "FILE", "An HTML page about the fleet, updated during the run."
    )
    resume: bool = option(OUT, "", "Continue an interrupted run.", default=False)
    overwrite: bool = overwrite_option()
    allow_code: bool = allow_code_option()


@with_options
def fleet(options: FleetRun) -> None:
    """Fit the machine of a problem file to each record of a fleet, even of thousands of records.
    Write a table with a row for each record: values, standard errors, intervals, notices.

    Each file is read like the first fitted record of the problem, and fitted by its section [fit].
    """
    out, jobs = options.out, options.jobs
    if jobs is not None and jobs < 1:
        end(f"--jobs must be at least 1, got {jobs}. Leave it out for one process per processor.")
    if jobs is not None and options.cluster is not None:
        end("--jobs is not used: the workers of --cluster do the work. Leave out one of the two.")
    others = (options.records, options.about, options.report)
    if out.resolve() in [path.resolve() for path in others if path is not None]:
        end(f"--out {out} is also read, or is the report. Name another file for the table.")
    with plain_errors(options=False), progress() as doing:
        doing("Reading the records")
        from frictax.fleets import fleet as run

        try:
            made = run(**vars(options), progress=doing)
        except FileExistsError as why:
            sentence = str(why.args[0])
            for name in ("resume", "overwrite"):
                sentence = sentence.replace(f"{name}=True", f"--{name}")
            end(sentence.replace("as `out`", "with --out"), DATA_FAILED)
        except KeyboardInterrupt:
            kept = out.with_name(f"{out.name}.parts")
            more = " Give --resume to continue." if kept.exists() else ""
            end(f"Interrupted: the results so far are in {kept}.{more}", INTERRUPTED)
    failed = made.failed
    said = [
        f"{made!r}",
        f"Written: {out}",
        *([f"Written: {options.report}"] if options.report else []),
    ]
    for _, row in failed.head(_SHOWN_FAILURES).iterrows():
        said.append(f"! {row['record']}: {row['reason']}")
    if len(failed) > _SHOWN_FAILURES:
        said.append(
            f"! {len(failed) - _SHOWN_FAILURES} more without estimates: see the column `reason`."
        )
    show("\n".join(said))
    if len(failed) == len(made.table):
        end("No record could be fitted: see the reasons above.", DATA_FAILED)
