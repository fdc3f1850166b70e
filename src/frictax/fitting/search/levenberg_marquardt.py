"""Levenberg-Marquardt as one compiled loop that can be interrupted and continued."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from frictax.parameters import Numbers
from frictax.pytree import pytree_dataclass

# A function of the coordinates that returns the residuals and their Jacobian. If the simulation has
# events, the third result is a number that identifies the sequence of events.
Evaluate = Callable[[Float[Array, " p"]], tuple[Any, ...]]


@pytree_dataclass
class Descent:
    """The state of a Levenberg-Marquardt search.

    - `z`: coordinates of the best point; `seen`: coordinates of the best evaluated point. `z` and
      `seen` differ if the final step was not evaluated.
    - `jacobian` at `seen`; `products` (p + 1, p + 1): the Gram matrix of the Jacobian's columns and
      of the residuals (last column).
    - `residuals` and `cost` (half the sum of squares) at `z`. If the final step was not evaluated,
      the linear model at `seen` predicts the residuals and the cost.
    - `x`: the parameter values at `z`; `slope`: the derivative of each value with respect to its
      coordinate, at `seen`. `descend` does not use `x` and `slope`.
    - `move`: the next trial step; `promised`: the reduction of the cost that the linear model
      predicts for this step.
    - `span` (p,): the unit of step lengths in each coordinate; `radius`: the longest next step in
      this unit. `line`: the fraction of the undamped (Gauss-Newton) step that is tried next, or 0
      for a damped step. `refused`: number of successive rejected steps.
    - `idle`: number of successive steps that hardly reduce the cost.
    - `trials`: the last trial points; `kinds`: hashes of their event sequences; `kind`: hash of the
      event sequence at `seen`.
    - `distance`: distance to the minimum of the linear model in standard errors, extrapolated after
      a step that was not evaluated; `steps`: number of steps; `done`: true at the end; `settled`:
      true if the search ended within the tolerance.
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
    """Return the state before the first step, at the coordinates `z`. `rows`: number of residuals.

    `span`: the largest change of each coordinate in the first step. If the standard error of a
    coordinate exceeds its span, the standard error limits this change.
    """
    trials = 16  # number of recent trial points that a state stores
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
        np.zeros((trials, p)) + z,
        np.zeros(trials, np.int32),
        count,
        np.array(np.inf),
        np.zeros(p),
        np.zeros(p),
        count,
        never,
        never,
    )


def descend(
    evaluate: Evaluate, state: Descent, until: Any, tolerance: Any, dof: Any, floor: Any, **how: Any
) -> Descent:
    """Continue the search until `until` steps are done, or the next step is shorter than
    `tolerance` standard errors.

    The residuals and the Jacobian at a trial point are evaluated together, so the compiled program
    contains the model only once. A trial point is rejected if a simulation fails. A trial point
    without effect of any parameter is also rejected, because no step leads away from such a point.

    - `evaluate`: function that returns the residuals and the Jacobian at a point.
    - `floor`: sum of squares that rounding errors cause; `dof`: degrees of freedom.
    - `ridge`: curvature added along each coordinate when distances in standard errors are computed.
      A ridge of 1 removes directions that the data hardly identify from these distances. `least`:
      smallest length by which a column of the Jacobian is divided.
    - `patience`: largest number of successive steps that hardly reduce the cost.

    The residuals after the final step are not evaluated if the step changes the cost by less than a
    rounding error. The evaluation is also omitted after a step of at most 0.02 standard errors, if
    fast convergence predicts that the distance to the minimum is within the tolerance.

    Each step minimises the cost of the linear model within a radius. The radius is 1 at first, in
    coordinates in which 1 is about the size of a start value. Without a radius, the first step
    could move a force to a far end of its domain, where the cost is flat. At a jump of the cost,
    where an event appears, a damped step turns parallel to the jump and does not cross the jump.
    Therefore a fraction of the undamped step is tried after every second rejected step.

    **Source:** J. J. Moré, *Lecture Notes in Mathematics* 630, 1978.
    """

    def step(s: Descent) -> Descent:
        return _take_step(s, evaluate(jnp.add(s.z, s.move)), tolerance, dof, floor, **how)

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
    """Continue many searches like `descend`. One call of `evaluate` evaluates the trial points of
    all searches, so `states` and the arguments and results of `evaluate` have a leading axis.
    """

    def going(s: Descent) -> Any:
        return jnp.logical_not(s.done) & (s.steps < until)

    def one(at) -> Descent:
        s, evaluated = at
        return jax.lax.cond(
            going(s), lambda: _take_step(s, evaluated, tolerance, dof, floor, **how), lambda: s
        )

    # Compute the steps of the searches in sequence: a vectorised step compiles 3 times as long.
    return jax.lax.while_loop(
        lambda s: jnp.any(going(s)),
        lambda s: jax.lax.map(one, (s, evaluate(jnp.add(s.z, s.move)))),
        states,
    )


