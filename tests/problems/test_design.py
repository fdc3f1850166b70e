"""`frictax design`: the experiment that a problem file asks for."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import frictax as fx
from frictax.cli import app
from frictax.problems import design_experiment, read
from problems.conftest import PROBLEM

DESIGN = """
[design]
outputs = { "mass.s" = 2e-5 }
limits = { force = 3.0, travel = 0.5, band = [0.25, 3.0] }
duration = 2.0
rate = 50.0
starts = 1
steps = 3
"""


def frictax(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), prog_name="frictax")


@pytest.mark.slow
def test_table_and_page_are_written_and_not_overwritten(problem: Callable[..., Path]) -> None:
    folder = problem(text=PROBLEM + DESIGN)
    out, page = folder / "excitation.csv", folder / "design.html"
    done = frictax("design", str(folder), "--out", str(out), "--report", str(page))
    assert done.exit_code == 0, done.output
    assert "drive [N] for 2 s at 50 Hz, 101 samples" in done.stdout
    table = np.loadtxt(out, delimiter=",", skiprows=1)
    assert table.shape == (101, 2)
    assert np.max(np.abs(table[:, 1])) <= 3.0
    text = page.read_text(encoding="utf-8")
    assert "A block: an experiment" in text
    assert "Expected relative errors" in text
    again = frictax("design", str(folder), "--out", str(out))
    assert again.exit_code == 1
    assert "excitation.csv exists. Give --overwrite to replace it" in again.stderr


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (DESIGN, "", "has no [design], which gives the limits of the machine"),
        ("travel = 0.5", "travl = 0.5", "design.limits.travl is no key of a problem file. Did you"),
        ("force = 3.0, ", "", "`Limits.force` must say how much 'drive' may give"),
        ("travel = 0.5", "travel = -1", "`Limits.travel` must be a number > 0, got -1"),
        ('outputs = { "mass.s" = 2e-5 }', "", "must say how large the noise of each sensor is"),
        ("rate = 50.0", 'shape = "Square"', "Square"),
        ("rate = 50.0", "rate = 0.0", "got 0.0"),
        ("[fit]", '[fit]\ntied = { "mass.L" = "mass.m" }', "fit.tied is not used with [design]"),
        ("[fit]", '[fit]\nown = ["mass.v"]', "fit.own is not used with [design]"),
    ],
)
def test_what_cannot_be_designed_is_said_in_one_sentence(
    problem: Callable[..., Path], tmp_path: Path, old: str, new: str, says: str
) -> None:
    text = PROBLEM + DESIGN
    assert old in text
    folder = problem(text=text.replace(old, new))
    done = frictax("design", str(folder), "--out", str(tmp_path / "out.csv"))
    assert done.exit_code == 1
    assert says in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.output
    assert not (tmp_path / "out.csv").exists()


def test_the_noise_of_a_sensor_with_a_column_of_deviations_is_their_rms(
    problem: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = dict[str, object]()
    monkeypatch.setattr(
        fx,
        "design",
        lambda machine, outputs, **o: seen.update(outputs) or object.__new__(fx.Design),
    )
    text = PROBLEM.replace('unit = "mm" }', 'unit = "mm", sd = "sd" }') + DESIGN
    folder = problem(text=text.replace('outputs = { "mass.s" = 2e-5 }', ""))
    lines = (folder / "run.csv").read_text().splitlines()
    rows = [f"{line},{0.01 + 0.02 * (i % 2)}" for i, line in enumerate(lines[1:])]
    (folder / "run.csv").write_text("\n".join([f"{lines[0]},sd", *rows]))
    design_experiment(read(folder))
    assert seen == {"mass.s": pytest.approx(1e-3 * np.sqrt((0.01**2 + 0.03**2) / 2), rel=0.01)}
