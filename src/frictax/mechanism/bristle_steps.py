"""Time steps and events of contacts with a bristle: a step that cannot add energy, prescribed
motions, slip of elements, begin and end of a normal force.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from frictax.contacts.contact import f0
from frictax.contacts.rubbing import bristle_damping, bristle_law, element_law, element_limits
from frictax.engine.events import Bracket
from frictax.engine.implicit import factorize, shift_matrix
from frictax.engine.system import DEADLINE
from frictax.parameters import Numbers
from frictax.parameters.arrays import constant, larger

from .contact_margins import is_unpressed, rounding_of_ends
from .dynamics import MachineSnapshot, contact_position
from .layout import Contact, Layout, contact_row
from .sparse import dot


def within_limits(before: Any, after: Any) -> Array:
    """Return whether a linearly implicit step between the snapshots `before` and `after` is
    accurate.

    The step is accurate under two conditions. First, no bristle force exceeds its limit. A force
    above its limit shows that the motion stopped inside the step, where the linearization is wrong.
    Second, each bristle slides, or the period of its oscillation is longer than about two steps. A
    sticking bristle oscillates about v = 0, where the linearization is wrong too. If steps are
    longer than half an oscillation period, errors and derivatives grow.
    """
    ok = jnp.all(jnp.isfinite(after.y))
    h = after.t - before.t
    for b, (part, contact) in enumerate(
        zip(after.bristle_elements, after.layout.bristles, strict=True)
    ):
        if part.bristle.elements:
            moves = _mobility(before, contact)
            if moves is not None:
                # If friction decreases with speed, the velocity may grow within a step. A step in
                # which the velocity grows by more than half is not accurate.
                v, s, force = before.bristle_v[b], before.element_slip[b], before.bristle_force[b]

                def friction(v: Array, part=part, s=s, force=force, b=b) -> Array:
                    g, viscous, _ = element_law(part, v, s)
                    held = part.bristle.element_forces(force, g, before.element_modes[b])
                    return jnp.sum(held) + viscous * v

                gain = _scale_force(before, b, -jax.jvp(friction, (v,), (jnp.ones_like(v),))[1])
                ok = ok & (h * moves * gain < 0.5)
            continue
        f0, f1 = before.bristle_force[b], after.bristle_force[b]
        v0, v1 = before.bristle_v[b], after.bristle_v[b]
        limits = part.law(1).f0, part.law(-1).f0, before.bristle_limits[b], after.bristle_limits[b]
        most = functools.reduce(jnp.maximum, limits)
        ok = ok & (jnp.abs(f1) <= jnp.maximum(1.05 * most, jnp.abs(f0)))
        moves = _mobility(before, contact)
        if moves is not None:
            sigma_0 = part.bristle.sigma_0
            way = h * jnp.minimum(jnp.abs(v0), jnp.abs(v1))
            # A bristle slides if its force is within 10 % of the limit, and if it moves in the step
            # by more than three times its deflection at the limit.
            slides = (v0 * v1 > 0) & (sigma_0 * way > 3.0 * most)
            limit = after.bristle_limits[b]
            slides = slides & (jnp.abs(jnp.sign(v1) * f1 - limit) < 0.1 * limit)
            stiffness = _scale_force(before, b, sigma_0)
            swing = 3.0  # [rad] largest phase of the oscillation of a sticking bristle in one step
            ok = ok & (slides | (h * h * stiffness * moves < swing**2))
    return ok


def _scale_force(now: Any, b: int, force: Array) -> Array:
    """Return `force` times cgeo*fn of bristle `b`, or times 1 without a normal force fn."""
    scale = now.bristle_scale[b]
    return force if scale is None else scale * force


def _mobility(now: Any, contact: Contact) -> Any:
    """Return the acceleration of a contact under a unit force; None if its motion is prescribed."""
    row = contact_row(contact, now.body_rows)
    return dot(row, now.accelerations_by(row)) if row else None


def passive_step(snapshot: Callable, flow: Callable, t0: Array, t1: Array, y0: Array) -> Array:
    """Return the state at `t1` after one time step from the state `y0` at `t0`. The step has order
    1 and cannot add energy to the machine.

    During the step each bristle has the constant velocity w that it reaches at the end of the step.
    At constant velocity the bristle force is known in closed form, and F(w) is its mean over the
    step. In a linearly implicit Euler step, w depends linearly on the bristle forces F: w = w0 - G
    F(w). A bracketing method solves this equation for each w.

    In the step the bodies lose at least the energy h*w*F, which the bristles store or dissipate.
    Therefore, without a motor drive, a step of any length h does not add energy. An oscillation
    that the step cannot resolve decays. (With the midpoint rule it does not decay.)

    `snapshot`(t, y, imposed) returns a `MachineSnapshot`, and `flow`(snapshot) returns dy/dt.
    """
    h = t1 - t0
    now = snapshot(t0, y0, None)
    n, count = 2 * len(now.q), len(now.bristle_force)
    own, beside = y0[:n], y0[n:]
    (free, pulled), (w0, gain) = _linear_response(snapshot, now, h, t1, y0)
    elements: list[Any] = now.bristle_elements
    held, scaled = now.bristle_force, functools.partial(_scale_force, now)

    def means(b: int, w: Array) -> tuple[Array, Array]:
        """Return the mean friction of contact b at velocity w, and the final bristle force."""
        part = elements[b]
        if part.bristle.elements:
            force, modes, s = held[b], now.element_modes[b], now.element_slip[b]
            g, viscous, _ = element_law(part, jnp.where(s * w < 0, 0.0, w), s)
            # The modes of the elements do not change during the step. If the bristle has a rate
            # `C`, the state of a slipping element follows its limit with a delay. Without `C`, the
            # state of a slipping element does not change, and its force is its limit.
            slips = force
            if (rate := part.bristle.C) is not None:
                share = 1 / (1 + h * rate / g)
                slips = share * force + (1 - share) * modes * part.bristle.share * g
            end = jnp.where(modes == 0, force + part.bristle.k * (w * h), slips)
            sticking = 0.5 * (force + end)
            mean = jnp.where(modes == 0, sticking, part.bristle.element_forces(end, g, modes))
            return scaled(b, jnp.sum(mean) + viscous * w), end
        g, viscous, least = bristle_law(part, w)
        end, mean = part.bristle.moved(w * h, held[b], g, least)
        damping = bristle_damping(part, w) / (part.bristle.sigma_0 * h)
        return scaled(b, mean + damping * (end - held[b]) + viscous * w), end

    def mean(b: int, w: Array) -> Array:
        return means(b, w)[0]

    # `bounds`: for each bristle an upper bound of the force with which it can drive the motion.
    bounds = []
    for b, (part, force) in enumerate(zip(elements, held, strict=True)):
        if part.bristle.elements:
            limit = part.bristle.share * larger(f0(part, 1, 1.0), f0(part, -1, 1.0))
            bounds.append(scaled(b, jnp.sum(larger(jnp.abs(force), limit))))
        else:
            damping = bristle_damping(part, now.zero) / (part.bristle.sigma_0 * h)
            bounds.append(scaled(b, jnp.abs(force) * (1 + damping)))
    most = jnp.stack(bounds)
    known = constant((w0, gain, most))
    w = constant(_velocities(known, lambda b, w: constant(mean(b, w))))
    # This Newton step adds derivatives to `w`, and changes its value only by a rounding error.
    both = [
        jax.jvp(functools.partial(mean, b), (w[b],), (jnp.ones_like(w[b]),)) for b in range(count)
    ]
    friction, slope = jnp.stack([f for f, _ in both]), jnp.stack([s for _, s in both])
    matrix = constant(jnp.eye(count, dtype=w0.dtype) + gain * slope[None, :])
    left = w + gain @ friction - w0
    w = w - factorize([[matrix[i, j] for j in range(count)] for i in range(count)])(left)
    found = [means(b, w[b]) for b in range(count)]
    friction = jnp.stack([f for f, _ in found])
    ends = [
        end if press is None else jnp.where(press == 0, held[b], end)
        for b, ((_, end), press) in enumerate(zip(found, now.bristle_press, strict=True))
    ]
    change = free + pulled @ friction
    energy = [part.bristle.energy for part in elements]
    stores = [
        scaled(b, (e(end) - e(f)) / h)
        for b, (e, end, f) in enumerate(zip(energy, ends, held, strict=True))
    ]
    at_end = jnp.concatenate([own + h * change, beside])
    rates = flow(snapshot(t1, at_end, ([friction[b] for b in range(count)], stores)))
    y1 = y0 + h * jnp.concatenate([change, rates[n:]])
    first = now.layout.first_bristle
    if not any(now.layout.elements):
        return y1.at[first : first + count].set(jnp.stack(ends))
    after = jnp.concatenate([jnp.atleast_1d(end) for end in ends])
    return y1.at[first : first + after.shape[0]].set(after)


def _linear_response(
    snapshot: Callable, now: Any, h: Array, t1: Array, y0: Array
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return the response ((free, pulled), (w0, gain)) of the machine to the friction forces F of
    the bristles in a linearly implicit Euler step. The response is linear in F.

    The coordinates and their velocities change at the rate free + pulled F. At the end of the step,
    the contacts with a bristle have the velocities w0 - gain F.
    """
    n, count = 2 * len(now.q), len(now.bristle_force)
    none = [now.zero] * count
    own, beside = y0[:n], y0[n:]

    def rates_under(own: Array, force: Array) -> Array:
        """Return the rates of coordinates and velocities for bristle frictions `force` [N]."""
        imposed = [force[b] for b in range(count)], none
        now = snapshot(t1, jnp.concatenate([own, beside]), imposed)
        return jnp.stack([*now.u, *now.coordinate_acceleration]) if n else own

    still = jnp.stack(now.bristle_friction)
    nothing = jnp.zeros_like(still)
    rate, by_force = rates_under(own, nothing), jax.jacfwd(rates_under, 1)(own, nothing)
    by_own = jax.jacfwd(rates_under)(own, still)
    solve = factorize(shift_matrix([[by_own[i, j] for j in range(n)] for i in range(n)], h))
    free, pulled = solve(rate), jnp.stack([solve(by_force[:, b]) for b in range(count)], 1)

    def velocities(force: Array) -> Array:
        at = own + h * (free + pulled @ force)
        return jnp.stack(snapshot(t1, jnp.concatenate([at, beside]), (none, none)).bristle_v)

    return (free, pulled), (velocities(nothing), -jax.jacfwd(velocities)(nothing))


