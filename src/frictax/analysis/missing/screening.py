"""Quick tests that run when a fit is printed: missing forces, motion outside friction tables."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.fitting import FitResult, InverseDynamics, LevenbergMarquardt, Windows
from frictax.fitting.problem.inverse_dynamics import motion
from frictax.fitting.problem.objectives import AbstractSimulation, PreparedRecord
from frictax.fitting.problem.problem import Problem
from frictax.fitting.problem.readings import integral, seen_in
from frictax.fitting.result.step_error import long_steps, with_smooth_inputs
from frictax.fitting.search.run import advance_search, begun
from frictax.laws.table import table_of
from frictax.measurements.units import POSITION_OF, VELOCITY_OF, related_channel, split_channel
from frictax.mechanism import Force, Mechanism, Torque
from frictax.notice import Notice
from frictax.parameters import get
from frictax.trajectory import table_notice

from .candidates import (
    LAW_TERMS,
    OF_FORCE,
    SMOOTH,
    bodies_of,
    catalogue,
    contact_bodies,
    first_columns,
    force_of,
    laws_of,
    motion_of,
    term_name,
)
from .missing import missing
from .score_test import SURE, ScoreTest, p_of_slow_changes
from .sensitivities import Sensitivities, directional_sensitivity, operating_range

# Finite-difference step / rms of the input (or standard deviation of an initial state).
_STEP = 1e-4
_LONG = 1 / 60  # [share of the run] errors of sensors rarely have a longer correlation time

# Function: (changed problem, size of the change) -> (change of the residuals) / size.
Derivative = Callable[[Problem, float], Float[np.ndarray, " n"]]


@dataclasses.dataclass(frozen=True, eq=False)
class _Motion:
    """Motion of a body: position, velocity, time since the middle of the record [s], each (n,)."""

    s: Float[np.ndarray, " n"]
    v: Float[np.ndarray, " n"]
    t: Float[np.ndarray, " n"]


def screen_missing_force(found: FitResult) -> tuple[Notice, ...]:
    """Return a notice if the fitted machine lacks a force, otherwise a notice if the residuals of a
    run are autocorrelated over a long time. If both tests pass, return an empty tuple.

    The tests are those of `Missing`, without a refit, for forces that can be added to a force or
    torque input. If a force is significant, `missing(found)` tests more terms and refits some. The
    notice names the first term of its table, or is `residuals-unexplained` for an empty table.

    A small force that depends on the motion acts like a given force over time that has the same
    values along the fitted motion. Therefore each force is added to the input of the record. About
    15 simulations by the compiled program of the fit are enough. For a machine without a driving
    force, each term is added to the model and simulated.
    """
    problem, has_windows = found.problem, isinstance(found.problem.objective, Windows)
    if (
        not isinstance(problem.objective, AbstractSimulation)
        or not isinstance(found.method, LevenbergMarquardt)
        or problem.loss.rounds > 1
        or len(_records(problem)) < len(problem.prepared)
    ):
        return ()
    r = found.full_residuals
    weighted = [np.sum((p.weight * np.asarray(p.measured)) ** 2) for p in problem.prepared]
    # Residuals below this limit are rounding errors.
    if float(np.sum(r**2)) <= 1e-18 * sum(map(float, weighted)):
        return ()

    def derivative_for(changed: Problem, by: float) -> Float[np.ndarray, " n"]:
        """Return (residuals of the problem `changed` - residuals of the fit)/`by`."""
        begin = begun(changed, found.z)
        end = advance_search(changed, found.method, begin, 1, found.noise_scale, found.dof)
        return (np.asarray(end.residuals)[: found.n] - r) / by

    # The column of a parameter at a bound is 0, because the parameter cannot follow a force.
    fitted = (found.full_jacobian * found.active)[: found.n, found.shown]
    seen = Sensitivities(r, fitted, np.zeros((found.n, 0)), *_starts(found, derivative_for))
    test = ScoreTest(found, has_windows)
    tests = test.at(seen)
    is_white = tests.is_white
    if is_white:
        counted = test.counted
        if has_windows or p_of_slow_changes(r[counted], fitted[counted]) > 1e-3:
            return ()  # The residuals do not show a missing term.
    # Long time steps have their own notice; the error of long steps is not a missing term.
    if long_steps(found):
        return ()
    share, tried = test.correlated_share(tests.left), _forces_to_try(found, derivative_for)
    if tried:
        columns = np.column_stack(list(tried.values()))
        tests = test.at(dataclasses.replace(seen, tried=columns))
        rows = [tests.quick_test([k]) for k in range(len(tried))]
        for k, row in enumerate(rows):
            # Only a candidate with a significant score can pass the full test.
            if row.p_values[1] < test.limit * SURE:
                rows[k] = tests.full_test([k])
        if np.any(test.combine(rows, np.ones(len(rows)))[0] < SURE):
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


def _forces_to_try(
    found: FitResult, derivative_for: Derivative
) -> dict[str, Float[np.ndarray, " n"]]:
    """Return a dict: name of a force -> derivative of the residuals with respect to its size."""
    problem, machine, x = found.problem, found.problem.setup.machine, np.asarray(found.x)
    # Drives are the inputs that are forces or torques and that all records contain.
    prepared = _records(problem)
    drives = [n for n in prepared[0].inputs if all(n in p.inputs for p in prepared)]
    if isinstance(machine, Mechanism):
        kinds = {n: machine[n.partition(".")[0]] for n in drives}
        drives = [n for n in drives if isinstance(kinds[n], Force | Torque)]
    elif not bodies_of(machine):
        drives = []
    tried = dict(pair for drive in drives for pair in _force_columns(found, drive, derivative_for))
    # Without a drive, each candidate term is added to the model and simulated.
    all_terms = () if drives else catalogue(found)
    terms = tuple(one for one in all_terms if one.kind in ("law", "force"))
    if terms:
        ranges, _ = operating_range(problem, x)
        size = sum(one.size for one in terms)
        for one, at in zip(terms, first_columns(terms), strict=True):
            way = np.zeros(size)
            way[at : at + one.size] = 1.0
            tried[one.name] = directional_sensitivity(problem, terms, x, way, ranges)
    if found.bends is not None:
        tried[SMOOTH] = derivative_for(with_smooth_inputs(found.problem, found.records), 1.0)
    return {name: column for name, column in tried.items() if np.all(np.isfinite(column))}


def _force_columns(
    found: FitResult, drive: str, derivative_for: Derivative
) -> Iterator[tuple[str, Float[np.ndarray, " n"]]]:
    """Yield the name of each force tried at the input `drive`, and the residuals' derivative."""
    u = [np.asarray(p.inputs[drive]) for p in _records(found.problem)]
    for name, forces in _forces(found, drive):
        size, usual = (np.sqrt(np.mean(np.concatenate(x) ** 2)) for x in (forces, u))
        if size > 0 and usual > 0:
            by = _STEP * float(usual / size)
            more = [a + by * b for a, b in zip(u, forces, strict=True)]
            at = lambda q: [p.inputs[drive] for p in q.prepared]  # noqa: E731
            yield name, derivative_for(eqx.tree_at(at, found.problem, more), by)


