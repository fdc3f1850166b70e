"""Write results as JSON for other programs, with all numbers in SI units."""

import contextlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax
import numpy as np

import frictax
from frictax.analysis import Comparison, Guarded
from frictax.export.fitted_machine import example_machine, values_by_record
from frictax.fitting import Estimate, FitResult
from frictax.fitting.problem.steady import as_steady
from frictax.laws import AbstractLaw, Table
from frictax.measurements import Record
from frictax.parameters import parameters

# Version of the JSON format. The version increases by 1 when a key is added, is removed, or changes
# its meaning. tests/report/test_formats.py checks this rule.
FORMAT = 3


def found_json(found: FitResult, comparisons: Sequence[Comparison] = ()) -> str:
    """Return a fit of a sweep as JSON: estimates, covariance, residuals, AICc, BIC, Modelica text.

    An unknown (nan) or infinite number is null. Each estimate contains its SI unit.
    """
    return as_text(
        {"kind": "fit", **_sweep_fit(found), "comparisons": [_comparison(c) for c in comparisons]}
    )


def comparison_json(comparisons: Sequence[Comparison]) -> str:
    """Return comparisons of laws (one for each direction) as JSON, with chosen law and reason."""
    return as_text({"kind": "comparison", "comparisons": [_comparison(c) for c in comparisons]})


def as_text(content: dict[str, Any]) -> str:
    """Return `content` as strict JSON, with the number of the format and the version of frictax."""
    whole = {"format": FORMAT, "frictax": frictax.__version__, **content}
    return json.dumps(to_json_types(whole), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


_OF_ROWS = ("velocity", "force", "sigma", "sigma_known", "breakaway")
_OF_FIT = ("level", "aicc", "bic", "converged", "iterations")


def _sweep_fit(found: FitResult) -> dict[str, Any]:
    sweep, steady = found.sweep, as_steady(found.model)
    return {
        "sweep": {
            "name": sweep.name,
            "citation": sweep.citation,
            "rows": sweep.n,
            "breakaway_rows": int(sweep.breakaway.sum()),
            "velocity_unit": sweep.velocity_unit.si_name,
            "force_unit": sweep.force_unit.si_name,
            **{name: getattr(sweep, name) for name in _OF_ROWS},
        },
        "law": {
            "f_pos": _law(steady.f_pos),
            "f_neg": None if steady.f_neg is None else _law(steady.f_neg),
        },
        "estimates": [estimate(e) for e in found.estimates],
        "tied": [estimate(e) for e in found.tied],
        "fixed": [{"name": e.name, "value": e.value, "unit": e.unit} for e in found.fixed],
        "covariance": found.covariance,
        "residuals": found.residuals,
        "rms": found.rms_force,
        "rms_unit": sweep.force_unit.si_name,
        "noise_scale": found.noise_scale,
        "degrees_of_freedom": found.dof,
        **{name: getattr(found, name) for name in _OF_FIT},
        "method": type(found.method).__name__,
        "loss": type(found.loss).__name__,
        "warnings": list(found.warnings),
        "notices": [notice.to_dict() for notice in found.notices],
        "modelica": found.to_modelica(),
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    rows = [
        {
            "name": row.name,
            "left_out_rms": row.left_out,
            "remark": row.remark,
            **_sweep_fit(row.found),
        }
        # Unlike a fit, a comparison computes AICc and BIC for autocorrelated residuals.
        | {"aicc": row.aicc, "bic": row.bic}
        for row in comparison.rows
    ]
    return {
        "chosen": comparison.best.name,
        "reason": comparison.reason,
        "autocorrelation": comparison.autocorrelation,
        "laws": rows,
    }


def estimate(e: Estimate) -> dict[str, Any]:
    """Return an estimate with unit, standard error, interval and identifiability as a dict."""
    names = ("name", "path", "value", "unit", "standard_error", "lower", "upper")
    known = {"degrees_of_freedom": e.dof, "knowledge": e.knowledge.value}
    if e.tied:
        known["tied"] = e.tied
    if e.declared is not None and e.declared[0] != e.unit:  # add the estimate in the record's unit
        unit, size = e.declared
        four = ("value", "standard_error", "lower", "upper")
        known["in_records"] = {"unit": unit} | {name: getattr(e, name) / size for name in four}
    return {name: getattr(e, name) for name in names} | known


def _law(law: AbstractLaw) -> dict[str, Any]:
    form = law.form
    if isinstance(law, Table):
        form = {"v": np.asarray(law.v), "extrapolation": law.extrapolation}
    return {"kind": type(law).__name__} | form


def to_json_types(value: Any) -> Any:
    """Return `value` in the types of JSON; nan and infinity become null."""
    if isinstance(value, Mapping):
        return {str(key): to_json_types(v) for key, v in value.items()}
    if isinstance(value, np.ndarray):
        return to_json_types(value.tolist())
    if isinstance(value, list | tuple):
        return [to_json_types(v) for v in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value


def fit_json(found: FitResult) -> str:
    """Return a fit as JSON, see `found_json` (sweep) and `found_machine_json` (records)."""
    return found_json(found) if found.of_sweep else found_machine_json(found)


def found_machine_json(found: FitResult) -> str:
    """Return a fit to records as JSON: estimates, covariance, rms residuals, warnings, final costs
    of all starts of the search, and every parameter of the machine, with units. A parameter that
    differs by record has the value null and the key "own": record -> value.

    An unknown (nan) or infinite number is null. Estimates have the order of the fit, and parameters
    the order of the machine. Therefore equal fits give equal text.

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
    fitted = {e.path.partition("[")[0].partition("@")[0] for e in found.estimates}
    tied = {tie.path: tie.says for tie in found.problem.ties}
    own = values_by_record(found) if len(found.records) > 1 else {}
    each = {path: {r: np.asarray(x) for r, x in of.items()} for path, of in own.items()}
    values = [
        {
            "name": p.path,
            "value": None if p.path in own else np.asarray(p.value),
            "unit": found.unit_of(p),
            "fitted": p.path in fitted,
        }
        | ({"tied": tied[p.path]} if p.path in tied else {})
        | ({"own": each[p.path]} if p.path in own else {})
        for p in parameters(example_machine(found)[0])
    ]
    records: dict[str, dict[str, Any]] = {}
    for label, record in found.records.items():
        motion, units = isinstance(record, Record), found.rms_units(label)
        records[label] = one = {
            "kind": "motion" if motion else "sweep",
            "name": record.name,
            "citation": record.citation,
            "samples": record.n,
        }
        if motion:
            one["duration"] = {"value": record.duration, "unit": "s"}
            for kind in ("inputs", "outputs"):
                one[kind] = {name: record.units[name].si_name for name in getattr(record, kind)}
        rms = found.rms[label].items()
        one["rms"] = {name: {"value": value, "unit": units[name]} for name, value in rms}
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
            "parameters": values,
            "records": records,
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


def versions() -> dict[str, str]:
    """Return a dict name -> version: frictax, Python, and packages that affect the numbers."""
    known = {"frictax": frictax.__version__, "python": platform.python_version()}
    for package in "jax jaxlib diffrax equinox optax optimistix numpy scipy".split():
        with contextlib.suppress(PackageNotFoundError):
            known[package] = version(package)
    return known


def versions_in_words(spelled: Callable[[str], str] = str) -> str:
    """Return the `versions` as one line of text; `spelled` changes the spelling of "python"."""
    return ", ".join(
        f"{spelled(name) if name == 'python' else name} {number}"
        for name, number in versions().items()
    )
