"""Steps on samples are divided where their error is too large.

Most machines here are one mass on a spring with viscous and dry friction, on one grid: its numbers
make it slow, fast or stiff beside the samples.
"""

import dataclasses
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax import simulation
from frictax.engine.result import Result

T = np.linspace(0.0, 2.0, 21)
U = 2.0 * np.sin(3.0 * T) + np.sin(7.0 * T)
# spring [N/m], viscous [N.s/m] and dry friction [N]: the samples are 0.1 s apart
MACHINES = {
    "fast spring": (900.0, 1.0, 0.2),  # 3 rad a sample
    "spring without friction": (400.0, 0.0, 0.0),  # 2 rad a sample
    "stiff viscous friction": (1.0, 400.0, 0.5),  # 40 time constants a sample
    "stick and slip": (30.0, 0.2, 1.5),
    "slow": (0.1, 0.1, 0.3),
}
TRUTH = fx.Adaptive(rtol=1e-11, atol=1e-13)


def machine(numbers, u=U) -> fx.Mechanism:
    c, d, F_Coulomb = numbers
    return fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=1.0, s=0.1),
        spring=fx.Spring("wall", "mass", c=c),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=d)),
        drive=fx.Force("mass", fx.Sampled(T, u)),
    )


@pytest.fixture(scope="module")
def references() -> dict[str, fx.Trajectory]:
    return {name: fx.simulate(machine(n), T, TRUTH) for name, n in MACHINES.items()}


def off(run, reference) -> float:
    """The largest error of a state over all samples, relative to its range."""
    return float(np.max(np.max(np.abs(run.ys - reference.ys), 0) / np.ptp(reference.ys, axis=0)))


@pytest.mark.parametrize("name", MACHINES)
def test_a_default_run_is_within_1e_4_of_the_range_and_within_the_error_it_states(name, references):
    run = fx.simulate(machine(MACHINES[name]), T)
    assert off(run, references[name]) < min(1e-4, run.error)
    assert T.size - 1 < run.steps < 5000
    assert run.finest > 1
    assert run.events.count == references[name].events.count


@pytest.mark.slow
def test_a_force_with_the_period_of_the_samples_is_resolved() -> None:
    """All steps without division would see the same wrong mean of it."""
    slow = machine(MACHINES["slow"])
    dither = fx.Force("mass", fx.Sine(amplitude=40.0, f=10.0, phase=1.0))
    shaken = fx.Mechanism(**dict(slow.named_parts()), dither=dither)
    run = fx.simulate(shaken, T)
    assert off(run, fx.simulate(shaken, T, TRUTH)) < min(1e-4, run.error)


@pytest.mark.slow
def test_a_motion_that_begins_takes_few_parts() -> None:
    """From breakaway on its relative error falls by a power of the time alone."""
    t = np.linspace(0.0, 1.0, 201)
    law = fx.Stribeck(F_Coulomb=1.0, F_prop=0.2, F_Stribeck=0.4, fexp=5.0)
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=law),
        drive=fx.Force("mass", fx.Sampled(t, 3.0 * np.sin(6.0 * t))),
    )
    run = fx.simulate(block, t)
    assert run.finest > 16
    assert run.steps < 2 * t.size
    assert off(run, fx.simulate(block, t, TRUTH)) < min(1e-5, run.error)


def test_without_error_control_a_step_a_sample_is_far_off_and_states_no_error(references):
    plain = fx.OnSamples(tolerance=None)
    run = fx.simulate(machine(MACHINES["stiff viscous friction"]), T, plain)
    assert off(run, references["stiff viscous friction"]) > 1.0
    assert np.isnan(run.error)
    assert (int(run.steps), int(run.finest)) == (T.size - 1, 1)


def test_a_named_solver_has_no_error_control():
    run = fx.simulate(machine(MACHINES["slow"]), T, fx.OnSamples(solver=diffrax.Heun()))
    assert np.isnan(run.error)
    assert int(run.steps) == T.size - 1


