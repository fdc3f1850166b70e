"""The layout of a text file is told from its lines."""

from pathlib import Path

import numpy as np
import pytest

import frictax as fx
from frictax.problems.starting.shape import shape_of

SHAPES = Path(__file__).parent / "shapes"
# delimiter, decimal sign, lines before the header, whether there is one, names, units
LAYOUTS: dict[str, tuple[str, str, int, bool, str, str]] = {
    "comma": (",", ".", 0, True, "t [s]|torque [N.m]|angle [rad]", "s|N.m|rad"),
    "decimal_comma": (";", ",", 0, True, "Zeit [ms]|Moment [Nm]|Winkel [°]", "ms|N.m|deg"),
    "tabs": ("\t", ".", 0, True, "time_ms|torque_mNm|angle_deg", "ms|mN.m|deg"),
    "preamble": (",", ".", 4, True, "Time (s)|Torque (Nm)|Angle (deg)", "s|N.m|deg"),
    "no_header": (" ", ".", 0, False, "||", "||"),
    "counts": (",", ".", 0, True, "us|current|encoder", "||"),
    "rpm": ("|", ".", 0, True, "t!speed_rpm!iq_A", "!rpm!A"),
    "rate": (",", ".", 0, True, "torque [N.m]|angle [rad]", "N.m|rad"),
    "two_clocks": (",", ".", 0, True, "t_drive|torque|t_encoder [ms]|angle", "||ms|"),
    "gaps": (",", ".", 0, True, "t|torque|angle", "||"),
    "units_line": (";", ".", 3, False, "time|torque|angle", "ms|mN.m|deg"),
    "windows": (";", ",", 0, True, "t [µs]|Strom [mA]|Winkel [°]", "us|mA|deg"),
    "unicode_text": ("\t", ",", 0, True, "Zeit [ms]|Moment [mNm]|Winkel [°]", "ms|mN.m|deg"),
    "dated": (",", ".", 0, True, "Timestamp|torque [N.m]|angle [rad]", "s|N.m|rad"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_layout_of_a_file_is_told_from_its_lines(name: str) -> None:
    delimiter, decimal, skip, header, names, units = LAYOUTS[name]
    sign = "!" if "!" in names else "|"
    shape = shape_of(SHAPES / f"{name}.csv")
    assert (shape.delimiter, shape.decimal) == (delimiter, decimal)
    assert (shape.skip, shape.header) == (skip, header)
    assert shape.names == tuple(names.split(sign))
    assert shape.units == tuple(unit or None for unit in units.split(sign))
    assert shape.values.shape[1] == len(shape.names)
    assert np.isfinite(shape.values).mean() > (0.6 if name in ("two_clocks", "dated") else 0.95)
    dated = [j for j, kind in enumerate(shape.kinds) if kind == "dates"]
    assert dated == ([0] if name == "dated" else [])


def test_a_line_of_names_with_units_is_not_a_line_of_units(tmp_path: Path) -> None:
    rows = (f"{k},{k % 7},{k % 5}" for k in range(20))
    head = "date: 2024-01-01,10:00,x\nt [s],pos_error [deg],M [Nm]"
    (tmp_path / "f.csv").write_text("\n".join([head, *rows]))
    assert shape_of(tmp_path / "f.csv").names == ("t [s]", "pos_error [deg]", "M [Nm]")


@pytest.mark.parametrize("text", ["", "nothing but words\nand more\n", "1\n", "a,b\nz,x\nw,y\n"])
def test_a_file_without_lines_of_numbers_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(text)
    with pytest.raises(ValueError, match=r"f.csv holds no lines of numbers"):
        shape_of(tmp_path / "f.csv")


NO_TEXT = {
    b"PK\x03\x04\x14\x00": "f.csv is a workbook, not text.* Save its sheet as CSV",
    b"t,q\n0,1\n1,2\n\0\0\0": "line 4 holds the sign '.x00'. Delete what is no text",
    b"t\0,\0q\0": "line 1 holds the sign",
    b"\xff\xfet\0,\0q": "f.csv is not a text file that can be read",
    b"\x81\x8d\x8f": "f.csv is not a text file that can be read",
}


@pytest.mark.parametrize("content", NO_TEXT)
def test_what_is_no_text_is_refused_in_a_sentence(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_bytes(content)
    with pytest.raises(ValueError, match=NO_TEXT[content]):
        shape_of(tmp_path / "f.csv")
    with pytest.raises(ValueError, match=NO_TEXT[content]):
        fx.Record.from_csv(tmp_path / "f.csv", time="t", outputs={"rotor.phi": "q"})


CLOCKS = {
    "t_drive,u,t_encoder,q": (1_700_000_000_000_000_000, 10**9, 1_700_000_000_250, 10**3),
    "t_drive [s],u,t_encoder [us],q": (1_700_000_000, 1, 1_700_000_000_250_000, 10**6),
}


@pytest.mark.parametrize("head", CLOCKS)
def test_two_clocks_that_count_from_1970_keep_their_common_offset(
    head: str, tmp_path: Path
) -> None:
    first, of_first, second, of_second = CLOCKS[head]
    rows = (f"{first + k * of_first},1,{second + k * of_second},2" for k in range(10))
    (tmp_path / "f.csv").write_text("\n".join([head, *rows]))
    t = shape_of(tmp_path / "f.csv").values[:, [0, 2]] / (of_first, of_second)
    np.testing.assert_allclose(t[:, 0], np.arange(10), atol=1e-9)
    np.testing.assert_allclose(t[:, 1], 0.25 + np.arange(10), atol=1e-9)


def test_dates_of_two_clocks_keep_their_common_offset_and_counters_do_not_move_a_clock(
    tmp_path: Path,
) -> None:
    rows = (
        f"2024-01-31 10:00:0{k}.5,1,2024-01-31 10:00:0{k},{2_100_000_000 + k},{1_700_000_000 + k}"
        for k in range(10)
    )
    (tmp_path / "f.csv").write_text("\n".join(["date,u,time,count,stamp", *rows]))
    values = shape_of(tmp_path / "f.csv").values
    np.testing.assert_allclose(values[:, 0], np.arange(10))
    np.testing.assert_allclose(values[:, 2], np.arange(10) - 0.5)
    np.testing.assert_allclose(values[:, [3, 4]], np.tile(np.arange(10)[:, None], 2))
