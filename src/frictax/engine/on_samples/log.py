"""What happened inside steps, and how rows are written inside a loop."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from frictax.parameters import Values

from ..options import OnSamples, room


class Retrace(eqx.Module):
    """What reverse mode needs of an event beside the `Log`: where its piece began, where its end
    was found, and the state after it.
    """

    t0: Values
    y0: Float[Array, "... n"]
    found: Values
    y1: Float[Array, "... n"]
    step: Int[Array, "..."]


class Log(eqx.Module):
    """What happened inside steps: time, cause and modes of each event; `retrace` is None where only
    forward mode is asked for.
    """

    t1: Values
    fired: Int[Array, "..."]
    before: Int[Array, "... m"]
    after: Int[Array, "... m"]
    retrace: Retrace | None


def empty_log(options: OnSamples, y, mode, keeps: bool) -> Log:
    size = room(options) + 1
    number, whole = jnp.zeros(size, y.dtype), jnp.zeros(size, jnp.int32)
    states, modes = jnp.zeros((size, *y.shape), y.dtype), jnp.zeros((size, *mode.shape), jnp.int32)
    retrace = Retrace(number, states, number, states, whole - 1) if keeps else None
    return Log(jnp.full_like(number, jnp.inf), whole, modes, modes, retrace)


@jax.custom_jvp
def written(rows: Array, j, row: Array) -> Array:
    """`rows` with row j replaced, in place inside a loop."""
    return _writer(0)(rows, j, row)


@written.defjvp
def _written_jvp(at, along) -> Any:
    (rows, j, row), (d_rows, _, d_row) = at, along
    return written(rows, j, row), d_rows if d_rows.dtype == jax.dtypes.float0 else _writer(0)(
        d_rows, j, d_row
    )


@functools.cache
def _writer(axis: int) -> Callable:
    """`written` along `axis`.

    Under `jax.vmap` it stays one update of a slice, where JAX's own makes a scatter, to XLA a loop.
    """

    def plain(rows, j, row):
        return jax.lax.dynamic_update_index_in_dim(rows, row, j, axis, allow_negative_indices=False)

    write = jax.custom_batching.custom_vmap(plain)

    @write.def_vmap
    def of_lanes(size: int, many, rows, j, row) -> tuple[Array, bool]:
        if not any(many):
            return plain(rows, j, row), False
        if many[1]:
            return jax.vmap(plain, in_axes=[0 if is_many else None for is_many in many])(
                rows, j, row
            ), True
        rows, row = (
            x if is_many else jnp.broadcast_to(x, (size, *x.shape))
            for x, is_many in ((rows, many[0]), (row, many[2]))
        )
        return _writer(axis + 1)(rows, j, row), True

    return write
