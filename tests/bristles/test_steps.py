"""Linearly implicit steps: derivatives, what they do where they cannot resolve a bristle, lanes."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from diffrax import Bosh3, ForwardMode

import frictax as fx
from checks import value_and_jacobian
from frictax.engine.implicit import rosenbrock2
from frictax.engine.reused import Reused, model_of
from frictax.mechanism import MechanicalSystem
from rubbing import P1_LAW, STANDARD, lugre, p1, rubbing, shaking

# One step for each sample, without error control
EACH = fx.OnSamples(tolerance=None)
FORWARD = ForwardMode()  # compiles three times as fast
# of x(10) by F_Coulomb, known
BY_F_COULOMB = {1e4: -0.0162730, 1e5: -0.0182918, 1e6: -0.0178354}


def end(logs: Any, ts: Any, last: Any, *tolerances: Any, adjoint: Any = None) -> Any:
    """Where P1's mass is at sample `last` of `ts`; with tolerances, under error control."""
    *law, s0, s1 = jnp.exp(logs)
    law = fx.Stribeck(**dict(zip(P1_LAW, law, strict=True)))
    push: Any = shaking if tolerances else fx.Sampled(ts, shaking(ts))
    on_samples = fx.OnSamples(tolerance=None, adjoint=adjoint)
    engine = fx.Adaptive(*tolerances, adjoint=adjoint) if tolerances else on_samples
    return fx.simulate(rubbing(lugre(s0, s1), law, push), ts, engine)["mass"].s[last]


with_forward = jax.jit(lambda x, *a: value_and_jacobian(lambda x: end(x, *a, adjoint=FORWARD))(x))
value, by_reverse = jax.jit(end), jax.jit(jax.grad(end))


def samples(h: float) -> tuple[np.ndarray, int]:
    """Times `h` apart, as many at any `h` for one program, and the number of that of 10 s."""
    return h * np.arange(25_001), round(10 / h)


def logs_of(sigma_0: float) -> Any:
    return jnp.log(jnp.array([*P1_LAW.values(), sigma_0, sigma_0**0.5]))


def central(f: Any, x: Any, step: float) -> np.ndarray:
    return np.array([float(f(x + d) - f(x - d)) / (2 * step) for d in step * np.eye(x.size)])


@pytest.mark.parametrize(
    ("sigma_0", "h", "near"),
    [
        (1e5, 1e-3, 3e-2),
        (1e4, 1e-3, 3e-2),
        (1e6, 1e-3, 3e-2),
        (1e5, 4e-4, 6e-3),
        (1e6, 5e-3, 0.2),
    ],
)
@pytest.mark.slow
def test_derivatives_of_a_run_on_samples_are_its_own(sigma_0: float, h: float, near: float) -> None:
    x, grid = logs_of(sigma_0), samples(h)
    forward, reverse = np.asarray(with_forward(x, *grid)[1]), np.asarray(by_reverse(x, *grid))
    assert reverse == pytest.approx(forward, rel=1e-8)
    differences = central(lambda x: with_forward(x, *grid)[0], x, 1e-6)
    assert forward == pytest.approx(differences, rel=1e-4, abs=1e-6 * np.max(np.abs(forward)))
    assert forward[0] == pytest.approx(differences[0], rel=1e-6)
    by_f_coulomb = forward[list(P1_LAW).index("F_Coulomb")]  # which is 1
    assert by_f_coulomb == pytest.approx(BY_F_COULOMB[sigma_0], rel=near)


@pytest.mark.slow
@pytest.mark.parametrize("sigma_0", [1e4, 1e5, 1e6])
def test_derivatives_of_a_run_under_error_control_are_those_of_the_motion(sigma_0: float) -> None:
    x, ends = logs_of(sigma_0), (np.array([0.0, 10.0]), 1)
    usual, exact = (*ends, 1e-7, 1e-9), (*ends, 1e-10, 1e-12)
    forward = np.asarray(with_forward(x, *usual)[1])
    size = np.max(np.abs(forward))
    # each takes steps of its own
    assert np.asarray(by_reverse(x, *usual)) == pytest.approx(forward, rel=2e-3, abs=1e-4 * size)
    assert forward[1] == pytest.approx(BY_F_COULOMB[sigma_0], rel=2e-3)
    differences = central(lambda x: value(x, *exact), x, 1e-5)
    # by sigma_0 and sigma_1 it is a thousandth of the others
    assert forward == pytest.approx(differences, rel=2e-3, abs=1e-4 * size)


