"""Pictures of a fleet: how numbers are spread, how they go together, and how machines drift."""

from typing import Any

import numpy as np

from frictax.report import plotly_json as plotly
from frictax.report.style import BACKWARD, CYCLE, FAINT, FORWARD
from frictax.text import prefixed

from ..statistics import frames
from ..statistics.drift_result import Drift
from ..statistics.numbers import Numbers
from ..statistics.population_result import Population

_REACH = 6.0  # standard deviations that a histogram shows to either side
_LINES = 500  # of records in parallel coordinates, beside the outliers
DRAWN = 6  # machines in a picture of drift
_POINTS = 120  # of a machine in it


def histogram(
    made: Population, numbers: Numbers, name: str, limits: tuple[float, float] | None = None
) -> tuple[dict[str, Any], str]:
    """How the estimates of a number are spread, with the population's curve; and a caption."""
    k = numbers.names.index(name)
    told = np.isfinite(numbers.values[:, k])
    x, error = numbers.values[told, k], numbers.errors[told, k]
    unit, size = prefixed(made.units[name], x)
    middle, spread = float(np.median(x)), _spread(x)
    low, high = np.clip([x.min(), x.max()], middle - _REACH * spread, middle + _REACH * spread)
    count = int(np.clip(2 * np.sqrt(x.size), 8, 60))
    heights, edges = np.histogram(x, bins=count, range=(low, high) if high > low else None)
    grid = np.linspace(edges[0], edges[-1], 160)
    per_bin = x.size * (edges[1] - edges[0])
    traces = [
        {
            "type": "bar",
            "name": "records",
            "x": plotly.six_figures((edges[1:] + edges[:-1]) / 2 / size),
            "y": heights.tolist(),
            "width": float((edges[1] - edges[0]) / size),
            "marker": {"color": "#8A8F9866", "line": {"width": 0}},
            "showlegend": False,
        },
        plotly.line(
            grid / size, per_bin * made.density(name, grid), FORWARD, "population", width=2.2
        ),
        plotly.line(
            grid / size, per_bin * _with_errors(made, name, grid, error), FAINT, "with errors"
        )
        | {"line": {"color": FAINT, "width": 1.6, "dash": "dash"}},
    ]
    flagged = _outlying(made, numbers, name)[told]
    inside = flagged & (x >= edges[0]) & (x <= edges[-1])
    if inside.any():
        traces.append(
            plotly.trace(x[inside] / size, np.zeros(int(inside.sum())), "markers", "outliers")
            | {
                "marker": {"color": BACKWARD, "size": 7, "symbol": "x"},
                "text": [plotly.escape_name(r) for r in numbers.record[told][inside]],
                "cliponaxis": False,
            }
        )
    rules = [_rule(end / size) for end in limits or () if np.isfinite(end)]
    beyond = int(np.sum((x < edges[0]) | (x > edges[-1])))
    caption = f"{name}" + (f"; {beyond} records lie beyond the picture" if beyond else "")
    figure = plotly.figure(
        traces,
        270,
        xaxis=plotly.axis(
            f"{plotly.escape_name(name)} [{unit}]" if unit else plotly.escape_name(name)
        ),
        yaxis=plotly.axis("records") | {"rangemode": "tozero", "nticks": 5},
        shapes=rules,
        bargap=0,
        margin={"l": 48, "r": 10, "t": 30, "b": 44},
    )
    return figure, caption


def _with_errors(made: Population, name: str, grid: np.ndarray, error: np.ndarray) -> np.ndarray:
    """The density that estimates should have: the population's, smeared by the errors of each."""
    fine = np.linspace(grid[0], grid[-1], 2 * grid.size)
    some = np.quantile(error, np.linspace(0.0125, 0.9875, 40))
    weight = made.density(name, fine)
    total = weight.sum()
    if not total > 0:  # a population without spread
        k = made.names.index(name)
        fine, weight, total = made.physical(name, made.mean[[k]]), np.ones(1), 1.0
    off = (grid[:, None] - fine[None, :])[:, :, None] / some
    step = fine[1] - fine[0] if fine.size > 1 else 0.0
    some = np.maximum(some, step)
    kernel = np.mean(np.exp(-0.5 * off**2) / (np.sqrt(2 * np.pi) * some), axis=2)
    return kernel @ (weight / total)


