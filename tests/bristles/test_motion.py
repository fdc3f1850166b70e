"""Runs of bristles against closed forms, and against what is known of the paper's machines."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.engine import phase
from rubbing import F_S, P1_END, P1_LAW, SIGMA_0, STANDARD, lugre, moved, p1, rubbing

BRISTLES = [
    lugre(v_d=1e-3),
    lugre(),
    fx.Dahl(SIGMA_0),
    fx.ElastoPlastic(SIGMA_0, 200.0, z_ba=0.6, v_d=1e-3),
]


@jax.jit
def at_constant_speed(bristle: Any, v: Any) -> Any:
    """Friction after 30 times the way on which it gets there: sigma_1*v*exp(-30) is left."""
    g = STANDARD(v) - STANDARD.viscous_slope * v
    last = 30 * g / (SIGMA_0 * v)
    ts = jnp.linspace(0.0, 1.0, 1001) * last
    machine = moved(bristle, fx.Ramp(height=2 * last * v, duration=2 * last))
    return fx.simulate(machine, ts, fx.OnSamples())["friction"].f[-1]


@pytest.mark.slow
@pytest.mark.parametrize("bristle", BRISTLES, ids=["fading", "LuGre", "Dahl", "ElastoPlastic"])
def test_at_constant_speed_friction_is_the_law_whatever_the_bristle(bristle: Any) -> None:
    for v in np.geomspace(1e-4, 1.0, 10):
        f, expected = at_constant_speed(bristle, jnp.array(v)), float(STANDARD(jnp.array(v)))
        assert float(f) == pytest.approx(expected, rel=1e-9)


def pulled_by_a_spring() -> fx.Mechanism:
    return rubbing(
        lugre(),
        hand=fx.Mass(m=1.0),
        motion=fx.Position("hand", lambda t: 0.1 * t),
        spring=fx.Spring("hand", "mass", c=2.0),
    )


CROSSINGS = (7.45801, 13.82073, 20.18345)  # at which the speed passes 0.01 m/s upward, known


@pytest.mark.slow
@pytest.mark.parametrize("engine", [fx.OnSamples(substeps=2), fx.Adaptive()], ids=type)
def test_stick_slip_is_that_of_the_paper(engine: Any) -> None:
    near = [np.arange(-0.003, 0.003, 2e-4) + t for t in CROSSINGS]
    ts = np.unique(np.concatenate([np.arange(0.0, 20.5, 1e-3), *near]).round(9))
    run = fx.simulate(pulled_by_a_spring(), ts, engine, energy=True)
    v, f = np.asarray(run["mass"].v), np.asarray(run["friction"].f)
    up = np.flatnonzero((v[:-1] < 0.01) & (v[1:] >= 0.01))
    at = ts[up] + (0.01 - v[up]) / (v[up + 1] - v[up]) * (ts[up + 1] - ts[up])
    assert at == pytest.approx(CROSSINGS, abs=1e-4)
    assert np.diff(at) == pytest.approx([6.36272, 6.36272], rel=2e-5)
    s = np.interp(at, ts, np.asarray(run["mass"].s))
    assert np.diff(s) == pytest.approx([0.636272, 0.636272], rel=2e-5)
    assert np.max(v) == pytest.approx(0.36982, rel=2e-5)
    assert np.max(f) == pytest.approx(1.47657, rel=2e-5)
    assert np.min(np.asarray(run["spring"].f)) == pytest.approx(-1.50798, rel=2e-5)
    assert np.max(np.abs(run.energy.balance)) < 1e-4


def test_presliding_goes_the_loop_of_the_paper() -> None:
    # +-0.1425 N/s to 0.95 of breakaway and back, 5 s of rest at the ends
    t = np.array([0.0, 10.0, 15.0, 35.0, 40.0, 60.0, 66.0])
    u = np.array([0.0, 1.425, 1.425, -1.425, -1.425, 1.425, 1.425])
    ts = np.array([0.0, 10, 15, 25, 35, 40, 50, 60, 65])
    exact = fx.Adaptive(rtol=1e-9, atol=1e-12)
    run = fx.simulate(rubbing(lugre(), drive=fx.Sampled(t, u)), ts, exact)
    known = [44.858, 45.312, 35.299, -9.564, -10.017, -0.005, 44.858, 45.312]
    assert 1e6 * np.asarray(run["mass"].s)[1:] == pytest.approx(known, abs=1e-3)
    assert int(run.events.count) == 0


def swinging(w: Any, t: Any) -> Any:
    return 1e-3 * (jnp.sin(w * t) / w + 1.5 * t)


@pytest.mark.parametrize(
    ("w", "falling", "rising", "most", "least"),
    [
        (1.0, 1.052703, 1.053923, 1.389453, 1.00197),
        pytest.param(10.0, 1.048307, 1.061088, 1.377908, None, marks=pytest.mark.slow),
        pytest.param(25.0, 1.043470, 1.079564, 1.344265, None, marks=pytest.mark.slow),
    ],
)
def test_friction_lags_behind_the_law_as_in_the_paper(
    w: float, falling: float, rising: float, most: float, least: float | None
) -> None:
    path = jax.tree_util.Partial(swinging, jnp.array(w))
    ts = np.linspace(0.0, 4 * np.pi / w, 4001)
    f = np.asarray(fx.simulate(moved(lugre(), path), ts, fx.OnSamples())["friction"].f)
    # v = 0.0015 m/s at a quarter and at three quarters of the second period
    assert f[[2500, 3500]] == pytest.approx([falling, rising], rel=1e-5)
    assert np.max(f[2000:]) == pytest.approx(most, rel=1e-5)
    if least is not None:
        assert np.min(f[2000:]) == pytest.approx(least, rel=1e-5)


@pytest.mark.slow
def test_breakaway_falls_with_the_rate_of_the_load_as_in_the_paper() -> None:
    @jax.jit
    def breakaway(rate: Any) -> Any:
        last = 1.5 / rate + 0.012
        ts, drive = jnp.linspace(0.0, 1.0, 8001) * last, fx.Ramp(rate * 2 * last, 2 * last)
        run = fx.simulate(rubbing(lugre(), drive=drive), ts, fx.OnSamples())
        return jnp.max(run["friction"].f)

    known = {
        0.1: 1.48521,
        0.5: 1.45704,
        1.0: 1.43242,
        2.0: 1.39442,
        5.0: 1.31321,
        10.0: 1.21995,
        20.0: 1.09861,
        50.0: 1.00747,
    }
    for rate, expected in known.items():
        assert float(breakaway(jnp.array(rate))) == pytest.approx(expected, rel=1e-5), rate


def creep(bristle: Any, law: Any, last: float) -> np.ndarray:
    """Where the mass is after whole periods of a load between 0.2 and 0.8 N at 5 Hz [m]."""
    drive = lambda t: 0.5 + 0.3 * jnp.sin(2 * jnp.pi * 5 * t)  # noqa: E731
    ts = np.linspace(0.0, last, round(last / 1e-3) + 1)
    run = fx.simulate(rubbing(bristle, law, drive), ts, fx.OnSamples())
    return np.asarray(run["mass"].s)[::200]


@pytest.mark.slow
def test_a_load_that_swings_lets_lugre_creep_on() -> None:
    s = creep(lugre(), STANDARD, 20.0)
    assert s[-1] == pytest.approx(492.5e-6, rel=1e-3)
    assert s[-1] - s[-2] == pytest.approx(4.860e-6, rel=1e-3)


def test_dahl_creeps_by_the_closed_form() -> None:
    law = fx.Coulomb(F_Coulomb=1.0, F_prop=100.0)  # slow: no swing of its own
    drive = lambda t: 0.5 - 0.3 * jnp.cos(2 * jnp.pi * t)  # noqa: E731
    machine = rubbing(fx.LuGre(SIGMA_0, 600.0), law, drive)
    ts = np.array([0.0, 4.0, 5.0])
    s = np.asarray(fx.simulate(machine, ts)["mass"].s)
    known = np.log((1 - 0.2**2) / (1 - 0.8**2)) / SIGMA_0
    assert s[2] - s[1] == pytest.approx(known, rel=2e-2)


@pytest.mark.slow
def test_elasto_plastic_does_not_creep() -> None:
    s = creep(fx.ElastoPlastic(SIGMA_0, SIGMA_0**0.5, z_ba=0.9, v_d=np.inf), STANDARD, 20.0)
    assert s[[10, 50, 100]] == pytest.approx(4.69865e-6, abs=2e-11)
    assert abs(s[-1] - s[10]) < 1e-9


@pytest.mark.parametrize("sigma_0", [1e3, pytest.param(1e4, marks=pytest.mark.slow)])
def test_error_controlled_steps_are_right_at_any_stiffness(sigma_0: float) -> None:
    machine, ts = p1(lugre(sigma_0))
    run = fx.simulate(machine, ts)
    assert float(run["mass"].s[-1]) == pytest.approx(P1_END[sigma_0], abs=2e-8)


@pytest.mark.slow
@pytest.mark.parametrize("sigma_0", [1e5, 1e6, 1e7, 1e8])
def test_and_take_no_more_of_them(sigma_0: float) -> None:
    machine, ts = p1(lugre(sigma_0))
    run = fx.simulate(machine, ts, energy=True)
    assert float(run["mass"].s[-1]) == pytest.approx(P1_END[sigma_0], abs=2e-9)
    assert int(run.steps) < 25_000  # Tsit5 takes 143000 at 1e6
    assert abs(float(run.energy.balance[-1])) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("sigma_0", [1e5, 1e3, 1e4, 1e6])
def test_on_samples_the_end_is_right_at_1_khz(sigma_0: float) -> None:
    machine, ts = p1(lugre(sigma_0), 1e-3)
    plain = fx.simulate(machine, ts, fx.OnSamples(tolerance=None))
    assert int(plain.steps) == 10_000
    for run in (plain, fx.simulate(machine, ts)):
        assert float(run["mass"].s[-1]) == pytest.approx(P1_END[sigma_0], abs=1e-6)


@pytest.mark.slow
def test_a_stiff_bristle_tends_to_the_friction_that_sticks() -> None:
    stuck = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Stribeck(**P1_LAW)),
        push=fx.Force("mass", lambda t: 2.0 * jnp.sin(2 * jnp.pi * t)),
    )
    end = float(fx.simulate(stuck, np.array([0.0, 10.0]))["mass"].s[-1])
    machine, ts = p1(lugre(1e8), 4e-4)
    with pytest.warns(UserWarning, match="Shorter steps change a state"):  # its deflection
        run = fx.simulate(machine, ts)
    assert float(run["mass"].s[-1]) == pytest.approx(end, abs=2e-6)
    assert end == pytest.approx(1.0542293e-3, abs=1e-9)


def balanced(machine: fx.Mechanism, ts: Any, engine: Any = None) -> fx.Trajectory:
    run = fx.simulate(machine, ts, engine, energy=True)
    scale = float(np.max(np.abs(run.energy.kinetic)) + np.max(np.abs(run.energy.elastic)))
    assert np.max(np.abs(run.energy.balance)) < 1e-6 * scale
    return run


@pytest.mark.slow
def test_a_turning_machine_with_a_bristle_a_gear_heat_and_friction_that_sticks() -> None:
    law = fx.Stribeck(F_prop=0.1, F_Coulomb=1.0, F_Stribeck=0.4, fexp=5.0)
    hot = fx.TemperatureDependent(law, beta=0.02, T_ref=300.0)
    machine = fx.Mechanism(
        motor=fx.Inertia(J=0.02),
        load=fx.Inertia(J=2.0),
        gear=fx.IdealGear("motor", "load", ratio=10.0),
        bearing=fx.BearingFriction("load", tau_pos=hot, bristle=fx.LuGre(2e3, 20.0)),
        seal=fx.BearingFriction("motor", tau_pos=fx.Coulomb(F_Coulomb=0.05)),
        drive=fx.Torque("motor", fx.Sine(amplitude=0.4, f=0.5)),
        oil=fx.HeatCapacitor(("bearing", "seal"), C=1.0, T=300.0),
        air=fx.ThermalConductor("oil", G=0.1, T_ambient=290.0),
    )
    run = balanced(machine, np.linspace(0.0, 6.0, 7))
    assert set(run.events.names) == {"seal"}
    assert int(run.events.count) > 3
    assert np.max(np.abs(run.energy.heat_balance)) < 1e-9
    bearing, energy = run["bearing"], run.energy
    assert np.asarray(bearing.z) * 2e3 == pytest.approx(np.asarray(bearing.tau_z))
    stored = np.asarray(bearing.tau_z) ** 2 / (2 * 2e3)
    assert np.asarray(energy.elastic) == pytest.approx(stored)
    assert float(energy.heated[-1]) == pytest.approx(float(energy.friction[-1]), rel=1e-9)
    assert not np.any(bearing.locked)
    assert bearing.fn is None


@pytest.mark.slow
def test_two_bristles_on_a_belt_that_turns_round() -> None:
    law = fx.Stribeck(F_prop=0.1, F_Coulomb=1.0, F_Stribeck=0.4, fexp=5.0)
    machine = fx.Mechanism(
        belt=fx.Mass(m=1.0),
        mass=fx.Mass(m=2.0),
        wall=fx.Fixed(),
        spring=fx.Spring("mass", "wall", c=20.0),
        turn=fx.Position("belt", lambda t: 0.3 * jnp.sin(2 * t)),
        below=fx.SupportFriction("mass", f_pos=law, support="belt", bristle=fx.LuGre(1e4, 50.0)),
        guide=fx.SupportFriction(
            "mass", f_pos=fx.Coulomb(F_Coulomb=0.2), bristle=fx.ElastoPlastic(1e4, 20.0)
        ),
    )
    run = balanced(machine, np.linspace(0.0, 5.0, 11))
    with pytest.warns(UserWarning, match="Shorter steps change a state"):  # a bristle's deflection
        fine = fx.simulate(machine, np.linspace(0.0, 5.0, 5001), fx.OnSamples())
    assert np.asarray(fine["mass"].s)[::500] == pytest.approx(np.asarray(run["mass"].s), abs=1e-5)
    assert run.system.states() == ("mass.s", "mass.v", "below.f_z", "guide.f_z")


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [0.3, 2.0])
def test_a_run_with_an_exponent_of_dahl_s_goes_its_way(exponent: float) -> None:
    bristle = fx.Dahl(SIGMA_0, exponent=exponent)
    ts, one = np.linspace(0.0, 1.0, 401), jnp.array(1.0)
    machine = moved(bristle, lambda t: 2e-5 * t, fx.Coulomb(F_Coulomb=1.0))
    f = np.asarray(fx.simulate(machine, ts, fx.OnSamples())["friction"].f)
    known = [float(bristle.moved(2e-5 * t * one, 0 * one, one, one)[0]) for t in ts[::50]]
    assert f[::50] == pytest.approx(known, abs=2e-6)


def test_the_law_backward_bends_the_bristle_backward() -> None:
    forward, backward = fx.Coulomb(F_Coulomb=1.0), fx.Coulomb(F_Coulomb=2.0, F_prop=0.5)
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=forward, f_neg=backward, bristle=fx.Dahl(1e5)),
        motion=fx.Position("mass", lambda t: 0.1 * jnp.sin(t)),
    )
    run = fx.simulate(machine, np.array([0.0, 1.0, np.pi]))
    assert np.asarray(run["friction"].f)[1:] == pytest.approx([1.0, -2.05], rel=1e-6)


@pytest.mark.slow
def test_a_bristle_starts_bent_and_is_linear_about_its_state() -> None:
    machine = rubbing(fx.LuGre(1e3, 5.0, z=5e-4), fx.Coulomb(F_Coulomb=1.0, F_prop=0.3))
    run = fx.simulate(machine, np.array([0.0, 1e-3]))
    assert float(run["friction"].f_z[0]) == pytest.approx(0.5)
    assert float(run["mass"].a[0]) == pytest.approx(-0.5)
    here = fx.linearize(machine, 0.0, run.ys[0], run.modes[0])
    assert here.states == ("mass.s", "mass.v", "friction.f_z")
    # at rest, half bent: the bristle takes half of the velocity forward
    expected = [[0, 1, 0], [0, -0.3 - 5.0 * 0.5, -1], [0, 1e3 * 0.5, 0]]
    assert np.asarray(here.A) == pytest.approx(np.array(expected))


def test_a_ring_down_has_the_frequency_and_the_damping_of_the_linear_form() -> None:
    machine = rubbing(lugre(), mass=fx.Mass(m=1.0, v=1e-6))
    ts = np.linspace(0.0, 0.06, 601)
    s = np.asarray(fx.simulate(machine, ts)["mass"].s)
    zeta = (SIGMA_0**0.5 + 0.4) / (2 * SIGMA_0**0.5)
    w = SIGMA_0**0.5
    damped = w * np.sqrt(1 - zeta**2)
    assert s == pytest.approx(
        1e-6 / damped * np.exp(-zeta * w * ts) * np.sin(damped * ts), abs=4e-13
    )


def test_steps_of_a_machine_without_a_bristle_are_those_of_before() -> None:
    """Nothing of the linearly implicit steps is in its program."""

    def text(bristle: Any) -> str:
        ts = jnp.linspace(0.0, 1.0, 11)
        drive = fx.Sampled(ts, jnp.sin(ts))
        run: Callable = lambda m: fx.simulate(m, ts, fx.OnSamples()).ys  # noqa: E731
        return str(jax.make_jaxpr(run)(rubbing(bristle, drive=drive)))

    assert "rosenbrock2" not in text(None)
    assert F_S == 1.5


def swung(load: Any, seconds: float) -> Any:
    """Where a joint on a spring ends, its load a constant and a swing of that amplitude."""
    joint = fx.Mechanism(
        ground=fx.Fixed(),
        rotor=fx.Inertia(J=0.02),
        spring=fx.RotationalSpring("ground", "rotor", c=2.0),
        bearing=fx.BearingFriction(
            "rotor", tau_pos=fx.Coulomb(F_Coulomb=0.6, F_prop=0.1), bristle=fx.LuGre(300.0, 1.5)
        ),
        load=fx.Torque("rotor", fx.Sine(amplitude=load, f=1.5, offset=0.5)),
    )
    ts = np.linspace(0.0, seconds, round(10 * seconds) + 1)
    return fx.simulate(joint, ts, fx.Adaptive(rtol=1e-8, atol=1e-11))["rotor"].phi[-1]


@pytest.mark.slow
def test_derivatives_under_error_control_last_through_every_turn() -> None:
    # Where a bristle turns, at a kink, steps are refused and tried again; how often hangs on the
    # last digit. The second pass, of which derivatives are taken, was given too few for one load in
    # four, and ended as NaN forward and as a finite wrong number in reverse.
    end = functools.partial(swung, seconds=1.0)
    both = jax.jit(lambda load: jax.jvp(end, (load,), (jnp.ones_like(load),)))
    for load in np.linspace(1.6, 1.611, 12):
        slope = (float(both(load + 1e-4)[0]) - float(both(load - 1e-4)[0])) / 2e-4
        assert float(both(load)[1]) == pytest.approx(slope, rel=1e-4)


@pytest.mark.slow
def test_derivatives_of_a_second_pass_that_is_cut_short_are_nan_in_reverse_mode_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solve = phase._solve

    def hurried(*arguments: Any, **options: Any) -> Any:
        if "adjoint" in options and "event" not in options:
            options["max_steps"] = 70
        return solve(*arguments, **options)

    monkeypatch.setattr(phase, "_solve", hurried)
    slope = jax.jit(jax.grad(swung), static_argnums=1)
    slopes = np.array([float(slope(load, 3.0)) for load in np.linspace(1.6, 1.61, 6)])
    assert np.isnan(slopes).any()  # such as 0.57 and 0.93 before
    assert slopes[~np.isnan(slopes)] == pytest.approx(1.0168, rel=0.01)
