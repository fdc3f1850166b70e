"""Derivative rules for both engines: linear maps with a custom transpose, derivatives with respect
to sample times, and derivatives of runs that ended early. Tangents are the derivatives of forward
mode, and cotangents those of reverse mode.

If a run ends early, its values after the end are unknown, with derivatives NaN in forward and
reverse mode. A cotangent of 0 means that a value is not used. In reverse mode a cotangent of 0 must
not be multiplied by a derivative that is NaN, because 0 times NaN is NaN.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.parameters import Numbers

from .stepping import select


def linear_map(push, pull, inputs, nothing) -> Any:
    """Return `push(inputs)`. Reverse mode calls its transpose, `pull`. `nothing`: zero outputs.

    JAX accepts a custom transpose only for a linear solve. Therefore the result z of the map J
    (`push`) is written as the solution of [[1, 0], [-J, 1]] (x, z) = (inputs, 0).
    """

    def solve(_, b) -> Any:
        # b[1] is zero (`nothing`), so it is not added to the outputs.
        return b[0], push(b[0])

    def transpose(_, c) -> Any:
        return jax.tree.map(jnp.add, c[0], pull(c[1])), c[1]

    # JAX uses the first argument only in second derivatives, which raise an error.
    return jax.lax.custom_linear_solve(lambda x: x, (inputs, nothing), solve, transpose)[1]


def _is_none(x) -> bool:
    return x is None


def check_fixed_options(options, d_options) -> None:
    """Raise `ValueError` if the `options` of a run have tangents."""
    if jax.tree.leaves(d_options):
        name = type(options).__name__
        raise ValueError(
            f"A run cannot be differentiated by its tolerances. Pass `{name}` by closure, not as a"
            f" differentiated argument, and give `{name}` constant numbers."
        )


def split_moving(model, d_model) -> tuple[Any, Any, Any]:
    """Return the arrays of `model` that have a tangent, all other leaves, and these tangents."""
    # Convert Python numbers, which JAX passes unchanged outside of compiled code, to arrays.
    moved = jax.tree.map(
        lambda x, d: None if d is None else jnp.asarray(x), model, d_model, is_leaf=_is_none
    )
    moved, _ = eqx.partition(moved, eqx.is_inexact_array)
    rest = jax.tree.map(lambda x, m: x if m is None else None, model, moved, is_leaf=_is_none)
    d_moved = eqx.filter(d_model, jax.tree.map(lambda m: m is not None, moved, is_leaf=_is_none))
    return moved, rest, d_moved


def add_time_tangents(model, ts, d_ts, ys, modes, d_ys, read: slice) -> Any:
    """Return the tangents `d_ys` of the states at the samples. In the rows `read` (a slice), add
    the effect of the tangents `d_ts` of the sample times (None: fixed times).
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
        # The cotangent of an unused sample is 0, but the speed there may be NaN, and 0*NaN is NaN.
        return jnp.sum(jnp.where(c_ys == 0, 0.0, speed * c_ys), axis=1)

    moved = linear_map(push, pull, d_ts[read], jnp.zeros_like(speed) + 0.0 * d_ts[read, None])
    return d_ys.at[read].add(moved)


def unknown_after_cut(ys, times, used) -> tuple[Any, Any]:
    """Return flags of the unknown values after an early end: states that are not finite, and event
    times that are NaN or not among the first `used` entries.
    """
    return ~jnp.isfinite(ys), jnp.isnan(times) | (jnp.arange(times.shape[0]) >= used)


def nan_where(unknown, tangents) -> Any:
    """Return `tangents` with NaN in each place where the flag in `unknown` is True."""
    return jax.tree.map(lambda lost, d: jnp.where(lost, jnp.nan, d), unknown, tangents)


def pull_known(pull: Callable, unknown, cotangents) -> Any:
    """Return the cotangents of the inputs, computed from the cotangents of all known outputs. If an
    `unknown` output is used (its cotangent is not 0), all results are NaN.
    """
    used = jax.tree.map(lambda lost, c: jnp.any(lost & (c != 0)), unknown, cotangents)
    known = jax.tree.map(lambda lost, c: jnp.where(lost, 0.0, c), unknown, cotangents)
    spoilt = functools.reduce(jnp.logical_or, jax.tree.leaves(used))
    return jax.tree.map(lambda c: jnp.where(spoilt, jnp.nan, c), pull(known))


def zero_if_unused(cotangents, pulled) -> Any:
    """Return `pulled` (cotangents of inputs), or zeros if all `cotangents` of the outputs are 0.
    This avoids NaN as the product of 0 and a derivative that is not finite."""
    used = [jnp.any(c != 0) for c in jax.tree.leaves(cotangents)]
    nothing = jax.tree.map(jnp.zeros_like, pulled)
    return select(functools.reduce(jnp.logical_or, used), pulled, nothing)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def reverse_if_used(function: Callable, *at) -> Any:
    """Return function(*at), with a reverse-mode derivative of 0 if the result is not used."""
    return function(*at)


def _reverse_there(function: Callable, *at) -> Any:
    floats, rest = eqx.partition(at, eqx.is_inexact_array)
    return jax.vjp(lambda floats: function(*eqx.combine(floats, rest)), floats)


def _reverse_back(_, back, cotangents) -> Any:
    return zero_if_unused(cotangents, back(cotangents)[0])


reverse_if_used.defvjp(_reverse_there, _reverse_back)


def over_samples(function: Callable, ts: Numbers, ys: Array, modes: Array) -> Any:
    """Return function(t, y, mode) at all samples. At a sample whose state is unknown, all float
    results are NaN, even results that do not depend on the state.
    """
    known = jnp.all(jnp.isfinite(ys), axis=1)
    # At samples after an early end, `function` gets the start state, because the state is unknown.
    t, mode = jnp.where(known, ts, ts[:1]), jnp.where(known[:, None], modes, modes[:1])
    values = jax.vmap(function)(t, _start_if_unknown(ys, known), mode)
    missing = constant_if_known(ys, jnp.where(known, 0.0, jnp.nan).astype(ys.dtype))
    is_number = lambda x: jnp.issubdtype(x.dtype, jnp.floating)  # noqa: E731
    return jax.tree.map(lambda x: x + missing if is_number(x) else x, values)


@jax.custom_jvp
def constant_if_known(ys: Array, values: Array) -> Array:
    """Return the constants `values`, one for each row of `ys`. The derivative of a constant is 0,
    or NaN if its row of `ys` is unknown.
    """
    return values


@constant_if_known.defjvp
def _constant_if_known_jvp(at, along) -> Any:
    (ys, values), (d_ys, _) = at, along
    # If one entry of a row is NaN, all entries are NaN, so testing the first entry is sufficient.
    # In forward mode the tangent of a row with NaN is already NaN, so `push` does not need `ys`.
    first, d_first = ys[:, :1], d_ys[:, :1]

    def push(d_first) -> Any:
        return 0.0 * jnp.sum(d_first, axis=1)

    def pull(c) -> Any:
        return jnp.where(jnp.isfinite(first), 0.0, c[:, None])

    return values, linear_map(push, pull, d_first, push(d_first))


@jax.custom_jvp
def _start_if_unknown(ys: Array, known: Array) -> Array:
    return jnp.where(known[:, None], ys, ys[:1])


@_start_if_unknown.defjvp
def _start_if_unknown_jvp(at, along) -> Any:
    (ys, known), d_ys = at, along[0]
    pull = lambda c: jnp.where(known[:, None], c, 0.0)  # noqa: E731
    return _start_if_unknown(ys, known), linear_map(lambda d_ys: d_ys, pull, d_ys, 0.0 * d_ys)
