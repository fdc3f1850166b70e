"""The table of terms that a fitted machine lacks, and its text."""

import dataclasses

import numpy as np

from frictax.fitting import FitResult
from frictax.fitting.result.worth import MISFIT
from frictax.handover import Verb
from frictax.parameters import UnknownName
from frictax.summary import Summarised, Summary
from frictax.text import amount, format_estimate
from frictax.verbs import MissingVerbs


@dataclasses.dataclass(frozen=True, eq=False)
class MissingTerm:
    """A term that a model may lack.

    - `name`; `value`, `standard_error`, `unit` of the coefficient (for a ripple, the amplitude),
      fitted together with the parameters of the fit; `period` [m or rad] and `phase` [rad] of a
      ripple, which is value*cos(2*pi*s/period - phase) at the position or angle s.
    - `misfit`: root mean square residual with the term, in the unit of `Missing.unit`; from a refit
      if `is_refitted`, otherwise predicted. `own`: fraction of the sum of squares of the term's
      effect that the fitted parameters do not explain.
    - `chance`: probability that any candidate of the table explains as much if the residuals are
      autocorrelated noise; `alike`: names of candidates with the same effect on the record.
    - `is_significant`: whether `chance` is below 1 % and a refit confirms the term. The refitted
      value must differ from 0 and be possible, and the refit must reduce the sum of squares by more
      than half of the predicted reduction.

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
    """A table of the terms that a fitted machine may lack, the best first. `print` shows it.

    - `terms`: one term for each class of candidates that the record cannot distinguish, the best
      first; ``table["drag"]``: the first term with "drag" in its name or in a name of `alike`.
    - `found`: the missing terms in the order of the search, each fitted with the previous terms.
      `misfit`: root mean square residual of the fit; `left`: with all terms of `found` in the
      model. Both numbers are in `unit`; for several channels or noise that differs between records
      or samples, `unit` is "" and both numbers are in standard deviations of the noise.
    - `untold`: candidates that were not tested, because the fitted parameters explain their effect
      on the record, or their value is not possible (friction that accelerates); `of`: the fit.
    - `above`: the misfit divided by the noise, for the output with the largest ratio; nan if the
      misfit is not far above the noise, or if the noise is unknown.
    - `structures()`: the machine as fitted, and machines with one refitted term each, for
      ``fx.compare(record, table.structures())``.

    The simulated outputs are differentiated with respect to the coefficient of each candidate at 0.
    The part of a derivative that fitted parameters and initial states of windows explain is
    projected out. Priors are left out: the parameters are first fitted again without them. With a
    robust loss, each residual keeps the weight that the fit gave it. A term is missing if noise
    with the autocorrelation of the residuals cannot reduce the misfit as much. Three tests must
    exclude noise:

    - an F test after an autoregression whitens the residuals (1 %);
    - an F test of the score, the derivative of the log likelihood (0.1 %, on windows 1 %);
    - a test by the differences between 16 blocks of time. This test is left out if the p values of
      the first two tests are so small that noise is impossible.

    All tests are corrected for the number of candidates (S. Holm, Scandinavian Journal of
    Statistics 6, 1979). The best three by Schwarz's criterion and the most significant ones are
    refitted. The best of the confirmed terms (`MissingTerm.is_significant`), or a simpler term that
    is nearly as good, is added to the model. Then the remaining candidates are tested again.

    If the residuals are not white with any term, free runs are fitted too, with a body split into
    two halves and a spring between them. For a fit on windows, a compliance must be among the best
    candidates. If a spring is found, `misfit` and `left` are those of the free runs.

    **Source:** score test: C. R. Rao, Proceedings of the Cambridge Philosophical Society 44, 1948;
    the test as an index of parameters to free: D. Sörbom, Psychometrika 54, 1989.

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
        """The missing terms as sentences."""
        out, left = [], self.above * self.left / self.misfit if self.found else self.above
        for k, term in enumerate(self.found):
            names, alike = term.alike, ""
            if names:
                more = f" and {len(names) - 4} more" if len(names) > 5 else ""
                some = ", ".join(names[:4] if more else names) + more
                alike = f" The record cannot separate it from {some}."
            out.append(
                f"{'Then a' if k else 'A'} term is missing: {_name_with_period(term)},"
                f" {_value_in_words(term)}; with it the misfit is {self._size(term.misfit)}.{alike}"
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
        """A sentence with the names of the candidates that were not tested."""
        return (
            "These candidates are not tested, because they have no effect, are explained by the"
            f" fitted parameters, or need an impossible value: {', '.join(self.untold)}."
        )

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the header and the ten best rows of the table. A star marks a significant term."""
        return ("", "candidate", "misfit with it", "value", "chance", "own"), [
            (
                "*" if term.is_significant else "",
                _name_with_period(term),
                self._size(term.misfit) + (" refitted" if term.is_refitted else ""),
                _value_in_words(term),
                "< 1e-9" if term.chance < 1e-9 else f"{term.chance:.2g}",
                f"{100 * term.own:.0f} %" if term.own > 0.1 else f"{100 * term.own:.2g} %",
            )
            for term in self.terms[:10]
        ]

    def _size(self, x: float) -> str:
        return amount(x, self.unit) if self.unit else f"{x:.3g} sd"

    def _summary(self) -> Summary:
        title = f"Missing terms of the model (misfit {self._size(self.misfit)})"
        untold = (self.untold_in_words,) if self.untold else ()
        return Summary(title, self.rows(), "lllllr", untold, above=self.sentences)


def _name_with_period(term: MissingTerm) -> str:
    if term.period is None:
        return term.name
    place = "rad" if term.unit == "N.m" else "m"
    return f"{term.name} (period {amount(term.period, place)})"


def _value_in_words(term: MissingTerm) -> str:
    if not np.isfinite(term.standard_error):
        return f"about {amount(term.value, term.unit)}"
    row = format_estimate(term.value, term.standard_error, term.unit)
    return f"{row.value} +- {row.error} {row.unit}".removesuffix(" 1")
