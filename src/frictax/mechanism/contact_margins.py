"""Margins of friction contacts: event functions that are positive while the mode lasts."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.contacts.contact import piece_limits
from frictax.contacts.mode import BACKWARD, FORWARD, FREE, STUCK
from frictax.parameters import Number
from frictax.signals import AbstractSignal, Constant, Sine
from frictax.signals.function import largest_rate, longest_steps_of_functions

from .forces import PeriodicPositionDependentForce
from .layout import Contact, Layout, signal_of
from .mechanism import Mechanism
from .snapshot import Snapshot


def margin_names(contact: Contact, part: Any) -> list[str]:
    """Return the names of the margins of a contact, in the order of the event functions."""
    stops, breaks = contact.wall is not None, contact.piece is not None
    return (
        ["low", "high"] * stops
        + ["forward", "backward"]
        + ["faster", "slower"] * breaks
        + ["side"] * part.depends_on_torque
        + ["normal"] * contact.is_pressed
    )


def all_margins(now: Snapshot) -> list[Array]:
    """Return the margins of all contacts, contact by contact, in the order of `margin_names`."""
    found = []
    for c, contact in enumerate(now.layout.contacts):
        named = margins(now, c)
        found += [named[name] for name in margin_names(contact, now.part(c))]
    return found


def margins(now: Snapshot, c: int) -> dict[str, Array]:
    """Return the margins (event functions) of contact `c` as a dict from name to value.

    A rounding error is added to each margin, so that every margin is positive when a mode begins.
    """
    m, part = now.mode[c], now.part(c)
    eps = 500 * jnp.finfo(now.t.dtype).eps
    slides, inf = is_sliding(m), jnp.full_like(now.t, jnp.inf)
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
    # While the contact slides, the event function "forward" is its velocity. While it is stuck,
    # "forward" is the additional load that it can hold. For a freewheel without a normal force,
    # "forward" is also the velocity, because the freewheel must not turn backward.
    moves, speed = (m != STUCK, now.v_rel[c]) if part.blocks_backward else (slides, v)
    least = speed + velocity_rounding(now, c)
    # If other stuck contacts hold this contact, its velocity is an integration error, not an event.
    least = least if (held := now.is_held[c]) is None else jnp.where(held, inf, least)
    margins["forward"] = jnp.where(moves, least, forward)
    margins["backward"] = backward
    if now.contact(c).piece is not None:
        begins, stops = piece_limits(part, now.direction[c], now.piece[c])
        margins["faster"] = jnp.where(slides, stops - v + eps, inf)
        margins["slower"] = jnp.where(slides, v - begins + eps, inf)
    if now.contact(c).side is not None:
        size = jax.lax.stop_gradient(now.transmitted_size(c))
        margins["side"] = jnp.where(slides, now.side_margin(c) + eps * size, inf)
    if now.normal[c] is not None:
        # A contact that can be pressed from either side changes its pressed face where the normal
        # force is 0, so it is never free.
        up = now.normal[c]
        if now.contact(c).face is None:
            up = jnp.where(m == FREE, -up, up)
        rounding = eps
        if (signal := now.contact(c).signal) is not None:
            k = now.mode[now.layout.first_signal + signal]
            _, rate = _pressing_signal(now.mechanism, now.layout, now.t, now.contact(c), k)
            rounding = jax.lax.stop_gradient(_rounding_at(now.t, rate))
        margin = up + part.fn_max * rounding
        never = part.fn_max <= 0  # the normal force is always 0
        if part.blocks_backward:  # a stuck freewheel needs no normal force
            never = never | (m == STUCK)
        margins["normal"] = jnp.where(never, inf, margin)
    return margins


def velocity_rounding(now: Snapshot, c: int) -> Array:
    """Return the rounding error of the velocity of contact `c` [m/s or rad/s]."""
    contact = now.contact(c)
    return rounding_of_ends(now, contact, contact.alone and all(s > 0 for _, s in contact.ends))


def rounding_of_ends(now: Snapshot, contact: Contact, is_single: bool) -> Array:
    """Return the rounding error of the velocity of a contact [m/s or rad/s], from the velocities of
    its bodies. `is_single`: whether the velocity of the contact is that of one body.
    """
    eps = 500 * jnp.finfo(now.t.dtype).eps
    # Use at most 1e-9, because `eps` is 6e-5 for 32-bit numbers, and 6e-5 m/s is not small.
    least = jnp.asarray(min(eps, 1e-9))
    if is_single:
        return least
    sizes = (jnp.abs(now.v[body]) for body, _ in contact.ends)
    return least + eps * jax.lax.stop_gradient(sum(sizes, now.zero))


def reserves(now: Snapshot, c: int) -> tuple[Array, Array]:
    """Return the additional load [N] that stuck contact `c` can hold, forward and backward."""
    holds, most_f, most_b = now.held_force(c), now.f0_max(c, 1), now.f0_max(c, -1)
    size = now.share(c) + sum(jnp.abs(now.held_force(d)) for d in now.contact(c).group)
    rounding = (
        8 * jnp.finfo(now.t.dtype).eps * jax.lax.stop_gradient(size) + jnp.finfo(now.t.dtype).tiny
    )
    return most_f - holds + rounding, most_b + holds + rounding


def is_sliding(m: Array) -> Array:
    """Return whether a contact of mode `m` slides."""
    return (m == FORWARD) | (m == BACKWARD)


def is_unpressed(mechanism: Any, layout: Layout, t: Array, contact: Contact, k: Array) -> Array:
    """Return whether the normal force is 0 just after time `t`. `k`: segment of the signal."""
    value, rate = _pressing_signal(mechanism, layout, t, contact, k)
    # If the signal switches to 0, its value may differ from 0 by a rounding error.
    zero = _rounding_at(t, rate)
    return (
        (value < -zero)
        | ((value <= zero) & (rate <= 0))
        | (mechanism.parts[contact.part].fn_max <= 0)
    )


def _pressing_signal(
    mechanism: Any, layout: Layout, t: Array, contact: Contact, k: Array
) -> tuple[Array, Array]:
    """Return value and rate of the signal of a contact's normal force at `t`, on segment `k`."""
    assert contact.signal is not None
    signal = signal_of(mechanism, layout.signals[contact.signal])
    return jax.jvp(lambda t: signal.on_piece(t, k), (t,), (jnp.ones_like(t),))


