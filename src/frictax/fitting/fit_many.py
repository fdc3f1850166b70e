"""Fit one model to many records or measurements; one compiled call runs the searches of many fits.

`fit_many` returns the values of all fits. `fit_each`, which `fleet` uses, returns for each record a
result, or the exception of a failed fit.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from frictax.annotations import ArrayLike, Checked
from frictax.arguments import check_names, lists_options
from frictax.engine import OnSamples
from frictax.interrupts import Workers, nested_work
from frictax.laws import AbstractLaw
from frictax.measurements import Record, Sweep
from frictax.measurements.record import replace_fields
from frictax.mechanism import Machine, Mechanism
from frictax.mechanism.forces import AbstractMotion
from frictax.notice import Notice
from frictax.parameters import UnknownName, get, parameters, replace
from frictax.progress import SILENT, Work, show_progress
from frictax.text import suggestion

from .build_problem import build_problem, build_sweep_problem, with_other_record
from .checks import check_data, check_precision
from .fit import fit_records, raise_if_failed, repeat_search, usual_method, with_step_notices
from .many_search import Length, search_together
from .options import DEFAULTS, FitOptions, ManyOptions, refuse
from .problem.initial_state import begun_at, named_paths
from .problem.inverse_dynamics import InverseDynamics
from .problem.problem import Problem, bounds, upper_bounds
from .problem.setup import state_names
from .problem.simulations import FreeRun
from .problem.steady import SteadyFriction
from .result.estimates import Replicates
from .result.fit_result import FitResult, make_fit_result
from .result.step_error import SHORTER, is_doubtful, with_steps_needed
from .search.certificate import certify
from .search.methods import AbstractMethod, LevenbergMarquardt
from .search.multistart import Searched, search
from .steady_model import assemble_friction

# Exceptions that wrong records or options raise, with a message for the user.
MISTAKES = (ValueError, KeyError, TypeError, OSError)


@lists_options(ManyOptions, DEFAULTS)
def fit_many(
    model: AbstractLaw | type[AbstractLaw] | SteadyFriction | Machine,
    data: Checked[Sweep | Record | Sequence[Record]],
    measured: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    values: Checked[Mapping[str, ArrayLike]] | None = None,
    **options: Unpack[ManyOptions],
) -> Replicates:
    """Fit one model separately to each of many measurements: records of many machines, or repeated
    (or simulated) measurements of one experiment.

    On each processor, one compiled call runs 32 least-squares fits by Levenberg-Marquardt. Fits by
    other methods or losses run one after the other. A new length of the records requires a new
    compilation, but a new number of records and new values do not.

    **Arguments:**

    - `model`: a law or `SteadyFriction` for a sweep, a machine for records. Every fit starts from
      the values in `model`.
    - `data`: several records with the same channels, each with its own inputs and times. `data` can
      also be one sweep or one record, whose forces or outputs `measured` replaces.
    - `measured`: the k measurements of n samples. For a sweep, an array (k, n) of forces [N or
      N.m]. For one record, a dict from output to array (k, n) in SI units; a single output needs
      only the array. Omit `measured` for several records.
    - `values`: path -> k numbers, one for the machine of each fit. The numbers are the fixed values
      of a parameter (such as a payload or an initial state), or the start values of a free
      parameter.
    - `free`, `tied`, `method`, `loss`, `level`, `progress`: as in `fit`; `objective`, `engine`: for
      records only.

    **Returns:** `Replicates`: the values of all k fits, equal to those of the first search of
    `fit`. `fit_many` does not run rounds. A notice gives the number of free runs whose residuals
    are larger than the noise. Use the values for bootstrap errors, or to count how often intervals
    cover the true value. Of the notices about records, `notices` has the first of each kind.

    **Raises:** `ValueError` for measurements of another shape, and for records whose channels
    differ.

    Compare the scatter of 200 repetitions of one sweep with the standard errors of single fits:

    >>> import frictax as fx, numpy as np
    >>> v = np.linspace(0.5, 8.0, 16)
    >>> law = fx.Coulomb(F_Coulomb=6.0, F_prop=0.2)

    >>> noise = 0.05 * np.random.default_rng(0).standard_normal((200, 16))
    >>> f = 6.0 + 0.2 * v

    >>> sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    >>> many = fx.fit_many(law, sweep, f + noise)

    >>> many.names, many.values.shape
    (('F_Coulomb', 'F_prop'), (200, 2))
    >>> np.std(many.values, axis=0).round(3), np.mean(many.standard_errors, axis=0).round(3)
    (array([0.026, 0.005]), array([0.032, 0.006]))
    """
    check_names(fit_many, options)
    given = FitOptions(**options)
    check_precision()
    with show_progress(given.progress, "Fitting many") as work:
        if isinstance(data, Sweep):
            moving = {"objective": given.objective, "engine": given.engine, "values": values}
            refuse(moving, "a record", "a sweep")
            method = given.method or LevenbergMarquardt()
            given = dataclasses.replace(given, method=method)
            problem, said = build_sweep_problem(assemble_friction(model, data, given), data, given)
            (prepared,) = problem.prepared
            each = [dataclasses.replace(prepared, measured=f) for f in forces_of(data, measured)]
            asked = [(dataclasses.replace(problem, prepared=(one,)), said) for one in each]
            sources: Sequence[Any] = [data] * len(asked)
            models = [model] * len(asked)
        else:
            method = given.method or usual_method()
            given = dataclasses.replace(given, method=method)
            sources = records_of(data, measured)
            count = len(sources)
            own = values_of_each(model, values, count)
            models = [replace(model, {p: x[i] for p, x in own.items()}) for i in range(count)]
            asked = []
            for one in _problems_of_each(models, sources, given):
                if isinstance(one, Exception):
                    raise one
                asked.append(one)
            if (given.objective or FreeRun()).fits_starts():
                raise ValueError(
                    "`fit_many` cannot find the starts of windows. Write Windows(...) without"
                    " free_starts, or call `fit`."
                )
        ends = ends_of(models, sources, asked, method, given.level, work)
    return ends.replicates([said for _, said in asked])


@dataclasses.dataclass(frozen=True, eq=False)
class Ends:
    """Problems of many fits and the results of their searches. `found(i)`: result of fit i."""

    models: Sequence[Any]
    sources: Sequence[Any]
    problems: Sequence[Problem]
    notes: Sequence[list[Notice]]
    searches: Sequence[Searched]
    method: AbstractMethod
    level: float

    @property
    def states(self) -> list[Any]:
        return [end.state for end in self.searches]

    def found(self, i: int) -> FitResult:
        source = self.sources[i]
        records = {source.name or type(source).__name__: source}
        how = self.method, self.level, self.notes[i]
        return make_fit_result(self.models[i], self.problems[i], records, self.searches[i], *how)

    def replicates(self, notes: Sequence[list[Notice]]) -> Replicates:
        """Return the values of all fits. `notes`: the notices of each record."""
        return Replicates(
            tuple(name for u in self.problems[0].unknowns for name in u.names),
            np.stack([np.asarray(e.x) for e in self.states]),
            np.asarray([bool(e.settled) for e in self.states]),
            self.level,
            np.asarray([float(e.cost) for e in self.states]),
            self.errors,
            functools.partial(self.notices, notes),
        )

    def notices(self, notes: Sequence[list[Notice]]) -> list[Notice]:
        """Return the first notice of each kind in `notes`, and one on fits above the noise."""
        first = {(n.code, n.subject): n for said in reversed(notes) for n in reversed(said)}
        tests = map(certify, self.problems, (end.residuals for end in self.states))
        above = [i for i, test in enumerate(tests) if test is not None and test.matters]
        numbers = {"above": len(above), "count": len(self.problems)}
        more = [Notice("fits-above-noise", "", numbers | {"first": i}) for i in above[:1]]
        return [*reversed(first.values()), *more]

    def errors(self) -> tuple[np.ndarray, ...]:
        """Return the standard errors and the lower and upper ends of the intervals of all fits."""

        def one(i: int) -> list[tuple[float, float, float]]:
            mine = self.found(i)
            if not mine.of_sweep:
                return [(e.standard_error, e.lower, e.upper) for e in mine.estimates]
            # The intervals are computed here, because `estimates` also tests whether the data show
            # a Stribeck dip, which takes longer than the fit.
            known = np.where(mine.active, 1.0, np.nan)
            half = known * mine.spread.half_width(self.level, np.eye(mine.x.size))
            sd = known * np.sqrt(np.diag(mine.covariance))
            unknowns = mine.problem.unknowns
            low = np.where(mine.active, np.fmax(mine.x - half, bounds(unknowns)), np.nan)
            high = np.where(mine.active, np.fmin(mine.x + half, upper_bounds(unknowns)), np.nan)
            return list(zip(sd.tolist(), low.tolist(), high.tolist(), strict=True))

        with Workers() as pool:
            rows = np.asarray(pool.map(one, range(len(self.searches))))
        return rows[..., 0], rows[..., 1], rows[..., 2]

    def with_steps_needed(self) -> "Ends":
        """Repeat each search whose fit needs shorter time steps, and return all searches."""
        problems, searches = list(self.problems), list(self.searches)
        for i, (problem, end) in enumerate(zip(problems, searches, strict=True)):
            if not isinstance(problem.engine, OnSamples) or not np.isfinite(float(end.state.cost)):
                continue
            if not problem.objective.in_units_of_outputs():
                continue
            r = np.asarray(end.state.residuals)
            dof = max(r.size - end.state.z.size, 1)
            if not is_doubtful(problem, r, float(np.sqrt(r @ r / dof))):
                continue
            for _ in range(SHORTER):
                now = dataclasses.replace(self, problems=problems, searches=searches)
                shorter = with_steps_needed(now.found(i))
                if shorter is None:
                    break
                with nested_work():
                    again = search(shorter, self.method, first=searches[i].state.z)
                if not np.isfinite(float(again.state.cost)):
                    break
                problems[i], searches[i] = shorter, again
        return dataclasses.replace(self, problems=problems, searches=searches)


def ends_of(
    models: Sequence[Any],
    sources: Sequence[Any],
    asked: Sequence[tuple[Problem, list[Notice]]],
    method: AbstractMethod,
    level: float,
    work: Work,
    length: Length | None = None,
) -> Ends:
    """Minimise the cost of each problem. `asked`: problems (with one record each) and their
    notices. Least-squares problems with Levenberg-Marquardt are searched together, others one after
    the other. `length`: see `search_together`.
    """
    problems, notes = [problem for problem, _ in asked], [said for _, said in asked]
    first, searches = problems[0], []
    if isinstance(method, LevenbergMarquardt) and first.loss.rounds == 1 and not first.priors:
        problems, states, more = search_together(problems, method, work, length)
        notes = [[*a, *b] for a, b in zip(notes, more, strict=True)]
        searches = [Searched(s, np.reshape(s.cost, 1), 1.0, False, ()) for s in states]
    else:
        for i, problem in enumerate(problems):
            with nested_work():
                first_end = search(problem, method)
                problems[i], end, more = repeat_search(problem, first_end, method, SILENT)
            notes[i] = [*notes[i], *more]
            searches.append(end)
            work.count(i + 1, len(problems), "fits")
    return Ends(models, sources, problems, notes, searches, method, level).with_steps_needed()


def fit_each(
    models: Sequence[Any],
    records: Sequence[Record],
    options: FitOptions,
    *,
    length: Length | None = None,
) -> list[FitResult | Exception]:
    """Return the result of `fit` for each model and its record, or the exception that it raises.

    Least-squares fits from one start are searched together, other fits one after the other. With
    the function `length`, a record of n samples is padded to `length(n)` samples, so that records
    of different lengths share compiled programs.
    """
    out: list[Any] = []
    objective, start = options.objective or FreeRun(), options.start
    may_start = start is None or objective.drives() == start.drives()  # otherwise `fit` raises
    # A first fit gives each record its own start values of sensors.
    free = named_paths(options.free)
    finds_sensors = start is not None and any(p.startswith(("inputs.", "outputs.")) for p in free)
    others = options.priors, options.own, options.rounds, objective.fits_starts(), finds_sensors
    if not (may_start and options.is_least_squares and options.starts == 1 and not any(others)):
        for model, record in zip(models, records, strict=True):
            try:
                with show_progress(False, "Fitting") as alone:
                    out.append(fit_records(model, record, options, alone))
            except MISTAKES as why:
                out.append(why)
        return out
    if start is not None:
        return _fit_in_two_stages(models, records, options, length)
    method = options.method or usual_method()
    options = dataclasses.replace(options, method=method)
    out = list(_problems_of_each(models, records, options))
    places = [i for i, one in enumerate(out) if not isinstance(one, Exception)]
    if not places:
        return out
    ours, theirs = ([some[i] for i in places] for some in (models, records))
    ends = ends_of(ours, theirs, [out[i] for i in places], method, options.level, SILENT, length)
    for k, i in enumerate(places):
        try:
            raise_if_failed(ends.problems[k], ends.searches[k].costs, {records[i].name: records[i]})
            out[i] = with_step_notices(ends.found(k))
        except MISTAKES as why:
            out[i] = why
    return out


def _problems_of_each(
    models: Sequence[Any], records: Sequence[Record], options: FitOptions
) -> Iterator[tuple[Problem, list[Notice]] | Exception]:
    """Yield the problem of each record with its notices, or the exception of an invalid record."""
    # key -> problem, notices about the machine and names of its states, for later records
    like: dict[Any, tuple[Problem, list[Notice], tuple[str, ...]]] = {}
    options = dataclasses.replace(options, objective=options.objective or FreeRun())
    for model, record in zip(models, records, strict=True):
        # Problems with equal keys differ only in their samples. If the record prescribes a motion,
        # each sample is an event, so the key also contains the number of samples.
        units = tuple((name, unit.name) for name, unit in record.units.items())
        lacking = [name for name in record.outputs if record.sd.get(name) is None]
        channels = (*record.inputs, None, *record.outputs, None, *lacking, None, *record.ticks)
        parts = [name.partition(".")[0] for name in record.inputs]
        moves = isinstance(model, Mechanism) and any(
            name in model.names and isinstance(model[name], AbstractMotion) for name in parts
        )
        key = id(model), units, channels, record.hold, record.n if moves else 0
        try:
            if key in like:
                problem, of_machine, states = like[key]
                made = with_other_record(problem, record, states)
                if made is not None:
                    yield made[0], [*of_machine, *made[1]]
                    continue
            check_data(model, {record.name: record})
            problem, notes = build_problem(model, {record.name: record}, options)
        except MISTAKES as why:
            yield why
            continue
        states = state_names(problem.setup.machine)
        # If this record cannot have a weak form, a later record may have one.
        is_asked = problem.objective is options.objective
        if is_asked and not problem.delayed and not {*states} & {u.path for u in problem.unknowns}:
            of_machine = [n for n in notes if n.code in ("left-at-bound", "forces-at-samples")]
            like[key] = problem, of_machine, states
        yield problem, notes


def _fit_in_two_stages(
    models: Sequence[Any], records: Sequence[Record], options: FitOptions, length: Length | None
) -> list[FitResult | Exception]:
    """Fit each record with `options.start`, and from its result with `options.objective`."""
    last = dataclasses.replace(options, start=None)
    start = options.start
    if isinstance(start, InverseDynamics):  # the weak form is not needed for start values
        start = dataclasses.replace(start, at_samples=True)
    first = dataclasses.replace(last, objective=start, method=None, log_scale=())
    before = fit_each(models, records, first, length=length)
    found = [(i, one) for i, one in enumerate(before) if not isinstance(one, Exception)]
    begun = [begun_at(one.model, models[i], one.problem) for i, one in found]
    mine = [records[i] for i, _ in found]
    made = fit_each(begun, mine, last, length=length) if found else []
    out: list[FitResult | Exception] = list(before)
    for (i, _), one in zip(found, made, strict=True):
        out[i] = one
    return out


def forces_of(sweep: Sweep, measured: Any) -> np.ndarray:
    """Return the `measured` forces of each fit as an array (k, n, 1)."""
    try:
        forces = np.asarray(measured, dtype=float)
    except (TypeError, ValueError):
        forces = np.zeros((0, 0))
    if forces.ndim != 2 or not forces.size or forces.shape[1] != sweep.n:
        raise ValueError(
            f"`measured` must have shape (k, {sweep.n}), one column for each row of the sweep, got"
            f" {np.shape(np.asarray(measured))}."
        )
    return forces[..., None]


def records_of(data: Any, measured: Any) -> list[Record]:
    """Return the records in `data`, or copies of a single record with the `measured` outputs."""
    if isinstance(data, Record):
        if measured is None:
            raise ValueError(
                "`fit_many` needs what was `measured` under the inputs of the one record that it"
                f" was given: output -> (k, {data.n}). Give several records, or call `fit`."
            )
        return [replace_fields(data, outputs=values) for values in _measurements(data, measured)]
    records = list(data) if isinstance(data, Sequence) else [data]
    strangers = [type(r).__name__ for r in records if not isinstance(r, Record)]
    if strangers or not records:
        got = strangers[0] if strangers else "none"
        raise ValueError(f"`fit_many` needs a `Sweep`, a `Record` or a list of them, got {got}.")
    if measured is not None:
        raise ValueError(
            "`measured` goes with one record; several have outputs of their own. Leave it out."
        )
    first = records[0]
    for i, record in enumerate(records):
        for kind in ("inputs", "outputs"):
            wanted, got = list(getattr(first, kind)), list(getattr(record, kind))
            if set(wanted) != set(got):
                raise ValueError(
                    f"`fit_many` needs records of the same channels: record {i} ({record.name!r})"
                    f" has {kind} {', '.join(got) or 'none'}, the first {', '.join(wanted)}."
                )
    return records


def values_of_each(model: Any, values: Any, count: int) -> dict[str, np.ndarray]:
    """Return a dict from path to the values for all fits [SI], an array (count, ...)."""
    if not values:
        return {}
    if not isinstance(values, Mapping):
        raise ValueError(
            f"`values` must be a mapping from paths to {count} numbers, got"
            f" {type(values).__name__}. Write {{'mass.m': [...]}}."
        )
    known, each = [p.path for p in parameters(model)], {}
    for path, given in values.items():
        if path not in known:
            raise UnknownName(
                f"`values` names {path!r}, which the machine does not have."
                f"{suggestion(path, known)} It has: {', '.join(known)}."
            )
        each[path] = np.asarray(given, dtype=float)
        shape = (count, *np.shape(get(model, path)))
        if each[path].shape != shape:
            raise ValueError(
                f"`values` must give {path!r} for each of the {count} fits, shape {shape}, got"
                f" {each[path].shape}."
            )
    return each


def _measurements(record: Record, outputs) -> list[dict[str, np.ndarray]]:
    """Return for each measurement a dict from the output's name to its samples (n,)."""
    names = list(record.outputs)
    only = {names[0]: outputs} if len(names) == 1 else {}
    given = outputs if isinstance(outputs, Mapping) else only
    if set(given) != set(names):
        raise ValueError(
            f"`measured` must hold every output of record {record.name!r}: write"
            f" {{{', '.join(f'{n!r}: ...' for n in names)}}}, each of shape (k, {record.n})."
        )
    try:
        arrays = {name: np.asarray(given[name], dtype=float) for name in names}
    except (TypeError, ValueError):
        raise ValueError(
            f"`measured` must be numbers of shape (k, {record.n}), a row a measurement. Stack them"
            " with numpy."
        ) from None
    for name, x in arrays.items():
        if (
            x.ndim != 2
            or not x.size
            or x.shape[1] != record.n
            or x.shape[0] != len(arrays[names[0]])
        ):
            raise ValueError(
                f"`measured` must have shape (k, {record.n}) for {name!r}, a row a measurement, got"
                f" {x.shape}."
            )
    return [{name: x[i] for name, x in arrays.items()} for i in range(len(arrays[names[0]]))]
