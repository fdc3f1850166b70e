"""Derivatives of runs that are cut short: NaN where the value is unknown, and right before."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx

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


def shown(x: Any, way: Any, engine: Any) -> Any:
    """Samples before and after the cut, one sum over all, times of an event and of padding; and how
    the run ended.
    """
    run = path(x, way, engine)
    before, after = run.ys[3, 0], run.ys[-1, 0]
    rows = jnp.stack([before, after, jnp.sum(run.ys), run.times[0], run.times[39]])
    return rows, run.result


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", list(ENGINES))
def test_derivatives_after_every_kind_of_cut_are_nan_in_both_modes_and_right_before(
    name: str,
) -> None:
    engine = ENGINES[name]

    def ahead(way: Any) -> Any:
        run = lambda x: shown(x, way, engine)  # noqa: E731
        along = lambda d: jax.jvp(run, (X,), (d,), has_aux=True)  # noqa: E731
        return jax.vmap(along, out_axes=(None, -1, None))(jnp.eye(2))

    ahead = jax.jit(ahead)
    back = jax.jit(lambda way, c: jax.vjp(lambda x: shown(x, way, engine)[0], X)[1](c)[0])
    p, y = 0.9, 0.05
    # The sample at 0.375 s is 0.3 + 2 p (t - t_0), where the event is at t_0 = (0.3 - y) / p.
    expected = np.array([[2 * 0.375, 2.0], [-(0.3 - y) / p**2, -1.0 / p]])
    for way, ends in RESULTS.items():
        if way == SWINGS and name == "on samples":
            continue
        value, forward, result = ahead(way)
        assert bool(result == getattr(fx.Result, ends)), ends
        reverse = np.stack([back(way, c) for c in jnp.eye(5)])
        cut = way != WHOLE
        assert jnp.isnan(value[1:3]).tolist() == [cut, cut], ends
        for slopes in (np.asarray(forward), reverse):
            assert np.max(np.abs(slopes[[0, 3]] - expected)) <= 1e-7, ends
            assert np.all(np.isnan(slopes[1:3]) == cut), ends
            # Many events fill the log, so that its last entry is one.
            assert np.all(np.isnan(slopes[4]) == (cut and way != MANY)), ends
