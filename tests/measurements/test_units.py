"""Units of a sweep."""

import math

import pytest

from frictax.measurements import units

ANGLE, FORCE, SPEED = ("m", "rad"), ("N", "N.m"), ("m/s", "rad/s")


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


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("w (RPM)", "rpm"),
        ("x (\u03bcm)", "um"),
        ("x [\u00b5m]", "um"),
        ("x (micron)", "um"),
        ("t (msec)", "ms"),
        ("pos [mm] (filtered)", "mm"),
        ("Force (N) - Plot 0", "N"),
        ("mu [1]", "1"),
        ("position[1]", None),
        ("q(1)", None),
        ("M(:,3)", None),
    ],
)
def test_a_unit_in_brackets_is_found_anywhere_in_a_name(name: str, unit: str | None) -> None:
    assert units.named_in(name) == unit


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (ANGLE, "x / mm|x mm|x-mm|x (MM)|x_mm|mm|x / in|x (furlong)|x in mm|x_nm|x_rev|enc counts"),
        (("s",), "t / ms|t_ms|t (MS)|TIME_US|ms|t_min|stamp_ns"),
        (FORCE, "F (KN)|F / kN|F kN|F KN|u_mNm|F_lbf|iq_mA|iq / A"),
        (SPEED, "w_deg/s|w / rpm|speed in rpm|w (degs/s)|v km/h|v in/s|w_deg|w_rev/s"),
    ],
)
def test_a_text_in_a_name_that_may_be_a_unit_is_found(kind: tuple[str, ...], names: str) -> None:
    for name in names.split("|"):
        assert units.unread_unit(name, kind) is not None, name


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            ANGLE,
            "x|m|position|motor_1|joint[1]|q(2)|phi (1)|M(:,3)|x_in|foot_z|cm_x|q (i)|x_rad|deg2",
        ),
        (("s",), "t|time|t_s|sec|Zeit, s|stamp"),
        (FORCE, "F|N|F_N|drive|F_min|tau_Nm|tau_nm|F_g|ft_x|a|v|h|in|min|kp|/joint/effort|M|A|V"),
        (SPEED, "v|w|v_m/s|w rad/s|v_max|v_min|speed"),
    ],
)
def test_an_ordinary_name_has_no_text_like_a_unit(kind: tuple[str, ...], names: str) -> None:
    for name in names.split("|"):
        assert units.unread_unit(name, kind) is None, name
