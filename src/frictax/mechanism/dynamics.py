"""A mechanism at one moment: signals, positions and loads evaluated."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.contacts import Mode
from frictax.laws import AbstractLaw
from frictax.mechanism.elimination import product
from frictax.mechanism.layout import Contact, Flange, Form, Layout, forms, row_of, signal_of
from frictax.mechanism.moment import Moment

FREE = int(Mode.FREE)


def moment(mechanism: Any, layout: Layout, t: Array, y: Array, mode: Array) -> Moment:
    """All that is known of a mechanism at time `t`, in state `y` and `mode`."""
    pieces = [None if c.piece is None else mode[c.piece] for c in layout.contacts]
    sides = [None if c.side is None else mode[c.side] for c in layout.contacts]
    signals = [mode[layout.first_signal + j] for j in range(len(layout.signals))]
    n = len(layout.coordinates)
    q, u = [y[i] for i in range(n)], [y[n + i] for i in range(n)]
    numbered = [(signal_of(mechanism, place), k) for place, k in zip(layout.signals, signals, strict=True)]
    drive = [signal.on_piece(t, k) for signal, k in numbered]
    bodies = forms(layout, lambda part: mechanism.parts[part].factors())
    given = _given(mechanism, layout, t, numbered)
    s, v = (_placed(bodies, values, [g[k] if g else None for g in given], t) for k, values in enumerate((q, u)))
    load: list[Array] = [jnp.zeros_like(t)] * len(layout.bodies)
    for k, (part, a, b) in enumerate(layout.compliants):
        piece = mode[layout.first_gap + layout.gaps.index(k)] if k in layout.gaps else jnp.asarray(0)
        f = sum(mechanism.parts[part].forces(*_stretch(mechanism, a, b, s, v, t), piece))
        for flange, sign in ((a, 1.0), (b, -1.0)):
            if flange.body is not None:
                load[flange.body] = load[flange.body] + sign * f
    driven = []
    for part, flange, signal in layout.forces:
        source, at = mechanism.parts[part], position(mechanism, flange, s)
        driven.append(source.driven(None if signal is None else drive[signal], at, velocity(flange, v, t)))
        if flange.body is not None:
            load[flange.body] = load[flange.body] + driven[-1] + source.elastic(at)
    rows = [row_of(contact, bodies) for contact in layout.contacts]
    temperature = [y[2 * n + i] for i in range(len(layout.nodes))]
    elements = [mechanism.parts[contact.part] for contact in layout.contacts]
    for i, node in enumerate(layout.nodes):
        for c in node.contacts:
            elements[c] = _at_temperature(elements[c], temperature[i])
    v_rel, directions, normals, scales = [], [], [], []
    for c, contact in enumerate(layout.contacts):
        part = elements[c]
        moves = velocity(contact.flange, v, t)
        has_support = contact.support is not None and contact.support.body is not None
        v_rel.append(moves - velocity(contact.support, v, t) if has_support else moves)
        normal = None
        if contact.is_pressed:
            press = drive[contact.signal] if contact.signal is not None else _pressed(mechanism, contact, part, t, s, v_rel[c])
            normal = part.normal(press if contact.face is None else mode[contact.face] * press)
        directions.append(jnp.where(mode[c] == FREE, 0, mode[c]))
        normals.append(normal)
        scales.append(part.scale(normal))
    accelerations = [g[2] if g else None for g in given]
    return Moment(
        mechanism, layout, t, mode, q, u, s, v, bodies, accelerations, drive, driven, load, rows, v_rel, directions, pieces, normals,
        scales, sides, elements, temperature,
    )  # fmt: skip


def _given(mechanism: Any, layout: Layout, t: Array, numbered: list[tuple[Any, Array]]) -> list[tuple[Array, Array, Array] | None]:
    """What motions add to the position, velocity and acceleration of each body; None where nothing."""
    added: list[Any] = [None] * len(layout.bodies)
    one = jnp.ones_like(t)
    for _, body, j in layout.motions:
        signal, k = numbered[j]

        def at(t: Array, signal: Any = signal, k: Array = k) -> tuple[Array, Array]:
            return jax.jvp(lambda t: signal.on_piece(t, k), (t,), (one,))

        (s, v), (_, a) = jax.jvp(at, (t,), (one,))
        added[body] = (s, v, a)
    for gear in layout.gears:
        *others, last = zip(gear.bodies, mechanism.parts[gear.part].factors(), strict=True)
        parts = [(added[body], -factor / last[1]) for body, factor in others if added[body] is not None]
        if parts:
            added[last[0]] = tuple(sum(factor * values[k] for values, factor in parts) for k in range(3))
    return added


def _placed(bodies: list[Form], values: list[Array], given: list[Any], t: Array) -> list[Array]:
    by_coordinates, zero = [product(form, dict(enumerate(values))) for form in bodies], jnp.zeros_like(t)
    both = zip(by_coordinates, given, strict=True)
    return [by if g is None and by is not None else (zero if by is None else by) + (0.0 if g is None else g) for by, g in both]


def _pressed(mechanism: Any, contact: Contact, part: Any, t: Array, s: list[Array], v_rel: Array) -> Array:
    """What the motion makes of the normal force of a contact, over fn_max."""
    at = position(mechanism, contact.flange, s)
    return part.f_normalized.in_motion(t, at if contact.support is None else at - position(mechanism, contact.support, s), v_rel)


def _stretch(mechanism: Any, a: Flange, b: Flange, s: list[Array], v: list[Array], t: Array) -> tuple[Array, Array]:
    return position(mechanism, b, s) - position(mechanism, a, s), velocity(b, v, t) - velocity(a, v, t)


def stretch(now: Moment, k: int) -> tuple[Array, Array]:
    """Extension [m] of compliant number k and its rate [m/s]."""
    _, a, b = now.layout.compliants[k]
    return _stretch(now.mechanism, a, b, now.s, now.v, now.t)


def forces(now: Moment, k: int) -> tuple[Array, Array]:
    """The force of compliant number k: the part that stores energy, and that which takes it out [N]."""
    return now.mechanism.parts[now.layout.compliants[k][0]].forces(*stretch(now, k), now.gap_piece(k))


def position(mechanism: Any, flange: Flange, s: list[Array]) -> Array:
    """Position of a flange [m]."""
    if flange.body is None:
        return mechanism.parts[flange.part].s0
    return s[flange.body] + flange.side * mechanism.parts[flange.part].L / 2 if flange.side else s[flange.body]


def velocity(flange: Flange | None, v: list[Array], t: Array) -> Array:
    """Velocity of a flange [m/s]."""
    return jnp.zeros_like(t) if flange is None or flange.body is None else v[flange.body]


def _at_temperature(part: Any, T: Array) -> Any:
    """A friction element with its laws at the temperature `T` [K]."""
    laws = [name for name in part.__dataclass_fields__ if isinstance(getattr(part, name), AbstractLaw)]
    if not laws:
        return part
    new = [getattr(part, name).at_temperature(T) for name in laws]
    return eqx.tree_at(lambda p: [getattr(p, name) for name in laws], part, new)
