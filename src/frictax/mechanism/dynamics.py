"""`MachineSnapshot`: signals, positions, loads and bristles of a mechanism at one time."""

import dataclasses
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.contacts.mode import FREE
from frictax.contacts.rubbing import bristle_damping, bristle_law, element_law
from frictax.laws import AbstractLaw

from .layout import Contact, Flange, Layout, body_rows, contact_row, signal_of
from .snapshot import Snapshot
from .sparse import SparseRow, dot, scale


@dataclasses.dataclass(frozen=True)
class MachineSnapshot(Snapshot):
    """A mechanism at time `t`, in the state `y` and with the mode vector `numbers`.

    Each attribute is computed at its first use. In addition to the attributes of `Snapshot`:

    - `imposed`: None, or two lists over the contacts with a bristle: friction [N] and stored power
      [W]. The lists replace the values that are otherwise computed from the state.
    - `drive`: values of the signals. `driven`: for each source (external force), the part of its
      force [N] that does not have a potential energy.
    - `temperature`: temperatures of the thermal nodes [K].
    - `bristle_...`, `element_...`: lists over the contacts with a bristle. The friction of contacts
      with a bristle is part of `load`.
    """

    mechanism: Any
    layout: Layout
    t: Array
    y: Array
    numbers: Array
    imposed: Any = None

    @cached_property
    def mode(self) -> list[Array]:
        return [self.numbers[i] for i in range(self.numbers.shape[0])]

    # The following properties describe the bodies.

    @cached_property
    def q(self) -> list[Array]:
        return [self.y[i] for i in range(len(self.layout.coordinates))]

    @cached_property
    def u(self) -> list[Array]:
        n = len(self.layout.coordinates)
        return [self.y[n + i] for i in range(n)]

    @cached_property
    def body_rows(self) -> list[SparseRow]:
        return body_rows(self.layout, lambda part: self.mechanism.parts[part].factors())

    @cached_property
    def s(self) -> list[Array]:
        return _evaluate_rows(
            self.body_rows, self.q, [g[0] if g else None for g in self._given_motions], self.t
        )

    @cached_property
    def v(self) -> list[Array]:
        return _evaluate_rows(
            self.body_rows, self.u, [g[1] if g else None for g in self._given_motions], self.t
        )

    @cached_property
    def given(self) -> list[Any]:
        return [g[2] if g else None for g in self._given_motions]

    @cached_property
    def _given_motions(self) -> list[tuple[Array, Array, Array] | None]:
        return _given_motions(self.mechanism, self.layout, self.t, self._signals)

    # The following properties are the forces without friction.

    @cached_property
    def _signals(self) -> list[tuple[Any, Array]]:
        first = self.layout.first_signal
        return [
            (signal_of(self.mechanism, place), self.mode[first + j])
            for j, place in enumerate(self.layout.signals)
        ]

    @cached_property
    def drive(self) -> list[Array]:
        return [signal.on_piece(self.t, k) for signal, k in self._signals]

    @cached_property
    def driven(self) -> list[Array]:
        found = []
        for part, flange, signal in self.layout.forces:
            value = None if signal is None else self.drive[signal]
            at = position(self.mechanism, flange, self.s), velocity(flange, self.v, self.t)
            found.append(self.mechanism.parts[part].driven(value, *at))
        return found

    @cached_property
    def load(self) -> list[Array]:
        load: list[Array] = [jnp.zeros_like(self.t)] * len(self.layout.bodies)
        for k, (part, a, b) in enumerate(self.layout.compliants):
            f = sum(self.mechanism.parts[part].forces(*stretch(self, k), self.gap_piece(k)))
            for flange, sign in ((a, 1.0), (b, -1.0)):
                if flange.body is not None:
                    load[flange.body] = load[flange.body] + sign * f
        for (part, flange, _), f in zip(self.layout.forces, self.driven, strict=True):
            if flange.body is not None:
                elastic = self.mechanism.parts[part].elastic(
                    position(self.mechanism, flange, self.s)
                )
                load[flange.body] = load[flange.body] + f + elastic
        for contact, f in zip(self.layout.bristles, self.bristle_friction, strict=True):
            for body, sign in contact.ends:
                load[body] = load[body] - sign * f
        return load

    # The following properties describe the contacts.

    @cached_property
    def temperature(self) -> list[Array]:
        first = 2 * len(self.layout.coordinates)
        return [self.y[first + i] for i in range(len(self.layout.nodes))]

    @cached_property
    def elements(self) -> list[Any]:
        found = [self.mechanism.parts[contact.part] for contact in self.layout.contacts]
        for T, node in zip(self.temperature, self.layout.nodes, strict=True):
            for c in node.contacts:
                found[c] = at_temperature(found[c], T)
        return found

    @cached_property
    def contact_jacobian(self) -> list[SparseRow]:
        bodies, rows = self.body_rows, []
        for contact in self.layout.contacts:
            row = contact_row(contact, bodies)
            for i, x in row.items():
                terms = [bodies[body][i] for body, _ in contact.ends if i in bodies[body]]
                if len(terms) > 1:  # Entries of two bodies may cancel up to rounding errors.
                    size = 32 * float(jnp.finfo(jnp.asarray(x).dtype).eps) * sum(map(abs, terms))
                    row[i] = jnp.where(abs(x) > size, x, 0.0)
            rows.append(row)
        return rows

    @cached_property
    def v_rel(self) -> list[Array]:
        return [self.relative_velocity(contact) for contact in self.layout.contacts]

    def relative_velocity(self, contact: Contact) -> Array:
        moves = velocity(contact.flange, self.v, self.t)
        has_support = contact.support is not None and contact.support.body is not None
        return moves - velocity(contact.support, self.v, self.t) if has_support else moves

    @cached_property
    def direction(self) -> list[Array]:
        modes = self.mode[: len(self.layout.contacts)]
        return [jnp.where(mode == FREE, 0, mode) for mode in modes]

    @cached_property
    def piece(self) -> list[Any]:
        return [None if c.piece is None else self.mode[c.piece] for c in self.layout.contacts]

    @cached_property
    def side(self) -> list[Any]:
        return [None if c.side is None else self.mode[c.side] for c in self.layout.contacts]

    @cached_property
    def normal(self) -> list[Any]:
        return [
            self._normal(c) if contact.is_pressed else None
            for c, contact in enumerate(self.layout.contacts)
        ]

    def _normal(self, c: int) -> Array:
        contact, part = self.contact(c), self.part(c)
        press = self.press(contact, part, self.v_rel[c])
        return part.normal(press if contact.face is None else self.mode[contact.face] * press)

    def press(self, contact: Contact, part: Any, v: Array) -> Array:
        """Return the normal force of a contact divided by its fn_max."""
        if contact.signal is not None:
            return self.drive[contact.signal]
        return part.f_normalized.in_motion(self.t, contact_position(self, contact), v)

    @cached_property
    def scale(self) -> list[Any]:
        return [part.scale(normal) for part, normal in zip(self.elements, self.normal, strict=True)]

    # The following properties describe the contacts with a bristle.

    @cached_property
    def bristle_elements(self) -> list[Any]:
        """The friction elements with a bristle, with each law at the temperature of its element."""
        found = [self.mechanism.parts[contact.part] for contact in self.layout.bristles]
        for T, node in zip(self.temperature, self.layout.nodes, strict=True):
            for b in node.bristles:
                found[b] = at_temperature(found[b], T)
        return found

    @cached_property
    def bristle_force(self) -> list[Array]:
        """The force in each bristle [N], from the state: a scalar, or (n,) for n elements."""
        found, first = [], self.layout.first_bristle
        for n in self.layout.elements:
            found.append(self.y[first : first + n] if n else self.y[first])
            first += max(n, 1)
        return found

    @cached_property
    def element_modes(self) -> list[Any]:
        """For each bristle the slip directions (n,) of its elements, 0 for an element that sticks;
        None for a bristle without elements."""
        found, first = [], self.layout.first_element
        for n in self.layout.elements:
            found.append(self.numbers[first : first + n] if n else None)
            first += n
        return found

    @cached_property
    def element_slip(self) -> list[Any]:
        """For each bristle the slip direction of its slipping elements, 0 if all elements stick;
        None for a bristle without elements."""
        return [None if m is None else jnp.sign(jnp.sum(m)) for m in self.element_modes]

    @cached_property
    def bristle_press(self) -> list[Any]:
        """For each contact with a bristle: 0 while the normal force is 0, 1 if pressed, -1 if
        pressed from the opposite side; None for a part that does not have a normal force.
        """
        found, place = [], self.layout.first_press
        for contact in self.layout.bristles:
            found.append(self.numbers[place] if contact.is_pressed else None)
            place += contact.is_pressed
        return found

    @cached_property
    def bristle_normal(self) -> list[Any]:
        """The normal force fn [N] of each contact with a bristle; None for a part without fn."""
        return [
            part.normal(jnp.where(side < 0, -1.0, 1.0) * self.press(contact, part, v))
            if contact.is_pressed
            else None
            for contact, part, v, side in zip(
                self.layout.bristles,
                self.bristle_elements,
                self.bristle_v,
                self.bristle_press,
                strict=True,
            )
        ]

    @cached_property
    def bristle_scale(self) -> list[Any]:
        """The factor cgeo*fn on the forces of each bristle; None for a part without fn."""
        at = zip(self.bristle_elements, self.bristle_normal, self.bristle_press, strict=True)
        return [
            None if normal is None else jnp.where(side == 0, 0.0, part.scale(normal))
            for part, normal, side in at
        ]

    @cached_property
    def bristle_v(self) -> list[Array]:
        """The relative velocity of each contact with a bristle [m/s]."""
        return [self.relative_velocity(contact) for contact in self.layout.bristles]

    @cached_property
    def _bristle_laws(self) -> list[Any]:
        """Force limit [N], viscous slope [N.s/m] and smallest limit [N] of each bristle's law."""
        at = zip(self.bristle_elements, self.bristle_v, self.element_slip, strict=True)
        return [bristle_law(part, v) if s is None else element_law(part, v, s) for part, v, s in at]

    @cached_property
    def bristle_limits(self) -> list[Array]:
        """The limit of the force in each bristle [N] at the present velocity."""
        return [g for g, _, _ in self._bristle_laws]

    @cached_property
    def bristle_rate(self) -> list[Array]:
        """The rate of the force in each bristle [N/s]."""
        motion = self.bristle_elements, self.bristle_v, self.bristle_force
        at: Any = zip(*motion, self._bristle_laws, self.element_modes, strict=True)
        rates = [
            part.bristle.rate(v, f, g, least)
            if modes is None
            else part.bristle.rates(v, f, g, modes)
            for part, v, f, (g, _, least), modes in at
        ]
        return [
            rate if press is None else jnp.where(press == 0, 0.0, rate)
            for rate, press in zip(rates, self.bristle_press, strict=True)
        ]

    @cached_property
    def element_force(self) -> list[Any]:
        """The forces (n,) [N] of each bristle's elements; None for a bristle without elements."""
        return [
            None
            if modes is None
            else self.bristle_elements[b].bristle.element_forces(
                self.bristle_force[b], self.bristle_limits[b], modes
            )
            for b, modes in enumerate(self.element_modes)
        ]

    @cached_property
    def bristle_friction(self) -> list[Array]:
        """The friction [N] of each contact with a bristle, positive against forward motion."""
        if self.imposed is not None:
            return self.imposed[0]
        found = []
        motion = self.bristle_elements, self.bristle_v, self.bristle_force, self.bristle_rate
        at: Any = zip(*motion, self._bristle_laws, self.element_force, strict=True)
        for part, v, f, rate, (_, viscous, _), borne in at:
            if borne is not None:
                found.append(jnp.sum(borne) + viscous * v)
                continue
            damping = bristle_damping(part, v)
            found.append(f + damping * rate / part.bristle.sigma_0 + viscous * v)
        return _times_scales(found, self.bristle_scale)

    @cached_property
    def bristle_stores(self) -> list[Array]:
        """The power [W] that is stored in each bristle."""
        if self.imposed is not None:
            return self.imposed[1]
        at = zip(self.bristle_elements, self.bristle_force, self.bristle_rate, strict=True)
        found = [
            f * rate / part.bristle.sigma_0
            if part.bristle.elements == 0
            else jnp.sum(f * rate / part.bristle.k)
            for part, f, rate in at
        ]
        return _times_scales(found, self.bristle_scale)

    @cached_property
    def bristle_energy(self) -> list[Array]:
        """The energy stored in each bristle [J]."""
        at = zip(self.bristle_elements, self.bristle_force, strict=True)
        return _times_scales([part.bristle.energy(f) for part, f in at], self.bristle_scale)


