"""Columns of a motion record from CSV, Parquet, MAT and pandas, or one sentence on what is wrong
with them.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from frictax.text import brief

from .checks import no_dates, no_unit_of_dates, numbers
from .columns import existing_file, missing_column, read_columns
from .units import named_in, spelled


@dataclasses.dataclass(frozen=True)
class Column:
    """One column of a file: what it is called, the unit in which it was recorded, and how to turn
    it into what is wanted.

    The value is ``sign * gain * recorded``, in the unit `to`; without `to` it is in `unit`.

    **Arguments:**

    - `name` of the column.
    - `unit` in which it was recorded: mm, deg, rpm, kN, ms, ...; unless given, the one in brackets
      at the end of the name ("Position [mm]"), or SI. With `gain` and `to` it may be anything (V,
      counts).
    - `gain` [`to` per `unit`]: 35.15 N/V of an amplifier and its motor, 2*pi/4096 rad per count of
      an encoder.
    - `sign`: -1 turns the direction round.
    - `to`: the unit that the gain leads to.
    - `sd`, in `unit`, as recorded: standard deviation of the measurement, a number or the name of a
      column that holds one for each row. For outputs only.

    **Raises:** `ValueError`.

    >>> import frictax as fx
    >>> fx.Column("vir", unit="V", gain=35.15065, to="N")
    Column(name='vir', unit='V', gain=35.15065, sign=1, to='N', sd=None)
    """

    name: str
    unit: str | None = None
    gain: float | None = None
    sign: int = 1
    to: str | None = None
    sd: float | str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(
                f"`Column.name` must be the name of a column, got {self.name!r}. Write it as the"
                " file does."
            )
        own = f"`Column` {self.name!r}:"
        for what in ("unit", "to"):
            value = getattr(self, what)
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise ValueError(
                    f"{own} `{what}` must be the name of a unit, got {value!r}. A factor is given"
                    " as `gain`."
                )
        if self.sign not in (1, -1) or isinstance(self.sign, bool):
            raise ValueError(
                f"{own} `sign` must be 1 or -1, got {self.sign!r}. A factor is given as `gain`."
            )
        if self.gain is not None and not (
            _is_number(self.gain) and np.isfinite(self.gain) and self.gain != 0
        ):
            raise ValueError(
                f"{own} `gain` must be a finite number other than 0, got {self.gain!r}. Leave it"
                " out for a factor of 1."
            )
        if self.gain is not None and self.gain < 0:
            raise ValueError(
                f"{own} `gain` must be > 0, got {self.gain!r}. Give the direction as sign=-1."
            )
        if self.to is not None and self.gain is None:
            raise ValueError(
                f"{own} `to` = {self.to!r} needs the `gain` that leads there, got None. Give it, or"
                " leave `to` out: units of one kind are converted anyway."
            )
        if (
            self.sd is not None
            and not isinstance(self.sd, str)
            and not (_is_number(self.sd) and np.isfinite(self.sd) and self.sd > 0)
        ):
            raise ValueError(
                f"{own} `sd` must be a number > 0 or the name of a column, got {self.sd!r}. Leave"
                " it out if it is not known."
            )

    @property
    def factor(self) -> float:
        """Sign times gain."""
        return self.sign * (1.0 if self.gain is None else float(self.gain))


# of a column's name, and other than SI
_ENDINGS = ("ms", "us", "mm", "cm", "um", "deg", "rpm", "kN", "mA")


@dataclasses.dataclass(frozen=True)
class Table:
    """The columns of a source: its name and theirs, how one is read, and where a row stands (for
    messages).
    """

    source: str
    header: list[str]
    read: Callable[[str, str], np.ndarray]
    place: Callable[[int], str]

    def column(self, name: str, role: str) -> np.ndarray:
        if name not in self.header:
            key = role.split("'")[1] if "'" in role else ""
            if key in self.header:
                raise ValueError(
                    f"{self.source} has no column {name!r}, but {key!r}. Write {{{name!r}:"
                    f" {key!r}}}, the part first."
                )
            raise missing_column(self.source, name, role, self.header)
        return self.read(name, role)


def csv_table(path: str | Path, delimiter: str, decimal: str) -> Table:
    """The columns of a text file."""
    cells = read_columns(path, delimiter=delimiter, decimal=decimal)
    name = cells.path.name
    return Table(
        name, cells.header, cells.numbers, lambda row: f"line {cells.lines[row]} of {name}"
    )


def mat_table(path: str | Path) -> Table:
    """The variables of a MAT-file up to version 7; fields of a struct are called ``struct.field``.

    **Raises:** `ValueError` for version 7.3, which is an HDF5 file.
    """
    from scipy.io import loadmat

    path = existing_file(path, ".mat")
    try:
        content = loadmat(path, struct_as_record=False, squeeze_me=True)
    except NotImplementedError:
        raise ValueError(
            f"{path.name} is a MAT-file of version 7.3. Save it in MATLAB with save('{path.name}',"
            " '-v7'), which this package reads."
        ) from None
    except (
        Exception
    ):  # scipy raises whatever the bytes provoke: MatReadError, TypeError, zlib.error, ...
        raise ValueError(
            f"{path.name} is not a MAT-file that can be read. Save it in MATLAB with"
            f" save('{path.name}', '-v7')."
        ) from None
    values = dict(_flat({k: v for k, v in content.items() if not k.startswith("__")}))
    if not values:
        raise ValueError(f"{path.name} holds no variables. Check how it was saved.")
    return Table(
        path.name,
        list(values),
        lambda name, _: np.atleast_1d(np.asarray(values[name])),
        _row_of(path.name),
    )


def parquet_table(path: str | Path) -> Table:
    """The columns of a Parquet file; needs pyarrow."""
    import pandas as pd

    path = existing_file(path, ".parquet")
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise ImportError(
            f"Reading {path.name} needs the package pyarrow. Install it: `pip install pyarrow`, or"
            " save a CSV."
        ) from None
    except Exception:  # pyarrow's own errors, which cannot be named where it may be missing
        raise ValueError(
            f"{path.name} is not a Parquet file that can be read. Write it with"
            " `DataFrame.to_parquet`."
        ) from None
    return pandas_table(frame, path.name)


def pandas_table(frame: Any, source: str) -> Table:
    """The columns of a `DataFrame`, and its index if that has a name."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise ValueError(
            f"`Record.from_pandas` needs a DataFrame, got a {type(frame).__name__}. Arrays go to"
            " `Record(t, ...)`."
        )
    columns = [str(name) for name in frame.columns]
    repeated = [name for name in columns if columns.count(name) > 1]
    if repeated:
        raise ValueError(f"{source} has two columns called {repeated[0]!r}. Rename one.")
    index = [
        str(name) for name in frame.index.names if name is not None and str(name) not in columns
    ]

    def read(name: str, role: str) -> np.ndarray:
        series = (
            frame.iloc[:, columns.index(name)]
            if name in columns
            else frame.index.to_frame().iloc[:, frame.index.names.index(name)]
        )
        if pd.api.types.is_datetime64_any_dtype(series.dtype):
            series = series - series.iloc[0]  # whatever the time zone
        if pd.api.types.is_timedelta64_dtype(series.dtype):
            return series.to_numpy()
        if pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_complex_dtype(
            series.dtype
        ):
            return series.to_numpy(dtype=float, na_value=np.nan)
        return series.to_numpy()

    return Table(source, columns + index, read, _row_of(source))


