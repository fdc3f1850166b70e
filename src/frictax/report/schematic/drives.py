"""The symbols of what drives a body: forces, torques, given motions, controllers."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from frictax.mechanism import (
    Force,
    LinearPositionDependentForce,
    PeriodicPositionDependentForce,
    Position,
    PositionController,
    QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque,
    Torque,
)

from .pen import DRIVE, Pen
from .symbols import Symbol, labelled_box


def push(drive: Any) -> Symbol:
    """An arrow to the right; of a drive that is more than a force, out of a box."""
    if type(drive) in _PUSHES:
        return Symbol(20, 7, 7, _PUSHES[type(drive)])
    box = _boxed(drive)

    def draw(pen: Pen) -> None:
        box.draw(dataclasses.replace(pen, x=pen.x - 12))
        pen.arrow((box.half - 12, 0), (box.half + 12, 0))

    return Symbol(box.half + 12, box.up, box.down, draw)


def is_arrow(drive: Any) -> bool:
    """Whether its push is an arrow alone."""
    return type(drive) in _PUSHES


def push_on_post(drive: Any) -> Symbol:
    """A push against a post that stands on the body."""
    symbol = push(drive)

    def draw(pen: Pen) -> None:
        symbol.draw(dataclasses.replace(pen, y=pen.y + 12))
        pen.line((symbol.half, 0), (symbol.half, 20), width=2.2)

    return Symbol(symbol.half, 22, 0, draw)


def turn(drive: Any) -> tuple[Symbol, Symbol | None]:
    """An arrow about a shaft; of a drive that is more than a torque, with a box that
    stands above.
    """
    arrow = Symbol(12, 18, 18, _TURNS.get(type(drive), _turn))
    if type(drive) in _TURNS:
        return arrow, None
    box = _boxed(drive)

    def draw(pen: Pen) -> None:
        pen.line((0, -6), (0, 6), colour=DRIVE)
        box.draw(dataclasses.replace(pen, y=pen.y + 6 + box.down))

    return arrow, Symbol(box.half, 6 + box.up + box.down, 0, draw)


def _boxed(drive: Any) -> Symbol:
    return _BOXES.get(type(drive)) or labelled_box(drive)


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


def _loop(pen: Pen) -> None:
    """A controller: the difference between what is asked and what is, and a gain."""
    pen.circle(-14, 0, 5)
    for slope in (-3.5, 3.5):
        pen.line((-17.5, -slope), (-10.5, slope), z=5, width=0.9)
    pen.arrow((-9, 0), (0, 0), head=5, width=1.1)
    pen.box(0, 19, -9, 9)
    pen.shape((5, -5), (5, 5), (14, 0))


def _graph(curve: Callable[[np.ndarray], np.ndarray]) -> Callable[[Pen], None]:
    """A force over position or speed, both from -9 to 9."""
    x = np.linspace(-9.0, 9.0, 41)
    points = list(zip(x.tolist(), curve(x).tolist(), strict=True))

    def draw(pen: Pen) -> None:
        pen.box(-14, 14, -10, 10)
        pen.line((-10, 0), (10, 0), z=5, width=0.7)
        pen.line((0, -7), (0, 7), z=5, width=0.7)
        pen.line(*points, z=5, width=1.6, colour=DRIVE)

    return draw


_DRAG = Symbol(14, 10, 10, _graph(lambda v: -0.085 * v * np.abs(v)))


_PUSHES: dict[type, Callable[[Pen], None]] = {Force: _push, Position: _given_push}
_TURNS: dict[type, Callable[[Pen], None]] = {Torque: _turn, Position: _given_turn}
_BOXES = {
    PositionController: Symbol(19, 9, 9, _loop),
    LinearPositionDependentForce: Symbol(14, 10, 10, _graph(lambda s: 1.5 + 0.5 * s)),
    PeriodicPositionDependentForce: Symbol(14, 10, 10, _graph(lambda s: 6 * np.sin(0.7 * s))),
    QuadraticSpeedDependentForce: _DRAG,
    QuadraticSpeedDependentTorque: _DRAG,
}
