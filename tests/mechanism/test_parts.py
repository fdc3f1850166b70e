"""Springs, dampers, forces, flanges: their laws of motion and where they are attached."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from machines import REFERENCE, two_blocks

TIMES = jnp.linspace(0.0, 2.0, 9)


def coupled(c: float = 30.0, d: float = 0.0) -> fx.Mechanism:
    """Two long masses, free to move, joined end to end and pushed from the left."""
    return fx.Mechanism(
        left=fx.Mass(m=2.0, s=0.0, v=1.0, L=0.4),
        right=fx.Mass(m=0.5, s=1.0, L=0.2),
        spring=fx.Spring("left", "right", c=c, s_rel0=0.7),
        damper=fx.Damper("left", "right", d=d),
        push=fx.Force("left.flange_a", fx.Constant(0.0)),
    )


@pytest.fixture(scope="module")
def swinging() -> fx.Trajectory:
    return fx.simulate(coupled(), TIMES, REFERENCE)


@pytest.mark.slow
def test_two_masses_on_a_spring_swing_with_their_reduced_mass(swinging: fx.Trajectory) -> None:
    reduced = 2.0 * 0.5 / 2.5
    omega = np.sqrt(30.0 / reduced)
    expected = 0.7 - 1.0 / omega * np.sin(omega * np.asarray(TIMES))
    assert np.allclose(swinging["spring"].s_rel, expected, atol=1e-9)
    assert np.allclose(swinging["spring"].f, 30.0 * (expected - 0.7), atol=1e-7)


def test_forces_between_bodies_keep_the_momentum(swinging: fx.Trajectory) -> None:
    damped = fx.simulate(coupled(d=3.0), TIMES, REFERENCE)
    for run in (swinging, damped):
        assert np.allclose(2.0 * run["left"].v + 0.5 * run["right"].v, 2.0, atol=1e-9)
    assert float(damped["left"].v[-1] - damped["right"].v[-1]) == pytest.approx(0.0, abs=1e-2)


def test_a_name_alone_means_the_first_bodys_right_and_the_second_bodys_left_end(
    swinging: fx.Trajectory,
) -> None:
    right_end, left_end = swinging["left"].s + 0.2, swinging["right"].s - 0.1
    assert np.allclose(swinging["spring"].s_rel, left_end - right_end, atol=1e-12)
    assert np.allclose(swinging["damper"].v_rel, swinging["right"].v - swinging["left"].v)
    assert np.allclose(swinging["push"].s, swinging["left"].s - 0.2)


def test_the_accelerations_are_the_forces_over_the_masses() -> None:
    run = fx.simulate(coupled(d=3.0), TIMES, REFERENCE)
    f = run["spring"].f + run["damper"].f
    assert np.allclose(run["left"].a, f / 2.0, atol=1e-12)
    assert np.allclose(run["right"].a, -f / 0.5, atol=1e-12)
    assert np.allclose(run["damper"].f, 3.0 * run["damper"].v_rel)
    assert np.allclose(run["damper"].lossPower, 3.0 * run["damper"].v_rel ** 2)
    assert np.all(run["spring"].lossPower == 0)


def anchored(*parts: Any, s: float = 0.5) -> fx.Trajectory:
    named = {f"part{i}": part for i, part in enumerate(parts)}
    machine = fx.Mechanism(wall=fx.Fixed(s0=0.1), mass=fx.Mass(m=2.0, s=s, v=1.0), **named)
    return fx.simulate(machine, TIMES, REFERENCE)


@pytest.mark.slow
def test_a_spring_damper_equals_a_spring_and_a_damper() -> None:
    both = anchored(fx.SpringDamper("wall", "mass", c=20.0, d=1.5, s_rel0=0.2))
    apart = anchored(
        fx.Spring("wall", "mass", c=20.0, s_rel0=0.2), fx.Damper("wall", "mass", d=1.5)
    )
    assert np.allclose(both.ys, apart.ys, atol=1e-9)
    assert np.allclose(both["part0"].f, apart["part0"].f + apart["part1"].f, atol=1e-8)
    assert np.all(both["wall"].s == 0.1)
    # The closed form of the damped swing about 0.3 m.
    delta, omega = 1.5 / 4, np.sqrt(10.0 - (1.5 / 4) ** 2)
    t = np.asarray(TIMES)
    x = np.exp(-delta * t) * (
        0.2 * np.cos(omega * t) + (1 + delta * 0.2) / omega * np.sin(omega * t)
    )
    assert np.allclose(both["mass"].s, 0.3 + x, atol=1e-9)


@pytest.mark.slow
def test_a_damper_alone_slows_a_mass_exponentially() -> None:
    run = anchored(fx.Damper("mass", "wall", d=3.0))
    assert np.allclose(run["mass"].v, np.exp(-1.5 * np.asarray(TIMES)), atol=1e-9)


@pytest.mark.slow
def test_forces_on_one_body_add_up() -> None:
    run = anchored(fx.Force("mass", 3.0), fx.Force("mass.flange_a", lambda t: -t))
    t = np.asarray(TIMES)
    assert np.allclose(run["mass"].v, 1.0 + (3 * t - t**2 / 2) / 2, atol=1e-9)


@pytest.mark.slow
def test_a_force_on_the_housing_moves_nothing() -> None:
    run = anchored(fx.Force("wall", 3.0))
    assert np.allclose(run["mass"].v, 1.0)
    assert np.all(run["part0"].s == 0.1)


def test_parts_keep_the_order_and_the_names_that_were_written() -> None:
    machine = two_blocks()
    assert machine.names == ("first", "second", "joint", "guide1", "guide2", "drive")
    assert machine["second"].m == 0.5
    assert [p.path for p in fx.parameters.parameters(machine)][:2] == ["first.m", "first.s"]


@pytest.mark.slow
def test_machines_that_do_not_touch_move_as_if_alone() -> None:
    def friction(body):
        return fx.SupportFriction(body, f_pos=fx.Coulomb(F_Coulomb=1.0), peak=1.3)

    own = lambda f: fx.Sine(amplitude=3.0, f=f)  # noqa: E731
    slow = fx.Mechanism(a=fx.Mass(m=1.0), on_a=friction("a"), pull_a=fx.Force("a", own(0.7)))
    fast = fx.parameters.replace(slow, {"pull_a.f.f": 1.9})
    together = fx.Mechanism(
        a=fx.Mass(m=1.0),
        b=fx.Mass(m=1.0),
        on_b=friction("b"),
        on_a=friction("a"),
        pull_a=fx.Force("a", own(0.7)),
        pull_b=fx.Force("b", own(1.9)),
    )
    both, *alone = (fx.simulate(m, TIMES, REFERENCE) for m in (together, slow, fast))
    for name, run in zip("ab", alone, strict=True):
        assert np.allclose(both[name].s, run["a"].s, atol=1e-9)
        assert np.array_equal(both[f"on_{name}"].mode, run["on_a"].mode)
        own_events = both.events.time[both.events.part == both.events.names.index(f"on_{name}")]
        assert np.allclose(own_events, run.events.time[: run.events.count], atol=1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("engine", [fx.OnSamples(), fx.Adaptive()], ids=["on samples", "adaptive"])
def test_a_machine_whose_motions_are_all_prescribed_moves_as_given(engine: Any) -> None:
    wave = fx.Function(lambda t: 0.1 * jnp.sin(3.0 * t))
    machine = fx.Mechanism(mass=fx.Mass(m=2.0), motion=fx.Position("mass", wave))
    ts = jnp.linspace(0.0, 2.0, 21)
    run = fx.simulate(machine, ts, engine)
    np.testing.assert_allclose(run["mass"].s, 0.1 * jnp.sin(3.0 * ts), rtol=0, atol=1e-15)
    np.testing.assert_allclose(run["mass"].v, 0.3 * jnp.cos(3.0 * ts), rtol=0, atol=1e-15)
