"""Each row of a fleet is the fit of its record; nothing that is done is lost."""

from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import frictax as fx
from blocks import FREE, block
from frictax.fitting import FitOptions
from frictax.fitting.fit_many import fit_each
from frictax.fitting.many_search import _cut, _fill
from frictax.fitting.search.levenberg_marquardt import begin
from frictax.fleets.chunks import Task, padded_lengths
from frictax.fleets.sources import (
    ABOUT,
    MemorySource,
    TableSource,
    describe_records,
    sources_in_memory,
)
from frictax.measurements.record import replace_fields

NAME = FREE[0]
NUMBERS = [NAME, f"{NAME}.standard_error", f"{NAME}.lower", f"{NAME}.upper"]


def fitted(records: list[fx.Record], **more) -> fx.Fleet:
    return fx.fleet(block(), records, free=FREE, jobs=1, **more)


def same(a: fx.Fleet, b: fx.Fleet) -> None:
    pd.testing.assert_frame_equal(
        a.table.drop(columns="seconds"), b.table.drop(columns="seconds"), check_exact=True
    )


@pytest.fixture(scope="module")
def done(records: list[fx.Record]) -> fx.Fleet:
    return fitted(records)


def test_each_row_is_the_fit_of_its_record(done: fx.Fleet, records: list[fx.Record]) -> None:
    assert list(done.table["record"]) == [r.name for r in records]
    assert done.names == (NAME,)
    assert done.units == {NAME: "N"}
    for (_, row), record in zip(done.table.iterrows(), records, strict=True):
        found = fx.fit(block(), record, free=FREE)
        e = found[NAME]
        told = [e.value, e.standard_error, e.lower, e.upper]
        assert np.allclose(row[NUMBERS].to_numpy(float), told, rtol=0, atol=1e-6 * e.standard_error)
        assert row["converged"] == found.converged
        assert row["at_noise"] is found.at_noise is True
        assert row["notices"].split() == [n.code for n in found.notices_at_hand]
        assert row["rms.mass.v"] == pytest.approx(found.rms[record.name]["mass.v"], rel=1e-9)
        assert abs(row["lag1.mass.v"]) < 0.35  # white noise, 101 samples
        assert (row["reason"], row["samples"]) == ("", 101)


def test_intervals_hold_what_made_the_records(done: fx.Fleet, friction: np.ndarray) -> None:
    inside = (done.table[f"{NAME}.lower"] < friction) & (friction < done.table[f"{NAME}.upper"])
    assert inside.sum() >= 8  # of 10; fewer by chance once in 90 times


def test_a_record_that_cannot_be_fitted_is_a_row_with_its_reason(
    done: fx.Fleet, records: list[fx.Record]
) -> None:
    wrong = fx.Record(records[0].t, {"motor": records[0].inputs["drive"]}, records[0].outputs)
    with_it = fitted([*records[:3], wrong, *records[3:]])
    assert len(with_it.failed) == 1
    (row,) = with_it.failed.to_dict("records")
    assert row["record"] == "record"
    assert "motor" in row["reason"]
    assert np.isnan(row[NAME])
    assert not row["converged"]
    rest = with_it.table[with_it.table["reason"] == ""].reset_index(drop=True)
    same(fx.Fleet(rest), done)


def test_a_machine_has_values_of_its_own_and_what_is_known_of_it_stays(
    records: list[fx.Record], done: fx.Fleet
) -> None:
    m = np.where(np.arange(10) % 2, 1.0, 1.1)
    about = pd.DataFrame(
        {
            "record": [r.name for r in records],
            "machine": [f"axis {i // 5}" for i in range(10)],
            "date": pd.date_range("2026-01-01", periods=10).astype(str),
            "line": "A",
        }
    )
    found = fitted(records, values={"mass.m": m}, about=about.sample(frac=1.0, random_state=0))
    assert list(found.table["machine"]) == list(about["machine"])
    assert found.table["date"].iloc[3] == pd.Timestamp("2026-01-04")
    assert list(found.table["line"]) == ["A"] * 10
    assert np.isnan(found.table["temperature"]).all()
    lighter = fx.fit(block(m=1.1), records[0], free=FREE, rounds=0)[NAME]
    assert found.table[NAME][0] == pytest.approx(lighter.value, abs=1e-6 * lighter.standard_error)
    odd = found.table[1::2].reset_index(drop=True)
    assert np.allclose(odd[NUMBERS], done.table[1::2][NUMBERS])


