"""`fit`: find the parameters of a friction law from a sweep, or of a machine from its records."""

import dataclasses
import functools
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, Unpack, overload

import jax.numpy as jnp
import numpy as np

from frictax.annotations import DataFrame
from frictax.arguments import check_names, lists_options
from frictax.engine import Adaptive, Result
from frictax.interrupts import may_keep, nested_work
from frictax.laws import AbstractLaw
from frictax.measurements import Record, Sweep
from frictax.mechanism import Machine
from frictax.notice import Notice
from frictax.parameters import get
from frictax.programs import interruptible_jit
from frictax.progress import Work, show_progress

from .build_problem import build_problem, build_sweep_problem, entries, move_inside, shared_limits
from .checks import check_data, check_precision, label_data, without_repeats
from .options import (
    DEFAULTS,
    FitOptions,
    FitOptionsDict,
    Law,
    RecordFit,
    RecordOptions,
    SweepFit,
    SweepOptions,
    names_of,
    refuse,
)
from .problem.initial_state import begun_at, named_paths, own_parameters
from .problem.inverse_dynamics import InverseDynamics
from .problem.objectives import PreparedRecord
from .problem.problem import NOISE_UPDATES, Problem
from .problem.simulations import LARGEST_RISE, ClosedLoop, FreeRun, without_rounding
from .problem.steady import SteadyFriction
from .result.fit_result import FitResult, make_fit_result
from .result.notices import above_noise
from .result.step_error import SHORTER, between_samples, long_steps, with_steps_needed
from .search.methods import LevenbergMarquardt
from .search.multistart import Extent, Searched, search
from .steady_model import assemble_friction, near_data

Data = Record | Iterable[Record | Sweep] | Mapping[str, Record | Sweep]
Model = TypeVar("Model", bound=Machine)
_ONLY_SWEEP = [n for n in names_of(SweepOptions) if n not in names_of(RecordOptions)]
_ONLY_RECORDS = [n for n in names_of(RecordOptions) if n not in names_of(SweepOptions)]


@overload
def fit(
    model: Law, data: Sweep | DataFrame, **options: Unpack[SweepFit]
) -> FitResult[AbstractLaw | SteadyFriction]: ...


@overload
def fit(model: Model, data: Data, **options: Unpack[RecordFit]) -> FitResult[Model]: ...


