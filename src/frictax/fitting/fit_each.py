"""A fit for each record, as `fit` finds it, the searches of many in one compiled call."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from frictax.measurements import Record
from frictax.mechanism import Mechanism
from frictax.mechanism.forces import AbstractMotion
from frictax.notice import Notice
from frictax.progress import SILENT, Work

from .checks import check_arguments
from .fit import fit
from .fit_data import looked_at, posed, raise_if_failed, usual_method
from .fit_many import ends_of
from .many_search import Length
from .posing import posed_again
from .problem.initial_state import begun_at
from .problem.losses import Squares
from .problem.problem import Problem
from .problem.setup import state_names
from .problem.simulations import FreeRun
from .result.fit_result import FitResult
from .search.methods import LevenbergMarquardt

_ALONE = ("priors", "own")  # of options: what a search of many knows nothing of
MISTAKES = (ValueError, KeyError, TypeError, OSError)  # of records and settings, told in a sentence


def fit_each(
    models: Sequence[Any],
    records: Sequence[Record],
    settings: Mapping[str, Any],
    *,
    length: Length | None = None,
    work: Work = SILENT,
) -> list[FitResult | Exception]:
    """What `fit` of each of `models` to its record finds by the options `settings`, or why it
    cannot.

    Fits of least squares from one start are searched together; `length`: to how many samples a
    record of so many is filled up, so that few programs do for all. Other fits are made one after
    the other.
    """
    if not _together(settings):
        return [_alone(*one, settings) for one in zip(models, records, strict=True)]
    if settings.get("start") is not None:
        return _in_two(models, records, settings, length)
    out: list[FitResult | Exception | None] = []
    ready: list[tuple[int, tuple[Problem, list[Notice]]]] = []
    method = settings.get("method") or usual_method()
    like: dict[Any, tuple[Problem, list[Notice]]] = {}  # problems that fit others with their record
    for i, (model, record) in enumerate(zip(models, records, strict=True)):
        kind = _kind(model, record)
        try:
            if kind in like:
                first, of_machine = like[kind]
                problem, notes = posed_again(first, record)
                asked = problem, [*of_machine, *notes]
            else:
                asked = _posed(model, record, settings, method)
                states = set(state_names(asked[0].setup.machine))
                if not asked[0].delayed and not states & {u.path for u in asked[0].unknowns}:
                    chosen = [n for n in asked[1] if n.code == "left-at-bound"]
                    like[kind] = asked[0], chosen
            ready.append((i, asked))
            out.append(None)
        except MISTAKES as why:
            out.append(why)
    if not ready:
        return [one for one in out if one is not None]
    places = [i for i, _ in ready]
    ends = ends_of(
        [models[i] for i in places],
        [records[i] for i in places],
        [one for _, one in ready],
        method,
        settings.get("level", 0.95),
        work,
        length,
    )
    for k, i in enumerate(places):
        try:
            cost = np.reshape(ends.states[k].cost, 1)
            raise_if_failed(ends.problems[k], cost, {records[i].name: records[i]})
            out[i] = looked_at(ends.found(k))
        except MISTAKES as why:
            out[i] = why
    return [one for one in out if one is not None]


def _in_two(
    models: Sequence[Any], records: Sequence[Record], settings: Mapping[str, Any], length: Any
) -> list[FitResult | Exception]:
    """Fits by the objective `start`, whose ends are the starts of the fits that are asked for."""
    first = {"objective": settings["start"], "start": None, "method": None, "log_scale": ()}
    before = fit_each(models, records, {**settings, **first}, length=length)
    found = [(i, one) for i, one in enumerate(before) if not isinstance(one, Exception)]
    begun = [begun_at(one.model, models[i], one.problem) for i, one in found]
    mine = [records[i] for i, _ in found]
    made = fit_each(begun, mine, {**settings, "start": None}, length=length) if found else []
    out: list[FitResult | Exception] = list(before)
    for (i, _), one in zip(found, made, strict=True):
        out[i] = one
    return out


def _kind(model: Any, record: Record) -> tuple[Any, ...]:
    """The same for records that stand in a problem alike."""
    units = tuple((name, unit.name) for name, unit in record.units.items())
    channels = (*record.inputs, None, *record.outputs, None, *record.sd)
    moved = record.n if _jumps(model, record) else 0
    return id(model), units, channels, record.hold, moved


def _jumps(model: Any, record: Record) -> bool:
    """Whether a body is moved by the record, so that a run has an event for each sample."""
    if not isinstance(model, Mechanism):
        return False
    parts = [name.partition(".")[0] for name in record.inputs]
    return any(name in model.names and isinstance(model[name], AbstractMotion) for name in parts)


def _together(settings: Mapping[str, Any]) -> bool:
    """Whether the searches of these fits go together."""
    method, loss = settings.get("method"), settings.get("loss")
    objective = settings.get("objective")
    start = settings.get("start")
    if start is not None and (objective or FreeRun()).drives() != start.drives():
        return False  # which `fit` refuses
    return (
        not any(settings.get(name) for name in _ALONE)
        and settings.get("starts", 1) == 1
        and not settings.get("rounds")
        and (method is None or isinstance(method, LevenbergMarquardt))
        and (loss is None or loss.rounds == 1)
        and not (objective is not None and objective.fits_starts())
    )


def _posed(
    model: Any, record: Record, settings: Mapping[str, Any], method: Any
) -> tuple[Problem, list[Notice]]:
    records, given = {record.name: record}, settings.get
    objective = given("objective") or FreeRun()
    instruments = given("instruments") or {}
    engine = given("engine")
    check_arguments(model, records, objective, None, (), instruments, engine)
    how = (objective, (), instruments, engine, method, given("loss") or Squares())
    limits = given("bounds") or {}
    others = (limits, given("tied"), given("log_scale") or ())
    return posed(model, records, given("free"), (), *how, *others)


def _alone(model: Any, record: Record, settings: Mapping[str, Any]) -> FitResult | Exception:
    try:
        return fit(model, record, **{"rounds": 0, **settings})
    except MISTAKES as why:
        return why
