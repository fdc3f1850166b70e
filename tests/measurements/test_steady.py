"""Raw runs at steady speed, averaged to the rows of a sweep."""

from typing import Any

import numpy as np
import pytest

import frictax as fx
from frictax.measurements.sweep import steady_runs

T = 0.005 * np.arange(1000)


def coloured(rng: np.random.Generator, a: float, n: int = T.size) -> np.ndarray:
    """An autoregression of variance 1."""
    e = rng.standard_normal(n + 500)
    x = np.zeros(n + 500)
    for i in range(1, x.size):
        x[i] = a * x[i - 1] + np.sqrt(1 - a**2) * e[i]
    return x[500:]


def run(
    speed: Any, seed: int = 0, a: float = 0.0, noise: float = 0.2, force: Any = None, **more: Any
) -> fx.Record:
    """A run of 5 s; the force is 2 + 0.5 times the speed, with noise."""
    rng = np.random.default_rng(seed)
    v = speed + 0.01 * rng.standard_normal(T.size)
    f = (2.0 + 0.5 * np.mean(v) if force is None else force) + noise * coloured(rng, a)
    return fx.Record(T, {"drive": f}, {"mass.v": v}, name=f"run at {np.mean(speed):g}", **more)


def test_a_row_is_the_mean_of_its_run_and_its_error_that_of_the_mean() -> None:
    runs = [run(v, seed=i) for i, v in enumerate((1.0, 2.0, 4.0))]
    sweep = fx.Sweep.from_records(runs, "mass.v", "drive")
    np.testing.assert_allclose(sweep.velocity, [1, 2, 4], atol=0.002)
    np.testing.assert_allclose(sweep.force, [r.inputs["drive"].mean() for r in runs], rtol=1e-12)
    assert sweep.sigma is not None
    np.testing.assert_allclose(sweep.sigma, 0.2 / np.sqrt(T.size), rtol=0.5)
    assert sweep.notes == ()


@pytest.mark.parametrize("a", [0.0, 0.9])
def test_errors_of_the_mean_hold_whatever_the_noise_remembers(a: float) -> None:
    truth, inside, flagged = 3.0, 0, 0
    for seed in range(200):
        (row,), *_ = steady_runs(
            [run(2.0, seed, a, noise=1.0, force=truth)], "mass.v", "drive", 0.0
        )
        inside += abs(row.force - truth) < 1.96 * row.error
        flagged += bool(row.unsteady)
    assert 182 <= inside <= 200  # of 200, 190 expected
    assert flagged <= 6  # that drift by chance


def test_an_error_that_takes_neighbours_for_independent_would_be_four_times_too_small() -> None:
    rows = [
        steady_runs([run(2.0, s, 0.9, noise=1.0)], "mass.v", "drive", 0.0)[0][0] for s in range(40)
    ]
    plain = 1.0 / np.sqrt(T.size)
    assert np.median([row.error for row in rows]) == pytest.approx(np.sqrt(19) * plain, rel=0.15)


UNSTEADY = {
    "speed": (run(2.0 + 0.05 * T), r"its speed drifts by 12% of its mean, \d+ standard errors"),
    "force": (run(2.0, force=3.0 - 0.1 * T), r"its force drifts by 18% of its mean"),
    "jerks": (
        run(np.where(np.sin(40 * T) > 0.6, 1.5, 0.0)),
        "as in stick-slip motion",
    ),
    "settling": (run(2.0 * (1 - np.exp(-T / 0.3))), "its speed drifts by"),
    "short": (run(2.0, 3, a=0.997, noise=0.3), "effective samples, fewer than 10|drifts"),
}


@pytest.mark.parametrize("what", UNSTEADY)
def test_a_run_that_is_not_steady_is_left_out_and_it_says_why(what: str) -> None:
    import re

    wrong, says = UNSTEADY[what]
    good = [run(v, seed=9) for v in (1.0, 3.0)]
    sweep = fx.Sweep.from_records([*good, wrong], "mass.v", "drive")
    assert sweep.n == 2
    (note,) = sweep.notes
    assert note.startswith(f"{wrong.name} is unsteady and left out: ")
    assert re.search(says, note), note
    kept = fx.Sweep.from_records([*good, wrong], "mass.v", "drive", keep_unsteady=True)
    assert kept.n == 3
    assert "is unsteady and kept" in kept.notes[0]
    assert sweep.positive().notes == sweep.notes


def test_a_run_is_steady_once_it_has_settled() -> None:
    slow = run(2.0 * (1 - np.exp(-T / 0.3)))
    good = [run(v) for v in (1.0, 3.0)]
    assert fx.Sweep.from_records([*good, slow], "mass.v", "drive").n == 2
    assert fx.Sweep.from_records([*good, slow], "mass.v", "drive", settle=2.5).n == 3


def test_units_and_sign_are_those_of_the_records() -> None:
    runs = {
        f"{v}": fx.Record(
            T,
            {"motor": -(1.0 + v / 100 + 0.01 * coloured(np.random.default_rng(v), 0.0))},
            {"rotor.w": v + 0.1 * coloured(np.random.default_rng(v + 1), 0.0)},
            units={"motor": "mN.m", "rotor.w": "rpm"},
        )
        for v in (30, 60, 90)
    }
    sweep = fx.Sweep.from_records(runs, "rotor.w", "motor", sign=-1)
    assert (sweep.velocity_unit.name, sweep.force_unit.name) == ("rpm", "mN.m")
    np.testing.assert_allclose(sweep.force, [1.3e-3, 1.6e-3, 1.9e-3], rtol=2e-3)
    np.testing.assert_allclose(sweep.velocity, np.array([30, 60, 90]) * np.pi / 30, rtol=2e-3)


def test_a_sweep_of_runs_is_fitted_within_its_errors() -> None:
    runs = [run(v, seed=i, a=0.8) for i, v in enumerate((0.5, 1.0, 1.5, 2.0, 3.0, 4.0))]
    found = fx.fit(
        fx.Coulomb(F_Coulomb=1.0, F_prop=0.1), fx.Sweep.from_records(runs, "mass.v", "drive")
    )
    for name, value in (("F_Coulomb", 2.0), ("F_prop", 0.5)):
        low, high = found.intervals[name]
        assert low < value < high


WRONG: dict[str, tuple[Any, dict[str, Any], str]] = {
    "one record": (run(1.0), {}, "needs the records of several runs, got a Record"),
    "none": ([], {}, "needs the records of several runs, got none"),
    "a number": ([1.0, 2.0], {}, "needs `Record`s, got a float"),
    "channel": ([run(1.0)], {"velocity": "mass.w"}, "has no channel 'mass.w'. Did you mean"),
    "settle": ([run(1.0)], {"settle": -1.0}, "`settle` must be a time >= 0"),
    "too long": ([run(1.0)], {"settle": 9.0}, "has 0 samples after the 9 s that it is given"),
    "too few": (
        [run(1.0), run(2.0 + 0.1 * T)],
        {},
        "two or more steady runs, got 1 of 2. run at 2.24975 is unsteady",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_become_a_sweep_is_refused_in_a_sentence(what: str) -> None:
    records, options, says = WRONG[what]
    with pytest.raises(ValueError, match=says):
        fx.Sweep.from_records(records, **{"velocity": "mass.v", "force": "drive", **options})
