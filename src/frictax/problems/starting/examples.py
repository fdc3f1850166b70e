"""The problems that are bundled with the package."""

from pathlib import Path

from frictax.files.replacing import write_together
from frictax.files.targets import check_folder, made_folder
from frictax.text import suggestion

_BUNDLED = Path(__file__).parent / "bundled"
_SHIPPED = {"screw_drive": ("screw_drives/sweep.csv", "screw_drives/LICENSE")}  # below data/
EXAMPLES = ("motor", "screw_drive")


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
    sources = [path for path in (_BUNDLED / name).iterdir() if path.is_file()]
    data = Path(__file__).parents[4] / "data"  # a wheel has these files among the others
    sources += [data / file for file in _SHIPPED.get(name, ()) if (data / file).is_file()]
    sources.sort()
    texts = {path.name: path.read_text(encoding="utf-8") for path in sources}
    return write_folder(folder, texts, overwrite=overwrite)


def write_folder(folder: str | Path, texts: dict[str, str], *, overwrite: bool) -> list[Path]:
    """Write files into a folder, which is made if need be, all of them or none."""
    folder = Path(folder)
    check_folder(folder, texts, overwrite=overwrite)
    with made_folder(folder):
        write_together({folder / name: text for name, text in texts.items()}, replace=overwrite)
    return [folder / name for name in texts]
