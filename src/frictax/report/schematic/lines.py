"""The lines of a schematic: along the rows from a body to what joins it, and upright ones between
the columns.
"""

import dataclasses
from collections.abc import Mapping

from matplotlib.axes import Axes

from ..style import INK
from .cells import Band, Reach, Row
from .network import Link, Node
from .order import Plan, Wire
from .pen import HATCH, JOINT, Length, Pen
from .symbols import PORT


@dataclasses.dataclass(frozen=True, order=True)
class Column:
    """Columns from left to right: that of bodies, upright lines, that of links, upright lines
    before the next bodies.
    """

    number: int
    kind: int
    track: int = 0


BODIES, _AFTER, LINKS, _BEFORE = range(4)


@dataclasses.dataclass(frozen=True)
class _Point:
    """On a row, at a height over its axis [pt]."""

    row: int
    height: Length = 0


@dataclasses.dataclass(frozen=True)
class Grid:
    """Where columns and rows lie, and how far the links reach to either side [pt]."""

    columns: Mapping[Column, Length]
    rows: Mapping[int, Row]
    halves: Mapping[Link, Length]

    def y(self, point: _Point) -> Length:
        return self.rows[point.row].y + point.height


@dataclasses.dataclass(frozen=True)
class Bar:
    """An upright line, or a wall, in its column between the first and the last of its points."""

    column: Column
    points: tuple[_Point, ...]

    @property
    def span(self) -> tuple[int, int]:
        rows = [point.row for point in self.points]
        return min(rows), max(rows)

    def reach(self) -> dict[tuple[int, Band], Reach]:
        """The rows and bands that it goes through."""
        side = HATCH if self.column.kind == BODIES else 0
        first, last = self.span
        bands = {(row, band): (side, side) for row in range(first, last + 1) for band in Band}
        del bands[first, Band.ABOVE], bands[last, Band.BELOW]
        return bands


@dataclasses.dataclass(frozen=True)
class Net:
    """What joins a body on one side.

    `bar`: the upright line where that does not lie on one row; `ports`: those by which a wire in a
    row of its own reaches its link.
    """

    node: Node
    wires: tuple[Wire, ...]
    bar: Bar | None
    ports: Mapping[Wire, Bar]

    @property
    def bars(self) -> list[Bar]:
        return [*([] if self.bar is None else [self.bar]), *self.ports.values()]


def nets(plan: Plan) -> list[Net]:
    """All lines of a plan; upright ones that would lie on each other get columns of their own, side
    by side.
    """
    found = [_net(plan, node, rightward) for node in plan.nodes for rightward in (False, True)]
    taken: dict[Column, list[Bar]] = {}

    def tracked(bar: Bar) -> Bar:
        while any(
            bar.span[0] <= other.span[1] and other.span[0] <= bar.span[1]
            for other in taken.get(bar.column, [])
        ):
            bar = dataclasses.replace(
                bar, column=dataclasses.replace(bar.column, track=bar.column.track + 1)
            )
        taken.setdefault(bar.column, []).append(bar)
        return bar

    # Those that go further down stand at the left.
    bars = sorted((bar for net in found for bar in net.bars), key=lambda bar: -bar.span[1])
    final = {id(bar): bar if bar.column.kind == BODIES else tracked(bar) for bar in bars}
    return [
        dataclasses.replace(
            net,
            bar=net.bar and final[id(net.bar)],
            ports={wire: final[id(bar)] for wire, bar in net.ports.items()},
        )
        for net in found
        if net.wires
    ]


def _net(plan: Plan, node: Node, rightward: bool) -> Net:
    column, row = plan.nodes[node]
    wires = tuple(wire for wire in plan.wires if wire.node == node and wire.rightward is rightward)
    points = (_Point(row), *(_end(plan, wire) for wire in wires))
    bar = None
    if len(set(points)) > 1:
        beside = Column(column, _AFTER) if rightward else Column(column - 1, _BEFORE)
        bar = Bar(beside if node.holds is None else Column(column, BODIES), points)
    ports = {}
    for wire in wires:
        if wire.via is not None:
            there = Column(plan.links[wire.link][0], _AFTER if rightward else _BEFORE)
            ports[wire] = Bar(there, (_port(plan, wire), _Point(wire.via)))
    return Net(node, wires, bar, ports)


def _port(plan: Plan, wire: Wire) -> _Point:
    return _Point(plan.links[wire.link][1], wire.step * PORT)


def _end(plan: Plan, wire: Wire) -> _Point:
    """Where a wire comes to the side of its body."""
    return _port(plan, wire) if wire.via is None else _Point(wire.via)


def draw_net(axes: Axes, net: Net, plan: Plan, grid: Grid, width: Length) -> None:
    """Lines of this `width` from a body to all that joins it on one side."""
    pen = Pen(axes, JOINT, 0, 0)
    column, row = plan.nodes[net.node]
    at, own = grid.columns[Column(column, BODIES)], grid.y(_Point(row))
    if net.bar is not None and net.node.holds is not None:
        _draw_wall(Pen(axes, net.node.name, at, 0), net.bar, own, grid, net.wires[0].rightward)
    elif net.bar is not None:
        bar = grid.columns[net.bar.column]
        pen.joint((at, own), (bar, own), width=width)
        _draw_bar(pen, net.bar, grid, width)
        at = bar
    for wire in net.wires:
        port, y = grid.y(_port(plan, wire)), grid.y(_end(plan, wire))
        edge = grid.columns[Column(plan.links[wire.link][0], LINKS)] + grid.halves[wire.link] * (
            -1 if wire.rightward else 1
        )
        if wire in net.ports:
            _draw_bar(pen, net.ports[wire], grid, width)
            through = grid.columns[net.ports[wire].column]
            pen.joint((through, port), (edge, port), width=width)
            edge = through
        pen.joint((at, y), (edge, y), width=width)


def _draw_bar(pen: Pen, bar: Bar, grid: Grid, width: Length) -> None:
    """With a dot where more than two lines meet; where lines only cross there is none."""
    x, heights = grid.columns[bar.column], [grid.y(point) for point in bar.points]
    pen.joint((x, min(heights)), (x, max(heights)), width=width)
    for height in set(heights):
        if heights.count(height) + (height > min(heights)) + (height < max(heights)) > 2:
            pen.circle(x, height, 1 + 0.5 * width, INK)


def _draw_wall(pen: Pen, bar: Bar, own: Length, grid: Grid, hatched_left: bool) -> None:
    """What a wall has above the symbol on its own row: as far up as the highest link
    that it holds.
    """
    top = max(grid.y(point) + grid.rows[point.row].up for point in bar.points)
    start, stop = (0, own), (0, top)
    pen.ground(*((stop, start) if hatched_left else (start, stop)))
