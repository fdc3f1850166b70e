"""Bounds of the user's own: kept, told, and refused where they cannot be."""

from typing import Any

import numpy as np
import pytest

import frictax as fx
from frictax.fitting import Knowledge
from frictax.fitting.result.identifiability import is_at_bound
from logarithmic import Logarithmic

F = "friction.f_pos.F_Coulomb"
T = np.linspace(0.0, 2.0, 41)
BLOCK = fx.Mechanism(
    mass=fx.Mass(m=1.0),
    friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    drive=fx.Force("mass", 2.0),
)
# 2 N against 1.25 N of friction, and an error that repeats itself.
RECORD = fx.Record(T, outputs={"mass.v": 0.75 * T + 0.01 * np.sin(40 * T)}, name="pull")


@pytest.mark.slow
def test_bounds_that_do_not_bind_change_neither_value_nor_error() -> None:
    plain, bounded = (fx.fit(BLOCK, RECORD, free=[F], bounds=b) for b in ({}, {F: (0.5, 3.0)}))
    assert bounded.values[F] == pytest.approx(plain.values[F], rel=1e-5)
    assert bounded.standard_errors[F] == pytest.approx(plain.standard_errors[F], rel=1e-3)
    assert bounded.identifiability.knowledge[F] is Knowledge.KNOWN


@pytest.mark.slow
@pytest.mark.parametrize(("bounds", "end"), [((0.5, 1.1), 1.1), ((0.5, 1.2501), 1.2501)])
def test_a_value_that_wants_to_go_further_stays_on_its_bound_and_has_no_interval(
    bounds: tuple[float, float], end: float
) -> None:
    found = fx.fit(BLOCK, RECORD, free=[F], bounds={F: bounds})
    assert found.values[F] == pytest.approx(end, abs=1e-4)
    assert found.identifiability.knowledge[F] is Knowledge.AT_BOUND
    assert np.isnan(found.standard_errors[F])
    assert any(f"is at its bound {end:g}" in str(notice) for notice in found.notices_at_hand)


