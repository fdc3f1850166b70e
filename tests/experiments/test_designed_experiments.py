"""The fourth experiment runs, and what is designed is better than what it stands beside."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.mark.slow
def test_a_designed_force_tells_more_than_a_chirp_and_a_staircase(root: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        "designed_experiments", root / "experiments" / "04_designed_experiments.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    (row,) = module.main(["--draws", "0", "--steps", "60", "--starts", "2", "--only", "block"])
    worst = [row.design.worst(says) for says in row.design.beside]
    assert row.design.worst() < min(worst)
    assert row.design.asked["travel"][0] <= 0.2
    # what three decays of the pendulum told, in closed form only by their sum
    _, recorded = module.xl330()
    assert np.all((recorded > 1e-4) & (recorded < 0.2))