def _velocities(known: tuple[Array, Array, Array], friction: Callable) -> Array:
    """Solve w + gain F(w) = w0 by Gauss-Seidel sweeps over the contacts, and return w. `known`: w0,
    gain, and for each contact an upper bound of the force that drives its motion. `friction`(b, w)
    returns F_b.
    """
    w0, gain, most = known
    count = w0.shape[0]
    close = 1e-12  # error of w before the final Newton step, relative to the initial bracket length

    def one(b: int, w: list[Array]) -> Array:
        others = [gain[b, d] * friction(d, w[d]) for d in range(count) if d != b]
        aim, own = w0[b] - sum(others, 0.0), gain[b, b]

        def residual(w: Array) -> Array:
            return w + own * friction(b, w) - aim

        s = jnp.where(residual(jnp.zeros_like(aim)) < 0, 1.0, -1.0)
        high = jnp.abs(aim) + own * most[b] + jnp.finfo(aim.dtype).tiny
        zero = jnp.zeros_like(high)
        first = Bracket.start(zero, high, s * residual(zero), s * residual(s * high))

        def closer(carry: tuple[Bracket, Array]) -> tuple[Bracket, Array]:
            bracket, looks = carry
            x = bracket.guess(close)
            return bracket.narrow(x, s * residual(s * x)), looks + 1

        bracket, _ = jax.lax.while_loop(
            lambda c: ~c[0].is_shorter_than(close) & (c[1] < 80), closer, (first, jnp.array(0))
        )
        return s * jnp.where(
            jnp.abs(bracket.f_low) < jnp.abs(bracket.f_high), bracket.low, bracket.high
        )

    def sweep(_: Any, w: Array) -> Array:
        entries = [w[b] for b in range(count)]
        for b in range(count):
            entries[b] = one(b, entries)
        return jnp.stack(entries)

    if count == 1:
        return sweep(0, w0)
    return jax.lax.fori_loop(0, 20, sweep, w0)


