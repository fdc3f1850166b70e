"""The page of a fleet while it is fitted."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from frictax.files.replacing import write_whole

from .plan import Plan
from .table import joined

_EVERY = 10.0  # seconds from one page to the next, at least
_SHARE = 20.0  # times as long as a page takes to write: a twentieth of the work at most
_AGAIN = '<meta http-equiv="refresh" content="10">'


class LiveReport:
    """A report that is written anew as rows come in.

    **Arguments:** `path`; the `plan`, its `title`, the `limits` of its verdicts; `replace`: whether
    a page that is there may go.

    **Raises:** `OSError` with one sentence where it cannot be written.
    """

    def __init__(
        self,
        path: Path,
        plan: Plan,
        title: str,
        limits: Mapping[str, tuple[float | None, float | None]] | None,
        *,
        replace: bool,
    ) -> None:
        from frictax.report.page import check_report

        check_report(path, overwrite=replace)
        self.path, self.plan, self.title, self.limits = path, plan, title, limits
        self.next = 0.0

    def tell(self, frames: Callable[[], Sequence[Any]]) -> None:
        """The page of the rows so far, unless the last one is too young."""
        if time.monotonic() < self.next:
            return
        began = time.monotonic()
        table = joined(frames(), self.plan.order, self.title, self.plan.digest)
        note = f"{len(table)} of {len(self.plan.order)} records so far."
        self._write(table, [note], lambda text: text.replace("<head>", f"<head>{_AGAIN}", 1))
        took = time.monotonic() - began
        self.next = time.monotonic() + max(_EVERY, _SHARE * took)

    def end(self, table: Any) -> None:
        """The page of all rows."""
        self._write(table, [], lambda text: text)

    def _write(self, table: Any, notes: list[str], change: Callable[[str], str]) -> None:
        if not table.attrs["frictax"]["names"]:  # no record was fitted yet
            return
        from .page.report import fleet_report_text  # a worker has no need of matplotlib

        limits = self.limits
        text = fleet_report_text(table, limits=limits, title=self.title, notes=notes)
        write_whole(self.path, change(text), replace=True)
