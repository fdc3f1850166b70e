"""Forces periodic in position and over the square of the speed: closed forms, stiction, energy,
derivatives.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import assert_derivatives_agree, flat, outcome, rebuilt, value_and_jacobian
from frictax.mechanism import MechanicalSystem
from machines import REFERENCE, TIGHT, times

TIMES = jnp.linspace(0.0, 2.0, 9)
PERIOD = 0.4


def falling(f_nominal: Any = -0.5, v_nominal: Any = 2.0, v: Any = 0.0) -> fx.Mechanism:
    """A body of 3 kg under its weight and drag."""
    return fx.Mechanism(
        body=fx.Mass(m=3.0, v=v),
        weight=fx.Force("body", 3.0 * 9.81),
        drag=fx.QuadraticSpeedDependentForce("body", f_nominal=f_nominal, v_nominal=v_nominal),
    )


def lone(s: float = 0.0, v: float = 0.0, **of: Any) -> fx.Trajectory:
    """A mass of 2 kg under a ripple alone."""
    machine = fx.Mechanism(
        mass=fx.Mass(m=2.0, s=s, v=v),
        ripple=fx.PeriodicPositionDependentForce("mass", **{"period": PERIOD, **of}),
    )
    return fx.simulate(machine, TIMES, REFERENCE, energy=True)


def rubbed(
    f_nominal: Any = -2.0, f_cos: Any = 0.5, f_sin: Any = -0.3, period: Any = PERIOD, s: Any = 0.0
) -> fx.Mechanism:
    """A block with friction, drag and ripple, pulled to and fro."""
    law = fx.Stribeck(F_Coulomb=1.0, F_prop=0.2, F_Stribeck=0.4, fexp=5.0)
    return fx.Mechanism(
        mass=fx.Mass(m=1.0, s=s),
        friction=fx.SupportFriction("mass", f_pos=law, peak=1.1),
        drag=fx.QuadraticSpeedDependentForce("mass", f_nominal=f_nominal),
        ripple=fx.PeriodicPositionDependentForce("mass", f_cos=f_cos, f_sin=f_sin, period=period),
        drive=fx.Force("mass", fx.Sine(amplitude=2.0, f=0.8)),
    )


# -- drag


def test_a_falling_body_nears_the_speed_at_which_drag_is_its_weight() -> None:
    run = fx.simulate(falling(), TIMES, REFERENCE)
    top = 2.0 * np.sqrt(3.0 * 9.81 / 0.5)
    assert np.allclose(run["body"].v, top * np.tanh(9.81 * np.asarray(TIMES) / top), rtol=1e-9)
    assert np.allclose(run["drag"].f, -0.5 * (np.asarray(run["body"].v) / 2.0) ** 2)


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_mass_with_drag_alone_slows_as_one_over_time_either_way(way: float) -> None:
    coasts = fx.Mechanism(
        mass=fx.Mass(m=2.0, v=3.0 * way),
        drag=fx.QuadraticSpeedDependentForce("mass", f_nominal=-0.7),
    )
    run = fx.simulate(coasts, TIMES, REFERENCE, energy=True)
    expected = 3.0 * way / (1 + 0.7 * 3.0 / 2.0 * np.asarray(TIMES))
    assert np.allclose(run["mass"].v, expected, rtol=1e-9)
    # What it loses is dissipated, and no drive's.
    assert np.all(run.energy.drive == 0)
    assert np.allclose(run.energy.damper, 9.0 - run.energy.kinetic, atol=1e-9)
    assert np.max(np.abs(run.energy.balance)) < 1e-9


@pytest.mark.slow
def test_one_that_pushes_along_the_motion_brings_energy_in() -> None:
    run = fx.simulate(falling(f_nominal=0.01, v=1.0), TIMES, REFERENCE, energy=True)
    assert np.all(np.diff(run.energy.damper) < 0)
    assert np.max(np.abs(run.energy.balance)) < 1e-7


@pytest.mark.slow
def test_a_torque_slows_an_inertia_as_a_force_slows_a_mass() -> None:
    slides = fx.Mechanism(
        body=fx.Mass(m=0.3, v=5.0), drag=fx.QuadraticSpeedDependentForce("body", -0.2, 1.5)
    )
    turns = fx.Mechanism(
        body=fx.Inertia(J=0.3, w=5.0), drag=fx.QuadraticSpeedDependentTorque("body", -0.2, 1.5)
    )
    slid, turned = (fx.simulate(m, TIMES, REFERENCE) for m in (slides, turns))
    assert np.array_equal(slid.ys, turned.ys)
    assert np.array_equal(slid["drag"].f, turned["drag"].tau)
    assert np.array_equal(turned["drag"].phi, turned["body"].phi)


def swung(x: jax.Array, engine: fx.Adaptive = TIGHT) -> jax.Array:
    """Where a mass on a spring with drag gets to. Nothing rubs: no event marks where the speed
    changes its sign.
    """
    pendulum = fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=1.0, s=x[1]),
        spring=fx.Spring("wall", "mass", c=30.0),
        drag=fx.QuadraticSpeedDependentForce("mass", f_nominal=x[0]),
    )
    return fx.simulate(pendulum, jnp.array([0.0, 1.0, 2.5]), engine).ys[1:].ravel()


@pytest.mark.slow
def test_drag_through_a_turn_of_the_motion_has_the_derivatives_of_differences() -> None:
    """They are as near as the motion where tolerances are loose."""
    x, loose = jnp.array([-1.5, 0.7]), fx.Adaptive(rtol=1e-6, atol=1e-8)
    right_slopes = assert_derivatives_agree(swung, x)
    near, slopes = value_and_jacobian(lambda x: swung(x, loose))(x)
    assert np.max(np.abs(slopes - right_slopes)) < np.max(np.abs(near - swung(x))) < 2e-5


def test_steps_are_checked_for_derivatives_only_where_drag_turns_without_an_event() -> None:
    drag = fx.QuadraticSpeedDependentForce("mass", f_nominal=-1.0)
    guide = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0))
    brake = fx.Brake("mass", mu_pos=fx.Coulomb(F_Coulomb=0.3), fn_max=1.0)
    ripple = fx.PeriodicPositionDependentForce("mass", f_sin=1.0, period=1.0)
    for is_smooth, parts in (
        (True, {"ripple": ripple}),
        (False, {"drag": drag}),
        (True, {"drag": drag, "guide": guide}),
        (False, {"drag": drag, "brake": brake}),
    ):
        system = MechanicalSystem(fx.Mechanism(mass=fx.Mass(m=1.0), **parts))
        assert system.is_smooth(None) == is_smooth, parts


@pytest.mark.slow
def test_a_stiff_drag_is_right() -> None:
    """From 5 m/s, where its time constant is 1e-7 s."""
    machine = fx.Mechanism(
        mass=fx.Mass(m=1e-3, v=5.0), drag=fx.QuadraticSpeedDependentForce("mass", f_nominal=-1e3)
    )
    ts = np.array([0.0, 1e-6, 1e-3, 1.0])
    run = fx.simulate(machine, jnp.asarray(ts), REFERENCE)
    assert np.allclose(run["mass"].v, 5.0 / (1 + 1e6 * 5.0 * ts), rtol=1e-6)


# -- a ripple


def test_a_mass_in_a_valley_swings_by_the_slope_of_the_force_there() -> None:
    run = lone(s=1e-5, f_sin=-8.0)
    w = np.sqrt(2 * np.pi / PERIOD * 8.0 / 2.0)
    assert np.allclose(run["mass"].s, 1e-5 * np.cos(w * np.asarray(TIMES)), atol=2e-11)


@pytest.mark.slow
def test_a_swing_in_a_valley_is_that_of_a_pendulum() -> None:
    """The angle 2*pi*s/period of a pendulum let go at 60 degrees: the period 2*K(1/4)/w*2."""
    from scipy.special import ellipk

    w = np.sqrt(2 * np.pi / PERIOD * 8.0 / 2.0)
    machine = fx.Mechanism(
        mass=fx.Mass(m=2.0, s=PERIOD / 6),
        ripple=fx.PeriodicPositionDependentForce("mass", f_sin=-8.0, period=PERIOD),
    )
    ends = jnp.array([0.0, 4 * ellipk(np.sin(np.pi / 6) ** 2) / w])
    run = fx.simulate(machine, ends, REFERENCE)
    assert float(run["mass"].s[-1]) == pytest.approx(PERIOD / 6, rel=1e-9)


def test_its_force_repeats_itself_and_is_f_cos_at_s0() -> None:
    run = lone(s=0.3, v=2.0, f_cos=1.5, f_sin=0.5, s0=0.1)
    turn = 2 * np.pi * (np.asarray(run["mass"].s) - 0.1) / PERIOD
    assert np.allclose(run["ripple"].f, 1.5 * np.cos(turn) + 0.5 * np.sin(turn), atol=1e-12)
    assert float(lone(s=0.1 + 3 * PERIOD, f_cos=1.5, f_sin=0.5, s0=0.1)["ripple"].f[0]) == (
        pytest.approx(1.5)
    )


def test_what_it_does_is_stored() -> None:
    run = lone(s=0.3, v=2.0, f_cos=1.5, f_sin=0.5)
    e, turn = run.energy, 2 * np.pi * np.asarray(run["mass"].s) / PERIOD
    stored = PERIOD / (2 * np.pi) * (0.5 * np.cos(turn) - 1.5 * np.sin(turn))
    assert np.allclose(e.elastic, stored, atol=1e-12)
    assert np.all(e.drive == 0)
    assert np.all(e.damper == 0)
    assert np.allclose(e.kinetic + e.elastic, (e.kinetic + e.elastic)[0], atol=1e-9)


@pytest.mark.slow
def test_it_is_a_torque_on_what_turns() -> None:
    shaft = fx.Mechanism(
        rotor=fx.Inertia(J=2.0, phi=0.3, w=2.0),
        cogging=fx.PeriodicPositionDependentForce("rotor", f_cos=1.5, f_sin=0.5, period=PERIOD),
    )
    slid = lone(s=0.3, v=2.0, f_cos=1.5, f_sin=0.5)
    turned = fx.simulate(shaft, TIMES, REFERENCE)
    assert np.allclose(turned["rotor"].phi, slid["mass"].s, atol=1e-12)


def test_a_mass_held_by_friction_stays_until_the_pull_exceeds_what_the_valley_leaves() -> None:
    place = 0.03
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0, s=place),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0), peak=1.2),
        ripple=fx.PeriodicPositionDependentForce("mass", f_sin=-1.8, period=PERIOD),
        drive=fx.Force("mass", fx.Ramp(height=40.0, duration=10.0)),
    )
    back = 1.8 * np.sin(2 * np.pi * place / PERIOD)
    ts = jnp.linspace(0.0, 1.0, 11)
    run = fx.simulate(machine, ts, REFERENCE)
    first = float(run.events.time[0])
    assert first == pytest.approx((1.2 * 2.0 + back) / 4.0, rel=1e-11)
    held = np.asarray(ts) < first
    assert np.all(run["mass"].s[held] == place)
    assert np.all(run["friction"].locked[held])
    assert np.allclose(run["friction"].f[held], 4.0 * np.asarray(ts)[held] - back, atol=1e-12)


@pytest.mark.slow
def test_a_mass_that_creeps_from_valley_to_valley_sticks_in_each() -> None:
    """Drawn by a spring at 0.05 m/s, it falls over four crests of the ripple and sticks behind
    each.
    """
    machine = fx.Mechanism(
        hand=fx.Mass(m=1.0),
        mass=fx.Mass(m=0.02),
        pull=fx.Position("hand", lambda t: 0.05 * t),
        spring=fx.SpringDamper("hand", "mass", c=40.0, d=0.3),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=0.5, F_prop=0.2)),
        ripple=fx.PeriodicPositionDependentForce("mass", f_sin=-1.0, period=0.05),
    )
    run = fx.simulate(machine, jnp.linspace(0.0, 4.0, 401), REFERENCE, energy=True)
    events = run.events
    sticks = np.asarray(events.mode_after[: int(events.count)]) == 0
    places = np.interp(
        np.asarray(events.time[: int(events.count)])[sticks], run.ts, np.asarray(run["mass"].s)
    )
    assert {int(round(x / 0.05)) for x in places} >= {1, 2, 3}
    assert np.max(np.abs(run.energy.balance)) < 1e-7


@pytest.mark.slow
def test_a_short_ripple_of_great_force_is_right() -> None:
    """A detent of 50 N at 0.1 mm holds 0.1 kg: 900 Hz beside a drive of 1 Hz."""
    w = np.sqrt(2 * np.pi / 1e-4 * 50.0 / 0.1)
    machine = fx.Mechanism(
        mass=fx.Mass(m=0.1),
        detent=fx.PeriodicPositionDependentForce("mass", f_sin=-50.0, period=1e-4),
        drive=fx.Force("mass", fx.Sine(amplitude=1.0, f=1.0)),
    )
    run = fx.simulate(machine, jnp.linspace(0.0, 0.25, 6), REFERENCE)
    t, a = np.asarray(run.ts), 2 * np.pi
    size = 1.0 / (0.1 * (w**2 - a**2))
    linear = size * (np.sin(a * t) - a / w * np.sin(w * t))
    assert np.allclose(run["mass"].s, linear, atol=3e-4 * size)


# -- both


@pytest.mark.slow
@pytest.mark.parametrize("period", [PERIOD, 0.07])
def test_the_balance_closes_with_friction_drag_and_ripple(period: float) -> None:
    run = fx.simulate(rubbed(period=period), jnp.linspace(0.0, 2.5, 26), REFERENCE, energy=True)
    assert int(run.events.count) >= 5
    assert np.max(np.abs(run.energy.balance)) <= 1e-8
    assert float(run.energy.damper[-1]) > 2e-3
    assert np.ptp(run.energy.elastic) > 0.1 * period / (2 * np.pi)


@pytest.mark.slow
def test_the_derivatives_through_stick_and_slip_equal_central_differences() -> None:
    machine = rubbed(s=0.05)
    paths = ["drag.f_nominal", "drag.v_nominal", "ripple.f_cos", "ripple.f_sin", "ripple.period"]
    paths += ["ripple.s0", "mass.m", "mass.s", "friction.f_pos.F_Coulomb"]
    ts = jnp.array([0.0, 0.9, 2.5])
    events = fx.simulate(machine, ts, TIGHT).events
    count = int(events.count)
    assert {-1, 0, 1} == set(np.asarray(events.mode_after[:count]).tolist())
    f = lambda x: outcome(rebuilt(machine, paths, x), ts, TIGHT, count)  # noqa: E731
    assert_derivatives_agree(f, flat(machine, paths), step=1e-4, reverse=False)


@pytest.mark.slow
def test_on_the_samples_of_a_record_it_moves_as_by_error_control() -> None:
    ts = jnp.linspace(0.0, 2.5, 2501)
    machine = rubbed()
    by_samples, adaptive = (
        np.asarray(fx.simulate(machine, ts, engine)["mass"].s)
        for engine in (fx.OnSamples(), REFERENCE)
    )
    assert np.max(np.abs(by_samples - adaptive)) < 1e-6


@pytest.mark.slow
def test_size_0_moves_as_without() -> None:
    machine = rubbed(f_nominal=0.0, f_cos=0.0, f_sin=0.0)
    parts = {n: p for n, p in machine.named_parts() if n not in ("drag", "ripple")}
    ts = [0.0, 0.9, 2.5]  # as above
    without = times(fx.Mechanism(**parts), ts, TIGHT)
    assert np.allclose(times(machine, ts, TIGHT), without, atol=1e-12)


def test_what_may_be_fitted_are_the_sizes_and_the_others_by_name() -> None:
    chosen = [p.path for p in fx.parameters.select(rubbed(), ["drag", "ripple"])]
    assert chosen == ["drag.f_nominal", "ripple.f_cos", "ripple.f_sin"]
    own = ["drag.v_nominal", "ripple.period", "ripple.s0"]
    assert [p.path for p in fx.parameters.select(rubbed(), own)] == own


@pytest.mark.parametrize(
    ("build", "pieces"),
    [
        (
            lambda: fx.QuadraticSpeedDependentForce("mass", f_nominal=np.nan),
            ["`QuadraticSpeedDependentForce.f_nominal`", "finite", "nan"],
        ),
        (
            lambda: fx.QuadraticSpeedDependentTorque("rotor", w_nominal=0.0),
            ["`QuadraticSpeedDependentTorque.w_nominal`", "> 0", "got 0"],
        ),
        (
            lambda: fx.PeriodicPositionDependentForce("mass", period=-0.1),
            ["`PeriodicPositionDependentForce.period`", "> 0", "-0.1"],
        ),
        (
            lambda: fx.PeriodicPositionDependentForce("mass", f_cos=[1.0, 2.0], period=0.1),
            ["`PeriodicPositionDependentForce.f_cos`", "a number", "(2,)"],
        ),
        (
            lambda: fx.Mechanism(
                rotor=fx.Inertia(J=1.0), drag=fx.QuadraticSpeedDependentForce("rotor", -1.0)
            ),
            ["'drag', a QuadraticSpeedDependentForce, acts on what slides", "'rotor'"],
        ),
        (
            lambda: fx.Mechanism(
                mass=fx.Mass(m=1.0), drag=fx.QuadraticSpeedDependentTorque("mass", -1.0)
            ),
            ["'drag', a QuadraticSpeedDependentTorque, acts on what turns", "'mass'"],
        ),
        (
            lambda: fx.Mechanism(
                mass=fx.Mass(m=1.0), ripple=fx.PeriodicPositionDependentForce("mas", period=1.0)
            ),
            ["'ripple' is attached to 'mas'", "no body", "Did you mean 'mass'?"],
        ),
        (
            lambda: fx.LinearPositionDependentForce("mass", slope=np.nan),
            ["`LinearPositionDependentForce.slope`", "finite", "nan"],
        ),
        (
            lambda: fx.LinearPositionDependentForce("mass", f_nominal=np.inf),
            ["`LinearPositionDependentForce.f_nominal`", "finite", "inf"],
        ),
        (
            lambda: fx.LinearPositionDependentForce("mass", s0=[0.0, 1.0]),
            ["`LinearPositionDependentForce.s0`", "a number", "(2,)"],
        ),
        (
            lambda: fx.Mechanism(
                mass=fx.Mass(m=1.0), offset=fx.LinearPositionDependentForce("mas", f_nominal=1.0)
            ),
            ["'offset' is attached to 'mas'", "no body", "Did you mean 'mass'?"],
        ),
    ],
)
def test_a_mistake_is_told_by_its_name(build: Any, pieces: list[str]) -> None:
    with pytest.raises(ValueError, match=".") as error:
        build()
    assert [piece for piece in pieces if piece not in str(error.value)] == [], str(error.value)
