"""Screening for a force that a fit lacks, which decides whether a print runs `missing`."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float

from frictax.fitting import FitResult, LevenbergMarquardt, Windows
from frictax.fitting.problem.objectives import AbstractSimulation, PreparedRecord
from frictax.fitting.problem.problem import Problem
from frictax.fitting.problem.readings import integral
from frictax.fitting.result.step_error import long_steps, with_smooth_inputs
from frictax.fitting.search.run import advanced, begun
from frictax.measurements.units import POSITION_OF, VELOCITY_OF, related_channel, split_channel
from frictax.mechanism import Force, Mechanism, Torque
from frictax.notice import Notice

from .candidates import SMOOTH, bodies, catalogue, named, starts_of
from .chances import chance_of_waver
from .columns import Columns, column_of, ranges_of
from .missing import missing
from .terms import LAW_TERMS, OF_FORCE, force_of
from .verdict import SURE, Judge

_STEP = 1e-4  # of the drive: the size of a force that is tried
_ROUNDING = 1e-9  # of the measured values: what is left of records without noise
_AT_REST = 1e-6  # of the highest speed
_WAVERS = 0.001  # chance
_LONG = 1 / 60  # of a run: a memory that errors of sensors seldom have

# Derivatives of the residuals by what was changed by so much.
Moved = Callable[[Problem, float], Float[np.ndarray, " n"]]


@dataclasses.dataclass(frozen=True, eq=False)
class _Motion:
    """Of a body over a record: position, speed, and the time from the middle, (n,) each."""

    s: Float[np.ndarray, " n"]
    v: Float[np.ndarray, " n"]
    t: Float[np.ndarray, " n"]


def first_look(found: FitResult) -> tuple[Notice, ...]:
    """Return a notice of the term that `missing` names first, where screening finds a force.
    Otherwise return one where a run's residuals are autocorrelated over a long time.

    Screening applies the tests of `Missing`, without a refit, to forces that a drive could add.
    Where they pass, `missing` decides. If it names nothing, the notice is `residuals-unexplained`.

    A force that follows the motion does to first order what the same force does along the motion
    without it. So it is added to the record's input, and simulated by the program that was compiled
    for the fit: some 15 simulations, and nothing to compile. Of machines that no force drives,
    which are left alone or moved by what holds them, the motion is simulated with the terms
    themselves. `Missing` tries more, also where no drive acts, and refits.
    """
    problem, has_windows = found.problem, isinstance(found.problem.objective, Windows)
    if (
        not isinstance(problem.objective, AbstractSimulation)
        or not isinstance(found.method, LevenbergMarquardt)
        or problem.loss.rounds > 1
        or len(_records(problem)) < len(problem.prepared)
        or _is_exact(found)
    ):
        return ()
    r, shown = found.full_residuals, found.shown

    def moved(changed: Problem, by: float) -> np.ndarray:
        begin = begun(changed, found.z)
        end = advanced(changed, found.method, begin, 1, found.noise_scale, found.dof)
        return (np.asarray(end.residuals)[: found.n] - r) / by

    fitted = found.full_jacobian[: found.n, shown]
    seen = Columns(r, fitted, np.zeros((found.n, 0)), *_starts(found, moved))
    judge = Judge(found, has_windows)
    verdicts = judge.at(seen)
    is_white = verdicts.is_white
    if is_white:
        counted = judge.counted
        if has_windows or chance_of_waver(r[counted], fitted[counted]) > _WAVERS:
            return ()
    if long_steps(found):  # which is said, and leaves what no term of the machine does
        return ()
    drives = _drives(problem)
    tried = dict(pair for drive in drives for pair in _tried(found, drive, moved))
    if not drives:
        tried = dict(_without_drive(found))
    if found.bends is not None:
        tried[SMOOTH] = moved(with_smooth_inputs(problem, found.records), 1.0)
    tried = {name: column for name, column in tried.items() if np.all(np.isfinite(column))}
    share = verdicts.share_remembered()
    if tried:
        verdicts = judge.at(dataclasses.replace(seen, tried=np.column_stack(list(tried.values()))))
    rows = [verdicts.glimpse([k]) for k in range(len(tried))]
    for k, row in enumerate(rows):
        if row.chances[1] < judge.limit * SURE:  # else the other tests cannot make it sure
            rows[k] = verdicts.judged([k])
    chances = judge.chances(rows, np.ones(len(rows)))[0] if rows else np.ones(0)
    if np.any(chances < SURE):
        table = missing(found)
        if not table.found:
            return (Notice("residuals-unexplained"),)
        term = table.found[0]
        percent = 100 * (1 - (term.misfit / table.misfit) ** 2)
        numbers = {"percent": percent, "chance": max(term.chance, 1e-9)}
        return (Notice("term-missing", term.name, numbers),)
    if has_windows or share < _LONG:
        return ()
    allowed = (
        "The intervals are those of white residuals."
        if is_white
        else "The intervals allow for such an error."
    )
    return (Notice("remembers", "", {"percent": 100 * share, "allowed": allowed}),)


def _tried(
    found: FitResult, drive: str, moved: Moved
) -> Iterator[tuple[str, Float[np.ndarray, " n"]]]:
    """The derivatives of the residuals by each force that is tried where `drive` acts."""
    u = [np.asarray(p.inputs[drive]) for p in _records(found.problem)]
    for name, forces in _forces(found, drive):
        size, usual = (np.sqrt(np.mean(np.concatenate(x) ** 2)) for x in (forces, u))
        if size > 0 and usual > 0:
            by = _STEP * float(usual / size)
            more = [a + by * b for a, b in zip(u, forces, strict=True)]
            yield name, moved(_driven(found.problem, drive, more), by)


def _without_drive(found: FitResult) -> Iterator[tuple[str, Float[np.ndarray, " n"]]]:
    """The derivatives of the residuals by each force of friction and each on a body."""
    problem, x = found.problem, np.asarray(found.x)
    tried = tuple(one for one in catalogue(found) if one.kind in ("law", "force"))
    if not tried:
        return
    ranges, _ = ranges_of(problem, x)
    size = sum(one.size for one in tried)
    for one, at in zip(tried, starts_of(tried), strict=True):
        way = np.zeros(size)
        way[at : at + one.size] = 1.0
        yield one.name, column_of(problem, tried, x, way, ranges)


def _is_exact(found: FitResult) -> bool:
    """Whether the fit leaves nothing but rounding."""
    prepared = found.problem.prepared
    size = sum(float(np.sum((p.weight * np.asarray(p.measured)) ** 2)) for p in prepared)
    return float(np.sum(found.full_residuals**2)) <= _ROUNDING**2 * size


def _drives(problem: Problem) -> list[str]:
    """The inputs that are forces or torques, which all records have."""
    machine, prepared = problem.setup.machine, _records(problem)
    names = [n for n in prepared[0].inputs if all(n in p.inputs for p in prepared)]
    if not isinstance(machine, Mechanism):
        return names if bodies(machine) else []
    return [n for n in names if isinstance(machine[n.partition(".")[0]], Force | Torque)]


def _records(problem: Problem) -> list[PreparedRecord]:
    return [p for p in problem.prepared if isinstance(p, PreparedRecord)]


def _driven(problem: Problem, drive: str, inputs: list[np.ndarray]) -> Problem:
    return eqx.tree_at(lambda q: [p.inputs[drive] for p in q.prepared], problem, inputs)


def _starts(found: FitResult, moved: Moved) -> tuple[np.ndarray, np.ndarray]:
    """The derivatives of residuals by the states that windows start from, each by those of its own
    window, and the number of that, -1 where there are none.
    """
    problem, objective = found.problem, found.problem.objective
    shapes = [np.shape(p.weight) for p in problem.prepared]
    if not isinstance(objective, Windows):
        return np.zeros((found.n, 0)), np.full(found.n, -1)
    windows = np.cumsum([0, *(shape[0] for shape in shapes)])
    window = [
        first + np.repeat(np.arange(shape[0]), int(np.prod(shape[1:])))
        for first, shape in zip(windows, shapes, strict=False)
    ]
    columns = []
    for name in _records(problem)[0].start:
        if objective.free_starts:  # each window has a column of its own
            mine = [u for u in problem.unknowns if u.path == f"windows.{name}"]
            places = np.concatenate([np.arange(u.first, u.first + u.size) for u in mine])
            columns.append(found.full_jacobian[: found.n, places].sum(axis=1))
        else:
            known = [np.asarray(p.known[name]) for p in _records(problem)]
            by = _STEP * max(float(np.std(np.concatenate(known))), 1e-12)
            columns.append(moved(_known(problem, name, [x + by for x in known]), by))
    return np.nan_to_num(np.column_stack(columns)), np.concatenate(window)


def _known(problem: Problem, name: str, values: list[np.ndarray]) -> Problem:
    return eqx.tree_at(lambda q: [p.known[name] for p in q.prepared], problem, values)


def _forces(found: FitResult, drive: str) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Each force that is tried where `drive` acts, by its name: over each record."""
    prepared, machine = _records(found.problem), found.problem.setup.machine
    yield (
        f"delay of input {drive}",
        [-np.gradient(np.asarray(p.inputs[drive]), p.t) for p in prepared],
    )
    motions = [motions_of(found, i) for i in range(len(prepared))]
    names = [b for b in motions[0] if all(b in m for m in motions)]
    if isinstance(machine, Mechanism):
        driven = machine[drive.partition(".")[0]].body.partition(".")[0]
        names = [driven] if driven in names else names
    is_viscous = any(u.path.endswith("F_prop") for u in found.problem.unknowns)
    for body in names:
        mine = [m[body] for m in motions]
        s = np.concatenate([m.s for m in mine])
        centre, vmax = 0.5 * (s.min() + s.max()), max(float(np.max(np.abs(m.v))) for m in mine)
        for term in (*LAW_TERMS, *OF_FORCE):
            if vmax > 0 and not (is_viscous and term == "viscous"):
                forces = [force_of(term, np, m.t, m.s - centre, m.v, vmax) for m in mine]
                yield named(term, body), forces


