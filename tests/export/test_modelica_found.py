"""Identified machines as Modelica text, and modifiers of what was fitted."""

import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from modelica_compiler import compiled


@pytest.fixture(scope="module")
def found() -> fx.FoundMachine:
    t = np.linspace(0.0, 2.0, 401)
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
        drive=fx.Force("mass", 0.0),
    )
    record = fx.Record(
        t + 1,
        {"drive": 2.0 + 0 * t},
        {"mass.v": 0.75 * t + 0.01 * np.sin(40 * t)},
        name="pull",
        citation="A. Nobody",
    )
    return fx.fit(block, record, free=["friction.f_pos.F_Coulomb"])


@pytest.mark.slow
def test_the_identified_machine_runs_under_its_record_and_carries_its_numbers(
    found: fx.FoundMachine,
) -> None:
    text = found.to_modelica(self_contained=True)
    (estimate,) = found.estimates
    assert f"friction.f_pos.F_Coulomb = {estimate.value:.10g} N" in text
    assert "A. Nobody" in text
    assert "StartTime=1.0, StopTime=3.0" in text
    run = compiled(text).simulate(t=(1.0, 3.0), dt=0.1)
    # 2 N on 1 kg for 2 s
    np.testing.assert_allclose(run["mass.v"][-1], (2.0 - estimate.value) * 2.0, rtol=1e-5)
    with pytest.raises(KeyError, match="push"):
        found.to_modelica("push")


def test_modifiers_are_those_of_the_fitted_parts_alone(
    found: fx.FoundMachine, tmp_path: Any
) -> None:
    text = found.to_modelica_modifiers()
    assert "friction(f_pos=" in text
    assert "mass(" not in text
    assert [p.name for p in found.write_modelica(tmp_path)] == ["Machine.mo", "Machine_tables.txt"]


def test_a_machine_found_by_inverse_dynamics_starts_where_the_record_does() -> None:
    t = np.linspace(0.0, 2.0, 201)
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0), friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0))
    )
    record = fx.Record(t, outputs={"mass.s": 0.4 + 2.0 * t - 0.3 * t**2})
    found = fx.fit(block, record, free=["friction.f_pos.F_Coulomb"], objective=fx.InverseDynamics())
    s, v = re.search(
        r"s\(start=(\S+), fixed=true\), v\(start=(\S+), fixed", found.to_modelica()
    ).groups()  # type: ignore[union-attr]
    assert (float(s), float(v)) == (pytest.approx(0.4, abs=1e-3), pytest.approx(2.0, abs=0.05))


class Root(fx.AbstractLaw, fx.parameters.CheckedModule):
    """A law that the Modelica library does not have."""

    f: fx.parameters.Scalar = fx.parameters.parameter(fx.parameters.AtLeast(0.0), "N")

    def __call__(self, v: Any) -> Any:
        return self.f * jnp.sqrt(1 + v)


@pytest.mark.parametrize("turns", [False, True])
def test_a_law_that_modelica_does_not_have_is_a_table_up_to_the_highest_speed_of_the_record(
    turns: bool,
) -> None:
    t = np.linspace(0.0, 2.0, 101)
    sled = fx.Mechanism(mass=fx.Mass(m=1.0), friction=fx.SupportFriction("mass", f_pos=Root(1.0)))
    if turns:
        bearing = fx.BearingFriction("mass", tau_pos=Root(1.0))
        sled = fx.Mechanism(mass=fx.Inertia(J=1.0), friction=bearing)
    place, law = ("mass.phi", "tau_pos") if turns else ("mass.s", "f_pos")
    record = fx.Record(t, outputs={place: 0.4 + 2.0 * t - 0.3 * t**2})
    found = fx.fit(sled, record, free=[f"friction.{law}.f"], objective=fx.InverseDynamics())
    for text in (found.to_modelica_modifiers(), found.to_modelica()):
        speed = re.search(r"up to a speed of ([\d.]+)", text)
        assert speed is not None
        assert float(speed[1]) == pytest.approx(2.0, abs=0.05)
    assert "up to a speed of 7.0" in found.to_modelica(v_max=7.0)
