"""A linear map that JAX may transpose, given as two programs."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp


def linear(push, pull, inputs, nothing) -> Any:
    """push(inputs), a linear map whose transpose is `pull`; `nothing` is an output of zeros.

    JAX lets a user name the transpose of a linear *solve* only, so the map J is posed as one: [[1,
    0], [-J, 1]] (x, z) = (inputs, 0).
    """

    def solve(_, b) -> Any:
        # b[1] is `nothing`: to add it would go over all outputs once more
        return b[0], push(b[0])

    def transpose(_, c) -> Any:
        return jax.tree.map(jnp.add, c[0], pull(c[1])), c[1]

    # The operator itself would be needed for second derivatives only, which are refused.
    return jax.lax.custom_linear_solve(lambda x: x, (inputs, nothing), solve, transpose)[1]


def _is_none(x) -> bool:
    return x is None


def split(model, d_model) -> tuple[Any, Any, Any]:
    """What of `model` its tangent `d_model` moves, all else, and that part of the tangent."""
    # A Python number that is differentiated eagerly comes as one.
    moved = jax.tree.map(
        lambda x, d: None if d is None else jnp.asarray(x), model, d_model, is_leaf=_is_none
    )
    moved, _ = eqx.partition(moved, eqx.is_inexact_array)
    rest = jax.tree.map(lambda x, m: x if m is None else None, model, moved, is_leaf=_is_none)
    d_moved = eqx.filter(d_model, jax.tree.map(lambda m: m is not None, moved, is_leaf=_is_none))
    return moved, rest, d_moved


def read_later(model, ts, d_ts, ys, modes, d_ys, read: slice) -> Any:
    """`d_ys` where the samples `read` are taken at times that move by `d_ts` (None: they do not): a
    sample read later has moved on.
    """
    if d_ts is None:
        return d_ys
    system, args, _ = model
    at = ts[read], ys[read], modes[read]
    speed = jax.vmap(lambda t, y, mode: system.flow(t, y, mode, args))(*at)
    speed = jnp.where(jnp.isfinite(at[1]), speed, jnp.nan)

    def push(d_ts) -> Any:
        return speed * d_ts[:, None]

    def pull(c_ys) -> Any:
        # A sample that nobody uses has the cotangent 0, and its speed may be NaN.
        return jnp.sum(jnp.where(c_ys == 0, 0.0, speed * c_ys), axis=1)

    moved = linear(push, pull, d_ts[read], jnp.zeros_like(speed) + 0.0 * d_ts[read, None])
    return d_ys.at[read].add(moved)
