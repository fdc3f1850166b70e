"""`frictax init FILE.csv`: the columns and the clock that it recognises in a file."""

from pathlib import Path

import numpy as np
import pytest

from commands import frictax
from frictax.problems import read
from frictax.problems.starting import first_draft
from motor_records import drafted, write

SECONDS = {
    "Time;Speed\ns;km/h": True,
    "time_sec;speed_kmh": True,
    "Time/s;speed_kmh": True,
    "time;speed_kmh": False,
}


@pytest.mark.parametrize("header", SECONDS)
def test_seconds_of_a_slow_record_are_not_taken_for_milliseconds(
    header: str, tmp_path: Path
) -> None:
    rows = [f"{k};{100 * np.exp(-k / 200):.4f}" for k in range(300)]
    (tmp_path / "f.csv").write_text("\n".join([header, *rows]))
    time = first_draft(tmp_path / "f.csv").columns["time"]
    assert (time.sure, time.sure and time.unit) == (SECONDS[header], SECONDS[header] and "s")
    assert SECONDS[header] or "its numbers fit ms and s" in time.doubt


def test_what_follows_from_the_times_is_derived_again_with_the_users_times(
    tmp_path: Path, motor: dict[str, np.ndarray], somebody: list[str]
) -> None:
    t, q, v, i = (motor[name] for name in "tqvi")
    counts = np.round(4096 * q / (2 * np.pi))
    for name, size in (("time[0.2 ms]", 5e3), ("time[min]", 1 / 60)):
        columns = size * t, i, counts, v * 30 / np.pi
        file = write(tmp_path / "f.csv", "time,i [A],enc_cnt,speed [rpm]", *columns)
        position = drafted(file, f"time={name}").columns["position"]
        assert (position.per_turn, position.sure) == (4096.0, True)
    header = "time,F [N],x,v [mm/s]"
    file = write(tmp_path / "f.csv", header, 10 * np.arange(t.size), i, 1e2 * q, 1e2 * v)
    done = frictax("init", file, "--machine", "axis", says="time=time[0.5 ms]\n")
    assert done.exit_code == 0, done.output
    assert 'column = "x", unit = "mm" }' in (tmp_path / "f" / "problem.toml").read_text()
    file = write(tmp_path / "f.csv", header.partition(",")[2], i, 1e2 * q, 1e2 * v)
    done = frictax("init", file, "--machine", "axis", "-f", says="rate=0.2 kHz\n")
    assert done.exit_code == 0, done.output
    text = (tmp_path / "f" / "problem.toml").read_text()
    assert 'column = "x", unit = "mm" }' in text
    assert "rate = 200 # Hz" in text


# names of columns -> columns of drive and motion. q is the position, i the drive, x is another one.
RIGHT = {
    "t [s],id [A]:x,iq [A]:i,q [rad]:q": ("iq [A]", "q [rad]"),
    "t [s],i_d [A]:x,i_q [A]:i,q [rad]:q": ("i_q [A]", "q [rad]"),
    "t [s],pos_error [deg]:x,M [N.m]:i,pos [deg]:q": ("M [N.m]", "pos [deg]"),
    "t [s],temp [°]:x,torque_error [N.m]:x,M [N.m]:i,pos [deg]:q": ("M [N.m]", "pos [deg]"),
    "t [s],q1 [rad]:x,q2 [rad]:q,tau2 [N.m]:i": ("tau2 [N.m]", "q2 [rad]"),
    "t [s],F_x [N]:i,pos_y [mm]:x,pos_x [mm]:q": ("F_x [N]", "pos_x [mm]"),
    "drive:x,t [s],q [rad]:q,M [N.m]:i": ("M [N.m]", "q [rad]"),
    "t [s],u_dc [V]:x,i [A]:i,q [rad]:q": ("i [A]", "q [rad]"),
    "t_s,torque_in:i,pos_out_deg:q": ("torque_in", "pos_out_deg"),
    "t s,Drehzahl 1/min:q,M Nm:i": ("M Nm", "Drehzahl 1/min"),
    "t [s],goal_position [rad]:x,current_position [rad]:q,M [N.m]:i": (
        "M [N.m]",
        "current_position [rad]",
    ),
}


