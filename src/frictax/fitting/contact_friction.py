"""The friction of one contact as a function of what is fitted."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.contacts import AbstractContact
from frictax.contacts.contact import law_value
from frictax.fitting.problem import Problem


def friction_at(problem: Problem, contact: str, velocity: Float[np.ndarray, " n"], record: int | None) -> Callable[[Any], Any]:
    """From all fitted numbers to the friction of `contact` at each velocity; raises `KeyError` where there is no such contact."""
    ways, sizes = jnp.where(jnp.asarray(velocity) < 0, -1, 1), jnp.abs(jnp.asarray(velocity))

    def at(x: Any) -> Any:
        part: Any = problem.bench_at(x, record).machine
        for name in contact.split("."):
            part = part[name] if hasattr(part, "named_parts") else getattr(part, name, None)
        if not isinstance(part, AbstractContact):
            raise KeyError(f"There is no contact {contact!r} in this machine.")
        return jax.vmap(lambda way, size: way * law_value(part, way, size, None))(ways, sizes)

    return at
