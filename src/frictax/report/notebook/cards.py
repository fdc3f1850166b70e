"""What a notebook shows of an object: a table that fits a screen, what to mind, and a small picture
where one says more. `print` says the whole.
"""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from frictax.analysis import (
    Comparison,
    Missing,
    Outlook,
    Posterior,
    Profile,
    ResidualStudy,
    StructureComparison,
    Uncertainty,
)
from frictax.analysis.selection.structures_text import structures_rows, title as structures_title
from frictax.contacts import AbstractContact
from frictax.engine import Result
from frictax.excitation import Design
from frictax.excitation.check import Check
from frictax.fitting import FitResult
from frictax.fitting.result.text import found_rows, quality
from frictax.fitting.result.units import unit_of
from frictax.measurements import Record, Sweep
from frictax.measurements.summary import deviation, headline, span
from frictax.mechanism import AbstractHybridSystem
from frictax.parameters import parameters
from frictax.text import amount, figures
from frictax.trajectory import Trajectory

from .. import words
from ..modes import MODES, mode_spans
from .sparkline import curve, dots, legend, strip

_ROWS, _SENTENCES = 14, 4  # at most: what fits a screen
_NAME, _SENTENCE = 60, 500  # letters


def fit_html(found: FitResult) -> str:
    """A fit: its numbers, how good it is, and what it warns of."""
    if found.of_sweep:
        title = f"{type(found.law).__name__} friction of {_swept(found.sweep)}"
        lines = [*words.formulas(found), *quality(found)]
    else:
        kind, by = type(found.model).__name__, type(found.problem.objective).__name__
        title = f"{kind} fitted to {_some(found.records)} by {by}"
        count = len(found.rms)
        said, told = quality(found)[:count], quality(found)[count:]
        lines = [*_first(said, "records"), *told]
    head = ("parameter", "value", "unit", "std. error", f"{100 * found.level:g} % interval")
    return card(title, (head, found_rows(found)), "lrlrl", lines, found.warnings)


def own_machine_html(machine: AbstractHybridSystem) -> str:
    """A machine of the user's own: its parameters with their values and units, and its states."""
    unit = unit_of({}, machine)
    rows = []
    for p in parameters(machine):
        values = ", ".join(figures(float(x), 6) for x in np.ravel(np.asarray(p.value)))
        rows.append((p.path, values, unit(p)))
    states = machine.states()
    title = f"{type(machine).__name__}{': ' if states else ''}{_some(states)}"
    return card(title, (("parameter", "value", "unit"), rows), "lrl")


def record_html(record: Record) -> str:
    """A record: each channel with its range and its course."""
    after = record.gaps + 1
    t = np.insert(record.t, after, record.t[after - 1])
    between = "held between samples" if record.hold else "interpolated linearly"
    channels = [("input", name, u, between) for name, u in record.inputs.items()]
    channels += [
        ("output", name, y, deviation(record.sd[name], record.units[name]))
        for name, y in record.outputs.items()
    ]
    rows = [
        (kind, name, span(x, record.units[name]), more, _course(t, np.insert(x, after, np.nan)))
        for kind, name, x, more in channels
    ]
    head = ("", "channel", "range", "", f"over {record.duration:.4g} s")
    return card(headline(record), (head, rows), "lllll", (), record.warnings)


def sweep_html(sweep: Sweep) -> str:
    """A sweep: what was measured, and its points."""
    moving = ~sweep.breakaway
    v, f = sweep.velocity[moving], sweep.force[moving]
    _, *rows = words.measured(sweep, sweep.force_unit)
    caption = Markup("{} force over velocity").format(dots(v, f, "force over velocity"))
    return card(_swept(sweep), (("", ""), rows), "ll", (), sweep.notes, picture=caption)


def run_html(run: Trajectory) -> str:
    """A run: where each body went, and which mode each contact was in."""
    title = f"Trajectory of {_some(run.names)}"
    shape = run.path.ys.shape
    if len(shape) != 2:
        one = "jax.tree.map(lambda x: x[0], run) is its first run"
        return card(title, lines=[f"A batch of shape {shape[:-2]}: {one}."])
    lay, mechanism = run.system.layout, run.system.mechanism
    ts, ys = np.asarray(run.ts), np.asarray(run.ys)
    rows, seen = [], []
    for i, body in enumerate(lay.coordinates):
        part = lay.bodies[body]
        s, unit = ys[:, i], "rad" if getattr(mechanism.parts[part], "rotational", False) else "m"
        name = f"{run.names[part]}.{'phi' if unit == 'rad' else 's'}"
        rows.append((name, _range(s, unit), _course(ts, s, (300, 26))))
    contacts = [name for name in run.names if isinstance(mechanism[name], AbstractContact)]
    for name in contacts:
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
    lines = [legend(seen)] if seen else []
    times = f"{len(ts)} times from {float(ts[0]):g} to {float(ts[-1]):g} s"
    return card(
        f"{title}: {times}, {int(run.events.count)} mode changes",
        (("", "", "over time"), rows),
        "lll",
        lines,
        [] if ended else [f"The run did not reach its end. {Result[run.result]}"],
    )


def comparison_html(made: Comparison) -> str:
    """Laws beside each other, the one to take in bold."""
    title = f"Laws for {_swept(made.sweep)}"
    return card(title, made.as_table(), "lrrrrrl", [made.reason], chosen=made.best.name)


