"""What records and priors say of all numbers at once: draws from the posterior density."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Shaped

from frictax.annotations import ArrayLike, Checked
from frictax.arguments import whole
from frictax.fitting import Band, Estimate, FitResult, Knowledge
from frictax.fitting.problem.problem import bounds, upper_bounds
from frictax.fitting.result.estimates import Estimated
from frictax.fitting.result.identifiability import listed
from frictax.handover import Verb
from frictax.interrupts import defer_interrupt
from frictax.notice import Notice
from frictax.programs import interruptible_jit
from frictax.progress import Progress, watched
from frictax.text import aligned
from frictax.verbs import PosteriorVerbs

from ..friction_curve import friction_at
from .accounts import effective_samples
from .refits import method_of

_CURVES = 400  # draws that a band of friction is made of


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Posterior(Estimated, PosteriorVerbs):
    """Draws from the posterior density of the fitted numbers. Print it, or draw it by `plot()`.

    - `found`: the fit; `estimates`: medians with standard deviations and intervals of equal tails
      at `level`, in SI units.
    - `draws` (chains, n, p) in the order of `estimates`; `covariance` (p, p) of them; `all_draws`
      (chains, n, q) of `found.x`.
    - `samples`: how many independent ones the residuals were taken to be worth; `widened`: what was
      done to the draws besides, in words.
    - `stats`: what the sampler says of each draw, (chains, n) by ArviZ's names: `lp` (but for a
      constant, and before draws were widened), `diverging`, `acceptance_rate`, `tree_depth`,
      `n_steps`.
    - `r_hat` (p,): 1 where the chains agree; `ess` (p,): how many independent draws they are worth;
      `divergences`: draws at the end of a path that the sampler could not follow.
    - `tied`: what follows from them; `derived(...)`: what is made of them, draw by draw.
    - `notices`: what speaks against it; `warnings`: the same as plain sentences.

    **Source:** A. Vehtari et al., "Rank-normalization, folding, and localization: an improved
    R-hat", Bayesian Analysis 16 (2021), of `r_hat` and `ess`.

    **Example:** at `FitResult.posterior`.
    """

    found: "FitResult"
    estimates: tuple[Estimate, ...]
    covariance: Float[np.ndarray, "p p"]
    draws: Float[np.ndarray, "c n p"]
    all_draws: Float[np.ndarray, "c n q"]
    samples: float
    level: float
    r_hat: Float[np.ndarray, " p"]
    ess: Float[np.ndarray, " p"]
    divergences: int
    notices: tuple[Notice, ...]
    widened: str = ""
    stats: Mapping[str, Shaped[np.ndarray, "c n"]] = dataclasses.field(default_factory=dict)

    def friction(self, contact: str, velocity: ArrayLike, label: str | None = None) -> Band:
        """The friction of `contact` [N or N.m] at each velocity, with the pointwise band of the
        draws; else as `Uncertainty.friction`.
        """
        v = np.atleast_1d(np.asarray(velocity, dtype=float))
        at = friction_at(self.found.problem, contact, v, label, list(self.found.records))
        x = self.all_draws.reshape(-1, self.all_draws.shape[-1])
        x = x[np.unique(np.linspace(0, len(x) - 1, min(len(x), _CURVES)).round().astype(int))]
        low, middle, high = np.quantile(
            np.asarray(interruptible_jit(jax.vmap(at))(jnp.asarray(x))), _ends(self.level), axis=0
        )
        return Band(v, middle, low, high, self.level)

    @functools.cached_property
    def tied(self) -> tuple[Estimate, ...]:
        """What follows from the numbers, over the draws."""
        out: list[Estimate] = []
        for e in self.found.tied:
            path, _, label = e.path.partition("@")
            at = None if not label else label
            of_all = self.derived(lambda p, path=path: p[path], unit=e.unit, label=at).estimates
            k = sum(other.path == e.path for other in out)
            out.append(
                dataclasses.replace(
                    of_all[k], name=e.name, path=e.path, declared=e.declared, tied=e.tied
                )
            )
        return tuple(out)

    _repr_html_ = Verb("frictax.report.notebook.cards:posterior_html")

    @property
    def title(self) -> str:
        """How it was drawn."""
        chains, n = self.draws.shape[:2]
        return (
            f"Posterior: {chains} chains of {n} draws by NUTS; the residuals count as"
            f" {self.samples:.3g} independent ones{self.widened}"
        )

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The head of its table, and the table."""
        interval = f"{100 * self.level:g} % interval"
        rows = [
            (*e.cells, f"{r:.3f}", f"{s:.0f}")
            for e, r, s in zip(self.estimates, self.r_hat, self.ess, strict=True)
        ]
        rows += [(*e.cells, "", "") for e in self.tied]
        return ("parameter", "median", "unit", "std. dev.", interval, "R-hat", "ESS"), rows

    def __str__(self) -> str:
        return "\n".join([self.title, *aligned(*self.rows()), *self.warnings])

    __repr__ = __str__


