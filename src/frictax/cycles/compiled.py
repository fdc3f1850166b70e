"""What is asked of a cycle again and again, compiled."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from frictax.engine import Adaptive
from frictax.engine.options import ForwardAlone
from frictax.jax_internals import Tracer
from frictax.mechanism import Machine
from frictax.programs import interruptible_jit

from .extremes import extremes as _extremes, sampled as _sampled
from .following import Around, CycleNumbers, by_parameters, followed as _followed
from .newton import ENOUGH, solved as _solved
from .returns import Place, as_system, walked as _walked

walked = interruptible_jit(_walked)
solved = interruptible_jit(_solved)
extremes = interruptible_jit(_extremes)
sampled = interruptible_jit(_sampled)
derivatives = interruptible_jit(by_parameters)
_in_one = interruptible_jit(_followed)


def followed(machine: Machine, args: PyTree, around: Around) -> CycleNumbers:
    """As of `following`; numbers outside of other compiled code by the programs that found the
    cycle, for a program of their own takes longer to compile than hundreds of cycles.
    """
    if any(isinstance(x, Tracer) for x in jax.tree.leaves((machine, args))):
        return _in_one(machine, args, around)
    place, engine = around.place, around.engine
    near, scale = jnp.asarray(around.y), jnp.asarray(around.scale)
    found = solved(machine, args, near, place, scale, engine)
    if isinstance(found.y, Tracer):  # of a machine that other compiled code holds
        return _in_one(machine, args, around)
    path = walked(machine, args, np.asarray(found.y), place, engine)
    events, after = (
        np.asarray(path.times)[: around.phases] - float(place.time),
        float(found.there.after),
    )
    if not (float(found.residual) <= ENOUGH and abs(events[-1] - after) <= 1e-9 * after):
        lost = jnp.full_like(found.y, jnp.nan)
        return CycleNumbers(lost[0], lost, lost, lost)
    period = 2 * after if place.symmetric else after
    events = np.append(events, after + events) if place.symmetric else events
    at = jnp.asarray(events[np.asarray(around.ends)])
    low, high = extremes(machine, args, np.asarray(found.y), place, at, engine)
    return CycleNumbers(jnp.asarray(period, found.y.dtype), low, high, found.y)


@interruptible_jit
def flow(machine: Machine, args: PyTree, y: Any, place: Place) -> Array:
    """The rates of the states at a start."""
    return as_system(machine).flow(place.time, jnp.asarray(y), place.mode, args)


def tight() -> Adaptive:
    """The engine unless another is given: what is solved for has to be smooth to the digits that
    Newton's method ends with.
    """
    return Adaptive(rtol=1e-10, atol=1e-13, adjoint=ForwardAlone())  # pyright: ignore
