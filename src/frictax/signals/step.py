"""Simple signals of Modelica.Blocks.Sources: `Constant`, `Step` and `Ramp`."""

import jax.numpy as jnp
import numpy as np

from frictax.parameters import AtLeast, CheckedModule, Number, Real, Scalar, is_traced, parameter

from .signal import AbstractSignal, OnePiece, Piece


class Constant(CheckedModule, OnePiece):
    """A signal with the value `k` at all times.

    >>> import frictax as fx
    >>> float(fx.Constant(3.0)(10.0))
    3.0
    """

    k: Scalar = parameter(Real(), "1")

    def on_piece(self, t: Number, k: Piece) -> Number:
        return self.k + 0.0 * t


class Step(CheckedModule, AbstractSignal):
    """A signal that jumps: `offset` before `startTime` [s], then offset + height.

    >>> import frictax as fx
    >>> [float(fx.Step(height=2.0, startTime=0.1)(t)) for t in (0.0, 0.1)]
    [0.0, 2.0]
    """

    height: Scalar = parameter(Real(), "1", default=1.0)
    offset: Scalar = parameter(Real(), "1", default=0.0)
    startTime: Scalar = parameter(Real(), "s", default=0.0)

    def on_piece(self, t: Number, k: Piece) -> Scalar:
        return self.offset + jnp.where(k == 0, 0.0, self.height) + 0.0 * t

    def piece(self, t: Number) -> Piece:
        return (t >= self.startTime).astype(jnp.int32)

    def end(self, k: Piece) -> Number:
        return jnp.where(k == 0, self.startTime, jnp.inf)

    def jumps(self) -> bool:
        return True


class Ramp(CheckedModule, AbstractSignal):
    """A linear ramp from `offset` at `startTime` [s] to offset + height, `duration` >= 0 [s] later.

    >>> import frictax as fx
    >>> [float(fx.Ramp(height=4.0, duration=2.0, startTime=1.0)(t)) for t in (0.0, 2.0, 5.0)]
    [0.0, 2.0, 4.0]
    """

    height: Scalar = parameter(Real(), "1", default=1.0)
    duration: Scalar = parameter(AtLeast(0.0), "s", default=2.0)
    offset: Scalar = parameter(Real(), "1", default=0.0)
    startTime: Scalar = parameter(Real(), "s", default=0.0)

    def on_piece(self, t: Number, k: Piece) -> Number:
        slope = self.height / jnp.where(self.duration > 0, self.duration, 1.0)
        rising = jnp.where(k == 1, slope * (t - self.startTime), 0.0)
        return self.offset + rising + jnp.where(k == 2, self.height, 0.0)

    def piece(self, t: Number) -> Piece:
        return (t >= self.startTime).astype(jnp.int32) + (t >= self.startTime + self.duration)

    def end(self, k: Piece) -> Number:
        return jnp.where(
            k == 0, self.startTime, jnp.where(k == 1, self.startTime + self.duration, jnp.inf)
        )

    def jumps(self) -> bool:
        return not is_traced(self.duration) and not np.all(np.asarray(self.duration) > 0)
