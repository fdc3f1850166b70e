"""`MechanicalSystem`: the equations of a `Mechanism` as a hybrid system (flow, guard, jump)."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from frictax.contacts.mode import FREE, STUCK, mode_vector
from frictax.engine.system import DEADLINE, AbstractHybridSystem
from frictax.parameters import Integer, Modes, Number, State
from frictax.parameters.arrays import constant

from . import dynamics
from .bristle_steps import (
    change_pressing,
    change_slipping_elements,
    element_margins,
    passive_step,
    press_margins,
    start_pressing,
    within_limits,
)
from .contact_margins import all_margins, is_unpressed, longest_steps, velocity_rounding
from .energy import heat_flows, powers, stored_energy
from .layout import Layout, layout, signal_of, state_names as state_names
from .mechanism import Mechanism, structure_only
from .mode_transition import bring_to_rest, crossed_guards, inelastic_impact, modes_after_event
from .sparse import dot
from .switches import add_switch_times, end_of_motion, first_switch, latest_due, switch_signals


class MechanicalSystem(AbstractHybridSystem):
    """The equations of a `Mechanism`.

    State vector: the coordinates, their rates, the temperatures of thermal nodes, and the forces in
    bristles. The coordinates are the positions of all bodies except those that a gear or a
    prescribed motion determines. With ``energy=True`` the last four entries are energies [J]: the
    work of the drives, and the losses by friction, by dampers, and at stops. With thermal nodes,
    two more energies precede these four: the heat from friction and dampers, and the heat to the
    surroundings.

    Mode vector, in this order:

    - for each contact its `Mode`;
    - for each contact with stops: -1 at the lower stop, 0 between the stops, 1 at the upper stop;
    - for each law with corners the number of its present segment;
    - for each friction that depends on a torque, which of its two lines is active;
    - for each contact with ``either_side=True``, the pressed side;
    - for each element of a bristle the direction in which it slips, or 0 while it sticks;
    - for each contact with a bristle and a normal force, whether it is pressed;
    - for each gap, and then for each signal, the number of its segment.
    """

    mechanism: Mechanism
    energy: bool = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)

    def __init__(self, mechanism: Mechanism, energy: bool = False) -> None:
        self.mechanism = mechanism
        self.energy = energy
        self.layout = layout(mechanism)

    @property
    def structure_only(self) -> "MechanicalSystem":
        """Return the same machine with neutral names of its parts ("part0", "part1", ...)."""
        return MechanicalSystem(structure_only(self.mechanism), self.energy)

    # The engine calls the following methods.

    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> State:
        return self._rates(self.snapshot(t, y, mode))

    def _rates(self, now: dynamics.MachineSnapshot) -> Array:
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
        return _concatenate(rates + powers(now) if self.energy else rates)

    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        now = self.snapshot(t, y, mode)
        found = all_margins(now)
        for k in self.layout.gaps:
            found += self._gap(k).margins(
                *dynamics.stretch(now, k), now.gap_piece(k), dynamics.extension_rounding(now, k)
            )
        found += element_margins(now) + press_margins(now)
        found = found or [jnp.ones((), y.dtype)]
        # A NaN in an event function ends the run with an error. A NaN in the normal force of a
        # stuck contact, or in a prescribed motion, does not reach an event function or a rate.
        # Therefore add 0 times these values to the first event function.
        hidden = [n for n in now.normal + now.bristle_normal if n is not None] + (
            now.drive if self.layout.motions else []
        )
        if hidden:
            found[0] = found[0] + 0.0 * constant(sum(hidden))
        return _concatenate(found)

    def deadline(self, mode: Modes, args: PyTree) -> Number:
        return first_switch(self._signals(mode), self._ends(mode))

    def _ends(self, mode: Array) -> list[Array]:
        """Return the time at which the present segment of each signal ends; inf if the segment ends
        at an extremum that cannot release or press any contact.
        """
        contacts, ends = self.layout.contacts, []
        motions = [signal for _, _, signal in self.layout.motions]
        stuck = jnp.any(mode[: len(contacts)] == STUCK) if contacts else jnp.array(False)
        for j, (signal, k) in enumerate(self._signals(mode)):
            presses = any(c.signal == j for c in (*contacts, *self.layout.bristles))
            end = end_of_motion(signal, k) if j in motions else signal.end(k)
            ends.append(jnp.where(signal.turns(k) & ~(stuck | presses), jnp.inf, end))
        return ends

    def _signals(self, mode: Array) -> list[tuple[Any, Array]]:
        """Return (signal, number of its present segment) for each signal."""
        lay = self.layout
        signals = [signal_of(self.mechanism, place) for place in lay.signals]
        return [(signal, mode[lay.first_signal + j]) for j, signal in enumerate(signals)]

    def tick(self, t: Number, mode: Modes, args: PyTree) -> Modes:
        new = list(mode)
        for j, (signal, k) in enumerate(self._signals(mode)):
            after = signal.passed(t, k)
            # If a prescribed velocity may jump at the end of the segment, only `jump` changes it.
            if any(j == motion for _, _, motion in self.layout.motions):
                after = jnp.where(signal.turns(k), after, k)
            new[self.layout.first_signal + j] = after
            for c, contact in enumerate(self.layout.contacts):
                # If the normal force of a contact starts or vanishes at the end of the segment,
                # only `jump` changes the segment.
                if contact.signal == j:
                    off = is_unpressed(self.mechanism, self.layout, t, contact, after)
                    goes_on = off == (mode[c] == FREE)
                    if self.mechanism.parts[contact.part].blocks_backward:
                        goes_on = goes_on | (mode[c] == STUCK)
                    after = jnp.where(goes_on, after, k)
                    new[self.layout.first_signal + j] = after
            place = self.layout.first_press
            for contact in self.layout.bristles:
                if contact.signal == j:
                    off = is_unpressed(self.mechanism, self.layout, t, contact, after)
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
        reversing = [*lay.contacts, *by_elements]  # contacts that reverse at an event
        laws = [parts[c.part].law(direction) for c in reversing for direction in (1, -1)]
        # A body with permanent friction against the housing reverses only at an event. Therefore
        # the law of a source on this body need not have a smooth slope at v = 0.
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
        def at(t: Array, y: Array, imposed: Any) -> dynamics.MachineSnapshot:
            return dynamics.MachineSnapshot(self.mechanism, self.layout, t, y, mode, imposed)

        return passive_step(at, self._rates, t0, t1, y0)

    def longest_step_at(self, t: Number, mode: Modes, span: Number, args: PyTree) -> Any:
        lay, (always, stuck) = self.layout, longest_steps(self.mechanism, self.layout, t, span)
        contacts = *lay.contacts, *lay.bristles
        if not always and not (stuck and contacts):
            return None
        least = jnp.min(jnp.stack([jnp.asarray(jnp.inf), *always]))
        if stuck and contacts:
            presses = any(c.is_pressed for c in contacts)
            is_stuck = jnp.any(mode[: len(lay.contacts)] == STUCK) | presses
            least = jnp.where(is_stuck, jnp.minimum(least, jnp.min(jnp.stack(stuck))), least)
        return least

    def jump(
        self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree
    ) -> tuple[State, Modes, Integer]:
        # The choice of modes does not have derivatives, so it uses constants: `still`, `t_`, `y_`.
        still, t_, y_ = constant((self, t, y))
        start = y, mode
        signals, ends = still._signals(mode), still._ends(mode)
        due = latest_due(t_, first_switch(signals, ends), fired)
        pieces, switched = switch_signals(signals, ends, due, fired)
        new = [*list(mode)[: self.layout.first_signal], *pieces]
        events = crossed_guards(self.layout, self.mechanism.parts, fired)
        for contact, event in zip(self.layout.contacts, events, strict=True):
            if contact.face is not None:
                new[contact.face] = jnp.where(
                    event["normal"], -mode[contact.face], mode[contact.face]
                )
        before = still.snapshot(t_, y_, mode)
        first_gap_event = sum(len(event) for event in events)
        for i, k in enumerate(self.layout.gaps):
            at = *dynamics.stretch(before, k), before.gap_piece(k)
            fell = fired == first_gap_event + 2 * i, fired == first_gap_event + 2 * i + 1
            new[self.layout.first_gap + i] = still._gap(k).following(*at, *fell)
        y = self._hit_stops(t, y, mode, events, new)
        if any(self.layout.elements):
            fired_element = fired - first_gap_event - 2 * len(self.layout.gaps)
            y = change_slipping_elements(
                self.snapshot(t, y, mode), y, fired_element, new, self.accounts
            )
        if any(contact.is_pressed for contact in self.layout.bristles):
            presses = fired - still.guard(t_, y_, mode, args).shape[0]
            at = lambda mode, y=y: self.snapshot(t, y, mode_vector(mode))  # noqa: E731
            y = change_pressing(self.snapshot(t, y, mode), at, fired, presses, new, self.energy)
        begun = mode_vector(new)
        if self.layout.motions:
            old, first = self.snapshot(t, y, mode), len(self.layout.coordinates)
            for i, change in dynamics.jump_with_motions(old, self.snapshot(t, y, begun)).items():
                y = y.at[first + i].add(change)
            # If the velocity of a prescribed motion jumps, the kinetic energy of its body jumps
            # too. The jump of the energy counts as work of the drives.
            if self.energy:
                after = self.snapshot(t, y, begun)
                y = y.at[-4].add(stored_energy(after)[0] - stored_energy(old)[0])
        y = self._stop_freewheels(t, y, begun, self.energy)
        rests, ok = modes_after_event(
            before, still.snapshot(t_, constant(y), begun), events, fired, new
        )
        end = self._bring_to_rest(t, y, begun, rests), mode_vector(new)
        y = add_switch_times(self, (t, args), start, end, self._signals(mode), switched)
        return y, end[1], jnp.where(ok, 0, 1).astype(jnp.int32)

    def start(self, t: Number) -> tuple[State, Modes]:
        """Return state and mode vector at the start of a run that begins at time `t` [s]."""
        lay, parts = self.layout, self.mechanism.parts
        at_start = [parts[lay.bodies[b]].at_start() for b in lay.coordinates]
        y = jnp.zeros(0, float)  # The state is empty if all motions are prescribed.
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
        y = start_pressing(now, y, mode)
        begun = mode_vector(mode)
        y = self._stop_freewheels(t, y, begun, False)
        now = still.snapshot(t_, constant(y), begun)
        rests, _ = modes_after_event(
            now, now, crossed_guards(lay, parts, jnp.asarray(DEADLINE)), jnp.asarray(DEADLINE), mode
        )
        # The velocity of a contact at rest is 0, and `_bring_to_rest` does not change it.
        # `_bring_to_rest` removes the derivative of this velocity with respect to the start
        # velocity, because a contact with a small start velocity comes to rest at once.
        return self._bring_to_rest(t, y, begun, rests), mode_vector(mode)

    def states(self) -> tuple[str, ...]:
        return state_names(self.mechanism)

    @property
    def accounts(self) -> int:
        """The number of energies at the end of the state vector: 0, 4 or 6."""
        return (6 if self.layout.nodes else 4) if self.energy else 0

    def judged_states(self, args: PyTree) -> int | None:
        # The energies do not influence the motion, so the error control ignores these states.
        return -self.accounts or None

    # The following methods are the steps of `jump`, in the order in which `jump` calls them.

    def _hit_stops(
        self, t: Array, y: Array, mode: Array, events: list[dict[str, Array]], new: list[Array]
    ) -> Array:
        """Return the state after an impact at a stop: the body is at the stop, and its velocity is
        0. Write the new mode of the stop to `new`.
        """
        hits = {c: event["low"] | event["high"] for c, event in enumerate(events) if "low" in event}
        if not hits:
            return y
        n, before = len(self.layout.coordinates), self.snapshot(t, y, mode)
        q = list(before.q)
        for c in hits:
            (i,), (low, high) = before.contact_jacobian[c], before.part(c).stops()
            wall = before.contact(c).wall
            q[i] = jnp.where(events[c]["low"], low, jnp.where(events[c]["high"], high, q[i]))
            assert wall is not None
            new[wall] = jnp.where(events[c]["low"], -1, jnp.where(events[c]["high"], 1, mode[wall]))
        u = inelastic_impact(before, hits)
        y = jnp.concatenate([jnp.stack(q + u), y[2 * n :]])
        if self.energy:
            y = y.at[-1].add(stored_energy(before)[0] - stored_energy(self.snapshot(t, y, mode))[0])
        return y

    def _bring_to_rest(self, t: Array, y: Array, mode: Array, rests: dict[int, Array]) -> Array:
        return bring_to_rest(self.snapshot(t, y, mode), y, rests) if rests else y

    def _stop_freewheels(self, t: Array, y: Array, mode: Array, counted: bool) -> Array:
        """Return the state after every freewheel that turns backward is brought to rest. A start
        state or a prescribed motion may turn a freewheel backward. `counted`: whether the lost
        energy is added to the energies in the state.
        """
        parts = [self.mechanism.parts[contact.part] for contact in self.layout.contacts]
        freewheels = [c for c, part in enumerate(parts) if part.blocks_backward]
        if not freewheels:
            return y
        now = self.snapshot(t, y, mode)
        n, locked = len(now.q), {c: jnp.array(False) for c in freewheels}
        for _ in freewheels:  # Stopping one freewheel may turn another one backward.
            locked = {
                c: before | (now.v_rel[c] < -velocity_rounding(now, c))
                for c, before in locked.items()
            }
            u = inelastic_impact(now, locked)
            y = jnp.concatenate([y[:n], jnp.stack(u), y[2 * n :]])
            after = self.snapshot(t, y, mode)
            if counted:
                change = {i: b - a for i, (a, b) in enumerate(zip(now.u, u, strict=True))}
                lost = 0.5 * sum(x * dot(now.mass_matrix[i], change) for i, x in change.items())
                # The change of energy that is not a loss is the work of the prescribed motions.
                y, work = y.at[-1].add(lost), 0.0
                if self.layout.motions:
                    work = sum(stored_energy(after)) - sum(stored_energy(now)) + lost
                y = y.at[-4].add(work)
            now = after
        return y

    def _gap(self, k: int) -> Any:
        """Return the gap with index `k` in `layout.compliants` (springs, dampers and gaps)."""
        return self.mechanism.parts[self.layout.compliants[k][0]]

    def snapshot(self, t: Array, y: Array, mode: Array) -> dynamics.MachineSnapshot:
        """Return the `MachineSnapshot` at time `t` in the state `y` and the mode vector `mode`."""
        return dynamics.MachineSnapshot(self.mechanism, self.layout, t, y, mode)


def _concatenate(parts: list[Array]) -> Array:
    """Return one vector of all `parts`: scalars, and vectors of bristles with elements."""
    if not parts:  # All motions are prescribed.
        return jnp.zeros(0)
    if all(part.ndim == 0 for part in parts):
        return jnp.stack(parts)
    return jnp.concatenate([jnp.atleast_1d(part) for part in parts])
