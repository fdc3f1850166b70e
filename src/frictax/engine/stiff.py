"""Linearly implicit steps, for motion with rates that are far above what is looked at."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.parameters.constant import constant

from .options import OnSamples
from .reused import Reused
from .stepping import advance

_FEW = 12  # states: with more, the elimination is not written out
_GAMMA = 1 - 1 / math.sqrt(2)


def step(
    system: Reused, options: OnSamples, mode, t0, t1, y0, rate: Any = None, *, sound: bool = False
) -> Any:
    """The state at `t1`, by one step of the solver of `options` from `y0` at `t0` on.

    A system that is stiff takes a linearly implicit step unless a solver is named, and where that
    breaks its bounds a `safe_step`; `sound`: leave that to the caller, who looks at the bounds.
    """
    if options.solver is not None or not system.is_stiff():
        return advance(options.solver, lambda t, y: system.flow(t, y, mode), t0, t1, y0, rate)
    y1 = _implicit(system, mode, t0, t1, y0)
    if sound:
        return y1
    holds = constant(system).sound(*constant((t0, y0, t1, y1)), mode)
    return jax.lax.cond(holds, lambda: y1, lambda: system.safe_step(t0, t1, y0, mode))


@jax.jit  # traced once
def _implicit(system: Reused, mode, t0, t1, y0) -> Array:
    return rosenbrock2(lambda t, y: system.flow(t, y, mode), t0, t1, y0)


def keeps_bounds(system: Reused, options: OnSamples, mode, t0, t1, y0, y1) -> Any:
    """Whether `step` with `sound` was as without; None where it always is."""
    if options.solver is not None or not system.is_stiff():
        return None
    return constant(system).sound(*constant((t0, y0, t1, y1)), mode)


def rosenbrock2(flow, t0, t1, y0) -> Array:
    """The state at `t1` of dy/dt = flow(t, y) by one step, from `y0` at `t0` on, of the Rosenbrock
    method of two stages that is of order 2 and L-stable.

    **Source:** J. G. Verwer, E. J. Spee, J. G. Blom, W. Hundsdorfer, SIAM J. Sci. Comput. 20(4),
    1999.
    """
    h = t1 - t0
    rate, at_t, by_y = slopes(flow, t0, y0)
    matrix = _shifted(by_y, _GAMMA * h)
    drift = _GAMMA * h * at_t
    solve = factored(matrix)
    k1 = solve(rate + drift)
    k2 = solve(flow(t1, y0 + h * k1) - drift - 2 * k1)
    return y0 + h * (1.5 * k1 + 0.5 * k2)


def slopes(flow, t, y) -> tuple[Array, Array, list[list[Array]]]:
    """flow(t, y), its rate by t, and its matrix by y, entry by entry."""
    n = y.shape[0]
    columns = jnp.eye(n + 1, dtype=y.dtype)
    push = lambda d: jax.jvp(flow, (t, y), (d[0], d[1:]))  # noqa: E731
    rates, slope = jax.vmap(push, out_axes=(None, 0))(columns)
    return rates, slope[0], [[slope[1 + j, i] for j in range(n)] for i in range(n)]


def _shifted(matrix: list[list[Array]], factor) -> list[list[Array]]:
    """1 - factor*matrix."""
    return [
        [(1.0 if i == j else 0.0) - factor * x for j, x in enumerate(row)]
        for i, row in enumerate(matrix)
    ]


def factored(matrix: list[list[Any]]) -> Any:
    """A function that solves matrix x = b; of few equations written out, without pivots.

    None are needed where the matrix is 1 - h*J of a motion that loses energy.
    """
    n = len(matrix)
    if n > _FEW:
        whole = jax.scipy.linalg.lu_factor(jnp.stack([jnp.stack(row) for row in matrix]))
        return lambda b: jax.scipy.linalg.lu_solve(whole, b)
    upper, lower = [list(row) for row in matrix], [[0.0] * n for _ in range(n)]
    inverse = []
    for k in range(n):
        inverse.append(1 / upper[k][k])
        for i in range(k + 1, n):
            lower[i][k] = factor = upper[i][k] * inverse[k]
            for j in range(k + 1, n):
                upper[i][j] = upper[i][j] - factor * upper[k][j]

    def solve(b: Array) -> Array:
        x = [b[i] for i in range(n)]
        for i in range(n):
            for j in range(i):
                x[i] = x[i] - lower[i][j] * x[j]
        for i in reversed(range(n)):
            for j in range(i + 1, n):
                x[i] = x[i] - upper[i][j] * x[j]
            x[i] = x[i] * inverse[i]
        return jnp.stack(x)

    return solve
