"""Initial states and start values of a fit: from the machine, each record, or a first fit."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from frictax.measurements import Record
from frictax.measurements.diagnostics import quantum
from frictax.parameters import Parameter, get, replace

from .objectives import AbstractObjective
from .problem import Problem
from .readings import allowed_cutoff, cutoffs_of, seen_in, smoothed_state
from .setup import Setup, state_names
from .simulations import FreeRun


def starting_state(machine: Any, record: Record, name: str) -> float | None:
    """Return the value of state `name` at the start of the record; None if not measured."""
    if name not in state_names(machine):
        return None
    # With a lower cutoff, the estimate at the beginning of a record is less accurate.
    found = smoothed_state(record, name, cutoffs_of(record, allowed_cutoff(record)))
    return None if found is None else float(found[0])


def named_paths(given: Any) -> list[Any]:
    """Return a list of the paths in the option `free` or `own` (one path, several, or None)."""
    if given is None:
        return []
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]


def own_parameters(model: Any, own: Any) -> dict[str, Any]:
    """Return a dict from path to start values (or None) for the parameters in `own` that a first
    fit can estimate, without parameters of sensors and initial states.
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
    """Return `model`, the result of a first fit, as the start model of the next fit. If a value's
    distance from a bound changed by a factor above 1000, use the value in `before`, the start model
    of the first fit. A search cannot correct such a value."""
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
    """Return the start value of parameter `p`: its value in the model. An initial state that is 0
    (the default) is read from the record instead, if the record begins at another value.

    A contact may stick in a simulation from rest. A small initial speed then does not affect the
    motion, and the search does not find it. Likewise, an upright pendulum at rest does not move for
    any mass. The record is used if its first value exceeds its error or 5 % of the motion.
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
    """Return how many of n samples are used to find the beginning of a record."""
    return min(int(np.clip(0.02 * n, 8, 40)), n)


def beginning(
    record: Record, name: str, x: np.ndarray
) -> tuple[tuple[float, float], tuple[float, float], float]:
    """Return (first value, error), (first rate of change, error) and the standard deviation of the
    rate of change. `x`: the output `name` without offset, drift and gain of its sensor.

    A parabola is fitted to the first samples. The error is the sum of five standard errors, the
    difference from a cubic fit, and the largest effect of the sensor's resolution. If the
    first samples of a slow motion are equal, only this resolution is an error above 0. Positions of
    encoder ticks are exact, so their resolution is 0.
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
