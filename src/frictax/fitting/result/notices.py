"""Notices of a fit to records: the end of the search, its residuals, and parameters that the record
does not identify.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from frictax.measurements.noise import noise_of_output, white_noise_of
from frictax.measurements.record import Record
from frictax.mechanism import Force, Mechanism, Torque
from frictax.notice import Notice
from frictax.signals import Constant

from ..problem.initial_state import beginning, first_samples
from ..problem.inverse_dynamics import InverseDynamics, why_not_covered
from ..problem.objectives import AbstractObjective, PreparedRecord
from ..problem.problem import Problem
from ..problem.readings import LARGEST_CUTOFF, seen_in, starting_values
from ..problem.setup import state_names
from ..problem.simulations import ClosedLoop, FreeRun, Windows
from ..search.certificate import Certificate
from ..search.levenberg_marquardt import Descent
from ..search.methods import AbstractMethod, LevenbergMarquardt
from ..search.rounds import RUNS
from .worth import noise_by_starts

_NOISE = 1.5  # times that of the first samples: no more is left of them
_FAR_ROUNDS = 12  # with which a start three times off arrives as a rule
_FAR = 100.0  # times its start: a number that is far from it
_SURE = 3.0  # [standard errors] from 0, of a number far below its start
_LARGE = 3.0  # times the standard deviations given: residuals that noise does not explain


def not_settled(method: AbstractMethod, state: Descent, objective: AbstractObjective) -> Notice:
    steps = int(state.steps)
    if isinstance(method, LevenbergMarquardt) and state.done:
        kink = objective.in_units_of_outputs()
        return Notice("search-kink" if kink else "search-flat", "", {"steps": steps})
    return Notice("search-unfinished", "", {"method": type(method).__name__, "steps": steps})


def too_large(problem: Problem, records: Mapping[str, Any], scale: float) -> list[Notice]:
    """A notice where residuals are far larger than the standard deviations given, and than what
    these make of starts of windows, which are read from the same record.
    """
    objective = problem.objective
    starts = [
        noise_by_starts(objective, r, one, name)
        for r, one in zip(records.values(), problem.prepared, strict=True)
        for name in getattr(one, "cutoffs", ())
    ]
    deviations = [
        r.sd.get(name) for r in records.values() if isinstance(r, Record) for name in r.outputs
    ]
    if (
        scale < _LARGE * np.sqrt(np.mean(np.square(starts or [1.0])))
        or not deviations
        or any(sd is None for sd in deviations)
        or not objective.in_units_of_outputs()
    ):
        return []
    return [Notice("residuals-too-large", "", {"ratio": scale})]


def above_noise(found: Certificate, labels: Sequence[str], rounds: int) -> Notice:
    """The notice of an end that no round could lead to the noise; `found` is of its residuals."""
    numbers = {"ratio": found.ratio, "record": labels[found.record], "rounds": rounds}
    more = {"runs": RUNS, "more": max(_FAR_ROUNDS, 3 * rounds)}
    return Notice("search-above-noise", found.subject, numbers | more)


def standing_still(problem: Problem, norms: np.ndarray) -> list[Notice]:
    """A notice where nothing of the machine changes what was measured, by the `norms` of the
    Jacobian's columns; where it begins may.
    """
    states = state_names(problem.setup.machine)
    unknowns = [
        u
        for u in problem.unknowns
        if not u.hidden and not u.path.startswith(("inputs.", "outputs.")) and u.path not in states
    ]
    if norms.any() and (not unknowns or any(norms[u.place].any() for u in unknowns)):
        return []
    return [Notice("nothing-moves")]


def far_from_start(
    problem: Problem,
    x: Float[np.ndarray, " q"],
    error: Float[np.ndarray, " q"],
    unit_of: Callable[[Any], str],
) -> list[Notice]:
    """Notices of numbers with a bound that ended a hundred times above their start or below it;
    `error` of each, 0 where it has none. A number that may be 0 is not far below its start, and the
    start of a number without a bound, as an offset, is no measure of its size.
    """
    out = []
    named = [(name, u) for u in problem.unknowns for name in u.names]
    for (name, u), value, start, sd in zip(named, x, np.asarray(problem.x0), error, strict=True):
        if u.hidden or start == 0 or not sd > 0 or not np.isfinite(u.declaration.domain.bound()):
            continue
        times = float(value / start)
        if abs(times) >= _FAR or (abs(times) <= 1 / _FAR and abs(value) > _SURE * sd):
            numbers = {"times": times, "value": value, "start": start, "unit": unit_of(u)}
            out.append(Notice("far-from-start", name, numbers))
    return out


def held_breakaways(
    notices: Sequence[Notice], still: Sequence[str], records: Mapping[str, Any]
) -> list[Notice]:
    """`notices`, with what is true of breakaways among the names `still`, which have no
    derivative, where inputs are held.
    """
    jumps = [n for n in still if n.partition("@")[0].endswith(".peak")]
    if not any(isinstance(r, Record) and r.hold for r in records.values()):
        jumps = []
    kept = [n for n in notices if not (n.code == "no-effect" and n.subject in jumps)]
    return kept + [Notice("acts-in-jumps", name) for name in jumps]


def undriven(problem: Problem, records: Mapping[str, Any]) -> list[Notice]:
    """Notices of drives that do nothing: 0 in the machine, not fitted, and without an input in
    any record.
    """
    machine = problem.setup.machine
    if not isinstance(machine, Mechanism):
        return []
    given = {
        name.partition(".")[0]
        for r in records.values()
        if isinstance(r, Record)
        for name in r.inputs
    }
    given |= {u.path.partition(".")[0] for u in problem.unknowns}
    return [
        Notice("drive-without-input", name)
        for name, part in zip(machine.names, machine.parts, strict=True)
        if name not in given
        and isinstance(part, Force | Torque)
        and _is_nought(getattr(part, part.signal_name() or ""))
    ]


def unfiltered(objective: AbstractObjective, records: Sequence[Record]) -> list[Notice]:
    """Notices of records whose rate leaves the filter of `InverseDynamics` next to nothing to
    take away.
    """
    if not isinstance(objective, InverseDynamics) or (
        objective.cutoff is None and not objective.at_samples
    ):
        return []
    return [
        Notice("cutoff-above-rate", r.name, {"rate": r.rate, "cutoff": cutoff, "used": most})
        for r in records
        if (cutoff := objective.cutoff_at_samples) > (most := LARGEST_CUTOFF * r.rate)
    ]


def only_a_start(machine: Mechanism, records: Sequence[Record], late: bool) -> Notice:
    """A notice that forces are compared at samples, and why the weak form does not cover the fit;
    `late`: because a sensor has a delay.
    """
    if late:
        return Notice("forces-at-samples", "", {"why": "a sensor has a delay"})
    for record in records:
        why = why_not_covered(machine, record)
        if why:
            return Notice("forces-at-samples", record.name, {"why": why})
    return Notice("no-stretch", records[0].name)


def uncounted(
    objective: AbstractObjective, prepared: Sequence[Any], labels: Sequence[str]
) -> list[Notice]:
    """Notices of records many of whose samples come after gaps in their windows."""
    if not isinstance(objective, Windows):
        return []
    out = []
    for label, one in zip(labels, prepared, strict=True):
        if getattr(one, "rows", None) is None:
            continue
        weight = np.asarray(one.weight)[:, 0 if objective.free_starts else 1 :]
        lost = float(np.mean(weight == 0))
        if lost > 0.05:
            out.append(Notice("samples-uncounted", label, {"percent": 100 * lost}))
    return out


def _is_nought(signal) -> bool:
    return isinstance(signal, Constant) and not np.any(np.asarray(signal.k))


def far_starts(
    problem: Problem, records: Mapping[str, Any], states: tuple[str, ...]
) -> list[Notice]:
    """Notices of runs that begin elsewhere than their records do."""
    objective, machine, out = problem.objective, problem.setup.machine, []
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
        at_start = isinstance(machine, Mechanism)
        begun = machine if at_start else problem.setup_at(problem.x0, i).machine
        start = starting_values(begun, r, [*names, *rates])
        where = {"record": label, "objective": type(objective).__name__}
        for n in names:
            # numpy's numbers, a tenth of the time of JAX's
            sensor = jax.tree.map(np.asarray, problem.setup.outputs.at(n))
            first = float(sensor.invert(r.t[:1], r.outputs[n][:1], r.t[0])[0])
            apart, much = abs(first - start[n]), 0.1 * np.std(r.outputs[n])
            if not apart > much:
                continue
            noise = np.nan_to_num(noise_of_output(r, n))
            if n in r.ticks and r.sd.get(n) is None:  # [s]
                noise *= r.ticks[n].speed[0]
            if apart - 5 * noise > much:
                numbers = {"start": start[n], "measured": first}
                out.append(Notice("starts-elsewhere", n, numbers | where))
        for n in rates:
            of, order = seen_in(n, r.outputs)
            if order != 1:
                continue
            sensor = jax.tree.map(np.asarray, problem.setup.outputs.at(of))
            _, (first, error), usual = beginning(r, of, sensor.invert(r.t, r.outputs[of], r.t[0]))
            if abs(first - start[n]) - error > 0.2 * usual:
                numbers = {"start": start[n], "measured": first, "channel": of}
                out.append(Notice("starts-at-another-speed", n, numbers | where))
    return out


def begins_well(
    notice: Notice,
    problem: Problem,
    records: Mapping[str, Any],
    residuals: Float[np.ndarray, " n"],
) -> bool:
    """Whether a run that `starts-at-another-speed` than its record seems to was found to leave no
    more of its first samples than their noise: it moved off within these.
    """
    label, channel = (str(notice.numbers[n]) for n in ("record", "channel"))
    i = list(records).index(label)
    one, y = problem.prepared[i], records[label].outputs[channel]
    assert isinstance(one, PreparedRecord)
    first = sum(np.size(other.weight) for other in problem.prepared[:i])
    weight = np.asarray(one.weight)
    left = residuals[first : first + weight.size].reshape(weight.shape)
    k, c = first_samples(len(y)), one.names.index(channel)
    noise = one.tick_noise.get(channel, np.mean(weight[:k, c]) * white_noise_of(y))
    return bool(np.sqrt(np.mean(left[:k, c] ** 2)) <= _NOISE * noise)
