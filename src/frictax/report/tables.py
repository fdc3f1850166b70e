"""Runs, records and sweeps as tables of other packages, and the files that a page offers."""

import base64
import csv
import dataclasses
import gzip
import io
import re
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from frictax.analysis.replay.free_run import Motion
from frictax.annotations import DataFrame
from frictax.fitting import FitResult
from frictax.measurements import Record, Sweep
from frictax.measurements.units import quantity
from frictax.mechanism.layout import turns_about
from frictax.mechanism.variable_table import VARIABLES
from frictax.trajectory import Trajectory


@dataclasses.dataclass(frozen=True)
class Column:
    """Values with their unit and meaning; `more`: further attributes."""

    values: np.ndarray
    unit: str
    long_name: str
    more: dict[str, Any] = dataclasses.field(default_factory=dict)


def to_pandas(thing: Trajectory | Record | Sweep) -> DataFrame:
    """Return a `pandas.DataFrame` in SI units, over time or over the rows of a sweep.

    ``frame.attrs["units"]`` and ``frame.attrs["long_names"]`` hold the unit and the meaning of each
    column and of the index. Columns of a run are ``part.variable``. Columns of a record are its
    channels; a standard deviation for each sample is the column ``<channel> sd``.

    >>> import frictax as fx
    >>> record = fx.Record([0, 1, 2, 3], {"drive": [0, 1, 2, 0]}, {"mass.s": [0, 1, 5, 8]})
    >>> frame = record.to_pandas()
    >>> frame["mass.s"].tolist(), frame.attrs["units"]
    ([0.0, 1.0, 5.0, 8.0], {'time': 's', 'drive': 'N', 'mass.s': 'm'})
    """
    import pandas as pd

    (axis, index), columns, about = _table(thing)
    frame = pd.DataFrame(
        {name: c.values for name, c in columns.items()}, index=pd.Index(index.values, name=axis)
    )
    every = {axis: index, **columns} if index.unit else columns
    frame.attrs = {
        "units": {name: c.unit for name, c in every.items()},
        "long_names": {name: c.long_name for name, c in every.items()},
        **about,
    }
    return frame


def to_xarray(thing: Trajectory | Record | Sweep) -> Any:
    """Return an `xarray.Dataset` with the columns of `to_pandas`. Each variable has
    ``attrs["units"]`` and ``attrs["long_name"]``, which its plots show.

    **Raises:** `ImportError` without the package xarray.
    """
    xr = xarray("to_xarray", "or use `to_pandas()`")
    (axis, index), columns, about = _table(thing)

    def variable(c: Column) -> tuple[str, np.ndarray, dict[str, Any]]:
        return axis, c.values, {"units": c.unit, "long_name": c.long_name, **c.more}

    return xr.Dataset(
        {name: variable(c) for name, c in columns.items()},
        coords={axis: variable(index) if index.unit else index.values},
        attrs=about,
    )


def xarray(what: str, otherwise: str) -> Any:
    """Return the package, or raise an error with the remedy."""
    try:
        import xarray  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            f"`{what}` needs the package xarray: `pip install xarray`, {otherwise}."
        ) from None
    return xarray


def _table(thing: Any) -> tuple[tuple[str, Column], dict[str, Column], dict[str, Any]]:
    """Return the axis, the columns, and the attributes of the table."""
    if isinstance(thing, Trajectory):
        return ("time", Column(jax.device_get(thing.ts), "s", "time")), _run_columns(thing), {}
    about = {"name": thing.name} | ({"citation": thing.citation} if thing.citation else {})
    if isinstance(thing, Sweep):
        return ("row", Column(np.arange(thing.n), "", "row")), _sweep_columns(thing), about
    about["between_samples"] = "held" if thing.hold else "straight lines"
    return ("time", Column(thing.t, "s", "time")), _record_columns(thing), about


def _run_columns(run: Trajectory) -> dict[str, Column]:
    out = {}
    for name in run.names:
        turns = bool(turns_about(run.system.mechanism, name))
        for variable, value in vars(run[name]).items():
            if value is not None:
                row = VARIABLES[variable]
                meaning, unit = row.meaning, row.rotational_unit if turns else row.unit
                if turns:
                    meaning = {"force": "torque", "position": "angle"}.get(meaning, meaning)
                label = f"{meaning}, {name}"
                out[f"{name}.{variable}"] = Column(jax.device_get(value), unit, label)
    return out


