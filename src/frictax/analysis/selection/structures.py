"""Compare structures of a machine by their predictions of data that were left out of the fit."""

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any, TypedDict

import equinox as eqx
import numpy as np

from frictax.annotations import Checked
from frictax.arguments import check_count
from frictax.engine import Engine
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
from frictax.fitting.build_problem import shared_limits
from frictax.fitting.checks import label_data
from frictax.fitting.problem.initial_state import begun_at
from frictax.fitting.problem.inverse_dynamics import heated_node
from frictax.fitting.problem.readings import allowed_cutoff
from frictax.fitting.problem.setup import state_names
from frictax.fitting.problem.simulations import in_turn
from frictax.interrupts import Workers, processors
from frictax.measurements import Record
from frictax.mechanism import MechanicalSystem, Mechanism
from frictax.progress import Progress, show_progress

from ..errors.linearization import effective_sample_size
from .cross_validation import Folds, Refits, root_mean, unfinished_refits
from .nested import from_contained
from .selection_rule import choose_structure, doubts, implausible
from .structure import ComparedStructure, Structure, StructureComparison


class StructureOptions(TypedDict, total=False):
    """The options of `compare` for structures and records."""

    objective: AbstractObjective | None
    start: AbstractObjective | None
    engine: Engine | None
    cutoff: float | None
    repeats: int
    bands: int
    progress: bool | Progress


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Criteria:
    """The options of a comparison of structures, with defaults. See `compare_structures`."""

    objective: Checked[AbstractObjective | None] = None
    start: Checked[AbstractObjective | None] = None
    engine: Checked[Engine | None] = None
    cutoff: Checked[float | None] = None
    repeats: Checked[int] = 4
    bands: Checked[int] = 3


