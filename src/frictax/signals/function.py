"""A user's function of time as a signal."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from frictax.annotations import ScalarLike
from frictax.parameters import Number, Positive, Scalar, check, parameter

from .signal import AbstractSignal, OnePiece, Piece, check_function, with_closed_over
from .sine import Sine


class Function(OnePiece):
    """Any smooth function of time, f(t) [s].

    **Arguments:** `f`, a function, or an equinox module, whose arrays are then parameters (runs can
    also be differentiated by variables in the closure of a function); `dtmax` > 0 [s], the longest
    step while a contact driven by it is stuck. A stuck contact does not move, so the solver cannot
    see how fast `f` changes. Give the time in which `f` may rise and fall again. Default: a
    two-hundredth of the run.

    The engine steps over a jump inside `f`, and a corner that moves makes derivatives inexact. Use
    `Step`, `Pulse`, `Trapezoid` or `Sampled` for both.

    >>> import frictax as fx, jax.numpy as jnp
    >>> float(fx.Function(lambda t: 2.0 * t, dtmax=0.1)(3.0))
    6.0
    """

    f: Callable[[Array], ScalarLike] = eqx.field(converter=with_closed_over(1))
    dtmax: Scalar | None = parameter(Positive(), "s", fit=False, default=None)

    def __check_init__(self) -> None:
        if not callable(self.f):
            raise ValueError(
                f"`Function.f` must be a function of time, got {self.f!r}. Write `Constant` for a"
                " number that stays."
            )
        check(self)
        check_function(self, "of one time,", 1)

    def on_piece(self, t: Number, k: Piece) -> Number:
        return jnp.asarray(self.f(t), dtype=t.dtype)


def longest_step(signal: AbstractSignal, span: Number, summed: bool) -> Any:
    """Return the longest step [s] that resolves the drive of a stuck contact; None if the segments
    of the signal resolve it.

    `summed`: whether the drive adds to other loads, so that the extrema of the sum are not those of
    the drive.
    """
    if isinstance(signal, Function):
        return span / 200 if signal.dtmax is None else signal.dtmax
    if summed and isinstance(signal, Sine):
        return 1 / (32 * jnp.maximum(signal.f, jnp.finfo(signal.f.dtype).tiny))
    return None
