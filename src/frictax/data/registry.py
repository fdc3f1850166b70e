"""Find or download public records, whose files `registry.toml` lists with their checksums."""

import dataclasses
import functools
import hashlib
import itertools
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from frictax.parameters import UnknownName
from frictax.text import suggestion

ENVIRONMENT = "FRICTAX_DATA"


@dataclasses.dataclass(frozen=True)
class PublicFile:
    """A file of a record: path below the record's folder, web address, size [bytes], SHA-256.

    **Example:** at `data.records`.
    """

    path: str
    address: str
    bytes: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class PublicRecord:
    """Published measurements of a machine, with their source `home`, licence and files.

    **Example:** at `data.records`.
    """

    name: str
    title: str
    citation: str
    licence: str
    home: str
    files: tuple[PublicFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def missing(self, folder: Path) -> list[PublicFile]:
        """Return the files that are not below `folder`."""
        return [file for file in self.files if not (folder / file.path).is_file()]

    def damaged(self, folder: Path) -> list[PublicFile]:
        """Return the files below `folder` that differ from the published ones."""
        return [
            file
            for file in self.files
            if (folder / file.path).is_file() and _checksum(folder / file.path) != file.sha256
        ]


@functools.cache
def records() -> dict[str, PublicRecord]:
    """Return all public records by name.

    >>> records()["emps"].licence
    'none stated by the owners: not to be passed on'
    """
    content = tomllib.loads((Path(__file__).parent / "registry.toml").read_text(encoding="utf-8"))
    found = {}
    for name, entry in content.items():
        strip = entry.get("strip", "")
        files = tuple(
            PublicFile(
                f["path"], entry["base"] + f["path"].removeprefix(strip), f["bytes"], f["sha256"]
            )
            for f in entry["files"]
        )
        found[name] = PublicRecord(
            name, entry["title"], entry["citation"], entry["licence"], entry["home"], files
        )
    return found


def cache() -> Path:
    """Return the folder for downloaded records in this user's cache folder."""
    import pooch

    return Path(pooch.os_cache("frictax"))


def path(name: str) -> Path:
    """Return the folder of the record called `name`: below the folder that the environment variable
    FRICTAX_DATA names, or below the folder in which `fetch` stores records.

    **Raises:** `KeyError` for a name that is not in the registry; `FileNotFoundError` if the record
    is not on this computer; `ValueError` if a file differs from the published one.

    >>> import frictax as fx
    >>> try:
    ...     fx.data.path("emsp")
    ... except KeyError as error:
    ...     print(error)
    There is no public record 'emsp'. Did you mean 'emps'? There are: emps, ...
    """
    record = _known(name)
    looked = _places(name)
    whole = [folder for folder in looked if not record.missing(folder)]
    sound = (folder for folder in whole if not record.damaged(folder))
    here = next(itertools.chain(sound, whole), None)
    if here is None:
        count, what = len(record.files), "it is not here"
        part = next((folder for folder in looked if len(record.missing(folder)) < count), None)
        if part:
            what = f"{len(record.missing(part))} of its {count} files are missing in {part}"
        raise FileNotFoundError(
            f"The record {name!r} cannot be used: {what}. Looked in"
            f" {' and '.join(str(p) for p in looked)}. Get it by `frictax data fetch {name}`"
            f" ({record.bytes / 1e6:.1f} MB), or set {ENVIRONMENT} to the folder above {name}/."
        )
    damaged = record.damaged(here)
    if damaged:
        raise ValueError(
            f"The record {name!r} is damaged: {here / damaged[0].path} is not the file that was"
            " published (its SHA-256 differs). Delete it and get it again by `frictax data fetch"
            f" {name}`."
        )
    return here


def fetch(
    name: str, folder: str | Path | None = None, tell: Callable[[int, int], Any] | None = None
) -> Path:
    """Download the record called `name`, unless it is on this computer, and return its folder.

    Each file is compared with its checksum before it is stored. A file whose download is
    interrupted or damaged is not stored. A second call of `fetch` downloads the missing files.

    **Arguments:** `folder`: the folder above ``name/``; by default this user's cache folder, unless
    the folder in FRICTAX_DATA already contains the record. `tell`: a callback after each file, with
    the numbers of stored bytes and of all bytes.

    **Raises:** `KeyError` for a name that is not in the registry; `OSError` if the server cannot be
    reached or the folder cannot be written; `ValueError` if a downloaded file differs from the
    published one.

    **Example:** the available records, at `data.records`.
    """
    record = _known(name)
    if folder is None:
        for place in _places(name):
            if not record.missing(place) and not record.damaged(place):
                return place
    target = (cache() if folder is None else Path(folder)) / name
    for file in record.files:
        _fetch_file(record, file, target)
        if tell is not None:
            tell(sum(f.bytes for f in record.files if (target / f.path).is_file()), record.bytes)
    return target


def _fetch_file(record: PublicRecord, file: PublicFile, target: Path) -> None:
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    place = target / file.path
    if place.is_file() and _checksum(place) == file.sha256:
        return
    try:
        pooch.retrieve(
            file.address, known_hash=f"sha256:{file.sha256}", fname=place.name, path=place.parent
        )
    except ValueError as error:
        raise ValueError(
            f"{file.address} is not the file that was published as {record.name}/{file.path} (its"
            f" SHA-256 differs), and was not kept. Look at its home, {record.home}."
        ) from error
    except requests.exceptions.HTTPError as error:
        code = "an error" if error.response is None else error.response.status_code
        raise OSError(
            f"{file.address} was not found ({code}). Look at its home, {record.home}."
        ) from error
    except requests.exceptions.RequestException as error:
        host = file.address.split("/")[2]
        raise OSError(
            f"{host} cannot be reached, so that {record.name}/{file.path} was not fetched. The"
            " files before it are kept; try again with a connection, or copy the record from"
            f" elsewhere and set {ENVIRONMENT} to the folder above {record.name}/."
        ) from error


def _places(name: str) -> list[Path]:
    given = os.environ.get(ENVIRONMENT)
    return [*([Path(given) / name] if given else []), cache() / name]


def _known(name: str) -> PublicRecord:
    if name not in records():
        raise UnknownName(
            f"There is no public record {name!r}.{suggestion(name, records())} There are:"
            f" {', '.join(records())}."
        )
    return records()[name]


def _checksum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
