"""Bristles where motion is measured or given: forces without a simulation, and fits by them."""

import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import frictax as fx
from checks import value_and_jacobian
from frictax.fitting import FitOptions
from frictax.fitting.build_problem import build_problem
from rubbing import F_C, F_S, SIGMA_0, SIGMA_1, STANDARD, M, lugre, rubbing

TS = np.arange(4001) * 5e-4
LAW = fx.Coulomb(F_Coulomb=F_C)
BRISTLES = {
    "dahl": fx.Dahl(2e4),
    "lugre": fx.LuGre(2e4, 20.0),
    "elasto-plastic": fx.ElastoPlastic(2e4, 20.0, z_ba=0.6),
}


KINDS = ["dahl", *(pytest.param(k, marks=pytest.mark.slow) for k in BRISTLES if k != "dahl")]


def path(t: Any) -> tuple[Any, Any, Any]:
    """Position, velocity and acceleration of a motion whose reversals lie far apart and near."""
    w1, w2 = 2 * np.pi * 1.3, 2 * np.pi * 4.1
    s = 3e-4 * np.sin(w1 * t) + 4e-5 * np.sin(w2 * t)
    v = 3e-4 * w1 * np.cos(w1 * t) + 4e-5 * w2 * np.cos(w2 * t)
    return s, v, -3e-4 * w1**2 * np.sin(w1 * t) - 4e-5 * w2**2 * np.sin(w2 * t)


def friction_along(bristle: Any) -> np.ndarray:
    """The friction along `path` under `LAW`, by SciPy."""
    rate = jax.jit(lambda v, f: bristle.rate(v, f, jnp.asarray(F_C), jnp.asarray(F_C)))
    found = solve_ivp(
        lambda t, f: [float(rate(path(t)[1], f[0]))],
        (0.0, TS[-1]),
        [0.0],
        "LSODA",
        TS,
        rtol=1e-8,
        atol=1e-9,
        max_step=1e-2,
    )
    v, force = path(TS)[1], found.y[0]
    damping = np.asarray(bristle.damping(jnp.abs(jnp.asarray(v)), LAW))
    return force + damping * np.asarray(jax.vmap(rate)(v, force)) / float(bristle.sigma_0)


def posed_by(machine: Any, record: fx.Record, free: Any, objective: Any, own: Any = ()) -> Any:
    options = FitOptions(free=free, own=own, objective=objective)
    return build_problem(machine, {record.name: record}, options)[0]


@eqx.filter_jit
def residuals(problem: Any) -> Any:
    """At the start values."""
    return problem.residuals(problem.x0)


@eqx.filter_jit
def _with_jacobian(problem: Any, x: Any) -> Any:
    return value_and_jacobian(problem.residuals)(x)


def assert_derivatives_are_differences(problem: Any) -> np.ndarray:
    """By steps of a millionth of each number. Returns the residuals at the start values."""
    x = np.asarray(problem.x0)
    at = lambda x: [np.asarray(a) for a in _with_jacobian(problem, jnp.asarray(x))]  # noqa: E731
    found, jacobian = at(x)
    for i, size in enumerate(np.where(x == 0, 1e-6, np.abs(x))):
        d = np.zeros_like(x)
        d[i] = 1e-6 * size
        differences = (at(x + d)[0] - at(x - d)[0]) / (2 * d[i])
        far = np.max(np.abs(differences))
        assert far > 0
        assert jacobian[:, i] == pytest.approx(differences, rel=1e-5, abs=1e-6 * far)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_inverse_dynamics_lacks_no_force_where_the_bristle_is_right(kind: str) -> None:
    bristle, (s, _, a) = BRISTLES[kind], path(TS)
    record = fx.Record(TS, {"push": M * a + friction_along(bristle)}, {"mass.s": s})
    machine = rubbing(bristle, LAW, 0.0)
    free = ["mass.m", "friction.f_pos.F_Coulomb", "friction.bristle"]
    problem = posed_by(machine, record, free, fx.InverseDynamics(300.0))
    lacking = assert_derivatives_are_differences(problem)
    # the ends of samples in which it turns back are no reversals, and differences lower what is
    # fast
    assert np.sqrt(np.mean(lacking**2)) < 2e-3 * F_C
    assert np.count_nonzero(np.asarray(problem.weights())) > TS.size - 50  # slow ones count


def test_a_fit_by_inverse_dynamics_finds_the_bristle() -> None:
    bristle, (s, _, a) = BRISTLES["lugre"], path(TS)
    record = fx.Record(TS, {"push": M * a + friction_along(bristle)}, {"mass.s": s})
    machine = rubbing(fx.LuGre(1e4, 10.0), fx.Coulomb(F_Coulomb=1.3), 0.0)
    free = ["friction.f_pos.F_Coulomb", "friction.bristle"]
    found = fx.fit(machine, record, free=free, objective=fx.InverseDynamics(300.0))
    assert found["friction.f_pos.F_Coulomb"].value == pytest.approx(F_C, rel=2e-3)
    assert found["friction.bristle.sigma_0"].value == pytest.approx(2e4, rel=5e-3)
    assert found["friction.bristle.sigma_1"].value == pytest.approx(20.0, rel=0.02)


