"""The problems that are bundled with the package."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from frictax.report.files import write_together
from frictax.text import suggestion

_BUNDLED = Path(__file__).parent / "bundled"
EXAMPLES = ("motor",)


def copy_example(name: str, folder: str | Path, *, overwrite: bool = False) -> list[Path]:
    """Copy the files of an example into `folder`, which is made if need be: all of them or none.

    Returns the files written.

    **Raises:** `ValueError` for a name that is none; `OSError` with one sentence where the files
    cannot be written, or are there and `overwrite` is false.
    """
    if name not in EXAMPLES:
        raise ValueError(
            f"There is no example {name!r}.{suggestion(name, EXAMPLES)} There is:"
            f" {', '.join(EXAMPLES)}."
        )
    sources = sorted(path for path in (_BUNDLED / name).iterdir() if path.is_file())
    texts = {path.name: path.read_text(encoding="utf-8") for path in sources}
    return write_folder(folder, texts, overwrite=overwrite)


def write_folder(folder: str | Path, texts: dict[str, str], *, overwrite: bool) -> list[Path]:
    """Write files into a folder, which is made if need be, all of them or none."""
    folder = Path(folder)
    with made_folder(folder, texts, overwrite=overwrite):
        write_together({folder / name: text for name, text in texts.items()}, replace=overwrite)
    return [folder / name for name in texts]


@contextlib.contextmanager
def made_folder(folder: Path, names: Iterable[str], *, overwrite: bool) -> Iterator[None]:
    """A folder into which files of these names may be written; it goes again where that fails and
    it is new.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file. Name another folder with --out.")
    for path in (folder / name for name in names):
        if path.is_symlink():
            raise FileExistsError(
                f"{path} is a link, and nothing is written through links. Remove it."
            )
        if path.exists() and not overwrite:
            raise FileExistsError(
                f"{path} exists. Give --overwrite to replace it, or another folder with --out."
            )
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if new and not any(folder.iterdir()):
            folder.rmdir()
        raise
