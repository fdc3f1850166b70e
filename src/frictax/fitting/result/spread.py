"""How far the numbers of a fit may be off."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from frictax.notice import Notice

from .estimates import quantile


@dataclasses.dataclass(frozen=True)
class Spread:
    """What an account makes of a fit.

    - `covariance` (q, q) of all fitted numbers, hidden ones too; `draws` (k, q) of them, or None.
    - `dof`: degrees of freedom of Student's t, of each product of a row of its argument (m, q)
      with the fitted numbers.
    - `says`: how it was found; `notices`: what speaks against it.
    """

    covariance: Float[np.ndarray, "q q"]
    dof: Callable[[Float[np.ndarray, "m q"]], Float[np.ndarray, " m"]]
    draws: Float[np.ndarray, "k q"] | None
    says: str
    notices: tuple[Notice, ...] = ()

    def half_width(
        self, level: float, directions: Float[np.ndarray, "m q"]
    ) -> Float[np.ndarray, " m"]:
        """Half the interval of each product of a row of `directions` with the fitted numbers."""
        variance = np.einsum("ij,jk,ik->i", directions, self.covariance, directions)
        return quantile(level, self.dof(directions), False) * np.sqrt(np.maximum(variance, 0.0))


class Memoized:
    """A function of directions, the rows of a matrix, and of further arguments. Its last results
    are cached where the matrix has no more rows than columns, such as one for each fitted number.

    The cache is not pickled, the function is: give a function of a module, or
    `functools.partial` of one.
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
