"""`Function`: a user's function of time as a signal, and time steps that resolve a signal."""

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
    """A signal f(t) given by any smooth function of the time t [s].

    **Arguments:**

    - `f`: a function, or an equinox module. The arrays of a module are parameters. Runs can also be
      differentiated with respect to variables that a function takes from its closure.
    - `dtmax` > 0 [s]: the longest time step while a contact driven by `f` is stuck. A stuck contact
      does not move, so the solver cannot detect how fast `f` changes. Set `dtmax` to the shortest
      time in which `f` may rise and fall again. Default: duration of the run / 200.

    The engine does not detect a jump inside `f`. If a parameter moves a corner of `f`, derivatives
    are inexact. For jumps and corners use `Step`, `Pulse`, `Trapezoid` or `Sampled`.

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
    """Return the longest time step [s] that resolves the drive `signal` of a stuck contact. Return
    None if time steps that end with the signal's segments are short enough. `span`: duration of the
    run [s]. `summed`: True if other loads are added, so that the sum has other extrema than the
    drive.
    """
    if isinstance(signal, Function):
        return span / 200 if signal.dtmax is None else signal.dtmax
    if summed and isinstance(signal, Sine):
        return 1 / (32 * jnp.maximum(signal.f, jnp.finfo(signal.f.dtype).tiny))
    return None
