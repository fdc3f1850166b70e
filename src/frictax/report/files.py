"""Writing a file whole or not at all."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path


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


def write_whole(target: Path, content: str | bytes, *, replace: bool) -> None:
    """Write beside `target` first and then put it in its place: a failure leaves what was there.

    **Raises:** `FileExistsError` where something is there and `replace` is false.
    """
    write_together({target: content}, replace=replace)


def write_together(files: Mapping[Path, str | bytes], *, replace: bool) -> None:
    """Write several files, all of them or none: first beside their targets, and in their places
    only when each is complete.

    **Raises:** `FileExistsError` where one is there and `replace` is false.
    """
    parts = {
        target: target.with_name(f".{target.name[:100]}.{os.getpid()}.part") for target in files
    }
    here = next(iter(files))
    try:
        try:
            for here, content in files.items():
                whole = (
                    content
                    if isinstance(content, bytes)
                    else content.encode("utf-8", "xmlcharrefreplace")
                )
                with open(parts[here], "xb") as file:
                    file.write(whole)
            for here in files:
                if not replace and here.exists():
                    raise FileExistsError(
                        f"{here.name} has come into being meanwhile. It was left as it is: name"
                        " another file."
                    )
            _exchange(parts)
        finally:
            for part in parts.values():
                part.unlink(missing_ok=True)
    except OSError as error:
        if error.strerror is None:
            raise
        raise type(error)(
            f"{here.name} could not be written ({error.strerror}). Nothing was changed: free some"
            " space, or write elsewhere."
        ) from None


def _exchange(parts: Mapping[Path, Path]) -> None:
    """Put each part in its target's place; what was there comes back if one of them fails."""
    before: dict[Path, Path | None] = {}
    try:
        for target, part in parts.items():
            old = part.with_suffix(".old") if target.exists() else None
            before[target] = old
            if old is not None:
                os.replace(target, old)
            os.replace(part, target)
    except BaseException:
        for target, old in before.items():
            if old is None:
                target.unlink(missing_ok=True)
            elif old.exists():
                os.replace(old, target)
        raise
    for old in before.values():
        if old is not None:
            old.unlink(missing_ok=True)
