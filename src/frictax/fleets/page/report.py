"""`write_fleet_report`: the report of a fleet as one HTML file, with its sections and figures."""

import re
import urllib.parse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from markupsafe import Markup, escape

from frictax.annotations import Checked, DataFrame
from frictax.arguments import check_names, lists_options
from frictax.notice import TEXTS
from frictax.report import plotly_json as plotly
from frictax.report.json_text import versions_in_words
from frictax.report.page import (
    PageOptions,
    Rows,
    Section,
    correlation_cells,
    page,
    reproduction_section,
    write_page,
)
from frictax.report.style import BACKWARD, CYCLE, FAINT, FORWARD
from frictax.text import figures, prefix_unit

from ..statistics.drift import FEWEST_DATES, YEAR, Drift, drift
from ..statistics.estimates import (
    FleetEstimates,
    estimate_names,
    exclusion_reasons,
    flagged_rows,
    parameter_rows,
    read_estimates,
    record_names,
    table_of_fleet,
    table_rows,
)
from ..statistics.population import Population, population
from ..statistics.robust import MAD_FACTOR
from ..statistics.verdicts import FAIL, UNDECIDED, Verdicts, verdicts
from ..table import Fleet

_MOST_ROWS = 30  # largest number of rows of a table
_DRAWN_MACHINES = 6  # largest number of machines whose lines a figure of the drift shows


class FleetReportOptions(PageOptions, total=False):
    """The options of `write_fleet_report`."""

    names: Iterable[str] | str | None
    limits: Mapping[str, Checked[Any]] | None
    made: Population | None
    drifts: Drift | None
    link: str
    title: str | None
    notes: Iterable[str]


_DEFAULTS: dict[str, Any] = {"names": None, "limits": None, "made": None, "drifts": None}
_DEFAULTS |= {"link": "report", "title": None, "notes": (), "command": None, "overwrite": True}


@lists_options(FleetReportOptions, _DEFAULTS)
def write_fleet_report(
    table: DataFrame | Fleet, path: str | Path, **options: Unpack[FleetReportOptions]
) -> Path:
    """Write a report on a fleet of fits as one self-contained HTML file.

    The report contains the population and its outliers (`population`), the notices of the fits, and
    the records without estimates. If a machine has records of at least three dates, the report also
    contains the drift (`drift`). With limits, the report also contains the verdicts (`verdicts`).

    **Arguments:**

    - `table`: the result of `fx.fleet`, or a table with one row for each record; `names`: names of
      the parameters to report, by default all.
    - `limits`: as for `verdicts`; by default the limits that were given to `fx.fleet`.
    - `made`, `drifts`: results of `population` and `drift`, if you called them with other options.
    - `link`: name of the column with the path or address of a separate report on each record.
    - `title`; `notes`: paragraphs below the title; `command`: the command line that writes the
      report again; `overwrite`: true to replace an existing report.

    **Returns:** the path of the report.

    **Raises:** `OSError` if the file cannot be written, and the errors of `population` and
    `verdicts`.

    >>> import frictax as fx, numpy as np, pandas as pd
    >>> F = 7.0 + 0.5 * np.random.default_rng(0).standard_normal(40)
    >>> fleet = pd.DataFrame({"F": F, "F.standard_error": 0.1})
    >>> fx.write_fleet_report(fleet, "fleet.html", limits={"F": (6.0, 8.0)}).name
    'fleet.html'
    """
    check_names(write_fleet_report, options)

    def text() -> str:
        return fleet_report_text(table, **options)

    return write_page(path, text, overwrite=options.get("overwrite", True))


