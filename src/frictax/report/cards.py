"""Cards of objects for a notebook: a table that fits a screen, warnings, and a small picture.

`print` shows the whole result.
"""

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from frictax.analysis import (
    Comparison,
    Missing,
    Posterior,
    Profile,
    ResidualStudy,
    StructureComparison,
)
from frictax.analysis.selection.structure import remarks, structures_title
from frictax.contacts import AbstractContact
from frictax.engine import Result
from frictax.excitation import Design
from frictax.fitting import FitResult
from frictax.fitting.result.text import quality
from frictax.fitting.result.units import unit_of
from frictax.measurements import Record, Sweep
from frictax.measurements.summary import deviation, headline, span
from frictax.mechanism import AbstractHybridSystem
from frictax.parameters import parameters
from frictax.summary import Summarised, Summary
from frictax.text import amount, figures
from frictax.trajectory import Trajectory

from . import sweep_text
from .modes import MODES, mode_spans
from .sparkline import curve, dots, legend, strip

_MOST_ROWS, _MOST_SENTENCES = 14, 4  # these fit a screen
_NAME, _SENTENCE = 60, 500  # [characters] longest name and sentence that are not shortened


def summary_html(result: Summarised) -> str:
    """Show the summary that `print` shows."""
    return card(result._summary())


def fit_html(found: FitResult) -> str:
    """Show a fit: its estimates, its quality, and its warnings."""
    lines = quality(found)
    if found.of_sweep:
        title = f"{type(found.law).__name__} friction of {_sweep_in_words(found.sweep)}"
        lines = [*sweep_text.formulas(found), *lines]
    else:
        kind, by = type(found.model).__name__, type(found.problem.objective).__name__
        title = f"{kind} fitted to {_some(found.records)} by {by}"
        count = len(found.rms)
        lines = [*_first(lines[:count], "records"), *lines[count:]]
    return card(dataclasses.replace(found._summary(), title=title, sentences=lines))


def own_machine_html(machine: AbstractHybridSystem) -> str:
    """Show a machine of the user's own: its states, and its parameters with values and units."""
    unit = unit_of({}, machine)
    rows = []
    for p in parameters(machine):
        values = ", ".join(figures(float(x), 6) for x in np.ravel(np.asarray(p.value)))
        rows.append((p.path, values, unit(p)))
    states = machine.states()
    title = f"{type(machine).__name__}{': ' if states else ''}{_some(states)}"
    return card(Summary(title, (("parameter", "value", "unit"), rows), "lrl"))


def record_html(record: Record) -> str:
    """Show a record: each channel with its range and its curve."""
    after = record.gaps + 1
    t = np.insert(record.t, after, record.t[after - 1])
    between = "held between samples" if record.hold else "interpolated linearly"
    channels = [("input", name, u, between) for name, u in record.inputs.items()]
    channels += [
        ("output", name, y, deviation(record.sd[name], record.units[name]))
        for name, y in record.outputs.items()
    ]
    rows = [
        (kind, name, span(x, record.units[name]), more, _curve(t, np.insert(x, after, np.nan)))
        for kind, name, x, more in channels
    ]
    head = ("", "channel", "range", "", f"over {record.duration:.4g} s")
    return card(Summary(headline(record), (head, rows), "lllll", notices=record.warnings))


def sweep_html(sweep: Sweep) -> str:
    """Show a sweep: what was measured, and its points."""
    moving = ~sweep.breakaway
    v, f = sweep.velocity[moving], sweep.force[moving]
    _, *rows = sweep_text.describe_sweep(sweep, sweep.force_unit)
    picture = Markup("{} force over velocity").format(dots(v, f, "force over velocity"))
    title = _sweep_in_words(sweep)
    return card(Summary(title, (("", ""), rows), "ll", notices=sweep.notes, picture=picture))


