"""The format of a fleet's table: its number rises with its columns, and older parts are read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import frictax as fx
from formats import check_fields
from frictax.fleets.chunks import PartsFolder
from frictax.fleets.table import FORMAT, META, failed_row, join_chunks, row_of, table_of_rows
from half_written import leave_half_written

SAVED = Path(__file__).parents[1] / "report" / "saved" / "axis.fit"
ABOUT = pd.DataFrame({"machine": ["m"], "date": [pd.NaT], "temperature": [20.0]})


def frame_of(name: str, is_fitted: bool = True) -> Any:
    found = fx.load_fit(SAVED)
    (record,) = found.records.values()
    row = row_of(record, found) if is_fitted else failed_row(name, "broken")
    return table_of_rows([{**row, "record": name, "seconds": 1.0}], ABOUT)


def test_the_format_rises_with_the_columns_and_what_is_said_of_them() -> None:
    table = join_chunks([frame_of("a")], ["a"], "title", "digest", {"x": (0.0, 1.0)})
    fields = {*table.columns, *(f"about the columns: {key}" for key in table.attrs[META])}
    check_fields("table of a fleet", "fleets/table.py:FORMAT", FORMAT, fields)


def test_rows_of_an_older_format_lack_what_came_later(tmp_path: Path) -> None:
    (old, new), parts = (frame_of("a"), frame_of("b")), PartsFolder(tmp_path / "fleet.parquet")
    del old["condition"], old.attrs[META]["declared"]
    parts.begin("digest", 2, resume=False, overwrite=False)
    (parts.folder / "plan.json").write_text(json.dumps({"digest": "digest"}))  # without a format
    for number, frame in enumerate((old, new)):
        parts.write(number, frame)
    assert parts.begin("digest", 2, resume=True, overwrite=False) == {0, 1}
    table = join_chunks([parts.read(n) for n in (0, 1)], ["a", "b"], "title", "digest")
    parts.finish(table)
    again = fx.Fleet.read(tmp_path / "fleet.parquet")
    assert list(again.table.columns) == list(new.columns[:1]) + [
        c for c in again.table.columns if c != "record"
    ]
    assert set(again.table.columns) == set(new.columns)
    assert np.isnan(again.table["condition"][0])
    assert "declared" in again.table.attrs[META]
    assert not parts.folder.exists()


def test_a_table_whose_writer_was_killed_between_two_renames_is_the_new_one(tmp_path: Path) -> None:
    table = join_chunks([frame_of("a")], ["a"], "title", "digest")
    leave_half_written(tmp_path / "x.parquet", table.to_parquet(index=False))
    assert list(fx.Fleet.read(tmp_path / "x.parquet").table["record"]) == ["a"]
    assert [p.name for p in tmp_path.iterdir()] == ["x.parquet"]


def test_a_newer_format_is_named(tmp_path: Path) -> None:
    parts = PartsFolder(tmp_path / "fleet.parquet")
    parts.begin("digest", 1, resume=False, overwrite=False)
    plan = json.loads((parts.folder / "plan.json").read_text())
    assert plan == {"format": FORMAT, "digest": "digest"}
    (parts.folder / "plan.json").write_text(json.dumps(plan | {"format": FORMAT + 1}))
    with pytest.raises(ValueError, match=rf"is of format {FORMAT + 1}, and frictax .* knows up to"):
        parts.begin("digest", 1, resume=True, overwrite=False)
    table = join_chunks([frame_of("a")], ["a"], "title", "digest")
    table.attrs[META]["format"] = FORMAT + 1
    table.to_parquet(tmp_path / "newer.parquet", index=False)
    with pytest.raises(ValueError, match=rf"newer.parquet is of format {FORMAT + 1}, and frictax"):
        fx.Fleet.read(tmp_path / "newer.parquet")


def test_a_table_and_its_parts_keep_their_modes_and_leave_no_litter(tmp_path: Path) -> None:
    parts = PartsFolder(tmp_path / "fleet.parquet")
    parts.out.write_bytes(b"old")
    parts.out.chmod(0o600)
    parts.begin("digest", 1, resume=False, overwrite=True)
    parts.write(0, frame_of("a"))
    (parts.folder / ".frictax-0123456789abcdef.0.part").write_bytes(b"litter")
    (tmp_path / ".frictax-0123456789abcdef.0.part").write_bytes(b"litter")
    assert parts.begin("digest", 1, resume=True, overwrite=True) == {0}
    assert sorted(p.name for p in parts.folder.iterdir()) == ["000000.parquet", "plan.json"]
    parts.finish(join_chunks([parts.read(0)], ["a"], "title", "digest"))
    assert [p.name for p in tmp_path.iterdir()] == ["fleet.parquet"]
    assert parts.out.stat().st_mode & 0o777 == 0o600