def test_adaptive_states_its_error_its_steps_and_no_division(references):
    run = fx.simulate(machine(MACHINES["stick and slip"]), T, fx.Adaptive())
    assert off(run, references["stick and slip"]) < run.error < 1e-3
    assert int(run.finest) == 1


@jax.jit
def states_at(numbers, tolerance):
    run = fx.simulate(machine(numbers), T, fx.OnSamples(tolerance=tolerance))
    return run.ys, run.error, run.steps


def test_a_smaller_tolerance_is_the_same_program_with_more_steps_and_a_smaller_error(references):
    numbers = jnp.asarray(MACHINES["fast spring"])
    runs = [states_at(numbers, tolerance) for tolerance in (1e-5, 1e-6, 1e-7, 1e-9)]
    assert states_at._cache_size() == 1  # pyright: ignore
    truth = np.asarray(references["fast spring"].ys)
    errors = [float(np.max(np.abs(ys - truth))) for ys, _, _ in runs]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-2 * errors[0]
    assert [int(n) for *_, n in runs] == sorted(int(n) for *_, n in runs)


def test_simulate_takes_a_smaller_tolerance_where_the_stated_error_is_large():
    numbers = (1600.0, 0.0, 0.0)
    _, error, steps = states_at(jnp.asarray(numbers), 1e-7)
    run = fx.simulate(machine(numbers), T)
    assert error > 1e-4 >= run.error, error
    assert run.steps > steps


@pytest.mark.slow
def test_a_run_whose_stated_error_is_small_is_tried_again_with_a_smaller_tolerance():
    """A pendulum that begins at its upper rest amplifies its errors a hundred times."""
    ts = np.linspace(0.0, 4.0, 101)
    pendulum = fx.Mechanism(
        bob=fx.Mass(m=1.0, s=3.13),
        weight=fx.PeriodicPositionDependentForce("bob", 0.0, -30.0, period=2 * np.pi),
        friction=fx.SupportFriction("bob", f_pos=fx.Coulomb(F_Coulomb=0.2, F_prop=0.1)),
        drive=fx.Force("bob", fx.Sampled(ts, 8.0 * np.sin(2.0 * ts))),
    )
    truth = fx.simulate(pendulum, ts, TRUTH)
    once = jax.jit(lambda: fx.simulate(pendulum, ts, fx.OnSamples()))()
    assert off(once, truth) > 1e-3 > 10 * once.error
    assert off(fx.simulate(pendulum, ts), truth) < 3e-5


def outcome(numbers, u):
    run = fx.simulate(machine(numbers, u), T)
    weights = jnp.sin(jnp.arange(1.0, 2 * T.size + 1)).reshape(T.size, 2)
    count = run.path.times.shape[0]
    times = jnp.where(jnp.arange(count) < run.path.count, run.path.times, 0.0)
    return jnp.sum(weights * run.ys) + jnp.sum(times)