def run_html(run: Trajectory) -> str:
    """Show a run: the motion of each body, and the modes of each contact."""
    title = f"Trajectory of {_some(run.names)}"
    shape = run.path.ys.shape
    if len(shape) != 2:
        one = "jax.tree.map(lambda x: x[0], run) is its first run"
        return card(Summary(title, sentences=[f"A batch of shape {shape[:-2]}: {one}."]))
    lay, mechanism = run.system.layout, run.system.mechanism
    ts, ys = np.asarray(run.ts), np.asarray(run.ys)
    rows, seen = [], []
    for i, body in enumerate(lay.coordinates):
        part = lay.bodies[body]
        s, unit = ys[:, i], "rad" if getattr(mechanism.parts[part], "rotational", False) else "m"
        name = f"{run.names[part]}.{'phi' if unit == 'rad' else 's'}"
        rows.append((name, _range(s, unit), _curve(ts, s, (300, 26))))
    for name in (name for name in run.names if isinstance(mechanism[name], AbstractContact)):
        spans = mode_spans(run, name)
        seen += [mode for mode, _, _ in spans]
        lasted = {m: sum(b - a for mode, a, b in spans if mode is m) for m in MODES}
        shares = [
            f"{100 * time / max(sum(lasted.values()), 1e-300):.3g} % {MODES[mode][0]}"
            for mode, time in lasted.items()
            if time > 0
        ]
        band = strip(spans, (float(ts[0]), float(ts[-1])), f"the modes of {name} over time")
        rows.append((name, ", ".join(shares), band))
    ended = bool(run.result == Result.successful)
    failed = [] if ended else [f"The run did not reach its end. {Result[run.result]}"]
    times = f"{len(ts)} times from {float(ts[0]):g} to {float(ts[-1]):g} s"
    title = f"{title}: {times}, {int(run.events.count)} mode changes"
    lines = [legend(seen)] if seen else []
    return card(Summary(title, (("", "", "over time"), rows), "lll", lines, failed))


def comparison_html(made: Comparison) -> str:
    """Show laws beside each other, the chosen one in bold."""
    title = f"Laws for {_sweep_in_words(made.sweep)}"
    return card(dataclasses.replace(made._summary(), title=title))


def structures_html(made: StructureComparison) -> str:
    """Show structures beside each other, the chosen one in bold, and the doubts about each."""
    title, doubts = structures_title(made, _some(made.records)), remarks(made)
    shown = dataclasses.replace(made._summary(), title=title)
    return card(dataclasses.replace(shown, sentences=[made.reason], notices=doubts))


def study_html(study: ResidualStudy) -> str:
    """Show the patterns of the residuals: strong findings in words, the others by name."""
    strong = [f for f in study.findings if f.strong]
    weak = dict.fromkeys(f.name for f in study.findings if not f.strong)
    title = f"Residuals: {len(strong)} of {len(study.findings)} findings are strong"
    rows = [(f.name, f.record, f.sentence) for f in strong]
    lines = [f"Not significant: {', '.join(weak)}."] if weak else []
    return card(Summary(title, (("finding", "record", ""), rows), "lll", lines, study.notes))


def posterior_html(posterior: Posterior) -> str:
    """Show medians and intervals of the draws, each with its density."""
    head, rows = posterior.rows()
    draws = posterior.draws.reshape(-1, posterior.draws.shape[-1])
    drawn = [(*row, _density(x, row[0])) for row, x in zip(rows, draws.T, strict=True)]
    table = (*head, "density"), drawn
    return card(Summary(posterior.title, table, "lrlrlrrl", notices=posterior.warnings))


