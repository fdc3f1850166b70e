"""Derivatives of runs that are cut short: NaN where the value is unknown, and right before."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.engine.tangents import over_samples

TS = jnp.linspace(0.0, 1.0, 9)
X = jnp.array([0.9, 0.05])
ENGINES = {
    "on samples": fx.OnSamples(max_events=40),
    "adaptive": fx.Adaptive(max_events=40, max_steps=200),
}
WHOLE, CHATTERS, JUMPS_TO_NAN, NO_MODE, RATE_NAN, MARGIN_NAN, MANY, SWINGS = range(8)
RESULTS = {
    WHOLE: "successful",
    CHATTERS: "chatter",
    JUMPS_TO_NAN: "nonfinite",
    NO_MODE: "inconsistent",
    RATE_NAN: "nonfinite",
    MARGIN_NAN: "nonfinite",
    MANY: "too_many_events",
    SWINGS: "max_steps_reached",  # by `Adaptive`
}


class Rising(fx.AbstractHybridSystem):
    """y rises at the rate p, and 2 p after the event at y = 0.3. At y = 0.6 follows what `way`
    says.
    """

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        p, way = args
        late = mode[0] >= 1
        bad = jnp.where(late & (way == RATE_NAN) & (y[0] > 0.6), jnp.nan, 0.0)
        swing = jnp.where((mode[0] >= 2) & (way == SWINGS), 1e3 * jnp.cos(1e4 * t), 0.0)
        rate = p * jnp.where(late, 2.0, 1.0)
        return jnp.stack([rate + bad + swing, 1.0 * y[0]])

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        _, way = args
        k = mode[0]
        margin = jnp.where(k == 0, 0.3, jnp.where(k == 1, 0.6, 0.6 + 1e-3 * (k - 1))) - y[0]
        goes_on = (way == WHOLE) | (way == RATE_NAN) | (way == MARGIN_NAN)
        margin = jnp.where((k >= 1) & goes_on | (k >= 2) & (way == SWINGS), 1.0, margin)
        margin = jnp.where((k >= 2) & (way == CHATTERS), -1.0, margin)
        return jnp.where((way == MARGIN_NAN) & (y[0] > 0.6), jnp.nan, margin)[None]

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        _, way = args
        second = mode[0] == 1
        spoilt = jnp.where(second & (way == JUMPS_TO_NAN), jnp.nan, 1.0)
        return y * spoilt, mode + 1, jnp.where(second & (way == NO_MODE), 1, 0)


def path(x: Any, way: Any, engine: Any, ts: Any = TS) -> Any:
    start = jnp.stack([x[1], 0.0 * x[1]])
    return fx.walk(Rising(), start, jnp.zeros(1, int), ts, (x[0], way), engine)


def shown(x: Any, ts: Any, way: Any, engine: Any) -> Any:
    """Return all samples, their sum, and the times of an event and of padding; and how the run
    ended.
    """
    run = path(x, way, engine, ts)
    rows = jnp.concatenate([run.ys[:, 0], jnp.sum(run.ys)[None], run.times[jnp.array([0, 39])]])
    return rows, run.result


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ENGINES))
def test_derivatives_after_every_kind_of_cut_are_nan_in_both_modes_and_right_before(
    name: str,
) -> None:
    engine, at = ENGINES[name], jnp.concatenate([X, TS])
    run = lambda at, way: shown(at[:2], at[2:], way, engine)  # noqa: E731

    def ahead(way: Any) -> Any:
        along = lambda d: jax.jvp(lambda at: run(at, way), (at,), (d,), has_aux=True)  # noqa: E731
        return jax.vmap(along, out_axes=(None, -1, None))(jnp.eye(at.size))

    ahead = jax.jit(ahead)
    back = jax.jit(lambda way, c: jax.vjp(lambda at: run(at, way)[0], at)[1](c)[0])
    p, y = 0.9, 0.05
    # The sample at 0.375 s is 0.3 + 2 p (t - t_0), where the event is at t_0 = (0.3 - y) / p.
    expected = np.array([[2 * 0.375, 2.0], [-(0.3 - y) / p**2, -1.0 / p]])
    for way, ends in RESULTS.items():
        if way == SWINGS and name == "on samples":
            continue
        value, forward, result = ahead(way)
        assert bool(result == getattr(fx.Result, ends)), ends
        reverse = np.stack([back(way, c) for c in jnp.eye(12)])
        cut = way != WHOLE
        assert jnp.isnan(value[8:10]).tolist() == [cut, cut], ends
        for slopes in (np.asarray(forward)[:, :2], reverse[:, :2]):
            assert np.max(np.abs(slopes[[3, 10]] - expected)) <= 1e-7, ends
            assert np.all(np.isnan(slopes[8:10]) == cut), ends
            # Many events fill the log, so that its last entry is one.
            assert np.all(np.isnan(slopes[11]) == (cut and way != MANY)), ends
        # By the sample times. The machine is at 0.6 after 0.444 s.
        forward, reverse = np.asarray(forward)[:9, 2:], reverse[:9, 2:]
        for slopes in (forward, reverse):
            speeds = np.diag([0.9, 0.9, 0.9, 1.8])[1:, 1:]
            assert np.max(np.abs(slopes[1:4, 1:4] - speeds)) <= 1e-7, ends
        if way in (CHATTERS, JUMPS_TO_NAN, NO_MODE):
            assert np.all(np.isnan(forward[4:])), ends
            assert np.all(np.any(np.isnan(reverse[4:]), axis=1)), ends


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ENGINES))
def test_lanes_that_are_cut_short_leave_the_derivatives_of_others_as_they_are(name: str) -> None:
    engine = ENGINES[name]
    ways = jnp.array([WHOLE, CHATTERS, NO_MODE, JUMPS_TO_NAN, WHOLE, RATE_NAN, MANY, WHOLE])
    speeds = 0.9 + 0.01 * jnp.arange(8)

    def last(p: Any, way: Any) -> Any:
        return path(jnp.stack([p, 0.05]), way, engine).ys[-1, 0]

    forward = jax.jit(jax.vmap(jax.jacfwd(last)))(speeds, ways)
    reverse = jax.jit(jax.vmap(jax.grad(last)))(speeds, ways)
    whole = np.asarray(ways) == WHOLE
    for slopes in map(np.asarray, (forward, reverse)):
        assert np.isnan(slopes).tolist() == (~whole).tolist()
        assert np.max(np.abs(slopes[whole] - 2.0)) <= 1e-7


def test_a_variable_at_samples_that_a_run_did_not_reach_is_unknown_though_no_state_is_in_it() -> (
    None
):
    ts = jnp.arange(4.0)
    ys = jnp.array([[1.0], [2.0], [jnp.nan], [jnp.nan]])
    modes = jnp.zeros((4, 1), jnp.int32)

    def shown(p: Any, ys: Any) -> Any:
        return over_samples(lambda t, y, mode: (p * y[0] ** 2, p + t), ts, ys, modes)

    for value in shown(3.0, ys):
        assert jnp.isnan(value).tolist() == [False, False, True, True]
    pull = jax.vjp(shown, 3.0, ys)[1]
    for row, finite in enumerate((True, True, False, False)):
        one = jnp.zeros(4).at[row].set(1.0)
        for c in ((one, jnp.zeros(4)), (jnp.zeros(4), one)):
            d_p, d_ys = pull(c)
            assert jnp.isfinite(d_p)
            # The run makes NaN of a cotangent of a state that it does not know.
            assert jnp.any(d_ys[2:] != 0) == (not finite)
    d_p, d_ys = pull((jnp.array([1.0, 1.0, 0.0, 0.0]), jnp.zeros(4)))
    assert (float(d_p), d_ys[:, 0].tolist()) == (5.0, [6.0, 12.0, 0.0, 0.0])
    # In forward mode the tangent of a state that is unknown is NaN.
    _, along = jax.jvp(shown, (3.0, ys), (1.0, jnp.where(jnp.isnan(ys), jnp.nan, 0.0)))
    for slopes in along:
        assert jnp.isnan(slopes).tolist() == [False, False, True, True]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ENGINES))
def test_variables_energies_and_event_times_of_a_run_that_is_cut_short_agree_in_both_modes(
    name: str,
) -> None:
    ts = jnp.linspace(0.0, 3.0, 16)
    engine = (fx.Adaptive if name == "adaptive" else fx.OnSamples)(max_events=4)

    def shown(F: Any) -> Any:
        machine = fx.Mechanism(
            wall=fx.Fixed(),
            mass=fx.Mass(m=1.0, v=0.2),
            spring=fx.Spring("wall", "mass", c=20.0),
            friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=F), peak=1.1),
            drive=fx.Force("mass", fx.Sine(amplitude=5.0, f=1.3)),
        )
        run = fx.simulate(machine, ts, engine, energy=True)
        energy, friction = run.energy, run["friction"]
        rows = [run["mass"].a, friction.f, friction.lossPower, run["drive"].f]
        return jnp.stack([*rows, energy.kinetic, energy.friction, energy.balance]), run.events.time

    (rows, times), (along, along_times) = jax.jit(lambda F: jax.jvp(shown, (F,), (1.0,)))(1.0)
    cut = np.isnan(np.asarray(rows))
    assert 0 < np.sum(cut[0]) < ts.size
    assert np.all(cut == cut[0])
    back = jax.jit(jax.vmap(lambda *c: jax.vjp(shown, 1.0)[1](c)[0]))
    units = jnp.eye(rows.size).reshape(rows.size, *rows.shape)
    reverse = np.asarray(back(units, jnp.zeros((rows.size, *times.shape)))).reshape(rows.shape)
    assert np.all(np.isnan(along) == cut)
    assert np.all(np.isnan(reverse) == cut)
    assert np.max(np.abs(reverse - along)[~cut]) <= 1e-9
    none = jnp.zeros((times.size, *rows.shape))
    of_times = np.asarray(back(none, jnp.eye(times.size)))
    padding = np.isinf(np.asarray(times))
    for slopes in map(np.asarray, (along_times, of_times)):
        assert np.all(np.isnan(slopes) == padding)
