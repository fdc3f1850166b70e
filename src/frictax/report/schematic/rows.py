"""The network of a machine (bodies and joining parts), and its division into rows.

Each row is a chain of bodies and joints. A body that appears again in a later row is drawn there as
a reference, so that lines do not cross.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any

from frictax.contacts import AbstractContact
from frictax.mechanism import Fixed, HeatCapacitor, ThermalConductor
from frictax.mechanism.forces import AbstractCompliant, AbstractMotion, AbstractSource
from frictax.mechanism.gears import AbstractGear
from frictax.mechanism.layout import BODIES


@dataclasses.dataclass(frozen=True)
class Node:
    """A body, a heat capacitor, a `Fixed`, or the surroundings of a thermal conductor (with its
    name). A `Fixed` becomes one node for each supported body; `holds`: name of this body.
    """

    name: str
    holds: str | None = None


@dataclasses.dataclass(frozen=True)
class Link:
    """A part that joins nodes. `ends`: the joined nodes, in the order of the part's ends."""

    name: str
    ends: tuple[Node, ...]


@dataclasses.dataclass(frozen=True)
class Network:
    """Nodes, and the links between the nodes. `attached`: body -> names of the parts that act only
    on this body: drives, and friction against the housing.
    """

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    attached: dict[str, tuple[str, ...]]


@dataclasses.dataclass(frozen=True)
class Row:
    """A chain of nodes: `joints[i]` (one or more parallel links) joins `nodes[i]`, `nodes[i + 1]`.

    `references`: the nodes that an earlier row shows already.
    """

    nodes: tuple[Node, ...]
    joints: tuple[tuple[Link, ...], ...]
    references: frozenset[Node]


def network(mechanism: Any) -> Network:
    """Return the network of a machine: the bodies, and the parts that join or move bodies."""
    parts = dict(mechanism.named_parts())
    bodies = [name for name, part in parts.items() if isinstance(part, (*BODIES, HeatCapacitor))]
    attached: dict[str, list[str]] = {name: [] for name in bodies}
    links: list[Link] = []
    for name, part in parts.items():
        ends = [end.partition(".")[0] for end in _ends(name, part)]
        moving = [end for end in ends if end in bodies]
        # A support that does not move is drawn as a ground under the body.
        grounded = len(moving) == 1 and getattr(part, "support", None) is not None
        if len(ends) > 1 and not grounded:
            held = moving[0] if moving else ends[0]
            nodes = (Node(end, None if end in bodies else held) for end in ends)
            links.append(Link(name, tuple(nodes)))
        elif moving:
            attached[moving[0]].append(name)
    shown = [*map(Node, bodies), *(end for link in links for end in link.ends)]
    supports = {str(getattr(part, "support", "")).partition(".")[0] for part in parts.values()}
    known = supports | {node.name for node in shown}
    alone = [Node(n) for n, part in parts.items() if isinstance(part, Fixed) and n not in known]
    acting = {name: tuple(names) for name, names in attached.items()}
    return Network(tuple(dict.fromkeys([*shown, *alone])), tuple(links), acting)


def _ends(name: str, part: Any) -> list[str]:
    """Return the flanges on which the part `name` acts; an empty list for a body."""
    if isinstance(part, ThermalConductor):
        return [part.a, name if part.b is None else part.b]
    if isinstance(part, AbstractCompliant):
        return [part.a, part.b]
    if isinstance(part, AbstractSource | AbstractMotion):
        return [part.body]
    if isinstance(part, AbstractGear):
        return list(part.joined_bodies())
    if isinstance(part, AbstractContact) and not isinstance(part, BODIES):
        body, support = part.between()
        return [body] if support is None else [support, body]
    return []


def rows_of_machines(net: Network) -> list[list[Row]]:
    """Return a list of rows for each set of joined bodies, in the order of the machine's parts.

    The longest chain of the remaining joints is the next row, until all joints are shown. If
    several chains are longest, take the chain with most parts drawn from first to second end. If
    several chains remain, take one that begins at a wall or at a body drawn earlier.
    """
    joints: dict[Any, tuple[Link, ...]] = {}
    for link in net.links:
        key = frozenset(link.ends) if len(link.ends) == 2 else link
        joints[key] = (*joints.get(key, ()), link)
    machines, remaining = [], list(net.nodes)
    while remaining:
        reached = set(_search(remaining[0], joints.values(), set()))
        nodes = [node for node in net.nodes if node in reached]
        left = [joint for joint in joints.values() if joint[0].ends[0] in reached]
        rows, drawn = list[Row](), set[Node]()
        while left:
            found: list[tuple[tuple[int, int, bool], Row]] = []
            for start in nodes:
                chains: dict[Node, tuple[Any, ...]] = {}
                # The chain to a node is the chain to its predecessor, with one more joint.
                for node, step in _search(start, left, drawn).items():
                    chains[node] = (node,) if step is None else (*chains[step[0]], step[1], node)
                # Skip chains in which a gear with four ends occurs twice.
                longest = sorted(chains.values(), key=len, reverse=True)
                best = next(chain for chain in longest if len(set(chain)) == len(chain))
                row = Row(best[::2], best[1::2], frozenset(best[::2]) & drawn)
                pairs = zip(row.nodes, row.joints, strict=False)
                forward = sum(joint[0].ends[0] == node for node, joint in pairs)
                anchored = start.holds is not None or start in row.references
                found.append(((len(row.joints), forward, anchored), row))
            row = max(found, key=lambda pair: pair[0])[1]
            rows.append(row)
            drawn |= set(row.nodes)
            left = [joint for joint in left if joint not in row.joints]
        alone = [Row((node,), (), frozenset()) for node in nodes if node not in drawn]
        machines.append(rows + alone)
        remaining = [node for node in remaining if node not in reached]
    return machines


def _search(
    start: Node, joints: Iterable[tuple[Link, ...]], ends: set[Node]
) -> dict[Node, tuple[Node, tuple[Link, ...]] | None]:
    """Search depth first. Return a dict: node -> its predecessor in the search, and their joint.

    The search does not continue beyond a node in `ends`, except from `start`.
    """
    around: dict[Node, list[tuple[Link, ...]]] = {}
    for joint in joints:
        for node in joint[0].ends:
            around.setdefault(node, []).append(joint)
    reached: dict[Node, tuple[Node, tuple[Link, ...]] | None] = {}
    stack: list[tuple[Node, tuple[Node, tuple[Link, ...]] | None]] = [(start, None)]
    while stack:
        node, step = stack.pop()
        if node in reached:
            continue
        reached[node] = step
        if node in ends and node != start:
            continue
        for joint in reversed(around.get(node, [])):
            if step is None or joint is not step[1]:
                stack += [(end, (node, joint)) for end in reversed(joint[0].ends)]
    return reached