def posterior(
    found: FitResult,
    *,
    draws: Checked[int] = 1000,
    warmup: Checked[int] = 1000,
    chains: Checked[int] = 4,
    samples: Checked[float] | None = None,
    level: Checked[float] | None = None,
    seed: int = 0,
    progress: Checked[bool | Progress] = False,
) -> Posterior:
    """Draw from the posterior density of all fitted numbers, on the objective of the fit, by the
    No-U-Turn sampler.

    density(x) ~ S(x)**(-n/2) * prior(x) within the bounds, S the sum of squared weighted residuals,
    n the number of independent samples. That is what a normal likelihood becomes when its standard
    deviation is unknown (1/sigma before the measurement) and integrated out. Where an interval of
    `fit` is symmetric and stops at a bound, the density is as skew as the data have it, and a bound
    cuts it off. Residuals of a record remember: taken for white they would count many times over.
    So n is as many as make the density as wide as the errors that the fit prints, in the mean of
    all directions; and as no one number is right for all estimates, the draws are stretched about
    the fit until each is as wide, reflected at bounds. `samples` that are given are taken at their
    word.

    Numbers without a prior are equally probable everywhere between their bounds, in their own unit.
    Where the data do not rule out large values, as for a Stribeck speed that hardly matters, give a
    `Normal` prior or `bounds`, or the chains run off.

    **Arguments:** `draws` kept of each chain, after `warmup` that adapt step and metric; `chains`;
    `samples`, the n above; `level` of the intervals, that of the fit unless given; `seed`;
    `progress` as in `fit`. A key stops it at once; what was drawn so far is returned, if that is
    100 draws of each chain.

    **Returns:** a `Posterior`.

    **Raises:** `ImportError` without the extra ``pip install 'frictax[bayes]'``; `ValueError` for a
    robust loss, which is no likelihood, for numbers that neither data nor priors tell, and where
    runs fail around the fitted values.

    **Source:** M. D. Hoffman, A. Gelman, "The No-U-Turn Sampler", Journal of Machine Learning
    Research 15 (2014), by blackjax.

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
    >>> print(found.posterior(draws=200, warmup=200, chains=2))
    Posterior: 2 chains of 200 draws by NUTS; the residuals count as ... independent ones...
    parameter                 median  unit  std. dev.  95 % interval  R-hat  ESS
    friction.f_pos.F_Coulomb  1.2...  N     0.000...   1.2... to 1.2... ...
    """
    _check(found, draws, warmup, chains, samples, level)
    with defer_interrupt():
        from . import nuts  # with blackjax

    level = found.level if level is None else level
    n = worth(found) if samples is None else float(samples)
    if n <= len(found.x):
        raise ValueError(
            f"`posterior`: the residuals are worth {n:.3g} independent samples, no more than the"
            f" {len(found.x)} numbers that were fitted: the density has no end. Fit fewer, as"
            " without `free_starts`, or record for longer."
        )
    counts = chains, warmup, draws
    with watched(progress, "Drawing") as work:
        drawn = nuts.chains(
            found.problem, method_of(found), _frame(found, n), n, counts, seed, work
        )
    x = drawn.x if samples is not None else _stretched(found, drawn.x, n)
    mine = x[..., found.shown]
    r_hat, ess = (np.atleast_1d(np.asarray(x)) for x in _agreement()(jnp.asarray(mine)))
    flat = mine.reshape(-1, mine.shape[-1])
    low, middle, high = np.quantile(flat, _ends(level), axis=0)
    sd = flat.std(axis=0, ddof=1)
    estimates = tuple(
        dataclasses.replace(
            e,
            value=float(m),
            standard_error=float(s),
            lower=float(a),
            upper=float(b),
            dof=np.nan,
            # the fit's end lies at its bound, the draws lie inside
            knowledge=Knowledge.KNOWN if e.knowledge is Knowledge.AT_BOUND else e.knowledge,
        )
        for e, m, s, a, b in zip(found.estimates, middle, sd, low, high, strict=True)
    )
    notices = []
    if drawn.interrupted:
        notices.append(Notice("draws-interrupted", "", {"drawn": x.shape[1], "asked": draws}))
    divergences = int(drawn.stats["diverging"].sum())
    if divergences:
        notices.append(Notice("divergences", "", {"draws": divergences}))
    apart = [
        e.name for e, r, s in zip(estimates, r_hat, ess, strict=True) if not (r < 1.01 and s > 400)
    ]
    if apart:
        notices.append(Notice("chains-apart", "", {"names": listed(apart)}))
    covariance = np.atleast_2d(np.cov(flat, rowvar=False))
    return Posterior(
        found,
        estimates,
        covariance,
        mine,
        x,
        n,
        level,
        r_hat,
        ess,
        divergences,
        tuple(notices),
        ", and draws are as wide as the errors of the fit" if samples is None else "",
        drawn.stats,
    )


