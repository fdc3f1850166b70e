"""Contacts with a bristle for robot simulators: MuJoCo's own motor moves as frictax says."""

import dataclasses
import functools
import xml.etree.ElementTree as ET
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.export.robots import joint_friction

LAW = fx.Stribeck(F_prop=0.4, F_Coulomb=1.0, F_Stribeck=0.5, fexp=1000.0, exponent=2.0)


# a constant sigma_1, as MuJoCo has it
pytestmark = pytest.mark.filterwarnings("ignore:.*gives energy")


def rotor(bristle: Any = None, law: Any = LAW) -> fx.Mechanism:
    return fx.Mechanism(
        rotor=fx.Inertia(J=1.0),
        bearing=fx.BearingFriction("rotor", tau_pos=law, bristle=bristle),
        drive=fx.Torque("rotor", 0.0),
    )


@functools.cache
def fitted_inertia() -> fx.FitResult:
    """Fit only the inertia of the rotor without a bristle, to a motion that is written down."""
    t = np.linspace(0.0, 0.2, 201)
    record = fx.Record(t, {"drive": 20 * np.cos(20 * t)}, {"rotor.w": np.sin(20 * t)})
    objective = fx.InverseDynamics(cutoff=100.0, at_samples=True)
    return fx.fit(rotor(), record, free=["rotor.J"], objective=objective)


def fitted(bristle: Any, law: Any = LAW) -> fx.FitResult:
    """Give the fitted machine this bristle. A fit of that machine takes 40 s to compile."""
    return dataclasses.replace(fitted_inertia(), start=rotor(bristle, law))


def motor(found: fx.FitResult) -> dict[str, str]:
    return ET.fromstring(f"<x>{found.to_mujoco(v_max=1.0, joint='j')}</x>")[0].attrib


@pytest.mark.slow
def test_what_has_no_words_there_is_said_to_be_lost() -> None:
    found = fitted(fx.LuGre(sigma_0=1e4, sigma_1=20.0, v_d=np.inf))
    said = motor(found)
    assert said["joint"] == "j"
    assert [float(x) for x in said["lugre"].split()] == [1e4, 20.0, 1.0, 1.5, 1e-3]
    assert float(said["damping"]) == 0.4
    assert "Lost" not in found.to_mujoco(v_max=1.0)
    assert "Lost: the bristle" in found.to_urdf(v_max=1.0)
    bent = fx.Stribeck(F_prop=0.4, F_Coulomb=1.0, F_Stribeck=0.5, fexp=20.0)
    text = fitted(fx.ElastoPlastic(sigma_0=1e4, sigma_1=20.0), bent).to_mujoco(v_max=1.0)
    for words in ("z_ba", "sigma_1 fades over a speed of 0.05", "the Stribeck exponent 1;"):
        assert words in text, words
    assert joint_friction(found, v_max=1.0).lugre is not None


@pytest.mark.slow
def test_mujoco_moves_as_frictax_does() -> None:
    mujoco = pytest.importorskip(
        "mujoco", "3.8", reason="MuJoCo 3.8 or later is not installed; it is needed for this alone"
    )
    found = fitted(fx.LuGre(sigma_0=1e4, sigma_1=100.0, v_d=np.inf))
    element = found.to_mujoco(v_max=1.0, joint="j")
    step = 1e-5
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="{step}" gravity="0 0 0" integrator="implicitfast"/>
        <worldbody><body><joint name="j" type="hinge" axis="0 0 1" armature="1"/>
        <inertial pos="0 0 0" mass="1e-9" diaginertia="1e-9 1e-9 1e-9"/></body></worldbody>
        <actuator>{element}</actuator></mujoco>"""
    )
    data, there = mujoco.MjData(model), []
    # a ramp to 2 N.m in 1 s, past breakaway at 1.5
    for k in range(100_000):
        if k % 1000 == 0:
            there.append([data.qpos[0], data.qvel[0]])
        data.qfrc_applied[0] = 2.0 * k * step
        mujoco.mj_step(model, data)
    ramp = fx.Mechanism(
        **{
            **dict(found.model.named_parts()),
            "rotor": fx.Inertia(J=1.0),
            "drive": fx.Torque("rotor", fx.Ramp(height=2.0, duration=1.0)),
        }
    )
    run = fx.simulate(ramp, jnp.arange(100) * 1e-2, fx.Adaptive(rtol=1e-9, atol=1e-12))
    here = np.column_stack([run["rotor"].phi, run["rotor"].w])
    size = np.max(np.abs(here), axis=0)
    assert size[1] > 0.1
    np.testing.assert_allclose(np.array(there) / size, here / size, atol=1e-2)
