"""Small inputs that failed once, in the folder that FRICTAX_CASES names: `make cases` runs them.

Each file of the folder prints what it finds. A test runs the file and compares the printed numbers
with the right ones.
"""

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

NUMBER = r"(-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|-?inf|nan)"

# A small file under `fast_loops(once=True)`, then every machine of its structure, whose contacts
# are redundant, by both engines. They have as many samples as the file and share its program.
REDUNDANT = """
import runpy, sys
sys.path.insert(0, "")
runpy.run_path("fast_loops_once_nan.py")
import numpy as np, frictax as fx
from build import mech
from gen import machine
ts = np.linspace(0.0, 2.0, 461)
for p in range(11):
    spec = machine(5, p)
    a, b = (fx.simulate(mech(spec), ts, x).ys for x in (fx.Adaptive(), fx.OnSamples()))
    print(p, "differs by", np.max(np.abs(a - b).max(0) / (np.abs(a).max(0) + 1e-9)))
"""


@pytest.fixture(scope="session")
def cases_folder() -> Path:
    """Return the folder with the small inputs that failed once."""
    value = os.environ.get("FRICTAX_CASES")
    if not value:
        pytest.skip("FRICTAX_CASES is not set: it names the folder with small inputs that failed")
    if not Path(value).is_dir():
        pytest.fail(f"FRICTAX_CASES = {value} is not a folder")
    return Path(value)


@pytest.fixture
def printed(
    cases_folder: Path, capsys: pytest.CaptureFixture, as_a_user_runs_it: None
) -> Callable[[str], str]:
    """Return a function that runs a file of the folder in this process and returns its output."""

    def run(name: str) -> str:
        runpy.run_path(str(cases_folder / name))
        return capsys.readouterr().out

    return run


def _run_once(folder: Path, *arguments: str) -> str:
    """Run Python in `folder` under the flags of `fast_loops(once=True)` and return its output."""
    environment = os.environ | {
        "PYTHONPATH": str(Path(__file__).resolve().parents[1] / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "FRICTAX_CACHE": "off",
        "XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_backend_optimization_level=0",
    }
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def _numbers(text: str) -> list[float]:
    return [float(x) for x in re.findall(NUMBER, text)]


def test_case_crank(printed: Callable[[str], str]) -> None:
    """A contact whose lever passes through zero lets the machine pass: energy says where it is."""
    out = printed("crank.py")
    strong, weak = out.splitlines()
    assert strong.endswith("True")
    assert weak.endswith("True")
    np.testing.assert_allclose(_numbers(strong), [0.5, 4.50974, 1.01018], rtol=1e-5)
    np.testing.assert_allclose(_numbers(weak), [1e-9, 6.0, 2.0], rtol=1e-6)


def test_case_start_at_rest(printed: Callable[[str], str]) -> None:
    """The derivative by the start speed of a machine at rest is that to the side it moves to.

    Friction brakes the first motion, so the differences to both sides are not equal.
    """
    out = printed("start_at_rest.py")
    gradient, right, left = _numbers(out.splitlines()[0])
    assert (right + left) / 2 == pytest.approx(-0.149, abs=1e-3)
    assert gradient == pytest.approx(left, rel=1e-4)
    assert "no effect" not in out


def test_case_table(printed: Callable[[str], str]) -> None:
    """A table that falls below 0 gives friction 0: the speed stays, nothing is lost, a notice."""
    with pytest.warns(UserWarning, match="friction.f_pos"):
        out = printed("table.py")
    speeds, losses = (_numbers(part) for part in re.findall(r"\[(.*?)\]", out, re.S))
    np.testing.assert_allclose(speeds, [4.0] * 5, rtol=1e-12)
    np.testing.assert_allclose(losses, [0.0] * 5, atol=1e-12)


def test_case_default_engine_coarse(printed: Callable[[str], str]) -> None:
    """A drive of few points is followed to 2e-5 m by the default engine, or refused."""
    out = printed("default_engine_coarse.py")
    found: dict[str, str] = {}
    for line in out.splitlines():
        if (start := re.match(r"(\d+) (default|Adaptive) (.*)", line)) is not None:
            found[f"{start[1]} {start[2]}"] = start[3].strip()
    for points in (3, 5, 11, 12):
        right = _numbers(found[f"{points} Adaptive"].removeprefix("s[-1]"))[0]
        ours = found[f"{points} default"]
        if ours.startswith("s[-1]"):
            assert abs(_numbers(ours.removeprefix("s[-1]"))[0] - right) < 2e-5, points
        else:
            assert ours.startswith(("ValueError", "SimulationError")), ours


def test_case_stiff_minimal(printed: Callable[[str], str]) -> None:
    """Runs and fits are right where the viscous time constant is shorter than a sample."""
    out = printed("stiff_minimal.py")
    errors = re.findall(rf"default off by {NUMBER} %", out)
    assert len(errors) == 6
    assert max(map(float, errors)) < 0.01
    fits = re.findall(
        rf"{NUMBER} \+- {NUMBER}'\).*?{NUMBER} \+- {NUMBER}'\)\] truth 4, {NUMBER} \[(.*)\]", out
    )
    assert len(fits) == 6
    for coulomb, coulomb_error, viscous, viscous_error, truth, notices in fits:
        assert abs(float(coulomb) - 4.0) < 3 * float(coulomb_error)
        assert abs(float(viscous) - float(truth)) < 3 * float(viscous_error)
        assert "steps" not in notices


def test_case_reverse_once(cases_folder: Path) -> None:
    """Reverse mode equals forward mode under `fast_loops(once=True)`."""
    out = _run_once(cases_folder, "reverse_once.py")
    (ratios,) = re.findall(r"rev/fwd-1 \[(.*?)\]", out, re.S)
    assert len(_numbers(ratios)) == 6
    assert np.max(np.abs(_numbers(ratios))) < 1e-8


def test_case_free_law(printed: Callable[[str], str]) -> None:
    """A law is freed as a whole although one of its parameters lies on its bound."""
    out = printed("free_law.py")
    assert out == ""


def test_case_redundant(cases_folder: Path) -> None:
    """Machines with redundant contacts run under `fast_loops(once=True)`, and two engines agree."""
    lines = _run_once(cases_folder / "redundant_group", "-c", REDUNDANT).splitlines()
    once = [line for line in lines if line.startswith("once")]
    assert len(once) == 5
    assert [line for line in once if " ok " not in line] == []
    differences = [line for line in lines if "differs" in line]
    assert len(differences) == 11
    assert [line for line in differences if not float(line.split()[-1]) < 1e-4] == []
