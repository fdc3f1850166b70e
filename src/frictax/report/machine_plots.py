"""The interactive pictures of a report on a machine, as plotly's own JSON."""

import html
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from frictax.analysis.friction_curve import law_values
from frictax.analysis.replay.motion import Motion
from frictax.contacts import AbstractContact, Mode
from frictax.contacts.contact import AbstractPressed
from frictax.fitting import Band, FitResult
from frictax.measurements import Record
from frictax.measurements.filters import smooth
from frictax.measurements.units import VELOCITY_OF
from frictax.text import WAYS, prefixed

from .style import BACKWARD, CYCLE, FAINT, FORWARD, INK, MODES

_BINS = 1200  # of a long record: lowest and highest sample of each are drawn
_POINTS = 1500
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
    label = (
        next(iter(found.records))
        if any(u.record is not None for u in found.problem.unknowns)
        else None
    )
    bands = {}
    for name in contacts:
        both = uncertainty.friction(name, np.concatenate([v, -v]), label=label)
        for way, half in ((1, slice(v.size)), (-1, slice(v.size, None))):
            bands[name, way] = Band(
                way * v, both.force[half], both.lower[half], both.upper[half], both.level
            )
    unit, size = (
        prefixed(si, *(band.force for band in bands.values())) if si else ("coefficient", 1.0)
    )
    traces = []
    for k, ((name, way), band) in enumerate(bands.items()):
        colour = CYCLE[(k // 2) % 6] if len(contacts) > 1 else FORWARD if way > 0 else BACKWARD
        x, f, low, high = (
            _short(a / s)
            for a, s in ((way * v, 1.0), (band.force, size), (band.lower, size), (band.upper, size))
        )
        says = f"{_text(name)}, {WAYS[way]}"
        traces.append(
            _line(
                [*x, *x[::-1]],
                [*low, *high[::-1]],
                None,
                "",
                fill="toself",
                fillcolor=_faded(colour),
                hoverinfo="skip",
            )
        )
        traces.append(_line(x, f, colour, says, width=2.5))
    layout = _layout(420)
    layout |= {
        "xaxis": _axis("velocity [rad/s]" if _turns(study, si) else "velocity [m/s]"),
        "yaxis": _axis(f"friction [{unit}]"),
    }
    data = _measured(study, contacts) if si else None
    if data is not None:
        v, f = (a[:: max(a.size // _POINTS, 1)] for a in data)
        points = {
            "type": "scatter",
            "mode": "markers",
            "name": "what the data ask for",
            "x": _short(v),
            "y": _short(f / size),
        }
        traces.insert(0, {**points, "marker": {"size": 4, "color": FAINT, "opacity": 0.6}})
        # single samples beyond this would make the curve flat
        most = 1.6 * float(np.quantile(np.abs(data[1] / size), 0.98))
        layout["yaxis"] |= {"range": [-most, most]}
    return {"data": traces, "layout": layout}


def motion_plots(found: FitResult, label: str, motion: Motion) -> list[tuple[str, dict[str, Any]]]:
    """A record beside the free run: the whole, and a stretch around the longest standstill with
    every sample; each with a caption.
    """
    record = found.records[label]
    whole = _motion(record, motion, np.arange(record.n), thin=True)
    out = [
        (
            (
                f"{label}: the whole record, and the free run of the fitted machine. Drag to look"
                " closer, double click to return."
            ),
            whole,
        )
    ]
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
    trace = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(range(1, finite.size + 1)),
        "y": _short(finite / finite[0]),
        "name": "starts",
    }
    return {
        "data": [
            {**trace, "marker": {"color": FORWARD, "size": 7}, "line": {"color": FAINT, "width": 1}}
        ],
        "layout": (
            _layout(300)
            | {
                "xaxis": _axis("start, the best first"),
                "yaxis": _axis("cost over the least") | {"type": "log"},
                "showlegend": False,
            }
        ),
    }


def profile_plot(profile: Any) -> dict[str, Any]:
    """A profile likelihood with its threshold and interval."""
    unit, size = (
        prefixed(profile.unit, profile.values[np.isfinite(profile.values)])
        if profile.unit.startswith("N")
        else (profile.unit, 1.0)
    )
    x = profile.values / size
    ends = [e / size for e in (profile.lower, profile.upper) if np.isfinite(e)]
    dashed = {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": profile.threshold,
        "y1": profile.threshold,
        "line": {"color": BACKWARD, "dash": "dash", "width": 1.2},
    }
    stand = [
        {
            "type": "line",
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "x0": e,
            "x1": e,
            "line": {"color": FAINT, "dash": "dot", "width": 1.2},
        }
        for e in ends
    ]
    kept = profile.ratio <= 4 * profile.threshold
    trace = _line(
        _short(x[kept]), _short(profile.ratio[kept]), FORWARD, "likelihood ratio", width=2.0
    ) | {"mode": "lines+markers"}
    layout = _layout(300) | {
        "xaxis": _axis(f"{_text(profile.name)} [{unit}]"),
        "yaxis": _axis("likelihood ratio"),
        "shapes": [dashed, *stand],
    }
    return {"data": [trace], "layout": layout | {"showlegend": False}}


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
    t, traces, panels = record.t, [], []
    draw = (lambda x, y: _extremes(x, y)) if thin else (lambda x, y: (x, y))
    inside = (t >= t[rows[0]]) & (t <= t[rows[-1]])
    for name, measured in _channels(record).items():
        simulated = motion.states.get(name)
        unit = _unit(record, name)
        unit, size = prefixed(unit, measured[inside])
        panels.append(f"{_text(name)} [{unit}]")
        axis = _nth("y", len(panels))
        for values, colour, says, width in (
            (measured, FAINT, "measured", 3.0),
            (simulated, FORWARD, "simulated", 1.4),
        ):
            if values is not None:
                x, y = draw(t[inside], values[inside] / size)
                traces.append(
                    _line(_short(x), _short(y), colour, says, width=width)
                    | {
                        "yaxis": axis,
                        "legendgroup": says,
                        "showlegend": len(panels) == 1,
                    }
                )
    turned = "N.m" if any(record.units[n].rotational for n in record.outputs) else "N"
    kinds: dict[str, dict[str, np.ndarray]] = {}
    for name, values in record.inputs.items():
        kinds.setdefault(record.units[name].si_name, {})[name] = values
    for name, values in motion.friction.items():
        kinds.setdefault(turned, {})[name] = values
    colours = iter(CYCLE[1:] * 4)
    for unit, group in kinds.items():
        unit, size = prefixed(unit, *(x[inside][np.isfinite(x[inside])] for x in group.values()))
        panels.append(
            f"{', '.join(map(_text, group))} [{unit}]" if len(group) == 1 else f"force [{unit}]"
        )
        for name, values in group.items():
            x, y = draw(t[inside], values[inside] / size)
            traces.append(
                _line(_short(x), _short(y), next(colours), _text(name), width=1.2)
                | {"yaxis": _nth("y", len(panels))}
            )
    strips = _strips(motion, inside)
    heights = [*([1.0] * len(panels)), 0.16 * max(len(motion.modes), 1)]
    layout, bottom = _layout(150 * len(panels) + 130), 1.0
    total = sum(heights) + 0.12 * len(panels)
    for i, height in enumerate(heights):
        top, bottom = bottom, bottom - height / total
        key = "yaxis" if i == 0 else f"yaxis{i + 1}"
        last = i == len(heights) - 1
        title = {"text": "mode" if last else panels[i], "font": {"size": 12}}
        layout[key] = {
            **_AXIS,
            "domain": [max(bottom, 0.0), top],
            "title": title,
            "automargin": True,
        }
        if last:
            layout[key] |= {
                "showticklabels": False,
                "showgrid": False,
                "zeroline": False,
                "ticks": "",
                "range": [0, len(motion.modes)],
                "fixedrange": True,
            }
        bottom -= 0.12 / total
    layout["xaxis"] = _axis("time [s]") | {
        "anchor": _nth("y", len(heights)),
        "range": [float(t[inside][0]), float(t[inside][-1])],
        "zeroline": False,
    }
    axis = _nth("y", len(heights))
    layout["shapes"] = [{**shape, "yref": axis} for shape in strips]
    keys = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [None],
            "y": [None],
            "name": MODES[m][0],
            "marker": {
                "color": MODES[m][1] if m is not Mode.FREE else "#ddd",
                "symbol": "square",
                "size": 10,
            },
            "yaxis": axis,
        }
        for m in _seen(motion)
    ]
    layout["legend"] |= {"y": 1.02}
    return {"data": [*traces, *keys], "layout": layout}


def _strips(motion: Motion, inside: np.ndarray) -> list[dict[str, Any]]:
    """Coloured stretches of each contact's modes; those too short to be seen are drawn all the
    same.
    """
    t, shapes = motion.t[inside], []
    for row, modes in enumerate(motion.modes.values()):
        m = modes[inside]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(m)) + 1, [m.size - 1]])
        for a, b in zip(starts[:-1], starts[1:], strict=True):
            mode = Mode(int(m[a])) if int(m[a]) in [x.value for x in Mode] else Mode.FREE
            colour = MODES[mode][1] if mode is not Mode.FREE else "#dddddd"
            place = {"x0": float(t[a]), "x1": float(t[b]), "y0": row + 0.08, "y1": row + 0.92}
            shapes.append(
                {
                    "type": "rect",
                    "xref": "x",
                    **place,
                    "fillcolor": colour,
                    "line": {"width": 0.4, "color": colour},
                    "layer": "below",
                }
            )
    return shapes[:3000]


