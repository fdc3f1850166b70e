"""Fits of measured and synthetic sweeps."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from frictax.analysis import White
from frictax.fitting import (
    FitOptions,
    Huber,
    LevenbergMarquardt,
    Optax,
    Squares,
    fit,
    fit_many,
    starting_law,
)
from frictax.fitting.build_problem import build_sweep_problem
from frictax.fitting.search.run import in_turned_coordinates
from frictax.laws import Coulomb, Stribeck, Table
from frictax.measurements import Sweep
from sweeps import NOISE, SPEEDS, breakaway_case, true_values

PUBLISHED = {"F_Coulomb": 2.148e-3, "F_Stribeck": 0.601e-3, "fexp": 0.222, "F_prop": 0.0487e-3}


@pytest.fixture(scope="module")
def forward(drive):
    sweep = drive(1, "positive")
    return fit(starting_law(Stribeck, sweep, exponent=2.0), sweep)


def test_drive_1_forward_leaves_an_rms_of_21_micro_newton_metres(forward) -> None:
    assert forward.converged
    assert forward.rms_force <= 0.0211e-3


@pytest.mark.parametrize("name", PUBLISHED)
def test_drive_1_forward_has_the_published_values_within_one_standard_error(
    forward, name: str
) -> None:
    assert abs(forward.values[name] - PUBLISHED[name]) < forward.standard_errors[name]


def test_drive_1_backward_leaves_20_micro_newton_metres_with_exponent_1_and_32_with_2(
    drive,
) -> None:
    sweep = drive(1, "negative")
    rms = [fit(starting_law(Stribeck, sweep, exponent=e), sweep).rms_force for e in (1.0, 2.0)]
    assert rms == pytest.approx([0.0200e-3, 0.0315e-3], abs=0.0001e-3)


def test_both_directions_with_a_law_each_are_the_two_separate_fits(drive, forward) -> None:
    sweep = drive(1)
    backward = fit(Stribeck, sweep.negative())
    both = fit(starting_law(Stribeck, sweep.positive(), exponent=2.0), sweep, f_neg=Stribeck)
    for branch, alone in (("f_pos", forward), ("f_neg", backward)):
        for name, value in alone.values.items():
            assert both.values[f"{branch}.{name}"] == pytest.approx(value, rel=1e-5)


def test_an_offset_is_found_where_friction_is_symmetric() -> None:
    v = np.concatenate([-np.linspace(1, 10, 8), np.linspace(1, 10, 8)])
    weight = -0.7
    sweep = Sweep(
        v, np.sign(v) * (3.0 + 0.2 * np.abs(v)) + weight, velocity_unit="m/s", force_unit="N"
    )
    found = fit(Coulomb, sweep, offset=0.0)
    assert found.values["offset"] == pytest.approx(weight, rel=1e-8)
    assert found.values["f_pos.F_prop"] == pytest.approx(0.2, rel=1e-8)


def test_a_bad_start_ends_where_a_good_one_does(drive, forward) -> None:
    bad = Stribeck(F_prop=1.0, F_Coulomb=5.0, F_Stribeck=10.0, fexp=2.0, exponent=2.0)
    assert fit(bad, drive(1, "positive")).rms_force == pytest.approx(forward.rms_force, rel=1e-10)


def test_the_scale_of_force_and_speed_does_not_matter(drive, forward) -> None:
    sweep = drive(1, "positive")
    large = Sweep(1e-3 * sweep.velocity, 1e7 * sweep.force, velocity_unit="m/s", force_unit="N")
    found = fit(starting_law(Stribeck, large, exponent=2.0), large)
    assert found.values["F_Stribeck"] == pytest.approx(1e7 * forward.values["F_Stribeck"], rel=1e-6)
    assert found.values["fexp"] == pytest.approx(1e3 * forward.values["fexp"], rel=1e-6)
    assert found.standard_errors["F_prop"] == pytest.approx(
        1e10 * forward.standard_errors["F_prop"], rel=1e-6
    )


@pytest.mark.parametrize("kind", [Coulomb, Stribeck])
def test_a_law_at_its_bounds_is_found_whatever_the_units(kind) -> None:
    """Friction that falls to the end: F_prop and, with a Stribeck term, F_Coulomb have
    to end at 0.
    """
    v = np.linspace(0.2, 21.0, 16)
    f = 3.0 - 0.05 * v + 0.02 * np.random.default_rng(5).standard_normal(16)
    ends = [
        fit(kind, Sweep(speed * v, force * f))
        for speed, force in ((1.0, 1.0), (1e-3, 1e3), (1e-6, 1e-9), (1e4, 1e7))
    ]
    for end, force in zip(ends, (1.0, 1e3, 1e-9, 1e7), strict=True):
        assert end.converged
        assert end.rms_force / force == pytest.approx(ends[0].rms_force, rel=1e-7)
        assert end.aicc - 32 * np.log(force) == pytest.approx(ends[0].aicc, abs=1e-5)
        assert end.identifiability.knowledge == ends[0].identifiability.knowledge
        assert end.identifiability.knowledge["F_prop"].value == "at its bound"


def test_what_is_not_free_stays(drive) -> None:
    law = Stribeck(F_prop=5e-5, F_Coulomb=2e-3, F_Stribeck=6e-4, fexp=0.25, exponent=2.0)
    found = fit(law, drive(1, "positive"), free=["F_Coulomb", "F_prop", "F_Stribeck"])
    assert isinstance(found.law, Stribeck)
    assert float(found.law.fexp) == 0.25
    assert found.names == ("F_prop", "F_Coulomb", "F_Stribeck")
    assert [e.name for e in found.fixed] == ["fexp"]


def test_a_linear_law_has_the_textbook_errors() -> None:
    """Straight line: s2 * inv(A^T A), t quantile with n - 2 degrees of freedom."""
    v = np.array([1.0, 2.0, 4.0, 7.0, 9.0])
    f = np.array([5.1, 5.9, 8.2, 10.8, 13.1])
    found = fit(Coulomb, Sweep(v, f, velocity_unit="m/s", force_unit="N"))
    a = np.column_stack([np.ones(5), v])
    x, rss, *_ = np.linalg.lstsq(a, f, rcond=None)
    covariance = rss[0] / 3 * np.linalg.inv(a.T @ a)
    np.testing.assert_allclose([found.values["F_Coulomb"], found.values["F_prop"]], x, rtol=1e-9)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-7)
    assert found.intervals["F_prop"][1] - x[1] == pytest.approx(
        3.182446305 * np.sqrt(covariance[1, 1]), rel=1e-7
    )
    band = found.band([3.0])
    half = 3.182446305 * np.sqrt(np.array([1.0, 3.0]) @ covariance @ np.array([1.0, 3.0]))
    np.testing.assert_allclose(band.upper - band.force, half, rtol=1e-7)
    for act in (found.predict, found.band):
        assert "sweep" in found.records
        act([3.0], label="sweep")
        with pytest.raises(KeyError, match="no record 'sweeep'"):
            act([3.0], label="sweeep")
        with pytest.raises(KeyError, match="`contact` must be None for a law"):
            act([3.0], contact="friction")


def test_the_covariance_is_the_inverse_curvature_of_the_misfit_to_its_own_curve(forward) -> None:
    x = np.array([e.value for e in forward.estimates])
    v, f = jnp.asarray(forward.sweep.velocity), jnp.asarray(forward.predict(forward.sweep.velocity))
    hessian = np.array(
        jax.hessian(
            lambda scaled: 0.5 * jnp.sum((Stribeck(*(scaled * x), exponent=2.0)(v) - f) ** 2)
        )(jnp.ones(4))
    )
    expected = forward.noise_scale**2 * np.linalg.inv(hessian) * np.outer(x, x)
    np.testing.assert_allclose(forward.uncertainty(White()).covariance, expected, rtol=1e-6)


def test_a_relative_sigma_weighs_rows_and_its_scale_does_not_matter(drive) -> None:
    sweep = drive(1, "positive", sigma="torque_std")
    start = starting_law(Stribeck, sweep, exponent=2.0)
    found = fit(start, sweep)
    double = Sweep(sweep.velocity, sweep.force, 2 * sweep.sigma)
    again = fit(start, double)
    for name in found.values:
        assert again.values[name] == pytest.approx(found.values[name], rel=1e-7)
        assert again.standard_errors[name] == pytest.approx(found.standard_errors[name], rel=1e-6)
    assert again.noise_scale == pytest.approx(found.noise_scale / 2, rel=1e-6)


def test_a_known_sigma_sets_the_errors_whatever_the_residuals_are() -> None:
    v, f = np.array([1.0, 2.0, 4.0, 7.0]), np.array([5.1, 5.9, 8.2, 10.8])
    errors = [
        fit(
            Coulomb,
            Sweep(v, f, sigma * np.ones(4), sigma_known=True, velocity_unit="m/s", force_unit="N"),
        ).standard_errors["F_prop"]
        for sigma in (0.1, 0.3)
    ]
    assert errors[0] == pytest.approx(0.1 / np.sqrt(np.sum((v - v.mean()) ** 2)), rel=1e-8)
    assert errors[1] == pytest.approx(3 * errors[0], rel=1e-8)


def test_a_row_of_large_sigma_counts_for_nothing() -> None:
    v = np.array([1.0, 2.0, 4.0, 7.0, 9.0])
    f = 5.0 + v + np.array([0.0, 0.0, 40.0, 0.0, 0.0])
    sweep = Sweep(v, f, np.array([1.0, 1.0, 1e9, 1.0, 1.0]), velocity_unit="m/s", force_unit="N")
    assert fit(Coulomb, sweep).values["F_prop"] == pytest.approx(1.0, rel=1e-9)


ADAM = Optax(optax.adam(optax.cosine_decay_schedule(0.3, 4000)), steps=4000, rounds=10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "method", "loss"),
    [
        pytest.param("Stribeck", Optax(), Squares(), id="Stribeck-lbfgs"),
        pytest.param("Stribeck", ADAM, Squares(), id="Stribeck-adam"),
        pytest.param("Table", Optax(), Squares(), id="Table-lbfgs"),
        pytest.param("Table", ADAM, Squares(), id="Table-adam"),
        pytest.param("Stribeck", Optax(), Huber(), id="Stribeck-lbfgs-huber"),
    ],
)
def test_optax_and_levenberg_marquardt_reach_the_same_optimum_to_1e_6(
    truth, kind: str, method: Optax, loss
) -> None:
    true, start = breakaway_case(kind, truth)
    clean = np.asarray(true.predict(jnp.asarray(SPEEDS), jnp.asarray(SPEEDS == 0)))
    sweep = Sweep(
        SPEEDS,
        clean + NOISE * np.random.default_rng(1).standard_normal(SPEEDS.size),
        breakaway=SPEEDS == 0,
    )
    one, other = fit(start, sweep, loss=loss), fit(start, sweep, loss=loss, method=method)
    assert one.converged
    assert other.converged
    np.testing.assert_allclose(
        [e.value for e in other.estimates], [e.value for e in one.estimates], rtol=1e-6
    )


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", ["Stribeck", "Table"])
def test_both_methods_reach_the_same_optimum_from_the_same_far_start_alone(
    truth, kind: str
) -> None:
    true, start = breakaway_case(kind, truth)
    clean = np.asarray(true.predict(jnp.asarray(SPEEDS), jnp.asarray(SPEEDS == 0)))
    sweep = Sweep(SPEEDS, clean, breakaway=SPEEDS == 0)
    forces = clean + NOISE * np.random.default_rng(1).standard_normal((3, SPEEDS.size))
    one, other = fit_many(start, sweep, forces), fit_many(start, sweep, forces, method=Optax())
    assert one.converged.all()
    assert other.converged.all()
    np.testing.assert_allclose(other.values, one.values, rtol=1e-6)


def test_a_fit_started_at_its_optimum_stays_there_and_says_that_it_converged(forward) -> None:
    again = fit(forward.law, forward.sweep)
    assert again.converged
    assert again.iterations <= 10
    assert again.values["fexp"] == pytest.approx(forward.values["fexp"], rel=1e-7)


def test_peak_and_curve_are_found_together_from_declared_breakaway_rows(truth) -> None:
    true, _ = breakaway_case("Stribeck", truth)
    clean = np.asarray(true.predict(jnp.asarray(SPEEDS), jnp.asarray(SPEEDS == 0)))
    found = fit(
        starting_law(Stribeck, Sweep(SPEEDS[:20], clean[:20]), exponent=2.0),
        Sweep(SPEEDS, clean, breakaway=SPEEDS == 0),
    )
    np.testing.assert_allclose([e.value for e in found.estimates], true_values(true), rtol=1e-6)


def test_huber_keeps_the_curve_where_two_rows_are_thirty_per_cent_off(truth) -> None:
    v = np.linspace(0.2, 20.0, 30)
    rng = np.random.default_rng(2)
    clean = np.asarray(truth(jnp.asarray(v)))
    f = clean + NOISE * rng.standard_normal(30)
    f[[4, 17]] *= 1.3
    sweep = Sweep(v, f)
    robust, plain = fit(truth, sweep, loss=Huber()), fit(truth, sweep)
    error = [np.sqrt(np.mean((found.predict(v) - clean) ** 2)) for found in (robust, plain)]
    assert error[0] < NOISE
    assert error[1] > 2 * NOISE
    assert robust.noise_scale == pytest.approx(NOISE, rel=0.35)


def test_huber_with_a_known_sigma_takes_it_as_the_scale_and_its_loss_as_the_likelihood() -> None:
    v, noise = np.arange(1.0, 11.0), 0.05 * np.random.default_rng(0).standard_normal(10)
    f = 5.0 + 0.5 * v + noise + np.where(v == 4.0, 5.0, 0.0)
    found = fit(Coulomb, Sweep(v, f, np.full(10, 0.05), sigma_known=True), loss=Huber())
    e = np.abs(f - found.values["F_Coulomb"] - found.values["F_prop"] * v) / 0.05
    score = np.clip((f - found.predict(v)) / 0.05, -1.345, 1.345)
    assert found.noise_scale == 1.0
    np.testing.assert_allclose([score.sum(), score @ v], 0.0, atol=1e-6)
    twice_the_loss = np.sum(np.where(e <= 1.345, e**2, 2 * 1.345 * (e - 0.5 * 1.345)))
    assert found.bic == pytest.approx(
        twice_the_loss + 10 * np.log(2 * np.pi * 0.05**2) + 2 * np.log(10), rel=1e-9
    )


def test_huber_with_a_wide_delta_is_least_squares(drive, forward) -> None:
    found = fit(forward.law, drive(1, "positive"), loss=Huber(1e6))
    for name in found.values:
        assert found.values[name] == pytest.approx(forward.values[name], rel=1e-6)
        assert found.standard_errors[name] == pytest.approx(forward.standard_errors[name], rel=1e-5)


def test_many_fits_at_once_are_the_single_fits(drive, truth) -> None:
    sweep = drive(1, "positive")
    forces = sweep.force * np.array([[1.0], [1.1]])
    many = fit_many(truth, sweep, forces)
    for k in range(2):
        one = fit(truth, Sweep(sweep.velocity, forces[k]))
        np.testing.assert_allclose(many.values[k], [e.value for e in one.estimates], rtol=1e-6)
        np.testing.assert_allclose(many.upper[k], [e.upper for e in one.estimates], rtol=1e-6)


def test_a_compiled_fit_calls_back_to_no_host(drive, truth) -> None:
    problem, _ = build_sweep_problem(truth, drive(1, "positive"), FitOptions())
    lowered = eqx.filter_jit(in_turned_coordinates).lower(
        problem, np.zeros(4), 1.0, LevenbergMarquardt(), 12.0, 1e-20
    )
    assert "callback" not in lowered.as_text()


def test_a_method_that_ran_out_of_steps_says_so(drive) -> None:
    far = Table([[0, 1e-3], [10, 1e-3], [21, 1e-3]])
    found = fit(far, drive(1, "positive"), method=Optax(optax.adam(1e-3), steps=3))
    assert not found.converged
    assert "Allow more steps" in found.warnings[0]


def test_a_printed_fit_names_value_unit_error_interval_and_warnings(forward) -> None:
    text = str(forward)
    row = next(line for line in text.splitlines() if line.startswith("F_Coulomb"))
    assert row.split() == ["F_Coulomb", "2.147", "mN.m", "0.041", "2.049", "to", "2.246"]
    assert "rms 0.02102 mN.m" in text
    assert "so peak is kept at 1" in text


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_quantiles_are_students_and_the_normal_ones(level: float) -> None:
    from scipy.stats import norm, t

    from frictax.fitting.result.estimates import quantile

    for dof in (3, 99, 100, 1997):
        assert float(quantile(level, dof, False)) == pytest.approx(
            float(t.ppf(0.5 + level / 2, dof)), abs=1e-8
        )
    assert float(quantile(level, 5, True)) == pytest.approx(
        float(norm.ppf(0.5 + level / 2)), abs=1e-12
    )


def test_optax_takes_as_many_steps_as_it_is_given(truth) -> None:
    v = np.unique(np.abs(SPEEDS[SPEEDS != 0]))
    sweep = Sweep(v, np.asarray(truth(jnp.asarray(v))))
    problem, _ = build_sweep_problem(truth, sweep, FitOptions())
    for steps in (1, 60):
        slow = Optax(optax.sgd(1e-9), steps=steps)  # which comes nowhere
        end = eqx.filter_jit(in_turned_coordinates)(
            problem, np.ones(problem.x0.size), 1.0, slow, 12.0, 1e-20
        )
        assert (int(end.steps), bool(end.settled)) == (steps, False)


@pytest.mark.parametrize("sigma", [None, np.full(8, 0.1)])
def test_one_outlier_among_exact_rows_is_left_out_by_huber(sigma: np.ndarray | None) -> None:
    v = np.arange(1.0, 9.0)
    sweep = Sweep(v, 5.0 + v + 4.0 * (v == 4.0), sigma, velocity_unit="m/s", force_unit="N")
    found = fit(Coulomb, sweep, loss=Huber())
    assert found.converged
    assert found.values["F_Coulomb"] == pytest.approx(5.0, abs=1e-6)
