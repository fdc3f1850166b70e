"""Simulate a mechanism (with a default engine), and check the accuracy of the run."""

import dataclasses
import warnings
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, PyTree

from frictax.annotations import ArrayLike
from frictax.engine import Adaptive, Engine, OnSamples, Path, Result, walk
from frictax.engine.options import EVENTS, room as events_room
from frictax.engine.result import SECOND
from frictax.engine.stepping import is_at_rest, is_rounding, scale_at_rest
from frictax.engine.walk import increasing_times, with_room
from frictax.laws.table import table_of
from frictax.mechanism import MechanicalSystem, Mechanism
from frictax.mechanism.forces import AbstractMotion
from frictax.mechanism.layout import turns_about
from frictax.mechanism.mechanism import structure_only
from frictax.notice import Notice
from frictax.parameters import as_seconds, check, is_not_numeric, is_traced
from frictax.parameters.arrays import constant
from frictax.programs import cached_primitive
from frictax.signals import Sampled
from frictax.text import brief
from frictax.trajectory import OverTime, Trajectory, law_field


class SimulationError(RuntimeError):
    """The error of a simulation that stopped before its end.

    The message gives the reason and the remedy. `run`: the `Trajectory`, with NaN after the time at
    which the simulation stopped.

    >>> import frictax as fx, jax.numpy as jnp
    >>> shaken = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", fx.Sine(amplitude=5.0, f=1.0)),
    ... )
    >>> try:
    ...     fx.simulate(shaken, jnp.array([0.0, 9.0]), fx.Adaptive(max_events=4))
    ... except fx.SimulationError as error:
    ...     print(error)
    ...     reached = error.run.events.time[3]
    The run stopped at 2.18137238 s of 9 s, after 5 events. The run has ...
    >>> round(float(reached), 2)
    1.73
    """

    def __init__(self, message: str, run: Trajectory) -> None:
        super().__init__(message)
        self.run = run

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.run)


def simulate(
    mechanism: Mechanism, ts: ArrayLike, engine: Engine | None = None, *, energy: bool = False
) -> Trajectory:
    """Simulate `mechanism` from its start values at ts[0] to ts[-1] through all mode changes.

    The run has forward and reverse derivatives with respect to all parameters of the mechanism,
    start values, switching times of signals, and `ts`. `simulate` works under `jax.jit` and
    `jax.vmap`.

    **Arguments:**

    - `mechanism`: a `Mechanism`.
    - `ts`: increasing times [s] of the trajectory; the first is the start.
    - `engine`: `Adaptive(rtol=..., atol=..., ...)` or `OnSamples(...)`. The default is
      `OnSamples()` if a `Sampled` signal has as many samples as `ts`, as in the simulation of a
      record. In other cases the default is `Adaptive()`.
    - `energy`: whether to integrate the energy balance (`run.energy`) with the state, which takes
      additional time.

    **Returns:** a `Trajectory`.

    With `OnSamples`, a run whose estimated error exceeds 1e-8 is repeated with 1/16 of the
    tolerance, except under `jit` and `vmap`. If the repetition changes a state by more than 3e-5 of
    its range, up to two runs with smaller tolerances follow. The same holds for `Adaptive()`
    without tolerances if the estimated error exceeds 1e-4, as for motions of micrometres.

    **Warns:** if the motion leaves a table, or if a friction law is below 0 (`run.notices`).
    Another warning reports that the last repetition changed a state by more than 1e-4 of its range.

    **Raises:** `ValueError` for parameters outside their domain, for times that do not increase,
    and for a prescribed `Sine` that begins with a jump inside the run; `SimulationError` if the run
    does not reach its end. Under `jit` and `vmap` no error is raised, so check `run.result`. After
    the end of a stopped run, states and their derivatives are NaN.

    >>> import frictax as fx, jax.numpy as jnp
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0, v=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0)),
    ... )
    >>> run = fx.simulate(block, ts=jnp.linspace(0.0, 1.0, 5))
    >>> [round(float(s), 6) for s in run["mass"].s]
    [0.0, 0.1875, 0.25, 0.25, 0.25]
    >>> round(float(run.events.time[0]), 6), int(run.events.mode_after[0])
    (0.5, 0)
    """
    if not isinstance(mechanism, Mechanism):
        raise ValueError(
            f"`simulate` needs a `Mechanism`, got {type(mechanism).__name__}. For a hybrid system"
            " of your own use `walk`."
        )
    check(mechanism)
    ts = _times(ts)
    for part in mechanism.parts:
        if isinstance(part, AbstractMotion):
            part.check_run(ts)
    engine = _default(mechanism, ts) if engine is None else engine
    if not isinstance(engine, Engine):
        raise ValueError(
            f"`simulate`: `engine` must be an `Adaptive` or an `OnSamples`, got {engine!r}. Write"
            " `Adaptive(rtol=1e-8)`."
        )
    if isinstance(engine, Adaptive):
        engine.tolerances(ts.dtype)
    else:
        engine = engine.with_numbers(ts.dtype)
    run = simulate_once(mechanism, ts, engine, energy)
    if any(is_traced(leaf) for leaf in jax.tree.leaves(run.result)):
        return run  # JAX traces this run, so its result is unknown.
    growing = engine.max_events is None and _is(run, Result.too_many_events)
    room = events_room(with_room(engine, run.system)) if growing else 0
    most = 256 * EVENTS
    while growing and room < most and _is(run, Result.too_many_events):
        # The limit of events increases by a factor of 2 to 16, depending on the time that the run
        # reached. As each limit needs a compiled program, use powers of 2.
        reached, t0, t1 = _times_reached(run)
        factor = (t1 - t0) / max(reached - t0, 1e-9 * (t1 - t0))
        room = min(room * 2 ** int(np.clip(np.ceil(np.log2(factor)), 1, 4)), most)
        run = simulate_once(mechanism, ts, dataclasses.replace(engine, max_events=room), energy)
    if not _is(run, Result.successful):
        if _is(run, Result.inaccurate):
            raise SimulationError(Result[run.result], run)
        reached, _, t1 = _times_reached(run)
        where = (
            f"The run stopped at {reached:.9g} s of {t1:.9g} s, after {int(run.path.count)} events."
        )
        why = _table_ended(run) or Result[run.result]
        raise SimulationError(f"{where} {why}", run)
    if growing:
        engine = dataclasses.replace(engine, max_events=room)
    run, doubts = _refine_run(mechanism, ts, engine, energy, run)
    for notice in (*doubts, *run.notices):
        warnings.warn(str(notice), stacklevel=2)
    return run


