"""A fit to records as JSON: strict, with units, and no digit lost; and as a report."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frictax as fx
from frictax.fitting.result.units import unit_of
from frictax.parameters import parameters


def strict(text: str) -> Any:
    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def found() -> fx.FoundMachine:
    t = np.linspace(0.0, 2.0, 401)
    shaft = fx.Mechanism(
        rotor=fx.Inertia(J=1.0),
        bearing=fx.BearingFriction(
            "rotor", tau_pos=fx.Coulomb(F_Coulomb=1.0, F_prop=0.01), peak=1.2
        ),
        motor=fx.Torque("rotor", 2.0),
    )
    record = fx.Record(
        t,
        {"motor": 2 + 0 * t},
        {"rotor.phi": 0.35 * t**2 + 1e-6 * np.sin(40 * t)},
        name="run-up",
        citation="A. Nobody",
    )
    free = ["bearing.tau_pos.F_Coulomb", "bearing.tau_pos.F_prop", "bearing.peak"]
    return fx.fit(shaft, record, free=free, objective=fx.InverseDynamics())


def test_estimates_round_trip_with_their_units(found: fx.FoundMachine) -> None:
    read = strict(found.to_json())
    for row, e in zip(read["estimates"], found.estimates, strict=True):
        for name in ("name", "unit", "value", "standard_error", "lower", "upper"):
            here = getattr(e, name)
            assert row[name] == (
                None if isinstance(here, float) and not np.isfinite(here) else here
            )
    there = np.array(read["covariance"]["values"], dtype=float)  # null becomes nan
    np.testing.assert_array_equal(there, np.asarray(found.covariance))
    assert (
        read["covariance"]["names"]
        == read["correlation"]["names"]
        == [e.name for e in found.estimates]
    )
    assert (read["level"], read["degrees_of_freedom"], read["noise_scale"]) == (
        found.level,
        found.dof,
        found.noise_scale,
    )
    assert (read["converged"], read["warnings"]) == (found.converged, list(found.warnings))


def test_every_parameter_of_the_machine_is_there_with_its_unit(found: fx.FoundMachine) -> None:
    rows = {row["name"]: row for row in strict(found.to_json())["parameters"]}
    known = {p.path: np.asarray(p.value).tolist() for p in parameters(found.model)}
    assert {name: row["value"] for name, row in rows.items()} == known
    assert [name for name, row in rows.items() if row["fitted"]] == [
        e.path for e in found.estimates
    ]
    units = {name: row["unit"] for name, row in rows.items()}
    assert units["rotor.J"] == "kg.m2"
    assert units["motor.tau.k"] == "N.m"


def test_numbers_of_laws_and_signals_have_the_unit_of_what_they_belong_to() -> None:
    shaft = fx.Mechanism(
        rotor=fx.Inertia(J=1.0),
        bearing=fx.BearingFriction("rotor", tau_pos=fx.Coulomb(F_Coulomb=1.0)),
        brake=fx.Brake("rotor", mu_pos=[[0, 0.5]], f_normalized=fx.Sine(amplitude=1.0)),
        motor=fx.Torque("rotor", fx.Pulse()),
        slide=fx.Mass(m=1.0),
        guide=fx.SupportFriction("slide", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    )
    units = {p.path: unit_of({}, shaft)(p) for p in parameters(shaft)}
    assert units["bearing.tau_pos.F_prop"] == "N.m.s/rad"
    assert (units["guide.f_pos.F_prop"], units["slide.m"], units["guide.peak"]) == (
        "N.s/m",
        "kg",
        "1",
    )
    assert (units["brake.mu_pos.f"], units["brake.mu_pos.v"], units["brake.fn_max"]) == (
        "1",
        "rad/s",
        "N",
    )
    assert (units["brake.f_normalized.amplitude"], units["brake.f_normalized.f"]) == ("1", "Hz")
    assert (
        units["motor.tau.amplitude"],
        units["motor.tau.nperiod"],
        units["motor.tau.period"],
    ) == ("N.m", "1", "s")


def test_records_say_how_long_they_are_and_how_well_they_are_met(found: fx.FoundMachine) -> None:
    (record,) = strict(found.to_json())["records"].values()
    assert (record["name"], record["citation"], record["samples"]) == ("run-up", "A. Nobody", 401)
    assert record["duration"] == {"value": 2.0, "unit": "s"}
    assert record["inputs"] == {"motor": "N.m"}
    assert record["outputs"] == {"rotor.phi": "rad"}
    # What inverse dynamics compares is the torque.
    assert record["rms"] == {
        "force on rotor": {"value": found.rms["run-up"]["force on rotor"], "unit": "N.m"}
    }


def test_the_text_is_the_same_each_time(found: fx.FoundMachine) -> None:
    assert found.to_json() == found.to_json()


@pytest.mark.slow
def test_a_fit_to_records_writes_its_report_over_its_own_and_over_nothing_else(
    found: fx.FoundMachine, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"is infinite \(a start only\)"):
        found.profile("bearing.tau_pos.F_Coulomb")
    score = found.free_run("run-up", draws=10)
    path = found.report(tmp_path / "report.html")
    text = path.read_text()
    for says in (
        "Mechanism fitted to run-up",
        "A. Nobody",
        "rms of force on rotor",
        "friction [N.m]",
        "Expected accuracy of run-up",
        "Errors: a start only",
    ):
        assert says in text, says
    assert " N rms of force on rotor" not in text  # of what turns it is a torque
    found.report(path, title="Again", notes="A note.", scores=[score])
    again = path.read_text()
    assert all(says in again for says in ("<title>Again</title>", "A note.", "run-up: free run"))
    with pytest.raises(FileExistsError, match=r"report.html exists. Let it be overwritten"):
        found.report(path, overwrite=False)
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="is not a report of frictax"):
        found.report(path)
    assert path.read_text() == "mine"
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        found.report(tmp_path / "nowhere" / "report.html")
