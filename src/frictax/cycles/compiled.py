"""What is asked of a cycle again and again, compiled."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from frictax.engine import Adaptive
from frictax.engine.options import ForwardAlone
from frictax.mechanism import Machine

from .extremes import extremes as _extremes, sampled as _sampled
from .following import followed as _followed
from .newton import solved as _solved
from .returns import Place, as_system, walked as _walked

walked = eqx.filter_jit(_walked)
solved = eqx.filter_jit(_solved)
followed = eqx.filter_jit(_followed)
extremes = eqx.filter_jit(_extremes)
sampled = eqx.filter_jit(_sampled)


@eqx.filter_jit
def flow(machine: Machine, args: PyTree, y: Any, place: Place) -> Array:
    """The rates of the states at a start."""
    return as_system(machine).flow(place.time, jnp.asarray(y), place.mode, args)


def tight() -> Adaptive:
    """The engine unless another is given: what is solved for has to be smooth to the digits that
    Newton's method ends with.
    """
    return Adaptive(rtol=1e-10, atol=1e-13, adjoint=ForwardAlone())  # pyright: ignore
