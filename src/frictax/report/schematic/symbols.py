"""The symbols of a schematic, as engineers draw them. What is orange rubs, what is green drives."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from frictax.contacts import BearingFriction, Brake, Clutch, OneWayClutch, SupportFriction
from frictax.mechanism import (
    Damper,
    ElastoBacklash,
    ElastoGap,
    IdealGear,
    IdealPlanetary,
    LossyGear,
    RotationalDamper,
    RotationalSpring,
    RotationalSpringDamper,
    Spring,
    SpringDamper,
    ThermalConductor,
)

from .pen import BODY, HATCH, LINING, SHAFT, Length, Pen
from .words import SMALL, known, text_width

PORT = 12.0  # between the ports of a gear that joins more than two bodies [pt]
_LEAD = 22.0  # half the length of a spring or damper [pt]


@dataclasses.dataclass(frozen=True)
class Symbol:
    """A drawing about a point: how far it reaches to either side, up and down [pt]."""

    half: Length
    up: Length
    down: Length
    draw: Callable[[Pen], None]


def of_link(part: Any, turns: bool) -> Symbol:
    """What joins two bodies, with its ends at the left and right."""
    kind = type(part)
    if kind in (IdealGear, LossyGear):
        return _gear(part)
    if kind in _LINKS:
        return _LINKS[kind]
    return _CLUTCH if kind is Brake and turns else _PAIRS.get(kind) or labelled_box(part)


def on_shaft(part: Any) -> Symbol:
    """A contact between a shaft and the housing."""
    return _ON_SHAFT.get(type(part)) or _grounded_box(part)


def labelled_box(part: Any, lowest: int = 0, highest: int = 0) -> Symbol:
    """A part without a symbol of its own, by the name of its class, as high as its ports
    need it.
    """
    text = type(part).__name__
    half, down, up = text_width(text, SMALL) / 2 + 6, 9 - lowest * PORT, 9 + highest * PORT

    def draw(pen: Pen) -> None:
        pen.box(-half, half, -down, up)
        pen.write(text, 0, 0, SMALL)

    return Symbol(half, up, down, draw)


def of_gear(part: Any, ports: Sequence[tuple[bool, int, str]]) -> Symbol:
    """What joins more than two bodies, by ports that bear names: (whether at the right, its height
    in steps, name) of each.
    """
    steps = [step for _, step, _ in ports]
    symbol = _LINKS.get(type(part)) or labelled_box(part, min(steps), max(steps))
    room = max(text_width(text, SMALL) for _, _, text in ports) + 8
    half = symbol.half + room

    def draw(pen: Pen) -> None:
        for right, step, text in ports:
            side = 1 if right else -1
            pen.line((0, step * PORT), (side * half, step * PORT), width=SHAFT, z=2)
            pen.write(text, side * (half - room / 2), step * PORT + 6, SMALL)
        symbol.draw(pen)

    return Symbol(
        half, max(symbol.up, max(steps) * PORT + 11), max(symbol.down, 4 - min(steps) * PORT), draw
    )


# -- what joins bodies


def _zigzag(pen: Pen, y: Length) -> None:
    teeth = [(-17 + 34 * (k + 0.5) / 6, y + (6.5 if k % 2 else -6.5)) for k in range(6)]
    pen.line((-_LEAD, y), (-17, y), *teeth, (17, y), (_LEAD, y))


def _dashpot(pen: Pen, y: Length) -> None:
    pen.line((-_LEAD, y), (-11, y))
    pen.line((10, y + 7), (-11, y + 7), (-11, y - 7), (10, y - 7))
    pen.line((2, y + 5), (2, y - 5), width=2.2)
    pen.line((2, y), (_LEAD, y))


def _both(pen: Pen) -> None:
    for x in (-_LEAD, _LEAD):
        pen.line((x, -10), (x, 10))
    _zigzag(pen, 10)
    _dashpot(pen, -10)


def _plates(pen: Pen) -> None:
    for side in (-1, 1):
        pen.line((side * 24, 0), (side * 4, 0), width=SHAFT)
        pen.box(side * 2.5, side * 6.5, -17, 17, BODY)
        pen.box(-2.5, 2.5, side * 7, side * 17, LINING, edge=None)
        pen.arrow((side * 19, 12), (side * 7, 12))


def _freewheel(pen: Pen) -> None:
    pen.line((-24, 0), (24, 0), width=SHAFT)
    pen.circle(0, 0, 14, BODY)
    pen.shape((-7, -8), (-7, 8), (6, 0), face=LINING)
    pen.line((7, -8), (7, 8), width=SHAFT, z=5)


def _pair(pen: Pen) -> None:
    for side in (-1, 1):
        pen.line((side * 28, 0), (side * 20, 0), (side * 20, -side * 5))
        pen.box(-side * 10, side * 20, -side * 3, -side * 8, BODY)
    pen.box(-10, 10, -3, 3, LINING, edge=None)


def _pressed_pair(pen: Pen) -> None:
    _pair(pen)
    for side in (-1, 1):
        pen.arrow((0, side * 20), (0, side * 8.5))


def _wheel(pen: Pen, x: Length, r: Length) -> None:
    teeth = max(9, round(1.1 * r))
    turn = np.pi * (2 * np.arange(4 * teeth) / (4 * teeth) + 1 / (4 * teeth))
    radius = r + 1.5 * np.tile([1, 1, -1, -1], teeth)
    pen.shape(
        *(
            (float(x + a * np.cos(b)), float(a * np.sin(b)))
            for a, b in zip(radius, turn, strict=True)
        ),
        face=BODY,
    )


def _gear(part: Any) -> Symbol:
    """Two wheels; their radii are as the ratio says, as long as both can be seen."""
    ratio = known(part.ratio)
    larger = float(np.clip(1.0 if ratio is None else abs(ratio), 0.5, 2.0))
    a, b = 26 / (1 + larger), 26 * larger / (1 + larger)
    left, right = a - 26, 26 - b

    def draw(pen: Pen) -> None:
        for x, r, side in ((left, a, -1), (right, b, 1)):
            _wheel(pen, x, r)
            pen.line((side * 28, 0), (x, 0), width=SHAFT, z=4.5)
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


_REACH = 32.0  # half the length of a spring and damper with a gap [pt]


def _spring_damper_to_the_right(pen: Pen) -> None:
    _both(dataclasses.replace(pen, x=pen.at((_REACH - _LEAD, 0))[0]))


def _one_gap(pen: Pen) -> None:
    _spring_damper_to_the_right(pen)
    pen.line((-_REACH, 0), (-_REACH + 10, 0))
    pen.line((-_REACH + 10, -10), (-_REACH + 10, 10), width=2.2)


def _backlash(pen: Pen) -> None:
    _spring_damper_to_the_right(pen)
    # A bar with play in a fork.
    pen.line((-_REACH, 0), (-_REACH + 9, 0))
    pen.line((-_REACH + 9, -5), (-_REACH + 9, 5), width=2.2)
    fork = ((4, 9), (4, 13), (14, 13), (14, -13), (4, -13), (4, -9))
    pen.line(*((x - _REACH, y) for x, y in fork))
    pen.line((14 - _REACH, 0), (20 - _REACH, 0))


_CLUTCH = Symbol(24, 18, 18, _plates)
_LINKS = {
    **dict.fromkeys((Spring, RotationalSpring), Symbol(_LEAD, 8, 8, lambda pen: _zigzag(pen, 0))),
    **dict.fromkeys((Damper, RotationalDamper), Symbol(_LEAD, 8, 8, lambda pen: _dashpot(pen, 0))),
    **dict.fromkeys((SpringDamper, RotationalSpringDamper), Symbol(_LEAD, 18, 18, _both)),
    ElastoGap: Symbol(_REACH, 18, 18, _one_gap),
    ElastoBacklash: Symbol(_REACH, 18, 18, _backlash),
    Clutch: _CLUTCH,
    OneWayClutch: Symbol(24, 15, 15, _freewheel),
    IdealPlanetary: Symbol(25, 26, 26, _planets),
    ThermalConductor: Symbol(_LEAD, 7, 7, lambda pen: pen.box(-_LEAD, _LEAD, -6, 6)),
}
_PAIRS = {
    SupportFriction: Symbol(28, 9, 9, _pair),
    BearingFriction: Symbol(28, 9, 9, _pair),
    Brake: Symbol(28, 21, 21, _pressed_pair),
}

# -- what holds a shaft in the housing


def _bearing(pen: Pen) -> None:
    for side in (-1, 1):
        pen.box(-13, 13, side * 1.5, side * 5, LINING, edge=None)
        pen.ground((side * 13, side * 5), (-side * 13, side * 5))


def _shaft_brake(pen: Pen) -> None:
    pen.box(-2.2, 2.2, -19, 19, BODY)
    for side in (-1, 1):
        pen.box(side * 2.2, side * 7, -18, -7, LINING, edge=None)
        pen.arrow((side * 18, -12.5), (side * 7.5, -12.5))
        pen.line((side * 18, -12.5 + 3), (side * 18, -25))
    pen.ground((-20, -25), (20, -25))


def _grounded_box(part: Any) -> Symbol:
    box = labelled_box(part)

    def draw(pen: Pen) -> None:
        box.draw(pen)
        pen.line((0, -box.down), (0, -18))
        pen.ground((-13, -18), (13, -18))

    return Symbol(box.half, box.up, 18 + HATCH, draw)


_ON_SHAFT = {
    BearingFriction: Symbol(15, 6 + HATCH, 6 + HATCH, _bearing),
    Brake: Symbol(21, 20, 26 + HATCH, _shaft_brake),
}
