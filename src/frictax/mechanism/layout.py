"""Who is joined to whom in a mechanism: all about it that is static."""

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

from .attachments import (
    BODIES,
    Contact,
    Flange,
    Gear,
    body_parts,
    contact_of,
    coordinates_of,
    flange_of,
    gear_of,
    is_rotational as is_rotational,
    misfit,
    moving_body,
)
from .bodies import Fixed
from .forces import AbstractCompliant, AbstractMotion, AbstractSource
from .gaps import AbstractGap
from .gears import AbstractGear
from .thermal import HeatCapacitor, Node, ThermalConductor, thermal_nodes

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
