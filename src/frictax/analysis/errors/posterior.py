"""Random draws of all fitted parameters from their posterior density, by the No-U-Turn sampler."""

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from frictax.annotations import ArrayLike, Checked
from frictax.arguments import check_count
from frictax.fitting import Band, Estimate, FitResult, Knowledge
from frictax.fitting.problem.problem import Problem, bounds, upper_bounds
from frictax.fitting.result.estimates import Estimated
from frictax.fitting.result.identifiability import join_names
from frictax.fitting.result.spread import inverse_gram
from frictax.handover import Verb
from frictax.interrupts import Keys, Workers, defer_interrupt, may_keep, results_of
from frictax.notice import Notice
from frictax.programs import cached_jit, interruptible_jit
from frictax.progress import Progress, Work, show_progress
from frictax.summary import Summarised, Summary
from frictax.verbs import PosteriorVerbs

from ..friction_curve import friction_at
from .linearization import effective_sample_size
from .resampling import method_of, run_search

_BLOCK = 25  # number of draws that are made from one random key.
# [s] intended duration of one sampler call; between calls, a chain can stop or show progress
_SECONDS = 0.5
_ACCEPTED = 0.9  # [1] mean acceptance probability to which the step size of the sampler is adapted


State = tuple[np.ndarray, np.ndarray, np.ndarray]  # u, log density at u, d(log density)/du


class Frame(eqx.Module):
    """A map from coordinates u to parameter values x(w) within their bounds, with w = middle + root
    u. In the coordinates u, the posterior density is approximately a standard normal density.

    Far from the bounds, x is linear in w, and dx/dw is `scale`. If only a combination of parameters
    is identifiable, the density has a narrow ridge. A linear map keeps this ridge straight.
    """

    lower: Float[np.ndarray, " q"]
    upper: Float[np.ndarray, " q"]
    scale: Float[np.ndarray, " q"]
    middle: Float[np.ndarray, " q"]
    root: Float[np.ndarray, "q q"]

    def values(self, w: Any) -> Array:
        """Return x(w): softplus for one bound, logistic for two bounds, linear without bounds."""
        lower, upper = (jnp.isfinite(b) for b in (self.lower, self.upper))
        low, high = jnp.where(lower, self.lower, 0.0), jnp.where(upper, self.upper, 0.0)
        wide = jnp.where(lower & upper, high - low, 1.0)
        above = low + self.scale * jax.nn.softplus(w)
        below = high - self.scale * jax.nn.softplus(-w)
        between = low + wide * jax.nn.sigmoid(4.0 * self.scale / wide * w)
        bounded = jnp.where(upper, jnp.where(lower, between, below), above)
        return jnp.where(lower | upper, bounded, self.scale * w)

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """Return the coordinates w at which `values(w)` is x. Each x must be inside its bounds."""
        w = []
        for low, high, scale, at in zip(self.lower, self.upper, self.scale, x, strict=True):
            if np.isfinite(low) and np.isfinite(high):
                w.append(np.log((at - low) / (high - at)) * (high - low) / (4.0 * scale))
            elif np.isfinite(low) or np.isfinite(high):
                far = (at - low if np.isfinite(low) else high - at) / scale
                w.append((far + np.log(-np.expm1(-far))) * (1.0 if np.isfinite(low) else -1.0))
            else:
                w.append(at / scale)
        return np.asarray(w)

    def slopes(self, w: Any) -> Array:
        """Return the derivative dx/dw of each parameter value with respect to its coordinate."""
        return jax.jvp(self.values, (w,), (jnp.ones_like(w),))[1]


