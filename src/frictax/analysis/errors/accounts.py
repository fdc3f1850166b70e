"""What an account of the residuals of a fit to records has to say."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import Problem
from frictax.fitting.result.covariance import inverse_gram
from frictax.fitting.result.spread import Spread, alike

from .refits import Samples


class AbstractErrors(eqx.Module):
    """An account of what the residuals are, from which errors follow."""

    def check(self, problem: Problem) -> None:
        """Raise `ValueError` where it cannot account for a fit of `problem`."""
        del problem

    @abc.abstractmethod
    def spread(self, found: FitResult) -> Spread:
        """What it makes of a fit."""


class White(AbstractErrors):
    """Residuals that do not depend on each other, all of one size."""

    def spread(self, found: FitResult) -> Spread:
        dof = np.inf if found.problem.noise_known else found.dof
        return Spread(found.full_covariance, alike(dof), None, "residuals taken as white")


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
