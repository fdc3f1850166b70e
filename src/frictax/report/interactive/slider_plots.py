"""The curves of a fit beside what was measured, what is left below, and sliders that move them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frictax.analysis.friction_curve import friction_at
from frictax.fitting import Estimate, FitResult
from frictax.measurements import Record
from frictax.text import alike, prefixed

from ..style import CYCLE, FAINT, FORWARD
from . import plotly_json as plotly
from .first_order import Channel, Range, channels_of, ranges

STEPS = 500  # of a slider, from the value found to its farther end
_NUMBERS = 30_000  # that all thinned curves together may have in a page
_MOST_RECORDS = 6
_CURVE = 120  # points of a friction curve, each way


@dataclasses.dataclass(frozen=True, eq=False)
class Sliders:
    """What a page needs: `figures` by name with captions, the `rows` of the sliders, what the
    script reads (`data`), and `still`, the names that move nothing.
    """

    figures: dict[str, dict[str, Any]]
    captions: list[tuple[str, str]]
    rows: list[dict[str, Any]]
    data: dict[str, Any]
    still: list[str]


def sliders(found: FitResult, estimates: Sequence[Estimate] | None = None) -> Sliders:
    """Pictures of all that a fit compares, and a slider for each estimate that moves something.

    `estimates` with the errors that the page states, those of the fit unless given.
    """
    channels = channels_of(found)
    reach = ranges(found, channels, found.estimates if estimates is None else estimates)
    held = [(k, r) for k, r in enumerate(reach) if r is not None and r.upper > r.lower]
    labels = list(found.records)[:_MOST_RECORDS]
    drawn = [c for c in channels if c.label in labels]
    figures, captions, moves = {}, [], []
    for i, label in enumerate(labels):
        mine, name = [c for c in drawn if c.label == label], f"fit-{i}"
        bins = int(np.clip(_NUMBERS / (4 * len(drawn) * (4 + len(held))), 20, 250))
        figures[name], moved = _figure(found, label, mine, held, bins)
        moves += [{"plot": name, **move} for move in moved]
        captions.append((name, _caption(found, label, mine)))
    data = {
        "steps": STEPS,
        "sliders": [
            {"value": r.estimate.value / unit, "step": _size(r) / STEPS / unit}
            for _, r in held
            for _, unit in [_shown(r)]
        ],
        "moves": moves,
        "rms": [_squares(c, held) for c in channels],
    }
    still = [e.name for e, r in zip(found.estimates, reach, strict=True) if r is None]
    return Sliders(figures, captions, [_row(r, *_shown(r)) for _, r in held], data, still)


def _size(reach: Range) -> float:
    """The farther end of a slider, from the value found [SI]."""
    return max(-reach.lower, reach.upper)


def _shown(reach: Range) -> tuple[str, float]:
    """The unit that the page's table has, and its size."""
    row = reach.estimate.shown
    return row.unit, row.size


def _row(reach: Range, unit: str, one: float) -> dict[str, Any]:
    """What stands at a slider; numbers in `unit`, of the size `one`."""
    e, size, row = reach.estimate, _size(reach), reach.estimate.shown
    value, error = e.value / one, e.standard_error / one
    low, high = alike([value + end / one for end in (reach.lower, reach.upper)], size / one / 20)
    holds = f"valid {low} to {high} {unit}".rstrip()
    if reach.off > 1:
        holds = (
            f"{low} to {high} {unit}: the linear approximation is not valid here, its error is"
            f" {reach.off:.2g} times the tolerance"
        )
    known = f" ± {row.error}" if np.isfinite(error) else ""
    return {
        "name": e.name,
        "unit": unit,
        "least": round(STEPS * reach.lower / size),
        "most": round(STEPS * reach.upper / size),
        "found": f"{row.value}{known} {unit}".rstrip(),
        "error": error if np.isfinite(error) else 0.0,
        "holds": holds,
        "doubtful": reach.off > 1,
    }


def _scaled(slopes: np.ndarray, held: Sequence[tuple[int, Range]]) -> np.ndarray:
    """Slopes (n, p) by the estimates as changes (n, k) by a slider at its farther end."""
    return np.stack([slopes[:, k] * _size(r) for k, r in held], axis=1) if held else slopes[:, :0]


def _squares(c: Channel, held: Sequence[tuple[int, Range]]) -> dict[str, Any]:
    """The sum of squares of what is left, as a quadratic of all sliders: over every sample."""
    unit, size = prefixed(c.unit, np.array([c.rms(c.left)]))
    moved, left = _scaled(c.slopes, held)[c.counts] / size, c.left[c.counts] / size
    return {
        "says": f"{c.label}: {c.name}",
        "unit": unit,
        "n": int(c.counts.sum()),
        "squares": float(left @ left),
        "cross": (moved.T @ left).tolist(),
        "gram": (moved.T @ moved).tolist(),
    }


def _caption(found: FitResult, label: str, mine: Sequence[Channel]) -> str:
    kind = "the fit" if found.of_sweep else type(found.problem.objective).__name__
    motion = isinstance(found.records[label], Record)
    gives = "simulated" if motion else "fitted"
    against = "" if motion else " Forces against the motion are positive."
    windows = f", {mine[0].windows} windows" if mine[0].windows > 1 else ""
    band = "; ".join(
        f"{c.name} ±{2 * c.noise / size:.3g} {unit}"
        for c in mine
        for unit, size in [prefixed(c.unit, np.array([2 * c.noise]))]
    )
    known = "given" if found.problem.noise_known else "found from the misfit"
    return (
        f"{label}: the residuals of {kind}{windows}. Below each pair: measured −"
        f" {gives}; band: two"
        f" standard deviations of the noise, as {known} ({band}).{against}"
    )


