"""The picture of where the starts of a search ended."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from frictax.fitting import FitResult

from .style import BACKWARD, FAINT, FORWARD, canvas, headed, legend_above, style

_SAME = 0.01  # of a likelihood ratio: what two ends at one minimum may differ by


def draw_starts(found: FitResult[Any], *, width: float = 5.5) -> Figure:
    """Draw the misfit at the end of each start of a search, sorted (a waterfall): whether the least
    one was found again and again, or once by luck.

    A step at the bottom, with many starts on it, is what one hopes for. Only one start there says
    that more of them may find a better end. In a fit to records, starts that lag behind the others
    are given up after a few steps, so that an end above the step need not be a minimum.

    **Arguments:** `found`: a fit with ``starts=16``, say; `width` of the figure [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("starts.png")`.

    **Raises:** `ValueError` for a fit from one start.

    **Source:** A. Raue et al., PLoS ONE 8 (2013) e74335, figure 2.

    >>> import frictax as fx
    >>> sweep = fx.Sweep([1, 2, 3, 4], [7.1, 7.9, 9.1, 9.9], velocity_unit="m/s", force_unit="N")
    >>> found = fx.fit(fx.Coulomb(F_Coulomb=1.0, F_prop=1.0), sweep, starts=4)
    >>> draw_starts(found).axes[0].get_ylabel()
    'misfit over the least'
    """
    costs = np.asarray(found.costs, dtype=float)
    if costs.size < 2:
        raise ValueError(
            f"`draw_starts` compares the ends of several starts, and this fit has {costs.size}."
            " Search from more: fx.fit(..., starts=16)."
        )
    ends = np.sort(costs[np.isfinite(costs)])
    ratio = np.divide(ends, ends[0], out=np.ones_like(ends), where=ends > 0)
    best = max(found.dof, 1) * (ratio - 1.0) < _SAME
    place = np.arange(1, ends.size + 1)
    failed = costs.size - ends.size
    with style():
        figure = canvas(width, 3.0)
        axes = figure.subplots()
        axes.plot(place, ratio, color=FAINT, lw=0.8, zorder=1)
        for here, colour, label in (
            (best, FORWARD, "at the least misfit"),
            (~best, BACKWARD, "above it"),
        ):
            if here.any():
                axes.plot(place[here], ratio[here], "o", ms=5, color=colour, label=label)
        if ratio[-1] > 1.5:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
        axes.set_xlim(0.5, ends.size + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("start, the best first")
        axes.set_ylabel("misfit over the least")
        legend_above(axes, 2)
        more = f"; {failed} failed" if failed else ""
        headed(figure, f"{int(best.sum())} of {costs.size} starts end at the least misfit{more}")
    return figure
