"""What is stated of the tribometer: what each bristle leaves, and that the stiffness is a bound."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def identify(root: Path, data_folder: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "identification" / "presliding_tribometer"))
        patch.setenv("FRICTAX_DATA", str(data_folder))
        before = sys.modules.pop("identify", None)  # of another machine
        yield importlib.import_module("identify")
        sys.modules.pop("identify")
        if before is not None:
            sys.modules["identify"] = before


# root mean squares of 40000 samples, known from fits by SciPy's least_squares
KNOWN = {"Dahl": 0.252, "elasto-plastic": 0.104}


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_a_bristle_leaves_what_is_known(identify: Any, name: str) -> None:
    found = identify.fitted(name, identify.strokes())
    assert found.converged
    assert found.rms["strokes"]["guide.f"] == pytest.approx(KNOWN[name], rel=0.02)
    assert 3.5e4 < found["guide.bristle.sigma_0"].value < 4.3e4


def test_the_stiffness_is_said_to_be_that_of_all_in_series(identify: Any) -> None:
    found = identify.fitted("Dahl", identify.strokes(8))
    assert found.rms["strokes"]["guide.f"] == pytest.approx(0.252, rel=0.02)
    told = {n.code: n for n in found.notices_at_hand}["stiffness-in-series"]
    assert 9e-5 < told.numbers["far"] < 1.2e-4
    assert told.numbers["far"] < 1.8 * told.numbers["half"]
