"""A problem file, read and checked: everything in it is known to be right before anything is
computed.
"""

import hashlib
import re
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydantic

import frictax as fx
from frictax.text import brief, suggestion

from .building import PRIORS, Place, ProblemError, checked, each_built, machine
from .mistakes import sentence
from .own_code import imported, own_modules
from .problem import Problem, check_names, instruments_of, is_below
from .schema import AnyColumn, ColumnEntry, ProblemFile, RecordEntry, StructureEntry, SweepEntry

NAME = "problem.toml"
_RECORDS = (".csv", ".tsv", ".txt", ".dat", ".mat", ".parquet", ".xls", ".xlsx")
_LARGEST = 1_000_000  # bytes of a file that a person wrote
_DEEPEST = 50  # parts of a key: the time that tomllib takes grows with their square
_KEY_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_DEEP_KEY = re.compile(rf"(?:{_KEY_PART}){{{_DEEPEST}}}")


def find(path: str | Path) -> Path:
    """The problem file that `path`, a file or its folder, means; raises `FileNotFoundError`."""
    given = Path(path)
    file = given / NAME if given.is_dir() else given
    if not file.is_file():
        wrong = (
            f"The folder {given} does not contain a {NAME}."
            if given.is_dir()
            else f'There is no file or folder named "{given}".'
        )
        raise FileNotFoundError(
            f"{wrong} Name a folder with a {NAME}, which `frictax init` writes for a record."
        )
    if file.suffix.lower() in _RECORDS:
        raise ProblemError(
            f"{file.name} is a record, not a problem file. Name a folder with a {NAME}, which"
            f" `frictax init {shlex.quote(str(given))}` writes."
        )
    return file


def read(path: str | Path, *, allow_code: bool = False, tolerance: float | None = None) -> Problem:
    """Read the problem file `path`, or the one in the folder `path`, with its data.

    **Arguments:** `allow_code`: whether functions that the file names, of modules beside it, may be
    called; `tolerance` takes the place of `fit.tolerance`.

    **Raises:** `ProblemError` (a `ValueError`) naming file, key, rule and remedy;
    `FileNotFoundError` for files that are not there.
    """
    file = find(path)
    if file.stat().st_size > _LARGEST:
        raise ProblemError(
            f"{file.name} has {file.stat().st_size} bytes, more than the {_LARGEST} that a problem"
            " file may have."
        )
    raw = file.read_bytes()
    content = _content(file, raw)
    if tolerance is not None:
        if content.sweep is not None:
            raise ProblemError(
                f"{file.name} has a [sweep], which is fitted without a simulation, so the tolerance"
                f" {tolerance:g} is not used. Leave it out."
            )
        fit = content.fit.model_copy(update={"tolerance": tolerance})
        content = content.model_copy(update={"fit": fit})
    reader = Reader(file, content, allow_code)
    made = None if content.sweep else reader.machine(content.machine, reader.place.below("machine"))
    structures = {name: reader.structure(name, entry) for name, entry in content.structures.items()}
    records = {label: reader.record(label, entry) for label, entry in content.records.items()}
    data = reader.sweep(content.sweep) if content.sweep else records
    sha256 = hashlib.sha256(raw).hexdigest()
    problem = Problem(file, content, sha256, made, structures, data, reader.sources)
    if not content.sweep:
        check_names(problem)
    return problem


def _content(file: Path, raw: bytes) -> ProblemFile:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemError(
            f"{file.name} is no text in UTF-8 (byte {error.start}). Save it as UTF-8."
        ) from None
    if not text.strip():
        raise ProblemError(f'{file.name} is empty. Begin with title = "...".')
    if deep := _DEEP_KEY.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        raise ProblemError(
            f"{file.name} is not TOML that can be read: the key of line {line} has more than"
            f" {_DEEPEST} parts. Write tables of few levels."
        )
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProblemError(
            f"{file.name} is not TOML: {error}. Texts stand in quotes, tables begin with [name]."
        ) from None
    except ValueError as error:  # a number of thousands of digits
        raise ProblemError(
            f"{file.name} is not TOML that can be read: {error}. Write shorter numbers."
        ) from None
    except RecursionError:
        raise ProblemError(
            f"{file.name} is not TOML that can be read: it is nested too deeply. Use tables and"
            " lists of few levels."
        ) from None
    try:
        return ProblemFile.model_validate(table)
    except pydantic.ValidationError as error:
        raise sentence(file, table, error) from None


