"""The linearised fit, the base classes of noise models, and the models `White` and `HAC`."""

import abc
import dataclasses
import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import PreparedSweep, Problem
from frictax.fitting.result.spread import (
    CovarianceEstimate,
    Memoized,
    SameDegreesOfFreedom,
    inverse_gram,
)
from frictax.measurements.noise import integrated_autocorrelation_time
from frictax.pytree import pytree_dataclass, static

# Directions with a singular value below this share of the largest value are not identifiable. 1e-8
# is the root of 1e-16, the rounding error of a product of two columns of norm 1.
_SMALLEST_SINGULAR_VALUE = 1e-8


class NoiseModel(abc.ABC):
    """An assumption about the residuals, from which standard errors follow."""

    def check(self, problem: Problem) -> None:
        """Raise `ValueError` if the assumption cannot be true for a fit of `problem`."""
        del problem

    @abc.abstractmethod
    def spread(self, found: FitResult) -> CovarianceEstimate:
        """Return the covariance of all fitted parameters and initial states of windows."""


class LinearNoiseModel(NoiseModel):
    """A noise model whose covariance follows from the linearised fit alone."""

    @abc.abstractmethod
    def estimate(self, linear: "Linearization") -> CovarianceEstimate:
        """Return the covariance of the estimates, without the initial states of windows."""

    def spread(self, found: FitResult) -> CovarianceEstimate:
        self.check(found.problem)
        linear = linearize(found)
        return linear.to_all_parameters(self.estimate(linear))


@pytree_dataclass
class White(NoiseModel):
    """The noise model of independent residuals with equal variances.

    **Example:** `FitResult.uncertainty` compares all noise models.
    """

    def spread(self, found: FitResult) -> CovarianceEstimate:
        dof = np.inf if found.problem.noise_known else found.dof
        return CovarianceEstimate(
            found.full_covariance, SameDegreesOfFreedom(dof), "independent residuals"
        )


class Samples:
    """A table of the record and the sample to which each residual belongs.

    - `record`, `sample`: index of the record and index of the sample of each residual; `counted`:
      whether the weight of the residual is > 0; `sizes`: the number of samples of each record.
    - `rows`: for each record, the indices of its residuals, in the shape of the record's weights.
    """

    def __init__(self, problem: Problem) -> None:
        weights = [np.asarray(prepared.weight) for prepared in problem.prepared]
        at = [prepared.samples() for prepared in problem.prepared]
        self.record = np.concatenate([np.full(w.size, i) for i, w in enumerate(weights)])
        self.sample = np.concatenate([np.ravel(a) for a in at])
        self.counted = np.concatenate([np.ravel(w) > 0 for w in weights])
        self.sizes = tuple(int(a.max()) + 1 for a in at)
        firsts = np.cumsum([0, *(w.size for w in weights[:-1])])
        self.rows = [
            first + np.arange(w.size).reshape(w.shape)
            for first, w in zip(firsts, weights, strict=True)
        ]

    def spread_out(self, values: list[np.ndarray]) -> Float[np.ndarray, " n"]:
        """Assign to each residual the value of its sample; `values`: values of the samples."""
        out = np.zeros(self.record.size)
        for rows, x in zip(self.rows, values, strict=True):
            out[np.ravel(rows)] = x[self.sample[np.ravel(rows)]]
        return out


