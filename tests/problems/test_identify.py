"""From a problem to its results: right, whole or not at all, the same again, and safe to open."""

import fcntl
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import frictax as fx
from formats import check_fields, keys
from frictax.cli import app
from frictax.files.replacing import made_folder
from frictax.problems import (
    check,
    check_results,
    identify,
    lock_results,
    overview,
    read,
    result_files,
    result_texts,
    write_overview,
    write_results,
)
from frictax.problems.results import FILES, FORMAT, result_json
from half_written import leave_half_written
from problems.conftest import PROBLEM

Write = Callable[..., Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, run_csv: str) -> Any:
    folder = tmp_path_factory.mktemp("block")
    (folder / "run.csv").write_text(run_csv)
    evil = PROBLEM.replace('"A block"', '"A <script>alert(1)</script> & block"').replace(
        '"nobody, 2026"', '"</script><b>nobody"'
    )
    (folder / "problem.toml").write_text(evil)
    return identify(folder)


@pytest.fixture(scope="module")
def texts(made: Any) -> dict[str, Any]:
    return result_files(made, "frictax identify block")


def written(made: Any, texts: dict[str, Any], folder: Path) -> dict[str, Path]:
    targets = check_results(made.problem.file, folder)
    write_results(texts, targets)
    return targets


def test_finds_mass_and_friction_that_the_record_was_made_with(made: Any) -> None:
    values = made.found.values
    assert values["mass.m"] == pytest.approx(2.0, rel=0.02)
    assert values["friction.f_pos.F_Coulomb"] == pytest.approx(1.0, rel=0.02)


def test_results_say_what_was_found_with_units_sources_and_versions(
    made: Any, texts: dict[str, Any], tmp_path: Path
) -> None:
    targets = written(made, texts, tmp_path)
    result = json.loads(targets["result.json"].read_text())
    rows = {e["name"]: e for e in result["errors"]["estimates"]}
    assert rows["mass.m"]["unit"] == "kg"
    assert rows["mass.m"]["lower"] < rows["mass.m"]["value"] < rows["mass.m"]["upper"]
    assert set(result["problem"]["sources"]) == {"run.csv"}
    assert result["versions"]["jax"]
    assert result["seeds"] == {"starts": 0, "draws": 0}
    parameters = tomllib.loads(targets["parameters.toml"].read_text())
    assert parameters["mass.m"]["value"] == made.found.values["mass.m"]
    assert parameters["mass.m"]["interval"][0] == rows["mass.m"]["lower"]


def test_the_format_of_results_rises_with_their_keys(made: Any) -> None:
    content = keys(json.loads(result_json(made)))
    check_fields("result.json", "problems/results.py:FORMAT", FORMAT, content)


def test_a_result_of_a_newer_format_is_named_in_the_table(made: Any, tmp_path: Path) -> None:
    folder = tmp_path / "machine"
    folder.mkdir()
    whole = json.loads(result_json(made))
    (folder / "result.json").write_text(json.dumps(whole | {"format": FORMAT + 1}))
    leave_half_written(folder / "result.json", (folder / "result.json").read_bytes())
    with pytest.raises(ValueError, match=rf"format {FORMAT + 1}, and this frictax knows up to"):
        overview(tmp_path)


def test_the_fit_itself_lies_beside_the_report(
    made: Any, texts: dict[str, Any], tmp_path: Path
) -> None:
    again = fx.load_fit(written(made, texts, tmp_path)["result.fit"])
    assert str(again) == str(made.found)
    assert again.intervals == made.found.intervals


def test_the_same_problem_gives_the_same_bits(made: Any) -> None:
    again = identify(made.problem.file)
    assert result_json(again) == result_json(made)


def test_the_report_escapes_what_it_prints_and_asks_nothing_from_elsewhere(
    made: Any, texts: dict[str, Any], tmp_path: Path
) -> None:
    text = written(made, texts, tmp_path)["report.html"].read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "</script><b>nobody" not in text
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", text)
    assert "Content-Security-Policy" in text


