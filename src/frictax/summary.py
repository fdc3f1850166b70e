"""The summary of a result, which a terminal shows as text and a notebook as HTML."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from .handover import Verb
from .text import align_columns


@dataclasses.dataclass(frozen=True)
class Summary:
    """The printed form of a result.

    - `title`; `above`: sentences between the title and the table.
    - `table`: head and rows of the table; `sides`: alignment of each column in HTML, "l" or "r";
      `chosen`: text in the first cell of the row that is emphasised.
    - `sentences` and `notices` below the table; `picture`: HTML for a notebook.
    """

    title: str = ""
    table: tuple[Sequence[str], Sequence[Sequence[Any]]] = ((), ())
    sides: str = ""
    sentences: Sequence[str] = ()
    notices: Sequence[str] = ()
    above: Sequence[str] = ()
    picture: str = ""
    chosen: str | None = None

    def text(self) -> str:
        """Return the summary as lines; each notice begins with an exclamation mark."""
        head, rows = self.table
        lines = [*([self.title] if self.title else []), *self.above]
        lines += align_columns(tuple(head), [tuple(row) for row in rows]) if head else []
        return "\n".join([*lines, *self.sentences, *(f"! {notice}" for notice in self.notices)])


class Summarised:
    """A result that shows its `Summary` when it is printed or is the value of a notebook cell."""

    _summary: Any  # a method or a `Verb`; it returns the `Summary`

    def __str__(self) -> str:
        return self._summary().text()

    def __repr__(self) -> str:
        return str(self)

    _repr_html_ = Verb("frictax.report.cards:summary_html")