class Reader:
    """Reads what a problem file names."""

    def __init__(self, file: Path, content: ProblemFile, allow_code: bool) -> None:
        self.file, self.content, self.allow_code = file, content, allow_code
        self.place, self.sources = Place(file.name), dict[str, str]()

    def machine(self, parts: Mapping[str, Any], place: Place) -> Any:
        if "python" not in parts:
            return machine(parts, place)
        others = [key for key in parts if key not in ("python", "arguments")]
        if others:
            raise place.below(others[0]).error(
                "cannot stand beside `python`, which returns the whole machine. Leave one of them"
                " out."
            )
        built = self._called(parts["python"], parts.get("arguments", {}), place)
        if not isinstance(built, fx.Mechanism | fx.AbstractHybridSystem):
            raise place.below("python").error(
                f"must return a Mechanism or a hybrid system, got {type(built).__name__}."
            )
        return built

    def structure(self, name: str, entry: StructureEntry) -> fx.Structure:
        place = self.place.below("structures", name)
        own = "python" in entry.machine or "python" in self.content.machine
        parts = (
            dict(entry.machine)
            if own and entry.machine
            else {**self.content.machine, **entry.machine}
        )
        gone = [k for k, v in parts.items() if v == {"kind": "none"}]
        for k in gone:
            if k not in self.content.machine:
                raise place.below("machine", k).error(
                    "leaves out a part that [machine] does not"
                    f" have.{suggestion(k, self.content.machine)}"
                )
        built = self.machine(
            {k: v for k, v in parts.items() if k not in gone}, place.below("machine")
        )
        fit = self.content.fit
        free = fit.free if entry.free is None else entry.free
        each = fit.own if entry.own is None else entry.own
        priors = each_built(entry.priors, PRIORS, place.below("priors"))
        # Its sensors are those of the machine as given, and so are limits of what it fits.
        instruments = instruments_of(fit.instruments, self.place.below("fit", "instruments"))
        is_fitted = lambda path: free is None or any(is_below(path, p) for p in [*free, *each])  # noqa: E731
        limits = {path: pair for path, pair in fit.bounds.items() if is_fitted(path)}
        return fx.Structure(
            built, free=free, own=each, priors=priors, instruments=instruments, bounds=limits,
            tied=fit.tied if entry.tied is None else entry.tied,
            log_scale=[p for p in fit.log_scale if is_fitted(p)],
        )  # fmt: skip

    def record(self, label: str, entry: RecordEntry, frame: Any = None) -> fx.Record:
        """The record of an entry; `frame`: a `DataFrame` in the place of its file."""
        place = self.place.below("records", label)
        if entry.python is not None:
            record = self._called(entry.python, entry.arguments, place)
            if not isinstance(record, fx.Record):
                raise place.below("python").error(
                    f"must return a Record, got {type(record).__name__}."
                )
        else:
            assert entry.file is not None
            named: dict[str, Any] = {
                "time": entry.time and _column(entry.time, place.below("time")),
                "rate": entry.rate,
                "hold": entry.hold,
                "drop_missing": entry.drop_missing,
                "where": entry.where,
                "part": entry.part,
                "name": label,
                "citation": self.content.citation,
            }
            for kind in ("inputs", "outputs"):
                columns = getattr(entry, kind).items()
                named[kind] = {k: _column(c, place.below(kind, k)) for k, c in columns}
            read: Any = fx.Record.from_pandas
            source: Any = frame
            if frame is None:
                source = self._path(entry.public, entry.file, place)
                suffix = source.suffix.lower()
                binary = {".mat": fx.Record.from_mat, ".parquet": fx.Record.from_parquet}
                read = binary.get(suffix, fx.Record.from_csv)
                if suffix not in binary:
                    layout = ("delimiter", "decimal", "skip", "header")
                    named |= {key: getattr(entry, key) for key in layout}
            record = checked(lambda: read(source, **named), place)
        if entry.trim is not None:
            trim = entry.trim
            record = checked(lambda: record.trim(*trim), place.below("trim"))
        return checked(lambda: record.decimate(entry.decimate), place.below("decimate"))

    def sweep(self, entry: SweepEntry) -> fx.Sweep:
        place = self.place.below("sweep")
        path = self._path(entry.public, entry.file, place)
        given = entry.model_dump(exclude={"public", "file"})
        return checked(
            lambda: fx.Sweep.from_csv(
                path, **given, name=self.content.title, citation=self.content.citation
            ),
            place,
        )

    def _path(self, public: str | None, file: str, place: Place) -> Path:
        """Where a file lies; its checksum is noted."""
        folder = (
            self.file.parent
            if public is None
            else checked(lambda: fx.data.path(public), place.below("public"))
        )
        path = folder / file
        if not path.is_file():
            raise place.below("file").error(
                f"names {file!r}, and there is no such file"
                f" {'beside the problem' if public is None else 'in ' + str(folder)}."
            )
        with path.open("rb") as stream:
            self.sources[f"{public}/{file}" if public else file] = hashlib.file_digest(
                stream, "sha256"
            ).hexdigest()
        return path

    def _called(self, name: Any, arguments: Any, place: Place) -> Any:
        place = place.below("python")
        if (
            not isinstance(name, str)
            or not all(part.isidentifier() for part in name.split(":"))
            or name.count(":") != 1
        ):
            raise place.error(
                'must be "module:function", the module a file beside the problem, got'
                f" {brief(name, 80)}."
            )
        if not self.allow_code:
            raise place.error(
                f"wants to run {name!r}, and a problem file runs no code unasked. Read it first,"
                " then give --allow-code."
            )
        module, _, function = name.partition(":")
        path = self.file.parent / f"{module}.py"
        if not path.is_file():
            raise place.error(
                f"names the module {module!r}, and there is no {module}.py beside the problem."
            )
        if not isinstance(arguments, Mapping):
            raise place.error(
                f"has `arguments` that are no table, got {brief(arguments, 80)}."
                " Write arguments = { name = value }."
            )
        try:
            with own_modules(self.file.parent) as used:
                found = getattr(imported(path), function, None)
                if callable(found):
                    result = found(**arguments)
            self.sources |= used
        except (Exception, SystemExit) as error:  # whatever the user's own code does
            says = " ".join(str(error.args[0] if error.args else type(error).__name__).split())
            raise place.error(f"failed with {type(error).__name__}: {says[:300]}") from error
        if not callable(found):
            raise place.error(f"names {function!r}, and {path.name} has no such function.")
        return result


def _column(entry: AnyColumn, place: Place) -> Any:
    if not isinstance(entry, ColumnEntry):
        return entry
    given = entry.model_dump()
    if entry.time is not None:
        given["time"] = _column(entry.time, place.below("time"))
    return checked(lambda: fx.Column(given.pop("column"), **given), place)
