"""What a fit is asked: model, data, objective and priors posed as one `Problem`."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from frictax.engine import Adaptive, Engine, OnSamples
from frictax.engine.options import ForwardAlone
from frictax.measurements import Record, Sweep
from frictax.mechanism import Machine
from frictax.notice import Notice
from frictax.parameters import (
    Between,
    Declaration,
    Increasing,
    Parameter,
    Real,
    check,
    check_not_on_edge,
    check_value,
    get,
    parameters,
    replace,
    select,
)
from frictax.text import brief

from .problem.initial_state import named_paths, own_start, shared_start
from .problem.losses import AbstractLoss
from .problem.objectives import AbstractObjective, PreparedRecord, Steady, measured_starts
from .problem.priors import AbstractPrior
from .problem.problem import Problem, Unknown, bounds, mapped, steady_plan, upper_bounds
from .problem.sensors import Instrument, perfect
from .problem.setup import Named, Setup, check_channels, state_names
from .result.notices import far_starts, uncounted, undriven, unfiltered
from .search.methods import LevenbergMarquardt
from .steady_model import check_determined, movable


def pose_sweep(
    model: Any,
    sweep: Sweep,
    free: Any,
    priors: Sequence[AbstractPrior],
    loss: AbstractLoss,
    limits: Any = None,
) -> tuple[Problem, list[Notice]]:
    """The problem of a sweep, and notices of what was not fitted."""
    chosen, unseen = movable(model, sweep, free)
    paths = [p.path for p in chosen]
    problem, notes = pose(
        model, {sweep.name: sweep}, paths, (), Steady(), priors, {}, None, loss, limits
    )
    problem = dataclasses.replace(problem, noise_known=sweep.sigma_known)
    check_determined(problem, sweep)
    return problem, [*unseen, *notes]


def inside(model: Any, limits: Any) -> Any:
    """`model` with values that the data gave brought between the bounds that the user knows."""
    moved = {}
    for path, pair in limits.items() if isinstance(limits, Mapping) else ():
        (low, high), here = _two_numbers(pair), {p.path: p.value for p in parameters(model)}
        if path in here and low < high:
            room = 0.01 * (high - low)
            moved[path] = np.clip(np.asarray(here[path]), low + room, high - room)
    return replace(model, moved)


def _two_numbers(pair) -> tuple[float, float]:
    """A least and a most value, or two that bound nothing."""
    try:
        low, high = (float(x) for x in pair)
    except (TypeError, ValueError):
        return np.nan, np.nan
    return low, high


def entries(problem: Problem, model: Any) -> np.ndarray:
    """What `model` has for each of the problem's numbers, (p,)."""
    return np.concatenate(
        [np.ravel(np.asarray(get(model, u.path), dtype=float)) for u in problem.unknowns]
    )


def shared_limits(limits: Any, own: Any) -> Any:
    """The bounds of a fit that has no values of each record's own."""
    return (
        {path: pair for path, pair in limits.items() if path not in own}
        if isinstance(limits, Mapping)
        else limits
    )


def labelled(data: Any) -> dict[str, Any]:
    """The data by label: a record's name, or a contact's name for a sweep."""
    if isinstance(data, Record | Sweep):
        data = [data]
    if isinstance(data, Mapping):
        wrong = next((label for label in data if not isinstance(label, str)), "")
        if wrong != "":
            raise ValueError(
                f"`fit`: records must be labelled by texts, got {wrong!r}. Write {{'run': record}}."
            )
        return dict(data)
    if isinstance(data, str) or not isinstance(data, Iterable):
        raise ValueError(
            f"`fit` takes a record, a list or a dict of records and sweeps, got {brief(data)}. Read"
            " one with Record.from_csv(...)."
        )
    out: dict[str, Any] = {}
    for item in data:
        if not isinstance(item, Record | Sweep):
            raise ValueError(
                f"`fit` takes records and sweeps, got {brief(item)} among the data. Read one with"
                " Record.from_csv(...)."
            )
        label = item.name if getattr(item, "name", "") else "record"
        if label in out:
            raise ValueError(
                f"`fit`: two records are called {label!r}. Give each a name of its own: Record(...,"
                " name='...')."
            )
        out[label] = item
    return out


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
) -> tuple[Problem, list[Notice]]:
    """The problem, and notices of what was not fitted."""
    _check_priors(priors)
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
    states = state_names(machine)
    shared, each, notes = _chosen(setup, free, own)
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
        _check_delays(instruments, r)
    if objective.in_units_of_outputs():
        _check_deviations(records)
    prepared = tuple(
        objective.prepare(machine, r) if isinstance(r, Record) else steady_plan(machine, label, r)
        for label, r in records.items()
    )
    narrowed = _narrowed([*shared, *each], {} if limits is None else limits)
    unknowns, values, first = [], [], 0
    for i, label in [(None, ""), *enumerate(records)]:
        for p in shared if i is None else each:
            value = (
                shared_start(setup, p, objective, records)
                if i is None
                else own_start(setup, p, own, i, list(records.values())[i])
            )
            declaration = narrowed.get(p.path, p.declaration)
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
    )
    notes += undriven(problem, records) + far_starts(problem, records, states)
    return problem, notes + unfiltered(objective, motions) + uncounted(
        objective, prepared, list(records)
    )


