"""Where the heat of friction goes."""

from jaxtyping import Array

from .energy import damper_loss, loss
from .snapshot import Snapshot


def heat_flows(now: Snapshot) -> tuple[list[Array], Array, Array]:
    """The heat [W] that flows into each node, that which friction and dampers make of it, and that
    which leaves to the surroundings.
    """
    lay, zero = now.layout, now.zero
    made = [
        sum((loss(now, c) for c in node.contacts), zero)
        + sum((damper_loss(now, k) for k in node.compliants), zero)
        for node in lay.nodes
    ]
    into, left = list(made), zero
    for part, a, b in lay.conductors:
        flow = conducted(now, part, a, b)
        into[a] = into[a] - flow
        if b is None:
            left = left + flow
        else:
            into[b] = into[b] + flow
    return into, sum(made, zero), left


def conducted(now: Snapshot, part: int, a: int, b: int | None) -> Array:
    """The heat [W] that conductor number `part` carries from node `a` to node `b`, or to the
    surroundings.
    """
    conductor = now.mechanism.parts[part]
    return conductor.G * (
        now.temperature[a] - (conductor.T_ambient if b is None else now.temperature[b])
    )
