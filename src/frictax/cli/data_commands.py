"""The commands `frictax data list`, `fetch` and `path`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from .working import plain_errors, say

app = typer.Typer(
    help="List and download public records of measured machines.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="A name in `frictax data list`.")]


@app.command("list")
def list_() -> None:
    """List the records: name, size, licence, source, and folder on this computer."""
    from frictax import data

    with plain_errors():
        for name, record in data.records().items():
            try:
                where = str(data.path(name))
            except FileNotFoundError:
                where = f"not downloaded: frictax data fetch {name}"
            except ValueError:
                where = f"damaged: frictax data fetch {name}"
            say(
                f"{name}  {record.bytes / 1e6:.1f} MB, {len(record.files)} files, licence:"
                f" {record.licence}"
            )
            for line in (record.title, record.citation, record.home, where):
                say(f"    {line}")


@app.command()
def fetch(
    name: Name,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="FOLDER", help="The folder for the files; default: the user's cache."
        ),
    ] = None,
) -> None:
    """Download a record from its source, and print its folder on this computer."""
    from frictax import data

    with plain_errors():
        if not sys.stderr.isatty():
            say(str(data.fetch(name, to)))
            return
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        with Progress(
            TextColumn(name), BarColumn(), DownloadColumn(), console=Console(stderr=True)
        ) as progress:
            task = progress.add_task(name, total=None)
            folder = data.fetch(
                name, to, lambda done, whole: progress.update(task, completed=done, total=whole)
            )
        say(str(folder))


@app.command()
def path(name: Name) -> None:
    """Print the folder of a record on this computer."""
    from frictax import data

    with plain_errors():
        say(str(data.path(name)))
