"""A sled that lacks a term, and its fits."""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.signal import lfilter

import frictax as fx
from frictax.analysis.missing.candidates import Shapes, WithTerms, push
from frictax.laws import AbstractLaw

T = np.arange(1000) / 200.0
FREE = ["mass.m", "spring.c", "friction.f_pos.F_Coulomb", "friction.f_pos.F_prop"]
FREQUENCY = np.array([0.3, 0.55, 0.9, 1.3, 1.9, 2.6])
SIZE = np.array([2.5, 2.2, 1.8, 1.5, 1.2, 1.0])
RIGHT = fx.Coulomb(F_Coulomb=1.0, F_prop=0.5)


def sled(
    m: float, c: float, u: Any, law: AbstractLaw, f_neg: Any = None, **more: Any
) -> fx.Mechanism:
    """A mass on a spring, with friction and a drive."""
    return fx.Mechanism(
        mass=fx.Mass(m=m),
        wall=fx.Fixed(),
        spring=fx.Spring("wall", "mass", c=c),
        friction=fx.SupportFriction("mass", f_pos=law, f_neg=f_neg),
        drive=fx.Force("mass", u),
        **more,
    )


@functools.cache
def fitted(lacking: str, noise: str, seed: int) -> fx.FitResult:
    """A fit of the plain sled to a record of one that has more."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0.0, 2 * np.pi, FREQUENCY.size)
    given = SIZE @ np.sin(2 * np.pi * FREQUENCY[:, None] * T + turn[:, None])
    acting = given + 0.01 * (lacking == "offset")
    if lacking == "delay":
        acting = np.interp(T - 5e-4, T, given)
    # All true machines have one structure, so that they share a compiled program.
    zero, one, drag = jnp.zeros(()), jnp.ones(()), jnp.array([0.1 * (lacking == "drag")])
    dip, backward = 0.06 * (lacking == "Stribeck"), 0.98 if lacking == "other way" else 1.0
    laws = (
        WithTerms(fx.Stribeck(0.5, dry, dip, fexp=10.0), drag, one, ("drag",), 1)
        for dry in (1.0, backward)
    )
    wave = jnp.array([0.1 * (lacking == "ripple"), 0.0])
    ripple = push("mass", False, Shapes(jnp.zeros(0), wave, 0.05 * one, zero, zero, one, ()))
    truth = sled(1.0, 20.0, fx.Sampled(T, acting), *laws, ripple=ripple)
    s = np.asarray(fx.simulate(truth, ts=jnp.asarray(T), engine=fx.OnSamples())["mass"].s)
    if noise == "steps":
        s = 7e-4 * np.round((s + 3.5e-5 * rng.standard_normal(T.size)) / 7e-4)
    else:
        phi = {"white": 0.0, "AR": 0.95}[noise]
        draws = np.sqrt(1 - phi**2) * rng.standard_normal(T.size + 400)
        s = s + 3.5e-4 * np.asarray(lfilter([1.0], [1.0, -phi], draws))[400:]
    record = fx.Record(T, {"drive": given}, {"mass.s": s}, name="run")
    guess = sled(1.1, 18.0, 0.0, fx.Coulomb(F_Coulomb=0.9, F_prop=0.6))
    return fx.fit(guess, record, free=FREE, rounds=0)


NAMES = {
    "drag": "drag over v^2",
    "offset": "constant force",
    "ripple": "ripple",
    "delay": "delay of input drive",
    "other way": "differs by direction",
    "Stribeck": "Stribeck",
}
