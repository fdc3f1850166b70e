"""Number the bodies, contacts and signals of a mechanism, and find the bodies of each contact.

The layout depends only on the structure of a mechanism, not on its parameter values. An unknown
body or a part of the wrong kind raises `ValueError`.
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
from .sparse import SparseRow, add_scaled
from .thermal import HeatCapacitor, ThermalConductor

BODIES = (AbstractBody, MassWithStopAndFriction)


@dataclasses.dataclass(frozen=True)
class Flange:
    """An end or the centre of a body. `body`: index in the list of bodies; None for a `Fixed`.
    `part`: index in the list of all parts. The flange is side*L/2 from the body's centre. `side`:
    -1 at flange_a, 1 at flange_b, 0 at the centre and for a body without a length L."""

    body: int | None
    part: int
    side: int


@dataclasses.dataclass(frozen=True)
class Contact:
    """A friction contact, which measures the motion of `flange` relative to `support`. Without
    `support`, the motion is relative to the housing.

    - `part`: index of the friction element in the list of all parts. `signal`: index of the signal
      that gives the normal force, or None.
    - `group`: numbers of this contact and of all contacts coupled to it by bodies and gears.
    - `alone`: whether the group has one contact and one coordinate. `redundant`: whether several
      contacts of the group can hold the same motion, as two brakes on one shaft do.
    - `wall`, `piece`, `side`, `face`: indices in the mode vector, or None. The entry at `wall` is
      the state of the stop, and at `piece` the segment of the friction law. The entry at `side` is
      the active line of a friction that depends on a torque, and at `face` the sign of
      `f_normalized`.
    - `is_pressed`: whether the contact has a normal force, from a signal or from the motion.
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
        """Pairs (body index, sign); the contact has the velocity sum(sign * body velocity)."""
        flanges = (self.flange, 1.0), (self.support, -1.0)
        return [(f.body, sign) for f, sign in flanges if f is not None and f.body is not None]


@dataclasses.dataclass(frozen=True)
class Gear:
    """A gear between the bodies with the numbers `bodies`. The angles of the other bodies determine
    the angle of the last body.
    """

    part: int
    bodies: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Node:
    """A thermal node: the index of its part, and the indices of the elements that heat the node.
    The elements are contacts without bristle, springs and dampers, or contacts with a bristle.
    """

    part: int
    contacts: tuple[int, ...]
    compliants: tuple[int, ...]
    bristles: tuple[int, ...] = ()


def mechanism_error(sentence: str) -> ValueError:
    """Return the `ValueError` with the text `sentence` for parts that do not fit together."""
    return ValueError(f"`Mechanism`: {sentence}")


def build_contact(mechanism: Any, i: int, part: Any, signal: Callable[[int, str], int]) -> Contact:
    """Return the `Contact` of part i; `signal` returns the index of the signal in a field."""
    plus, minus = part.between()
    flange = find_flange(mechanism, i, plus, 1)
    support = None if minus is None else find_flange(mechanism, i, minus, 1)
    name = mechanism.names[i]
    if flange.body is None and (support is None or support.body is None):
        raise mechanism_error(
            f"the friction {name!r} must act on a body that moves, got {plus!r}, which"
            " is fixed. Name the mass instead."
        )
    if support is not None and support.body == flange.body and flange.body is not None:
        raise mechanism_error(
            f"the friction {name!r} must act between two bodies, got {plus!r} and"
            f" {minus!r}. Leave out one."
        )
    is_pressed = hasattr(part, "f_normalized")
    by_signal = is_pressed and not isinstance(part.f_normalized, MotionDependent)
    return Contact(
        i, flange, support, signal(i, "f_normalized") if by_signal else None, is_pressed=is_pressed
    )


def build_gear(mechanism: Any, i: int, part: AbstractGear) -> Gear:
    """Return the `Gear` for part number i."""
    numbers = tuple(moving_body(mechanism, i, name) for name in part.joined_bodies())
    if len(set(numbers)) < len(numbers):
        raise mechanism_error(
            f"the gear {mechanism.names[i]!r} must join different bodies, got"
            f" {', '.join(part.joined_bodies())}. Add the other one."
        )
    return Gear(i, numbers)


