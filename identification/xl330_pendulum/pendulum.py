"""The pendulum on the shaft of a servo, as a user-defined machine."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

import frictax as fx
from frictax.parameters import AtLeast, Positive, Real, Scalar, parameter


class Pendulum(fx.AbstractAxis):
    """A pendulum with dry friction in its joint: J*dw/dt = -mgl*sin(phi + phi_offset) - friction.

    **Arguments:** `friction` of the joint, in N.m over rad/s; `J`, moment of inertia about the
    joint [kg.m2]; `mgl`, torque of gravity on the horizontal pendulum [N.m]; `phi_offset`, angle
    from the hanging position at the sensor's zero [rad]; `phi`, `w`: angle [rad] and speed [rad/s]
    at the start.
    """

    friction: fx.SupportFriction
    J: Scalar = parameter(Positive(), "kg.m2")
    mgl: Scalar = parameter(Positive(), "N.m")
    phi_offset: Scalar = parameter(Real(), "rad", default=0.0)
    phi: Scalar = parameter(Real(), "rad", fit=False, default=0.0)
    w: Scalar = parameter(Real(), "rad/s", fit=False, default=0.0)

    def inertia(self, t: Any, y: Any, args: Any) -> Array:
        return self.J

    def load(self, t: Any, y: Any, args: Any) -> Array:
        return -self.mgl * jnp.sin(y[0] + self.phi_offset)

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")

    def start(self, t: Any) -> tuple[Array, Array]:
        return self.begin(t, jnp.stack([self.phi, self.w]))


class LoadedPendulum(fx.AbstractAxis):
    """A `Pendulum` whose friction grows with the load of its joint, as in gears. The additional
    friction is `share` (at least 0) times the absolute torque of gravity.
    """

    pendulum: Pendulum
    share: Scalar = parameter(AtLeast(0.0))

    @property
    def friction(self) -> fx.SupportFriction:
        return self.pendulum.friction

    def inertia(self, t: Any, y: Any, args: Any) -> Array:
        return self.pendulum.J

    def load(self, t: Any, y: Any, args: Any) -> Array:
        return self.pendulum.load(t, y, args)

    def pressing(self, t: Any, y: Any, args: Any) -> Array:
        return self.share * self.pendulum.load(t, y, args)

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")

    def start(self, t: Any) -> tuple[Array, Array]:
        return self.begin(t, jnp.stack([self.pendulum.phi, self.pendulum.w]))
