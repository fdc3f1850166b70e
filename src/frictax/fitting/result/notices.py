"""Notices of a fit to records: about the end of the search, the residuals, and parameters (also of
bristles) that the record does not identify.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.measurements.diagnostics import quantum
from frictax.measurements.noise import noise_of_output, white_noise_of
from frictax.measurements.record import Record
from frictax.measurements.reversals import rises
from frictax.mechanism import Force, MechanicalSystem, Mechanism, Torque
from frictax.mechanism.forces import AbstractMotion
from frictax.mechanism.layout import contact_row
from frictax.mechanism.sparse import dot
from frictax.notice import Notice
from frictax.signals import Constant

from ..problem.initial_state import beginning, first_samples
from ..problem.inverse_dynamics import InverseDynamics, why_not_covered
from ..problem.objectives import AbstractObjective, PreparedRecord
from ..problem.problem import Problem
from ..problem.readings import LARGEST_CUTOFF, allowed_cutoff, seen_in, starting_values
from ..problem.setup import Instrument, Named, state_names
from ..problem.simulations import ClosedLoop, FreeRun, Windows, simulate_channels
from ..search.certificate import Certificate
from ..search.levenberg_marquardt import Descent
from ..search.methods import AbstractMethod, LevenbergMarquardt
from ..search.rounds import RUNS
from .worth import noise_by_starts

# Codes of the notices about a misfit that noise (white or autocorrelated) does not explain.
_MISFITS = {"misfit-above-noise", "residuals-too-large", "explains-nothing", "no-better-than-line"}


def not_settled(method: AbstractMethod, state: Descent, objective: AbstractObjective) -> Notice:
    steps = int(state.steps)
    if isinstance(method, LevenbergMarquardt) and state.done:
        kink = objective.in_units_of_outputs()
        return Notice("search-kink" if kink else "search-flat", "", {"steps": steps})
    return Notice("search-unfinished", "", {"method": type(method).__name__, "steps": steps})


def too_large(problem: Problem, records: Mapping[str, Any], scale: float) -> list[Notice]:
    """Return a notice if the residuals are at least three times as large as the given standard
    deviations. For windows, noise in the initial states increases this limit of three.
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
        scale < 3.0 * np.sqrt(np.mean(np.square(starts or [1.0])))
        or not deviations
        or any(sd is None for sd in deviations)
        or not objective.in_units_of_outputs()
    ):
        return []
    return [Notice("residuals-too-large", "", {"ratio": scale})]


def above_noise(found: Certificate, labels: Sequence[str], rounds: int) -> Notice:
    """Return the notice that the residuals exceed the noise after all rounds of the search."""
    numbers = {"ratio": found.ratio, "record": labels[found.record], "rounds": rounds}
    # 12 rounds usually suffice if a start value is wrong by a factor of 3.
    more = {"runs": RUNS, "more": max(12, 3 * rounds)}
    return Notice("search-above-noise", found.subject, numbers | more)


def replace_by_rounds(
    notes: Sequence[Notice], explained: Sequence[Notice], others: Sequence[Notice]
) -> tuple[list[Notice], list[Notice]]:
    """Return `notes` (notices of the search) and `explained` (notices of the misfit), without
    repeated notices that the residuals exceed the noise. If rounds do not lower the misfit and no
    other notice reports a large misfit, `search-not-certified` replaces `search-above-noise`.
    """
    given = next((n for n in notes if n.code == "search-above-noise"), None)
    codes = {n.code for n in (*notes, *explained, *others)}
    if not given:
        return list(notes), list(explained)
    if codes & _MISFITS or "search-by-rounds" in codes:
        return list(notes), [n for n in explained if n.code != "misfit-above-noise"]
    numbers = {x: given.numbers[x] for x in ("ratio", "record", "rounds", "runs", "more")}
    uncertain = Notice("search-not-certified", given.subject, numbers)
    return [uncertain if n is given else n for n in notes], list(explained)


