"""The style of all figures, and curves in panels with a common horizontal axis.

`draw_panels` draws the panels by matplotlib, `plotly_json.plot_panels` by plotly.
"""

import dataclasses
import io
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .modes import BACKWARD as BACKWARD, FORWARD as FORWARD, MODES as MODES, STUCK as STUCK

INK, FAINT = "#222222", "#8A8F98"
# Colours of the curves in a panel. The colours of modes are last, because a curve in the colour of
# a mode suggests this mode.
CYCLE = ("#1B1B1B", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#0072B2", "#D55E00")


@dataclasses.dataclass(frozen=True, eq=False)
class Curve:
    """A curve of y over x. A curve without a name is not in the legend; nan interrupts a line.

    `width`: width of a line, or diameter of points [pt].
    """

    x: np.ndarray
    y: np.ndarray
    colour: str
    name: str = ""
    width: float = 1.5
    kind: Literal["line", "points", "steps", "line and points"] = "line"


@dataclasses.dataclass(frozen=True, eq=False)
class Panel:
    """Curves that share one vertical axis.

    - `label`: label of the vertical axis; `title`: text above the panel, not shown by plotly.
    - `height`: height relative to the other panels.
    - `band`: half the width of a grey band around zero, None for no band.
    - `layout`: further settings of plotly's vertical axis.
    """

    label: str
    curves: Sequence[Curve]
    title: str = ""
    height: float = 1.0
    band: float | None = None
    colour: str | None = None
    layout: dict[str, Any] = dataclasses.field(default_factory=dict)


def style() -> AbstractContextManager[None]:
    """Return a context with the settings of figures. It restores the old settings at its end."""
    settings: dict[str, Any] = {
        "axes.axisbelow": True,
        "axes.edgecolor": FAINT,
        "axes.facecolor": "white",
        "axes.grid": False,
        "axes.labelcolor": INK,
        "axes.labelsize": 10,
        "axes.linewidth": 0.8,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "figure.facecolor": "white",
        "font.family": "sans-serif",
        "font.size": 9.5,
        "hatch.linewidth": 0.6,
        "legend.fontsize": 9,
        "legend.frameon": False,
        "text.color": INK,
        "text.usetex": False,
        "xtick.color": FAINT,
        "xtick.labelcolor": INK,
        "ytick.color": FAINT,
        "ytick.labelcolor": INK,
    }
    return matplotlib.rc_context(settings)  # pyright: ignore[reportArgumentType]


def reproducible_svg() -> AbstractContextManager[None]:
    """Return a context for SVG files with reproducible element names and letters as paths."""
    return matplotlib.rc_context({"svg.hashsalt": "frictax", "svg.fonttype": "path"})


def literal_text(text: str) -> str:
    """Escape `text` so that matplotlib shows it unchanged. Without this change, matplotlib reads
    dollars as mathematics and hides a label that begins with an underscore.
    """
    shown = str(text).replace("$", r"\$")
    return "\u200a" + shown if shown.startswith("_") else shown


class Picture(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]] | None:
        if "matplotlib_inline.backend_inline" in sys.modules:
            return None  # This backend shows all figures itself, in the formats chosen by the user.
        data, dots = io.BytesIO(), 100  # [dots per inch] on the screen; twice this value in the PNG
        self.savefig(data, format="png", dpi=2 * dots)
        wide, high = (round(side * dots) for side in self.get_size_inches())
        return data.getvalue(), {"width": wide, "height": high}


def canvas(width: float, height: float) -> Figure:
    """Return a figure of this size [inch] with a layout that keeps space for labels."""
    return Picture(figsize=(width, height), layout="constrained")


def stacked_panels(
    width: float, height: float, count: int, ratios: list[float] | None = None
) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` panels below each other, and the panels. Sizes are in inch."""
    figure = canvas(width, height)
    panels = figure.subplots(count, 1, sharex=True, squeeze=False, height_ratios=ratios)
    return figure, list(np.ravel(panels))


def draw_panels(
    panels: Sequence[Panel], x_label: str, *, width: float, inches: float, around: float
) -> tuple[Figure, list[Axes]]:
    """Draw panels below each other with a common horizontal axis.

    `inches`: height of a panel with `height` = 1 [inch]; `around`: height of the figure outside the
    panels [inch].
    """
    heights = [panel.height for panel in panels]
    figure, drawn = stacked_panels(width, inches * sum(heights) + around, len(panels), heights)
    for axes, panel in zip(drawn, panels, strict=True):
        draw_panel(axes, panel)
    drawn[-1].set_xlabel(x_label)
    return figure, drawn


def draw_panel(axes: Axes, panel: Panel) -> None:
    """Draw the curves of a panel, and label its axis."""
    for curve in panel.curves:
        looks: dict[str, Any] = {"color": curve.colour, "lw": curve.width}
        if curve.kind == "steps":
            looks["drawstyle"] = "steps-post"
        if curve.kind == "points":
            looks |= {"marker": "o", "ms": curve.width, "ls": ""}
        if curve.kind == "line and points":
            looks |= {"marker": ".", "ms": 4}
        axes.plot(curve.x, curve.y, label=literal_text(curve.name), **looks)
    axes.set_ylabel(panel.label)
    if panel.title:
        colour = panel.colour or INK
        axes.set_title(literal_text(panel.title), loc="left", fontsize=9, pad=3, color=colour)


def over_time(figure: Figure, panels: list[Axes], t: np.ndarray) -> None:
    """Label the time axis of panels, and align the labels of their vertical axes."""
    panels[-1].set_xlabel("time [s]")
    if t.size > 1:
        panels[-1].set_xlim(t[0], t[-1])
    figure.align_ylabels([axes for axes in panels if axes.get_ylabel()])


def write_heading(figure: Figure, text: str) -> None:
    """Write a line of text above all panels, at the left."""
    figure.suptitle(literal_text(text), x=0.01, ha="left", fontsize=10, color=INK)


def legend_above(axes: Axes, columns: int, **more: Any) -> None:
    """Put a legend above a panel, at the right. Curves with equal labels share one entry."""
    handles, labels = axes.get_legend_handles_labels()
    names = dict(zip(labels, handles, strict=True))
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": columns}
    place |= {"borderaxespad": 0.0, "handlelength": 1.6}
    axes.legend([*names.values()], [*names], **place, **more)


def zero_line(axes: Axes) -> None:
    axes.axhline(0.0, color=FAINT, lw=0.7, zorder=0.5)
