"""`frictax init FILE.csv`: what it asks, writes and refuses."""

from pathlib import Path

import numpy as np
import pytest

from commands import frictax
from frictax.problems import check, read
from frictax.problems.starting import MACHINES, first_draft
from frictax.problems.starting.roles import side_of

SHAPES = Path(__file__).parents[1] / "measurements" / "shapes"
T = 5e-3 * np.arange(41)
OMEGA = 2 * np.pi * 2.5


CURRENT = ("--torque-constant", "0.05")
FLAGS: dict[str, tuple[str, ...]] = {
    "comma": (),
    "decimal_comma": (),
    "tabs": (),
    "preamble": (),
    "no_header": (
        *("--machine", "rotor", "--time", "1[s]"),
        *("--force", "2[N.m]", "--position", "3[rad]"),
    ),
    "counts": ("--position", "encoder[counts/4096]", "--current", "current[A]", *CURRENT),
    "rpm": ("--time", "t[s]", *CURRENT),
    "rate": ("--rate", "200"),
    "two_clocks": ("--machine", "rotor", "--force", "torque[N.m]", "--position", "angle[rad]"),
    "gaps": ("--yes",),
    "units_line": (),
    "windows": CURRENT,  # in mA, and its constant per ampere
    "unicode_text": (),
    "dated": (),
}


@pytest.mark.parametrize("name", FLAGS)
def test_a_file_of_this_shape_becomes_a_problem_without_a_question(name: str, shapes: Path) -> None:
    done = frictax("init", str(shapes / f"{name}.csv"), *FLAGS[name])
    assert done.exit_code == 0, done.output
    problem = read(shapes / name)
    check(problem)
    assert isinstance(problem.data, dict)
    record = problem.data[name]
    torque = 0.3 * np.cos(OMEGA * record.t + 0.4)
    np.testing.assert_allclose(record.inputs["drive"], torque, atol=3e-4)
    if name == "rpm":
        speed = 2.0 * OMEGA * np.cos(OMEGA * record.t) + 3.0
        np.testing.assert_allclose(record.outputs["rotor.w"], speed, atol=1e-3)
    else:
        angle = 2.0 * np.sin(OMEGA * record.t) + 3.0 * record.t
        digit = 2 * np.pi / 4096 if name == "counts" else 1e-5
        np.testing.assert_allclose(record.outputs["rotor.phi"], angle, atol=digit)
    assert f"frictax identify {shapes / name} --check" in done.stdout


def test_every_file_of_many_shapes_is_begun() -> None:
    assert {path.stem for path in SHAPES.glob("*.csv")} == set(FLAGS)


