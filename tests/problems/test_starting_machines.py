"""`frictax init FILE.csv`: the machine, units and options that it recognises in a record."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import frictax
from frictax.problems import check, read
from frictax.problems.starting import first_draft
from frictax.problems.starting.machines import sizes
from motor_records import drafted, moved, write

UNUSED = {
    "a torque is no current": (
        ("t [s],M [N.m],q [rad]", "--torque-constant", "0.05"),
        "--torque-constant is not used: M [N.m] is taken for a torque in N.m. Name the current as",
    ),
    "no gear": (
        ("t [s],M [N.m],q [rad]", "--machine", "rotor", "--ratio", "5"),
        "--ratio is not used: a rotor does not need it. Leave it out, or give --machine gear.",
    ),
    "no servo": (
        ("t [s],M [N.m],q [rad]", "--machine", "rotor", "--kp", "5"),
        "--kp is not used: a rotor does not need it. Leave it out, or give --machine servo.",
    ),
    "no wheel": (
        ("t [s],M [N.m],q [rad]", "--inertia", "5"),
        "--inertia is not used: a rotor does not need it. Leave it out, or give --machine gear or",
    ),
    "no free pendulum": (
        ("t [s],M [N.m],q [rad]", "--mgl", "5"),
        "--mgl is not used: only a pendulum that nothing drives needs it. Leave it out.",
    ),
    "two motions": (
        ("t [s],M [N.m],q [rad],w [rad/s]", "--velocity", "w [rad/s]", "--position", "q [rad]"),
        "--velocity is not used: a rotor is fitted with its position where both are named.",
    ),
    "two drives": (
        ("t [s],M [N.m],q [rad],i [A]", "--force", "M [N.m]", "--current", "i [A]"),
        "--force is not used: a rotor is fitted with its current where both are named.",
    ),
    "a reference": (
        ("t [s],M [N.m],q [rad],r [rad]", "--reference", "r [rad]"),
        "--reference is not used: a rotor has no such column.",
    ),
    "times of a sweep": (
        ("n [rpm],M [N.m]", "--machine", "sweep", "--rate", "5"),
        "--rate is not used: a sweep has no times. Leave it out.",
    ),
}


@pytest.mark.parametrize("what", UNUSED)
def test_an_option_that_is_named_and_not_used_ends_the_command(what: str, tmp_path: Path) -> None:
    (header, *options), sentence = UNUSED[what]
    t = np.linspace(0.0, 4.0, 201)
    columns = (t, np.sin(7 * t + 0.3), np.cos(5 * t), np.sin(9 * t))[-header.count(",") - 1 :]
    columns = columns if "t [s]" not in header else (t, *columns[1:])
    file = write(tmp_path / "f.csv", header, *columns)
    more = ("--torque-constant", "0.1") if "--current" in options else ()
    done = frictax("init", file, "--yes", *options, *more)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith(f"frictax: {sentence}"), done.stderr
    assert not (tmp_path / "f").exists()


def test_options_of_a_record_are_refused_beside_an_example(tmp_path: Path) -> None:
    done = frictax("init", "--example", "motor", "--out", str(tmp_path / "m"), "--rate", "5")
    assert done.exit_code == 2
    assert "--rate is not used: --example motor is copied without changes." in done.stderr
    assert not (tmp_path / "m").exists()


DOUBTFUL = {
    "": "Give also: --current '2[A]'; --position '3[rad]'",
    "CH1,CH2,CH3": "Give also: --current 'CH2[A]'; --position 'CH3[rad]'",
    "t [s],current [V],q [rad]": "Give --current 'current [V]'.",
    "t [s],torque [%],q [rad]": "of a rated torque that the file does not state. Give --current",
    "t [s],i [A],angle": "numbers fit rad and deg. Give --position 'angle[rad]' or 'angle[deg]'.",
    "t [s],i [A],angle [V]": (
        "is in V, which is not a unit of a position. Give --position 'angle [V]["
    ),
}


@pytest.mark.parametrize("header", DOUBTFUL)
def test_a_doubtful_guess_is_not_taken_with_yes(
    header: str, tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    file = write(tmp_path / "f.csv", header, motor["t"], motor["i"], motor["q"])
    done = frictax("init", file, "--yes", "--torque-constant", "0.061")
    assert done.exit_code == 1, done.output
    assert DOUBTFUL[header] in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "f").exists()


def test_one_sentence_names_all_options_that_are_needed(
    tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    file = write(tmp_path / "f.csv", "", motor["t"], motor["i"], motor["q"])
    done = frictax("init", file, "--torque-constant", "0.061")
    assert "Give also: --time '1[s]'; --current '2[A]'; --position '3[rad]'" in done.stderr
    named = ("--machine", "rotor", "--time", "1[s]", "--current", "2[A]", "--position", "3[rad]")
    done = frictax("init", file, "--torque-constant", "0.061", *named)
    assert done.exit_code == 0, done.output


def test_what_one_recorded_unit_is_scales_a_column(
    tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    volts = motor["i"] / 2, np.degrees(motor["q"]) / 72
    file = write(tmp_path / "f.csv", "t [s],CH2 [V],CH3 [V]", motor["t"], *volts)
    named = ("--current", "CH2 [V][2 A]", "--position", "CH3 [V][72 deg]")
    done = frictax("init", file, *named, "--torque-constant", "0.061", "--machine", "rotor")
    assert done.exit_code == 0, done.output
    problem = read(tmp_path / "f")
    assert isinstance(problem.data, dict)
    record = problem.data["f"]
    np.testing.assert_allclose(record.outputs["rotor.phi"], motor["q"], atol=2e-5 * 60)
    np.testing.assert_allclose(record.inputs["drive"], 0.061 * motor["i"], atol=1e-6)


def test_the_derivative_of_the_position_is_no_torque(
    tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    t, q, v, i = (motor[name] for name in "tqvi")
    write(tmp_path / "u.csv", "t [s],phi [rad],u", t, q, v)
    columns = first_draft(tmp_path / "u.csv").columns
    assert (columns["velocity"].name, "force" in columns) == ("u", False)
    write(tmp_path / "n.csv", "", t, q, v, np.gradient(v, t), 0.061 * i)
    columns = first_draft(tmp_path / "n.csv").columns
    numbers = {role: column.number for role, column in columns.items()}
    assert numbers == {"time": 1, "position": 2, "velocity": 3, "force": 5}


SCALED = {
    "Position,speed [rpm]": (1.0, 30 / np.pi, "rad", None),
    "Position,omega [rad/s]": (180 / np.pi, 1.0, "deg", None),
    "Position,n [rev/s]": (1 / (2 * np.pi), 1 / (2 * np.pi), "rev", None),
    "enc_cnt,speed [rpm]": (8192 / (2 * np.pi), 30 / np.pi, "counts", 8192.0),
    "counts,speed [rpm]": (10000 / (2 * np.pi), 30 / np.pi, "counts", 10000.0),
}


@pytest.mark.parametrize("header", SCALED)
def test_the_unit_of_a_position_follows_from_a_column_of_speed(
    header: str, tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    by, speeds, unit, per_turn = SCALED[header]
    q = np.round(by * motor["q"]) if per_turn else by * motor["q"]
    write(tmp_path / "f.csv", f"t,i,{header}", motor["t"], motor["i"], q, speeds * motor["v"])
    found = first_draft(tmp_path / "f.csv").columns["position"]
    assert (found.unit, found.per_turn) == (unit, per_turn)
    assert found.sure
    assert found.doubt == ""


def test_a_vehicle_that_coasts_is_recognised_and_drag_is_among_the_structures(
    tmp_path: Path,
) -> None:
    t, _, v = moved(90.0, 10.0, 1400.0, lambda v: 150 + 0.4 * v * v, lambda t, q: 0.0, v=30.0)
    for unit, size in {"km/h": 3.6, "mph": 1 / 0.44704, "kn": 3600 / 1852}.items():
        file = write(tmp_path / "car.csv", f"Time (s),Vehicle Speed ({unit})", t, size * v)
        done = frictax("init", file, "--yes")
        assert "No record contains this number: Mass of the moving body [kg]. Give --mass NUM" in (
            done.stderr
        )
        done = frictax("init", file, "--mass", "1400", "-f")
        assert done.exit_code == 0, done.output
        problem = read(tmp_path / "car")
        check(problem)
        assert isinstance(problem.data, dict)
        np.testing.assert_allclose(problem.data["car"].outputs["mass.v"], v, rtol=1e-4)
        assert list(problem.structures) == ["dry and drag"]


def test_a_rotor_that_runs_down_is_recognised_by_speed_or_angle(tmp_path: Path) -> None:
    t, q, v = moved(30.0, 50.0, 0.02, lambda v: 0.05 + 2e-5 * v, lambda t, q: 0.0, v=400.0)
    noise = np.random.default_rng(0).standard_normal(t.size)
    for header, x in (
        ("t [s],Drehzahl [1/min]", 30 / np.pi * v + noise),
        ("t [s],phi [rad]", q),
        ("t [s],current [A],omega [rad/s]", v),
    ):
        columns = (t, 0 * t, x) if header.count(",") == 2 else (t, x)
        file = write(tmp_path / "f.csv", header, *columns)
        done = frictax("init", file, "--inertia", "0.02", "-f")
        assert done.exit_code == 0, done.output
        assert "f.csv is read as spindown" in done.stdout
        check(read(tmp_path / "f"))
    file = write(tmp_path / "f.csv", "t [s],i [A],omega [rad/s]", t, np.where(t < 3, 1, 0), v)
    assert "i [A] changes, but nothing drives a rotor" in drafted(file, machine="spindown").notes[0]


def test_an_arm_that_turns_alone_in_gravity_is_recognised_wherever_its_zero_is(
    tmp_path: Path,
) -> None:
    def drive(t: Any, q: Any) -> Any:
        return 4.0 + 2.5 * np.sin(3.1 * t) + 1.2 * np.sin(8.2 * t + 1) - 3.0 * q

    t, q, v = moved(
        10.0, 200.0, 0.2, lambda v: 0.5 + 0.3 * v, lambda t, q: drive(t, q) - 4.0 * np.cos(q)
    )
    file = write(tmp_path / "arm.csv", "time,q,qd,tau", t, q, v, drive(t, q))
    done = frictax("init", file, "--yes")
    assert done.exit_code == 0, done.output
    assert "arm.csv is read as arm" in done.stdout
    text = (tmp_path / "arm" / "problem.toml").read_text(encoding="utf-8")
    offset = float(text.partition("phi_offset = ")[2].partition(" ")[0])
    weight = float(text.partition("mgl = ")[2].partition(" ")[0])
    assert offset == pytest.approx(np.pi / 2, abs=0.1)
    assert weight == pytest.approx(4.0, rel=0.1)
    check(read(tmp_path / "arm", allow_code=True))


def test_rows_of_speed_and_force_in_both_directions_are_a_sweep(tmp_path: Path) -> None:
    v = np.concatenate([np.linspace(5, 1500, 300), np.linspace(1500, -1500, 600)])
    force = np.sign(v) * (8 + 4e-3 * np.abs(v)) + 0.1 * np.random.default_rng(0).normal(size=v.size)
    file = write(tmp_path / "f.csv", "speed_rpm,torque_mNm", v, force)
    done = frictax("init", file)
    assert done.exit_code == 0, done.output
    assert 'f_neg = "compare"' in (tmp_path / "f" / "problem.toml").read_text(encoding="utf-8")
    file = write(tmp_path / "g.csv", "", v, force)
    done = frictax("init", file, "--yes")
    assert done.exit_code == 1
    assert "Only its numbers indicate that column 1 is the velocity." in done.stderr
    assert first_draft(tmp_path / "g.csv").machine == "sweep"


def test_machine_and_units_belong_together(tmp_path: Path, motor: dict[str, np.ndarray]) -> None:
    file = write(tmp_path / "f.csv", "t [s],i [A],s [mm]", motor["t"], motor["i"], motor["q"])
    done = frictax("init", file, "--machine", "rotor", "--torque-constant", "1")
    assert done.exit_code == 2
    assert "A rotor turns, and s [mm] is in mm, a unit of a translation. Give --machine axis" in (
        done.stderr
    )
    done = frictax("init", file, "--machine", "axis", "--force-constant", "1")
    assert done.exit_code == 0, done.output


def test_windows_follow_the_slowest_motion_whatever_the_noise_of_the_drive(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    t = np.arange(0, 4, 1 / 300)
    q = 3.0 * np.minimum(1, t / 3) * np.sin(2 * np.pi * 0.7 * t)
    torque = 3.1 * np.sin(q) + 2.0 * rng.standard_normal(t.size)
    write(
        tmp_path / "f.csv", "t [s],torque [N.m],q [rad]", t, torque, 2.9e-3 * np.round(q / 2.9e-3)
    )
    found = sizes(first_draft(tmp_path / "f.csv"))
    assert 0.2 / 0.7 <= found.window <= 0.4
    assert found.fast < 3.0


WRAPPED = {
    "enc": (lambda q: np.round(q / (2 * np.pi) * 4096) % 4096, "counts", 4096.0),
    "angle": (lambda q: np.degrees(q) % 360.0, "deg", None),
    "angle [deg]": (lambda q: (np.degrees(q) + 180.0) % 360.0 - 180.0, "deg", None),
    "q": (lambda q: (q + np.pi) % (2 * np.pi) - np.pi, "rad", None),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_an_encoder_that_wraps_is_recognised_and_read_without_its_jumps(
    name: str, tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    by, unit, per_turn = WRAPPED[name]
    file = write(tmp_path / "f.csv", f"t [s],i [A],{name}", motor["t"], motor["i"], by(motor["q"]))
    found = first_draft(tmp_path / "f.csv").columns["position"]
    assert (found.unit, found.per_turn, found.doubt) == (unit, per_turn, "")
    done = frictax("init", file, "--torque-constant", "0.061", "--yes")
    assert done.exit_code == 0, done.output
    assert "unwrap = true" in (tmp_path / "f" / "problem.toml").read_text(encoding="utf-8")
    problem = read(tmp_path / "f")
    assert isinstance(problem.data, dict)
    angle = np.asarray(problem.data["f"].outputs["rotor.phi"])
    np.testing.assert_allclose(angle - angle[0], motor["q"] - motor["q"][0], atol=4e-3)


def test_a_counter_of_16_bits_is_not_taken_for_a_turn(
    tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    counts = np.round(motor["q"] / (2 * np.pi) * 8192) % 65536
    file = write(tmp_path / "f.csv", "t [s],i [A],enc", motor["t"], motor["i"], counts)
    done = frictax("init", file, "--torque-constant", "0.061", "--yes")
    assert done.exit_code == 2
    assert "The file does not state how many counts of enc make a turn." in done.stderr


def test_a_clock_that_starts_again_is_said_with_the_option_that_chooses_a_part(
    tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    t, q, i = (np.tile(motor[name][:400], 2) for name in "tqi")
    drive = np.repeat([1.0, 2.0], 400)
    for header, more, flag in (
        ("t [s],i [A],q [rad]", (), ("--part", "1")),
        ("t [s],i [A],q [rad],drive", (drive,), ("--where", "drive=1")),
    ):
        file = write(tmp_path / "f.csv", header, t, i, q, *more)
        done = frictax("init", file, "--torque-constant", "0.061", "--yes")
        assert done.exit_code == 2
        assert "starts again in row 401 of the numbers, so the file has 2 parts" in done.stderr
        assert flag[0] in done.stderr
        done = frictax("init", file, "--torque-constant", "0.061", *flag, "-f")
        assert done.exit_code == 0, done.output
        problem = read(tmp_path / "f")
        assert isinstance(problem.data, dict)
        assert problem.data["f"].n == 400


def test_a_counter_of_microseconds_that_rolls_over_is_a_clock(
    tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    micros = (4294960000 + np.round(1e6 * motor["t"]).astype(np.int64)) % 2**32
    rows = zip(micros, motor["i"], motor["q"], strict=True)
    text = "\n".join(["micros,i [A],q [rad]", *(f"{a},{b:.5f},{c:.5f}" for a, b, c in rows)])
    (tmp_path / "f.csv").write_text(text)
    done = frictax("init", str(tmp_path / "f.csv"), "--torque-constant", "0.061")
    assert done.exit_code == 0, done.output
    problem = read(tmp_path / "f")
    assert isinstance(problem.data, dict)
    np.testing.assert_allclose(np.diff(problem.data["f"].t), 5e-3, atol=1e-6)


def test_a_drive_that_brakes_where_it_should_push_is_read_with_the_other_sign(
    tmp_path: Path, motor: dict[str, np.ndarray]
) -> None:
    for sign in (1, -1):
        columns = motor["t"], sign * motor["i"], motor["q"]
        file = write(tmp_path / "f.csv", "t [s],i [A],q [rad]", *columns)
        done = frictax("init", file, "--torque-constant", "0.061", "-f")
        text = (tmp_path / "f" / "problem.toml").read_text(encoding="utf-8")
        assert ("sign = -1" in text) is (sign == -1)
        assert ("read with sign = -1" in done.stdout) is (sign == -1)
        assert float(read(tmp_path / "f").machine["rotor"].J) == pytest.approx(6.5e-5, rel=0.3)


def test_a_rate_far_above_the_motion_is_decimated(tmp_path: Path) -> None:
    t = np.arange(100_000) * 2e-5
    q, torque = np.sin(9 * t) + np.sin(23 * t), np.cos(9 * t)
    write(tmp_path / "f.csv", "t [s],M [N.m],q [rad]", t, torque, q)
    found = sizes(first_draft(tmp_path / "f.csv"))
    assert found.decimate == 5
    assert found.rate / found.decimate >= 100 * found.fast
