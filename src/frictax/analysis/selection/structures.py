"""Which machine records ask for."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import numpy as np

from frictax.annotations import Checked
from frictax.arguments import whole
from frictax.fitting import (
    AbstractObjective,
    ClosedLoop,
    FitResult,
    FreeRun,
    InverseDynamics,
    LevenbergMarquardt,
    Windows,
    fit,
)
from frictax.fitting.checks import labelled
from frictax.fitting.limits import shared_limits
from frictax.fitting.problem.initial_state import begun_at
from frictax.fitting.problem.problem import Problem
from frictax.fitting.problem.setup import state_names
from frictax.fitting.problem.simulations import in_turn
from frictax.interrupts import Workers, processors
from frictax.measurements import Record
from frictax.mechanism import MechanicalSystem, Mechanism
from frictax.progress import Progress, Work, watched

from ..errors.linearization import effective_sample_size
from .cross_validation import HeldOut, Refits, root_mean, unfinished, weights
from .folds import Folds
from .nested import from_contained
from .plausibility import doubts, implausible
from .selection_rule import chosen
from .structure import ComparedStructure, Structure, StructureComparison

_STEPS = 60  # of a search: a table that cheats creeps on for hundreds


def compare_structures(
    data: Any,
    structures: Any,
    *,
    objective: AbstractObjective | None = None,
    start: AbstractObjective | None = None,
    engine: Any = None,
    cutoff: float = 50.0,
    repeats: int = 4,
    bands: int = 3,
    progress: Checked[bool | Progress] = False,
) -> StructureComparison:
    """Fit several structures to the same records and say which of them they ask for; `compare` of
    records is this.

    A structure is judged by what it says of what it did not see, twice: in trajectory (the
    objective's residuals) and in force (what inverse dynamics leaves). Left out are, in turn, each
    part of each record, which repeats the rest; each band of speeds; each record, of several
    without numbers of their own. A table with many nodes stores the speeds at which a record
    dwells, predicts another repeat of the same motion best of all, and is wrong at every other
    speed: the bands show that, and so does its force. See
    `frictax.analysis.selection.selection_rule.chosen` for the rule. One that contains another is
    searched also from the other's end, and never fits worse.

    **Arguments:**

    - `data`: a record, or several in a list or by label; `structures`: by name, a `Structure` each,
      with start values away from bounds.
    - `objective`: ``Windows(0.5)`` unless given (`FreeRun`, `ClosedLoop` and `InverseDynamics` are
      left out by half seconds); `start`: as in `fit`; `engine`: `OnSamples(...)`.
    - `cutoff` [Hz] of the filter behind the forces and speeds; `repeats`: how many equal parts each
      record is cut in, such as the cycles of its motion; `bands`: into how many groups of speeds.
    - `progress` as in `fit`.

    **Returns:** a `StructureComparison`. Its AIC and BIC are those of Gaussian residuals, n_eff
    log(mean square) + 2 p and + p log(n_eff). Residuals of a record are coloured, so n_eff is not
    their number but what they are worth (`effective_sample_size`), that of the closest fit for all.
    They judge on the motion that was fitted alone, and choose nothing here.

    **Raises:** `ValueError` where there is nothing to compare, for sweeps among the records, and
    for `Windows(free_starts=True)`, whose starts would have to be known where they are left out;
    else as `fit`.

    A slide that more friction opposes one way than the other:

    >>> import frictax as fx, numpy as np
    >>> def slide(force=0.0, **laws):
    ...     return fx.Mechanism(
    ...         mass=fx.Mass(m=1.0),
    ...         friction=fx.SupportFriction("mass", **laws),
    ...         drive=fx.Force("mass", force),
    ...     )
    >>> t = np.linspace(0.0, 6.0, 301)
    >>> push = 3.0 * np.sin(3.0 * t) + np.sin(1.3 * t)
    >>> truth = slide(fx.Sampled(t, push), f_pos=fx.Coulomb(0.5, 1.0), f_neg=fx.Coulomb(0.8, 1.0))
    >>> s = fx.simulate(truth, t)["mass"].s + 1e-4 * np.sin(40.0 * t)
    >>> record = fx.Record(t, {"drive": push}, {"mass.s": s}, name="push")
    >>> law = fx.Coulomb(0.6, 0.9)
    >>> structures = {
    ...     "symmetric": fx.Structure(slide(f_pos=law), free=["friction.f_pos"]),
    ...     "by direction": fx.Structure(
    ...         slide(f_pos=law, f_neg=law), free=["friction.f_pos", "friction.f_neg"]
    ...     ),
    ... }
    >>> windows, start = fx.Windows(0.5, cutoff=10.0), fx.InverseDynamics(10.0)
    >>> made = fx.compare(record, structures, objective=windows, start=start, cutoff=10.0)
    >>> made.best.name
    'by direction'
    >>> print(made.reason)
    by direction is chosen: it predicts the data left out best, in trajectory and in force.
    symmetric comes next: its error of ...
    """
    records, structures = _records(data), check_structures(structures, objective, repeats, bands)
    objective = Windows(0.5, cutoff=cutoff) if objective is None else objective
    # The covariance of the weak form differs between structures, which need one measure.
    objective, start = (
        dataclasses.replace(one, at_samples=True) if isinstance(one, InverseDynamics) else one
        for one in (objective, start)
    )
    settings = {"objective": objective, "start": start, "engine": engine}

    # A record that is left out says nothing of numbers of its own.
    by_record = len(records) > 1 and not any(structure.own for structure in structures.values())

    def fitted(name: str) -> tuple[FitResult, FitResult | None]:
        found = _fitted(structures[name], records, settings, parts[name])
        parts[name]("fitted", 0.5)
        return found

    def judged(name: str) -> _Judged:
        made = _judged(fits[name], befores[name], records, cutoff, repeats, bands, by_record)
        parts[name]("fitted without each part", 1.0)
        return made

    # Most of the time goes into compiling, which leaves Python to others.
    most = min(len(structures), 2 * processors())
    with watched(progress, "Comparing structures") as work, Workers(most) as pool:
        parts = work.parts(dict.fromkeys(structures, 1.0))
        both = dict(zip(structures, pool.map(fitted, structures), strict=True))
        befores = {name: before for name, (_, before) in both.items()}
        fits = from_contained({name: found for name, (found, _) in both.items()})
        all_judged = dict(zip(structures, pool.map(judged, structures), strict=True))
    closest = min(all_judged.values(), key=lambda j: j.mean_square)
    n_eff = effective_sample_size(closest.found)
    rows = tuple(
        ComparedStructure(
            name, j.found, j.trajectory, j.force, j.mean_square,
            n_eff * np.log(j.mean_square) + 2 * len(j.found.estimates),
            n_eff * np.log(j.mean_square) + len(j.found.estimates) * np.log(n_eff),
            j.held_out, implausible(j.found, cutoff), (*doubts(j.found), *unfinished(j.held_out)),
        )
        for name, j in all_judged.items()
    )  # fmt: skip
    best, reason = chosen(rows)
    known = [r.units[n] for r in records.values() for n in r.outputs if n in r.units]
    units = {unit.si_name for unit in known}
    weighed = any(r.sd.get(n) is not None for r in records.values() for n in r.outputs)
    single = all(len(r.outputs) == 1 for r in records.values()) and len(units) == 1 and not weighed
    unit, force = (
        units.pop() if single else "sd",
        "N.m" if all(u.rotational for u in known) else "N",
    )
    return StructureComparison(records, rows, best, reason, n_eff, unit, force, cutoff)


@dataclasses.dataclass(frozen=True, eq=False)
class _Judged:
    found: FitResult
    trajectory: float
    force: float
    mean_square: float
    held_out: Mapping[str, HeldOut]


def _fitted(
    structure: Structure, records: Mapping[str, Record], settings: Any, work: Work
) -> tuple[FitResult, FitResult | None]:
    """The fit of a structure, and the one whose end was its start."""
    objective, start, engine = settings["objective"], settings["start"], settings["engine"]
    common = {"free": structure.free, "instruments": structure.instruments, "engine": engine}
    common |= {"tied": structure.tied, "log_scale": structure.log_scale}
    limits = shared_limits(structure.bounds, structure.own)
    model, before = structure.model, None
    first, last, _ = work.parts({" start": 1.0, " fit": 2.0, " rest": 3.0}).values()
    if start is not None:
        how = {"objective": start, "bounds": limits, "progress": first}
        before = fit(model, records, rounds=0, **how, **common)
        model = begun_at(before.model, model, before.problem)
    found = fit(
        model,
        records,
        objective=objective,
        method=LevenbergMarquardt(tolerance=1e-3, max_steps=_STEPS),
        own=structure.own,
        priors=structure.priors,
        bounds=structure.bounds,
        rounds=0,
        progress=last,
        **common,
    )
    return found, before


def _judged(
    found: FitResult,
    before: FitResult | None,
    records: Mapping[str, Record],
    cutoff: float,
    repeats: int,
    bands: int,
    by_record: bool,
) -> _Judged:
    cuts = Folds(found.problem, records, cutoff)
    refits = Refits(found, before, _force_problem(found, records, cutoff), cuts)
    folds = {"repeats": cuts.repeats(repeats), "speeds": cuts.bands(bands)}
    if by_record:
        folds["records"] = cuts.records(list(records))
    held_out = {by: refits.left_out(fold) for by, fold in folds.items()}
    force = np.nan
    if refits.force is not None:
        r = refits.residuals(refits.force, found.x)
        force = root_mean(r[weights(refits.force) > 0] ** 2)
    counted = weights(found.problem) > 0
    mean_square = float(np.sum(found.full_residuals**2) / counted.sum())
    return _Judged(found, _trajectory(refits, records), force, max(mean_square, 1e-300), held_out)


def _trajectory(refits: Refits, records: Mapping[str, Record]) -> float:
    """Of runs in one piece, each from its measured start."""
    found = refits.found
    problem, objective = found.problem, found.problem.objective
    machine = problem.setup.machine
    # of a machine of the user's own that does not say what it begins with
    if not set(state_names(machine)):
        return float("nan")
    # what a sensor shows at first comes from before its window
    late = any(name.startswith("outputs.") for name in problem.delayed)
    # states that no record measures
    thermal = isinstance(machine, Mechanism) and MechanicalSystem(machine).layout.nodes
    if isinstance(objective, Windows) and in_turn() and not late and not thermal:
        later = [np.arange(p.weight.shape[0]) > 0 for p in problem.prepared]
        joined = eqx.tree_at(
            lambda p: [prepared.goes_on for prepared in p.prepared], problem, later
        )
        ends = np.cumsum([p.weight.size for p in problem.prepared])
        squares, parts = [], np.split(refits.residuals(joined, found.x), ends[:-1])
        for r, prepared in zip(parts, problem.prepared, strict=True):
            weight = np.asarray(prepared.weight)
            channels = (np.reshape(a, (-1, weight.shape[-1])).T for a in (r, weight))
            squares += [float(np.mean(x[w > 0] ** 2)) for x, w in zip(*channels, strict=True)]
        return root_mean(np.asarray(squares))
    from_start = isinstance(objective, ClosedLoop | FreeRun)
    whole = objective if from_start else FreeRun(measured_start=True)
    squares = []
    for label, r in records.items():
        try:
            scores = found.score(label, whole)
        except ValueError:  # it does not measure every state that a run begins with
            return float("nan")
        for name, value in scores.items():
            sd = r.sd.get(name)
            squares.append((value / (1.0 if sd is None else float(np.mean(sd)))) ** 2)
    return root_mean(np.asarray(squares))


def _force_problem(
    found: FitResult, records: Mapping[str, Record], cutoff: float
) -> Problem | None:
    """The same unknowns under inverse dynamics; None where the record does not hold what that
    needs.
    """
    problem, judge = found.problem, InverseDynamics(cutoff, at_samples=True)
    if isinstance(problem.objective, ClosedLoop):  # the record holds a reference, and no force
        return None
    try:
        prepared = tuple(judge.prepare(problem.setup.machine, r) for r in records.values())
    except ValueError:
        return None
    return dataclasses.replace(problem, prepared=prepared, priors=(), objective=judge)


def _records(data: Any) -> dict[str, Record]:
    records = labelled(data)
    for label, r in records.items():
        if not isinstance(r, Record):
            raise ValueError(
                f"`compare` of structures takes records, got {r!r} under {label!r}. A sweep alone"
                " is compared by laws."
            )
    if not records:
        raise ValueError(
            "`compare` needs at least one record, got none. Read one with Record.from_csv(...)."
        )
    return records


def check_structures(
    structures: Any, objective: Any, repeats: Any, bands: Any
) -> dict[str, Structure]:
    """Raise `ValueError` where there is nothing to be compared, or nothing that can be
    predicted.
    """
    if not isinstance(structures, Mapping) or not structures:
        raise ValueError(
            f"`compare` of records needs structures by name, got {structures!r}. "
            "Write {'symmetric': fx.Structure(axis, free=['friction.f_pos'])}, say."
        )
    for name, structure in structures.items():
        if not isinstance(structure, Structure):
            raise ValueError(
                f"`compare`: {name!r} must be a `Structure`, got {structure!r}. Write"
                " fx.Structure(machine, free=[...])."
            )
    if isinstance(objective, Windows) and objective.free_starts:
        raise ValueError(
            "`compare` predicts windows that the fit did not see, whose starts cannot be fitted."
            " Leave out `free_starts`."
        )
    for what, value in (("repeats", repeats), ("bands", bands)):
        whole(f"`compare`: `{what}`", value, 2)
    return dict(structures)
