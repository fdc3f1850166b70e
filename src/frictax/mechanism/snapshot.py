"""Forces and accelerations of a machine at one time, for given modes of its contacts.

`Snapshot` contains the equations of motion with friction. `MachineSnapshot` (dynamics.py) supplies
the loads of a `Mechanism`, and `_LinkageSnapshot` (user_machines.py) those of a user's machine.
"""

from functools import cached_property
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from frictax.contacts.contact import f0, law_value
from frictax.contacts.mode import STUCK
from frictax.parameters.arrays import larger, least

from .layout import Contact, Layout
from .sparse import SparseRow, dot, scale, solve_in_span, solve_sparse


class Snapshot:
    """The forces and accelerations of a machine at one time. Most attributes are lists with a
    scalar for each coordinate, each body or each contact.

    - `mode`: the mode vector, numbered as in the layout. `q`, `u`: coordinates and their rates.
    - For each body: position `s` and velocity `v`. `body_rows`: coefficients of the position as a
      linear function of the coordinates. `given`: acceleration by prescribed motions, or None.
      `load`: sum of all forces on the body except friction [N].
    - For each contact: relative velocity `v_rel`, and the derivatives `contact_jacobian` of this
      velocity with respect to the coordinate rates. `direction`: 1, -1, or 0 for a contact that
      does not slide. `piece`: active segment of the friction law. `normal`: normal force [N] or
      None. `scale`: factor on the law, such as cgeo*fn. `side`: active line (1 or -1) of a friction
      that depends on a torque, else None. `elements`: friction element, with its law at the present
      temperature.
    """

    # Whether the Jacobian (levers) of the contacts depends on the position and may become 0.
    levers_vary = False
    # Whether a load may release a stuck contact at the start of a run.
    begins_stuck = False

    mechanism: Any
    layout: Layout
    t: Array
    mode: list[Array]
    q: list[Array]
    u: list[Array]
    s: list[Array]
    v: list[Array]
    body_rows: list[SparseRow]
    given: list[Any]
    load: list[Array]
    contact_jacobian: list[SparseRow]
    v_rel: list[Array]
    direction: list[Array]
    piece: list[Any]
    normal: list[Any]
    scale: list[Any]
    side: list[Any]
    elements: list[Any]
    turning: Any

    @cached_property
    def zero(self) -> Array:
        return jnp.zeros_like(self.t)

    # The following properties describe the bodies.

    @cached_property
    def inertias(self) -> list[Array]:
        """Mass [kg] or moment of inertia [kg.m2] of each body."""
        return [self.mechanism.parts[i].inertia() for i in self.layout.bodies]

    @cached_property
    def mass_matrix(self) -> dict[int, SparseRow]:
        """The mass matrix of the coordinates."""
        rows: dict[int, SparseRow] = {i: {} for i in range(len(self.q))}
        for m, form in zip(self.inertias, self.body_rows, strict=True):
            for i, x in form.items():
                for j, y in form.items():
                    term = scale(scale(x, y), m)
                    rows[i][j] = rows[i][j] + term if j in rows[i] else term
        return rows

    def accelerations_by(self, force: SparseRow) -> SparseRow:
        """Return the coordinate accelerations that the generalized force `force` causes."""
        if all(len(row) == 1 for row in self.mass_matrix.values()):
            return {i: f / self.mass_matrix[i][i] for i, f in force.items()}
        return solve_sparse(self.mass_matrix, [force])[0]

    @cached_property
    def coordinate_force(self) -> list[Array]:
        """The sum of all forces except friction along each coordinate."""
        total: SparseRow = {}
        for m, load, form, given in zip(
            self.inertias, self.load, self.body_rows, self.given, strict=True
        ):
            force = load if given is None else load - m * given
            for i, x in form.items():
                total[i] = total[i] + scale(x, force) if i in total else scale(x, force)
        return [total[i] for i in range(len(self.q))]

    @cached_property
    def free_acceleration(self) -> SparseRow:
        """The accelerations of the coordinates without friction."""
        return self.accelerations_by(dict(enumerate(self.coordinate_force)))

    # The following methods and properties describe the contacts.

    def contact(self, c: int) -> Contact:
        """Return the `Contact` number c of the layout."""
        return self.layout.contacts[c]

    def gap_piece(self, k: int) -> Array:
        """Return the active segment of the force law of gap k; 0 if k is a spring or damper."""
        gaps = self.layout.gaps
        return self.mode[self.layout.first_gap + gaps.index(k)] if k in gaps else jnp.asarray(0)

    def part(self, c: int) -> Any:
        """Return the friction element (part) of contact c."""
        return self.elements[c]

    def position_of(self, c: int) -> Array:
        """Return the position of the first body of contact c."""
        body = self.contact(c).flange.body
        assert body is not None
        return self.s[body]

    def f0_max(self, c: int, direction: int) -> Array:
        """Return the breakaway force of contact c in `direction` [N]."""
        if self.part(c).depends_on_torque:
            return self._greater_line(c, direction, self.transmitted_torque(c))
        return self.part(c).holds(direction, self.scale[c])

    def f0(self, c: int, direction: int) -> Array:
        """Return the sliding friction of contact c at zero speed in `direction`, >= 0 [N]."""
        if self.part(c).depends_on_torque:
            return self.f0_max(c, direction)
        return f0(self.part(c), direction, self.scale[c])

    def _greater_line(self, c: int, direction: int, torque: Array) -> Array:
        lines = self.part(c).lines(self.zero, None)
        first, second = (direction * k * torque + d for k, d in lines)
        return larger(first, second)

    def torque_terms(self, c: int) -> tuple[Array, SparseRow]:
        """Return the torque that the first body of contact c transmits, as a linear function of all
        contact forces. The results are the constant term and a dict: contact -> coefficient.
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
        """Return the torque that the first body of contact c transmits [N.m]."""
        return sum(self._torques(c), self.zero)

    def transmitted_size(self, c: int) -> Array:
        """Return the sum of the absolute values of all terms of the transmitted torque [N.m]."""
        return sum((jnp.abs(torque) for torque in self._torques(c)), self.zero)

    def _torques(self, c: int) -> list[Any]:
        torque, by = self.torque_terms(c)
        return [torque, *(b * self.friction[d] for d, b in by.items())]

    def _lines(self, c: int) -> Any:
        return self.part(c).lines(self.direction[c] * self.v_rel[c], self.piece[c])

    def line(self, c: int) -> tuple[Array, Array]:
        """Return (k, d) for the active line of sliding contact c: friction = k*torque + d."""
        m, ((k1, d1), (k2, d2)) = self.direction[c], self._lines(c)
        # For backward motion the first line belongs to the opposite sign of the torque.
        first = m * self.side[c] > 0
        return jnp.where(first, k1, k2), m * jnp.where(first, d1, d2)

    def side_margin(self, c: int) -> Array:
        """Return the event function for the active line of contact c [N.m], the difference between
        the frictions of both lines. The difference is negative if the wrong line is active.
        """
        m, ((k1, d1), (k2, d2)) = self.direction[c], self._lines(c)
        torque = m * self.transmitted_torque(c)
        # Two parallel lines do not intersect. The friction changes from one line to the other at
        # half of the friction d1.
        ahead = jnp.where(k1 == k2, torque - 0.5 * d1, (k1 - k2) * torque + d1 - d2)
        return m * self.side[c] * ahead

    def share(self, c: int) -> Array:
        """Return the capacity of contact c [N]: the sum of its holding forces in both directions
        (for a freewheel only the forward one). Redundant contacts share a load in proportion to
        their capacities.
        """
        if self.part(c).depends_on_torque:
            # The torque contains only the load of the body, because the friction of other contacts
            # is computed later.
            body = self.contact(c).flange.body
            assert body is not None
            return self._greater_line(c, 1, self.load[body]) + self._greater_line(
                c, -1, self.load[body]
            )
        if self.part(c).blocks_backward:
            return self.f0_max(c, 1)
        return self.f0_max(c, 1) + self.f0_max(c, -1)

    def shares(self, group: tuple[int, ...]) -> list[Array]:
        """Return the capacities of a group of contacts over the largest capacity, at least 1e-4."""
        sizes = [self.share(c) for c in group]
        most = -least(-jnp.stack(sizes)) + jnp.finfo(self.t.dtype).tiny
        return [larger(size / most, 1e-4) for size in sizes]

    def sliding(self, c: int) -> Array:
        """Return the friction of contact c while it slides; 0 if it is stuck or free."""
        m, part = self.direction[c], self.part(c)
        if part.depends_on_torque:
            return self.friction[c]
        return m * law_value(part, m, m * self.v_rel[c], self.piece[c]) * self.scale[c]

    def given_acceleration(self, c: int) -> Any:
        """Return the part of the relative acceleration of contact c that prescribed motions cause;
        None if prescribed motions do not move this contact.
        """
        terms = [
            scale(sign, self.given[body])
            for body, sign in self.contact(c).ends
            if self.given[body] is not None
        ]
        return sum(terms[1:], terms[0]) if terms else None

    def relative_acceleration(self, c: int, a: SparseRow) -> Array:
        """Return the relative acceleration of contact c for coordinate accelerations `a`."""
        along, drift = dot(self.contact_jacobian[c], a), self.given_acceleration(c)
        along = self.zero if along is None else along
        return along if drift is None else along + drift

    @cached_property
    def delassus(self) -> dict[int, SparseRow]:
        """The Delassus matrix as a dict of rows. Entry (c, d) is the relative acceleration of
        contact c that a unit force at contact d of the same group causes.
        """
        rows: dict[int, SparseRow] = {}
        for c, row in enumerate(self.contact_jacobian):
            by = self.accelerations_by(row)
            rows[c] = {
                d: g
                for d in self.contact(c).group
                if (g := dot(self.contact_jacobian[d], by)) is not None
            }
        return rows

    def turning_at(self, u: list[Array]) -> Any:
        """Return the contact accelerations dJ/dt u; 0 for a constant Jacobian J of the contacts."""
        return [self.zero] * len(self.contact_jacobian)

    def has_lever(self, c: int) -> Array:
        """Return whether contact c has a lever: a force at the contact accelerates the contact.

        A contact does not have a lever if its two bodies always move together, or at a dead centre.
        """
        # A contact has a lever if a unit force causes an acceleration lever^2/mass above `least`.
        least = jnp.finfo(self.t.dtype).tiny ** 0.5
        return self.delassus[c].get(c, self.zero) > least

    @cached_property
    def is_held(self) -> list[Any]:
        """For each contact, whether it is not stuck, but stuck contacts prevent its motion; None
        for a contact that other contacts can never hold.
        """
        # Fixing the stuck contacts reduces the acceleration of a contact by a unit force. If the
        # ratio of the accelerations after and before is below `held`, the stuck contacts hold this
        # contact. Otherwise the ratio exceeds the smallest mass divided by the sum of all masses.
        held = 1e-11
        found: list[Any] = [None] * len(self.contact_jacobian)
        for group in self.layout.groups:
            # A prescribed motion can move a contact even if other contacts are stuck.
            is_moved = any(self.given_acceleration(c) is not None for c in group)
            if is_moved or not self.contact(group[0]).redundant:
                continue
            rows = {c: dict(self.delassus[c]) for c in group}
            own = {c: rows[c][c] for c in group}
            # Eliminate the stuck contacts by Gaussian elimination. If stuck contacts hold the
            # motion of another contact, the pivot of that contact becomes 0.
            for p in group:
                is_pivot = (self.mode[p] == STUCK) & (rows[p][p] > held * own[p])
                pivot = jnp.where(is_pivot, rows[p][p], 1.0)
                for c in group:
                    if c == p or p not in rows[c]:
                        continue
                    factor = jnp.where(is_pivot, rows[c][p] / pivot, 0.0)
                    for d, x in rows[p].items():
                        rows[c][d] = rows[c].get(d, 0.0) - factor * x
            for c in group:
                found[c] = (self.mode[c] != STUCK) & (own[c] > 0) & (rows[c][c] <= held * own[c])
        return found

    def contact_forces(
        self,
        group: tuple[int, ...],
        which: list[Any],
        aims: list[Array],
        others: list[Array],
        lines: dict[int, Array] | None = None,
    ) -> list[Array]:
        """Return the forces at the contacts of `group`.

        If the flag of a contact in `which` is True, its force cancels its relative acceleration in
        `aims`. The force of any other contact, and of a contact without a lever, is its entry in
        `others`. If `lines` contains a factor for a contact, this factor times the torque caused by
        all contact forces is added. Contacts that hold the same motion share the load in proportion
        to their capacities.
        """
        lines = lines or {}
        if not self.contact(group[0]).alone:
            which = [hold & self.has_lever(c) for c, hold in zip(group, which, strict=True)]
        rows = {}
        for c, hold in zip(group, which, strict=True):
            own: SparseRow = {c: 1.0}
            if c in lines:
                own = {
                    d: (1.0 if c == d else 0.0) - lines[c] * b
                    for d, b in self.torque_terms(c)[1].items()
                }
            rows[c] = {d: jnp.where(hold, g, own.get(d, 0.0)) for d, g in self.delassus[c].items()}
        right = {
            c: jnp.where(hold, aim, other)
            for c, hold, aim, other in zip(group, which, aims, others, strict=True)
        }
        if not self.contact(group[0]).redundant:
            return list(solve_sparse(rows, [right])[0].values())
        # Several solutions exist. The solution with the smallest sum of force^2/share has the form
        # W G z with W = diag(share), the Delassus matrix G of the holding contacts, and a vector z.
        # If G is singular, z is not unique, but G z is unique.
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
        return list(solve_in_span(rows, right, slanted, self.zero).values())

    @cached_property
    def friction(self) -> list[Array]:
        """Friction [N] of each contact, positive if it opposes forward motion. The friction of a
        stuck contact is the holding force.
        """
        found: list[Any] = [None] * len(self.contact_jacobian)
        for group in self.layout.groups:
            stuck, sliding, lines = [self.mode[c] == STUCK for c in group], [], {}
            for c in group:
                if self.part(c).depends_on_torque:
                    lines[c], beside = self.line(c)
                    sliding.append(beside + lines[c] * self.torque_terms(c)[0])
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
        """Return the force [N] that holds contact c if it is stuck."""
        if not self.contact(c).alone:
            return self.friction[c]
        (i,), drift = self.contact_jacobian[c], self.given_acceleration(c)
        force = self.coordinate_force[i]
        return force if drift is None else force + self.mass_matrix[i][i] * drift

    @cached_property
    def coordinate_acceleration(self) -> list[Array]:
        """The accelerations of the coordinates. If a stuck contact is `alone` on a coordinate, the
        acceleration of this coordinate is set exactly, without rounding error."""
        total: SparseRow = dict(enumerate(self.coordinate_force))
        for row, f in zip(self.contact_jacobian, self.friction, strict=True):
            for i, x in row.items():
                total[i] = total[i] - scale(x, f)
        a = self.accelerations_by(total)
        for c, contact in enumerate(self.layout.contacts):
            if contact.alone:
                (i,), drift = self.contact_jacobian[c], self.given_acceleration(c)
                a[i] = jnp.where(self.mode[c] == STUCK, 0.0 if drift is None else -drift, a[i])
        return [a[i] for i in range(len(self.q))]

    @cached_property
    def accelerations(self) -> list[Array]:
        """The accelerations of the bodies."""
        a = dict(enumerate(self.coordinate_acceleration))
        by_coordinates = [dot(form, a) for form in self.body_rows]
        return [
            (self.zero if by is None else by) + (0.0 if given is None else given)
            for by, given in zip(by_coordinates, self.given, strict=True)
        ]

    @cached_property
    def a_rel(self) -> list[Array]:
        """The relative accelerations of the contacts."""
        a = dict(enumerate(self.coordinate_acceleration))
        return [self.relative_acceleration(c, a) for c in range(len(self.contact_jacobian))]
