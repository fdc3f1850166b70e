"""Friction over speed, with its band and what the data ask for."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from frictax.analysis.friction_curve import law_values
from frictax.contacts import AbstractContact
from frictax.contacts.contact import AbstractPressed
from frictax.fitting import FitResult
from frictax.measurements import Record
from frictax.mechanism import Mechanism
from frictax.text import WAYS, prefixed

from ..style import BACKWARD, CYCLE, FAINT, FORWARD
from . import plotly_json as plotly
from .motion import channels

_POINTS = 1500


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
    traces, yaxis = [], plotly.axis(f"friction [{unit}]")
    for k, ((name, way), curve) in enumerate(curves.items()):
        colour = CYCLE[(k // 2) % 6] if len(contacts) > 1 else FORWARD if way > 0 else BACKWARD
        x, (f, low, high) = way * v, (a / size for a in curve)
        around, ends = np.concatenate([x, x[::-1]]), np.concatenate([low, high[::-1]])
        fill = {"fill": "toself", "fillcolor": plotly.faded(colour), "hoverinfo": "skip"}
        traces.append(plotly.line(around, ends, "rgba(0,0,0,0)", "") | fill)
        traces.append(plotly.line(x, f, colour, f"{plotly.text(name)}, {WAYS[way]}", width=2.5))
    data = _measured(study, contacts) if si else None
    if data is not None:
        v, f = (a[:: max(a.size // _POINTS, 1)] for a in data)
        points = plotly.trace(v, f / size, "markers", "from the measured motion")
        traces.insert(0, points | {"marker": {"size": 4, "color": FAINT, "opacity": 0.6}})
        # single samples beyond this would make the curve flat
        most = 1.6 * float(np.quantile(np.abs(data[1] / size), 0.98))
        yaxis |= {"range": [-most, most]}
    speed = "rad/s" if _turns(study, si) else "m/s"
    return plotly.figure(traces, 420, xaxis=plotly.axis(f"velocity [{speed}]"), yaxis=yaxis)


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
    if not isinstance(found.model, Mechanism):  # whose parts say nothing of what they are on
        seen = (r.units[name] for r in found.records.values() for name in r.outputs)
        return "N.m" if any(unit.rotational for unit in seen) else "N"
    turns = getattr(type(part), "rotational", None)
    if turns is None:
        body = str(getattr(part, "body", "")).partition(".")[0]
        there = _parts(found.model).get(body)
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
            for n, v in channels(r).items()
            if n[-1] in "vw"
        ]
    return float(max(speeds, default=1.0))
