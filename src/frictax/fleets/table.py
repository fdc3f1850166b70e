"""The table of a fleet: the class `Fleet`, and functions that build rows and join chunks."""

import dataclasses
import functools
import importlib.util
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from frictax import __version__
from frictax.files.replacing import finish_interrupted
from frictax.files.unpacked import check_parquet
from frictax.fitting.problem.problem import bounds
from frictax.fitting.result.fit_result import FitResult
from frictax.fitting.result.units import rms_units
from frictax.measurements import Record
from frictax.text import brief

FORMAT = 2  # version of the table format; increase it when a column or an attribute is added
META = "frictax"  # key of the names, units, bounds and limits of parameters in `table.attrs`
FIRST_COLUMNS = ("record", "machine", "date", "temperature")
LAST_COLUMNS = ("samples", "seconds", "version")


def check_pyarrow() -> None:
    """Raise `ImportError` if pyarrow, the package for Parquet files, is not installed."""
    if importlib.util.find_spec("pyarrow") is None:
        raise ImportError(
            "Tables of fleets are read and written by the package pyarrow. Install it: `pip"
            " install 'frictax[fleet]'`."
        )


def read_dates(cells: Any) -> Any:
    """Return the dates in a column as times in UTC, NaT if empty. Text must be in ISO 8601 form,
    and a number must have the eight digits YYYYMMDD.
    """
    import pandas as pd

    def digits(cell: Any) -> Any:
        if not isinstance(cell, int | float | np.number) or np.isnan(cell):
            return cell.strip() if isinstance(cell, str) else cell
        return str(cell).removesuffix(".0") if 10**7 <= cell < 10**8 else "?"

    cells = pd.Series(cells).astype(object)
    dates = pd.to_datetime(cells.map(digits), format="ISO8601", errors="coerce", utc=True)
    empty = cells.isna() | cells.astype(str).str.strip().str.lower().isin(("", "nan", "nat"))
    if (wrong := cells[dates.isna() & ~empty]).size:
        raise ValueError(
            "The dates of records must be in ISO form, year before month before day, got"
            f" {brief(wrong.iloc[0])}. Write them as 2026-05-31, 2026-05-31 14:00 or 20260531."
        )
    # Parquet stores dates in microseconds.
    return dates.dt.tz_localize(None).astype("datetime64[us]")


@dataclasses.dataclass(frozen=True, eq=False)
class Fleet:
    """The fits of a fleet: a `table` with a row for each record, in the order of the records.

    The columns are in SI units:

    - `record`, `machine`, `date`, `temperature` [degC], and further columns of `about`;
    - ``NAME`` of each fitted parameter: the estimate; ``NAME.standard_error``, ``NAME.lower`` and
      ``NAME.upper``: its standard error and the ends of its interval, as in a single fit; NaN if
      unknown; ``correlation:A:B``: correlation of two estimates;
    - `converged`: true if the search converged; `at_noise`: true if the residuals of a free run are
      white noise, empty if unknown; `reason`: why a record does not have estimates, otherwise
      empty; `notices`: codes of the notices. A fleet omits the test for missing terms, which takes
      about 15 simulations. If residuals are large or not white, call `fit(...).missing()`;
    - ``rms.OUTPUT``: root mean square of the residuals; ``lag1.OUTPUT``: autocorrelation of
      residuals at a lag of one sample; `condition`: condition number of the fit; `samples`: number
      of samples; `seconds`: computing time; `version` of frictax.

    `names`: names of the fitted parameters; `units`: units of these parameters; `failed`: the rows
    without estimates.

    **Example:** at `fleet`.
    """

    table: Any

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.table.attrs[META]["names"])

    @property
    def units(self) -> Mapping[str, str]:
        return dict(self.table.attrs[META]["units"])

    @functools.cached_property
    def failed(self) -> Any:
        return self.table[self.table["reason"] != ""]

    @classmethod
    def read(cls, path: str | Path) -> "Fleet":
        """Read a fleet from the Parquet file `path` that `fleet` has written."""
        import pandas as pd

        path = Path(path)
        finish_interrupted(path.parent, reading=True)
        if not path.is_file():
            raise FileNotFoundError(f"There is no file {path} with the table of a fleet.")
        check_pyarrow()
        check_parquet(path)
        try:
            table = pd.read_parquet(path)
            table.attrs[META]["names"]
        except Exception:  # The package pyarrow raises many types of errors.
            raise ValueError(
                f"{path.name} is not the table of a fleet. Name the file that `fleet` has written."
            ) from None
        if (version := table.attrs[META].get("format", 1)) > FORMAT:
            raise ValueError(
                f"{path} is of format {version}, and frictax {__version__} knows up to {FORMAT}."
                " Read it by a newer frictax."
            )
        return cls(table)

    def __repr__(self) -> str:
        failed, unfinished = (
            len(self.failed),
            int(np.sum(~self.table["converged"])) - len(self.failed),
        )
        counts = f"{len(self.table)} records, {len(self.table) - failed - unfinished} fitted"
        counts += f", {unfinished} not converged" if unfinished else ""
        counts += f", {failed} without numbers" if failed else ""
        return f"Fleet({counts}: {', '.join(self.names)})"


