"""How all figures look.

Colours are M. Okabe's and K. Ito's (2008), which colour-blind readers tell apart.
"""

from contextlib import AbstractContextManager
from typing import Any

import matplotlib
from matplotlib.axes import Axes

from frictax.contacts import Mode

FORWARD, BACKWARD = "#0072B2", "#D55E00"
STUCK, FREE = "#B4B8BE", "#FFFFFF"
INK, FAINT = "#222222", "#8A8F98"
# For several bodies or contacts in one panel; neither of the two modes' colours comes first, to not
# suggest a mode.
CYCLE = ("#1B1B1B", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#0072B2", "#D55E00")
MODES = {
    Mode.BACKWARD: ("backward", BACKWARD, ""),
    Mode.STUCK: ("stuck", STUCK, ""),
    Mode.FORWARD: ("forward", FORWARD, ""),
    Mode.FREE: ("free", FREE, "////"),
}


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


def zero_line(axes: Axes) -> None:
    axes.axhline(0.0, color=FAINT, lw=0.7, zorder=0.5)
