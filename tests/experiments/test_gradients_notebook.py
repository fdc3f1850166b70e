"""The notebook on gradients runs from top to bottom, shows what its cells give, and what it says is
so.
"""

import ast
import contextlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import frictax as fx

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?")


@pytest.fixture(scope="module")
def path(root: Path) -> Path:
    return root / "experiments" / "02_gradients_through_stick_slip.ipynb"


@pytest.fixture(scope="module")
def cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


@pytest.fixture(scope="module")
def executed(path: Path, cells: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """The variables that the notebook leaves behind, and what each code cell prints.

    Its cells are plain Python: no kernel is needed.
    """
    namespace: dict[str, Any] = {"__name__": "__notebook__"}
    printed = []
    with matplotlib.rc_context():
        for cell in _code(cells):
            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                exec(compile("".join(cell["source"]), f"{path}:{cell['id']}", "exec"), namespace)
            printed.append(text.getvalue())
        yield namespace, printed
    plt.close("all")


@pytest.fixture(scope="module")
def found(executed: tuple[dict[str, Any], list[str]]) -> dict[str, Any]:
    return executed[0]


@pytest.fixture(scope="module")
def answer(cells: list[dict[str, Any]]) -> str:
    last = "".join(cells[-1]["source"])
    assert last.startswith("## Answer")
    return last


@pytest.mark.slow
def test_speed_has_no_derivative_while_stuck_and_position_keeps_its_own(
    found: dict[str, Any],
) -> None:
    stuck = np.asarray(found["stuck"])
    for name in found["p"]:
        assert np.all(np.asarray(found["dv"][name])[stuck] == 0.0)
        within = stuck[1:] & stuck[:-1]
        assert np.all(np.diff(np.asarray(found["ds"][name]))[within] == 0.0)
    assert np.mean(stuck) > 0.5


@pytest.mark.slow
def test_the_derivative_of_speed_jumps_by_the_saltation_at_every_event(
    found: dict[str, Any],
) -> None:
    for name in found["p"]:
        # The motion is asked for a microsecond before and after the event.
        assert np.asarray(found["jump"][name]) == pytest.approx(
            np.asarray(found["saltation"][name]), rel=1e-4, abs=1e-5
        )
    # At the first breakaway friction drops from 13.2 N to 12 N, which accelerates 2 kg, and
    # dt/dpeak is 12 N / (4.5 N/s).
    assert float(found["jump"]["peak"][0]) == pytest.approx(-(1.2 / 2.0) * (12.0 / 4.5), rel=1e-4)
    assert np.all(np.abs(found["jump"]["peak"]) > 1.5)


@pytest.mark.slow
def test_reverse_mode_gives_what_forward_mode_gives(found: dict[str, Any], answer: str) -> None:
    for name in found["p"]:
        assert float(found["reverse"][name]) == pytest.approx(
            float(found["forward"][name]), rel=1e-10
        )
    assert "agree to ten digits" in answer


@pytest.mark.slow
def test_the_breakaway_time_of_the_ramp_and_its_derivative_are_those_by_hand(
    found: dict[str, Any], answer: str
) -> None:
    rate = found["c"] * found["V"]
    assert float(found["events"][0]) == pytest.approx(1.1 * 12.0 / rate, rel=1e-12)
    assert float(found["dt"]["peak"][0]) == pytest.approx(12.0 / rate, rel=1e-12)
    assert float(found["dt"]["F_Coulomb"][0]) == pytest.approx(1.1 / rate, rel=1e-12)
    breakaways = found["dt"]["peak"][0::2]
    assert np.all(np.diff(breakaways) > 0)
    assert f"is {breakaways[0]:.3f} s at the first breakaway" in answer
    assert f"grows to {breakaways[3]:.3f} s at the fourth" in answer


@pytest.mark.slow
def test_the_tangents_lie_on_the_curves_of_the_event_times(found: dict[str, Any]) -> None:
    for name, (x, _) in found["SWEPT"].items():
        times, slopes = map(np.asarray, found["curves"][name])
        seen = np.all(np.isfinite(times[:, :6]), axis=1)
        assert np.sum(seen) > 20
        # The slope in the middle of three values, against the difference of the outer two.
        differences = (times[2:, :6] - times[:-2, :6]) / (x[2:] - x[:-2])[:, None]
        inner = (seen[2:] & seen[:-2])[1:]  # without the edge peak = 1
        assert slopes[2:-1, :6][inner] == pytest.approx(differences[1:][inner], rel=0.03)


@pytest.mark.slow
def test_differences_find_the_derivative_where_events_are_located_and_nothing_where_they_are_not(
    found: dict[str, Any], answer: str
) -> None:
    exact, coarse, fine = found["ends"]
    assert found["jax_error"] < 1e-6
    assert found["errors"][exact].min() < 1e-9
    assert f"moves by {found['truth']:.3f} m per unit of `peak`" in answer
    small = found["sizes"] < 1e-7
    for name in (coarse, fine):
        assert np.all(found["slopes"][name] == 0.0)  # by JAX
        assert np.all(found["quotients"][name][small] == 0.0)
        assert found["errors"][name].min() > 1e-4


@pytest.mark.slow
def test_the_fit_by_hand_comes_down_to_the_noise_and_to_the_truth(
    found: dict[str, Any], answer: str
) -> None:
    losses = np.asarray(found["losses"])
    assert losses[0] > 100
    assert losses[-1] == pytest.approx(
        found["fits"]["exact, JAX"].cost * 2 / found["times"].size, rel=1e-5
    )
    assert f"to a loss of {losses[-1]:.3f}" in answer
    for name, value in found["p"].items():
        assert abs(found["found"][name] - value) < found["deviations"][name]
        assert abs(found["guess"][name] / value - 1) > 0.15
    assert f"`peak` {found['found']['peak']:.3f} ± {found['deviations']['peak']:.3f}" in answer


@pytest.mark.slow
def test_least_squares_over_fixed_steps_claims_success_where_it_began_in_peak(
    found: dict[str, Any], answer: str
) -> None:
    stalled, differences, exact = found["fits"].values()
    assert stalled.success
    assert stalled.x[-1] == pytest.approx(found["guess"]["peak"], abs=1e-6)
    assert 2 * stalled.cost / found["times"].size > 5
    assert f"`peak` still at the guess of {stalled.x[-1]:.3f}" in answer
    # The fixed steps are not too coarse for the record: at the truth they fit it.
    assert found["at_truth"] < 1.05
    assert differences.x == pytest.approx(exact.x, rel=1e-3)
    assert exact.nfev + exact.njev < 0.4 * (differences.nfev + 5 * differences.njev)


@pytest.mark.slow
def test_the_stored_outputs_are_what_the_cells_print(
    cells: list[dict[str, Any]], executed: tuple[dict[str, Any], list[str]]
) -> None:
    for cell, now in zip(_code(cells), executed[1], strict=True):
        stored = "".join(
            "".join(out["text"]) for out in cell["outputs"] if out["output_type"] == "stream"
        )
        words = [re.sub(r"\s+", " ", NUMBER.sub("#", text)) for text in (stored, now)]
        assert words[0] == words[1], cell["id"]
        # Where a fit by differences ends and after how many runs hangs on the last digits.
        rel = 0.3 if "least_squares(" in "".join(cell["source"]) else 0.01
        for a, b in zip(NUMBER.findall(stored), NUMBER.findall(now), strict=True):
            if "e-" in a:  # a power of ten that bounds an error
                assert abs(np.log10(float(a) / float(b))) < 1.5, (cell["id"], a, b)
            else:
                assert float(b) == pytest.approx(float(a), rel=rel, abs=1e-3), cell["id"]


def test_the_notebook_is_small_was_run_in_order_and_holds_nothing_of_the_machine(
    path: Path, cells: list[dict[str, Any]]
) -> None:
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 400_000
    assert [cell["execution_count"] for cell in _code(cells)] == list(
        range(1, len(_code(cells)) + 1)
    )
    figures = 0
    for cell in cells:
        assert cell["metadata"] == {}
        for out in cell.get("outputs", ()):
            assert out["output_type"] in ("stream", "display_data", "execute_result")
            assert out.get("name") != "stderr"
            figures += "image/png" in out.get("data", {})
    assert figures == 5
    assert json.loads(text)["metadata"] == {"language_info": {"name": "python"}}
    for trace in (
        "/home",
        "/Users",
        "/opt/",
        "/tmp",
        "site-packages",
        ".venv",
        "Warning",
        "Traceback",
    ):
        assert trace not in re.sub(r'"image/png": ".*"', "", text)


def test_the_notebook_uses_only_public_names_and_no_magic(cells: list[dict[str, Any]]) -> None:
    for cell in _code(cells):
        for node in ast.walk(ast.parse("".join(cell["source"]))):  # a magic would not parse
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "fx"
            ):
                assert node.attr in dir(fx)
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith("frictax")


def test_the_answer_is_in_the_table_of_questions(root: Path, path: Path) -> None:
    table = (root / "experiments" / "README.md").read_text(encoding="utf-8")
    assert f"[{path.name}]({path.name})" in table


def _code(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [cell for cell in cells if cell["cell_type"] == "code"]
