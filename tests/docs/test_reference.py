"""The reference has an entry with an example for every public name, and finds new ones itself."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def names(root: Path) -> Any:
    """docs/extensions/public_names.py, as the site uses it."""
    path = root / "docs" / "extensions" / "public_names.py"
    spec = importlib.util.spec_from_file_location("public_names", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_has_an_entry_in_the_reference(names: Any) -> None:
    assert names.missing() == []
    frictax = sys.modules["frictax"]
    public = {name for room in names.rooms().values() for name in room}
    assert (
        {"simulate", "fit", "Mechanism", "Stribeck", "Record", "compare"}
        <= public
        <= set(dir(frictax))
    )
    assert len(names.names_with_entry()) == len(set(names.names_with_entry()))  # and none has two


def test_every_entry_of_the_reference_has_an_example_or_says_where_it_is(names: Any) -> None:
    lacking = [name for name in names.names_with_entry() if not names.has_example(name)]
    assert lacking == [], (
        "write a short `>>>` example into their docstrings, or '**Example:** at `name`.' where"
        " another entry has it"
    )


def test_a_pointer_to_an_entry_without_an_example_is_no_example(
    names: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Bare:
        """**Example:** at `__version__`."""

    monkeypatch.setattr(sys.modules["frictax"], "Bare", Bare, raising=False)
    assert not names.has_example("frictax.Bare")
    Bare.__doc__ = "**Example:** at `Coulomb`."
    assert names.has_example("frictax.Bare")


def test_a_room_that_no_page_shows_is_told_with_the_line_to_write(
    names: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = names.rooms()
    monkeypatch.setattr(names, "rooms", lambda: known | {"frictax.lubrication": ["Oil"]})
    (sentence,) = names.missing()
    assert "frictax.lubrication has public names and no entry in the reference (Oil)" in sentence
    assert "write the line 'frictax.lubrication'" in sentence


def test_a_new_name_of_a_room_that_is_shown_has_its_entry_by_itself(
    names: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = names.rooms()
    monkeypatch.setattr(
        names, "rooms", lambda: known | {"frictax.laws": [*known["frictax.laws"], "Dahl"]}
    )
    assert names.missing() == []
    assert "frictax.Dahl" in names.names_with_entry()