def is_motion_given(mechanism: Any, lay: Layout) -> bool:
    """Return whether bristle forces are the only states, so that a run does not need time steps.

    A bristle with `C` needs time steps: its force changes with time, not only with distance.
    """
    others = lay.coordinates or lay.contacts or lay.gaps or lay.nodes
    bristles = [mechanism.parts[contact.part].bristle for contact in lay.bristles]
    return bool(bristles) and not others and all(getattr(b, "C", None) is None for b in bristles)


def integrate_bristles(
    snapshot: Callable[..., MachineSnapshot],
    ts: Float[Numbers, " n"],
    ys: Float[Array, "n y"],
    modes: Int[Array, "n m"],
) -> Float[Array, "n y"]:
    """Return the states `ys` with the bristle forces [N] that the motion causes. `ys`, `modes`:
    states and modes at the times `ts`; only the bristle forces of the first state are used.

    `snapshot`(t, y, mode) returns a `MachineSnapshot`. Each contact moves at constant speed between
    two samples, and for constant speed the bristle force is known in closed form. The result is
    exact if the force depends only on the distance moved. If the force also depends on speed, its
    error decreases with the square of the sampling interval.

    A bristle has no deflection while its normal force is 0, and after the pressed side changed. A
    normal force that is 0 only between two samples is not detected.
    """

    def along(t: Array, y: Array, mode: Array) -> tuple[Array, list[Any]]:
        now = snapshot(t, y, mode)
        places = [contact_position(now, contact) for contact in now.layout.bristles]
        return jnp.stack(places), now.bristle_press

    now = snapshot(ts[0], ys[0], modes[0])
    parts: list[Any] = now.bristle_elements
    s, presses = jax.vmap(along)(jnp.asarray(ts), ys, modes)

    def on(forces: list[Array], step: tuple[Any, ...]) -> tuple[list[Array], list[Array]]:
        h, ways, before, after = step
        ends = []
        for b, (part, force) in enumerate(zip(parts, forces, strict=True)):
            g, _, least = bristle_law(part, ways[b] / h)
            end = part.bristle.moved(ways[b], force, g, least)[0]
            if (side := after[b]) is not None:
                end = jnp.where((before[b] == side) & (side != 0), end, 0.0)
            ends.append(end)
        return ends, ends

    sides = jax.tree.map(lambda x: x[:-1], presses), jax.tree.map(lambda x: x[1:], presses)
    steps = jnp.diff(jnp.asarray(ts)), jnp.diff(s, axis=0), *sides
    _, found = jax.lax.scan(on, now.bristle_force, steps)
    forces = jnp.concatenate([jnp.reshape(f, (s.shape[0] - 1, -1)) for f in found], axis=1)
    first = now.layout.first_bristle
    return ys.at[1:, first : first + forces.shape[1]].set(forces)


