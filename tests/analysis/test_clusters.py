"""Errors of fits on windows: the formula against matrices of n by n, and how often intervals hold
the truth.
"""

import dataclasses
from typing import Any

import equinox as eqx
import numpy as np
import pytest
from scipy.special import stdtrit

import frictax as fx
from frictax.analysis.errors.clusters import bias_reduced

RANDOM = np.random.default_rng(4)
SIZES = (3, 9, 1, 7, 12, 5, 8)
CLUSTER = np.repeat(np.arange(7), SIZES)
J = RANDOM.standard_normal((45, 3)) * np.array([1.0, 1e4, 1e-3])
J[:, 1] += 9e3 * np.sin(0.4 * np.arange(45))
R = (np.eye(45) - J @ np.linalg.pinv(J)) @ (
    RANDOM.standard_normal(45) + np.repeat(RANDOM.standard_normal(7), SIZES)
)


def root(a: np.ndarray, power: float) -> np.ndarray:
    values, vectors = np.linalg.eigh(a)
    return (vectors * np.maximum(values, 1e-300) ** power) @ vectors.T


def by_matrices(known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bell and McCaffrey's covariance and degrees of freedom, as they write them, with rows of a
    prior.
    """
    bread = np.linalg.inv(J.T @ J + known.T @ known)
    rest = np.eye(len(R)) - J @ bread @ J.T  # the covariance of residuals of white noise
    half, meat, of_noise = root(rest, 0.5), np.zeros_like(bread), []
    for g in range(7):
        mine = CLUSTER == g
        adjusted = root(rest[np.ix_(mine, mine)], -0.5) @ J[mine] @ bread
        meat += np.outer(adjusted.T @ R[mine], adjusted.T @ R[mine])
        of_noise.append(half[:, mine] @ adjusted)
    sizes = [
        np.linalg.eigvalsh(np.einsum("gni,hni->ghi", of_noise, of_noise)[..., i]) for i in range(3)
    ]
    prior = bread @ known.T @ known @ bread
    share = np.diag(meat + prior) / np.diag(meat)
    return meat + prior, share**2 * np.array([s.sum() ** 2 / np.sum(s**2) for s in sizes])


@pytest.mark.parametrize(
    "known",
    [np.zeros((0, 3)), np.array([[2.0, 0.0, 0.0], [0.0, 3e4, 1e-3]])],
    ids=["data", "with priors"],
)
def test_cr2_and_its_degrees_of_freedom_are_those_of_matrices_of_n_by_n(known: np.ndarray) -> None:
    covariance, dof = bias_reduced(J, R, CLUSTER, priors=known)
    expected, freedom = by_matrices(known)
    np.testing.assert_allclose(covariance, expected, rtol=1e-8)
    np.testing.assert_allclose(dof(np.eye(3)), freedom, rtol=1e-8)


def test_equal_clusters_of_a_mean_give_the_jackknife_over_them() -> None:
    """A mean of 8 clusters of 5: the standard error of the mean of 8 means, with 7 degrees of
    freedom.
    """
    x = RANDOM.standard_normal((8, 5)) + RANDOM.standard_normal((8, 1))
    covariance, dof = bias_reduced(
        np.ones((40, 1)), np.ravel(x - x.mean()), np.repeat(np.arange(8), 5)
    )
    assert covariance[0, 0] == pytest.approx(x.mean(axis=1).var(ddof=1) / 8, rel=1e-12)
    assert dof(np.eye(1))[0] == pytest.approx(7.0, rel=1e-9)


def test_what_one_cluster_tells_alone_has_the_error_of_the_noise_and_one_degree_of_freedom():
    jacobian = np.column_stack([np.ones(40), np.repeat([1.0, 0.0], [5, 35])])
    r = RANDOM.standard_normal(40)
    r -= jacobian @ np.linalg.lstsq(jacobian, r, rcond=None)[0]
    covariance, dof = bias_reduced(jacobian, r, np.repeat(np.arange(8), 5), noise=3.0)
    others = (r[5:].reshape(7, 5).mean(axis=1) - r[5:].mean()).var() / 6  # of the mean of seven
    assert covariance[1, 1] == pytest.approx(9.0 / 5 + others, rel=1e-5)
    # Satterthwaite: a difference of a mean of 5, with 1 degree of freedom, and of one of 35, with 6
    assert dof(np.eye(2))[1] == pytest.approx(
        (1 / 5 + 1 / 35) ** 2 / (1 / 5**2 / 1 + 1 / 35**2 / 6), rel=1e-3
    )


# -- a motor whose errors begin small and are integrated
# --------------------------------------------------------------

T = 0.01 * np.arange(1001)
CURRENT = 0.25 * np.sin(2 * np.pi * 0.7 * T) + 0.15 * np.sin(2 * np.pi * 0.31 * T + 1.0)  # [N.m]
TRUE = {"rotor.J": 2e-3, "bearing.tau_pos.F_Coulomb": 0.05, "bearing.tau_pos.F_prop": 0.01}
F = "bearing.tau_pos.F_Coulomb"
ENCODER = 2 * np.pi / 2000  # [rad]


def motor(J: float, F_Coulomb: float, F_prop: float, tau: Any = 0.0) -> fx.Mechanism:
    law = fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=F_prop)
    return fx.Mechanism(
        rotor=fx.Inertia(J=J),
        bearing=fx.BearingFriction("rotor", tau_pos=law),
        drive=fx.Torque("rotor", tau),
    )


@pytest.fixture(scope="module")
def turned() -> np.ndarray:
    J, F_Coulomb, F_prop = TRUE.values()
    machine = motor(J, F_Coulomb, F_prop, fx.Sampled(T, CURRENT))
    return np.asarray(fx.simulate(machine, T, fx.OnSamples(substeps=4))["rotor"].phi)


def fitted(turned: np.ndarray, seed: int) -> fx.FoundMachine:
    """To the steps of an encoder and a current with noise."""
    random = np.random.default_rng(seed)
    seen = ENCODER * np.round(turned / ENCODER + random.uniform())
    record = fx.Record(
        T,
        {"drive": CURRENT + 0.02 * random.standard_normal(T.size)},
        {"rotor.phi": seen},
        hold=False,
        name="run",
    )
    return fx.fit(motor(2.4e-3, 0.06, 0.012), record, free=list(TRUE), objective=fx.Windows(0.5))


@pytest.fixture(scope="module")
def found(turned: np.ndarray) -> fx.FoundMachine:
    return fitted(turned, 0)


def held(u: Any) -> list[bool]:
    return [u.intervals[name][0] <= x <= u.intervals[name][1] for name, x in TRUE.items()]


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_intervals_of_60_motors_with_encoder_steps_and_noisy_current_hold_the_truth(
    turned: np.ndarray,
) -> None:
    fits = [fitted(turned, seed) for seed in range(60)]
    # 95 % of 60 have a standard deviation of 2.8 %, the spread of 60 estimates one of 9 %
    assert np.all(np.mean([held(f) for f in fits], axis=0) >= 0.87)
    assert np.mean([held(f.uncertainty(fx.White())) for f in fits[:14]]) < 0.4
    spread = np.std([[f.values[name] for name in TRUE] for f in fits], axis=0, ddof=1)
    stated = np.mean([[f.standard_errors[name] for name in TRUE] for f in fits], axis=0)
    assert np.all((stated > 0.8 * spread) & (stated < 1.35 * spread)), stated / spread


@pytest.mark.slow
def test_a_fit_on_windows_says_by_which_account_its_intervals_are_and_white_is_for_the_asking(
    found: fx.FoundMachine,
) -> None:
    u, white = found.uncertainty(), found.uncertainty(fx.White())
    assert isinstance(u.by, fx.Guarded)
    assert u.estimates == found.estimates
    # residuals less numbers, as before; those of intervals are the estimates' own
    assert found.dof == 1000 - 3
    assert all(4.0 < dof < 19.0 for dof in found.degrees_of_freedom.values())
    for e, w in zip(found.estimates, white.estimates, strict=True):
        assert w.dof == found.dof
        assert u.ratio[e.name] == pytest.approx(e.standard_error / w.standard_error)
        assert e.upper - e.value == pytest.approx(stdtrit(e.dof, 0.975) * e.standard_error)
    (line,) = [line for line in str(found).splitlines() if line.startswith("Intervals (Guarded)")]
    assert "scatter between 20 windows" in line
    narrower = [
        (e.upper - e.lower) / (w.upper - w.lower)
        for e, w in zip(found.estimates, white.estimates, strict=True)
    ]
    assert (
        f"white noise would give intervals {min(narrower):.2g} to {max(narrower):.2g} times"
        " narrower." in line
    )


@pytest.mark.slow
def test_windows_are_no_run_to_an_autoregression(found: fx.FoundMachine) -> None:
    with pytest.raises(ValueError, match=r"each window is a run of its own. Take `Clustered\(\)`"):
        found.uncertainty(fx.Autoregression())
    with pytest.raises(ValueError, match="`Guarded.blocks` must be a whole number >= 2, got 1"):
        fx.Guarded(1)


@pytest.mark.slow
def test_a_profile_agrees_with_the_printed_interval(found: fx.FoundMachine) -> None:
    p, (low, high) = found.profile(F), found.intervals[F]
    assert (p.lower, p.upper) == pytest.approx((low, high), abs=0.1 * (high - low))
    assert p.threshold == pytest.approx(stdtrit(found.degrees_of_freedom[F], 0.975) ** 2, rel=1e-6)


@pytest.mark.slow
def test_bands_have_the_degrees_of_freedom_of_what_they_are_of(found: fx.FoundMachine) -> None:
    u = found.uncertainty()
    band = u.friction("bearing", [0.0, 1e6])  # F_Coulomb alone, and next to nothing but F_prop
    assert band.upper[0] - band.force[0] == pytest.approx(u.half_widths[1], rel=1e-6)
    assert band.upper[1] - band.force[1] == pytest.approx(1e6 * u.half_widths[2], rel=1e-3)


@pytest.mark.slow
def test_a_window_that_goes_on_belongs_to_the_one_before_and_few_windows_are_told(
    found: fx.FoundMachine,
) -> None:
    def joined(every: int) -> fx.FoundMachine:
        problem = eqx.tree_at(
            lambda p: p.prepared[0].goes_on, found.problem, np.arange(20) % every > 0
        )
        return dataclasses.replace(found, problem=problem)

    assert joined(2).uncertainty().says.startswith("scatter between 10 windows")
    assert not any("windows" in w for w in joined(2).warnings)
    assert any("The fit has only 4 windows" in w and "at least 12" in w for w in joined(5).warnings)
    alone = joined(20)  # nothing differs: white errors, of which next to nothing is known
    assert any("only 1 window, so" in w for w in alone.warnings)
    assert alone.uncertainty(fx.Clustered()).half_widths == pytest.approx(
        stdtrit(1.0, 0.975) * np.sqrt(np.diag(found.full_covariance)), rel=3e-3
    )


@pytest.mark.slow
def test_starts_that_are_fitted_with_their_windows_cost_no_window(
    turned: np.ndarray, found: fx.FoundMachine
) -> None:
    """As many columns more as windows and states, each on its own rows, change nothing if they are
    told apart from all others.
    """
    record = found.records["run"]
    free = fx.fit(found.model, record, free=list(TRUE), objective=fx.Windows(0.5, free_starts=True))
    assert all(4.0 < dof < 19.0 for dof in free.degrees_of_freedom.values())
    shown, rows = free.shown, np.repeat(np.arange(20), 51)
    j = free.jacobian.copy()
    for k in range(20):  # what the starts of window k could explain as well
        hidden = free.full_jacobian[:, ~shown][rows == k]
        hidden = hidden[:, np.any(hidden != 0, axis=0)]
        j[rows == k] -= hidden @ np.linalg.lstsq(hidden, j[rows == k], rcond=None)[0]
    covariance, _ = bias_reduced(j, free.full_residuals, rows, noise=free.noise_scale)
    np.testing.assert_allclose(free.covariance, covariance, rtol=1e-5)
    assert np.all(
        np.linalg.eigvalsh(
            free.uncertainty().full / np.outer(s := np.sqrt(np.diag(free.uncertainty().full)), s)
        )
        > -1e-9
    )


@pytest.mark.slow
def test_windows_are_asked_for_where_there_are_none() -> None:
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0), friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0))
    )
    record = fx.Record(T, outputs={"mass.s": np.sin(T)}, name="run")
    still = fx.fit(machine, record, free=["outputs.mass.s.offset"])
    assert isinstance(still.uncertainty().by, fx.Guarded)
    with pytest.raises(ValueError, match="FreeRun has none. Fit on `Windows`"):
        still.uncertainty(fx.Clustered())
