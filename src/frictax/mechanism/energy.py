"""Power, energy and heat of a mechanism."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.contacts.mode import STUCK

from .dynamics import contact_position, forces, position, stretch, velocity
from .layout import signal_of
from .snapshot import Snapshot
from .sparse import product


def loss(now: Snapshot, c: int) -> Array:
    """Power [W] that friction takes at contact c."""
    return jnp.where(now.mode[c] == STUCK, 0.0, now.friction[c] * now.v_rel[c])


def bristle_loss(now: Snapshot, b: int) -> Array:
    """Power [W] that friction takes at contact number `b` with a bristle, but for what bends it; of
    elements that slip, all that they take.
    """
    return now.bristle_friction[b] * now.bristle_v[b] - now.bristle_stores[b]


def damper_loss(now: Snapshot, k: int) -> Array:
    """Power [W] that the damper of compliant number k takes."""
    return forces(now, k)[1] * stretch(now, k)[1]


def powers(now: Snapshot) -> list[Array]:
    """Power [W] of the drives, lost by friction, lost in dampers and by drag, and lost at stops
    (which lose it at once: 0 here).
    """
    zero = now.zero
    drives = dampers = zero
    for f, (part, flange, _) in zip(now.driven, now.layout.forces, strict=True):
        power = f * velocity(flange, now.v, now.t)
        if now.mechanism.parts[part].dissipates:
            dampers = dampers - power
        else:
            drives = drives + power
    losses = sum((loss(now, c) for c in range(len(now.contact_jacobian))), zero)
    losses = sum((bristle_loss(now, b) for b in range(len(now.layout.bristles))), losses)
    for k in range(len(now.layout.compliants)):
        dampers = dampers + damper_loss(now, k)
    return [drives + _of_motions(now) + pressing_power(now), losses, dampers, zero]


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


def _of_motions(now: Snapshot) -> Array:
    """Power [W] that it takes to give bodies their motions: what all forces lack for that, along
    the velocity that is given.
    """
    zero, speeds = now.zero, dict(enumerate(now.u))
    if not now.layout.motions:
        return zero
    own = [
        v - (zero if (by := product(form, speeds)) is None else by)
        for v, form in zip(now.v, now.forms, strict=True)
    ]
    inertial = zip(now.inertias, now.accelerations, now.load, own, strict=True)
    total = sum(((m * a - load) * v for m, a, load, v in inertial), zero)
    for contact, f in zip(now.layout.contacts, now.friction, strict=True):
        for body, sign in contact.ends:
            total = total + sign * f * own[body]
    return total


def stored(now: Snapshot) -> tuple[Array, Array]:
    """Kinetic energy, and that of springs, of bristles and of forces given by position [J]."""
    zero = now.zero
    kinetic = sum((0.5 * m * v**2 for m, v in zip(now.inertias, now.v, strict=True)), zero)
    elastic = zero
    for k, (part, _, _) in enumerate(now.layout.compliants):
        elastic = elastic + now.mechanism.parts[part].energy(stretch(now, k)[0])
    for part, flange, _ in now.layout.forces:
        elastic = elastic + now.mechanism.parts[part].energy(position(now.mechanism, flange, now.s))
    return kinetic, sum(now.bristle_energy, elastic)


def heat_flows(now: Snapshot) -> tuple[list[Array], Array, Array]:
    """The heat [W] that flows into each node, that which friction and dampers make of it, and that
    which leaves to the surroundings.
    """
    lay, zero = now.layout, now.zero
    made = [
        sum((loss(now, c) for c in node.contacts), zero)
        + sum((damper_loss(now, k) for k in node.compliants), zero)
        + sum((bristle_loss(now, b) for b in node.bristles), zero)
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
