"""Bodies: masses, inertias, and fixed flanges."""

import abc
from typing import ClassVar

from frictax.parameters import AtLeast, CheckedModule, Positive, Real, Scalar, parameter


class AbstractBody(CheckedModule):
    """A rigid body with one degree of freedom: a rotation if `rotational`, or a translation."""

    rotational: ClassVar[bool]

    @abc.abstractmethod
    def inertia(self) -> Scalar:
        """Return the mass [kg] or the moment of inertia [kg.m2]."""

    @abc.abstractmethod
    def at_start(self) -> tuple[Scalar, Scalar]:
        """Return position [m or rad] and velocity [m/s or rad/s] at the start."""


class Mass(AbstractBody):
    """A sliding mass: m*dv/dt = sum of the forces at its flanges.

    **Arguments:** `m` > 0 [kg]; `L` >= 0 [m]: length, with flange_a at s - L/2 and flange_b at s +
    L/2; `s` [m] and `v` [m/s]: position of the centre and velocity at the start.

    **Raises:** `ValueError` for a value outside its domain.

    >>> import frictax as fx
    >>> float(fx.Mass(m=2.0, v=1.0).v)
    1.0
    """

    rotational = False
    m: Scalar = parameter(Positive(), "kg")
    s: Scalar = parameter(Real(), "m", fit=False, default=0.0)
    v: Scalar = parameter(Real(), "m/s", fit=False, default=0.0)
    L: Scalar = parameter(AtLeast(0.0), "m", fit=False, default=0.0)

    def inertia(self) -> Scalar:
        return self.m

    def at_start(self) -> tuple[Scalar, Scalar]:
        return self.s, self.v


class Inertia(AbstractBody):
    """A turning body: J*dw/dt = sum of the torques at its flanges.

    **Arguments:** `J` > 0 [kg.m2]; `phi` [rad], `w` [rad/s]: angle and angular velocity at the
    start.

    **Raises:** `ValueError` for a value outside its domain.

    **Source:** Modelica.Mechanics.Rotational.Components.Inertia.

    >>> import frictax as fx
    >>> float(fx.Inertia(J=0.5, w=10.0).w)
    10.0
    """

    rotational = True
    J: Scalar = parameter(Positive(), "kg.m2")
    phi: Scalar = parameter(Real(), "rad", fit=False, default=0.0)
    w: Scalar = parameter(Real(), "rad/s", fit=False, default=0.0)

    def inertia(self) -> Scalar:
        return self.J

    def at_start(self) -> tuple[Scalar, Scalar]:
        return self.phi, self.w


class Fixed(CheckedModule):
    """A flange fixed in the housing at position `s0` [m], or at angle `s0` [rad] for turning parts.

    >>> import frictax as fx, jax.numpy as jnp
    >>> hung = fx.Mechanism(
    ...     ceiling=fx.Fixed(s0=2.0),
    ...     mass=fx.Mass(m=1.0),
    ...     spring=fx.Spring("mass", "ceiling", c=3.0),
    ... )
    >>> round(float(fx.simulate(hung, jnp.array([0.0, 0.1]))["mass"].a[0]), 6)
    6.0
    """

    s0: Scalar = parameter(Real(), "m", fit=False, default=0.0)
