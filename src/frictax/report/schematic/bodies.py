"""The cells of a schematic's bodies, with the drives and the friction that act on each alone."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes

from frictax.contacts import AbstractContact, MassWithStopAndFriction
from frictax.mechanism import Fixed, HeatCapacitor, ThermalConductor

from .cells import Band, Cell, RowSize, compose, off_axis, on_axis, pack
from .labels import NAME, VALUE, Label, label, quantity_text, values
from .pen import BODY, HATCH, SOFT, Length, Pen, Symbol
from .symbols import pad, pad_height, push, shaft_contact, turn

_WARM = "#F8E1D6"
_WALL = 21.0  # [pt] half the height of a wall

Parts = Mapping[str, Any]  # by their names


def node_cells(
    name: str, part: Any, acting: Parts, *, turns: bool, joined: tuple[bool, bool]
) -> list[Cell]:
    """Return the cells of a body or wall with the parts that act on it alone.

    `turns`: whether its row turns; `joined`: whether a part joins it at the left, at the right.
    """
    contacts = {key: one for key, one in acting.items() if isinstance(one, AbstractContact)}
    drives = {key: one for key, one in acting.items() if key not in contacts}
    if isinstance(part, HeatCapacitor):
        return [_capacitor(name, part)]
    if isinstance(part, ThermalConductor):
        text = Label(((quantity_text("T_ambient", part.T_ambient, "K"), VALUE),))
        return [on_axis(name, Symbol(2, 17, 17, _surroundings), text, Band.BELOW)]
    if getattr(part, "rotational", False):
        disc = Symbol(7, 25, 25, lambda pen: pen.box((-7, 7), (-25, 25), BODY))
        body = on_axis(name, disc, label(name, part, True), Band.ABOVE)
        rubbing = [
            on_axis(key, shaft_contact(one), label(key, one, True, grounded=True), Band.BELOW)
            for key, one in contacts.items()
        ]
        return [*(_turning_drive(key, one) for key, one in drives.items()), body, *rubbing]
    if isinstance(part, Fixed):
        up = -_WALL if joined[1] else _WALL  # hatched on the side where nothing is joined
        wall = Symbol(HATCH + 2, _WALL, _WALL, lambda pen: pen.ground((0, -up), (0, up)))
        return [on_axis(name, wall, label(name, part, turns), Band.BELOW)]
    return _sliding_body(name, part, drives, contacts, joined[0])


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


def _turning_drive(name: str, drive: Any) -> Cell:
    (arrow, box), text = turn(drive), label(name, drive, True)
    if box is None:
        return on_axis(name, arrow, text, Band.ABOVE)
    around = on_axis(name, arrow, Label(()), Band.ABOVE)
    return compose([around, off_axis(name, box, text, Band.ABOVE)], [0, 0])


def _sliding_body(name: str, part: Any, drives: Parts, contacts: Parts, joined: bool) -> list[Cell]:
    """Return a block on its guides. The first drive pushes from the left if this side is free.
    Other drives push against posts on the block.
    """
    stopped = isinstance(part, MassWithStopAndFriction)
    rubbing: dict[str, tuple[Any, Label]] = {name: (part, _stops_label(part))} if stopped else {}
    for key, one in contacts.items():
        rubbing[key] = one, label(key, one, False, grounded=True)
    floor = max((pad_height(one) for one, _ in rubbing.values()), default=0.0)
    below = [off_axis(key, pad(p, floor), text, Band.BELOW) for key, (p, text) in rubbing.items()]
    first = list(drives)[: 0 if joined else 1]
    above = [
        off_axis(key, _push_on_post(one), label(key, one, False), Band.ABOVE)
        for key, one in drives.items()
        if key not in first
    ]
    lines = [quantity_text("m", part.m, "kg")] if stopped else values(part, False)
    text = Label(((name, NAME), *((line, VALUE) for line in lines)))
    posts = [_post(name, floor)] if stopped else []
    before = [_push_from_left(key, drives[key], touching=not stopped) for key in first]
    return [*before, *posts, _block(name, text, below, above), *posts]


def _push_from_left(name: str, drive: Any, touching: bool) -> Cell:
    symbol = push(drive)
    cell = on_axis(name, symbol, label(name, drive, False), Band.ABOVE)
    near = 9.0 if touching else 0.0  # the gap to the next cell
    reach = {**cell.reach, Band.CORE: (symbol.half, symbol.half - near)}
    return dataclasses.replace(cell, reach=reach, edge=(0.0, symbol.half))


def _push_on_post(drive: Any) -> Symbol:
    symbol = push(drive)

    def draw(pen: Pen) -> None:
        symbol.draw(pen.shifted_by(0, 12))
        pen.line((symbol.half, 0), (symbol.half, 20), width=2.2)

    return Symbol(symbol.half, 22, 0, draw)


def _block(name: str, text: Label, below: list[Cell], above: list[Cell]) -> Cell:
    """Return a block as wide as its text and the symbols below and above it, as high as its row."""
    cells: list[Cell] = []
    places: list[Length] = []
    half = max(30.0, text.width / 2 + 8)
    for row in (below, above):
        x = pack(row, dict.fromkeys(Band, 8.0))
        if x:
            middle = (x[0] + x[-1]) / 2
            cells += row
            places += [one - middle for one in x]
            half = max(half, x[-1] - middle + 24)

    def draw(axes: Axes, x: Length, row: RowSize) -> None:
        pen = Pen(axes, name, x, row.y)
        pen.box((-half, half), (-row.down, row.up), BODY)
        pen.lines(text, text.height / 2)

    height = max(21.0, text.height / 2 + 5)
    return compose([Cell({Band.CORE: (half, half)}, draw, height, height), *cells], [0.0, *places])


def _stops_label(part: MassWithStopAndFriction) -> Label:
    """Return the label below a mass with stops; its name is inside the block."""
    backward = [] if part.f_neg is None else [f"f_neg: {type(part.f_neg).__name__}"]
    lines = [
        "Stribeck",
        *backward,
        quantity_text("smin", part.smin, "m"),
        quantity_text("smax", part.smax, "m"),
    ]
    return Label(tuple((line, VALUE) for line in lines))


def _post(name: str, floor: Length) -> Cell:
    """Return a hard stop, which stands on the floor and ends below the rod."""

    def draw(axes: Axes, x: Length, row: RowSize) -> None:
        pen = Pen(axes, name, x, row.y)
        pen.box((-3, 3), (-row.down - floor, -7))
        pen.ground((-11, -row.down - floor), (11, -row.down - floor))

    return Cell({Band.CORE: (3, 3), Band.BELOW: (11, 11)}, draw, below=floor + HATCH)


def _capacitor(name: str, part: Any) -> Cell:
    """Return a body of one temperature, with the names of its heat sources."""
    heated = [f"{'and' if k else 'heated by'} {source}" for k, source in enumerate(part.sources)]
    text = Label(((name, NAME), *((line, VALUE) for line in [*values(part, False), *heated])))
    half, height, corner = text.width / 2 + 9, text.height / 2 + 5, 6

    def draw(axes: Axes, x: Length, row: RowSize) -> None:
        pen = Pen(axes, name, x, row.y)
        near, far = half - corner, height - corner
        right = [(near, -height), (half, -far), (half, far), (near, height)]
        pen.shape(*right, *((-x, y) for x, y in reversed(right)), face=_WARM)
        pen.lines(text, text.height / 2)

    return Cell({Band.CORE: (half, half)}, draw, height, height)


def _surroundings(pen: Pen) -> None:
    for y in (-16, -4, 8):
        pen.line((0, y), (0, y + 8), width=1.6)
