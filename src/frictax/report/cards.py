"""HTML cards that a notebook shows for results: short tables, warnings, small SVG pictures."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
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
from frictax.contacts import AbstractContact, Mode
from frictax.engine import Result
from frictax.excitation import Design
from frictax.fitting import FitResult
from frictax.fitting.result.text import quality
from frictax.fitting.result.units import unit_of
from frictax.measurements import Record, Sweep
from frictax.measurements.record import channel_rows, headline, span
from frictax.mechanism import AbstractHybridSystem
from frictax.parameters import parameters
from frictax.summary import Summarised, Summary
from frictax.text import amount, figures
from frictax.trajectory import Trajectory

from . import sweep_text
from .modes import MODES, mode_spans

_MOST_ROWS, _MOST_SENTENCES = 14, 4  # largest numbers of table rows, and of warnings or records
_NAME, _SENTENCE = 60, 500  # [characters] longest name and sentence that are not shortened
_FINE = 8  # SVG units per pixel; coordinates are rounded to integer units

Size = tuple[int, int]  # [pixels] width and height of an SVG picture


def summary_html(result: Summarised) -> str:
    """Return the HTML card of the summary that `print` shows for a result."""
    return card(result._summary())


def fit_html(found: FitResult) -> str:
    """Return the card of a fit: its estimates, its quality, and its warnings."""
    lines = quality(found)
    if found.of_sweep:
        title = f"{type(found.law).__name__} friction of {_sweep_in_words(found.sweep)}"
        lines = [*sweep_text.formulas(found), *lines]
    else:
        kind, by = type(found.model).__name__, type(found.problem.objective).__name__
        title = f"{kind} fitted to {_some(found.records)} by {by}"
        count = len(found.rms)  # `lines` begins with one line per record
        left = count - _MOST_SENTENCES
        more = [f"and {left} more records"] if left > 0 else []
        lines = [*lines[: min(count, _MOST_SENTENCES)], *more, *lines[count:]]
    return card(dataclasses.replace(found._summary(), title=title, sentences=lines))


def own_machine_html(machine: AbstractHybridSystem) -> str:
    """Return the card of a machine of a user's class: states, and parameters with units."""
    unit = unit_of({}, machine)
    rows = []
    for p in parameters(machine):
        values = ", ".join(figures(float(x), 6) for x in np.ravel(np.asarray(p.value)))
        rows.append((p.path, values, unit(p)))
    states = machine.states()
    title = f"{type(machine).__name__}{': ' if states else ''}{_some(states)}"
    return card(Summary(title, (("parameter", "value", "unit"), rows), "lrl"))


def record_html(record: Record) -> str:
    """Return the card of a record: each channel with its range and its curve."""
    after = record.gaps + 1
    t = np.insert(record.t, after, record.t[after - 1])
    rows = [
        (kind, name, span(x, record.units[name]), more, _curve(t, np.insert(x, after, np.nan)))
        for kind, name, x, more in channel_rows(record)
    ]
    head = ("", "channel", "range", "", f"over {record.duration:.4g} s")
    return card(Summary(headline(record), (head, rows), "lllll", notices=record.warnings))


def sweep_html(sweep: Sweep) -> str:
    """Return the card of a sweep: a description of the measurement, and its points."""
    moving = ~sweep.breakaway
    v, f = sweep.velocity[moving], sweep.force[moving]
    _, *rows = sweep_text.describe_sweep(sweep, sweep.force_unit)
    picture = Markup("{} force over velocity").format(dots(v, f, "force over velocity"))
    title = _sweep_in_words(sweep)
    return card(Summary(title, (("", ""), rows), "ll", notices=sweep.notes, picture=picture))


def run_html(run: Trajectory) -> str:
    """Return the card of a simulation: motion of each body, and modes of each contact."""
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
        seen_s = s[np.isfinite(s)]
        ends = [amount(float(f(seen_s)), unit) for f in (np.min, np.max)] if seen_s.size else []
        rows.append((name, " to ".join(ends), _curve(ts, s, (300, 26))))
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
    failed = [] if bool(run.result == Result.successful) else [Result[run.result]]
    if failed and not bool(run.result == Result.inaccurate):  # an inaccurate run reached its end
        failed = [f"The run did not reach its end. {failed[0]}"]
    times = f"{len(ts)} times from {float(ts[0]):g} to {float(ts[-1]):g} s"
    title = f"{title}: {times}, {int(run.events.count)} mode changes"
    lines = [legend(seen)] if seen else []
    return card(Summary(title, (("", "", "over time"), rows), "lll", lines, failed))


def comparison_html(made: Comparison) -> str:
    """Return the card of a comparison of laws, with the chosen law in bold."""
    title = f"Laws for {_sweep_in_words(made.sweep)}"
    return card(dataclasses.replace(made._summary(), title=title))


