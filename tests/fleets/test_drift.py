"""Drift of a fleet: what wears is told, when theory says, and what does not is left in peace."""

import numpy as np
import pandas as pd
import pytest

import frictax as fx
from fleet_tables import axes, plausible, table
from frictax.fleets.statistics.trends import Lines, solve_lines

NAME = "joint.F"


def test_lines_are_those_of_the_whole_covariance() -> None:
    rng = np.random.default_rng(0)
    start = np.array([0, 5])
    t = np.concatenate([np.sort(rng.uniform(-1, 1, 5)), np.sort(rng.uniform(-1, 1, 7))])
    x, T, error = rng.normal(size=12), rng.normal(size=12), rng.uniform(0.1, 0.3, 12)
    lines = Lines(t, x, error, T, start, np.array([False, True]))
    got = solve_lines(lines, 0.02, 0.05, 0.4)
    same = np.equal.outer(lines.machine, lines.machine)
    V = np.diag(error**2 + 0.02) + 0.05 * same * np.exp(-np.abs(t[:, None] - t) / 0.4)
    first = lines.machine == 0
    X = np.stack([first, first * t, ~first, ~first * t, ~first * T, first * T], axis=1)
    weighed = np.linalg.solve(V, X)
    N = X.T @ weighed
    line = np.linalg.solve(N, weighed.T @ x)
    np.testing.assert_allclose([got.a[0], got.b[0], got.a[1], got.b[1]], line[:4], rtol=1e-8)
    np.testing.assert_allclose([got.own_c[1], got.c], line[4:], rtol=1e-8)
    rest = x - X @ line
    logs = np.linalg.slogdet(V)[1] + np.linalg.slogdet(N)[1] + rest @ np.linalg.solve(V, rest)
    assert got.loglik == pytest.approx(-0.5 * logs, rel=1e-9)
    variance = np.linalg.inv(N)[1, 1]
    by_c = got.by_c[0, 1] ** 2 * got.c_error**2
    assert got.covariance[0, 1, 1] + by_c == pytest.approx(variance, rel=1e-8)


@pytest.mark.parametrize(
    ("kind", "fleets"),
    [
        ({"white": 0.05}, 1),
        ({"slow": 0.2}, 1),
        pytest.param({"white": 0.05}, 40, marks=pytest.mark.slow),
        pytest.param({"slow": 0.2}, 40, marks=pytest.mark.slow),
        pytest.param({"slow": 0.1, "memory": 200.0}, 40, marks=pytest.mark.slow),
    ],
)
def test_machines_without_drift_look_like_it_as_often_as_said(kind: dict, fleets: int) -> None:
    chances, remembers = [], 0
    for seed in range(fleets):
        found = fx.drift(axes(np.random.default_rng(seed), 150, 18, **kind))
        chances.append(found.slopes["chance"].to_numpy())
        remembers += "drift-remembers" in {n.code for n in found.notices}
    chance = np.concatenate(chances)
    assert plausible(int(np.sum(chance < 0.05)), chance.size, 0.05)
    if "slow" in kind:
        assert remembers == fleets


def test_a_walk_taken_for_white_would_look_like_drift() -> None:
    fleet = axes(np.random.default_rng(0), 150, 18, slow=0.2)
    found = fx.drift(fleet)
    fit = found.fits[NAME]
    x = fleet[NAME].to_numpy() + 0.04 * (fleet["temperature"].to_numpy() - 25)
    t = np.tile(np.arange(18) * 30.4 / 365.25, 150)
    lines = Lines(
        t - t.mean(),
        x,
        fleet[f"{NAME}.standard_error"].to_numpy(),
        None,
        np.arange(0, 2700, 18),
        np.zeros(150, bool),
    )
    naive = solve_lines(lines, fit.white + fit.slow, 0.0, 1.0)
    z = naive.b / np.sqrt(naive.covariance[:, 1, 1])
    assert np.mean(np.abs(z) > 1.96) > 0.15  # one in twenty was promised
    assert found.fleet.loc[NAME, "memory"] == pytest.approx(60.0, rel=0.5)
    assert found.drifting.empty


def test_what_drifts_is_found_with_its_size_and_the_temperature_taken_out() -> None:
    drift = np.where(np.arange(80) < 4, 0.5, 0.0)
    found = fx.drift(axes(np.random.default_rng(1), 80, 24, drift=drift))
    assert {f"axis {i}" for i in range(4)} <= set(found.drifting["machine"])
    assert len(found.drifting) <= 6
    some = found.slopes.iloc[:4]
    assert np.all(np.abs(some["slope"] - 0.5) < 4 * some["standard_error"])
    row = found.fleet.loc[NAME]
    assert abs(row["temperature_coefficient"] + 0.04) < 4 * row["temperature_error"]
    assert row["scatter"] == pytest.approx(0.05, abs=0.02)
    assert "axis 0: joint.F by" in str(found)
    assert found._repr_html_().startswith("<div")


@pytest.mark.slow
def test_of_the_machines_that_are_called_drifting_few_do_not() -> None:
    drift, wrong = np.where(np.arange(100) < 10, 0.25, 0.0), []
    for seed in range(60):
        found = fx.drift(axes(np.random.default_rng(seed), 100, 18, drift=drift))
        false = sum(int(m.split()[1]) >= 10 for m in found.drifting["machine"])
        wrong.append(false / max(len(found.drifting), 1))
    assert np.mean(wrong) < 0.05 + 3 * np.std(wrong) / np.sqrt(60)