def _take_step(
    s: Descent,
    evaluated: tuple[Any, ...],
    tolerance: Any,
    dof: Any,
    floor: Any,
    ridge: Any = 1e-12,
    patience: int = 12,
    least: Any = 0.0,
) -> Descent:
    """Return the state after a trial step. `evaluated`: residuals and Jacobian after this step."""
    # [standard errors] Longest final step that is accepted without evaluating its residuals.
    longest = 0.02
    # Largest ratio of two successive distances to the minimum for which convergence counts as fast.
    fast = 0.05
    # [standard errors per root of the degrees of freedom] A shorter step changes the cost by less
    # than the rounding error of the cost.
    shortest = 1e-7
    # The residuals have a rounding error of 2e-16 of the measurement, and the root of `floor` is
    # 1e-10 of the measurement. Twice 2e-16 / 1e-10 is 4e-6; the safety factor is about 2.
    rounding_of_floor = 1e-5
    trials = s.trials.shape[0]

    def put(rows, new) -> Array:
        return jnp.where(jnp.reshape(row, (-1,) + (1,) * (rows.ndim - 1)), new, rows)

    r, jacobian, *kinds = evaluated
    z = trial = jnp.add(s.z, s.move)
    of_trial = kinds[0] if kinds else jnp.zeros((), jnp.int32)
    row = jax.nn.one_hot(s.steps % trials, trials, dtype=bool)
    # One matrix product computes all sums, because XLA compiles each sum separately.
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
    # The length of a step is measured in `span`, the longest first change of each coordinate. The
    # matrix `ways` converts a step to this unit.
    ways = jnp.eye(span.size) / span[:, None]
    gone = jnp.linalg.norm(ways @ s.move)
    ways = ways / unit
    fails = ~first & ~better
    # `along`: true if the trial point is on the undamped step, false for a damped step.
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
    newton, undamped = _solve_stacked(
        jnp.stack([sure, gram + ridge * jnp.eye(unit.size)]), -jnp.stack([gradient, gradient])
    )
    whole = jnp.linalg.norm(ways @ newton)
    # Find the step within the radius that minimises the cost of the linear model. Newton's method
    # solves 1/length(step) = 1/radius for the damping, monotonically from damping 0. Source: J. J.
    # Moré, D. C. Sorensen, "Computing a trust region step", SIAM Journal on Scientific and
    # Statistical Computing 4, 1983.
    metric = ways.T @ ways

    def shorten(carry) -> Any:
        damping, step, length, k = carry
        matrix = (sure + damping * metric)[None]
        (slope,) = _solve_stacked(matrix, (metric @ step)[None])
        damping = damping + length**2 / (step @ metric @ slope) * (length / radius - 1.0)
        (step,) = _solve_stacked((sure + damping * metric)[None], -gradient[None])
        return damping, step, jnp.sqrt(step @ metric @ step), k + 1

    _, damped, _, _ = jax.lax.while_loop(
        lambda carry: (carry[2] > 1.05 * radius) & (carry[3] < 30),
        shorten,
        (jnp.zeros_like(whole), newton, whole, 0),
    )
    line = jnp.where(
        better,
        jnp.where(along & (s.line < 1), jnp.minimum(1.0, 2.0 * s.line), 0.0),
        jnp.where(
            refused % 2 == 1,  # a line search follows every second rejected step
            jnp.minimum(1.0, jnp.linalg.norm(ways @ damped) / whole),
            0.0,
        ),
    )
    move = jnp.where(line > 0, line * newton, damped)
    promised = -gradient @ move - 0.5 * move @ gram @ move
    distance = jnp.sqrt(jnp.maximum(-gradient @ undamped, 0.0) / variance)
    # Predict the distance to the minimum after a next step that converges as fast as this step.
    fall, rest = distance / s.distance, undamped - move
    kept = jnp.sqrt(jnp.maximum(rest @ gram @ rest, 0.0) / variance)
    foreseen = (
        ~first & (distance <= longest) & (fall <= fast) & (distance * fall + kept <= tolerance)
    )
    last = better & (distance > tolerance) & (foreseen | (distance <= shortest * jnp.sqrt(dof)))
    # `idle` counts successive steps that hardly reduce the cost. Such steps occur at a kink of the
    # cost, and if the predicted reduction is below the rounding error of the cost.
    idle = jnp.where(better & (s.cost - cost > 1e-7 * cost), 0, s.idle + 1)
    stuck = (idle >= patience) | (radius < 1e-13)
    # If the noise is far smaller than the measured values, rounding errors also hide the effect of
    # steps longer than `shortest`.
    rounding = rounding_of_floor * jnp.sqrt(floor * 2 * cost) / jnp.maximum(2 * cost, floor)
    hidden = jnp.sqrt(dof * (shortest**2 + rounding))
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


def _diagonal(a: Float[Array, "p p"]) -> Float[Array, " p"]:
    """Return the diagonal of `a` without indexing, which XLA compiles to a loop."""
    return jnp.sum(jnp.where(jnp.eye(a.shape[0], dtype=bool), a, 0.0), axis=0)


def _solve_stacked(a: Float[Array, "k p p"], b: Float[Array, "k p"]) -> Float[Array, "k p"]:
    """Solve a x = b for each matrix of `a` (positive definite) and each row of `b`, by Gauss-Jordan
    elimination. `jnp.linalg.solve` imports scipy.linalg; this import takes a tenth of the time of a
    small fit from the shell.
    """
    at = functools.partial(jax.lax.dynamic_index_in_dim, allow_negative_indices=False)

    def eliminate(i, m) -> Any:
        row, column = at(m, i, 1), at(m, i, 2)
        row = row / at(row, i, 2)
        return jax.lax.dynamic_update_slice_in_dim(m - column * row, row, i, 1)

    both = jnp.concatenate([a, b[:, :, None]], axis=2)
    return jax.lax.fori_loop(0, b.shape[1], eliminate, both)[:, :, -1]
