"""Check that other users cannot write to a folder or file, because its content runs as code."""

import contextlib
import os
import stat
from pathlib import Path

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_HAS_OWNERS = os.name == "posix"


def unsafe_part(folder: Path) -> tuple[Path, str] | None:
    """Return the first folder or link on the path to `folder` through which another user can put
    files into `folder`, and the reason as text. Return None if `folder` is safe or missing.

    Each folder on a safe path belongs to this user or to root, and other users cannot write to it.
    Above `folder`, folders such as /tmp, in which users cannot change the files of others, are also
    safe. These conditions also apply to the targets of links. Windows does not have such
    permissions, so every folder passes.
    """
    if not _HAS_OWNERS:
        return None
    whole = Path.cwd() / folder
    # `steps`: folders and links from the root to `folder`, up to the first missing one.
    place, links = Path(whole.anchor), 0
    steps = [(place, _looked_at(place))]
    names = list(reversed(whole.parts[1:]))
    while names and steps[-1][1] is not None:
        name = names.pop()
        here = place.parent if name == ".." else place / name
        about = _looked_at(here) if links <= 40 else None  # Like Linux, follow at most 40 links.
        steps.append((here, about))
        if about is not None and stat.S_ISLNK(about.st_mode):
            links += 1
            target = Path(os.readlink(here))
            if target.is_absolute():
                place = Path(target.anchor)
            names += reversed([part for part in target.parts if part != target.anchor])
        else:
            place = here
    for i, (place, about) in enumerate(steps):
        if about is None:
            return None
        if about.st_uid not in (0, os.geteuid()):
            import pwd

            owner = f"user {about.st_uid}"
            with contextlib.suppress(KeyError):
                owner = f"{pwd.getpwuid(about.st_uid).pw_name} ({owner})"
            return place, f"{place} belongs to {owner}, and not to you or root"
        if stat.S_ISLNK(about.st_mode) or not about.st_mode & _OTHERS:
            continue
        if not about.st_mode & stat.S_ISVTX or i == len(steps) - 1:
            mode = stat.S_IMODE(about.st_mode)
            return place, f"other users may write to {place} (mode {mode:04o})"
    return None


def read_private(path: Path) -> bytes | None:
    """Return the content of a file; None if it is unreadable or another user may write to it."""
    if unsafe_part(path.parent) is not None:
        return None
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    # Without this flag, opening a pipe to which nobody writes would wait forever.
    flags |= getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                return None
            if _HAS_OWNERS:
                if about.st_uid not in (0, os.geteuid()) or about.st_mode & _OTHERS:
                    return None
            return file.read()
    except OSError:
        return None


def _looked_at(place: Path) -> os.stat_result | None:
    try:
        return os.lstat(place)
    except OSError:
        return None