@pytest.mark.parametrize(
    "kind", [{"white": 0.05}, pytest.param({"slow": 0.1}, marks=pytest.mark.slow)]
)
def test_a_drift_is_told_after_the_date_that_theory_says(kind: dict) -> None:
    size = 0.4
    found = fx.drift(axes(np.random.default_rng(3), 200, 20, **kind))
    when = found.told(NAME, size)
    count = int(when["records"].iloc[0])
    assert when["years"].iloc[0] == pytest.approx((count - 1) * 30.4 / 365.25, rel=0.03)
    assert when["date"].iloc[0] > pd.Timestamp("2024-01-01")
    later = fx.drift(axes(np.random.default_rng(103), 200, count, drift=size, **kind))
    told = int(np.sum(later.slopes["chance"] < found.rate / len(found.slopes)))
    assert 0.65 < told / 200 < 0.95  # 80 % are promised
    assert found.told(NAME, 2 * size)["records"].iloc[0] < count


def test_each_machine_may_have_its_own_temperature_coefficient() -> None:
    rng = np.random.default_rng(4)
    own = np.repeat(rng.uniform(-0.1, 0.1, 12), 24)
    fleet = axes(rng, 12, 24, warmth=0.0)
    fleet[NAME] += own * (fleet["temperature"] - 25)
    found = fx.drift(fleet, own_temperature=True)
    assert found.slopes["temperature_coefficient"].to_numpy() == pytest.approx(own[::24], abs=0.02)
    assert np.isnan(found.fleet.loc[NAME, "temperature_coefficient"])
    assert found.drifting.empty


def test_one_wrong_record_is_no_drift() -> None:
    fleet = axes(np.random.default_rng(5), 40, 18)
    fleet.loc[17, NAME] += 5.0  # the last of the first machine
    found = fx.drift(fleet)
    assert found.drifting.empty
    assert "drift-records-off" in {n.code for n in found.notices}
    assert found.fleet.loc[NAME, "scatter"] < 0.1


def test_what_is_missing_is_said() -> None:
    fleet = axes(np.random.default_rng(6), 10, 6)
    cold = fx.drift(fleet.drop(columns="temperature"))
    assert "drift-without-temperature" in {n.code for n in cold.notices}
    assert "which changes friction more than wear does" in str(cold)
    fleet.loc[0, "temperature"] = np.nan
    fleet.loc[1, "date"] = pd.NaT
    fleet.loc[6:9, "date"] = pd.NaT
    found = fx.drift(fleet)
    assert [n.code for n in found.notices][:3] == [
        "drift-temperature-missing",
        "drift-left-out",
        "drift-too-few",
    ]
    assert len(set(found.slopes["machine"])) == 9
    with pytest.raises(ValueError, match="no dates"):
        fx.drift(fleet.drop(columns="date"))
    with pytest.raises(ValueError, match="3 dates or more"):
        fx.drift(fleet.iloc[:2])
    with pytest.raises(ValueError, match="no lower bound"):
        fx.drift(fleet, log=NAME)
    with pytest.raises(KeyError, match="no drift of"):
        found.told("joint.G", 1.0)
    with pytest.raises(ValueError, match="never detected"):
        found.told(NAME, 0.0)
    # The error of a slope over n records falls as n**-1.5. Monthly records need 1000 years here.
    many = found.told(NAME, float((found.told(NAME, 1.0)["records"].iloc[0] / 16_000) ** 1.5))
    assert 12_288 < many["records"].iloc[0] <= 20_000
    assert many["years"].iloc[0] > 1000.0
    assert pd.isna(many["date"].iloc[0])


def test_dates_are_read_year_first_or_refused() -> None:
    fleet = axes(np.random.default_rng(9), 10, 6, drift=[1.0] + 9 * [0.0])
    slopes, dates = fx.drift(fleet).slopes["slope"], fleet["date"].dt
    text = dates.strftime("%Y-%m-%dT12:00+02:00")
    mixed = text.astype(object).where(text.index > 0, text[0][:10])
    whole = dates.strftime("%Y%m%d")
    for same in (text, mixed, whole, whole.astype(int), whole.astype(float)):
        got = fx.drift(fleet.assign(date=same)).slopes["slope"]
        assert got.to_numpy() == pytest.approx(slopes.to_numpy(), abs=0.02)
    for form in ("%d.%m.%Y", "%m/%d/%Y", "%d-%m-%y"):
        with pytest.raises(ValueError, match="must be in ISO form.*Write them as 2026-05-31"):
            fx.drift(fleet.assign(date=dates.strftime(form)))
    for number in (45443.0, 2024.5, 20241331):
        with pytest.raises(ValueError, match=f"ISO form.*got {number:.12g}"):
            fx.drift(fleet.assign(date=number))


def test_relative_drift_is_in_shares_a_year() -> None:
    rng, n = np.random.default_rng(7), 20 * 12
    machine, month = np.repeat(np.arange(20), 12), np.tile(np.arange(12), 20)
    F = (5.0 * np.exp(0.5 * rng.standard_normal(20)))[machine] * (1 + 0.1 * month / 12)
    fleet = table(
        {"F": F * (1 + 0.01 * rng.standard_normal(n))},
        {"F": 0.01 * F},
        lower={"F": 0.0},
        machine=[f"m{i}" for i in machine],
        date=pd.Timestamp("2024-01-01") + pd.to_timedelta(365.25 / 12 * month, "D"),
    )
    found = fx.drift(fleet, log="F")
    assert found.fleet.loc["F", "slope"] == pytest.approx(0.1, rel=0.1)
    assert "%/yr" in str(found)
