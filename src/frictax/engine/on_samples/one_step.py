"""One step of a run, from one sample to the next sample, for the code that frictax exports."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from frictax.parameters import Integer, Modes, Number, State

from ..options import OnSamples
from ..reused import Reused
from ..stepping import entries, inverse_scales, stack_entries
from .control import PARTS, is_controlled, judged_states, widen_ranges
from .march import (
    Rows,
    begin_run,
    divided_step,
    inverse_scales_of_run,
    is_within_tolerance,
    whole_step,
)


class Step(NamedTuple):
    """State, mode and events after one step from a sample to the next sample.

    - `y_at`, `mode_at`: state and mode at the sample where the step begins, after its events.
    - `y`, `mode`: state and mode at the end of the step; `events`: number of events in the step;
      `failure`: 0, or the number of a `Result`.
    """

    y_at: State
    mode_at: Modes
    y: State
    mode: Modes
    events: Integer
    failure: Integer


class StepControl(NamedTuple):
    """State of the error control between two steps; its arrays are empty without error control.

    - `width`: length of the next part, in units of 1/`PARTS` of a step.
    - For each state with error control: `start`: value at the start of the run; `ranges`: largest
      distance from `start` so far; `inverse`: 1 over the error scale.
    """

    width: Integer
    start: State
    ranges: State
    inverse: State


def begin_control(system: Reused, options: OnSamples, y: State) -> StepControl:
    """Return the state of the error control for a run that starts in the state `y`."""
    start = y[: system.judged_states() if is_controlled(options) else 0]
    inverse = inverse_scales(entries(jnp.zeros_like(start)), entries(start))
    whole = jnp.array(PARTS, jnp.int32)
    return StepControl(whole, start, jnp.zeros_like(start), stack_entries(inverse, start))


def take_one_step(
    system: Reused, options: OnSamples, t: Number, end: Number, y: State, mode: Modes
) -> Step:
    """Take the step of a run with `options` from a sample at time `t` to the next sample at time
    `end` [s]. `options` must not have error control.
    """
    h = end - t
    slack = jnp.minimum(1e-9 * h + 4 * jnp.finfo(h.dtype).eps * jnp.abs(end), 0.1 * h)
    control = begin_control(system, options, y)
    return take_controlled_step(system, options, (t, end, slack), y, mode, control)[0]


def take_controlled_step(
    system: Reused, options: OnSamples, step: Any, y: State, mode: Modes, control: StepControl
) -> tuple[Step, StepControl]:
    """Take the step of a run with `options` from a sample to the next sample. Return the `Step`,
    and the error control after this step. `step`: start time, end time and slack [s], as in
    `fine_grid`."""
    nought = jnp.array(0, jnp.int32)
    y1, mode1, calm, error = whole_step(system, options, step, y, mode, entries(control.inverse))
    if is_controlled(options):
        calm = calm & is_within_tolerance(options, error) & (control.width == PARTS)

    def step_with_events(step, y, mode, control) -> tuple[Step, StepControl]:
        now = begin_run(system, options, y, mode, 1, keeps=False)
        start = here = judged_states(system, y)
        # A single step writes the log but does not read it, so two rows are enough.
        now = dataclasses.replace(now, log=jax.tree.map(lambda rows: rows[:2], now.log))
        if now.control is not None:
            start = entries(control.start)
            ranges = widen_ranges(entries(control.ranges), here, start)
            begun = dataclasses.replace(now.control, width=control.width, ranges=ranges)
            now = dataclasses.replace(now, control=begun)
        alive, places = jnp.array(True), (0.0, start)
        (y_at, mode_at), now = divided_step(
            system, options, (*step, nought), alive, places, Rows(0, 0, 0), now
        )
        if now.control is not None:
            inverse = inverse_scales_of_run(now.control, judged_states(system, now.y))
            control = control._replace(
                width=now.control.width,
                ranges=stack_entries(now.control.ranges, control.ranges),
                inverse=stack_entries(inverse, control.inverse),
            )
        failure = jnp.asarray(now.result._value, jnp.int32)
        return Step(y_at, mode_at, now.y, now.mode, now.count, failure), control

    with_events = jax.jit(step_with_events)
    return jax.lax.cond(
        calm,
        lambda: (Step(y, mode1, y1, mode1, nought, nought), control),
        lambda: with_events(step, y, mode, control),
    )
