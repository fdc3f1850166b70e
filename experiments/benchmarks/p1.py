"""How long do exact stick-slip and its derivatives take, compared with C and scipy?

Problem P1: a force of 2 sin(2 pi t) N acts on a mass of 1 kg for 10 s, from rest at x = 0. The
friction is 1 + 0.2 |v| + 0.4 exp(-5 |v|) N, with breakaway at 1.4 N. The run has 39 mode changes.

The timed function is compiled and maps the four friction parameters to the final state, and to its
derivatives, at tolerance 1e-7. Each round runs all programs, so that other load of the computer
affects all of them. Compare ratios of medians.

    python experiments/benchmarks/p1.py [--rounds 9] [--csv FILE]
"""

import importlib.util

import contestants
import numpy as np
from contest import Contestant, hold

from frictax import fast_loops

fast_loops()  # must run before jax computes anything


def field() -> list[Contestant]:
    """Return all compared programs."""
    others = contestants.jaxonomy() if importlib.util.find_spec("jaxonomy") else []
    return [*contestants.c_floor(), *contestants.frictax(), *contestants.scipy(), *others]


def error(c: Contestant) -> float:
    """Return the largest relative error in the result of program `c`."""
    truth = {"forward": contestants.STATE, "jacobian": contestants.DERIVATIVES}
    return float(np.max(np.abs(c.answer() / truth[c.task] - 1)))


if __name__ == "__main__":
    hold(__doc__, "p1.csv", field, error)