def run_chains(
    problem: Problem,
    method: Any,
    frame: Frame,
    samples: float,
    counts: tuple[int, int, int],
    seed: int,
    tell: Work,
) -> tuple[Float[np.ndarray, "c n q"], dict[str, np.ndarray], bool]:
    """Draw from the posterior density. Return the drawn parameter values, a dict (name of a
    statistic of the sampler -> (chains, n)), and True if Ctrl-C stopped the chains.

    `frame`: first map from coordinates to parameters; `samples`: number of independent residuals.
    `counts`: number of chains, and for each chain number of warm-up draws and of returned draws.
    """
    number, warmup, draws = counts
    parts = tell.parts({f"chain {k + 1}": 1.0 for k in range(number)})
    many = _Chain(problem, method, np.float64(samples), warmup, draws, parts)
    keys = jax.random.split(jax.random.key(seed), number)
    taken: list[list[dict[str, np.ndarray]]] = [[] for _ in range(number)]
    interrupted = False
    try:
        with Workers() as pool:
            each = zip(range(number), keys, taken, strict=True)
            results_of([pool.submit(many.run, k, key, frame, own) for k, key, own in each])
    except KeyboardInterrupt:
        interrupted = True
        tell.break_off()
        # An interrupted run is discarded if a chain has fewer than 100 draws.
        if not may_keep() or min(map(_count, taken)) < 100:
            raise
    least = min(map(_count, taken))
    stats = {
        name: np.stack([np.concatenate([b[name] for b in blocks])[:least] for blocks in taken])
        for name in taken[0][0]
    }
    x = np.asarray(frame.values(jnp.asarray(stats.pop("w"))))
    return x, stats, interrupted


