"""`Record`: the measured motion of a machine under known inputs."""

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from jaxtyping import Float, Int

from frictax.annotations import ArrayLike, Checked, DataFrame
from frictax.arguments import check_count, check_names, lists_options
from frictax.handover import Verb
from frictax.notice import Notice
from frictax.verbs import RecordVerbs

from . import checks, units as units_
from .assembly import ColumnOptions, Columns, assemble
from .clocks import held_means, nearest_line
from .diagnostics import gaps, record_notices
from .noise import Ticks, find_glitches, find_ticks, lost_ticks
from .readers import Column
from .reading.columns import Decimal
from .reading.tables import Table, csv_table, mat_table, pandas_table, parquet_table

AnyColumn = str | int | Column


class TableOptions(ColumnOptions, total=False):
    """The options of a record that is read from a table."""

    name: str | None
    citation: str


class CsvOptions(TableOptions, total=False):
    """The options of a record that is read from a text file."""

    delimiter: str
    decimal: Decimal
    skip: int
    header: bool


_TABLE: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(Columns)}
_TABLE |= {"name": None, "citation": ""}
_CSV: dict[str, Any] = {"delimiter": ",", "decimal": ".", "skip": 0, "header": True}


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Record(RecordVerbs):
    """A measured motion: times, inputs, outputs, and the standard deviations of the outputs.

    An input has the name of the part that it drives (``"drive"``), an output the name of the
    variable that it measures (``"mass.s"``). With ``hold=True`` inputs are held until the next
    sample, as by a digital controller. With ``hold=False`` inputs are interpolated linearly. By
    default inputs are held if each input that changes has at most five values and changes in fewer
    than 20 % of the samples. The notice `levels-held` reports this choice. Time steps need not be
    equal. A record of a free decay does not have inputs.

    **Arguments:**

    - `t` (n,), increasing [s]; dates become seconds since the first date.
    - `inputs`: dict: driven part -> values (n,); `outputs`: dict: measured variable -> values (n,).
    - `sd`: dict: output -> standard deviation > 0 of its noise, a number or (n,), in the unit of
      the output; None if it is not known.
    - `units`: dict: channel, or ``"time"``, -> unit of its numbers; SI by default. The last word of
      an output's name is its variable (s, v, a, f; phi, w, tau). A unit that does not fit the
      variable is an error. The variables s, v, a, f may also describe a rotation.
    - `hold`: see above; `name`, `citation`: texts for tables and reports.

    The fields are read-only arrays in SI. `units`: unit of each channel, for tables and plots;
    `declared`: channels whose unit the user gave; `notes`: doubts about the columns that were read;
    `hold_is_chosen`: True if `hold` was not given and was chosen from the inputs.

    **Raises:** `ValueError` for wrong lengths, text, NaN, times that decrease or repeat, an output
    that never changes, units of another quantity, sd <= 0. The property `warnings` lists suspicious
    data; ``print(record)`` shows this list.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 2.0, 201)
    >>> record = fx.Record(
    ...     t,
    ...     inputs={"drive": np.sin(t)},
    ...     outputs={"mass.s": 20 * t**2},
    ...     sd={"mass.s": 0.1},
    ...     units={"mass.s": "mm"},
    ... )
    >>> print(record)
    record: 201 samples, 2 s, 100 Hz, uniform
      input   drive   0 to 1 N    interpolated linearly
      output  mass.s  0 to 80 mm  sd 0.1 mm
    >>> record.sd, record.outputs["mass.s"][-1].round(6)
    ({'mass.s': 0.0001}, np.float64(0.08))
    """

    t: Float[np.ndarray, " n"]
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    sd: dict[str, Checked[float] | np.ndarray]
    units: dict[str, units_.Unit]
    declared: frozenset[str]
    hold: bool
    name: str
    citation: str
    notes: tuple[str, ...]
    hold_is_chosen: bool = False

    def __init__(
        self,
        t: ArrayLike,
        inputs: Mapping[str, ArrayLike] | None = None,
        outputs: Mapping[str, ArrayLike] | None = None,
        sd: Mapping[str, ArrayLike] | None = None,
        *,
        units: Mapping[str, str] | None = None,
        hold: bool | None = None,
        name: str = "record",
        citation: str = "",
    ) -> None:
        given = checks.RecordArguments(t, inputs, outputs, sd, units, hold, name, citation)
        _set(self, checks.record_fields(given))

    @classmethod
    @lists_options(CsvOptions, _TABLE | _CSV)
    def from_csv(
        cls, path: str | Path, *, outputs: Mapping[str, AnyColumn], **options: Unpack[CsvOptions]
    ) -> "Record":
        """Read a record from the columns of a text file: ``time="t", inputs={"drive": "F"},
        outputs={"mass.s": "q"}``.

        Specify a column by its name, by its number from 1, or as a `Column` with unit, sign, gain,
        standard deviation and own clock.

        **Arguments:**

        - `rate`: sampling rate [Hz], if no column contains the time.
        - `skip`: number of lines before the column names; ``header=False`` for a file without
          column names; `delimiter`: one character, ``" "`` for any number of spaces; `decimal`: the
          decimal sign.
        - ``drop_missing=True`` leaves out rows with a missing or unreadable number, lines with a
          wrong number of cells, and a few repeated times. `notes` reports omitted rows.
        - ``where={"drive": 1}`` keeps the rows in which the column ``drive`` is 1.
        - `part`: number, from 1, of the part to read, if the clock starts again within the file.

        Lines that begin with ``#`` are comments. The text may be in UTF-8, in UTF-16 with a byte
        order mark, or in a Windows code page. A workbook (.xlsx, with the extra `excel`) and a JSON
        log (.json, .jsonl) are read like the same table in CSV.

        **Raises:** `FileNotFoundError`, or `ValueError` naming file, line, column and remedy.
        """
        check_names(Record.from_csv, options)
        given: dict[str, Any] = {**options}
        text = [given.pop(name, default) for name, default in _CSV.items()]
        table = csv_table(path, *text, drop=given.get("drop_missing", False))
        return _from_table(table, outputs, given, Path(path).stem)

    @classmethod
    @lists_options(TableOptions, _TABLE)
    def from_parquet(
        cls, path: str | Path, *, outputs: Mapping[str, AnyColumn], **options: Unpack[TableOptions]
    ) -> "Record":
        """Read a record from the columns of a Parquet file, as `from_csv` does. Needs pyarrow."""
        check_names(Record.from_parquet, options)
        return _from_table(parquet_table(path), outputs, {**options}, Path(path).stem)

    @classmethod
    @lists_options(TableOptions, _TABLE)
    def from_mat(
        cls, path: str | Path, *, outputs: Mapping[str, AnyColumn], **options: Unpack[TableOptions]
    ) -> "Record":
        """Read a record from the variables of a MAT-file up to version 7, as `from_csv` does;
        ``"log.t"`` is a field of a struct, ``"log{2}"`` a cell, ``"M(:,3)"`` a column of a matrix.
        """
        check_names(Record.from_mat, options)
        return _from_table(mat_table(path), outputs, {**options}, Path(path).stem)

    @classmethod
    @lists_options(TableOptions, _TABLE | {"name": "record"})
    def from_pandas(
        cls, frame: DataFrame, *, outputs: Mapping[str, AnyColumn], **options: Unpack[TableOptions]
    ) -> "Record":
        """Build a record from the columns of a `DataFrame`, as `from_csv` does.

        `time` may name the index; dates become seconds since the first date.

        >>> import frictax as fx, pandas as pd
        >>> frame = pd.DataFrame({"ms": [0, 5, 10, 15], "angle [deg]": [0, 9, 18, 36]})
        >>> fx.Record.from_pandas(
        ...     frame,
        ...     time=fx.Column("ms", unit="ms"),
        ...     outputs={"arm.phi": fx.Column("angle [deg]", sd=0.1)},
        ... )
        Record(record: 4 samples, 0.015 s, 200 Hz, uniform; outputs arm.phi)
        """
        check_names(Record.from_pandas, options)
        return _from_table(pandas_table(frame, "the DataFrame"), outputs, {**options}, "record")

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.t.size

    @property
    def duration(self) -> float:
        """Time from the first to the last sample [s]."""
        return float(self.t[-1] - self.t[0])

    @property
    def rate(self) -> float:
        """Sampling rate from the median time step [Hz]."""
        return 1.0 / float(np.median(np.diff(self.t)))

    @property
    def uniform(self) -> bool:
        """True if every time step differs from the median time step by at most 0.1 %."""
        step = np.diff(self.t)
        usual = np.median(step)
        return bool(np.max(np.abs(step - usual)) <= 1e-3 * usual)

    @cached_property
    def ticks(self) -> dict[str, Ticks]:
        """Name of each output with one sample per encoder step, at uneven times -> its `Ticks`."""
        found = {
            name: find_ticks(self.t, y)
            for name, y in self.outputs.items()
            if units_.split_channel(name)[1] in units_.VELOCITY_OF
        }
        return {name: ticks for name, ticks in found.items() if ticks is not None}

    @cached_property
    def turning_ticks(self) -> tuple[str, ...]:
        """Names of outputs with one sample per encoder step whose motion changes its direction."""
        paths = {
            name: np.concatenate([[0.0], np.cumsum(np.abs(np.diff(y)))])
            for name, y in self.outputs.items()
            if units_.split_channel(name)[1] in units_.VELOCITY_OF and name not in self.ticks
        }
        return tuple(name for name, path in paths.items() if find_ticks(self.t, path) is not None)

    @cached_property
    def glitches(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Output -> indices of its glitches (single samples far from their neighbours), and the
        values that interpolation between the neighbours gives at these samples.
        """
        return {name: find_glitches(self.t, y) for name, y in self.outputs.items()}

    @property
    def gaps(self) -> Int[np.ndarray, " k"]:
        """Indices of samples that are followed by a gap: an interval of more than five median time
        steps or, with one sample per encoder step (`ticks`), of more than five encoder steps.
        """
        return lost_ticks(self.ticks) if self.ticks else gaps(self.t)

    @cached_property
    def notices(self) -> tuple[Notice, ...]:
        """Notices on suspicious data, such as gaps or saturation. A fit repeats these notices."""
        return (
            *(Notice("record-read", "", {"told": told}) for told in self.notes),
            *record_notices(self),
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """The `notices` as sentences."""
        return tuple(map(str, self.notices))

    def trim(
        self, start: float | None = None, end: float | None = None, *, reset: bool = False
    ) -> "Record":
        """Return a record of the samples with start <= t <= end [s]. Each bound is optional, and
        may lie beyond the record.

        The times do not change; with ``reset=True`` they begin at 0.

        **Raises:** `ValueError` if fewer than four samples remain.
        """
        low, high = -np.inf if start is None else start, np.inf if end is None else end
        for what, bound in (("start", low), ("end", high)):
            try:
                number = float(bound)
            except (TypeError, ValueError, OverflowError):
                number = np.nan
            if np.isnan(number):
                raise ValueError(
                    f"`Record.trim` {what} must be a time in seconds, got {bound!r}. "
                    f"{self.name!r} lasts from {self.t[0]:g} s to {self.t[-1]:g} s."
                )
        low, high = float(low), float(high)
        if low >= high:
            raise ValueError(
                f"`Record.trim` start must lie before end, got {low:g} s and {high:g} s. Swap them."
            )
        kept = np.flatnonzero((self.t >= low) & (self.t <= high))
        if kept.size < checks.FEWEST:
            raise ValueError(
                f"`Record.trim` must leave at least {checks.FEWEST} samples, got {kept.size}"
                f" between {low:g} s and {high:g} s. {self.name!r} lasts from {self.t[0]:g} s to"
                f" {self.t[-1]:g} s."
            )
        offset = self.t[kept[0]] if reset else 0.0
        return _part(
            self, kept, self.t[kept] - offset, {name: u[kept] for name, u in self.inputs.items()}
        )

    def decimate(self, n: int) -> "Record":
        """Return a record with each n-th sample of time and outputs, without a filter. The impulse
        of an input (its integral over time) stays the same.

        A held input becomes its mean over each new interval, so its impulse up to every kept time
        is the same. An interpolated input becomes a polyline with corners at the kept times, fitted
        by least squares. For an interpolated input u, the integrals of u and t*u over the record do
        not change. Samples after the last kept sample are dropped. Outputs are not averaged,
        because a fit compares each sample with the simulation.

        >>> import frictax as fx
        >>> record = fx.Record(
        ...     [0, 1, 2, 3, 4, 5, 6],
        ...     {"drive": [0, 2, 4, 4, 1, 1, 0]},
        ...     {"mass.s": [0, 1, 3, 6, 9, 11, 12]},
        ...     hold=True,
        ... )
        >>> record.decimate(2).inputs["drive"], record.decimate(2).outputs["mass.s"]
        (array([1., 4., 1., 0.]), array([ 0.,  3.,  9., 12.]))
        """
        check_count("`Record.decimate` n", n, 1, "n = 4 keeps every fourth sample.")
        kept = np.arange(0, self.n, n)
        if kept.size < checks.FEWEST:
            most = (self.n - 1) // (checks.FEWEST - 1)
            raise ValueError(
                f"`Record.decimate` must leave at least {checks.FEWEST} samples, got {kept.size} of"
                f" {self.n} for n = {n}. Give n <= {most}."
            )
        thin = held_means if self.hold else nearest_line
        if n == 1:
            return self
        inputs = {name: thin(self.t, u, kept) for name, u in self.inputs.items()}
        return _part(self, kept, self.t[kept], inputs)

    _repr_html_ = Verb("frictax.report.cards:record_html")

    def __str__(self) -> str:
        """Return the headline, one line for each channel with its range, and the warnings."""
        rows = channel_rows(self)
        spans = [span(values, self.units[name]) for _, name, values, _ in rows]
        names, width = max(len(name) for _, name, _, _ in rows), max(map(len, spans))
        lines = [
            f"  {kind:<8}{name:<{names}}  {text:<{width}}  {more}"
            for (kind, name, _, more), text in zip(rows, spans, strict=True)
        ]
        return "\n".join([headline(self), *lines, *(f"  ! {text}" for text in self.warnings)])

    def __repr__(self) -> str:
        inputs = f"; inputs {', '.join(self.inputs)}" if self.inputs else ""
        return f"Record({headline(self)}{inputs}; outputs {', '.join(self.outputs)})"


def channel_rows(record: Record) -> list[tuple[str, str, np.ndarray, str]]:
    """Return for each channel "input" or "output", its name, its values [SI] and a remark."""
    between = "held between samples" if record.hold else "interpolated linearly"
    return [("input", name, u, between) for name, u in record.inputs.items()] + [
        ("output", name, y, deviation(record.sd[name], record.units[name]))
        for name, y in record.outputs.items()
    ]


def replace_fields(record: Record, **fields: Any) -> Record:
    """Return a copy of the record with the given `fields` replaced, without checks."""
    kept = {field.name: getattr(record, field.name) for field in dataclasses.fields(Record)}
    return _set(object.__new__(Record), kept | fields)


def _set(record: Record, fields: Mapping[str, Any]) -> Record:
    for field in dataclasses.fields(Record):
        object.__setattr__(record, field.name, fields[field.name])
    return record


def _from_table(source: Table, outputs: Any, given: dict[str, Any], name: str) -> Record:
    """Return a record from the columns of a table; `name`: default name of the record."""
    about = {"name": given.pop("name", None), "citation": given.pop("citation", "")}
    if about["name"] is None:
        about["name"] = name
    columns = Columns(**given)
    fields = checks.record_fields(
        checks.RecordArguments(**assemble(source, outputs, columns), **about)
    )
    return _set(object.__new__(Record), fields | {"hold_is_chosen": columns.hold is None})


def _part(record: Record, kept: np.ndarray, t: np.ndarray, inputs: dict[str, np.ndarray]) -> Record:
    """Return the record of the samples at indices `kept`. A constant output raises an error."""
    outputs = {name: y[kept] for name, y in record.outputs.items()}
    sd = {
        name: s[kept] if isinstance(s, np.ndarray) and s.ndim else s
        for name, s in record.sd.items()
    }
    for name, y in outputs.items():
        checks.check_moves(
            f"`Record` output {name!r} in the part from {t[0]:g} s to {t[-1]:g} s",
            y,
            record.units[name],
        )
    fields = {"t": t, "inputs": inputs, "outputs": outputs, "sd": sd}
    return replace_fields(record, **checks.read_only(fields))


def headline(record: Record) -> str:
    """Return the headline: name, number of samples, duration, sampling rate."""
    step = "uniform" if record.uniform else "not uniform"
    return (
        f"{record.name}: {record.n} samples, {record.duration:.4g} s, {record.rate:.4g} Hz, {step}"
    )


def span(values: np.ndarray, unit: units_.Unit) -> str:
    """Return the smallest and the largest value, with their unit, as text.

    >>> from frictax.measurements.units import force_unit
    >>> span(np.array([1.0, -20.0]), force_unit("kN"))
    '-0.02 to 0.001 kN'
    """
    return f"{number_text(values.min(), unit)} to {number_text(values.max(), unit)} {unit.name}"


def deviation(sd: Any, unit: units_.Unit) -> str:
    """Return the standard deviation of an output as text.

    >>> from frictax.measurements.units import force_unit
    >>> deviation(0.25, force_unit("N")), deviation(None, force_unit("N"))
    ('sd 0.25 N', 'sd not known')
    """
    if sd is None:
        return "sd not known"
    if np.ndim(sd):
        return f"sd {span(sd, unit)}"
    return f"sd {number_text(sd, unit)} {unit.name}"


def number_text(value: Any, unit: units_.Unit) -> str:
    """Return the SI value `value` converted to `unit`, as text with four significant digits."""
    return f"{float(value) / unit.si:.4g}"