def assemble(table: Table, time: str | Column, inputs: Any, outputs: Any) -> dict[str, Any]:
    """The arguments of a record: times, channels in their declared units, these units, standard
    deviations, and words for messages.
    """
    clock = column_of("`time`", time)
    drives, measured = columns_of("inputs", inputs or {}), columns_of("outputs", outputs)
    _each_once(clock, drives, measured)
    if clock.sign != 1 or clock.sd is not None:
        raise ValueError(
            f"`Column` {clock.name!r} of the time takes neither `sign` nor `sd`. Leave them out."
        )
    for name, column in drives.items():
        if column.sd is not None:
            raise ValueError(
                f"`Column` {column.name!r} of input {name!r} takes no `sd`, got {column.sd!r}:"
                " inputs are taken as exact. Leave it out."
            )
    t, declared, labels, sd = _values(table, clock, "the time"), {}, {}, {}
    _declare(declared, "time", clock)
    values: dict[str, dict[str, np.ndarray]] = {"inputs": {}, "outputs": {}}
    for kind, columns in (("inputs", drives), ("outputs", measured)):
        for name, column in columns.items():
            values[kind][name] = _values(table, column, f"{kind[:-1]} {name!r}")
            labels[name] = f" (column {column.name!r} of {table.source})"
            _declare(declared, name, column)
    for name, column in measured.items():
        if isinstance(column.sd, str):
            sd[name] = abs(column.factor) * numbers(
                f"Column {column.sd!r} of {table.source}",
                table.column(column.sd, f"sd of {name!r}"),
            )
        elif column.sd is not None:
            sd[name] = abs(column.factor) * column.sd
    notes = tuple(
        note
        for column in (clock, *drives.values(), *measured.values())
        for note in _contradiction(column, table.source)
    )
    return {
        "t": t,
        **values,
        "sd": sd,
        "declared": declared,
        "place": table.place,
        "labels": labels,
        "notes": notes,
    }


