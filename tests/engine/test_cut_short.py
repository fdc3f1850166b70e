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
    "adaptive": fx.Adaptive(max_events=40, max_steps=60),
    "on samples": fx.OnSamples(max_events=40),
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
        swing = jnp.where(late & (way == SWINGS) & (y[0] > 0.6), 1e3 * jnp.cos(1e4 * t), 0.0)
        rate = p * jnp.where(late, 2.0, 1.0)
        return jnp.stack([rate + bad + swing, 1.0 * y[0]])

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        _, way = args
        k = mode[0]
        margin = jnp.where(k == 0, 0.3, jnp.where(k == 1, 0.6, 0.6 + 1e-3 * (k - 1))) - y[0]
        goes_on = (way == WHOLE) | (way == RATE_NAN) | (way == MARGIN_NAN) | (way == SWINGS)
        margin = jnp.where((k >= 1) & goes_on, 1.0, margin)
        margin = jnp.where((k >= 2) & (way == CHATTERS), -1.0, margin)
        return jnp.where((way == MARGIN_NAN) & (y[0] > 0.6), jnp.nan, margin)[None]

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        _, way = args
        second = mode[0] == 1
        spoilt = jnp.where(second & (way == JUMPS_TO_NAN), jnp.nan, 1.0)
        return y * spoilt, mode + 1, jnp.where(second & (way == NO_MODE), 1, 0)


def path(x: Any, way: Any, engine: Any, ts: Any = TS) -> fx.Path:
    start = jnp.stack([x[1], 0.0 * x[1]])
    return fx.walk(Rising(), start, jnp.zeros(1, int), ts, (x[0], way), engine)


def shown(x: Any, way: Any, engine: Any) -> Any:
    """Samples before and after the cut, one sum over all, and times of an event and of padding."""
    run = path(x, way, engine)
    before, after = run.ys[4, 0], run.ys[-1, 0]
    return jnp.stack([before, after, jnp.sum(run.ys), run.times[0], run.times[39]])


@pytest.mark.parametrize("name", list(ENGINES))
def test_derivatives_after_every_kind_of_cut_are_nan_in_both_modes_and_right_before(
    name: str,
) -> None:
    engine = ENGINES[name]
    values = jax.jit(lambda way: (shown(X, way, engine), path(X, way, engine).result))
    along = jax.jit(lambda way, d: jax.jvp(lambda x: shown(x, way, engine), (X,), (d,))[1])
    back = jax.jit(lambda way, c: jax.vjp(lambda x: shown(x, way, engine), X)[1](c)[0])
    p, y = 0.9, 0.05
    # y = 0.3 + 2 p (t - (0.3 - y) / p) at t = 0.5
    expected = np.array([[2 * 0.5, 2.0], [-(0.3 - y) / p**2, -1.0 / p]])
    for way, ends in RESULTS.items():
        if way == SWINGS and name == "on samples":
            continue
        value, result = values(way)
        assert bool(result == getattr(fx.Result, ends)), ends
        forward = np.stack([along(way, d) for d in jnp.eye(2)], axis=1)
        reverse = np.stack([back(way, c) for c in jnp.eye(5)])
        cut = way != WHOLE
        assert np.isnan(value[1:3]).tolist() == [cut, cut], ends
        for slopes in (forward, reverse):
            assert np.max(np.abs(slopes[[0, 3]] - expected)) <= 1e-7, ends
            assert np.all(np.isnan(slopes[1:3]) == cut), ends
            # Many events fill the log, so that its last entry is one.
            assert np.all(np.isnan(slopes[4]) == (cut and way != MANY)), ends
