"""Build interactive plots in plotly's JSON format: panels of curves, traces and axes."""

import base64
import gzip
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from .style import FAINT, INK, Panel

_FONT = {
    "family": "system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif",
    "size": 13,
    "color": INK,
}
_AXIS = {
    "showgrid": True,
    "gridcolor": "#eceef1",
    "zeroline": True,
    "zerolinecolor": "#c9cdd3",
    "linecolor": FAINT,
    "ticks": "outside",
}


def as_json(figure: Mapping[str, Any]) -> str:
    """Return JSON for an HTML script element; its text cannot end the script or begin a tag."""
    text = json.dumps(figure, allow_nan=False, separators=(",", ":"))
    return (
        text.replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
        .replace("\u2028", "")
        .replace("\u2029", "")
    )


def extremes(x: np.ndarray, y: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Return only the lowest and highest sample in each of `bins` parts of a curve."""
    rows = slice(None) if x.size <= 2 * bins else extreme_rows([y], bins)
    return x[rows], y[rows]


def extreme_rows(curves: Iterable[np.ndarray], bins: int) -> np.ndarray:
    """Return indices of the lowest and highest value of each curve in each of `bins` parts."""
    picked = set[int]()
    for y in curves:
        for rows in np.array_split(np.arange(y.size), bins):
            if (good := rows[np.isfinite(y[rows])]).size:
                picked |= {int(good[np.argmin(y[good])]), int(good[np.argmax(y[good])])}
    return np.array(sorted(picked), int)


def plot_panels(
    panels: Sequence[Panel], x_label: str, height: int, *, gap: float = 0.1, **layout: Any
) -> dict[str, Any]:
    """Return a plot with the panels below each other and a common horizontal axis. Curves with the
    same name share one entry of the legend, which shows and hides all of these curves.
    """
    traces, axes, shapes = [], {}, list(layout.pop("shapes", ()))
    named: set[str] = set()
    total = sum([panel.height for panel in panels]) + gap * (len(panels) - 1)
    top, several = 1.0, len(panels) > 1
    for k, panel in enumerate(panels, 1):
        bottom = top - panel.height / total
        domain, top = [max(bottom, 0.0), top], bottom - gap / total
        vertical = axis_name("y", k)
        for curve in panel.curves:
            entry = bool(curve.name) and curve.name not in named
            named.add(curve.name)
            name = escape_name(curve.name)
            one = line(curve.x, curve.y, curve.colour, name, curve.width)
            if curve.kind == "steps":
                one["line"]["shape"] = "hv"
            if "points" in curve.kind:
                one |= {"mode": "markers" if curve.kind == "points" else "lines+markers"}
                one["marker"] = {"color": curve.colour, "size": curve.width}
                one["line"] = {"color": curve.colour, "width": 1.0}
            traces.append(one | {"yaxis": vertical, "showlegend": entry})
            if curve.name:
                traces[-1]["legendgroup"] = curve.name
        title = {"text": panel.label} | ({"font": {"size": 12}} if several else {})
        axes[axis_name("yaxis", k)] = axis("") | {"domain": domain, "title": title} | panel.layout
        if panel.band is not None:
            # The band extends over the whole width of the panel.
            place = {"xref": "paper", "x0": 0, "x1": 1, "yref": vertical}
            ends = {"y0": -panel.band, "y1": panel.band}
            looks = {"fillcolor": "rgba(138,143,152,0.22)", "line": {"width": 0}, "layer": "below"}
            shapes.append({"type": "rect", **place, **ends, **looks})
    below = {"anchor": axis_name("y", len(panels))} | layout.pop("xaxis", {})
    return figure(traces, height, shapes=shapes, xaxis=axis(x_label) | below, **axes, **layout)


def trace(x: Any, y: Any, mode: str, name: str) -> dict[str, Any]:
    return {"type": "scatter", "mode": mode, "name": name, "x": six_figures(x), "y": six_figures(y)}


def line(x: Any, y: Any, colour: str, name: str, width: float = 1.5) -> dict[str, Any]:
    looks = {"line": {"color": colour, "width": width}, "showlegend": bool(name)}
    return trace(x, y, "lines", name) | looks


def six_figures(values: Any) -> list[float | None]:
    """Return values with six digits, more than a screen can show. Nearly equal values have more
    digits (see `digits_of`). nan and infinity give None.
    """
    x, digits = np.asarray(values, dtype=float), digits_of(values, 6)
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in x]


def digits_of(values: Any, least: int) -> int:
    """Return the number of significant digits that resolves the range of `values` as well as
    `least` digits resolve a range from 0. The times 3600 to 3602 s need three digits more.
    """
    x = np.asarray(values, dtype=float)
    x = x[np.isfinite(x)]
    low, high = (float(np.min(x)), float(np.max(x))) if x.size else (0.0, 0.0)
    distance = max(-low, high) / (high - low) if high > low else 1.0
    more = np.ceil(np.log10(max(0.5 * distance, 1.0)))
    return int(min(least + more, 16))  # a number of 64 bits has 16 digits


def fade(colour: str) -> str:
    r, g, b = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({r},{g},{b},0.18)"


def axis(title: str) -> dict[str, Any]:
    return {**_AXIS, "title": {"text": title}, "automargin": True}


def figure(traces: list[dict[str, Any]], height: int, **layout: Any) -> dict[str, Any]:
    common = {
        "height": height,
        "font": _FONT,
        "margin": {"l": 62, "r": 14, "t": 58, "b": 46},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"},
        "dragmode": "zoom",
        "modebar": {"bgcolor": "rgba(0,0,0,0)"},
    }
    return {"data": traces, "layout": common | layout}


def axis_name(axis: str, n: int) -> str:
    return axis if n == 1 else f"{axis}{n}"


def escape_name(name: str) -> str:
    """Escape a name for plotly, which interprets HTML tags."""
    return html.escape(str(name), quote=False)


def script() -> str:
    """Return plotly's script, compressed for browsers; this makes a page 3.3 MB smaller."""
    whole = (files("plotly") / "package_data" / "plotly.min.js").read_bytes()
    return base64.b64encode(gzip.compress(whole, 9, mtime=0)).decode("ascii")
