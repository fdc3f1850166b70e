"""Results for other programs: JSON, all numbers in SI units."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import frictax
from frictax.analysis import Comparison
from frictax.fitting import Estimate, FitResult
from frictax.fitting.problem.steady import as_steady
from frictax.laws import AbstractLaw, Stribeck, Table

FORMAT = 2  # rises by 1 when a key comes, goes or changes its meaning: tests/report/test_formats.py


def found_json(found: FitResult, comparisons: Sequence[Comparison] = ()) -> str:
    """A fit as JSON: estimates, covariance, residuals, criteria, warnings and the Modelica text.

    What is not known (nan) is null. Units are SI and stand beside each estimate.
    """
    return as_text(
        {"kind": "fit", **_found(found), "comparisons": [_comparison(c) for c in comparisons]}
    )


def comparison_json(comparisons: Sequence[Comparison]) -> str:
    """One comparison, or one for each direction, as JSON: every law with its fit, and the one
    chosen with the reason.
    """
    return as_text({"kind": "comparison", "comparisons": [_comparison(c) for c in comparisons]})


def as_text(content: dict[str, Any]) -> str:
    """`content` as strict JSON, under the format's number and the version of frictax."""
    whole = {"format": FORMAT, "frictax": frictax.__version__, **content}
    return json.dumps(plain(whole), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _found(found: FitResult) -> dict[str, Any]:
    sweep, steady = found.sweep, as_steady(found.model)
    return {
        "sweep": {
            "name": sweep.name,
            "citation": sweep.citation,
            "rows": sweep.n,
            "breakaway_rows": int(sweep.breakaway.sum()),
            "velocity_unit": sweep.velocity_unit.si_name,
            "force_unit": sweep.force_unit.si_name,
            "velocity": sweep.velocity,
            "force": sweep.force,
            "sigma": sweep.sigma,
            "sigma_known": sweep.sigma_known,
            "breakaway": sweep.breakaway,
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
        "level": found.level,
        "aicc": found.aicc,
        "bic": found.bic,
        "converged": found.converged,
        "iterations": found.iterations,
        "method": type(found.method).__name__,
        "loss": type(found.loss).__name__,
        "warnings": list(found.warnings),
        "notices": [notice.to_dict() for notice in found.notices],
        "modelica": found.to_modelica(),
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    rows = [
        {"name": row.name, "left_out_rms": row.left_out, "remark": row.remark, **_found(row.found)}
        | {"aicc": row.aicc, "bic": row.bic}  # which allow for the autocorrelation
        for row in comparison.rows
    ]
    return {
        "chosen": comparison.best.name,
        "reason": comparison.reason,
        "autocorrelation": comparison.autocorrelation,
        "laws": rows,
    }


def estimate(e: Estimate) -> dict[str, Any]:
    """One fitted number with its unit, error, interval, and how well it is known."""
    names = ("name", "path", "value", "unit", "standard_error", "lower", "upper")
    known = {"degrees_of_freedom": e.dof, "knowledge": e.knowledge.value}
    if e.tied:
        known["tied"] = e.tied
    if e.declared is not None and e.declared[0] != e.unit:  # as the records have it
        unit, size = e.declared
        four = ("value", "standard_error", "lower", "upper")
        known["in_records"] = {"unit": unit} | {name: getattr(e, name) / size for name in four}
    return {name: getattr(e, name) for name in names} | known


def _law(law: AbstractLaw) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": type(law).__name__}
    if isinstance(law, Stribeck):
        out["exponent"] = float(law.exponent)
    if isinstance(law, Table):
        out |= {"v": np.asarray(law.v), "extrapolation": law.extrapolation}
    return out


def plain(value: Any) -> Any:
    """`value` in JSON's types; numbers that JSON has no word for become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(v) for key, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value
