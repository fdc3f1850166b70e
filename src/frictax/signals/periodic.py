"""Periodic signals: `Pulse` and `Trapezoid` of Modelica.Blocks.Sources."""

from itertools import accumulate

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from frictax.parameters import (
    AtLeast,
    CheckedModule,
    Number,
    Positive,
    Real,
    Scalar,
    is_traced,
    parameter,
)

from .signal import AbstractSignal, Piece


class Trapezoid(CheckedModule, AbstractSignal):
    """A periodic trapezoid. Before `startTime`, the value is `offset`. From `startTime` on, a
    trapezoid of height `amplitude` is added to `offset` in every period.

    **Arguments:** `rising`, `width`, `falling` >= 0 [s]: the durations of rise, plateau and fall,
    whose sum is at most `period` > 0 [s]; `nperiod`: the number of periods, -1 for no end.

    **Raises:** `ValueError` if the three durations do not fit into the period.

    >>> import frictax as fx
    >>> wave = fx.Trapezoid(
    ...     amplitude=5.0, rising=2.0, width=2.0, falling=2.0, period=8.0, startTime=1.0
    ... )
    >>> [float(wave(t)) for t in (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)]
    [0.0, 2.5, 5.0, 2.5, 0.0, 2.5]
    """

    amplitude: Scalar = parameter(Real(), "1", default=1.0)
    rising: Scalar = parameter(AtLeast(0.0), "s", default=0.0)
    width: Scalar = parameter(AtLeast(0.0), "s", default=0.5)
    falling: Scalar = parameter(AtLeast(0.0), "s", default=0.0)
    period: Scalar = parameter(Positive(), "s", default=1.0)
    nperiod: Scalar = parameter(Real(), "1", fit=False, default=-1.0)
    offset: Scalar = parameter(Real(), "1", default=0.0)
    startTime: Scalar = parameter(Real(), "s", default=0.0)

    def check_rules(self) -> None:
        _check_fits(
            self, "rising + width + falling", [self.rising, self.width, self.falling], self.period
        )

    # Segment 0 is before the start. Each period then has four segments: rise, plateau, fall, rest.

    def on_piece(self, t: Number, k: Piece) -> Number:
        n, phase = (k - 1) // 4, (k - 1) % 4
        since = t - (self.startTime + n * self.period)
        up = since / jnp.where(self.rising > 0, self.rising, 1.0)
        down = (self.rising + self.width + self.falling - since) / jnp.where(
            self.falling > 0, self.falling, 1.0
        )
        shape = jnp.where(
            phase == 0, up, jnp.where(phase == 1, 1.0, jnp.where(phase == 2, down, 0.0))
        )
        return self.offset + self.amplitude * jnp.where(
            (k == 0) | _is_over(n, self.nperiod), 0.0, shape
        )

    def piece(self, t: Number) -> Piece:
        n, since = _period(t, self.startTime, self.period)
        ends = accumulate((self.rising, self.width, self.falling))
        inside = sum((since >= end).astype(jnp.int32) for end in ends)
        return jnp.where(t < self.startTime, 0, 1 + 4 * n + inside)

    def end(self, k: Piece) -> Number:
        n, phase = (k - 1) // 4, (k - 1) % 4
        length = (
            self.rising
            + jnp.where(phase >= 1, self.width, 0.0)
            + jnp.where(phase >= 2, self.falling, 0.0)
        )
        return _end(self, k, n, jnp.where(phase == 3, self.period, length))

    def jumps(self) -> bool:
        return any(not is_traced(x) and not np.all(x > 0) for x in (self.rising, self.falling))


class Pulse(CheckedModule, AbstractSignal):
    """A rectangular wave. From `startTime` on, the value is offset + amplitude in the first `width`
    per cent of every period. At all other times, the value is `offset`.

    **Arguments:** `width` in per cent of the period, 0 to 100; `period` > 0 [s]; `nperiod`: the
    number of periods, -1 for no end.

    >>> import frictax as fx
    >>> [
    ...     float(fx.Pulse(amplitude=2.0, width=50.0, period=1.3, startTime=0.3)(t))
    ...     for t in (0.0, 0.3, 1.0, 1.7)
    ... ]
    [0.0, 2.0, 0.0, 2.0]
    """

    amplitude: Scalar = parameter(Real(), "1", default=1.0)
    width: Scalar = parameter(AtLeast(0.0), "%", default=50.0)
    period: Scalar = parameter(Positive(), "s", default=1.0)
    nperiod: Scalar = parameter(Real(), "1", fit=False, default=-1.0)
    offset: Scalar = parameter(Real(), "1", default=0.0)
    startTime: Scalar = parameter(Real(), "s", default=0.0)

    def check_rules(self) -> None:
        _check_fits(self, "width", [self.width], 100.0)

    # Segment 0 is before the start. Each period then has two segments: high and low.

    def on_piece(self, t: Number, k: Piece) -> Number:
        n, low = (k - 1) // 2, (k - 1) % 2
        return (
            self.offset
            + jnp.where((k == 0) | (low == 1) | _is_over(n, self.nperiod), 0.0, self.amplitude)
            + 0.0 * t
        )

    def piece(self, t: Number) -> Piece:
        n, since = _period(t, self.startTime, self.period)
        return jnp.where(
            t < self.startTime, 0, 1 + 2 * n + (since >= self.width / 100 * self.period)
        )

    def end(self, k: Piece) -> Number:
        n, low = (k - 1) // 2, (k - 1) % 2
        return _end(self, k, n, jnp.where(low == 1, self.period, self.width / 100 * self.period))

    def jumps(self) -> bool:
        return True


def _period(t: Number, start: Number, period: Number) -> tuple[Piece, Number]:
    n = jnp.maximum(jnp.floor((t - start) / period), 0)
    return n.astype(jnp.int32), t - (start + n * period)


def _end(signal: Trapezoid | Pulse, k: Piece, n: Piece, length: Number) -> Number:
    """Return the end time [s] of segment k, which is `length` [s] after the start of period n."""
    ends = jnp.where(
        _is_over(n, signal.nperiod), jnp.inf, signal.startTime + n * signal.period + length
    )
    return jnp.where(k == 0, signal.startTime, ends)


def _is_over(n: Piece, nperiod: Number) -> Array:
    return (nperiod >= 0) & (n >= nperiod)


def _check_fits(
    signal: Trapezoid | Pulse, what: str, lengths: list[Number], most: Number | float
) -> None:
    name, n = type(signal).__name__, signal.nperiod
    if not is_traced(n) and float(n) != round(float(n)):
        raise ValueError(
            f"`{name}.nperiod` must be a whole number, or -1 for ever, got {float(n):g}. Round it."
        )
    if any(map(is_traced, [*lengths, most])):
        return
    value = sum(map(float, lengths))
    if value > float(most) * (1 + 1e-9):
        limit = "100 per cent" if name == "Pulse" else f"`period` = {float(most):g} s"
        raise ValueError(
            f"`{name}`: {what} = {value:g} must not exceed {limit}. Shorten it or lengthen the"
            " period."
        )
