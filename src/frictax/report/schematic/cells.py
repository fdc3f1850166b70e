"""The cells of a schematic: symbols with their labels, side by side on the axis of a row."""

import dataclasses
import enum
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from .labels import Label
from .pen import Length, Pen, Symbol

AIR = 3.0  # [pt] between a symbol and its label

Reach = tuple[Length, Length]  # [pt] to the left and to the right of a point


class Band(enum.Enum):
    """A row has three bands: its symbols, and what is above and below them."""

    ABOVE = 1
    CORE = 0
    BELOW = -1


@dataclasses.dataclass(frozen=True)
class RowSize:
    """The height of a row's axis, and how far its core reaches up and down from there [pt]."""

    y: Length
    up: Length
    down: Length


@dataclasses.dataclass(frozen=True)
class Cell:
    """A drawing around a point on a row's axis.

    - `reach` in each band; `up` and `down` from the axis in the core; heights `above` and `below`
      the core [pt].
    - `edge`: where a line from a neighbour ends, to the left and right of the point [pt].
    """

    reach: Mapping[Band, Reach]
    draw: Callable[[Axes, Length, RowSize], None]
    up: Length = 0.0
    down: Length = 0.0
    above: Length = 0.0
    below: Length = 0.0
    edge: Reach = (0.0, 0.0)


def on_axis(name: str, symbol: Symbol, text: Label, band: Band, mirrored: bool = False) -> Cell:
    """Put a symbol on the axis and its label above or below the core."""

    def draw(axes: Axes, x: Length, row: RowSize) -> None:
        symbol.draw(Pen(axes, name, x, row.y, mirrored))
        top = row.up + AIR + text.height if band is Band.ABOVE else -row.down - AIR
        Pen(axes, name, x, row.y).lines(text, top)

    half, height = text.width / 2, text.height + AIR
    above, below = (height, 0.0) if band is Band.ABOVE else (0.0, height)
    reach = {Band.CORE: (symbol.half, symbol.half), band: (half, half)}
    return Cell(reach, draw, symbol.up, symbol.down, above, below)


def off_axis(name: str, symbol: Symbol, text: Label, band: Band) -> Cell:
    """Put a symbol above the core, or below it, and its label beyond."""
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
    """Return where cells side by side lie, each as far left as the others allow.

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


GAP = {Band.ABOVE: 10.0, Band.CORE: 9.0, Band.BELOW: 10.0}  # [pt] between neighbours


def compose(cells: Sequence[Cell], places: Sequence[Length]) -> Cell:
    """Join cells at these distances from one point into one cell."""

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
    """Return the largest extents of cells in one row [pt]."""
    names = ("up", "down", "above", "below")
    return {name: max(getattr(cell, name) for cell in cells) for name in names}
