"""`walk`: simulate a hybrid system through all its mode changes."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from frictax.annotations import ArrayLike
from frictax.parameters import Integer, Number, as_seconds, is_not_numeric, is_traced
from frictax.programs.users_data import refuse_traced_data

from .options import EVENTS, Adaptive, Engine, OnSamples
from .reused import Reused, model_of
from .system import AbstractHybridSystem


class Path(eqx.Module):
    """The result of `walk`.

    - `ys`, `modes`: state and mode at the requested times. At the time of an event, the values are
      those after the event.
    - `times`, `fired`, `before`, `after`: for each phase (time between two events) the time [s] and
      cause of its end, and the modes before and after this end. Rows from index `count` on are
      unused, and their times are inf.
    - `result`: how the run ended (a `Result`); `steps`: number of solver steps.
    - `error`: an upper estimate for the sum of all step errors of a state, relative to the range of
      this state; the largest value of all states. `error` does not include the growth of errors
      during the motion, and is NaN for steps without error control.
    - `finest`: the largest number of parts into which a step was divided; 1 for `Adaptive`.
    """

    ys: Float[Array, "T n"]
    modes: Int[Array, "T m"]
    times: Float[Array, " K"]
    fired: Int[Array, " K"]
    before: Int[Array, "K m"]
    after: Int[Array, "K m"]
    count: Integer
    result: PyTree
    steps: Integer
    error: Number
    finest: Integer


def with_room(options: Engine, system: AbstractHybridSystem, args: PyTree = None) -> Engine:
    """Return `options` with the known drive switches added to the default number `max_events`."""
    switches = system.known_switches(args, isinstance(options, OnSamples))
    if options.max_events is not None or not switches:
        return options
    return dataclasses.replace(options, max_events=EVENTS + switches)


def increasing_times(name: str, times: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the times `ts` [s] of the function `name` as numbers of the type `dtype`. Raise
    `ValueError` if the times do not increase, or if neighbours are equal in this type.
    """
    rounded = times.astype(dtype)
    rises = np.diff(rounded) > 0
    if np.all(rises):
        return rounded
    i = int(np.argmin(rises))
    first, second = times[i : i + 2]
    if second <= first:
        raise ValueError(
            f"`{name}`: `ts` must increase, got {second:g} s after {first:g} s at index {i + 1}."
            " Sort the times and drop repeats."
        )
    raise ValueError(
        f"`{name}`: `ts` must increase in {8 * rounded.itemsize}-bit numbers, got {second:.12g} s"
        f" after {first:.12g} s at index {i + 1}, which are equal there. Subtract the first time,"
        " or compute with 64 bits."
    )


def walk(
    system: AbstractHybridSystem,
    y0: ArrayLike,
    mode0: ArrayLike,
    ts: ArrayLike,
    args: PyTree = None,
    options: Engine | None = None,
) -> Path:
    """Simulate a user's hybrid system through all its mode changes. (For a `Mechanism`, use
    `simulate`.)

    The result is differentiable, in forward and reverse mode, with respect to all float arrays in
    `system`, `args`, `y0` and `ts`.

    **Arguments:**

    - `system`: an `AbstractHybridSystem` with the methods flow, guard and jump.
    - `y0`, shape (n,), and `mode0`, shape (m,), whole numbers: state and mode at ts[0].
    - `ts`, shape (T,): increasing times [s] at which state and mode are returned. The run begins at
      ts[0] and ends at ts[-1].
    - `args`: passed to flow, guard and jump. `options`: an `Adaptive` or an `OnSamples`.

    **Returns:** a `Path`. A run that ends early does not raise an error: check its `result`. States
    and their derivatives are NaN at times that were not reached.

    **Raises:** `ValueError` for times that do not increase, or if `args` is an `Adaptive` or an
    `OnSamples`. Also if a method reads a traced number from outside of `system` and `args`, such as
    a differentiated variable of the function that contains the class.

    A mass point falls from 1 m and bounces with half of its speed:

    >>> import frictax as fx, jax.numpy as jnp
    >>> class Ball(fx.AbstractHybridSystem):
    ...     def flow(self, t, y, mode, g):
    ...         return jnp.stack([y[1], -g])
    ...
    ...     def guard(self, t, y, mode, g):
    ...         return y[:1] + 1e-14  # a little above 0 when it leaves the floor
    ...
    ...     def jump(self, t, y, mode, fired, g):
    ...         return jnp.stack([0.0 * y[0], -0.5 * y[1]]), mode + 1, jnp.array(0)
    >>> path = fx.walk(
    ...     Ball(), jnp.array([1.0, 0.0]), jnp.array([0]), jnp.array([0.0, 0.8]), args=9.81
    ... )
    >>> round(float(path.times[0]), 6), int(path.modes[-1, 0])
    (0.451524, 1)
    """
    if isinstance(args, Engine):
        raise ValueError(
            f"`walk` must be given its options by name, got `{type(args).__name__}` in the place of"
            " `args`. Write options=..."
        )
    refuse_traced_data((system, args))
    options = with_room(Adaptive() if options is None else options, system, args)
    y0 = jnp.asarray(y0, dtype=float)  # 64-bit numbers, if JAX computes with 64 bits
    if not is_traced(ts):
        given = as_seconds(ts) if is_not_numeric(ts) else ts
        times = np.full(1, np.nan) if is_not_numeric(given) else np.asarray(given, float)
        if times.ndim != 1 or not times.size or not np.all(np.isfinite(times)):
            raise ValueError(f"`walk`: `ts` must be a list of finite times [s], got {ts!r}.")
        ts = increasing_times("walk", times, y0.dtype)
    ts = jnp.asarray(ts, dtype=y0.dtype)
    mode0 = jnp.asarray(mode0, dtype=jnp.int32)
    # Import `on_samples` or `phases` only here: a compiled program from the cache needs neither.
    if isinstance(options, OnSamples):
        options = options.with_numbers(ts.dtype)
        from .on_samples import run_samples as run
    else:
        from .phases import run_phases as run
    model = model_of(system, args)
    y0, mode0 = Reused(model).prepare_start(ts[0], y0, mode0)
    floats, whole = run(model, ts[0], ts[-1], y0, mode0, ts, options)
    (ys, times), (modes, fired, before, after, count, result, steps, error, finest) = floats, whole
    return Path(ys, modes, times, fired, before, after, count, result, steps, error, finest)
