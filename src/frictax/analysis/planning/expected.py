"""What is to be expected of a fit before it is made, as a table."""

import dataclasses
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from frictax.fitting import Knowledge
from frictax.fitting.result.identifiability import Identifiability
from frictax.notice import Notice
from frictax.summary import Summarised, Summary
from frictax.text import figures, shown

from .experiments import Cure


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Outlook(Summarised):
    """What data can tell of the parameters that a fit would move. Print it.

    - `names`, `units`, `values` (p,): what would be moved, and its start values [SI].
    - `errors` (p,): the standard errors that are to be expected at these values, by the residuals
      that a first fit leaves.
    - `relative` (p,): these over the values' sizes, or their distances from their bounds.
    - `identifiability`: knowledge of each, singular values, null directions; its `notices`, here
      too, and as `sentences`, say what would cure it.
    - `declared`: the units in which the data have them, with their sizes, as of an `Estimate`.
    - `cures`: by name, how other experiments would change the error.

    **Example:** at `outlook`.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Float[np.ndarray, " p"]
    errors: Float[np.ndarray, " p"]
    relative: Float[np.ndarray, " p"]
    identifiability: Identifiability
    cures: Mapping[str, tuple[Cure, ...]]
    title: str
    declared: tuple[tuple[str, float] | None, ...]

    @property
    def notices(self) -> tuple[Notice, ...]:
        return self.identifiability.notices

    @property
    def sentences(self) -> tuple[str, ...]:
        return self.identifiability.sentences

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The head of its table, and the table."""
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
    """A start value, its unit and the error that is to be expected, as a table has them."""
    row = shown(value, error, unit, fixed=declared)
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
