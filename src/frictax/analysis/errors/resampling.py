"""Refits with other sample weights or fixed parameters: bootstrap, jackknife and profiles."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.arguments import check_count
from frictax.fitting import FitResult, LevenbergMarquardt
from frictax.fitting.problem.problem import PreparedSweep, Problem
from frictax.fitting.result.spread import CovarianceEstimate, SameDegreesOfFreedom
from frictax.fitting.search.levenberg_marquardt import descend
from frictax.fitting.search.run import advance_search, begun
from frictax.interrupts import Workers
from frictax.programs import cached_jit
from frictax.pytree import pytree_dataclass, static

from .linearization import NoiseModel, Samples, check_positive_time, varies_by_record

_STEPS = 60  # largest number of iterations of each refit


def scale_weights(problem: Problem, times: np.ndarray) -> Problem:
    """Return the problem with the weight of residual j multiplied by `times[j]`."""
    rows = Samples(problem).rows
    parts = [np.asarray(p.weight) * times[r] for p, r in zip(problem.prepared, rows, strict=True)]
    return eqx.tree_at(lambda p: [prepared.weight for prepared in p.prepared], problem, parts)


def run_search(
    problem: Problem, method: Any, z: Any, steps: int, noise: Any = 1.0, dof: Any = 1.0
) -> Any:
    """Return a search from `z` after `steps` iterations; the first only evaluates the residuals."""
    return advance_search(problem, method, begun(problem, z), steps, noise, dof)


def method_of(found: FitResult) -> LevenbergMarquardt:
    """Return the fit's method if it is `LevenbergMarquardt`, otherwise a `LevenbergMarquardt`."""
    if isinstance(found.method, LevenbergMarquardt):
        return found.method
    return LevenbergMarquardt(tolerance=1e-3)


def refit_with_counts(
    found: FitResult, counts: Float[np.ndarray, "k m"], z: np.ndarray | None = None
) -> tuple[Float[np.ndarray, "k q"], np.ndarray]:
    """Refit k times, starting at the fit or at coordinates `z`. Refit i counts the square of
    residual j `counts[i, j]` times. Return all parameters, and whether each search converged.
    """
    problem = found.problem
    noise = float(found.noise_scale) if problem.loss.rounds > 1 or problem.priors else 1.0
    method = method_of(found)

    def refit(count: np.ndarray) -> tuple[np.ndarray, bool]:
        mine = scale_weights(problem, np.sqrt(count))
        start = found.z if z is None else z
        end = run_search(mine, method, start, _STEPS, noise, float(found.dof))
        return np.asarray(end.x), bool(end.settled)

    first = refit(counts[0])  # the first refit runs alone, because it may compile the program
    with Workers() as pool:
        ends = [first, *pool.map(refit, counts[1:])]
    return np.stack([x for x, _ in ends]), np.asarray([ok for _, ok in ends])


@cached_jit
def minimize_with_fixed(
    problem: Problem, z: Any, which: Any, values: Any, noise: Any, dof: Any
) -> tuple[Array, Array, Array]:
    """Minimise the cost. Parameters for which the mask `which` is True stay at their `values`.
    Return the coordinates, the cost, and all fitted parameters."""

    def evaluate(z: Array) -> tuple[Array, Array]:
        return problem.evaluate(z, noise, (which, values))

    # The search ends when an iteration reduces the cost by less than 1e-4 of the cost.
    end = descend(evaluate, begun(problem, z), _STEPS, 1e-4, dof, 1e-300)
    return (
        jnp.asarray(end.z),
        jnp.asarray(end.cost),
        jnp.where(which, values, problem.physical(end.z)),
    )


