"""Brakes and clutches with a bristle, against guides of the same friction, and by balances."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from diffrax import ForwardMode

import frictax as fx
from checks import value_and_jacobian
from frictax.export.modelica_machine import machine_text
from frictax.fitting.problem.setup import driven, simulate_variables
from frictax.fitting.result.units import unit_of

MU = fx.Stribeck(F_prop=0.2, F_Coulomb=0.5, F_Stribeck=0.2, fexp=20.0, exponent=2.0)
TIGHT = fx.Adaptive(rtol=1e-9, atol=1e-11)
FORWARD = fx.OnSamples(adjoint=ForwardMode())  # as in fits: compiles three times as fast
PRESSES = {
    "swings through 0": fx.Sine(amplitude=1.0, f=0.7, offset=0.4),
    # These two share programs.
    "jumps": fx.Trapezoid(width=0.3, period=0.5, offset=0.2),
    "lets go": fx.Trapezoid(rising=0.1, width=0.2, falling=0.1, period=0.6),
    "by the motion": fx.MotionDependent(lambda t, s, v: 1.0 + 4.0 * s + 0.3 * v),
    "from either side": fx.MotionDependent(lambda t, s, v: 1.0 - 30.0 * s, either_side=True),
}


def braked(press: Any = 1.0, fn: Any = 2.0, bristle: Any = None, **law: Any) -> fx.Mechanism:
    """A mass under a force, on a rail that something presses it on."""
    mu = fx.parameters.replace(MU, law) if law else MU
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        rail=fx.Brake(
            "mass",
            mu_pos=mu,
            fn_max=fn,
            f_normalized=press,
            bristle=fx.LuGre(sigma_0=2e3, sigma_1=20.0) if bristle is None else bristle,
        ),
        drive=fx.Force("mass", fx.Sine(amplitude=2.0, f=1.0)),
    )


@pytest.mark.slow
def test_pressed_on_evenly_it_is_a_guide_with_all_of_that_times_the_normal_force() -> None:
    law = fx.Stribeck(F_prop=0.4, F_Coulomb=1.0, F_Stribeck=0.4, fexp=20.0, exponent=2.0)
    guide = fx.SupportFriction("mass", f_pos=law, bristle=fx.LuGre(sigma_0=4e3, sigma_1=40.0))
    machine = fx.Mechanism(**{**dict(braked().named_parts()), "rail": guide})
    ts = jnp.linspace(0.0, 1.0, 501)
    pressed, always = fx.simulate(braked(), ts), fx.simulate(machine, ts)
    np.testing.assert_allclose(pressed["mass"].s, always["mass"].s, atol=1e-9)
    for name in ("f", "f_z", "f0", "lossPower"):
        there, here = getattr(pressed["rail"], name), getattr(always["rail"], name)
        np.testing.assert_allclose(there, here, atol=1e-6)
    np.testing.assert_allclose(pressed["rail"].z, always["rail"].z, atol=1e-10)
    np.testing.assert_allclose(pressed["rail"].fn, 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PRESSES))
def test_what_presses_does_work_on_bristles_and_the_balance_closes(name: str) -> None:
    ts = np.linspace(0.0, 1.5, 301)
    run = fx.simulate(braked(PRESSES[name]), ts, TIGHT, energy=True)
    assert np.max(np.abs(run.energy.balance)) < 1e-7
    assert np.min(np.diff(np.asarray(run.energy.friction))) > -1e-9
    sampled = fx.simulate(braked(PRESSES[name]), np.linspace(0.0, 1.5, 6001), fx.OnSamples())
    s, there = np.asarray(run["mass"].s), np.asarray(sampled["mass"].s)[::20]
    np.testing.assert_allclose(there, s, atol=2e-5 * np.max(np.abs(s)))


def test_on_a_given_motion_it_unbends_while_it_is_let_go() -> None:
    t = np.linspace(0.0, 2.1, 211)
    press = np.where((t > 1.0 - 1e-9) & (t < 2.0 - 1e-9), 0.0, 1.0)
    # sigma_0*v/mu is 2 1/s, and the way begins anew where it is pressed on again
    known = 5.0 * press * -np.expm1(-2.0 * np.where(t < 1.5, t, t - 2.0))
    brake = fx.Brake(
        "mass", mu_pos=[[0, 0.5]], fn_max=10.0, f_normalized=1.0, bristle=fx.LuGre(sigma_0=1e3)
    )
    given = fx.Mechanism(mass=fx.Mass(m=1.0), brake=brake, drive=fx.Position("mass", 0.0))
    inputs = {"drive": jnp.asarray(1e-3 * t), "brake": jnp.asarray(press)}
    system = driven(given, jnp.asarray(t), inputs, True)
    (f,) = simulate_variables(system, jnp.asarray(t), ("brake.f",), fx.OnSamples(), {})[0].T
    np.testing.assert_allclose(f, known, atol=1e-9)
    pushed = fx.Mechanism(mass=fx.Mass(m=1.0), brake=brake, drive=fx.Force("mass", 0.0))
    record = fx.Record(t, {"drive": known, "brake": press}, {"mass.s": 1e-3 * t}, hold=True)
    aim = fx.InverseDynamics(at_samples=True, cutoff=10.0)
    found = fx.fit(pushed, record, free=["mass.m", "brake.bristle.sigma_0"], objective=aim)
    assert float(found.values["brake.bristle.sigma_0"]) == pytest.approx(1e3, rel=1e-6)


@pytest.mark.slow
def test_let_go_it_is_free_and_unbends_and_pressed_on_again_it_begins_unbent() -> None:
    # As many samples as in the test before share its program.
    ts = [0.0, 0.05, 0.35, 0.41, 0.5, 0.6 + 1e-9, 0.65, *np.linspace(0.7, 1.5, 294)]
    run = fx.simulate(braked(PRESSES["lets go"]), np.array(ts), TIGHT, energy=True)["rail"]
    free = np.array([True, False, False, True, True, False, False])
    free[0] = bool(run.free[0])  # at the very start of the ramp either will do
    np.testing.assert_array_equal(run.free[:7], free)
    assert np.all(np.asarray(run.z)[3:5] == 0.0)
    assert np.all(np.asarray(run.f)[3:5] == 0.0)
    assert abs(float(run.z[5])) < 1e-8
    assert float(abs(run.z[2])) > 1e-5
    assert np.all(np.asarray(run.mode)[3:5] == fx.Mode.FREE)


def moved(x: jax.Array, press: Any, engine: Any) -> jax.Array:
    """Where the braked mass is at two samples."""
    bristle = fx.LuGre(sigma_0=x[1], sigma_1=x[2])
    machine = braked(press, x[0], bristle, F_Coulomb=x[3], F_Stribeck=x[4])
    return fx.simulate(machine, np.linspace(0.0, 1.5, 601), engine)["mass"].s[np.array([250, 600])]


with_forward = eqx.filter_jit(lambda x, *how: value_and_jacobian(lambda x: moved(x, *how))(x))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["by the motion", "swings through 0", "lets go", "jumps"])
def test_derivatives_are_those_of_differences(name: str) -> None:
    engine = TIGHT if name in ("lets go", "jumps") else FORWARD
    at, how = jnp.array([2.0, 2e3, 20.0, 0.5, 0.2]), (PRESSES[name], engine)
    forward = with_forward(at, *how)[1]
    if name == "by the motion":
        backward = jax.jit(jax.jacrev(lambda x: moved(x, how[0], fx.OnSamples())))(at)
        np.testing.assert_allclose(backward, forward, rtol=2e-6, atol=1e-12)
    for i in range(at.size):
        # A run on samples jumps where a step is divided into another number of parts. Runs that
        # differ by 1e-6 of the normal force have 4102 and 4136 steps where the force "swings
        # through 0". Differences are smaller than that.
        h = (1e-4 if engine is TIGHT else 1e-7) * float(at[i])
        sides = [with_forward(at.at[i].add(s * h), *how)[0] for s in (-2, -1, 1, 2)]
        slope = (sides[0] - 8 * sides[1] + 8 * sides[2] - sides[3]) / (12 * h)
        size = float(jnp.max(jnp.abs(forward[:, i])))
        np.testing.assert_allclose(forward[:, i], slope, atol=1e-4 * size)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Shorter steps change")  # by 1.1e-4 of the range of an element
@pytest.mark.parametrize("elements", [False, True], ids=["LuGre", "MaxwellSlip"])
def test_a_clutch_locks_its_wheels_as_a_stiff_one_does(elements: bool) -> None:
    def train(bristle: Any) -> fx.Mechanism:
        return fx.Mechanism(
            a=fx.Inertia(J=1.0, w=10.0),
            b=fx.Inertia(J=2.0),
            clutch=fx.Clutch(
                "a",
                "b",
                mu_pos=[[0, 0.5]],
                fn_max=20.0,
                f_normalized=fx.Step(height=1.0, startTime=0.1),
                bristle=bristle,
            ),
        )

    def bristle(sigma_0: float) -> Any:
        if elements:
            return fx.MaxwellSlip(k=[0.6 * sigma_0, 0.4 * sigma_0])
        return fx.LuGre(sigma_0=sigma_0, sigma_1=2 * sigma_0**0.5 / 20)

    ts = jnp.linspace(0.0, 1.5, 3001)
    stiff = fx.simulate(train(None), ts, fx.OnSamples())
    w, off = np.asarray(stiff["b"].w), []
    assert w[-1] == pytest.approx(10 / 3)
    for sigma_0 in (10.0, 100.0, 1000.0):
        run = fx.simulate(train(bristle(sigma_0)), ts, fx.OnSamples(), energy=True)
        assert np.max(np.abs(run.energy.balance)) < 1e-3 * 50.0  # of what a brings
        # while it slips: what holds swings
        off.append(float(np.max(np.abs(np.asarray(run["b"].w) - w)[400:1200])))
        total = np.asarray(run["a"].w) + 2 * np.asarray(run["b"].w)
        np.testing.assert_allclose(total, 10.0, atol=1e-9)
    # the impulse of sigma_1 goes as one over the root of sigma_0
    assert off[1] < 0.4 * off[0]
    assert off[2] < 0.15 * off[0]


def test_its_parameters_have_the_units_of_coefficients_and_no_export_leaves_it_out() -> None:
    clutch = fx.Clutch("a", "b", bristle=fx.LuGre(sigma_0=20.0, sigma_1=1.0))
    train = fx.Mechanism(a=fx.Inertia(J=1.0), b=fx.Inertia(J=1.0), clutch=clutch)
    for machine, name, units in (
        (braked(), "rail", ["1/m", "s/m"]),
        (train, "clutch", ["1/rad", "s/rad"]),
    ):
        unit = unit_of({}, machine)
        paths = [f"{name}.bristle.sigma_0", f"{name}.bristle.sigma_1"]
        assert [unit(p) for p in fx.parameters.select(machine, paths)] == units
        with pytest.raises(ValueError, match="that a normal force presses on"):
            machine_text(machine)
    with pytest.warns(UserWarning, match="gives energy from"):
        fx.Brake("mass", mu_pos=MU, bristle=fx.LuGre(sigma_0=1e5, sigma_1=1e3, v_d=jnp.inf))


def test_what_may_have_none_says_so() -> None:
    with pytest.raises(ValueError, match="`Brake` and `Clutch` have one"):
        fx.OneWayClutch("a", "b", bristle=fx.Dahl(sigma_0=1.0))  # pyright: ignore[reportCallIssue]
    with pytest.raises(ValueError, match="`Brake.peak` must be 1 with a bristle"):
        fx.Brake("mass", peak=1.2, bristle=fx.Dahl(sigma_0=1.0))
