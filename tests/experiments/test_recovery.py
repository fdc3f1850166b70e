"""The contest of known truth: its table is that of its scores, and a small part of it holds."""

import csv
import importlib
import json
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import pytest

import frictax as fx
from checks import OPTIMISED

RECOVERY = Path(__file__).resolve().parents[2] / "experiments" / "recovery"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch):
    """Imports a module of the contest."""
    monkeypatch.syspath_prepend(str(RECOVERY))
    return importlib.import_module


def rows() -> list[dict[str, str]]:
    with (RECOVERY / "rows.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_table_is_that_of_the_scores_of_each_machine_and_imperfection(module) -> None:
    scores, kept = module("scores"), rows()
    assert scores.table(kept) in (RECOVERY / "README.md").read_text(encoding="utf-8")
    assert len({(r["machine"], r["imperfection"]) for r in kept}) == 8 * 7
    least = {"missing": 12, "wrong": 12}
    assert all(int(r["seeds"]) >= least.get(r["imperfection"], 50) for r in kept)


def test_what_is_measured_hangs_on_the_seed_alone(module) -> None:
    machines, imperfections = module("eight_machines"), module("imperfections")
    case = machines.CASES["sweep"]()
    first, again, other = (
        imperfections.measured(case, "AR .9", seed).outputs["force"] for seed in (3, 3, 4)
    )
    assert (first == again).all()
    assert (first != other).all()


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
@pytest.mark.parametrize(("machine", "imperfection"), [("sliding", "AR .9"), ("servo", "white")])
def test_intervals_of_20_seeds_hold_the_truth_and_those_of_white_residuals_do_not(
    module, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machine: str, imperfection: str
) -> None:
    run, scores = module("run"), module("scores")
    # no score below is of the notices, whose search for missing terms is long
    monkeypatch.setattr(fx.FitResult, "notices", fx.FitResult.notices_at_hand)
    filter_jit: Any = eqx.filter_jit  # its declared type has no compiler options
    residuals = filter_jit(lambda problem, x: problem.residuals(x), compiler_options=OPTIMISED)
    monkeypatch.setattr(module("finders"), "_residuals", residuals)
    run.runs(tmp_path, machine, imperfection, 20, time.time() + 600.0)
    found = scores.scored(run.read(tmp_path / f"{machine} {imperfection}.csv"), machine, "")
    ours = [r for r in found if r["contestant"] == "frictax"]
    assert all(r["answered"] == "1" and float(r["coverage"]) >= 0.85 for r in ours), ours
    # white noise too: windows share the errors of their starts
    others = [float(r["coverage"]) for r in found if r["contestant"] == "scipy"]
    assert min(others) < 0.7


def test_of_missing_terms_the_table_is_that_of_the_counts_and_right_machines_lack_next_to_nothing(
    module,
) -> None:
    terms = module("missing_terms")
    cells = terms.read(RECOVERY / "missing_terms.csv")
    assert "\n".join(terms.table(cells)) in (RECOVERY / "README.md").read_text(encoding="utf-8")
    assert len(cells) == 6 * (7 * 4 + 2 * 3)
    assert all(c.right + c.wrong + c.nothing == c.seeds >= 3 for c in cells.values())
    of_right = [c for c in cells.values() if c.term in (terms.RIGHT, terms.OTHER)]
    assert sum(c.wrong for c in of_right) <= 0.03 * sum(c.seeds for c in of_right)
    lacking = [c for c in cells.values() if c.term not in (terms.RIGHT, terms.OTHER)]
    for noise, least in (("white", 0.95), ("steps", 0.9)):
        mine = [c for c in lacking if c.noise == noise and c.term != "series stiffness"]
        assert sum(c.right for c in mine) >= least * sum(c.seeds for c in mine), noise


@pytest.mark.slow
def test_of_a_right_gear_on_windows_under_noise_with_a_memory_nothing_is_named(module) -> None:
    # starts of windows that were read from the record made any term look like a gain: 5 of 11
    machines = module("six_machines")
    rig = machines.gear()
    record = machines.recorded(rig, "", "AR .9", 2)
    assert not machines.fitted(rig, record, other=True).missing().found


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_a_ripple_between_stops_is_named_under_an_encoder_s_steps(module) -> None:
    # blocks of time had no power where few reversals tell: 3 of 8
    machines = module("six_machines")
    rig = machines.stops()
    records = [machines.recorded(rig, "ripple", "steps", seed) for seed in (3, 4, 5)]
    found = [machines.fitted(rig, record).missing().found for record in records]
    assert sum(bool(terms) for terms in found) >= 2  # the first one's chance is 1.3 %
    assert all("ripple" in terms[0].name for terms in found if terms)


def test_results_of_two_versions_are_compared_in_standard_errors(module) -> None:
    numbers = {"degrees of freedom": 20.0, "least cost": 1.5, "noise scale": 0.1}
    row = [2.0, 0.1, 1.8, float("inf")]
    old = {"sweep, white": {"table": {"F_prop": row}, "numbers": numbers, "notices": []}}
    other = {"F_prop": [2.05, *row[1:]]}
    new = {"sweep, white": {"table": other, "numbers": numbers, "notices": ["remembers"]}}
    differences = module("versions").differences
    assert differences(old, old) == []
    assert differences(old, new) == [
        "sweep, white: F_prop differs by 0.5 standard errors",
        "sweep, white: notice 'remembers' of the new version only",
    ]


@pytest.mark.slow
def test_two_fits_of_the_same_records_do_not_differ(module, tmp_path: Path) -> None:
    versions = module("versions")
    records, results = tmp_path / "records.npz", [tmp_path / "old.json", tmp_path / "new.json"]
    versions.make_records(records, ["sweep"], ["white"])
    for file in results:
        versions.fit_records(records, file)
    old, new = (json.loads(file.read_text(encoding="utf-8")) for file in results)
    assert set(old["sweep, white"]["table"]) == {"F_prop", "F_Coulomb", "F_Stribeck", "fexp"}
    assert versions.differences(old, new) == []
