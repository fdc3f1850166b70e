"""The information against sums over samples, of sensors and windows; edges of events; machines."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.excitation.building import DesignRequest, build_problem, draw_machines
from frictax.excitation.problem import DesignProblem
from frictax.excitation.rivals import motion_to_drive

T = np.linspace(0.0, 4.0, 1601)
U = 3.0 * np.sin(2 * np.pi * 1.1 * T) + 2.0 * np.sin(2 * np.pi * 2.3 * T)
BLOCK = fx.Mechanism(
    mass=fx.Mass(m=1.0),
    friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0, F_prop=0.2), peak=1.2),
    drive=fx.Force("mass", 0.0),
)


def _speed(m: Any, F: Any, drive: Any, t: Any = T, v: Any = 0.0) -> jax.Array:
    block = fx.Mechanism(
        mass=fx.Mass(m=m, v=v),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F, 0.2), peak=1.2),
        drive=fx.Force("mass", fx.Sampled(T, drive)),
    )
    return fx.simulate(block, t, fx.OnSamples())["mass"].v


@pytest.mark.slow
def test_what_sensors_add_is_told_as_by_the_sum_over_samples():
    """Gain, offset, drift and delay of the sensor, and the gain of the drive."""

    def shown(x):
        m, F, gain, offset, drift, delay, push = x
        v = jnp.interp(T - delay, T, _speed(m, F, push * U))
        return gain * v + offset + drift * T

    J = np.asarray(jax.jit(jax.jacfwd(shown))(jnp.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0])))
    J = J / 1e-2
    sensor = [f"outputs.mass.v.{name}" for name in ("gain", "offset", "drift", "delay")]
    free = ["mass.m", "friction.f_pos.F_Coulomb", "inputs.drive.gain", *sensor]
    F = np.asarray(fx.information(BLOCK, T, {"mass.v": 1e-2}, free=free, inputs={"drive": U}))
    order = [0, 1, 6, 2, 3, 4, 5]  # inputs before outputs, as paths stand
    by_sum = (J.T @ J)[np.ix_(order, order)]
    size = np.sqrt(np.outer(np.diag(by_sum), np.diag(by_sum)))
    np.testing.assert_allclose(F / size, by_sum / size, atol=2e-2)


@pytest.mark.slow
def test_windows_begin_where_the_machine_is_and_know_their_starts():
    """As the sum over windows, each of which starts from the run with a state that is held."""
    whole = np.asarray(jax.jit(lambda: _speed(1.0, 1.0, U))())
    rows, told = 400, np.zeros((2, 2))
    slopes = jax.jit(jax.jacfwd(lambda x, part, begins: _speed(x[0], x[1], U, part, begins)))
    for k in range(4):
        part = T[k * rows : (k + 1) * rows + 1]
        J = np.asarray(slopes(jnp.array([1.0, 1.0]), part, whole[k * rows])) / 1e-2
        told += J.T @ J
    F = fx.information(
        BLOCK,
        T,
        {"mass.v": 1e-2},
        free=["mass.m", "friction.f_pos.F_Coulomb"],
        inputs={"drive": U},
        windows=1.0,
    )
    np.testing.assert_allclose(np.asarray(F), told, rtol=2e-2)


def _problem(*free: str) -> DesignProblem:
    limits = fx.Limits(force=3.0, travel=0.4, band=(0.25, 3.0))
    request = DesignRequest(
        machine=BLOCK,
        outputs={"mass.v": 1e-2},
        duration=4.0,
        rate=100.0,
        limits=limits,
        free=free or ("mass.m",),
    )
    return build_problem(request)


@pytest.fixture(scope="module")
def problem() -> DesignProblem:
    return _problem()


@pytest.mark.slow
def test_shortest_slip_and_nearest_miss_are_those_of_the_run(problem):
    t = np.asarray(problem.t)
    # breaks away at 1.2 N, stops, then 1.14 N: 95 % of what holds
    u = np.where(t < 1.0, 2.0 * np.sin(np.pi * np.minimum(t, 1.0)), 0.0)
    u = u + np.where(t > 2.0, 1.14 * np.sin(np.pi * np.clip(t - 2.0, 0.0, 1.0)) ** 2, 0.0)
    seen = problem.run_repeatedly(u, problem.under_test.values())
    block = fx.parameters.replace(BLOCK, {"mass.m": 1.0})
    parts = {**dict(block.named_parts()), "drive": fx.Force("mass", fx.Sampled(t, u))}
    run = fx.simulate(fx.Mechanism(**parts), t, fx.OnSamples())
    times = np.asarray(run.events.time)[:2]
    assert float(seen.slip) == pytest.approx((times[1] - times[0]) / 0.01, rel=1e-6)
    # of the 1.2 N that the margin has at most, 0.06 N are left
    assert float(seen.miss) == pytest.approx(0.06 / 1.2, rel=1e-6)
    assert float(seen.loads[0]) == pytest.approx(np.ptp(run["mass"].s) / 0.4, rel=1e-6)
    assert float(seen.loads[1]) == pytest.approx(np.max(np.abs(u)) / 3.0)


@pytest.mark.slow
def test_a_stop_after_which_a_body_barely_stays_is_near_an_edge_and_so_is_one_it_barely_leaves(
    problem,
):
    t = np.asarray(problem.t)
    block = fx.parameters.replace(BLOCK, {"mass.m": 1.0})
    for load, reserve in ((-1.1, 0.1), (-1.3, 0.1)):
        u = np.where(t < 1.0, 2.0 * np.sin(np.pi * np.minimum(t, 1.0)), load)
        u = np.where(t > 2.5, load * np.clip(3.0 - t, 0.0, 0.5) / 0.5, u)
        seen = problem.run_repeatedly(u, problem.under_test.values())
        parts = {**dict(block.named_parts()), "drive": fx.Force("mass", fx.Sampled(t, u))}
        run = fx.simulate(fx.Mechanism(**parts), t, fx.OnSamples())
        stuck = np.asarray(run["friction"].locked)
        # of half of what lies between both directions
        most = (1.2 + np.max(np.abs(u[stuck]))) / 2
        assert float(seen.miss) == pytest.approx(reserve / most, rel=1e-6)


def test_machines_scatter_as_asked_and_stay_in_their_domains():
    problem = _problem("mass.m", "friction.peak")
    given = problem.under_test, problem.names, problem.lower, 400, 0
    first, *drawn = draw_machines({"mass.m": 0.1, "friction.peak": 0.3}, *given)
    np.testing.assert_allclose(first, [1.0, 1.2])
    m, peak = np.asarray(drawn).T
    assert np.std(np.log(m)) == pytest.approx(0.1, rel=0.1)
    assert np.std(np.log(peak - 1.0)) == pytest.approx(0.3, rel=0.1)
    assert draw_machines(None, *given) == [pytest.approx(first)]


def test_no_controller_on_a_drive_is_said_to_hold_a_body_behind_a_gear():
    geared = fx.Mechanism(
        motor=fx.Inertia(J=4e-5),
        wheel=fx.Inertia(J=2e-2),
        gear=fx.IdealGear("motor", "wheel", ratio=20.0),
        drive=fx.Torque("motor", 0.0),
    )
    limits = fx.Limits(force=0.01, travel=1.0, band=(0.25, 3.0), body="wheel")
    request = DesignRequest(
        machine=geared,
        outputs={"wheel.phi": 1e-3},
        duration=4.0,
        rate=100.0,
        limits=limits,
        free=["wheel.J"],
    )
    problem = build_problem(request)
    assert problem.body == "wheel"
    assert motion_to_drive(problem) is None
    assert motion_to_drive(_problem()) is not None
