"""Contacts with a bristle that a normal force presses on: a brake, a clutch."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.engine.system import DEADLINE
from frictax.parameters.constant import constant

from ..contact_margins import is_off
from ..dynamics import contact_position
from ..layout import signal_of
from ..snapshot import Snapshot
from .at_moment import BristlesAtMoment


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
    before: BristlesAtMoment,
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


def pressing_power(now: Snapshot) -> Array:
    """Power [W] that what presses gives to the bristles it presses on as it grows."""
    total = now.zero
    for b, press in enumerate(now.bristle_press):
        if press is None:
            continue
        contact, part = now.layout.bristles[b], now.bristle_elements[b]
        if contact.signal is not None:
            signal = signal_of(now.mechanism, now.layout.signals[contact.signal])
            k = now.mode[now.layout.first_signal + contact.signal]
            at, along = (now.t,), (jnp.ones_like(now.t),)
            value = lambda t, signal=signal, k=k: signal.on_piece(t, k)  # noqa: E731
        else:
            a = sum((sign * now.accelerations[body] for body, sign in contact.ends), now.zero)
            at = now.t, contact_position(now, contact), now.bristle_v[b]
            along = jnp.ones_like(now.t), now.bristle_v[b], a
            value = part.f_normalized.in_motion
        rate = jax.jvp(value, at, along)[1]
        side = jnp.where(press == 0, 0.0, jnp.where(press < 0, -1.0, 1.0))
        total = total + side * part.scale(part.normal(rate)) * part.bristle.energy(
            now.bristle_force[b]
        )
    return total
