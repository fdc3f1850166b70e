"""What `compare` says of friction before it slides: whether a bristle earns its place, and how many
springs and sliders show.
"""

from typing import Any

import numpy as np
import pytest

import frictax as fx
from frictax.bristles import AbstractBristle, MaxwellSlip

T = np.linspace(0.0, 6.0, 1201)
S = 1e-4 * np.sin(2 * np.pi * T) * (1.0 + 0.3 * np.sin(2 * np.pi * 0.31 * T))
LAW = fx.Coulomb(F_Coulomb=2.0)


def table(bristle: AbstractBristle, way: Any = 0.0) -> fx.Mechanism:
    return fx.Mechanism(
        table=fx.Mass(m=1.0),
        stage=fx.Position("table", way),
        guide=fx.SupportFriction("table", f_pos=LAW, bristle=bristle),
    )


def springs(n: int) -> MaxwellSlip:
    grid = np.geomspace(0.4, 2.5, n) if n > 1 else np.ones(1)
    return fx.MaxwellSlip(4e4 / (n * grid), share=np.ones(n))


def along(truth: MaxwellSlip, **bristles: MaxwellSlip) -> fx.StructureComparison:
    """Of a table on a guide that is moved along `S`, its friction seen with noise."""
    f = np.asarray(fx.simulate(table(truth, fx.Sampled(T, S)), T)["guide"].f)
    f = f + 0.05 * np.random.default_rng(0).standard_normal(T.size)
    record = fx.Record(T, {"stage": S}, {"guide.f": f})
    structures = {}
    for name, one in bristles.items():
        numbers = ["k"] if one.k.shape[0] == 1 else ["k", "ratio"]
        free = ["guide.f_pos.F_Coulomb", *(f"guide.bristle.{number}" for number in numbers)]
        structures[name] = fx.Structure(table(one), free)
    return fx.compare(record, structures, objective=fx.FreeRun(), repeats=2, bands=2)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 3])
def test_one_spring_and_one_slider_say_all_where_they_are_all_that_there_is(n: int) -> None:
    made = along(springs(n), one=springs(1), three=springs(3))
    says = "One spring and one slider are enough for these records"
    assert (says in made.reason) == (n == 1)
    assert made.best.name == ("one" if n == 1 else "three")


def block(bristle: AbstractBristle | None, force: Any = 0.0) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        guide=fx.SupportFriction("mass", f_pos=LAW, bristle=bristle),
        push=fx.Force("mass", force),
    )


@pytest.mark.slow
@pytest.mark.parametrize("truth", [None, fx.Dahl(2e3)], ids=["rigid", "Dahl"])
def test_a_bristle_earns_nothing_where_there_is_none(truth: fx.Dahl | None) -> None:
    push = 3.0 * np.sin(6.0 * T) + 1.0 * np.sin(15.0 * T)
    s = np.asarray(fx.simulate(block(truth, fx.Sampled(T, push)), T)["mass"].s)
    s = s + 1e-6 * np.random.default_rng(0).standard_normal(T.size)
    record = fx.Record(T, {"push": push}, {"mass.s": s})
    law = ["mass.m", "guide.f_pos.F_Coulomb"]
    structures = {
        "rigid": fx.Structure(block(None), law),
        "bent": fx.Structure(block(fx.Dahl(1e3)), [*law, "guide.bristle.sigma_0"]),
    }
    made = fx.compare(record, structures, objective=fx.InverseDynamics(20.0), repeats=2, bands=2)
    assert ("A bristle does not improve the prediction" in made.reason) == (truth is None)
    assert made.best.name == ("rigid" if truth is None else "bent")
