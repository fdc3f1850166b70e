"""What a small change of each fitted number does to the curves that a fit compares, to first order,
and how far that holds.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from frictax.fitting import Estimate, FitResult
from frictax.fitting.problem.problem import bounds, predictions, upper_bounds
from frictax.fitting.problem.setup import channel_unit
from frictax.measurements import Record

_LEFT, _SHARE = 0.5, 0.01  # allowed error of the first order: of what is left, of the curve itself
_SEEN = 10.0  # a move that is plain to see, in allowed errors
_TRIES = 5  # re-simulations of each number and direction


@dataclasses.dataclass(frozen=True, eq=False)
class Channel:
    """One measured quantity of one record beside the curve of the fit, at the values found.

    - `x` (n,): time [s], or the velocity of a sweep; `windows` of them follow each other.
    - `measured`, `fitted` (n,) and `slopes` (n, p), the derivatives of `fitted` by the estimates,
      all in SI; `counts` (n,): which rows the fit compares. `noise`: standard deviation of a row.
    """

    label: str
    name: str
    unit: str
    windows: int
    x: Float[np.ndarray, " n"]
    measured: Float[np.ndarray, " n"]
    fitted: Float[np.ndarray, " n"]
    slopes: Float[np.ndarray, "n p"]
    counts: Bool[np.ndarray, " n"]
    noise: float

    @property
    def left(self) -> Float[np.ndarray, " n"]:
        return np.where(self.counts, self.measured - self.fitted, np.nan)

    def rms(self, rows: Float[np.ndarray, " n"]) -> float:
        """Of what is left, or of any rows: over those that count."""
        return float(np.sqrt(np.mean(rows[self.counts] ** 2))) if self.counts.any() else 0.0

    @property
    def allowed(self) -> float:
        """How far the first order may be off [SI], rms."""
        shown = self.measured[self.counts]
        return max(
            _LEFT * self.rms(self.left),
            _SHARE * float(np.std(shown)) if shown.size else 0.0,
            1e-300,
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Range:
    """How far one estimate can be moved: `lower` <= 0 <= `upper` [SI] from the value found, up to
    where the first order was measured to hold; `off`: its largest error there over what is allowed,
    above 1 where no step was found that holds.
    """

    estimate: Estimate
    lower: float
    upper: float
    off: float


def channels_of(found: FitResult) -> list[Channel]:
    """Every curve that the fit compares, with the derivatives that the fit has."""
    out, first, shown = [], 0, np.asarray(found.shown)
    for (label, record), prepared in zip(
        found.records.items(), found.problem.prepared, strict=True
    ):
        weight = np.asarray(prepared.weight)
        mine = slice(first, first := first + weight.size)
        jacobian = found.full_jacobian[mine][:, shown].reshape(*weight.shape, -1)
        fitted, measured = found.predicted(label), np.asarray(prepared.measured)
        if isinstance(record, Record):
            rows, weak = (getattr(prepared, name, None) for name in ("rows", "weak"))
            rows = rows if weak is None else weak.centres()
            x = record.t if rows is None else record.t[np.asarray(rows)]
        else:
            x = record.velocity
        for c, name in enumerate(prepared.names):
            w = weight[..., c]
            out.append(
                Channel(
                    label,
                    name,
                    channel_unit(found.model, record, name)
                    if isinstance(record, Record)
                    else record.force_unit.si_name,
                    x.shape[0] if x.ndim > 1 else 1,
                    np.ravel(np.broadcast_to(x, w.shape)),
                    np.ravel(measured[..., c]),
                    np.ravel(fitted[..., c]),
                    (jacobian[..., c, :] / np.where(w > 0, w, 1.0)[..., None]).reshape(w.size, -1),
                    np.ravel(w > 0),
                    float(found.noise_scale / np.median(w[w > 0])) if np.any(w > 0) else 0.0,
                )
            )
    return out


def ranges(
    found: FitResult, channels: Sequence[Channel], estimates: Sequence[Estimate]
) -> list[Range | None]:
    """For each estimate how far the first order holds, measured by simulating anew; None for one
    that moves nothing here.
    """
    x, shown = np.asarray(found.x), np.flatnonzero(found.shown)
    room = bounds(found.problem.unknowns) - x, upper_bounds(found.problem.unknowns) - x
    records = [u.record for u in found.problem.unknowns for _ in u.names]
    out = []
    for k, (i, estimate) in enumerate(zip(shown, estimates, strict=True)):
        moved = [c for c in channels if c.rms(c.slopes[:, k]) > 0]
        if not moved:
            out.append(None)
            continue
        # what is plain to see
        seen = max(c.rms(c.slopes[:, k]) / (_SEEN * c.allowed) for c in moved)
        error = estimate.standard_error
        most = max(1 / seen, 3 * error if np.isfinite(error) else 0.0)
        ends, worst = [0.0, 0.0], 0.0
        for side, (sign, way) in enumerate(zip((-1.0, 1.0), room, strict=True)):
            following, step, off = min(most, 0.9 * abs(float(way[i]))), 0.0, 0.0
            for _ in range(_TRIES if following > 0 else 0):
                step, at = following, x.copy()
                at[i] += sign * step
                off = _off(found, channels, at, k, sign * step, records[i])
                if off <= 1:
                    break
                # the error grows with the square of the step, or faster
                less = 0.9 / np.sqrt(off) if np.isfinite(off) else 0.1
                following = step * float(np.clip(less, 0.1, 0.7))
            ends[side], worst = sign * step, max(worst, off)
        out.append(Range(estimate, ends[0], ends[1], worst))
    return out


def _off(
    found: FitResult, channels: Sequence[Channel], x: Any, k: int, step: float, record: int | None
) -> float:
    """The largest error of the first order over what is allowed."""
    worst = 0.0
    for n, label in enumerate(found.records):
        mine = [c for c in channels if c.label == label]
        if record not in (None, n):
            continue
        anew = np.asarray(predictions(found.problem, jnp.asarray(x), n))
        for j, c in enumerate(mine):
            wrong = np.ravel(anew[..., j]) - c.fitted - step * c.slopes[:, k]
            size = c.rms(wrong)
            worst = max(worst, size / c.allowed if np.isfinite(size) else np.inf)
    return worst
