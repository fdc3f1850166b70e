"""The default noise model: the model that the records support, with a guard and other sources."""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.special import fdtri

from frictax.arguments import check_count
from frictax.fitting import FitResult, InverseDynamics
from frictax.fitting.problem.problem import PreparedSweep, Problem
from frictax.fitting.result.identifiability import join_names
from frictax.fitting.result.spread import CovarianceEstimate, Memoized
from frictax.notice import Notice
from frictax.pytree import pytree_dataclass, static

from .autoregression import Autoregression
from .clusters import Clustered, compare_records, has_windows, scatter_between_records
from .input_noise import (
    EncoderSteps,
    InputNoise,
    are_rounded,
    input_noise_exceeds_sensors,
    interpolation_error,
)
from .linearization import Linearization, LinearNoiseModel, NoiseModel, White, linearize
from .motion_share import SMALL_MOTION, START_ONLY, Whitened, motion_share, without_intervals
from .sweeps import autocorrelation_not_excluded, is_exact, sweep_noise_models

# [widths of the last model] If no other interval is wider, rounding alone explains the errors. Ten
# blocks differ by up to a factor of 2 by chance.
_TWICE = 2.0
_TO_COMPARE = 2.0  # smallest degrees of freedom of a guard that is compared
_MATTERS = 0.02  # [variances] contribution that is added; it makes an error 1 % larger
# Probability that the guard's error stays below the limit if the usual model is right.
_BY_CHANCE = 0.7


@pytree_dataclass
class Guarded(NoiseModel):
    """The default of `fit`: of several noise models the widest interval for each parameter, each
    with its own Student's t.

    - The usual model: `Clustered()` on `Windows`, and `Autoregression()` for a run. Residuals of
      `InverseDynamics` are whitened, so the covariance is `inv(X'X)`; at samples there is only the
      guard.
    - The guard, `Clustered(10)`: the differences between ten blocks of time. It counts if its error
      is larger than in seven of ten records for which the usual model is right (F test). Otherwise
      two models of the same error would differ by chance, and the wider one would be too wide.
    - `InputNoise`, for a run whose misfit exceeds the noise of its sensors.
    - `EncoderSteps`, for a run with rounded outputs. It replaces the other models if all outputs
      are rounded and no other model is more than twice as wide.

    Inputs may have followed straight lines or smooth curves between samples. The difference is
    added to each model if it matters.

    If several records differ in a parameter by more than their errors (Welch's test), its interval
    is that of the mean of such records: whole records are compared, and a notice says so.

    The rows of a sweep have no time. They are taken as white unless they show the contrary:

    - as an autoregression (`Autoregression`), in order of speed in each direction and in the order
      of the table;
    - speed by speed, if speeds differ by more than the replicates of one speed (F test);
    - by the squares of single residuals, if these make an error larger than in four of five draws
      of white noise.

    **Arguments:** `blocks`: the number of blocks of all records together.

    **Source:** B. L. Welch, "On the comparison of several mean values", Biometrika 38 (1951); see
    `Clustered` and `Autoregression`.

    **Example:** all noise models side by side, at `FitResult.uncertainty`.
    """

    blocks: int = static(default=10)

    def __post_init__(self) -> None:
        check_count("`Guarded.blocks`", self.blocks, 2, "10 are usual.")

    def spread(self, found: FitResult) -> CovarianceEstimate:
        linear = linearize(found)
        if all(isinstance(p, PreparedSweep) for p in found.problem.prepared):
            return _sweep_errors(linear)
        share = motion_share(found)
        if share < START_ONLY:
            return without_intervals(found, share)
        guard = Clustered(self.blocks)
        usual = self.usual_model(found.problem) or guard
        made = [usual.estimate(linear)] + ([] if usual is guard else [guard.estimate(linear)])
        steps = (False, False)
        if isinstance(usual, Autoregression):
            if input_noise_exceeds_sensors(found):
                made.append(InputNoise().estimate(linear))
            steps = are_rounded(found)
            if any(steps):
                made.append(EncoderSteps().estimate(linear))
        differ, notices = compare_records(linear, usual)
        if share < SMALL_MOTION:
            notices = (*notices, Notice("motion-near-noise", "", {"share": share}))
        if differ.any():
            made.append(scatter_between_records(linear))
        bends = interpolation_error(linear)
        if np.any(bends**2 > _MATTERS * np.diag(made[0].covariance)):
            made = [
                dataclasses.replace(
                    one,
                    covariance=one.covariance + np.outer(bends, bends),
                    says=f"{one.says} and interpolation of the inputs",
                )
                for one in made
            ]
        parts = [linear.to_all_parameters(one) for one in made]
        if all(steps) and not differ.any() and _last_suffices(found, parts):
            return dataclasses.replace(parts[-1], notices=notices)
        # Whole records are compared for the parameters in which they differ.
        where = np.ones((len(parts), len(found.x)), bool)
        if differ.any():
            where[-1] = np.any(linear.follow[:, differ], axis=1)
        return _widest(found, parts, where, int(usual is not guard), notices)

    def usual_model(self, problem: Problem) -> LinearNoiseModel | None:
        """Return the noise model of the objective; None if there is only the guard."""
        if has_windows(problem):
            return Clustered()
        if problem.objective.whitens():
            return Whitened()
        return None if isinstance(problem.objective, InverseDynamics) else Autoregression()


