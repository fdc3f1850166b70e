"""One process writes: seen by processes of this host, of other users, of containers and hosts."""

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from frictax.files import locks
from frictax.files.locks import hold_lock

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="Windows has no signals that end a process"
)

HOLDS = """
import sys, time, pathlib
from frictax.files.locks import hold_lock
with hold_lock(pathlib.Path(sys.argv[1]), "fleet.parquet", "name another file"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    tmp_path.chmod(0o777)
    return tmp_path / ".fleet.parquet.lock"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks and silence of another host are short."""
    monkeypatch.setattr(locks, "_SILENCE", 0.4)
    monkeypatch.setattr(locks, "_LOOK", 0.05)
    monkeypatch.setattr(locks, "_BEAT", 0.1)


def holder(lock: Path, *before: str, **how) -> subprocess.Popen:
    """A process that has the lock."""
    words = [*before, sys.executable, "-c", HOLDS, str(lock)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **how)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def ended(process: subprocess.Popen) -> None:
    process.kill()
    process.communicate()


def take(lock: Path) -> None:
    with hold_lock(lock, "fleet.parquet", "name another file"):
        assert lock.exists()


def refused(lock: Path) -> str:
    with pytest.raises(FileExistsError, match="is at work in another process") as error:
        take(lock)
    assert "Wait for its end, end it, or name another file." in str(error.value)
    return str(error.value)


@pytest.fixture
def held(lock: Path) -> Iterator[subprocess.Popen]:
    process = holder(lock)
    yield process
    ended(process)


def test_a_lock_is_refused_while_its_process_lives_and_taken_after_a_kill(
    lock: Path, held: subprocess.Popen
) -> None:
    said = refused(lock)
    assert f"process {held.pid} on {platform.node()}, started 20" in said
    held.send_signal(signal.SIGKILL)
    held.wait()
    assert lock.exists()
    began = time.monotonic()
    take(lock)
    assert time.monotonic() - began < 1.0
    assert not lock.exists()


def test_a_lock_of_process_1_that_was_killed_is_taken_though_a_process_1_lives(lock: Path) -> None:
    owner = {"host": platform.node(), "process": 1, "began": "2026-01-01 00:00:00"}
    lock.write_text(json.dumps({**owner, "system": locks._system(), "beat": 0}))
    take(lock)
    assert not lock.exists()


def test_process_1_of_a_container_refuses_others_and_leaves_no_lock_for_ever(lock: Path) -> None:
    apart = ["unshare", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to make a namespace of processes (unshare), as root has")
    process = holder(lock, *apart)
    try:
        assert "process 1 on " in refused(lock)
    finally:
        ended(process)
    until = time.monotonic() + 10.0  # the child is killed after its parent
    while True:
        try:
            take(lock)
            break
        except FileExistsError:
            assert time.monotonic() < until
            time.sleep(0.05)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, to act as two users"
)
def test_a_lock_of_another_users_living_process_is_not_stolen(lock: Path) -> None:
    process = holder(lock)
    asks = HOLDS.replace(
        "with hold_lock",  # after all modules are loaded, which the other user may not read
        "import os\nwith hold_lock(pathlib.Path(sys.argv[1] + '0'), '', ''):\n    pass\n"
        "os.setuid(65534)\nwith hold_lock",
    )
    for folder in [one for one in lock.parents if Path(tempfile.gettempdir()) in one.parents]:
        folder.chmod(folder.stat().st_mode | 0o055)
    try:
        nobody = subprocess.run(
            [sys.executable, "-c", asks, str(lock)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert f"is at work in another process: process {process.pid} on" in nobody.stderr
        assert lock.exists()
    finally:
        ended(process)
    left = subprocess.run(
        [sys.executable, "-c", asks.replace("60", "0"), str(lock)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert left.stdout == "held\n", left.stderr


def test_a_lock_of_another_host_counts_as_long_as_its_file_changes(lock: Path, quick: None) -> None:
    owner = {"host": "lab7", "process": 4711, "began": "2026-11-28 08:00:00", "system": "other"}
    writes = (
        "import json, sys, time\n"
        "for beat in range(1000):\n"
        f"    open(sys.argv[1], 'w').write(json.dumps({{**{owner!r}, 'beat': beat}}))\n"
        "    time.sleep(0.1)\n"
    )
    lock.write_text(json.dumps(owner))
    process = subprocess.Popen([sys.executable, "-c", writes, str(lock)])
    try:
        time.sleep(0.5)
        assert "process 4711 on lab7, started 2026-11-28 08:00:00" in refused(lock)
        assert lock.exists()
    finally:
        ended(process)
    take(lock)  # after a silence
    assert not lock.exists()


def test_a_process_that_has_a_lock_goes_on_to_change_its_file(lock: Path, quick: None) -> None:
    with hold_lock(lock, "fleet.parquet", "name another file"):
        assert locks._changes(lock)
    assert not lock.exists()


@pytest.mark.parametrize(
    "content", ["", "4711", "[]", "\x1b[2J", "{" * 5000, '{"host": "\\u001b"}']
)
def test_a_lock_that_says_nothing_is_taken_after_a_silence(
    lock: Path, quick: None, content: str
) -> None:
    lock.write_text(content)
    take(lock)
    assert not lock.exists()


def test_what_is_no_file_is_no_lock(lock: Path) -> None:
    os.mkfifo(lock)
    with pytest.raises(PermissionError, match="Remove that file if no process writes there"):
        take(lock)
