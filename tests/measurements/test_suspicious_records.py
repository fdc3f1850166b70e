"""What is suspicious in a record is told with a remedy, and what is sound is not."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import frictax as fx
from plain_record import FRAME, UNEVEN, S, T, record

Q = np.round(S / 0.01) * 0.01


# What is suspicious, and the words that must be said of it.
SUSPICIOUS: dict[str, tuple[fx.Record, list[str]]] = {
    "gap": (
        record(np.delete(T, slice(50, 90))),
        ["a gap of 0.205 s after 0.245 s", "interpolated linearly", "trim"],
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
        ["Input 'drive' is 0 N all the time", "Check the column"],
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
        ["back and forth", "90 rad", 'unit="deg"'],
    ),
    "millimetres": (record(outputs={"mass.s": 1000 * S}), ["moves over", 'unit="mm"']),
    "wrapped angle": (
        record(outputs={"arm.phi": np.mod(6 * T, 2 * np.pi)}),
        ["jumps by a full turn", "numpy.unwrap"],
    ),
    "coarse": (
        record(outputs={"mass.s": Q}),
        ["only", "steps of 0.01 m", "standard deviation is at least 0.0029 m"],
    ),
    "sd below resolution": (
        record(outputs={"mass.s": np.round(S, 3)}, sd={"mass.s": 1e-6}),
        ["steps of 0.001 m", "Give an `sd` of at least 0.00029 m"],
    ),
    "sd above motion": (
        record(sd={"mass.s": 1.0}),
        ["`sd` of 1 m, which is too large for", "unit of the `sd`"],
    ),
    "lone sample": (
        record(outputs={"mass.s": np.where(T == 1.0, 3.0, S)}),
        ["one sample", "3 m at 1 s", "Delete"],
    ),
    "rate in mm": (
        record(outputs={"mass.s": S, "mass.v": 1000 * FRAME.qd}),
        ["0.001 times", "'mass.v'", "m and mm", "Correct the unit"],
    ),
    "rate in rpm": (
        record(outputs={"arm.phi": S, "arm.w": FRAME.qd * 30 / np.pi}),
        ["0.105 times", "rad/s and rpm"],
    ),
    "sign": (
        record(outputs={"mass.s": S, "mass.v": -FRAME.qd}),
        ["moves against the integral of 'mass.v'", "sign=-1"],
    ),
    "sign of a machine of one's own": (
        record(outputs={"phi": S, "w": -FRAME.qd}),
        ["moves against the integral of 'w'", "sign=-1"],
    ),
    "unrelated joints": (
        record(outputs={"phi1": S, "w1": np.sin(40 * T)}),
        ["does not follow the integral of 'w1'", "belong to 'joint 1'"],
    ),
    "unrelated": (
        record(outputs={"mass.s": S, "mass.v": np.sin(40 * T)}),
        ["does not follow the integral of 'mass.v'", "correlation"],
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
    # how an input goes between samples is no fault of the record
    assert [n for n in SOUND[name].notices if n.code != "levels-held"] == []


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("a [deg]", {"gain": np.pi / 180}, "has a gain. The result is read in deg"),
        ("a [raw]", {}, "has 'raw' in its name, which is not a known unit"),
        ("a_deg", {}, "has 'deg' in its name, which is not read as a unit"),
        ("a / deg", {}, "has 'deg' in its name, which is not read as a unit"),
        ("a (DEG)", {}, "has 'DEG' in its name, which is not a known unit"),
        ("a [deg] (raw)", {"gain": 2.0, "to": "deg"}, ""),
        ("a_deg", {"gain": 2.0, "to": "deg"}, ""),
        ("a[1]", {}, ""),
        ("a(1)", {}, ""),
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
    assert f'Otherwise declare unit="{si}"' in warning
    assert fx.Record(T, outputs={channel: LONG[channel]}, units={channel: si}).warnings == ()
    frame = pd.DataFrame({"t": T, "y": LONG[channel]})
    declared = fx.Record.from_pandas(frame, time="t", outputs={channel: fx.Column("y", unit=si)})
    assert declared.warnings == declared.trim(0.5).warnings == ()


def test_seconds_that_were_declared_are_not_asked_for() -> None:
    t, slow = 1000.0 * np.arange(2001.0), {"mass.s": np.sin(np.arange(2001) / 50)}
    assert 'unit="ms"' in fx.Record(t, outputs=slow).warnings[0]
    assert fx.Record(t, outputs=slow, units={"time": "s"}).warnings == ()