def compare_structures(
    data: Any, structures: Any, criteria: Criteria, progress: Checked[bool | Progress] = False
) -> StructureComparison:
    """Fit several structures to the same records and choose one; `compare` calls this for records.

    Structures are compared by their predictions of data that were left out of the fit. The errors
    are residuals of the trajectory (objective) and of the force (inverse dynamics). Refits leave
    out three kinds of data, one after another:

    - ``"repeats"``: one of the equal parts of a record, which should repeat one motion;
    - ``"speeds"``: one band of speeds, because a table may be valid only at the recorded speeds (if
      the records have more than one speed);
    - ``"records"``: one of several records, if every parameter is common to the records.

    `selection_rule.choose_structure` describes the choice. If a structure contains a smaller one,
    its search is repeated from the fit of the smaller one, so that the larger one never fits worse.

    **Arguments:**

    - `data`: a record, a list of records, or a dict: label -> record; `structures`: a dict: name ->
      `Structure` with start values away from bounds.
    - `criteria`: the options of `compare`. `objective` is ``Windows(0.5)`` by default. Other
      objectives leave out pieces of half a second, or shorter pieces if a record is shorter than
      `repeats` such pieces. `InverseDynamics` uses forces at samples.
      `start` as in `fit`; `engine`: `OnSamples(...)`; `cutoff` [Hz] of forces and speeds,
      by default the lowest default of `FreeRun` for the records; `repeats`: number of equal parts
      of each record; `bands`: number of bands of speed.
    - `progress` as in `fit`.

    **Returns:** a `StructureComparison`. For p parameters and Gaussian residuals, AIC is n_eff
    log(mean square) + 2 p, and BIC is n_eff log(mean square) + p log(n_eff). n_eff is the effective
    number of autocorrelated residuals of the fit with the smallest residuals
    (`effective_sample_size`). AIC and BIC do not affect the choice.

    **Raises:** errors of `fit`; `ValueError` without records or structures, for sweeps among the
    records, for a record with one window only, and for `Windows(free_starts=True)`, whose initial
    states are unknown in left-out data.

    A slide has more friction in one direction than in the other:

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
    >>> made = fx.compare(record, structures, objective=fx.InverseDynamics(10.0), cutoff=10.0)
    >>> made.best.name
    'by direction'
    >>> print(made.reason)
    by direction is chosen: it predicts the data left out best, in trajectory and in force.
    symmetric comes next: its error of ...
    """
    objective, records = criteria.objective, label_data(data)
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
    cutoff = criteria.cutoff
    if cutoff is None:
        cutoff = min(allowed_cutoff(record) for record in records.values())
    structures = check_structures(structures, objective, criteria.repeats, criteria.bands)
    objective = Windows(0.5, cutoff=cutoff) if objective is None else objective
    # Do not use the weak form of `InverseDynamics`: its covariance differs between structures.
    objective, start = (
        dataclasses.replace(one, at_samples=True) if isinstance(one, InverseDynamics) else one
        for one in (objective, criteria.start)
    )
    # If a parameter differs by record, other records do not identify it, so no record is left out.
    by_record = len(records) > 1 and not any(structure.own for structure in structures.values())

    def fit_one(name: str) -> tuple[FitResult, FitResult | None]:
        """Return the fit of a structure, and the preceding fit with the objective `start`."""
        structure, before = structures[name], None
        common = {"free": structure.free, "instruments": structure.instruments}
        common |= {"engine": criteria.engine, "tied": structure.tied}
        common |= {"log_scale": structure.log_scale, "rounds": 0}
        model, limits = structure.model, shared_limits(structure.bounds, structure.own)
        first, last, _ = parts[name].parts({" start": 1.0, " fit": 2.0, " rest": 3.0}).values()
        if start is not None:
            how = {"objective": start, "bounds": limits, "progress": first}
            before = fit(model, records, **how, **common)
            model = begun_at(before.model, model, before.problem)
        # The number of iterations is limited, because a table that fits the errors of one record
        # would need hundreds of iterations.
        method = LevenbergMarquardt(tolerance=1e-3, max_steps=60)
        how = {"objective": objective, "method": method, "own": structure.own, "progress": last}
        how |= {"priors": structure.priors, "bounds": structure.bounds}
        found = fit(model, records, **how, **common)
        parts[name]("fitted", 0.5)
        return found, before

    def judge_one(name: str) -> ComparedStructure:
        """Return the fitted structure with its prediction errors. AIC and BIC are still NaN."""
        found, before = fits[name], both[name][1]
        # Compute the errors of the force by inverse dynamics, if the records have the necessary
        # channels. A record of a closed loop has a reference input instead of a force.
        by_force, problem, machine = InverseDynamics(cutoff, at_samples=True), None, found.problem
        if not isinstance(machine.objective, ClosedLoop):
            with contextlib.suppress(ValueError):
                setup = machine.setup.machine
                prepared = tuple(by_force.prepare(setup, r) for r in records.values())
                how = {"prepared": prepared, "priors": (), "objective": by_force}
                problem = None if heated_node(setup) else dataclasses.replace(machine, **how)
        cuts = Folds(found.problem, records, cutoff, criteria.repeats)
        refits = Refits(found, before, problem, cuts)
        folds = {"repeats": cuts.repeats(criteria.repeats), "speeds": cuts.bands(criteria.bands)}
        if len(folds["speeds"][1]) == 1:  # all pieces have one speed
            del folds["speeds"]
        if by_record:
            folds["records"] = cuts.records(list(records))
        held_out = {by: refits.left_out(fold) for by, fold in folds.items()}
        force = np.nan
        if problem is not None:
            r = refits.residuals(problem, found.x)
            force = root_mean(r[problem.weights() > 0] ** 2)
        square = np.sum(found.full_residuals**2) / np.sum(found.problem.weights() > 0)
        trajectory = _trajectory(refits, records)
        parts[name]("fitted without each part", 1.0)
        return ComparedStructure(
            name, found, trajectory, force, max(float(square), 1e-300), np.nan, np.nan, held_out,
            implausible(found, cutoff), (*doubts(found), *unfinished_refits(held_out)),
        )  # fmt: skip

    # Most of the time is compilation, during which other Python threads can run.
    most = min(len(structures), 2 * processors())
    with show_progress(progress, "Comparing structures") as work, Workers(most) as pool:
        parts = work.parts(dict.fromkeys(structures, 1.0))
        both = dict(zip(structures, pool.map(fit_one, structures), strict=True))
        fits = from_contained({name: found for name, (found, _) in both.items()})
        judged = list(pool.map(judge_one, structures))
    n_eff = effective_sample_size(min(judged, key=lambda row: row.mean_square).found)
    rows = tuple(
        dataclasses.replace(
            row,
            aic=n_eff * np.log(row.mean_square) + 2 * row.numbers,
            bic=n_eff * np.log(row.mean_square) + row.numbers * np.log(n_eff),
        )
        for row in judged
    )
    best, reason = choose_structure(rows)
    unit, force_unit = _units_of(records)
    return StructureComparison(records, rows, best, reason, n_eff, unit, force_unit, cutoff)


def _units_of(records: Mapping[str, Record]) -> tuple[str, str]:
    """Return the units of the errors of a trajectory and of a force."""
    known = [r.units[n] for r in records.values() for n in r.outputs if n in r.units]
    units = {unit.si_name for unit in known}
    weighed = any(r.sd.get(n) is not None for r in records.values() for n in r.outputs)
    single = all(len(r.outputs) == 1 for r in records.values()) and len(units) == 1 and not weighed
    return units.pop() if single else "sd", "N.m" if all(u.rotational for u in known) else "N"


def _trajectory(refits: Refits, records: Mapping[str, Record]) -> float:
    """Return the root mean square residual of whole records, simulated from measured states."""
    found = refits.found
    problem, objective = found.problem, found.problem.objective
    machine = problem.setup.machine
    # A user's machine may not have names for its initial states.
    if not set(state_names(machine)):
        return float("nan")
    # With a delayed sensor, the first samples of a window measure the motion before the window.
    late = any(name.startswith("outputs.") for name in problem.delayed)
    # Records do not contain temperatures of thermal nodes, so their initial values are unknown.
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
        except ValueError:  # the record does not measure every initial state
            return float("nan")
        for name, value in scores.items():
            sd = r.sd.get(name)
            squares.append((value / (1.0 if sd is None else float(np.mean(sd)))) ** 2)
    return root_mean(np.asarray(squares))


def check_structures(
    structures: Any, objective: Any, repeats: Any, bands: Any
) -> dict[str, Structure]:
    """Return a dict: name -> structure. Raise `ValueError` for invalid structures or options."""
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
        check_count(f"`compare`: `{what}`", value, 2)
    return dict(structures)