@lists_options(FitOptionsDict, DEFAULTS)
def fit(model: Any, data: Any, **options: Any) -> FitResult:
    """Fit a friction law to a measured sweep, or a machine to its records, and return the
    parameters with error bars.

    **Arguments** of every fit:

    - `model`: a law, a `SteadyFriction`, or a machine (a `Mechanism` or a hybrid system of your
      own). The fit of a law (`Stribeck(...)`) starts from its values and from the data. The fit of
      a class (`Stribeck`) starts from the data only. Without `f_neg`, one law applies to both
      directions.
    - `data`: for a law a `Sweep`, or a `DataFrame` that contains a sweep (see `Sweep.from_pandas`).
      For a machine a `Record`, a list of records, or a dict from label to record or sweep.
    - `free`: paths of the parameters that are fitted; by default all that the data can identify.
      Sensors and drives of a machine also have paths, such as ``"outputs.mass.s.delay"``.
    - `tied`: path -> rule that computes this parameter from other parameters. The rule is another
      path, ``"factor * path"``, or a function of all parameters by path that JAX can differentiate.
      If a part or law is tied to another of its class, all its usually fitted parameters are tied.
      A tied parameter is not in `free`. The table and `found.tied` show errors of tied parameters.
    - `log_scale`: paths of parameters > 0 of which only the order of magnitude is known, such as a
      viscous coefficient. Logarithms of these parameters are fitted. The intervals of these
      parameters reach from value/k to value*k, k = exp(half-width/value).
    - `priors`: a list of `Normal(...)` and `Smooth(...)`.
    - `bounds`: path -> (least, most), a range that is narrower than the parameter's domain.
    - `method`: either `LevenbergMarquardt()` or `Optax(...)`. `loss`: `Squares()` or `Huber()`.
      `level`: confidence level of the intervals.
    - `starts`: number of points from which the search starts. `spread`: standard deviation of the
      random starts, relative to the start value. For `FreeRun`, use `rounds` instead of random
      starts. `seed`: random seed of the starts and of the rounds.
    - `progress`: if True, one line shows progress and remaining time. A function in `progress` is
      called with each `ProgressLine`. Ctrl-C (`KeyboardInterrupt`) stops the fit at once, and `fit`
      returns the best result so far, with the notice `search-interrupted`.

    **Arguments** for a law:

    - `f_neg`: another law, or class of law, for v < 0. With `f_neg`, the paths of the parameters
      begin with ``f_pos.`` (v > 0) or ``f_neg.`` (v < 0), such as ``"f_neg.F_Coulomb"``.
    - `peak` > 1: start value of the ratio of breakaway to sliding force; by default estimated from
      the data. Without breakaway rows in the sweep, the ratio is not fitted.
    - `offset` [N or N.m]: start value of a constant force, such as a payload's weight. The sweep
      must contain both directions. The data cannot distinguish an offset from an asymmetry of
      Coulomb friction, so `offset` excludes `f_neg`.

    **Arguments** for a machine:

    - `own`: paths of parameters that have a separate value for each record, or a dict from path to
      start values, one for each record. For the path ``"mass.v"``, the value of record run2 is
      called ``"mass.v@run2"``. For initial positions and speeds in `own`, start values are read
      from each record. In a fit to one record, an initial state in `free` that is 0 in the machine
      is read from this record.
    - `objective`: either `FreeRun()` (default), `Windows`, `ClosedLoop` or `InverseDynamics`.
      `start`: the objective of a first fit, whose result gives the start values.
    - `instruments`: channel, such as ``"outputs.mass.s"``, -> `Instrument` (a sensor or actuator).
    - `engine`: the fast `OnSamples(...)`, or `Adaptive(...)`, which uses diffrax's solver.
    - `rounds`: the largest number of rounds (further searches). A fit with `FreeRun` or
      `ClosedLoop` runs rounds if the first residuals exceed the noise of the record. The default is
      4; 0 means no rounds. Use 12 if the start values are far from the minimum. A round simulates
      the record for 1280 random sets of parameters, and starts at most 32 short fits from the best
      sets. `found.at_noise` is True if the final residuals are noise. Results are reproducible.

    **Returns:** a `FitResult`. An interval is estimate +- t standard errors, where t is the
    quantile of Student's distribution. The standard errors are linearised and use the noise model
    `Guarded()`. The intervals cover the true value in 95 % of 2000 synthetic sweeps, which resemble
    a measured screw drive, and of 400 synthetic records. See tests/fitting/test_coverage.py and
    test_record_coverage.py.

    **Raises:** `ValueError` for a start value at the bound of its domain, for too few rows, and for
    terms that the data cannot distinguish; `KeyError` for an unknown path; `TypeError` for an
    unknown option.

    >>> import frictax as fx, numpy as np
    >>> sweep = fx.Sweep([1, 2, 3, 4], [7.1, 7.9, 9.1, 9.9], velocity_unit="m/s", force_unit="N")

    >>> found = fx.fit(fx.Coulomb, sweep)
    >>> round(float(found.law.F_Coulomb), 3), round(found.standard_errors["F_Coulomb"], 3)
    (6.1, 0.155)

    Both directions have the same viscous friction, and different Coulomb friction:

    >>> v = np.concatenate([np.linspace(1, 8, 8), -np.linspace(1, 8, 8)])

    >>> f = np.sign(v) * (6.0 + 0.2 * abs(v)) + 0.5 * (v < 0) + 0.01 * np.sin(40.0 * v)

    >>> sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    >>> ties = {"f_neg.F_prop": "f_pos.F_prop"}
    >>> found = fx.fit(fx.Coulomb, sweep, f_neg=fx.Coulomb, tied=ties)
    >>> for e in (*found.estimates, *found.tied):
    ...     print(e)
    f_pos.F_Coulomb 6.0025 N, std. error 0.0046 N, 5.9926 to 6.0125 N
    f_pos.F_prop 0.19938 N.s/m, std. error 0.00083 N.s/m, 0.19759 to 0.20117 N.s/m
    f_neg.F_Coulomb 5.5025 N, std. error 0.0046 N, 5.4926 to 5.5125 N
    f_neg.F_prop = f_pos.F_prop 0.19938 N.s/m, std. error 0.00083 N.s/m, 0.19759 to 0.20117 N.s/m

    A force of 2 N moves a mass. The record shows more friction than the start value of 1 N:

    >>> t = np.linspace(0.0, 2.0, 401)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 2.0),
    ... )
    >>> record = fx.Record(
    ...     t,
    ...     outputs={"mass.v": 0.75 * t + 0.01 * np.random.default_rng(0).standard_normal(401)},
    ...     name="pull",
    ... )
    >>> print(fx.fit(block, record, free=["friction.f_pos.F_Coulomb"]))
    Mechanism fitted to pull by FreeRun
    parameter                 value    unit  std. error  95 % interval
    friction.f_pos.F_Coulomb  1.25051  N     0.00043     1.24966 to 1.25136
    pull: rms mass.v 9.93 mm/s
    400 degrees of freedom, condition 1, ... steps, ... s
    Intervals (Guarded): uncorrelated residuals (399 degrees of freedom). ...
    """
    check_names(fit, options)
    given = FitOptions(**options)
    check_precision()
    if hasattr(data, "iloc"):  # the data are a `DataFrame`
        if isinstance(model, Machine):
            raise ValueError(
                "`fit` of a machine must be given records, got a DataFrame. Write"
                " Record.from_pandas(frame, time='t', inputs={'drive': 'F'}, outputs={'mass.s':"
                " 'q'}), which names each column."
            )
        data = Sweep.from_pandas(data)
    with show_progress(given.progress, "Fitting") as work:
        if isinstance(data, Sweep) and not isinstance(model, Machine):
            refuse(
                {name: getattr(given, name) for name in _ONLY_RECORDS},
                "the records of a machine",
                "a law's sweep",
            )
            return fit_sweep(model, data, given, work)
        refuse(
            {name: getattr(given, name) for name in _ONLY_SWEEP},
            "a law's sweep",
            "a machine, which holds its own",
        )
        return fit_records(model, data, given, work)


