"""The report of a fleet: one HTML file that needs nothing else."""

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

from ..result import Fleet
from ..statistics import frames
from ..statistics.drift import drift
from ..statistics.drift_result import LEAST, Drift
from ..statistics.numbers import Numbers, left_out, names_of, read, record_names
from ..statistics.population import population
from ..statistics.population_result import Population
from ..statistics.verdicts import FAIL, UNTOLD, Verdicts, verdicts
from .plots import DRAWN, histogram, parallel, trend

_ROWS = 30  # of a table at most
_NAMED = 5  # records named beside a reason


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
    """Write one self-contained HTML file on a fleet of fits: for the screen, a phone and paper.

    How the machines are spread and which do not belong to them (`population`), what drifts where
    there are dates (`drift`), what passes where there are limits (`verdicts`), which records have
    no numbers and why, and what their fits warned of.

    **Arguments:**

    - `table`: of `fx.fleet`, or one row a record as in it; `names` of its numbers, all unless
      given.
    - `limits`: as of `verdicts`; those that `fx.fleet` was given unless others are.
    - `made`, `drifts`: what `population` and `drift` returned, where they were asked with options
      of their own.
    - `link`: the column with the path or address of each record's own report, for the outliers.
    - `title`; `notes`: paragraphs below it; `command`: the command line that makes the report
      again; `overwrite`: whether a former report may be replaced.

    **Returns:** where the report is.

    **Raises:** `OSError` with one sentence where it cannot be written, and what `population` and
    `verdicts` raise.

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
    """What `write_fleet_report` writes."""
    table = frames.table_of(table)
    about = table.attrs.get("frictax") or {}
    limits = about.get("limits") if limits is None else limits
    asked = names_of(table, names)
    numbers = read(table, asked)
    found = verdicts(table, limits) if limits else None
    if made is None and len(numbers.machines) > 1:
        made = population(table, asked)
    if drifts is None and _dated(numbers):
        drifts = drift(table, asked)
    links = _links(table, link)
    plots: dict[str, Any] = {}
    sections: list[Section] = []
    if found is not None:
        sections.append(_verdicts(found, numbers, links))
    if made is not None:
        sections.append(_population(made, numbers, found, plots))
        sections.append(_outliers(made, links))
    if drifts is not None:
        sections.append(_drift(drifts, numbers, made, plots))
    if made is not None and (picture := parallel(made, numbers)) is not None:
        plots["parallel"] = picture
        sections.append(_parallel(made))
    if numbers.left_out:
        sections.append(_failed(table, numbers))
    noticed = _noticed(table)
    if noticed is not None:
        sections.append(noticed)
    sections.append(
        reproduction_section(command, f"Made with {versions_in_words(str.capitalize)}.")
    )
    return page(
        title or about.get("title") or "A fleet of fits",
        _lead(table, numbers),
        sections,
        notes=notes,
        plots=plots,
    )


def _lead(table: DataFrame, numbers: Numbers) -> str:
    lost = sum(numbers.left_out.values())
    text = f"{len(table)} records of {len(numbers.machines)} machines"
    if len(numbers.machines) == numbers.n:
        text = f"{len(table)} records"
    dates = numbers.dates[np.isfinite(numbers.dates)]
    if dates.size:
        ends = [str(np.datetime64(int(d), "s"))[:10] for d in (dates.min(), dates.max())]
        text += f", {ends[0]} to {ends[1]}"
    said = f"{lost} of them without numbers" if lost else "all with numbers"
    return f"{text}, {said}. Fitted: {', '.join(numbers.names)}."


def _dated(numbers: Numbers) -> bool:
    """Whether some machine has the dates that drift needs."""
    dated = np.isfinite(numbers.dates)
    if not dated.any():
        return False
    days = np.stack([numbers.machine[dated], np.floor(numbers.dates[dated] / 86400)])
    machines = np.unique(days, axis=1)[0].astype(int)
    return bool(np.bincount(machines).max() >= LEAST)


def _population(
    made: Population, numbers: Numbers, found: Verdicts | None, plots: dict[str, Any]
) -> Section:
    shown = []
    for i, name in enumerate(made.names):
        limits = None
        if found is not None and name in found.numbers.index:
            low, high = found.numbers.loc[name, ["lower", "upper"]].tolist()
            limits = (low, high)
        plots[f"spread-{i}"], caption = histogram(made, numbers, name, limits)
        shown.append((f"spread-{i}", caption))
    head, rows = made.rows()
    looks = ["keep", "n", "keep", "n", "keep", "n", "keep", "n"][: len(head)]
    repeats = "" if made.within is None else " and between records of one machine"
    said = (
        f"Spread between machines{repeats} as standard deviations, their errors taken out; outliers"
        " do not count. Solid: the population; dashed: what estimates with these errors should look"
        f" like; dotted: limits. {made.scale_in_words}"
    )
    blocks: list[tuple[str, Any]] = [("warning", str(n)) for n in made.notices]
    blocks.append(("table", Rows(head, rows, looks, "cards")))
    blocks += [("lead", said), ("plots", shown)]
    if len(made.names) > 1:
        blocks += [
            ("heading", "How the numbers go together from machine to machine"),
            ("correlation", correlation_cells(made.correlation, made.names)),
        ]
    return Section("population", "The population", blocks)


def _outliers(made: Population, links: Mapping[str, Markup]) -> Section:
    flagged, judged = made.outliers, int(np.sum(~np.isnan(made.records["chance"])))
    expected = made.false_alarms * judged
    lead = (
        f"{len(flagged)} of {judged} records: chance alone puts a record of this population so far"
        f" off in less than {made.false_alarms:g} of all cases, of which {expected:.2g} would be"
        " expected in a fleet without any. Distances allow for each record's own errors."
    )
    blocks: list[tuple[str, Any]] = [("lead", lead)]
    if made.within is not None:
        machines = frames.flagged(made.machines, "outlier")
        own = set(machines["machine"])
        if own:
            lines = [
                (row.machine, str(row.count_), f"{row.chance:.1g}")
                for row in frames.lines(machines.rename(columns={"count": "count_"}), _ROWS)
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
        for row in frames.lines(flagged, _ROWS)
    ]
    head = ("record", "machine", "chance", "distance", "farthest off", "by std. deviations")
    table = Rows(head, rows, ["", "", "n", "n", "", "n"], "cards")
    return Section("outliers", "Outliers", [*blocks, ("table", table), *_more(flagged)])


def _more(rows: Any, most: int = _ROWS) -> list[tuple[str, str]]:
    return [("lead", f"And {len(rows) - most} more.")] if len(rows) > most else []


def _drift(
    found: Drift, numbers: Numbers, made: Population | None, plots: dict[str, Any]
) -> Section:
    shown = []
    few = len(set(found.slopes["machine"])) <= DRAWN
    for i, name in enumerate(found.names):
        if not few and name not in set(found.drifting["number"]):
            continue
        plots[f"drift-{i}"], caption = trend(found, numbers, made, name)
        shown.append((f"drift-{i}", caption))
    head, rows = found.rows()
    looks = ["keep", "n", "keep", "n", "keep", "n", "n", "n", "n"]
    blocks: list[tuple[str, Any]] = [("warning", str(n)) for n in found.notices]
    blocks += [("lead", f"{found.sentences[0].rstrip(':.')}. A year has 365.25 days.")]
    blocks += [("table", Rows(head, rows, looks, "cards"))]
    drifting = found.drifting
    if len(drifting):
        lines = []
        for row in frames.lines(drifting, _ROWS):
            one = found.amount(row.number, row.slope), found.amount(row.number, row.standard_error)
            lines.append(
                (row.machine, row.number, f"{one[0]}/yr", f"{one[1]}/yr", f"{row.chance:.1g}")
            )
        heads = ("machine", "number", "drift", "std. error", "chance")
        blocks += [("heading", "Machines that drift")]
        blocks += [("table", Rows(heads, lines, ["", "", "n", "n", "n"], "cards"))]
        blocks += _more(drifting)
    return Section("drift", "Drift", [*blocks, ("plots", shown)])


def _verdicts(found: Verdicts, numbers: Numbers, links: Mapping[str, Markup]) -> Section:
    nothing = np.ones(len(found.table), bool)  # those without numbers are told of below
    nothing[numbers.row] = False
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
    for word, said in ((FAIL, "Records that fail"), (UNTOLD, "Undecided records")):
        some = found.table[(found.table["verdict"] == word) & ~nothing]
        if len(some):
            lines = [
                (links.get(row.record, row.record), row.why) for row in frames.lines(some, _ROWS)
            ]
            blocks += [("heading", said), ("table", Rows(("record", "why"), lines, ["", ""]))]
            blocks += _more(some)
    return Section("verdicts", "Pass, fail, undecided", blocks)


def _parallel(made: Population) -> Section:
    named = ", ".join(f"{k} {name}" for k, name in enumerate(made.names, 1))
    said = (
        "Each line is a record, outliers in colour: how many standard deviations of the population"
        f" its numbers lie off, errors included. Numbers: {named}."
    )
    return Section("parallel", "All numbers of a record", [("plots", [("parallel", said)])])


def _failed(table: DataFrame, numbers: Numbers) -> Section:
    told = np.zeros((len(table), 1), bool)
    told[numbers.row] = True
    why, record = left_out(table, told), record_names(table)
    rows = []
    for reason, count in list(numbers.left_out.items())[:_ROWS]:
        some = [str(r) for r in record[why == reason][:_NAMED]]
        rows.append((str(count), reason, ", ".join(some) + (", ..." if count > _NAMED else "")))
    return Section(
        "failed",
        "Records without numbers",
        [("table", Rows(("count", "reason", "records"), rows, ["n", "", ""], "cards"))],
    )


def _noticed(table: DataFrame) -> Section | None:
    """What the fits warned of, by code."""
    if "notices" not in table.columns:
        return None
    codes = table["notices"].fillna("").astype(str).str.split().explode().dropna()
    counts = codes[codes != ""].value_counts()
    if counts.empty:
        return None
    rows = [
        (code, str(int(n)), f"{figures(100 * n / len(table), 3)} %", _first_sentence(str(code)))
        for code, n in counts.head(_ROWS).items()
    ]
    head = ("notice", "records", "share", "which says")
    table_of_codes = Rows(head, rows, ["keep", "n", "n", ""], "cards")
    return Section("notices", "What the fits warned of", [("table", table_of_codes)])


def _first_sentence(code: str) -> str:
    """What a notice says, without its numbers."""
    import re

    text = TEXTS.get(code, "").partition(". ")[0]
    return re.sub(r"\{[^}]*\}+", "…", text.replace("{{", "").replace("}}", "")).rstrip(".")


def _links(table: DataFrame, column: str) -> dict[str, Markup]:
    """A link to the report of each record that has one: to a file or over http."""
    if column not in table.columns:
        return {}
    out = {}
    for record, target in zip(record_names(table), table[column].fillna(""), strict=True):
        address = _address(str(target))
        if address:
            out[record] = Markup('<a href="{}">{}</a>').format(address, escape(record))
    return out


def _address(target: str) -> str:
    """What a link may lead to; "" where it is neither a file nor a page."""
    scheme = urllib.parse.urlsplit(target).scheme
    if scheme in ("http", "https", "file"):
        return target
    if len(scheme) > 1:  # one letter is a drive
        return ""
    return urllib.parse.quote(target.replace("\\", "/"), safe="/:%" if len(scheme) == 1 else "/%")
