"""Intervals where a sensor's zero wanders less than its white noise scatters."""

import numpy as np
import pytest
from jaxtyping import Float
from scipy.linalg import solve_triangular
from scipy.signal import lfilter

import frictax as fx
from frictax.analysis.errors.autoregression import (
    AutoregressiveModel,
    Series,
    Walk,
    _CenteredSeries,
    _WalkLikelihood,
    random_walk_noise,
)
from frictax.fitting import FitResult

T = np.arange(0.0, 10.0, 0.01)
U = 3.0 * np.sin(np.pi * T) + 1.5 * np.sin(2.6 * np.pi * T)
TRUE = {
    "mass.m": 1.0,
    "friction.f_pos.F_Coulomb": 1.0,
    "friction.f_pos.F_prop": 0.5,
    "tilt.f.k": 0.2,
}
NOISE = 0.02


def block(*numbers: float, f: fx.Sampled | float = 0.0) -> fx.Mechanism:
    m, F_Coulomb, F_prop, tilt = numbers
    return fx.Mechanism(
        mass=fx.Mass(m=m),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=F_prop)),
        tilt=fx.Force("mass", tilt),
        drive=fx.Force("mass", f),
    )


@pytest.fixture(scope="module")
def clean() -> Float[np.ndarray, " n"]:
    machine = block(*TRUE.values(), f=fx.Sampled(T, U))
    return np.asarray(fx.simulate(machine, T, fx.OnSamples())["mass"].s)


def fitted(s: Float[np.ndarray, " n"]) -> fx.FoundMachine:
    record = fx.Record(T, {"drive": U}, {"mass.s": s}, name="run")
    # A walk exceeds the noise of the samples, so more rounds would follow and find the same values.
    return fx.fit(block(1.02, 0.98, 0.51, 0.21), record, free=list(TRUE), rounds=0)


def noise(random: np.random.Generator, walk: float, rho: float = 0.0) -> Float[np.ndarray, " n"]:
    """An error that keeps `rho` of the one before, beside a walk so much larger at the end."""
    e = np.sqrt(1 - rho**2) * random.standard_normal(T.size + 600)
    steps = random.standard_normal(T.size) / np.sqrt(T.size)
    return NOISE * (np.asarray(lfilter([1.0], [1.0, -rho], e))[600:] + walk * np.cumsum(steps))


