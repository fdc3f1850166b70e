"""A limit cycle as a function of the machine, to be differentiated, compiled and batched."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PyTree

from frictax.engine import Adaptive
from frictax.mechanism import Machine
from frictax.parameters import Values, replace
from frictax.parameters.arrays import constant

from .extremes import extremes
from .newton import ENOUGH, solved, towards
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


class Around(eqx.Module):
    """Where a cycle is looked for, and how: near the start `y` (n,) at `place`, with the sizes
    `scale` (n,) of the states; `phases`: how many phases a return has; `ends`: which of the
    cycle's last, and so are looked at.
    """

    y: Any
    place: Place
    scale: Any
    engine: Adaptive
    ends: tuple[int, ...]
    phases: int


def followed(machine: Machine, args: PyTree, around: Around) -> CycleNumbers:
    """The cycle of `machine` near the start `y`; NaN where there is none, or one of other events.

    Derivatives are those of the implicit function theorem: the solution is a constant, and one more
    step of Newton's method, of length 0, carries them. So nothing is differentiated twice.
    """
    y, scale = jnp.asarray(around.y), jnp.asarray(around.scale)
    place, engine, phases = around.place, around.engine, around.phases
    at = constant(solved(constant(machine), args, y, place, scale, engine, phases))
    there = returned(machine, args, at.y, place, engine, phases)
    moved = towards(at.slopes.y, there.y - at.y, scale)
    y, after = at.y + moved, there.after + at.slopes.after @ moved
    events = there.events + at.slopes.events @ moved
    alike = jnp.abs(there.events[-1] - there.after) <= 1e-9 * there.after
    period = after
    if place.symmetric:
        events, period = jnp.append(events, after + events), 2 * after
    low, high = extremes(machine, args, y, place, events[jnp.asarray(around.ends)], engine)
    found = jnp.where((at.residual <= ENOUGH) & alike, 1.0, jnp.nan)
    return jax.tree.map(lambda x: x * found, CycleNumbers(period, low, high, y))


def by_parameters(
    values: dict[str, Array], machine: Machine, args: PyTree, around: Around
) -> dict[str, CycleNumbers]:
    """The derivatives of `followed` by the `values` of parameters, path -> value, at a cycle whose
    start is known: nothing is solved for, and the return is run once for its derivatives by state
    and parameters. Gives `CycleNumbers` of derivatives by path, each with the shape of its value
    behind its own.
    """
    y, scale, n = jnp.asarray(around.y), jnp.asarray(around.scale), len(around.scale)
    place, engine = around.place, around.engine
    x, back = ravel_pytree(values)
    at = lambda x: replace(machine, back(x))  # noqa: E731

    def gone(both: Array) -> tuple[tuple[Array, Array, Array], Array]:
        there = returned(at(both[n:]), args, both[:n], place, engine, around.phases)
        events, after = there.events, there.after
        if place.symmetric:
            events, after = jnp.append(events, after + events), 2 * after
        times = events[jnp.asarray(around.ends)]
        return (there.y, after, times), times

    slopes, times = jax.jacfwd(gone, has_aux=True)(jnp.append(y, x))
    by_state, own = slopes[0][:, :n], slopes[0][:, n:]
    moved = towards(by_state, own, scale)
    period, times_by = (of[..., :n] @ moved + of[..., n:] for of in slopes[1:])

    def ranging(by: Array) -> tuple[Array, Array]:
        return extremes(at(x + by), args, y + moved @ by, place, times + times_by @ by, engine)

    low, high = jax.jacfwd(ranging)(jnp.zeros_like(x))
    each = [jax.vmap(back)(jnp.atleast_2d(of)) for of in (period, low, high, moved)]
    return {name: CycleNumbers(each[0][name][0], *(of[name] for of in each[1:])) for name in values}
