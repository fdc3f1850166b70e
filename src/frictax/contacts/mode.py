"""The modes of a friction element."""

import enum
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array


class Mode(enum.IntEnum):
    """The state of a friction element, with the numbers of Modelica's PartialFriction.

    BACKWARD, FORWARD: sliding with negative or positive relative velocity. STUCK: at rest, held by
    friction. FREE: no normal force and no friction. UNKNOWN: the first mode is not yet chosen; a
    run never returns UNKNOWN.

    >>> import frictax as fx
    >>> [mode.name.lower() for mode in map(fx.Mode, (-1, 0, 1, 2))]
    ['backward', 'stuck', 'forward', 'free']
    """

    BACKWARD = -1
    STUCK = 0
    FORWARD = 1
    FREE = 2
    UNKNOWN = 3


BACKWARD, STUCK, FORWARD, FREE, UNKNOWN = map(int, Mode)


def mode_vector(numbers: Sequence[Any]) -> Array:
    """Return `numbers` as one array of int32 (n,)."""
    whole = [jnp.asarray(k, jnp.int32) for k in numbers]
    return jnp.stack(whole) if whole else jnp.zeros(0, jnp.int32)
