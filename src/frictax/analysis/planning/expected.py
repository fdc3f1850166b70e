"""The table of `outlook`: expected accuracy of each parameter before the fit."""

import dataclasses
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from frictax.fitting import Knowledge
from frictax.fitting.result.identifiability import Identifiability
from frictax.notice import Notice
from frictax.summary import Summarised, Summary
from frictax.text import figures, format_estimate

from .experiments import Remedy


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Outlook(Summarised):
    """Expected accuracy of the free parameters of a fit. Print it.

    - `names`, `units`, `values` (p,): the free parameters and their start values [SI].
    - `errors` (p,): the expected standard errors at these values, from the residuals of a first
      fit.
    - `relative` (p,): the errors over the sizes of the values, or over the distances from bounds.
    - `identifiability`: knowledge of each parameter, singular values, null directions. Its
      `notices` and `sentences` are those of the outlook, and name the remedies.
    - `declared`: the units of the data with their sizes in SI, as in an `Estimate`.
    - `cures`: by name, experiments and the factors by which they reduce the error.

    **Example:** at `outlook`.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Float[np.ndarray, " p"]
    errors: Float[np.ndarray, " p"]
    relative: Float[np.ndarray, " p"]
    identifiability: Identifiability
    cures: Mapping[str, tuple[Remedy, ...]]
    title: str
    declared: tuple[tuple[str, float] | None, ...]

    @property
    def notices(self) -> tuple[Notice, ...]:
        return self.identifiability.notices

    @property
    def sentences(self) -> tuple[str, ...]:
        return self.identifiability.sentences

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the head of the table, and its rows."""
        return ("parameter", "start", "unit", "expected error", "relative", ""), [
            (
                name,
                *_cells(value, error, unit, declared),
                _share(share),
                _VERDICT[self.identifiability.knowledge[name]],
            )
            for name, value, unit, error, share, declared in zip(
                self.names,
                self.values,
                self.units,
                self.errors,
                self.relative,
                self.declared,
                strict=True,
            )
        ]

    def _summary(self) -> Summary:
        condition = f"condition {self.identifiability.condition:.3g}"
        return Summary(self.title, self.rows(), "lrlrrl", [condition], self.sentences)


def _cells(
    value: float, error: float, unit: str, declared: tuple[str, float] | None
) -> tuple[str, str, str]:
    """Return the cells of a start value, its unit and its expected error."""
    row = format_estimate(value, error, unit, fixed=declared)
    return figures(value / row.size, 6), row.unit, row.error


_VERDICT = {
    Knowledge.KNOWN: "",
    Knowledge.WEAK: "weak",
    Knowledge.UNKNOWN: "not identifiable",
    Knowledge.AT_BOUND: "at its bound",
}


def _share(x: float) -> str:
    if not np.isfinite(x):
        return ""
    return f"{100 * x:.2g} %" if x < 0.1 else f"{100 * x:.0f} %" if x < 2 else f"{x:.2g} times"
