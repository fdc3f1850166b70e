"""The benchmarks run, and what they compare gives the same answer."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "experiments" / "benchmarks"


@pytest.fixture
def contestants(monkeypatch: pytest.MonkeyPatch):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not on the PATH: the benchmark's C floor needs it")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import contestants  # pyright: ignore[reportMissingImports]

    return contestants


@pytest.mark.parametrize("who", ["c_floor", "frictax", "scipy"])
def test_every_contestant_solves_p1_at_tolerance_1e_7(contestants, who: str) -> None:
    truth = {"forward": contestants.STATE, "jacobian": contestants.DERIVATIVES}
    for contestant in getattr(contestants, who)():
        tolerance = 1e-4 if (who, contestant.task) == ("scipy", "jacobian") else 1e-5
        np.testing.assert_allclose(contestant.answer(), truth[contestant.task], rtol=tolerance)


def test_the_contest_prints_and_writes_a_row_for_each_contestant(contestants, tmp_path: Path) -> None:
    table = tmp_path / "p1.csv"
    command = [sys.executable, str(BENCHMARKS / "p1.py"), "--rounds", "1", "--csv", str(table)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = table.read_text(encoding="utf-8").splitlines()
    assert rows[0] == "task,solver,microseconds,times_C,relative_error"
    for name in ("C", "frictax", "scipy"):
        assert sum(f",{name}," in row for row in rows) == 2
        assert name in printed


def test_the_import_benchmark_prints_ratios() -> None:
    command = [sys.executable, str(BENCHMARKS / "import_time.py"), "--rounds", "1"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[1].endswith("x import jax")
