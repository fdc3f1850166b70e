"""Small inputs that failed once, in the folder that FRICTAX_CASES names: `make cases` runs them.

Each file of the folder prints what it finds. A test runs the file in a process of its own and
compares the printed numbers with the right ones.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

NUMBER = r"(-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|-?inf|nan)"

# Every machine of one structure whose contacts are redundant, by both engines: the file run.py of
# the folder compares with runs of a complementarity stepper, where the folder holds them.
REDUNDANT = """
import jax, numpy as np, frictax as fx
jax.config.update("jax_enable_x64", True)
fx.fast_loops()
from pathlib import Path
from build import mech
from gen import machine
ts = np.linspace(0.0, 2.0, 201)
for name, engine in (("Adaptive", fx.Adaptive()), ("OnSamples", fx.OnSamples(substeps=20))):
    for p in range(11):
        spec = machine(5, p)
        try:
            run = fx.simulate(mech(spec), ts, engine)
        except RuntimeError as error:
            print(name, p, "failed:", error, flush=True)
            continue
        error = 0.0
        truth = Path(f"truth/5_{p}.npz")
        if truth.exists() and all(c["peak"] == 1.0 for c in spec["contacts"]):
            right, part = np.load(truth), "phi" if spec["rot"] else "s"
            at = [getattr(run[f"b{i}"], part) for i in range(len(spec["bodies"]))]
            off = np.abs(np.stack(at, 1) - right["s"]).max(0)
            error = float((off / (np.abs(right["s"]).max(0) + 1e-9)).max())
        print(name, p, "error", error, flush=True)
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


def _run(folder: Path, *arguments: str) -> tuple[str, str]:
    """Run Python with these arguments in `folder` and return its output and its warnings."""
    source = str(Path(__file__).resolve().parents[1] / "src")
    environment = os.environ | {
        "PYTHONPATH": source,
        "PYTHONDONTWRITEBYTECODE": "1",
        "FRICTAX_CACHE": "off",
        # the flags of `fast_loops(once=True)`: each file runs its programs once
        "XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_backend_optimization_level=0",
    }
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout, done.stderr


def _numbers(text: str) -> list[float]:
    return [float(x) for x in re.findall(NUMBER, text)]


def test_case_crank(cases_folder: Path) -> None:
    """A contact whose lever passes through zero lets the machine pass: energy says where it is."""
    out, _ = _run(cases_folder, "crank.py")
    strong, weak = out.splitlines()
    assert strong.endswith("True")
    assert weak.endswith("True")
    np.testing.assert_allclose(_numbers(strong), [0.5, 4.50974, 1.01018], rtol=1e-5)
    np.testing.assert_allclose(_numbers(weak), [1e-9, 6.0, 2.0], rtol=1e-6)


def test_case_start_at_rest(cases_folder: Path) -> None:
    """The derivative by the start speed of a machine at rest is that to the side it moves to.

    Friction brakes the first motion, so the differences to both sides are not equal.
    """
    out, _ = _run(cases_folder, "start_at_rest.py")
    gradient, right, left = _numbers(out.splitlines()[0])
    assert (right + left) / 2 == pytest.approx(-0.149, abs=1e-3)
    assert gradient == pytest.approx(left, rel=1e-4)
    assert "no effect" not in out


def test_case_table(cases_folder: Path) -> None:
    """A table that falls below 0 gives friction 0: the speed stays, nothing is lost, a notice."""
    out, warned = _run(cases_folder, "table.py")
    speeds, losses = (_numbers(part) for part in re.findall(r"\[(.*?)\]", out, re.S))
    np.testing.assert_allclose(speeds, [4.0] * 5, rtol=1e-12)
    np.testing.assert_allclose(losses, [0.0] * 5, atol=1e-12)
    assert "friction.f_pos" in warned


def test_case_default_engine_coarse(cases_folder: Path) -> None:
    """A drive of few points is followed to 2e-5 m by the default engine, or refused."""
    out, _ = _run(cases_folder, "default_engine_coarse.py")
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


def test_case_stiff_minimal(cases_folder: Path) -> None:
    """Runs and fits are right where the viscous time constant is shorter than a sample."""
    out, _ = _run(cases_folder, "stiff_minimal.py")
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
    out, _ = _run(cases_folder, "reverse_once.py")
    (ratios,) = re.findall(r"rev/fwd-1 \[(.*?)\]", out, re.S)
    assert len(_numbers(ratios)) == 6
    assert np.max(np.abs(_numbers(ratios))) < 1e-8


def test_case_free_law(cases_folder: Path) -> None:
    """A law is freed as a whole although one of its parameters lies on its bound."""
    out, _ = _run(cases_folder, "free_law.py")
    assert out == ""


def test_case_once(cases_folder: Path) -> None:
    """Runs are successful under `fast_loops(once=True)` where a drive switches."""
    out, _ = _run(cases_folder / "redundant_group", "fast_loops_once_nan.py")
    lines = [line for line in out.splitlines() if line.startswith("once")]
    assert len(lines) == 5
    assert [line for line in lines if " ok " not in line] == []


def test_case_redundant(cases_folder: Path) -> None:
    """Machines with redundant contacts move as a complementarity stepper moves them."""
    out, _ = _run(cases_folder / "redundant_group", "-c", REDUNDANT)
    lines = out.splitlines()
    assert len(lines) == 22
    assert [line for line in lines if "failed" in line] == []
    assert [line for line in lines if float(line.split()[-1]) > 1e-4] == []
