"""Standard errors and intervals of a fit by one noise model, as a table."""

import dataclasses

import numpy as np
from jaxtyping import Float

from frictax.annotations import ArrayLike, Checked
from frictax.fitting import Band, Estimate, FitResult, Knowledge
from frictax.fitting.problem.problem import bounds, upper_bounds
from frictax.fitting.result.estimates import Estimated
from frictax.fitting.result.spread import CovarianceEstimate
from frictax.notice import Notice
from frictax.summary import Summarised, Summary

from ..derived.derived import tied_estimates
from ..friction_curve import friction_band
from .guarded import Guarded
from .linearization import NoiseModel, Samples, White


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Uncertainty(Summarised, Estimated):
    """Standard errors and intervals of a fit by one noise model. `print` shows a table.

    - `found`: the fit; `by`: the noise model; `says`: its assumption about the residuals in words;
      `notices`: reasons to doubt the errors; `warnings`: the notices as sentences.
    - `estimates`: fitted values with standard errors, intervals and degrees of freedom by this
      model; their `covariance` (p, p); `ratio`: standard errors / standard errors for white noise.
    - `dof`: the smallest degrees of freedom among the intervals (Student's t); `level` of the
      intervals; `draws` (k, p): the estimates of k refits, None without refits.

    **Example:** at `FitResult.uncertainty`.
    """

    found: "FitResult"
    by: NoiseModel
    spread: CovarianceEstimate
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
        """The covariance of all fitted parameters, including the initial states of windows."""
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
        """Estimates of the parameters tied to fitted parameters, with errors by this model."""
        return tied_estimates(self.found, self.spread)

    @property
    def half_widths(self) -> Float[np.ndarray, " p"]:
        """Half of the width of each interval, before the parameter's domain limits the interval."""
        half = self.spread.half_width(self.level, np.eye(len(self.found.shown))[self.found.shown])
        return np.where(np.isfinite([e.standard_error for e in self.estimates]), half, np.nan)

    @property
    def freedom(self) -> str:
        """The smallest and the largest degrees of freedom of the intervals, as text."""
        known = [e.dof for e in self.estimates if e.knowledge is not Knowledge.UNKNOWN]
        finite = [dof for dof in known if np.isfinite(dof)] or [self.dof]
        ends = dict.fromkeys(
            f"{x:.0f}" if x >= 10 else f"{x:.1f}".removesuffix(".0")
            for x in (min(finite), max(finite))
        )
        return f"{' to '.join(ends)} degrees of freedom"

    @property
    def ratio(self) -> dict[str, float]:
        """The standard errors divided by those for white residuals, by parameter name."""
        white = np.sqrt(np.diag(self.found.full_covariance)[self.found.shown])
        pairs = zip(self.estimates, white, strict=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            return {e.name: float(e.standard_error / w) for e, w in pairs}

    def friction(self, contact: str | None, velocity: ArrayLike, label: str | None = None) -> Band:
        """Return the friction of `contact` [N or N.m] at each velocity, with the pointwise
        confidence band by this noise model (delta method). For a contact under a normal force, the
        result is the friction coefficient. `label`: the record, if parameters differ by record.
        """
        return friction_band(self.found, velocity, contact, label, self.spread, self.level)

    def motion(self, label: str) -> tuple[Float[np.ndarray, "*w n c"], Float[np.ndarray, "*w n c"]]:
        """Return the lower and the upper limit [SI] of the pointwise confidence band of the
        prediction that the objective compares with record `label` (delta method). The band does not
        include the noise of a new measurement. The limits are nan for samples without a weight.
        """
        i = self.found.number(label)
        weight = np.asarray(self.found.problem.prepared[i].weight)
        rows = np.ravel(Samples(self.found.problem).rows[i])
        half = self.spread.half_width(self.level, self.found.full_jacobian[rows])
        with np.errstate(divide="ignore", invalid="ignore"):
            half = half.reshape(weight.shape) / np.where(weight > 0, weight, np.nan)
        middle = self.found.predicted(label)
        return middle - half, middle + half

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the header of the table, and its rows."""
        head = ("parameter", "value", "unit", "std. error")
        rows = [
            (*e.cells, f"{ratio:.1f}" if np.isfinite(ratio) else "")
            for e, ratio in zip(self.estimates, self.ratio.values(), strict=True)
        ]
        rows += [(*e.cells, "") for e in self.tied]
        return (*head, f"{100 * self.level:g} % interval", "x white"), rows

    @property
    def title(self) -> str:
        """The title of the table: the noise model, and its assumption about the residuals."""
        freedom = f" ({self.freedom})" if self.dof < 100 else ""
        return f"{type(self.by).__name__}: {self.says}{freedom}"

    def _summary(self) -> Summary:
        return Summary(self.title, self.rows(), "lrlrlr", notices=self.warnings)


def in_words(found: FitResult) -> list[str]:
    """Return a sentence on the noise model and on interval widths compared with white noise."""
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


def usual_spread(found: FitResult) -> CovarianceEstimate:
    """Return the covariance of the fitted parameters by the default noise model, `Guarded()`."""
    return Guarded().spread(found)


def uncertainty(found: FitResult, by: Checked[NoiseModel] | None = None) -> Uncertainty:
    """Return errors and intervals by a noise model: `Guarded()`, `Autoregression()`, `Clustered()`,
    `HAC()`, `BlockBootstrap()`, `Jackknife(4)`, `White()`. The default is `Guarded()`, as in `fit`.

    In this example, the error of the sensor at a sample contains 0.9 of the error at the previous
    sample. The standard errors for white noise are about three times too small:

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
    HAC: autocorrelated residuals: kernel 0.0048 s wide
    parameter                 value   unit  std. error  95 % interval     x white
    friction.f_pos.F_Coulomb  1.2521  N     0.0011      1.2499 to 1.2542  3.1
    """
    if by is not None and not isinstance(by, NoiseModel):
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
        # For a parameter at its bound, the interval has one known end, the bound.
        if known is Knowledge.AT_BOUND:
            low, high = (b if x[i] == b else np.nan for b in (lower[i], upper[i]))
        value, sd, low, high, freedom = map(float, (x[i], error[i], low, high, dof[i]))
        unit = found.unit_of(u)
        declared = found.in_declared_unit(unit, u.path, u.record, value)
        estimates.append(Estimate(n, path, value, sd, low, high, unit, known, freedom, declared))
    return Uncertainty(found, Guarded() if by is None else by, spread, tuple(estimates))
