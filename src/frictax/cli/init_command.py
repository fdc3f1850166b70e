"""`frictax init`: from a measured file, or an example, to a problem file."""

from pathlib import Path
from typing import Annotated

import typer

from .options import DATA, OUT, Overwrite, option
from .working import end, plain_errors


def init(
    example: Annotated[
        str | None, option(DATA, "--example", metavar="NAME", help="A bundled problem: motor.")
    ] = None,
    out: Annotated[
        Path | None,
        option(OUT, "--out", metavar="FOLDER", help="Where the problem goes."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Begin: an example, ready to be identified."""
    if example is None:
        end("Name an example: --example motor.")
    with plain_errors(options=False):
        from frictax.problems.starting import copy_example

        folder = Path(example) if out is None else out
        written = copy_example(example, folder, overwrite=overwrite)
    typer.echo(f"Written: {', '.join(map(str, written))}")
    for line in next_commands(folder):
        typer.echo(line)


def next_commands(folder: Path) -> list[str]:
    """What to run next."""
    import shlex

    name = shlex.quote(str(folder))
    return [
        "Next:",
        f"  frictax identify {name} --check   # what the record can tell of the machine",
        f"  frictax identify {name}           # parameters with intervals, and a report",
    ]
