"""Programs are read ahead: with one those that the process before read after it, each by a thread
of its own.

To read a program takes a tenth of a second, most of it outside Python; what a derivative needs on
its way back is read while the way there is.
"""

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from frictax.files.private import read_private
from frictax.files.replacing import write_whole
from frictax.interrupts import begun, result_of, waited

_MOST = 8  # programs that are read ahead and not yet asked for
_begun: dict[Path, Future] = {}
_seen: set[Path] = set()
_this_thread = threading.local()


def in_succession(read: Callable[[Path], Any], path: Path) -> Any:
    """What `read` returns of the program at `path`; noted as what follows the program that this
    thread read before.
    """
    before, _this_thread.last = getattr(_this_thread, "last", None), path
    if before is not None and before.parent == path.parent and _follower(before) != path:
        _note(before, path)
    job = _begun.pop(path, None)
    _seen.add(path)
    following = _follower(path)
    while following is not None and following not in _begun and len(_begun) < _MOST:
        if following in _seen or not following.exists():
            break
        _begun[following] = begun(read, following)
        following = _follower(following)
    return waited(read, path) if job is None else result_of(job)


def _follower(path: Path) -> Path | None:
    with contextlib.suppress(ValueError):  # of a damaged note: it is written again
        return path.with_name((read_private(_notes(path)) or b"").decode("ascii"))
    return None


def _note(path: Path, following: Path) -> None:
    with contextlib.suppress(OSError):
        write_whole(_notes(path), following.name, replace=True, sync=False, mode=0o600)


def _notes(path: Path) -> Path:
    return path.with_suffix(".program.then")
