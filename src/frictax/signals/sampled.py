"""`Sampled`: a drive signal given by measured samples."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from frictax.jax_internals import nondifferentiable
from frictax.parameters import CheckedModule, Increasing, Number, Real, Vector, parameter
from frictax.parameters.arrays import row_at

from .signal import AbstractSignal, OnePiece, Piece
from .step import Constant

_HELD = (
    "A run on samples (`OnSamples`) has no derivative by the `times` of a `Sampled` drive with"
    " hold=True, at which the drive jumps. Take `Adaptive()`, or differentiate by everything else:"
    " by the drive's `values`, by the parameters, but not by the whole mechanism."
)


class _Line(OnePiece):
    """A straight line from the value `first` at the time `begin` to the value `second` at begin +
    length. If `inside` is False, the signal is the constant `first`.
    """

    begin: Number
    length: Number
    first: Number
    second: Number
    inside: Bool[Array, ""]

    def on_piece(self, t: Number, k: Piece) -> Number:
        share = jnp.where(self.inside, t - self.begin, 0.0) / self.length
        return self.first + share * (self.second - self.first)


class Sampled(CheckedModule, AbstractSignal):
    """A signal through given samples, with linear interpolation. With ``hold=True``, the signal
    keeps the value of a sample until the next sample.

    Before the first sample, the signal has the first value. After the last sample, it has the last
    value. Every sample ends a segment of the signal.

    **Arguments:** `times` (n,) [s], strictly increasing; `values` (n,), in the unit of the driven
    quantity; `hold`: see above.

    **Raises:** `ValueError` for unsorted or repeated times, different lengths, non-finite values.

    >>> import frictax as fx
    >>> [float(fx.Sampled([0.0, 1.0, 3.0], [0.0, 2.0, 0.0])(t)) for t in (-1.0, 0.5, 2.0, 4.0)]
    [0.0, 1.0, 1.0, 0.0]

    >>> float(fx.Sampled([0.0, 1.0], [4.0, 2.0], hold=True)(0.9))
    4.0
    """

    times: Vector = parameter(Increasing(), "s", fit=False, ndim=1)
    values: Vector = parameter(Real(), "1", fit=False, ndim=1)
    hold: bool = eqx.field(static=True, default=False)

    def check_rules(self) -> None:
        if np.shape(self.times) != np.shape(self.values) or np.size(self.times) < 1:
            raise ValueError(
                "`Sampled.times` and `Sampled.values` must be two lists of one length >= 1, got"
                f" shapes {np.shape(self.times)} and {np.shape(self.values)}. Drop the rows in"
                " which one of the two is missing."
            )

    # Segment 0 is before the first sample. Segment k is between samples k - 1 and k. The last
    # segment is after the last sample.

    def on_piece(self, t: Number, k: Piece) -> Number:
        return self.staying(k).on_piece(t, k)

    def staying(self, k: Piece) -> AbstractSignal:
        n = self.times.shape[0]
        left, right = jnp.maximum(k - 1, 0), jnp.minimum(k, n - 1)
        first = row_at(self.values, left)
        if self.hold:
            return Constant(first)
        begin = row_at(self.times, left)
        # Before the first and after the last sample, `left` and `right` are equal.
        inside = left < right
        length = jnp.where(inside, row_at(self.times, right) - begin, 1.0)
        return _Line(begin, length, first, row_at(self.values, right), inside)

    def known_switches(self) -> int:
        return self.times.shape[0]

    def jumps(self) -> bool:
        return self.hold and self.times.shape[0] > 1

    def piece(self, t: Number) -> Piece:
        return jnp.searchsorted(self.times, t, side="right").astype(jnp.int32)

    def passed(self, t: Number, k: Piece) -> Piece:
        end = self.end(k)
        # If values are held, the signal jumps at a sample. A run with time steps on samples cannot
        # compute the derivative of a jump with respect to the time of the jump.
        end = nondifferentiable(end, msg=_HELD) if self.hold else end
        return jnp.where(end <= t, k + 1, k)

    def end(self, k: Piece) -> Number:
        n = self.times.shape[0]
        return jnp.where(k < n, row_at(self.times, jnp.minimum(k, n - 1)), jnp.inf)
