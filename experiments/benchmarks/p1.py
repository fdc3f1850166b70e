"""What does exact stick-slip cost, and its derivatives, against hand-written C and against scipy?

Problem P1: a mass of 1 kg pulled by 2 sin(2 pi t) N for 10 s, from rest at x = 0, with friction
1 + 0.2 |v| + 0.4 exp(-5 |v|) N that breaks away at 1.4 N: 39 mode changes. Tolerance 1e-7.

Timed is a compiled function from the four friction parameters to the final state, and to its derivatives by them.
All contestants take turns, round after round, so that a busy machine is unfair to all alike; ratios of medians count.

    python experiments/benchmarks/p1.py [--rounds 9] [--csv FILE]
"""

import os

# Before jax starts: a loop compiled as one function instead of operation by operation.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1000000")

import argparse
import csv
import importlib.util
import statistics
from pathlib import Path

import contestants
import numpy as np


def contest(rounds: int) -> list[dict[str, str]]:
    """A row for each contestant and task: median time, its ratio to C's, the largest relative error of the answer."""
    field = [*contestants.c_floor(), *contestants.frictax(), *contestants.scipy()]
    if importlib.util.find_spec("jaxonomy"):
        field += contestants.jaxonomy()
    truth = {"forward": contestants.STATE, "jacobian": contestants.DERIVATIVES}
    errors = [float(np.max(np.abs(c.answer() / truth[c.task] - 1))) for c in field]  # compiles, too
    times: list[list[float]] = [[] for _ in field]
    for _ in range(rounds):
        for c, seconds in zip(field, times, strict=True):
            seconds.append(c.seconds())
    medians = [statistics.median(seconds) for seconds in times]
    floor = {c.task: m for c, m in zip(field, medians, strict=True) if c.name == "C"}
    return [
        {
            "task": c.task,
            "solver": c.name,
            "microseconds": f"{1e6 * m:.1f}",
            "times_C": f"{m / floor[c.task]:.2f}",
            "relative_error": f"{e:.1e}",
        }
        for c, m, e in sorted(zip(field, medians, errors, strict=True), key=lambda row: (row[0].task, row[1]))
    ]


def main() -> None:
    """Run the contest, print the table and write it."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--csv", type=Path, default=Path(__file__).with_name("p1.csv"), help="where the table goes")
    chosen = options.parse_args()
    rows = contest(chosen.rounds)
    with chosen.csv.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for row in [{name: name for name in rows[0]}, *rows]:
        print("{task:<10}{solver:<10}{microseconds:>14}{times_C:>10}{relative_error:>16}".format(**row))


if __name__ == "__main__":
    main()
