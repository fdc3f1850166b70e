"""The memory of residuals on windows, of which each has a start of its own."""

import dataclasses

import numpy as np
import pytest
from scipy.signal import lfilter

from frictax.analysis.missing.likelihood import autoregression, window_autoregression
from frictax.analysis.missing.sensitivities import Sensitivities

COUNT, LONG = 15, 50  # windows, and samples of each


def left(rho: float, seed: int) -> tuple[Sensitivities, list[np.ndarray]]:
    """Noise less what a start and a slope of each window and one number of all take from it."""
    random, n = np.random.default_rng(seed), COUNT * LONG
    e = np.asarray(lfilter([1.0], [1.0, -rho], random.standard_normal(n + 500)))[500:]
    line = np.tile(np.linspace(-1.0, 1.0, LONG), COUNT)
    starts, window = np.column_stack([np.ones(n), line]), np.repeat(np.arange(COUNT), LONG)
    fitted = line[:, None] * np.sin(np.arange(n) / 20.0)[:, None]
    own = (window[:, None, None] == np.arange(COUNT)[:, None]) * starts[:, None]
    both = np.column_stack([own.reshape(n, -1), fitted])
    r = e - both @ np.linalg.lstsq(both, e, rcond=None)[0]
    stretches = [np.arange(LONG * k, LONG * (k + 1)) for k in range(COUNT)]
    return Sensitivities(r, fitted, np.zeros((n, 0)), starts, window), stretches


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.95])
@pytest.mark.parametrize("goes_on", [False, True])
def test_what_starts_took_from_a_memory_is_put_back(rho: float, goes_on: bool) -> None:
    found, variance, plain = [], [], []
    for seed in range(12):
        columns, stretches = left(rho, seed)
        model = window_autoregression(
            columns, [np.concatenate(stretches)] if goes_on else stretches
        )
        found.append(model.phi.sum())
        variance.append(model.noise)
        plain.append(autoregression([columns.residuals[s] for s in stretches])[0].sum())
    assert np.mean(found) == pytest.approx(rho, abs=0.04)
    assert np.mean(variance) == pytest.approx(1.0, rel=0.05)
    if rho >= 0.9:  # without, half of the memory is gone
        assert np.mean(plain) < rho - 0.08


def test_numbers_that_are_alike_and_residuals_that_are_smooth_have_a_memory_too() -> None:
    """As of a number that acts like the starts, and of noise in a narrow band."""
    columns, stretches = left(0.9, 1)
    n = columns.residuals.size
    for k in range(20):
        random = np.random.default_rng([3, k])
        alike = (
            columns.starts @ random.standard_normal((2, 3)) * (1.0 + 1e-9 * random.random((n, 3)))
        )
        smooth = np.asarray(lfilter([1.0], [1.0, -1.99, 0.9902], random.standard_normal(n)))
        model = window_autoregression(
            dataclasses.replace(columns, residuals=smooth, fitted=alike), stretches
        )
        assert 0 < model.noise < np.inf
        assert np.all(np.isfinite(model.phi))


def test_stretches_too_short_for_a_memory_have_none() -> None:
    columns, _ = left(0.9, 0)
    stretches = [np.arange(LONG * k, LONG * k + 5) for k in range(COUNT)]
    assert not window_autoregression(columns, stretches).phi.size
