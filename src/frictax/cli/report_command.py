"""`frictax report`: the numbers and the page of a fit that was saved."""

from pathlib import Path
from typing import Annotated

import typer

from .options import OUT, Overwrite, option
from .working import command_line, plain_errors, progress, show


def report(
    fit: Annotated[Path, typer.Argument(metavar="FIT", help="The file, such as motor/result.fit.")],
    out: Annotated[
        Path | None,
        option(OUT, "--out", metavar="FILE", help="The page; unless given, beside FIT, as .html."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Print a fit that was saved (`result.fit` of `frictax identify`, or `found.save(...)`), and
    write its report; or that of a fleet's table (`fleet.parquet`). Nothing is fitted again.
    """
    with plain_errors(options=False), progress() as doing:
        doing("Reading")
        from frictax.fleets import Fleet
        from frictax.fleets.page.report import write_fleet_report
        from frictax.report import check_report
        from frictax.report.saving import load_fit

        is_fleet = fit.suffix.lower() == ".parquet"
        found = Fleet.read(fit) if is_fleet else load_fit(fit)
        target = fit.with_suffix(".html") if out is None else out
        if target.exists() and not overwrite:
            raise FileExistsError(
                f"{target} exists. Give --overwrite to replace it, or another file with --out."
            )
        check_report(target)
        doing("Studying, simulating, writing")
        if isinstance(found, Fleet):
            write_fleet_report(found, target, command=command_line.get(), overwrite=overwrite)
        else:
            found.report(target, command=command_line.get(), overwrite=overwrite)
    show(str(found), f"Written: {target}")
