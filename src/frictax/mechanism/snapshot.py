"""The forces and accelerations of a mechanism at one moment, in given modes."""

from functools import cached_property
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from frictax.contacts.contact import f0, law_value
from frictax.contacts.mode import STUCK
from frictax.parameters.arrays import larger, least

from .layout import Contact, Form, Layout
from .sparse import Sparse, product, scaled, solved, spanned

_LEAST_SHARE = 1e-4  # of the greatest in its group
# Of the acceleration by a unit force: a contact that moves less is held by the others. True ones
# are above the ratio of the least to the sum of all masses.
_HELD = 1e-11


class Snapshot:
    """A mechanism at one time: lists over its coordinates, bodies, signals, sources and contacts,
    all scalars.

    - `mode`: as it is numbered in the layout. `q`, `u`: coordinates and their rates. `s`, `v`: of
      all bodies; `forms`: these as linear forms in the coordinates; `given`: acceleration of a body
      that motions give it, None where there is none.
    - `drive`: values of the signals; `driven`: the part of a source's force that has no
      potential.
    - `load`: the sum of the forces on a body but for friction [N].
    - `contact_jacobian`: the motions of the contacts as linear forms; `v_rel`: their velocities;
      `direction`: 1, -1, or 0 for one that does not slide; `piece` of the law; `normal`: normal
      force [N] or None; `scale`: the factor on the law; `side`: which of two lines the friction is
      on that depends on a torque, 1 or -1, None elsewhere; `elements`: the friction elements, their
      laws at their temperatures.
    - `temperature`: of the thermal nodes [K].
    - of the contacts with a bristle, which are in `load`: `bristle_elements`, `bristle_force` in
      them [N], `bristle_rate` [N/s], `bristle_v` [m/s], `bristle_friction` [N], `bristle_stores`
      [W], `bristle_energy` [J], `bristle_press` and `bristle_normal` [N] of those that are pressed
      on; `element_modes`, `element_slip`, `element_force` [N] of those with elements, which have n
      forces each.
    """

    # whether the jacobian of the contacts is a function of the position, and may vanish
    levers_vary = False
    # whether a run from rest begins with stuck contacts, which a load may release at once
    begins_stuck = False

    mechanism: Any
    layout: Layout
    t: Array
    mode: list[Array]
    q: list[Array]
    u: list[Array]
    s: list[Array]
    v: list[Array]
    forms: list[Form]
    given: list[Any]
    drive: list[Array]
    driven: list[Array]
    load: list[Array]
    contact_jacobian: list[Form]
    v_rel: list[Array]
    direction: list[Array]
    piece: list[Any]
    normal: list[Any]
    scale: list[Any]
    side: list[Any]
    elements: list[Any]
    turning: Any
    temperature: list[Array]
    bristle_elements: list[Any]
    bristle_force: list[Array]
    bristle_v: list[Array]
    bristle_rate: list[Array]
    bristle_friction: list[Array]
    bristle_stores: list[Array]
    bristle_energy: list[Array]
    bristle_press: list[Any]
    bristle_normal: list[Any]
    bristle_scale: list[Any]
    element_modes: list[Any]
    element_slip: list[Any]
    element_force: list[Any]

    @cached_property
    def zero(self) -> Array:
        return jnp.zeros_like(self.t)

    # -- bodies

    @cached_property
    def inertias(self) -> list[Array]:
        """Masses [kg] and moments of inertia [kg.m2] of the bodies."""
        return [self.mechanism.parts[i].inertia() for i in self.layout.bodies]

    @cached_property
    def mass_matrix(self) -> dict[int, Sparse]:
        """The inertia that each coordinate feels."""
        rows: dict[int, Sparse] = {i: {} for i in range(len(self.q))}
        for m, form in zip(self.inertias, self.forms, strict=True):
            for i, x in form.items():
                for j, y in form.items():
                    term = scaled(scaled(x, y), m)
                    rows[i][j] = rows[i][j] + term if j in rows[i] else term
        return rows

    def accelerations_by(self, force: Sparse) -> Sparse:
        """The accelerations of the coordinates by forces along them."""
        if all(len(row) == 1 for row in self.mass_matrix.values()):
            return {i: f / self.mass_matrix[i][i] for i, f in force.items()}
        return solved(self.mass_matrix, [force])[0]

    @cached_property
    def coordinate_force(self) -> list[Array]:
        """The force along each coordinate but for friction."""
        total: Sparse = {}
        for m, load, form, given in zip(
            self.inertias, self.load, self.forms, self.given, strict=True
        ):
            force = load if given is None else load - m * given
            for i, x in form.items():
                total[i] = total[i] + scaled(x, force) if i in total else scaled(x, force)
        return [total[i] for i in range(len(self.q))]

    @cached_property
    def free_acceleration(self) -> Sparse:
        """The accelerations of the coordinates were there no friction."""
        return self.accelerations_by(dict(enumerate(self.coordinate_force)))

    # -- contacts

    def contact(self, c: int) -> Contact:
        """Where contact c stands."""
        return self.layout.contacts[c]

    def gap_piece(self, k: int) -> Array:
        """The piece that compliant number k is on; 0 where it has but one."""
        gaps = self.layout.gaps
        return self.mode[self.layout.first_gap + gaps.index(k)] if k in gaps else jnp.asarray(0)

    def part(self, c: int) -> Any:
        """The part that contact c is."""
        return self.elements[c]

    def position_of(self, c: int) -> Array:
        """The position of the first body of contact c."""
        body = self.contact(c).flange.body
        assert body is not None
        return self.s[body]

    def f0_max(self, c: int, direction: int) -> Array:
        """The force that breaks contact c away in `direction` [N]."""
        if self.part(c).depends_on_torque:
            return self._greater_line(c, direction, self.transmitted_torque(c))
        return self.part(c).holds(direction, self.scale[c])

    def f0(self, c: int, direction: int) -> Array:
        """The friction of contact c when it begins to slide in `direction`, as a size [N]."""
        return (
            self.f0_max(c, direction)
            if self.part(c).depends_on_torque
            else f0(self.part(c), direction, self.scale[c])
        )

    def _greater_line(self, c: int, direction: int, torque: Array) -> Array:
        lines = self.part(c).lines(self.zero, None)
        first, second = (direction * k * torque + d for k, d in lines)
        return larger(first, second)

    def transmitted(self, c: int) -> tuple[Array, Sparse]:
        """The torque that the first body of contact c hands on to it: a constant, and the part of
        each contact's force.
        """
        contact = self.contact(c)
        body = contact.flange.body
        assert body is not None
        m = self.inertias[body]
        by = {d: m * g for d, g in self.delassus[c].items()}
        for d, other in enumerate(self.layout.contacts):
            for end, sign in other.ends:
                if d != c and end == body:
                    by[d] = by[d] - sign
        return self.load[body] - m * self.relative_acceleration(c, self.free_acceleration), by

    def transmitted_torque(self, c: int) -> Array:
        """That torque [N.m]."""
        return sum(self._torques(c), self.zero)

    def transmitted_size(self, c: int) -> Array:
        """The sum of the sizes of what makes that torque [N.m]."""
        return sum((jnp.abs(torque) for torque in self._torques(c)), self.zero)

    def _torques(self, c: int) -> list[Any]:
        torque, by = self.transmitted(c)
        return [torque, *(b * self.friction[d] for d, b in by.items())]

    def _lines(self, c: int) -> Any:
        return self.part(c).lines(self.direction[c] * self.v_rel[c], self.piece[c])

    def line(self, c: int) -> tuple[Array, Array]:
        """The line (k, d) that the friction of a contact with a torque is on while it slides."""
        m, ((k1, d1), (k2, d2)) = self.direction[c], self._lines(c)
        # Backward the first line is that of the torque's other sign.
        first = m * self.side[c] > 0
        return jnp.where(first, k1, k2), m * jnp.where(first, d1, d2)

    def side_margin(self, c: int) -> Array:
        """How much greater the friction is than it would be on its other line, negative on the
        wrong one [N.m].
        """
        m, ((k1, d1), (k2, d2)) = self.direction[c], self._lines(c)
        torque = m * self.transmitted_torque(c)
        # Two parallel lines change places where the torque changes its sign.
        ahead = jnp.where(k1 == k2, torque - 0.5 * d1, (k1 - k2) * torque + d1 - d2)
        return m * self.side[c] * ahead

    def share(self, c: int) -> Array:
        """In proportion to what contact c bears part of a load that others bear as well [N]."""
        if self.part(c).depends_on_torque:
            body = self.contact(c).flange.body  # what others take of its load is not known yet
            assert body is not None
            return self._greater_line(c, 1, self.load[body]) + self._greater_line(
                c, -1, self.load[body]
            )
        return (
            self.f0_max(c, 1)
            if self.part(c).blocks_backward
            else self.f0_max(c, 1) + self.f0_max(c, -1)
        )

    def shares(self, group: tuple[int, ...]) -> list[Array]:
        """The shares of a group relative to its greatest, none of them 0."""
        sizes = [self.share(c) for c in group]
        most = -least(-jnp.stack(sizes)) + jnp.finfo(self.t.dtype).tiny
        return [larger(size / most, _LEAST_SHARE) for size in sizes]

    def sliding(self, c: int) -> Array:
        """The friction of contact c while it slides; 0 where it is stuck or free."""
        m, part = self.direction[c], self.part(c)
        if part.depends_on_torque:
            return self.friction[c]
        return m * law_value(part, m, m * self.v_rel[c], self.piece[c]) * self.scale[c]

    def given_acceleration(self, c: int) -> Any:
        """The relative acceleration that motions give contact c; None where there is none."""
        terms = [
            scaled(sign, self.given[body])
            for body, sign in self.contact(c).ends
            if self.given[body] is not None
        ]
        return sum(terms[1:], terms[0]) if terms else None

    def relative_acceleration(self, c: int, a: Sparse) -> Array:
        """The relative acceleration of contact c where the coordinates have the
        accelerations `a`.
        """
        along, drift = product(self.contact_jacobian[c], a), self.given_acceleration(c)
        along = self.zero if along is None else along
        return along if drift is None else along + drift

    @cached_property
    def delassus(self) -> dict[int, Sparse]:
        """Relative accelerations of the contacts by forces at the contacts, as far as one reaches
        the other.
        """
        rows: dict[int, Sparse] = {}
        for c, row in enumerate(self.contact_jacobian):
            by = self.accelerations_by(row)
            rows[c] = {
                d: g
                for d in self.contact(c).group
                if (g := product(self.contact_jacobian[d], by)) is not None
            }
        return rows

    def turning_at(self, u: list[Array]) -> Any:
        """The accelerations of the contacts that the turn of their levers makes of the rates `u`.

        Where the jacobian is constant there are none.
        """
        return [self.zero] * len(self.contact_jacobian)

    def has_lever(self, c: int) -> Array:
        """Whether a force at contact c moves anything along it.

        It does not where both bodies always turn alike, or at a dead centre.
        """
        least = jnp.finfo(self.t.dtype).tiny ** 0.5  # far below all squares of levers over masses
        return self.delassus[c].get(c, self.zero) > least

    @cached_property
    def is_held(self) -> list[Any]:
        """Whether contacts that are stuck hold the motion of each contact; None where none can."""
        found: list[Any] = [None] * len(self.contact_jacobian)
        for group in self.layout.groups:
            # A motion that is given moves the one against what the others hold.
            is_moved = any(self.given_acceleration(c) is not None for c in group)
            if is_moved or not self.contact(group[0]).redundant:
                continue
            rows = {c: dict(self.delassus[c]) for c in group}
            own = {c: rows[c][c] for c in group}
            # Eliminate the stuck ones. Nothing remains of a motion that they hold.
            for p in group:
                is_pivot = (self.mode[p] == STUCK) & (rows[p][p] > _HELD * own[p])
                pivot = jnp.where(is_pivot, rows[p][p], 1.0)
                for c in group:
                    if c == p or p not in rows[c]:
                        continue
                    factor = jnp.where(is_pivot, rows[c][p] / pivot, 0.0)
                    for d, x in rows[p].items():
                        rows[c][d] = rows[c].get(d, 0.0) - factor * x
            for c in group:
                found[c] = (self.mode[c] != STUCK) & (own[c] > 0) & (rows[c][c] <= _HELD * own[c])
        return found

    def contact_forces(
        self,
        group: tuple[int, ...],
        which: list[Any],
        aims: list[Array],
        others: list[Array],
        lines: dict[int, Array] | None = None,
    ) -> list[Array]:
        """Forces at the contacts of `group`: where `which`, those of which the relative
        accelerations by all sum to `aims`; else `others`.

        A contact without a lever holds nothing, and bears its part of `others`.
        To `others` of a contact in `lines` comes that factor times what the forces make of the
        torque that it bears. Contacts that hold the same motion share it in proportion to their
        capacity.
        """
        lines = lines or {}
        if not self.contact(group[0]).alone:
            which = [hold & self.has_lever(c) for c, hold in zip(group, which, strict=True)]
        rows = {}
        for c, hold in zip(group, which, strict=True):
            own: Sparse = {c: 1.0}
            if c in lines:
                own = {
                    d: (1.0 if c == d else 0.0) - lines[c] * b
                    for d, b in self.transmitted(c)[1].items()
                }
            rows[c] = {d: jnp.where(hold, g, own.get(d, 0.0)) for d, g in self.delassus[c].items()}
        right = {
            c: jnp.where(hold, aim, other)
            for c, hold, aim, other in zip(group, which, aims, others, strict=True)
        }
        if not self.contact(group[0]).redundant:
            return list(solved(rows, [right])[0].values())
        # Of all solutions the one of least sum(force^2/share) of those that hold: their forces = W
        # G z, W = diag(share), G their delassus. What of z the singular G leaves open, G takes to
        # 0.
        weighed = dict(zip(group, self.shares(group), strict=True))
        held = dict(zip(group, which, strict=True))
        slanted = {}
        for c in group:
            slanted[c] = {
                d: jnp.where(
                    held[c], jnp.where(held[d], g * weighed[d], 0.0), 1.0 if c == d else 0.0
                )
                for d, g in self.delassus[c].items()
            }
        return list(spanned(rows, right, slanted, self.zero).values())

    @cached_property
    def friction(self) -> list[Array]:
        """Force [N] of each contact, positive against positive velocity; while stuck,
        what holds.
        """
        found: list[Any] = [None] * len(self.contact_jacobian)
        for group in self.layout.groups:
            stuck, sliding, lines = [self.mode[c] == STUCK for c in group], [], {}
            for c in group:
                if self.part(c).depends_on_torque:
                    lines[c], beside = self.line(c)
                    sliding.append(beside + lines[c] * self.transmitted(c)[0])
                else:
                    sliding.append(self.sliding(c))
            if self.contact(group[0]).alone:
                found[group[0]] = jnp.where(stuck[0], self.held_force(group[0]), sliding[0])
                continue
            aims = [self.relative_acceleration(c, self.free_acceleration) for c in group]
            for c, force in zip(
                group, self.contact_forces(group, stuck, aims, sliding, lines), strict=True
            ):
                found[c] = force
        return found

    def held_force(self, c: int) -> Array:
        """What contact c bears where it is stuck [N]; of a contact that alone holds its coordinate,
        without looking at how it slides.
        """
        if not self.contact(c).alone:
            return self.friction[c]
        (i,), drift = self.contact_jacobian[c], self.given_acceleration(c)
        return (
            self.coordinate_force[i]
            if drift is None
            else self.coordinate_force[i] + self.mass_matrix[i][i] * drift
        )

    @cached_property
    def coordinate_acceleration(self) -> list[Array]:
        """The accelerations of the coordinates; of one that a contact holds by itself exactly what
        that asks for.
        """
        total: Sparse = dict(enumerate(self.coordinate_force))
        for row, f in zip(self.contact_jacobian, self.friction, strict=True):
            for i, x in row.items():
                total[i] = total[i] - scaled(x, f)
        a = self.accelerations_by(total)
        for c, contact in enumerate(self.layout.contacts):
            if contact.alone:
                (i,), drift = self.contact_jacobian[c], self.given_acceleration(c)
                a[i] = jnp.where(self.mode[c] == STUCK, 0.0 if drift is None else -drift, a[i])
        return [a[i] for i in range(len(self.q))]

    @cached_property
    def accelerations(self) -> list[Array]:
        """Those of the bodies."""
        a = dict(enumerate(self.coordinate_acceleration))
        by_coordinates = [product(form, a) for form in self.forms]
        return [
            (self.zero if by is None else by) + (0.0 if given is None else given)
            for by, given in zip(by_coordinates, self.given, strict=True)
        ]

    @cached_property
    def a_rel(self) -> list[Array]:
        """The relative accelerations of the contacts."""
        a = dict(enumerate(self.coordinate_acceleration))
        return [self.relative_acceleration(c, a) for c in range(len(self.contact_jacobian))]
