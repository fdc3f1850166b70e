"""Files are all old or all new, whenever the process that replaces them is killed."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import frictax.files.replacing as replacing
from frictax.files.replacing import finish_interrupted, write_together, write_whole

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
NAMES = ("a.json", "b.fit", "c.html")


def kills(folder: Path, *how: str) -> list[dict[str, str]]:
    """What a reader finds after each kill, see `kills.py`."""
    script = Path(__file__).with_name("kills.py")
    words = [sys.executable, "-I", str(script), replacing.__file__, str(folder), *how]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def is_one_generation(found: dict[str, str]) -> bool:
    """All of generation 1, or all of generation 2 with the file that only that one has."""
    generations = set(found.values())
    return len(generations) == 1 and ("new.txt" in found) == (generations == {"2"})


@needs_fork
@pytest.mark.parametrize("recovery", ["once", "twice"])
def test_a_kill_at_each_call_to_the_system_leaves_all_old_or_all_new(
    recovery: str, tmp_path: Path
) -> None:
    found = kills(tmp_path, recovery)
    assert len(found) > 60
    assert all(map(is_one_generation, found))
    moments = [next(iter(one.values())) for one in found]
    assert moments == sorted(moments)  # old up to one moment, and new from there on
    assert set(moments) == {"1", "2"}


@needs_fork
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_fifty_kills_at_random_moments_leave_one_generation(seed: int, tmp_path: Path) -> None:
    found = kills(tmp_path, "random", "50", str(seed))
    assert len(found) == 50
    assert all(len(one) == 4 and len(set(one.values())) == 1 for one in found)
    assert "broken" not in {generation for one in found for generation in one.values()}
    assert len({one["result.fit"] for one in found}) > 3


def contents(folder: Path, text: str, names: tuple[str, ...] = NAMES) -> dict[Path, str | bytes]:
    return {folder / name: f"{name} {text}" for name in names}


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def failing(call: Callable[..., Any], number: int, error: BaseException) -> Callable[..., Any]:
    """`call`, which raises once, at that number."""
    left = [number]

    def run(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == -1:
            raise error
        return call(*args, **options)

    return run


@pytest.mark.parametrize("name", ["replace", "link", "fsync", "open"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_error_at_any_call_leaves_what_was_there_and_no_litter(
    name: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_together(contents(tmp_path, "old", NAMES[:2]), replace=True)
    before, says = texts(tmp_path), set()
    if name != "fsync":
        monkeypatch.setattr(os, "fsync", lambda file: None)  # it takes most of the time
    for number in range(20):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, failing(getattr(os, name), number, error))
            try:
                write_together(contents(tmp_path, "new"), replace=True)
            except type(error) as said:
                says.add(str(said).partition(" ")[2])
                assert texts(tmp_path) == before, number
        if texts(tmp_path) != before:
            assert texts(tmp_path) == {name: f"{name} new" for name in NAMES}
            (tmp_path / "c.html").unlink()
            write_together(contents(tmp_path, "old", NAMES[:2]), replace=True)
    sentence = "could not be written (No space left on device). Nothing was changed: free some"
    # without hard links the old files are copied
    expected = set() if name == "link" else {f"{sentence} space, or write elsewhere."}
    assert says == (expected if isinstance(error, OSError) else {""})


def test_a_file_system_without_hard_links_gives_the_old_files_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write_together(contents(tmp_path, "old"), replace=True)
    before = texts(tmp_path)
    error = OSError(5, "Input/output error")
    monkeypatch.setattr(os, "replace", failing(os.replace, 2, error))
    with pytest.raises(OSError, match=r"c.html could not be written \(Input/output error\)"):
        write_together(contents(tmp_path, "new"), replace=True)
    assert texts(tmp_path) == before


@pytest.mark.parametrize("together", [True, False])
def test_a_file_keeps_its_mode_and_a_new_one_follows_the_umask(
    together: bool, tmp_path: Path
) -> None:
    modes = {"a.json": 0o600, "b.fit": 0o664, "c.html": 0o444}
    for name, mode in modes.items():
        (tmp_path / name).write_text("old")
        (tmp_path / name).chmod(mode)
    before = os.umask(0o027)
    try:
        files = contents(tmp_path, "new", (*NAMES, "d.toml"))
        if together:
            write_together(files, replace=True)
        else:
            for path, text in files.items():
                write_whole(path, text, replace=True)
    finally:
        os.umask(before)
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    if os.name == "posix":
        assert found == modes | {"d.toml": 0o640}
    assert all(text.endswith("new") for text in texts(tmp_path).values())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives away")
def test_a_file_that_root_replaces_still_belongs_to_its_owner(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("old")
    (tmp_path / "a.json").chmod(0o600)
    os.chown(tmp_path / "a.json", 54321, 54322)
    write_together(contents(tmp_path, "new"), replace=True)
    about = (tmp_path / "a.json").stat()
    assert (about.st_uid, about.st_gid, stat.S_IMODE(about.st_mode)) == (54321, 54322, 0o600)


def test_what_another_process_is_writing_is_left_alone(tmp_path: Path) -> None:
    path, file = replacing._create_locked(tmp_path, "0.part")
    journal, lock = replacing._create_locked(tmp_path, "journal")
    finish_interrupted(tmp_path)
    finish_interrupted(tmp_path, reading=True)
    write_whole(tmp_path / "a", "x", replace=False)
    assert {p.name for p in tmp_path.iterdir()} == {path.name, journal.name, "a"}
    os.close(file)
    os.close(lock)
    write_whole(tmp_path / "a", "y", replace=True)
    assert texts(tmp_path) == {"a": "y"}


@pytest.mark.parametrize(
    "line",
    [b"", b"[", b"{}\n", b'[["../out", false]]\n', b'[["/tmp/out", true]]\n', b'[["", true]]\n']
    + [b"[1]\n", b'[["..", true]]\n', b"\xff\n"],
)
@pytest.mark.parametrize("end", [b"", b"forward\n", b"forward\nback\n", b"forw", b"forward\nba"])
def test_a_journal_that_was_not_written_here_moves_nothing(
    line: bytes, end: bytes, tmp_path: Path
) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "out").write_text("mine")
    (inside / "kept").write_text("mine")
    (inside / ".frictax-0123456789abcdef.journal").write_bytes(line + end)
    (inside / ".frictax-0123456789abcdef.0.part").write_text("evil")
    finish_interrupted(inside)
    assert texts(inside) == {"kept": "mine"}
    assert (tmp_path / "out").read_text() == "mine"


def test_names_as_long_as_the_system_takes_can_be_replaced(tmp_path: Path) -> None:
    names = ("x" * 255, "ü" * 127)
    write_together(contents(tmp_path, "old", names), replace=False)
    write_together(contents(tmp_path, "new", names), replace=True)
    assert set(texts(tmp_path)) == set(names)


def test_files_of_several_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="files of one folder"):
        write_together({tmp_path / "a": "", tmp_path / "b" / "c": ""}, replace=True)
    write_together({}, replace=True)
    assert list(tmp_path.iterdir()) == []
