"""What do exact stick-slip and its derivatives cost, compared with hand-written C and scipy?

Problem P1: a mass of 1 kg pulled by 2 sin(2 pi t) N for 10 s, from rest at x = 0, with friction
1 + 0.2 |v| + 0.4 exp(-5 |v|) N that breaks away at 1.4 N: 39 mode changes. Tolerance 1e-7.

The timed function is compiled and maps the four friction parameters to the final state, and to its
derivatives. All contestants take turns in each round, so that other load of the machine affects all
of them. Ratios of medians count.

    python experiments/benchmarks/p1.py [--rounds 9] [--csv FILE]
"""

import importlib.util

import contestants
import numpy as np
from contest import Contestant, hold

from frictax import fast_loops

fast_loops()  # before jax computes anything


def field() -> list[Contestant]:
    """Return all contestants."""
    others = contestants.jaxonomy() if importlib.util.find_spec("jaxonomy") else []
    return [*contestants.c_floor(), *contestants.frictax(), *contestants.scipy(), *others]


def error(c: Contestant) -> float:
    """Return the largest relative error of an answer."""
    truth = {"forward": contestants.STATE, "jacobian": contestants.DERIVATIVES}
    return float(np.max(np.abs(c.answer() / truth[c.task] - 1)))


if __name__ == "__main__":
    hold(__doc__, "p1.csv", field, error)
