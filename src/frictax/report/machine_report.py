"""The report of a machine that was identified from records: one HTML file that needs
nothing else.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

import frictax
from frictax.analysis.errors.uncertainty import HAC, usual
from frictax.analysis.examination import examined, workers
from frictax.analysis.replay.free_run import FreeRunScore
from frictax.analysis.replay.motion import Motion
from frictax.analysis.selection.structures_text import structures_rows
from frictax.fitting.problem.objectives import FreeRun
from frictax.fitting.problem.setup import channel_unit
from frictax.fitting.result.fit_result import FitResult
from frictax.fitting.result.identifiability import Knowledge
from frictax.fitting.result.text import record_warnings
from frictax.measurements.record import Record
from frictax.notice import Notice
from frictax.report.files import write_whole
from frictax.report.machine_plots import (
    as_json,
    friction_plot,
    motion_plots,
    profile_plot,
    waterfall_plot,
)
from frictax.report.residual_figure import draw_finding, drawn
from frictax.report.structures_figure import draw_held_out, draw_laws
from frictax.report.style import prefixed
from frictax.report.sweep_report import GENERATOR, check_report, correlation_cells, pictures
from frictax.report.versions import versions
from frictax.text import rounded

_LACKS = {
    "whiteness": "it remembers itself",
    "speed": "it follows the speed",
    "position": "it follows the position",
    "direction": "it differs between the directions",
    "time": "it drifts",
    "ripple": "it repeats itself in position",
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
    first, which takes seconds. A report that frictax wrote there before is replaced, in one step
    once the new one is complete; any other file is left alone.

    **Arguments:**

    - `comparison`: what `compare` returned, where `found` is its best; `title`; `notes`: paragraphs
      below it.
    - `uncertainty` of `found`, by `Clustered()` on `Windows` and else `HAC()` unless given;
      `profiles`: what `found.profile(...)` returned; `scores`: what `found.free_run(...)` returned
      for records that were not fitted.
    - `command`: the command line that makes the report again; `overwrite`: whether a former report
      may be replaced.

    **Returns:** where the report is.

    **Raises:** `OSError` (`FileNotFoundError`, `FileExistsError`, ...) with one sentence where it
    cannot be written.
    """
    target = check_report(path, overwrite=overwrite)
    with workers() as pool:
        seen = examined(found, pool)
    text = machine_report_text(
        found,
        title=title or f"{type(found.model).__name__} fitted to {', '.join(found.records)}",
        uncertainty=(
            found.uncertainty(usual(found.problem, HAC())) if uncertainty is None else uncertainty
        ),
        comparison=comparison,
        profiles={profile.name: profile for profile in profiles},
        study=seen.study,
        scores=scores,
        motions=seen.motions,
        outlook=seen.outlook,
        notes=[notes] if isinstance(notes, str) else notes,
        notices=seen.notices,
        citation="; ".join(dict.fromkeys(r.citation for r in found.records.values() if r.citation)),
        command=command,
        made_with=versions(),
    )
    write_whole(target, text, replace=overwrite)
    return Path(path)


