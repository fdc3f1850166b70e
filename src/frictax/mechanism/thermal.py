"""Thermal parts of a mechanism: heat capacitors and thermal conductors."""

import equinox as eqx

from frictax.parameters import AtLeast, CheckedModule, Positive, Scalar, parameter


class HeatCapacitor(CheckedModule):
    """A thermal node of uniform temperature T, heated by friction elements and dampers.

    C*dT/dt is the sum of the loss powers and of the conducted heat flows. If a friction element
    heats the node, the law of this element is evaluated at T. The energy lost in impacts at a stop
    does not heat a node.

    **Arguments:** `sources`: one name or several names of the friction elements and dampers that
    heat the node; `C` > 0: heat capacity [J/K]; `T` > 0: temperature at the start [K].

    **Raises:** `ValueError` for a value outside its domain. A `Mechanism` raises `ValueError` for a
    source that is not a friction element or damper, or that also heats another node.

    **Source:** Modelica Standard Library 4.1.0, Thermal.HeatTransfer (elements with heat ports).

    A brake that stops 2 kg from 3 m/s converts 9 J to heat:

    >>> import frictax as fx, jax.numpy as jnp
    >>> machine = fx.Mechanism(
    ...     mass=fx.Mass(m=2.0, v=3.0),
    ...     brake=fx.Brake("mass", fn_max=10.0),
    ...     disc=fx.HeatCapacitor("brake", C=0.5, T=300.0),
    ... )
    >>> round(float(fx.simulate(machine, jnp.array([0.0, 2.0]))["disc"].T[-1]), 6)
    318.0
    """

    sources: tuple[str, ...] = eqx.field(
        static=True, converter=lambda value: (value,) if isinstance(value, str) else tuple(value)
    )
    C: Scalar = parameter(Positive(), "J/K")
    T: Scalar = parameter(Positive(), "K", fit=False, default=293.15)


class ThermalConductor(CheckedModule):
    """A thermal conductor with the heat flow G*(T_a - T_b) [W] from a to b.

    **Arguments:** `a`, `b`: names of two `HeatCapacitor`; without `b`, the heat flows to the
    surroundings, whose temperature is `T_ambient` > 0 [K]; `G` >= 0: thermal conductance [W/K].

    **Raises:** `ValueError` for a value outside its domain. A `Mechanism` raises `ValueError` if
    `a` or `b` is not a `HeatCapacitor`.

    **Source:** Modelica Standard Library 4.1.0, Thermal.HeatTransfer.

    >>> import frictax as fx
    >>> float(fx.ThermalConductor("disc", G=4.0).G)
    4.0
    """

    a: str = eqx.field(static=True)
    b: str | None = eqx.field(static=True, default=None)
    G: Scalar = parameter(AtLeast(0.0), "W/K", default=1.0)
    T_ambient: Scalar = parameter(Positive(), "K", fit=False, default=293.15)
