"""The covariance of the estimates, from the Jacobian and a noise model."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.notice import Notice

from ..problem.losses import AbstractLoss
from .estimates import quantile


@dataclasses.dataclass(frozen=True)
class CovarianceEstimate:
    """The covariance of the fitted numbers according to one noise model.

    - `covariance` (q, q) of all fitted numbers, including the initial states of windows. `dof`: a
      function that returns the degrees of freedom of Student's t for each row of its argument (m,
      q). A row contains the coefficients of a linear combination of the fitted numbers.
    - `says`: the assumption about the residuals in words; `notices`: reasons to doubt this
      assumption.
    - `draws` (k, q): the fitted numbers of many refits, or None.
    - `allows_autocorrelation`: false if the noise model assumes white residuals.
    """

    covariance: Float[np.ndarray, "q q"]
    dof: Callable[[Float[np.ndarray, "m q"]], Float[np.ndarray, " m"]]
    says: str
    notices: tuple[Notice, ...] = ()
    draws: Float[np.ndarray, "k q"] | None = None
    allows_autocorrelation: bool = True

    def half_width(
        self, level: float, directions: Float[np.ndarray, "m q"]
    ) -> Float[np.ndarray, " m"]:
        """Return half the width of the interval of each linear combination in `directions`."""
        variance = np.einsum("ij,jk,ik->i", directions, self.covariance, directions)
        return quantile(level, self.dof(directions), False) * np.sqrt(np.maximum(variance, 0.0))


class Memoized:
    """A function of a matrix of directions (one in each row) and of further arguments, with a cache
    of its last four results. Results for matrices with more rows than columns are not cached.

    A pickle contains the function without the cache. Therefore the function must be defined at the
    level of a module, or be a `functools.partial` of a function at this level.
    """

    def __init__(self, function: Callable[..., np.ndarray]) -> None:
        self.function = function
        self._cached = functools.lru_cache(maxsize=4)(self._read_only)

    def _read_only(self, entries: bytes, shape: tuple[int, ...], *more: Any) -> np.ndarray:
        out = self.function(np.frombuffer(entries).reshape(shape), *more)
        out.setflags(write=False)
        return out

    def __call__(self, directions: np.ndarray, *more: Any) -> np.ndarray:
        if 0 < len(directions) <= directions.shape[1]:
            return self._cached(directions.tobytes(), directions.shape, *more)
        return self.function(directions, *more)

    def __reduce__(self) -> tuple[Any, ...]:
        return Memoized, (self.function,)


@dataclasses.dataclass(frozen=True)
class SameDegreesOfFreedom:
    """A function that returns the same degrees of freedom, `dof`, for each direction."""

    dof: float | int

    def __call__(self, directions: Float[np.ndarray, "m q"]) -> Float[np.ndarray, " m"]:
        return np.full(len(directions), float(self.dof))


def inverse_gram(jacobian: Any, norms: Any, active: Any) -> np.ndarray:
    """Return the inverse of J^T J for the active columns of J, with zeros for other columns. The
    result is very large along a direction that is not identifiable. `norms`: lengths of columns.
    """
    scaled = np.where(active, jacobian / np.where(norms > 0, norms, 1.0), 0.0)
    padded = np.concatenate([scaled, np.diag(np.where(active, 0.0, 1.0))])
    _, s, vt = np.linalg.svd(padded, full_matrices=False)
    root = vt.T / np.maximum(s, 1e-12)
    inverse = root @ root.T
    keep = active[:, None] & active[None, :]
    size = np.where(active, norms, 1.0)
    return np.where(keep, inverse / size[:, None] / size[None, :], 0.0)


def robust_variance(
    loss: AbstractLoss, scaled: Float[np.ndarray, " n"], dof: int, noise_known: bool
) -> float:
    """Return K**2 * sum(score**2)/dof / mean(slope)**2, the factor on scale**2 * inv(J^T J) in the
    covariance of a robust fit. Score and slope are the first and second derivative of the loss, K
    is Huber's correction, and `scaled` are the residuals divided by the noise scale. If the noise
    is known, sum(score**2)/dof is replaced by the mean of score**2 for normal noise.

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
