"""Folders and files that belong to somebody else, whoever runs the tests."""

import hashlib
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

STRANGER = 54321  # a user who owns nothing


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `path` belong to somebody else: truly for root, and in what `os` says for others."""
    if os.geteuid() == 0:
        os.chown(path, STRANGER, STRANGER)
        return
    real = os.lstat

    def lstat(asked, **options) -> os.stat_result:
        about = real(asked, **options)
        if os.path.samestat(about, given):
            return os.stat_result((*about[:4], STRANGER, *about[5:]))
        return about

    given = real(path)
    monkeypatch.setattr(os, "lstat", lstat)


class Evil:
    """A pickle that makes the folder `loaded` where it is loaded."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def plant(folder: Path, marker: Path) -> int:
    """Replace every program below `folder` by one that makes the folder `marker`."""
    content = pickle.dumps(Evil(marker))
    programs = list(folder.rglob("*.program"))
    for path in programs:
        path.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    return len(programs)
