"""How far long work is: shares that never fall, times that are sane, one line."""

import io
import itertools
import sys
import types
from typing import Any

import numpy as np
import pytest

import frictax as fx
import frictax.progress as progress
from frictax.progress import ProgressLine, Work, show_progress


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def counted(seconds: float, of: int = 10, compiling: float = 0.0) -> list[ProgressLine]:
    """The lines of work that takes so many seconds for each of its parts."""
    clock, lines = Clock(), []
    work = Work(lines.append, clock)
    clock.now += compiling
    for k in range(of):
        clock.now += seconds
        work.count(k + 1, of, "things")
    work.end()
    return lines


def test_a_line_says_what_is_done_its_share_and_the_time_left() -> None:
    line = counted(2.0)[3]
    assert line == "4 of 10 things, 40 %, about 12 s left"
    assert (line.what, line.share) == ("4 of 10 things", 0.4)
    assert line.left == pytest.approx(12.0)


def test_time_left_is_reckoned_without_what_was_before_the_first_line() -> None:
    for line in counted(2.0, compiling=500.0)[1:-1]:
        assert line.share is not None
        assert line.left == pytest.approx(20.0 * (1 - line.share))


def test_the_first_line_promises_no_time_and_the_last_has_none_left() -> None:
    lines = counted(2.0)
    assert lines[0] == "1 of 10 things, 10 %"
    assert lines[-1] == "10 of 10 things, 100 %"
    assert len(lines) == 10


def test_only_the_end_is_100_percent_and_only_nothing_0() -> None:
    shares = (0.0, 1e-4, 0.9999, 1.0)
    assert [str(ProgressLine("x", s)) for s in shares] == [
        "x, 0 %",
        "x, 1 %",
        "x, 99 %",
        "x, 100 %",
    ]


def test_the_share_never_falls_and_what_ends_early_ends_at_1() -> None:
    lines: list[ProgressLine] = []
    work = Work(lines.append, Clock())
    for share in (0.2, 0.5, None, 0.3):
        work("searching", share)
    work.end()
    work.end()
    assert [line.share for line in lines] == [0.2, 0.5, 0.5, 0.5, 1.0]


def test_parts_make_up_the_whole_by_their_weights_in_any_order() -> None:
    lines: list[ProgressLine] = []
    parts = Work(lines.append, Clock()).parts({"one": 1.0, "other": 3.0})
    parts["other"]("half", 0.5)
    parts["one"].end()
    parts["one"]("all", 1.0)
    parts["other"]("all", 1.0)
    assert [line.what for line in lines] == ["other: half", "one: all", "other: all"]
    assert [line.share for line in lines] == pytest.approx([0.375, 0.625, 1.0])


def test_nothing_more_is_said_once_a_listener_raised() -> None:
    lines: list[ProgressLine] = []

    def tell(line: ProgressLine) -> None:
        lines.append(line)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), show_progress(tell, "Work") as work:
        work("begun", 0.1)
    work("more", 0.2)
    assert [line.what for line in lines] == ["begun"]


