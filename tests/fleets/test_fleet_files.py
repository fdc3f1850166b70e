"""Fleets of files: a folder, a long table, the command line, processes and a cluster."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import frictax as fx
from blocks import FREE, block
from frictax.cli import app

NAME = FREE[0]
COUNT = 250  # four chunks, of which most are open when the first is done


def frictax(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), prog_name="frictax")


def long_table(records: list[fx.Record]) -> pd.DataFrame:
    parts = []
    for i, r in enumerate(records):
        part = pd.DataFrame({"t": r.t, "F": r.inputs["drive"], "v": 1e3 * r.outputs["mass.v"]})
        about = {"record_id": r.name, "machine_id": f"axis {i % 2}", "temperature": 20.0 + i}
        parts.append(part.assign(**about))
    return pd.concat(parts, ignore_index=True)


@pytest.mark.slow
def test_a_folder_becomes_a_table_and_a_broken_file_a_reason(
    folder: Path, records: list[fx.Record]
) -> None:
    (folder / "records" / "b3.csv").write_text("t,F,v\n0,1,2\n0.1,oops,3\n")
    rows = "".join(f"b{i}.csv,Prüfling {i},2026-03-{i:02d}\n" for i in range(1, 11))
    (folder / "about.csv").write_bytes(f"record,machine,date\n{rows}".encode("cp1252"))
    out = folder / "fleet.parquet"
    asked = ("fleet", str(folder), str(folder / "records"), "--out", str(out), "--jobs", "1")
    result = frictax(*asked, "--about", str(folder / "about.csv"))
    assert result.exit_code == 0, result.output
    assert "10 records, 9 fitted, 1 without numbers" in result.output
    assert "oops" in result.output
    made = fx.Fleet.read(out)
    assert list(made.table["record"]) == [f"b{i}" for i in range(1, 11)]  # b10 is the last
    assert list(made.table["machine"]) == [f"Prüfling {i}" for i in range(1, 11)]
    assert made.table["date"].iloc[8] == pd.Timestamp("2026-03-09")
    assert "b3.csv, line 3" in made.failed["reason"].iloc[0]
    (row,) = fx.fleet(block(), records[6:7], free=FREE, jobs=1).table.to_dict("records")
    # the file has twelve digits
    error = row[f"{NAME}.standard_error"]
    assert made.table[NAME][6] == pytest.approx(row[NAME], abs=1e-3 * error)
    again = frictax(*asked)
    assert again.exit_code == 1
    assert "--overwrite" in again.output
    assert "Traceback" not in again.output


@pytest.mark.slow
def test_a_long_table_is_read_record_by_record(folder: Path, records: list[fx.Record]) -> None:
    table = folder / "long.parquet"
    long_table(records).to_parquet(table, row_group_size=150)
    made = fx.fleet(folder / "problem.toml", table, jobs=1)
    assert list(made.table["record"]) == [r.name for r in records]
    assert list(made.table["temperature"]) == [20.0 + i for i in range(10)]
    assert list(made.table["machine"][:3]) == ["axis 0", "axis 1", "axis 0"]
    e = fx.fit(block(), records[9], free=FREE)[NAME]
    assert made.table[NAME][9] == pytest.approx(e.value, abs=1e-6 * e.standard_error)


def test_a_long_table_needs_its_records_one_after_the_other_and_their_names(
    folder: Path, records: list[fx.Record]
) -> None:
    table, mixed = folder / "long.parquet", long_table(records).sample(frac=1.0, random_state=0)
    mixed.to_parquet(table)
    with pytest.raises(ValueError, match="are not consecutive"):
        fx.fleet(folder, table, jobs=1)
    mixed.rename(columns={"record_id": "run"}).to_parquet(table)
    with pytest.raises(ValueError, match=r"no column 'record_id'.*fleet\.record"):
        fx.fleet(folder, table, jobs=1)


@pytest.mark.parametrize(
    ("place", "more", "words"),
    [
        ("nowhere", (), "no folder or table"),
        ("records", ("--jobs", "0"), "--jobs must be at least 1"),
        ("empty", (), "holds no record"),
        ("records", ("--about", "nothing.csv"), "no file nothing.csv"),
    ],
)
def test_wrong_input_is_one_sentence(
    folder: Path, place: str, more: tuple[str, ...], words: str
) -> None:
    (folder / "empty").mkdir()
    out = folder / "fleet.parquet"
    done = frictax("fleet", str(folder), str(folder / place), "--out", str(out), *more)
    assert done.exit_code in (1, 2)
    assert words in " ".join(done.output.split())
    assert "Traceback" not in done.output
    assert not out.exists()
    assert not (folder / "fleet.parquet.parts").exists()


def test_a_package_that_is_not_there_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    out = folder / "fleet.parquet"
    done = frictax("fleet", str(folder), str(folder / "records"), "--out", str(out), "--jobs", "1")
    assert done.exit_code == 1
    assert "frictax[fleet]" in " ".join(done.output.split())
    assert "Traceback" not in done.output
    assert not isinstance(done.exception, ImportError)


# A shell starts its background jobs with Ctrl-C ignored, and their children inherit this.
HEARS_KEYS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@pytest.mark.slow
def test_two_processes_make_the_same_table_though_a_key_stops_them_and_one_dies(
    folder: Path,
) -> None:
    # the machine's own code ends the process of a pool that first asks for it
    (folder / "own.py").write_text(
        "import multiprocessing\nimport os\nimport pathlib\nimport frictax as fx\n\n\n"
        "def machine():\n"
        "    marker = os.environ.get('DIES_ONCE')\n"
        "    if marker and multiprocessing.parent_process() and not os.path.exists(marker):\n"
        "        pathlib.Path(marker).touch()\n"
        "        os._exit(1)\n"
        "    friction = fx.SupportFriction('mass', f_pos=fx.Coulomb(F_Coulomb=0.8))\n"
        "    drive = fx.Force('mass', 0.0)\n"
        "    return fx.Mechanism(mass=fx.Mass(m=1.0), friction=friction, drive=drive)\n"
    )
    text = (folder / "problem.toml").read_text()
    first, last = text.index("[machine.mass]"), text.index("[fit]")
    text = f'{text[:first]}[machine]\npython = "own:machine"\n\n{text[last:]}'
    (folder / "problem.toml").write_text(text)
    ten = fx.fleet(folder, folder / "records", jobs=1, allow_code=True)
    many(folder)
    out, marker = folder / "fleet.parquet", folder / "died"
    words = [sys.executable, "-m", "frictax", "fleet", str(folder), str(folder / "records")]
    words += ["--out", str(out), "--jobs", "2", "--allow-code"]
    begin = [sys.executable, "-c", HEARS_KEYS, *words[1:]]
    # later processes read what the first compiled
    env = os.environ | {"FRICTAX_CACHE": str(folder / "programs")}
    run = subprocess.Popen(begin, stderr=subprocess.PIPE, text=True, env=env)
    _until(lambda: any((folder / "fleet.parquet.parts").glob("0*.parquet")), run)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "--resume" in said
    assert not marker.exists()
    env["DIES_ONCE"] = str(marker)
    words.append("--resume")
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, env=env)
    assert done.returncode == 0, done.stderr
    assert marker.exists()
    assert_copies(fx.Fleet.read(out), ten)


@pytest.mark.slow
def test_a_cluster_makes_the_same_table_though_a_worker_is_killed(folder: Path) -> None:
    pytest.importorskip("distributed", reason="needs the extra cluster")
    ten = fx.fleet(folder, folder / "records", jobs=1)
    many(folder)
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    scheduler_file = folder / "scheduler.json"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [
        subprocess.Popen(
            [*dask, "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
            + ["--scheduler-file", str(scheduler_file)],
            **quiet,
        )
    ]
    try:
        _until(scheduler_file.is_file, started[0])
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-dashboard"]
        worker += ["--scheduler-file", str(scheduler_file), "--nthreads", "1", "--no-nanny"]
        started += [subprocess.Popen(worker, **quiet) for _ in range(2)]
        from distributed import Client

        with Client(scheduler_file=str(scheduler_file)) as client:
            client.wait_for_workers(2, timeout=120)
            killed = []

            def kill(line: fx.ProgressLine) -> None:
                if line.share and line.share > 0.1 and not killed:
                    killed.append(started[-1].pid)
                    os.kill(started[-1].pid, signal.SIGKILL)

            made = fx.fleet(folder, folder / "records", cluster=client, progress=kill)
        assert killed
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert_copies(made, ten)
    assert np.isfinite(made.table[NAME]).all()


def assert_copies(made: fx.Fleet, ten: fx.Fleet) -> None:
    """The rows of `many` files are those of the ten, again and again."""
    assert list(made.table["record"]) == [f"b{i}" for i in range(1, COUNT + 1)]
    numbers = made.table.select_dtypes(float).columns.difference(["seconds"])
    again = pd.concat([ten.table[numbers]] * (COUNT // 10), ignore_index=True)
    pd.testing.assert_frame_equal(made.table[numbers], again, rtol=1e-9)


def many(folder: Path) -> None:
    """`COUNT` files, the ten again and again."""
    for i in range(11, COUNT + 1):
        source = folder / "records" / f"b{(i - 1) % 10 + 1}.csv"
        (folder / "records" / f"b{i}.csv").write_bytes(source.read_bytes())


def _until(there, process: subprocess.Popen) -> None:
    end = time.monotonic() + 240
    while not there():
        assert process.poll() is None, "the process ended before"
        assert time.monotonic() < end, "nothing happened in four minutes"
        time.sleep(0.1)