def fit_sweep(model: Any, sweep: Sweep, options: FitOptions, work: Work) -> FitResult:
    """Fit a friction law to a sweep; see `fit`."""
    start = assemble_friction(model, sweep, options)
    if isinstance(model, type):  # `model` is a class of law, so its start values come from the data
        start = move_inside(start, options.bounds)
    problem, notes = build_sweep_problem(start, sweep, options)
    paths = tuple(u.path for u in problem.unknowns)
    others = [move_inside(one, options.bounds) for one in near_data(start, sweep, paths)]
    near = [entries(problem, one) for one in others]
    method = options.method or LevenbergMarquardt()
    options = dataclasses.replace(options, method=method)
    return _solve(start, problem, {sweep.name: sweep}, options, notes, work, near)


def fit_records(
    model: Any, data: Any, options: FitOptions, work: Work, *, rounds: int | None = None
) -> FitResult:
    """Fit a machine to records; see `fit`. If `rounds` is given, it replaces `options.rounds`."""
    labels = label_data(data)
    records, repeats = without_repeats(labels)
    if repeats and isinstance(options.own, Mapping):
        starts = {path: values for path, values in options.own.items() if values is not None}
        if any(np.shape(values)[:1] != (len(labels),) for values in starts.values()):
            records, repeats = labels, []  # `build_problem` reports these starts as an error
        else:
            kept = [i for i, label in enumerate(labels) if label in records]
            own = {path: [x[i] for i in kept] for path, x in starts.items()}
            options = dataclasses.replace(options, own={**options.own, **own})
    check_data(model, records)
    objective, start = options.objective or FreeRun(), options.start
    options = dataclasses.replace(
        options, objective=objective, method=options.method or usual_method()
    )
    is_free_run = isinstance(objective, FreeRun | ClosedLoop)
    rounds = _rounds(options) if rounds is None else rounds
    if start is not None and objective.drives() != start.drives():
        raise ValueError(
            f"`start` {type(start).__name__} and `objective` {type(objective).__name__} use the"
            " record's inputs differently, one as a force and one as a controller's reference."
            " Leave `start` out, or use `ClosedLoop` for both."
        )
    if start is not None:
        names = f"start {type(start).__name__}", type(objective).__name__
        parts = work.parts(dict(zip(names, (1.0, 2.0), strict=True)))
        before, work = parts.values()
        model, options = _fit_start(model, records, options, before)
    problem, notes = build_problem(model, records, options)
    notes = [*repeats, *notes]
    if is_free_run and options.starts > 1:
        notes.append(Notice("starts-of-free-run", type(objective).__name__))
    options = dataclasses.replace(options, rounds=rounds)
    return _solve(model, problem, records, options, notes, work)


