"""Build a fitted machine with the inputs and the initial state of one of its records."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import PreparedSweep
from frictax.fitting.problem.readings import acting, invert_sensor, seen_in
from frictax.fitting.problem.setup import Setup, driven, moved_to, state_names
from frictax.mechanism import Mechanism


class FittedMachine(NamedTuple):
    """A fitted machine with the inputs and the measured initial state of the record `label`.

    `setup`: the machine and its instruments; `ts`: times of the record [s], None for a sweep.
    """

    machine: Any
    label: str
    ts: np.ndarray | None
    setup: Setup

    @classmethod
    def of(cls, found: FitResult, label: str | None = None) -> "FittedMachine":
        """Build the machine for the record `label`, by default the first that is not a sweep."""
        records = dict(zip(found.records, found.problem.prepared, strict=True))
        motions = [name for name, p in records.items() if not isinstance(p, PreparedSweep)]
        label = label if label is not None else motions[0] if motions else next(iter(records))
        machine = found.problem.objective.machine(found.model_for(label))
        setup = found.problem.setup_at(jnp.asarray(found.x), found.number(label))
        if label not in motions:
            return cls(machine, label, None, setup)
        prepared = jax.tree.map(jnp.asarray, records[label])
        delayed = found.problem.delayed
        system = driven(machine, prepared.t, acting(setup, prepared, delayed), prepared.hold)
        if isinstance(getattr(system, "mechanism", machine), Mechanism):
            channels = found.records[label].outputs
            start = {
                name: invert_sensor(setup, prepared, name, *seen_in(name, channels), 0, delayed)
                for name in state_names(machine)
                if name in prepared.known
            }
            system = moved_to(system, start)
        return cls(getattr(system, "mechanism", system), label, np.asarray(prepared.t), setup)
