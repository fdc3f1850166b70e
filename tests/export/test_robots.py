"""Friction for robot simulators: what can be said there, and what is lost."""

import xml.etree.ElementTree as ET

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.export.robots import _find_contact, joint_friction

V = np.linspace(0.1, 2.0, 20)


def found(law, unit: tuple[str, str] = ("m/s", "N"), **options) -> fx.Found:
    v = np.concatenate([-V[::-1], V])
    noise = 1e-4 * np.random.default_rng(0).standard_normal(v.size)
    back = options.pop("backward", law)
    f = np.where(v > 0, np.asarray(law(jnp.abs(v))), -np.asarray(back(jnp.abs(v)))) + noise
    sweep = fx.Sweep(v, f, velocity_unit=unit[0], force_unit=unit[1])
    return fx.fit(law, sweep, **options)


def attributes(text: str) -> dict[str, str]:
    return ET.fromstring(f"<robot>{text}</robot>")[0].attrib


def test_coulomb_and_viscous_friction_is_said_exactly() -> None:
    one = found(fx.Coulomb(F_Coulomb=3.0, F_prop=0.5))
    said = attributes(one.to_mujoco("slide"))
    assert said["name"] == "slide"
    assert float(said["frictionloss"]) == pytest.approx(3.0, abs=1e-3)
    assert float(said["damping"]) == pytest.approx(0.5, abs=1e-3)
    dynamics = attributes(one.to_urdf())
    assert (dynamics["friction"], dynamics["damping"]) == (said["frictionloss"], said["damping"])
    assert "Lost" not in one.to_urdf()


def test_a_stribeck_curve_becomes_the_nearest_line_and_says_how_far_off_it_is() -> None:
    law = fx.Stribeck(F_prop=0.5, F_Coulomb=3.0, F_Stribeck=1.0, fexp=3.0)
    one = joint_friction(found(law))
    f, v = np.asarray(law(jnp.linspace(0, 2, 401)))[1:], np.linspace(0, 2, 401)[1:]
    slope, level = np.polyfit(v, f, 1)
    assert (one.friction, one.damping) == pytest.approx((level, slope), abs=2e-3)
    (sentence,) = one.lost
    said = float(sentence.split("off by up to ")[1].split()[0])
    assert said == pytest.approx(np.max(np.abs(f - level - slope * v)), rel=0.01)


def test_two_bent_curves_say_how_far_off_their_line_is() -> None:
    law = fx.Stribeck(F_prop=0.5, F_Coulomb=3.0, F_Stribeck=1.0, fexp=3.0)
    one = joint_friction(found(law, backward=law, f_neg=law))
    v = np.linspace(0, 2, 401)[1:]
    f = np.asarray(law(jnp.asarray(v)))
    said = float(one.lost[0].split("off by up to ")[1].split()[0])
    off = np.max(np.abs(f - one.friction - one.damping * v))
    assert said == pytest.approx(off, rel=0.01)


def test_other_friction_and_damping_of_the_same_body_is_said_to_be_lost() -> None:
    law = fx.Coulomb(F_Coulomb=3.0)
    machine = fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=1.0),
        other=fx.MassWithStopAndFriction(
            m=1.0, smin=-1.0, smax=1.0, F_prop=0.0, F_Coulomb=1.0, F_Stribeck=0.0, fexp=1.0
        ),
        guide=fx.SupportFriction("mass", f_pos=law, support="wall"),
        seal=fx.SupportFriction("mass", f_pos=law),
        far=fx.SupportFriction("other", f_pos=law, support="wall"),
        damper=fx.Damper("wall", "mass", d=1.0),
        spring=fx.Spring("wall", "mass", c=1.0),
        stay=fx.SpringDamper("mass", "other", c=1.0, d=1.0),
    )
    for contact, lost in (("guide", "seal damper stay"), ("other", "far stay")):
        sentences = _find_contact(machine, contact)[2]
        assert [x.split()[1].rstrip(",") for x in sentences] == lost.split()


def test_a_falling_curve_gets_no_negative_damping() -> None:
    one = joint_friction(found(fx.Stribeck(F_prop=0.0001, F_Coulomb=3.0, F_Stribeck=2.0, fexp=1.0)))
    assert one.damping == 0.0


@pytest.mark.slow
def test_directions_breakaway_and_an_offset_are_said_to_be_lost() -> None:
    law, back = fx.Coulomb(F_Coulomb=3.0, F_prop=0.5), fx.Coulomb(F_Coulomb=3.4, F_prop=0.5)
    two = joint_friction(found(law, backward=back, f_neg=back))
    assert two.friction == pytest.approx(3.2, abs=1e-3)
    assert any("two directions differ by up to 0.4" in s for s in two.lost)
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        joint=fx.SupportFriction("mass", f_pos=law, peak=1.3),
        drive=fx.Force("mass", 0.0),
        air=fx.QuadraticSpeedDependentForce("mass", f_nominal=-0.1),
        other=fx.Mass(m=1.0),
        detent=fx.PeriodicPositionDependentForce("other", f_cos=1.0, period=0.1),
    )
    t = np.linspace(0.0, 4.0, 401)
    v = np.sin(3 * t)
    needed = 3 * np.cos(3 * t) + np.sign(v) * (3.0 + 0.5 * np.abs(v) + 0.1 * v**2)
    dynamics = fx.InverseDynamics(40.0, v_min=0.05, at_samples=True)
    record = fx.Record(t, {"drive": needed}, {"mass.v": v, "other.v": 1e-3 * v})
    fitted = fx.fit(machine, record, free=["joint.f_pos"], objective=dynamics)
    text = fitted.to_mujoco(v_max=1.0)
    assert "breakaway at 1.3 times" in text
    assert "Lost: air, a QuadraticSpeedDependentForce on the same body." in text
    assert "detent" not in text
    assert float(attributes(text)["frictionloss"]) == pytest.approx(3.0, abs=0.01)
    assert attributes(fitted.to_urdf("joint", v_max=1.0))["damping"] == attributes(text)["damping"]
    with pytest.raises(KeyError, match="no contact 'joynt'"):
        fitted.to_urdf("joynt", v_max=1.0)
    with pytest.raises(ValueError, match="`v_max` must be a speed > 0"):
        fitted.to_urdf("joint", v_max=-1.0)


def test_a_name_cannot_leave_its_attribute_nor_the_comment() -> None:
    text = found(fx.Coulomb(F_Coulomb=3.0, F_prop=0.5), ("rad/s", "N.m")).to_mujoco('a"/><b --> <c')
    assert attributes(text)["name"] == 'a"/><b --> <c'
    assert "N.m per rad/s" in text
