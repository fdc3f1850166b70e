"""How well a fit to records knows its numbers, where the residuals are not white noise."""

import dataclasses

import equinox as eqx
import numpy as np
from jaxtyping import Float

from frictax.annotations import ArrayLike, Checked
from frictax.arguments import whole
from frictax.fitting import Band, Estimate, FitResult, Knowledge
from frictax.fitting.problem.problem import PreparedSweep, Problem, bounds, upper_bounds
from frictax.fitting.result.estimates import Estimated
from frictax.fitting.result.spread import Spread, alike
from frictax.notice import Notice
from frictax.text import aligned

from ..friction_curve import friction_band
from .accounts import AbstractErrors, White, gradients
from .guarded import Guarded
from .hac_covariance import long_run_covariance
from .refits import Samples, refitted


class HAC(AbstractErrors):
    """Residuals that depend on those near in time, and whose size may change (heteroskedasticity
    and autocorrelation consistent).

    covariance = B (sum over lags j of kernel(j/bandwidth) S_j) B with B = inv(J'J) and S_j the
    covariance, j samples apart, of the gradients J'r of each sample, prewhitened. Right where the
    record is some hundred times as long as its residuals remember, or more. An error that lasts as
    long as the record, such as a drift, no such account can see: take `Jackknife` over repeats.

    **Arguments:** `bandwidth` [s]; chosen from the residuals unless given.

    **Source:** see `frictax.analysis.errors.hac_covariance.long_run_covariance`.
    """

    bandwidth: float | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        _check_time("`HAC.bandwidth`", self.bandwidth, "to have it chosen.")

    def spread(self, found: FitResult) -> Spread:
        problem, (bread, pulls) = found.problem, gradients(found)
        scale = np.sqrt(np.where(np.diag(bread) > 0, np.diag(bread), 1.0))
        size, directions = np.linalg.eigh(bread / np.outer(scale, scale))  # whatever the units
        turn = (scale[:, None] * directions * np.sqrt(np.maximum(size, 0.0)))[:, size > 1e-14]
        samples, meat, widths = Samples(problem), np.zeros((turn.shape[1], turn.shape[1])), []
        for i, (label, data) in enumerate(found.records.items()):
            mine = samples.record == i
            if isinstance(problem.prepared[i], PreparedSweep):  # rows of a sweep are in no order
                terms = pulls[mine] @ turn
                meat += terms.T @ terms
                continue
            scores = np.zeros((samples.sizes[i], pulls.shape[1]))
            np.add.at(scores, samples.sample[mine], pulls[mine])
            step = found.records[label].duration / max(data.n - 1, 1)
            # In directions in which white residuals would give unit errors: parameters of one
            # effect look alike to an autoregression.
            summed, width = long_run_covariance(
                scores @ turn, None if self.bandwidth is None else self.bandwidth / step
            )
            meat += len(scores) * summed
            widths.append(width * step)
        # what priors say is no residual
        known = found.full_jacobian[found.n :] @ turn * found.noise_scale
        meat += known.T @ known
        rows = found.dof + turn.shape[1]
        width = f"kernel {max(widths):.2g} s wide" if widths else "sweeps only"
        covariance = turn @ meat @ turn.T * rows / found.dof
        says = f"residuals that depend on their neighbours: {width}"
        return Spread(covariance, alike(found.dof), None, says)


class BlockBootstrap(AbstractErrors):
    """Fits to records put together anew from blocks of the measured ones, drawn with replacement
    (each block keeps its place in time and counts as often as it was drawn).

    The blocks must be longer than the residuals remember, and many: 20 or more to a record. Priors
    are refused.

    **Arguments:** `length` of a block [s], a twentieth of the record unless given; `draws`: how
    many fits; `seed`.

    **Source:** H. R. Künsch, Annals of Statistics 17 (1989); weights in place of copies: S.
    Chatterjee, A. Bose, Annals of Statistics 33 (2005).
    """

    length: float | None = eqx.field(static=True, default=None)
    draws: int = eqx.field(static=True, default=200)
    seed: int = eqx.field(static=True, default=0)

    def __check_init__(self) -> None:
        _check_time("`BlockBootstrap.length`", self.length, "for a twentieth of the record.")
        whole("`BlockBootstrap.draws`", self.draws, 20, "200 give errors to 5 %.")

    def check(self, problem: Problem) -> None:
        _refuse(problem, "BlockBootstrap")

    def spread(self, found: FitResult) -> Spread:
        self.check(found.problem)
        samples, random = Samples(found.problem), np.random.default_rng(self.seed)
        blocks = [_blocks(found, i, samples, self.length) for i in range(len(samples.sizes))]
        numbers = [int(block[-1]) + 1 for block in blocks]
        few = min(numbers)
        if few < 4:
            raise ValueError(
                f"`BlockBootstrap` needs at least 4 blocks in each record, got {few}. Give a"
                " shorter `length`."
            )
        counts = []
        for _ in range(self.draws):
            drawn = [random.multinomial(k, np.full(k, 1.0 / k)) for k in numbers]
            times = [n[block].astype(float) for n, block in zip(drawn, blocks, strict=True)]
            counts.append(samples.of(times))
        x, ok = refitted(found, np.asarray(counts))
        finite = np.all(np.isfinite(x), axis=1)
        x, done = x[finite], int(finite.sum())
        if done < 0.8 * self.draws:
            raise ValueError(
                f"`BlockBootstrap`: only {done} of {self.draws} fits gave a number. Fit fewer"
                " parameters, or on `Windows`."
            )
        says = (
            f"{done} fits to blocks drawn with replacement, {few} blocks to a"
            f" record{_at_kinks(ok[finite])}"
        )
        return Spread(np.atleast_2d(np.cov(x, rowvar=False)), alike(few - 1), x, says)