def structures_html(made: StructureComparison) -> str:
    """Structures beside each other, the one to take in bold, and what speaks against each."""
    head, rows = structures_rows(made)
    remarks = [f"{row.name}: {x}" for row in made.rows for x in (*row.implausible, *row.doubts)]
    sides = "l" + "r" * (len(head) - 2) + "l"
    title = structures_title(made, _some(made.records))
    return card(title, (head, rows), sides, [made.reason], remarks, chosen=made.best.name)


def study_html(study: ResidualStudy) -> str:
    """What is left of a fit: strong findings in their words, all others by name."""
    strong = [f for f in study.findings if f.strong]
    weak = dict.fromkeys(f.name for f in study.findings if not f.strong)
    title = f"Residuals: {len(strong)} of {len(study.findings)} findings are strong"
    rows = [(f.name, f.record, f.sentence) for f in strong]
    nothing = f"Not significant: {', '.join(weak)}." if weak else ""
    lines = [nothing] if nothing else []
    return card(title, (("finding", "record", ""), rows), "lll", lines, study.notes)


def outlook_html(outlook: Outlook) -> str:
    """What a record can tell, and which other experiment would."""
    lines = [f"condition {outlook.identifiability.condition:.3g}"]
    return card(outlook.title, outlook.rows(), "lrlrrl", lines, outlook.sentences)


def posterior_html(posterior: Posterior) -> str:
    """Medians and intervals of draws, each with its density."""
    head, rows = posterior.rows()
    draws = posterior.draws.reshape(-1, posterior.draws.shape[-1])
    drawn = [(*row, _density(x, row[0])) for row, x in zip(rows, draws.T, strict=True)]
    return card(posterior.title, ((*head, "density"), drawn), "lrlrlrrl", (), posterior.warnings)


def profile_html(profile: Profile) -> str:
    """The profile's interval in words, and its curve below the threshold."""
    kept = profile.ratio <= 4 * profile.threshold
    seen = profile.values[kept]
    # Its root is nearly straight on either side of the best, whose ratio is 0.
    root = np.sign(seen - profile.best) * np.sqrt(np.maximum(profile.ratio[kept], 0.0))
    x = np.linspace(seen[0], seen[-1], 61) if seen.size else seen
    ratio = np.interp(x, seen, root) ** 2 if seen.size else x
    picture = curve(x, ratio, "likelihood ratio", level=profile.threshold, size=(200, 70))
    unit = f" [{profile.unit}]" if profile.unit not in ("", "1") else ""
    caption = Markup("{} likelihood ratio over {}{}; dashed: the threshold").format(
        picture, _clipped(profile.name), unit
    )
    return card(profile.sentence, picture=caption if kept.any() else "")


def uncertainty_html(account: Uncertainty) -> str:
    """Errors by one account of the residuals."""
    return card(account.title, account.rows(), "lrlrlr", (), account.warnings)


def missing_html(table: Missing) -> str:
    """The terms that a machine may lack."""
    title = "Missing terms"
    return card(title, table.rows(), "lllllr", table.sentences)


def design_html(made: Design) -> str:
    """An experiment that was designed: its drive, and what it will tell beside others."""
    head, rows = made.rows()
    sides = "lrlr" + "r" * (len(head) - 4)
    drive = curve(made.t, made.excitation, f"{made.drive} over time", size=(300, 50))
    return card(made.title, (head, rows), sides, made.lines, made.warnings, picture=drive)


def check_html(made: Check) -> str:
    """What became of simulated records of a designed experiment."""
    return card(made.title, made.rows(), "lrr")


def card(
    title: str,
    table: tuple[Sequence[str], Sequence[Sequence[Any]]] = ((), ()),
    sides: str = "",
    lines: Iterable[str] = (),
    warnings: Iterable[str] = (),
    *,
    picture: str = "",
    chosen: str | None = None,
) -> str:
    """Title, table, picture, sentences and warnings; what is too much for a screen is counted.

    `sides`: l or r for each column; `chosen`: the first cell of the row in bold.
    """
    head, rows = table
    warned = list(warnings)
    counted = ((len(rows), _ROWS, "rows"), (len(warned), _SENTENCES, "warnings"))
    left = [f"{count - most} more {what}" for count, most, what in counted if count > most]
    return _template().render(
        title=_clipped(title, _SENTENCE),
        head=head,
        rows=[
            [_clipped(name), *(_clipped(cell, _SENTENCE) for cell in cells)]
            for name, *cells in rows[:_ROWS]
        ],
        sides=["left" if side == "l" else "right" for side in sides],
        lines=[_clipped(line, _SENTENCE) for line in lines],
        warnings=[_clipped(sentence, _SENTENCE) for sentence in warned[:_SENTENCES]],
        picture=picture,
        chosen=None if chosen is None else _clipped(chosen),
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


def _clipped(text: Any, most: int = _NAME) -> Any:
    """Text without its middle where it is long; a picture as it is."""
    if isinstance(text, Markup) or len(text) <= most:
        return text
    return f"{text[: most // 2]}…{text[-(most // 2 - 1) :]}"


def _some(names: Iterable[str]) -> str:
    """The first names, and how many there are."""
    all_names = [_clipped(name, 30) for name in names]
    shown = ", ".join(all_names[:5])
    return shown if len(all_names) <= 5 else f"{shown} and {len(all_names) - 5} more"


def _swept(sweep: Sweep) -> str:
    return repr(sweep).removeprefix("Sweep(").removesuffix(")")


def _first(lines: Sequence[str], what: str) -> list[str]:
    left = len(lines) - _SENTENCES
    return [*lines[:_SENTENCES], *([f"and {left} more {what}"] if left > 0 else [])]


def _course(x: np.ndarray, y: np.ndarray, size: tuple[int, int] = (160, 26)) -> Markup:
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
