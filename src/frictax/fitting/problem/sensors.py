"""Sensors and actuators between the machine and the record, with gain, offset, drift and delay."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from frictax.annotations import ScalarLike
from frictax.parameters import CheckedModule, Numbers, Positive, Real, Scalar, parameter


@functools.cache
def perfect() -> "Instrument":
    """Return the default instrument of a channel, without any effect."""
    with jax.ensure_compile_time_eval():  # A cached value must not be a tracer of the first caller.
        return Instrument()


class Instrument(CheckedModule):
    """A sensor or actuator, which returns gain*x(t - delay) + offset + drift*(t - t0), with t0 the
    start of the record.

    For an output, x is the variable of the machine, and the instrument returns the recorded value.
    For an input, x is the recorded value, and the instrument returns the value that acts on the
    machine. x is interpolated linearly between samples.

    A fit has an instrument for every channel, such as ``"inputs.drive"`` or ``"outputs.mass.s"``.
    A path like ``"inputs.drive.offset"`` in `free` or `own` makes it a fitted parameter.

    **Arguments:** `gain` > 0 [1]; `offset` [unit of the channel]; `drift` [that unit/s]; `delay`
    [s].

    >>> import frictax as fx, jax.numpy as jnp
    >>> fx.Instrument(gain=2.0, drift=1.0)(
    ...     jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 1.0, 1.0]), 0.0
    ... ).tolist()
    [2.0, 3.0, 4.0]
    """

    gain: Scalar = parameter(Positive(), "1", fit=False, default=1.0)
    offset: Scalar = parameter(Real(), "1", fit=False, default=0.0)
    drift: Scalar = parameter(Real(), "1/s", fit=False, default=0.0)
    delay: Scalar = parameter(Real(), "s", fit=False, default=0.0)

    def __call__(
        self, t: Float[Array, " n"], x: Float[Array, " n"], t0: ScalarLike, delayed: bool = True
    ) -> Float[Array, " n"]:
        """Return the output of the instrument. `delayed` is False if the delay is known to be 0, so
        that x is not interpolated.
        """
        late = jnp.interp(t - self.delay, t, x) if delayed else x
        return self.gain * late + self.offset + self.drift * (t - t0)

    def invert(
        self, t: Float[Numbers, "*n"], y: Float[Numbers, "*n"], t0: ScalarLike, order: int = 0
    ) -> Float[Numbers, "*n"]:
        """Return the x for the output `y` of the instrument at the time `t`, without its delay.
        `order` 1 or 2: `y` is a derivative in time; -1: `y` is an integral from t0.
        """
        since = t - t0
        added = {
            -1: self.offset * since + 0.5 * self.drift * since**2,
            0: self.offset + self.drift * since,
            1: self.drift,
            2: 0.0,
        }[order]
        return (y - added) / self.gain
