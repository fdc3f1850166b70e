"""Inputs of a few levels that jump from one to the next, as of a relay or a valve."""

from collections.abc import Iterable

import numpy as np

_MOST_LEVELS = 5
_MOST_CHANGES = 0.2  # share of the samples


def jumps_between_levels(u: np.ndarray) -> bool:
    """Return whether an input has at most five values and changes in fewer than a fifth of its
    samples.
    """
    changes = np.count_nonzero(np.diff(u))
    return bool(0 < changes < _MOST_CHANGES * u.size and np.unique(u).size <= _MOST_LEVELS)


def are_held(inputs: Iterable[np.ndarray]) -> bool:
    """Return whether the inputs of a record are held from sample to sample, if nobody says so:
    each that changes jumps between levels.

    A jump that is joined by a straight line acts for a whole sample, half of it too early.

    >>> relay = np.repeat([1.0, -1.0, 1.0], 10)
    >>> are_held([relay]), are_held([np.sin(np.arange(30))]), are_held([np.ones(30)])
    (True, False, False)
    """
    moving = [u for u in inputs if u.size and np.any(u != u[0])]
    return bool(moving) and all(map(jumps_between_levels, moving))
