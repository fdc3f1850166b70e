"""Synthetic sweeps, like the shipped one."""

import numpy as np

from frictax.fitting import SteadyFriction
from frictax.laws import Stribeck, Table

NOISE = 2.4e-5  # N.m, standard deviation
# the last ten rows are breakaway
SPEEDS = np.concatenate([np.linspace(0.2, 20.0, 20), np.zeros(10)])
NODES = [[0, 2.75e-3], [2, 2.6e-3], [5, 2.5e-3], [9, 2.6e-3], [14, 2.8e-3], [20, 3.1e-3]]


def breakaway_case(kind: str, truth: Stribeck) -> tuple[SteadyFriction, SteadyFriction]:
    """True friction with a peak, and a start away from it."""
    if kind == "Stribeck":
        start = Stribeck(F_prop=1e-4, F_Coulomb=2e-3, F_Stribeck=1e-3, fexp=0.4, exponent=2.0)
        return SteadyFriction(truth, peak=1.15), SteadyFriction(start, peak=1.05)
    flat = [[v, 2e-3] for v, _ in NODES]
    return SteadyFriction(Table(NODES), peak=1.15), SteadyFriction(Table(flat), peak=1.05)


def true_values(friction: SteadyFriction) -> np.ndarray:
    law = friction.f_pos
    if isinstance(law, Table):
        return np.array([*np.asarray(law.f), float(friction.peak)])
    assert isinstance(law, Stribeck)
    return np.array(
        [float(x) for x in (law.F_prop, law.F_Coulomb, law.F_Stribeck, law.fexp, friction.peak)]
    )