@pytest.mark.slow
def test_the_damping_of_a_bristle_is_in_the_force_that_inverse_dynamics_compares() -> None:
    """And the law's own viscous part, and g at the speed of each sample."""
    s, v, a = path(TS)
    slow = rubbing(lugre(), STANDARD, motion=fx.Position("mass", lambda t: path_of(t)))
    force = np.asarray(fx.simulate(slow, TS, fx.Adaptive(rtol=1e-8, atol=1e-9))["friction"].f)
    record = fx.Record(TS, {"push": M * a + force}, {"mass.s": s})
    problem = posed_by(
        rubbing(lugre(), STANDARD, 0.0), record, ["friction.bristle"], fx.InverseDynamics(400.0)
    )
    lacking = residuals(problem)
    assert np.sqrt(np.mean(lacking**2)) < 0.02 * F_S
    assert float(SIGMA_1 * np.max(np.abs(v))) > 0.5 * F_S  # else the damping would not show
    assert float(problem.x0[0]) == SIGMA_0


def path_of(t: Any) -> Any:
    w1, w2 = 2 * np.pi * 1.3, 2 * np.pi * 4.1
    return 3e-4 * jnp.sin(w1 * t) + 4e-5 * jnp.sin(w2 * t)


# -- motion given, force measured


def tribometer(bristle: Any, drive: Any = 0.0, law: Any = LAW) -> fx.Mechanism:
    return rubbing(bristle, law, stage=fx.Position("mass", drive))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_machine_that_is_moved_needs_no_steps(kind: str) -> None:
    ts, law = TS[:1001], fx.Stribeck(F_prop=2.0, F_Coulomb=1.0, F_Stribeck=0.4, fexp=500.0)
    drive, bristle = path(ts)[0], BRISTLES[kind]
    record = fx.Record(ts, {"stage": drive}, {"friction.f": 1e3 * drive})
    problem = posed_by(
        tribometer(bristle, law=law), record, ["friction.f_pos", "friction.bristle"], fx.FreeRun()
    )
    found = assert_derivatives_are_differences(problem) + 1e3 * drive
    machine = tribometer(bristle, fx.Sampled(ts, drive), law)
    run = fx.simulate(machine, ts, fx.OnSamples(substeps=8))["friction"]
    assert found == pytest.approx(np.asarray(run.f), abs=1e-3)


def force_of(machine: fx.Mechanism, s: np.ndarray) -> np.ndarray:
    """The friction of a machine that is moved along `s`."""
    record = fx.Record(TS, {"stage": s}, {"friction.f": 1e3 * s}, name="moved")
    problem = posed_by(machine, record, ["friction.bristle.sigma_0"], fx.FreeRun())
    return residuals(problem) + 1e3 * s


def test_a_fit_finds_how_the_bristle_begins() -> None:
    bristle, z = fx.Dahl(2e4, z=-2.5e-5), -2.5e-5
    s = path(TS)[0]
    told = force_of(tribometer(bristle), s)
    noise = 1e-2 * np.random.default_rng(3).standard_normal(TS.size)
    record = fx.Record(TS, {"stage": s}, {"friction.f": told + noise}, name="bent")
    free = ["friction.f_pos.F_Coulomb", "friction.bristle.sigma_0"]
    found = fx.fit(tribometer(fx.Dahl(1e4)), record, free=free, own=["friction.bristle.z"])
    assert found.converged
    start = found["friction.bristle.z@bent"]
    assert abs(start.value - z) < 4 * start.standard_error
    assert start.standard_error < 0.02 * abs(z)


@pytest.mark.slow
def test_a_measured_start_leaves_the_bristle_as_the_machine_has_it() -> None:
    t = np.linspace(0.0, 0.2, 401)
    push = 0.8 * np.sin(2 * np.pi * 5 * t)
    truth = rubbing(fx.LuGre(2e4, 200.0), LAW, fx.Sampled(t, push), fx.Mass(m=M, s=0.3))
    record = fx.Record(t, {"push": push}, {"mass.s": np.asarray(fx.simulate(truth, t)["mass"].s)})
    machine = rubbing(fx.LuGre(2e4, 200.0), LAW, 0.0)
    started = fx.FreeRun(measured_start=True, cutoff=200.0)
    problem = posed_by(machine, record, ["friction.bristle"], started)
    assert np.max(np.abs(residuals(problem))) < 2e-6


@pytest.mark.slow
def test_an_outlook_expects_of_a_stiffness_what_differences_say() -> None:
    t = np.arange(200) * 1e-3
    u = 0.5 * np.sin(50.0 * t)

    def block(sigma_0: float, force: Any = 0.0) -> fx.Mechanism:
        law = fx.Coulomb(F_Coulomb=0.8, F_prop=0.1)
        return fx.Mechanism(
            mass=fx.Mass(m=1.2),
            friction=fx.SupportFriction("mass", f_pos=law, bristle=fx.LuGre(sigma_0, 60.0)),
            drive=fx.Force("mass", force),
        )

    def way(sigma_0: float) -> np.ndarray:
        return np.asarray(fx.simulate(block(sigma_0, fx.Sampled(t, u)), t)["mass"].s)

    sd, free = 2e-5, ["friction.bristle.sigma_0"]
    noisy = way(1e4) + sd * np.random.default_rng(0).standard_normal(t.size)
    record = fx.Record(t, {"drive": u}, {"mass.s": noisy}, sd={"mass.s": sd})
    told = fx.outlook(block(1e4), record, free=free)
    slope = (way(1.01e4) - way(0.99e4)) / 0.02  # by a relative change
    assert told.relative[0] == pytest.approx(sd / np.linalg.norm(slope), rel=0.15)  # noise is read
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exact = fx.outlook(block(1e4), fx.Record(t, {"drive": u}, {"mass.s": way(1e4)}), free=free)
    assert exact.relative[0] < 1e-9