def _figure(
    found: FitResult,
    label: str,
    mine: Sequence[Channel],
    held: Sequence[tuple[int, Range]],
    bins: int,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    record = found.records[label]
    motion = isinstance(record, Record)
    traces, moves, layout, shapes = [], [], {}, []
    domains = plotly.stack([1.0, 0.5] * len(mine))
    over, way = (1.0, 1.0) if motion else (record.velocity_unit.si, record.direction)
    for c, channel in enumerate(mine):
        upper, lower = (plotly.nth("y", 2 * c + j) for j in (1, 2))
        rows = _picked(channel, bins)
        x = np.where(rows < 0, np.nan, channel.x[rows] / over)
        at = lambda values, rows=rows: np.where(rows < 0, np.nan, values[rows])  # noqa: E731
        unit, size = prefixed(channel.unit, channel.measured[channel.counts])
        seen = {"legendgroup": "measured", "showlegend": c == 0, "yaxis": upper}
        measured = plotly.line(x, at(way * channel.measured) / size, FAINT, "measured", width=3.0)
        left = at(way * channel.left)
        left_unit, left_size = prefixed(channel.unit, left[np.isfinite(left)])
        slopes = _scaled(np.reshape(way, (-1, 1)) * channel.slopes, held)[rows]
        fitted = np.where(
            rows < 0, np.nan, np.where(channel.counts, way * channel.fitted, np.nan)[rows]
        )
        below = plotly.line(x, left / left_size, CYCLE[0], "measured − simulated", width=0.9)
        if motion:
            curve = plotly.line(x, fitted / size, FORWARD, "simulated", width=1.4)
            both = [_target(len(traces) + 1, fitted / size, 1.0)]
            both.append(_target(len(traces) + 2, left / left_size, -size / left_size))
            moves.append({"targets": both, "slopes": _short(slopes / size)})
        else:
            v, force, own = _law(found, label, held)
            curve = plotly.line(v / over, force / size, FORWARD, "fitted", width=1.8)
            dots = {"mode": "markers", "marker": {"color": FAINT, "size": 6}}
            measured, below = measured | dots, below | dots
            one, two = (
                _target(len(traces) + 1, force / size, 1.0),
                _target(len(traces) + 2, left / left_size, -1.0),
            )
            moves.append({"targets": [one], "slopes": _short(own / size)})
            moves.append({"targets": [two], "slopes": _short(slopes / left_size)})
        traces += [measured | seen, curve | seen | {"legendgroup": "simulated"}]
        traces.append(below | {"yaxis": lower, "showlegend": False})
        for j, (title, where) in enumerate(((channel.name, unit), ("residual", left_unit))):
            layout[plotly.nth("yaxis", 2 * c + j + 1)] = plotly.axis("") | {
                "domain": domains[2 * c + j],
                "title": {"text": f"{plotly.text(title)} [{where}]", "font": {"size": 12}},
                "nticks": 4 if j else 6,
            }
        shapes.append(plotly.band(lower, 2 * channel.noise / left_size))
    what = "time [s]" if motion else f"velocity [{record.velocity_unit.name}]"
    layout["xaxis"] = plotly.axis(what) | {"anchor": plotly.nth("y", 2 * len(mine))}
    height = 260 * len(mine) + 150
    return plotly.figure(traces, height, shapes=shapes, **layout), moves


def _target(trace: int, base: np.ndarray, factor: float) -> dict[str, Any]:
    return {"trace": trace, "base": plotly.short(base), "factor": factor}


def _short(slopes: np.ndarray) -> list[list[float]]:
    """A list for each slider; 0 where a line is broken."""
    return [[float(f"{v:.4g}") for v in np.nan_to_num(column)] for column in slopes.T]


def _law(
    found: FitResult, label: str, held: Sequence[tuple[int, Range]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Velocities, friction against the motion and its changes by the sliders, of the law that a
    sweep was set against; a gap between the directions.
    """
    sweep = found.records[label]
    contact = getattr(found.problem.prepared[found.number(label)], "contact", None)
    top, least = (float(f(np.abs(sweep.velocity))) for f in (np.max, np.min))
    v = np.linspace(min(least, 1e-3 * top) or 1e-3 * top, 1.03 * top, _CURVE)
    ways = [w for w in (-1, 1) if np.any(sweep.direction == w)]
    v = np.concatenate([w * v for w in ways])
    at = friction_at(found.problem, contact, v, label, list(found.records))
    x = jnp.asarray(found.x)
    force, slopes = np.asarray(at(x)), np.asarray(jax.jacfwd(at)(x))[:, found.shown]
    force, slopes = np.sign(v) * force, np.sign(v)[:, None] * slopes
    changes = _scaled(slopes, held)
    if len(ways) == 1:
        return v, force, changes
    v, force = (np.insert(a, _CURVE, np.nan) for a in (v, force))
    return v, force, np.insert(changes, _CURVE, 0.0, axis=0)


def _picked(c: Channel, bins: int) -> np.ndarray:
    """Rows that look like all of them: the ends of each curve in each of many bins; -1 between two
    windows.
    """
    n, rows = c.x.size, np.arange(c.x.size)
    if n > 6 * bins:
        kept = [[0, n - 1]]
        for r in np.array_split(rows, bins):
            for y in (c.measured, c.fitted, c.left):
                good = r[np.isfinite(y[r])]
                if good.size:
                    kept.append([good[np.argmin(y[good])], good[np.argmax(y[good])]])
        rows = np.unique(np.concatenate(kept))
    window = rows // (n // c.windows)
    return np.insert(rows, np.flatnonzero(np.diff(window)) + 1, -1)
