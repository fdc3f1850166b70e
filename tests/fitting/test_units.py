"""Units of what a fit to records finds."""

import numpy as np
import pytest

import frictax as fx
from frictax.fitting.result.units import unit_of
from frictax.parameters import parameters
from rigs import T, U


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("turns", [False, True], ids=["slides", "turns"])
def test_units_are_those_of_a_brakes_body_and_of_its_coefficient(turns: bool) -> None:
    t = np.linspace(0.0, 1.0, 101)
    law = fx.Coulomb(F_Coulomb=0.3, F_prop=0.1)
    brake = fx.Brake("body", mu_pos=law, cgeo=0.5, fn_max=2.0, f_normalized=1.0)
    if turns:
        machine = fx.Mechanism(
            body=fx.Inertia(J=1.0, w=1.0),
            brake=brake,
            guide=fx.BearingFriction("body", tau_pos=law),
        )
        expected = {"body.J": "kg.m2", "cgeo": "m", "mu": "s/rad", "guide": ("N.m", "N.m.s/rad")}
    else:
        machine = fx.Mechanism(
            body=fx.Mass(m=1.0, v=1.0), brake=brake, guide=fx.SupportFriction("body", f_pos=law)
        )
        expected = {"body.m": "kg", "cgeo": "1", "mu": "s/m", "guide": ("N", "N.s/m")}
    inertia, *_ = expected
    free = [
        inertia,
        "brake.cgeo",
        "brake.fn_max",
        "brake.mu_pos",
        "guide.tau_pos" if turns else "guide.f_pos",
    ]
    seen = fx.Record(t, outputs={"body.w" if turns else "body.v": 1.0 - 0.5 * t}, name="run")
    units = {
        e.name: e.unit
        for e in fx.fit(
            machine,
            seen,
            free=free,
            objective=fx.InverseDynamics(10.0),
            method=fx.LevenbergMarquardt(max_steps=1),
        ).estimates
    }
    way = "tau_pos" if turns else "f_pos"
    assert units == {
        inertia: expected[inertia],
        "brake.cgeo": expected["cgeo"],
        "brake.fn_max": "N",
        "brake.mu_pos.F_Coulomb": "1",
        "brake.mu_pos.F_prop": expected["mu"],
        f"guide.{way}.F_Coulomb": expected["guide"][0],
        f"guide.{way}.F_prop": expected["guide"][1],
    }


def test_units_of_what_acts_on_either_are_those_of_its_body() -> None:
    turning = fx.Mechanism(
        body=fx.Inertia(J=1.0),
        ripple=fx.PeriodicPositionDependentForce("body", period=0.1),
        guide=fx.LinearPositionDependentForce("body"),
        drag=fx.QuadraticSpeedDependentTorque("body"),
        brake=fx.Brake("body", fn_max=3.0),
    )
    unit = unit_of({"run": fx.Record(T, {}, {"body.phi": U})}, turning)
    units = {p.path: unit(p) for p in parameters(turning)}
    assert units["ripple.f_cos"] == units["guide.f_nominal"] == "N.m"
    assert units["ripple.period"] == units["ripple.s0"] == "rad"
    assert units["guide.slope"] == "N.m/rad"
    assert (units["drag.tau_nominal"], units["drag.w_nominal"]) == ("N.m", "rad/s")
    assert units["brake.fn_max"] == "N"
