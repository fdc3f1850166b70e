"""A limit cycle as a function of the machine, to be differentiated, compiled and batched."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from frictax.engine import Adaptive
from frictax.mechanism import Machine
from frictax.parameters import Values
from frictax.parameters.constant import constant

from .extremes import extremes
from .newton import ENOUGH, solved
from .returns import Place, returned


class CycleNumbers(eqx.Module):
    """The numbers of a limit cycle that may be differentiated.

    - `period` [s]; `low`, `high`, `amplitude` (n,): the least and the greatest value of each state
      over the cycle, and half of what lies between; `start` (n,): the state at the event that
      begins it.

    **Example:** at `LimitCycle`.
    """

    period: Values
    low: Values
    high: Values
    start: Values

    @property
    def amplitude(self) -> Values:
        return 0.5 * (self.high - self.low)


def followed(
    machine: Machine,
    args: PyTree,
    y: Any,
    place: Place,
    scale: Any,
    engine: Adaptive,
    ends: tuple[int, ...],
    phases: int,
) -> CycleNumbers:
    """The cycle of `machine` near the start `y`; NaN where there is none, or one of other events.

    Derivatives are those of the implicit function theorem: the solution is a constant, and one more
    step of Newton's method, of length 0, carries them. So nothing is differentiated twice.

    **Arguments:** `phases`: how many phases a return has; `ends`: which of the cycle's last, and so
    are looked at.
    """
    y, scale = jnp.asarray(y), jnp.asarray(scale)
    at = constant(solved(constant(machine), args, y, place, scale, engine, phases))
    there = returned(machine, args, at.y, place, engine, phases)
    matrix = jnp.eye(len(scale)) - at.slopes.y * scale / scale[:, None]
    moved = scale * jnp.linalg.solve(matrix, (there.y - at.y) / scale)
    y, after = at.y + moved, there.after + at.slopes.after @ moved
    events = there.events + at.slopes.events @ moved
    alike = jnp.abs(there.events[-1] - there.after) <= 1e-9 * there.after
    period = after
    if place.symmetric:
        events, period = jnp.append(events, after + events), 2 * after
    low, high = extremes(machine, args, y, place, events[jnp.asarray(ends)], engine)
    found = jnp.where((at.residual <= ENOUGH) & alike, 1.0, jnp.nan)
    return jax.tree.map(lambda x: x * found, CycleNumbers(period, low, high, y))