def row_of(record: Record, found: FitResult) -> dict[str, Any]:
    """Return the row of a fit in the table, as a dict. The entry `META` describes the columns."""
    row: dict[str, Any] = {"record": record.name, "converged": found.converged, "reason": ""}
    row["at_noise"] = found.at_noise
    for e in found.estimates:
        # Omit standard errors and intervals of a fit that did not converge; they would mislead.
        ended = found.converged
        row[e.name] = e.value
        row[f"{e.name}.standard_error"] = e.standard_error if ended else np.nan
        row[f"{e.name}.lower"] = e.lower if ended else np.nan
        row[f"{e.name}.upper"] = e.upper if ended else np.nan
    correlation = found.correlation
    for (i, a), (j, b) in itertools.combinations(enumerate(found.names), 2):
        row[f"correlation:{a}:{b}"] = float(correlation[i, j])
    (label,) = found.rms
    (prepared,) = found.problem.prepared
    weight = np.asarray(prepared.weight)
    residuals = np.reshape(found.full_residuals, (-1, weight.shape[-1]))
    counted = np.reshape(weight, residuals.shape) > 0
    for c, (name, rms) in enumerate(found.rms[label].items()):
        r = residuals[counted[:, c], c]
        r = r - np.mean(r) if r.size else r
        total = float(r @ r)
        row[f"rms.{name}"] = rms
        row[f"lag1.{name}"] = float(r[1:] @ r[:-1]) / total if total > 0 else float("nan")
    row["condition"] = float(found.identifiability.condition)
    row["notices"] = " ".join(dict.fromkeys(n.code for n in found.notices_at_hand))
    row["samples"] = record.n
    low = bounds(found.problem.unknowns)[found.shown]
    pairs = zip(found.names, low, strict=True)
    row[META] = {
        "names": list(found.names),
        "units": {e.name: e.unit for e in found.estimates},
        "declared": {e.name: list(e.declared) for e in found.estimates if e.declared},
        "level": found.level,
        "lower_bounds": {name: float(x) if np.isfinite(x) else None for name, x in pairs},
        "outputs": rms_units(found.records, found.start, label, found.rms[label]),
    }
    return row


def failed_row(name: str, reason: str, samples: int = 0) -> dict[str, Any]:
    """Return the row of a record without estimates."""
    return {
        "record": name,
        "converged": False,
        "reason": reason,
        "at_noise": None,
        "notices": "",
        "samples": samples,
    }


def table_of_rows(rows: Sequence[Mapping[str, Any]], about: Any) -> Any:
    """Return a `DataFrame` of `rows`, to which the columns of `about` are added."""
    import pandas as pd

    description = next((row[META] for row in rows if META in row), None)
    plain = [{k: x for k, x in row.items() if k != META} for row in rows]
    frame = pd.DataFrame.from_records(plain)
    frame["at_noise"] = frame["at_noise"].astype("boolean")
    frame["version"] = __version__
    known = about.reset_index(drop=True)
    taken = [c for c in known.columns if c in frame.columns]
    if taken:
        raise ValueError(
            f"The table about the records has a column {taken[0]!r}, which the fleet's own table"
            " has, too. Rename it."
        )
    frame = pd.concat([frame, known], axis=1)
    frame.attrs = {META: description} if description else {}
    return frame


def join_chunks(
    frames: Sequence[Any], order: Sequence[str], title: str, problem: str, limits: Any = None
) -> Any:
    """Join the rows of all chunks to one table, in the order of the records."""
    import pandas as pd

    description = {"names": [], "units": {}}
    # If the descriptions of chunks differ, the description of the first chunk is used.
    for frame in reversed(frames):
        description |= frame.attrs.get(META, {})
    # A chunk without a successful fit lacks columns, so the widest chunk determines their order.
    by_width = sorted(frames, key=lambda frame: -len(frame.columns))
    columns = list(dict.fromkeys(c for f in by_width for c in f.columns))
    with_all = [f.reindex(columns=columns) for f in frames]
    for frame in with_all:
        frame.attrs = {}
    table = pd.concat(with_all, ignore_index=True)
    place = {name: i for i, name in enumerate(order)}
    places = np.asarray([place[name] for name in table["record"]])
    table = table.iloc[np.argsort(places, kind="stable")]
    inner = [c for c in columns if c not in FIRST_COLUMNS and c not in LAST_COLUMNS]
    # In each chunk, the columns of `about` follow after the column `version`.
    first = list(frames[0].columns)
    about = set(first[first.index("version") + 1 :])
    own = [c for c in inner if c in about]
    inner = [c for c in inner if c not in own]
    table = table[[*FIRST_COLUMNS, *own, *inner, *LAST_COLUMNS]].reset_index(drop=True)
    table.attrs = {META: {**description, "title": title, "problem": problem, "format": FORMAT}}
    if limits:
        table.attrs[META]["limits"] = {name: list(pair) for name, pair in limits.items()}
    return table
