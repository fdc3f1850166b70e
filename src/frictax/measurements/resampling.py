"""Fewer samples of an input that still push as the many did."""

import numpy as np
from jaxtyping import Float, Int


def held_means(
    t: Float[np.ndarray, " n"], u: Float[np.ndarray, " n"], kept: Int[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    """The mean over each new interval of an input that is held from sample to sample: its impulse
    is the same at every kept time.

    >>> held_means(
    ...     np.array([0.0, 1.0, 2.0, 3.0, 4.0]),
    ...     np.array([1.0, 3.0, 5.0, 5.0, 7.0]),
    ...     np.array([0, 2, 4]),
    ... )
    array([2., 5., 7.])
    """
    impulse = np.concatenate([[0.0], np.cumsum(u[:-1] * np.diff(t))])
    return np.append(np.diff(impulse[kept]) / np.diff(t[kept]), u[kept[-1]])


def nearest_line(
    t: Float[np.ndarray, " n"], u: Float[np.ndarray, " n"], kept: Int[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    """The values at the kept times whose joining lines come nearest, in least squares over time, to
    the lines that join all samples.

    The whole impulse and its moment about any time stay exact, and what is straight between kept
    times stays as it is. (Lines with the exact impulse at every kept time would swing up and down
    from sample to sample.) They solve ∫h_j u = Σ_k ∫h_j h_k u_k for the hat functions h of the kept
    times, a system of three diagonals.

    >>> nearest_line(np.arange(5.0), 2 * np.arange(5.0), np.array([0, 2, 4])).round(12)
    array([0., 4., 8.])
    """
    from scipy.linalg import solve_banded

    nodes, t, u = t[kept], t[: kept[-1] + 1], u[: kept[-1] + 1]
    step, interval = np.diff(t), np.searchsorted(kept, np.arange(t.size - 1), side="right") - 1
    length = np.diff(nodes)

    def rising(times: np.ndarray) -> np.ndarray:
        return (times - nodes[interval]) / length[interval]

    # Simpson's rule is exact for the product of two straight lines.
    ends, middle = (rising(t[:-1]), rising(t[1:])), rising(0.5 * (t[:-1] + t[1:]))
    up = step / 6 * (ends[0] * u[:-1] + 4 * middle * 0.5 * (u[:-1] + u[1:]) + ends[1] * u[1:])
    all_ = step / 2 * (u[:-1] + u[1:])
    k = nodes.size
    load = np.bincount(interval + 1, up, k) + np.bincount(interval, all_ - up, k)
    bands = np.zeros((3, k))
    bands[0, 1:] = bands[2, :-1] = length / 6
    bands[1, :-1] += length / 3
    bands[1, 1:] += length / 3
    return solve_banded((1, 1), bands, load)
