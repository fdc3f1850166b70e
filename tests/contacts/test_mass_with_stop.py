"""A mass between two stops: plastic impacts, what holds it there, what lets it go."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from machines import REFERENCE

STUCK, FORWARD, BACKWARD, FREE = (
    int(m) for m in (fx.Mode.STUCK, fx.Mode.FORWARD, fx.Mode.BACKWARD, fx.Mode.FREE)
)
TIMES = jnp.linspace(0.0, 4.0, 17)


def stopped(
    s: Any = 0.0,
    v: Any = 0.0,
    F: Any = 1.0,
    load: Any = 0.0,
    swing: Any = 0.0,
    L: Any = 0.0,
    **k: Any,
) -> fx.Mechanism:
    """A mass of 1 kg with stops at -1 and 1 m, under the force load + swing*sin(pi t)."""
    k = {"smin": -1.0, "smax": 1.0, "F_prop": 0.0, "F_Stribeck": 0.0, "fexp": 1.0, **k}
    return fx.Mechanism(
        mass=fx.MassWithStopAndFriction(m=1.0, s=s, v=v, L=L, F_Coulomb=F, **k),
        drive=fx.Force("mass", fx.Sine(amplitude=swing, f=0.5, offset=load)),
    )


def simulate(machine: fx.Mechanism, **options: Any) -> fx.Trajectory:
    return fx.simulate(machine, TIMES, REFERENCE, **options)


def changes(run: fx.Trajectory) -> list[tuple[float, int]]:
    return [
        (float(run.events.time[k]), int(run.events.mode_after[k]))
        for k in range(int(run.events.count))
    ]


def test_breakaway_is_1_001_times_sliding_friction_as_in_modelica() -> None:
    f = simulate(stopped(F=2.0, F_Stribeck=3.0))["mass"]
    assert jnp.allclose(f.f0, 5.0)
    assert jnp.allclose(f.f0_max, 5.005)


def test_a_frictionless_mass_flies_free_and_stays_at_the_stop() -> None:
    run = simulate(stopped(v=2.0, F=0.0), energy=True)
    assert changes(run) == [(pytest.approx(0.5, rel=1e-12), STUCK)]
    assert jnp.all(run["mass"].mode[:2] == FREE)
    assert jnp.array_equal(run["mass"].s[3:], jnp.ones(14))
    assert jnp.all(run["mass"].v[3:] == 0.0)
    assert jnp.all(run["mass"].stopped[3:] == 1)
    # Momentum is lost at once, and the energy with it.
    assert float(run.energy.impact[-1]) == pytest.approx(2.0, rel=1e-11)


@pytest.mark.slow
def test_a_sample_at_the_very_time_of_a_hit_lies_at_the_stop() -> None:
    run = fx.simulate(stopped(v=2.0, F=0.0), TIMES)
    assert float(run["mass"].s[2]) == pytest.approx(1.0, abs=1e-12)


def test_a_frictionless_mass_bounces_between_the_stops_under_a_swinging_force() -> None:
    run = fx.simulate(stopped(F=0.0, swing=40.0), jnp.linspace(0.0, 3.9, 17), REFERENCE)
    assert [mode for _, mode in changes(run)] == [STUCK, FREE, STUCK, FREE, STUCK, FREE, STUCK]
    # It leaves when the force changes sign.
    assert [t for t, mode in changes(run) if mode == FREE] == pytest.approx(
        [1.0, 2.0, 3.0], abs=1e-9
    )
    assert float(jnp.max(jnp.abs(run["mass"].s))) <= 1.0


@pytest.mark.slow
def test_a_frictionless_mass_on_a_spring_that_only_just_reaches_its_stop_meets_it() -> None:
    machine = fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.MassWithStopAndFriction(
            m=1.0,
            smin=-5.0,
            smax=1 - 1e-4,
            F_prop=0.0,
            F_Coulomb=0.0,
            F_Stribeck=0.0,
            fexp=0.0,
            v=1.0,
        ),
        spring=fx.Spring("wall", "mass", c=1.0),
    )
    run = fx.simulate(machine, jnp.array([0.0, 4.0]), energy=True)
    assert float(run.energy.impact[-1]) == pytest.approx(0.5 * (1 - (1 - 1e-4) ** 2), rel=1e-2)


def test_a_stop_carries_any_load_that_presses_on_it() -> None:
    run = simulate(stopped(s=1.0, load=50.0))
    assert changes(run) == []
    assert jnp.all(run["mass"].f == 50.0)
    assert jnp.all(run["mass"].stopped == 1)
    assert jnp.all(run["mass"].s == 1.0)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_load_away_from_the_stop_below_breakaway_holds_and_above_it_moves(side: float) -> None:
    held, gone = (simulate(stopped(s=side, load=-side * load)) for load in (0.99, 2.0))
    assert changes(held) == []
    assert int(gone["mass"].mode[0]) == -side
    # 1 m/s2 over 2 m: it meets the other stop after 2 s.
    assert changes(gone) == [(0.0, -side), (pytest.approx(2.0, rel=1e-11), STUCK)]
    assert int(gone["mass"].stopped[-1]) == -side
    assert float(gone["mass"].f[-1]) == pytest.approx(-2.0 * side)


def test_a_stop_is_left_when_the_force_exceeds_f0_max_in_the_opening_direction() -> None:
    run = simulate(stopped(s=1.0, swing=5.0))
    # Up to 1 s the force presses into the stop; the mass leaves when 5*sin(pi t) falls to -1.001.
    assert changes(run)[0] == (pytest.approx(1 + np.arcsin(1.001 / 5) / np.pi, rel=1e-11), BACKWARD)


def test_a_frictionless_mass_leaves_its_stop_when_the_load_changes_sign() -> None:
    run = simulate(stopped(s=1.0, F=0.0, swing=5.0))
    assert changes(run)[0] == (pytest.approx(1.0, abs=1e-10), FREE)


@pytest.mark.parametrize("F", [0.0, 0.3])
def test_a_mass_may_start_at_a_stop_moving_away_from_it(F: float) -> None:
    run = simulate(stopped(s=1.0, v=-1.0, F=F))
    assert int(run["mass"].mode[0]) == (BACKWARD if F else FREE)
    end = 1.0 - 0.5 / F if F else -1.0
    assert float(run["mass"].s[-1]) == pytest.approx(max(end, -1.0), abs=1e-11)


def test_a_mass_comes_to_rest_right_at_its_stop_without_trouble() -> None:
    run = simulate(stopped(v=np.sqrt(2.0)))
    assert [mode for _, mode in changes(run)] == [STUCK]
    assert float(run["mass"].s[-1]) == pytest.approx(1.0, abs=1e-10)
    assert changes(run)[0][0] == pytest.approx(np.sqrt(2.0), rel=1e-6)


def test_the_ends_of_a_long_mass_meet_the_stops() -> None:
    right, left = (simulate(stopped(v=v, L=0.6, F=0.1)) for v in (3.0, -3.0))
    assert float(right["mass"].s[-1]) == pytest.approx(0.7)
    assert float(left["mass"].s[-1]) == pytest.approx(-0.7)


def test_a_mirrored_mass_moves_in_the_mirror() -> None:
    k = {"F": 0.8, "F_Stribeck": 0.5, "F_prop": 0.2}
    right = simulate(stopped(s=0.3, v=1.0, swing=9.0, load=0.7, smax=0.8, **k))
    left = simulate(stopped(s=-0.3, v=-1.0, swing=-9.0, load=-0.7, smin=-0.8, **{**k, "smax": 1.0}))
    assert int(right.events.count) == int(left.events.count) >= 6
    assert jnp.allclose(right.events.time, left.events.time, atol=1e-11)
    for name in ("s", "v", "f", "sa", "mode", "stopped"):
        assert jnp.allclose(
            getattr(right["mass"], name), -getattr(left["mass"], name), atol=1e-9
        ), name
    assert np.any(np.asarray(right["mass"].stopped) != 0)


def test_a_mass_clamped_between_its_stops_stays() -> None:
    run = simulate(stopped(swing=5.0, smin=-0.5, smax=0.5, L=1.0))
    assert float(jnp.max(jnp.abs(run["mass"].s))) <= 1e-12


def test_start_values_are_free_between_the_stops() -> None:
    run = simulate(stopped(s=-0.5, v=1.0, F=1.0))
    assert changes(run) == [(pytest.approx(1.0, rel=1e-12), STUCK)]
    assert float(run["mass"].s[-1]) == pytest.approx(0.0, abs=1e-11)
    assert int(run["mass"].mode[0]) == FORWARD


@pytest.mark.slow
def test_a_law_of_its_own_for_motion_backward_holds_and_brakes_there_only() -> None:
    machine = lambda v: fx.Mechanism(  # noqa: E731
        mass=fx.MassWithStopAndFriction(
            m=1.0,
            smin=-9,
            smax=9,
            F_prop=0.0,
            F_Coulomb=1.0,
            F_Stribeck=0.0,
            fexp=1.0,
            v=v,
            f_neg=fx.Coulomb(F_Coulomb=4.0),
        )
    )
    forward, backward = (simulate(machine(v)) for v in (1.0, -1.0))
    # v^2/(2 a): friction of 1 N one way, of 4 N the other.
    assert float(forward["mass"].s[-1]) == pytest.approx(0.5)
    assert float(backward["mass"].s[-1]) == pytest.approx(-0.125)
    assert float(backward["mass"].f0_max[0]) == pytest.approx(4.004)
