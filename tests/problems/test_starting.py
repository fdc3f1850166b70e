"""`frictax init FILE.csv`: what it guesses, asks, writes, refuses."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from frictax.cli import app, init_command
from frictax.problems import check, read
from frictax.problems.starting import MACHINES, Draft, Options, draft_of, first_draft
from frictax.problems.starting.machines import sizes
from frictax.problems.starting.roles import side_of

SHAPES = Path(__file__).parents[1] / "measurements" / "shapes"
T = 5e-3 * np.arange(41)
OMEGA = 2 * np.pi * 2.5


def frictax(*arguments: str, says: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), prog_name="frictax", input=says)


@pytest.fixture
def shapes(tmp_path: Path) -> Path:
    """The files of many shapes, all of one motion, in a folder to work in."""
    shutil.copytree(SHAPES, tmp_path / "shapes")
    return tmp_path / "shapes"


@pytest.fixture
def somebody(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Somebody sits at the terminal; returns the questions that were asked."""
    monkeypatch.setattr(init_command, "_can_ask", lambda: True)
    asked, prompt = list[str](), init_command.typer.prompt

    def told(text: str, **options):
        asked.append(text)
        return prompt(text, **options)

    monkeypatch.setattr(init_command.typer, "prompt", told)
    return asked


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


def moved(
    duration: float, rate: float, inertia: float, friction, load, q: float = 0.0, v: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, positions and speeds of one body: inertia*dv/dt = load(t, q) - friction(|v|)*sign(v),
    by small steps that end where it stops.
    """
    step, each = 1.0 / rate / 10, list[tuple[float, float]]()
    for k in range(int(duration * rate) * 10 + 1):
        if k % 10 == 0:
            each.append((q, v))
        pushed = load(k * step, q)
        if v != 0 or abs(pushed) > friction(0.0):
            way = np.sign(v) if v != 0 else np.sign(pushed)
            after = v + step / inertia * (pushed - way * friction(abs(v)))
            after = 0.0 if v != 0 and after * v < 0 else after
            q, v = q + 0.5 * step * (v + after), after
    x = np.array(each)
    return np.arange(len(x)) / rate, x[:, 0], x[:, 1]


def current(t: Any) -> Any:
    return 0.42 * np.sin(5.7 * t) + 0.25 * np.sin(14.5 * t + 1.0)


@pytest.fixture(scope="module")
def motor() -> dict[str, np.ndarray]:
    """The run of a motor: t [s], q [rad], v [rad/s], i [A]; 0.061 N.m/A."""
    t, q, v = moved(
        6.0, 200.0, 6.5e-5, lambda v: 8e-3 + 2.2e-5 * v, lambda t, q: 0.061 * current(t)
    )
    noise = np.random.default_rng(0).standard_normal((2, t.size))
    return {"t": t, "q": q + 1e-4 * noise[0], "v": v + 1e-2 * noise[1], "i": current(t)}


def write(path: Path, header: str, *columns: np.ndarray) -> str:
    rows = (",".join(f"{x:.6g}" for x in row) for row in zip(*columns, strict=True))
    path.write_text("\n".join([header, *rows] if header else rows), encoding="utf-8")
    return str(path)


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


def drafted(file: str, *columns: str, **more: Any) -> Draft:
    """The draft of a file, with columns that the user names as "role=column[unit]"."""
    named = dict(text.split("=", 1) for text in columns)
    return draft_of(Path(file), Options(columns=named, **more))


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