def profile_html(profile: Profile) -> str:
    """Show the profile's interval in words, and its curve below the threshold."""
    kept = profile.ratio <= 4 * profile.threshold
    seen = profile.values[kept]
    # The root of the ratio is nearly straight on either side of the best, where it is 0.
    root = np.sign(seen - profile.best) * np.sqrt(np.maximum(profile.ratio[kept], 0.0))
    x = np.linspace(seen[0], seen[-1], 61) if seen.size else seen
    ratio = np.interp(x, seen, root) ** 2 if seen.size else x
    picture = curve(x, ratio, "likelihood ratio", level=profile.threshold, size=(200, 70))
    unit = f" [{profile.unit}]" if profile.unit not in ("", "1") else ""
    caption = Markup("{} likelihood ratio over {}{}; dashed: the threshold").format(
        picture, _shorten(profile.name), unit
    )
    return card(Summary(profile.sentence, picture=caption if kept.any() else ""))


def missing_html(missing: Missing) -> str:
    """Show the terms that a machine may lack."""
    return card(Summary("Missing terms", missing.rows(), "lllllr", missing.sentences))


def design_html(made: Design) -> str:
    """Show a designed experiment: its drive, and the expected errors beside other experiments."""
    drive = curve(made.t, made.excitation, f"{made.drive} over time", size=(300, 50))
    return card(dataclasses.replace(made._summary(), picture=drive))


def card(shown: Summary) -> str:
    """Return a summary as HTML; rows and notices beyond one screen are counted only."""
    head, rows = shown.table
    notices, sentences = list(shown.notices), [s for s in (*shown.above, *shown.sentences) if s]
    counted = ((len(rows), _MOST_ROWS, "rows"), (len(notices), _MOST_SENTENCES, "warnings"))
    left = [f"{count - most} more {what}" for count, most, what in counted if count > most]
    return _template().render(
        title=_shorten(shown.title, _SENTENCE),
        head=head,
        rows=[
            [_shorten(name), *(_shorten(cell, _SENTENCE) for cell in cells)]
            for name, *cells in rows[:_MOST_ROWS]
        ],
        sides=["left" if side == "l" else "right" for side in shown.sides],
        lines=[_shorten(line, _SENTENCE) for line in sentences],
        warnings=[_shorten(sentence, _SENTENCE) for sentence in notices[:_MOST_SENTENCES]],
        picture=shown.picture,
        chosen=None if shown.chosen is None else _shorten(shown.chosen),
        more=f"And {' and '.join(left)}: print it to see all." if left else "",
    )


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("frictax.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("notebook.html.j2")


def _shorten(text: Any, most: int = _NAME) -> Any:
    """Cut the middle out of a long text; a picture stays as it is."""
    if isinstance(text, Markup) or len(text) <= most:
        return text
    return f"{text[: most // 2]}…{text[-(most // 2 - 1) :]}"


def _some(names: Iterable[str]) -> str:
    """Return the first names, and the number of the others."""
    all_names = [_shorten(name, 30) for name in names]
    shown = ", ".join(all_names[:5])
    return shown if len(all_names) <= 5 else f"{shown} and {len(all_names) - 5} more"


def _sweep_in_words(sweep: Sweep) -> str:
    return repr(sweep).removeprefix("Sweep(").removesuffix(")")


def _first(lines: Sequence[str], what: str) -> list[str]:
    left = len(lines) - _MOST_SENTENCES
    return [*lines[:_MOST_SENTENCES], *([f"and {left} more {what}"] if left > 0 else [])]


def _curve(x: np.ndarray, y: np.ndarray, size: tuple[int, int] = (160, 26)) -> Markup:
    return curve(x, y, "its course over time", size=size)


def _range(values: np.ndarray, unit: str) -> str:
    seen = values[np.isfinite(values)]
    if not seen.size:
        return ""
    return f"{amount(float(np.min(seen)), unit)} to {amount(float(np.max(seen)), unit)}"


def _density(draws: np.ndarray, name: str) -> Markup:
    height, edges = np.histogram(draws[np.isfinite(draws)], bins=40)
    middles = 0.5 * (edges[1:] + edges[:-1])
    return curve(middles, height.astype(float), f"density of {name}", size=(110, 26))