def standing_still(problem: Problem, norms: np.ndarray) -> list[Notice]:
    """Return a notice if the prediction does not depend on any parameter of the machine except its
    initial state. `norms`: lengths of the Jacobian's columns.
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
    """Return a notice for each estimate above 100 times or below 1/100 of its start value. A small
    estimate is reported only if it differs from 0 by more than 3 standard errors. Parameters
    without a bound, such as offsets, are excluded, because their start value does not indicate
    their magnitude. `error`: standard errors, 0 if they are unknown.
    """
    # Report an estimate above `far` times or below 1 / `far` times its start value. A too small
    # estimate is reported only if it differs from 0 by more than `sure` standard errors.
    far, sure = 100.0, 3.0
    out = []
    named = [(name, u) for u in problem.unknowns for name in u.names]
    for (name, u), value, start, sd in zip(named, x, np.asarray(problem.x0), error, strict=True):
        if u.hidden or start == 0 or not sd > 0 or not np.isfinite(u.declaration.domain.bound()):
            continue
        times = float(value / start)
        if abs(times) >= far or (abs(times) <= 1 / far and abs(value) > sure * sd):
            numbers = {"times": times, "value": value, "start": start, "unit": unit_of(u)}
            out.append(Notice("far-from-start", name, numbers))
    return out


def held_breakaways(
    notices: Sequence[Notice], still: Sequence[str], records: Mapping[str, Any]
) -> list[Notice]:
    """If inputs are held (constant between samples), replace the notices `no-effect` of breakaway
    peaks by `acts-in-jumps`. With held inputs the prediction is a step function of the peak, so the
    derivative is zero. `still`: parameters for which the derivative of the prediction is zero.
    """
    jumps = [n for n in still if n.partition("@")[0].endswith(".peak")]
    if not any(isinstance(r, Record) and r.hold for r in records.values()):
        jumps = []
    kept = [n for n in notices if not (n.code == "no-effect" and n.subject in jumps)]
    return kept + [Notice("acts-in-jumps", name) for name in jumps]


def undriven(problem: Problem, records: Mapping[str, Any]) -> list[Notice]:
    """Return notices of drives whose signal is 0, not fitted, and not an input of a record."""
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
        and isinstance(signal := getattr(part, part.signal_name() or ""), Constant)
        and not np.any(np.asarray(signal.k))
    ]


def idle_filters(objective: AbstractObjective, records: Sequence[Record]) -> list[Notice]:
    """Return notices of records whose sample rate is too low for the filter of the motion."""
    if not isinstance(objective, InverseDynamics) or (
        objective.cutoff is None and not objective.at_samples
    ):
        return []
    cutoff = 50.0 if objective.cutoff is None else objective.cutoff
    return [
        Notice(
            "cutoff-above-rate",
            r.name,
            {"rate": used / LARGEST_CUTOFF, "cutoff": cutoff, "used": used},
        )
        for r in records
        if (used := allowed_cutoff(r, cutoff)) < cutoff
    ]


def only_a_start(machine: Mechanism, records: Sequence[Record], late: bool) -> Notice:
    """Return a notice with the reason why forces are compared at samples instead of in the weak
    form. `late`: true if a sensor has a delay.
    """
    if late:
        return Notice("forces-at-samples", "", {"why": "a sensor has a delay"})
    for record in records:
        why = why_not_covered(machine, record)
        if why:
            return Notice("forces-at-samples", record.name, {"why": why})
    return Notice("no-stretch", records[0].name)


def uncounted_samples(
    objective: AbstractObjective, prepared: Sequence[Any], labels: Sequence[str]
) -> list[Notice]:
    """Return notices of records with weight 0 for over 5 % of samples, after gaps in windows."""
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


def far_starts(
    problem: Problem, records: Mapping[str, Any], states: tuple[str, ...]
) -> list[Notice]:
    """Return notices of simulations that start at a state other than the record's first values."""
    objective, machine, out = problem.objective, problem.setup.machine, []
    if not isinstance(objective, FreeRun | ClosedLoop) or objective.measured_start:
        return []
    moved = {u.path for u in problem.unknowns}
    for i, (label, r) in enumerate(records.items()):
        if not isinstance(r, Record):
            continue
        names = [n for n in states if n in r.outputs and not {n, f"outputs.{n}.offset"} & moved]
        others = {n: seen_in(n, r.outputs) for n in states if n not in {*r.outputs, *moved}}
        rates = {n: of for n, (of, order) in others.items() if order == 1 and of in r.outputs}
        asked = [*names, *rates]
        if not asked:
            continue
        at_start = isinstance(machine, Mechanism)
        begun = machine if at_start else problem.setup_at(problem.x0, i).machine
        start = starting_values(begun, r, asked)
        where = {"record": label, "objective": type(objective).__name__}
        for n in names:
            # NumPy is faster than JAX for single numbers. `sensor.invert` would create a module.
            sensor = jax.tree.map(np.asarray, Named.at(problem.setup.outputs, n))
            first = float(Instrument.invert(sensor, r.t[:1], r.outputs[n][:1], r.t[0])[0])
            apart, much = abs(first - start[n]), 0.1 * np.std(r.outputs[n])
            if not apart > much:
                continue
            noise = np.nan_to_num(noise_of_output(r, n))
            if n in r.ticks and r.sd.get(n) is None:  # Convert the time error of ticks to position.
                noise *= r.ticks[n].speed[0]
            if apart - 5 * noise > much:
                numbers = {"start": start[n], "measured": first}
                out.append(Notice("starts-elsewhere", n, numbers | where))
        for n, of in rates.items():
            sensor = jax.tree.map(np.asarray, problem.setup.outputs.at(of))
            _, (first, error), usual = beginning(r, of, sensor.invert(r.t, r.outputs[of], r.t[0]))
            if abs(first - start[n]) - error > 0.2 * usual:
                numbers = {"start": start[n], "measured": first, "channel": of}
                out.append(Notice("starts-at-another-speed", n, numbers | where))
    return out