def motions_of(found: FitResult, i: int) -> dict[str, _Motion]:
    """Of each body that record i shows: as simulated, or on windows as read from the record."""
    problem, machine = found.problem, found.problem.setup.machine
    prepared: Any = problem.prepared[i]
    if prepared.rows is not None:
        channels = {n: np.asarray(x) for n, x in prepared.known.items()}
    else:
        first = sum(np.size(p.weight) for p in problem.prepared[:i])
        w = np.asarray(prepared.weight)
        r = found.full_residuals[first : first + w.size].reshape(w.shape)
        y = prepared.measured + np.divide(r, w, out=np.zeros_like(w), where=w > 0)
        channels = {n: y[:, k] for k, n in enumerate(prepared.names)}
    t, out = np.asarray(prepared.t), {}
    for name in channels:
        body, _ = split_channel(name)
        s = related_channel(name, POSITION_OF) or name
        if (v := related_channel(s, VELOCITY_OF)) is None:
            continue
        s = channels[s] if s in channels else integral(t, channels[v])
        v = channels[v] if v in channels else np.gradient(s, t)
        v = np.where(np.abs(v) > _AT_REST * np.max(np.abs(v)), v, 0.0)
        key = body if isinstance(machine, Mechanism) else next(iter(bodies(machine)))
        out[key] = _Motion(s, v, t - 0.5 * (t[0] + t[-1]))
    return out
