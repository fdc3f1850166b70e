"""Gaps and backlash: closed forms, the formulas of the library integrated elsewhere, energy,
derivatives, both engines.
"""

from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

import frictax as fx
from checks import assert_derivatives_agree, flat, outcome, rebuilt
from machines import TIGHT


def ball(c: float = 200.0, d: float = 4.0, n: float = 1.0, **friction: Any) -> fx.Mechanism:
    """A ball of 0.5 kg that falls on an elastic floor from 0.3 m."""
    return fx.Mechanism(
        floor=fx.Fixed(),
        ball=fx.Mass(m=0.5, s=0.3),
        ground=fx.ElastoGap("floor", "ball", c=c, d=d, n=n),
        weight=fx.Force("ball", -0.5 * 9.81),
        **friction,
    )


def rattle(d: float = 0.3) -> fx.Mechanism:
    """A shaft with backlash, driven to and fro, on a load that friction holds now and then."""
    return fx.Mechanism(
        motor=fx.Inertia(J=0.1),
        load=fx.Inertia(J=0.3),
        shaft=fx.ElastoBacklash("motor", "load", c=300.0, d=d, backlash=0.05),
        bearing=fx.BearingFriction("load", tau_pos=fx.Coulomb(F_Coulomb=0.4), peak=1.3),
        torque=fx.Torque("motor", fx.Sine(amplitude=1.0, f=1.0)),
    )


def library_force(s_rel: float, v_rel: float, c: float, d: float) -> float:
    """ElastoGap of the Modelica Standard Library, n = 1, s_rel0 = 0."""
    if s_rel >= 0:
        return 0.0
    f_c = -c * abs(s_rel)
    return f_c + min(max(d * v_rel, f_c), -f_c)


@pytest.mark.slow
def test_a_damped_bounce_is_that_of_the_librarys_formula() -> None:
    c, d, end = 200.0, 4.0, 0.5
    rates = lambda t, y: [y[1], -9.81 - library_force(y[0], y[1], c, d) / 0.5]  # noqa: E731
    y, t = np.array([0.3, 0.0]), 0.0
    truth = solve_ivp(rates, [t, end], y, method="DOP853", rtol=1e-12, atol=1e-13, max_step=1e-4).y[
        :, -1
    ]
    run = fx.simulate(ball(c, d), jnp.linspace(0.0, end, 501), TIGHT)
    assert np.max(np.abs(np.asarray(run.ys[-1]) - truth)) < 1e-7
    f = np.asarray(run["ground"].f)
    assert np.all(f <= 1e-12)
    assert np.min(f) < -10.0


@pytest.mark.slow
def test_two_spheres_part_after_the_time_of_hertz() -> None:
    c, m, v = 1e4, 0.5, 2.0
    machine = fx.Mechanism(
        wall=fx.Fixed(),
        ball=fx.Mass(m=m, s=0.0, v=-v),
        ground=fx.ElastoGap("wall", "ball", c=c, d=0.0, n=1.5),
    )
    deepest = (5 * m * v**2 / (4 * c)) ** 0.4
    # 1/sqrt(1 - y^2.5) with y = 1 - z^2, whose integrand is smooth
    time = (
        2
        * deepest
        / v
        * quad(
            lambda z: 2 * z / np.sqrt(1 - (1 - z * z) ** 2.5) if z > 0 else 2 / np.sqrt(2.5),
            0.0,
            1.0,
            epsabs=1e-13,
        )[0]
    )
    run = fx.simulate(machine, jnp.array([0.0, time / 2, time + 0.1]), TIGHT)
    assert float(run["ball"].s[1]) == pytest.approx(-deepest, abs=1e-9)
    assert float(run["ball"].v[2]) == pytest.approx(v, abs=1e-8)
    assert float(run["ball"].s[2]) == pytest.approx(v * 0.1, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine",
    [fx.OnSamples(solver=diffrax.Tsit5(), substeps=4), TIGHT],
    ids=["on samples", "adaptive"],
)
def test_an_undamped_ball_bounces_on_and_on_with_the_period_and_the_height_of_its_closed_form(
    engine: Any,
) -> None:
    """At every whole period it is back where it fell from, at every half at the bottom; for n = 1.5
    and 2 the energy tells.
    """
    m, height, g, samples = 0.5, 0.3, 9.81, 401

    def run(c: Any, d: Any, n: Any, period: Any) -> tuple[Any, ...]:
        run = fx.simulate(ball(c, d, n), period * jnp.linspace(0.0, 10.0, samples), engine)
        return run.result == fx.Result.successful, run["ball"].s, run["ball"].v

    c = jnp.array([500.0, 100.0, 2000.0, 500.0, 500.0])
    n, d = jnp.array([1.0, 1.0, 1.0, 1.5, 2.0]), jnp.zeros(5)
    sag, speed = m * g / c, jnp.sqrt(2 * g * height)
    # Touching: s = sag*(cos(w*t) - 1) - speed/w*sin(w*t), until it is 0 again.
    w = jnp.sqrt(c / m)
    period = 2 * speed / g + (2 * jnp.pi - 2 * jnp.arctan2(speed / w, sag)) / w
    bottom = -sag - jnp.hypot(sag, speed / w)
    ok, s, v = jax.jit(jax.vmap(run))(c, d, n, jnp.where(n == 1, period, 0.6))
    assert jnp.all(ok)
    assert jnp.max(jnp.abs(s[:3, ::40] - height)) < 1e-6
    assert jnp.max(jnp.abs(s[:3, 20::40] - bottom[:3, None])) < 1e-6
    energy = (
        0.5 * m * v**2
        + m * g * s
        + (c / (n + 1))[:, None] * jnp.maximum(-s, 0.0) ** (n + 1)[:, None]
    )
    # The slope of x^1.5 at 0 takes the steps on samples an order.
    assert jnp.all(
        jnp.max(jnp.abs(energy - m * g * height), axis=1) < jnp.where(n == 1.5, 1e-4, 1e-5)
    )