def begins_well(
    notice: Notice, problem: Problem, records: Mapping[str, Any], residuals: Float[np.ndarray, " n"]
) -> bool:
    """Return True if the residuals of the first samples do not exceed the noise, although `notice`
    (`starts-at-another-speed`) reports a wrong initial speed. In that case the motion began within
    the first samples.
    """
    label, channel = (str(notice.numbers[n]) for n in ("record", "channel"))
    i = list(records).index(label)
    one, weight, left = list(problem.by_record(residuals))[i]
    y = records[label].outputs[channel]
    k, c = first_samples(len(y)), one.names.index(channel)
    noise = one.tick_noise.get(channel, np.mean(weight[:k, c]) * white_noise_of(y))
    return bool(np.sqrt(np.mean(left[:k, c] ** 2)) <= 1.5 * noise)


class Rubbing(NamedTuple):
    """A contact with a bristle. `motion`, `friction`: names of the variables of its motion and
    friction force. `mobility`: relative acceleration for a force of 1 N (or torque of 1 N.m); None
    for a prescribed motion.
    """

    name: str
    part: Any
    motion: str
    friction: str
    mobility: float | None


def has_bristles(machine: Any) -> bool:
    parts = machine.named_parts() if isinstance(machine, Mechanism) else ()
    return any(getattr(part, "bristle", None) is not None for _, part in parts)


