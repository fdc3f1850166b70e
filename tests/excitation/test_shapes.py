"""Excitations: at rest at both ends, within their band, movable by their numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx

T = np.linspace(0.0, 10.0, 1001)
BAND = (0.1, 3.0)
SHAPES = [
    fx.FourierSeries(),
    fx.Multisine(),
    fx.CubicSpline(),
    fx.Staircase(),
    fx.Staircase(speeds=3, turn=0.5),
    fx.Ramps(),
    fx.Chirp(),
]
names = [repr(shape) for shape in SHAPES]


def _drawn(shape, seed=0):
    c = shape.draw(T, BAND, np.random.default_rng(seed))
    basis = shape.basis(T, BAND)
    return basis, c, np.asarray(shape.curve(basis, jnp.asarray(c)))


@pytest.mark.parametrize("shape", SHAPES, ids=names)
def test_excitation_begins_and_ends_at_rest(shape):
    _, _, curve = _drawn(shape)
    assert curve.shape == T.shape
    assert np.ptp(curve) > 0.1
    np.testing.assert_allclose(curve[[0, -1]], 0.0, atol=1e-9)
    np.testing.assert_allclose(np.diff(curve)[[0, -1]], 0.0, atol=2e-3 * np.ptp(curve))


@pytest.mark.parametrize("shape", SHAPES[:3], ids=names[:3])
def test_spectrum_lies_within_the_band(shape):
    _, _, curve = _drawn(shape)
    power = np.abs(np.fft.rfft(curve)) ** 2
    high = np.fft.rfftfreq(T.size, T[1]) > 1.5 * BAND[1]
    assert np.sum(power[high]) < 1e-2 * np.sum(power)


@pytest.mark.parametrize("shape", SHAPES, ids=names)
def test_every_number_moves_the_curve(shape):
    basis, c, _ = _drawn(shape)
    slope = np.asarray(jax.jacfwd(lambda c: shape.curve(basis, c))(jnp.asarray(c)))
    assert np.all(np.isfinite(slope))
    assert np.all(np.max(np.abs(slope), axis=0) > 0)


def test_bounded_shapes_stay_between_minus_one_and_one():
    for shape in SHAPES:
        if shape.bounded:
            for seed in range(5):
                assert np.max(np.abs(_drawn(shape, seed)[2])) <= 1.0 + 1e-9


def test_harmonics_of_a_series_are_those_of_its_duration():
    basis = fx.FourierSeries().basis(T, (0.25, 0.55))
    assert basis.shape == (T.size, 2 * 3)  # 0.3, 0.4, 0.5 Hz
    with pytest.raises(ValueError, match=r"must hold a multiple of 1/duration = 0.1 Hz"):
        fx.FourierSeries().basis(T, (0.11, 0.19))


def test_wrong_shapes_limits_and_margins_are_refused_in_a_sentence():
    for wrong, says in (
        (lambda: fx.Staircase(speeds=0), "speeds` must be a whole number >= 1, got 0"),
        (lambda: fx.Staircase(turn=-1.0), "turn` must be a time"),
        (lambda: fx.Ramps(levels=0), "levels` must be a whole number"),
        (lambda: fx.Limits(travel=0.0), "travel` must be a number > 0, got 0.0"),
        (lambda: fx.Limits(band=(3.0, 1.0)), "band` must be two frequencies"),
        (lambda: fx.Margins(slip=-1.0), "slip` must be a number >= 0"),
    ):
        with pytest.raises(ValueError, match=says):
            wrong()
