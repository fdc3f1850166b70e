"""A block that is pushed, and fits to its records, whose posterior is known."""

import functools
from typing import Any

import numpy as np

import frictax as fx

T = np.linspace(0.0, 4.0, 401)
V = 0.6 * np.sin(3.0 * T) + 0.4 * np.sin(7.1 * T)
A = 1.8 * np.cos(3.0 * T) + 2.84 * np.cos(7.1 * T)
S = -0.2 * np.cos(3.0 * T) - 0.4 / 7.1 * np.cos(7.1 * T)
SETTINGS: dict[str, Any] = {"draws": 1000, "warmup": 400, "chains": 2}
SLIDING = ["mass.m", "friction.f_pos"]


def block(
    F_Coulomb: float = 0.5, F_prop: float = 0.4, m: float = 1.0, peak: float = 1.0
) -> fx.Mechanism:
    friction = fx.SupportFriction(
        "mass", f_pos=fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=F_prop), peak=peak
    )
    return fx.Mechanism(mass=fx.Mass(m=m), friction=friction, drive=fx.Force("mass", 0.0))


def pushed(seed: int, F_Coulomb: float = 0.5, noise: float = 0.2) -> fx.Record:
    """A record of a force that is known with white noise only, of a motion without any: what
    inverse dynamics fits is linear.
    """
    force = (
        A
        + 0.4 * V
        + F_Coulomb * np.sign(V)
        + noise * np.random.default_rng(seed).standard_normal(T.size)
    )
    return fx.Record(T, {"drive": force}, {"mass.s": S}, name="push")


def fitted(
    seed: int = 0, F_Coulomb: float = 0.5, free: Any = SLIDING, **options: Any
) -> fx.FoundMachine:
    return fx.fit(
        block(),
        pushed(seed, F_Coulomb),
        free=free,
        objective=fx.InverseDynamics(40.0, v_min=0.05, at_samples=True),
        **options,
    )


@functools.cache
def fitted_apart() -> fx.FoundMachine:
    """A fit to two records, each with Coulomb friction of its own."""
    return fx.fit(
        block(F_Coulomb=0.7),
        {"one": pushed(0), "two": pushed(1, F_Coulomb=1.0)},
        free=["mass.m"],
        own=["friction.f_pos.F_Coulomb"],
        objective=fx.InverseDynamics(40.0, v_min=0.05, at_samples=True),
    )
