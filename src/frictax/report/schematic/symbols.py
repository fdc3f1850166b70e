"""The symbols of a schematic, and the cells of bodies. The cells of a body also show the drives and
the friction that act only on this body. Friction is orange, drives are green.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from frictax.contacts import (
    AbstractContact,
    BearingFriction,
    Brake,
    Clutch,
    MassWithStopAndFriction,
    OneWayClutch,
    SupportFriction,
)
from frictax.mechanism import (
    Damper,
    ElastoBacklash,
    ElastoGap,
    Fixed,
    Force,
    HeatCapacitor,
    IdealGear,
    IdealPlanetary,
    LinearPositionDependentForce,
    LossyGear,
    PeriodicPositionDependentForce,
    Position,
    PositionController,
    QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque,
    RotationalDamper,
    RotationalSpring,
    RotationalSpringDamper,
    Spring,
    SpringDamper,
    ThermalConductor,
    Torque,
)

from .cells import (
    BODY,
    DRIVE,
    HATCH,
    LINING,
    NAME,
    SHAFT,
    SMALL,
    SOFT,
    VALUE,
    Band,
    Cell,
    Label,
    Length,
    Pen,
    RowSize,
    Symbol,
    compose,
    concrete_number,
    label,
    off_axis,
    on_axis,
    pack,
    quantity_text,
    text_width,
    values,
)
from .rows import Node

_PORT = 12.0  # [pt] distance between the ports (connections) of a gear with more than two ends


def link_symbol(part: Any, turns: bool) -> Symbol:
    """Return the symbol of a part that joins a body at its left to a body at its right."""
    kind = type(part)
    if kind not in (IdealGear, LossyGear):
        return _LINKS.get(Clutch if kind is Brake and turns else kind) or class_box(part)
    # The radii have the gear ratio, limited to 0.5 ... 2, so that both wheels are visible.
    ratio = concrete_number(part.ratio)
    larger = float(np.clip(1.0 if ratio is None else abs(ratio), 0.5, 2.0))
    a, b = 26 / (1 + larger), 26 * larger / (1 + larger)

    def draw(pen: Pen) -> None:
        for x, r, end in ((a - 26, a, -28), (26 - b, b, 28)):
            teeth = max(9, round(1.1 * r))
            angle = np.pi * (2 * np.arange(4 * teeth) / (4 * teeth) + 1 / (4 * teeth))
            radius = r + 1.5 * np.tile([1, 1, -1, -1], teeth)
            rim = np.stack([x + radius * np.cos(angle), radius * np.sin(angle)], axis=1)
            pen.shape(*map(tuple, rim.tolist()), face=BODY)
            pen.line((end, 0), (x, 0), width=SHAFT, z=4.5)
            pen.circle(x, 0, 2.6, "white")
        if isinstance(part, LossyGear):
            pen.circle(2 * a - 26, 0, 4, LINING)

    return Symbol(28, max(a, b) + 2, max(a, b) + 2, draw)


def gear_symbol(part: Any, nodes: Sequence[Node], ends: Sequence[Node]) -> Symbol:
    """Return the symbol of a part that joins more than two `nodes`.

    `ends`: nodes left and right of the symbol. The ports of other nodes are in a column below.
    """
    names = {
        str(getattr(part, field.name)): field.name
        for field in dataclasses.fields(part)
        if field.metadata.get("static")
    }
    roles = [names.get(node.name, "") for node in ends]
    below = [node.name for node in nodes if node not in ends]
    others = [f"{names[n]}: {n}" if names.get(n, n) != n else n for n in below]
    symbol = _LINKS.get(type(part)) or class_box(part, len(others))
    room = max(text_width(text, SMALL) for text in (*roles, *others)) + 8
    half = symbol.half + room

    def draw(pen: Pen) -> None:
        for side, role in zip((-1, 1), roles, strict=True):
            pen.line((0, 0), (side * (half + 2), 0), width=SHAFT, z=2)
            pen.write(role, side * (half - room / 2), 6, SMALL)
        for k, text in enumerate(others, 1):
            pen.line((0, -k * _PORT), (symbol.half + 6, -k * _PORT), width=SHAFT, z=2)
            pen.write(text, symbol.half + 8 + text_width(text, SMALL) / 2, -k * _PORT, SMALL)
        symbol.draw(pen)

    return Symbol(half + 2, max(symbol.up, 11), max(symbol.down, 6 + len(others) * _PORT), draw)


def class_box(part: Any, ports: int = 0) -> Symbol:
    """Return a box with the name of the part's class, extended down for `ports` ports."""
    text = type(part).__name__
    half, down = text_width(text, SMALL) / 2 + 6, 9 + ports * _PORT

    def draw(pen: Pen) -> None:
        pen.box((-half, half), (-down, 9))
        pen.write(text, 0, 0, SMALL)

    return Symbol(half, 9, down, draw)