@dataclasses.dataclass(frozen=True, eq=False)
class _Chain:
    """The No-U-Turn sampler, with the settings that all chains share."""

    problem: Problem
    method: Any
    samples: np.float64
    warmup: int
    draws: int
    tell: dict[str, Work]

    def run(self, number: int, key: Any, frame: Frame, taken: list[dict[str, np.ndarray]]) -> None:
        """Run one chain, and append its draws and the statistics of the sampler to `taken`. The
        first half of the warm-up uses `frame`. All later draws use a frame computed from draws of
        this first half."""
        from blackjax.adaptation.step_size import dual_averaging_adaptation

        tell = list(self.tell.values())[number]
        key, own = jax.random.split(key)
        state = self.draw_start(own, frame)
        step, done, part = 0.5, 0, 1
        halves = []
        for count, moves in (
            (self.warmup // 2, True),
            (self.warmup - self.warmup // 2, True),
            (self.draws, False),
        ):
            first = dual_averaging_adaptation(_ACCEPTED)[0](step)
            averaging, drawn = tuple(np.asarray(x, dtype=float) for x in first), []
            while _count(drawn) < count:
                key, own = jax.random.split(key)
                own = np.asarray(jax.random.key_data(own))
                at, last = 0, _BLOCK if moves else min(_BLOCK, count - _count(drawn))
                while at < last:
                    began, to = time.perf_counter(), min(at + part, last)
                    state, averaging, stats = _draw_block(
                        self.problem,
                        frame,
                        self.samples,
                        own,
                        state,
                        averaging,
                        (np.bool_(moves), np.float64(step)),
                        (np.int32(at), np.int32(to)),
                    )
                    left = count - _count(drawn)
                    drawn.append({name: np.asarray(a)[at:to][:left] for name, a in stats.items()})
                    if not moves:
                        taken.append(drawn[-1])
                    done += min(left, to - at)
                    tell.count(done, self.warmup + self.draws, "draws")
                    each = (time.perf_counter() - began) / (to - at)
                    at, part = to, int(np.clip(_SECONDS / each, 1, _BLOCK))
            if moves:
                step = float(np.exp(averaging[1]))
                halves.append(np.concatenate([block["w"] for block in drawn]))
            if moves and len(halves) == 1:
                draws = halves[0][len(halves[0]) // 3 :]
                u, value, slope = (np.asarray(x) for x in state)
                w, n, old = frame.middle + frame.root @ u, len(draws), frame.root @ frame.root.T
                # A few draws do not determine the covariance of many parameters. Therefore the
                # covariance of the old frame counts as five additional draws, as in Stan.
                sample = np.atleast_2d(np.cov(draws, rowvar=False))
                root = np.linalg.cholesky((n * sample + 5.0 * old) / (n + 5.0))
                slope = root.T @ np.linalg.solve(frame.root.T, slope)
                frame = dataclasses.replace(frame, middle=draws.mean(axis=0), root=root)
                state = np.linalg.solve(root, w - frame.middle), value, slope

    def draw_start(self, key: Any, frame: Frame) -> State:
        """Return a random first state of a chain. If the simulation fails, or if the density is
        very low (for example if no body moves), try a state closer to the middle of the frame.
        """
        random = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        middle = self.evaluate_state(np.zeros(frame.middle.size), frame)
        # With q parameters, the log density may be 20 + 2 q below its value at the frame's middle.
        least = -np.inf if middle is None else middle[1] - 20.0 - 2.0 * frame.middle.size
        improbable = None
        for nearer in range(12):
            u = random.standard_normal(frame.middle.size) * 0.5**nearer
            state = self.evaluate_state(u, frame)
            if state is not None and state[1] >= least:
                return state
            improbable = improbable if state is None else state
        if improbable is None:
            raise ValueError(
                "`posterior`: the runs fail close to the fitted values too. Fit on `Windows`, or"
                " give `bounds`."
            )
        return improbable

    def evaluate_state(self, u: np.ndarray, frame: Frame) -> State | None:
        """Return the state at coordinates u of the frame, or None if the density is not finite."""
        w = frame.middle + frame.root @ u
        at = jnp.asarray(w)
        z = np.asarray(self.problem.coordinates(frame.values(at)))
        if self.problem.is_steady:  # `run_search` makes all steps of a search of a sweep at once.
            r, jacobian = self.problem.evaluate(jnp.asarray(z), 1.0)
        else:
            end = run_search(self.problem, self.method, z, 1)
            r, jacobian = jnp.asarray(end.residuals), jnp.asarray(end.jacobian)
        if not np.all(np.isfinite(r)):
            return None
        value, slope = _density_alone(self.problem, frame, at, r, jacobian, self.samples)
        if not (np.isfinite(value) and np.all(np.isfinite(slope))):
            return None
        return u, np.asarray(value), frame.root.T @ np.asarray(slope)


def _count(blocks: list[dict[str, np.ndarray]]) -> int:
    return sum(len(block["w"]) for block in blocks)


@cached_jit
def _draw_block(
    problem: Problem,
    frame: Frame,
    samples: Any,
    key: Any,
    state: Any,
    averaging: Any,
    step_size: tuple[Any, Any],
    span: tuple[Any, Any],
) -> tuple[Any, Any, dict[str, Array]]:
    """Continue a chain from `state`. The random `key` defines `_BLOCK` draws. This function makes
    draws `span[0]` to `span[1]` - 1 of this block. `step_size`: True if dual averaging adapts the
    step size of the sampler, and the fixed step size for False.
    """
    from blackjax.adaptation.step_size import dual_averaging_adaptation
    from blackjax.mcmc import hmc, nuts

    (moves, size), (begin, end) = step_size, span
    kernel, adapt = nuts.build_kernel(), dual_averaging_adaptation(_ACCEPTED)
    root = jnp.asarray(frame.root)

    def at(u: Array) -> tuple[Array, Array]:
        w = frame.middle + root @ u
        z = jnp.asarray(problem.coordinates(frame.values(w)))
        value, slope = _density(problem, frame, w, *problem.evaluate(z, 1.0), samples)
        good = jnp.isfinite(value) & jnp.all(jnp.isfinite(slope))
        return jnp.where(good, value, -jnp.inf), jnp.where(good, root.T @ slope, 0.0)

    # Forward mode gives density and gradient in one pass. Reverse mode takes ten times as long.
    density = jax.custom_vjp(lambda u: at(u)[0])
    density.defvjp(at, lambda slope, c: (c * slope,))
    kind = type(adapt[0](1.0))
    # The type hints of blackjax do not allow traced step sizes, or arrays as positions.
    draw: Any = kernel
    keys = jax.random.split(jax.random.wrap_key_data(key), _BLOCK)

    def draw_one(state: Any, averaging: Any, key: Any) -> tuple[Any, Any, dict[str, Array]]:
        now = kind(*averaging)
        step = jnp.where(moves, jnp.exp(now.log_step_size), size)
        new, info = draw(key, hmc.HMCState(*state), density, step, jnp.ones(root.shape[0]))
        after = tuple(jnp.asarray(x, dtype=float) for x in adapt[1](now, info.acceptance_rate))
        stats = {
            "w": frame.middle + root @ new.position,
            "lp": new.logdensity,
            "diverging": info.is_divergent,
            "acceptance_rate": info.acceptance_rate,
            "tree_depth": info.num_trajectory_expansions,
            "n_steps": info.num_integration_steps,
        }
        return tuple(new), after, stats

    def draw_next(i: Any, carry: Any) -> Any:
        state, averaging, stats = carry
        state, averaging, new = draw_one(state, averaging, keys[i])
        return state, averaging, jax.tree.map(lambda rows, row: rows.at[i].set(row), stats, new)

    start = tuple(map(jnp.asarray, state)), tuple(jnp.asarray(x, dtype=float) for x in averaging)
    _, _, like = jax.eval_shape(draw_one, *start, keys[0])
    none = jax.tree.map(lambda x: jnp.zeros((_BLOCK, *x.shape), x.dtype), like)
    return jax.lax.fori_loop(begin, end, draw_next, (*start, none))


def _density(
    problem: Problem, frame: Frame, w: Any, r: Any, jacobian: Any, samples: Any
) -> tuple[Array, Array]:
    """Return the log posterior density of w, except for an additive constant, and its gradient
    d/dw. `r`: residuals; `jacobian`: derivatives of `r` with respect to `problem.coordinates(x)`.
    """
    data = sum(int(np.prod(np.shape(p.weight))) for p in problem.prepared)
    size = jnp.maximum(r[:data] @ r[:data], jnp.finfo(r.dtype).tiny)
    volume = lambda w: jnp.sum(jnp.log(frame.slopes(w)))  # noqa: E731
    value = -0.5 * samples * jnp.log(size) - 0.5 * r[data:] @ r[data:] + volume(w)
    slope = -samples / size * (r[:data] @ jacobian[:data]) - r[data:] @ jacobian[data:]
    by_value = slope / problem.values_and_slopes(problem.coordinates(frame.values(w)))[1]
    return value, by_value * frame.slopes(w) + jax.grad(volume)(w)


_density_alone = cached_jit(_density)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Posterior(Summarised, Estimated, PosteriorVerbs):
    """Random draws of the fitted parameters from their posterior density. `plot()` shows them.

    - `found`: the fit; `estimates`: median, standard deviation and interval of the draws of each
      parameter [SI]; `level`: probability of each interval, with equal probabilities on both sides.
    - `draws` (chains, n, p): draws of the parameters in `estimates`; `covariance` (p, p) of these
      draws; `all_draws` (chains, n, q): draws of all fitted parameters, in the order of `found.x`.
    - `samples`: number of independent residuals in the formula of the density; `widened`: a text if
      the draws were stretched to the standard errors of the fit, otherwise empty.
    - `stats`: ArviZ's name of a statistic of the sampler -> (chains, n): `lp` (log density except
      for a constant, before stretching), `diverging`, `acceptance_rate`, `tree_depth`, `n_steps`.
    - `r_hat` (p,): test of convergence, 1 if the chains agree; `ess` (p,): effective sample size;
      `divergences`: number of draws for which the integration of the sampler was too inaccurate.
    - `tied`: estimates of the tied parameters; `derived(...)`: other quantities for each draw.
    - `notices`: reasons to doubt the draws; `warnings`: the notices as plain sentences.

    **Source:** A. Vehtari et al., "Rank-normalization, folding, and localization: an improved
    R-hat", Bayesian Analysis 16 (2021), for `r_hat` and `ess`.

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

    def friction(self, contact: str | None, velocity: ArrayLike, label: str | None = None) -> Band:
        """Return the friction of `contact` [N or N.m]: at each velocity, the median and the
        interval of the draws. The arguments are those of `Uncertainty.friction`."""
        v = np.atleast_1d(np.asarray(velocity, dtype=float))
        at = friction_at(self.found.problem, contact, v, label, list(self.found.records))
        x = self.all_draws.reshape(-1, self.all_draws.shape[-1])
        # 400 draws are enough for the quantiles of a band.
        x = x[np.unique(np.linspace(0, len(x) - 1, min(len(x), 400)).round().astype(int))]
        low, middle, high = np.quantile(
            np.asarray(interruptible_jit(jax.vmap(at))(jnp.asarray(x))), _ends(self.level), axis=0
        )
        return Band(v, middle, low, high, self.level)

    @functools.cached_property
    def tied(self) -> tuple[Estimate, ...]:
        """Estimates of the parameters that are tied to fitted parameters, computed from draws."""
        out: list[Estimate] = []
        for e in self.found.tied:
            path, _, label = e.path.partition("@")
            made = self.derived(lambda p, path=path: p[path], unit=e.unit, label=label or None)
            k = sum(other.path == e.path for other in out)
            out.append(
                dataclasses.replace(
                    made.estimates[k], name=e.name, path=e.path, declared=e.declared, tied=e.tied
                )
            )
        return tuple(out)

    _repr_html_ = Verb("frictax.report.cards:posterior_html")

    @property
    def title(self) -> str:
        """The title of the table: number of chains, of draws, and of independent residuals."""
        chains, n = self.draws.shape[:2]
        return (
            f"Posterior: {chains} chains of {n} draws by NUTS; the residuals have"
            f" {self.samples:.3g} effective samples{self.widened}"
        )

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the header of the table, and its rows."""
        interval = f"{100 * self.level:g} % interval"
        rows = [
            (*e.cells, f"{r:.3f}", f"{s:.0f}")
            for e, r, s in zip(self.estimates, self.r_hat, self.ess, strict=True)
        ]
        rows += [(*e.cells, "", "") for e in self.tied]
        return ("parameter", "median", "unit", "std. dev.", interval, "R-hat", "ESS"), rows

    def _summary(self) -> Summary:
        return Summary(self.title, self.rows(), "lrlrlrrl", self.warnings)


@Keys()
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
    """Draw from the posterior density of all fitted parameters by the No-U-Turn sampler.

    Within the bounds, density(x) ~ S(x)**(-n/2) * prior(x). S is the sum of squared weighted
    residuals, and n the number of independent residuals. The density is a normal likelihood whose
    unknown standard deviation (prior 1/sigma) is integrated out. An interval of `fit` is symmetric,
    except at a bound. The posterior density can be skewed, and is 0 beyond a bound.

    Autocorrelated residuals contain less information than independent residuals. Therefore n is
    chosen so that, on average over all directions, the density is as wide as the standard errors of
    the fit. No single n is right for all parameters. Therefore the draws are stretched about the
    fitted values until their standard deviations are the standard errors of the fit. Stretched
    draws beyond a bound are reflected. If `samples` is given, the draws are not stretched.

    Parameters without a prior have a uniform prior between their bounds, in their own unit. If the
    data do not exclude large values, as for a Stribeck velocity with little effect, give a `Normal`
    prior or `bounds`. Without such limits the chains diverge.

    **Arguments:** `draws`: number of draws that each chain returns; `warmup`: number of earlier
    draws that adapt step size and metric; `chains`: number of chains; `samples`: the number n of
    independent residuals; `level` of the intervals, by default that of the fit; `seed`; `progress`
    as in `fit`. Ctrl-C stops the sampler, and returns the draws if each chain has at least 100
    draws.

    **Returns:** a `Posterior`.

    **Raises:** `ImportError` without the extra ``pip install 'frictax[bayes]'``; `ValueError` for a
    robust loss, which is not a likelihood, for parameters without information in data and priors,
    and if simulations near the fitted values fail.

    **Source:** M. D. Hoffman, A. Gelman, "The No-U-Turn Sampler", Journal of Machine Learning
    Research 15 (2014), implemented in the package blackjax.

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
    Posterior: 2 chains of 200 draws by NUTS; the residuals have ... effective samples...
    parameter                 median  unit  std. dev.  95 % interval  R-hat  ESS
    friction.f_pos.F_Coulomb  1.2...  N     0.000...   1.2... to 1.2... ...
    """
    _check(found, draws, warmup, chains, samples, level)
    with defer_interrupt():
        import blackjax  # noqa: F401
    level = found.level if level is None else level
    n = posterior_sample_size(found) if samples is None else float(samples)
    if n <= len(found.x):
        raise ValueError(
            f"`posterior`: the residuals have {n:.3g} effective samples for {len(found.x)} fitted"
            " parameters, so the density is not finite. Fit fewer parameters, for example without"
            " `free_starts`, or record for longer."
        )
    # The first frame is scaled by the covariance of the fit. A parameter at its bound is moved
    # inside by half of the standard error that it has without the bound.
    problem, at_fit, r = found.problem, np.array(found.x), found.full_residuals
    square = max(float(r @ r), np.finfo(float).tiny)
    inflated = np.sqrt(max((found.dof + len(at_fit)) / n, 1.0))
    inflated *= np.sqrt(square / found.dof) if problem.noise_known else 1.0
    wide = inflated * np.sqrt(np.diag(found.with_all_active().full_covariance))
    lower, upper = bounds(problem.unknowns), upper_bounds(problem.unknowns)
    room = np.where(np.isfinite(upper - lower), 0.5 * (upper - lower), np.inf)
    unknown = np.where(np.isfinite(room), room, np.maximum(np.abs(at_fit), 1.0))
    scale = np.where(wide > 0, np.minimum(wide, room), unknown)
    first = Frame(lower, upper, scale, np.zeros(at_fit.size), np.eye(at_fit.size))
    middle = first.coordinates(np.clip(at_fit, lower + 0.5 * scale, upper - 0.5 * scale))
    slope = np.asarray(first.slopes(jnp.asarray(middle)))
    covariance = inflated**2 * found.full_covariance / np.outer(slope, slope)
    covariance[~found.active, ~found.active] = 1.0
    sizes = np.sqrt(np.diag(covariance))
    values, turn = np.linalg.eigh(covariance / np.outer(sizes, sizes))
    root = sizes[:, None] * turn * np.sqrt(np.maximum(values, 1e-10))
    first = dataclasses.replace(first, middle=middle, root=root)
    counts = chains, warmup, draws
    with show_progress(progress, "Drawing") as work:
        x, stats, interrupted = run_chains(problem, method_of(found), first, n, counts, seed, work)
    at = _identified_places(found)
    if samples is None and at.size:
        # Stretch the draws so that they have the covariance of the fit: B. Shaby, "The open-faced
        # sandwich adjustment for MCMC using estimating functions", Journal of Computational and
        # Graphical Statistics 23 (2014). Draws beyond a bound are reflected.
        here, x = np.ix_(at, at), np.array(x)
        of_data, of_priors = np.split(found.full_jacobian, [found.n])
        of_data = of_data * np.sqrt((n - len(found.x)) / square)
        rows = np.concatenate([of_data, of_priors / found.noise_scale])
        white = inverse_gram(rows, np.linalg.norm(rows, axis=0), found.active)[here]
        size = np.sqrt(np.diag(white))
        root, back = _root(white / np.outer(size, size))
        printed = back @ (found.spread.covariance[here] / np.outer(size, size)) @ back
        stretch = root @ _root(printed)[0] @ back * size[:, None] / size
        low, high, fitted = lower[at], upper[at], found.x[at]
        moved = fitted + (x[..., at] - fitted) @ stretch.T
        moved = np.where(moved < low, 2 * low - moved, moved)
        x[..., at] = np.maximum(np.where(moved > high, 2 * high - moved, moved), low)
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
            # The draws are inside the bounds, so a parameter at its bound in the fit has an error.
            knowledge=Knowledge.KNOWN if e.knowledge is Knowledge.AT_BOUND else e.knowledge,
        )
        for e, m, s, a, b in zip(found.estimates, middle, sd, low, high, strict=True)
    )
    notices = []
    if interrupted:
        notices.append(Notice("draws-interrupted", "", {"drawn": x.shape[1], "asked": draws}))
    divergences = int(stats["diverging"].sum())
    if divergences:
        notices.append(Notice("divergences", "", {"draws": divergences}))
    apart = [
        e.name for e, r, s in zip(estimates, r_hat, ess, strict=True) if not (r < 1.01 and s > 400)
    ]
    if apart:
        notices.append(Notice("chains-apart", "", {"names": join_names(apart)}))
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
        ", and the draws are widened to the errors of the fit" if samples is None else "",
        stats,
    )


