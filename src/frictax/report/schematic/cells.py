"""Labels, a pen that draws symbols, and cells. A cell is a symbol with its label in a row.

Lengths are in points (1/72 inch).
"""

import dataclasses
import enum
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Polygon
from matplotlib.textpath import text_to_path

from frictax.contacts import AbstractContact
from frictax.laws import AbstractLaw
from frictax.mechanism.layout import is_rotational
from frictax.parameters import is_traced, rotational_unit
from frictax.parameters.declaration import declaration_of
from frictax.signals import AbstractSignal, Constant

from ..style import CYCLE, INK

NAME, VALUE, SMALL = 9.5, 8.5, 7.5  # [pt] sizes of letters
DRIVE, LINING, BODY, SOFT = CYCLE[1], CYCLE[4], "#E4E7EB", "#555B63"
ROD, SHAFT = 1.3, 2.2  # [pt] widths of lines between sliding bodies, and between turning bodies
JOINT = "_joint"  # label of lines between parts; these lines do not belong to a part
HATCH = 5.0  # [pt] depth of the hatching of a ground
AIR = 3.0  # [pt] distance between a symbol and its label

Length = float | int
Point = tuple[Length, Length]
Reach = tuple[Length, Length]  # [pt] extent to the left and to the right of a point


@dataclasses.dataclass(frozen=True)
class Label:
    """Lines of text, each with its font size [pt]. The first line is the name of the part."""

    lines: tuple[tuple[str, float], ...]

    @property
    def width(self) -> float:
        return max((text_width(text, size) for text, size in self.lines), default=0.0)

    @property
    def edges(self) -> np.ndarray:
        """Distances [pt] from the label's top to the tops of its lines, and to its bottom."""
        # A line is 1.28 times as high as its letters.
        return np.cumsum([0.0, *(1.28 * size for _, size in self.lines)])

    @property
    def height(self) -> float:
        return float(self.edges[-1])


def text_width(text: str, size: float) -> float:
    """Return a text's width [pt], with a margin because a renderer may widen letters."""
    font = FontProperties(size=size)
    return 1.02 * text_to_path.get_text_width_height_descent(text, font, False)[0] + 1.0


def label(name: str, part: Any, turns: bool, grounded: bool = False) -> Label:
    """Return the label of a part: its name and its main values.

    `turns`: True if the part acts on turning bodies; `grounded`: True if the part's support is
    drawn as a hatched ground. The label then names the support.
    """
    items, lines = values(part, turns), list[str]()
    if grounded and getattr(part, "support", None) is not None:
        items.append(f"support: {part.support}")
    for item in items:
        if lines and len(lines[-1]) + len(item) + 2 <= 20:  # Short values share a line.
            lines[-1] += f", {item}"
        else:
            lines.append(item)
    return Label(((name, NAME), *((line, VALUE) for line in lines)))


def values(part: Any, turns: bool) -> list[str]:
    """Return a part's laws, signals and numbers as texts, without numbers equal to the default.

    Numbers that a fit does not estimate by default (initial values) are only shown if nothing else
    is shown. Numbers that `jit` traces and arrays of a batch are shown as name and unit.

    >>> import frictax as fx
    >>> values(fx.BearingFriction("rotor", tau_pos=fx.Coulomb(F_Coulomb=0.6), peak=1.2), turns=True)
    ['Coulomb', 'peak = 1.2']
    """
    main, others, laws = [], [], 0
    # Name of a field -> unit of its signal, because such a field does not declare a unit
    signals = {"f": "N", "tau": "N.m", "s": "m", "s_ref": "m"}
    for field in dataclasses.fields(part):
        value, declaration = getattr(part, field.name, None), declaration_of(field)
        required = field.default is dataclasses.MISSING
        if isinstance(value, AbstractLaw):
            main.append(f"{field.name}: {type(value).__name__}" if laws else type(value).__name__)
            laws += 1
        elif isinstance(value, AbstractSignal):
            if not isinstance(value, Constant):
                main.append(f"{field.name}: {type(value).__name__}")
            elif required or concrete_number(value.k) != field.default:
                unit = _unit(part, signals.get(field.name, "1"), turns)
                main.append(quantity_text(field.name, value.k, unit))
        elif (
            declaration is not None
            and declaration.ndim == 0
            and not (declaration.optional and value is None)
        ):
            text = quantity_text(field.name, value, _unit(part, declaration.unit, turns))
            if required or concrete_number(value) != field.default:
                (main if required or declaration.fit else others).append(text)
    return main or others


def quantity_text(name: str, value: Any, unit: str) -> str:
    """Return a number as text with its name and unit.

    >>> quantity_text("c", 500.0, "N/m")
    'c = 500 N/m'
    """
    number = concrete_number(value)
    if number is None:
        return name if unit == "1" else f"{name} [{unit}]"
    return f"{name} = {number:.5g}".replace("e+0", "e").replace("e-0", "e-") + (
        "" if unit == "1" else f" {unit}"
    )


def _unit(part: Any, unit: str, turns: bool) -> str:
    """Return the unit of a part's value. A drive that can act on sliding and on turning bodies gets
    the unit for its body. The unit of a normal force remains N.
    """
    either = is_rotational(part) is None and not isinstance(part, AbstractContact)
    return rotational_unit(unit) if turns and either else unit


def concrete_number(value: Any) -> float | None:
    """Return `value` as a float; None for a number that JAX traces, or an array."""
    known = (
        isinstance(value, jax.Array | np.ndarray | np.generic | float | int)
        and not is_traced(value)
        and np.ndim(value) == 0
    )
    return float(value) if known else None