def _given_motions(
    mechanism, layout: Layout, t: Array, numbered: list[tuple[Any, Array]]
) -> list[tuple[Array, Array, Array] | None]:
    """Return for each body a tuple: the parts of its position, velocity and acceleration that
    prescribed motions cause. Return None for a body that no prescribed motion moves.
    """
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
        parts = [
            (added[body], -factor / last[1]) for body, factor in others if added[body] is not None
        ]
        if parts:
            added[last[0]] = tuple(
                sum(factor * values[k] for values, factor in parts) for k in range(3)
            )
    return added


def jump_with_motions(before: MachineSnapshot, after: MachineSnapshot) -> SparseRow:
    """Return the jumps of the coordinate velocities when a prescribed motion jumps between two
    snapshots. A planetary gear passes the impulse of such a motion on to its free bodies.
    """
    impulse: SparseRow = {}
    motions = zip(before._given_motions, after._given_motions, strict=True)
    for m, form, (old, new) in zip(before.inertias, before.body_rows, motions, strict=True):
        if old is None or new is None:
            continue
        for i, x in form.items():
            impulse[i] = impulse.get(i, before.zero) - scale(x, m * (new[1] - old[1]))
    return before.accelerations_by(impulse) if impulse else {}


def _evaluate_rows(
    bodies: list[SparseRow], values: list[Array], given: list[Any], t: Array
) -> list[Array]:
    found, numbered = [], dict(enumerate(values))
    for form, g in zip(bodies, given, strict=True):
        by = dot(form, numbered)
        total = jnp.zeros_like(t) if by is None else by
        found.append(total if g is None else total + g)
    return found


