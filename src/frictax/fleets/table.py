"""The table of a fleet: a row for each record."""

import importlib.util
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from frictax import __version__
from frictax.fitting.problem.problem import bounds
from frictax.fitting.result.fit_result import FitResult
from frictax.fitting.result.units import rms_units
from frictax.measurements import Record

FORMAT = 2  # of the table: rises by 1 with each column or attribute that is added
META = "frictax"  # in the attributes of a table: what its columns mean
FIRST = ("record", "machine", "date", "temperature")
LAST = ("samples", "seconds", "version")


def needs_pyarrow() -> None:
    """Raise `ImportError` in one sentence where the package that reads and writes Parquet is not
    there.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise ImportError(
            "Tables of fleets are read and written by the package pyarrow. Install it: `pip"
            " install 'frictax[fleet]'`."
        )


def row_of(record: Record, found: FitResult) -> dict[str, Any]:
    """What a fit to a record comes to."""
    row: dict[str, Any] = {"record": record.name, "converged": found.converged, "reason": ""}
    row["at_noise"] = found.at_noise
    for e in found.estimates:
        ended = found.converged  # an interval about a point that is no answer would mislead
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
    left = np.reshape(found.full_residuals, (-1, weight.shape[-1]))
    counted = np.reshape(weight, left.shape) > 0
    for c, (name, rms) in enumerate(found.rms[label].items()):
        row[f"rms.{name}"] = rms
        row[f"lag1.{name}"] = _lag1(left[counted[:, c], c])
    row["condition"] = float(found.identifiability.condition)
    row["notices"] = " ".join(dict.fromkeys(n.code for n in found.notices_at_hand))
    row["samples"] = record.n
    row[META] = {
        "names": list(found.names),
        "units": {e.name: e.unit for e in found.estimates},
        "declared": {e.name: list(e.declared) for e in found.estimates if e.declared},
        "level": found.level,
        "lower_bounds": _lower(found),
        "outputs": rms_units(found.records, found.start, label, found.rms[label]),
    }
    return row


def failed_row(name: str, reason: str, samples: int = 0) -> dict[str, Any]:
    """The row of a record that has no numbers, and why."""
    return {
        "record": name,
        "converged": False,
        "reason": reason,
        "at_noise": None,
        "notices": "",
        "samples": samples,
    }


def table_of(rows: Sequence[Mapping[str, Any]], about: Any) -> Any:
    """Rows, and what is known of their records, as a `DataFrame`."""
    import pandas as pd

    says = next((row[META] for row in rows if META in row), None)
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
    frame.attrs = {META: says} if says else {}
    return frame


def joined(
    frames: Sequence[Any], order: Sequence[str], title: str, problem: str, limits: Any = None
) -> Any:
    """The rows of all chunks in the order of the records, with the columns in theirs."""
    import pandas as pd

    says = {"names": [], "units": {}}
    for frame in reversed(frames):  # an older frame lacks what a newer one has
        says |= frame.attrs.get(META, {})
    # a chunk of failures has no column of numbers
    columns = list(dict.fromkeys(c for f in sorted(frames, key=_width) for c in f.columns))
    with_all = [f.reindex(columns=columns) for f in frames]
    for frame in with_all:
        frame.attrs = {}
    table = pd.concat(with_all, ignore_index=True)
    place = {name: i for i, name in enumerate(order)}
    places = np.asarray([place[name] for name in table["record"]])
    table = table.iloc[np.argsort(places, kind="stable")]
    inner = [c for c in columns if c not in FIRST and c not in LAST]
    own = [c for c in inner if c in _given(frames)]
    inner = [c for c in inner if c not in own]
    table = table[[*FIRST, *own, *inner, *LAST]].reset_index(drop=True)
    table.attrs = {META: {**says, "title": title, "problem": problem, "format": FORMAT}}
    if limits:
        table.attrs[META]["limits"] = {name: list(pair) for name, pair in limits.items()}
    return table


def _given(frames: Sequence[Any]) -> set[str]:
    """Columns that the user gave: those of every chunk that stand behind its version."""
    columns = list(frames[0].columns)
    return set(columns[columns.index("version") + 1 :])


def _width(frame: Any) -> int:
    return -len(frame.columns)


def _lag1(r: np.ndarray) -> float:
    """The correlation of residuals with those before them."""
    r = r - np.mean(r) if r.size else r
    total = float(r @ r)
    return float(r[1:] @ r[:-1]) / total if total > 0 else float("nan")


def _lower(found: FitResult) -> dict[str, float | None]:
    low = bounds(found.problem.unknowns)[found.shown]
    return {
        name: float(x) if np.isfinite(x) else None for name, x in zip(found.names, low, strict=True)
    }
