"""Read a problem file with its data, its machine and its structures."""

import contextlib
import dataclasses
import hashlib
import importlib.util
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pydantic

import frictax as fx
from frictax.fitting.options import DEFAULTS, FitOptions
from frictax.parameters import parameters, select
from frictax.text import brief, suggestion

from .building import (
    ERRORS,
    LOSSES,
    OBJECTIVES,
    PRIORS,
    Place,
    ProblemError,
    build,
    build_each,
    build_machine,
    call_checked,
)
from .schema import (
    AnyColumn,
    ColumnEntry,
    FitEntry,
    ProblemFile,
    RecordEntry,
    StructureEntry,
    SweepEntry,
    mistake_sentence,
)


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """The content of a problem file: machine, data, options of the fit, and validation.

    - `file`: the path; `content`: the checked tables; `sha256`: checksum of the file.
    - `machine`: the machine with start values, None for a sweep; `structures`: name -> another
      machine and its free parameters, to compare with `machine`.
    - `data`: label -> `Record`, in the order of the file, or a `Sweep`; `sources`: data file or
      Python file -> its SHA-256.
    """

    file: Path
    content: ProblemFile
    sha256: str
    machine: Any
    structures: Mapping[str, fx.Structure]
    data: Mapping[str, fx.Record] | fx.Sweep
    sources: Mapping[str, str]

    @property
    def place(self) -> Place:
        return Place(self.file.name)

    @property
    def fitted_records(self) -> dict[str, fx.Record]:
        """The fitted records in `fit.records`; by default all that are not for validation."""
        assert isinstance(self.data, Mapping)
        named = self.content.fit.records
        if named is None:
            named = [label for label in self.data if label not in self.content.validation.records]
        return {label: self.data[label] for label in named}

    def settings(self) -> dict[str, Any]:
        """Return the options of `fit` from the table [fit] of a problem with records."""
        fit, place = self.content.fit, self.place.below("fit")
        out = {name: getattr(fit, name) for name in DEFAULTS if name in FitEntry.model_fields}
        for name, kinds in (("objective", OBJECTIVES), ("start", OBJECTIVES), ("loss", LOSSES)):
            if out[name] is not None:
                out[name] = build(out[name], kinds, place.below(name))
        out["priors"] = build_each(fit.priors, PRIORS, place.below("priors"))
        out["instruments"] = instruments_of(fit.instruments, place.below("instruments"))
        out["engine"] = None if fit.tolerance is None else fx.OnSamples(tolerance=fit.tolerance)
        return out

    def options(self) -> FitOptions:
        """Return the result of `settings()` as `FitOptions`, which checks the values."""
        return FitOptions(**self.settings())

    def criterion(self) -> dict[str, Any]:
        """Return the options of `compare` for the comparison of structures."""
        entry, settings = self.content.compare, self.settings()
        out = {key: settings[key] for key in ("objective", "start", "engine")}
        out |= {"repeats": entry.repeats, "bands": entry.bands}
        cutoff = getattr(out["objective"], "cutoff", None)
        return out if cutoff is None else out | {"cutoff": cutoff}

    def errors(self) -> Any:
        """Return the noise model for the standard errors, or None if the file does not name one."""
        asked, place = self.content.uncertainty.errors, self.place.below("uncertainty", "errors")
        return None if asked is None else build(asked, ERRORS, place)

    def scores(self) -> list[Any]:
        """Return the objectives that compare the fitted machine with the validation records."""
        place = self.place.below("validation", "scores")
        return build_each(self.content.validation.scores, OBJECTIVES, place)


