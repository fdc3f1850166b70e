"""Switches of drive signals at one event, and the derivatives with respect to their times."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from frictax.engine.system import DEADLINE, AbstractHybridSystem
from frictax.parameters import Integer, Modes, Number, State
from frictax.parameters.arrays import constant
from frictax.signals import AbstractSignal, Sampled, Sine, Step
from frictax.signals.signal import OnePiece, first_end, next_piece

Signals = Sequence[tuple[AbstractSignal, Integer]]  # signals, each with its segment number


def may_jump(signal: AbstractSignal) -> bool:
    """Return whether the value of the signal may jump where a segment ends."""
    is_line = isinstance(signal, Sampled) and not signal.hold
    return not isinstance(signal, OnePiece) and not is_line


def end_of_motion(signal: AbstractSignal, k: Integer) -> Number:
    """Return the time [s] at which segment `k` of a prescribed motion ends.

    A table of positions often ends with the run. The body still has the speed of the last line at
    the last sample. Therefore this line ends 1e-6 of its length later. This exceeds the time
    tolerance of `OnSamples` (1e-9 of a step) for steps of up to 1000 samples of the table. In a run
    that goes on, the position then jumps back by 1e-6 of its last increment.
    """
    end = signal.end(k)
    if not isinstance(signal, Sampled) or signal.hold or signal.times.shape[0] == 1:
        return end
    times = constant(signal.times)
    later = 1e-6 * (times[-1] - times[-2]) + 8 * jnp.finfo(end.dtype).eps * jnp.abs(times[-1])
    return end + jnp.where(k == times.shape[0] - 1, later, 0.0)


def first_switch(signals: Signals, ends: Sequence[Number]) -> Number:
    """Return the earliest of the segment ends `ends` [s]. Among equal ends, the end of a signal
    that may jump comes first, because only jumps depend on the time of their switch.
    """
    order = sorted(range(len(ends)), key=lambda j: not may_jump(signals[j][0]))
    return first_end(ends[j] for j in order)


def latest_due(t: Number, deadline: Number, fired: Integer) -> Number:
    """Return the time up to which segment ends belong to the event `fired` at time `t`. Times that
    differ by a rounding error count as equal. `deadline`: the deadline of the mode before it.
    """
    t, deadline = constant((t, deadline))
    known = (fired == DEADLINE) & jnp.isfinite(deadline)
    late = jnp.where(known, jnp.maximum(t, deadline), t)
    return late + 8 * jnp.finfo(t.dtype).eps * jnp.abs(late)


def switch_signals(
    signals: Signals, ends: Sequence[Number], due: Number, fired: Integer
) -> tuple[list[Array], list[Array]]:
    """Return the segment number of each signal after event `fired`, and whether each signal
    switches. `ends`: the ends of the present segments [s]; `due`: the result of `latest_due`.

    All signals that are due switch in the same event. Otherwise the loads between two switches
    could release a contact that the loads after the last switch hold.
    """
    switched = [(fired == DEADLINE) & (end <= due) for end in ends]
    pairs = zip(signals, switched, strict=True)
    return [next_piece(signal, k, due, flag) for (signal, k), flag in pairs], switched


def add_switch_times(
    system: AbstractHybridSystem,
    at: tuple[Number, PyTree],
    before: tuple[State, Modes],
    after: tuple[State, Modes],
    signals: Signals,
    switched: list[Array],
) -> State:
    """Return the state after an event, with derivatives with respect to the times of all switches
    in this event. The derivative of the event time contains the time of one switch only.

    A signal that switches later by d acts later by d. Therefore the state changes by d times the
    difference of its rates before and after this switch. If modes or the state jump at the event,
    the motion does not depend smoothly on each time. Then the switches share the change of the
    rates in proportion to their jumps. The derivative is exact if all times change together.

    `at`: event time and arguments; `before`, `after`: state and mode vector, which ends with the
    segments of `signals`; `switched`: see `switch_signals`.
    """
    (t, args), (y, mode) = at, after
    first, jumping = mode.shape[0] - len(signals), []
    for j, (signal, k) in enumerate(signals):
        if may_jump(signal):
            # If segments of length 0 follow, the signal switches in the middle of their ends.
            last = jnp.where(switched[j], mode[first + j] - 1, k)
            end = 0.5 * (signal.end(k) + signal.end(last))
            delay = (jnp.where(switched[j], end, t) - t).astype(y.dtype)
            jumping.append((delay - constant(delay), switched[j], mode.at[first + j].set(k)))
    # The event time has the derivative of a single switch already. These signals never switch twice
    # at one time, in a segment of length 0.
    single = all(isinstance(s, Sampled | Sine | Step) for s, _ in signals if may_jump(s))
    if not jumping or len(jumping) == 1 and single:
        return y
    delays, flags, without = (jnp.stack(x) for x in zip(*jumping, strict=True))
    return _state_with_delays(y, delays, flags, without, system, (t, args), before, (mode, first))


@eqx.filter_custom_jvp
def _state_with_delays(
    y: State,
    delays: Array,
    flags: Bool[Array, " k"],
    without: Array,
    system: AbstractHybridSystem,
    at: tuple[Number, PyTree],
    before: tuple[State, Modes],
    after: tuple[Modes, int],
) -> State:
    """Return `y`. The derivative of the result contains the derivatives of `delays` [s], which
    are 0. `without`: for each delay the mode vector in which this signal has not switched yet.
    """
    return y


@_state_with_delays.def_jvp
def _state_with_delays_jvp(primals: Any, tangents: Any) -> Any:
    y, _, flags, without, system, (t, args), (y0, mode0), (mode, first) = primals
    d_y, d_delays, *_ = tangents
    if d_delays is None:
        return y, d_y
    states = jnp.stack([y, y0, *[y] * without.shape[0]])
    modes = jnp.concatenate([jnp.stack([mode, mode0]), without])
    # The loop compiles the code of `flow` only once.
    rates = jax.lax.map(lambda row: system.flow(t, *row, args), (states, modes))
    jumps = jnp.any(mode[:first] != mode0[:first]) | jnp.any(y != y0)
    change = jnp.where(flags[:, None], rates[2:] - rates[0], 0.0)
    sizes = jnp.sum(jnp.abs(change), axis=1, keepdims=True)
    total = jnp.sum(sizes)
    shares = sizes / jnp.where(total > 0, total, 1.0)
    change = jnp.where(jumps, shares * (rates[1] - rates[0]), change)
    moved = d_delays @ change
    return y, moved if d_y is None else d_y + moved