def _record_columns(record: Record) -> dict[str, Column]:
    out = {}
    for kind, channels in (("input", record.inputs), ("output", record.outputs)):
        for name, values in channels.items():
            unit = record.units[name]
            said, sd = f"{quantity(unit)}, {name}", record.sd.get(name)
            single = sd is not None and np.ndim(sd) == 0
            more = {"kind": kind, **({"sd": float(np.asarray(sd))} if single else {})}
            out[name] = Column(values, unit.si_name, said, more)
            if sd is not None and not single:
                said = f"standard deviation of {name}"
                out[f"{name} sd"] = Column(np.asarray(sd), unit.si_name, said)
    return out


def _sweep_columns(sweep: Sweep) -> dict[str, Column]:
    v, f = sweep.velocity_unit, sweep.force_unit
    out = {
        "velocity": Column(sweep.velocity, v.si_name, quantity(v)),
        "force": Column(sweep.force, f.si_name, f"friction {quantity(f)}"),
    }
    if sweep.sigma is not None:
        known = "standard deviation" if sweep.sigma_known else "relative accuracy"
        out["sigma"] = Column(sweep.sigma, f.si_name, f"{known} of the {quantity(f)}")
    said = "whether motion began"
    return out | {"breakaway": Column(sweep.breakaway, "1", said)}


_UNCOMPRESSED = 120_000  # [bytes] longest file that a page holds uncompressed
_MOST = 300_000  # [bytes] all records of a page together, which keeps it below 3 MB


def downloads(found: FitResult, result: str, motions: Mapping[str, Motion]) -> list[dict[str, str]]:
    """Return the files inside a page: the result as JSON, and for each record or sweep a CSV with
    the measurement and the prediction, in SI units.

    Long files are compressed. A file beyond the size of a page is left out, and the text beside the
    result names it. `motions`: record -> its free run.
    """
    out = [_file("result.json", "application/json", result, "all of the fit, SI units")]
    room, absent = _MOST, []
    for label, record in found.records.items():
        if isinstance(record, Record):
            if label not in motions:
                continue
            columns, says = _motion_columns(record, motions[label]), "measured, and the free run"
        else:
            columns = {
                f"velocity [{record.velocity_unit.si_name}]": record.velocity,
                f"measured [{record.force_unit.si_name}]": record.force,
                f"fitted [{record.force_unit.si_name}]": found.predicted(label)[:, 0],
            }
            says = "measured and fitted"
        made = _file(
            f"{_file_name(label)}.csv", "text/csv", _csv(columns), f"{label}: {says}, SI units"
        )
        room -= len(made["address"])
        if room < 0:
            absent.append(label)
        else:
            out.append(made)
    if absent:
        out[0]["says"] += f". Too long for this page: {', '.join(absent)}"
    return out


def _motion_columns(record: Record, motion: Motion) -> dict[str, Any]:
    columns: dict[str, Any] = {"time [s]": record.t}
    unit = lambda name: record.units[name].si_name  # noqa: E731
    columns |= {f"{name} [{unit(name)}]": x for name, x in record.inputs.items()}
    for name, x in record.outputs.items():
        columns[f"{name} measured [{unit(name)}]"] = x
        if name in motion.states:
            columns[f"{name} simulated [{unit(name)}]"] = motion.states[name]
    return columns


def _csv(columns: Mapping[str, Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([f"{x:.9g}" if np.isfinite(x) else "" for x in row])
    return text.getvalue()


def _file(name: str, kind: str, text: str, says: str) -> dict[str, str]:
    content = text.encode("utf-8", "replace")
    if len(content) > _UNCOMPRESSED:
        name, kind = f"{name}.gz", "application/gzip"
        content = gzip.compress(content, 9, mtime=0)
    data = base64.b64encode(content).decode("ascii")
    return {"name": name, "address": f"data:{kind};base64,{data}", "says": says}


def _file_name(label: str) -> str:
    """Turn a label into the name of a file."""
    return re.sub(r"[^\w.-]+", "_", label, flags=re.ASCII).strip("._") or "data"