@functools.cache
def _agreement() -> Callable[[Any], Any]:
    """R-hat and the number of independent draws, by a program for all posteriors: step by step they
    take four times as long.
    """
    from blackjax.diagnostics import ess_bulk, rhat

    return interruptible_jit(lambda x: (rhat(x), ess_bulk(x)))


def worth(found: FitResult) -> float:
    """The number of independent samples at which the density is, in the mean of all directions, as
    wide as the errors of the fit; of numbers that no error is known of, `effective_samples`.
    """
    here = np.ix_(*[_told(found)] * 2)
    if not here[0].size:
        return effective_samples(found)
    white, printed = found.full_covariance[here], found.spread.covariance[here]
    narrower = (np.linalg.slogdet(white)[1] - np.linalg.slogdet(printed)[1]) / len(white)
    return len(found.x) + max(found.dof * float(np.exp(min(narrower, 0.0))), 1.0)


def _told(found: FitResult) -> np.ndarray:
    """Where the estimates stand of which the fit knows errors."""
    told = [e.knowledge not in (Knowledge.UNKNOWN, Knowledge.AT_BOUND) for e in found.estimates]
    return np.flatnonzero(found.shown)[np.array(told) & found.active[found.shown]]


def _stretched(found: FitResult, x: Float[np.ndarray, "c n q"], n: float) -> np.ndarray:
    """Draws of the density of `n` samples, as wide as the errors of the fit by a linear map; those
    that leave a bound are reflected.

    **Source:** B. Shaby, "The open-faced sandwich adjustment for MCMC using estimating functions",
    Journal of Computational and Graphical Statistics 23 (2014).
    """
    at = _told(found)
    if not at.size:
        return x
    here, out = np.ix_(at, at), np.array(x)
    white = found.full_covariance[here] * found.dof / (n - len(found.x))
    size = np.sqrt(np.diag(white))
    root, back = _root(white / np.outer(size, size))
    wide = back @ (found.spread.covariance[here] / np.outer(size, size)) @ back
    stretch = root @ _root(wide)[0] @ back * size[:, None] / size
    low, high = (of(found.problem.unknowns)[at] for of in (bounds, upper_bounds))
    moved = found.x[at] + (x[..., at] - found.x[at]) @ stretch.T
    moved = np.where(moved < low, 2 * low - moved, moved)
    out[..., at] = np.maximum(np.where(moved > high, 2 * high - moved, moved), low)
    return out