@pytree_dataclass
class BlockBootstrap(NoiseModel):
    """The noise model of refits to random blocks of the records, which are drawn with replacement.

    Each block stays at its position in time and counts as often as it was drawn. The blocks must be
    longer than the correlation time of the residuals; use 20 or more blocks per record. Fewer than
    4 blocks, priors or a robust loss raise `ValueError`.

    **Arguments:** `length` of a block [s], by default a twentieth of the record; `draws`: the
    number of refits; `seed`.

    **Source:** H. R. Künsch, Annals of Statistics 17 (1989); weights instead of copies: S.
    Chatterjee, A. Bose, Annals of Statistics 33 (2005).

    **Example:** `FitResult.uncertainty` compares all noise models.
    """

    length: float | None = static(default=None)
    draws: int = static(default=200)
    seed: int = static(default=0)

    def __post_init__(self) -> None:
        check_positive_time(
            "`BlockBootstrap.length`", self.length, "for a twentieth of the record."
        )
        check_count("`BlockBootstrap.draws`", self.draws, 20, "200 give errors to 5 %.")

    def check(self, problem: Problem) -> None:
        _refuse(problem, "BlockBootstrap")

    def spread(self, found: FitResult) -> CovarianceEstimate:
        self.check(found.problem)
        samples, random = Samples(found.problem), np.random.default_rng(self.seed)
        blocks = []  # the block number of each sample, for each record
        for i, data in enumerate(found.records.values()):
            number = np.arange(samples.sizes[i])
            if not isinstance(found.problem.prepared[i], PreparedSweep):
                step = data.duration / max(data.n - 1, 1)
                length = data.duration / 20 if self.length is None else self.length
                each = max(int(round(length / step)), 1)
                number = np.minimum(number // each, max(number.size // each, 1) - 1)
            blocks.append(number)
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
            counts.append(samples.spread_out(times))
        x, ok = refit_with_counts(found, np.asarray(counts))
        finite = np.all(np.isfinite(x), axis=1)
        x, done = x[finite], int(finite.sum())
        if done < 0.8 * self.draws:
            raise ValueError(
                f"`BlockBootstrap`: only {done} of {self.draws} fits gave a number. Fit fewer"
                " parameters, or on `Windows`."
            )
        covariance = np.atleast_2d(np.cov(x, rowvar=False))
        says = (
            f"{done} fits to blocks drawn with replacement, {few} blocks per"
            f" record{_ends_at_kinks(ok[finite])}"
        )
        return CovarianceEstimate(covariance, SameDegreesOfFreedom(few - 1), says, draws=x)


@pytree_dataclass
class Jackknife(NoiseModel):
    """The noise model of refits, each of which leaves out one repeat of the motion. Any difference
    between repeats counts as error.

    The variance is (k - 1)/k * sum over the k fits of (value - mean)**2, with k - 1 degrees of
    freedom. The variances of several records are added, and also the degrees of freedom. If
    parameters differ by record, the smallest degrees of freedom of a record are used instead.

    **Arguments:** `repeats`: the number of equal parts of each record. Each part is one cycle of
    the motion. If `repeats` is missing, each refit leaves out a whole record. A fit to a sweep
    raises `ValueError` for `repeats`.

    **Source:** B. Efron, *The Jackknife, the Bootstrap and Other Resampling Plans* (1982), ch. 3.

    **Example:** `FitResult.uncertainty` compares all noise models.
    """

    repeats: int | None = static(default=None)

    def __post_init__(self) -> None:
        if self.repeats is not None:
            check_count("`Jackknife.repeats`", self.repeats, 2, "Leave it out for whole records.")

    def check(self, problem: Problem) -> None:
        _refuse(problem, "Jackknife")
        if self.repeats and any(isinstance(p, PreparedSweep) for p in problem.prepared):
            raise ValueError(
                f"`Jackknife({self.repeats})` needs repeats in each record, and a sweep does not"
                " have repeats. Take `HAC()` or `Clustered(10)`."
            )
        if self.repeats is None and len(problem.prepared) < 2:
            raise ValueError(
                "`Jackknife()` leaves out whole records, and there is one. Give the number of"
                " repeats of its motion: Jackknife(4)."
            )
        if self.repeats is None and varies_by_record(problem):
            raise ValueError(
                "`Jackknife()` cannot leave out a record that has parameters of its own. Give the"
                " number of repeats of each motion: Jackknife(4)."
            )

    def spread(self, found: FitResult) -> CovarianceEstimate:
        self.check(found.problem)
        samples, own = Samples(found.problem), varies_by_record(found.problem)
        counts, owners = [], []
        for i, size in enumerate(samples.sizes):
            parts = 1 if self.repeats is None else self.repeats
            for k in range(parts):
                times = [np.ones(n) for n in samples.sizes]
                times[i][slice(k * size // parts, (k + 1) * size // parts)] = 0.0
                counts.append(samples.spread_out(times))
                owners.append(0 if self.repeats is None else i)
        x, ok = refit_with_counts(found, np.asarray(counts))
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
        part = "record" if self.repeats is None else "repeat"
        says = f"{len(x)} fits, each without one {part}{_ends_at_kinks(ok)}"
        freedom = SameDegreesOfFreedom(min(dof) if own else sum(dof))
        return CovarianceEstimate(covariance, freedom, says, draws=x)


def _refuse(problem: Problem, kind: str) -> None:
    """Raise `ValueError` if refits with other weights cannot estimate the errors of `problem`."""
    if problem.priors:
        raise ValueError(
            f"`{kind}` cannot resample priors, so its errors are too small for fits with priors."
            " Take `HAC()`."
        )
    if problem.loss.rounds > 1 and kind == "BlockBootstrap":
        raise ValueError(f"`{kind}` accepts `Squares()` only. Take `HAC()` or `Jackknife(...)`.")


def _ends_at_kinks(settled: np.ndarray) -> str:
    """Return a text with the number of searches that ended at a kink of the misfit (at an
    event)."""
    return "" if settled.all() else f"; {int(np.sum(~settled))} of them ended at a kink"
