"""Identified machines as Modelica text, and modifiers of what was fitted."""

import json
import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.report.plots import friction_plot
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


def test_a_value_of_each_record_is_that_of_the_named_record() -> None:
    t = np.linspace(0.0, 3.0, 301)
    v, acceleration = np.sin(4 * t), 4 * np.cos(4 * t)
    block = fx.Mechanism(
        mass=fx.Mass(m=2.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=0.8)),
        drive=fx.Force("mass", 0.0),
    )
    runs = {
        name: fx.Record(t, {"drive": 2 * acceleration + f * np.sign(v)}, {"mass.v": v})
        for name, f in (("slow", 0.5), ("fast", 1.5))
    }
    path = "friction.f_pos.F_Coulomb"
    found = fx.fit(block, runs, free=["mass.m"], own=[path], objective=fx.InverseDynamics(20.0))
    values = {name: found[f"{path}@{name}"].value for name in runs}
    assert values == pytest.approx({"slow": 0.5, "fast": 1.5}, abs=0.02)
    writers = (
        found.to_modelica_modifiers,
        lambda label=None: fx.to_feedforward(found, label=label),
        lambda label=None: found.to_mujoco(v_max=1.0, label=label),
        lambda label=None: found.to_urdf(v_max=1.0, label=label),
    )
    for write in writers:
        with pytest.raises(ValueError, match="`label` must name a record.* Write label='slow'"):
            write()
        with pytest.raises(KeyError, match="no record 'lost'"):
            write(label="lost")
        for name, value in values.items():
            written = [float(x) for x in re.findall(r"\d\.\d+", write(label=name))]
            assert any(x == pytest.approx(value, rel=1e-5) for x in written)
    e = found[f"{path}@fast"]
    assert f"({e.lower:.6g} to {e.upper:.6g})" in fx.to_feedforward(found, label="fast")
    (row,) = (row for row in json.loads(found.to_json())["parameters"] if row["name"] == path)
    assert (row["value"], row["own"]) == (None, values)
    plot = friction_plot(found, found.uncertainty(), found.residual_study())
    assert plot is not None
    for curve in plot["data"]:  # the points of the first record lie on its curve
        assert np.median(np.abs(curve["y"])) == pytest.approx(0.5, abs=0.02)
    alone = fx.fit(
        block,
        {"fast": runs["fast"]},
        free=["mass.m"],
        own=[path],
        objective=found.problem.objective,
    )
    assert re.search(r"F_Coulomb=1\.(5|49)", alone.to_modelica_modifiers())
    sweep = fx.Sweep([1.0, 2.0, 3.0], [1.0, 1.1, 1.2], velocity_unit="m/s", force_unit="N")
    with pytest.raises(ValueError, match="`label` is an option for the records of a machine"):
        fx.fit(fx.Coulomb, sweep).to_urdf(label="slow")
