"""The curves of a fit: what it compares, the derivatives by the estimates, and panels of both."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from frictax.fitting import FitResult
from frictax.fitting.problem.setup import channel_unit
from frictax.measurements import Record
from frictax.text import prefix_unit

from .panels import Curve, Panel
from .style import CYCLE, FAINT, FORWARD


@dataclasses.dataclass(frozen=True, eq=False)
class Channel:
    """One measured quantity of one record, and the curve of the fit.

    - `x` (n,): time [s], or the velocity of a sweep [SI]; the `windows` follow each other.
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
    def residual(self) -> Float[np.ndarray, " n"]:
        """Measured minus fitted; nan where the fit does not compare them."""
        return np.where(self.counts, self.measured - self.fitted, np.nan)

    def rms(self, rows: Float[np.ndarray, " n"]) -> float:
        """Return the root mean square of the rows that count."""
        return float(np.sqrt(np.mean(rows[self.counts] ** 2))) if self.counts.any() else 0.0

    def rows(self) -> np.ndarray:
        """Return the numbers of all rows, with -1 between windows."""
        return with_gaps(np.arange(self.x.size), self)


def with_gaps(rows: np.ndarray, channel: Channel) -> np.ndarray:
    """Insert -1 between rows of different windows, so that no line joins them."""
    window = rows // (channel.x.size // channel.windows)
    return np.insert(rows, np.flatnonzero(np.diff(window)) + 1, -1)


def pick(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return `values` at `rows`, and nan for the row -1."""
    return np.where(rows < 0, np.nan, values[rows])


def channels_of(found: FitResult) -> list[Channel]:
    """Return every curve that the fit compares, with the derivatives that the fit has."""
    out, first, shown = [], 0, np.asarray(found.shown)
    for (label, record), prepared in zip(
        found.records.items(), found.problem.prepared, strict=True
    ):
        weight = np.asarray(prepared.weight)
        mine = slice(first, first := first + weight.size)
        jacobian = found.full_jacobian[mine][:, shown].reshape(*weight.shape, -1)
        fitted, measured = found.predicted(label), np.asarray(prepared.measured)
        motion = isinstance(record, Record)
        x = record.t[prepared.samples()[..., 0]] if motion else record.velocity
        for c, name in enumerate(prepared.names):
            w = weight[..., c]
            counts = w > 0
            unit = channel_unit(found.model, record, name) if motion else record.force_unit.si_name
            slopes = jacobian[..., c, :] / np.where(counts, w, 1.0)[..., None]
            out.append(
                Channel(
                    label,
                    name,
                    unit,
                    windows=x.shape[0] if x.ndim > 1 else 1,
                    x=np.ravel(np.broadcast_to(x, w.shape)),
                    measured=np.ravel(measured[..., c]),
                    fitted=np.ravel(fitted[..., c]),
                    slopes=slopes.reshape(w.size, -1),
                    counts=np.ravel(counts),
                    noise=float(found.noise_scale / np.median(w[counts])) if counts.any() else 0.0,
                )
            )
    return out


@dataclasses.dataclass(frozen=True)
class Units:
    """The units of a channel's two panels, and their sizes in SI."""

    curve: str
    curve_size: float
    residual: str
    residual_size: float


def fit_panels(channel: Channel, rows: np.ndarray, what: str) -> tuple[list[Panel], Units]:
    """Return the panels of a measured motion: measured and simulated, and below them the residual
    with a band of two standard deviations of the noise.

    `rows`: the rows to draw, -1 for a gap; `what`: the quantity, for the label of the axis.
    """
    residual = pick(channel.residual, rows)
    fitted = pick(np.where(channel.counts, channel.fitted, np.nan), rows)
    unit, size = prefix_unit(channel.unit, channel.measured[channel.counts])
    residual_unit, residual_size = prefix_unit(channel.unit, residual[np.isfinite(residual)])
    x = pick(channel.x, rows)
    curves = [
        Curve(x, pick(channel.measured, rows) / size, FAINT, "measured", 3.0),
        Curve(x, fitted / size, FORWARD, "simulated", 1.4),
    ]
    below = [Curve(x, residual / residual_size, CYCLE[0], "", 0.9)]
    ticks: dict[str, Any] = {"nticks": 6}
    panels = [
        Panel(f"{what} [{unit}]", curves, title=channel.name, layout=ticks),
        Panel(
            f"residual [{residual_unit}]",
            below,
            height=0.5,
            band=2 * channel.noise / residual_size,
            layout={"nticks": 4},
        ),
    ]
    return panels, Units(unit, size, residual_unit, residual_size)
