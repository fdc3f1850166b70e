"""Bristles with elements: when one begins to slip, and when all stick again."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.contacts.contact import f0
from frictax.contacts.rubbing import element_limits
from frictax.parameters.least import larger

from ..snapshot import Snapshot


def element_margins(now: Snapshot) -> list[Array]:
    """Of each bristle with elements how much more each bears before it slips forward, as long as it
    sticks, then the same backward, then the velocity in the direction in which those slip that do.

    All start a rounding above 0. What an element bears in a direction in which the contact does not
    move is the law at rest: one that is just let go may carry that, which falls with speed either
    way.
    """
    found: list[Array] = []
    for b, modes in enumerate(now.element_modes):
        if modes is None:
            continue
        part, v, force = now.bristle_elements[b], now.bristle_v[b], now.bristle_force[b]
        sticks, inf, share = modes == 0, jnp.full_like(force, jnp.inf), part.bristle.share
        forward, backward = element_limits(part, v)
        for room in (share * forward - force, share * backward + force):
            size = jax.lax.stop_gradient(share * larger(forward, backward))
            found.append(jnp.where(sticks, room + 8 * jnp.finfo(force.dtype).eps * size, inf))
        s = now.element_slip[b]
        found.append(jnp.where(s == 0, jnp.inf, s * v + _least(now, b)))
    return found


def _least(now: Snapshot, b: int) -> Array:
    """A velocity that is 0 but for rounding."""
    eps, contact = 500 * jnp.finfo(now.t.dtype).eps, now.layout.bristles[b]
    sizes = (jnp.abs(now.v[body]) for body, _ in contact.ends)
    least = jnp.asarray(min(eps, 1e-9))
    if len(contact.ends) == 1:
        return least
    return least + eps * jax.lax.stop_gradient(sum(sizes, now.zero))


def joined(parts: list[Array]) -> Array:
    """One vector of numbers, and of vectors where there are elements."""
    if all(part.ndim == 0 for part in parts):
        return jnp.stack(parts)
    return jnp.concatenate([jnp.atleast_1d(part) for part in parts])


def slipped(now: Snapshot, y: Array, fired: Array, new: list[Array], accounts: int) -> Array:
    """The state after the margin number `fired` of `element_margins` fell, if one did; the modes
    after are written to `new`.

    Those that stick again bear what the law at rest gives them. What that adds to the energy in
    their springs, or takes, is of the friction's account: the springs of those that slip count with
    what they bore when they began to.
    """
    lay, first = now.layout, 0
    place, state = lay.first_element, lay.first_bristle
    for b, n in enumerate(lay.elements):
        if n:
            part, force, modes = now.bristle_elements[b], now.bristle_force[b], now.element_modes[b]
            s, bristle = now.element_slip[b], part.bristle
            stops = fired == first + 2 * n
            numbers = jnp.arange(n)
            begins = jnp.where(fired == first + numbers, 1, 0)
            begins = begins - jnp.where(fired == first + n + numbers, 1, 0)
            after = jnp.where(stops, 0, modes + begins)
            for i in range(n):
                new[place + i] = after[i]
            at_rest = jnp.where(s < 0, f0(part, -1, 1.0), f0(part, 1, 1.0))
            bent = jnp.where(stops, bristle.released(force, at_rest, modes), force)
            y = y.at[state : state + n].set(bent)
            if lay.nodes or accounts:
                scale, lost = now.bristle_scale[b], bristle.energy(force) - bristle.energy(bent)
                lost = lost if scale is None else scale * lost
                y = _accounted(now, b, lost, y, accounts)
            first += 2 * n + 1
        place, state = place + n, state + max(n, 1)
    return y


def _accounted(now: Snapshot, b: int, lost: Array, y: Array, accounts: int) -> Array:
    """The state `y` with what bristle number `b` lost at once [J], in its accounts and as heat."""
    first = 2 * len(now.q)
    for k, node in enumerate(now.layout.nodes):
        if b in node.bristles:
            y = y.at[first + k].add(lost / now.mechanism.parts[node.part].C)
            if accounts:
                y = y.at[-accounts].add(lost)
    return y.at[-3].add(lost) if accounts else y