def machine_report_text(
    found: FitResult,
    *,
    title: str,
    uncertainty: Any,
    comparison: Any = None,
    profiles: Mapping[str, Any] | None = None,
    study: Any = None,
    scores: Iterable[Any] = (),
    motions: Mapping[str, Motion] | None = None,
    outlook: Any = None,
    notes: Iterable[str] = (),
    notices: Iterable[Notice] = (),
    learnt: Iterable[str] = (),
    citation: str = "",
    sources: Mapping[str, str] | None = None,
    seed: int | None = None,
    command: str | None = None,
    made_with: Mapping[str, str] | None = None,
) -> str:
    """One self-contained HTML page: parameters with intervals, friction over speed with bands and
    data, motions with their modes, what the fit leaves, validation, and how to make it again.

    **Arguments:** `uncertainty`, `profiles`, `study` of `found`; `comparison` of structures;
    `scores` on records that were not fitted; `motions`: record -> `Motion`; `outlook`: what could
    be expected; `notices`: what else to mind; `sources`: file -> SHA-256.
    """
    plots: dict[str, Any] = {}
    curve = friction_plot(found, uncertainty, study)
    if curve is not None:
        plots["friction"] = curve
    moved = []
    for i, (label, motion) in enumerate((motions or {}).items()):
        for j, (caption, figure) in enumerate(motion_plots(found, label, motion)):
            plots[f"motion-{i}-{j}"] = figure
            moved.append((f"motion-{i}-{j}", caption))
    shown = []
    for i, profile in enumerate((profiles or {}).values()):
        plots[f"profile-{i}"] = profile_plot(profile)
        shown.append((f"profile-{i}", profile.sentence))
    waterfall = waterfall_plot(np.asarray(found.costs))
    if waterfall is not None:
        plots["waterfall"] = waterfall
    return _template().render(
        generator=f"{GENERATOR} {frictax.__version__}",
        title=title,
        lead=_lead(found, comparison),
        notes=list(notes),
        learnt=list(learnt),
        level=f"{100 * found.level:g} %",
        parameters=_parameters(found, uncertainty),
        errors=(
            f"Errors: {uncertainty.says}. Intervals with Student's t, {uncertainty.freedom}."
            f" {_quality(found)}"
        ),
        warnings=[*_warnings(found, study), *map(str, notices), *_ended(motions or {})],
        friction=curve is not None,
        friction_caption=(
            f"Band: {100 * found.level:g} % at each speed, of these errors. Points: what the"
            " smoothed motion asks for."
        ),
        motions=moved,
        validation=[_validation(score) for score in scores],
        outlook=None if outlook is None else _outlook(outlook),
        structures=None if comparison is None else _structures(comparison),
        study=None if study is None else _study(study),
        profiles=shown,
        waterfall=(
            None
            if waterfall is None
            else f"Cost at the end of each of {found.costs.size} starts, over the least."
        ),
        correlation=correlation_cells(found.correlation, found.names),
        measured=_measured(found, citation),
        modelica=_modelica(found) if hasattr(found.model, "named_parts") else "",
        command=command,
        again=_again(seed, made_with or {}),
        sources=list((sources or {}).items()),
        library=_library() if plots else "",
        plots=as_json(plots),
    )


def _template() -> Any:
    loader = jinja2.PackageLoader("frictax.report")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("machine.html.j2")


def _library() -> str:
    """plotly's script, from the installed package."""
    from importlib.resources import files

    return (
        (files("plotly") / "package_data" / "plotly.min.js")
        .read_text(encoding="utf-8")
        .replace("</script", "<\\/script")
    )


def _lead(found: FitResult, comparison: Any) -> str:
    kind = type(found.problem.objective).__name__
    chosen = (
        ""
        if comparison is None
        else f" Of {len(comparison.rows)} structures, {comparison.best.name!r} was chosen."
    )
    samples = sum(r.n for r in found.records.values())
    return (
        f"{len(found.estimates)} numbers from {samples} samples of {', '.join(found.records)}, by"
        f" {kind}.{chosen}"
    )


def _parameters(found: FitResult, uncertainty: Any) -> list[dict[str, str]]:
    out = []
    for e in uncertainty.estimates:
        known, ratio = found.identifiability.knowledge.get(e.name), uncertainty.ratio[e.name]
        interval = f"{rounded(e.lower, e.standard_error)} to {rounded(e.upper, e.standard_error)}"
        if known in (Knowledge.AT_BOUND, Knowledge.UNKNOWN):
            interval = known.value
        out.append(
            {
                "name": e.name,
                "value": rounded(e.value, e.standard_error),
                "unit": e.unit,
                "error": f"{e.standard_error:.2g}" if np.isfinite(e.standard_error) else "",
                "interval": interval,
                "ratio": f"{ratio:.1f}" if np.isfinite(ratio) else "",
            }
        )
    return out


def _quality(found: FitResult) -> str:
    parts = []
    for label, channels in found.rms.items():
        for name, value in channels.items():
            record = found.records[label]
            unit = (
                channel_unit(found.model, record, name)
                if isinstance(record, Record)
                else record.force_unit.si_name
            )
            parts.append(f"{label}: {_amount(value, unit)} rms of {name}")
    return (
        "Left by the fit: "
        + "; ".join(parts)
        + f". Condition {found.identifiability.condition:.3g}."
    )


