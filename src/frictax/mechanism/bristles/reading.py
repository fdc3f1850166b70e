"""The variables of a contact with a bristle."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from frictax.contacts.contact import f0
from frictax.contacts.mode import BACKWARD, FORWARD, STUCK

from .. import dynamics
from ..energy import bristle_loss
from ..snapshot import Snapshot


def bristle_at(now: Snapshot, b: int, kind: Callable[..., Any]) -> Any:
    """The variables of contact number `b` with a bristle; `kind` is their class."""
    part, contact, modes = now.bristle_elements[b], now.layout.bristles[b], now.element_modes[b]
    v, f, f_z = now.bristle_v[b], now.bristle_friction[b], now.bristle_force[b]
    a = sum((sign * now.accelerations[body] for body, sign in contact.ends), now.zero)
    mode = jnp.where(v < 0, BACKWARD, FORWARD)
    if modes is not None:  # it slides when all of its elements slip
        mode = jnp.where(jnp.all(modes != 0), now.element_slip[b], STUCK)
        f_z = jnp.sum(now.element_force[b])
    locked, s = mode == STUCK, dynamics.contact_position(now, contact)
    f0_ = jnp.where(v < 0, f0(part, -1, 1.0), f0(part, 1, 1.0))
    shared: list[Any] = [
        s,
        v,
        a,
        f,
        mode,
        f,
        locked,
        jnp.zeros_like(locked),
        f0_,
        f0_,
        v,
        a,
        bristle_loss(now, b),
        None,
    ]
    stopped = [None] if "stopped" in getattr(kind, "__dataclass_fields__", ()) else []
    return kind(*shared, *stopped, f_z / part.bristle.sigma_0, f_z)
