"""Derivatives of a run, three ways."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import frictax as fx

# For `jax.jit` of what is computed for long: see conftest.py.
OPTIMISED = {"xla_backend_optimization_level": 3}


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


def value_and_jacobian(
    f: Callable[[jax.Array], jax.Array], options: Mapping[str, Any] | None = None
) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
    """f(x) and df/dx by forward mode, in one compiled program: compilation is what most of these
    tests wait for.
    """
    along = lambda x, v: jax.jvp(f, (x,), (v,))  # noqa: E731

    def both(x):
        return jax.vmap(along, in_axes=(None, 0), out_axes=(None, -1))(x, jnp.eye(x.shape[0]))

    return jax.jit(both, compiler_options=dict(options or {}))


def central_differences(
    f: Callable[[jax.Array], Any], x: jax.Array, step: float = 1e-3
) -> np.ndarray:
    """df/dx by differences of fourth order, of a compiled function."""
    columns = []
    for i in range(x.shape[0]):
        h = step * max(abs(float(x[i])), 0.1)
        far_low, low, high, far_high = (np.asarray(f(x.at[i].add(k * h))) for k in (-2, -1, 1, 2))
        columns.append((far_low - 8 * low + 8 * high - far_high) / (12 * h))
    return np.stack(columns, axis=-1)


def assert_derivatives_agree(
    f: Callable[[jax.Array], jax.Array],
    x: jax.Array,
    step: float = 1e-3,
    reverse: bool = True,
    optimised: bool = False,
) -> np.ndarray:
    """Forward mode equals reverse mode to 1e-10 and central differences to 1e-6, relative to the
    largest entry of each column.

    Without `reverse`, that mode is left out: where a test has several machines of one kind, one of
    them does. Some need `optimised` programs: else those of the two modes round differently and so
    take other steps, which shows in derivatives by 1e-7.
    """
    options = OPTIMISED if optimised else {}
    both = value_and_jacobian(f, options)
    forward = np.asarray(both(x)[1])
    differences = central_differences(lambda x: both(x)[0], x, step)
    assert np.all(np.isfinite(forward))
    scale = np.maximum(np.max(np.abs(forward), axis=0, keepdims=True), 1e-6)
    if reverse:
        assert (
            np.max(
                np.abs(forward - np.asarray(jax.jit(jax.jacrev(f), compiler_options=options)(x)))
                / scale
            )
            <= 1e-10
        )
    worst = np.abs(forward - differences) / scale
    i, j = np.unravel_index(np.argmax(worst), worst.shape)
    assert worst[i, j] <= 1e-6, (
        f"output {i} by parameter {j}: {forward[i, j]} against {differences[i, j]}"
    )
    return forward


def outcome(machine: fx.Mechanism, ts: Any, engine: fx.Adaptive, events: int) -> jax.Array:
    """The states at ts[1:] and the times of the first `events` mode changes, in one vector."""
    run = fx.simulate(machine, ts, engine)
    return jnp.concatenate([jnp.ravel(run.ys[1:]), run.events.time[:events]])
