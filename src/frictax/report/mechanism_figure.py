"""Draw the schematic of a machine: bodies in rows, with the parts that join the bodies."""

import dataclasses
import io
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from frictax.mechanism import Mechanism

from .schematic.cells import (
    AIR,
    GAP,
    JOINT,
    ROD,
    SHAFT,
    Band,
    Cell,
    Length,
    Pen,
    RowSize,
    extents,
    label,
    on_axis,
    pack,
)
from .schematic.rows import Link, Network, Node, Row, network, rows_of_machines
from .schematic.symbols import gear_symbol, link_symbol, node_cells, reference_cell
from .style import INK, Picture, reproducible_svg, style


def draw_mechanism(mechanism: Mechanism, *, width: float = 7.5) -> Figure:
    """Draw the parts of a machine with their names, main values and connections.

    The longest chain of bodies is the first row, from left to right. Below this row, each branch
    and each part that closes a loop has a separate row. A name in a dashed box refers to a body in
    an earlier row. Parts between the same two bodies lie above each other.

    A sliding body is a block, a turning body is a disc on its shaft. Friction is orange, drives are
    green. Thermal parts are in separate rows. A part without a symbol is a box with the name of its
    class. For a law or a signal, the figure shows the name of its class. Numbers that JAX traces
    and arrays of a batch are shown without values.

    **Arguments:** `width` [inch]: short rows and machines without a connection are placed side by
    side up to this width. A longer row makes the figure wider, because the size of the letters is
    constant.

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("machine.svg")`.

    >>> import frictax as fx
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0), wall=fx.Fixed(), spring=fx.Spring("wall", "mass", c=500.0)
    ... )
    >>> [text.get_text() for text in draw_mechanism(block).axes[0].texts]
    ['wall', 'spring', 'c = 500 N/m', 'mass', 'm = 1 kg']
    """
    with style():
        margin = 10.0  # [pt] margin around the picture
        net, room = network(mechanism), 72 * width - 2 * margin
        machines = []
        for rows in rows_of_machines(net):
            first, *others = [_draw_row(mechanism, net, row) for row in rows]
            below = [_side_by_side(others, room, gap=20.0)] if others else []
            machines.append(_side_by_side([first, *below], width=0.0, gap=20.0))
        whole = _side_by_side(machines, room, gap=26.0)
        size = whole.width + 2 * margin, whole.height + 2 * margin
        figure = Picture(figsize=(size[0] / 72, size[1] / 72))
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set(xlim=(0, size[0]), ylim=(-size[1], 0), aspect="equal")
        axes.set_axis_off()
        whole.draw(axes, margin, -margin)
    return figure


def mechanism_svg(mechanism: Mechanism) -> str:
    """Return the schematic as an element ``<svg>``; equal machines give equal text."""
    text = io.StringIO()
    figure = draw_mechanism(mechanism)
    with reproducible_svg():
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


@dataclasses.dataclass(frozen=True)
class _Drawing:
    """A drawing and its size [pt]; arguments of `draw` are axes and upper left corner [pt]."""

    width: Length
    height: Length
    draw: Callable[[Axes, Length, Length], None]


def _side_by_side(drawings: Sequence[_Drawing], width: Length, gap: Length) -> _Drawing:
    """Place drawings side by side up to `width` [pt]; put further drawings in lines below."""
    corners: list[tuple[Length, Length]] = []
    x = y = high = wide = 0.0
    for one in drawings:
        if x > 0 and x + one.width > width:
            x, y, high = 0.0, y + high + gap, 0.0
        corners.append((x, y))
        x, high, wide = x + one.width + gap, max(high, one.height), max(wide, x + one.width)

    def draw(axes: Axes, left: Length, top: Length) -> None:
        for one, (x, y) in zip(drawings, corners, strict=True):
            one.draw(axes, left + x, top - y)

    return _Drawing(wide, y + high, draw)


