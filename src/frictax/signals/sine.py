"""`Sine` of Modelica.Blocks.Sources: a sine wave that begins at a given time."""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from frictax.parameters import AtLeast, CheckedModule, Number, Real, Scalar, parameter

from .signal import AbstractSignal, Piece


class Sine(CheckedModule, AbstractSignal):
    """A sine wave: offset + amplitude*sin(2*pi*f*(t - startTime) + phase) from `startTime` on, and
    `offset` before.

    **Arguments:** `amplitude` and `offset` in the unit of the driven quantity, `f` >= 0 [Hz],
    `phase` [rad], `startTime` [s].

    >>> import frictax as fx
    >>> round(float(fx.Sine(amplitude=25.0, f=0.25)(1.0)), 12)
    25.0
    """

    amplitude: Scalar = parameter(Real(), "1", default=1.0)
    f: Scalar = parameter(AtLeast(0.0), "Hz", default=1.0)
    phase: Scalar = parameter(Real(), "rad", default=0.0)
    offset: Scalar = parameter(Real(), "1", default=0.0)
    startTime: Scalar = parameter(Real(), "s", default=0.0)

    # Segment 0 is before the start. All later segments end at extrema of the sine.

    def on_piece(self, t: Number, k: Piece) -> Number:
        wave = self.amplitude * jnp.sin(2 * jnp.pi * self.f * (t - self.startTime) + self.phase)
        return self.offset + jnp.where(k == 0, 0.0, wave)

    def piece(self, t: Number) -> Piece:
        passed = jnp.floor(2 * self.f * (t - self._extremum(1))) + 1
        return jnp.where(t < self.startTime, 0, 1 + jnp.maximum(passed, 0).astype(jnp.int32))

    def end(self, k: Piece) -> Number:
        return jnp.where(k == 0, self.startTime, jnp.where(self.f > 0, self._extremum(k), jnp.inf))

    def turns(self, k: Piece) -> Bool[Array, ""]:
        return k > 0

    def _extremum(self, k: Piece | int) -> Number:
        """Return the time of the k-th extremum after the start."""
        half_turns = self.phase / jnp.pi - 0.5
        # An extremum exactly at the start is not counted.
        return self.startTime + (jnp.floor(half_turns) + k - half_turns) / (
            2 * jnp.where(self.f > 0, self.f, 1.0)
        )
