"""Where the search of a free run ends above the noise, rounds find the values of the record."""

import json
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.fitting import FitOptions
from frictax.fitting.build_problem import build_problem
from frictax.fitting.search import rounds
from frictax.fitting.search.levenberg_marquardt import begin
from rigs import AWAY_LAW, LAW, block, record

TRUTH = {"spring.c": 2500.0, "pack.f_pos.F_Coulomb": 22.0, "pack.peak": 1.5}
T = np.arange(0.0, 25.0, 0.01)
PUSH = 60.0 * np.sin(2 * np.pi * 0.11 * T) + 26.0 * np.sin(2 * np.pi * 0.29 * T)


def valve(c: float, F_Coulomb: float, peak: float, force: Any = 0.0) -> fx.Mechanism:
    """A stem that sticks most of the time."""
    return fx.Mechanism(
        seat=fx.Fixed(),
        stem=fx.Mass(m=0.8),
        spring=fx.Spring("seat", "stem", c=c),
        pack=fx.SupportFriction(
            "stem", f_pos=fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=40.0), peak=peak
        ),
        drive=fx.Force("stem", force),
    )


@pytest.fixture(scope="module")
def stem() -> fx.Record:
    machine = valve(2500.0, 22.0, 1.5, fx.Sampled(T, PUSH))
    s = np.asarray(fx.simulate(machine, T, fx.OnSamples(substeps=4))["stem"].s)
    noise = 0.005 * np.std(s) * np.random.default_rng(0).standard_normal(T.size)
    return fx.Record(T, {"drive": PUSH}, {"stem.s": s + noise}, name="run")


@pytest.fixture(scope="module")
def sliding() -> fx.Record:
    return record(block())


