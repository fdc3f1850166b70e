"""Machines with a bristle, and the numbers known of them.

The standard set is that of C. Canudas de Wit, H. Olsson, K. J. Astrom, P. Lischinsky, IEEE Trans.
Automatic Control 40(3), 1995, with the constant sigma_1 of the paper. Where a test says "known",
the digits were computed with SciPy's Radau at tolerances of 1e-9 to 1e-10.
"""

import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np

import frictax as fx

M, F_C, F_S, SIGMA_0, SIGMA_1, SIGMA_2 = 1.0, 1.0, 1.5, 1e5, 1e5**0.5, 0.4
STANDARD = fx.Stribeck(F_prop=SIGMA_2, F_Coulomb=F_C, F_Stribeck=0.5, fexp=1000.0, exponent=2.0)


def lugre(sigma_0: Any = SIGMA_0, sigma_1: Any = None, **rest: Any) -> fx.LuGre:
    """Of the standard set, with a constant sigma_1 unless `v_d` is given."""
    sigma_1 = sigma_0**0.5 if sigma_1 is None else sigma_1
    return fx.LuGre(sigma_0, sigma_1, **({"v_d": jnp.inf} | rest))


def rubbing(
    bristle: Any, law: Any = STANDARD, drive: Any = None, mass: Any = None, **parts: Any
) -> fx.Mechanism:
    """A mass that rubs on the ground under a force."""
    push = {} if drive is None else {"push": fx.Force("mass", drive)}
    with warnings.catch_warnings():  # that a constant sigma_1 may give energy
        warnings.simplefilter("ignore")
        friction = fx.SupportFriction("mass", f_pos=law, bristle=bristle)
    mass = fx.Mass(m=M) if mass is None else mass
    return fx.Mechanism(mass=mass, friction=friction, **push, **parts)


def moved(bristle: Any, path: Any, law: Any = STANDARD) -> fx.Mechanism:
    """A mass that is moved along a path over time."""
    return rubbing(bristle, law, motion=fx.Position("mass", path))


# P1: 2 sin(2 pi t) N on 1 kg for 10 s; where it is then, known, by sigma_0 with sigma_1 =
# sqrt(sigma_0).
P1_LAW = {"F_prop": 0.2, "F_Coulomb": 1.0, "F_Stribeck": 0.4, "fexp": 5.0}
P1_END = {
    1e3: -5.052134e-4,
    1e4: 1.7776692e-3,
    1e5: 1.1404245e-3,
    1e6: 1.0766084e-3,
    1e7: 1.0597049e-3,
    1e8: 1.0555685e-3,
}


def shaking(t: Any) -> Any:
    """P1's force [N]. One function for all runs, which therefore share their programs."""
    return 2.0 * jnp.sin(2 * jnp.pi * t)


def p1(bristle: Any, h: float | None = None, **law: Any) -> tuple[fx.Mechanism, np.ndarray]:
    """The machine, and times of samples `h` apart; without, the two ends."""
    ts = np.linspace(0.0, 10.0, 2 if h is None else round(10.0 / h) + 1)
    drive: Any = shaking if h is None else fx.Sampled(ts, 2.0 * np.sin(2 * np.pi * ts))
    return rubbing(bristle, fx.Stribeck(**(P1_LAW | law)), drive), ts