SAMPLES = 1501


def run_of(sigma_0: float, h: float, engine: Any, push: float = 2.0, v: float = 0.0) -> Any:
    """A run of P1, or of a mass that is thrown: one program for each engine. Units: `sigma_0` N/m,
    step `h` s, amplitude `push` of the force N, speed `v` at the start m/s.
    """
    ts, law = h * np.arange(SAMPLES), fx.Stribeck(**P1_LAW)
    drive = fx.Sampled(ts, push * np.sin(2 * np.pi * ts))
    machine = rubbing(lugre(sigma_0, v_d=None), law, drive, fx.Mass(m=1.0, v=v))
    return fx.simulate(machine, ts, engine)


def scan(sigma_0: float, h: float, engine: fx.OnSamples = EACH) -> None:
    """Runs of P1 and of a mass that is thrown stay bounded, and these never gain energy."""
    run = run_of(sigma_0, h, engine)
    assert np.max(np.abs(run["friction"].f_z)) <= 1.05 * 1.4
    assert np.max(np.abs(run["mass"].s)) < 0.2
    run = run_of(sigma_0, h, engine, push=0.0, v=1.0)
    stored = np.asarray(run["friction"].f_z) ** 2 / (2 * sigma_0)
    total = 0.5 * np.asarray(run["mass"].v) ** 2 + stored
    # of 0.5 J, at the stop: a linearly implicit step may gain what its order leaves
    assert np.max(np.diff(total)) <= 1e-5, (sigma_0, h)
    assert np.max(np.abs(run["friction"].f_z)) <= 1.05 * 1.4


@pytest.mark.slow
def test_a_step_that_cannot_resolve_a_bristle_stays_bounded_and_is_doubted() -> None:
    with pytest.warns(UserWarning, match="Shorter steps change a state"):
        scan(1e7, 5e-3, fx.OnSamples())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Shorter steps change")
def test_so_it_does_at_any_stiffness_and_length() -> None:
    for sigma_0 in 10.0 ** np.arange(3, 10):
        for h in (1e-4, 4e-4, 1e-3, 2e-3, 5e-3, 1e-2):
            scan(float(sigma_0), h)


def test_without_the_safe_step_it_would_not() -> None:
    """The linearly implicit step alone, at 1e6 N/m and 5 ms."""
    machine, ts = p1(lugre(1e6), 5e-3)
    system = MechanicalSystem(machine)
    reused = Reused(model_of(system, None))
    y0, mode0 = system.start(jnp.asarray(ts[0]))

    def one(carry: Any, times: Any) -> Any:
        y, mode = carry
        mode = system.tick(times[0] + 1e-9, mode, None)
        y = rosenbrock2(reused, mode, times[0], times[1], y)
        return (y, mode), y[2]

    times = jnp.stack([jnp.asarray(ts[:-1]), jnp.asarray(ts[1:])], 1)
    _, force = jax.jit(lambda: jax.lax.scan(one, (y0, mode0), times))()
    assert not np.max(np.abs(force)) <= 1.05 * 1.4


