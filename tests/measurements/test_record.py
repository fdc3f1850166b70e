"""A motion record: reading, units, trimming, decimation, and what is suspicious in it."""

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

T = np.linspace(0.0, 2.0, 401)
S = 0.1 * np.sin(3 * T) + 0.02 * T
FRAME = pd.DataFrame({"t": T, "F": np.cos(3 * T), "q": S, "qd": 0.3 * np.cos(3 * T) + 0.02})


def record(t: Any = T, **options: Any) -> fx.Record:
    given = {
        "inputs": {"drive": np.cos(3 * np.asarray(t))},
        "outputs": {"mass.s": 0.1 * np.sin(3 * np.asarray(t)) + 0.02 * np.asarray(t)},
    }
    return fx.Record(t, **{**given, **options})


def same(one: fx.Record, other: fx.Record) -> None:
    np.testing.assert_allclose(one.t, other.t, rtol=1e-14)
    for kind in ("inputs", "outputs"):
        a, b = getattr(one, kind), getattr(other, kind)
        assert list(a) == list(b)
        for name in a:
            np.testing.assert_allclose(a[name], b[name], rtol=1e-12, atol=1e-15)
    assert {k: None if v is None else pytest.approx(v) for k, v in one.sd.items()} == other.sd


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


def test_a_unit_in_the_columns_name_counts_as_declared_unless_another_is() -> None:
    frame = FRAME.rename(columns={"q": "pos [mm]", "t": "time (ms)"})
    found = fx.Record.from_pandas(frame, time="time (ms)", outputs={"mass.s": "pos [mm]"})
    np.testing.assert_allclose(found.t, 1e-3 * T)
    np.testing.assert_allclose(found.outputs["mass.s"], 1e-3 * S)
    declared = fx.Record.from_pandas(
        frame, time="time (ms)", outputs={"mass.s": fx.Column("pos [mm]", unit="m")}
    )
    np.testing.assert_allclose(declared.outputs["mass.s"], S)
    contradiction = "Column 'pos [mm]' of the DataFrame says mm in its name, `unit` says m"
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


def impulse(found: fx.Record) -> np.ndarray:
    u, dt = found.inputs["drive"], np.diff(found.t)
    pieces = u[:-1] * dt if found.hold else 0.5 * (u[1:] + u[:-1]) * dt
    return np.concatenate([[0.0], np.cumsum(pieces)])


UNEVEN = np.cumsum(1.0 + 0.4 * np.sin(np.arange(401.0))) / 200


@pytest.mark.parametrize("t", [T, UNEVEN], ids=["uniform", "not uniform"])
@pytest.mark.parametrize("n", [2, 5, 7])
def test_decimation_keeps_the_impulse_of_a_held_input_at_every_kept_time(
    t: np.ndarray, n: int
) -> None:
    whole = record(t, hold=True)
    thin = whole.decimate(n)
    np.testing.assert_array_equal(thin.t, t[::n])
    np.testing.assert_array_equal(thin.outputs["mass.s"], whole.outputs["mass.s"][::n])
    np.testing.assert_allclose(impulse(thin), impulse(whole)[::n], atol=1e-13)


@pytest.mark.parametrize("t", [T, UNEVEN], ids=["uniform", "not uniform"])
@pytest.mark.parametrize("n", [2, 5, 7])
def test_decimation_of_a_joined_input_keeps_its_whole_impulse_and_moment_and_what_is_straight(
    t: np.ndarray, n: int
) -> None:
    rng = np.random.default_rng(1)
    whole = record(
        t, inputs={"drive": np.cos(3 * t) + rng.normal(size=t.size), "line": 2.0 - 3.0 * t}
    )
    thin = whole.decimate(n)
    last = thin.n * n - n
    assert impulse(thin)[-1] == pytest.approx(impulse(whole)[last], abs=1e-12)
    np.testing.assert_allclose(thin.inputs["line"], 2.0 - 3.0 * thin.t, atol=1e-10)
    # Between two kept times nothing accumulates: the impulse is never off by more than a step's
    # own.
    off = np.max(np.abs(impulse(thin) - impulse(whole)[::n][: thin.n]))
    assert off <= 2.0 * np.max(np.diff(thin.t))


def moment(t: np.ndarray, u: np.ndarray) -> float:
    fine = np.linspace(t[0], t[-1], 200001)
    return float(np.trapezoid(fine * np.interp(fine, t, u), fine))


def test_decimation_of_a_joined_input_keeps_its_moment() -> None:
    noisy = np.random.default_rng(2).normal(size=T.size)
    thin = record(inputs={"drive": noisy}).decimate(4)
    assert moment(thin.t, thin.inputs["drive"]) == pytest.approx(moment(T, noisy), abs=1e-6)


def test_decimation_by_one_changes_nothing() -> None:
    same(record().decimate(1), record())