@dataclasses.dataclass(frozen=True, eq=False)
class Linearization:
    """The linearised fit: residuals(x) = residuals + jacobian @ (x - estimates). The effects of the
    fitted initial states of windows are removed by projection.

    - `jacobian` (n, p): derivatives of the weighted residuals with respect to the estimates, 0 for
      an estimate at its bound. `residuals` (n,): weighted residuals; for a robust loss, influence
      function / mean slope. `noise`: standard deviation of the residuals if they are white noise.
    - `priors` (k, p): rows that priors add to the Jacobian, for residuals of standard deviation
      `noise`. `counted` (n,): True if a residual's weight is > 0. `follow` (q, p): derivatives of
      all fitted parameters and initial states of windows with respect to the estimates.
    - `rows`: for sweeps, the value of `series`; `order`: text that describes the order of rows.
    """

    found: FitResult
    jacobian: Float[np.ndarray, "n p"]
    residuals: Float[np.ndarray, " n"]
    priors: Float[np.ndarray, "k p"]
    noise: float
    samples: Samples
    counted: Bool[np.ndarray, " n"]
    follow: Float[np.ndarray, "q p"]
    rows: tuple[tuple[int, float, list[np.ndarray]], ...] = ()
    order: str = "in order of speed"

    @property
    def acts(self) -> Bool[np.ndarray, " p"]:
        """A mask of the estimates that change a residual or have a prior."""
        return np.any(self.jacobian, axis=0) | np.any(self.priors, axis=0)

    @functools.cached_property
    def axes(self) -> tuple[Float[np.ndarray, "p s"], Float[np.ndarray, "m p"]]:
        """The two results of `inverse_root` for this fit: B and the unidentifiable directions."""
        return inverse_root(self.jacobian, self.priors)

    def fit_to_record(self, i: int) -> tuple["Linearization", Float[np.ndarray, " p"]]:
        """Return the linearised fit to record `i`, and its estimates minus the common estimates."""
        mine = self.counted & (self.samples.record == i)
        one = dataclasses.replace(
            self,
            jacobian=self.jacobian * mine[:, None],
            residuals=self.residuals * mine,
            priors=self.priors[:0],
            counted=mine,
        )
        root, _ = one.axes
        moved = -root @ (root.T @ (one.jacobian.T @ one.residuals))
        return dataclasses.replace(one, residuals=one.residuals + one.jacobian @ moved), moved

    @functools.cached_property
    def series(self) -> list[tuple[int, float, list[Int[np.ndarray, " _"]]]]:
        """The residuals as one series for each channel of each record. A series contains the index
        of the record, the time step [s], and for each section without a gap the indices of its
        residuals in order of time. Sweeps have series only if `rows` is given.
        """
        if self.rows:
            return list(self.rows)
        out, problem = [], self.found.problem
        for i, record in enumerate(self.found.records.values()):
            if isinstance(problem.prepared[i], PreparedSweep):
                continue
            steps = np.diff(record.t)
            step = float(np.median(steps))
            is_gap = steps > 2.5 * step  # a longer time step interrupts the series.
            # Ticks (samples at encoder steps) become rare at low speed; such steps are not gaps.
            if record.ticks:
                step, is_gap = record.duration / steps.size, np.zeros(steps.size, bool)
                is_gap[record.gaps] = True
            gaps_before = np.concatenate([[0], np.cumsum(is_gap)])
            here = self.samples.rows[i]
            for channel in here.reshape(-1, here.shape[-1]).T:
                rows = channel[self.counted[channel]]
                at = self.samples.sample[rows]
                cut = (np.diff(at) != 1) | (np.diff(gaps_before[at]) > 0)
                if rows.size:
                    out.append((i, step, np.split(rows, np.flatnonzero(cut) + 1)))
        return out

    def to_all_parameters(self, one: CovarianceEstimate) -> CovarianceEstimate:
        """Convert the covariance of the estimates to that of all parameters and initial states."""
        covariance = self.follow @ one.covariance @ self.follow.T
        hidden, full = ~self.found.shown, self.found.full_covariance
        if hidden.any():
            # The initial states of windows have errors even if the estimates are exact.
            own = full - self.follow @ full[np.ix_(~hidden, ~hidden)] @ self.follow.T
            covariance = covariance + np.where(np.outer(hidden, hidden), own, 0.0)
        dof = functools.partial(_dof_of_all, one.dof, self.follow, self.found.dof)
        return dataclasses.replace(one, covariance=covariance, dof=Memoized(dof))


def _dof_of_all(
    dof: Callable[[np.ndarray], np.ndarray],
    follow: np.ndarray,
    most: float | int,
    directions: np.ndarray,
) -> Float[np.ndarray, " m"]:
    """Return the degrees of freedom, at most `most`, of combinations of all fitted parameters."""
    return np.minimum(dof(directions @ follow), most)


