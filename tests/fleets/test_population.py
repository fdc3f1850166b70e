"""The population of a fleet: what is true of it comes back, with the errors that are stated."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.stats import chi2

import frictax as fx
from fleet_tables import normal, plausible, table
from frictax.fleets.statistics import population
from frictax.fleets.statistics.reml import (
    Estimates,
    evaluate_likelihood,
    expected_information,
    likelihood_gradient,
    maximize_likelihood,
    symmetric_basis,
    variance_interval,
)
from frictax.fleets.statistics.robust import RawEstimates, fit_robust_population

OMEGA = np.diag([1.0, 0.25, 4.0]) + 0.2
SIX = 0.4 * np.ones((6, 6)) + 0.6 * np.eye(6)


def _entries(S: np.ndarray) -> np.ndarray:
    return S[np.tril_indices(len(S))]


def _small(seed: int) -> tuple[Estimates, np.ndarray, np.ndarray]:
    """Machines with one to four records of two numbers, one record and one machine left out."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, 9)
    n, B = int(counts.sum()), rng.normal(size=(2, 2))
    C = np.stack([x @ x.T + 0.1 * np.eye(2) for x in 0.4 * rng.normal(size=(n, 2, 2))])
    kept, machines = np.ones(n), np.ones(9)
    kept[2], machines[4] = 0.0, 0.0
    start = np.cumsum(counts) - counts
    of = Estimates(rng.normal(size=(n, 2)), C, start, kept, machines, (1.1, 1.2))
    return of, B @ B.T + 0.1 * np.eye(2), np.diag([0.3, 0.2])


@given(st.integers(0, 9))
def test_slopes_of_the_likelihood_are_those_of_differences(seed: int) -> None:
    of, between, within = _small(seed)
    own = likelihood_gradient(of, evaluate_likelihood(of, between, within), True)
    for i, step in enumerate(1e-5 * symmetric_basis(2)):
        for which in (0, 1):
            ends = []
            for sign in (1, -1):
                spreads = [between, within]
                spreads[which] = spreads[which] + sign * step
                ends.append(evaluate_likelihood(of, *spreads).loglik)
            expected = np.sum(own[which] * symmetric_basis(2)[i])
            assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_the_expected_information_is_that_of_the_whole_covariance() -> None:
    of, between, within = _small(1)
    n, m = len(of.y), of.start.size
    of = Estimates(of.y, of.C, of.start, np.ones(n), np.ones(m))
    got = expected_information(of, evaluate_likelihood(of, between, within), True)
    E, expected = symmetric_basis(2), np.zeros_like(got)
    for j in range(m):
        rows = np.flatnonzero(of.machine == j)
        Z, eye = np.tile(np.eye(2), (rows.size, 1)), np.eye(rows.size)
        V = Z @ between @ Z.T + np.kron(eye, within)
        for a, i in enumerate(rows):
            V[2 * a : 2 * a + 2, 2 * a : 2 * a + 2] += of.C[i]
        by = [Z @ e @ Z.T for e in E] + [np.kron(eye, e) for e in E]
        by = [np.linalg.solve(V, d) for d in by]
        expected += 0.5 * np.array([[np.trace(x @ y) for y in by] for x in by])
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_search_that_starts_without_spread_ends_where_any_other_does(seed: int) -> None:
    rng, none = np.random.default_rng(seed), np.zeros((2, 2))
    machine = np.repeat(np.arange(60), 3)
    y = (rng.normal(size=(60, 2)) @ [[1.0, 0.3], [0.0, 0.5]])[machine]
    y = y + 0.3 * rng.normal(size=(180, 2))
    C = np.broadcast_to(0.04 * np.eye(2), (180, 2, 2))
    of = Estimates(y, C, 3 * np.arange(60), np.ones(180), np.ones(60))
    ends = [maximize_likelihood(of, *start) for start in ((none, none), (np.eye(2), np.eye(2)))]
    (between, within, first, converged), (*other, second, _) = ends
    assert converged
    assert first.loglik == pytest.approx(second.loglik, abs=1e-5)
    for one, another in zip((between, within), other, strict=True):
        assert one is not None
        assert another is not None
        np.testing.assert_allclose(one, another, atol=1e-3)