def test_rate_duration_and_uniformity_describe_the_times() -> None:
    assert (record().n, record().duration, round(record().rate, 9), record().uniform) == (
        401,
        2.0,
        200.0,
        True,
    )
    assert not record(UNEVEN).uniform


def test_a_free_decay_has_no_input() -> None:
    assert fx.Record(T, outputs={"mass.s": S}).inputs == {}


Q = np.round(S / 0.01) * 0.01
# What is suspicious, and the words that must be said of it.
SUSPICIOUS: dict[str, tuple[fx.Record, list[str]]] = {
    "gap": (
        record(np.delete(T, slice(50, 90))),
        ["a gap of 0.205 s after 0.245 s", "joined by a straight line", "trim"],
    ),
    "gap, held": (record(np.delete(T, slice(50, 90)), hold=True), ["last value is held"]),
    "gap in a decay": (
        record(np.delete(T, slice(50, 90)), inputs={}),
        ["nothing was recorded", "check the clock"],
    ),
    "milliseconds": (
        record(1000.0 * np.arange(2001.0), outputs={"mass.s": np.sin(np.arange(2001) / 50)}),
        ['unit="ms"', "1000 s"],
    ),
    "nanoseconds": (record(1e-9 * T, outputs={"mass.s": S}), ["5e-12 s", "unit of the time"]),
    "unix time": (record(1.7e9 + T, outputs={"mass.s": S}), ["1700000000 s", "trim(reset=True)"]),
    "constant input": (
        record(inputs={"drive": 0.0 * T}),
        ["Input 'drive' is 0 N all the time", "check the column"],
    ),
    "clipped input": (
        record(inputs={"drive": np.clip(20 * np.sin(9 * T), -10, 10)}),
        ["largest value, 10 N", "amplifier was at its limit"],
    ),
    "clipped output": (
        record(outputs={"mass.s": np.minimum(S, 0.07)}),
        ["Output 'mass.s'", "largest value, 0.07 m", "end of the sensor"],
    ),
    "degrees": (
        record(outputs={"arm.phi": 45 * np.sin(3 * T)}),
        ["to and fro", "90 rad", 'unit="deg"'],
    ),
    "millimetres": (record(outputs={"mass.s": 1000 * S}), ["moves over", 'unit="mm"']),
    "wrapped angle": (
        record(outputs={"arm.phi": np.mod(6 * T, 2 * np.pi)}),
        ["jumps by a full turn", "numpy.unwrap"],
    ),
    "coarse": (
        record(outputs={"mass.s": Q}),
        ["only", "steps of 0.01 m", "sd is 0.0029 m at least"],
    ),
    "sd below resolution": (
        record(outputs={"mass.s": np.round(S, 3)}, sd={"mass.s": 1e-6}),
        ["steps of 0.001 m", "give sd >= 0.00029"],
    ),
    "sd above motion": (
        record(sd={"mass.s": 1.0}),
        ["sd of 1 m, more than it moves", "unit of the sd"],
    ),
    "lone sample": (
        record(outputs={"mass.s": np.where(T == 1.0, 3.0, S)}),
        ["One sample", "3 m at 1 s", "delete"],
    ),
    "rate in mm": (
        record(outputs={"mass.s": S, "mass.v": 1000 * FRAME.qd}),
        ["0.001 times", "'mass.v'", "m and mm", "units"],
    ),
    "rate in rpm": (
        record(outputs={"arm.phi": S, "arm.w": FRAME.qd * 30 / np.pi}),
        ["0.105 times", "rad/s and rpm"],
    ),
    "sign": (
        record(outputs={"mass.s": S, "mass.v": -FRAME.qd}),
        ["moves against 'mass.v'", "sign=-1"],
    ),
    "unrelated": (
        record(outputs={"mass.s": S, "mass.v": np.sin(40 * T)}),
        ["does not follow 'mass.v'", "correlation"],
    ),
}


@pytest.mark.parametrize("name", SUSPICIOUS)
def test_what_is_suspicious_is_told_with_a_remedy_and_shown_when_printed(name: str) -> None:
    found, pieces = SUSPICIOUS[name]
    told = " ".join(found.warnings)
    assert [piece for piece in pieces if piece not in told] == [], told
    assert all(
        text.endswith(".") and "\n" not in text and len(text) <= 250 for text in found.warnings
    )
    assert f"! {found.warnings[0]}" in str(found)


STEP = np.where(T < 1.0, 0.0, 5.0)
SOUND = {
    "a sine": record(),
    "a position and its velocity": record(
        outputs={"mass.s": S, "mass.v": FRAME.qd}, sd={"mass.s": 1e-5}
    ),
    "a step of the drive": record(inputs={"drive": STEP}),
    "square waves of the drive": record(inputs={"drive": np.sign(np.sin(9 * T + 0.1))}),
    "a mass that comes to rest": record(outputs={"mass.s": np.where(T < 1.0, T - 0.5 * T**2, 0.5)}),
    "a sine in a thousand steps": record(
        outputs={"mass.s": np.round(np.sin(3 * T), 3)}, sd={"mass.s": 3e-4}
    ),
    "a wheel that turns on and on": record(outputs={"wheel.phi": 100 * T + np.sin(3 * T)}),
    "uneven times": record(UNEVEN),
}


