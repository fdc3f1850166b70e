"""How bristles are bent where it is known how the bodies move: no equation is solved."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from frictax.contacts.rubbing import bristle_law
from frictax.parameters import Numbers

from ..dynamics import contact_position
from ..layout import Layout
from ..snapshot import Snapshot


def is_moved(mechanism: Any, lay: Layout) -> bool:
    """Whether all that moves is given, and bristles are the only states: a run needs no steps."""
    others = lay.coordinates or lay.contacts or lay.gaps or lay.nodes
    bristles = [mechanism.parts[contact.part].bristle for contact in lay.bristles]
    # one whose force follows over time, and not over the way, does need them
    return bool(bristles) and not others and all(getattr(b, "C", None) is None for b in bristles)


def places(now: Snapshot) -> Float[Array, " b"]:
    """Where the contacts with a bristle are [m]."""
    return jnp.stack([contact_position(now, contact) for contact in now.layout.bristles])


def bent_along(
    now: Snapshot, ts: Float[Numbers, " n"], s: Float[Array, "n b"]
) -> Float[Array, "n f"]:
    """The forces in the bristles [N] at the times `ts`, as they stand in the state, where the
    contacts are at `s` [m] then; at the first time, of which `now` is, as they start.

    Between two samples each sees one speed, at which its own motion is known: exact where the
    force depends on the way alone, else of order 2.
    """
    parts: list[Any] = now.bristle_elements

    def on(forces: list[Array], step: tuple[Array, Array]) -> tuple[list[Array], list[Array]]:
        h, ways = step
        ends = []
        for b, (part, force) in enumerate(zip(parts, forces, strict=True)):
            g, _, least = bristle_law(part, ways[b] / h)
            ends.append(part.bristle.moved(ways[b], force, g, least)[0])
        return ends, ends

    first = now.bristle_force
    _, after = jax.lax.scan(on, first, (jnp.diff(jnp.asarray(ts)), jnp.diff(s, axis=0)))
    found = [jnp.concatenate([f[None], rest]) for f, rest in zip(first, after, strict=True)]
    n = s.shape[0]
    return jnp.concatenate([jnp.reshape(f, (n, -1)) for f in found], axis=1)
