"""Derivatives of a run, three ways."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import frictax as fx


def flat(machine: Any, paths: Sequence[str]) -> jax.Array:
    """The parameters at `paths` in one vector."""
    return jnp.concatenate([jnp.ravel(fx.parameters.get(machine, path)) for path in paths])


def rebuilt(machine: Any, paths: Sequence[str], vector: Any) -> Any:
    """`machine` with the parameters at `paths` taken from one vector."""
    values, i = {}, 0
    for path in paths:
        shape = jnp.shape(fx.parameters.get(machine, path))
        size = int(np.prod(shape))
        values[path] = vector[i : i + size].reshape(shape)
        i += size
    return fx.parameters.replace(machine, values)


def central_differences(f: Callable[[jax.Array], jax.Array], x: jax.Array, step: float = 1e-3) -> np.ndarray:
    """df/dx by differences of fourth order, all points in one vmap."""
    size = x.shape[0]
    h = step * np.maximum(np.abs(np.asarray(x)), 0.1)
    points = np.concatenate([np.asarray(x) + np.diag(k * h) for k in (-2, -1, 1, 2)])
    y = np.asarray(jax.jit(jax.vmap(f))(jnp.asarray(points)))
    far_low, low, high, far_high = (y[i * size : (i + 1) * size] for i in range(4))
    slope = (far_low - 8 * low + 8 * high - far_high) / (12 * h.reshape(-1, *[1] * (y.ndim - 1)))
    return np.moveaxis(slope, 0, -1)


def assert_derivatives_agree(f: Callable[[jax.Array], jax.Array], x: jax.Array, step: float = 1e-3) -> np.ndarray:
    """Forward mode equals reverse mode to 1e-10 and central differences to 1e-6, relative to the largest entry of each column."""
    forward = np.asarray(jax.jit(jax.jacfwd(f))(x))
    reverse = np.asarray(jax.jit(jax.jacrev(f))(x))
    differences = central_differences(f, x, step)
    assert np.all(np.isfinite(forward))
    scale = np.maximum(np.max(np.abs(forward), axis=0, keepdims=True), 1e-6)
    assert np.max(np.abs(forward - reverse) / scale) <= 1e-10
    worst = np.abs(forward - differences) / scale
    i, j = np.unravel_index(np.argmax(worst), worst.shape)
    assert worst[i, j] <= 1e-6, f"output {i} by parameter {j}: {forward[i, j]} against {differences[i, j]}"
    return forward


def outcome(machine: fx.Mechanism, ts: Any, engine: fx.Adaptive, events: int) -> jax.Array:
    """The states at ts[1:] and the times of the first `events` mode changes, in one vector."""
    run = fx.simulate(machine, ts, engine)
    return jnp.concatenate([jnp.ravel(run.ys[1:]), run.events.time[:events]])
