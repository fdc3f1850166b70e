"""The problems of `identification/`: they can be read, their results are theirs, and the table says
what the results say.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from frictax.problems import identify, overview, read

MACHINES = (
    "emps",
    "presliding_tribometer",
    "screw_drive_1",
    "screw_drive_2",
    "xl330_pendulum",
)


def folder_of(root: Path, machine: str) -> Path:
    return root / "identification" / machine


def result(root: Path, machine: str) -> Any:
    return json.loads((folder_of(root, machine) / "result.json").read_text())


@pytest.mark.parametrize("machine", MACHINES)
def test_a_result_was_made_from_the_problem_beside_it(root: Path, machine: str) -> None:
    problem = (folder_of(root, machine) / "problem.toml").read_bytes()
    assert result(root, machine)["problem"]["sha256"] == hashlib.sha256(problem).hexdigest()
    assert (folder_of(root, machine) / "parameters.toml").exists()
    assert (folder_of(root, machine) / "README.md").exists()


def test_the_table_says_what_the_results_say(root: Path) -> None:
    assert overview(root / "identification") in (root / "identification" / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["screw_drive_1", "screw_drive_2"])
def test_a_problem_gives_its_result_again(root: Path, machine: str) -> None:
    found = identify(folder_of(root, machine)).found
    stated = {e["name"]: e for e in result(root, machine)["fit"]["estimates"]}
    assert set(stated) == set(found.names)
    for estimate in found.estimates:
        assert estimate.value == pytest.approx(stated[estimate.name]["value"], rel=1e-5)
        assert estimate.standard_error == pytest.approx(
            stated[estimate.name]["standard_error"], rel=1e-4
        )


@pytest.mark.parametrize("machine", ["emps", "presliding_tribometer", "xl330_pendulum"])
def test_problems_on_public_records_can_be_read(
    root: Path, machine: str, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRICTAX_DATA", str(data_folder))
    problem = read(folder_of(root, machine), allow_code=True)
    assert set(problem.sources.items()) <= set(result(root, machine)["problem"]["sources"].items())
    assert problem.fitted_records


def test_emps_is_explained_by_a_physical_structure_and_the_table_set_aside_for_other_speeds(
    root: Path,
) -> None:
    made = result(root, "emps")
    rows = {row["name"]: row for row in made["structure"]["structures"]}
    assert made["structure"]["chosen"] == "by direction"
    # it follows the record more closely, ...
    assert rows["table of 10 speeds"]["trajectory"] < rows["by direction"]["trajectory"]
    assert "set aside" in made["structure"]["reason"]  # ... and is not taken
    assert "at speeds left out" in made["structure"]["reason"]
    assert {v["record"] for v in made["validation"]} == {"validation"}
    window = next(v for v in made["validation"] if v["objective"].startswith("Windows"))
    assert window["rms"]["mass.s"] < 1.6e-3
