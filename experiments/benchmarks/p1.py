"""What does exact stick-slip cost, and its derivatives, against hand-written C and against scipy?

Problem P1: a mass of 1 kg pulled by 2 sin(2 pi t) N for 10 s, from rest at x = 0, with friction
1 + 0.2 |v| + 0.4 exp(-5 |v|) N that breaks away at 1.4 N: 39 mode changes. Tolerance 1e-7.

Timed is a compiled function from the four friction parameters to the final state, and to its
derivatives by them. All contestants take turns, round after round, so that a busy machine is unfair
to all alike; ratios of medians count.

    python experiments/benchmarks/p1.py [--rounds 9] [--csv FILE]
"""

import importlib.util

import contestants
import numpy as np
from contest import Contestant, hold

from frictax import fast_loops

fast_loops()  # before jax computes anything


def field() -> list[Contestant]:
    """Everybody who takes part."""
    others = contestants.jaxonomy() if importlib.util.find_spec("jaxonomy") else []
    return [*contestants.c_floor(), *contestants.frictax(), *contestants.scipy(), *others]


def error(c: Contestant) -> float:
    """The largest relative error of an answer."""
    truth = {"forward": contestants.STATE, "jacobian": contestants.DERIVATIVES}
    return float(np.max(np.abs(c.answer() / truth[c.task] - 1)))


if __name__ == "__main__":
    hold(__doc__, "p1.csv", field, error)
