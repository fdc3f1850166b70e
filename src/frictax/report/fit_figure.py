"""The picture of a fit to a record."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import PreparedSweep
from frictax.fitting.problem.setup import channel_unit
from frictax.measurements import Record
from frictax.measurements.units import quantity
from frictax.text import amount, prefixed

from .style import (
    CYCLE,
    FAINT,
    FORWARD,
    INK,
    headed,
    legend_above,
    over_time,
    plain,
    stacked,
    style,
    zero_line,
)

MEASURED, PREDICTED = FAINT, FORWARD
_PANEL, _HEAD = 1.25, 0.9  # inch: of a panel, of what stands around them


def draw_fit(found: FitResult, label: str | None = None, *, width: float = 7.5) -> Figure:
    """Draw, for each measured output, the measurement (grey) with what the fitted machine gives
    (blue), and below it what is left.

    The runs are those of the fit's objective: one for a free run, one for each window of `Windows`.

    **Arguments:** `label` of the record, the first unless given; `width` of the figure [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("fit.png")`.

    **Raises:** `KeyError` for a label that the fit does not have, `ValueError` for one of a sweep.
    """
    if label is None:
        label = next(name for name, r in found.records.items() if isinstance(r, Record))
    found.model_for(label)  # raises for a label that there is not
    prepared = found.problem.prepared[found.number(label)]
    if isinstance(prepared, PreparedSweep):
        raise ValueError(
            f"`draw_fit` draws records, and {label!r} is a sweep. Fit it alone, and use the report"
            " of that fit."
        )
    record, predicted = found.records[label], found.predicted(label)
    rows, counted = prepared.samples()[..., 0], np.asarray(prepared.weight) > 0
    measured = np.asarray(prepared.measured)
    if prepared.weak is not None:  # the last splines of its arrays may be unused
        measured, predicted = (np.where(counted, a, np.nan) for a in (measured, predicted))
    with style():
        count = 2 * len(prepared.names)
        figure, panels = stacked(width, _PANEL * count + _HEAD, count)
        for c, name in enumerate(prepared.names):
            unit = channel_unit(found.model, record, name)
            what = "torque" if unit == "N.m" else "force"
            what = quantity(record.units[name]) if name in record.units else what
            t, m, p = (_joined(a) for a in (record.t[rows], measured[..., c], predicted[..., c]))
            left = _joined(np.where(counted[..., c], measured[..., c] - predicted[..., c], np.nan))
            rms = float(np.sqrt(np.nanmean(left**2)))
            _curves(panels[2 * c], t, m, p, f"{what} [{{}}]", unit, name)
            says = f"measured - predicted, rms {amount(rms, unit)}"
            _curves(panels[2 * c + 1], t, left, None, "residual [{}]", unit, says)
        over_time(figure, panels, record.t)
        kind = type(found.problem.objective).__name__
        headed(figure, f"{label}: {kind}, {len(found.estimates)} parameters")
    return figure


def _curves(
    axes: Axes, t: Any, first: Any, second: Any, ylabel: str, unit: str, title: str
) -> None:
    unit, size = prefixed(unit, first[np.isfinite(first)])
    zero_line(axes)
    if second is None:
        axes.plot(t, first / size, color=CYCLE[0], lw=0.8)
    else:
        axes.plot(t, first / size, color=MEASURED, lw=2.6, label="measured")
        axes.plot(t, second / size, color=PREDICTED, lw=1.0, label="fitted machine")
        legend_above(axes, 2)
    axes.set_ylabel(ylabel.format(unit))
    axes.set_title(plain(title), loc="left", fontsize=9, pad=3, color=INK)


def _joined(rows: np.ndarray) -> np.ndarray:
    """Windows one after the other with a NaN between, so that no line joins them."""
    return (
        rows
        if rows.ndim == 1
        else np.concatenate([rows, np.full((rows.shape[0], 1), np.nan)], axis=1).ravel()
    )
