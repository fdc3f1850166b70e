"""`Function`: a user's function of time as a signal, and the largest rate of a signal."""

from collections.abc import Callable, Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from frictax.annotations import ScalarLike
from frictax.parameters import Number, Positive, Scalar, check, parameter

from .periodic import Trapezoid
from .sampled import Sampled
from .signal import AbstractSignal, OnePiece, Piece, check_function, with_closed_over
from .sine import Sine
from .step import Ramp


class Function(OnePiece):
    """A signal f(t) given by any smooth function of the time t [s].

    **Arguments:**

    - `f`: a function, or an equinox module. The arrays of a module are parameters. Runs can also be
      differentiated with respect to variables that a function takes from its closure.
    - `dtmax` > 0 [s]: the longest time step of `Adaptive`. In a longer step, a short pulse of `f`
      may have no effect. Set `dtmax` to the shortest time in which `f` may rise and fall again.
      Default: duration of the run / 200.

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


def longest_steps_of_functions(signals: Iterable[AbstractSignal], span: Number) -> list[Any]:
    """Return the longest time step [s] of each `Function` in `signals`. `span`: length of the run
    [s]."""
    return [
        span / 200 if signal.dtmax is None else signal.dtmax
        for signal in signals
        if isinstance(signal, Function)
    ]


def largest_rate(signal: AbstractSignal, t: Number, span: Number) -> Any:
    """Return the largest |dx/dt| of a signal x that does not jump. For a `Function` or a user's
    signal, return its largest rate at 201 times from `t` to `t + span` [s].
    """
    if isinstance(signal, Sampled) and signal.times.shape[0] > 1:
        return jnp.max(jnp.abs(jnp.diff(signal.values) / jnp.diff(signal.times)))
    if isinstance(signal, Sine):
        return 2 * jnp.pi * signal.f * jnp.abs(signal.amplitude)
    if isinstance(signal, Ramp):
        return jnp.abs(signal.height) / signal.duration
    if isinstance(signal, Trapezoid):
        return jnp.abs(signal.amplitude) / jnp.minimum(signal.rising, signal.falling)
    times = t + jnp.linspace(0.0, 1.0, 201) * span
    rates = jnp.abs(jax.jvp(signal, (times,), (jnp.ones_like(times),))[1])
    return jnp.max(jnp.where(jnp.isfinite(rates), rates, 0.0))
