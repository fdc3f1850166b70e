"""The schema of a problem file, and the error message for a violation of the schema."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from frictax.analysis.selection.structures import Criteria
from frictax.excitation.building import DesignSettings
from frictax.fitting import FitOptions
from frictax.text import brief, suggestion

from .building import Place, ProblemError


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be text in one line without control characters")
    return text


Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_printable)
]
# The next types are strict, because pydantic otherwise accepts true, false and "1" as numbers.
Number = Annotated[float, Field(strict=True)]
Truth = Annotated[bool, Field(strict=True)]
FiniteFloat = Annotated[float, Field(strict=True, allow_inf_nan=False)]
PositiveInt = Annotated[int, Field(strict=True, gt=0)]
Letter = Annotated[str, StringConstraints(min_length=1, max_length=1)]
Decimal = Literal[".", ","]
Lines = Annotated[int, Field(strict=True, ge=0)]
Level = Annotated[float, Field(strict=True, gt=0.0, lt=1.0)]
Made = dict[str, Any] | Text  # an object: a table with a `kind`, or the kind alone as text
Function = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*:[A-Za-z_]\w*$")]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Name = Text | PositiveInt  # name of a column, or its number counted from 1


class ColumnEntry(Strict):
    """A column of a file, with the arguments of `Column`."""

    column: Name
    unit: Text | None = None
    gain: FiniteFloat | None = None
    sign: Literal[1, -1] = 1
    to: Text | None = None
    sd: FiniteFloat | Text | None = None
    per_turn: FiniteFloat | None = None
    time: "Name | ColumnEntry | None" = None
    unwrap: bool | Annotated[FiniteFloat, Field(gt=0.0)] | None = None
    nanoseconds: Name | None = None


AnyColumn = Name | ColumnEntry


class FileEntry(Strict):
    """A table in a data file of a public record, or in a file next to the problem file."""

    public: Text | None = None
    file: Text
    delimiter: Letter = ","
    decimal: Decimal = "."
    skip: Lines = 0
    header: Truth = True


class RecordEntry(Strict):
    """A motion record: columns of a file, or the result of a function of the user."""

    public: Text | None = None
    file: Text | None = None
    python: Function | None = None
    arguments: dict[str, Any] = {}
    time: AnyColumn | None = None
    rate: FiniteFloat | None = None
    inputs: dict[Text, AnyColumn] = {}
    outputs: dict[Text, AnyColumn] = {}
    hold: Truth | None = None
    delimiter: Letter = ","
    decimal: Decimal = "."
    skip: Lines = 0
    header: Truth = True
    drop_missing: Truth = False
    where: dict[Text, Any] = {}
    part: PositiveInt | None = None
    trim: tuple[FiniteFloat, FiniteFloat] | None = None
    decimate: PositiveInt = 1

    @model_validator(mode="after")
    def _one_source(self) -> "RecordEntry":
        if (self.file is None) == (self.python is None):
            raise ValueError("must name its source once: `file`, or `python`")
        timed = (self.time is not None) + (self.rate is not None)
        if self.file is not None and (timed != 1 or not self.outputs):
            raise ValueError(
                "must say which columns of `file` are `time`, or the `rate` in Hz in its place, and"
                " `outputs`"
            )
        if self.python is not None and (timed or self.outputs or self.inputs):
            raise ValueError("has columns only of a `file`: `python` returns a whole record")
        return self


class SweepEntry(FileEntry):
    """The columns and units of a sweep of steady speeds."""

    velocity: Name
    force: Name
    sigma: Name | None = None
    sigma_known: Truth = False
    breakaway: Name | None = None
    where: dict[Text, Any] = {}
    direction: Literal["both", "positive", "negative"] = "both"
    sign: Literal[1, -1] = 1
    velocity_unit: Text | None = None
    force_unit: Text | None = None


class LawEntry(Strict):
    """The friction law of a sweep. ``"compare"`` fits several laws and chooses one. `f_neg`: the
    law for v < 0, or None if `f_pos` applies to both directions.
    """

    f_pos: Made = "compare"
    f_neg: Made | None = None
    peak: FiniteFloat | None = None
    offset: FiniteFloat | None = None


class FitEntry(Strict):
    """The options of `fit` and their defaults, without `method` and `progress`. `tolerance`
    replaces the option `engine`; `records` names the records that are fitted.
    """

    free: list[Text] | None = None
    own: list[Text] | dict[Text, list[FiniteFloat]] = []
    tied: dict[Text, Text] = {}
    log_scale: list[Text] = []
    records: list[Text] | None = None
    objective: Made = "FreeRun"
    start: Made | None = None
    bounds: dict[Text, tuple[FiniteFloat, FiniteFloat]] = {}
    priors: list[Made] = []
    instruments: dict[Text, dict[str, FiniteFloat]] = {}
    loss: Made = "Squares"
    starts: Annotated[int, Field(strict=True, ge=1, le=100_000)] = FitOptions.starts
    spread: Annotated[FiniteFloat, Field(ge=0.0)] = FitOptions.spread
    seed: Annotated[int, Field(strict=True, ge=0)] = FitOptions.seed
    rounds: Annotated[int, Field(strict=True, ge=0, le=1000)] | None = FitOptions.rounds
    level: Level = FitOptions.level
    tolerance: Annotated[FiniteFloat, Field(gt=0.0)] | None = None


class DerivedEntry(Strict):
    """A derived quantity. `value`: an arithmetic expression of parameters, or the name of a usual
    quantity; `unit`: the SI unit; `record`: the record whose values are used for parameters that
    have a separate value in each record.
    """

    value: Text
    unit: Text | Literal[""] = ""
    record: Text | None = None


class StructureEntry(Strict):
    """Another structure to compare: parts that differ from [machine], and free parameters."""

    machine: dict[str, Any] = {}
    free: list[Text] | None = None
    own: list[Text] | dict[Text, list[FiniteFloat]] | None = None
    tied: dict[Text, Text] | None = None
    priors: list[Made] | None = None


class CompareEntry(Strict):
    """The cross-validation of a comparison of structures. `repeats`: number of equal parts of a
    record; `bands`: number of speed ranges; `given`: name of [machine] in the comparison.
    """

    given: Text = "as given"
    repeats: Annotated[int, Field(strict=True, ge=2)] = Criteria.repeats
    bands: Annotated[int, Field(strict=True, ge=2)] = Criteria.bands


class UncertaintyEntry(Strict):
    errors: Made | None = None
    profiles: list[Text] = []
    draws: Annotated[int, Field(strict=True, ge=10, le=100_000)] = 200
    seed: Annotated[int, Field(strict=True, ge=0)] = 0


class ValidationEntry(Strict):
    records: list[Text] = []
    scores: list[Made] = [{"kind": "FreeRun", "measured_start": True}]
    own_start: Truth = False


class FleetEntry(Strict):
    """Names of columns in a fleet's table of all samples (long format), or in its file `about` with
    one row for each record.

    `values`: path of a parameter -> column with its value for each record; `limits`: path ->
    smallest and largest allowed value [SI] for the verdict.
    """

    record: Text = "record_id"
    machine: Text = "machine_id"
    date: Text = "date"
    temperature: Text = "temperature"
    about: Text | None = None
    values: dict[Text, Text] = {}
    limits: dict[Text, tuple[Number, Number]] = {}


class LimitsEntry(Strict):
    travel: FiniteFloat | None = None
    speed: FiniteFloat | None = None
    acceleration: FiniteFloat | None = None
    force: FiniteFloat | None = None
    band: tuple[FiniteFloat, FiniteFloat] | None = None
    body: Text | None = None


class MarginsEntry(Strict):
    slip: FiniteFloat = 5.0
    miss: FiniteFloat = 0.065


class DesignEntry(Strict):
    """An experiment to be designed: the limits of the machine, and the options of `design`."""

    limits: LimitsEntry
    outputs: dict[Text, FiniteFloat] = {}
    duration: FiniteFloat | None = None
    rate: FiniteFloat | None = None
    drive: Text | None = None
    free: list[Text] | None = None
    wanted: list[Text] | None = None
    shape: Made = "FourierSeries"
    criterion: Literal["E", "minimax", "A", "D"] = DesignSettings.criterion
    objective: Made = "FreeRun"
    memory: dict[Text, FiniteFloat] = {}
    over: FiniteFloat | dict[Text, FiniteFloat] | None = None
    machines: Annotated[int, Field(strict=True, ge=1, le=1000)] = DesignSettings.machines
    size: dict[Text, FiniteFloat] = {}
    margins: MarginsEntry | None = None
    hold: Truth = DesignSettings.hold
    starts: Annotated[int, Field(strict=True, ge=1, le=1000)] = DesignSettings.starts
    steps: Annotated[int, Field(strict=True, ge=1, le=100_000)] = DesignSettings.steps
    seed: Annotated[int, Field(strict=True, ge=0)] = DesignSettings.seed


class ProblemFile(Strict):
    """The content of a whole problem file."""

    title: Text
    notes: list[Text] = []
    citation: Annotated[str, AfterValidator(_printable)] = ""
    learnt: list[Text] = []
    records: dict[Text, RecordEntry] = {}
    machine: dict[str, Any] = {}
    sweep: SweepEntry | None = None
    law: LawEntry | None = None
    fit: FitEntry = FitEntry()
    structures: dict[Text, StructureEntry] = {}
    compare: CompareEntry = CompareEntry()
    derived: dict[Text, Text | DerivedEntry] = {}
    uncertainty: UncertaintyEntry = UncertaintyEntry()
    validation: ValidationEntry = ValidationEntry()
    fleet: FleetEntry = FleetEntry()
    design: DesignEntry | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "ProblemFile":
        if self.sweep is None and not self.records:
            raise ValueError("has nothing measured: give [sweep], or [records.NAME] for motions")
        if self.sweep is not None and (self.records or self.machine or self.structures):
            raise ValueError(
                "has a [sweep] beside records or a machine: describe a sweep with its [law] in a"
                " separate problem"
            )
        for name in ("compare", "uncertainty", "validation"):
            if self.sweep is not None and name in self.model_fields_set:
                raise ValueError(
                    f"has [{name}] beside a [sweep], which does not use it: leave it out"
                )
        of_records = sorted(
            self.fit.model_fields_set - {"free", "tied", "log_scale", "loss", "level"}
        )
        if self.sweep is not None and of_records:
            raise ValueError(
                f"has fit.{of_records[0]} beside a [sweep]: fit of a sweep takes free, tied,"
                " log_scale, loss and level"
            )
        if self.records and not self.machine:
            raise ValueError(
                "has records and no [machine] that explains them: give its parts as [machine.NAME]"
            )
        if self.records and self.law is not None:
            raise ValueError("has a [law] beside records: laws belong into the parts of [machine]")
        return self


_WORDS = {
    "Input should": "must",
    "String should": "must",
    "Tuple should": "must",
    "List should": "must",
    "Dictionary should": "must",
    "valid dictionary": "table",
    "valid integer": "whole number",
    "valid boolean": "truth value, true or false",
    "valid ": "",
    "should": "must",
}


def mistake_sentence(
    file: Path, table: Mapping[str, Any], error: pydantic.ValidationError
) -> ProblemError:
    """Return the first error of pydantic as a `ProblemError`. If a value may have several types,
    report the error of the type that fits best.
    """
    errors = error.errors(include_url=False)
    deepest = max(
        errors,
        key=lambda e: (
            e["loc"][:1] == errors[0]["loc"][:1],
            e["type"] == "extra_forbidden",
            len(e["loc"]),
        ),
    )
    first = deepest if errors[0]["loc"][:2] == deepest["loc"][:2] else errors[0]
    node: Any = table
    place = Place(file.name)
    for step in first["loc"]:
        keys: Any = range(len(node)) if isinstance(node, list) else node
        inside = isinstance(node, Mapping | list) and step in keys
        if inside or first["type"] in ("missing", "extra_forbidden") and step == first["loc"][-1]:
            place = place.below(str(step))
            inner: Any = node
            node = inner[step] if inside else node
    others = len({e["loc"][:2] for e in errors}) - 1
    more = f" ({others} more after it.)" if others else ""
    key = str(first["loc"][-1]) if first["loc"] else ""
    says = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        model: Any = ProblemFile
        for step in first["loc"][:-1]:
            fields = getattr(model, "model_fields", {})
            if step in fields:
                model = _table_of(fields[step].annotation)
            elif step == "ColumnEntry":
                model = ColumnEntry
        known = list(getattr(model, "model_fields", ProblemFile.model_fields))
        return place.error(
            f"is no key of a problem file.{suggestion(key, known)} The keys here are:"
            f" {', '.join(known)}.{more}"
        )
    if first["type"] == "missing":
        return place.error(f"is missing. Add {key} = ...{more}")
    if first["type"] == "value_error":
        return place.error(f"{says}.{more}")
    if first["type"] == "string_pattern_mismatch":
        return place.error(
            'must be "module:function", where the module is a file beside the problem, got'
            f" {brief(first['input'], 80)}.{more}"
        )
    for pydantics, ours in _WORDS.items():
        says = says.replace(pydantics, ours)
    return place.error(f"{says}, got {brief(first['input'], 80)}.{more}")


def _table_of(annotation: Any) -> Any:
    """Return the pydantic class in an annotation (Entry for dict[str, Entry]), or None."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return annotation
    inner = [_table_of(a) for a in getattr(annotation, "__args__", ())]
    return next((a for a in inner if a is not None), None)
