"""The third experiment runs, and what it says is so."""

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq


@pytest.fixture(scope="module")
def experiment(root: Path) -> Any:
    spec = importlib.util.spec_from_file_location(
        "servo_axis", root / "experiments" / "03_servo_axis.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def found(experiment: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], Path]:
    figure = tmp_path_factory.mktemp("figure") / "answer.svg"
    return experiment.main(["--figure", str(figure), "--peaks", "1", "1.2", "1.5"]), figure


@pytest.mark.slow
def test_without_integral_action_it_stops_once_inside_the_band_wherever_peak_is(
    experiment: Any, found: Any
) -> None:
    still = [row for row in found[0] if row.ki == 0]
    for row in still:
        assert len(row.rests) == 1
        low, high = experiment.stick_band(row.peak)
        assert low < row.error < high
        assert abs(row.slope) < 1e-6
    assert np.ptp([row.error for row in still]) < 1e-6


@pytest.mark.slow
def test_with_integral_action_it_hunts_where_peak_is_above_1_and_only_there(found: Any) -> None:
    first, *hunting = [row for row in found[0] if row.ki > 0]
    assert not first.hunts
    assert np.all(np.diff(np.abs(first.rests[:, 2])) < 0)
    assert all(row.hunts for row in hunting)


@pytest.mark.slow
def test_the_size_of_the_hunting_is_that_of_the_linear_equation_of_one_hop(
    experiment: Any, found: Any
) -> None:
    axis = experiment.servo(1.0, experiment.KI).system
    inertia = float(axis.inertia(0.0, None, None))
    stiffness = float(axis.kp + axis.mgl * math.cos(experiment.TARGET))
    # J*e''' + kd*e'' + stiffness*e' + ki*e = 0 from (e, 0, -(peak - 1)*F/J) to (-e, 0, ...)
    matrix = np.array(
        [[0, 1, 0], [0, 0, 1], -np.array([axis.ki, stiffness, axis.kd], dtype=float) / inertia]
    )

    def hop(e: float, pull: float) -> float:
        after = lambda t: expm(matrix * t) @ [e, 0.0, -pull]  # noqa: E731
        return e + after(brentq(lambda t: after(t)[1], 0.02, 0.25))[0]

    for row in found[0]:
        if row.hunts:
            pull = (row.peak - 1) * experiment.F / inertia
            size = brentq(lambda e, pull=pull: hop(e, pull), 1e-4, 1e-2)
            assert abs(row.error) == pytest.approx(size, rel=5e-3)
            assert abs(row.slope) == pytest.approx(size / (row.peak - 1), rel=5e-3)


@pytest.mark.slow
def test_the_figure_is_small_and_the_committed_one_too(experiment: Any, found: Any) -> None:
    for path in (found[1], Path(experiment.__file__).with_suffix(".svg")):
        assert path.read_text(encoding="utf-8").lstrip().startswith("<?xml")
        assert path.stat().st_size < 200_000


def test_the_answer_is_in_the_table_of_questions(root: Path) -> None:
    table = (root / "experiments" / "README.md").read_text(encoding="utf-8")
    assert "03_servo_axis.py" in table
    assert "03_servo_axis.svg" in table
