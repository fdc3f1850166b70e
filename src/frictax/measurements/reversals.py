"""Find the reversals of a motion, and the distances after them over which friction changes."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float


def rises(
    s: Float[np.ndarray, " n"], f: Float[np.ndarray, " n"], shares: Sequence[float]
) -> Float[np.ndarray, "r k"]:
    """Return one row for each reversal of the position `s` after which friction reverses fully.

    Column i: distance from the reversal at which friction `f` reaches the fraction `shares[i]` of
    its total change up to the next reversal. Last column: half of the total change.
    """
    path = s.tolist()
    reach = 0.05 * float(np.ptp(s))
    best, direction, turned = 0, 0, []
    for i, here in enumerate(path):
        if direction == 0:
            direction = 1 if here - path[0] > reach else -1 if path[0] - here > reach else 0
            best = i if direction else best
        elif direction * (here - path[best]) >= 0:
            best = i
        elif direction * (path[best] - here) > reach:
            turned.append(best)
            best, direction = i, -direction
    turns, limit = [*turned, best], 0.4 * float(np.ptp(f))
    middle, found = 0.5 * (float(np.max(f)) + float(np.min(f))), []
    for begin, end in zip(turns[:-1], turns[1:], strict=True):
        way, force = np.abs(s[begin:end] - s[begin]), f[begin:end] - middle
        if way.size < 3 or np.sign(force[0]) == np.sign(force[-1]):
            continue
        if min(abs(force[0]), abs(force[-1])) < limit:  # Friction does not reverse fully.
            continue
        gone = (force - force[0]) / (force[-1] - force[0])
        ways = [float(way[np.argmax(gone >= share)]) for share in shares]
        if min(ways) > 0:
            found.append([*ways, 0.5 * abs(float(force[-1] - force[0]))])
    return np.reshape(np.array(found), (len(found), len(shares) + 1))
