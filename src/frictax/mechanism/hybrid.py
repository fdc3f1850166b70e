"""A mechanism as a hybrid system: smooth motion, margins of its modes, and what happens at an
event.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from frictax.contacts.mode import FREE, STUCK, mode_vector
from frictax.engine.system import DEADLINE, AbstractHybridSystem
from frictax.parameters import Integer, Modes, Number, State
from frictax.parameters.arrays import constant
from frictax.signals.signal import first_end, moved_on

from . import dynamics
from .bristle_events import (
    begun_pressed,
    element_margins,
    joined,
    press_margins,
    pressed_anew,
    slipped,
)
from .bristle_steps import passive_step, within_limits
from .contact_margins import all_margins, is_off, longest_steps, rounding
from .energy import heat_flows, powers, stored
from .layout import Layout, layout, signal_of, state_names as state_names
from .mechanism import Mechanism, unnamed
from .mode_transition import at_rest, fallen, settled, stopped
from .snapshot import Snapshot
from .sparse import product


class MechanicalSystem(AbstractHybridSystem):
    """The equations of a `Mechanism`.

    State: the coordinates, their rates, the temperatures of thermal nodes, the forces in bristles
    and, with ``energy=True``, the heat that friction and dampers give these and that which leaves
    to the surroundings (where there are nodes), the work of the drives, the losses by friction and
    by dampers, and the losses at stops [J]. The coordinates are the positions of all bodies that
    follow no gear and no motion. Mode: a mode for each contact, then for each stop -1, 0, 1 (at the
    lower one, at none, at the upper one), then the piece of each law that has corners, then, for
    friction that depends on a torque, on which of two lines it is, then, where the motion presses a
    contact on from either side, which it is, then of each element of a bristle in which direction
    it slips, 0 while it sticks, then what presses contacts with a bristle on, then the piece of
    each gap, and that of each signal.
    """

    mechanism: Mechanism
    energy: bool = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)

    def __init__(self, mechanism: Mechanism, energy: bool = False) -> None:
        self.mechanism = mechanism
        self.energy = energy
        self.layout = layout(mechanism)

    @property
    def unnamed(self) -> "MechanicalSystem":
        """The same equations, whatever the parts are called."""
        return MechanicalSystem(unnamed(self.mechanism), self.energy)

    # -- the contract with the engine

    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> State:
        return self._rates(self.snapshot(t, y, mode))

    def _rates(self, now: Snapshot) -> Array:
        rates = [*now.u, *now.coordinate_acceleration]
        heat = []
        if self.layout.nodes:
            into, made, left = heat_flows(now)
            rates += [
                power / now.mechanism.parts[node.part].C
                for power, node in zip(into, self.layout.nodes, strict=True)
            ]
            heat = [made, left] if self.energy else []
        rates += now.bristle_rate + heat
        return joined(rates + powers(now) if self.energy else rates)

    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        now = self.snapshot(t, y, mode)
        found = all_margins(now)
        for k in self.layout.gaps:
            found += self._gap(k).margins(
                *dynamics.stretch(now, k), now.gap_piece(k), dynamics.rounding(now, k)
            )
        found += element_margins(now) + press_margins(now)
        found = found or [jnp.ones((), y.dtype)]
        # A load that is not finite shows in the reserve of what is stuck or in the rate of what
        # moves; what presses on a contact that holds, and what is given to a body, may show
        # nowhere.
        hidden = [n for n in now.normal + now.bristle_normal if n is not None] + (
            now.drive if self.layout.motions else []
        )
        if hidden:
            found[0] = found[0] + 0.0 * constant(sum(hidden))
        return joined(found)

    def deadline(self, mode: Modes, args: PyTree) -> Number:
        return first_end(self._ends(mode))

    def _ends(self, mode: Array) -> list[Array]:
        """The time at which each signal's piece ends; inf for a mere extremum that matters to no
        contact.
        """
        contacts, ends = self.layout.contacts, []
        stuck = jnp.any(mode[: len(contacts)] == STUCK) if contacts else jnp.array(False)
        for j, (signal, k) in enumerate(self._signals(mode)):
            presses = any(c.signal == j for c in (*contacts, *self.layout.bristles))
            ends.append(jnp.where(signal.turns(k) & ~(stuck | presses), jnp.inf, signal.end(k)))
        return ends

    def _signals(self, mode: Array) -> list[tuple[Any, Array]]:
        """The signals, each with the piece that it is on."""
        lay = self.layout
        signals = [signal_of(self.mechanism, place) for place in lay.signals]
        return [(signal, mode[lay.first_signal + j]) for j, signal in enumerate(signals)]

    def tick(self, t: Number, mode: Modes, args: PyTree) -> Modes:
        new = list(mode)
        for j, (signal, k) in enumerate(self._signals(mode)):
            after = signal.passed(t, k)
            # where its velocity may jump, that is for `jump`
            if any(j == motion for _, _, motion in self.layout.motions):
                after = jnp.where(signal.turns(k), after, k)
            new[self.layout.first_signal + j] = after
            for c, contact in enumerate(self.layout.contacts):
                # what presses a contact on may set it free: that is for `jump`
                if contact.signal == j:
                    off = is_off(self.mechanism, self.layout, t, contact, after)
                    goes_on = off == (mode[c] == FREE)
                    if self.mechanism.parts[contact.part].blocks_backward:
                        goes_on = goes_on | (mode[c] == STUCK)
                    after = jnp.where(goes_on, after, k)
                    new[self.layout.first_signal + j] = after
            place = self.layout.first_press
            for contact in self.layout.bristles:
                if contact.signal == j:
                    off = is_off(self.mechanism, self.layout, t, contact, after)
                    after = jnp.where(off == (mode[place] == 0), after, k)
                    new[self.layout.first_signal + j] = after
                place += contact.is_pressed
        return mode_vector(new)

    def known_switches(self, args: PyTree, on_samples: bool) -> int:
        places = enumerate(self.layout.signals)
        motions = [signal for _, _, signal in self.layout.motions]
        met = [place for j, place in places if j in motions or not on_samples]
        return sum(signal_of(self.mechanism, place).known_switches() for place in met)

    def staying(self, mode: Modes, args: PyTree) -> "MechanicalSystem":
        places, signals = self.layout.signals, self._signals(mode)
        return eqx.tree_at(
            lambda s: [signal_of(s.mechanism, place) for place in places],
            self,
            [signal.staying(k) for signal, k in signals],
        )

    def is_smooth(self, args: PyTree) -> bool:
        lay, parts = self.layout, self.mechanism.parts
        by_elements = [c for c, n in zip(lay.bristles, lay.elements, strict=True) if n]
        turning = [*lay.contacts, *by_elements]  # which turn by an event
        laws = [parts[contact.part].law(direction) for contact in turning for direction in (1, -1)]
        # A body that rubs on what stands still, and always, turns back by an event alone.
        ends = [[b for b, _ in c.ends] for c in lay.contacts if not c.is_pressed]
        sources = [parts[i] for i, flange, _ in lay.forces if [flange.body] not in ends]
        gaps = [self._gap(k) for k in lay.gaps]
        return all(part.is_smooth for part in (*laws, *gaps, *sources))

    def is_stiff(self, args: PyTree) -> bool:
        return bool(self.layout.bristles)

    def swings(self, args: PyTree) -> bool:
        return all(self.layout.elements)

    def sound(
        self, t0: Number, y0: State, t1: Number, y1: State, mode: Modes, args: PyTree
    ) -> Bool[Array, ""]:
        return within_limits(self.snapshot(t0, y0, mode), self.snapshot(t1, y1, mode))

    def safe_step(self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree) -> State:
        def at(t: Array, y: Array, imposed: Any) -> Snapshot:
            return dynamics.MachineSnapshot(self.mechanism, self.layout, t, y, mode, imposed)

        return passive_step(at, self._rates, t0, t1, y0)

    def longest_step(self, mode: Modes, span: Number, args: PyTree) -> Any:
        lay, bounds = self.layout, longest_steps(self.mechanism, self.layout, span)
        if not bounds or not (lay.contacts or lay.bristles):
            return None
        presses = any(c.is_pressed for c in (*lay.contacts, *lay.bristles))
        stuck = jnp.any(mode[: len(lay.contacts)] == STUCK) | presses
        return jnp.where(stuck, jnp.min(jnp.stack(bounds)), jnp.inf)

    def jump(
        self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree
    ) -> tuple[State, Modes, Integer]:
        # What is chosen has no derivative; the state has.
        still, t_, y_ = constant((self, t, y))
        new, events = (
            still._switched(t_, mode, fired),
            fallen(self.layout, self.mechanism.parts, fired),
        )
        for contact, event in zip(self.layout.contacts, events, strict=True):
            if contact.face is not None:
                new[contact.face] = jnp.where(
                    event["normal"], -mode[contact.face], mode[contact.face]
                )
        before = still.snapshot(t_, y_, mode)
        fell = [
            fired == sum(len(event) for event in events) + i
            for i in range(2 * len(self.layout.gaps))
        ]
        for i, k in enumerate(self.layout.gaps):
            at = *dynamics.stretch(before, k), before.gap_piece(k)
            new[self.layout.first_gap + i] = still._gap(k).following(
                *at, fell[2 * i], fell[2 * i + 1]
            )
        y = self._after_hits(t, y, mode, events, new)
        if any(self.layout.elements):
            first = sum(len(event) for event in events) + 2 * len(self.layout.gaps)
            y = slipped(self.snapshot(t, y, mode), y, fired - first, new, self.accounts)
        if any(contact.is_pressed for contact in self.layout.bristles):
            presses = fired - still.guard(t_, y_, mode, args).shape[0]
            at = lambda mode, y=y: self.snapshot(t, y, mode_vector(mode))  # noqa: E731
            y = pressed_anew(self.snapshot(t, y, mode), at, fired, presses, new, self.energy)
        begun = mode_vector(new)
        # a motion with a corner gives its body energy at once
        if self.energy and self.layout.motions:
            y = y.at[-4].add(
                stored(self.snapshot(t, y, begun))[0] - stored(self.snapshot(t, y, mode))[0]
            )
        y = self._held_forward(t, y, begun, self.energy)
        rests, ok = settled(before, still.snapshot(t_, constant(y), begun), events, fired, new)
        return (
            self._at_rest(t, y, begun, rests),
            mode_vector(new),
            jnp.where(ok, 0, 1).astype(jnp.int32),
        )

    def start(self, t: Number) -> tuple[State, Modes]:
        """State and mode at the time `t` [s] at which the run begins."""
        lay, parts = self.layout, self.mechanism.parts
        at_start = [parts[lay.bodies[b]].at_start() for b in lay.coordinates]
        y = jnp.zeros(0, float)  # of bodies that are moved alone
        if at_start:
            y = jnp.stack([s for s, _ in at_start] + [v for _, v in at_start]).astype(float)
        if lay.nodes:
            y = jnp.concatenate(
                [y, jnp.stack([parts[node.part].T for node in lay.nodes]).astype(y.dtype)]
            )
        bent = [
            jnp.asarray(parts[contact.part].bristle.start(), y.dtype) for contact in lay.bristles
        ]
        y = jnp.concatenate([y, *[f if f.ndim else f[None] for f in bent]])
        y = jnp.concatenate([y, jnp.zeros(self.accounts, y.dtype)])
        pieces = [signal_of(self.mechanism, place).piece(t) for place in lay.signals]
        mode = (
            [jnp.asarray(FREE)] * len(lay.contacts)
            + [jnp.asarray(0)] * (lay.first_signal - len(lay.contacts))
            + pieces
        )
        for contact in lay.contacts:
            for place in (contact.side, contact.face):
                if place is not None:
                    mode[place] = jnp.asarray(1)
        still, t_, y_ = constant((self, t, y))
        now = still.snapshot(t_, y_, mode_vector(mode))
        for c, contact in enumerate(lay.contacts):
            if contact.wall is not None:
                (low, high), s, v = now.part(c).stops(), now.position_of(c), now.v_rel[c]
                mode[contact.wall] = jnp.where(
                    (s <= low) & (v == 0), -1, jnp.where((s >= high) & (v == 0), 1, 0)
                )
            if contact.face is not None:
                mode[contact.face] = jnp.where(now.normal[c] < 0, -1, 1)
        for i, k in enumerate(lay.gaps):
            mode[lay.first_gap + i] = still._gap(k).piece_at(*dynamics.stretch(now, k))
        y = begun_pressed(now, y, mode)
        begun = mode_vector(mode)
        y = self._held_forward(t, y, begun, False)
        now = still.snapshot(t_, constant(y), begun)
        rests, _ = settled(
            now, now, fallen(lay, parts, jnp.asarray(DEADLINE)), jnp.asarray(DEADLINE), mode
        )
        # What is at rest has the value already; this makes it one that no start velocity moves: a
        # small one would come to rest at once.
        return self._at_rest(t, y, begun, rests), mode_vector(mode)

    def states(self) -> tuple[str, ...]:
        return state_names(self.mechanism)

    @property
    def accounts(self) -> int:
        """How many accounts of energy stand at the end of the state vector."""
        return (6 if self.layout.nodes else 4) if self.energy else 0

    def judged_states(self, args: PyTree) -> int | None:
        # Accounts of energy have no part in the motion, so they change no step.
        return -self.accounts or None

    # -- what happens at an event, in its order

    def _switched(self, t: Array, mode: Array, fired: Array) -> list[Array]:
        """The mode with the signals' pieces of time `t`."""
        new = list(mode)
        # Of several switches at one time, each has a phase of no length and its own derivative.
        switches = jnp.argmin(jnp.stack([jnp.asarray(jnp.inf), *self._ends(mode)])) - 1
        for j, (signal, k) in enumerate(self._signals(mode)):
            ends = (fired == DEADLINE) & (switches == j)
            new[self.layout.first_signal + j] = moved_on(signal, k, t, ends)
        return new

    def _after_hits(
        self, t: Array, y: Array, mode: Array, events: list[dict[str, Array]], new: list[Array]
    ) -> Array:
        """The state after a body hit a stop: there, and with no velocity into it; `new` takes the
        stop's mode.
        """
        hits = {c: event["low"] | event["high"] for c, event in enumerate(events) if "low" in event}
        if not hits:
            return y
        n, before = len(self.layout.coordinates), self.snapshot(t, y, mode)
        q = list(before.q)
        for c in hits:
            (i,), (low, high), wall = (
                before.contact_jacobian[c],
                before.part(c).stops(),
                before.contact(c).wall,
            )
            q[i] = jnp.where(events[c]["low"], low, jnp.where(events[c]["high"], high, q[i]))
            assert wall is not None
            new[wall] = jnp.where(events[c]["low"], -1, jnp.where(events[c]["high"], 1, mode[wall]))
        u = stopped(before, hits)
        y = jnp.concatenate([jnp.stack(q + u), y[2 * n :]])
        if self.energy:
            y = y.at[-1].add(stored(before)[0] - stored(self.snapshot(t, y, mode))[0])
        return y

    def _at_rest(self, t: Array, y: Array, mode: Array, rests: dict[int, Array]) -> Array:
        return at_rest(self.snapshot(t, y, mode), y, rests) if rests else y

    def _held_forward(self, t: Array, y: Array, mode: Array, counted: bool) -> Array:
        """The state after freewheels that turn backward, as a start or a given motion may have it,
        came to rest at once; `counted`: with the loss in the accounts.
        """
        parts = [self.mechanism.parts[contact.part] for contact in self.layout.contacts]
        freewheels = [c for c, part in enumerate(parts) if part.blocks_backward]
        if not freewheels:
            return y
        now = self.snapshot(t, y, mode)
        n, locked = len(now.q), {c: jnp.array(False) for c in freewheels}
        for _ in freewheels:  # stopping one may make the next turn backward
            locked = {
                c: before | (now.v_rel[c] < -rounding(now, c)) for c, before in locked.items()
            }
            u = stopped(now, locked)
            y = jnp.concatenate([y[:n], jnp.stack(u), y[2 * n :]])
            after = self.snapshot(t, y, mode)
            if counted:
                change = {i: b - a for i, (a, b) in enumerate(zip(now.u, u, strict=True))}
                lost = 0.5 * sum(x * product(now.mass_matrix[i], change) for i, x in change.items())
                # What a given motion does in no time is the rest of the balance.
                y = (
                    y.at[-1]
                    .add(lost)
                    .at[-4]
                    .add(
                        sum(stored(after)) - sum(stored(now)) + lost if self.layout.motions else 0.0
                    )
                )
            now = after
        return y

    # -- one contact

    def _gap(self, k: int) -> Any:
        """The gap that compliant number k is."""
        return self.mechanism.parts[self.layout.compliants[k][0]]

    def snapshot(self, t: Array, y: Array, mode: Array) -> dynamics.MachineSnapshot:
        """All that is known of the mechanism at time `t`, in state `y` and `mode`."""
        return dynamics.MachineSnapshot(self.mechanism, self.layout, t, y, mode)
