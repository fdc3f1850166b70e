"""Where the parts of a machine stand in its schematic: the drive line from left to right, what
branches off it below or above.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

from .network import Link, Network, Node


@dataclasses.dataclass(frozen=True)
class Wire:
    """A line from a body to a part that joins it, which stands at the body's right, or at its left.

    `step`: the height of the part's port, in steps over the part's axis. `via`: the row in which
    the line runs, where it is not the part's.
    """

    node: Node
    link: Link
    rightward: bool
    step: int = 0
    via: int | None = None


@dataclasses.dataclass(frozen=True)
class Plan:
    """Bodies and what joins them by (column, row), of parts that are joined with each other.

    Rows count downward from 0, the drive line.

    The column of a part that joins bodies is that of the body at its left.
    """

    nodes: dict[Node, tuple[int, int]]
    links: dict[Link, tuple[int, int]]
    wires: tuple[Wire, ...]


# -- a tree for each machine that stands by itself


@dataclasses.dataclass(eq=False)
class _Branch:
    """A body with what goes on from it: each part with the bodies behind it, and with those that
    stood in the tree before.
    """

    node: Node
    column: int
    joints: list["_Joint"] = dataclasses.field(default_factory=list)
    depth: int = 0

    def branches(self) -> Iterator["_Branch"]:
        left = [self]
        while left:
            branch = left.pop()
            yield branch
            left += [
                child for joint in reversed(branch.joints) for child in reversed(joint.children)
            ]


@dataclasses.dataclass(eq=False)
class _Joint:
    link: Link
    children: list[_Branch]
    known: list[Node]

    @property
    def returns(self) -> bool:
        """Whether it leads back to a body before it, and no further."""
        return len(self.link.ends) == 2 and bool(self.known)

    @property
    def depth(self) -> int:
        return 0 if self.returns else 1 + max((child.depth for child in self.children), default=0)

    def ordered(self) -> list[_Branch]:
        """The bodies behind it, that with the longest line first."""
        return sorted(self.children, key=lambda child: -child.depth)


def plans(net: Network) -> list[Plan]:
    """A plan for each set of bodies that are joined, in the order written."""
    around = {
        node: sorted((k for k in net.links if node in k.ends), key=lambda k: -len(k.ends))
        for node in net.nodes
    }
    left, found = list(net.nodes), []
    while left:
        mine = [branch.node for branch in _grown(left[0], around).branches()]
        trees = [_grown(node, around) for node in net.nodes if node in mine]
        found.append(_plan(max(trees, key=_merit)))
        left = [node for node in left if node not in mine]
    return found


def _grown(node: Node, around: dict[Node, list[Link]]) -> _Branch:
    """The tree that begins at `node`.

    It goes deep first: what closes a loop then joins a body to one before it on the same line.
    """
    used: set[Link] = set()
    seen: set[Node] = set()

    def grow(node: Node, column: int) -> _Branch:
        seen.add(node)
        branch = _Branch(node, column)
        for link in around[node]:
            if link not in used:
                used.add(link)
                joint = _Joint(link, [], [])
                for end in link.ends:
                    if end in seen:
                        joint.known += [end] if end != node else []
                    else:
                        joint.children.append(grow(end, column + 1))
                branch.joints.append(joint)
        branch.depth = max((joint.depth for joint in branch.joints), default=0)
        return branch

    return grow(node, 0)


def _merit(tree: _Branch) -> tuple[int, int, bool]:
    """A good line is long, leads from the first end of its parts to the second, and begins at a
    wall.
    """
    joints = [(branch, joint) for branch in tree.branches() for joint in branch.joints]
    forward = sum(
        joint.link.ends[0] == (joint.known[0] if joint.returns else branch.node)
        for branch, joint in joints
    )
    return tree.depth, forward, tree.node.holds is not None


# -- rows


@dataclasses.dataclass(frozen=True)
class _Return:
    """What leaves the line at a body and comes back at `far`: a link, or a wire that runs by
    itself. It takes a row from column `start` to before `stop`.
    """

    start: int
    stop: int
    far: Node
    thing: Link | Wire


@dataclasses.dataclass(frozen=True)
class _Block:
    """The rows of bodies, links and wires, relative to that of the line they hang on, from column
    `start` to `stop`.

    At the right of the body in column `stop` another line may begin.
    """

    rows: dict[Any, int]
    start: int
    stop: int

    @property
    def top(self) -> int:
        return min(self.rows.values())

    @property
    def height(self) -> int:
        return max(self.rows.values()) - self.top + 1


@dataclasses.dataclass
class _Side:
    """What branches off a line: a link, with a body behind it or without, or a body at a gear of
    the line; and what returns from there.
    """

    column: int
    link: Link | None
    branch: _Branch | None
    returns: list[_Return] = dataclasses.field(default_factory=list)

    def block(self, returns: dict[Node, list[_Return]]) -> _Block:
        block = _Block({}, self.column, self.column + 1)
        if self.branch is not None:
            block = _block(self.branch, returns, self.returns)
        rows = block.rows if self.link is None else {**block.rows, self.link: 0}
        return _Block(rows, min([self.column, *(one.start for one in self.returns)]), block.stop)


def _plan(tree: _Branch) -> Plan:
    columns = {branch.node: branch.column for branch in tree.branches()}
    links: dict[Link, int] = {}
    # by the body where they leave
    returns: dict[Node, list[_Return]] = {node: [] for node in columns}
    wires: list[Wire] = []
    for branch in tree.branches():
        for joint in branch.joints:
            link = joint.link
            if joint.returns:
                (first,) = joint.known
                links[link] = (columns[first] + branch.column - 1) // 2
                returns[first].append(_Return(columns[first], branch.column, branch.node, link))
                wires += [Wire(first, link, True), Wire(branch.node, link, False)]
                continue
            links[link] = branch.column
            wires.append(Wire(branch.node, link, True))
            wires += [Wire(child.node, link, False, -k) for k, child in enumerate(joint.ordered())]
            for k, node in enumerate(joint.known, 1):
                there, here = columns[node], branch.column
                wire = Wire(node, link, there < here, k)
                if there < here:
                    returns[node].append(_Return(there, here + 1, branch.node, wire))
                else:
                    returns[branch.node].append(_Return(here, there, node, wire))
    rows = _block(tree, returns, []).rows
    wires += [
        dataclasses.replace(thing, via=row)
        for thing, row in rows.items()
        if isinstance(thing, Wire)
    ]
    return Plan(
        {node: (column, rows[node]) for node, column in columns.items()},
        {link: (column, rows[link]) for link, column in links.items()},
        tuple(wires),
    )


def _block(head: _Branch, returns: dict[Node, list[_Return]], over: list[_Return]) -> _Block:
    """The line from `head` along the deepest branches, in one row; above it what returns to it, and
    `over`; below it what branches off.
    """
    line, links, sides = _line(head)
    on_line = {branch.node for branch in line}
    back = list(over)
    behind = [({b.node for b in side.branch.branches()}, side) for side in sides if side.branch]
    for one in (one for branch in line for one in returns[branch.node]):
        if one.far in on_line:
            back.append(one)
        else:
            next(side for nodes, side in behind if one.far in nodes).returns.append(one)
    rows: dict[Any, int] = dict.fromkeys([*on_line, *links], 0)
    stop = head.column + len(links)
    above, below = _Levels(), _Levels()
    for one in sorted(back, key=lambda one: one.stop - one.start):
        rows[one.thing] = -1 - above.place(one.start, one.stop, 1)
    # from the right: a line down then meets no branch
    for side in sorted(sides, key=lambda side: -side.column):
        block = side.block(returns)
        first = 1 + below.place(block.start, block.stop, block.height)
        rows |= {thing: first + row - block.top for thing, row in block.rows.items()}
        stop = max(stop, block.stop)
    return _Block(rows, head.column, stop)


def _line(head: _Branch) -> tuple[list[_Branch], list[Link], list[_Side]]:
    """The bodies and links on the line from `head` along the deepest branches, and what branches
    off it.
    """
    line, links, sides = [head], [], []
    for branch in line:
        onward = [joint for joint in branch.joints if not joint.returns]
        main = max(onward, key=lambda joint: joint.depth, default=None)
        for joint in onward:
            first, others = joint.ordered()[:1], joint.ordered()[1:]
            if joint is main:
                links.append(joint.link)
                line += first
            else:
                sides.append(_Side(branch.column, joint.link, first[0] if first else None))
            sides += [_Side(branch.column, None, child) for child in others]
    return line, links, sides


class _Levels:
    """Rows that fill up: what lies in different columns shares one."""

    def __init__(self) -> None:
        self.taken: list[list[tuple[int, int]]] = []

    def place(self, start: int, stop: int, height: int) -> int:
        """The first of `height` rows that are free from column `start` to before `stop`, which then
        are taken.
        """
        level = 0
        while any(
            start < b and a < stop for row in self.taken[level : level + height] for a, b in row
        ):
            level += 1
        self.taken += [[] for _ in range(level + height - len(self.taken))]
        for row in self.taken[level : level + height]:
            row.append((start, stop))
        return level
