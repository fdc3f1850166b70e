"""Units of a sweep."""

import math

import pytest

from frictax.measurements import units


def test_rpm_degrees_and_turns_are_the_same_speed() -> None:
    speeds = [
        60 * units.velocity_unit("rpm").si,
        360 * units.velocity_unit("deg/s").si,
        units.velocity_unit("rev/s").si,
    ]
    assert speeds == pytest.approx([2 * math.pi] * 3, rel=1e-15)


def test_a_newton_metre_is_written_in_many_ways() -> None:
    assert {units.force_unit(name).name for name in ("N.m", "Nm", "N*m", "N·m", " N m ")} == {
        "N.m"
    } | {units.force_unit("Nm").name}


@pytest.mark.parametrize(
    ("size", "name"), [(2.1e-3, "mN.m"), (0.5, "N.m"), (3e-6, "µN.m"), (2.5e4, "kN.m")]
)
def test_a_table_shows_the_prefix_that_gives_handy_figures(size: float, name: str) -> None:
    assert units.shown_force(units.force_unit("N.m"), size).name == name


def test_a_declared_unit_with_handy_figures_is_kept() -> None:
    assert units.shown_force(units.force_unit("ozf.in"), 0.02).name == "ozf.in"


def test_only_the_force_in_a_coefficients_unit_takes_a_prefix() -> None:
    milli = units.force_unit("mN.m")
    assert units.display_unit("N.m.s/rad", milli) == ("mN.m.s/rad", 1e-3)
    assert units.display_unit("s/rad", milli) == ("s/rad", 1.0)