def element_margins(now: MachineSnapshot) -> list[Array]:
    """Return the event functions of all bristles with elements.

    A bristle with n elements has 2*n + 1 event functions: the additional force that each sticking
    element can hold forward, the additional force that it can hold backward, and the velocity in
    the slip direction. A rounding error is added to each event function.

    In the direction opposite to the motion, the limit of an element is its fraction of the law at
    rest. If the law falls with speed, an element may still carry this larger force.
    """
    found: list[Array] = []
    for b, modes in enumerate(now.element_modes):
        if modes is None:
            continue
        part, v, force = now.bristle_elements[b], now.bristle_v[b], now.bristle_force[b]
        sticks, inf, share = modes == 0, jnp.full_like(force, jnp.inf), part.bristle.share
        forward, backward = element_limits(part, v)
        for room in (share * forward - force, share * backward + force):
            size = jax.lax.stop_gradient(share * larger(forward, backward))
            found.append(jnp.where(sticks, room + 8 * jnp.finfo(force.dtype).eps * size, inf))
        s = now.element_slip[b]
        contact = now.layout.bristles[b]
        least = rounding_of_ends(now, contact, len(contact.ends) == 1)
        found.append(jnp.where(s == 0, jnp.inf, s * v + least))
    return found


def change_slipping_elements(
    now: MachineSnapshot, y: Array, fired: Array, new: list[Array], accounts: int
) -> Array:
    """Return the state after an event of an element, and write the modes of the elements to `new`.

    `fired`: index in `element_margins` of the event function that fell to 0. For any other `fired`,
    no element changes its mode. `accounts`: number of energies at the end of `y`. An element that
    sticks again carries its fraction of the law at rest. The energy of a slipping element is
    computed with the force at which the element began to slip. Therefore the energy jumps when the
    element sticks again, and this jump counts as a loss."""
    lay, first = now.layout, 0
    place, state = lay.first_element, lay.first_bristle
    for b, n in enumerate(lay.elements):
        if n:
            part, force, modes = now.bristle_elements[b], now.bristle_force[b], now.element_modes[b]
            s, bristle = now.element_slip[b], part.bristle
            stops = fired == first + 2 * n
            numbers = jnp.arange(n)
            begins = jnp.where(fired == first + numbers, 1, 0)
            begins = begins - jnp.where(fired == first + n + numbers, 1, 0)
            after = jnp.where(stops, 0, modes + begins)
            for i in range(n):
                new[place + i] = after[i]
            at_rest = jnp.where(s < 0, f0(part, -1, 1.0), f0(part, 1, 1.0))
            bent = jnp.where(stops, bristle.forces_after_sticking(force, at_rest, modes), force)
            y = y.at[state : state + n].set(bent)
            if lay.nodes or accounts:
                scale, lost = now.bristle_scale[b], bristle.energy(force) - bristle.energy(bent)
                lost = lost if scale is None else scale * lost
                for k, node in enumerate(lay.nodes):
                    if b in node.bristles:
                        y = y.at[2 * len(now.q) + k].add(lost / now.mechanism.parts[node.part].C)
                        y = y.at[-accounts].add(lost) if accounts else y
                y = y.at[-3].add(lost) if accounts else y
            first += 2 * n + 1
        place, state = place + n, state + max(n, 1)
    return y


