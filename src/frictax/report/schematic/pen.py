"""The pen that draws a schematic, and the size of its symbols. Lengths are in points."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Polygon

from ..style import CYCLE, INK
from .labels import NAME, Label

DRIVE, LINING, BODY, SOFT = CYCLE[1], CYCLE[4], "#E4E7EB", "#555B63"
ROD, SHAFT = 1.3, 2.2  # [pt] width of a line between sliding bodies, between turning ones
JOINT = "_joint"  # the label of lines between parts, which belong to no part
HATCH = 5.0  # [pt] depth of the hatching of a ground

Length = float | int
Point = tuple[Length, Length]


@dataclasses.dataclass(frozen=True)
class Pen:
    """Draws a part called `name` around the point (x, y), mirrored left to right if `mirrored`."""

    axes: Axes
    name: str
    x: Length
    y: Length
    mirrored: bool = False

    def shifted_by(self, dx: Length, dy: Length) -> "Pen":
        return dataclasses.replace(self, x=self.at((dx, 0))[0], y=self.y + dy)

    def line(
        self,
        *points: Point,
        width: Length = ROD,
        colour: str = INK,
        z: Length = 3,
        dashes: Any = "-",
    ) -> None:
        x, y = zip(*map(self.at, points), strict=True)
        style: Any = {"solid_capstyle": "butt", "solid_joinstyle": "miter", "zorder": z}
        line = Line2D(x, y, color=colour, lw=width, ls=dashes, label=self.name, **style)
        self.axes.add_line(line)

    def joint(self, *points: Point, width: Length) -> None:
        """Draw a line between parts, behind all symbols."""
        x, y = zip(*map(self.at, points), strict=True)
        style: Any = {"solid_capstyle": "projecting", "zorder": 1}
        self.axes.add_line(Line2D(x, y, color=INK, lw=width, label=JOINT, **style))

    def shape(self, *points: Point, face: str = "white", edge: str | None = INK) -> None:
        self._add(Polygon([self.at(p) for p in points], closed=True), face, edge)

    def box(
        self,
        x: tuple[Length, Length],
        y: tuple[Length, Length],
        face: str = "white",
        edge: str | None = INK,
    ) -> None:
        self.shape((x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1]), face=face, edge=edge)

    def circle(self, x: Length, y: Length, r: Length, face: str = "white") -> None:
        self._add(Circle(self.at((x, y)), r), face, INK)

    def arrow(self, start: Point, stop: Point, head: Length = 7.0, width: Length = 1.8) -> None:
        """Draw an arrow from `start` to its tip at `stop`."""
        begin, tip = np.array(start), np.array(stop)
        ahead = (tip - begin) / np.hypot(*(tip - begin))
        across, neck = 0.42 * head * np.array([-ahead[1], ahead[0]]), tip - head * ahead
        if np.hypot(*(tip - begin)) > head:
            self.line(start, tuple(neck + 0.5 * ahead), width=width, colour=DRIVE)
        self.shape(stop, tuple(neck + across), tuple(neck - across), face=DRIVE, edge=None)

    def ground(self, start: Point, stop: Point) -> None:
        """Draw the housing: a line, hatched at its right side as seen from `start`."""
        a, b = np.array(start), np.array(stop)
        length = float(np.hypot(*(b - a)))
        inward = HATCH * np.array([b[1] - a[1], a[0] - b[0]]) / length
        count = max(2, round(length / 5.5))
        step = (b - a) / count
        for k in range(count):
            at = a + (k + 1) * step
            self.line(tuple(at), tuple(at + inward - 0.8 * step), width=0.8)
        self.line(start, stop, width=1.6)

    def write(self, text: str, x: Length, y: Length, size: Length, colour: str = INK) -> None:
        """Write `text` centred at (x, y)."""
        looks: Any = {"ha": "center", "va": "center_baseline", "zorder": 5, "parse_math": False}
        self.axes.text(*self.at((x, y)), text, size=size, color=colour, label=self.name, **looks)

    def lines(self, label: Label, top: Length) -> None:
        """Write a label whose upper edge is at `top`."""
        for (text, size), below in zip(label.lines, label.heights(), strict=True):
            self.write(text, 0.0, top - below, size, INK if size == NAME else SOFT)

    def at(self, point: Point) -> Point:
        return self.x + (-point[0] if self.mirrored else point[0]), self.y + point[1]

    def _add(self, patch: Any, face: str, edge: str | None) -> None:
        edges: Any = {"edgecolor": edge or "none", "linewidth": 1.1 if edge else 0.0}
        patch.set(facecolor=face, label=self.name, zorder=4, **edges)
        self.axes.add_patch(patch)


@dataclasses.dataclass(frozen=True)
class Symbol:
    """A drawing around a point: its reach to either side, up and down, and how to draw it."""

    half: Length
    up: Length
    down: Length
    draw: Callable[[Pen], None]
