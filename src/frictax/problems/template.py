"""A problem file as a template: other files and tables read as it reads one record of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import frictax as fx

from .problem import Problem
from .reading import Reader


def template_of(problem: Problem) -> str:
    """The label of the record by which others are read: the first that is fitted."""
    if not isinstance(problem.data, dict) or not problem.fitted:
        raise problem.place.error(
            "has no record to go by: a fleet reads its files as the first record that is fitted."
            " Give one as [records.NAME]."
        )
    label = next(iter(problem.fitted))
    if problem.content.records[label].file is None:
        raise problem.place.below("records", label).error(
            "is made by a function, and a fleet reads files. Name its `file` and columns."
        )
    return label


def record_reader(problem: Problem, label: str) -> Callable[[str, Path | Any], fx.Record]:
    """From a name and a file, or a `DataFrame`, to its record: read as record `label` of the
    problem is.
    """
    entry = problem.content.records[label]
    reader = Reader(problem.file, problem.content, False)

    def read(name: str, source: Path | Any) -> fx.Record:
        if not isinstance(source, Path):
            return reader.record(name, entry, source)
        mine = entry.model_copy(update={"public": None, "file": str(source.resolve())})
        return reader.record(name, mine)

    return read