def _rounds(options: FitOptions) -> int:
    """Return the largest number of rounds; raise `ValueError` if the options exclude rounds."""
    objective, rounds = options.objective, options.rounds
    is_free_run = isinstance(objective, FreeRun | ClosedLoop)
    if rounds and not (is_free_run and options.is_least_squares):
        loss = "Squares" if options.loss is None else type(options.loss).__name__
        kinds = f"{type(objective).__name__}, {type(options.method).__name__}, {loss}"
        raise ValueError(
            "`rounds` must be left out except for a `FreeRun` or `ClosedLoop` by"
            f" `LevenbergMarquardt` and `Squares`, got {rounds} for {kinds}."
        )
    if rounds is not None:
        return rounds
    is_fast = options.is_least_squares and not isinstance(options.engine, Adaptive)
    return 4 if is_free_run and is_fast and options.starts == 1 else 0


def _fit_start(
    model: Any, records: Mapping[str, Any], options: FitOptions, work: Work
) -> tuple[Any, FitOptions]:
    """Fit with the objective `options.start`; return model and options with new start values."""
    own, start = options.own, options.start
    with_start = own_parameters(model, own)
    shared = [path for path in named_paths(own) if path not in with_start]
    if isinstance(start, InverseDynamics):  # the weak form is not needed for start values
        start = dataclasses.replace(start, at_samples=True)
    names = "free", "tied", "instruments", "engine", "loss", "level"
    kept: dict[str, Any] = {name: getattr(options, name) for name in names}
    limits = shared_limits(options.bounds or {}, shared)
    first = FitOptions(objective=start, own=with_start, bounds=limits, **kept)
    with nested_work():
        found = fit_records(model, records, first, work, rounds=0)
    if with_start:
        begun = [begun_at(found.model_for(label), model, found.problem) for label in records]
        # The path of a law in `own` stands for several parameters.
        each = {u.path for u in found.problem.unknowns if u.record is not None and not u.hidden}
        starts = {path: [np.asarray(get(machine, path)) for machine in begun] for path in each}
        given = own if isinstance(own, Mapping) else dict.fromkeys(named_paths(own))
        own = {**given, **starts}
    sensors, setup = dict(options.instruments or {}), found.problem.setup_at(found.x, 0)
    for u in found.problem.unknowns:
        kind, _, rest = u.path.partition(".")
        if kind in ("inputs", "outputs") and u.record is None and not u.hidden:
            name = rest.rpartition(".")[0]
            sensors[f"{kind}.{name}"] = getattr(setup, kind).at(name)
    options = dataclasses.replace(options, own=own, instruments=sensors or None)
    return begun_at(found.model, model, found.problem), options


def _solve(
    model: Any,
    problem: Problem,
    records: Mapping[str, Any],
    options: FitOptions,
    notes: list[Notice],
    work: Work,
    also: Sequence[np.ndarray] = (),
) -> FitResult:
    """Minimise the cost and return the result of the fit. `also`: further start values (p,)."""
    began, method = time.perf_counter(), options.method
    assert method is not None
    extent = Extent(options.starts, options.spread, options.seed, options.rounds or 0)
    end = search(problem, method, extent, work, also)
    rounds = end.rounds
    raise_if_failed(problem, end.costs, records)
    notes = [*notes, *end.notices]
    problem, end, more = repeat_search(problem, end, method, work)
    notes += [n for n in more if n not in notes]
    if end.interrupted:
        work.break_off()
        notes.append(Notice("search-interrupted", "", {"steps": int(end.state.steps)}))

    def result(problem: Problem, end: Searched) -> FitResult:
        seconds = time.perf_counter() - began
        how = method, options.level, notes, seconds
        return make_fit_result(model, problem, records, end, *how)

    found = result(problem, end)
    if end.interrupted:
        return found
    for _ in range(SHORTER):
        shorter = with_steps_needed(found)
        if shorter is None:
            break
        second = search(shorter, method, say=work, first=end.state.z)
        if second.interrupted or not np.isfinite(float(second.state.cost)):
            break
        end, found = second, result(shorter, second)
    certificate = found.certificate if rounds else None
    if certificate is not None and not certificate.at_noise:
        said = above_noise(certificate, list(records), rounds)
        found = dataclasses.replace(found, notes=(said, *found.notes))
    return with_step_notices(found)