def fleet_report_text(table: DataFrame | Fleet, **options: Unpack[FleetReportOptions]) -> str:
    """Return the HTML text of the report of `write_fleet_report`."""
    given: dict[str, Any] = {**_DEFAULTS, **options}
    table = table_of_fleet(table)
    about = table.attrs.get("frictax") or {}
    limits = about.get("limits") if given["limits"] is None else given["limits"]
    asked = estimate_names(table, given["names"])
    fleet = read_estimates(table, asked)
    found = verdicts(table, limits) if limits else None
    made, drifts = given["made"], given["drifts"]
    if made is None and len(fleet.machines) > 1:
        made = population(table, asked)
    dated = np.isfinite(fleet.dates)
    days = np.stack([fleet.machine[dated], np.floor(fleet.dates[dated] / 86400)])
    machines = np.unique(days, axis=1)[0].astype(int)
    if drifts is None and np.bincount(machines).max(initial=0) >= FEWEST_DATES:
        drifts = drift(table, asked)
    links = _links(table, given["link"])
    plots: dict[str, Any] = {}
    sections: list[Section] = []
    if found is not None:
        sections.append(_verdict_section(found, fleet, links))
    if made is not None:
        sections += _population_sections(made, fleet, found, links, plots)
    if drifts is not None:
        sections.append(_drift_section(drifts, fleet, made, plots))
    if made is not None and (picture := parallel_coordinates(made, fleet)) is not None:
        plots["parallel"] = picture
        named = ", ".join(f"{k} {name}" for k, name in enumerate(made.names, 1))
        said = (
            "Each line is a record; outliers are coloured. Vertical axis: distance of each"
            " estimate from the population mean, in standard deviations that include the estimation"
            f" errors. Estimates: {named}."
        )
        lines = [("plots", [("parallel", said)])]
        sections.append(Section("parallel", "All estimates of each record", lines))
    sections += _exclusion_and_notice_sections(table, fleet)
    sections.append(
        reproduction_section(given["command"], f"Made with {versions_in_words(str.capitalize)}.")
    )
    lost, count = sum(fleet.left_out.values()), len(fleet.machines)
    lead = f"{len(table)} records" + ("" if count == fleet.n else f" of {count} machines")
    if dated.any():
        dates = fleet.dates[dated]
        ends = [str(np.datetime64(int(d), "s"))[:10] for d in (dates.min(), dates.max())]
        lead += f", {ends[0]} to {ends[1]}"
    said = f"{lost} of them without estimates" if lost else "all with estimates"
    return page(
        given["title"] or about.get("title") or "A fleet of fits",
        f"{lead}, {said}. Fitted: {', '.join(fleet.names)}.",
        sections,
        notes=given["notes"],
        plots=plots,
    )


def _population_sections(
    population: Population,
    fleet: FleetEstimates,
    found: Verdicts | None,
    links: Mapping[str, Markup],
    plots: dict[str, Any],
) -> list[Section]:
    """Return the two report sections on the population and on its outliers."""
    shown = []
    for i, name in enumerate(population.names):
        limits = None
        if found is not None and name in found.numbers.index:
            low, high = found.numbers.loc[name, ["lower", "upper"]].tolist()
            limits = (low, high)
        plots[f"spread-{i}"], caption = histogram(population, fleet, name, limits)
        shown.append((f"spread-{i}", caption))
    head, rows = population.rows()
    looks = ["keep", "n", "keep", "n", "keep", "n", "keep", "n"][: len(head)]
    repeats = "" if population.within is None else " and between records of one machine"
    said = (
        f"Spread between machines{repeats} as standard deviations, without the estimation errors"
        " and the outliers. Solid: the population; dashed: the expected distribution of estimates"
        f" with these errors; dotted: limits. {population.scale_in_words}"
    )
    blocks: list[tuple[str, Any]] = [("warning", str(n)) for n in population.notices]
    blocks.append(("table", Rows(head, rows, looks, "cards")))
    blocks += [("lead", said), ("plots", shown)]
    if len(population.names) > 1:
        blocks += [
            ("heading", "Correlation of the parameters between machines"),
            ("correlation", correlation_cells(population.correlation, population.names)),
        ]
    section = Section("population", "The population", blocks)
    flagged, judged = population.outliers, int(np.sum(~np.isnan(population.records["chance"])))
    expected = population.false_alarms * judged
    lead = (
        f"{len(flagged)} of {judged} records are outliers: the probability of such a distance from"
        f" the population is below {population.false_alarms:g}. A fleet without outliers has"
        f" {expected:.2g} such records on average. Distances allow for the errors of a record."
    )
    blocks = [("lead", lead)]
    if population.within is not None:
        machines = flagged_rows(population.machines, "outlier")
        own = set(machines["machine"])
        if own:
            lines = [
                (row.machine, str(row.count_), f"{row.chance:.1g}")
                for row in table_rows(machines.rename(columns={"count": "count_"}), _MOST_ROWS)
            ]
            head = ("machine", "records", "chance")
            blocks += [
                ("heading", "Machines that lie off as a whole"),
                ("table", Rows(head, lines, ["", "n", "n"])),
                *_more(machines),
                ("heading", "Records of other machines"),
            ]
            flagged = flagged[~flagged["machine"].isin(list(own))]
    if flagged.empty:
        return [section, Section("outliers", "Outliers", blocks)]
    rows = [
        (
            links.get(row.record, row.record),
            row.machine,
            f"{row.chance:.1g}",
            f"{row.distance:.3g}",
            row.farthest,
            f"{row.z:+.1f}".replace("-", "−"),
        )
        for row in table_rows(flagged, _MOST_ROWS)
    ]
    head = ("record", "machine", "chance", "distance", "farthest off", "by std. deviations")
    table = Rows(head, rows, ["", "", "n", "n", "", "n"], "cards")
    blocks += [("table", table), *_more(flagged)]
    return [section, Section("outliers", "Outliers", blocks)]


