"""Checks that a file can be written, before the work that it takes."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from .replacing import finish_interrupted


def check_target(path: str | Path, what: str) -> Path:
    """The file to write, links followed, or one sentence why it cannot be written.

    **Arguments:** `what` is to be written there, such as "the report".

    **Raises:** `IsADirectoryError`, `FileNotFoundError`, `NotADirectoryError`, `FileExistsError` or
    `PermissionError`.
    """
    asked, target = Path(path), Path(path).resolve()
    folder = target.parent
    if target.is_dir():
        raise IsADirectoryError(f"{asked} is a folder. Name a file in it for {what}.")
    if not folder.exists():
        raise FileNotFoundError(
            f"There is no folder {asked.parent} for {what}. Make it first, or write to another one."
        )
    if not folder.is_dir():
        raise NotADirectoryError(
            f"{asked.parent} is a file, so {what} cannot be written into it. Name a folder."
        )
    if target.exists() and not target.is_file():
        raise FileExistsError(f"{asked} is no ordinary file. Name another one for {what}.")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(
            f"{asked} may not be written to. Name another file for {what}, or change its"
            " permissions."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(
            f"The folder {asked.parent} may not be written to. Choose another one for {what}."
        )
    return target


def check_folder(folder: Path, names: Iterable[str], *, overwrite: bool) -> None:
    """Files of these names may be written into the folder `--out`, which need not be there yet.

    **Raises:** `FileExistsError` with one sentence.
    """
    finish_interrupted(folder, reading=True)
    for path in (folder / name for name in names):
        if path.is_symlink():
            raise FileExistsError(
                f"{path} is a link, and nothing is written through links. Remove it."
            )
        if path.exists() and not overwrite:
            raise FileExistsError(
                f"{path} exists. Give --overwrite to replace it, or another folder with --out."
            )


@contextlib.contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """A folder, made if need be with those above it; what was made goes again where the work fails
    and left nothing.

    **Raises:** `NotADirectoryError` with one sentence where it is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file. Name another folder with --out.")
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # somebody else has put something there
            for one in new:
                one.rmdir()
        raise
