"""The picture of a motion record."""

import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from frictax.measurements import Record
from frictax.measurements.summary import deviation, headline
from frictax.measurements.units import Unit, quantity
from frictax.text import prefixed

from .style import CYCLE, INK, headed, over_time, plain, stacked, style, zero_line

OUTPUT, INPUT = CYCLE[0], CYCLE[1]
_GAP = "#F1E4C8"
# inch: of a panel, of what stands around them, of a line of a note
_PANEL, _HEAD, _NOTE = 1.35, 0.9, 0.17


def draw_record(record: Record, *, width: float = 7.5) -> Figure:
    """Draw each channel in a panel of its own over one time axis: what drove the machine above, in
    colour, what was measured below.

    Inputs that are held are drawn as steps. Where nothing was recorded for more than five median
    steps the line is broken and the gap shaded. Warnings stand below as a note.

    **Arguments:** `width` of the figure [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("record.png")`.

    >>> import frictax as fx
    >>> force, position = {"drive": [0, 2, 1, 0]}, {"mass.s": [0, 1, 3, 4]}
    >>> figure = draw_record(fx.Record([0, 1, 2, 3], force, position, units={"mass.s": "mm"}))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['force [N]', 'position [mm]']
    """
    channels = {"input": record.inputs, "output": record.outputs}
    rows = [(kind, name, x) for kind in channels for name, x in channels[kind].items()]
    note = "\n".join(
        textwrap.fill(text, int(16 * width), subsequent_indent="   ")
        for text in (f"!  {w}" for w in record.warnings)
    )
    with style():
        height = _PANEL * len(rows) + _HEAD + (_NOTE * (note.count("\n") + 1) if note else 0.0)
        figure, panels = stacked(width, height, len(rows))
        for axes, (kind, name, values) in zip(panels, rows, strict=True):
            _channel(axes, record, kind, name, values)
        headed(figure, headline(record))
        over_time(figure, panels, record.t)
        if note:
            figure.supxlabel(plain(note), x=0.01, ha="left", fontsize=8.5, color=INK)
    return figure


def _channel(axes: Axes, record: Record, kind: str, name: str, values: np.ndarray) -> None:
    unit, size = _display(record.units[name], values)
    t, y = _broken(record, values / size)
    held = kind == "input" and record.hold
    options: dict[str, Any] = {"drawstyle": "steps-post"} if held else {}
    # A short record is drawn with its samples.
    options |= {"marker": ".", "ms": 4} if record.n <= 60 else {}
    colour = INPUT if kind == "input" else OUTPUT
    axes.plot(t, y, color=colour, lw=1.1, label=plain(name), **options)
    if np.min(values) <= 0 <= np.max(values):
        zero_line(axes)
    for i in record.gaps:
        axes.axvspan(*record.t[i : i + 2].tolist(), color=_GAP, lw=0, zorder=0.2, label="_gap")
    axes.set_ylabel(f"{quantity(record.units[name])} [{unit}]".replace("angular ", ""))
    more = "held between samples" if held else ""
    if kind == "output":
        more = deviation(record.sd[name], record.units[name])
    title = plain(f"{kind} {name}" + (f", {more}" if more else ""))
    axes.set_title(title, loc="left", fontsize=9, pad=3, color=colour)


def _display(unit: Unit, values: np.ndarray) -> tuple[str, float]:
    """The unit of an axis and its size in SI: the declared one, but a metre or newton takes a handy
    prefix.
    """
    if unit.si == 1.0 and unit.name in ("m", "m/s", "N", "N.m"):
        return prefixed(unit.name, values)
    return unit.name, unit.si


def _broken(record: Record, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """With a NaN in each gap, so that no line leads over it."""
    t, after = record.t, record.gaps + 1
    return np.insert(t, after, t[after - 1]), np.insert(y, after, np.nan)
