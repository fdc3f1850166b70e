"""Draw the figure of a simulation."""

import itertools
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from frictax.contacts import AbstractContact, Mode
from frictax.mechanism.dynamics import at_temperature
from frictax.mechanism.forces import AbstractSource
from frictax.mechanism.layout import turns_about
from frictax.text import prefix_unit
from frictax.trajectory import Trajectory

from .modes import MODES, mode_spans
from .style import (
    CYCLE,
    FAINT,
    legend_above,
    literal_text,
    over_time,
    stacked_panels,
    style,
    zero_line,
)


def draw_trajectory(
    run: Trajectory,
    parts: Iterable[str] | str | None = None,
    *,
    rotational: bool | None = None,
    width: float = 7.5,
) -> Figure:
    """Draw positions, velocities and friction forces over one time axis, and below them a strip
    with the modes of each contact.

    The panel of forces shows friction, the breakaway force +-f0_max (dashed) and the drives (thin).
    The panel of positions also shows the reference of a controller (dashed). Thin vertical lines
    mark events. The coloured bands of the strip begin and end at the times of the events.

    **Arguments:**

    - `parts`: names of the parts to draw; by default all bodies, contacts and drives.
    - `rotational`: True to label all positions as angles, with the units rad and N.m; False for the
      units m and N. By default, turning parts and sliding parts have separate panels.
    - `width` of the figure [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("run.png")`.

    **Raises:** `KeyError` for a part that the mechanism does not have; `ValueError` for a batch of
    runs.

    >>> import frictax as fx, jax.numpy as jnp
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0, v=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0)),
    ... )
    >>> figure = draw_trajectory(fx.simulate(block, ts=jnp.linspace(0.0, 1.0, 5)))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['position [m]', 'velocity [m/s]', 'force [N]', '']
    """
    if np.ndim(run.ts) != 1 or np.ndim(run.ys) != 2:
        raise ValueError(
            f"`draw_trajectory` draws one run, got a batch of shape {np.shape(run.ts)[:-1]}. Take"
            " one: jax.tree.map(lambda x: x[0], runs)."
        )
    mechanism = run.system.mechanism
    drawn, moving = _variables(run, parts)
    turns = {
        name: bool(turns_about(mechanism, name) if rotational is None else rotational)
        for name in drawn
    }
    forces = {name: v for name, v in drawn.items() if hasattr(v, "f")}
    references = {name: v.s_ref for name, v in drawn.items() if hasattr(v, "s_ref")}
    strips = [name for name in drawn if isinstance(mechanism[name], AbstractContact)]
    motions, efforts = _by_kind(moving, turns), _by_kind(forces, turns)
    commanded = dict(_by_kind(references, turns))
    heights = [1.45, 1.45] * len(motions) + [1.9] * len(efforts)
    heights += [0.1 + 0.22 * len(strips)] * bool(strips)
    if not heights:
        raise ValueError(
            f"`draw_trajectory` has nothing to draw of {', '.join(drawn)}. Name a body, a contact"
            " or a force."
        )
    with style():
        figure, panels = stacked_panels(width, sum(heights) + 0.8, len(heights), heights)
        over = panels[: 2 * len(motions) + len(efforts)]  # the panels above the strip of modes
        free = iter(over)
        for turning, group in motions:
            length, named = "rad" if turning else "m", len(motions) > 1
            _draw_motion(next(free), run, group, commanded.get(turning, {}), "s", length, named)
            _draw_motion(next(free), run, group, {}, "v", f"{length}/s", False)
        for turning, group in efforts:
            _draw_forces(next(free), run, group, turning)
        times = np.asarray(run.events.time)[: int(run.events.count)]
        # The lines of many events are faint, so that the curves stay visible.
        faint = float(np.clip(25.0 / max(times.size, 1), 0.15, 0.8))
        for axes in over:
            looks: dict[str, Any] = {"color": FAINT, "lw": 0.5, "alpha": faint, "zorder": 0.4}
            axes.vlines(times, 0, 1, transform=axes.get_xaxis_transform(), label="_events", **looks)
        if strips:
            # The legend below the figure lists the free mode only if it occurs.
            below, listed = panels[-1], set(MODES) - {Mode.FREE}
            for row, name in enumerate(strips):
                for mode, begin, end in mode_spans(run, name):
                    listed.add(mode)
                    _, colour, hatch = MODES[mode]
                    fill: dict[str, Any] = {"facecolor": colour, "edgecolor": FAINT, "lw": 0.0}
                    span = [(begin, end - begin)]
                    below.broken_barh(span, (row - 0.42, 0.84), hatch=hatch, **fill)
            below.set_ylim(len(strips) - 0.5, -0.5)
            below.set_yticks(range(len(strips)), [literal_text(name) for name in strips])
            below.tick_params(axis="y", length=0)
            below.spines["left"].set_visible(False)
            patches = [
                Patch(facecolor=colour, edgecolor=FAINT, lw=0.6, hatch=hatch, label=text)
                for mode, (text, colour, hatch) in MODES.items()
                if mode in listed
            ]
            legend: dict[str, Any] = {"loc": "outside lower center", "ncols": 4}
            figure.legend(handles=patches, handlelength=1.4, columnspacing=1.6, **legend)
        over_time(figure, panels, np.asarray(run.ts))
    return figure


