"""A number that ended far from its start is named: a unit or a search may be wrong."""

import pytest

import frictax as fx
from rigs import block, record

FREE = ["friction.f_pos.F_Coulomb", "mass.m"]


def named(found: fx.FitResult) -> set[str]:
    return {n.subject for n in found.notices if n.code == "far-from-start"}


@pytest.mark.slow
def test_a_number_a_hundred_times_its_start_is_named_and_one_that_is_not_is_not() -> None:
    run = record(block(), {"mass.v": 0.002})
    assert not named(fx.fit(block(F_Coulomb=1.1), run, free=FREE))
    # as of a column in mN that is taken for one in N
    milli = fx.Record(run.t, {"drive": 1e3 * run.inputs["drive"]}, dict(run.outputs), name="mN")
    start = block(F_Coulomb=1.1, F_prop=200.0, F_Stribeck=400.0)
    far = fx.fit(start, milli, free=FREE, objective=fx.InverseDynamics(20.0))
    assert far.values["mass.m"] == pytest.approx(1e3, rel=0.05)
    assert named(far) == set(FREE)
    (said,) = [n for n in far.notices if n.code == "far-from-start" and n.subject == "mass.m"]
    assert str(said).startswith(
        "mass.m is 1e+03 times its start value, 1e+03 instead of 1 kg. Check the"
    )


@pytest.mark.slow
def test_a_number_that_may_be_zero_is_not_far_below_its_start() -> None:
    run = record(block(F_prop=0.0), {"mass.v": 0.02})
    found = fx.fit(block(F_prop=0.2), run, free=["friction.f_pos.F_prop"])
    assert found.values["friction.f_pos.F_prop"] < 0.01
    assert not named(found)
