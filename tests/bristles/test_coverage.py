"""Intervals of a bristle's numbers hold the truth as often as they say: a block of the standard set
that is shaken below its breakaway, and now and then beyond, of which an encoder sees microns.
"""

import functools

import numpy as np
import pytest

import frictax as fx
from rubbing import F_C, F_S, SIGMA_0, SIGMA_1, STANDARD, lugre, rubbing

RATE, SECONDS = 1e4, 0.5  # Hz, s
T = np.arange(round(RATE * SECONDS) + 1) / RATE
FREE = ["friction.bristle.sigma_0", "friction.bristle.sigma_1"]
LAW = ["friction.f_pos.F_Coulomb", "friction.f_pos.F_Stribeck"]
TRUTH = np.array([SIGMA_0, SIGMA_1, F_C, F_S - F_C])
SUBSTEPS = 2
STEP = 2e-7  # of the encoder [m]
FEW_AND_MANY = [6, pytest.param(100, marks=pytest.mark.slow)]


def pushed(most: float) -> np.ndarray:
    """A force of that greatest size [N], whose reversals lie at many levels."""
    u = 0.55 * np.sin(2 * np.pi * 3.3 * T) + 0.35 * np.sin(2 * np.pi * 11.7 * T + 0.4)
    u += 0.2 * np.sin(2 * np.pi * 41.0 * T + 1.1)
    return most / np.max(np.abs(u)) * u


@functools.cache
def clean(most: float) -> np.ndarray:
    """Where the block is [m], by steps an eighth as long as those of the fit."""
    machine = rubbing(lugre(), drive=fx.Sampled(T, pushed(most)))
    return np.asarray(fx.simulate(machine, T, fx.OnSamples(substeps=16))["mass"].s)


@functools.cache
def draws(most: float, with_law: bool, step: float, noise: float, count: int) -> fx.Replicates:
    """Fits to records of that noise [m], then rounded to the encoder's step if there is one, from
    where two numbers are a factor of 1.5 off.
    """
    random = np.random.default_rng(7)
    s = clean(most) + noise * random.standard_normal((count, T.size))
    if step:  # where its steps lie is chance
        zero = step * random.uniform(size=(count, 1))
        s = step * np.round((s + zero) / step) - zero
    law = STANDARD
    if with_law:
        law = fx.Stribeck(F_prop=0.4, F_Coulomb=1.1, F_Stribeck=0.4, fexp=1000.0, exponent=2.0)
    start = rubbing(lugre(1.3e5, 250.0), law, 0.0)
    record = fx.Record(T, {"push": pushed(most)}, {"mass.s": s[0]})
    free = [*LAW, *FREE] if with_law else FREE
    return fx.fit_many(start, record, s, free=free, engine=fx.OnSamples(substeps=SUBSTEPS))
