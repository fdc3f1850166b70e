"""Where a fit to records begins: what the machine says, what each record shows, and what a first fit has found."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from frictax.fitting.problem.objectives import LARGEST_CUTOFF, AbstractObjective, FreeRun, seen_in
from frictax.fitting.problem.problem import Problem
from frictax.fitting.problem.setup import Bench, state_names
from frictax.measurements.filters import smooth
from frictax.measurements.record import Record
from frictax.parameters import Parameter, get, replace


def starting_state(machine: Any, record: Record, name: str, cutoff: float = 50.0) -> float | None:
    """The state `name` at the start of the record, where the record measures it or its position."""
    variable = name.rpartition(".")[2]
    of = name[: len(name) - len(variable)] + {"v": "s", "w": "phi"}.get(variable, variable)
    if not {name, of} & set(record.outputs) or name not in state_names(machine):
        return None
    cutoff = min(cutoff, LARGEST_CUTOFF * record.rate)
    if name in record.outputs:
        return float(smooth(record.t, record.outputs[name], cutoff).x[0])
    return float(smooth(record.t, record.outputs[of], cutoff).v[0])


def own_parameters(model: Any, own: Any) -> dict[str, Any]:
    """Those of `own` that are the machine's and no state of it, with the starts given: what a first fit can tell for the next."""
    paths, states = [own] if isinstance(own, str) else list(own), state_names(model)
    kept = [p for p in paths if isinstance(p, str) and not p.startswith(("inputs.", "outputs.", "windows.")) and p not in states]
    return {path: own[path] if isinstance(own, Mapping) else None for path in kept}


def begun_at(model: Any, before: Any, problem: Problem) -> Any:
    """`model` as a first fit found it, with the values of `before` where they fell to a bound or ran off: no search leads back."""
    for u in problem.unknowns:
        bound = u.declaration.domain.bound()
        if np.isfinite(bound) and not u.path.startswith(("inputs.", "outputs.")):
            found, old = np.asarray(get(model, u.path)), np.asarray(get(before, u.path))
            astray = (found - bound < 1e-3 * (old - bound)) | (found - bound > 1e3 * (old - bound))
            model = replace(model, {u.path: np.where(astray, old, found)}) if astray.any() else model
    return model


def shared_start(bench: Bench, p: Parameter, objective: AbstractObjective, records: Mapping[str, Any]) -> np.ndarray:
    """Where the model has it; a state that is 0 there, as it is unless given, where the record begins, if that is in motion.

    From rest a run may begin stuck, so that a little speed does nothing and no search would find it.
    """
    value = np.asarray(p.value, dtype=float)
    record = next(iter(records.values())) if len(records) == 1 else None
    if value.shape or value != 0 or not isinstance(record, Record) or not isinstance(objective, FreeRun) or objective.measured_start:
        return value
    measured = starting_state(bench.machine, record, p.path)
    if measured is None:
        return value
    seen, order = seen_in(p.path, record.outputs)
    x = record.outputs[seen]
    usual = np.std(np.gradient(x, record.t) if order == 1 else x)
    return np.asarray(measured) if abs(measured) > 0.05 * usual else value


def own_start(bench: Bench, p: Parameter, own: Any, i: int, record: Any) -> np.ndarray:
    if isinstance(own, Mapping):
        values = list(own[p.path]) if p.path in own and own[p.path] is not None else None
        if values is not None:
            return np.asarray(values[i], dtype=float)
    if isinstance(record, Record) and p.path in state_names(bench.machine):
        measured = starting_state(bench.machine, record, p.path)
        if measured is not None:
            return np.asarray(measured)
    return np.asarray(p.value, dtype=float)
