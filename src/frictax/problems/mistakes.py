"""What pydantic says of a wrong problem file, as one sentence."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydantic

from frictax.text import brief, suggestion

from .building import Place, ProblemError
from .schema import ColumnEntry, ProblemFile

_WORDS = {
    "Input should": "must",
    "String should": "must",
    "Tuple should": "must",
    "List should": "must",
    "Dictionary should": "must",
    "valid dictionary": "table",
    "valid integer": "whole number",
    "valid boolean": "truth value, true or false",
    "valid ": "",
    "should": "must",
}


def sentence(file: Path, table: Mapping[str, Any], error: pydantic.ValidationError) -> ProblemError:
    """The first complaint in one sentence; of a union, the one of the branch that the value is
    like.
    """
    errors = error.errors(include_url=False)
    deepest = max(
        errors,
        key=lambda e: (
            e["loc"][:1] == errors[0]["loc"][:1],
            e["type"] == "extra_forbidden",
            len(e["loc"]),
        ),
    )
    first = deepest if errors[0]["loc"][:2] == deepest["loc"][:2] else errors[0]
    node: Any = table
    place = Place(file.name)
    for step in first["loc"]:
        keys: Any = range(len(node)) if isinstance(node, list) else node
        inside = isinstance(node, Mapping | list) and step in keys
        if inside or first["type"] in ("missing", "extra_forbidden") and step == first["loc"][-1]:
            place = place.below(str(step))
            inner: Any = node
            node = inner[step] if inside else node
    others = len({e["loc"][:2] for e in errors}) - 1
    more = f" ({others} more after it.)" if others else ""
    key = str(first["loc"][-1]) if first["loc"] else ""
    says = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        known = _keys(first["loc"][:-1])
        return place.error(
            f"is no key of a problem file.{suggestion(key, known)} Here stand:"
            f" {', '.join(known)}.{more}"
        )
    if first["type"] == "missing":
        return place.error(f"is missing. Add {key} = ...{more}")
    if first["type"] == "value_error":
        return place.error(f"{says}.{more}")
    if first["type"] == "string_pattern_mismatch":
        return place.error(
            'must be "module:function", the module a file beside the problem, got'
            f" {brief(first['input'], 80)}.{more}"
        )
    for pydantics, ours in _WORDS.items():
        says = says.replace(pydantics, ours)
    return place.error(f"{says}, got {brief(first['input'], 80)}.{more}")


def _keys(loc: tuple[Any, ...]) -> list[str]:
    """The keys that may stand in the table at `loc`."""
    model: Any = ProblemFile
    for step in loc:
        fields = getattr(model, "model_fields", {})
        if step in fields:
            model = _table_of(fields[step].annotation)
        elif step == "ColumnEntry":
            model = ColumnEntry
    return list(getattr(model, "model_fields", ProblemFile.model_fields))


def _table_of(annotation: Any) -> Any:
    """The kind of table that an annotation asks for: of dict[str, Entry] and Entry | None it is
    Entry.
    """
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return annotation
    inner = [_table_of(a) for a in getattr(annotation, "__args__", ())]
    return next((a for a in inner if a is not None), None)
