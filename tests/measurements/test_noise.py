"""The noise of a channel, read from the channel itself."""

import numpy as np
import pytest
from scipy.signal import lfilter

from frictax.measurements.noise import noise_of, white_noise_of

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