# Symbols of springs, dampers and gaps.


def _zigzag(pen: Pen) -> None:
    teeth = [(-17 + 34 * (k + 0.5) / 6, 6.5 if k % 2 else -6.5) for k in range(6)]
    pen.line((-22, 0), (-17, 0), *teeth, (17, 0), (22, 0))


def _dashpot(pen: Pen) -> None:
    pen.line((-22, 0), (-11, 0))
    pen.line((10, 7), (-11, 7), (-11, -7), (10, -7))
    pen.line((2, 5), (2, -5), width=2.2)
    pen.line((2, 0), (22, 0))


def _spring_damper(pen: Pen) -> None:
    for x in (-22, 22):
        pen.line((x, -10), (x, 10))
    _zigzag(pen.shifted_by(0, 10))
    _dashpot(pen.shifted_by(0, -10))


def _gap(pen: Pen) -> None:
    _spring_damper(pen.shifted_by(10, 0))
    pen.line((-32, 0), (-22, 0))
    pen.line((-22, -10), (-22, 10), width=2.2)


def _backlash(pen: Pen) -> None:
    """Draw a bar with play in a fork, in series with a spring and damper."""
    _spring_damper(pen.shifted_by(10, 0))
    pen.line((-32, 0), (-23, 0))
    pen.line((-23, -5), (-23, 5), width=2.2)
    pen.line((-28, 9), (-28, 13), (-18, 13), (-18, -13), (-28, -13), (-28, -9))
    pen.line((-18, 0), (-12, 0))


# Symbols of contacts between two bodies.


def _plates(pen: Pen) -> None:
    for side in (-1, 1):
        pen.line((side * 24, 0), (side * 4, 0), width=SHAFT)
        pen.box((side * 2.5, side * 6.5), (-17, 17), BODY)
        pen.box((-2.5, 2.5), (side * 7, side * 17), LINING, edge=None)
        pen.arrow((side * 19, 12), (side * 7, 12))


def _freewheel(pen: Pen) -> None:
    pen.line((-24, 0), (24, 0), width=SHAFT)
    pen.circle(0, 0, 14, BODY)
    pen.shape((-7, -8), (-7, 8), (6, 0), face=LINING)
    pen.line((7, -8), (7, 8), width=SHAFT, z=5)


def _pair(pen: Pen) -> None:
    for side in (-1, 1):
        pen.line((side * 28, 0), (side * 20, 0), (side * 20, -side * 5))
        pen.box((-side * 10, side * 20), (-side * 3, -side * 8), BODY)
    pen.box((-10, 10), (-3, 3), LINING, edge=None)


def _pressed_pair(pen: Pen) -> None:
    _pair(pen)
    for side in (-1, 1):
        pen.arrow((0, side * 20), (0, side * 8.5))


# Symbols of gears.


def _planets(pen: Pen) -> None:
    pen.circle(0, 0, 25, BODY)
    pen.circle(0, 0, 20.5)
    for turn in np.pi * np.array([0.5, 7 / 6, 11 / 6]):
        x, y = float(13.5 * np.cos(turn)), float(13.5 * np.sin(turn))
        pen.circle(x, y, 6.5, BODY)
        pen.line((0, 0), (x, y), z=4.5, width=1.8)
    pen.circle(0, 0, 6.5, BODY)


_LINKS = {
    **dict.fromkeys((Spring, RotationalSpring), Symbol(22, 8, 8, _zigzag)),
    **dict.fromkeys((Damper, RotationalDamper), Symbol(22, 8, 8, _dashpot)),
    **dict.fromkeys((SpringDamper, RotationalSpringDamper), Symbol(22, 18, 18, _spring_damper)),
    **dict.fromkeys((SupportFriction, BearingFriction), Symbol(28, 9, 9, _pair)),
    ElastoGap: Symbol(32, 18, 18, _gap),
    ElastoBacklash: Symbol(32, 18, 18, _backlash),
    Clutch: Symbol(24, 18, 18, _plates),
    OneWayClutch: Symbol(24, 15, 15, _freewheel),
    Brake: Symbol(28, 21, 21, _pressed_pair),
    IdealPlanetary: Symbol(25, 26, 26, _planets),
    ThermalConductor: Symbol(22, 7, 7, lambda pen: pen.box((-22, 22), (-6, 6))),
}


