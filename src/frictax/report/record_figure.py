"""The picture of a motion record."""

import textwrap

import numpy as np
from matplotlib.figure import Figure

from frictax.measurements import Record
from frictax.measurements.summary import deviation, headline
from frictax.measurements.units import quantity
from frictax.text import prefix_unit

from .style import (
    CYCLE,
    INK,
    Curve,
    Panel,
    draw_panels,
    literal_text,
    over_time,
    style,
    write_heading,
    zero_line,
)

OUTPUT, INPUT = CYCLE[0], CYCLE[1]


def draw_record(record: Record, *, width: float = 7.5) -> Figure:
    """Draw each channel in a panel of its own over one time axis: the inputs above, in colour, and
    the measured outputs below.

    Held inputs are drawn as steps. A gap in time of more than five median steps breaks the line and
    is shaded. Warnings are a note below the panels.

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
            if record.n <= 60:  # A short record is drawn with its samples.
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
    # A NaN in each gap, so that no line crosses it.
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
