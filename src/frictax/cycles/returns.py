"""From an event to the next one of its kind: the return map, with its derivatives."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from frictax.contacts.mode import STUCK
from frictax.engine import AbstractHybridSystem, Adaptive, Path, Result, walk
from frictax.mechanism import Machine, MechanicalSystem, Mechanism
from frictax.parameters import Integer, Modes, Number, State, Values


def as_system(machine: Machine) -> AbstractHybridSystem:
    """The hybrid system that a machine is."""
    return MechanicalSystem(machine) if isinstance(machine, Mechanism) else machine


class Returning(AbstractHybridSystem):
    """A system that stands still after an event came for a number of times.

    The event is where entry `section[0]` of the mode goes from `section[1]` to `section[2]`, or,
    where the latter is rest, turns to the other side without any: a rest of no length, so that a
    return changes smoothly from one to the other. One more entry of the state is the time that has
    passed, one more of the mode how many events are left. At the end of a run both stand where the
    event was, and their derivatives are those of the event: of its state with its time.
    """

    system: AbstractHybridSystem
    section: Int[Array, "3"]

    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> State:
        rates = self.system.flow(t, y[:-1], mode[:-1], args)
        return jnp.where(mode[-1] > 0, jnp.append(rates, 1.0), 0.0)

    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        return jnp.where(mode[-1] > 0, self.system.guard(t, y[:-1], mode[:-1], args), 1.0)

    def jump(
        self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree
    ) -> tuple[State, Modes, Integer]:
        after, new, status = self.system.jump(t, y[:-1], mode[:-1], fired, args)
        entry, begins, ends = self.section
        turns = (ends == STUCK) & (new[entry] == -begins)
        comes = (mode[:-1][entry] == begins) & ((new[entry] == ends) | turns)
        left = mode[-1] - jnp.where(comes, 1, 0)
        return jnp.append(after, y[-1]), jnp.append(new, left).astype(jnp.int32), status

    def deadline(self, mode: Modes, args: PyTree) -> Number:
        return jnp.where(mode[-1] > 0, self.system.deadline(mode[:-1], args), jnp.inf)

    def known_switches(self, args: PyTree, on_samples: bool) -> int:
        return self.system.known_switches(args, on_samples)

    def is_smooth(self, args: PyTree) -> bool:
        return self.system.is_smooth(args)

    def longest_step(self, mode: Modes, span: Number, args: PyTree) -> Number | None:
        return self.system.longest_step(mode[:-1], span, args)


class Place(eqx.Module):
    """Where and how returns are looked at.

    - `section`: entry of the mode, and what it is before and after the event; `count`: which of
      these events ends a return.
    - `mode` (m,) and `time` [s]: of a start; `longest` [s]: the time in which a return must come.
    - `symmetric`: whether it is the mirror image that returns, half a period later.
    """

    section: Int[Array, "3"]
    count: Int[Array, ""]
    mode: Int[Array, " m"]
    time: Float[Array, ""]
    longest: Float[Array, ""]
    symmetric: bool = eqx.field(static=True, default=False)


class Return(eqx.Module):
    """The state `y` (n,) at the event, the time `after` [s] that it took, the times `events` (k,)
    [s] of the first events on the way, and whether it `came`; or the derivatives of these.
    """

    y: Values
    after: Values
    events: Values
    came: Bool[Array, ""]


def walked(machine: Machine, args: PyTree, y: Any, place: Place, engine: Adaptive) -> Path:
    """The run from `y` to the event, and on standing still to the longest time."""
    begun = jnp.append(place.mode, place.count).astype(jnp.int32)
    ts = place.time + jnp.stack([jnp.zeros_like(place.longest), place.longest])
    system = Returning(as_system(machine), place.section)
    return walk(system, jnp.append(y, 0.0), begun, ts, args, engine)


def returned(
    machine: Machine, args: PyTree, y: Any, place: Place, engine: Adaptive, events: int = 0
) -> Return:
    """The return of `y` to the event."""
    path = walked(machine, args, y, place, engine)
    end = path.ys[-1]
    came = (path.result == Result.successful) & (path.modes[-1, -1] == 0)
    return Return(
        -end[:-1] if place.symmetric else end[:-1], end[-1], path.times[:events] - place.time, came
    )


def with_slopes(
    machine: Machine, args: PyTree, y: Any, place: Place, engine: Adaptive, events: int = 0
) -> tuple[Return, Return]:
    """The return of `y`, and its derivatives by `y` in the same form."""

    def both(y: Any) -> Any:
        there = returned(machine, args, y, place, engine, events)
        return (there.y, there.after, there.events), there

    (slopes, after, at), there = jax.jacfwd(both, has_aux=True)(y)
    return there, Return(slopes, after, at, there.came)
