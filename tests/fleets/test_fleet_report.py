"""The page of a fleet: whole, small, safe, and drawn by a browser."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import frictax as fx
from fleet_tables import axes, table
from frictax.fleets.page.report import drift_lines, fleet_report_text
from frictax.fleets.statistics.estimates import read_estimates
from report.browser import look, needs_browser

EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"


def _fleet(seed: int = 0, machines: int = 30, records: int = 8) -> pd.DataFrame:
    drift = np.where(np.arange(machines) < 2, 1.5, 0.0)
    fleet = axes(np.random.default_rng(seed), machines, records, drift=drift)
    rng, n = np.random.default_rng(seed), len(fleet)
    fleet["mass.m"] = 2.0 + 0.1 * rng.standard_normal(n)
    fleet["mass.m.standard_error"] = 0.02
    fleet.attrs["frictax"]["names"] += ["mass.m"]
    fleet.attrs["frictax"]["units"]["mass.m"] = "kg"
    fleet["reason"], fleet["notices"] = "", ""
    fleet.loc[3, "mass.m"] = 4.0
    fleet.loc[5, "reason"] = "The record is empty."
    fleet.loc[:9, "notices"] = "near-bound remembers"
    fleet["report"] = [f"reports/{r} 1.html" for r in fleet["record"]]
    return fleet


@pytest.fixture(scope="module")
def text() -> str:
    return fleet_report_text(_fleet(), limits={"mass.m": (1.8, 2.2)}, command="frictax fleet x")


def test_a_page_has_all_that_a_fleet_tells(text: str) -> None:
    sections = re.findall(r'<section id="([a-z]+)">', text)
    assert sections == [
        "verdicts",
        "population",
        "outliers",
        "drift",
        "parallel",
        "failed",
        "notices",
        "again",
    ]
    assert "A synthetic fleet" in text
    assert "The record is empty." in text
    assert '<a href="reports/r3%201.html">r3</a>' in text
    assert re.search(r"near-bound</td>\s*<td[^>]*>10</td>", text)
    assert "axis 0" in text


def test_a_page_loads_nothing_and_is_below_three_megabytes(text: str) -> None:
    assert len(text.encode()) < 3e6
    assert not re.findall(r'(?:src|srcset)="(?!data:)', text)
    assert not re.findall(r'href="https?:', text)


def test_names_cannot_become_code(tmp_path: Path) -> None:
    fleet = _fleet()
    fleet.loc[3, ["record", "machine"]] = EVIL
    fleet.loc[5, "reason"] = EVIL
    fleet.attrs["frictax"]["title"] = EVIL
    fleet["report"] = "javascript:alert(3)"
    path = fx.write_fleet_report(fleet, tmp_path / "fleet.html", limits={"mass.m": (1.8, 2.2)})
    page = path.read_text(encoding="utf-8")
    library = re.search(r'id="library">(.*?)</script>', page, re.DOTALL)
    assert library is not None
    rest = page.replace(library.group(1), "")
    assert "<img src=x" not in rest
    assert "<script>alert" not in rest
    assert "javascript:" not in rest


@pytest.mark.slow
def test_ten_thousand_records_stay_below_three_megabytes() -> None:
    rng, n = np.random.default_rng(0), 10_000
    fleet = table(
        {"a": rng.standard_normal(n), "b": rng.standard_normal(n)},
        {"a": 0.1, "b": 0.1},
        report=[f"reports/{i}.html" for i in range(n)],
    )
    fleet.loc[:500, "a"] += 20.0
    assert len(fleet_report_text(fleet, limits={"a": (-1, 1)}).encode()) < 3e6


def test_a_fleet_of_one_number_without_dates_has_a_page_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    plain = pd.DataFrame({"F": 7 + rng.standard_normal(20), "F.standard_error": 0.1})
    path = fx.write_fleet_report(plain, tmp_path / "fleet.html", title="Plain", notes=["A note."])
    page = path.read_text(encoding="utf-8")
    assert re.findall(r'<section id="([a-z]+)">', page) == ["population", "outliers", "again"]
    assert "<p>A note.</p>" in page
    with pytest.raises(FileExistsError):
        fx.write_fleet_report(plain, path, overwrite=False)


@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_a_relative_drift_is_drawn_on_one_scale(unit: float) -> None:
    """Machines, mean and band of a parameter in millionths of a newton are logarithms, too."""
    fleet = axes(np.random.default_rng(1), 6, 8)
    (name,) = fleet.attrs["frictax"]["names"]
    fleet.attrs["frictax"]["lower_bounds"][name] = 0.0
    for column in (name, f"{name}.standard_error"):
        fleet[column] *= unit
    estimates = read_estimates(fleet)
    found, population = fx.drift(fleet, log=[name]), fx.population(fleet)
    figure, _ = drift_lines(found, estimates, population, name)
    values = np.concatenate([np.ravel(np.asarray(t["y"], float)) for t in figure["data"]])
    values = values[np.isfinite(values)]
    assert np.log(5.0 * unit) < np.min(values)
    assert np.max(values) < np.log(10.0 * unit)


def test_a_single_record_has_a_page_without_a_population() -> None:
    page = fleet_report_text(pd.DataFrame({"F": [7.0], "F.standard_error": [0.1]}))
    assert re.findall(r'<section id="([a-z]+)">', page) == ["again"]


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize(("width", "dark"), [(1300, False), (390, True)])
def test_a_browser_draws_every_picture_and_says_nothing(
    text: str, tmp_path: Path, width: int, dark: bool
) -> None:
    page = tmp_path / "fleet.html"
    page.write_text(text, encoding="utf-8")
    probe = """
        var plots = Array.from(document.querySelectorAll(".plot"));
        return { plots: plots.length, drawn: plots.filter(function (one) {
          return one.querySelector(".main-svg"); }).length,
          page: document.documentElement.scrollWidth, room: document.documentElement.clientWidth };
    """
    seen, said = look(page, probe, width=width, dark=dark)
    assert seen["plots"] == seen["drawn"] == 4
    assert seen["page"] <= seen["room"]
    assert said == []
