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


def recalled(of: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """`of` directions, rows of a matrix, and more: what it gave last is not computed again where
    these are no more than their columns, such as one for each fitted number.
    """

    @functools.lru_cache(maxsize=4)
    def again(entries: bytes, shape: tuple[int, ...], *more: Any) -> np.ndarray:
        out = of(np.frombuffer(entries).reshape(shape), *more)
        out.setflags(write=False)
        return out

    def asked(directions: np.ndarray, *more: Any) -> np.ndarray:
        if 0 < len(directions) <= directions.shape[1]:
            return again(directions.tobytes(), directions.shape, *more)
        return of(directions, *more)

    return asked


def alike(dof: float | int) -> Callable[[Float[np.ndarray, "m q"]], Float[np.ndarray, " m"]]:
    """The same degrees of freedom for all that is asked for."""
    return lambda directions: np.full(len(directions), float(dof))