def _refine_run(
    mechanism: Mechanism, ts: OverTime, engine: Engine, energy: bool, run: Trajectory
) -> tuple[Trajectory, list[Notice]]:
    """Return `run` if it is accurate, otherwise a run with a smaller tolerance. Also return a
    notice if the run with the smallest tolerance changed a state by over 1e-4 of its range. If no
    second run reaches its end, the notice reports an unchecked accuracy. `run.error` is a sum of
    the errors of time steps, but the motion may damp or amplify them. Therefore runs with two
    tolerances are compared. If no run with a smaller tolerance reaches its end, `run` is compared
    with a run with a larger tolerance.
    """
    if isinstance(engine, OnSamples):
        is_checked, negligible = engine.tolerance is not None, 1e-8
    else:
        given = (engine.rtol, engine.atol, engine.stepsize_controller)
        is_checked, negligible = given == (None,) * 3 and ts.dtype == np.float64, 1e-4
    if not (is_checked and run.error > negligible):
        return run, []
    # Each further run multiplies the tolerance by `refinement`, so its error is 8 times smaller.
    refinement, runs = 1 / 16, 3
    large = 1e-4  # largest change of a state without a notice, relative to its range
    judged, moved = run.system.judged_states(None), None
    ranges = _ranges(run, judged)
    least = float(np.min(ranges[~is_rounding(ranges)], initial=np.inf))

    def with_tolerance(factor: float) -> Trajectory:
        if isinstance(engine, OnSamples):
            assert engine.tolerance is not None
            other: Engine = dataclasses.replace(engine, tolerance=engine.tolerance * factor)
        else:
            rtol, atol = engine.tolerances(run.ys.dtype)
            atol = min(atol, 0.1 * rtol * least)
            other = dataclasses.replace(engine, rtol=rtol * factor, atol=atol * factor)
        return simulate_once(mechanism, ts, other, energy)

    def change(before: Trajectory, after: Trajectory, least: Any = 0.0) -> float:
        if int(before.steps) == int(after.steps):  # With equal time steps the runs are equal.
            return float(constant(after.error))
        ranges = np.fmax(_ranges(after, judged), least)
        apart = np.subtract(constant(after.ys), constant(before.ys))[:, :judged]
        difference = np.max(np.abs(apart), axis=0, initial=0.0)
        # A state at rest changes by rounding only, which differs between runs.
        by_rounding = is_rounding(ranges) | is_at_rest(ranges) & (difference > 0.3 * ranges)
        scales = np.where(by_rounding, scale_at_rest(ranges), ranges)
        return float(np.max(difference / scales, initial=0.0))

    first, pair, share = run, (run, run), 1.0
    for k in range(1, runs + 1):
        finer = with_tolerance(refinement**k)
        if not _is(finer, Result.successful):
            break
        run, pair = finer, (run, finer)
        moved = change(*pair)
        if moved <= 3e-5:  # The finer run is accurate enough.
            return (first if k == 1 and not first.error > large else run), []
    if run is first:
        coarser = with_tolerance(1 / refinement)
        if _is(coarser, Result.successful):
            # The error of `run` is an eighth of its difference from the coarser run.
            pair, share = (coarser, run), 1 / 8
            moved = share * change(*pair)
    if moved is None:
        return run, [Notice("run-unchecked", "", {"error": float(constant(run.error))})]
    if moved > large and ts.size < 65:
        # Few samples may not show the range of a state, so take the range on a finer grid.
        grid = jax.numpy.linspace(ts[0], ts[-1], 65)
        least = _ranges(simulate_once(mechanism, grid, engine, energy), judged)
        moved = share * change(*pair, least)
    cause = "run-inaccurate" if run.ys.dtype == np.float64 else "run-single-precision"
    return run, [Notice(cause, "", {"error": moved})] if moved > large else []