SIZES = [(2000, 2), pytest.param(10_000, 6, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("n", "p"), SIZES)
def test_mean_and_covariance_lie_within_their_errors(n: int, p: int) -> None:
    S = SIX[:p, :p]
    fleet, truth = normal(np.random.default_rng(0), n, S)
    found = fx.population(fleet)
    off = (found.mean - 10.0) / np.sqrt(np.diag(found.mean_covariance))
    assert np.abs(off).max() < 3.5
    z = _entries(found.between - S) / _entries(found.between_error)
    assert np.abs(z).max() < 4.0
    assert 0.3 < np.sqrt(np.mean(z**2)) < 1.8
    names = [f"part.n{k}" for k in range(p)]
    shrunk = found.records[names].to_numpy()
    raw = fleet[names].to_numpy()
    assert np.mean((shrunk - truth) ** 2) < 0.8 * np.mean((raw - truth) ** 2)
    low, high = (found.records[[f"{n}.{e}" for n in names]] for e in ("lower", "upper"))
    held = np.mean((low.to_numpy() < truth) & (truth < high.to_numpy()))
    assert held == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize(("machines", "fleets"), [(60, 12)])
def test_intervals_of_mean_and_spread_hold_what_they_say(machines: int, fleets: int) -> None:
    held = np.zeros(2, int)
    for seed in range(fleets):
        fleet, _ = normal(np.random.default_rng(seed), machines, OMEGA)
        rows = fx.population(fleet).to_pandas()
        spread = np.sqrt(np.diag(OMEGA))
        held += [
            int(np.sum((rows["lower"] < 10.0) & (rows["upper"] > 10.0))),
            int(np.sum((rows["spread_lower"] < spread) & (rows["spread_upper"] > spread))),
        ]
    assert plausible(int(held[0]), 3 * fleets, 0.95)
    assert plausible(int(held[1]), 3 * fleets, 0.95)


@pytest.mark.parametrize("machines", [4, 6, 10, 20])
@pytest.mark.parametrize("error", [0.01, 0.5, 2.0])
def test_the_interval_of_a_spread_holds_it_for_any_number_of_machines(
    machines: int, error: float
) -> None:
    rng, fleets = np.random.default_rng(machines), 300
    errors = error * rng.uniform(0.5, 1.5, (fleets, machines))
    seen = rng.standard_normal((fleets, machines)) * np.hypot(1.0, errors)
    ends = [variance_interval(y, e**2, 0.95) for y, e in zip(seen, errors, strict=True)]
    assert plausible(sum(low <= 1.0 <= high for low, high in ends), fleets, 0.95)
    below = sum(low == 0.0 for low, _ in ends)
    assert below == 0 if error < 0.1 else below > 0 or machines == 20


def test_the_spread_of_a_few_accurate_machines_has_the_usual_interval() -> None:
    fleet = table({"F": [5.0, 7.0, 9.0, 11.0, 13.0]}, {"F": 1e-3})
    found = fx.population(fleet)
    ends = np.sqrt(40.0 / chi2.ppf([0.975, 0.025], 4))
    assert found.to_pandas().loc["F", ["spread_lower", "spread_upper"]].to_numpy() == pytest.approx(
        ends, rel=1e-3
    )
    assert {n.code for n in found.notices} == {"population-no-repeats"}
    assert "population-few-machines" in {n.code for n in fx.population(fleet.iloc[1:]).notices}


@pytest.mark.slow
def test_intervals_hold_over_a_thousand_fleets() -> None:
    test_intervals_of_mean_and_spread_hold_what_they_say(60, 1000)


@pytest.mark.parametrize(("n", "p"), SIZES)
def test_outliers_are_found_and_false_alarms_are_as_many_as_said(n: int, p: int) -> None:
    rng = np.random.default_rng(1)
    fleet, _ = normal(rng, n, SIX[:p, :p])
    planted = rng.choice(n, n // 20, replace=False)
    clean = fx.population(fleet).records["chance"]
    fleet.loc[planted, "part.n0"] += 12.0  # one in twenty, all to one side
    found = fx.population(fleet)
    chance = found.records["chance"].to_numpy()
    good = np.setdiff1d(np.arange(n), planted)
    assert np.all(chance[planted] < 1e-3)
    assert set(found.outliers["farthest"].iloc[: n // 25]) == {"part.n0"}
    for some in (clean.to_numpy(), chance[good]):
        for level in (1e-3, 1e-2, 0.1):
            assert plausible(int(np.sum(some < level)), some.size, level)
    assert found.between[0, 0] == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(("machines", "fleets"), [(14, 20), (300, 2)])
def test_false_alarms_of_small_fleets_are_as_many_as_said(machines: int, fleets: int) -> None:
    chances = []
    for seed in range(fleets):
        fleet, _ = normal(np.random.default_rng(seed), machines, OMEGA, errors=(0.05, 0.5))
        chances.append(fx.population(fleet).records["chance"].to_numpy())
    count = int(np.sum(np.concatenate(chances) < 0.05))
    assert 0.5 * 0.05 < count / (machines * fleets) < 1.5 * 0.05


@pytest.mark.parametrize("machines", [3, 5])
def test_a_small_fleet_hardly_excludes_a_machine_without_a_fault(machines: int) -> None:
    rng, fleets, excluded = np.random.default_rng(machines), 60, 0
    for _ in range(fleets):
        z = 3.0 * rng.standard_normal((machines, 1)) + rng.standard_normal((machines, 1))
        found = fit_robust_population(_of_one_parameter(10 + z))
        excluded += bool(np.any(found.estimates.counted_machines == 0))
    assert excluded <= 1


@pytest.mark.parametrize("spread", [1.0, 5.0])
def test_a_machine_ten_standard_deviations_away_is_excluded_from_a_fleet_of_eight(
    spread: float,
) -> None:
    rng, total, found = np.random.default_rng(0), np.hypot(spread, 1.0), 0
    for _ in range(20):
        z = 10 + total * rng.standard_normal((8, 1))
        z[3] += 10 * total
        fit = fit_robust_population(_of_one_parameter(z))
        found += bool(fit.estimates.counted_machines[3] == 0)
    assert found >= 16


def _of_one_parameter(z: np.ndarray) -> RawEstimates:
    """One record of each machine, with standard errors of 1."""
    n = len(z)
    start, freedom = np.arange(n), np.full(n, np.inf)
    return RawEstimates(z, np.ones((n, 1, 1)), np.zeros(1, bool), start, freedom)


def test_errors_that_are_hardly_known_give_no_more_false_alarms() -> None:
    rng, n, dof = np.random.default_rng(2), 4000, 4
    true_error = 1.0
    stated = true_error * np.sqrt(rng.chisquare(dof, n) / dof)
    x = 10.0 + 0.1 * rng.standard_normal(n) + true_error * rng.standard_normal(n)
    found = fx.population(table({"a": x}, {"a": stated}, freedom=dof))
    assert 0.5e-2 < np.mean(found.records["chance"] < 1e-2) < 2e-2


def test_spreads_between_machines_and_between_records_are_told_apart() -> None:
    rng, m, k = np.random.default_rng(3), 200, 4
    machine = np.repeat(np.arange(m), k)
    between, within = np.array([[1.0, 0.5], [0.5, 1.0]]), np.diag([0.25, 0.04])
    truth = rng.multivariate_normal([5.0, 5.0], between, m)[machine]
    truth = truth + rng.multivariate_normal([0.0, 0.0], within, m * k)
    seen = truth + 0.3 * rng.standard_normal((m * k, 2))
    seen[machine == 17, 0] += 9.0
    seen[40, 1] += 3.0
    fleet = table(
        {"a": seen[:, 0], "b": seen[:, 1]},
        {"a": 0.3, "b": 0.3},
        machine=[f"m{j}" for j in machine],
    )
    found = fx.population(fleet)
    assert found.within is not None
    assert found.within_error is not None
    for got, true, error in (
        (found.between, between, found.between_error),
        (found.within, within, found.within_error),
    ):
        assert np.all(np.abs(got - true) < 4.0 * error)
    assert found.machines.sort_values("chance").iloc[0]["machine"] == "m17"
    assert list(found.machines["outlier"]).count(True) <= 3
    unlike = found.records.sort_values("within_chance")
    assert unlike.iloc[0]["record"] == "r40"
    assert {"population-unlike-its-machine"} <= {n.code for n in found.notices}
    others = found.records["within_chance"].drop(40)
    assert plausible(int(np.sum(others < 0.01)), len(others), 0.01)


def test_a_logarithm_of_equal_absolute_errors_is_not_pulled() -> None:
    rng, n = np.random.default_rng(4), 10_000
    truth = 7.0 * np.exp(0.1 * rng.standard_normal(n))
    error = 7.0 * rng.uniform(0.02, 0.2, n)
    x = truth + error * rng.standard_normal(n)
    found = fx.population(table({"F": x}, {"F": error}, lower={"F": 0.0}))
    assert found.lower["F"] == 0.0
    # at each estimate itself the mean would be off by some ten standard errors
    naive = np.average(np.log(np.maximum(x, 0.1)), weights=1 / (0.01 + (error / x) ** 2))
    error = float(np.sqrt(found.mean_covariance[0, 0]))
    assert abs(naive - np.log(7.0)) > 5 * error
    assert abs(found.mean[0] - np.log(7.0)) < 3 * error
    assert np.sqrt(found.between[0, 0]) == pytest.approx(0.1, abs=0.004)


def test_units_do_not_matter() -> None:
    fleet, _ = normal(np.random.default_rng(5), 200, OMEGA)
    small = fleet.copy()
    for end in ("", ".standard_error"):
        small[f"part.n1{end}"] = 1e-6 * fleet[f"part.n1{end}"]
    small.attrs = fleet.attrs
    one, other = fx.population(fleet), fx.population(small)
    size = np.array([1.0, 1e-6, 1.0])
    np.testing.assert_allclose(other.mean, size * one.mean, rtol=1e-5)
    np.testing.assert_allclose(other.between, one.between * np.outer(size, size), rtol=2e-3)
    np.testing.assert_allclose(other.correlation, one.correlation, atol=2e-3)


def test_a_number_without_spread_is_told_as_such() -> None:
    rng = np.random.default_rng(6)
    fleet = table(
        {"a": 1 + 0.1 * rng.standard_normal(400), "b": rng.standard_normal(400)},
        {"a": 0.1, "b": 0.1},
    )
    found = fx.population(fleet)
    assert found.to_pandas().loc["a", "spread_lower"] == 0.0
    assert [n.subject for n in found.notices if n.code == "population-no-spread"] == ["a"]
    assert np.all(np.isfinite(found.covariance))
    assert np.all(np.linalg.eigvalsh(found.between) > -1e-12)


def test_what_a_record_does_not_tell_is_borrowed_and_what_failed_is_counted() -> None:
    rng, n = np.random.default_rng(7), 400
    truth = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]], n)
    fleet = table(
        {"a": truth[:, 0], "b": truth[:, 1]}, {"a": 0.05, "b": 0.05}, reason="", converged=True
    )
    fleet.loc[:9, "b.standard_error"] = np.nan
    fleet.loc[10:12, ["a", "b"]] = np.nan
    fleet.loc[10:12, "reason"] = "The record is empty."
    fleet.loc[13, "converged"] = False
    found = fx.population(fleet)
    assert dict(found.left_out) == {"The record is empty.": 3, "the search did not converge": 1}
    assert len(found.records) == n - 4
    borrowed = found.records["b"].to_numpy()[:10]
    error = np.sqrt(found.covariance[:10, 1, 1])
    assert np.all(np.abs(borrowed - truth[:10, 1]) < 4 * error)
    assert np.allclose(error, np.sqrt(1 - 0.9**2), rtol=0.2)
    assert "3 of 400" not in str(found)
    assert "4 of 400 records have no estimates" in str(found)


def test_a_number_at_its_bound_is_taken_as_it_is() -> None:
    rng = np.random.default_rng(8)
    fleet = table(
        {"F": np.maximum(0.1 + 0.1 * rng.standard_normal(200), 0.0)}, {"F": 0.05}, lower={"F": 0.0}
    )
    found = fx.population(fleet)
    assert found.lower["F"] is None
    assert [n.code for n in found.notices if n.subject] == ["population-near-bound"]
    assert fx.population(fleet, log="F").lower["F"] == 0.0
    assert fx.population(fleet, log=False).lower["F"] is None


def test_what_cannot_be_a_population_is_refused_in_a_sentence() -> None:
    fleet, _ = normal(np.random.default_rng(9), 5, OMEGA)
    with pytest.raises(ValueError, match="two machines"):
        fx.population(fleet.iloc[:1])
    with pytest.raises(KeyError, match=r"Did you mean 'part.n1'"):
        fx.population(fleet, "part.n11")
    with pytest.raises(ValueError, match="no lower bound"):
        fx.population(fleet, log="part.n0")
    with pytest.raises(ValueError, match="between 0 and 1"):
        fx.population(fleet, false_alarms=1.0)
    with pytest.raises(ValueError, match="has no fitted numbers"):
        fx.population(pd.DataFrame({"a": [1.0]}))
    bare = fleet.copy()
    bare["part.n0.standard_error"] = np.nan
    with pytest.raises(ValueError, match="no estimate has a standard error: 5"):
        fx.population(bare, "part.n0")
    assert "population-few-machines" in {n.code for n in fx.population(fleet.iloc[:3]).notices}


def test_machines_that_do_not_differ_at_all_may_differ_by_less_than_their_errors() -> None:
    found = fx.population(table({"a": np.ones(10), "b": np.ones(10)}, {"a": 0.1, "b": 2.0}))
    rows = found.to_pandas()
    assert rows["spread"].to_numpy() == pytest.approx([0.0, 0.0], abs=1e-2)
    assert 0.05 < rows["spread_upper"].iloc[0] < 0.15
    assert 1.0 < rows["spread_upper"].iloc[1] < 3.0
    assert found.outliers.empty


def test_no_record_of_a_small_fleet_is_off_without_being_far() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = np.repeat(rng.standard_normal(3), 3) + 0.2 * rng.standard_normal(9)
        fleet = table({"a": x}, {"a": 0.1}, machine=[f"m{i // 3}" for i in range(9)])
        assert fx.population(fleet).outliers.empty


def test_two_machines_and_a_table_without_names_give_an_answer() -> None:
    plain = pd.DataFrame({"F": [7.0, 8.0], "F.standard_error": [0.1, 0.1]})
    found = fx.population(plain)
    assert found.to_pandas().loc["F", "median"] == pytest.approx(7.5, abs=1e-6)
    assert found.records["record"].tolist() == ["0", "1"]
    assert found._repr_html_().startswith("<div")
    assert found.density("F", np.linspace(-20, 30, 5001)).sum() * 0.01 == pytest.approx(1, rel=1e-3)


def test_the_fleet_itself_will_do_for_its_table() -> None:
    fleet, _ = normal(np.random.default_rng(0), 30, OMEGA)
    limits = {"part.n0": (0.0, 20.0)}
    assert repr(fx.population(fx.Fleet(fleet))) == repr(fx.population(fleet))
    assert fx.verdicts(fx.Fleet(fleet), limits).counts["pass"] == 30


@pytest.mark.parametrize("seed", [3, 6, 11])
def test_no_smaller_spread_is_more_likely_where_all_numbers_move_together(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # machines are alike; a sensor's gain differs from record to record, and all numbers with it
    rng = np.random.default_rng(seed)
    gain, errors = np.exp(0.03 * rng.standard_normal(60)), {"F": 2.2e-3, "d": 1.2e-2}
    noise = 0.3 * rng.multivariate_normal([0, 0], [[1, -0.92], [-0.92, 1]], 60)
    values = {n: gain * (1 + errors[n] * noise[:, k]) for k, n in enumerate(errors)}
    one = table(values, errors, lower=dict.fromkeys(errors, 0.0))
    one["machine"] = [f"m{i % 6}" for i in range(60)]
    one["correlation:F:d"] = -0.92
    ends = []
    monkeypatch.setattr(
        population,
        "fit_robust_population",
        lambda raw: ends.append(fit_robust_population(raw)) or ends[-1],
    )
    told = fx.population(one).to_pandas()
    assert np.max(told["spread_lower"].to_numpy(float)) < 1e-3
    assert np.max(told["spread_upper"].to_numpy(float)) < 0.06
    assert np.allclose(told["repeat_spread"], 0.03, rtol=0.35)
    (end,) = ends
    for share in (0.5, 0.1, 0.01):
        smaller = evaluate_likelihood(end.estimates, share * end.between, end.within)
        assert smaller.loglik < end.likelihood.loglik + 0.1
