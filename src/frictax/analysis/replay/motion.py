"""The simulated motion of a machine beside a record, with the modes of its contacts.

`motion` is that of a fitted machine, `preview` that of a machine before any fit.
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from frictax.engine import OnSamples, Result, walk
from frictax.fitting import FitResult, FreeRun
from frictax.fitting.build_problem import prepare_record
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.fitting.problem.readings import acting, divide_gaps, dividing, measured_starts
from frictax.fitting.problem.setup import (
    Setup,
    channel_unit,
    contact_forces,
    contact_names,
    driven,
    moved_to,
    state_names,
)
from frictax.measurements import Record
from frictax.mechanism import MechanicalSystem
from frictax.programs import cached_jit
from frictax.text import amount


@dataclasses.dataclass(frozen=True, eq=False)
class Motion:
    """A free run of a machine at the samples of a record.

    - `t` (n,) [s]; `states`: name -> (n,) [SI]; `modes`: contact -> (n,), 1 forward, -1 backward, 0
      stuck, 2 free.
    - `friction`: contact -> (n,) [N or N.m], the force of friction on its body; `result`: how the
      run ended.
    """

    t: Float[np.ndarray, " n"]
    states: Mapping[str, Float[np.ndarray, " n"]]
    modes: Mapping[str, Int[np.ndarray, " n"]]
    friction: Mapping[str, Float[np.ndarray, " n"]]
    result: Any

    @property
    def complete(self) -> bool:
        """True if the run reached the end of the record."""
        return bool(self.result == Result.successful)

    @property
    def end(self) -> float:
        """The last time that the run reached [s]."""
        known = np.all([np.isfinite(x) for x in self.states.values()], axis=0)
        return float(self.t[np.flatnonzero(known)[-1]]) if known.any() else float(self.t[0])


def motion(found: FitResult, record: str | Record, objective: FreeRun | None = None) -> Motion:
    """Run the fitted machine with the inputs of a record, a label of the fit or another
    `Record`. It starts from the measurement, or as `objective` says.
    """
    i, data = find_record(found, record)
    objective = FreeRun(measured_start=True) if objective is None else objective
    setup = found.problem.setup_at(jnp.asarray(found.x), i)
    prepared = divide_gaps(objective.prepare(setup.machine, data), found.problem.engine)
    here = setup.for_channels(prepared.inputs, prepared.names)
    return simulate_beside(here, prepared, data.t, found.problem.engine, found.problem.delayed)[0]


def simulate_beside(
    setup: Setup, prepared: PreparedRecord, t: Any, engine: Any, delayed: frozenset[str]
) -> tuple[Motion, np.ndarray, np.ndarray]:
    """Return the motion of a machine with the inputs of a record, and the modes before and
    after each event, shape (events, contacts).
    """
    ys, modes, forces, before, after, count, ended = _run(setup, prepared, engine, delayed)
    result = jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(Result.successful), [ended])
    names = contact_names(setup.machine)
    moved = Motion(
        t,
        dict(zip(state_names(setup.machine), np.asarray(ys).T, strict=False)),
        dict(zip(names, np.asarray(modes).T, strict=False)),
        dict(zip(names, np.asarray(forces).T, strict=False)),
        result,
    )
    return moved, np.asarray(before)[: int(count)], np.asarray(after)[: int(count)]


def find_record(found: FitResult, record: Any) -> tuple[int | None, Any]:
    """Return the number of the record that a label names, None for a record itself; and the
    record.
    """
    if isinstance(record, str):
        return found.number(record), found.records[record]
    return None, record


@cached_jit
def _run(
    setup: Setup, prepared: PreparedRecord, engine: Any, delayed: frozenset[str]
) -> tuple[Array, ...]:
    t = jnp.asarray(prepared.t)
    start = measured_starts(setup, prepared, delayed)
    system: Any = moved_to(
        driven(setup.machine, t, acting(setup, prepared, delayed), prepared.hold), start
    )
    y0, mode0 = system.start(t[0])
    if start and not isinstance(system, MechanicalSystem):
        begun: list[Any] = [start.get(name, y0[i]) for i, name in enumerate(system.states())]
        y0, mode0 = system.begin(t[0], jnp.stack(begun))
    path = walk(system, y0, mode0, t, options=dividing(engine, prepared))
    forces = jax.vmap(lambda t, y, mode: contact_forces(system, t, y, mode))(t, path.ys, path.modes)
    events = path.before, path.after, path.count
    return path.ys, path.modes, forces, *events, *jax.tree_util.tree_leaves(path.result)


@dataclasses.dataclass(frozen=True, eq=False)
class Preview:
    """A machine that is not fitted, beside a record.

    - `label`, `record`; `motion`: its run with the record's inputs.
    - `final`: output -> measured and simulated value at the end; `rms`: output -> root mean square
      of their difference; `units` [SI].
    - `events`: contact -> change of mode ("stuck to forward") -> number of changes.
    """

    label: str
    record: Record
    motion: Motion
    final: Mapping[str, tuple[float, float]]
    rms: Mapping[str, float]
    units: Mapping[str, str]
    events: Mapping[str, Mapping[str, int]]

    def __str__(self) -> str:
        lines = [f"{self.label}: {self.record.n} samples, {self.record.duration:g} s"]
        for name, (measured, simulated) in self.final.items():
            unit = self.units[name]
            lines.append(
                f"  {name}: at the end {amount(measured, unit)} measured,"
                f" {amount(simulated, unit)} simulated; rms of the difference"
                f" {amount(self.rms[name], unit)}, of the measured motion"
                f" {amount(float(np.std(self.record.outputs[name])), unit)}"
            )
        for contact, counts in self.events.items():
            told = ", ".join(f"{what} {count}" for what, count in sorted(counts.items()))
            lines.append(f"  {contact}: {told or 'no event'}")
        if not self.motion.complete:
            lines.append(f"! The run ended at {self.motion.end:g} s: {self.motion.result}")
        if self.record.gaps.size:
            lines.append("! The record has gaps, over which its inputs are joined.")
        return "\n".join(lines)

    __repr__ = __str__


def preview(
    machine: Any,
    record: Record,
    objective: Any = None,
    *,
    label: str | None = None,
    instruments: Mapping[str, Any] | None = None,
    engine: OnSamples | None = None,
) -> Preview:
    """Run a machine that is not fitted with the inputs of a record, by the steps of `engine`.

    It starts from the measurement, or as `objective`, a `FreeRun` or a `ClosedLoop`, says.

    **Raises:** `ValueError` for a record whose channels the machine does not have.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 2.0, 201)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 0.0),
    ... )
    >>> seen = {"mass.s": 0.3 * np.cos(3 * t)}
    >>> record = fx.Record(t, {"drive": -2.7 * np.cos(3 * t)}, seen, name="push")
    >>> print(preview(block, record, fx.FreeRun()))
    push: 201 samples, 2 s
      mass.s: at the end 0.288 m measured, 0.385 m simulated; rms of the difference ...
      friction: backward to forward 1, forward to backward 1
    """
    objective = FreeRun(measured_start=True) if objective is None else objective
    placed = objective.machine(machine)
    engine = OnSamples() if engine is None else engine
    setup, prepared, delayed = prepare_record(placed, record, objective, instruments, engine)
    here = setup.for_channels(prepared.inputs, prepared.names)
    motion, before, after = simulate_beside(here, prepared, record.t, engine, delayed)
    predicted = np.asarray(prepared.predict(here, objective, engine, delayed))
    left = predicted - np.asarray(prepared.measured)
    final = {
        name: (float(record.outputs[name][-1]), float(predicted[-1, i]))
        for i, name in enumerate(prepared.names)
    }
    rms = np.sqrt(np.nanmean(left**2, axis=0))
    modes, events = {-1: "backward", 0: "stuck", 1: "forward", 2: "free"}, {}
    for i, name in enumerate(contact_names(placed)):
        pairs = zip(before[:, i].tolist(), after[:, i].tolist(), strict=True)
        changes = [(a, b) for a, b in pairs if a != b and a in modes and b in modes]
        events[name] = dict(Counter(f"{modes[a]} to {modes[b]}" for a, b in changes))
    return Preview(
        record.name if label is None else label,
        record,
        motion,
        final,
        dict(zip(prepared.names, rms.tolist(), strict=True)),
        {name: channel_unit(placed, record, name) for name in prepared.names},
        events,
    )
