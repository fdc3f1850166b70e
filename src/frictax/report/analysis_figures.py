"""Figures of analyses: patterns of residuals, posterior samples, and compared structures."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter, StrMethodFormatter

from frictax.analysis import Derived, Finding, Posterior, ResidualStudy, StructureComparison
from frictax.analysis.residuals.study import NAMES
from frictax.analysis.selection.selection_rule import visited_laws
from frictax.parameters import UnknownName
from frictax.text import prefix_unit

from .style import (
    BACKWARD,
    CYCLE,
    FAINT,
    FORWARD,
    INK,
    canvas,
    literal_text,
    style,
    write_heading,
    zero_line,
)

_PAGE_WIDTH = 4.2  # [inch] width of one of two pictures side by side on a page
_TITLES = {
    "whiteness": "autocorrelation",
    "speed": "over speed",
    "position": "over position",
    "direction": "forward and backward",
    "time": "drift",
    "ripple": "ripple over position",
}


def draw_residuals(study: ResidualStudy, *, width: float = 9.0) -> Figure:
    """Draw the strongest residual pattern (finding) of each kind in a panel, with a sentence below.
    Title and sentence are black for a significant finding, and grey for other findings.

    Points are mean residuals with standard errors, after subtracting the patterns of other kinds.
    Lines are the fitted patterns. Blue is forward motion, orange backward motion.

    **Arguments:** `width` of the figure [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("residuals.png")`.
    """
    findings = strongest_findings(study)
    rows = -(-len(findings) // 2)
    # A letter of a sentence is about 0.066 inch wide.
    words = [
        "\n".join(textwrap.wrap(finding_sentence(study, f), int((width / 2 - 0.7) / 0.066)))
        for f in findings
    ]
    lines = [max(text.count("\n") + 1 for text in words[2 * i : 2 * i + 2]) for i in range(rows)]
    with style():
        panel, head, line = 2.05, 0.45, 0.155  # [inch] heights of panel, top margin, line of text
        figure = canvas(width, sum([panel + line * n for n in lines]) + head)
        grid = figure.add_gridspec(
            2 * rows, 2, height_ratios=[h for n in lines for h in (panel, line * n)]
        )
        for i, (finding, text) in enumerate(zip(findings, words, strict=True)):
            _draw_panel(figure.add_subplot(grid[2 * (i // 2), i % 2]), finding)
            below = figure.add_subplot(grid[2 * (i // 2) + 1, i % 2])
            below.set_axis_off()
            colour = INK if finding.strong else FAINT
            below.text(0.0, 1.0, literal_text(text), ha="left", va="top", fontsize=8, color=colour)
        names = {f.name for f in study.findings if f.strong}
        strong = ", ".join(_TITLES[name] for name in NAMES if name in names)
        says = f"strong: {strong}" if strong else "nothing strong"
        records = dict.fromkeys(f.record for f in study.findings)
        write_heading(figure, f"{', '.join(records)}: residuals; {says}")
    return figure


def draw_finding(finding: Finding) -> Figure:
    """Draw the panel of one residual pattern (finding), without the sentence below it."""
    with style():
        figure = canvas(_PAGE_WIDTH, 0.55 * _PAGE_WIDTH)
        _draw_panel(figure.subplots(), finding)
    return figure


def strongest_findings(study: ResidualStudy) -> list[Finding]:
    """Return the strongest finding of each kind of pattern, in the order of the panels."""
    return [study[name] for name in NAMES if any(f.name == name for f in study.findings)]


def finding_sentence(study: ResidualStudy, finding: Finding) -> str:
    """Return the sentence on a finding; with several records, the record's name is in front."""
    many = len({f.record for f in study.findings}) > 1
    return f"{finding.record}: {finding.sentence}" if many else finding.sentence


def _draw_panel(axes: Axes, finding: Finding) -> None:
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
        x_unit, x_size = prefix_unit(x_unit, *(xs[-1:] if finding.name == "ripple" else xs))
    if y_unit != "1":
        y_unit, y_size = prefix_unit(y_unit, *ys)
    for curve in finding.curves:
        thin = max(-(-curve.x.size // 3000), 1)  # draw at most 3000 points of a curve
        x, y = curve.x[::thin] / x_size, curve.y[::thin] / y_size
        colour = {1: FORWARD, -1: BACKWARD, 0: CYCLE[0]}[curve.direction]
        if curve.kind == "band":
            axes.fill_between(x, -y, y, color=FAINT, alpha=0.25, lw=0)
        elif curve.kind == "line":
            axes.plot(x, y, color=colour, lw=1.1)
        else:
            looks: dict[str, Any] = {"fmt": "o", "ms": 4, "lw": 1.0, "capsize": 2.5}
            error = None if curve.error is None else np.nan_to_num(curve.error[::thin] / y_size)
            axes.errorbar(x, y, error, color=colour, **looks)
    if finding.name != "ripple":
        zero_line(axes)
    axes.set_xlabel(f"{x_name} [{x_unit}]" if x_unit else x_name)
    axes.set_ylabel(f"{y_name} [{y_unit}]" if y_unit != "1" else y_name)
    if finding.name == "ripple":
        axes.set_xscale("log")
        axes.set_ylim(bottom=0.0)
        _label_log_axis(axes)
    if finding.name == "direction":
        axes.set_xlim(-2.0, 2.0)
        axes.set_xticks([-1.0, 1.0], ["backward", "forward"])


def draw_posterior(
    posterior: Posterior | Derived,
    *,
    names: Sequence[str] | None = None,
    width: float | None = None,
) -> Figure:
    """Draw the density of each parameter on the diagonal, and the posterior samples of each pair of
    parameters below the diagonal. Derived quantities are drawn like parameters.

    On the diagonal the interval is shaded, and the dashed line is the estimate of the fit. A
    symmetric interval does not suit a density that is skewed or ends at a bound. If the points of a
    pair form a narrow ridge, the data do not identify the position along the ridge.

    **Arguments:** `names` of the parameters to draw, by default the first 8; `width` [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("posterior.png")`.

    **Raises:** `KeyError` for a name that was not fitted; `ValueError` for quantities derived from
    a fit, because a fit does not have posterior samples.
    """
    if posterior.draws is None:
        raise ValueError(
            "`plot` of derived quantities needs draws, and those of a fit have none. Draw the"
            " posterior first: found.posterior().derived(...).plot()."
        )
    known = list(posterior.names)
    asked = known[:8] if names is None else list(names)  # more than 8 rows make panels too small
    which, sizes, labels = [], [], []
    every = posterior.draws.reshape(-1, posterior.draws.shape[-1])
    for name in asked:
        if name not in known:
            raise UnknownName(
                f"There is no fitted number {name!r} to draw. There are: {', '.join(known)}."
            )
        which.append(known.index(name))
        unit, size = posterior.estimates[which[-1]].unit, 1.0
        if unit not in ("1", ""):
            unit, size = prefix_unit(unit, every[:, which[-1]])
        part, dot, last = name.rpartition(".")
        more = f" [{unit}]" if unit not in ("1", "") else ""
        labels.append(literal_text((f"{part}.\n" if dot else "") + last + more))
        sizes.append(size)
    estimates = [posterior.estimates[i] for i in which]
    fitted = (
        [posterior.found.estimates[i].value for i in which]
        if isinstance(posterior, Posterior)
        else np.asarray(posterior.fitted)[which]
    )
    p = len(which)
    width = max(3.2, 1.6 * p + 0.8) if width is None else width
    draws, fitted = every[:, which] / np.array(sizes), np.asarray(fitted) / np.array(sizes)
    with style():
        figure = canvas(width, max(2.8, 0.9 * width))
        panels: Any = figure.subplots(p, p, squeeze=False)
        for i, j in np.ndindex(p, p):
            axes = panels[i, j]
            if j > i:
                axes.set_axis_off()
                continue
            if i == j:
                looks: dict[str, Any] = {"density": True, "histtype": "stepfilled", "alpha": 0.35}
                axes.hist(draws[:, i], bins=40, color=FORWARD, **looks)
                ends = np.array([estimates[i].lower, estimates[i].upper]) / sizes[i]
                axes.axvspan(*ends, color=FORWARD, alpha=0.12, lw=0)
                axes.axvline(float(fitted[i]), color=INK, lw=0.9, ls="--")
                axes.set_yticks([])
            else:
                x, y = draws[:: max(len(draws) // 1500, 1)][:, [j, i]].T
                axes.plot(x, y, ".", ms=1.6, color=FORWARD, alpha=0.35, rasterized=True)
                axes.plot(fitted[j], fitted[i], "+", ms=8, color=BACKWARD)
            # Only the panels at the left and at the bottom have axis labels.
            axes.xaxis.set_major_locator(MaxNLocator(2))
            if i == p - 1:
                axes.set_xlabel(labels[j], fontsize=8)
            else:
                axes.set_xticklabels([])
            if j == 0 and i > 0:
                axes.set_ylabel(labels[i], fontsize=8)
            elif 0 < j < i:
                axes.set_yticklabels([])
    return figure


def draw_structures(made: StructureComparison, *, width: float = 10.0) -> Figure:
    """Draw the friction laws of all compared structures over speed, and the prediction errors of
    each structure for data left out of its fit.

    Left: friction over speed, with backward motion at negative speeds; the chosen structure has a
    thick line. Right: rms errors of the objective (the trajectory, or the forces of
    `InverseDynamics`) and of the force, for left-out repeats (blue dot), speeds (orange square) and
    records (black triangle). If a structure predicts left-out speeds much worse than left-out
    repeats, it is not valid for new motions.

    **Arguments:** `width` of the figure [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("structures.png")`.
    """
    with style():
        figure = canvas(width, max(3.2, 1.6 + 0.3 * len(made.rows)))
        laws, trajectory, force = figure.subplots(1, 3, width_ratios=(2.0, 1.2, 1.2))
        _draw_laws(laws, made)
        _draw_held_out(trajectory, force, made)
    return figure


def draw_laws(made: StructureComparison) -> Figure:
    """Draw only the panel of `draw_structures` with the friction laws."""
    with style():
        figure = canvas(_PAGE_WIDTH, 0.8 * _PAGE_WIDTH)
        _draw_laws(figure.subplots(), made)
    return figure


def draw_held_out(made: StructureComparison) -> Figure:
    """Draw only the panels of `draw_structures` with the errors for left-out data."""
    with style():
        figure = canvas(_PAGE_WIDTH, max(0.8 * _PAGE_WIDTH, 1.6 + 0.3 * len(made.rows)))
        trajectory, force = figure.subplots(1, 2)
        _draw_held_out(trajectory, force, made)
    return figure


def _draw_held_out(trajectory: Axes, force: Axes, made: StructureComparison) -> None:
    # The residuals of an objective such as `InverseDynamics` are forces, not errors of outputs.
    objective = made.best.found.problem.objective
    of = ("trajectory", made.unit)
    of = of if objective.in_units_of_outputs() else (type(objective).__name__, made.force_unit)
    _draw_errors(trajectory, made, "trajectory", *of)
    _draw_errors(force, made, "force", "force", made.force_unit)
    trajectory.set_yticks(range(len(made.rows)), [literal_text(row.name) for row in made.rows])
    force.set_yticks(range(len(made.rows)), [""] * len(made.rows))
    for label, row in zip(trajectory.get_yticklabels(), made.rows, strict=True):
        label.set_fontweight("bold" if row is made.best else "normal")
    entries = trajectory.get_legend_handles_labels()
    trajectory.figure.legend(*entries, loc="outside upper right", ncols=3)


def _draw_laws(axes: Axes, made: StructureComparison) -> None:
    zero_line(axes)
    for i, row in enumerate(made.rows):
        width, over = (2.4, 3) if row is made.best else (1.0, 2)
        looks: dict[str, Any] = {"color": CYCLE[i % len(CYCLE)], "lw": width, "zorder": over}
        for k, (_, way, v, f, _) in enumerate(visited_laws(row.found, made.cutoff)):
            axes.plot(way * v, way * f, label=None if k else literal_text(row.name), **looks)
    units = next(
        (units for *_, units in visited_laws(made.best.found, made.cutoff)), ("N", "N.s/m", "m/s")
    )
    axes.set_xlabel(f"speed [{units[2]}]")
    axes.set_ylabel(f"friction [{units[0]}]" if units[0] else "friction coefficient")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", fontsize=8)


def _draw_errors(axes: Axes, made: StructureComparison, kind: str, what: str, unit: str) -> None:
    """Draw the errors of `kind` for left-out data. `what`: the erroneous quantity, in words."""
    shapes = {"repeats": ("o", FORWARD), "speeds": ("s", BACKWARD), "records": ("^", INK)}
    values = {
        by: np.asarray([getattr(row.held_out[by], f"{kind}_rms") for row in made.rows])
        for by in made.rows[0].held_out
    }
    name, size = prefix_unit(unit, *values.values()) if unit != "sd" else ("sd", 1.0)
    for by, x in values.items():
        known = np.isfinite(x)
        marker, colour = shapes[by]
        looks: dict[str, Any] = {"color": colour, "ms": 6, "ls": ""}
        at = np.flatnonzero(known)
        axes.plot(x[known] / size, at, marker, label=f"{by} left out", **looks)
    if any(np.any(np.isfinite(x) & (x > 0)) for x in values.values()):
        axes.set_xscale("log")
        _label_log_axis(axes)
    axes.set_ylim(len(made.rows) - 0.5, -0.5)
    axes.set_xlabel(f"error of\n{what} [{name}]")


def _label_log_axis(axes: Axes) -> None:
    """Label a logarithmic axis with round numbers if its range is below a factor of 30."""
    low, high = axes.get_xlim()
    if high / low >= 30:
        return
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks: list[float] = []
    for steps in ((1, 2, 5), (1, 2, 3, 5, 7), (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)):
        ticks = [step * 10.0**p for p in powers for step in steps if low <= step * 10.0**p <= high]
        if len(ticks) > 1:
            break
    axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
