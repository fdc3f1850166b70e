"""A step that cannot gain energy, however stiff the bristles are and however long it is."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from frictax.contacts.contact import f0
from frictax.contacts.rubbing import bristle_damping, bristle_law, element_law
from frictax.engine.events import Bracket
from frictax.engine.implicit import factored, shifted
from frictax.parameters import Numbers
from frictax.parameters.arrays import constant, larger

from .dynamics import contact_position
from .layout import Contact, Layout, row_of
from .snapshot import Snapshot
from .sparse import product

_CLOSE = 1e-12  # of the bracket: how near a velocity is found before the Newton step
_LOOKS = 80
_SWEEPS = 20  # over bristles that act on each other
_SWING = 3.0  # radians of a bristle's swing in one step, with which its linear form will do
_WAYS = 3.0  # ways over which it bends, in one step, with which it slides
_NEAR = 0.1  # of its limit, within which it is bent then
_GAIN = 0.5  # of a velocity in one step, where friction falls with speed
_OVER = 1.05  # times its limit, which a bristle never passes


def within_limits(before: Any, after: Any) -> Array:
    """Whether, of the snapshots before and after a linearly implicit step, no bristle is bent
    beyond its limit, and each swings slowly enough for the step or slides all the while.

    What is bent too far shows that a stop inside the step made its linear form wrong. A bristle
    that holds swings about v = 0, where no linear form is right: in steps longer than half a swing
    its errors and derivatives grow.
    """
    ok = jnp.all(jnp.isfinite(after.y))
    h = after.t - before.t
    for b, (part, contact) in enumerate(
        zip(after.bristle_elements, after.layout.bristles, strict=True)
    ):
        if part.bristle.elements:
            moves = _mobility(before, contact)
            if moves is not None:
                ok = ok & (h * moves * _times(before, b, _gains(before, b)) < _GAIN)
            continue
        f0, f1 = before.bristle_force[b], after.bristle_force[b]
        v0, v1 = before.bristle_v[b], after.bristle_v[b]
        limits = part.law(1).f0, part.law(-1).f0, before.bristle_limits[b], after.bristle_limits[b]
        most = functools.reduce(jnp.maximum, limits)
        ok = ok & (jnp.abs(f1) <= jnp.maximum(_OVER * most, jnp.abs(f0)))
        moves = _mobility(before, contact)
        if moves is not None:
            sigma_0 = part.bristle.sigma_0
            way = h * jnp.minimum(jnp.abs(v0), jnp.abs(v1))
            # and then its force is near its limit
            slides = (v0 * v1 > 0) & (sigma_0 * way > _WAYS * most)
            limit = after.bristle_limits[b]
            slides = slides & (jnp.abs(jnp.sign(v1) * f1 - limit) < _NEAR * limit)
            stiffness = _times(before, b, sigma_0)
            ok = ok & (slides | (h * h * stiffness * moves < _SWING**2))
    return ok


def _times(now: Any, b: int, force: Array) -> Array:
    """A force of contact number `b`, of what its bristle says and what presses on it."""
    scale = now.bristle_scale[b]
    return force if scale is None else scale * force


def _mobility(now: Any, contact: Contact) -> Any:
    """The relative acceleration of a contact by a unit force there; None where its motion is
    given.
    """
    row = row_of(contact, now.forms)
    return product(row, now.accelerations_by(row)) if row else None


def _gains(now: Any, b: int) -> Array:
    """How steeply the friction of elements that slip falls with speed [N.s/m]."""
    part, s, v = now.bristle_elements[b], now.element_slip[b], now.bristle_v[b]

    def friction(v: Array) -> Array:
        g, viscous, _ = element_law(part, v, s)
        held = part.bristle.held(now.bristle_force[b], g, now.element_modes[b])
        return jnp.sum(held) + viscous * v

    return -jax.jvp(friction, (v,), (jnp.ones_like(v),))[1]


def passive_step(snapshot: Callable, flow: Callable, t0: Array, t1: Array, y0: Array) -> Array:
    """The state at `t1` by one step from `y0` at `t0` on in which each bristle sees one velocity,
    w, that at the end of the step.

    At that its own motion is known, and so is its mean force F(w). All else is linear in these
    forces, by a linearly implicit step of Euler's: w = w0 - G F(w), of which the solution is
    bracketed. What the bodies lose is no less than what the faces take, h*w*F: so without a drive
    there is no gain of energy, whatever h is. It is of order 1 only, but a swing that the step
    cannot resolve comes to rest, where the midpoint rule would keep it going.

    `snapshot`(t, y, imposed) and `flow`(now) are those of the system in its mode.
    """
    h = t1 - t0
    now = snapshot(t0, y0, None)
    n, count = 2 * len(now.q), len(now.bristle_force)
    none = [now.zero] * count
    own, beside = y0[:n], y0[n:]

    def moved(own: Array, force: Array) -> Array:
        """The rates of coordinates and velocities under these frictions."""
        imposed = [force[b] for b in range(count)], none
        now = snapshot(t1, jnp.concatenate([own, beside]), imposed)
        return jnp.stack([*now.u, *now.coordinate_acceleration]) if n else own

    still = jnp.stack(now.bristle_friction)
    nothing = jnp.zeros_like(still)
    rate, by_force = moved(own, nothing), jax.jacfwd(moved, 1)(own, nothing)
    by_own = jax.jacfwd(moved)(own, still)
    solve = factored(shifted([[by_own[i, j] for j in range(n)] for i in range(n)], h))
    free, pulled = solve(rate), jnp.stack([solve(by_force[:, b]) for b in range(count)], 1)

    def velocities(force: Array) -> Array:
        at = own + h * (free + pulled @ force)
        return jnp.stack(snapshot(t1, jnp.concatenate([at, beside]), (none, none)).bristle_v)

    w0, gain = velocities(nothing), -jax.jacfwd(velocities)(nothing)
    elements: list[Any] = now.bristle_elements
    held, scaled = now.bristle_force, functools.partial(_times, now)

    def means(b: int, w: Array) -> tuple[Array, Array]:
        """The mean friction of contact b at the velocity w, and the force in it at the end."""
        part = elements[b]
        if part.bristle.elements:
            friction, end = _of_elements(now, b, w, h)
            return scaled(b, friction), end
        g, viscous, least = bristle_law(part, w)
        end, mean = part.bristle.moved(w * h, held[b], g, least)
        damping = bristle_damping(part, w) / (part.bristle.sigma_0 * h)
        return scaled(b, mean + damping * (end - held[b]) + viscous * w), end

    def mean(b: int, w: Array) -> Array:
        return means(b, w)[0]

    most = jnp.stack([scaled(b, _against(now, b, h)) for b in range(count)])
    known = constant((w0, gain, most))
    w = constant(_velocities(known, lambda b, w: constant(mean(b, w))))
    # One Newton step, of which the derivative is that of the solution.
    both = [
        jax.jvp(functools.partial(mean, b), (w[b],), (jnp.ones_like(w[b]),)) for b in range(count)
    ]
    friction, slope = jnp.stack([f for f, _ in both]), jnp.stack([s for _, s in both])
    matrix = constant(jnp.eye(count, dtype=w0.dtype) + gain * slope[None, :])
    left = w + gain @ friction - w0
    solved = factored([[matrix[i, j] for j in range(count)] for i in range(count)])(left)
    w = w - solved
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


def _of_elements(now: Any, b: int, w: Array, h: Array) -> tuple[Array, Array]:
    """The mean friction of contact number `b` at the velocity w, its elements in the modes of
    `now`, and the state of these at the end.
    """
    part, force, modes = now.bristle_elements[b], now.bristle_force[b], now.element_modes[b]
    s, bristle = now.element_slip[b], part.bristle
    g, viscous, _ = element_law(part, jnp.where(s * w < 0, 0.0, w), s)
    # at the end of the step, where C is given as well
    share = 0.0 if bristle.C is None else 1 / (1 + h * bristle.C / g)
    slips = force if bristle.C is None else share * force + (1 - share) * modes * bristle.share * g
    end = jnp.where(modes == 0, force + bristle.k * (w * h), slips)
    mean = jnp.where(modes == 0, 0.5 * (force + end), bristle.held(end, g, modes))
    return jnp.sum(mean) + viscous * w, end


def _against(now: Any, b: int, h: Array) -> Array:
    """A force that no friction of contact number `b` pushes on by more."""
    part, force, modes = now.bristle_elements[b], now.bristle_force[b], now.element_modes[b]
    if modes is None:
        return jnp.abs(force) * (1 + bristle_damping(part, now.zero) / (part.bristle.sigma_0 * h))
    most = larger(f0(part, 1, 1.0), f0(part, -1, 1.0))
    return jnp.sum(larger(jnp.abs(force), part.bristle.share * most))


def _velocities(known: tuple[Array, Array, Array], friction: Callable) -> Array:
    """The velocities w with w + gain F(w) = w0, one contact after the other, and again where there
    are several; `known`: w0, gain, and what F is greater than, against w.
    """
    w0, gain, most = known
    count = w0.shape[0]

    def one(b: int, w: list[Array]) -> Array:
        others = [gain[b, d] * friction(d, w[d]) for d in range(count) if d != b]
        aim, own = w0[b] - sum(others, 0.0), gain[b, b]

        def missed(w: Array) -> Array:
            return w + own * friction(b, w) - aim

        s = jnp.where(missed(jnp.zeros_like(aim)) < 0, 1.0, -1.0)
        high = jnp.abs(aim) + own * most[b] + jnp.finfo(aim.dtype).tiny
        zero = jnp.zeros_like(high)
        first = Bracket.start(zero, high, s * missed(zero), s * missed(s * high))

        def closer(carry: tuple[Bracket, Array]) -> tuple[Bracket, Array]:
            bracket, looks = carry
            x = bracket.guess(_CLOSE)
            return bracket.narrowed(x, s * missed(s * x)), looks + 1

        bracket, _ = jax.lax.while_loop(
            lambda c: ~c[0].is_shorter_than(_CLOSE) & (c[1] < _LOOKS), closer, (first, jnp.array(0))
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
    return jax.lax.fori_loop(0, _SWEEPS, sweep, w0)


def is_moved(mechanism: Any, lay: Layout) -> bool:
    """Whether all that moves is given, and bristles are the only states: a run needs no steps."""
    others = lay.coordinates or lay.contacts or lay.gaps or lay.nodes
    bristles = [mechanism.parts[contact.part].bristle for contact in lay.bristles]
    # one whose force follows over time, and not over the way, does need them
    return bool(bristles) and not others and all(getattr(b, "C", None) is None for b in bristles)


def places(now: Snapshot) -> Float[Array, " b"]:
    """Where the contacts with a bristle are [m]."""
    return jnp.stack([contact_position(now, contact) for contact in now.layout.bristles])


def bent_along(
    now: Snapshot, ts: Float[Numbers, " n"], s: Float[Array, "n b"]
) -> Float[Array, "n f"]:
    """The forces in the bristles [N] at the times `ts`, as they stand in the state, where the
    contacts are at `s` [m] then; at the first time, of which `now` is, as they start.

    Between two samples each sees one speed, at which its own motion is known: exact where the
    force depends on the way alone, else of order 2.
    """
    parts: list[Any] = now.bristle_elements

    def on(forces: list[Array], step: tuple[Array, Array]) -> tuple[list[Array], list[Array]]:
        h, ways = step
        ends = []
        for b, (part, force) in enumerate(zip(parts, forces, strict=True)):
            g, _, least = bristle_law(part, ways[b] / h)
            ends.append(part.bristle.moved(ways[b], force, g, least)[0])
        return ends, ends

    first = now.bristle_force
    _, after = jax.lax.scan(on, first, (jnp.diff(jnp.asarray(ts)), jnp.diff(s, axis=0)))
    found = [jnp.concatenate([f[None], rest]) for f, rest in zip(first, after, strict=True)]
    n = s.shape[0]
    return jnp.concatenate([jnp.reshape(f, (n, -1)) for f in found], axis=1)