def _seen(motion: Motion) -> list[Mode]:
    seen = {int(m) for modes in motion.modes.values() for m in np.unique(modes)}
    return [m for m in MODES if m.value in seen]


def _standstill(motion: Motion) -> tuple[np.ndarray, str] | None:
    """The samples around the longest stretch in which a contact sticks, else around the first
    reversal; in words.
    """
    best: tuple[int, int, str] | None = None
    for name, modes in motion.modes.items():
        stuck = np.concatenate([[0], (modes == 0).astype(int), [0]])
        for a, b in zip(
            np.flatnonzero(np.diff(stuck) > 0), np.flatnonzero(np.diff(stuck) < 0), strict=True
        ):
            if b < modes.size and a > 0 and (best is None or b - a > best[1] - best[0]):
                best = (int(a), int(b), f"around the longest time that {_text(name)} sticks")
    if best is None:
        for name, modes in motion.modes.items():
            turns = np.flatnonzero(np.diff(np.sign(modes)) != 0)
            if turns.size:
                best = (
                    int(turns[0]),
                    int(turns[0]) + 1,
                    f"around the first change of mode of {_text(name)}",
                )
                break
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
    machine = found.model
    if hasattr(machine, "named_parts"):
        parts = dict(machine.named_parts())
    else:
        parts = {name: getattr(machine, name, None) for name in vars(machine)}
    return {name: part for name, part in parts.items() if isinstance(part, AbstractContact)}


