"""A comparison of structures as text."""

import numpy as np

from frictax.summary import Summary
from frictax.text import figures

from .structure import StructureComparison

_SIZES = (("", 1.0), ("m", 1e-3), ("µ", 1e-6))


def structures_rows(made: StructureComparison) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the head and the cells of the table."""
    unit, size = _handy(made.unit, [row.trajectory for row in made.rows])
    left_out = [held.trajectory_rms for row in made.rows for held in row.held_out.values()]
    as_output = made.best.found.problem.objective.in_units_of_outputs()
    out_unit, out_size = _handy(made.unit, left_out) if as_output else (made.force_unit, 1.0)
    schemes = list(made.rows[0].held_out)
    head = [
        "structure", "numbers", f"free run {unit}", f"force {made.force_unit}",
        *(f"{by} {u}" for by in schemes for u in (out_unit, made.force_unit)), "AIC", "BIC", "",
    ]  # fmt: skip
    rows = []
    for row in made.rows:
        left = [
            x
            for by in schemes
            for x in (row.held_out[by].trajectory_rms / out_size, row.held_out[by].force_rms)
        ]
        mark = "<- chosen" if row is made.best else "implausible" if row.implausible else ""
        cells = [
            figures(row.trajectory / size),
            figures(row.force),
            *(figures(x, 3) for x in left),
            f"{row.aic:.1f}",
            f"{row.bic:.1f}",
        ]
        rows.append((row.name, str(row.numbers), *(c.replace("nan", "-") for c in cells), mark))
    return tuple(head), rows


def structures_summary(made: StructureComparison) -> Summary:
    """Return the table, with a line for each remark and the reason."""
    head, rows = structures_rows(made)
    sides = "l" + "r" * (len(head) - 2) + "l"
    sentences = [*(f"! {remark}" for remark in remarks(made)), made.reason]
    records = ", ".join(made.records)
    return Summary(title(made, records), (head, rows), sides, sentences, chosen=made.best.name)


def remarks(made: StructureComparison) -> list[str]:
    """Return the doubts about each structure."""
    return [f"{row.name}: {x}" for row in made.rows for x in (*row.implausible, *row.doubts)]


def title(made: StructureComparison, records: str) -> str:
    """Return the title: records, objective, and the kinds of data left out."""
    return (
        f"Structures fitted to {records} by"
        f" {type(made.best.found.problem.objective).__name__};"
        f" {', '.join(made.rows[0].held_out)}: errors on the data left out"
    )


def _handy(unit: str, values: list[float]) -> tuple[str, float]:
    """Return the unit with a prefix that suits the least value, and its size."""
    if unit == "sd":
        return "x sd", 1.0
    known = [v for v in values if np.isfinite(v) and v > 0]
    least = min(known, default=1.0)
    prefix, size = next(((p, s) for p, s in _SIZES if least >= 0.01 * s), _SIZES[-1])
    return f"{prefix}{unit}", size
