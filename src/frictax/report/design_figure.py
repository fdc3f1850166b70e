"""Draw the figure and write the HTML page of a designed experiment."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from frictax.excitation import Design
from frictax.excitation.design import error_in_words
from frictax.fitting.problem.setup import variable_unit
from frictax.text import figures

from .page import Rows, Section, page, reproduction_section, write_page
from .plotly_json import axis, escape_name, figure, plot_panels, trace
from .style import (
    CYCLE,
    FAINT,
    INK,
    Curve,
    Panel,
    canvas,
    draw_panel,
    legend_above,
    style,
    write_heading,
)


def draw_design(design: Design, *, width: float = 7.0) -> Figure:
    """Draw the excitation, the expected sensor signals and the expected relative standard errors of
    a designed experiment. Also draw the standard errors of the experiments in `design.beside`.

    **Arguments:** `width` of the figure [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot.

    **Example:** at `design`.
    """
    panels = _panels(design)
    count = len(panels)
    with style():
        drawn = canvas(width, 1.6 * count + 2.6)
        axes = drawn.subplots(count + 1, 1, height_ratios=[*[1.0] * count, 1.7])
        for one, panel in zip(axes, panels, strict=False):
            draw_panel(one, panel)
            one.axhline(0.0, color=FAINT, lw=0.6)
        axes[count - 1].set_xlabel("time [s]")
        last, place = axes[-1], np.arange(len(design.names))[::-1]
        contestants = _contestants(design)
        for says, errors, colour in contestants[::-1]:
            last.plot(errors, place, "o", color=colour, ms=6, label=says)
        last.set_xscale("log")
        last.xaxis.set_major_formatter("{x:g}")
        last.set_xlabel(_error_label(contestants))
        last.set_yticks(place, design.names)
        last.grid(axis="y", color=FAINT, lw=0.4)
        legend_above(last, 2)
        write_heading(drawn, f"worst error {100 * design.worst():.2g} %")
    return drawn


def _panels(design: Design) -> list[Panel]:
    """Return panels over time: the excitation, and the expected signal of each sensor."""
    machine, curves = design.problem.machine, [(design.drive, design.unit, design.excitation)]
    for name, x in design.clean().items():
        curves.append((name, variable_unit(machine, name), x))
    return [
        Panel(f"{name} [{unit}]" if unit else name, [Curve(design.t, x, INK, "", 1.3)])
        for name, unit, x in curves
    ]


def _contestants(design: Design) -> list[tuple[str, np.ndarray, str]]:
    """Return name, relative standard errors [%], colour of experiments, the designed one first. An
    error that the table calls unknown is nan.
    """
    out = []
    for k, (says, errors) in enumerate([("designed", design.relative), *design.beside.items()]):
        known = [np.nan if error_in_words(x) == "unknown" else 100 * x for x in errors]
        out.append((says, np.array(known), INK if k == 0 else CYCLE[(k + 2) % len(CYCLE)]))
    return out


def _error_label(contestants: Iterable[tuple[str, np.ndarray, str]]) -> str:
    unknown = any(np.isnan(errors).any() for _, errors, _ in contestants)
    return f"relative error [%]{'; unknown errors are not drawn' if unknown else ''}"


def write_design_report(
    design: Design,
    path: str | Path = "design.html",
    *,
    title: str | None = None,
    notes: Iterable[str] = (),
    command: str | None = None,
    check: Any = None,
    overwrite: bool = True,
) -> Path:
    """Write one self-contained HTML page on a designed experiment. It shows excitation, expected
    sensor signals, expected standard errors (also for `design.beside`), and limits.

    **Arguments:** `title`, `notes`: texts of the page; `check`: the result of `Design.check`;
    `command`: command that reproduces the page; `overwrite`: True to replace an existing report.

    **Returns:** the path of the page.

    **Raises:** `OSError` with one sentence if the page cannot be written.
    """

    def text() -> str:
        return design_text(design, title=title, notes=notes, command=command, check=check)

    return write_page(path, text, overwrite=overwrite)


def design_text(
    design: Design,
    *,
    title: str | None = None,
    notes: Iterable[str] = (),
    command: str | None = None,
    check: Any = None,
) -> str:
    """Return the HTML text of the page that `write_design_report` writes."""
    plots, shown, sensors = dict[str, Any](), [], list(design.clean())
    for i, panel in enumerate(_panels(design)):
        plots[f"curve-{i}"] = plot_panels([panel], "time [s]", 240)
        shown.append((f"curve-{i}", "Excitation" if i == 0 else f"Expected {sensors[i - 1]}"))
    names, contestants = [escape_name(name) for name in design.names], _contestants(design)
    traces = [
        {
            **trace(errors, np.zeros(0), "markers", escape_name(says)),
            "y": names,
            "marker": {"color": colour, "size": 11},
        }
        for says, errors, colour in contestants
    ]
    sides = {"xaxis": axis(_error_label(contestants)) | {"type": "log"}}
    sides["yaxis"] = axis("") | {"autorange": "reversed", "type": "category"}
    plots["errors"] = figure(traces, 150 + 34 * len(names), **sides)
    rate = 1.0 / (design.t[1] - design.t[0])
    others = [f"{100 * design.worst(says):.3g} % by a {says}" for says in design.beside]
    rest = f", instead of {', '.join(others)}" if others else ""
    lead = (
        f"{design.t[-1]:.4g} s at {rate:.4g} Hz, {design.t.size} samples, {design.events} mode"
        " changes. The largest relative error of the wanted parameters is"
        f" {100 * design.worst():.2g} %{rest}."
    )
    head, rows = design.rows()
    accuracy = [
        ("lead", lead),
        *(("warning", sentence) for sentence in design.warnings),
        ("plots", [("errors", "Expected relative errors")]),
        ("table", Rows(head, rows, ["keep", *["n"] * (len(head) - 1)], named=True)),
    ]
    load = [
        (what, figures(amount, 3), figures(limit, 3))
        for what, (amount, limit) in design.asked.items()
    ]
    for what, name in (("shortest slip [samples]", "slip"), ("nearest miss [share]", "miss")):
        x, least = getattr(design, name), figures(getattr(design.problem.margins, name), 3)
        load.append((what, "none" if x > 999 else figures(x, 3), f"≥ {least}"))
    if design.drawn:
        kept = f"{100 * design.kept:.0f} % of {len(design.drawn)}"
        load.append(("machines within all limits", kept, ""))
        of = {"designed": None, **{says.partition(",")[0]: says for says in design.beside}}
        for who, says in of.items():
            most = error_in_words(design.worst_of_most(says))
            load.append((f"worst error in 9 of 10 of them, {who}", most, ""))
    limits = Rows(("", "asked", "limit"), load, ["keep", "n", "n"], named=True)
    sections = [
        Section("errors", "Expected accuracy", accuracy),
        Section("played", "The experiment", [("plots", shown)]),
        Section("limits", "Load on the machine", [("table", limits)]),
    ]
    if check is not None:
        lead = f"{check.draws} records simulated with different noise and fitted: {check.ended}."
        rows = [
            (name, f"{s:.2f}", f"{100 * c:.0f} %")
            for name, s, c in zip(check.names, check.spread, check.covered, strict=True)
        ]
        head = ("parameter", "spread over predicted", "coverage")
        table = Rows(head, rows, ["keep", "n", "n"], named=True)
        sections.append(Section("check", "Check by simulation", [("lead", lead), ("table", table)]))
    if command:
        sections.append(reproduction_section(command, ""))
    title = title or f"An experiment for {design.drive}"
    says = "An excitation that is designed to identify the machine's parameters."
    return page(title, says, sections, notes=notes, plots=plots)