@pytest.mark.slow
def test_an_interval_ends_at_the_bound_that_it_reaches() -> None:
    free = fx.fit(BLOCK, RECORD, free=[F])
    most = free.values[F] + free.standard_errors[F]
    found = fx.fit(BLOCK, RECORD, free=[F], bounds={F: (0.5, most)})
    (estimate,) = found.estimates
    assert estimate.upper == pytest.approx(most)
    assert found.identifiability.knowledge[F] is Knowledge.WEAK


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ({"mass.m": (0.5, 2.0)}, "names 'mass.m', which is not fitted"),
        ({F: (2.0, 1.0)}, "two numbers, the least first"),
        ({F: 1.0}, "two numbers, the least first"),
        ({F: (np.nan, 2.0)}, "two numbers, the least first"),
        ({F: (-1.0, 2.0)}, "must lie in its domain, >= 0"),
        ({F: (1.5, 2.0)}, "must be between 1.5 and 2, got 1"),
        ([F], "must be a dict of path"),
    ],
)
def test_bounds_that_cannot_be_are_refused_in_one_sentence(bounds: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        fx.fit(BLOCK, RECORD, free=[F], bounds=bounds)


@pytest.mark.slow
def test_errors_and_profiles_end_at_the_bound_too() -> None:
    free = fx.fit(BLOCK, RECORD, free=[F])
    most = free.values[F] + free.standard_errors[F]
    found = fx.fit(BLOCK, RECORD, free=[F], bounds={F: (0.5, most)})
    assert found.uncertainty(fx.White()).estimates[0].upper == pytest.approx(most)
    profile = found.profile(F)
    assert profile.upper == pytest.approx(most)
    assert profile.lower == pytest.approx(free.profile(F).lower, rel=1e-5)
    assert np.max(profile.values) <= most


@pytest.mark.slow
def test_bounds_of_a_records_own_number_do_not_trouble_the_fit_before() -> None:
    record = fx.Record(
        T, {"drive": 2.0 + 0.0 * T}, {"mass.s": 0.375 * T**2 + 1e-4 * np.sin(40 * T)}, name="run"
    )
    own = "inputs.drive.offset"
    objective = fx.FreeRun()
    given = {
        "free": ["mass.m"],
        "own": [own],
        "bounds": {own: (-1.0, 1.0)},
        "start": fx.InverseDynamics(8.0),
    }
    found = fx.fit(BLOCK, record, objective=objective, **given)
    assert -1.0 <= found.values[f"{own}@run"] <= 1.0


def slope(seed: int) -> fx.Sweep:
    """A viscous part that the noise nearly hides."""
    v = np.linspace(1.0, 3.0, 10)
    noise = 0.03 * np.random.default_rng(seed).standard_normal(10)
    return fx.Sweep(v, 6.0 + 0.04 * v + noise, velocity_unit="m/s", force_unit="N")


def test_a_number_on_a_log_scale_has_the_same_value_and_an_interval_by_a_factor() -> None:
    law = fx.Coulomb(F_Coulomb=6.0, F_prop=0.1)
    plain, by_factor = (fx.fit(law, slope(1), log_scale=k) for k in ((), "F_prop"))
    a, b = (found.estimates[1] for found in (plain, by_factor))
    assert b.value == pytest.approx(a.value, rel=1e-5)
    assert b.standard_error == pytest.approx(a.standard_error, rel=1e-4)
    half = a.upper - a.value
    assert b.upper == pytest.approx(b.value * np.exp(half / a.value), rel=1e-3)
    assert b.upper / b.value == pytest.approx(b.value / b.lower, rel=1e-12)
    assert a.lower < b.lower
    assert f"{b.shown.lower} to {b.shown.upper}" in str(by_factor)
    assert by_factor.estimates[0].lower == pytest.approx(plain.estimates[0].lower, rel=1e-6)


@pytest.mark.slow
def test_a_law_on_a_log_scale_is_each_of_its_numbers() -> None:
    law = fx.Coulomb(F_Coulomb=1.1, F_prop=0.1)
    block = fx.parameters.replace(BLOCK, {F: 1.1})
    found = fx.fit(block, RECORD, free=[F], log_scale=["friction.f_pos"])
    (e,) = found.estimates
    assert e.upper / e.value == pytest.approx(e.value / e.lower)
    assert fx.fit(law, slope(2), log_scale=["F_Coulomb", "F_prop"]).estimates[1].lower > 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"log_scale": "F_pro"}, "`log_scale` names 'F_pro', which is not fitted"),
        ({"log_scale": ["peak"], "peak": 1.2}, "which is not fitted"),
        (
            {"log_scale": ["offset"], "offset": 0.1, "free": ["f_pos.F_Coulomb", "offset"]},
            "'offset' must be a number > 0, and it may be any that is finite",
        ),
        (
            {"log_scale": ["F_prop"], "bounds": {"F_prop": (0.01, 1.0)}},
            "is in `bounds` and in `log_scale`",
        ),
    ],
)
def test_log_scales_that_cannot_be_are_refused_in_one_sentence(options: Any, says: str) -> None:
    v = np.concatenate([np.linspace(1.0, 3.0, 10), -np.linspace(1.0, 3.0, 10)])
    f = np.sign(v) * (6.0 + 0.04 * abs(v)) + 0.01 * np.sin(30.0 * v)
    sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    with pytest.raises(ValueError, match=says) as caught:
        fx.fit(fx.Coulomb(F_Coulomb=6.0, F_prop=0.1), sweep, **options)
    assert "\n" not in str(caught.value)


def test_a_search_along_a_direction_without_effect_ends_at_finite_values() -> None:
    """It went to v0 = inf, and the start values were blamed."""
    v = np.linspace(0.2, 6.0, 24)
    noise = 0.01 * np.random.default_rng(3).standard_normal(24)
    sweep = fx.Sweep(v, 5.0 + 0.2 * v + noise, velocity_unit="m/s", force_unit="N")
    found = fx.fit(Logarithmic(4.996257, 0.2010678, 0.0561957, 0.02), sweep)
    assert found.values["F_Coulomb"] == pytest.approx(5.0, abs=0.02)
    assert found.identifiability.knowledge["F_log"] is Knowledge.AT_BOUND
    assert found.identifiability.knowledge["v0"] is Knowledge.UNKNOWN
    assert 0 < found.values["v0"] < 1e101


def test_beside_a_value_at_its_bound_a_value_without_effect_is_not_at_its_bound() -> None:
    names = ["law.F_log", "law.v0", "other.F_prop"]
    inactive, size = np.zeros(3, bool), np.array([10.0, 1e-20, 1e-20])
    left, before = np.array([1e-12, 1e-12, 1e-12]), np.ones(3)
    assert is_at_bound(names, inactive, size, left, before, 1e-3).tolist() == [True, False, True]
    is_active = np.array([True, False, False])
    assert is_at_bound(names, is_active, size, left, before, 1e-3).tolist() == [False, True, True]
