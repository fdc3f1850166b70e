"""The picture of a comparison of structures."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from frictax.analysis import StructureComparison
from frictax.analysis.selection.plausibility import visited_laws
from frictax.text import prefixed

from .style import BACKWARD, CYCLE, FORWARD, INK, canvas, plain, style, zero_line

_ALONE = 4.2  # inch


def draw_structures(made: StructureComparison, *, width: float = 10.0) -> Figure:
    """Draw the friction laws of all structures over the speeds visited, and what each says of what
    it did not see.

    Left: friction over speed, backward below 0; the chosen one thick. Right: the held-out errors of
    trajectory and of force, a line for each structure: of repeats (blue dot) and of speeds (orange
    square) left out. Where these lie far apart, it knows one motion only.

    **Arguments:** `width` of the figure [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("structures.png")`.
    """
    with style():
        figure = canvas(width, max(3.2, 1.6 + 0.3 * len(made.rows)))
        laws, trajectory, force = figure.subplots(1, 3, width_ratios=(2.0, 1.2, 1.2))
        _laws(laws, made)
        _held_out(trajectory, force, made)
    return figure


def draw_laws(made: StructureComparison) -> Figure:
    """Draw the friction laws alone."""
    with style():
        figure = canvas(_ALONE, 0.8 * _ALONE)
        _laws(figure.subplots(), made)
    return figure


def draw_held_out(made: StructureComparison) -> Figure:
    """Draw the held-out errors alone."""
    with style():
        figure = canvas(_ALONE, max(0.8 * _ALONE, 1.6 + 0.3 * len(made.rows)))
        trajectory, force = figure.subplots(1, 2)
        _held_out(trajectory, force, made)
    return figure


def _held_out(trajectory: Axes, force: Axes, made: StructureComparison) -> None:
    _errors(trajectory, made, "trajectory", made.unit)
    _errors(force, made, "force", made.force_unit)
    trajectory.set_yticks(range(len(made.rows)), [plain(row.name) for row in made.rows])
    force.set_yticks(range(len(made.rows)), [""] * len(made.rows))
    for label, row in zip(trajectory.get_yticklabels(), made.rows, strict=True):
        label.set_fontweight("bold" if row is made.best else "normal")
    entries = trajectory.get_legend_handles_labels()
    trajectory.figure.legend(*entries, loc="outside upper right", ncols=3)


def _laws(axes: Axes, made: StructureComparison) -> None:
    zero_line(axes)
    for i, row in enumerate(made.rows):
        width, over = (2.4, 3) if row is made.best else (1.0, 2)
        looks: dict[str, Any] = {"color": CYCLE[i % len(CYCLE)], "lw": width, "zorder": over}
        for k, (_, way, v, f, _) in enumerate(visited_laws(row.found, made.cutoff)):
            axes.plot(way * v, way * f, label=None if k else plain(row.name), **looks)
    units = next(
        (units for *_, units in visited_laws(made.best.found, made.cutoff)), ("N", "N.s/m", "m/s")
    )
    axes.set_xlabel(f"speed [{units[2]}]")
    axes.set_ylabel(f"friction [{units[0]}]" if units[0] else "friction coefficient")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", fontsize=8)


def _errors(axes: Axes, made: StructureComparison, kind: str, unit: str) -> None:
    shapes = {"repeats": ("o", FORWARD), "speeds": ("s", BACKWARD), "records": ("^", INK)}
    values = {
        by: np.asarray([getattr(row.held_out[by], f"{kind}_rms") for row in made.rows])
        for by in made.rows[0].held_out
    }
    name, size = prefixed(unit, *values.values()) if unit != "sd" else ("sd", 1.0)
    for by, x in values.items():
        known = np.isfinite(x)
        marker, colour = shapes[by]
        looks: dict[str, Any] = {"color": colour, "ms": 6, "ls": ""}
        at = np.flatnonzero(known)
        axes.plot(x[known] / size, at, marker, label=f"{by} left out", **looks)
    if any(np.any(np.isfinite(x) & (x > 0)) for x in values.values()):
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        if high / low < 30:  # too few powers of ten to read values from
            axes.set_xticks(_round_numbers(low, high))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(len(made.rows) - 0.5, -0.5)
    axes.set_xlabel(f"error of\n{kind} [{name}]")


def _round_numbers(low: float, high: float) -> list[float]:
    """Some 1, 2 and 5 times powers of ten between the two, or more where these are few."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    found: list[float] = []
    for steps in ((1, 2, 5), (1, 2, 3, 5, 7), (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)):
        found = [step * 10.0**p for p in powers for step in steps if low <= step * 10.0**p <= high]
        if len(found) > 1:
            break
    return found