def series(residuals: np.ndarray, columns: np.ndarray, gap: bool = False) -> Series:
    n = residuals.size
    rows = [np.arange(n)] if not gap else [np.arange(n // 3), np.arange(n // 3, n)]
    return Series(residuals, columns, np.eye(columns.shape[1]), 0, 0.01, rows)


@pytest.mark.parametrize("phi", [[], [0.5], [0.6, -0.3]], ids=["white", "one", "two"])
def test_the_restricted_likelihood_of_a_walk_is_that_of_matrices_of_n_by_n(phi) -> None:
    random, n = np.random.default_rng(0), 120
    t = np.arange(n)[:, None]
    x = np.hstack([np.ones((n, 1)), np.sin(0.3 * t), np.sin(2.1 * t)])
    y = random.standard_normal(n) + 0.2 * np.cumsum(random.standard_normal(n))
    one = series(y, x)
    assert one.each == 1
    others = np.diag([0.1, 0.2, 0.3])
    about = _CenteredSeries(one, np.zeros(3), others)
    model = AutoregressiveModel(np.array(phi), 0.7, np.eye(len(phi)))
    beside = _WalkLikelihood(about, model)

    # the inverse of the noise's root, and the walk's covariance, written out
    root = np.zeros((n, n))
    for i in range(n):
        if i < len(phi):
            root[i, i] = 1 / np.sqrt(about.square)
        else:
            root[i, i - len(phi) : i + 1] = [*-np.array(phi)[::-1], 1.0] / np.sqrt(0.7)
    step = about.steps[beside._k - 1]
    walk = step * (np.minimum.outer(np.arange(n), np.arange(n)) + 1.0)
    v = np.eye(n) + root @ walk @ root.T
    low = np.linalg.cholesky(v)
    z, a = (solve_triangular(low, root @ b, lower=True) for b in (y, x))
    gram = others + a.T @ a
    rest = z @ z - a.T @ z @ np.linalg.solve(gram, a.T @ z)
    expected = np.linalg.slogdet(v)[1] - 2 * np.linalg.slogdet(root)[1]
    expected += np.linalg.slogdet(gram)[1] + n * np.log(rest / n) + len(phi) * np.log(n)
    # faster waves of the walk are left to the noise
    assert beside.score == pytest.approx(expected, abs=0.3)


@pytest.mark.parametrize("phi", [[], [0.5]], ids=["white", "one"])
def test_what_is_left_beside_a_walk_is_the_noise(phi) -> None:
    random, n = np.random.default_rng(7), 2000
    e, walk = random.standard_normal(n), 0.1 * np.cumsum(random.standard_normal(n))
    e = np.asarray(lfilter([1.0], [1.0, *-np.array(phi)], e))
    one = series(e + walk, random.standard_normal((n, 1)) / np.sqrt(n))
    assert one.each == 1
    about = _CenteredSeries(one, np.zeros(1), np.eye(1))
    rest = _WalkLikelihood(about, AutoregressiveModel(np.array(phi), 1.0, np.eye(len(phi)))).rest
    assert np.std(rest - e) < 0.5 * np.std(walk)


def test_of_stretches_too_short_for_lags_the_noise_is_white() -> None:
    random = np.random.default_rng(8)
    rows = [np.arange(5 * k, 5 * k + 5) for k in range(8)]
    one = Series(random.standard_normal(40), np.ones((40, 1)), np.eye(1), 0, 0.01, rows)
    about = _CenteredSeries(one, np.zeros(1), np.eye(1))
    about.most = 9
    assert not about.autoregression_of(random.standard_normal(40)).phi.size


def test_a_walk_moves_estimates_as_its_covariance_says() -> None:
    x = np.random.default_rng(1).standard_normal((50, 2))
    size, (slope,), _ = Walk(0.3, 0.1).covariances(series(np.zeros(50), x))
    walk = np.minimum.outer(np.arange(50), np.arange(50)) + 1.0
    assert size == pytest.approx(0.3 * x.T @ walk @ x, rel=1e-12)
    assert slope == pytest.approx(0.1 * x.T @ walk @ x, rel=1e-12)


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize(("rho", "least"), [(0.0, 20), (0.8, 12)])
def test_a_walk_is_found_at_its_size_beside_white_noise_and_a_memory(rho, least, gap) -> None:
    steps, spreads = [], []
    for seed in range(20):
        random, n = np.random.default_rng([2, seed]), 800
        e = np.asarray(lfilter([np.sqrt(1 - rho**2)], [1.0, -rho], random.standard_normal(n)))
        y = e + 0.1 * np.cumsum(random.standard_normal(n))
        one = series(y, np.random.default_rng(3).standard_normal((n, 1)) / np.sqrt(n), gap)
        one.fit_noise(np.zeros(1), np.zeros((1, 1)))
        walk = random_walk_noise(one, np.zeros(1), np.zeros((1, 1)), np.eye(1))
        steps += [walk.step] if walk else []
        spreads += [walk.spread] if walk else []
    assert len(steps) >= least
    assert 0 < np.median(spreads) < 0.01
    assert np.median(steps) == pytest.approx(0.01, rel=0.3 if rho == 0 else 0.5)


@pytest.mark.parametrize(("rho", "most"), [(0.0, 0.25), (0.9, 0.1)])
def test_noise_without_a_walk_has_none_but_by_chance(rho: float, most: float) -> None:
    """Akaike's criterion takes one in six for white noise."""
    found = []
    for seed in range(100):
        random, n = np.random.default_rng([4, seed]), 600
        y = np.asarray(lfilter([1.0], [1.0, -rho], random.standard_normal(n)))
        one = series(y, np.random.default_rng(3).standard_normal((n, 1)) / np.sqrt(n))
        one.fit_noise(np.zeros(1), np.zeros((1, 1)))
        found.append(random_walk_noise(one, np.zeros(1), np.zeros((1, 1)), np.eye(1)) is not None)
    assert np.mean(found) <= most


def held(found: FitResult) -> list[bool]:
    return [
        lower <= x <= upper
        for x, (lower, upper) in zip(TRUE.values(), found.intervals.values(), strict=True)
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_a_fit_says_that_a_zero_wanders(clean) -> None:
    found = fitted(clean + noise(np.random.default_rng([5, 1]), 1.0))
    (line,) = [line for line in str(found).splitlines() if line.startswith("Intervals (Guarded)")]
    assert "uncorrelated residuals and a drifting offset (random walk, " in line
    assert "times the noise at the end)" in line


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
@pytest.mark.parametrize(("walk", "least", "most"), [(0.0, 0, 2), (0.7, 4, 16)])
def test_that_little_is_known_of_a_walk_is_said_where_there_surely_is_one(
    clean, walk: float, least: int, most: int
) -> None:
    """One white record in six has one by chance, of which nothing can be known."""
    codes = [
        {n.code for n in fitted(clean + noise(random, walk)).notices_at_hand}
        for random in (np.random.default_rng([7, i]) for i in range(16))
    ]
    assert least <= sum("zero-wanders" in said for said in codes) <= most
    assert not any("memory-as-long" in said for said in codes)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
@pytest.mark.parametrize(("walk", "least"), [(0.5, 0.8), (1.0, 0.88), (2.0, 0.88)])
def test_intervals_hold_the_truth_where_a_zero_wanders(clean, walk: float, least: float) -> None:
    """Without a walk in the account the constant force is held by half of them."""
    found = [fitted(clean + noise(np.random.default_rng([6, i]), walk)) for i in range(60)]
    assert np.all(np.mean([held(f) for f in found], axis=0) >= least)
    spread = np.std([[f.values[name] for name in TRUE] for f in found], axis=0, ddof=1)
    width = np.median([f.uncertainty().half_widths for f in found], axis=0) / 1.96 / spread
    assert np.all(width < 2.5), width
