"""The motion of a fitted machine beside a record, with the modes of its contacts."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from frictax.engine import Result, walk
from frictax.fitting import FitResult, FreeRun
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.fitting.problem.readings import acting, divide_gaps, dividing, measured_starts
from frictax.fitting.problem.setup import (
    Setup,
    contact_forces,
    contact_names,
    driven,
    moved_to,
    state_names,
)
from frictax.measurements import Record
from frictax.mechanism import MechanicalSystem
from frictax.programs import cached_jit


@dataclasses.dataclass(frozen=True, eq=False)
class Motion:
    """A free run of a fitted machine at the samples of a record.

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
        """Whether the run reached the end of the record."""
        return bool(self.result == Result.successful)

    @property
    def end(self) -> float:
        """The last time that the run reached [s]."""
        known = np.all([np.isfinite(x) for x in self.states.values()], axis=0)
        return float(self.t[np.flatnonzero(known)[-1]]) if known.any() else float(self.t[0])


def motion(found: FitResult, record: str | Record, objective: FreeRun | None = None) -> Motion:
    """Run the fitted machine under the inputs of a record, a label of the fit or another `Record`,
    from its measured start unless `objective` says otherwise.
    """
    i, data = named(found, record)
    objective = FreeRun(measured_start=True) if objective is None else objective
    setup = found.problem.setup_at(jnp.asarray(found.x), i)
    prepared = divide_gaps(objective.prepare(setup.machine, data), found.problem.engine)
    here = setup.for_channels(prepared.inputs, prepared.names)
    return walked(here, prepared, data.t, found.problem.engine, found.problem.delayed)[0]


def walked(
    setup: Setup, prepared: PreparedRecord, t: Any, engine: Any, delayed: frozenset[str]
) -> tuple[Motion, np.ndarray, np.ndarray]:
    """The motion of a machine under the inputs of a record, and the modes before and after each of
    its events, shape (events, contacts).
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


def named(found: FitResult, record: Any) -> tuple[int | None, Any]:
    """The number of the record of the fit that a label names, None for a record itself; and the
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
