"""How runs end: nothing to do, budgets, chatter, bad numbers, other solvers, 32 bits, a system of
the user's own.
"""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import value_and_jacobian
from frictax.mechanism import MechanicalSystem
from machines import REFERENCE, stick_slip, times


@pytest.mark.slow
def test_a_run_of_no_length_returns_its_start() -> None:
    run = fx.simulate(stick_slip(), jnp.array([0.3]))
    assert run.ys.shape == (1, 2)
    assert int(run.events.count) == 1  # it breaks away there


def test_a_free_mass_keeps_its_velocity_without_events() -> None:
    run = fx.simulate(fx.Mechanism(mass=fx.Mass(m=2.0, v=3.0)), jnp.linspace(0.0, 1.0, 7))
    assert jnp.allclose(run["mass"].s, 3.0 * run.ts, atol=1e-12)
    assert int(run.events.count) == 0


@pytest.mark.slow
def test_too_many_events_is_a_result_with_its_remedy() -> None:
    with pytest.raises(fx.SimulationError, match="max_events") as failure:
        fx.simulate(stick_slip(), jnp.array([0.0, 10.0]), fx.Adaptive(max_events=5))
    assert int(failure.value.run.events.count) == 6
    quiet = jax.jit(
        lambda: fx.simulate(stick_slip(), jnp.array([0.0, 10.0]), fx.Adaptive(max_events=5)).result
    )()
    assert bool(quiet == fx.Result.too_many_events)


def test_too_many_steps_is_a_result_with_its_remedy() -> None:
    with pytest.raises(fx.SimulationError, match="max_steps"):
        fx.simulate(stick_slip(), jnp.array([0.0, 10.0]), fx.Adaptive(max_steps=50))


class Spoilt(eqx.Module):
    """A level to which `bad` is added from 0.7 s on."""

    level: jax.Array
    bad: jax.Array

    def __call__(self, t: Any) -> Any:
        return self.level + jnp.where(t > 0.7, self.bad, 0.0)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("engine", "ts"),
    [(fx.Adaptive(), [0.0, 2.0]), (fx.OnSamples(), np.linspace(0.0, 2.0, 101))],
    ids=["adaptive", "on samples"],
)
def test_what_ceases_to_be_finite_ends_the_run_there_whether_stuck_sliding_or_free(
    engine: Any, ts: Any
) -> None:
    def ended(load: Any, bad: Any, press: Any, worse: Any) -> Any:
        brake = fx.Brake(
            "mass", fn_max=1.0, f_normalized=fx.Function(Spoilt(press, worse)), mu_pos=[[0, 0.5]]
        )
        machine = fx.Mechanism(
            mass=fx.Mass(m=1.0), brake=brake, drive=fx.Force("mass", fx.Function(Spoilt(load, bad)))
        )
        run = fx.simulate(machine, ts, engine)
        at = jnp.max(jnp.where(jnp.all(jnp.isfinite(run.ys), axis=1), run.ts, 0.0))
        finite = jnp.where(jnp.isfinite(run.path.times), run.path.times, 0.0)
        return (
            run.result == fx.Result.nonfinite,
            run.result == fx.Result.successful,
            jnp.maximum(at, jnp.max(finite)),
        )

    nan, inf = np.nan, np.inf
    stuck = [
        (0.3, nan, 1.0, 0.0),
        (0.3, inf, 1.0, 0.0),
        (0.3, -inf, 1.0, 0.0),
        (0.3, 0.0, 1.0, nan),
        (0.3, 0.0, 1.0, inf),
    ]
    sliding = [
        (0.8, nan, 1.0, 0.0),
        (0.8, inf, 1.0, 0.0),
        (0.8, 0.0, 1.0, nan),
        (0.8, 0.0, 1.0, inf),
    ]
    free = [(0.8, nan, -1.0, 0.0), (0.8, 0.0, -1.0, nan)]
    sound = [(0.3, 0.0, 1.0, 0.0), (0.8, 0.0, 1.0, 0.0), (0.8, 0.0, -1.0, 0.0)]
    lanes = np.array(stuck + sliding + free + sound).T
    nonfinite, successful, at = jax.jit(jax.vmap(ended))(*lanes)
    assert nonfinite.tolist() == [True] * 11 + [False] * 3
    assert successful.tolist() == [False] * 11 + [True] * 3
    assert jnp.all(jnp.abs(at[:11] - 0.7) <= 0.02)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("engine", [fx.OnSamples(), fx.Adaptive()], ids=["on samples", "adaptive"])