def _records(problem: Problem) -> list[PreparedRecord]:
    return [p for p in problem.prepared if isinstance(p, PreparedRecord)]


def _starts(found: FitResult, derivative_for: Derivative) -> tuple[np.ndarray, np.ndarray]:
    """Return each residual's derivatives by its window's initial states, and its window (or -1)."""
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
        if objective.free_starts:  # The Jacobian has a column for each window's initial state.
            mine = [u for u in problem.unknowns if u.path == f"windows.{name}"]
            places = np.concatenate([np.arange(u.first, u.first + u.size) for u in mine])
            columns.append(found.full_jacobian[: found.n, places].sum(axis=1))
        else:
            known = [np.asarray(p.known[name]) for p in _records(problem)]
            by = _STEP * max(float(np.std(np.concatenate(known))), 1e-12)
            at = lambda q, name=name: [p.known[name] for p in q.prepared]  # noqa: E731
            columns.append(derivative_for(eqx.tree_at(at, problem, [x + by for x in known]), by))
    return np.nan_to_num(np.column_stack(columns)), np.concatenate(window)


def _forces(found: FitResult, drive: str) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Yield each force to try at the input `drive`: its name, and its values in each record."""
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
                yield term_name(term, body), forces


def motions_of(found: FitResult, i: int) -> dict[str, _Motion]:
    """Return a dict: body -> its motion in record i, measured for windows, otherwise simulated. The
    gain, the offset and the drift of each sensor are removed."""
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
    outputs = problem.setup_at(jnp.asarray(found.x), i).outputs
    for name, x in channels.items():
        of, order = seen_in(name, prepared.names)
        if outputs.has(of):
            channels[name] = np.asarray(outputs.at(of).invert(t, x, t[0], order))
    for name in channels:
        body, _ = split_channel(name)
        s = related_channel(name, POSITION_OF) or name
        if (v := related_channel(s, VELOCITY_OF)) is None:
            continue
        s = channels[s] if s in channels else integral(t, channels[v])
        v = channels[v] if v in channels else np.gradient(s, t)
        v = np.where(np.abs(v) > 1e-6 * np.max(np.abs(v)), v, 0.0)
        key = body if isinstance(machine, Mechanism) else next(iter(bodies_of(machine)))
        out[key] = _Motion(s, v, t - 0.5 * (t[0] + t[-1]))
    return out


def check_table_range(found: FitResult) -> tuple[Notice, ...]:
    """Return a notice for each friction table whose range the motion exceeds by over a tenth."""
    machine, problem, out = found.model, found.problem, []
    for path, turns in laws_of(machine).items():
        here, there = contact_bodies(machine, path)
        ends, each = {body for body in (here, there) if body}, []
        for i, prepared in enumerate(problem.prepared):  # Find the sliding speeds in the records.
            if not isinstance(prepared, PreparedRecord):
                continue
            seen: dict[str | None, Any] = {}
            if isinstance(problem.objective, InverseDynamics):
                rates = {body: motion_of(machine, body)[1] for body in ends}
                known = motion(problem.setup_at(jnp.asarray(found.x), i), prepared, problem.delayed)
                seen |= {b: known[n] for b, n in rates.items() if n in known}
            elif isinstance(problem.objective, AbstractSimulation):
                seen |= {body: own.v for body, own in motions_of(found, i).items()}
            if here in seen and ends <= seen.keys():
                v = np.asarray(seen[here]) - np.asarray(seen.get(there, 0.0))
                each.append(v[np.isfinite(v)])
        if not each:
            continue
        v, name = np.concatenate(each), path.rpartition(".")[0]
        backward = path.replace("_pos", "_neg")
        own = getattr(get(machine, name), backward.rpartition(".")[2], None)
        for at, speed in ((path, v), (path if own is None else backward, -v)):
            law = getattr(get(machine, name), at.rpartition(".")[2], None)
            if table_of(law) is None or any(n.subject == at for n in out):
                continue
            unit = "rad/s" if turns else "m/s"
            slowest, fastest = float(np.min(np.abs(v))), max(float(np.max(speed)), 0.0)
            notice = table_notice(at, law, slowest, fastest, unit)
            out += [] if notice is None else [notice]
    return tuple(out)
