"""The drawing of a plan: bodies and what joins them on their rows, with the lines between them."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from matplotlib.axes import Axes

from frictax.mechanism import HeatCapacitor, ThermalConductor

from .bodies import body_cell
from .cells import GAP, Band, Cell, Reach, Row, labelled, packed
from .heat import capacitor_cell, surroundings_cell
from .lines import BODIES, LINKS, Bar, Column, Grid, draw_net, nets
from .network import Link, Network, Node
from .order import Plan
from .pen import HATCH, ROD, SHAFT, Length
from .symbols import Symbol, of_gear, of_link
from .words import label

_WALL = 21.0  # half the height of a wall [pt]
_APART = 12.0  # between rows [pt]


@dataclasses.dataclass(frozen=True)
class Sheet:
    """A drawing of its size [pt], drawn by its upper left corner."""

    width: Length
    height: Length
    draw: Callable[[Axes, Length, Length], None]


@dataclasses.dataclass(frozen=True)
class _Placed:
    cell: Cell
    column: Column
    row: int


def sheet(mechanism: Any, net: Network, plan: Plan) -> Sheet:
    """The drawing of what is joined with each other."""
    turns = {
        node: bool(getattr(mechanism[node.holds or node.name], "rotational", False))
        for node in plan.nodes
    }
    turning = {link: any(turns[end] for end in link.ends) for link in plan.links}
    symbols = {link: _symbol(mechanism, plan, link, turning[link]) for link in plan.links}
    placed = [
        _Placed(_node_cell(mechanism, net, plan, n, turns[n]), Column(c, BODIES), row)
        for n, (c, row) in plan.nodes.items()
    ]
    for link, (column, row) in plan.links.items():
        cell = _link_cell(mechanism, plan, link, symbols[link], turning[link])
        placed.append(_Placed(cell, Column(column, LINKS), row))
    lines = nets(plan)
    bars = [bar for one in lines for bar in one.bars]
    columns, (rows, height) = _columns(placed, bars), _rows(placed, bars)
    reaches = [(columns[one.column], reach) for one in placed for reach in one.cell.reach.values()]
    first = min(x - left for x, (left, _) in reaches)
    last = max(x + right for x, (_, right) in reaches)
    halves = {link: symbol.half for link, symbol in symbols.items()}

    def draw(axes: Axes, left: Length, top: Length) -> None:
        moved = {number: dataclasses.replace(row, y=row.y + top) for number, row in rows.items()}
        grid = Grid({column: x - first + left for column, x in columns.items()}, moved, halves)
        for one in lines:
            draw_net(axes, one, plan, grid, SHAFT if turns[one.node] else ROD)
        for one in placed:
            one.cell.draw(axes, grid.columns[one.column], grid.rows[one.row])

    return Sheet(last - first, height, draw)


def _node_cell(mechanism: Any, net: Network, plan: Plan, node: Node, turns: bool) -> Cell:
    sides = {wire.rightward for wire in plan.wires if wire.node == node}
    part = mechanism[node.name]
    if isinstance(part, HeatCapacitor):
        return capacitor_cell(node.name, part)
    if isinstance(part, ThermalConductor):
        return surroundings_cell(node.name, part)
    if node.name in net.attached:
        on_it = {name: mechanism[name] for name in net.attached[node.name]}
        return body_cell(node.name, part, on_it, (False in sides, True in sides))
    up = -_WALL if True in sides else _WALL  # hatched on the side where nothing is joined
    wall = Symbol(HATCH + 2, _WALL, _WALL, lambda pen: pen.ground((0, -up), (0, up)))
    return labelled(node.name, wall, label(node.name, part, turns), Band.BELOW)


def _symbol(mechanism: Any, plan: Plan, link: Link, turns: bool) -> Symbol:
    part = mechanism[link.name]
    if len(link.ends) == 2:
        return of_link(part, turns)
    fields = {
        str(getattr(part, field.name)): field.name
        for field in dataclasses.fields(part)
        if field.metadata.get("static")
    }
    wires = [wire for wire in plan.wires if wire.link == link]
    return of_gear(part, [(not w.rightward, w.step, fields.get(w.node.name, "")) for w in wires])


def _link_cell(mechanism: Any, plan: Plan, link: Link, symbol: Symbol, turns: bool) -> Cell:
    left = next(wire.node for wire in plan.wires if wire.link == link and wire.rightward)
    mirrored = len(link.ends) == 2 and link.ends[0] != left
    text = label(link.name, mechanism[link.name], turns)
    return labelled(link.name, symbol, text, Band.BELOW if turns else Band.ABOVE, mirrored)


def _columns(placed: Iterable[_Placed], bars: Iterable[Bar]) -> dict[Column, Length]:
    """How far right each column stands [pt]."""
    reaches: dict[Column, list[Mapping[tuple[int, Band], Reach]]] = {}
    for one in placed:
        reaches.setdefault(one.column, []).append(
            {(one.row, band): sides for band, sides in one.cell.reach.items()}
        )
    for bar in bars:
        reaches.setdefault(bar.column, []).append(bar.reach())
    order = sorted(reaches)
    places = packed([reaches[column] for column in order], lambda key: GAP[key[1]])
    return dict(zip(order, places, strict=True))


def _rows(placed: Iterable[_Placed], bars: Iterable[Bar]) -> tuple[dict[int, Row], Length]:
    """The rows, from y = 0 downward, and how high they are together [pt]."""
    numbers = {one.row for one in placed} | {point.row for bar in bars for point in bar.points}
    rows, y = {}, 0.0
    for number in sorted(numbers):
        cells = [one.cell for one in placed if one.row == number]
        up, down, above, below = (
            max((getattr(cell, size) for cell in cells), default=2)
            for size in ("up", "down", "above", "below")
        )
        rows[number] = Row(y - above - up, up, down)
        y = rows[number].y - down - below - _APART
    return rows, -y - _APART