def parallel(made: Population, numbers: Numbers) -> dict[str, Any] | None:
    """Records as lines over all numbers, in standard deviations of the population, outliers in
    colour.
    """
    whole = np.isfinite(numbers.values).all(axis=1)
    if len(made.names) < 2 or whole.sum() < 2:
        return None
    flagged = _outlying(made, numbers)
    others = np.flatnonzero(whole & ~flagged)
    some = others[np.linspace(0, others.size - 1, min(others.size, _LINES)).astype(int)]
    odd = np.flatnonzero(whole & flagged)[:_LINES]
    variance = np.diag(made.between) + (0.0 if made.within is None else np.diag(made.within))
    columns = [numbers.names.index(name) for name in made.names]
    u = np.stack(
        [
            made.unconstrained(name, numbers.values[:, k])
            for name, k in zip(made.names, columns, strict=True)
        ],
        axis=1,
    )
    z = (u - made.mean) / np.sqrt(np.maximum(variance, 1e-300))
    reach = float(np.clip(np.nanmax(np.abs(z[np.append(some, odd)])), 3, 25))
    x = np.append(np.arange(1, len(columns) + 1), np.nan)

    def lines(rows: np.ndarray, colour: str, name: str, width: float) -> dict[str, Any]:
        y = np.column_stack([np.clip(z[rows], -reach, reach), np.full(rows.size, np.nan)])
        drawn = plotly.line(np.tile(x, rows.size), np.round(y, 2).ravel(), colour, name, width)
        said = [plotly.escape_name(r) for r in numbers.record[rows] for _ in x]
        return drawn | {"text": said, "hoverinfo": "text"}

    traces = [lines(some, "#8A8F9840", "records", 1.0)]
    if odd.size:
        traces.append(lines(odd, BACKWARD, "outliers", 1.3))
    ticks = {"tickvals": x[:-1].tolist(), "range": [0.8, len(columns) + 0.2], "zeroline": False}
    return plotly.figure(
        traces,
        380,
        xaxis=plotly.axis("number") | ticks,
        yaxis=plotly.axis("standard deviations"),
        margin={"l": 52, "r": 12, "t": 40, "b": 44},
    )


def trend(
    found: Drift, numbers: Numbers, made: Population | None, name: str
) -> tuple[dict[str, Any], str]:
    """The machines that drift, or all of a small fleet, over the population; and a caption."""
    rows = frames.of_number(found.slopes, name)
    flagged = frames.flagged(rows, "drifts").head(DRAWN)
    if len(rows) <= DRAWN:
        flagged = rows
    k = numbers.names.index(name)
    own, size_of = found.fleet.loc[name].to_dict(), numbers.values[:, k]
    unit, size = prefixed(numbers.units[name], size_of)
    first, last = (rows[end].agg(of) for end, of in (("first", "min"), ("last", "max")))
    ends = [f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}"]
    traces = []
    level = float(rows["value"].median())
    if made is not None and name in made.names:
        k_of = made.names.index(name)
        variance = made.between[k_of, k_of]
        u = made.mean[k_of] + 1.96 * np.sqrt(variance) * np.array([-1.0, 0.0, 1.0])
        low, level, high = (float(x) for x in made.physical(name, u))
        if name in found.log:
            low, level, high = (float(made.unconstrained(name, x)) for x in (low, level, high))
        traces += _area(ends, [low / size] * 2, [high / size] * 2, FAINT, "95 % of the machines")
    span = (last - first).days / 365.25
    moved = level + own["slope"] * span * np.array([-0.5, 0.5])
    traces.append(
        plotly.line([0, 1], moved / size, FAINT, "mean of the fleet", width=2.0)
        | {"x": ends, "line": {"color": FAINT, "width": 2.0, "dash": "dash"}}
    )
    log = name in found.log
    if log:
        unit, size = "log", 1.0
    for i, row in enumerate(frames.lines(flagged)):
        colour = CYCLE[1:][i % (len(CYCLE) - 1)]
        traces += _machine(found, numbers, k, row, colour, size, log)
    what = f"{plotly.escape_name(name)} [{unit}]" if unit else plotly.escape_name(name)
    figure = plotly.figure(
        traces,
        380,
        xaxis=plotly.axis("") | {"type": "date"},
        yaxis=plotly.axis(what),
        margin={"l": 62, "r": 14, "t": 70, "b": 40},
    )
    count = int(rows["drifts"].sum())
    said = f"{name}: {count} of {len(rows)} machines drift"
    if count > DRAWN:
        said += f", the {DRAWN} surest are drawn"
    if np.isfinite(own["temperature_coefficient"]):
        said += f"; values as at {found.reference_temperature:.3g} °C"
    said += f". Bands: where the lines lie, {100 * found.level:g} %."
    return figure, said


