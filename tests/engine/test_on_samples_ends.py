"""How walks on samples end; lanes of a vmap do not disturb each other; 32 bits; what is in the
compiled program; wrong options.
"""

from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import value_and_jacobian
from sampled import PULL, TS, block

HOW = fx.OnSamples()


def pulled(values: Any, engine: fx.OnSamples = HOW) -> fx.Trajectory:
    return fx.simulate(fx.parameters.replace(block(), {"drive.f.values": values}), TS, engine)


@pytest.mark.slow
def test_too_many_events_is_a_result_with_its_remedy_and_the_samples_before_are_kept() -> None:
    with pytest.raises(fx.SimulationError, match="max_events") as failure:
        fx.simulate(block(), TS, fx.OnSamples(max_events=2))
    run = failure.value.run
    assert int(run.events.count) == 2
    reached = np.isfinite(np.asarray(run["mass"].s))
    assert reached[0]
    assert not reached[-1]
    assert not np.any(np.diff(reached.astype(int)) > 0)


@pytest.mark.slow
def test_a_lane_that_fails_leaves_the_others_as_they_are() -> None:
    values = jnp.stack([PULL, PULL.at[60].set(jnp.nan), 1.2 * PULL])
    run = jax.jit(
        jax.vmap(
            lambda v: (
                lambda r: (r.ys, r.result == fx.Result.successful, r.result == fx.Result.nonfinite)
            )(pulled(v))
        )
    )
    ys, fine, nonfinite = run(values)
    assert fine.tolist() == [True, False, True]
    assert nonfinite.tolist() == [False, True, False]
    for lane in (0, 2):
        assert jnp.max(jnp.abs(ys[lane] - pulled(values[lane]).ys)) <= 1e-13
    assert jnp.all(jnp.isfinite(ys[1, :60]))


class Bell(fx.AbstractHybridSystem):
    """Jumps back and forth between two modes without time passing."""

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.ones_like(y)

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.where(mode == 0, 0.5 - y, -1.0)

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return y, 1 - mode, jnp.array(0)


def test_chatter_is_a_result() -> None:
    path = fx.walk(Bell(), jnp.zeros(1), jnp.zeros(1, int), jnp.linspace(0.0, 1.0, 8), options=HOW)
    assert bool(path.result == fx.Result.chatter)
    assert abs(float(path.times[0]) - 0.5) < 1e-12


def _vector(x: jax.Array) -> fx.Mechanism:
    paths = ("mass.m", "friction.f_pos.F_Coulomb", "friction.peak", "mass.v")
    return fx.parameters.replace(block(), dict(zip(paths, x, strict=True)))


@pytest.mark.slow
def test_vmap_equals_a_loop_in_states_jacobians_and_gradients() -> None:
    lanes = jnp.array([[1.0, 1.0, 1.1, 0.3], [0.7, 2.5, 1.3, -0.5], [1.3, 0.4, 1.0, 0.0]])

    def states(x: jax.Array) -> jax.Array:
        run = fx.simulate(_vector(x), TS, HOW)
        return jnp.append(run.ys, run.events.count)

    alone = value_and_jacobian(states)
    gradient = jax.grad(lambda x: jnp.sum(states(x) ** 2))
    together = jax.jit(jax.vmap(lambda x: (*alone(x), gradient(x))))(lanes)
    assert np.unique(together[0][:, -1]).size >= 2
    for x, *lane in zip(lanes, *together, strict=True):
        value, jacobian = alone(x)
        for found, expected in zip(lane, (value, jacobian, 2 * value @ jacobian), strict=True):
            assert jnp.max(jnp.abs(found - expected)) <= 1e-11


def with_slope(run: Any) -> Any:
    """The states of `run(1.0)`, their derivatives, and the number of events."""

    def outcome(m: Any) -> Any:
        done = run(m)
        return done.ys, done.events.count

    slope = jax.jit(lambda m: jax.jvp(outcome, (m,), (jnp.ones_like(m),), has_aux=True))
    return slope(jnp.asarray(1.0))


@pytest.mark.slow
def test_in_32_bits_it_gives_the_same_to_their_precision() -> None:
    with jax.enable_x64(False):
        ts, pull = (np.asarray(a, np.float32) for a in (TS, PULL))
        law = fx.Stribeck(F_prop=0.2, F_Coulomb=1.7, F_Stribeck=0.4, fexp=5.0)

        def single(m: Any) -> fx.Trajectory:
            friction = fx.SupportFriction("mass", f_pos=law, peak=1.1)
            drive = fx.Force("mass", fx.Sampled(ts, pull))
            return fx.simulate(
                fx.Mechanism(mass=fx.Mass(m=m, s=0.1, v=0.3), friction=friction, drive=drive),
                ts,
                HOW,
            )

        ys, slopes, count = with_slope(single)
        assert ys.dtype == jnp.float32

    def double(m: Any) -> fx.Trajectory:
        return fx.simulate(fx.parameters.replace(block(), {"mass.m": m}), TS, HOW)

    exact, exact_slopes, exact_count = with_slope(double)
    assert int(count) == int(exact_count)
    assert np.max(np.abs(np.asarray(ys) - np.asarray(exact))) <= 1e-4
    slope, exact_slope = float(slopes[-1, 0]), float(exact_slopes[-1, 0])
    assert abs(slope - exact_slope) <= 1e-3 * max(abs(exact_slope), 0.1)


