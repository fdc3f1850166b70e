"""The interactive pictures of a report on a machine, as plotly's own JSON."""

import html
import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from frictax.analysis.friction_curve import law_values
from frictax.analysis.replay.motion import Motion
from frictax.contacts import AbstractContact, Mode
from frictax.contacts.contact import AbstractPressed
from frictax.fitting import FitResult
from frictax.measurements import Record
from frictax.measurements.filters import smooth
from frictax.measurements.units import VELOCITY_OF
from frictax.text import WAYS, prefixed

from .style import BACKWARD, CYCLE, FAINT, FORWARD, INK, MODES

_BINS = 1200  # of a long record: lowest and highest sample of each are drawn
_POINTS = 1500
_COLOURS = {int(mode): colour for mode, (_, colour, _) in MODES.items()}
_COLOURS[Mode.FREE] = "#dddddd"  # white would not show
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


def friction_plot(found: FitResult, uncertainty: Any, study: Any) -> dict[str, Any] | None:
    """The friction of each contact over speed, with the band of its errors and what the data ask
    for; None where there is none.

    Forces stand before torques, and these before the coefficients of brakes and clutches: the first
    kind that there is, is drawn.
    """
    kinds: dict[str, dict[str, Any]] = {}
    for name, part in _contacts(found).items():
        kinds.setdefault(_unit_of(found, part, study), {})[name] = part
    si = next((unit for unit in ("N", "N.m", "") if unit in kinds), None)
    if si is None:
        return None
    contacts, top = kinds[si], _top_speed(found, study)
    v = np.linspace(1e-3 * top, top, 160)
    own = any(u.record is not None for u in found.problem.unknowns)
    label = next(iter(found.records)) if own else None
    curves = {}
    for name in contacts:
        band = uncertainty.friction(name, np.concatenate([v, -v]), label=label)
        for way, half in ((1, slice(v.size)), (-1, slice(v.size, None))):
            curves[name, way] = [a[half] for a in (band.force, band.lower, band.upper)]
    unit, size = prefixed(si, *(f for f, _, _ in curves.values())) if si else ("coefficient", 1.0)
    traces, yaxis = [], _axis(f"friction [{unit}]")
    for k, ((name, way), curve) in enumerate(curves.items()):
        colour = CYCLE[(k // 2) % 6] if len(contacts) > 1 else FORWARD if way > 0 else BACKWARD
        x, (f, low, high) = way * v, (a / size for a in curve)
        around, ends = np.concatenate([x, x[::-1]]), np.concatenate([low, high[::-1]])
        fill = {"fill": "toself", "fillcolor": _faded(colour), "hoverinfo": "skip"}
        traces.append(_line(around, ends, "rgba(0,0,0,0)", "") | fill)
        traces.append(_line(x, f, colour, f"{_text(name)}, {WAYS[way]}", width=2.5))
    data = _measured(study, contacts) if si else None
    if data is not None:
        v, f = (a[:: max(a.size // _POINTS, 1)] for a in data)
        points = _trace(v, f / size, "markers", "what the data ask for")
        traces.insert(0, points | {"marker": {"size": 4, "color": FAINT, "opacity": 0.6}})
        # single samples beyond this would make the curve flat
        most = 1.6 * float(np.quantile(np.abs(data[1] / size), 0.98))
        yaxis |= {"range": [-most, most]}
    speed = "rad/s" if _turns(study, si) else "m/s"
    return _figure(traces, 420, xaxis=_axis(f"velocity [{speed}]"), yaxis=yaxis)


def motion_plots(
    record: Record, label: str, motion: Motion, what: str = "fitted machine"
) -> list[tuple[str, dict[str, Any]]]:
    """A record beside the free run of `what`: the whole, and a stretch around the longest
    standstill with every sample; each with a caption.
    """
    caption = (
        f"{label}: the whole record, and the free run of the {what}. Drag to look closer,"
        " double click to return."
    )
    out = [(caption, _motion(record, motion, np.arange(record.n), thin=True))]
    near = _standstill(motion)
    if near is not None:
        rows, says = near
        out.append(
            (f"{label}: {says}, sample by sample.", _motion(record, motion, rows, thin=False))
        )
    return out


def waterfall_plot(costs: np.ndarray) -> dict[str, Any] | None:
    """Where all starts of a search ended, sorted; None for a single start."""
    finite = np.sort(costs[np.isfinite(costs)])
    if costs.size < 2 or finite.size == 0:
        return None
    trace = _trace(np.arange(1, finite.size + 1), finite / finite[0], "lines+markers", "starts")
    looks = {"marker": {"color": FORWARD, "size": 7}, "line": {"color": FAINT, "width": 1}}
    return _figure(
        [trace | looks],
        300,
        xaxis=_axis("start, the best first"),
        yaxis=_axis("cost over the least") | {"type": "log"},
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
    trace = _line(x, profile.ratio[kept], FORWARD, name, width=2.0) | {"mode": "lines+markers"}
    return _figure(
        [trace],
        300,
        xaxis=_axis(f"{_text(profile.name)} [{unit}]"),
        yaxis=_axis(name),
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


def _motion(record: Record, motion: Motion, rows: np.ndarray, thin: bool) -> dict[str, Any]:
    t, traces, panels = record.t[rows], [], []

    def panel(title: str, unit: str, of: Iterable[np.ndarray]) -> tuple[str, float]:
        """One more panel: its axis, and the size of its unit, one that suits the values `of`."""
        unit, size = prefixed(unit, *(values[rows] for values in of))
        panels.append(f"{title} [{unit}]")
        return _nth("y", len(panels)), size

    def draw(values: np.ndarray, size: float, *looks: str, width: float, **more: Any) -> None:
        x, y = t, values[rows] / size
        traces.append(_line(*(_extremes(x, y) if thin else (x, y)), *looks, width=width) | more)

    for name, measured in _channels(record).items():
        axis, size = panel(_text(name), _unit(record, name), [measured])
        for values, colour, says, width in (
            (measured, FAINT, "measured", 3.0),
            (motion.states.get(name), FORWARD, "simulated", 1.4),
        ):
            if values is not None:
                first = {"legendgroup": says, "showlegend": len(panels) == 1}
                draw(values, size, colour, says, width=width, yaxis=axis, **first)
    turned = "N.m" if any(record.units[n].rotational for n in record.outputs) else "N"
    kinds: dict[str, dict[str, np.ndarray]] = {}
    for name, values in record.inputs.items():
        kinds.setdefault(record.units[name].si_name, {})[name] = values
    for name, values in motion.friction.items():
        kinds.setdefault(turned, {})[name] = values
    colours = iter(CYCLE[1:] * 4)
    for unit, group in kinds.items():
        title = _text(next(iter(group))) if len(group) == 1 else "force"
        axis, size = panel(title, unit, group.values())
        for name, values in group.items():
            draw(values, size, next(colours), _text(name), width=1.2, yaxis=axis)
    heights = [*([1.0] * len(panels)), 0.16 * max(len(motion.modes), 1)]
    layout, bottom = {}, 1.0
    total = sum(heights) + 0.12 * len(panels)
    for i, (title, height) in enumerate(zip([*panels, "mode"], heights, strict=True), 1):
        top, bottom = bottom, bottom - height / total
        layout[_nth("yaxis", i)] = _axis(title) | {
            "domain": [max(bottom, 0.0), top],
            "title": {"text": title, "font": {"size": 12}},
        }
        bottom -= 0.12 / total
    axis = _nth("y", len(heights))
    layout[_nth("yaxis", len(heights))] |= {
        "showticklabels": False,
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "range": [0, len(motion.modes)],
        "fixedrange": True,
    }
    layout["xaxis"] = _axis("time [s]") | {
        "anchor": axis,
        "range": [float(t[0]), float(t[-1])],
        "zeroline": False,
    }
    layout["shapes"] = [shape | {"yref": axis} for shape in _strips(motion, rows)]
    seen = {int(m) for modes in motion.modes.values() for m in np.unique(modes)}
    keys = [
        _trace([None], [None], "markers", name)
        | {"marker": {"color": _COLOURS[mode], "symbol": "square", "size": 10}, "yaxis": axis}
        for mode, (name, _, _) in MODES.items()
        if mode in seen
    ]
    figure = _figure([*traces, *keys], 150 * len(panels) + 130, **layout)
    figure["layout"]["legend"] |= {"y": 1.02}
    return figure


def _strips(motion: Motion, rows: np.ndarray) -> list[dict[str, Any]]:
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
    return shapes[:3000]


def _standstill(motion: Motion) -> tuple[np.ndarray, str] | None:
    """The samples around the longest stretch in which a contact sticks, else around the first
    reversal; in words.
    """
    best: tuple[int, int, str] | None = None
    for name, modes in motion.modes.items():
        edges = np.diff(np.concatenate([[0], modes == 0, [0]]).astype(int))
        for a, b in zip(np.flatnonzero(edges > 0), np.flatnonzero(edges < 0), strict=True):
            if b < modes.size and a > 0 and (best is None or b - a > best[1] - best[0]):
                best = (int(a), int(b), f"around the longest time that {_text(name)} sticks")
    for name, modes in motion.modes.items():
        turns = np.flatnonzero(np.diff(np.sign(modes)) != 0)
        if best is None and turns.size:
            first = int(turns[0])
            best = (first, first + 1, f"around the first change of mode of {_text(name)}")
    if best is None:
        return None
    a, b, says = best
    more = int(np.clip(2 * (b - a), 60, 600))
    return np.arange(max(a - more, 0), min(b + more, motion.t.size - 1) + 1), says


def _channels(record: Record) -> dict[str, np.ndarray]:
    """What is measured, and the velocity that measured positions have."""
    out: dict[str, np.ndarray] = {}
    for name, values in record.outputs.items():
        out[name] = values
        body, dot, last = name.rpartition(".")
        rate = VELOCITY_OF.get(last)
        if rate and f"{body}{dot}{rate}" not in record.outputs:
            out[f"{body}{dot}{rate}"] = smooth(record.t, values, min(50.0, 0.45 * record.rate)).v
    return out


def _unit(record: Record, name: str) -> str:
    if name in record.units:
        return record.units[name].si_name
    return "rad/s" if name.endswith("w") else "m/s"


def _contacts(found: FitResult) -> dict[str, Any]:
    """The contacts that have a friction of their own over speed."""
    parts = _parts(found.model).items()
    return {name: part for name, part in parts if isinstance(part, AbstractContact)}


def _parts(machine: Any) -> dict[str, Any]:
    if hasattr(machine, "named_parts"):
        return dict(machine.named_parts())
    return {name: getattr(machine, name, None) for name in vars(machine)}


def _unit_of(found: FitResult, part: Any, study: Any) -> str:
    """N or N.m of what a contact's law gives, "" for the coefficient of one that is pressed on."""
    if isinstance(part, AbstractPressed):
        return ""
    turns = getattr(type(part), "rotational", None)
    if turns is None:
        body = str(getattr(part, "body", "")).partition(".")[0]
        there = _parts(found.model).get(body) if hasattr(found.model, "named_parts") else None
        turns = _turns(study, "") if there is None else getattr(type(there), "rotational", None)
    return "N.m" if turns else "N"


def _turns(study: Any, unit: str) -> bool:
    return unit == "N.m" or (
        unit == "" and bool(study is not None and study.series and study.series[0].place == "rad")
    )


def _measured(study: Any, contacts: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray] | None:
    """Speed and friction that the data ask for: the law's force less the force that the machine
    lacks; of one contact on one body only.
    """
    if (
        study is None
        or len(contacts) != 1
        or len({s.of for s in study.series}) != 1
        or not all(s.is_force for s in study.series)
    ):
        return None
    series = [s for s in study.series if s.v is not None]
    if not series:
        return None
    v, (part,) = np.concatenate([s.v for s in series]), contacts.values()
    f = np.where(v >= 0, law_values(part.law(1), np.abs(v)), -law_values(part.law(-1), np.abs(v)))
    return v, f - np.concatenate([s.e for s in series])


def _top_speed(found: FitResult, study: Any) -> float:
    speeds = [
        np.max(np.abs(s.v)) for s in (study.series if study is not None else ()) if s.v is not None
    ]
    if not speeds:
        speeds = [
            np.max(np.abs(v))
            for r in found.records.values()
            if isinstance(r, Record)
            for n, v in _channels(r).items()
            if n[-1] in "vw"
        ]
    return float(max(speeds, default=1.0))


def _extremes(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest sample of each of many bins: a drawing that looks like
    the whole.
    """
    if x.size <= 2 * _BINS:
        return x, y
    rows = np.array_split(np.arange(x.size), _BINS)
    y = np.where(np.isfinite(y), y, np.nan)
    kept = [r[np.isfinite(y[r])] for r in rows]
    picked = np.unique(
        [i for r in kept if r.size for i in (r[np.argmin(y[r])], r[np.argmax(y[r])])]
    )
    return x[picked], y[picked]


def _trace(x: Any, y: Any, mode: str, name: str) -> dict[str, Any]:
    return {"type": "scatter", "mode": mode, "name": name, "x": _short(x), "y": _short(y)}


def _line(x: Any, y: Any, colour: str, name: str, width: float = 1.5) -> dict[str, Any]:
    looks = {"line": {"color": colour, "width": width}, "showlegend": bool(name)}
    return _trace(x, y, "lines", name) | looks


def _short(values: Any) -> list[float | None]:
    """Six figures are more than a screen shows."""
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in np.asarray(values, dtype=float)]


def _faded(colour: str) -> str:
    r, g, b = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({r},{g},{b},0.18)"


def _axis(title: str) -> dict[str, Any]:
    return {**_AXIS, "title": {"text": title}, "automargin": True}


def _figure(traces: list[dict[str, Any]], height: int, **layout: Any) -> dict[str, Any]:
    common = {
        "height": height,
        "font": _FONT,
        "margin": {"l": 62, "r": 14, "t": 58, "b": 46},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"},
        "dragmode": "zoom",
    }
    return {"data": traces, "layout": common | layout}


def _nth(axis: str, n: int) -> str:
    return axis if n == 1 else f"{axis}{n}"


def _text(name: str) -> str:
    """A name for plotly, which reads tags."""
    return html.escape(str(name), quote=False)