@dataclasses.dataclass(frozen=True)
class Pen:
    """A pen that draws the symbol of part `name` around the point (x, y), or its mirror image."""

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
        """Draw a line that joins parts, behind all symbols."""
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
        """Draw the housing: a line from `start` to `stop`, hatched on its right side."""
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
        middles = ((label.edges[1:] + label.edges[:-1]) / 2).tolist()
        for (text, size), below in zip(label.lines, middles, strict=True):
            self.write(text, 0.0, top - below, size, INK if size == NAME else SOFT)

    def at(self, point: Point) -> Point:
        return self.x + (-point[0] if self.mirrored else point[0]), self.y + point[1]

    def _add(self, patch: Any, face: str, edge: str | None) -> None:
        edges: Any = {"edgecolor": edge or "none", "linewidth": 1.1 if edge else 0.0}
        patch.set(facecolor=face, label=self.name, zorder=4, **edges)
        self.axes.add_patch(patch)


@dataclasses.dataclass(frozen=True)
class Symbol:
    """A drawing around a point. `half`, `up`, `down`: extents [pt] sideways, upward, downward."""

    half: Length
    up: Length
    down: Length
    draw: Callable[[Pen], None]


class Band(enum.Enum):
    """Horizontal bands of a row: the symbols on its axis (core), the space above, and below."""

    ABOVE = 1
    CORE = 0
    BELOW = -1


@dataclasses.dataclass(frozen=True)
class RowSize:
    """Height `y` of a row's axis; extents `up`, `down` of the symbols on the axis [pt]."""

    y: Length
    up: Length
    down: Length


@dataclasses.dataclass(frozen=True)
class Cell:
    """A drawing around a point on the axis of a row. All lengths are in pt.

    - `reach`: band -> extent to the left and right of the point; `up`, `down`: extents of the core
      from the axis; `above`, `below`: heights of the drawing above and below the core.
    - `edge`: distances from the point, to the left and right, at which lines to other cells end.
    """

    reach: Mapping[Band, Reach]
    draw: Callable[[Axes, Length, RowSize], None]
    up: Length = 0.0
    down: Length = 0.0
    above: Length = 0.0
    below: Length = 0.0
    edge: Reach = (0.0, 0.0)


def on_axis(name: str, symbol: Symbol, text: Label, band: Band, mirrored: bool = False) -> Cell:
    """Return a cell with the symbol on the axis, and the label in the band above or below."""

    def draw(axes: Axes, x: Length, row: RowSize) -> None:
        symbol.draw(Pen(axes, name, x, row.y, mirrored))
        top = row.up + AIR + text.height if band is Band.ABOVE else -row.down - AIR
        Pen(axes, name, x, row.y).lines(text, top)

    half, height = text.width / 2, text.height + AIR
    above, below = (height, 0.0) if band is Band.ABOVE else (0.0, height)
    reach = {Band.CORE: (symbol.half, symbol.half), band: (half, half)}
    return Cell(reach, draw, symbol.up, symbol.down, above, below)


def off_axis(name: str, symbol: Symbol, text: Label, band: Band) -> Cell:
    """Return a cell with symbol and label in `band`. The label is farther from the row's axis."""
    sign, size = (1, symbol.up) if band is Band.ABOVE else (-1, symbol.down)

    def draw(axes: Axes, x: Length, row: RowSize) -> None:
        start = row.up if band is Band.ABOVE else -row.down
        symbol.draw(Pen(axes, name, x, row.y + start))
        top = start + sign * (size + AIR) + (text.height if band is Band.ABOVE else 0.0)
        Pen(axes, name, x, row.y).lines(text, top)

    half, height = max(symbol.half, text.width / 2), size + AIR + text.height
    above, below = (height, 0.0) if band is Band.ABOVE else (0.0, height)
    return Cell({band: (half, half)}, draw, above=above, below=below)


def pack(cells: Sequence[Cell], gap: Mapping[Band, Length]) -> list[Length]:
    """Return positions [pt] of cells in a row. Each cell is as far left as earlier cells allow.

    >>> def cell(band, half):
    ...     return Cell({band: (half, half)}, lambda axes, x, row: None)
    >>> pack([cell(Band.CORE, 5.0), cell(Band.ABOVE, 9.0), cell(Band.CORE, 4.0)], GAP)
    [0.0, 0.0, 18.0]
    """
    edges: dict[Hashable, Length] = {}
    places, x = [], 0.0
    for cell in cells:
        known = [(band, left) for band, (left, _) in cell.reach.items() if band in edges]
        x = max([x, *(edges[band] + gap[band] + left for band, left in known)])
        for band, (_, right) in cell.reach.items():
            edges[band] = max(edges.get(band, x + right), x + right)
        places.append(x)
    return places


GAP = {Band.ABOVE: 10.0, Band.CORE: 9.0, Band.BELOW: 10.0}  # [pt] distance between neighbours


def compose(cells: Sequence[Cell], places: Sequence[Length]) -> Cell:
    """Return one cell that contains `cells`; `places`: their horizontal positions in it [pt]."""

    def draw(axes: Axes, x: Length, row: RowSize) -> None:
        for cell, dx in zip(cells, places, strict=True):
            cell.draw(axes, x + dx, row)

    reach: dict[Band, Reach] = {}
    for cell, dx in zip(cells, places, strict=True):
        for band, (left, right) in cell.reach.items():
            old = reach.get(band, (left - dx, right + dx))
            reach[band] = max(old[0], left - dx), max(old[1], right + dx)
    return Cell(reach, draw, **extents(cells))


def extents(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return a dict with the largest `up`, `down`, `above` and `below` of the cells [pt]."""
    names = ("up", "down", "above", "below")
    return {name: max(getattr(cell, name) for cell in cells) for name in names}