# Symbols of contacts with the housing.


def shaft_contact(part: Any) -> Symbol:
    """Return the symbol of a contact between a shaft and the housing."""
    box = class_box(part)

    def draw(pen: Pen) -> None:
        if type(part) is BearingFriction:
            for side in (-1, 1):
                pen.box((-13, 13), (side * 1.5, side * 5), LINING, edge=None)
                pen.ground((side * 13, side * 5), (-side * 13, side * 5))
        elif type(part) is Brake:
            pen.box((-2.2, 2.2), (-19, 19), BODY)
            for side in (-1, 1):
                pen.box((side * 2.2, side * 7), (-18, -7), LINING, edge=None)
                pen.arrow((side * 18, -12.5), (side * 7.5, -12.5))
                pen.line((side * 18, -9.5), (side * 18, -25))
            pen.ground((-20, -25), (20, -25))
        else:
            box.draw(pen)
            pen.line((0, -box.down), (0, -18))
            pen.ground((-13, -18), (13, -18))

    if type(part) is BearingFriction:
        return Symbol(15, 6 + HATCH, 6 + HATCH, draw)
    if type(part) is Brake:
        return Symbol(21, 20, 26 + HATCH, draw)
    return Symbol(box.half, box.up, 18 + HATCH, draw)


def pad_height(part: Any) -> Length:
    """Return the height [pt] that the symbol of a contact needs between body and floor."""
    return 10 if type(part) in _SHOES else 24 if type(part) is Brake else 26


def pad(part: Any, floor: Length) -> Symbol:
    """Return the symbol of a contact between a sliding body and the floor below it."""
    box = class_box(part)

    def draw(pen: Pen) -> None:
        if type(part) in _SHOES:
            pen.box((-10, 10), (5 - floor, 0), BODY)
            pen.box((-14, 14), (-floor, 5 - floor), LINING)
        elif type(part) is Brake:
            pen.box((-14, 14), (-5, 0), LINING)
            pen.arrow((0, -floor), (0, -6))
        else:
            pen.line((0, 0), (0, -floor))
            box.draw(pen.shifted_by(0, -floor / 2))
        pen.ground((-22, -floor), (22, -floor))

    simple = type(part) in (*_SHOES, Brake)
    return Symbol(22.0 if simple else max(22.0, box.half), 0, floor + HATCH, draw)


_SHOES = (SupportFriction, MassWithStopAndFriction)


# Symbols of drives.


def push(drive: Any, on_post: bool = False) -> Symbol:
    """Return an arrow to the right. The arrow starts at a box, except for `Force` and `Position`.

    `on_post`: True for an arrow that pushes against a post on top of a block.
    """
    plain = type(drive) in (Force, Position)
    box = _BOXES.get(type(drive)) or class_box(drive)
    half = 20 if plain else box.half + 12

    def draw(pen: Pen) -> None:
        axis = pen.shifted_by(0, 12) if on_post else pen
        if type(drive) is Force:
            axis.arrow((-20, 0), (20, 0))
        elif plain:
            axis.line((-19, 7), (-19, -7), width=1.8, colour=DRIVE)
            axis.arrow((-19, 0), (13, 0))
            axis.arrow((10, 0), (20, 0))
        else:
            box.draw(axis.shifted_by(-12, 0))
            axis.arrow((box.half - 12, 0), (half, 0))
        if on_post:
            pen.line((half, 0), (half, 20), width=2.2)

    if on_post:
        return Symbol(half, 22, 0, draw)
    return Symbol(half, 7, 7, draw) if plain else Symbol(half, box.up, box.down, draw)


def turn(drive: Any) -> tuple[Symbol, Symbol | None]:
    """Return an arrow around a shaft, and a box above it (None for a `Torque` or `Position`)."""

    def draw_arrow(pen: Pen) -> None:
        angle = np.linspace(0.2 * np.pi, 1.75 * np.pi, 60)
        points = [(7.5 * float(np.cos(a)), 17.0 * float(np.sin(a))) for a in angle]
        pen.line(*points[:-3], width=1.8, colour=DRIVE)
        pen.arrow(points[-7], points[-1])
        if type(drive) is Position:
            pen.line((1, 9), (11, 11), width=1.8, colour=DRIVE)

    arrow = Symbol(12, 18, 18, draw_arrow)
    if type(drive) in (Torque, Position):
        return arrow, None
    box = _BOXES.get(type(drive)) or class_box(drive)

    def draw(pen: Pen) -> None:
        pen.line((0, -6), (0, 6), colour=DRIVE)
        box.draw(pen.shifted_by(0, 6 + box.down))

    return arrow, Symbol(box.half, 6 + box.up + box.down, 0, draw)