@pytest.mark.slow
def test_derivatives_stay_finite_where_nothing_is_resolved() -> None:
    for sigma_0, h in ((1e8, 1e-3), (1e9, 1e-2)):
        x, grid = logs_of(sigma_0), samples(h)
        forward = np.asarray(with_forward(x, *grid)[1])
        assert forward[1] == pytest.approx(-0.0177, rel=0.25)
        assert np.asarray(by_reverse(x, *grid)) == pytest.approx(forward, rel=1e-6, abs=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Shorter steps change")
def test_lanes_are_the_runs_one_by_one() -> None:
    ts = np.linspace(0.0, 1.0, 201)
    drive = fx.Sampled(ts, 2 * np.sin(2 * np.pi * ts))

    def end(sigma_0: Any, engine: fx.OnSamples = EACH) -> Any:
        law = fx.Stribeck(**P1_LAW)
        run = fx.simulate(rubbing(lugre(sigma_0), law, drive), ts, engine)
        return run["mass"].s[-1]

    def along(sigma_0: Any, *engine: fx.OnSamples) -> Any:
        return jax.jvp(lambda x: end(x, *engine), (sigma_0,), (sigma_0,))

    several = jnp.geomspace(1e4, 1e8, 9)  # of which some take safe steps
    alone = jax.jit(lambda x: along(x, fx.OnSamples(tolerance=None, adjoint=FORWARD)))
    ends, slopes = np.array([alone(s) for s in several]).T
    together, backward = jax.jit(jax.vmap(jax.value_and_grad(end)))(several)
    assert np.asarray(together) == pytest.approx(ends, rel=1e-6)
    assert np.asarray(backward * several) == pytest.approx(slopes, rel=1e-4, abs=1e-9)
    few, forward = jax.jit(jax.vmap(along))(several[::4])  # fewer than 8 go one by one
    assert np.asarray(few) == pytest.approx(ends[::4], rel=1e-6)
    assert np.asarray(forward) == pytest.approx(slopes[::4], rel=1e-4, abs=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Shorter steps change")
def test_beside_steps_that_cannot_resolve_a_bristle_events_are_found() -> None:
    """Of 5 ms, at 5e6 N/m: some pieces of a sample would be resolved where the whole is not."""
    ts = 5e-3 * np.arange(401)
    for seed in (3, 11):
        draw = np.random.default_rng(seed)
        force, f, phase = draw.uniform(2, 4), draw.uniform(0.5, 2), draw.uniform(0, 6)
        drive = fx.Sampled(ts, force * np.sin(2 * np.pi * ts * f + phase))
        beside = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=0.3))
        bristle = lugre(10 ** draw.uniform(6, 8), v_d=None)
        run = fx.simulate(rubbing(bristle, STANDARD, drive, beside=beside), ts, EACH)
        assert int(run.events.count) > 10
        assert np.max(np.abs(run["friction"].f_z)) <= 1.05 * 1.5


@pytest.mark.slow
def test_a_solver_that_is_named_is_taken() -> None:
    named, usual = (run_of(1e3, 1e-3, fx.OnSamples(solver=x)) for x in (Bosh3(), None))
    assert float(named["mass"].s[-1]) == pytest.approx(float(usual["mass"].s[-1]), abs=1e-6)
    assert float(named["mass"].s[-1]) != float(usual["mass"].s[-1])


def test_filters_and_windows_refuse_a_bristle() -> None:
    start, ts = rubbing(fx.LuGre(1.5e4, 40.0), fx.Coulomb(F_Coulomb=1.0), 0.0), np.arange(801) / 2e3
    record = fx.Record(ts, inputs={"push": np.sin(ts)}, outputs={"mass.s": 0.1 * np.sin(ts)})
    with pytest.raises(ValueError, match="must have friction without a bristle"):
        fx.kalman_filter(start, record, start_sd={"mass.s": 1e-6})
    with pytest.raises(ValueError, match="must have friction without a bristle"):
        fx.fit(start, record, free="friction.bristle", objective=fx.Windows(length=0.1))


def test_machines_of_one_s_own_refuse_a_bristle() -> None:
    class Axis(fx.AbstractAxis):
        friction: fx.SupportFriction

        def inertia(self, t: Any, y: Any, args: Any) -> Any:
            return 1.0

        def load(self, t: Any, y: Any, args: Any) -> Any:
            return 0.0 * t

        def states(self) -> tuple[str, ...]:
            return ("s", "v")

    with pytest.raises(ValueError, match=r"`Axis.friction` must not have a bristle"):
        Axis(fx.SupportFriction("x", bristle=fx.Dahl(1e5)))


@pytest.mark.slow
def test_a_run_is_drawn_and_told_with_its_bristle() -> None:
    run = run_of(1e3, 1e-3, fx.OnSamples())
    assert run.plot() is not None
    frame = run.to_pandas()
    assert frame.attrs["units"]["friction.z"] == "m"
    assert frame.attrs["units"]["friction.f_z"] == "N"
    assert "backward" in run._repr_html_()
    assert dataclasses.asdict(run["friction"])["fn"] is None