def linearize(found: FitResult) -> Linearization:
    """Linearise the fit. Remove the part of the Jacobian that initial states of windows explain."""
    problem, rows = found.problem, found.n
    (r, slope), samples, shown = influence_residuals(found), Samples(found.problem), found.shown
    follow = np.diag(found.active.astype(float))[:, shown]
    jacobian = found.full_jacobian[:, shown] * found.active[shown]
    for i, grid in enumerate(samples.rows):
        starts = [u for u in problem.unknowns if u.hidden and u.record == i]
        for k in range(len(grid) if starts else 0):
            mine = np.ravel(grid[k])
            columns = [u.first + k for u in starts if found.active[u.first + k]]
            own = found.full_jacobian[mine][:, columns]
            norms = np.linalg.norm(own, axis=0)
            left, size, right = np.linalg.svd(own / norms, full_matrices=False)
            # Directions with singular values below 1e-10 are not identifiable from this window.
            left = left[:, size > 1e-10]
            explained = left.T @ jacobian[mine]
            jacobian[mine] -= left @ explained
            inverse = right[: left.shape[1]].T / size[: left.shape[1]]
            follow[columns] = -inverse @ explained / norms[:, None]
    return Linearization(
        found,
        jacobian[:rows],
        r / slope,
        jacobian[rows:] / np.sqrt(slope),
        found.noise_scale,
        samples,
        samples.counted,
        follow,
    )


def influence_residuals(found: FitResult) -> tuple[Float[np.ndarray, " n"], float]:
    """Return the influence function of the loss (its derivative with respect to the residual) at
    each residual, and the mean slope of this function. Least squares yield the residuals and 1."""
    loss, noise, r = found.problem.loss, found.noise_scale, found.full_residuals
    if loss.rounds == 1:
        return r, 1.0
    counted = Samples(found.problem).counted
    slope = float(np.mean(np.asarray(loss.score_slope(jnp.asarray(r[counted] / noise)))))
    return noise * np.asarray(loss.score(jnp.asarray(r / noise))), slope


def varies_by_record(problem: Problem) -> bool:
    """Return whether a parameter has a separate value for each record."""
    return any(u.record is not None for u in problem.unknowns if not u.hidden)


def inverse_root(
    jacobian: Float[np.ndarray, "n p"], priors: Float[np.ndarray, "k p"]
) -> tuple[Float[np.ndarray, "p s"], Float[np.ndarray, "m p"]]:
    """Return B with inv(A) = BB' in the identifiable directions, where A = J'J + priors'priors and
    J is `jacobian`. Also return the other directions; their scale yields very large standard
    errors."""
    # Rows of zeros are left out, because most rows of the Jacobian of a single record are zero.
    nonzero = np.any(jacobian, axis=1)
    rows = np.concatenate([jacobian if nonzero.all() else jacobian[nonzero], priors])
    scale = np.sqrt(np.einsum("ij,ij->j", rows, rows))
    back = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    _, size, turn = np.linalg.svd(np.asarray(np.linalg.qr(rows * back, mode="r")))
    turn, size = turn * back, np.concatenate([size, np.zeros(len(turn) - size.size)])
    seen = size > _SMALLEST_SINGULAR_VALUE * np.max(size, initial=0.0)
    return turn[seen].T / size[seen], turn[~seen] / np.maximum(size[~seen], 1e-12)[:, None]


