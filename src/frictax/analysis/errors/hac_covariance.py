"""Covariance of sums of autocorrelated terms (HAC), and errors from it."""

import numpy as np
from jaxtyping import Float

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import PreparedSweep
from frictax.fitting.result.spread import CovarianceEstimate, SameDegreesOfFreedom, inverse_gram
from frictax.pytree import pytree_dataclass, static

from .linearization import NoiseModel, Samples, check_positive_time, influence_residuals

_LARGEST_EIGENVALUE = (
    0.97  # limit in the prewhitening autoregression (Andrews and Monahan, section 3)
)


def long_run_covariance(
    scores: Float[np.ndarray, "n p"], bandwidth: float | None = None
) -> tuple[Float[np.ndarray, "p p"], float]:
    """Return the covariance of the sum of n terms in time, over n, and the bandwidth [samples].
    Each term has p components with mean 0.

    An autoregression of order 1 takes out most of the dependence (prewhitening). The covariances
    of the rest are added with the weights of the quadratic spectral kernel over `bandwidth`
    samples, by default chosen from the data. Then the autoregression is put back.

    **Source:** D. W. K. Andrews, Econometrica 59 (1991), equations 2.7, 5.3, 6.2, 6.4; D. W. K.
    Andrews, J. C. Monahan, Econometrica 60 (1992), section 3.

    If each term has 0.9 of the previous one, the sum varies by (1 + 0.9)/(1 - 0.9) times more than
    the sum of independent terms:

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
    slopes = left @ np.diag(np.minimum(values, _LARGEST_EIGENVALUE)) @ right
    white = np.concatenate([scaled[:1], after - before @ slopes.T])
    width = _bandwidth(white) if bandwidth is None else float(bandwidth)
    summed = _kernel_sum(white, width)
    back = np.linalg.inv(np.eye(p) - slopes)
    return back @ summed @ back.T * np.outer(size, size), width


def _bandwidth(x: Float[np.ndarray, "n p"]) -> float:
    """Return the bandwidth [samples] for autoregressions of order 1, one for each column."""
    n = len(x)
    square = np.sum(x[:-1] ** 2, axis=0)
    rho = np.clip(
        np.sum(x[1:] * x[:-1], axis=0) / np.where(square > 0, square, 1.0),
        -_LARGEST_EIGENVALUE,
        _LARGEST_EIGENVALUE,
    )
    weight = np.mean(x**2, axis=0) ** 2
    above = np.sum(weight * 4 * rho**2 / (1 - rho) ** 8)
    below = np.sum(weight / (1 - rho) ** 4)
    return float(1.3221 * (max(above / below, 0.0) * n) ** 0.2) if below > 0 else 0.0


def _kernel_sum(x: Float[np.ndarray, "n p"], width: float) -> Float[np.ndarray, "p p"]:
    """Return the sum over all lags j of kernel(j/width) times the covariance at lag j."""
    n = len(x)
    now = x.T @ x / n
    if width < 1e-3:
        return now
    at = 1.2 * np.pi * np.arange(1, n) / width
    kernel = 3.0 / at**2 * (np.sin(at) / at - np.cos(at))
    # The sum over j of kernel(j) x[t - j], for all t at once.
    length = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(np.concatenate([[0.0], kernel]), length)[:, None] * np.fft.rfft(
        x, length, axis=0
    )
    earlier = np.fft.irfft(spectrum, length, axis=0)[:n]
    lagged = x.T @ earlier / n
    return now + lagged + lagged.T


@pytree_dataclass
class HAC(NoiseModel):
    """Residuals that are correlated with their neighbours and whose variance may change
    (heteroskedasticity and autocorrelation consistent).

    covariance = B (sum over lags j of kernel(j/bandwidth) S_j) B with B = inv(J'J). S_j is the
    covariance of the prewhitened gradients J'r of samples j apart. The record must be about a
    hundred times as long as the correlation time of its residuals. This model cannot detect an
    error that lasts as long as the record, such as a drift. Use `Jackknife` over repeats then.

    **Arguments:** `bandwidth` [s]; by default chosen from the residuals.

    **Source:** see `long_run_covariance`.

    **Example:** all noise models side by side, at `FitResult.uncertainty`.
    """

    bandwidth: float | None = static(default=None)

    def __post_init__(self) -> None:
        check_positive_time("`HAC.bandwidth`", self.bandwidth, "to have it chosen.")

    def spread(self, found: FitResult) -> CovarianceEstimate:
        problem, (bread, contributions) = found.problem, score_contributions(found)
        scale = np.sqrt(np.where(np.diag(bread) > 0, np.diag(bread), 1.0))
        size, directions = np.linalg.eigh(bread / np.outer(scale, scale))
        turn = (scale[:, None] * directions * np.sqrt(np.maximum(size, 0.0)))[:, size > 1e-14]
        samples, meat, widths = Samples(problem), np.zeros((turn.shape[1], turn.shape[1])), []
        for i, data in enumerate(found.records.values()):
            mine = samples.record == i
            if isinstance(problem.prepared[i], PreparedSweep):  # The rows of a sweep have no time.
                terms = contributions[mine] @ turn
                meat += terms.T @ terms
                continue
            scores = np.zeros((samples.sizes[i], contributions.shape[1]))
            np.add.at(scores, samples.sample[mine], contributions[mine])
            step = data.duration / max(data.n - 1, 1)
            # In the directions of `turn`, white residuals give unit errors. An autoregression
            # cannot separate parameters with the same effect in their own units.
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


def score_contributions(
    found: FitResult,
) -> tuple[Float[np.ndarray, "q q"], Float[np.ndarray, "n q"]]:
    """Return the inverse Hessian of half the loss, 0 for parameters at a bound, and the gradient of
    the loss of each residual.
    """
    jacobian, noise = found.full_jacobian[: found.n], found.noise_scale
    norms, (r, slope) = np.linalg.norm(found.full_jacobian, axis=0), influence_residuals(found)
    bread = inverse_gram(found.full_jacobian, norms, found.active) / slope
    # If one residual alone determines a parameter, the fit makes this residual zero. Its size is
    # then replaced by the noise.
    leverage = np.clip(np.einsum("ij,jk,ik->i", jacobian, bread, jacobian), 0.0, 1.0)
    alone = noise * np.where(r < 0, -1.0, 1.0)
    r = np.where(leverage < 0.9, r / np.sqrt(1.0 - np.minimum(leverage, 0.9)), alone)
    return bread, jacobian * r[:, None] * found.active
