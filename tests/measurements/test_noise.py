"""The noise of a channel, read from the channel itself."""

import numpy as np
import pytest
from scipy.signal import lfilter

from frictax.measurements.noise import cutoff_of, noise_of, white_noise_of, white_share

T = np.arange(4000) / 200.0
MOTION = np.sin(2 * np.pi * 0.7 * T)


def test_white_noise_is_read_through_a_motion() -> None:
    y = MOTION + 0.003 * np.random.default_rng(1).standard_normal(T.size)
    assert white_noise_of(y) == pytest.approx(0.003, rel=0.1)


def test_of_noise_that_remembers_only_what_remembers_nothing_is_white() -> None:
    shocks = np.random.default_rng(2).standard_normal(T.size)
    noise = 0.003 * np.sqrt(1 - 0.9**2) * lfilter([1.0], [1.0, -0.9], shocks)
    assert noise_of(MOTION + noise) > 1.3 * white_noise_of(MOTION + noise)
    assert white_noise_of(MOTION + noise) < 0.0016


def test_an_encoder_s_steps_are_worth_a_twelfth_of_their_square() -> None:
    y = 0.01 * np.round(MOTION / 0.01)
    assert white_noise_of(y) == pytest.approx(0.01 / np.sqrt(12.0), rel=0.05)


def test_of_few_samples_there_is_no_telling() -> None:
    assert np.isnan(white_noise_of(MOTION[:19]))


def test_a_filter_ends_where_a_motion_sinks_into_its_noise() -> None:
    """The spectrum of a motion whose acceleration jumps falls by 1/f^6: ten thousand times the
    noise's power are worth a factor of 4.6.
    """
    motion = np.abs(MOTION) * MOTION
    random = np.random.default_rng(3).standard_normal(T.size)
    fine, coarse = (cutoff_of(T, motion + sd * random, 1) for sd in (1e-5, 1e-3))
    assert 3.0 < coarse < 15.0
    assert fine / coarse == pytest.approx(4.6, rel=0.4)


def test_a_tone_above_a_gap_in_the_spectrum_is_motion() -> None:
    random = np.random.default_rng(4).standard_normal(T.size)
    motion = MOTION + 0.02 * np.sin(2 * np.pi * 23.0 * T)
    assert 23.0 < cutoff_of(T, motion + 0.003 * random, 1) < 25.0


def test_where_there_is_no_noise_no_filter_is_needed_and_noise_alone_leaves_four_periods() -> None:
    assert cutoff_of(T, np.zeros(T.size), 1) == np.inf
    random = np.random.default_rng(5).standard_normal(T.size)
    assert cutoff_of(T, random, 1) == pytest.approx(4.0 / T[-1], rel=0.2)


def test_times_that_are_not_even_and_a_gap_are_no_noise() -> None:
    random = np.random.default_rng(6)
    t = np.cumsum(np.clip(1 + 0.25 * random.standard_normal(T.size), 0.4, 1.8)) / 200.0
    t = t[(t < 7.0) | (t > 7.4)]
    x = np.sin(2 * np.pi * 0.7 * t) + 1e-3 * random.standard_normal(t.size)
    assert 0.7 < cutoff_of(t, x, 1) < 10.0


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_white_noise_of_noise_of_first_order_is_its_white_share(correlation: float) -> None:
    white = np.random.default_rng(0).standard_normal(40_000)
    noise = np.sqrt(1 - correlation**2) * lfilter([1], [1, -correlation], white)
    assert white_noise_of(noise) ** 2 == pytest.approx(white_share(np.array(correlation)), rel=0.05)
