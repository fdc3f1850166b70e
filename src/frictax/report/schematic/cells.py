"""What stands on a row of a schematic: a symbol with its label, or several side by side."""

import dataclasses
import enum
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from .pen import JOINT, Length, Pen
from .symbols import Symbol
from .words import Label


class Band(enum.Enum):
    """A row's three bands: its symbols, and what stands above and below them."""

    ABOVE = 1
    CORE = 0
    BELOW = -1


GAP = {Band.ABOVE: 10.0, Band.CORE: 9.0, Band.BELOW: 10.0}  # between neighbours [pt]
AIR = 3.0  # between a symbol and its label [pt]

Reach = tuple[Length, Length]  # to the left and to the right of a point [pt]


@dataclasses.dataclass(frozen=True)
class Row:
    """Where a row lies: its axis, and how far its core goes up and down from there [pt]."""

    y: Length
    up: Length
    down: Length


@dataclasses.dataclass(frozen=True)
class Cell:
    """A drawing about a point on a row's axis: its reach in each band, how far it goes `up` and
    `down` from the axis in the core, and how high it stands in the bands `above` and `below` the
    core [pt].
    """

    reach: Mapping[Band, Reach]
    draw: Callable[[Axes, Length, Row], None]
    up: Length = 0.0
    down: Length = 0.0
    above: Length = 0.0
    below: Length = 0.0


def labelled(name: str, symbol: Symbol, text: Label, band: Band, mirrored: bool = False) -> Cell:
    """A symbol on the axis, its label above or below the core."""
    side = band.value

    def draw(axes: Axes, x: Length, row: Row) -> None:
        symbol.draw(Pen(axes, name, x, row.y, mirrored))
        _write(axes, name, text, x, row, band, AIR)

    half, height = text.width / 2, text.height + AIR
    return Cell(
        {Band.CORE: (symbol.half, symbol.half), band: (half, half)},
        draw,
        symbol.up,
        symbol.down,
        height * (side > 0),
        height * (side < 0),
    )


def outside(name: str, symbol: Symbol, text: Label, band: Band) -> Cell:
    """A symbol that stands above the core or hangs below it, its label beyond."""
    side = band.value
    size = symbol.up if side > 0 else symbol.down

    def draw(axes: Axes, x: Length, row: Row) -> None:
        symbol.draw(Pen(axes, name, x, row.y + (row.up if side > 0 else -row.down)))
        _write(axes, name, text, x, row, band, size + AIR)

    half, height = max(symbol.half, text.width / 2), size + AIR + text.height
    return Cell({band: (half, half)}, draw, above=height * (side > 0), below=height * (side < 0))


def _write(
    axes: Axes, name: str, text: Label, x: Length, row: Row, band: Band, away: Length
) -> None:
    top = row.up + away + text.height if band is Band.ABOVE else -row.down - away
    Pen(axes, name, x, row.y).lines(text, top)


def on_rod(cell: Cell, left: Length, right: Length, width: Length) -> Cell:
    """A cell with a line along the axis behind it, so far to the left and right, which joins what
    stands in it side by side.
    """

    def draw(axes: Axes, x: Length, row: Row) -> None:
        Pen(axes, JOINT, x, row.y).joint((width - left, 0), (right - width, 0), width=width)
        cell.draw(axes, x, row)

    return dataclasses.replace(cell, draw=draw)


def packed(
    columns: Iterable[Sequence[Mapping[Any, Reach]]], gap: Callable[[Any], Length]
) -> list[Length]:
    """Where columns of things stand, each as far left as the others allow; each thing has its reach
    in some bands.

    >>> second = {"core": (3.0, 3.0), "above": (9.0, 9.0)}
    >>> columns = [[{"core": (5.0, 5.0)}], [second], [{"above": (4.0, 4.0)}]]
    >>> packed(columns, gap=lambda band: 1.0)
    [0.0, 9.0, 23.0]
    """
    edge: dict[Hashable, Length] = {}
    places, x = [], 0.0
    for column in columns:
        reaches = [(band, left, right) for thing in column for band, (left, right) in thing.items()]
        x = max([x, *(edge[band] + gap(band) + left for band, left, _ in reaches if band in edge)])
        for band, _, right in reaches:
            edge[band] = max(edge.get(band, x + right), x + right)
        places.append(x)
    return places


def beside(cells: Sequence[Cell], middle: int) -> Cell:
    """Cells side by side, about the one with number `middle`."""
    places = packed([[cell.reach] for cell in cells], GAP.__getitem__)
    return composed(cells, [x - places[middle] for x in places])


def composed(cells: Sequence[Cell], places: Sequence[Length]) -> Cell:
    """Cells at these distances from one point, as one."""

    def draw(axes: Axes, x: Length, row: Row) -> None:
        for cell, dx in zip(cells, places, strict=True):
            cell.draw(axes, x + dx, row)

    reach: dict[Band, Reach] = {}
    for cell, dx in zip(cells, places, strict=True):
        for band, (left, right) in cell.reach.items():
            old = reach.get(band, (left - dx, right + dx))
            reach[band] = max(old[0], left - dx), max(old[1], right + dx)
    up, down, above, below = (
        max(getattr(cell, size) for cell in cells) for size in ("up", "down", "above", "below")
    )
    return Cell(reach, draw, up, down, above, below)
