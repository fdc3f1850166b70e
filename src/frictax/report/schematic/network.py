"""Who is joined to whom in a machine, by what, and what acts on one body alone."""

import dataclasses
from typing import Any

from frictax.contacts import AbstractContact
from frictax.mechanism import Fixed, HeatCapacitor, ThermalConductor
from frictax.mechanism.forces import AbstractCompliant, AbstractMotion, AbstractSource
from frictax.mechanism.gears import AbstractGear
from frictax.mechanism.layout import BODIES


@dataclasses.dataclass(frozen=True)
class Node:
    """A body; or a `Fixed` where it holds the body `holds`: it is drawn at each body that it holds.

    A heat capacitor is such a body as well, which conductors join; the surroundings have the name
    of the conductor that leads there.
    """

    name: str
    holds: str | None = None


@dataclasses.dataclass(frozen=True)
class Link:
    """A part that joins bodies, its first end first."""

    name: str
    ends: tuple[Node, ...]


@dataclasses.dataclass(frozen=True)
class Network:
    """Bodies, what joins them, and the names of what stands at each one alone: drives, and friction
    in the housing.
    """

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    attached: dict[str, tuple[str, ...]]


def network(mechanism: Any) -> Network:
    """Who is joined to whom by what, as the parts say it."""
    bodies = [
        name for name, part in mechanism.named_parts() if isinstance(part, (*BODIES, HeatCapacitor))
    ]
    joined: list[tuple[str, list[str]]] = []
    attached: dict[str, list[str]] = {name: [] for name in bodies}
    for name, part in mechanism.named_parts():
        ends = [_body(end) for end in _ends(name, part)]
        moving = [end for end in ends if end in bodies]
        # A support that stands still is a ground under the body, not a part beside it.
        if len(ends) > 1 and not (len(moving) == 1 and getattr(part, "support", None) is not None):
            joined.append((name, ends))
        elif moving:
            attached[moving[0]].append(name)
    links = tuple(
        Link(name, tuple(_node(end, ends, bodies) for end in ends)) for name, ends in joined
    )
    places = dict.fromkeys(
        [Node(name) for name in bodies] + [end for link in links for end in link.ends]
    )
    shown = {node.name for node in places} | {
        _body(s) for _, p in mechanism.named_parts() if (s := getattr(p, "support", None))
    }
    alone = [
        Node(name)
        for name, part in mechanism.named_parts()
        if isinstance(part, Fixed) and name not in shown
    ]
    return Network(
        (*places, *alone), links, {name: tuple(parts) for name, parts in attached.items()}
    )


def _ends(name: str, part: Any) -> list[str]:
    """The bodies on which the part `name` acts, with their flanges; none of a body."""
    if isinstance(part, (*BODIES, Fixed)):
        return []
    if isinstance(part, ThermalConductor):
        return [part.a, name if part.b is None else part.b]
    if isinstance(part, AbstractCompliant):
        return [part.a, part.b]
    if isinstance(part, AbstractSource | AbstractMotion):
        return [part.body]
    if isinstance(part, AbstractGear):
        return list(part.joined())
    if isinstance(part, AbstractContact):
        body, support = part.between()
        return [body] if support is None else [support, body]
    return []


def _body(flange: str) -> str:
    return flange.partition(".")[0]


def _node(name: str, ends: list[str], bodies: list[str]) -> Node:
    held = next((end for end in ends if end in bodies), ends[0])
    return Node(name, None if name in bodies else held)