def _rounding_at(t: Array, rate: Array) -> Array:
    """Return the rounding error of a signal at time `t`, which grows with the signal's rate."""
    return jnp.finfo(t.dtype).eps * (500.0 + 50.0 * jnp.abs(rate * t))


def longest_steps(
    mechanism: Mechanism, lay: Layout, t: Number, span: Number
) -> tuple[list[Any], list[Any]]:
    """Return two lists of longest allowed time steps [s]: in every mode, and while a contact is
    stuck. In a longer step, a pulse of a user's function may have no effect. The load of a stuck
    contact may exceed the breakaway force and fall again undetected. `t`: start of the run [s];
    `span`: its duration [s].
    """
    signals = [signal_of(mechanism, place) for place in lay.signals]
    always = longest_steps_of_functions(signals, span)
    # A normal force given by a user's function of time, position and velocity can change as fast.
    pressed = [c for c in (*lay.contacts, *lay.bristles) if c.is_pressed and c.signal is None]
    always += [span / 200] * len(pressed[:1])
    # The load of a stuck contact can have an extremum at a time at which no drive signal has an
    # extremum. This is possible if the load depends on two signals, a user's function, a prescribed
    # motion, or a spring or damper to another body.
    summed = set[int]()
    for c, contact in enumerate(lay.contacts):
        loads = _loads(lay, c)
        by_state = any(c in node.contacts for node in lay.nodes) or (
            contact.is_pressed and contact.signal is None
        )
        by_several = not contact.alone or bool(lay.motions) or by_state
        if not by_several:
            body = contact.flange.body
            joined = any(
                body in (a.body, b.body) and None not in (a.body, b.body)
                for _, a, b in lay.compliants
            )
            varying = [j for j in loads if not isinstance(signals[j], Constant)]
            by_several = joined or len(varying) > 1
        if by_several:
            summed |= set(loads)
    frequencies = [signals[j].f for j in summed if isinstance(signals[j], Sine)]
    stuck = [1 / (32 * jnp.maximum(f, jnp.finfo(f.dtype).tiny)) for f in frequencies]
    return always, stuck + _steps_over_waves(mechanism, lay, signals, t, span)


def _steps_over_waves(
    mechanism: Mechanism, lay: Layout, signals: list[AbstractSignal], t: Number, span: Number
) -> list[Array]:
    """Return the longest time step [s] that resolves a periodic force over the position of a body
    that a prescribed motion carries, in a list; an empty list without such a force.
    """
    sources = [mechanism.parts[i] for i, *_ in lay.forces]
    waves = [s.period for s in sources if isinstance(s, PeriodicPositionDependentForce)]
    if not waves or not lay.motions:
        return []
    fastest = jnp.max(jnp.stack([largest_rate(signals[j], t, span) for *_, j in lay.motions]))
    for gear in lay.gears:
        ratios = jnp.abs(jnp.stack(list(mechanism.parts[gear.part].factors())))
        fastest *= jnp.max(ratios) / jnp.min(ratios)
    period = jnp.min(jnp.stack(waves))
    return [period / (32 * jnp.maximum(fastest, period / span))]


def _loads(lay: Layout, c: int) -> list[int]:
    """Return the numbers of the signals that load contact `c` or determine its normal force."""
    contact = lay.contacts[c]
    if not contact.alone or lay.motions:
        return list(range(len(lay.signals)))
    pressing = [] if contact.signal is None else [contact.signal]
    return [
        j for _, flange, j in lay.forces if flange.body == contact.flange.body and j is not None
    ] + pressing
