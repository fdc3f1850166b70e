"""Choose the mode of each contact after an event: stuck or sliding, consistent with the forces."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from frictax.contacts.contact import piece_at
from frictax.engine.system import DEADLINE

from .contact_margins import (
    BACKWARD,
    FORWARD,
    FREE,
    STUCK,
    is_sliding,
    is_unpressed,
    margin_names,
    reserves,
    velocity_rounding,
)
from .layout import Layout
from .snapshot import Snapshot
from .sparse import SparseRow, dot, scale
from .stiction import AT_LIMIT, Lines, modes_at_rest, modes_by_torque


def crossed_guards(layout: Layout, parts: Any, fired: Array) -> list[dict[str, Array]]:
    """Return for each contact a dict: name of an event function -> whether this function fell to 0.
    `fired`: the index of the event function that fell to 0."""
    events, first = [], 0
    for contact in layout.contacts:
        names = margin_names(contact, parts[contact.part])
        events.append({name: fired == first + i for i, name in enumerate(names)})
        first += len(names)
    return events


def modes_after_event(
    before: Snapshot, now: Snapshot, events: list[dict[str, Array]], fired: Array, new: list[Array]
) -> tuple[dict[int, Array], Array]:
    """Choose the modes of all contacts from the state and loads in `now`, and write the modes to
    `new`. Return a dict (contact index -> whether the contact comes to rest), and whether the modes
    are consistent with the forces. Integers and flags do not have derivatives."""
    rests, ok = {}, jnp.array(True)
    for group in now.layout.groups:
        # Contacts of a group without an event keep their modes, even if a motion begins at v = 0.
        touched = fired == DEADLINE
        for c in group:
            for event in events[c].values():
                touched = touched | event
        off = [_is_free(now, c, before.mode[c], events[c], fired) for c in group]
        at_rest = [_is_at_rest(before, now, c, events[c]) for c in group]
        # A freewheel at rest can hold a torque without a normal force, so it is not free.
        at_rest = [
            rest if now.part(c).blocks_backward else rest & ~f
            for c, f, rest in zip(group, off, at_rest, strict=True)
        ]
        off = [f & ~rest for f, rest in zip(off, at_rest, strict=True)]
        # A sudden load was already present when the run started from rest. A sudden load exceeds
        # the breakaway force of a stuck contact by more than 1e-7 of the contact's capacity. If
        # breakaway is located in time, the load exceeds this force only by a rounding error.
        is_event, sudden = fired != DEADLINE, jnp.array(False)
        for c in group if before.begins_stuck else ():
            least = jnp.minimum(*reserves(before, c)) < -1e-7 * before.share(c)
            sudden = sudden | ((before.mode[c] == STUCK) & least)
        sudden = is_event & sudden
        leaving, first, consistent = _group_modes_at_rest(before, now, group, at_rest, events)
        ok = ok & (consistent | ~touched)
        for c, free, rest, direction in zip(group, off, at_rest, leaving, strict=True):
            rests[c] = _mode_after_event(
                before, now, c, events[c], (touched, free, rest, direction, sudden), new
            )
        if now.contact(group[0]).redundant:
            # In a redundant group several contacts can hold the same motion. Stuck contacts
            # determine the velocities of other contacts, whose signs rounding may change.
            sticks = jnp.any(jnp.stack([new[c] == STUCK for c in group]))
            rests |= {
                c: rests[c] & (~sticks | (new[c] == STUCK) | _was_held(before, c)) for c in group
            }
            u = inelastic_impact(now, {c: rests[c] for c in group})
            change = {
                i: after - before for i, (before, after) in enumerate(zip(now.u, u, strict=True))
            }
            for c in group:
                v = now.v_rel[c] + dot(now.contact_jacobian[c], change)
                against = sticks & is_sliding(new[c]) & (new[c] * v < -velocity_rounding(now, c))
                new[c] = jnp.where(touched & against, -new[c], new[c])
                _write_law_piece(before, now, c, events[c], new)
        for c in group:
            if (side := now.contact(c).side) is not None:
                found = jnp.where(
                    events[c]["side"], -now.side[c], jnp.where(first[c], new[c], -new[c])
                )
                new[side] = jnp.where(touched & is_sliding(new[c]), found, now.side[c])
    return rests, ok


def bring_to_rest(now: Snapshot, y: Array, rests: dict[int, Array]) -> Array:
    """Return the state after an impact that stops the contacts whose flag in `rests` is True."""
    n = len(now.q)
    return jnp.concatenate([y[:n], jnp.stack(inelastic_impact(now, rests)), y[2 * n :]])


def inelastic_impact(now: Snapshot, which: dict[int, Array]) -> list[Array]:
    """Return the rates of the coordinates after an inelastic impact. The impact stops each contact
    whose flag in `which` is True.
    """
    u = dict(enumerate(now.u))
    for group in now.layout.groups:
        here = [which.get(c, jnp.array(False)) for c in group]
        if not any(c in which for c in group):
            continue
        if now.contact(group[0]).alone:
            (i,) = now.contact_jacobian[group[0]]
            is_given = now.given_acceleration(group[0]) is not None
            stopped = now.u[i] - now.v_rel[group[0]] if is_given else 0.0
            u[i] = jnp.where(here[0], stopped, u[i])
            continue
        zeros = [now.zero] * len(group)
        impulses = now.contact_forces(group, here, [now.v_rel[c] for c in group], zeros)
        along: SparseRow = {}
        for c, p in zip(group, impulses, strict=True):
            for i, x in now.contact_jacobian[c].items():
                along[i] = along[i] - scale(x, p) if i in along else -scale(x, p)
        for i, change in now.accelerations_by(along).items():
            u[i] = u[i] + change
    return [u[i] for i in range(len(now.u))]


def _mode_after_event(
    before: Snapshot,
    now: Snapshot,
    c: int,
    event: dict[str, Array],
    found: tuple[Array, ...],
    new: list[Array],
) -> Array:
    """Write to `new` the new mode of contact c, the state of its stop and the segment of its law.
    Return whether contact c comes to rest.

    `found` contains flags for an event in the group, a free contact and a contact at rest; the mode
    at rest; and a flag for a sudden load in the group.
    """
    (touched, off, rest, direction, sudden), part, contact = found, now.part(c), now.contact(c)
    old, v = before.mode[c], now.v_rel[c]
    if (wall := contact.wall) is not None:
        off = off | (_is_frictionless(part) & rest & (direction != STUCK))
        new[wall] = jnp.where(
            touched, jnp.where(rest & (direction == STUCK), now.mode[wall], 0), new[wall]
        )
    goes_on = is_sliding(old) & (old * v > -velocity_rounding(now, c))
    moving = jnp.where(goes_on, old, jnp.where(v > 0, FORWARD, BACKWARD))
    if part.blocks_backward:
        off = off | (rest & (direction != STUCK) & _is_off_now(now, c))
    new[c] = mode = jnp.where(
        touched, jnp.where(off, FREE, jnp.where(rest, direction, moving)), old
    )
    _write_law_piece(before, now, c, event, new)
    # The velocity is not set to 0 if the contact begins to slide, or continues to slide in its
    # direction at v = 0. A velocity set to 0 loses its derivative with respect to the parameters.
    came = event["forward"] | (mode == STUCK) | (is_sliding(old) & (mode == -old))
    came = jnp.where(old == STUCK, ~(sudden & is_sliding(mode)), came)
    if now.levers_vary:
        came = came & ~(is_sliding(mode) & _is_short(now, c))
    came = came | _was_held(before, c)
    return touched & rest & ~off & came


def _group_modes_at_rest(
    before: Snapshot,
    now: Snapshot,
    group: tuple[int, ...],
    at_rest: list[Array],
    events: list[dict[str, Array]],
) -> tuple[list[Array], dict[int, Array], Array]:
    """Return the modes of the contacts of a group, a dict of active lines, and whether the modes
    are consistent with the forces.

    Contacts that are not `at_rest` continue to slide. If the friction of a contact depends on a
    torque, its entry in the dict is True if the first of its two friction lines is active.
    """
    if any(now.contact(c).side is not None for c in group):
        return _group_modes_by_torque(before, now, group, at_rest, events)
    hold, slide = _limits(before, now, group, events)
    if len(group) == 1:
        (c,) = group
        own = now.delassus[c].get(c, now.zero)
        rate = now.relative_acceleration(c, now.free_acceleration)
        load = rate / jnp.where(own > 0, own, 1.0)
        away = jnp.where(
            load > hold[1][0], FORWARD, jnp.where(load < -hold[-1][0], BACKWARD, STUCK)
        )
        if now.levers_vary:
            alone = direction_without_lever(before.mode[c], rate)
            away = jnp.where(now.has_lever(c), away, alone)
        return [_leave_by_own_margin(before, c, events[c], away)], {}, jnp.array(True)
    others = [jnp.where(rest, 0.0, now.sliding(c)) for c, rest in zip(group, at_rest, strict=True)]
    matrix, free = _equations(now, group)
    passing = None
    if now.levers_vary:
        rates = _rates(free, matrix, others)
        passing = _directions_without_hold(before, now, group, at_rest, (matrix, rates, hold))
        others = [
            jnp.where(m == 0, f, jnp.where(m > 0, slide[1][i], -slide[-1][i]))
            for i, (m, f) in enumerate(zip(passing, others, strict=True))
        ]
        at_rest = [rest & (m == 0) for rest, m in zip(at_rest, passing, strict=True)]
        # Stopping the contacts changes the rates u, and thus the term dJ/dt u of the contact
        # accelerations. Here `turning` is this term after the change.
        turning = now.turning_at(inelastic_impact(now, dict(zip(group, at_rest, strict=True))))
        free = [p - now.turning[c] + turning[c] for c, p in zip(group, free, strict=True)]
    b = _rates(free, matrix, others)
    found = modes_at_rest(
        jnp.stack([_stack(row) for row in matrix]),
        _stack(b),
        _stack_both_ways(hold),
        _stack_both_ways(slide),
        _stack(now.shares(group)),
        jnp.stack(at_rest),
    )
    modes = [found.modes[i] for i in range(len(group))]
    if passing is not None:
        modes = [jnp.where(m == 0, mode, m) for m, mode in zip(passing, modes, strict=True)]
    chosen = [
        _leave_by_own_margin(before, c, events[c], m) for c, m in zip(group, modes, strict=True)
    ]
    if now.contact(group[0]).redundant:
        # Stuck contacts may have held a contact that counted as sliding at zero speed. If this
        # contact sticks now, it takes load from the contact that broke away. Then all contacts of
        # the group get the modes in `found`.
        relieves = [
            rest & is_sliding(before.mode[c]) & (found.modes[i] == STUCK)
            for i, (c, rest) in enumerate(zip(group, at_rest, strict=True))
        ]
        chosen = [
            jnp.where(jnp.any(jnp.stack(relieves)), found.modes[i], mode)
            for i, mode in enumerate(chosen)
        ]
    return chosen, {}, found.ok


def direction_without_lever(old: Array, rate: Array) -> Array:
    """Return the sliding direction of a contact that no friction can hold: the sign of its
    acceleration `rate`.

    If `rate` is 0, return the direction before the event, or forward if the contact did not slide.
    If the result is wrong, an event corrects it when the velocity exceeds its rounding error.
    """
    moves = jnp.where(is_sliding(old), old, FORWARD)
    return jnp.where(rate > 0, FORWARD, jnp.where(rate < 0, BACKWARD, moves))


def _directions_without_hold(
    before: Snapshot,
    now: Snapshot,
    group: tuple[int, ...],
    at_rest: list[Array],
    known: tuple[Any, Any, Any],
) -> list[Array]:
    """Return the sliding direction of each contact at rest that no friction can hold; else 0.

    Friction cannot hold a contact without a lever, because no force at the contact can accelerate
    it. Friction cannot hold a contact with a very short lever if the forces of the whole group
    cannot stop the change of its velocity. This velocity passes through 0 because the lever passes
    through 0.
    """
    matrix, rates, hold = known
    most = [
        jnp.where(rest, jnp.maximum(hold[1][i], hold[-1][i]), 0.0) for i, rest in enumerate(at_rest)
    ]
    found = []
    for c, rest, row, rate in zip(group, at_rest, matrix, rates, strict=True):
        reach = sum(jnp.abs(g) * f for g, f in zip(row, most, strict=True))
        passes = ~now.has_lever(c) | (_is_short(now, c) & (jnp.abs(rate) > reach))
        found.append(jnp.where(rest & passes, direction_without_lever(before.mode[c], rate), 0))
    return found


def _is_short(now: Snapshot, c: int) -> Array:
    """Return whether the lever of contact c is very short. An impact at a very short lever changes
    a coordinate's rate by more than 10,000 rounding errors of a velocity.
    """
    along = now.accelerations_by(now.contact_jacobian[c]).values()
    most = jnp.max(jnp.stack([jnp.abs(x) for x in along])) * jnp.abs(now.v_rel[c])
    return most > 1e4 * velocity_rounding(now, c) * now.delassus[c][c]


def _rates(free: list[Array], matrix: list[list[Array]], forces: list[Array]) -> list[Array]:
    """Return the relative accelerations of the contacts under the friction forces `forces`."""
    return [
        p - sum(g * f for g, f in zip(row, forces, strict=True))
        for p, row in zip(free, matrix, strict=True)
    ]


def _group_modes_by_torque(
    before: Snapshot,
    now: Snapshot,
    group: tuple[int, ...],
    at_rest: list[Array],
    events: list[dict[str, Array]],
) -> tuple[list[Array], dict[int, Array], Array]:
    """Return the results of `_group_modes_at_rest` for a group with friction that depends on a
    torque. The force limits of this group depend on the forces of all contacts.
    """
    hold, slide = _limits(before, now, group, events)
    matrix, free = _equations(now, group)
    modes, known, rests, rows = [], [], [], []
    for i, (c, rest) in enumerate(zip(group, at_rest, strict=True)):
        gone = _leave_by_own_margin(before, c, events[c], jnp.asarray(STUCK))
        old, v = before.mode[c], now.v_rel[c]
        moves = jnp.where(
            old == FREE, 0, jnp.where(is_sliding(old), old, jnp.where(v > 0, FORWARD, BACKWARD))
        )
        modes.append(jnp.where(rest, gone, moves))
        rests.append(rest & (gone == STUCK))
        if now.contact(c).side is None:
            at_limit = jnp.where(gone == FORWARD, slide[1][i], -slide[-1][i])
            known.append(jnp.where(rest, at_limit, now.sliding(c)))
            rows.append((now.zero, [now.zero] * len(group), *[(now.zero, now.zero)] * 2))
            continue
        known.append(now.zero)
        torque, by = now.torque_terms(c)
        (k1, d1), (k2, d2) = now.part(c).lines(
            jnp.where(rest, 0.0, modes[-1] * v),
            None if now.piece[c] is None else now.piece[c] * ~rest,
        )
        rows.append((torque, [by.get(d, now.zero) for d in group], (k1, k2), (d1, d2)))
    at, by, slopes, offsets = zip(*rows, strict=True)
    table = lambda rows: jnp.stack([_stack(row) for row in rows])  # noqa: E731
    friction = Lines(
        is_by_torque=jnp.array([now.contact(c).side is not None for c in group]),
        at=_stack(at),
        by=table(by),
        slope=table(slopes).T,
        offset=table(offsets).T,
        factor=table([_factor(before, c, events[c], m) for c in group] for m in (-1, 1)),
    )
    motion = jnp.stack(rests), jnp.stack(modes), _stack(known)
    found = modes_by_torque(
        table(matrix),
        _stack(free),
        _stack_both_ways(hold),
        _stack_both_ways(slide),
        _stack(now.shares(group)),
        motion,
        friction,
        now.contact(group[0]).redundant,
    )
    return (
        [found.modes[i] for i in range(len(group))],
        {c: found.lines[i] == 0 for i, c in enumerate(group)},
        found.ok,
    )


def _limits(
    before: Snapshot, now: Snapshot, group: tuple[int, ...], events: list[dict[str, Array]]
) -> tuple[Any, Any]:
    """Return two dicts, for breakaway force and sliding friction at zero speed: direction (-1, 1)
    -> list over the contacts of the group. Both forces are 0 if the friction depends on a torque.
    """
    hold, slide = {}, {}
    for m in (-1, 1):
        hold[m], slide[m] = [], []
        for c in group:
            if now.contact(c).side is not None:
                hold[m].append(now.zero)
                slide[m].append(now.zero)
                continue
            old, low, most = before.mode[c], now.f0(c, m), now.f0_max(c, m)
            most = jnp.where(old == STUCK, most * (1 + 1e-9), most)
            factor = _factor(before, c, events[c], m)
            low = low * factor
            most = jnp.where(factor < 1, low, most)
            if (wall := now.contact(c).wall) is not None:
                most = jnp.where(now.mode[wall] == m, jnp.inf, most)
            hold[m].append(most)
            slide[m].append(low)
    return hold, slide


def _factor(before: Snapshot, c: int, event: dict[str, Array], m: int) -> Array:
    """Return the factor on the force limits of contact c in direction m: slightly below 1 if the
    contact must slide in this direction, else 1.

    The contact must slide in two cases: a stuck contact has an event for this direction, or the
    contact already slides in this direction at zero speed. The factor lowers the limit below a load
    that equals the friction up to a rounding error.
    """
    old = before.mode[c]
    leaves = (old == STUCK) & event["forward" if m == 1 else "backward"]
    goes_on = (old == m) & ~event["forward"]
    return jnp.where(leaves | goes_on, 1 - 4 * jnp.finfo(before.t.dtype).eps ** AT_LIMIT, 1.0)


def _equations(now: Snapshot, group: tuple[int, ...]) -> tuple[list[list[Array]], list[Array]]:
    """Return the equations of a group of contacts: the Delassus matrix (accelerations under unit
    forces at the contacts), and the relative accelerations without forces at the contacts.
    """
    matrix = [[now.delassus[c].get(d, now.zero) for d in group] for c in group]
    return matrix, [now.relative_acceleration(c, now.free_acceleration) for c in group]


def _stack(values) -> Array:
    return jnp.stack([jnp.asarray(x) for x in values])


def _stack_both_ways(limits: dict[int, list[Array]]) -> tuple[Array, Array]:
    return _stack(limits[-1]), _stack(limits[1])


def _leave_by_own_margin(before: Snapshot, c: int, event: dict[str, Array], chosen: Array) -> Array:
    """Return the breakaway direction of stuck contact c if its own event function fell to 0, else
    `chosen`. At its event, this function is only a rounding error, so its sign is not used.
    """
    stuck = before.mode[c] == STUCK
    return jnp.where(
        stuck & event["forward"], FORWARD, jnp.where(stuck & event["backward"], BACKWARD, chosen)
    )


def _is_at_rest(before: Snapshot, now: Snapshot, c: int, event: dict[str, Array]) -> Array:
    """Return whether the velocity of contact c is 0 after the event."""
    old, least = before.mode[c], velocity_rounding(now, c)
    # The velocity needs a tolerance for two reasons. First, if two contacts slide with the same
    # velocity, the event of one contact is located when the velocity is just below 0. Second, the
    # velocity of a stuck or held contact has an integration error, so only a jump of this velocity
    # ends the rest.
    still = jnp.abs(now.v_rel[c]) <= 10 * least
    held = (old == STUCK) | _was_held(before, c)
    still = jnp.where(held, jnp.abs(now.v_rel[c] - before.v_rel[c]) <= 1e4 * least, still)
    stops = event["forward"] & (old != STUCK)
    if now.part(c).blocks_backward:
        stops = stops | (now.v_rel[c] < 0)
    for name in ("low", "high"):
        stops = stops | event.get(name, jnp.array(False))
    return stops | still


def _was_held(before: Snapshot, c: int) -> Array:
    """Return whether contact c was not stuck, but stuck contacts prevented its motion."""
    return jnp.array(False) if (held := before.is_held[c]) is None else held


def _write_law_piece(
    before: Snapshot, now: Snapshot, c: int, event: dict[str, Array], new: list[Array]
) -> None:
    """Write to `new` the active segment of the friction law of contact c in its new mode."""
    if (piece := now.contact(c).piece) is None:
        return
    old, mode = before.mode[c], new[c]
    direction = jnp.where(is_sliding(mode), mode, 0)
    begun = piece_at(now.part(c), direction, direction * now.v_rel[c])
    step = jnp.where(event["faster"], 1, 0) - jnp.where(event["slower"], 1, 0)
    new[piece] = jnp.where(is_sliding(old) & (mode == old), before.mode[piece] + step, begun)


def _is_free(now: Snapshot, c: int, old: Array, event: dict[str, Array], fired: Array) -> Array:
    """Return whether contact c is free: it has no normal force, or no friction and no stop."""
    contact, part = now.contact(c), now.part(c)
    if contact.is_pressed and contact.face is None:
        by_value = _is_off_now(now, c)
        # At an event of the normal force, the force is a rounding error, so its sign is not used.
        crossed = jnp.where(event["normal"], old != FREE, old == FREE)
        unknown = (old == STUCK) if part.blocks_backward else jnp.array(False)
        return jnp.where((fired == DEADLINE) | unknown, by_value, crossed)
    if contact.wall is not None:
        return _is_frictionless(part) & (now.mode[contact.wall] == 0)
    return jnp.array(False)


def _is_off_now(now: Snapshot, c: int) -> Array:
    signal = now.contact(c).signal
    if signal is None:
        return now.normal[c] <= 0
    k = now.mode[now.layout.first_signal + signal]
    return is_unpressed(now.mechanism, now.layout, now.t, now.contact(c), k)


def _is_frictionless(part) -> Array:
    return (part.law(1).f0 <= 0) & (part.F_prop <= 0) & (part.f_neg is None)
