"""Find the times of events: rates of event functions, and a bracket around a sign change."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from frictax.parameters import Integer, Number, State

from .reused import Reused


class Slope(eqx.Module):
    """The motion at one time of a run: `speed` = dy/dt, event functions `g`, and `rate` = dg/dt."""

    speed: State
    g: Float[Array, " g"]
    rate: Float[Array, " g"]


def slope_of(system: Reused, t, y, mode) -> Slope:
    """Return the `Slope` of a system in state `y` at time `t`."""
    speed = system.flow(t, y, mode)
    g, rate = jax.jvp(lambda ti, yi: system.guard(ti, yi, mode), (t, y), (jnp.ones_like(t), speed))
    return Slope(speed, g, rate)


def first_to_fall(slope: Slope, expired: Bool[Array, ""]) -> Integer:
    """Return the index of the falling event function that first reaches 0 if extrapolated linearly.
    If `expired` (an event function was not above 0 at the start), return the index of the lowest
    event function.
    """
    falling = slope.rate < 0
    away = jnp.where(falling, jnp.abs(slope.g / jnp.where(falling, slope.rate, 1.0)), jnp.inf)
    return jnp.where(expired | jnp.all(jnp.isinf(away)), jnp.argmin(slope.g), jnp.argmin(away))


class Bracket(eqx.Module):
    """Two points between which a function changes its sign, and the history of the search.

    The Illinois rule (a modified secant method) narrows the bracket. If the last three search steps
    did not halve the bracket, the next search step is a bisection.

    **Source:** after T. J. Dekker, in B. Dejon, P. Henrici (eds.), Constructive Aspects of the
    Fundamental Theorem of Algebra, 1969.
    """

    low: Number
    high: Number
    f_low: Number
    f_high: Number
    kept: Integer  # which end the last search step did not move: -1 low, 1 high (0 before any step)
    before: tuple[Array, Array, Array]  # lengths of the bracket before the last three steps
    length: Number  # length of the bracket at the start of the search

    @classmethod
    def start(cls, low, high, f_low, f_high) -> "Bracket":
        never = jnp.full_like(high - low, jnp.inf)
        return cls(low, high, f_low, f_high, jnp.array(0), (never, never, never), high - low)

    def is_shorter_than(self, rtol: float) -> Bool[Array, ""]:
        return self.high - self.low <= rtol * self.length

    def is_fall(self, x, fx, rtol: float) -> Bool[Array, ""]:
        """Return whether the function, with the value `fx` at x, falls through 0 near x. Two lines
        join the point at x to the points at both ends of the bracket. Both lines must have a zero
        closer to x than `rtol` times the initial length of the bracket.
        """
        steps = (self.f_low - fx) * (self.high - x), (fx - self.f_high) * (x - self.low)
        far = jnp.abs(fx) * (x - self.low) * (self.high - x)
        return far <= jnp.minimum(*steps) * rtol * self.length

    def guess(self, rtol: float) -> Number:
        """Return the next point to evaluate."""
        secant = (self.low * self.f_high - self.high * self.f_low) / (self.f_high - self.f_low)
        # The new point has a minimum distance from both ends of the bracket. Otherwise the secant
        # method approaches the root from one side only, and the bracket does not become short.
        off = 0.4 * rtol * self.length
        secant = jnp.clip(secant, self.low + off, self.high - off)
        use = jnp.isfinite(secant) & (self.high - self.low <= 0.5 * self.before[0])
        return jnp.where(use, secant, 0.5 * (self.low + self.high))

    def narrow(self, x, fx) -> "Bracket":
        """Return the part of the bracket in which the sign changes. `fx`: function value at x."""
        first = (fx > 0) != (self.f_high > 0)
        return Bracket(
            jnp.where(first, x, self.low),
            jnp.where(first, self.high, x),
            # Illinois rule: the value at an end that stayed in place twice in a row is halved.
            jnp.where(first, fx, jnp.where(self.kept == -1, 0.5 * self.f_low, self.f_low)),
            jnp.where(first, jnp.where(self.kept == 1, 0.5 * self.f_high, self.f_high), fx),
            jnp.where(first, 1, -1),
            (*self.before[1:], self.high - self.low),
            self.length,
        )

    def end(self) -> Number:
        """Return the point of the sign change: the end of the bracket with the function value
        closer to 0, or the upper end for a rising function.

        For a rising function, the next phase must begin at the upper end, after the event. Also
        return the upper end if the value there is not finite, so that the run reports this failure.
        """
        secant = (self.f_high <= 0) & jnp.isfinite(self.f_high)
        return jnp.where(secant & (jnp.abs(self.f_low) < jnp.abs(self.f_high)), self.low, self.high)
