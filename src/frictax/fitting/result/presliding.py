"""Notices of bristle parameters that a record does not identify. The sensor may not resolve the
deflection, the samples the oscillation, or the motion the breakaway. Another spring may be in
series with the bristle.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.measurements import Record
from frictax.measurements.diagnostics import quantum
from frictax.measurements.reversals import rises
from frictax.mechanism import MechanicalSystem, Mechanism
from frictax.mechanism.forces import AbstractMotion
from frictax.mechanism.layout import contact_row
from frictax.mechanism.sparse import dot
from frictax.notice import Notice
from frictax.parameters import Numbers
from frictax.programs import cached_jit

from ..problem.inverse_dynamics import InverseDynamics
from ..problem.objectives import PreparedRecord
from ..problem.problem import Problem
from ..problem.sensors import perfect
from ..problem.setup import Named

_COUNTS = 20  # least number of sensor steps in the deflection that determine the stiffness
_SAMPLES = 4  # least number of samples in a period of a sticking bristle that show its damping
_SEEN = 0.5  # [breakaway minus sliding friction] least excess of the force that shows breakaway
_STRAIGHT = 2.2  # ratio of the distances to 90 % and to 50 %: 1.8 of a spring, 3.3 of `Dahl`
_LEAST = 4  # least number of branches for the test of a spring in series
_UNDAMPED = 1e-3  # [critical damping] damping below which a bristle is undamped


class Rubbing(NamedTuple):
    """A contact with a bristle: its name, its part, and the names of the variables of its motion
    and friction. `mobility`: relative acceleration by a unit force, None for a prescribed motion.
    """

    name: str
    part: Any
    motion: str
    friction: str
    mobility: float | None


def has_bristles(machine: Any) -> bool:
    """Return True if a contact of the machine has a bristle."""
    parts = machine.named_parts() if isinstance(machine, Mechanism) else ()
    return any(getattr(part, "bristle", None) is not None for _, part in parts)


def presliding(
    problem: Problem, machine: Any, records: Mapping[str, Any], x: Float[np.ndarray, " q"]
) -> list[Notice]:
    """Return notices of bristles with fitted parameters, or with a fitted law. `machine`: the
    fitted machine.
    """
    free = {u.path for u in problem.unknowns}
    out: list[Notice] = []
    for contact in _rubbing(machine):
        stiffness = [f"{contact.name}.bristle.{n}" for n in ("sigma_0", "k")]
        stiffness = [path for path in stiffness if path in free]
        damping = f"{contact.name}.bristle.sigma_1"
        dips = [f"{contact.name}.{law}.F_Stribeck" for law in ("f_pos", "tau_pos")]
        for label, record in records.items():
            if not isinstance(record, Record):
                continue
            if stiffness:
                asked = contact, stiffness[0], machine, record, label
                out += [*_coarse(*asked), *_in_series(*asked)]
            if damping in free:
                out += _too_slow(contact, damping, record, label)
        if damping in free:
            out += _without_damping(contact, damping)
        for path in dips:
            if path in free:
                out += _unbroken(problem, contact, path, x)
    return list(dict.fromkeys(out))


def _rubbing(machine: Mechanism) -> Iterator[Rubbing]:
    system, t = MechanicalSystem(machine), jnp.zeros(())
    now = system.snapshot(t, *system.start(t))
    for b, contact in enumerate(system.layout.bristles):
        part, row = now.bristle_elements[b], contact_row(contact, now.body_rows)
        moves = dot(row, now.accelerations_by(row)) if row else None
        position, force = ("phi", "tau") if part.rotational else ("s", "f")
        yield Rubbing(
            machine.names[contact.part],
            part,
            f"{part.body.partition('.')[0]}.{position}",
            f"{machine.names[contact.part]}.{force}",
            None if moves is None else float(moves),
        )


def _motion(contact: Rubbing, machine: Mechanism, record: Record) -> tuple[str, Any] | None:
    """Return the channel of the contact's position and its values."""
    if contact.motion in record.outputs:
        return contact.motion, record.outputs[contact.motion]
    body = contact.motion.partition(".")[0]
    for name, x in record.inputs.items():
        part = machine[name.partition(".")[0]]
        if isinstance(part, AbstractMotion) and part.body == body:
            return name, x
    return None