def _warnings(found: FitResult, study: Any) -> list[str]:
    out = [*found.warnings, *record_warnings(found.records)]
    if study is not None:
        out += list(study.notes)
        strong = dict.fromkeys(_LACKS[f.name] for f in study.findings if f.strong)
        if strong:
            out.append(
                f"What the fit leaves is more than noise: {', '.join(strong)}. See below what is"
                " left."
            )
    return out


def _ended(motions: Mapping[str, Motion]) -> list[str]:
    return [
        f"{label}: the free run of the fitted machine ended early, at {m.end:g} s."
        for label, m in motions.items()
        if not m.complete
    ]


def _validation(score: Any) -> dict[str, Any]:
    objective = FreeRun() if isinstance(score, FreeRunScore) else score.objective
    run = score if isinstance(score, FreeRunScore) else score.run
    kind, length = type(objective).__name__, getattr(objective, "length", None)
    title = (
        f"{score.label}:"
        f" {'free run' if kind == 'FreeRun' else f'windows of {length:g} s' if length else kind}"
    )
    rows: list[tuple[str, str]] = []
    for name, value in score.rms.items():
        unit = score.units[name]
        rows.append((f"{name}, rms", _amount(value, unit)))
        if isinstance(run, FreeRunScore):
            rows += [
                (f"{says} moves it by", _amount(moved[name], unit))
                for says, moved in run.sensitivities.items()
            ]
            ends = " / ".join(_amount(x, unit) for x in run.ranges[name])
            rows.append((f"{run.says}: 10 / 50 / 90 %", ends))
    return {"title": title, "rows": rows}


def _outlook(outlook: Any) -> dict[str, Any]:
    head, rows = outlook.rows()
    return {"title": outlook.title, "head": head, "rows": rows, "sentences": outlook.sentences}


def _structures(comparison: Any) -> dict[str, Any]:
    head, cells = structures_rows(comparison)
    rows = [{"cells": row, "chosen": row[0] == comparison.best.name} for row in cells]
    panels = [
        (
            pictures(draw_laws(comparison))["wide"],
            "Friction of all structures over speed, the chosen one thick.",
        ),
        (
            pictures(draw_held_out(comparison))["wide"],
            "Their errors in what was left out of the fit, by repeats and by speeds.",
        ),
    ]
    return {"head": head, "rows": rows, "reason": comparison.reason, "panels": panels}


def _study(study: Any) -> list[dict[str, Any]]:
    many = len({f.record for f in study.findings}) > 1
    return [
        {
            "picture": pictures(draw_finding(f))["wide"],
            "sentence": f"{f.record}: {f.sentence}" if many else f.sentence,
            "strong": f.strong,
        }
        for f in drawn(study)
    ]


def _measured(found: FitResult, citation: str) -> list[tuple[str, str]]:
    out = [("source", citation)] if citation else []
    for label, r in found.records.items():
        if isinstance(r, Record):
            held = "held between samples" if r.hold else "joined by straight lines"
            inputs = f"inputs {', '.join(r.inputs)}, {held}" if r.inputs else "no inputs"
            out.append(
                (
                    label,
                    (
                        f"{r.n} samples, {r.duration:.6g} s, {r.rate:.4g} Hz; {inputs}; measured"
                        f" {', '.join(r.outputs)}"
                    ),
                )
            )
        else:
            out.append((label, f"a sweep of {r.n} rows"))
    return out


def _modelica(found: FitResult) -> str:
    try:
        return found.to_modelica_modifiers()
    except ValueError as why:
        return f"// {why}"


def _again(seed: int | None, versions: Mapping[str, str]) -> str:
    made = ", ".join(f"{name} {number}" for name, number in versions.items())
    return (
        "The same problem gives the same numbers on the same machine:"
        f" {'' if seed is None else f'seed {seed}; '}{made}."
    )


def _amount(value: float, unit: str) -> str:
    name, size = prefixed(unit, [value])
    return f"{value / size:.3g} {name}"
