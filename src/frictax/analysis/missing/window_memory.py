"""The memory of residuals on windows, whose starts hide most of it."""

import numpy as np
from jaxtyping import Int

from ..errors.memory.series import Model, chosen, lagged
from .columns import Columns
from .likelihood import highest_order

_ROUNDS, _SETTLED = 15, 1e-3
_FLOOR = 1e-6  # of white noise, which tames residuals that are smooth
_UNTOLD = 1e-7  # of the largest eigenvalue: a direction of which no more is told took nothing


def memory_of(columns: Columns, stretches: list[Int[np.ndarray, " _"]]) -> Model:
    """The autoregression of the residuals on `stretches`, by restricted likelihood: what the start
    of each window and the fitted numbers took from them is put back.

    A start takes the slowest waves of its window: beside noise that remembers half a window, what
    it leaves seems to remember hardly anything, and what is slow would pass for sure.

    **Arguments:** `columns`, of which those that are tried are left aside; `stretches`: the numbers
    of the rows of each, which may go on from window to window.

    **Returns:** a `Model`, its `noise` in squares of weighted residuals.

    **Source:** D. A. Harville, Journal of the American Statistical Association 72 (1977).
    """
    cuts = [np.flatnonzero(np.diff(columns.window[s])) + 1 for s in stretches]
    stretches = [x for s, cut in zip(stretches, cuts, strict=True) for x in np.split(s, cut)]
    most = highest_order(stretches)
    mine = [s for s in stretches if len(s) > 2 * most]
    if not most:
        square = float(np.mean(columns.residuals[np.concatenate(mine)] ** 2))
        return Model(np.zeros(0), max(square, 1e-300), np.zeros((0, 0)))
    numbers = np.unique(np.concatenate([columns.window[s] for s in mine]))
    starts, fitted = columns.starts.shape[1], columns.fitted.shape[1]
    grams, edges, places = [], [], []
    for s in mine:
        z = np.column_stack([columns.residuals[s], columns.starts[s], columns.fitted[s]])
        grams.append(lagged(z, most))
        edges.append(z[:most].T @ z[:most])
        window = int(np.searchsorted(numbers, columns.window[s[0]]))
        own = starts * window + np.arange(starts)
        places.append(np.concatenate([own, starts * len(numbers) + np.arange(fitted)]))
    many, first = np.stack(grams), np.stack(edges)
    count = sum(len(s) - most for s in mine)
    size = starts * len(numbers) + fitted
    moved, taken, before = np.zeros(size), np.zeros((size, size)), 0.0
    for _ in range(_ROUNDS):
        v = np.stack([np.concatenate([[1.0], -moved[at]]) for at in places])
        weight = v[:, :, None] * v[:, None, :]
        weight[:, 1:, 1:] += np.stack([taken[np.ix_(at, at)] for at in places])
        sums = np.einsum("wijab,wab->ij", many, weight)
        model = chosen(sums, count, _FLOOR)
        if abs(model.noise - before) < _SETTLED * model.noise:
            break
        before = model.noise
        a = np.concatenate([[1.0], -model.phi])
        q = len(a)
        through = np.einsum("i,wijab,j->wab", a, many[:, :q, :q], a) / model.noise
        # the first samples have no lags: they count as of noise of its whole size
        through += first * count / max(float(sums[0, 0]), 1e-200)
        told, pull = np.zeros((size, size)), np.zeros(size)
        for at, one in zip(places, through, strict=True):
            told[np.ix_(at, at)] += one[1:, 1:]
            pull[at] += one[1:, 0]
        square = np.diag(told)
        unit = np.sqrt(np.where(square > 0, square, 1.0))
        scale = np.outer(unit, unit)
        taken = np.linalg.pinv(told / scale, rcond=_UNTOLD, hermitian=True) / scale
        moved = taken @ pull
    return model
