"""Events of contacts with a bristle: an element slips or sticks, the normal force begins or
ends.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.contacts.contact import f0
from frictax.contacts.rubbing import element_limits
from frictax.engine.system import DEADLINE
from frictax.parameters.arrays import constant, larger

from .contact_margins import is_unpressed, rounding_of_ends
from .dynamics import MachineSnapshot


def element_margins(now: MachineSnapshot) -> list[Array]:
    """Return the margins of each bristle with elements: the force that each sticking element still
    holds forward, then backward, then the velocity in the direction of the slipping elements.

    A rounding error is added to each margin. In a direction in which the contact does not move, the
    limit of an element is the law at rest. An element that was just released may carry this force,
    and the law falls with speed in either direction.
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
        contact = now.layout.bristles[b]
        least = rounding_of_ends(now, contact, len(contact.ends) == 1)
        found.append(jnp.where(s == 0, jnp.inf, s * v + least))
    return found


def change_slipping_elements(
    now: MachineSnapshot, y: Array, fired: Array, new: list[Array], accounts: int
) -> Array:
    """Return the state after the margin number `fired` of `element_margins` fell, if one did, and
    write the modes of the elements to `new`.

    Elements that stick again carry their share of the law at rest. The change of the energy in
    their springs counts as friction loss. This is because the energy of a slipping element is
    computed with the force at which it began to slip.
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
            bent = jnp.where(stops, bristle.forces_after_sticking(force, at_rest, modes), force)
            y = y.at[state : state + n].set(bent)
            if lay.nodes or accounts:
                scale, lost = now.bristle_scale[b], bristle.energy(force) - bristle.energy(bent)
                lost = lost if scale is None else scale * lost
                for k, node in enumerate(lay.nodes):
                    if b in node.bristles:
                        y = y.at[2 * len(now.q) + k].add(lost / now.mechanism.parts[node.part].C)
                        y = y.at[-accounts].add(lost) if accounts else y
                y = y.at[-3].add(lost) if accounts else y
            first += 2 * n + 1
        place, state = place + n, state + max(n, 1)
    return y


def press_margins(now: MachineSnapshot) -> list[Array]:
    """Return the margins of each bristle with a normal force: the normal force, or its negative
    value while it is 0. A rounding error is added.
    """
    eps, found = 500 * jnp.finfo(now.t.dtype).eps, []
    for b, press in enumerate(now.bristle_press):
        if press is None:
            continue
        part, normal = now.bristle_elements[b], now.bristle_normal[b]
        margin = jnp.where(press == 0, -normal, normal) + eps * part.fn_max
        found.append(jnp.where(part.fn_max <= 0, jnp.inf, margin))
    return found


def start_pressing(now: MachineSnapshot, y: Array, mode: list[Array]) -> Array:
    """Return the state `y` at the start, in which a bristle without normal force is not bent, and
    write to `mode` which bristles have a normal force.
    """
    place, after = now.layout.first_press, []
    for b, press in enumerate(now.bristle_press):
        if press is None:
            after.append(None)
            continue
        if _either_side(now, b):
            after.append(jnp.where(now.bristle_normal[b] < 0, -1, 1))
        else:
            after.append(jnp.where(_presses(now, b), 1, 0))
        mode[place], place = after[-1], place + 1
    return _unbend(now, [None if press is None else press == 0 for press in after], y)


def change_pressing(
    before: MachineSnapshot,
    at: Callable[[list[Array]], MachineSnapshot],
    fired: Array,
    presses: Array,
    new: list[Array],
    counted: bool,
) -> Array:
    """Return the state after the event `fired`, and write to `new` which bristles have a normal
    force.

    A bristle whose faces part or change sides is not bent afterwards.

    - `before`: the machine before the event; `at`(new): the machine in a new mode.
    - `presses`: number of the fired margin, counted backward: -1 is the last of `press_margins`.
    - `counted`: add the change of the energy in the bristles to the accounts. This energy is work
      of the normal force.
    """
    now, place = constant(at(new)), before.layout.first_press
    count = sum(press is not None for press in before.bristle_press)
    parted: list[Any] = []
    for b, press in enumerate(before.bristle_press):
        if press is None:
            parted.append(None)
            continue
        if _either_side(before, b):
            turned, by_value = -press, press
        else:
            turned, by_value = jnp.where(press == 0, 1, 0), jnp.where(_presses(now, b), 1, 0)
        crossed = jnp.where(presses == -count, turned, press)
        new[place] = jnp.where(fired == DEADLINE, by_value, crossed)
        parted.append(new[place] != press)
        place, count = place + 1, count - 1
    first = before.layout.first_element
    for n, p in zip(before.layout.elements, parted, strict=True):
        for i in range(first, first + n):
            new[i] = new[i] if p is None else jnp.where(p, 0, new[i])
        first += n
    y = _unbend(before, parted, before.y)
    if counted:
        left = zip(at(new).bristle_energy, before.bristle_energy, parted, strict=True)
        added = [jnp.where(p, 0.0, b) - a for b, a, p in left if p is not None]
        y = y.at[-4].add(sum(added, before.zero))
    return y


def _presses(now: MachineSnapshot, b: int) -> Array:
    """Return whether contact number `b` with a bristle has a normal force from now on."""
    contact = now.layout.bristles[b]
    if contact.signal is None:
        return now.bristle_normal[b] > 0
    k = now.mode[now.layout.first_signal + contact.signal]
    return ~is_unpressed(now.mechanism, now.layout, now.t, contact, k)


def _either_side(now: MachineSnapshot, b: int) -> bool:
    return getattr(now.bristle_elements[b].f_normalized, "either_side", False)


def _unbend(now: MachineSnapshot, parted: list[Any], y: Array) -> Array:
    """Return the state `y` without force in the bristles that were `parted` (None: never
    parted).
    """
    first = now.layout.first_bristle
    for n, p in zip(now.layout.elements, parted, strict=True):
        size = max(n, 1)
        if p is not None:
            y = y.at[first : first + size].multiply(jnp.where(p, 0.0, 1.0))
        first += size
    return y
