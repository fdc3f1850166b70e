"""How well a fit to records knows its numbers, where the residuals are not white noise."""

import dataclasses

import numpy as np
from jaxtyping import Float

from frictax.annotations import ArrayLike, Checked
from frictax.fitting import Band, Estimate, FitResult, Knowledge
from frictax.fitting.problem.problem import bounds, upper_bounds
from frictax.fitting.result.estimates import Estimated
from frictax.fitting.result.spread import Spread
from frictax.notice import Notice
from frictax.summary import Summarised, Summary

from ..derived.derived import tied
from ..friction_curve import friction_band
from .accounts import AbstractErrors, White
from .guarded import Guarded
from .refits import Samples


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Uncertainty(Summarised, Estimated):
    """What an account of the residuals makes of a fit. Print it.

    - `found`: the fit; `by`: the account; `says`: how the errors were found; `notices`: what
      speaks against them; `warnings`: the same as sentences.
    - `estimates`: the fitted values with these errors, intervals and degrees of freedom;
      `covariance` (p, p); `ratio`: its errors over those of white noise.
    - `dof`: the least degrees of freedom of Student's t in the intervals; `level`; `draws` (k, p):
      the values of all fits, where there were many.

    **Example:** at `FitResult.uncertainty`.
    """

    found: "FitResult"
    by: AbstractErrors
    spread: Spread
    estimates: tuple[Estimate, ...]

    @property
    def says(self) -> str:
        return self.spread.says

    @property
    def notices(self) -> tuple[Notice, ...]:
        return self.spread.notices

    @property
    def level(self) -> float:
        return self.found.level

    @property
    def full(self) -> Float[np.ndarray, "q q"]:
        """The covariance of all fitted numbers, the starts of windows too."""
        return self.spread.covariance

    @property
    def covariance(self) -> Float[np.ndarray, "p p"]:
        return self.full[np.ix_(self.found.shown, self.found.shown)]

    @property
    def draws(self) -> Float[np.ndarray, "k p"] | None:
        return None if self.spread.draws is None else self.spread.draws[:, self.found.shown]

    @property
    def dof(self) -> float:
        return min(
            (e.dof for e in self.estimates if np.isfinite(e.dof)), default=float(self.found.dof)
        )

    @property
    def tied(self) -> tuple[Estimate, ...]:
        """What follows from them, with these errors."""
        return tied(self.found, self.spread)

    @property
    def half_widths(self) -> Float[np.ndarray, " p"]:
        """Half of each interval, as far as no bound cuts it off."""
        half = self.spread.half_width(self.level, np.eye(len(self.found.shown))[self.found.shown])
        return np.where(np.isfinite([e.standard_error for e in self.estimates]), half, np.nan)

    @property
    def freedom(self) -> str:
        """The degrees of freedom in words."""
        known = [e.dof for e in self.estimates if e.knowledge is not Knowledge.UNKNOWN]
        told = [dof for dof in known if np.isfinite(dof)] or [self.dof]
        ends = dict.fromkeys(
            f"{x:.0f}" if x >= 10 else f"{x:.1f}".removesuffix(".0") for x in (min(told), max(told))
        )
        return f"{' to '.join(ends)} degrees of freedom"

    @property
    def ratio(self) -> dict[str, float]:
        """How many times as large as those of white residuals the errors are, by name."""
        white = np.sqrt(np.diag(self.found.full_covariance)[self.found.shown])
        pairs = zip(self.estimates, white, strict=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            return {e.name: float(e.standard_error / w) for e, w in pairs}

    def friction(self, contact: str | None, velocity: ArrayLike, label: str | None = None) -> Band:
        """The friction of `contact` [N or N.m] at each velocity, with the pointwise band of these
        errors (delta method); for a contact under a normal force, the coefficient. `label`: the
        record, where the contact has values of each record's own.
        """
        return friction_band(self.found, velocity, contact, label, self.spread, self.level)

    def motion(self, label: str) -> tuple[Float[np.ndarray, "*w n c"], Float[np.ndarray, "*w n c"]]:
        """Lower and upper end of the pointwise band of what the objective predicts of record
        `label` (delta method) [SI]; of the prediction, without the noise of a next measurement; nan
        where a sample has no weight.
        """
        i = self.found.number(label)
        weight = np.asarray(self.found.problem.prepared[i].weight)
        here = Samples(self.found.problem).record == i
        g = self.found.full_jacobian[: len(here)][here]
        half = self.spread.half_width(self.level, g)
        with np.errstate(divide="ignore", invalid="ignore"):
            half = half.reshape(weight.shape) / np.where(weight > 0, weight, np.nan)
        middle = self.found.predicted(label)
        return middle - half, middle + half

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The head of its table, and the table."""
        head = ("parameter", "value", "unit", "std. error")
        rows = [
            (*e.cells, f"{ratio:.1f}" if np.isfinite(ratio) else "")
            for e, ratio in zip(self.estimates, self.ratio.values(), strict=True)
        ]
        rows += [(*e.cells, "") for e in self.tied]
        return (*head, f"{100 * self.level:g} % interval", "x white"), rows

    @property
    def title(self) -> str:
        """Whose account it is, and what it makes of the residuals."""
        freedom = f" ({self.freedom})" if self.dof < 100 else ""
        return f"{type(self.by).__name__}: {self.says}{freedom}"

    def _summary(self) -> Summary:
        return Summary(self.title, self.rows(), "lrlrlr", notices=self.warnings)


def in_words(found: FitResult) -> list[str]:
    """Which account of the residuals the intervals are of, and how much wider that makes them."""
    u, white = found.uncertainty(), found.uncertainty(White())
    with np.errstate(divide="ignore", invalid="ignore"):
        wider = u.half_widths / white.half_widths
    wider = wider[np.isfinite(wider) & [e.knowledge is not Knowledge.UNKNOWN for e in u.estimates]]
    out = f"Intervals ({type(u.by).__name__}): {u.says} ({u.freedom})."
    if not wider.size or u.says == white.says:
        return [out]
    narrower = wider.min() >= 1
    ratios = (wider.min(), wider.max()) if narrower else (1 / wider.max(), 1 / wider.min())
    ends = dict.fromkeys(f"{x:.2g}" for x in ratios)
    if list(ends) == ["1"]:
        return [f"{out} The usual formula for white noise gives intervals of the same width."]
    how = f"{' to '.join(ends)} times {'narrower' if narrower else 'as wide'}"
    return [f"{out} The usual formula for white noise would give intervals {how}."]


def usual_spread(found: FitResult) -> Spread:
    """What the usual account makes of a fit."""
    return Guarded().spread(found)


def uncertainty(found: FitResult, by: Checked[AbstractErrors] | None = None) -> Uncertainty:
    """Errors and intervals by an account of the residuals: `Guarded()`, `Autoregression()`,
    `Clustered()`, `HAC()`, `BlockBootstrap()`, `Jackknife(4)`, `White()`.

    Unless given, that of the fit's own errors: `Guarded()`.

    An error of the sensor that keeps 0.9 of itself from sample to sample. Errors for white noise
    are three times too small:

    >>> import frictax as fx, numpy as np
    >>> from scipy.signal import lfilter
    >>> t = np.linspace(0.0, 2.0, 401)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 2.0),
    ... )
    >>> noise = 0.004 * np.random.default_rng(0).standard_normal(401)
    >>> record = fx.Record(
    ...     t, outputs={"mass.v": 0.75 * t + lfilter([1], [1, -0.9], noise)}, name="pull"
    ... )
    >>> found = fx.fit(block, record, free=["friction.f_pos.F_Coulomb"])
    >>> accounts = [fx.White(), fx.Autoregression(), fx.HAC(), fx.Clustered(10), fx.Guarded()]
    >>> for by in [*accounts, fx.BlockBootstrap(draws=100), fx.Jackknife(4)]:
    ...     (error,) = found.uncertainty(by).standard_errors.values()
    ...     print(f"{type(by).__name__}: {error:.4f} N")
    White: 0.0004 N
    Autoregression: 0.0014 N
    HAC: 0.0011 N
    Clustered: 0.0010 N
    Guarded: 0.0014 N
    BlockBootstrap: 0.0009 N
    Jackknife: 0.0013 N
    >>> print(found.uncertainty(fx.HAC()))
    HAC: residuals that depend on their neighbours: kernel 0.0048 s wide
    parameter                 value   unit  std. error  95 % interval     x white
    friction.f_pos.F_Coulomb  1.2521  N     0.0011      1.2499 to 1.2542  3.1
    """
    if by is not None and not isinstance(by, AbstractErrors):
        raise ValueError(
            "`uncertainty` takes Guarded(), Autoregression(), Clustered(), HAC(), BlockBootstrap(),"
            f" Jackknife() or White(), got {by!r}."
        )
    spread = found.spread if by is None else by.spread(found)
    shown, unknowns = found.shown, found.problem.unknowns
    lower, upper, x, active = (
        a[shown] for a in (bounds(unknowns), upper_bounds(unknowns), found.x, found.active)
    )
    directions = np.eye(len(shown))[shown]
    error = np.sqrt(np.where(active, np.diag(spread.covariance)[shown], np.nan))
    dof = np.where(active, spread.dof(directions), np.nan)
    half = np.where(active, spread.half_width(found.level, directions), np.nan)
    estimates = []
    named = [(n, u) for u in unknowns if not u.hidden for n in u.names]
    for i, (n, u) in enumerate(named):
        path, known = n if "@" in n else u.path, found.identifiability.knowledge[n]
        low, high = u.declaration.domain.interval(float(x[i]), float(half[i]))
        if known is Knowledge.AT_BOUND:  # of which one end is known
            low, high = (b if x[i] == b else np.nan for b in (lower[i], upper[i]))
        value, sd, low, high, freedom = map(float, (x[i], error[i], low, high, dof[i]))
        unit = found.unit_of(u)
        declared = found.declared(unit, u.path, u.record, value)
        estimates.append(Estimate(n, path, value, sd, low, high, unit, known, freedom, declared))
    return Uncertainty(found, Guarded() if by is None else by, spread, tuple(estimates))
