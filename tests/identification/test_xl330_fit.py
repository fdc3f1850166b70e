"""What is stated of the XL330 pendulum: one plant for three free decays."""

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

import frictax as fx
from frictax.report.plots import friction_plot


@pytest.fixture(scope="module")
def identify(root: Path, data_folder: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "identification" / "xl330_pendulum"))
        patch.setenv("FRICTAX_DATA", str(data_folder))
        yield importlib.import_module("identify")


@pytest.fixture(scope="module")
def fits(identify: Any) -> dict[str, Any]:
    records = list(identify.decays().values())
    first = identify.coulomb(records)
    plant = identify.plant(first)
    return {
        "Coulomb and viscous": first,
        "Stribeck": identify.stribeck(records, plant),
        "load": identify.loaded(records, plant),
    }


@pytest.mark.slow
def test_one_plant_explains_three_decays_to_less_than_10_mrad(
    identify: Any, fits: dict[str, Any]
) -> None:
    found = fits["Coulomb and viscous"]
    assert identify.rms(found) < 7e-3
    assert all(found.rms[label]["phi"] < 10e-3 for label in found.records)
    assert found.converged
    assert found.values["phi_offset"] == pytest.approx(0.0300, abs=5e-4)


@pytest.mark.slow
def test_all_dead_stops_lie_in_the_stick_band(identify: Any, fits: dict[str, Any]) -> None:
    assert all(identify.held(found) for found in fits.values())


@pytest.mark.slow
def test_friction_proportional_to_the_load_takes_less_than_a_hundredth_of_the_misfit(
    identify: Any, fits: dict[str, Any]
) -> None:
    assert 0.99 < identify.rms(fits["load"]) / identify.rms(fits["Coulomb and viscous"]) < 1.0
    names = list(fits["load"].names)
    pair = names.index("share"), names.index("pendulum.friction.f_pos.F_prop")
    assert fits["load"].correlation[pair] < -0.95


@pytest.mark.slow
def test_the_readme_quotes_the_fits(identify: Any, fits: dict[str, Any], root: Path) -> None:
    page = (root / "identification" / "xl330_pendulum" / "README.md").read_text(encoding="utf-8")
    rows = {
        "Coulomb and viscous": "Coulomb and viscous",
        "Stribeck": "Stribeck",
        "load": "Coulomb and viscous, and a share of the load",
    }
    for name, row in rows.items():
        line = re.search(rf"^\| {re.escape(row)} \| (\d+) \| ([\d.]+) \|", page, re.MULTILINE)
        assert line, row
        assert int(line[1]) == len(fits[name].estimates)
        assert float(line[2]) == pytest.approx(1e3 * identify.rms(fits[name]), abs=0.02)


@pytest.mark.slow
def test_a_report_draws_its_friction_as_a_torque_over_the_rate(fits: dict[str, Any]) -> None:
    found = fits["Coulomb and viscous"]
    drawn = json.dumps(friction_plot(found, found.uncertainty(by=fx.White()), None))
    assert "friction [mN.m]" in drawn
    assert "velocity [rad/s]" in drawn
