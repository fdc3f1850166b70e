"""The fifth experiment runs, and its bristles are held where closed forms say."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.mark.slow
def test_bristles_come_near_what_sticks_and_give_way_as_their_formulas_say(
    root: Path, tmp_path: Path
) -> None:
    spec = importlib.util.spec_from_file_location(
        "events_against_bristles", root / "experiments" / "05_events_against_bristles.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    figure = tmp_path / "answer.svg"
    exact, rows = module.main(["--stiffness", "1e4", "1e5", "--figure", str(figure)])
    assert figure.stat().st_size > 10_000
    assert exact.held == 0.0
    f0 = 1.4
    # LuGre's bristle at rest under a load of 1 N; four springs, of which two slip
    expected = {"LuGre": -f0 * np.log(1 - 1 / f0), "MaxwellSlip": (1 - 0.3 * f0) / 0.5}
    for row in rows:
        assert row.held * row.sigma_0 == pytest.approx(expected[row.name], rel=0.03)
        assert abs(row.end - exact.end) < 30.0 / row.sigma_0
        assert row.steps > exact.steps
