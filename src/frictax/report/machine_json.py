"""A fit to records for other programs: JSON, all numbers in SI units."""

from typing import Any

import jax
import numpy as np

from frictax.analysis import Guarded
from frictax.fitting import FitResult
from frictax.measurements import Record
from frictax.parameters import parameters

from .json_text import as_text, estimate, found_json


def fit_json(found: FitResult) -> str:
    """All of a fit as JSON, with units: see `found_json` and, for records, `found_machine_json`."""
    return found_json(found) if found.of_sweep else found_machine_json(found)


def found_machine_json(found: FitResult) -> str:
    """A fit to records as JSON: estimates, covariance, records, criteria, warnings and every
    parameter of the machine, with units.

    What is not known (nan) or has no end (inf) is null. The order is that of the fit and of the
    machine: equal fits give equal text.

    >>> import frictax as fx, json, numpy as np
    >>> t = np.linspace(0.0, 2.0, 401)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 2.0),
    ... )
    >>> record = fx.Record(t, outputs={"mass.v": 0.75 * t + 0.01 * np.sin(40 * t)}, name="pull")
    >>> read = json.loads(fx.fit(block, record, free=["friction.f_pos.F_Coulomb"]).to_json())
    >>> read["estimates"][0]["unit"], read["records"]["pull"]["duration"]
    ('N', {'value': 2.0, 'unit': 's'})
    """
    names = [e.name for e in found.estimates]
    return as_text(
        {
            "kind": "machine fit",
            "machine": type(found.model).__name__,
            "objective": type(found.problem.objective).__name__,
            "engine": type(found.problem.engine).__name__,
            "method": type(found.method).__name__,
            "loss": type(found.problem.loss).__name__,
            "level": found.level,
            "errors": Guarded.__name__,
            "estimates": [estimate(e) for e in found.estimates],
            "tied": [estimate(e) for e in found.tied],
            "covariance": {"names": names, "values": found.covariance},
            "correlation": {"names": names, "values": found.correlation},
            "parameters": _parameters(found),
            "records": {label: _record(found, label) for label in found.records},
            "noise_scale": found.noise_scale,
            "degrees_of_freedom": found.dof,
            "condition": found.identifiability.condition,
            "converged": found.converged,
            "at_noise": found.at_noise,
            "iterations": found.iterations,
            "costs": found.costs,
            "warnings": list(found.warnings),
            "notices": [notice.to_dict() for notice in found.notices],
            "versions": {"jax": jax.__version__, "numpy": np.__version__},
        }
    )


def _parameters(found: FitResult) -> list[dict[str, Any]]:
    """Every number of the machine that all records share, fitted or not."""
    fitted = {e.path.partition("[")[0].partition("@")[0] for e in found.estimates}
    tied = {tie.path: tie.says for tie in found.problem.ties}
    return [
        {
            "name": p.path,
            "value": np.asarray(p.value),
            "unit": found.unit_of(p),
            "fitted": p.path in fitted,
        }
        | ({"tied": tied[p.path]} if p.path in tied else {})
        for p in parameters(found.model)
    ]


def _record(found: FitResult, label: str) -> dict[str, Any]:
    record, units = found.records[label], found.rms_units(label)
    motion = isinstance(record, Record)
    out: dict[str, Any] = {
        "kind": "motion" if motion else "sweep",
        "name": record.name,
        "citation": record.citation,
        "samples": record.n,
    }
    if motion:
        out["duration"] = {"value": record.duration, "unit": "s"}
        for kind in ("inputs", "outputs"):
            out[kind] = {name: record.units[name].si_name for name in getattr(record, kind)}
    left = found.rms[label].items()
    return out | {"rms": {name: {"value": value, "unit": units[name]} for name, value in left}}