def instruments_of(entries: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """Return a dict from the name of each channel to its `Instrument`."""
    return {
        c: build({"kind": "Instrument", **values}, ["Instrument"], place.below(c))
        for c, values in entries.items()
    }


def check_names(problem: Problem) -> None:
    """Raise `ProblemError` for records and paths that do not exist, for objects that cannot be
    built, and for validation records that are also fitted.
    """
    content, place = problem.content, problem.place
    for section, labels in (
        ("fit", content.fit.records or []),
        ("validation", content.validation.records),
    ):
        here = place.below(section, "records")
        for label in labels:
            if label not in content.records:
                known = ", ".join(content.records)
                raise here.error(
                    f"names {label!r}, and there is no such"
                    f" record.{suggestion(label, content.records)} There are: {known}."
                )
    if content.compare.given in content.structures:
        raise place.below("compare", "given").error(
            f"names {content.compare.given!r}, as a structure does. Give it another name."
        )
    both = [label for label in content.validation.records if label in problem.fitted_records]
    if both:
        here = place.below("validation", "records")
        raise here.error(
            f"names {both[0]!r}, which is fitted: a fit cannot be validated with its own records."
            " Name it in one of the two."
        )
    if not problem.fitted_records:
        raise place.below("fit").error(
            "has no record to fit: all of them serve validation, or fit.records is empty. Name one."
        )
    settings = problem.settings()
    problem.errors()
    problem.scores()
    problem.criterion()
    here = place.below("fit", "objective")
    model = call_checked(lambda: settings["objective"].machine(problem.machine), here, values=True)
    known = paths_of(model, problem.fitted_records)
    for key in ("free", "own", "bounds", "tied", "log_scale"):
        for path in getattr(content.fit, key) or ():
            if not any(is_below(p, path) for p in known):
                raise place.below("fit", key).error(
                    f"names {path!r}, which the machine does not have.{suggestion(path, known)}"
                )


def is_below(path: str, other: str) -> bool:
    """Return True if `path` is `other` or the path of a value inside of `other`."""
    return path == other or path.startswith(f"{other}.")


def paths_of(model: Any, records: Mapping[str, fx.Record]) -> list[str]:
    """Return the paths of all parameters of the machine and of its instruments."""
    channels = dict.fromkeys(
        f"{kind}.{name}"
        for kind in ("inputs", "outputs")
        for r in records.values()
        for name in getattr(r, kind)
    )
    own = parameters(fx.Instrument())
    instruments = [f"{channel}.{p.path}" for channel in channels for p in own]
    return [p.path for p in parameters(model)] + instruments


@contextlib.contextmanager
def own_modules(folder: Path) -> Iterator[dict[str, str]]:
    """Let modules in `folder` import each other within a `with` block. Afterwards, remove these
    modules from `sys.modules`, because another problem may have modules of the same names.

    Yield a dict that is filled when the block ends: name of each used file -> its SHA-256.
    """
    used: dict[str, str] = {}
    home, mine = str(folder.resolve()), {path.stem for path in folder.glob("*.py")}
    before = {name: sys.modules.pop(name) for name in mine if name in sys.modules}
    sys.path.insert(0, home)
    # Do not write bytecode. Python only compares size and time (in seconds) of the source file with
    # the bytecode, and misses a digit that the user changes within one second.
    wrote, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield used
    finally:
        sys.dont_write_bytecode = wrote
        sys.path.remove(home)
        # Sort the names, because results of different processes must be equal.
        for name in sorted(mine & set(sys.modules)):
            file = Path(getattr(sys.modules.pop(name), "__file__", None) or "")
            if file.parent == folder.resolve():
                used[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
        sys.modules.update(before)


def import_file(path: Path) -> Any:
    """Import the module at `path`, even if it was imported before."""
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


NAME = "problem.toml"
_RECORDS = (".csv", ".tsv", ".txt", ".dat", ".mat", ".parquet", ".xls", ".xlsx")
# largest number of parts of a key such as a.b.c; the time of tomllib grows with its square
_DEEPEST = 50
_KEY_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_DEEP_KEY = re.compile(rf"(?:{_KEY_PART}){{{_DEEPEST}}}")


def find(path: str | Path) -> Path:
    """Return the path of the problem file; `path` is this file or its folder.

    **Raises:** `FileNotFoundError` if the problem file does not exist.
    """
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
    """Read a problem file and its data; `path`: the file or its folder.

    **Arguments:** `allow_code`: whether functions in Python files of the same folder may run;
    `tolerance` replaces `fit.tolerance` of the file.

    **Raises:** `ProblemError` (a `ValueError`) with file, key, rule and remedy; `FileNotFoundError`
    for a file that does not exist.
    """
    file = find(path)
    # [bytes] largest size of a problem file; files that people write are less than a tenth of it
    largest = 1_000_000
    if file.stat().st_size > largest:
        raise ProblemError(
            f"{file.name} has {file.stat().st_size} bytes, more than the {largest} that a problem"
            " file may have."
        )
    raw = file.read_bytes()
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
            f"{file.name} is not TOML: {error}. Put texts in quotes, begin tables with [name]."
        ) from None
    except ValueError as error:  # raised for an integer with thousands of digits
        raise ProblemError(
            f"{file.name} is not TOML that can be read: {error}. Write shorter numbers."
        ) from None
    except RecursionError:
        raise ProblemError(
            f"{file.name} is not TOML that can be read: it is nested too deeply. Use tables and"
            " lists of few levels."
        ) from None
    try:
        content = ProblemFile.model_validate(table)
    except pydantic.ValidationError as error:
        raise mistake_sentence(file, table, error) from None
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


class Reader:
    """A reader of one problem file, which reads its data and builds its machines."""

    def __init__(self, file: Path, content: ProblemFile, allow_code: bool) -> None:
        self.file, self.content, self.allow_code = file, content, allow_code
        self.place, self.sources = Place(file.name), dict[str, str]()

    def machine(self, parts: Mapping[str, Any], place: Place) -> Any:
        if "python" not in parts:
            return build_machine(parts, place)
        others = [key for key in parts if key not in ("python", "arguments")]
        if others:
            raise place.below(others[0]).error(
                "cannot be used together with `python`, which returns the whole machine. Leave one"
                " of them out."
            )
        built = self._call(parts["python"], parts.get("arguments", {}), place)
        if not isinstance(built, fx.Mechanism | fx.AbstractHybridSystem):
            raise place.below("python").error(
                f"must return a Mechanism or a hybrid system, got {type(built).__name__}."
            )
        return built

    def structure(self, name: str, entry: StructureEntry) -> fx.Structure:
        place = self.place.below("structures", name)
        parts = {**self.content.machine, **entry.machine}
        if "python" in parts and entry.machine:
            parts = dict(entry.machine)
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
        free, each, tied = (
            getattr(fit if getattr(entry, key) is None else entry, key)
            for key in ("free", "own", "tied")
        )
        # Use sensors, bounds and priors of [fit], except those of parameters that this structure
        # fixes or does not have.
        instruments = instruments_of(fit.instruments, self.place.below("fit", "instruments"))

        def is_fitted(path: str) -> bool:
            return free is None or any(is_below(path, p) for p in [*free, *each])

        limits = {path: pair for path, pair in fit.bounds.items() if is_fitted(path)}
        if entry.priors is not None:
            priors = build_each(entry.priors, PRIORS, place.below("priors"))
        else:
            known = parameters(built) if free else select(built, free)
            paths = {p.path for p in known if not any(is_below(p.path, end) for end in tied)}
            priors = [
                prior
                for prior in build_each(fit.priors, PRIORS, self.place.below("fit", "priors"))
                if is_fitted(prior.path)
                and (prior.path in paths or prior.path.startswith(("inputs.", "outputs.")))
            ]
        return fx.Structure(
            built, free=free, own=each, priors=priors, instruments=instruments, bounds=limits,
            tied=tied,
            log_scale=[p for p in fit.log_scale if is_fitted(p)],
        )  # fmt: skip

    def record(self, label: str, entry: RecordEntry, frame: Any = None) -> fx.Record:
        """Return the record that `entry` describes; a DataFrame `frame` replaces its file."""
        place = self.place.below("records", label)
        if entry.python is not None:
            record = self._call(entry.python, entry.arguments, place)
            if not isinstance(record, fx.Record):
                raise place.below("python").error(
                    f"must return a Record, got {type(record).__name__}."
                )
        else:
            assert entry.file is not None
            same = "rate hold drop_missing where part".split()
            named: dict[str, Any] = {key: getattr(entry, key) for key in same}
            named["time"] = entry.time and _column(entry.time, place.below("time"))
            named |= {"name": label, "citation": self.content.citation}
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
            record = call_checked(lambda: read(source, **named), place, values=True)
        if entry.trim is not None:
            trim = entry.trim
            record = call_checked(lambda: record.trim(*trim), place.below("trim"), values=True)
        return call_checked(
            lambda: record.decimate(entry.decimate), place.below("decimate"), values=True
        )

    def sweep(self, entry: SweepEntry) -> fx.Sweep:
        place = self.place.below("sweep")
        path = self._path(entry.public, entry.file, place)
        given = entry.model_dump(exclude={"public", "file"})
        given |= {"name": self.content.title, "citation": self.content.citation}
        return call_checked(lambda: fx.Sweep.from_csv(path, **given), place, values=True)

    def _path(self, public: str | None, file: str, place: Place) -> Path:
        """Return the path of a file, and store its checksum in `sources`."""
        folder = (
            self.file.parent
            if public is None
            else call_checked(lambda: fx.data.path(public), place.below("public"), values=True)
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

    def _call(self, name: Any, arguments: Any, place: Place) -> Any:
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
                f"calls {name!r}, and code of a problem file runs only with permission. Read it"
                " first, then give --allow-code."
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
                found = getattr(import_file(path), function, None)
                if callable(found):
                    result = found(**arguments)
            self.sources |= used
        except (Exception, SystemExit) as error:  # The user's code can raise any error.
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
    return call_checked(lambda: fx.Column(given.pop("column"), **given), place, values=True)


def template_of(problem: Problem) -> str:
    """Return the label of the first fitted record, whose columns all files of a fleet have."""
    if not isinstance(problem.data, dict) or not problem.fitted_records:
        raise problem.place.error(
            "has no fitted record, and a fleet reads its files like the first fitted record. Give"
            " one as [records.NAME]."
        )
    label = next(iter(problem.fitted_records))
    if problem.content.records[label].file is None:
        raise problem.place.below("records", label).error(
            "is made by a function, and a fleet reads files. Name its `file` and columns."
        )
    return label


def record_reader(problem: Problem, label: str) -> Callable[[str, Path | Any], fx.Record]:
    """Return a function that reads files or `DataFrame`s with the columns of record `label`."""
    entry = problem.content.records[label]
    reader = Reader(problem.file, problem.content, False)

    def read(name: str, source: Path | Any) -> fx.Record:
        if not isinstance(source, Path):
            return reader.record(name, entry, source)
        mine = entry.model_copy(update={"public": None, "file": str(source.resolve())})
        return reader.record(name, mine)

    return read