def _breakaway(contact: Rubbing) -> float:
    return float(max(contact.part.law(1).f0, contact.part.law(-1).f0))


def _coarse(
    contact: Rubbing, path: str, machine: Mechanism, record: Record, label: str
) -> list[Notice]:
    seen = _motion(contact, machine, record)
    if seen is None:
        return []
    channel, x = seen
    way, step = 2 * _breakaway(contact) / float(contact.part.bristle.sigma_0), quantum(x)
    if not step or way >= _COUNTS * step:
        return []
    unit = "rad" if contact.part.rotational else "m"
    numbers = {"way": way, "unit": unit, "counts": way / step, "channel": channel, "record": label}
    return [Notice("presliding-coarse", path, numbers)]


def _in_series(
    contact: Rubbing, path: str, machine: Mechanism, record: Record, label: str
) -> list[Notice]:
    """Return a notice of another spring in series, if the motion and the friction are measured."""
    seen = _motion(contact, machine, record)
    if seen is None or contact.friction not in record.outputs:
        return []
    found = rises(seen[1], record.outputs[contact.friction], (0.5, 0.9))
    if len(found) < _LEAST:
        return []
    half, far = np.median(found[:, :2], axis=0)
    if far >= _STRAIGHT * half:
        return []
    unit = "rad" if contact.part.rotational else "m"
    numbers = {"half": half, "far": far, "unit": unit, "record": label}
    return [Notice("stiffness-in-series", path, numbers)]


def _too_slow(contact: Rubbing, path: str, record: Record, label: str) -> list[Notice]:
    if contact.mobility is None:
        return []
    stiffness = float(contact.part.bristle.sigma_0)
    frequency = float(np.sqrt(stiffness * contact.mobility)) / (2 * np.pi)
    if record.rate >= _SAMPLES * frequency:
        return []
    numbers = {"frequency": frequency, "rate": record.rate, "record": label}
    return [Notice("bristle-swings-unseen", path, numbers)]


def _without_damping(contact: Rubbing, path: str) -> list[Notice]:
    value, mobility = float(contact.part.bristle.sigma_1), contact.mobility or 1.0
    critical = 2 * float(np.sqrt(contact.part.bristle.sigma_0 / mobility))
    return [Notice("bristle-undamped", path)] if value < _UNDAMPED * critical else []


def _unbroken(
    problem: Problem, contact: Rubbing, path: str, x: Float[np.ndarray, " q"]
) -> list[Notice]:
    """Return a notice if no record deflects the bristle up to its quasi-static breakaway."""
    if isinstance(problem.objective, InverseDynamics):
        return []
    law, most = contact.part.law(1), 0.0
    name = f"{contact.name}.{'tau_z' if contact.part.rotational else 'f_z'}"
    for i, prepared in enumerate(problem.prepared):
        if isinstance(prepared, PreparedRecord):
            most = max(most, float(np.max(np.abs(_forces(problem, jnp.asarray(x), i, name)[0]))))
    least = float(law.f0) - float(law.F_Stribeck)
    if not np.isfinite(most) or most >= least + _SEEN * (float(law.f0) - least):
        return []
    unit = "N.m" if contact.part.rotational else "N"
    return [Notice("breakaway-unseen", path, {"most": most, "f0": float(law.f0), "unit": unit})]


@cached_jit
def _forces(problem: Problem, x: Float[Numbers, " q"], i: int, name: str) -> tuple[Array]:
    """Return the force in a bristle at the samples of prepared i."""
    prepared, setup = problem.prepared[i], problem.setup_at(x, i)
    assert isinstance(prepared, PreparedRecord)
    nothing = np.zeros((*np.shape(prepared.weight)[:-1], 1))
    asked = dataclasses.replace(prepared, names=(name,), measured=nothing, weight=nothing)
    setup = dataclasses.replace(setup, outputs=Named.from_dict({name: perfect()}))
    late = frozenset(n for n in problem.delayed if n.startswith("inputs."))
    return (problem.objective.predict(setup, asked, problem.engine, late),)