def test_a_cell_about_a_record_that_cannot_be_read_is_named(records: list[fx.Record]) -> None:
    sources, names = sources_in_memory(records[:2]), {k: k for k in ("record", *ABOUT)}

    def described(column: str, *cells: object) -> list:
        about = pd.DataFrame({"record": [s.name for s in sources], column: list(cells)})
        return describe_records(sources, about, names)[column].tolist()

    days = [pd.Timestamp("2026-05-31"), pd.Timestamp("2026-06-01 10:00")]
    assert described("date", "2026-05-31", "2026-06-01 10:00") == days
    assert described("date", 20260531, "") == [days[0], pd.NaT]
    assert described("temperature", "20.5", 21) == [20.5, 21.0]
    with pytest.raises(ValueError, match=r"dates of records .* got '01.06.2026'"):
        described("date", "2026-05-31", "01.06.2026")
    with pytest.raises(ValueError, match="temperatures of the records .* got 'warm'"):
        described("temperature", 20.0, "warm")


def test_an_interrupted_run_is_resumed_to_the_same_table(
    records: list[fx.Record], done: fx.Fleet, tmp_path: Path, chunks_of_four: None
) -> None:
    out, parts = tmp_path / "fleet.parquet", tmp_path / "fleet.parquet.parts"

    def stop(line: fx.ProgressLine) -> None:
        if line.share and line.share >= 0.8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(records, out=out, progress=stop)
    assert len(list(parts.glob("*.parquet"))) == 2
    assert not out.exists()
    with pytest.raises(FileExistsError, match="resume=True"):
        fitted(records, out=out)
    with pytest.raises(ValueError, match="other records, another problem"):
        fitted(records[:-1], out=out, resume=True)
    lines: list[fx.ProgressLine] = []
    resumed = fitted(records, out=out, resume=True, progress=lines.append)
    assert [line.what for line in lines if "records" in line.what][1:] == ["10 of 10 records"]
    same(resumed, done)
    same(fx.Fleet.read(out), done)
    assert fx.Fleet.read(out).table.attrs == resumed.table.attrs
    assert not parts.exists()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        fitted(records, out=out, resume=True)