@pytest.fixture
def no_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds fail the test."""

    def scores(*args: Any) -> Any:
        raise AssertionError("a round was searched")

    monkeypatch.setattr(rounds, "_scores", scores)


AWAY = valve(2700.0, 20.0, 1.4)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_a_valve_that_sticks_is_found_within_a_thousandth(stem: fx.Record) -> None:
    found = fx.fit(AWAY, stem, free=list(TRUTH))
    for path, value in TRUTH.items():
        assert found.values[path] == pytest.approx(value, rel=1e-3)
    assert found.at_noise is True
    assert found.converged
    (said,) = (n for n in found.notices_at_hand if n.code == "search-by-rounds")
    assert float(said.numbers["before"]) > 3.0
    assert float(said.numbers["after"]) < 1.1
    assert found.iterations > 15  # those of all searches
    again = fx.fit(AWAY, stem, free=list(TRUTH))
    assert again.values == found.values
    assert again.iterations == found.iterations
    alone = fx.fit(AWAY, stem, free=list(TRUTH), rounds=0)
    assert alone.at_noise is False
    codes = {n.code for n in alone.notices_at_hand}
    assert not codes & {"search-by-rounds", "search-above-noise"}
    assert not any("result of the search is valid" in str(n) for n in alone.notices_at_hand)


@pytest.mark.usefixtures("no_rounds")
def test_a_certified_search_is_followed_by_no_round(sliding: fx.Record) -> None:
    found = fx.fit(block(**AWAY_LAW), sliding, free=LAW)
    assert found.at_noise is True
    assert not found.notes


@pytest.mark.slow
def test_the_json_of_a_fit_has_the_certificate(sliding: fx.Record) -> None:
    found = fx.fit(block(**AWAY_LAW), sliding, free=LAW)
    assert json.loads(found.to_json())["at_noise"] is True


def test_rounds_for_other_fits_are_refused() -> None:
    run = record(block())
    with pytest.raises(ValueError, match="`rounds` must be left out.*Windows"):
        fx.fit(block(), run, free=LAW, objective=fx.Windows(0.5), rounds=4)
    with pytest.raises(ValueError, match="`rounds` must be left out.*Huber"):
        fx.fit(block(), run, free=LAW, loss=fx.Huber(), rounds=4)
    with pytest.raises(ValueError, match="`rounds` must be a whole number >= 0, got -1"):
        fx.fit(block(), run, free=LAW, rounds=-1)
    sweep = fx.Sweep([1, 2, 3, 4], [7.1, 7.9, 9.1, 9.9], velocity_unit="m/s", force_unit="N")
    with pytest.raises(ValueError, match="`rounds` is an option for the records of a machine"):
        fx.fit(fx.Coulomb, sweep, rounds=4)  # pyright: ignore


@pytest.mark.usefixtures("no_rounds")
def test_starts_of_a_free_run_are_accepted_and_name_rounds(sliding: fx.Record) -> None:
    found = fx.fit(block(**AWAY_LAW), sliding, free=LAW, starts=2)
    (said,) = (n for n in found.notes if n.code == "starts-of-free-run")
    assert "rounds=12" in str(said)


def test_an_evolution_finds_the_least_value_of_a_turned_and_stretched_bowl() -> None:
    turn, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))
    far = np.array([0.4, -0.3, 0.2, 0.5])
    cloud = rounds._Cloud(np.zeros(4), 0.5, np.random.default_rng(0))
    for _ in range(40):
        points = cloud.draw()
        cloud.adapt(points, np.sum(((points - far) @ turn * [1, 10, 100, 1000]) ** 2, axis=1))
    assert np.max(np.abs(cloud.mean - far)) < 1e-3


def test_points_of_rounds_lead_to_coordinates_and_back() -> None:
    run, seen = record(block()), list[Any]()
    start = block(**AWAY_LAW, v=0.1)
    free = [*LAW, "friction.peak", "mass.v", "mass.s"]
    bounds = {"friction.f_pos.F_prop": (0.05, 0.9)}
    problem, _ = build_problem(start, {"run": run}, FitOptions(free=free, bounds=bounds))
    state = begin(np.zeros(problem.x0.size), problem.rows(), problem.spans(1.0))
    logarithms = rounds._Logarithms(problem, state)
    points = 0.3 * np.random.default_rng(0).standard_normal((5, problem.x0.size))
    for point, z in zip(points, logarithms.to_coordinates(points), strict=True):
        x = np.asarray(problem.physical(jnp.asarray(z)))
        assert np.isfinite(x).all()
        seen.append(np.max(np.abs(logarithms.of_coordinates(z) - point)))
    assert max(seen) < 1e-9


@pytest.mark.slow
def test_rounds_that_find_nothing_at_the_noise_say_so_and_call_no_end_an_answer() -> None:
    """The machine lacks a spring."""
    parts = {"wall": fx.Fixed(), "spring": fx.Spring("wall", "mass", c=2.0)}
    run = record(block(parts=parts))
    found = fx.fit(block(), run, free=LAW, rounds=1)
    assert found.at_noise is False
    (said,) = (n for n in found.notices_at_hand if n.code == "search-above-noise")
    assert said.numbers["rounds"] == 1
    assert "fit again with rounds=12" in str(said)
    assert "misfit-above-noise" not in [n.code for n in found.notices_at_hand]
    assert not any("result of the search is valid" in str(n) for n in found.notices_at_hand)


@pytest.mark.slow
def test_autocorrelated_noise_of_a_right_machine_is_no_reason_to_doubt_it() -> None:
    t, noise = np.linspace(0.0, 6.0, 601), np.zeros(601)
    clean = record(block())
    for i, jump in enumerate(np.random.default_rng(0).standard_normal(601)):
        noise[i] = 0.9 * noise[i - 1] + np.sqrt(1 - 0.9**2) * jump
    v = np.asarray(clean.outputs["mass.v"]) + 0.01 * noise
    run = fx.Record(t, clean.inputs, {"mass.v": v}, name="run")
    found = fx.fit(block(), run, free=LAW, rounds=1)
    codes = {n.code for n in found.notices_at_hand}
    assert found.at_noise is False
    assert "search-not-certified" in codes
    assert not codes & {"search-above-noise", "misfit-above-noise"}


@pytest.mark.slow
@pytest.mark.usefixtures("no_rounds")
def test_fits_inside_other_work_search_no_rounds() -> None:
    parts = {"wall": fx.Fixed(), "spring": fx.Spring("wall", "mass", c=2.0)}
    run = record(block(parts=parts))
    fx.fit_many(block(), [run, run], free=LAW)
    fx.outlook(block(), run, free=LAW)
    structures = {"one": fx.Structure(block(), free=LAW), "two": fx.Structure(block(), free=LAW)}
    fx.compare(run, structures, repeats=2, bands=2)


@pytest.mark.slow
def test_a_key_between_rounds_keeps_the_best_end() -> None:
    parts = {"wall": fx.Fixed(), "spring": fx.Spring("wall", "mass", c=2.0)}
    run = record(block(parts=parts))

    def stop(line: str) -> None:
        if line.startswith("round 1 of"):
            raise KeyboardInterrupt

    found = fx.fit(block(), run, free=LAW, progress=stop)
    assert "search-interrupted" in [n.code for n in found.notices_at_hand]
    assert np.isfinite(found.noise_scale)
