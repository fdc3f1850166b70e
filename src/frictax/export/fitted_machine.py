"""Build a fitted machine with the inputs and the initial state of one of its records."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import PreparedSweep
from frictax.fitting.problem.readings import acting, invert_sensor, seen_in
from frictax.fitting.problem.setup import Setup, driven, moved_to, state_names
from frictax.mechanism import Mechanism
from frictax.parameters import parameters


def values_by_record(found: FitResult) -> dict[str, dict[str, Any]]:
    """Return path -> record -> value for each parameter of the machine that has a separate value in
    each record, also by a tie.
    """
    own = {u.path for u in found.problem.unknowns if u.record is not None and not u.hidden}
    if not own:
        return {}
    shared = {p.path: p.value for p in parameters(found.model)}
    each = {r: {p.path: p.value for p in parameters(found.model_for(r))} for r in found.records}
    ties = {tie.path for tie in found.problem.ties} & set(shared)
    own |= {path for path in ties if any(np.any(m[path] != shared[path]) for m in each.values())}
    return {path: {r: m[path] for r, m in each.items()} for path in shared if path in own}


def machine_of_parts(found: FitResult, label: str | None, parts: Iterable[str]) -> Any:
    """Return the fitted machine with the values of the record `label`, by default those that all
    records share.

    **Raises:** `ValueError` without `label` if a value of `parts` differs by record.
    """
    for path, values in values_by_record(found).items() if label is None else ():
        if len(values) > 1 and path.partition(".")[0] in parts:
            raise ValueError(
                f"`label` must name a record, because {path!r} has a separate value in each record,"
                f" got None. Write label={next(iter(values))!r}, or --record of `frictax export`."
            )
    return example_machine(found)[0] if label is None else found.model_for(label)


def example_machine(found: FitResult) -> tuple[Any, str | None]:
    """Return the fitted machine with the values of the first record, and the label of this record.
    If no value differs by record, return the machine and None.
    """
    label = next(iter(found.records)) if values_by_record(found) else None
    return found.model if label is None else found.model_for(label), label


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
