"""The report of a machine that was identified from records: one HTML file that needs
nothing else.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from frictax.analysis import FreeRunScore, Validation
from frictax.analysis.examination import examine_fit
from frictax.analysis.replay.motion import Motion
from frictax.analysis.selection.structures_text import structures_rows
from frictax.fitting import Estimate, FitResult
from frictax.interrupts import Workers
from frictax.measurements import Record
from frictax.mechanism import Mechanism
from frictax.text import amount

from .interactive.curves import profile_plot, waterfall_plot
from .interactive.downloads import downloads
from .interactive.friction import friction_plot
from .interactive.motion import motion_plots
from .interactive.plotly_json import as_json, script
from .interactive.slider_plots import sliders
from .machine_json import fit_json
from .mechanism_figure import draw_mechanism
from .page import derived_rows, page, pictures, write_page
from .residual_figure import draw_finding, drawn, sentence
from .structures_figure import draw_held_out, draw_laws
from .versions import in_words

_SECTIONS = (
    "parameters mind machine fit friction motion outlook validation structures missing residuals"
    " profiles starts correlation measured modelica downloads again".split()
)
_LACKS = {
    "whiteness": "they are autocorrelated",
    "speed": "they follow the speed",
    "position": "they follow the position",
    "direction": "they differ between the directions",
    "time": "they drift",
    "ripple": "they repeat with the position",
}


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
    """Write one self-contained HTML file on a fit to records, the same as `frictax identify`
    writes.

    Residuals, free runs beside the records and what these could be expected to tell are worked out
    first, which takes seconds. A slider for each estimate moves what the fit compares along the
    fit's derivatives: to first order, over a range in which new simulations, one number moved at a
    time, were found to differ from that by at most half of what the fit leaves (rms), or 1 % of the
    curve's standard deviation where that is more.

    **Arguments:**

    - `comparison`: what `compare` returned, where `found` is its best.
    - `uncertainty` of `found`, by `Guarded()` unless given;
      `profiles`: what `found.profile(...)` returned; `scores`: what `found.free_run(...)` returned
      or `found.validate(...)` for records that were not fitted.
    - `title`, `notes`, `command`, `overwrite`: as of `write_sweep_report`, as are what it returns
      and raises, and what it replaces.
    """

    def text() -> str:
        with Workers() as pool:
            seen = examine_fit(found, pool)
        return machine_report_text(
            found,
            seen,
            title=title or f"{type(found.model).__name__} fitted to {', '.join(found.records)}",
            uncertainty=uncertainty or found.uncertainty(),
            comparison=comparison,
            profiles=profiles,
            scores=scores,
            notes=notes,
            citation="; ".join(
                dict.fromkeys(r.citation for r in found.records.values() if r.citation)
            ),
            command=command,
        )

    return write_page(path, text, overwrite=overwrite)


def machine_report_text(
    found: FitResult,
    seen: Any,
    *,
    title: str,
    uncertainty: Any,
    comparison: Any = None,
    profiles: Iterable[Any] = (),
    scores: Iterable[Any] = (),
    notes: Iterable[str] = (),
    learnt: Iterable[str] = (),
    citation: str = "",
    sources: Mapping[str, str] | None = None,
    seed: int | None = None,
    command: str | None = None,
    derived: Iterable[Estimate] | None = None,
) -> str:
    """One self-contained HTML page: parameters with intervals, friction over speed with bands and
    data, motions with their modes, what the fit leaves, validation, and how to make it again.

    **Arguments:** `seen`: an `Examination`, or what has the same fields; `uncertainty`, `profiles`
    of `found`; `comparison` of structures; `scores` on records that were not fitted; `sources`:
    file -> SHA-256; `derived`: what follows from the numbers, common quantities unless given.
    """
    plots: dict[str, Any] = {}
    curve = friction_plot(found, uncertainty, seen.study)
    if curve is not None:
        plots["friction"] = curve
    moved, shown = [], []
    for i, (label, motion) in enumerate(seen.motions.items()):
        for j, (caption, figure) in enumerate(
            motion_plots(found.records[label], label, motion, beside=len(seen.motions))
        ):
            plots[name := f"motion-{i}-{j}"] = figure
            moved.append((name, caption))
    for i, profile in enumerate(profiles):
        plots[name := f"profile-{i}"] = profile_plot(profile)
        shown.append((name, profile.sentence))
    waterfall = waterfall_plot(np.asarray(found.costs))
    if waterfall is not None:
        plots["waterfall"] = waterfall
    moving = sliders(found, uncertainty.estimates)
    plots |= moving.figures
    schematic = isinstance(found.model, Mechanism)
    modelica = _modelica(found) if hasattr(found.model, "named_parts") else ""
    has = {
        "machine": schematic,
        "friction": curve,
        "outlook": seen.outlook is not None,
        "validation": scores,
        "structures": comparison is not None,
        "missing": seen.missing is not None,
        "residuals": seen.study is not None,
        "profiles": shown,
        "starts": waterfall,
        "correlation": len(found.correlation) > 1,
        "modelica": modelica,
    }
    level = f"{100 * found.level:g} %"
    return page(
        found,
        [name for name in _SECTIONS if has.get(name, True)],
        title=title,
        lead=_lead(found, comparison),
        notes=notes,
        learnt=list(learnt),
        formulas=[],
        parameters=_parameters(found, uncertainty),
        derived=derived_rows(found, derived, uncertainty),
        last="× white",
        quality=(
            f"Errors: {uncertainty.says}. Intervals with Student's t, {uncertainty.freedom}."
            f" {_quality(found)} “× white”: these errors over those of white residuals."
        ),
        to_mind=(),
        warnings=[*_warnings(found, seen.study), *map(str, seen.notices), *_ended(seen.motions)],
        friction=(
            f"Band: pointwise {level} interval. Points: friction computed from the smoothed motion."
        ),
        motions=moved,
        fit=moving,
        moving=as_json(moving.data),
        machine=pictures(draw_mechanism(found.model)) if schematic else None,
        downloads=downloads(found, fit_json(found), seen.motions),
        validation=[_validation(score) for score in scores],
        outlook=seen.outlook,
        structures=None if comparison is None else _structures(comparison),
        missing=seen.missing,
        study=None if seen.study is None else _study(seen.study),
        profiles=shown,
        waterfall=f"Cost at the end of each of {found.costs.size} starts, over the least.",
        measured=_measured(found, citation),
        modelica=modelica,
        whole_model=True,
        command=command,
        python="",
        again=(
            "The same problem gives the same numbers on the same machine:"
            f" {'' if seed is None else f'seed {seed}; '}{in_words()}."
        ),
        sources=list((sources or {}).items()),
        library=script() if plots else "",
        plots=as_json(plots),
        footer="",
    )


def _lead(found: FitResult, comparison: Any) -> str:
    kind, samples = type(found.problem.objective).__name__, sum(r.n for r in found.records.values())
    text = (
        f"{len(found.estimates)} parameters from {samples} samples of {', '.join(found.records)},"
        f" by {kind}."
    )
    if comparison is None:
        return text
    return f"{text} Of {len(comparison.rows)} structures, {comparison.best.name!r} was chosen."


def _parameters(found: FitResult, uncertainty: Any) -> list[tuple[str, ...]]:
    return uncertainty.rows()[1]


def _quality(found: FitResult) -> str:
    parts = []
    for label in found.rms:
        left = found.rms_in_words(label).items()
        parts += [f"{label}: {text} rms of {name}" for name, text in left]
    condition = found.identifiability.condition
    return f"Residuals: {'; '.join(parts)}. Condition {condition:.3g}."


def _warnings(found: FitResult, study: Any) -> list[str]:
    out = [*found.warnings]
    if study is not None:
        out += list(study.notes)
        strong = dict.fromkeys(_LACKS[f.name] for f in study.findings if f.strong)
        if strong:
            out.append(
                f"The residuals are not white noise: {', '.join(strong)}. They are shown below, at"
                " “Residuals and their patterns”."
            )
    return out


def _ended(motions: Mapping[str, Motion]) -> list[str]:
    return [
        f"{label}: the free run of the fitted machine ended early, at {m.end:g} s."
        for label, m in motions.items()
        if not m.complete
    ]


def _validation(score: Any) -> tuple[str, list[tuple[str, str]]]:
    run = score if isinstance(score, FreeRunScore | Validation) else score.run
    title = f"{score.label}: {getattr(score, 'by', 'free run')}"
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
    return title, rows


def _structures(comparison: Any) -> dict[str, Any]:
    head, rows = structures_rows(comparison)
    laws, held_out = (pictures(draw(comparison))["wide"] for draw in (draw_laws, draw_held_out))
    panels = [
        (laws, "Friction of all structures over speed, the chosen one thick."),
        (held_out, "Their errors on data left out of the fit, by repeats and by speeds."),
    ]
    named = {"chosen": comparison.best.name, "reason": comparison.reason}
    return {"head": head, "rows": rows, "panels": panels, **named}


def _study(study: Any) -> list[tuple[str, str, bool]]:
    return [(pictures(draw_finding(f))["wide"], sentence(study, f), f.strong) for f in drawn(study)]


def _measured(found: FitResult, citation: str) -> list[tuple[str, str]]:
    out = [("source", citation)] if citation else []
    for label, r in found.records.items():
        if isinstance(r, Record):
            held = "held between samples" if r.hold else "interpolated linearly"
            inputs = f"inputs {', '.join(r.inputs)}, {held}" if r.inputs else "no inputs"
            says = f"{r.n} samples, {r.duration:.6g} s, {r.rate:.4g} Hz; {inputs}; measured"
            out.append((label, f"{says} {', '.join(r.outputs)}"))
        else:
            out.append((label, f"a sweep of {r.n} rows"))
    return out


def _modelica(found: FitResult) -> str:
    try:
        return found.to_modelica_modifiers()
    except ValueError as why:
        return f"// {why}"
