"""What a problem file holds, checked by pydantic."""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be text in one line without control characters")
    return text


Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_printable)
]
# Python counts with true and false, and pydantic takes "1" for a number: not here.
Number = Annotated[float, Field(strict=True)]
Truth = Annotated[bool, Field(strict=True)]
FiniteFloat = Annotated[float, Field(strict=True, allow_inf_nan=False)]
PositiveInt = Annotated[int, Field(strict=True, gt=0)]
Letter = Annotated[str, StringConstraints(min_length=1, max_length=1)]
Decimal = Literal[".", ","]
Lines = Annotated[int, Field(strict=True, ge=0)]
Level = Annotated[float, Field(strict=True, gt=0.0, lt=1.0)]
Made = dict[str, Any] | Text  # a table with a `kind`, or the kind alone
Function = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*:[A-Za-z_]\w*$")]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Name = Text | PositiveInt  # of a column, or where it stands, the first being 1


class ColumnEntry(Strict):
    """A column of a file, as `Column` takes it."""

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
    """A table in a file: beside the problem file, or one of a public record's."""

    public: Text | None = None
    file: Text
    delimiter: Letter = ","
    decimal: Decimal = "."
    skip: Lines = 0
    header: Truth = True


class RecordEntry(Strict):
    """A motion record: columns of a file, or what a function of the user's returns."""

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
    """A sweep of steady speeds."""

    velocity: Name
    force: Name
    sigma: Name | None = None
    sigma_known: Truth = False
    breakaway: Name | None = None
    where: dict[Text, Any] = {}
    direction: Literal["both", "positive", "negative"] = "both"
    sign: Literal[1, -1] = 1
    velocity_unit: Text = "rad/s"
    force_unit: Text = "N.m"


class LawEntry(Strict):
    """Which law explains a sweep: ``"compare"`` lets the data choose."""

    f_pos: Made = "compare"
    f_neg: Made | None = None
    peak: FiniteFloat | None = None
    offset: FiniteFloat | None = None


class FitEntry(Strict):
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
    starts: Annotated[int, Field(strict=True, ge=1, le=100_000)] = 1
    spread: Annotated[FiniteFloat, Field(ge=0.0)] = 0.5
    seed: Annotated[int, Field(strict=True, ge=0)] = 0
    rounds: Annotated[int, Field(strict=True, ge=0, le=1000)] | None = None
    level: Level = 0.95
    tolerance: Annotated[FiniteFloat, Field(gt=0.0)] | None = None


class DerivedEntry(Strict):
    """Arithmetic of what is fitted, or a common quantity by its name; its SI unit; the record whose
    own values count.
    """

    value: Text
    unit: Text | Literal[""] = ""
    record: Text | None = None


class StructureEntry(Strict):
    """Another structure to be compared: parts that differ, or a machine of its own; what is free in
    it.
    """

    machine: dict[str, Any] = {}
    free: list[Text] | None = None
    own: list[Text] | dict[Text, list[FiniteFloat]] | None = None
    tied: dict[Text, Text] | None = None
    priors: list[Made] = []


class CompareEntry(Strict):
    """What is left out in turn when structures are compared: each of `repeats` equal parts of a
    record, each of `bands` of speed.

    `given`: what the machine as given is called among them.
    """

    given: Text = "as given"
    repeats: Annotated[int, Field(strict=True, ge=2)] = 4
    bands: Annotated[int, Field(strict=True, ge=2)] = 3


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
    """How the records of a fleet are told apart: the columns of a long table, or of the file
    `about` them, a row each; parameters that each has as its own, by such columns; limits of its
    numbers in SI, for verdicts.
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
    """An experiment to be designed: what the machine bears, and the options of `design`."""

    limits: LimitsEntry
    outputs: dict[Text, FiniteFloat] = {}
    duration: FiniteFloat | None = None
    rate: FiniteFloat | None = None
    drive: Text | None = None
    free: list[Text] | None = None
    wanted: list[Text] | None = None
    shape: Made = "FourierSeries"
    criterion: Literal["E", "minimax", "A", "D"] = "E"
    objective: Made = "FreeRun"
    memory: dict[Text, FiniteFloat] = {}
    over: FiniteFloat | dict[Text, FiniteFloat] | None = None
    machines: Annotated[int, Field(strict=True, ge=1, le=1000)] = 6
    size: dict[Text, FiniteFloat] = {}
    margins: MarginsEntry | None = None
    hold: Truth = False
    starts: Annotated[int, Field(strict=True, ge=1, le=1000)] = 8
    steps: Annotated[int, Field(strict=True, ge=1, le=100_000)] = 600
    seed: Annotated[int, Field(strict=True, ge=0)] = 0


class ProblemFile(Strict):
    """A whole file."""

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
                "has a [sweep] beside records or a machine: a sweep is explained by a [law] alone,"
                " in a problem of its own"
            )
        for name in ("compare", "uncertainty", "validation"):
            if self.sweep is not None and name in self.model_fields_set:
                raise ValueError(
                    f"has [{name}] beside a [sweep], which has no such thing: leave it out"
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
            raise ValueError("has a [law] beside records: laws stand in the parts of [machine]")
        return self
