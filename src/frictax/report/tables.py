"""Simulations, records, sweeps and posterior samples as tables of pandas, xarray and ArviZ."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

import frictax
from frictax.analysis import Posterior
from frictax.annotations import DataFrame
from frictax.fitting.result.estimates import by_path
from frictax.measurements import Record, Sweep
from frictax.measurements.units import quantity
from frictax.mechanism.layout import turns_about
from frictax.mechanism.variable_table import VARIABLES
from frictax.trajectory import Trajectory


@dataclasses.dataclass(frozen=True)
class Column:
    """A table column. `long_name`: meaning of the column; `more`: further attributes, by name."""

    values: np.ndarray
    unit: str
    long_name: str
    more: dict[str, Any] = dataclasses.field(default_factory=dict)


def to_pandas(thing: Trajectory | Record | Sweep) -> DataFrame:
    """Return a `pandas.DataFrame` in SI units, over time or over the rows of a sweep.

    ``frame.attrs["units"]`` and ``frame.attrs["long_names"]`` contain the unit and the meaning of
    each column and of the index. A column of a simulation is named ``part.variable``, and a column
    of a record is named as its channel. If samples of a channel have individual standard
    deviations, the column ``<channel> sd`` contains them.

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
    ``attrs["units"]`` and ``attrs["long_name"]``, which plots of xarray show.

    **Raises:** `ImportError` without the package xarray.
    """
    xr = _import_xarray("to_xarray", "or use `to_pandas()`")
    (axis, index), columns, about = _table(thing)

    def variable(c: Column) -> tuple[str, np.ndarray, dict[str, Any]]:
        return axis, c.values, {"units": c.unit, "long_name": c.long_name, **c.more}

    return xr.Dataset(
        {name: variable(c) for name, c in columns.items()},
        coords={axis: variable(index) if index.unit else index.values},
        attrs=about,
    )


def _import_xarray(what: str, otherwise: str) -> Any:
    """Return the package xarray, or raise `ImportError` with the remedy."""
    try:
        import xarray  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            f"`{what}` needs the package xarray: `pip install xarray`, {otherwise}."
        ) from None
    return xarray


def _table(thing: Any) -> tuple[tuple[str, Column], dict[str, Column], dict[str, Any]]:
    """Return the index (name and column), name -> column, and the attributes of the table."""
    out: dict[str, Column] = {}
    if isinstance(thing, Trajectory):
        for name in thing.names:
            turns = bool(turns_about(thing.system.mechanism, name))
            for variable, value in vars(thing[name]).items():
                if value is not None:
                    row = VARIABLES[variable]
                    meaning, unit = row.meaning, row.rotational_unit if turns else row.unit
                    if turns:
                        meaning = {"force": "torque", "position": "angle"}.get(meaning, meaning)
                    label = f"{meaning}, {name}"
                    out[f"{name}.{variable}"] = Column(jax.device_get(value), unit, label)
        return ("time", Column(jax.device_get(thing.ts), "s", "time")), out, {}
    about = {"name": thing.name} | ({"citation": thing.citation} if thing.citation else {})
    if isinstance(thing, Sweep):
        v, f = thing.velocity_unit, thing.force_unit
        out["velocity"] = Column(thing.velocity, v.si_name, quantity(v))
        out["force"] = Column(thing.force, f.si_name, f"friction {quantity(f)}")
        if thing.sigma is not None:
            known = "standard deviation" if thing.sigma_known else "relative accuracy"
            out["sigma"] = Column(thing.sigma, f.si_name, f"{known} of the {quantity(f)}")
        out["breakaway"] = Column(thing.breakaway, "1", "whether motion began")
        return ("row", Column(np.arange(thing.n), "", "row")), out, about
    about["between_samples"] = "held" if thing.hold else "straight lines"
    for kind, channels in (("input", thing.inputs), ("output", thing.outputs)):
        for name, values in channels.items():
            unit, sd = thing.units[name], thing.sd.get(name)
            single = sd is not None and np.ndim(sd) == 0
            more = {"kind": kind, **({"sd": float(np.asarray(sd))} if single else {})}
            out[name] = Column(values, unit.si_name, f"{quantity(unit)}, {name}", more)
            if sd is not None and not single:
                said = f"standard deviation of {name}"
                out[f"{name} sd"] = Column(np.asarray(sd), unit.si_name, said)
    return ("time", Column(thing.t, "s", "time")), out, about


def to_arviz(drawn: Posterior) -> Any:
    """Return the posterior samples (draws) for the plots and diagnostics of ArviZ: an
    `InferenceData` before ArviZ 1.0, otherwise an `xarray.DataTree`.

    - `posterior`: path of a parameter -> its draws over (chain, draw), with ``attrs["units"]``; all
      entries of an array parameter are one variable. `sample_stats`: statistics of the sampler.
    - `observed_data`: the measured channels as ``<record>: <channel>`` over time, in SI units;
      `constant_data`: the inputs.

    The result does not contain a likelihood for each sample, because residuals are autocorrelated.
    The effective number of residuals is `drawn.samples`.

    **Raises:** `ImportError` without ArviZ.

    **Example:** ``arviz.plot_trace(found.posterior().to_arviz())``.
    """
    try:
        import arviz  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            "`to_arviz` needs the package ArviZ, which is not installed. Run: pip install"
            " 'frictax[bayes]'"
        ) from None
    xr = _import_xarray("to_arviz", "which ArviZ brings")
    about = {"inference_library": "frictax", "inference_library_version": frictax.__version__}
    draws = {"chain": np.arange(drawn.draws.shape[0]), "draw": np.arange(drawn.draws.shape[1])}
    meaning = {
        "lp": "log density up to a constant, before the draws are widened",
        "diverging": "whether the sampler diverged in this draw",
        "acceptance_rate": "mean probability of acceptance along the path",
        "tree_depth": "number of times that the path was doubled",
        "n_steps": "number of steps of the path",
    }
    stats = {
        name: (("chain", "draw"), values, {"long_name": meaning[name]})
        for name, values in drawn.stats.items()
    }
    places = [(e.name, e.path) for e in drawn.estimates]
    units = {e.path: e.unit for e in drawn.estimates}
    columns: Mapping[str, Any] = by_path(places, range(len(places)))
    numbers = {}
    for path, column in columns.items():
        more = (f"{path} entry",) if np.ndim(column) else ()
        attributes = {"units": units[path], "long_name": path}
        numbers[_name(path)] = (("chain", "draw", *more), drawn.draws[..., column], attributes)
    kinds: dict[str, dict[str, Any]] = {"observed_data": {}, "constant_data": {}}
    for label, record in drawn.found.records.items():
        given = ("velocity", "breakaway", "sigma") if isinstance(record, Sweep) else record.inputs
        for name, values in to_xarray(record).items():
            axis = values.dims[0]
            own = {axis: _name(f"{label}: {axis}")}
            mine = values.rename(own).rename(_name(f"{label}: {name}"))
            known = name in given or str(name).endswith(" sd")
            kinds["constant_data" if known else "observed_data"][mine.name] = mine
    groups = {
        "posterior": xr.Dataset(numbers, coords=draws, attrs=about),
        "sample_stats": xr.Dataset(stats, coords=draws, attrs=about),
        **{kind: xr.Dataset(has, attrs=about) for kind, has in kinds.items() if has},
    }
    if int(arviz.__version__.partition(".")[0]) < 1:
        return arviz.InferenceData(**groups)
    return xr.DataTree.from_dict(groups)


def _name(text: str) -> str:
    return text.replace("/", "_")  # In a file, a slash creates a group.
