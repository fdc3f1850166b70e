"""Interactive plots of a fit: records with the simulated motion, friction over speed, profile
likelihoods, and final misfits of all starts of the search.
"""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from frictax.analysis.friction_curve import law_values
from frictax.analysis.replay.free_run import Motion
from frictax.contacts import AbstractContact, Mode
from frictax.contacts.contact import AbstractPressed
from frictax.export.fitted_machine import example_machine, values_by_record
from frictax.fitting import FitResult
from frictax.fitting.problem.readings import allowed_cutoff
from frictax.measurements import Record
from frictax.measurements.filters import smooth
from frictax.measurements.units import VELOCITY_OF, related_channel
from frictax.mechanism import Mechanism
from frictax.mechanism.layout import turns_about
from frictax.text import WAYS, prefix_unit

from . import plotly_json as plotly
from .record_figure import starts_panel
from .style import BACKWARD, CYCLE, FAINT, FORWARD, MODES, Curve, Panel

_COLOURS = {int(mode): colour for mode, (_, colour, _) in MODES.items()}
_COLOURS[Mode.FREE] = "#dddddd"  # White is not visible on the page.


def motion_plots(
    record: Record,
    label: str,
    motion: Motion,
    what: str = "fitted machine",
    beside: int = 1,
    machine: Any = None,
) -> list[tuple[str, dict[str, Any]]]:
    """Plot a record and the free run of the machine. Return pairs of caption and plot: for the
    whole record, and for all samples around the longest standstill. `what`: name of the machine.

    The residual is below each measured output. If the record states a standard deviation, a band of
    2 standard deviations is drawn on each side of 0. `beside`: number of records on the page;
    `machine`: the machine, which shows whether the friction of a contact is a force or a torque.
    """
    # Draw the lowest and the highest sample in each of at most 500 bins. All records of a page
    # together have at most 800 bins, so that the page is below 3 MB.
    bins = max(2, min(500, 800 // beside))
    caption = (
        f"{label}: the whole record, and the free run of the {what}. Drag to zoom in; double-click"
        " to zoom out."
    )
    if given := [sd for sd in record.sd.values() if sd is not None]:
        of = "median standard" if any(np.ptp(sd) > 0 for sd in given) else "standard"
        caption += f" Grey band: twice the {of} deviation of the noise on each side of 0."
    rotational = any(record.units[n].rotational for n in record.outputs)
    si = {n: "N.m" if _turns(machine, n, rotational) else "N" for n in motion.friction}
    views = [(caption, np.arange(record.n), True)]
    # Find the longest sticking time of a contact, or without sticking, the first mode change.
    a, b, says = 0, 0, ""
    modes_of = {name: modes[motion.t <= motion.end] for name, modes in motion.modes.items()}
    for name, modes in modes_of.items():
        edges = np.diff(np.concatenate([[0], modes == 0, [0]]).astype(int))
        for first, last in zip(np.flatnonzero(edges > 0), np.flatnonzero(edges < 0), strict=True):
            if 0 < first and last < modes.size and last - first > b - a:
                a, b = int(first), int(last)
                says = f"around the longest time that {name} sticks"
    for name, modes in modes_of.items():
        changes = np.flatnonzero(np.diff(np.sign(modes)) != 0)
        if not says and changes.size:
            a, b = int(changes[0]), int(changes[0]) + 1
            says = f"around the first change of mode of {name}"
    if says:
        more = int(np.clip(2 * (b - a), 60, 600))
        rows = np.arange(max(a - more, 0), min(b + more, motion.t.size - 1) + 1)
        views.append((f"{label}: {says}, sample by sample.", rows, False))
    out = []
    for says, rows, thin in views:
        plot, complete = _motion_plot(record, motion, rows, bins, si, thin)
        more = "" if complete else " The strip of modes does not show all short modes."
        out.append((says + more, plot))
    return out


def _motion_plot(
    record: Record,
    motion: Motion,
    rows: np.ndarray,
    bins: int,
    units: Mapping[str, str],
    thin: bool,
) -> tuple[dict[str, Any], bool]:
    """Plot the samples `rows`. Return the plot, and False if short modes are not shown.

    `units`: contact -> SI unit of its friction; `thin`: whether to draw only extremes in `bins`.
    """
    t = record.t[rows]

    def curve(values: np.ndarray, size: float, colour: str, name: str, width: float) -> Curve:
        x, y = t, values[rows] / size
        return Curve(*(plotly.extremes(x, y, bins) if thin else (x, y)), colour, name, width)

    panels = []
    for name, (measured, si) in channels(record).items():
        unit, size = prefix_unit(si, measured[rows])
        simulated = motion.readings.get(name)
        curves = [curve(measured, size, FAINT, "measured", 3.0)]
        if simulated is not None:
            curves.append(curve(simulated, size, FORWARD, "simulated", 1.4))
        panels.append(Panel(f"{plotly.escape_name(name)} [{unit}]", curves))
        if simulated is not None:
            residual, sd = measured - simulated, record.sd.get(name)
            unit, size = prefix_unit(si, np.nan_to_num(residual)[rows])
            band = None if sd is None else 2 * float(np.median(np.asarray(sd))) / size
            below = [curve(residual, size, CYCLE[0], "", 0.9)]
            panels.append(Panel(f"residual [{unit}]", below, height=0.5, band=band))
    forces: dict[str, dict[str, np.ndarray]] = {}
    for name, values in record.inputs.items():
        forces.setdefault(record.units[name].si_name, {})[name] = values
    for name, values in motion.friction.items():
        forces.setdefault(units[name], {})[name] = values
    colours = itertools.cycle(CYCLE[1:])
    for si, group in forces.items():
        unit, size = prefix_unit(si, *(values[rows] for values in group.values()))
        what = {"N": "force", "N.m": "torque"}.get(si, "input")
        title = plotly.escape_name(next(iter(group))) if len(group) == 1 else what
        curves = [curve(values, size, next(colours), n, 1.2) for n, values in group.items()]
        panels.append(Panel(f"{title} [{unit}]", curves))
    if contacts := [plotly.escape_name(name) for name in motion.modes]:
        layout = {"showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True}
        layout |= {"range": [0, len(contacts)], "ticktext": contacts}
        layout |= {"tickvals": [row + 0.5 for row in range(len(contacts))]}
        panels.append(Panel("mode", [], height=0.16 * len(contacts), layout=layout))
    heights = sum(panel.height for panel in panels)
    time = {"range": [float(t[0]), float(t[-1])], "zeroline": False}
    high = int(165 * heights) + 130
    plot = plotly.plot_panels(panels, "time [s]", high, gap=0.12, xaxis=time)
    plot["layout"]["legend"] |= {"y": 1.02}
    most = max(4 * bins // max(len(contacts), 1), 1)
    return plot, _add_modes(plot, motion, rows, plotly.axis_name("y", len(panels)), most)


def _add_modes(
    plot: dict[str, Any], motion: Motion, rows: np.ndarray, axis: str, most: int
) -> bool:
    """Add for each contact at most `most` rectangles in the colours of its modes over time, and a
    legend. Modes after the end of the run are unknown. Return False if short modes are missing.
    """
    rows, strips, complete = rows[motion.t[rows] <= motion.end], [], True
    for row, modes in enumerate(motion.modes.values()):
        at = rows
        if np.count_nonzero(np.diff(modes[rows])) >= most:
            at, complete = rows[np.linspace(0, rows.size - 1, most + 1).astype(int)], False
        m = modes[at]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(m)) + 1, [m.size - 1]])
        for a, b in itertools.pairwise(starts):
            colour = _COLOURS.get(int(m[a]), _COLOURS[Mode.FREE])
            ends = motion.t[at[[a, b]]].tolist()
            place = {"x0": ends[0], "x1": ends[1], "y0": row + 0.08, "y1": row + 0.92}
            looks = {"fillcolor": colour, "line": {"width": 0.4, "color": colour}, "layer": "below"}
            strips.append({"type": "rect", "xref": "x", **place, **looks, "yref": axis})
    plot["layout"]["shapes"][:0] = strips
    seen = {int(m) for modes in motion.modes.values() for m in np.unique(modes[rows])}
    for mode, (name, _, _) in MODES.items():
        if mode in seen:
            marker = {"color": _COLOURS[mode], "symbol": "square", "size": 10}
            key = plotly.trace([None], [None], "markers", name)
            plot["data"].append(key | {"marker": marker, "yaxis": axis})
    return complete


def channels(record: Record) -> dict[str, tuple[np.ndarray, str]]:
    """Return measured outputs, and a velocity for each position without a measured velocity. Each
    is a pair of values and SI unit.
    """
    out: dict[str, tuple[np.ndarray, str]] = {}
    for name, values in record.outputs.items():
        si, rate = record.units[name].si_name, related_channel(name, VELOCITY_OF)
        out[name] = values, si
        if rate and rate not in record.outputs:
            out[rate] = smooth(record.t, values, allowed_cutoff(record)).v, f"{si}/s"
    return out


def friction_plot(found: FitResult, uncertainty: Any, study: Any) -> dict[str, Any] | None:
    """Plot the friction of each contact over speed with its confidence band, and the friction
    computed from the measured motion. Return None for a machine without friction.

    The plot shows the first available quantity of a machine: friction forces, friction torques, or
    friction coefficients of brakes and clutches. If values of a contact differ by record, the plot
    shows the first record.
    """
    (si, speed), contacts, top = _contacts(found, study)
    if not contacts:
        return None
    v = np.linspace(1e-3 * top, top, 160)
    _, label = example_machine(found)
    curves = {}
    for name in contacts:
        band = uncertainty.friction(name, np.concatenate([v, -v]), label=label)
        for way, half in ((1, slice(v.size)), (-1, slice(v.size, None))):
            curves[name, way] = [a[half] for a in (band.force, band.lower, band.upper)]
    unit, size = (
        prefix_unit(si, *(f for f, _, _ in curves.values())) if si else ("coefficient", 1.0)
    )
    traces, yaxis = [], plotly.axis(f"friction [{unit}]")
    for k, ((name, way), curve) in enumerate(curves.items()):
        colour = CYCLE[(k // 2) % 6] if len(contacts) > 1 else FORWARD if way > 0 else BACKWARD
        x, (f, low, high) = way * v, (a / size for a in curve)
        around, ends = np.concatenate([x, x[::-1]]), np.concatenate([low, high[::-1]])
        fill = {"fill": "toself", "fillcolor": plotly.fade(colour), "hoverinfo": "skip"}
        traces.append(plotly.line(around, ends, "rgba(0,0,0,0)", "") | fill)
        traces.append(
            plotly.line(x, f, colour, f"{plotly.escape_name(name)}, {WAYS[way]}", width=2.5)
        )
    measured = _measured_friction(study, contacts, found) if si else None
    if measured is not None:
        v, f = (a[:: max(a.size // 1500, 1)] for a in measured)
        points = plotly.trace(v, f / size, "markers", "from the measured motion")
        traces.insert(0, points | {"marker": {"size": 4, "color": FAINT, "opacity": 0.6}})
        # A quantile sets the range of the axis, because a few extreme samples make it too large.
        most = 1.6 * float(np.quantile(np.abs(measured[1] / size), 0.98))
        yaxis |= {"range": [-most, most]}
    return plotly.figure(traces, 420, xaxis=plotly.axis(f"velocity [{speed}]"), yaxis=yaxis)


def _contacts(found: FitResult, study: Any) -> tuple[tuple[str, str], dict[str, Any], float]:
    """Return the units of the plotted friction and of its speed, name -> contact with these units,
    and the highest speed.

    The friction is in N or N.m if the law of a contact is a force or torque. Its unit is "" for the
    friction coefficient of a contact with a normal force.
    """
    machine, _ = example_machine(found)
    parts = dict(machine.named_parts()) if hasattr(machine, "named_parts") else vars(machine)
    units = ("N", "m/s"), ("N.m", "rad/s"), ("", "m/s"), ("", "rad/s")
    kinds: dict[tuple[str, str], dict[str, Any]] = {pair: {} for pair in units}
    records = [r for r in found.records.values() if isinstance(r, Record)]
    rotational = any(r.units[name].rotational for r in records for name in r.outputs)
    for name, part in parts.items():
        if isinstance(part, AbstractContact):
            turns, pressed = _turns(machine, name, rotational), isinstance(part, AbstractPressed)
            kinds[units[2 * pressed + turns]][name] = part
    (si, speed), contacts = next((kind for kind in kinds.items() if kind[1]), (units[0], {}))
    series = [] if study is None else study.series
    speeds = [s.v for s in series if s.v is not None and f"{s.place}/s" == speed] or [
        v for r in records for v, unit in channels(r).values() if unit == speed
    ]
    top = float(max((np.max(np.abs(v)) for v in speeds), default=1.0))
    return (si, speed), contacts, top


def _turns(machine: Any, name: str, otherwise: bool) -> bool:
    """Return whether the part `name` acts on turning bodies, `otherwise` if this is not known, as
    for a user's class, whose parts do not name bodies.
    """
    known = isinstance(machine, Mechanism) and name in machine.names
    turns = turns_about(machine, name) if known else None
    return otherwise if turns is None else turns


def _measured_friction(
    study: Any, contacts: Mapping[str, Any], found: FitResult
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return speed and friction computed from the measured motion: the force of the law minus the
    residual force. Return None for several contacts or bodies, or without residual forces. If
    values of the contact differ by record, return points of the first record.
    """
    if (
        study is None
        or len(contacts) != 1
        or len({s.of for s in study.series}) != 1
        or not all(s.is_force for s in study.series)
    ):
        return None
    own = {path.partition(".")[0] for path in values_by_record(found)} & set(contacts)
    known = list(found.records)[: 1 if own else None]
    series = [s for s in study.series if s.v is not None and s.record in known]
    if not series:
        return None
    v, (part,) = np.concatenate([s.v for s in series]), contacts.values()
    f = np.where(v >= 0, law_values(part.law(1), np.abs(v)), -law_values(part.law(-1), np.abs(v)))
    return v, f - np.concatenate([s.e for s in series])


def starts_plot(found: FitResult) -> dict[str, Any] | None:
    """Plot the sorted final misfits of all starts of a search; return None for one start."""
    panel = starts_panel(found)
    if panel is None:
        return None
    plot = plotly.plot_panels([panel], "start, the best first", 300)
    plot["layout"]["yaxis"]["type"] = "log"
    return plot


def profile_plot(profile: Any) -> dict[str, Any]:
    """Plot the likelihood ratio of a profile over the parameter, with threshold and interval."""
    force = profile.unit.startswith("N")
    unit, size = prefix_unit(profile.unit, profile.values) if force else (profile.unit, 1.0)
    kept = profile.ratio <= 4 * profile.threshold
    x = profile.values[kept] / size
    curve = Curve(x, profile.ratio[kept], FORWARD, "", 6.0, "line and points")
    ends = [end / size for end in (profile.lower, profile.upper) if np.isfinite(end)]
    rules = [
        _rule("x", "y", profile.threshold, BACKWARD, "dash"),
        *(_rule("y", "x", end, FAINT, "dot") for end in ends),
    ]
    label = f"{plotly.escape_name(profile.name)} [{unit}]"
    return plotly.plot_panels([Panel("likelihood ratio", [curve])], label, 300, shapes=rules)


def _rule(along: str, across: str, at: float, colour: str, dash: str) -> dict[str, Any]:
    """Return a line along the whole axis `along`, at the value `at` of the axis `across`."""
    ends = {f"{along}ref": "paper", f"{along}0": 0, f"{along}1": 1}
    place = {f"{across}0": at, f"{across}1": at}
    return {"type": "line", **ends, **place, "line": {"color": colour, "dash": dash, "width": 1.2}}
