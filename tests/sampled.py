"""Machines under sampled drives, on the grid of a record."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import frictax as fx

TS = jnp.linspace(0.0, 2.0, 201)
PULL = 3.0 * jnp.sin(2 * jnp.pi * 1.3 * TS + 0.3) + 1.5 * jnp.sin(2 * jnp.pi * 2.9 * TS + 1.1)


def drive(hold: bool = False, size: float = 1.0, times: Any = TS, values: Any = PULL) -> fx.Sampled:
    return fx.Sampled(times, size * values, hold=hold)


def law(F_Coulomb: float = 1.0) -> fx.Stribeck:
    return fx.Stribeck(F_prop=0.2, F_Coulomb=F_Coulomb, F_Stribeck=0.4, fexp=5.0)


def block(hold: bool = False) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=1.0, s=0.1, v=0.3),
        friction=fx.SupportFriction("mass", f_pos=law(1.7), peak=1.1),
        drive=fx.Force("mass", drive(hold)),
    )


def dragged(hold: bool = False) -> fx.Mechanism:
    """Two masses, a spring between them, friction under both."""
    return fx.Mechanism(
        first=fx.Mass(m=1.0),
        second=fx.Mass(m=0.5, s=0.02),
        joint=fx.SpringDamper("first", "second", c=60.0, d=0.4),
        guide1=fx.SupportFriction("first", f_pos=law(0.8), peak=1.1),
        guide2=fx.SupportFriction("second", f_pos=law(0.3), peak=1.2),
        drive=fx.Force("first", drive(hold)),
    )


def stopped(hold: bool = False) -> fx.Mechanism:
    """A mass that meets both of its stops."""
    return fx.Mechanism(
        mass=fx.MassWithStopAndFriction(
            m=0.8, smin=-0.03, smax=0.05, F_prop=0.3, F_Coulomb=0.7, F_Stribeck=0.4, fexp=3.0, v=0.1
        ),
        drive=fx.Force("mass", drive(hold)),
    )


def braked(hold: bool = False) -> fx.Mechanism:
    """A mass on a spring under a brake that opens and closes."""
    press = 0.6 + jnp.sin(2 * jnp.pi * 0.9 * TS + 0.5)
    return fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=1.0, s=0.2),
        spring=fx.Spring("wall", "mass", c=30.0),
        brake=fx.Brake(
            "mass", mu_pos=law(0.5), peak=1.1, fn_max=2.0, f_normalized=drive(hold, values=press)
        ),
        drive=fx.Force("mass", drive(hold)),
    )


def controlled(hold: bool = False) -> fx.Mechanism:
    """An axis that follows a recorded reference, with friction that is larger backward and a guide
    out of level.
    """
    return fx.Mechanism(
        mass=fx.Mass(m=1.2),
        friction=fx.SupportFriction("mass", f_pos=law(5.0), f_neg=law(6.0), peak=1.05),
        guide=fx.LinearPositionDependentForce("mass", f_nominal=0.3, slope=-2.0, s0=0.01),
        drive=fx.PositionController("mass", s_ref=drive(hold, size=0.02), kp=8.0, kv=10.0, k=2.0),
    )


STRUCTURES: dict[str, Callable[[bool], fx.Mechanism]] = {
    f.__name__: f for f in (block, dragged, stopped, braked, controlled)
}


def names(machine: fx.Mechanism) -> list[str]:
    """The paths of its parameters that are single numbers; not the stops, which a draw could move
    past the start.
    """
    return [
        p.path
        for p in fx.parameters.parameters(machine)
        if p.declaration.fit and np.ndim(p.value) == 0
    ]


def drawn(machine: fx.Mechanism, scale: jax.Array) -> fx.Mechanism:
    """`machine` with each of its `names` times an entry of `scale`."""
    values = {}
    for path, factor in zip(names(machine), scale, strict=True):
        value = fx.parameters.get(machine, path) * factor
        values[path] = jnp.maximum(value, 1.0) if path.endswith("peak") else value
    return fx.parameters.replace(machine, values)


def draws(machine: fx.Mechanism, count: int, seed: int = 1) -> jax.Array:
    return jnp.asarray(
        1 + 0.15 * np.random.default_rng(seed).uniform(-1, 1, (count, len(names(machine))))
    )
