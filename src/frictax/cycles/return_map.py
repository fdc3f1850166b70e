"""The return map, from the state at an event to the state at the next such event. The module also
computes fixed points of this map, and the extremes of the states over a cycle.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from frictax.contacts.mode import STUCK
from frictax.engine import AbstractHybridSystem, Adaptive, Path, Result, walk
from frictax.mechanism import Machine, MechanicalSystem, Mechanism
from frictax.parameters import Integer, Modes, Number, State, Values
from frictax.parameters.arrays import constant, least
from frictax.programs import interruptible_jit

CONVERGED = 1e-10  # [amplitudes of the states] Newton's method ends at this residual
ACCEPTED = 1e-7  # [amplitudes of the states] largest residual of an accepted limit cycle
MIRRORED = (1, -1, -1)  # factors of the event of a section, for its mirror image


def as_system(machine: Machine) -> AbstractHybridSystem:
    """Return the equations of a `Mechanism` as a hybrid system, or a hybrid system unchanged."""
    return MechanicalSystem(machine) if isinstance(machine, Mechanism) else machine


class ReturnSystem(AbstractHybridSystem):
    """A system that stops after a given number of events of one kind.

    At an event of this kind, entry `event[0]` of the mode changes from `event[1]` to `event[2]`. If
    `event[2]` is rest, a direct change to the opposite direction also counts, as a rest of length
    0. This rule keeps the return map smooth in the limit of an infinitely short rest.

    The state has one additional entry, the elapsed time. The mode has one additional entry, the
    number of remaining events. At the end of a run, state and time are those of the last event.
    """

    system: AbstractHybridSystem
    event: Int[Array, "3"]

    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> State:
        rates = self.system.flow(t, y[:-1], mode[:-1], args)
        return jnp.where(mode[-1] > 0, jnp.append(rates, 1.0), 0.0)

    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        return jnp.where(mode[-1] > 0, self.system.guard(t, y[:-1], mode[:-1], args), 1.0)

    def jump(
        self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree
    ) -> tuple[State, Modes, Integer]:
        after, new, status = self.system.jump(t, y[:-1], mode[:-1], fired, args)
        entry, begins, ends = self.event
        turns = (ends == STUCK) & (new[entry] == -begins)
        comes = (mode[:-1][entry] == begins) & ((new[entry] == ends) | turns)
        remaining = mode[-1] - jnp.where(comes, 1, 0)
        return jnp.append(after, y[-1]), jnp.append(new, remaining).astype(jnp.int32), status

    def deadline(self, mode: Modes, args: PyTree) -> Number:
        return jnp.where(mode[-1] > 0, self.system.deadline(mode[:-1], args), jnp.inf)

    def known_switches(self, args: PyTree, on_samples: bool) -> int:
        return self.system.known_switches(args, on_samples)

    def is_smooth(self, args: PyTree) -> bool:
        return self.system.is_smooth(args)

    def longest_step_at(self, t: Number, mode: Modes, span: Number, args: PyTree) -> Number | None:
        return self.system.longest_step_at(t, mode[:-1], span, args)


class PoincareSection(eqx.Module):
    """The event at which a return starts and ends.

    - `event`: index into the mode vector, and the values of this entry before and after the event;
      `count`: how many times the event occurs in one return.
    - `mode` (m,), `time` [s]: modes and time at the start; `longest` [s]: longest time of a return.
    - `symmetric`: whether the return ends after half a period, at the mirror image of the start.
    - `nodes`: in how many points of a phase the extremes of the states are searched.
    """

    event: Int[Array, "3"]
    count: Int[Array, ""]
    mode: Int[Array, " m"]
    time: Float[Array, ""]
    longest: Float[Array, ""]
    symmetric: bool = eqx.field(static=True, default=False)
    nodes: int = eqx.field(static=True, default=32)


class ReturnMap(eqx.Module):
    """The result of one return, or the derivatives of this result. `y` (n,): state at the event;
    `after` [s]: duration of the return; `events` (k,) [s]: times of the first k events during the
    return; `arrived`: whether the event of the section occurred.
    """

    y: Values
    after: Values
    events: Values
    arrived: Bool[Array, ""]


def run_to_section(
    machine: Machine, args: PyTree, y: Any, section: PoincareSection, engine: Adaptive
) -> Path:
    """Simulate from the state `y` to the event of the section. After the event, the state is
    constant until the time limit.
    """
    mode = jnp.append(section.mode, section.count).astype(jnp.int32)
    ts = section.time + jnp.stack([jnp.zeros_like(section.longest), section.longest])
    system = ReturnSystem(as_system(machine), section.event)
    return walk(system, jnp.append(y, 0.0), mode, ts, args, engine)


def second_half(section: PoincareSection, first: Path) -> PoincareSection:
    """Return the section from the end of a symmetric return, the run `first`, to the mirror image
    of its end.
    """
    return dataclasses.replace(
        section,
        event=section.event * jnp.asarray(MIRRORED, jnp.int32),
        mode=first.modes[-1, :-1],
        time=section.time + first.ys[-1, -1],
    )


def return_to_section(
    machine: Machine,
    args: PyTree,
    y: Any,
    section: PoincareSection,
    engine: Adaptive,
    events: int = 0,
) -> ReturnMap:
    """Return the `ReturnMap` from the state `y` to the next event of the section. `events`: number
    of event times to return.
    """
    path = run_to_section(machine, args, y, section, engine)
    return _as_return(path, section, -1 if section.symmetric else 1, events)


def whole_return(
    machine: Machine,
    args: PyTree,
    y: Any,
    section: PoincareSection,
    engine: Adaptive,
    events: int = 0,
) -> ReturnMap:
    """Return the `ReturnMap` of a whole period. If the section is symmetric, the period is two
    returns, each with `events` event times. The second return starts where the first one ends.
    """
    first = run_to_section(machine, args, y, section, engine)
    one = _as_return(first, section, 1, events)
    if not section.symmetric:
        return one
    section = second_half(section, first)
    two = _as_return(run_to_section(machine, args, one.y, section, engine), section, 1, events)
    at = jnp.append(one.events, one.after + two.events)
    return ReturnMap(two.y, one.after + two.after, at, one.arrived & two.arrived)


def _as_return(path: Path, section: PoincareSection, sign: int, events: int) -> ReturnMap:
    """Return the `ReturnMap` of the run `path`; `sign`: factor of the state at its end."""
    end, at = path.ys[-1], path.times[:events] - section.time
    arrived = (path.result == Result.successful) & (path.modes[-1, -1] == 0)
    return ReturnMap(sign * end[:-1], end[-1], at, arrived)


def return_with_derivatives(
    machine: Machine,
    args: PyTree,
    y: Any,
    section: PoincareSection,
    engine: Adaptive,
    events: int = 0,
) -> tuple[ReturnMap, ReturnMap]:
    """Return the `ReturnMap` from the state `y`, and its derivatives with respect to `y`."""

    def image_of(y: Any) -> Any:
        image = return_to_section(machine, args, y, section, engine, events)
        return (image.y, image.after, image.events), image

    (derivatives, after, at), image = jax.jacfwd(image_of, has_aux=True)(y)
    return image, ReturnMap(derivatives, after, at, image.arrived)


class Solution(eqx.Module):
    """A state `y` (n,), its `image` under the return map, and the `derivatives` of the image with
    respect to y. `residual`: the largest difference between `image` and `y`, relative to the
    amplitudes; `tried`: number of returns that were computed.
    """

    y: Float[Array, " n"]
    image: ReturnMap
    derivatives: ReturnMap
    residual: Float[Array, ""]
    tried: Int[Array, ""]


def solve_cycle(
    machine: Machine,
    args: PyTree,
    y: Any,
    section: PoincareSection,
    scale: Any,
    engine: Adaptive,
    events: int = 0,
) -> Solution:
    """Solve for a fixed point of the return map by damped Newton steps that start at `y`. The
    function is pure, so it can be compiled and batched. Newton's equations are regular, because 1
    is not an eigenvalue of the return map's derivative, except at a fold. (The derivative itself
    has a low rank, because a phase of sticking removes disturbances.)
    """

    def evaluate(y: Any, tried: Any) -> Solution:
        image, derivatives = return_with_derivatives(machine, args, y, section, engine, events)
        residual = jnp.max(jnp.abs(image.y - y) / scale)
        residual = jnp.where(image.arrived & jnp.isfinite(residual), residual, jnp.inf)
        return Solution(y, image, derivatives, residual, tried)

    def continues(carry: Any) -> Any:
        best, share, _ = carry
        return (best.tried == 0) | (
            (best.residual > CONVERGED)
            & jnp.isfinite(best.residual)
            & (best.tried < 40)
            & (share > 1e-4)
        )

    def step(carry: Any) -> Any:
        best, share, trial = carry
        new = evaluate(trial, best.tried + 1)
        better = new.residual < best.residual
        best = jax.tree.map(lambda a, b: jnp.where(better, a, b), new, best)
        best = eqx.tree_at(lambda s: s.tried, best, new.tried)
        share = jnp.where(better, jnp.minimum(1.0, 4 * share), 0.25 * share)
        # If an entry of the state has the same value after every return, such as a speed of 0, the
        # entry is set to this value directly.
        set_by_event = jnp.all(best.derivatives.y == 0, axis=1)
        move = share * newton_step(best.derivatives.y, best.image.y - best.y, scale)
        trial = jnp.where(set_by_event, best.image.y, best.y + move)
        return best, share, trial

    shapes = jax.eval_shape(evaluate, y, jnp.array(0))
    empty = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    empty = eqx.tree_at(lambda s: s.residual, empty, jnp.full_like(empty.residual, jnp.inf))
    return jax.lax.while_loop(continues, step, (empty, jnp.ones_like(empty.residual), y))[0]


def newton_step(by_state: Array, residual: Array, scale: Any) -> Array:
    """Return the Newton step (n,) for a return map with the derivative `by_state` (n, n).
    `residual` is image minus state (n,), or (n, k) to compute k steps together. The unknowns are
    divided by `scale` (n,) before the equations are solved.
    """
    matrix = jnp.eye(len(scale)) - by_state * scale / scale[:, None]
    return (scale * jnp.linalg.solve(matrix, (residual.T / scale).T).T).T


def extremes(
    machine: Machine, args: PyTree, y: Any, section: PoincareSection, ends: Any, engine: Adaptive
) -> tuple[Array, Array, Array]:
    """Return the lowest and the highest value of each state over the phases. JAX can differentiate
    these values. The motion is smooth in a phase, and computed at nodes. Between two nodes, a
    cubic through states and rates gives the time of an extremum. A quintic, with second
    derivatives, gives the value of the extremum. `ends` (k,) [s]: end times of the phases.

    The third result is about 64 times the error of the quintic, relative to the amplitude. If it is
    above 0.03, the extremes are NaN.
    """
    begins = jnp.append(0.0, ends[:-1])
    # `positions` are the nodes in a phase, from 0 to 1. The nodes are denser at both ends.
    count, edge = section.nodes, 1e-6
    inside = 0.5 * (1.0 - np.cos(np.pi * (np.arange(count) + 0.5) / count))
    positions = np.concatenate([[edge], inside, [1.0 - edge]])
    nodes = begins[:, None] + (ends - begins)[:, None] * positions
    ts = section.time + jnp.append(0.0, jnp.ravel(nodes))
    system = as_system(machine)
    path = walk(system, y, section.mode, ts, args, engine)

    def rates(t: Any, y: Any, mode: Any) -> Any:
        flow = lambda t, y: system.flow(t, y, mode, args)  # noqa: E731
        speed = flow(t, y)
        return speed, jax.jvp(flow, (t, y), (jnp.ones_like(t), speed))[1]

    speed, second = jax.vmap(rates)(ts[1:], path.ys[1:], path.modes[1:])
    shape = (ends.shape[0], len(positions), -1)
    at, states, speed, second = (x.reshape(shape) for x in (ts[1:], path.ys[1:], speed, second))
    edge = edge * (at[:, -1] - at[:, 0])
    first, last = states[:, 0] - speed[:, 0] * edge, states[:, -1] + speed[:, -1] * edge
    # If an interval contains an extremum, the rates at its ends have opposite signs. The position
    # of the extremum is that of the cubic y = y0 + r0*x + b*x^2 + a*x^3.
    h, values = at[:, 1:] - at[:, :-1], (states, speed, second)
    left, right = ([x[:, :-1] for x in values], [x[:, 1:] for x in values])
    r0, r1, rise = left[1] * h, right[1] * h, right[0] - left[0]
    a, b = r0 + r1 - 2 * rise, 3 * rise - 2 * r0 - r1
    has_extremum = r0 * r1 < 0
    root = jnp.sqrt(jnp.maximum(b * b - 3 * a * r0, 0.0))
    denominator = jnp.where(r0 < 0, b + root, b - root)
    x = constant(
        jnp.clip(-r0 / jnp.where(has_extremum & (denominator != 0), denominator, 1.0), 0.0, 1.0)
    )
    inner = jnp.where(has_extremum, _quintic(x, h, left, right), left[0])
    every = jnp.concatenate([x.reshape(-1, y.shape[0]) for x in (states, first, last, inner)])
    low, high = least(every.T), -least(-every.T)
    # Without a node, the quintic between its neighbours has 64 times the error.
    h = at[:, 2:] - at[:, :-2]
    between = ([x[:, :-2] for x in values], [x[:, 2:] for x in values])
    misfit = _quintic((at[:, 1:-1] - at[:, :-2]) / h, h, *between) - states[:, 1:-1]
    misfit = jnp.max(jnp.abs(misfit), axis=(0, 1))
    size = 1e-6 * jnp.maximum(jnp.abs(low), jnp.abs(high)) + 1e3 * engine.tolerances(y.dtype)[1]
    misfit = constant(jnp.max(misfit / (0.5 * (high - low) + size)))
    known = jnp.where(misfit <= 0.03, 1.0, jnp.nan)
    return low * known, high * known, misfit


def _quintic(x: Array, h: Array, left: list[Array], right: list[Array]) -> Array:
    """Return the value of a quintic polynomial at the share `x` of an interval of length `h` [s].
    `left`, `right`: state, rate and second derivative of the polynomial at the two ends.
    """
    (y0, f0, a0), (y1, f1, a1) = left, right
    r0, r1, c0, c1, rise = f0 * h, f1 * h, a0 * h * h, a1 * h * h, y1 - y0
    p, q, r = rise - r0 - 0.5 * c0, r1 - r0 - c0, c1 - c0
    third, fourth, fifth = 10 * p - 4 * q + 0.5 * r, -15 * p + 7 * q - r, 6 * p - 3 * q + 0.5 * r
    return y0 + x * (r0 + x * (0.5 * c0 + x * (third + x * (fourth + x * fifth))))


compiled_run_to_section = interruptible_jit(run_to_section)
compiled_solve_cycle = interruptible_jit(solve_cycle)
compiled_extremes = interruptible_jit(extremes)


def resolved_extremes(
    machine: Machine, args: PyTree, y: Any, section: PoincareSection, ends: Any, engine: Adaptive
) -> tuple[Array, Array, PoincareSection]:
    """Return the `extremes`, and the section with enough nodes for the oscillations in a phase, at
    most 8192.
    """
    low, high, misfit = compiled_extremes(machine, args, y, section, ends, engine)
    while 1e-3 < float(misfit) and section.nodes < 8192:
        section = dataclasses.replace(section, nodes=4 * section.nodes)
        low, high, misfit = compiled_extremes(machine, args, y, section, ends, engine)
    return low, high, section


def run_second_half(
    machine: Machine,
    args: PyTree,
    first: Path,
    section: PoincareSection,
    scale: Any,
    engine: Adaptive,
) -> tuple[Path, bool]:
    """Run from the mirror image of the start of a symmetric return, the run `first`. Return the run
    and whether it is the mirror image of `first`, as in a machine that is symmetric about 0.
    """
    y, opposite = -np.asarray(first.ys[0, :-1]), second_half(section, first)
    second = compiled_run_to_section(machine, args, y, opposite, engine)
    one, two = np.asarray(first.ys[-1]), np.asarray(second.ys[-1])
    same = np.max(np.abs(one + two)[:-1] / scale) <= ACCEPTED and second.modes[-1, -1] == 0
    return second, bool(same and abs(two[-1] - one[-1]) <= 1e-6 * one[-1])
