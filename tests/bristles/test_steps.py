"""Linearly implicit steps: derivatives, what they do where they cannot resolve a bristle, lanes."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.engine.implicit import rosenbrock2
from frictax.engine.reused import Reused, model_of
from frictax.mechanism import MechanicalSystem
from rubbing import P1_LAW, STANDARD, lugre, p1, rubbing

# One step for each sample, without error control
EACH = fx.OnSamples(tolerance=None)
# of x(10) by F_Coulomb, known
BY_F_COULOMB = {1e4: -0.0162730, 1e5: -0.0182918, 1e6: -0.0178354}


@functools.cache
def end_of(h: float | None, engine: Any) -> tuple[Any, Any, Any]:
    """Where P1's mass ends as a function of logarithms of six parameters, and its derivatives in
    forward and in reverse mode.
    """

    def end(logs: Any) -> Any:
        *law, s0, s1 = jnp.exp(logs)
        names = dict(zip(P1_LAW, law, strict=True))
        machine, ts = p1(lugre(s0, s1), h, **names)
        return fx.simulate(machine, ts, engine)["mass"].s[-1]

    return jax.jit(end), jax.jit(jax.jacfwd(end)), jax.jit(jax.jacrev(end))


def logs_of(sigma_0: float) -> Any:
    return jnp.log(jnp.array([*P1_LAW.values(), sigma_0, sigma_0**0.5]))


def central(end: Any, x: Any, step: float) -> np.ndarray:
    found = []
    for i in range(x.shape[0]):
        d = jnp.zeros_like(x).at[i].set(step)
        found.append(float(end(x + d) - end(x - d)) / (2 * step))
    return np.array(found)


@pytest.mark.parametrize(
    ("sigma_0", "h", "near"),
    [
        (1e5, 1e-3, 3e-2),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((1e4, 1e-3, 3e-2), (1e6, 1e-3, 3e-2), (1e5, 4e-4, 6e-3), (1e6, 5e-3, 0.2))
        ),
    ],
)
@pytest.mark.slow
def test_derivatives_of_a_run_on_samples_are_its_own(sigma_0: float, h: float, near: float) -> None:
    end, by_forward, by_reverse = end_of(h, EACH)
    x = logs_of(sigma_0)
    forward, reverse = np.asarray(by_forward(x)), np.asarray(by_reverse(x))
    assert reverse == pytest.approx(forward, rel=1e-8)
    differences = central(end, x, 1e-6)
    assert forward == pytest.approx(differences, rel=1e-4, abs=1e-6 * np.max(np.abs(forward)))
    assert forward[0] == pytest.approx(differences[0], rel=1e-6)
    by_f_coulomb = forward[list(P1_LAW).index("F_Coulomb")]  # which is 1
    assert by_f_coulomb == pytest.approx(BY_F_COULOMB[sigma_0], rel=near)


@pytest.mark.slow
@pytest.mark.parametrize("sigma_0", [1e4, 1e5, 1e6])
def test_derivatives_of_a_run_under_error_control_are_those_of_the_motion(sigma_0: float) -> None:
    _, by_forward, by_reverse = end_of(None, fx.Adaptive())
    x = logs_of(sigma_0)
    forward = np.asarray(by_forward(x))
    size = np.max(np.abs(forward))
    # each takes steps of its own
    assert np.asarray(by_reverse(x)) == pytest.approx(forward, rel=2e-3, abs=1e-4 * size)
    assert forward[1] == pytest.approx(BY_F_COULOMB[sigma_0], rel=2e-3)
    exact, *_ = end_of(None, fx.Adaptive(rtol=1e-10, atol=1e-12))
    # by sigma_0 and sigma_1 it is a thousandth of the others
    assert forward == pytest.approx(central(exact, x, 1e-5), rel=2e-3, abs=1e-4 * size)


SAMPLES = 1501


def scan(sigma_0: float, h: float, engine: fx.OnSamples = EACH) -> None:
    """Runs of P1 and of a mass that is thrown stay bounded, and these never gain energy."""
    ts, law = h * np.arange(SAMPLES), fx.Stribeck(**P1_LAW)
    drive = fx.Sampled(ts, 2.0 * np.sin(2 * np.pi * ts))
    run = fx.simulate(rubbing(lugre(sigma_0, v_d=None), law, drive), ts, engine)
    assert np.max(np.abs(run["friction"].f_z)) <= 1.05 * 1.4
    assert np.max(np.abs(run["mass"].s)) < 0.2
    drive = fx.Sampled(ts, 0.0 * ts)
    machine = rubbing(lugre(sigma_0, v_d=None), law, drive, fx.Mass(m=1.0, v=1.0))
    run = fx.simulate(machine, ts, engine)
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
        _, by_forward, by_reverse = end_of(h, EACH)
        x = logs_of(sigma_0)
        forward = np.asarray(by_forward(x))
        assert forward[1] == pytest.approx(-0.0177, rel=0.25)
        assert np.asarray(by_reverse(x)) == pytest.approx(forward, rel=1e-6, abs=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Shorter steps change")
@pytest.mark.parametrize("lanes", [3, 9])
def test_lanes_are_the_runs_one_by_one(lanes: int) -> None:
    ts = np.linspace(0.0, 1.0, 201)
    drive = fx.Sampled(ts, 2 * np.sin(2 * np.pi * ts))

    def end(sigma_0: Any) -> Any:
        law = fx.Stribeck(**P1_LAW)
        run = fx.simulate(rubbing(lugre(sigma_0), law, drive), ts, EACH)
        return run["mass"].s[-1]

    several = jnp.geomspace(1e4, 1e8, lanes)  # of which some take safe steps
    assert np.asarray(jax.vmap(end)(several)) == pytest.approx(
        np.array([float(end(s)) for s in several]), rel=1e-6
    )
    slopes = jax.vmap(jax.grad(end))(several) * several
    known = np.array([float(jax.grad(end)(s) * s) for s in several])
    assert np.asarray(slopes) == pytest.approx(known, rel=1e-4, abs=1e-9)


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
    import diffrax

    machine, ts = p1(lugre(1e3), 1e-3)
    named = fx.simulate(machine, ts, fx.OnSamples(solver=diffrax.Bosh3()))
    usual = fx.simulate(machine, ts, fx.OnSamples())
    assert float(named["mass"].s[-1]) == pytest.approx(float(usual["mass"].s[-1]), abs=1e-6)
    assert float(named["mass"].s[-1]) != float(usual["mass"].s[-1])


@pytest.mark.slow
def test_a_fit_finds_stiffness_and_damping_in_a_record_of_presliding() -> None:
    law = fx.Coulomb(F_Coulomb=1.0, F_prop=0.4)
    ts = np.linspace(0.0, 0.4, 801)
    u = 0.5 * np.sin(2 * np.pi * 5 * ts) + 0.2 * (ts > 0.1) + 0.2 * np.sin(2 * np.pi * 40 * ts)
    machine = rubbing(fx.LuGre(1e4, 60.0), law, fx.Sampled(ts, u))
    s = np.asarray(fx.simulate(machine, ts, fx.OnSamples())["mass"].s)
    noise = np.random.default_rng(1).normal(size=s.size) * 1e-7
    record = fx.Record(
        ts, inputs={"push": u}, outputs={"mass.s": s + noise}, sd={"mass.s": 1e-7}, name="shaken"
    )
    start = rubbing(fx.LuGre(1.5e4, 40.0), law, 0.0)
    free = ["friction.bristle.sigma_0", "friction.bristle.sigma_1"]
    found = fx.fit(start, record, free=free)
    for name, true in zip(free, (1e4, 60.0), strict=True):
        estimate = next(e for e in found.estimates if e.name == name)
        assert abs(estimate.value - true) < 4 * estimate.standard_error
        assert estimate.standard_error < 0.05 * true
    with pytest.raises(ValueError, match="must have friction without a bristle"):
        fx.kalman_filter(start, record, start_sd={"mass.s": 1e-6})
    with pytest.raises(ValueError, match="must have friction without a bristle"):
        fx.fit(start, record, free=free, objective=fx.Windows(length=0.1))


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
    machine, ts = p1(lugre(1e4), 2e-2)
    run = fx.simulate(machine, ts[:101], fx.OnSamples())
    assert run.plot() is not None
    frame = run.to_pandas()
    assert frame.attrs["units"]["friction.z"] == "m"
    assert frame.attrs["units"]["friction.f_z"] == "N"
    assert "backward" in run._repr_html_()
    assert dataclasses.asdict(run["friction"])["fn"] is None