def _check_delays(instruments: Mapping[str, Instrument], record: Record) -> None:
    for name, instrument in instruments.items():
        if abs(float(instrument.delay)) >= record.duration:
            raise ValueError(
                f"`instruments` {name!r} must have a delay shorter than record {record.name!r}"
                f" ({record.duration:g} s), got {float(instrument.delay):g} s. It is in seconds."
            )


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


def _chosen(setup: Setup, free, own) -> tuple[list[Parameter], list[Parameter], list[Notice]]:
    free_paths, own_paths = named_paths(free), named_paths(own)
    for what, paths in (("free", free_paths), ("own", own_paths)):
        wrong = [name for name in paths if not isinstance(name, str)]
        if wrong:
            raise ValueError(
                f"`{what}` must name parameters by their paths, got {wrong[0]!r}. Write"
                f" {what}=['mass.m', 'friction.f_pos']."
            )
    each = select(setup, own_paths) if own_paths else []
    both = [path for path in own_paths if path in free_paths]
    if both:
        raise ValueError(
            f"{both[0]!r} stands in `free` and in `own`: it is shared by all records, or each has"
            " its own. Name it in one."
        )
    mine = {p.path for p in each}
    shared, notes = [p for p in select(setup, free) if p.path not in mine], []
    if free is None:
        edge = [p for p in shared if p.declaration.domain.on_edge(np.asarray(p.value))]
        shared = [p for p in shared if p not in edge]
        notes = [Notice("left-at-bound", p.path, {"value": float(p.value)}) for p in edge]
    if not shared and not each:
        raise ValueError(
            "`fit` has nothing to move: name parameters in `free`, such as free=['mass.m',"
            " 'friction.f_pos']."
        )
    return shared, each, notes


def _narrowed(chosen: Sequence[Parameter], limits) -> dict[str, Declaration]:
    """The declarations of parameters for which the user knows narrower bounds than their
    kind has.
    """
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


def _check_start(p: Parameter, owner: str, value: np.ndarray, declaration: Declaration) -> None:
    name = f"{owner if p.owner == Setup.__name__ else p.owner}.{p.path.rsplit('.', 1)[-1]}"
    check_value(name, value, declaration)
    check_not_on_edge(name, value, declaration.domain)


def _check_deviations(records: Mapping[str, Any]) -> None:
    """Raise `ValueError` where residuals of different units would be added up unweighted."""
    motions = {label: r for label, r in records.items() if isinstance(r, Record)}
    if not motions:
        return
    kinds = {name.rpartition(".")[2] for r in motions.values() for name in r.outputs}
    many = (
        len(kinds) > 1
        or any(len(r.outputs) > 1 for r in motions.values())
        or len(motions) < len(records)
    )
    for label, r in records.items() if many else ():
        name = (
            next((n for n in r.outputs if r.sd.get(n) is None), None)
            if isinstance(r, Record)
            else None
        )
        if name is not None:
            raise ValueError(
                f"Record {label!r} is compared together with other outputs or sweeps, so each needs"
                f" a standard deviation: {name!r} has none. Give sd={{{name!r}: ...}}."
            )
        if isinstance(r, Sweep) and r.sigma is None:
            raise ValueError(
                f"Sweep {label!r} is fitted together with records, so it needs a standard"
                " deviation. Give sigma=... [N]."
            )


def check_arguments(
    model: Any,
    records: Mapping[str, Any],
    objective: Any,
    start: Any,
    priors: Any,
    instruments: Any = None,
    engine: Any = None,
) -> None:
    if not isinstance(model, Machine):
        raise ValueError(
            f"A record is fitted by a `Mechanism` or a hybrid system of your own, got {model!r}. A"
            " law alone is fitted to a `Sweep`."
        )
    if not records or not any(isinstance(r, Record) for r in records.values()):
        raise ValueError(
            "`fit` needs at least one `Record`. Read one with Record.from_csv(path, time=...,"
            " inputs=..., outputs=...)."
        )
    for label, r in records.items():
        if not isinstance(r, Record | Sweep):
            raise ValueError(
                f"`fit` takes records and sweeps, got {r!r} under {label!r}. Read one with"
                " Record.from_csv(...)."
            )
    for name, value in (("objective", objective), ("start", start)):
        if value is not None and (
            not isinstance(value, AbstractObjective) or isinstance(value, Steady)
        ):
            raise ValueError(
                f"`{name}` must be FreeRun(), Windows(), ClosedLoop(...) or InverseDynamics(), got"
                f" {value!r}."
            )
    _check_priors(priors)
    if instruments is not None and (
        not isinstance(instruments, Mapping)
        or not all(isinstance(i, Instrument) for i in instruments.values())
    ):
        raise ValueError(
            f"`instruments` must be a dict of channel -> Instrument(...), got {instruments!r}. Its"
            " keys are like 'inputs.drive'."
        )
    if engine is not None and not isinstance(engine, Engine):
        raise ValueError(
            f"`engine` of a fit must be `OnSamples(...)` or `Adaptive(...)`, got {engine!r}."
        )


def _check_priors(priors) -> None:
    for prior in priors if isinstance(priors, Sequence) else [priors]:
        if not isinstance(prior, AbstractPrior) or not isinstance(priors, Sequence):
            raise ValueError(
                f"`priors` must be a list of Normal(...) or Smooth(...), got {prior!r}."
            )


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
