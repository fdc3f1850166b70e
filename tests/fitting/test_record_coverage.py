"""Intervals of fits to records hold the truth as often as they say. The seeds were chosen once."""

import functools

import numpy as np
import pytest

import frictax as fx
from rigs import AWAY_LAW, FINE, NOISE, TRUE_LAW, block

pytestmark = pytest.mark.usefixtures("optimised_fits")
T = np.linspace(0.0, 10.0, 2001)
# problem P4 of the benchmarks
SLIDING = 3 * np.sin(2 * np.pi * T) + 3 * np.sin(2 * np.pi * 0.37 * T)
STICKING = 3 * np.sin(2 * np.pi * 0.5 * T) + 1.5 * np.sin(2 * np.pi * 0.37 * T)


def draws(
    u: np.ndarray, peak: float, count: int, free: list[str], start_peak: float
) -> tuple[fx.Replicates, float]:
    """Fits to `count` noisy speeds, and the share of the time that the machine is stuck."""
    parts = {**dict(block(peak=peak).named_parts()), "drive": fx.Force("mass", fx.Sampled(T, u))}
    run = fx.simulate(fx.Mechanism(**parts), T, FINE)
    clean = np.asarray(run["mass"].v)
    speeds = clean + NOISE * np.random.default_rng(0).standard_normal((count, T.size))
    many = fx.fit_many(
        block(peak=start_peak, **AWAY_LAW),
        fx.Record(T, {"drive": u}, {"mass.v": clean}),
        speeds,
        free=free,
    )
    return many, float(np.mean(np.asarray(run["friction"].mode) == 0))


def coverage(many: fx.Replicates, truth: np.ndarray) -> np.ndarray:
    return np.mean((many.lower <= truth) & (truth <= many.upper), axis=0)


@functools.cache
def sliding() -> fx.Replicates:
    return draws(SLIDING, 1.0, 400, ["friction.f_pos"], 1.0)[0]


@pytest.mark.slow
def test_95_per_cent_intervals_of_four_law_parameters_hold_the_truth_in_92_to_99_per_cent() -> None:
    held = coverage(sliding(), np.array(list(TRUE_LAW.values())))
    assert sliding().converged.all()
    assert np.all((held >= 0.92) & (held <= 0.99)), held


@pytest.mark.slow
def test_standard_errors_are_the_scatter_of_estimates() -> None:
    rms = np.sqrt(np.mean(sliding().standard_errors ** 2, axis=0))
    ratio = rms / np.std(sliding().values, axis=0)  # of two accounts the wider
    assert np.all((ratio > 0.97) & (ratio < 1.2)), ratio  # 400 tell the scatter to 1/sqrt(800)


@pytest.mark.slow
def test_estimates_are_unbiased_to_four_errors_of_their_mean() -> None:
    bias = np.mean(sliding().values, axis=0) - np.array(list(TRUE_LAW.values()))
    assert np.all(np.abs(bias) < 4 / np.sqrt(400) * np.std(sliding().values, axis=0))


@pytest.mark.slow
def test_where_it_sticks_peak_and_law_are_covered_in_90_per_cent_of_200_records() -> None:
    many, stuck = draws(STICKING, 1.2, 200, ["friction"], 1.1)
    assert stuck > 0.1
    assert many.names[-1] == "friction.peak"
    held = coverage(many, np.array([*TRUE_LAW.values(), 1.2]))
    assert many.converged.all()
    assert np.all(held >= 0.9), held
    width = np.median(many.upper - many.lower, axis=0) / 2 / 1.96 / np.std(many.values, axis=0)
    assert np.all((width > 0.95) & (width < 1.5)), width


@pytest.mark.slow
def test_many_fits_at_once_are_the_single_fits() -> None:
    t = T[:801:2]
    u, away = STICKING[:801:2], block(peak=1.1, **AWAY_LAW)
    parts = {**dict(block().named_parts()), "drive": fx.Force("mass", fx.Sampled(t, u))}
    clean = np.asarray(fx.simulate(fx.Mechanism(**parts), t)["mass"].v)
    speeds = clean + NOISE * np.random.default_rng(0).standard_normal((2, t.size))
    many = fx.fit_many(
        away, fx.Record(t, {"drive": u}, {"mass.v": clean}), {"mass.v": speeds}, free=["friction"]
    )
    for k in range(2):
        one = fx.fit(away, fx.Record(t, {"drive": u}, {"mass.v": speeds[k]}), free=["friction"])
        np.testing.assert_allclose(many.values[k], [e.value for e in one.estimates], rtol=1e-6)
        np.testing.assert_allclose(
            many.standard_errors[k], [e.standard_error for e in one.estimates], rtol=1e-5
        )
        np.testing.assert_allclose(many.lower[k], [e.lower for e in one.estimates], rtol=1e-6)