def press_margins(now: MachineSnapshot) -> list[Array]:
    """Return one event function for each bristle with a normal force fn: fn while the contact is
    pressed, and -fn while the contact is not pressed. A rounding error is added to each function.
    """
    eps, found = 500 * jnp.finfo(now.t.dtype).eps, []
    for b, press in enumerate(now.bristle_press):
        if press is None:
            continue
        part, normal = now.bristle_elements[b], now.bristle_normal[b]
        margin = jnp.where(press == 0, -normal, normal) + eps * part.fn_max
        found.append(jnp.where(part.fn_max <= 0, jnp.inf, margin))
    return found


def start_pressing(now: MachineSnapshot, y: Array, mode: list[Array]) -> Array:
    """Write to `mode` which bristles have a normal force. Return the start state `y`, in which
    bristles without a normal force have no deflection.
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
    return _unbend(now, [None if press is None else press == 0 for press in after], y)


def change_pressing(
    before: MachineSnapshot,
    at: Callable[[list[Array]], MachineSnapshot],
    fired: Array,
    presses: Array,
    new: list[Array],
    counted: bool,
) -> Array:
    """Return the state after event `fired`, and write to `new` which bristles have a normal force.

    A bristle has no deflection after its faces separate, or after the pressed side changes.

    - `before`: the machine before the event; `at`(new): the machine with the mode vector `new`.
    - `presses`: index of the event function that fell to 0, counted from the end of the list of
      `press_margins`: -1 is the last entry.
    - `counted`: whether the change of the energy in the bristles, which is work of the normal
      force, is added to the energies in the state.
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
    y = _unbend(before, parted, before.y)
    if counted:
        left = zip(at(new).bristle_energy, before.bristle_energy, parted, strict=True)
        added = [jnp.where(p, 0.0, b) - a for b, a, p in left if p is not None]
        y = y.at[-4].add(sum(added, before.zero))
    return y


def _presses(now: MachineSnapshot, b: int) -> Array:
    """Return whether bristle contact number `b` has a normal force just after the time of `now`."""
    contact = now.layout.bristles[b]
    if contact.signal is None:
        return now.bristle_normal[b] > 0
    k = now.mode[now.layout.first_signal + contact.signal]
    return ~is_unpressed(now.mechanism, now.layout, now.t, contact, k)


def _either_side(now: MachineSnapshot, b: int) -> bool:
    return getattr(now.bristle_elements[b].f_normalized, "either_side", False)


def _unbend(now: MachineSnapshot, parted: list[Any], y: Array) -> Array:
    """Return the state `y` after the force became 0 in each bristle whose flag in `parted` is True.
    The flags False and None do not change the force."""
    first = now.layout.first_bristle
    for n, p in zip(now.layout.elements, parted, strict=True):
        size = max(n, 1)
        if p is not None:
            y = y.at[first : first + size].multiply(jnp.where(p, 0.0, 1.0))
        first += size
    return y
