"""Draw the figure of a measured sweep and the fitted friction law."""

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from frictax.analysis import Comparison
from frictax.fitting import FitResult

from .style import BACKWARD, FORWARD, INK, canvas, literal_text, style, zero_line


def draw_sweep(
    found: FitResult,
    comparison: Comparison | Sequence[Comparison] | None = None,
    *,
    width: float = 7.5,
) -> Figure:
    """Draw the measured points with error bars, the fitted law with its confidence band, and the
    residuals below.

    Each direction of motion has its own column. Forces for v < 0 are multiplied by -1, so that both
    directions can be compared. A bar is one standard deviation of the noise to each side, estimated
    from the residuals. If the sweep has a `sigma`, bars are proportional to `sigma`. If
    `sigma_known` is true, bars equal `sigma`.

    **Arguments:**

    - `comparison`: a result of `compare`, or a list of such results (one for each direction). Thin
      lines are the laws that were compared with the fitted law.
    - `width` of the figure [inch].

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("sweep.png")`.

    >>> import frictax as fx
    >>> sweep = fx.Sweep([1, 2, 3, 4], [7.1, 7.9, 9.1, 9.9], velocity_unit="m/s", force_unit="N")

    >>> figure = draw_sweep(fx.fit(fx.Coulomb, sweep))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['force [N]', 'residual [N]']
    """
    sweep = found.sweep
    fastest = 1.03 * float(np.max(np.abs(sweep.velocity)))
    ways = [way for way in (-1, 1) if np.any(sweep.direction == way)]
    # The 161 speeds exclude 0, where the direction is not defined. The points are denser at low
    # speeds, where Stribeck curves bend.
    speeds = np.outer(ways, fastest * np.linspace(1e-5, 1.0, 161) ** 1.5)
    band = found.band(speeds.ravel())
    curves = [a.reshape(speeds.shape) for a in (band.force, band.lower, band.upper)]
    sides = [
        _Side(found, way, v, rows) for way, v, *rows in zip(ways, speeds, *curves, strict=True)
    ]
    with style():
        figure = canvas(width, 5.0 if width > 5 else 5.8)
        grid = figure.subplots(
            2, len(sides), squeeze=False, sharex="col", sharey="row", height_ratios=[3, 1.4]
        )
        for column, side in enumerate(sides):
            upper, lower = grid[0][column], grid[1][column]
            _draw_side(upper, side, comparison)
            far = side.x(side.grid[-1])
            lower.set_xlim(*sorted((-0.025 * far, far)))
            zero_line(lower)
            _bars(lower, side, side.rows, found.residuals, side.marker, None)
            if len(sides) > 1:
                says = "backward, v < 0" if side.way < 0 else "forward, v > 0"
                upper.set_title(says, fontsize=10, color=side.colour)
        # Points, bars and the fitted curve determine the scale. A band may exceed the panel.
        noise, unit = noise_of_rows(found), found.shown_force.si
        f = sweep.force * sweep.direction
        drawn = [side.way * side.curves[0] for side in sides]
        every = np.concatenate([f - noise, f + noise, *drawn])
        low, high = every.min(), every.max()
        room = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
        grid[0][0].set_ylim((low - room) / unit, (high + room) / unit)
        reach = 1.1 * float(np.max(np.abs(found.residuals) + noise)) / unit
        grid[1][0].set_ylim(-reach or -1.0, reach or 1.0)
        for axes in grid[:, 1:].ravel():
            axes.spines["left"].set_color("#D5D8DC")
            axes.tick_params(axis="y", length=0)
        what = "torque" if sweep.rotational else "force"
        grid[0][0].set_ylabel(
            f"{what + ' against motion' if sides[0].way < 0 else what} [{found.shown_force.name}]"
        )
        grid[1][0].set_ylabel(f"residual [{found.shown_force.name}]")
        figure.supxlabel(f"velocity [{sweep.velocity_unit.name}]", fontsize=10)
        figure.align_ylabels(grid[:, 0])
        entries = {
            label: handle
            for axes in grid[0]
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        looks: dict[str, Any] = {"loc": "outside upper left", "ncols": 3 if width > 5 else 2}
        looks |= {"handlelength": 2.2, "columnspacing": 1.4, "alignment": "left"}
        looks["title"] = textwrap.fill(f"Bars: {bars_in_words(found)}.", int(13 * width))
        legend = figure.legend([*entries.values()], [*entries], title_fontsize=8.5, **looks)
        legend.get_title().set_color(INK)
    return figure


def bars_in_words(found: FitResult) -> str:
    """Return a text on the meaning of the error bars in the figure."""
    if found.sweep.sigma_known:
        return "1 standard deviation, as given with the data"
    noise = found.noise_scale / found.shown_force.si
    if found.sweep.sigma is not None:
        return (
            f"1 standard deviation: the given sigma times {found.noise_scale:.3g}, estimated from"
            " the residuals"
        )
    return (
        f"1 standard deviation of the noise, {noise:.2g} {found.shown_force.name}, estimated from"
        " the residuals"
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Side:
    """Curves of one direction. `grid`: velocities; `curves`: force and ends of its band [SI]."""

    found: FitResult
    way: int
    grid: np.ndarray
    curves: list[np.ndarray]

    @property
    def rows(self) -> np.ndarray:
        return self.found.sweep.direction == self.way

    @property
    def colour(self) -> str:
        return FORWARD if self.way > 0 else BACKWARD

    @property
    def marker(self) -> str:
        return "o" if self.way > 0 else "s"

    def x(self, velocity: Any) -> Any:
        return velocity / self.found.sweep.velocity_unit.si

    def y(self, force: Any) -> Any:
        """Return a force, positive against the motion, in the unit of the figure."""
        return self.way * force / self.found.shown_force.si


def _bars(
    axes: Axes, side: _Side, rows: np.ndarray, force: np.ndarray, marker: str, label: str | None
) -> None:
    x, y = side.x(side.found.sweep.velocity[rows]), side.y(force[rows])
    error = noise_of_rows(side.found)[rows] / side.found.shown_force.si
    looks: dict[str, Any] = {"ms": 4, "mfc": "white", "mec": INK, "mew": 1.0, "zorder": 3}
    looks |= {"ecolor": INK, "elinewidth": 0.9, "capsize": 2}
    axes.errorbar(x, y, yerr=error, fmt=marker, label=label, **looks)


def _draw_side(axes: Axes, side: _Side, comparison: Any) -> None:
    """Draw the fitted law with its band, the other laws of a comparison, and the points."""
    v, (force, *ends) = side.x(side.grid), map(side.y, side.curves)
    band = f"{100 * side.found.level:g} % confidence band"
    axes.fill_between(v, *ends, color=side.colour, alpha=0.2, lw=0, label=band)
    name = type(side.found.law).__name__
    axes.plot(v, force, color=side.colour, lw=1.8, label=f"fitted {name} law")
    patterns = ((0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 3)), (0, (8, 3)))
    names = dict.fromkeys(row.name for made in comparisons(comparison) for row in made.rows)
    dashes = dict(zip(names, patterns * len(names), strict=False))
    mine = side.found.predict(side.grid)
    for made in comparisons(comparison):
        if not np.any(made.sweep.direction == side.way):
            continue
        for row in made.rows:
            f = row.found.predict(side.grid)
            if row is made.best and np.max(np.abs(f - mine)) <= 0.01 * np.max(np.abs(mine)):
                continue  # This law coincides with the fitted law.
            looks: dict[str, Any] = {"color": "#4D4D4D", "lw": 0.9, "ls": dashes[row.name]}
            axes.plot(v, side.y(f), label=literal_text(row.name), **looks)
    sweep = side.found.sweep
    began = side.rows & sweep.breakaway
    for rows, marker, label in (
        (side.rows & ~sweep.breakaway, side.marker, "measured"),
        (began, "D", "motion began"),
    ):
        if rows.any():
            _bars(axes, side, rows, sweep.force, marker, label)
    if began.any():
        fitted = side.y(float((sweep.force - side.found.residuals)[began].mean()))
        mark: dict[str, Any] = {"marker": "_", "ms": 16, "mew": 1.8, "ls": ""}
        axes.plot([0.0], [fitted], color=side.colour, label="fitted peak·f0", **mark)


def noise_of_rows(found: FitResult) -> np.ndarray:
    """Return the standard deviation of the noise in each row of the sweep [N or N.m]."""
    sigma = found.sweep.sigma
    return np.full(found.n, found.noise_scale) if sigma is None else found.noise_scale * sigma


def comparisons(comparison: Any) -> list[Comparison]:
    """Return `comparison` as a list; it may be a comparison, a sequence, or None."""
    return [comparison] if isinstance(comparison, Comparison) else list(comparison or ())
