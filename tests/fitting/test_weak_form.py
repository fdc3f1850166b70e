"""The weak form of `InverseDynamics`: exact without noise, with intervals that cover."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

import frictax as fx
from frictax.analysis.residuals.series import force_series
from frictax.fitting import FitOptions
from frictax.fitting.build_problem import build_problem
from frictax.fitting.fit_many import fit_each
from frictax.fitting.problem.inverse_dynamics import motion
from frictax.fitting.problem.weak_form import band, weak_form, whiten

T = np.linspace(0.0, 6.0, 1501)
F = 14 * np.sin(2 * np.pi * 0.4 * T) + 7 * np.sin(2 * np.pi * 1.1 * T)
TRUE = {"mass.m": 2.0, "friction.f_pos.F_Coulomb": 6.0, "friction.f_pos.F_prop": 3.0}
FREE = list(TRUE)


def block(m: float = 1.0, level: float = 3.0, slope: float = 1.0, drive: Any = 0.0) -> Any:
    law = fx.Coulomb(F_Coulomb=level, F_prop=slope)
    return fx.Mechanism(
        mass=fx.Mass(m=m),
        friction=fx.SupportFriction("mass", f_pos=law),
        drive=fx.Force("mass", drive),
    )


def position(hold: bool = False) -> np.ndarray:
    m, level, slope = TRUE.values()
    machine = block(m, level, slope, fx.Sampled(T, F, hold=hold))
    return np.asarray(fx.simulate(machine, T)["mass"].s)


@pytest.fixture(scope="module")
def exact() -> np.ndarray:
    return position()


def seen(s: np.ndarray, noise: float, seed: int = 1, hold: bool = False) -> fx.Record:
    y = s + noise * np.random.default_rng(seed).standard_normal(s.size)
    return fx.Record(T, {"drive": F}, {"mass.s": y}, hold=hold)


def autocorrelated(s: np.ndarray, noise: float, correlation: float, seed: int) -> fx.Record:
    """A record whose sensor has noise of first order."""
    white = np.random.default_rng(seed).standard_normal(s.size)
    white[1:] *= np.sqrt(1 - correlation**2)
    y = s + noise * np.asarray(lfilter([1], [1, -correlation], white))
    return fx.Record(T, {"drive": F}, {"mass.s": y})


def correlation_of(found: fx.FitResult) -> Any:
    prepared: Any = found.problem.prepared[0]
    return prepared.weak.correlation


def found_from(record: fx.Record, **options: Any) -> fx.FitResult:
    return fx.fit(block(), record, free=FREE, objective=fx.InverseDynamics(**options))


def test_without_noise_the_estimates_are_exact_to_1e_6(exact) -> None:
    for cutoff in (None, 10.0):
        found = found_from(seen(exact, 0.0), cutoff=cutoff)
        for name, value in TRUE.items():
            assert found.values[name] == pytest.approx(value, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "error"), [(1e-4, 3e-4), (1e-3, 5e-3)])
def test_noise_of_the_position_does_not_bias_the_mass(exact, noise: float, error: float) -> None:
    found = found_from(seen(exact, noise))
    assert found.values["mass.m"] == pytest.approx(2.0, rel=error)
    for name, value in TRUE.items():
        assert abs(found.values[name] - value) < 3 * found.standard_errors[name]
    assert not found.notices


@pytest.mark.slow
def test_the_autocorrelation_of_the_noise_of_a_sensor_is_read_from_the_record(exact) -> None:
    found = found_from(autocorrelated(exact, 1e-3, 0.9, 3))
    assert 0.8 <= correlation_of(found)[0] <= 0.98
    for name, value in TRUE.items():
        assert abs(found.values[name] - value) < 3 * found.standard_errors[name]
    assert found.values["mass.m"] == pytest.approx(2.0, rel=5e-3)
    for steps in (5e-4, 0.0):  # an encoder, and white noise
        y = exact + 1e-4 * np.random.default_rng(2).standard_normal(T.size)
        y = y if steps == 0 else steps * np.round(y / steps)
        found = found_from(fx.Record(T, {"drive": F}, {"mass.s": y}))
        assert correlation_of(found) is None


@pytest.mark.slow
def test_an_input_that_is_held_is_not_half_a_sample_late() -> None:
    found = found_from(seen(position(hold=True), 0.0, hold=True))
    assert found.values["mass.m"] == pytest.approx(2.0, rel=1e-6)


@pytest.mark.slow
def test_a_motion_within_its_noise_has_no_interval(exact) -> None:
    found = found_from(seen(exact, 0.1))
    assert {"motion-within-noise", "no-stretch"} & {n.code for n in found.notices}
    assert np.all(np.isinf([found.intervals[name][1] for name in FREE]))


def test_a_record_without_positions_is_compared_at_samples(exact) -> None:
    record = fx.Record(T, {"drive": F}, {"mass.v": np.gradient(exact, T, edge_order=2)})
    found = found_from(record)
    (notice,) = [n for n in found.notices if n.code == "forces-at-samples"]
    assert "does not measure mass.s" in str(notice)
    assert found.problem.objective == fx.InverseDynamics(at_samples=True)


def test_residuals_of_the_covariance_that_they_have_become_white() -> None:
    """Against a dense Cholesky factor, for two bodies and two stretches."""
    rng, t = np.random.default_rng(0), np.linspace(0.0, 2.0, 401)
    x = np.stack([np.cos(np.pi * t), np.cos(np.pi * t) + 0.1 * t], axis=1)
    made = weak_form(t, x + 1e-5 * rng.standard_normal(x.shape), False, np.eye(2), 20.0, 0.01)
    assert made is not None
    weak = made[0]
    size, length = weak.kernel.shape[1:]
    used = np.flatnonzero(weak.stretch >= 0)
    assert len(set(weak.stretch[used])) == 2
    inside = (np.arange(length) > 0) & (np.arange(length) < 6 * weak.knots[:, None])
    response = (
        rng.standard_normal((size, 2, 2, length))
        * (inside & (weak.stretch >= 0)[:, None])[:, None, None]
    )
    full = np.zeros((size, 2, 2, t.size + length))
    for k in used:
        full[k, :, :, weak.first[k] + np.arange(length)] = np.moveaxis(response[k], -1, 0)
    rows = full[used].reshape(2 * used.size, -1)
    covariance, r = rows @ rows.T, rng.standard_normal((size, 2))
    apart = np.repeat(weak.stretch[used], 2)
    covariance *= apart[:, None] == apart
    both = band(weak, jnp.asarray(response), jnp.asarray(response))
    white, half_log = whiten(weak, both, jnp.asarray(r))
    factor = np.linalg.cholesky(covariance)
    expected = np.linalg.solve(factor, r[used].ravel())
    np.testing.assert_allclose(np.asarray(white)[used].ravel(), expected, rtol=1e-5, atol=1e-6)
    assert half_log == pytest.approx(np.sum(np.log(np.diag(factor))), rel=1e-6)


def test_the_derivatives_of_the_residuals_are_those_of_differences(exact) -> None:
    record, objective = seen(exact, 1e-3), fx.InverseDynamics(cutoff=8.0)

    @jax.jit
    def residuals(x: Any) -> Any:
        return fx.weighted_residuals(block(x[0], x[1], x[2]), record, objective)

    x = jnp.asarray([1.9, 6.2, 2.8])
    slopes = jax.jit(jax.jacfwd(residuals))(x)
    for k in range(3):
        step = jnp.zeros(3).at[k].set(1e-4)
        central = (residuals(x + step) - residuals(x - step)) / 2e-4
        size = float(jnp.max(jnp.abs(central)))
        np.testing.assert_allclose(slopes[:, k], central, atol=1e-6 * size)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1e-4, 1e-3, 5e-3])
def test_95_percent_intervals_cover_in_at_least_19_of_24_records(exact, noise: float) -> None:
    hits = np.zeros(len(FREE))
    for seed in range(24):
        found = found_from(seen(exact, noise, seed))
        ends = [found.intervals[name] for name in FREE]
        hits += [low < TRUE[n] < high for n, (low, high) in zip(FREE, ends, strict=True)]
    assert np.all(hits >= 19)
    assert np.sum(hits) >= 0.9 * 24 * len(FREE)


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.5, 0.9])
@pytest.mark.parametrize("noise", [1e-4, 1e-3])
def test_intervals_cover_where_the_noise_of_the_sensor_is_autocorrelated(
    exact, noise: float, correlation: float
) -> None:
    hits = 0
    for seed in range(24):
        found = found_from(autocorrelated(exact, noise, correlation, seed))
        ends = [found.intervals[name] for name in FREE]
        hits += sum(low < TRUE[n] < high for n, (low, high) in zip(FREE, ends, strict=True))
    assert hits >= 0.9 * 24 * len(FREE)


@pytest.mark.slow
def test_two_bodies_with_a_spring_are_covered() -> None:
    t = np.arange(3001) / 500.0
    u = (
        3.0 * np.sin(0.8 * np.pi * t)
        + 2.0 * np.sin(3.4 * np.pi * t)
        + 0.8 * np.sin(8.2 * np.pi * t)
    )
    true = {
        "a.m": 0.02,
        "b.m": 0.06,
        "k.c": 40.0,
        "k.d": 0.05,
        "f.f_pos.F_Coulomb": 0.3,
        "f.f_pos.F_prop": 0.05,
        "g.f_pos.F_Coulomb": 0.5,
        "g.f_pos.F_prop": 0.08,
    }

    def machine(x: Any, drive: Any) -> Any:
        return fx.Mechanism(
            a=fx.Mass(m=x[0]),
            b=fx.Mass(m=x[1]),
            k=fx.SpringDamper("a", "b", c=x[2], d=x[3]),
            f=fx.SupportFriction("a", f_pos=fx.Coulomb(F_Coulomb=x[4], F_prop=x[5])),
            g=fx.SupportFriction("b", f_pos=fx.Coulomb(F_Coulomb=x[6], F_prop=x[7])),
            m=fx.Force("a", drive),
        )

    values = list(true.values())
    run = fx.simulate(machine(values, fx.Sampled(t, u)), t, fx.Adaptive(rtol=1e-9, atol=1e-11))
    exact, hits = {f"{n}.s": np.asarray(run[n].s) for n in "ab"}, 0
    start = machine(np.array(values) * [0.5, 0.6, 0.7, 0.5, 0.5, 0.5, 0.6, 0.6], 0.0)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        outputs = {n: s + 2e-4 * rng.standard_normal(t.size) for n, s in exact.items()}
        record = fx.Record(t, {"m": u}, outputs)
        found = fx.fit(start, record, free=list(true), objective=fx.InverseDynamics())
        ends = [found.intervals[name] for name in true]
        hits += sum(low < x < high for x, (low, high) in zip(values, ends, strict=True))
    assert hits >= 0.92 * 8 * len(true)


def test_the_weak_form_has_no_posterior(exact) -> None:
    with pytest.raises(ValueError, match="needs a likelihood"):
        found_from(seen(exact, 1e-4)).posterior()


def test_many_records_and_fleets_are_fitted_in_the_weak_form_as_fit_does(exact) -> None:
    records, objective = [seen(exact, 1e-3, seed) for seed in (1, 2)], fx.InverseDynamics()
    many = fx.fit_many(block(), records, free=FREE, objective=objective)
    each = fit_each([block()] * 2, records, FitOptions(free=FREE, objective=objective))
    assert not many.notices
    found, other = found_from(records[0]), each[0]
    assert isinstance(other, fx.FitResult)
    errors = list(found.standard_errors.values())
    for values, sd in (
        (many.values[0], many.standard_errors[0]),
        (other.x, list(other.standard_errors.values())),
    ):
        np.testing.assert_allclose(values, found.x, rtol=1e-6)
        np.testing.assert_allclose(sd, errors, rtol=1e-6)


def test_a_record_without_a_weak_form_does_not_change_the_fits_of_the_others(exact) -> None:
    t = np.arange(0.0, 2.0, 0.005)
    fast = fx.Record(t, {"drive": -144 * np.sin(60 * t)}, {"mass.s": 0.02 * np.sin(60 * t)})
    usual, options = seen(exact, 1e-3), FitOptions(free=FREE, objective=fx.InverseDynamics())
    for records in ([usual, fast], [fast, usual]):
        found: dict[Any, Any] = dict(
            zip(map(id, records), fit_each([block()] * 2, records, options), strict=True)
        )
        assert "no-stretch" in {n.code for n in found[id(fast)].notices}
        assert not found[id(usual)].problem.objective.at_samples


def test_a_sensor_with_a_delay_is_compared_at_samples_in_weighted_residuals_too(exact) -> None:
    late = {"outputs.mass.s": fx.Instrument(delay=0.02)}
    record, truth = seen(np.interp(T - 0.02, T, exact), 0.0), block(*TRUE.values())
    r, at_samples = (
        fx.weighted_residuals(truth, record, objective, instruments=late)
        for objective in (fx.InverseDynamics(20.0), fx.InverseDynamics(20.0, at_samples=True))
    )
    np.testing.assert_array_equal(r, at_samples)


def test_friction_that_heats_itself_is_not_for_inverse_dynamics() -> None:
    law = fx.TemperatureDependent(fx.Coulomb(F_Coulomb=3.0), beta=0.004)
    parts = {name: block()[name] for name in ("mass", "drive")}
    hot = fx.Mechanism(
        **parts,
        friction=fx.SupportFriction("mass", f_pos=law),
        disc=fx.HeatCapacitor("friction", C=20.0),
    )
    free, record = ["friction.f_pos.law.F_Coulomb"], fx.Record(T, {"drive": F}, {"mass.s": 0.1 * F})
    with pytest.raises(ValueError, match="temperature of 'disc'. Take `FreeRun"):
        fx.fit(hot, record, free=free, objective=fx.InverseDynamics())
    options = FitOptions(free=free, objective=fx.InverseDynamics(at_samples=True))
    problem, (notice,) = build_problem(hot, {"run": record}, options)
    assert "without the change of temperature of 'disc'" in str(notice)
    found: Any = object.__new__(fx.FitResult)
    vars(found).update({"records": {"run": record}, "problem": problem, "x": problem.x0})
    with pytest.raises(ValueError, match="the friction depends on the temperature of .disc."):
        force_series(found, "run", None)


def test_each_record_is_read_by_its_own_sensor() -> None:
    """One record measures the position, the other twice the speed."""
    t = np.linspace(0.0, 2.0, 401)
    outputs = {"mass.s": np.sin(2 * t)}, {"mass.v": 4.0 * np.cos(2 * t)}
    records = {
        n: fx.Record(t, {"drive": 0 * t}, y, name=n) for n, y in zip("ab", outputs, strict=True)
    }
    double = {"outputs.mass.v": fx.Instrument(gain=2.0)}
    objective = fx.InverseDynamics(20.0, at_samples=True)
    options = FitOptions(free=FREE, objective=objective, instruments=double)
    problem = build_problem(block(), records, options)[0]
    prepared: Any = problem.prepared
    a, b = (motion(problem.setup, one, problem.delayed)["mass.a"] for one in prepared)
    np.testing.assert_allclose(a[50:-50], b[50:-50], atol=1e-2)
