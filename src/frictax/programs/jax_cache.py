"""JAX's own cache of compiled programs in processes of frictax: checked before anything is loaded.

JAX itself loads whatever lies in its folder, and never replaces a damaged entry. The command line
and the processes of a fleet therefore let it read and write through `store`.
"""

import os
from pathlib import Path

import jax

from frictax.jax_internals import replace_file_cache

from .store import is_off, is_safe, read_entry, users_folder, write_entry

_DIRECTORY = "jax_compilation_cache_dir"


class CheckedCache:
    """JAX's interface to a cache, with the entries of `store`."""

    def __init__(self, folder: str) -> None:
        self._path = Path(folder)

    def get(self, key: str) -> bytes | None:
        return read_entry(self._path / f"{key}.program")

    def put(self, key: str, value: bytes) -> None:
        write_entry(self._path / f"{key}.program", value)


def check_jax_cache(*, keep: bool) -> None:
    """Let JAX load and keep programs only where no other user can write, in this process and in
    those that it starts.

    The folder is the one that ``JAX_COMPILATION_CACHE_DIR`` names.

    **Arguments:** `keep`: without such a folder JAX gets one, where ``FRICTAX_CACHE`` says or in
    this user's cache folder.
    """
    if not getattr(jax.config, "jax_enable_compilation_cache"):  # noqa: B009
        return
    given, asked = getattr(jax.config, _DIRECTORY), os.environ.get("FRICTAX_CACHE")
    if given is not None:
        given = given.removeprefix("file://")
        if "://" in given:
            return  # another machine's folder, whose owner nobody can see here
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
