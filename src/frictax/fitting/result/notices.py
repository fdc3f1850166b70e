"""What is said of a fit to records: where its search ended, what it left, and what its record could
not tell.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frictax.measurements.record import Record
from frictax.mechanism import Force, Mechanism, Torque
from frictax.parameters import get
from frictax.signals import Constant

from ..problem.initial_state import beginning
from ..problem.inverse_dynamics import InverseDynamics
from ..problem.objectives import (
    LARGEST_CUTOFF,
    AbstractObjective,
    ClosedLoop,
    FreeRun,
    Windows,
    seen_in,
)
from ..problem.problem import Problem
from ..problem.setup import state_names
from ..search.methods import AbstractMethod, LevenbergMarquardt

_LARGE = 3.0  # times the standard deviations given: residuals that noise does not explain


def not_settled(method: AbstractMethod, steps: int, objective: AbstractObjective) -> str:
    if (
        isinstance(method, LevenbergMarquardt)
        and steps < method.max_steps
        and not objective.in_units_of_outputs()
    ):
        return (
            f"The search ended after {steps} steps: no step makes the misfit less although its"
            " slope says so, as where parameters can hardly be told apart. Fit fewer."
        )
    if isinstance(method, LevenbergMarquardt) and steps < method.max_steps:
        return (
            f"The search ended after {steps} steps at a kink: no step makes the misfit less"
            " although its slope says so, for a stop or a breakaway appears or vanishes there."
            " Compare other starts, starts=16 say; the errors hold on one side of the kink only."
        )
    return (
        f"{type(method).__name__} stopped after {steps} steps without meeting its tolerance: allow"
        " more, or give a better start."
    )


def too_large(objective: AbstractObjective, records: Mapping[str, Any], scale: float) -> list[str]:
    """A sentence where residuals are far larger than what was measured is said to be uncertain."""
    deviations = [
        r.sd.get(name) for r in records.values() if isinstance(r, Record) for name in r.outputs
    ]
    if (
        scale < _LARGE
        or not deviations
        or any(sd is None for sd in deviations)
        or not objective.in_units_of_outputs()
    ):
        return []
    return [
        f"What is left is {scale:.3g} times as large as the standard deviations given: the machine"
        " lacks something, they are too small, or this is not the least misfit there is. Look at"
        " found.residual_study(), and compare starts=16 or `Windows(free_starts=True)`."
    ]


def standing_still(problem: Problem, norms: np.ndarray) -> list[str]:
    """A sentence where nothing of the machine changes what was measured, by the `norms` of the
    Jacobian's columns; where it begins may.
    """
    states = state_names(problem.bench.machine)
    unknowns = [
        u
        for u in problem.unknowns
        if not u.hidden and not u.path.startswith(("inputs.", "outputs.")) and u.path not in states
    ]
    if norms.any() and (
        not unknowns or any(norms[u.first : u.first + u.size].any() for u in unknowns)
    ):
        return []
    return [
        "Nothing of the machine that may move changes what was measured: does the machine stand"
        " still with the start values? Start from less friction, where the record begins"
        " (measured_start=True), or from `start=InverseDynamics()`."
    ]


def held_breakaways(
    sentences: Sequence[str], still: Sequence[str], records: Mapping[str, Any]
) -> list[str]:
    """`sentences`, with what is true of breakaways among the names `still`, which have no
    derivative, where inputs are held.
    """
    jumps = [n for n in still if n.partition("@")[0].endswith(".peak")]
    if not any(isinstance(r, Record) and r.hold for r in records.values()):
        jumps = []
    kept = [
        s for s in sentences if not any(s.startswith(f"{name} has no effect") for name in jumps)
    ]
    return kept + [
        f"Held inputs change at samples only, for which a breakaway waits: {name} acts in jumps,"
        " which no derivative sees. Compare fits with other values of it."
        for name in jumps
    ]


def undriven(problem: Problem, records: Mapping[str, Any]) -> list[str]:
    """Sentences on drives that do nothing: 0 in the machine, not fitted, and without an input in
    any record.
    """
    machine = problem.bench.machine
    if not isinstance(machine, Mechanism):
        return []
    given = {
        name.partition(".")[0]
        for r in records.values()
        if isinstance(r, Record)
        for name in r.inputs
    }
    given |= {u.path.partition(".")[0] for u in problem.unknowns}
    idle = [
        name
        for name, part in zip(machine.names, machine.parts, strict=True)
        if name not in given
        and isinstance(part, Force | Torque)
        and _is_nought(getattr(part, part.signal_name() or ""))
    ]
    return [
        f"{name} is 0 all the time: no record has an input for it. Name its column,"
        f" inputs={{{name!r}: ...}}, or leave the part out."
        for name in idle
    ]


def unfiltered(objective: AbstractObjective, records: Sequence[Record]) -> list[str]:
    """Sentences on records whose rate leaves the filter of `InverseDynamics` next to nothing to
    take away.
    """
    if not isinstance(objective, InverseDynamics):
        return []
    return [
        f"Record {r.name!r} at {r.rate:.4g} Hz cannot be filtered at {objective.cutoff:g} Hz, and"
        f" at {LARGEST_CUTOFF * r.rate:.4g} Hz, as it is, nearly all noise passes and biases what"
        " is found: give a lower `cutoff`, a few times the fastest motion."
        for r in records
        if objective.cutoff > LARGEST_CUTOFF * r.rate
    ]


def uncounted(
    objective: AbstractObjective, plans: Sequence[Any], labels: Sequence[str]
) -> list[str]:
    """Sentences on records many of whose samples come after gaps in their windows."""
    if not isinstance(objective, Windows):
        return []
    out = []
    for label, plan in zip(labels, plans, strict=True):
        if getattr(plan, "rows", None) is None:
            continue
        weight = np.asarray(plan.weight)[:, 0 if objective.free_starts else 1 :]
        lost = float(np.mean(weight == 0))
        if lost > 0.05:
            out.append(
                f"{100 * lost:.0f} % of the samples of record {label!r} do not count: they come"
                " after a gap of more than 2.5 steps in their window. Shorter windows lose fewer."
            )
    return out


def _is_nought(signal: Any) -> bool:
    return isinstance(signal, Constant) and not np.any(np.asarray(signal.k))


def far_starts(problem: Problem, records: Mapping[str, Any], states: tuple[str, ...]) -> list[str]:
    """Sentences on runs that begin elsewhere than their records do."""
    objective, machine, out = problem.objective, problem.bench.machine, []
    for i, (label, r) in enumerate(records.items()):
        if (
            not isinstance(r, Record)
            or not isinstance(objective, FreeRun | ClosedLoop)
            or objective.measured_start
        ):
            continue
        moved = {u.path for u in problem.unknowns}
        names = [n for n in states if n in r.outputs and not {n, f"outputs.{n}.offset"} & moved]
        rates = [
            n
            for n in states
            if n not in r.outputs and n not in moved and seen_in(n, r.outputs)[0] in r.outputs
        ]
        if not names and not rates:
            continue
        if isinstance(machine, Mechanism):
            start = {n: float(get(machine, n)) for n in (*names, *rates)}
        else:
            y0 = np.asarray(problem.bench_at(problem.x0, i).machine.start(jnp.asarray(r.t[0]))[0])
            start = dict(zip(states, y0, strict=False))
        for n in names:
            # numpy's numbers, a tenth of the time of JAX's
            sensor = jax.tree.map(np.asarray, problem.bench.outputs.at(n))
            first = float(sensor.undone(r.t[:1], r.outputs[n][:1], r.t[0])[0])
            beyond = abs(first - start[n]) - 5 * np.mean(r.sd.get(n) or 0)
            if beyond > 0 and beyond > 0.1 * np.std(r.outputs[n]):
                out.append(
                    f"{n} starts at {start[n]:.4g}, record {label!r} at {first:.4g}: the run begins"
                    f" elsewhere than the measurement. Write {type(objective).__name__}(...,"
                    f" measured_start=True), or fit the start by own=[{n!r}]."
                )
        for n in rates:
            of, order = seen_in(n, r.outputs)
            if order != 1:
                continue
            sensor = jax.tree.map(np.asarray, problem.bench.outputs.at(of))
            _, (first, error), usual = beginning(r.t, sensor.undone(r.t, r.outputs[of], r.t[0]))
            if abs(first - start[n]) - error > 0.2 * usual:
                out.append(
                    f"{n} starts at {start[n]:.4g}, and by {of} record {label!r} at about"
                    f" {first:.2g}: the run begins at another speed than the measurement. Write"
                    f" {type(objective).__name__}(..., measured_start=True), or fit the start by"
                    f" own=[{n!r}]."
                )
    return out
