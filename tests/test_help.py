"""What a user finds without a page: `help(fx)`, and `-h` of every command."""

import pydoc
from typing import Any

import pytest
import typer

import frictax as fx
from commands import frictax
from frictax.cli import app


def test_help_lists_every_public_name_behind_its_room() -> None:
    text = fx.__doc__
    assert text is not None
    assert text.startswith("Machines with dry friction")
    rooms = dict(part.split(":", 1) for part in text.split("\n\n") if part[:1].islower())
    names = {name.strip() for part in rooms.values() for name in part.replace("\n", ",").split(",")}
    public = {name for name in dir(fx) if not name.startswith("_")} - {"lazily"}
    homes = {name for name in public if getattr(fx, name).__class__.__name__ != "module"}
    assert homes <= names
    assert "SupportFriction" in rooms["contacts"]
    assert "Friction elements of the Modelica Standard Library" in rooms["contacts"]
    assert max(map(len, text.splitlines())) <= 100
    assert "Public names, by room" in pydoc.plain(pydoc.render_doc(fx))


def _commands(group: Any, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = getattr(group, "commands", {})
    return [words, *(c for name, one in below.items() for c in _commands(one, (*words, name)))]


@pytest.mark.parametrize("words", _commands(typer.main.get_command(app)), ids=" ".join)
def test_every_command_takes_h_as_help(words: tuple[str, ...]) -> None:
    short, long = frictax(*words, "-h"), frictax(*words, "--help")
    assert short.exit_code == 0
    assert short.output == long.output
    assert "Usage: frictax" in short.output
