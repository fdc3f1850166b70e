"""How all figures look."""

import io
import sys
from contextlib import AbstractContextManager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .modes import BACKWARD as BACKWARD, FORWARD as FORWARD, MODES as MODES, STUCK as STUCK

_DOTS, _SHARP = 100, 2  # of an inch in a notebook, and how many times finer a picture is than that
INK, FAINT = "#222222", "#8A8F98"
# For several bodies or contacts in one panel; neither of the two modes' colours comes first, to not
# suggest a mode.
CYCLE = ("#1B1B1B", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#0072B2", "#D55E00")


def style() -> AbstractContextManager[None]:
    """The settings of a figure while it is made; those of the user stay as they were."""
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


def pinned() -> AbstractContextManager[None]:
    """While a figure is written as SVG: names inside it that do not change, letters as paths."""
    return matplotlib.rc_context({"svg.hashsalt": "frictax", "svg.fonttype": "path"})


def plain(text: str) -> str:
    """`text` as matplotlib shows it letter for letter: no mathematics between dollars, and no name
    hidden by its underscore.
    """
    shown = str(text).replace("$", r"\$")
    return "\u200a" + shown if shown.startswith("_") else shown


class Picture(Figure):
    """A figure that a notebook shows, also where nobody has asked for pyplot."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]] | None:
        if "matplotlib_inline.backend_inline" in sys.modules:
            return None  # that shows all figures, in the formats that were asked of it
        data = io.BytesIO()
        self.savefig(data, format="png", dpi=_SHARP * _DOTS)
        wide, high = (round(side * _DOTS) for side in self.get_size_inches())
        return data.getvalue(), {"width": wide, "height": high}


def canvas(width: float, height: float) -> Figure:
    """A figure [inch] whose panels leave room for their words."""
    return Picture(figsize=(width, height), layout="constrained")


def stacked(
    width: float, height: float, count: int, ratios: list[float] | None = None
) -> tuple[Figure, list[Axes]]:
    """A figure [inch] of panels below each other over one axis."""
    figure = canvas(width, height)
    panels = figure.subplots(count, 1, sharex=True, squeeze=False, height_ratios=ratios)
    return figure, list(np.ravel(panels))


def over_time(figure: Figure, panels: list[Axes], t: np.ndarray) -> None:
    """What panels over one time axis have in common."""
    panels[-1].set_xlabel("time [s]")
    if t.size > 1:
        panels[-1].set_xlim(t[0], t[-1])
    figure.align_ylabels([axes for axes in panels if axes.get_ylabel()])


def headed(figure: Figure, text: str) -> None:
    """Write a line above all panels, at the left."""
    figure.suptitle(plain(text), x=0.01, ha="left", fontsize=10, color=INK)


def legend_above(axes: Axes, columns: int, **more: Any) -> None:
    """A legend over the upper right corner of a panel; what has the label of another stands in it
    once.
    """
    handles, labels = axes.get_legend_handles_labels()
    names = dict(zip(labels, handles, strict=True))
    axes.legend(
        list(names.values()),
        list(names),
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=columns,
        borderaxespad=0.0,
        handlelength=1.6,
        **more,
    )


def zero_line(axes: Axes) -> None:
    axes.axhline(0.0, color=FAINT, lw=0.7, zorder=0.5)