def test_a_margin_or_a_deadline_of_ones_own_that_is_nan_ends_the_run(engine: Any) -> None:
    class Own(fx.AbstractHybridSystem):
        def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
            return jnp.ones(1)

        def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
            return jnp.stack([jnp.ones(()), args[0] * jnp.sqrt(0.7 - args[1] * y[0])])

        def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
            return y, mode, jnp.array(0)

        def deadline(self, mode: Any, args: Any) -> Any:
            return args[2]

    def walked(args: Any) -> Any:
        path = fx.walk(
            Own(), jnp.zeros(1), jnp.zeros(1, int), jnp.linspace(0.0, 2.0, 21), args, engine
        )
        return path.result == fx.Result.nonfinite, path.result == fx.Result.successful

    # Its margin is NaN from the start or from 0.7 s on, or its deadline is.
    args = jnp.array(
        [[jnp.nan, 0.0, jnp.inf], [jnp.inf, 1.0, jnp.inf], [1.0, 0.0, jnp.nan], [1.0, 0.0, jnp.inf]]
    )
    nonfinite, successful = jax.jit(jax.vmap(walked))(args)
    assert nonfinite.tolist() == [True, True, True, False]
    assert successful.tolist() == [False, False, False, True]


def test_a_drive_that_is_nan_is_told_with_its_time_and_remedy() -> None:
    with pytest.raises(
        fx.SimulationError, match=r"stopped at 0 s of 3 s.*not finite.*a drive that is NaN"
    ):
        fx.simulate(
            fx.Mechanism(
                mass=fx.Mass(m=1.0),
                friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
                drive=fx.Force("mass", fx.Function(lambda t: jnp.log(t - 1))),
            ),
            [0.0, 3.0],
        )


@pytest.mark.slow
def test_room_for_events_is_made_where_it_is_needed_also_in_an_eager_derivative() -> None:
    def v(amplitude: Any, engine: Any = fx.OnSamples()) -> Any:  # noqa: B008
        pulse = fx.Pulse(amplitude=amplitude, width=50, period=0.01)
        run = fx.simulate(
            fx.Mechanism(mass=fx.Mass(m=2.0), drive=fx.Force("mass", pulse)),
            jnp.array([0.0, 9.998]),
            engine,
        )
        return run["mass"].v[-1], run.result, run.path.count

    value, _, count = v(3.0)
    assert abs(float(value) - 7.5) <= 1e-9
    assert int(count) == 1999
    assert abs(float(jax.grad(lambda a: v(a)[0])(3.0)) - 2.5) <= 1e-9
    traced = fx.Result[jax.jit(v)(3.0)[1]]
    assert "1000" in traced
    assert "`run.path.count` is a `max_events` that suffices" in traced
    # What is given is a limit, and is what the message says to raise.
    with pytest.raises(fx.SimulationError, match="after 50 events.*max_events.*Raise it"):
        v(3.0, fx.OnSamples(max_events=50))


@pytest.mark.slow
def test_the_samples_reached_before_a_failure_are_kept() -> None:
    with pytest.raises(fx.SimulationError) as failure:
        fx.simulate(stick_slip(), jnp.linspace(0.0, 10.0, 101), fx.Adaptive(max_events=5))
    s = failure.value.run["mass"].s
    assert jnp.isfinite(s[10])
    assert jnp.isnan(s[-1])


class Bell(fx.AbstractHybridSystem):
    """Jumps back and forth between two modes without time passing."""

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.ones_like(y)

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.where(mode == 0, 0.5 - y, -1.0)

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return y, 1 - mode, jnp.array(0)


def test_chatter_is_a_result_with_its_remedy() -> None:
    path = fx.walk(Bell(), jnp.zeros(1), jnp.zeros(1, int), jnp.array([0.0, 1.0]))
    assert bool(path.result == fx.Result.chatter)
    assert abs(float(path.times[0]) - 0.5) < 1e-12


class Ball(fx.AbstractHybridSystem):
    """A bouncing ball: a system of a user's own, with its restitution as a parameter."""

    restitution: jax.Array

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.stack([y[1], -args])

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return y[:1] + 1e-14

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return jnp.stack([0.0 * y[0], -self.restitution * y[1]]), mode + 1, jnp.array(0)


@pytest.mark.slow
def test_a_bouncing_ball_of_ones_own_has_its_closed_form_and_derivatives() -> None:
    def bounces(x: jax.Array) -> jax.Array:
        start = jnp.array([1.0, 0.0]), jnp.zeros(1, int), jnp.array([0.0, 2.0])
        return fx.walk(Ball(x[0]), *start, x[1], REFERENCE).times[:3]

    def closed(x: jax.Array) -> jax.Array:
        e, g = x
        return jnp.sqrt(2 / g) * jnp.stack([1.0 + 0 * e, 1 + 2 * e, 1 + 2 * e + 2 * e * e])

    at = jnp.array([0.6, 9.81])
    times, forward = value_and_jacobian(bounces)(at)
    assert jnp.allclose(times, closed(at), atol=1e-11)
    for slopes in (forward, jax.jit(jax.jacrev(bounces))(at)):
        assert jnp.allclose(slopes, jax.jacfwd(closed)(at), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine",
    [
        fx.Adaptive(solver=diffrax.Dopri5(), rtol=1e-10, atol=1e-12),
        fx.Adaptive(solver=diffrax.Kvaerno5(), rtol=1e-9, atol=1e-11),
        fx.Adaptive(
            stepsize_controller=diffrax.PIDController(
                rtol=1e-10, atol=1e-12, pcoeff=0.3, icoeff=0.4
            )
        ),
        fx.Adaptive(stepsize_controller=diffrax.ConstantStepSize(), dt0=1e-3),
    ],
    ids=["Dopri5", "Kvaerno5", "PID", "constant steps"],
)
def test_any_diffrax_solver_and_controller_finds_the_same_events(engine: fx.Adaptive) -> None:
    expected = times(stick_slip(), [0.0, 1.2])
    assert expected.shape == (5,)
    assert np.max(np.abs(times(stick_slip(), [0.0, 1.2], engine) - expected)) <= 1e-7


