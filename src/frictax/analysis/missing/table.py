"""What a fitted machine lacks, as a table that is printed."""

import dataclasses

import numpy as np

from frictax.fitting import FitResult
from frictax.fitting.result.worth import MISFIT
from frictax.handover import Verb
from frictax.parameters import UnknownName
from frictax.summary import Summarised, Summary
from frictax.text import amount, shown
from frictax.verbs import MissingVerbs


@dataclasses.dataclass(frozen=True, eq=False)
class MissingTerm:
    """A term that a model may lack.

    - `name`; `value`, `standard_error`, `unit` of its coefficient (of a ripple, its amplitude),
      others moving along; `period` [m or rad] and `phase` [rad] of a ripple, which is
      value*cos(2*pi*s/period - phase).
    - `misfit`: the root mean square of the weighted residuals with it, by a refit where
      `is_refitted`, else predicted; `own`: the share of its effect that the fitted numbers cannot
      imitate.
    - `chance`: that coloured noise alone would explain as much by any candidate of the table;
      `alike`: the names of what this record cannot distinguish from it.
    - `is_significant`: whether `chance` is below 1 % and a refit confirms the term. Its value
      differs from 0 and is possible, and the refit explains at least half of what was predicted.

    **Example:** at `FitResult.missing`.
    """

    name: str
    value: float
    standard_error: float
    unit: str
    period: float | None
    misfit: float
    own: float
    chance: float
    is_significant: bool
    is_refitted: bool
    alike: tuple[str, ...]
    phase: float | None = None


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Missing(Summarised, MissingVerbs):
    """What a fitted machine lacks: each candidate with what it would do, best first. Print it.

    - `terms`: the classes of candidates that the record can tell apart, the best first;
      ``table["drag"]``: the first whose name, or one alike, holds that text.
    - `found`: the names of those that are missing, in the order in which they were found, each with
      the ones before in the model; `misfit` of the fit, `left` with all of these, in standard
      deviations as given, or in SI units where none was; `unit`.
    - `untold`: candidates that the fitted numbers imitate on this record, or whose value would not
      be possible, such as friction that drives; `of`: the fit.
    - `above`: the misfit over the noise, of the output where that is largest; nan where the misfit
      is not far above the noise, or no noise is known.
    - `structures()`: the machine as fitted and with each of the terms that were refitted, for
      ``fx.compare(record, table.structures())``.

    For each candidate term the simulated outputs are differentiated by its coefficient at 0, and
    what the fitted numbers (and the starts of windows) could explain is taken out. It is called
    missing where the fall of the misfit is more than noise of the residuals' own colour would do:
    by an F test after an autoregression whitens them (1 %), and by a t test with the score's own
    spread (0.1 %; of windows 1 %, of the residuals before the candidate), and by what differs
    between 16 blocks of time, all allowing for the candidates that were tried (S. Holm,
    Scandinavian Journal of Statistics 6, 1979); or where it leaves residuals that are, whitened,
    as even as white noise, and the first two are beyond all doubt. The best three by Schwarz's
    criterion and the surest are refitted. Of those that are significant, possible and confirmed
    (`MissingTerm.is_significant`) the best is taken into the model, or a plainer one that is nearly
    as good, and the others are tested again. Where none leaves white noise,
    free runs are fitted with a body in two, too, and a spring between; of a fit on windows, whose
    starts nobody measures beyond a spring, where a compliance is among the best: `misfit` and
    `left` are those of the free runs then.

    **Source:** score test: C. R. Rao, Proceedings of the Cambridge Philosophical Society 44, 1948;
    as an index of what to free: D. Sörbom, Psychometrika 54, 1989.

    **Example:** at `FitResult.missing`.
    """

    terms: tuple[MissingTerm, ...]
    found: tuple[MissingTerm, ...]
    misfit: float
    left: float
    unit: str
    untold: tuple[str, ...]
    of: FitResult
    above: float = float("nan")

    def __getitem__(self, name: str) -> MissingTerm:
        for term in (*self.found, *self.terms):
            if any(name in each for each in (term.name, *term.alike)):
                return term
        known = ", ".join(term.name for term in self.terms)
        raise UnknownName(f"There is no candidate {name!r} in this table. It has: {known}.")

    def _ipython_key_completions_(self) -> list[str]:
        return list(dict.fromkeys(term.name for term in (*self.found, *self.terms)))

    _repr_html_ = Verb("frictax.report.cards:missing_html")

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is missing, in words."""
        out, left = [], self.above * self.left / self.misfit if self.found else self.above
        for k, term in enumerate(self.found):
            alike = (
                f" The record cannot separate it from {_some(term.alike)}." if term.alike else ""
            )
            out.append(
                f"{'Then a' if k else 'A'} term is missing: {_titled(term)}, {_valued(term)}; with"
                f" it the misfit is {self._size(term.misfit)}.{alike}"
            )
        if left > MISFIT:
            after, other = (" then", "other ") if self.found else ("", "")
            out.append(
                f"The misfit is{after} {left:.3g} times the noise, and none of the"
                f" {other}candidates explains it."
            )
        return tuple(out or ["No candidate is missing at the 1 % level."])

    @property
    def untold_in_words(self) -> str:
        """The candidates that were not judged, in a sentence."""
        return (
            "Not judged, because they have no effect, are explained by the fitted parameters, or"
            f" need an impossible value: {', '.join(self.untold)}."
        )

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The head of its table, and the ten best rows; a star marks what is sure by itself."""
        return ("", "candidate", "misfit with it", "value", "chance", "own"), [
            (
                "*" if term.is_significant else "",
                _titled(term),
                self._size(term.misfit) + (" refitted" if term.is_refitted else ""),
                _valued(term),
                "< 1e-9" if term.chance < 1e-9 else f"{term.chance:.2g}",
                _share(term.own),
            )
            for term in self.terms[:10]
        ]

    def _size(self, x: float) -> str:
        return amount(x, self.unit) if self.unit else f"{x:.3g} sd"

    def _summary(self) -> Summary:
        title = f"Missing terms of the model (misfit {self._size(self.misfit)})"
        untold = (self.untold_in_words,) if self.untold else ()
        return Summary(title, self.rows(), "lllllr", untold, above=self.sentences)


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 5 else ""
    return ", ".join(names[:4] if more else names) + more


def _share(own: float) -> str:
    return f"{100 * own:.0f} %" if own > 0.1 else f"{100 * own:.2g} %"


def _titled(term: MissingTerm) -> str:
    if term.period is None:
        return term.name
    place = "rad" if term.unit == "N.m" else "m"
    return f"{term.name} (period {amount(term.period, place)})"


def _valued(term: MissingTerm) -> str:
    if not np.isfinite(term.standard_error):
        return f"about {amount(term.value, term.unit)}"
    row = shown(term.value, term.standard_error, term.unit)
    return f"{row.value} +- {row.error} {row.unit}".removesuffix(" 1")
