"""Text of a fit: the table of its estimates, and lines on its quality."""

import numpy as np

from frictax.summary import Summary
from frictax.text import figures

from ..problem.simulations import Windows
from .estimates import Estimate
from .fit_result import FitResult


def fit_summary(found: FitResult) -> Summary:
    """Return the table of estimates, the quality of the fit, strong correlations, and warnings."""
    head = ("parameter", "value", "unit", "std. error", f"{100 * found.level:g} % interval")
    kind = type(found.problem.objective).__name__
    if found.of_sweep:
        title = f"{type(found.law).__name__} friction of {found.sweep!r}"
    else:
        title = f"{type(found.model).__name__} fitted to {', '.join(found.records)} by {kind}"
    c = found.correlation
    with np.errstate(invalid="ignore"):
        pairs = np.argwhere(np.tril(np.abs(c) >= 0.9, -1))
    pairs = sorted(pairs.tolist(), key=lambda at: -abs(c[at[0], at[1]]))[:4]  # the four strongest
    strong = [f"{found.names[j]}, {found.names[i]} {c[i, j]:+.3f}" for i, j in pairs]
    lines = [*quality(found), *(["correlation " + ", ".join(strong)] if strong else [])]
    table = head, found_rows(found)
    return Summary(title, table, "lrlrl", lines, found.warnings)


def found_rows(found: FitResult) -> list[tuple[str, str, str, str, str]]:
    """Return the cells of each row of the table: parameter, value, unit, standard error and
    interval. For a sweep, the units are those of the data.
    """
    return [e.cells for e in shown_estimates(found)]


def shown_estimates(found: FitResult) -> tuple[Estimate, ...]:
    """Return the estimates that have a row in the table."""
    return (*found.estimates, *found.tied, *(found.fixed if found.of_sweep else ()))


def quality(found: FitResult) -> list[str]:
    lines, objective = [], found.problem.objective
    if found.of_sweep:
        force, rms = found.shown_force, found.rms_force
        noise = f"noise {figures(found.noise_scale / force.si)} {force.name}"
        if found.sweep.sigma is not None:
            noise = f"noise {figures(found.noise_scale)} x sigma"
        noise = "noise as given" if found.sweep.sigma_known else noise
        return [
            f"rms {figures(rms / force.si)} {force.name}, {noise}, {found.n} rows, "
            f"{found.dof} degrees of freedom, AICc {found.aicc:.1f}, BIC {found.bic:.1f}",
            *found.intervals_in_words(),
        ]
    for label, prepared in zip(found.rms, found.problem.prepared, strict=True):
        left = [f"rms {name} {text}" for name, text in found.rms_in_words(label).items()]
        cutoffs = getattr(prepared, "cutoffs", {})
        if cutoffs and isinstance(objective, Windows) and objective.cutoff is None:
            each = [f"{float(f):.2g} Hz" for f in cutoffs.values()]
            if len(set(each)) > 1:
                each = [f"{f} ({name})" for name, f in zip(cutoffs, each, strict=True)]
            left.append(f"starts read below {', '.join(dict.fromkeys(each))}")
        lines.append(f"{label}: {', '.join(left)}")
    return [
        *lines,
        (
            f"{found.dof} degrees of freedom, condition {found.identifiability.condition:.3g},"
            f" {found.iterations} steps, {found.seconds:.2g} s"
        ),
        *found.intervals_in_words(),
    ]