def stretch(now: MachineSnapshot, k: int) -> tuple[Array, Array]:
    """Return the extension [m] of spring or damper number k, and its rate [m/s]."""
    _, a, b = now.layout.compliants[k]
    s_rel = position(now.mechanism, b, now.s) - position(now.mechanism, a, now.s)
    return s_rel, velocity(b, now.v, now.t) - velocity(a, now.v, now.t)


def extension_rounding(now: MachineSnapshot, k: int) -> Array:
    """Return the rounding error of the extension of spring or damper number k [m]."""
    _, a, b = now.layout.compliants[k]
    size = sum((jnp.abs(position(now.mechanism, flange, now.s)) for flange in (a, b)), now.zero)
    return float(jnp.finfo(now.t.dtype).eps) * (500 + 8 * jax.lax.stop_gradient(size))


def forces(now: MachineSnapshot, k: int) -> tuple[Array, Array]:
    """Return the elastic and the dissipative part of the force [N] of spring or damper number k."""
    return now.mechanism.parts[now.layout.compliants[k][0]].forces(
        *stretch(now, k), now.gap_piece(k)
    )


def position(mechanism: Any, flange: Flange, s: list[Array]) -> Array:
    """Return the position of a flange [m]."""
    if flange.body is None:
        return mechanism.parts[flange.part].s0
    if not flange.side:
        return s[flange.body]
    return s[flange.body] + flange.side * mechanism.parts[flange.part].L / 2


def contact_position(now: MachineSnapshot, contact: Contact) -> Array:
    """Return the position of a contact relative to its support [m]."""
    at = position(now.mechanism, contact.flange, now.s)
    return at if contact.support is None else at - position(now.mechanism, contact.support, now.s)


def velocity(flange: Flange | None, v: list[Array], t: Array) -> Array:
    """Return the velocity of a flange [m/s]."""
    return jnp.zeros_like(t) if flange is None or flange.body is None else v[flange.body]


def _times_scales(values: list[Array], scales: list[Any]) -> list[Array]:
    """Return each value times its scale. A scale None means 1."""
    both = zip(values, scales, strict=True)
    return [x if scale is None else scale * x for x, scale in both]


def at_temperature(part, T: Array) -> Any:
    """Return a copy of a friction element with its laws at the temperature `T` [K]."""
    names = [field.name for field in dataclasses.fields(part)]
    laws = [name for name in names if isinstance(getattr(part, name), AbstractLaw)]
    if not laws:
        return part
    new = [getattr(part, name).at_temperature(T) for name in laws]
    return eqx.tree_at(lambda p: [getattr(p, name) for name in laws], part, new)
