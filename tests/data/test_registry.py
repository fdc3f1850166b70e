"""Public records: found in the given folder, fetched from their home, and never taken
when damaged.
"""

import dataclasses
import hashlib
import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frictax import data
from frictax.cli import app
from frictax.data import PublicFile, PublicRecord, registry

CONTENT = {"a.csv": b"t,x\n0,1\n", "raw/b.csv": b"t,x\n0,2\n" * 1000}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def home(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder with the files, and the address under which a server on this machine gives them."""
    folder = tmp_path / "home"
    for name, content in CONTENT.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def machine(
    home: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> PublicRecord:
    """A record in the registry whose home is the server, and an empty cache."""
    files = tuple(
        PublicFile(n, home[1] + n, len(c), hashlib.sha256(c).hexdigest())
        for n, c in CONTENT.items()
    )
    record = PublicRecord("machine", "A machine", "Somebody, 2026", "MIT", "example.org", files)
    monkeypatch.setattr(registry, "records", lambda: {"machine": record})
    monkeypatch.setattr(data, "records", lambda: {"machine": record})
    monkeypatch.setattr(registry, "cache", lambda: tmp_path / "cache")
    monkeypatch.delenv("FRICTAX_DATA", raising=False)
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    return record


def test_what_is_fetched_is_there_once_and_for_all(
    machine: PublicRecord, home: tuple[Path, str], tmp_path: Path
) -> None:
    with pytest.raises(
        FileNotFoundError,
        match=r"'machine' cannot be used: it is not here.*frictax data fetch machine",
    ):
        data.path("machine")
    told: list[tuple[int, int]] = []
    folder = data.fetch("machine", tell=lambda done, whole: told.append((done, whole)))
    assert folder == tmp_path / "cache" / "machine" == data.path("machine")
    assert {n: (folder / n).read_bytes() for n in CONTENT} == CONTENT
    assert told == [(8, 8008), (8008, 8008)]
    for name in CONTENT:
        (home[0] / name).unlink()
    assert data.fetch("machine") == folder  # without a look at its home


def test_the_named_folder_comes_first(
    machine: PublicRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data.fetch("machine")
    given = data.fetch("machine", tmp_path / "given")
    monkeypatch.setenv("FRICTAX_DATA", str(tmp_path / "given"))
    assert data.path("machine") == given
    (given / "a.csv").unlink()
    # a folder without all files is passed over
    assert data.path("machine") == tmp_path / "cache" / "machine"


def test_what_is_damaged_on_the_way_is_not_kept(
    machine: PublicRecord, home: tuple[Path, str], tmp_path: Path
) -> None:
    (home[0] / "raw" / "b.csv").write_bytes(CONTENT["raw/b.csv"][:-5])
    with pytest.raises(ValueError, match="not the file that was published as machine/raw/b.csv"):
        data.fetch("machine")
    kept = [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert kept == [tmp_path / "cache" / "machine" / "a.csv"]  # the sound one, and no half one
    with pytest.raises(FileNotFoundError, match="1 of its 2 files are missing"):
        data.path("machine")
    (home[0] / "raw" / "b.csv").write_bytes(CONTENT["raw/b.csv"])
    assert data.fetch("machine") == data.path("machine")


def test_what_was_damaged_later_is_told_and_fetched_again(machine: PublicRecord) -> None:
    folder = data.fetch("machine")
    (folder / "a.csv").write_bytes(b"t,x\n0,9\n")
    with pytest.raises(
        ValueError, match=r"is damaged: .*a\.csv is not the file that was published"
    ):
        data.path("machine")
    assert data.fetch("machine") == data.path("machine")
    assert (folder / "a.csv").read_bytes() == CONTENT["a.csv"]


def test_no_connection_and_no_such_file_are_told(
    machine: PublicRecord, home: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (home[0] / "a.csv").unlink()
    with pytest.raises(
        OSError, match=r"a\.csv was not found \(404\). Look at its home, example.org"
    ):
        data.fetch("machine")
    away = tuple(
        dataclasses.replace(f, address="http://127.0.0.1:9/" + f.path) for f in machine.files
    )
    monkeypatch.setattr(
        registry, "records", lambda: {"machine": dataclasses.replace(machine, files=away)}
    )
    with pytest.raises(
        OSError, match=r"127\.0\.0\.1:9 cannot be reached, so that machine/a\.csv was not fetched"
    ):
        data.fetch("machine")


def test_two_fetches_at_once_do_each_other_no_harm(machine: PublicRecord) -> None:
    threads = [threading.Thread(target=data.fetch, args=("machine",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert data.path("machine").is_dir()


def test_an_interrupted_fetch_leaves_no_half_file(machine: PublicRecord, tmp_path: Path) -> None:
    def stop(done: int, whole: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        data.fetch("machine", tell=stop)
    assert [p.name for p in (tmp_path / "cache").rglob("*") if p.is_file()] == ["a.csv"]
    assert data.fetch("machine") == data.path("machine")


def test_the_command_line_lists_fetches_and_tells_what_is_wrong(
    machine: PublicRecord, tmp_path: Path
) -> None:
    run = CliRunner()
    listed = run.invoke(app, ["data", "list"])
    assert listed.exit_code == 0
    assert "machine  0.0 MB, 2 files, licence: MIT" in listed.output
    assert "not downloaded: frictax data fetch machine" in listed.output
    fetched = run.invoke(app, ["data", "fetch", "machine", "--to", str(tmp_path / "there")])
    assert (fetched.exit_code, fetched.output.strip()) == (0, str(tmp_path / "there" / "machine"))
    missing = run.invoke(app, ["data", "path", "machine"])
    assert missing.exit_code == 1
    assert "frictax data fetch machine" in missing.output
    wrong = run.invoke(app, ["data", "path", "machin"])
    assert wrong.exit_code == 1
    assert (
        "There is no public record 'machin'. Did you mean 'machine'? There are: machine."
        in wrong.output
    )


def test_the_registry_names_source_licence_and_files_of_each_record() -> None:
    assert list(data.records()) == [
        "emps",
        "presliding_tribometer",
        "screw_drives",
        "xl330_pendulum",
    ]
    for record in data.records().values():
        assert record.title and record.citation and record.licence and record.home  # noqa: PT018
        assert len({file.path for file in record.files}) == len(record.files)
        for file in record.files:
            assert file.address.startswith("https://")
            assert len(file.sha256) == 64
            assert file.bytes > 0
            assert ".." not in file.path
            assert not file.path.startswith("/")


def test_records_beside_the_project_are_those_of_the_registry(data_folder: Path) -> None:
    for name, record in data.records().items():
        assert record.missing(data_folder / name) == []
        assert record.damaged(data_folder / name) == []
        assert (
            sum((data_folder / name / f.path).stat().st_size for f in record.files) == record.bytes
        )