def presliding(
    problem: Problem, machine: Any, records: Mapping[str, Any], x: Float[np.ndarray, " q"]
) -> list[Notice]:
    """Return notices of the bristles whose parameters or law were fitted in `machine`."""
    free = {u.path for u in problem.unknowns}
    out: list[Notice] = []
    system, t = MechanicalSystem(machine), jnp.zeros(())
    now = system.snapshot(t, *system.start(t))
    for b, place in enumerate(system.layout.bristles):
        name, part = machine.names[place.part], now.bristle_elements[b]
        row = contact_row(place, now.body_rows)
        moves = dot(row, now.accelerations_by(row)) if row else None
        mobility = None if moves is None else float(moves)
        position, force = ("phi", "tau") if part.rotational else ("s", "f")
        motion = f"{part.body.partition('.')[0]}.{position}"
        contact = Rubbing(name, part, motion, f"{name}.{force}", mobility)
        damping = f"{name}.bristle.sigma_1"
        stiffness = [f"{name}.bristle.{n}" for n in ("sigma_0", "k")]
        stiffness = [path for path in stiffness if path in free][:1]
        for label, record in records.items():
            if not isinstance(record, Record):
                continue
            for path in stiffness:
                out += _check_stiffness(contact, path, machine, record, label)
            if damping in free and mobility is not None:
                oscillation = np.sqrt(float(part.bristle.sigma_0) * mobility)
                frequency = float(oscillation) / (2 * np.pi)
                # The record shows the damping with 4 samples per period of the sticking bristle.
                if record.rate < 4 * frequency:
                    numbers = {"frequency": frequency, "rate": record.rate, "record": label}
                    out.append(Notice("bristle-swings-unseen", damping, numbers))
        if damping in free:
            value = float(part.bristle.sigma_1)
            critical = 2 * float(np.sqrt(part.bristle.sigma_0 / (mobility or 1.0)))
            out += [Notice("bristle-undamped", damping)] if value < 1e-3 * critical else []
        for law in ("f_pos", "tau_pos"):
            path = f"{name}.{law}.F_Stribeck"
            if path in free:
                out += _unbroken(problem, contact, path, x)
    return list(dict.fromkeys(out))


def _check_stiffness(
    contact: Rubbing, path: str, machine: Mechanism, record: Record, label: str
) -> list[Notice]:
    """Return notices of a bristle stiffness that the sensor does not resolve, or that includes
    another spring in series. Both notices require a measured motion of the contact. The notice of
    a spring in series also requires a measured friction force.
    """
    channels: dict[str, Any] = {
        name: x
        for name, x in record.inputs.items()
        if isinstance(part := machine[name.partition(".")[0]], AbstractMotion)
        and part.body == contact.motion.partition(".")[0]
    }
    if contact.motion in record.outputs:
        channels = {contact.motion: record.outputs[contact.motion]}
    if not channels:
        return []
    channel, x = next(iter(channels.items()))
    unit, out = "rad" if contact.part.rotational else "m", []
    breakaway = float(max(contact.part.law(1).f0, contact.part.law(-1).f0))
    way, step = 2 * breakaway / float(contact.part.bristle.sigma_0), quantum(x)
    if step and way < 20 * step:  # the sensor does not resolve the deflection
        numbers = {"way": way, "unit": unit, "counts": way / step}
        numbers |= {"channel": channel, "record": label}
        out.append(Notice("presliding-coarse", path, numbers))
    if contact.friction in record.outputs:
        found = rises(x, record.outputs[contact.friction], (0.5, 0.9))
        half, far = np.median(found[:, :2], axis=0) if len(found) >= 4 else (0.0, np.inf)
        # The ratio of deflections at 90 % and 50 % of the force is 1.8 for a spring, 3.3 for Dahl.
        if far < 2.2 * half:
            numbers = {"half": half, "far": far, "unit": unit, "record": label}
            out.append(Notice("stiffness-in-series", path, numbers))
    return out


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
            (force,) = simulate_channels(problem, x, i, (name,))
            most = max(most, float(np.max(np.abs(force))))
    least = float(law.f0) - float(law.F_Stribeck)
    # Breakaway is visible if the force exceeds sliding friction by half of `F_Stribeck`.
    if not np.isfinite(most) or most >= least + 0.5 * (float(law.f0) - least):
        return []
    unit = "N.m" if contact.part.rotational else "N"
    return [Notice("breakaway-unseen", path, {"most": most, "f0": float(law.f0), "unit": unit})]
