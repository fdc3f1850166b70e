"""A body in a schematic, with the drives and the friction that act on it alone: a block on its
guide, or a disc on its shaft.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from frictax.contacts import AbstractContact, Brake, MassWithStopAndFriction, SupportFriction

from .cells import GAP, Band, Cell, Row, beside, composed, labelled, on_rod, outside, packed
from .drives import is_arrow, push, push_on_post, turn
from .pen import BODY, HATCH, LINING, ROD, SHAFT, Length, Pen
from .symbols import Symbol, labelled_box, on_shaft
from .words import NAME, VALUE, Label, label, said, values

Parts = Mapping[str, Any]  # by their names


def body_cell(name: str, part: Any, on_it: Parts, joined: tuple[bool, bool]) -> Cell:
    """The body `name` with what acts `on_it` alone.

    `joined`: whether something joins it from the left, from the right.
    """
    rubbing = {key: one for key, one in on_it.items() if isinstance(one, AbstractContact)}
    drives = {key: one for key, one in on_it.items() if key not in rubbing}
    return (
        _rotor(name, part, drives, rubbing)
        if getattr(part, "rotational", False)
        else _slider(name, part, drives, rubbing, joined)
    )


# -- what turns: all on one shaft


def _rotor(name: str, part: Any, drives: Parts, rubbing: Parts) -> Cell:
    disc = Symbol(7, 25, 25, lambda pen: pen.box(-7, 7, -25, 25, BODY))
    cells = [_turned(key, one) for key, one in drives.items()]
    cells += [labelled(name, disc, label(name, part, True), Band.ABOVE)]
    cells += [
        labelled(key, on_shaft(one), label(key, one, True, grounded=True), Band.BELOW)
        for key, one in rubbing.items()
    ]
    cell = beside(cells, len(drives))
    return on_rod(cell, *cell.reach[Band.CORE], SHAFT)


def _turned(name: str, drive: Any) -> Cell:
    (arrow, box), text = turn(drive), label(name, drive, True)
    if box is None:
        return labelled(name, arrow, text, Band.ABOVE)
    return composed(
        [labelled(name, arrow, Label(()), Band.ABOVE), outside(name, box, text, Band.ABOVE)], [0, 0]
    )


# -- what slides: a block, pushed from its sides and from above, on what it rubs on


def _slider(name: str, part: Any, drives: Parts, rubbing: Parts, joined: tuple[bool, bool]) -> Cell:
    stopped = isinstance(part, MassWithStopAndFriction)
    own = {name: part} if stopped else {}
    depth = max((_floor(one) for one in [*own.values(), *rubbing.values()]), default=0.0)
    pads = [outside(name, _pad(part, depth), _of_stops(part), Band.BELOW)] if stopped else []
    pads += [
        outside(key, _pad(one, depth), label(key, one, False, grounded=True), Band.BELOW)
        for key, one in rubbing.items()
    ]

    left, right, above = _sides(drives, joined)
    pushes = [
        outside(key, push_on_post(drives[key]), label(key, drives[key], False), Band.ABOVE)
        for key in above
    ]
    posts = [_post(name, depth)] if stopped else []
    # an arrow touches the block, unless a stop stands there
    near = 0.0 if stopped else GAP[Band.CORE]
    before = [_pushed(key, drives[key], (0.0, near)) for key in left]
    after = [_pushed(key, drives[key], (near, 0.0)) for key in right]

    lines = [said("m", part.m, "kg")] if stopped else values(part, False)
    inside = Label(((name, NAME), *((line, VALUE) for line in lines)))
    cell = beside(
        [*before, *posts, _block(name, inside, pads, pushes), *posts, *after], len(before + posts)
    )
    reach = cell.reach[Band.CORE]
    return on_rod(cell, reach[0] - 20 if left else 0.0, reach[1] - 20 if right else 0.0, ROD)


def _sides(drives: Parts, joined: tuple[bool, bool]) -> tuple[list[str], list[str], list[str]]:
    """The drives that push from the left, that pull at the right, where nothing else is joined, and
    those that push from above.
    """
    names = list(drives)
    left = names[: 0 if joined[0] else 1]
    right = [name for name in names[len(left) :] if is_arrow(drives[name])][: 0 if joined[1] else 1]
    return left, right, [name for name in names if name not in left + right]


def _pushed(name: str, drive: Any, near: tuple[Length, Length]) -> Cell:
    """A push on the axis, which lets neighbours come nearer than others do."""
    symbol = push(drive)
    cell = labelled(name, symbol, label(name, drive, False), Band.ABOVE)
    return dataclasses.replace(
        cell, reach={**cell.reach, Band.CORE: (symbol.half - near[0], symbol.half - near[1])}
    )


def _block(name: str, text: Label, pads: Sequence[Cell], pushes: Sequence[Cell]) -> Cell:
    """A block as wide as its text and as what stands on and below it, as high as its row."""
    placed: list[tuple[Cell, Length]] = []
    half = max(30.0, text.width / 2 + 8)
    for row in (pads, pushes):
        places = packed([[cell.reach] for cell in row], lambda _: 8.0)
        if places:
            middle = (places[0] + places[-1]) / 2
            placed += [(cell, x - middle) for cell, x in zip(row, places, strict=True)]
            half = max(half, places[-1] - middle + 24)

    def draw(axes: Axes, x: Length, row: Row) -> None:
        pen = Pen(axes, name, x, row.y)
        pen.box(-half, half, -row.down, row.up, BODY)
        pen.lines(text, text.height / 2)

    height = max(21.0, text.height / 2 + 5)
    block = Cell({Band.CORE: (half, half)}, draw, height, height)
    return composed([block, *(cell for cell, _ in placed)], [0.0, *(x for _, x in placed)])


def _of_stops(part: MassWithStopAndFriction) -> Label:
    """What stands below a mass with stops, whose name stands in the block."""
    backward = [] if part.f_neg is None else [f"f_neg: {type(part.f_neg).__name__}"]
    lines = ["Stribeck", *backward, said("smin", part.smin, "m"), said("smax", part.smax, "m")]
    return Label(tuple((line, VALUE) for line in lines))


def _post(name: str, floor: Length) -> Cell:
    """A hard stop: it stands on the floor, lower than the rod."""

    def draw(axes: Axes, x: Length, row: Row) -> None:
        pen = Pen(axes, name, x, row.y)
        pen.box(-3, 3, -row.down - floor, -7)
        pen.ground((-11, -row.down - floor), (11, -row.down - floor))

    return Cell({Band.CORE: (3, 3), Band.BELOW: (11, 11)}, draw, below=floor + HATCH)


# -- what stands between a block and the floor


def _floor(part: Any) -> Length:
    """How far below the block the floor must lie at least [pt]."""
    return _PADS[type(part)][0] if type(part) in _PADS else 26.0


def _pad(part: Any, floor: Length) -> Symbol:
    box = labelled_box(part)

    def draw(pen: Pen) -> None:
        if type(part) in _PADS:
            _PADS[type(part)][1](pen, floor)
        else:
            pen.line((0, 0), (0, -floor))
            box.draw(dataclasses.replace(pen, y=pen.y - floor / 2))
        pen.ground((-22, -floor), (22, -floor))

    return Symbol(22.0 if type(part) in _PADS else max(22.0, box.half), 0, floor + HATCH, draw)


def _shoe(pen: Pen, floor: Length) -> None:
    pen.box(-10, 10, 5 - floor, 0, BODY)
    pen.box(-14, 14, -floor, 5 - floor, LINING)


def _pressed(pen: Pen, floor: Length) -> None:
    pen.box(-14, 14, -5, 0, LINING)
    pen.arrow((0, -floor), (0, -6))


_PADS: dict[type, tuple[Length, Callable[[Pen, Length], None]]] = {
    SupportFriction: (10.0, _shoe),
    MassWithStopAndFriction: (10.0, _shoe),
    Brake: (24.0, _pressed),
}
