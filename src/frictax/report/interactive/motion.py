"""Records beside the simulated motion."""

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from frictax.analysis.replay.motion import Motion
from frictax.contacts import Mode
from frictax.measurements import Record
from frictax.measurements.filters import smooth
from frictax.measurements.units import VELOCITY_OF, related_channel
from frictax.text import prefixed

from ..style import CYCLE, FAINT, FORWARD, MODES
from . import plotly_json as plotly

_COLOURS = {int(mode): colour for mode, (_, colour, _) in MODES.items()}
_COLOURS[Mode.FREE] = "#dddddd"  # white would not show
# Of a long record, and of all in a page: lowest and highest sample of each are drawn.
_BINS, _ALL_BINS = 500, 800


def motion_plots(
    record: Record, label: str, motion: Motion, what: str = "fitted machine", beside: int = 1
) -> list[tuple[str, dict[str, Any]]]:
    """A record beside the free run of `what`: the whole, and a stretch around the longest
    standstill with every sample; each with a caption.

    Below each measured output stands what is left, with a band of two of its standard deviations
    where the record has any. Of several records `beside` each other each is thinned more, so that
    the page stays below 3 MB.
    """
    bins = min(_BINS, _ALL_BINS // beside)
    caption = (
        f"{label}: the whole record, and the free run of the {what}. Drag to look closer,"
        " double click to return."
    )
    out = [(caption, _motion(record, motion, np.arange(record.n), bins, thin=True))]
    near = _standstill(motion)
    if near is not None:
        rows, says = near
        out.append(
            (
                f"{label}: {says}, sample by sample.",
                _motion(record, motion, rows, bins, thin=False),
            )
        )
    return out


def _motion(
    record: Record, motion: Motion, rows: np.ndarray, bins: int, thin: bool
) -> dict[str, Any]:
    t, traces, panels, bands = record.t[rows], [], [], []

    def panel(
        title: str, unit: str, of: Iterable[np.ndarray], height: float = 1.0
    ) -> tuple[str, float]:
        """One more panel: its axis, and the size of its unit, one that suits the values `of`."""
        unit, size = prefixed(unit, *(values[rows] for values in of))
        panels.append((f"{title} [{unit}]", height))
        return plotly.nth("y", len(panels)), size

    def draw(values: np.ndarray, size: float, *looks: str, width: float, **more: Any) -> None:
        x, y = t, values[rows] / size
        traces.append(
            plotly.line(
                *(plotly.extremes(x, y, bins) if thin else (x, y)),
                *looks,
                width=width,
            )
            | more
        )

    for name, measured in channels(record).items():
        axis, size = panel(plotly.text(name), _unit(record, name), [measured])
        simulated = motion.states.get(name)
        for values, colour, says, width in (
            (measured, FAINT, "measured", 3.0),
            (simulated, FORWARD, "simulated", 1.4),
        ):
            if values is not None:
                first = {"legendgroup": says, "showlegend": len(panels) == 1}
                draw(values, size, colour, says, width=width, yaxis=axis, **first)
        if simulated is not None:
            left = measured - simulated
            axis, size = panel("residual", _unit(record, name), [np.nan_to_num(left)], 0.5)
            draw(left, size, CYCLE[0], "", width=0.9, yaxis=axis)
            sd: Any = record.sd.get(name)
            if sd is not None:
                bands.append(plotly.band(axis, 2 * float(np.median(sd)) / size))
    turned = "N.m" if any(record.units[n].rotational for n in record.outputs) else "N"
    kinds: dict[str, dict[str, np.ndarray]] = {}
    for name, values in record.inputs.items():
        kinds.setdefault(record.units[name].si_name, {})[name] = values
    for name, values in motion.friction.items():
        kinds.setdefault(turned, {})[name] = values
    colours = iter(CYCLE[1:] * 4)
    for unit, group in kinds.items():
        title = plotly.text(next(iter(group))) if len(group) == 1 else "force"
        axis, size = panel(title, unit, group.values())
        for name, values in group.items():
            draw(values, size, next(colours), plotly.text(name), width=1.2, yaxis=axis)
    panels.append(("mode", 0.16 * max(len(motion.modes), 1)))
    heights = [height for _, height in panels]
    layout: dict[str, Any] = {
        plotly.nth("yaxis", i): plotly.axis("")
        | {"domain": domain, "title": {"text": title, "font": {"size": 12}}}
        for i, ((title, _), domain) in enumerate(
            zip(panels, plotly.stack(heights, 0.12), strict=True), 1
        )
    }
    axis = plotly.nth("y", len(heights))
    layout[plotly.nth("yaxis", len(heights))] |= {
        "showticklabels": False,
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "range": [0, len(motion.modes)],
        "fixedrange": True,
    }
    layout["xaxis"] = plotly.axis("time [s]") | {
        "anchor": axis,
        "range": [float(t[0]), float(t[-1])],
        "zeroline": False,
    }
    layout["shapes"] = [
        *bands,
        *(s | {"yref": axis} for s in _strips(motion, rows, 4 * bins)),
    ]
    seen = {int(m) for modes in motion.modes.values() for m in np.unique(modes)}
    keys = [
        plotly.trace([None], [None], "markers", name)
        | {"marker": {"color": _COLOURS[mode], "symbol": "square", "size": 10}, "yaxis": axis}
        for mode, (name, _, _) in MODES.items()
        if mode in seen
    ]
    figure = plotly.figure([*traces, *keys], int(165 * sum(heights)) + 130, **layout)
    figure["layout"]["legend"] |= {"y": 1.02}
    return figure


def _strips(motion: Motion, rows: np.ndarray, most: int) -> list[dict[str, Any]]:
    """Coloured stretches of each contact's modes; those too short to be seen are drawn all the
    same.
    """
    t, shapes = motion.t[rows], []
    for row, modes in enumerate(motion.modes.values()):
        m = modes[rows]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(m)) + 1, [m.size - 1]])
        for a, b in itertools.pairwise(starts):
            colour = _COLOURS.get(int(m[a]), _COLOURS[Mode.FREE])
            place = {"x0": float(t[a]), "x1": float(t[b]), "y0": row + 0.08, "y1": row + 0.92}
            looks = {"fillcolor": colour, "line": {"width": 0.4, "color": colour}, "layer": "below"}
            shapes.append({"type": "rect", "xref": "x", **place, **looks})
    return shapes[:most]


