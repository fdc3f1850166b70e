"""One step of a run on samples, from one sample to the next, for code that frictax writes."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from frictax.parameters import Integer, Modes, Number, State

from ..options import OnSamples
from ..reused import Reused
from .control import judged_states
from .march import Rows, begin_run, divided_step, quiet_step


class Step(NamedTuple):
    """The result of one step.

    - `y_at`, `mode_at`: state and mode at its first sample, after the events there.
    - `y`, `mode`: state and mode at its end; `events`: how many it had; `failure`: 0, or the number
      of a `Result`.
    """

    y_at: State
    mode_at: Modes
    y: State
    mode: Modes
    events: Integer
    failure: Integer


def take_one_step(
    system: Reused, options: OnSamples, t: Number, end: Number, y: State, mode: Modes
) -> Step:
    """Take the step that a run by `options`, which have no error control, takes from a sample at
    `t` to the next at `end` [s].
    """
    h = end - t
    slack = jnp.minimum(1e-9 * h + 4 * jnp.finfo(h.dtype).eps * jnp.abs(end), 0.1 * h)
    y1, mode1, calm, _ = quiet_step(system, options, (t, end, slack), y, mode)
    nought = jnp.array(0, jnp.int32)

    def step_with_events(t, end, slack, y, mode) -> Step:
        now = begin_run(system, options, y, mode, 1, keeps=False)
        # The log is not read here. Two rows are enough for the loop to write to.
        now = dataclasses.replace(now, log=jax.tree.map(lambda rows: rows[:2], now.log))
        origin = 0.0, judged_states(system, y)
        alive = jnp.array(True)
        (y_at, mode_at), now = divided_step(
            system, options, (t, end, slack, nought), alive, origin, Rows(0, 0, 0), now
        )
        return Step(y_at, mode_at, now.y, now.mode, now.count, _number(now.result))

    with_events = jax.jit(step_with_events)
    return jax.lax.cond(
        calm,
        lambda: Step(y, mode1, y1, mode1, nought, nought),
        lambda: with_events(t, end, slack, y, mode),
    )


def _number(result: Any) -> Integer:
    return jnp.asarray(result._value, jnp.int32)