def test_a_result_that_is_there_is_not_overwritten_unasked(
    made: Any, texts: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "parameters.toml").write_text("mine")
    with pytest.raises(FileExistsError, match=r"parameters.toml exists. Give --overwrite"):
        check_results(made.problem.file, tmp_path)
    targets = check_results(made.problem.file, tmp_path, overwrite=True)
    with pytest.raises(FileExistsError, match="was created in the meantime"):
        write_results(texts, targets)
    assert (tmp_path / "parameters.toml").read_text() == "mine"
    assert not (tmp_path / "result.json").exists()
    write_results(texts, targets, overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(FILES)


def test_a_full_disk_leaves_what_was_there(
    made: Any, texts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = written(made, texts, tmp_path)
    before = {name: path.read_bytes() for name, path in targets.items()}
    true = os.replace

    def full(source: Any, target: Any) -> None:
        if str(source).endswith(".part") and str(target).endswith("report.html"):
            raise OSError(28, "No space left on device")
        true(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(
        OSError, match=r"could not be written \(No space left on device\). Nothing was changed"
    ):
        write_results(texts, targets, overwrite=True)
    monkeypatch.undo()
    assert {name: path.read_bytes() for name, path in targets.items()} == before
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(FILES)


def test_a_file_that_outgrows_its_limit_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    script = (
        "import resource, sys\nfrom pathlib import Path\nfrom frictax.files.replacing import"
        " write_together\nimport signal; signal.signal(signal.SIGXFSZ,"
        " signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000,"
        f" 1000))\nwrite_together({{Path({str(tmp_path / 'a.txt')!r}): 'x',"
        f" Path({str(tmp_path / 'b.txt')!r}): 'y' * 5000}}, replace=False)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "b.txt could not be written" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_on_the_same_folder_is_told_to_wait(tmp_path: Path) -> None:
    hold = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(hold, fcntl.LOCK_EX)
    try:
        with (
            pytest.raises(BlockingIOError, match="Another run is working on"),
            lock_results(tmp_path),
        ):
            pass
    finally:
        os.close(hold)
    with lock_results(tmp_path):
        pass


def test_results_do_not_follow_a_link_out_of_their_folder(made: Any, tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "report.html").symlink_to(outside / "report.html")
    with pytest.raises(FileExistsError, match="is a link, and nothing is written through links"):
        check_results(made.problem.file, inside, overwrite=True)


@pytest.mark.slow
def test_a_folder_for_results_is_made_and_goes_again_where_nothing_came_of_it(
    problem: Write, tmp_path: Path
) -> None:
    away = tmp_path / "new" / "deep"
    done = frictax("identify", str(tmp_path / "missing"), "--out", str(away))
    assert done.exit_code == 1
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("mine")
    done = frictax("identify", str(problem()), "--out", str(tmp_path / "file"))
    assert "is a file. Name another folder with --out." in done.stderr
    with made_folder(away):
        (away / "kept").write_text("work")
    with pytest.raises(ZeroDivisionError), made_folder(away):
        _ = 1 / 0
    assert (away / "kept").exists()


def test_code_beside_a_problem_runs_only_when_asked(problem: Write, tmp_path: Path) -> None:
    machine = PROBLEM[PROBLEM.index("[machine.mass]") : PROBLEM.index("[fit]")]
    folder = problem((machine, '[machine]\npython = "own:block"\narguments = { m = 1.5 }\n\n'))
    touched = tmp_path / "touched"
    (folder / "own.py").write_text(
        f"open({str(touched)!r}, 'w').close()\nimport frictax as fx\n\n\ndef block(m):\n    return"
        " fx.Mechanism(mass=fx.Mass(m=m), friction=fx.SupportFriction('mass',"
        " f_pos=fx.Coulomb(F_Coulomb=0.8)), drive=fx.Force('mass', 0.0))\n"
    )
    with pytest.raises(ValueError, match="runs only with permission"):
        read(folder)
    assert not touched.exists()
    found = read(folder, allow_code=True)
    assert float(found.machine["mass"].m) == 1.5
    assert set(found.sources) == {"own.py", "run.csv"}


@pytest.mark.parametrize(
    "name", ["/tmp/x:run", "..own:run", "os.path:join", "own:", "own:run:on", "own"]
)
def test_only_a_module_beside_the_problem_can_be_named(name: str, problem: Write) -> None:
    machine = PROBLEM[PROBLEM.index("[machine.mass]") : PROBLEM.index("[fit]")]
    folder = problem((machine, f'[machine]\npython = "{name}"\n\n'))
    with pytest.raises(ValueError, match=r"module:function"):
        read(folder, allow_code=True)


def frictax(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), prog_name="frictax")


@pytest.mark.slow
def test_the_command_checks_a_problem_and_says_what_is_wrong_without_a_traceback(
    problem: Write,
) -> None:
    folder = problem()
    done = frictax("identify", str(folder), "--check")
    assert done.exit_code == 0, done.stderr
    assert "free: mass.m, friction.f_pos.F_Coulomb" in done.stdout
    assert "Expected accuracy of run by InverseDynamics, at the start values" in done.stdout
    assert sorted(p.name for p in folder.iterdir()) == ["problem.toml", "run.csv"]
    command = [sys.executable, "-c", "from frictax.cli import main; main()", "identify"]
    wrong = [*command, str(problem(("m = 1.2", "m = -1.0")))]
    ended = subprocess.run(wrong, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith(
        "frictax: problem.toml: machine.mass is not valid: `Mass.m` must be > 0"
    )
    assert ended.stderr.count("\n") == 1
    done = frictax("identify", str(folder.parent))
    assert done.exit_code == 1
    assert "does not contain a problem.toml" in done.stderr


def test_an_interrupt_leaves_nothing(problem: Write) -> None:
    folder = problem()
    script = (
        "import frictax.problems as p\nfrom frictax.cli import main\nimport sys\n"
        "def stop(*a, **k): raise KeyboardInterrupt\n"
        "p.identify = stop\n"
        f"sys.argv = ['frictax', 'identify', {str(folder)!r}]\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert done.stderr == "frictax: Interrupted: nothing was written.\n"
    assert sorted(p.name for p in folder.iterdir()) == ["problem.toml", "run.csv"]


def test_the_table_of_machines_goes_between_its_marks(
    made: Any, texts: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "block").mkdir()
    written(made, texts, tmp_path / "block")
    assert "`mass.m`" in overview(tmp_path)
    (tmp_path / "README.md").write_text("above\n")
    with pytest.raises(ValueError, match="does not say where the table goes"):
        write_overview(tmp_path)
    marks = "<!-- results: made by `frictax table`, not by hand -->\nold\n<!-- end of results -->"
    (tmp_path / "README.md").write_text(f"above\n{marks}\nbelow\n")
    write_overview(tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("above\n")
    assert text.endswith("below\n")
    assert "old" not in text
    assert "| [block](block/README.md) |" in text
    (tmp_path / "block" / "result.json").write_text("{}")
    with pytest.raises(ValueError, match="no result of `frictax identify`"):
        overview(tmp_path)


def test_modules_of_one_problem_are_not_those_of_another_and_no_library_is_replaced(
    problem: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    machine = PROBLEM[PROBLEM.index("[machine.mass]") : PROBLEM.index("[fit]")]
    folder = problem((machine, '[machine]\npython = "json:block"\n\n'))
    code = (
        "from plant import MASS\nimport frictax as fx\n\n\ndef block():\n    return"
        " fx.Mechanism(mass=fx.Mass(m=MASS), friction=fx.SupportFriction('mass',"
        " f_pos=fx.Coulomb(F_Coulomb=0.8)), drive=fx.Force('mass', 0.0))\n"
    )
    other = tmp_path / "other"
    other.mkdir()
    for place, mass in ((folder, 1.5), (other, 2.5)):
        (place / "json.py").write_text(code)
        (place / "plant.py").write_text(f"MASS = {mass}\n")
        for name in ("problem.toml", "run.csv"):
            (place / name).write_text((folder / name).read_text())
    first, second = (read(place, allow_code=True) for place in (folder, other))
    assert (float(first.machine["mass"].m), float(second.machine["mass"].m)) == (1.5, 2.5)
    assert set(first.sources) == {"json.py", "plant.py", "run.csv"}
    assert [name for name in first.sources if name != "run.csv"] == ["json.py", "plant.py"]
    assert first.sources["plant.py"] != second.sources["plant.py"]
    assert json.loads("[1]") == [1]
    assert sys.modules["json"] is json
    written = (folder / "plant.py").stat().st_mtime
    (folder / "plant.py").write_text("MASS = 3.5\n")
    # Python's own bytecode of a module tells changes by whole seconds and size
    os.utime(folder / "plant.py", (written, written))
    assert not (folder / "__pycache__").exists()
    assert float(read(folder, allow_code=True).machine["mass"].m) == 3.5


@pytest.mark.parametrize("code", ["1 / 0", "raise SystemExit('no')", "import not_there", "def ("])
def test_whatever_the_users_code_does_is_one_sentence(code: str, problem: Write) -> None:
    machine = PROBLEM[PROBLEM.index("[machine.mass]") : PROBLEM.index("[fit]")]
    folder = problem((machine, '[machine]\npython = "own:block"\n\n'))
    (folder / "own.py").write_text(code + "\n")
    with pytest.raises(ValueError, match=r"problem.toml: machine.python failed with"):
        read(folder, allow_code=True)


@pytest.mark.slow
def test_a_fit_whose_residuals_cannot_be_studied_is_written_all_the_same(problem: Write) -> None:
    made = identify(
        problem(('time = "t"', 'time = "t"\ndecimate = 9'), ("cutoff = 20.0", "cutoff = 4.0"))
    )
    assert any("too few to study" in note for note in made.study.notes)
    assert "too few to study" in result_texts(made)["report.html"]


@pytest.mark.slow
def test_a_validation_record_is_predicted_from_a_start_of_its_own_where_asked(
    problem: Write,
) -> None:
    again = PROBLEM[PROBLEM.index("[records.run]") : PROBLEM.index("[machine")]
    folder = problem(
        ("[records.run]", again.replace("[records.run]", "[records.other]") + "[records.run]"),
        ("[fit]\n", '[fit]\nrecords = ["run"]\n'),
        ("[validation]\n", '[validation]\nrecords = ["other"]\nown_start = true\n'),
    )
    made = identify(folder)
    texts = result_texts(made, "frictax identify block")
    free, own = json.loads(texts["result.json"])["validation"]
    assert "sensitivities" in free
    assert [e["name"] for e in own["start"]] == ["mass.s@other", "mass.v@other"]
    assert own["rms"]["mass.s"] <= own["from_measured_start"]["mass.s"]
    assert "other: start of its own" in texts["report.html"]


@pytest.mark.slow
def test_what_is_tied_and_derived_is_in_tables_results_and_report(problem: Write) -> None:
    folder = problem(
        (
            "F_Coulomb = 0.8 }\n",
            "F_Coulomb = 0.8 }\nf_neg = { kind = 'Coulomb', F_Coulomb = 0.8 }\n",
        ),
        ("[uncertainty]\n", TIED_AND_DERIVED),
    )
    made = identify(folder)
    texts = result_texts(made)
    assert [e.name for e in made.derived] == ["deceleration", "grip"]
    deceleration, grip = made.derived
    assert deceleration.lower < 0.5 < deceleration.upper
    assert (deceleration.unit, grip.unit) == ("m/s2", "N")
    result = json.loads(texts["result.json"])
    assert result["derived"][0]["value"] == deceleration.value
    assert result["fit"]["tied"][0]["tied"] == "= friction.f_pos.F_Coulomb"
    values = tomllib.loads(texts["parameters.toml"])
    assert values["friction.f_neg.F_Coulomb"]["tied"] == "= friction.f_pos.F_Coulomb"
    same = [values[f"friction.{way}.F_Coulomb"]["value"] for way in ("f_pos", "f_neg")]
    assert same[0] == same[1]
    for words in ("friction.f_neg.F_Coulomb = friction.f_pos.F_Coulomb", "deceleration", "grip"):
        assert words in texts["report.html"]


TIED_AND_DERIVED = """
tied = { "friction.f_neg.F_Coulomb" = "friction.f_pos.F_Coulomb" }
log_scale = ["mass.m"]

[derived]
deceleration = { value = "friction.f_pos.F_Coulomb / mass.m", unit = "m/s2" }
grip = "friction: breakaway forward"

[uncertainty]
"""


AGAIN = PROBLEM[PROBLEM.index("[records.run]") : PROBLEM.index("\n[machine")]
SHORTER = AGAIN.replace("[records.run]", "[records.other]") + "trim = [0.0, 3.0]\n"
TWO = ("[records.run]", f"{SHORTER}[records.run]")
OWN = ('"friction.f_pos.F_Coulomb"]\n', '"friction.peak"]\nown = ["friction.f_pos.F_Coulomb"]\n')


def test_a_validation_record_without_a_value_of_its_own_is_refused_before_the_fit(
    problem: Write,
) -> None:
    folder = problem(
        TWO,
        OWN,
        ("peak = 1.0", "peak = 1.05"),
        ("[fit]\n", '[fit]\nrecords = ["run"]\n'),
        ("[validation]\n", '[validation]\nrecords = ["other"]\n'),
    )
    with pytest.raises(ValueError, match="validation.records must be empty, because each fitted"):
        check(read(folder))


@pytest.mark.slow
def test_a_result_that_cannot_be_computed_is_a_notice_and_derived_ones_have_rows_by_record(
    problem: Write,
) -> None:
    derived = (
        "[derived]\nforce = '2 * friction.f_pos.F_Coulomb'\nbreakaway = 'friction: breakaway'\n"
        "infinite = '1 / (mass.m - mass.m)'\nempty = '1 / 0'\nmass = 'mass.m'\n"
    )
    # The objective does not depend on `peak`.
    profile = 'profiles = ["friction.peak"]\n'
    asked = ("[uncertainty]\n", f"{derived}[uncertainty]\n{profile}")
    made = identify(problem(TWO, OWN, asked, ("peak = 1.0", "peak = 1.05")))
    each = [f"{name}@{label}" for name in ("force", "breakaway") for label in ("other", "run")]
    assert [e.name for e in made.derived] == [*each, "mass"]
    values = made.found.values
    assert made.derived[1].value == 2 * values["friction.f_pos.F_Coulomb@run"]
    assert not made.profiles
    told = [str(notice) for notice in made.notices if notice.code == "not-computed"]
    assert len(told) == 3
    places = ("uncertainty.profiles", "derived.infinite", "derived.empty")
    for sentence, place in zip(told, places, strict=True):
        assert sentence.startswith(f"A result was not computed: problem.toml: {place}")


def test_a_derived_quantity_of_a_sweep_that_cannot_be_computed_is_a_notice(tmp_path: Path) -> None:
    rows = "\n".join(f"{0.1 * k},{1 + 0.1 * k + 0.01 * (-1) ** k}" for k in range(1, 12))
    (tmp_path / "sweep.csv").write_text(f"v [m/s],F [N]\n{rows}\n")
    (tmp_path / "problem.toml").write_text(
        'title = "A"\n[sweep]\nfile = "sweep.csv"\nvelocity = "v [m/s]"\nforce = "F [N]"\n'
        "[law]\nf_pos = 'Coulomb'\n[derived]\nfair = '2 * F_Coulomb'\nempty = '1 / 0'\n"
    )
    made = identify(tmp_path)
    assert [e.name for e in made.derived] == ["fair"]
    assert [notice.code for notice in made.notices] == ["not-computed"]
    assert "problem.toml: derived.empty" in result_texts(made)["report.html"]
