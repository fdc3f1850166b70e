"""Read a fleet's table into arrays: estimates, standard errors, machines and dates of records."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from frictax.annotations import DataFrame
from frictax.text import suggestion

from ..table import Fleet, read_dates

PRINTED_ROWS = 8  # largest number of records or machines that a printed text lists
_ERROR = ".standard_error"  # suffix of the columns with standard errors


@dataclasses.dataclass(frozen=True, eq=False)
class FleetEstimates:
    """The estimates of p parameters in n records, in the order of the table.

    - `values`, `errors` (n, p): estimates and standard errors [SI], both NaN if a record does not
      identify a parameter; `freedom` (n, p): degrees of freedom of the estimates' intervals.
    - `correlation` (n, p, p): correlation matrix of the estimates of each record.
    - `record` (n,): names of the records; `machine` (n,): indices into `machines`; `row` (n,):
      indices of the rows in the table.
    - `dates` (n,) [s] and `temperature` (n,) [degC] of the records, with NaN for unknown values.
    - `lower`: the lower bound of each parameter, or None.
    - `left_out`: dict from reason to number of records without estimates for this reason.
    """

    names: tuple[str, ...]
    units: Mapping[str, str]
    lower: Mapping[str, float | None]
    values: np.ndarray
    errors: np.ndarray
    freedom: np.ndarray
    correlation: np.ndarray
    record: np.ndarray
    machine: np.ndarray
    machines: tuple[str, ...]
    row: np.ndarray
    dates: np.ndarray
    temperature: np.ndarray
    left_out: Mapping[str, int]
    level: float

    @property
    def n(self) -> int:
        return len(self.row)


def estimate_names(table: DataFrame, names: Iterable[str] | str | None) -> tuple[str, ...]:
    """Return the names of the fitted parameters in a table, or `names` if all of them are in it."""
    known = [c.removesuffix(_ERROR) for c in map(str, table.columns) if c.endswith(_ERROR)]
    about = _about(table).get("names") or known
    known = [name for name in about if name in known and name in table.columns]
    if not known:
        raise ValueError(
            "The table has no fitted numbers: a number NAME has the columns 'NAME' and"
            f" 'NAME{_ERROR}', as `fx.fleet` writes them."
        )
    asked = known if names is None else [names] if isinstance(names, str) else list(names)
    for name in asked:
        if name not in known:
            raise KeyError(f"The table has no number {name!r}.{suggestion(name, known)}")
    if not asked:
        raise ValueError(f"`names` is empty: name one of {', '.join(known)}.")
    return tuple(dict.fromkeys(asked))


def read_estimates(table: DataFrame, names: Iterable[str] | str | None = None) -> FleetEstimates:
    """Return the estimates of the parameters `names` (None for all) from the table of a fleet."""
    from scipy.special import stdtrit

    asked, about = estimate_names(table, names), _about(table)
    values, errors = (_columns(table, asked, end) for end in ("", _ERROR))
    known = np.isfinite(values) & np.isfinite(errors) & (errors > 0)
    why = exclusion_reasons(table, known)
    row = np.flatnonzero(why == "")
    if not row.size:
        reasons = "; ".join(f"{k}: {n}" for k, n in _count_reasons(why).items())
        raise ValueError(f"No record of the table has numbers with errors ({reasons}).")
    level = float(about.get("level", 0.95))
    values, errors = (np.where(known, x, np.nan)[row] for x in (values, errors))
    # Find the degrees of freedom for which Student's t gives the width of an interval in the table.
    # Use the longer half of the interval, because the shorter half may end at a bound.
    low, high = (_columns(table, asked, end)[row] for end in (".lower", ".upper"))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.fmax(high - values, values - low) / errors
    dofs = np.geomspace(1.0, 1e6, 400)
    widths = stdtrit(dofs, 0.5 + level / 2)  # [standard errors] half widths, decreasing over dofs
    freedom = np.interp(-ratio, -widths, dofs)
    freedom = np.where(np.isfinite(ratio) & (ratio > widths[-1]), freedom, np.inf)
    record = record_names(table)[row]
    machine, machines = np.arange(row.size), tuple(record)
    if "machine" in table.columns:
        named = table["machine"].fillna("").astype(str).to_numpy(dtype=object)[row]
        # A record without a machine counts as a machine with the record's name. A real machine may
        # have the same name, so the key also marks the names that are names of records.
        keys = [(m == "", r if m == "" else m) for r, m in zip(record, named, strict=True)]
        index: dict[tuple[bool, str], int] = {}
        machine = np.array([index.setdefault(key, len(index)) for key in keys])
        machines = tuple(name for _, name in index)
    seconds = np.full(len(table), np.nan)
    if "date" in table.columns:
        dates = read_dates(table["date"]).to_numpy()
        seconds = np.where(np.isnat(dates), np.nan, dates.astype("int64") / 1e6)
    bounds: Mapping[str, Any] = about.get("lower_bounds") or {}
    lower = {name: np.nan if bounds.get(name) is None else float(bounds[name]) for name in asked}
    return FleetEstimates(
        names=asked,
        units={name: str((about.get("units") or {}).get(name, "")) for name in asked},
        lower={name: x if np.isfinite(x) else None for name, x in lower.items()},
        values=values,
        errors=errors,
        freedom=freedom,
        correlation=_correlation(table, asked, row),
        record=record,
        machine=machine,
        machines=machines,
        row=row,
        dates=seconds[row],
        temperature=_column(table, "temperature")[row],
        left_out=_count_reasons(why),
        level=level,
    )


def record_names(table: DataFrame) -> np.ndarray:
    """Return the record name of each row, or the row number without a column `record`."""
    if "record" in table.columns:
        return table["record"].astype(str).to_numpy(dtype=object)
    return np.array([str(i) for i in range(len(table))], dtype=object)


def exclusion_reasons(table: DataFrame, known: np.ndarray) -> np.ndarray:
    """Return the reason why each row of the table is excluded, or "" if it is used. `known` (n, p):
    mask of the estimates that have a standard error.
    """
    why = np.full(len(table), "", dtype=object)
    why[~known.any(axis=1)] = "no estimate has a standard error"
    if "converged" in table.columns:
        ended = table["converged"].astype("boolean").fillna(False).to_numpy(dtype=bool)
        why[~ended] = "the search did not converge"
    if "reason" in table.columns:
        reasons = table["reason"].fillna("").astype(str).to_numpy(dtype=object)
        why = np.where(reasons != "", reasons, why)
    return why


def _count_reasons(why: np.ndarray) -> dict[str, int]:
    reasons, counts = np.unique(why[why != ""].astype(str), return_counts=True)
    return {str(reasons[i]): int(counts[i]) for i in np.argsort(-counts, kind="stable")}


def _about(table: DataFrame) -> Mapping[str, Any]:
    about = getattr(table, "attrs", {}).get("frictax")
    return about if isinstance(about, Mapping) else {}


def _column(table: DataFrame, name: str) -> np.ndarray:
    if name not in table.columns:
        return np.full(len(table), np.nan)
    return table[name].to_numpy(dtype=float, na_value=np.nan)


def _columns(table: DataFrame, names: Iterable[str], end: str) -> np.ndarray:
    return np.stack([_column(table, f"{name}{end}") for name in names], axis=1)


def _correlation(table: DataFrame, names: tuple[str, ...], row: np.ndarray) -> np.ndarray:
    """Return positive definite correlation matrices (n, p, p), with 0 for missing correlations."""
    p = len(names)
    out = np.broadcast_to(np.eye(p), (row.size, p, p)).copy()
    for i in range(p):
        for j in range(i):
            for first, second in ((names[i], names[j]), (names[j], names[i])):
                name = f"correlation:{first}:{second}"
                if name in table.columns:
                    out[:, i, j] = out[:, j, i] = np.nan_to_num(_column(table, name)[row])
    if p > 1:
        values, vectors = np.linalg.eigh(out)
        bad = values[:, 0] < 1e-9
        if bad.any():
            kept = np.maximum(values[bad], 1e-9)
            repaired = np.einsum("nij,nj,nkj->nik", vectors[bad], kept, vectors[bad])
            size = np.sqrt(np.einsum("nii->ni", repaired))
            out[bad] = repaired / size[:, :, None] / size[:, None, :]
    return out


def check_probability(what: str, value: Any, remedy: str) -> None:
    """Raise `ValueError` if the value is not a number between 0 and 1."""
    if not (isinstance(value, int | float | np.floating) and 0 < value < 1):
        raise ValueError(f"`{what}` must lie between 0 and 1, got {value!r}. {remedy}")


def table_of_fleet(fleet: DataFrame | Fleet) -> DataFrame:
    """Return the table of a `Fleet`, or the argument itself if it already is a table."""
    return fleet.table if isinstance(fleet, Fleet) else fleet


def table_rows(frame: Any, most: int | None = None) -> Iterator[Any]:
    """Return an iterator over the rows of `frame`, at most `most`, as named tuples."""
    return (frame if most is None else frame.head(most)).itertuples()


def flagged_rows(frame: Any, column: str) -> Any:
    """Return the rows of `frame` in which `column` is True, sorted by rising p value."""
    return frame[frame[column]].sort_values("chance", kind="stable")


def parameter_rows(frame: Any, name: str) -> Any:
    """Return the rows of `frame` that belong to the parameter `name`."""
    return frame[frame["number"] == name]
