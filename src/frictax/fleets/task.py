"""What is done with each record of a fleet."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .sources import Source

_RATIO = 1.25  # of one length to the next that records are filled up to
_KINDS = 8  # lengths of a fleet that each have a program of their own


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """The machine and how it is fitted: by a `problem` file, or as given.

    - `problem`: the file, with `label`, the record of it that says how files are read.
    - `machine`, `settings` of `fit`: where there is no file.
    - `lengths`: to how many samples records are filled up, the least that is enough; of none,
      each is as long as it is.
    """

    problem: Path | None = None
    label: str = ""
    allow_code: bool = False
    machine: Any = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    lengths: tuple[int, ...] = ()

    def length(self, samples: int) -> int:
        """To how many a record of so many is filled up."""
        enough = [n for n in self.lengths if n >= samples]
        if not enough or enough[0] > _RATIO * samples + 1:
            return samples
        return enough[0]


@dataclasses.dataclass(frozen=True, eq=False)
class Chunk:
    """Records that are fitted together: where they are, what is known of each, a row each of the
    `DataFrame` `about`, and the values that the machine of each has as its own.
    """

    number: int
    sources: Sequence[Source]
    about: Any
    values: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)


def lengths_of(sizes: Sequence[int]) -> tuple[int, ...]:
    """The lengths that records of these sizes are filled up to, so that few programs do for all:
    none where they are of few lengths already.
    """
    sizes = [n for n in sizes if n > 0]
    if len(set(sizes)) <= _KINDS:
        return ()
    out = [max(sizes)]
    while out[-1] > min(sizes) and len(out) < 100:
        out.append(int(np.ceil(out[-1] / _RATIO)))
    used = {min(n for n in out if n >= size) for size in sizes}
    return tuple(sorted(used))
