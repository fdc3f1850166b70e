"""Friction at steady speeds: the prediction that is compared with a sweep."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool

from frictax.laws import AbstractLaw, as_law
from frictax.parameters import AtLeast, CheckedModule, Real, Scalar, Values, parameter


class SteadyFriction(CheckedModule):
    """Friction at steady speed, with a breakaway peak and a constant force offset of the test rig.

    During sliding f = direction*law(|v|) + offset. At breakaway f = direction*peak*law.f0 + offset.
    The law is `f_pos` for v > 0 and `f_neg` for v < 0.

    **Arguments:**

    - `f_pos`: a law or an M x 2 table, for v > 0.
    - `f_neg`: a law or table for v < 0; None uses `f_pos` in both directions.
    - `peak` >= 1 [1]: ratio of the breakaway force to sliding friction at v = 0.
    - `offset` [N]: a constant force such as a payload's weight, or None.

    >>> import frictax as fx
    >>> friction = fx.SteadyFriction(fx.Coulomb(F_Coulomb=5.0, F_prop=1.0), peak=1.2)
    >>> friction.predict(
    ...     jnp.array([2.0, -2.0, 0.0]), breakaway=jnp.array([False, False, True])
    ... ).tolist()
    [7.0, -7.0, 6.0]
    """

    f_pos: AbstractLaw = eqx.field(converter=as_law)
    f_neg: AbstractLaw | None = eqx.field(converter=as_law, default=None)
    peak: Scalar = parameter(AtLeast(1.0), "1", default=1.0)
    offset: Scalar | None = parameter(Real(), "N", default=None)

    def predict(
        self,
        velocity: Values,
        breakaway: Bool[Array, "..."] | None = None,
        direction: Values | None = None,
    ) -> Values:
        """Return the force [N] at each velocity [m/s].

        At v = 0 the force is the limit of sliding friction in `direction` (1 by default), or the
        breakaway force if `breakaway` is True.
        """
        v = jnp.asarray(velocity, dtype=float)
        way = jnp.where(v < 0, -1.0, 1.0) if direction is None else jnp.asarray(direction)
        forward = self._one_way(self.f_pos, v * way, breakaway)
        if self.f_neg is None:
            f = way * forward
        else:
            f = jnp.where(way < 0, -self._one_way(self.f_neg, v * way, breakaway), forward)
        return f if self.offset is None else f + self.offset

    def _one_way(self, law: AbstractLaw, speed: Array, breakaway: Any) -> Array:
        sliding = law(speed)
        return (
            sliding
            if breakaway is None
            else jnp.where(jnp.asarray(breakaway), self.peak * law.f0, sliding)
        )


def as_steady(model: Any) -> SteadyFriction:
    """Return a law as `SteadyFriction` for both directions, or a `SteadyFriction` unchanged."""
    return model if isinstance(model, SteadyFriction) else SteadyFriction(model)


def steady_friction(machine: Any, contact: str | None) -> SteadyFriction:
    """Return the steady friction of the part `contact`; without `contact`, of the law `machine`."""
    if contact is None:
        return as_steady(machine)
    part = machine[contact]
    return SteadyFriction(
        part.law(1), None if part.law(-1) is part.law(1) else part.law(-1), part.breakaway(), None
    )
