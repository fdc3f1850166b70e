"""Gears: relations between the angles of bodies, without losses and without play."""

import abc
from typing import ClassVar

import equinox as eqx

from frictax.annotations import ScalarLike
from frictax.parameters import CheckedModule, Positive, Real, Scalar, is_traced, parameter


class AbstractGear(CheckedModule):
    """A relation sum(factor_k * phi_k) = 0 between the angles of bodies.

    The last body follows the others and has no state of its own.
    """

    rotational: ClassVar[bool] = True

    @abc.abstractmethod
    def joined(self) -> tuple[str, ...]:
        """The names of the bodies, the follower last."""

    @abc.abstractmethod
    def factors(self) -> tuple[ScalarLike, ...]:
        """The factor of each body's angle."""


class AbstractPairGear(AbstractGear):
    """phi_a = ratio*phi_b: body `b` follows `a`."""

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    ratio: Scalar = parameter(Real(), "1", fit=False)

    def check_rules(self) -> None:
        if not is_traced(self.ratio) and float(self.ratio) == 0:
            name = type(self).__name__
            raise ValueError(f"`{name}.ratio` must not be 0. Give phi_a/phi_b, such as 2.0.")

    def joined(self) -> tuple[str, ...]:
        return self.a, self.b

    def factors(self) -> tuple[ScalarLike, ...]:
        return 1.0, -self.ratio


class IdealGear(AbstractPairGear):
    """A gear between two bodies: phi_a = ratio*phi_b, and the torque on b is ratio times that from
    a.

    Body `b` follows `a`: start values are those of `a`.

    **Arguments:** `a`, `b`: names of the bodies; `ratio`, not 0: phi_a/phi_b, negative where they
    turn against each other.

    **Raises:** `ValueError` for a ratio of 0.

    **Source:** Modelica.Mechanics.Rotational.Components.IdealGear.

    A motor of 1 kg.m2 through a gear 2:1 on a load of 4 kg.m2 has the inertia 1 + 4/2^2 = 2:

    >>> import frictax as fx, jax.numpy as jnp
    >>> drive = fx.Mechanism(
    ...     motor=fx.Inertia(J=1.0),
    ...     load=fx.Inertia(J=4.0),
    ...     gear=fx.IdealGear("motor", "load", ratio=2.0),
    ...     torque=fx.Torque("motor", 6.0),
    ... )
    >>> run = fx.simulate(drive, ts=jnp.array([0.0, 1.0]))
    >>> round(float(run["motor"].w[-1]), 9), round(float(run["load"].w[-1]), 9)
    (3.0, 1.5)
    """


class IdealPlanetary(AbstractGear):
    """A planetary gear: (1 + ratio)*phi_carrier = phi_sun + ratio*phi_ring.

    The carrier follows the sun and the ring: start values are theirs. Hold one of the three by a
    `Brake`, or by `Position`.

    **Arguments:** `sun`, `carrier`, `ring`: names of the bodies; `ratio` > 0: teeth of the ring
    over teeth of the sun.

    **Raises:** `ValueError` for a ratio <= 0.

    **Source:** Modelica.Mechanics.Rotational.Components.IdealPlanetary.

    >>> import frictax as fx, jax.numpy as jnp
    >>> gear = fx.Mechanism(
    ...     sun=fx.Inertia(J=1.0, w=3.0),
    ...     carrier=fx.Inertia(J=1.0),
    ...     ring=fx.Inertia(J=1.0),
    ...     planetary=fx.IdealPlanetary(sun="sun", carrier="carrier", ring="ring", ratio=2.0),
    ... )
    >>> round(float(fx.simulate(gear, ts=jnp.array([0.0, 1.0]))["carrier"].w[-1]), 9)
    1.0
    """

    sun: str = eqx.field(static=True)
    carrier: str = eqx.field(static=True)
    ring: str = eqx.field(static=True)
    ratio: Scalar = parameter(Positive(), "1", fit=False)

    def joined(self) -> tuple[str, ...]:
        return self.sun, self.ring, self.carrier

    def factors(self) -> tuple[ScalarLike, ...]:
        return 1.0, self.ratio, -(1 + self.ratio)
