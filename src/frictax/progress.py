"""Progress of long work: lines of text with the fraction that is done and the remaining time."""

import contextlib
import html
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from frictax.annotations import Checked
from frictax.interrupts import Keys, nested_work
from frictax.text import printable


class ProgressLine(str):
    """A line of text that reports the progress of long work to the user's function `progress`.

    The line is a text with three attributes: `what` (the present work), `share` (the finished
    fraction, 0 to 1), and `left` (the remaining time [s]). An unknown `share` or `left` has the
    value None. `share` never decreases, and is 1 in the last line.

    With `progress=True` the lines go to the error stream. A terminal shows one line that is
    updated. A notebook shows one line below the cell until the work ends. If the error stream is a
    file, a line is written every five seconds.

    >>> import frictax as fx
    >>> v, f = [0.5, 1.0, 2.0, 4.0, 8.0], [6.12, 6.19, 6.41, 6.78, 7.61]

    >>> sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    >>> found, lines = fx.fit(fx.Coulomb, sweep), []

    >>> pair = found.profile(("F_Coulomb", "F_prop"), points=5, progress=lines.append)
    >>> lines[9].what, lines[9].share, lines[9].left is not None
    ('10 of 25 points', 0.4, True)
    >>> print(lines[-1])
    25 of 25 points, 100 %
    """

    what: str
    share: float | None
    left: float | None

    def __new__(
        cls, what: str, share: float | None = None, left: float | None = None
    ) -> "ProgressLine":
        parts = [what]
        if share is not None:
            # The line shows 0 % and 100 % only at the exact beginning and end.
            percent = 100 * share if share in (0, 1) else min(max(100 * share, 1), 99)
            parts.append(f"{percent:.0f} %")
        if left is not None:
            parts.append(f"about {in_words(left)} left")
        line = super().__new__(cls, ", ".join(parts))
        line.what, line.share, line.left = what, share, left
        return line


Progress = Callable[[ProgressLine], Any]


class Work:
    """Long work that reports its progress to the function `say`. Without `say`, ``bool(work)`` is
    False. An inner computation, such as a fit, can report as part of this work by calling this
    object with a `ProgressLine`.
    """

    def __init__(self, say: Progress | None, clock: Callable[[], float] | None = None) -> None:
        self.say, self.clock = say, time.monotonic if clock is None else clock
        self.share: float | None = None
        self.above: Work | None = None
        self.what, self.first = "", (0.0, 0.0)
        self.lock = threading.RLock()

    def __bool__(self) -> bool:
        return self.say is not None

    def __call__(self, what: str, share: float | None = None, left: float | None = None) -> None:
        """Report the present work `what`, its finished share (0 to 1), and the remaining time
        `left` [s]. Without `left`, the remaining time is estimated from the speed so far.
        """
        with self.lock:  # Only one thread may report at a time.
            if self.say is None:
                return
            if isinstance(what, ProgressLine):
                what, share, left = what.what, what.share, what.left
            if share is not None:
                share = min(max(share, self.share or 0.0), 1.0)
                left = self._left(share) if left is None else left
            self.share, self.what = self.share if share is None else share, what
            line = ProgressLine(what, self.share, None if share == 1.0 else left)
            try:
                self.say(line)
            except BaseException:
                self.break_off()
                raise

    def _left(self, share: float) -> float | None:
        """Return the remaining time [s], estimated from the speed since the first report."""
        now = self.clock()
        if self.share is None:
            self.first = now, share
        began, before = self.first
        return (now - began) * (1.0 - share) / (share - before) if share > before else None

    def count(self, done: int, of: int, what: str) -> None:
        """Report that `done` parts are finished; `of` is the number of all parts."""
        self(f"{done} of {of} {what}", done / of)

    def break_off(self) -> None:
        """After an interrupt, end the reports of this work and of the work that contains it."""
        with self.lock:
            self.say = None
        if self.above is not None:
            self.above.break_off()

    def end(self) -> None:
        """Report the end: repeat the last line with `share` = 1 if its share was smaller."""
        if self.share != 1.0 and self.what:
            self(self.what, 1.0)

    def parts(self, weights: Mapping[str, float]) -> dict[str, "Work"]:
        """Divide this work, and return its parts by name. The share of this work is the mean share
        of its parts, weighted by `weights`. A name that begins with a space is not printed.
        """
        shares, lock = dict.fromkeys(weights, 0.0), threading.Lock()
        total = sum(weights.values())

        def tell(name: str, line: ProgressLine) -> None:
            with lock:
                shares[name] = shares[name] if line.share is None else line.share
                share = sum(weights[n] * shares[n] for n in weights) / total
            what = line.what if name.startswith(" ") else f"{name}: {line.what}"
            self(what, share, line.left if len(weights) == 1 else None)

        if not self:
            return dict.fromkeys(weights, self)
        parts = {name: Work(lambda line, n=name: tell(n, line), self.clock) for name in weights}
        for part in parts.values():
            part.above = self
        return parts


