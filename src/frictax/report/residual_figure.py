"""The picture of a residual study."""

import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from frictax.analysis import Finding, ResidualStudy
from frictax.analysis.residuals.regression import Curve
from frictax.analysis.residuals.study import NAMES
from frictax.text import prefixed

from .style import BACKWARD, CYCLE, FAINT, FORWARD, INK, canvas, headed, plain, style, zero_line

# inch: of a panel without its words, of the head, of a line of a sentence
_ROW, _HEAD, _LINE = 2.05, 0.45, 0.155
_COLOURS = {1: FORWARD, -1: BACKWARD, 0: CYCLE[0]}
_TITLES = {
    "whiteness": "autocorrelation",
    "speed": "over speed",
    "position": "over position",
    "direction": "forward and backward",
    "time": "drift",
    "ripple": "ripple over position",
}
_MOST = 3000


def draw_residuals(study: ResidualStudy, *, width: float = 9.0) -> Figure:
    """Draw a panel for each kind of finding, the strongest of its kind, its sentence below; the
    titles of strong ones are in ink.

    Points are means with their standard errors, of what is left after the other kinds have been
    taken out; lines are what was found. Blue is forward, orange backward.

    **Arguments:** `width` of the figure [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("residuals.png")`.
    """
    findings = drawn(study)
    rows = -(-len(findings) // 2)
    # Letters of the sentences are about 0.066 inch wide.
    words = [
        "\n".join(textwrap.wrap(sentence(study, f), int((width / 2 - 0.7) / 0.066)))
        for f in findings
    ]
    lines = [max(text.count("\n") + 1 for text in words[2 * i : 2 * i + 2]) for i in range(rows)]
    with style():
        heights = [_ROW + _LINE * n for n in lines]
        figure = canvas(width, sum(heights) + _HEAD)
        grid = figure.add_gridspec(
            2 * rows, 2, height_ratios=[h for n in lines for h in (_ROW, _LINE * n)]
        )
        for i, (finding, text) in enumerate(zip(findings, words, strict=True)):
            _panel(figure.add_subplot(grid[2 * (i // 2), i % 2]), finding)
            below = figure.add_subplot(grid[2 * (i // 2) + 1, i % 2])
            below.set_axis_off()
            colour = INK if finding.strong else FAINT
            below.text(0.0, 1.0, plain(text), ha="left", va="top", fontsize=8, color=colour)
        headed(figure, _head(study))
    return figure


def draw_finding(finding: Finding) -> Figure:
    """Draw one finding alone, without its sentence."""
    with style():
        figure = canvas(4.2, 0.55 * 4.2)
        _panel(figure.subplots(), finding)
    return figure


def drawn(study: ResidualStudy) -> list[Finding]:
    """The strongest finding of each kind, in the order in which they are drawn."""
    return [study[name] for name in NAMES if any(f.name == name for f in study.findings)]


def _head(study: ResidualStudy) -> str:
    records = dict.fromkeys(f.record for f in study.findings)
    names = {f.name for f in study.findings if f.strong}
    strong = ", ".join(_TITLES[name] for name in NAMES if name in names)
    says = f"strong: {strong}" if strong else "nothing strong"
    return f"{', '.join(records)}: residuals; {says}"


def sentence(study: ResidualStudy, finding: Finding) -> str:
    """What a finding says, and of which record where there are several."""
    many = len({f.record for f in study.findings}) > 1
    return f"{finding.record}: {finding.sentence}" if many else finding.sentence


def _panel(axes: Axes, finding: Finding) -> None:
    colour = INK if finding.strong else FAINT
    axes.set_title(_TITLES[finding.name], loc="left", fontsize=9.5, pad=4, color=colour)
    if not finding.curves:
        middle: dict[str, Any] = {"ha": "center", "va": "center", "transform": axes.transAxes}
        axes.text(0.5, 0.5, "not in this record", color=FAINT, **middle)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    (x_name, x_unit), (y_name, y_unit) = finding.x_label, finding.y_label
    xs, ys = [c.x for c in finding.curves], [c.y for c in finding.curves if c.kind != "band"]
    x_size, y_size = 1.0, 1.0
    if x_unit in ("m", "m/s", "rad", "rad/s"):
        x_unit, x_size = prefixed(x_unit, *(xs[-1:] if finding.name == "ripple" else xs))
    if y_unit != "1":
        y_unit, y_size = prefixed(y_unit, *ys)
    for curve in finding.curves:
        _curve(axes, curve, x_size, y_size)
    if finding.name != "ripple":
        zero_line(axes)
    axes.set_xlabel(f"{x_name} [{x_unit}]" if x_unit else x_name)
    axes.set_ylabel(f"{y_name} [{y_unit}]" if y_unit != "1" else y_name)
    if finding.name == "ripple":
        axes.set_xscale("log")
        axes.set_ylim(bottom=0.0)
    if finding.name == "direction":
        axes.set_xlim(-2.0, 2.0)
        axes.set_xticks([-1.0, 1.0], ["backward", "forward"])


def _curve(axes: Axes, curve: Curve, x_size: float, y_size: float) -> None:
    thin = max(-(-curve.x.size // _MOST), 1)
    x, y, colour = curve.x[::thin] / x_size, curve.y[::thin] / y_size, _COLOURS[curve.direction]
    if curve.kind == "band":
        axes.fill_between(x, -y, y, color=FAINT, alpha=0.25, lw=0)
    elif curve.kind == "line":
        axes.plot(x, y, color=colour, lw=1.1)
    else:
        options: dict[str, Any] = {"fmt": "o", "ms": 4, "lw": 1.0, "capsize": 2.5, "color": colour}
        error = None if curve.error is None else np.nan_to_num(curve.error[::thin] / y_size)
        axes.errorbar(x, y, error, **options)
