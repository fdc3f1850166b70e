"""The variables of a contact with a bristle."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from frictax.contacts.contact import f0
from frictax.contacts.mode import BACKWARD, FORWARD, FREE, STUCK

from .. import dynamics
from ..energy import bristle_loss
from ..snapshot import Snapshot


def bristle_at(now: Snapshot, b: int, kind: Callable[..., Any]) -> Any:
    """The variables of contact number `b` with a bristle; `kind` is their class."""
    part, contact, modes = now.bristle_elements[b], now.layout.bristles[b], now.element_modes[b]
    v, f, f_z = now.bristle_v[b], now.bristle_friction[b], now.bristle_force[b]
    a = sum((sign * now.accelerations[body] for body, sign in contact.ends), now.zero)
    scale, normal = now.bristle_scale[b], now.bristle_normal[b]
    mode = jnp.where(v < 0, BACKWARD, FORWARD)
    if modes is not None:  # it slides when all of its elements slip
        mode = jnp.where(jnp.all(modes != 0), now.element_slip[b], STUCK)
        f_z = jnp.sum(now.element_force[b])
    z = f_z / part.bristle.sigma_0
    free = jnp.zeros(jnp.shape(mode), bool)
    if scale is not None:
        free, f_z = now.bristle_press[b] == 0, scale * f_z
        mode = jnp.where(free, FREE, mode)
    locked, s = mode == STUCK, dynamics.contact_position(now, contact)
    size = 1.0 if scale is None else scale
    f0_ = jnp.where(v < 0, f0(part, -1, size), f0(part, 1, size))
    shared: list[Any] = [
        s,
        v,
        a,
        f,
        mode,
        f,
        locked,
        free,
        f0_,
        f0_,
        v,
        a,
        bristle_loss(now, b),
        normal,
    ]
    stopped = [None] if "stopped" in getattr(kind, "__dataclass_fields__", ()) else []
    return kind(*shared, *stopped, z, f_z)