SILENT = Work(None)


@contextlib.contextmanager
def show_progress(progress: Checked[bool | Progress], title: str) -> Iterator[Work]:
    """Return a context that reports the progress of its work and does not lose a Ctrl-C."""
    if not isinstance(progress, bool) and not callable(progress):
        raise ValueError(
            f"`progress` must be True, False or a function of a line of text, got {progress!r}."
        )
    listens = (
        progress if callable(progress) and (not isinstance(progress, Work) or progress) else None
    )
    shown: Any = contextlib.nullcontext(listens)
    if progress is True:
        shown = _bar(title) if sys.stderr.isatty() else _lines(title)
        if "IPython" in sys.modules:
            from IPython import get_ipython  # pyright: ignore[reportMissingImports]

            shown = _notebook(title) if hasattr(get_ipython(), "kernel") else shown
    with nested_work(), Keys(), shown as say:
        work = SILENT if say is None else Work(say)
        try:
            yield work
        except BaseException:
            work.break_off()
            raise
        work.end()


def in_words(seconds: float) -> str:
    """Return an estimated time as text with one or two digits.

    >>> in_words(0.31), in_words(8.2), in_words(100.0), in_words(4000.0)
    ('0.3 s', '8 s', '2 min', '1.1 h')
    """
    if seconds < 90:
        return f"{max(seconds, 0.1):.1f} s" if seconds < 1 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


@contextlib.contextmanager
def _bar(title: str) -> Iterator[Progress]:
    """Show one line of progress in a terminal; the line disappears at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress as Bars, TextColumn
    from rich.table import Column

    rest = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    line = TextColumn("{task.fields[line]}", markup=False, table_column=rest)
    columns = TextColumn("{task.description}", markup=False), BarColumn(bar_width=16), line
    looks: dict[str, Any] = {"transient": True, "expand": True}
    looks["redirect_stdout"] = sys.stdout.isatty()
    bars = Bars(*columns, console=Console(stderr=True), **looks)
    task = bars.add_task(title, total=None, line="...")
    with bars:
        yield lambda line: bars.update(
            task,
            total=None if line.share is None else 1.0,
            completed=line.share or 0.0,
            line=printable(line),
        )


@contextlib.contextmanager
def _lines(title: str) -> Iterator[Progress]:
    """Write a line of progress every five seconds, and always the last line."""
    last = -math.inf

    def say(line: ProgressLine) -> None:
        nonlocal last
        if time.monotonic() - last >= 5.0 or line.share == 1.0:
            last = time.monotonic()
            sys.stderr.write(f"{title}: {printable(line)}\n")
            sys.stderr.flush()

    yield say


@contextlib.contextmanager
def _notebook(title: str) -> Iterator[Progress]:
    """Show one line of progress below the cell of a notebook; it disappears at the end."""
    from IPython.display import display  # pyright: ignore[reportMissingImports]

    last = 0.0

    def content(line: ProgressLine | None) -> dict[str, str]:
        if line is None:
            return {"text/plain": "", "text/html": ""}
        value = "" if line.share is None else f" value={line.share:.3f}"
        said = html.escape(f"{title}: {line}")
        return {
            "text/plain": f"{title}: {line}",
            "text/html": f"<div><progress max=1{value}></progress> {said}</div>",
        }

    start = content(ProgressLine("..."))
    handle: Any = display(start, raw=True, display_id=True)

    def say(line: ProgressLine) -> None:
        nonlocal last
        if time.monotonic() - last >= 0.2:  # [s] shortest time between two updates
            last = time.monotonic()
            handle.update(content(line), raw=True)

    try:
        yield say
    finally:
        handle.update(content(None), raw=True)
