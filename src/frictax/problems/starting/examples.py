"""The problems that are bundled with the package."""

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
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file. Name another folder with --out.")
    there = [name for name in texts if (folder / name).exists() or (folder / name).is_symlink()]
    if there and not overwrite:
        raise FileExistsError(
            f"{folder / there[0]} exists. Give --overwrite to replace it, or another folder with"
            " --out."
        )
    linked = [name for name in there if (folder / name).is_symlink()]
    if linked:
        raise FileExistsError(
            f"{folder / linked[0]} is a link, and nothing is written through links. Remove it."
        )
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        write_together({folder / name: text for name, text in texts.items()}, replace=overwrite)
    except BaseException:
        if new and not any(folder.iterdir()):
            folder.rmdir()
        raise
    return [folder / name for name in texts]
