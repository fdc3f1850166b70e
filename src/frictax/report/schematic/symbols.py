"""The symbols of a schematic, as engineers draw them. Friction is orange, drives are green."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from frictax.contacts import (
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
    Force,
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

from .labels import SMALL, concrete_number, text_width
from .pen import BODY, DRIVE, HATCH, LINING, SHAFT, Length, Pen, Symbol

_PORT = 12.0  # [pt] between the ports of a gear with more than two ends


def link_symbol(part: Any, turns: bool) -> Symbol:
    """Return the symbol of a part that joins two bodies, with its ends at the left and right."""
    if type(part) in (IdealGear, LossyGear):
        return _gear(part)
    if type(part) is Brake and turns:
        return _LINKS[Clutch]
    return _LINKS.get(type(part)) or class_box(part)


def gear_symbol(part: Any, roles: tuple[str, str], others: Sequence[str]) -> Symbol:
    """Return the symbol of a part with more than two ends.

    `roles`: the names of its ports at the left and right; `others`: the texts at its other ports,
    which lie below each other at the right.
    """
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
    """Return a box with the name of the part's class, high enough for `ports` below its axis."""
    text = type(part).__name__
    half, down = text_width(text, SMALL) / 2 + 6, 9 + ports * _PORT

    def draw(pen: Pen) -> None:
        pen.box((-half, half), (-down, 9))
        pen.write(text, 0, 0, SMALL)

    return Symbol(half, 9, down, draw)


# -- springs, dampers, gaps


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
    """Draw a bar with play in a fork, before a spring and damper."""
    _spring_damper(pen.shifted_by(10, 0))
    pen.line((-32, 0), (-23, 0))
    pen.line((-23, -5), (-23, 5), width=2.2)
    pen.line((-28, 9), (-28, 13), (-18, 13), (-18, -13), (-28, -13), (-28, -9))
    pen.line((-18, 0), (-12, 0))


# -- contacts between two bodies


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


# -- gears


def _gear(part: Any) -> Symbol:
    """Two wheels whose radii follow the ratio while both remain visible."""
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


# -- contacts with the housing


def shaft_contact(part: Any) -> Symbol:
    """Return the symbol of a contact between a shaft and the housing."""
    if type(part) is BearingFriction:
        return Symbol(15, 6 + HATCH, 6 + HATCH, _bearing)
    if type(part) is Brake:
        return Symbol(21, 20, 26 + HATCH, _shaft_brake)
    box = class_box(part)

    def draw(pen: Pen) -> None:
        box.draw(pen)
        pen.line((0, -box.down), (0, -18))
        pen.ground((-13, -18), (13, -18))

    return Symbol(box.half, box.up, 18 + HATCH, draw)


def _bearing(pen: Pen) -> None:
    for side in (-1, 1):
        pen.box((-13, 13), (side * 1.5, side * 5), LINING, edge=None)
        pen.ground((side * 13, side * 5), (-side * 13, side * 5))


def _shaft_brake(pen: Pen) -> None:
    pen.box((-2.2, 2.2), (-19, 19), BODY)
    for side in (-1, 1):
        pen.box((side * 2.2, side * 7), (-18, -7), LINING, edge=None)
        pen.arrow((side * 18, -12.5), (side * 7.5, -12.5))
        pen.line((side * 18, -9.5), (side * 18, -25))
    pen.ground((-20, -25), (20, -25))


def pad_height(part: Any) -> Length:
    """Return how far below a sliding body the floor lies at least."""
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


# -- drives


def push(drive: Any) -> Symbol:
    """Return an arrow to the right, which leaves a box unless the drive is a plain force."""
    if type(drive) in (Force, Position):
        return Symbol(20, 7, 7, _push if type(drive) is Force else _given_push)
    box = _BOXES.get(type(drive)) or class_box(drive)

    def draw(pen: Pen) -> None:
        box.draw(pen.shifted_by(-12, 0))
        pen.arrow((box.half - 12, 0), (box.half + 12, 0))

    return Symbol(box.half + 12, box.up, box.down, draw)


def turn(drive: Any) -> tuple[Symbol, Symbol | None]:
    """Return an arrow around a shaft, and the box above it unless the drive is a plain torque."""
    arrow = Symbol(12, 18, 18, _given_turn if type(drive) is Position else _turn)
    if type(drive) in (Torque, Position):
        return arrow, None
    box = _BOXES.get(type(drive)) or class_box(drive)

    def draw(pen: Pen) -> None:
        pen.line((0, -6), (0, 6), colour=DRIVE)
        box.draw(pen.shifted_by(0, 6 + box.down))

    return arrow, Symbol(box.half, 6 + box.up + box.down, 0, draw)


def _push(pen: Pen) -> None:
    pen.arrow((-20, 0), (20, 0))


def _given_push(pen: Pen) -> None:
    pen.line((-19, 7), (-19, -7), width=1.8, colour=DRIVE)
    pen.arrow((-19, 0), (13, 0))
    pen.arrow((10, 0), (20, 0))


def _turn(pen: Pen) -> None:
    angle = np.linspace(0.2 * np.pi, 1.75 * np.pi, 60)
    points = [(7.5 * float(np.cos(a)), 17.0 * float(np.sin(a))) for a in angle]
    pen.line(*points[:-3], width=1.8, colour=DRIVE)
    pen.arrow(points[-7], points[-1])


def _given_turn(pen: Pen) -> None:
    _turn(pen)
    pen.line((1, 9), (11, 11), width=1.8, colour=DRIVE)


def _controller(pen: Pen) -> None:
    """Draw the difference between reference and position, and a gain."""
    pen.circle(-14, 0, 5)
    for slope in (-3.5, 3.5):
        pen.line((-17.5, -slope), (-10.5, slope), z=5, width=0.9)
    pen.arrow((-9, 0), (0, 0), head=5, width=1.1)
    pen.box((0, 19), (-9, 9))
    pen.shape((5, -5), (5, 5), (14, 0))


def _graph(curve: Callable[[np.ndarray], np.ndarray]) -> Symbol:
    """Return the graph of a force over position or speed, both from -9 to 9."""
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
