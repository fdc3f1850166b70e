"""Programs that the process before asked for one after the other are read before they are asked
for.
"""

import threading
from pathlib import Path
from typing import Any

import pytest

import frictax.programs.executables as ahead


class Process:
    """What a process reads; made anew it knows nothing of the one before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.read: list[str] = []
        self.folder = folder
        for name, nothing in (
            ("_reading", {}),
            ("_read_before", set()),
            ("_this_thread", threading.local()),
        ):
            monkeypatch.setattr(ahead, name, nothing)

    def reads(self, path: Path) -> str | None:
        self.read.append(path.stem)
        return path.read_text() if path.exists() else None

    def asks(self, names: str) -> list[str | None]:
        return [
            ahead.read_with_followers(self.reads, self.folder / f"{name}.program") for name in names
        ]


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in "abcd":
        (tmp_path / f"{name}.program").write_text(f"program {name}")
    return lambda: Process(monkeypatch, tmp_path)


def test_what_followed_is_read_with_what_it_followed_and_once(begun: Any) -> None:
    assert begun().asks("abcd") == [f"program {name}" for name in "abcd"]
    second = begun()
    assert second.asks("a") == ["program a"]
    assert sorted(ahead._reading) == [second.folder / f"{name}.program" for name in "bcd"]
    assert second.asks("bcd") == [f"program {name}" for name in "bcd"]
    assert sorted(second.read) == ["a", "b", "c", "d"]
    assert ahead._reading == {}


def test_another_order_is_noted_and_what_is_not_asked_for_is_left(begun: Any) -> None:
    begun().asks("abc")
    second = begun()
    assert second.asks("acd") == ["program a", "program c", "program d"]
    assert [path.stem for path in ahead._reading] == ["b"]
    third = begun()
    third.asks("a")
    assert sorted(path.stem for path in ahead._reading) == ["c", "d"]


def test_what_is_not_there_is_not_read_ahead_and_a_circle_ends(begun: Any) -> None:
    first = begun()
    first.asks("abab")
    (first.folder / "b.program").unlink()
    second = begun()
    assert second.asks("ab") == ["program a", None]
    assert second.read == ["a", "b"]
