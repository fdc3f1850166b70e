"""How much better a column explains residuals with a memory: against matrices, and by chance."""

import numpy as np
import pytest
from scipy.stats import binom

from frictax.analysis.errors.memory.wandering import SIZES
from frictax.analysis.missing.columns import Columns
from frictax.analysis.missing.likelihood import Likelihood

N = 240


def seen(
    noise: np.ndarray, fitted: np.ndarray, tried: np.ndarray
) -> tuple[Columns, list[list[np.ndarray]], np.ndarray]:
    """Columns of a fit that has taken what it can of `noise`, and what it left."""
    left = noise - fitted @ np.linalg.lstsq(fitted, noise, rcond=None)[0]
    n = len(noise)
    columns = Columns(left, fitted, tried, np.zeros((n, 0)), np.full(n, -1))
    return columns, [[np.arange(n)]], left


def walking(seed: int, times: float, n: int = N) -> np.ndarray:
    """White noise of size 1 and a walk of `times` as much at the end."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal(n) + times * np.cumsum(rng.standard_normal(n)) / np.sqrt(n)


def slow(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """What is fitted, and a bend that is tried."""
    t = np.linspace(-1.0, 1.0, n)
    return np.column_stack([np.ones(n), t]), np.column_stack([t**2])


def by_matrices(y: np.ndarray, x: np.ndarray, steps: np.ndarray) -> float:
    """n*log(variance) and the log of the determinant of noise beside the likeliest walk."""
    n, best = len(y), np.inf
    at = np.arange(1, n + 1)
    walk = np.minimum(at[:, None], at)
    for step in steps:
        whole = np.eye(n) + step * walk
        inverse = np.linalg.inv(whole)
        beta = np.linalg.solve(x.T @ inverse @ x, x.T @ inverse @ y)
        rest = y - x @ beta
        value = n * np.log(rest @ inverse @ rest / n) + np.linalg.slogdet(whole)[1]
        best = min(best, value)
    return float(best)


@pytest.mark.parametrize("seed", [0, 2, 3])  # of which no autoregression remains
def test_a_walk_beside_white_noise_is_that_of_matrices(seed: int) -> None:
    fitted, tried = slow()
    columns, channels, left = seen(walking(seed, 3.0) + 2.0 * tried[:, 0], fitted, tried)
    likelihood = Likelihood(columns, channels, left)
    assert likelihood.wanders
    assert likelihood.channels[0].order == 0
    both, size = np.column_stack([fitted, tried]), np.mean(left**2) / N * SIZES**2
    for own, x in ((likelihood.fitted([]), fitted), (likelihood.fitted([3]), both)):
        value = own.size + N * np.log(left @ left)  # counted in units of their norm
        noise = own.states[0].noise * float(left @ left)
        dense = by_matrices(left, x, np.append(0.0, size / noise))
        assert value == pytest.approx(dense, abs=0.6)  # waves faster than the slowest are left out


@pytest.mark.parametrize("times", [0.0, 1.0, 3.0])
def test_a_slow_column_is_worth_no_more_than_chance_beside_a_walk(times: float) -> None:
    fitted, tried = slow()
    count = 150
    chances = np.array(
        [
            Likelihood(*seen(walking(100 + s, times), fitted, tried)).chance([0])
            for s in range(count)
        ]
    )
    assert np.sum(chances < 0.01) <= binom.ppf(0.999, count, 0.02)


def test_what_wanders_hides_no_column_that_is_fast_and_hardly_one_that_is_large() -> None:
    fitted, bend = slow()
    fast = np.random.default_rng(0).standard_normal((N, 1))
    for s in range(20):
        noise = walking(500 + s, 3.0)
        assert Likelihood(*seen(noise + fast[:, 0], fitted, fast)).chance([0]) < 1e-4
        white = walking(500 + s, 0.0)
        assert Likelihood(*seen(white + 5.0 * bend[:, 0], fitted, bend)).chance([0]) < 1e-3
