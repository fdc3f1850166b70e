"""A motion record: reading, units, trimming."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.io import savemat

import frictax as fx
from frictax.measurements.units import ACCELERATION, FORCE, POSITION, VELOCITY
from plain_record import FRAME, UNEVEN, S, T, record, same


def test_csv_parquet_mat_and_pandas_give_the_same_record(tmp_path: Path) -> None:
    names: dict[str, Any] = {
        "time": "t",
        "inputs": {"drive": "F"},
        "outputs": {"mass.s": fx.Column("q", sd=1e-5)},
        "hold": True,
    }
    FRAME.to_csv(tmp_path / "run.csv", index=False)
    FRAME.to_parquet(tmp_path / "run.parquet")
    savemat(tmp_path / "run.mat", {name: FRAME[name].to_numpy()[:, None] for name in FRAME})
    wanted = fx.Record(T, {"drive": FRAME.F}, {"mass.s": FRAME.q}, {"mass.s": 1e-5}, hold=True)
    for read in (fx.Record.from_csv, fx.Record.from_parquet, fx.Record.from_mat):
        suffix = read.__name__.removeprefix("from_")
        found = read(tmp_path / f"run.{suffix}", **names)
        same(found, wanted)
        assert (found.name, found.hold) == ("run", True)
    same(fx.Record.from_pandas(FRAME, **names), wanted)
    same(fx.Record.from_pandas(FRAME.set_index("t"), **names), wanted)


def test_fields_of_a_struct_in_a_mat_file_are_named_with_a_point(tmp_path: Path) -> None:
    savemat(tmp_path / "run.mat", {"log": {"t": T, "axis": {"q": S}}})
    found = fx.Record.from_mat(tmp_path / "run.mat", time="log.t", outputs={"mass.s": "log.axis.q"})
    np.testing.assert_allclose(found.outputs["mass.s"], S)


KINDS = {"s": POSITION, "v": VELOCITY, "a": ACCELERATION, "f": FORCE}


@given(
    st.sampled_from([(v, name) for v, known in KINDS.items() for name in known]),
    st.sampled_from([1, -1]),
    st.floats(1e-3, 1e3),
)
def test_values_and_deviations_are_stored_in_si_whatever_unit_sign_and_gain(
    choice: tuple[str, str], sign: int, gain: float
) -> None:
    variable, name = choice
    column = fx.Column("q", unit=name, sign=sign, gain=gain, sd=0.01)
    found = fx.Record.from_pandas(FRAME, time="t", outputs={f"mass.{variable}": column})
    size = KINDS[variable][name].si
    np.testing.assert_allclose(
        found.outputs[f"mass.{variable}"], sign * gain * S * size, rtol=1e-13
    )
    assert found.sd[f"mass.{variable}"] == pytest.approx(0.01 * gain * size)


def test_a_gain_converts_volts_to_newtons_and_counts_to_radians() -> None:
    force, angle = (
        fx.Column("F", unit="V", gain=35.0, to="N"),
        fx.Column("q", unit="counts", gain=2 * np.pi / 4096, to="rad", sd=0.3),
    )
    found = fx.Record.from_pandas(
        FRAME, time="t", inputs={"drive": force}, outputs={"arm.phi": angle}
    )
    np.testing.assert_allclose(found.inputs["drive"], 35.0 * FRAME.F)
    assert found.sd["arm.phi"] == pytest.approx(0.3 * 2 * np.pi / 4096)
    assert [found.units[name].name for name in ("drive", "arm.phi")] == ["N", "rad"]


def test_counts_in_a_turn_of_a_column_in_another_unit_are_mentioned() -> None:
    frame = FRAME.rename(columns={"q": "angle [deg]"})
    for name, unit in (("angle [deg]", None), ("angle [deg]", "rad")):
        outputs = {"arm.phi": fx.Column(name, unit, per_turn=4096)}
        found = fx.Record.from_pandas(frame, time="t", outputs=outputs)
        assert f"is in {unit or 'deg'}, but `per_turn` reads" in found.notes[0]


def test_a_unit_in_the_columns_name_counts_as_declared_unless_another_is() -> None:
    frame = FRAME.rename(columns={"q": "pos [mm]", "t": "time (ms)"})
    found = fx.Record.from_pandas(frame, time="time (ms)", outputs={"mass.s": "pos [mm]"})
    np.testing.assert_allclose(found.t, 1e-3 * T)
    np.testing.assert_allclose(found.outputs["mass.s"], 1e-3 * S)
    declared = fx.Record.from_pandas(
        frame, time="time (ms)", outputs={"mass.s": fx.Column("pos [mm]", unit="m")}
    )
    np.testing.assert_allclose(declared.outputs["mass.s"], S)
    contradiction = "Column 'pos [mm]' of the DataFrame has mm in its name, but `unit` is m"
    assert found.notes == ()
    assert declared.warnings[0].startswith(contradiction)
    assert declared.decimate(2).warnings[0].startswith(contradiction)
    same = fx.Record.from_pandas(
        frame.rename(columns={"pos [mm]": "arm (°)"}),
        time="time (ms)",
        outputs={"arm.phi": fx.Column("arm (°)", "deg")},
    )
    assert same.notes == ()


def test_undeclared_a_part_that_turns_turns_in_all_its_variables_and_so_does_its_drive() -> None:
    found = record(outputs={"arm.phi": S, "arm.a": -S})
    assert {name: unit.name for name, unit in found.units.items()} == {
        "drive": "N.m",
        "arm.phi": "rad",
        "arm.a": "rad/s2",
    }


def test_dates_become_seconds_since_the_first() -> None:
    frame = FRAME.assign(
        when=pd.Timestamp("2026-01-15 10:28", tz="Europe/Paris") + pd.to_timedelta(T, unit="s")
    )
    same(
        fx.Record.from_pandas(frame, time="when", outputs={"mass.s": "q"}),
        fx.Record(T, outputs={"mass.s": S}),
    )
    dates = np.datetime64("2026-01-15", "us") + np.round(T * 1e6).astype("m8[us]")
    same(fx.Record(dates, outputs={"mass.s": S}), fx.Record(T, outputs={"mass.s": S}))


def test_standard_deviations_may_change_from_row_to_row() -> None:
    frame = FRAME.assign(std=0.01 + T)
    found = fx.Record.from_pandas(
        frame, time="t", outputs={"mass.s": fx.Column("q", unit="mm", sign=-1, sd="std")}
    )
    np.testing.assert_allclose(found.sd["mass.s"], 1e-3 * (0.01 + T))
    np.testing.assert_allclose(found.decimate(10).sd["mass.s"], 1e-3 * (0.01 + T)[::10])


def test_a_record_cannot_be_written_to_and_does_not_follow_its_source() -> None:
    q = S.copy()
    found = record(outputs={"mass.s": q})
    q[:] = 0.0
    assert found.outputs["mass.s"][5] == S[5]
    with pytest.raises(ValueError, match="read-only"):
        found.outputs["mass.s"][0] = 1.0


def test_trimming_keeps_the_times_of_the_source_unless_they_are_reset() -> None:
    found = record().trim(0.5, 1.5)
    assert (found.t[0], found.t[-1], found.n) == (0.5, 1.5, 201)
    np.testing.assert_array_equal(found.outputs["mass.s"], S[100:301])
    np.testing.assert_array_equal(found.inputs["drive"], np.cos(3 * T)[100:301])
    again = record().trim(0.5, 1.5, reset=True)
    assert (again.t[0], again.t[-1]) == (0.0, 1.0)
    assert record().trim(end=0.5).n == record().trim(-7.0, 0.5).n == 101


def test_rate_duration_and_uniformity_describe_the_times() -> None:
    assert (record().n, record().duration, round(record().rate, 9), record().uniform) == (
        401,
        2.0,
        200.0,
        True,
    )
    assert not record(UNEVEN).uniform


def test_names_from_an_array_of_texts_become_plain_texts() -> None:
    """Compiled programs take a name of type `numpy.str_` for a number."""
    drive, angle, run = np.array(["drive", "mass.s", "run"])
    one = fx.Record(T, {drive: FRAME.F}, {angle: FRAME.q}, {angle: 1e-5}, name=run)
    given = [one.name, *one.inputs, *one.outputs, *one.sd, *one.units]
    assert all(type(name) is str for name in given)


def test_a_free_decay_has_no_input() -> None:
    assert fx.Record(T, outputs={"mass.s": S}).inputs == {}


def test_reading_a_csv_does_not_load_matplotlib(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "run.csv", index=False)
    code = (
        "import sys, frictax as fx;r = fx.Record.from_csv('run.csv', time='t', inputs={'drive':"
        " 'F'}, outputs={'mass.s': 'q'}).trim(0, 1);print(sorted({'scipy.stats', 'matplotlib'} &"
        " set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_positioning_system_is_read_in_newtons_and_metres(data_folder: Path) -> None:
    force = fx.Column("vir", unit="V", gain=35.15065, to="N")
    path = data_folder / "emps" / "DATA_EMPS.mat"
    emps = fx.Record.from_mat(
        path,
        time="t",
        inputs={"drive": force},
        outputs={"mass.s": fx.Column("qm", sd=1e-6)},
        hold=True,
        name="emps",
    )
    assert str(emps).splitlines() == [
        "emps: 24841 samples, 24.84 s, 1000 Hz, uniform",
        "  input   drive   -152 to 145.5 N       held between samples",
        "  output  mass.s  -2.2e-05 to 0.2464 m  sd 1e-06 m",
    ]


def test_the_servo_s_angle_and_speed_belong_together(data_folder: Path) -> None:
    for path in sorted((data_folder / "xl330_pendulum" / "raw").glob("*.json")):
        log = json.loads(path.read_text(encoding="utf-8"))
        found = fx.Record.from_pandas(
            pd.DataFrame(log["entries"]),
            time="timestamp",
            inputs={"servo": fx.Column("goal_position", unit="rad")},
            outputs={"arm.phi": "position", "arm.w": "speed"},
            name=f"{log['trajectory']} kp {log['kp']}",
        )
        assert not found.uniform
        assert not [
            text
            for text in found.warnings
            if "arm.w' gives" in text or "follow" in text or "against" in text
        ]


def test_outputs_of_numbered_joints_have_the_unit_of_their_variable() -> None:
    t = np.linspace(0.0, 1.0, 21)
    names = ("phi1", "w1", "s2", "v2", "phi_3")
    record = fx.Record(t, outputs={name: np.sin((2 + k) * t) for k, name in enumerate(names)})
    assert [record.units[n].si_name for n in names] == ["rad", "rad/s", "m", "m/s", "rad"]
    with pytest.raises(ValueError, match="must all be of a rotation or all of a translation"):
        fx.Record(t, outputs={"phi1": t, "s1": t}, units={"s1": "m"})
    for wrong in ("q1", "arm.phi1", "1"):
        with pytest.raises(ValueError, match="must"):
            fx.Record(t, outputs={wrong: t})
