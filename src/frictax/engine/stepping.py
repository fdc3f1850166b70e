"""Explicit Runge-Kutta steps, scales for errors, and vector operations entry by entry."""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from frictax.parameters import Number

_FEW = 32  # longest vector computed entry by entry, so that XLA can fuse the arithmetic
_REST = 1e-9  # [unit of the state] range below which a state is at rest; 1e-6 with 32-bit numbers
# Bosh3 method of P. Bogacki, L. F. Shampine, Applied Mathematics Letters 2(4), 1989: times of the
# second and third stage, weights of these stages, weights of the step.
_BOSH3 = (1 / 2, 3 / 4), ((1 / 2,), (0.0, 3 / 4)), (2 / 9, 1 / 3, 4 / 9)


def advance(
    solver,
    flow: Callable,
    t0: Number,
    t1: Number,
    y0: Float[Array, " n"],
    rate: Float[Array, " n"] | None = None,
) -> Float[Array, " n"]:
    """Return the solution of dy/dt = flow(t, y) at `t1` after one step of a diffrax `solver` from
    `y0` at `t0`. `solver` = None means `diffrax.Bosh3()`. `rate`: dy/dt at `t0`, if known.

    The stages of an explicit solver are written out from its tableau. Diffrax's `step` loops over
    the stages and also estimates the error, so a record of 25000 samples takes 1.6 times as long.
    Solvers that are not a `diffrax.AbstractERK` use their own `step`.
    """
    if solver is None:
        return bosh3(flow, t0, t1, y0, rate)[0]
    import diffrax

    if not isinstance(solver, diffrax.AbstractERK):
        term = diffrax.ODETerm(lambda t, y, _: flow(t, y))
        return solver.step(term, t0, t1, y0, None, solver.init(term, t0, t1, y0, None), False)[0]
    table = solver.tableau
    assert isinstance(table, diffrax.ButcherTableau)
    h, rates = _rates(table.c, table.a_lower, table.b_sol, flow, t0, t1, y0, rate)
    return y0 + h * _weighted_sum(table.b_sol[: len(rates)], rates)


def bosh3(flow: Callable, t0: Number, t1: Number, y0: Any, rate: Any) -> tuple[Any, list[Any]]:
    """Return the state at `t1` after a step of Bosh3, and dy/dt at its three stages."""
    h, rates = _rates(*_BOSH3, flow, t0, t1, y0, rate)
    return y0 + h * _weighted_sum(_BOSH3[2], rates), rates


def _rates(c, a_lower, b_sol, flow: Callable, t0, t1, y0, rate) -> tuple[Any, list[Any]]:
    h = t1 - t0
    # Stages after the last nonzero weight are omitted, as only an error estimate needs them.
    used = max(i for i, b in enumerate(b_sol) if b != 0) + 1
    rates = [flow(t0, y0) if rate is None else rate]
    for share, row in zip(c[: used - 1], a_lower, strict=False):
        rates.append(
            flow(t1 if share == 1 else t0 + float(share) * h, y0 + h * _weighted_sum(row, rates))
        )
    return h, rates


def entries(x: Array) -> list[Array]:
    """Return the list of the entries of a vector, or [x] if it has more than 32 entries."""
    return [x[i] for i in range(x.shape[0])] if x.shape[0] <= _FEW else [x]


def stack_entries(parts: Sequence[Array], like: Array) -> Array:
    """Join `parts`, a result of `entries(x)`, to the vector x. `like`: any vector of this
    length."""
    if like.shape[0] == 0:
        return like
    return jnp.stack(parts) if like.shape[0] <= _FEW else parts[0]


def is_at_rest(ranges: Any) -> Any:
    """Return flags of the states that moved by less than 1e-9 of their unit (32 bits: 1e-6)."""
    return ranges < _smallest_range(ranges)


def is_rounding(ranges: Any) -> Any:
    """Return flags of the states that moved by less than 1e-12 of their unit (32 bits: 1e-9).
    Rounding errors can cause a motion of this size."""
    return ranges < 1e-3 * _smallest_range(ranges)


def scale_at_rest(ranges: Any) -> float:
    """Return the error scale of a state at rest: 1e-5 of its unit (1e-2 with 32-bit numbers).

    Rounding errors of large forces move a state at rest. Shorter steps do not reduce this motion.
    """
    return 1e4 * _smallest_range(ranges)


def inverse_scales(ranges: list[Array], y: list[Array]) -> list[Array]:
    """Return 1 over the error scale of each state `y`. The scale is the state's range (largest
    distance from its start value), with a lower limit. At rest, the scale is constant."""

    def scale(r: Array, x: Array) -> Array:
        moving = jnp.maximum(r, 1e-8 * jnp.abs(x) + _smallest_range(r))
        return jnp.where(is_at_rest(r), scale_at_rest(r), moving)

    return [1.0 / scale(r, x) for r, x in zip(ranges, y, strict=True)]


def _smallest_range(numbers: Any) -> float:
    return _REST if numbers.dtype == np.float64 else 1e3 * _REST


def relative_error(errors: list[Array], ranges: list[Array], y: list[Array]) -> Number:
    """Return the maximum over the states of 2*error/scale. `errors`: sums of estimated errors.

    For a state at rest (`is_at_rest`), the scale is its range if this range is larger than the
    error and larger than rounding (`is_rounding`).
    """
    worst = jnp.zeros(())
    for error, r, inverse in zip(errors, ranges, inverse_scales(ranges, y), strict=True):
        is_motion = is_at_rest(r) & ~is_rounding(r) & (error < r)
        relative = jnp.where(is_motion, error / jnp.where(is_motion, r, 1.0), error * inverse)
        worst = jnp.maximum(worst, jnp.max(relative))
    return 2 * worst


def all_of(x: Bool[Array, " n"]) -> Bool[Array, ""]:
    """Return `jnp.all(x)`, computed without a loop if the vector is short."""
    return reduce(and_, entries(x)) if 0 < x.shape[0] <= _FEW else jnp.all(x)


def any_of(x: Bool[Array, " n"]) -> Bool[Array, ""]:
    """Return `jnp.any(x)`, computed without a loop if the vector is short."""
    return reduce(or_, entries(x)) if 0 < x.shape[0] <= _FEW else jnp.any(x)


def select(here, this, that) -> Any:
    """Return the tree `this` if the flag `here` is True, else the tree `that`."""
    return jax.tree.map(lambda a, b: jnp.where(here, a, b), this, that)


def _weighted_sum(weights, rates: list[Array]) -> Array:
    return sum(
        (float(w) * rate for w, rate in zip(weights, rates, strict=True) if w != 0),
        start=jnp.zeros_like(rates[0]),
    )