def moving_body(mechanism: Any, i: int, name: str) -> int:
    """Return the index of body `name`, used by part i. Raise `ValueError` if it is a `Fixed`."""
    body = find_flange(mechanism, i, name, 0).body
    if body is None:
        raise mechanism_error(
            f"{mechanism.names[i]!r} must name bodies that move, got {name!r}, which"
            " is fixed. Hold a body by a `Brake` or a `Position`."
        )
    return body


def body_parts(mechanism: Any) -> list[int]:
    """Return the part number of each body."""
    return [i for i, p in enumerate(mechanism.parts) if isinstance(p, BODIES)]


def coordinates_of(body: Any) -> tuple[str, str]:
    """Return the names of position and velocity of a body."""
    return ("phi", "w") if body.rotational else ("s", "v")


def is_rotational(part: Any) -> bool | None:
    """Return whether a part turns (True) or slides (False); None for a part that can do both."""
    return getattr(type(part), "rotational", None)


def turns_about(mechanism: Any, name: str) -> bool | None:
    """Return whether the part called `name` turns. If parts of this class can turn or slide, return
    whether the body of this part turns; None without a body.
    """
    part = mechanism[name]
    turns = is_rotational(part)
    if turns is None:
        contact = isinstance(part, AbstractContact)
        if body := part.between()[0] if contact else getattr(part, "body", ""):
            return is_rotational(mechanism[body.partition(".")[0]])
    return turns