@pytest.mark.slow
def test_no_host_callback_is_in_the_compiled_program() -> None:
    last = lambda x: fx.simulate(_vector(x), TS, HOW).ys[-1, 0]  # noqa: E731
    for f in (jax.value_and_grad(last), jax.jacfwd(last)):
        assert "callback" not in jax.jit(f).lower(jnp.array([1.0, 1.0, 1.1, 0.3])).as_text()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"substeps": 0}, "`OnSamples.substeps` must be a whole number >= 1, got 0"),
        ({"max_events": -1}, "`OnSamples.max_events` must be a whole number >= 1, got -1"),
        ({"substeps": True}, "whole number >= 1, got True"),
        ({"solver": diffrax.Kvaerno5()}, "explicit diffrax Runge-Kutta solver"),
        ({"solver": diffrax.SemiImplicitEuler()}, "explicit diffrax Runge-Kutta solver"),
    ],
)
def test_a_wrong_option_is_named_with_its_remedy(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        fx.OnSamples(**options)


ENDS = jnp.linspace(0.0, 1.0, 11)
SWITCHES = {
    "step": lambda start: fx.Force("mass", fx.Step(height=3.0, startTime=start)),
    "samples that are held": lambda start: fx.Force(
        "mass", fx.Sampled(ENDS, jnp.where(ENDS >= start, 3.0, 0.0), hold=True)
    ),
    "knot of a position": lambda start: fx.Position(
        "mass", fx.Sampled(jnp.array([0.0, start, 2.0]), jnp.array([0.0, 0.5, 0.5]))
    ),
}


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_at_the_last_sample_is_taken_by_both_engines(name: str) -> None:
    parts = {"mass": fx.Mass(m=1.0), "drive": SWITCHES[name](1.0)}
    if name != "knot of a position":
        law = fx.Coulomb(F_Coulomb=1.0)
        parts["friction"] = fx.SupportFriction("mass", f_pos=law)
    machine = fx.Mechanism(**parts)
    runs = [fx.simulate(machine, ENDS, engine) for engine in (HOW, fx.Adaptive())]
    for run in runs:
        assert float(run["mass"].v[-1]) == 0.0
        assert float(run["mass"].v[-2]) == pytest.approx(0.5 if len(parts) == 2 else 0.0)
        if len(parts) == 3:
            assert float(run["drive"].f[-1]) == 3.0
            assert run["friction"].mode[-1] == 1
    assert int(runs[0].events.count) == int(runs[1].events.count)


@pytest.mark.parametrize("engine", [HOW, fx.Adaptive()])
def test_a_moved_body_has_a_speed_at_the_last_sample_of_its_table(engine: Any) -> None:
    # A run along a measured motion, such as in a fit, and the same run with 10 more samples.
    table = fx.Sampled(ENDS, 3.0 * ENDS + jnp.where(ENDS > 0.95, 0.1, 0.0))
    machine = fx.Mechanism(mass=fx.Mass(m=1.0), drive=fx.Position("mass", table))
    for ts in (ENDS, jnp.linspace(0.0, 2.0, 21)):
        v = np.asarray(fx.simulate(machine, ts, engine)["mass"].v)
        assert v[:10] == pytest.approx(np.append(np.full(9, 3.0), 4.0))
        assert v[10] == pytest.approx(4.0)
        assert v[11:] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("engine", [HOW, pytest.param(fx.Adaptive(), marks=pytest.mark.slow)])
def test_derivatives_of_a_switch_at_the_last_sample(engine: Any) -> None:
    def speed(start: Any) -> Any:
        friction = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0), peak=1.0)
        force = fx.Force("mass", fx.Step(height=3.0, offset=2.0, startTime=start))
        machine = fx.Mechanism(mass=fx.Mass(m=1.0), friction=friction, drive=force)
        return fx.simulate(machine, ENDS, engine)["mass"].v[-1]

    both = jax.jit(jax.vmap(lambda start: (jax.jacfwd(speed)(start), jax.grad(speed)(start))))
    for slopes in both(jnp.full(9, 1.0).at[3].set(0.5)):
        accuracy = 1e-12 if engine is HOW else 1e-6
        assert np.asarray(slopes) == pytest.approx(-3.0, abs=accuracy)