def _more(rows: Any) -> list[tuple[str, str]]:
    beyond = len(rows) - _MOST_ROWS
    return [("lead", f"And {beyond} more.")] if beyond > 0 else []


def _drift_section(
    found: Drift, fleet: FleetEstimates, population: Population | None, plots: dict[str, Any]
) -> Section:
    shown = []
    few = len(set(found.slopes["machine"])) <= _DRAWN_MACHINES
    for i, name in enumerate(found.names):
        if not few and name not in set(found.drifting["number"]):
            continue
        plots[f"drift-{i}"], caption = drift_lines(found, fleet, population, name)
        shown.append((f"drift-{i}", caption))
    head, rows = found.rows()
    looks = ["keep", "n", "keep", "n", "keep", "n", "n", "n", "n"]
    blocks: list[tuple[str, Any]] = [("warning", str(n)) for n in found.notices]
    blocks += [("lead", f"{found.sentences[0].rstrip(':.')}. A year has 365.25 days.")]
    blocks += [("table", Rows(head, rows, looks, "cards"))]
    drifting = found.drifting
    if len(drifting):
        lines = []
        for row in table_rows(drifting, _MOST_ROWS):
            one = found.amount(row.number, row.slope), found.amount(row.number, row.standard_error)
            lines.append(
                (row.machine, row.number, f"{one[0]}/yr", f"{one[1]}/yr", f"{row.chance:.1g}")
            )
        heads = ("machine", "number", "drift", "std. error", "chance")
        blocks += [("heading", "Machines that drift")]
        blocks += [("table", Rows(heads, lines, ["", "", "n", "n", "n"], "cards"))]
        blocks += _more(drifting)
    return Section("drift", "Drift", [*blocks, ("plots", shown)])


def _verdict_section(
    found: Verdicts, fleet: FleetEstimates, links: Mapping[str, Markup]
) -> Section:
    # Another section lists the records without estimates, so exclude them here.
    excluded = np.ones(len(found.table), bool)
    excluded[fleet.row] = False
    head, rows = found.rows()
    looks = ["keep", "keep", "n", "n", "n", "n", "n", "n"]
    blocks: list[tuple[str, Any]] = [
        ("lead", f"{found.title}. {found.sentences[0]}"),
        ("table", Rows(head, rows, looks, "cards")),
        (
            "lead",
            "Guard band: median half width of the intervals; an estimate must be inside each limit"
            " by this amount to pass. Of the width: both guard bands divided by the distance"
            " between the limits. Capability: this distance divided by four standard errors.",
        ),
    ]
    for word, said in ((FAIL, "Records that fail"), (UNDECIDED, "Undecided records")):
        some = found.table[(found.table["verdict"] == word) & ~excluded]
        if len(some):
            lines = [
                (links.get(row.record, row.record), row.why) for row in table_rows(some, _MOST_ROWS)
            ]
            blocks += [("heading", said), ("table", Rows(("record", "why"), lines, ["", ""]))]
            blocks += _more(some)
    return Section("verdicts", "Pass, fail, undecided", blocks)


def _exclusion_and_notice_sections(table: DataFrame, fleet: FleetEstimates) -> list[Section]:
    """Return the sections on the records without estimates and on the notices of the fits."""
    sections = []
    if fleet.left_out:
        known = np.zeros((len(table), 1), bool)
        known[fleet.row] = True
        why, record = exclusion_reasons(table, known), record_names(table)
        rows = []
        for reason, count in list(fleet.left_out.items())[:_MOST_ROWS]:
            some = [str(r) for r in record[why == reason][:5]]
            rows.append((str(count), reason, ", ".join(some) + (", ..." if count > 5 else "")))
        reasons = Rows(("count", "reason", "records"), rows, ["n", "", ""], "cards")
        sections.append(Section("failed", "Records without estimates", [("table", reasons)]))
    rows = []
    if "notices" in table.columns:
        codes = table["notices"].fillna("").astype(str).str.split().explode().dropna()
        for code, n in codes[codes != ""].value_counts().head(_MOST_ROWS).items():
            # Show the first sentence of the notice, with an ellipsis for each value.
            text = TEXTS.get(str(code), "").partition(". ")[0].replace("{{", "").replace("}}", "")
            says = re.sub(r"\{[^}]*\}+", "…", text).rstrip(".")
            rows.append((code, str(int(n)), f"{figures(100 * n / len(table), 3)} %", says))
    if rows:
        head = ("notice", "records", "share", "which says")
        notices = Rows(head, rows, ["keep", "n", "n", ""], "cards")
        sections.append(Section("notices", "Warnings of the fits", [("table", notices)]))
    return sections


