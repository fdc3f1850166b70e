"""What is stated of the EMPS axis: parameters, free runs of both records, and what they do not
tell.
"""

import functools
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import frictax as fx
from checks import OPTIMISED

FOLDER = Path(__file__).resolve().parents[2] / "identification" / "emps"


@pytest.fixture(scope="module", autouse=True)
def _optimised() -> Iterator[None]:
    """Records of 24,000 samples: fits run for longer than they compile. Rounds change no number."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fx, "fit", functools.partial(fx.fit, rounds=0))
        patch.setattr("frictax.programs.executables.options_of_fits", lambda: OPTIMISED)
        yield


@pytest.fixture(scope="module")
def emps() -> ModuleType:
    spec = importlib.util.spec_from_file_location("identify_emps", FOLDER / "identify.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def first(emps: ModuleType, data_folder: Path) -> fx.Record:
    return emps.read("identification", data_folder / "emps")


@pytest.fixture(scope="module")
def second(emps: ModuleType, data_folder: Path) -> fx.Record:
    return emps.read("validation", data_folder / "emps")


@pytest.fixture(scope="module")
def default(emps: ModuleType, first: fx.Record) -> fx.FoundMachine:
    return emps.on_windows(first)


@pytest.fixture(scope="module")
def six(emps: ModuleType, first: fx.Record) -> fx.FoundMachine:
    return emps.on_the_free_run(first)


@pytest.fixture(scope="module")
def page() -> str:
    return (FOLDER / "README.md").read_text(encoding="utf-8")


def quoted(page: str, row: str) -> list[float]:
    """The numbers of the row of a table that begins with `row`, in its other cells."""
    line = re.search(rf"^\| {re.escape(row)} \|(.*)\|$", page, re.MULTILINE)
    assert line, row
    return [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?", line[1])]


def test_inverse_dynamics_behind_a_zero_phase_butterworth_filter_gives_the_published_parameters(
    emps: ModuleType, first: fx.Record, page: str
) -> None:
    found = emps.inverse_dynamics(first)
    assert found.problem.objective.cutoff == 70.0
    off = {
        name: abs(float(found.values[name]) / published - 1)
        for name, published in emps.PUBLISHED.items()
    }
    assert off["mass.m"] <= 0.003
    assert off["friction.f_pos.F_prop"] <= 0.015
    assert off["friction.f_pos.F_Coulomb"] <= 0.015
    assert off[emps.OFFSET] <= 0.03
    for name, published in emps.PUBLISHED.items():
        assert quoted(page, f"`{name}`")[:2] == pytest.approx(
            [found.values[name], published], rel=5e-5, abs=6e-4
        )


@pytest.mark.slow
def test_an_offset_beside_two_coulomb_frictions_is_named_as_redundant(
    emps: ModuleType, first: fx.Record
) -> None:
    found = emps.redundant(first)
    (direction,) = found.identifiability.null_directions
    assert set(direction) == {"friction.f_pos.F_Coulomb", "friction.f_neg.F_Coulomb", emps.OFFSET}
    assert any(
        "can be determined" in warning and "null direction" in warning for warning in found.warnings
    )


@pytest.mark.slow
def test_five_parameters_of_windows_run_freely_through_the_identification_record_within_2_7_mm(
    emps: ModuleType, first: fx.Record, default: fx.FoundMachine, page: str
) -> None:
    assert len(default.estimates) == 5
    assert default.converged
    assert default.identifiability.condition < 10
    score = emps.rms(emps.free_run(default.model, first))
    assert score <= 2.7
    assert quoted(page, "windows of 0.5 s")[0] == pytest.approx(score, abs=0.02)
    for name, value in default.values.items():
        assert quoted(page, f"`{name}` on windows")[0] == pytest.approx(value, rel=1e-3)


@pytest.mark.slow
def test_a_drift_more_runs_within_2_mm(emps: ModuleType, first: fx.Record) -> None:
    found = emps.on_windows(first, (emps.DRIFT,))
    assert (
        emps.rms(
            emps.free_run(found.model, first, found.values[emps.DRIFT] * (first.t - first.t[0]))
        )
        <= 2.0
    )


@pytest.mark.slow
def test_six_parameters_fitted_on_the_free_run_leave_0_65_mm_and_a_warning_of_its_condition(
    emps: ModuleType, first: fx.Record, six: fx.FoundMachine, page: str
) -> None:
    assert len(six.estimates) == 6
    assert 1e3 * six.rms["identification"]["mass.s"] <= 0.65
    again = emps.rms(
        emps.free_run(six.model, first, six.values[emps.DRIFT] * (first.t - first.t[0]))
    )
    assert again == pytest.approx(1e3 * six.rms["identification"]["mass.s"], rel=1e-6)
    assert quoted(page, "free run, drift")[0] == pytest.approx(again, abs=0.02)
    assert six.identifiability.condition > 100
    assert any("condition" in warning for warning in six.warnings)


@pytest.mark.slow
def test_the_known_controller_leaves_the_published_friction_and_a_mass_short_of_its_delay(
    emps: ModuleType, data_folder: Path
) -> None:
    found = emps.in_closed_loop(emps.read_reference("identification", data_folder / "emps"))
    assert found.identifiability.condition < 10
    assert found.rms["identification"]["mass.s"] < 2e-6
    for name, published in emps.PUBLISHED_DIRECTIONS.items():
        value = found.values[name] + (emps.LATE if name == "mass.m" else 0.0)
        assert value == pytest.approx(published, rel=0.006), name


@pytest.mark.slow
def test_the_validation_record_is_predicted_over_1_s_within_1_6_mm(
    second: fx.Record, default: fx.FoundMachine, page: str
) -> None:
    score = 1e3 * default.score(second, fx.Windows(1.0))["mass.s"]
    assert score <= 1.6
    assert quoted(page, "1 s from the measured state")[0] == pytest.approx(score, abs=0.02)


@pytest.mark.slow
def test_the_free_run_of_the_validation_record_goes_as_far_off_as_the_page_says(
    emps: ModuleType, second: fx.Record, default: fx.FoundMachine, page: str
) -> None:
    score = emps.rms(emps.free_run(default.model, second))
    force, friction = emps.sensitivities(default.model, second)
    assert quoted(page, "whole free run, 24.84 s")[0] == pytest.approx(score, abs=0.1)
    assert quoted(page, "additional force of 0.1 N")[0] == pytest.approx(force, abs=0.1)
    assert quoted(page, "additional friction of 1 %")[0] == pytest.approx(friction, abs=0.1)


@pytest.mark.slow
def test_the_free_run_of_the_validation_record_lies_within_what_the_cycles_differ_by(
    emps: ModuleType, first: fx.Record, second: fx.Record, default: fx.FoundMachine, page: str
) -> None:
    score = emps.rms(emps.free_run(default.model, second))
    repeats = emps.spread(default, first, second)
    low, _, high = repeats.range
    assert low < score < high
    white = default.uncertainty(fx.White()).standard_errors
    # residuals are coloured
    assert np.all(repeats.error_of_mean > 1.5 * np.array([white[name] for name in repeats.names]))
    # What the model lacks, the same in each cycle, makes windows differ by more than the cycles do.
    assert all(
        default.standard_errors[name] > error
        for name, error in zip(repeats.names, repeats.error_of_mean, strict=True)
    )
    assert quoted(
        page, "axes that differ as the cycles do, quantiles 10 / 50 / 90 %"
    ) == pytest.approx(list(repeats.range), rel=0.05)


@pytest.mark.slow
def test_one_axis_with_its_own_level_in_each_record_runs_freely_through_both_within_2_mm(
    emps: ModuleType, first: fx.Record, second: fx.Record, six: fx.FoundMachine
) -> None:
    # All samples take two minutes.
    found = emps.jointly([first.decimate(4), second.decimate(4)], six)
    assert len(found.estimates) == 7
    for label, record in (("identification", first), ("validation", second)):
        assert 1e3 * found.rms[label]["mass.s"] <= 2.0
        level = found.values[f"{emps.OFFSET}@{label}"] + found.values[emps.DRIFT] * (
            record.t - record.t[0]
        )
        assert emps.rms(emps.free_run(found.model_for(label), record, level)) <= 2.0


@pytest.mark.slow
def test_a_bristle_earns_nothing(emps: ModuleType, first: fx.Record) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "identify", emps)
        patch.syspath_prepend(str(FOLDER))
        bristles = importlib.import_module("bristles")
    made = bristles.compared(first.decimate(4), "rigid", "Dahl")
    assert made.best.name == "rigid"
    assert "A bristle does not improve the prediction" in made.reason
