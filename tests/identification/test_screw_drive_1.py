"""What `make demo` runs, and what its page says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from frictax.fitting import fit, starting_law
from frictax.laws import Stribeck
from frictax.measurements import Sweep, units


@pytest.fixture(scope="module")
def found(root: Path):
    sweep = Sweep.from_csv(
        root / "data" / "screw_drives" / "sweep.csv",
        velocity="omega",
        force="torque",
        where={"drive": 1},
    )
    forward, backward = (
        starting_law(Stribeck, half, exponent=e)
        for half, e in ((sweep.positive(), 2.0), (sweep.negative(), 1.0))
    )
    return fit(forward, sweep, f_neg=backward)


def test_the_page_quotes_the_values_and_errors_that_the_fit_gives(root: Path, found) -> None:
    page = (root / "identification" / "screw_drive_1" / "README.md").read_text(encoding="utf-8")
    quoted = re.findall(
        r"^\| `(f_\w+\.\w+)` \| ([\d.]+) \| ([^|]+?) \| ([\d.]+) \|", page, re.MULTILINE
    )
    assert [name for name, *_ in quoted] == list(found.names)
    for (_, value, unit, error), estimate in zip(quoted, found.estimates, strict=True):
        name, size = units.display_unit(estimate.unit, found.shown_force)
        assert unit == name
        assert abs(
            float(value) - estimate.value / size
        ) < 0.05 * estimate.standard_error / size + 0.5 * 10 ** -len(value.split(".")[1])
        assert float(error) == pytest.approx(estimate.standard_error / size, rel=0.06)


# The first is compiled sooner, the second as a reader's is.
@pytest.mark.slow
@pytest.mark.parametrize(
    "flags", ["--xla_backend_optimization_level=0", ""], ids=["unoptimised", "as usual"]
)
def test_the_demo_prints_the_table_the_comparison_and_writes_a_report_that_needs_nothing_else(
    root: Path, tmp_path: Path, flags: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", f"{os.environ['XLA_FLAGS']} {flags}")
    folder = tmp_path / "identification" / "screw_drive_1"
    folder.mkdir(parents=True)
    (tmp_path / "data").symlink_to(root / "data")
    shutil.copy(root / "identification" / "screw_drive_1" / "identify.py", folder)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(folder / "identify.py")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for words in (
        "Stribeck, exponent 2 is chosen",
        "Stribeck, exponent 1 is chosen",
        (
            "The weight of a payload (a constant force) and an asymmetry of Coulomb friction have"
            " the same effect in this sweep"
        ),
        "std. error",
        "BearingFriction(tau_pos=[",
        "changes of mode",
        "report.html",
    ):
        assert words in done.stdout
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)=["']https?://""", html)
