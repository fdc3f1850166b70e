"""The folder of compiled programs, with checks of who may have written them.

A cached program is executed as code, so it is loaded only from a folder that no other user can
write to. The folder and all folders above it are checked before each load. If a folder fails the
check, the cache is not used, and one line reports the reason.

JAX's own cache loads any file in its folder and never replaces a damaged entry. Therefore the
command line and the processes of a fleet apply the same checks to JAX's cache (`check_jax_cache`).
"""

import contextlib
import functools
import hashlib
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from frictax.files.private import read_private, unsafe_part
from frictax.files.replacing import write_whole
from frictax.jax_internals import replace_file_cache

_LONGEST_UNREAD = 30 * 86400.0  # [s] an entry that was not read for this time is removed
# [bytes] largest size of a folder. In a larger folder, the entries that were unread for the longest
# time are removed.
_ROOM = 512 * 2**20
_OFF = ("", "0", "off", "no", "false")  # values of FRICTAX_CACHE that switch the cache off


# The command line replaces this function by a function that writes to its error stream.
report_line: Callable[[str], None] = functools.partial(warnings.warn, category=RuntimeWarning)
_reported: set[Path] = set()


def config_of(name: str) -> Any:
    """Return the value of a setting of `jax.config`, whose type stubs are incomplete."""
    return getattr(jax.config, name)


def program_folder() -> Path | None:
    """Return the folder of compiled programs; None if the cache is off. The variable
    ``FRICTAX_CACHE`` sets the folder. The default is "frictax" in the folder of JAX's cache. If JAX
    does not have a cache folder, the default on a CPU is "frictax" in `users_folder`.
    """
    asked, beside = os.environ.get("FRICTAX_CACHE"), config_of("jax_compilation_cache_dir")
    if config_of("jax_disable_jit") or jax.device_count() > 1:
        return None
    if asked is not None:
        return None if is_off(asked) else Path(asked)
    if not config_of("jax_enable_compilation_cache"):
        return None
    if isinstance(beside, str) and beside and "://" not in beside:
        return Path(beside) / "frictax"
    return users_folder() / "frictax" if device().platform == "cpu" else None


def is_off(asked: str) -> bool:
    """Return whether the value `asked` of ``FRICTAX_CACHE`` switches the cache off."""
    return asked.strip().lower() in _OFF


@functools.cache
def users_folder() -> Path:
    """Return the folder of compiled programs in this user's cache folder."""
    import platformdirs

    return platformdirs.user_cache_path("frictax") / "compiled"


def device() -> Any:
    """Return JAX's default device, which runs programs that do not specify a device."""
    asked = config_of("jax_default_device")
    if asked is None or isinstance(asked, str):
        return jax.devices(asked)[0]
    return asked


def is_safe(folder: Path, variable: str = "FRICTAX_CACHE") -> bool:
    """Return whether programs may be loaded from `folder` and written to it. For an unsafe folder,
    report the reason and the environment `variable` for another folder in one line.
    """
    found = unsafe_part(folder)
    if found is None:
        return True
    part, rule = found
    if part not in _reported:
        _reported.add(part)
        remedy = f"Name another folder by {variable}"
        if rule.endswith(")") and "may write" in rule and not part.stat().st_mode & 0o1000:
            remedy = f"Run `chmod go-w {part}`, or name another folder by {variable}"
        report_line(f"No compiled program is loaded from {folder} or kept there: {rule}. {remedy}.")
    return False


def read_entry(path: Path) -> bytes | None:
    """Return the content of a file that `write_entry` wrote; None if the file is missing or
    damaged, or if another user could have written it.
    """
    whole = read_private(path)
    if whole is None:
        return None
    mark, newline, content = whole.partition(b"\n")
    if not newline or mark != _checksum(content):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)  # Remove the damaged file.
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return content


def write_entry(path: Path, content: bytes) -> None:
    """Write `content` to the file `path`, completely or not at all. Do nothing if another user can
    write to the folder of this file. Remove files of the folder that were not read for a month.
    """
    if unsafe_part(path.parent) is not None:
        return
    with contextlib.suppress(OSError):
        for folder in reversed([path.parent, *path.parent.parents]):
            if not folder.exists():
                folder.mkdir(mode=0o700, exist_ok=True)
        if unsafe_part(path.parent) is None:  # Another user may have just created the folder.
            files, size = [], len(content)
            for file in path.parent.glob("*.program*"):
                with contextlib.suppress(OSError):  # Another process may have removed the file.
                    about = file.stat()
                    files.append((about.st_mtime, about.st_size, file))
            files.sort(reverse=True)
            # Remove old files. If the folder is too large, remove the longest unread files.
            for read, bytes_, file in files:
                size += bytes_
                if size > _ROOM or time.time() - read > _LONGEST_UNREAD:
                    with contextlib.suppress(OSError):
                        file.unlink()
            marked = _checksum(content) + b"\n" + content
            write_whole(path, marked, replace=True, sync=False, mode=0o600)


def _checksum(content: bytes) -> bytes:
    """Return the checksum of `content`, which is the first line of a cache file."""
    return hashlib.sha256(content).hexdigest().encode()


_DIRECTORY = "jax_compilation_cache_dir"


class CheckedCache:
    """A compilation cache for JAX that reads and writes files with the checks of this module."""

    def __init__(self, folder: str) -> None:
        self._path = Path(folder)

    def get(self, key: str) -> bytes | None:
        return read_entry(self._path / f"{key}.program")

    def put(self, key: str, value: bytes) -> None:
        write_entry(self._path / f"{key}.program", value)


def check_jax_cache(*, keep: bool) -> None:
    """Make JAX load and write compiled programs only in a folder that no other user can write to.
    The variable ``JAX_COMPILATION_CACHE_DIR`` sets this folder, also for child processes. Without
    this variable and with `keep`, the folder is "jax" in the folder of ``FRICTAX_CACHE``, or this
    user's cache folder.
    """
    if not getattr(jax.config, "jax_enable_compilation_cache"):  # noqa: B009
        return
    given, asked = getattr(jax.config, _DIRECTORY), os.environ.get("FRICTAX_CACHE")
    if given is not None:
        given = given.removeprefix("file://")
        if "://" in given:
            return  # The owner of a remote folder cannot be checked.
        is_on = is_safe(Path(given), "JAX_COMPILATION_CACHE_DIR")
    elif not keep:
        return
    else:
        folder = users_folder() if asked is None else Path(asked)
        is_on = not (asked is not None and is_off(asked)) and is_safe(folder)
        given = str(folder if asked is None else folder / "jax")
    if is_on:
        jax.config.update(_DIRECTORY, given)
        replace_file_cache(CheckedCache)
    else:
        jax.config.update("jax_enable_compilation_cache", False)
        os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