@pytest.mark.parametrize("name", SOUND)
def test_what_is_sound_is_not_warned_of(name: str) -> None:
    assert SOUND[name].warnings == ()


def test_reading_a_csv_loads_neither_pandas_nor_matplotlib(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "run.csv", index=False)
    code = (
        "import sys, frictax as fx;r = fx.Record.from_csv('run.csv', time='t', inputs={'drive':"
        " 'F'}, outputs={'mass.s': 'q'}).trim(0, 1);print(sorted({'pandas', 'matplotlib'} &"
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


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("a [deg]", {"gain": np.pi / 180}, "has a gain, and what it leads to is taken as deg"),
        ("a [raw]", {}, "says 'raw', which is no unit known here"),
        ("a_deg", {}, "ends in deg, which is not read as a unit"),
        ("a [deg]", {"gain": 2.0, "to": "deg"}, ""),
        ("a [raw]", {"unit": "deg"}, ""),
        ("a_deg", {"unit": "deg"}, ""),
        ("a_rad", {}, ""),
        ("a", {"gain": 2.0}, ""),
    ],
)
def test_what_a_columns_name_may_mean_is_told_where_it_is_not_what_counts(
    name: str, options: dict[str, Any], words: str
) -> None:
    frame = FRAME.rename(columns={"q": name})
    found = fx.Record.from_pandas(frame, time="t", outputs={"arm.phi": fx.Column(name, **options)})
    assert len(found.notes) == bool(words), found.notes
    assert not words or words in found.warnings[0]


def test_times_in_32_bits_that_begin_late_are_told() -> None:
    late = (np.linspace(0.0, 4.0, 401) + 1e5).astype(np.float32)
    assert "float32" in fx.Record(late, outputs={"mass.s": np.sin(late)}).warnings[0]
    early = np.linspace(0.0, 4.0, 401).astype(np.float32)
    assert fx.Record(early, outputs={"mass.s": np.sin(early)}).notes == ()


def test_milliseconds_and_millimetres_a_second_are_asked_for() -> None:
    t = np.linspace(0.0, 2.0, 201)
    assert any('unit="ms"' in w for w in fx.Record(1e3 * t, outputs={"mass.v": np.sin(t)}).warnings)
    assert any(
        'unit="mm/s"' in w for w in fx.Record(t, outputs={"mass.v": 300 * np.sin(t)}).warnings
    )


def test_a_printed_fit_repeats_what_is_suspicious_in_its_record() -> None:
    t = np.linspace(0.0, 2.0, 201)
    parts = {
        "friction": fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
        "drive": fx.Force("mass", 0.0),
    }
    record = fx.Record(t, {"drive": 2.0 + np.sin(t)}, {"mass.v": 300 * np.sin(t)}, name="run")
    found = fx.fit(
        fx.Mechanism(mass=fx.Mass(m=1.0), **parts),
        record,
        free=["mass.m"],
        objective=fx.InverseDynamics(10.0),
    )
    assert "! Record 'run': Output 'mass.v' reaches 300 m/s" in str(found)


LONG = {
    "rotor.phi": 60.0 * np.sin(3 * T),
    "table.s": 80.0 * np.sin(3 * T),
    "train.v": 150.0 * np.sin(3 * T),
}


@pytest.mark.parametrize(
    ("channel", "si", "other"),
    [("rotor.phi", "rad", "deg"), ("table.s", "m", "mm"), ("train.v", "m/s", "mm/s")],
)
def test_a_unit_that_was_declared_is_not_asked_for(channel: str, si: str, other: str) -> None:
    asked = fx.Record(T, outputs={channel: LONG[channel]})
    (warning,) = asked.warnings
    assert f'declare unit="{other}"' in warning
    assert f'else "{si}"' in warning
    assert fx.Record(T, outputs={channel: LONG[channel]}, units={channel: si}).warnings == ()
    frame = pd.DataFrame({"t": T, "y": LONG[channel]})
    declared = fx.Record.from_pandas(frame, time="t", outputs={channel: fx.Column("y", unit=si)})
    assert declared.warnings == declared.trim(0.5).warnings == ()


def test_seconds_that_were_declared_are_not_asked_for() -> None:
    t, slow = 1000.0 * np.arange(2001.0), {"mass.s": np.sin(np.arange(2001) / 50)}
    assert 'unit="ms"' in fx.Record(t, outputs=slow).warnings[0]
    assert fx.Record(t, outputs=slow, units={"time": "s"}).warnings == ()
