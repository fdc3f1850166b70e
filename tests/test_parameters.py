"""Parameters: domains, the way to unconstrained space and back, paths."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import frictax as fx
from frictax.parameters import (
    AtLeast,
    Between,
    Increasing,
    LogScale,
    Positive,
    Real,
    children,
    get,
    parameters,
    replace,
    rotational_unit,
    select,
)

anything = st.floats(-30.0, 30.0)
SCALARS = {
    "real": Real(),
    "positive": Positive(),
    "log scale": LogScale(),
    "at least 0": AtLeast(0.0),
    "at least 1": AtLeast(1.0),
    "at least -2": AtLeast(-2.0),
}


@pytest.mark.parametrize("name", SCALARS)
@given(z=anything)
def test_an_unconstrained_number_always_lands_in_the_domain_and_comes_back(
    name: str, z: float
) -> None:
    domain = SCALARS[name]
    value = domain.from_unconstrained(jnp.asarray(z))
    assert domain.contains(np.asarray(value))
    if not domain.on_edge(np.asarray(value)):
        # Near the edge the value itself has lost the digits of z.
        assert float(domain.to_unconstrained(value)) == pytest.approx(
            z, abs=1e-6 + 1e-15 * np.exp(-z)
        )


@pytest.mark.parametrize("name", SCALARS)
@given(x=st.floats(1e-6, 1e4))
def test_a_value_inside_comes_back_from_unconstrained_space(name: str, x: float) -> None:
    domain = SCALARS[name]
    value = jnp.asarray(getattr(domain, "lower", 0.0) + x)
    assert float(domain.from_unconstrained(domain.to_unconstrained(value))) == pytest.approx(
        float(value), rel=1e-9
    )


@pytest.mark.parametrize(
    "domain", [*SCALARS.values(), Between(-3.0, 1e5), Increasing()], ids=lambda d: type(d).__name__
)
def test_numbers_of_numpy_stay_numpys_and_are_the_same(domain: Any) -> None:
    # what is done with them outside a compiled program then compiles nothing
    values = np.array([1.5, 2.5, 40.0])
    z = domain.to_unconstrained(values)
    assert isinstance(z, np.ndarray)
    np.testing.assert_allclose(z, domain.to_unconstrained(jnp.asarray(values)), rtol=1e-14)


@given(st.lists(st.floats(-5.0, 5.0), min_size=1, max_size=6))
def test_unconstrained_vectors_become_increasing_ones(z: list[float]) -> None:
    value = Increasing().from_unconstrained(jnp.asarray(z))
    assert Increasing().contains(np.asarray(value))
    assert np.allclose(Increasing().to_unconstrained(value), z, atol=1e-9)


@pytest.mark.parametrize("name", SCALARS)
def test_the_way_back_has_a_derivative_equal_to_central_differences(name: str) -> None:
    f, h = SCALARS[name].from_unconstrained, 1e-6
    for z in (-3.0, 0.0, 2.0):
        assert float(jax.grad(f)(z)) == pytest.approx(
            float(f(jnp.asarray(z + h)) - f(jnp.asarray(z - h))) / (2 * h), rel=1e-6
        )


@pytest.mark.parametrize(
    ("domain", "inside", "edge", "outside"),
    [
        (Positive(), 0.1, 0.0, -1.0),
        (LogScale(), 0.1, 0.0, -1.0),
        (AtLeast(1.0), 1.0, 1.0, 0.9),
        (Increasing(), [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]),
    ],
)
def test_a_domain_knows_inside_edge_and_outside(domain, inside, edge, outside) -> None:
    assert domain.contains(np.asarray(inside))
    assert domain.on_edge(np.asarray(edge))
    for value in (outside, np.nan, np.inf):
        assert not domain.contains(np.asarray(value))


@pytest.fixture(scope="module")
def block() -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=2.0),
        friction=fx.SupportFriction(
            "mass", f_pos=[[0, 15], [1, 6.4], [12, 17]], f_neg=fx.Coulomb(F_Coulomb=3.0), peak=1.1
        ),
        drive=fx.Force("mass", fx.Sine(amplitude=25.0, f=0.25)),
    )


def test_paths_name_every_parameter_in_the_order_written(block: fx.Mechanism) -> None:
    assert [p.path for p in parameters(block)] == [
        *("mass.m", "mass.s", "mass.v", "mass.L"),
        *(
            "friction.f_pos.v",
            "friction.f_pos.f",
            "friction.peak",
            "friction.f_neg.F_Coulomb",
            "friction.f_neg.F_prop",
        ),
        *(f"drive.f.{p}" for p in ("amplitude", "f", "phase", "offset", "startTime")),
    ]


def test_a_path_to_a_part_takes_what_is_declared_to_be_fitted(block: fx.Mechanism) -> None:
    assert [p.path for p in select(block, "mass")] == ["mass.m"]
    assert [p.path for p in select(block, "friction.f_pos")] == ["friction.f_pos.f"]
    # By its own name anything may move.
    assert [p.path for p in select(block, ["mass.v", "mass"])] == ["mass.m", "mass.v"]


def test_a_model_comes_back_from_unconstrained_space(block: fx.Mechanism) -> None:
    free = ["mass.m", "friction.f_pos", "friction.peak", "mass.s"]
    z = fx.to_unconstrained(block, free)
    assert list(z) == ["mass.m", "mass.s", "friction.f_pos.f", "friction.peak"]
    back = fx.from_unconstrained(block, z)
    assert eqx.tree_equal(back, block, rtol=1e-12, atol=1e-12)
    moved = fx.from_unconstrained(block, {path: value - 50.0 for path, value in z.items()})
    fx.parameters.check(moved)
    assert float(moved["friction"].peak) >= 1.0


def test_replace_changes_what_is_named_and_nothing_else(block: fx.Mechanism) -> None:
    changed = replace(block, {"friction.peak": 1.4, "mass.m": 3})
    assert (float(changed["friction"].peak), float(changed["mass"].m)) == (1.4, 3.0)
    assert eqx.tree_equal(replace(changed, {"friction.peak": 1.1, "mass.m": 2.0}), block)
    assert replace(block, {}) is block


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_are_times_in_seconds(unit: str) -> None:
    durations = np.array([0, 1000, 3000], "m8[ms]").astype(f"m8[{unit}]")
    seconds = durations / np.timedelta64(1, "s")
    of_pandas = pd.Series(durations, index=[7, 8, 9])
    for times in (durations, of_pandas, pd.Index(durations), np.ma.array(durations)):
        assert fx.Sampled(times, [0.0, 1.0, 2.0]).times.tolist() == seconds.tolist()
    assert float(fx.Step(startTime=durations[2]).startTime) == seconds[2]


def test_a_run_over_durations_is_one_over_seconds(block: fx.Mechanism) -> None:
    run = fx.simulate(block, pd.to_timedelta([0, 500, 1500], unit="ms"))
    assert run.ts.tolist() == [0.0, 0.5, 1.5]


def test_get_reads_parts_laws_and_values(block: fx.Mechanism) -> None:
    assert get(block, "friction") is block["friction"]
    assert isinstance(get(block, "friction.f_neg"), fx.Coulomb)
    assert float(get(block, "drive.f.f")) == 0.25


def test_numbers_become_float_arrays_so_that_a_new_value_does_not_compile_again(
    block: fx.Mechanism,
) -> None:
    for p in parameters(block):
        assert isinstance(p.value, jax.Array)
        assert p.value.dtype == jnp.float64
    assert all(d is None or d.unit for _, _, d in children(block["friction"]))


def test_tree_at_keeps_traced_values_and_passes_them_over_in_checks(block: fx.Mechanism) -> None:
    def peak(value: jax.Array) -> jax.Array:
        changed = eqx.tree_at(lambda b: b["friction"].peak, block, value)
        fx.parameters.check(changed)
        return changed["friction"].peak ** 2

    assert float(jax.grad(peak)(jnp.array(3.0))) == 6.0


def test_units_of_rotation_are_those_of_translation_turned() -> None:
    assert [rotational_unit(u) for u in ("N", "m/s", "kg", "1")] == ["N.m", "rad/s", "kg.m2", "1"]


@given(st.floats(-1.999, 2.999))
def test_a_value_between_two_bounds_comes_back_and_never_leaves_them(x: float) -> None:
    domain = Between(-2.0, 3.0)
    z = domain.to_unconstrained(jnp.asarray(x))
    np.testing.assert_allclose(domain.from_unconstrained(jnp.asarray(z)), x, rtol=1e-9, atol=1e-9)
    far = np.asarray(domain.from_unconstrained(jnp.asarray([-1e3, 1e3])))
    assert domain.contains(far)
    assert domain.on_edge(np.asarray(3.0))
    assert domain.on_edge(np.asarray(-2.0))
    assert not domain.contains(np.asarray(3.1))
    assert (domain.bound(), domain.upper(), AtLeast(1.0).upper()) == (-2.0, 3.0, np.inf)


@given(value=st.floats(1e-6, 1e6), share=st.floats(0.0, 30.0))
def test_an_interval_on_a_log_scale_is_by_one_factor_and_agrees_to_first_order(value, share):
    low, high = LogScale().interval(value, share * value)
    if share > 20:
        assert (low, high) == (0.0, np.inf)
        return
    assert 0 < low <= value <= high
    assert low * high == pytest.approx(value**2)
    if share < 1e-3:
        assert high - low == pytest.approx(2 * share * value, rel=1e-6, abs=1e-12 * value)
    assert all(np.isnan(LogScale().interval(value, np.nan)))
