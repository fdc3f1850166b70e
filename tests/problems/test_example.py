"""`frictax init --example motor`: the bundled problem, and what an identification makes of it."""

import importlib.util
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import frictax as fx
from frictax.cli import app
from frictax.problems import read
from frictax.problems.starting import copy_example


def frictax(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), prog_name="frictax")


@pytest.fixture(scope="module")
def make(root: Path) -> Any:
    """The script that makes the record."""
    spec = importlib.util.spec_from_file_location("make_motor", root / "data" / "motor" / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def motor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    done = frictax("init", "--example", "motor")
    assert done.exit_code == 0, done.output
    return tmp_path / "motor"


def test_the_bundled_record_is_what_its_script_makes_bit_for_bit(make: Any, motor: Path) -> None:
    flows = make.current()
    text = make.record(make.SEED, flows, make.angle(flows))
    assert (motor / "motor.csv").read_bytes() == text.encode()


def test_the_truth_that_is_told_is_the_truth_of_the_script(make: Any, motor: Path) -> None:
    told = tomllib.loads((motor / "truth.toml").read_text(encoding="utf-8"))
    assert {name: row["value"] for name, row in told.items()} == make.TRUTH


@pytest.mark.slow
def test_intervals_of_the_example_hold_its_truth_and_nothing_is_doubted(
    make: Any, motor: Path
) -> None:
    problem = read(motor)
    assert isinstance(problem.data, dict)
    found = fx.fit(problem.machine, problem.data, **problem.settings())
    for name, truth in make.TRUTH.items():
        low, high = found.intervals[name]
        assert low < truth < high, name
        assert high - low < 0.05 * truth, name
    assert found.notices == ()
    assert problem.data["motor"].warnings == ()


@pytest.mark.slow
def test_two_commands_give_parameters_that_hold_the_truth_and_a_report(
    make: Any, motor: Path
) -> None:
    done = frictax("identify", "motor")
    assert done.exit_code == 0, done.output
    found = json.loads((motor / "result.json").read_text(encoding="utf-8"))
    rows = {row["name"]: row for row in found["errors"]["estimates"]}
    for name, truth in make.TRUTH.items():
        assert rows[name]["lower"] < truth < rows[name]["upper"]
    assert "A DC motor with a disc" in (motor / "report.html").read_text(encoding="utf-8")
    assert "!" not in done.stdout


@pytest.mark.slow
def test_intervals_of_95_percent_hold_the_truth_over_twenty_seeds(
    make: Any, motor: Path, optimised_fits: None
) -> None:
    flows = make.current()
    turned, held = make.angle(flows), dict.fromkeys(make.TRUTH, 0)
    for seed in range(20):
        (motor / "motor.csv").write_text(make.record(seed, flows, turned), encoding="utf-8")
        problem = read(motor)
        assert isinstance(problem.data, dict)
        intervals = fx.fit(problem.machine, problem.data, **problem.settings()).intervals
        for name, truth in make.TRUTH.items():
            held[name] += intervals[name][0] <= truth <= intervals[name][1]
    assert min(held.values()) >= 17, held  # a binomial count is less in 2 of 100
    assert sum(held.values()) >= 54


def test_the_example_says_what_to_run_next(tmp_path: Path) -> None:
    done = frictax("init", "--example", "motor", "--out", str(tmp_path / "my motor"))
    assert f"frictax identify '{tmp_path / 'my motor'}' --check" in done.stdout
    assert sorted(p.name for p in (tmp_path / "my motor").iterdir()) == [
        "motor.csv",
        "problem.toml",
        "truth.toml",
    ]


def test_an_example_overwrites_nothing_unless_told(motor: Path) -> None:
    (motor / "problem.toml").write_text("mine")
    (motor / "motor.csv").unlink()
    done = frictax("init", "--example", "motor")
    assert done.exit_code == 1
    assert "motor/problem.toml exists. Give --overwrite to replace it" in done.stderr
    assert (motor / "problem.toml").read_text() == "mine"
    assert not (motor / "motor.csv").exists()  # nothing half done
    assert frictax("init", "--example", "motor", "--overwrite").exit_code == 0
    assert (motor / "problem.toml").read_text(encoding="utf-8").startswith("# Which inertia")


def test_an_example_that_is_none_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no example 'moto'. Did you mean 'motor'\?"):
        copy_example("moto", tmp_path)


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "motor").write_text("")
    with pytest.raises(NotADirectoryError, match="is a file. Name another folder with --out"):
        copy_example("motor", tmp_path / "motor")


def test_the_measured_example_is_the_table_of_the_project_with_its_licence(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = frictax("init", "--example", "screw_drive")
    assert done.exit_code == 0, done.output
    assert "simulate" not in done.output
    for name in ("sweep.csv", "LICENSE"):
        there = (root / "data" / "screw_drives" / name).read_bytes()
        assert (tmp_path / "screw_drive" / name).read_bytes() == there
    ours, theirs = read(tmp_path / "screw_drive"), read(root / "identification" / "screw_drive_1")
    assert isinstance(ours.data, fx.Sweep)
    assert isinstance(theirs.data, fx.Sweep)
    assert (ours.data.force == theirs.data.force).all()
    assert ours.content.law == theirs.content.law
