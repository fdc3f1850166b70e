"""Normal forces that depend on the motion: closed forms, either side, energy, derivatives, wrong
input.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import assert_derivatives_agree, flat, outcome, rebuilt
from frictax.parameters import Positive, Scalar, parameter
from machines import TIGHT


class Grows(eqx.Module):
    """1 + k*s."""

    k: Scalar = parameter(Positive(), "1/m")

    def __call__(self, t: Any, s: Any, v: Any) -> Any:
        return 1.0 + self.k * s


def carriage(k: float = 2.0, c: float = 30.0) -> fx.Mechanism:
    """A mass on a spring, on a rail that gets rougher along the way."""
    return fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=1.5, s=-0.4, v=2.0),
        spring=fx.Spring("wall", "mass", c=c),
        rail=fx.Brake(
            "mass",
            mu_pos=fx.Coulomb(F_Coulomb=0.2, F_prop=0.01),
            peak=1.2,
            fn_max=2.0,
            f_normalized=fx.MotionDependent(Grows(k)),
        ),
    )


def pressed_from_either_side(**changed: Any) -> fx.Mechanism:
    """A guide whose side load changes its sign in the middle of the way: friction 0.3*|8*s|."""
    return fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=1.0, s=-1.0, v=0.5),
        spring=fx.Spring("wall", "mass", c=20.0),
        guide=fx.Brake(
            "mass",
            mu_pos=fx.Coulomb(F_Coulomb=0.3),
            fn_max=8.0,
            f_normalized=fx.MotionDependent(lambda t, s, v: s, either_side=True),
            **changed,
        ),
    )


def test_a_rail_that_gets_rougher_stops_where_the_work_of_friction_is_the_kinetic_energy() -> None:
    machine = fx.Mechanism(
        mass=fx.Mass(m=2.0, v=3.0),
        rail=fx.Brake(
            "mass",
            mu_pos=[[0, 0.2]],
            fn_max=10.0,
            f_normalized=fx.MotionDependent(lambda t, s, v: 1 + s),
        ),
    )
    run = fx.simulate(machine, jnp.array([0.0, 4.0]), TIGHT)
    # 2 (s + s^2/2) = 9
    assert float(run["mass"].s[-1]) == pytest.approx(np.sqrt(10.0) - 1.0, abs=1e-10)
    assert bool(run["rail"].locked[-1])
    assert float(run["rail"].fn[-1]) == pytest.approx(10.0 * np.sqrt(10.0), abs=1e-8)


@pytest.mark.slow
def test_a_run_is_differentiated_by_what_the_normal_force_closes_over() -> None:
    def end(k: Any) -> Any:
        machine = fx.Mechanism(
            mass=fx.Mass(m=2.0, v=3.0),
            rail=fx.Brake(
                "mass",
                mu_pos=[[0, 0.2]],
                fn_max=10.0,
                f_normalized=fx.MotionDependent(lambda t, s, v: 1 + k * s),
            ),
        )
        return fx.simulate(machine, jnp.array([0.0, 4.0]), TIGHT)["mass"].s[-1]

    # 2 (s + k s^2/2) = 9, with k = 1: ds/dk = -s^2/2 / (1 + s)
    s = np.sqrt(10.0) - 1.0
    assert float(jax.grad(end)(1.0)) == pytest.approx(-0.5 * s**2 / (1 + s), rel=1e-8)


@pytest.mark.slow
def test_a_guide_pressed_from_either_side_stops_a_spring_as_two_quadratic_forms_say() -> None:
    # Between turns the energy 10*s^2 falls by the work of friction, 0.3*8*s^2/2 each way.
    run = fx.simulate(pressed_from_either_side(), jnp.array([0.0, 0.01, 3.0]), TIGHT, energy=True)
    turns = [
        float(t)
        for t, part, after in zip(
            run.events.time, run.events.part, run.events.mode_after, strict=True
        )
        if after in (-1, 1)
    ]
    assert len(turns) >= 4
    at = np.asarray(
        fx.simulate(pressed_from_either_side(), jnp.asarray([0.0, *turns]), TIGHT)["mass"].s[1:]
    )
    # From turn s0 to the middle 10 s0^2 - 1.2 s0^2, from there to the turn s1: 10 s1^2 + 1.2 s1^2.
    assert np.max(np.abs(np.abs(at[1:] / at[:-1]) - np.sqrt((10.0 - 1.2) / (10.0 + 1.2)))) < 1e-8
    assert jnp.max(jnp.abs(run.energy.balance)) < 1e-9


@pytest.mark.slow
def test_one_that_lifts_off_is_free_and_engages_again() -> None:
    machine = fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=1.0, s=0.5),
        spring=fx.Spring("wall", "mass", c=20.0),
        pad=fx.Brake(
            "mass",
            mu_pos=[[0, 0.3]],
            fn_max=4.0,
            f_normalized=fx.MotionDependent(lambda t, s, v: s),
        ),
    )
    run = fx.simulate(machine, jnp.linspace(0.0, 2.0, 201), TIGHT, energy=True)
    s, free = np.asarray(run["mass"].s), np.asarray(run["pad"].free)
    clear = np.abs(s) > 1e-9
    assert np.array_equal(free[clear], s[clear] < 0)
    assert free.any()
    assert not free.all()
    assert jnp.max(jnp.abs(run.energy.balance)) < 1e-9


@pytest.mark.slow
def test_a_clutch_is_pressed_by_its_relative_motion() -> None:
    machine = fx.Mechanism(
        a=fx.Inertia(J=1.0),
        b=fx.Inertia(J=1.0, w=4.0),
        clutch=fx.Clutch(
            "a",
            "b",
            mu_pos=[[0, 0.5]],
            fn_max=2.0,
            f_normalized=fx.MotionDependent(lambda t, phi, w: 1 + 0.5 * w),
        ),
    )
    run = fx.simulate(machine, jnp.array([0.0, 0.3, 3.0]), TIGHT)
    # d(w_rel)/dt = -2*(1 + w_rel/2)
    assert float(run["clutch"].w_rel[1]) == pytest.approx(6.0 * np.exp(-0.3) - 2.0, abs=1e-10)
    assert float(run.events.time[0]) == pytest.approx(np.log(3.0), abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one side", "either side"])
def test_derivatives_equal_central_differences(name: str) -> None:
    if name == "one side":
        rail = [
            f"rail.{name}" for name in ("fn_max", "peak", "mu_pos.F_Coulomb", "f_normalized.f.k")
        ]
        machine, paths = carriage(), ["mass.m", "mass.v", "spring.c", *rail]
    else:
        machine, paths = (
            pressed_from_either_side(),
            ["mass.m", "mass.s", "spring.c", "guide.fn_max", "guide.mu_pos.F_Coulomb"],
        )
    ts = jnp.array([0.0, 0.33, 1.01, 2.0])
    count = int(fx.simulate(machine, ts, TIGHT).events.count)
    assert count >= 2
    f = lambda x: outcome(rebuilt(machine, paths, x), ts, TIGHT, count)  # noqa: E731
    assert_derivatives_agree(f, flat(machine, paths), step=1e-4, reverse=False)


@pytest.mark.slow
def test_a_walk_on_samples_is_the_adaptive_one() -> None:
    machine, ts = pressed_from_either_side(), jnp.linspace(0.0, 3.0, 6001)
    fine = fx.simulate(machine, ts[jnp.array([0, -1])], TIGHT)
    coarse = fx.simulate(machine, ts, fx.OnSamples())
    assert int(coarse.events.count) == int(fine.events.count)
    assert jnp.max(jnp.abs(coarse.ys[-1] - fine.ys[-1])) < 1e-7


def test_it_presses_brakes_and_clutches_and_nothing_else() -> None:
    with pytest.raises(
        ValueError, match="`f` of 'push' must be a signal over time, got a `MotionDependent`"
    ):
        fx.Mechanism(
            mass=fx.Mass(m=1.0), push=fx.Force("mass", fx.MotionDependent(lambda t, s, v: s))
        )


@pytest.mark.parametrize(
    ("f", "sentence"),
    [(lambda t: t, "must be a function f"), (lambda t, s, v: (s, v), "must give one number")],
)
def test_another_function_is_named(f: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        fx.MotionDependent(f)
