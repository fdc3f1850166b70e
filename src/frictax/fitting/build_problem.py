"""Build the `Problem` of a fit from a model, its records and the options of the fit."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from frictax.engine import Adaptive, OnSamples
from frictax.engine.options import ForwardAlone
from frictax.measurements import Record, Sweep
from frictax.notice import Notice
from frictax.parameters import (
    Between,
    Declaration,
    Increasing,
    LogScale,
    Parameter,
    Real,
    check,
    check_not_on_edge,
    check_value,
    get,
    on_edge_unasked,
    parameters,
    replace,
    select,
)

from .checks import check_delays, check_deviations, check_priors
from .options import FitOptions
from .problem.initial_state import named_paths, own_start, shared_start
from .problem.inverse_dynamics import InverseDynamics, heated_node
from .problem.losses import Squares
from .problem.objectives import AbstractObjective, PreparedRecord, Steady
from .problem.problem import (
    PreparedSweep,
    Problem,
    Unknown,
    bounds,
    steady_plan,
    transform_parameters,
    upper_bounds,
)
from .problem.readings import check_no_ticks, divide_gaps, measured_starts
from .problem.setup import Instrument, Named, Setup, check_channels, perfect, state_names
from .problem.simulations import FreeRun
from .problem.ties import Tie, apply_ties, tied_domain, ties_of
from .result.notices import far_starts, idle_filters, only_a_start, uncounted_samples, undriven
from .result.units import unit_of
from .search.methods import LevenbergMarquardt
from .steady_model import check_determined, movable

# Default engines, for Levenberg-Marquardt (True) and for other methods (False). Both are built
# once, because the checks of an engine take 2 % of the time of a fit.
_DEFAULT_ENGINES = {
    alone: dataclasses.replace(OnSamples(), adjoint=ForwardAlone() if alone else None)
    for alone in (True, False)
}


def build_sweep_problem(
    model: Any, sweep: Sweep, options: FitOptions
) -> tuple[Problem, list[Notice]]:
    """Return the least-squares problem of a sweep, and notices about omitted parameters."""
    records = {sweep.name: sweep}
    setup = Setup(model, Named.from_dict({}), Named.from_dict({}))
    named = {"free": named_paths(options.free)}
    ties = ties_of(setup, options.tied, named, unit_of(records, model))
    model = apply_ties(setup, ties).machine
    chosen, unseen = movable(model, sweep, options.free, {tie.path for tie in ties})
    options = dataclasses.replace(options, free=[p.path for p in chosen])
    problem, notes = build_problem(model, records, options, Steady())
    problem = dataclasses.replace(problem, noise_known=sweep.sigma_known)
    check_determined(problem, sweep)
    return problem, [*unseen, *notes]


def entries(problem: Problem, model: Any) -> np.ndarray:
    """Return the values of the fitted parameters in `model`, as one vector (p,)."""
    return np.concatenate(
        [np.ravel(np.asarray(get(model, u.path), dtype=float)) for u in problem.unknowns]
    )


def build_problem(
    model: Any,
    records: Mapping[str, Any],
    options: FitOptions,
    objective: AbstractObjective | None = None,
) -> tuple[Problem, list[Notice]]:
    """Return the least-squares problem of a fit, and notices about its parameters and records.

    A given `objective` replaces `options.objective`. The objective of a sweep is `Steady()`.
    """
    objective = objective or options.objective or FreeRun()
    engine = None if isinstance(objective, Steady) else fit_engine(options.engine, options.method)
    instruments = options.instruments or {}
    machine = _in_64_bits(objective.machine(model))
    check(machine)
    setup = _with_sensors(machine, records, instruments)
    named = {"free": named_paths(options.free), "own": named_paths(options.own)}
    ties = ties_of(setup, options.tied, named, unit_of(records, machine))
    if ties:
        setup = apply_ties(setup, ties)
        machine = setup.machine
        check(machine)
    tied = {tie.path for tie in ties}
    shared, each, notes = _choose_parameters(setup, options, tied)
    _check_own_starts(options.own, len(records), [p.path for p in parameters(setup)])
    delayed = frozenset(
        p.path.removesuffix(".delay") for p in (*shared, *each) if p.path.endswith(".delay")
    ) | frozenset(name for name, instrument in instruments.items() if float(instrument.delay) != 0)
    states = state_names(machine)
    for r in (r for r in records.values() if isinstance(r, Record)):
        check_channels(machine, r, states)
        check_delays(instruments, r)
    objective, prepared, only_start = _prepare(objective, machine, records, engine, delayed)
    declared = _declare_domains(setup, [*shared, *each], ties, options)
    unknowns, values = _start_values(
        setup, (shared, each), declared, objective, options, records, prepared, delayed
    )
    check_priors(options.priors, unknowns)
    x0 = np.concatenate(values)
    lower = bounds(unknowns)
    scaled = np.isfinite(lower) & ~np.isfinite(upper_bounds(unknowns))
    origin = np.where(scaled, lower, 0.0)
    size = np.where(scaled, x0 - origin, 1.0)
    base = transform_parameters(unknowns, origin + (x0 - origin) / size, "to_unconstrained")
    # Outputs in `floating` are encoder ticks (one sample for each step). Each prediction fits a
    # constant offset to these outputs. The fit omits this offset if another parameter has nearly
    # the same effect: the initial value or the sensor offset of the output.
    moved = {u.path for u in unknowns}
    is_floating = lambda name: not {name, f"outputs.{name}.offset"} & moved  # noqa: E731
    prepared = tuple(
        dataclasses.replace(one, floating=tuple(filter(is_floating, one.floating)))
        if isinstance(one, PreparedRecord) and not all(map(is_floating, one.floating))
        else one
        for one in prepared
    )
    problem = Problem(
        setup=setup,
        prepared=prepared,
        priors=tuple(options.priors),
        objective=objective,
        engine=engine,
        loss=options.loss or Squares(),
        x0=x0,
        base=np.asarray(base),
        origin=origin,
        size=size,
        unknowns=tuple(unknowns),
        delayed=delayed,
        ties=ties,
    )
    return problem, notes + only_start + _notices_of_records(problem, records, states)


def _with_sensors(
    machine: Any, records: Mapping[str, Any], instruments: Mapping[str, Instrument]
) -> Setup:
    """Return the machine with an `Instrument` for each channel of the records."""
    motions = [r for r in records.values() if isinstance(r, Record)]
    inputs = list(dict.fromkeys(name for r in motions for name in r.inputs))
    outputs = list(dict.fromkeys(name for r in motions for name in r.outputs))
    channels = [f"inputs.{n}" for n in inputs] + [f"outputs.{n}" for n in outputs]
    unknown = [name for name in instruments if name not in channels]
    if unknown:
        raise ValueError(
            f"`instruments` names {unknown[0]!r}, which no record has. Channels are:"
            f" {', '.join(channels)}."
        )
    return Setup(
        machine, sensors("inputs", inputs, instruments), sensors("outputs", outputs, instruments)
    )


def _start_values(
    setup: Setup,
    chosen: tuple[Sequence[Parameter], Sequence[Parameter]],
    declared: Mapping[str, Declaration],
    objective: AbstractObjective,
    options: FitOptions,
    records: Mapping[str, Any],
    prepared: Sequence[Any],
    delayed: frozenset[str],
) -> tuple[list[Unknown], list[np.ndarray]]:
    """Return the fitted parameters and their start values, in this order: parameters that all
    records share, parameters with a value for each record, initial states of windows.
    """
    shared, each = chosen
    starts = [(p, None, "", shared_start(setup, p, objective, records)) for p in shared]
    for i, (label, r) in enumerate(records.items()):
        starts += [(p, i, label, own_start(setup, p, options.own, i, r)) for p in each]
    unit = unit_of(records, setup.machine)
    unknowns: list[Unknown] = []
    values: list[np.ndarray] = []
    for p, i, label, value in starts:
        declaration = declared.get(p.path, p.declaration)
        owner = type(setup.machine).__name__ if p.owner == Setup.__name__ else p.owner
        name = f"{owner}.{p.path.rsplit('.', 1)[-1]}"
        check_value(name, value, declaration, functools.partial(unit, p))
        check_not_on_edge(name, value, declaration.domain)
        first = sum(v.size for v in values)
        unknowns.append(Unknown(p.path, i, label, declaration, np.shape(p.value), first))
        values.append(np.ravel(value))
    for i, (label, one) in enumerate(zip(records, prepared, strict=True)):
        if objective.fits_starts() and isinstance(one, PreparedRecord):
            for name, value in measured_starts(setup, one, delayed).items():
                path, first = f"windows.{name}", sum(v.size for v in values)
                values.append(np.asarray(value))
                unknowns.append(
                    Unknown(path, i, label, Declaration(Real()), np.shape(value), first)
                )
    return unknowns, values


def _prepare(
    objective: AbstractObjective,
    machine: Any,
    records: Mapping[str, Any],
    engine: Any,
    delayed: frozenset[str],
) -> tuple[AbstractObjective, tuple[PreparedRecord | PreparedSweep, ...], list[Notice]]:
    """Return the objective, its arrays for each record or sweep, and notices. If `InverseDynamics`
    cannot use its weak form, the returned objective compares forces at samples.
    """
    motions = [r for r in records.values() if isinstance(r, Record)]
    check_deviations(records, objective.in_units_of_outputs())
    for r in motions if getattr(objective, "measured_start", False) else ():
        check_no_ticks(r, f"{type(objective).__name__}(measured_start=True)")

    driven = {name.partition(".")[0] for r in motions for name in r.inputs}

    def prepare_all(objective: AbstractObjective) -> tuple[PreparedRecord | PreparedSweep, ...]:
        return tuple(
            objective.prepare(machine, r)
            if isinstance(r, Record)
            else steady_plan(machine, label, r, driven)
            for label, r in records.items()
        )

    prepared = tuple(divide_gaps(one, engine) for one in prepare_all(objective))
    if not isinstance(objective, InverseDynamics):
        return objective, prepared, []
    if objective.at_samples:
        node, why = heated_node(machine), "`at_samples` is set"
        # The temperature of `node` keeps its start value.
        why += f", without the change of temperature of {node!r}" if node else ""
        return objective, prepared, [Notice("forces-at-samples", "", {"why": why})]
    late = any(name.startswith("outputs.") for name in delayed)
    if not late and all(not isinstance(p, PreparedRecord) or p.weak is not None for p in prepared):
        return objective, prepared, []
    objective = dataclasses.replace(objective, at_samples=True)
    return objective, prepare_all(objective), [only_a_start(machine, motions, late)]


def with_other_record(
    problem: Problem, record: Record, states: tuple[str, ...]
) -> tuple[Problem, list[Notice]] | None:
    """Return `problem` with `record` in place of its only record, and notices about `record`. The
    old and the new record must have the same channels in the same units. The problem must not fit
    a state of the machine (`states`), because its start value depends on the record. Return None if
    the problem has a weak form and the record cannot have one.
    """
    again = divide_gaps(problem.objective.prepare(problem.setup.machine, record), problem.engine)
    if problem.objective.whitens() and again.weak is None:
        return None
    again = dataclasses.replace(again, floating=getattr(problem.prepared[0], "floating", ()))
    problem, records = dataclasses.replace(problem, prepared=(again,)), {record.name: record}
    return problem, _notices_of_records(problem, records, states)


def _notices_of_records(
    problem: Problem, records: Mapping[str, Any], states: tuple[str, ...]
) -> list[Notice]:
    objective, motions = problem.objective, [r for r in records.values() if isinstance(r, Record)]
    return [
        *undriven(problem, records),
        *far_starts(problem, records, states),
        *idle_filters(objective, motions),
        *uncounted_samples(objective, problem.prepared, list(records)),
    ]


def prepare_record(
    machine: Any,
    record: Record,
    objective: AbstractObjective,
    instruments: Mapping[str, Instrument] | None,
    engine: Any,
) -> tuple[Setup, PreparedRecord, frozenset[str]]:
    """Return the machine with its sensors, the record as arrays, and names of delayed channels."""
    given = {} if instruments is None else dict(instruments)
    check_channels(machine, record)
    channels = ("inputs", tuple(record.inputs)), ("outputs", tuple(record.outputs))
    setup = Setup(machine, *(sensors(kind, names, given) for kind, names in channels))
    delayed = frozenset(name for name, one in given.items() if float(one.delay) != 0)
    prepared = divide_gaps(objective.prepare(machine, record), engine)
    return setup, jax.tree.map(jnp.asarray, prepared), delayed


def sensors(kind: str, channels: Sequence[str], instruments: Mapping[str, Instrument]) -> Named:
    given = {n: instruments[f"{kind}.{n}"] for n in channels if f"{kind}.{n}" in instruments}
    return (
        _in_64_bits(Named.from_dict({n: given.get(n, perfect()) for n in channels}))
        if given
        else _perfect_sensors(tuple(channels))
    )


@functools.lru_cache(maxsize=64)
def _perfect_sensors(channels: tuple[str, ...]) -> Named:
    with jax.ensure_compile_time_eval():  # a tracer of `jit` must not enter the cache
        return _in_64_bits(Named.from_dict(dict.fromkeys(channels, perfect())))


def _declare_domains(
    setup: Setup, chosen: Sequence[Parameter], ties: Sequence[Tie], options: FitOptions
) -> dict[str, Declaration]:
    """Return a dict from path to declaration, for each free parameter whose domain is changed by
    the option `bounds`, the option `log_scale`, or a tie. A tie narrows the domain of its source
    parameter, so that the tied parameter stays in its own domain.
    """
    limits = options.bounds or {}
    for tie in ties:
        if isinstance(limits, Mapping) and tie.path in limits:
            remedy = f"Bound {tie.source!r}" if tie.source else "Bound what it is made of"
            raise ValueError(
                f"`bounds` names {tie.path!r}, which is tied ({tie.says}). {remedy} instead."
            )
    declared = on_log_scale(chosen, options.log_scale, narrow_domains(chosen, limits))
    of = {p.path: p.declaration for p in parameters(setup)} | declared if ties else {}
    for p in chosen if ties else ():
        domain = tied_domain(ties, p.path, of[p.path].domain, lambda path: of[path].domain)
        if domain != of[p.path].domain:
            declared[p.path] = dataclasses.replace(of[p.path], domain=domain)
    return declared


def _choose_parameters(
    setup: Setup, options: FitOptions, tied: set[str]
) -> tuple[list[Parameter], list[Parameter], list[Notice]]:
    """Return shared free parameters, free parameters with a value per record, and notices."""
    free, own = options.free, options.own
    free_paths, own_paths = named_paths(free), named_paths(own)
    for what, paths in (("free", free_paths), ("own", own_paths)):
        wrong = [name for name in paths if not isinstance(name, str)]
        if wrong:
            raise ValueError(
                f"`{what}` must name parameters by their paths, got {wrong[0]!r}. Write"
                f" {what}=['mass.m', 'friction.f_pos']."
            )
    each = [p for p in select(setup, own_paths) if p.path not in tied] if own_paths else []
    both = [path for path in own_paths if path in free_paths]
    if both:
        raise ValueError(
            f"{both[0]!r} is in `free` and in `own`: either all records share it, or each record"
            " has its own value. Name it in one of the two."
        )
    mine = tied.union(p.path for p in each)
    shared = [p for p in select(setup, free) if p.path not in mine]
    edge = on_edge_unasked([*shared, *each], [*free_paths, *own_paths])
    shared, each = ([p for p in some if p not in edge] for some in (shared, each))
    if edge and not shared and not each:
        check_not_on_edge(edge[0].path, edge[0].value, edge[0].declaration.domain)
    if not shared and not each:
        raise ValueError(
            "`fit` has no free parameters: name some in `free`, such as free=['mass.m',"
            " 'friction.f_pos']."
        )
    return shared, each, [Notice("left-at-bound", p.path, {"value": float(p.value)}) for p in edge]


def _check_own_starts(own: Any, count: int, known: Sequence[str]) -> None:
    """Raise `ValueError` if `own` does not give a path `count` start values or None, or if a path
    with start values is not a parameter. `known`: paths of all parameters.
    """
    for path, values in own.items() if isinstance(own, Mapping) else ():
        if values is None:
            continue
        if path not in known:
            below = [f"{name!r}: [...]" for name in known if name.startswith(f"{path}.")]
            raise ValueError(
                f"`own` must give starts for single parameters, got them for {path!r}. Write"
                f" {{{', '.join(below)}}}."
            )
        if not isinstance(values, Sequence | np.ndarray | jax.Array):
            raise ValueError(
                f"`own` must give a start for each record, got {values!r} for {path!r}. Write"
                f" [{values!r}, ...]."
            )
        if len(values) != count:
            raise ValueError(
                f"`own` must give a start for each of the {count} records, got {len(values)}"
                f" for {path!r}. Give one for each."
            )


def fit_engine(engine: Any, method: Any) -> Any:
    """Return the engine of a fit. With Levenberg-Marquardt the engine differentiates in forward
    mode only, which gives the residuals and the Jacobian in one pass.
    """
    if isinstance(engine, Adaptive):
        return engine
    alone = isinstance(method, LevenbergMarquardt | None)
    if engine is None:
        return _DEFAULT_ENGINES[alone]
    return dataclasses.replace(engine, adjoint=ForwardAlone() if alone else None, finer=())


def _in_64_bits(model) -> Any:
    narrow = lambda a: eqx.is_inexact_array(a) and a.dtype != np.float64  # noqa: E731
    if not any(map(narrow, jax.tree.leaves(model))):
        return model
    return jax.tree.map(lambda a: a.astype(np.float64) if narrow(a) else a, model)


def move_inside(model: Any, limits: Any) -> Any:
    """Move the start values in `model`, which were estimated from data, inside `limits` (the option
    `bounds`). The distance of a moved value from both bounds is at least 1 % of the range.
    """
    moved = {}
    for path, pair in limits.items() if isinstance(limits, Mapping) else ():
        (low, high), here = _two_numbers(pair), {p.path: p.value for p in parameters(model)}
        if path in here and low < high:
            room = 0.01 * (high - low)
            moved[path] = np.clip(np.asarray(here[path]), low + room, high - room)
    return replace(model, moved)


def _two_numbers(pair) -> tuple[float, float]:
    """Return the two numbers of a pair, or (nan, nan) if `pair` does not contain two numbers."""
    try:
        low, high = (float(x) for x in pair)
    except (TypeError, ValueError):
        return np.nan, np.nan
    return low, high


def shared_limits(limits: Any, own: Any) -> Any:
    """Return `limits` (the option `bounds`) without the parameters in `own`."""
    if not isinstance(limits, Mapping):
        return limits
    return {path: pair for path, pair in limits.items() if path not in own}


def on_log_scale(
    chosen: Sequence[Parameter], asked: Any, declared: Mapping[str, Declaration]
) -> dict[str, Declaration]:
    """Return the declarations `declared`, with domain `LogScale` for the paths in `asked`."""
    known, out = {p.path: p for p in chosen}, dict(declared)
    for name in [asked] if isinstance(asked, str) else asked:
        below = [p for path, p in known.items() if path == name or path.startswith(f"{name}.")]
        if not below:
            raise ValueError(
                f"`log_scale` names {name!r}, which is not fitted. Free are: {', '.join(known)}."
            )
        for p in below:
            domain = p.declaration.domain
            if p.path in declared:
                raise ValueError(
                    f"{p.path!r} is in `bounds` and in `log_scale`: between two bounds it has"
                    " another scale. Name it in one of the two."
                )
            if not (domain.entry_by_entry and domain.bound() == 0.0 and domain.upper() == np.inf):
                raise ValueError(
                    f"`log_scale` of {p.path!r} must be a number > 0, and it may be any that is"
                    f" {domain.rule()}. Leave it out of `log_scale`."
                )
            out[p.path] = dataclasses.replace(p.declaration, domain=LogScale())
    return out


def narrow_domains(chosen: Sequence[Parameter], limits) -> dict[str, Declaration]:
    """Return a dict from each path in `limits` to a declaration with its bounds as domain."""
    if not isinstance(limits, Mapping):
        raise ValueError(
            f"`bounds` must be a dict of path -> (least, most), got {limits!r}. Write"
            " bounds={'mass.m': (50, 150)}."
        )
    known, out = {p.path: p for p in chosen}, {}
    for path, pair in limits.items():
        if path not in known:
            raise ValueError(
                f"`bounds` names {path!r}, which is not fitted. Free are: {', '.join(known)}."
            )
        low, high = _two_numbers(pair)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ValueError(
                f"`bounds` of {path!r} must be two numbers, the least first, got {pair!r}. Write"
                f" bounds={{{path!r}: (50, 150)}}, say."
            )
        declaration = known[path].declaration
        domain = declaration.domain
        for end in (low, high):
            if isinstance(domain, Increasing) or not (
                end == domain.bound() or domain.contains(np.asarray(end))
            ):
                raise ValueError(
                    f"`bounds` of {path!r} must lie in its domain, {domain.rule()}, got {pair!r}."
                )
        out[path] = dataclasses.replace(declaration, domain=Between(low, high))
    return out
