"""`frictax design`: the experiment that tells most of a machine."""

from pathlib import Path
from typing import Annotated

import typer

from .options import FIT, OUT, AllowCode, Overwrite, Problem, option
from .working import INTERRUPTED, command_line, end, plain_errors, progress, show


def design(
    problem: Problem,
    out: Annotated[
        Path, option(OUT, "--out", metavar="FILE", help="The table of times and drive, as CSV.")
    ] = Path("excitation.csv"),
    report: Annotated[
        Path | None, option(OUT, "--report", metavar="FILE", help="An HTML page on it.")
    ] = None,
    check: Annotated[
        int | None,
        option(
            FIT,
            "--check",
            metavar="N",
            help="Simulate N records of it and fit them: whether errors will be as predicted.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    allow_code: AllowCode = False,
) -> None:
    """Design an excitation for the machine of a problem file, within the limits of its [design].

    Prints the errors that a record of it is to be expected to leave, beside those of a chirp and a
    staircase of speeds, and writes the table for the drive.
    """
    if check is not None and check < 10:
        raise typer.BadParameter(f"--check must be at least 10 records, got {check}.")
    with plain_errors(options=False), progress() as doing:
        doing("Reading")
        from frictax.files.replacing import write_whole
        from frictax.files.targets import check_target
        from frictax.problems import designed, read
        from frictax.report import check_report

        target = check_target(out, "the table")
        if target.exists() and not overwrite:
            raise FileExistsError(
                f"{out} exists. Give --overwrite to replace it, or another file with --out."
            )
        if report is not None:
            check_report(report, overwrite=overwrite)
        asked = read(problem, allow_code=allow_code)
        try:
            made = designed(asked, progress=doing)
            tried = None if check is None else made.check(check, progress=doing)
        except KeyboardInterrupt:
            end("Interrupted: nothing was written.", INTERRUPTED)
        doing("Writing")
        write_whole(target, made.csv_text(), replace=overwrite)
        said = [str(made), *([] if tried is None else [str(tried)]), f"Written: {out}"]
        if report is not None:
            made.report(
                report,
                title=f"{asked.content.title}: an experiment",
                command=command_line.get(),
                check=tried,
                overwrite=overwrite,
            )
            said.append(f"Written: {report}")
    show("\n".join(said))
