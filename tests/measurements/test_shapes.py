"""Text files of many shapes, all of one motion: each is read with its layout told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frictax as fx

SHAPES = Path(__file__).parent / "shapes"
T = 5e-3 * np.arange(41)  # of the encoder, 200 Hz
OMEGA = 2 * np.pi * 2.5


def angle(t: np.ndarray) -> np.ndarray:
    return 2.0 * np.sin(OMEGA * t) + 3.0 * t


def speed(t: np.ndarray) -> np.ndarray:
    return 2.0 * OMEGA * np.cos(OMEGA * t) + 3.0


def torque(t: np.ndarray) -> np.ndarray:
    return 0.3 * np.cos(OMEGA * t + 0.4)


DEG, MS, NM = {"unit": "deg"}, {"unit": "ms"}, {"unit": "N.m"}
PHI, AMPERE = "rotor.phi", {"unit": "A", "gain": 0.05, "to": "N.m"}


def one(name: str | int, **more: Any) -> fx.Column:
    return fx.Column(name, **more)


# How each file is read, and to what its digits are good: torque [N.m], motion [rad or rad/s].
READ: dict[str, tuple[dict[str, Any], float, float]] = {
    "comma": (
        {"time": "t [s]", "inputs": "torque [N.m]", "outputs": {PHI: "angle [rad]"}},
        1e-5,
        1e-5,
    ),
    "decimal_comma": (
        {
            "delimiter": ";",
            "decimal": ",",
            "time": "Zeit [ms]",
            "inputs": "Moment [Nm]",
            "outputs": {PHI: "Winkel [°]"},
        },
        1e-5,
        2e-6,
    ),
    "tabs": (
        {
            "delimiter": "\t",
            "time": one("time_ms", **MS),
            "inputs": one("torque_mNm", unit="mN.m"),
            "outputs": {PHI: one("angle_deg", **DEG)},
        },
        1e-6,
        2e-6,
    ),
    "preamble": (
        {
            "skip": 4,
            "time": "Time (s)",
            "inputs": "Torque (Nm)",
            "outputs": {PHI: "Angle (deg)"},
        },
        1e-5,
        2e-6,
    ),
    "no_header": (
        {
            "delimiter": " ",
            "header": False,
            "time": 1,
            "inputs": one(2, **NM),
            "outputs": {PHI: one("3", unit="rad")},
        },
        1e-5,
        1e-5,
    ),
    "counts": (
        {
            "time": one("us", unit="us"),
            "inputs": one("current", **AMPERE),
            "outputs": {PHI: one("encoder", per_turn=4096)},
        },
        1e-5,
        2 * np.pi / 4096,
    ),
    "rpm": (
        {
            "delimiter": "|",
            "time": "t",
            "inputs": one("iq_A", **AMPERE),
            "outputs": {"rotor.w": one("speed_rpm", unit="rpm")},
        },
        1e-5,
        1e-4,
    ),
    "rate": (
        {"rate": 200, "inputs": "torque [N.m]", "outputs": {PHI: "angle [rad]"}},
        1e-5,
        1e-5,
    ),
    "two_clocks": (
        {
            "time": "t_encoder [ms]",
            "inputs": one("torque", unit="N.m", time="t_drive"),
            "outputs": {PHI: "angle"},
        },
        3e-4,  # lines over 5 ms, where the torque bends
        1e-5,
    ),
    "gaps": (
        {
            "drop_missing": True,
            "time": "t",
            "inputs": "torque",
            "outputs": {PHI: one("angle", unit="rad")},
        },
        1e-5,
        1e-5,
    ),
    "units_line": (
        {
            "delimiter": ";",
            "skip": 3,
            "header": False,
            "time": one(1, **MS),
            "inputs": one(2, unit="mN.m"),
            "outputs": {PHI: one(3, **DEG)},
        },
        1e-5,
        2e-6,
    ),
    "windows": (  # a spreadsheet's CSV, in the code page of Windows
        {
            "delimiter": ";",
            "decimal": ",",
            "time": "t [µs]",
            "inputs": one("Strom [mA]", unit="mA", gain=5e-5, to="N.m"),
            "outputs": {PHI: "Winkel [°]"},
        },
        1e-6,
        2e-6,
    ),
    "unicode_text": (  # a spreadsheet's, in UTF-16
        {
            "delimiter": "\t",
            "decimal": ",",
            "time": "Zeit [ms]",
            "inputs": "Moment [mNm]",
            "outputs": {PHI: "Winkel [°]"},
        },
        1e-6,
        2e-6,
    ),
    "dated": (
        {"rate": 200, "inputs": "torque [N.m]", "outputs": {PHI: "angle [rad]"}},
        1e-5,
        1e-5,
    ),
}


def read(name: str) -> fx.Record:
    options, *_ = READ[name]
    given = {**options, "inputs": {"motor": options["inputs"]}}
    return fx.Record.from_csv(SHAPES / f"{name}.csv", **given)


def test_every_file_of_the_folder_is_tested() -> None:
    assert {path.stem for path in SHAPES.glob("*.csv")} == set(READ)


@pytest.mark.parametrize("name", READ)
def test_a_file_of_this_shape_holds_torque_and_motion_in_si(name: str) -> None:
    record, (_, fine, digit) = read(name), READ[name]
    (out,) = record.outputs
    motion = {"phi": angle, "w": speed}[out.rpartition(".")[2]](record.t)
    np.testing.assert_allclose(record.inputs["motor"], torque(record.t), atol=fine)
    np.testing.assert_allclose(record.outputs[out], motion, atol=digit)
    if name != "gaps":
        np.testing.assert_allclose(record.t, T, atol=1e-12)


def test_of_a_file_with_gaps_the_whole_rows_stay_and_it_says_how_many_do_not() -> None:
    record = read("gaps")
    gone = [5, 6, 20, *range(25, 33)]
    np.testing.assert_allclose(record.t, np.delete(T, gone), atol=1e-12)
    assert record.notes == (
        "3 of 33 rows of gaps.csv have no number, the first line 7 of gaps.csv: they are left out.",
    )
    assert any("gap" in warning and "0.045 s" in warning for warning in record.warnings)


def test_numbers_that_are_missing_are_refused_unless_asked_for() -> None:
    with pytest.raises(ValueError, match=r"line 7: column 'torque' has no number \(''\)"):
        fx.Record.from_csv(
            SHAPES / "gaps.csv", time="t", inputs={"motor": "torque"}, outputs={PHI: "angle"}
        )


@pytest.mark.parametrize("code", ["utf-8-sig", "utf-16", "utf-32", "cp1252", "latin-1"])
def test_the_same_columns_are_read_in_every_encoding(code: str, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_bytes("t [µs],Weg Ä [°]\n0,1\n5,2\n9,3\n13,5\n".encode(code))
    record = fx.Record.from_csv(tmp_path / "f.csv", time="t [µs]", outputs={PHI: "Weg Ä [°]"})
    np.testing.assert_allclose(record.t, [0.0, 5e-6, 9e-6, 13e-6])
    np.testing.assert_allclose(record.outputs[PHI], np.deg2rad([1.0, 2.0, 3.0, 5.0]))


def wrong(name: str, **changed: Any) -> Callable[[], fx.Record]:
    options = {**READ[name][0], **changed}
    inputs = options["inputs"]
    options["inputs"] = inputs if isinstance(inputs, dict) else {"motor": inputs}
    return lambda: fx.Record.from_csv(SHAPES / f"{name}.csv", **options)


WRONG = {
    "no clock": (
        wrong("rate", rate=None),
        "the column of its `time`, or the `rate` of its samples in Hz, got neither",
    ),
    "two clocks": (wrong("comma", rate=200.0), "got both. Give one of the two"),
    "rate": (wrong("rate", rate=-1.0), r"`rate` must be a number of samples in a second > 0"),
    "number": (wrong("no_header", time=4), "has no column 4: it has 3, called 1, 2, 3"),
    "skip": (wrong("preamble", skip=-1), "`skip` must be a number of lines, 0 or more, got -1"),
    "all skipped": (wrong("preamble", skip=99), "is empty after the 99 lines that are skipped"),
    "preamble": (wrong("preamble", skip=0), r"line 2 has 1 cells where the header names 2"),
    "no names": (wrong("no_header", header=True), "give header=False and name columns by their"),
    "spaces": (wrong("no_header", delimiter=","), "must hold a number|has no column 2"),
    "same number": (
        wrong("no_header", time=3),
        "Column '3' is named for the time and for output 'rotor.phi'",
    ),
    "unit of a clock": (
        wrong("two_clocks", inputs=one("torque", time=one("t_drive", unit="deg"))),
        r"the clock of 'motor', must be in a unit of time \(s, ms, us, ns, min, h\), got 'deg'",
    ),
    "apart": (
        wrong("two_clocks", inputs=one("torque", time=one("t_drive", unit="ns"))),
        "have 1 times of 't",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_layout_that_is_told_wrong_is_refused_in_a_sentence(what: str) -> None:
    read_it, sentence = WRONG[what]
    with pytest.raises(ValueError, match=sentence):
        read_it()


def test_counts_in_a_turn_stand_alone() -> None:
    with pytest.raises(ValueError, match="`per_turn` says what `gain` and `to` would say"):
        fx.Column("q", per_turn=4096, gain=2.0)
    with pytest.raises(ValueError, match="`per_turn` must be a number of counts > 0, got 0"):
        fx.Column("q", per_turn=0)


def test_the_impulse_of_an_input_stays_when_it_comes_to_another_clock() -> None:
    """The drive has 2.5 times the samples of the encoder."""
    record = read("two_clocks")
    fine = np.linspace(0.0, 0.2, 20001)
    exact = np.trapezoid(torque(fine), fine)
    assert np.trapezoid(record.inputs["motor"], record.t) == pytest.approx(exact, abs=2e-6)


def test_an_output_on_a_coarser_clock_is_told_to_be_no_measurement_between_its_samples(
    tmp_path: Path,
) -> None:
    fine, coarse = np.arange(200) * 1e-3, np.arange(10) * 2e-2
    rows = [
        f"{a:.4f},{torque(a):.5f}," + (f"{coarse[i]:.4f},{angle(coarse[i]):.6f}" if i < 10 else ",")
        for i, a in enumerate(fine)
    ]
    (tmp_path / "f.csv").write_text("\n".join(["t,u,t2,q", *rows]))
    record = fx.Record.from_csv(
        tmp_path / "f.csv",
        time="t",
        inputs={"motor": one("u", unit="N.m")},
        outputs={PHI: one("q", unit="rad", sd=0.01, time="t2")},
    )
    assert record.t[-1] == pytest.approx(0.18)  # no clock saw more
    assert any("20 ms" in note and "Take its clock as `time`" in note for note in record.notes)
    assert any("0 s to 0.18 s in common" in note for note in record.notes)
    read_between = np.interp(record.t, coarse, angle(coarse))
    np.testing.assert_allclose(record.outputs[PHI], read_between, atol=1e-6)  # as written
    assert record.sd[PHI] == 0.01


def test_a_held_input_on_its_own_clock_keeps_its_impulse() -> None:
    t, clock = np.arange(6.0), np.arange(0.0, 5.5, 0.5)
    u = np.array([1.0, 3.0, 5.0, 5.0, 7.0, 1.0, 0.0, 0.0, 2.0, 4.0, 9.0])
    import pandas as pd

    columns = {"t": t, "q": t**2, "tu": clock, "u": u}
    frame = pd.DataFrame({name: pd.Series(column) for name, column in columns.items()})
    record = fx.Record.from_pandas(
        frame,
        time="t",
        inputs={"drive": one("u", unit="N", time="tu")},
        outputs={"mass.s": "q"},
        hold=True,
    )
    np.testing.assert_allclose(record.inputs["drive"], [2.0, 5.0, 4.0, 0.0, 3.0, 9.0])


def test_structs_cells_and_matrices_of_a_mat_file_are_called_as_matlab_does(
    tmp_path: Path,
) -> None:
    from scipy.io import savemat

    cells = np.empty(2, dtype=object)
    cells[0], cells[1] = torque(T), {"angle": np.degrees(angle(T)), "who": "nobody"}
    content = {"log": {"t": T}, "data": cells, "M": np.column_stack([T, torque(T), angle(T)])}
    savemat(tmp_path / "run.mat", content)
    by_cells = fx.Record.from_mat(
        tmp_path / "run.mat",
        time="log.t",
        inputs={"motor": one("data{1}", **NM)},
        outputs={PHI: one("data{2}.angle", **DEG)},
    )
    by_matrix = fx.Record.from_mat(
        tmp_path / "run.mat",
        time="M(:,1)",
        inputs={"motor": one("M(:,2)", **NM)},
        outputs={PHI: one("M(:,3)", unit="rad")},
    )
    for record in (by_cells, by_matrix):
        np.testing.assert_allclose(record.t, T)
        np.testing.assert_allclose(record.inputs["motor"], torque(T))
        np.testing.assert_allclose(record.outputs[PHI], angle(T), rtol=1e-12)
    with pytest.raises(ValueError, match=r"no column 'M\(:,4\)' for output .* Did you mean 'M"):
        fx.Record.from_mat(
            tmp_path / "run.mat", time="log.t", outputs={PHI: one("M(:,4)", unit="rad")}
        )


def test_a_sweep_is_read_without_a_header_by_numbers(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("bench 7\n1;2,0\n2;2,5\n3;3,0\n")
    sweep = fx.Sweep.from_csv(
        tmp_path / "s.csv", 1, 2, delimiter=";", decimal=",", skip=1, header=False
    )
    np.testing.assert_allclose(sweep.velocity, [1, 2, 3])
    np.testing.assert_allclose(sweep.force, [2.0, 2.5, 3.0])
