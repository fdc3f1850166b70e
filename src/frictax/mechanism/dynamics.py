"""The forces and accelerations of a mechanism at one moment, in given modes."""

import dataclasses
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from frictax.contacts import Mode
from frictax.contacts.contact import law_value
from frictax.mechanism.mechanism import Flange, Layout, Mechanism, signal_of


@dataclasses.dataclass(frozen=True)
class Moment:
    """A mechanism at one time: lists over its bodies (`s`, `v`, `load`), signals (`drive`), sources (`driven`) and contacts, all scalars.

    `driven` is the part of a source's force whose work a drive does, `load` the sum of the forces on a body but for its friction [N];
    `direction` is 1, -1, or 0 for a contact that does not slide; `normal` the normal force [N] or None; `scale` the factor on the law.
    """

    mechanism: Mechanism
    layout: Layout
    t: Array
    mode: Array
    s: list[Array]
    v: list[Array]
    drive: list[Array]
    driven: list[Array]
    load: list[Array]
    direction: list[Array]
    piece: list[Any]
    normal: list[Any]
    scale: list[Any]


def moment(mechanism: Mechanism, layout: Layout, t: Array, y: Array, mode: Array, signals: list[Array], pieces: list[Any]) -> Moment:
    """Evaluate signals and loads at time `t`, state `y` and mode `mode`; `signals` and `pieces` number their pieces."""
    n = len(layout.bodies)
    s, v = [y[i] for i in range(n)], [y[n + i] for i in range(n)]
    drive = [signal_of(mechanism, place).on_piece(t, k) for place, k in zip(layout.signals, signals, strict=True)]
    load: list[Array] = [jnp.zeros_like(t)] * n
    for part, a, b in layout.compliants:
        f = mechanism.parts[part].elastic(position(mechanism, b, s) - position(mechanism, a, s))
        f = f + mechanism.parts[part].viscous(velocity(b, v, t) - velocity(a, v, t))
        for flange, sign in ((a, 1.0), (b, -1.0)):
            if flange.body is not None:
                load[flange.body] = load[flange.body] + sign * f
    driven = []
    for part, flange, signal in layout.forces:
        source, at = mechanism.parts[part], position(mechanism, flange, s)
        driven.append(source.driven(None if signal is None else drive[signal], at, velocity(flange, v, t)))
        if flange.body is not None:
            load[flange.body] = load[flange.body] + driven[-1] + source.elastic(at)
    directions, normals, scales = [], [], []
    for c, contact in enumerate(layout.contacts):
        part = mechanism.parts[contact.part]
        normal = None if contact.signal is None else part.normal(drive[contact.signal])
        directions.append(jnp.where(mode[c] == int(Mode.FREE), 0, mode[c]))
        normals.append(normal)
        scales.append(part.scale(normal))
    return Moment(mechanism, layout, t, mode, s, v, drive, driven, load, directions, pieces, normals, scales)


def position(mechanism: Mechanism, flange: Flange, s: list[Array]) -> Array:
    """Position of a flange [m]."""
    if flange.body is None:
        return mechanism.parts[flange.part].s0
    return s[flange.body] + flange.side * mechanism.parts[flange.part].L / 2 if flange.side else s[flange.body]


def velocity(flange: Flange, v: list[Array], t: Array) -> Array:
    """Velocity of a flange [m/s]."""
    return jnp.zeros_like(t) if flange.body is None else v[flange.body]


def masses(now: Moment) -> list[Array]:
    """The masses of the bodies [kg]."""
    return [now.mechanism.parts[i].m for i in now.layout.bodies]


def friction(now: Moment, c: int) -> Array:
    """Force [N] of contact `c`, positive against positive velocity; while stuck, the force that holds."""
    contact, m = now.layout.contacts[c], now.direction[c]
    part = now.mechanism.parts[contact.part]
    sliding = m * law_value(part, m, m * now.v[contact.body], now.piece[c]) * now.scale[c]
    return jnp.where(now.mode[c] == int(Mode.STUCK), now.load[contact.body], sliding)


def accelerations(now: Moment) -> list[Array]:
    """The accelerations of the bodies [m/s2]; of a stuck one exactly 0."""
    total = list(now.load)
    stuck: dict[int, Array] = {}
    for c, contact in enumerate(now.layout.contacts):
        total[contact.body] = total[contact.body] - friction(now, c)
        stuck[contact.body] = now.mode[c] == int(Mode.STUCK)
    a = [f / m for f, m in zip(total, masses(now), strict=True)]
    return [jnp.where(stuck[i], 0.0, ai) if i in stuck else ai for i, ai in enumerate(a)]


def powers(now: Moment) -> list[Array]:
    """Power [W] of the drives, lost by friction, lost in dampers, and lost at stops (which lose it at once: 0 here)."""
    zero = jnp.zeros_like(now.t)
    drives = sum((f * velocity(flange, now.v, now.t) for f, (_, flange, _) in zip(now.driven, now.layout.forces, strict=True)), zero)
    losses = sum((friction(now, c) * now.v[contact.body] for c, contact in enumerate(now.layout.contacts)), zero)
    dampers = zero
    for part, a, b in now.layout.compliants:
        v_rel = velocity(b, now.v, now.t) - velocity(a, now.v, now.t)
        dampers = dampers + now.mechanism.parts[part].viscous(v_rel) * v_rel
    return [drives, losses, dampers, zero]


def stored(now: Moment) -> tuple[Array, Array]:
    """Kinetic energy, and that of springs and of forces given by position [J]."""
    zero = jnp.zeros_like(now.t)
    kinetic = sum((0.5 * m * v**2 for m, v in zip(masses(now), now.v, strict=True)), zero)
    elastic = zero
    for part, a, b in now.layout.compliants:
        s_rel = position(now.mechanism, b, now.s) - position(now.mechanism, a, now.s)
        elastic = elastic + now.mechanism.parts[part].energy(s_rel)
    for part, flange, _ in now.layout.forces:
        elastic = elastic + now.mechanism.parts[part].energy(position(now.mechanism, flange, now.s))
    return kinetic, elastic
