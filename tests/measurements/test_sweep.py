"""Reading and checking a sweep."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import frictax as fx
from frictax.measurements import Sweep
from frictax.measurements.units import FORCE, VELOCITY

GOOD = (
    "drive,omega,torque,began\n1,1.0,2.0,0\n1,2.0,2.5,0\n1,-1.0,-2.1,0\n2,3.0,3.0,0\n2,4.0,3.5,0\n"
)


def read(tmp_path: Path, text: str = GOOD, **options) -> Sweep:
    path = tmp_path / "sweep.csv"
    path.write_text(text, encoding="utf-8")
    given: dict[str, Any] = {"velocity": "omega", "force": "torque"}
    return Sweep.from_csv(path, **given | options)


def array(v, f, **options) -> Callable[[Path], object]:
    return lambda _: Sweep(v, f, **options)


def csv(text: str = GOOD, **options) -> Callable[[Path], object]:
    return lambda tmp_path: read(tmp_path, text, **options)


# (what is wrong, how it comes about, words that the one sentence must hold)
BAD = [
    ("missing column", csv(velocity="omgea"), ["'omgea'", "Did you mean 'omega'", "It has: drive"]),
    ("missing sigma column", csv(sigma="std"), ["'std'", "sigma"]),
    ("missing breakaway column", csv(breakaway="start"), ["'start'", "breakaway"]),
    ("NaN cell", csv(GOOD + "2,nan,3,0\n"), ["line 7", "'omega'", "Delete the row"]),
    ("empty cell", csv(GOOD + "2,5,,0\n"), ["line 7", "'torque'"]),
    ("infinite cell", csv(GOOD + "2,inf,3,0\n"), ["line 7", "finite"]),
    ("word in a cell", csv(GOOD + "2,fast,3,0\n"), ["line 7", "'fast'"]),
    (
        "decimal comma",
        csv(GOOD.replace(",", ";") + "2;5,5;3;0\n", delimiter=";"),
        ["line 7", 'decimal=","'],
    ),
    ("wrong delimiter", csv(GOOD.replace(",", ";")), ['Give delimiter=";"']),
    ("empty file", csv(""), ["is empty"]),
    ("header only", csv("omega,torque\n"), ["no rows"]),
    ("no header", csv("1,2\n2,3\n"), ["line of column names"]),
    ("ragged row", csv(GOOD + "2,5,3\n"), ["line 7", "3 cells", "4"]),
    ("repeated column", csv("omega,omega,torque\n1,1,1\n"), ["two columns called 'omega'"]),
    (
        "not text",
        lambda p: (
            (p / "s.csv").write_bytes(b"\x00\x80\xff\xfe"),
            Sweep.from_csv(p / "s.csv", "a", "b"),
        ),
        ["UTF-8"],
    ),
    ("folder", lambda p: Sweep.from_csv(p, "omega", "torque"), ["is a folder"]),
    (
        "no file",
        lambda p: (read(p), Sweep.from_csv(p / "sweeps.csv", "a", "b")),
        ["no file", "Did you mean 'sweep.csv'"],
    ),
    ("where value", csv(where={"drive": 7}), ["drive = 7", "holds: 1, 2"]),
    ("where column", csv(where={"driver": 1}), ["'driver'", "Did you mean 'drive'"]),
    ("where together", csv(where={"drive": 1, "omega": 4}), ["drive = 1 and omega = 4"]),
    ("direction without rows", csv(where={"drive": 2}, direction="negative"), ["v < 0"]),
    ("unknown direction", csv(direction="forward"), ["'forward'", "'positive'"]),
    ("row at rest", csv(GOOD + "2,0,3,0\n"), ["line 7", "omega = 0", "breakaway="]),
    ("breakaway flag", csv(GOOD + "2,0,3,maybe\n", breakaway="began"), ["line 7", "'maybe'"]),
    ("unknown velocity unit", csv(velocity_unit="rmp"), ["'rmp'", "Did you mean 'rpm'"]),
    ("unknown force unit", csv(force_unit="Nms"), ["'Nms'", "N.m"]),
    ("units of two kinds", csv(velocity_unit="rpm", force_unit="N"), ["'rpm'", "'N'", "N.m"]),
    ("wrong sign", csv(sign=-1), ["oppose the motion", "Give sign=1"]),
    ("sign is a factor", csv(sign=2), ["must be 1 or -1"]),
    (
        "one speed",
        array([1.0, 1.0, -1.0], [2.0, 2.1, -2.0]),
        ["two or more speeds", "only 1 rad/s"],
    ),
    ("lengths", array([1.0, 2.0], [2.0, 2.1, 3.0]), ["as many rows", "(2)"]),
    ("two-dimensional", array([[1.0, 2.0]], [2.0, 2.1]), ["one row of numbers"]),
    ("text array", array(["a", "b"], [2.0, 2.1]), ["must be numbers"]),
    ("NaN array", array([1.0, float("nan")], [2.0, 2.1]), ["finite", "row 1"]),
    (
        "negative sigma",
        array([1.0, 2.0], [2.0, 2.1], sigma=[0.1, -0.1]),
        ["sigma must be > 0", "row 1"],
    ),
    ("zero sigma", array([1.0, 2.0], [2.0, 2.1], sigma=[0.1, 0.0]), ["sigma must be > 0"]),
    (
        "known sigma without sigma",
        array([1.0, 2.0], [2.0, 2.1], sigma_known=True),
        ["needs `sigma`"],
    ),
    (
        "moving breakaway row",
        array([1.0, 2.0, 3.0], [2.0, 2.1, 2.5], breakaway=[0, 0, 1]),
        ["must be 0 in a breakaway row"],
    ),
    (
        "breakaway without force",
        array([1.0, 2.0, 0.0], [2.0, 2.1, 0.0], breakaway=[0, 0, 1]),
        ["force at which motion began"],
    ),
    ("quotation mark alone", csv(GOOD + '2,"5,3,0\n2,6,3,0\n'), ["line 7", "quotation mark"]),
    (
        "sign between thousands",
        csv("omega;torque\n1;2,5\n2;1.003\n", delimiter=";", decimal=","),
        ["line 3", "'1.003'", "thousands"],
    ),
    ("one column for both", csv(velocity="torque"), ["both name column 'torque'"]),
    ("no force", array([1.0, 2.0], [0.0, 0.0]), ["must not be 0 in every row"]),
    (
        "weight above friction",
        array([1.0, 2.0, -1.0, -2.0, 0.0], [4.0, 4.1, 2.0, 1.9, 4.2], breakaway=[0, 0, 0, 0, 1]),
        ["v < 0", "Subtract the constant force"],
    ),
    ("undeclared rest", array([1.0, 2.0, 0.0], [2.0, 2.1, 2.5]), ["row 2", "breakaway"]),
]


@pytest.mark.parametrize(
    ("make", "words"), [pytest.param(make, words, id=name) for name, make, words in BAD]
)
def test_bad_input_gives_one_clear_sentence_with_the_remedy(
    make, words: list[str], tmp_path: Path
) -> None:
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        make(tmp_path)
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message
    assert message.endswith((".", "?"))


def test_rows_columns_and_directions_are_chosen_by_name(tmp_path: Path) -> None:
    sweep = read(tmp_path, where={"drive": 1})
    assert sweep.velocity.tolist() == [1.0, 2.0, -1.0]
    assert sweep.positive().force.tolist() == [2.0, 2.5]
    assert sweep.negative().force.tolist() == [-2.1]
    assert sweep.both_directions
    assert not sweep.positive().both_directions


def test_a_breakaway_row_may_leave_its_velocity_empty_and_goes_where_its_force_points(
    tmp_path: Path,
) -> None:
    sweep = read(tmp_path, GOOD + "2,,4.0,1\n2,0,-4.0,1\n", breakaway="began")
    assert sweep.breakaway.tolist() == [False] * 5 + [True, True]
    assert sweep.direction.tolist() == [1, 1, -1, 1, 1, 1, -1]
    assert sweep.negative().breakaway.tolist() == [False, True]


def test_comments_a_byte_order_mark_semicolons_and_decimal_commas_are_read(tmp_path: Path) -> None:
    text = "\ufeff# setup 3\nomega;torque\n1,5;2,5\n\n2,5;3,5\n"
    sweep = read(tmp_path, text, delimiter=";", decimal=",")
    assert sweep.velocity.tolist() == [1.5, 2.5]
    assert sweep.force.tolist() == [2.5, 3.5]


numbers = st.floats(min_value=1e-3, max_value=1e3)


@given(
    st.lists(st.tuples(numbers, numbers), min_size=2, max_size=20, unique_by=lambda row: row[0]),
    st.sampled_from(
        [(v, f) for v in VELOCITY for f in FORCE if VELOCITY[v].rotational == FORCE[f].rotational]
    ),
    st.sampled_from([1, -1]),
)
def test_values_are_stored_in_si_whatever_the_declared_units_and_sign(
    tmp_path_factory, rows, names, sign
) -> None:
    velocity, force = names
    path = tmp_path_factory.mktemp("units") / "sweep.csv"
    path.write_text("f,v\n" + "".join(f"{sign * f!r},{v!r}\n" for v, f in rows), encoding="utf-8")
    sweep = Sweep.from_csv(
        path, velocity="v", force="f", velocity_unit=velocity, force_unit=force, sign=sign
    )
    np.testing.assert_allclose(
        sweep.velocity / VELOCITY[velocity].si, [v for v, _ in rows], rtol=1e-14
    )
    np.testing.assert_allclose(sweep.force / FORCE[force].si, [f for _, f in rows], rtol=1e-14)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_one_sentence(tmp_path_factory, text: str) -> None:
    path = tmp_path_factory.mktemp("text") / "sweep.csv"
    path.write_text("omega,torque\n1,2\n2,3\n" + text, encoding="utf-8")
    message = "."
    try:
        assert Sweep.from_csv(path, velocity="omega", force="torque").n >= 2
    except ValueError as error:
        message = str(error)
    assert message.endswith((".", "?"))


def test_a_frame_comes_back_as_the_sweep_that_it_was_made_of() -> None:
    sweep = Sweep(
        [0, 1, 2, -3], [3, 2, 3, -4], [0.1, 0.1, 0.2, 0.1], [1, 0, 0, 0],
        velocity_unit="mm/s", force_unit="N",
    )  # fmt: skip
    again = Sweep.from_pandas(sweep.to_pandas())
    for field in ("velocity", "force", "sigma", "breakaway"):
        np.testing.assert_array_equal(getattr(again, field), getattr(sweep, field))
    assert not again.rotational


@pytest.mark.parametrize(
    ("columns", "units"),
    [
        (("speed [rpm]", "torque [mN.m]"), ("rpm", "mN.m")),
        (("omega", "tau"), ("rad/s", "N.m")),
        (("speed_rpm", "torque_mNm"), ("rpm", "mN.m")),
        (("v [mm/s]", "f"), ("mm/s", "N")),
        (("v", "F (N)"), ("m/s", "N")),
        (("Motor speed (deg/s)", "Friction torque"), ("deg/s", "N.m")),
    ],
)
def test_columns_of_a_frame_are_recognised_by_unit_and_name(columns, units) -> None:
    frame = pd.DataFrame({"temperature": [20, 21, 22], **dict.fromkeys(columns, [1.0, 2.0, 3.0])})
    sweep = Sweep.from_pandas(frame)
    assert (sweep.velocity_unit.name, sweep.force_unit.name) == units


@pytest.mark.parametrize(
    ("frame", "options", "says"),
    [
        ({"a": [1], "b": [2]}, {}, "one column as velocity, got none of 'a', 'b'"),
        ({"v": [1, 2], "F1 [N]": [2, 3], "F2 [N]": [1, 2]}, {}, "as force, got several"),
        ({"v": [1, 2], "f": [2, 3]}, {"force": "g"}, "no column"),
        ({"v": [1, 2], "f": [2, 3]}, {"where": {"v": 9}}, "no row where v = 9"),
        ({"v": [1, 2], "f": ["x", 3]}, {}, "must be numbers"),
        ({"v": [1, 2], "f": [2, 3]}, {"force": "v", "velocity": "v"}, "both name column 'v'"),
        ({"v [m/s]": [1, 2], "friction": [2, 3], "load [N]": [9, 9]}, {}, "as force, got several"),
        ({"v": [1, 2], "drag": [2, 3], "N": [9, 9]}, {}, "as force, got none of 'v', 'drag', 'N'"),
        ({"x [mm]": [1, 2], "f": [2, 3]}, {"velocity": "x [mm]"}, "as the velocity .* got 'mm'"),
        ({"v": [1, 2], "f_KN": [2, 3]}, {}, "got 'KN'. Give `force_unit`"),
        ({"v": [1, 2], "f [N]": [2, 3], "sigma [N.m]": [1, 1]}, {}, "like sigma, .* got 'N'"),
        ({"v": [1, 2], "f": [2, 3], "sigma [mN]": [1, 1]}, {}, "in mN, got None. Give `force_u"),
    ],
)
def test_a_frame_without_a_sweep_is_refused_in_a_sentence(frame, options, says) -> None:
    with pytest.raises(ValueError, match=says):
        Sweep.from_pandas(pd.DataFrame(frame), **options)
    with pytest.raises(ValueError, match="needs a DataFrame, got a list"):
        Sweep.from_pandas([[1, 2]])  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("columns", "sigma"),
    [
        (("velocity", "force", "N"), False),
        (("v", "F", "N"), False),
        (("velocity", "force", "std_N"), False),
        (("velocity", "force", "motor_rpm"), False),
        (("velocity", "force", "sigma [N]"), True),
        (("v_m/s", "F", "sigma_v"), False),
        (("speed [m/s]", "F [N]", "preload [N]"), False),
    ],
)
def test_another_column_of_a_frame_is_not_taken_as_velocity_or_force(columns, sigma: bool) -> None:
    rows = ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [9.0, 8.0, 7.0])
    sweep = Sweep.from_pandas(pd.DataFrame(dict(zip(columns, rows, strict=True))))
    assert [sweep.velocity.tolist(), sweep.force.tolist()] == list(rows[:2])
    assert (sweep.sigma is None) != sigma
    other = Sweep.from_pandas(
        pd.DataFrame({"v": rows[0], "F": rows[1], "std_N": rows[2]}), sigma="std_N"
    )
    assert (other.force.tolist(), other.force_unit.name) == ([4.0, 5.0, 6.0], "N")


SI = ([np.pi, 2 * np.pi], [0.002, 0.003], [1e-5, 2e-5])


@pytest.mark.parametrize(
    "text",
    [
        "speed [rpm],torque [mN.m],sigma [uN.m]\n30,2,10\n60,3,20\n",
        "speed_rpm,torque_mN_m,sigma (uNm)\n30,2,10\n60,3,20\n",
        "speed_deg_s,torque / mNm,sigma [N.m] (std)\n180,2,1e-5\n360,3,2e-5\n",
        "speed,torque,sigma\n30 rpm,2 mNm,10 uN.m\n60 rpm,3 mNm,20 uN.m\n",
    ],
)
def test_units_in_names_and_cells_are_used_by_each_reader(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.csv").write_text(text)
    frame = pd.read_csv(tmp_path / "s.csv")
    v, f, sigma = frame.columns
    for sweep in (
        Sweep.from_csv(tmp_path / "s.csv", v, f, sigma),
        Sweep.from_pandas(frame, v, f, sigma),
        Sweep.from_pandas(frame),
    ):
        for name, values in zip(("velocity", "force", "sigma"), SI, strict=True):
            np.testing.assert_allclose(getattr(sweep, name), values, rtol=1e-12)
        assert sweep.notes == ()


def test_contradicting_or_unknown_units_are_notes(tmp_path: Path) -> None:
    text = "speed [rpm],torque [mN.m],sigma [mN.m]\n1,2,1\n2,3,1\n"
    given: dict[str, Any] = {"velocity_unit": "rad/s", "force_unit": "Nm"}
    sweep = read(tmp_path, text, velocity=1, force=2, sigma=3, **given)
    assert (sweep.velocity[0], sweep.force[0]) == (1.0, 2.0)
    assert sweep.sigma is not None
    assert sweep.sigma[0] == 1.0  # The unit that is given for the force applies to sigma too.
    assert "'speed [rpm]' of sweep.csv is read in rad/s, but its cells or its n" in sweep.notes[0]
    assert "'torque [mN.m]' of sweep.csv is read in N.m, but" in sweep.notes[1]
    sweep = read(tmp_path, "speed [krpm],torque\n1 rpm,2\n2 rpm,3\n", velocity=1, force=2)
    assert (sweep.velocity_unit.name, sweep.notes) == ("rpm", ())
    sweep = read(tmp_path, "speed [krpm],torque [mm/s]\n1,2\n2,3\n", velocity=1, force=2, **given)
    assert len(sweep.notes) == 1
    sweep = read(tmp_path, "speed [krpm],torque (1)\n1,2\n2,3\n", velocity=1, force="torque (1)")
    assert "has 'krpm' in its name, which is not a known unit" in "".join(sweep.notes)
    frame = pd.DataFrame({"v": [1.0, 2.0], "f [N]": [2.0, 3.0]})
    frame.attrs["units"] = {"v": "mm/s", "f [N]": "mN"}
    sweep = Sweep.from_pandas(frame)
    assert (sweep.velocity_unit.name, sweep.force_unit.name) == ("mm/s", "mN")
    assert "is read in mN, but its cells or its name contain N." in sweep.notes[0]


def test_one_column_by_name_and_by_number_is_not_two(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="both name column 2"):
        read(tmp_path, velocity="omega", force=2)


@pytest.mark.parametrize("what", ["velocity", "force", "sigma", "breakaway"])
def test_masked_rows_are_refused(what: str) -> None:
    rows: dict[str, Any] = {"velocity": [1, 2, 3], "force": [2.0, 2.1, 2.2]}
    rows[what] = np.ma.array(rows.get(what, [1, 1, 1]), mask=[False, True, False])
    with pytest.raises(ValueError, match=f"`Sweep` {what} has 1 masked samples, .* not measured"):
        Sweep(**rows)


def test_a_frame_chooses_rows_and_leaves_speeds_empty_as_a_file_does() -> None:
    frame = pd.DataFrame({"v": [1.0, 2.0, np.nan, 9.0], "f": [2.0, 3.0, 4.0, 1.0]})
    frame = frame.assign(breakaway=[0, 0, 1, 0], id=["1", "1", "1", "2"], n=[1, 1, 1, 2])
    frame = frame.assign(on=[True, True, True, False])
    for where in ({"id": "1"}, {"id": 1}, {"n": "1"}, {"n": 1, "id": "1"}, {"on": True}):
        sweep = Sweep.from_pandas(frame, where=where)
        assert (sweep.velocity.tolist(), sweep.force.tolist()) == ([1, 2, 0], [2, 3, 4])
    with pytest.raises(ValueError, match="velocity must be finite"):
        Sweep.from_pandas(frame.assign(breakaway=[0, 0, 0, 0]))


def test_breakaway_is_true_or_false_in_each_row() -> None:
    v, f = [0.0, 0.1, 0.2, 0.3], [2.0, 1.1, 1.2, 1.3]
    frame = pd.DataFrame({"velocity [m/s]": v, "force [N]": f})
    for flags in (["true", "false", "no", ""], [1, 0, np.nan, 0]):
        sweep = Sweep.from_pandas(frame.assign(breakaway=flags))
        assert sweep.breakaway.tolist() == [True, False, False, False]
    for flags in ([1.0, 0.0, np.nan, 0.0], ["true", "false", "false", "false"]):
        with pytest.raises(ValueError, match="must be True or False in a row, got"):
            Sweep(v, f, breakaway=flags)


def test_a_fit_repeats_the_doubts_about_a_sweep(tmp_path: Path) -> None:
    text = "speed [rpm],torque\n1,2\n2,3\n3,4\n4,5.1\n5,6\n"
    sweep = read(tmp_path, text, velocity=1, force=2, velocity_unit="rad/s", force_unit="N.m")
    (doubt,) = sweep.notes
    assert any(doubt in warning for warning in fx.fit(fx.Coulomb, sweep).warnings)