def _root(of: Float[np.ndarray, "p p"]) -> tuple[np.ndarray, np.ndarray]:
    """The square root of a covariance, and its inverse."""
    size, turn = np.linalg.eigh(of)
    size = np.sqrt(np.maximum(size, 1e-12 * size[-1]))
    return turn * size @ turn.T, turn / size @ turn.T


def _ends(level: float) -> tuple[float, float, float]:
    return (0.5 - level / 2, 0.5, 0.5 + level / 2)


def _frame(found: FitResult, n: float) -> Any:
    """What the fit knows, as the chains' first frame; of numbers at a bound, about as far from it
    as the data allow.
    """
    from .nuts import Frame

    problem, x = found.problem, np.array(found.x)
    inflated = np.sqrt(max((found.dof + len(x)) / n, 1.0))
    wide = inflated * np.sqrt(np.diag(found.with_all_active().full_covariance))
    lower, upper = bounds(problem.unknowns), upper_bounds(problem.unknowns)
    room = np.where(np.isfinite(upper - lower), 0.5 * (upper - lower), np.inf)
    scale = np.where(
        wide > 0,
        np.minimum(wide, room),
        np.where(np.isfinite(room), room, np.maximum(np.abs(x), 1.0)),
    )
    inside = np.clip(x, lower + 0.5 * scale, upper - 0.5 * scale)
    first = Frame(lower, upper, scale, np.zeros(x.size), np.eye(x.size))
    middle = first.coordinates(inside)
    slope = np.asarray(first.slopes(jnp.asarray(middle)))
    covariance = inflated**2 * found.full_covariance / np.outer(slope, slope)
    covariance[~found.active, ~found.active] = 1.0
    sizes = np.sqrt(np.diag(covariance))
    values, turn = np.linalg.eigh(covariance / np.outer(sizes, sizes))
    return dataclasses.replace(
        first, middle=middle, root=sizes[:, None] * turn * np.sqrt(np.maximum(values, 1e-10))
    )


def _check(
    found: FitResult, draws: Any, warmup: Any, chains: Any, samples: Any, level: Any
) -> None:
    try:
        import blackjax  # noqa: F401
    except ImportError:
        raise ImportError(
            "`posterior` draws by blackjax, which is not installed. Run: pip install"
            " 'frictax[bayes]'"
        ) from None
    whole("`posterior`: `draws`", draws, 100)
    whole("`posterior`: `warmup`", warmup, 100)
    whole("`posterior`: `chains`", chains, 2)
    if samples is not None and not (
        isinstance(samples, int | float) and np.isfinite(samples) and samples > len(found.x)
    ):
        raise ValueError(
            f"`posterior`: `samples` must be more than the {len(found.x)} fitted numbers, got"
            f" {samples!r}. Leave it out to have it found."
        )
    if level is not None and not 0.5 < level < 1:
        raise ValueError(
            f"`posterior`: `level` must lie between 0.5 and 1, got {level!r}. 0.95 is usual."
        )
    if found.problem.objective.whitens():
        raise ValueError(
            "`posterior` needs a likelihood, and the weak form of `InverseDynamics` is not one: its"
            " covariance moves with the parameters. Fit with Windows(...), or with"
            " InverseDynamics(at_samples=True)."
        )
    if found.problem.loss.rounds > 1:
        raise ValueError(
            f"`posterior` needs a likelihood, and {type(found.problem.loss).__name__} is none. Fit"
            " with `Squares()`, and leave out what is wrong."
        )
    told = {p.path for p in found.problem.priors}
    told |= {u.path for u in found.problem.unknowns if np.isfinite(u.declaration.domain.upper())}
    untold = [
        e.name
        for e in found.estimates
        if e.knowledge is Knowledge.UNKNOWN and e.path.partition("@")[0] not in told
    ]
    if untold:
        raise ValueError(
            f"`posterior`: neither data nor priors tell {listed(untold)}, so that the density has"
            " no end there. Give `bounds` on both "
            f'sides or, to what all records share, priors, as fx.Normal("{untold[0]}", mean, sd),'
            " or leave them out of `free`."
        )
