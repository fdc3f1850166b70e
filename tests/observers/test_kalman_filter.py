"""Kalman filters through stick and slip, against a textbook's, closed forms and drawn truths."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import chi2

import frictax as fx

LEVEL = "friction.f_pos.F_Coulomb"
BLIND = 1e6  # a sensor that tells nothing


def block(level: Any = 1.0, peak: float = 1.0, v: float = 0.0, s: Any = 0.0) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=2.0, s=s, v=v),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=level), peak=peak),
        drive=fx.Force("mass", 0.0),
    )


def test_without_friction_it_is_the_linear_filter_of_the_textbooks() -> None:
    c, d, m, dt, n = 40.0, 0.6, 2.0, 0.002, 60
    q, sd_s, sd_a = 0.3, 1e-3, 0.2
    rng = np.random.default_rng(1)
    t, u = dt * np.arange(n), rng.standard_normal(n)
    y = np.stack([1e-2 * rng.standard_normal(n), 0.5 * rng.standard_normal(n)], axis=1)
    M, B = np.array([[0.0, 1.0], [-c / m, -d / m]]), np.array([0.0, 1.0 / m])
    # states, force and its slope, as it goes on by straight lines
    whole = np.zeros((4, 4))
    whole[:2, :2], whole[:2, 2], whole[2, 3] = M, B, 1.0
    step = expm(whole * dt)
    A, by_force, by_slope = step[:2, :2], step[:2, 2], step[:2, 3]
    C, R = np.stack([[1.0, 0.0], M[1]]), np.diag([sd_s**2, sd_a**2])
    x, P = np.array([0.1, 0.0]), np.diag([0.02**2, 0.5**2])
    means, covariances, log_likelihood = [], [], 0.0
    for k in range(n):
        if k:
            x = A @ x + by_force * u[k - 1] + by_slope * (u[k] - u[k - 1]) / dt
            P = A @ P @ A.T + np.outer(by_force, by_force) * q**2 / dt
        innovation = y[k] - C @ x - np.array([0.0, u[k] / m])
        S = C @ P @ C.T + R
        log_likelihood -= 0.5 * innovation @ np.linalg.solve(S, innovation)
        log_likelihood -= 0.5 * np.log(np.linalg.det(2 * np.pi * S))
        K = P @ C.T @ np.linalg.inv(S)
        x, P = x + K @ innovation, P - K @ C @ P
        means.append(x)
        covariances.append(P)
    machine = fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=m, s=0.1),
        spring=fx.SpringDamper("wall", "mass", c=c, d=d),
        drive=fx.Force("mass", 0.0),
    )
    record = fx.Record(
        t, {"drive": u}, {"mass.s": y[:, 0], "mass.a": y[:, 1]}, {"mass.s": sd_s, "mass.a": sd_a}
    )
    found = fx.kalman_filter(
        machine,
        record,
        start_sd={"mass.s": 0.02, "mass.v": 0.5},
        noise={"drive": q},
        members=1,
    )
    np.testing.assert_allclose(found.mean, means, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found.covariance, covariances, rtol=1e-5, atol=1e-12)
    assert found.log_likelihood == pytest.approx(log_likelihood, rel=1e-6)
    assert found.stuck == {}


def blind(t: np.ndarray, u: np.ndarray) -> fx.Record:
    """A record whose sensor tells nothing, so that covariances are carried, and nothing else."""
    return fx.Record(t, {"drive": u}, {"mass.s": np.sin(t)}, sd={"mass.s": BLIND})


@pytest.mark.slow
def test_where_all_is_known_the_mean_is_the_run_through_held_inputs_and_a_gap() -> None:
    t = np.delete(np.linspace(0.0, 2.0, 401), slice(150, 158))
    force = 1.6 * np.sin(2 * np.pi * t)
    driven = fx.Mechanism(
        **dict(block(1.0, 1.2).named_parts())
        | {"drive": fx.Force("mass", fx.Sampled(t, force, hold=True))}
    )
    run = fx.simulate(driven, t)
    assert int(run.events.count) >= 6
    outputs, sd = {"mass.s": np.sin(t)}, {"mass.s": 0.1}
    record = fx.Record(t, {"drive": force}, outputs, sd, hold=True)
    found = fx.kalman_filter(block(1.0, 1.2), record, start_sd={}, members=1)
    np.testing.assert_allclose(found.mean, run.ys, atol=1e-8)
    assert np.all(found.covariance == 0.0)
    np.testing.assert_array_equal(found.stuck["friction"] == 1.0, run["friction"].mode == 0)


@pytest.mark.slow
def test_at_a_stop_the_covariance_jumps_by_the_saltation_matrix() -> None:
    m, v, level = 2.0, 1.0, 1.5
    t = np.linspace(0.0, 2.0, 21)  # it stops at v*m/level = 1.333 s, inside an interval
    sd = {"mass.s": 0.01, "mass.v": 0.02, LEVEL: 0.03}
    found = fx.kalman_filter(block(level, v=v), blind(t, 0.0 * t), start_sd=sd, members=1)
    # the place where it stops is s + m*v^2/(2*level)
    by = np.array([1.0, m * v / level, -0.5 * m * v**2 / level**2])
    start = np.array(list(sd.values()))
    P = found.covariance
    np.testing.assert_allclose(P[-1, 0, 0], np.sum((by * start) ** 2), rtol=1e-6)
    np.testing.assert_allclose(P[-1, 0, 2], by[2] * start[2] ** 2, rtol=1e-6)
    assert np.all(P[-1, 1] == 0.0)  # no velocity, exactly
    assert found.stuck["friction"].tolist() == [0.0] * 14 + [1.0] * 7
    # and the way there, at 1 s: v - level*t/m
    sliding = np.array([[1.0, 1.0, -0.5 / m], [0.0, 1.0, -1.0 / m], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(P[10], sliding * start**2 @ sliding.T, rtol=1e-6)


@pytest.mark.slow
def test_at_breakaway_the_covariance_jumps_by_the_saltation_matrix() -> None:
    m, level, peak, rate, sd = 2.0, 1.0, 1.25, 2.0, 0.02
    t = np.linspace(0.0, 1.0, 21)
    record = blind(t, rate * t)
    asked: dict[str, Any] = {"start_sd": {LEVEL: sd}, "members": 1}
    found = fx.kalman_filter(block(level, peak), record, **asked)
    away = peak * level / rate  # 0.625 s
    jump = (peak - 1.0) * level / m  # of the acceleration
    for i in (13, 20):  # the velocity moves with the instant of breakaway, and with friction since
        after = t[i] - away
        by_v = -jump * peak / rate - after / m
        by_s = by_v * after + 0.5 * after**2 / m
        expected = np.outer([by_s, by_v, 1.0], [by_s, by_v, 1.0]) * sd**2
        np.testing.assert_allclose(found.covariance[i], expected, rtol=1e-6, atol=1e-15)
    without = fx.kalman_filter(block(level, peak), record, **asked, saltation=False)
    # one who knows nothing of events believes that the velocity is known four times better here
    assert without.sd["mass.v"][13] < 0.25 * found.sd["mass.v"][13]


@pytest.mark.slow
def test_a_clutch_that_locks_leaves_one_velocity_and_its_variance() -> None:
    J1, J2, torque = 1.0, 3.0, 2.0
    machine = fx.Mechanism(
        one=fx.Inertia(J=J1, w=4.0),
        two=fx.Inertia(J=J2),
        clutch=fx.Clutch(
            "one", "two", mu_pos=fx.Coulomb(F_Coulomb=torque), fn_max=1.0, f_normalized=1.0
        ),
    )
    t = np.linspace(0.0, 2.0, 9)  # they lock at 4/(torque*(1/J1 + 1/J2)) = 1.5 s
    record = fx.Record(t, {}, {"one.phi": np.sin(t)}, sd={"one.phi": BLIND})
    found = fx.kalman_filter(machine, record, start_sd={"one.w": 0.1, "two.w": 0.2}, members=1)
    w = slice(2, 4)
    together = np.array([J1, J2]) / (J1 + J2)
    variance = np.sum((together * [0.1, 0.2]) ** 2)
    np.testing.assert_allclose(found.covariance[-1, w, w], np.full((2, 2), variance), rtol=1e-9)
    assert found.stuck["clutch"].tolist() == [0.0] * 6 + [1.0] * 3


# a block that sticks and slips, of which the level of friction is known to 5 %

SD, RATE, SECONDS, RUNS = 2e-5, 1000, 2, 16


@functools.cache
def drawn() -> tuple[list[fx.Record], np.ndarray]:
    """Records, and what is true: s, v, level over time."""
    t = np.arange(SECONDS * RATE) / RATE
    u = 1.6 * np.sin(2 * np.pi * t) + 0.3 * np.sin(7 * t)
    rng = np.random.default_rng(3)
    levels = 1.0 + 0.05 * rng.standard_normal(RUNS)
    starts = 1e-4 * rng.standard_normal(RUNS)
    force = fx.Sampled(t, u)

    @jax.jit
    @jax.vmap
    def run(level: Any, s: Any) -> Any:
        machine = fx.parameters.replace(driven, {LEVEL: level, "mass.s": s})
        moved = fx.simulate(machine, jnp.asarray(t), fx.OnSamples(max_events=100))["mass"]
        return jnp.stack([moved.s, moved.v, jnp.full(t.size, level)], axis=1)

    driven = fx.Mechanism(**dict(rubbing().named_parts()) | {"drive": fx.Force("mass", force)})
    truth = np.asarray(run(jnp.asarray(levels), jnp.asarray(starts)))
    seen = truth[:, :, 0] + SD * rng.standard_normal(truth.shape[:2])
    return [fx.Record(t, {"drive": u}, {"mass.s": s}, sd={"mass.s": SD}) for s in seen], truth


KNOWN = {"mass.s": 1e-4, LEVEL: 0.05}


def rubbing(level: float = 1.0) -> fx.Mechanism:
    """The block, lighter, with friction that grows with speed."""
    light = {"mass.m": 1.0, "friction.f_pos.F_prop": 0.2}
    return fx.parameters.replace(block(level, 1.2), light)


def filtered(**options: Any) -> list[fx.Filtered]:
    return [fx.kalman_filter(rubbing(), r, start_sd=KNOWN, **options) for r in drawn()[0]]


def normalised_errors(found: list[fx.Filtered]) -> np.ndarray:
    """Those of place and level squared in units of their covariance, (runs, samples)."""
    out = []
    for one, true in zip(found, drawn()[1], strict=True):
        of = np.ix_(range(one.t.size), [0, 2], [0, 2])
        error = (one.mean - true)[:, [0, 2], None]
        out.append((error * np.linalg.solve(one.covariance[of], error)).sum(axis=(1, 2)))
    return np.array(out)


@pytest.mark.slow
def test_with_saltation_it_is_as_sure_as_it_may_be_and_without_it_is_not() -> None:
    drift = {LEVEL: 0.01}
    with_it = filtered(drift=drift, members=1)
    without = filtered(drift=drift, members=1, saltation=False)
    samples = sum(one.t.size for one in with_it)
    low, high = chi2.ppf([0.0005, 0.9995], samples) / samples
    assert low < np.mean([one.nis for one in with_it]) < high
    assert np.mean([one.nis for one in without]) > 1.3
    assert np.mean([one.consistent for one in with_it]) > 0.7
    # the level stands still in truth: errors may be smaller than the filter says, not larger
    at, high = slice(RATE // 2, None, RATE // 2), chi2.ppf(0.9995, 2 * RUNS) / RUNS
    assert np.all(normalised_errors(with_it)[:, at].mean(axis=0) < high)
    v = drawn()[1][:, :, 1]
    covered, uncovered = (
        np.mean([one.within("mass.v", x, 1.96) for one, x in zip(found, v, strict=True)])
        for found in (with_it, without)
    )
    assert covered > 0.94
    assert uncovered < 0.7


@pytest.mark.slow
def test_filters_that_part_are_as_sure_as_they_may_be_too() -> None:
    found = filtered(drift={LEVEL: 0.01})
    samples = sum(one.t.size for one in found)
    low, high = chi2.ppf([0.0005, 0.9995], samples) / samples
    assert low < np.mean([one.nis for one in found]) < high
    off = [(one[LEVEL][-1] - x[-1, 2]) / one.sd[LEVEL][-1] for one, x in pairs(found)]
    assert np.max(np.abs(off)) < 3.5
    covered = [one.within("mass.v", x[:, 1], 1.96) for one, x in pairs(found)]
    assert np.mean(covered) > 0.95


def pairs(found: list[fx.Filtered]) -> list[tuple[fx.Filtered, np.ndarray]]:
    return list(zip(found, drawn()[1], strict=True))


@pytest.mark.slow
def test_filters_that_part_find_what_a_single_one_that_believes_it_is_stuck_cannot() -> None:
    record, truth = drawn()[0][0], drawn()[1][0]
    far, known = rubbing(truth[0, 2] + 0.3), {"mass.s": 1e-4, "mass.v": 1e-3, LEVEL: 0.15}
    asked: dict[str, Any] = {"start_sd": known, "drift": {LEVEL: 0.01}}
    one, many = (fx.kalman_filter(far, record, **asked, members=n) for n in (1, 50))
    assert np.mean(one.nis) > 5.0
    assert many.consistent
    assert abs(many[LEVEL][-1] - truth[-1, 2]) < 3 * many.sd[LEVEL][-1] < 0.02
    at = slice(0, RATE // 4)  # the first breakaway, and what follows
    assert np.max(many.nis[at]) < 20 < 100 < np.max(one.nis[at])


@pytest.mark.slow
def test_a_mixture_knows_the_probability_that_something_sticks() -> None:
    t = np.linspace(0.0, 1.0, 21)
    u = np.minimum(2.0 * t, 1.0)  # and held there: half of the levels let it go
    known = {LEVEL: 0.1}
    found = fx.kalman_filter(block(1.0), blind(t, u), start_sd=known, members=300)
    sticks = found.stuck["friction"]
    assert sticks[0] == pytest.approx(1.0)
    assert np.all(sticks[:10] > 0.99)
    assert abs(sticks[-1] - 0.5) < 4 * np.sqrt(0.25 / 300)
    alone = fx.kalman_filter(block(1.0), blind(t, u), start_sd=known, members=1)
    assert set(np.unique(alone.stuck["friction"])) <= {0.0, 1.0}


class Swing(fx.AbstractAxis):
    """A pendulum with dry friction and a motor."""

    friction: fx.SupportFriction
    tau: fx.parameters.Scalar = fx.parameters.parameter(fx.parameters.Real(), "N.m", default=0.0)

    def inertia(self, t: Any, y: Any, args: Any) -> float:
        return 0.1

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return self.tau - jnp.sin(y[0])

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")

    def start(self, t: Any) -> Any:
        return self.begin(t, jnp.array([1.0, 0.0]))


@pytest.mark.slow
def test_a_system_of_ones_own_is_observed_and_its_load_found() -> None:
    friction = fx.SupportFriction("joint", f_pos=fx.Coulomb(F_Coulomb=0.1))
    truth, model = Swing(friction, tau=0.05), Swing(friction)
    t = np.linspace(0.0, 10.0, 401)
    y, mode = truth.start(0.0)
    run = fx.walk(truth, y, mode, jnp.asarray(t))
    phi = np.asarray(run.ys[:, 0]) + 1e-3 * np.random.default_rng(0).standard_normal(401)
    record = fx.Record(t, {}, {"phi": phi}, sd={"phi": 1e-3})
    known, drift = {"w": 0.01, "tau": 0.1}, {"tau": 0.001}
    found = fx.kalman_filter(model, record, start_sd=known, drift=drift, members=1)
    assert abs(found["tau"][-1] - 0.05) < 3 * found.sd["tau"][-1] < 0.01
    assert found.stuck["friction"][-1] == 1.0
    assert found.sd["w"][-1] == 0.0
    assert 0.8 < np.mean(found.nis) < 1.2
    told = str(found)
    assert "401 samples of phi filtered" in told
    assert "friction sticks" in told


class Fragile(Swing):
    """A pendulum whose run fails with a large load."""

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return jnp.where(self.tau > 0.095, jnp.nan, self.tau - jnp.sin(y[0]))

    def start(self, t: Any) -> Any:
        return self.begin(t, jnp.zeros(2))


def test_filters_that_fail_leave_their_weight_to_the_others() -> None:
    friction = fx.SupportFriction("joint", f_pos=fx.Coulomb(F_Coulomb=0.1))
    t = np.linspace(0.0, 0.2, 5)
    record = fx.Record(t, {}, {"phi": 1e-9 * t}, sd={"phi": 1e-3})
    model = Fragile(friction, tau=0.09)
    found = fx.kalman_filter(model, record, start_sd={"tau": 0.01}, members=20)
    # the mean of filters of which none is surer than the sensor is not surer either
    np.testing.assert_allclose(found.innovation_covariance[:, 0, 0], 1e-6, rtol=1e-9)


@pytest.mark.slow
def test_a_level_that_would_be_negative_is_carried_at_0_and_comes_back() -> None:
    t = np.linspace(0.0, 1.0, 21)
    s = t + 1e-3 * np.random.default_rng(2).standard_normal(21)  # without friction
    record = fx.Record(t, {"drive": 0.0 * t}, {"mass.s": s}, sd={"mass.s": 1e-3})
    known, drift = {"mass.v": 0.02, LEVEL: 0.5}, {LEVEL: 0.5}
    found = fx.kalman_filter(block(0.4, v=0.99), record, start_sd=known, drift=drift, members=1)
    assert np.min(found[LEVEL]) < 0.0
    assert np.max(found[LEVEL][10:]) > 0.0
    assert abs(found["mass.v"][-1] - 1.0) < 4 * found.sd["mass.v"][-1] < 0.1


def record_of(**changes: Any) -> fx.Record:
    t = np.linspace(0.0, 1.0, 5)
    fields = {"t": t, "inputs": {"drive": t}, "outputs": {"mass.s": t**2}, "sd": {"mass.s": 0.1}}
    return fx.Record(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"model": 3}, ValueError, "needs a `Mechanism` or a hybrid system"),
        ({"record": 3}, ValueError, "needs a `Record`, got 3"),
        ({"record": record_of(sd={})}, ValueError, "has no sd of 'mass.s'"),
        ({"start_sd": 1.0}, ValueError, "`start_sd` must be a dict of name -> size"),
        ({"start_sd": {"mass.x": 1.0}}, KeyError, "names 'mass.x', which there is not."),
        ({"start_sd": {"mass.s": -1.0}}, ValueError, "must be a number >= 0, got -1.0"),
        ({"drift": {LEVEL: 0.0}}, ValueError, "must be a number > 0, got 0.0"),
        ({"drift": {"mass.v": 1.0}}, ValueError, "a state, which moves by itself"),
        ({"drift": {"drive": 1.0}}, KeyError, "'drive', which there is not"),
        ({"noise": {"drive": "much"}}, ValueError, "must be a number > 0, got 'much'"),
        ({"members": 0}, ValueError, "`members` must be a whole number >= 1, got 0"),
        ({"members": 3, "saltation": False}, ValueError, "without `saltation` there is one filter"),
        ({"saltation": "yes"}, ValueError, "`saltation` must be True or False"),
        ({"engine": 3}, ValueError, "`engine` must be an `Adaptive` or an `OnSamples`, got 3"),
    ],
)
def test_each_mistake_is_told_in_a_sentence(
    changes: dict[str, Any], error: type[Exception], says: str
) -> None:
    arguments: dict[str, Any] = {"model": block(), "record": record_of(), "start_sd": {}} | changes
    with pytest.raises(error) as told:
        fx.kalman_filter(arguments.pop("model"), arguments.pop("record"), **arguments)
    assert says in str(told.value)


def test_a_table_is_no_number_that_can_drift() -> None:
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=[[0, 1.0], [1, 2.0]]),
        drive=fx.Force("mass", 0.0),
    )
    with pytest.raises(ValueError, match="must name numbers, got 'friction.f_pos.f' of shape"):
        fx.kalman_filter(machine, record_of(), start_sd={}, drift={"friction.f_pos.f": 0.1})


@pytest.mark.slow
def test_a_run_that_fails_is_told_with_its_time() -> None:
    t = np.linspace(0.0, 1.0, 21)
    record = blind(t, np.where(t > 0.52, 1e9, 0.0))
    light = fx.parameters.replace(block(1.0), {"mass.m": 1e-300})
    with pytest.raises(RuntimeError, match="`kalman_filter` failed from 0.5 s to 0.55 s"):
        fx.kalman_filter(light, record, start_sd={LEVEL: 0.1}, members=1)


@pytest.mark.slow
def test_a_name_that_was_not_estimated_is_told() -> None:
    t = np.linspace(0.0, 1.0, 21)
    found = fx.kalman_filter(block(), blind(t, t), start_sd={LEVEL: 0.1}, members=1)
    with pytest.raises(KeyError, match="did not estimate 'mass.w'"):
        found["mass.w"]


@pytest.mark.slow
def test_a_given_motion_keeps_its_velocity_at_the_last_sample() -> None:
    t = np.linspace(0.0, 1.0, 11)
    machine = fx.Mechanism(
        belt=fx.Mass(m=1.0),
        mass=fx.Mass(m=1e6),
        damper=fx.Damper("belt", "mass", d=2.0),
        drive=fx.Position("belt", 0.0),
    )
    force = np.where(np.arange(11) % 2, -0.2, -0.2 - 1e-6)
    force = fx.Record(t, {"drive": 0.1 * t}, {"damper.f": force}, sd={"damper.f": 1e-3})
    found = fx.kalman_filter(machine, force, start_sd={"mass.v": 1e-6}, members=1)
    np.testing.assert_allclose(found.innovation, 0.0, atol=1e-5)
    with pytest.raises(ValueError, match="names 'belt.s', but another body or a motion determines"):
        fx.kalman_filter(machine, force, start_sd={"belt.s": 0.1})