ANSWERS = {
    "comma": ("", 0),
    "counts": ("position=encoder[counts/4096]\n\n0.05\n", 3),
    "no_header": ("rotor\nforce=2[N.m] position=3[rad] time=1[s]\n", 2),
    "rate": ("rate=200Hz\n", 1),
    "two_clocks": ("\n", 1),
    "gaps": ("\n", 1),
    "rpm": ("0.05\n", 1),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_terminal_is_asked_five_questions_at_most(
    name: str, shapes: Path, somebody: list[str]
) -> None:
    says, questions = ANSWERS[name]
    done = frictax("init", str(shapes / f"{name}.csv"), says=says)
    assert done.exit_code == 0, done.output
    assert len(somebody) == questions <= 5
    check(read(shapes / name))


def test_a_wrong_answer_is_told_and_asked_again(shapes: Path, somebody: list[str]) -> None:
    says = "robot rotor position=9[rad] angle mass=angle position=3[N] rate=hertz".split()
    says = "\n".join([*says, "position=3 force=2", "", ""])
    done = frictax("init", str(shapes / "no_header.csv"), says=says)
    assert done.exit_code == 0, done.output
    for words in (
        "There is no column '9' for the position. The columns are: 1, 2, 3.",
        "Write ROLE=COLUMN[UNIT]",
        "'mass' is not a role.",
        "The position must be in one of m, mm,",
        "The rate must be a number > 0 [Hz], such as rate=1000.",
    ):
        assert words in done.stdout
    assert somebody[:2] == [
        "Which machine?",
        f"One of {', '.join(MACHINES)}",
    ]


def test_times_without_a_number_are_no_traceback(tmp_path: Path) -> None:
    rows = [f",{1_000_000 * i},{i % 7 - 3},{0.1 * i}" for i in range(200)]
    (tmp_path / "a.csv").write_text("\n".join(["sec,nanosec,torque,angle", *rows]) + "\n")
    done = frictax("init", str(tmp_path / "a.csv"), "--machine", "rotor", "--yes")
    assert done.exit_code == 1
    assert "The unit of angle is not stated" in done.output


def test_nothing_is_asked_where_nobody_can_answer_and_the_flag_is_named(shapes: Path) -> None:
    for name, sentence in (
        ("no_header", "no_header.csv does not state its machine, which looks like a rotor. Give"),
        ("gaps", "The unit of torque in gaps.csv is not stated. Give --force 'torque[N.m]', or"),
        ("rate", "No time column was recognised in rate.csv. Give --rate HZ, or --time COLUMN."),
        ("rpm", "No record contains this number: Torque (or force) per A of iq_A [N.m/A]. Give"),
    ):
        done = frictax("init", str(shapes / f"{name}.csv"))
        assert done.exit_code == 2
        assert done.stderr.startswith(f"frictax: {sentence}"), done.stderr
        assert not (shapes / name).exists()


def test_a_guess_is_no_answer_where_there_is_none(shapes: Path) -> None:
    for name, sentence in (
        ("rpm", "Torque (or force) per A of iq_A [N.m/A]. Give --torque-constant NUMBER."),
        ("counts", "The file does not state how many counts of encoder make a turn. Give --pos"),
    ):
        done = frictax("init", str(shapes / f"{name}.csv"), "--yes")
        assert done.exit_code == 2
        assert sentence in done.stderr


WRONG: dict[str, tuple[tuple[str, ...], int, str]] = {
    "no file": (("nowhere.csv",), 1, "There is no file nowhere.csv."),
    "nothing": ((), 2, "Name the file of a record, FILE.csv, or a bundled problem"),
    "both": (("comma.csv", "--example", "motor"), 2, "Name the file of a record"),
    "machine": (
        ("comma.csv", "--machine", "rotr"),
        2,
        "--machine must be one of rotor, axis, gear, pendulum, arm, spindown, coastdown, servo,"
        " brake, sweep, got 'rotr'. Did you mean 'rotor'?",
    ),
    "column": (("comma.csv", "--position", "angel[rad]"), 1, "There is no column 'angel' for the"),
    "unit": (("comma.csv", "--position", "angle [rad][N]"), 1, "The position must be in one of"),
    "two times": (("comma.csv", "--rate", "5", "--time", "t [s]"), 2, "--rate and --time both say"),
    "counts": (("counts.csv", "--position", "encoder[counts/x]"), 1, "Counts in a turn must be a"),
    "no drive": (
        ("comma.csv", "--machine", "servo"),
        2,
        "A servo needs a column of its reference, and none was recognised. Give --reference",
    ),
    "words": (("words.csv",), 1, "words.csv holds no lines of numbers"),
    "mat": (("run.mat",), 1, "run.mat is not a text file, and init reads text only."),
    "workbook": (("run.xlsx",), 1, "run.xlsx is a workbook, not text"),
    "this folder": ((".",), 1, ". is a folder, not a file: name the file. It holds comma.csv"),
    "a velocity": (
        ("comma.csv", "--position", "angle [rad][rpm]"),
        1,
        "got 'rpm'. A velocity is named by --velocity.",
    ),
    "one column twice": (
        ("comma.csv", "--force", "torque [N.m]", "--position", "torque [N.m]"),
        1,
        "torque [N.m] is named both as --position and as --force. Leave out one of them.",
    ),
    "a factor of a sweep": (
        ("sweep.csv", "--machine", "sweep", "--velocity", "v[2 rpm]", "--force", "F[mN.m]"),
        2,
        "A sweep does not have factors, got 'v[2 rpm]'. Scale the column in the file",
    ),
    "few rows": (("few.csv",), 1, "few.csv has 2 rows of numbers, and a record needs at least 4."),
    "a tiny rate": (("rate.csv", "--rate", "1e-300"), 1, "A number is too large or too small to"),
    "no current": (
        ("still.csv", "--torque-constant", "1"),
        2,
        "i [A] of still.csv is 0 in every row, so it identifies nothing of a rotor. Name another",
    ),
    "no numbers": (
        ("empty_column.csv", "--torque-constant", "1"),
        2,
        "i [A] of empty_column.csv has no numbers, so it identifies nothing of a rotor.",
    ),
    "a clock that jumps": (
        ("jumps.csv", "--torque-constant", "1"),
        2,
        "t [s] of jumps.csv repeats the time of the row before once. Give --rate 1.08, its",
    ),
}


def made(folder: Path) -> None:
    """Files of which no problem comes."""
    (folder / "words.csv").write_text("nothing here\n")
    (folder / "run.xlsx").write_bytes(b"PK\x03\x04" + bytes(100))
    (folder / "few.csv").write_text("t [s],i [A],q [rad]\n0,1,2\n1,2,4\n")
    sweep = "\n".join(["v,F", *(f"{k},{5 + 0.1 * k}" for k in range(1, 20))])
    (folder / "sweep.csv").write_text(sweep)
    rows = {
        "still": [(k, 0, k**2) for k in range(20)],
        "empty_column": [(k, "", k**2) for k in range(20)],
        "jumps": [(k - (k > 8), k % 3, k**2) for k in range(20)],
    }
    for name, cells in rows.items():
        text = "\n".join(["t [s],i [A],q [rad]", *(",".join(map(str, row)) for row in cells)])
        (folder / f"{name}.csv").write_text(text)


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_is_said_in_one_sentence_and_nothing_is_written(
    what: str, shapes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shapes)
    made(shapes)
    before = sorted(shapes.rglob("*"))
    arguments, code, sentence = WRONG[what]
    done = frictax("init", *arguments)
    assert done.exit_code == code, done.output
    assert done.stderr.startswith("frictax: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.output
    assert sorted(shapes.rglob("*")) == before


def test_a_column_that_never_changes_is_told_before_anything_is_written(tmp_path: Path) -> None:
    rows = [f"{t:.3f},{t % 0.1:.3f},1" for t in T]
    (tmp_path / "f.csv").write_text("\n".join(["t [s],torque [N.m],angle [rad]", *rows]))
    done = frictax("init", str(tmp_path / "f.csv"))
    assert done.exit_code in (1, 2)
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "f").exists()


def test_an_arm_that_swings_freely_needs_no_drive(tmp_path: Path) -> None:
    rows = [f"{t:.4f},0,{60 * np.exp(-t) * np.cos(9 * t):.4f}" for t in np.arange(0, 2, 0.01)]
    (tmp_path / "f.csv").write_text("\n".join(["t [s],i [A],angle [deg]", *rows]))
    done = frictax("init", str(tmp_path / "f.csv"))
    assert done.exit_code == 2
    assert "for an arm that swings freely give --machine pendulum," in done.stderr
    done = frictax("init", str(tmp_path / "f.csv"), "--machine", "pendulum", "--mgl", "0.3")
    assert done.exit_code == 0, done.output
    assert "inputs" not in (tmp_path / "f" / "problem.toml").read_text(encoding="utf-8")


def test_numbers_are_written_with_all_the_figures_that_were_given(shapes: Path) -> None:
    told = ("--position", "encoder[counts/16777216]", "--current", "current[A]")
    told += ("--torque-constant", "0.123456789", "--rate", "48828.125")
    done = frictax("init", str(shapes / "counts.csv"), *told)
    assert done.exit_code == 0, done.output
    text = (shapes / "counts" / "problem.toml").read_text(encoding="utf-8")
    for number in ("rate = 48828.125 ", "gain = 0.123456789,", "per_turn = 16777216 "):
        assert number in text


def test_start_values_are_the_same_whatever_the_unit_of_the_current(shapes: Path) -> None:
    machines = []
    for name in ("unicode_text", "windows"):  # the same torque, in mN.m and by a current in mA
        assert frictax("init", str(shapes / f"{name}.csv"), *FLAGS[name]).exit_code == 0
        machines.append(read(shapes / name).machine)
    first, second = (float(machine["rotor"].J) for machine in machines)
    assert first == pytest.approx(second, rel=0.05)


@pytest.mark.parametrize(
    ("motions", "more", "column", "side"),
    [
        (("load_pos [rad]", "motor_pos [rad]"), (), "motor_pos [rad]", "motor"),
        (("motor angle [rad]", "joint angle [deg]"), (), "motor angle [rad]", "motor"),
        (("joint_pos [deg]",), (), "joint_pos [deg]", "load"),
        (("load [rad]", "pos [rad]"), ("--position", "load [rad]"), "load [rad]", "load"),
        (("Winkel Last [rad]",), (), "Winkel Last [rad]", "load"),
        (("arm_enc [counts]",), ("--position", "arm_enc [counts][counts/4096]"), "arm_enc", "load"),
        (("position [rad]",), (), "position [rad]", "motor"),
    ],
)
def test_the_motion_of_the_load_of_a_gear_is_scaled_to_that_of_the_motor(
    motions: tuple[str, ...], more: tuple[str, ...], column: str, side: str, tmp_path: Path
) -> None:
    t = np.linspace(0.0, 2.0, 401)
    turns = np.where([side_of(name) == 1 for name in motions], 0.1, 1.0)
    units = {"deg": 180 / np.pi, "rad": 1.0, "counts": 2048 / np.pi}
    each = [units[name.partition("[")[2].rstrip("]")] for name in motions]
    phi = 20 * np.sin(5 * t)[:, None] * turns * each
    cells = np.column_stack([t, 0.02 * np.sign(np.cos(5 * t)) - 0.1 * np.sin(5 * t), phi])
    head = ",".join(("t [s]", "torque [Nm]", *motions))
    np.savetxt(tmp_path / "m.csv", cells, delimiter=",", header=head, comments="")
    gear = ("--machine", "gear", "--ratio", "10", "--inertia", "1e-5")
    done = frictax("init", str(tmp_path / "m.csv"), *gear, *more)
    assert done.exit_code == 0, done.output
    assert f"(of the {side})" in done.stdout
    text = (tmp_path / "m" / "problem.toml").read_text(encoding="utf-8")
    assert f'outputs."rotor.phi" = {{ column = "{column}' in text
    seen = read(tmp_path / "m").fitted_records["m"].outputs["rotor.phi"]
    np.testing.assert_allclose(np.ptp(seen), 40.0, rtol=1e-3)


def test_a_problem_that_is_there_stays_unless_told(shapes: Path) -> None:
    assert frictax("init", str(shapes / "comma.csv")).exit_code == 0
    (shapes / "comma" / "problem.toml").write_text("mine")
    done = frictax("init", str(shapes / "comma.csv"))
    assert done.exit_code == 1
    assert "comma/problem.toml exists. Give --overwrite to replace it, or another" in done.stderr
    assert (shapes / "comma" / "problem.toml").read_text() == "mine"
    assert frictax("init", str(shapes / "comma.csv"), "-f").exit_code == 0
    check(read(shapes / "comma"))
    assert [p.name for p in (shapes / "comma").iterdir()] == ["problem.toml"]


def test_a_problem_finds_its_record_from_any_folder(shapes: Path, tmp_path: Path) -> None:
    out = tmp_path / "a b" / "c"
    assert frictax("init", str(shapes / "comma.csv"), "--out", str(out)).exit_code == 0
    assert 'file = "../../shapes/comma.csv"' in (out / "problem.toml").read_text(encoding="utf-8")
    check(read(out))


def test_what_a_linear_machine_is_guessed_from_is_a_unit_or_the_users_word(tmp_path: Path) -> None:
    rows = [f"{t:.3f},{np.sin(9 * t):.4f},{40 * np.sin(9 * t + 1):.4f}" for t in T]
    (tmp_path / "f.csv").write_text("\n".join(["t,F,pos [mm]", *rows]))
    draft = first_draft(tmp_path / "f.csv")
    assert (draft.machine, draft.sure) == ("axis", True)
    assert {r: c.unit for r, c in draft.columns.items()} == {
        "time": "s",
        "force": "N",
        "position": "mm",
    }
    (tmp_path / "g.csv").write_text("\n".join(["t,F,q", *rows]))
    assert first_draft(tmp_path / "g.csv").machine == "rotor"
    named = ("--position", "q[mm]", "--machine", "axis", "--yes")
    done = frictax("init", str(tmp_path / "g.csv"), *named)
    assert done.exit_code == 0, done.output
    problem = read(tmp_path / "g")
    assert isinstance(problem.data, dict)
    assert problem.data["g"].units["mass.s"].name == "mm"


NAMES = {
    "time_ms,motorCurrent,encoder_deg": {"time": "ms", "current": "A", "position": "deg"},
    "Zeit [s],Drehzahl [rpm],Drehmoment [Nm]": {"time": "s", "velocity": "rpm", "force": "N.m"},
    "t,q_ref,q": {"time": "s", "reference": "rad", "position": "rad"},
    "temps (s),couple (N.m),vitesse (rad/s)": {"time": "s", "force": "N.m", "velocity": "rad/s"},
    "t_ms,load_N_m,omega_rad_s": {"time": "ms", "force": "N.m", "velocity": "rad/s"},
    "t (s),torque (N.m),n (min^-1)": {"time": "s", "force": "N.m", "velocity": "rpm"},
    "sample,torque,theta": {"force": "N.m", "position": "rad"},
}


@pytest.mark.parametrize("header", NAMES)
def test_roles_and_units_are_read_from_names(header: str, tmp_path: Path) -> None:
    scale = 1e3 if "ms" in header else 1.0
    first = np.arange(41) if header.startswith("sample") else scale * T
    rows = zip(first, np.sin(9 * T), np.sin(9 * T + 1), strict=True)
    text = "\n".join([header, *(",".join(f"{x:.6g}" for x in row) for row in rows)])
    (tmp_path / "f.csv").write_text(text, encoding="utf-8")
    columns = first_draft(tmp_path / "f.csv").columns
    assert {role: column.unit for role, column in columns.items()} == NAMES[header]


def test_a_problem_says_its_start_values_and_what_is_known(shapes: Path) -> None:
    frictax("init", str(shapes / "rpm.csv"), *FLAGS["rpm"])
    text = (shapes / "rpm" / "problem.toml").read_text(encoding="utf-8")
    assert 'inputs.drive = { column = "iq_A", unit = "A", gain = 0.05, to = "N.m" }' in text
    assert "peak = 1.0 # breakaway over sliding friction" in text
