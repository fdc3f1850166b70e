"""The pages of a machine beside its records: the report of a fit, and a preview before any fit."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from frictax.analysis import FreeRunScore, Validation
from frictax.analysis.examination import examine_fit
from frictax.analysis.replay.free_run import Motion
from frictax.analysis.selection.structure import structures_rows
from frictax.fitting import Estimate, FitResult
from frictax.interrupts import Workers
from frictax.measurements import Record
from frictax.mechanism import Mechanism
from frictax.text import amount

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
    Rows,
    Section,
    correlation_section,
    derived_rows,
    page,
    parameters_section,
    pictures,
    reproduction_section,
    write_page,
)
from .plots import friction_plot, motion_plots, profile_plot, starts_plot
from .sliders import sliders
from .tables import downloads

# Patterns of the residuals by the name of the finding, for the sentence of a warning.
_PATTERNS = {
    "whiteness": "they are autocorrelated",
    "speed": "they follow the speed",
    "position": "they follow the position",
    "direction": "they differ between the directions",
    "time": "they drift",
    "ripple": "they repeat with the position",
}


@dataclasses.dataclass(frozen=True)
class About:
    """The texts around the results of a page.

    - `title`; `notes`: paragraphs below the title; `learnt`: further findings, after the warnings.
    - `citation` of the records; `sources`: file -> SHA-256; `seed` of the search; `command` that
      makes the page again.
    """

    title: str
    notes: Iterable[str] = ()
    learnt: Iterable[str] = ()
    citation: str = ""
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict)
    seed: int | None = None
    command: str | None = None


def write_machine_report(
    found: FitResult,
    path: str | Path,
    comparison: Any = None,
    title: str | None = None,
    notes: Iterable[str] = (),
    *,
    uncertainty: Any = None,
    profiles: Iterable[Any] = (),
    scores: Iterable[Any] = (),
    command: str | None = None,
    overwrite: bool = True,
) -> Path:
    """Write one self-contained HTML file on a fit to records, as `frictax identify` does.

    The function first studies the residuals, simulates free runs, and computes the expected
    accuracy, which takes seconds. A slider for each estimate moves the curves of the fit along
    their derivatives. Its range was tested by simulation, one parameter at a time. There the linear
    approximation differs by at most half of the rms residual, or by 1 % of the standard deviation
    of the curve if that is more.

    **Arguments:**

    - `comparison`: the result of `compare`, if `found` is its best fit.
    - `uncertainty` of `found`, by `Guarded()` unless given; `profiles`: results of
      `found.profile(...)`.
    - `scores`: results of `found.free_run(...)` or `found.validate(...)` for records that were not
      fitted.
    - `title`, `notes`, `command`, `overwrite`, the result and the errors: as of
      `write_sweep_report`.
    """

    citations = dict.fromkeys(r.citation for r in found.records.values() if r.citation)
    about = About(
        title or f"{type(found.model).__name__} fitted to {', '.join(found.records)}",
        notes,
        citation="; ".join(citations),
        command=command,
    )

    def text() -> str:
        with Workers() as pool:
            seen = examine_fit(found, pool)
        return machine_report_text(
            found,
            seen,
            about,
            uncertainty=uncertainty or found.uncertainty(),
            comparison=comparison,
            profiles=profiles,
            scores=scores,
        )

    return write_page(path, text, overwrite=overwrite)


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
    """Return one self-contained HTML page: parameters with intervals, friction over speed with
    bands and data, motions with their modes, residuals, validation, and how to make the page again.

    **Arguments:** `seen`: an `Examination`, or an object with the same fields; `uncertainty`,
    `profiles` of `found`; `comparison` of structures; `scores` on records that were not fitted;
    `derived` quantities, the common ones unless given.
    """
    moving = sliders(found, uncertainty.estimates)
    plots = dict(moving.figures)
    again = (
        "The same problem gives the same numbers on the same machine:"
        f" {'' if about.seed is None else f'seed {about.seed}; '}{versions_in_words()}."
    )
    sections = [
        parameters_section(
            found,
            uncertainty.rows()[1],
            "× white",
            f"Errors: {uncertainty.says}. Intervals with Student's t, {uncertainty.freedom}."
            f" {_quality(found)} “× white”: these errors over those of white residuals.",
            derived_rows(found, derived, uncertainty),
        ),
        _warnings(found, seen, list(about.learnt)),
        *_machine(found),
        Section("fit", "Measured and fitted, with sliders", moving.blocks()),
        *_friction(found, uncertainty, seen.study, plots),
        _motions(found, seen.motions, plots),
        *_outlook(seen.outlook),
        *_validation(scores),
        *([] if comparison is None else [_structures(comparison)]),
        *_missing(seen.missing),
        *([] if seen.study is None else [_residuals(seen.study)]),
        *_profiles(profiles, plots),
        *_starts(found, plots),
        *correlation_section(found),
        _measurements(found, about.citation),
        *_modelica(found),
        Section(
            "downloads", "Downloads", [("files", downloads(found, fit_json(found), seen.motions))]
        ),
        reproduction_section(about.command, again, sources=about.sources),
    ]
    lead = _lead(found, comparison)
    return page(about.title, lead, sections, notes=about.notes, plots=plots, moving=moving.data)


def _lead(found: FitResult, comparison: Any) -> str:
    kind, samples = type(found.problem.objective).__name__, sum(r.n for r in found.records.values())
    text = (
        f"{len(found.estimates)} parameters from {samples} samples of {', '.join(found.records)},"
        f" by {kind}."
    )
    if comparison is None:
        return text
    return f"{text} Of {len(comparison.rows)} structures, {comparison.best.name!r} was chosen."


def _quality(found: FitResult) -> str:
    parts = []
    for label in found.rms:
        left = found.rms_in_words(label).items()
        parts += [f"{label}: {text} rms of {name}" for name, text in left]
    condition = found.identifiability.condition
    return f"Residuals: {'; '.join(parts)}. Condition {condition:.3g}."


def _warnings(found: FitResult, seen: Any, learnt: list[str]) -> Section:
    sentences = [*found.warnings]
    if seen.study is not None:
        sentences += list(seen.study.notes)
        strong = dict.fromkeys(_PATTERNS[f.name] for f in seen.study.findings if f.strong)
        if strong:
            sentences.append(
                f"The residuals are not white noise: {', '.join(strong)}. They are shown below, at"
                " “Residuals and their patterns”."
            )
    sentences += map(str, seen.notices)
    sentences += [
        f"{label}: the free run of the fitted machine ended early, at {m.end:g} s."
        for label, m in seen.motions.items()
        if not m.complete
    ]
    blocks: list[tuple[str, Any]] = [("warning", sentence) for sentence in sentences]
    none = "The fit has no warnings, and its residuals have no significant pattern."
    blocks = blocks or [("text", none)]
    if learnt:
        blocks += [("heading", "Further findings"), ("list", learnt)]
    return Section("mind", "Warnings", blocks)


def _machine(found: FitResult) -> list[Section]:
    if not isinstance(found.model, Mechanism):
        return []
    picture = pictures(draw_mechanism(found.model))["wide"]
    return [Section("machine", "Machine", [("schematic", picture)])]


def _friction(
    found: FitResult, uncertainty: Any, study: Any, plots: dict[str, Any]
) -> list[Section]:
    curve = friction_plot(found, uncertainty, study)
    if curve is None:
        return []
    plots["friction"] = curve
    caption = (
        f"Band: pointwise {100 * found.level:g} % interval. Points: friction computed from the"
        " smoothed motion."
    )
    return [Section("friction", "Friction over speed", [("plot", ("friction", caption))])]


def _motions(found: FitResult, motions: Mapping[str, Motion], plots: dict[str, Any]) -> Section:
    blocks: list[tuple[str, Any]] = []
    for i, (label, motion) in enumerate(motions.items()):
        shown = motion_plots(found.records[label], label, motion, beside=len(motions))
        for j, (caption, figure) in enumerate(shown):
            plots[f"motion-{i}-{j}"] = figure
            blocks.append(("plot", (f"motion-{i}-{j}", caption)))
    return Section("motion", "Measured and simulated", blocks)


def _outlook(outlook: Any) -> list[Section]:
    if outlook is None:
        return []
    head, rows = outlook.rows()
    table = Rows(head, rows, ["keep", "n", "n", "n", "n", "keep"], "parameters")
    blocks = [("lead", outlook.title), ("table", table), *(("text", s) for s in outlook.sentences)]
    return [Section("outlook", "Expected accuracy, before the fit", blocks)]


def _validation(scores: Iterable[Any]) -> list[Section]:
    blocks: list[tuple[str, Any]] = []
    for score in scores:
        blocks.append(("heading", f"{score.label}: {getattr(score, 'by', 'free run')}"))
        blocks.append(("table", Rows([], _score_rows(score), ["", "n"])))
    return [Section("validation", "Validation with other records", blocks)] if blocks else []


def _score_rows(score: Any) -> list[tuple[str, str]]:
    run = score if isinstance(score, FreeRunScore | Validation) else score.run
    rows: list[tuple[str, str]] = []
    for name, value in score.rms.items():
        unit = score.units[name]
        rows.append((f"{name}, rms", amount(value, unit)))
        if isinstance(run, FreeRunScore):
            rows += [
                (f"{says} moves it by", amount(moved[name], unit))
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
    return rows


def _structures(comparison: Any) -> Section:
    head, rows = structures_rows(comparison)
    laws, held_out = (pictures(draw(comparison))["wide"] for draw in (draw_laws, draw_held_out))
    captions = (
        "Friction of all structures over speed, the chosen one thick.",
        "Their errors on data left out of the fit, by repeats and by speeds.",
    )
    looks = ["keep", *["n"] * (len(head) - 2), ""]
    panels = [
        (image, text, text, False) for image, text in zip((laws, held_out), captions, strict=True)
    ]
    blocks = [
        ("table", Rows(head, rows, looks, "cards", chosen=comparison.best.name)),
        ("text", comparison.reason),
        ("pictures", panels),
    ]
    return Section("structures", "Comparison of structures", blocks)


def _missing(missing: Any) -> list[Section]:
    if missing is None:
        return []
    blocks: list[tuple[str, Any]] = [("text", sentence) for sentence in missing.sentences]
    head, rows = missing.rows()
    blocks.append(("table", Rows(head, rows, ["", "", "n", "n", "n", "n"], "cards")))
    blocks.append(
        (
            "lead",
            "Each term is fitted together with all parameters above. The columns are the misfit"
            " with it, its value, the probability that noise alone explains as much, and the share"
            " of its effect that the fitted parameters cannot explain. A star marks a term that is"
            " significant at 1 % over all candidates, has a possible value different from 0, and is"
            " confirmed by a refit.",
        )
    )
    if missing.untold:
        blocks.append(("lead", missing.untold_in_words))
    return [Section("missing", "Missing terms", blocks)]


def _residuals(study: Any) -> Section:
    panels = [
        (pictures(draw_finding(f))["wide"], "", finding_sentence(study, f), not f.strong)
        for f in strongest_findings(study)
    ]
    note = "Grey: not significant, which does not prove that there is no pattern."
    return Section(
        "residuals", "Residuals and their patterns", [("pictures", panels), ("lead", note)]
    )


def _profiles(profiles: Iterable[Any], plots: dict[str, Any]) -> list[Section]:
    blocks: list[tuple[str, Any]] = []
    for i, profile in enumerate(profiles):
        plots[f"profile-{i}"] = profile_plot(profile)
        blocks.append(("plot", (f"profile-{i}", profile.sentence)))
    return [Section("profiles", "Profile likelihoods", blocks)] if blocks else []


def _starts(found: FitResult, plots: dict[str, Any]) -> list[Section]:
    waterfall = starts_plot(found)
    if waterfall is None:
        return []
    plots["waterfall"] = waterfall
    caption = f"Cost at the end of each of {found.costs.size} starts, over the least."
    return [Section("starts", "Ends of all starts", [("plot", ("waterfall", caption))])]


def _measurements(found: FitResult, citation: str) -> Section:
    terms = [("source", citation)] if citation else []
    for label, r in found.records.items():
        if isinstance(r, Record):
            held = "held between samples" if r.hold else "interpolated linearly"
            inputs = f"inputs {', '.join(r.inputs)}, {held}" if r.inputs else "no inputs"
            says = f"{r.n} samples, {r.duration:.6g} s, {r.rate:.4g} Hz; {inputs}; measured"
            terms.append((label, f"{says} {', '.join(r.outputs)}"))
        else:
            terms.append((label, f"a sweep of {r.n} rows"))
    return Section("measured", "Measurements", [("terms", terms)])


def _modelica(found: FitResult) -> list[Section]:
    if not hasattr(found.model, "named_parts"):
        return []
    try:
        text = found.to_modelica_modifiers()
    except ValueError as why:
        text = f"// {why}"
    code = Markup('<code>found.write_modelica("folder")</code>')
    note = Markup("A whole model that runs, under the record's own input: {}.").format(code)
    return [Section("modelica", "Modelica", [("code", text), ("lead", note)])] if text else []


def preview_text(
    previews: Iterable[Any], *, title: str, notes: Iterable[str] = (), command: str | None = None
) -> str:
    """Return one self-contained HTML page: each record, and the run of the machine with its start
    values.

    **Arguments:** `previews`: of `frictax.analysis.replay.free_run`; `title`, `notes` of the page;
    `command` that makes it again.
    """
    plots: dict[str, Any] = {}
    blocks: list[tuple[str, Any]] = []
    previews = list(previews)
    for i, one in enumerate(previews):
        what = "machine with its start values"
        shown = motion_plots(one.record, one.label, one.motion, what, len(previews))
        for j, (caption, figure) in enumerate(shown):
            plots[f"motion-{i}-{j}"] = figure
            blocks.append(("plot", (f"motion-{i}-{j}", caption)))
    sections = [Section("motion", "Measured and simulated", blocks)]
    if command:
        sections.append(reproduction_section(command, ""))
    lead = "The machine as the problem describes it, before any fit, under the record's inputs."
    return page(title, lead, sections, notes=notes, plots=plots)