@pytest.mark.slow
def test_without_a_gap_to_cross_backlash_of_0_is_a_spring() -> None:
    def twisted(shaft: Any) -> fx.Mechanism:
        return fx.Mechanism(a=fx.Inertia(J=0.2, w=3.0), b=fx.Inertia(J=0.5), shaft=shaft)

    ts = jnp.linspace(0.0, 1.0, 11)
    loose = fx.simulate(
        twisted(fx.ElastoBacklash("a", "b", c=80.0, d=0.0, backlash=0.0)), ts, TIGHT
    )
    firm = fx.simulate(twisted(fx.RotationalSpring("a", "b", c=80.0)), ts, TIGHT)
    assert jnp.max(jnp.abs(loose.ys - firm.ys)) < 1e-9


@pytest.mark.slow
def test_the_shaft_gives_no_torque_inside_the_backlash_and_the_balance_of_energy_closes() -> None:
    run = fx.simulate(
        rattle(), jnp.linspace(0.0, 3.0, 3001), fx.Adaptive(rtol=1e-11, atol=1e-13), energy=True
    )
    twist, tau = np.asarray(run["shaft"].phi_rel), np.asarray(run["shaft"].tau)
    inside = np.abs(twist) < 0.025 - 1e-9
    assert 0.1 < np.mean(inside) < 0.9
    assert np.all(tau[inside] == 0.0)
    assert np.all(tau[~inside] * twist[~inside] >= 0.0)
    assert jnp.max(jnp.abs(run.energy.balance)) < 1e-9
    assert int(run.events.count) >= 6  # the bearing's


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ball", "backlash"])
def test_derivatives_equal_central_differences(name: str) -> None:
    if name == "ball":
        guide = fx.SupportFriction("ball", f_pos=fx.Coulomb(F_Coulomb=0.5))
        machine, ts = ball(c=2e4, n=2.0, guide=guide), jnp.array([0.0, 0.35, 0.8])
        paths = [
            "ball.m",
            "ball.s",
            "ground.c",
            "ground.d",
            "ground.s_rel0",
            "ground.n",
            "guide.f_pos.F_Coulomb",
        ]
    else:
        machine, ts = rattle(), jnp.array([0.0, 0.7, 1.5])
        paths = [
            "motor.J",
            "load.J",
            "shaft.c",
            "shaft.d",
            "shaft.backlash",
            "shaft.phi_rel0",
            "bearing.peak",
            "torque.tau.amplitude",
        ]
    count = int(fx.simulate(machine, ts, TIGHT).events.count)
    assert count >= 1
    f = lambda x: outcome(rebuilt(machine, paths, x), ts, TIGHT, count)  # noqa: E731
    # Smaller, and the rounding of a stiff contact shows in the differences; larger, and their own
    # error does.
    assert_derivatives_agree(f, flat(machine, paths), step=6e-4, reverse=name == "ball")


@pytest.mark.slow
@pytest.mark.parametrize(("build", "end"), [(ball, 1.5), (rattle, 2.0)])
def test_a_walk_on_samples_is_the_adaptive_one(build: Any, end: float) -> None:
    ts = jnp.linspace(0.0, end, 8001)
    fine, coarse = (
        fx.simulate(build(), ts[jnp.array([0, -1])], TIGHT),
        fx.simulate(build(), ts, fx.OnSamples()),
    )
    assert coarse.result == fx.Result.successful
    assert int(coarse.events.count) == int(fine.events.count)
    assert jnp.max(jnp.abs(coarse.ys[-1] - fine.ys[-1])) < 1e-5


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        (fx.ElastoGap, {"c": -1.0, "d": 0.0}),
        (fx.ElastoGap, {"c": 1.0, "d": 0.0, "n": 0.5}),
        (fx.ElastoBacklash, {"c": 1.0, "d": 0.0, "backlash": -1.0}),
    ],
)
def test_values_outside_their_domain_are_named(part: Any, wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=rf"`{part.__name__}\.(c|n|backlash)`"):
        part("a", "b", **wrong)
