"""What an account of the residuals of a fit to records has to say."""

import abc

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import Problem
from frictax.fitting.result.covariance import inverse_gram
from frictax.fitting.result.spread import SameDegreesOfFreedom, Spread
from frictax.measurements.noise import memory
from frictax.pytree import pytree_dataclass

from .refits import Samples


class AbstractErrors(abc.ABC):
    """An account of what the residuals are, from which errors follow."""

    def check(self, problem: Problem) -> None:
        """Raise `ValueError` where it cannot account for a fit of `problem`."""
        del problem

    @abc.abstractmethod
    def spread(self, found: FitResult) -> Spread:
        """What it makes of a fit."""


@pytree_dataclass
class White(AbstractErrors):
    """Residuals that do not depend on each other, all of one size.

    **Example:** all accounts side by side, at `FitResult.uncertainty`.
    """

    def spread(self, found: FitResult) -> Spread:
        dof = np.inf if found.problem.noise_known else found.dof
        return Spread(
            found.full_covariance, SameDegreesOfFreedom(dof), None, "independent residuals"
        )


def scored(found: FitResult) -> tuple[Float[np.ndarray, " n"], float]:
    """The residuals as they pull at the estimates, and the mean slope of that pull by them: those
    of squares as they are, and 1."""
    loss, noise, r = found.problem.loss, found.noise_scale, found.full_residuals
    if loss.rounds == 1:
        return r, 1.0
    counted = Samples(found.problem).counted
    slope = float(np.mean(np.asarray(loss.score_slope(jnp.asarray(r[counted] / noise)))))
    return noise * np.asarray(loss.score(jnp.asarray(r / noise))), slope


def gradients(found: FitResult) -> tuple[Float[np.ndarray, "q q"], Float[np.ndarray, "n q"]]:
    """The inverse of the Hessian of half the sum of squares (or of the loss), 0 for numbers at a
    bound; and each residual's gradient."""
    jacobian, noise = found.full_jacobian[: found.n], found.noise_scale
    norms, (r, slope) = np.linalg.norm(found.full_jacobian, axis=0), scored(found)
    bread = inverse_gram(found.full_jacobian, norms, found.active) / slope
    # A residual that a parameter has to itself is made 0 by the fit: it says nothing of how large
    # it was.
    leverage = np.clip(np.einsum("ij,jk,ik->i", jacobian, bread, jacobian), 0.0, 1.0)
    alone = noise * np.where(r < 0, -1.0, 1.0)
    r = np.where(leverage < 0.9, r / np.sqrt(1.0 - np.minimum(leverage, 0.9)), alone)
    return bread, jacobian * r[:, None] * found.active


def check_time(what: str, value: float | None, remedy: str) -> None:
    """Raise `ValueError` unless `value` is a time > 0 s, or left out."""
    if value is not None and not value > 0:
        raise ValueError(f"{what} must be > 0 s, got {value}. Leave it out {remedy}")


def effective_samples(found: FitResult) -> float:
    """n / (1 + 2 sum of the autocorrelations) of the residuals in the order of time, summed over
    records.

    A residual that remembers its past tells again what is known: of 1000 samples a second with a
    memory of 50 ms some 10 count. The sum of the autocorrelations runs over pairs of lags as long
    as these are positive and do not rise (beyond, it is noise).

    **Source:** H. J. Thiébaux, F. W. Zwiers, "The interpretation and estimation of effective sample
    size", Journal of Climate and Applied Meteorology 23 (1984); where to end the sum: C. J. Geyer,
    "Practical Markov chain Monte Carlo", Statistical Science 7 (1992).
    """
    samples, out = Samples(found.problem), 0.0
    for i, prepared in enumerate(found.problem.prepared):
        mine = (samples.record == i) & samples.counted
        channels = np.asarray(prepared.weight).shape[-1]
        column = np.arange(samples.record.size)[mine] - int(np.argmax(samples.record == i))
        for c in range(channels):
            r = found.full_residuals[mine][column % channels == c]
            out += r.size / memory(r)
    return max(out, len(found.estimates) + 2.0)
