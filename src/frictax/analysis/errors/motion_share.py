"""Errors of the weak form of inverse dynamics, and whether the motion exceeds the position
noise.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.fitting import FitResult, InverseDynamics
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.fitting.problem.problem import Problem
from frictax.fitting.problem.readings import acting
from frictax.fitting.problem.weak_form import band, force_band, terms
from frictax.fitting.result.spread import CovarianceEstimate, SameDegreesOfFreedom
from frictax.notice import Notice
from frictax.programs import cached_jit
from frictax.pytree import pytree_dataclass

from .linearization import Linearization, LinearNoiseModel

SMALL_MOTION = 0.95  # [1] share of motion below which the errors get a notice
# [1] share of motion below which a fit does not have intervals; they missed true values in tests
START_ONLY = 0.80


@pytree_dataclass
class Whitened(LinearNoiseModel):
    """Residuals that the objective has whitened by a covariance of its own, of variance 1 or more.

    The variance is larger than 1 if this covariance is incomplete, for example if the machine lacks
    a term.
    """

    def estimate(self, linear: Linearization) -> CovarianceEstimate:
        root, unseen = linear.axes
        covariance = linear.noise**2 * (root @ root.T + unseen.T @ unseen)
        dof = SameDegreesOfFreedom(linear.found.dof)
        return CovarianceEstimate(
            covariance, dof, "whitened residuals", allows_autocorrelation=False
        )


def motion_share(found: FitResult) -> float:
    """Return the share of the whitened regressors that is motion and not noise of the measured
    positions, in the worst direction. It is 0 if every stretch of the record is too short, and 1
    for other objectives.

    share = 1 - largest eigenvalue of inv(X'X) N. X are the whitened derivatives of the residuals by
    the parameters, and N is the mean contribution of position noise to X'X.
    """
    problem, objective = found.problem, found.problem.objective
    if not isinstance(objective, InverseDynamics):
        return 1.0
    if objective.at_samples:
        return 0.0 if any(n.code == "no-stretch" for n in found.notes) else 1.0
    active = found.active
    both = np.zeros((2, found.x.size, found.x.size))
    for i, one in enumerate(problem.prepared):
        if isinstance(one, PreparedRecord):
            both += _products(problem, one, found.x, i)
    gram, noise = both[:, active][:, :, active]
    size = np.sqrt(np.diag(gram))
    if not size.size or not np.all(size > 0):
        return 1.0  # Parameters that are not identifiable have notices of their own.
    gram, noise = (a / np.outer(size, size) for a in (gram, noise))
    ridge = 1e-12 * np.eye(size.size)
    return 1.0 - float(np.max(np.linalg.eigvals(np.linalg.solve(gram + ridge, noise)).real))


def without_intervals(found: FitResult, share: float) -> CovarianceEstimate:
    """Return errors without intervals, for a fit that serves as a start of another fit only."""
    said = () if share == 0.0 else (Notice("motion-within-noise", "", {"share": share}),)
    dof = SameDegreesOfFreedom(found.dof)
    return _Unbounded(found.full_covariance, dof, "a start only", said)


@dataclasses.dataclass(frozen=True)
class _Unbounded(CovarianceEstimate):
    """A covariance whose intervals are infinite."""

    def half_width(
        self, level: float, directions: Float[np.ndarray, "m q"]
    ) -> Float[np.ndarray, " m"]:
        del level
        return np.full(len(directions), np.inf)


def _products(
    problem: Problem, prepared: PreparedRecord, x: np.ndarray, i: int
) -> Float[np.ndarray, "2 p p"]:
    """Return X'X, and the mean contribution of position noise to X'X."""
    weak = prepared.weak
    assert weak is not None
    used = np.flatnonzero(np.asarray(weak.stretch) >= 0)
    covariance, by_x, noise = (
        np.asarray(a)[..., used, :, :, :] if np.ndim(a) > 3 else np.asarray(a)
        for a in _derivatives(problem, jnp.asarray(x), i)
    )
    count, c = len(used), covariance.shape[1]
    dense = np.zeros((count + covariance.shape[2], c, count + covariance.shape[2], c))
    rows = np.arange(count)
    for d in range(covariance.shape[2]):
        dense[rows, :, rows + d, :] = covariance[:, :, d, :]
        dense[rows + d, :, rows, :] = np.swapaxes(covariance[:, :, d, :], 1, 2)
    dense = dense[:count, :, :count, :].reshape(count * c, count * c)
    dense[np.diag_indices_from(dense)] *= 1.0 + 1e-9
    inverse = np.linalg.inv(dense)
    columns = by_x[used].reshape(count * c, -1)
    blocks = np.zeros((count + noise.shape[4], c, count + noise.shape[4], c))
    blocks[:count, :, :count, :] = inverse.reshape(count, c, count, c)
    added = np.zeros((len(x), len(x)))
    for d in range(noise.shape[4]):
        mine = blocks[rows, :, rows + d, :]
        part = np.einsum("kba,ijkba->ij", mine, noise[:, :, :, :, d, :])
        added += part if d == 0 else part + part.T
    return np.stack([columns.T @ inverse @ columns, added])


@cached_jit
def _derivatives(problem: Problem, x: Array, i: int) -> tuple[Array, Array, Array]:
    """Return the covariance band of the residuals and the derivatives (K, c, p) of the
    residuals by the parameters. The third result is the noise band of each pair of
    derivatives (p, p, K, c, d, c).
    """
    prepared: Any = problem.prepared[i]
    weak = prepared.weak

    def at(x: Array) -> tuple[Array, Array]:
        setup = problem.setup_at(x, i)
        made = terms(setup, prepared, acting(setup, prepared, problem.delayed))
        return made.residual, made.response

    _, response = at(x)
    by_x, moved = jax.jacfwd(at)(x)
    moved = jnp.moveaxis(moved, -1, 0)
    covariance = band(weak, response, response)
    covariance += force_band(weak) * (weak.force_noise**2)[None, :, None, None]
    noise = jax.vmap(lambda a: jax.vmap(lambda b: band(weak, a, b))(moved))(moved)
    return covariance, by_x, noise
