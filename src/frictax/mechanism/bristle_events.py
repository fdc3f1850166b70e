"""Bristles with elements: when one begins to slip, and when all stick again."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.contacts.contact import f0
from frictax.contacts.rubbing import element_limits
from frictax.engine.system import DEADLINE
from frictax.parameters.arrays import constant, larger

from .contact_margins import is_off
from .dynamics import MachineSnapshot
from .snapshot import Snapshot


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


def press_margins(now: Snapshot) -> list[Array]:
    """Of each of them what presses it on, or while nothing does what keeps it off; a rounding above
    0 at the start.
    """
    eps, found = 500 * jnp.finfo(now.t.dtype).eps, []
    for b, press in enumerate(now.bristle_press):
        if press is None:
            continue
        part, normal = now.bristle_elements[b], now.bristle_normal[b]
        margin = jnp.where(press == 0, -normal, normal) + eps * part.fn_max
        found.append(jnp.where(part.fn_max <= 0, jnp.inf, margin))
    return found


def begun_pressed(now: Snapshot, y: Array, mode: list[Array]) -> Array:
    """The state `y` at the start, where no bristle is bent that nothing presses on; what does is
    written to `mode`.
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
    return _unbent(now, [None if press is None else press == 0 for press in after], y)


def pressed_anew(
    before: MachineSnapshot,
    at: Callable[[list[Array]], Snapshot],
    fired: Array,
    presses: Array,
    new: list[Array],
    counted: bool,
) -> Array:
    """The state after margin number `fired`, -1 for the last of `presses`, where `before` is the
    machine before it and `at`(new) that in a new mode; what presses on is written to `new`.

    A bristle of which the faces were parted, or changed, is bent no more. `counted`: with what that
    and a jump of the normal force add to the energy in bristles, which is the work of what presses,
    in the accounts.
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
    y = _unbent(before, parted, before.y)
    if counted:
        left = zip(at(new).bristle_energy, before.bristle_energy, parted, strict=True)
        added = [jnp.where(p, 0.0, b) - a for b, a, p in left if p is not None]
        y = y.at[-4].add(sum(added, before.zero))
    return y


def _presses(now: Snapshot, b: int) -> Array:
    """Whether something presses contact number `b` with a bristle on, from now on."""
    contact = now.layout.bristles[b]
    if contact.signal is None:
        return now.bristle_normal[b] > 0
    k = now.mode[now.layout.first_signal + contact.signal]
    return ~is_off(now.mechanism, now.layout, now.t, contact, k)


def _either_side(now: Snapshot, b: int) -> bool:
    return getattr(now.bristle_elements[b].f_normalized, "either_side", False)


def _unbent(now: Snapshot, parted: list[Any], y: Array) -> Array:
    """The state `y` with no force in the bristles that were parted; None: they never are."""
    first = now.layout.first_bristle
    for n, p in zip(now.layout.elements, parted, strict=True):
        size = max(n, 1)
        if p is not None:
            y = y.at[first : first + size].multiply(jnp.where(p, 0.0, 1.0))
        first += size
    return y