def _links(table: DataFrame, column: str) -> dict[str, Markup]:
    """Return a dict from record name to HTML link of its report. `column`: column of addresses."""
    if column not in table.columns:
        return {}
    out = {}
    for record, target in zip(record_names(table), table[column].fillna(""), strict=True):
        address, scheme = str(target), urllib.parse.urlsplit(str(target)).scheme
        if len(scheme) > 1 and scheme not in ("http", "https", "file"):
            continue  # The address is not a file or web page.
        if len(scheme) <= 1:  # A scheme of one letter is a Windows disk, such as C:.
            safe = "/:%" if scheme else "/%"
            address = urllib.parse.quote(address.replace("\\", "/"), safe=safe)
        if address:
            out[record] = Markup('<a href="{}">{}</a>').format(address, escape(record))
    return out


def histogram(
    population: Population,
    fleet: FleetEstimates,
    name: str,
    limits: tuple[float, float] | None = None,
) -> tuple[dict[str, Any], str]:
    """Return a histogram of parameter `name` with the population density, and its caption."""
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
    # The density of estimates is the population density convolved with the density of their errors.
    fine = np.linspace(grid[0], grid[-1], 2 * grid.size)
    weight = population.density(name, fine)
    total = weight.sum()
    if not total > 0:  # The population does not have a spread.
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
        plotly.line(grid / size, per_bin * (kernel @ (weight / total)), FAINT, "with errors")
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
    caption = f"{name}" + (f"; {beyond} records are outside the figure" if beyond else "")
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


def parallel_coordinates(population: Population, fleet: FleetEstimates) -> dict[str, Any] | None:
    """Return a parallel-coordinates plot, or None for fewer than two parameters or records. Each
    line shows one record: for each parameter, the deviation of the estimate from the population
    mean, in standard deviations of the population. Outliers are orange.
    """
    whole = np.isfinite(fleet.values).all(axis=1)
    if len(population.names) < 2 or whole.sum() < 2:
        return None
    flagged = _outlier_mask(population, fleet)
    others = np.flatnonzero(whole & ~flagged)
    most = 500  # largest number of drawn outliers, and of drawn records that are not outliers
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


def drift_lines(
    found: Drift, fleet: FleetEstimates, population: Population | None, name: str
) -> tuple[dict[str, Any], str]:
    """Return a figure of one parameter over time, and a caption. The figure shows all machines if
    there are at most six, otherwise up to six machines that drift.
    """
    rows = parameter_rows(found.slopes, name)
    flagged = flagged_rows(rows, "drifts").head(_DRAWN_MACHINES)
    if len(rows) <= _DRAWN_MACHINES:
        flagged = rows
    k = fleet.names.index(name)
    own, size_of = found.fleet.loc[name].to_dict(), fleet.values[:, k]
    log = name in found.log
    unit, size = ("log", 1.0) if log else prefix_unit(fleet.units[name], size_of)
    first, last = (rows[end].agg(of) for end, of in (("first", "min"), ("last", "max")))
    ends = [f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}"]
    traces = []
    level = float(rows["value"].median())
    if population is not None and name in population.names:
        k_of = population.names.index(name)
        variance = population.between[k_of, k_of]
        u = population.mean[k_of] + 1.96 * np.sqrt(variance) * np.array([-1.0, 0.0, 1.0])
        low, level, high = (float(x) for x in population.physical(name, u))
        if log:
            bound = float(fleet.lower[name] or 0.0)
            low, level, high = (float(np.log(max(x - bound, 1e-300))) for x in (low, level, high))
        traces += _draw_band(
            ends, [low / size] * 2, [high / size] * 2, FAINT, "95 % of the machines"
        )
    span = (last - first).days / 365.25
    moved = level + own["slope"] * span * np.array([-0.5, 0.5])
    traces.append(
        plotly.line([0, 1], moved / size, FAINT, "mean of the fleet", width=2.0)
        | {"x": ends, "line": {"color": FAINT, "width": 2.0, "dash": "dash"}}
    )
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
    if count > _DRAWN_MACHINES:
        said += f", of which the {_DRAWN_MACHINES} most significant are drawn"
    if np.isfinite(own["temperature_coefficient"]):
        said += f"; values are corrected to {found.reference_temperature:.3g} °C"
    said += f". Bands: {100 * found.level:g} % intervals of the lines."
    return figure, said


def _draw_machine(
    found: Drift, fleet: FleetEstimates, k: int, row: Any, colour: str, size: float, log: bool
) -> list[dict[str, Any]]:
    """Return the curves of one machine: its estimates (corrected for temperature), the fitted line,
    and the confidence band of this line.
    """
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
    """Return the two curves `low` and `high`, with the area between them filled."""
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
    """Return a mask of the outliers. With `name`, include only outliers that deviate most in it."""
    rows = population.outliers
    if name is not None:
        rows = rows[rows["farthest"] == name]
    return np.isin(fleet.row, rows["row"])
