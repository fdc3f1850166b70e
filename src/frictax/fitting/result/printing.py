"""Fits as text: the tables that people quote."""

from typing import Any

import numpy as np

from frictax.fitting.result.found import Estimate, Found
from frictax.fitting.result.identifiability import Knowledge
from frictax.measurements import units


def found_rows(found: Found) -> list[tuple[str, str, str, str, str]]:
    """Parameter, value, unit, standard error, interval of each estimate as printed; fixed parameters at the end."""
    rows = []
    for e in (*found.estimates, *found.fixed):
        unit, size = units.shown(e.unit, found.shown_force)
        error = e.standard_error / size
        if e.knowledge is Knowledge.FIXED:
            rows.append((e.name, f"{e.value / size:.6g}", unit, "", "fixed"))
        elif e.knowledge is Knowledge.AT_BOUND:
            rows.append((e.name, f"{e.value / size:.6g}", unit, "", "at its bound"))
        elif e.knowledge is Knowledge.UNKNOWN:
            rows.append((e.name, rounded(e.value / size, error), unit, _error(error, e), "not identifiable"))
        else:
            interval = f"{rounded(e.lower / size, error)} to {rounded(e.upper / size, error)}"
            rows.append((e.name, rounded(e.value / size, error), unit, _error(error, e), interval))
    return rows


def found_text(found: Found) -> str:
    kind = type(found.law).__name__
    force = found.shown_force
    rms, noise = found.rms / force.si, found.noise_scale / force.si
    scale = f"noise {noise:.4g} {force.name}" if found.sweep.sigma is None else f"noise {found.noise_scale:.4g} x sigma"
    if found.sweep.sigma_known:
        scale = "noise as given"
    lines = [
        f"{kind} friction of {found.sweep!r}",
        *table(("parameter", "value", "unit", "std. error", f"{100 * found.level:g} % interval"), found_rows(found)),
        f"rms {rms:.4g} {force.name}, {scale}, {found.n} rows, {found.dof} degrees of freedom, AICc {found.aicc:.1f}, BIC {found.bic:.1f}",
    ]
    strong = _correlations(found)
    if strong:
        lines.append("correlation " + ", ".join(strong))
    lines += [f"! {sentence}" for sentence in found.warnings]
    return "\n".join(lines)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Columns of text, the first left, the others right aligned as far as they hold numbers."""
    cells = [head, *rows]
    widths = [max(len(row[j]) for row in cells) for j in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def rounded(value: float, error: float) -> str:
    """`value` to the second digit of its error.

    >>> rounded(12.3456, 0.012), rounded(3.819003e-4, 5.8e-9)
    ('12.346', '0.0003819003')
    """
    if not np.isfinite(value):
        return "?"
    if not np.isfinite(error) or error <= 0:
        return f"{value:.4g}"
    digits = 1 - int(np.floor(np.log10(error)))
    if not -6 < digits < 10 or abs(value) * 10.0**digits > 1e9:
        known = digits + 1 + int(np.floor(np.log10(abs(value) or 1.0)))  # of the number's own digits
        return f"{value:.{min(max(known, 4), 15)}g}"
    return f"{value:.{max(digits, 0)}f}"


def _error(error: float, estimate: Estimate) -> str:
    size = abs(estimate.value) or 1.0
    return f"{error:.2g}" if np.isfinite(error) and estimate.standard_error < 1e4 * size else "unbounded"


def _correlations(found: Found) -> list[str]:
    c: Any = found.correlation
    pairs = [(abs(c[i, j]), i, j) for i in range(len(c)) for j in range(i) if np.isfinite(c[i, j]) and abs(c[i, j]) >= 0.9]
    return [f"{found.names[j]}, {found.names[i]} {c[i, j]:+.3f}" for _, i, j in sorted(pairs, reverse=True)[:4]]