def _variables(
    run: Trajectory, parts: Iterable[str] | str | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two dicts name -> variables: for all parts to draw, and for parts in motion panels.

    Variables of a rotating part get the names of a sliding part, such as s for phi.
    """
    mechanism, layout = run.system.mechanism, run.system.layout
    bodies = {run.names[i] for i in layout.bodies}
    shown = bodies | {run.names[i] for i, _, _ in layout.forces}
    asked = [parts] if isinstance(parts, str) else list(parts or ())
    if parts is None:
        asked = [n for n in run.names if n in shown or isinstance(mechanism[n], AbstractContact)]
    sliding = dict.fromkeys(("phi", "phi_rel", "phi_a"), "s")
    sliding |= dict.fromkeys(("w", "w_rel", "w_a"), "v")
    sliding |= {"tau": "f", "tauLoss": "f", "tau0_max": "f0_max"}
    drawn, moving = dict[str, Any](), dict[str, Any]()
    for name in asked:
        own = vars(run[name])
        drawn[name] = SimpleNamespace(**{sliding.get(n) or n: value for n, value in own.items()})
        if hasattr(drawn[name], "v") and (parts is not None or name in bodies):
            moving[name] = drawn[name]
    return drawn, moving


def _by_kind(parts: dict[str, Any], turns: dict[str, bool]) -> list[tuple[bool, dict[str, Any]]]:
    """Return the sliding parts with False, and the turning parts with True, if there are any."""
    kinds = [(kind, {n: v for n, v in parts.items() if turns[n] == kind}) for kind in (False, True)]
    return [(kind, group) for kind, group in kinds if group]


def _draw_motion(
    axes: Axes,
    run: Trajectory,
    moving: dict[str, Any],
    references: dict[str, Any],
    variable: str,
    unit: str,
    named: bool,
) -> None:
    """Draw a position ("s") or velocity ("v"). `named`: whether a single curve is in a legend."""
    t = np.asarray(run.ts)
    values = {name: np.asarray(getattr(v, variable)) for name, v in moving.items()}
    unit, size = prefix_unit(unit, *values.values(), *references.values())
    zero_line(axes)
    for (name, y), colour in zip(values.items(), itertools.cycle(CYCLE), strict=False):
        axes.plot(t, y / size, color=colour, lw=1.5, label=literal_text(name))
        element = run.system.mechanism[name]
        has_stops = variable == "s" and isinstance(element, AbstractContact)
        # Do not draw a hard stop far from the motion, because the curve then becomes too flat.
        for stop in map(float, (element.stops() if has_stops else None) or ()):
            reach = np.nanmax(y) - np.nanmin(y)
            if np.nanmin(y) - 0.5 * reach <= stop <= np.nanmax(y) + 0.5 * reach:
                axes.axhline(stop / size, color=colour, lw=0.9, ls=(0, (1, 1.5)))
    for name, s_ref in references.items():
        looks: dict[str, Any] = {"color": FAINT, "lw": 1.0, "ls": "--"}
        axes.plot(t, np.asarray(s_ref) / size, label=literal_text(f"{name}.s_ref"), **looks)
    axes.set_ylabel(f"{'position' if variable == 's' else 'velocity'} [{unit}]")
    if variable == "s" and (named or len(values) + len(references) > 1):
        legend_above(axes, 6, columnspacing=1.2)


def _draw_forces(axes: Axes, run: Trajectory, forces: dict[str, Any], rotational: bool) -> None:
    t = np.asarray(run.ts)
    limits: dict[str, list[np.ndarray]] = {}
    layout, heated = run.system.layout, dict[str, str]()  # contact -> its thermal node
    for node in layout.nodes:
        own = [*(layout.contacts[c] for c in node.contacts)]
        own += [layout.bristles[b] for b in node.bristles]
        heated |= {run.names[contact.part]: run.names[node.part] for contact in own}
    for name, v in forces.items():
        for way in (1, -1) if hasattr(v, "f0_max") else ():

            def breakaway(
                fn: Any, T: Any, way: int = way, contact: Any = run.system.mechanism[name]
            ) -> Any:
                contact = contact if T is None else at_temperature(contact, T)
                return contact.holds(way, contact.scale(fn))

            T = run[heated[name]].T if name in heated else None
            constant = v.fn is None and T is None
            force = np.asarray((breakaway if constant else jax.vmap(breakaway))(v.fn, T))
            # Skip the limits of a free contact, and the infinite backward limit of a freewheel.
            drawn = ~np.asarray(v.free) & np.isfinite(force)
            limits.setdefault(name, []).append(np.where(drawn, way * force, np.nan))
    unit, word, label = ("N.m", "torque", "±tau0_max") if rotational else ("N", "force", "±f0_max")
    unit, size = prefix_unit(
        unit,
        *(v.f for v in forces.values()),
        *(y for pair in limits.values() for y in pair),
    )
    zero_line(axes)
    colours, dashes = itertools.cycle(CYCLE), itertools.cycle(("-", "--", ":", "-."))
    for name, v in forces.items():
        f = np.asarray(v.f) / size
        if isinstance(run.system.mechanism[name], AbstractSource):
            axes.plot(t, f, color=FAINT, lw=1.0, ls=next(dashes), label=literal_text(name))
            continue
        colour = next(colours)
        axes.plot(t, f, color=colour, lw=1.6, label=literal_text(name))
        for limit in limits.get(name, ()):
            axes.plot(t, limit / size, color=colour, lw=0.9, ls=(0, (4, 3)), label=label)
    axes.set_ylabel(f"{word} [{unit}]")
    legend_above(axes, 6, columnspacing=1.2)