gradient = jax.jit(jax.grad(outcome, argnums=(0, 1)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["stick and slip", pytest.param("fast spring", marks=pytest.mark.slow)]
)
def test_derivatives_are_those_of_the_discrete_run_in_both_modes(name):
    at = jnp.asarray(MACHINES[name]), jnp.asarray(U)
    both = jax.jit(jax.jacfwd(lambda *x: (outcome(*x),) * 2, argnums=(0, 1), has_aux=True))
    forward, _ = both(*at)
    for d, back in zip(forward, gradient(*at), strict=True):
        np.testing.assert_allclose(back, d, rtol=1e-9, atol=1e-11)
    for i, x in enumerate(MACHINES[name]):
        h = 1e-6 * x
        ends = [both(at[0].at[i].add(k * h), at[1])[1] for k in (1, -1)]
        np.testing.assert_allclose((ends[0] - ends[1]) / (2 * h), forward[0][i], rtol=1e-6)


def test_lanes_with_divided_steps_are_what_each_is_alone():
    numbers = jnp.asarray(
        [[c, d, f] for c in (900.0, 0.1) for d in (400.0, 0.2) for f in (0.3, 1.5)]
    )
    many = jax.jit(jax.vmap(lambda n: states_at(n, 1e-7)))(numbers)
    alone = [states_at(n, 1e-7) for n in numbers]
    for i, together in enumerate(many):
        np.testing.assert_allclose(
            together, np.stack([one[i] for one in alone]), rtol=1e-9, atol=1e-13
        )
    assert len(np.unique(many[2])) > 4  # lanes take steps of their own


@pytest.mark.slow
def test_gradients_of_lanes_with_divided_steps_are_those_of_each_alone():
    numbers = jnp.asarray(
        [[c, d, f] for c in (900.0, 0.1) for d in (400.0, 0.2) for f in (0.3, 1.5)]
    )
    many = jax.jit(jax.vmap(jax.grad(outcome), in_axes=(0, None)))(numbers, jnp.asarray(U))
    tangents = jax.jit(jax.vmap(jax.jacfwd(outcome), in_axes=(0, None)))(numbers, jnp.asarray(U))
    alone = np.stack([gradient(n, jnp.asarray(U))[0] for n in numbers])
    np.testing.assert_allclose(many, alone, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(tangents, alone, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_accounts_of_energy_change_no_step():
    block = machine(MACHINES["stick and slip"])
    engine = fx.OnSamples()
    plain, with_energy = (fx.simulate(block, T, engine, energy=e) for e in (False, True))
    assert int(plain.steps) == int(with_energy.steps)
    np.testing.assert_allclose(with_energy["mass"].s, plain["mass"].s, atol=1e-14)
    assert np.max(np.abs(with_energy.energy.balance)) < 1e-5


@pytest.mark.slow
def test_a_run_of_too_many_parts_and_one_whose_parts_are_too_long_say_so():
    stiff = machine(MACHINES["stiff viscous friction"])
    with pytest.raises(fx.SimulationError, match="max_steps"):
        fx.simulate(stiff, T, fx.OnSamples(max_steps=100))
    # 10 rad in each of 4096 parts
    with pytest.raises(fx.SimulationError):
        fx.simulate(machine((4e5**2, 0.0, 0.0)), T)


@pytest.mark.parametrize("wrong", [0.0, -1e-7, np.nan, [1e-7, 1e-8]])
def test_a_tolerance_that_is_not_one_positive_number_is_refused(wrong):
    with pytest.raises(ValueError, match="OnSamples.tolerance"):
        fx.OnSamples(tolerance=wrong)


def test_options_keep_a_tolerance_that_is_an_array_already():
    engine = fx.OnSamples(tolerance=jnp.asarray(1e-6))
    assert engine.with_numbers(jnp.float64) is engine
    assert dataclasses.replace(engine, tolerance=None).with_numbers(jnp.float64).tolerance is None


def test_a_run_that_no_other_run_can_be_compared_with_says_so(monkeypatch):
    """Here the runs with other tolerances end early, as they would out of room for events."""
    simulated = simulation.simulate_once

    def ends_early(mechanism, ts, engine, energy):
        run = simulated(mechanism, ts, engine, energy)
        if engine.tolerance == fx.OnSamples().tolerance:
            return run
        return eqx.tree_at(lambda run: run.path.result, run, Result.too_many_events)

    monkeypatch.setattr(simulation, "simulate_once", ends_early)
    with pytest.warns(UserWarning, match=r"could not be checked.*engine=Adaptive\("):
        fx.simulate(machine(MACHINES["fast spring"]), T)


def hanging(force: float) -> fx.Mechanism:
    """Two masses on springs, at rest under a force."""
    return fx.Mechanism(
        wall=fx.Fixed(),
        a=fx.Mass(m=0.37, s=force / 3e5),
        b=fx.Mass(m=0.7, s=1.7 * force / 3e5),
        upper=fx.Spring("wall", "a", c=3e5),
        lower=fx.Spring("a", "b", c=3e5 / 0.7),
        load=fx.Force("b", force),
    )


@pytest.mark.parametrize("force", [10.0, 12345.6])
def test_rounding_of_forces_on_a_machine_at_rest_divides_no_step(force, recwarn):
    run = fx.simulate(hanging(force), np.linspace(0.0, 1.0, 1001), fx.OnSamples())
    assert np.any(np.ptp(run.ys, axis=0) > 0)
    assert int(run.steps) == 1000
    assert run.error < 1e-4
    assert not recwarn.list


@pytest.mark.slow
def test_a_run_that_is_inaccurate_because_of_its_32_bits_says_so():
    with jax.enable_x64(False):
        ts = np.linspace(0.0, 10.0, 200)
        block = fx.Mechanism(
            mass=fx.Mass(m=1.0),
            friction=fx.SupportFriction("mass", f_pos=fx.Stribeck(1.0, 0.2, 0.3, 5.0)),
            drive=fx.Force("mass", fx.Sampled(ts, 2.0 * np.sin(0.6 * np.pi * ts))),
        )
        with pytest.warns(UserWarning, match="This run has numbers of 32 bits"):
            fx.simulate(block, ts)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-10, 2e-9])
def test_a_motion_of_less_than_a_nanometre_is_right_or_said_to_be_inaccurate(unit):
    block = fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=1.0),
        spring=fx.SpringDamper("wall", "mass", c=900.0, d=3.0),
        friction=fx.SupportFriction("mass", f_pos=[[0, 0.2 * unit], [1, 0.25 * unit]], peak=1.3),
        drive=fx.Force("mass", fx.Sine(amplitude=9.0 * unit, f=1.3)),
    )
    ts = np.linspace(0.0, 2.0, 101)
    exact = fx.simulate(block, ts, fx.Adaptive(rtol=1e-10, atol=1e-22)).ys
    with pytest.warns(UserWarning, match="Shorter steps change a state of the simulation by 0.00"):
        run = fx.simulate(block, ts, fx.OnSamples())
    assert np.all(np.abs(run.ys - exact) < 1e-3 * np.ptp(exact, axis=0))
    # Without further runs the error is stated.
    alone = simulation.simulate_once(block, jnp.asarray(ts), fx.OnSamples())
    error = np.max(np.abs(alone.ys - exact) / np.ptp(exact, axis=0))
    assert 1e-3 < error < alone.error


