"""The covariance of the estimates by a noise model, with degrees of freedom."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from frictax.notice import Notice

from .estimates import quantile


@dataclasses.dataclass(frozen=True)
class CovarianceEstimate:
    """The covariance of the fitted numbers by one noise model.

    - `covariance` (q, q) of all fitted numbers, hidden ones too. `dof`: a function that returns the
      degrees of freedom of Student's t for each direction, a row of its argument (m, q).
    - `says`: the assumption about the residuals in words. `notices`: reasons to doubt it.
    - `draws` (k, q): the fitted numbers of many refits, or None.
    - `allows_autocorrelation`: the residuals are not assumed to be white noise.
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
        """Return half of the interval of each row of `directions` times the fitted numbers."""
        variance = np.einsum("ij,jk,ik->i", directions, self.covariance, directions)
        return quantile(level, self.dof(directions), False) * np.sqrt(np.maximum(variance, 0.0))


class Memoized:
    """A function of directions, the rows of a matrix, and of further arguments. Its last results
    are cached if the matrix has at most as many rows as columns.

    Pickling includes the function but not the cache. So the function must belong to a module, or
    be a `functools.partial` of such a function.
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
    """Degrees of freedom `dof`, equal for each direction."""

    dof: float | int

    def __call__(self, directions: Float[np.ndarray, "m q"]) -> Float[np.ndarray, " m"]:
        return np.full(len(directions), float(self.dof))
