"""What a fit is asked: model, data, objective and priors posed as one `Problem`."""

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
    Declaration,
    Parameter,
    Real,
    check,
    check_not_on_edge,
    check_value,
    get,
    on_edge_unasked,
    parameters,
    select,
)

from .checks import check_delays, check_deviations, check_priors
from .limits import narrowed, on_log_scale
from .problem.initial_state import named_paths, own_start, shared_start
from .problem.inverse_dynamics import InverseDynamics
from .problem.losses import AbstractLoss
from .problem.objectives import AbstractObjective, PreparedRecord, Steady
from .problem.priors import AbstractPrior
from .problem.problem import (
    PreparedSweep,
    Problem,
    Unknown,
    bounds,
    mapped,
    steady_plan,
    upper_bounds,
)
from .problem.readings import check_no_ticks, divide_gaps, measured_starts
from .problem.sensors import Instrument, perfect
from .problem.setup import Named, Setup, check_channels, state_names
from .problem.ties import Tie, allowed, followed, ties_of
from .result.notices import far_starts, only_a_start, uncounted, undriven, unfiltered
from .result.units import unit_of
from .search.methods import LevenbergMarquardt
from .steady_model import check_determined, movable


def pose_sweep(
    model: Any,
    sweep: Sweep,
    free: Any,
    priors: Sequence[AbstractPrior],
    loss: AbstractLoss,
    limits: Any = None,
    tied: Any = None,
    log_scale: Any = (),
) -> tuple[Problem, list[Notice]]:
    """The problem of a sweep, and notices of what was not fitted."""
    records = {sweep.name: sweep}
    alone = Setup(model, Named.of({}), Named.of({}))
    ties = ties_of(alone, tied, {"free": named_paths(free)}, unit_of(records, model))
    model = followed(alone, ties).machine
    chosen, unseen = movable(model, sweep, free, {tie.path for tie in ties})
    paths = [p.path for p in chosen]
    how = (Steady(), priors, {}, None, loss, limits, tied, log_scale)
    problem, notes = pose(model, records, paths, (), *how)
    problem = dataclasses.replace(problem, noise_known=sweep.sigma_known)
    check_determined(problem, sweep)
    return problem, [*unseen, *notes]


def entries(problem: Problem, model: Any) -> np.ndarray:
    """What `model` has for each of the problem's numbers, (p,)."""
    return np.concatenate(
        [np.ravel(np.asarray(get(model, u.path), dtype=float)) for u in problem.unknowns]
    )