def structures_html(made: StructureComparison) -> str:
    """Return the card of compared structures, with remarks; the chosen structure is bold."""
    title, doubts = structures_title(made, _some(made.records)), remarks(made)
    shown = dataclasses.replace(made._summary(), title=title)
    return card(dataclasses.replace(shown, sentences=[made.reason], notices=doubts))


def study_html(study: ResidualStudy) -> str:
    """Return the card of residuals: sentences on significant patterns, names of other patterns."""
    strong = [f for f in study.findings if f.strong]
    weak = dict.fromkeys(f.name for f in study.findings if not f.strong)
    title = f"Residuals: {len(strong)} of {len(study.findings)} findings are strong"
    rows = [(f.name, f.record, f.sentence) for f in strong]
    lines = [f"Not significant: {', '.join(weak)}."] if weak else []
    return card(Summary(title, (("finding", "record", ""), rows), "lll", lines, study.notes))


def posterior_html(posterior: Posterior) -> str:
    """Return the card of posterior samples: median, interval and density of each parameter."""
    head, rows = posterior.rows()
    draws, drawn = posterior.draws.reshape(-1, posterior.draws.shape[-1]), []
    for row, x in itertools.zip_longest(rows, draws.T):
        if x is None:  # Tied parameters, the last rows, do not have draws of their own.
            drawn.append((*row, ""))
            continue
        height, edges = np.histogram(x[np.isfinite(x)], bins=40)
        middles = 0.5 * (edges[1:] + edges[:-1])
        density = curve(middles, height.astype(float), f"density of {row[0]}", size=(110, 26))
        drawn.append((*row, density))
    table = (*head, "density"), drawn
    return card(Summary(posterior.title, table, "lrlrlrrl", notices=posterior.warnings))


def profile_html(profile: Profile) -> str:
    """Return the card of a profile likelihood: interval, and curve up to 4 times the threshold."""
    kept = profile.ratio <= 4 * profile.threshold
    seen = profile.values[kept]
    # Interpolate the signed square root of the likelihood ratio, which is nearly linear in x.
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
    """Return the card of the terms that a machine may lack."""
    return card(Summary("Missing terms", missing.rows(), "lllllr", missing.sentences))


def design_html(made: Design) -> str:
    """Return the card of a designed experiment: excitation, and expected standard errors."""
    drive = curve(made.t, made.excitation, f"{made.drive} over time", size=(300, 50))
    return card(dataclasses.replace(made._summary(), picture=drive))


