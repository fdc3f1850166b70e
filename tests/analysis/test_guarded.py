"""Errors of runs whose residuals remember: against matrices of n by n, over many seeds, and where
records differ.
"""

import numpy as np
import pytest
from jaxtyping import Float
from scipy.linalg import toeplitz
from scipy.signal import lfilter
from scipy.stats import f as F

import frictax as fx
from frictax.analysis.errors.autoregression import lagged_products
from frictax.analysis.errors.clusters import paule_mandel, welch_test
from frictax.fitting.result.spread import Memoized
from frictax.measurements.noise import noise_of

T = np.arange(0.0, 10.0, 0.005)
U = 3.0 * np.sin(np.pi * T) + 1.5 * np.sin(2.6 * np.pi * T)
TRUE = {"mass.m": 1.0, "friction.f_pos.F_Coulomb": 1.0, "friction.f_pos.F_prop": 0.5}
NOISE = 0.02


def block(m: float, F_Coulomb: float, F_prop: float, f: fx.Sampled | float = 0.0) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=m),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=F_prop)),
        drive=fx.Force("mass", f),
    )


def speed(*true: float) -> Float[np.ndarray, " n"]:
    machine = block(*(true or TRUE.values()), f=fx.Sampled(T, U))
    return np.asarray(fx.simulate(machine, T, fx.OnSamples())["mass"].v)


@pytest.fixture(scope="module")
def clean() -> Float[np.ndarray, " n"]:
    return speed()


def remembered(random: np.random.Generator, rho: float) -> Float[np.ndarray, " n"]:
    """An error that keeps `rho` of the one before."""
    e = NOISE * np.sqrt(1 - rho**2) * random.standard_normal(T.size + 600)
    return np.asarray(lfilter([1.0], [1.0, -rho], e))[600:]


def fitted(v: Float[np.ndarray, " n"], objective: fx.Windows | None = None) -> fx.FoundMachine:
    record = fx.Record(T, {"drive": U}, {"mass.v": v}, name="run")
    # Residuals with a memory exceed the noise of the samples, so that more rounds would follow.
    model = block(1.02, 0.98, 0.51)
    return fx.fit(model, record, free=list(TRUE), objective=objective, rounds=0)


def held(u: fx.Uncertainty) -> list[bool]:
    return [u.intervals[name][0] <= x <= u.intervals[name][1] for name, x in TRUE.items()]


@pytest.mark.slow
def test_an_autoregression_gives_the_covariance_of_matrices_of_n_by_n(clean) -> None:
    """W' S W with S of the autoregression that made the residuals, of order 1."""
    found = fitted(clean + remembered(np.random.default_rng(0), 0.9))
    w = found.full_jacobian @ np.linalg.inv(found.full_jacobian.T @ found.full_jacobian)
    s = NOISE**2 * toeplitz(0.9 ** np.arange(T.size))
    expected = np.sqrt(np.diag(w.T @ s @ w))
    u = found.uncertainty(fx.Autoregression())
    assert list(u.standard_errors.values()) == pytest.approx(expected, rel=0.15)
    assert "residuals correlated over 0.0" in u.says
    assert all(20 < dof < 1997 for dof in u.degrees_of_freedom.values())


@pytest.mark.slow
def test_white_residuals_have_white_errors_and_remember_nothing(clean) -> None:
    found = fitted(clean + remembered(np.random.default_rng(1), 0.0))
    u = found.uncertainty(fx.Autoregression())
    assert u.says == "uncorrelated residuals"
    assert list(u.ratio.values()) == pytest.approx([1.0] * 3, abs=0.06)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_the_guard_counts_where_its_error_is_larger_than_chance_makes_it(clean) -> None:
    """Of records of which the other account is right it stands out in three of ten or fewer."""
    counted = []
    for seed in range(12):
        found = fitted(clean + remembered(np.random.default_rng([2, seed]), 0.9))
        usual, guard = (found.uncertainty(a) for a in (fx.Autoregression(), fx.Clustered(10)))
        ratio = np.square(list(guard.standard_errors.values()))
        ratio /= np.square(list(usual.standard_errors.values()))
        free = [[e.dof for e in u.estimates] for u in (guard, usual)]
        stands_out = ratio > F.ppf(0.7, *free)
        half = np.where(stands_out, guard.half_widths, 0.0)
        u = found.uncertainty()
        assert u.half_widths == pytest.approx(np.maximum(usual.half_widths, half), rel=1e-9)
        counted.append(stands_out)
    assert 0.0 < np.mean(counted) < 0.35


@pytest.mark.slow
def test_the_account_of_each_number_is_printed(clean) -> None:
    found = fitted(clean + remembered(np.random.default_rng(2), 0.9))
    u = found.uncertainty()
    assert u.estimates == found.estimates
    (line,) = [line for line in str(found).splitlines() if line.startswith("Intervals (Guarded)")]
    assert u.says in line
    assert "times narrower" in line
    # a covariance, whose errors are the printed ones
    assert np.sqrt(np.diag(u.covariance)) == pytest.approx(list(u.standard_errors.values()))
    assert np.linalg.eigvalsh(u.correlation).min() > 0


def test_products_of_lagged_columns_sum_up_as_written_out() -> None:
    z = 3.0 + np.random.default_rng(0).standard_normal((30, 2))
    back = np.stack([z[4 - i : 30 - i] for i in range(5)])
    assert lagged_products(z, 4) == pytest.approx(np.einsum("ita,jtb->ijab", back, back), rel=1e-13)


