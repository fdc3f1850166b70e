"""The ends of a search, and profiles of the likelihood."""

from typing import Any

import numpy as np

from frictax.text import prefixed

from ..style import BACKWARD, FAINT, FORWARD
from . import plotly_json as plotly


def waterfall_plot(costs: np.ndarray) -> dict[str, Any] | None:
    """Where all starts of a search ended, sorted; None for a single start."""
    finite = np.sort(costs[np.isfinite(costs)])
    if costs.size < 2 or finite.size == 0:
        return None
    trace = plotly.trace(
        np.arange(1, finite.size + 1), finite / finite[0], "lines+markers", "starts"
    )
    looks = {"marker": {"color": FORWARD, "size": 7}, "line": {"color": FAINT, "width": 1}}
    return plotly.figure(
        [trace | looks],
        300,
        xaxis=plotly.axis("start, the best first"),
        yaxis=plotly.axis("cost over the least") | {"type": "log"},
        showlegend=False,
    )


def profile_plot(profile: Any) -> dict[str, Any]:
    """A profile likelihood with its threshold and interval."""
    unit, size = (
        prefixed(profile.unit, profile.values)
        if profile.unit.startswith("N")
        else (profile.unit, 1.0)
    )
    ends = [end / size for end in (profile.lower, profile.upper) if np.isfinite(end)]
    kept = profile.ratio <= 4 * profile.threshold
    x, name = profile.values[kept] / size, "likelihood ratio"
    trace = plotly.line(x, profile.ratio[kept], FORWARD, name, width=2.0) | {
        "mode": "lines+markers"
    }
    return plotly.figure(
        [trace],
        300,
        xaxis=plotly.axis(f"{plotly.text(profile.name)} [{unit}]"),
        yaxis=plotly.axis(name),
        shapes=[
            _rule("x", "y", profile.threshold, BACKWARD, "dash"),
            *(_rule("y", "x", end, FAINT, "dot") for end in ends),
        ],
        showlegend=False,
    )


def _rule(along: str, across: str, at: float, colour: str, dash: str) -> dict[str, Any]:
    """A straight line through the whole panel."""
    ends = {f"{along}ref": "paper", f"{along}0": 0, f"{along}1": 1}
    place = {f"{across}0": at, f"{across}1": at}
    return {"type": "line", **ends, **place, "line": {"color": colour, "dash": dash, "width": 1.2}}
