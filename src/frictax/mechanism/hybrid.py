"""A mechanism as a hybrid system: smooth motion, margins of its modes, and what happens at an event."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from frictax.contacts import Mode
from frictax.contacts.contact import edges, f0_max, has_breaks
from frictax.mechanism import dynamics
from frictax.mechanism.dynamics import Moment
from frictax.mechanism.mechanism import Layout, Mechanism, layout, signal_of
from frictax.mechanism.system import DEADLINE, AbstractHybridSystem
from frictax.signals import Constant, Function
from frictax.signals.function import longest_step

BACKWARD, STUCK, FORWARD, FREE = (int(m) for m in (Mode.BACKWARD, Mode.STUCK, Mode.FORWARD, Mode.FREE))


class MechanicalSystem(AbstractHybridSystem):
    """The equations of a `Mechanism`.

    State: positions, velocities and, with ``energy=True``, the work of the drives, the losses by friction and by dampers,
    and the losses at stops [J].
    Mode: a mode for each contact, then for each stop -1, 0, 1 (at the lower one, at none, at the upper one), then the piece of
    each law that has corners, then the piece of each signal.
    """

    mechanism: Mechanism
    energy: bool = eqx.field(static=True, default=False)

    @property
    def layout(self) -> Layout:
        return layout(self.mechanism)

    # -- the contract with the engine ------------------------------------------------------------------------------

    def flow(self, t: Float[Array, ""], y: Float[Array, " n"], mode: Int[Array, " m"], args: Any) -> Float[Array, " n"]:
        del args
        now = self.moment(t, y, mode)
        rates = [*now.v, *dynamics.accelerations(now)]
        return jnp.stack(rates + dynamics.powers(now) if self.energy else rates)

    def guard(self, t: Float[Array, ""], y: Float[Array, " n"], mode: Int[Array, " m"], args: Any) -> Float[Array, " g"]:
        del args
        now = self.moment(t, y, mode)
        by_contact = [self._margins(now, c) for c in range(len(now.layout.contacts))]
        margins = [named[name] for c, named in enumerate(by_contact) for name in self._names(c)]
        return jnp.stack(margins) if margins else jnp.ones(1, y.dtype)

    def turning(self, t: Float[Array, ""], y: Float[Array, " n"], mode: Int[Array, " m"], args: Any) -> tuple[Float[Array, ""], ...]:
        del args
        now = self.moment(t, y, mode)
        a = dynamics.accelerations(now)
        # Where the speed of a sliding contact is least.
        turns = [jnp.where(_slides(now.mode[c]), now.direction[c] * a[x.body], -1.0) for c, x in enumerate(now.layout.contacts)]
        # Where a stuck one holds least. One that a single drive loads is seen to by that drive's extrema (`deadline`).
        watched = [c for c in range(len(now.layout.contacts)) if self._is_loaded_by_several(c)]
        if watched:
            reserves = lambda ti, yi: [self._reserves(self.moment(ti, yi, mode), c) for c in watched]  # noqa: E731
            _, rates = jax.jvp(reserves, (t, y), (jnp.ones_like(t), self.flow(t, y, mode, None)))
            turns += [jnp.where(mode[c] == STUCK, rate, -1.0) for c, both in zip(watched, rates, strict=True) for rate in both]
        # Where a free body between stops is nearest to one of them; a sliding one comes nearest when it stops.
        walled = [(c, now.v[x.body]) for c, x in enumerate(now.layout.contacts) if self.mechanism.parts[x.part].stops() is not None]
        turns += [jnp.where(now.mode[c] == FREE, sign * v, -1.0) for c, v in walled for sign in (1, -1)]
        return tuple(turns)

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
            new[self._signal(j)] = after = signal.passed(t, k)
            for c, contact in enumerate(self.layout.contacts):
                if contact.signal == j:  # what presses a contact on may set it free: that is for `jump`
                    goes_on = self._is_off(t, c, after) == (mode[c] == FREE)
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
        lay = self.layout
        new = list(mode)
        # Of several switches at one time, each has a phase of no length and its own derivative.
        switches = jnp.argmin(jnp.stack(self._ends(mode))) - 1
        for j, place in enumerate(lay.signals):
            signal, k = signal_of(self.mechanism, place), mode[self._signal(j)]
            passed = jnp.where(signal.turns(k), jnp.maximum(k, signal.piece(t)), k)
            new[self._signal(j)] = jnp.where((fired == DEADLINE) & (switches == j), jnp.maximum(k + 1, passed), passed)
        before = self.moment(t, y, mode)
        s, v, impact = list(before.s), list(before.v), jnp.zeros_like(t)
        events, first = [], 0
        for c in range(len(lay.contacts)):
            names = self._names(c)
            events.append({name: fired == first + i for i, name in enumerate(names)})
            first += len(names)
            i = lay.contacts[c].body
            at_low, at_high = (events[c].get(name, jnp.array(False)) for name in ("low", "high"))
            hit = at_low | at_high
            rest = hit | (events[c]["forward"] & _slides(mode[c])) | (mode[c] == STUCK)
            impact = impact + jnp.where(hit, 0.5 * dynamics.masses(before)[i] * v[i] ** 2, 0.0)
            v[i] = jnp.where(rest, 0.0, v[i])
            stops = self.mechanism.parts[lay.contacts[c].part].stops()
            if stops is not None:
                s[i] = jnp.where(at_low, stops[0], jnp.where(at_high, stops[1], s[i]))
                k = self._wall(c)
                new[k] = jnp.where(at_low, -1, jnp.where(at_high, 1, mode[k]))
        n = len(lay.bodies)
        y = jnp.concatenate([jnp.stack(s + v), y[2 * n :]]) if self.energy else jnp.stack(s + v)
        if self.energy:
            y = y.at[-1].add(impact)
        after = self.moment(t, y, _whole(new))
        for c in range(len(lay.contacts)):
            for k, value in self._switch(before, after, c, events[c], fired).items():
                new[k] = value
        return y, _whole(new), jnp.zeros((), jnp.int32)

    def start(self, t: Float[Array, ""]) -> tuple[Float[Array, " n"], Int[Array, " m"]]:
        """State and mode at the time `t` [s] at which the run begins."""
        lay, parts = self.layout, self.mechanism.parts
        y = jnp.stack([parts[i].s for i in lay.bodies] + [parts[i].v for i in lay.bodies]).astype(float)
        y = jnp.concatenate([y, jnp.zeros(4, y.dtype)]) if self.energy else y
        pieces = [signal_of(self.mechanism, place).piece(t) for place in lay.signals]
        laws = sum(has_breaks(parts[c.part]) for c in lay.contacts)
        walls = [c for c in lay.contacts if parts[c.part].stops() is not None]
        mode = [jnp.asarray(FREE)] * len(lay.contacts) + [jnp.asarray(0)] * (len(walls) + laws) + pieces
        for c in walls:
            low, high = parts[c.part].stops()
            s, v = y[c.body], y[len(lay.bodies) + c.body]
            mode[self._wall(lay.contacts.index(c))] = jnp.where((s <= low) & (v == 0), -1, jnp.where((s >= high) & (v == 0), 1, 0))
        now = self.moment(t, y, _whole(mode))
        for c in range(len(lay.contacts)):
            nothing = {name: jnp.array(False) for name in self._names(c)}
            for k, value in self._switch(now, now, c, nothing, jnp.asarray(DEADLINE)).items():
                mode[k] = value
            # The value is 0 already; this makes it one that no start velocity moves: a small one would come to rest at once.
            i = len(lay.bodies) + lay.contacts[c].body
            y = y.at[i].set(jnp.where(mode[c] == STUCK, 0.0, y[i]))
        return y, _whole(mode)

    # -- one contact -----------------------------------------------------------------------------------------------

    def _margins(self, now: Moment, c: int) -> dict[str, Array]:
        """The margins of contact `c`, by name. All start a rounding above 0, so that none of a new mode is found at 0."""
        contact, m = now.layout.contacts[c], now.mode[c]
        part, i = self.mechanism.parts[contact.part], contact.body
        eps = 500 * jnp.finfo(now.t.dtype).eps
        slides, inf = _slides(m), jnp.full_like(now.t, jnp.inf)
        v = now.direction[c] * now.v[i]
        forward, backward = (jnp.where(m == STUCK, reserve, inf) for reserve in self._reserves(now, c))
        margins = {}
        if part.stops() is not None:
            wall = now.mode[self._wall(c)]
            forward, backward = jnp.where(wall == 1, inf, forward), jnp.where(wall == -1, inf, backward)
            low, high = part.stops()
            room_low, room_high = now.s[i] - low + eps, high - now.s[i] + eps
            margins["low"] = jnp.where((m == BACKWARD) | (m == FREE), room_low, inf)
            margins["high"] = jnp.where((m == FORWARD) | (m == FREE), room_high, inf)
        # While sliding, "forward" is the margin of the velocity: the two never matter at once. In 32 bits `eps` is no small velocity.
        margins["forward"] = jnp.where(slides, v + min(eps, 1e-9), forward)
        margins["backward"] = backward
        if has_breaks(part):
            k, ends = now.piece[c], edges(part, now.direction[c])
            margins["faster"] = jnp.where(slides, ends[k + 1] - v + eps, inf)
            margins["slower"] = jnp.where(slides, v - ends[k] + eps, inf)
        if now.normal[c] is not None:
            margin = jnp.where(m == FREE, -now.normal[c], now.normal[c]) + eps * part.fn_max
            margins["normal"] = jnp.where(part.fn_max > 0, margin, inf)  # nothing presses it on, ever
        return margins

    def _reserves(self, now: Moment, c: int) -> tuple[Array, Array]:
        """How much more load a stuck contact holds, forward and backward."""
        contact = now.layout.contacts[c]
        part, holds = self.mechanism.parts[contact.part], now.load[contact.body]
        most_f, most_b = (f0_max(part, d, now.scale[c]) for d in (1, -1))
        rounding = jax.lax.stop_gradient(8 * jnp.finfo(now.t.dtype).eps * (most_f + most_b + jnp.abs(holds))) + jnp.finfo(now.t.dtype).tiny
        return most_f - holds + rounding, most_b + holds + rounding

    def _is_loaded_by_several(self, c: int) -> bool:
        """Whether the reserves of contact `c` may turn, while it is stuck, elsewhere than at the extrema of one drive.

        So they may under the sum of two drives, a user's function, or the pull of another body.
        """
        body = self.layout.contacts[c].body
        loads = [signal_of(self.mechanism, self.layout.signals[j]) for j in self._loads(c)]
        joined = any(body in (a.body, b.body) and None not in (a.body, b.body) for _, a, b in self.layout.compliants)
        varying = [signal for signal in loads if not isinstance(signal, Constant)]
        return joined or len(varying) > 1 or any(isinstance(signal, Function) for signal in varying)

    def _loads(self, c: int) -> list[int]:
        """The signals that load contact `c` directly or press on it."""
        contact = self.layout.contacts[c]
        pressing = [] if contact.signal is None else [contact.signal]
        return [j for _, flange, j in self.layout.forces if flange.body == contact.body and j is not None] + pressing

    def _names(self, c: int) -> list[str]:
        """The names of the margins of contact `c`."""
        contact = self.layout.contacts[c]
        part = self.mechanism.parts[contact.part]
        stops, breaks = part.stops() is not None, has_breaks(part)
        return ["low", "high"] * stops + ["forward", "backward"] + ["faster", "slower"] * breaks + ["normal"] * (contact.signal is not None)

    def _switch(self, before: Moment, now: Moment, c: int, event: dict[str, Array], fired: Array) -> dict[int, Array]:
        """The new modes of contact `c` after `event`, in the state and with the loads of `now`."""
        contact, old = now.layout.contacts[c], before.mode[c]
        part, i = self.mechanism.parts[contact.part], contact.body
        free = self._is_free(now, c, old, event, fired)
        # Another contact's event leaves a sliding one sliding, also at the very start of its motion, at v = 0.
        came_to_rest = event["forward"] | event.get("low", False) | event.get("high", False)
        at_rest = jnp.where(_slides(old), came_to_rest, now.v[i] == 0) & ~free
        most_f, most_b = (f0_max(part, d, now.scale[c]) for d in (1, -1))
        # A contact that was stuck leaves it by its own margin, located in time, unless a switch of a drive throws it off.
        slack = jnp.where(old == STUCK, 1 + 1e-9, 1.0)
        forward, backward = now.load[i] > slack * most_f, now.load[i] < -slack * most_b
        forward = jnp.where(old == STUCK, event["forward"] | forward, forward)
        backward = jnp.where(old == STUCK, event["backward"] | backward, backward)
        changes: dict[int, Array] = {}
        if part.stops() is not None:
            k = self._wall(c)
            wall = now.mode[k]
            forward, backward = forward & (wall != 1), backward & (wall != -1)
            changes[k] = jnp.where(at_rest & ~forward & ~backward, wall, 0)
            free = free | (_is_frictionless(part) & at_rest & (forward | backward))
        rest = jnp.where(forward, FORWARD, jnp.where(backward, BACKWARD, STUCK))
        moving = jnp.where(_slides(old), old, jnp.where(now.v[i] > 0, FORWARD, BACKWARD))
        mode = jnp.where(free, FREE, jnp.where(at_rest, rest, moving))
        changes[c] = mode
        if has_breaks(part):
            k = self._piece(c)
            direction = jnp.where(_slides(mode), mode, 0)
            inner = edges(part, direction)[1:-1]
            begun = jnp.searchsorted(inner, direction * now.v[i], side="right")
            step = jnp.where(event["faster"], 1, 0) - jnp.where(event["slower"], 1, 0)
            goes_on = _slides(old) & (mode == old)
            changes[k] = jnp.where(goes_on, before.mode[k] + step, begun)
        return changes

    def _is_free(self, now: Moment, c: int, old: Array, event: dict[str, Array], fired: Array) -> Array:
        contact = now.layout.contacts[c]
        part = self.mechanism.parts[contact.part]
        if contact.signal is not None:
            by_value = self._is_off(now.t, c, now.mode[self._signal(contact.signal)])
            # A margin that fell is at 0 but for a rounding: the value says nothing then.
            crossed = jnp.where(event["normal"], old != FREE, old == FREE)
            return jnp.where(fired == DEADLINE, by_value, crossed)
        if part.stops() is not None:
            return _is_frictionless(part) & (now.mode[self._wall(c)] == 0)
        return jnp.array(False)

    def _is_off(self, t: Array, c: int, k: Array) -> Array:
        """Whether piece `k` of its signal presses contact `c` on no more, from time `t` on."""
        contact = self.layout.contacts[c]
        assert contact.signal is not None
        signal = signal_of(self.mechanism, self.layout.signals[contact.signal])
        value, rate = jax.jvp(lambda t: signal.on_piece(t, k), (t,), (jnp.ones_like(t),))
        zero = 500 * jnp.finfo(t.dtype).eps  # a switch to 0 may be a rounding off
        return (value < -zero) | ((value <= zero) & (rate <= 0)) | (self.mechanism.parts[contact.part].fn_max <= 0)

    # -- places in the mode vector ---------------------------------------------------------------------------------

    def _wall(self, c: int) -> int:
        lay = self.layout
        return len(lay.contacts) + sum(self.mechanism.parts[x.part].stops() is not None for x in lay.contacts[:c])

    def _piece(self, c: int) -> int:
        lay = self.layout
        return self._wall(len(lay.contacts)) + sum(has_breaks(self.mechanism.parts[x.part]) for x in lay.contacts[:c])

    def _signal(self, j: int) -> int:
        return self._piece(len(self.layout.contacts)) + j

    def moment(self, t: Array, y: Array, mode: Array) -> Moment:
        pieces = [mode[self._piece(c)] if has_breaks(self.mechanism.parts[x.part]) else None for c, x in enumerate(self.layout.contacts)]
        signals = [mode[self._signal(j)] for j in range(len(self.layout.signals))]
        return dynamics.moment(self.mechanism, self.layout, t, y, mode, signals, pieces)


def _whole(numbers: list[Any]) -> Array:
    return jnp.stack([jnp.asarray(k, jnp.int32) for k in numbers]) if numbers else jnp.zeros(0, jnp.int32)


def _is_frictionless(part: Any) -> Array:
    return (part.law(1).f0 <= 0) & (part.F_prop <= 0) & (part.f_neg is None)


def _slides(m: Array) -> Array:
    return (m == FORWARD) | (m == BACKWARD)
