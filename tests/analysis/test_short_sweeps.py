"""Few rows that do not exclude an autocorrelation, and outliers that do not look like one."""

import numpy as np
import pytest

import frictax as fx

TRUE = {"F_prop": 0.35, "F_Coulomb": 12.0, "F_Stribeck": 5.0, "fexp": 4.0}
CODE = "autocorrelation-not-excluded"
DOUBTS = {
    *("lack-of-fit", "row-lies-off", "near-bound", "memory-long", "memory-as-long"),
    *("doubtful-dip", "at-lower-bound", CODE),
}


def fitted(n: int, seed: int, correlation: float = 0.0, **options) -> fx.FitResult:
    random, v = np.random.default_rng([seed, n]), np.geomspace(0.05, 3.0, n)
    e = random.standard_normal(n)
    for k in range(1, n):
        e[k] = correlation * e[k - 1] + np.sqrt(1.0 - correlation**2) * e[k]
    force = 0.35 * v + 12.0 + 5.0 * np.exp(-4.0 * v) + 0.15 * e
    for row in options.pop("off", ()):
        force[row] += 2.2
    return fx.fit(fx.Stribeck, fx.Sweep(v, force, velocity_unit="m/s", force_unit="N"), **options)


def codes(found: fx.FitResult) -> set[str]:
    return {notice.code for notice in found.notices}


def misses(found: fx.FitResult) -> bool:
    return any(not e.lower <= TRUE[e.name] <= e.upper for e in found.estimates)


def test_ten_rows_do_not_exclude_an_autocorrelation_and_the_notice_says_how_wide_that_is() -> None:
    (notice,) = [n for n in fitted(10, 3).notices if n.code == CODE]
    assert notice.numbers["rows"] == 10
    assert "F_Stribeck 2.7 times" in str(notice)


def test_sixty_rows_exclude_it() -> None:
    assert not any(CODE in codes(fitted(60, seed)) for seed in range(5))


@pytest.mark.parametrize("loss", [fx.Squares(), fx.Huber()], ids=["Squares", "Huber"])
def test_neighbouring_outliers_are_all_named_and_are_no_autocorrelation(loss) -> None:
    found = fitted(72, 1, off=(40, 41), loss=loss)
    assert {n.numbers["row"] for n in found.notices if n.code == "row-lies-off"} == {40, 41}
    assert "remember" not in found.spread.says
    assert max(found.uncertainty().ratio.values()) < 2.0


@pytest.mark.slow
def test_of_ten_correlated_rows_five_in_a_hundred_fits_are_wrong_in_silence() -> None:
    found = [fitted(10, seed, 0.8) for seed in range(200)]
    assert sum(misses(f) for f in found) > 80  # white errors are a bad assumption
    assert sum(misses(f) and not codes(f) & DOUBTS for f in found) <= 10


@pytest.mark.slow
def test_of_white_sweeps_of_sixty_rows_one_in_twenty_has_the_notice() -> None:
    assert sum(CODE in codes(fitted(60, seed)) for seed in range(100)) <= 5
