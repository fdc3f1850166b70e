"""The pen that a schematic is drawn with. Lengths are in points."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Polygon

from ..style import CYCLE, INK
from .words import NAME, Label

DRIVE, LINING, BODY, SOFT = CYCLE[1], CYCLE[4], "#E4E7EB", "#555B63"
THIN, ROD, SHAFT = 1.1, 1.3, 2.2  # widths of lines
JOINT = "_joint"  # what stands for a name at a line that belongs to no part
HATCH = 5.0  # depth of the strokes of a ground

Length = float | int  # [pt]; whole ones are written without a point
Point = tuple[Length, Length]


@dataclasses.dataclass(frozen=True)
class Pen:
    """Draws what belongs to the part `name` about the point (x, y), mirrored left to right where
    `mirrored`.
    """

    axes: Axes
    name: str
    x: Length
    y: Length
    mirrored: bool = False

    def line(self, *points: Point, width: Length = ROD, colour: str = INK, z: Length = 3) -> None:
        ends = {"solid_capstyle": "butt", "solid_joinstyle": "miter"}
        self._trace(points, lw=width, color=colour, label=self.name, zorder=z, **ends)

    def joint(self, *points: Point, width: Length) -> None:
        """A line behind all symbols, which leads from one to another and belongs to none."""
        self._trace(points, lw=width, label=JOINT, zorder=1, solid_capstyle="projecting")

    def _trace(self, points: Iterable[Point], color: str = INK, **looks: Any) -> None:
        x, y = zip(*map(self.at, points), strict=True)
        self.axes.add_line(Line2D(x, y, color=color, **looks))

    def shape(self, *points: Point, face: str = "white", edge: str | None = INK) -> None:
        self._add(Polygon([self.at(p) for p in points], closed=True), face, edge)

    def box(
        self,
        x0: Length,
        x1: Length,
        y0: Length,
        y1: Length,
        face: str = "white",
        edge: str | None = INK,
    ) -> None:
        self.shape((x0, y0), (x1, y0), (x1, y1), (x0, y1), face=face, edge=edge)

    def circle(self, x: Length, y: Length, r: Length, face: str = "white") -> None:
        self._add(Circle(self.at((x, y)), r), face, INK)

    def arrow(self, start: Point, stop: Point, head: Length = 7.0, width: Length = 1.8) -> None:
        """From `start` to its tip at `stop`."""
        begin, tip = np.array(start), np.array(stop)
        ahead = (tip - begin) / np.hypot(*(tip - begin))
        across, neck = 0.42 * head * np.array([-ahead[1], ahead[0]]), tip - head * ahead
        if np.hypot(*(tip - begin)) > head:
            self.line(start, tuple(neck + 0.5 * ahead), width=width, colour=DRIVE)
        self.shape(stop, tuple(neck + across), tuple(neck - across), face=DRIVE, edge=None)

    def ground(self, start: Point, stop: Point) -> None:
        """The housing: a line whose right side, going from `start` to `stop`, is hatched."""
        a, b = np.array(start), np.array(stop)
        ahead = (b - a) / np.hypot(*(b - a))
        inward = np.array([ahead[1], -ahead[0]])
        count = max(2, round(float(np.hypot(*(b - a))) / 5.5))
        for k in range(count):
            at = a + (b - a) * (k + 1) / count
            self.line(tuple(at), tuple(at + HATCH * inward - (b - a) / count * 0.8), width=0.8)
        self.line(start, stop, width=1.6)

    def write(self, text: str, x: Length, y: Length, size: Length, colour: str = INK) -> None:
        """Centred at (x, y)."""
        self.axes.text(
            *self.at((x, y)),
            text,
            size=size,
            color=colour,
            ha="center",
            va="center_baseline",
            label=self.name,
            zorder=5,
            parse_math=False,
        )

    def lines(self, label: Label, top: Length) -> None:
        """A label whose upper edge lies at `top`."""
        for (text, size), below in zip(label.lines, label.heights(), strict=True):
            self.write(text, 0.0, top - below, size, INK if size == NAME else SOFT)

    def at(self, point: Point) -> Point:
        return self.x + (-point[0] if self.mirrored else point[0]), self.y + point[1]

    def _add(self, patch: Any, face: str, edge: str | None) -> None:
        patch.set(
            facecolor=face,
            edgecolor=edge or "none",
            linewidth=THIN if edge else 0.0,
            label=self.name,
            zorder=4,
        )
        self.axes.add_patch(patch)
