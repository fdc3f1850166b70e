"""`frictax simulate`: the machine of a problem beside its records, before any fit."""

from pathlib import Path
from typing import Annotated

from .options import OUT, AllowCode, Overwrite, Problem, Tolerance, option
from .working import DATA_FAILED, command_line, end, plain_errors, progress, show


def simulate(
    problem: Problem,
    out: Annotated[
        Path | None,
        option(OUT, "--out", metavar="FILE", help="The page; simulation.html beside the problem."),
    ] = None,
    overwrite: Overwrite = False,
    allow_code: AllowCode = False,
    tolerance: Tolerance = None,
) -> None:
    """Simulate the machine of a problem file with its start values, under the inputs of its
    records: a look before any fit.

    Prints final values, what is left and how often each contact sticks and breaks away, and writes
    a page of measured against simulated.
    """
    with plain_errors(options=False), progress() as doing:
        doing("Reading")
        from frictax.files.replacing import write_whole
        from frictax.problems import preview_page, read, simulate as run
        from frictax.problems.reading import find
        from frictax.report import check_report

        target = find(problem).parent / "simulation.html" if out is None else out
        if target.exists() and not overwrite:
            raise FileExistsError(
                f"{target} exists. Give --overwrite to replace it, or another file with --out."
            )
        page = check_report(target)
        asked = read(problem, allow_code=allow_code, tolerance=tolerance)
        doing("Simulating")
        made = run(asked)
        doing("Writing")
        text = preview_page(asked, made, command_line.get())
        write_whole(page, text, replace=overwrite)
        said = [*map(str, made), f"Written: {target}"]
    show("\n".join(said[:-1]), said[-1])
    if not all(one.motion.complete for one in made):
        end("A run ended before its record did: see above.", DATA_FAILED)
