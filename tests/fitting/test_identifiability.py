"""What a sweep cannot tell is said in words."""

import numpy as np
import pytest

from frictax.analysis import White
from frictax.fitting import Knowledge, SteadyFriction, fit, starting_law
from frictax.laws import Coulomb, Stribeck, Table
from frictax.measurements import Sweep


@pytest.mark.parametrize("exponent", [1.0, 2.0])
def test_the_stribeck_terms_of_the_flat_drive_2_are_not_identifiable(
    drive, exponent: float
) -> None:
    sweep = drive(2, "positive")
    found = fit(starting_law(Stribeck, sweep, exponent=exponent), sweep)
    assert found.identifiability.unknown == ("F_Stribeck", "fexp")
    assert any(
        "F_Stribeck and fexp are not identifiable" in sentence for sentence in found.warnings
    )
    assert "not identifiable" in str(found)


@pytest.mark.parametrize(("direction", "exponent"), [("positive", 2.0), ("negative", 1.0)])
def test_the_stribeck_terms_of_drive_1_are_identifiable(
    drive, direction: str, exponent: float
) -> None:
    sweep = drive(1, direction)
    found = fit(starting_law(Stribeck, sweep, exponent=exponent), sweep)
    assert found.identifiability.complete
    assert set(found.identifiability.knowledge.values()) == {Knowledge.KNOWN}


@pytest.mark.slow
def test_19_of_20_sweeps_of_coulomb_friction_have_no_identifiable_stribeck_terms() -> None:
    v, rng, called = np.linspace(0.5, 20, 16), np.random.default_rng(0), 0
    for _ in range(100):
        sweep = Sweep(v, 3.0 + 0.05 * v + 0.02 * rng.standard_normal(16))
        called += {"F_Stribeck", "fexp"} <= set(
            fit(starting_law(Stribeck, sweep), sweep).identifiability.unknown
        )
    assert called >= 90  # at least 95 expected, standard deviation 2.2


def test_a_falling_curve_is_not_taken_for_negative_viscous_friction() -> None:
    """Over a short range a falling exponential is nearly a straight line, but F_prop < 0 is no
    friction.
    """
    v = np.linspace(0.05, 1.0, 14)
    f = 2.0 + np.exp(-0.8 * v) + 1e-3 * np.random.default_rng(0).standard_normal(14)
    found = fit(
        starting_law(Stribeck, Sweep(v, f)), Sweep(v, f), free=["F_Coulomb", "F_Stribeck", "fexp"]
    )
    assert found.identifiability.knowledge["F_Stribeck"] is Knowledge.KNOWN


def test_peak_stays_and_is_explained_where_no_row_is_breakaway(drive) -> None:
    found = fit(
        SteadyFriction(Coulomb(F_Coulomb=2e-3, F_prop=1e-5), peak=1.2),
        drive(1, "positive"),
        free=["f_pos", "peak"],
    )
    assert "peak" not in found.values
    assert isinstance(found.model, SteadyFriction)
    assert float(found.model.peak) == 1.2
    assert any("so peak is kept at 1.2" in sentence for sentence in found.warnings)


def test_the_payloads_weight_is_said_to_be_unknown_beside_a_law_for_each_direction(drive) -> None:
    found = fit(Stribeck, drive(1), f_neg=Stribeck)
    assert any(
        "weight of a payload" in sentence and "an asymmetry of Coulomb friction" in sentence
        for sentence in found.warnings
    )


def test_two_nodes_between_the_same_speeds_give_a_null_direction_with_both_names() -> None:
    """Nodes at 4 and 5, nothing measured between 3 and 6 but at 4.5: only their mean is seen."""
    v = np.array([1.0, 2.0, 3.0, 4.5, 6.0, 7.0, 8.0])
    table = Table([[1, 3], [3, 3], [4, 3], [5, 3], [6, 3], [8, 3]])
    found = fit(table, Sweep(v, 3.0 + 0.1 * v + 0.01 * np.sin(9 * v)))
    assert set(found.identifiability.unknown) == {"f[2]", "f[3]"}
    direction = found.identifiability.null_directions[0]
    assert direction["f[2]"] == pytest.approx(-direction["f[3]"], rel=1e-6)
    assert "Only a combination of f[2] and f[3]" in found.warnings[0]
    assert "not identifiable" in str(found)


def test_a_parameter_at_its_bound_is_reported_there_without_an_interval() -> None:
    v = np.linspace(1.0, 10.0, 12)
    falling = 5.0 - 0.1 * v + 0.01 * np.cos(7 * v)
    found = fit(Coulomb, Sweep(v, falling))
    assert found.values["F_prop"] == 0.0
    assert found.identifiability.knowledge["F_prop"] is Knowledge.AT_BOUND
    assert np.isnan(found.standard_errors["F_prop"])
    assert found.values["F_Coulomb"] == pytest.approx(falling.mean(), rel=1e-6)
    white = found.uncertainty(White()).standard_errors
    assert white["F_Coulomb"] == pytest.approx(falling.std(ddof=1) / np.sqrt(12), rel=1e-3)
    assert any("F_prop is at its bound 0" in sentence for sentence in found.warnings)


def test_a_value_whose_interval_reaches_its_bound_is_called_so() -> None:
    v = np.linspace(1.0, 10.0, 12)
    f = 5.0 + 0.001 * v + 0.05 * np.random.default_rng(0).standard_normal(12)
    found = fit(Coulomb, Sweep(v, f))
    assert found.identifiability.knowledge["F_prop"] in (Knowledge.WEAK, Knowledge.AT_BOUND)
    assert found.intervals["F_prop"][0] == 0.0
