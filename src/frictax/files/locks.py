"""Locks for writing that also work between the users, containers and hosts of a shared disk.

On one host, the operating system also locks the lock file (flock) while the process runs. The
system releases this lock when the process ends, in any container and for any user. Many shared
disks do not pass system locks to other hosts, and some systems do not support them. Therefore the
process that has the lock also changes its lock file every few seconds. A lock file that no longer
changes belongs to a killed process. No decision depends on a host's clock or on a process number.
"""

import contextlib
import json
import os
import platform
import stat
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from frictax.text import printable

from .replacing import is_at, lock_file

_BEAT = 3.0  # [s] interval at which a process changes its lock file; much shorter than `_SILENCE`
_SILENCE = 20.0  # [s] a process whose lock file does not change for this time counts as ended
_LOOK = 0.5  # [s] interval at which the lock file of a process on another host is read
_LARGEST = 4096  # [bytes] largest part of a lock file that is read
_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@contextlib.contextmanager
def hold_lock(path: Path, what: str, remedy: str) -> Iterator[None]:
    """Hold a lock in this context: create the file `path`, and remove it at the end of the context.
    Raise an error with one sentence if another process has the lock. The error message contains
    `what`, the name of the locked file, and `remedy`, an alternative to waiting.
    """
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o644)
        except FileExistsError:
            _remove_abandoned(path, what, remedy)
            continue
        if lock_file(file) is not False and is_at(path, file):
            _write(file, 0)
            break
        os.close(file)
    ended = threading.Event()
    beating = threading.Thread(target=_beat, args=(file, ended), daemon=True)
    try:
        beating.start()
        yield
    finally:
        ended.set()
        if beating.ident is not None:
            beating.join()
        is_mine = is_at(path, file)
        if os.name == "nt":  # Windows cannot remove an open file.
            os.close(file)
        if is_mine:
            path.unlink(missing_ok=True)
        if os.name != "nt":
            os.close(file)


def _remove_abandoned(path: Path, what: str, remedy: str) -> None:
    """Remove the lock of an ended process. Raise `FileExistsError` if the process still runs."""
    try:
        try:
            file = os.open(path, os.O_RDWR | _FLAGS)
        except PermissionError:  # The file belongs to another user.
            file = os.open(path, os.O_RDONLY | _FLAGS)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(0, "not a file")
    except FileNotFoundError:
        return
    except OSError as error:
        raise PermissionError(
            f"{what} may be in use: its lock {path} cannot be read ({error.strerror}). Remove that"
            f" file if no process writes there, or {remedy}."
        ) from None
    try:
        is_free, owner = lock_file(file), {}
        with contextlib.suppress(ValueError, RecursionError):
            owner = json.loads(_content(path))
        owner = owner if isinstance(owner, dict) else {}
        is_known_dead = is_free is True and owner.get("system") == _system()
        if is_free is False or (not is_known_dead and _changes(path)):
            host, process, began = (owner.get(name) for name in ("host", "process", "began"))
            shown = "one that its lock does not name"
            if isinstance(host, str) and isinstance(process, int) and isinstance(began, str):
                shown = printable(f"process {process} on {host}, started {began}")
            raise FileExistsError(
                f"{what} is at work in another process: {shown}. Wait for its end, end it, or"
                f" {remedy}."
            )
        if is_at(path, file):
            if os.name == "nt":
                os.close(file)
                file = -1
            path.unlink(missing_ok=True)
    except PermissionError:
        raise PermissionError(
            f"The lock {path} of a process that has ended belongs to another user, who alone may"
            f" remove it. Ask for that, or {remedy}."
        ) from None
    finally:
        if file >= 0:
            os.close(file)


def _changes(path: Path) -> bool:
    """Return whether another process still changes the lock file."""
    before, until = _content(path), time.monotonic() + _SILENCE
    while time.monotonic() < until:
        time.sleep(_LOOK)
        if _content(path) != before:
            return True
    return False


def _beat(file: int, ended: threading.Event) -> None:
    count = 0
    while not ended.wait(_BEAT):
        count += 1
        # The error of a full disk is ignored here, because the writer of the results reports it.
        with contextlib.suppress(OSError):
            _write(file, count)


def _write(file: int, beat: int) -> None:
    """Write host, process number, start time and number of changes as text of constant length."""
    says = {"host": platform.node()[:200], "process": os.getpid(), "began": _BEGAN}
    text = json.dumps({**says, "system": _system(), "beat": beat})
    os.lseek(file, 0, os.SEEK_SET)
    os.write(file, f"{text:<600}\n".encode())
    os.fsync(file)  # Without this call a shared disk may delay writing by up to half a minute.


def _content(path: Path) -> bytes:
    """Open and read a file; a shared disk may show changes only in a newly opened file."""
    try:
        file = os.open(path, os.O_RDONLY | _FLAGS)
    except OSError:
        return b""
    try:
        return os.read(file, _LARGEST)
    finally:
        os.close(file)


def _system() -> str:
    """Return an identifier of the running operating system, equal in all its containers."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{platform.node()} {uuid.getnode()}"


_BEGAN = time.strftime("%Y-%m-%d %H:%M:%S")
