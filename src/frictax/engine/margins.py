"""Which margin falls first, and how fast."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from frictax.parameters import Integer, State

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