@functools.cache
def _agreement() -> Callable[[Any], Any]:
    """Return a compiled function that computes R-hat and effective sample size of draws."""
    from blackjax.diagnostics import ess_bulk, rhat

    return interruptible_jit(lambda x: (rhat(x), ess_bulk(x)))


def posterior_sample_size(found: FitResult) -> float:
    """Return the number of independent residuals for which the covariances of posterior and fit
    have equal determinants. If no standard error is known, return `effective_sample_size(found)`.
    """
    here = np.ix_(*[_identified_places(found)] * 2)
    if not here[0].size:
        return effective_sample_size(found)
    white, printed = found.full_covariance[here], found.spread.covariance[here]
    narrower = (np.linalg.slogdet(white)[1] - np.linalg.slogdet(printed)[1]) / len(white)
    return len(found.x) + max(found.dof * float(np.exp(min(narrower, 0.0))), 1.0)


def _identified_places(found: FitResult) -> np.ndarray:
    """Return the indices in `found.x` of the estimates that have a known standard error."""
    unknown = (Knowledge.UNKNOWN, Knowledge.AT_BOUND)
    known = np.array([e.knowledge not in unknown for e in found.estimates])
    return np.flatnonzero(found.shown)[known & found.active[found.shown]]


def _root(of: Float[np.ndarray, "p p"]) -> tuple[np.ndarray, np.ndarray]:
    """Return the symmetric square root of the covariance `of`, and the inverse of this root."""
    size, turn = np.linalg.eigh(of)
    size = np.sqrt(np.maximum(size, 1e-12 * size[-1]))
    return turn * size @ turn.T, turn / size @ turn.T


def _ends(level: float) -> tuple[float, float, float]:
    return (0.5 - level / 2, 0.5, 0.5 + level / 2)


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
    check_count("`posterior`: `draws`", draws, 100)
    check_count("`posterior`: `warmup`", warmup, 100)
    check_count("`posterior`: `chains`", chains, 2)
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
            f"`posterior` needs a likelihood, and {type(found.problem.loss).__name__} does not"
            " define one. Fit with `Squares()`, and delete outliers."
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
            f"`posterior`: neither data nor priors identify {join_names(untold)}, so the density is"
            " not finite. Give `bounds` on both sides, or leave them out of `free`. For parameters"
            f' that all records share, you can give priors, such as fx.Normal("{untold[0]}", mean,'
            " sd)."
        )
