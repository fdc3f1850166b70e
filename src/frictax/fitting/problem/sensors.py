"""What lies between the machine and the record: sensors and actuators that are not perfect."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from frictax.annotations import ScalarLike
from frictax.parameters import CheckedModule, Numbers, Positive, Real, Scalar, parameter


@functools.cache
def perfect() -> "Instrument":
    """The instrument of a channel of which nothing else is said."""
    with jax.ensure_compile_time_eval():  # what is kept must be no tracer of who asks first
        return Instrument()


class Instrument(CheckedModule):
    """A sensor or actuator: what it gives is gain*x(t - delay) + offset + drift*(t - t0), with t0
    the start of the record.

    For an output x is what the machine does and the instrument gives what is recorded; for an input
    x is what was recorded and the instrument gives what acts on the machine. Between samples x is
    taken as straight.

    A fit knows one for every channel, under ``"inputs.drive"`` or ``"outputs.mass.s"``: name
    ``"inputs.drive.offset"`` in `free` or `own` and it is found.

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
        """The channel as it comes out; `delayed` is false where the delay is known to be 0, which
        saves looking up.
        """
        late = jnp.interp(t - self.delay, t, x) if delayed else x
        return self.gain * late + self.offset + self.drift * (t - t0)

    def invert(
        self, t: Float[Numbers, "*n"], y: Float[Numbers, "*n"], t0: ScalarLike, order: int = 0
    ) -> Float[Numbers, "*n"]:
        """The x that came out as `y` at the time `t`, a delay later; of derivatives by time if
        `order` is 1 or 2, of integrals from t0 if it is -1.
        """
        since = t - t0
        added = {
            -1: self.offset * since + 0.5 * self.drift * since**2,
            0: self.offset + self.drift * since,
            1: self.drift,
            2: 0.0,
        }[order]
        return (y - added) / self.gain
