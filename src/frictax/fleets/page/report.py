"""The report of a fleet as one self-contained HTML file: `write_fleet_report`."""

import urllib.parse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from frictax.annotations import Checked, DataFrame
from frictax.notice import TEXTS
from frictax.report.json_text import versions_in_words
from frictax.report.page import (
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


def write_fleet_report(
    table: DataFrame | Fleet,
    path: str | Path,
    *,
    names: Iterable[str] | str | None = None,
    limits: Mapping[str, Checked[Any]] | None = None,
    made: Population | None = None,
    drifts: Drift | None = None,
    link: str = "report",
    title: str | None = None,
    notes: Iterable[str] = (),
    command: str | None = None,
    overwrite: bool = True,
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

    def text() -> str:
        return fleet_report_text(
            table,
            names=names,
            limits=limits,
            made=made,
            drifts=drifts,
            link=link,
            title=title,
            notes=notes,
            command=command,
        )

    return write_page(path, text, overwrite=overwrite)


def fleet_report_text(
    table: DataFrame | Fleet,
    *,
    names: Iterable[str] | str | None = None,
    limits: Mapping[str, Checked[Any]] | None = None,
    made: Population | None = None,
    drifts: Drift | None = None,
    link: str = "report",
    title: str | None = None,
    notes: Iterable[str] = (),
    command: str | None = None,
) -> str:
    """Return the text that `write_fleet_report` writes."""
    table = table_of_fleet(table)
    about = table.attrs.get("frictax") or {}
    limits = about.get("limits") if limits is None else limits
    asked = estimate_names(table, names)
    fleet = read_estimates(table, asked)
    found = verdicts(table, limits) if limits else None
    if made is None and len(fleet.machines) > 1:
        made = population(table, asked)
    if drifts is None and _has_enough_dates(fleet):
        drifts = drift(table, asked)
    links = _links(table, link)
    plots: dict[str, Any] = {}
    sections: list[Section] = []
    if found is not None:
        sections.append(_verdict_section(found, fleet, links))
    if made is not None:
        sections.append(_population_section(made, fleet, found, plots))
        sections.append(_outlier_section(made, links))
    if drifts is not None:
        sections.append(_drift_section(drifts, fleet, made, plots))
    if made is not None and (picture := parallel(made, fleet)) is not None:
        plots["parallel"] = picture
        sections.append(_parallel_section(made))
    if fleet.left_out:
        sections.append(_exclusion_section(table, fleet))
    notice_section = _notice_section(table)
    if notice_section is not None:
        sections.append(notice_section)
    sections.append(
        reproduction_section(command, f"Made with {versions_in_words(str.capitalize)}.")
    )
    return page(
        title or about.get("title") or "A fleet of fits",
        _lead(table, fleet),
        sections,
        notes=notes,
        plots=plots,
    )


def _lead(table: DataFrame, fleet: FleetEstimates) -> str:
    lost = sum(fleet.left_out.values())
    text = f"{len(table)} records of {len(fleet.machines)} machines"
    if len(fleet.machines) == fleet.n:
        text = f"{len(table)} records"
    dates = fleet.dates[np.isfinite(fleet.dates)]
    if dates.size:
        ends = [str(np.datetime64(int(d), "s"))[:10] for d in (dates.min(), dates.max())]
        text += f", {ends[0]} to {ends[1]}"
    said = f"{lost} of them without numbers" if lost else "all with numbers"
    return f"{text}, {said}. Fitted: {', '.join(fleet.names)}."


def _has_enough_dates(fleet: FleetEstimates) -> bool:
    """Return whether a machine has enough dates for `drift`."""
    dated = np.isfinite(fleet.dates)
    if not dated.any():
        return False
    days = np.stack([fleet.machine[dated], np.floor(fleet.dates[dated] / 86400)])
    machines = np.unique(days, axis=1)[0].astype(int)
    return bool(np.bincount(machines).max() >= FEWEST_DATES)


def _population_section(
    population: Population, fleet: FleetEstimates, found: Verdicts | None, plots: dict[str, Any]
) -> Section:
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
    return Section("population", "The population", blocks)


def _outlier_section(population: Population, links: Mapping[str, Markup]) -> Section:
    flagged, judged = population.outliers, int(np.sum(~np.isnan(population.records["chance"])))
    expected = population.false_alarms * judged
    lead = (
        f"{len(flagged)} of {judged} records are outliers: by chance, less than"
        f" {population.false_alarms:g} of all records are so far from the population. A fleet"
        f" without outliers has {expected:.2g} such records on average. Distances allow for each"
        " record's own errors."
    )
    blocks: list[tuple[str, Any]] = [("lead", lead)]
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
        return Section("outliers", "Outliers", blocks)
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
    return Section("outliers", "Outliers", [*blocks, ("table", table), *_more(flagged)])


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


def _parallel_section(population: Population) -> Section:
    named = ", ".join(f"{k} {name}" for k, name in enumerate(population.names, 1))
    said = (
        "Each line is a record, outliers in colour: how many standard deviations of the population"
        f" its numbers lie off, errors included. Numbers: {named}."
    )
    return Section("parallel", "All numbers of a record", [("plots", [("parallel", said)])])


def _exclusion_section(table: DataFrame, fleet: FleetEstimates) -> Section:
    known = np.zeros((len(table), 1), bool)
    known[fleet.row] = True
    why, record = exclusion_reasons(table, known), record_names(table)
    rows = []
    for reason, count in list(fleet.left_out.items())[:_MOST_ROWS]:
        some = [str(r) for r in record[why == reason][:5]]
        rows.append((str(count), reason, ", ".join(some) + (", ..." if count > 5 else "")))
    return Section(
        "failed",
        "Records without numbers",
        [("table", Rows(("count", "reason", "records"), rows, ["n", "", ""], "cards"))],
    )


def _notice_section(table: DataFrame) -> Section | None:
    """Count the notices of the fits by code."""
    if "notices" not in table.columns:
        return None
    codes = table["notices"].fillna("").astype(str).str.split().explode().dropna()
    counts = codes[codes != ""].value_counts()
    if counts.empty:
        return None
    rows = [
        (code, str(int(n)), f"{figures(100 * n / len(table), 3)} %", _first_sentence(str(code)))
        for code, n in counts.head(_MOST_ROWS).items()
    ]
    head = ("notice", "records", "share", "which says")
    table_of_codes = Rows(head, rows, ["keep", "n", "n", ""], "cards")
    return Section("notices", "What the fits warned of", [("table", table_of_codes)])


def _first_sentence(code: str) -> str:
    """Return the first sentence of a notice, without its fleet."""
    import re

    text = TEXTS.get(code, "").partition(". ")[0]
    return re.sub(r"\{[^}]*\}+", "…", text.replace("{{", "").replace("}}", "")).rstrip(".")


def _links(table: DataFrame, column: str) -> dict[str, Markup]:
    """Return record -> link to its report, for a file or an address."""
    if column not in table.columns:
        return {}
    out = {}
    for record, target in zip(record_names(table), table[column].fillna(""), strict=True):
        address = _address(str(target))
        if address:
            out[record] = Markup('<a href="{}">{}</a>').format(address, escape(record))
    return out


def _address(target: str) -> str:
    """Return the address of a link, or "" if it is not a file or a web page."""
    scheme = urllib.parse.urlsplit(target).scheme
    if scheme in ("http", "https", "file"):
        return target
    if len(scheme) > 1:  # A scheme of one letter is a drive.
        return ""
    return urllib.parse.quote(target.replace("\\", "/"), safe="/:%" if len(scheme) == 1 else "/%")
