"""Notices of results: code, subject and numbers. The sentences of notices are in notices.toml."""

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Notice:
    """A remark on a result. ``print(notice)`` shows the remark as a sentence with a remedy.

    - `code`: a key of `TEXTS`, which never changes its meaning; docs/notices.md lists all codes.
    - `subject`: the parameter, channel, drive or record that the notice is about; "" for none or
      several.
    - `numbers`: the values in the sentence, by name; in SI unless the sentence has another unit. If
      a result repeats a notice of its record, the entry `in_record` is the name of the record.

    >>> notice = Notice("near-bound", "friction.peak", {"bound": 1.0})
    >>> print(notice)
    friction.peak may be 1: its interval includes this bound.
    """

    code: str
    subject: str = ""
    numbers: Mapping[str, int | float | str] = dataclasses.field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        # JSON needs Python numbers instead of NumPy scalars.
        plain = {name: np.asarray(x).item() for name, x in self.numbers.items()}
        object.__setattr__(self, "numbers", plain)

    def __str__(self) -> str:
        numbers = {**_ADDED.get(self.code, {}), **self.numbers}
        said = TEXTS[self.code].format(subject=self.subject, **numbers)
        record = numbers.get("in_record")
        return said if record is None else f"Record {record!r}: {said}"

    def of_record(self, label: str) -> "Notice":
        """Return a copy of the notice whose sentence begins with the record's name `label`."""
        return dataclasses.replace(self, numbers={**self.numbers, "in_record": label})

    def to_dict(self) -> dict[str, Any]:
        """Return a dict with the fields of the notice, and its sentence as `text`."""
        return {**dataclasses.asdict(self), "text": str(self)}


# Code -> values for placeholders that are missing in notices from files of older versions.
_ADDED = {
    "record-lone-samples": {"more": ""},
    "remembers": {"allowed": "The intervals allow for such an error."},
    "search-edge": {"verdict": "This fit did not compare its misfit with the noise."},
    "lack-of-fit": {"where": "at some speeds"},
    "row-lies-off": {"remedy": "Look at how it was measured, or fit with loss=Huber()"},
}
# Codes of notices that occur only in results of older versions.
OLD_CODES = frozenset({"search-by-stages"})
SECTIONS: Mapping[str, Mapping[str, Mapping[str, str]]] = tomllib.loads(
    Path(__file__).with_name("notices.toml").read_text(encoding="utf-8")
)
TEXTS = {code: one["sentence"] for notices in SECTIONS.values() for code, one in notices.items()}
