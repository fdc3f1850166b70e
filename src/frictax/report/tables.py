"""Runs, records and sweeps as tables of other packages, with units."""

import dataclasses
from typing import Any

import jax
import numpy as np

from frictax.annotations import DataFrame
from frictax.measurements import Record, Sweep
from frictax.measurements.units import quantity
from frictax.mechanism.layout import turns_about
from frictax.mechanism.variable_table import VARIABLES
from frictax.trajectory import Trajectory


@dataclasses.dataclass(frozen=True)
class Column:
    """Values with their unit and what they are; `more` is told beside."""

    values: np.ndarray
    unit: str
    long_name: str
    more: dict[str, Any] = dataclasses.field(default_factory=dict)


def to_pandas(thing: Trajectory | Record | Sweep) -> DataFrame:
    """All of it as a `pandas.DataFrame` in SI units, over time but for a sweep.

    ``frame.attrs["units"]`` and ``frame.attrs["long_names"]`` say of each column, and of the index,
    in which unit it is and what. Columns of a run are ``part.variable`` for each part and variable;
    of a record its channels by their names, and standard deviations that differ from sample to
    sample as ``<channel> sd``.

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
    """The same as an `xarray.Dataset`, each variable with ``attrs["units"]`` and
    ``attrs["long_name"]``, which its plots show.

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
    """The package, or one sentence that it is missing."""
    try:
        import xarray  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            f"`{what}` needs the package xarray: `pip install xarray`, {otherwise}."
        ) from None
    return xarray


def _table(thing: Any) -> tuple[tuple[str, Column], dict[str, Column], dict[str, Any]]:
    """The axis, the columns, and what is to be told of all of it."""
    if isinstance(thing, Trajectory):
        return ("time", Column(jax.device_get(thing.ts), "s", "time")), _of_run(thing), {}
    about = {"name": thing.name} | ({"citation": thing.citation} if thing.citation else {})
    if isinstance(thing, Sweep):
        return ("row", Column(np.arange(thing.n), "", "row")), _of_sweep(thing), about
    about["between_samples"] = "held" if thing.hold else "straight lines"
    return ("time", Column(thing.t, "s", "time")), _of_record(thing), about


def _of_run(run: Trajectory) -> dict[str, Column]:
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


def _of_record(record: Record) -> dict[str, Column]:
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


def _of_sweep(sweep: Sweep) -> dict[str, Column]:
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
