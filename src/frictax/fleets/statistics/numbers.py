"""What a fleet's table says of its numbers: estimates, their errors, machines, dates, and which
records have none.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from frictax.annotations import DataFrame
from frictax.text import suggestion

_ERROR, _NOT_CONVERGED = ".standard_error", "the search did not end"
_NO_ERRORS = "none of the numbers has an error"


@dataclasses.dataclass(frozen=True, eq=False)
class Numbers:
    """n records that have numbers, and how many have none.

    - `values`, `errors` (n, p): estimates and standard errors [SI], both NaN where a record does
      not tell a number; `freedom` (n, p): degrees of freedom that the intervals have.
    - `correlation` (n, p, p) of the estimates of each record.
    - `record` (n,): names; `machine` (n,): index into `machines`; `row` (n,): rows of the table.
    - `dates` (n,) [s], `temperature` (n,) [degC]: NaN where there is none.
    - `lower`: the bound of each number, None where there is none.
    - `left_out`: why records have no numbers, and how many.
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

    def sorted_by_machine(self) -> np.ndarray:
        """The order in which records of one machine stand together."""
        return np.argsort(self.machine, kind="stable")


def names_of(table: DataFrame, names: Iterable[str] | str | None) -> tuple[str, ...]:
    """The fitted numbers of a table, or those of them that were asked for.

    **Raises:** `KeyError` for a number that the table lacks, `ValueError` where it has none.
    """
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


def read(table: DataFrame, names: Iterable[str] | str | None = None) -> Numbers:
    """The numbers of a table (one row a record), those asked for or all of them.

    **Raises:** `KeyError` for a number that the table lacks; `ValueError` where it has none, or
    where no record has.
    """
    asked, about = names_of(table, names), _about(table)
    values, errors = (_columns(table, asked, end) for end in ("", _ERROR))
    told = np.isfinite(values) & np.isfinite(errors) & (errors > 0)
    why = left_out(table, told)
    row = np.flatnonzero(why == "")
    if not row.size:
        reasons = "; ".join(f"{k}: {n}" for k, n in _counted(why).items())
        raise ValueError(f"No record of the table has numbers with errors ({reasons}).")
    level = float(about.get("level", 0.95))
    values, errors = (np.where(told, x, np.nan)[row] for x in (values, errors))
    machine, machines = _machines(table, row)
    return Numbers(
        names=asked,
        units={name: str((about.get("units") or {}).get(name, "")) for name in asked},
        lower={name: _bound((about.get("lower_bounds") or {}).get(name)) for name in asked},
        values=values,
        errors=errors,
        freedom=_freedom(table, asked, row, values, errors, level),
        correlation=_correlation(table, asked, row),
        record=record_names(table)[row],
        machine=machine,
        machines=machines,
        row=row,
        dates=_dates(table)[row],
        temperature=_column(table, "temperature")[row],
        left_out=_counted(why),
        level=level,
    )


def record_names(table: DataFrame) -> np.ndarray:
    """The record of each row, its number where the table does not name it."""
    if "record" in table.columns:
        return table["record"].astype(str).to_numpy(dtype=object)
    return np.array([str(i) for i in range(len(table))], dtype=object)


def left_out(table: DataFrame, told: np.ndarray) -> np.ndarray:
    """Of each row why its numbers do not count, "" where they do; `told` (n, p): which of them have
    an error.
    """
    why = np.full(len(table), "", dtype=object)
    why[~told.any(axis=1)] = _NO_ERRORS
    if "converged" in table.columns:
        ended = table["converged"].astype("boolean").fillna(False).to_numpy(dtype=bool)
        why[~ended] = _NOT_CONVERGED
    if "reason" in table.columns:
        reasons = table["reason"].fillna("").astype(str).to_numpy(dtype=object)
        why = np.where(reasons != "", reasons, why)
    return why


def _counted(why: np.ndarray) -> dict[str, int]:
    reasons, counts = np.unique(why[why != ""].astype(str), return_counts=True)
    return {str(reasons[i]): int(counts[i]) for i in np.argsort(-counts, kind="stable")}


def _about(table: DataFrame) -> Mapping[str, Any]:
    about = getattr(table, "attrs", {}).get("frictax")
    return about if isinstance(about, Mapping) else {}


def _bound(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _column(table: DataFrame, name: str) -> np.ndarray:
    if name not in table.columns:
        return np.full(len(table), np.nan)
    return table[name].to_numpy(dtype=float, na_value=np.nan)


def _columns(table: DataFrame, names: Iterable[str], end: str) -> np.ndarray:
    return np.stack([_column(table, f"{name}{end}") for name in names], axis=1)


def _dates(table: DataFrame) -> np.ndarray:
    """Seconds since 1970, NaN where there is no date."""
    if "date" not in table.columns:
        return np.full(len(table), np.nan)
    import pandas as pd

    dates = pd.to_datetime(table["date"], utc=True).dt.tz_localize(None)
    seconds = dates.to_numpy(dtype="datetime64[ns]").astype("int64") / 1e9
    return np.where(dates.isna().to_numpy(), np.nan, seconds)


def _machines(table: DataFrame, row: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """The machine of each record; one without a name is a machine of its own."""
    record = record_names(table)[row]
    if "machine" not in table.columns:
        return np.arange(row.size), tuple(record)
    named = table["machine"].fillna("").astype(str).to_numpy(dtype=object)[row]
    alone = named == ""
    # no machine has the name of a record by accident: the pair says which of both it is
    keys = [(bool(a), r if a else m) for a, r, m in zip(alone, record, named, strict=True)]
    seen: dict[tuple[bool, str], int] = {}
    codes = np.array([seen.setdefault(key, len(seen)) for key in keys])
    return codes, tuple(name for _, name in seen)


def _freedom(
    table: DataFrame,
    names: tuple[str, ...],
    row: np.ndarray,
    values: np.ndarray,
    errors: np.ndarray,
    level: float,
) -> np.ndarray:
    """The degrees of freedom by which intervals are as wide as they are: Student's t.

    Where an interval is cut at a bound, its other half tells.
    """
    from scipy.special import stdtrit

    lower, upper = (_columns(table, names, end)[row] for end in (".lower", ".upper"))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.fmax(upper - values, values - lower) / errors
    dofs = np.geomspace(1.0, 1e6, 400)
    widths = stdtrit(dofs, 0.5 + level / 2)  # falls with the degrees of freedom
    found = np.interp(-ratio, -widths, dofs)
    return np.where(np.isfinite(ratio) & (ratio > widths[-1]), found, np.inf)


def _correlation(table: DataFrame, names: tuple[str, ...], row: np.ndarray) -> np.ndarray:
    """(n, p, p); 0 where the table has none, and nothing beyond what a correlation can be."""
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
            mended = np.einsum("nij,nj,nkj->nik", vectors[bad], kept, vectors[bad])
            size = np.sqrt(np.einsum("nii->ni", mended))
            out[bad] = mended / size[:, :, None] / size[:, None, :]
    return out
