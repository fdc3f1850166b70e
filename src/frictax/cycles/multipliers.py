"""Floquet multipliers of a return map whose derivative has a low rank."""

from typing import Any

import numpy as np

_RANK = 1e-7  # of the largest singular value, and of 1


def multipliers(slopes: Any, scale: Any) -> np.ndarray:
    """The eigenvalues of a return map's derivative, but for the 0 of the direction in which it
    runs: (n-1,), the largest first.

    What the event and a stick forget is 0 exactly. Left to an eigenvalue solver, zeros of one block
    come as a root of the rounding: the rank is taken off step by step instead.
    """
    n = len(scale)
    matrix = np.asarray(slopes) * scale / np.asarray(scale)[:, None]
    while matrix.size:
        left, sizes, right = np.linalg.svd(matrix)
        rank = int(np.sum(sizes > _RANK * max(1.0, sizes[0])))
        if rank == len(matrix):
            break
        # U S V' has the eigenvalues of S V' U, and zeros
        matrix = sizes[:rank, None] * (right[:rank] @ left[:, :rank])
    found = np.linalg.eigvals(matrix) if matrix.size else np.zeros(0)
    found = np.concatenate([found, np.zeros(n - len(found))])[: n - 1]
    found = found[np.argsort(-np.abs(found), kind="stable")]
    return found.real if np.all(found.imag == 0) else found
