"""The picture of a measured sweep and the law that was fitted to it."""

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from frictax.analysis import Comparison
from frictax.fitting import FitResult
from frictax.measurements.units import Unit

from .style import BACKWARD, FORWARD, INK, plain, style, zero_line

_DASHES = ((0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 3)), (0, (8, 3)))
_POINTS = 161  # of a curve


def draw_sweep(
    found: FitResult,
    comparison: Comparison | Sequence[Comparison] | None = None,
    *,
    width: float = 7.5,
) -> Figure:
    """Draw the measured points with error bars, the fitted law with its confidence band, and the
    residuals below.

    Each direction has a column of its own; forces are drawn against the motion (times -1 for v <
    0), so that the two can be compared. The bars are one standard deviation of the noise: as found
    from the misfit (times the row's sigma where the sweep has one), or the given sigma where that
    is declared known.

    **Arguments:**

    - `comparison`: what `compare` returned, or several of these (one a direction); its other laws
      are drawn thin.
    - `width` of the figure [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("sweep.png")`.

    >>> import frictax as fx
    >>> from frictax.measurements import Sweep
    >>> from frictax.fitting import fit
    >>> sweep = Sweep([1, 2, 3, 4], [7.1, 7.9, 9.1, 9.9], velocity_unit="m/s", force_unit="N")
    >>> figure = draw_sweep(fit(fx.Coulomb, sweep))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['force [N]', 'residual [N]']
    """
    sides = _sides(found)
    with style():
        figure = Figure(figsize=(width, 5.0 if width > 5 else 5.8), layout="constrained")
        grid = figure.subplots(
            2, len(sides), squeeze=False, sharex="col", sharey="row", height_ratios=[3, 1.4]
        )
        for column, side in enumerate(sides):
            upper, lower = grid[0][column], grid[1][column]
            _curve(upper, found, side)
            _others(upper, found, side, comparison)
            _points(upper, found, side)
            _residuals(lower, found, side)
            if len(sides) > 1:
                upper.set_title(
                    "backward, v < 0" if side.way < 0 else "forward, v > 0",
                    fontsize=10,
                    color=side.colour,
                )
        _limits(grid, found, sides)
        what = "torque" if found.sweep.rotational else "force"
        grid[0][0].set_ylabel(
            f"{what + ' against motion' if sides[0].way < 0 else what} [{found.shown_force.name}]"
        )
        grid[1][0].set_ylabel(f"residual [{found.shown_force.name}]")
        figure.supxlabel(f"velocity [{found.sweep.velocity_unit.name}]", fontsize=10)
        figure.align_ylabels(grid[:, 0])
        _legend(figure, found, list(grid[0]), width)
    return figure


