"""Records of any grid: coarse, uneven, finer or coarser than their drive, a rounding beside it,
with switches between samples.
"""

import math
from typing import Any

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import assert_derivatives_agree, flat, rebuilt
from machines import stick_slip
from sampled import PULL, TS, block

EXACT = fx.Adaptive(rtol=1e-10, atol=1e-12, max_events=900)
FINE = fx.OnSamples(solver=diffrax.Tsit5())


def agree(
    machine: fx.Mechanism, ts: Any, engine: fx.OnSamples = FINE, within: float = 1e-7
) -> fx.Trajectory:
    exact, run = fx.simulate(machine, ts, EXACT), fx.simulate(machine, ts, engine)
    n = int(exact.events.count)
    assert int(run.events.count) == n
    assert jnp.array_equal(run.events.mode_after[:n], exact.events.mode_after[:n])
    assert jnp.max(jnp.abs(run.events.time[:n] - exact.events.time[:n])) <= within
    assert jnp.max(jnp.abs(run.ys - exact.ys)) <= within
    return run


@pytest.mark.slow
def test_several_mode_changes_within_one_sample_are_all_found() -> None:
    # Samples 0.3 s apart, in which the block stops, stays and goes back.
    ts = jnp.linspace(0.0, 2.4, 9)
    run = agree(stick_slip(peak=1.05), ts, fx.OnSamples(solver=diffrax.Dopri8()), within=1e-3)
    assert (
        np.max(
            np.histogram(np.asarray(run.events.time[: int(run.events.count)]), np.asarray(ts))[0]
        )
        >= 2
    )


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1e-1, 1e-2, 1e-3])
def test_a_dip_of_the_velocity_below_0_inside_one_sample_is_a_stop(depth: float) -> None:
    A = 3.0
    # v = v0 - A/(2 pi) (1 - cos 2 pi t) would be -depth at 0.5 s and rise again: the block sticks
    # until then.
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0, v=A / math.pi - depth),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
        drive=fx.Force("mass", fx.Sine(amplitude=A, f=1.0, phase=jnp.pi, offset=1.0)),
    )
    run = fx.simulate(machine, jnp.array([0.0, 0.3, 0.9]), fx.OnSamples(solver=diffrax.Dopri8()))
    assert [int(m) for m in run.events.mode_after[:2]] == [0, 1]
    sticks = math.acos(1 - 2 * math.pi * (A / math.pi - depth) / A) / (2 * math.pi)
    assert abs(float(run.events.time[0]) - sticks) <= 1e-6 / math.sqrt(depth)
    assert abs(float(run.events.time[1]) - 0.5) <= 1e-9


@pytest.mark.slow
def test_over_a_gap_steps_are_no_longer_than_elsewhere_and_derivatives_are_those_of_all_of_them():
    every = np.linspace(0.0, 2.0, 401)
    ts = every[(every < 0.4) | (every > 0.705)]
    engine = FINE.over_gaps(ts)
    assert engine.finer == ((79, 63),)
    assert engine.steps(ts.size).sum() == 400
    assert fx.OnSamples().over_gaps(every) == fx.OnSamples()
    machine = stick_slip(peak=1.05)
    run = agree(machine, ts, engine)
    without = fx.simulate(machine, every, FINE).ys[np.isin(every, ts)]
    np.testing.assert_allclose(run.ys, without, rtol=0, atol=1e-8)
    paths = ("friction.f_pos.F_Coulomb", "friction.f_pos.fexp", "mass.m")
    assert_derivatives_agree(
        lambda x: jnp.ravel(fx.simulate(rebuilt(machine, paths, x), ts, engine).ys[1:]),
        flat(machine, paths),
        1e-4,
        reverse=False,
    )


BESIDE = np.concatenate([[0.0], np.cumsum(np.full(200, 0.01))])
# Two grids of 81 samples and two of 201: one program serves two of them.
GRIDS = {
    "uneven": (
        np.unique(np.concatenate([TS[::3], TS[1::17], TS[2::25], [0.0123, 1.2345678]])),
        False,
    ),
    "coarser than the drive": (np.linspace(0.0, 2.0, 81), False),
    "finer than the drive": (np.linspace(0.0, 1.0, 201), True),
    "a rounding beside the drive": (BESIDE, True),
}


@pytest.mark.slow
def test_the_grid_of_the_record_need_not_be_that_of_the_drive() -> None:
    for name, (grid, hold) in GRIDS.items():
        run = agree(block(hold), jnp.asarray(grid))
        assert int(run.events.count) >= 2, name


@pytest.mark.slow
def test_a_grid_a_rounding_beside_the_drive_takes_nothing_of_the_event_budget() -> None:
    ts = jnp.asarray(BESIDE)
    assert not jnp.array_equal(ts, TS)
    count = int(fx.simulate(block(), TS, FINE).events.count)
    assert int(fx.simulate(block(), ts, fx.OnSamples(max_events=count)).events.count) == count


@pytest.mark.slow
def test_drives_that_switch_between_samples_switch_where_they_do() -> None:
    signals = [
        fx.Step(height=3.0, startTime=0.2345),
        fx.Pulse(amplitude=3.0, width=40.0, period=0.317, startTime=0.05),
        fx.Trapezoid(
            amplitude=4.0, rising=0.1, width=0.2, falling=0.1, period=0.7, startTime=0.111
        ),
        fx.Sine(amplitude=4.0, f=1.3, offset=-5.5),
    ]
    drives = {type(signal).__name__: fx.Force("mass", signal) for signal in signals}
    run = agree(fx.Mechanism(mass=block()["mass"], friction=block()["friction"], **drives), TS)
    assert int(run.events.count) >= 4


@pytest.mark.slow
def test_a_record_of_a_brake_that_is_off_half_of_the_time_takes_two_events_a_cycle() -> None:
    press = jnp.where(jnp.sin(2 * jnp.pi * TS) > 0, 1.0, 0.0)
    brake = fx.Brake(
        "mass",
        mu_pos=fx.Coulomb(F_Coulomb=0.5),
        fn_max=4.0,
        f_normalized=fx.Sampled(TS, press, hold=True),
    )
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0, v=1.0), brake=brake, drive=fx.Force("mass", fx.Sampled(TS, PULL))
    )
    run = agree(machine, TS, fx.OnSamples(solver=diffrax.Tsit5(), max_events=20))
    assert np.array_equal(run["brake"].free, np.asarray(press) == 0)
