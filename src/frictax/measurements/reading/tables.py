"""Read columns from text files, Parquet, MAT and pandas, or raise an error with a remedy."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from frictax.files.unpacked import check_mat, check_parquet

from ..checks import row
from .cells import Cells, first_date, is_date, is_missing, read_cells
from .columns import existing_file, missing_column, read_columns, twice


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """A source of columns: text file, workbook, JSON log, MAT-file, Parquet or `DataFrame`.

    - `read(j)` returns column j (from 0) as numbers, dates or texts; `texts(j)` returns its cells
      as texts (None for a source without texts); `row(i)` names row i, such as "line 7".
    - `decimal`: decimal sign of texts; `drop`: True if cells that are not numbers count as missing.
    - `notes`: doubts about the source; `chosen`: indices of the rows to read, None for all rows;
      `broken`: number of lines that were left out, because they have a wrong number of cells.
      `whole`: number of rows from which these were chosen.
    - `samples`: number of each row if broken lines count as samples; None if there are none.
    - `firsts`: column of dates -> start of counting ("1970" or "midnight") and first time [s].
    """

    source: str
    header: list[str]
    read: Callable[[int], np.ndarray]
    row: Callable[[int], str]
    texts: Callable[[int], np.ndarray] | None = None
    decimal: str = "."
    drop: bool = False
    notes: tuple[str, ...] = ()
    chosen: np.ndarray | None = None
    whole: int | None = None
    broken: int = 0
    samples: np.ndarray | None = None
    firsts: dict[int, tuple[str, Fraction]] = dataclasses.field(default_factory=dict)
    _known: dict[int, Cells] = dataclasses.field(default_factory=dict)

    def place(self, i: int) -> str:
        """Return the place of row i of the chosen rows, with the source: "line 7 of run.csv"."""
        return f"{self.row_of(i)} of {self.source}"

    def row_of(self, i: int) -> str:
        """Return the place of row i of the chosen rows: "line 7"."""
        return self.row(int(i if self.chosen is None else self.chosen[i]))

    def name(self, name: str | int) -> str:
        """Return the name of a column that is specified by its name or number."""
        if isinstance(name, str):
            return name
        if name > len(self.header):
            raise ValueError(
                f"{self.source} has no column {name}: it has {len(self.header)}, called"
                f" {', '.join(self.header[:8])}{', ...' if len(self.header) > 8 else ''}."
            )
        return self.header[name - 1]

    def position(self, name: str | int, role: str) -> int:
        """Return the index of a column, from 0.

        **Raises:** `ValueError` that names the most similar column and all columns.
        """
        if isinstance(name, int):
            self.name(name)
            return name - 1
        if self.header.count(name) > 1:
            at = [str(i + 1) for i, known in enumerate(self.header) if known == name]
            raise ValueError(
                f"{self.source} has two columns called {name!r}. Rename one, or name the column for"
                f" {role} by its number, {' or '.join(at)}."
            )
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
        return self.header.index(name)

    def column(
        self, name: str | int, role: str, gaps: bool = False, empty: float | None = None
    ) -> np.ndarray:
        """Return a column: numbers, dates, or the objects of a `DataFrame` or a MAT-file.

        `role`: what the column is for, in error messages; `gaps`: True if a missing number in a
        text file becomes NaN instead of an error; `empty`: value for empty cells (None: missing).
        """
        j = self.position(name, role)
        values = self.read(j)
        if values.dtype.kind in "OUST":
            values = self._meaning(j, values, name, gaps, empty)
        elif self.texts is not None:
            self._check(j, values, name, gaps, empty)
            if empty is not None:
                values = np.where(np.isnan(values), empty, values)
        if self.chosen is None or values.ndim != 1:
            return values
        if self.whole not in (None, values.size):
            raise ValueError(
                f"Column {name!r} of {self.source} for {role} must have as many rows as the column"
                f" by which rows are chosen ({self.whole}), got {values.size}. Leave out `where`"
                " and `part`, and use `Record.trim`."
            )
        return values[self.chosen]

    def cells(self, j: int) -> Cells | None:
        """Return the interpretation of column j if its cells are texts; otherwise None."""
        values = self.read(j)
        if values.dtype.kind not in "OUST":
            return None
        if j not in self._known:
            lacks = np.array([x is None or x != x for x in values], dtype=bool)
            self._known[j] = read_cells(
                ["" if no else str(x) for x, no in zip(values, lacks, strict=True)], self.decimal
            )
        return self._known[j]

    def unit(self, name: str | int) -> str | None:
        """Return the unit behind the numbers in the cells of a column; None without such a unit."""
        if name in self.header or isinstance(name, int):
            known = self._known.get(name - 1 if isinstance(name, int) else self.header.index(name))
            return None if known is None else known.unit
        return None

    def since(self, name: str | int) -> tuple[str, Fraction] | None:
        """Return the start of counting and the first time [s] of a column of dates that was read;
        None for numbers.
        """
        j = self.position(name, "the time")
        return self._known[j].since if j in self._known else self.firsts.get(j)

    def doubts(self) -> tuple[str, ...]:
        """Return the notes on the source and on all of its columns that were read."""
        more = (
            f"Column {self.header[j]!r} of {self.source} {cells.note}."
            for j, cells in self._known.items()
            if cells.note
        )
        return (*self.notes, *more)

    def where(self, conditions: Mapping[str, Any]) -> "Table":
        """Return the table of rows in which each column of `conditions` has the wanted value."""
        keep = True
        for name, wanted in conditions.items():
            cells = self.read(self.position(name, "where"))
            cells = cells if self.chosen is None else cells[self.chosen]
            if np.size(keep) not in (1, cells.size):
                raise ValueError(
                    f"Columns of `where` must have equal numbers of rows, got {cells.size} in"
                    f" {name!r} and {np.size(keep)} in others of {self.source}. Give fewer."
                )
            seen, at = np.unique(cells.astype(str), return_inverse=True)
            hits = []
            for cell in map(str.strip, seen):
                try:
                    hits.append(float(cell) == float(str(wanted * 1)))
                except ValueError:
                    is_same = isinstance(wanted, bool) and cell.lower() == str(wanted).lower()
                    hits.append(is_same or cell == str(wanted).strip())
            hit = np.array(hits, dtype=bool)[at]
            if not hit.any():
                plain = [cell.strip().removesuffix(".0") for cell in seen[:8]]
                raise ValueError(
                    f"{self.source} has no row where {name} = {wanted}. Column {name!r} holds:"
                    f" {', '.join(plain)}{', ...' if len(seen) > 8 else ''}."
                )
            keep = keep & hit
        if not np.any(keep):
            asked = " and ".join(f"{name} = {value}" for name, value in conditions.items())
            raise ValueError(
                f"{self.source} has no row where {asked}, though each holds alone. Ask for fewer at"
                " once."
            )
        return self if keep is True else self.rows(np.flatnonzero(keep), np.size(keep))

    def rows(self, chosen: np.ndarray, whole: int | None = None) -> "Table":
        """Return the table of the rows with indices `chosen` (among the rows chosen before).
        `whole`: number of rows before, which other columns must have; None if it is not known.
        """
        if self.chosen is not None:
            chosen, whole = self.chosen[chosen], self.whole
        return dataclasses.replace(self, chosen=chosen, whole=whole)

    def row_numbers(self, n: int) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return the number of each of the n chosen rows, for times by `rate`, and notes. Broken
        lines and rows that are not chosen count if the other rows have equal distances.
        """
        at = np.arange(n) if self.chosen is None else self.chosen
        at = at if self.samples is None else self.samples[at]
        step = np.diff(at)
        if np.all(step == (usual := np.median(step) if n > 1 else 1)):
            return np.arange(n), ()
        if np.any(step % usual):
            return np.arange(n), (
                f"The chosen rows of {self.source} have unequal distances, but `rate` takes them as"
                " samples at equal distances. Name the column of their `time` if this is wrong.",
            )
        hole = np.flatnonzero(step > usual)
        return (at - at[0]) / usual, (
            f"Rows of {self.source} are left out in {hole.size} places, the first before"
            f" {self.place(int(hole[0]) + 1)}. By `rate` they last as long as others, so the record"
            " has gaps there.",
        )

    def flags(self, name: str | int, role: str) -> np.ndarray:
        """Return a column of 1/0, true/false or yes/no as booleans. Empty cells are False."""
        words = dict.fromkeys(("1", "true", "yes"), True)
        words |= dict.fromkeys(("0", "false", "no", "", "nan"), False)
        cells = self.read(self.position(name, role))
        cells = cells if self.chosen is None else cells[self.chosen]
        out = []
        for i, given in enumerate(cells):
            cell = str(given).strip().lower().removesuffix(".0")
            if cell not in words:
                raise ValueError(
                    f"{self.source}, {self.row_of(i)}: column {name!r} must hold 1 or 0, true or"
                    f" false, got {str(given)!r}."
                )
            out.append(words[cell])
        return np.array(out, dtype=bool)

    def _meaning(
        self, j: int, values: np.ndarray, name: str | int, gaps: bool, empty: float | None
    ) -> np.ndarray:
        """Return column j, whose cells are texts, as numbers or dates if this is possible."""
        cells = self.cells(j)
        assert cells is not None
        if self.texts is None:
            spoilt = cells.kind == "words" or (cells.wrong.any() and not self.drop)
            return values if spoilt else cells.values
        wrong = None if self.drop and cells.few_wrong else cells.wrong
        if cells.kind != "dates":
            self._check(j, cells.values, name, gaps, empty, wrong)
            return cells.values if empty is None else np.nan_to_num(cells.values, nan=empty)
        missing = np.isnat(cells.values)
        self._check(j, np.where(missing, np.nan, 0.0), name, gaps, None, wrong)
        return cells.values

    def _check(
        self, j: int, values: np.ndarray, name: str | int, gaps: bool, empty: float | None,
        wrong: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Raise an error for a cell in the chosen rows that must be a number but is not."""
        bad = np.zeros(values.size, bool) if values.dtype.kind != "f" else ~np.isfinite(values)
        if gaps or empty is not None:
            bad = np.isinf(values) if wrong is None else wrong | np.isinf(values)
        shown = np.flatnonzero(bad if self.chosen is None else bad[self.chosen])
        if not shown.size:
            return
        assert self.texts is not None
        texts = self.texts(j)
        texts = texts if self.chosen is None else texts[self.chosen]
        raise self._wrong_cell(int(shown[0]), texts, name, len(shown), gaps)

    def _wrong_cell(
        self, i: int, texts: np.ndarray, name: str | int, many: int, gaps: bool
    ) -> ValueError:
        """Return the error for cell i, the first of `many` cells that are not numbers."""
        cell, text = texts[i], texts[i].strip()
        what, more = f"{self.source}, {self.row_of(i)}: column {name!r}", ""
        if many > 1:
            more = f", and {many - 1} more rows have no number" if is_missing(text) else ""
        if is_missing(text):
            return ValueError(f"{what} has no number ({cell!r}){more}. Delete the row or fill it.")
        try:
            endless = not np.isfinite(float(text))
        except ValueError:
            endless = False
        if endless:
            return ValueError(f"{what} must be finite, got {cell!r}. Delete the row.")
        if self.decimal != "." and "." in text and "," not in text:
            return ValueError(
                f"{what} has a point in {cell!r}, but the decimal sign is {self.decimal!r}. Write"
                " numbers without a sign between thousands, or correct `decimal`."
            )
        numbers = texts.size - many
        hint = f" {many - 1} more rows have no number." if 1 < many < numbers else ""
        if "," in text and self.decimal == "." and not text.strip("0123456789.,+-eE"):
            hint = ' Write decimal="," for decimal commas.'
        elif is_date(text):
            hint = " It looks like a date or a time that is not known here. Write seconds."
        elif many == texts.size:
            hint = " No cell of this column is a number. Name another column."
        elif i == 0 and many == 1:
            hint = (
                " If this line holds units, begin it with # and declare them where you name the"
                " column."
            )
        return ValueError(f"{what} must hold a number, got {cell!r}.{hint or ' Correct the cell.'}")


def csv_table(
    path: str | Path, delimiter: str, decimal: str, skip: int, header: bool, drop: bool = False
) -> Table:
    """Read the columns of a text file, a workbook or a JSON log."""
    columns = read_columns(
        path, delimiter=delimiter, decimal=decimal, skip=skip, header=header, drop=drop
    )
    name, notes = columns.path.name, ()
    if columns.broken:
        first = columns.first + next(iter(columns.broken))
        notes = (
            f"{len(columns.broken)} lines of {name} have a different number of cells, the first"
            f" {columns.rows_are} {first}: they are left out.",
        )
    lines = np.array([*columns.broken], dtype=int)
    lines -= np.searchsorted(np.setdiff1d(columns.skipped, lines), lines)
    samples = np.delete(np.arange(columns.n + lines.size), lines) if lines.size else None

    def read(j: int) -> np.ndarray:
        numbers = columns.numbers(j)
        return columns.texts(j) if numbers is None else numbers

    return Table(
        name, columns.header, read, columns.place, columns.texts, columns.decimal, drop, notes,
        broken=len(columns.broken), samples=samples,
    )  # fmt: skip


def mat_table(path: str | Path) -> Table:
    """Read the variables of a MAT-file up to version 7, with MATLAB's names: the field
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
    except Exception:
        # scipy raises many types of errors, such as MatReadError, TypeError and zlib.error.
        raise ValueError(
            f"{path.name} is not a MAT-file that can be read. Save it in MATLAB with"
            f" save('{path.name}', '-v7')."
        ) from None
    values = dict(_flat({k: v for k, v in content.items() if not k.startswith("__")}))
    if not values:
        raise ValueError(f"{path.name} holds no variables. Check how it was saved.")
    columns = list(values.values())
    return Table(path.name, list(values), lambda j: np.atleast_1d(np.asarray(columns[j])), row)


def parquet_table(path: str | Path) -> Table:
    """Read the columns of a Parquet file by pyarrow."""
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
    except Exception:  # pyarrow may not be installed, so its error classes cannot be named here.
        raise ValueError(
            f"{path.name} is not a Parquet file that can be read. Write it with"
            " `DataFrame.to_parquet`."
        ) from None
    return pandas_table(frame, path.name)


def pandas_table(frame: Any, source: str) -> Table:
    """Return the columns of a `DataFrame`, and its index if the index has a name."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise ValueError(
            f"`Record.from_pandas` needs a DataFrame, got a {type(frame).__name__}. Arrays go to"
            " `Record(t, ...)`."
        )
    columns = [str(name) for name in frame.columns]
    if repeated := twice(columns):
        raise ValueError(f"{source} has two columns called {repeated[0]!r}. Rename one.")
    index = [
        str(name) for name in frame.index.names if name is not None and str(name) not in columns
    ]

    firsts = dict[int, tuple[str, Fraction]]()

    def read(j: int) -> np.ndarray:
        series = (
            frame.iloc[:, j]
            if j < len(columns)
            else frame.index.to_frame().iloc[:, frame.index.names.index(index[j - len(columns)])]
        )
        if pd.api.types.is_datetime64_any_dtype(series.dtype) and series.notna().any():
            # Subtract the first date. Differences of dates do not depend on the time zone.
            first = series.dropna().iloc[0]
            firsts[j], series = first_date(first.to_datetime64()), series - first
        if pd.api.types.is_timedelta64_dtype(series.dtype):
            return series.to_numpy()
        if pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_complex_dtype(
            series.dtype
        ):
            kind = getattr(series.dtype, "numpy_dtype", series.dtype)  # also of nullable types
            form = kind.kind if isinstance(kind, np.dtype) else ""
            # Keep the type: float64 has too few digits for nanoseconds since 1970.
            keep = form == "f" or (form in ("i", "u") and series.notna().all())
            return series.to_numpy(dtype=kind if keep else float, na_value=np.nan)
        return series.to_numpy()

    return Table(source, columns + index, read, row, firsts=firsts)


def _flat(content: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of numbers or texts in structs, cells and matrices, with MATLAB's names."""
    for name, value in content.items():
        fields = getattr(value, "_fieldnames", None)
        if fields:
            yield from _flat({f"{name}.{f}": getattr(value, f) for f in fields})
        elif isinstance(value, np.ndarray) and value.dtype == object:
            struct = all(hasattr(item, "_fieldnames") for item in value.flat)
            left, right = "()" if struct and value.size else "{}"
            for at, item in np.ndenumerate(value):
                yield from _flat({f"{name}{left}{','.join(str(i + 1) for i in at)}{right}": item})
        # A matrix with at most 100 channels is read as a table, with time along its longer side.
        elif isinstance(value, np.ndarray) and value.ndim == 2 and min(value.shape) <= 100:
            down = value.shape[0] >= value.shape[1]
            for i, column in enumerate(value.T if down else value, start=1):
                yield (f"{name}(:,{i})" if down else f"{name}({i},:)"), column
        else:
            yield name, value
