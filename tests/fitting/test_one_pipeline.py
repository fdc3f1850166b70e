"""Sweeps and records go one way: what holds of one kind of fit holds of the other."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.fitting import FitOptions
from frictax.fitting.build_problem import build_problem
from frictax.fitting.problem.setup import perfect
from rigs import AWAY_LAW, LAW, block, record
from sweeps import NOISE, SPEEDS

FREE = ["mass.m", *LAW]


@pytest.fixture(scope="module")
def run() -> fx.Record:
    return record(block())


@pytest.fixture(scope="module")
def found(run: fx.Record) -> fx.FitResult:
    return fx.fit(block(**AWAY_LAW), run, free=FREE)


def carriage(m: Any) -> fx.Mechanism:
    return fx.Mechanism(
        carriage=fx.Mass(m=m),
        friction=fx.SupportFriction("carriage", f_pos=fx.Coulomb(F_Coulomb=3.0)),
        motor=fx.Force("carriage", 0.0),
    )


def short() -> fx.Record:
    """What `carriage` would hardly do."""
    t = np.linspace(0.0, 1.0, 51)
    return fx.Record(t, {"motor": 9.0 * np.sin(5.0 * t)}, {"carriage.v": np.sin(t)}, name="short")


@pytest.fixture(scope="module")
def quick() -> fx.FitResult:
    return fx.fit(carriage(1.1), short(), free=["carriage.m"])


@pytest.fixture(scope="module")
def sweep() -> fx.Sweep:
    v = SPEEDS[SPEEDS > 0]
    law = fx.Stribeck(
        F_prop=4.87e-5, F_Coulomb=2.148e-3, F_Stribeck=6.01e-4, fexp=0.222, exponent=2.0
    )
    return fx.Sweep(
        v,
        np.asarray(law(jnp.asarray(v))) + NOISE * np.random.default_rng(3).standard_normal(v.size),
    )


@pytest.fixture(scope="module")
def of_sweep(sweep: fx.Sweep) -> fx.FitResult:
    return fx.fit(fx.Stribeck, sweep)


def apart(one: fx.FitResult, other: fx.FitResult) -> np.ndarray:
    """How far two fits lie apart, in standard errors."""
    pairs = zip(one.estimates, other.estimates, strict=True)
    return np.array([abs(a.value - b.value) / a.standard_error for a, b in pairs])


@pytest.mark.slow
def test_a_fit_through_diffrax_own_solve_is_that_on_samples_to_a_hundredth_of_a_standard_error(
    run: fx.Record, found: fx.FitResult
) -> None:
    adaptive = fx.fit(block(**AWAY_LAW), run, free=FREE, engine=fx.Adaptive())
    assert adaptive.converged
    assert np.all(apart(found, adaptive) < 0.01), apart(found, adaptive)


@pytest.mark.slow
def test_optax_ends_where_levenberg_marquardt_does_on_a_record(
    run: fx.Record, found: fx.FitResult
) -> None:
    other = fx.fit(block(**AWAY_LAW), run, free=FREE, method=fx.Optax())
    assert other.converged
    assert np.all(apart(found, other) < 0.01), apart(found, other)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quick", "of_sweep", "found"])
def test_a_fit_ends_at_the_residuals_of_the_pure_function_at_its_model(
    name: str, request: pytest.FixtureRequest
) -> None:
    fit = request.getfixturevalue(name)
    scale = NOISE if name == "of_sweep" else 1.0
    (data,) = fit.records.values() if name != "of_sweep" else (fit.sweep,)
    np.testing.assert_allclose(
        fx.weighted_residuals(fit.model, data), fit.full_residuals, atol=1e-3 * scale
    )


@pytest.mark.slow
def test_the_gradient_of_the_pure_function_is_that_of_the_fits_jacobian(
    quick: fx.FitResult,
) -> None:
    weights = np.sin(np.arange(len(quick.full_residuals)))

    def weighted(m: Any) -> Any:
        return weights @ fx.weighted_residuals(carriage(m), short())

    gradient = jax.jit(jax.grad(weighted))(quick.values["carriage.m"])
    assert float(gradient) == pytest.approx(weights @ quick.jacobian[:, 0], rel=1e-3)


@pytest.mark.slow
def test_the_pure_function_has_the_fits_jacobian_and_takes_vmap(
    run: fx.Record, found: fx.FitResult
) -> None:
    def residuals(m: Any) -> jax.Array:
        return fx.weighted_residuals(eqx.tree_at(lambda b: b["mass"].m, found.model, m), run)

    m = jnp.asarray(found.values["mass.m"])
    tangent, gradient = jax.jit(
        lambda m: (
            jax.jacfwd(residuals)(m),
            jax.grad(lambda m: 0.5 * jnp.sum(residuals(m) ** 2))(m),
        )
    )(m)
    column = found.jacobian[:, found.names.index("mass.m")]
    np.testing.assert_allclose(tangent, column, atol=1e-4 * np.max(np.abs(column)))
    assert float(gradient) == pytest.approx(float(tangent @ residuals(m)), rel=1e-8)
    many = jax.vmap(residuals)(m * jnp.array([1.0, 1.1]))
    np.testing.assert_allclose(many[0], residuals(m), atol=1e-9)


@pytest.mark.slow
def test_a_sweep_has_profile_uncertainty_prior_bounds_and_starts_as_a_record_has(
    sweep: fx.Sweep,
) -> None:
    fit = fx.fit(fx.Stribeck, sweep, starts=3)
    assert len(fit.costs) >= 3
    profile: Any = fit.profile("F_prop")
    low, high = fit.intervals["F_prop"]
    assert (profile.lower, profile.upper) == pytest.approx((low, high), abs=0.5 * (high - low))
    assert fit.uncertainty(fx.HAC()).ratio["F_Coulomb"] == pytest.approx(1.0, abs=0.7)
    held = fx.fit(fx.Stribeck, sweep, priors=[fx.Normal("F_Coulomb", 2.0e-3, 1e-6)])
    assert held.values["F_Coulomb"] == pytest.approx(2.0e-3, abs=5e-6)
    capped = fx.fit(fx.Stribeck, sweep, bounds={"fexp": (0.01, 0.15)})
    assert capped.values["fexp"] <= 0.15


@pytest.mark.slow
def test_the_pure_function_may_be_traced_before_it_is_ever_called_plainly() -> None:
    """What is kept of a channel of which nothing is said must not be the first trace's."""
    perfect.cache_clear()
    record = short()

    def residuals(m: Any) -> jax.Array:
        return fx.weighted_residuals(carriage(m), record)

    jax.make_jaxpr(jax.jacfwd(residuals))(1.1)
    compiled = jax.jit(residuals)
    for _ in range(2):
        np.testing.assert_allclose(compiled(1.1), residuals(1.1), atol=1e-12)
    assert fx.fit(carriage(1.1), record, free=["carriage.m"]).n == record.n


