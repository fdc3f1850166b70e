"""A sled that lacks a term, and its fits."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.signal import lfilter

import frictax as fx
from frictax.analysis.missing.candidates import (
    Shapes,
    WithTerms,
    push,
)
from frictax.laws import AbstractLaw

T = np.arange(2000) / 200.0
FREE = ["mass.m", "spring.c", "friction.f_pos.F_Coulomb", "friction.f_pos.F_prop"]
FREQUENCY = np.array([0.3, 0.55, 0.9, 1.3, 1.9, 2.6])
SIZE = np.array([2.5, 2.2, 1.8, 1.5, 1.2, 1.0])
RIGHT = fx.Coulomb(F_Coulomb=1.0, F_prop=0.5)
LAWS = {
    "drag": WithTerms(RIGHT, jnp.array([0.1]), jnp.array(1.0), ("drag",), 1),
    "Stribeck": fx.Stribeck(F_Coulomb=1.0, F_prop=0.5, F_Stribeck=0.06, fexp=10.0),
}


def sled(law: AbstractLaw, u: np.ndarray | None = None, **more: object) -> fx.Mechanism:
    """1 kg on a spring, with friction and a drive."""
    values = {"m": 1.0, "c": 20.0, "f_neg": None, **more}
    m, c, f_neg = (values.pop(name) for name in ("m", "c", "f_neg"))
    return fx.Mechanism(
        mass=fx.Mass(m=m),
        wall=fx.Fixed(),
        spring=fx.Spring("wall", "mass", c=c),
        friction=fx.SupportFriction("mass", f_pos=law, f_neg=f_neg),
        drive=fx.Force("mass", 0.0 if u is None else fx.Sampled(T, u)),
        **values,
    )


def fitted(lacking: str, noise: str, seed: int, objective: Any = None) -> fx.FitResult:
    """A fit of the plain sled to a record of one that has more."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0.0, 2 * np.pi, FREQUENCY.size)
    given = SIZE @ np.sin(2 * np.pi * FREQUENCY[:, None] * T + turn[:, None])
    acting, more = given, {}
    if lacking == "offset":
        acting = given + 0.01
    if lacking == "delay":
        acting = np.interp(T - 5e-4, T, given)
    if lacking == "other way":
        more["f_neg"] = fx.Coulomb(F_Coulomb=0.98, F_prop=0.5)
    if lacking == "ripple":
        zero, one = jnp.zeros(()), jnp.ones(())
        wave = jnp.array([0.1, 0.0])
        more["ripple"] = push(
            "mass", False, Shapes(jnp.zeros(0), wave, 0.05 * one, zero, zero, one, ())
        )
    truth = sled(LAWS.get(lacking, RIGHT), acting, **more)
    s = np.asarray(fx.simulate(truth, ts=jnp.asarray(T), engine=fx.OnSamples())["mass"].s)
    if noise == "steps":
        s = 1e-3 * np.round((s + 5e-5 * rng.standard_normal(T.size)) / 1e-3)
    else:
        phi = {"white": 0.0, "AR": 0.95}[noise]
        draws = np.sqrt(1 - phi**2) * rng.standard_normal(T.size + 400)
        s = s + 5e-4 * np.asarray(lfilter([1.0], [1.0, -phi], draws))[400:]
    record = fx.Record(T, {"drive": given}, {"mass.s": s}, name="run")
    guess = sled(fx.Coulomb(F_Coulomb=0.9, F_prop=0.6), m=1.1, c=18.0)
    return fx.fit(guess, record, free=FREE, objective=objective or fx.FreeRun())


NAMES = {
    "drag": "drag over v^2",
    "offset": "constant force",
    "ripple": "ripple",
    "delay": "delay of input drive",
    "other way": "differs by direction",
    "Stribeck": "Stribeck",
}
