"""Figures of the fleet report: histograms, parallel coordinates, and drift over time."""

from typing import Any

import numpy as np

from frictax.report import plotly_json as plotly
from frictax.report.style import BACKWARD, CYCLE, FAINT, FORWARD
from frictax.text import prefix_unit

from ..statistics.drift import YEAR, Drift
from ..statistics.estimates import FleetEstimates, flagged_rows, parameter_rows, table_rows
from ..statistics.population import Population
from ..statistics.robust import MAD_FACTOR

DRAWN_MACHINES = 6  # number of machines in a figure of drift


def histogram(
    population: Population,
    fleet: FleetEstimates,
    name: str,
    limits: tuple[float, float] | None = None,
) -> tuple[dict[str, Any], str]:
    """Return a histogram of the estimates with the population's density, and a caption."""
    k = fleet.names.index(name)
    known = np.isfinite(fleet.values[:, k])
    x, error = fleet.values[known, k], fleet.errors[known, k]
    unit, size = prefix_unit(population.units[name], x)
    middle = float(np.median(x))
    spread = MAD_FACTOR * float(np.median(np.abs(x - middle)))
    spread = spread or float(np.std(x)) or max(abs(float(x[0])), 1.0)
    low, high = np.clip([x.min(), x.max()], middle - 6 * spread, middle + 6 * spread)
    count = int(np.clip(2 * np.sqrt(x.size), 8, 60))
    heights, edges = np.histogram(x, bins=count, range=(low, high) if high > low else None)
    grid = np.linspace(edges[0], edges[-1], 160)
    per_bin = x.size * (edges[1] - edges[0])
    # The expected density of the estimates is the population's, convolved with the errors.
    fine = np.linspace(grid[0], grid[-1], 2 * grid.size)
    weight = population.density(name, fine)
    total = weight.sum()
    if not total > 0:  # The population has no spread.
        mean = population.mean[[population.names.index(name)]]
        fine, weight, total = population.physical(name, mean), np.ones(1), 1.0
    some = np.quantile(error, np.linspace(0.0125, 0.9875, 40))
    off = (grid[:, None] - fine[None, :])[:, :, None] / some
    some = np.maximum(some, fine[1] - fine[0] if fine.size > 1 else 0.0)
    kernel = np.mean(np.exp(-0.5 * off**2) / (np.sqrt(2 * np.pi) * some), axis=2)
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
            grid / size, per_bin * population.density(name, grid), FORWARD, "population", width=2.2
        ),
        plotly.line(
            grid / size,
            per_bin * (kernel @ (weight / total)),
            FAINT,
            "with errors",
        )
        | {"line": {"color": FAINT, "width": 1.6, "dash": "dash"}},
    ]
    flagged = _outlier_mask(population, fleet, name)[known]
    inside = flagged & (x >= edges[0]) & (x <= edges[-1])
    if inside.any():
        traces.append(
            plotly.trace(x[inside] / size, np.zeros(int(inside.sum())), "markers", "outliers")
            | {
                "marker": {"color": BACKWARD, "size": 7, "symbol": "x"},
                "text": [plotly.escape_name(r) for r in fleet.record[known][inside]],
                "cliponaxis": False,
            }
        )
    limit_lines = []
    for at in (end / size for end in limits or () if np.isfinite(end)):
        place = {"x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1}
        looks = {"line": {"color": BACKWARD, "width": 1.4, "dash": "dot"}}
        limit_lines.append({"type": "line", **place, **looks})
    beyond = int(np.sum((x < edges[0]) | (x > edges[-1])))
    caption = f"{name}" + (f"; {beyond} records lie beyond the picture" if beyond else "")
    figure = plotly.figure(
        traces,
        270,
        xaxis=plotly.axis(
            f"{plotly.escape_name(name)} [{unit}]" if unit else plotly.escape_name(name)
        ),
        yaxis=plotly.axis("records") | {"rangemode": "tozero", "nticks": 5},
        shapes=limit_lines,
        bargap=0,
        margin={"l": 48, "r": 10, "t": 30, "b": 44},
    )
    return figure, caption


def parallel(population: Population, fleet: FleetEstimates) -> dict[str, Any] | None:
    """Return parallel coordinates: a line for each record over all parameters, in standard
    deviations of the population, with outliers in colour; None if a line has one point only.
    """
    whole = np.isfinite(fleet.values).all(axis=1)
    if len(population.names) < 2 or whole.sum() < 2:
        return None
    flagged = _outlier_mask(population, fleet)
    others = np.flatnonzero(whole & ~flagged)
    most = 500  # lines of outliers, and of other records
    some = others[np.linspace(0, others.size - 1, min(others.size, most)).astype(int)]
    odd = np.flatnonzero(whole & flagged)[:most]
    variance = np.diag(population.between) + (
        0.0 if population.within is None else np.diag(population.within)
    )
    columns = [fleet.names.index(name) for name in population.names]
    u = np.stack(
        [
            population.unconstrained(name, fleet.values[:, k])
            for name, k in zip(population.names, columns, strict=True)
        ],
        axis=1,
    )
    z = (u - population.mean) / np.sqrt(np.maximum(variance, 1e-300))
    reach = float(np.clip(np.nanmax(np.abs(z[np.append(some, odd)])), 3, 25))
    x = np.append(np.arange(1, len(columns) + 1), np.nan)

    def lines(rows: np.ndarray, colour: str, name: str, width: float) -> dict[str, Any]:
        y = np.column_stack([np.clip(z[rows], -reach, reach), np.full(rows.size, np.nan)])
        drawn = plotly.line(np.tile(x, rows.size), np.round(y, 2).ravel(), colour, name, width)
        said = [plotly.escape_name(r) for r in fleet.record[rows] for _ in x]
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
    found: Drift, fleet: FleetEstimates, population: Population | None, name: str
) -> tuple[dict[str, Any], str]:
    """Return a figure of the machines that drift, or of all of a small fleet, and a caption."""
    rows = parameter_rows(found.slopes, name)
    flagged = flagged_rows(rows, "drifts").head(DRAWN_MACHINES)
    if len(rows) <= DRAWN_MACHINES:
        flagged = rows
    k = fleet.names.index(name)
    own, size_of = found.fleet.loc[name].to_dict(), fleet.values[:, k]
    unit, size = prefix_unit(fleet.units[name], size_of)
    first, last = (rows[end].agg(of) for end, of in (("first", "min"), ("last", "max")))
    ends = [f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}"]
    traces = []
    level = float(rows["value"].median())
    if population is not None and name in population.names:
        k_of = population.names.index(name)
        variance = population.between[k_of, k_of]
        u = population.mean[k_of] + 1.96 * np.sqrt(variance) * np.array([-1.0, 0.0, 1.0])
        low, level, high = (float(x) for x in population.physical(name, u))
        if name in found.log:
            low, level, high = (
                float(population.unconstrained(name, x)) for x in (low, level, high)
            )
        traces += _draw_band(
            ends, [low / size] * 2, [high / size] * 2, FAINT, "95 % of the machines"
        )
    span = (last - first).days / 365.25
    moved = level + own["slope"] * span * np.array([-0.5, 0.5])
    traces.append(
        plotly.line([0, 1], moved / size, FAINT, "mean of the fleet", width=2.0)
        | {"x": ends, "line": {"color": FAINT, "width": 2.0, "dash": "dash"}}
    )
    log = name in found.log
    if log:
        unit, size = "log", 1.0
    for i, row in enumerate(table_rows(flagged)):
        colour = CYCLE[1:][i % (len(CYCLE) - 1)]
        traces += _draw_machine(found, fleet, k, row, colour, size, log)
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
    if count > DRAWN_MACHINES:
        said += f", the {DRAWN_MACHINES} surest are drawn"
    if np.isfinite(own["temperature_coefficient"]):
        said += f"; values as at {found.reference_temperature:.3g} °C"
    said += f". Bands: where the lines lie, {100 * found.level:g} %."
    return figure, said