def pose(
    model: Any,
    records: Mapping[str, Any],
    free: Any,
    own: Any,
    objective: AbstractObjective,
    priors: Sequence[AbstractPrior],
    instruments: Mapping[str, Instrument],
    engine: Any,
    loss: AbstractLoss,
    limits: Any = None,
    tied: Any = None,
    log_scale: Any = (),
) -> tuple[Problem, list[Notice]]:
    """The problem, and notices of what was not fitted."""
    check_priors(priors)
    machine = _wide(objective.machine(model))
    check(machine)
    motions = [r for r in records.values() if isinstance(r, Record)]
    inputs = list(dict.fromkeys(name for r in motions for name in r.inputs))
    outputs = list(dict.fromkeys(name for r in motions for name in r.outputs))
    unknown = [
        name
        for name in instruments
        if name not in {f"inputs.{n}" for n in inputs} | {f"outputs.{n}" for n in outputs}
    ]
    if unknown:
        channels = ", ".join([f"inputs.{n}" for n in inputs] + [f"outputs.{n}" for n in outputs])
        raise ValueError(
            f"`instruments` names {unknown[0]!r}, which no record has. Channels are: {channels}."
        )
    setup = Setup(
        machine, sensors("inputs", inputs, instruments), sensors("outputs", outputs, instruments)
    )
    named = {"free": named_paths(free), "own": named_paths(own)}
    ties = ties_of(setup, tied, named, unit_of(records, machine))
    if ties:
        setup = followed(setup, ties)
        machine = setup.machine
        check(machine)
    states = state_names(machine)
    shared, each, notes = _chosen(setup, free, own, {tie.path for tie in ties})
    for path, values in own.items() if isinstance(own, Mapping) else ():
        if values is not None and not isinstance(values, Sequence | np.ndarray | jax.Array):
            raise ValueError(
                f"`own` must give a start for each record, got {values!r} for {path!r}. Write"
                f" [{values!r}, ...]."
            )
        if values is not None and len(values) != len(records):
            raise ValueError(
                f"`own` must give a start for each of the {len(records)} records, got {len(values)}"
                f" for {path!r}. Give one for each."
            )
    delayed = frozenset(
        p.path.removesuffix(".delay") for p in (*shared, *each) if p.path.endswith(".delay")
    ) | frozenset(name for name, instrument in instruments.items() if float(instrument.delay) != 0)
    for r in motions:
        check_channels(machine, r, states)
        check_delays(instruments, r)
    if objective.in_units_of_outputs():
        check_deviations(records)
    for r in motions if getattr(objective, "measured_start", False) else ():
        check_no_ticks(r, f"{type(objective).__name__}(measured_start=True)")
    prepared = tuple(divide_gaps(p, engine) for p in _prepared(objective, machine, records))
    if isinstance(objective, InverseDynamics) and objective.at_samples:
        notes.append(Notice("forces-at-samples", "", {"why": "`at_samples` is set"}))
    elif isinstance(objective, InverseDynamics):
        late = any(name.startswith("outputs.") for name in delayed)
        if late or any(isinstance(p, PreparedRecord) and p.weak is None for p in prepared):
            notes.append(only_a_start(machine, motions, late))
            objective = dataclasses.replace(objective, at_samples=True)
            prepared = _prepared(objective, machine, records)
    _check_untied({} if limits is None else limits, ties)
    declared = narrowed([*shared, *each], {} if limits is None else limits)
    declared = on_log_scale([*shared, *each], log_scale, declared)
    declared = _left_by(ties, setup, [*shared, *each], declared)
    unknowns, values, first = [], [], 0
    for i, label in [(None, ""), *enumerate(records)]:
        for p in shared if i is None else each:
            value = (
                shared_start(setup, p, objective, records)
                if i is None
                else own_start(setup, p, own, i, list(records.values())[i])
            )
            declaration = declared.get(p.path, p.declaration)
            _check_start(p, type(machine).__name__, value, declaration)
            unknowns.append(Unknown(p.path, i, label, declaration, np.shape(p.value), first))
            values.append(np.ravel(value))
            first += values[-1].size
    for i, (label, one) in enumerate(zip(records, prepared, strict=True)):
        for name, value in (
            measured_starts(setup, one, delayed).items()
            if objective.fits_starts() and isinstance(one, PreparedRecord)
            else ()
        ):
            unknowns.append(
                Unknown(f"windows.{name}", i, label, Declaration(Real()), value.shape, first)
            )
            values.append(np.asarray(value))
            first += value.size
    for prior in priors:
        if prior.path not in {u.path for u in unknowns if u.record is None}:
            raise ValueError(
                f"`priors` names {prior.path!r}, which is not fitted. Free are:"
                f" {', '.join(u.path for u in unknowns)}."
            )
    prepared = _with_fixed_offsets(prepared, [u.path for u in unknowns])
    x0 = np.concatenate(values)
    lower = bounds(unknowns)
    scaled = np.isfinite(lower) & ~np.isfinite(upper_bounds(unknowns))
    origin = np.where(scaled, lower, 0.0)
    size = np.where(scaled, x0 - origin, 1.0)
    base = np.asarray(mapped(unknowns, origin + (x0 - origin) / size, "to_unconstrained"))
    problem = Problem(
        setup,
        prepared,
        tuple(priors),
        objective,
        engine,
        loss,
        x0,
        base,
        origin,
        size,
        tuple(unknowns),
        delayed,
        ties=ties,
    )
    return problem, notes + _of_records(problem, records, states)


def _prepared(
    objective: AbstractObjective, machine: Any, records: Mapping[str, Any]
) -> tuple[PreparedRecord | PreparedSweep, ...]:
    return tuple(
        objective.prepare(machine, r) if isinstance(r, Record) else steady_plan(machine, label, r)
        for label, r in records.items()
    )


def _with_fixed_offsets(prepared: Sequence[Any], moved: Sequence[str]) -> tuple[Any, ...]:
    """`prepared`, with offsets only of outputs whose starts and offsets the fit does not move."""
    out = []
    for one in prepared:
        floating = tuple(
            name
            for name in getattr(one, "floating", ())
            if not {name, f"outputs.{name}.offset"} & set(moved)
        )
        has_less = isinstance(one, PreparedRecord) and floating != one.floating
        out.append(dataclasses.replace(one, floating=floating) if has_less else one)
    return tuple(out)


def posed_again(problem: Problem, record: Record) -> tuple[Problem, list[Notice]]:
    """The problem of one record with another in its place, whose channels are the same, in the same
    units; and notices of this record. No state of the machine may be fitted: it starts where its
    record does.
    """
    check_delays({}, record)
    again = divide_gaps(problem.objective.prepare(problem.setup.machine, record), problem.engine)
    problem, records = dataclasses.replace(problem, prepared=(again,)), {record.name: record}
    return problem, _of_records(problem, records, state_names(problem.setup.machine))


