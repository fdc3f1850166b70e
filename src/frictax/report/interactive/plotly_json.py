"""Pictures as plotly's own JSON: what all of them have in common."""

import base64
import gzip
import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from ..style import FAINT, INK

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
    """JSON that may stand inside a script: no text in it can end the script or begin a tag."""
    text = json.dumps(figure, allow_nan=False, separators=(",", ":"))
    return (
        text.replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
        .replace("\u2028", "")
        .replace("\u2029", "")
    )


def extremes(x: np.ndarray, y: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest sample of each of `bins`: a drawing that looks like the whole."""
    if x.size <= 2 * bins:
        return x, y
    rows = np.array_split(np.arange(x.size), bins)
    y = np.where(np.isfinite(y), y, np.nan)
    kept = [r[np.isfinite(y[r])] for r in rows]
    picked = np.unique(
        [i for r in kept if r.size for i in (r[np.argmin(y[r])], r[np.argmax(y[r])])]
    )
    return x[picked], y[picked]


def trace(x: Any, y: Any, mode: str, name: str) -> dict[str, Any]:
    return {"type": "scatter", "mode": mode, "name": name, "x": short(x), "y": short(y)}


def line(x: Any, y: Any, colour: str, name: str, width: float = 1.5) -> dict[str, Any]:
    looks = {"line": {"color": colour, "width": width}, "showlegend": bool(name)}
    return trace(x, y, "lines", name) | looks


def short(values: Any) -> list[float | None]:
    """Six figures are more than a screen shows."""
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in np.asarray(values, dtype=float)]


def faded(colour: str) -> str:
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


def nth(axis: str, n: int) -> str:
    return axis if n == 1 else f"{axis}{n}"


def text(name: str) -> str:
    """A name for plotly, which reads tags."""
    return html.escape(str(name), quote=False)


def script() -> str:
    """plotly's script from the installed package, packed: a browser unpacks it by itself
    (`DecompressionStream`), and a page is 3.3 MB smaller.
    """
    whole = (files("plotly") / "package_data" / "plotly.min.js").read_bytes()
    return base64.b64encode(gzip.compress(whole, 9, mtime=0)).decode("ascii")


def stack(heights: Sequence[float], gap: float = 0.1) -> list[list[float]]:
    """The domains of panels below each other, of these relative heights, `gap` between them."""
    total, top, out = sum(heights) + gap * (len(heights) - 1), 1.0, []
    for height in heights:
        bottom = top - height / total
        out.append([max(bottom, 0.0), top])
        top = bottom - gap / total
    return out


def band(axis: str, half: float) -> dict[str, Any]:
    """A band about zero, through the whole panel."""
    place = {"xref": "paper", "x0": 0, "x1": 1, "yref": axis, "y0": -half, "y1": half}
    looks = {"fillcolor": "rgba(138,143,152,0.22)", "line": {"width": 0}, "layer": "below"}
    return {"type": "rect", **place, **looks}
