"""Residuals of a fit, and their derivatives with respect to parameters and candidate terms."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.fitting.problem.inverse_dynamics import InverseDynamics, motion
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.fitting.problem.problem import PreparedSweep, Problem
from frictax.fitting.problem.readings import measured_starts
from frictax.fitting.problem.simulations import Windows, simulate_channels
from frictax.fitting.result.step_error import bend_of
from frictax.programs import cached_jit

from .candidates import (
    Candidate,
    OperatingRange,
    augmented_setup,
    bodies_of,
    contact_bodies,
    drives_of,
    first_columns,
    laws_of,
    motion_of,
)


@dataclasses.dataclass(frozen=True, eq=False)
class Sensitivities:
    """Weighted residuals (n,), predicted minus measured, and their derivatives with respect to:
    fitted parameters (`fitted`, (n, p)); coefficients of candidates (`tried`, (n, k)); initial
    states of the residual's window (`starts`, (n, s)). `window` (n,): index of the residual's
    window, or -1.
    """

    residuals: Float[np.ndarray, " n"]
    fitted: Float[np.ndarray, "n p"]
    tried: Float[np.ndarray, "n k"]
    starts: Float[np.ndarray, "n s"]
    window: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Point:
    """Values at which residuals are evaluated.

    `x`: fitted parameters; `c`: coefficients of candidates; `moved`: record index -> changes (w, s)
    of the s initial states of its w windows; `periods`: body -> ripple period [m or rad].
    """

    x: Float[np.ndarray, " p"]
    c: Float[np.ndarray, " k"]
    moved: Mapping[int, np.ndarray]
    periods: Mapping[str, float]

    def of_record(self, i: int) -> "_Values":
        """Return the values for record i as JAX arrays."""
        periods = {body: jnp.asarray(period, float) for body, period in self.periods.items()}
        return _Values(jnp.asarray(self.x), jnp.asarray(self.c), self.moved.get(i), periods)


class _Values(eqx.Module):
    """The values of a `Point` for one record."""

    x: Array
    c: Array
    moved: Any
    periods: dict[str, Array]


def sensitivities(
    problem: Problem, tried: tuple[Candidate, ...], at: Point, ranges: OperatingRange
) -> Sensitivities:
    """Return the residuals of all records, and their derivatives, at the point `at`."""
    p, k = len(_shared_places(problem)), len(at.c)
    states = states_of_windows(problem)
    parts, windows = [], 0
    for i, prepared in enumerate(problem.prepared):
        r, j = map(np.asarray, _of_record(problem, tried, at.of_record(i), ranges, i))
        shape = np.shape(prepared.weight)
        window = np.full(shape, -1)
        if _start_states(problem, i):
            numbers = windows + np.arange(shape[0]).reshape((-1,) + (1,) * (len(shape) - 1))
            window = np.broadcast_to(numbers, shape)
            windows += shape[0]
        starts = np.zeros((len(r), states))  # A sweep beside windows does not have initial states.
        starts[:, : j.shape[1] - p - k] = j[:, p + k :]
        parts.append((r, j[:, :p], j[:, p : p + k], starts, np.ravel(window)))
    return Sensitivities(*(np.concatenate(a) for a in zip(*parts, strict=True)))


def states_of_windows(problem: Problem) -> int:
    """Return the number of initial states of each window; 0 without windows."""
    return max((_start_states(problem, i) for i in range(len(problem.prepared))), default=0)


def _start_states(problem: Problem, i: int) -> int:
    prepared = problem.prepared[i]
    if isinstance(problem.objective, Windows) and isinstance(prepared, PreparedRecord):
        return len(prepared.start)
    return 0


def _shared_places(problem: Problem) -> np.ndarray:
    """Return the indices of all fitted parameters that are not initial states of windows."""
    return np.flatnonzero([not u.hidden for u in problem.unknowns for _ in u.names])


def _residuals(
    problem: Problem,
    tried: tuple[Candidate, ...],
    at: _Values,
    begin: Array,
    ranges: OperatingRange,
    i: int,
    wave: tuple[str, Array, Array] | None = None,
) -> Float[Array, " r"]:
    """Return the weighted residuals of record i, with `begin` (s,) added to the initial state of
    each window. `wave`: body, coefficients (2,) and period [m or rad] of an additional ripple.
    """
    prepared, objective = problem.prepared[i], problem.objective
    delays = {x.of.removesuffix(".delay") for x in tried if (x.kind, x.term) == ("held", "delay")}
    late = problem.delayed | delays
    setup = problem.setup_at(at.x, i)
    if isinstance(prepared, PreparedSweep):
        setup = augmented_setup(setup, tried, at.c, at.periods, ranges, problem.ties)
        out = prepared.predict(setup, objective, problem.engine, late)
        return jnp.ravel(prepared.weight * (out - prepared.measured))
    if isinstance(objective, Windows):
        start = measured_starts(setup, prepared, problem.delayed)
        start |= problem.fitted_starts(at.x, i)
        for k, name in enumerate(start):
            moved = 0.0 if at.moved is None else at.moved[:, k]
            start[name] = start[name] + begin[k] + moved
        prepared = eqx.tree_at(lambda p: p.start, prepared, start)
        objective = dataclasses.replace(objective, free_starts=True)
    for one, k in zip(tried, first_columns(tried), strict=True):
        if one.kind == "bends":
            bent = {
                n: u - at.c[k] * bend_of(jnp, prepared.t, u) for n, u in prepared.inputs.items()
            }
            prepared = dataclasses.replace(prepared, inputs=bent)
    setup = augmented_setup(setup, tried, at.c, at.periods, ranges, problem.ties)
    if wave is not None:
        only = (Candidate("", "wave", wave[0], "ripple", "", 2),)
        setup = augmented_setup(setup, only, wave[1], {wave[0]: wave[2]}, ranges)
    soft = [one for one in tried if one.kind == "compliance"]
    names = prepared.names
    if not soft:
        out = objective.predict(setup, prepared, problem.engine, late)
        return jnp.ravel(prepared.weight * (out - prepared.measured))
    # A compliance adds two terms to the measured position: one proportional to the acceleration of
    # the body, and one proportional to the sum of the drive forces.
    body_of = {one: one.of.rpartition(".")[0] for one in soft}
    drives = {one: drives_of(problem.setup.machine, body_of[one]) for one in soft}
    more = tuple(name for one in soft for name in (f"{body_of[one]}.a", *drives[one]))
    wider = dataclasses.replace(prepared, names=(*names, *more))
    seen = objective.predict(setup.for_channels(None, wider.names), wider, problem.engine, late)
    out, rest = seen[..., : len(names)], iter(np.arange(len(names), len(names) + len(more)))
    first = dict(zip(tried, first_columns(tried), strict=True))
    for one in soft:
        give = at.c[first[one]] * seen[..., next(rest)]
        if drives[one]:
            give += at.c[first[one] + 1] * sum(seen[..., next(rest)] for _ in drives[one])
        out = out.at[..., names.index(one.of)].add(give)
    return jnp.ravel(prepared.weight * (out - prepared.measured))


@cached_jit
def _of_record(
    problem: Problem, tried: tuple[Candidate, ...], at: _Values, ranges: OperatingRange, i: int
) -> tuple[Array, Array]:
    """Return the residuals (n,) of record i, and their derivatives (n, p + k + s) with respect to
    parameters, coefficients of candidates and initial states.
    """
    shared = _shared_places(problem)
    p, k = len(shared), at.c.shape[0]

    def residuals(z: Array) -> tuple[Array, Array]:
        x, c = at.x.at[shared].add(z[:p]), at.c + z[p : p + k]
        values = _Values(x, c, at.moved, at.periods)
        r = _residuals(problem, tried, values, z[p + k :], ranges, i)
        return r, r

    size = p + k + _start_states(problem, i)
    jacobian, r = jax.jacfwd(residuals, has_aux=True)(jnp.zeros(size))
    return r, jacobian


def directional_sensitivity(
    problem: Problem,
    tried: tuple[Candidate, ...],
    x: Float[np.ndarray, " p"],
    way: Float[np.ndarray, " k"],
    ranges: OperatingRange,
) -> Float[np.ndarray, " n"]:
    """Return the derivative of the weighted residuals in the direction `way` of the coefficients of
    `tried`, at coefficients 0, by one simulation. `tried` must not contain ripples.
    """
    at = Point(x, np.zeros(len(way)), {}, dict.fromkeys(ranges.centre, 1.0))
    each = (
        _along(problem, tried, at.of_record(i), jnp.asarray(way), ranges, i)[0]
        for i in range(len(problem.prepared))
    )
    return np.concatenate([np.asarray(r) for r in each])


@cached_jit
def _along(
    problem: Problem,
    tried: tuple[Candidate, ...],
    at: _Values,
    way: Array,
    ranges: OperatingRange,
    i: int,
) -> tuple[Array]:
    """Return the derivative of the residuals of record i in the direction `way` of coefficients."""
    begin = jnp.zeros(_start_states(problem, i))

    def r(c: Array) -> Array:
        values = _Values(at.x, c, None, at.periods)
        return _residuals(problem, tried, values, begin, ranges, i)

    return (jax.jvp(r, (jnp.zeros_like(way),), (way,))[1],)


@cached_jit
def ripple_columns(
    problem: Problem,
    tried: tuple[Candidate, ...],
    at: _Values,
    ranges: OperatingRange,
    i: int,
    body: str,
    periods: Float[Array, " m"],
) -> tuple[Array]:
    """Return the derivatives (m, n, 2) of the n residuals of record i for m ripple `periods` [m or
    rad]. The derivatives are by the cosine and sine coefficients of the ripple on `body`."""
    begin = jnp.zeros(_start_states(problem, i))

    def columns(period: Array) -> Array:
        def r(z: Array) -> Array:
            return _residuals(problem, tried, at, begin, ranges, i, (body, z, period))

        return jax.jacfwd(r)(jnp.zeros(2))

    return (jax.lax.map(columns, periods),)


def operating_range(
    problem: Problem, x: Float[np.ndarray, " p"]
) -> tuple[OperatingRange, dict[str, float]]:
    """Return the range of motion in all records, and the travel [m or rad] of each body. The motion
    is that of the machine, without the effects of sensors."""
    machine = problem.setup.machine
    names = tuple(name for body in bodies_of(machine) for name in motion_of(machine, body))
    low: dict[str, float] = {}
    high: dict[str, float] = {}
    fast: dict[str, float] = {}
    slip: dict[str, float] = {}
    times = []
    for i, prepared in enumerate(problem.prepared):
        if isinstance(prepared, PreparedSweep):
            continue
        times += [float(prepared.t[0]), float(prepared.t[-1])]
        if isinstance(problem.objective, InverseDynamics):
            seen = motion(problem.setup_at(jnp.asarray(x), i), prepared, problem.delayed)
        else:
            run = np.asarray(simulate_channels(problem, x, i, names)[0])
            seen = dict(zip(names, np.moveaxis(run, -1, 0), strict=True))
        for body in bodies_of(machine):
            s, v = (seen[name] for name in motion_of(machine, body))
            low[body] = min(low.get(body, np.inf), float(np.nanmin(s)))
            high[body] = max(high.get(body, -np.inf), float(np.nanmax(s)))
            fast[body] = max(fast.get(body, 0.0), float(np.nanmax(np.abs(v))))
        for path in laws_of(machine):
            here, there = contact_bodies(machine, path)
            v = seen[motion_of(machine, here)[1]]
            v = v - seen[motion_of(machine, there)[1]] if there else v
            slip[path] = max(slip.get(path, 0.0), float(np.nanmax(np.abs(v))))
    positive = lambda d: {k: jnp.asarray(max(v, 1e-12)) for k, v in d.items()}  # noqa: E731
    centre = {b: jnp.asarray(0.5 * (low[b] + high[b])) for b in low}
    middle = jnp.asarray(0.5 * (min(times) + max(times)))
    travel = {b: high[b] - low[b] for b in low}
    return OperatingRange(centre, positive(fast), positive(slip), middle), travel
