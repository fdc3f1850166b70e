"""What a part of a mechanism is attached to: flanges of bodies, checked by name and by kind of
motion.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from frictax.contacts import AbstractContact, MassWithStopAndFriction, MotionDependent
from frictax.text import suggestion

from .bodies import AbstractBody, Fixed
from .gears import AbstractGear

BODIES = (AbstractBody, MassWithStopAndFriction)


@dataclasses.dataclass(frozen=True)
class Flange:
    """An end of a body: the body's number, or None and the part's number of a `Fixed`; `side` is
    -1, 0 or +1 times L/2.
    """

    body: int | None
    part: int
    side: int


@dataclasses.dataclass(frozen=True)
class Contact:
    """Where a friction contact stands: what `flange` does relative to `support` (None: the housing)
    is its motion.

    `part` is its number, `signal` the number of the signal that presses it on. `group`: the
    contacts that it acts on through bodies and gears, itself among them. `alone`: it has no such
    neighbour, and holds one coordinate that no gear ties to another. `redundant`: others in its
    group can hold the same motion. `wall`, `piece`, `side`: where in the mode vector its stop, the
    piece of its law and the line of its torque stand, and `face` the sign of what presses it on
    from either side; None where it has none. `is_pressed`: a normal force presses it on, by a
    signal or by the motion.
    """

    part: int
    flange: Flange
    support: Flange | None
    signal: int | None
    group: tuple[int, ...] = ()
    alone: bool = True
    redundant: bool = False
    wall: int | None = None
    piece: int | None = None
    side: int | None = None
    is_pressed: bool = False
    face: int | None = None

    @property
    def ends(self) -> list[tuple[int, float]]:
        """The bodies that it acts on, each with the sign of its motion in that of the contact."""
        flanges = (self.flange, 1.0), (self.support, -1.0)
        return [(f.body, sign) for f, sign in flanges if f is not None and f.body is not None]


@dataclasses.dataclass(frozen=True)
class Gear:
    """A relation between the positions of `bodies`; the last of them follows the others."""

    part: int
    bodies: tuple[int, ...]


def misfit(sentence: str) -> ValueError:
    """The error for parts that do not fit together."""
    return ValueError(f"`Mechanism`: {sentence}")


def contact_of(mechanism: Any, i: int, part: Any, signal: Callable[[int, str], int]) -> Contact:
    """Where the friction of part i acts; `signal` numbers the signals of parts by their fields."""
    plus, minus = part.between()
    flange, support = (
        flange_of(mechanism, i, plus, 1),
        None if minus is None else flange_of(mechanism, i, minus, 1),
    )
    name = mechanism.names[i]
    if flange.body is None and (support is None or support.body is None):
        raise misfit(
            f"the friction {name!r} must act on a body that moves, got {plus!r}, which"
            " is fixed. Name the mass instead."
        )
    if support is not None and support.body == flange.body and flange.body is not None:
        raise misfit(
            f"the friction {name!r} must act between two bodies, got {plus!r} and"
            f" {minus!r}. Leave out one."
        )
    is_pressed = hasattr(part, "f_normalized")
    by_signal = is_pressed and not isinstance(part.f_normalized, MotionDependent)
    return Contact(
        i, flange, support, signal(i, "f_normalized") if by_signal else None, is_pressed=is_pressed
    )


def gear_of(mechanism: Any, i: int, part: AbstractGear) -> Gear:
    """The bodies that gear i ties together."""
    numbers = tuple(moving_body(mechanism, i, name) for name in part.joined())
    if len(set(numbers)) < len(numbers):
        raise misfit(
            f"the gear {mechanism.names[i]!r} must join different bodies, got"
            f" {', '.join(part.joined())}. Add the other one."
        )
    return Gear(i, numbers)


def moving_body(mechanism: Any, i: int, name: str) -> int:
    """The number of the body that part i calls `name`, which must not be fixed."""
    body = flange_of(mechanism, i, name, 0).body
    if body is None:
        raise misfit(
            f"{mechanism.names[i]!r} must name bodies that move, got {name!r}, which"
            " is fixed. Hold a body by a `Brake` or a `Position`."
        )
    return body


def body_parts(mechanism: Any) -> list[int]:
    """The parts that are bodies, in the order of the bodies' numbers."""
    return [i for i, p in enumerate(mechanism.parts) if isinstance(p, BODIES)]


def coordinates_of(body: Any) -> tuple[str, str]:
    """What position and velocity of a body are called."""
    return ("phi", "w") if body.rotational else ("s", "v")


def is_rotational(part: Any) -> bool | None:
    """Whether a part turns (True) or slides (False); None for one that does either."""
    return getattr(type(part), "rotational", None)


def turns_about(mechanism: Any, name: str) -> bool | None:
    """Whether the part called `name`, or the body that it is on, turns; None for one on nothing."""
    part = mechanism[name]
    turns = is_rotational(part)
    if turns is None:
        contact = isinstance(part, AbstractContact)
        if body := part.between()[0] if contact else getattr(part, "body", ""):
            return is_rotational(mechanism[body.partition(".")[0]])
    return turns


def flange_of(mechanism: Any, part: int, name: Any, side: int) -> Flange:
    """The flange that a part calls `name`, on that side of its body where the name says none."""
    owner = mechanism.names[part]
    if not isinstance(name, str):
        raise misfit(
            f"{owner!r} must name the body it is attached to as text, got {name!r}. Write 'mass'."
        )
    body, _, end = name.partition(".")
    attachable = [n for n, p in mechanism.named_parts() if isinstance(p, (*BODIES, Fixed))]
    if body not in attachable:
        raise misfit(
            f"{owner!r} is attached to {name!r}, which is no"
            f" body.{suggestion(body, attachable)} Bodies are: {', '.join(attachable)}."
        )
    if end not in ("", "flange_a", "flange_b", "flange"):
        raise misfit(
            f"{owner!r} is attached to {name!r}; write {body!r}, '{body}.flange_a' or"
            f" '{body}.flange_b'."
        )
    index = mechanism.names.index(body)
    _check_kind(mechanism, part, index)
    if isinstance(mechanism.parts[index], Fixed):
        return Flange(None, index, 0)
    has_length = hasattr(mechanism.parts[index], "L")
    return Flange(
        body_parts(mechanism).index(index),
        index,
        {"flange_a": -1, "flange_b": 1}.get(end, side) * has_length,
    )


def _check_kind(mechanism, part: int, index: int) -> None:
    here, there = is_rotational(mechanism.parts[part]), is_rotational(mechanism.parts[index])
    if None in (here, there) or here == there:
        return
    kind, body = type(mechanism.parts[part]).__name__, type(mechanism.parts[index]).__name__
    does = ("slides", "turns")
    raise misfit(
        f"{mechanism.names[part]!r}, a {kind}, acts on what {does[bool(here)]}, got"
        f" {mechanism.names[index]!r}, which is of kind {body} and {does[bool(there)]}. Take the"
        f" {'translational' if here else 'rotational'} part."
    )
