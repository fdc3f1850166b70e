"""Experiments that identify a parameter better, compared by the forces of their motions."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from frictax.engine.sensitive import jvp_columns
from frictax.fitting import FitOptions, FitResult, InverseDynamics
from frictax.fitting.build_problem import build_problem
from frictax.fitting.problem.problem import residuals_and_jacobian
from frictax.fitting.problem.readings import integral
from frictax.fitting.problem.steady import as_steady
from frictax.fitting.result.covariance import inverse_gram
from frictax.measurements import Record
from frictax.measurements.filters import smooth
from frictax.measurements.units import VELOCITY_OF
from frictax.mechanism import Mechanism
from frictax.progress import SILENT, Work

FAST, SLOW, SPAN = 3.0, 4.0, 100.0


@dataclasses.dataclass(frozen=True)
class Remedy:
    """An experiment, and the factor [1] by which it reduces the error of a parameter at equal
    errors of force.
    """

    says: str
    gain: float

    @classmethod
    def from_errors(cls, says: str, here: float, there: float) -> "Remedy":
        """Compare the errors of a parameter in the record and in the experiment."""
        return cls(says, float(here / there) if np.isfinite(here) else np.inf)


def better_motions(
    machine: Any,
    records: Mapping[str, Any],
    names: Sequence[str],
    weak: Sequence[str],
    free: Any,
    instruments: Mapping[str, Any],
    tied: Any = None,
    work: Work = SILENT,
) -> dict[str, tuple[Remedy, ...]]:
    """Return the tried motions for each weak parameter. All are variations of the first record.

    Sliding does not identify `peak`. Its remedy is a breakaway.
    """
    hold = (
        "let it come to rest and hold it there, then raise the force slowly until it breaks away,"
        " several times"
    )
    out: dict[str, tuple[Remedy, ...]] = {
        name: (Remedy(hold, np.inf),) for name in weak if name.endswith(".peak")
    }
    record = next((r for r in records.values() if isinstance(r, Record)), None)
    if record is None or not isinstance(machine, Mechanism):
        return out
    motion = _positions(machine, record)
    if motion is None:
        return out
    here = _errors(machine, record, motion, names, free, instruments, tied)
    if here is None:
        return out
    motions = _motions(record, motion)
    for k, (says, tried) in enumerate(motions):
        there = _errors(machine, record, tried, names, free, instruments, tied)
        work.count(k + 1, len(motions), "tried")
        for i, name in enumerate(names):
            if there is not None and name in weak and not name.endswith(".peak") and there[i] > 0:
                out[name] = (*out.get(name, ()), Remedy.from_errors(says, here[i], there[i]))
    return out


def _positions(machine: Mechanism, record: Record) -> dict[str, np.ndarray] | None:
    """Return the measured position of the only body; None if there are several bodies, or if it is
    not measured.
    """
    bodies = [n for n, part in machine.named_parts() if hasattr(part, "inertia")]
    if len(bodies) != 1:
        return None
    (body,) = bodies
    for position, velocity in VELOCITY_OF.items():
        if f"{body}.{position}" in record.outputs:
            return {f"{body}.{position}": record.outputs[f"{body}.{position}"]}
        if f"{body}.{velocity}" in record.outputs:
            return {f"{body}.{position}": integral(record.t, record.outputs[f"{body}.{velocity}"])}
    return None


def _motions(
    record: Record, motion: Mapping[str, np.ndarray]
) -> list[tuple[str, dict[str, np.ndarray]]]:
    """Return other motions of the same length, each with the sentence that asks for it."""
    t = record.t - record.t[0]
    ((name, s),) = motion.items()
    v = smooth(record.t, s, min(20.0, 0.2 * record.rate)).v
    top = float(np.max(np.abs(v)))
    unit = "rad/s" if name.endswith("phi") else "m/s"
    tried = [
        (
            f"move the body faster, at up to {FAST * top:.2g} {unit} instead of {top:.2g}",
            s[0] + FAST * (s - s[0]),
        ),
        (
            f"move the body more slowly, at up to {top / SLOW:.2g} {unit} instead of {top:.2g},"
            " with slow ramps",
            np.interp(t / SLOW, t, s),
        ),
    ]
    if np.min(v) > -0.05 * top or np.max(v) < 0.05 * top:
        half = 0.5 * t[-1]
        there = np.interp(np.where(t <= half, 2 * t, 2 * (t[-1] - t)), t, s)
        tried.append(("let the motion reverse, instead of moving in one direction only", there))
    tried.append(
        (
            f"sweep the speed slowly from {top / SPAN:.2g} to {top:.2g} {unit} and back, in both"
            " directions",
            s[0] + np.concatenate([[0.0], np.cumsum(_sweep_speed(t, top)[1:] * np.diff(t))]),
        )
    )
    half = len(s) // 2
    fast, slow = FAST * (s[:half] - s[0]), np.interp(t[: len(s) - half] / SLOW, t, s) - s[0]
    tried.append(
        (
            f"record both slow and fast motion, at {top / SLOW:.2g} and {FAST * top:.2g} {unit}",
            np.concatenate([fast, fast[-1] + slow]),
        )
    )
    return [(says, {name: x}) for says, x in tried]


def _sweep_speed(t: np.ndarray, top: float) -> np.ndarray:
    """Return a speed that goes exponentially from `top`/`SPAN` to `top` and back, first forward and
    then backward.
    """
    phase = 4.0 * t / t[-1]
    way = np.where(phase < 2, 1.0, -1.0)
    return way * top * SPAN ** -np.abs(np.mod(phase, 2.0) - 1.0)


def _errors(
    machine: Mechanism,
    record: Record,
    motion: Mapping[str, np.ndarray],
    names: Sequence[str],
    free: Any,
    instruments: Mapping[str, Any],
    tied: Any = None,
) -> np.ndarray | None:
    """Return the standard error of each parameter from the forces along a motion, at unit errors of
    force; nan if the forces do not depend on it.
    """
    try:
        other = Record(record.t, record.inputs, dict(motion), hold=record.hold, name=record.name)
        objective = InverseDynamics(min(20.0, 0.2 * record.rate), at_samples=True)
        given = {k: v for k, v in instruments.items() if k.startswith("inputs.")}
        options = FitOptions(objective=objective, instruments=given, free=free, tied=tied)
        problem, _ = build_problem(machine, {record.name: other}, options)
        _, jacobian = (np.asarray(a) for a in residuals_and_jacobian(problem, problem.x0))
    except (ValueError, KeyError):  # some free parameter does not change the forces
        return None
    mine = [name for u in problem.unknowns for name in u.names]
    norms = np.linalg.norm(jacobian, axis=0)
    covariance = inverse_gram(jacobian, norms, norms > 0)
    error = dict(zip(mine, np.sqrt(np.where(norms > 0, np.diag(covariance), np.nan)), strict=True))
    return np.asarray([error.get(name, np.nan) for name in names])


def better_speeds(found: FitResult, weak: Sequence[str]) -> dict[str, tuple[Remedy, ...]]:
    """Return the tried sweeps for each weak parameter: other speeds, direction, breakaway rows."""
    sweep, problem, x = found.sweep, found.problem, jnp.asarray(found.x)
    v, way, breakaway = (jnp.asarray(a) for a in (sweep.velocity, sweep.direction, sweep.breakaway))
    unit = "rad/s" if sweep.rotational else "m/s"
    sliding = np.abs(sweep.velocity[~sweep.breakaway])
    top, slowest = float(np.max(sliding)), float(np.min(sliding))

    def errors(v: Array, breakaway: Array, way: Array) -> np.ndarray:
        def forces(x: Array) -> Array:
            return as_steady(problem.setup_at(x, None).machine).predict(v, breakaway, way)

        jacobian = np.asarray(jvp_columns(forces, (x,), (jnp.eye(x.size),))[1])
        norms = np.linalg.norm(jacobian, axis=0)
        return np.sqrt(
            np.where(norms > 0, np.diag(inverse_gram(jacobian, norms, norms > 0)), np.inf)
        )

    here = errors(v, breakaway, way)
    half = jnp.arange(v.shape[0]) % 2 == 0
    tried = [
        (
            f"measure faster too, up to {FAST * top:.2g} {unit} instead of {top:.2g}",
            (jnp.where(half, FAST * v, v), breakaway, way),
        ),
        (
            f"measure more slowly too, down to {slowest / SLOW:.2g} {unit} instead of"
            f" {slowest:.2g}",
            (jnp.where(half, v / SLOW, v), breakaway, way),
        ),
        ("measure the force at which motion begins too", (v, breakaway | half, way)),
    ]
    if not sweep.both_directions:
        turned = (jnp.where(half, -v, v), breakaway, jnp.where(half, -way, way))
        tried.append(("measure the other direction too", turned))
    out: dict[str, tuple[Remedy, ...]] = {}
    for says, rows in tried:
        there = errors(*rows)
        for i, name in enumerate(found.names):
            if name in weak and there[i] > 0 and np.isfinite(there[i]):
                out[name] = (*out.get(name, ()), Remedy.from_errors(says, here[i], there[i]))
    return out
