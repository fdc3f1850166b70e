"""A fit to records as text."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from frictax.fitting.result.fit_result import FoundMachine
from frictax.fitting.result.identifiability import Knowledge
from frictax.fitting.result.printing import rounded, table
from frictax.measurements.record import Record


def machine_text(found: FoundMachine) -> str:
    """The table that is printed."""
    rows = []
    for e in found.estimates:
        error = f"{e.standard_error:.2g}" if np.isfinite(e.standard_error) else ""
        interval = f"{rounded(e.lower, e.standard_error)} to {rounded(e.upper, e.standard_error)}"
        if e.knowledge in (Knowledge.AT_BOUND, Knowledge.UNKNOWN):
            interval = e.knowledge.value
        rows.append((e.name, rounded(e.value, e.standard_error), e.unit, error, interval))
    kind = type(found.problem.objective).__name__
    lines = [
        f"{type(found.model).__name__} fitted to {', '.join(found.records)} by {kind}",
        *table(("parameter", "value", "unit", "std. error", f"{100 * found.level:g} % interval"), rows),
    ]
    for label, channels in found.rms.items():
        lines.append(f"{label}: " + ", ".join(f"rms {name} {value:.4g}" for name, value in channels.items()))
    lines.append(
        f"{found.dof} degrees of freedom, condition {found.identifiability.condition:.3g}, {found.iterations} steps, {found.seconds:.2g} s"
    )
    lines += found.intervals_in_words()
    c = found.correlation
    pairs = [(abs(c[i, j]), i, j) for i in range(len(c)) for j in range(i) if np.isfinite(c[i, j]) and abs(c[i, j]) >= 0.9]
    if pairs:
        strong = [f"{found.names[j]}, {found.names[i]} {c[i, j]:+.3f}" for _, i, j in sorted(pairs, reverse=True)[:4]]
        lines.append("correlation " + ", ".join(strong))
    return "\n".join([*lines, *(f"! {sentence}" for sentence in (*found.warnings, *record_warnings(found.records)))])


def record_warnings(records: Mapping[str, Any]) -> list[str]:
    """What is suspicious in the records themselves: with a wrong unit they are no less easy to fit."""
    return [
        f"Record {label!r}: {warning}" for label, record in records.items() if isinstance(record, Record) for warning in record.warnings
    ]
