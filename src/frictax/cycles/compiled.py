"""What is asked of a cycle again and again, compiled."""

import equinox as eqx
import jax

from frictax.engine import Adaptive
from frictax.engine.options import ForwardAlone

from .extremes import extremes as _extremes, sampled as _sampled
from .newton import solved as _solved
from .returns import walked as _walked

walked = eqx.filter_jit(_walked)
solved = eqx.filter_jit(_solved)
extremes = eqx.filter_jit(_extremes)
sampled = eqx.filter_jit(_sampled)


def tight() -> Adaptive:
    """The engine unless another is given: what is solved for has to be smooth to the digits that
    Newton's method ends with.
    """
    if not jax.config.read("jax_enable_x64"):
        return Adaptive(adjoint=ForwardAlone())
    return Adaptive(rtol=1e-10, atol=1e-13, adjoint=ForwardAlone())
