"""Levenberg-Marquardt as one compiled loop that can be stopped and gone on with."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from frictax.parameters import Numbers
from frictax.pytree import pytree_dataclass

_TRIALS = 16  # that are remembered
_PATIENT = 1  # refused steps before a share of the undamped one is tried
_NEAR = 0.02  # standard errors that a last step moves at most without being looked at
# standard errors, for each root of a degree of freedom, that change the cost by less than its
# rounding
_HIDDEN = 1e-7
# Rounding of the residuals as a share of the root of `floor`: 2e-16 of what was measured, of which
# that root is 1e-10. Twice the residuals times it is the rounding of the cost; with a margin of 2.
_ROUNDING = 1e-5
# of the distance before the last step: what is left after it where steps converge as Newton's do
_FAST = 0.05

# From coordinates to residuals and their Jacobian, and a number for the sequence of events where
# there are some.
Evaluate = Callable[[Float[Array, " p"]], tuple[Any, ...]]


@pytree_dataclass
class Descent:
    """Where the search stands.

    - `z`: the best point so far, and `seen`, the best that was evaluated: they differ by a last
      step that was not looked at.
    - `jacobian` at `seen`, and `products`, shape (p + 1, p + 1), of its columns and, last, the
      residuals there with each other.
    - `residuals` and `cost` = half the sum of squares, at `z`; after a step that was not looked at,
      by the linear model at `seen`.
    - `x`: the physical values at `z`, and `slope`, theirs by the coordinates, at `seen`; `descend`
      knows neither and leaves them alone.
    - `move`: the step that is tried next, `promised`: how much less cost a linear model expects of
      it.
    - `span` of each coordinate, in which steps are measured: `radius` is how long the next may be;
      `line`: the share of the undamped step that it is instead, or 0; `refused` steps in a row.
    - `idle`: steps in a row that gained next to nothing.
    - `trials`: the last points that were tried, `kinds`: of which sequence of events each of them
      is; `kind`: that of `seen`.
    - `distance` to the minimum of the linear model, in standard errors, or what the steps before
      make of it after one that was not looked at; `steps`; `done`; `settled`: done because it met
      its tolerance.
    """

    z: Float[Numbers, "*s p"]
    seen: Float[Numbers, "*s p"]
    residuals: Float[Numbers, "*s n"]
    jacobian: Float[Numbers, "*s n p"]
    cost: Float[Numbers, "*s"]
    products: Float[Numbers, "*s q q"]
    move: Float[Numbers, "*s p"]
    promised: Float[Numbers, "*s"]
    span: Float[Numbers, "*s p"]
    radius: Float[Numbers, "*s"]
    line: Float[Numbers, "*s"]
    refused: Int[Numbers, "*s"]
    idle: Int[Numbers, "*s"]
    trials: Float[Numbers, "*s t p"]
    kinds: Int[Numbers, "*s t"]
    kind: Int[Numbers, "*s"]
    distance: Float[Numbers, "*s"]
    x: Float[Numbers, "*s p"]
    slope: Float[Numbers, "*s p"]
    steps: Int[Numbers, "*s"]
    done: Bool[Numbers, "*s"]
    settled: Bool[Numbers, "*s"]


def begin(z: Any, rows: int, span: Any = 1.0) -> Descent:
    """The state before anything was evaluated: the first `descend` evaluates `z` itself.

    `span`: how far each coordinate may go at first; farther where its own standard error is larger.
    """
    p, count, never = z.shape[0], np.array(0, np.int32), np.array(False)
    return Descent(
        z,
        z,
        np.zeros(rows),
        np.zeros((rows, p)),
        np.array(np.inf),
        np.zeros((p + 1, p + 1)),
        np.zeros(p),
        np.array(1.0),
        np.zeros(p) + span,
        np.array(1.0),
        np.array(0.0),
        count,
        count,
        np.zeros((_TRIALS, p)) + z,
        np.zeros(_TRIALS, np.int32),
        count,
        np.array(np.inf),
        np.zeros(p),
        np.zeros(p),
        count,
        never,
        never,
    )


def descend(
    evaluate: Evaluate,
    state: Descent,
    until: Any,
    tolerance: Any,
    dof: Any,
    floor: Any,
    **how: Any,
) -> Descent:
    """Go on until `until` steps are done or the next one would move less than `tolerance` standard
    errors.

    The residuals stand in the program once: a step is evaluated together with its Jacobian. A point
    where a simulation fails is a step that is not taken, and so is one where nothing moves what was
    measured, for there is no way on from it. `floor`: cost that is rounding; `ridge`: least
    curvature that distances are measured with, so that 1 leaves out what the data hardly see, of
    columns that are at least `least` long; `patience`: steps in a row without gain that are enough;
    `turn`: from these coordinates to those in which spans are.

    A last step of at most `_NEAR` standard errors is taken without a look, as the linear model has
    it, where the step before came so much nearer that one more like it comes within the tolerance,
    and where its damping leaves no more than that. To look would only tell so; that a simulation
    runs at its end is taken from its start. So is one that changes the cost by less than its
    rounding: to look would tell nothing.

    Steps are those of least cost within a radius, of 1 at first, in coordinates in which 1 is about
    the size of a value: an undamped first step may throw a force far into the flat tail of its
    domain. Every second refused step is followed by a share of the undamped one, since damping
    turns a step at an edge, beyond which a stop or a breakaway appears, along that edge.

    **Source:** J. J. Moré, *Lecture Notes in Mathematics* 630, 1978.
    """

    def step(s: Descent) -> Descent:
        return _taken(s, evaluate(jnp.add(s.z, s.move)), tolerance, dof, floor, **how)

    return jax.lax.while_loop(lambda s: ~s.done & (s.steps < until), step, state)


def descend_together(
    evaluate: Evaluate,
    states: Descent,
    until: Any,
    tolerance: Any,
    dof: Any,
    floor: Any,
    **how: Any,
) -> Descent:
    """`descend` from many `states`, which have a first axis, as has all that `evaluate` takes and
    gives: one evaluation is of the next points of all.
    """

    def going(s: Descent) -> Any:
        return jnp.logical_not(s.done) & (s.steps < until)

    def one(at) -> Descent:
        s, evaluated = at
        return jax.lax.cond(
            going(s), lambda: _taken(s, evaluated, tolerance, dof, floor, **how), lambda: s
        )

    # the steps themselves one after the other: for all at once they take thrice as long to compile
    return jax.lax.while_loop(
        lambda s: jnp.any(going(s)),
        lambda s: jax.lax.map(one, (s, evaluate(jnp.add(s.z, s.move)))),
        states,
    )


def _taken(
    s: Descent,
    evaluated: tuple[Any, ...],
    tolerance: Any,
    dof: Any,
    floor: Any,
    ridge: Any = 1e-12,
    patience: int = 12,
    least: Any = 0.0,
    turn: Float[Array, "k p"] | None = None,
) -> Descent:
    """Where the search stands after the step that it tries, whose end was `evaluated`."""

    def put(rows, new) -> Array:
        return jnp.where(jnp.reshape(row, (-1,) + (1,) * (rows.ndim - 1)), new, rows)

    r, jacobian, *kinds = evaluated
    z = trial = jnp.add(s.z, s.move)
    of_trial = kinds[0] if kinds else jnp.zeros((), jnp.int32)
    row = jax.nn.one_hot(s.steps % _TRIALS, _TRIALS, dtype=bool)
    # All sums over the samples at once: XLA takes each for itself to pieces and compiles them.
    both = jnp.concatenate([jacobian, r[:, None]], axis=1)
    products = both.T @ both
    squares = _diagonal(products)
    cost = 0.5 * squares[-1]
    ratio = (s.cost - cost) / jnp.maximum(s.promised, jnp.finfo(cost.dtype).tiny)
    first = s.steps == 0
    leads = jnp.any(squares[:-1] > 0)
    better = jnp.all(jnp.isfinite(squares)) & (first | ((ratio > 0) & leads))
    z, r, jacobian, cost, products = (
        jnp.where(better, a, b)
        for a, b in zip(
            (z, r, jacobian, cost, products),
            (s.z, s.residuals, s.jacobian, s.cost, s.products),
            strict=True,
        )
    )
    gram, gradient = products[:-1, :-1], products[:-1, -1]
    lengths = jnp.sqrt(_diagonal(gram))
    unit = jnp.maximum(jnp.where(lengths > 0, lengths, 1.0), least)
    variance = jnp.maximum(2 * cost, floor) / dof
    span = jnp.where(first, jnp.maximum(s.span, jnp.sqrt(variance) / unit), s.span)
    # what a step is long in: from scaled coordinates to spans
    ways = (jnp.eye(span.size) if turn is None else turn) / span[:, None]
    gone = jnp.linalg.norm(ways @ s.move)
    ways = ways / unit
    fails = ~first & ~better
    # The trial that has just been looked at was a share of the undamped step, or a damped one.
    along = s.line > 0
    radius = jnp.where(
        first | along,
        jnp.where(first | fails, s.radius, jnp.maximum(s.radius, gone)),
        jnp.where(
            ~better | (ratio < 0.25),
            0.25 * jnp.minimum(gone, s.radius),
            jnp.where((ratio > 0.75) & (gone > 0.9 * s.radius), 2.0 * s.radius, s.radius),
        ),
    )
    refused = jnp.where(fails, s.refused + 1, 0)
    gram, gradient = gram / unit[:, None] / unit, gradient / unit
    sure = gram + 1e-12 * jnp.eye(unit.size)
    newton, told = _solved(
        jnp.stack([sure, gram + ridge * jnp.eye(unit.size)]), -jnp.stack([gradient, gradient])
    )
    whole = jnp.linalg.norm(ways @ newton)
    damped = _within(sure, gradient, ways.T @ ways, newton, whole, radius)
    line = jnp.where(
        better,
        jnp.where(along & (s.line < 1), jnp.minimum(1.0, 2.0 * s.line), 0.0),
        jnp.where(
            (refused >= _PATIENT) & ((refused - _PATIENT) % 2 == 0),
            jnp.minimum(1.0, jnp.linalg.norm(ways @ damped) / whole),
            0.0,
        ),
    )
    move = jnp.where(line > 0, line * newton, damped)
    promised = -gradient @ move - 0.5 * move @ gram @ move
    distance = jnp.sqrt(jnp.maximum(-gradient @ told, 0.0) / variance)
    # What is left after one more step, if it comes as much nearer as the last one did.
    fall, rest = distance / s.distance, told - move
    kept = jnp.sqrt(jnp.maximum(rest @ gram @ rest, 0.0) / variance)
    foreseen = (
        ~first & (distance <= _NEAR) & (fall <= _FAST) & (distance * fall + kept <= tolerance)
    )
    last = better & (distance > tolerance) & (foreseen | (distance <= _HIDDEN * jnp.sqrt(dof)))
    # At a kink no step gains what its slope promises; at rounding none gains anything.
    idle = jnp.where(better & (s.cost - cost > 1e-7 * cost), 0, s.idle + 1)
    stuck = (idle >= patience) | (radius < 1e-13)
    # of noise far below what was measured, the rounding of the residuals hides more
    rounding = _ROUNDING * jnp.sqrt(floor * 2 * cost) / jnp.maximum(2 * cost, floor)
    hidden = jnp.sqrt(dof * (_HIDDEN**2 + rounding))
    near = (distance <= tolerance) | last | (stuck & (distance <= hidden))
    settled = jnp.isfinite(cost) & near & jnp.any(lengths > 0)
    done = settled | stuck | (first & ~(better & leads))
    move = move / unit
    unseen = jnp.where(last, move, 0.0)
    then = (
        move,
        promised,
        span,
        radius,
        line,
        refused,
        idle,
        put(s.trials, trial),
        put(s.kinds, of_trial),
        jnp.where(better, of_trial, s.kind),
        jnp.where(last, distance * fall + kept, distance),
    )
    there = (
        z + unseen,
        z,
        r + jacobian @ unseen,
        jacobian,
        cost - jnp.where(last, promised, 0.0),
        products,
    )
    return Descent(*there, *then, s.x, s.slope, s.steps + 1, done, settled)


def _within(gram, gradient, metric, newton, whole, radius) -> Float[Array, " p"]:
    """The step of least cost in the linear model that is no longer than `radius`.

    By Newton's way on 1 / length over the damping, from 0, which rises to the answer.

    **Source:** J. J. Moré, D. C. Sorensen, "Computing a trust region step", *SIAM Journal on
    Scientific and Statistical Computing* 4, 1983.
    """

    def nearer(carry) -> Any:
        damping, step, length, k = carry
        matrix = (gram + damping * metric)[None]
        (slope,) = _solved(matrix, (metric @ step)[None])
        damping = damping + length**2 / (step @ metric @ slope) * (length / radius - 1.0)
        (step,) = _solved((gram + damping * metric)[None], -gradient[None])
        return damping, step, jnp.sqrt(step @ metric @ step), k + 1

    _, step, _, _ = jax.lax.while_loop(
        lambda carry: (carry[2] > 1.05 * radius) & (carry[3] < 30),
        nearer,
        (jnp.zeros_like(whole), newton, whole, 0),
    )
    return step


def _diagonal(a: Float[Array, "p p"]) -> Float[Array, " p"]:
    """Without gathering it, which is a loop to XLA."""
    return jnp.sum(jnp.where(jnp.eye(a.shape[0], dtype=bool), a, 0.0), axis=0)


def _solved(a: Float[Array, "k p p"], b: Float[Array, "k p"]) -> Float[Array, "k p"]:
    """x with a x = b for each pair of them, all `a` positive definite, by Gauss and Jordan.

    `jnp.linalg.solve` calls LAPACK, for which jax imports scipy.linalg: a tenth of the time of a
    whole small fit from the shell.
    """
    at = functools.partial(jax.lax.dynamic_index_in_dim, allow_negative_indices=False)

    def eliminate(i, m) -> Any:
        row, column = at(m, i, 1), at(m, i, 2)
        row = row / at(row, i, 2)
        return jax.lax.dynamic_update_slice_in_dim(m - column * row, row, i, 1)

    both = jnp.concatenate([a, b[:, :, None]], axis=2)
    return jax.lax.fori_loop(0, b.shape[1], eliminate, both)[:, :, -1]
