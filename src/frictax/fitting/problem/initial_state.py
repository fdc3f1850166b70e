"""Where a fit to records begins: what the machine says, what each record shows, and what a first
fit has found.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from frictax.measurements import Record
from frictax.measurements.diagnostics import quantum
from frictax.parameters import Parameter, get, replace

from .objectives import AbstractObjective
from .problem import Problem
from .readings import cutoffs_of, seen_in, smoothed_state
from .setup import Setup, state_names
from .simulations import FreeRun

_CUTOFF = 50.0  # Hz; a filter that ends lower knows the beginning of a record less well


def starting_state(machine: Any, record: Record, name: str) -> float | None:
    """The state `name` at the start of the record, where the record measures it or its position."""
    if name not in state_names(machine):
        return None
    found = smoothed_state(record, name, cutoffs_of(record, _CUTOFF))
    return None if found is None else float(found[0])


def named_paths(given: Any) -> list[Any]:
    """What `free` or `own` names: one path, or many."""
    if given is None:
        return []
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]


def own_parameters(model: Any, own: Any) -> dict[str, Any]:
    """Those of `own` that are the machine's and no state of it, with the starts given: what a first
    fit can tell for the next.
    """
    states = state_names(model)
    kept = [
        p
        for p in named_paths(own)
        if isinstance(p, str)
        and not p.startswith(("inputs.", "outputs.", "windows."))
        and p not in states
    ]
    return {path: own[path] if isinstance(own, Mapping) else None for path in kept}


def begun_at(model: Any, before: Any, problem: Problem) -> Any:
    """`model` as a first fit found it, with the values of `before` where they came to a lower or an
    upper bound or ran off: no search leads back.
    """
    for u in problem.unknowns:
        low, high = u.declaration.domain.bound(), u.declaration.domain.upper()
        if not np.isfinite(low) or u.path.startswith(("inputs.", "outputs.")):
            continue
        found, old = np.asarray(get(model, u.path)), np.asarray(get(before, u.path))
        astray = (found - low < 1e-3 * (old - low)) | (found - low > 1e3 * (old - low))
        if np.isfinite(high):
            astray |= high - found < 1e-3 * (high - old)
        if astray.any():
            model = replace(model, {u.path: np.where(astray, old, found)})
    return model


def shared_start(
    setup: Setup, p: Parameter, objective: AbstractObjective, records: Mapping[str, Any]
) -> np.ndarray:
    """Where the model has it; a state that is 0 there, as it is unless given, where the record
    begins, if that may be elsewhere.

    From rest a run may begin stuck, so that a little speed does nothing and no search would find
    it; and upright a pendulum stays where it is, whatever it weighs. A start is elsewhere where its
    errors do not explain that, or it is no small part of the motion.
    """
    value = np.asarray(p.value, dtype=float)
    record = next(iter(records.values())) if len(records) == 1 else None
    if (
        value.shape
        or value != 0
        or not isinstance(record, Record)
        or not isinstance(objective, FreeRun)
        or objective.measured_start
    ):
        return value
    measured = starting_state(setup.machine, record, p.path)
    if measured is None:
        return value
    seen, order = seen_in(p.path, record.outputs)
    place, rate, usual = beginning(record, seen, record.outputs[seen])
    (first, error), usual = (rate, usual) if order == 1 else (place, np.std(record.outputs[seen]))
    return np.asarray(measured) if abs(first) > error or abs(measured) > 0.05 * usual else value


def first_samples(n: int) -> int:
    """How many of n samples tell how a record begins."""
    return min(int(np.clip(0.02 * n, 8, 40)), n)


def beginning(
    record: Record, name: str, x: np.ndarray
) -> tuple[tuple[float, float], tuple[float, float], float]:
    """What the output `name`, `x` without what its sensor adds, shows of its start: its value with
    what that can be wrong by, how fast it changes likewise, and usually changes.

    By a parabola through the first samples. It is wrong by five standard errors of noise, by what a
    cubic says otherwise, and by what steps of the sensor's resolution add up to at worst: these are
    no noise, and of a slow motion all first samples may share one. Ticks have no such error.
    """
    t, k = record.t, first_samples(record.n)
    resolution = 0.0 if name in record.ticks else quantum(x)
    s, reach = (t[:k] - t[0]) / (t[k - 1] - t[0]), float(t[k - 1] - t[0])
    powers = s[:, None] ** np.arange(4)
    weights = np.linalg.pinv(powers[:, :3])
    found, bent = weights @ x[:k], np.linalg.lstsq(powers, x[:k])[0]
    noise = np.sqrt(np.sum((x[:k] - powers[:, :3] @ found) ** 2) / max(k - 3, 1))
    errors = 5.0 * noise * np.linalg.norm(weights, axis=1) + 0.5 * resolution * np.sum(
        np.abs(weights), axis=1
    )
    errors += np.abs(found - bent[:3])
    each = max(k // 4, 1)
    usual = float(np.std(np.diff(x[::each]) / np.diff(t[::each])))
    return (
        (float(found[0]), float(errors[0])),
        (float(found[1]) / reach, float(errors[1]) / reach),
        usual,
    )


def own_start(setup: Setup, p: Parameter, own: Any, i: int, record: Any) -> np.ndarray:
    if isinstance(own, Mapping):
        values = list(own[p.path]) if p.path in own and own[p.path] is not None else None
        if values is not None:
            return np.asarray(values[i], dtype=float)
    if isinstance(record, Record) and p.path in state_names(setup.machine):
        measured = starting_state(setup.machine, record, p.path)
        if measured is not None:
            return np.asarray(measured)
    return np.asarray(p.value, dtype=float)
