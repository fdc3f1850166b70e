"""The fields of all formats that frictax writes, as `formats.json` beside this file lists them."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LISTED = Path(__file__).with_suffix(".json")
_ASKED = "FRICTAX_NEW_FORMATS"
# Keys below these follow what happened or what is installed.
_FREE = ("notices", "numbers", "versions")


def check_fields(name: str, constant: str, number: int, fields: Iterable[str]) -> None:
    """Fail if the fields of a format changed and its number did not rise.

    `name`: of the format in `formats.json`; `constant`: where its number stands.
    """
    listed = json.loads(LISTED.read_text())
    before = listed.get(name, {"format": 0, "fields": []})
    now = sorted(set(fields))
    added, lost = set(now) - set(before["fields"]), set(before["fields"]) - set(now)
    if number == before["format"] and not added and not lost:
        return
    if number > before["format"] and os.environ.get(_ASKED):
        listed[name] = {"format": number, "fields": now}
        LISTED.write_text(json.dumps(listed, indent=1, sort_keys=True) + "\n")
        return
    changes = [*(f"+ {x}" for x in sorted(added)), *(f"- {x}" for x in sorted(lost))]
    if number <= before["format"]:
        remedy = f"Set {constant} to {before['format'] + 1}, then run this test with {_ASKED}=1."
    else:
        remedy = f"Run this test with {_ASKED}=1, which writes {LISTED.name}."
    raise AssertionError(
        f"The {name} has other fields than format {before['format']}: {', '.join(changes)}."
        f" {remedy} Old files give the default of a new field, or None: if it meant something"
        " else, say so in BEFORE of frictax/report/saving/things.py."
    )


def keys(thing: Any, path: str = "") -> set[str]:
    """Every key in JSON, with those above it."""
    if isinstance(thing, list):
        return set().union(*(keys(x, f"{path}[]") for x in thing))
    if not isinstance(thing, dict):
        return set()
    found = set()
    for key, x in thing.items():
        here = f"{path}.{key}" if path else str(key)
        found |= {here} if key in _FREE else {here} | keys(x, here)
    return found
