"""The derivatives of a fit's residuals by the coefficients of all candidates, at any values."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.fitting.problem.inverse_dynamics import InverseDynamics
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.fitting.problem.problem import PreparedSweep, Problem
from frictax.fitting.problem.readings import measured_starts
from frictax.fitting.problem.sensors import perfect
from frictax.fitting.problem.setup import Named, Setup
from frictax.fitting.problem.simulations import Windows
from frictax.fitting.result.step_error import bend_of
from frictax.programs import cached_jit

from .candidates import (
    Candidate,
    Ranges,
    augmented,
    between,
    bodies,
    delayed,
    drives_of,
    laws,
    motion_of,
    starts_of,
)


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """Weighted residuals (n,), predicted minus measured, and their derivatives: by the fitted
    numbers (n, p), by the coefficients of candidates (n, k), and by the starts of windows (n, s),
    each row's by those of its own; `window` (n,): its number, or -1 where there is none.
    """

    residuals: Float[np.ndarray, " n"]
    fitted: Float[np.ndarray, "n p"]
    tried: Float[np.ndarray, "n k"]
    starts: Float[np.ndarray, "n s"]
    window: np.ndarray


def columns(
    problem: Problem,
    tried: tuple[Candidate, ...],
    x: Float[np.ndarray, " p"],
    c: Float[np.ndarray, " k"],
    moved: Mapping[int, np.ndarray],
    periods: Mapping[str, float],
    ranges: Ranges,
) -> Columns:
    """At the fitted values `x`, the coefficients `c`, and the starts of the windows of each record
    `moved` by so much (w, s).
    """
    shared = np.flatnonzero([not u.hidden for u in problem.unknowns for _ in u.names])
    parts, windows = [], 0
    for i, prepared in enumerate(problem.prepared):
        r, j = _of_record(
            problem,
            tried,
            jnp.asarray(x),
            jnp.asarray(c),
            moved.get(i),
            {b: jnp.asarray(v) for b, v in periods.items()},
            ranges,
            i,
        )
        p, k = len(shared), len(c)
        j = np.asarray(j)
        count = _windows(problem, i)
        each = np.shape(prepared.weight)
        window = np.full(each, -1)
        if count:
            window = np.broadcast_to(
                windows + np.arange(each[0]).reshape((-1,) + (1,) * (len(each) - 1)), each
            )
            windows += each[0]
        parts.append((np.asarray(r), j[:, :p], j[:, p : p + k], j[:, p + k :], np.ravel(window)))
    return Columns(*(np.concatenate(a) for a in zip(*parts, strict=True)))


def states_of_windows(problem: Problem) -> int:
    """How many states a window starts from."""
    return max((_windows(problem, i) for i in range(len(problem.prepared))), default=0)


def _windows(problem: Problem, i: int) -> int:
    prepared = problem.prepared[i]
    if isinstance(problem.objective, Windows) and isinstance(prepared, PreparedRecord):
        return len(prepared.start)
    return 0


def _residuals(
    problem: Problem,
    tried: tuple[Candidate, ...],
    x: Array,
    c: Array,
    moved: Array | None,
    begin: Array,
    periods: Any,
    ranges: Ranges,
    i: int,
    wave: tuple[str, Array, Array] | None = None,
) -> Float[Array, " r"]:
    """Weighted residuals of record i; all its windows begin `begin` (s,) farther on."""
    prepared, objective = problem.prepared[i], problem.objective
    late = problem.delayed | delayed(tried)
    setup = problem.setup_at(x, i)
    if isinstance(prepared, PreparedSweep):
        setup = augmented(setup, tried, c, periods, ranges)
        out = prepared.predicted(setup, objective, problem.engine, late)
        return jnp.ravel(prepared.weight * (out - prepared.measured))
    if isinstance(objective, Windows):
        hidden = {
            u.path.removeprefix("windows."): x[u.place]
            for u in problem.unknowns
            if u.hidden and u.record == i
        }
        start = {**measured_starts(setup, prepared, problem.delayed), **hidden}
        for k, name in enumerate(start):
            start[name] = start[name] + begin[k] + (0.0 if moved is None else moved[:, k])
        prepared = eqx.tree_at(lambda p: p.start, prepared, start)
        objective = dataclasses.replace(objective, free_starts=True)
    for one, at in zip(tried, starts_of(tried), strict=True):
        if one.kind == "bends":
            bent = {n: u - c[at] * bend_of(jnp, prepared.t, u) for n, u in prepared.inputs.items()}
            prepared = dataclasses.replace(prepared, inputs=bent)
    setup = augmented(setup, tried, c, periods, ranges)
    if wave is not None:
        only = (Candidate("", "wave", wave[0], "ripple", "", 2),)
        setup = augmented(setup, only, wave[1], {wave[0]: wave[2]}, ranges)
    soft = [x for x in tried if x.kind == "compliance"]
    names = prepared.names
    if soft:
        body_of = {x: x.of.rpartition(".")[0] for x in soft}
        drives = {x: drives_of(problem.setup.machine, body_of[x]) for x in soft}
        more = tuple(name for x in soft for name in (f"{body_of[x]}.a", *drives[x]))
        setup = _seeing(setup, (*names, *more))
        wider = dataclasses.replace(prepared, names=(*names, *more))
        seen = objective.predict(setup, wider, problem.engine, late)
        out, rest = seen[..., : len(names)], iter(np.arange(len(names), len(names) + len(more)))
        at = dict(zip(tried, starts_of(tried), strict=True))
        for one in soft:
            give = c[at[one]] * seen[..., next(rest)]
            if drives[one]:
                give += c[at[one] + 1] * sum(seen[..., next(rest)] for _ in drives[one])
            out = out.at[..., names.index(one.of)].add(give)
    else:
        out = objective.predict(setup, prepared, problem.engine, late)
    return jnp.ravel(prepared.weight * (out - prepared.measured))


def _seeing(setup: Setup, names: tuple[str, ...]) -> Setup:
    known = setup.outputs
    outputs = {n: known.at(n) if known.has(n) else perfect() for n in names}
    return Setup(setup.machine, setup.inputs, Named.of(outputs))


@cached_jit
def _of_record(
    problem: Problem,
    tried: tuple[Candidate, ...],
    x: Array,
    c: Array,
    moved: Any,
    periods: Any,
    ranges: Ranges,
    i: int,
) -> tuple[Array, Array]:
    shared = np.flatnonzero([not u.hidden for u in problem.unknowns for _ in u.names])
    p, k, s = len(shared), c.shape[0], _windows(problem, i)

    def of(z: Array) -> tuple[Array, Array]:
        at = x.at[shared].add(z[:p])
        r = _residuals(problem, tried, at, c + z[p : p + k], moved, z[p + k :], periods, ranges, i)
        return r, r

    jacobian, r = jax.jacfwd(of, has_aux=True)(jnp.zeros(p + k + s))
    return r, jacobian


def column_of(
    problem: Problem,
    tried: tuple[Candidate, ...],
    x: Float[np.ndarray, " p"],
    way: Float[np.ndarray, " k"],
    ranges: Ranges,
) -> Float[np.ndarray, " n"]:
    """The derivative of the weighted residuals along `way` by the coefficients of candidates that
    are no waves, at 0: one run and its tangent, where `columns` has those of all.
    """
    periods = {body: jnp.ones(()) for body in ranges.centre}
    at = jnp.asarray(x), jnp.asarray(way), periods, ranges
    each = (_along(problem, tried, *at, i)[0] for i in range(len(problem.prepared)))
    return np.concatenate([np.asarray(r) for r in each])


@cached_jit
def _along(
    problem: Problem,
    tried: tuple[Candidate, ...],
    x: Array,
    way: Array,
    periods: Any,
    ranges: Ranges,
    i: int,
) -> tuple[Array]:
    begin = jnp.zeros(_windows(problem, i))

    def r(c: Array) -> Array:
        return _residuals(problem, tried, x, c, None, begin, periods, ranges, i)

    return (jax.jvp(r, (jnp.zeros_like(way),), (way,))[1],)


@cached_jit
def bank(
    problem: Problem,
    tried: tuple[Candidate, ...],
    x: Array,
    c: Array,
    moved: Any,
    periods: Any,
    ranges: Ranges,
    i: int,
    body: str,
    many: Float[Array, " m"],
) -> tuple[Array]:
    """The two columns of a ripple of each of `many` periods on `body`, (m, n, 2), of record i."""
    begin = jnp.zeros(_windows(problem, i))

    def of(period: Array) -> Array:
        def r(z: Array) -> Array:
            wave = (body, z, period)
            return _residuals(problem, tried, x, c, moved, begin, periods, ranges, i, wave)

        return jax.jacfwd(r)(jnp.zeros(2))

    return (jax.lax.map(of, many),)


def ranges_of(problem: Problem, x: Float[np.ndarray, " p"]) -> tuple[Ranges, dict[str, float]]:
    """What the records cover, and the travel of each body."""
    machine = problem.setup.machine
    low: dict[str, float] = {}
    high: dict[str, float] = {}
    fast: dict[str, float] = {}
    slip: dict[str, float] = {}
    times = []
    for i, prepared in enumerate(problem.prepared):
        if isinstance(prepared, PreparedSweep):
            continue
        times += [float(prepared.t[0]), float(prepared.t[-1])]
        seen = _seen(problem, prepared, x, i)
        for body in bodies(machine):
            s, v = (seen[name] for name in motion_of(machine, body))
            low[body] = min(low.get(body, np.inf), float(np.nanmin(s)))
            high[body] = max(high.get(body, -np.inf), float(np.nanmax(s)))
            fast[body] = max(fast.get(body, 0.0), float(np.nanmax(np.abs(v))))
        for path in laws(machine):
            here, there = between(machine, path)
            v = seen[motion_of(machine, here)[1]]
            v = v - seen[motion_of(machine, there)[1]] if there else v
            slip[path] = max(slip.get(path, 0.0), float(np.nanmax(np.abs(v))))
    number = lambda d: {k: jnp.asarray(max(v, 1e-12)) for k, v in d.items()}  # noqa: E731
    centre = {b: jnp.asarray(0.5 * (low[b] + high[b])) for b in low}
    middle = jnp.asarray(0.5 * (min(times) + max(times)))
    travel = {b: high[b] - low[b] for b in low}
    return Ranges(centre, number(fast), number(slip), middle), travel


def _seen(
    problem: Problem, prepared: PreparedRecord, x: np.ndarray, i: int
) -> dict[str, np.ndarray]:
    machine = problem.setup.machine
    if isinstance(problem.objective, InverseDynamics):
        return {n: np.asarray(v) for n, v in prepared.known.items()}
    more = [n for b in bodies(machine) for n in motion_of(machine, b)]
    names = (*prepared.names, *(n for n in more if n not in prepared.names))
    out = np.asarray(_motion(problem, prepared, jnp.asarray(x), names, i)[0])
    return dict(zip(names, np.moveaxis(out, -1, 0), strict=True))


@cached_jit
def _motion(
    problem: Problem, prepared: PreparedRecord, x: Array, names: tuple[str, ...], i: int
) -> tuple[Array]:
    setup = _seeing(problem.setup_at(x, i), names)
    prepared = dataclasses.replace(prepared, names=names)
    if isinstance(problem.objective, Windows):
        hidden = {
            u.path.removeprefix("windows."): x[u.place]
            for u in problem.unknowns
            if u.hidden and u.record == i
        }
        prepared = eqx.tree_at(lambda p: p.start, prepared, {**prepared.start, **hidden})
    return (problem.objective.predict(setup, prepared, problem.engine, problem.delayed),)