def _ranges(run: Trajectory, judged: int | None) -> np.ndarray:
    """Return the ranges of the error-controlled states at the samples of `run`."""
    return np.ptp(np.asarray(constant(run.ys))[:, :judged], axis=0)


def _table_ended(run: Trajectory) -> str:
    """Return a sentence on the friction table if the run stopped at its end, and "" if not."""
    path, mechanism = run.path, run.system.mechanism
    events = int(path.count)
    mode = np.asarray(path.after[events - 1] if events else path.modes[0])
    for c, contact in enumerate(run.system.layout.contacts):
        if contact.piece is None or mode[c] not in (1, -1):
            continue
        part = mechanism.parts[contact.part]
        table = table_of(part.law(int(mode[c])))
        ends = table is not None and table.extrapolation == "error"
        if table is None or not ends or mode[contact.piece] < table.v.shape[0] - 1:
            continue
        name = mechanism.names[contact.part]
        first, last = (float(x) for x in np.asarray(table.v)[[0, -1]])
        unit = "rad/s" if turns_about(mechanism, name) else "m/s"
        return (
            f"`{name}.{law_field(part, int(mode[c]))}` is a table from {first:g} to {last:g} {unit}"
            f" with extrapolation='error', and the motion passes {last:g} {unit}. Add rows, or"
            " write extrapolation='hold'."
        )
    return ""


def simulate_once(
    mechanism: Mechanism, ts: OverTime, engine: Engine, energy: bool = False
) -> Trajectory:
    """Simulate once, without checks of the mechanism, the result and the accuracy."""
    arrays = _walk_arrays(structure_only(mechanism), ts, engine, energy)
    walked = dict(zip(_PATH, arrays, strict=True))
    how = jax.tree.unflatten(jax.tree.structure(Result.successful), [walked["result"]])
    path = Path(**walked | {"result": how})
    return Trajectory(MechanicalSystem(mechanism, energy), ts, path)


_PATH = [field.name for field in dataclasses.fields(Path)]


@cached_primitive(SECOND, jax.tree.structure([0] * len(_PATH)))
def _walk_arrays(mechanism: Mechanism, ts: OverTime, engine: Engine, energy: bool) -> list[Array]:
    """Simulate `mechanism`, and return the arrays of the `Path` that `walk` returns."""
    system = MechanicalSystem(mechanism, energy)
    y0, mode0 = system.start(ts[0])
    return jax.tree.leaves(walk(system, y0, mode0, ts, options=engine))


def _is(run: Trajectory, how: PyTree) -> bool:
    """Return whether the `Result` of the run is `how`, without compiling a program."""
    return jax.tree.map(int, jax.tree.leaves(run.result)) == jax.tree.map(int, jax.tree.leaves(how))


def _default(mechanism: Mechanism, ts: OverTime) -> Engine:
    """Return `OnSamples` if a `Sampled` signal has as many samples as `ts`, otherwise `Adaptive`.
    This also works under `jit`, because array shapes are known there.
    """
    values = (value for part in mechanism.parts for value in vars(part).values())
    signals = [value for value in values if isinstance(value, Sampled)]
    on_grid = ts.shape[0] > 2 and any(signal.times.shape == ts.shape for signal in signals)
    return OnSamples() if on_grid else Adaptive()


def _times(ts) -> OverTime:
    if is_traced(ts):
        return ts.astype(float)
    try:
        given = as_seconds(ts) if is_not_numeric(ts) else ts
        if is_not_numeric(given):
            raise TypeError
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"`simulate`: `ts` must be a list of times [s], got {brief(ts)}. Write"
            " `jnp.linspace(0.0, 5.0, 501)`."
        ) from None
    if values.ndim != 1 or values.size == 0:
        got = f"shape {values.shape}" if values.ndim else repr(ts)
        raise ValueError(
            f"`simulate`: `ts` must be a list of at least one time [s], got {got}. Write"
            " `jnp.linspace(0.0, 5.0, 501)`."
        )
    bad = ~np.isfinite(values)
    if np.any(bad):
        raise ValueError(
            f"`simulate`: `ts` must be finite, got {values[bad][0]} at index {int(np.argmax(bad))}."
            " Drop it."
        )
    dtype = jax.dtypes.canonicalize_dtype(float)
    return jax.device_put(increasing_times("simulate", values, dtype))


def _times_reached(run: Trajectory) -> tuple[float, float, float]:
    """Return three times [s] of a run that did not reach its end: its last event or sample, its
    start, and its requested end.
    """
    times, ts, ys = (np.asarray(constant(a)) for a in (run.path.times, run.ts, run.ys))
    known = ts[np.all(np.isfinite(ys), axis=1)]
    reached = max([ts[0], *known[-1:], *times[np.isfinite(times)][-1:]])
    return float(reached), float(ts[0]), float(ts[-1])
