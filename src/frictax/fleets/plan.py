"""Which records are fitted together, and by what a run is known again."""

import dataclasses
import hashlib
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from frictax import __version__
from frictax.programs.key import Unknown, key_text

from .sources import Source
from .task import Chunk, Task, lengths_of

_TOGETHER = 64  # records of a chunk: a second or two of work


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """The chunks of a fleet; `order`: the names of all records; `digest`: by what it is known."""

    task: Task
    chunks: Sequence[Chunk]
    order: Sequence[str]
    digest: str


def planned(
    task: Task, sources: Sequence[Source], about: Any, values: Mapping[str, np.ndarray]
) -> Plan:
    """Records of one length stand together, so that a process meets few lengths."""
    sizes = [s.size for s in sources]
    task = dataclasses.replace(task, lengths=lengths_of(sizes))
    first = sorted(range(len(sources)), key=lambda i: (-task.length(sizes[i]), i))
    chunks = []
    for number, at in enumerate(range(0, len(first), _TOGETHER)):
        mine = first[at : at + _TOGETHER]
        chunks.append(
            Chunk(
                number,
                [sources[i] for i in mine],
                about.iloc[mine],
                {path: x[mine] for path, x in values.items()},
            )
        )
    digest = hashlib.sha256(f"{__version__} {_TOGETHER} {task.lengths}\n".encode())
    digest.update(_machine(task))
    for source in sources:
        digest.update(repr((source.name, *source.told())).encode())
    digest.update(about.to_csv().encode())
    for path, x in values.items():
        digest.update(path.encode() + np.ascontiguousarray(x).tobytes())
    return Plan(task, chunks, [s.name for s in sources], digest.hexdigest())


def _machine(task: Task) -> bytes:
    """What is fitted, and how."""
    if task.problem is not None:
        code = sorted(task.problem.parent.glob("*.py")) if task.allow_code else []
        return b"".join(path.read_bytes() for path in (task.problem, *code)) + task.label.encode()
    try:
        return key_text((task.machine, dict(task.settings)), fixed=True).encode()
    except Unknown:  # a user's own class or function
        return pickle.dumps((task.machine, dict(task.settings)))
