"""Write the report and draw the figure of a fit, and the page on a machine before its fit."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from frictax.analysis import (
    Comparison,
    FreeRunScore,
    Profile,
    StructureComparison,
    Uncertainty,
    Validation,
)
from frictax.analysis.examination import examine_fit
from frictax.analysis.replay.free_run import Motion
from frictax.analysis.selection.structure import remarks, structures_rows
from frictax.arguments import check_names, lists_options
from frictax.export.fitted_machine import example_machine
from frictax.fitting import Estimate, FitResult
from frictax.fitting.options import refuse
from frictax.fitting.result.identifiability import join_names
from frictax.interrupts import Workers
from frictax.measurements import Record
from frictax.mechanism import Mechanism
from frictax.text import amount
from frictax.trajectory import Trajectory

from .analysis_figures import (
    draw_finding,
    draw_held_out,
    draw_laws,
    finding_sentence,
    strongest_findings,
)
from .json_text import fit_json, versions_in_words
from .mechanism_figure import draw_mechanism
from .page import (
    PageOptions,
    Rows,
    Section,
    correlation_section,
    derived_rows,
    downloads,
    page,
    parameters_section,
    pictures,
    reproduction_section,
    write_page,
)
from .plots import friction_plot, motion_plots, profile_plot, starts_plot
from .record_figure import draw_fit
from .sliders import sliders
from .sweep_figure import draw_sweep
from .sweep_report import write_sweep_report


@dataclasses.dataclass(frozen=True)
class About:
    """The texts around the results of a page.

    - `notes`: paragraphs below the title; `learnt`: sentences on further findings, shown after the
      warnings; `citation`: source of the records; `sources`: file -> SHA-256; `seed`: seed of the
      search; `command`: command that reproduces the page.
    """

    title: str
    notes: Iterable[str] = ()
    learnt: Iterable[str] = ()
    citation: str = ""
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict)
    seed: int | None = None
    command: str | None = None

    @property
    def repeatability(self) -> str:
        """A sentence on what a repetition gives, with the seed and the versions."""
        seed = "" if self.seed is None else f"seed {self.seed}; "
        same = "The same problem gives the same results on the same computer"
        return f"{same}: {seed}{versions_in_words()}."


class MachineReportOptions(PageOptions, total=False):
    uncertainty: Uncertainty | None
    profiles: Iterable[Profile]
    scores: Iterable[FreeRunScore | Validation]


class ReportOptions(MachineReportOptions, total=False):
    title: str | None
    notes: Iterable[str]
    simulation: Trajectory | Figure | None


_PAGE: dict[str, Any] = {"command": None, "overwrite": True}
_OF_MACHINE: dict[str, Any] = {"uncertainty": None, "profiles": (), "scores": ()}
_OF_BOTH: dict[str, Any] = {"title": None, "notes": (), "simulation": None}

# Kind of the data that a cross-validation leaves out -> its meaning in words.
_LEFT_OUT = {
    "repeats": "repeats (equal parts of each record)",
    "speeds": "speeds (bands of speed)",
    "records": "whole records",
}


@lists_options(ReportOptions, {**_OF_BOTH, **_OF_MACHINE, **_PAGE})
def write_report(
    found: FitResult,
    path: str | Path,
    comparison: Comparison | Sequence[Comparison] | StructureComparison | None = None,
    **options: Unpack[ReportOptions],
) -> Path:
    """Write a self-contained HTML report. The option `simulation` is for a fitted sweep, see
    `write_sweep_report`. `uncertainty`, `profiles` and `scores` are for a fitted machine, see
    `write_machine_report`.
    """
    check_names(write_report, options)
    given: Any = {**options}
    simulation, of = given.pop("simulation", None), comparison
    if found.of_sweep:
        of_machine = {name: given.pop(name) for name in _OF_MACHINE if name in given}
        refuse(of_machine, "the records of a machine", "a law's sweep")
        return write_sweep_report(found, path, of, simulation, **given)  # pyright: ignore
    refuse({"simulation": simulation}, "a law's sweep", "a machine")
    return write_machine_report(found, path, of, **given)


def draw(
    found: FitResult,
    label: str | None = None,
    *,
    comparison: Comparison | Sequence[Comparison] | None = None,
    width: float = 7.5,
) -> Figure:
    """Draw the data and the fit. For a fitted sweep, call `draw_sweep` with `comparison`. For a
    fitted machine, call `draw_fit` with the record's `label`.
    """
    if found.of_sweep:
        refuse({"label": label}, "the records of a machine", "a law's sweep")
        return draw_sweep(found, comparison, width=width)
    refuse({"comparison": comparison}, "a law's sweep", "a machine")
    return draw_fit(found, label, width=width)


@lists_options(MachineReportOptions, {**_OF_MACHINE, **_PAGE})
def write_machine_report(
    found: FitResult,
    path: str | Path,
    comparison: Any = None,
    title: str | None = None,
    notes: Iterable[str] = (),
    **options: Unpack[MachineReportOptions],
) -> Path:
    """Write one self-contained HTML file on a fit to records, as `frictax identify` does.

    The function first examines the residuals, simulates free runs, and computes the expected
    accuracy of the estimates. The examination takes some seconds.

    The page has a slider for each estimate. When a slider moves, the page simulates all records
    again. If the page cannot simulate, it states the reason, and the curves change linearly by
    their derivative with respect to the estimate. In this case a slider covers the range in which
    the linear curves are accurate. Their rms difference from a simulation is at most half of the
    rms residual or 1 % of the curve's standard deviation, the larger of the two.

    **Arguments:**

    - `comparison`: the result of `compare`, if `found` is its best fit.
    - `uncertainty`: result of `found.uncertainty(...)`, by default with `Guarded()`; `profiles`:
      results of `found.profile(...)`.
    - `scores`: results of `found.free_run(...)` or `found.validate(...)` for other records.
    - `title`, `notes`, `command`, `overwrite`, the returned path and the exceptions: as for
      `write_sweep_report`.
    """
    check_names(write_machine_report, options)
    citations = dict.fromkeys(r.citation for r in found.records.values() if r.citation)
    about = About(
        title or f"{type(found.model).__name__} fitted to {', '.join(found.records)}",
        notes,
        citation="; ".join(citations),
        command=options.get("command"),
    )

    def text() -> str:
        with Workers() as pool:
            seen = examine_fit(found, pool)
        how: dict[str, Any] = {name: options.get(name, ()) for name in ("profiles", "scores")}
        how["uncertainty"] = options.get("uncertainty") or found.uncertainty()
        return machine_report_text(found, seen, about, comparison=comparison, **how)

    return write_page(path, text, overwrite=options.get("overwrite", True))


def machine_report_text(
    found: FitResult,
    seen: Any,
    about: About,
    *,
    uncertainty: Any,
    comparison: Any = None,
    profiles: Iterable[Any] = (),
    scores: Iterable[Any] = (),
    derived: Iterable[Estimate] | None = None,
) -> str:
    """Return one self-contained HTML page: parameters with intervals, friction over speed, motions
    with the modes of the contacts, residuals, validation, and how to reproduce the page.

    **Arguments:** `seen`: an `Examination`, the result of `examine_fit`; `uncertainty`, `profiles`:
    results for `found`; `comparison`: comparison of structures; `scores`: results for records that
    were not fitted; `derived`: derived quantities, by default from `common_estimates`.
    """
    moving = sliders(found, uncertainty.estimates)
    plots = dict(moving.figures)
    residuals = [
        f"{label}: {text} rms of {name}"
        for label in found.rms
        for name, text in found.rms_in_words(label).items()
    ]
    quality = (
        f"Errors: {uncertainty.says}. Intervals with Student's t, {uncertainty.freedom}."
        f" Residuals: {'; '.join(residuals)}. Condition {found.identifiability.condition:.3g}."
        " “× white”: these errors divided by the errors for white residuals."
    )
    estimates = uncertainty.rows()[1], "× white", quality
    sections = [
        parameters_section(found, *estimates, derived_rows(found, derived, uncertainty)),
        _warnings(found, seen, list(about.learnt)),
    ]
    machine, first = example_machine(found)
    of = "" if first is None else f"Values that differ by record are those of {first}."
    whose = [("lead", of)] * bool(of)
    if isinstance(machine, Mechanism):
        picture = pictures(draw_mechanism(machine))["wide"]
        sections.append(Section("machine", "Machine", [("schematic", picture), *whose]))
    sections.append(Section("fit", "Measured and fitted, with sliders", moving.blocks()))
    if (curve := friction_plot(found, uncertainty, seen.study)) is not None:
        plots["friction"] = curve
        caption = f"Band: pointwise {100 * found.level:g} % interval."
        if curve["data"][0]["name"] == "from the measured motion":
            caption += " Points: friction computed from the smoothed motion."
        shown = ("plot", ("friction", f"{caption} {of}".rstrip()))
        sections.append(Section("friction", "Friction over speed", [shown]))
    runs = [(label, found.records[label], motion) for label, motion in seen.motions.items()]
    sections.append(_motions(runs, "fitted machine", plots, machine))
    if seen.outlook is not None:
        head, rows = seen.outlook.rows()
        table = Rows(head, rows, ["keep", "n", "n", "n", "n", "keep"], "parameters")
        words = [("text", sentence) for sentence in seen.outlook.sentences]
        blocks = [("lead", seen.outlook.title), ("table", table), *words]
        sections.append(Section("outlook", "Expected accuracy, before the fit", blocks))
    sections += [
        *_validation(scores),
        *_judgements(found, seen, comparison, profiles, plots),
        *correlation_section(found),
    ]
    terms = [("source", about.citation)] if about.citation else []
    for label, r in found.records.items():
        says = f"a sweep of {r.n} rows"
        if isinstance(r, Record):
            held = "held between samples" if r.hold else "interpolated linearly"
            inputs = f"inputs {', '.join(r.inputs)}, {held}" if r.inputs else "no inputs"
            says = f"{r.n} samples, {r.duration:.6g} s, {r.rate:.4g} Hz; {inputs}; measured"
            says += f" {', '.join(r.outputs)}"
        terms.append((label, says))
    sections.append(Section("measured", "Measurements", [("terms", terms)]))
    if hasattr(found.model, "named_parts"):
        code = Markup('<code>found.write_modelica("folder")</code>')
        note = Markup("A complete model with the input of the record: {}.").format(code)
        try:
            text = found.to_modelica_modifiers(label=first)
            shown = [("code", text), *whose, ("lead", note)]
        except ValueError as why:
            text = f"// {why}"
            shown = [("code", text)]
        sections += [Section("modelica", "Modelica", shown)] if text else []
    files = downloads(found, fit_json(found), seen.motions)
    sections.append(Section("downloads", "Downloads", [("files", files)]))
    sections.append(reproduction_section(about.command, about.repeatability, sources=about.sources))
    lead = (
        f"{len(found.estimates)} parameters from {sum(r.n for r in found.records.values())} samples"
        f" of {', '.join(found.records)}, by {type(found.problem.objective).__name__}."
    )
    if comparison is not None:
        lead += f" Of {len(comparison.rows)} structures, {comparison.best.name!r} was chosen."
    return page(about.title, lead, sections, notes=about.notes, plots=plots, moving=moving)


def _warnings(found: FitResult, seen: Any, learnt: list[str]) -> Section:
    sentences = [*found.warnings]
    if seen.study is not None:
        sentences += list(seen.study.notes)
        patterns = {
            "whiteness": "they are autocorrelated",
            "speed": "they depend on the speed",
            "position": "they depend on the position",
            "direction": "they differ between the directions",
            "time": "they drift",
            "ripple": "they repeat with the position",
        }
        strong = dict.fromkeys(patterns[f.name] for f in seen.study.findings if f.strong)
        if strong:
            sentences.append(
                f"The residuals are not white noise: {', '.join(strong)}. See the section"
                " “Residuals and their patterns”."
            )
    sentences += map(str, seen.notices)
    for label, m in seen.motions.items():
        end = f"ended early, at {m.end:.15g} s"
        if m.complete:
            end = "reached its end, but the error of a state is above 1e-3 of its range"
        if not m.successful:
            sentences.append(f"{label}: the free run of the fitted machine {end}.")
    blocks: list[tuple[str, Any]] = [("warning", sentence) for sentence in sentences]
    none = "The fit has no warnings, and its residuals have no significant pattern."
    blocks = blocks or [("text", none)]
    if learnt:
        blocks += [("heading", "Further findings"), ("list", learnt)]
    return Section("mind", "Warnings", blocks)


def _motions(
    runs: Sequence[tuple[str, Record, Motion]], what: str, plots: dict[str, Any], machine: Any
) -> Section:
    """Return the section on records and free runs of the machine `what`; add plots to `plots`."""
    blocks: list[tuple[str, Any]] = []
    for i, (label, record, motion) in enumerate(runs):
        shown = motion_plots(record, label, motion, what, len(runs), machine)
        for j, (caption, figure) in enumerate(shown):
            plots[f"motion-{i}-{j}"] = figure
            blocks.append(("plot", (f"motion-{i}-{j}", caption)))
    return Section("motion", "Measured and simulated", blocks)


def _validation(scores: Iterable[Any]) -> list[Section]:
    blocks: list[tuple[str, Any]] = []
    for score in scores:
        run = score if isinstance(score, FreeRunScore | Validation) else score.run
        rows: list[tuple[str, str]] = []
        for name, value in score.rms.items():
            unit = score.units[name]
            rows.append((f"{name}, rms", amount(value, unit)))
            if isinstance(run, FreeRunScore):
                rows += [
                    (f"{says} changes it by", amount(moved[name], unit))
                    for says, moved in run.sensitivities.items()
                ]
                ends = " / ".join(amount(x, unit) for x in run.ranges[name])
                rows.append((f"{run.says}: 10 / 50 / 90 %", ends))
            if isinstance(run, Validation):
                rows.append(("from the measured start", amount(run.from_measured[name], unit)))
                rows.append(("from the machine's start", amount(run.from_given[name], unit)))
        if isinstance(run, Validation):
            for name, value, unit, *_ in (e.cells for e in run.start):
                rows.append((f"{name.partition('@')[0]} at the start, fitted", f"{value} {unit}"))
        if isinstance(run, FreeRunScore) and run.failed:
            rows.append((f"{run.says}: failed simulations", f"{run.failed} of {len(run.draws)}"))
        by = getattr(score, "by", "free run")
        if isinstance(run, Validation) and not run.start:  # then no initial state was fitted
            by = "measured start"
        blocks.append(("heading", f"{score.label}: {by}"))
        blocks.append(("table", Rows([], rows, ["", "n"])))
    return [Section("validation", "Validation with other records", blocks)] if blocks else []


def _judgements(
    found: FitResult, seen: Any, comparison: Any, profiles: Iterable[Any], plots: dict[str, Any]
) -> list[Section]:
    """Return sections on structures, missing terms, residuals, profiles and search starts."""
    sections = []
    if comparison is not None:
        head, rows = structures_rows(comparison)
        looks = ["keep", *["n"] * (len(head) - 2), ""]
        left = join_names(_LEFT_OUT[by] for by in comparison.rows[0].held_out)
        captions = (
            (draw_laws, "Friction of all structures over speed; thick line: the chosen one."),
            (draw_held_out, f"Errors of all structures on data left out of the fit: {left}."),
        )
        panels = [
            (pictures(draw(comparison))["wide"], says, says, False) for draw, says in captions
        ]
        blocks: list[tuple[str, Any]] = [
            ("table", Rows(head, rows, looks, "cards", chosen=comparison.best.name)),
            *(("warning", text) for text in remarks(comparison)),
            ("text", comparison.reason),
            ("pictures", panels),
        ]
        sections.append(Section("structures", "Comparison of structures", blocks))
    if (missing := seen.missing) is not None:
        head, rows = missing.rows()
        note = (
            "Each term is fitted together with all parameters above. The columns are the misfit"
            " with the term, its value, the probability that noise alone explains as much, and the"
            " share of its effect that the fitted parameters cannot explain. A star marks a term"
            " that is significant at 1 % over all candidates, has a possible value different from"
            " 0, and is confirmed by a refit."
        )
        blocks = [
            *(("text", sentence) for sentence in missing.sentences),
            ("table", Rows(head, rows, ["", "", "n", "n", "n", "n"], "cards")),
            ("lead", note),
            *([("lead", missing.untold_in_words)] if missing.untold else []),
        ]
        sections.append(Section("missing", "Missing terms", blocks))
    if (study := seen.study) is not None:
        panels = [
            (pictures(draw_finding(f))["wide"], "", finding_sentence(study, f), not f.strong)
            for f in strongest_findings(study)
        ]
        note = "Grey: not significant, which does not prove that there is no pattern."
        blocks = [("pictures", panels), ("lead", note)]
        sections.append(Section("residuals", "Residuals and their patterns", blocks))
    blocks = []
    for i, profile in enumerate(profiles):
        plots[f"profile-{i}"] = profile_plot(profile)
        blocks.append(("plot", (f"profile-{i}", profile.sentence)))
    if blocks:
        sections.append(Section("profiles", "Profile likelihoods", blocks))
    if (waterfall := starts_plot(found)) is not None:
        plots["waterfall"] = waterfall
        ended, count = int(np.sum(np.isfinite(found.costs))), found.costs.size
        of = f" of {count}" if ended < count else ""
        caption = f"Final costs of {ended}{of} starts, divided by the least cost."
        caption += " The other starts failed." if of else ""
        shown = ("plot", ("waterfall", caption))
        sections.append(Section("starts", "Final costs of all starts", [shown]))
    return sections


def preview_text(
    previews: Iterable[Any],
    *,
    title: str,
    notes: Iterable[str] = (),
    command: str | None = None,
    machine: Any = None,
) -> str:
    """Return one self-contained HTML page: each record, and the simulation of the machine with the
    parameter values before a fit.

    **Arguments:** `previews`: results of `preview` (`frictax.analysis.replay.free_run`); `title`,
    `notes`: texts of the page; `command`: command that reproduces the page; `machine`: the machine.
    """
    plots: dict[str, Any] = {}
    runs = [(one.label, one.record, one.motion) for one in previews]
    sections = [_motions(runs, "machine with its start values", plots, machine)]
    if command:
        sections.append(reproduction_section(command, ""))
    lead = "The machine as the problem describes it, before any fit, under the record's inputs."
    return page(title, lead, sections, notes=notes, plots=plots)
