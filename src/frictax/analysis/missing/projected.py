"""Residuals and columns without what is fitted beside them, as they are and whitened."""

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int

from .columns import Columns
from .likelihood import Stretches, autoregression
from .window_memory import memory_of

Memory = tuple[Float[np.ndarray, " q"], float]  # coefficients, and what is new in each sample


class Projected:
    """Residuals and columns without what starts of windows and fitted numbers could explain.

    `residuals` (m,), `tried` (m, k), and `own` (k,): of each column the share that is left;
    `base`: of the columns that were taken out, an orthonormal basis; `rows` (m,): the numbers of
    these residuals among all.
    """

    def __init__(
        self,
        residuals: np.ndarray,
        fitted: np.ndarray,
        tried: np.ndarray,
        starts: np.ndarray,
        window: np.ndarray,
        rows: Int[np.ndarray, " m"],
    ) -> None:
        self.rows = rows
        before = np.sum(tried**2, axis=0)
        all_of = np.column_stack([residuals, fitted, tried])
        if starts.shape[1]:
            all_of = without_starts(all_of, starts, window)
        p = fitted.shape[1]
        self.base = basis(all_of[:, 1 : p + 1])
        rest = all_of[:, [0, *range(p + 1, all_of.shape[1])]]
        rest = rest - self.base @ (self.base.T @ rest)
        self.residuals, self.tried = rest[:, 0], rest[:, 1:]
        after = np.sum(self.tried**2, axis=0)
        self.own = np.divide(after, before, out=np.zeros_like(after), where=before > 0)
        self.taken = self.base.shape[1] + starts.shape[1] * len(np.unique(window[window >= 0]))

    def without(self, at: list[int]) -> Float[np.ndarray, " m"]:
        """The residuals less what the columns `at` explain."""
        u = basis(self.tried[:, at])
        return self.residuals - u @ (u.T @ self.residuals)


def projected(columns: Columns, counted: Bool[np.ndarray, " n"]) -> Projected:
    """Of the residuals that count."""
    return Projected(
        *(
            getattr(columns, n)[counted]
            for n in ("residuals", "fitted", "tried", "starts", "window")
        ),
        rows=np.flatnonzero(counted),
    )


def memory_of_left(left: Float[np.ndarray, " n"]) -> Callable[[list[np.ndarray]], Memory]:
    """The memory of a channel of the residuals `left`; its order by Schwarz's criterion."""
    return lambda channel: autoregression([left[s] for s in channel])


def memory_beside(columns: Columns) -> Callable[[list[np.ndarray]], Memory]:
    """The memory of residuals on windows beside all columns."""
    whole = dataclasses.replace(columns, fitted=np.column_stack([columns.fitted, columns.tried]))

    def memory(channel: list[np.ndarray]) -> Memory:
        model = memory_of(whole, channel)
        return model.phi, float(np.sqrt(model.noise))

    return memory


def whitened(
    columns: Columns, stretches: Stretches, memory: Callable[[list[np.ndarray]], Memory]
) -> tuple[Projected, Stretches]:
    """All through the autoregression that is the `memory` of each channel, in units of what it
    leaves; and which rows are left of each stretch.
    """
    table = np.column_stack([columns.residuals, columns.fitted, columns.tried, columns.starts])
    rows, kept = [], []
    for channel in stretches:
        phi, noise = memory(channel)
        q = phi.size
        kept.append([])
        for s in channel:
            if len(s) <= 2 * q:
                continue
            of = table[s]
            now = of[q:] - sum((phi[j] * of[q - 1 - j : len(s) - 1 - j] for j in range(q)), 0.0)
            rows.append(now / noise)
            kept[-1].append(s[q:])
    made = np.concatenate(rows)
    p, k = columns.fitted.shape[1], columns.tried.shape[1]
    parts = made[:, 0], made[:, 1 : p + 1], made[:, p + 1 : p + k + 1], made[:, p + k + 1 :]
    at = np.concatenate([s for channel in kept for s in channel])
    return Projected(*parts, columns.window[at], at), kept


def basis(columns: np.ndarray) -> np.ndarray:
    """Orthonormal, of what the columns span."""
    norms = np.linalg.norm(columns, axis=0)
    columns = columns[:, norms > 0] / norms[norms > 0]
    if not columns.size:
        return columns[:, :0]
    u, d, _ = np.linalg.svd(columns, full_matrices=False)
    return u[:, d > 1e-8 * d[0]]


def without_starts(table: np.ndarray, starts: np.ndarray, window: np.ndarray) -> np.ndarray:
    """`table` (n, m) without what the starts of each window could explain of its rows."""
    out = table.copy()
    for w in np.unique(window[window >= 0]):
        mine = window == w
        u = basis(starts[mine])
        out[mine] -= u @ (u.T @ out[mine])
    return out