def find_flange(mechanism: Any, part: int, name: Any, side: int) -> Flange:
    """Return the `Flange` to which part number `part` refers by `name`. If `name` is the name of a
    body without a flange, use the flange `side` (-1, 0 or 1).
    """
    owner = mechanism.names[part]
    if not isinstance(name, str):
        raise mechanism_error(
            f"{owner!r} must name the body it is attached to as text, got {name!r}. Write 'mass'."
        )
    body, _, end = name.partition(".")
    attachable = [n for n, p in mechanism.named_parts() if isinstance(p, (*BODIES, Fixed))]
    if body not in attachable:
        raise mechanism_error(
            f"{owner!r} is attached to {name!r}, which is no"
            f" body.{suggestion(body, attachable)} Bodies are: {', '.join(attachable)}."
        )
    if end not in ("", "flange_a", "flange_b", "flange"):
        raise mechanism_error(
            f"{owner!r} is attached to {name!r}; write {body!r}, '{body}.flange_a' or"
            f" '{body}.flange_b'."
        )
    index = mechanism.names.index(body)
    here, there = is_rotational(mechanism.parts[part]), is_rotational(mechanism.parts[index])
    if None not in (here, there) and here != there:
        kind, found = (type(mechanism.parts[i]).__name__ for i in (part, index))
        does = ("slides", "turns")
        raise mechanism_error(
            f"{owner!r}, a {kind}, acts on what {does[bool(here)]}, got {body!r}, which is of kind"
            f" {found} and {does[bool(there)]}. Take the"
            f" {'translational' if here else 'rotational'} part."
        )
    if isinstance(mechanism.parts[index], Fixed):
        return Flange(None, index, 0)
    has_length = hasattr(mechanism.parts[index], "L")
    return Flange(
        body_parts(mechanism).index(index),
        index,
        {"flange_a": -1, "flange_b": 1}.get(end, side) * has_length,
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
    """Lists of indices of the parts of a mechanism, for each kind of part.

    - `bodies`: part index of each body. `coordinates`: indices of the bodies whose positions are
      the generalized coordinates. The `gears` and `motions` determine the other positions.
    - `contacts`: the contacts without bristle. `bristles`: the contacts with a bristle, which act
      like forces. `elements`: for each bristle, the number of its elements (each has a mode); 0 for
      a bristle without modes.
    - `compliants`: part index and both flanges of each spring, damper or gap. `gaps`: indices of
      the gaps in the list `compliants`.
    - `forces`: part, flange and signal (or None) of each source. `signals`: part and field name.
    - `nodes`: thermal nodes. `conductors`: part and two nodes (second None for surroundings).
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
        """Index of the first bristle force in the state vector."""
        return 2 * len(self.coordinates) + len(self.nodes)

    @property
    def first_signal(self) -> int:
        """Index in the mode vector where the segment numbers of the signals begin."""
        return self.first_gap + len(self.gaps)

    @property
    def first_gap(self) -> int:
        """Index in the mode vector where the segment numbers of the gaps begin."""
        return self.first_press + sum(c.is_pressed for c in self.bristles)

    @property
    def first_press(self) -> int:
        """Index in the mode vector where the flags of bristle contacts with normal force begin."""
        return self.first_element + sum(self.elements)

    @property
    def first_element(self) -> int:
        """Index in the mode vector where the modes of bristle elements begin."""
        return len(self.contacts) + sum(
            place is not None for c in self.contacts for place in (c.wall, c.piece, c.side, c.face)
        )

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The groups of coupled contacts, each a tuple of contact numbers."""
        return tuple(dict.fromkeys(c.group for c in self.contacts))


def body_rows(lay: Layout, factors: Callable[[int], tuple[Any, ...]]) -> list[SparseRow]:
    """Return for each body the coefficients of its position as a linear function of the
    coordinates. `factors` returns the factors of the angles in the equation of a gear.
    """
    found: dict[int, SparseRow] = {b: {i: 1.0} for i, b in enumerate(lay.coordinates)}
    found |= {body: {} for _, body, _ in lay.motions}
    for gear in lay.gears:
        *others, last = zip(gear.bodies, factors(gear.part), strict=True)
        found[last[0]] = {}
        for body, factor in others:
            found[last[0]] = add_scaled(found[last[0]], found[body], -factor / last[1])
    return [found[b] for b in range(len(lay.bodies))]


def contact_row(contact: Contact, bodies: list[SparseRow]) -> SparseRow:
    """Return the coefficients with which the relative position of a contact depends on the
    coordinates. `bodies`: the result of `body_rows`.
    """
    row: SparseRow = {}
    for body, sign in contact.ends:
        row = add_scaled(row, bodies[body], sign)
    return row


def layout(mechanism: Any) -> Layout:
    """Return the `Layout` of a mechanism. Raise `ValueError` if the names do not fit together."""
    leaves, structure = jax.tree.flatten(mechanism)
    # A user's part may have pytree leaves that are not arrays, such as names. The key of the cache
    # does not contain their values, so such a layout is not cached.
    if not all(eqx.is_array_like(leaf) for leaf in leaves):
        return _build_layout(mechanism)
    remembered = _layout_cache((structure, *map(np.shape, leaves)))
    if not remembered:
        remembered.append(_build_layout(mechanism))
    return remembered[0]


@functools.lru_cache(maxsize=256)
def _layout_cache(structure) -> list[Layout]:
    """Return the cached list for a structure; `layout` appends the `Layout` to the empty list."""
    return []


def _build_layout(mechanism) -> Layout:
    parts = mechanism.parts
    bodies = tuple(i for i, p in enumerate(parts) if isinstance(p, BODIES))
    if not bodies:
        raise ValueError("`Mechanism` must have a body that moves. Add `mass=Mass(m=...)`.")
    signals: list[tuple[int, str]] = []

    def signal(part: int, field: str) -> int:
        """Return the number of the signal in `field` of part number `part`."""
        if isinstance(getattr(parts[part], field), MotionDependent):
            raise mechanism_error(
                f"`{field}` of {mechanism.names[part]!r} must be a signal over time,"
                " got a `MotionDependent`, which presses brakes and clutches on. Write a spring, a"
                " damper or an axis of your own for a force that depends on the motion."
            )
        signals.append((part, field))
        return len(signals) - 1

    compliants, forces, contacts, bristles, gears, motions = [], [], [], [], [], []
    for i, part in enumerate(parts):
        if isinstance(part, AbstractCompliant):
            a, b = find_flange(mechanism, i, part.a, 1), find_flange(mechanism, i, part.b, -1)
            if a.body is not None and a.body == b.body:
                raise mechanism_error(
                    f"{mechanism.names[i]!r} must join two bodies, got {part.a!r} and"
                    f" {part.b!r}. Hold one end with `wall=Fixed()`."
                )
            compliants.append((i, a, b))
        elif isinstance(part, AbstractSource):
            field = part.signal_name()
            flange = find_flange(mechanism, i, part.body, 1)
            forces.append((i, flange, None if field is None else signal(i, field)))
        elif isinstance(part, AbstractMotion):
            motions.append((i, moving_body(mechanism, i, part.body), signal(i, part.signal_name())))
        elif isinstance(part, AbstractGear):
            gears.append(build_gear(mechanism, i, part))
            if isinstance(part, AbstractContact):
                contacts.append(build_contact(mechanism, i, part, signal))
        elif isinstance(part, MassWithStopAndFriction):
            contacts.append(Contact(i, Flange(bodies.index(i), i, 0), None, None))
        elif isinstance(part, AbstractContact):
            kind = contacts if bristle_of(part) is None else bristles
            kind.append(build_contact(mechanism, i, part, signal))
    followers = _followers(mechanism, gears, motions)
    lay = Layout(
        bodies,
        tuple(b for b in range(len(bodies)) if b not in followers),
        tuple(gears),
        tuple(motions),
        tuple(contacts),
        tuple(compliants),
        tuple(forces),
        tuple(signals),
        bristles=tuple(bristles),
        elements=tuple(parts[b.part].bristle.elements for b in bristles),
        gaps=tuple(k for k, c in enumerate(compliants) if isinstance(parts[c[0]], AbstractGap)),
    )
    contacts = _number_modes(parts, _group_contacts(mechanism, lay))
    nodes, conductors = _thermal_network(mechanism, lay)
    return dataclasses.replace(lay, contacts=contacts, nodes=nodes, conductors=conductors)


def _followers(mechanism, gears: list[Gear], motions: list[tuple[int, int, int]]) -> dict[int, str]:
    """Return a dict for the bodies whose positions are not coordinates: body index -> name of the
    gear or motion that determines the position of the body.
    """
    followers: dict[int, str] = {}
    for part, body in [(part, body) for part, body, _ in motions] + [
        (gear.part, gear.bodies[-1]) for gear in gears
    ]:
        name = mechanism.names[body_parts(mechanism)[body]]
        if body in followers:
            raise mechanism_error(
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
            raise mechanism_error(
                f"the gear {mechanism.names[gear.part]!r} must follow bodies that are"
                f" known before it, got {late!r}, which follows a gear written later. Write that"
                " gear first."
            )
        known.add(gear.bodies[-1])
        if getattr(mechanism.parts[gear.part], "depends_on_torque", False):
            first = gear.bodies[0]
            others = [g for g in gears if g is not gear and first in g.bodies]
            if others:
                raise mechanism_error(
                    f"body {mechanism.parts[gear.part].a!r} must hand its torque on to"
                    f" {mechanism.names[gear.part]!r} alone, got"
                    f" {mechanism.names[others[0].part]!r} as well."
                )
    return followers


def _number_modes(parts, contacts: tuple[Contact, ...]) -> tuple[Contact, ...]:
    """Return the contacts with their indices in the mode vector. The order of the mode vector is:
    modes of all contacts, states of stops, segments of laws, active lines (`side`), pressed faces.
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


def _group_contacts(mechanism, lay: Layout) -> tuple[Contact, ...]:
    """Return the contacts with computed values of `group`, `alone` and `redundant`."""
    # Redundancy depends on the couplings, not on gear ratios. Random ratios are used, because
    # special ratios could reduce the rank of the matrix by accident.
    draw = np.random.default_rng(0)
    at = body_rows(
        lay,
        lambda part: tuple(draw.uniform(0.5, 2.0) for _ in mechanism.parts[part].joined_bodies()),
    )
    rows = [contact_row(c, at) for c in lay.contacts]
    for c, row in zip(lay.contacts, rows, strict=True):
        if not row:
            part = mechanism.parts[c.part]
            ends = [getattr(part, field, None) for field in ("body", "support", "a", "b")]
            got = " and ".join(repr(name) for name in ends if name is not None)
            raise mechanism_error(
                f"the friction {mechanism.names[c.part]!r} must act on a motion that"
                f" is not given, got {got}. Name a body that moves freely."
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
            and next(iter(row.values())) == 1.0
        )
        redundant = bool(np.linalg.matrix_rank(matrix) < len(group))
        contacts.append(dataclasses.replace(c, group=group, alone=alone, redundant=redundant))
    return tuple(contacts)


def _thermal_network(
    mechanism: Any, lay: Layout
) -> tuple[tuple[Node, ...], tuple[tuple[int, int, int | None], ...]]:
    """Return the thermal nodes, and the part and nodes of each conductor (None: surroundings)."""
    names, parts = mechanism.names, mechanism.parts
    contacts = {names[contact.part]: c for c, contact in enumerate(lay.contacts)}
    compliants = {names[part]: k for k, (part, _, _) in enumerate(lay.compliants)}
    bristles = {names[contact.part]: b for b, contact in enumerate(lay.bristles)}
    kinds = (contacts, compliants, bristles)
    sources = contacts | compliants | bristles
    nodes, conductors, heats = [], [], {}
    for i, part in enumerate(parts):
        if not isinstance(part, HeatCapacitor):
            continue
        for source in part.sources:
            if source not in sources:
                raise mechanism_error(
                    f"{names[i]!r} must be heated by friction elements or dampers, got"
                    f" {source!r}. Here are: {', '.join(sources) or 'none'}."
                )
            if source in heats:
                raise mechanism_error(
                    f"{source!r} must heat one node, got {heats[source]!r} and"
                    f" {names[i]!r}. Drop one of them."
                )
            heats[source] = names[i]
        nodes.append(Node(i, *(tuple(k[s] for s in part.sources if s in k) for k in kinds)))
    numbers = {names[node.part]: k for k, node in enumerate(nodes)}
    for i, part in enumerate(parts):
        if isinstance(part, ThermalConductor):
            for end in (part.a, part.b):
                if end is not None and end not in numbers:
                    known = ", ".join(numbers) or "none"
                    raise mechanism_error(
                        f"{names[i]!r} must conduct between heat capacitors, got"
                        f" {end!r}. Here are: {known}."
                    )
            conductors.append((i, numbers[part.a], None if part.b is None else numbers[part.b]))
    return tuple(nodes), tuple(conductors)


def signal_of(mechanism: Any, place: tuple[int, str]) -> Any:
    """Return the signal at `place`, a pair of part index and field name."""
    return getattr(mechanism.parts[place[0]], place[1])


def state_names(mechanism: Any) -> tuple[str, ...]:
    """Return the names of the states: positions, velocities, temperatures, forces in bristles."""
    lay, names, parts = layout(mechanism), mechanism.names, mechanism.parts
    moving = (lay.bodies[b] for b in lay.coordinates)
    bodies = [(names[i], coordinates_of(parts[i])) for i in moving]
    positions, velocities = ([f"{name}.{of[k]}" for name, of in bodies] for k in (0, 1))
    held = []
    for b, n in zip(lay.bristles, lay.elements, strict=True):
        turns = parts[lay.bodies[b.ends[0][0]]].rotational
        name = f"{names[b.part]}.{'tau_z' if turns else 'f_z'}"
        own = [f"{name}[{i}]" for i in range(n)] if n else [name]
        # With a normal force fn, the state of a bristle is its force divided by cgeo*fn. The ratio
        # is not a force, so this state of a bristle does not get a name.
        held += [""] * len(own) if b.is_pressed else own
    return (*positions, *velocities, *(f"{names[node.part]}.T" for node in lay.nodes), *held)