@pytest.mark.parametrize("header", RIGHT)
def test_drive_and_motion_are_the_right_columns(
    header: str, tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    motor = motor | {"x": np.random.default_rng(1).standard_normal(motor["t"].size)}
    names = [cell.partition(":")[0] for cell in header.split(",")]
    columns = [motor[cell.partition(":")[2] or "t"] for cell in header.split(",")]
    draft = first_draft(Path(write(tmp_path / "f.csv", ",".join(names), *columns)))
    assert draft.drive is not None
    assert draft.output is not None
    assert (draft.drive.name, draft.output.name) == RIGHT[header]
    assert draft.columns["time"].name.startswith("t")
    assert draft.drive.doubt == draft.output.doubt == ""


def test_row_names_of_r_do_not_shift_the_names(
    tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    rows = zip(range(1, 401), motor["t"], motor["i"], motor["q"], strict=False)
    text = [f'"{k}" {t:.4f} {i:.5f} {q:.5f}' for k, t, i, q in rows]
    (tmp_path / "f.txt").write_text("\n".join(['"t_s" "M_Nm" "q_rad"', *text]))
    columns = first_draft(tmp_path / "f.txt").columns
    numbers = {role: column.number for role, column in columns.items()}
    assert numbers == {"time": 2, "force": 3, "position": 4}
    text = [f'"{k + 1}" {x:.4f} {x**2:.4f}' for k, x in enumerate(motor["i"])]
    (tmp_path / "f.txt").write_text("\n".join(['"M_Nm" "q_rad"', *text]))
    assert "time" not in first_draft(tmp_path / "f.txt").columns


DOUBTS = {
    "t [s],i_v [A],i_w [A],q [rad]": ("current", "One of i_v [A], i_w [A] gives the torque"),
    "t [s],M [N.m],goal_position,current_position": ("position", "of current_position is not"),
    "t [s],ia [A],ib [A],q [rad]": ("current", "One of ia [A], ib [A] gives the torque"),
    "t [s],M [ft-lb],x,q [rad]": ("force", "has '[ft-lb]' in its name, which is not a known unit"),
    "t [10ms],M [N.m],x,q [rad]": ("time", "has '[10ms]' in its name, which is not a known unit"),
    "t [s],Torque %,x,q [rad]": ("current", "of a rated torque that the file does not state"),
    "t [s],u,w [rad/s],q [rad]": ("force", "u can be a force, a torque or a voltage."),
    "Zeit,Moment,v,Winkel\ns,ft-lb,,rad": ("force", "has '[ft-lb]' in its name, which is not a"),
}


@pytest.mark.parametrize("header", DOUBTS)
def test_a_doubtful_column_or_unit_is_not_a_clear_guess(
    header: str, tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    columns = (motor[name] for name in "tivq")
    chosen = first_draft(Path(write(tmp_path / "f.csv", header, *columns))).columns
    role, words = DOUBTS[header]
    assert words in chosen[role].doubt
    assert not chosen[role].sure


def test_numbers_that_fit_no_unit_are_doubtful(
    tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    file = write(
        tmp_path / "f.csv", "t [s],F [N],x", motor["t"], motor["i"], 2e4 * motor["q"] + 0.1
    )
    assert len(first_draft(Path(file)).columns["position"].others) == 3
    t = motor["t"].copy()
    t[7] = np.nan
    file = write(tmp_path / "f.csv", "t [s],M [N.m],angle", t, motor["i"], motor["q"])
    assert first_draft(Path(file)).columns["position"].others == ("deg",)


def test_counts_in_a_turn_that_no_encoder_has_are_doubtful(
    tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    counts = np.round(motor["q"] / (2 * np.pi) * 24576)
    columns = motor["t"], motor["i"], counts, motor["v"] * 30 / np.pi
    file = write(tmp_path / "f.csv", "t [s],i [A],enc_cnt,speed [rpm]", *columns)
    done = frictax("init", file, "--torque-constant", "0.061", "--yes")
    assert done.exit_code == 1
    assert "By speed [rpm], a turn has about 245" in done.stderr
    named = drafted(file, "position=enc_cnt[counts/24576]").columns["position"]
    assert (named.per_turn, named.sure) == (24576, True)


def test_a_column_keeps_the_clock_before_it_and_a_clock_its_unit(
    tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    t, q, v, i = (1e3 * motor["t"], *(motor[name] for name in "qvi"))
    file = write(tmp_path / "f.csv", "t1,q [rad],t2,M [N.m],t3,w [rad/s]", t, q, t, i, 2 * t, v)
    draft = drafted(file, "velocity=w [rad/s]", "time=t1[ms]")
    assert {role: c.clock for role, c in draft.columns.items()} == {
        "time": None,
        "force": 3,
        "velocity": 5,
    }
    draft = drafted(file, "position=q [rad]", machine="rotor")
    done = frictax("init", file, "--machine", "rotor")
    assert done.exit_code == 0, done.output
    text = (tmp_path / "f" / "problem.toml").read_text()
    assert 'time = { column = "t2", unit = "ms" }' in text
    # A second time of all columns is not a clock of some columns.
    file = write(tmp_path / "f.csv", "time [s],q [rad],M [N.m],t_rel [ms]", t / 1e3, q, i, t)
    draft = drafted(file, "time=t_rel [ms]")
    assert {c.clock for c in draft.columns.values()} == {None}


def test_one_name_of_two_columns_is_refused(tmp_path: Path, motor: dict[str, np.ndarray]) -> None:
    columns = (motor[name] for name in "tviq")
    file = write(tmp_path / "f.csv", "t [s],Pos [rad],M [N.m],Pos [rad]", *columns)
    with pytest.raises(
        ValueError, match=r"There are 2 columns 'Pos \[rad\]' for the .* of one, 2 or 4"
    ):
        drafted(file, "position=Pos [rad]")
    assert drafted(file, "position=4").columns["position"].number == 4
    file = write(tmp_path / "f.csv", "", motor["t"], motor["i"], motor["q"])
    with pytest.raises(ValueError, match=r"There is no column '' for the position"):
        drafted(file, "position=[rad]")


def test_the_torque_of_the_load_of_a_gear_is_divided_by_its_ratio(
    tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    columns = motor["t"], 6.1 * motor["i"], motor["q"]
    file = write(tmp_path / "m.csv", "t [s],joint_torque [N.m],motor_pos [rad]", *columns)
    done = frictax("init", file, "--machine", "gear", "--ratio", "100", "--inertia", "1e-5")
    assert done.exit_code == 0, done.output
    assert "(of the load)" in done.stdout
    drive = read(tmp_path / "m").fitted_records["m"].inputs["drive"]
    np.testing.assert_allclose(drive, 0.061 * motor["i"], atol=1e-6)


def test_a_reference_has_the_unit_of_the_position(
    tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    t, q = motor["t"], 0.3 * motor["q"]
    late = np.interp(t - 0.05, t, q)
    for unit, more, expected in (
        ("deg", "", ("deg", None, True)),
        ("counts", "[counts/4096]", ("counts", 4096.0, True)),
    ):
        file = write(tmp_path / "f.csv", f"t [s],q_ref,q [{unit}]", t, q, late)
        reference = drafted(file, f"position=q [{unit}]{more}").columns["reference"]
        assert (reference.unit, reference.per_turn, reference.sure) == expected
    file = write(tmp_path / "f.csv", "t [s],soll [V],q [rad]", t, 0.02 * q, q)
    reference = drafted(file, "reference=soll [V]", machine="servo").columns["reference"]
    assert "soll [V] is in V, which is not a unit of a reference" in reference.doubt


def test_a_last_bracket_of_an_answer_counts(
    tmp_path: Path, motor: dict[str, np.ndarray], somebody: list[str]
) -> None:
    file = write(tmp_path / "f.csv", "M [N.m],q [rad]", motor["i"], motor["q"])
    done = frictax("init", file, says="rate=200, position=q [rad][deg]\n")
    assert done.exit_code == 0, done.output
    assert 'column = "q [rad]", unit = "deg" }' in (tmp_path / "f" / "problem.toml").read_text()


def test_times_in_any_order_are_not_a_clock(tmp_path: Path, motor: dict[str, np.ndarray]) -> None:
    order = np.random.default_rng(0).permutation(motor["t"].size)
    columns = (motor[name][order] for name in "tiq")
    done = frictax("init", write(tmp_path / "f.csv", "t [s],M [N.m],q [rad]", *columns))
    assert done.exit_code == 2
    assert "so it is not a clock. Sort the rows, or give --time COLUMN or" in done.stderr


def test_a_speed_that_contradicts_the_position_is_mentioned(
    tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    columns = motor["t"], 0.061 * motor["i"], motor["q"], motor["v"]
    draft = drafted(write(tmp_path / "f.csv", "t [s],M [N.m],q [deg],w [rad/s]", *columns))
    assert "q [deg] changes by 0.01745 times the integral of w [rad/s]." in draft.notes[0]
    draft = drafted(write(tmp_path / "f.csv", "t [s],M [N.m],q [rad],w [rad/s]", *columns))
    assert draft.notes == []
