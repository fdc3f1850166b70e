"""Fits to synthetic records find what the records were made with."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.fitting import FitOptions
from frictax.fitting.build_problem import build_problem
from frictax.fitting.problem.problem import predictions
from frictax.fitting.search.levenberg_marquardt import begin, descend
from frictax.programs import executables
from rigs import AWAY_LAW, FINE, LAW, NOISE, TRUE, TRUE_LAW, T, U, assert_recovered, block, record


@pytest.fixture(scope="module")
def run() -> fx.Record:
    return record(block())


@pytest.fixture(scope="module")
def found(run) -> fx.FoundMachine:
    return fx.fit(block(**AWAY_LAW), run, free=LAW)


@pytest.mark.slow
def test_a_free_run_from_inverse_dynamics_finds_mass_law_and_peak() -> None:
    seen = record(block(), {"mass.s": 1e-4})
    start = block(m=2.0, peak=1.05, F_prop=0.1, F_Coulomb=2.0, F_Stribeck=0.2, fexp=8.0)
    free = ["mass.m", "friction.f_pos", "friction.peak"]
    found = fx.fit(start, seen, free=free, start=fx.InverseDynamics(cutoff=15.0))
    assert_recovered(found, {**TRUE, "mass.m": 1.0, "friction.peak": 1.2})
    assert all(e.standard_error < 0.03 * e.value for e in found.estimates), found
    assert found.rms["run"]["mass.s"] == pytest.approx(1e-4, rel=0.1)


@pytest.mark.slow
def test_four_law_parameters_come_back_from_a_start_10_to_20_per_cent_off(found) -> None:
    assert_recovered(found, TRUE)
    assert found.noise_scale == pytest.approx(1.0, abs=0.1)  # in units of the sd that was given


@pytest.mark.slow
@pytest.mark.parametrize(
    "start", [{"F_prop": 1e-6}, {**AWAY_LAW, "F_Coulomb": 1e-6}], ids=["F_prop", "F_Coulomb"]
)
def test_a_friction_level_started_near_nothing_does_not_stall(run, found, start) -> None:
    """The first step from so little Coulomb friction ends where the mass never moves; it is not
    taken.
    """
    low = fx.fit(block(**start), run, free=LAW)
    assert low.converged
    for path, value in found.values.items():
        assert low.values[path] == pytest.approx(value, rel=1e-4)


@pytest.mark.slow
def test_a_machine_that_stands_still_from_the_start_is_told_to_and_does_not_pass_for_converged(
    run,
) -> None:
    stuck = fx.fit(block(F_Coulomb=5.0), run, free=LAW, rounds=0)
    assert not stuck.converged
    assert "Probably the machine stands still" in str(stuck)
    assert stuck.values["friction.f_pos.F_Coulomb"] == pytest.approx(5.0, rel=1e-12)


@pytest.mark.slow
def test_rounds_find_a_machine_that_stands_still_from_the_start(run, found) -> None:
    away = fx.fit(block(F_Coulomb=5.0), run, free=LAW)
    assert away.at_noise is True
    for path, value in found.values.items():
        assert away.values[path] == pytest.approx(value, rel=1e-3)


@pytest.mark.slow
def test_two_runs_of_a_fit_are_equal_bit_for_bit(run, found) -> None:
    again = fx.fit(block(**AWAY_LAW), run, free=LAW)
    assert again.values == found.values
    assert np.array_equal(again.covariance, found.covariance)


BAD_START = {"F_prop": 0.66, "F_Coulomb": 3.0, "F_Stribeck": 1.35, "fexp": 60.0}  # it stands still


STRAYS = [
    {"F_prop": 1.0, "F_Coulomb": 1.5, "F_Stribeck": 0.1, "fexp": 50.0},
    {"F_prop": 0.5, "F_Coulomb": 0.4, "F_Stribeck": 1.2, "fexp": 60.0},
]


@pytest.mark.slow
@pytest.mark.parametrize("start", STRAYS, ids=["too steep", "too flat"])
def test_a_stribeck_force_that_is_lost_on_the_way_is_brought_back(run, found, start) -> None:
    """From there the search first ends where it has no depth or no width, at 14 times the noise."""
    away = fx.fit(block(**start), run, free=LAW)
    assert away.converged
    for path, value in found.values.items():
        assert away.values[path] == pytest.approx(value, rel=1e-3)


@pytest.mark.slow
def test_many_fits_at_once_bring_back_what_is_lost_on_the_way_too(run, found) -> None:
    twice = np.stack([run.outputs["mass.v"]] * 2)
    many = fx.fit_many(block(**STRAYS[0]), run, {"mass.v": twice}, free=LAW)
    assert many.converged.all()
    for values in many.values:
        np.testing.assert_allclose(values, list(found.values.values()), rtol=1e-3)


def test_more_starts_are_never_worse_than_one(run) -> None:
    alone = fx.fit(block(**BAD_START), run, free=LAW, rounds=0)
    many = fx.fit(block(**BAD_START), run, free=LAW, starts=3, spread=3.0, seed=2)
    assert many.noise_scale <= alone.noise_scale * (1 + 1e-6)


def test_many_starts_leave_a_start_that_stands_still_and_are_reproducible(run, found) -> None:
    alone = fx.fit(block(**BAD_START), run, free=LAW, rounds=0)
    assert alone.rms["run"]["mass.v"] > 3 * NOISE
    many = fx.fit(block(**BAD_START), run, free=LAW, starts=12, seed=1)
    again = fx.fit(block(**BAD_START), run, free=LAW, starts=12, seed=1)
    for path, value in found.values.items():
        assert many.values[path] == pytest.approx(value, rel=1e-3)
    assert many.values == again.values
    assert np.array_equal(many.costs, again.costs)
    assert many.costs.shape == (12,)


@pytest.mark.slow
def test_records_share_the_law_and_have_speeds_and_offsets_of_their_own() -> None:
    offsets, speeds = (0.1, -0.05), (0.3, -0.2)
    runs = [
        record(block(v=v), u=U + offset, seed=i, name=name)
        for i, (name, v, offset) in enumerate(
            zip(("first", "second"), speeds, offsets, strict=True)
        )
    ]
    runs = [fx.Record(r.t, {"drive": U}, r.outputs, r.sd, name=r.name) for r in runs]
    own = ["mass.v", "inputs.drive.offset"]
    found = fx.fit(block(**AWAY_LAW), runs, free=LAW, own=own)
    truth = {f"mass.v@{n}": v for n, v in zip(("first", "second"), speeds, strict=True)}
    truth |= {
        f"inputs.drive.offset@{n}": o for n, o in zip(("first", "second"), offsets, strict=True)
    }
    assert_recovered(found, {**TRUE, **truth})
    assert set(found.intervals) == {*TRUE, *truth}
    assert float(found.model_for("second")["mass"].v) == found.values["mass.v@second"]
    assert all(found.standard_errors[f"mass.v@{n}"] < NOISE for n in ("first", "second"))


@pytest.mark.slow
def test_a_sweep_and_a_record_in_one_fit_tell_more_than_either() -> None:
    v = np.linspace(0.05, 2.0, 20)
    clean = np.asarray(fx.Stribeck(**TRUE_LAW)(jnp.asarray(v)))
    sweep = fx.Sweep(
        v,
        clean + 0.01 * np.random.default_rng(3).standard_normal(20),
        np.full(20, 0.01),
        velocity_unit="m/s",
        force_unit="N",
    )
    coarse = record(block(), {"mass.v": 0.02})
    both = fx.fit(block(**AWAY_LAW), {"friction": sweep, "run": coarse}, free=LAW)
    assert_recovered(both, TRUE)
    alone = fx.fit(block(**AWAY_LAW), coarse, free=LAW)
    more, less = (f.uncertainty(fx.White()).standard_errors for f in (both, alone))
    assert all(more[p] < 0.9 * less[p] for p in TRUE)
    assert set(both.rms) == {"friction", "run"}
    assert both.rms["friction"]["f"] == pytest.approx(0.01, rel=0.5)


@pytest.mark.slow
def test_gain_offset_drift_and_delay_of_a_sensor_and_gain_and_offset_of_the_drive_are_found():
    truth = {"gain": 1.1, "offset": 0.05, "drift": 0.01, "delay": 0.013}
    v = np.asarray(record(block(), {"mass.v": 1e-150}, u=0.95 * U + 0.1).outputs["mass.v"])
    late = np.interp(T - truth["delay"], T, v)
    seen = (
        truth["gain"] * late
        + truth["offset"]
        + truth["drift"] * T
        + NOISE * np.random.default_rng(4).standard_normal(T.size)
    )
    sensor = [f"outputs.mass.v.{name}" for name in truth]
    drive = ["inputs.drive.gain", "inputs.drive.offset"]
    found = fx.fit(
        block(), fx.Record(T, {"drive": U}, {"mass.v": seen}, name="run"), free=sensor + drive
    )
    expected = {
        **dict(zip(sensor, truth.values(), strict=True)),
        **dict(zip(drive, (0.95, 0.1), strict=True)),
    }
    assert_recovered(found, expected)


@pytest.mark.slow
def test_a_law_of_its_own_for_motion_backward_and_a_force_that_grows_with_position_are_found():
    cable = fx.LinearPositionDependentForce("mass", slope=-0.8)
    machine = block(f_neg=fx.Coulomb(F_Coulomb=1.3, F_prop=0.3), parts={"cable": cable})
    start = block(
        f_neg=fx.Coulomb(F_Coulomb=1.0, F_prop=0.2),
        parts={"cable": fx.LinearPositionDependentForce("mass")},
    )
    free = ["friction.f_neg", "friction.f_pos.F_Coulomb", "cable.slope"]
    found = fx.fit(start, record(machine), free=free)
    assert_recovered(
        found,
        {
            "friction.f_neg.F_Coulomb": 1.3,
            "friction.f_neg.F_prop": 0.3,
            "friction.f_pos.F_Coulomb": 1.0,
            "cable.slope": -0.8,
        },
    )


@pytest.mark.slow
def test_huber_keeps_the_law_where_one_sample_in_twenty_is_an_outlier(run, found) -> None:
    rng = np.random.default_rng(5)
    v = run.outputs["mass.v"].copy()
    v[rng.choice(v.size, v.size // 20, replace=False)] += rng.choice([0.2, 0.3], v.size // 20)
    dirty = fx.Record(T, {"drive": U}, {"mass.v": v}, name="run")
    robust = fx.fit(block(**AWAY_LAW), dirty, free=LAW, loss=fx.Huber())
    plain = fx.fit(block(**AWAY_LAW), dirty, free=LAW)
    off = [max(abs(f.values[p] / true - 1) for p, true in TRUE.items()) for f in (robust, plain)]
    assert_recovered(robust, TRUE)
    assert off[0] < 0.05 < off[1]
    assert robust.noise_scale == pytest.approx(NOISE, rel=0.25)


def test_uneven_sampling_costs_nothing(found) -> None:
    rng = np.random.default_rng(6)
    t = T + np.concatenate([[0.0], 0.003 * rng.uniform(-1, 1, T.size - 2), [0.0]])
    uneven = fx.fit(block(**AWAY_LAW), record(block(), t=t), free=LAW)
    assert_recovered(uneven, TRUE)
    for path, error in found.standard_errors.items():
        assert uneven.standard_errors[path] == pytest.approx(error, rel=0.1)


@pytest.mark.slow
def test_a_held_input_is_not_a_joined_one() -> None:
    seen = record(block(), hold=True)
    held = fx.fit(block(**AWAY_LAW), seen, free=LAW)
    assert_recovered(held, TRUE)
    joined = fx.fit(
        block(**AWAY_LAW), fx.Record(T, {"drive": U}, seen.outputs, seen.sd, name="run"), free=LAW
    )
    assert joined.rms["run"]["mass.v"] > 3 * held.rms["run"]["mass.v"]


def test_a_trial_that_fails_is_a_step_that_is_not_taken() -> None:
    """Beyond 1 the simulation fails; the minimum lies at 0.9, and the first full step
    goes to 1.6.
    """

    def evaluate(z):
        r, slope = jnp.exp(2 * z) - np.exp(1.8), 2 * jnp.exp(2 * z)
        return jnp.where(z > 1.0, jnp.nan, r), jnp.where(z > 1.0, jnp.nan, slope)[:, None]

    end = descend(evaluate, begin(jnp.array([0.0]), 1), 100, 1e-4, 1.0, 1e-20)
    assert float(end.z[0]) == pytest.approx(0.9, abs=1e-6)
    assert bool(end.settled)


@pytest.mark.slow
def test_a_last_step_that_is_not_looked_at_comes_within_the_tolerance() -> None:
    """Of noisy exponentials; the truth goes on to 1e-9 standard errors.

    What is handed on stands for the end, as well as for any look.
    """
    t, free = jnp.linspace(0.0, 3.0, 60), 58.0

    @jax.jit
    def ends(seed):
        y = 2.0 * jnp.exp(-0.7 * t) + 0.05 * jax.random.normal(jax.random.key(seed), t.shape)
        of = lambda z: jnp.exp(z[0]) * jnp.exp(-z[1] * t) - y  # noqa: E731
        search = lambda tolerance: descend(  # noqa: E731
            lambda z: (of(z), jax.jacfwd(of)(z)),
            begin(jnp.array([1.5, 0.2]), t.size),
            50,
            tolerance,
            free,
            1e-20,
        )
        end, truth = search(1e-3), search(1e-9)
        off = truth.jacobian @ (end.z - truth.z) / jnp.sqrt(2 * truth.cost / free)
        return end, jnp.linalg.norm(off), of(end.z), 0.5 * of(end.z) @ of(end.z)

    ends_, off, residuals, cost = jax.vmap(ends)(jnp.arange(100))
    assert bool(jnp.all(ends_.settled))
    unseen = np.any(np.asarray(ends_.z != ends_.seen), axis=1)
    assert unseen.sum() > 10  # what this is about does happen
    assert np.max(np.asarray(off)[unseen]) < 1e-3
    np.testing.assert_allclose(ends_.residuals, residuals, atol=1e-3 * 0.05)
    np.testing.assert_allclose(ends_.cost, cost, rtol=1e-6)
    there = jax.vmap(jax.jacfwd(lambda z: jnp.exp(z[0]) * jnp.exp(-z[1] * t)))(ends_.z)
    lengths = lambda j: np.linalg.norm(j, axis=1)  # noqa: E731
    np.testing.assert_allclose(lengths(ends_.jacobian), lengths(there), rtol=1e-2)


def test_the_first_evaluation_leads_to_no_last_step() -> None:
    """It says nothing of how much nearer a step comes."""
    z = jnp.array([0.9 + 1e-4])

    def evaluate(z):
        return (jnp.concatenate([z - 0.9, jnp.ones(1)]), jnp.array([[1.0], [0.0]]))

    once, end = (descend(evaluate, begin(z, 2), until, 1e-6, 1.0, 1e-20) for until in (1, 100))
    assert bool(once.z[0] == z[0])
    assert not bool(once.done)
    assert float(end.z[0]) == pytest.approx(0.9, abs=1e-6)


@pytest.mark.parametrize("weak", [0.005, 0.019])
def test_a_direction_that_damping_holds_back_is_gone_on_with(weak: float) -> None:
    """Two columns nearly alike: steps are as good as undamped along their sum, and hardly move
    along their difference.
    """
    along = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    matrix, free = np.zeros((100, 2)), 98.0
    matrix[:2] = np.diag([1.0, 1e-3]) @ along
    noise = np.zeros(100)
    noise[2:] = 1.0  # of variance 1, which no parameter explains
    # 20 and `weak` standard errors from the minimum at 0
    start = along.T @ np.array([20.0, weak / 1e-3])
    evaluate = lambda z: (jnp.asarray(matrix) @ z + noise, jnp.asarray(matrix))  # noqa: E731
    end = descend(evaluate, begin(jnp.asarray(start), 100), 100, 1e-3, free, 1e-20)
    assert bool(end.settled)
    assert float(jnp.linalg.norm(matrix @ end.z)) < 1.1e-3


@pytest.mark.slow
def test_standard_errors_after_a_last_step_without_a_look_are_those_of_a_search_that_looks():
    noisy = np.asarray(record(block()).outputs["mass.v"]) + 0.3 * np.random.default_rng(
        5
    ).standard_normal((40, T.size))
    run = fx.Record(T, {"drive": U}, {"mass.v": noisy[0]})
    free = ["friction.f_pos.F_Coulomb", "friction.f_pos.F_prop"]
    quick, slow = (
        fx.fit_many(
            block(),
            run,
            noisy,
            free=free,
            method=fx.LevenbergMarquardt(tolerance=tolerance, max_steps=200),
        )
        for tolerance in (1e-3, 1e-9)
    )
    # Where a search does not end there are no errors: some of these records have their least misfit
    # at a kink.
    both = quick.converged & slow.converged
    assert both.sum() >= 20
    np.testing.assert_allclose(quick.standard_errors[both], slow.standard_errors[both], rtol=2e-3)
    off = np.abs(quick.values - slow.values)[both] / slow.standard_errors[both]
    assert np.max(off) < 2e-3


@pytest.mark.slow
def test_a_search_goes_around_starts_whose_runs_exceed_the_events(run, found) -> None:
    events = 12
    engine = fx.OnSamples(max_events=events)
    with pytest.raises(ValueError, match="`fit` cannot start: .* record 'run' fails.*max_events"):
        fx.fit(block(**AWAY_LAW), run, free=LAW, engine=fx.OnSamples(max_events=3))
    many = fx.fit(block(**AWAY_LAW), run, free=LAW, engine=engine, starts=6, spread=2.0)
    assert many.values["friction.f_pos.fexp"] == pytest.approx(
        found.values["friction.f_pos.fexp"], rel=1e-3
    )


@pytest.mark.slow
def test_half_the_step_moves_no_estimate_by_a_tenth_of_its_error(run, found) -> None:
    fine = fx.fit(block(**AWAY_LAW), run, free=LAW, engine=FINE)
    for path, error in found.standard_errors.items():
        assert abs(fine.values[path] - found.values[path]) < 0.1 * error


@pytest.mark.slow
def test_records_that_are_alike_are_predicted_by_one_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = [record(block(v=v)) for v in (0.0, 0.3, -0.2)]
    runs = {f"run {k}": one for k, one in enumerate(records)}
    problem, _ = build_problem(
        block(), runs, FitOptions(free=LAW, own={"mass.v": [0.0, 0.3, -0.2]})
    )
    x, directly = np.asarray(problem.x0), eqx.filter_jit(lambda p, x, i: p.predict(x, i))
    predictions(problem, x, 0)
    monkeypatch.setattr(executables, "_lower", lambda *_: pytest.fail("compiled"))
    for i in range(3):
        seen = np.asarray(predictions(problem, x, i))
        assert np.all(seen == np.asarray(directly(problem, x, i)))
        assert np.std(seen[:, 0] - records[i].outputs["mass.v"]) < 1.2 * NOISE
