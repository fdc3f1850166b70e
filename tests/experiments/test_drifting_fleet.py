"""What the experiment on a fleet that wears says, on a small one."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def told(root: Path) -> dict[str, float]:
    spec = importlib.util.spec_from_file_location(
        "drifting_fleet", root / "experiments" / "06_drifting_fleet.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["drifting_fleet"] = module
    spec.loader.exec_module(module)
    return module.main(["--axes", "40", "--months", "20", "--jobs", "1"])


def test_intervals_of_a_fleet_hold_the_truth(told: dict[str, float]) -> None:
    for name in ("F_Coulomb", "F_prop", "F_Stribeck", "fexp"):
        assert 0.92 <= told[name] <= 0.99


def test_axes_that_wear_and_the_odd_one_are_named_and_hardly_another(
    told: dict[str, float],
) -> None:
    assert told["drifting, right"] >= 0.5
    assert told["drifting, wrong"] <= 1
    assert told["odd, right"] == 1.0
    assert told["odd, wrong"] == 0