def _sweep_errors(linear: Linearization) -> CovarianceEstimate:
    """Return the errors of a fit to sweeps."""
    found, exact = linear.found, is_exact(linear)
    rows = [] if exact else sweep_noise_models(linear)
    parts = [White().spread(found), *(linear.to_all_parameters(one) for one, _ in rows)]
    where = np.array([np.ones(len(found.x), bool), *(applies for _, applies in rows)])
    out = _widest(found, parts, where, 0, ())
    # Both orders of the rows can give a notice of one code. The first one is kept.
    first = {n.code: n for n in reversed(out.notices)}
    notices = tuple(reversed(first.values()))
    if not notices and not exact:
        is_coloured = any(one.allows_autocorrelation for one, _ in rows)
        notices = autocorrelation_not_excluded(linear, out, is_coloured)
    return dataclasses.replace(out, notices=notices)


@dataclasses.dataclass(frozen=True)
class _Widest(CovarianceEstimate):
    """The widest interval of several noise models.

    `of_each`: half of the interval by each model, (parts, m) for directions (m, q) at a level.
    """

    of_each: Callable[[np.ndarray, float], np.ndarray] = dataclasses.field(kw_only=True)

    def half_width(
        self, level: float, directions: Float[np.ndarray, "m q"]
    ) -> Float[np.ndarray, " m"]:
        return self.of_each(directions, level).max(axis=0)


def _widest(
    found: FitResult,
    parts: list[CovarianceEstimate],
    where: np.ndarray,
    guard: int,
    notices: tuple[Notice, ...],
) -> CovarianceEstimate:
    """Return the widest of `parts`. `where` (parts, q): the parameters for which each part applies;
    `guard`: the number of the guard in `parts`, 0 without a guard.
    """
    level = found.level
    of_each = Memoized(functools.partial(_half_widths, parts, where, guard))
    dof = Memoized(functools.partial(_dof_of_widest, parts, of_each, level))
    wins = of_each(np.eye(len(found.x)), level).argmax(axis=0)
    size = np.sqrt([np.maximum(np.diag(part.covariance), 0.0) for part in parts])
    own = size[wins, np.arange(len(wins))]
    # Correlations are those of the part that applies to most parameters, errors those of each.
    most = int(np.argmax(np.bincount(wins[found.shown & found.active], minlength=len(parts))))
    scale = np.divide(own, size[most], out=np.ones_like(own), where=size[most] > 0)
    covariance = parts[most].covariance * np.outer(scale, scale)
    says, more = _in_words(found, parts, wins), (n for part in parts for n in part.notices)
    return _Widest(covariance, dof, says, (*notices, *more), of_each=of_each)


def _half_widths(
    parts: list[CovarianceEstimate],
    where: np.ndarray,
    guard: int,
    directions: Float[np.ndarray, "m q"],
    level: float,
) -> Float[np.ndarray, "k m"]:
    """Return half of the interval of each direction by each of `parts`; 0 if a part does not
    apply.
    """
    speaks = ((directions != 0) @ where.T).T
    if guard:
        speaks[guard] &= _stands_out(parts[0], parts[guard], directions)
    return np.where(speaks, [part.half_width(level, directions) for part in parts], 0.0)


def _dof_of_widest(
    parts: list[CovarianceEstimate],
    of_each: Callable[[np.ndarray, float], np.ndarray],
    level: float,
    directions: Float[np.ndarray, "m q"],
) -> Float[np.ndarray, " m"]:
    """Return the degrees of freedom of the widest of `parts` for each direction."""
    wins = of_each(directions, level).argmax(axis=0)
    return np.array([part.dof(directions) for part in parts])[wins, np.arange(len(wins))]


def _stands_out(
    usual: CovarianceEstimate, guard: CovarianceEstimate, directions: np.ndarray
) -> np.ndarray:
    """Return for which directions (m, q) the guard's error is larger than by chance, and depends on
    more than one block.
    """
    free = guard.dof(directions)
    rounded = np.minimum(np.nan_to_num([free, usual.dof(directions)], nan=1.0), 1e6)
    most = fdtri(*np.maximum(rounded, 1.0), _BY_CHANCE)  # limit of the ratio of variances
    mine, theirs = (
        np.einsum("mi,ij,mj->m", directions, part.covariance, directions) for part in (usual, guard)
    )
    return (free >= _TO_COMPARE) & (theirs > most * mine)


def _last_suffices(found: FitResult, parts: list[CovarianceEstimate]) -> bool:
    """Return whether no other part is much wider than the last one."""
    directions = np.eye(len(found.x))[found.shown & found.active]
    *others, last = [part.half_width(found.level, directions) for part in parts]
    return bool(np.all(np.max(others, axis=0, initial=0.0) <= _TWICE * last))


def _in_words(found: FitResult, parts: list[CovarianceEstimate], wins: np.ndarray) -> str:
    """Return the assumption behind the error of each parameter in words, the usual model first."""
    wins, active = wins[found.shown], found.active[found.shown]
    names = [
        [n for n, w, a in zip(found.names, wins, active, strict=True) if a and w == k]
        for k in range(len(parts))
    ]
    used = [k for k in range(len(parts)) if names[k]] or [0]
    if len(used) == 1:
        return parts[used[0]].says
    return "; ".join(f"{parts[k].says}, for {join_names(names[k])}" for k in used)