def errors(monkeypatch: pytest.MonkeyPatch, is_terminal: bool = False) -> io.StringIO:
    """What is written to the error stream, from here on."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_a_file_has_a_line_every_five_seconds_and_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, stream = Clock(), errors(monkeypatch)
    monkeypatch.setattr(progress.time, "monotonic", clock)
    with show_progress(True, "Drawing") as work:
        for k in range(20):
            clock.now += 1.0
            work.count(k + 1, 20, "draws")
    assert stream.getvalue().splitlines() == [
        "Drawing: 1 of 20 draws, 5 %",
        "Drawing: 6 of 20 draws, 30 %, about 14 s left",
        "Drawing: 11 of 20 draws, 55 %, about 9 s left",
        "Drawing: 16 of 20 draws, 80 %, about 4 s left",
        "Drawing: 20 of 20 draws, 100 %",
    ]


def test_a_terminal_has_one_line_that_is_gone_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = errors(monkeypatch, is_terminal=True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_INTERACTIVE", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    with show_progress(True, "Drawing") as work:
        work("[brackets] " + 30 * "long ", 0.4)
    text = stream.getvalue()
    assert "Drawing" in text
    assert "[brackets] long" in text
    assert text.rstrip().endswith("\x1b[2K")  # the line is erased
    # it never takes a second line: the cursor goes up by the one that is erased at the end
    assert text.count("\x1b[1A") <= 1


def test_a_notebook_has_one_output_that_is_empty_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []

    class Handle:
        def update(self, content: dict[str, str], raw: bool) -> None:
            made.append(content)

    def display(content: dict[str, str], raw: bool, display_id: bool) -> Handle:
        made.append(content)
        return Handle()

    ipython = types.ModuleType("IPython")
    monkeypatch.setattr(
        ipython, "get_ipython", lambda: types.SimpleNamespace(kernel=1), raising=False
    )
    shows = types.ModuleType("IPython.display")
    monkeypatch.setattr(shows, "display", display, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shows)
    with show_progress(True, "Drawing") as work:
        work("3 < 4", 0.5)
    assert "value=0.500" in made[1]["text/html"]
    assert "3 &lt; 4" in made[1]["text/html"]
    assert made[1]["text/plain"] == "Drawing: 3 < 4, 50 %"
    assert made[-1] == {"text/plain": "", "text/html": ""}


def test_what_is_no_listener_is_refused_in_one_sentence() -> None:
    v = np.array([0.5, 1.0, 2.0, 4.0, 8.0])
    sweep = fx.Sweep(v, 6.0 + 0.2 * v + 0.01 * np.sin(9 * v), velocity_unit="m/s", force_unit="N")
    found = fx.fit(fx.Coulomb, sweep)
    says = r"`progress` must be True, False or a function of a line of text, got 'yes'\."
    asks: list[Any] = [
        lambda **k: fx.fit(fx.Coulomb, sweep, **k),
        lambda **k: fx.fit_many(fx.Coulomb, sweep, sweep.force[None], **k),
        lambda **k: fx.compare(sweep, {"Coulomb": fx.Coulomb}, **k),
        lambda **k: fx.outlook(fx.Coulomb, sweep, **k),
        lambda **k: found.profile("F_Coulomb", **k),
        lambda **k: found.profile(("F_Coulomb", "F_prop"), **k),
    ]
    for ask in asks:
        with pytest.raises(ValueError, match=says):
            ask(progress="yes")


@pytest.fixture(scope="module")
def sweep() -> fx.Sweep:
    v = np.linspace(0.5, 8.0, 12)
    f = 6.0 + 0.2 * v + 0.05 * np.random.default_rng(0).standard_normal(12)
    return fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")


def told_of(sweep: fx.Sweep, which: str) -> list[ProgressLine]:
    lines: list[ProgressLine] = []
    tell: Any = {"progress": lines.append}
    law = fx.Coulomb(F_Coulomb=6.0, F_prop=0.2)
    if which == "fit":
        fx.fit(law, sweep, **tell)
    elif which == "starts":
        fx.fit(law, sweep, starts=5, **tell)
    elif which == "fit_many":
        fx.fit_many(law, sweep, np.tile(sweep.force, (70, 1)), **tell)
    elif which == "compare":
        fx.compare(sweep, {"one": law, "other": fx.Coulomb}, **tell)
    elif which == "outlook":
        fx.outlook(law, sweep, **tell)
    else:
        fx.fit(law, sweep).profile("F_prop", **tell)
    return lines


@pytest.mark.parametrize("which", ["fit", "starts", "fit_many", "compare", "outlook", "profile"])
def test_shares_never_fall_and_end_at_1(which: str, sweep: fx.Sweep) -> None:
    lines = told_of(sweep, which)
    shares = [line.share for line in lines if line.share is not None]
    assert shares[-1] == lines[-1].share == 1.0
    assert all(a <= b for a, b in itertools.pairwise(shares))
    assert lines[-1].endswith(", 100 %")


def test_many_fits_are_told_by_their_number(sweep: fx.Sweep) -> None:
    lines = told_of(sweep, "fit_many")
    told = [line.what for line in lines if line.what.endswith(" fits")]
    assert len(told) == 3  # 32 at a time, on whichever processor is free
    assert told[0] in ("32 of 70 fits", "6 of 70 fits")
    assert told[-1] == "70 of 70 fits"


def test_nothing_is_printed_unasked(sweep: fx.Sweep, capfd: pytest.CaptureFixture[str]) -> None:
    fx.fit(fx.Coulomb, sweep)
    assert capfd.readouterr() == ("", "")