def _draw_machine(
    found: Drift, fleet: FleetEstimates, k: int, row: Any, colour: str, size: float, log: bool
) -> list[dict[str, Any]]:
    """Draw a machine's records corrected for temperature, its line, and the line's band."""
    from scipy.special import stdtrit

    name = row.number
    mine = np.flatnonzero(np.array(fleet.machines, dtype=object)[fleet.machine] == row.machine)
    mine = mine[np.isfinite(fleet.values[mine, k]) & np.isfinite(fleet.dates[mine])]
    mine = mine[np.argsort(fleet.dates[mine])]
    x, t = fleet.values[mine, k], fleet.dates[mine]
    if log:
        x = np.log(np.maximum(x - float(fleet.lower[name] or 0.0), 1e-300))
    c = row.temperature_coefficient
    c = found.fleet.loc[name, "temperature_coefficient"] if np.isnan(c) else c
    if np.isfinite(c):
        x = x - c * (fleet.temperature[mine] - found.reference_temperature)
    kept = np.unique(np.linspace(0, mine.size - 1, min(mine.size, 120)).astype(int))
    dates = [_day(s) for s in t[kept]]
    label = plotly.escape_name(row.machine)
    points = plotly.trace(np.zeros(kept.size), x[kept] / size, "markers", label) | {
        "x": dates,
        "marker": {"color": colour, "size": 5},
        "legendgroup": label,
        "showlegend": False,
    }
    seconds = np.linspace(t[0], t[-1], 24)
    years = (seconds - row.middle.timestamp()) / YEAR
    line = row.value + row.slope * years
    fit = found.fits[name]
    i = list(parameter_rows(found.slopes, name)["machine"]).index(row.machine)
    C = fit.covariance[i]
    variance = C[0, 0] + 2 * years * C[0, 1] + years**2 * row.standard_error**2
    half = float(stdtrit(max(fit.dof, 1), 0.5 + found.level / 2)) * np.sqrt(variance)
    when = [_day(s) for s in seconds]
    drawn = plotly.line(years, line / size, colour, label, width=2.0) | {
        "x": when,
        "legendgroup": label,
    }
    band = _draw_band(when, (line - half) / size, (line + half) / size, colour, "")
    return [*band, points, drawn]


def _draw_band(x: list[str], low: Any, high: Any, colour: str, name: str) -> list[dict[str, Any]]:
    """Draw a band between two curves."""
    edge = {"x": x, "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    fill = {"fill": "tonexty", "fillcolor": plotly.fade(colour)}
    nothing = np.zeros(len(x))
    return [
        plotly.trace(nothing, low, "lines", "") | edge,
        plotly.trace(nothing, high, "lines", name) | edge | fill | {"showlegend": bool(name)},
    ]


def _day(seconds: float) -> str:
    return str(np.datetime64(int(seconds), "s")).replace("T", " ")[:16]


def _outlier_mask(
    population: Population, fleet: FleetEstimates, name: str | None = None
) -> np.ndarray:
    """Return whether each record is an outlier, or an outlier in this parameter."""
    rows = population.outliers
    if name is not None:
        rows = rows[rows["farthest"] == name]
    return np.isin(fleet.row, rows["row"])
