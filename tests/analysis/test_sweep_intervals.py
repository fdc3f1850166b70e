"""Intervals of sweeps, unless another account is asked for."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.signal import lfilter

import frictax as fx

TRUE = {"F_prop": 2.0, "F_Coulomb": 7.0, "F_Stribeck": 4.0, "fexp": 10.0}
HALF = np.geomspace(0.01, 1.5, 100)
SPEEDS = np.concatenate([-HALF[::-1], HALF])
START = fx.Stribeck(F_prop=2.3, F_Coulomb=6.0, F_Stribeck=4.6, fexp=8.5)


def force(v: np.ndarray, dip: float = 4.0) -> np.ndarray:
    size = np.abs(v)
    return np.sign(v) * (7.0 + 2.0 * size + dip * np.exp(-10.0 * size))


def coloured(n: int, denominator: list[float], rng: np.random.Generator) -> np.ndarray:
    """An autoregression of size 0.1, which began long ago."""
    response = np.asarray(lfilter([1.0], denominator, np.eye(1, 4000)[0]))
    long = np.asarray(lfilter([1.0], denominator, rng.standard_normal(4000)))
    return 0.1 * long[-n:] / np.sqrt(np.sum(response**2))


def narrowband(n: int, rng: np.random.Generator) -> np.ndarray:
    """With a memory of 24 rows and a period of 40."""
    radius = np.exp(-1 / 24)
    return coloured(n, [1.0, -2 * radius * np.cos(2 * np.pi / 40), radius**2], rng)


ERRORS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "AR .9": lambda rng: coloured(200, [1.0, -0.9], rng),
    "narrowband": lambda rng: narrowband(200, rng),
}


def judged(fits: list[fx.FitResult]) -> tuple[np.ndarray, np.ndarray]:
    """How often each interval holds the truth, and the median half over 1.96 times the spread of
    the estimates.
    """
    names = fits[0].names
    error = np.array([f.x - [TRUE[n] for n in names] for f in fits])
    half = np.array([f.uncertainty().half_widths for f in fits])
    held = np.mean(np.abs(error) <= half, axis=0)
    return held, np.median(half, axis=0) / (1.96 * np.std(error, axis=0))


@pytest.mark.slow_after(0)
@pytest.mark.parametrize("kind", ERRORS)
def test_intervals_of_a_sweep_hold_the_truth_in_88_per_cent_of_80_whatever_rows_remember(
    kind: str,
) -> None:
    rng = np.random.default_rng(7)
    sweeps = [
        fx.Sweep(SPEEDS, force(SPEEDS) + ERRORS[kind](rng), velocity_unit="m/s", force_unit="N")
        for _ in range(80)
    ]
    held, width = judged([fx.fit(START, sweep) for sweep in sweeps])
    assert np.all(held >= 0.88), held  # 95 % of 80 have a standard deviation of 2.4 %
    assert np.all(width <= 1.5), width


@pytest.mark.slow_after(0)
def test_noisy_speeds_bias_estimates_and_intervals_hold_the_truth_in_85_per_cent_of_240() -> None:
    rng = np.random.default_rng(8)
    fits = []
    for _ in range(240):
        seen = SPEEDS * (1.0 + 0.02 * rng.standard_normal(200))
        sweep = fx.Sweep(seen, np.round(force(SPEEDS), 2), velocity_unit="m/s", force_unit="N")
        fits.append(fx.fit(START, sweep))
    held, width = judged(fits)
    assert np.all(held >= 0.85), held  # 90 % of 240 have a standard deviation of 1.9 %
    assert np.all(width <= 1.5), width


def test_rows_that_remember_as_they_stand_are_told_in_whatever_order_the_speeds_come() -> None:
    rng = np.random.default_rng(3)
    v = rng.permutation(np.linspace(0.1, 2.0, 60))
    error = coloured(60, [1.0, -0.9], rng)
    sweep = fx.Sweep(v, force(v, 0.0) + error, velocity_unit="m/s", force_unit="N")
    found = fx.fit(fx.Coulomb, sweep)
    assert "rows of 60 rows, in the order of the table" in found.spread.says
    assert "Intervals (Guarded): residuals correlated" in str(found)
    assert [n.numbers["of"] for n in found.notices if n.code.startswith("memory-")] == ["sweep"]


def test_replicates_of_a_speed_count_as_one_row_where_speeds_differ_by_more_than_they_do() -> None:
    rng = np.random.default_rng(0)
    v = np.repeat(np.geomspace(0.1, 1.5, 8), 5)
    shared, own = np.repeat(rng.standard_normal(8), 5), rng.standard_normal(40)
    sweeps = [
        fx.Sweep(v, force(v, 0.0) + e, velocity_unit="m/s", force_unit="N")
        for e in (0.1 * shared + 0.03 * own, 0.1 * own)
    ]
    alike, white = (fx.fit(fx.Coulomb, sweep) for sweep in sweeps)
    assert "with rows of one speed as one row" in alike.spread.says
    assert all(dof <= 6 for dof in alike.degrees_of_freedom.values())
    assert "rows of one speed" not in white.spread.says


def test_a_sweep_of_white_rows_prints_the_intervals_of_white_rows_and_says_so() -> None:
    v = np.linspace(0.1, 2.0, 12)
    error = 0.1 * np.random.default_rng(1).standard_normal(12)
    found = fx.fit(fx.Coulomb, fx.Sweep(v, force(v, 0.0) + error, None, None))
    assert str(found).count("Intervals (Guarded): independent residuals (10 degrees") == 1
    np.testing.assert_array_equal(
        found.uncertainty().half_widths, found.uncertainty(fx.White()).half_widths
    )
    band = found.band(v)
    assert np.all(band.upper > band.lower)


def test_given_deviations_keep_the_quantile_of_a_normal_law() -> None:
    v = np.linspace(0.1, 2.0, 6)
    error = 0.1 * np.random.default_rng(1).standard_normal(6)
    sweep = fx.Sweep(v, force(v, 0.0) + error, np.full(6, 0.1), sigma_known=True)
    u = fx.fit(fx.Coulomb, sweep).uncertainty()
    np.testing.assert_allclose(u.half_widths, 1.959964 * np.array(list(u.standard_errors.values())))


@pytest.mark.slow
def test_many_fits_of_a_sweep_have_the_intervals_of_single_ones() -> None:
    rng = np.random.default_rng(5)
    sweep = fx.Sweep(SPEEDS, force(SPEEDS), velocity_unit="m/s", force_unit="N")
    forces = force(SPEEDS) + np.stack([coloured(200, [1.0, -0.9], rng) for _ in range(3)])
    many = fx.fit_many(START, sweep, forces)
    for f, low, high in zip(forces, many.lower, many.upper, strict=True):
        one = fx.fit(START, fx.Sweep(SPEEDS, f, velocity_unit="m/s", force_unit="N"))
        np.testing.assert_allclose([e.lower for e in one.estimates], low, rtol=1e-4)
        np.testing.assert_allclose([e.upper for e in one.estimates], high, rtol=1e-4)


def test_of_five_rows_no_memory_is_told() -> None:
    v, f = np.array([-0.1, 0.1, 0.5, 1.0, -0.5]), np.array([-5.2, 5.1, 6.0, 7.1, -6.1])
    found = fx.fit(fx.Coulomb, fx.Sweep(v, f, velocity_unit="m/s", force_unit="N"))
    assert "independent residuals" in found.spread.says
    assert {n.code for n in found.spread.notices} == {"autocorrelation-not-excluded"}
