"""The margins of a friction contact: what must stay positive for its mode to go on."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.contacts.contact import ends
from frictax.contacts.mode import BACKWARD, FORWARD, FREE, STUCK
from frictax.parameters import Number
from frictax.signals import Constant, Function
from frictax.signals.function import longest_step

from .layout import Contact, Layout, signal_of
from .mechanism import Mechanism
from .snapshot import Snapshot


def margin_names(contact: Contact, part: Any) -> list[str]:
    """The names of the margins of a contact, in their order."""
    stops, breaks = contact.wall is not None, contact.piece is not None
    return (
        ["low", "high"] * stops
        + ["forward", "backward"]
        + ["faster", "slower"] * breaks
        + ["side"] * part.depends_on_torque
        + ["normal"] * contact.is_pressed
    )


def all_margins(now: Snapshot) -> list[Array]:
    """Those of all contacts, one after the other."""
    found = []
    for c, contact in enumerate(now.layout.contacts):
        named = margins(now, c)
        found += [named[name] for name in margin_names(contact, now.part(c))]
    return found


def margins(now: Snapshot, c: int) -> dict[str, Array]:
    """The margins of contact `c`, by name.

    All start a rounding above 0, so that none of a new mode is found at 0.
    """
    m, part = now.mode[c], now.part(c)
    eps = 500 * jnp.finfo(now.t.dtype).eps
    slides, inf = slides_in(m), jnp.full_like(now.t, jnp.inf)
    v = now.direction[c] * now.v_rel[c]
    forward, backward = (jnp.where(m == STUCK, reserve, inf) for reserve in reserves(now, c))
    margins = {}
    if (place := now.contact(c).wall) is not None:
        wall, s = now.mode[place], now.position_of(c)
        forward, backward = jnp.where(wall == 1, inf, forward), jnp.where(wall == -1, inf, backward)
        low, high = part.stops()
        room_low, room_high = s - low + eps, high - s + eps
        margins["low"] = jnp.where((m == BACKWARD) | (m == FREE), room_low, inf)
        margins["high"] = jnp.where((m == FORWARD) | (m == FREE), room_high, inf)
    # While sliding, "forward" is the margin of the velocity: the two never matter at once.
    # A freewheel that nothing presses on must not turn back either, and is on no piece of its law.
    moves, speed = (m != STUCK, now.v_rel[c]) if part.blocks_backward else (slides, v)
    least = speed + rounding(now, c)
    # The velocity of one that others hold is 0 but for what the integration makes of it.
    least = least if (held := now.is_held[c]) is None else jnp.where(held, inf, least)
    margins["forward"] = jnp.where(moves, least, forward)
    margins["backward"] = backward
    if now.contact(c).piece is not None:
        begins, stops = ends(part, now.direction[c], now.piece[c])
        margins["faster"] = jnp.where(slides, stops - v + eps, inf)
        margins["slower"] = jnp.where(slides, v - begins + eps, inf)
    if now.contact(c).side is not None:
        size = jax.lax.stop_gradient(now.transmitted_size(c))
        margins["side"] = jnp.where(slides, now.side_margin(c) + eps * size, inf)
    if now.normal[c] is not None:
        # What is pressed from either side turns its face at 0 and is never free.
        up = (
            now.normal[c]
            if now.contact(c).face is not None
            else jnp.where(m == FREE, -now.normal[c], now.normal[c])
        )
        is_given = now.contact(c).signal is not None
        margin = up + part.fn_max * (_rounding_of_signal(now, c) if is_given else eps)
        never = part.fn_max <= 0  # nothing presses it on, ever
        if part.blocks_backward:  # stuck, it holds either way
            never = never | (m == STUCK)
        margins["normal"] = jnp.where(never, inf, margin)
    return margins


def rounding(now: Snapshot, c: int) -> Array:
    """A velocity that is 0 but for rounding."""
    eps, contact = 500 * jnp.finfo(now.t.dtype).eps, now.contact(c)
    least = jnp.asarray(min(eps, 1e-9))  # in 32 bits `eps` is no small velocity
    if contact.alone and all(sign > 0 for _, sign in contact.ends):
        return least
    sizes = (jnp.abs(now.v[body]) for body, _ in contact.ends)
    return least + eps * jax.lax.stop_gradient(sum(sizes, now.zero))


def reserves(now: Snapshot, c: int) -> tuple[Array, Array]:
    """How much more load a stuck contact holds, forward and backward."""
    holds, most_f, most_b = now.held_force(c), now.f0_max(c, 1), now.f0_max(c, -1)
    size = now.share(c) + sum(jnp.abs(now.held_force(d)) for d in now.contact(c).group)
    rounding = (
        8 * jnp.finfo(now.t.dtype).eps * jax.lax.stop_gradient(size) + jnp.finfo(now.t.dtype).tiny
    )
    return most_f - holds + rounding, most_b + holds + rounding


def slides_in(m: Array) -> Array:
    """Whether a contact of mode `m` slides."""
    return (m == FORWARD) | (m == BACKWARD)


def is_off(mechanism: Any, layout: Layout, t: Array, contact: Contact, k: Array) -> Array:
    """Whether piece `k` of its signal presses a contact on no more, from time `t` on."""
    value, rate = _pressing(mechanism, layout, t, contact, k)
    zero = _rounding_at(t, rate)  # a switch to 0 may be a rounding off
    return (
        (value < -zero)
        | ((value <= zero) & (rate <= 0))
        | (mechanism.parts[contact.part].fn_max <= 0)
    )


def _rounding_of_signal(now: Snapshot, c: int) -> Array:
    """That of the signal which presses contact `c` on, at the time of `now`."""
    contact = now.contact(c)
    assert contact.signal is not None
    k = now.mode[now.layout.first_signal + contact.signal]
    _, rate = _pressing(now.mechanism, now.layout, now.t, contact, k)
    return jax.lax.stop_gradient(_rounding_at(now.t, rate))


def _pressing(
    mechanism: Any, layout: Layout, t: Array, contact: Contact, k: Array
) -> tuple[Array, Array]:
    """The value and the rate of the signal that presses a contact on, on its piece `k`."""
    assert contact.signal is not None
    signal = signal_of(mechanism, layout.signals[contact.signal])
    return jax.jvp(lambda t: signal.on_piece(t, k), (t,), (jnp.ones_like(t),))


def _rounding_at(t: Array, rate: Array) -> Array:
    """Of the value of a signal at the rounded time `t`: where it crosses 0 fast, that is far."""
    return jnp.finfo(t.dtype).eps * (500.0 + 50.0 * jnp.abs(rate * t))


def longest_steps(mechanism: Mechanism, lay: Layout, span: Number) -> list[Any]:
    """How long a step [s] may be under each drive that varies by a formula, so that no reserve of a
    stuck contact turns in it unseen; `span` [s]: of the whole run.
    """
    contacts = range(len(lay.contacts))
    summed = {
        j for c in contacts if _is_loaded_by_several(mechanism, lay, c) for j in _loads(lay, c)
    }
    bounds = (
        longest_step(signal_of(mechanism, place), span, j in summed)
        for j, place in enumerate(lay.signals)
    )
    return [bound for bound in bounds if bound is not None]


def _is_loaded_by_several(mechanism: Mechanism, lay: Layout, c: int) -> bool:
    """Whether the reserves of contact `c` may turn, while it is stuck, elsewhere than at the
    extrema of one drive.

    So they may under the sum of two drives, a user's function, a given motion, or the pull of
    another body.
    """
    contact = lay.contacts[c]
    by_state = any(c in node.contacts for node in lay.nodes) or (
        contact.is_pressed and contact.signal is None
    )
    if not contact.alone or lay.motions or by_state:
        return True
    body = contact.flange.body
    loads = [signal_of(mechanism, lay.signals[j]) for j in _loads(lay, c)]
    joined = any(
        body in (a.body, b.body) and None not in (a.body, b.body) for _, a, b in lay.compliants
    )
    varying = [signal for signal in loads if not isinstance(signal, Constant)]
    return joined or len(varying) > 1 or any(isinstance(signal, Function) for signal in varying)


def _loads(lay: Layout, c: int) -> list[int]:
    """The signals that load contact `c` directly or press on it."""
    contact = lay.contacts[c]
    if not contact.alone or lay.motions:
        return list(range(len(lay.signals)))
    pressing = [] if contact.signal is None else [contact.signal]
    return [
        j for _, flange, j in lay.forces if flange.body == contact.flange.body and j is not None
    ] + pressing
