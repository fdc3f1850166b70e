"""A brake: free without normal force, engaging in motion and at rest, letting go,
pressed by waves.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from machines import REFERENCE

STUCK, FORWARD, FREE = int(fx.Mode.STUCK), int(fx.Mode.FORWARD), int(fx.Mode.FREE)
TIMES = jnp.linspace(0.0, 3.0, 13)


def braked(f_normalized: Any, v: float = 0.0, load: float = 0.0, **brake: Any) -> fx.Mechanism:
    brake = {"mu_pos": fx.Coulomb(F_Coulomb=0.5), "fn_max": 10.0, "peak": 1.1, **brake}
    return fx.Mechanism(
        mass=fx.Mass(m=1.0, v=v),
        brake=fx.Brake("mass", f_normalized=f_normalized, **brake),
        drive=fx.Force("mass", load),
    )


def simulate(machine: fx.Mechanism) -> fx.Trajectory:
    return fx.simulate(machine, TIMES, REFERENCE)


def changes(run: fx.Trajectory) -> list[tuple[float, int]]:
    return [
        (float(run.events.time[k]), int(run.events.mode_after[k]))
        for k in range(int(run.events.count))
    ]


def ramp(begin: float, end: float) -> fx.Ramp:
    """From `begin` to `end` over the 3 s of a run."""
    return fx.Ramp(offset=begin, height=end - begin, duration=3.0)


@pytest.mark.slow
@pytest.mark.parametrize("pressed", [0.0, -1.0])
def test_a_brake_without_normal_force_is_free(pressed: float) -> None:
    run = simulate(braked(ramp(pressed, pressed), v=1.0, load=0.5))
    brake = run["brake"]
    assert changes(run) == []
    assert jnp.all(brake.free)
    assert not jnp.any(brake.locked)
    assert jnp.all(brake.f == 0)
    assert jnp.all(brake.lossPower == 0)
    assert jnp.allclose(brake.sa, brake.a)
    assert jnp.allclose(run["mass"].v, 1.0 + 0.5 * TIMES)


def test_a_brake_without_fn_max_is_free_whatever_presses_on_it() -> None:
    run = simulate(braked(ramp(-1.0, 2.0), v=1.0, fn_max=0.0))
    assert changes(run) == []
    assert jnp.allclose(run["mass"].v, 1.0)


def test_a_brake_engages_in_motion_when_its_normal_force_rises_above_0() -> None:
    run = simulate(braked(ramp(-1.0, 2.0), v=2.0))
    # From 1 s on v = 2 - 0.5*10*(t - 1)^2/2
    assert changes(run) == [
        (pytest.approx(1.0, abs=1e-11), FORWARD),
        (pytest.approx(1 + np.sqrt(0.8), rel=1e-11), STUCK),
    ]
    assert float(run["mass"].s[-1]) == pytest.approx(2.0 + 2.0 * np.sqrt(0.8) * 2 / 3, rel=1e-10)
    assert jnp.allclose(run["brake"].fn, 10.0 * (TIMES - 1.0))


def test_a_brake_engages_at_rest_and_is_stuck_at_once() -> None:
    run = simulate(braked(ramp(-1.0, 2.0)))
    assert changes(run) == [(pytest.approx(1.0, abs=1e-11), STUCK)]
    assert jnp.all(run["mass"].s == 0.0)


def test_a_brake_that_opens_lets_go_when_the_load_reaches_f0_max() -> None:
    run = simulate(braked(ramp(1.0, 0.0), load=2.0))
    assert changes(run)[0] == (pytest.approx(3 * (1 - 2.0 / 5.5), rel=1e-12), FORWARD)


def test_a_brake_that_opens_under_no_load_is_free_from_0_on() -> None:
    run = simulate(braked(ramp(1.0, -1.0)))
    assert changes(run) == [(pytest.approx(1.5, rel=1e-11), FREE)]


def test_f0_and_f0_max_follow_the_normal_force_cgeo_and_peak() -> None:
    brake = simulate(braked(ramp(0.2, 2.0), v=5.0, cgeo=3.0))["brake"]
    assert jnp.allclose(brake.f0, 0.5 * 3.0 * brake.fn)
    assert jnp.allclose(brake.f0_max, 1.1 * brake.f0)


def test_a_second_law_brakes_backward_motion() -> None:
    machine = lambda v: braked(ramp(1.0, 1.0), v=v, mu_neg=fx.Coulomb(F_Coulomb=0.25))  # noqa: E731
    assert float(simulate(machine(2.0))["mass"].s[-1]) == pytest.approx(0.4, rel=1e-10)
    assert float(simulate(machine(-2.0))["mass"].s[-1]) == pytest.approx(-0.8, rel=1e-10)


@pytest.fixture(scope="module")
def pressed_by_a_sine() -> fx.Trajectory:
    return simulate(braked(fx.Sine(f=1.0), v=3.0, load=2.0))


@pytest.mark.slow
def test_a_brake_pressed_by_a_sine_is_free_for_each_second_half(
    pressed_by_a_sine: fx.Trajectory,
) -> None:
    expected = [(pytest.approx(0.5 * (k + 1), abs=1e-11), [FREE, FORWARD][k % 2]) for k in range(5)]
    assert changes(pressed_by_a_sine)[:5] == expected


def test_a_brake_pressed_by_a_sine_takes_its_mean_from_the_speed(
    pressed_by_a_sine: fx.Trajectory,
) -> None:
    # The integral of 5*sin(2 pi t) over a half wave is 5/pi.
    at = [2, 4, 6, 8]
    expected = [3 + 1 - 5 / np.pi, 3 + 2 - 5 / np.pi, 3 + 3 - 10 / np.pi, 3 + 4 - 10 / np.pi]
    assert np.allclose(pressed_by_a_sine["mass"].v[np.array(at)], expected, atol=1e-9)


def test_a_brake_pressed_by_a_sine_holds_while_it_can() -> None:
    run = simulate(braked(fx.Sine(f=0.25), load=2.0))
    up = np.arcsin(2.0 / 5.5) * 2 / np.pi
    # Too little force at first; the block then comes to rest, and breaks away where 5.5*sin(pi t/2)
    # falls to 2.
    modes = [mode for _, mode in changes(run)]
    assert modes == [FORWARD, STUCK, FORWARD, FREE]
    assert changes(run)[2][0] == pytest.approx(2 - up, rel=1e-10)
    assert changes(run)[3][0] == pytest.approx(2.0, rel=1e-10)


@pytest.mark.slow
def test_a_brake_touched_by_single_pulses_of_a_record_engages_only_there() -> None:
    record = fx.Sampled([0.0, 0.2, 0.4, 0.6, 1.0, 1.4, 2.0], [0.0, 0.0, 1.0, 0.0, 0.0, -1.0, 0.5])
    run = simulate(braked(record, v=3.0, load=2.0))
    assert changes(run) == [
        (pytest.approx(0.2, abs=1e-11), FORWARD),
        (pytest.approx(0.6, abs=1e-11), FREE),
        (pytest.approx(1.8, abs=1e-11), FORWARD),
    ]
