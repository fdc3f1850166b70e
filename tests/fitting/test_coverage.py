"""Intervals hold the truth as often as they say. The seeds were chosen once."""

import jax.numpy as jnp
import numpy as np
import pytest

from frictax.fitting import Huber, Squares, fit_many
from frictax.laws import Stribeck
from frictax.measurements import Sweep
from sweeps import NOISE, SPEEDS, breakaway_case, true_values


def coverage(many, truth: np.ndarray) -> np.ndarray:
    assert many.converged.all()
    return np.mean((many.lower <= truth) & (truth <= many.upper), axis=0)


@pytest.fixture(scope="module")
def replicates(drive, truth):
    """1000 sweeps like drive 1 forward, fitted in one compilation."""
    sweep = drive(1, "positive")
    clean = np.asarray(truth(jnp.asarray(sweep.velocity)))
    forces = clean + NOISE * np.random.default_rng(0).standard_normal((1000, sweep.n))
    start = Stribeck(F_prop=1e-4, F_Coulomb=2e-3, F_Stribeck=1e-3, fexp=0.4, exponent=2.0)
    return fit_many(start, sweep, forces)


@pytest.mark.slow
def test_95_per_cent_intervals_hold_the_truth_in_93_to_97_per_cent_of_1000_sweeps(
    replicates, truth
) -> None:
    expected = np.array(
        [float(x) for x in (truth.F_prop, truth.F_Coulomb, truth.F_Stribeck, truth.fexp)]
    )
    held = coverage(replicates, expected)
    assert np.all((held >= 0.93) & (held <= 0.97)), held


@pytest.mark.slow
def test_standard_errors_are_the_scatter_of_1000_estimates_up_to_a_tenth_more(replicates) -> None:
    printed = np.sqrt(np.mean(replicates.standard_errors**2, axis=0))
    ratio = printed / np.std(replicates.values, axis=0)
    # a scatter of 1000 is known to 2.2 %
    assert np.all((ratio > 0.96) & (ratio < 1.1)), ratio


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "count", "least", "most"),
    [("Stribeck", 100, 0.88, 1.0), ("Stribeck", 400, 0.91, 0.985), ("Table", 400, 0.91, 0.985)],
    ids=["Stribeck of 100 sweeps", "Stribeck of 400", "Table of 400"],
)
def test_with_ten_breakaway_rows_95_per_cent_intervals_hold_peak_and_curve(
    truth, kind: str, count: int, least: float, most: float
) -> None:
    true, start = breakaway_case(kind, truth)
    sweep = Sweep(SPEEDS, np.ones(SPEEDS.size), breakaway=SPEEDS == 0)
    clean = np.asarray(true.predict(jnp.asarray(SPEEDS), jnp.asarray(SPEEDS == 0)))
    forces = clean + NOISE * np.random.default_rng(0).standard_normal((count, SPEEDS.size))
    held = coverage(fit_many(start, sweep, forces), true_values(true))
    assert np.all((held >= least) & (held <= most)), held


@pytest.mark.slow
@pytest.mark.parametrize("loss", [Squares(), Huber()], ids=["squares", "huber"])
def test_huber_costs_little_on_clean_noise_and_covers_too(truth, loss) -> None:
    v = np.linspace(0.2, 20.0, 40)
    clean = np.asarray(truth(jnp.asarray(v)))
    forces = clean + NOISE * np.random.default_rng(0).standard_normal((200, v.size))
    many = fit_many(truth, Sweep(v, clean), forces, loss=loss)
    held = coverage(
        many,
        np.array([float(x) for x in (truth.F_prop, truth.F_Coulomb, truth.F_Stribeck, truth.fexp)]),
    )
    assert np.all(held >= 0.9), held  # 95 % of 200 have a standard deviation of 1.5 %
