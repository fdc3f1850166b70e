"""The certificate of a free run passes white noise of the size that the record has, and no other
residuals.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import frictax as fx
from frictax.fitting import FitOptions
from frictax.fitting.build_problem import build_problem
from frictax.fitting.problem.problem import Problem
from frictax.fitting.search.certificate import certify
from rigs import LAW, block

N = 2000
TIME = np.linspace(0.0, 10.0, N)
MOTION = np.sin(2.0 * TIME) + 0.3 * np.sin(5.0 * TIME)
NOISE = 0.01
RNG = np.random.default_rng


def problem_of(
    outputs: dict[str, np.ndarray],
    objective: Any = None,
    sd: dict[str, float] | None = None,
    loss: Any = None,
) -> Problem:
    n = len(next(iter(outputs.values())))
    record = fx.Record(TIME[:n], {"drive": np.ones(n)}, outputs, sd or {}, name="run")
    options = FitOptions(free=LAW, objective=objective, loss=loss)
    return build_problem(block(), {"run": record}, options)[0]


def white(seed: int, n: int = N) -> np.ndarray:
    return NOISE * RNG(seed).standard_normal(n)


def test_white_residuals_of_the_size_of_the_noise_are_certified_in_97_of_100_records() -> None:
    passed = []
    for seed in range(100):
        found = certify(problem_of({"mass.s": MOTION + white(seed)}), white(seed))
        assert found is not None
        passed.append(found.at_noise)
    assert np.mean(passed) >= 0.97


@pytest.mark.parametrize(("n", "share"), [(50, 0.95), (101, 0.98), (300, 0.98)])
def test_few_samples_of_white_noise_are_certified_too(n: int, share: float) -> None:
    passed = []
    for seed in range(100):
        found = certify(problem_of({"mass.s": MOTION[:n] + white(seed, n)}), white(seed, n))
        assert found is not None
        passed.append(found.at_noise)
    assert np.mean(passed) >= share


MISFITS: dict[str, Callable[[], np.ndarray]] = {
    "slow swing of 0.4 times the noise": lambda: 0.4 * NOISE * np.sin(2 * np.pi * TIME),
    "offset for one second": lambda: NOISE * ((TIME > 4.0) & (TIME < 5.0)),
    "drift": lambda: 0.1 * NOISE * TIME,
}


@pytest.mark.parametrize("kind", list(MISFITS))
def test_a_misfit_below_the_noise_is_not_certified(kind: str) -> None:
    for seed in range(5):
        noise = white(seed)
        found = certify(problem_of({"mass.s": MOTION + noise}), MISFITS[kind]() - noise)
        assert found is not None
        assert not found.at_noise
        assert found.ratio < 1.5


def test_the_certificate_names_the_worst_output_and_its_level() -> None:
    outputs = {"mass.s": MOTION + white(0), "mass.v": MOTION + white(1)}
    left = np.stack([white(0), white(1) + 0.1 * np.sin(TIME)], axis=1)
    found = certify(problem_of(outputs, sd=dict.fromkeys(outputs, 1.0)), left.ravel())
    assert found is not None
    assert (found.subject, found.record) == ("mass.v", 0)
    assert found.ratio == pytest.approx(0.1 / np.sqrt(2) / NOISE, rel=0.1)
    assert found.matters


def test_the_deviations_that_a_record_states_do_not_change_the_certificate() -> None:
    left = white(0) + 0.5 * NOISE * np.sin(TIME)
    plain = certify(problem_of({"mass.s": MOTION + white(0)}), left)
    stated = problem_of({"mass.s": MOTION + white(0)}, sd={"mass.s": 7.0})
    weighted = certify(stated, left / 7.0)
    assert plain is not None
    assert weighted is not None
    assert weighted.ratio == pytest.approx(plain.ratio, rel=1e-12)
    assert weighted.low == pytest.approx(plain.low, rel=1e-12)


def test_a_misfit_below_a_thousandth_of_the_spread_asks_for_no_further_search() -> None:
    noise = 1e-3 * white(0)
    found = certify(problem_of({"mass.s": MOTION + noise}), noise + 1e-4 * np.sin(TIME))
    assert found is not None
    assert not found.at_noise
    assert not found.matters


def test_nothing_is_certified_where_no_noise_can_be_read() -> None:
    exact = problem_of({"mass.s": MOTION})
    assert certify(exact, 1e-9 * np.sin(TIME)) is None
    assert certify(problem_of({"mass.s": (MOTION + white(0))[:19]}), white(0)[:19]) is None
    noisy = {"mass.s": MOTION + white(0)}
    assert certify(problem_of(noisy, fx.InverseDynamics()), white(0)) is None
    assert certify(problem_of(noisy, loss=fx.Huber()), white(0)) is None


def test_a_run_that_fails_is_not_certified() -> None:
    found = certify(problem_of({"mass.s": MOTION + white(0)}), np.full(N, np.nan))
    assert found is not None
    assert not found.at_noise