def _unit_of(found: FitResult, part: Any, study: Any) -> str:
    """N or N.m of what a contact's law gives, "" for the coefficient of one that is pressed on."""
    if isinstance(part, AbstractPressed):
        return ""
    turns = getattr(type(part), "rotational", None)
    if turns is None:
        body = str(getattr(part, "body", "")).partition(".")[0]
        there = (
            found.model[body]
            if hasattr(found.model, "named_parts") and body in dict(found.model.named_parts())
            else None
        )
        turns = getattr(type(there), "rotational", None) if there is not None else _turns(study, "")
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


def _line(
    x: Any, y: Any, colour: str | None, name: str, width: float = 1.5, **more: Any
) -> dict[str, Any]:
    shown = {"name": name, "showlegend": bool(name)}
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(x),
        "y": list(y),
        "line": {"color": colour or "rgba(0,0,0,0)", "width": width},
        **shown,
        **more,
    }


def _short(values: Any) -> list[float | None]:
    """Six figures are more than a screen shows."""
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in np.asarray(values, dtype=float)]


def _faded(colour: str) -> str:
    r, g, b = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({r},{g},{b},0.18)"


def _axis(title: str) -> dict[str, Any]:
    return {**_AXIS, "title": {"text": title}, "automargin": True}


def _layout(height: int) -> dict[str, Any]:
    return {
        "height": height,
        "font": _FONT,
        "margin": {"l": 62, "r": 14, "t": 58, "b": 46},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"},
        "dragmode": "zoom",
    }


def _nth(letter: str, n: int) -> str:
    return letter if n == 1 else f"{letter}{n}"


def _text(name: str) -> str:
    """A name for plotly, which reads tags."""
    return html.escape(str(name), quote=False)
