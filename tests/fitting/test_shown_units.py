"""Tables keep the units of the records, and each record's own number has that of its record."""

import json

import numpy as np
import pytest

import frictax as fx
from frictax.fitting.result.units import in_records

T = np.linspace(0.0, 1.0, 201)
TAU = 0.05 * np.sin(9.0 * T)
DEG = 180 / np.pi


def rig(J: float = 2e-4, w: float = 0.0) -> fx.Mechanism:
    law = fx.Coulomb(F_Coulomb=4e-3, F_prop=1e-4)
    return fx.Mechanism(
        rotor=fx.Inertia(J=J, w=w),
        bearing=fx.BearingFriction("rotor", tau_pos=law),
        motor=fx.Torque("rotor", fx.Sampled(T, TAU)),
    )


def spun(name: str, w: float, torque: str, speed: str, angle: str = "rad") -> fx.Record:
    run = fx.simulate(rig(w=w), T)["rotor"]
    noise = np.random.default_rng(len(name)).standard_normal((2, T.size))
    sizes = {"N.cm": 100.0, "N.m": 1.0, "mN.m": 1e3, "rpm": 30 / np.pi, "deg/s": DEG, "deg": DEG}
    return fx.Record(
        T,
        {"motor": TAU * sizes[torque]},
        {
            "rotor.w": (np.asarray(run.w) + 0.05 * noise[0]) * sizes[speed],
            "rotor.phi": (np.asarray(run.phi) + 0.01 * noise[1] + 0.02) * sizes.get(angle, 1.0),
        },
        sd={"rotor.w": 0.05 * sizes[speed], "rotor.phi": 0.01 * sizes.get(angle, 1.0)},
        units={"motor": torque, "rotor.w": speed, "rotor.phi": angle},
        name=name,
    )


@pytest.fixture(scope="module")
def found():
    records = [spun("one", 3.0, "N.cm", "rpm", "deg"), spun("other", -5.0, "N.cm", "deg/s", "deg")]
    free = ["rotor.J", "bearing.tau_pos", "outputs.rotor.phi.offset"]
    found = fx.fit(rig(), records, free=free, own=["rotor.w"])
    vars(found)["notices"] = found.notices_at_hand  # printed without a search for missing terms
    return found


@pytest.mark.slow
def test_torques_speeds_and_angles_are_printed_as_the_records_have_them(found):
    units = {e.name: e.shown.unit for e in found.estimates}
    assert units == {
        "rotor.J": "kg.m2",
        "bearing.tau_pos.F_Coulomb": "N.cm",
        "bearing.tau_pos.F_prop": "N.cm.s/rad",
        "outputs.rotor.phi.offset": "deg",
        "rotor.w@one": "rpm",
        "rotor.w@other": "deg/s",
    }
    rows = {e.name: e for e in found.estimates}
    for name, size in (("rotor.w@one", np.pi / 30), ("rotor.w@other", 1 / DEG)):
        e = rows[name]
        assert float(e.shown.value) * size == pytest.approx(e.value, abs=0.1 * e.standard_error)
        assert f"{e.shown.value}" in str(found)
    assert abs(rows["outputs.rotor.phi.offset"].value - 0.02) < 0.01


@pytest.mark.slow
def test_each_rms_has_the_unit_of_its_record(found):
    text = str(found)
    assert found.rms_in_words("one")["rotor.w"].endswith(" rpm")
    assert found.rms_in_words("other")["rotor.w"].endswith(" deg/s")
    for label in ("one", "other"):
        line = next(line for line in text.splitlines() if line.startswith(f"{label}: "))
        words = found.rms_in_words(label)
        assert (
            line == f"{label}: rms rotor.w {words['rotor.w']}, rms rotor.phi {words['rotor.phi']}"
        )
        value, unit = words["rotor.phi"].split()
        assert unit == "deg"
        assert float(value) / DEG == pytest.approx(found.rms[label]["rotor.phi"], rel=0.01)


@pytest.mark.slow
def test_json_has_si_and_beside_it_the_unit_of_the_record(found):
    told = {e["name"]: e for e in json.loads(found.to_json())["estimates"]}
    e = told["bearing.tau_pos.F_Coulomb"]
    assert e["unit"] == "N.m"
    assert e["in_records"]["unit"] == "N.cm"
    for key in ("value", "standard_error", "lower", "upper"):
        assert e["in_records"][key] == pytest.approx(100 * e[key])
    assert "in_records" not in told["rotor.J"]


@pytest.mark.parametrize(
    ("units", "si", "path", "value", "told"),
    [
        (("N.cm", "rpm"), "N.m", "bearing.F", 0.01, ("N.cm", 0.01)),
        (("N.cm", "rpm"), "N.m/rad", "shaft.c", 5.0, ("N.cm/rad", 0.01)),
        (("N.cm", "rpm"), "N", "brake.fn_max", 5.0, None),
        (("N.cm", "rpm"), "kg.m2", "rotor.J", 1e-4, None),
        (("N.cm", "rpm"), "1", "bearing.peak", 1.1, None),
        (("mN.m", "rpm"), "N.m", "bearing.F", 0.004, ("mN.m", 1e-3)),
        (("mN.m", "rpm"), "N.m", "bearing.F", 4e-6, None),  # a prefix that suits better
        (("N.m", "rpm"), "N.m", "bearing.F", 0.004, None),
    ],
)
def test_a_unit_is_that_of_the_records_where_they_have_one(units, si, path, value, told):
    made = in_records({"run": spun("run", 0.0, *units)}, si, path, value)
    assert made == (told if told is None else (told[0], pytest.approx(told[1])))


def test_records_that_differ_in_a_unit_leave_it_to_a_prefix():
    records = {n: spun(n, 0.0, unit, "rpm") for n, unit in (("a", "N.cm"), ("b", "mN.m"))}
    assert in_records(records, "N.m", "bearing.F", 0.01) is None
    assert in_records({"b": records["b"]}, "N.m", "bearing.F", 0.01) == ("mN.m", 1e-3)