def card(shown: Summary) -> str:
    """Return a summary as HTML. Rows and notices above the limits are counted, not shown."""
    head, rows = shown.table
    notices, sentences = list(shown.notices), [s for s in (*shown.above, *shown.sentences) if s]
    counted = ((len(rows), _MOST_ROWS, "rows"), (len(notices), _MOST_SENTENCES, "warnings"))
    left = [f"{count - most} more {what}" for count, most, what in counted if count > most]
    return template("notebook.html.j2").render(
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
def template(name: str) -> jinja2.Template:
    loader, strict = jinja2.PackageLoader("frictax.report"), jinja2.StrictUndefined
    return jinja2.Environment(loader=loader, autoescape=True, undefined=strict).get_template(name)


def _shorten(text: Any, most: int = _NAME) -> Any:
    """In a text longer than `most`, replace the middle by an ellipsis. Keep a picture unchanged."""
    if isinstance(text, Markup) or len(text) <= most:
        return text
    return f"{text[: most // 2]}…{text[-(most // 2 - 1) :]}"


def _some(names: Iterable[str]) -> str:
    """Return the first five names, and the number of further names."""
    all_names = [_shorten(name, 30) for name in names]
    shown = ", ".join(all_names[:5])
    return shown if len(all_names) <= 5 else f"{shown} and {len(all_names) - 5} more"


def _sweep_in_words(sweep: Sweep) -> str:
    return repr(sweep).removeprefix("Sweep(").removesuffix(")")


def _curve(x: np.ndarray, y: np.ndarray, size: tuple[int, int] = (160, 26)) -> Markup:
    return curve(x, y, "its course over time", size=size)


def curve(
    x: np.ndarray, y: np.ndarray, says: str, *, level: float | None = None, size: Size = (160, 26)
) -> Markup:
    """Return an SVG curve of y over x, with gaps at nan and infinity, and a line at `level`."""
    seen = np.isfinite(x) & np.isfinite(y)
    heights = y[seen] if level is None else np.append(y[seen], level)
    right, up = _scale(x, size[0]), _scale(heights, size[1], upward=True)
    parts = []
    edges = np.flatnonzero(np.diff(seen.astype(int), prepend=0, append=0))
    for a, b in edges.reshape(-1, 2):
        at, height = right(x[a:b]), y[a:b]
        if at.size > 160:  # draw only the lowest and highest point of each of 80 columns
            column = (at - 2 * _FINE) * 80 // ((size[0] - 4) * _FINE + 1)
            groups = np.split(np.arange(at.size), np.flatnonzero(np.diff(column)) + 1)
            picks = (np.argmin, np.argmax)
            kept = sorted({int(g[pick(height[g])]) for g in groups for pick in picks})
            at, height = at[kept], height[kept]
        points = [f"{i} {j}" for i, j in zip(at, up(height), strict=True)]
        parts.append(f"M{'L'.join(points if len(points) > 1 else 2 * points)}")
    lines = [_path("".join(parts))]
    if level is not None:
        lines.append(_horizontal(int(up(np.array([level]))[0]), size, "3 3"))
    return _picture(size, says, lines)


def dots(x: np.ndarray, y: np.ndarray, says: str, *, size: Size = (200, 70)) -> Markup:
    """Return an SVG with at most 240 points of y over x, and a dashed line at y = 0."""
    thin = slice(None, None, max(len(x) // 120, 1))
    right, up = _scale(np.append(x, 0.0), size[0]), _scale(np.append(y, 0.0), size[1], upward=True)
    points = zip(right(x[thin]), up(y[thin]), strict=True)
    path = "".join(f"M{i} {j}h0" for i, j in points)
    zero = _horizontal(int(up(np.zeros(1))[0]), size, "2 3")
    return _picture(size, says, [zero, _path(path, width=4.0)])


def strip(
    spans: Sequence[tuple[Mode, float, float]],
    ends: tuple[float, float],
    says: str,
    *,
    size: Size = (300, 14),
) -> Markup:
    """Return an SVG strip over time that shows each mode by its colour; the free mode is not
    coloured. Modes shorter than 1/120 of the time axis may be missing.
    """
    steps = 120  # number of coloured steps, each 2.5 pixels wide in a strip of 300 pixels
    edges = np.linspace(*ends, steps + 1)
    middles = 0.5 * (edges[1:] + edges[:-1])
    begins = np.array([begin for _, begin, _ in spans] or [np.inf])
    which = np.searchsorted(begins, middles, side="right") - 1
    which[middles > (spans[-1][2] if spans else -np.inf)] = -1
    wide, high = size[0] * _FINE, size[1] * _FINE
    bands: dict[str, str] = {}
    for a, b in itertools.pairwise([0, *(np.flatnonzero(np.diff(which)) + 1), steps]):
        mode = spans[which[a]][0] if which[a] >= 0 else Mode.FREE
        if mode in MODES and mode is not Mode.FREE:
            left, right = (round(i * wide / steps) for i in (a, b))
            colour = MODES[mode][1]
            bands[colour] = bands.get(colour, "") + f"M{left} {high // 2}h{right - left}"
    lines = [f'<path d="{d}" stroke="{c}" stroke-width="{high}"/>' for c, d in bands.items()]
    seen = round(int(np.sum(which >= 0)) * wide / steps)
    frame = _path(f"M0 0h{seen}v{high}h-{seen}z", width=0.8)
    return _picture(size, says, [*lines, frame] if seen else [])


def legend(modes: Iterable[Mode]) -> Markup:
    """Return an HTML legend: for each mode, a field of its colour and its name."""
    here = set(modes)
    swatches = [
        Markup("{} {}").format(strip([(mode, 0.0, 1.0)], (0.0, 1.0), word, size=(14, 10)), word)
        for mode, (word, _, _) in MODES.items()
        if mode in here
    ]
    return Markup(" &nbsp; ").join(swatches)


def _scale(
    values: np.ndarray, pixels: int, *, upward: bool = False
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from values to SVG coordinates. If all values are equal, use the middle."""
    largest = float(np.max(np.abs(values), initial=0.0)) or 1.0  # scaling prevents overflow
    scaled = values / largest if values.size else np.zeros(1)
    low, width = float(np.min(scaled)), float(np.max(scaled) - np.min(scaled))

    def coordinates(some: np.ndarray) -> np.ndarray:
        share = (some / largest - low) / width if width > 0 else np.full(len(some), 0.5)
        share = 1.0 - share if upward else share
        return np.rint(share * (pixels - 4) * _FINE).astype(int) + 2 * _FINE

    return coordinates


def _horizontal(height: int, size: Size, dashes: str) -> str:
    right = (size[0] - 2) * _FINE
    return _path(f"M{2 * _FINE} {height}L{right} {height}", dashes)


def _path(d: str, dashes: str = "", width: float = 1.1) -> str:
    more = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<path d="{d}" fill="none" stroke="currentColor" stroke-width="{width}"{more}'
        ' stroke-linecap="round" stroke-linejoin="round" vector-effect="non-scaling-stroke"/>'
    )


def _picture(size: Size, says: str, lines: list[str]) -> Markup:
    wide, high = size
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{}" width="{}" height="{}"'
        ' viewBox="0 0 {} {}" style="vertical-align: middle">{}</svg>'
    ).format(says, wide, high, wide * _FINE, high * _FINE, Markup("".join(lines)))
