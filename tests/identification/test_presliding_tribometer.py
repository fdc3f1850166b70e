"""What is stated of the tribometer: what each bristle leaves, and that the stiffness is a bound."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

import frictax as fx


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


def fitted(identify: Any, name: str) -> Any:
    """The fit of the page. Rounds after its search change no number here."""
    one = identify.structure(name)
    return fx.fit(one.model, identify.strokes(8), free=one.free, rounds=0)


# Root mean squares of 40000 samples, from fits by SciPy's least_squares. Here every eighth is used.
KNOWN = {"Dahl": 0.252, "spring and slider": 0.110, "elasto-plastic": 0.104}


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
@pytest.mark.parametrize("name", KNOWN)
def test_a_bristle_leaves_what_is_known(identify: Any, name: str) -> None:
    found = fitted(identify, name)
    assert found.converged
    assert found.rms["strokes"]["guide.f"] == pytest.approx(KNOWN[name], rel=0.02)
    stiffness = "k[0]" if name == "spring and slider" else "sigma_0"
    assert 3.5e4 < found[f"guide.bristle.{stiffness}"].value < 4.3e4


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
@pytest.mark.parametrize("n", [2, 4])
def test_more_elements_follow_hardly_closer_and_are_said_not_to_be_identifiable(
    identify: Any, n: int
) -> None:
    found = fitted(identify, f"Maxwell-slip of {n}")
    assert 0.103 < found.rms["strokes"]["guide.f"] < 0.107
    assert found.identifiability.condition > 1e7
    assert all("not identifiable" in str(found[limit]) for limit in identify.LIMITS)
    assert set(identify.LIMITS) < set(found.identifiability.unknown)


@pytest.mark.slow
def test_one_spring_and_a_slider_start_from_the_strokes_where_they_end(identify: Any) -> None:
    record = identify.strokes(8)
    s, f = record.inputs["stage"], record.outputs["guide.f"]
    start = fx.starting_bristle(fx.MaxwellSlip, s, f)
    found = fitted(identify, "spring and slider")
    assert found.identifiability.condition < 2
    assert start.k[0] == pytest.approx(found["guide.bristle.k[0]"].value, rel=0.1)


@pytest.mark.slow
def test_the_stiffness_is_said_to_be_that_of_all_in_series(identify: Any) -> None:
    found = fitted(identify, "Dahl")
    told = {n.code: n for n in found.notices_at_hand}["stiffness-in-series"]
    assert 9e-5 < told.numbers["far"] < 1.2e-4
    assert told.numbers["far"] < 1.8 * told.numbers["half"]


@pytest.mark.slow
def test_one_spring_and_one_slider_say_all_of_it(identify: Any) -> None:
    names = ("spring and slider", "Maxwell-slip of 2", "elasto-plastic")
    structures = {name: identify.structure(name) for name in names}
    made = fx.compare(identify.strokes(8), structures, objective=fx.FreeRun(), repeats=5)
    assert "One spring and one slider are enough for these records" in made.reason
    assert made["Maxwell-slip of 2"].implausible
    assert not made["spring and slider"].implausible
