"""A mechanism as a hybrid system: smooth motion, margins of its modes, and what happens at an event."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from frictax.contacts import Mode
from frictax.contacts.contact import edges, has_breaks
from frictax.mechanism import dynamics
from frictax.mechanism.at_rest import modes_at_rest
from frictax.mechanism.dynamics import Moment
from frictax.mechanism.layout import Layout, layout, signal_of
from frictax.mechanism.mechanism import Mechanism
from frictax.mechanism.system import DEADLINE, AbstractHybridSystem
from frictax.signals import Constant, Function
from frictax.signals.function import longest_step

BACKWARD, STUCK, FORWARD, FREE = (int(m) for m in (Mode.BACKWARD, Mode.STUCK, Mode.FORWARD, Mode.FREE))


class MechanicalSystem(AbstractHybridSystem):
    """The equations of a `Mechanism`.

    State: the coordinates, their rates and, with ``energy=True``, the work of the drives, the losses by friction and by dampers,
    and the losses at stops [J]. The coordinates are the positions of all bodies that follow no gear and no motion.
    Mode: a mode for each contact, then for each stop -1, 0, 1 (at the lower one, at none, at the upper one), then the piece of
    each law that has corners, then, for friction that depends on a torque, on which of two lines it is, then the piece of each signal.
    """

    mechanism: Mechanism
    energy: bool = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)

    def __init__(self, mechanism: Mechanism, energy: bool = False) -> None:
        self.mechanism = mechanism
        self.energy = energy
        self.layout = layout(mechanism)

    # -- the contract with the engine ------------------------------------------------------------------------------

    def flow(self, t: Float[Array, ""], y: Float[Array, " n"], mode: Int[Array, " m"], args: Any) -> Float[Array, " n"]:
        del args
        now = self.moment(t, y, mode)
        rates = [*now.u, *now.rates]
        return jnp.stack(rates + dynamics.powers(now) if self.energy else rates)

    def guard(self, t: Float[Array, ""], y: Float[Array, " n"], mode: Int[Array, " m"], args: Any) -> Float[Array, " g"]:
        del args
        now = self.moment(t, y, mode)
        by_contact = [self._margins(now, c) for c in range(len(now.layout.contacts))]
        margins = [named[name] for c, named in enumerate(by_contact) for name in self._names(c)]
        return jnp.stack(margins) if margins else jnp.ones(1, y.dtype)

    def deadline(self, mode: Int[Array, " m"], args: Any) -> Float[Array, ""]:
        del args
        least, *others = self._ends(mode)
        for end in others:
            least = jnp.where(end < least, end, least)  # not the minimum: of two ends at one time, it would take half of each derivative
        return least

    def _ends(self, mode: Array) -> list[Array]:
        """The time at which each signal's piece ends; inf for a mere extremum that matters to no contact."""
        lay, ends = self.layout, [jnp.asarray(jnp.inf)]
        for j, place in enumerate(lay.signals):
            signal, k = signal_of(self.mechanism, place), mode[self._signal(j)]
            presses = any(c.signal == j for c in lay.contacts)
            stuck = jnp.any(mode[: len(lay.contacts)] == STUCK) if lay.contacts else jnp.array(False)
            ends.append(jnp.where(signal.turns(k) & ~(stuck | presses), jnp.inf, signal.end(k)))
        return ends

    def tick(self, t: Float[Array, ""], mode: Int[Array, " m"], args: Any) -> Int[Array, " m"]:
        del args
        new = list(mode)
        for j, place in enumerate(self.layout.signals):
            signal, k = signal_of(self.mechanism, place), mode[self._signal(j)]
            after = signal.passed(t, k)
            if any(j == motion for _, _, motion in self.layout.motions):  # where its velocity may jump, that is for `jump`
                after = jnp.where(signal.turns(k), after, k)
            new[self._signal(j)] = after
            for c, contact in enumerate(self.layout.contacts):
                if contact.signal == j:  # what presses a contact on may set it free: that is for `jump`
                    goes_on = self._is_off(t, c, after) == (mode[c] == FREE)
                    if self._part(c).blocks_backward:
                        goes_on = goes_on | (mode[c] == STUCK)
                    new[self._signal(j)] = jnp.where(goes_on, after, k)
        return _whole(new)

    def longest_step(self, mode: Int[Array, " m"], span: Float[Array, ""], args: Any) -> Any:
        del args
        lay = self.layout
        summed = {j for c in range(len(lay.contacts)) if self._is_loaded_by_several(c) for j in self._loads(c)}
        bounds = [longest_step(signal_of(self.mechanism, place), span, j in summed) for j, place in enumerate(lay.signals)]
        bounds = [b for b in bounds if b is not None]
        if not bounds or not lay.contacts:
            return None
        presses = any(c.signal is not None for c in lay.contacts)
        stuck = jnp.any(mode[: len(lay.contacts)] == STUCK) | presses
        return jnp.where(stuck, jnp.min(jnp.stack(bounds)), jnp.inf)

    def jump(
        self, t: Float[Array, ""], y: Float[Array, " n"], mode: Int[Array, " m"], fired: Int[Array, ""], args: Any
    ) -> tuple[Float[Array, " n"], Int[Array, " m"], Int[Array, ""]]:
        del args
        new, events = self._switched(t, mode, fired), self._events(fired)
        before = self.moment(t, y, mode)
        y = self._after_hits(before, y, events, new)
        after = self.moment(t, y, _whole(new))
        if self.energy and self.layout.motions:  # a motion with a corner gives its body energy at once
            stood = dynamics.stored(dataclasses.replace(after, s=self.moment(t, y, mode).s, v=self.moment(t, y, mode).v))
            y = y.at[-4].add(sum(dynamics.stored(after)) - sum(stood))
        y, ok = self._settle(before, after, y, events, fired, new)
        return y, _whole(new), jnp.where(ok, 0, 1).astype(jnp.int32)

    def start(self, t: Float[Array, ""]) -> tuple[Float[Array, " n"], Int[Array, " m"]]:
        """State and mode at the time `t` [s] at which the run begins."""
        lay, parts = self.layout, self.mechanism.parts
        at_start = [parts[lay.bodies[b]].at_start() for b in lay.coordinates]
        y = jnp.stack([s for s, _ in at_start] + [v for _, v in at_start]).astype(float)
        y = jnp.concatenate([y, jnp.zeros(4, y.dtype)]) if self.energy else y
        pieces = [signal_of(self.mechanism, place).piece(t) for place in lay.signals]
        laws = sum(has_breaks(parts[c.part]) for c in lay.contacts)
        sides = sum(parts[c.part].bears_torque for c in lay.contacts)
        walls = [c for c, contact in enumerate(lay.contacts) if parts[contact.part].stops() is not None]
        mode = [jnp.asarray(FREE)] * len(lay.contacts) + [jnp.asarray(0)] * (len(walls) + laws) + [jnp.asarray(1)] * sides + pieces
        now = self.moment(t, y, _whole(mode))
        for c in walls:
            (low, high), v = self._part(c).stops(), now.v_rel[c]
            s = now.place(c)
            mode[self._wall(c)] = jnp.where((s <= low) & (v == 0), -1, jnp.where((s >= high) & (v == 0), 1, 0))
        now = self.moment(t, y, _whole(mode))
        # What is at rest has the value already; this makes it one that no start velocity moves: a small one would come to rest at once.
        y, _ = self._settle(now, now, y, self._events(jnp.asarray(DEADLINE)), jnp.asarray(DEADLINE), mode)
        return y, _whole(mode)

    def states(self) -> tuple[str, ...]:
        names = [
            (self.mechanism.names[i], self.mechanism.parts[i].rotational) for i in (self.layout.bodies[b] for b in self.layout.coordinates)
        ]
        positions = [f"{name}.{'phi' if turns else 's'}" for name, turns in names]
        return (*positions, *(f"{name}.{'w' if turns else 'v'}" for name, turns in names))

    # -- what happens at an event, in its order --------------------------------------------------------------------

    def _switched(self, t: Array, mode: Array, fired: Array) -> list[Array]:
        """The mode with the signals' pieces of time `t`."""
        new = list(mode)
        # Of several switches at one time, each has a phase of no length and its own derivative.
        switches = jnp.argmin(jnp.stack(self._ends(mode))) - 1
        for j, place in enumerate(self.layout.signals):
            signal, k = signal_of(self.mechanism, place), mode[self._signal(j)]
            passed = jnp.where(signal.turns(k), jnp.maximum(k, signal.piece(t)), k)
            new[self._signal(j)] = jnp.where((fired == DEADLINE) & (switches == j), jnp.maximum(k + 1, passed), passed)
        return new

    def _events(self, fired: Array) -> list[dict[str, Array]]:
        """Which margin of each contact fell."""
        events, first = [], 0
        for c in range(len(self.layout.contacts)):
            names = self._names(c)
            events.append({name: fired == first + i for i, name in enumerate(names)})
            first += len(names)
        return events

    def _after_hits(self, before: Moment, y: Array, events: list[dict[str, Array]], new: list[Array]) -> Array:
        """The state after a body hit a stop: there, and with no velocity into it; `new` takes the stop's mode."""
        hits = {c: event["low"] | event["high"] for c, event in enumerate(events) if "low" in event}
        if not hits:
            return y
        n = len(self.layout.coordinates)
        q = list(before.q)
        for c in hits:
            (i,), (low, high) = before.rows[c], self._part(c).stops()
            q[i] = jnp.where(events[c]["low"], low, jnp.where(events[c]["high"], high, q[i]))
            new[self._wall(c)] = jnp.where(events[c]["low"], -1, jnp.where(events[c]["high"], 1, before.mode[self._wall(c)]))
        u = before.stopped(hits)
        y = jnp.concatenate([jnp.stack(q + u), y[2 * n :]])
        if self.energy:
            y = y.at[-1].add(dynamics.stored(before)[0] - dynamics.stored(self.moment(before.t, y, before.mode))[0])
        return y

    def _settle(
        self, before: Moment, now: Moment, y: Array, events: list[dict[str, Array]], fired: Array, new: list[Array]
    ) -> tuple[Array, Array]:
        """The modes of all contacts in the state and with the loads of `now`, written to `new`; the state, at rest where they are; whether
        the modes are consistent."""
        rests, ok = {}, jnp.array(True)
        for group in now.layout.groups:
            # A group that nothing happened to goes on, also at the very start of its motion, at v = 0.
            touched = fired == DEADLINE
            for c in group:
                for event in events[c].values():
                    touched = touched | event
            free = [self._is_free(now, c, before.mode[c], events[c], fired) for c in group]
            at_rest = [self._is_at_rest(before, now, c, events[c]) for c in group]
            # A freewheel at rest holds also while nothing presses it on.
            at_rest = [rest if self._part(c).blocks_backward else rest & ~f for c, f, rest in zip(group, free, at_rest, strict=True)]
            free = [f & ~rest for f, rest in zip(free, at_rest, strict=True)]
            chosen, consistent = self._chosen(before, now, group, at_rest, events)
            if any(self._part(c).bears_torque for c in group):
                # What it holds depends on a torque, and that on the modes.
                for modes in ([STUCK] * len(group), chosen, chosen):
                    there = self._with_modes(now, {c: jnp.where(r, m, now.mode[c]) for c, r, m in zip(group, at_rest, modes, strict=True)})
                    chosen, consistent = self._chosen(before, there, group, at_rest, events)
            ok = ok & (consistent | ~touched)
            for c, off, rest, direction in zip(group, free, at_rest, chosen, strict=True):
                old, v = before.mode[c], now.v_rel[c]
                if self._part(c).stops() is not None:
                    k = self._wall(c)
                    off = off | (_is_frictionless(self._part(c)) & rest & (direction != STUCK))
                    new[k] = jnp.where(rest & (direction == STUCK), now.mode[k], 0)
                goes_on = _slides(old) & (old * v > -self._rounding(now, c))
                moving = jnp.where(goes_on, old, jnp.where(v > 0, FORWARD, BACKWARD))
                if self._part(c).blocks_backward:
                    off = off | (rest & (direction != STUCK) & self._is_off_now(now, c))
                new[c] = mode = jnp.where(touched, jnp.where(off, FREE, jnp.where(rest, direction, moving)), old)
                if has_breaks(self._part(c)):
                    new[self._piece(c)] = self._law_piece(before, now, c, events[c], mode)
                # One that slides on from rest, or begins to, keeps its velocity: how that moves with the parameters counts.
                came = (old == STUCK) | events[c]["forward"] | (mode == STUCK) | (_slides(old) & (mode == -old))
                rests[c] = touched & rest & ~off & came
            if now.layout.contacts[
                group[0]
            ].redundant:  # those that hold say how fast the others slide, a rounding before they turn as well
                held = jnp.any(jnp.stack([new[c] == STUCK for c in group]))
                rests |= {c: rests[c] & (~held | (new[c] == STUCK)) for c in group}
                for c in group:
                    against = held & _slides(new[c]) & (new[c] * now.v_rel[c] < -self._rounding(now, c))
                    new[c] = jnp.where(touched & against, -new[c], new[c])
                    if has_breaks(self._part(c)):
                        new[self._piece(c)] = self._law_piece(before, now, c, events[c], new[c])
            for c in group:
                if self._part(c).bears_torque:
                    new[self._side(c)] = self._new_side(now, c, {d: new[d] for d in group}, events[c], touched)
        n = len(self.layout.coordinates)
        return jnp.concatenate([y[:n], jnp.stack(now.stopped(rests)), y[2 * n :]]) if rests else y, ok

    def _is_at_rest(self, before: Moment, now: Moment, c: int, event: dict[str, Array]) -> Array:
        """Whether contact c, if it is pressed on, has no velocity."""
        old, rounding = before.mode[c], self._rounding(now, c)
        # The margin of another that slides along with it falls at a rounding below 0. What is stuck has what the integration left of its
        # velocity, unless that jumps.
        still = jnp.abs(now.v_rel[c]) <= 10 * rounding
        still = jnp.where(old == STUCK, jnp.abs(now.v_rel[c] - before.v_rel[c]) <= 1e4 * rounding, still)
        stops = event["forward"] & (old != STUCK)
        if self._part(c).blocks_backward:
            stops = stops | (now.v_rel[c] < 0)
        for name in ("low", "high"):
            stops = stops | event.get(name, jnp.array(False))
        return stops | still

    def _chosen(
        self, before: Moment, now: Moment, group: tuple[int, ...], at_rest: list[Array], events: list[dict[str, Array]]
    ) -> tuple[list[Array], Array]:
        """For each contact of a group that is at rest whether and in which direction it begins to slide; whether that is consistent."""
        hold, slide = {}, {}
        for m, name in ((-1, "backward"), (1, "forward")):
            hold[m], slide[m] = [], []
            for c in group:
                old, part = before.mode[c], self._part(c)
                low, most = now.begins(c, m), now.capacity(c, m)
                # A contact that was stuck leaves it by its own margin, located in time, unless a switch of a drive throws it off.
                most = jnp.where(old == STUCK, most * (1 + 1e-9), jnp.where((old == m) & ~events[c]["forward"], low, most))
                most = jnp.where((old == STUCK) & events[c][name], low, most)
                if part.stops() is not None:
                    most = jnp.where(now.mode[self._wall(c)] == m, jnp.inf, most)
                hold[m].append(most)
                slide[m].append(low)
        if len(group) == 1:
            (c,) = group
            load = now.slip(c, now.unheld) / now.compliance[c][c]
            leaves = jnp.where(load > hold[1][0], FORWARD, jnp.where(load < -hold[-1][0], BACKWARD, STUCK))
            return [self._released(before, c, events[c], leaves)], jnp.array(True)
        others = [jnp.where(rest, 0.0, now.sliding(c)) for c, rest in zip(group, at_rest, strict=True)]
        pull = [now.slip(c, now.unheld) for c in group]
        matrix = [[now.compliance[c].get(d, jnp.zeros_like(now.t)) for d in group] for c in group]
        b = [p - sum(g * f for g, f in zip(row, others, strict=True)) for p, row in zip(pull, matrix, strict=True)]
        share = now.shares(group)
        stack = lambda rows: jax.lax.stop_gradient(jnp.stack(rows))  # noqa: E731
        found = modes_at_rest(
            jnp.stack([stack(row) for row in matrix]), stack(b), (stack(hold[-1]), stack(hold[1])), (stack(slide[-1]), stack(slide[1])),
            stack(share), jnp.stack(at_rest),
        )  # fmt: skip
        modes = found.modes
        return [self._released(before, c, events[c], modes[i]) for i, c in enumerate(group)], found.ok

    def _released(self, before: Moment, c: int, event: dict[str, Array], chosen: Array) -> Array:
        """One that was stuck and whose margin fell leaves in that direction, for the value of the margin is a rounding then."""
        stuck = before.mode[c] == STUCK
        return jnp.where(stuck & event["forward"], FORWARD, jnp.where(stuck & event["backward"], BACKWARD, chosen))

    def _with_modes(self, now: Moment, modes: dict[int, Array]) -> Moment:
        """The same moment with other modes of some contacts."""
        mode, direction = now.mode, list(now.direction)
        for c, m in modes.items():
            mode = mode.at[c].set(m)
            direction[c] = jnp.where(mode[c] == FREE, 0, mode[c])
        return dataclasses.replace(now, mode=mode, direction=direction)

    def _new_side(self, now: Moment, c: int, modes: dict[int, Array], event: dict[str, Array], touched: Array) -> Array:
        """The line that the friction of contact c is on in the new modes: the one that the torque itself then lies on."""
        there, old = self._with_modes(now, modes), now.side[c]
        first = dataclasses.replace(there, side=[jnp.asarray(1) if d == c else side for d, side in enumerate(there.side)])
        found = jnp.where(event["side"], -old, jnp.where(first.side_margin(c) >= 0, 1, -1))
        return jnp.where(touched & _slides(modes[c]), found, old)

    def _law_piece(self, before: Moment, now: Moment, c: int, event: dict[str, Array], mode: Array) -> Array:
        """The piece of its law that contact c is on in its new mode."""
        old, direction = before.mode[c], jnp.where(_slides(mode), mode, 0)
        begun = jnp.searchsorted(edges(self._part(c), direction)[1:-1], direction * now.v_rel[c], side="right")
        step = jnp.where(event["faster"], 1, 0) - jnp.where(event["slower"], 1, 0)
        return jnp.where(_slides(old) & (mode == old), before.mode[self._piece(c)] + step, begun)

    # -- one contact -----------------------------------------------------------------------------------------------

    def _margins(self, now: Moment, c: int) -> dict[str, Array]:
        """The margins of contact `c`, by name. All start a rounding above 0, so that none of a new mode is found at 0."""
        m, part = now.mode[c], self._part(c)
        eps = 500 * jnp.finfo(now.t.dtype).eps
        slides, inf = _slides(m), jnp.full_like(now.t, jnp.inf)
        v = now.direction[c] * now.v_rel[c]
        forward, backward = (jnp.where(m == STUCK, reserve, inf) for reserve in self._reserves(now, c))
        margins = {}
        if part.stops() is not None:
            wall, s = now.mode[self._wall(c)], now.place(c)
            forward, backward = jnp.where(wall == 1, inf, forward), jnp.where(wall == -1, inf, backward)
            low, high = part.stops()
            room_low, room_high = s - low + eps, high - s + eps
            margins["low"] = jnp.where((m == BACKWARD) | (m == FREE), room_low, inf)
            margins["high"] = jnp.where((m == FORWARD) | (m == FREE), room_high, inf)
        # While sliding, "forward" is the margin of the velocity: the two never matter at once.
        if part.blocks_backward:
            slides, v = m != STUCK, now.v_rel[c]
        margins["forward"] = jnp.where(slides, v + self._rounding(now, c), forward)
        margins["backward"] = backward
        if has_breaks(part):
            k, ends = now.piece[c], edges(part, now.direction[c])
            margins["faster"] = jnp.where(slides, ends[k + 1] - v + eps, inf)
            margins["slower"] = jnp.where(slides, v - ends[k] + eps, inf)
        if part.bears_torque:
            size = jax.lax.stop_gradient(jnp.abs(now.handed_on(c)))
            margins["side"] = jnp.where(slides, now.side_margin(c) + eps * (size + now.share(c)), inf)
        if now.normal[c] is not None:
            margin = jnp.where(m == FREE, -now.normal[c], now.normal[c]) + eps * part.fn_max
            never = part.fn_max <= 0  # nothing presses it on, ever
            if part.blocks_backward:  # stuck, it holds either way
                never = never | (m == STUCK)
            margins["normal"] = jnp.where(never, inf, margin)
        return margins

    def _rounding(self, now: Moment, c: int) -> Array:
        """A velocity that is 0 but for rounding."""
        eps, contact = 500 * jnp.finfo(now.t.dtype).eps, now.layout.contacts[c]
        least = jnp.asarray(min(eps, 1e-9))  # in 32 bits `eps` is no small velocity
        if contact.alone and (contact.support is None or contact.support.body is None):
            return least
        ends = [now.v[flange.body] for flange in (contact.flange, contact.support) if flange is not None and flange.body is not None]
        return least + eps * jax.lax.stop_gradient(sum((jnp.abs(v) for v in ends), jnp.zeros_like(now.t)))

    def _reserves(self, now: Moment, c: int) -> tuple[Array, Array]:
        """How much more load a stuck contact holds, forward and backward."""
        holds, most_f, most_b = now.held_load(c), now.capacity(c, 1), now.capacity(c, -1)
        size = now.share(c) + sum(jnp.abs(now.held_load(d)) for d in now.layout.contacts[c].group)
        rounding = 8 * jnp.finfo(now.t.dtype).eps * jax.lax.stop_gradient(size) + jnp.finfo(now.t.dtype).tiny
        return most_f - holds + rounding, most_b + holds + rounding

    def _is_loaded_by_several(self, c: int) -> bool:
        """Whether the reserves of contact `c` may turn, while it is stuck, elsewhere than at the extrema of one drive.

        So they may under the sum of two drives, a user's function, a given motion, or the pull of another body.
        """
        contact = self.layout.contacts[c]
        if not contact.alone or self.layout.motions:
            return True
        body = contact.flange.body
        loads = [signal_of(self.mechanism, self.layout.signals[j]) for j in self._loads(c)]
        joined = any(body in (a.body, b.body) and None not in (a.body, b.body) for _, a, b in self.layout.compliants)
        varying = [signal for signal in loads if not isinstance(signal, Constant)]
        return joined or len(varying) > 1 or any(isinstance(signal, Function) for signal in varying)

    def _loads(self, c: int) -> list[int]:
        """The signals that load contact `c` directly or press on it."""
        contact = self.layout.contacts[c]
        if not contact.alone or self.layout.motions:
            return list(range(len(self.layout.signals)))
        pressing = [] if contact.signal is None else [contact.signal]
        return [j for _, flange, j in self.layout.forces if flange.body == contact.flange.body and j is not None] + pressing

    def _names(self, c: int) -> list[str]:
        """The names of the margins of contact `c`."""
        part, presses = self._part(c), self.layout.contacts[c].signal is not None
        stops, breaks = part.stops() is not None, has_breaks(part)
        return (
            ["low", "high"] * stops
            + ["forward", "backward"]
            + ["faster", "slower"] * breaks
            + ["side"] * part.bears_torque
            + ["normal"] * presses
        )

    def _is_free(self, now: Moment, c: int, old: Array, event: dict[str, Array], fired: Array) -> Array:
        contact, part = now.layout.contacts[c], self._part(c)
        if contact.signal is not None:
            by_value = self._is_off_now(now, c)
            # A margin that fell is at 0 but for a rounding: the value says nothing then.
            crossed = jnp.where(event["normal"], old != FREE, old == FREE)
            unknown = (old == STUCK) if part.blocks_backward else jnp.array(False)
            return jnp.where((fired == DEADLINE) | unknown, by_value, crossed)
        if part.stops() is not None:
            return _is_frictionless(part) & (now.mode[self._wall(c)] == 0)
        return jnp.array(False)

    def _is_off_now(self, now: Moment, c: int) -> Array:
        signal = now.layout.contacts[c].signal
        assert signal is not None
        return self._is_off(now.t, c, now.mode[self._signal(signal)])

    def _is_off(self, t: Array, c: int, k: Array) -> Array:
        """Whether piece `k` of its signal presses contact `c` on no more, from time `t` on."""
        contact = self.layout.contacts[c]
        assert contact.signal is not None
        signal = signal_of(self.mechanism, self.layout.signals[contact.signal])
        value, rate = jax.jvp(lambda t: signal.on_piece(t, k), (t,), (jnp.ones_like(t),))
        zero = 500 * jnp.finfo(t.dtype).eps  # a switch to 0 may be a rounding off
        return (value < -zero) | ((value <= zero) & (rate <= 0)) | (self._part(c).fn_max <= 0)

    def _part(self, c: int) -> Any:
        return self.mechanism.parts[self.layout.contacts[c].part]

    # -- places in the mode vector ---------------------------------------------------------------------------------

    def _wall(self, c: int) -> int:
        return len(self.layout.contacts) + sum(self._part(d).stops() is not None for d in range(c))

    def _piece(self, c: int) -> int:
        return self._wall(len(self.layout.contacts)) + sum(has_breaks(self._part(d)) for d in range(c))

    def _side(self, c: int) -> int:
        return self._piece(len(self.layout.contacts)) + sum(self._part(d).bears_torque for d in range(c))

    def _signal(self, j: int) -> int:
        return self._side(len(self.layout.contacts)) + j

    def moment(self, t: Array, y: Array, mode: Array) -> Moment:
        """All that is known of the mechanism at time `t`, in state `y` and `mode`."""
        pieces = [mode[self._piece(c)] if has_breaks(self._part(c)) else None for c in range(len(self.layout.contacts))]
        sides = [mode[self._side(c)] if self._part(c).bears_torque else None for c in range(len(self.layout.contacts))]
        signals = [mode[self._signal(j)] for j in range(len(self.layout.signals))]
        return dynamics.moment(self.mechanism, self.layout, t, y, mode, signals, pieces, sides)


def _whole(numbers: list[Any]) -> Array:
    return jnp.stack([jnp.asarray(k, jnp.int32) for k in numbers]) if numbers else jnp.zeros(0, jnp.int32)


def _is_frictionless(part: Any) -> Array:
    return (part.law(1).f0 <= 0) & (part.F_prop <= 0) & (part.f_neg is None)


def _slides(m: Array) -> Array:
    return (m == FORWARD) | (m == BACKWARD)