def _standstill(motion: Motion) -> tuple[np.ndarray, str] | None:
    """The samples around the longest stretch in which a contact sticks, else around the first
    reversal; in words.
    """
    best: tuple[int, int, str] | None = None
    for name, modes in motion.modes.items():
        edges = np.diff(np.concatenate([[0], modes == 0, [0]]).astype(int))
        for a, b in zip(np.flatnonzero(edges > 0), np.flatnonzero(edges < 0), strict=True):
            if b < modes.size and a > 0 and (best is None or b - a > best[1] - best[0]):
                best = (int(a), int(b), f"around the longest time that {plotly.text(name)} sticks")
    for name, modes in motion.modes.items():
        turns = np.flatnonzero(np.diff(np.sign(modes)) != 0)
        if best is None and turns.size:
            first = int(turns[0])
            best = (first, first + 1, f"around the first change of mode of {plotly.text(name)}")
    if best is None:
        return None
    a, b, says = best
    more = int(np.clip(2 * (b - a), 60, 600))
    return np.arange(max(a - more, 0), min(b + more, motion.t.size - 1) + 1), says


def channels(record: Record) -> dict[str, np.ndarray]:
    """What is measured, and the velocity that measured positions have."""
    out: dict[str, np.ndarray] = {}
    for name, values in record.outputs.items():
        out[name] = values
        rate = related_channel(name, VELOCITY_OF)
        if rate and rate not in record.outputs:
            out[rate] = smooth(record.t, values, min(50.0, 0.45 * record.rate)).v
    return out


def _unit(record: Record, name: str) -> str:
    if name in record.units:
        return record.units[name].si_name
    return "rad/s" if name.endswith("w") else "m/s"
