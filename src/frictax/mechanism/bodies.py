"""Modelica.Mechanics.Translational.Components.Mass and Fixed."""

import equinox as eqx

from frictax.parameters import AtLeast, Positive, Real, Scalar, check, parameter


class Mass(eqx.Module):
    """A sliding mass: m*dv/dt = sum of the forces at its flanges.

    **Arguments:** `m` > 0 [kg]; `L` >= 0 [m], length, flange_a at s - L/2 and flange_b at s + L/2; `s` [m] and `v` [m/s], position of the
    centre and velocity at the start.

    **Raises:** `ValueError` for a value outside its domain.

    >>> import frictax as fx
    >>> float(fx.Mass(m=2.0, v=1.0).v)
    1.0
    """

    m: Scalar = parameter(Positive(), "kg")
    s: Scalar = parameter(Real(), "m", fit=False, default=0.0)
    v: Scalar = parameter(Real(), "m/s", fit=False, default=0.0)
    L: Scalar = parameter(AtLeast(0.0), "m", fit=False, default=0.0)

    def __check_init__(self) -> None:
        check(self)


class Fixed(eqx.Module):
    """A flange fixed in the housing at position `s0` [m]."""

    s0: Scalar = parameter(Real(), "m", fit=False, default=0.0)

    def __check_init__(self) -> None:
        check(self)
