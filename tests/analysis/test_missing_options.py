"""`missing` and `structures` with own parameters, bounds, ties, priors, losses and sensors."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.analysis.errors.linearization import effective_sample_size
from frictax.analysis.missing.candidates import augmented_setup, catalogue
from frictax.analysis.missing.missing import Trials, as_least_squares
from frictax.analysis.missing.score_test import ScoreTest
from frictax.analysis.missing.screening import check_table_range
from frictax.analysis.missing.sensitivities import Point, operating_range, sensitivities
from frictax.analysis.missing.structures import refit_by_free_runs, split_body, split_options
from frictax.analysis.missing.table import Missing, MissingTerm
from frictax.fitting import FitOptions
from frictax.fitting.build_problem import build_problem
from frictax.parameters import get

T = np.arange(400) / 100.0
LAW, DRY = fx.Coulomb(F_Coulomb=1.0, F_prop=0.5), "friction.f_pos.F_Coulomb"
FREE = ["mass.m", DRY, "friction.f_pos.F_prop"]
BY_FORCE = fx.InverseDynamics(20.0, at_samples=True)
BY_DIRECTION = "friction that differs by direction of friction"
BEND, DIP = "bend of friction over speed of friction", "Stribeck friction of friction"


def block(law: Any = None, u: Any = 0.0, m: float = 1.1, **more: Any) -> fx.Mechanism:
    law = fx.Coulomb(F_Coulomb=0.9, F_prop=0.4) if law is None else law
    f_neg = more.pop("f_neg", None)
    return fx.Mechanism(
        mass=fx.Mass(m=m),
        friction=fx.SupportFriction("mass", f_pos=law, f_neg=f_neg),
        drive=fx.Force("mass", u),
        **more,
    )


def record(seed: int = 0, law: Any = LAW, *, out: str = "mass.v", gain: float = 1.0, **more: Any):
    """A driven block, whose sensor has the noise 2e-3 and a gain."""
    rng = np.random.default_rng(seed)
    u = np.array([3.0, 2.5, 2.0, 1.5]) @ np.sin(
        2 * np.pi * np.array([0.4, 0.9, 1.7, 2.6])[:, None] * T + rng.uniform(0, 6.28, 4)[:, None]
    )
    run = fx.simulate(block(law, fx.Sampled(T, u), 1.0), T, fx.OnSamples())["mass"]
    sd = more.get("sd", 2e-3)
    y = gain * (np.asarray(getattr(run, out[-1])) + sd * rng.standard_normal(T.size))
    known: dict[str, Any] = {"sd": {out: gain * sd}} if "sd" in more else {}
    return fx.Record(T, {"drive": u}, {out: y}, name=f"run{seed}", **known)


def table(found: fx.FitResult, *names: str) -> Missing:
    terms = [MissingTerm(n, 0.1, 0.01, "", None, 1.0, 1.0, 0.0, True, True, ()) for n in names]
    return Missing(tuple(terms), (), 1.0, 1.0, "", (), found)


def accepted(found: fx.FitResult, made: fx.Structure, objective: Any = None) -> None:
    """`fit` accepts the options of a structure."""
    options = {f.name: getattr(made, f.name) for f in dataclasses.fields(made) if f.name != "model"}
    objective = objective or found.problem.objective
    build_problem(made.model, found.records, FitOptions(objective=objective, **options))


@pytest.fixture(scope="module")
def two() -> list[fx.Record]:
    return [record(k, fx.Coulomb(F_Coulomb=F, F_prop=0.5)) for k, F in enumerate((0.6, 1.4))]


def test_structures_keep_parameters_that_differ_by_record(two: list[fx.Record]) -> None:
    own = {DRY: [0.7, 1.2]}
    found = fx.fit(block(), two, free=[FREE[0], FREE[2]], own=own, objective=BY_FORCE)
    made = table(found, BY_DIRECTION, BEND, DIP).structures()
    assert list(made) == ["as fitted", DIP]  # one law for both directions has a value per record
    starts: Any = made["as fitted"].own
    starts = [float(x) for x in starts[DRY]]
    assert starts == pytest.approx([found.values[f"{DRY}@run{k}"] for k in (0, 1)])
    for one in made.values():
        accepted(found, one)


def test_structures_keep_bounds_and_begin_inside_of_them(two: list[fx.Record]) -> None:
    limits = {"mass.m": (0.5, 0.95), "friction.f_pos.F_prop": (0.1, 2.0)}
    found = fx.fit(
        block(m=0.7), two[0], free=FREE, bounds=limits, log_scale=[DRY], objective=BY_FORCE
    )
    assert found.values["mass.m"] == pytest.approx(0.95)
    made = table(found, BY_DIRECTION, BEND, DIP, "spring on mass").structures()
    assert list(made) == ["as fitted", DIP, "spring on mass"]
    for one in made.values():
        assert one.bounds == limits
        assert one.log_scale == [DRY]
        accepted(found, one)
    machine: Any = made["as fitted"].model
    split = split_body(machine, "mass", 1e3)
    options = split_options(made["as fitted"], split, "mass")
    assert options["bounds"] == {"friction.f_pos.F_prop": (0.1, 2.0)}
    assert options["free"][2:4] == ["mass.m", "beyond_mass.m"]
    accepted(found, dataclasses.replace(made["as fitted"], model=split, **options), fx.FreeRun())


def test_structures_free_what_a_law_has_already(two: list[fx.Record]) -> None:
    law = fx.Stribeck(F_prop=0.4, F_Coulomb=0.9, F_Stribeck=0.3, fexp=20.0, exponent=2.0)
    found = fx.fit(block(law), two[0], free=FREE, objective=BY_FORCE)
    made = table(found, DIP).structures()[DIP]
    kept: Any = get(made.model, "friction.f_pos")
    assert (float(kept.F_Stribeck), kept.exponent) == (0.3, 2.0)
    assert set(made.free or ()) == {*FREE, "friction.f_pos.F_Stribeck", "friction.f_pos.fexp"}
    # Viscous friction that is 0 starts above its bound.
    found = fx.fit(block(fx.Coulomb(0.9)), two[0], free=FREE[:2], objective=BY_FORCE)
    made = table(found, "viscous friction of friction").structures()
    assert len(made) == 2
    for one in made.values():
        accepted(found, one)


def test_gains_of_a_controller_become_structures() -> None:
    reference = 0.3 * np.sin(3 * T)
    servo = fx.PositionController("mass", fx.Sampled(T, reference), 20.0, 40.0)
    truth = fx.Mechanism(
        mass=fx.Mass(m=1.0), friction=fx.SupportFriction("mass", f_pos=LAW), drive=servo
    )
    s = np.asarray(fx.simulate(truth, T, fx.OnSamples())["mass"].s)
    s = s + 1e-4 * np.random.default_rng(0).standard_normal(T.size)
    loop = fx.ClosedLoop({"drive": fx.PositionController("mass", 0.0, 20.0, 40.0)})
    given = fx.Record(T, {"drive": reference}, {"mass.s": s}, name="run")
    found = fx.fit(block(), given, free=[DRY], objective=loop, rounds=0)
    (gain, *_) = [one.name for one in catalogue(found) if one.of.startswith("drive.k")]
    made = table(found, gain).structures()
    assert list(made[gain].free or ()) == [DRY, gain]
    accepted(found, made[gain])


WINDOWS = fx.Windows(0.5, cutoff=20.0)


@pytest.mark.parametrize("objective", [BY_FORCE, pytest.param(WINDOWS, marks=pytest.mark.slow)])
def test_ranges_of_motion_are_those_of_the_machine_and_not_of_its_sensors(objective: Any) -> None:
    seen, law = [], fx.Table([[0.0, 1.0], [1.0, 1.5], [5.0, 3.5]])
    for gain in (1.0, 10.0):
        sensor = {"outputs.mass.s": fx.Instrument(gain=gain, offset=0.3 * (gain - 1.0))}
        one = record(out="mass.s", gain=gain)
        shifted = {"mass.s": one.outputs["mass.s"] + 0.3 * (gain - 1.0)}
        one = fx.Record(T, dict(one.inputs), shifted)
        found = fx.fit(block(law), one, free=["mass.m"], objective=objective, instruments=sensor)
        ranges, travel = operating_range(found.problem, np.asarray(found.x))
        seen.append([travel["mass"], *(float(x["mass"]) for x in (ranges.centre, ranges.vmax))])
        assert not check_table_range(found)
    np.testing.assert_allclose(seen[0], seen[1], rtol=1e-3)


def test_independent_residuals_are_those_of_all_channels() -> None:
    v = np.linspace(0.1, 2.0, 12)
    force = np.r_[1 + 0.5 * v, -1 - 0.5 * v] + 0.01 * np.random.default_rng(1).standard_normal(24)
    sweep = fx.Sweep(
        np.r_[v, -v], force, sigma=np.full(24, 0.01), velocity_unit="m/s", force_unit="N"
    )
    data = {"a": record(0, sd=2e-3), "b": record(1, sd=2e-3), "friction": sweep}
    found = fx.fit(block(), data, free=FREE, objective=BY_FORCE)
    count = ScoreTest(found, False).independent(found.full_residuals)
    assert count == pytest.approx(effective_sample_size(found), rel=0.05)


def test_noise_that_differs_between_samples_is_known() -> None:
    sd = np.where(np.arange(T.size) % 2 == 0, 1e-3, 1e-2)
    found = fx.fit(block(), record(sd=sd), free=FREE, rounds=0)
    assert ScoreTest(found, False).noise == pytest.approx(1.0)
    (rows,) = ScoreTest(found, False).combine([], np.zeros(0))[:1]
    assert rows.size == 0  # without a candidate that can be tested


@pytest.fixture(scope="module")
def beside_a_sweep() -> fx.FitResult:
    v = np.linspace(0.1, 2.0, 12)
    sweep = fx.Sweep(v, 1 + 0.5 * v, sigma=np.full(12, 0.01), velocity_unit="m/s", force_unit="N")
    data = {"friction": sweep, "run": record(out="mass.s", sd=1e-4)}
    return fx.fit(block(), data, free=FREE, objective=WINDOWS)


@pytest.mark.slow
def test_windows_beside_a_sweep_have_initial_states(beside_a_sweep: fx.FitResult) -> None:
    found, v = beside_a_sweep, np.zeros(12)
    ranges, _ = operating_range(found.problem, np.asarray(found.x))
    moved = {1: np.zeros((len(found.problem.prepared[1].weight), 2))}
    at = Point(np.asarray(found.x), np.zeros(0), moved, {"mass": 1.0})
    here = sensitivities(found.problem, (), at, ranges)
    assert here.starts.shape == (found.n, 2)
    assert list(np.any(here.starts, axis=1)[: len(v) + 2]) == [False] * (len(v) + 1) + [True]
    assert list(here.window[[0, len(v), -1]]) == [-1, 0, len(moved[1]) - 1]


@pytest.mark.slow
def test_and_name_no_term_of_a_right_machine(beside_a_sweep: fx.FitResult) -> None:
    search = Trials(beside_a_sweep)
    search.settle()
    here = search.at_values(search.point).at
    # The window states are at the minimum, so a further change of them explains nothing.
    r = here.residuals[search.test.counted]
    assert float(r @ r) == pytest.approx(search.cost(here), rel=1e-3)
    assert not beside_a_sweep.missing().found


def test_priors_are_left_out() -> None:
    """A refit without a term has the misfit of a fit without priors."""
    one = record()
    wrong = [fx.Normal("mass.m", 1.3, 1e-3)]
    kept = fx.fit(block(), one, free=FREE, priors=wrong, objective=BY_FORCE)
    free = fx.fit(block(), one, free=FREE, objective=BY_FORCE)
    search = Trials(kept)
    search.settle()
    cost = search.cost(search.at_values(search.point).at)
    assert cost == pytest.approx(np.sum(free.full_residuals**2), rel=1e-3)
    assert np.sum(kept.full_residuals**2) > 1.2 * cost
    assert search.point.x == pytest.approx(free.x, rel=1e-2)


def test_a_robust_loss_becomes_weights_with_the_same_minimum() -> None:
    one = record()
    force = one.inputs["drive"].copy()
    force[::20] += 1.0
    one = fx.Record(T, {"drive": force}, dict(one.outputs), name="run")
    found = fx.fit(block(), one, free=FREE, loss=fx.Huber(), objective=BY_FORCE)
    plain = as_least_squares(found)
    r, j = plain.full_residuals, plain.full_jacobian
    cosines = np.abs(j.T @ r) / np.linalg.norm(j, axis=0) / np.linalg.norm(r)
    assert np.max(cosines) < 1e-3
    weight = plain.problem.weights() / np.maximum(found.problem.weights(), 1e-300)
    assert np.min(weight[found.problem.weights() > 0]) < 0.7
    assert np.max(weight) == pytest.approx(1.0)
    search = Trials(found)
    here = search.at_values(search.point).at
    np.testing.assert_allclose(here.residuals, r, atol=1e-9 * np.max(np.abs(r)))


def test_a_parameter_at_its_bound_stays_there_in_a_refit() -> None:
    law = fx.Stribeck(F_prop=0.0, F_Coulomb=0.8, F_Stribeck=0.6, fexp=1.5)
    found = fx.fit(block(), record(law=law), free=FREE, objective=BY_FORCE)
    assert found.values["friction.f_pos.F_prop"] == 0.0
    search = Trials(found)
    (viscous,) = [one for one in search.tried if one.term == "viscous"]
    assert viscous.least == 0.0  # viscous friction below 0 is not a term
    for i, one in enumerate(search.tried):
        if one.term in ("bend", "Stribeck", "drag") and one.kind == "law":
            _, at, seen = search.refit(i)
            assert at.x[2] >= 0.0
            assert list(seen.free) == [True, True, at.x[2] > 0.0]
            columns = np.column_stack(
                [seen.at.fitted[:, seen.free], seen.at.tried[:, search.places(i)]]
            )
            inside = one.size > 1 or one.least < at.c[search.first[i]] < one.most
            columns = columns if inside else columns[:, : sum(seen.free)]
            r = seen.at.residuals
            cosines = np.abs(columns.T @ r) / np.linalg.norm(columns, axis=0) / np.linalg.norm(r)
            assert np.max(cosines) < 1e-2, one.name


def test_a_fixed_parameter_moves_the_parameters_that_are_tied_to_it() -> None:
    tied = {"friction.f_neg.F_Coulomb": DRY}
    machine = block(LAW, f_neg=LAW)
    found = fx.fit(machine, record(), free=["mass.m"], tied=tied, objective=BY_FORCE)
    one = tuple(c for c in catalogue(found) if c.of == DRY and c.kind == "held")
    ranges, _ = operating_range(found.problem, np.asarray(found.x))
    setup = found.problem.setup_at(jnp.asarray(found.x), 0)
    moved = augmented_setup(setup, one, jnp.array([0.1]), {}, ranges, found.problem.ties)
    assert [float(get(moved, path)) for path in (DRY, *tied)] == pytest.approx([1.1, 1.1])


def test_a_breakaway_above_the_usual_range_can_rise_no_further() -> None:
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.1),
        friction=fx.SupportFriction("mass", f_pos=LAW, peak=6.0),
        drive=fx.Force("mass", 0.0),
    )
    found = fx.fit(machine, record(), free=["mass.m"], objective=BY_FORCE)
    (peak,) = [one for one in catalogue(found) if one.of == "friction.peak"]
    assert (peak.least, peak.most) == (-5.0, 0.0)


@pytest.mark.slow
def test_records_that_begin_in_motion_are_not_refitted_from_rest() -> None:
    records = [record(k, out="mass.s", sd=1e-4).trim(0.5 + 0.2 * k, 3.8 + 0.2 * k) for k in (0, 1)]
    by_force, refits = fx.fit(block(), records, free=FREE, objective=BY_FORCE), []
    for some in ({"run0": records[0], "run1": records[1]}, {"run0": records[0]}):
        problem, _ = build_problem(block(), some, FitOptions(objective=WINDOWS, free=FREE))
        found = dataclasses.replace(by_force, problem=problem, records=some)
        refits.append(refit_by_free_runs(found))
    both, one = refits
    assert both is None
    assert one is not None
    assert one.rms["run0"]["mass.s"] < 5e-3  # [m] the error of the measured initial speed grows


@pytest.mark.slow
def test_outliers_do_not_hide_a_term() -> None:
    air = {"air": fx.QuadraticSpeedDependentForce("mass", f_nominal=-0.05)}
    plain = record(3)
    u = dict(plain.inputs)
    run = fx.simulate(block(LAW, fx.Sampled(T, u["drive"]), 1.0, **air), T, fx.OnSamples())
    rng = np.random.default_rng(5)
    y = np.asarray(run["mass"].v) + 2e-3 * rng.standard_normal(T.size)
    y[rng.choice(T.size, 10, replace=False)] += 0.5
    one = fx.Record(T, u, {"mass.v": y}, name="run")
    found = fx.fit(block(), one, free=FREE, loss=fx.Huber(), rounds=0)
    made = found.missing()
    assert "drag" in made.found[0].name, str(made)
    assert made.found[0].value == pytest.approx(0.05, rel=0.2)
    assert made.unit == "m/s"
