"""The machine that a fit identified, as Modelica text."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import frictax
from frictax.fitting import FitResult
from frictax.fitting.fit import refuse
from frictax.fitting.problem.problem import PreparedSweep
from frictax.fitting.problem.readings import acting, invert_sensor, seen_in
from frictax.fitting.problem.setup import driven, moved_to, state_names
from frictax.mechanism import Mechanism

from .modelica import sweep_modifier
from .modelica_machine import machine_text, modifiers, write_machine


def to_modelica(
    found: FitResult,
    record: str | None = None,
    *,
    name: str = "Machine",
    self_contained: bool = False,
    start_time: float | None = None,
    stop_time: float | None = None,
    interval: float | None = None,
    accuracy: float = 1e-6,
    tolerance: float = 1e-3,
    v_max: float | None = None,
    rows: int = 200,
    comment: str | Iterable[str] | None = None,
) -> str:
    """The identified machine as a runnable model under what drove it in `record`, the first motion
    unless given; of a sweep, the modifier that holds its curve to `tolerance`, see
    `sweep_modifier`.

    The drives are the record's inputs as they act on the machine; where the objective takes
    measured states, the model starts from them. At its top stand the record, the objective and the
    fitted values with their intervals, unless a `comment` is given. A record of more than `rows`
    samples is read from a file, which `write_modelica` writes too. `start_time` and `stop_time` [s]
    are the record's unless given; the other options are those of `machine_text`.

    **Raises:** `KeyError` for an unknown record; `ValueError` for what Modelica cannot read.
    """
    times = {"start_time": start_time, "stop_time": stop_time, "interval": interval}
    given = {**times, "v_max": v_max, "comment": comment}
    if found.of_sweep:
        own = {"record": record, "self_contained": self_contained or None}
        refuse({**own, **given}, "a machine", "a law's sweep")
        return sweep_modifier(found, tolerance)
    machine, settings = _identified(found, record, given)
    how: Any = {"accuracy": accuracy, "tolerance": tolerance, "rows": rows}
    return machine_text(machine, name, self_contained=self_contained, **how, **settings)


def write_identified(
    found: FitResult,
    folder: str | Path,
    record: str | None = None,
    *,
    overwrite: bool = False,
    name: str = "Machine",
    self_contained: bool = False,
    start_time: float | None = None,
    stop_time: float | None = None,
    interval: float | None = None,
    accuracy: float = 1e-6,
    tolerance: float = 1e-3,
    v_max: float | None = None,
    rows: int = 200,
    comment: str | Iterable[str] | None = None,
) -> list[Path]:
    """The same into `folder`, with the file of long records beside it; returns the paths."""
    times = {"start_time": start_time, "stop_time": stop_time, "interval": interval}
    machine, settings = _identified(found, record, {**times, "v_max": v_max, "comment": comment})
    how: Any = {"self_contained": self_contained, "accuracy": accuracy, "tolerance": tolerance}
    how |= {"rows": rows, "overwrite": overwrite}
    return write_machine(machine, folder, name, **how, **settings)


def identified_modifiers(
    found: FitResult, tolerance: float = 1e-3, v_max: float | None = None
) -> str:
    """The components that hold fitted values alone, to be pasted into a model."""
    parts = [e.path.partition(".")[0] for e in found.estimates]
    return modifiers(found.model, parts, tolerance, v_max)


def _identified(
    found: FitResult, label: str | None, options: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    motions = [
        name
        for name, prepared in zip(found.records, found.problem.prepared, strict=True)
        if not isinstance(prepared, PreparedSweep)
    ]
    label = label if label is not None else motions[0] if motions else next(iter(found.records))
    machine = found.problem.objective.machine(found.model_for(label))
    settings: dict[str, Any] = {"comment": _comment(found, label)}
    if label in motions:
        index = found.number(label)
        setup = found.problem.setup_at(jnp.asarray(found.x), index)
        prepared = jax.tree.map(jnp.asarray, found.problem.prepared[index])
        assert not isinstance(prepared, PreparedSweep)
        system = driven(
            machine, prepared.t, acting(setup, prepared, found.problem.delayed), prepared.hold
        )
        machine = getattr(system, "mechanism", machine)
        if isinstance(machine, Mechanism):
            channels, delayed = found.records[label].outputs, found.problem.delayed
            states = [name for name in state_names(machine) if name in prepared.known]
            start = {
                name: invert_sensor(setup, prepared, name, *seen_in(name, channels), 0, delayed)
                for name in states
            }
            machine = getattr(moved_to(system, start), "mechanism", machine)
        settings |= {"start_time": float(prepared.t[0]), "stop_time": float(prepared.t[-1])}
    return machine, settings | {k: value for k, value in options.items() if value is not None}


def _comment(found: FitResult, label: str) -> list[str]:
    record = found.records[label]
    citation = " ".join(str(getattr(record, "citation", "")).split())
    records, kind = ", ".join(found.records), type(found.problem.objective).__name__
    lines = [
        f"Identified by frictax {frictax.__version__} from {records} by {kind}.",
        f"Driven here as in {label}{': ' + citation if citation else ''}.",
    ]
    return [
        *(" ".join(line.split()) for line in lines),
        f"Fitted, with the standard error and the {100 * found.level:g} % interval for white"
        " residuals:",
        *(
            f"  {e.name} = {e.value:.10g} {e.unit}, {', '.join(filter(None, (error, interval)))}"
            for e in found.estimates
            for *_, error, interval in [dataclasses.replace(e, declared=(e.unit, 1.0)).cells]
        ),
        *(f"! {w}" for w in found.warnings),
    ]