def _of_records(
    problem: Problem, records: Mapping[str, Any], states: tuple[str, ...]
) -> list[Notice]:
    """Notices of records as they stand in their problem."""
    objective = problem.objective
    motions = [r for r in records.values() if isinstance(r, Record)]
    return [
        *undriven(problem, records),
        *far_starts(problem, records, states),
        *unfiltered(objective, motions),
        *uncounted(objective, problem.prepared, list(records)),
    ]


def pose_record(
    machine: Any,
    record: Record,
    objective: AbstractObjective,
    instruments: Mapping[str, Instrument] | None,
    engine: Any,
) -> tuple[Setup, PreparedRecord, frozenset[str]]:
    """A machine as it stands with the instruments of one record, this record prepared, and the
    channels that are delayed.
    """
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
        _wide(Named.of({n: given.get(n, perfect()) for n in channels}))
        if given
        else _perfect_sensors(tuple(channels))
    )


@functools.lru_cache(maxsize=64)
def _perfect_sensors(channels: tuple[str, ...]) -> Named:
    with jax.ensure_compile_time_eval():  # what is kept must be no tracer of who asks first
        return _wide(Named.of(dict.fromkeys(channels, perfect())))


def _check_untied(limits: Any, ties: Sequence[Tie]) -> None:
    """Raise `ValueError` for a bound, which moves nothing, of what follows from others."""
    for tie in ties:
        if isinstance(limits, Mapping) and tie.path in limits:
            remedy = f"Bound {tie.source!r}" if tie.source else "Bound what it is made of"
            raise ValueError(
                f"`bounds` names {tie.path!r}, which is tied ({tie.says}). {remedy} instead."
            )


def _left_by(
    ties: Sequence[Tie],
    setup: Setup,
    chosen: Sequence[Parameter],
    declared: dict[str, Declaration],
) -> dict[str, Declaration]:
    """The declarations of what is free, narrowed to where what follows stays in its domain."""
    if not ties:
        return declared
    of = {p.path: p.declaration for p in parameters(setup)} | declared
    out = dict(declared)
    for p in chosen:
        domain = allowed(ties, p.path, of[p.path].domain, lambda path: of[path].domain)
        if domain != of[p.path].domain:
            out[p.path] = dataclasses.replace(of[p.path], domain=domain)
    return out


def _chosen(
    setup: Setup, free, own, tied: set[str]
) -> tuple[list[Parameter], list[Parameter], list[Notice]]:
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
            f"{both[0]!r} stands in `free` and in `own`: it is shared by all records, or each has"
            " its own. Name it in one."
        )
    mine = {p.path for p in each}
    mine = mine.union(tied)
    shared = [p for p in select(setup, free) if p.path not in mine]
    edge = on_edge_unasked([*shared, *each], [*free_paths, *own_paths])
    shared, each = ([p for p in some if p not in edge] for some in (shared, each))
    notes = [Notice("left-at-bound", p.path, {"value": float(p.value)}) for p in edge]
    if edge and not shared and not each:
        check_not_on_edge(edge[0].path, edge[0].value, edge[0].declaration.domain)
    if not shared and not each:
        raise ValueError(
            "`fit` has nothing to move: name parameters in `free`, such as free=['mass.m',"
            " 'friction.f_pos']."
        )
    return shared, each, notes


def _check_start(p: Parameter, owner: str, value: np.ndarray, declaration: Declaration) -> None:
    name = f"{owner if p.owner == Setup.__name__ else p.owner}.{p.path.rsplit('.', 1)[-1]}"
    check_value(name, value, declaration)
    check_not_on_edge(name, value, declaration.domain)


def fit_engine(engine: Any, method: Any) -> Any:
    """Forward mode alone where nobody asks for the reverse: value and Jacobian then come from one
    pass.
    """
    alone = isinstance(method, LevenbergMarquardt)
    if engine is None:
        return _usual_engine(alone)
    if isinstance(engine, Adaptive):
        return engine
    return dataclasses.replace(engine, adjoint=ForwardAlone() if alone else None, finer=())


@functools.cache
def _usual_engine(alone: bool) -> OnSamples:
    return OnSamples(adjoint=ForwardAlone() if alone else None)  # pyright: ignore


def _wide(model) -> Any:
    """`model` in 64 bits."""
    narrow = lambda a: eqx.is_inexact_array(a) and a.dtype != np.float64  # noqa: E731
    if not any(map(narrow, jax.tree.leaves(model))):
        return model
    return jax.tree.map(lambda a: a.astype(np.float64) if narrow(a) else a, model)
