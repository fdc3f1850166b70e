"""The first experiment runs, and what it says is so."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest


@pytest.fixture(scope="module")
def experiment(root: Path) -> Any:
    path = root / "experiments" / "01_exact_against_smoothed.py"
    spec = importlib.util.spec_from_file_location("exact_against_smoothed", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def found(
    experiment: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, Any, list[Any], Path]:
    figure = tmp_path_factory.mktemp("figure") / "answer.svg"
    return *experiment.main(["--figure", str(figure), "--widths", "0.03", "0.01"]), figure


@pytest.mark.slow
def test_the_held_block_stands_still_exactly_and_creeps_when_smoothed(
    experiment: Any, found: Any
) -> None:
    _, exact, rows, _ = found
    assert exact.creep == 0.0
    assert exact.breakaway == pytest.approx(1.4)
    for row in rows:
        # The speed at which smoothed friction is as great as the load.
        v = np.linspace(0.0, 2 * row.eps, 200_001)
        friction = np.asarray(experiment.law()(jnp.asarray(v))) * np.tanh(v / row.eps)
        assert row.creep == pytest.approx(v[np.argmax(friction > experiment.HOLD)], rel=1e-3)
        assert experiment.HOLD < row.breakaway < 1.4


@pytest.mark.slow
def test_the_errors_of_the_smoothed_block_fall_with_eps_and_those_of_the_exact_one_are_far_below(
    found: Any,
) -> None:
    truth, exact, (coarse, fine), _ = found
    end, slope = (
        (lambda row: abs(row.end - truth.end)),
        (lambda row: abs(row.slope / truth.slope - 1)),
    )
    assert truth.end == pytest.approx(0.0010542292515, abs=1e-9)
    assert truth.slope == pytest.approx(-0.01764442038, rel=1e-7)
    assert end(coarse) > 2 * end(fine) > 1e3 * end(exact)
    assert slope(coarse) > 2 * slope(fine) > 1e3 * slope(exact)
    assert slope(fine) > 0.3
    assert fine.stiff_slope == pytest.approx(fine.slope, rel=1e-3)


@pytest.mark.slow
def test_the_exact_run_is_cheaper_than_any_smoothed_one(found: Any) -> None:
    _, exact, rows, _ = found
    for row in rows:
        assert row.steps > 1.5 * exact.steps
        assert row.evaluations > 1.5 * exact.evaluations
        assert row.stiff_evaluations > 10 * exact.evaluations


@pytest.mark.slow
def test_the_figure_is_small_and_the_committed_one_too(experiment: Any, found: Any) -> None:
    committed = Path(experiment.__file__).with_suffix(".svg")
    for path in (found[3], committed):
        assert path.read_text(encoding="utf-8").lstrip().startswith("<?xml")
        assert path.stat().st_size < 200_000


def test_the_answer_is_in_the_table_of_questions(root: Path) -> None:
    table = (root / "experiments" / "README.md").read_text(encoding="utf-8")
    assert "01_exact_against_smoothed.py" in table
    assert "01_exact_against_smoothed.svg" in table
