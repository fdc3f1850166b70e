"""Ratios of the held-out errors of several structures."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from .cross_validation import root_mean
from .structure import ComparedStructure

EQUAL = 1.05  # ratio up to which two errors count as equal


def worst_ratios(rows: Sequence[ComparedStructure]) -> list[float]:
    """Return for each structure the largest ratio of a held-out error to the least of its kind."""
    out = np.ones(len(rows))
    for by in rows[0].held_out:
        for kind in ("trajectory_squares", "force_squares"):
            squares = [getattr(row.held_out[by], kind) for row in rows]
            size = np.asarray([root_mean(s) for s in squares])
            # The error of a failed fit is inf. NaN: one structure does not have this error.
            if np.any(np.isnan(size)) or not np.any(np.isfinite(size)):
                continue
            first = int(np.argmin(size))
            ratios = size / max(size[first], 1e-150)
            for i, (s, ratio) in enumerate(zip(squares, ratios, strict=True)):
                if ratio > EQUAL and not _within_one_error(s, squares[first]):
                    out[i] = max(out[i], ratio)
    return out.tolist()


def _within_one_error(squares: Float[np.ndarray, " u"], least: Float[np.ndarray, " u"]) -> bool:
    d = squares - least
    d = d[~np.isnan(d)]
    return bool(
        np.all(np.isfinite(d)) and d.size > 1 and d.mean() <= d.std(ddof=1) / np.sqrt(d.size)
    )
