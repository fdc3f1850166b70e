"""Common code of the benchmarks: time programs alternately, write a table, and compile C."""

import argparse
import csv
import ctypes
import dataclasses
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
COLUMNS = ("task", "solver", "microseconds", "times_C", "relative_error")


@dataclasses.dataclass(frozen=True)
class Contestant:
    """A program for a `task`: `answer` returns its result, `seconds` the time of a call [s]."""

    name: str
    task: str
    answer: Callable[[], np.ndarray]
    seconds: Callable[[], float]


def hold(
    what: str | None,
    table: str,
    field: Callable[[], list[Contestant]],
    error: Callable[[Contestant], float],
) -> None:
    """Time the programs alternately, print the table, and write it to the file `table` beside this
    script. The command line sets the options; `what` is its help text.
    """
    options = argparse.ArgumentParser(description=(what or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--csv", type=Path, default=HERE / table, help="where the table goes")
    chosen = options.parse_args()
    rows = rounds(field(), error, chosen.rounds)
    with chosen.csv.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *rows])
    widths = [max(len(row[i]) for row in [COLUMNS, *rows]) for i in range(len(COLUMNS))]
    for row in [COLUMNS, *rows]:
        words = [
            word.ljust(w) if i < 2 else word.rjust(w)
            for i, (word, w) in enumerate(zip(row, widths, strict=True))
        ]
        print("   ".join(words))


def rounds(
    field: Sequence[Contestant], error: Callable[[Contestant], float], n: int
) -> list[tuple[str, ...]]:
    """Return a row for each program and task: median time over n rounds, its ratio to the time of
    C, and the relative error of the result.
    """
    errors = [error(c) for c in field]  # the first call also compiles
    times: list[list[float]] = [[] for _ in field]
    for _ in range(n):
        for c, seconds in zip(field, times, strict=True):
            seconds.append(c.seconds())
    medians = [statistics.median(seconds) for seconds in times]
    floor = {c.task: m for c, m in zip(field, medians, strict=True) if c.name == "C"}
    return [
        (c.task, c.name, f"{1e6 * m:.1f}", f"{m / floor[c.task]:.2f}", f"{e:.1e}")
        for c, m, e in sorted(
            zip(field, medians, errors, strict=True), key=lambda row: (row[0].task, row[1])
        )
    ]


def timed(call: Callable[[int], object], calls: int) -> float:
    """Return the mean time of a call [s]."""
    begin = time.perf_counter()
    for i in range(calls):
        call(i)
    return (time.perf_counter() - begin) / calls


def built(source: str, *options: str) -> ctypes.CDLL:
    """Compile the C file `source` of this folder, with compiler `options`, and load it."""
    compiler = shutil.which("gcc")
    if compiler is None:
        raise SystemExit(
            "The C floor needs gcc, which is not on the PATH: install it, then run again."
        )
    library = HERE / "build" / f"{source}{''.join(options)}.so"
    library.parent.mkdir(exist_ok=True)
    always = ["-O3", "-march=native", "-fno-math-errno", "-std=c11", "-shared", "-fPIC"]
    subprocess.run(
        [compiler, *always, *options, str(HERE / f"{source}.c"), "-o", str(library), "-lm"],
        check=True,
    )
    return ctypes.CDLL(str(library))
