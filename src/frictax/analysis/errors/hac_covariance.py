"""How strongly a sum varies whose terms depend on their neighbours, and errors from it."""

import numpy as np
from jaxtyping import Float

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import PreparedSweep
from frictax.fitting.result.spread import SameDegreesOfFreedom, Spread
from frictax.pytree import pytree_dataclass, static

from .accounts import AbstractErrors, check_time, gradients
from .refits import Samples

_STEADY = 0.97  # the largest eigenvalue that prewhitening takes out


def long_run_covariance(
    scores: Float[np.ndarray, "n p"], bandwidth: float | None = None
) -> tuple[Float[np.ndarray, "p p"], float]:
    """The covariance of the sum of n terms in time, each of p numbers with mean 0, over n; and the
    bandwidth used [samples].

    An autoregression of order 1 takes out most of the dependence (prewhitening); what it leaves is
    summed up with the weights of the quadratic spectral kernel over `bandwidth` samples, chosen
    from the data unless given; then the autoregression is put back.

    **Source:** D. W. K. Andrews, Econometrica 59 (1991), equations 2.7, 5.3, 6.2, 6.4; D. W. K.
    Andrews, J. C. Monahan, Econometrica 60 (1992), section 3.

    A term that has 0.9 of the one before it makes a sum that varies by (1 + 0.9)/(1 - 0.9) times
    more than independent terms would:

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
    slopes = left @ np.diag(np.minimum(values, _STEADY)) @ right
    white = np.concatenate([scaled[:1], after - before @ slopes.T])
    width = _bandwidth(white) if bandwidth is None else float(bandwidth)
    summed = _smoothed(white, width)
    back = np.linalg.inv(np.eye(p) - slopes)
    return back @ summed @ back.T * np.outer(size, size), width


def _bandwidth(x: Float[np.ndarray, "n p"]) -> float:
    """What suits autoregressions of order 1, one for each column."""
    n = len(x)
    square = np.sum(x[:-1] ** 2, axis=0)
    rho = np.clip(
        np.sum(x[1:] * x[:-1], axis=0) / np.where(square > 0, square, 1.0), -_STEADY, _STEADY
    )
    weight = np.mean(x**2, axis=0) ** 2
    above = np.sum(weight * 4 * rho**2 / (1 - rho) ** 8)
    below = np.sum(weight / (1 - rho) ** 4)
    return float(1.3221 * (max(above / below, 0.0) * n) ** 0.2) if below > 0 else 0.0


def _smoothed(x: Float[np.ndarray, "n p"], width: float) -> Float[np.ndarray, "p p"]:
    """The sum over all lags j of kernel(j/width) times the covariance at that lag."""
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
class HAC(AbstractErrors):
    """Residuals that depend on those near in time, and whose size may change (heteroskedasticity
    and autocorrelation consistent).

    covariance = B (sum over lags j of kernel(j/bandwidth) S_j) B with B = inv(J'J) and S_j the
    covariance, j samples apart, of the gradients J'r of each sample, prewhitened. Right where the
    record is some hundred times as long as its residuals remember, or more. An error that lasts as
    long as the record, such as a drift, no such account can see: take `Jackknife` over repeats.

    **Arguments:** `bandwidth` [s]; chosen from the residuals unless given.

    **Source:** see `long_run_covariance`.

    **Example:** all accounts side by side, at `FitResult.uncertainty`.
    """

    bandwidth: float | None = static(default=None)

    def __post_init__(self) -> None:
        check_time("`HAC.bandwidth`", self.bandwidth, "to have it chosen.")

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
        says = f"autocorrelated residuals: {width}"
        return Spread(covariance, SameDegreesOfFreedom(found.dof), None, says)