def test_a_record_declared_otherwise_is_another_record(
    records: list[fx.Record], tmp_path: Path
) -> None:
    first = records[0]
    sd = np.full((2, first.n), 1.0)
    sd[1, first.n // 2] = 2.0
    others = [replace_fields(first, sd={"mass.v": each}) for each in (1.0, *sd)]
    prints = {MemorySource("a", one).fingerprint() for one in (first, *others)}
    assert len(prints) == 4
    path = tmp_path / "long.parquet"
    path.write_bytes(b"one")
    before = TableSource("a", path, 0, 3, "record").fingerprint()
    path.write_bytes(b"other")
    assert TableSource("a", path, 0, 3, "record").fingerprint() != before


def test_records_without_a_name_have_names_of_their_own(records: list[fx.Record]) -> None:
    named = [replace_fields(records[0], name=name) for name in ("record 2", "", "record 2")]
    names = [one.name for one in sources_in_memory(named)]
    assert names[0] == "record 2"
    assert len(set(names)) == 3


def test_only_one_process_works_on_a_table(
    records: list[fx.Record], tmp_path: Path, chunks_of_four: None
) -> None:
    out, again = tmp_path / "fleet.parquet", []

    def ask(line: fx.ProgressLine) -> None:
        if line.share and not again:
            for more in ({"resume": True}, {"overwrite": True}):
                with pytest.raises(
                    FileExistsError, match=r"is at work in another process: .*`out`"
                ):
                    fitted(records, out=out, **more)
                again.append(more)

    assert len(fitted(records, out=out, progress=ask).table) == 10
    assert len(again) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.parquet"]


def _stop_at_once(line: fx.ProgressLine) -> None:
    if line.share:
        raise KeyboardInterrupt


def test_records_of_many_lengths_share_few_programs_and_keep_their_numbers() -> None:
    sizes = list(range(900, 2000, 7))
    lengths = padded_lengths(sizes)
    assert len(lengths) <= 5
    task = Task(lengths=lengths)
    for n in sizes:
        assert n <= task.length(n) <= 1.25 * n + 1
    assert padded_lengths([2000, 2001, 2000]) == ()
    assert Task().length(2001) == 2001


def test_samples_that_fill_up_a_record_weigh_nothing(records: list[fx.Record]) -> None:
    found = fx.fit(block(), records[0], free=FREE)
    problem, n = found.problem, records[0].n
    filled = _fill(problem, lambda n: n + 7)
    assert filled.prepared[0].measured.shape[0] == n + 7
    seen = eqx.filter_jit(lambda problem, x: problem.residuals_of(x, 0))
    residuals = np.asarray(seen(filled, jnp.asarray(found.x)))
    assert np.allclose(residuals[:n], found.full_residuals, rtol=0, atol=1e-12)
    assert not residuals[n:].any()
    assert _fill(problem, lambda n: n) is problem
    end = begin(jnp.asarray(found.x), n + 7)
    assert _cut(problem, filled, end).residuals.shape == (n,)
    assert _cut(problem, problem, end) is end


@pytest.mark.slow
def test_a_record_that_is_filled_up_is_fitted_as_it_is(records: list[fx.Record]) -> None:
    cut = [r.trim(0.0, 2.0 - 0.02 * k) for k, r in enumerate(records)]  # ten lengths
    found = fitted(cut)
    assert list(found.table["samples"]) == [r.n for r in cut]
    e, row = fx.fit(block(), cut[4], free=FREE)[NAME], found.table.iloc[4]
    told = [e.value, e.standard_error, e.lower, e.upper]
    assert np.allclose(row[NUMBERS].to_numpy(float), told, rtol=0, atol=1e-6 * e.standard_error)


@pytest.mark.slow
def test_fits_that_begin_with_another_objective_go_together_too(records: list[fx.Record]) -> None:
    asked = {
        "free": ["mass.m", *FREE],
        "start": fx.InverseDynamics(cutoff=8.0),
        "objective": fx.Windows(0.5, cutoff=8.0),
    }
    models = [block(0.5, m) for m in (0.7, 0.9)]
    made = fit_each(models, records[:2], FitOptions(**asked))
    for model, record, one in zip(models, records, made, strict=False):
        assert isinstance(one, fx.FitResult)
        alone = fx.fit(model, record, **asked)
        for e in alone.estimates:
            mine = one[e.name]
            told = [mine.value, mine.standard_error, mine.lower, mine.upper]
            as_told = [e.value, e.standard_error, e.lower, e.upper]
            assert np.allclose(told, as_told, rtol=0, atol=1e-6 * e.standard_error)


def test_a_page_grows_with_the_rows_and_has_verdicts(
    records: list[fx.Record], tmp_path: Path, chunks_of_four: None
) -> None:
    page, seen = tmp_path / "fleet.html", []

    def look(line: fx.ProgressLine) -> None:
        if page.exists() and line.share != 1.0:
            seen.append(page.read_text())

    limits = {NAME: (0.0, 0.9)}
    made = fitted(records, report=page, limits=limits, out=tmp_path / "f.parquet", progress=look)
    assert "4 of 10 records so far" in seen[0]
    assert 'http-equiv="refresh"' in seen[0]
    text = page.read_text()
    assert "records so far" not in text
    assert 'http-equiv="refresh"' not in text
    assert "cannot tell" in text
    again = fx.Fleet.read(tmp_path / "f.parquet")
    assert again.table.attrs["frictax"]["limits"] == {NAME: [0.0, 0.9]}
    said = set(fx.verdicts(made, limits).table["verdict"])
    assert {"pass", "fail"} <= said
    with pytest.raises(FileExistsError, match="Let it be overwritten"):
        fitted(records, report=page)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"records": []}, ["a list of `Record`s", "an empty list"]),
        ({"records": [1.0]}, ["a list with a float"]),
        ({"values": {"mass.n": [1.0]}}, ["`values` names 'mass.n'", "mass.m"]),
        ({"values": {"mass.m": [1.0]}}, ["for each of the 10 fits", "got (1,)"]),
        ({"jobs": 0}, ["`jobs` must be", "got 0"]),
        ({"resume": True}, ["about the file `out`"]),
        ({"about": pd.DataFrame({"record": ["b1"]})}, ["no row for 'b2' and 8 others"]),
        ({"about": pd.DataFrame({"name": ["b1"]})}, ["no column 'record'"]),
        ({"about": pd.DataFrame({"record": ["b1", "b1"]})}, ["names 'b1' twice"]),
    ],
)
def test_mistakes_are_told_before_anything_is_fitted(
    records: list[fx.Record], more: dict, words: list[str]
) -> None:
    given = {"records": records, "jobs": 1, **more}
    with pytest.raises((ValueError, KeyError)) as error:
        fx.fleet(block(), given.pop("records"), free=FREE, **given)
    for word in words:
        assert word in str(error.value)
