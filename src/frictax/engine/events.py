"""Which margin falls first, and how fast."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from frictax.parameters import Integer, Number, State

from .reused import Reused


class Slope(eqx.Module):
    """Along the motion at one moment: dy/dt, the margins g and their rates dg/dt."""

    speed: State
    g: Float[Array, " g"]
    rate: Float[Array, " g"]


def slope_of(system: Reused, t, y, mode) -> Slope:
    speed = system.flow(t, y, mode)
    g, rate = jax.jvp(lambda ti, yi: system.guard(ti, yi, mode), (t, y), (jnp.ones_like(t), speed))
    return Slope(speed, g, rate)


def first_to_fall(slope: Slope, expired: Bool[Array, ""]) -> Integer:
    """The falling guard that is nearest to 0 in time; of guards that had expired at the start, the
    lowest.
    """
    falling = slope.rate < 0
    away = jnp.where(falling, jnp.abs(slope.g / jnp.where(falling, slope.rate, 1.0)), jnp.inf)
    return jnp.where(expired | jnp.all(jnp.isinf(away)), jnp.argmin(slope.g), jnp.argmin(away))


class Bracket(eqx.Module):
    """Two points between which a function changes its sign, and how it got there.

    The secant (Illinois rule) narrows it, and bisection whenever three moves did not halve it.

    **Source:** after T. J. Dekker, in B. Dejon, P. Henrici (eds.), Constructive Aspects of the
    Fundamental Theorem of Algebra, 1969.
    """

    low: Number
    high: Number
    f_low: Number
    f_high: Number
    kept: Integer  # which end was kept at the last move
    before: tuple[Array, Array, Array]  # the lengths before the last three moves
    length: Number  # at the start

    @classmethod
    def start(cls, low, high, f_low, f_high) -> "Bracket":
        never = jnp.full_like(high - low, jnp.inf)
        return cls(low, high, f_low, f_high, jnp.array(0), (never, never, never), high - low)

    def is_shorter_than(self, rtol: float) -> Bool[Array, ""]:
        return self.high - self.low <= rtol * self.length

    def is_fall(self, x, fx, rtol: float) -> Bool[Array, ""]:
        """Whether a function that is `fx` at x falls through 0 within `rtol` of the length at the
        start, by its slopes from x to both ends.
        """
        steps = (self.f_low - fx) * (self.high - x), (fx - self.f_high) * (x - self.low)
        far = jnp.abs(fx) * (x - self.low) * (self.high - x)
        return far <= jnp.minimum(*steps) * rtol * self.length

    def guess(self, rtol: float) -> Number:
        """Where to look next."""
        secant = (self.low * self.f_high - self.high * self.f_low) / (self.f_high - self.f_low)
        # Kept off the ends, the secant closes the bracket also when it comes from one side only.
        off = 0.4 * rtol * self.length
        secant = jnp.clip(secant, self.low + off, self.high - off)
        use = jnp.isfinite(secant) & (self.high - self.low <= 0.5 * self.before[0])
        return jnp.where(use, secant, 0.5 * (self.low + self.high))

    def narrowed(self, x, fx) -> "Bracket":
        """The part that holds the change of sign, with f(x) = `fx` known."""
        first = (fx > 0) != (self.f_high > 0)
        return Bracket(
            jnp.where(first, x, self.low),
            jnp.where(first, self.high, x),
            # The Illinois rule: an end kept twice counts half.
            jnp.where(first, fx, jnp.where(self.kept == -1, 0.5 * self.f_low, self.f_low)),
            jnp.where(first, jnp.where(self.kept == 1, 0.5 * self.f_high, self.f_high), fx),
            jnp.where(first, 1, -1),
            (*self.before[1:], self.high - self.low),
            self.length,
        )

    def end(self) -> Number:
        """The event: of a margin that falls, the end that the secant closed in on; of a quantity
        that rises, the end after the crossing.

        The phase that begins after a rise has the event behind it. Where a margin is not finite, it
        is to be seen.
        """
        secant = (self.f_high <= 0) & jnp.isfinite(self.f_high)
        return jnp.where(secant & (jnp.abs(self.f_low) < jnp.abs(self.f_high)), self.low, self.high)
