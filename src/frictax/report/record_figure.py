"""Draw figures of a record and of a fit. Compute the curves of a fit and their derivatives with
respect to the estimates.
"""

import dataclasses
import textwrap
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import PreparedSweep
from frictax.fitting.problem.setup import channel_unit
from frictax.measurements import Record
from frictax.measurements.record import deviation, headline
from frictax.measurements.units import quantity
from frictax.text import amount, prefix_unit

from .style import (
    BACKWARD,
    CYCLE,
    FAINT,
    FORWARD,
    INK,
    Curve,
    Panel,
    draw_panels,
    legend_above,
    literal_text,
    over_time,
    style,
    write_heading,
    zero_line,
)

OUTPUT, INPUT = CYCLE[0], CYCLE[1]


def draw_record(record: Record, *, width: float = 7.5) -> Figure:
    """Draw each channel in a separate panel over one time axis: the inputs above, in colour, and
    the measured outputs below.

    Inputs that are constant between samples are drawn as steps. A gap of more than five median
    sampling intervals breaks the line and is shaded. A note below the panels contains the warnings.

    **Arguments:** `width` of the figure [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("record.png")`.

    >>> import frictax as fx
    >>> force, position = {"drive": [0, 2, 1, 0]}, {"mass.s": [0, 1, 3, 4]}
    >>> figure = draw_record(fx.Record([0, 1, 2, 3], force, position, units={"mass.s": "mm"}))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['force [N]', 'position [mm]']
    """
    note = "\n".join(
        textwrap.fill(text, int(16 * width), subsequent_indent="   ")
        for text in (f"!  {w}" for w in record.warnings)
    )
    panels = [_panel(record, "input", name, x) for name, x in record.inputs.items()]
    panels += [_panel(record, "output", name, x) for name, x in record.outputs.items()]
    with style():
        around = 0.9 + (0.17 * (note.count("\n") + 1) if note else 0.0)
        figure, drawn = draw_panels(panels, "time [s]", width=width, inches=1.35, around=around)
        values = [*record.inputs.values(), *record.outputs.values()]
        for axes, y in zip(drawn, values, strict=True):
            if record.n <= 60:  # Mark the samples of a short record.
                axes.lines[0].set(marker=".", markersize=4)
            if np.min(y) <= 0 <= np.max(y):
                zero_line(axes)
            for i in record.gaps:
                ends = record.t[i : i + 2].tolist()
                axes.axvspan(*ends, color="#F1E4C8", lw=0, zorder=0.2, label="_gap")
        write_heading(figure, headline(record))
        over_time(figure, drawn, record.t)
        if note:
            figure.supxlabel(literal_text(note), x=0.01, ha="left", fontsize=8.5, color=INK)
    return figure


def _panel(record: Record, kind: str, name: str, values: np.ndarray) -> Panel:
    declared = record.units[name]
    unit, size = declared.name, declared.si
    if size == 1.0 and unit in ("m", "m/s", "N", "N.m"):
        unit, size = prefix_unit(unit, values)
    # Insert a NaN in each gap, so that no line crosses the gap.
    after = record.gaps + 1
    t, y = np.insert(record.t, after, record.t[after - 1]), np.insert(values / size, after, np.nan)
    held = kind == "input" and record.hold
    more = "held between samples" if held else ""
    if kind == "output":
        more = deviation(record.sd[name], declared)
    colour = INPUT if kind == "input" else OUTPUT
    return Panel(
        f"{quantity(declared)} [{unit}]".replace("angular ", ""),
        [Curve(t, y, colour, name, 1.1, "steps" if held else "line")],
        f"{kind} {name}" + (f", {more}" if more else ""),
        colour=colour,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Channel:
    """A measured quantity of one record (n rows), and its prediction by a fit of p estimates.

    - `x` (n,): time [s], or the velocity of a sweep [SI]; `windows`: number of successive windows
      in which the objective simulates the record. `measured`, `fitted` (n,): measurement,
      prediction [SI]; `slopes` (n, p): derivatives of `fitted` with respect to the estimates;
      `counts` (n,): True for a row that the fit uses. `noise`: standard deviation of the noise, in
      a row of median weight if the rows differ (`noise_varies`).
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
    noise_varies: bool

    @property
    def residual(self) -> Float[np.ndarray, " n"]:
        """Measurement minus prediction; nan in rows that the fit does not use."""
        return np.where(self.counts, self.measured - self.fitted, np.nan)

    def rms(self, rows: Float[np.ndarray, " n"]) -> float:
        """Return the root mean square of values `rows` (n,) over the rows that the fit uses."""
        return float(np.sqrt(np.mean(rows[self.counts] ** 2))) if self.counts.any() else 0.0

    def rows(self) -> np.ndarray:
        """Return the indices of all rows, with -1 between rows of different windows."""
        return with_gaps(np.arange(self.x.size), self)


def with_gaps(rows: np.ndarray, channel: Channel) -> np.ndarray:
    """Insert -1 between row indices of different windows, so that a drawn line has a gap there."""
    window = rows // (channel.x.size // channel.windows)
    return np.insert(rows, np.flatnonzero(np.diff(window)) + 1, -1)


def pick(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the entries of `values` at the indices `rows`, and nan for the index -1."""
    return np.where(rows < 0, np.nan, values[rows])


def channels_of(found: FitResult) -> list[Channel]:
    """Return all measured quantities of a fit, with predictions and derivatives of predictions."""
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
                    noise_varies=np.unique(w[counts]).size > 1,
                )
            )
    return out