def repeat_search(
    problem: Problem, end: Searched, method: Any, work: Work
) -> tuple[Problem, Searched, tuple[Notice, ...]]:
    """Repeat the search with the noise estimated at its final point, until the noise is stable. For
    `Windows`, search again with corrected initial states. The result of this last search is not
    used if the corrected states raise the cost by more than 5 %.
    """
    for _ in range(NOISE_UPDATES):
        again = problem if end.interrupted else problem.with_noise_found(np.asarray(end.state.x))
        if again is problem:
            break
        second = search(again, method, say=work, first=end.state.z)
        if second.interrupted or not np.isfinite(float(second.state.cost)):
            break
        problem, end = again, _merge_searches(end, second)
    again = problem if end.interrupted else without_rounding(problem, np.asarray(end.state.x))
    if again is problem:
        return problem, end, ()
    try:
        second = search(again, method, say=work, first=end.state.z)
    except KeyboardInterrupt:  # The second search was interrupted before its first result.
        if not may_keep():
            raise
        return problem, end._replace(interrupted=True), ()
    # Corrected initial states are worse if the model predicts kinks of the motion that the record
    # does not contain. If the cost rises by more than 5 %, the result of the first search is used.
    if second.state is end.state or not float(second.state.cost) < LARGEST_RISE * float(
        end.state.cost
    ):
        return problem, end._replace(interrupted=second.interrupted), ()
    return again, _merge_searches(end, second), second.notices


def _merge_searches(end: Searched, second: Searched) -> Searched:
    """Return `second` with the steps of both searches; its cost replaces the least of `end`."""
    steps = np.asarray(end.state.steps + second.state.steps, np.int32)
    costs = np.where(end.costs == np.nanmin(end.costs), float(second.state.cost), end.costs)
    return second._replace(state=dataclasses.replace(second.state, steps=steps), costs=costs)


def with_step_notices(found: FitResult) -> FitResult:
    """Return the fit, with notices if time steps or interpolated inputs affect an estimate."""
    said = [*long_steps(found), *between_samples(found)]
    # Without new notices, return `found` itself: a copy would compute its standard errors again.
    return dataclasses.replace(found, notes=(*found.notes, *said)) if said else found


def misfit(found: FitResult) -> float:
    """Return the weighted sum of squares, or the noise scale of a robust loss, to compare fits."""
    robust = found.loss.rounds > 1
    return found.noise_scale if robust else float(np.sum(found.full_residuals**2))


def resume_search(found: FitResult, z: Any) -> FitResult:
    """Search again from the coordinates `z`. Return `found` or the new fit, whichever is better."""
    began, problem = time.perf_counter(), found.problem
    with nested_work():
        end = search(problem, found.method, first=z)
    if not np.isfinite(end.costs).any():
        return found
    notes = [*(n for n in found.notes if not n.code.startswith("search-")), *end.notices]
    seconds = found.seconds + time.perf_counter() - began
    how = found.method, found.level, notes, seconds
    other = make_fit_result(found.start, problem, found.records, end, *how)
    ended = 1 + 1e-6 * (other.converged - found.converged)
    return other if misfit(other) < misfit(found) * ended * (1 - 1e-9) else found


def raise_if_failed(problem: Problem, costs: np.ndarray, records: Mapping[str, Any]) -> None:
    """Raise `ValueError` if no search ended at a finite cost."""
    if np.isfinite(costs).any():
        return
    for i, label in enumerate(records):
        if isinstance(problem.prepared[i], PreparedRecord):
            result = _ending(problem, i)
            if not bool(result == Result.successful):
                raise ValueError(
                    f"`fit` cannot start: with the start values the run of record {label!r} fails."
                    f" {Result[result]}"
                )
    if np.all(np.isfinite(np.asarray(problem.misfit(jnp.zeros(problem.x0.size), 1.0)))):
        raise ValueError(
            "`fit` cannot go on: the search reached values at which the residuals are not finite."
            " Give other start values, or bounds that keep the law finite."
        )
    raise ValueError(
        "`fit` cannot start: the residuals at the start values are not finite. Give other start"
        " values."
    )


@interruptible_jit
def _ending(problem: Problem, i: int) -> Any:
    """Return the `Result` (success or reason of failure) of record i at the start values."""
    prepared = problem.prepared[i]
    assert isinstance(prepared, PreparedRecord)
    return problem.objective.result(
        problem.setup_at(problem.x0, i), prepared, problem.engine, problem.delayed
    )


@functools.cache
def usual_method() -> LevenbergMarquardt:
    """Return the default method of fits to records."""
    return LevenbergMarquardt(tolerance=1e-3, max_steps=200)