def bars_in_words(found: FitResult) -> str:
    """What the error bars of the picture are."""
    if found.sweep.sigma_known:
        return "1 standard deviation, as given with the data"
    noise = found.noise_scale / found.shown_force.si
    if found.sweep.sigma is not None:
        return (
            f"1 standard deviation: the given sigma times {found.noise_scale:.3g}, found from the"
            " misfit"
        )
    return (
        f"1 standard deviation of the noise, {noise:.2g} {found.shown_force.name}, found from the"
        " misfit"
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Side:
    """One direction: its rows, the velocities of its curve (SI), and how it is drawn."""

    way: int
    rows: np.ndarray
    grid: np.ndarray
    colour: str
    marker: str
    force: Unit
    velocity: Unit
    band: Any


def _sides(found: FitResult) -> list[_Side]:
    sweep = found.sweep
    fastest = 1.03 * float(np.max(np.abs(sweep.velocity)))
    ways = [way for way in (-1, 1) if np.any(sweep.direction == way)]
    # Not 0 itself, where the direction of motion has no sign; closer together where Stribeck curves
    # bend.
    speeds = fastest * np.linspace(1e-5, 1.0, _POINTS) ** 1.5
    band = found.band(np.concatenate([way * speeds for way in ways]))
    sides = []
    for i, way in enumerate(ways):
        part = slice(i * _POINTS, (i + 1) * _POINTS)
        cut = dataclasses.replace(
            band,
            velocity=band.velocity[part],
            force=band.force[part],
            lower=band.lower[part],
            upper=band.upper[part],
        )
        colour, marker = (FORWARD, "o") if way > 0 else (BACKWARD, "s")
        sides.append(
            _Side(
                way,
                sweep.direction == way,
                way * speeds,
                colour,
                marker,
                found.shown_force,
                sweep.velocity_unit,
                cut,
            )
        )
    return sides


def _curve(axes: Axes, found: FitResult, side: _Side) -> None:
    v, band = side.grid / side.velocity.si, side.band
    ends = [side.way * y / side.force.si for y in (band.lower, band.upper)]
    axes.fill_between(
        v,
        *ends,
        color=side.colour,
        alpha=0.2,
        lw=0,
        label=f"{100 * band.level:g} % confidence band",
    )
    axes.plot(
        v,
        side.way * band.force / side.force.si,
        color=side.colour,
        lw=1.8,
        label=f"fitted {type(found.law).__name__} law",
    )


def _points(axes: Axes, found: FitResult, side: _Side) -> None:
    sweep, noise = found.sweep, noise_of_rows(found)
    sliding, began = side.rows & ~sweep.breakaway, side.rows & sweep.breakaway
    for rows, marker, label in ((sliding, side.marker, "measured"), (began, "D", "motion began")):
        if rows.any():
            v, f = (
                sweep.velocity[rows] / side.velocity.si,
                side.way * sweep.force[rows] / side.force.si,
            )
            _bars(axes, v, f, noise[rows] / side.force.si, marker, label)
    if began.any():
        fitted = float((side.way * (sweep.force - found.residuals))[began].mean()) / side.force.si
        axes.plot(
            [0.0],
            [fitted],
            marker="_",
            ms=16,
            mew=1.8,
            color=side.colour,
            ls="",
            label="fitted peak·f0",
        )


def _bars(
    axes: Axes, x: np.ndarray, y: np.ndarray, error: np.ndarray, marker: str, label: str | None
) -> None:
    axes.errorbar(
        x,
        y,
        yerr=error,
        fmt=marker,
        ms=4,
        mfc="white",
        mec=INK,
        mew=1.0,
        ecolor=INK,
        elinewidth=0.9,
        capsize=2,
        label=label,
        zorder=3,
    )


def _others(axes: Axes, found: FitResult, side: _Side, comparison: Any) -> None:
    names = dict.fromkeys(row.name for made in comparisons(comparison) for row in made.rows)
    dashes = dict(zip(names, _DASHES * len(names), strict=False))
    for made in comparisons(comparison):
        if not np.any(made.sweep.direction == side.way):
            continue
        for row in made.rows:
            if row is made.best and _same_curve(row.found, found, side):
                continue
            f = side.way * row.found.predict(side.grid) / side.force.si
            axes.plot(
                side.grid / side.velocity.si,
                f,
                color="#4D4D4D",
                lw=0.9,
                ls=dashes[row.name],
                label=plain(row.name),
            )


def _same_curve(one: FitResult, other: FitResult, side: _Side) -> bool:
    a, b = one.predict(side.grid), other.predict(side.grid)
    return bool(np.max(np.abs(a - b)) <= 0.01 * np.max(np.abs(b)))


def _residuals(axes: Axes, found: FitResult, side: _Side) -> None:
    zero_line(axes)
    rows = side.rows
    v, r = (
        found.sweep.velocity[rows] / side.velocity.si,
        side.way * found.residuals[rows] / side.force.si,
    )
    _bars(axes, v, r, noise_of_rows(found)[rows] / side.force.si, side.marker, None)


def _limits(grid: Any, found: FitResult, sides: list[_Side]) -> None:
    """The points, their bars and the curve set the scale; a band that grows without end
    does not.
    """
    noise, unit = noise_of_rows(found), sides[0].force.si
    f = found.sweep.force * found.sweep.direction
    curves = [side.way * side.band.force for side in sides]
    low, high = (
        min((f - noise).min(), *(c.min() for c in curves)),
        max((f + noise).max(), *(c.max() for c in curves)),
    )
    room = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    grid[0][0].set_ylim((low - room) / unit, (high + room) / unit)
    reach = 1.1 * float(np.max(np.abs(found.residuals) + noise)) / unit
    grid[1][0].set_ylim(-reach or -1.0, reach or 1.0)
    for column, side in enumerate(sides):
        far = side.grid[-1] / side.velocity.si
        grid[1][column].set_xlim(*sorted((-0.025 * far, far)))
    for axes in grid[:, 1:].ravel():
        axes.spines["left"].set_color("#D5D8DC")
        axes.tick_params(axis="y", length=0)


def noise_of_rows(found: FitResult) -> np.ndarray:
    """One standard deviation of each row [N or N.m]."""
    sigma = found.sweep.sigma
    return np.full(found.n, found.noise_scale) if sigma is None else found.noise_scale * sigma


def comparisons(comparison: Any) -> list[Comparison]:
    """One comparison, several or none, as a list."""
    return (
        []
        if comparison is None
        else [comparison]
        if isinstance(comparison, Comparison)
        else list(comparison)
    )


def _legend(figure: Figure, found: FitResult, panels: list[Axes], width: float) -> None:
    entries = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    legend = figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside upper left",
        ncols=3 if width > 5 else 2,
        handlelength=2.2,
        columnspacing=1.4,
        alignment="left",
        title=textwrap.fill(f"Bars: {bars_in_words(found)}.", int(13 * width)),
        title_fontsize=8.5,
    )
    legend.get_title().set_color(INK)