def fit_panels(channel: Channel, rows: np.ndarray, what: str) -> tuple[list[Panel], float, float]:
    """Return two panels of a measured quantity: measurement and simulation, and the residual with a
    band of two standard deviations of the noise to each side.

    `rows`: the rows to draw, -1 for a gap; `what`: the quantity, for the label of the axis.

    **Returns:** the two panels, and the unit of each panel as a number in SI, such as 0.001 for mm.
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
    noise = 2 * channel.noise / residual_size
    panels = [
        Panel(f"{what} [{unit}]", curves, title=channel.name, layout={"nticks": 6}),
        Panel(f"residual [{residual_unit}]", below, "", 0.5, noise, layout={"nticks": 4}),
    ]
    return panels, size, residual_size


def draw_fit(found: FitResult, label: str | None = None, *, width: float = 7.5) -> Figure:
    """Draw the measurement (grey) and the prediction of the fitted machine (blue) for each measured
    output, and the residual below.

    The prediction is one simulation for the objective `FreeRun`, and one per window for `Windows`.
    The grey band extends two standard deviations of the noise to each side of zero. If the record
    has a standard deviation for each sample, the band uses the median.

    **Arguments:** `label` of the record, by default the first record; `width` of the figure [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("fit.png")`.

    **Raises:** `KeyError` for a label that the fit does not have, `ValueError` for the label of a
    sweep.
    """
    if label is None:
        label = next(name for name, r in found.records.items() if isinstance(r, Record))
    found.model_for(label)  # raises `KeyError` for an unknown label
    if isinstance(found.problem.prepared[found.number(label)], PreparedSweep):
        raise ValueError(
            f"`draw_fit` draws records, and {label!r} is a sweep. Fit it alone, and use the report"
            " of that fit."
        )
    record, panels = found.records[label], []
    for channel in (c for c in channels_of(found) if c.label == label):
        what = "torque" if channel.unit == "N.m" else "force"
        what = quantity(record.units[channel.name]) if channel.name in record.units else what
        (upper, lower), *_ = fit_panels(channel, channel.rows(), what)
        rms = amount(channel.rms(channel.residual), channel.unit)
        title = f"measured - predicted, rms {rms}"
        panels += [upper, dataclasses.replace(lower, title=title, height=1.0)]
    with style():
        figure, drawn = draw_panels(panels, "time [s]", width=width, inches=1.25, around=0.9)
        for axes, panel in zip(drawn, panels, strict=True):
            zero_line(axes)
            if panel.band is not None:
                axes.axhspan(-panel.band, panel.band, color=FAINT, alpha=0.22, lw=0)
            else:
                legend_above(axes, 2)
        over_time(figure, drawn, record.t)
        kind = type(found.problem.objective).__name__
        write_heading(figure, f"{label}: {kind}, {len(found.estimates)} parameters")
    return figure


def draw_starts(found: FitResult[Any], *, width: float = 5.5) -> Figure:
    """Draw the sorted final misfits of all starts of a search (a waterfall plot).

    If many starts end at the least misfit, the search is reliable. If only one start ends at the
    least misfit, more starts may find a smaller misfit. A fit to records stops a search early if
    its misfit is much larger than the misfit of other searches. Therefore a point above the least
    misfit may not be a local minimum.

    **Arguments:** `found`: a fit with several starts (``starts=16``); `width` of the figure [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("starts.png")`.

    **Raises:** `ValueError` for a fit from one start.

    **Source:** A. Raue et al., PLoS ONE 8 (2013) e74335, figure 2.

    >>> import frictax as fx
    >>> sweep = fx.Sweep([1, 2, 3, 4], [7.1, 7.9, 9.1, 9.9], velocity_unit="m/s", force_unit="N")

    >>> found = fx.fit(fx.Coulomb(F_Coulomb=1.0, F_prop=1.0), sweep, starts=4)
    >>> draw_starts(found).axes[0].get_ylabel()
    'misfit over the least'
    """
    panel = starts_panel(found)
    if panel is None:
        raise ValueError(
            f"`draw_starts` compares the ends of several starts, and this fit has"
            f" {found.costs.size}. Search from more: fx.fit(..., starts=16)."
        )
    count, total = panel.curves[0].x.size, found.costs.size
    best = sum(one.x.size for one in panel.curves if one.colour == FORWARD)
    with style():
        figure, (axes,) = draw_panels(
            [panel], "start, the best first", width=width, inches=3.0, around=0.0
        )
        if np.max(panel.curves[0].y) > 1.5:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
        axes.set_xlim(0.5, count + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        legend_above(axes, 2)
        more = f"; {total - count} failed" if total > count else ""
        write_heading(figure, f"{best} of {total} starts reach the least misfit{more}")
    return figure


def starts_panel(found: FitResult[Any]) -> Panel | None:
    """Return a panel of the sorted final misfits of all starts; None for one start."""
    costs = np.asarray(found.costs, dtype=float)
    ends = np.sort(costs[np.isfinite(costs)])
    if costs.size < 2 or ends.size == 0:
        return None
    ratio = np.divide(ends, ends[0], out=np.ones_like(ends), where=ends > 0)
    # A start reaches the least misfit if dof * (misfit / least misfit - 1) is below 0.01.
    best = max(found.dof, 1) * (ratio - 1.0) < 0.01
    place = np.arange(1, ends.size + 1)
    curves = [Curve(place, ratio, FAINT, "", 0.8)]
    for here, colour, name in (
        (best, FORWARD, "at the least misfit"),
        (~best, BACKWARD, "above it"),
    ):
        if here.any():
            curves.append(Curve(place[here], ratio[here], colour, name, 5.0, "points"))
    return Panel("misfit over the least", curves)
