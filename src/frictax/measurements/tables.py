"""Columns from CSV, Parquet, MAT and pandas, or one sentence on what is wrong with them."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from frictax.files.unpacked import check_mat, check_parquet

from .columns import existing_file, missing_column, read_columns


@dataclasses.dataclass(frozen=True)
class Table:
    """The columns of a source: its name and theirs, how one is read, and where a row stands (for
    messages).

    `read` takes a name, what the column is for, and whether a number that is missing is told as NaN
    instead of refused.
    """

    source: str
    header: list[str]
    read: Callable[[str, str, bool], np.ndarray]
    place: Callable[[int], str]

    def name(self, name: str | int) -> str:
        """The column's name; of a number, the name of the column that stands there."""
        if isinstance(name, str):
            return name
        if name > len(self.header):
            raise ValueError(
                f"{self.source} has no column {name}: it has {len(self.header)}, called"
                f" {', '.join(self.header[:8])}{', ...' if len(self.header) > 8 else ''}."
            )
        return self.header[name - 1]

    def column(self, name: str | int, role: str, gaps: bool = False) -> np.ndarray:
        name = self.name(name)
        if name not in self.header:
            key = role.split("'")[1] if "'" in role else ""
            if key in self.header:
                raise ValueError(
                    f"{self.source} has no column {name!r}, but {key!r}. Write {{{name!r}:"
                    f" {key!r}}}, the part first."
                )
            parts = [n for n in self.header if n.startswith((f"{name}(", f"{name}{{", f"{name}."))]
            if parts:
                raise ValueError(
                    f"{name!r} of {self.source} for {role} holds {len(parts)} columns, called"
                    f" {', '.join(parts[:4])}{', ...' if len(parts) > 4 else ''}. Choose one"
                    " column."
                )
            raise missing_column(self.source, name, role, self.header)
        return self.read(name, role, gaps)


_CHANNELS = 100  # of a matrix that is taken for a table


def csv_table(path: str | Path, delimiter: str, decimal: str, skip: int, header: bool) -> Table:
    """The columns of a text file."""
    cells = read_columns(path, delimiter=delimiter, decimal=decimal, skip=skip, header=header)
    name = cells.path.name
    return Table(
        name,
        cells.header,
        lambda column, role, gaps: cells.numbers(column, role, gaps=gaps),
        lambda row: f"line {cells.lines[row]} of {name}",
    )


def mat_table(path: str | Path) -> Table:
    """The variables of a MAT-file up to version 7, called as MATLAB does: the field
    ``struct.field``, the cell ``cells{2}``, the third column of a matrix ``M(:,3)``.

    **Raises:** `ValueError` for version 7.3, which is an HDF5 file.
    """
    from scipy.io import loadmat

    path = existing_file(path, ".mat")
    check_mat(path)
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
        lambda name, role, gaps: np.atleast_1d(np.asarray(values[name])),
        _row_of(path.name),
    )


def parquet_table(path: str | Path) -> Table:
    """The columns of a Parquet file; needs pyarrow."""
    import pandas as pd

    path = existing_file(path, ".parquet")
    check_parquet(path)
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

    def read(name: str, role: str, gaps: bool) -> np.ndarray:
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


def _flat(content: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every array of numbers or texts in structs, cells and matrices, under MATLAB's own name."""
    for name, value in content.items():
        fields = getattr(value, "_fieldnames", None)
        if fields:
            yield from _flat({f"{name}.{f}": getattr(value, f) for f in fields})
        elif isinstance(value, np.ndarray) and value.dtype == object:
            struct = all(hasattr(item, "_fieldnames") for item in value.flat)
            left, right = "()" if struct and value.size else "{}"
            yield from _flat(
                {
                    f"{name}{left}{','.join(str(i + 1) for i in at)}{right}": item
                    for at, item in np.ndenumerate(value)
                }
            )
        elif isinstance(value, np.ndarray) and value.ndim == 2 and min(value.shape) <= _CHANNELS:
            down = value.shape[0] >= value.shape[1]  # time runs along the longer side
            for i, column in enumerate(value.T if down else value, start=1):
                yield (f"{name}(:,{i})" if down else f"{name}({i},:)"), column
        else:
            yield name, value


def _row_of(source: str) -> Callable[[int], str]:
    return lambda row: f"row {row} (counted from 0) of {source}"
