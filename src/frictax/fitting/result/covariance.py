"""The covariance of estimates from the Jacobian of the weighted residuals."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..problem.losses import AbstractLoss


def inverse_gram(jacobian: Any, norms: Any, active: Any, xp: Any = np) -> Any:
    """Return inv(J^T J) over the active columns, zero elsewhere. It is very large along a direction
    that is not identifiable. `norms`: lengths of J's columns; `xp`: numpy or jax.numpy.
    """
    scaled = xp.where(active, jacobian / xp.where(norms > 0, norms, 1.0), 0.0)
    padded = xp.concatenate([scaled, xp.diag(xp.where(active, 0.0, 1.0))])
    _, s, vt = xp.linalg.svd(padded, full_matrices=False)
    root = vt.T / xp.maximum(s, 1e-12)
    inverse = root @ root.T
    keep = active[:, None] & active[None, :]
    size = xp.where(active, norms, 1.0)
    return xp.where(keep, inverse / size[:, None] / size[None, :], 0.0)


def robust_variance(
    loss: AbstractLoss, scaled: Float[np.ndarray, " n"], dof: int, noise_known: bool
) -> float:
    """Return the factor of scale**2 * inv(J^T J): K**2 * sum(score**2)/dof / mean(slope)**2.

    K is Huber's correction, and `scaled` are the residuals in units of the noise scale. If the
    noise is known, the mean of score**2 is that of normal noise.

    **Source:** P. J. Huber, E. M. Ronchetti, *Robust Statistics*, 2nd ed. (2009), equations 7.81 to
    7.83 (first form).
    """
    rows = scaled.size
    slope = np.asarray(loss.score_slope(jnp.asarray(scaled)))
    mean, scatter = slope.mean(), slope.var()
    correction = 1.0 + (rows - dof) / rows * scatter / mean**2
    score = np.asarray(loss.score(jnp.asarray(scaled)))
    square = loss.consistency() if noise_known else float(score @ score) / max(dof, 1)
    return float(correction**2 * square / mean**2)
