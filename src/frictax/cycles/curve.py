"""The cycles of a machine over one parameter: a curve of states and values."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from frictax.engine import Adaptive
from frictax.mechanism import Machine
from frictax.parameters import replace
from frictax.programs import interruptible_jit

from .cycle import LimitCycle
from .made import made
from .newton import GOOD, Solution
from .returns import Place, Return, returned

_TRIES = 8  # of Newton's method for a point
_ROUNDING = 100.0  # of what is good: as far as runs round, and no step helps any more


class Slopes(eqx.Module):
    """A return, and its derivatives by the state and, in the last column, by the parameter."""

    there: Return
    y: Float[Array, "n k"]
    after: Float[Array, " k"]


@interruptible_jit
def looked(
    machine: Machine, path: str, x: Any, args: PyTree, place: Place, engine: Adaptive
) -> Slopes:
    """The return of the state x[:-1] with x[-1] for the parameter at `path`."""

    def both(x: Any) -> Any:
        there = returned(replace(machine, {path: x[-1]}), args, x[:-1], place, engine)
        return (there.y, there.after), there

    slopes, there = jax.jacfwd(both, has_aux=True)(x)
    return Slopes(there, *slopes)


@dataclasses.dataclass(frozen=True)
class Point:
    """A cycle on a branch: its state and the parameter over their sizes, the derivatives there, and
    the unit vector along the branch.
    """

    x: np.ndarray
    at: Slopes
    along: np.ndarray

    def turned(self, along: np.ndarray) -> "Point":
        """This point, with its vector to the side of another."""
        return dataclasses.replace(self, along=np.copysign(1.0, self.along @ along) * self.along)


class Curve:
    """The cycles of a machine over one parameter: the points x = (state, parameter), in their
    sizes, whose return is themselves.
    """

    def __init__(self, cycle: LimitCycle, path: str, size: float) -> None:
        self.cycle, self.path = cycle, path
        self.scale = np.append(cycle.scale, size)

    def look(self, x: np.ndarray) -> tuple[Slopes, np.ndarray, np.ndarray]:
        """What is known at `x`: residual (n,) and its derivatives (n, n+1), in the sizes."""
        c = self.cycle
        at = looked(c.machine, self.path, jnp.asarray(x * self.scale), c.args, c.place, c.engine)
        missed = np.asarray(at.there.y) / self.scale[:-1] - x[:-1]
        if not (at.there.came and np.all(np.isfinite(missed))):
            missed = np.full_like(missed, np.inf)
        matrix = np.asarray(at.y) * self.scale / self.scale[:-1, None]
        return at, missed, matrix - np.eye(*matrix.shape)

    def corrected(self, x: np.ndarray, normal: np.ndarray) -> Point | None:
        """The point of the curve in the plane through `x` with that normal; None where Newton's
        method does not come to one.
        """
        begun, last, good = x, np.inf, GOOD * _largest(x)
        for _ in range(_TRIES):
            at, missed, matrix = self.look(x)
            size = float(np.max(np.abs(missed)))
            worse = size > 0.5 * last
            if not np.isfinite(size) or (worse and size > _ROUNDING * good):
                return None
            full, off = np.vstack([matrix, normal]), float(normal @ (x - begun))
            if size <= good or worse:
                along = np.linalg.solve(full, np.append(np.zeros(len(missed)), 1.0))
                return Point(x, at, along / np.linalg.norm(along))
            step = np.linalg.solve(full, -np.append(missed, off))
            # What every return sets to the same is that from now on, without a rounding.
            set_by_event = np.all(np.asarray(at.y) == 0, axis=1)
            x = x + step
            there = np.asarray(at.there.y) / self.scale[:-1]
            x[:-1] = np.where(set_by_event, there, x[:-1])
            last = size
        return None

    def value(self, x: np.ndarray) -> float:
        """The parameter at `x`."""
        return float(x[-1] * self.scale[-1])

    def made(self, x: np.ndarray, at: Slopes) -> LimitCycle:
        """The cycle at a point of the curve; raises `CycleError` where it is none."""
        c, n = self.cycle, len(x) - 1
        slopes = Return(at.y[:, :n], at.after[:n], jnp.zeros((0, n)), at.there.came)
        y = jnp.asarray(x[:n] * self.scale[:n])
        missed = jnp.max(jnp.abs(at.there.y - y) / self.scale[:n]) / _largest(x)
        found = Solution(y, at.there, slopes, missed, jnp.array(1))
        return made(
            replace(c.machine, {self.path: self.value(x)}), c.args, found, c.place, c.engine
        )

    def fold(self, before: Point, after: Point) -> Point:
        """The point between two at which the parameter turns back: smoothly, or at a corner, where
        events come or go.
        """
        length, way = float(before.along @ (after.x - before.x)), np.sign(before.along[-1])
        low, high = (0.0, before.along[-1]), (length, after.along[-1])
        best = max(before, after, key=lambda point: way * point.x[-1])
        for _ in range(60):
            (left, g0), (right, g1) = low, high
            share = left - g0 * (right - left) / (g1 - g0)
            margin = 0.1 * (right - left)
            share = min(max(share, left + margin), right - margin)
            found = self.corrected(before.x + share * before.along, before.along)
            # At a corner Newton's method may find neither side from beyond it.
            slope = g1 if found is None else found.turned(before.along).along[-1]
            low, high = (low, (share, slope)) if slope * g1 > 0 else ((share, slope), high)
            if found is not None and way * found.x[-1] > way * best.x[-1]:
                best = found
            if abs(slope) < 1e-7 or right - left < 1e-9:
                break
        return best


def _largest(x: np.ndarray) -> float:
    """How far the states have grown over their sizes, by which what is missed may grow too."""
    return max(1.0, float(np.max(np.abs(x[:-1]))))
