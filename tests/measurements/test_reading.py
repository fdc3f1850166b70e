"""One reader of text files, workbooks and JSON logs: what it understands, counts and names."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

import frictax as fx
from frictax.measurements.reading.columns import read_columns
from frictax.measurements.reading.wraps import find_seams, find_wrap, unwrap_column
from frictax.problems.starting.shape import shape_of

T = np.arange(400) / 100.0
Q = 2.0 * np.sin(3.0 * T) + 1.5 * T
F = 0.4 * np.cos(2.0 * T)


def write(path: Path, header: str, *columns: Any, sign: str = ",") -> Path:
    rows = [sign.join(map(str, row)) for row in zip(*columns, strict=True)]
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def read(path: Path, **options: Any) -> fx.Record:
    given = {"time": "t", "inputs": {"drive": "F"}, "outputs": {"rotor.phi": "q"}}
    return fx.Record.from_csv(path, **(given | options))


def stamps(form: str) -> list[str]:
    """Times as files write them."""
    start = np.datetime64("2024-02-29T23:59:58.500", "us")
    dates = start + (T * 1e6).round().astype("timedelta64[us]")
    if form == "iso":
        return [f"{date}Z" for date in dates]
    days = [(str(d)[:10].split("-"), str(d)[11:23]) for d in dates]
    return {
        "german": [f"{d[2]}.{d[1]}.{d[0]} {clock.replace('.', ',')}" for d, clock in days],
        "clock": [clock for _, clock in days],
        "american": [f"{d[1]}/{d[2]}/{d[0]} {clock}" for d, clock in days],
        "matlab": [f"{t:.6g} sec" for t in T],
        "duration": [f"00:{int(t // 60):02}:{t % 60:06.3f}" for t in T],
    }[form]


@pytest.mark.parametrize("form", ["iso", "german", "clock", "american", "matlab", "duration"])
def test_dates_and_clock_times_are_seconds_from_the_first(form: str, tmp_path: Path) -> None:
    path = write(tmp_path / "f.csv", "t;F;q", stamps(form), F, Q, sign=";")
    np.testing.assert_allclose(read(path, delimiter=";").t, T, atol=1e-9)
    assert shape_of(path).units[0] == "s"


@pytest.mark.parametrize(("unit", "size"), [("ns", 1e9), ("us", 1e6), ("ms", 1e3)])
def test_times_since_1970_are_read_by_their_size_with_all_their_digits(
    unit: str, size: float, tmp_path: Path
) -> None:
    first = int(1726000000 * size)
    ticks = [first + round(t * size) for t in T]
    path = write(tmp_path / "f.csv", "t,F,q", ticks, F, Q)
    record = read(path)
    np.testing.assert_allclose(record.t, T, atol=1e-12)
    assert f"the time since 1970 in {unit}" in record.notes[0]
    np.testing.assert_array_equal(read(path, time=fx.Column("t", unit=unit)).t, record.t)
    assert shape_of(path).units[0] == unit


def test_seconds_and_nanoseconds_in_two_columns_are_one_time(tmp_path: Path) -> None:
    ticks = 1726000000 * 10**9 + 999_900_000 + np.round(T * 1e9).astype(int)
    header = "header.stamp.sec,header.stamp.nanosec,F,q"
    path = write(tmp_path / "f.csv", header, ticks // 10**9, ticks % 10**9, F, Q)
    clock = fx.Column("header.stamp.sec", unit="s", nanoseconds="header.stamp.nanosec")
    np.testing.assert_allclose(read(path, time=clock).t, T, atol=1e-12)
    assert shape_of(path).nanoseconds == {0: 1}


DAY = 1726012799 * 10**9 + 950_000_123  # [ns] 50 ms before midnight


def two_clocks(form: str) -> tuple[Any, Any]:
    """Times of the base clock and of a clock that starts 0.1 s later."""
    base = DAY + np.round(T * 1e9).astype(np.int64)
    own = base + 100_000_000
    if form == "mixed":
        return base, pd.to_datetime(own)
    return tuple(
        {
            "ns": lambda x: x,
            "unsigned": lambda x: x.astype(np.uint64),
            "gain": lambda x: x,
            "monotonic": lambda x: x - DAY + 999_950_000_000,
            "dates": pd.to_datetime,
            "zoned": lambda x: pd.to_datetime(x, utc=True).tz_convert("Europe/Berlin"),
            "milliseconds": lambda x: pd.to_datetime(x).astype("datetime64[ms]"),
            "iso": lambda x: pd.to_datetime(x).astype(str),
            "clock": lambda x: pd.to_datetime(x).strftime("%H:%M:%S.%f"),
            "lost": lambda x: pd.Series(pd.to_datetime(x)).where(x >= x[2]),
        }[form](x)
        for x in (base, own)
    )


NUMBERS = "ns unsigned gain monotonic".split()
DATES = "dates zoned iso clock lost".split()  # which a MAT-file cannot hold


@pytest.mark.parametrize(
    ("form", "reader"),
    [(form, reader) for form in NUMBERS + DATES for reader in ("pandas", "csv")]
    + [(form, "mat") for form in NUMBERS]
    # A clock that begins at 1000 s does not fit a record that begins at 0.
    + [(form, "rate") for form in NUMBERS + DATES if form != "monotonic"],
)
def test_two_clocks_since_1970_or_midnight_keep_their_distance(
    form: str, reader: str, tmp_path: Path
) -> None:
    _check_distance(form, reader, tmp_path)


@pytest.mark.parametrize("reader", ["pandas", "csv"])
@pytest.mark.parametrize("form", ["mixed", "milliseconds"])
def test_a_clock_in_nanoseconds_and_dates_keep_their_distance(
    form: str, reader: str, tmp_path: Path
) -> None:
    _check_distance(form, reader, tmp_path)


def _check_distance(form: str, reader: str, tmp_path: Path) -> None:
    base, own = two_clocks(form)
    frame = pd.DataFrame({"t": base, "F": F, "t2": own, "q": np.interp(T + 0.1, T, Q)})
    scale: dict[str, Any] = {"gain": {"gain": 1e-9, "to": "s"}, "monotonic": {"unit": "ns"}}
    clock, other = (fx.Column(name, **scale.get(form, {})) for name in ("t", "t2"))
    given: dict[str, Any] = {
        "inputs": {"drive": "F"},
        "outputs": {"rotor.phi": fx.Column("q", time=other)},
        "time": clock,
        "hold": False,
        "drop_missing": form == "lost",
    }
    if reader == "rate":
        given |= {"time": None, "rate": 100.0}
        given["inputs"] = {"drive": fx.Column("F", time=clock)}
        frame["x"] = np.sin(T)
        given["outputs"]["rotor.w"] = "x"
    if reader == "csv":
        frame.to_csv(tmp_path / "f.csv", index=False)
        record = fx.Record.from_csv(tmp_path / "f.csv", **given)
    elif reader == "mat":
        savemat(tmp_path / "f.mat", {name: frame[name].to_numpy() for name in frame})
        record = fx.Record.from_mat(tmp_path / "f.mat", **given)
    else:
        record = fx.Record.from_pandas(frame, **given)
    zero, at = {"lost": 0.02, "monotonic": -999.95}.get(form, 0.0), slice(5, -15)
    drive, seen = (np.interp(record.t + zero, T, values) for values in (F, Q))
    if reader != "rate":
        np.testing.assert_allclose(record.inputs["drive"][at], drive[at], atol=2e-3)
    np.testing.assert_allclose(record.outputs["rotor.phi"][at], seen[at], atol=2e-2)


def test_clocks_that_do_not_count_from_one_date_are_named() -> None:
    dates = pd.to_datetime(DAY + np.round(T * 1e9).astype(np.int64))
    frame = pd.DataFrame({"t": T, "F": F, "t2": dates, "q": Q})
    outputs = {"rotor.phi": fx.Column("q", time="t2")}
    record = fx.Record.from_pandas(frame, time="t", inputs={"drive": "F"}, outputs=outputs)
    np.testing.assert_allclose(record.outputs["rotor.phi"], Q[: record.n], atol=1e-9)
    assert "'t2' of the DataFrame and the clock of the record do not count" in record.notes[0]


def test_two_topics_of_seconds_and_nanoseconds_may_stand_below_each_other(tmp_path: Path) -> None:
    base = DAY + np.round(T * 1e9).astype(np.int64)
    own = base + 100_000_000
    above = pd.DataFrame({"s": base // 10**9, "n": base % 10**9, "F": F})
    below = pd.DataFrame({"s2": own // 10**9, "n2": own % 10**9, "q": np.interp(T + 0.1, T, Q)})
    pd.concat([above, below]).to_csv(tmp_path / "f.csv", index=False)
    record = fx.Record.from_csv(
        tmp_path / "f.csv",
        time=fx.Column("s", nanoseconds="n"),
        inputs={"drive": "F"},
        outputs={"rotor.phi": fx.Column("q", time=fx.Column("s2", nanoseconds="n2"))},
    )
    seen = np.interp(record.t, T, Q)
    np.testing.assert_allclose(record.outputs["rotor.phi"][:-15], seen[:-15], atol=1e-2)
    assert len(record.notes) == 1


@pytest.mark.parametrize("bits", [16, 31, 32])
def test_a_counter_of_microseconds_that_rolls_over_is_named_and_unwrapped(
    bits: int, tmp_path: Path
) -> None:
    ticks = ((1 << bits) - 20_000 + np.round(T * 1e6).astype(int)) % (1 << bits)
    path = write(tmp_path / "f.csv", "t,F,q", ticks, F, Q)
    with pytest.raises(ValueError, match=f"wraps at {1 << bits}: it starts again in line 4 of f"):
        read(path, time=fx.Column("t", unit="us"))
    record = read(path, time=fx.Column("t", unit="us", unwrap=True))
    np.testing.assert_allclose(record.t - record.t[0], T, atol=1e-9)


RANGES = [("deg", 360.0, 0.0), ("deg", 360.0, -180.0), ("rad", 2 * np.pi, 0.0), ("rev", 1.0, 0.0)]
RANGES += [("counts", 4096.0, 0.0), ("counts", 65536.0, -32768.0)]


@pytest.mark.parametrize(("unit", "size", "low"), RANGES)
def test_an_encoder_that_wraps_is_named_and_unwrapped(
    unit: str, size: float, low: float, tmp_path: Path
) -> None:
    turns = {"deg": 360.0, "rad": 2 * np.pi, "rev": 1.0, "counts": 4096.0}[unit]
    angle = 12.0 * Q / (2 * np.pi) * turns * (size / turns) ** 0.5
    digits = np.floor(angle) if unit == "counts" else np.round(angle, 5)
    path = write(tmp_path / "f.csv", "t,F,q", T, F, np.round((digits - low) % size + low, 5))
    assert (found := find_wrap(shape_of(path).values[:, 2])) is not None
    assert found.range == pytest.approx(size)
    scale: dict[str, Any] = {"per_turn": 4096} if unit == "counts" else {"unit": unit}
    column = fx.Column("q", **scale)
    with pytest.raises(ValueError, match="wraps at .* Give unwrap=True in its `Column`"):
        read(path, outputs={"rotor.phi": column})
    for told in (True, size):
        record = read(path, outputs={"rotor.phi": fx.Column("q", **scale, unwrap=told)})
        y = record.outputs["rotor.phi"]
        truth = 2 * np.pi / turns * digits
        np.testing.assert_allclose(y - y[0], truth - truth[0], atol=2e-4)


def test_an_angle_of_a_machine_of_ones_own_is_an_angle(tmp_path: Path) -> None:
    path = write(tmp_path / "f.csv", "t,F,q", T, F, np.floor(4000 * Q) % 4096)
    with pytest.raises(ValueError, match="wraps at .* Give unwrap=True in its `Column`"):
        read(path, outputs={"phi1": fx.Column("q", per_turn=4096)})


def test_a_seam_that_no_speed_explains_is_named(tmp_path: Path) -> None:
    angle = np.floor(3000 * Q)
    angle[250:] += 1700  # samples were lost
    path = write(tmp_path / "f.csv", "t,F,q", T, F, (angle % 4096).astype(int))
    column = fx.Column("q", per_turn=4096, unwrap=4096)
    assert (
        "in line 252 of f.csv when unwrapped at 4096"
        in read(path, outputs={"rotor.phi": column}).notes[0]
    )


def test_square_waves_noise_spikes_and_resets_do_not_wrap() -> None:
    rng = np.random.default_rng(3)
    square = np.sign(np.sin(9 * T))
    for y in (
        180 * square, np.round(2047 * square + rng.normal(0, 3, T.size)), 128 * (square + 1) - 0.5,
        rng.standard_normal(T.size), 360.0 * (rng.random(T.size) < 0.01) + np.sin(T),
        np.round(50 * Q) + 4096 * (T > 2),
    ):  # fmt: skip
        assert find_wrap(y) is None


def test_any_smooth_motion_is_the_same_after_it_has_wrapped_and_been_unwrapped() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        size = float(rng.choice([360.0, 2 * np.pi, 1.0, 4096.0, 65536.0, 4000.0]))
        waves = rng.uniform(0.3, 1.5, 2)[:, None] * np.sin(
            rng.uniform(0.5, 4, (2, 1)) * T + rng.uniform(0, 6, (2, 1))
        )
        motion = size * (waves.sum(axis=0) + rng.uniform(-2, 2) * T)
        motion = np.floor(motion) if size > 400 else motion
        if np.abs(np.diff(motion)).max() > size / 8 or np.ptp(np.floor(motion / size)) == 0:
            continue
        found = find_wrap(motion % size)
        assert found is not None
        assert found.range == size
        back = unwrap_column(motion % size, size)
        np.testing.assert_allclose(back - back[0], motion - motion[0], atol=1e-9 * size)
        assert find_seams(back, size).size == 0


def test_signs_between_thousands_and_units_in_cells_are_read_and_told(tmp_path: Path) -> None:
    english = [f'"{1000 * t:,.1f}"' for t in T]
    german = [x.strip('"').replace(",", "_").replace(".", ",").replace("_", ".") for x in english]
    first = write(tmp_path / "a.csv", "t,F,q", english, F, Q)
    comma = [str(x).replace(".", ",") for x in F]
    second = write(
        tmp_path / "b.csv", "t;F;q", german, comma, [str(x).replace(".", ",") for x in Q], sign=";"
    )
    ms = fx.Column("t", unit="ms")
    for record in (read(first, time=ms), read(second, time=ms, delimiter=";", decimal=",")):
        np.testing.assert_allclose(record.t, T, atol=1e-9)
        assert "has a sign between thousands" in record.notes[0]
    assert shape_of(second).decimal == ","
    third = write(tmp_path / "c.csv", "t,F,q", [f"{1000 * t:g} ms" for t in T], F, Q)
    np.testing.assert_allclose(read(third).t, T, atol=1e-9)
    with pytest.raises(ValueError, match=r"line 2: column 't' must hold a number, got '1,234'"):
        read(write(tmp_path / "d.csv", "t,F,q", ['"1,234"'] * 8, F[:8], Q[:8]))


def test_columns_of_words_flags_and_codes_are_not_used_and_named(tmp_path: Path) -> None:
    words = ["joint1"] * T.size, ["TRUE", "FALSE"] * 200, [f"0x{i:04X}" for i in range(T.size)]
    path = write(tmp_path / "f.csv", "t,name,on,status,F,q", T, *words, F, Q)
    assert shape_of(path).kinds == ("numbers", "words", "words", "codes", "numbers", "numbers")
    assert read(path).n == T.size
    with pytest.raises(ValueError, match="'name' must hold a number, got 'joint1'. No cell of"):
        read(path, inputs={"drive": "name"})


def test_broken_lines_are_named_with_their_number_and_dropped_on_request(tmp_path: Path) -> None:
    lines = [f"{t},{f},{q}" for t, f, q in zip(T, F, Q, strict=True)]
    lines[100], lines[200], lines[300] = "ERR timeout", lines[200][:3], "3.0,nan,---"
    lines[350] = "3.5,x,1"
    path = tmp_path / "f.csv"
    path.write_text("\n".join(["t,F,q", "", "# a remark", *lines]))
    with pytest.raises(ValueError, match=r"line 104 has 1 cells .* 1 more lines do not fit"):
        read(path)
    record = read(path, drop_missing=True)
    assert record.n == T.size - 4
    lines = "2 lines of f.csv have a different number of cells, the first line 104"
    assert lines in record.notes[0]
    assert "2 of 398 rows of f.csv have no number, the first line 304" in record.notes[1]
    assert shape_of(path).broken == 3
    columns = read_columns(path, drop=True)
    assert [columns.place(i) for i in (0, 99, 100, 199)] == [
        "line 4", "line 103", "line 105", "line 205",
    ]  # fmt: skip


def test_a_clock_that_starts_again_is_named_with_what_tells_its_parts_apart(tmp_path: Path) -> None:
    twice = [*T, *T], [*F, *F], [*Q, *(2 * Q)]
    path = write(tmp_path / "f.csv", "drive,t,F,q", [1] * 400 + [2] * 400, *twice)
    with pytest.raises(ValueError, match=r"again in line 402 .* where=\{'drive': 1\}, or part=1"):
        read(path)
    by_value, by_part = read(path, where={"drive": 2}), read(path, part=2)
    np.testing.assert_array_equal(by_value.outputs["rotor.phi"], 2 * Q)
    np.testing.assert_array_equal(by_part.outputs["rotor.phi"], 2 * Q)
    with pytest.raises(ValueError, match="`part` must be a number from 1 to 2, got 3"):
        read(path, part=3)


def test_stamps_that_repeat_propose_the_rate_and_a_few_are_left_out(tmp_path: Path) -> None:
    coarse = write(tmp_path / "f.csv", "t,F,q", np.floor(T / 0.02) * 20, F, Q)
    with pytest.raises(ValueError, match="200 times: it has too few digits .* Give rate=100,"):
        read(coarse, time=fx.Column("t", unit="ms"))
    few = np.where(np.arange(400) == 7, T[6], T)
    path = write(tmp_path / "g.csv", "t,F,q", few, F, Q)
    with pytest.raises(ValueError, match="0.06 s twice, the second time in line 9"):
        read(path)
    record = read(path, drop_missing=True)
    assert record.n == 399
    assert "1 rows of g.csv repeat the previous time, the first line 9" in record.notes[0]


LOGS = {
    "list.json": lambda rows: json.dumps(rows),
    "entries.json": lambda rows: json.dumps({"kp": 3, "entries": rows}),
    "columns.json": lambda rows: json.dumps({k: [r[k] for r in rows] for k in ("t", "F", "q")}),
    "lines.jsonl": lambda rows: "\n".join(map(json.dumps, rows)),
}


@pytest.mark.parametrize("name", LOGS)
def test_json_logs_are_read_as_a_table_is(name: str, tmp_path: Path) -> None:
    rows = [{"t": t, "F": f, "q": q} for t, f, q in zip(T, F, Q, strict=True)]
    (tmp_path / name).write_text(LOGS[name](rows))
    record = read(tmp_path / name)
    np.testing.assert_array_equal(record.outputs["rotor.phi"], Q)
    assert shape_of(tmp_path / name).names == ("t", "F", "q")


def test_nested_entries_of_a_json_log_are_named_by_points_and_brackets(tmp_path: Path) -> None:
    rows = [
        {"stamp": {"sec": int(t), "nanosec": round(t % 1 * 1e9)}, "position": [q, 0.0]}
        for t, q in zip(T, Q, strict=True)
    ]
    (tmp_path / "f.jsonl").write_text("\n".join(map(json.dumps, rows)))
    record = fx.Record.from_csv(
        tmp_path / "f.jsonl",
        time=fx.Column("stamp.sec", nanoseconds="stamp.nanosec"),
        outputs={"rotor.phi": "position[0]"},
    )
    np.testing.assert_allclose(record.t, T, atol=1e-9)


def test_a_workbook_is_read_as_its_sheet_saved_as_csv(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl, the extra `excel`")
    book = openpyxl.Workbook()
    book.active.append(["motor log"])
    book.active.append(["t [s]", "F", "q"])
    for row in zip(T, F, Q, strict=True):
        book.active.append(row)
    book.save(tmp_path / "f.xlsx")
    record = read(tmp_path / "f.xlsx", time="t [s]", skip=1)
    np.testing.assert_allclose(record.outputs["rotor.phi"], Q, rtol=1e-12)
    shape = shape_of(tmp_path / "f.xlsx")
    assert (shape.skip, shape.names, shape.units) == (1, ("t [s]", "F", "q"), ("s", None, None))


@pytest.mark.parametrize("text", ["t,q\n1,2\n3,4", "t,q\r1,2\r3,4\r", "t,q\r\r\n1,2\r\r\n3,4\x1a"])
def test_line_ends_of_all_systems_are_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_bytes(text.encode())
    columns = read_columns(tmp_path / "f.csv")
    assert (columns.n, columns.header, columns.place(1)) == (2, ["t", "q"], "line 3")


@pytest.mark.parametrize("name", ["q\x1b[31m", "q\x9b31m"])
def test_signs_that_steer_a_terminal_are_no_text(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "f.csv", f"t,F,{name}", T, F, Q)
    with pytest.raises(ValueError, match="is not a text file: line 1 holds the sign"):
        read(path)


def test_numbers_are_read_to_the_last_digit_in_quotes_or_not(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal(T.size) * 10.0 ** rng.integers(-20, 20, T.size)
    for path in (
        write(tmp_path / "a.csv", "t,F,q", T, F, x),
        write(tmp_path / "b.csv", '"t","F, N","q"', T, F, [f'"{v}"' for v in x]),
        write(tmp_path / "c.csv", "t F q", T, F, x, sign="   "),
    ):
        columns = read_columns(path, delimiter=" " if path.stem == "c" else ",")
        np.testing.assert_array_equal(columns.numbers(2), x)


def test_broken_lines_count_as_samples_of_a_rate(tmp_path: Path) -> None:
    path = write(tmp_path / "f.csv", "F,q", F, Q)
    lines = path.read_text().splitlines()
    lines[50] = lines[51] = "0.1,0.2,ERR"
    path.write_text("\n".join([*lines[:20], "", "# comment", *lines[20:]]))
    record = read(path, time=None, rate=100, drop_missing=True)
    np.testing.assert_allclose(record.t, np.delete(T, [49, 50]), atol=1e-12)
    np.testing.assert_array_equal(record.outputs["rotor.phi"], np.delete(Q, [49, 50]))
    assert "left out in 1 places, the first before line 55 of f.csv" in record.notes[-1]


def test_rows_that_where_leaves_out_count_as_samples_of_a_rate() -> None:
    frame = pd.DataFrame({"F": F, "q": Q, "ok": 1 - ((T > 1) & (T < 1.5)), "joint": [1, 2] * 200})
    given: dict[str, Any] = {"inputs": {"drive": "F"}, "outputs": {"rotor.phi": "q"}}
    record = fx.Record.from_pandas(frame, rate=100, where={"ok": 1}, **given)
    np.testing.assert_allclose(record.t, T[frame.ok == 1], atol=1e-12)
    assert "left out in 1 places" in record.notes[0]
    record = fx.Record.from_pandas(frame, rate=50, where={"ok": 1, "joint": 2}, **given)
    kept = T[(frame.ok == 1) & (frame.joint == 2)]
    np.testing.assert_allclose(record.t, kept - kept[0], atol=1e-12)
    record = fx.Record.from_pandas(frame, rate=50, where={"joint": 2}, **given)
    np.testing.assert_allclose(record.t, T[::2], atol=1e-12)
    assert record.notes == ()
    frame["joint"] = np.random.default_rng(0).integers(1, 3, T.size)
    record = fx.Record.from_pandas(frame, rate=50, where={"joint": 2}, **given)
    assert "left out in" in record.notes[0]
    assert not record.uniform
    frame["joint"] = [1, 1, 2, 1, 2] * 80
    record = fx.Record.from_pandas(frame, rate=40, where={"joint": 2}, **given)
    assert "have unequal distances" in record.notes[0]
    assert record.uniform


@pytest.mark.parametrize("hold", [True, False])
def test_inputs_in_rows_without_outputs_keep_their_impulse(hold: bool) -> None:
    q = np.where(np.arange(T.size) % 5 == 0, Q, np.nan)
    u = np.where(np.sin(40 * T) > 0.3, 1.0, -1.0)
    record = fx.Record.from_pandas(
        pd.DataFrame({"t": T, "u": u, "q": q}), time="t", inputs={"drive": "u"},
        outputs={"rotor.phi": "q"}, hold=hold, drop_missing=True,
    )  # fmt: skip
    whole = fx.Record(T, {"drive": u}, {"rotor.phi": Q}, hold=hold).trim(end=record.t[-1])
    thin = whole.decimate(5)
    np.testing.assert_array_equal(record.t, thin.t)
    np.testing.assert_allclose(record.inputs["drive"], thin.inputs["drive"], atol=1e-12)
    assert "has 316 samples in rows that are left out" in record.notes[1]


def test_a_scaled_counter_and_a_joint_that_wrap_are_named() -> None:
    x = np.round((500 * np.sin(2 * T) + 510) / 0.005) % 65536 * 0.005
    frame = pd.DataFrame({"t": T, "x [mm]": x, "a": np.rad2deg(12 * Q) % 360})
    with pytest.raises(ValueError, match=r"'x \[mm\]' .* wraps at 327.68"):
        fx.Record.from_pandas(frame, time="t", outputs={"mass.s": "x [mm]"})
    with pytest.raises(ValueError, match=r"wraps at 327.68"):
        fx.Record.from_pandas(frame, time="t", outputs={"spring.s_rel": "x [mm]"})
    angle = fx.Column("a", unit="deg")
    with pytest.raises(ValueError, match="'a' .* wraps at 360"):
        fx.Record.from_pandas(frame, time="t", outputs={"spring.phi_rel": angle})
    column = fx.Column("x [mm]", unwrap=True)
    found = fx.Record.from_pandas(frame, time="t", outputs={"mass.s": column})
    assert np.ptp(found.outputs["mass.s"]) == pytest.approx(1.0, abs=1e-3)
    assert found.notes == ()


@pytest.mark.parametrize("turns", [45.0, 55.0, 90.0])
def test_jumps_of_a_position_that_may_be_wraps_are_named(turns: float) -> None:
    frame = pd.DataFrame({"t": T / 2, "a [deg]": 360 * turns * T / 2 % 360})
    found = fx.Record.from_pandas(frame, time="t", outputs={"rotor.phi": "a [deg]"})
    assert "times by more than half of its range. If it wraps there" in found.notes[0]
    for unwrap in (False, 360):
        column = fx.Column("a [deg]", unwrap=unwrap)
        found = fx.Record.from_pandas(frame, time="t", outputs={"rotor.phi": column})
        assert not any("more than half" in note for note in found.notes)


def test_a_spike_a_step_and_two_levels_are_not_wraps() -> None:
    spike = Q + 50.0 * (T == 2.0)
    for y in (Q, spike, Q + 50.0 * (T > 2.0), np.sign(np.sin(9 * T))):
        frame = pd.DataFrame({"t": T, "q": y})
        assert fx.Record.from_pandas(frame, time="t", outputs={"rotor.phi": "q"}).notes == ()


@pytest.mark.parametrize(
    ("column", "sd", "size"),
    [
        (fx.Column("q [mm]", sd="sd [um]"), 5.0, 5e-6),
        (fx.Column("q [mm]", sd="sd [mm]"), 5.0, 5e-3),
        (fx.Column("q [mm]", sd="sd"), 5.0, 5e-3),
        (fx.Column("q", sd="sd [um]"), 5.0, 5e-6),
        (fx.Column("q", unit="V", gain=2.0, to="mm", sd="sd [um]"), 5.0, 5e-6),
        (fx.Column("q [V]", gain=2.0, to="mm", sd="sd [V]"), 5.0, 1e-2),
        (fx.Column("q", unit="um", gain=2.0, to="mm", sd="sd [mm]"), 5.0, 10.0),
    ],
)
def test_the_unit_in_the_name_of_a_column_of_sd_counts(
    column: fx.Column, sd: float, size: float
) -> None:
    frame = pd.DataFrame({"t": T, column.name: Q, column.sd: sd})
    found = fx.Record.from_pandas(frame, time="t", outputs={"mass.s": column})
    np.testing.assert_allclose(found.sd["mass.s"], size, rtol=1e-12)


def test_an_sd_in_another_quantity_is_an_error_and_a_doubtful_unit_is_named() -> None:
    frame = pd.DataFrame({"t": T, "q [mm]": Q, "q": Q, "sd [N]": 5.0, "sd_um": 5.0})
    for name, sd in (("q [mm]", "sd [N]"), ("q", "sd [N]")):
        with pytest.raises(ValueError, match="sd of 'mass.s', must be in .*got 'N'"):
            fx.Record.from_pandas(frame, time="t", outputs={"mass.s": fx.Column(name, sd=sd)})
    column = fx.Column("q [mm]", sd="sd_um")
    found = fx.Record.from_pandas(frame, time="t", outputs={"mass.s": column})
    assert "has 'um' in its name, which is not read as a unit" in found.notes[0]


@pytest.mark.parametrize("kind", ["float32", "Float32"])
def test_times_of_a_table_with_too_few_digits_are_named(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": pd.Series(3000 + T).astype(kind), "q": Q})
    found = fx.Record.from_pandas(frame, time="t", outputs={"rotor.phi": "q"})
    assert "is given in float32, whose steps there are 0.00024" in found.notes[0]
    assert "float32" in fx.Record(frame.t, outputs={"rotor.phi": Q}).notes[0]
    savemat(tmp_path / "f.mat", {"t": frame.t.to_numpy(dtype=np.float32), "q": Q})
    found = fx.Record.from_mat(tmp_path / "f.mat", time="t", outputs={"rotor.phi": "q"})
    assert "is given in float32" in found.notes[0]
    epochs = (DAY + np.arange(T.size) * 10_000).astype(float)
    frame = pd.DataFrame({"t": epochs, "q": Q})
    found = fx.Record.from_pandas(frame, time="t", outputs={"rotor.phi": "q"})
    assert any("is given in float64, whose steps there are 2.6e+02" in n for n in found.notes)


@pytest.mark.parametrize("kind", ["int64", "Int64", "uint64"])
def test_whole_nanoseconds_of_a_table_keep_all_their_digits(kind: str) -> None:
    ticks = pd.Series(DAY + np.arange(T.size) * 10_000).astype(kind)
    frame = pd.DataFrame({"t": ticks, "q": Q})
    found = fx.Record.from_pandas(frame, time="t", outputs={"rotor.phi": "q"})
    np.testing.assert_allclose(found.t, np.arange(T.size) * 1e-5, atol=1e-15)
    assert len(found.notes) == 1


def test_columns_of_other_lengths_do_not_follow_part_and_where(tmp_path: Path) -> None:
    twice = {"t": np.tile(T, 2), "x": np.tile(Q, 2), "fs": 100.0, "tq": T, "q": Q}
    savemat(tmp_path / "f.mat", {**twice, "mode": np.repeat([1.0, 2.0], 400)})
    given: dict[str, Any] = {"time": "t", "outputs": {"rotor.phi": "x"}}
    with pytest.raises(ValueError, match="starts again in row 400"):
        fx.Record.from_mat(tmp_path / "f.mat", **given)
    assert fx.Record.from_mat(tmp_path / "f.mat", part=2, **given).n == 400
    given |= {"inputs": {"drive": "x"}, "outputs": {"rotor.phi": fx.Column("q", time="tq")}}
    for chosen in ({"part": 2}, {"where": {"mode": 1}}):
        with pytest.raises(
            ValueError, match=r"'q' of f.mat .* as many rows as .* \(800\), got 400"
        ):
            fx.Record.from_mat(tmp_path / "f.mat", **chosen, **given)


def test_rows_where_a_flag_is_true_are_read() -> None:
    frame = pd.DataFrame({"t": T, "q": Q, "on": T > 1, "ok": (T > 1).astype(int)})
    for name, wanted in (("on", True), ("on", 1), ("ok", True), ("ok", 1)):
        found = fx.Record.from_pandas(
            frame, time="t", outputs={"rotor.phi": "q"}, where={name: wanted}
        )
        assert found.n == 299


def test_dates_with_a_zone_and_short_times_are_read() -> None:
    dates = pd.date_range("2024-01-01", periods=400, freq="10ms", tz="Europe/Berlin")
    for t in (dates, pd.Series(dates)):
        np.testing.assert_allclose(fx.Record(t, outputs={"rotor.phi": Q}).t, T, atol=1e-12)
    clock = [f"{10 + i // 60}:{i % 60:02}" for i in range(400)]
    frame = pd.DataFrame({"t": clock, "q": Q})
    found = fx.Record.from_pandas(frame, time="t", outputs={"rotor.phi": "q"})
    assert "read as minutes:seconds, not as hours:minutes" in found.notes[0]
    frame["t"] = [f"{40 + i // 60}:{i % 60:02}" for i in range(400)]
    assert fx.Record.from_pandas(frame, time="t", outputs={"rotor.phi": "q"}).notes == ()
