"""The signals: against independent formulas, right-continuous, with pieces that end
where they say.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

import frictax as fx

size, start, positive = (
    st.floats(-5.0, 5.0, allow_subnormal=False),
    st.floats(-3.0, 3.0),
    st.floats(0.05, 4.0),
)
TIMES = np.linspace(-4.0, 12.0, 331)


def trapezoid(
    t: np.ndarray,
    a: float,
    rising: float,
    width: float,
    falling: float,
    period: float,
    n: float,
    offset: float,
    t0: float,
):
    k = np.floor((t - t0) / period)
    x = t - t0 - k * period
    corners = np.cumsum([0.0, rising, width, falling])
    up = np.where(x < rising, x / max(rising, 1e-300), 1.0)
    down = np.where(x < corners[3], (corners[3] - x) / max(falling, 1e-300), 0.0)
    shape = np.where(x < corners[2], up, down)
    return offset + a * np.where((t < t0) | ((n >= 0) & (k >= n)), 0.0, shape)


PIECES = 14


@eqx.filter_jit
def evaluated(signal: fx.AbstractSignal, times: jax.Array) -> jax.Array:
    return signal(times)


@eqx.filter_jit
def pieces(signal: fx.AbstractSignal) -> tuple[jax.Array, ...]:
    """Ends of the first pieces; the piece found amid each; at each beginning the piece's own value
    and the signal's, a little later.
    """
    k = jnp.arange(PIECES)
    end = jax.vmap(signal.end)(k)
    begin = jnp.concatenate([jnp.minimum(end[:1] - 1.0, 0.0), end[:-1]])
    amid = jnp.where(jnp.isfinite(end), 0.5 * (begin + end), begin + 1.0)
    later = begin + 1e-9
    return end, jax.vmap(signal.piece)(amid), jax.vmap(signal.on_piece)(later, k), signal(later)


def assert_follows(
    signal: fx.AbstractSignal, expected: np.ndarray, near: np.ndarray | float = np.inf
) -> None:
    """Equality at `TIMES`, but for those within 1e-9 of a jump, `near` being the distance."""
    away = np.broadcast_to(near > 1e-9, TIMES.shape)
    assert (
        np.max(np.abs(np.asarray(evaluated(signal, jnp.asarray(TIMES))) - expected)[away]) <= 1e-7
    )


def assert_pieces_are_consistent(signal: fx.AbstractSignal) -> None:
    """Ends rise; a time amid a piece is found on it; right after a switch the signal has the value
    of the piece that begins there.
    """
    end, found, own, value = map(np.asarray, pieces(signal))
    last = int(np.sum(np.isfinite(end)))
    assert np.all(np.diff(end[:last]) >= -1e-12)
    assert np.all(np.isinf(end[last:]))
    # Pieces of no length are passed over at once.
    lasting = [k for k in range(min(last + 1, PIECES)) if k == 0 or end[k] - end[k - 1] > 1e-6]
    assert all(int(found[k]) == k for k in lasting if k < last)
    assert np.all(own[lasting] == value[lasting])


@given(size, st.floats(0.0, 3.0), st.floats(-10.0, 10.0), size, start)
def test_sine_follows_its_formula(
    a: float, f: float, phase: float, offset: float, t0: float
) -> None:
    signal = fx.Sine(amplitude=a, f=f, phase=phase, offset=offset, startTime=t0)
    assert_follows(
        signal, offset + np.where(TIMES < t0, 0.0, a * np.sin(2 * np.pi * f * (TIMES - t0) + phase))
    )


@given(st.floats(0.05, 3.0), st.floats(-10.0, 10.0), start)
def test_the_pieces_of_a_sine_end_at_its_extrema(f: float, phase: float, t0: float) -> None:
    signal = fx.Sine(f=f, phase=phase, startTime=t0)
    extrema = np.asarray(pieces(signal)[0])[1:]
    assert np.all(extrema >= t0 - 1e-12)
    assert np.allclose(np.diff(extrema), 0.5 / f)
    assert extrema[0] <= t0 + 0.5 / f + 1e-12
    assert np.allclose(np.abs(np.sin(2 * np.pi * f * (extrema - t0) + phase)), 1.0)
    assert_pieces_are_consistent(signal)
    assert not bool(signal.turns(jnp.array(0)))
    assert bool(signal.turns(jnp.array(1)))


@given(size, size, start)
def test_step_follows_its_formula(height: float, offset: float, t0: float) -> None:
    signal = fx.Step(height=height, offset=offset, startTime=t0)
    assert_follows(signal, offset + height * (TIMES >= t0))
    assert float(signal(t0)) == offset + height
    assert_pieces_are_consistent(signal)


@given(size, st.one_of(st.just(0.0), positive), size, start)
def test_ramp_follows_its_formula(height: float, duration: float, offset: float, t0: float) -> None:
    signal = fx.Ramp(height=height, duration=duration, offset=offset, startTime=t0)
    expected = (
        offset + height * (TIMES >= t0)
        if duration == 0
        else offset + height * np.clip((TIMES - t0) / duration, 0.0, 1.0)
    )
    assert_follows(signal, expected)
    assert_pieces_are_consistent(signal)


@given(
    size,
    st.sampled_from([0.0, 10.0, 50.0, 87.5, 100.0]),
    positive,
    st.sampled_from([-1, 0, 2]),
    size,
    start,
)
def test_pulse_follows_its_formula(
    a: float, width: float, period: float, n: int, offset: float, t0: float
) -> None:
    signal = fx.Pulse(
        amplitude=a, width=width, period=period, nperiod=n, offset=offset, startTime=t0
    )
    k = np.floor((TIMES - t0) / period)
    x = TIMES - t0 - k * period
    high = (TIMES >= t0) & (x < width / 100 * period) & ((n < 0) | (k < n))
    near = np.minimum(np.minimum(x, period - x), np.abs(x - width / 100 * period))
    assert_follows(signal, offset + a * high, near)
    assert_pieces_are_consistent(signal)


@given(
    size,
    st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4),
    positive,
    st.sampled_from([-1, 0, 2]),
    size,
    start,
)
def test_trapezoid_follows_its_formula(
    a: float, parts: list[float], period: float, n: int, offset: float, t0: float
) -> None:
    rising, width, falling = (period * p / sum(parts) for p in parts[:3])
    values = (a, rising, width, falling, period, n, offset, t0)
    names = ("amplitude", "rising", "width", "falling", "period", "nperiod", "offset", "startTime")
    signal = fx.Trapezoid(**dict(zip(names, values, strict=True)))
    assert_follows(
        signal,
        trapezoid(TIMES, *values),
        np.abs(TIMES - t0 - period * np.round((TIMES - t0) / period)),
    )
    assert_pieces_are_consistent(signal)


def test_a_trapezoid_without_rise_and_fall_is_a_pulse() -> None:
    pulse = fx.Pulse(amplitude=2.0, width=25.0, period=2.0, startTime=0.3)
    wave = fx.Trapezoid(amplitude=2.0, width=0.5, period=2.0, startTime=0.3)
    t = jnp.linspace(-1.0, 7.0, 97) + 1e-4
    assert jnp.array_equal(pulse(t), wave(t))


samples = st.lists(st.tuples(st.floats(0.01, 2.0), size), min_size=1, max_size=8).map(
    lambda rows: (np.cumsum([gap for gap, _ in rows]) - 1.0, np.array([x for _, x in rows]))
)


@given(samples)
def test_sampled_joins_its_samples_by_straight_lines(record: tuple[np.ndarray, np.ndarray]) -> None:
    times, values = record
    signal = fx.Sampled(times, values)
    assert_follows(signal, np.interp(TIMES, times, values))
    assert_pieces_are_consistent(signal)


@given(samples)
def test_sampled_with_hold_keeps_each_sample_until_the_next(
    record: tuple[np.ndarray, np.ndarray],
) -> None:
    times, values = record
    signal = fx.Sampled(times, values, hold=True)
    assert_follows(signal, values[np.maximum(np.searchsorted(times, TIMES, side="right") - 1, 0)])
    assert np.array_equal(jax.vmap(signal)(jnp.asarray(times)), values)
    assert_pieces_are_consistent(signal)


@pytest.mark.parametrize("hold", [False, True])
def test_a_sampled_signal_that_stays_on_a_piece_is_itself_there(hold: bool) -> None:
    times, values = jnp.array([0.0, 1.0, 3.0, 3.5]), jnp.array([2.0, -1.0, 4.0, 0.5])
    at, k = jnp.array([-1.0, 0.25, 2.5, 3.25, 9.0]), jnp.arange(5)

    def read(values, stays: bool) -> Any:
        def one(t, k) -> Any:
            signal = fx.Sampled(times, values, hold=hold)
            return signal.staying(k).on_piece(t, 0 * k) if stays else signal.on_piece(t, k)

        return jax.vmap(one)(at, k)

    np.testing.assert_array_equal(read(values, True), fx.Sampled(times, values, hold=hold)(at))
    slopes = [jax.jacrev(lambda v, s=s: read(v, s))(values) for s in (True, False)]
    np.testing.assert_array_equal(*slopes)
    line = fx.Sampled(times, values).staying(jnp.array(2))
    assert max(np.size(x) for x in jax.tree.leaves(line)) == 1  # no table


def test_a_function_and_a_constant_have_one_piece() -> None:
    for signal, at_2 in ((fx.Function(lambda t: 3.0 * t), 6.0), (fx.Constant(4.0), 4.0)):
        assert float(signal(2.0)) == at_2
        assert int(signal.piece(jnp.array(100.0))) == 0
        assert np.isinf(float(signal.end(jnp.array(0))))


def test_a_number_becomes_a_constant_and_a_function_a_function() -> None:
    assert isinstance(fx.Force("mass", 3).f, fx.Constant)
    assert isinstance(fx.Force("mass", np.float32(3.0)).f, fx.Constant)
    assert isinstance(fx.Force("mass", jnp.sin).f, fx.Function)


@pytest.mark.parametrize(
    ("signal", "k", "t"),
    [
        (fx.Sine(2.0, f=0.3, phase=0.2, startTime=0.1), 2, 2.0),
        (fx.Ramp(3.0, duration=2.0, startTime=0.5), 1, 1.0),
        (fx.Trapezoid(2.0, rising=1.0, width=1.0, falling=1.0, period=4.0), 3, 2.5),
        (fx.Sampled([0.0, 1.0, 3.0], [0.0, 2.0, 0.0]), 2, 2.0),
    ],
)
def test_the_rate_on_a_piece_equals_the_central_difference(
    signal: fx.AbstractSignal, k: int, t: float
) -> None:
    piece = jnp.array(k)
    assert int(signal.piece(jnp.array(t))) == k
    rate = jax.grad(lambda ti: signal.on_piece(ti, piece))(jnp.array(t))
    h = 1e-6
    assert float(rate) == pytest.approx(float(signal(t + h) - signal(t - h)) / (2 * h), abs=1e-7)


@pytest.mark.slow
def test_a_run_is_differentiated_by_what_a_function_closes_over() -> None:
    """1.2*2 N are reached by r*t at t = 2.4/r."""

    def breakaway(r: jax.Array) -> jax.Array:
        block = fx.Mechanism(
            mass=fx.Mass(m=1.0),
            friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0), peak=1.2),
            drive=fx.Force("mass", lambda t: r * t),
        )
        return fx.simulate(block, jnp.array([0.0, 2.0])).events.time[0]

    rates = jnp.array([2.0, 3.0])
    times, slopes = jax.vmap(jax.value_and_grad(breakaway))(rates)
    assert np.allclose(times, 2.4 / rates, rtol=1e-6)
    assert np.allclose(slopes, -2.4 / rates**2, rtol=1e-6)
    assert float(jax.jit(jax.jacfwd(breakaway))(2.0)) == pytest.approx(-2.4 / 2.0**2, rel=1e-6)
    assert fx.Function(jnp.sin).f is jnp.sin  # closes over nothing that is traced


def test_a_module_keeps_its_own_parameters_under_a_derivative() -> None:
    class Line(eqx.Module):
        k: jax.Array

        def __call__(self, t: jax.Array) -> jax.Array:
            return self.k * t

    def at_3(k: jax.Array) -> jax.Array:
        signal: Any = fx.Function(Line(k))
        assert isinstance(signal.f, Line)
        return signal(3.0)

    assert float(jax.grad(at_3)(2.0)) == 3.0


def test_a_function_that_fails_under_a_derivative_says_the_same() -> None:
    with pytest.raises(ValueError, match="must be a function of one time"):
        jax.grad(lambda r: fx.Function(lambda t, other: r * t * other)(1.0))(2.0)  # pyright: ignore
