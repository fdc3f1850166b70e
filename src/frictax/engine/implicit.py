"""Linearly implicit steps for stiff motion, their derivatives, and a small linear solver."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.parameters.arrays import constant

from .options import OnSamples
from .reused import Reused
from .stepping import advance

_GAMMA = 1 - 1 / math.sqrt(2)  # factor of h*Jacobian in both stages, chosen for L-stability


def take_step(
    system: Reused, options: OnSamples, mode, t0, t1, y0, rate: Any = None, holds: Any = None
) -> Any:
    """Return the state at `t1` after one step of the solver in `options` from `y0` at `t0`.

    If `options` has no solver, a stiff system takes a linearly implicit step. If the linearly
    implicit step is not valid (see `sound`), the system takes its `safe_step`.

    `rate`: dy/dt at `t0`, if known. `holds`: the result of `keeps_bounds` for a longer step from
    `t0`; shorter steps then use the method of the longer step. If `holds` is the Python constant
    True, the step is linearly implicit, and the caller checks its validity.
    """
    if options.solver is not None or not system.is_stiff():
        return advance(options.solver, lambda t, y: system.flow(t, y, mode), t0, t1, y0, rate)
    if holds is True:
        return _implicit_step(system, mode, t0, t1, y0)
    if holds is None:
        y1 = _implicit_step(system, mode, t0, t1, y0)
        holds = constant(system).sound(*constant((t0, y0, t1, y1)), mode)
        return jax.lax.cond(holds, lambda: y1, lambda: system.safe_step(t0, t1, y0, mode))
    return jax.lax.cond(
        holds,
        lambda: _implicit_step(system, mode, t0, t1, y0),
        lambda: system.safe_step(t0, t1, y0, mode),
    )


def keeps_bounds(system: Reused, options: OnSamples, mode, t0, t1, y0, y1: Any = None) -> Any:
    """Return whether the linearly implicit step is valid (see `sound`). Return None if the system
    is not stiff or `options` has a solver. `y1`: state after the step, if known.
    """
    if options.solver is not None or not system.is_stiff():
        return None
    still, mode, (t0, t1, y0) = constant(system), constant(mode), constant((t0, t1, y0))
    y1 = _implicit_step(still, mode, t0, t1, y0) if y1 is None else constant(y1)
    return still.sound(t0, y0, t1, y1, mode)


@jax.jit  # JAX traces this function once for all of its calls.
def _implicit_step(system: Reused, mode, t0, t1, y0) -> Array:
    own = system.implicit_step(t0, t1, y0, mode)
    return rosenbrock2(system, mode, t0, t1, y0) if own is None else own


@eqx.filter_custom_jvp
def rosenbrock2(system: Reused, mode, t0, t1, y0) -> Array:
    """Return the state at `t1` after one step of an L-stable Rosenbrock method of order 2.

    **Source:** J. G. Verwer, E. J. Spee, J. G. Blom, W. Hundsdorfer, SIAM J. Sci. Comput. 20(4),
    1999.
    """
    k1, k2, _ = _stages(system, mode, t0, t1, y0)
    return _end(t0, t1, y0, k1, k2)


def _stages(system: Reused, mode, t0, t1, y0) -> tuple[Array, Array, Any]:
    """Return dy/dt of both stages, and the function that solves the linear system of a stage."""
    flow, h = (lambda t, y: system.flow(t, y, mode)), t1 - t0
    rate, at_t, by_y = slopes(flow, t0, y0)
    solve = factorize(shift_matrix(by_y, _GAMMA * h))
    drift = _GAMMA * h * at_t
    k1 = solve(rate + drift)
    return k1, solve(flow(t1, y0 + h * k1) - drift - 2 * k1), solve


def rosenbrock2_differences(system: Reused, mode, t0, t1, y0) -> tuple[Array, Array]:
    """Return two vectors (n,) for error control: the result of `rosenbrock2` minus the result of a
    first-order step, and the increment of the first-order step. Both steps use the same matrix."""
    k1, k2, _ = _stages(system, mode, t0, t1, y0)
    h = t1 - t0
    return h * (0.5 * (k1 + k2)), h * k1


def _end(t0, t1, y0, k1, k2) -> Array:
    return y0 + (t1 - t0) * (1.5 * k1 + 0.5 * k2)


@rosenbrock2.def_jvp
def _rosenbrock2_jvp(primals, tangents) -> Any:
    """Differentiate the linear equations of both stages, and solve the results with the
    factorization of the step. Differentiating the elimination takes more than twice the work.
    """
    system, mode, *at = primals
    d_system, _, *d_at = tangents
    k1, k2, solve = _stages(system, mode, *at)

    def first(system: Reused, t0, t1, y0) -> Array:
        flow = lambda t, y: system.flow(t, y, mode)  # noqa: E731
        rate, along = jax.jvp(flow, (t0, y0), (jnp.ones_like(t0), k1))
        return rate + _GAMMA * (t1 - t0) * along

    def second(system: Reused, t0, t1, y0, k1) -> Array:
        flow = lambda t, y: system.flow(t, y, mode)  # noqa: E731
        along = jax.jvp(flow, (t0, y0), (-jnp.ones_like(t0), k2))[1]
        return flow(t1, y0 + (t1 - t0) * k1) - 2 * k1 + _GAMMA * (t1 - t0) * along

    d_k1 = solve(eqx.filter_jvp(first, (system, *at), (d_system, *d_at))[1])
    d_k2 = solve(eqx.filter_jvp(second, (system, *at, k1), (d_system, *d_at, d_k1))[1])
    return eqx.filter_jvp(_end, (*at, k1, k2), (*d_at, d_k1, d_k2))


def slopes(flow, t, y) -> tuple[Array, Array, list[list[Array]]]:
    """Return flow(t, y), its derivative with respect to t, and its Jacobian with respect to y (rows
    of scalars)."""
    n = y.shape[0]
    columns = jnp.eye(n + 1, dtype=y.dtype)
    push = lambda d: jax.jvp(flow, (t, y), (d[0], d[1:]))  # noqa: E731
    rates, slope = jax.vmap(push, out_axes=(None, 0))(columns)
    return rates, slope[0], [[slope[1 + j, i] for j in range(n)] for i in range(n)]


def shift_matrix(matrix: list[list[Array]], factor) -> list[list[Array]]:
    """Return the matrix I - factor*matrix, where I is the unit matrix."""
    return [
        [(1.0 if i == j else 0.0) - factor * x for j, x in enumerate(row)]
        for i, row in enumerate(matrix)
    ]


def factorize(matrix: list[list[Any]]) -> Any:
    """Return a function that solves the linear equations ``matrix @ x = b`` for x.

    For up to 12 equations the elimination is written out entry by entry, without pivoting. If J is
    the Jacobian of a dissipative motion, the matrix I - h*J does not need pivoting.
    """
    n = len(matrix)
    if n == 0:
        return lambda b: b
    if n > 12:
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
