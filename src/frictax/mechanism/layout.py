"""What a part of a mechanism is attached to: flanges of bodies, checked by name and by kind of
motion.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from frictax.contacts import AbstractContact, MassWithStopAndFriction, MotionDependent
from frictax.contacts.contact import has_breaks
from frictax.contacts.rubbing import bristle_of
from frictax.text import suggestion

from .bodies import AbstractBody, Fixed
from .forces import AbstractCompliant, AbstractMotion, AbstractSource
from .gaps import AbstractGap
from .gears import AbstractGear
from .thermal import HeatCapacitor, ThermalConductor

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


@dataclasses.dataclass(frozen=True)
class Node:
    """A thermal node: its part, and the numbers of the contacts, compliants and contacts with a
    bristle that heat it.
    """

    part: int
    contacts: tuple[int, ...]
    compliants: tuple[int, ...]
    bristles: tuple[int, ...] = ()


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


PARTS = (
    *BODIES,
    Fixed,
    AbstractCompliant,
    AbstractSource,
    AbstractMotion,
    AbstractGear,
    AbstractContact,
    HeatCapacitor,
    ThermalConductor,
)


@dataclasses.dataclass(frozen=True)
class Layout:
    """The parts by number.

    `coordinates`: the bodies whose positions are the coordinates, the others follow by `gears` or
    `motions`; `conductors`: part, node and node or None; `gaps`: the compliants that do not always
    touch; `bristles`: the contacts that have one, which are a force like any other: none of
    `contacts`; `elements`: how many each of these has that stick and slip, with a mode each; 0: it
    has one force and no mode.
    """

    bodies: tuple[int, ...]
    coordinates: tuple[int, ...]
    gears: tuple[Gear, ...]
    motions: tuple[tuple[int, int, int], ...]
    contacts: tuple[Contact, ...]
    compliants: tuple[tuple[int, Flange, Flange], ...]
    forces: tuple[tuple[int, Flange, int | None], ...]
    signals: tuple[tuple[int, str], ...]
    nodes: tuple[Node, ...] = ()
    gaps: tuple[int, ...] = ()
    conductors: tuple[tuple[int, int, int | None], ...] = ()
    bristles: tuple[Contact, ...] = ()
    elements: tuple[int, ...] = ()

    @property
    def first_bristle(self) -> int:
        """Where in the state vector the forces in the bristles begin."""
        return 2 * len(self.coordinates) + len(self.nodes)

    @property
    def first_signal(self) -> int:
        """Where in the mode vector the pieces of the signals begin."""
        return self.first_gap + len(self.gaps)

    @property
    def first_gap(self) -> int:
        """Where in the mode vector the pieces of the gaps begin."""
        return self.first_press + sum(c.is_pressed for c in self.bristles)

    @property
    def first_press(self) -> int:
        """Where in the mode vector it stands which contacts with a bristle are pressed on."""
        return self.first_element + sum(self.elements)

    @property
    def first_element(self) -> int:
        """Where in the mode vector the modes of the bristles' elements begin."""
        return len(self.contacts) + sum(
            place is not None for c in self.contacts for place in (c.wall, c.piece, c.side, c.face)
        )

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The contacts by groups that do not act on each other."""
        return tuple(dict.fromkeys(c.group for c in self.contacts))


# A linear form in the coordinates: the factor of each that has one.
Form = dict[int, Any]


def forms(lay: Layout, factors: Callable[[int], tuple[Any, ...]]) -> list[Form]:
    """The position of each body as a linear form in the coordinates, but for what motions add;
    `factors` of a gear's relation.
    """
    found: dict[int, Form] = {b: {i: 1.0} for i, b in enumerate(lay.coordinates)}
    found |= {body: {} for _, body, _ in lay.motions}
    for gear in lay.gears:
        *others, last = zip(gear.bodies, factors(gear.part), strict=True)
        found[last[0]] = {}
        for body, factor in others:
            found[last[0]] = added(found[last[0]], found[body], -factor / last[1])
    return [found[b] for b in range(len(lay.bodies))]


def added(a: Form, b: Form, factor: Any = 1.0) -> Form:
    """a + factor*b."""
    total = dict(a)
    for i, x in b.items():
        scaled = x if _is(factor, 1.0) else factor if _is(x, 1.0) else factor * x
        total[i] = total[i] + scaled if i in total else scaled
        if _is(total[i], 0.0):  # of two flanges of one body
            del total[i]
    return total


def _is(x, number: float) -> bool:
    return isinstance(x, float) and x == number


def row_of(contact: Contact, bodies: list[Form]) -> Form:
    """The relative motion of a contact as a linear form in the coordinates."""
    row: Form = {}
    for body, sign in contact.ends:
        row = added(row, bodies[body], sign)
    return row


def layout(mechanism: Any) -> Layout:
    """The `Layout` of a mechanism; raises `ValueError` where the names do not fit together."""
    leaves, structure = jax.tree.flatten(mechanism)
    # a part of the user's own may hold names in them
    if not all(eqx.is_array_like(leaf) for leaf in leaves):
        return _layout(mechanism)
    remembered = _remembered((structure, *map(np.shape, leaves)))
    if not remembered:
        remembered.append(_layout(mechanism))
    return remembered[0]


@functools.lru_cache(maxsize=256)
def _remembered(structure) -> list[Layout]:
    """A place for the layout of all mechanisms of one structure, which their values have no part
    in.
    """
    return []


def _layout(mechanism) -> Layout:
    parts = mechanism.parts
    bodies = tuple(i for i, p in enumerate(parts) if isinstance(p, BODIES))
    if not bodies:
        raise ValueError("`Mechanism` must have a body that moves. Add `mass=Mass(m=...)`.")
    signals: list[tuple[int, str]] = []

    def signal(part: int, field: str) -> int:
        if isinstance(getattr(parts[part], field), MotionDependent):
            raise misfit(
                f"`{field}` of {mechanism.names[part]!r} must be a signal over time,"
                " got a `MotionDependent`, which presses brakes and clutches on. Write a spring, a"
                " damper or an axis of your own for a force that depends on the motion."
            )
        signals.append((part, field))
        return len(signals) - 1

    compliants, forces, contacts, bristles, gears, motions = [], [], [], [], [], []
    for i, part in enumerate(parts):
        if isinstance(part, AbstractCompliant):
            a, b = flange_of(mechanism, i, part.a, 1), flange_of(mechanism, i, part.b, -1)
            if a.body is not None and a.body == b.body:
                raise misfit(
                    f"{mechanism.names[i]!r} must join two bodies, got {part.a!r} and"
                    f" {part.b!r}. Hold one end with `wall=Fixed()`."
                )
            compliants.append((i, a, b))
        elif isinstance(part, AbstractSource):
            field = part.signal_name()
            forces.append(
                (
                    i,
                    flange_of(mechanism, i, part.body, 1),
                    None if field is None else signal(i, field),
                )
            )
        elif isinstance(part, AbstractMotion):
            motions.append((i, moving_body(mechanism, i, part.body), signal(i, part.signal_name())))
        elif isinstance(part, AbstractGear):
            gears.append(gear_of(mechanism, i, part))
            if isinstance(part, AbstractContact):
                contacts.append(contact_of(mechanism, i, part, signal))
        elif isinstance(part, MassWithStopAndFriction):
            contacts.append(Contact(i, Flange(bodies.index(i), i, 0), None, None))
        elif isinstance(part, AbstractContact):
            kind = contacts if bristle_of(part) is None else bristles
            kind.append(contact_of(mechanism, i, part, signal))
    followers = _followers(mechanism, gears, motions)
    for gear in (g for g in gears if getattr(parts[g.part], "depends_on_torque", False)):
        others = [
            mechanism.names[g.part] for g in gears if g is not gear and gear.bodies[0] in g.bodies
        ]
        if others:
            name = mechanism.names[gear.part]
            raise misfit(
                f"body {parts[gear.part].a!r} must hand its torque on to {name!r}"
                f" alone, got {others[0]!r} as well."
            )
    coordinates = tuple(b for b in range(len(bodies)) if b not in followers)
    lay = Layout(
        bodies,
        coordinates,
        tuple(gears),
        tuple(motions),
        tuple(contacts),
        tuple(compliants),
        tuple(forces),
        tuple(signals),
        bristles=tuple(bristles),
        elements=tuple(parts[b.part].bristle.elements for b in bristles),
    )
    nodes, conductors = thermal_nodes(mechanism, lay)
    gaps = tuple(
        k for k, (part, _, _) in enumerate(compliants) if isinstance(parts[part], AbstractGap)
    )
    return dataclasses.replace(
        lay,
        contacts=_placed(parts, _grouped(mechanism, lay)),
        nodes=nodes,
        conductors=conductors,
        gaps=gaps,
    )


def _followers(mechanism, gears: list[Gear], motions: list[tuple[int, int, int]]) -> dict[int, str]:
    """The bodies whose position is no coordinate, each with the name of the part that it
    follows.
    """
    followers: dict[int, str] = {}
    for part, body in [(part, body) for part, body, _ in motions] + [
        (gear.part, gear.bodies[-1]) for gear in gears
    ]:
        name = mechanism.names[body_parts(mechanism)[body]]
        if body in followers:
            raise misfit(
                f"the motion of {name!r} must be given once, got it from"
                f" {followers[body]!r} and {mechanism.names[part]!r}. Drop one of them, or name the"
                " gear's other bodies last."
            )
        followers[body] = mechanism.names[part]
    known = set(range(len(body_parts(mechanism)))) - {gear.bodies[-1] for gear in gears}
    for gear in gears:
        unknown = [b for b in gear.bodies[:-1] if b not in known]
        if unknown:
            late = mechanism.names[body_parts(mechanism)[unknown[0]]]
            raise misfit(
                f"the gear {mechanism.names[gear.part]!r} must follow bodies that are"
                f" known before it, got {late!r}, which follows a gear written later. Write that"
                " gear first."
            )
        known.add(gear.bodies[-1])
    return followers


def _placed(parts, contacts: tuple[Contact, ...]) -> tuple[Contact, ...]:
    """The contacts with their places in the mode vector: after the mode of each all stops, then all
    pieces of laws, sides, and faces.
    """
    place = len(contacts)
    for field, has in (
        ("wall", lambda part: part.stops() is not None),
        ("piece", has_breaks),
        ("side", lambda part: part.depends_on_torque),
        ("face", lambda part: getattr(getattr(part, "f_normalized", None), "either_side", False)),
    ):
        numbered = []
        for contact in contacts:
            if has(parts[contact.part]):
                contact, place = dataclasses.replace(contact, **{field: place}), place + 1
            numbered.append(contact)
        contacts = tuple(numbered)
    return contacts


def _grouped(mechanism, lay: Layout) -> tuple[Contact, ...]:
    # Any numbers will do for the ratios: they only must not cancel by accident.
    draw = np.random.default_rng(0)
    at = forms(
        lay, lambda part: tuple(draw.uniform(0.5, 2.0) for _ in mechanism.parts[part].joined())
    )
    rows = [row_of(c, at) for c in lay.contacts]
    for c, row in zip(lay.contacts, rows, strict=True):
        if not row:
            raise misfit(
                f"the friction {mechanism.names[c.part]!r} must act on a motion that"
                f" is not given, got {_ends(mechanism, c)}. Name a body that moves freely."
            )
    tied = [set(form) for form in at if form] + [set(row) for row in rows]
    sets = {i: {i} for i in range(len(lay.coordinates))}
    for some in tied:
        joined = set().union(*(sets[i] for i in some))
        sets |= dict.fromkeys(joined, joined)
    contacts = []
    for c, row in zip(lay.contacts, rows, strict=True):
        component = sets[next(iter(row))]
        group = tuple(d for d, other in enumerate(rows) if next(iter(other)) in component)
        matrix = np.array([[rows[d].get(i, 0.0) for i in component] for d in group], dtype=float)
        alone = (
            not mechanism.parts[c.part].depends_on_torque
            and len(group) == 1
            and len(component) == 1
            and _is(next(iter(row.values())), 1.0)
        )
        contacts.append(
            dataclasses.replace(
                c,
                group=group,
                alone=alone,
                redundant=bool(np.linalg.matrix_rank(matrix) < len(group)),
            )
        )
    return tuple(contacts)


def _ends(mechanism, contact: Contact) -> str:
    part = mechanism.parts[contact.part]
    names = [
        getattr(part, f)
        for f in ("body", "support", "a", "b")
        if getattr(part, f, None) is not None
    ]
    return " and ".join(repr(n) for n in names)


def thermal_nodes(
    mechanism: Any, lay: Any
) -> tuple[tuple[Node, ...], tuple[tuple[int, int, int | None], ...]]:
    """The thermal nodes of a mechanism of layout `lay`, with what heats them, and what conducts
    between them.
    """
    names, parts = mechanism.names, mechanism.parts
    contacts = {names[contact.part]: c for c, contact in enumerate(lay.contacts)}
    compliants = {names[part]: k for k, (part, _, _) in enumerate(lay.compliants)}
    bristles = {names[contact.part]: b for b, contact in enumerate(lay.bristles)}
    everything = contacts | compliants | bristles
    nodes, heats = [], {}
    for i, part in enumerate(parts):
        if not isinstance(part, HeatCapacitor):
            continue
        for source in part.sources:
            if source not in everything:
                raise misfit(
                    f"{names[i]!r} must be heated by friction elements or dampers, got"
                    f" {source!r}. Here are: {', '.join(everything) or 'none'}."
                )
            if source in heats:
                raise misfit(
                    f"{source!r} must heat one node, got {heats[source]!r} and"
                    f" {names[i]!r}. Drop one of them."
                )
            heats[source] = names[i]
        mine = [
            tuple(known[s] for s in part.sources if s in known)
            for known in (contacts, compliants, bristles)
        ]
        nodes.append(Node(i, *mine))
    numbers = {names[node.part]: k for k, node in enumerate(nodes)}
    conductors = []
    for i, part in enumerate(parts):
        if isinstance(part, ThermalConductor):
            for end in (part.a, part.b):
                if end is not None and end not in numbers:
                    known = ", ".join(numbers) or "none"
                    raise misfit(
                        f"{names[i]!r} must conduct between heat capacitors, got"
                        f" {end!r}. Here are: {known}."
                    )
            conductors.append((i, numbers[part.a], None if part.b is None else numbers[part.b]))
    return tuple(nodes), tuple(conductors)


def signal_of(mechanism: Any, place: tuple[int, str]) -> Any:
    """The signal in field `place[1]` of part `place[0]`."""
    return getattr(mechanism.parts[place[0]], place[1])


def state_names(mechanism: Any) -> tuple[str, ...]:
    """The names of the entries of the state vector: positions of the bodies that follow no other,
    their velocities, temperatures, forces in bristles.
    """
    lay, names, parts = layout(mechanism), mechanism.names, mechanism.parts
    moving = (lay.bodies[b] for b in lay.coordinates)
    bodies = [(names[i], coordinates_of(parts[i])) for i in moving]
    positions, velocities = ([f"{name}.{of[k]}" for name, of in bodies] for k in (0, 1))
    held = []
    for b, n in zip(lay.bristles, lay.elements, strict=True):
        turns = parts[lay.bodies[b.ends[0][0]]].rotational
        name = f"{names[b.part]}.{'tau_z' if turns else 'f_z'}"
        own = [f"{name}[{i}]" for i in range(n)] if n else [name]
        held += [""] * len(own) if b.is_pressed else own  # of which the state is no force yet
    return (*positions, *velocities, *(f"{names[node.part]}.T" for node in lay.nodes), *held)