def _machine(
    found: Drift, numbers: Numbers, k: int, row: Any, colour: str, size: float, log: bool
) -> list[dict[str, Any]]:
    """Points of a machine without its temperature, its line and the line's band."""
    from scipy.special import stdtrit

    name = row.number
    mine = np.flatnonzero(np.array(numbers.machines, dtype=object)[numbers.machine] == row.machine)
    mine = mine[np.isfinite(numbers.values[mine, k]) & np.isfinite(numbers.dates[mine])]
    mine = mine[np.argsort(numbers.dates[mine])]
    x, t = numbers.values[mine, k], numbers.dates[mine]
    if log:
        x = np.log(np.maximum(x - float(numbers.lower[name] or 0.0), 1e-300))
    c = row.temperature_coefficient
    c = found.fleet.loc[name, "temperature_coefficient"] if np.isnan(c) else c
    if np.isfinite(c):
        x = x - c * (numbers.temperature[mine] - found.reference_temperature)
    kept = np.unique(np.linspace(0, mine.size - 1, min(mine.size, _POINTS)).astype(int))
    dates = [_day(s) for s in t[kept]]
    label = plotly.escape_name(row.machine)
    points = plotly.trace(np.zeros(kept.size), x[kept] / size, "markers", label) | {
        "x": dates,
        "marker": {"color": colour, "size": 5},
        "legendgroup": label,
        "showlegend": False,
    }
    seconds = np.linspace(t[0], t[-1], 24)
    years = (seconds - row.middle.timestamp()) / (365.25 * 86400)
    line = row.value + row.slope * years
    fit = found.fits[name]
    i = list(frames.of_number(found.slopes, name)["machine"]).index(row.machine)
    C = fit.covariance[i]
    variance = C[0, 0] + 2 * years * C[0, 1] + years**2 * row.standard_error**2
    half = float(stdtrit(max(fit.dof, 1), 0.5 + found.level / 2)) * np.sqrt(variance)
    when = [_day(s) for s in seconds]
    drawn = plotly.line(years, line / size, colour, label, width=2.0) | {
        "x": when,
        "legendgroup": label,
    }
    band = _area(when, (line - half) / size, (line + half) / size, colour, "")
    return [*band, points, drawn]


def _area(x: list[str], low: Any, high: Any, colour: str, name: str) -> list[dict[str, Any]]:
    """A band between two curves."""
    edge = {"x": x, "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    fill = {"fill": "tonexty", "fillcolor": plotly.fade(colour)}
    nothing = np.zeros(len(x))
    return [
        plotly.trace(nothing, low, "lines", "") | edge,
        plotly.trace(nothing, high, "lines", name) | edge | fill | {"showlegend": bool(name)},
    ]


def _day(seconds: float) -> str:
    return str(np.datetime64(int(seconds), "s")).replace("T", " ")[:16]


def _outlying(made: Population, numbers: Numbers, name: str | None = None) -> np.ndarray:
    """Whether each record is an outlier, or one by this number."""
    rows = made.outliers
    if name is not None:
        rows = rows[rows["farthest"] == name]
    return np.isin(numbers.row, rows["row"])


def _spread(x: np.ndarray) -> float:
    by_median = 1.4826 * float(np.median(np.abs(x - np.median(x))))
    return by_median or float(np.std(x)) or max(abs(float(x[0])), 1.0)


def _rule(at: float) -> dict[str, Any]:
    """A limit."""
    place = {"x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1}
    return {"type": "line", **place, "line": {"color": BACKWARD, "width": 1.4, "dash": "dot"}}
