"""Records that differ are named by fits to each alone, where their common fit leaves more than
noise.
"""

import numpy as np
import pytest

import frictax as fx
from frictax.analysis.errors.clusters import records_apart

T = np.linspace(0.0, 4.0, 401)
FORCE = 3.0 * np.sin(4.0 * T) + 1.5 * np.sin(2.3 * T)
FREE = ["mass.m", "friction.f_pos"]


def block(F_Coulomb=1.0, F_prop=0.2, m=1.0, drag=0.0, force: object = 0.0) -> fx.Mechanism:
    more = {"drag": fx.QuadraticSpeedDependentForce("mass", -drag)} if drag else {}
    return fx.Mechanism(
        mass=fx.Mass(m=m),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb, F_prop), peak=1.0),
        drive=fx.Force("mass", force),
        **more,
    )


def record(seed: int, **values: float) -> fx.Record:
    machine = block(force=fx.Sampled(T, FORCE), **values)
    v = np.asarray(fx.simulate(machine, T, fx.OnSamples())["mass"].v)
    v = v + 0.005 * np.random.default_rng(seed).standard_normal(T.size)
    return fx.Record(T, {"drive": FORCE}, {"mass.v": v}, name=f"run {seed}")


def fitted(records: list[fx.Record]) -> fx.FitResult:
    return fx.fit(block(0.9, 0.3, 0.9), records, free=FREE, rounds=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "named"),
    [
        ([{"F_Coulomb": 1.0}, {"F_Coulomb": 1.6}], "friction.f_pos.F_Coulomb"),
        ([{"m": 1.0}, {"m": 2.0}], "mass.m"),
        ([{"F_prop": 0.2}, {"F_prop": 0.6}], "friction.f_pos.F_prop"),
    ],
    ids=["dry", "mass", "viscous"],
)
def test_the_number_that_differs_is_named_and_no_other(values, named) -> None:
    found = fitted([record(i, **one) for i, one in enumerate(values)])
    assert {n.subject for n in found.notices if n.code == "records-differ"} == {named}


@pytest.mark.slow
def test_records_of_one_machine_do_not_differ_not_even_one_that_lacks_a_term() -> None:
    assert not records_apart(fitted([record(0), record(1)]))
    assert not records_apart(fitted([record(0, drag=0.3), record(1, drag=0.3)]))


@pytest.mark.slow
def test_records_of_one_machine_differ_by_chance_in_few_of_forty() -> None:
    said = [fitted([record(2 * k), record(2 * k + 1)]).notices_at_hand for k in range(40)]
    assert sum(any(n.code == "records-differ" for n in notices) for notices in said) <= 4
