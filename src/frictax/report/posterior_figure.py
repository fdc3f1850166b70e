"""The picture of a posterior."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from frictax.analysis import Derived, Posterior
from frictax.parameters import UnknownName
from frictax.text import prefixed

from .style import BACKWARD, FORWARD, INK, canvas, plain, style

_MOST = 8  # numbers that are drawn unless they are named
_POINTS = 1500


def draw_posterior(
    posterior: Posterior | Derived,
    *,
    names: Sequence[str] | None = None,
    width: float | None = None,
) -> Figure:
    """Draw the density of each number on the diagonal and the draws of each pair below it: of a
    posterior, or of quantities derived from its draws.

    On the diagonal the interval is shaded, and the dashed line is where the fit ended. A density
    that is cut off at a bound, or drawn out to one side, is what a symmetric interval cannot say; a
    narrow ridge below is a combination that the data do not tell.

    **Arguments:** `names` of the numbers to be drawn, the first 8 unless given; `width` of the
    figure [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("posterior.png")`.

    **Raises:** `KeyError` for a name that was not fitted; `ValueError` for quantities derived from
    a fit, of which there are no draws.
    """
    if posterior.draws is None:
        raise ValueError(
            "`plot` of derived quantities needs draws, and those of a fit have none. Draw the"
            " posterior first: found.posterior().derived(...).plot()."
        )
    known = list(posterior.names)
    asked = known[:_MOST] if names is None else list(names)
    for name in asked:
        if name not in known:
            raise UnknownName(
                f"There is no fitted number {name!r} to draw. There are: {', '.join(known)}."
            )
    which = [known.index(name) for name in asked]
    draws = posterior.draws.reshape(-1, posterior.draws.shape[-1])[:, which]
    estimates = [posterior.estimates[i] for i in which]
    fitted = (
        [posterior.found.estimates[i].value for i in which]
        if isinstance(posterior, Posterior)
        else np.asarray(posterior.fitted)[which]
    )
    p = len(which)
    width = max(3.2, 1.6 * p + 0.8) if width is None else width
    with style():
        figure = canvas(width, max(2.8, 0.9 * width))
        panels = figure.subplots(p, p, squeeze=False)
        sizes = [
            prefixed(e.unit, draws[:, i]) if e.unit not in ("1", "") else (e.unit, 1.0)
            for i, e in enumerate(estimates)
        ]
        thin = draws[:: max(len(draws) // _POINTS, 1)]
        for i in range(p):
            for j in range(p):
                axes, (x_unit, x_size), (y_unit, y_size) = panels[i, j], sizes[j], sizes[i]
                if j > i:
                    axes.set_axis_off()
                    continue
                if i == j:
                    marks = np.array([estimates[i].lower, estimates[i].upper, fitted[i]])
                    _density(axes, draws[:, i] / x_size, marks / x_size)
                else:
                    x, y = thin[:, j] / x_size, thin[:, i] / y_size
                    axes.plot(x, y, ".", ms=1.6, color=FORWARD, alpha=0.35, rasterized=True)
                    axes.plot(fitted[j] / x_size, fitted[i] / y_size, "+", ms=8, color=BACKWARD)
                axes.xaxis.set_major_locator(MaxNLocator(2))
                if i == p - 1:
                    axes.set_xlabel(_label(asked[j], x_unit), fontsize=8)
                else:
                    axes.set_xticklabels([])
                if j == 0 and i > 0:
                    axes.set_ylabel(_label(asked[i], y_unit), fontsize=8)
                elif j > 0 and j != i:
                    axes.set_yticklabels([])
    return figure


def _label(name: str, unit: str) -> str:
    part, dot, last = name.rpartition(".")
    above = f"{part}.\n" if dot else ""
    return plain(f"{above}{last}" + (f" [{unit}]" if unit not in ("1", "") else ""))


def _density(axes: Axes, values: np.ndarray, marks: np.ndarray) -> None:
    low, high, fitted = marks
    axes.hist(values, bins=40, density=True, histtype="stepfilled", color=FORWARD, alpha=0.35)
    axes.axvspan(low, high, color=FORWARD, alpha=0.12, lw=0)
    axes.axvline(fitted, color=INK, lw=0.9, ls="--")
    axes.set_yticks([])