def columns_of(what: str, given: Any) -> dict[str, Column]:
    """The columns named in a mapping; a text is short for a `Column` of that name."""
    example = 'inputs={"drive": "F"}' if what == "inputs" else 'outputs={"mass.s": "q"}'
    if not isinstance(given, Mapping):
        raise ValueError(
            f"`{what}` must map names to columns, got {brief(given)}. Write {example}."
        )
    return {name: column_of(f"`{what}[{name!r}]`", column) for name, column in given.items()}


def column_of(what: str, given: Any) -> Column:
    if isinstance(given, Column):
        return given
    if not isinstance(given, str):
        raise ValueError(
            f"{what} must be the name of a column or a `Column`, got {brief(given)}. Arrays go to"
            " `Record(t, ...)`."
        )
    return Column(given)


def _each_once(clock: Column, drives: Mapping[str, Column], measured: Mapping[str, Column]) -> None:
    """No column may stand for two things, but for one force that drives two parts."""
    used = {clock.name: "the time"}
    for kind, columns in (("output", measured), ("input", drives)):
        for name, column in columns.items():
            if column.name in used:
                raise ValueError(
                    f"Column {column.name!r} is named for {used[column.name]} and for {kind}"
                    f" {name!r}. Name the column of each."
                )
            if kind == "output":
                used[column.name] = f"output {name!r}"


def _values(table: Table, column: Column, role: str) -> np.ndarray:
    label, read = (
        f"Column {column.name!r} of {table.source} for {role}",
        table.column(column.name, role),
    )
    if role == "the time":
        no_unit_of_dates(label, read, column.unit or named_in(column.name))
    else:
        no_dates(label, read)
    return column.factor * numbers(label, read)


def _declare(declared: dict[str, str], name: str, column: Column) -> None:
    """The unit that the column has after its gain: as given, or as its name says in brackets."""
    unit = column.to or column.unit or named_in(column.name)
    if unit is not None:
        declared[name] = unit


def _in_brackets(name: str) -> str:
    """What stands in square brackets at the end of a column's name."""
    text = name.strip()
    return text[text.rindex("[") + 1 : -1].strip() if text.endswith("]") and "[" in text else ""


def _contradiction(column: Column, source: str) -> Iterator[str]:
    """A sentence where the column's name says another unit than the user does."""
    said, inside = named_in(column.name), _in_brackets(column.name)
    this, untold = f"Column {column.name!r} of {source}", column.unit is None and column.to is None
    if column.gain is not None and untold and said is not None:
        yield (
            f"{this} has a gain, and what it leads to is taken as"
            f" {said}, as its name says. Give the unit after the gain, to={said!r} if that is"
            " right."
        )
    if said is None and inside and untold:
        yield (
            f"{this} says {inside!r}, which is no unit known here, so"
            " that it counts as SI. Give `unit`, or a gain and `to`."
        )
    ending = column.name.rpartition("_")[2]
    if said is None and untold and ending in _ENDINGS:
        yield (
            f"{this} ends in {ending}, which is not read as a unit: it"
            f" counts as SI. Give unit={ending!r}."
        )
    if said is not None and column.unit is not None and said != spelled(column.unit):
        yield (
            f"{this} says {said} in its name, `unit` says"
            f" {column.unit}, which counts: correct it if the name is right."
        )


def _flat(content: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for name, value in content.items():
        fields = getattr(value, "_fieldnames", None)
        out += (
            _flat({f: getattr(value, f) for f in fields}, f"{prefix}{name}.")
            if fields
            else [(prefix + name, value)]
        )
    return out


def _row_of(source: str) -> Callable[[int], str]:
    return lambda row: f"row {row} (counted from 0) of {source}"


def _is_number(value) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