def _draw_row(mechanism: Any, net: Network, row: Row) -> _Drawing:
    turning = [bool(getattr(mechanism[n.holds or n.name], "rotational", False)) for n in row.nodes]
    cells: list[Cell] = []
    for i, node in enumerate(row.nodes):
        if node in row.references:
            cells.append(reference_cell(node.name))
        else:
            acting = {name: mechanism[name] for name in net.attached.get(node.name, ())}
            joined = i > 0, i < len(row.joints)
            part = mechanism[node.name]
            cells += node_cells(node.name, part, acting, turns=turning[i], joined=joined)
        if i < len(row.joints):
            turns = turning[i] or turning[i + 1]
            cells.append(_joint_cell(mechanism, row.joints[i], row.nodes[i : i + 2], turns))
    places, size = pack(cells, GAP), extents(cells)
    ends = [
        (x - left, x + right)
        for x, one in zip(places, cells, strict=True)
        for left, right in one.reach.values()
    ]
    first, last = min(ends)[0], max(right for _, right in ends)
    up = size["above"] + size["up"]

    def draw(axes: Axes, left: Length, top: Length) -> None:
        line, at = RowSize(top - up, size["up"], size["down"]), [left - first + x for x in places]
        stops = [(x - c.edge[0], x + c.edge[1]) for x, c in zip(at, cells, strict=True)]
        # A shaft extends through the drive or the bearing at the end of the row.
        if turning[0] and row.nodes[0].holds is None:
            stops.insert(0, (at[0], at[0] - cells[0].reach[Band.CORE][0] + 2))
        if turning[-1] and row.nodes[-1].holds is None:
            stops.append((at[-1] + cells[-1].reach[Band.CORE][1] - 2, at[-1]))
        pen = Pen(axes, JOINT, 0, line.y)
        for (_, start), (stop, _) in itertools.pairwise(stops):
            pen.joint((start, 0), (stop, 0), width=SHAFT if any(turning) else ROD)
        for one, x in zip(cells, at, strict=True):
            one.draw(axes, x, line)

    return _Drawing(last - first, up + size["down"] + size["below"], draw)


def _joint_cell(mechanism: Any, links: Sequence[Link], ends: Sequence[Node], turns: bool) -> Cell:
    """Return the cell of parallel links: the first link on the row's axis, further links above."""
    parts = [mechanism[link.name] for link in links]
    texts = [label(link.name, part, turns) for link, part in zip(links, parts, strict=True)]
    mirrored = [len(link.ends) == 2 and link.ends[0] != ends[0] for link in links]
    symbols = [
        link_symbol(part, turns) if len(link.ends) == 2 else gear_symbol(part, link.ends, ends)
        for link, part in zip(links, parts, strict=True)
    ]
    below = turns or len(links) > 1
    first = on_axis(
        links[0].name, symbols[0], texts[0], Band.BELOW if below else Band.ABOVE, mirrored[0]
    )
    half = symbols[0].half
    if len(links) == 1:
        return dataclasses.replace(first, edge=(half, half))
    half = max(*(symbol.half for symbol in symbols), *(text.width / 2 for text in texts[1:-1])) + 6
    heights, above = [], 0.0  # [pt] height of each link's axis above the row's symbols
    for symbol, text in zip(symbols[1:], texts[1:], strict=True):
        heights.append(above + AIR + symbol.down)
        above = heights[-1] + symbol.up + AIR + text.height

    def draw(axes: Axes, x: Length, row: RowSize) -> None:
        first.draw(axes, x, row)
        levels = [0.0, *(row.up + height for height in heights)]
        width = SHAFT if turns else ROD
        pen = Pen(axes, JOINT, x, row.y)
        for k, (level, symbol) in enumerate(zip(levels, symbols, strict=True)):
            for side in (-1, 1):
                pen.joint((side * half, level), (side * symbol.half, level), width=width)
                if 0 < k:
                    pen.joint((side * half, levels[k - 1]), (side * half, level), width=width)
                if k < len(levels) - 1:
                    pen.circle(side * half, level, 1 + 0.5 * width, INK)
            if k > 0:
                symbol.draw(Pen(axes, links[k].name, x, row.y + level, mirrored[k]))
                text = texts[k]
                Pen(axes, links[k].name, x, row.y).lines(
                    text, level + symbol.up + AIR + text.height
                )

    reach = {**first.reach, Band.CORE: (half + 2, half + 2)}
    top = max(half + 2, texts[-1].width / 2)
    return dataclasses.replace(
        first, reach={**reach, Band.ABOVE: (top, top)}, draw=draw, above=above, edge=(half, half)
    )