class Jackknife(AbstractErrors):
    """Fits that leave out one repeat of the motion after the other: what differs between repeats is
    error, whatever makes it differ.

    variance = (k - 1)/k * sum over the k fits of (value - mean)**2, with k - 1 degrees of freedom;
    of several records, the sum over them (the degrees of freedom of one where records have numbers
    of their own, else of all).

    **Arguments:** `repeats`: how many equal parts each record is cut into, a cycle of its motion
    each; None leaves out whole records.

    **Source:** B. Efron, *The Jackknife, the Bootstrap and Other Resampling Plans* (1982), chapter
    3.
    """

    repeats: int | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.repeats is not None:
            whole("`Jackknife.repeats`", self.repeats, 2, "Leave it out for whole records.")

    def check(self, problem: Problem) -> None:
        _refuse(problem, "Jackknife")
        if self.repeats is None and len(problem.prepared) < 2:
            raise ValueError(
                "`Jackknife()` leaves out whole records, and there is one. Say how often its motion"
                " repeats: Jackknife(4)."
            )
        if self.repeats is None and _has_own(problem):
            raise ValueError(
                "`Jackknife()` cannot leave out a record that has numbers of its own. Say how often"
                " each repeats: Jackknife(4)."
            )

    def spread(self, found: FitResult) -> Spread:
        self.check(found.problem)
        samples, own = Samples(found.problem), _has_own(found.problem)
        counts, owners = [], []
        for i, (size, prepared) in enumerate(
            zip(samples.sizes, found.problem.prepared, strict=True)
        ):
            # A sweep is no motion that repeats itself: it is left out whole, or stays.
            swept = isinstance(prepared, PreparedSweep)
            parts = 1 if self.repeats is None else 0 if swept else self.repeats
            for k in range(parts):
                kept = [np.ones(n) for n in samples.sizes]
                kept[i][slice(k * size // parts, (k + 1) * size // parts)] = 0.0
                counts.append(samples.of(kept))
                owners.append(0 if self.repeats is None else i)
        x, ok = refitted(found, np.asarray(counts))
        if not np.all(np.isfinite(x)):
            raise ValueError(
                "`Jackknife`: a fit without one of the parts failed. Fit fewer parameters, or on"
                " `Windows`."
            )
        covariance, dof = np.zeros((x.shape[1],) * 2), []
        for i in dict.fromkeys(owners):
            mine = x[np.asarray(owners) == i]
            away = mine - mine.mean(axis=0)
            covariance += (len(mine) - 1) / len(mine) * away.T @ away
            dof.append(len(mine) - 1)
        says = (
            f"{len(x)} fits, each without one"
            f" {'record' if self.repeats is None else 'repeat'}{_at_kinks(ok)}"
        )
        return Spread(covariance, alike(min(dof) if own else sum(dof)), x, says)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Uncertainty(Estimated):
    """What an account of the residuals makes of a fit. Print it.

    - `found`: the fit; `by`: the account; `says`: how the errors were found; `notices`: what
      speaks against them; `warnings`: the same as sentences.
    - `estimates`: the fitted values with these errors, intervals and degrees of freedom;
      `covariance` (p, p); `ratio`: its errors over those of white noise.
    - `dof`: the least degrees of freedom of Student's t in the intervals; `level`; `draws` (k, p):
      the values of all fits, where there were many.
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
        return (*head, f"{100 * self.level:g} % interval", "x white"), [
            (*e.cells, f"{ratio:.1f}" if np.isfinite(ratio) else "")
            for e, ratio in zip(self.estimates, self.ratio.values(), strict=True)
        ]

    def __str__(self) -> str:
        freedom = f" ({self.freedom})" if self.dof < 100 else ""
        first = f"{type(self.by).__name__}: {self.says}{freedom}"
        return "\n".join(
            [first, *aligned(*self.rows()), *(f"! {sentence}" for sentence in self.warnings)]
        )

    __repr__ = __str__


def usual(problem: Problem) -> AbstractErrors:
    """The account of the residuals of a fit of `problem` unless another is asked for: `Guarded` of
    records.
    """
    return White() if all(isinstance(p, PreparedSweep) for p in problem.prepared) else Guarded()


def in_words(found: FitResult) -> list[str]:
    """Which account of the residuals the intervals are of, unless they are white, and how much
    wider that makes them.
    """
    if isinstance(usual(found.problem), White):
        return []
    u, white = found.uncertainty(), found.uncertainty(White())
    with np.errstate(divide="ignore", invalid="ignore"):
        wider = u.half_widths / white.half_widths
    wider = wider[np.isfinite(wider) & [e.knowledge is not Knowledge.UNKNOWN for e in u.estimates]]
    out = f"Intervals ({type(u.by).__name__}): {u.says} ({u.freedom})."
    if not wider.size:
        return [out]
    narrower = wider.min() >= 1
    ratios = (wider.min(), wider.max()) if narrower else (1 / wider.max(), 1 / wider.min())
    ends = dict.fromkeys(f"{x:.2g}" for x in ratios)
    if list(ends) == ["1"]:
        return [f"{out} Were residuals white they would be as wide."]
    how = "times narrower" if narrower else "times as wide"
    return [f"{out} Were residuals white they would be {' to '.join(ends)} {how}."]


def usual_spread(found: FitResult) -> Spread:
    """What the usual account makes of a fit."""
    return usual(found.problem).spread(found)


def uncertainty(found: FitResult, by: Checked[AbstractErrors] | None = None) -> Uncertainty:
    """Errors and intervals by an account of the residuals: `Guarded()`, `Autoregression()`,
    `Clustered()`, `HAC()`, `BlockBootstrap()`, `Jackknife(4)`, `White()`.

    Unless given, that of the fit's own errors: `Guarded()`, and of a sweep `White()`.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 2.0, 401)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 2.0),
    ... )
    >>> noise = 0.01 * np.random.default_rng(0).standard_normal(401)
    >>> record = fx.Record(t, outputs={"mass.v": 0.75 * t + noise}, name="pull")
    >>> found = fx.fit(block, record, free=["friction.f_pos.F_Coulomb"])
    >>> print(found.uncertainty(fx.HAC()))
    HAC: residuals that depend on their neighbours: kernel ... s wide
    parameter                 value  unit  std. error  95 % interval  x white
    friction.f_pos.F_Coulomb  ...    N     ...         ... to ...     ...
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
        low, high = np.maximum(x[i] - half[i], lower[i]), np.minimum(x[i] + half[i], upper[i])
        if known is Knowledge.AT_BOUND:  # of which one end is known
            low, high = (b if x[i] == b else np.nan for b in (lower[i], upper[i]))
        value, sd, low, high, freedom = map(float, (x[i], error[i], low, high, dof[i]))
        unit = found.unit_of(u)
        estimates.append(Estimate(n, path, value, sd, low, high, unit, known, freedom))
    return Uncertainty(found, usual(found.problem) if by is None else by, spread, tuple(estimates))


def _check_time(what: str, value: float | None, remedy: str) -> None:
    if value is not None and not value > 0:
        raise ValueError(f"{what} must be > 0 s, got {value}. Leave it out {remedy}")


def _has_own(problem: Problem) -> bool:
    """Whether records have numbers of their own."""
    return any(u.record is not None for u in problem.unknowns if not u.hidden)


def _refuse(problem: Problem, kind: str) -> None:
    """What fits to other weights of the samples cannot account for."""
    if problem.priors:
        raise ValueError(
            f"`{kind}` cannot draw priors anew, so that its errors would be too small. Take"
            " `HAC()`."
        )
    if problem.loss.rounds > 1 and kind == "BlockBootstrap":
        raise ValueError(f"`{kind}` knows `Squares()` only. Take `HAC()` or `Jackknife(...)`.")


def _at_kinks(settled: np.ndarray) -> str:
    """How many fits ended where a stop or a breakaway appears or vanishes, so that the misfit has a
    kink.
    """
    return "" if settled.all() else f"; {int(np.sum(~settled))} of them ended at a kink"


def _blocks(found: FitResult, i: int, samples: Samples, length: float | None) -> np.ndarray:
    """The number of the block of each sample of record i."""
    data, size = list(found.records.values())[i], samples.sizes[i]
    if isinstance(found.problem.prepared[i], PreparedSweep):
        return np.arange(size)
    step = data.duration / max(data.n - 1, 1)
    each = max(int(round((data.duration / 20 if length is None else length) / step)), 1)
    count = max(size // each, 1)
    return np.minimum(np.arange(size) // each, count - 1)