def test_what_was_found_of_the_same_directions_is_not_found_again() -> None:
    asked = []

    @Memoized
    def sums(directions: np.ndarray, times: float) -> np.ndarray:
        asked.append(times)
        return times * directions.sum(axis=1)

    for directions, times in ((np.eye(3), 2.0), (np.eye(3), 2.0), (np.eye(3), 1.0)):
        assert sums(directions, times).tolist() == [times] * 3
    assert asked == [2.0, 1.0]
    assert sums(np.ones((4, 3)), 1.0).tolist() == sums(np.ones((4, 3)), 1.0).tolist() == [3.0] * 4
    assert asked == [2.0, 1.0, 1.0, 1.0]  # a curve has many, and is not kept
    assert sums(np.zeros((0, 3)), 1.0).size == 0


@pytest.mark.slow
def test_noise_that_is_enough_is_looked_for_no_longer(clean) -> None:
    v = clean + remembered(np.random.default_rng(9), 0.9)
    noise = noise_of(v)
    assert noise_of(v, enough=0.9 * noise) <= noise
    assert noise_of(v, enough=2.0 * noise) == noise
    assert noise_of(v, enough=0.3 * noise) >= 0.3 * noise


@pytest.mark.slow
def test_a_drift_raises_the_flag_and_a_short_memory_does_not(clean) -> None:
    random = np.random.default_rng(3)
    walk = np.cumsum(random.standard_normal(T.size)) * NOISE / 10
    codes = {n.code for n in fitted(clean + walk).notices_at_hand}
    assert codes & {"memory-long", "memory-as-long"}
    codes = {n.code for n in fitted(clean + remembered(random, 0.9)).notices_at_hand}
    assert not codes & {"memory-long", "memory-as-long"}


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.9, 0.99])
@pytest.mark.parametrize("windows", [False, True], ids=["run", "windows"])
def test_intervals_of_60_blocks_hold_the_truth_and_are_no_wider_than_it_takes(
    clean, rho: float, windows: bool
) -> None:
    random, objective = np.random.default_rng(4), fx.Windows(0.5) if windows else None
    fits = [fitted(clean + remembered(random, rho), objective) for _ in range(60)]
    found = [f.uncertainty() for f in fits]
    assert np.all(np.mean([held(u) for u in found], axis=0) >= 0.88)
    spread = np.std([[f.values[name] for name in TRUE] for f in fits], axis=0, ddof=1)
    width = np.median([u.half_widths for u in found], axis=0) / 1.96 / spread
    assert np.all(width < 1.7), width


def together(machines: list[tuple[float, ...]], seed: int):
    random = np.random.default_rng(seed)
    records = [
        fx.Record(
            T,
            {"drive": U},
            {"mass.v": speed(*true) + remembered(random, 0.5)},
            name=f"run{i}",
        )
        for i, true in enumerate(machines)
    ]
    return fx.fit(block(1.02, 0.98, 0.51), records, free=list(TRUE), rounds=0)


@pytest.mark.slow
def test_records_of_one_machine_agree_and_of_machines_that_differ_a_notice_says_so() -> None:
    same = together([tuple(TRUE.values())] * 3, 5)
    assert not any(n.code == "records-differ" for n in same.notices)
    differ = together([(1.0, c, 0.5) for c in (0.9, 1.0, 1.1)], 6)
    (notice,) = [
        n for n in differ.notices if n.code == "records-differ" and n.subject.endswith("Coulomb")
    ]
    assert notice.numbers["between"] == pytest.approx(0.1, rel=0.3)
    low, high = differ.intervals["friction.f_pos.F_Coulomb"]
    assert low < 1.005 < high
    assert high - low > 3 * (
        same.intervals["friction.f_pos.F_Coulomb"][1]
        - same.intervals["friction.f_pos.F_Coulomb"][0]
    )
    assert "scatter between 3 records" in differ.uncertainty().says


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_machines_that_differ_by_5_per_cent_are_told_and_intervals_hold_their_mean(
    spread: float,
) -> None:
    random, true = np.random.default_rng(11), np.array(list(TRUE.values()))
    fits = []
    for seed in range(20 if spread else 8):
        machines = true * (1.0 + spread * random.standard_normal((3, 3)))
        fits.append(together([tuple(m) for m in machines.tolist()], seed))
    told = np.mean([any(n.code == "records-differ" for n in f.notices) for f in fits])
    assert told >= 0.9 if spread else told <= 0.25
    assert np.all(np.mean([held(f.uncertainty()) for f in fits], axis=0) >= 0.85)


# with 3 to 4 standard deviations of what so many draws leave open
@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("count", "least", "most", "within"),
    [(500, 0.02, 0.09, 0.24), (2000, 0.035, 0.07, 0.12)],
    ids=["500", "2000"],
)
def test_welch_has_its_level_with_unequal_variances_and_the_spread_between_is_found(
    count: int, least: float, most: float, within: float
) -> None:
    random, hits = np.random.default_rng(7), 0
    sd, dof, found = np.array([0.1, 0.3, 0.2, 0.5]), np.array([6.0, 12.0, 9.0, 20.0]), []
    for _ in range(count):
        variance = sd**2 * random.chisquare(dof) / dof
        x = sd * random.standard_normal(4)
        hits += welch_test(x, variance, dof) < 0.05
        found.append(paule_mandel(x + 0.6 * random.standard_normal(4), sd**2) ** 2)
    assert least < hits / count < most
    assert np.mean(found) == pytest.approx(0.36, rel=within)