def test_the_sweep_of_a_brake_is_compared_with_its_force() -> None:
    v, run = np.linspace(0.2, 2.0, 10), short()
    sweep = fx.Sweep(v, np.full(10, 30.0), np.full(10, 0.1), velocity_unit="m/s", force_unit="N")
    parts = {name: carriage(1.0)[name] for name in ("carriage", "motor")}
    objective = fx.InverseDynamics(20.0, at_samples=True)
    options = FitOptions(free=["carriage.m"], objective=objective)

    def problem(fn: Any, seen: fx.Record = run) -> Any:
        brake = fx.Brake("carriage", mu_pos=[[0, 0.2]], cgeo=2.0, fn_max=100.0, f_normalized=fn)
        machine = fx.Mechanism(**parts, brake=brake)
        return build_problem(machine, {"run": seen, "brake": sweep}, options)[0]

    held = problem(0.7)
    expected = (0.2 * 2.0 * 70.0 - 30.0) / 0.1
    np.testing.assert_allclose(held.residuals_of(jnp.asarray(held.x0), 1), expected, atol=1e-9)
    pressed = fx.Record(run.t, {**run.inputs, "brake": 1.0 + run.t}, run.outputs, name="run")
    with pytest.raises(ValueError, match="constant normal force, got Step"):
        problem(fx.Step(height=1.0))
    with pytest.raises(ValueError, match="constant normal force, got an input"):
        problem(1.0, pressed)


def test_values_with_and_without_a_deviation_are_not_compared_together() -> None:
    t, v = np.linspace(0.0, 1.0, 51), np.linspace(0.2, 2.0, 10)
    inputs, outputs = {"motor": 9.0 * np.sin(5.0 * t)}, {"carriage.v": np.sin(t)}
    known = fx.Record(t, inputs, outputs, {"carriage.v": 1e-3})
    bare = fx.Record(t, {"motor": 8.0 * np.sin(5.0 * t)}, outputs)
    sweep = fx.Sweep(v, 3.0 + v, velocity_unit="m/s", force_unit="N")
    both = fx.Record(t, inputs, {**outputs, "carriage.s": t**2})
    by_force = FitOptions(free=["carriage.m"], objective=fx.InverseDynamics(20.0))
    for records, options, name in (
        ({"a": known, "b": bare}, FitOptions(free=["carriage.m"]), "'b'"),
        ({"a": known, "friction": sweep}, by_force, "'friction'"),
    ):
        with pytest.raises(ValueError, match=f"{name} is .* standard deviation"):
            build_problem(carriage(1.0), records, options)
    with pytest.raises(ValueError, match="standard deviation"):
        fx.weighted_residuals(carriage(1.0), both)
    build_problem(carriage(1.0), {"a": bare}, FitOptions(free=["carriage.m"]))


@pytest.mark.parametrize("own", [["friction.f_pos"], {"friction.f_pos.F_Coulomb": None}])
def test_a_first_fit_of_the_same_kind_gives_the_starts_of_each_record(own: Any) -> None:
    t = np.linspace(0.0, 2.0, 201)
    v, a = np.sin(4 * t), 4.0 * np.cos(4 * t)

    def run(level: float) -> fx.Record:
        force = 1.5 * a + level * np.sign(v)
        return fx.Record(t, {"motor": force}, {"carriage.v": v}, name=f"level {level:g}")

    first = fx.InverseDynamics(15.0, at_samples=True)
    data, options = [run(1.0), run(3.0)], {"free": ["carriage.m"], "own": own}
    found = fx.fit(carriage(1.0), data, objective=first, start=first, **options)
    levels = [found.values[f"friction.f_pos.F_Coulomb@level {n}"] for n in (1, 3)]
    assert levels == pytest.approx([1.0, 3.0], abs=0.1)
    starts = dict(zip([u.names[0] for u in found.problem.unknowns], found.problem.x0, strict=True))
    assert starts["friction.f_pos.F_Coulomb@level 1"] == pytest.approx(levels[0], rel=0.01)
    assert starts["friction.f_pos.F_Coulomb@level 3"] == pytest.approx(levels[1], rel=0.01)


def test_starts_of_each_record_are_those_of_single_parameters() -> None:
    data = {"a": short(), "b": short()}
    with pytest.raises(ValueError, match="got them for 'friction.f_pos'. Write .*F_Coulomb"):
        build_problem(carriage(1.0), data, FitOptions(own={"friction.f_pos": [1.0, 2.0]}))