def _controller(pen: Pen) -> None:
    """Draw a block diagram: the difference of reference and position, followed by a gain."""
    pen.circle(-14, 0, 5)
    for slope in (-3.5, 3.5):
        pen.line((-17.5, -slope), (-10.5, slope), z=5, width=0.9)
    pen.arrow((-9, 0), (0, 0), head=5, width=1.1)
    pen.box((0, 19), (-9, 9))
    pen.shape((5, -5), (5, 5), (14, 0))


def _graph(curve: Callable[[np.ndarray], np.ndarray]) -> Symbol:
    """Return a box with the graph of `curve`, a force over position or speed from -9 to 9 pt."""
    x = np.linspace(-9.0, 9.0, 41)
    points = list(zip(x.tolist(), curve(x).tolist(), strict=True))

    def draw(pen: Pen) -> None:
        pen.box((-14, 14), (-10, 10))
        pen.line((-10, 0), (10, 0), z=5, width=0.7)
        pen.line((0, -7), (0, 7), z=5, width=0.7)
        pen.line(*points, z=5, width=1.6, colour=DRIVE)

    return Symbol(14, 10, 10, draw)


_DRAG = _graph(lambda v: -0.085 * v * np.abs(v))
_BOXES = {
    PositionController: Symbol(19, 9, 9, _controller),
    LinearPositionDependentForce: _graph(lambda s: 1.5 + 0.5 * s),
    PeriodicPositionDependentForce: _graph(lambda s: 6 * np.sin(0.7 * s)),
    QuadraticSpeedDependentForce: _DRAG,
    QuadraticSpeedDependentTorque: _DRAG,
}


# Cells of bodies.

Parts = Mapping[str, Any]  # name -> part


def node_cells(
    name: str, part: Any, acting: Parts, *, turns: bool, joined: tuple[bool, bool]
) -> list[Cell]:
    """Return the cells of a body, heat capacitor or wall, and of the parts `acting` on it only.

    `turns`: True for rotation; `joined`: whether parts are joined at the left, and at the right.
    """
    contacts = {key: one for key, one in acting.items() if isinstance(one, AbstractContact)}
    drives = {key: one for key, one in acting.items() if key not in contacts}
    if isinstance(part, HeatCapacitor):
        heated = [f"{'and' if k else 'heated by'} {one}" for k, one in enumerate(part.sources)]
        lines = [*values(part, False), *heated]
        text = Label(((name, NAME), *((line, VALUE) for line in lines)))
        half, height, corner = text.width / 2 + 9, text.height / 2 + 5, 6

        def draw(axes: Axes, x: Length, row: RowSize) -> None:
            pen = Pen(axes, name, x, row.y)
            near, far = half - corner, height - corner
            right = [(near, -height), (half, -far), (half, far), (near, height)]
            pen.shape(*right, *((-x, y) for x, y in reversed(right)), face="#F8E1D6")
            pen.lines(text, text.height / 2)

        return [Cell({Band.CORE: (half, half)}, draw, height, height)]
    if isinstance(part, ThermalConductor):

        def draw_surroundings(pen: Pen) -> None:
            for y in (-16, -4, 8):
                pen.line((0, y), (0, y + 8), width=1.6)

        text = Label(((quantity_text("T_ambient", part.T_ambient, "K"), VALUE),))
        return [on_axis(name, Symbol(2, 17, 17, draw_surroundings), text, Band.BELOW)]
    if getattr(part, "rotational", False):
        disc = Symbol(7, 25, 25, lambda pen: pen.box((-7, 7), (-25, 25), BODY))
        body = on_axis(name, disc, label(name, part, True), Band.ABOVE)
        rubbing = [
            on_axis(key, shaft_contact(one), label(key, one, True, grounded=True), Band.BELOW)
            for key, one in contacts.items()
        ]
        before = []
        for key, one in drives.items():
            (arrow, box), text = turn(one), label(key, one, True)
            cell = on_axis(key, arrow, Label(()) if box else text, Band.ABOVE)
            above = [] if box is None else [off_axis(key, box, text, Band.ABOVE)]
            before.append(compose([cell, *above], [0, 0]) if above else cell)
        return [*before, body, *rubbing]
    if isinstance(part, Fixed):
        up = -21.0 if joined[1] else 21.0  # hatch the side without a joined part
        wall = Symbol(HATCH + 2, 21.0, 21.0, lambda pen: pen.ground((0, -up), (0, up)))
        return [on_axis(name, wall, label(name, part, turns), Band.BELOW)]
    return _sliding_cells(name, part, drives, contacts, joined[0])


