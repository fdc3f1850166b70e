"""The draws of a posterior for ArviZ."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import frictax
from frictax.analysis import Posterior
from frictax.fitting.result.estimates import by_path
from frictax.measurements import Sweep

from ..tables import to_xarray, xarray

_SAYS = {
    "lp": "log density except for a constant, before draws were widened",
    "diverging": "whether the sampler diverged in this draw",
    "acceptance_rate": "mean probability of acceptance along the path",
    "tree_depth": "doublings of the path",
    "n_steps": "steps of the path",
}


def to_arviz(drawn: Posterior) -> Any:
    """Return the draws for the plots and diagnostics of ArviZ: an `InferenceData` before ArviZ 1.0,
    an `xarray.DataTree` since.

    - `posterior`: each estimate by its path over (chain, draw), with ``attrs["units"]``; a table
      is one variable. `sample_stats`: statistics of the sampler.
    - `observed_data`: the measured channels as ``<record>: <channel>`` over time, in SI units;
      `constant_data`: the inputs.

    A pointwise likelihood is absent, because autocorrelated residuals count as fewer samples
    (`drawn.samples`).

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
    xr = xarray("to_arviz", "which ArviZ brings")
    about = {"inference_library": "frictax", "inference_library_version": frictax.__version__}
    draws = {"chain": np.arange(drawn.draws.shape[0]), "draw": np.arange(drawn.draws.shape[1])}
    groups = {
        "posterior": xr.Dataset(_numbers(drawn), coords=draws, attrs=about),
        "sample_stats": xr.Dataset(
            {
                name: (("chain", "draw"), values, {"long_name": _SAYS[name]})
                for name, values in drawn.stats.items()
            },
            coords=draws,
            attrs=about,
        ),
        **_data(drawn, xr, about),
    }
    if int(arviz.__version__.partition(".")[0]) < 1:
        return arviz.InferenceData(**groups)
    return xr.DataTree.from_dict(groups)


def _numbers(drawn: Posterior) -> dict[str, Any]:
    places = [(e.name, e.path) for e in drawn.estimates]
    units = {e.path: e.unit for e in drawn.estimates}
    columns: Mapping[str, Any] = by_path(places, range(len(places)))
    out = {}
    for path, column in columns.items():
        more = (f"{path} entry",) if np.ndim(column) else ()
        attributes = {"units": units[path], "long_name": path}
        out[_name(path)] = (("chain", "draw", *more), drawn.draws[..., column], attributes)
    return out


def _data(drawn: Posterior, xr: Any, about: dict[str, str]) -> dict[str, Any]:
    kinds: dict[str, dict[str, Any]] = {"observed_data": {}, "constant_data": {}}
    for label, record in drawn.found.records.items():
        given = ("velocity", "breakaway", "sigma") if isinstance(record, Sweep) else record.inputs
        for name, values in to_xarray(record).items():
            axis = values.dims[0]
            own = {axis: _name(f"{label}: {axis}")}
            mine = values.rename(own).rename(_name(f"{label}: {name}"))
            known = name in given or str(name).endswith(" sd")
            kinds["constant_data" if known else "observed_data"][mine.name] = mine
    return {kind: xr.Dataset(has, attrs=about) for kind, has in kinds.items() if has}


def _name(text: str) -> str:
    return text.replace("/", "_")  # A slash would make a group.