@pytest.mark.slow
def test_two_systems_give_the_same_in_32_bits_to_their_precision() -> None:
    def outcome(F: Any, engine: Any) -> Any:
        run = fx.simulate(stick_slip(F_Coulomb=F), jnp.linspace(0.0, 2.0, 21), engine)
        return run["mass"].s, run.events.count

    def with_slope(engine: Any) -> Any:
        along = lambda F: jax.jvp(lambda F: outcome(F, engine), (F,), (F,), has_aux=True)  # noqa: E731
        return jax.jit(along)(jnp.asarray(1.0))

    with jax.enable_x64(False):
        s, slope, count = with_slope(fx.Adaptive())
        assert s.dtype == jnp.float32
    exact, exact_slope, exact_count = with_slope(REFERENCE)
    assert int(count) == int(exact_count)
    assert np.max(np.abs(np.asarray(s) - np.asarray(exact))) <= 2e-4
    assert abs(float(slope[-1]) - float(exact_slope[-1])) <= 1e-2 * abs(float(exact_slope[-1]))


@pytest.mark.slow
def test_a_block_that_creeps_sticks_and_slips_in_32_bits_as_a_fast_one_does() -> None:
    def block(size: float) -> np.ndarray:
        machine = fx.parameters.replace(
            stick_slip(F_Coulomb=size, F_prop=0.0, F_Stribeck=0.0),
            {"mass.v": size, "drive.f.amplitude": 2 * size, "drive.f.f": 0.5},
        )
        return times(machine, [0.0, 4.0], fx.Adaptive(atol=1e-6 * size))

    with jax.enable_x64(False):
        assert np.max(np.abs(block(1e-4) - block(1.0))) <= 1e-4


def test_tolerances_that_32_bits_cannot_meet_are_refused() -> None:
    with jax.enable_x64(False), pytest.raises(ValueError, match="32-bit"):
        fx.simulate(stick_slip(), jnp.array([0.0, 1.0]), fx.Adaptive(rtol=1e-8))


def test_times_that_are_equal_in_32_bits_are_refused() -> None:
    late = 1.7e9 + np.linspace(0.0, 1.0, 3)
    system, y = MechanicalSystem(stick_slip()), jnp.zeros(2)
    with jax.enable_x64(False):
        with pytest.raises(ValueError, match="`simulate`.*in 32-bit numbers"):
            fx.simulate(stick_slip(), late)
        with pytest.raises(ValueError, match="`walk`.*in 32-bit numbers, got 1700000000.5 s"):
            fx.walk(system, y, jnp.zeros(2, jnp.int32), late)
    with pytest.raises(ValueError, match="`walk`.*must increase, got 1 s after 1 s at index 1"):
        fx.walk(system, y, jnp.zeros(2, jnp.int32), [1.0, 1.0])


@pytest.mark.slow
def test_least_speeds_that_are_no_stops_take_nothing_of_the_event_budget() -> None:
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0, v=5.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
        drive=fx.Force("mass", fx.Sine(amplitude=3.0, f=2.0, offset=1.0)),
    )
    # It speeds up and slows down 20 times and never stops.
    engine = fx.Adaptive(rtol=1e-7, atol=1e-9, max_events=5)
    run = fx.simulate(machine, jnp.array([0.0, 10.0]), engine)
    assert int(run.events.count) == 0
    assert abs(float(run["mass"].v[-1]) - 5.0) <= 1e-4


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("engine", [fx.Adaptive(), fx.OnSamples()], ids=["adaptive", "on samples"])
def test_a_margin_that_jumps_below_0_ends_the_run_and_no_other_margin_is_taken_for_it(
    engine: Any,
) -> None:
    class Pole(fx.AbstractHybridSystem):
        def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
            return -jnp.ones(1)

        def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
            # the second falls as well, and is at 0 after 6 s
            return jnp.stack([1.0 / (1.003 - t), y[0] + 5.0])

        def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
            return y, mode + 1, jnp.array(0)

    path = fx.walk(
        Pole(), jnp.ones(1), jnp.zeros(1, jnp.int32), jnp.linspace(0.0, 2.0, 21), options=engine
    )
    assert path.result == fx.Result.inconsistent


def test_walk_refuses_times_that_do_not_increase_and_takes_whole_numbers() -> None:
    for ts in ([0.0, 0.8, 0.2], [0.8, 0.0], [0.0, np.nan]):
        with pytest.raises(ValueError, match="`walk`: `ts` must"):
            fx.walk(Bell(), [1.0, 0.0], [0], ts)
    path = fx.walk(Bell(), [1, 0], [0], [0.0, 0.1])
    assert path.ys.dtype == jnp.float64