def reference_cell(name: str) -> Cell:
    """Return the cell of a body that an earlier row shows: its name in a dashed box."""
    text = Label(((name, NAME),))
    half = text.width / 2 + 6

    def draw(axes: Axes, x: Length, row: RowSize) -> None:
        pen = Pen(axes, name, x, row.y)
        pen.box((-half, half), (-9, 9), edge=None)
        corners = ((-half, -9), (half, -9), (half, 9), (-half, 9), (-half, -9))
        for start, stop in zip(corners[:-1], corners[1:], strict=True):
            pen.line(start, stop, width=0.9, colour=SOFT, z=5, dashes=(0, (3, 2)))
        pen.lines(text, text.height / 2)

    return Cell({Band.CORE: (half, half)}, draw, 9, 9, edge=(half, half))


def _sliding_cells(
    name: str, part: Any, drives: Parts, contacts: Parts, joined: bool
) -> list[Cell]:
    """Return the cells of a sliding block. The first drive pushes from the left if no part is
    joined there. Other drives push against posts on top of the block.
    """
    stopped = isinstance(part, MassWithStopAndFriction)
    rubbing: dict[str, tuple[Any, Label]] = {}
    lines = values(part, False)
    if stopped:
        # The block shows name and mass. The label below it shows friction and hard stops.
        lines = [quantity_text("m", part.m, "kg")]
        below = [
            "Stribeck",
            *([] if part.f_neg is None else [f"f_neg: {type(part.f_neg).__name__}"]),
        ]
        below += [quantity_text(end, getattr(part, end), "m") for end in ("smin", "smax")]
        rubbing[name] = part, Label(tuple((line, VALUE) for line in below))
    for key, one in contacts.items():
        rubbing[key] = one, label(key, one, False, grounded=True)
    floor = max((pad_height(one) for one, _ in rubbing.values()), default=0.0)
    pads = [off_axis(key, pad(p, floor), text, Band.BELOW) for key, (p, text) in rubbing.items()]
    before, above = [], []
    for k, (key, drive) in enumerate(drives.items()):
        text = label(key, drive, False)
        if k == 0 and not joined:
            arrow = push(drive)
            cell = on_axis(key, arrow, text, Band.ABOVE)
            near = 0.0 if stopped else 9.0  # [pt] shift with which the arrow touches the block
            reach = {**cell.reach, Band.CORE: (arrow.half, arrow.half - near)}
            before.append(dataclasses.replace(cell, reach=reach, edge=(0.0, arrow.half)))
        else:
            above.append(off_axis(key, push(drive, on_post=True), text, Band.ABOVE))

    def draw_post(axes: Axes, x: Length, row: RowSize) -> None:
        # A hard stop is a post on the floor that ends below the rod.
        pen = Pen(axes, name, x, row.y)
        pen.box((-3, 3), (-row.down - floor, -7))
        pen.ground((-11, -row.down - floor), (11, -row.down - floor))

    post = Cell({Band.CORE: (3, 3), Band.BELOW: (11, 11)}, draw_post, below=floor + HATCH)
    posts = [post] if stopped else []
    text = Label(((name, NAME), *((line, VALUE) for line in lines)))
    # The block is as wide as its text and the symbols below and above it, and as high as its row.
    cells, places, half = list[Cell](), list[Length](), max(30.0, text.width / 2 + 8)
    for row in (pads, above):
        x = pack(row, dict.fromkeys(Band, 8.0))
        if x:
            middle = (x[0] + x[-1]) / 2
            cells += row
            places += [one - middle for one in x]
            half = max(half, x[-1] - middle + 24)

    def draw_block(axes: Axes, x: Length, row: RowSize) -> None:
        pen = Pen(axes, name, x, row.y)
        pen.box((-half, half), (-row.down, row.up), BODY)
        pen.lines(text, text.height / 2)

    height = max(21.0, text.height / 2 + 5)
    block = Cell({Band.CORE: (half, half)}, draw_block, height, height)
    return [*before, *posts, compose([block, *cells], [0.0, *places]), *posts]