@pytest.mark.slow
def test_a_run_that_is_repeated_with_equal_steps_has_a_gradient() -> None:
    """Its error was asked for as a number, and the gradient of the run ended in an error."""
    ts = jnp.linspace(0.0, 4.0, 201)
    push = fx.Sampled(ts, 3.0 * jnp.sin(5.0 * ts))

    def travel(F_Coulomb: Any) -> Any:
        law = fx.Coulomb(F_Coulomb=F_Coulomb)
        block = fx.Mechanism(
            mass=fx.Mass(m=1.0),
            friction=fx.SupportFriction("mass", f_pos=law),
            drive=fx.Force("mass", push),
        )
        return fx.simulate(block, ts)["mass"].s[-1]

    h = 1e-5
    slope = (travel(1.0 + h) - travel(1.0 - h)) / (2 * h)
    assert float(jax.grad(travel)(1.0)) == pytest.approx(float(slope), rel=1e-6)


@pytest.mark.slow
def test_motions_of_nanometres_are_right_by_default() -> None:
    w, size = 10.0, 1e-8

    def spring(rtol: float | None = None) -> fx.Trajectory:
        machine = fx.Mechanism(
            wall=fx.Fixed(),
            mass=fx.Mass(m=1.0, s=size),
            spring=fx.Spring("wall", "mass", c=w * w),
        )
        ts = jnp.linspace(0.0, 5 * 2 * np.pi / w, 101)
        return fx.simulate(machine, ts, fx.Adaptive(rtol=rtol))

    run = spring()
    assert float(jnp.max(jnp.abs(run["mass"].s - size * jnp.cos(w * run.ts)))) < 1e-5 * size
    # Tolerances that are given are kept.
    assert float(spring(rtol=1e-7).error) > 1e-3
