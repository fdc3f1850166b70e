"""The report of a fleet as one self-contained HTML file: `write_fleet_report`."""

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
from frictax.text import figures

from ..statistics.drift import FEWEST_DATES, Drift, drift
from ..statistics.estimates import (
    FleetEstimates,
    estimate_names,
    exclusion_reasons,
    flagged_rows,
    read_estimates,
    record_names,
    table_of_fleet,
    table_rows,
)
from ..statistics.population import Population, population
from ..statistics.verdicts import FAIL, UNDECIDED, Verdicts, verdicts
from ..table import Fleet
from .plots import DRAWN_MACHINES, histogram, parallel, trend

_MOST_ROWS = 30  # most rows of a table


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
    """Write one self-contained HTML file on a fleet of fits, for screens, phones and paper.

    The report contains the population and its outliers (`population`), and the notices of the fits.
    It also contains the drift if there are dates (`drift`), the verdicts if there are limits
    (`verdicts`), and the records without estimates.

    **Arguments:**

    - `table`: of `fx.fleet`, or a table with one row for each record; `names`: of its parameters,
      all by default.
    - `limits`: as for `verdicts`; by default those that were given to `fx.fleet`.
    - `made`, `drifts`: results of `population` and `drift`, if you called them with other options.
    - `link`: the column with the path or address of each record's own report.
    - `title`; `notes`: paragraphs below it; `command`: the command line that writes the report
      again; `overwrite`: whether an existing report may be replaced.

    **Returns:** the path of the report.

    **Raises:** `OSError` with one sentence if the file cannot be written, and the errors of
    `population` and `verdicts`.

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
    """Return the text that `write_fleet_report` writes."""
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
    if made is not None and (picture := parallel(made, fleet)) is not None:
        plots["parallel"] = picture
        named = ", ".join(f"{k} {name}" for k, name in enumerate(made.names, 1))
        said = (
            "Each line is a record, outliers in colour: how many standard deviations of the"
            f" population its numbers lie off, errors included. Numbers: {named}."
        )
        lines = [("plots", [("parallel", said)])]
        sections.append(Section("parallel", "All numbers of a record", lines))
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
    said = f"{lost} of them without numbers" if lost else "all with numbers"
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
    """Return the sections of the population and of its outliers."""
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
        f"Spread between machines{repeats} as standard deviations, their errors taken out; outliers"
        " do not count. Solid: the population; dashed: what estimates with these errors should look"
        f" like; dotted: limits. {population.scale_in_words}"
    )
    blocks: list[tuple[str, Any]] = [("warning", str(n)) for n in population.notices]
    blocks.append(("table", Rows(head, rows, looks, "cards")))
    blocks += [("lead", said), ("plots", shown)]
    if len(population.names) > 1:
        blocks += [
            ("heading", "How the numbers go together from machine to machine"),
            ("correlation", correlation_cells(population.correlation, population.names)),
        ]
    section = Section("population", "The population", blocks)
    flagged, judged = population.outliers, int(np.sum(~np.isnan(population.records["chance"])))
    expected = population.false_alarms * judged
    lead = (
        f"{len(flagged)} of {judged} records: chance alone puts a record of this population so far"
        f" off in less than {population.false_alarms:g} of all cases, of which {expected:.2g} would"
        " be expected in a fleet without any. Distances allow for each record's own errors."
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


def _more(rows: Any, most: int = _MOST_ROWS) -> list[tuple[str, str]]:
    return [("lead", f"And {len(rows) - most} more.")] if len(rows) > most else []


def _drift_section(
    found: Drift, fleet: FleetEstimates, population: Population | None, plots: dict[str, Any]
) -> Section:
    shown = []
    few = len(set(found.slopes["machine"])) <= DRAWN_MACHINES
    for i, name in enumerate(found.names):
        if not few and name not in set(found.drifting["number"]):
            continue
        plots[f"drift-{i}"], caption = trend(found, fleet, population, name)
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
    excluded = np.ones(len(found.table), bool)  # Records without estimates are in a section below.
    excluded[fleet.row] = False
    head, rows = found.rows()
    looks = ["keep", "keep", "n", "n", "n", "n", "n", "n"]
    blocks: list[tuple[str, Any]] = [
        ("lead", f"{found.title}. {found.sentences[0]}"),
        ("table", Rows(head, rows, looks, "cards")),
        (
            "lead",
            "Guard band: half of an interval (median), by which limits are drawn in before a record"
            " passes; both of them over the width of the limits; capability: that width over four"
            " standard errors.",
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
    """Return the records without estimates by reason, and the notices of the fits by code."""
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
        sections.append(Section("failed", "Records without numbers", [("table", reasons)]))
    rows = []
    if "notices" in table.columns:
        codes = table["notices"].fillna("").astype(str).str.split().explode().dropna()
        for code, n in codes[codes != ""].value_counts().head(_MOST_ROWS).items():
            # The first sentence of the notice, with an ellipsis for each value.
            text = TEXTS.get(str(code), "").partition(". ")[0].replace("{{", "").replace("}}", "")
            says = re.sub(r"\{[^}]*\}+", "…", text).rstrip(".")
            rows.append((code, str(int(n)), f"{figures(100 * n / len(table), 3)} %", says))
    if rows:
        head = ("notice", "records", "share", "which says")
        notices = Rows(head, rows, ["keep", "n", "n", ""], "cards")
        sections.append(Section("notices", "What the fits warned of", [("table", notices)]))
    return sections


def _links(table: DataFrame, column: str) -> dict[str, Markup]:
    """Return record -> link to its report, for a file or an address."""
    if column not in table.columns:
        return {}
    out = {}
    for record, target in zip(record_names(table), table[column].fillna(""), strict=True):
        address, scheme = str(target), urllib.parse.urlsplit(str(target)).scheme
        if len(scheme) > 1 and scheme not in ("http", "https", "file"):
            continue  # Such an address is not a file or a web page.
        if len(scheme) <= 1:  # A scheme of one letter is a drive.
            safe = "/:%" if scheme else "/%"
            address = urllib.parse.quote(address.replace("\\", "/"), safe=safe)
        if address:
            out[record] = Markup('<a href="{}">{}</a>').format(address, escape(record))
    return out