def orthonormal_basis(columns: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n r"]:
    """Return an orthonormal basis of the span of `columns`."""
    size = np.linalg.norm(columns, axis=0)
    columns = columns[:, size > 0] / size[size > 0]
    if not columns.size:
        return columns[:, :0]
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    return u[:, s > _SMALLEST_SINGULAR_VALUE * s[0]]


def check_positive_time(name: str, value: float | None, remedy: str) -> None:
    """Raise `ValueError` for a time that is not > 0 s; None is allowed."""
    if value is not None and not value > 0:
        raise ValueError(f"{name} must be > 0 s, got {value}. Leave it out {remedy}")


def effective_sample_size(found: FitResult) -> float:
    """Return the effective number of residuals: the sum over all channels of n / (1 + 2 * sum of
    the autocorrelations), where n is the number of residuals of a channel.

    Autocorrelated residuals contain less information than independent residuals. For example, 1000
    samples per second that are correlated over 50 ms count as about 10 per second. The
    autocorrelations are summed up to the first pair of lags whose sum is not positive, because
    later terms are noise.

    **Source:** H. J. Thiébaux, F. W. Zwiers, "The interpretation and estimation of effective sample
    size", Journal of Climate and Applied Meteorology 23 (1984); where to end the sum: C. J. Geyer,
    "Practical Markov chain Monte Carlo", Statistical Science 7 (1992).
    """
    samples, out = Samples(found.problem), 0.0
    for grid in samples.rows:
        for channel in grid.reshape(-1, grid.shape[-1]).T:
            r = found.full_residuals[channel[samples.counted[channel]]]
            out += r.size / integrated_autocorrelation_time(r)
    return max(out, len(found.estimates) + 2.0)


def long_run_covariance(
    scores: Float[np.ndarray, "n p"], bandwidth: float | None = None
) -> tuple[Float[np.ndarray, "p p"], float]:
    """Return the covariance of the sum of the n rows of `scores`, divided by n, and the bandwidth
    [samples]. Each row has p components with mean 0.

    An autoregression of order 1 removes most of the dependence between rows (prewhitening). The
    covariances of the whitened rows at all lags are added. Their weights are those of the quadratic
    spectral kernel of width `bandwidth`. Finally the prewhitening is reversed.

    **Source:** D. W. K. Andrews, Econometrica 59 (1991), equations 2.7, 5.3, 6.2, 6.4; D. W. K.
    Andrews, J. C. Monahan, Econometrica 60 (1992), section 3.

    If each row contains 0.9 of the previous row, the variance of the sum is (1 + 0.9)/(1 - 0.9)
    times the variance for independent rows:

    >>> draw = np.random.default_rng(0).standard_normal((100000, 1))
    >>> x = np.zeros_like(draw)
    >>> for i in range(1, len(x)):
    ...     x[i] = 0.9 * x[i - 1] + draw[i]
    >>> long_run, _ = long_run_covariance(x)
    >>> round(float(long_run[0, 0] / np.mean(x**2)))
    19
    """
    n, p = scores.shape
    size = np.sqrt(np.mean(scores**2, axis=0))
    size = np.where(size > 0, size, 1.0)
    scaled = scores / size
    before, after = scaled[:-1], scaled[1:]
    slopes = np.linalg.lstsq(before, after, rcond=None)[0].T if n > 4 * p else np.zeros((p, p))
    left, values, right = np.linalg.svd(slopes)
    largest = 0.97  # limit of singular values and correlations (Andrews and Monahan, section 3)
    slopes = left @ np.diag(np.minimum(values, largest)) @ right
    white = np.concatenate([scaled[:1], after - before @ slopes.T])
    if bandwidth is None:  # The bandwidth follows from autoregressions of order 1.
        square = np.sum(white[:-1] ** 2, axis=0)
        rho = np.sum(white[1:] * white[:-1], axis=0) / np.where(square > 0, square, 1.0)
        rho = np.clip(rho, -largest, largest)
        weight = np.mean(white**2, axis=0) ** 2
        above = np.sum(weight * 4 * rho**2 / (1 - rho) ** 8)
        below = np.sum(weight / (1 - rho) ** 4)
        width = float(1.3221 * (max(above / below, 0.0) * n) ** 0.2) if below > 0 else 0.0
    else:
        width = float(bandwidth)
    summed = white.T @ white / n
    if width >= 1e-3:
        at = 1.2 * np.pi * np.arange(1, n) / width
        kernel = np.concatenate([[0.0], 3.0 / at**2 * (np.sin(at) / at - np.cos(at))])
        # Compute the sum over the lags j of kernel(j/width) x[t - j] for all t at once by FFT.
        length = 1 << (2 * n - 1).bit_length()
        spectrum = np.fft.rfft(kernel, length)[:, None] * np.fft.rfft(white, length, axis=0)
        lagged = white.T @ np.fft.irfft(spectrum, length, axis=0)[:n] / n
        summed = summed + lagged + lagged.T
    back = np.linalg.inv(np.eye(p) - slopes)
    return back @ summed @ back.T * np.outer(size, size), width


@pytree_dataclass
class HAC(NoiseModel):
    """The noise model of residuals that are correlated with their neighbours and whose variance may
    change (heteroskedasticity and autocorrelation consistent).

    The covariance is B (sum over lags j of kernel(j/bandwidth) S_j) B with B = inv(J'J) and the
    Jacobian J of the residuals r. S_j is the covariance of the prewhitened gradients J'r of two
    samples at a distance of j samples. The record must be about a hundred times as long as the
    correlation time of its residuals. This model cannot detect an error that lasts as long as the
    record (a drift); `Jackknife` can.

    **Arguments:** `bandwidth` [s]; by default chosen from the residuals.

    **Source:** see `long_run_covariance`.

    **Example:** `FitResult.uncertainty` compares all noise models.
    """

    bandwidth: float | None = static(default=None)

    def __post_init__(self) -> None:
        check_positive_time("`HAC.bandwidth`", self.bandwidth, "to have it chosen.")

    def spread(self, found: FitResult) -> CovarianceEstimate:
        # The covariance is bread @ meat @ bread. `bread` is the inverse Hessian of the summed loss,
        # 0 for parameters at a bound. `contributions`: gradient of the loss of each residual.
        problem, jacobian, noise = found.problem, found.full_jacobian[: found.n], found.noise_scale
        norms, (r, slope) = np.linalg.norm(found.full_jacobian, axis=0), influence_residuals(found)
        bread = inverse_gram(found.full_jacobian, norms, found.active) / slope
        # If one residual alone determines a parameter, the fit makes this residual zero. Then the
        # standard deviation of the noise replaces this residual.
        leverage = np.clip(np.einsum("ij,jk,ik->i", jacobian, bread, jacobian), 0.0, 1.0)
        alone = noise * np.where(r < 0, -1.0, 1.0)
        r = np.where(leverage < 0.9, r / np.sqrt(1.0 - np.minimum(leverage, 0.9)), alone)
        contributions = jacobian * r[:, None] * found.active
        scale = np.sqrt(np.where(np.diag(bread) > 0, np.diag(bread), 1.0))
        size, directions = np.linalg.eigh(bread / np.outer(scale, scale))
        turn = (scale[:, None] * directions * np.sqrt(np.maximum(size, 0.0)))[:, size > 1e-14]
        samples, meat, widths = Samples(problem), np.zeros((turn.shape[1], turn.shape[1])), []
        for i, data in enumerate(found.records.values()):
            mine = samples.record == i
            if isinstance(problem.prepared[i], PreparedSweep):  # sweep rows do not have times
                terms = contributions[mine] @ turn
                meat += terms.T @ terms
                continue
            scores = np.zeros((samples.sizes[i], contributions.shape[1]))
            np.add.at(scores, samples.sample[mine], contributions[mine])
            step = data.duration / max(data.n - 1, 1)
            # After multiplication by `turn`, white residuals give standard errors of 1 in each
            # direction. Without this multiplication, the autoregression in `long_run_covariance`
            # cannot separate parameters with similar effects.
            summed, width = long_run_covariance(
                scores @ turn, None if self.bandwidth is None else self.bandwidth / step
            )
            meat += len(scores) * summed
            widths.append(width * step)
        priors = found.full_jacobian[found.n :] @ turn * found.noise_scale
        meat += priors.T @ priors
        rows = found.dof + turn.shape[1]
        width = f"kernel {max(widths):.2g} s wide" if widths else "sweeps only"
        covariance = turn @ meat @ turn.T * rows / found.dof
        dof, says = SameDegreesOfFreedom(found.dof), f"autocorrelated residuals: {width}"
        return CovarianceEstimate(covariance, dof, says)
