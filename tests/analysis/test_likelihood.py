"""How much better a column explains residuals with a memory: against matrices, and by chance."""

import numpy as np
import pytest
from scipy.stats import binom

from frictax.analysis.errors.autoregression import SIZES
from frictax.analysis.missing.likelihood import DRAWN, Likelihood
from frictax.analysis.missing.sensitivities import Sensitivities

N = 240


def seen(
    noise: np.ndarray, fitted: np.ndarray, tried: np.ndarray
) -> tuple[Sensitivities, list[list[np.ndarray]], np.ndarray]:
    """Columns of a fit that has taken what it can of `noise`, and what it left."""
    left = noise - fitted @ np.linalg.lstsq(fitted, noise, rcond=None)[0]
    n = len(noise)
    columns = Sensitivities(left, fitted, tried, np.zeros((n, 0)), np.full(n, -1))
    return columns, [[np.arange(n)]], left


def walking(seed: int, times: float, n: int = N) -> np.ndarray:
    """White noise of size 1 and a walk of `times` as much at the end."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal(n) + times * np.cumsum(rng.standard_normal(n)) / np.sqrt(n)


def slow(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """What is fitted, and a bend that is tried."""
    t = np.linspace(-1.0, 1.0, n)
    return np.column_stack([np.ones(n), t]), np.column_stack([t**2])


def by_matrices(y: np.ndarray, x: np.ndarray, steps: np.ndarray, other: np.ndarray) -> float:
    """n*log(variance) and the log of the determinant of noise beside what has the covariance
    `other`, as much of it as is likeliest.
    """
    n, best = len(y), np.inf
    for step in steps:
        whole = np.eye(n) + step * other
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
    assert likelihood.has_walk
    assert likelihood.channels[0].order == 0
    both, size = np.column_stack([fitted, tried]), np.mean(left**2) / N * SIZES**2
    at = np.arange(1, N + 1)
    walk = np.minimum(at[:, None], at)
    for own, x in ((likelihood.maximize([]), fitted), (likelihood.maximize([3]), both)):
        value = own.size + N * np.log(left @ left)  # counted in units of their norm
        noise = own.states[0].noise * float(left @ left)
        dense = by_matrices(left, x, np.append(0.0, size / noise), walk)
        assert value == pytest.approx(dense, abs=0.6)  # waves faster than the slowest are left out


@pytest.mark.slow
@pytest.mark.parametrize("times", [0.0, 1.0, 3.0])
def test_a_slow_column_is_worth_no_more_than_chance_beside_a_walk(times: float) -> None:
    fitted, tried = slow()
    count = 150
    chances = np.array(
        [
            Likelihood(*seen(walking(100 + s, times), fitted, tried)).p_value([0])
            for s in range(count)
        ]
    )
    assert np.sum(chances < 0.01) <= binom.ppf(0.999, count, 0.02)


def led(seed: int, count: int, gap: int = 60) -> np.ndarray:
    """What `count` draws of noise of a force do to the speed of a mass that it drives, of which
    nothing is recorded over `gap` samples in the middle: a step stands there.
    """
    steps = np.random.default_rng(seed).standard_normal((count, N)) / np.sqrt(N)
    steps[:, N // 2] *= gap
    return np.cumsum(steps, axis=1)


def test_noise_of_an_input_beside_white_noise_is_that_of_matrices() -> None:
    fitted, tried = slow()
    noise = np.random.default_rng(0).standard_normal(N) + led(2, 1)[0]
    columns, channels, left = seen(noise, fitted, tried)
    draws = led(3, 40)
    likelihood = Likelihood(columns, channels, left, draws)
    assert likelihood.channels[0].order == 0
    both, square = np.column_stack([fitted, tried]), float(left @ left)
    for own, x in ((likelihood.maximize([]), fitted), (likelihood.maximize([3]), both)):
        sizes = np.append(0.0, DRAWN**2) / (own.states[0].noise * square)
        dense = by_matrices(left, x, sizes, draws.T @ draws / len(draws))
        assert own.size + N * np.log(square) == pytest.approx(
            dense, abs=0.03
        )  # sizes are of the round before


@pytest.mark.slow
def test_noise_of_an_input_over_a_gap_names_nothing_and_hides_little() -> None:
    fitted, _ = slow()
    edge = np.where(np.arange(N) < N // 2, -1.0, 1.0)  # what a friction of that time would do
    tried, fast = np.column_stack([edge]), np.random.default_rng(0).standard_normal((N, 1))
    draws, beside, alone = led(4, 40), 0, 0
    for s in range(100):
        noise = np.random.default_rng(700 + s).standard_normal(N) + led(900 + s, 1)[0]
        beside += Likelihood(*seen(noise, fitted, tried), draws).p_value([0]) < 0.01
        alone += Likelihood(*seen(noise, fitted, tried)).p_value([0]) < 0.01
        if s < 20:
            both = seen(noise + fast[:, 0], fitted, fast)
            assert Likelihood(*both, draws).p_value([0]) < 1e-4
    assert beside <= 3 < 20 < alone


def test_what_wanders_hides_no_column_that_is_fast_and_hardly_one_that_is_large() -> None:
    fitted, bend = slow()
    fast = np.random.default_rng(0).standard_normal((N, 1))
    for s in range(20):
        noise = walking(500 + s, 3.0)
        assert Likelihood(*seen(noise + fast[:, 0], fitted, fast)).p_value([0]) < 1e-4
        white = walking(500 + s, 0.0)
        assert Likelihood(*seen(white + 5.0 * bend[:, 0], fitted, bend)).p_value([0]) < 1e-3
