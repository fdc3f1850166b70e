"""A block with dry friction: closed forms, symmetry, two laws, the curve parameter."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from machines import REFERENCE

STUCK, FORWARD, BACKWARD = int(fx.Mode.STUCK), int(fx.Mode.FORWARD), int(fx.Mode.BACKWARD)
TIMES = jnp.linspace(0.0, 4.0, 9)


def block(
    m: Any = 1.0,
    v: Any = 0.0,
    F: Any = 2.0,
    F_neg: Any = 2.0,
    peak: Any = 1.0,
    load: Any = 0.0,
    rate: Any = 0.0,
) -> fx.Mechanism:
    """A block under the force load + rate*t."""
    return fx.Mechanism(
        mass=fx.Mass(m=m, v=v),
        friction=fx.SupportFriction(
            "mass", f_pos=fx.Coulomb(F_Coulomb=F), f_neg=fx.Coulomb(F_Coulomb=F_neg), peak=peak
        ),
        drive=fx.Force("mass", fx.Ramp(offset=load, height=10 * rate, duration=10.0)),
    )


def simulate(machine: fx.Mechanism) -> fx.Trajectory:
    return fx.simulate(machine, TIMES, REFERENCE)


def changes(run: fx.Trajectory) -> list[tuple[float, int]]:
    return [
        (float(run.events.time[k]), int(run.events.mode_after[k]))
        for k in range(int(run.events.count))
    ]


@pytest.mark.parametrize(("m", "v", "F"), [(1.0, 1.0, 2.0), (2.5, 3.0, 4.0), (0.1, 0.02, 5.0)])
def test_a_block_coasts_to_rest_in_v0_squared_over_2a(m: float, v: float, F: float) -> None:
    run, a = simulate(block(m=m, v=v, F=F)), F / m
    assert changes(run) == [(pytest.approx(v / a, rel=1e-12), STUCK)]
    assert float(run["mass"].s[-1]) == pytest.approx(v**2 / (2 * a), rel=1e-11)
    assert float(run["mass"].v[-1]) == 0.0


@pytest.mark.parametrize(("peak", "F", "rate"), [(1.0, 2.0, 1.0), (1.1, 3.0, 2.0), (1.5, 0.5, 0.3)])
def test_breakaway_time_of_a_ramp_is_f0_max_over_its_rate(
    peak: float, F: float, rate: float
) -> None:
    run = simulate(block(F=F, peak=peak, rate=rate))
    assert changes(run) == [(pytest.approx(peak * F / rate, rel=1e-12), FORWARD)]


@pytest.mark.parametrize(("peak", "F_neg"), [(1.0, 1.0), (1.2, 3.0)])
def test_breakaway_backward_asks_the_law_of_that_direction(peak: float, F_neg: float) -> None:
    run = simulate(block(F=2.0, F_neg=F_neg, peak=peak, rate=-1.0))
    assert changes(run) == [(pytest.approx(peak * F_neg, rel=1e-12), BACKWARD)]
    # f0 and f0_max are those of the direction that is about to slide.
    assert float(run["friction"].f0_max[1]) == pytest.approx(peak * F_neg)
    assert float(run["friction"].f[-1]) == pytest.approx(-F_neg)


def test_a_block_stops_sooner_in_the_direction_of_more_friction() -> None:
    forward, backward = (simulate(block(v=v, F=1.0, F_neg=4.0)) for v in (1.0, -1.0))
    assert float(forward["mass"].s[-1]) == pytest.approx(0.5, rel=1e-11)
    assert float(backward["mass"].s[-1]) == pytest.approx(-0.125, rel=1e-11)


def test_a_load_below_f0_max_holds_a_block_at_rest_and_one_above_f0_keeps_a_moving_one_moving():
    at_rest, moving = (simulate(block(v=v, F=2.0, peak=1.5, load=2.5)) for v in (0.0, 1e-3))
    assert changes(at_rest) == []
    assert jnp.all(at_rest["mass"].s == 0.0)
    assert jnp.all(at_rest["friction"].sa == 2.5)
    assert changes(moving) == []
    assert float(moving["mass"].v[-1]) == pytest.approx(1e-3 + 0.5 * 4.0, rel=1e-9)


def test_a_block_pushed_back_turns_round_without_a_stop_when_the_load_exceeds_f0_max() -> None:
    run = simulate(block(v=1.0, F=1.0, F_neg=1.0, peak=1.2, load=-3.0))
    assert changes(run) == [(pytest.approx(0.25, rel=1e-12), BACKWARD)]
    assert float(run["mass"].v[-1]) == pytest.approx(-2.0 * 3.75, rel=1e-10)


def test_a_load_of_exactly_f0_max_holds() -> None:
    assert changes(simulate(block(F=2.0, peak=1.5, load=3.0))) == []


@pytest.mark.parametrize(("peak", "F_neg"), [(1.0, 2.0), (1.4, 1.5)])
def test_sa_continues_the_holding_force_by_the_acceleration(peak: float, F_neg: float) -> None:
    run = simulate(block(F=2.0, F_neg=F_neg, peak=peak, v=1.5, load=-0.5, rate=-0.8))
    f = run["friction"]
    assert {STUCK, FORWARD, BACKWARD} == set(np.asarray(f.mode).tolist())
    assert jnp.allclose(f.a, jnp.where(f.locked, 0.0, f.sa - f.mode * f.f0_max), atol=1e-12)
    assert jnp.allclose(f.f, jnp.where(f.locked, f.sa, f.mode * f.f0), atol=1e-12)
    assert jnp.array_equal(f.locked, f.mode == STUCK)
    assert jnp.allclose(f.lossPower, f.f * f.v_relfric)
    assert jnp.all(f.lossPower >= 0)
    assert jnp.array_equal(f.a_relfric, f.a)
    assert jnp.allclose(f.f0_max, peak * f.f0)
    assert not jnp.any(f.free)


# -- on a spring
# --------------------------------------------------------------------------------------------------


def oscillator(
    F: Any = 0.7, F_neg: Any = 0.7, peak: Any = 1.0, s: Any = 1.0, v: Any = 0.0, load: Any = 0.0
) -> fx.Mechanism:
    def stribeck(most):
        return fx.Stribeck(F_prop=0.0, F_Coulomb=most, F_Stribeck=0.0, fexp=1.0)

    return fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=1.0, s=s, v=v),
        spring=fx.Spring("wall", "mass", c=10.0),
        friction=fx.SupportFriction("mass", f_pos=stribeck(F), f_neg=stribeck(F_neg), peak=peak),
        drive=fx.Force("mass", fx.Sine(amplitude=load, f=0.4)),
    )


def test_a_mass_on_a_spring_loses_2F_over_c_each_half_swing_and_stops_inside_the_dead_band():
    F, c, m = 0.7, 10.0, 1.0
    half = np.pi * np.sqrt(m / c)
    run = fx.simulate(oscillator(F), jnp.asarray([*(half * np.arange(8)), 10.0]), REFERENCE)
    turning = (1.0 - 2 * F / c * np.arange(8)) * (-1.0) ** np.arange(8)
    assert np.allclose(run["mass"].s[:8], turning, atol=1e-9)
    modes = [-1, 1, -1, 1, -1, 1, -1, 0]
    assert changes(run) == [
        (pytest.approx(half * k, abs=1e-9), mode) for k, mode in enumerate(modes)
    ]
    # 0.02 m is left, less than the F/c = 0.07 m that friction holds.
    assert float(run["mass"].s[-1]) == pytest.approx(-0.02, abs=1e-9)
    assert abs(float(run["friction"].sa[-1])) < F


def mirrored(run: fx.Trajectory) -> tuple[Any, ...]:
    f = run["friction"]
    return run["mass"].s, run["mass"].v, f.f, f.sa, f.a, f.mode


def test_a_mirrored_machine_moves_in_the_mirror() -> None:
    ts = jnp.linspace(0.0, 6.0, 61)
    right = fx.simulate(
        oscillator(F=0.7, F_neg=1.3, peak=1.2, s=0.4, v=1.0, load=6.0), ts, REFERENCE
    )
    left = fx.simulate(
        oscillator(F=1.3, F_neg=0.7, peak=1.2, s=-0.4, v=-1.0, load=-6.0), ts, REFERENCE
    )
    assert int(right.events.count) == int(left.events.count) >= 4
    assert {STUCK, FORWARD, BACKWARD} == set(np.asarray(right["friction"].mode).tolist())
    assert jnp.allclose(right.events.time, left.events.time, atol=1e-12)
    for a, b in zip(mirrored(right), mirrored(left), strict=True):
        assert jnp.allclose(a, -b, atol=1e-10)
    for name in ("f0", "f0_max", "lossPower", "locked"):
        assert jnp.allclose(
            getattr(right["friction"], name), getattr(left["friction"], name), atol=1e-10
        )


# -- tables and supports
# ----------------------------------------------------------------------------------------------


def coasting(f_pos: Any, v: float, support: str | None = None) -> fx.Mechanism:
    return fx.Mechanism(
        housing=fx.Fixed(s0=0.3),
        mass=fx.Mass(m=1.0, s=1.0, v=v, L=0.4),
        friction=fx.SupportFriction("mass", f_pos=f_pos, support=support),
    )


@pytest.mark.slow
def test_coasting_through_the_corner_of_a_table_has_its_closed_form() -> None:
    run = fx.simulate(
        coasting([[0, 2], [1, 1], [2, 1]], v=2.0), jnp.array([0.0, 0.5, 1.0, 3.0]), REFERENCE
    )
    # One second at 1 m/s2 down to the corner; then 2 - v grows as exp(t - 1) until v = 0.
    assert changes(run) == [(pytest.approx(1 + np.log(2), rel=1e-11), STUCK)]
    assert float(run["mass"].v[2]) == pytest.approx(1.0, abs=1e-9)
    assert float(run["mass"].s[-1]) == pytest.approx(1.0 + 1.5 + 2 * np.log(2) - 1, rel=1e-10)


@pytest.mark.slow
def test_friction_that_is_0_at_rest_holds_nothing() -> None:
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=[[0, 0], [1, 2], [2, 5], [3, 8]], peak=1.1),
        drive=fx.Force("mass", 1e-3),
    )
    run = fx.simulate(machine, jnp.array([0.0, 1.0]), REFERENCE)
    assert float(run["mass"].v[-1]) == pytest.approx(1e-3 * (1 - np.exp(-2)) / 2, rel=1e-9)


@pytest.mark.slow
def test_the_support_is_where_s_is_measured_from() -> None:
    ts = jnp.array([0.0, 0.5])
    grounded, supported = (
        fx.simulate(coasting([[0, 2.0]], 1.0, support), ts) for support in (None, "housing")
    )
    assert jnp.allclose(grounded["friction"].s, grounded["mass"].s + 0.2)  # at its flange_b
    assert jnp.allclose(supported["friction"].s, grounded["friction"].s - 0.3)
    assert jnp.array_equal(supported["mass"].s, grounded["mass"].s)


@pytest.mark.slow
def test_many_blocks_in_one_vmap_equal_a_loop() -> None:
    v = jnp.array([0.5, 1.0, 2.0])
    end = jax.jit(lambda v: fx.simulate(block(v=v), jnp.array([0.0, 4.0]), REFERENCE)["mass"].s[-1])
    assert jnp.allclose(jax.vmap(end)(v), v**2 / 4, rtol=1e-10)
